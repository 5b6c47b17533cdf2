"""Pictures and arrays from wherever a corpus is: the same rows, cleaned and split like text, never stale."""

import io
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
from PIL import Image

import cells
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


def write_lines(path: Path, lines) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def write_sentences(path: Path) -> Path:
    return write_records(path, [{"clip": f"sentence {i}", "de": f"Satz {i}"} for i in range(9)])


def features_of(count, channels=2):
    return [[[float(i + frame)] * channels for frame in range(1 + i % 3)] for i in range(count)]


def config_of(path: Path, source, **settings):
    return DataConfig(dataset=str(path), src="clip", tgt="de", source=source, **settings)


def read_source(path: Path, source, **settings):
    return corpus.read_splits(config_of(path, source, **settings))


def pairs_of(rows):
    return list(zip(rows["src"], rows["tgt"], strict=True))


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


def test_missing_and_frameless_arrays_are_counted(tmp_path):
    clips = [*features_of(4), None, [], features_of(1)[0], features_of(2)[1]]
    table = datasets.Dataset.from_dict(
        {"clip": clips, "de": [*"abcd", "e", "f", None, "b"]}, features=ARRAY2D
    )
    table.to_parquet(tmp_path / "a.parquet")
    dropped = read_source(tmp_path / "a.parquet", "features").report["train"].dropped
    assert dropped["missing"] == (2, [5, 7]) and dropped["one-sided"] == (1, [6])
    assert dropped["duplicate"] == (1, [8])


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
        monkeypatch.setattr(datasets, "load_dataset", lambda *_: datasets.DatasetDict(train=table))
    with pytest.raises(ValueError, match=rf"--dataset {path}: .* the first '0\.png'; .* --source image$"):
        read_source(path, "text")


def test_a_column_of_lists_on_the_hub_taken_for_text_is_refused_with_advice(monkeypatch):
    hub = datasets.DatasetDict(train=datasets.Dataset.from_dict({"clip": features_of(6), "de": ["x"] * 6}))
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: hub)
    with pytest.raises(ValueError, match="row 1: clip must be text, got a list; --source features reads"):
        read_source(Path("someone/corpus"), "text")


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


def test_the_same_corpus_in_two_folders_has_two_sets_of_pictures(tmp_path):
    first, second = write_pictures(tmp_path / "a"), write_pictures(tmp_path / "b")
    draw(tmp_path / "b" / "pictures" / "0.png", 99)
    assert read_source(first, "image").fingerprint != read_source(second, "image").fingerprint
    assert rows_of(read_source(second, "image"))[0][1] == (tmp_path / "b/pictures/0.png").read_bytes()


def test_relative_names_of_one_corpus_are_not_those_of_another(tmp_path, monkeypatch):
    for folder, shade in (("a", 1), ("b", 2)):
        write_pictures(tmp_path / folder)
        draw(tmp_path / folder / "pictures" / "0.png", shade)
        monkeypatch.chdir(tmp_path / folder)
        assert rows_of(read_source(Path("a.jsonl"), "image"))[0][1] == Path("pictures/0.png").read_bytes()


@pytest.mark.parametrize("kind", ["picture", "npy"])
def test_a_named_file_that_changes_is_read_anew_even_with_its_old_time_and_size(tmp_path, kind):
    if kind == "picture":
        path, file, source = write_pictures(tmp_path), tmp_path / "pictures" / "3.png", "image"
    else:
        path, file, source = write_arrays(tmp_path, features_of(6)), tmp_path / "3.npy", "features"
    first, before, old = read_source(path, source), file.stat(), file.read_bytes()
    for shade in (200, 201):
        if kind == "picture":
            draw(file, shade)
        else:
            np.save(file, np.full((1, 2), shade, dtype="f8"))
        new, size = file.read_bytes(), file.stat().st_size
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        second = read_source(path, source)
        assert new != old and size == before.st_size and second.fingerprint != first.fingerprint
        stored = rows_of(second)[3][1]
        assert stored == new if kind == "picture" else np.load(io.BytesIO(stored)).tolist() == [[shade] * 2]
        first, old = second, new


def test_a_named_file_that_goes_is_missed_at_the_next_start(tmp_path):
    path = write_pictures(tmp_path)
    read_source(path, "image")
    (tmp_path / "pictures" / "3.png").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"a\.jsonl, line 4: clip names '.*3\.png', which is not there"
    ):
        read_source(path, "image")


@pytest.mark.parametrize("kind", ["picture", "npy", "saved"])
def test_the_second_start_takes_unchanged_files_from_the_cache(tmp_path, monkeypatch, kind):
    def refuse(*args):
        raise ValueError("read again")

    if kind == "saved":
        path, source = tmp_path / "saved", "features"
        table = datasets.Dataset.from_dict({"clip": features_of(6), "de": list("abcdef")}, features=ARRAY2D)
        table.save_to_disk(path)
    elif kind == "picture":
        path, source = write_pictures(tmp_path), "image"
    else:
        path, source = write_arrays(tmp_path, features_of(6)), "features"
    first = read_source(path, source)
    monkeypatch.setattr(cells, "as_source", refuse)
    monkeypatch.setattr(corpus, "unicodedata", SimpleNamespace(normalize=refuse))
    second = read_source(path, source)
    assert second.fingerprint == first.fingerprint
    assert [rows._fingerprint for rows in first.values()] == [rows._fingerprint for rows in second.values()]


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


def test_a_picture_with_several_translations_stays_on_one_side(tmp_path):
    path = write_pictures(tmp_path, count=30)
    write_records(path, [{"clip": f"pictures/{i // 3}.png", "de": f"Satz {i}"} for i in range(90)])
    splits = read_source(path, "image")
    sides = [set(splits[split]["src"]) for split in ("train", "validation", "test")]
    assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]


def test_a_carved_split_of_arrays_is_the_same_for_scoring(tmp_path):
    path = write_arrays(tmp_path, features_of(20))
    config = config_of(path, "features")
    rows, _ = corpus.read_split(config, "test")
    assert rows[:] == corpus.read_splits(config)["test"][:] and isinstance(rows[0]["src"], bytes)


def test_texts_gives_the_target_side_alone(tmp_path):
    rows = read_source(write_pictures(tmp_path), "image")["train"]
    assert list(corpus.texts(rows, ("tgt",))) == list(rows["tgt"])


def test_arrays_and_pictures_of_the_hub_are_read(tmp_path, monkeypatch):
    features = datasets.Features({**ARRAY2D, "picture": datasets.Image()})
    pictures = [draw(tmp_path / "a.png", shade).read_bytes() for shade in range(7)]
    columns = {"clip": [*features_of(6), None], "de": list("abcdefg")}
    columns["picture"] = [{"bytes": picture, "path": None} for picture in pictures]
    hub = datasets.DatasetDict(train=datasets.Dataset.from_dict(columns, features=features))
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: hub)
    config = config_of(Path("someone/corpus"), "features")
    splits = corpus.read_splits(config)
    assert arrays_of(splits) == features_of(6) and splits.report["train"].dropped["missing"] == (1, [7])
    splits = corpus.read_splits(replace(config, src="picture", source="image"))
    assert [src for _, src, _ in rows_of(splits)] == pictures


def test_paths_of_the_hub_begin_in_the_current_folder(tmp_path, monkeypatch):
    write_arrays(tmp_path, features_of(6))
    hub = datasets.DatasetDict(
        train=datasets.Dataset.from_dict({"clip": [f"{i}.npy" for i in range(6)], "de": list("abcdef")})
    )
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: hub)
    config = config_of(Path("someone/corpus"), "features")
    monkeypatch.chdir(tmp_path)
    assert arrays_of(corpus.read_splits(config)) == features_of(6)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match=r"someone/corpus, train, row 1: clip names '.*other/0\.npy'"):
        corpus.read_splits(config)


def test_text_that_datasets_has_saved_is_read_without_a_trace_beside_it(tmp_path):
    table = datasets.Dataset.from_dict({"clip": [f"a{i}" for i in range(9)], "de": ["b"] * 9})
    datasets.DatasetDict(train=table, dev=table.select(range(2))).save_to_disk(tmp_path / "c")
    before = sorted((tmp_path / "c").rglob("*"))
    splits = read_source(tmp_path / "c", "text")
    assert len(splits["validation"]) == 2 and len(splits["train"]) == 6
    assert sorted((tmp_path / "c").rglob("*")) == before


def test_the_built_in_corpus_is_text_to_draw_and_no_features(monkeypatch):
    def generate(split, num_pairs=None, seed=0):
        return ({"en": f"{split} {i}", "fr": f"f{i}"} for i in range(5))

    monkeypatch.setattr(phrasebook, "generate", generate)
    assert pairs_of(corpus.read_splits(DataConfig(source="image"))["test"])[4] == ("test 4", "f4")
    with pytest.raises(ValueError, match=r"builtin:phrasebook holds text; --source features needs a corpus"):
        corpus.read_splits(DataConfig(source="features"))
