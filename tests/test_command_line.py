"""Flags: flat, checked, one line for a wrong one."""

import pytest

from command_line import parse_args
from config import Config, ModelConfig
from translate import TranslateConfig


def test_flags_are_flat_and_override_the_default():
    default = Config(model=ModelConfig(d_model=256))
    config = parse_args(Config, args=["--num-layers", "7", "--src", "fr", "--tgt", "en"], default=default)
    assert (config.model.d_model, config.model.num_layers, config.data.src) == (256, 7, "fr")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--d-model", "0"], "--d-model must be at least 1, got 0"),
        (["--d-model", "wide"], "--d-model must be a whole number, got 'wide'"),
        (["--max-steps", "1.5"], "--max-steps must be a whole number, got '1.5'"),
        (["--lr", "fast"], "--lr must be a number, got 'fast'"),
        (["--max-minutes", "ten"], "--max-minutes must be a number, got 'ten'"),
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


def test_a_message_names_no_class(capsys):
    with pytest.raises(SystemExit):
        parse_args(TranslateConfig, args=["--input", "letter.txt", "also text"])
    assert capsys.readouterr().err.startswith("error: give sentences or --input, not both")
