"""A corpus larger than memory: rows come one after another, and become batches a block at a time.

A step's micro-batches come from lanes: lane k of n reads every n-th row of the stream (or every n-th of its files,
where `datasets` can share them out), so that any number of processes can share the lanes, and each row is one lane's.
A lane reads a block of rows, cleans and encodes them, and gives their batches in an order that seed and block fix. Its
position is where the block began and how many of its batches were given: a resumed run reads that block again.
"""

import copy
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import datasets
import numpy as np
from datasets.distributed import split_dataset_by_node

import distributed
from arrays import Ints
from checkpoint import TrainState
from cleaning import SplitReport
from config import DataConfig
from corpus import Mixture, Splits
from dataset import Batch, BatchSampler, Padding, Place, encode_split
from inputs import Ids, Input, Values
from row_cache import ROW_FEATURES, Stream
from strict_json import Json
from tokenizer import Tokenizer

# Rows of the sample from which the batches of an epoch are estimated.
PROBE_ROWS = 5_000


class CorpusReader:
    """The rows of one corpus that a lane reads, again and again."""

    def __init__(self, stream: Stream, lane: int, num_lanes: int, position: Json = None) -> None:
        """
        Args:
            position: what `position` gave; the beginning unless given.
        """
        self._stream = split_dataset_by_node(copy.deepcopy(stream.rows), rank=lane, world_size=num_lanes)
        saved = position if isinstance(position, dict) else {}
        self.passes = _count(saved, "passes")
        """How often it was read to its end."""
        self._open(saved.get("rows"))

    def _open(self, start: Json) -> None:
        self._rows, self._start = copy.deepcopy(self._stream), start
        if start is not None:
            self._rows.load_state_dict(copy.deepcopy(start))
        self._iterator = iter(self._rows)

    def position(self) -> dict[str, Json]:
        """Where it stands, small enough for a checkpoint."""
        return {"passes": self.passes, "rows": self._start}

    def take(self, most: int) -> list[dict[str, object]]:
        """The next rows, at most so many; none at the end, after which it begins again."""
        rows = list(islice(self._iterator, most))
        if rows:
            self._start = copy.deepcopy(self._rows.state_dict())
        else:
            self.passes += 1
            self._open(None)
        return rows


class LaneSettings(NamedTuple):
    """What every lane needs."""

    splits: Splits
    tokenizer: Tokenizer
    source: Input
    resegment: Callable[[Ids, int], list[int]] | None
    max_length: int
    block_rows: int
    """Rows that become batches together."""
    batch_tokens: int
    seed: int


class Lane:
    """One of the micro-batches of every step."""

    def __init__(self, settings: LaneSettings, number: int, num_lanes: int, position: Json = None) -> None:
        self._settings, self._number, self._num_lanes = settings, number, num_lanes
        saved = position if isinstance(position, dict) else {}
        self._block, self._given = _count(saved, "block"), _count(saved, "batch")
        corpora = saved.get("corpora")
        places = corpora if isinstance(corpora, list) else [None] * len(settings.splits.streams)
        self._corpora = [
            CorpusReader(stream, number, num_lanes, place)
            for stream, place in zip(settings.splits.streams, places, strict=True)
        ]
        counts = saved.get("report")
        self.report = _read_report(counts if isinstance(counts, dict) else {})
        """What became of the rows before this block."""
        self.position: dict[str, Json] = saved

    @property
    def epoch(self) -> int:
        """How often the corpus was read to its end; of several, the one that was so least often."""
        return min(corpus.passes for corpus in self._corpora)

    def batches(self) -> Iterator[Batch]:
        """One batch after another without end; `position` follows."""
        while True:
            places: list[Json] = [corpus.position() for corpus in self._corpora]
            before = _to_json(self.report)
            sampler = self._next_block()
            # With this number, no block of any lane has the random numbers of another.
            batches = sampler.epoch(self._block * self._num_lanes + self._number, start=self._given)
            for batch in batches:
                self._given += 1
                self.position = {
                    "block": self._block, "batch": self._given, "corpora": places, "report": before,
                    "read": _to_json(self.report),
                }  # fmt: skip
                yield batch
            self._block, self._given = self._block + 1, 0

    def _next_block(self) -> BatchSampler:
        """The next block that has a row worth learning from."""
        settings, first = self._settings, self.epoch
        while True:
            rows, passes, mixture = self._read()
            for stream in settings.splits.streams:
                stream.require_unchanged()
            if not len(rows):  # of a small block, every corpus' share may round to nothing
                self._block += 1
                continue
            block = SplitReport(len(rows))
            cleaned = settings.splits.cleaner.clean(rows, passes, block)
            encoded = encode_split(cleaned, settings.tokenizer, settings.max_length, block, settings.source)
            self.report = _sum(self.report, block)
            if len(encoded):
                return BatchSampler(
                    encoded,
                    settings.batch_tokens,
                    settings.seed,
                    settings.source,
                    settings.resegment,
                    mixture,
                )
            if self.epoch > first + 1:
                where = " + ".join(settings.splits.mixture.names)
                raise ValueError(f"{where}: no training row is left; raise --max-length or look at the table")

    def _read(self) -> tuple[datasets.Dataset, Ints, Mixture]:
        """The rows of a block, the pass that each is of, and which are of which corpus."""
        mixture = self._settings.splits.mixture
        assert mixture.shares is not None
        rows: list[dict[str, object]] = []
        passes: list[int] = []
        ends = []
        for corpus, share in zip(self._corpora, mixture.shares, strict=True):
            # Rounded over all blocks together: a small share must not come to nothing.
            sums = [
                round(block * share * self._settings.block_rows) for block in (self._block, self._block + 1)
            ]
            wanted, empty = sums[1] - sums[0], 0
            while wanted > 0:
                taken = corpus.take(wanted)
                rows += taken
                passes += [corpus.passes] * len(taken)
                wanted -= len(taken)
                empty = 0 if taken else empty + 1
                if empty > 1:
                    raise _too_few(" + ".join(mixture.names))
                if taken and len(self._corpora) == 1:
                    break  # a block ends where the corpus does
            ends.append(len(rows))
        numbered = {name: [row[name] for row in rows] for name in ("src", "tgt")} | {
            "row": list(range(1, len(rows) + 1))
        }
        table = datasets.Dataset.from_dict(numbered, features=ROW_FEATURES)
        return table, np.array(passes, np.int64), Mixture(mixture.names, tuple(ends), None)


def _too_few(name: str) -> ValueError:
    advice = "leave --streaming out, or lower --accumulate"
    return ValueError(f"{name} has too few rows to be shared out; {advice}")


class StreamSampler:
    """The micro-batches of one step after another, from a stream: what BatchSampler is for a corpus on disk."""

    def __init__(
        self,
        settings: LaneSettings,
        num_lanes: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """
        Args:
            num_lanes: micro-batches of a step, all processes together.
            rank: of this process among world_size: it gives the micro-batches rank, rank + world_size, …
        """
        if num_lanes < world_size:
            raise ValueError(
                f"--accumulate must be at least the number of processes, {world_size}, got {num_lanes}"
            )
        datasets.disable_progress_bars()
        for name, stream in zip(settings.splits.mixture.names, settings.splits.streams, strict=True):
            if sum(1 for _ in islice(copy.deepcopy(stream.rows), num_lanes)) < num_lanes:
                raise _too_few(name)
        self._settings, self._num_lanes = settings, num_lanes
        self._own = range(rank, num_lanes, world_size)
        self.num_pairs = settings.splits.num_pairs
        sample = settings.splits["train"].select(range(min(PROBE_ROWS, len(settings.splits["train"]))))
        rows = encode_split(sample, settings.tokenizer, settings.max_length, SplitReport(0), settings.source)
        self._probe = BatchSampler(rows, settings.batch_tokens, settings.seed, settings.source)

    def steps(self, place: Place) -> Iterator[list[Batch]]:
        """This process's micro-batches of each step, without end; moves `place` on as they are handed out."""
        lanes = {k: Lane(self._settings, k, self._num_lanes, place.stream.get(str(k))) for k in self._own}
        batches = [lane.batches() for lane in lanes.values()]
        while True:
            group = [next(of_lane) for of_lane in batches]
            place.stream |= {str(k): lane.position for k, lane in lanes.items()}
            place.epoch = min(lane.epoch for lane in lanes.values())
            yield group

    def num_batches(self, epoch: int) -> int:
        """About so many batches has an epoch."""
        return max(1, round(self._probe.num_batches(0) * self.num_pairs / self._probe.num_pairs))

    def padding(self, epoch: int) -> Padding:
        """Padding share of source and target positions in the first rows."""
        return self._probe.padding(0)

    def sources(self, most: int) -> list[Values]:
        """What is stored of the source sides of at most so many of the first rows."""
        return self._probe.sources(most)


def gather_positions(state: TrainState) -> None:
    """Bring the positions of the lanes of all processes together in `state`; all of them have to ask."""
    rank, world_size = distributed.rank(), distributed.world_size()
    own = {lane: position for lane, position in state.stream.items() if int(lane) % world_size == rank}
    for part in distributed.gathered(own):
        state.stream |= part


def describe(splits: Splits, config: DataConfig) -> list[str]:
    """What is different with --streaming, for the log."""
    sample, carved = len(splits["train"]), list(splits.cleaner.sources)
    number = f"about {splits.num_pairs:,} rows"
    if not splits.is_counted:
        number = f"rows, assumed to be {splits.num_pairs:,} since the corpus does not say how many"
    lines = [
        f"streaming {number}: cleaned, shuffled and cut into batches {config.buffer:,} at a time (--buffer), in"
        " a part for each micro-batch of a step; a duplicate in another part is not found",
        f"the table counts the first rows; the tokenizer is learned from the {sample:,} of them that are kept",
    ]
    if carved:
        lines.append(f"{' and '.join(carved)}: from the first rows, and never learned from")
    return lines


def rows_read(state: TrainState) -> SplitReport:
    """What became of the rows of all blocks so far."""
    total = SplitReport(0)
    for position in state.stream.values():
        report = position.get("read") if isinstance(position, dict) else None
        total = _sum(total, _read_report(report if isinstance(report, dict) else {}))
    return total


def _sum(a: SplitReport, b: SplitReport) -> SplitReport:
    reasons = [*a.dropped, *(reason for reason in b.dropped if reason not in a.dropped)]
    none: tuple[int, list[int]] = (0, [])
    counts = {reason: a.dropped.get(reason, none)[0] + b.dropped.get(reason, none)[0] for reason in reasons}
    return SplitReport(a.read + b.read, {reason: (count, []) for reason, count in counts.items()})


def _to_json(report: SplitReport) -> dict[str, Json]:
    return {"read": report.read, **{reason: count for reason, (count, _) in report.dropped.items()}}


def _read_report(counts: dict[str, Json]) -> SplitReport:
    numbers = {reason: count for reason, count in counts.items() if isinstance(count, int)}
    return SplitReport(numbers.pop("read", 0), {reason: (count, []) for reason, count in numbers.items()})


def _count(position: dict[str, Json], name: str) -> int:
    value = position.get(name)
    return value if isinstance(value, int) and value >= 0 else 0
