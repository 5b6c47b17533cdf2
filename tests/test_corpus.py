"""A corpus and its splits, as training and scoring read them."""

import pytest
from test_cleaning import GOOD, read_with_held_out
from test_origins import (
    config_of,
    features_of,
    numbered,
    own_cache,
    pairs_of,
    read,
    read_source,
    write_arrays,
    write_jsonl,
    write_pictures,
)

import corpus
from config import DataConfig

__all__ = ["own_cache"]  # a fixture


def test_held_out_rows_stay_as_they_are(tmp_path):
    folder = tmp_path / "corpus"
    held_out = [
        (" cafe\u0301 ", "x"),
        (" cafe\u0301 ", "x"),
        ("a" * 500, "b"),
        (None, "x"),
        ("", ""),
        ("x", " "),
    ]
    write_jsonl(folder / "train.jsonl", [GOOD, ("fine", "fein")])
    write_jsonl(folder / "test.jsonl", held_out)
    write_jsonl(folder / "validation.jsonl", held_out)
    for split in ("test", "validation"):
        rows, report = corpus.read_split(DataConfig(dataset=str(folder), src="en", tgt="de"), split)
        assert pairs_of(rows) == held_out[:3] and list(rows["row"]) == [1, 2, 3]
        assert report.dropped == {"missing": (1, [4]), "empty": (1, [5]), "one-sided": (1, [6])}
        assert pairs_of(read(folder)[split]) == held_out[:3]


def test_a_carved_split_is_the_same_for_scoring(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [(f"  {src}", tgt) for src, tgt in numbered(100)])
    rows, report = corpus.read_split(DataConfig(dataset=str(path), src="en", tgt="de"), "test")
    assert pairs_of(rows) == pairs_of(read(path)["test"]) and report.kept == 5
    assert all(src.startswith("  ") for src in rows["src"])


def test_scoring_the_training_rows_leaves_out_carved_ones(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(100))
    rows, report = corpus.read_split(DataConfig(dataset=str(path), src="en", tgt="de"), "train")
    assert len(rows) == report.kept == 90


@pytest.mark.parametrize("rows", [[], [(None, "x")], [("", "")] * 5, [GOOD] * 9, numbered(2)])
def test_too_little_after_cleaning_is_one_line_that_says_why(tmp_path, rows):
    with pytest.raises(
        ValueError, match=r"different source sentences are left, too few to train on"
    ) as error:
        read(write_jsonl(tmp_path / "a.jsonl", rows or [("", "")]))
    assert "\n" not in str(error.value)


def test_a_held_out_split_without_usable_rows_is_refused(tmp_path):
    write_jsonl(tmp_path / "c" / "train.jsonl", numbered(10))
    write_jsonl(tmp_path / "c" / "validation.jsonl", [("", "x")])
    with pytest.raises(ValueError, match=r"the validation split of .* has no row with two sides"):
        read(tmp_path / "c")


def test_an_unknown_split_is_refused_with_those_there_are(tmp_path):
    write_jsonl(tmp_path / "c" / "train.jsonl", numbered(10))
    write_jsonl(tmp_path / "c" / "test.jsonl", numbered(3))
    with pytest.raises(ValueError, match=r"--split tset is not in .*; it has: train, test, validation"):
        corpus.read_split(DataConfig(dataset=str(tmp_path / "c"), src="en", tgt="de"), "tset")


def test_a_corpus_without_training_rows_can_be_scored_but_not_learned(tmp_path):
    folder = tmp_path / "c"
    write_jsonl(folder / "test.jsonl", numbered(3))
    assert len(corpus.read_split(DataConfig(dataset=str(folder), src="en", tgt="de"), "test")[0]) == 3
    with pytest.raises(ValueError, match="has no training split; it has: test"):
        read(folder)


def test_the_fingerprint_is_of_content_not_of_place(tmp_path):
    first = read(write_jsonl(tmp_path / "a.jsonl", numbered(9)))
    second = read(write_jsonl(tmp_path / "b" / "c.jsonl", numbered(9)))
    third = read(write_jsonl(tmp_path / "a.jsonl", numbered(9)), data_seed=3)
    assert first.fingerprint == second.fingerprint != third.fingerprint


def test_texts_gives_both_sides_of_every_row(tmp_path):
    rows = read_with_held_out(tmp_path, [("a", "b"), ("c", "d")])["train"]
    assert list(corpus.texts(rows)) == ["a", "b", "c", "d"]


def test_a_carved_split_of_arrays_is_the_same_for_scoring(tmp_path):
    path = write_arrays(tmp_path, features_of(20))
    config = config_of(path, "features")
    rows, _ = corpus.read_split(config, "test")
    assert rows[:] == corpus.read_splits(config)["test"][:] and isinstance(rows[0]["src"], bytes)


def test_texts_gives_the_target_side_alone(tmp_path):
    rows = read_source(write_pictures(tmp_path), "image")["train"]
    assert list(corpus.texts(rows, ("tgt",))) == list(rows["tgt"])
