"""Rows in the cache: found again at the next start, and never stale."""

import io
import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
from test_origins import (
    ARRAY2D,
    draw,
    features_of,
    numbered,
    own_cache,
    read,
    read_source,
    rows_of,
    write_arrays,
    write_jsonl,
    write_pictures,
)

import cells
import cleaning
import lines
import readers
import row_cache

__all__ = ["own_cache"]  # a fixture


def test_two_names_for_one_split_are_both_kept(tmp_path):
    assert row_cache.name_splits({"dev": 1, "val": 2, "train": 3}) == {"train": 3, "validation": 1, "val": 2}
    assert row_cache.name_splits({"dev": 1, "validation": 2}) == {"validation": 2, "dev": 1}
    assert row_cache.name_splits({"Books": 1}) == {"train": 1}


def test_a_file_that_changes_is_read_anew_even_with_its_old_time_and_size(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", numbered(9))
    before, first = path.stat(), read(path)
    path.write_text(path.read_text(encoding="utf-8").replace("Satz 1", "Satz X"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = read(path)
    texts = [tgt for rows in second.values() for tgt in rows["tgt"]]
    assert "Satz X" in texts and "Satz 1" not in texts
    assert path.stat().st_size == before.st_size and first.fingerprint != second.fingerprint


def test_the_second_start_reads_from_the_cache(tmp_path, monkeypatch):
    def refuse(*args):
        raise ValueError("read again")

    path = write_jsonl(tmp_path / "a.jsonl", numbered(9))
    first = read(path)
    monkeypatch.setattr(cells, "rows_of", refuse)
    monkeypatch.setattr(cleaning, "unicodedata", SimpleNamespace(normalize=refuse))
    assert read(path).fingerprint == first.fingerprint
    with pytest.raises(ValueError, match="read again"):
        read(write_jsonl(tmp_path / "b.jsonl", numbered(8)))


def test_a_change_in_the_module_that_makes_rows_gives_them_another_name(tmp_path):
    (tmp_path / "own.py").write_text("def rows():\n    yield 1\n")
    rows = runpy.run_path(str(tmp_path / "own.py"))["rows"]
    before = row_cache.code_of(rows)
    assert row_cache.code_of(rows) == before
    (tmp_path / "own.py").write_text("def rows():\n    yield 2\n")
    assert row_cache.code_of(rows) != before


@pytest.mark.parametrize("module", [cells, lines, readers, row_cache])
def test_a_change_in_what_reads_files_gives_rows_another_name(tmp_path, monkeypatch, module):
    before = row_cache.code_of(write_jsonl)
    (tmp_path / "changed.py").write_text("# another version\n")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "changed.py"))
    assert row_cache.code_of(write_jsonl) != before


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
    monkeypatch.setattr(cleaning, "unicodedata", SimpleNamespace(normalize=refuse))
    second = read_source(path, source)
    assert second.fingerprint == first.fingerprint
    assert [rows._fingerprint for rows in first.values()] == [rows._fingerprint for rows in second.values()]
