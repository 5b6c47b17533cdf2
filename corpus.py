"""Rows of a bilingual corpus: where they are read from, which are kept, and in which split they are."""

import copy
import hashlib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import datasets
import numpy as np
import numpy.typing as npt

import arrays
import origins
import readers
from arrays import Bools, Ints
from config import DataConfig
from strict_json import Json

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
# Of text, how many rows `datasets` changes and writes together.
RECORDS = {"batch_size": arrays.ROWS, "writer_batch_size": arrays.ROWS}
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

    def drop(self, reason: str, is_dropped: Bools) -> None:
        """Count rows as dropped; the first of them has number 1."""
        if count := int(np.count_nonzero(is_dropped)):
            positions = chain.from_iterable(arrays.positions(is_dropped))
            self.dropped[reason] = (count, [int(row) + 1 for row in islice(positions, FIRST_ROWS)])


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
        streams: Sequence[origins.Stream],
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
    joined = {split: _joined(rows) for split, rows in parts.items()}
    return _split(joined, config, Mixture(config.dataset, ends, shares), streams)


def _split(
    parts: dict[str, datasets.Dataset],
    config: DataConfig,
    mixture: Mixture,
    streams: Sequence[origins.Stream],
) -> Splits:
    """Check and split the rows of each split."""
    scans = {split: _Scan(rows) for split, rows in parts.items()}
    train, report = scans["train"], Report()
    report["train"] = SplitReport(len(train.rows))
    others = {split: scan.rows.select(scan.two_sided) for split, scan in scans.items() if split != "train"}
    held_out = {split: scan.pair_hash[scan.two_sided] for split, scan in scans.items() if split != "train"}
    is_kept = _clean_training(train, held_out, config.max_length_ratio, report["train"])
    missing = [split for split in ("validation", "test") if split not in scans]
    _require_sources(config.name, train.src_hash, is_kept, missing, report["train"])
    taken = _carve(train.src_hash, is_kept, missing, config.data_seed)
    for split, positions in taken.items():
        others[split] = train.rows.select(positions)
        is_taken = np.zeros(len(is_kept), dtype=bool)
        is_taken[positions] = True
        report["train"].drop(f"taken for {split}", is_taken)
        is_kept ^= is_taken
    for split in ("validation", "test", *others):
        if split not in report:
            report[split] = SplitReport(len(others[split])) if split in taken else scans[split].report()
        if not len(others[split]):
            raise ValueError(f"the {split} split of {config.name} has no row with two sides")
    digest = hashlib.blake2b(digest_size=16)
    for split, scan in scans.items():
        digest.update(split.encode())
        digest.update(scan.pair_hash.data)
    for part in chain(arrays.positions(is_kept), taken.values()):
        digest.update(part.astype(np.int32).data)
    splits = {"train": _keep(train.cleaned.select_columns(["src", "tgt", "row"]), is_kept), **others}
    sources = {split: train.src_hash[positions] for split, positions in taken.items()}
    cleaner = Cleaner(config.max_length_ratio, held_out, sources)
    if streams:
        digest = hashlib.blake2b(digest.hexdigest().encode(), digest_size=16)
        digest.update(" ".join(s.identity for s in streams).encode())
    ordered = {split: splits[split] for split in report}
    return Splits(ordered, report, digest.hexdigest(), mixture, cleaner, streams)


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
            rows = rows.map(shift, batched=True, input_columns="row", features=rows.features, **RECORDS)
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


class _Scan:
    """One split as read, with what cleaning needs to know of each row as arrays."""

    def __init__(self, rows: datasets.Dataset) -> None:
        self.rows = rows
        # map leaves an empty dataset without the new columns.
        self.cleaned = _scanned(rows) if len(rows) else rows
        self.reason, self.ratio = self._column("reason", np.int8), self._column("ratio", np.float32)
        self.src_hash, self.pair_hash = (
            self._column("src_hash", np.int64),
            self._column("pair_hash", np.int64),
        )

    def _column(self, name: str, dtype: type[arrays.Number]) -> npt.NDArray[arrays.Number]:
        return (
            arrays.of_column(self.cleaned.data.column(name), dtype) if len(self.rows) else np.zeros(0, dtype)
        )

    @property
    def two_sided(self) -> Ints:
        """Positions of the rows that have two sides."""
        return np.flatnonzero(self.reason == 0).astype(np.int32)

    def report(self) -> SplitReport:
        """The rows that have no two sides, by reason."""
        report = SplitReport(len(self.rows))
        for code, reason in enumerate(REASONS):
            if code:
                report.drop(reason, self.reason == code)
        return report


def _scanned(rows: datasets.Dataset) -> datasets.Dataset:
    """The rows, cleaned, with what `_scan` knows of them."""
    has_text = rows.features["src"] == SCAN_FEATURES["src"]
    keys = {"has_text": has_text, "code": readers.code_digest(__file__)}
    if has_text:
        return rows.map(_scan, batched=True, features=SCAN_FEATURES, fn_kwargs=keys, **RECORDS)
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
) -> Bools:
    """Which training rows are worth learning from; the others are counted.

    Args:
        held_out: split → hashes of its pairs.
        passes: of each row, how often its corpus was read before: no duplicates are rows of different passes.
    """
    report.dropped.update(train.report().dropped)
    is_kept = train.reason == 0
    _drop("length ratio", train.ratio > max_ratio, is_kept, report)
    for split, hashes in held_out.items():
        _drop(f"copy of a {split} row", _is_in(train.pair_hash, hashes), is_kept, report)
    hashes = train.pair_hash if passes is None else train.pair_hash ^ passes * SALT
    _drop("duplicate", _is_repeated(hashes, is_kept), is_kept, report)
    return is_kept


def _drop(reason: str, is_bad: Bools, is_kept: Bools, report: SplitReport) -> None:
    """Keep rows no longer, and count those that were kept; both masks are changed."""
    is_bad &= is_kept
    report.drop(reason, is_bad)
    is_kept ^= is_bad


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
        is_kept = _clean_training(scan, self.held_out, self.max_ratio, report, passes)
        for split, hashes in self.sources.items():
            _drop(f"taken for {split}", _is_in(scan.src_hash, hashes), is_kept, report)
        return scan.cleaned.select_columns(["src", "tgt", "row"]).select(np.flatnonzero(is_kept))


def _keep(rows: datasets.Dataset, is_kept: Bools) -> datasets.Dataset:
    """These rows; unlike `select`, which holds their positions in a list, through the cache."""
    if is_kept.all():
        return rows
    digest = hashlib.blake2b(rows._fingerprint.encode() + b"\0", digest_size=16)
    digest.update(is_kept.data)
    return rows.filter(
        lambda numbers: is_kept[np.asarray(numbers) - 1],
        input_columns="row",
        batched=True,
        **RECORDS,
        new_fingerprint=digest.hexdigest(),
    )


def _is_in(values: Ints, others: Ints) -> Bools:
    """np.isin for few others: less memory, because the values are not sorted."""
    if not len(others):
        return np.zeros(len(values), dtype=bool)
    rising = np.sort(others)

    def is_in(block: arrays.Block) -> Bools:
        nearest = np.searchsorted(rising, values[block]).clip(max=len(rising) - 1)
        return np.asarray(rising[nearest] == values[block])

    return arrays.filled(len(values), np.bool_, is_in)


def _is_repeated(values: Ints, is_kept: Bools) -> Bools:
    """Of the rows that are kept: True where the same value stands before."""
    repeated = np.zeros(len(values), dtype=bool)
    for piece in arrays.sorted_pieces(values):
        order = piece[is_kept[piece]]
        repeated[order[1:]] = values[order[1:]] == values[order[:-1]]
    return repeated


def _carve(hashes: Ints, is_kept: Bools, missing: Sequence[str], seed: int) -> dict[str, Ints]:
    """Which of the rows that are kept go to the splits that are not there.

    That is decided by the hash of the source sentence and the seed alone, so the order of the rows does not
    matter and a sentence with several translations is on one side only.

    Args:
        hashes: of the source sentences; more different ones than missing splits.
    """
    if not missing:
        return {}
    num_kept = int(np.count_nonzero(is_kept))
    size = min(CARVED_MAX, max(1, round(CARVED_SHARE * num_kept)))
    # The rows of the smallest keys nearly always do; grouping all rows takes memory that grows with them.
    for num_near in (4 * size * len(missing), num_kept):
        is_all = num_near >= num_kept
        near, keys = _of_smallest_keys(hashes, is_kept, num_near, seed)
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
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
        taken[split] = near[np.isin(inverse, chosen)].astype(np.int32)
    return taken


def _of_smallest_keys(
    hashes: Ints, is_kept: Bools, most: int, seed: int
) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """Positions, rising, and keys of the rows up to the key that is greater than `most` others, or of all."""
    near, keys = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    for positions in arrays.positions(is_kept):
        near = np.concatenate([near, positions])
        keys = np.concatenate([keys, _mix(hashes[positions], seed)])
        if len(keys) > most:
            is_near = keys <= np.partition(keys, most)[most]
            near, keys = near[is_near], keys[is_near]
    return near, keys


def _mix(hashes: Ints, seed: int) -> npt.NDArray[np.uint64]:
    """Another order for every seed. Source: the finaliser of SplitMix64, Steele et al. 2014."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")
    z = hashes.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    return z
