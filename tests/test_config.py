"""Settings: their checks and their explanations."""

import inspect
from dataclasses import fields

import pytest

from config import Config, DataConfig, DecodeConfig, ModelConfig, SourceConfig, TrainConfig, check_source
from run_settings import RunConfig


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ModelConfig(d_model=0), "--d-model must be at least 1, got 0"),
        (lambda: ModelConfig(num_layers=-3), "--num-layers must be at least 1, got -3"),
        (lambda: ModelConfig(d_model=10, num_heads=4), "--num-heads must divide --d-model, got 4 and 10"),
        (lambda: ModelConfig(dropout=1.0), r"--dropout must be in \[0, 1\), got 1.0"),
        (lambda: ModelConfig(vocab_size=100), "--vocab-size must be at least 259, got 100"),
        (lambda: TrainConfig(batch_tokens=0), "--batch-tokens must be at least 1, got 0"),
        (lambda: TrainConfig(max_minutes=-1.0), "--max-minutes must be more than 0, got -1.0"),
        (lambda: TrainConfig(max_steps=0), "--max-steps must be more than 0, got 0"),
        (lambda: TrainConfig(lr=0.0), "--lr must be more than 0, got 0.0"),
        (lambda: TrainConfig(lr=float("nan")), "--lr must be more than 0, got nan"),
        (lambda: TrainConfig(label_smoothing=1.5), r"--label-smoothing must be in \[0, 1\), got 1.5"),
        (lambda: TrainConfig(batch_tokens=4, accumulate=5), "--accumulate must be at most --batch-tokens"),
        (lambda: TrainConfig(accumulate=0), "--accumulate must be more than 0, got 0"),
        (lambda: TrainConfig(seed=-1), "--seed must be 0 or more and less than 2.63, got -1"),
        (lambda: DataConfig(data_seed=-1), "--data-seed must be 0 or more and less than 2.63, got -1"),
        (lambda: DataConfig(max_length=1), "--max-length must be at least 2, got 1"),
        (lambda: DataConfig(src="en", tgt="en"), "--src and --tgt must be two different languages, got en"),
        (
            lambda: DataConfig(("a", "b"), temperature=0.001),
            "--temperature must be from 0.1 to 1e9, got 0.001",
        ),
        (
            lambda: DataConfig(("a", "b"), weights=(1e308, 1e308)),
            "--weights must be a number above 0, at most",
        ),
        (lambda: TrainConfig(max_minutes=float("inf")), "--max-minutes must be a finite number, got inf"),
        (lambda: DataConfig(buffer=9), "--buffer 9 is for --streaming; add that, or leave it out"),
        (lambda: DecodeConfig(beam=0), "--beam must be at least 1 and at most 1000, got 0"),
        (lambda: DecodeConfig(length_penalty=-1.0), "--length-penalty must be from 0 to 10, got -1.0"),
        (lambda: DecodeConfig(length_penalty=1e308), "--length-penalty must be from 0 to 10, got 1e"),
        (lambda: DecodeConfig(beam=3_000), "--beam must be at least 1 and at most 1000, got 3000"),
        (lambda: DataConfig(dataset=""), "--dataset must be a name or a path, got nothing"),
        (lambda: DecodeConfig(batch_size=0), "--batch-size must be at least 1, got 0"),
        (lambda: DecodeConfig(batch_size=10**19), "--batch-size must be at most 1,000,000, got 10"),
        (lambda: ModelConfig(d_model=10**9, num_heads=1), "--d-model must be at most 100,000, got 10"),
        (lambda: ModelConfig(num_layers=10**6), "--num-layers must be at most 1,000, got 1000000"),
        (lambda: ModelConfig(vocab_size=10**10), "--vocab-size must be at most 10,000,000, got 10"),
        (lambda: DataConfig(max_length=10**9), "--max-length must be at most 1,000,000, got 10"),
        (lambda: DataConfig(streaming=True, buffer=10**19), "--buffer must be at most 1,000,000,000, got 10"),
        (lambda: TrainConfig(lr=1e39), "--lr must be at most 1,000, got 1e.39"),
        (lambda: TrainConfig(weight_decay=float("inf")), "--weight-decay must be from 0 to 1,000, got inf"),
    ],
)
def test_an_impossible_setting_names_its_flag(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("text", {"frame_stride": 2}, "--frame-stride is for --source features, but the source is text"),
        ("image", {"frame_stride": 2}, "--frame-stride is for --source features, but the source is image"),
        ("features", {"font": "x.ttf"}, "--font is for --source image, but the source is features"),
    ],
)
def test_a_setting_for_another_source_is_refused_for_a_new_run(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        check_source(Config(DataConfig(source=kind), source=SourceConfig(**settings)))


def test_learned_positions_must_hold_the_widest_character():
    def config_of(max_length):
        narrow = SourceConfig(patch_width=4, patch_overlap=2, font_size=12)
        return Config(DataConfig(max_length=max_length, source="image"), learned, source=narrow)

    learned = ModelConfig(positions="learned")
    check_source(config_of(11))  # patches end after 4, 6, …, 24 pixels
    with pytest.raises(ValueError, match=r"--max-length must be at least 11 .* \(24 pixels\), got 10"):
        check_source(config_of(10))


def test_every_setting_explains_itself():
    for cls in (DataConfig, ModelConfig, TrainConfig, SourceConfig, RunConfig, DecodeConfig):
        source = inspect.getsource(cls)
        for f in fields(cls):
            assert f"\n    {f.name}: " in source
            after = source.split(f"\n    {f.name}: ", 1)[1].split("\n", 1)[1].lstrip()
            assert after.startswith('"""'), f"{cls.__name__}.{f.name} has no docstring"
