"""The source side as data: what is stored, how long it is, how it is padded; the model folder keeps what it needs."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import inputs
import render
from config import Config, DataConfig, ModelConfig, SourceConfig
from inputs import FeatureInput, PictureInput, TextInput
from tokenizer import EOS_ID, PAD_ID, Tokenizer

TOKENIZER = Tokenizer.train(["a man on a bike", "ein Mann auf einem Rad"], 270)
FONT = render.packaged_font()
RNG = np.random.default_rng(0)


def pictures(max_length=99, **settings):
    return PictureInput(SourceConfig(**settings), FONT, max_length)


def features(stride=2, channels=3):
    return FeatureInput(stride, np.zeros(channels, np.float32), np.ones(channels, np.float32))


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def frames(length, channels=3, seed=0):
    return np.random.default_rng(seed).normal(size=(length, channels)).astype(np.float32)


# ---- every kind


KINDS = {
    "text": (TextInput(TOKENIZER), ["a man", "a man on a bike", ""]),
    "drawn": (pictures(), ["a man", "a man on a bike", "é"]),
    "features": (features(), [frames(5), frames(1), frames(12)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_shows_as_many_tokens_as_the_length(kind):
    source, cells = KINDS[kind]
    rows = source.encode(cells)
    _, mask = source.pad(rows)
    assert mask.dtype == torch.bool and mask.shape[1:3] == (1, 1)
    assert mask[:, 0, 0].sum(1).tolist() == [source.length(row) for row in rows]
    assert all(row.tolist() == sorted(row.tolist(), reverse=True) for row in mask[:, 0, 0])


@pytest.mark.parametrize("kind", ["drawn", "features"])
def test_the_front_end_gives_a_vector_for_each_token_the_same_alone_and_in_a_batch(kind):
    source, cells = KINDS[kind]
    torch.manual_seed(0)
    front = source.embedding(16)
    rows = source.encode(cells)
    src, mask = source.pad(rows)
    together = front(src)
    assert together.shape == (len(cells), mask.size(3), 16)
    for i, row in enumerate(rows):
        alone = front(source.pad([row])[0])[0]
        torch.testing.assert_close(alone, together[i, : len(alone)], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_arrow_type_is_that_of_the_stored_values(kind):
    source, cells = KINDS[kind]
    assert {str(row.dtype) for row in source.encode(cells)} == {source.arrow_type(isinstance(cells[0], str))}


# ---- text


def test_text_is_closed_by_eos_and_padded():
    src, _ = TextInput(TOKENIZER).pad([np.array([7], np.int32), np.array([], np.int32)])
    assert src.tolist() == [[7, EOS_ID], [EOS_ID, PAD_ID]]


def test_bpe_dropout_varies_training_batches_alone():
    source = TextInput(TOKENIZER, bpe_dropout=0.9, max_length=99)
    rows = source.encode(["a man on a bike"])
    assert source.pad(rows, np.random.default_rng(0))[0].size(1) > source.pad(rows)[0].size(1)
    again = [source.pad(rows, np.random.default_rng(4))[0] for _ in range(2)]
    assert torch.equal(*again)


def test_bpe_dropout_makes_no_source_longer_than_the_longest():
    source = TextInput(TOKENIZER, bpe_dropout=0.9, max_length=9)
    rows = source.encode(["a man on a"])
    assert source.length(rows[0]) <= 9
    assert all(source.pad(rows, np.random.default_rng(i))[0].size(1) <= 9 for i in range(20))


# ---- pictures


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
    assert pictures().doubts("a \U0001f9ff b") == ["the font cannot draw some characters: \U0001f9ff"]
    assert pictures().doubts("a é б") == []


def test_a_model_of_pictures_refuses_arrays():
    with pytest.raises(ValueError, match="reads pictures and sentences, got an array"):
        pictures().encode([frames(3)])


def test_words_begin_at_patches_wherever_they_stand():
    source = pictures(patch_width=40, font_size_range=0)
    rows = source.encode(["a man", "one man", "man"])
    patches = [source.strip(row)[:, i * 40 :][:, :40] for row, i in zip(rows, (1, 1, 0), strict=True)]
    assert all(patch.any() and np.array_equal(patch, patches[0]) for patch in patches)


# ---- features


def test_statistics_are_those_of_all_frames_of_the_rows():
    cells = [frames(50, seed=1) * [1, 20, 300] + [5, -7000, 9e5], frames(3, seed=2), frames(200, seed=3)]
    source = FeatureInput.of_rows(2, [npy(cell.astype(np.float32)) for cell in cells])
    whole = np.concatenate([cell.astype(np.float32) for cell in cells]).astype(np.float64)
    np.testing.assert_allclose(source.mean, whole.mean(0), rtol=1e-5)
    np.testing.assert_allclose(source.std, whole.std(0), rtol=1e-4)


def test_normalised_training_frames_have_mean_0_and_deviation_1():
    cell = frames(500) * 7 + 30
    source = FeatureInput.of_rows(1, [npy(cell)])
    normal = source.normalised(source.encode([npy(cell)])[0])
    np.testing.assert_allclose(normal.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(normal.std(0), 1, atol=1e-4)


def test_a_channel_that_never_changes_becomes_zero():
    cell = frames(20)
    cell[:, 1] = 123_456.7
    source = FeatureInput.of_rows(1, [npy(cell)])
    assert not source.normalised(source.encode([cell])[0])[:, 1].any()


def test_padded_frames_are_zero_after_normalising():
    source = FeatureInput(1, np.full(3, 5, np.float32), np.ones(3, np.float32))
    src, _ = source.pad(source.encode([frames(4), frames(2)]))
    assert src.shape == (2, 4, 3) and not src[1, 2:].any() and src[1, :2].all()


def test_a_stride_shortens_and_rounds_up():
    source = features(stride=4)
    assert [source.length(row) for row in source.encode([frames(n) for n in (1, 4, 5, 8)])] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    "cell, message",
    [
        ("a man", r"reads features \(frames × 3\), got text; give a \.npy file"),
        (frames(4, channels=5), "features: 4 × 5, but this model reads frames × 3"),
        (np.zeros(7, np.float32), "features: 7, but this model reads frames × 3"),
        (np.zeros((0, 3), np.float32), "features: 0 × 3, but"),
        (np.full((2, 3), np.nan, np.float32), "values that are not finite"),
        (b"", "features is not a .npy file"),
        (b"\x93NUMPY broken", "features is not a .npy file"),
        (npy(frames(9))[:-8], "features is not a .npy file"),
        (npy(np.array([["a", "b"]])), "features must hold numbers, got"),
    ],
)
def test_what_are_no_features_of_this_model_is_said_in_one_line(cell, message):
    with pytest.raises(ValueError, match=message) as error:
        features().encode([cell])
    assert "\n" not in str(error.value)


def test_a_pickled_array_is_refused_and_not_run(tmp_path):  # fault 17
    class Hostile:
        def __reduce__(self):
            return (io.open, (str(tmp_path / "owned"), "w"))

    file = io.BytesIO()
    np.save(file, np.array([[Hostile()]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="features is not a .npy file"):
        features().encode([file.getvalue()])
    assert not (tmp_path / "owned").exists()


def test_a_header_that_claims_more_than_there_is_takes_no_memory():
    header = npy(frames(4)).replace(b"(4, 3), ", b"(9999999999, 3), ".ljust(8))
    with pytest.raises(ValueError, match="is not a .npy file"):
        features().encode([header])


# ---- the model folder


def config(source, **settings):
    return Config(DataConfig(source=source, max_length=30), ModelConfig(), source=SourceConfig(**settings))


def test_features_load_from_their_folder_with_equal_statistics(tmp_path):
    made = inputs.create(config("features", frame_stride=3), TOKENIZER, [npy(frames(9) * 1e-3 + 1 / 3)])
    made.save(tmp_path)
    loaded = inputs.load(config("features", frame_stride=3), TOKENIZER, tmp_path)
    assert np.array_equal(made.mean, loaded.mean) and np.array_equal(made.std, loaded.std)
    assert loaded.stride == 3


def test_the_folder_keeps_the_font(tmp_path):
    given = tmp_path / "mine.ttf"
    given.write_bytes(FONT)
    made = inputs.create(config("image", font=str(given)), TOKENIZER, [])
    made.save(tmp_path / "model")
    given.unlink()
    loaded = inputs.load(config("image", font=str(given)), TOKENIZER, tmp_path / "model")
    [row] = made.encode(["a man"])
    assert np.array_equal(made.strip(row), loaded.strip(row))


@pytest.mark.parametrize("source, file", [("features", "features.json"), ("image", "font.ttf")])
def test_a_folder_without_what_its_source_needs_is_named(tmp_path, source, file):
    with pytest.raises(FileNotFoundError, match=f"has no {file}, which a model of this source needs"):
        inputs.load(config(source), TOKENIZER, tmp_path)


@pytest.mark.parametrize(
    "record",
    [
        [], 3, {}, {"mean": [0.0]}, {"mean": [0.0], "std": [1.0, 2.0]}, {"mean": [], "std": []},
        {"mean": [[0.0]], "std": [[1.0]]}, {"mean": ["a"], "std": [1.0]}, {"mean": [0.0], "std": [0.0]},
        {"mean": [1e999], "std": [1.0]}, {"mean": [None], "std": [1.0]},
    ],
)  # fmt: skip
def test_damaged_statistics_are_refused_in_one_line(tmp_path, record):
    (tmp_path / "features.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"features\.json does not hold the statistics of features") as error:
        inputs.load(config("features"), TOKENIZER, tmp_path)
    assert "\n" not in str(error.value)


def test_a_damaged_font_is_refused_in_one_line(tmp_path):
    (tmp_path / "font.ttf").write_bytes(FONT[:1000])
    with pytest.raises(ValueError, match=r"font\.ttf is no font"):
        inputs.load(config("image"), TOKENIZER, tmp_path)


@pytest.mark.parametrize("change", [{"strip_height": 20}, {"patch_width": 4}, {"font_size": 10}])
def test_the_digest_tells_settings_apart_that_change_what_is_stored_or_its_length(change):
    plain = SourceConfig()
    one, other = (PictureInput(c, FONT, 99).digest for c in (plain, replace(plain, **change)))
    assert one != other
