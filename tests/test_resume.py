"""Runs that are stopped, killed, moved to a full disk or started from another: nothing is lost, nothing is twice."""

import json
import math
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from test_kinds import TINY, sentences, write_features
from test_train import (
    assert_equal_runs,
    corpus,
    killed_at,
    metrics,
    run,
    signalled_at,
    weights,
    write_copy_corpus,
)

import checkpoint
import model_folder
import stopping
import tensor_files
import train
import translator
import validator
from dataset import BatchSampler
from learner import Learner

__all__ = ["corpus", "run"]  # fixtures


def scalars(path):
    """Step and value of every scalar that TensorBoard shows of a run."""
    events = EventAccumulator(str(path / "tensorboard")).Reload()
    named = [name for name in events.Tags()["scalars"] if name != "train/tokens_per_s"]
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in named}


def killed(run, monkeypatch, step, *args, out="resumed"):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "step", killed_at(step))
        run(*args, out=out)


@pytest.mark.parametrize("step", [7, 17])
def test_tensorboard_shows_no_gap_and_no_repeated_step_after_a_kill(run, monkeypatch, step):
    through = run("--max-steps", 30, out="through")
    killed(run, monkeypatch, step, "--max-steps", 30)
    resumed = run("--resume", "resumed", out="resumed")
    assert len(list((resumed / "tensorboard").iterdir())) == 2
    assert scalars(through) == scalars(resumed)
    assert [step for step, _ in scalars(resumed)["train/loss"]] == [5, 10, 15, 20, 25, 30]


def interrupt(*args):
    raise KeyboardInterrupt


def test_a_validation_that_was_told_but_not_saved_is_told_once(run, monkeypatch):
    through = run("--max-steps", 20, out="through")
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Learner, "step", signalled_at(10, signal.SIGTERM))
        run("--max-steps", 20, out="resumed")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint, "save_state", interrupt)
        run("--resume", "resumed", out="resumed")
    assert metrics(Path("resumed"))[-1]["kind"] == "validation"
    resumed = run("--resume", "resumed", out="resumed")
    told = [[(row["kind"], row["step"]) for row in metrics(path)] for path in (through, resumed)]
    assert told[0] == told[1] and scalars(through) == scalars(resumed)


def test_a_validation_whose_worker_dies_loses_no_step(run, monkeypatch):
    def dies(*args):
        raise ChildProcessError("a worker process was killed")

    with (
        monkeypatch.context() as patch,
        pytest.raises(ValueError, match="worker process was killed; last good"),
    ):
        patch.setattr(validator.Validator, "__call__", dies)
        run("--max-steps", 20)
    assert [int(file.name) for file in checkpoint.checkpoints(Path("run"))] == [10]
    assert [row["step"] for row in metrics(run("--resume", "run")) if row["kind"] == "validation"] == [10, 20]


def test_a_damaged_line_of_metrics_is_dropped_and_the_others_stay(run, monkeypatch):
    killed(run, monkeypatch, 17, "--max-steps", 20)
    file = Path("resumed/metrics.jsonl")
    whole = file.read_text().splitlines()
    file.write_text("\n".join([*whole[:1], "\0\0\0", *whole[1:], '{"kind": "train", "st']))
    path = run("--resume", "resumed", out="resumed")
    assert [(m["kind"], m["step"]) for m in metrics(path)] == [
        ("train", 5), ("train", 10), ("validation", 10), ("train", 15), ("train", 20), ("validation", 20)
    ]  # fmt: skip


def test_a_damaged_newest_checkpoint_costs_time_and_changes_no_weight(run, monkeypatch, capsys):
    through = run("--max-steps", 30, out="through")
    killed(run, monkeypatch, 25, "--max-steps", 30)
    file = Path("resumed/checkpoints/000020/state.safetensors")
    raw = bytearray(file.read_bytes())
    raw[-9] ^= 1
    file.write_bytes(raw)
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))
    assert "000020 is damaged and skipped" in capsys.readouterr().err


def test_best_score_and_patience_survive_a_kill(run, monkeypatch):
    scored = iter([3.0, 5.0, 4.0, 4.5, 4.6])
    monkeypatch.setattr(validator, "quick_score", lambda *_, **__: (next(scored), 1.0))
    killed(run, monkeypatch, 35, "--max-steps", 500, "--patience", 3)
    before = (Path("resumed") / "model.safetensors").read_bytes()
    path = run("--resume", "resumed", out="resumed")
    state = checkpoint.load_state(path)[0]
    assert (state.step, state.best_step, state.best_score, state.bad_validations) == (50, 20, 5.0, 3)
    assert (path / "model.safetensors").read_bytes() == before
    assert (path / "checkpoints" / "000020").is_dir()


def test_sigterm_during_a_validation_saves_within_seconds_and_nothing_is_lost(run, monkeypatch):
    through = run("--max-steps", 30, out="through")
    translate, signalled = translator.Translator.translate, []

    def slow(self, *args, **options):
        if not signalled and checkpoint.checkpoints(Path("resumed")):  # at step 20
            signalled.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        return translate(self, *args, **options)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(translator.Translator, "translate", slow)
        run("--max-steps", 30, out="resumed")
    assert end.value.code == 143 and time.monotonic() - signalled[0] < 30
    state = checkpoint.load_state(Path("resumed"))[0]
    assert (state.step, state.needs_validation, state.best_step in (0, 10)) == (20, True, True)
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))


def test_a_signal_before_a_validation_puts_it_off(run, monkeypatch):
    through = run("--max-steps", 20, out="through")
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Learner, "step", signalled_at(10, signal.SIGTERM))
        run("--max-steps", 20, out="resumed")
    assert checkpoint.load_state(Path("resumed"))[0].needs_validation
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))


def test_a_second_signal_stops_at_once():
    child = os.fork()
    if not child:
        with stopping.StopRequest():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM


def test_a_second_run_on_a_folder_is_refused_and_the_first_goes_on(run, monkeypatch):
    real, refusals = Learner.step, []

    def step(self, batches, lr, number):
        if number == 7:
            for args in (["--resume", "run"], ["--max-steps", 30]):
                with pytest.raises(
                    ValueError, match="run (is in use by process|holds an unfinished run)"
                ) as end:
                    run(*args)
                refusals.append(str(end.value))
        return real(self, batches, lr, number)

    monkeypatch.setattr(Learner, "step", step)
    path = run("--max-steps", 20)
    assert len(refusals) == 2 and refusals[0].startswith("run is in use by process")
    assert checkpoint.load_state(path)[0].step == 20


def test_a_run_killed_before_its_config_was_written_begins_again(run, monkeypatch):
    through = run("--max-steps", 10, out="through")

    def dies(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(model_folder, "create", dies)
        run("--max-steps", 10, out="resumed")
    assert_equal_runs(through, run("--max-steps", 10, out="resumed"))


@pytest.mark.parametrize(
    "args, refusal",
    [
        (("--vocab-size", 290), "cannot change --vocab-size from 300 to 290"),
        (("--src", "de", "--tgt", "en"), "cannot change --src from en to de"),
        (("--optimizer", "adamw"), "cannot change --optimizer from muon to adamw"),
        (("--init-from", "other"), "cannot change --init-from from None to other"),
    ],
)
def test_what_may_not_change_on_a_resume_is_one_line_with_both_values(run, args, refusal):
    run("--max-steps", 2)
    with pytest.raises(ValueError, match=refusal):
        run("--resume", "run", "--max-steps", 4, *args)


def test_every_setting_that_may_change_on_a_resume_is_printed_with_both_values(run, capsys):
    run("--max-steps", 10)
    new = {"--max-steps": 12, "--max-minutes": 9, "--patience": 7, "--keep-checkpoints": 1, "--log-every": 2}
    run("--resume", "run", *(word for flag in new.items() for word in flag), "--validate-every", 6)
    said = capsys.readouterr().out
    assert all(f"changed on resume: {flag} from " in said for flag in [*new, "--validate-every"])
    assert "--max-steps from 10 to 12" in said and "--validate-every from 10 to 6" in said


def test_another_tokenizer_in_the_folder_of_a_run_is_refused(run, monkeypatch):
    killed(run, monkeypatch, 12, "--max-steps", 20)
    file = Path("resumed/tokenizer.json")
    file.write_text(file.read_text() + " ")
    with pytest.raises(
        ValueError, match=r"tokenizer\.json is not the one this model learned with: .* expected"
    ):
        run("--resume", "resumed", out="resumed")


def test_a_link_in_a_run_that_goes_on_is_refused_before_anything_is_written(run, tmp_path):
    path = run("--max-steps", 2)
    (tmp_path / "precious").write_text("mine")
    (path / "metrics.jsonl").unlink()
    (path / "metrics.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match=r"metrics\.jsonl is a link that leads out of the model folder"):
        run("--resume", "run", "--max-steps", 4)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_model_whose_checkpoints_are_gone_is_not_trained_over(run, monkeypatch):
    path = run("--max-steps", 20)
    before = (path / "model.safetensors").read_bytes()
    shutil.rmtree(path / "checkpoints")
    for has_card in (True, False):
        if not has_card:
            (path / "README.md").unlink()
        with pytest.raises(
            ValueError, match="run has a model, but no checkpoint .*; restore run/checkpoints, or"
        ):
            run("--resume", "run", "--max-steps", 30)
    assert (path / "model.safetensors").read_bytes() == before and len(metrics(path)) == 6


def test_a_run_that_has_lost_its_config_is_left_as_it_is(run):
    path = run("--max-steps", 10)
    (path / "config.json").unlink()
    before = sorted(file for file in path.rglob("*") if file.is_file())
    with pytest.raises(ValueError, match="run has lost the config.json of its run; restore it, or choose"):
        run("--max-steps", 10)
    assert sorted(file for file in path.rglob("*") if file.is_file()) == before


def test_a_broken_source_of_batches_does_not_save_weights_that_are_not_finite(run, monkeypatch):
    real = Learner.step

    def step(self, batches, lr, number):
        if number == 13:
            next(self.model.parameters()).data.fill_(math.nan)
        return real(self, batches, lr, number)

    def steps(*given):
        for number, group in enumerate(real_steps(*given), 1):
            if number == 15:
                raise ValueError("a broken row")
            yield group

    real_steps = BatchSampler.steps
    monkeypatch.setattr(Learner, "step", step)
    monkeypatch.setattr(BatchSampler, "steps", steps)
    with pytest.raises(
        ValueError, match="not finite at step 13; last good checkpoint: run/checkpoints/000010"
    ):
        run("--max-steps", 30, "--log-every", 20)
    assert [p.name for p in checkpoint.checkpoints(Path("run"))][-1] == "000010"


def test_a_checkpoint_under_the_number_of_another_is_skipped(run, monkeypatch, capsys):
    killed(run, monkeypatch, 25, "--max-steps", 30)
    Path("resumed/checkpoints/000020").rename("resumed/checkpoints/000099")
    run("--resume", "resumed", out="resumed")
    assert "000099 is damaged and skipped: it is of step 20" in capsys.readouterr().err


def test_a_checkpoint_of_another_optimizer_is_refused(run):
    path = run("--max-steps", 10)
    record = json.loads((path / "config.json").read_text())
    record["config"]["train"]["optimizer"] = "adamw"
    del record["checksum"]
    (path / "config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="run has a checkpoint of another optimizer than its config.json"):
        run("--resume", "run", "--max-steps", 20)


def test_a_corpus_that_was_moved_is_the_same_corpus(run, tmp_path, capsys):
    mine = write_copy_corpus(tmp_path / "mine.jsonl", 100)
    run("--max-steps", 10, "--dataset", mine)
    moved = mine.rename(tmp_path / "moved.jsonl")
    run("--resume", "run", "--max-steps", 20, "--dataset", moved)
    assert f"changed on resume: --dataset from {mine} to {moved}\n" in capsys.readouterr().out


def test_fewer_steps_than_were_done_leave_a_model_all_the_same(run, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Learner, "step", signalled_at(7, signal.SIGTERM))
        run("--max-steps", 20)
    path = run("--resume", "run", "--max-steps", 5)
    assert (path / "README.md").is_file() and checkpoint.load_state(path)[0].best_step == 7


def test_a_finished_run_that_goes_on_is_unfinished_until_it_ends(run, monkeypatch):
    path = run("--max-steps", 10)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "step", killed_at(13))
        run("--resume", "run", "--max-steps", 20)
    assert not (path / "README.md").exists()
    run("--resume", "run")
    assert "in 20 steps" in (path / "README.md").read_text()


def test_the_best_of_a_tuned_run_may_be_what_it_started_from(run, monkeypatch):
    first = run("--max-steps", 10, out="first")
    scored = iter([9.0, 5.0])
    monkeypatch.setattr(validator, "quick_score", lambda *_, **__: (next(scored), 1.0))
    tuned = run("--init-from", "first", "--max-steps", 10, out="tuned")
    state = checkpoint.load_state(tuned)[0]
    assert (state.best_step, state.best_score) == (0, 9.0)
    best = weights(first / "model.safetensors")
    assert all(
        torch.equal(tensor, best[name]) for name, tensor in weights(tuned / "model.safetensors").items()
    )


def test_damaged_weights_of_a_finished_run_are_restored_by_a_resume(run):
    path = run("--max-steps", 10)
    file = path / "model.safetensors"
    before = {name: tensor.clone() for name, tensor in weights(file).items()}  # it is mapped
    os.truncate(file, 1_000)
    with pytest.raises(
        ValueError, match="is not a complete safetensors file.*; restore it: python train.py --resume"
    ):
        model_folder.load(path, torch.device("cpu"))
    with pytest.raises(ValueError, match="run is finished, after 10 steps"):
        run("--resume", "run")
    after = weights(file)
    assert all(torch.equal(before[name], after[name]) for name in before | after)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own of 8 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", path], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a file system can be mounted by root alone: {made.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)  # lazily: it is where the test stands


# TensorBoard's own thread meets the error, too, and tells the main one.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("room_kb", [8, 64, 120])
def test_a_full_disk_leaves_the_last_good_checkpoint_and_names_it(
    run, monkeypatch, small_disk, room_kb, capfd
):
    through = run("--max-steps", 40, out="through")
    monkeypatch.chdir(small_disk)
    killed(run, monkeypatch, 12, "--max-steps", 40)
    real = Learner.step

    def step(self, batches, lr, number):
        if number == 15:
            with Path("ballast").open("wb") as file:
                file.write(bytes(shutil.disk_usage(".").free - room_kb * 1_024))
        return real(self, batches, lr, number)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "step", step)
        with pytest.raises(
            ValueError, match=r"No space left on device: .*; last good checkpoint: .*/0000\d0"
        ) as end:
            run("--resume", "resumed", out="resumed")
    named = str(end.value).split()[-1]
    state = checkpoint.load_state(Path("resumed"))[0]
    assert Path(named).name == f"{state.step:06d}" and "damaged" not in capfd.readouterr().err
    Path("ballast").unlink()
    run("--resume", "resumed", out="resumed")
    assert_equal_runs(through, small_disk / "resumed")
    assert scalars(through) == scalars(small_disk / "resumed")


@pytest.fixture
def first_step(monkeypatch):
    """Stops a run at its first step; returns the weights it started from."""

    def first_step(start, *args, **options):
        seen = {}

        def spied(self, batches, lr, number):
            seen.update({n: p.clone() for n, p in tensor_files.of_model(self.model).items()})
            assert number == 1 and not self.optimizers[0].state
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Learner, "step", spied)
            start(*args, **options)
        return seen

    return first_step


def test_a_new_run_starts_from_the_weights_of_another(run, first_step):
    first = run("--max-steps", 10, out="first")
    tuned = ("--init-from", "first", "--max-steps", 10)
    seen, best = first_step(run, *tuned, out="tuned", settings=[]), weights(first / "model.safetensors")
    assert all(torch.equal(seen[name], best[name]) for name in best | seen)
    assert (first / "tokenizer.json").read_bytes() == Path("tuned/tokenizer.json").read_bytes()
    config, _ = model_folder.read_config(Path("tuned"))
    assert config.model == model_folder.read_config(first)[0].model and config.train.init_from == "first"


def test_a_tuned_run_killed_at_its_start_needs_the_other_model_no_more(run, monkeypatch):
    run("--max-steps", 10, out="first")
    through = run("--init-from", "first", "--max-steps", 20, out="through")
    killed(run, monkeypatch, 3, "--init-from", "first", "--max-steps", 20)
    shutil.rmtree("first")
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))
    assert "from the weights of `first`" in (through / "README.md").read_text()


@pytest.mark.parametrize(
    "args, refusal",
    [
        (("--d-model", 32), "the model in first has --d-model 16, not 32; leave the flag out"),
        (("--vocab-size", 400), "the model in first has --vocab-size 300, not 400"),
        (("--source", "image"), "the model in first has --source text, not image"),
        (("--patch-width", 20), "the model in first has --patch-width 40, not 20"),
    ],
)
def test_a_flag_that_contradicts_the_model_to_start_from_is_refused(run, args, refusal):
    run("--max-steps", 2, out="first")
    with pytest.raises(ValueError, match=refusal):
        run("--init-from", "first", "--max-steps", 2, *args, out="tuned", settings=[])
    assert not Path("tuned").exists()


def test_dropout_and_the_data_may_differ_from_the_model_to_start_from(run):
    run("--max-steps", 2, out="first")
    path = run("--init-from", "first", "--max-steps", 2, "--dropout", 0.3, "--max-length", 30, out="tuned")
    config, _ = model_folder.read_config(path)
    assert (config.model.dropout, config.data.max_length) == (0.3, 30)


@pytest.mark.parametrize("kind", ["image", "features"])
def test_other_sources_start_from_the_weights_of_another_too(kind, tmp_path, monkeypatch, first_step):
    monkeypatch.chdir(tmp_path)
    if kind == "image":
        rows = "".join(json.dumps({"de": s, "en": s}) + "\n" for s in sentences(60))
        Path("rows.jsonl").write_text(rows)
        source, special = "de", ["--patch-width", "24"]
    else:
        write_features(Path("rows.jsonl"), 60)
        source, special = "speech", ["--frame-stride", "2"]
    data = ["--dataset", "rows.jsonl", "--src", source, *TINY, "--max-steps", "2", "--validate-every", "2"]
    train.main([*data, "--source", kind, *special, "--out", "first"])
    seen = first_step(train.main, [*data, "--init-from", "first", "--out", "tuned"])
    best = weights("first/model.safetensors")
    assert all(torch.equal(seen[name], best[name]) for name in best | seen)
    first, tuned = (model_folder.read_config(Path(name))[0] for name in ("first", "tuned"))
    assert tuned.data.source == kind and tuned.source == first.source
    name = {"image": "font.ttf", "features": "features.json"}[kind]
    assert Path("first", name).read_bytes() == Path("tuned", name).read_bytes()


def test_a_model_that_is_not_there_cannot_be_started_from(run):
    with pytest.raises(FileNotFoundError, match="no model in absent"):
        run("--init-from", "absent", "--max-steps", 2, out="tuned")
