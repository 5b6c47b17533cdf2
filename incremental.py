"""The decoder one step at a time: a cache of keys and values, and weights laid out for few rows.

What `Transformer.decode` computes for a whole target is computed here for its newest tokens alone; tests hold the two
equal. Shapes: A sentences, W beams, S source length, D model width, H heads, K = D // H, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import DecoderBlock, ResidualConnection, Transformer

T = TypeVar("T")
# The columns of the output projection fill whole groups of this many.
GROUP = 64


class Linear(NamedTuple):
    """A linear map with its matrix as (in, out), in the order in which a product of few rows reads it: with the
    usual (out, in), one row takes 1.5 times as long (docs/log.md)."""

    bias: Tensor
    matrix: Tensor

    @classmethod
    def of(cls, layer: nn.Linear, start: int = 0, end: int | None = None) -> "Linear":
        """A copy of these outputs of a layer."""
        return cls(layer.bias[start:end].detach().clone(), layer.weight[start:end].detach().t().contiguous())

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.matrix)  # (rows, out)

    def filled(self, multiple: int) -> Tensor:
        """(in + 1, out), the bias below the matrix, for inputs that end with 1: a product alone is faster than one
        and a bias. As many outputs of -inf stand behind its own as make their number a multiple."""
        missing = -len(self.bias) % multiple
        bias = F.pad(self.bias, (0, missing), value=-math.inf)
        return torch.cat([F.pad(self.matrix, (0, missing)), bias.unsqueeze(0)])


class Moves(NamedTuple):
    """Rows that go on when others end: the last of them move into the gaps, and no other row moves."""

    num: int
    """How many go on."""
    gaps: Tensor
    """Places below `num` of rows that end, int64."""
    last: Tensor
    """Places from `num` on of rows that go on, int64, as many."""

    @classmethod
    def of(cls, alive: Sequence[int], device: torch.device) -> "Moves":
        """From the places of the rows that go on, rising."""
        num = len(alive)
        gaps = sorted(set(range(num)).difference(alive))
        last = [place for place in alive if place >= num]
        return cls(num, *(torch.tensor(places, dtype=torch.int64, device=device) for places in (gaps, last)))

    def __call__(self, x: Tensor) -> Tensor:
        """The rows of x that go on; writes into x. Where several hold the same tensor, each may ask for it: what
        moves is not written over, so the second time changes nothing."""
        if len(self.gaps):
            x.index_copy_(0, self.gaps, x.index_select(0, self.last))
        return x[: self.num]

    def of_list(self, x: list[T]) -> list[T]:
        """The same for a list, which stays as it is."""
        moved = x[: self.num]
        for gap, last in zip(self.gaps.tolist(), self.last.tolist(), strict=True):
            moved[gap] = x[last]
        return moved


class Residual:
    """Layer normalisation and sum around a sublayer."""

    def __init__(self, connection: ResidualConnection) -> None:
        norm = connection.norm
        self.is_pre = connection.is_pre
        self.shape, self.eps = list(norm.normalized_shape), norm.eps
        self.weight, self.bias = norm.weight.detach(), norm.bias.detach()

    def __call__(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.is_pre:
            return sublayer(self.normalised(x)).add_(x)
        return self.normalised(sublayer(x).add_(x))

    def normalised(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class StepBlock:
    """One decoder layer for the newest step."""

    def __init__(self, block: DecoderBlock) -> None:
        own, feed_forward = block.self_attention_block, block.feed_forward_block
        self.cross = block.cross_attention_block
        self.h, self.width = own.h, own.w_o.in_features
        self.qkv, self.own_out = Linear.of(own.w_qkv), Linear.of(own.w_o)
        self.cross_query, self.cross_out = (
            Linear.of(self.cross.w_qkv, 0, self.width),
            Linear.of(self.cross.w_o),
        )
        self.linear_1, self.linear_2 = Linear.of(feed_forward.linear_1), Linear.of(feed_forward.linear_2)
        self.activation = feed_forward.activation
        self.residuals = [Residual(c) for c in block.connections()]

    def start_cache(self, encoder_output: Tensor, src_mask: Tensor | None) -> "LayerCache":
        """An empty cache with the cross-attention keys and values of these sentences."""
        key, value = self.cross.project(encoder_output, 1, 3)
        if len(key) == 1 and self.h * key.size(2) <= 2 * self.width:
            return LayerCache(FoldedCross(self, key[0], value[0], src_mask), key)
        return LayerCache(Cross(self, key, value, src_mask), key)

    def __call__(self, x: Tensor, layer: "LayerCache", cache: "KVCache") -> Tensor:
        """x (A·W, D) to the same shape; writes its keys and values into the cache."""
        first, second, third = self.residuals
        x = first(x, lambda y: self._self_attention(y, layer, cache))
        x = second(x, layer.cross)
        return third(x, self._feed_forward)

    def _self_attention(self, x: Tensor, layer: "LayerCache", cache: "KVCache") -> Tensor:
        A, D = len(layer.own), self.width
        qkv = self.qkv(x).view(A, -1, 3, self.h, D // self.h)  # (A, W, 3, H, K)
        key, value = layer.append(qkv[:, :, 1:], cache.num_nodes)
        heads = F.scaled_dot_product_attention(qkv[:, :, 0].transpose(1, 2), key, value, cache.ancestors)
        return self.own_out(heads.transpose(1, 2).reshape(-1, D))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear_2(self.activation(self.linear_1(x)))


class Cross:
    """Cross-attention of the newest step to the keys and values of A sentences."""

    def __init__(self, block: StepBlock, key: Tensor, value: Tensor, src_mask: Tensor | None) -> None:
        self.block = block
        self.key, self.value = key.contiguous(), value.contiguous()  # (A, H, S, K)
        self.mask = src_mask  # (A, 1, 1, S), float

    def __call__(self, x: Tensor) -> Tensor:
        """(A·W, D) to the same shape."""
        A, H, _, K = self.key.shape
        query = self.block.cross_query(x).view(A, -1, H, K).transpose(1, 2)  # (A, H, W, K)
        heads = F.scaled_dot_product_attention(query, self.key, self.value, self.mask)
        return self.block.cross_out(heads.transpose(1, 2).reshape(len(x), -1))

    def keep(self, moves: Moves) -> None:
        self.key, self.value = moves(self.key), moves(self.value)
        self.mask = None if self.mask is None else moves(self.mask)


class FoldedCross:
    """The same for one sentence, with the projections folded into its keys and values.

    A score is q·k with q = x·W + b: W·k is computed once, and likewise v times the output projection. A step then
    reads two matrices of (D, H·S) in place of two of (D, D) and the keys and values.
    """

    def __init__(self, block: StepBlock, key: Tensor, value: Tensor, src_mask: Tensor | None) -> None:
        H, S, K = key.shape
        query, out, key = block.cross_query, block.cross_out, key / K**0.5
        into = torch.einsum("dhk,hsk->dhs", query.matrix.view(-1, H, K), key)  # (D, H, S)
        bias = torch.einsum("hk,hsk->hs", query.bias.view(H, K), key)
        if src_mask is not None:
            bias = bias + src_mask.view(S)
        self.scores = Linear(bias.flatten(), into.flatten(1))
        self.out = Linear(
            out.bias, torch.einsum("hsk,hkd->hsd", value, out.matrix.view(H, K, -1)).flatten(0, 1)
        )
        self.h = H

    def __call__(self, x: Tensor) -> Tensor:
        """(W, D) to the same shape."""
        scores = self.scores(x).view(len(x), self.h, -1)  # (W, H, S)
        return self.out(scores.softmax(-1).flatten(1))

    def keep(self, moves: Moves) -> None:
        assert moves.num == 1


class IncrementalDecoder:
    """A model ready to decode step by step. It copies the decoder's matrices: where they change, make a new one."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.blocks = [StepBlock(block) for block in model.decoder.blocks()]
        self.projection = model.projection_layer.proj
        self.output = Linear.of(self.projection).filled(GROUP)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """As `Transformer.encode`."""
        return self.model.encode(src, src_mask)

    def start_cache(self, encoder_output: Tensor, src_mask: Tensor | None, num_beams: int = 1) -> "KVCache":
        """An empty cache for A sentences.

        Args:
            encoder_output: (A, S, D).
            src_mask: (A, 1, 1, S), bool.
        """
        mask = None if src_mask is None or src_mask.all() else _additive(src_mask)
        return KVCache([block.start_cache(encoder_output, mask) for block in self.blocks], num_beams)

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

    def output_layer(self, shortlist: Tensor | None) -> Tensor:
        """The output projection of all ids, or of a shortlist in its order, as `Linear.filled` has it."""
        if shortlist is None:
            return self.output
        weight, bias = self.projection.weight.detach()[shortlist], self.projection.bias.detach()[shortlist]
        return Linear(bias, weight.t()).filled(GROUP)


class LayerCache:
    """One decoder layer's keys and values: cross-attention's of A sentences, self-attention's step by step."""

    def __init__(self, cross: Cross | FoldedCross, like: Tensor) -> None:
        self.cross = cross
        A, H, _, K = like.shape
        self.own = like.new_empty(A, 0, 2, H, K)  # keys and values side by side, with room for more

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

    def keep(self, moves: Moves) -> None:
        self.cross.keep(moves)
        self.own = moves(self.own)


class KVCache:
    """All that decoding step by step keeps of A sentences, made by `IncrementalDecoder.start_cache`.

    The W beams of a sentence share its cross-attention, and one pool of keys and values of self-attention: a step
    adds W nodes to the pool, one for each beam, and a mask says which nodes a beam descends from. A beam that
    changes its parent so changes a row of the mask, and no key moves.
    """

    def __init__(self, layers: list[LayerCache], num_beams: int) -> None:
        self.layers = layers
        self.length = 0
        """Steps so far."""
        self.num_nodes = 0
        self.ancestors = None
        """(A, 1, W, nodes), float: 0 where the beam descends from the node or is it, else -inf; None for W = 1."""
        if num_beams > 1:
            pool = layers[0].own
            own = torch.eye(num_beams, dtype=torch.bool, device=pool.device)
            self.own = _additive(own).expand(len(pool), 1, -1, -1)  # (A, 1, W, W)
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

    def keep(self, moves: Moves) -> None:
        """Go on with some of the sentences alone."""
        for layer in self.layers:
            layer.keep(moves)
        if self.ancestors is not None:
            self.ancestors, self.own = moves(self.ancestors), self.own[: moves.num]


def _additive(mask: Tensor) -> Tensor:
    """What added to the scores does the same as the mask."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -math.inf)
