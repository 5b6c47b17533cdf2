"""Which training rows are kept, and how the others are counted."""

import json

import datasets
import pytest
from test_origins import (
    ARRAY2D,
    draw,
    features_of,
    own_cache,
    pairs_of,
    read,
    read_source,
    rows_of,
    write_jsonl,
    write_pictures,
    write_records,
)

__all__ = ["own_cache"]  # a fixture

GOOD = ("good", "gut")


def read_with_held_out(tmp_path, train, **settings):
    """Training rows beside a validation and a test split of one row each."""
    folder = tmp_path / "corpus"
    write_jsonl(folder / "train.jsonl", train)
    write_jsonl(folder / "validation.jsonl", [("a validation row", "eine Zeile")])
    write_jsonl(folder / "test.jsonl", [("a test row", "noch eine Zeile")])
    return read(folder, **settings)


@pytest.mark.parametrize(
    "bad, reason",
    [
        ((None, "x"), "missing"),
        (("x", None), "missing"),
        ((" ", "\t\u00a0\u2028"), "empty"),
        (("x", "  "), "one-sided"),
        (("", "x"), "one-sided"),
        (("a" * 181, "b" * 20), "length ratio"),
        (("b" * 2, "a" * 20), "length ratio"),
        (GOOD, "duplicate"),
        ((" good", "gut\n"), "duplicate"),
        (("a validation row", "eine Zeile"), "copy of a validation row"),
        (("a test row ", "noch eine Zeile"), "copy of a test row"),
    ],
)
def test_a_bad_training_row_is_dropped_and_counted_with_its_number(tmp_path, bad, reason):
    splits = read_with_held_out(tmp_path, [GOOD, bad, ("fine", "fein")])
    assert pairs_of(splits["train"]) == [GOOD, ("fine", "fein")]
    assert splits.report["train"].dropped == {reason: (1, [2])}
    assert splits.report["train"].read == 3 and splits.report["train"].kept == 2


@pytest.mark.parametrize(
    "fine",
    [
        ("a" * 180, "b" * 20),
        ("b", "a" * 19),
        ("good", "schön"),
        ("a validation row", "noch eine Zeile"),
        ("null", "NA"),
    ],
)
def test_a_row_within_the_bounds_is_kept(tmp_path, fine):
    splits = read_with_held_out(tmp_path, [GOOD, fine])
    assert pairs_of(splits["train"]) == [GOOD, fine] and not splits.report["train"].dropped


def test_the_length_ratio_is_a_setting(tmp_path):
    assert len(read_with_held_out(tmp_path, [GOOD, ("a" * 30, "b" * 10)], max_length_ratio=2.9)["train"]) == 1
    assert len(read_with_held_out(tmp_path, [GOOD, ("a" * 30, "b" * 10)], max_length_ratio=3.0)["train"]) == 2


def test_pairs_that_differ_in_unicode_form_are_duplicates(tmp_path):
    splits = read_with_held_out(tmp_path, [("café", "Kaffee"), ("cafe\u0301", "Kaffee")])
    assert pairs_of(splits["train"]) == [("café", "Kaffee")]


def test_training_text_is_nfc_without_outer_white_space(tmp_path):
    assert pairs_of(read_with_held_out(tmp_path, [(" cafe\u0301  x\n", "a")])["train"]) == [("café  x", "a")]


def test_each_row_is_dropped_for_one_reason(tmp_path):
    train = [GOOD, (None, None), ("", ""), ("x", ""), ("a test row", "noch eine Zeile")] * 3
    report = read_with_held_out(tmp_path, train).report["train"]
    assert report.kept == 1 and sum(count for count, _ in report.dropped.values()) == 14
    assert report.dropped["copy of a test row"] == (3, [5, 10, 15])


def test_the_first_five_row_numbers_are_kept(tmp_path):
    report = read_with_held_out(tmp_path, [GOOD] * 9).report
    assert report["train"].dropped == {"duplicate": (8, [2, 3, 4, 5, 6])}
    assert "8  duplicate (2, 3, 4, 5, 6, …)" in str(report)
    assert report.to_json()["train"] == {
        "read": 9,
        "kept": 1,
        "dropped": {"duplicate": {"count": 8, "first_rows": [2, 3, 4, 5, 6]}},
    }


def test_missing_and_frameless_arrays_are_counted(tmp_path):
    clips = [*features_of(4), None, [], features_of(1)[0], features_of(2)[1]]
    table = datasets.Dataset.from_dict(
        {"clip": clips, "de": [*"abcd", "e", "f", None, "b"]}, features=ARRAY2D
    )
    table.to_parquet(tmp_path / "a.parquet")
    dropped = read_source(tmp_path / "a.parquet", "features").report["train"].dropped
    assert dropped["missing"] == (2, [5, 7]) and dropped["one-sided"] == (1, [6])
    assert dropped["duplicate"] == (1, [8])


def test_pictures_are_not_cleaned_and_have_no_length_ratio(tmp_path):
    path = write_pictures(tmp_path, count=9)
    rows = [json.loads(line) for line in path.open()]
    rows[0]["de"], rows[1]["de"] = f" cafe\u0301 {'x' * 400} ", "y"
    splits = read_source(write_records(path, rows), "image", max_length_ratio=1)
    assert set(splits.report["train"].dropped) == {"taken for validation", "taken for test"}
    assert {src for _, src, _ in rows_of(splits)} == {(tmp_path / row["clip"]).read_bytes() for row in rows}
    texts = dict(zip(splits["train"]["row"], splits["train"]["tgt"], strict=True))
    assert texts.get(1, f"café {'x' * 400}") == f"café {'x' * 400}"


def test_bad_rows_of_pictures_are_counted_by_reason(tmp_path):
    path = write_pictures(tmp_path / "c", name="train.jsonl")
    draw(tmp_path / "c" / "copy.png", 0)
    rows = [json.loads(line) for line in path.open()]
    rows += [{"clip": None, "de": "x"}, {"clip": "", "de": ""}, {"clip": " ", "de": "x"}, {"de": "x"}]
    rows += [{"clip": "copy.png", "de": " Satz 0"}, {"clip": "pictures/0.png", "de": "anders"}]
    write_records(path, rows)
    write_records(tmp_path / "c" / "test.jsonl", [{"clip": "pictures/1.png", "de": "Satz 1"}])
    report = read_source(tmp_path / "c", "image").report["train"]
    taken = report.dropped.pop("taken for validation")
    assert report.dropped == {
        "missing": (2, [7, 10]),
        "empty": (1, [8]),
        "one-sided": (1, [9]),
        "copy of a test row": (1, [2]),
        "duplicate": (1, [11]),
    }
    assert taken[0] in (1, 2)
