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

    def with_bias(self) -> Tensor:
        """(in + 1, out), the bias below the matrix, for inputs that end with 1: a product alone is faster than one
        and a bias."""
        return torch.cat([self.matrix, self.bias.unsqueeze(0)])


def filled(matrix: Tensor, multiple: int) -> Tensor:
    """A matrix of `Linear.with_bias` whose outputs are a multiple: as many of -inf as it takes stand behind its own."""
    num = matrix.size(1)
    matrix = F.pad(matrix, (0, -num % multiple))
    matrix[-1, num:] = -math.inf
    return matrix


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
        """The rows of x that go on; writes into x."""
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

    def start_cache(self, encoder_output: Tensor, is_alone: bool) -> "LayerCache":
        """An empty cache with the cross-attention keys and values of these sentences."""
        key, value = self.cross.project(encoder_output, 1, 3)
        if is_alone and self.h * key.size(2) <= 2 * self.width:
            return LayerCache(FoldedCross(self, key[0], value[0]), key)
        return LayerCache(Cross(self, key, value), key)

    def __call__(self, x: Tensor, layer: "LayerCache", cache: "KVCache") -> Tensor:
        """x (A·W, D) to the same shape; writes its keys and values into the cache."""
        first, second, third = self.residuals
        x = first(x, lambda y: self._self_attention(y, layer, cache))
        x = second(x, lambda y: layer.cross(y, cache.src_mask))
        return third(x, self._feed_forward)

    def _self_attention(self, x: Tensor, layer: "LayerCache", cache: "KVCache") -> Tensor:
        A, D = len(layer.own), self.width
        qkv = self.qkv(x).view(A, -1, 3, self.h, D // self.h)  # (A, W, 3, H, K)
        key, value = layer.append(qkv[:, :, 1:], cache)
        heads = F.scaled_dot_product_attention(qkv[:, :, 0].transpose(1, 2), key, value, cache.ancestors)
        return self.own_out(heads.transpose(1, 2).reshape(-1, D))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear_2(self.activation(self.linear_1(x)))


class Cross:
    """Cross-attention of the newest step to the keys and values of A sentences."""

    def __init__(self, block: StepBlock, key: Tensor, value: Tensor) -> None:
        self.block = block
        self.key, self.value = key.contiguous(), value.contiguous()  # (A, H, S, K)

    def __call__(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(A·W, D) to the same shape; the mask is (A, 1, 1, S), float, or None."""
        A, H, _, K = self.key.shape
        query = self.block.cross_query(x).view(A, -1, H, K).transpose(1, 2)  # (A, H, W, K)
        heads = F.scaled_dot_product_attention(query, self.key, self.value, mask)
        return self.block.cross_out(heads.transpose(1, 2).reshape(len(x), -1))

    def keep(self, moves: Moves) -> None:
        self.key, self.value = moves(self.key), moves(self.value)

    def fill(self, places: Tensor, other: "Cross | FoldedCross", start: int, length: int) -> None:
        """Put rows of another, from `start` on, into these places; no source is longer than `length` now."""
        assert isinstance(other, Cross)
        end = start + len(places)
        self.key = _placed(self.key, places, other.key[start:end])[:, :, :length]
        self.value = _placed(self.value, places, other.value[start:end])[:, :, :length]


def _placed(x: Tensor, places: Tensor, rows: Tensor) -> Tensor:
    """x (A, H, S, K) with rows of a length of their own in these places; behind their end, what stood there."""
    if rows.size(2) > x.size(2):
        x = F.pad(x, (0, 0, 0, rows.size(2) - x.size(2)))
    x[:, :, : rows.size(2)].index_copy_(0, places, rows)
    return x


class FoldedCross:
    """The same for one sentence, with the projections folded into its keys and values.

    A score is q·k with q = x·W + b: W·k is computed once, and likewise v times the output projection. A step then
    reads two matrices of (D, H·S) in place of two of (D, D) and the keys and values.
    """

    def __init__(self, block: StepBlock, key: Tensor, value: Tensor) -> None:
        H, _, K = key.shape
        query, out, key = block.cross_query, block.cross_out, key / K**0.5
        into = torch.einsum("dhk,hsk->dhs", query.matrix.view(-1, H, K), key)  # (D, H, S)
        bias = torch.einsum("hk,hsk->hs", query.bias.view(H, K), key)
        self.scores = Linear(bias.flatten(), into.flatten(1))
        self.out = Linear(
            out.bias, torch.einsum("hsk,hkd->hsd", value, out.matrix.view(H, K, -1)).flatten(0, 1)
        )
        self.h = H

    def __call__(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(W, D) to the same shape; the mask is (1, 1, 1, S), float, or None."""
        scores = self.scores(x).view(len(x), self.h, -1)  # (W, H, S)
        if mask is not None:
            scores = scores + mask[0]
        return self.out(scores.softmax(-1).flatten(1))

    def keep(self, moves: Moves) -> None:
        assert moves.num == 1

    def fill(self, places: Tensor, other: "Cross | FoldedCross", start: int, length: int) -> None:
        raise NotImplementedError("a sentence that is alone has no place for another")


class IncrementalDecoder:
    """A model ready to decode step by step. It copies the decoder's matrices: where they change, make a new one."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.blocks = [StepBlock(block) for block in model.decoder.blocks()]
        self.output = filled(Linear.of(model.projection_layer.proj).with_bias(), GROUP)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """As `Transformer.encode`."""
        return self.model.encode(src, src_mask)

    def start_cache(
        self, encoder_output: Tensor, src_mask: Tensor | None, num_beams: int = 1, may_fill: bool = False
    ) -> "KVCache":
        """An empty cache for A sentences.

        Args:
            encoder_output: (A, S, D).
            src_mask: (A, 1, 1, S), bool.
            may_fill: it will be filled from others, or fill another; a sentence alone is faster without.
        """
        mask = None if src_mask is None or src_mask.all() else _additive(src_mask)
        is_alone = len(encoder_output) == 1 and not may_fill
        return KVCache(
            [block.start_cache(encoder_output, is_alone) for block in self.blocks], num_beams, mask
        )

    def step(self, tgt: Tensor, cache: "KVCache") -> Tensor:
        """Read the newest token of each beam.

        Args:
            tgt: token ids, (A, W), int64.
            cache: from `start_cache`; moves on by a step.
        Returns:
            (A, W, D), what `Transformer.decode` would return for the last position of each beam.
        """
        start = cache.length if cache.lengths is None else cache.lengths
        x = self.model.tgt_pos(self.model.tgt_embed(tgt.view(-1, 1)), start).squeeze(1)  # (A·W, D)
        cache.advance(tgt.size(1))
        for block, layer in zip(self.blocks, cache.layers, strict=True):
            x = block(x, layer, cache)
        return self.model.decoder.norm(x).view(*tgt.shape, -1)

    def output_layer(self, shortlist: Tensor | None) -> Tensor:
        """The output projection of all ids, or of a shortlist in its order, `filled` to whole groups."""
        return self.output if shortlist is None else filled(self.output.index_select(1, shortlist), GROUP)


class LayerCache:
    """One decoder layer's keys and values: cross-attention's of A sentences, self-attention's step by step."""

    def __init__(self, cross: Cross | FoldedCross, like: Tensor) -> None:
        self.cross = cross
        A, H, _, K = like.shape
        self.own = like.new_empty(A, 0, 2, H, K)  # keys and values side by side, with room for more

    def append(self, new: Tensor, cache: "KVCache") -> tuple[Tensor, Tensor]:
        """Write the newest keys and values (A, W, 2, H, K), which the cache has counted; return all."""
        end = cache.num_nodes
        if end > self.own.size(1):
            room = self.own.new_empty(len(self.own), 2 * end + 14, *self.own.shape[2:])
            room[:, : self.own.size(1)] = self.own
            if cache.lengths is not None:
                room[:, self.own.size(1) :] = 0.0
            self.own = room
        if cache.lengths is None:
            self.own[:, end - new.size(1) : end] = new
        else:
            self.own[cache.rows, cache.lengths - 1] = new.squeeze(1)
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

    With one beam, sentences of another cache may take the places of those that have ended (`fill`). From then on each
    sentence has a length of its own, which is also how many nodes it has.
    """

    def __init__(self, layers: list[LayerCache], num_beams: int, src_mask: Tensor | None) -> None:
        self.layers = layers
        self.src_mask = src_mask
        """(A, 1, 1, S), float: 0 where a source has a token, else -inf; None where all have."""
        self.length = 0
        """Steps so far; where lengths differ, of the sentence that has most."""
        self.lengths: Tensor | None = None
        """Steps of each sentence so far, (A,), int64; None while all have the same."""
        self.num_nodes = 0
        self.ancestors = None
        """(A, 1, W, nodes), float: 0 where the beam descends from the node or is it, else -inf; None where all do."""
        pool = layers[0].own
        self.rows = torch.arange(len(pool), device=pool.device)
        if num_beams > 1:
            own = torch.eye(num_beams, dtype=torch.bool, device=pool.device)
            self.own = _additive(own).expand(len(pool), 1, -1, -1)  # (A, 1, W, W)
            self.ancestors = self.own[..., :0]

    def advance(self, num_beams: int) -> None:
        """Count a step and make its nodes known to their beams."""
        if self.lengths is not None:
            self.lengths += 1
            self.length = self.num_nodes = int(self.lengths.max())
            nodes = torch.arange(self.num_nodes, device=self.rows.device)
            self.ancestors = _additive(nodes < self.lengths.view(-1, 1, 1, 1))
            return
        self.length += 1
        self.num_nodes += num_beams
        if self.ancestors is not None:
            self.ancestors = torch.cat([self.ancestors, self.own], 3)

    def fill(self, places: Tensor, other: "KVCache", start: int) -> None:
        """Begin with sentences of another cache, which has taken no step, in the places of others; one beam.

        Args:
            places: of the sentences that end, int64.
            start: as many sentences of the other begin, from this one on.
        """
        if self.lengths is None:
            self.lengths = torch.full_like(self.rows, self.length)
            for layer in self.layers:  # what will be masked must be a number too
                layer.own[:, self.num_nodes :] = 0.0
        self.lengths[places] = 0
        mask, new = self._whole_src_mask(), other._whole_src_mask()[start : start + len(places)]
        missing = new.size(3) - mask.size(3)
        mask = F.pad(mask, (0, max(0, missing)), value=-math.inf)
        mask[places] = F.pad(new, (0, max(0, -missing)), value=-math.inf)
        longest = int(mask.isfinite().any(0).nonzero().max()) + 1
        self.src_mask = mask[..., :longest]
        for layer, theirs in zip(self.layers, other.layers, strict=True):
            layer.cross.fill(places, theirs.cross, start, longest)

    def _whole_src_mask(self) -> Tensor:
        cross = self.layers[0].cross
        assert isinstance(cross, Cross)
        A, _, S, _ = cross.key.shape
        return cross.key.new_zeros(A, 1, 1, S) if self.src_mask is None else self.src_mask

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
        self.rows = self.rows[: moves.num]
        self.src_mask = None if self.src_mask is None else moves(self.src_mask)
        if self.lengths is not None:
            self.lengths = moves(self.lengths)
        elif self.ancestors is not None:
            self.ancestors, self.own = moves(self.ancestors), self.own[: moves.num]


def _additive(mask: Tensor) -> Tensor:
    """What added to the scores does the same as the mask."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -math.inf)
