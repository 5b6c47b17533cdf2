"""The source side as data: what is stored, how long it is, how it is padded; the model folder keeps what it needs."""

import io
import json
import os

import numpy as np
import pytest
import torch

import model_folder
import render
from config import Config, DataConfig, ModelConfig, SourceConfig
from inputs import MAX_DEVIATIONS, FeatureInput, TextInput
from pictures import PictureInput
from tokenizer import EOS_ID, PAD_ID, Tokenizer

TOKENIZER = Tokenizer.train(["a man on a bike", "ein Mann auf einem Rad"], 270)
FONT = render.packaged_font()


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
    "drawn": (PictureInput(SourceConfig(), FONT, 99), ["a man", "a man on a bike", "é"]),
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


@pytest.mark.parametrize("kind", ["drawn", "features"])
def test_every_token_is_a_step_of_the_signal(kind):
    source, cells = KINDS[kind]
    for row in source.encode(cells):
        signal, step = source.signal(row)
        assert -(-signal.shape[1] // step) == source.length(row)


def test_text_has_no_signal():
    source, cells = KINDS["text"]
    assert source.signal(source.encode(cells)[0]) is None


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


def test_statistics_of_the_largest_numbers_are_finite():
    cell = np.array([[3e38], [-3e38], [-3e38], [-3e38]], np.float32)
    source = FeatureInput.of_rows(1, [npy(cell)])
    normal = source.normalised(source.encode([cell])[0])
    np.testing.assert_allclose(normal[:, 0], [3**0.5, *[-(3**-0.5)] * 3], rtol=1e-5)


@pytest.mark.parametrize("value", [1e16, -1e16, 3e38, 1e300])
def test_a_value_far_from_the_training_rows_is_named(value):
    cell = np.zeros((5, 3))
    cell[3, 1] = value
    with pytest.raises(ValueError, match="features: frame 4, channel 2 is .* training rows") as error:
        features().encode([cell])
    assert f"is {value:g}," in str(error.value) and "\n" not in str(error.value)


def test_the_largest_values_that_are_taken_give_finite_vectors():
    source = FeatureInput(1, np.full(3, 7, np.float32), np.full(3, 1e-3, np.float32))
    cell = frames(9)
    [row] = source.encode([cell * (0.99 * 1e-3 * MAX_DEVIATIONS / np.abs(cell).max())])
    torch.manual_seed(0)
    assert source.embedding(512)(source.pad([row])[0]).isfinite().all()


def test_a_file_with_values_far_from_the_training_rows_is_named(tmp_path):
    np.save(tmp_path / "loud.npy", np.full((2, 3), 1e30, np.float32))
    with pytest.raises(ValueError, match=r"loud\.npy: frame 1, channel 1 is 1e\+30"):
        features().encode([tmp_path / "loud.npy"])


def test_a_folder_in_place_of_a_file_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; name features to translate"):
        features().encode([tmp_path])


def test_a_pipe_in_place_of_a_file_is_said(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match="is no ordinary file; name features to translate"):
        features().encode([tmp_path / "pipe"])


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
        (np.zeros((2, 3), object), "features must hold numbers, got object"),
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
    made = model_folder.make_source(
        config("features", frame_stride=3), TOKENIZER, [npy(frames(9) * 1e-3 + 1 / 3)]
    )
    made.save(tmp_path)
    loaded = model_folder.read_source(config("features", frame_stride=3), TOKENIZER, tmp_path)
    assert np.array_equal(made.mean, loaded.mean) and np.array_equal(made.std, loaded.std)
    assert loaded.stride == 3


def test_the_folder_keeps_the_font(tmp_path):
    given = tmp_path / "mine.ttf"
    given.write_bytes(FONT)
    made = model_folder.make_source(config("image", font=str(given)), TOKENIZER, [])
    made.save(tmp_path / "model")
    given.unlink()
    loaded = model_folder.read_source(config("image", font=str(given)), TOKENIZER, tmp_path / "model")
    [row] = made.encode(["a man"])
    assert np.array_equal(made.strip(row), loaded.strip(row))


@pytest.mark.parametrize("source, file", [("features", "features.json"), ("image", "font.ttf")])
def test_a_folder_without_what_its_source_needs_is_named(tmp_path, source, file):
    with pytest.raises(FileNotFoundError, match=f"has no {file}, which a model of this source needs"):
        model_folder.read_source(config(source), TOKENIZER, tmp_path)


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
        model_folder.read_source(config("features"), TOKENIZER, tmp_path)
    assert "\n" not in str(error.value)


def test_a_damaged_font_is_refused_in_one_line(tmp_path):
    (tmp_path / "font.ttf").write_bytes(FONT[:1000])
    with pytest.raises(ValueError, match=r"font\.ttf is no font"):
        model_folder.read_source(config("image"), TOKENIZER, tmp_path)
