"""Text, pictures and arrays from wherever a corpus is: the same rows, in the splits that are there."""

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
from PIL import Image

import corpus
import phrasebook
from config import DataConfig


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write_records(path: Path, rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_jsonl(path: Path, rows) -> Path:
    return write_records(path, [{"en": en, "de": de} for en, de in rows])


def write_lines(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_sentences(path: Path) -> Path:
    return write_records(path, [{"clip": f"sentence {i}", "de": f"Satz {i}"} for i in range(9)])


def features_of(count, channels=2):
    return [[[float(i + frame)] * channels for frame in range(1 + i % 3)] for i in range(count)]


def config_of(path: Path, source, **settings):
    return DataConfig(dataset=str(path), src="clip", tgt="de", source=source, **settings)


def read_source(path: Path, source, **settings):
    return corpus.read_splits(config_of(path, source, **settings))


def read(path: Path, **settings):
    return corpus.read_splits(DataConfig(dataset=str(path), src="en", tgt="de", **settings))


def pairs_of(rows):
    return list(zip(rows["src"], rows["tgt"], strict=True))


def numbered(count):
    return [(f"sentence {i}", f"Satz {i}") for i in range(count)]


def rows_of(splits):
    """(row, src, tgt) of all splits in the order of the rows."""
    rows = [(row["row"], row["src"], row["tgt"]) for split in splits.values() for row in split]
    return sorted(rows, key=lambda row: row[0])


def arrays_of(splits):
    return [np.load(io.BytesIO(src), allow_pickle=False).tolist() for _, src, _ in rows_of(splits)]


def draw(path: Path, shade: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (3, 2), shade).save(path)
    return path


def write_pictures(folder: Path, count=6, name="a.jsonl") -> Path:
    """A corpus of paths relative to its own folder."""
    for i in range(count):
        draw(folder / "pictures" / f"{i}.png", i)
    return write_records(
        folder / name, [{"clip": f"pictures/{i}.png", "de": f"Satz {i}"} for i in range(count)]
    )


def write_arrays(folder: Path, arrays, name="a.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for i, array in enumerate(arrays):
        np.save(folder / f"{i}.npy", np.array(array))
    return write_records(folder / name, [{"clip": f"{i}.npy", "de": f"Satz {i}"} for i in range(len(arrays))])


ARRAY2D = datasets.Features(clip=datasets.Array2D((None, 2), "float32"), de=datasets.Value("string"))
LISTS = datasets.Features(
    clip=datasets.List(datasets.List(datasets.Value("float32"))), de=datasets.Value("string")
)


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"--src en is not in the columns of .*a\.jsonl; there is: nothing"):
        read(write_jsonl(tmp_path / "a.jsonl", []))


def test_a_broken_line_far_inside_is_one_line_of_error(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(1_500))
    path.write_text(path.read_text(encoding="utf-8") + '{"en": "x"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1501: not valid JSON") as error:
        read(path)
    assert "\n" not in str(error.value)


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


@pytest.mark.parametrize(
    "kind", ["jsonl", "json", "Array2D", "lists", "saved", "npy jsonl", "npy csv", "npy tsv", "npy lines"]
)
def test_every_way_to_hold_arrays_gives_the_same_rows(tmp_path, kind):
    arrays, path = features_of(6), tmp_path / "c"
    columns = {"clip": arrays, "de": [f"Satz {i}" for i in range(6)]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind.startswith("npy"):
        names = [row["clip"] for row in map(json.loads, write_arrays(tmp_path, arrays).open())]
        if kind == "npy lines":
            write_lines(tmp_path / "c.clip", names)
            write_lines(tmp_path / "c.de", columns["de"])
        else:
            path = tmp_path / f"c.{kind[4:]}"
            table = datasets.Dataset.from_dict({**columns, "clip": names})
            if kind == "npy jsonl":
                table.to_json(path)
            else:
                table.to_csv(path, sep="\t" if kind == "npy tsv" else ",")
    elif kind in ("jsonl", "json"):
        path = write_records(tmp_path / f"c.{kind}", rows)
        if kind == "json":
            path.write_text(json.dumps(rows))
    else:
        table = datasets.Dataset.from_dict(columns, features=LISTS if kind == "lists" else ARRAY2D)
        path = path if kind == "saved" else tmp_path / "c.parquet"
        table.save_to_disk(path) if kind == "saved" else table.to_parquet(path)
    splits = read_source(path, "features")
    assert arrays_of(splits) == arrays and [tgt for _, _, tgt in rows_of(splits)] == columns["de"]
    assert splits["train"].features["src"] == datasets.Value("large_binary")
    assert splits["train"].column_names == ["src", "tgt", "row"] == splits["test"].column_names


def test_other_channels_than_in_the_first_row_are_refused_with_both_numbers(tmp_path):
    clips = [[], *features_of(2), *features_of(1, channels=3)]
    path = write_records(tmp_path / "a.jsonl", [{"clip": clip, "de": "x"} for clip in clips])
    with pytest.raises(
        ValueError, match=r"a\.jsonl, line 4: clip has 3 channels, but 2 in .*a\.jsonl, line 2"
    ):
        read_source(path, "features")


def test_a_broken_array_far_inside_is_one_line_of_error(tmp_path):
    rows = [{"clip": clip, "de": "x"} for clip in (*features_of(70), [[1.0, 2.0], [1.0]])]
    with pytest.raises(ValueError, match=r"a\.jsonl, line 71: clip: frame 2 has 1 channels") as error:
        read_source(write_records(tmp_path / "a.jsonl", rows), "features")
    assert "\n" not in str(error.value)


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    path = write_pictures(tmp_path)
    for source in ("image", "features"):
        with pytest.raises(ValueError, match=r"--src speech is not in the columns of .*; there is: clip, de"):
            corpus.read_splits(replace(config_of(path, source), src="speech"))


@pytest.mark.parametrize("kind", ["jsonl", "csv", "embedded", "by path", "lines", "saved"])
def test_every_way_to_hold_pictures_gives_the_bytes_of_their_files(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path = write_pictures(tmp_path)
    names, de = [f"pictures/{i}.png" for i in range(6)], [f"Satz {i}" for i in range(6)]
    contents = [Path(name).read_bytes() for name in names]
    if kind == "csv":
        path = tmp_path / "c.csv"
        datasets.Dataset.from_dict({"clip": names, "de": de}).to_csv(path)
    elif kind == "lines":
        path = tmp_path / "c"
        write_lines(tmp_path / "c.clip", names)
        write_lines(tmp_path / "c.de", de)
    elif kind != "jsonl":
        features = datasets.Features(clip=datasets.Image(), de=datasets.Value("string"))
        clips = [{"bytes": content, "path": None} for content in contents] if kind == "embedded" else names
        table = datasets.Dataset.from_dict({"clip": clips, "de": de}, features=features)
        path = tmp_path / ("saved" if kind == "saved" else "c.parquet")
        table.save_to_disk(path) if kind == "saved" else table.to_parquet(path)
    splits = read_source(path, "image")
    assert rows_of(splits) == list(zip(range(1, 7), contents, de, strict=True))
    assert splits["train"].features["src"] == datasets.Value("large_binary")


def test_sentences_of_an_image_corpus_stay_text(tmp_path):
    path = write_sentences(tmp_path / "a.jsonl")
    drawn, text = read_source(path, "image"), read_source(path, "text")
    assert pairs_of(drawn["train"]) == pairs_of(text["train"]) and drawn.fingerprint == text.fingerprint


def test_a_column_of_pictures_and_sentences_is_refused(tmp_path):
    path = write_records(tmp_path / "a.jsonl", [{"clip": "a.png", "de": "x"}, {"clip": "A cat.", "de": "y"}])
    with pytest.raises(ValueError, match=r"--dataset .*a\.jsonl: .* it has 'a\.png' and 'A cat\.'"):
        read_source(path, "image")


def test_paths_of_arrays_are_not_drawn_as_sentences(tmp_path):
    path = write_records(tmp_path / "a.jsonl", [{"clip": f"{i}.npy", "de": "x"} for i in range(3)])
    with pytest.raises(ValueError, match=r"the first '0\.npy'; .* --source features$"):
        read_source(path, "image")


@pytest.mark.parametrize("kind", ["jsonl", "lines", "saved", "hub"])
def test_paths_of_pictures_taken_for_text_are_refused_wherever_they_are(tmp_path, monkeypatch, kind):
    names, de = [f"{i}.png" for i in range(6)], list("abcdef")
    table, path = datasets.Dataset.from_dict({"clip": names, "de": de}), tmp_path / "c"
    if kind == "jsonl":
        path = tmp_path / "c.jsonl"
        table.to_json(path)
    elif kind == "lines":
        write_lines(tmp_path / "c.clip", names)
        write_lines(tmp_path / "c.de", de)
    elif kind == "saved":
        table.save_to_disk(path)
    else:
        path = Path("someone/corpus")
        monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
        monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.DatasetDict(train=table))
    with pytest.raises(ValueError, match=rf"--dataset {path}: .* the first '0\.png'; .* --source image$"):
        read_source(path, "text")


@pytest.mark.parametrize("first", ["", "a.png"])
def test_a_blank_line_or_a_path_among_sentences_is_text(tmp_path, first):
    rows = [{"clip": first, "de": "x"}, *({"clip": f"sentence {i}", "de": "y"} for i in range(9))]
    splits = read_source(write_records(tmp_path / "a.jsonl", rows), "text")
    assert splits["train"].features["src"] == datasets.Value("string")


def test_the_training_rows_tell_what_the_column_of_every_split_holds(tmp_path):
    write_sentences(tmp_path / "c" / "train.jsonl")
    write_records(tmp_path / "c" / "test.jsonl", [{"clip": "logo.png", "de": "logo.png"}])
    rows, _ = corpus.read_split(config_of(tmp_path / "c", "image"), "test")
    assert pairs_of(rows) == [("logo.png", "logo.png")]
    write_pictures(tmp_path / "d", name="train.jsonl")
    write_records(tmp_path / "d" / "test.jsonl", [{"clip": "A cat.", "de": "x"}])
    with pytest.raises(ValueError, match=r"test\.jsonl, line 1: clip must be a picture .* got 'A cat\.'"):
        corpus.read_split(config_of(tmp_path / "d", "image"), "test")


def test_a_folder_with_pictures_beside_the_files_that_name_them_is_read(tmp_path):
    write_pictures(tmp_path / "c", name="train.jsonl")
    write_records(tmp_path / "c" / "dev.jsonl", [{"clip": "pictures/test_1.png", "de": "x"}])
    draw(tmp_path / "c" / "pictures" / "test_1.png", 9)
    splits = read_source(tmp_path / "c", "image")
    assert len(splits["validation"]) == 1 and len(splits["train"]) + len(splits["test"]) == 6


def test_paths_begin_in_the_folder_of_the_file_that_holds_them(tmp_path):
    write_arrays(tmp_path / "c" / "train", features_of(6))
    write_arrays(tmp_path / "c" / "test", features_of(2))
    splits = read_source(tmp_path / "c", "features")
    assert len(splits["test"]) == 2 and len(splits["train"]) + len(splits["validation"]) == 4


def test_metadata_beside_pictures_is_training_data(tmp_path):
    write_pictures(tmp_path / "c", name="metadata.jsonl")
    assert len(rows_of(read_source(tmp_path / "c", "image"))) == 6


def test_a_folder_of_pictures_alone_is_refused(tmp_path):
    draw(tmp_path / "c" / "a.png", 1)
    with pytest.raises(ValueError, match=r"--dataset .*c holds other files than \.jsonl") as error:
        read_source(tmp_path / "c", "image")
    assert "\n" not in str(error.value)


def test_the_built_in_corpus_is_text_to_draw_and_no_features(monkeypatch):
    def generate(split, num_pairs=None, seed=0):
        return ({"en": f"{split} {i}", "fr": f"f{i}"} for i in range(5))

    monkeypatch.setattr(phrasebook, "generate", generate)
    assert pairs_of(corpus.read_splits(DataConfig(source="image"))["test"])[4] == ("test 4", "f4")
    with pytest.raises(ValueError, match=r"builtin:phrasebook holds text; --source features needs a corpus"):
        corpus.read_splits(DataConfig(source="features"))
