"""Arrays in files, worked on block by block: the values of plain numpy, in memory that does not grow with the rows."""

import errno
import os
import tracemalloc

import datasets
import numpy as np
import pyarrow as pa
import pytest

import arrays
import cleaning
import corpus
import held_out
from config import DataConfig
from dataset import BatchSampler


@pytest.fixture(autouse=True)
def small_blocks(tmp_path, monkeypatch):
    """Blocks of a few rows, and every array in a file."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(arrays, "BLOCK", 37)
    monkeypatch.setattr(arrays, "FILE_BYTES", 1)


def random_values(num_rows, num_different, seed=0):
    """Hashes of which many stand there several times."""
    draw = np.random.default_rng(seed)
    return draw.choice(draw.integers(-(2**63), 2**63 - 1, num_different), num_rows)


CASES = [(1, 1), (36, 5), (37, 37), (1_000, 3), (1_000, 100), (3_000, 3_000), (3_000, 1)]


@pytest.mark.parametrize("num_rows, num_different", CASES)
def test_the_order_is_that_of_a_stable_sort(num_rows, num_different):
    values = random_values(num_rows, num_different)
    order = arrays.argsort(values)
    assert order.dtype == np.int32 and order.tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("num_rows, num_different", CASES)
def test_a_repeated_row_is_one_whose_value_stands_before_in_a_row_that_is_kept(num_rows, num_different):
    values = random_values(num_rows, num_different)
    is_kept = np.random.default_rng(1).random(num_rows) < 0.7
    seen, expected = set(), []
    for value, is_row_kept in zip(values.tolist(), is_kept, strict=True):
        expected.append(bool(is_row_kept) and value in seen)
        seen |= {value} if is_row_kept else set()
    assert cleaning._is_repeated(values, is_kept).tolist() == expected


def test_values_are_found_among_others_as_by_numpy():
    values = random_values(1_000, 300)
    assert cleaning._is_in(values, values[:50]).tolist() == np.isin(values, values[:50]).tolist()
    assert not cleaning._is_in(values, values[:0]).any()


def test_positions_are_those_that_are_true():
    is_true = np.random.default_rng(0).random(500) < 0.3
    assert np.concatenate([*arrays.positions(is_true)]).tolist() == np.flatnonzero(is_true).tolist()


def test_a_column_of_many_chunks_becomes_one_array():
    column = pa.chunked_array([pa.array(range(start, start + 50)) for start in range(0, 500, 50)])
    assert arrays.of_column(column, np.int64).tolist() == [*range(500)]


def test_an_array_in_a_file_leaves_no_file(tmp_path):
    array = arrays.filled(1_000, np.int64, lambda block: np.arange(block.start, block.stop))
    assert not list((tmp_path / "cache").iterdir())
    array[0] = 7
    assert array[:3].tolist() == [7, 1, 2] and array.sum() == 499_507


def test_a_small_array_stays_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "FILE_BYTES", 8_000)
    arrays.empty(999, np.int64)
    assert not (tmp_path / "cache").exists()
    arrays.empty(1_000, np.int64)
    assert (tmp_path / "cache").exists()


def test_a_full_disk_is_an_error_that_names_the_cache(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left on device: '.*cache'"):
        arrays.empty(10, np.int64)


# ---- batches


def id_rows(num_rows, longest=30):
    draw = np.random.default_rng(num_rows)
    src, tgt = draw.integers(0, longest, (2, num_rows))
    lists = [
        pa.ListArray.from_arrays(np.cumsum([0, *n], dtype=np.int32), np.zeros(n.sum(), np.int32))
        for n in (src, tgt)
    ]
    columns = {"src": lists[0], "src_length": pa.array((src + 1).astype(np.int32)), "tgt_ids": lists[1]}
    return datasets.Dataset(pa.table({**columns, "row": np.arange(1, num_rows + 1)})), src + 1, tgt + 1


@pytest.mark.parametrize("epoch", [0, 3])
def test_the_order_of_an_epoch_is_by_lengths_and_then_by_chance(epoch):
    rows, src, tgt = id_rows(2_000)
    order, bounds = BatchSampler(rows, 100, seed=5)._planned(epoch)
    rng = np.random.default_rng([5, epoch])
    by_chance, parity = rng.integers(1 << 20, size=2_000), rng.integers(2)
    rising = np.where((tgt + parity) % 2, src, -src)
    assert order.tolist() == np.lexsort((by_chance, rising, tgt)).tolist()
    assert np.sort(bounds[:, 0])[1:].tolist() == np.sort(bounds[:, 1])[:-1].tolist()
    for first, last in bounds:
        chosen = order[first:last]
        assert len(chosen) == 1 or (tgt[chosen].sum() <= 100 and src[chosen].sum() <= 400)


@pytest.mark.parametrize("shares", [None, (0.7, 0.3)])
def test_batches_do_not_depend_on_the_size_of_blocks(monkeypatch, shares):
    rows, *_ = id_rows(2_000)
    mixture = corpus.Mixture(("a", "b"), (600, 2_000), shares)
    samplers = [BatchSampler(rows, 100, 0, mixture=mixture)]
    plans = [(*samplers[0]._planned(2), samplers[0].padding(2))]
    monkeypatch.undo()
    samplers.append(BatchSampler(rows, 100, 0, mixture=mixture))
    plans.append((*samplers[1]._planned(2), samplers[1].padding(2)))
    for one, other in zip(*plans, strict=True):
        assert np.array_equal(one, other)


# ---- memory


def growth(measured):
    """Bytes that each row more takes at the worst moment, by what Python and numpy hold."""
    peaks = []
    for num_rows in (20_000, 60_000):
        work = measured(num_rows)
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[1] - peaks[0]) / 40_000


def test_batches_take_less_than_four_bytes_a_row(monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 2_000)

    def planning(num_rows):
        rows, *_ = id_rows(num_rows)
        return lambda: BatchSampler(rows, 4_096, seed=0).padding(0)

    assert growth(planning) < 4


def test_cleaning_takes_less_than_four_bytes_a_row(monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 2_000)
    monkeypatch.setattr(held_out, "CARVED_MAX", 50)
    monkeypatch.setattr(cleaning, "_scanned", lambda rows: rows)

    def splitting(num_rows):
        columns = {name: np.full(num_rows, "x") for name in ("src", "tgt")}
        columns |= {"row": np.arange(1, num_rows + 1), "reason": np.zeros(num_rows, np.int8)}
        columns |= {"ratio": np.ones(num_rows, np.float32)}
        columns |= {"src_hash": random_values(num_rows, 10**6, seed=1)}
        columns |= {"pair_hash": random_values(num_rows, 10**6, seed=2)}
        rows = datasets.Dataset(pa.table(columns))
        return lambda: corpus._split(
            {"train": rows}, DataConfig(), corpus.Mixture(("x",), (num_rows,), None), []
        )

    assert growth(splitting) < 4
