"""Pictures and drawn text as the source side: what is stored, how training varies it, what is doubtful."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import render
from config import SourceConfig
from pictures import PictureInput

FONT = render.packaged_font()


def pictures(max_length=99, **settings):
    return PictureInput(SourceConfig(**settings), FONT, max_length)


def test_drawn_text_is_what_the_renderer_draws():
    source = pictures(font_size=11, word_gap=0.0)
    [row] = source.encode(["a man"])
    assert np.array_equal(source.strip(row), render.Renderer(FONT, 16).strip("a man", 11))


def test_a_picture_of_the_text_is_the_same_source_as_the_text():
    source = pictures()
    [text] = source.encode(["a man é"])
    [picture] = source.encode([render.png(source.strip(text))])
    assert picture.dtype == np.uint8
    assert torch.equal(source.pad([text])[0], source.pad([picture])[0])
    assert source.length(text) == source.length(picture)


def test_a_picture_is_read_from_a_path_too(tmp_path):
    source = pictures()
    path = tmp_path / "strip.png"
    path.write_bytes(render.png(source.strip(source.encode(["a man"])[0])))
    assert np.array_equal(source.encode([path])[0], source.encode([path.read_bytes()])[0])
    with pytest.raises(FileNotFoundError, match=r"no\.png is not there; name a picture"):
        source.encode([tmp_path / "no.png"])


def test_training_draws_in_several_sizes_and_translating_in_one():
    source = pictures(font_size=10, font_size_range=2)
    rows = source.encode(["a man on a bike"])
    widths = {source.pad(rows, np.random.default_rng(i))[0].size(2) for i in range(60)}
    assert len(widths) > 2
    assert {source.pad(rows)[0].size(2) for _ in range(3)} == {source.strip(rows[0]).shape[1]}


def test_without_variation_training_draws_what_translating_does():
    source = pictures(varied_share=0.0)
    rows = source.encode(["a man on a bike"])
    assert torch.equal(source.pad(rows, np.random.default_rng(0))[0], source.pad(rows)[0])


def test_the_same_seed_varies_alike():
    source, rows = pictures(varied_share=1.0), pictures().encode(["a man on a bike", "a man"])
    one, two, other = (source.pad(rows, np.random.default_rng(i))[0] for i in (1, 1, 2))
    assert torch.equal(one, two) and not torch.equal(one, other)


def test_pictures_are_not_varied():
    source = pictures(varied_share=1.0)
    rows = source.encode([render.png(source.strip(source.encode(["a man"])[0]))])
    assert torch.equal(source.pad(rows, np.random.default_rng(0))[0], source.pad(rows)[0])


def test_a_larger_size_makes_no_row_longer_than_the_longest():
    settings = {"font_size": 10, "font_size_range": 5, "patch_width": 8}
    source = pictures(**settings)
    rows = source.encode(["a man on a bike"])
    short = pictures(source.length(rows[0]), **settings)
    lengths = [short.pad(rows, np.random.default_rng(i))[1].size(3) for i in range(30)]
    assert max(lengths) == source.length(rows[0])


def test_patches_that_overlap_are_more():
    rows = pictures().encode(["a man on a bike"])
    assert pictures(patch_width=8, patch_overlap=4).length(rows[0]) > pictures(patch_width=8).length(rows[0])


def test_characters_that_the_font_lacks_are_named():
    assert pictures().warnings("a \U0001f9ff b") == ["the font cannot draw some characters: \U0001f9ff"]
    assert pictures().warnings("a é б") == []


def test_of_many_characters_that_the_font_lacks_twenty_are_listed():
    lacking = [chr(code) for code in range(0x4E00, 0x4E00 + 1_025)]
    [doubt] = pictures().warnings("".join(lacking))
    assert doubt == f"the font cannot draw some characters: {' '.join(lacking[:20])} … and 1,005 more"


def test_the_name_of_a_picture_as_a_sentence_is_doubtful(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sign.PNG").touch()
    assert pictures().warnings("sign.PNG\n") == ["sign.PNG is a file; --image translates pictures"]


@pytest.mark.parametrize("text", ["no.png", "see sign.png", "sign.txt", "folder.png", f"{'a ' * 3_000}.png"])
def test_a_sentence_that_names_no_picture_is_not_doubtful(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    for name in ("sign.png", "sign.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert pictures().warnings(text) == []


def test_a_model_of_pictures_refuses_arrays():
    with pytest.raises(ValueError, match="reads pictures and sentences, got an array"):
        pictures().encode([np.ones((3, 3), np.float32)])


def test_words_begin_at_patches_wherever_they_stand():
    source = pictures(patch_width=40, font_size_range=0)
    rows = source.encode(["a man", "one man", "man"])
    patches = [source.strip(row)[:, i * 40 :][:, :40] for row, i in zip(rows, (1, 1, 0), strict=True)]
    assert all(patch.any() and np.array_equal(patch, patches[0]) for patch in patches)


@pytest.mark.parametrize("change", [{"strip_height": 20}, {"patch_width": 4}, {"font_size": 10}])
def test_the_digest_tells_settings_apart_that_change_what_is_stored_or_its_length(change):
    plain = SourceConfig()
    one, other = (PictureInput(c, FONT, 99).digest for c in (plain, replace(plain, **change)))
    assert one != other
