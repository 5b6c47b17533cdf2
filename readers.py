"""Local files to rows, cell by cell as they stand there: JSON, CSV, TSV, Parquet, aligned text."""

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from languages import primary_language
from lines import BOM, decode_utf8, read_lines

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")

Field = tuple[str, ...]
"""Where a side stands in a row: ("en",) or ("translation", "en")."""
Record = tuple[str, Mapping[str, object]]
"""Where a row stands, for messages, and its cells by column; a blank line has no cell."""

# csv takes a lone CR for a line end; a lone surrogate, which no UTF-8 decodes to, stands for it meanwhile.
LONE_CR = "\udc0d"
# Columns whose values may be objects with a text for each language.
NESTED = ("translation", "translations")
# Bytes from which the number of rows of a file is estimated.
GLIMPSE = 16 << 20
# Rows that are looked at to learn what a file or a column holds.
PEEK = 1_000
SPACE = re.compile(r"[ \t\n\r]*")
# The csv module refuses longer cells; rows that are too long are counted later, by their tokens.
csv.field_size_limit(2**31 - 1)


class Number(str):
    """A number in JSON as it is written, to be told from a string of the same characters."""

    __slots__ = ()


# Numbers stay as they are written, "1984" and 1.50 alike; NaN is nothing.
DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=lambda _: None)


class Content(NamedTuple):
    """What a file holds: a digest of all of it, and its number of lines (0 for a binary one)."""

    digest: str
    num_lines: int


def inspect(path: Path) -> Content:
    """Read a file once, to know its content again and to find what is not UTF-8 before anything starts.

    Raises:
        ValueError: a line of a text file is not valid UTF-8; its number is in the message.
    """
    digest, number = hashlib.blake2b(digest_size=16), 0
    with path.open("rb") as file:
        if path.suffix.lower() == ".parquet":
            while block := file.read(1 << 20):
                digest.update(block)
            return Content(digest.hexdigest(), 0)
        for number, line in enumerate(file, 1):
            digest.update(line)
            decode_utf8(line, f"{path}, line {number}")
    return Content(digest.hexdigest(), number)


def glimpse(path: Path) -> Content:
    """What the beginning of a file tells, for one that is too large to be read before it is needed.

    Returns:
        Digest of its size and first 16 MiB, and about how many rows it has (a Parquet file says how many).
    """
    with path.open("rb") as file:
        head, size = file.read(GLIMPSE), path.stat().st_size
    digest = hashlib.blake2b(b"%d " % size + head, digest_size=16).hexdigest()
    if path.suffix.lower() == ".parquet":
        return Content(digest, _parquet(path).metadata.num_rows)
    num_lines = head.count(b"\n") + (size == len(head) and not head.endswith(b"\n"))
    return Content(digest, round(num_lines * size / max(1, len(head))))


def count_lines(path: Path) -> int:
    """Lines of a text file, without a look at what is in them."""
    num_lines, block = 0, b"\n"
    with path.open("rb") as file:
        while following := file.read(1 << 20):
            block = following
            num_lines += block.count(b"\n")
    return num_lines + (not block.endswith(b"\n"))


def texts_of(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends."""
    return (line.text for line in read_lines(path))


def aligned_files(path: Path, src: str, tgt: str) -> dict[str, tuple[Path, Path]]:
    """Pairs of text files that differ in their last suffix, which is the language.

    Args:
        path: their common prefix, or a folder that holds several such pairs.
    Returns:
        Common part of the names → source file, target file; empty when there are none.
    Raises:
        ValueError: the prefix has one of the two languages only.
    """
    found: dict[str, dict[str, Path]] = {}
    if path.parent.is_dir():
        for file in sorted(path.parent.iterdir()):
            if file.stem == path.name and file.suffix and file.is_file():
                found.setdefault(path.name, {})[file.suffix[1:]] = file
    suffixes = found.get(path.name, {})
    if _candidates(src, suffixes) or _candidates(tgt, suffixes):
        return {path.name: _two_files(suffixes, src, tgt, path)}
    found = {}
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        if file.suffix and file.is_file():
            found.setdefault(file.stem, {})[file.suffix[1:]] = file
    return {
        stem: _two_files(suffixes, src, tgt, path / stem)
        for stem, suffixes in found.items()
        if _candidates(src, suffixes) and _candidates(tgt, suffixes)
    }


def _two_files(suffixes: Mapping[str, Path], src: str, tgt: str, prefix: Path) -> tuple[Path, Path]:
    names = match_sides(
        list(suffixes), src, tgt, f"the text files {prefix}.*, whose last part is the language"
    )
    return suffixes[names[0]], suffixes[names[1]]


def match_sides(names: Sequence[str], src: str, tgt: str, where: str) -> tuple[str, str]:
    """The names that the two languages go by: as given, in other case or with other joiners, or pt for pt_BR.

    Raises:
        ValueError: no name fits, several fit equally well, or both languages fit the same one.
    """
    found = []
    for flag, wanted in (("--src", src), ("--tgt", tgt)):
        fitting = _candidates(wanted, names)
        if not fitting:
            there = ", ".join(names) or "nothing"
            raise ValueError(f"{flag} {wanted} is not in {where}; there is: {there}; pass another {flag}")
        if len(fitting) > 1:
            raise ValueError(
                f"{flag} {wanted} could be several of {where}: {', '.join(fitting)}; give one of them"
            )
        found.append(fitting[0])
    if found[0] == found[1]:
        raise ValueError(
            f"--src {src} and --tgt {tgt} are both {found[0]} in {where}; there is: {', '.join(names)}"
        )
    return found[0], found[1]


def _candidates(wanted: str, names: Sequence[str] | Mapping[str, Path]) -> list[str]:
    """Names that fit at the strictest level at which any does."""
    for level in (str, _folded, primary_language):
        if fitting := [name for name in names if level(name) == level(wanted)]:
            return fitting
    return []


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")


def match_fields(fields: Sequence[Field], src: str, tgt: str, where: str) -> tuple[Field, Field]:
    """`match_sides` over the columns of a table; a flat column goes before a key of a translation column."""
    named = {field[-1]: field for field in sorted(fields, key=len, reverse=True)}
    names = match_sides(
        list(dict.fromkeys(field[-1] for field in fields)),
        src,
        tgt,
        f"the columns of {where}{_header(where)}",
    )
    return named[names[0]], named[names[1]]


def _header(where: str) -> str:
    return ", which its first line must name" if where.lower().endswith((".csv", ".tsv")) else ""


def schema_fields(schema: pa.Schema) -> list[Field]:
    """Columns of an Arrow table; the column `translation` gives one for each language in it."""
    fields: list[Field] = []
    for column in schema:
        keys = list(column.type.names) if column.name in NESTED and pa.types.is_struct(column.type) else []
        fields += _fields(column.name, keys)
    return fields


def _fields(column: str, keys: Sequence[str]) -> list[Field]:
    return [(column, key) for key in keys] if keys else [(column,)]


def fields_of(path: Path) -> list[Field]:
    """Columns of a file.

    Raises:
        ValueError: of another kind, or broken.
    """
    match path.suffix.lower():
        case ".parquet":
            return schema_fields(_parquet(path).schema_arrow)
        case ".jsonl" | ".json":
            fields: dict[Field, None] = {}
            for _, record in islice(_json_records(path), PEEK):
                for name, value in record.items():
                    keys = list(value) if name in NESTED and isinstance(value, dict) else []
                    fields.update(dict.fromkeys(_fields(name, keys)))
            return list(fields)
        case ".csv" | ".tsv":
            return [(name.strip(),) for name in next(_csv_rows(path), (1, []))[1]]
    raise ValueError(
        f"{path}: cannot read this kind of file; give one of {', '.join(SUFFIXES)}, or what the names of two"
        " text files begin with"
    )


def records(path: Path, columns: Sequence[str], batch: int = PEEK) -> Iterator[Record]:
    """The rows of a file, one after another.

    Args:
        columns: those that are needed; others may be there.
        batch: rows of a Parquet file that are in memory together.
    Raises:
        ValueError: a row is broken; its line is in the message where it is known.
    """
    if path.suffix.lower() == ".parquet":
        yield from arrow_records(_parquet(path).iter_batches(batch, columns=sorted({*columns})), str(path))
    elif path.suffix.lower() in (".json", ".jsonl"):
        yield from _json_records(path)
    else:
        rows = _csv_rows(path)
        header = [name.strip() for name in next(rows)[1]]
        positions = [(name, header.index(name)) for name in columns]
        for line, row in rows:
            cells = {name: row[i] if i < len(row) else None for name, i in positions} if row else {}
            yield f"{path}, line {line}", cells


def arrow_records(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[Record]:
    """The rows of a table that is called so in messages."""
    number = 0
    for batch in batches:
        # Arrays of `datasets` are an extension type, whose own to_pylist fails when one is missing.
        columns = [getattr(column, "storage", column).to_pylist() for column in batch.columns]
        for cells in zip(*columns, strict=True):
            number += 1
            yield f"{name}, row {number}", dict(zip(batch.schema.names, cells, strict=True))


def cell_of(record: Mapping[str, object], field: Field) -> object:
    """What stands in one field of a row; None where there is nothing."""
    value: object = record
    for key in field:
        value = value.get(key) if isinstance(value, Mapping) else None
    return None if isinstance(value, float) and math.isnan(value) else value


def as_text(record: Mapping[str, object], field: Field, where: str) -> str | None:
    """The text of one field of a row: numbers as they are written, None for what is not there.

    Raises:
        ValueError: it holds something else than text.
    """
    value = cell_of(record, field)
    if value is None:
        return None
    if isinstance(value, str):
        if not value.isascii() and re.search("[\ud800-\udfff]", value):
            raise ValueError(
                f"{where}: {'.'.join(field)} holds half of a surrogate pair, which is not valid Unicode"
            )
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"{where}: {'.'.join(field)} must be text, got a {type(value).__name__}")


def _json_records(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Place and record: one a line (a blank line is an empty record), or all in one array."""
    if is_json_array(path):
        for number, record in enumerate(_json_array(path), 1):
            yield f"{path}, record {number}", _object(record, f"{path}, record {number}")
        return
    for number, line in enumerate(texts_of(path), 1):
        where = f"{path}, line {number}"
        yield where, _object(_parse_json(line, where)[0], where) if line.strip() else {}


def is_json_array(path: Path) -> bool:
    """Whether a JSON file holds all its records in one array."""
    if path.suffix.lower() not in (".json", ".jsonl"):
        return False
    with path.open("rb") as file:
        return file.read(4_096).removeprefix(BOM).lstrip().startswith(b"[")


def _json_array(path: Path) -> Iterator[object]:
    """The items of an array one after another: together they take many times the memory of the file."""
    text = decode_utf8(path.read_bytes().removeprefix(BOM), str(path))
    position = _skip_space(text, text.index("[") + 1)
    while not text.startswith("]", position):
        value, position = _parse_json(text, str(path), position)
        yield value
        position = _skip_space(text, position)
        if not text.startswith(",", position):
            break
        position = _skip_space(text, position + 1)
    if text[position:].strip() != "]":
        raise _not_json(json.JSONDecodeError("Expecting ',' delimiter", text, position), str(path))


def _skip_space(text: str, position: int) -> int:
    space = SPACE.match(text, position)
    return space.end() if space else position


def _parse_json(text: str, where: str, start: int | None = None) -> tuple[object, int]:
    """A value and its end: of the whole text, or of what begins at `start`."""
    try:
        return (DECODER.decode(text), len(text)) if start is None else DECODER.raw_decode(text, start)
    except (json.JSONDecodeError, RecursionError) as error:
        raise _not_json(error, where) from None


def _not_json(error: Exception, where: str) -> ValueError:
    if isinstance(error, json.JSONDecodeError) and error.lineno > 1:
        where = f"{where}, line {error.lineno}"
    return ValueError(f"{where}: not valid JSON ({getattr(error, 'msg', 'nested too deeply')})")


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(
            f'{where}: expected an object like {{"en": "…", "fr": "…"}}, got a {type(value).__name__}'
        )
    return value


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Header and rows, and the line where each ends. In a TSV file a quotation mark is a character like others."""
    is_tsv = path.suffix.lower() == ".tsv"
    text = (f"{line.replace(chr(13), LONE_CR)}\n" for line in texts_of(path))
    reader = (
        csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE) if is_tsv else csv.reader(text, strict=True)
    )
    num_columns: int | None = None
    try:
        for row in reader:
            num_columns = num_columns or len(row)
            if len(row) > num_columns:
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(row)} cells, but the header has {num_columns};"
                    " put a cell that holds the separator in quotation marks"
                )
            yield reader.line_num, [cell.replace(LONE_CR, "\r") for cell in row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a Parquet file ({str(error).splitlines()[0]})") from None
