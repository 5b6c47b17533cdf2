"""Several ranks: the same weights, score and stop as one; one writes; all end together; files shared out in order."""

import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import test_chaos
import test_translate
import torch
from datasets import Dataset
from test_train import SMALL, write_copy_corpus

import checkpoint
import distributed
import model_folder
import run_settings
import runtime
import tensor_files
import train
import translate
from checkpoint import TrainState
from config import DecodeConfig, TrainConfig
from dataset import Batch, BatchSampler
from learner import Learner
from model import build_transformer
from translator import Translator

ROOT = Path(train.__file__).parent
CPU = torch.device("cpu")
DIES = """
import signal, sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
import distributed, runtime, test_distributed
dying = 1 if distributed.num_restarts() == 0 else None
flags = sys.argv[1:]
runtime.run_command(lambda: test_distributed.train_until(dying, signal.SIGKILL, flags), several_ranks=True)
"""
# Ranks are forked from a process that has imported everything and computed nothing: torch refuses to compute in a
# fork of one that has.
SERVER = multiprocessing.get_context("forkserver")
# What is otherwise loaded when it is first needed takes each of them seconds.
LAZY = "torch._dynamo torch.distributed.fsdp torch.distributed.checkpoint torch.utils.tensorboard matplotlib.pyplot"
SERVER.set_forkserver_preload(["test_distributed", *LAZY.split()])
model = test_translate.model  # a fixture


@pytest.fixture(scope="module", autouse=True)
def path_of_the_server():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
        yield


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Ranks:
    """Processes as torchrun would start them, that all call a function; their outputs go to files in `folder`."""

    def __init__(self, folder, function, *args, num=2, **env):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
        env |= {"WORLD_SIZE": str(num), "LOCAL_WORLD_SIZE": str(num)}
        self.processes = [
            SERVER.Process(target=be_a_rank, args=(folder, rank, env, function, *args)) for rank in range(num)
        ]
        for process in self.processes:
            process.start()

    def codes(self, timeout=600):
        """Exit codes, once all have ended."""
        for process in self.processes:
            process.join(timeout)
            assert process.exitcode is not None, "a rank hangs"
        return [process.exitcode for process in self.processes]

    def said(self, rank, name="stdout"):
        return (self.folder / f"{name}{rank}").read_text()


def be_a_rank(folder, rank, env, function, *args):
    os.environ.update(env, RANK=str(rank), LOCAL_RANK=str(rank))
    for name in ("stdout", "stderr"):
        setattr(sys, name, (folder / f"{name}{rank}").open("w", buffering=1))
    runtime.run_command(lambda: function(*args), several_ranks=True)


def weights(path):
    return safetensors.torch.load_file(path)


def assert_close(a, b, most=1e-5):
    assert a.keys() == b.keys()
    far = {name: (a[name].float() - b[name].float()).abs().max().item() for name in a}
    assert max(far.values()) <= most, sorted(far.items(), key=lambda item: -item[1])[:3]


# One step of learning


def micro_batches(step, num):
    rng = random.Random(step)

    def ids():
        return [rng.randrange(3, 20) for _ in range(rng.randint(1, 8))]

    sizes = [rng.randint(1, 5) for _ in range(num)]
    return [Batch.from_pairs([ids() for _ in range(n)], [ids() for _ in range(n)]) for n in sizes]


def tiny_learner(optimizer="adamw", shard=False):
    torch.manual_seed(distributed.rank())  # other weights on every rank: rank 0's count
    network = build_transformer(20, 20, 12, 12, 16, 1, 2, 0.1, 32)
    return Learner(network, TrainConfig(optimizer=optimizer), CPU, shard=shard)


def learn(num, optimizer, shard=False):
    """A learner after 50 steps; of several ranks, each has its share of the same micro-batches."""
    mine, losses = tiny_learner(optimizer, shard), []
    for step in range(1, 51):
        # The last step of an epoch may have fewer micro-batches than there are ranks.
        batches = micro_batches(step, 1 if step % 7 == 0 else num)
        share = batches[distributed.rank() :: distributed.world_size()] or [batches[0].silenced()]
        losses.append(mine.step(share, 1e-2, step)[0].item())
    return mine, losses


def save_learned(folder, num, optimizer, shard=False):
    with distributed.group(CPU, 1):
        mine, losses = learn(num, optimizer, shard)
        tensors = mine.tensors()
        if shard:
            tensors = distributed.gather_through(folder / "shards", tensors)
        with mine.gathered():
            averaged = tensor_files.of_model(mine.averaged)
        if distributed.is_first():
            safetensors.torch.save_file(tensors, folder / "all.safetensors")
            safetensors.torch.save_file(averaged, folder / "averaged.safetensors")
            (folder / "losses.json").write_text(json.dumps(losses))


ALSO = pytest.mark.slow  # what another case nearly shows
BOTH = [pytest.param("adamw", marks=ALSO), "muon"]  # with muon, adamw moves what is no matrix


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize("num", [2, 4])
def test_two_ranks_learn_the_same_as_one(tmp_path, num, optimizer):
    assert Ranks(tmp_path, save_learned, tmp_path, num, optimizer).codes() == [0, 0]
    alone, losses = learn(num, optimizer)
    assert_close(weights(tmp_path / "all.safetensors"), alone.tensors())
    torch.testing.assert_close(json.loads((tmp_path / "losses.json").read_text()), losses, atol=1e-5, rtol=0)


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize("num", [pytest.param(2, marks=ALSO), 3])  # of 3, one rank has two and the other one
def test_split_weights_learn_the_same_as_whole_ones(tmp_path, num, optimizer):
    assert Ranks(tmp_path, save_learned, tmp_path, num, optimizer, True).codes() == [0, 0]
    alone, _ = learn(num, optimizer)
    assert_close(weights(tmp_path / "all.safetensors"), alone.tensors())
    assert_close(weights(tmp_path / "averaged.safetensors"), tensor_files.of_model(alone.averaged))


def test_a_micro_batch_that_counts_for_nothing_has_no_gradients_and_no_tokens():
    silent = replace(micro_batches(1, 1)[0], of_corpora=(3, 4)).silenced()
    loss, gradients = tiny_learner()._gradients(silent, 0)
    assert loss == 0 and not any(gradient.any() for gradient in gradients)
    assert silent.num_tokens == 0 and silent.of_corpora == (0, 0)


def test_the_shares_of_the_ranks_are_together_the_batches_of_one():
    rows = [{"src": [5] * n, "src_length": n + 1, "tgt_ids": [n, 7]} for n in range(3, 50)]
    samplers = [
        BatchSampler(Dataset.from_list(rows), 20, seed=3, accumulate=4, rank=rank, world_size=3)
        for rank in range(3)
    ]
    alone = [batch.src.tolist() for batch in samplers[0].epoch(0, start=4)]
    states, together = [TrainState(batch=4) for _ in range(3)], []
    steps = [sampler.steps(state) for sampler, state in zip(samplers, states, strict=True)]
    while states[0].batch < samplers[0].num_batches(0):
        before, parts = states[0].batch, [next(of_rank) for of_rank in steps]
        assert all(parts) and states == [states[0]] * 3
        own = [[batch for batch in part if batch.num_tokens] for part in parts]
        together += [own[i % 3][i // 3].src.tolist() for i in range(states[0].batch - before)]
    assert len(alone) % 4 and together == alone


# What ranks share


def share(folder, num_rows):
    def ten_times(items):
        done.extend(items)
        return [10 * i for i in items]

    done = []
    with distributed.group(CPU, 1):
        results = distributed.shared(ten_times, range(num_rows))
    (folder / f"done{distributed.rank()}").write_text(json.dumps([done, results]))


@pytest.mark.parametrize("num_rows", [0, 1, 7])
def test_no_row_is_done_twice_or_left_out_when_rows_are_shared_out(tmp_path, num_rows):  # fault 20
    assert Ranks(tmp_path, share, tmp_path, num_rows).codes() == [0, 0]
    (a, first), (b, second) = (json.loads((tmp_path / f"done{rank}").read_text()) for rank in range(2))
    assert first == second == [10 * i for i in range(num_rows)]
    assert sorted(a + b) == list(range(num_rows)) and abs(len(a) - len(b)) <= 1


def compare():
    with distributed.group(CPU, 1):
        distributed.require_same("training data", str(distributed.rank()))


def test_ranks_with_other_data_are_refused(tmp_path):
    ranks = Ranks(tmp_path, compare)
    assert ranks.codes() == [2, 2]
    assert ranks.said(1, "stderr").startswith("rank 1: error: other training data than rank 0; ")


def wait_for_one_that_sleeps():
    with distributed.group(CPU, 2 / 60):
        if distributed.rank():
            time.sleep(60)


def test_a_rank_that_hangs_is_waited_for_no_longer_than_the_timeout(tmp_path):
    ranks = Ranks(tmp_path, wait_for_one_that_sleeps)
    ranks.processes[0].join(50)
    ranks.processes[1].kill()
    assert ranks.codes()[0] == 2
    assert ranks.said(0, "stderr").startswith("rank 0: error: another rank has ended or does not answer: ")


def prepare_slowly():
    with distributed.group(CPU, 2 / 60), distributed.first_on_machine_first():
        if distributed.is_first():
            time.sleep(3)


def test_a_rank_that_prepares_is_waited_for_longer_than_the_timeout(tmp_path):
    assert Ranks(tmp_path, prepare_slowly).codes() == [0, 0]


# Training


SHORT = ["--max-steps", "12", "--validate-every", "6", "--accumulate", "2", "--batch-tokens", "200"]


def flags_of(corpus, out):
    """Flags of a run of 50 steps of two micro-batches each."""
    data = ["--dataset", corpus, "--src", "en", "--tgt", "de", "--out", out, *SMALL]
    return [str(flag) for flag in (*data, "--accumulate", 2, "--max-steps", 50, "--dropout", 0.1)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_copy_corpus(tmp_path_factory.mktemp("corpus") / "copy.jsonl", 300)


@pytest.fixture
def flags(corpus, tmp_path):
    return flags_of(corpus, tmp_path / "run")


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    """The folder of the same run on one rank."""
    out = tmp_path_factory.mktemp("alone") / "run"
    train.main(flags_of(corpus, out))
    return out


def last_state(path):
    return weights(checkpoint.checkpoints(path)[-1] / "state.safetensors")


def metrics(path, *names):
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [[line.get(name) for name in ("kind", "step", *names)] for line in lines]


def scores_in_card(path):
    return re.findall(r"^\| test .*$", (path / "README.md").read_text(), re.M)


def train_until(rank, number, flags):
    """Train; before step 17, one rank gets a signal."""
    learned = Learner.step

    def step_or_die(self, batches, lr, at):
        if at == 17 and distributed.rank() == rank:
            os.kill(os.getpid(), number)
        return learned(self, batches, lr, at)

    Learner.step = step_or_die
    train.main(flags)


def train_until_moment(rank, moment, flags):
    """Train; one rank is killed at the moment of that number."""
    if distributed.rank() == rank:
        test_chaos.kill_at(moment)
    train.main(flags)


def train_until_validation(rank, flags):
    """Train; one rank gets a signal while it translates validation rows at step 20."""
    translated, steps = Translator.translate, []

    def translate_or_wait(self, sources, **kwargs):
        if len(steps) == 20 and distributed.rank() == rank:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(100)
        return translated(self, sources, **kwargs)

    learned = Learner.step
    Learner.step = lambda self, *args: (steps.append(args), learned(self, *args))[1]
    Translator.translate = translate_or_wait
    train.main(flags)


def train_with_a_broken_loss(flags):
    loss = Learner._loss
    factor = float("nan") if distributed.rank() else 1.0
    Learner._loss = lambda *args: loss(*args) * factor
    train.main(flags)


def test_two_ranks_train_to_the_same_weights_and_score_and_write_once(flags, tmp_path, alone):  # fault 20
    ranks = Ranks(tmp_path / "said", train.main, flags)
    assert ranks.codes() == [0, 0]
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert metrics(tmp_path / "run", "bleu", "chrf") == metrics(alone, "bleu", "chrf")
    assert scores_in_card(tmp_path / "run") == scores_in_card(alone) != []
    assert "done; the model is in" in ranks.said(0) and ranks.said(1) == ""


def test_two_ranks_stop_where_one_does_for_lack_of_progress(flags, tmp_path):
    more = ["--patience", "1", "--validate-every", "2", "--max-steps", "1000", "--lr", "1e-6"]
    assert Ranks(tmp_path / "said", train.main, [*flags, *more]).codes() == [0, 0]
    train.main([*flags, *more, "--out", str(tmp_path / "one")])
    stops = [metrics(tmp_path / name)[-1] for name in ("run", "one")]
    assert stops[0] == stops[1] and stops[0][1] < 1000


def test_ranks_stop_together_when_the_time_is_used_up(flags, tmp_path):
    more = ["--max-steps", "None", "--max-minutes", "0.03"]
    assert Ranks(tmp_path / "said", train.main, [*flags, *more]).codes() == [0, 0]


def test_a_signal_to_one_rank_stops_all_and_another_number_of_ranks_goes_on(flags, tmp_path, alone):
    ranks = Ranks(tmp_path / "said", train_until, 1, signal.SIGTERM, flags)
    assert ranks.codes() == [143, 143]
    assert "stopped at step 17, saved in" in ranks.said(0)
    train.main(["--resume", str(tmp_path / "run")])
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert metrics(tmp_path / "run", "bleu") == metrics(alone, "bleu")


def test_a_signal_to_one_rank_breaks_the_validation_of_all_off(flags, tmp_path, alone):
    began = time.monotonic()
    ranks = Ranks(tmp_path / "said", train_until_validation, 1, flags)
    assert ranks.codes() == [143, 143] and time.monotonic() - began < 90
    state, _ = checkpoint.load_state(tmp_path / "run")
    assert state.step == 20 and state.needs_validation and state.best_step in (0, 10)
    train.main(["--resume", str(tmp_path / "run")])
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert metrics(tmp_path / "run", "bleu") == metrics(alone, "bleu")


def test_all_ranks_go_on_from_the_newest_checkpoint_that_rank_0_can_read(flags, tmp_path, alone):
    assert Ranks(tmp_path / "said", train_until, 0, signal.SIGTERM, flags, num=1).codes() == [143]
    os.truncate(tmp_path / "run" / "checkpoints" / "000017" / "state.safetensors", 1_000)
    (tmp_path / "run" / "model.safetensors").unlink()
    ranks = Ranks(tmp_path / "said", train.main, ["--resume", str(tmp_path / "run")])
    assert ranks.codes() == [0, 0]
    assert "000017 is damaged and skipped" in ranks.said(0, "stderr")
    assert "model.safetensors is written anew from" in ranks.said(0) and "damaged" not in ranks.said(
        1, "stderr"
    )
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert metrics(tmp_path / "run", "bleu") == metrics(alone, "bleu")


def test_a_folder_that_another_run_holds_is_refused_by_rank_0(alone, tmp_path):
    with runtime.locked(alone):
        ranks = Ranks(tmp_path / "said", train.main, ["--resume", str(alone)])
        assert ranks.codes() == [2, 2]
    assert f"rank 0: error: {alone} is in use by process" in ranks.said(0, "stderr")


def test_two_ranks_start_from_the_weights_of_another_model(alone, flags, tmp_path):
    flags = ["--init-from", str(alone), *flags[:6], "--out", str(tmp_path / "run"), *SHORT]
    assert Ranks(tmp_path / "said", train.main, flags).codes() == [0, 0]
    train.main([*flags, "--out", str(tmp_path / "one")])
    assert_close(last_state(tmp_path / "run"), last_state(tmp_path / "one"))
    assert metrics(tmp_path / "run", "bleu") == metrics(tmp_path / "one", "bleu")


def test_a_streamed_mixture_is_the_same_on_two_ranks_as_on_one_and_another_number_goes_on(tmp_path):
    paths = [write_copy_corpus(tmp_path / f"{name}.jsonl", num) for name, num in (("a", 200), ("b", 100))]
    data = [
        "--dataset",
        *paths,
        "--weights",
        3,
        1,
        "--src",
        "en",
        "--tgt",
        "de",
        "--streaming",
        "--buffer",
        70,
    ]
    flags = [str(flag) for flag in (*data, *SMALL, "--accumulate", 3, "--max-steps", 24, "--dropout", 0.1)]
    train.main([*flags, "--out", str(tmp_path / "alone")])
    flags += ["--out", str(tmp_path / "run")]
    assert Ranks(tmp_path / "said", train_until, 1, signal.SIGTERM, flags).codes() == [143, 143]
    resume = ["--resume", str(tmp_path / "run")]
    assert Ranks(tmp_path / "said", train.main, resume, num=3).codes() == [0, 0, 0]
    (one, tensors), (several, others) = (checkpoint.load_state(tmp_path / name) for name in ("alone", "run"))
    assert_close(others, tensors)
    assert several.stream == one.stream and len(one.stream) == 3
    assert several.corpus_tokens == one.corpus_tokens and several.target_tokens == one.target_tokens
    assert metrics(tmp_path / "run", "bleu", "epoch") == metrics(tmp_path / "alone", "bleu", "epoch")


def test_a_killed_rank_ends_the_others_with_a_message(flags, tmp_path):
    ranks = Ranks(tmp_path / "said", train_until, 1, signal.SIGKILL, flags)
    assert ranks.codes() == [2, -signal.SIGKILL]
    said = ranks.said(0, "stderr").splitlines()[-1]
    assert said.startswith("rank 0: error: another rank has ended or does not answer: ")


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_of_either_rank_at_random_moments_change_nothing(flags, tmp_path, alone, kills):
    rng, killed = random.Random(kills), 0
    while killed < kills:
        is_begun = (tmp_path / "run" / "config.json").exists()
        given = ["--resume", str(tmp_path / "run")] if is_begun else flags
        rank, folder = killed % 2, tmp_path / f"start{len(list(tmp_path.glob('start*')))}"
        # Steps alone are moments of rank 1; of rank 0 also logged rows and all that writing files consists of.
        ranks = Ranks(folder, train_until_moment, rank, rng.randint(1, 8 if rank else 50), given)
        codes = ranks.codes()
        assert codes == [0, 0] or (codes[rank] == -signal.SIGKILL and codes[1 - rank] == 2), ranks.said(
            0, "stderr"
        )
        killed += codes[rank] == -signal.SIGKILL
        if (tmp_path / "run" / "README.md").exists():  # it came to its end: kill another one
            (tmp_path / "run").rename(tmp_path / f"ended{killed}")
    given = ["--resume", str(tmp_path / "run")] if (tmp_path / "run" / "config.json").exists() else flags
    assert Ranks(tmp_path / "said", train.main, given).codes() == [0, 0]
    for path in (tmp_path / "run", *tmp_path.glob("ended*")):
        assert_close(last_state(path), last_state(alone))
        assert metrics(path, "bleu") == metrics(alone, "bleu")


def test_a_loss_that_is_not_finite_stops_all_ranks(flags, tmp_path):
    ranks = Ranks(tmp_path / "said", train_with_a_broken_loss, flags)
    assert ranks.codes() == [2, 2]
    for rank in range(2):
        assert f"rank {rank}: error: loss or gradient is not finite at step 1;" in ranks.said(rank, "stderr")


def test_more_ranks_than_micro_batches_are_refused(flags, tmp_path):
    ranks = Ranks(tmp_path / "said", train.main, flags, num=3)
    assert ranks.codes() == [2, 2, 2]
    assert "--accumulate 2 gives fewer micro-batches than the 3 ranks" in ranks.said(0, "stderr")


def test_split_weights_are_saved_as_one_file_with_which_one_rank_goes_on(flags, tmp_path, alone):
    said = tmp_path / "said"
    assert Ranks(said, train_until, 0, signal.SIGTERM, [*flags, "--shard"]).codes() == [143, 143]
    train.main(["--resume", str(tmp_path / "run")])
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))


def test_shares_that_cannot_be_written_end_all_ranks_with_one_line(tmp_path):
    (tmp_path / "shards").touch()
    ranks = Ranks(tmp_path, save_learned, tmp_path, 2, "adamw", True)
    assert ranks.codes() == [2, 2]
    assert all(
        ranks.said(rank, "stderr").endswith(f"error: File exists: {tmp_path / 'shards'}\n") for rank in (0, 1)
    )


@pytest.mark.slow
def test_split_weights_go_on_from_the_checkpoint_of_one_rank(flags, tmp_path, alone):
    assert Ranks(tmp_path / "said", train_until, 0, signal.SIGTERM, flags, num=1).codes() == [143]
    resume = ["--resume", str(tmp_path / "run"), "--shard"]
    assert Ranks(tmp_path / "said", train.main, resume).codes() == [0, 0]
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert metrics(tmp_path / "run", "bleu") == metrics(alone, "bleu")


def test_one_process_has_nothing_to_split(flags):
    with pytest.raises(ValueError, match="--shard splits a model among several processes; start them with"):
        train.main([*flags, "--shard"])


# Started again by torchrun


@pytest.fixture
def interrupted(flags, tmp_path, monkeypatch):
    """The flags of a run that was killed; the launch "first" began it."""
    ranks = Ranks(
        tmp_path / "said", train_until, 0, signal.SIGKILL, flags, num=1, TORCHELASTIC_RUN_ID="first"
    )
    assert ranks.codes() == [-signal.SIGKILL]
    return flags


def test_a_restart_by_torchrun_goes_on_with_its_own_run(interrupted, tmp_path, monkeypatch, alone):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "first")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    train.main(interrupted)
    assert_close(last_state(tmp_path / "run"), last_state(alone), 0)
    assert (tmp_path / "run" / run_settings.LAUNCH).read_text() == "first"  # for the next restart


def train_under_another_name(flags):
    if distributed.rank():
        os.environ["TORCHELASTIC_RUN_ID"] = "other"
    train.main(flags)


def test_rank_0_decides_whether_a_restart_goes_on(interrupted, tmp_path, alone):
    env = {"TORCHELASTIC_RUN_ID": "first", "TORCHELASTIC_RESTART_COUNT": "1"}
    ranks = Ranks(tmp_path / "again", train_under_another_name, interrupted, **env)
    assert ranks.codes() == [0, 0]
    assert_close(last_state(tmp_path / "run"), last_state(alone))


def test_a_restart_by_torchrun_begins_a_run_anew_that_had_not_begun(flags, tmp_path, monkeypatch, alone):
    def dies(*args):
        raise KeyboardInterrupt

    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "first")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(model_folder, "create", dies)
        train.main(flags)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    train.main(flags)
    assert_close(last_state(tmp_path / "run"), last_state(alone), 0)


@pytest.mark.parametrize(("run_id", "restarts"), [("first", "0"), ("second", "1"), ("none", "1")])
def test_no_other_start_goes_on_with_a_run_that_is_there(interrupted, monkeypatch, run_id, restarts):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", run_id)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
    with pytest.raises(ValueError, match="holds an unfinished run; go on with it: --resume"):
        train.main(interrupted)


@pytest.mark.slow
def test_torchrun_starts_a_killed_run_again_and_it_ends_as_if_it_had_run_through(flags, tmp_path, alone):
    (tmp_path / "dies.py").write_text(DIES.format(root=str(ROOT)))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "2"]
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(tmp_path / "dies.py"), *flags], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "started again by torchrun: going on with" in done.stdout
    assert_close(last_state(tmp_path / "run"), last_state(alone))
    assert metrics(tmp_path / "run", "bleu") == metrics(alone, "bleu")


@pytest.mark.slow
def test_two_machines_with_addresses_of_their_own_train_together(tmp_path, alone, flags):
    command = ["bash", str(ROOT / "tests" / "two_machines.sh"), sys.executable, *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert_close(last_state(tmp_path / "run"), last_state(alone))


# Translating a file


@pytest.fixture(scope="module")
def lines():
    """75 lines of all kinds: five parts."""
    words = ["Where", "is", "the", "station?", "I", "see", "two", "dogs", "\u2028", "—"]
    rng = random.Random(1)
    ends = rng.choices(["\n", "\r\n"], k=75)
    return [(" ".join(rng.choices(words, k=rng.randint(0, 6))), end) for end in ends]


@pytest.fixture
def give(model, lines, tmp_path):
    """Flags that translate them."""
    (tmp_path / "in.txt").write_bytes("".join(map("".join, lines)).encode())
    files = ["--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"]
    return [str(flag) for flag in ("--model", model, *files, "--beam", 1, "--batch-size", 1, "--threads", 1)]


@pytest.fixture
def whole(model, lines):
    """What should come out."""
    said = Translator.load(model).translate([text for text, _ in lines], decode=DecodeConfig(beam=1))
    return "".join(translation.text + end for translation, (_, end) in zip(said, lines, strict=True)).encode()


def kill_this_process():
    os.kill(os.getpid(), signal.SIGKILL)


def raise_an_interrupt():
    raise KeyboardInterrupt


def count_calls(monkeypatch, most=None, end=kill_this_process):
    """Note what is translated; before the call after so many, the process is killed."""
    calls, translated = [], Translator.translate

    def translate_or_die(self, sources, **kwargs):
        if most is not None and len(calls) == most:
            end()
        calls.append(list(sources))
        return translated(self, sources, **kwargs)

    monkeypatch.setattr(Translator, "translate", translate_or_die)
    return calls


def translate_two_parts(flags):
    count_calls(pytest.MonkeyPatch(), most=2)
    translate.main(flags)


def parts(tmp_path):
    return list(tmp_path.glob(".out.txt.*.parts/0*"))


def test_a_file_is_translated_in_order_and_leaves_nothing_beside_it(give, whole, tmp_path):
    translate.main(give)
    assert (tmp_path / "out.txt").read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


@pytest.mark.parametrize("threads", ["1", "2"])  # two: each rank forks
def test_two_ranks_share_a_file_out(give, whole, tmp_path, threads):
    assert Ranks(tmp_path / "said", translate.main, [*give, "--threads", threads]).codes() == [0, 0]
    assert (tmp_path / "out.txt").read_bytes() == whole and not list(tmp_path.glob(".out*"))


def test_a_translation_that_is_going_on_is_not_done_twice(give, tmp_path):
    def translate_again(self, *args, **kwargs):
        with pytest.raises(ValueError, match=r"\.parts is in use by process"):
            translate.main(give)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Translator, "translate", translate_again)
        translate.main(give)


@pytest.mark.parametrize("num", [1, 2])
def test_a_translation_that_was_killed_goes_on_where_it_stood(give, whole, tmp_path, monkeypatch, capfd, num):
    assert -signal.SIGKILL in Ranks(tmp_path / "said", translate_two_parts, give, num=num).codes()
    num_done = len(parts(tmp_path))
    assert num_done in (2, 2 * num) and not (tmp_path / "out.txt").exists()
    calls = count_calls(monkeypatch)
    translate.main(give)
    assert len(calls) == 5 - num_done
    assert (tmp_path / "out.txt").read_bytes() == whole
    assert f"going on: {num_done} of 5 parts are translated already" in capfd.readouterr().err


@pytest.mark.parametrize("change", ["--beam 2", "--json", "input", "model"])
def test_parts_of_another_input_model_or_decoding_are_not_mixed_in(
    give, tmp_path, monkeypatch, change, model, capfd
):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        count_calls(patch, most=2, end=raise_an_interrupt)
        translate.main(give)
    if change == "input":
        (tmp_path / "in.txt").write_text((tmp_path / "in.txt").read_text().replace("two", "2"))
    elif change == "model":
        shutil.copytree(model, tmp_path / "model")
        with (tmp_path / "model" / "config.json").open("a") as file:
            file.write("\n")
        give += ["--model", str(tmp_path / "model")]
    else:
        give += change.split()
    calls = count_calls(monkeypatch)
    translate.main(give)
    assert len(calls) == 5 and len(parts(tmp_path)) == 2
    assert "is of another input, model or decoding, and not used" in capfd.readouterr().err


def test_an_input_that_grows_meanwhile_is_refused(give, tmp_path, monkeypatch):
    def grow(path, **options):
        with (tmp_path / "in.txt").open("a") as file:
            file.write("one more\n" * 16)
        return load(path, **options)

    load = Translator.load
    monkeypatch.setattr(Translator, "load", grow)
    with pytest.raises(ValueError, match=r"in\.txt has grown meanwhile; leave it as it is, and start again"):
        translate.main(give)


def test_several_ranks_are_refused_where_there_is_no_file_to_share_out(give, tmp_path):
    ranks = Ranks(tmp_path / "said", translate.main, ["--model", give[1], "two dogs"])
    assert ranks.codes() == [2, 2]
    assert ranks.said(0, "stderr").startswith(
        "rank 0: error: several processes share out a file; give --input"
    )
