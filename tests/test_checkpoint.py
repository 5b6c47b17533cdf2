"""The model folder: whole or not at all, nothing that runs code, one line for everything that does not fit."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

import checkpoint
from checkpoint import TrainState
from config import Config, DataConfig, ModelConfig, SourceConfig
from inputs import TextInput
from tokenizer import Tokenizer

CPU = torch.device("cpu")
CONFIG = Config(
    DataConfig(max_length=20), ModelConfig(d_model=16, num_layers=1, num_decoder_layers=1, d_ff=32)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "model"
    tokenizer = Tokenizer.train(["a small text", "another small text"], 270)
    checkpoint.create(path, CONFIG, tokenizer, TextInput(tokenizer), "abc")
    torch.manual_seed(0)
    checkpoint.save_weights(path, checkpoint.build(CONFIG, tokenizer.vocab_size, TextInput(tokenizer)))
    return path


@pytest.fixture
def damaged(folder, tmp_path):
    """A copy to break."""
    return shutil.copytree(folder, tmp_path / "model")


def test_a_folder_loads_elsewhere_with_equal_weights(folder, tmp_path):
    here = checkpoint.load(folder, CPU)
    there = checkpoint.load(shutil.copytree(folder, tmp_path / "moved"), CPU)
    assert there.config == CONFIG
    pairs = zip(here.model.parameters(), there.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not there.model.training


def test_text_is_translated_without_what_pictures_corpora_and_scores_need(folder):
    code = (
        "import sys, translate; translate.main(sys.argv[1:]);"
        "others = {'PIL', 'matplotlib', 'datasets', 'pandas', 'pyarrow', 'sacrebleu', 'tensorboard'};"
        "assert not others & set(sys.modules), others & set(sys.modules)"
    )
    args = [sys.executable, "-c", code, "--model", str(folder), "--beam", "1", "a small text"]
    done = subprocess.run(args, capture_output=True, text=True, cwd=Path(checkpoint.__file__).parent)
    assert done.returncode == 0, done.stderr


def test_a_folder_holds_safetensors_and_json_alone(folder):  # fault 17
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]


def test_a_pickle_is_refused_and_not_run(damaged):  # fault 17
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(damaged / "owned"),))

    (damaged / "model.safetensors").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(ValueError, match=r"model\.safetensors is not a complete safetensors file"):
        checkpoint.load(damaged, CPU)
    assert not (damaged / "owned").exists()


def test_a_missing_folder_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no model in .*absent; train one first: python train\.py --out"
    ):
        checkpoint.load(tmp_path / "absent", CPU)


def test_a_foreign_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a model folder: it has no config.json"):
        checkpoint.load(tmp_path, CPU)
    (tmp_path / "config.json").write_text('{"architectures": ["MarianMTModel"]}')
    with pytest.raises(ValueError, match="has no format_version"):
        checkpoint.load(tmp_path, CPU)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff", "null", "[1]"])
def test_a_config_that_is_not_json_is_refused(damaged, text):
    (damaged / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.json"):
        checkpoint.load(damaged, CPU)


def test_a_newer_format_asks_for_an_update(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["format_version"] = 4
    (damaged / "config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="has format 4, newer than 3, .*update"):
        checkpoint.load(damaged, CPU)


def test_a_size_that_the_weights_do_not_have_is_refused_before_it_is_built(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["config"]["model"]["d_model"] = 2**40
    (damaged / "config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"weight \(\d+, 16\), expected \(\d+, 1099511627776\)"):
        checkpoint.load(damaged, CPU)


@pytest.mark.parametrize("setting", ["d_ff", "num_layers", "num_decoder_layers"])
def test_other_absurd_sizes_are_refused_before_they_are_built(damaged, setting):
    record = json.loads((damaged / "config.json").read_text())
    record["config"]["model"][setting] = 2**40
    (damaged / "config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="does not fit its config.json"):
        checkpoint.load(damaged, CPU)


def test_weights_of_another_model_are_refused(damaged):
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    tensors["decoder.extra"] = torch.zeros(2)
    safetensors.torch.save_file(tensors, damaged / "model.safetensors")
    with pytest.raises(ValueError, match="1 tensors differ, first decoder.extra"):
        checkpoint.load(damaged, CPU)


def test_a_cut_weights_file_is_refused(damaged):
    file = damaged / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is not a complete safetensors file"):
        checkpoint.load(damaged, CPU)


def test_weights_that_are_not_finite_are_refused(damaged):
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    tensors["src_embed.embedding.weight"][5, 3] = float("nan")
    safetensors.torch.save_file(tensors, damaged / "model.safetensors")
    with pytest.raises(ValueError, match="holds values that are not finite"):
        checkpoint.load(damaged, CPU)


def test_a_run_without_weights_yet_says_so(damaged):
    (damaged / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no model.safetensors yet"):
        checkpoint.load(damaged, CPU)


def test_the_newest_finished_run_is_found(folder, tmp_path):
    for age, name in enumerate(("b", "a", "unfinished")):
        path = shutil.copytree(folder, tmp_path / name)
        if name != "unfinished":
            (path / "README.md").write_text("card")
            os.utime(path / "README.md", (1_000 + age, 1_000 + age))
    assert checkpoint.newest_run(tmp_path).name == "a"


def test_no_run_at_all_names_the_command(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no finished model in .*; train one first: python train\.py"
    ):
        checkpoint.newest_run(tmp_path)


def test_a_state_comes_back_as_it_went(tmp_path):
    state = TrainState(step=7, epoch=1, batch=3, elapsed_s=1.5, best_score=2.5)
    tensors = {"model.w": torch.randn(2, 3), "rng.cpu": torch.get_rng_state(), "n": torch.tensor(3.0)}
    checkpoint.save_state(tmp_path, state, tensors, keep=2)
    found, loaded = checkpoint.load_state(tmp_path)
    assert found == state
    assert loaded.keys() == tensors.keys() and all(torch.equal(loaded[k], tensors[k]) for k in tensors)


def test_the_newest_checkpoint_is_found_by_number(tmp_path):  # fault 21
    for step in (99, 100, 1_000_000, 999_999):
        checkpoint.save_state(tmp_path, TrainState(step=step), {}, keep=9)
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [99, 100, 999_999, 1_000_000]
    assert checkpoint.load_state(tmp_path)[0].step == 1_000_000


def test_old_checkpoints_are_removed_only_after_the_new_one_is_complete(tmp_path, monkeypatch):
    for step in (1, 2, 3):
        checkpoint.save_state(tmp_path, TrainState(step=step), {}, keep=2)
    assert [p.name for p in checkpoint.checkpoints(tmp_path)] == ["000002", "000003"]

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save_state(tmp_path, TrainState(step=4), {}, keep=2)
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["000002", "000003"]


def test_a_damaged_checkpoint_is_skipped_with_a_warning(tmp_path, capsys):
    checkpoint.save_state(tmp_path, TrainState(step=1), {"w": torch.ones(9)}, keep=9)
    newest = checkpoint.save_state(tmp_path, TrainState(step=2), {"w": torch.ones(9)}, keep=9)
    file = newest / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    assert checkpoint.load_state(tmp_path)[0].step == 1
    assert "000002 is damaged and skipped" in capsys.readouterr().err


def test_nothing_to_resume_from_is_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no checkpoint to resume from"):
        checkpoint.load_state(tmp_path)


def test_a_folder_of_format_1_loads_as_one_of_text(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["format_version"] = 1
    del record["config"]["source"], record["config"]["data"]["source"], record["config"]["train"]["optimizer"]
    (damaged / "config.json").write_text(json.dumps(record))
    expected = replace(CONFIG, train=replace(CONFIG.train, optimizer="adamw"))
    assert checkpoint.load(damaged, CPU).config == expected


def test_a_folder_of_format_2_loads_as_one_that_adamw_trained(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["format_version"] = 2
    del record["config"]["train"]["optimizer"]
    (damaged / "config.json").write_text(json.dumps(record))
    assert checkpoint.load(damaged, CPU).config.train.optimizer == "adamw"


def test_weights_of_another_front_end_than_the_config_says_are_refused_before_it_is_built(tmp_path):
    settings = SourceConfig(patch_width=8)
    config = replace(CONFIG, data=replace(CONFIG.data, source="image"), source=settings)
    tokenizer = Tokenizer.train(["a small text"], 270)
    source = checkpoint.make_source(config, tokenizer, [])
    checkpoint.create(tmp_path, config, tokenizer, source, "abc")
    checkpoint.save_weights(tmp_path, checkpoint.build(config, tokenizer.vocab_size, source))
    assert checkpoint.load(tmp_path, CPU).config == config
    record = json.loads((tmp_path / "config.json").read_text())
    record["config"]["source"]["patch_width"] = 12
    (tmp_path / "config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"does not fit its config.json: src_embed\.patches.* expected"):
        checkpoint.load(tmp_path, CPU)
