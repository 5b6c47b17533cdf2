"""Which rows are kept and in which split they are: counted, content-based, the same at every start."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import pytest

import corpus
import origins
import phrasebook
from config import DataConfig


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write_jsonl(path: Path, rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"en": en, "de": de}) + "\n" for en, de in rows), encoding="utf-8")
    return path


def pairs_of(rows):
    return list(zip(rows["src"], rows["tgt"], strict=True))


def read(path: Path, **settings):
    return corpus.read_splits(DataConfig(dataset=str(path), src="en", tgt="de", **settings))


def read_with_held_out(tmp_path, train, **settings):
    """Training rows beside a validation and a test split of one row each."""
    folder = tmp_path / "corpus"
    write_jsonl(folder / "train.jsonl", train)
    write_jsonl(folder / "validation.jsonl", [("a validation row", "eine Zeile")])
    write_jsonl(folder / "test.jsonl", [("a test row", "noch eine Zeile")])
    return read(folder, **settings)


GOOD = ("good", "gut")


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


def numbered(count):
    return [(f"sentence {i}", f"Satz {i}") for i in range(count)]


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


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"--src en is not in the columns of .*a\.jsonl; there is: nothing"):
        read(write_jsonl(tmp_path / "a.jsonl", []))


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


def test_a_file_that_changes_is_read_anew_even_with_its_old_time_and_size(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(9))
    before, first = path.stat(), read(path)
    path.write_text(path.read_text(encoding="utf-8").replace("Satz 1", "Satz X"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = read(path)
    texts = [tgt for rows in second.values() for tgt in rows["tgt"]]
    assert "Satz X" in texts and "Satz 1" not in texts
    assert path.stat().st_size == before.st_size and first.fingerprint != second.fingerprint


def test_the_fingerprint_is_of_content_not_of_place(tmp_path):
    first = read(write_jsonl(tmp_path / "a.jsonl", numbered(9)))
    second = read(write_jsonl(tmp_path / "b" / "c.jsonl", numbered(9)))
    third = read(write_jsonl(tmp_path / "a.jsonl", numbered(9)), data_seed=3)
    assert first.fingerprint == second.fingerprint != third.fingerprint


def test_the_second_start_reads_from_the_cache(tmp_path, monkeypatch):
    def refuse(*args):
        raise ValueError("read again")

    path = write_jsonl(tmp_path / "a.jsonl", numbered(9))
    first = read(path)
    monkeypatch.setattr(origins.cells, "rows_of", refuse)
    monkeypatch.setattr(corpus, "unicodedata", SimpleNamespace(normalize=refuse))
    assert read(path).fingerprint == first.fingerprint
    with pytest.raises(ValueError, match="read again"):
        read(write_jsonl(tmp_path / "b.jsonl", numbered(8)))


def test_a_broken_line_far_inside_is_one_line_of_error(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(1_500))
    path.write_text(path.read_text(encoding="utf-8") + '{"en": "x"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1501: not valid JSON") as error:
        read(path)
    assert "\n" not in str(error.value)


# ---- where a corpus may be


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.parquet"])
def test_every_kind_of_file_gives_the_same_rows(tmp_path, name):
    table = datasets.Dataset.from_dict(
        {"id": [*range(9)], "en": [f"a{i}" for i in range(9)], "de": ["b"] * 9}
    )
    path = tmp_path / name
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix in (".csv", ".tsv"):
        table.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",")
    else:
        table.to_json(path, lines=path.suffix == ".jsonl")
    splits = read(path)
    assert sorted(pair for rows in splits.values() for pair in pairs_of(rows)) == [
        (f"a{i}", "b") for i in range(9)
    ]


def test_opus_books_shape_is_read(tmp_path):  # fault 13
    rows = [{"id": str(i), "translation": {"en": f"a{i}", "fr": f"b{i}"}} for i in range(30)]
    features = datasets.Features(id=datasets.Value("string"), translation=datasets.Translation(["en", "fr"]))
    (tmp_path / "en-fr").mkdir()
    table = datasets.Dataset.from_list(rows, features=features)
    table.to_parquet(tmp_path / "en-fr" / "train-00000-of-00001.parquet")
    splits = corpus.read_splits(DataConfig(dataset=str(tmp_path / "en-fr"), src="fr", tgt="en"))
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 26, "validation": 2, "test": 2}
    assert all(src == tgt.replace("a", "b") for src, tgt in pairs_of(splits["train"]))


def test_multi30k_shape_is_read(tmp_path):  # fault 13
    for split, count in {"train": 30, "val": 4, "test": 5}.items():
        write_jsonl(tmp_path / "m" / f"{split}.jsonl", [(f"{split} {i}", f"x {i}") for i in range(count)])
    splits = read(tmp_path / "m")
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 30, "validation": 4, "test": 5}
    assert pairs_of(splits["validation"])[0] == ("val 0", "x 0")


def test_the_hub_path_reads_what_load_dataset_gives(tmp_path, monkeypatch):
    rows = [{"translation": {"en": f"a{i}", "pt_BR": None if i == 3 else f"b{i}"}} for i in range(20)]
    write = datasets.Dataset.from_list(rows).to_json
    (tmp_path / "hub").mkdir()
    write(tmp_path / "hub" / "train.jsonl")
    real = datasets.load_dataset
    builder = datasets.load_dataset_builder
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, config, **kw: real(str(tmp_path / "hub"), **kw)
    )
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda name, config: builder(str(tmp_path / "hub")))
    splits = corpus.read_splits(DataConfig(dataset="someone/corpus", src="en", tgt="pt"))
    assert len(splits["train"]) == 17 and splits.report["train"].dropped["missing"] == (1, [4])
    assert all(tgt == src.replace("a", "b") for src, tgt in pairs_of(splits["train"]))


def test_words_that_look_like_missing_values_are_text_in_csv_from_the_hub(tmp_path, monkeypatch):
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "test.csv").write_text("en,de\nnull,NA\nx,\ny\n", encoding="utf-8")
    real, builder = datasets.load_dataset, datasets.load_dataset_builder
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, config, **kw: real(str(tmp_path / "hub"), **kw)
    )
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda name, config: builder(str(tmp_path / "hub")))
    rows, report = corpus.read_split(DataConfig(dataset="someone/corpus", src="en", tgt="de"), "test")
    assert pairs_of(rows) == [("null", "NA")]
    assert report.dropped == {"one-sided": (2, [2, 3])}


def test_the_hub_out_of_reach_is_one_line(tmp_path):
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "import corpus, config, runtime\n"
        "runtime.run_command(lambda: corpus.read_splits(config.DataConfig(dataset='bentrevett/multi30k')))"
    )
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    root = Path(corpus.__file__).parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=root)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: --dataset bentrevett/multi30k: no such file, folder or pair")
    assert "Hugging Face Hub is out of reach" in done.stderr and done.stderr.count("\n") == 1


def test_an_unknown_configuration_names_those_there_are(monkeypatch):
    def refuse(name, config):
        raise ValueError("Config name is missing.\nPlease pick one among the available configs: ['ca-de']")

    monkeypatch.setattr(datasets, "load_dataset_builder", refuse)
    with pytest.raises(ValueError, match=r"--dataset opus_books, --dataset-config .*\['ca-de'\]") as error:
        corpus.read_splits(DataConfig(dataset="opus_books"))
    assert "\n" not in str(error.value)


def test_a_dataset_that_is_nowhere_is_refused(monkeypatch):
    def refuse(name, config):
        raise datasets.exceptions.DatasetNotFoundError("no")

    monkeypatch.setattr(datasets, "load_dataset_builder", refuse)
    with pytest.raises(
        FileNotFoundError, match=r"--dataset a/b: no such file.* and no such dataset on the Hugg"
    ):
        corpus.read_splits(DataConfig(dataset="a/b"))


@pytest.mark.parametrize("name", ["./none", "/none/at/all", "none.jsonl", "a/b/c"])
def test_a_path_that_is_not_there_is_not_looked_for_on_the_hub(name):
    with pytest.raises(
        FileNotFoundError, match=r"no such file or folder, and no pair of text files .*\.en and"
    ):
        corpus.read_splits(DataConfig(dataset=name))


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"holds other files than \.jsonl"):
        read(tmp_path / "x")


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(ValueError, match=r"--dataset .*x cannot be read: ") as error:
        read(tmp_path / "x")
    assert "\n" not in str(error.value)


def write_lines(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def test_odd_line_separators_do_not_shift_two_text_files(tmp_path):  # fault 15
    odd = ["a\u2028b", "a\x85b", "a\x0bb", "a\x0cb", "a\rb", "plain"]
    write_lines(tmp_path / "c.en", [f"{i} {text}" for i, text in enumerate(odd)])
    write_lines(tmp_path / "c.de", range(6))
    splits = read(tmp_path / "c")
    pairs = sorted(pair for rows in splits.values() for pair in pairs_of(rows))
    assert pairs == [(f"{i} {text}", str(i)) for i, text in enumerate(odd)]


def test_two_text_files_of_different_length_are_refused_with_both_numbers(tmp_path):
    write_lines(tmp_path / "c.en", range(1_200))
    write_lines(tmp_path / "c.de", range(1_199))
    with pytest.raises(ValueError, match=r"c\.en has 1,200 lines and .*c\.de has 1,199"):
        read(tmp_path / "c")


def test_blank_lines_of_text_files_are_counted_with_their_numbers(tmp_path):
    write_lines(tmp_path / "c.en", ["a", "", " ", "d", "e", "f"])
    write_lines(tmp_path / "c.de", ["a", "", "c", "d", "e", "f"])
    assert read(tmp_path / "c").report["train"].dropped["empty"] == (1, [2])
    assert read(tmp_path / "c").report["train"].dropped["one-sided"] == (1, [3])


def test_a_folder_of_text_files_has_their_splits(tmp_path):
    for split, count in {"train": 9, "valid": 2, "test": 3, "newstest": 4}.items():
        for language in ("en", "de"):
            write_lines(tmp_path / "c" / f"{split}.{language}", [f"{split} {i}" for i in range(count)])
    splits = read(tmp_path / "c")
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 9,
        "validation": 2,
        "test": 3,
        "newstest": 4,
    }


def test_invalid_utf8_in_a_text_file_is_named(tmp_path):
    write_lines(tmp_path / "c.en", ["a", "b"])
    (tmp_path / "c.de").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match=r"c\.de, line 2: byte 0xff is not valid UTF-8"):
        read(tmp_path / "c")


def test_two_names_for_one_split_are_both_kept(tmp_path):
    assert origins.name_splits({"dev": 1, "val": 2, "train": 3}) == {"train": 3, "validation": 1, "val": 2}
    assert origins.name_splits({"dev": 1, "validation": 2}) == {"validation": 2, "dev": 1}
    assert origins.name_splits({"Books": 1}) == {"train": 1}


def test_the_built_in_corpus_is_read_in_both_directions(monkeypatch):
    def generate(split, num_pairs=None, seed=0):
        return ({"en": f"{split} {seed} {i}", "fr": f"f{i}"} for i in range(5))

    monkeypatch.setattr(phrasebook, "generate", generate)
    splits = corpus.read_splits(DataConfig(src="fr", tgt="en", data_seed=7))
    assert set(splits) == {"train", "validation", "test", "combinations"}
    assert pairs_of(splits["combinations"])[4] == ("f4", "combinations 7 4")


def test_another_built_in_corpus_is_refused():
    with pytest.raises(ValueError, match=r"--dataset builtin:x: .* there is: builtin:phrasebook"):
        corpus.read_splits(DataConfig(dataset="builtin:x"))


def test_a_language_the_built_in_corpus_has_not_is_refused():
    with pytest.raises(ValueError, match="--tgt de is not in builtin:phrasebook; there is: en, fr"):
        corpus.read_splits(DataConfig(tgt="de"))


def test_a_configuration_of_a_file_is_refused(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(9))
    with pytest.raises(ValueError, match="--dataset-config is for the Hub and for folders"):
        read(path, dataset_config="en-de")


def test_texts_gives_both_sides_of_every_row(tmp_path):
    rows = read_with_held_out(tmp_path, [("a", "b"), ("c", "d")])["train"]
    assert list(corpus.texts(rows)) == ["a", "b", "c", "d"]


def test_hashing_for_splits_does_not_use_numpy_randomness():
    hashes = np.array([1, 2, -3], dtype=np.int64)
    assert (
        corpus._mix(hashes, 0).tolist() == corpus._mix(hashes, 0).tolist() != corpus._mix(hashes, 1).tolist()
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
    monkeypatch.setattr(corpus, "CARVED_MAX", 6)
    # Every tenth sentence stands there more often; 300 times is more than a split holds.
    sources = np.random.default_rng(0).integers(-(2**63), 2**63, 500)
    hashes = np.concatenate([sources, np.repeat(sources[::10], repeats - 1)])
    taken = corpus._carve(hashes, np.ones(len(hashes), dtype=bool), ["validation", "test"], seed=4)
    counts = {source: repeats if i % 10 == 0 else 1 for i, source in enumerate(sources.tolist())}
    queue = [s for s in sources[np.argsort(corpus._mix(sources, 4))].tolist() if counts[s] <= 6]
    for split in ("validation", "test"):
        expected: list[int] = []
        while sum(counts[source] for source in expected) < 6:
            expected.append(queue.pop(0))
        assert set(hashes[taken[split]].tolist()) == set(expected)
        assert len(taken[split]) == sum(counts[source] for source in expected)
