"""Cells of a source column: what is stored of them, and which are refused with their place."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import cells
import readers

PNG, FIELD, WHERE = b"\x89PNG\r\n\x1a\n...", ("clip",), "a.jsonl, line 7"


def store(cell, kind, folder=Path()):
    return cells.as_source({"clip": cell}, FIELD, kind, WHERE, folder)


def load(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


def save(folder, array, name="x.npy"):
    np.save(folder / name, array, allow_pickle=True)
    return name


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_nested_lists_become_a_npy_file_of_float32_in_c_order():
    data = store([[1, 2.5, -3], [4, 5, 6]], "features")
    array = load(data)
    assert array.dtype == np.dtype("<f4") and array.flags.c_contiguous
    assert array.tolist() == [[1, 2.5, -3], [4, 5, 6]] and cells.num_channels(data) == 3


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i1", "u2", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_npy_file_of_any_numbers_is_stored_like_the_same_lists(tmp_path, dtype, order):
    array = np.arange(12).reshape(4, 3).astype(dtype, order=order)
    assert store(save(tmp_path, array), "features", tmp_path) == store(array.tolist(), "features")


@pytest.mark.parametrize("kind", ["picture", "features"])
def test_nothing_is_missing_and_a_blank_cell_is_empty(kind):
    assert store(None, kind) is None and store(float("nan"), kind) is None
    assert cells.as_source({}, FIELD, kind, WHERE, Path()) == store(" ", kind) == b""


def test_no_frame_is_empty(tmp_path):
    assert store([], "features") == b""
    assert store(save(tmp_path, np.zeros((0, 80))), "features", tmp_path) == b""


@pytest.mark.parametrize(
    "cell, reason",
    [
        ([1.0, 2.0], "must have two dimensions"),
        ([[[1.0]]], "must have two dimensions"),
        ([[1.0], 2.0], "must have two dimensions"),
        ([[1.0], None], "must have two dimensions"),
        ([[1.0, 2.0], [1.0]], "frame 2 has 1 channels, but frame 1 has 2"),
        ([[], []], "has 2 frames, but no channel"),
        ([["1", 2.0]], "must hold numbers, got a str"),
        ([[True, 2.0]], "must hold numbers, got a bool"),
        ([[1.0, 2.0], [3.0, float("nan")]], "frame 2, channel 2 is nan in float32, not a finite number"),
        ([[1.0, None]], "frame 1, channel 2 is nan in float32, not a finite number"),
        ([[1e39, 2.0]], "frame 1, channel 1 is inf in float32, not a finite number"),
        ("hello", r"must be an array \(frames × channels\) or the path of a .npy file, got 'hello'"),
        ({"bytes": b"x", "path": "x.npy"}, "must be an array"),
        (5, "must be an array"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_with_its_place(cell, reason):
    with pytest.raises(ValueError, match=rf"^a\.jsonl, line 7: clip:? {reason}") as error:
        store(cell, "features")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "array, reason",
    [
        (np.zeros(3), r"must have two dimensions \(frames × channels\), got 1"),
        (np.zeros((2, 2), bool), "must hold numbers, got bool"),
        (np.zeros((2, 2), "U3"), "must hold numbers, got <U3"),
        (np.zeros((2, 2), "c8"), "must hold numbers, got complex64"),
        (np.array([[Bomb()]]), "is not a .npy file of numbers .Object arrays cannot be loaded"),
    ],
)
def test_a_npy_file_of_something_else_is_refused(tmp_path, monkeypatch, array, reason):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"^a\.jsonl, line 7: clip names '.*x\.npy', which {reason}"):
        store(save(tmp_path, array), "features", tmp_path)
    assert not Path("exploded").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an array",
        b"PK\x03\x04 a zip file",
        pickle.dumps(Bomb()),
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',",
        b"\x93NUMPY\x01\x00\x43\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 80)}",
    ],
)
def test_a_broken_npy_file_is_one_line(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"line 7: clip names '.*x\.npy', which is not a \.npy file"
    ) as error:
        store("x.npy", "features", tmp_path)
    assert "\n" not in str(error.value) and not Path("exploded").exists()


def test_a_truncated_npy_file_is_refused(tmp_path):
    save(tmp_path, np.ones((4, 3)))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"is not a \.npy file of numbers .*EOF"):
        store("x.npy", "features", tmp_path)


@pytest.mark.parametrize("kind, name", [("features", "x.npy"), ("picture", "x.png")])
def test_a_file_that_is_not_there_is_named_with_the_row(tmp_path, kind, name):
    with pytest.raises(FileNotFoundError, match=rf"line 7: clip names '.*{name}', which is not there"):
        store(name, kind, tmp_path)


@pytest.mark.parametrize("kind, name", [("features", "x.npy"), ("picture", "x.png")])
def test_a_pipe_and_a_folder_are_not_read(tmp_path, kind, name):
    for make in (os.mkfifo, os.mkdir):
        make(tmp_path / f"{make.__name__}{name}")
        with pytest.raises(ValueError, match="which cannot be read: it is not a file"):
            store(f"{make.__name__}{name}", kind, tmp_path)


@pytest.mark.parametrize("name", ["a\0.npy", f"{'a' * 5_000}.npy", "a\nb.npy", "\ud800.npy"])
def test_a_name_that_no_file_can_have_is_one_line(tmp_path, name):
    with pytest.raises((ValueError, FileNotFoundError), match="line 7: clip names ") as error:
        store(name, "features", tmp_path)
    assert "\n" not in str(error.value)


def test_paths_begin_in_the_folder_at_home_or_at_the_root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cells.named_file("a/b.npy", tmp_path) == tmp_path / "a" / "b.npy"
    assert cells.named_file(" ~/b.npy\n", tmp_path) == tmp_path / "home" / "b.npy"
    assert cells.named_file("/b.npy", tmp_path) == Path("/b.npy")


def test_a_picture_is_its_bytes_or_those_of_the_file_it_names(tmp_path):
    (tmp_path / "x.PNG").write_bytes(PNG)
    for cell in (
        "x.PNG",
        {"bytes": PNG, "path": "gone.png"},
        {"bytes": None, "path": "x.PNG"},
        {"path": "x.PNG"},
        PNG,
    ):
        assert store(cell, "picture", tmp_path) == PNG, cell
    assert store({"bytes": None, "path": None}, "picture") is None


@pytest.mark.parametrize(
    "cell", ["a sentence", 5, ["x.png"], {"file": "x.png"}, {"bytes": "text", "path": None}]
)
def test_what_is_no_picture_is_refused_with_its_place(cell):
    with pytest.raises(ValueError, match=r"^a\.jsonl, line 7: clip must be a picture or the path of one"):
        store(cell, "picture")


@pytest.mark.parametrize(
    "column, kind",
    [
        (["a.png", None, " ", "B.JPEG "], "picture"),
        ([{"bytes": b"", "path": None}], "picture"),
        ([None, b"..."], "picture"),
        (["A sentence.", "png", None, 5], "text"),
        ([None, ""], "text"),
        ([], "text"),
        (["A sentence."] * 1_000 + ["a.png"], "text"),
    ],
)
def test_a_column_holds_pictures_or_sentences(column, kind):
    assert cells.picture_or_text(iter(column), "x") == kind


def test_a_column_of_pictures_and_sentences_is_refused_with_one_of_each():
    with pytest.raises(ValueError, match=r"^x: .* it has 'b\.gif' and 'A cat\.'$"):
        cells.picture_or_text(["A cat.", "b.gif", "c.gif"], "x")


@pytest.mark.parametrize(
    "column",
    [
        ["a.png", "A cat."],
        ["A cat.", "a.png", "b.png"],
        ["a.png", 5],
        [[[1.0]], "a.npy"],
        [{"bytes": b"", "path": "a.png"}],
        ["Open a.png."],
        [None, "", " "],
        [],
    ],
)
def test_a_column_with_anything_but_paths_is_text(column):
    cells.require_sentences(column, "x")


def test_a_column_is_read_no_further_than_to_its_first_sentence():
    column = iter([None, "a.png", "A cat.", "b.png"])
    cells.require_sentences(column, "x")
    assert list(column) == ["b.png"]


@pytest.mark.parametrize(
    "column, first, source",
    [
        (["a.png"], "a.png", "image"),
        ([None, "a/b.JPG ", "", "c.npy"], "a/b.JPG ", "image"),
        (["a b.npy"] * 1_000 + ["A cat."], "a b.npy", "features"),
    ],
)
def test_paths_taken_for_text_are_refused_with_the_source_that_reads_them(column, first, source):
    with pytest.raises(ValueError, match=f"^x: .* the first '{first}'; .* with --source {source}$"):
        cells.require_sentences(column, "x")


@pytest.mark.parametrize("cell, name", [([[1.0]], "list"), ({"path": "a.png"}, "dict"), (PNG, "bytes")])
def test_an_array_or_a_picture_taken_for_text_is_refused_with_the_sources_that_read_them(cell, name):
    reason = f"clip must be text, got a {name}; --source features reads arrays, --source image pictures"
    with pytest.raises(ValueError, match=f"^a.jsonl, line 7: {reason}$"):
        store(cell, "text")


def test_a_broken_string_is_refused_without_advice():
    with pytest.raises(ValueError, match="which is not valid Unicode$"):
        store("\ud800", "text")


def test_a_json_number_is_told_from_a_string(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"clip": [[1, 2.5e0]]}\n{"clip": [[1, "2.5"]]}\n')
    (_, number), (_, string) = readers.records(path, ["clip"])
    assert load(cells.as_source(number, FIELD, "features", WHERE, tmp_path)).tolist() == [[1, 2.5]]
    with pytest.raises(ValueError, match="must hold numbers, got a str"):
        cells.as_source(string, FIELD, "features", WHERE, tmp_path)


def test_a_change_of_a_file_changes_its_stamp_even_with_its_old_time_and_size(tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(b"old")
    before, first = path.stat(), cells.stamp(path)
    path.write_bytes(b"new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cells.stamp(path) != first and first.endswith(f" {path}")
    path.unlink()
    assert cells.stamp(path) == f" {path}"
