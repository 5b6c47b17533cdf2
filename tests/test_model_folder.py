"""The model folder: nothing in it runs code, one line for everything that does not fit."""

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
import model_folder
import strict_json
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
    model_folder.create(path, CONFIG, tokenizer, TextInput(tokenizer), "abc")
    torch.manual_seed(0)
    model_folder.save_weights(path, model_folder.build(CONFIG, tokenizer.vocab_size, TextInput(tokenizer)))
    return path


@pytest.fixture
def damaged(folder, tmp_path):
    """A copy to break."""
    return shutil.copytree(folder, tmp_path / "model")


def rewrite(folder, record):
    """Write a changed config.json as one that was meant so."""
    record.pop("checksum", None)
    sealed = {**record, "checksum": strict_json.checksum(record)}
    (folder / "config.json").write_text(json.dumps(sealed))


def flip(file, position):
    """Change one bit."""
    raw = bytearray(file.read_bytes())
    raw[position] ^= 4
    file.write_bytes(raw)


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_configuration_changed_by_hand_is_refused(damaged):
    file = damaged / "config.json"
    file.write_text(file.read_text().replace('"norm": "pre"', '"norm": "post"'))
    with pytest.raises(
        ValueError, match=r"config\.json is not as it was written, its checksum differs; restore it"
    ):
        model_folder.load(damaged, CPU)


def test_a_folder_loads_elsewhere_with_equal_weights(folder, tmp_path):
    here = model_folder.load(folder, CPU)
    there = model_folder.load(shutil.copytree(folder, tmp_path / "moved"), CPU)
    assert there.config == CONFIG
    pairs = zip(here.model.parameters(), there.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not there.model.training


def test_a_loaded_model_has_one_matrix_for_all_embeddings(folder):
    model = model_folder.load(folder, torch.device("cpu")).model
    assert model.projection_layer.proj.weight is model.tgt_embed.embedding.weight
    assert model.src_embed.embedding.weight is model.tgt_embed.embedding.weight


def test_nothing_is_drawn_at_random_to_load_a_model(folder):
    before = torch.get_rng_state()
    model_folder.load(folder, torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)


def test_text_is_translated_without_what_pictures_corpora_and_scores_need(folder):
    code = (
        "import sys, translate; translate.main(sys.argv[1:]);"
        "others = {'PIL', 'matplotlib', 'datasets', 'pandas', 'pyarrow', 'sacrebleu', 'tensorboard'};"
        "assert not others & set(sys.modules), others & set(sys.modules)"
    )
    args = [sys.executable, "-c", code, "--model", str(folder), "--beam", "1", "a small text"]
    done = subprocess.run(args, capture_output=True, text=True, cwd=Path(model_folder.__file__).parent)
    assert done.returncode == 0, done.stderr


def test_a_folder_holds_safetensors_and_json_alone(folder):  # fault 17
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]


def test_a_missing_folder_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no model in .*absent; train one first: python train\.py --out"
    ):
        model_folder.load(tmp_path / "absent", CPU)


def test_a_foreign_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a model folder: it has no config.json"):
        model_folder.load(tmp_path, CPU)
    (tmp_path / "config.json").write_text('{"architectures": ["MarianMTModel"]}')
    with pytest.raises(ValueError, match="has no format_version"):
        model_folder.load(tmp_path, CPU)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff", "null", "[1]"])
def test_a_config_that_is_not_json_is_refused(damaged, text):
    (damaged / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.json"):
        model_folder.load(damaged, CPU)


def test_a_newer_format_asks_for_an_update(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["format_version"] = 6
    rewrite(damaged, record)
    with pytest.raises(ValueError, match="has format 6, newer than 5, .*update"):
        model_folder.load(damaged, CPU)


def test_a_size_that_the_weights_do_not_have_is_refused_before_it_is_built(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["config"]["model"]["d_model"] = 2**16
    rewrite(damaged, record)
    with pytest.raises(ValueError, match=r"weight \(\d+, 16\), expected \(\d+, 65536\)"):
        model_folder.load(damaged, CPU)


@pytest.mark.parametrize(
    ("setting", "largest"), [("d_ff", 100_000), ("num_layers", 1_000), ("num_decoder_layers", 1_000)]
)
def test_other_absurd_sizes_are_refused_before_they_are_built(damaged, setting, largest):
    record = json.loads((damaged / "config.json").read_text())
    for size, message in (
        (2**40, f"config.json.model: .* must be at most {largest:,}"),
        (largest, "does not fit its config.json"),
    ):
        record["config"]["model"][setting] = size
        rewrite(damaged, record)
        with pytest.raises(ValueError, match=message):
            model_folder.load(damaged, CPU)


def test_weights_that_are_not_finite_are_refused(damaged):
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    tensors["src_embed.embedding.weight"][5, 3] = float("nan")
    safetensors.torch.save_file(tensors, damaged / "model.safetensors")
    with pytest.raises(ValueError, match="holds values that are not finite"):
        model_folder.load(damaged, CPU)


def test_a_run_without_weights_yet_says_so(damaged):
    (damaged / "model.safetensors").unlink()
    card = damaged / "README.md"
    card.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError, match="has no model.safetensors yet; its training has not reached"):
        model_folder.load(damaged, CPU)
    card.write_text("finished")
    with pytest.raises(FileNotFoundError, match="has no model.safetensors; copy the folder again, whole"):
        model_folder.load(damaged, CPU)


def test_the_newest_finished_run_is_found(folder, tmp_path):
    for age, name in enumerate(("b", "a", "unfinished")):
        path = shutil.copytree(folder, tmp_path / name)
        if name != "unfinished":
            (path / "README.md").write_text("card")
            os.utime(path / "README.md", (1_000 + age, 1_000 + age))
    assert model_folder.newest_run(tmp_path).name == "a"


def test_no_run_at_all_names_the_command(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no finished model in .*; train one first: python train\.py"
    ):
        model_folder.newest_run(tmp_path)


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_flipped_bit_in_the_weights_is_refused_and_the_way_out_named(damaged, has_checkpoint):
    flip(damaged / "model.safetensors", -1)
    if has_checkpoint:
        checkpoint.save_state(damaged, TrainState(step=1), {}, keep=1)
    way = f"restore it: python train.py --resume {damaged}" if has_checkpoint else "copy it anew"
    with pytest.raises(ValueError, match=rf"model\.safetensors is damaged, its checksum differs; {way}"):
        model_folder.load(damaged, CPU)


def test_another_tokenizer_is_refused_with_both_checksums(damaged):
    Tokenizer.train(["quite another text, with other words"] * 2, 270).save(damaged / "tokenizer.json")
    with pytest.raises(
        ValueError, match=r"tokenizer\.json is not .*: its checksum is \w{32}, expected \w{32}; copy it anew"
    ):
        model_folder.load(damaged, CPU)


def test_a_link_out_of_the_folder_is_refused(damaged, tmp_path):
    (damaged / "tokenizer.json").rename(tmp_path / "elsewhere.json")
    (damaged / "tokenizer.json").symlink_to("../elsewhere.json")
    with pytest.raises(ValueError, match=r"tokenizer\.json is a link that leads out of the model folder"):
        model_folder.load(damaged, CPU)


def test_a_link_inside_the_folder_and_one_to_the_folder_are_followed(damaged, tmp_path):
    (damaged / "tokenizer.json").rename(damaged / "real.json")
    (damaged / "tokenizer.json").symlink_to("real.json")
    (tmp_path / "short").symlink_to(damaged)
    assert model_folder.load(tmp_path / "short", CPU).config == CONFIG


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_an_absurdly_large_json_file_is_refused_before_it_is_read(damaged, name):
    os.truncate(damaged / name, 1 << 40)
    with pytest.raises(ValueError, match=rf"{name} has 1,099,511,627,776 bytes"):
        model_folder.load(damaged, CPU)


def test_layers_that_exist_by_name_alone_are_refused_before_anything_is_built(damaged, monkeypatch):
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    tensors["encoder.layers.1.x"] = torch.zeros(1)
    safetensors.torch.save_file(tensors, damaged / "model.safetensors")
    record = json.loads((damaged / "config.json").read_text())
    record["config"]["model"]["num_layers"] = 2
    rewrite(damaged, record)
    build, built = model_folder.build, []

    def spied(*args):
        model = build(*args)
        built.append({p.device.type for p in model.parameters()})
        return model

    monkeypatch.setattr(model_folder, "build", spied)
    with pytest.raises(ValueError, match=r"tensors differ, first encoder\.layers\.1"):
        model_folder.load(damaged, CPU)
    assert built == [{"meta"}]


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_pickle_in_the_place_of_any_file_is_refused_and_not_run(damaged, name):  # fault 17
    torch.save(Hostile(damaged / "owned"), damaged / name)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        model_folder.load(damaged, CPU)
    (damaged / name).write_bytes(pickle.dumps(Hostile(damaged / "owned")))
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        model_folder.load(damaged, CPU)
    assert not (damaged / "owned").exists()


def test_a_folder_of_format_1_loads_as_one_of_text(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["format_version"] = 1
    del record["config"]["source"], record["config"]["data"]["source"], record["config"]["train"]["optimizer"]
    del record["config"]["train"]["init_from"]
    rewrite(damaged, record)
    expected = replace(CONFIG, train=replace(CONFIG.train, optimizer="adamw"))
    assert model_folder.load(damaged, CPU).config == expected


def test_a_folder_of_format_2_loads_as_one_that_adamw_trained(damaged):
    record = json.loads((damaged / "config.json").read_text())
    record["format_version"] = 2
    del record["config"]["train"]["optimizer"], record["config"]["train"]["init_from"]
    rewrite(damaged, record)
    assert model_folder.load(damaged, CPU).config.train.optimizer == "adamw"


def test_weights_that_learned_with_another_tokenizer_are_refused_though_their_shapes_fit(damaged, tmp_path):
    tokenizer = Tokenizer.train(["a fall smext", "another fall smext"], 270)
    other = tmp_path / "other"
    model_folder.create(other, CONFIG, tokenizer, TextInput(tokenizer), "abc")
    model = model_folder.build(CONFIG, tokenizer.vocab_size, TextInput(tokenizer))
    model_folder.save_weights(other, model)
    shutil.copy(other / "model.safetensors", damaged)
    with pytest.raises(
        ValueError, match=r"model\.safetensors is of another model.*tokenizer\.json; copy it anew"
    ):
        model_folder.load(damaged, CPU)


def test_weights_of_another_front_end_than_the_config_says_are_refused_before_it_is_built(tmp_path):
    settings = SourceConfig(patch_width=8)
    config = replace(CONFIG, data=replace(CONFIG.data, source="image"), source=settings)
    tokenizer = Tokenizer.train(["a small text"], 270)
    source = model_folder.make_source(config, tokenizer, [])
    model_folder.create(tmp_path, config, tokenizer, source, "abc")
    model_folder.save_weights(tmp_path, model_folder.build(config, tokenizer.vocab_size, source))
    assert model_folder.load(tmp_path, CPU).config == config
    record = json.loads((tmp_path / "config.json").read_text())
    record["config"]["source"]["patch_width"] = 12
    rewrite(tmp_path, record)
    with pytest.raises(ValueError, match=r"does not fit its config.json: src_embed\.patches.* expected"):
        model_folder.load(tmp_path, CPU)
