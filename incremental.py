"""The decoder one step at a time: a cache of keys and values, and weights laid out for few rows.

What `Transformer.decode` computes for a whole target is computed here for its newest tokens alone; tests hold the two
equal. Shapes: A sentences, W beams, S source length, D model width, H heads, K = D // H, V vocabulary.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import DecoderBlock, ResidualConnection, Transformer

# Columns of the output projection that are multiplied at a time: on a CPU they stay in the processor's cache.
CHUNK = 1_024


class Linear(NamedTuple):
    """A linear map with its matrix as (in, out), in the order in which a product of few rows reads it: with the
    usual (out, in), one row takes 1.5 times as long (docs/log.md)."""

    matrix: Tensor
    bias: Tensor

    @classmethod
    def of(cls, layer: nn.Linear, start: int = 0, end: int | None = None) -> "Linear":
        """A copy of these outputs of a layer."""
        return cls(layer.weight[start:end].detach().t().contiguous(), layer.bias[start:end].detach().clone())

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.matrix)  # (rows, out)


class Norm(NamedTuple):
    """Layer normalisation around a sublayer."""

    layer: nn.LayerNorm
    is_pre: bool

    @classmethod
    def of(cls, connection: ResidualConnection) -> "Norm":
        return cls(connection.norm, connection.is_pre)

    def before(self, x: Tensor) -> Tensor:
        return self.apply(x) if self.is_pre else x

    def after(self, x: Tensor, sublayer: Tensor) -> Tensor:
        total = sublayer.add_(x)
        return total if self.is_pre else self.apply(total)

    def apply(self, x: Tensor) -> Tensor:
        return F.layer_norm(
            x, self.layer.normalized_shape, self.layer.weight, self.layer.bias, self.layer.eps
        )


class StepBlock:
    """One decoder layer for the newest step."""

    def __init__(self, block: DecoderBlock) -> None:
        own, cross, feed_forward = (
            block.self_attention_block,
            block.cross_attention_block,
            block.feed_forward_block,
        )
        self.cross = cross
        self.h, D = own.h, own.w_o.in_features
        self.qkv, self.own_out = Linear.of(own.w_qkv), Linear.of(own.w_o)
        self.cross_query, self.cross_out = Linear.of(cross.w_qkv, 0, D), Linear.of(cross.w_o)
        self.linear_1, self.linear_2 = Linear.of(feed_forward.linear_1), Linear.of(feed_forward.linear_2)
        self.activation = feed_forward.activation
        self.norms = [Norm.of(c) for c in block.connections()]

    def start_cache(self, encoder_output: Tensor) -> "LayerCache":
        """An empty cache with the cross-attention keys and values of these sentences."""
        return LayerCache(*self.cross.project(encoder_output, 1, 3))

    def __call__(self, x: Tensor, layer: "LayerCache", cache: "KVCache") -> Tensor:
        """x (A·W, D) to the same shape; writes its keys and values into the cache."""
        A, D = len(layer.cross_key), x.size(1)
        first, second, third = self.norms
        qkv = self.qkv(first.before(x)).view(A, -1, 3, self.h, D // self.h)  # (A, W, 3, H, K)
        key, value = layer.append(qkv[:, :, 1:], cache.num_nodes)
        heads = F.scaled_dot_product_attention(qkv[:, :, 0].transpose(1, 2), key, value, cache.ancestors)
        x = first.after(x, self.own_out(heads.transpose(1, 2).reshape(-1, D)))
        query = (
            self.cross_query(second.before(x)).view(A, -1, self.h, D // self.h).transpose(1, 2)
        )  # (A, H, W, K)
        heads = F.scaled_dot_product_attention(query, layer.cross_key, layer.cross_value, cache.cross_mask)
        x = second.after(x, self.cross_out(heads.transpose(1, 2).reshape(-1, D)))
        return third.after(x, self.linear_2(self.activation(self.linear_1(third.before(x)))))


class IncrementalDecoder:
    """A model ready to decode step by step, with copies of its decoder's weights: changes to them are not seen."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.blocks = [StepBlock(block) for block in model.decoder.blocks()]
        self.projection = model.projection_layer.proj
        V = self.projection.out_features
        self.columns = [Linear.of(self.projection, i, min(i + CHUNK, V)) for i in range(0, V, CHUNK)]

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """As `Transformer.encode`."""
        return self.model.encode(src, src_mask)

    def start_cache(self, encoder_output: Tensor, src_mask: Tensor | None, num_beams: int = 1) -> "KVCache":
        """An empty cache for A sentences.

        Args:
            encoder_output: (A, S, D).
            src_mask: (A, 1, 1, S), bool.
        """
        return KVCache([block.start_cache(encoder_output) for block in self.blocks], src_mask, num_beams)

    def step(self, tgt: Tensor, cache: "KVCache") -> Tensor:
        """Read the newest token of each beam.

        Args:
            tgt: token ids, (A, W), int64.
            cache: from `start_cache`; moves on by a step.
        Returns:
            (A, W, D), what `Transformer.decode` would return for the last position of each beam.
        """
        x = self.model.tgt_pos(self.model.tgt_embed(tgt.view(-1, 1)), cache.length).squeeze(1)  # (A·W, D)
        cache.advance(tgt.size(1))
        for block, layer in zip(self.blocks, cache.layers, strict=True):
            x = block(x, layer, cache)
        return self.model.decoder.norm(x).view(*tgt.shape, -1)

    def output_columns(self, shortlist: Tensor | None) -> list[Linear]:
        """The output projection in parts, of all ids or of a shortlist in its order."""
        if shortlist is None:
            return self.columns
        weight, bias = self.projection.weight.detach()[shortlist], self.projection.bias.detach()[shortlist]
        return [
            Linear(w.t().contiguous(), b) for w, b in zip(weight.split(CHUNK), bias.split(CHUNK), strict=True)
        ]


class LayerCache:
    """One decoder layer's keys and values: cross-attention's of A sentences, self-attention's step by step."""

    def __init__(self, cross_key: Tensor, cross_value: Tensor) -> None:
        self.cross_key, self.cross_value = cross_key, cross_value  # (A, H, S, K)
        A, H, _, K = cross_key.shape
        self.own = cross_key.new_empty(A, 0, 2, H, K)  # keys and values side by side, with room for more

    def append(self, new: Tensor, end: int) -> tuple[Tensor, Tensor]:
        """Write new keys and values (A, W, 2, H, K) so that they end at node `end`; return all up to there."""
        start = end - new.size(1)
        if end > self.own.size(1):
            room = self.own.new_empty(len(self.own), 2 * end + 14, *self.own.shape[2:])
            room[:, :start] = self.own[:, :start]
            self.own = room
        self.own[:, start:end] = new
        key, value = self.own[:, :end].unbind(2)  # (A, nodes, H, K)
        return key.transpose(1, 2), value.transpose(1, 2)


class KVCache:
    """All that decoding step by step keeps of A sentences, made by `IncrementalDecoder.start_cache`.

    The W beams of a sentence share its cross-attention, and one pool of keys and values of self-attention: a step
    adds W nodes to the pool, one for each beam, and a mask says which nodes a beam descends from. A beam that
    changes its parent so changes a row of the mask, and no key moves.
    """

    def __init__(self, layers: list[LayerCache], src_mask: Tensor | None, num_beams: int) -> None:
        self.layers = layers
        self.length = 0
        """Steps so far."""
        self.num_nodes = 0
        self.cross_mask = None if src_mask is None or src_mask.all() else _additive(src_mask)  # (A, 1, 1, S)
        self.ancestors = None
        """(A, 1, W, nodes), float: 0 where the beam descends from the node or is it, else -inf; None for W = 1."""
        if num_beams > 1:
            own = torch.eye(num_beams, dtype=torch.bool, device=layers[0].cross_key.device)
            self.own = _additive(own).expand(len(layers[0].cross_key), 1, -1, -1)  # (A, 1, W, W)
            self.ancestors = self.own[..., :0]

    def advance(self, num_beams: int) -> None:
        """Count a step and make its nodes known to their beams."""
        self.length += 1
        self.num_nodes += num_beams
        if self.ancestors is not None:
            self.ancestors = torch.cat([self.ancestors, self.own], 3)

    def reorder(self, parents: Tensor) -> None:
        """Let beam w of sentence a go on from what beam parents[a, w] was, int64 (A, W)."""
        if self.ancestors is None:  # a single beam has itself
            return
        self.ancestors = self.ancestors.gather(2, parents[:, None, :, None].expand_as(self.ancestors))
        is_live = self.ancestors.isfinite().any(2).squeeze(1)  # (A, nodes)
        longest = int(is_live.sum(1).max())
        if longest <= self.num_nodes // 2:
            self._forget(is_live, longest)

    def _forget(self, is_live: Tensor, longest: int) -> None:
        """Close up the pools where no beam descends from a node any more."""
        assert self.ancestors is not None
        # The live ones first, as they stood; a pool with fewer than the longest is filled with dead ones.
        nodes = is_live.int().argsort(dim=1, descending=True, stable=True)[:, :longest]  # (A, longest)
        self.ancestors = self.ancestors.gather(3, nodes[:, None, None].expand(-1, 1, self.own.size(2), -1))
        sentence = torch.arange(len(nodes), device=nodes.device).unsqueeze(1)
        for layer in self.layers:
            layer.own = layer.own[sentence, nodes]
        self.num_nodes = longest

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone, int64 (A',)."""
        for layer in self.layers:
            layer.cross_key, layer.cross_value = layer.cross_key[sentences], layer.cross_value[sentences]
            layer.own = layer.own[sentences]
        if self.cross_mask is not None:
            self.cross_mask = self.cross_mask[sentences]
        if self.ancestors is not None:
            self.ancestors, self.own = self.ancestors[sentences], self.own[: len(sentences)]


def _additive(mask: Tensor) -> Tensor:
    """What added to the scores does the same as the mask."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -math.inf)
