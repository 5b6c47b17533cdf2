"""Settings as JSON and back."""

import json

import pytest

from config import Config, DataConfig, ModelConfig, TrainConfig
from strict_json import from_json, to_json


def test_json_comes_back_as_it_went():
    config = Config(DataConfig(dataset="x"), ModelConfig(dropout=0.3), TrainConfig(max_minutes=2.5))
    assert from_json(Config, json.loads(json.dumps(to_json(config)))) == config


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model.d_model", "big", "config.model.d_model must be int, got 'big'"),
        ("model.d_model", "int", "config.model.d_model must be int, got 'int'"),
        ("model.d_model", True, "config.model.d_model must be int, got True"),
        ("model.norm", "none", "config.model.norm must be pre or post, got 'none'"),
        ("model.colour", 1, "exactly the fields .*differing: \\['colour'\\]"),
        ("train.max_minutes", "long", "config.train.max_minutes must be float, got 'long'"),
        ("model", [], r"config.model must be a JSON object, got \[\]"),
        ("model.d_model", 0, "config.model: --d-model must be at least 1"),
        ("model.d_model", 10**9, "config.model: --d-model must be at most 100,000"),
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


def test_the_largest_size_is_read_because_the_weights_own_shapes_decide():
    obj = to_json(Config())
    obj["model"]["d_model"] = 100_000
    assert from_json(Config, obj).model.d_model == 100_000


def test_a_missing_field_is_refused():
    obj = to_json(Config())
    del obj["train"]["lr"]
    with pytest.raises(ValueError, match=r"differing: \['lr'\]"):
        from_json(Config, obj)
