"""Training: the loss per real token, exact resume, signals, the recipe, a copy task learned through the commands."""

import copy
import errno
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch
from datasets import Dataset

import checkpoint
import learner
import preparation
import runtime
import train
import translator
import validator
from checkpoint import TrainState
from config import Config, DataConfig, TrainConfig
from dataset import Batch
from learner import Learner, loss_sum
from model import build_transformer
from reporting import write_card
from train import learning_rate, progress_of

ROOT = Path(train.__file__).parent
SMALL = (
    "--d-model 16 --num-heads 2 --num-layers 1 --num-decoder-layers 1 --d-ff 32 --batch-tokens 200 "
    "--vocab-size 300 --validate-every 10 --log-every 5 --threads 1"
).split()


def words(rng, num=5):
    return " ".join(
        rng.choice(["one", "two", "three", "four", "five", "six"]) for _ in range(rng.randint(1, num))
    )


def write_copy_corpus(path, rows):
    rng = random.Random(0)
    texts = {words(rng, 8) for _ in range(rows * 3)}
    lines = [json.dumps({"en": text, "de": text}) for text in sorted(texts)[:rows]]
    rng.shuffle(lines)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_copy_corpus(tmp_path_factory.mktemp("corpus") / "copy.jsonl", 300)


@pytest.fixture
def run(corpus, tmp_path, monkeypatch):
    """Train in this process; returns the model folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args, out="run", settings=SMALL):
        data = ["--dataset", str(corpus), "--src", "en", "--tgt", "de"]
        where = [] if "--resume" in args else ["--out", out, *data, *settings]
        train.main([*where, *map(str, args)])
        return tmp_path / out

    return run


def weights(path):
    return safetensors.torch.load_file(path)


def tiny_model():
    torch.manual_seed(0)
    return build_transformer(20, 20, 12, 12, 16, 1, 2, 0.0, 32)


PAIRS = [([3, 4, 5], [6, 7]), ([8], [9, 10, 11, 12, 13, 14]), ([3, 9, 9, 9, 9, 4], [5]), ([7, 7], [7, 7, 7])]


def gradients(micro_batches):
    mine = Learner(tiny_model(), TrainConfig(clip_norm=1e9), torch.device("cpu"))
    seen = {}
    mine.optimizers[0].register_step_pre_hook(
        lambda *_: seen.update({n: p.grad.clone() for n, p in mine.model.named_parameters()})
    )
    loss, _ = mine.step(micro_batches, 1e-3, 1)
    return loss, seen


def batch(pairs):
    return Batch.from_pairs([s for s, _ in pairs], [t for _, t in pairs])


def test_another_optimizer_than_the_preset_s_brings_its_own_learning_rate_and_decay(run, capsys):
    path = run("--optimizer", "adamw", "--weight-decay", 0.2, "--max-steps", 1)
    config = json.loads((path / "config.json").read_text())["config"]["train"]
    assert (config["optimizer"], config["lr"], config["weight_decay"]) == ("adamw", 1e-3, 0.2)
    assert "overridden: --optimizer adamw, with --lr 0.001 and --weight-decay 0.01" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sizes", "num", "ends"),
    [
        ([1, 9], 2, [1, 2]),
        ([5, 8, 1], 2, [1, 3]),
        ([3], 4, [1]),
        ([2, 2, 2, 2], 2, [2, 4]),
        ([9, 1, 1], 3, [1, 3]),
    ],
)
def test_weights_are_shared_out_evenly(sizes, num, ends):
    shares = learner._shares([torch.empty(size) for size in sizes], num)
    assert [share.stop for share in shares] == ends
    assert [i for share in shares for i in share] == list(range(len(sizes)))


def test_one_batch_or_micro_batches_give_the_same_gradients():  # fault 18
    loss, whole = gradients([batch(PAIRS)])
    for parts in ([PAIRS[:1], PAIRS[1:]], [[p] for p in PAIRS], [PAIRS[:3], PAIRS[3:]]):
        other_loss, split = gradients([batch(part) for part in parts])
        torch.testing.assert_close(loss, other_loss, atol=1e-6, rtol=1e-6)
        for name, gradient in whole.items():
            torch.testing.assert_close(gradient, split[name], atol=1e-6, rtol=1e-5)


def test_extra_padding_changes_neither_loss_nor_gradients():  # fault 18
    alone, long = batch(PAIRS[:1]), batch(PAIRS)
    cut = Batch(**{k: v[:1] for k, v in vars(long).items() if k != "num_tokens"}, num_tokens=alone.num_tokens)
    (loss, plain), (padded_loss, padded) = gradients([alone]), gradients([cut])
    torch.testing.assert_close(loss, padded_loss, atol=1e-6, rtol=1e-6)
    for name, gradient in plain.items():
        torch.testing.assert_close(gradient, padded[name], atol=1e-6, rtol=1e-5)


def test_the_smoothed_loss_follows_its_definition():  # fault 18
    model, smoothing = tiny_model(), 0.1
    b = batch(PAIRS)
    logits = model(b.src, b.src_mask, b.tgt_in, b.tgt_mask).log_softmax(-1)
    expected = 0.0
    for i, (_, tgt) in enumerate(PAIRS):
        for t, token in enumerate([*tgt, 2]):
            expected -= (1 - smoothing) * logits[i, t, token].item() + smoothing * logits[i, t].mean().item()
    assert loss_sum(model, b, smoothing).item() == pytest.approx(expected, rel=1e-5)


def test_warm_up_then_cosine_to_zero():
    config = TrainConfig(lr=1.0, warmup_steps=10, max_steps=100, schedule="cosine")
    rates = [learning_rate(step, progress_of(TrainState(step - 1), config), config) for step in range(1, 102)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == pytest.approx(rates[9], rel=0.05)
    assert rates[50] == pytest.approx(0.5) and rates[100] == pytest.approx(0.0, abs=1e-9)


def test_warm_up_then_inverse_square_root():
    config = TrainConfig(lr=1.0, warmup_steps=100, schedule="inverse-sqrt")
    assert learning_rate(50, 0.0, config) == pytest.approx(0.5)
    assert learning_rate(400, 0.9, config) == pytest.approx(0.5)


def test_the_warm_up_takes_no_more_than_a_fifth_of_a_time_budget():
    config = TrainConfig(lr=1.0, warmup_steps=300, max_minutes=1.0)
    assert learning_rate(10, 0.1, config) == pytest.approx(0.5 * 0.5 * (1 + math.cos(0.1 * math.pi)))
    assert learning_rate(20, 0.2, config) == pytest.approx(0.5 * (1 + math.cos(0.2 * math.pi)))
    asked = TrainConfig(lr=1.0, warmup_steps=300, max_minutes=1.0, max_steps=1_000)
    assert learning_rate(3, 0.2, asked) == pytest.approx(0.01 * 0.5 * (1 + math.cos(0.2 * math.pi)))


def test_the_budget_that_ends_first_counts():
    config = TrainConfig(max_steps=100, max_minutes=1.0)
    assert progress_of(TrainState(10, elapsed_s=30.0), config) == 0.5
    assert progress_of(TrainState(90, elapsed_s=30.0), config) == 0.9
    assert progress_of(TrainState(7, elapsed_s=9.0), TrainConfig()) == 0.0


def test_weights_that_do_not_learn_stay_as_they_are():
    model = tiny_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    model.encoder.requires_grad_(False)
    mine = Learner(model, TrainConfig(), torch.device("cpu"), workers=2)
    mine.step([batch(PAIRS[:2]), batch(PAIRS[2:])], 1e-2, 1)
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {name for name, p in model.named_parameters() if p.requires_grad}


def test_averaged_weights_follow_their_decay():
    mine = Learner(tiny_model(), TrainConfig(ema_decay=0.75), torch.device("cpu"))
    name = "encoder.layers.0.feed_forward_block.linear_1.weight"
    history = []
    for _ in range(3):
        mine.step([batch(PAIRS)], 1e-2, 1)
        history.append(dict(mine.model.named_parameters())[name].detach().clone())
    expected = 0.75 * (0.75 * history[0] + 0.25 * history[1]) + 0.25 * history[2]
    torch.testing.assert_close(dict(mine.averaged.named_parameters())[name], expected)


def test_a_restored_learner_takes_the_same_next_step():
    first = Learner(tiny_model(), TrainConfig(), torch.device("cpu"))
    first.step([batch(PAIRS)], 1e-2, 1)
    state = {name: tensor.clone() for name, tensor in first.tensors().items()}
    second = Learner(build_transformer(20, 20, 12, 12, 16, 1, 2, 0.0, 32), TrainConfig(), torch.device("cpu"))
    second.restore(copy.deepcopy(state), Path("state"))
    for mine in (first, second):
        mine.step([batch(PAIRS)], 1e-2, 1)
    for name, tensor in first.tensors().items():
        assert torch.equal(tensor, second.tensors()[name]), name


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_number_of_workers_changes_no_weight(optimizer):
    def trained(workers):
        torch.manual_seed(0)
        model = build_transformer(20, 20, 12, 12, 16, 1, 2, 0.3, 32)
        mine = Learner(model, TrainConfig(optimizer=optimizer), torch.device("cpu"), workers)
        loss, norm = [mine.step([batch([p]) for p in PAIRS], 1e-2, step) for step in (1, 2, 3)][-1]
        return {"loss": loss, "norm": norm, **mine.tensors()}

    alone = trained(1)
    for together in map(trained, (2, 3, 40)):
        assert alone.keys() == together.keys()
        assert all(torch.equal(value, together[name]) for name, value in alone.items())


def metrics(path):
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("elapsed_s", "tokens_per_s")} for line in lines]


def killed_at(step):
    """A Learner.step that ends the run as a SIGKILL would, with nothing saved."""
    real = Learner.step

    def step_or_die(self, batches, lr, number):
        if number > step:
            raise KeyboardInterrupt
        return real(self, batches, lr, number)

    return step_or_die


@pytest.mark.parametrize(
    "extra",
    [(), ("--accumulate", "2", "--threads", "2"), ("--bpe-dropout", "0.2"), ("--optimizer", "muon")],
)
def test_a_run_killed_and_resumed_equals_one_that_ran_through(run, monkeypatch, extra):  # fault 16
    through = run("--max-steps", 30, *extra, out="through")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "step", killed_at(17))
        run("--max-steps", 30, *extra, out="resumed")
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))


def test_a_run_interrupted_and_resumed_equals_one_that_ran_through(run, monkeypatch):  # fault 16
    through = run("--max-steps", 30, out="through")
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Learner, "step", signalled_at(17, signal.SIGTERM))
        run("--max-steps", 30, out="resumed")
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))


def test_a_run_killed_before_its_first_checkpoint_starts_over(run, monkeypatch):
    through = run("--max-steps", 20, out="through")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "step", killed_at(7))
        run("--max-steps", 20, out="resumed")
    assert_equal_runs(through, run("--resume", "resumed", out="resumed"))


def assert_equal_runs(through, resumed):
    assert metrics(through) == metrics(resumed)
    last = checkpoint.checkpoints(through)[-1].name
    for name in ("model.safetensors", f"checkpoints/{last}/state.safetensors"):
        a, b = weights(through / name), weights(resumed / name)
        assert all(torch.equal(a[k], b[k]) for k in a | b), name


def test_the_same_seed_gives_the_same_run_and_another_does_not(run):
    first = run("--max-steps", 10, out="a")
    again = run("--max-steps", 10, out="b")
    other = run("--max-steps", 10, "--seed", 2, out="c")
    assert metrics(first) == metrics(again) != metrics(other)


def test_bpe_dropout_changes_what_is_learned_and_keeps_to_the_seed(run):
    plain = run("--max-steps", 10, out="a")
    first = run("--max-steps", 10, "--bpe-dropout", 0.3, out="b")
    again = run("--max-steps", 10, "--bpe-dropout", 0.3, out="c")
    assert metrics(plain) != metrics(first) == metrics(again)


def test_accumulation_splits_the_step_and_not_the_tokens(run, monkeypatch):
    sizes, step = [], Learner.step

    def spied(self, batches, *args):
        sizes.append([b.num_tokens for b in batches])
        return step(self, batches, *args)

    monkeypatch.setattr(Learner, "step", spied)
    path = run("--max-steps", 10, "--accumulate", 2)
    assert [len(parts) for parts in sizes].count(2) >= 8  # an epoch may end with an odd batch
    assert all(sum(parts) <= 200 for parts in sizes)
    assert checkpoint.load_state(path)[0].target_tokens == sum(map(sum, sizes)) > 1_500


def test_a_run_leaves_the_folder_that_the_readme_shows(run):
    path = run("--max-steps", 10)
    names = {p.name for p in path.iterdir()}
    assert names == {
        ".lock", "README.md", "checkpoints", "config.json", "data.json", "metrics.jsonl", "model.safetensors",
        "shortlist.safetensors", "tensorboard", "tokenizer.json",
    }  # fmt: skip
    card = (path / "README.md").read_text()
    assert "en → de" in card and "nrefs:1\\|" in card and "python translate.py --model" in card


def test_a_terminal_gets_a_bar_with_loss_rate_and_time_left(run, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run("--max-steps", 10)
    shown = capsys.readouterr()
    assert re.search(r"100%\|.*\| 0:0\d<0:00 \| step 10 .*loss \d.*lr \d.*tokens/s", shown.err)
    assert "| loss" not in shown.out


def test_tensorboard_has_curves_samples_and_a_picture(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = run("--max-steps", 10)
    events = EventAccumulator(str(path / "tensorboard")).Reload().Tags()
    wanted = {"loss", "lr", "gradient_norm", "tokens_per_s"}
    assert {f"train/{name}" for name in wanted} | {"validation/bleu", "validation/chrf"} <= set(
        events["scalars"]
    )
    assert events["images"] == ["cross-attention"] and events["tensors"] == ["samples/text_summary"]


def test_training_stops_when_validation_no_longer_improves(run, monkeypatch):
    monkeypatch.setattr(validator, "quick_score", lambda *_, **__: (1.0, 1.0))
    path = run("--max-steps", 500, "--patience", 2)
    state = checkpoint.load_state(path)[0]
    assert (state.step, state.best_step, state.bad_validations) == (30, 10, 2)


def test_the_time_budget_ends_the_run(run):
    started = time.monotonic()
    path = run("--max-minutes", 0.05)
    assert time.monotonic() - started < 30
    assert checkpoint.load_state(path)[0].elapsed_s >= 3


def test_a_loss_that_is_not_finite_names_its_step_and_the_checkpoint(run, monkeypatch):
    real = learner.loss_sum
    calls = []

    def poisoned(*args):
        calls.append(1)
        return real(*args) * (math.nan if len(calls) > 12 else 1.0)

    monkeypatch.setattr(learner, "loss_sum", poisoned)
    with pytest.raises(ValueError, match=r"not finite at step 13; .*checkpoints/000010; .*lower --lr"):
        run("--max-steps", 30)


def signalled_at(step, number):
    """A Learner.step in the middle of which a signal arrives."""
    real = Learner.step

    def step_with_signal(self, batches, lr, now):
        if now == step:
            os.kill(os.getpid(), number)
        return real(self, batches, lr, now)

    return step_with_signal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_says_how_to_go_on(run, monkeypatch, capsys, number):
    before = signal.getsignal(number)
    monkeypatch.setattr(Learner, "step", signalled_at(7, number))
    with pytest.raises(SystemExit) as end:
        run("--max-steps", 30)
    assert end.value.code == 128 + number
    assert "python train.py --resume run" in capsys.readouterr().out
    assert checkpoint.load_state(Path("run"))[0].step == 7
    assert signal.getsignal(number) is before


def test_positions_that_grow_while_validating_do_not_stop_training(run, monkeypatch, tmp_path):
    translate = translator.Translator.translate

    def and_long(self, texts, **options):
        self.model.encode(torch.ones(1, 3_000, dtype=torch.int64), None)
        return translate(self, texts, **options)

    monkeypatch.setattr(translator.Translator, "translate", and_long)
    rows = [json.dumps({"en": "x " * n, "de": "x " * n}) for n in range(1, 700, 10)]
    (tmp_path / "long.jsonl").write_text("\n".join(rows))
    long = ("--dataset", tmp_path / "long.jsonl", "--max-length", 2_000, "--batch-tokens", 3_000)
    assert checkpoint.load_state(run("--max-steps", 12, *long))[0].step == 12


def test_learned_positions_validate_from_the_start(run):
    path = run("--max-steps", 2, "--validate-every", 1, "--positions", "learned", "--max-length", 31)
    assert [line["step"] for line in metrics(path) if line["kind"] == "validation"] == [1, 2]


def test_a_small_corpus_is_not_given_up_during_the_warm_up(run):
    run("--max-steps", 400, "--validate-every", "None", "--warmup-steps", 200)
    steps = [line["step"] for line in metrics(Path("run")) if line["kind"] == "validation"]
    assert steps == [200, 400]


def test_the_card_names_the_device_that_the_model_learned_on(tmp_path):
    write_card(tmp_path, Config(), TrainState(), {}, 1, 1, torch.device("mps"))
    assert " on mps." in (tmp_path / "README.md").read_text()


def test_a_run_without_an_end_is_refused(run):
    with pytest.raises(ValueError, match="--patience None never ends"):
        run("--patience", "None")


def test_a_cosine_that_no_budget_ends_is_refused_in_a_new_run_and_in_one_that_goes_on(run):
    message = "--schedule cosine ends with the budget; give --max-minutes or --max-steps"
    with pytest.raises(ValueError, match=f"{message}, or --schedule inverse-sqrt$"):
        run("--schedule", "cosine")
    run("--max-steps", 2)
    with pytest.raises(ValueError, match=f"{message}$"):
        run("--resume", "run", "--max-steps", "None")


def test_resuming_into_another_folder_is_refused(run):
    with pytest.raises(ValueError, match="--resume goes on in its own folder, a; leave --out out"):
        run("--resume", "a", "--out", "b")


def test_a_folder_with_other_files_is_refused_without_advice_to_resume(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="run is there already and is not empty; choose another folder"):
        run("--max-steps", 10)


def test_a_full_disk_names_the_file_and_the_last_good_checkpoint(run, monkeypatch):
    write = runtime.write_atomic

    def full_from_step_20(path, data):
        if "000020" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, data)

    monkeypatch.setattr(runtime, "write_atomic", full_from_step_20)
    with pytest.raises(
        ValueError, match=r"No space left on device: .*state\.safetensors; .*checkpoints/000010"
    ):
        run("--max-steps", 30)
    assert [p.name for p in Path("run/checkpoints").iterdir()] == ["000010"]


def test_a_folder_with_another_run_is_refused(run):
    path = run("--max-steps", 10)
    before = (path / "config.json").read_bytes()
    with pytest.raises(
        ValueError,
        match="run holds a finished run; train it longer with --resume run and .*, or choose another folder",
    ):
        run("--max-steps", 10)
    assert (path / "config.json").read_bytes() == before


def test_a_resumed_run_may_go_on_longer(run, capsys):
    run("--max-steps", 10)
    run("--resume", "run", "--max-steps", 20)
    assert "changed on resume: --max-steps from 10 to 20" in capsys.readouterr().out
    assert checkpoint.load_state(Path("run"))[0].step == 20


def test_a_resumed_run_cannot_change_its_model(run):
    run("--max-steps", 10)
    with pytest.raises(ValueError, match="cannot change --d-model from 16 to 32"):
        run("--resume", "run", "--d-model", 32)


def test_a_resumed_run_needs_the_data_it_learned_from(run, tmp_path):
    mine = write_copy_corpus(tmp_path / "mine.jsonl", 100)
    run("--max-steps", 10, "--dataset", mine)
    mine.write_text(mine.read_text().replace("one", "eins"))
    with pytest.raises(ValueError, match=r"mine\.jsonl is not the data that run learned from"):
        run("--resume", "run", "--max-steps", 20)


def test_the_tokenizer_has_seen_training_rows_alone(run, tmp_path):  # fault 22
    folder = tmp_path / "data"
    folder.mkdir()
    write_copy_corpus(folder / "train.jsonl", 50)
    for split in ("validation", "test"):
        rows = [json.dumps({"en": f"zyzzyva {i}", "de": f"zyzzyva {i}"}) for i in range(20)]
        (folder / f"{split}.jsonl").write_text("\n".join(rows))
    path = run("--max-steps", 2, "--dataset", folder)
    assert "yz" not in (path / "tokenizer.json").read_text()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "image",
            "warning: the font cannot draw some characters: 漢 語; train with another font: --font FILE\n",
        ),
        ("text", ""),
    ],
)
def test_characters_of_the_training_rows_that_the_font_lacks_are_named_once(kind, said, capsys):
    rows = Dataset.from_dict({"src": ["a 語", "語 b 漢"], "tgt": ["a", "b"]})
    preparation.make_sides(Config(DataConfig(source=kind)), rows, None)
    assert capsys.readouterr().out == said


def test_the_tokenizer_of_a_large_corpus_learns_from_rows_at_even_distances(monkeypatch):
    texts = ["north north", "east east", "south south", "west west"] * 2
    rows = Dataset.from_dict({"src": texts, "tgt": texts})
    monkeypatch.setattr(preparation, "TOKENIZER_ROWS", 4)
    tokenizer, _ = preparation.make_sides(Config(), rows, None)
    assert [len(tokenizer.encode(text)) == 2 for text in texts[:4]] == [True, False, True, False]


def test_an_unreadable_corpus_leaves_no_folder(run, tmp_path):
    with pytest.raises((ValueError, FileNotFoundError)):
        run("--dataset", tmp_path / "absent.jsonl")
    assert not (tmp_path / "run").exists()


def command(*args, cwd, **options):
    return subprocess.run(
        [sys.executable, *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=300, **options
    )


def test_a_copy_task_is_learned_through_the_command_line(tmp_path):
    corpus = write_copy_corpus(tmp_path / "copy.jsonl", 3_000)
    size = "--d-model 64 --num-heads 4 --num-layers 1 --num-decoder-layers 1 --d-ff 128 --dropout 0"
    how = "--batch-tokens 600 --lr 3e-3 --warmup-steps 50 --max-steps 400 --threads 1 --src en --tgt de"
    settings = ["--dataset", corpus, *size.split(), *how.split()]
    trained = command(ROOT / "train.py", *settings, "--vocab-size", 300, "--out", "copy", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    scored = command(ROOT / "evaluate.py", "--model", "copy", "--json", "scores.json", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    scores = {s["name"]: s["value"] for s in json.loads((tmp_path / "scores.json").read_text())["scores"]}
    assert scores["exact match"] >= 95
    sentence = "six five one two two"
    translated = command(ROOT / "translate.py", "--model", "copy", sentence, cwd=tmp_path)
    assert (translated.returncode, translated.stdout) == (0, sentence + "\n")


def test_mistakes_are_one_line_and_exit_code_2(tmp_path):
    for args, message in (
        (["--dataset", "absent.jsonl"], "absent.jsonl"),
        (["--d-model", "10", "--num-heads", "4"], "--num-heads must divide --d-model, got 4 and 10"),
        (["--resume", "absent"], "no model in absent"),
        (["--device", "warp"], "--device warp"),
    ):
        done = command(ROOT / "train.py", *args, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_resumes(tmp_path):
    corpus = write_copy_corpus(tmp_path / "copy.jsonl", 300)
    args = [sys.executable, str(ROOT / "train.py"), "--dataset", str(corpus), "--src", "en", "--tgt", "de"]
    args += [*SMALL, "--out", "run", "--max-steps", "100000", "--patience", "100000"]
    process = subprocess.Popen(args, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(checkpoint.checkpoints(tmp_path / "run")) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    reached = checkpoint.load_state(tmp_path / "run")[0]
    assert isinstance(reached, TrainState)
    more = command(ROOT / "train.py", "--resume", "run", "--max-steps", reached.step + 10, cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    assert checkpoint.load_state(tmp_path / "run")[0].step == reached.step + 10
