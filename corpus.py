"""Rows of a bilingual corpus, or of several: read, cleaned, and in their splits."""

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import datasets
import numpy as np

import arrays
import origins
from arrays import Bools, Ints
from cleaning import RECORDS, Cleaner, Report, Scan, SplitReport, clean_training, drop, keep
from config import DataConfig
from held_out import carve
from row_cache import ROW_FEATURES, SPLIT_NAMES, Reader, Stream

# Of a stream, so many rows show what the corpus holds: they make the tokenizer and the splits that are missing.
SAMPLE_ROWS = 50_000
# Pairs of a stream that nobody has counted.
UNKNOWN_ROWS = 1_000_000


@dataclass(frozen=True)
class Mixture:
    """How several corpora are mixed."""

    names: tuple[str, ...]
    ends: tuple[int, ...]
    """Number of the last training row of each, in the numbers that the rows have."""
    shares: tuple[float, ...] | None
    """Of the training rows, for each corpus; None: every row counts once."""

    def bounds(self, numbers: Ints) -> list[int]:
        """Where each corpus ends among rows of these rising numbers."""
        return np.searchsorted(numbers, self.ends, "right").tolist()


class Splits(dict[str, datasets.Dataset]):
    """Split name → rows with the columns src (text, or bytes from cells.py), tgt and row (1-based in what was read).

    train, validation and test are always there and never empty; a corpus may bring others, for scoring alone.
    With --streaming, train holds a sample, the first rows.
    """

    def __init__(
        self,
        splits: dict[str, datasets.Dataset],
        report: Report,
        fingerprint: str,
        mixture: Mixture,
        cleaner: Cleaner,
        streams: Sequence[Stream],
    ) -> None:
        super().__init__(splits)
        self.report = report
        self.fingerprint = fingerprint
        """Changes whenever a side of a row of a split does, or the order of the rows; of what is streamed, whenever
        that of the sample or a `Stream.identity` does."""
        self.mixture, self.cleaner, self.streams = mixture, cleaner, streams

    @property
    def is_counted(self) -> bool:
        """Whether the number of training pairs is known, if only roughly; some streams of the Hub do not tell."""
        return all(stream.num_rows is not None for stream in self.streams)

    @property
    def num_pairs(self) -> int:
        """Training pairs; of a stream, about so many: as large a share of its rows as of the sample."""
        if not self.streams:
            return len(self["train"])
        sample = self.report["train"]
        return max(1, round(sum(map(_size, self.streams)) * sample.kept / sample.read))


def read_splits(config: DataConfig) -> Splits:
    """Read, check and split a corpus, or several as if they were one.

    Text of training rows comes out in NFC without outer white space. Rows are dropped when a side is missing or
    blank, when the lengths of two texts do not match, and when the same pair stands in another split or earlier
    in this one. The rows of the other splits stay as they are; only those without two sides are dropped.

    Raises:
        FileNotFoundError, ValueError: nothing there, no such column, not UTF-8, nothing left, …: in one line.
    """
    sources = _find_sources(config)
    if lacking := [name for name in config.dataset if name not in sources.get("train", {})]:
        there = [split for split, readers_of in sources.items() if lacking[0] in readers_of]
        raise ValueError(f"{lacking[0]} has no training split; it has: {', '.join(there)}")
    readers, streams = sources["train"].values(), []
    if config.streaming:
        streams = [reader.stream() for reader in readers]
        shares = _shares(config, _sizes(config, streams))
        counts = [max(1, round(share * SAMPLE_ROWS)) for share in shares or [1.0]]
        train = [_first_rows(stream, count) for stream, count in zip(streams, counts, strict=True)]
    else:
        train = [reader.read() for reader in readers]
        shares = _shares(config, [len(rows) for rows in train])
    ends = tuple(np.cumsum([len(rows) for rows in train]).tolist())
    others = {s: [reader.read() for reader in found.values()] for s, found in sources.items() if s != "train"}
    joined = {split: _joined(train if split == "train" else others[split]) for split in sources}
    return _split(joined, config, Mixture(config.dataset, ends, shares), streams)


def _sizes(config: DataConfig, streams: Sequence[Stream]) -> list[int]:
    """Rows of each stream; one of several that nobody has counted is refused where shares follow from them."""
    unknown = [name for name, s in zip(config.dataset, streams, strict=True) if s.num_rows is None]
    if unknown and len(streams) > 1 and config.weights is None:
        raise ValueError(
            f"{unknown[0]} does not say how many rows it has; give each corpus' share: --weights"
        )
    return list(map(_size, streams))


def _size(stream: Stream) -> int:
    return UNKNOWN_ROWS if stream.num_rows is None else stream.num_rows


def _split(
    parts: dict[str, datasets.Dataset],
    config: DataConfig,
    mixture: Mixture,
    streams: Sequence[Stream],
) -> Splits:
    """Check and split the rows of each split."""
    scans = {split: Scan(rows) for split, rows in parts.items()}
    train, report = scans["train"], Report()
    report["train"] = SplitReport(len(train.rows))
    others = {split: scan.rows.select(scan.two_sided) for split, scan in scans.items() if split != "train"}
    held_out = {split: scan.pair_hash[scan.two_sided] for split, scan in scans.items() if split != "train"}
    is_kept = clean_training(train, held_out, config.max_length_ratio, report["train"])
    missing = [split for split in ("validation", "test") if split not in scans]
    _require_sources(config.name, train.src_hash, is_kept, missing, report["train"])
    taken = carve(train.src_hash, is_kept, missing, config.data_seed)
    for split, positions in taken.items():
        others[split] = train.rows.select(positions)
        is_taken = np.zeros(len(is_kept), dtype=bool)
        is_taken[positions] = True
        drop(f"taken for {split}", is_taken, is_kept, report["train"])
    for split in ("validation", "test", *others):
        if split not in report:
            report[split] = SplitReport(len(others[split])) if split in taken else scans[split].report()
        if not len(others[split]):
            raise ValueError(f"the {split} split of {config.name} has no row with two sides")
    splits = {"train": keep(train.cleaned.select_columns(["src", "tgt", "row"]), is_kept), **others}
    sources = {split: train.src_hash[positions] for split, positions in taken.items()}
    cleaner = Cleaner(config.max_length_ratio, held_out, sources)
    ordered = {split: splits[split] for split in report}
    fingerprint = _fingerprint(scans, is_kept, taken, streams)
    return Splits(ordered, report, fingerprint, mixture, cleaner, streams)


def _fingerprint(
    scans: Mapping[str, Scan], is_kept: Bools, taken: Mapping[str, Ints], streams: Sequence[Stream]
) -> str:
    """Digest of the pairs that were read, and of those that are learned from or were taken for other splits."""
    digest = hashlib.blake2b(digest_size=16)
    for split, scan in scans.items():
        digest.update(split.encode())
        digest.update(scan.pair_hash.data)
    for part in chain(arrays.positions(is_kept), taken.values()):
        digest.update(part.astype(np.int32).data)
    if streams:
        digest = hashlib.blake2b(digest.hexdigest().encode(), digest_size=16)
        digest.update(" ".join(s.identity for s in streams).encode())
    return digest.hexdigest()


def read_split(config: DataConfig, split: str) -> tuple[datasets.Dataset, SplitReport]:
    """Every row of one split that has two sides, in order and unchanged, for scoring.

    Returns:
        Rows with the columns src, tgt and row, and what was left out. Of train, the rows that training keeps, cleaned
        (with --streaming, those of the sample). A split that training carves out of them is the same here.
    Raises:
        ValueError: no such split; the message lists those that there are.
    """
    sources = _find_sources(config)
    if split in sources and split != "train":
        scan = Scan(_joined([reader.read() for reader in sources[split].values()]))
        return scan.rows.select(scan.two_sided), scan.report()
    known = list(dict.fromkeys([*sources, *(SPLIT_NAMES if "train" in sources else ())]))
    if split not in known:
        raise ValueError(f"--split {split} is not in {config.name}; it has: {', '.join(known)}")
    splits = read_splits(config)
    return splits[split], splits.report[split]


def _find_sources(config: DataConfig) -> dict[str, dict[str, Reader]]:
    """Split name → name of each corpus that has it → what reads it."""
    sources: dict[str, dict[str, Reader]] = {}
    for name in config.dataset:
        one = replace(config, dataset=(name,), weights=None, temperature=None)
        if len(config.dataset) > 1 and (name.startswith("builtin:") or Path(name).is_file()):
            one = replace(one, dataset_config=None)  # it is for those of the Hub
        for split, reader in origins.find_splits(one).items():
            sources.setdefault(split, {})[name] = reader
    return sources


def _shares(config: DataConfig, sizes: Sequence[int]) -> tuple[float, ...] | None:
    """What each corpus gives of the rows; None where every row counts once."""
    if config.weights is None and config.temperature is None and not config.streaming:
        return None
    weights = config.weights or [size ** (1 / (config.temperature or 1.0)) for size in sizes]
    return tuple(weight / sum(weights) for weight in weights)


def _first_rows(stream: Stream, most: int) -> datasets.Dataset:
    """The first rows of a stream, in memory."""
    rows = list(islice(copy.deepcopy(stream.rows), most))
    if not rows:
        raise ValueError("the corpus has no row; give a file with at least one pair")
    return datasets.Dataset.from_list(
        [{**row, "row": number} for number, row in enumerate(rows, 1)], features=ROW_FEATURES
    )


def _joined(parts: Sequence[datasets.Dataset]) -> datasets.Dataset:
    """The rows of several corpora one after another, numbered through."""
    shifted, end = [], 0
    for rows in parts:
        if end and len(rows):
            shift = partial(_shifted, by=end)
            rows = rows.map(shift, batched=True, input_columns="row", features=rows.features, **RECORDS)
        shifted.append(rows)
        end += len(rows)
    return shifted[0] if len(shifted) == 1 else datasets.concatenate_datasets(shifted)


def _shifted(numbers: Sequence[int], by: int) -> dict[str, list[int]]:
    return {"row": [number + by for number in numbers]}


def _require_sources(
    name: str, hashes: Ints, is_kept: Bools, missing: Sequence[str], report: SplitReport
) -> None:
    different: set[int] = set()
    for positions in arrays.positions(is_kept):
        different.update(np.unique(hashes[positions]).tolist())
        if len(different) > len(missing):
            return
    reasons = ", ".join(f"{count} {reason}" for reason, (count, _) in report.dropped.items())
    purpose = f"train on and set aside for {' and '.join(missing)}" if missing else "train on"
    raise ValueError(
        f"{name}: of {report.read:,} rows, {len(different)} different source sentences are left, too few to"
        f" {purpose} (dropped: {reasons or 'none'})"
    )


def texts(rows: datasets.Dataset, sides: Sequence[str] = ("src", "tgt")) -> Iterator[str]:
    """These sides of every row, for training a tokenizer, without holding them together."""
    for batch in rows.select_columns(list(sides)).iter(1_000):
        for row in zip(*(batch[side] for side in sides), strict=True):
            yield from row
