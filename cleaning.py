"""Which rows of a corpus are worth learning from, and what became of the others."""

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, islice

import datasets
import numpy as np
import numpy.typing as npt

import arrays
import runtime
from arrays import Bools, Ints
from row_cache import ROW_FEATURES
from strict_json import Json

SCAN_FEATURES = datasets.Features(
    **ROW_FEATURES,
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
FIRST_ROWS = 5
# Of text, how many rows `datasets` changes and writes together.
RECORDS = {"batch_size": arrays.ROWS, "writer_batch_size": arrays.ROWS}
# Sets apart the hashes of different passes; an odd number near 2^63 divided by the golden ratio.
SALT = np.int64(0x4F1BBCDCBFA53E0B)


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


class Scan:
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
    has_text = arrays.has_text(rows)
    keys = {"has_text": has_text, "code": runtime.code_digest(__file__)}
    if has_text:
        return rows.map(_scan, batched=True, features=SCAN_FEATURES, fn_kwargs=keys, **RECORDS)
    scanned = rows.map(
        _scan,
        batched=True,
        batch_size=arrays.LARGE_ROWS,
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


def clean_training(
    train: Scan,
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
    drop("length ratio", train.ratio > max_ratio, is_kept, report)
    for split, hashes in held_out.items():
        drop(f"copy of a {split} row", _is_in(train.pair_hash, hashes), is_kept, report)
    hashes = train.pair_hash if passes is None else train.pair_hash ^ passes * SALT
    drop("duplicate", _is_repeated(hashes, is_kept), is_kept, report)
    return is_kept


def drop(reason: str, is_bad: Bools, is_kept: Bools, report: SplitReport) -> None:
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
        scan = Scan(rows)
        is_kept = clean_training(scan, self.held_out, self.max_ratio, report, passes)
        for split, hashes in self.sources.items():
            drop(f"taken for {split}", _is_in(scan.src_hash, hashes), is_kept, report)
        return scan.cleaned.select_columns(["src", "tgt", "row"]).select(np.flatnonzero(is_kept))


def keep(rows: datasets.Dataset, is_kept: Bools) -> datasets.Dataset:
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
