"""Splits that a corpus lacks: by content alone, the same at every start, nothing on both sides."""

import random

import numpy as np
import pytest
from test_origins import (
    numbered,
    own_cache,
    pairs_of,
    read,
    read_source,
    write_jsonl,
    write_pictures,
    write_records,
)

import held_out

__all__ = ["own_cache"]  # a fixture


def test_splits_that_are_not_there_are_carved_and_do_not_share_a_row(tmp_path):  # fault 22
    splits = read(write_jsonl(tmp_path / "c.jsonl", numbered(400)))
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 360,
        "validation": 20,
        "test": 20,
    }
    assert sorted(row for rows in splits.values() for row in rows["row"]) == list(range(1, 401))
    assert splits.report["train"].dropped["taken for test"][0] == 20
    assert splits.report["test"].kept == 20


def test_carved_splits_do_not_depend_on_the_order_of_the_rows(tmp_path):
    rows = numbered(200)
    first = read(write_jsonl(tmp_path / "a.jsonl", rows))
    random.Random(1).shuffle(rows)
    second = read(write_jsonl(tmp_path / "b.jsonl", rows))
    for split in ("validation", "test"):
        assert sorted(pairs_of(first[split])) == sorted(pairs_of(second[split]))


def test_carved_splits_depend_on_the_seed(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(200))
    assert set(read(path)["test"]["src"]) != set(read(path, data_seed=1)["test"]["src"])


def test_carved_splits_are_these_rows_in_every_process_and_version(tmp_path):  # fault 22
    splits = read(write_jsonl(tmp_path / "a.jsonl", numbered(60)))
    assert list(splits["validation"]["row"]) == VALIDATION_ROWS and list(splits["test"]["row"]) == TEST_ROWS


VALIDATION_ROWS, TEST_ROWS = [17, 56, 57], [34, 53, 55]


def test_a_source_sentence_with_several_translations_stays_on_one_side(tmp_path):
    rows = [(f"sentence {i // 3}", f"Satz {i}") for i in range(600)]
    splits = read(write_jsonl(tmp_path / "a.jsonl", rows))
    sides = [set(splits[split]["src"]) for split in ("train", "validation", "test")]
    assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]
    assert 30 <= len(splits["validation"]) <= 32


def test_a_sentence_that_fills_a_split_alone_is_not_carved(tmp_path):
    rows = [*numbered(100), *(("Yes.", f"Ja {i}") for i in range(300))]
    splits = read(write_jsonl(tmp_path / "a.jsonl", rows))
    assert len(splits["validation"]) == len(splits["test"]) == 20
    assert splits["train"]["src"][:].count("Yes.") == 300


@pytest.mark.parametrize("count", [3, 4, 20])
def test_a_tiny_corpus_has_every_split(tmp_path, count):
    splits = read(write_jsonl(tmp_path / "a.jsonl", numbered(count)))
    assert [len(splits[split]) for split in ("train", "validation", "test")] == [count - 2, 1, 1]


def test_an_existing_split_is_used_and_the_other_carved(tmp_path):
    write_jsonl(tmp_path / "c" / "train.jsonl", numbered(100))
    write_jsonl(tmp_path / "c" / "dev.jsonl", [("held", "out"), *numbered(2)])
    splits = read(tmp_path / "c")
    assert len(splits["validation"]) == 3 and len(splits["test"]) == 5 and len(splits["train"]) == 93
    assert splits.report["train"].dropped["copy of a validation row"] == (2, [1, 2])


def test_hashing_for_splits_does_not_use_numpy_randomness():
    hashes = np.array([1, 2, -3], dtype=np.int64)
    assert (
        held_out._mix(hashes, 0).tolist()
        == held_out._mix(hashes, 0).tolist()
        != held_out._mix(hashes, 1).tolist()
    )


@pytest.mark.parametrize(
    "counts", [(1, 1, 100), (1, 100, 100), (100, 100, 100), (2, 1, 1, 1), (1, 1, 1, 100)]
)
def test_no_split_is_empty_when_a_few_sentences_make_up_the_corpus(tmp_path, counts):
    rows = [(f"sentence {i}", f"Satz {j}") for i, count in enumerate(counts) for j in range(count)]
    for seed in range(5):
        splits = read(write_jsonl(tmp_path / "a.jsonl", rows), data_seed=seed)
        sides = [set(splits[split]["src"]) for split in ("train", "validation", "test")]
        assert all(sides) and sum(map(len, sides)) == len(counts)
        assert len(splits["train"]) >= max(counts)


@pytest.mark.parametrize("repeats", [1, 3, 300])
def test_a_large_corpus_gives_the_rows_of_the_smallest_keys(monkeypatch, repeats):
    monkeypatch.setattr(held_out, "CARVED_MAX", 6)
    # Every tenth sentence stands there more often; 300 times is more than a split holds.
    sources = np.random.default_rng(0).integers(-(2**63), 2**63, 500)
    hashes = np.concatenate([sources, np.repeat(sources[::10], repeats - 1)])
    taken = held_out.carve(hashes, np.ones(len(hashes), dtype=bool), ["validation", "test"], seed=4)
    counts = {source: repeats if i % 10 == 0 else 1 for i, source in enumerate(sources.tolist())}
    queue = [s for s in sources[np.argsort(held_out._mix(sources, 4))].tolist() if counts[s] <= 6]
    for split in ("validation", "test"):
        expected: list[int] = []
        while sum(counts[source] for source in expected) < 6:
            expected.append(queue.pop(0))
        assert set(hashes[taken[split]].tolist()) == set(expected)
        assert len(taken[split]) == sum(counts[source] for source in expected)


def test_a_picture_with_several_translations_stays_on_one_side(tmp_path):
    path = write_pictures(tmp_path, count=30)
    write_records(path, [{"clip": f"pictures/{i // 3}.png", "de": f"Satz {i}"} for i in range(90)])
    splits = read_source(path, "image")
    sides = [set(splits[split]["src"]) for split in ("train", "validation", "test")]
    assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]
