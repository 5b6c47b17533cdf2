"""Rows of a bilingual corpus: where they are read from, which are kept, and in which split they are."""

import copy
import hashlib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import datasets
import numpy as np
import numpy.typing as npt

import origins
import readers
from config import DataConfig, Json

Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]

SCAN_FEATURES = datasets.Features(
    **origins.ROW_FEATURES,
    reason=datasets.Value("int8"),
    ratio=datasets.Value("float32"),
    src_hash=datasets.Value("int64"),
    pair_hash=datasets.Value("int64"),
)
# Pictures and arrays are neither cleaned nor copied.
BINARY_SCAN_FEATURES = datasets.Features({k: v for k, v in SCAN_FEATURES.items() if k != "src"})
REASONS = ("", "missing", "empty", "one-sided")
# Pairs shorter than this many characters on both sides may have any ratio, like "Hi!" and "Guten Morgen!".
RATIO_MIN_CHARS = 20
# Carved splits: this share of the training rows, at most so many.
CARVED_SHARE, CARVED_MAX = 0.05, 1_000
FIRST_ROWS = 5
# Of a stream, so many rows show what the corpus holds: they make the tokenizer and the splits that are missing.
SAMPLE_ROWS = 50_000
# Sets apart the hashes of different passes; an odd number near 2^63 divided by the golden ratio.
SALT = np.int64(0x4F1BBCDCBFA53E0B)
# Pairs of a stream that nobody has counted.
UNKNOWN_ROWS = 1_000_000


@dataclass
class SplitReport:
    """What became of the rows of one split."""

    read: int
    dropped: dict[str, tuple[int, list[int]]] = field(default_factory=dict)
    """Reason → how many, and the numbers of the first rows."""

    @property
    def kept(self) -> int:
        """Rows that were not dropped."""
        return self.read - sum(count for count, _ in self.dropped.values())

    def drop(self, reason: str, rows: Ints) -> None:
        """Count the rows with these numbers (1-based) as dropped."""
        if len(rows):
            self.dropped[reason] = (len(rows), np.sort(rows)[:FIRST_ROWS].tolist())


class Report(dict[str, SplitReport]):
    """Split → what became of its rows; `str` gives the table that is shown before training."""

    def __str__(self) -> str:
        lines = [f"{'split':<14}{'read':>12}{'kept':>12}{'dropped':>12}  reason (first rows)"]
        for split, report in self.items():
            head = f"{split:<14}{report.read:>12,}{report.kept:>12,}"
            for reason, (count, rows) in report.dropped.items() or [("", (0, []))]:
                numbers = ", ".join(map(str, rows)) + (", …" if count > len(rows) else "")
                lines.append(f"{head:<38}{count:>12,}  {reason}{f' ({numbers})' if rows else ''}".rstrip())
                head = ""
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """The same for a file."""
        return {
            split: {
                "read": report.read,
                "kept": report.kept,
                "dropped": {
                    reason: {"count": count, "first_rows": list[Json](rows)}
                    for reason, (count, rows) in report.dropped.items()
                },
            }
            for split, report in self.items()
        }


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
        cleaner: "Cleaner",
        streams: Sequence[origins.Stream] = (),
    ) -> None:
        super().__init__(splits)
        self.report = report
        self.fingerprint = fingerprint
        """Changes whenever a side of a row of a split does, or the order of the rows."""
        self.mixture, self.cleaner, self.streams = mixture, cleaner, streams

    @property
    def is_counted(self) -> bool:
        """Whether the number of training pairs is known, if only roughly; some streams of the Hub do not tell."""
        return all(stream.num_rows is not None for stream in self.streams)

    @property
    def num_pairs(self) -> int:
        """Training pairs; of a stream, about so many."""
        counts = [UNKNOWN_ROWS if s.num_rows is None else s.num_rows for s in self.streams]
        return max(1, sum(counts)) if counts else len(self["train"])


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
    streams = [reader.stream() for reader in sources["train"].values()] if config.streaming else []
    unknown = [name for name, stream in zip(config.dataset, streams, strict=False) if stream.num_rows is None]
    if unknown and len(streams) > 1 and config.weights is None:
        raise ValueError(
            f"{unknown[0]} does not say how many rows it has; give each corpus' share: --weights"
        )
    shares = _shares(config, [s.num_rows or UNKNOWN_ROWS for s in streams]) if streams else None
    parts = {
        split: [reader() for reader in of_corpora.values()]
        for split, of_corpora in sources.items()
        if split != "train" or not streams
    }
    if streams:
        counts = [max(1, round(share * SAMPLE_ROWS)) for share in shares or [1.0]]
        parts["train"] = [_first_rows(s, count) for s, count in zip(streams, counts, strict=True)]
    ends = tuple(np.cumsum([len(rows) for rows in parts["train"]]).tolist())
    shares = shares or _shares(config, [len(rows) for rows in parts["train"]])
    splits = _split({split: _joined(rows) for split, rows in parts.items()}, config)
    splits.mixture = Mixture(config.dataset, ends, shares)
    splits.streams = streams
    if streams:
        digest = hashlib.blake2b(splits.fingerprint.encode(), digest_size=16)
        digest.update(" ".join(s.identity for s in streams).encode())
        splits.fingerprint = digest.hexdigest()
    return splits


def _split(parts: dict[str, datasets.Dataset], config: DataConfig) -> Splits:
    """Check and split the rows of each split."""
    scans = {split: _Scan(rows) for split, rows in parts.items()}
    train, report = scans["train"], Report()
    report["train"] = SplitReport(len(train.rows))
    others = {split: scan.rows.select(scan.two_sided) for split, scan in scans.items() if split != "train"}
    held_out = {split: scan.pair_hash[scan.two_sided] for split, scan in scans.items() if split != "train"}
    kept = _clean_training(train, held_out, config.max_length_ratio, report["train"])
    missing = [split for split in ("validation", "test") if split not in scans]
    _require_sources(config.name, train.src_hash[kept], missing, report["train"])
    carved = _carve(train.src_hash[kept], missing, config.data_seed)
    taken = {split: kept[positions] for split, positions in carved.items()}
    for split, positions in taken.items():
        others[split] = train.rows.select(positions)
        report["train"].drop(f"taken for {split}", positions + 1)
        kept = kept[~_is_in(kept, positions)]
    for split in ("validation", "test", *others):
        if split not in report:
            report[split] = SplitReport(len(others[split])) if split in taken else scans[split].report()
        if not len(others[split]):
            raise ValueError(f"the {split} split of {config.name} has no row with two sides")
    digest = hashlib.blake2b(digest_size=16)
    for split, scan in scans.items():
        digest.update(split.encode())
        digest.update(scan.pair_hash.data)
    for positions in (kept, *taken.values()):
        digest.update(positions.data)
    splits = {"train": _keep(train.cleaned.select_columns(["src", "tgt", "row"]), kept), **others}
    sources = {split: train.src_hash[positions] for split, positions in taken.items()}
    cleaner = Cleaner(config.max_length_ratio, held_out, sources)
    mixture = Mixture(config.dataset, (len(train.rows),), None)
    return Splits({split: splits[split] for split in report}, report, digest.hexdigest(), mixture, cleaner)


def read_split(config: DataConfig, split: str) -> tuple[datasets.Dataset, SplitReport]:
    """Every row of one split that has two sides, in order and unchanged, for scoring.

    Returns:
        Rows with the columns src, tgt and row, and what was left out. A split that training carves out of the
        training rows is the same here.
    Raises:
        ValueError: no such split; the message lists those that there are.
    """
    sources = _find_sources(config)
    if split in sources and split != "train":
        scan = _Scan(_joined([reader() for reader in sources[split].values()]))
        return scan.rows.select(scan.two_sided), scan.report()
    known = list(dict.fromkeys([*sources, *(origins.SPLIT_NAMES if "train" in sources else ())]))
    if split not in known:
        raise ValueError(f"--split {split} is not in {config.name}; it has: {', '.join(known)}")
    splits = read_splits(config)
    return splits[split], splits.report[split]


def _find_sources(config: DataConfig) -> dict[str, dict[str, origins.Reader]]:
    """Split name → name of each corpus that has it → what reads it."""
    sources: dict[str, dict[str, origins.Reader]] = {}
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


def _first_rows(stream: origins.Stream, most: int) -> datasets.Dataset:
    """The first rows of a stream, in memory."""
    rows = list(islice(copy.deepcopy(stream.rows), most))
    if not rows:
        raise ValueError("the corpus has no row; give a file with at least one pair")
    return datasets.Dataset.from_list(
        [{**row, "row": number} for number, row in enumerate(rows, 1)], features=origins.ROW_FEATURES
    )


def _joined(parts: Sequence[datasets.Dataset]) -> datasets.Dataset:
    """The rows of several corpora one after another, numbered through."""
    shifted, end = [], 0
    for rows in parts:
        if end and len(rows):
            shift = partial(_shifted, by=end)
            rows = rows.map(shift, batched=True, input_columns="row", features=rows.features)
        shifted.append(rows)
        end += len(rows)
    return shifted[0] if len(shifted) == 1 else datasets.concatenate_datasets(shifted)


def _shifted(numbers: Sequence[int], by: int) -> dict[str, list[int]]:
    return {"row": [number + by for number in numbers]}


def texts(rows: datasets.Dataset, sides: Sequence[str] = ("src", "tgt")) -> Iterator[str]:
    """These sides of every row, for training a tokenizer, without holding them together."""
    for batch in rows.select_columns(list(sides)).iter(1_000):
        for row in zip(*(batch[side] for side in sides), strict=True):
            yield from row


def _require_sources(name: str, hashes: Ints, missing: Sequence[str], report: SplitReport) -> None:
    num_sources = len(hashes) - int(_is_repeated(hashes).sum())
    if num_sources <= len(missing):
        reasons = ", ".join(f"{count} {reason}" for reason, (count, _) in report.dropped.items())
        purpose = f"train on and set aside for {' and '.join(missing)}" if missing else "train on"
        raise ValueError(
            f"{name}: of {report.read:,} rows, {num_sources} different source sentences are left, too few to"
            f" {purpose} (dropped: {reasons or 'none'})"
        )


class _Scan:
    """One split as read, with what cleaning needs to know of each row as arrays."""

    def __init__(self, rows: datasets.Dataset) -> None:
        self.rows = rows
        # map leaves an empty dataset without the new columns.
        self.cleaned = _scanned(rows) if len(rows) else rows
        self.reason, self.ratio, self.src_hash, self.pair_hash = (
            self.cleaned.data.column(name).to_numpy() if len(rows) else np.zeros(0, dtype)
            for name, dtype in (("reason", "i1"), ("ratio", "f4"), ("src_hash", "i8"), ("pair_hash", "i8"))
        )
        self.two_sided = np.flatnonzero(self.reason == 0).astype(np.int32)

    def report(self) -> SplitReport:
        """The rows that have no two sides, by reason."""
        report = SplitReport(len(self.rows))
        for code, reason in enumerate(REASONS):
            if code:
                report.drop(reason, np.flatnonzero(self.reason == code) + 1)
        return report


def _scanned(rows: datasets.Dataset) -> datasets.Dataset:
    """The rows, cleaned, with what `_scan` knows of them."""
    has_text = rows.features["src"] == SCAN_FEATURES["src"]
    keys = {"has_text": has_text, "code": readers.code_digest(__file__)}
    if has_text:
        return rows.map(_scan, batched=True, features=SCAN_FEATURES, fn_kwargs=keys)
    scanned = rows.map(
        _scan,
        batched=True,
        batch_size=origins.BATCH,
        features=BINARY_SCAN_FEATURES,
        remove_columns="src",
        fn_kwargs=keys,
    )
    return datasets.concatenate_datasets([rows.select_columns("src"), scanned], axis=1)


def _scan(batch: dict[str, list[str | bytes | None]], has_text: bool, code: str) -> dict[str, list[object]]:
    """Cleaned text, reason to drop the row (REASONS), length ratio and hashes of a batch of rows.

    Args:
        has_text: False leaves the source side out of what is returned.
        code: part of the name under which the result is cached.
    """
    columns: dict[str, list[object]] = {name: [] for name in SCAN_FEATURES if name != "row"}
    for raw_src, raw_tgt in zip(batch["src"], batch["tgt"], strict=True):
        src, tgt = _clean(raw_src), _clean(raw_tgt)
        lengths = sorted((len(src), len(tgt)))
        src_digest = hashlib.blake2b(_encode(src), digest_size=8).digest()
        pair_digest = hashlib.blake2b(src_digest + _encode(tgt), digest_size=8).digest()
        reason = "missing" if raw_src is None or raw_tgt is None else ""
        if not reason and not lengths[0]:
            reason = "one-sided" if lengths[1] else "empty"
        columns["src"].append(src)
        columns["tgt"].append(tgt)
        columns["reason"].append(REASONS.index(reason))
        has_ratio = has_text and lengths[0] and lengths[1] >= RATIO_MIN_CHARS
        columns["ratio"].append(lengths[1] / lengths[0] if has_ratio else 1.0)
        columns["src_hash"].append(int.from_bytes(src_digest, signed=True))
        columns["pair_hash"].append(int.from_bytes(pair_digest, signed=True))
    return columns if has_text else {name: columns[name] for name in BINARY_SCAN_FEATURES if name != "row"}


def _clean(side: str | bytes | None) -> str | bytes:
    return side if isinstance(side, bytes) else unicodedata.normalize("NFC", side or "").strip()


def _encode(side: str | bytes) -> bytes:
    return side if isinstance(side, bytes) else side.encode()


def _clean_training(
    train: _Scan,
    held_out: Mapping[str, Ints],
    max_ratio: float,
    report: SplitReport,
    passes: Ints | None = None,
) -> Ints:
    """Positions of the training rows worth learning from; the others are counted.

    Args:
        held_out: split → hashes of its pairs.
        passes: of each row, how often its corpus was read before: no duplicates are rows of different passes.
    """
    report.dropped.update(train.report().dropped)
    kept = train.two_sided

    def drop(reason: str, bad: npt.NDArray[np.bool_]) -> None:
        nonlocal kept
        report.drop(reason, kept[bad] + 1)
        kept = kept[~bad]

    drop("length ratio", train.ratio[kept] > max_ratio)
    for split, hashes in held_out.items():
        drop(f"copy of a {split} row", _is_in(train.pair_hash[kept], hashes))
    hashes = train.pair_hash[kept]
    drop("duplicate", _is_repeated(hashes if passes is None else hashes ^ passes[kept] * SALT))
    return kept


@dataclass(frozen=True)
class Cleaner:
    """What `read_splits` drops, for training rows that come a block at a time."""

    max_ratio: float
    held_out: Mapping[str, Ints]
    """Split → hashes of its pairs."""
    sources: Mapping[str, Ints]
    """Split that was taken from the training rows → hashes of its source sentences."""

    def clean(self, rows: datasets.Dataset, passes: Ints, report: SplitReport) -> datasets.Dataset:
        """The rows worth learning from; the others are counted. Duplicates are found within the block alone.

        Args:
            rows: columns src, tgt and row.
            passes: of each row, how often its corpus was read before.
        """
        scan = _Scan(rows)
        kept = _clean_training(scan, self.held_out, self.max_ratio, report, passes)
        for split, hashes in self.sources.items():
            is_taken = _is_in(scan.src_hash[kept], hashes)
            report.drop(f"taken for {split}", kept[is_taken] + 1)
            kept = kept[~is_taken]
        return scan.cleaned.select_columns(["src", "tgt", "row"]).select(kept)


def _keep(rows: datasets.Dataset, positions: Ints) -> datasets.Dataset:
    """The rows at these rising positions; unlike `select`, which holds them in a list, through the cache."""
    if len(positions) == len(rows):
        return rows
    is_kept = np.zeros(len(rows) + 1, dtype=bool)
    is_kept[positions + 1] = True
    digest = hashlib.blake2b(rows._fingerprint.encode(), digest_size=16)
    digest.update(is_kept.data)
    return rows.filter(
        lambda numbers: is_kept[numbers],
        input_columns="row",
        batched=True,
        new_fingerprint=digest.hexdigest(),
    )


def _is_in(values: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    """np.isin for few others: less memory, because the values are not sorted."""
    if not len(others):
        return np.zeros(len(values), dtype=bool)
    rising = np.sort(others)
    return np.asarray(rising[np.searchsorted(rising, values).clip(max=len(rising) - 1)] == values)


def _is_repeated(values: Ints) -> npt.NDArray[np.bool_]:
    """True where the same value stands before."""
    order = np.argsort(values, kind="stable")
    repeated = np.zeros(len(values), dtype=bool)
    repeated[order[1:]] = values[order[1:]] == values[order[:-1]]
    return repeated


def _carve(hashes: Ints, missing: Sequence[str], seed: int) -> dict[str, Ints]:
    """Which rows go to the splits that are not there.

    That is decided by the hash of the source sentence and the seed alone, so the order of the rows does not
    matter and a sentence with several translations is on one side only.

    Args:
        hashes: of the source sentences; more different ones than missing splits.
    """
    if not missing:
        return {}
    keys = _mix(hashes, seed)
    size = min(CARVED_MAX, max(1, round(CARVED_SHARE * len(keys))))
    # The rows of the smallest keys nearly always do; grouping all rows takes memory that grows with them.
    for num_near in (4 * size * len(missing), len(keys)):
        is_all = num_near >= len(keys)
        bound = keys.max() if is_all else np.partition(keys, num_near)[num_near]
        near = np.flatnonzero(keys <= bound)
        _, inverse, counts = np.unique(keys[near], return_inverse=True, return_counts=True)
        # A sentence that fills a split alone ("Yes." 5,000 times) stays in training, unless all do that.
        queue = np.flatnonzero(counts <= size)
        if is_all or counts[queue].sum() > 2 * size * len(missing):
            break
    num_spared = 1 if is_all and len(queue) == len(counts) else 0
    if len(queue) < len(missing):
        queue, num_spared = np.argsort(counts, kind="stable"), 1
    taken: dict[str, Ints] = {}
    for later, split in zip(reversed(range(len(missing))), missing, strict=True):
        wanted = np.searchsorted(np.cumsum(counts[queue]), size) + 1
        num_sources = min(int(wanted), len(queue) - later - num_spared)
        chosen, queue = queue[:num_sources], queue[num_sources:]
        taken[split] = near[np.isin(inverse, chosen)]
    return taken


def _mix(hashes: Ints, seed: int) -> npt.NDArray[np.uint64]:
    """Another order for every seed. Source: the finaliser of SplitMix64, Steele et al. 2014."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")
    z = hashes.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    return z
