"""Rows to what is stored of them, and that to batches: padding, masks, buckets, order."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import arrays
import runtime
from arrays import Bools, Ints
from inputs import Ids, Input, Source, TextInput, Values, closed, lengths_of, pad_source, padded
from strict_json import Json
from tokenizer import BOS_ID, PAD_ID, Tokenizer

if TYPE_CHECKING:
    # Importing these takes a second, and translating needs only `causal_mask`.
    import datasets
    import pyarrow as pa

    from cleaning import SplitReport
    from corpus import Mixture

# What makes ids, strips and frames of rows, by name: importing them all would load Pillow for text, too.
ENCODERS = ("dataset.py", "tokenizer.py", "inputs.py", "pictures.py", "render.py", "sources.py", "cells.py")
# A batch whose targets are far shorter than its sources stays below this many source tokens per target token.
MAX_SOURCE_SHARE = 4


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """True where a target position may look: at itself and before. (1, 1, T, T), bool."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


@dataclass(frozen=True)
class Batch:
    """Pairs, padded: what the model reads, what it should say, and where it may look."""

    src: Tensor
    """What the model's src_embed takes: ids (B, S), int64, closed by EOS, or strips or frames, see inputs.py."""
    src_mask: Tensor
    """(B, 1, 1, S), bool, True on real tokens."""
    tgt_in: Tensor
    """(B, T), int64, opened by BOS."""
    tgt_out: Tensor
    """(B, T), int64, closed by EOS: position t is what should follow tgt_in[:, : t + 1]."""
    tgt_mask: Tensor
    """(B, 1, T, T), bool, causal and without padding; each row sees at least BOS."""
    num_tokens: int
    """Real target tokens, EOS counted: what the loss is divided by."""
    of_corpora: tuple[int, ...] = ()
    """Those of each corpus, where there are several; before BPE-dropout."""

    @classmethod
    def from_pairs(cls, src_ids: Sequence[Ids], tgt_ids: Sequence[Ids]) -> Batch:
        """Shift, pad and mask B pairs of token id lists without special ids."""
        if len(src_ids) != len(tgt_ids) or not src_ids:
            raise ValueError(
                f"a batch needs as many sources as targets, got {len(src_ids)} and {len(tgt_ids)}"
            )
        return cls.from_source(*pad_source(src_ids), tgt_ids)

    @classmethod
    def from_source(cls, src: Tensor, src_mask: Tensor, tgt_ids: Sequence[Ids]) -> Batch:
        """The same for B sources of any kind that are padded already."""
        lengths = lengths_of(tgt_ids)
        rows = padded(tgt_ids, lengths)
        opened = np.roll(rows, 1, axis=1)  # the last column is padding in every row
        opened[:, 0] = BOS_ID
        tgt_in, tgt_out = torch.from_numpy(opened), torch.from_numpy(closed(rows, lengths))
        tgt_mask = causal_mask(tgt_in.size(1)) & (tgt_in != PAD_ID)[:, None, None, :]  # (B, 1, T, T)
        return cls(src, src_mask, tgt_in, tgt_out, tgt_mask, int(lengths.sum()) + len(lengths))

    def silenced(self) -> Batch:
        """The same batch with nothing to say: its loss and its gradients are zero."""
        silence = torch.full_like(self.tgt_out, PAD_ID)
        return replace(self, tgt_out=silence, num_tokens=0, of_corpora=(0,) * len(self.of_corpora))

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        tensors = (self.src, self.src_mask, self.tgt_in, self.tgt_out, self.tgt_mask)
        src, src_mask, tgt_in, tgt_out, tgt_mask = (t.to(device, non_blocking=True) for t in tensors)
        return Batch(src, src_mask, tgt_in, tgt_out, tgt_mask, self.num_tokens, self.of_corpora)


def encode_split(
    rows: datasets.Dataset,
    tokenizer: Tokenizer,
    max_length: int,
    report: SplitReport,
    source: Input | None = None,
) -> datasets.Dataset:
    """What training rows are stored as, in their order: made once, memory-mapped ever after.

    Args:
        rows: columns src, tgt and row.
        max_length: most tokens on a side, EOS counted; longer rows are left out.
        report: where the rows left out are counted as "too long".
        source: of the source side; text unless given.
    Returns:
        Columns src (lists of values, see inputs.py), src_length (tokens, EOS counted), tgt_ids (int32 lists without
        special ids) and row.
    """
    import datasets

    source = source or TextInput(tokenizer)
    is_text = arrays.has_text(rows)
    num_together = arrays.ROWS if is_text else arrays.LARGE_ROWS
    features = _stored(source.arrow_type(is_text))
    if not len(rows):
        return datasets.Dataset.from_dict({name: [] for name in features}, features=features)

    def encode(batch: dict[str, list[str]]) -> dict[str, list[object]]:
        numbers = cast(list[int], batch["row"])
        values = _encode_sources(source, batch["src"], numbers, "train")
        lengths = [source.length(row) for row in values]
        items = zip(values, lengths, tokenizer.encode_batch(batch["tgt"]), numbers, strict=True)
        kept = [item for item in items if max(item[1], len(item[2]) + 1) <= max_length]
        return {name: [item[i] for item in kept] for i, name in enumerate(features)}

    encoded = rows.map(
        encode,
        batched=True,
        batch_size=num_together,
        writer_batch_size=num_together,
        remove_columns=rows.column_names,
        features=features,
        new_fingerprint=_fingerprint(rows, tokenizer, max_length, source),
    )
    if len(encoded) < len(rows):
        report.drop("too long", _lost_rows(rows, encoded))
    return encoded


def _stored(arrow_type: str) -> datasets.Features:
    """The columns that `encode_split` returns."""
    import datasets

    return datasets.Features(
        src=datasets.List(datasets.Value(arrow_type)),
        src_length=datasets.Value("int32"),
        tgt_ids=datasets.List(datasets.Value("int32")),
        row=datasets.Value("int64"),
    )


def _fingerprint(rows: datasets.Dataset, tokenizer: Tokenizer, max_length: int, source: Input) -> str:
    """What encoded rows depend on, as their name in the cache."""
    # Hashing the function, as `map` does, would pickle the tokenizer, which need not give the same bytes twice.
    code = runtime.code_digest(*map(Path(__file__).with_name, ENCODERS))
    key = f"{rows._fingerprint} {code} {tokenizer.digest} {max_length} {source.digest}"
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def check_sources(rows: datasets.Dataset, source: Input, split: str, longest: int | None) -> None:
    """Before training rather than after it: see that every source of a split can be read.

    Args:
        longest: most tokens of a source, where the model has an end to its positions.
    Raises:
        ValueError: one cannot; its row is named.
    """
    if arrays.has_text(rows):
        return
    for batch in rows.select_columns(["src", "row"]).iter(arrays.LARGE_ROWS):
        encoded = _encode_sources(source, batch["src"], batch["row"], split)
        for row, values in zip(batch["row"], encoded, strict=True):
            if longest is not None and source.length(values) > longest:
                given = (
                    f"{source.length(values)} tokens, but --max-length is {longest} and positions are learned"
                )
                raise ValueError(f"{split}, row {row:,}: {given}; cut it, or raise --max-length")


def _encode_sources(source: Input, cells: Sequence[Source], rows: Sequence[int], split: str) -> list[Values]:
    if not cells or isinstance(cells[0], str):
        return source.encode(cells)
    encoded = []
    for cell, row in zip(cells, rows, strict=True):
        try:
            encoded += source.encode([cell])
        except ValueError as error:
            raise ValueError(f"{split}, row {row:,}: {error}") from None
    return encoded


class Padding(NamedTuple):
    """Share of positions that hold padding, 0 to 1."""

    src: float
    tgt: float


class Place(Protocol):
    """Where a run stands among its batches; checkpoint.TrainState is one."""

    epoch: int
    batch: int
    """Micro-batches of this epoch done, all ranks together."""
    stream: dict[str, Json]
    """Of a stream, the position of each lane (see streaming.py)."""


class Sampler(Protocol):
    """The micro-batches of a rank: from a corpus on disk (BatchSampler) or from a stream (streaming.StreamSampler)."""

    @property
    def num_pairs(self) -> int:
        """Training rows; of a stream, about so many."""

    def steps(self, place: Place) -> Iterator[list[Batch]]:
        """This rank's micro-batches of each step, without end; moves `place` on as they are handed out."""

    def num_batches(self, epoch: int) -> int:
        """Micro-batches in an epoch, all ranks together; epochs differ a little."""

    def padding(self, epoch: int) -> Padding:
        """Padding share of the source and target positions of an epoch."""

    def sources(self, most: int) -> list[Values]:
        """What is stored of the source sides of at most so many rows, at even distances."""


class BatchSampler:
    """Batches of similar lengths, in an order that seed and epoch fix."""

    def __init__(
        self,
        rows: datasets.Dataset,
        batch_tokens: int,
        seed: int,
        source: Input | None = None,
        resegment: Callable[[Ids, int], list[int]] | None = None,
        mixture: Mixture | None = None,
        accumulate: int = 1,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """
        Args:
            rows: from `encode_split`; read from the memory map, batch by batch.
            batch_tokens: most real target tokens in a batch, EOS counted; a longer row is a batch of its own.
            source: pads the source side, and varies it as it likes; token ids as they are unless given.
            resegment: cuts a row's target ids anew, given a seed of its own for each row and epoch (BPE-dropout);
                batches then hold a little more than batch_tokens.
            mixture: which rows are of which corpus, and the share that each has in an epoch, which has as many
                rows as there are; every row of a corpus comes once before any comes again.
            accumulate: batches of a step, all ranks together.
            rank: of this process among world_size: of a step it gives the batches rank, rank + world_size, …
        """
        if not len(rows):
            raise ValueError(
                "no training row is left; raise --max-length or look at the table of dropped rows"
            )
        if rows._indices is not None:
            rows = rows.flatten_indices()
        self._src, self._tgt = _Ragged(rows.data.column("src")), _Ragged(rows.data.column("tgt_ids"))
        self._src_lengths = arrays.of_column(rows.data.column("src_length"), np.int32)
        self._tgt_lengths = self._tgt.sizes()
        self._tgt_lengths += 1  # EOS
        self._batch_tokens, self._seed, self._source, self._resegment = batch_tokens, seed, source, resegment
        self._accumulate, self._rank, self._world_size = accumulate, rank, world_size
        self._plan: tuple[int, Ints, Ints] | None = None
        self._shares = mixture.shares if mixture is not None else None
        self._corpora = _corpora_of(mixture, rows) if mixture is not None else []

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Each row once, or as often as its corpus' share says, from batch `start` on.

        The same seed and epoch give the same batches.
        """
        for number in range(start, self.num_batches(epoch)):
            yield self._batch(epoch, number)

    def steps(self, place: Place) -> Iterator[list[Batch]]:
        """This rank's batches of each step, without end; moves `place` on as they are handed out.

        Each rank makes no batches but its own; together they are those that a single rank has. The last step of an
        epoch may have fewer of them than ranks: one without gets a batch that counts for nothing.
        """
        while True:
            epoch, num_batches = place.epoch, self.num_batches(place.epoch)
            for first in range(place.batch, num_batches, self._accumulate):
                numbers = range(first, min(first + self._accumulate, num_batches))
                mine = [self._batch(epoch, number) for number in numbers[self._rank :: self._world_size]]
                mine = mine or [self._batch(epoch, first).silenced()]
                place.batch += len(numbers)
                yield mine
            place.epoch, place.batch = place.epoch + 1, 0

    def _batch(self, epoch: int, number: int) -> Batch:
        order, bounds = self._planned(epoch)
        first, last = bounds[number]
        chosen = order[first:last]
        rng = np.random.default_rng([self._seed, epoch, int(first)])
        values, tgt_ids = self._src.take(chosen), cast(list[Ids], self._tgt.take(chosen))
        src = self._source.pad(values, rng) if self._source else pad_source(cast(list[Ids], values))
        if self._resegment is not None:
            tgt_ids = [self._resegment(ids, int(rng.integers(2**32))) for ids in tgt_ids]
        return replace(Batch.from_source(*src, tgt_ids), of_corpora=self._tokens_of(chosen))

    def _tokens_of(self, rows: Ints) -> tuple[int, ...]:
        """Target tokens of these rows by corpus; empty where there is one."""
        if not self._corpora:
            return ()
        corpus = np.searchsorted([last for _, last in self._corpora], rows, "right")
        sums = np.bincount(corpus, self._tgt_lengths[rows], len(self._corpora))
        return tuple(sums.astype(int).tolist())

    @property
    def num_pairs(self) -> int:
        """Rows there are."""
        return len(self._src_lengths)

    def num_batches(self, epoch: int) -> int:
        """Batches in an epoch; epochs differ a little."""
        return len(self._planned(epoch)[1])

    def sources(self, most: int) -> list[Values]:
        """What is stored of the source sides of at most so many rows, at even distances."""
        num = min(most, len(self._src_lengths))
        return self._src.take(np.arange(num) * len(self._src_lengths) // num)

    def padding(self, epoch: int) -> Padding:
        """Padding share of the source and target positions of an epoch."""
        order, bounds = self._planned(epoch)
        shares = []
        for side in (self._src_lengths, self._tgt_lengths):
            lengths = arrays.taken(side, order)
            # Batches lie back to back in `order`, so each one's longest row comes from one reduction.
            firsts: npt.NDArray[np.int64] = np.sort(bounds[:, 0])
            rows = np.diff(np.append(firsts, len(order)))
            shares.append(1 - lengths.sum() / (np.maximum.reduceat(lengths, firsts) * rows).sum())
        return Padding(*map(float, shares))

    def _planned(self, epoch: int) -> tuple[Ints, Ints]:
        if self._plan is None or self._plan[0] != epoch:
            self._plan = (epoch, *self._make_plan(epoch))
        return self._plan[1:]

    def _make_plan(self, epoch: int) -> tuple[Ints, Ints]:
        """Row order (N,), and first and past-the-last position of each batch in it (batches, 2), shuffled."""
        rng = np.random.default_rng([self._seed, epoch])
        src, tgt = self._src_lengths, self._tgt_lengths
        drawn = self._drawn(epoch)
        if drawn is not None:
            src, tgt = arrays.taken(src, drawn), arrays.taken(tgt, drawn)
        # Targets of one length together, sources rising in one target length and falling in the next, so that
        # a batch across the border holds no extremes. Rows of equal lengths are mixed anew in every epoch.
        # All in one key: sorting by three takes several times the memory.
        key = arrays.filled(len(src), np.int64, lambda block: rng.integers(1 << 20, size=len(src[block])))
        parity = rng.integers(2)
        for block in arrays.blocks(len(key)):
            s, t = src[block].astype(np.int64), tgt[block].astype(np.int64)
            key[block] += (t << 40) + (np.where((t + parity) % 2, s, (1 << 20) - s) << 20)
        order = arrays.argsort(key)
        del key
        sides = ((tgt, self._batch_tokens), (src, MAX_SOURCE_SHARE * self._batch_tokens))
        sums = [(_running_sum(lengths, order), limit) for lengths, limit in sides]
        bounds, first = array("q"), 0
        while first < len(order):
            before = [total[first - 1] if first else 0 for total, _ in sums]
            lasts = [
                np.searchsorted(t, n + limit, "right") for (t, limit), n in zip(sums, before, strict=True)
            ]
            bounds.extend((first, max(first + 1, int(min(lasts)))))
            first = bounds[-1]
        if drawn is not None:
            order = arrays.taken(drawn, order)
        return order, rng.permutation(np.frombuffer(bounds, np.int64).reshape(-1, 2))

    def _drawn(self, epoch: int) -> npt.NDArray[np.int32] | None:
        """Rows of an epoch in which corpora have shares; None where every row comes once."""
        if self._shares is None or not self._corpora:
            return None
        sizes = [last - first for first, last in self._corpora]
        quotas = [max(1, round(share * len(self._src_lengths))) for share in self._shares]
        drawn, filled = arrays.empty(sum(quotas), np.int32), 0
        for i, ((first, _), size, quota) in enumerate(zip(self._corpora, sizes, quotas, strict=True)):
            # A corpus goes on in the next epoch where this one leaves it, each time through in another order.
            start, end = epoch * quota, (epoch + 1) * quota
            for turn in range(start // size, (end - 1) // size + 1):
                order = arrays.filled(size, np.int32, lambda block: np.arange(block.start, block.stop))
                np.random.default_rng([self._seed, i, turn]).shuffle(order)
                part = order[max(0, start - turn * size) : end - turn * size]
                np.add(part, first, out=drawn[filled : filled + len(part)])
                filled += len(part)
        return drawn


def _running_sum(lengths: Ints, order: Ints) -> npt.NDArray[np.int64]:
    """np.cumsum(lengths[order])"""
    sums, before = arrays.empty(len(order), np.int64), 0
    for block in arrays.blocks(len(order)):
        sums[block] = before + np.cumsum(lengths[order[block]], dtype=np.int64)
        before = sums[block.stop - 1]
    return sums


def _corpora_of(mixture: Mixture, rows: datasets.Dataset) -> list[tuple[int, int]]:
    """First and past-the-last row of each corpus, where there are several."""
    if len(mixture.names) == 1:
        return []
    corpora = list(pairwise([0, *mixture.bounds(arrays.of_column(rows.data.column("row"), np.int64))]))
    for name, (first, last) in zip(mixture.names, corpora, strict=True):
        if first == last and mixture.shares is not None:
            raise ValueError(f"no training row of {name} is left; leave it out of --dataset")
    return corpora


class _Ragged:
    """A column of lists, read straight from the memory map."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._offsets = [chunk.offsets.to_numpy() for chunk in column.chunks]
        self._values = [chunk.values.to_numpy() for chunk in column.chunks]
        self._firsts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])

    def sizes(self) -> npt.NDArray[np.int32]:
        """Length of each list."""
        sizes = arrays.empty(int(self._firsts[-1]), np.int32)
        for (first, last), offsets in zip(pairwise(self._firsts), self._offsets, strict=True):
            np.subtract(offsets[1:], offsets[:-1], out=sizes[first:last])
        return sizes

    def take(self, indices: Ints) -> list[Values]:
        """Views of the lists at these positions."""
        chunks = np.searchsorted(self._firsts, indices, "right") - 1
        inner = indices - self._firsts[chunks]
        views = []
        for chunk, i in zip(chunks.tolist(), inner.tolist(), strict=True):
            offsets = self._offsets[chunk]
            views.append(self._values[chunk][offsets[i] : offsets[i + 1]])
        return views


def _lost_rows(before: datasets.Dataset, after: datasets.Dataset) -> Bools:
    """For each number of a row, from 1 on, whether only the first has it."""
    lost = np.zeros(1, dtype=bool)
    for rows, is_lost in ((before, True), (after, False)):
        for batch in rows.with_format("numpy", columns=["row"]).iter(100_000):
            lost = np.pad(lost, (0, max(0, int(batch["row"].max()) + 1 - len(lost))))
            lost[batch["row"]] = is_lost
    return lost[1:]
