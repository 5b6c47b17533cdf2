"""Checkpoints: whole or not at all, the newest good one found, the best weights restored."""

import errno
import os
import pickle
import shutil

import pytest
import torch
from test_model_folder import Hostile, flip

import checkpoint
import model_folder
import tensor_files
from checkpoint import TrainState


def test_a_state_comes_back_as_it_went(tmp_path):
    state = TrainState(step=7, epoch=1, batch=3, elapsed_s=1.5, best_score=2.5)
    tensors = {
        "model.w": torch.randn(2, 3),
        "bytes": torch.arange(9, dtype=torch.uint8),
        "n": torch.tensor(3.0),
    }
    checkpoint.save_state(tmp_path, state, tensors, keep=2)
    found, loaded = checkpoint.load_state(tmp_path)
    assert found == state
    assert loaded.keys() == tensors.keys() and all(torch.equal(loaded[k], tensors[k]) for k in tensors)


def test_the_newest_checkpoint_is_found_by_number(tmp_path):  # fault 21
    for step in (99, 100, 999_999, 1_000_000):
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


DAMAGES = {
    "a flipped bit in a weight": lambda p: flip(p / "state.safetensors", -1),
    "a flipped bit in the header": lambda p: flip(p / "state.safetensors", 40),
    "a flipped digit of the state": lambda p: flip(p / "state.json", 27),
    "weights that end early": lambda p: os.truncate(p / "state.safetensors", 100),
    "a state that ends early": lambda p: os.truncate(p / "state.json", 40),
    "no weights": lambda p: (p / "state.safetensors").unlink(),
    "no state": lambda p: (p / "state.json").unlink(),
    "weights of another checkpoint": lambda p: shutil.copy(p.parent / "000001/state.safetensors", p),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_incomplete_checkpoint_is_skipped_and_the_one_before_used(tmp_path, capsys, damage):
    checkpoint.save_state(tmp_path, TrainState(step=1), {"w": torch.ones(9)}, keep=9)
    newest = checkpoint.save_state(tmp_path, TrainState(step=2), {"w": torch.ones(9)}, keep=9)
    assert checkpoint.load_state(tmp_path)[0].step == 2
    DAMAGES[damage](newest)
    assert checkpoint.load_state(tmp_path)[0].step == 1
    assert damage == "no state" or "000002 is damaged and skipped" in capsys.readouterr().err


def test_keep_checkpoints_bounds_the_disk_and_never_deletes_the_best(tmp_path):
    for step in range(1, 8):
        best = step if step < 3 else 2
        checkpoint.save_state(tmp_path, TrainState(step=step, best_step=best), {}, keep=2)
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [2, 6, 7]


def test_the_best_of_the_checkpoint_before_stays_until_that_goes(tmp_path):
    for step, best in ((1, 1), (2, 1), (3, 1), (4, 4)):
        checkpoint.save_state(tmp_path, TrainState(step=step, best_step=best), {}, keep=2)
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [1, 3, 4]


def test_what_a_kill_kept_from_being_deleted_goes_with_the_resume(tmp_path):
    for step in (1, 2, 3):
        checkpoint.save_state(tmp_path, TrainState(step=step), {}, keep=9)
    checkpoint.prune(tmp_path, 3, keep=1)
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["000003"]


def test_a_run_that_went_back_drops_the_damaged_future(tmp_path):
    for step in (10, 20):
        newest = checkpoint.save_state(tmp_path, TrainState(step=step), {"w": torch.ones(9)}, keep=1)
    flip(newest / "state.safetensors", -1)
    checkpoint.save_state(tmp_path, TrainState(step=15), {}, keep=1)
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [15]


def a_run(path, score=9.0):
    """A folder whose best weights are ones, of step 1, and whose newest checkpoint is of step 2."""
    (path / "tokenizer.json").write_text("{}")
    model = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(model.weight)
    torch.nn.init.ones_(model.bias)
    for step in (1, 2):
        state = TrainState(step=step, best_step=1, best_score=score)
        tensors = {f"average.{n}": p * step for n, p in tensor_files.of_model(model).items()}
        checkpoint.save_state(path, state, tensors, keep=1)
    state.best_weights = model_folder.save_weights(path, model, 1)
    return path / "model.safetensors", state


@pytest.mark.parametrize("damage", ["later weights", "another run's", "a flipped bit", "no file"])
def test_the_best_weights_are_restored_from_their_checkpoint(tmp_path, damage):
    file, state = a_run(tmp_path)
    before = file.read_bytes()
    match damage:
        case "later weights":  # a kill between model.safetensors and its checkpoint
            model_folder.save_weights(tmp_path, torch.nn.Linear(2, 2), 3)
        case "another run's":
            model_folder.save_weights(tmp_path, torch.nn.Linear(2, 2), 1)
        case "a flipped bit":
            flip(file, -1)
        case "no file":
            file.unlink()
    checkpoint.restore_weights(tmp_path, state)
    assert file.read_bytes() == before and state.best_step == 1


def test_best_weights_that_nothing_holds_any_more_are_given_up_with_a_warning(tmp_path, capsys):
    file, state = a_run(tmp_path)
    flip(file, -1)
    flip(tmp_path / "checkpoints/000001/state.safetensors", -1)
    checkpoint.restore_weights(tmp_path, state)
    assert (state.best_score, state.best_step) == (-1.0, 0)
    assert "warning: the best weights, of" in capsys.readouterr().err


def test_a_checkpoint_that_was_being_replaced_comes_back_and_what_was_half_written_goes(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    final = checkpoint.save_state(tmp_path, TrainState(step=1), {}, keep=1)
    final.rename(final.with_name(".000001.replaced"))
    shutil.copytree(final.with_name(".000001.replaced"), final.with_name(".000002.incomplete"))
    (tmp_path / ".metrics.jsonl.abcdefgh.incomplete").write_text("x")
    checkpoint.clear_leftovers(tmp_path)
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["000001"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoints", "config.json"]


def test_a_pickle_in_the_place_of_a_checkpoint_is_skipped_and_not_run(tmp_path):  # fault 17
    newest = checkpoint.save_state(tmp_path, TrainState(step=1), {"w": torch.ones(9)}, keep=9)
    for name in ("state.json", "state.safetensors"):
        (newest / name).write_bytes(pickle.dumps(Hostile(tmp_path / "owned")))
        with pytest.raises(FileNotFoundError, match="has no checkpoint to resume from"):
            checkpoint.load_state(tmp_path)
    assert not (tmp_path / "owned").exists()


def test_nothing_to_resume_from_is_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no checkpoint to resume from"):
        checkpoint.load_state(tmp_path)
