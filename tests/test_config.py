"""Settings: checks that name the flag, strict JSON, one line for a wrong flag, a recipe that every flag overrides."""

import json
from dataclasses import fields, replace

import pytest

from config import (
    PRESETS,
    Config,
    DataConfig,
    DecodeConfig,
    ModelConfig,
    SourceConfig,
    TrainConfig,
    check_source,
    from_json,
    num_micro_batches,
    parse_args,
    recipe,
    to_json,
)


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


def test_json_comes_back_as_it_went():
    config = Config(DataConfig(dataset="x"), ModelConfig(dropout=0.3), TrainConfig(max_minutes=2.5))
    assert from_json(Config, json.loads(json.dumps(to_json(config)))) == config


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model.d_model", "big", "config.model.d_model must be int, got 'big'"),
        ("model.d_model", True, "config.model.d_model must be int, got True"),
        ("model.norm", "none", "config.model.norm must be pre or post, got 'none'"),
        ("model.colour", 1, "exactly the fields .*differing: \\['colour'\\]"),
        ("train.max_minutes", "long", "config.train.max_minutes must be float, got 'long'"),
        ("model", [], r"config.model must be a JSON object, got \[\]"),
        ("model.d_model", 0, "--d-model must be at least 1"),
        ("source.patch_width", 10**6, "--patch-width must be from 1 to 256 for this --strip-height"),
    ],
)
def test_json_that_does_not_fit_names_the_field(path, value, message):
    obj = to_json(Config())
    *parents, name = path.split(".")
    place = obj
    for parent in parents:
        place = place[parent]
    place[name] = value
    with pytest.raises(ValueError, match=message):
        from_json(Config, obj)


def test_a_size_beyond_any_memory_is_read_because_the_weights_own_shapes_decide():
    obj = to_json(Config())
    obj["model"]["d_model"] = 10**9
    assert from_json(Config, obj).model.d_model == 10**9


def test_a_missing_field_is_refused():
    obj = to_json(Config())
    del obj["train"]["lr"]
    with pytest.raises(ValueError, match=r"differing: \['lr'\]"):
        from_json(Config, obj)


def test_flags_are_flat_and_override_the_default():
    default = Config(model=ModelConfig(d_model=256))
    config = parse_args(Config, args=["--num-layers", "7", "--src", "fr", "--tgt", "en"], default=default)
    assert (config.model.d_model, config.model.num_layers, config.data.src) == (256, 7, "fr")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--d-model", "0"], "--d-model must be at least 1, got 0"),
        (["--d-model", "wide"], "--d-model"),
        (["--norm", "none"], "--norm"),
        (["--bogus", "1"], "--bogus"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exit_code_2(args, message, capsys):
    with pytest.raises(SystemExit) as end:
        parse_args(Config, args=args)
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_the_recipe_grows_with_the_corpus_and_says_why():
    files = Config(DataConfig(dataset="pairs.jsonl"))
    small, why_small = recipe(files, 20_000, 2, False)
    large, why_large = recipe(files, 5_000_000, 2, True)
    assert small.model.d_model < large.model.d_model and small.model.vocab_size < large.model.vocab_size
    assert "20,000 pairs" in why_small and "5,000,000 pairs" in why_large


def test_a_preset_that_is_asked_for_is_taken():
    config = Config(train=TrainConfig(preset="base"))
    chosen, why = recipe(config, 20_000, 2, False)
    assert replace(chosen.model, vocab_size=PRESETS["base"][0].vocab_size) == PRESETS["base"][0]
    assert "as asked" in why


def test_the_budget_chooses_the_schedule():
    files = DataConfig(dataset="pairs.jsonl")
    assert recipe(Config(files), 20_000, 2, False)[0].train.schedule == "inverse-sqrt"
    timed = Config(files, train=TrainConfig(max_minutes=3.0))
    assert recipe(timed, 20_000, 2, False)[0].train.schedule == "cosine"
    assert recipe(Config(), 48_000, 2, False)[0].train.max_minutes == 5.0


def test_micro_batches_follow_the_threads_on_a_cpu_and_stay_large():
    train = TrainConfig(batch_tokens=2_048)
    config = Config(train=train)
    assert [num_micro_batches(config, n, False) for n in (1, 2, 64)] == [1, 2, 4]
    assert num_micro_batches(config, 8, True) == 1
    assert num_micro_batches(Config(train=TrainConfig(batch_tokens=1)), 8, False) == 1
    assert num_micro_batches(Config(train=TrainConfig(accumulate=3)), 8, True) == 3


def test_features_have_smaller_steps_and_micro_batches_than_text():
    text, features = Config(DataConfig("x.jsonl")), Config(DataConfig("x.jsonl", source="features"))
    tokens = [recipe(config, 20_000, 2, False)[0].train.batch_tokens for config in (text, features)]
    assert tokens[1] == tokens[0] // 2
    train = TrainConfig(batch_tokens=768)
    assert [num_micro_batches(replace(config, train=train), 2, False) for config in (text, features)] == [
        1,
        2,
    ]


def test_the_warm_up_of_a_short_run_is_shorter():
    short = Config(DataConfig(dataset="pairs.jsonl"), train=TrainConfig(max_steps=20, max_minutes=3.0))
    chosen, why = recipe(short, 20_000, 2, False)
    assert chosen.train.warmup_steps == 4 and "20 steps or 3 minutes" in why


def test_the_time_there_is_chooses_the_model():
    def chosen(minutes):
        config = Config(DataConfig(dataset="pairs.jsonl"), train=TrainConfig(max_minutes=minutes))
        return recipe(config, 2_000_000, 2, False)[0].train.preset

    assert (chosen(1.0), chosen(6_000.0)) == ("tiny", "small")


def test_every_setting_explains_itself():
    for cls in (DataConfig, ModelConfig, TrainConfig, DecodeConfig):
        source = __import__("inspect").getsource(cls)
        for f in fields(cls):
            assert f"\n    {f.name}: " in source
            after = source.split(f"\n    {f.name}: ", 1)[1].split("\n", 1)[1].lstrip()
            assert after.startswith('"""'), f"{cls.__name__}.{f.name} has no docstring"
