"""One cell of a source column to what is stored of it: text, the bytes of a picture, the bytes of a .npy file."""

import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

import readers
import runtime
from config import DataConfig
from render import PICTURE_SUFFIXES

T = TypeVar("T")
Kind = Literal["text", "picture", "features"]
"""What the cells of a source column are stored as."""
Row = dict[str, str | bytes | int | None]
Numbers = npt.NDArray[np.float32]

# What may stand in a nested list; None becomes NaN, which is refused later.
NUMBER_TYPES = {int, float, np.float16, readers.Number, type(None)}


class Table(NamedTuple):
    """Rows of one file or dataset, where their sides stand, and the folder where paths in them begin."""

    records: Iterable[readers.Record]
    src: readers.Field
    tgt: readers.Field
    folder: Path = Path()


def picture_or_text(cells: Iterable[object], where: str) -> Kind:
    """What `--source image` finds in a column: pictures, or sentences to be drawn.

    Args:
        cells: of the training rows; the first 1,000 are looked at.
    Raises:
        ValueError: some are paths of pictures and some are not.
    """
    examples: dict[bool, object] = {}
    for cell in islice(cells, readers.PEEK):
        if isinstance(cell, Mapping | bytes):
            return "picture"
        if cell is not None and str(cell).strip():
            examples.setdefault(_has_suffix(cell, PICTURE_SUFFIXES), cell)
    if len(examples) == 2:
        raise ValueError(
            f"{where}: the source column must hold either paths of pictures ({', '.join(PICTURE_SUFFIXES)}) or"
            f" sentences to draw; it has {examples[True]!r:.80} and {examples[False]!r:.80}"
        )
    return "picture" if True in examples else "text"


def require_sentences(cells: Iterable[object], where: str) -> None:
    """See that a column of text, to be read or drawn, does not name files instead.

    Args:
        cells: of the training rows; the first 1,000 are looked at, or fewer: up to the first that is no such path.
    Raises:
        ValueError: they are paths of pictures or of .npy files, all of them; the advice is the --source to take.
    """
    first: object = None
    for cell in islice(cells, readers.PEEK):
        if cell is None or not str(cell).strip():
            continue
        if not _has_suffix(cell, (*PICTURE_SUFFIXES, ".npy")):
            return
        first = cell if first is None else first
    if first is not None:
        source = "features" if _has_suffix(first, (".npy",)) else "image"
        raise ValueError(
            f"{where}: the source column holds paths and no sentences, the first {first!r:.80}; read the files"
            f" that they name with --source {source}"
        )


def kind_of(config: DataConfig, splits: Mapping[str, T], cells_of: Callable[[T], Iterator[object]]) -> Kind:
    """What the source column of every split is stored as; the training rows decide where there is a choice."""
    if config.source == "features":
        return config.source
    split = "train" if "train" in splits else next(iter(splits))
    kind: Kind
    where, kind = f"--dataset {config.name}", "text"
    if config.source == "image":
        kind = picture_or_text(cells_of(splits[split]), where)
    if kind == "text":
        require_sentences(cells_of(splits[split]), where)
    return kind


def named_file(cell: object, folder: Path) -> Path | None:
    """The file that a cell names, from `folder` on; None where the cell holds what is meant, or nothing."""
    if isinstance(cell, Mapping) and cell.get("bytes") is None:
        cell = cell.get("path")
    if not isinstance(cell, str) or not cell.strip():
        return None
    return folder / os.path.expanduser(cell.strip())  # noqa: PTH111 (Path.expanduser raises for an unknown user)


def stamp(path: Path) -> str:
    """What changes whenever a file does, a space, and its path."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return f" {path}"
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns} {path}"


def as_text(record: Mapping[str, object], field: readers.Field, where: str) -> str | None:
    """`readers.as_text` of a source side; an array or a picture is refused with the --source that reads it."""
    try:
        return readers.as_text(record, field, where)
    except ValueError as error:
        if isinstance(readers.cell_of(record, field), str):
            raise
        raise ValueError(f"{error}; --source features reads arrays, --source image pictures") from None


def as_source(
    record: Mapping[str, object], field: readers.Field, kind: Kind, where: str, folder: Path
) -> str | bytes | None:
    """What is stored of the source side of a row.

    Args:
        record: the cells of the row; none on a blank line.
        folder: where relative paths begin.
    Returns:
        text: a string as it stands. picture: the bytes of its file. features: a .npy file of (frames, channels),
        float32, C order. Empty where there is nothing but space or no frame, None where the cell is missing.
    Raises:
        ValueError, FileNotFoundError: something else; the place and the field are in the message.
    """
    if kind == "text":
        return as_text(record, field, where) if record else ""
    cell, where = readers.cell_of(record, field), f"{where}: {'.'.join(field)}"
    if not record or (isinstance(cell, str) and not cell.strip()):
        return b""
    if cell is None:
        return None
    return _picture(cell, where, folder) if kind == "picture" else _features(cell, where, folder)


def rows_of(tables: Iterable[Table], kind: Kind) -> Iterator[Row]:
    """Both sides of each row, and its number; a blank line counts as a row.

    Raises:
        ValueError, FileNotFoundError: a row is broken, or has other channels than the first; its place is named.
    """
    number, first = 0, ("", 0)
    for records, src, tgt, folder in tables:
        for where, record in records:
            number += 1
            row: Row = {"tgt": readers.as_text(record, tgt, where) if record else "", "row": number}
            if kind != "text":
                file = named_file(readers.cell_of(record, src), folder)
                # Before the file is read: a change in between must not go unseen.
                row["file"] = stamp(file) if file else None
            data = row["src"] = as_source(record, src, kind, where, folder)
            if kind == "features" and isinstance(data, bytes) and data:
                channels = num_channels(data)
                first = first if first[1] else (where, channels)
                if channels != first[1]:
                    raise ValueError(
                        f"{where}: {'.'.join(src)} has {channels} channels, but {first[1]} in {first[0]}; all"
                        " rows must have the same"
                    )
            yield row


def source_cells(tables: Iterable[Table]) -> Iterator[object]:
    """The source column alone, as it stands there."""
    for records, src, _, _ in tables:
        for _, record in records:
            yield readers.cell_of(record, src)


def load_frames(data: bytes, what: str) -> Numbers:
    """The array (frames, channels) of a .npy file; nothing is unpickled.

    Args:
        what: what the file is called in messages.
    Raises:
        ValueError: another format, objects, no numbers, or other than two dimensions.
    """
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # what numpy parses a broken header with raises errors of its own
        raise ValueError(f"{what} is not a .npy file of numbers ({runtime.said(error, 120)})") from None
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{what} must hold numbers, got {array.dtype!s:.40}")
    if array.ndim != 2:
        raise ValueError(f"{what} must have two dimensions (frames × channels), got {array.ndim}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype="<f4")


def num_channels(data: bytes) -> int:
    """Channels of what `as_source` stores for features."""
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    return int(np.lib.format.read_array_header_1_0(file)[0][1])


def _picture(cell: object, where: str, folder: Path) -> bytes | None:
    data, path = cell, named_file(cell, folder)
    if isinstance(cell, Mapping) and cell.keys() & {"bytes", "path"}:
        data = cell.get("bytes")
        if data is None and path is None:
            return None
    if path is not None and (isinstance(cell, Mapping) or _has_suffix(cell, PICTURE_SUFFIXES)):
        return _read(path, where)
    if not isinstance(data, bytes):
        raise ValueError(
            f"{where} must be a picture or the path of one ({', '.join(PICTURE_SUFFIXES)}), as in the first rows;"
            f" got {cell!r:.80}"
        )
    return data


def _features(cell: object, where: str, folder: Path) -> bytes:
    path = named_file(cell, folder)
    if isinstance(cell, str) and path is not None and _has_suffix(cell, (".npy",)):
        array = load_frames(_read(path, where), f"{where} names {str(path)!r}, which")
    elif isinstance(cell, list):
        array = _from_lists(cell, where)
    else:
        raise ValueError(
            f"{where} must be an array (frames × channels) or the path of a .npy file, got {cell!r:.80}"
        )
    if not array.shape[0]:
        return b""
    if not array.shape[1]:
        raise ValueError(f"{where} has {array.shape[0]} frames, but no channel")
    if bad := np.argwhere(~np.isfinite(array))[:1].tolist():
        frame, channel = bad[0]
        raise ValueError(
            f"{where}: frame {frame + 1}, channel {channel + 1} is {array[frame, channel]} in float32,"
            " not a finite number"
        )
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _from_lists(frames: Sequence[object], where: str) -> Numbers:
    rows = [frame for frame in frames if isinstance(frame, list)]
    types = {type(value) for row in rows for value in row}
    if len(rows) < len(frames) or list in types:
        raise ValueError(f"{where} must have two dimensions (frames × channels): lists of numbers in a list")
    if odd := types - NUMBER_TYPES:
        raise ValueError(f"{where} must hold numbers, got a {min(kind.__name__ for kind in odd)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{where}: frame {number} has {len(row)} channels, but frame 1 has {len(rows[0])}"
            )
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite
        return np.array(rows, dtype="<f4").reshape(len(rows), len(rows[0]) if rows else 0)


def _has_suffix(cell: object, suffixes: tuple[str, ...]) -> bool:
    return isinstance(cell, str) and cell.strip().lower().endswith(suffixes)


def _read(path: Path, where: str) -> bytes:
    try:
        # A pipe or a device might never end.
        if stat.S_ISREG(path.stat().st_mode):
            return path.read_bytes()
        reason: object = "it is not a file"
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{where} names {str(path)!r}, which is not there") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
    raise ValueError(f"{where} names {str(path)!r}, which cannot be read: {reason}")
