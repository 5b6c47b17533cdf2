"""Local files to pairs of strings, exactly as they stand there: JSON, CSV, TSV, Parquet, aligned text."""

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from languages import primary_language
from lines import decode_utf8, read_lines

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")

Field = tuple[str, ...]
"""Where a side stands in a row: ("en",) or ("translation", "en")."""
Pair = tuple[str | None, str | None]

# csv takes a lone CR for a line end; a lone surrogate, which no UTF-8 decodes to, stands for it meanwhile.
LONE_CR = "\udc0d"
# Columns whose values may be objects with a text for each language.
NESTED = ("translation", "translations")
# Rows of a JSON file that are looked at to learn its columns.
PEEK = 1_000
# The csv module refuses longer cells; rows that are too long are counted later, by their tokens.
csv.field_size_limit(2**31 - 1)


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


def code_digest(*paths: str) -> str:
    """Digest of source files: part of the name of what they make, so that a new version makes it anew."""
    return " ".join(inspect(Path(path)).digest for path in paths)


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
    names = match_sides(list(suffixes), src, tgt, f"the text files {prefix}.*")
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
            raise ValueError(f"{flag} {wanted} is not in {where}; there is: {', '.join(names) or 'nothing'}")
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
        list(dict.fromkeys(field[-1] for field in fields)), src, tgt, f"the columns of {where}"
    )
    return named[names[0]], named[names[1]]


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
            return [(name.strip(),) for name in next(_csv_records(path), [])]
    raise ValueError(
        f"{path}: cannot read this kind of file; give one of {', '.join(SUFFIXES)}, or what the names of two"
        " text files begin with"
    )


def pairs(path: Path, src: Field, tgt: Field) -> Iterator[Pair]:
    """Both sides of each row: text as it stands, None where there is none; a blank line counts as a row.

    Raises:
        ValueError: a row is broken; its line is in the message where it is known.
    """
    if path.suffix.lower() == ".parquet":
        for batch in _parquet(path).iter_batches(PEEK, columns=sorted({src[0], tgt[0]})):
            for record in batch.to_pylist():
                yield as_text(record, src, str(path)), as_text(record, tgt, str(path))
    elif path.suffix.lower() in (".json", ".jsonl"):
        for where, record in _json_records(path):
            yield (as_text(record, src, where), as_text(record, tgt, where)) if record else ("", "")
    else:
        records = _csv_records(path)
        header = [name.strip() for name in next(records)]
        first, second = header.index(src[0]), header.index(tgt[0])
        for row in records:
            cells = dict(enumerate(row))
            yield (cells.get(first), cells.get(second)) if row else ("", "")


def as_text(record: Mapping[str, object], field: Field, where: str) -> str | None:
    """The text of one field of a row: numbers as they are written, None for what is not there.

    Raises:
        ValueError: it holds something else than text.
    """
    value: object = record
    for key in field:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        if not value.isascii() and re.search("[\ud800-\udfff]", value):
            raise ValueError(
                f"{where}: {'.'.join(field)} holds half of a surrogate pair, which is not valid Unicode"
            )
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"{where}: {'.'.join(field)} must be text, got a {type(value).__name__}")


def _json_records(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Place and record: one a line (a blank line is an empty record), or all in one array."""
    with path.open("rb") as file:
        is_array = file.read(4_096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    if is_array:
        array = _parse_json(path.read_text(encoding="utf-8-sig"), str(path))
        for number, record in enumerate(array if isinstance(array, list) else [], 1):
            yield f"{path}, record {number}", _object(record, f"{path}, record {number}")
        return
    for number, line in enumerate(texts_of(path), 1):
        where = f"{path}, line {number}"
        yield where, _object(_parse_json(line, where), where) if line.strip() else {}


def _parse_json(text: str, where: str) -> object:
    try:
        # Numbers stay as they are written, "1984" and 1.50 alike; NaN is nothing.
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=lambda _: None)
    except (json.JSONDecodeError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.lineno > 1:
            where = f"{where}, line {error.lineno}"
        raise ValueError(f"{where}: not valid JSON ({getattr(error, 'msg', 'nested too deeply')})") from None


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(
            f'{where}: expected an object like {{"en": "…", "fr": "…"}}, got a {type(value).__name__}'
        )
    return value


def _csv_records(path: Path) -> Iterator[list[str]]:
    """Header and rows. In a TSV file a quotation mark is a character like others."""
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
            yield [cell.replace(LONE_CR, "\r") for cell in row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a Parquet file ({str(error).splitlines()[0]})") from None
