"""Local files to pairs of strings: nothing shifted, nothing guessed, every broken row named."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cells
import readers


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, src: str = "en", tgt: str = "de"):
    src, tgt = readers.match_fields(readers.fields_of(path), src, tgt, str(path))
    table = cells.Table(readers.records(path, (src[0], tgt[0])), src, tgt)
    return [(row["src"], row["tgt"]) for row in cells.rows_of([table], "text")]


@pytest.mark.parametrize("word", ["null", "NA", "nan", "None", "N/A", "true"])
def test_words_that_look_like_missing_values_in_csv_are_text(tmp_path, word):  # fault 14
    assert read(write(tmp_path / "a.csv", f"en,de\n{word},x\nx,{word}\n")) == [(word, "x"), ("x", word)]


@pytest.mark.parametrize("name, separator", [("a.csv", ","), ("a.tsv", "\t")])
def test_columns_of_numbers_alone_stay_as_they_are_written(tmp_path, name, separator):
    rows = [("en", "de"), ("1984", "007"), ("1.50", "1e5")]
    path = write(tmp_path / name, "".join(separator.join(row) + "\n" for row in rows))
    assert read(path) == rows[1:]


def test_numbers_in_json_stay_as_they_are_written(tmp_path):
    path = write(
        tmp_path / "a.jsonl", '{"en": 1984, "de": 1.50}\n{"en": "007", "de": 12345678901234567890}\n'
    )
    assert read(path) == [("1984", "1.50"), ("007", "12345678901234567890")]


def test_text_that_looks_like_a_date_stays_text(tmp_path):
    assert read(write(tmp_path / "a.jsonl", '{"en": "2020-01-01", "de": "2020-01-01"}\n')) == [
        ("2020-01-01",) * 2
    ]


def test_blank_cells_are_blank_and_absent_ones_missing_in_csv(tmp_path):  # fault 14
    path = write(tmp_path / "a.csv", "en,de\na,\n,\nb\n\nc,d\n")
    assert read(path) == [("a", ""), ("", ""), ("b", None), ("", ""), ("c", "d")]


def test_null_and_absent_keys_are_missing_in_json(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"en": "a", "de": "b"}\n{"en": null, "de": "b"}\n{"en": "a"}\n\n')
    assert read(path) == [("a", "b"), (None, "b"), ("a", None), ("", "")]


def test_a_csv_cell_may_hold_separators_quotes_and_line_ends(tmp_path):
    path = write(tmp_path / "a.csv", 'en,de\n"a, ""b""\nc",d\n"e\u2028\r\x0bf",g\rh\n')
    assert read(path) == [('a, "b"\nc', "d"), ("e\u2028\r\x0bf", "g\rh")]


def test_quotation_marks_in_tsv_are_characters(tmp_path):
    path = write(tmp_path / "a.tsv", 'en\tde\n"Hi\tHallo"\nb\t"c" d\n')
    assert read(path) == [('"Hi', 'Hallo"'), ("b", '"c" d')]


def test_a_csv_row_with_too_many_cells_is_named(tmp_path):
    path = write(tmp_path / "a.csv", "en,de\na,b\nOh, yes,Ja\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 3: 3 cells, but the header has 2"):
        read(path)


def test_an_unclosed_quotation_mark_in_csv_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.csv, line 3: not valid CSV"):
        read(write(tmp_path / "a.csv", 'en,de\n"a,b\nc,d\n'))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\x00"])
def test_lines_end_at_lf_alone(tmp_path, separator):  # fault 15
    path = write(tmp_path / "a.en", f"one{separator}half\ntwo\n")
    assert list(readers.texts_of(path)) == [f"one{separator}half", "two"]


def test_crlf_ends_a_line_and_the_last_line_need_not_end(tmp_path):
    assert list(readers.texts_of(write(tmp_path / "a.en", "one\r\n\r\ntwo"))) == ["one", "", "two"]


def test_the_number_of_lines_is_what_reading_gives(tmp_path):
    for content in ("", "a", "a\n", "a\n\n", "a\rb\u2028c\nd"):
        path = write(tmp_path / "a.en", content)
        assert readers.inspect(path).num_lines == len(list(readers.texts_of(path))), content


def test_a_byte_order_mark_is_dropped_at_the_start_alone(tmp_path):
    path = write(tmp_path / "a.en", "\ufeffone\n\ufefftwo\n")
    assert list(readers.texts_of(path)) == ["one", "\ufefftwo"]
    assert read(write(tmp_path / "a.csv", "\ufeffen,de\na,b\n")) == [("a", "b")]
    assert read(write(tmp_path / "a.jsonl", '\ufeff{"en": "a", "de": "b"}\n')) == [("a", "b")]
    assert read(write(tmp_path / "a.json", '\ufeff[{"en": "a", "de": "b"}]')) == [("a", "b")]


@pytest.mark.parametrize("name", ["a.en", "a.csv", "a.tsv", "a.jsonl", "a.json"])
def test_invalid_utf8_is_named_with_its_line(tmp_path, name):
    path = write(tmp_path / name, b"en,de\ncaf\xe9,x\n")
    with pytest.raises(ValueError, match=rf"{name}, line 2: byte 0xe9 is not valid UTF-8"):
        readers.inspect(path)


def test_half_a_surrogate_pair_in_json_is_named(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"en": "a", "de": "b"}\n{"en": "\\ud83d", "de": "b"}\n')
    with pytest.raises(ValueError, match=r"line 2: en holds half of a surrogate pair"):
        read(path)


@pytest.mark.parametrize(
    "line, reason",
    [
        ('{"en": "a", "de": ', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["a", "b"]', "expected an object"),
        ('{"en": ["a"], "de": "b"}', "en must be text, got a list"),
    ],
)
def test_a_broken_json_line_is_named(tmp_path, line, reason):
    path = write(tmp_path / "a.jsonl", f'{{"en": "a", "de": "b"}}\n{line}\n')
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 2.*{reason}") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_a_json_array_gives_the_same_rows_as_json_lines(tmp_path):
    rows = [{"id": 1, "en": "a", "de": "b"}, {"id": 2, "en": "c\u2028", "de": "d"}]
    lines = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    array = write(tmp_path / "a.json", json.dumps(rows, indent=1))
    assert read(array) == read(lines) == [("a", "b"), ("c\u2028", "d")]


def test_a_translation_column_gives_its_languages(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"id": "0", "translation": {"en": "a", "de": "b"}}\n')
    assert read(path) == [("a", "b")]
    pq.write_table(pa.table({"translation": [{"en": "a", "de": "b"}, None]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [("a", "b"), (None, None)]


def test_a_flat_column_goes_before_a_key_of_a_translation_column(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"en": "flat", "de": "b", "translation": {"en": "nested"}}\n')
    assert read(path) == [("flat", "b")]


def test_objects_of_other_columns_are_not_searched_for_languages(tmp_path):
    path = write(
        tmp_path / "a.jsonl", '{"translation": {"en": "a", "de": "b"}, "scores": {"en": 1, "de": 2}}\n'
    )
    assert read(path) == [("a", "b")]


def test_parquet_gives_text_numbers_and_nulls(tmp_path):
    pq.write_table(pa.table({"en": ["a", None, "null"], "de": [1984, 7, None]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [("a", "1984"), (None, "7"), ("null", None)]


def test_what_is_not_parquet_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.parquet is not a Parquet file"):
        read(write(tmp_path / "a.parquet", "en,de\n"))


def test_another_kind_of_file_is_refused_with_the_kinds_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"a\.xlsx: cannot read .* \.jsonl, \.json, \.csv, \.tsv, \.parquet"):
        read(write(tmp_path / "a.xlsx", "x"))


@pytest.mark.parametrize(
    "wanted, names, expected",
    [
        ("pt", ["pt", "pt_BR", "en"], "pt"),
        ("PT", ["pt", "en"], "pt"),
        ("pt-br", ["pt_BR", "pt_PT", "en"], "pt_BR"),
        ("pt_BR", ["pt", "en"], "pt"),
        ("pt", ["en", "pt_BR"], "pt_BR"),
        ("pt-PT", ["en", "pt_BR"], "pt_BR"),
        ("zh", ["en", "zh-Hans"], "zh-Hans"),
    ],
)
def test_a_language_matches_loosely_at_the_strictest_level(wanted, names, expected):  # fault 13
    assert readers.match_sides(names, wanted, "en", "x") == (expected, "en")


def test_an_ambiguous_language_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"--src pt could be several of x: pt_BR, pt_PT"):
        readers.match_sides(["pt_BR", "pt_PT", "en"], "pt", "en", "x")


def test_a_language_that_is_not_there_is_refused_with_those_that_are():  # fault 13
    with pytest.raises(ValueError, match=r"--tgt fr is not in x; there is: id, en, de"):
        readers.match_sides(["id", "en", "de"], "en", "fr", "x")


def test_both_languages_on_one_column_are_refused():
    with pytest.raises(ValueError, match=r"--src pt_PT and --tgt pt_BR are both pt"):
        readers.match_sides(["pt", "en"], "pt_PT", "pt_BR", "x")


def test_text_files_are_found_by_prefix_and_in_a_folder(tmp_path):
    for name in ("Books.de-en.en", "Books.de-en.de", "dev.en", "dev.de", "notes.txt"):
        write(tmp_path / name, "x\n")
    prefix = tmp_path / "Books.de-en"
    assert readers.aligned_files(prefix, "en", "de-AT") == {
        "Books.de-en": (tmp_path / "Books.de-en.en", tmp_path / "Books.de-en.de")
    }
    assert set(readers.aligned_files(tmp_path, "en", "de")) == {"Books.de-en", "dev"}
    assert readers.aligned_files(tmp_path / "other", "en", "de") == {}


def test_a_text_file_without_its_other_side_is_named_with_those_there_are(tmp_path):
    write(tmp_path / "c.en", "x\n")
    write(tmp_path / "c.fr", "x\n")
    with pytest.raises(
        ValueError,
        match=r"--tgt de is not in the text files .*c\.\*, whose last part is the language; there is: en, fr",
    ):
        readers.aligned_files(tmp_path / "c", "en", "de")


def test_a_very_long_cell_of_a_csv_file_is_read(tmp_path):
    path = write(tmp_path / "a.csv", f"en,de\n{'x' * 200_000},y\n")
    [(src, _)] = read(path)
    assert len(src) == 200_000


def test_a_csv_file_without_a_header_is_told_what_it_lacks():
    with pytest.raises(
        ValueError, match="--src en is not in the columns of a.csv, which its first line must name; "
    ):
        readers.match_fields([("A man.",), ("Ein Mann.",)], "en", "de", "a.csv")


def test_columns_of_lists_and_pictures_are_found_by_their_names(tmp_path):
    rows = [{"clip": [[1.0]], "image": {"bytes": b"", "path": ""}, "translation": {"en": "a", "de": "b"}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    fields = [("clip",), ("image",), ("translation", "en"), ("translation", "de")]
    assert sorted(readers.fields_of(tmp_path / "a.parquet")) == sorted(fields)
    assert readers.match_fields(fields, "clip", "de", "x") == (("clip",), ("translation", "de"))
    with pytest.raises(
        ValueError, match="--src speech is not in the columns of x; there is: clip, image, en"
    ):
        readers.match_fields(fields, "speech", "de", "x")


@pytest.mark.parametrize(
    "content", ["[]", " [ ]\n", '[{"en": "a", "de": "b"}]', '[{"en": "a", "de": "b"} ,{}\n]\n']
)
def test_a_json_array_is_read_item_by_item_as_a_whole(tmp_path, content):
    path = write(tmp_path / "a.json", content)
    assert [dict(record) for _, record in readers.records(path, ["en", "de"])] == json.loads(content)


@pytest.mark.parametrize("content", ["[", '[{"en": "a"}', '[{"en": "a"} {}]', "[{}] x", "[,]", '[{"en": }]'])
def test_a_broken_json_array_is_named(tmp_path, content):
    with pytest.raises(ValueError, match=r"a\.json.*: not valid JSON"):
        list(readers.records(write(tmp_path / "a.json", content), ["en"]))


def test_rows_are_named_with_file_and_line_or_row(tmp_path):
    pq.write_table(pa.table({"en": ["a", "b"], "de": ["c", "d"]}), tmp_path / "a.parquet")
    write(tmp_path / "a.csv", 'en,de\n"a\nb",c\n\nd,e\n')
    write(tmp_path / "a.jsonl", '\n{"en": "a"}\n')
    for name, places in {
        "a.parquet": ["row 1", "row 2"],
        "a.csv": ["line 3", "line 4", "line 5"],
        "a.jsonl": ["line 1", "line 2"],
    }.items():
        path = tmp_path / name
        assert [where for where, _ in readers.records(path, ["en", "de"])] == [f"{path}, {p}" for p in places]
