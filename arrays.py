"""Arrays with an element for each row of a corpus: in files, worked on block by block, so that memory does not grow."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Block: TypeAlias = "slice[int, int, None]"
Bools = npt.NDArray[np.bool_]
Number = TypeVar("Number", np.bool_, np.int8, np.uint8, np.int32, np.int64, np.float32)

# Elements that are in memory together.
BLOCK = 1 << 17
# From this size on, an array lies in a file.
FILE_BYTES = 1 << 20
# Of text, so many rows are read, changed and written together. `datasets` keeps about 3 KB in memory for each such part
# of a file.
ROWS = 5_000
# Of pictures and arrays, which are large.
LARGE_ROWS = 32
# `sorted_pieces` makes at most so many: a byte holds the number of a piece.
MAX_PIECES = 128


def has_text(rows: datasets.Dataset) -> bool:
    """Whether the source side holds sentences, and not the bytes of pictures or arrays."""
    return rows.features["src"].dtype == "string"


def empty(size: int, dtype: type[Number]) -> npt.NDArray[Number]:
    """An array without values; a large one in a file of the cache that nobody else sees and that goes with the array.

    Such memory is the system's to take back, unlike what the process holds itself.

    Raises:
        OSError: the disk is full.
    """
    num_bytes = size * np.dtype(dtype).itemsize
    if num_bytes < FILE_BYTES:
        return np.empty(size, dtype)
    import datasets  # takes a second, and who translates needs no large array

    folder = Path(datasets.config.HF_DATASETS_CACHE)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)  # or a full disk would end the process, later
            else:
                file.truncate(num_bytes)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        return np.frombuffer(mmap.mmap(file.fileno(), num_bytes), dtype)


def blocks(size: int) -> Iterator[Block]:
    """Slices that cover so many elements one after another."""
    for first in range(0, size, BLOCK):
        yield slice(first, min(size, first + BLOCK))


def filled(
    size: int, dtype: type[Number], values_of: Callable[[Block], npt.ArrayLike]
) -> npt.NDArray[Number]:
    """An array like those of `empty` with the values that are given for each block, asked for in order."""
    array = empty(size, dtype)
    for block in blocks(size):
        array[block] = values_of(block)
    return array


def of_column(column: pa.ChunkedArray, dtype: type[Number]) -> npt.NDArray[Number]:
    """The numbers of a column."""
    return filled(
        len(column), dtype, lambda block: column.slice(block.start, block.stop - block.start).to_numpy()
    )


def taken(values: npt.NDArray[Number], indices: Ints) -> npt.NDArray[Number]:
    """values[indices]"""
    return filled(len(indices), values.dtype.type, lambda block: values[indices[block]])


def positions(is_true: Bools) -> Iterator[npt.NDArray[np.int64]]:
    """np.flatnonzero, a part at a time."""
    for block in blocks(len(is_true)):
        yield block.start + np.flatnonzero(is_true[block])


def sorted_pieces(values: Ints) -> Iterator[npt.NDArray[np.int64]]:
    """np.argsort(values, kind="stable") in pieces of about the same size; equal values are in one piece."""
    num = min(MAX_PIECES, -(-len(values) // BLOCK))
    sample = np.sort(values[:: 1 + len(values) // BLOCK])
    borders = sample[len(sample) * np.arange(1, num) // max(1, num)]
    piece_of = filled(len(values), np.uint8, lambda block: np.searchsorted(borders, values[block], "right"))
    for piece in range(num):
        members = np.concatenate(
            [block.start + np.flatnonzero(piece_of[block] == piece) for block in blocks(len(values))]
        )
        yield members[np.argsort(values[members], kind="stable")]


def argsort(values: Ints) -> npt.NDArray[np.int32]:
    """np.argsort(values, kind="stable")"""
    order, first = empty(len(values), np.int32), 0
    for piece in sorted_pieces(values):
        order[first : first + len(piece)] = piece
        first += len(piece)
    return order
