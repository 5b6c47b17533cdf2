"""What `datasets` provides, from the Hub or from disk: the same rows, and one line for what is not there."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest
from test_origins import (
    ARRAY2D,
    arrays_of,
    config_of,
    draw,
    features_of,
    own_cache,
    pairs_of,
    read_source,
    rows_of,
    write_arrays,
)

import corpus
from config import DataConfig

__all__ = ["own_cache"]  # a fixture


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


def test_a_column_of_lists_on_the_hub_taken_for_text_is_refused_with_advice(monkeypatch):
    hub = datasets.DatasetDict(train=datasets.Dataset.from_dict({"clip": features_of(6), "de": ["x"] * 6}))
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: hub)
    with pytest.raises(ValueError, match="row 1: clip must be text, got a list; --source features reads"):
        read_source(Path("someone/corpus"), "text")


def test_arrays_and_pictures_of_the_hub_are_read(tmp_path, monkeypatch):
    features = datasets.Features({**ARRAY2D, "picture": datasets.Image()})
    pictures = [draw(tmp_path / "a.png", shade).read_bytes() for shade in range(7)]
    columns = {"clip": [*features_of(6), None], "de": list("abcdefg")}
    columns["picture"] = [{"bytes": picture, "path": None} for picture in pictures]
    hub = datasets.DatasetDict(train=datasets.Dataset.from_dict(columns, features=features))
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: hub)
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
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: hub)
    config = config_of(Path("someone/corpus"), "features")
    monkeypatch.chdir(tmp_path)
    assert arrays_of(corpus.read_splits(config)) == features_of(6)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match=r"someone/corpus, train, row 1: clip names '.*other/0\.npy'"):
        corpus.read_splits(config)


def test_a_saved_corpus_whose_list_of_splits_is_none_is_refused(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "dataset_dict.json").write_text("[]")
    with pytest.raises(ValueError, match="c cannot be read: "):
        read_source(tmp_path / "c", "text")


def test_text_that_datasets_has_saved_is_read_without_a_trace_beside_it(tmp_path):
    table = datasets.Dataset.from_dict({"clip": [f"a{i}" for i in range(9)], "de": ["b"] * 9})
    datasets.DatasetDict(train=table, dev=table.select(range(2))).save_to_disk(tmp_path / "c")
    before = sorted((tmp_path / "c").rglob("*"))
    splits = read_source(tmp_path / "c", "text")
    assert len(splits["validation"]) == 2 and len(splits["train"]) == 6
    assert sorted((tmp_path / "c").rglob("*")) == before
