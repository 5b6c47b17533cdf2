"""A run killed with SIGKILL at random moments, inside the writing of a checkpoint too, equals one that ran through."""

import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from test_resume import scalars
from test_train import SMALL, assert_equal_runs, corpus

import reporting
import train
from learner import Learner

__all__ = ["corpus"]  # a fixture
FORK = multiprocessing.get_context("fork")  # saves the seconds that each import takes
# A kill happens before one of these: steps, logged rows, and all that writing files and checkpoints consists of.
MOMENTS = (
    (Learner, "step"), (reporting.Reporter, "_write"), (os, "fsync"), (Path, "replace"), (shutil, "rmtree")
)  # fmt: skip


def kill_at(moment):
    """End this process as a SIGKILL does when so many of MOMENTS have come."""
    count = itertools.count(1)

    def dying(real):
        def call(*args, **options):
            if next(count) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for owner, name in MOMENTS:
        setattr(owner, name, dying(getattr(owner, name)))


def start(folder, args, moment=0):
    """Train in a process of its own; its output goes to a file."""

    def child():
        os.chdir(folder)
        sys.stdout = sys.stderr = (folder / "log").open("a")
        kill_at(moment)
        train.main([str(arg) for arg in args])

    process = FORK.Process(target=child)
    process.start()
    return process


def finish(process, after_s=None):
    """Wait for its end, or kill it after so many seconds; returns whether it was killed."""
    process.join(after_s)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def survive(folder, new, kills, rng):
    """Train to the end through that many kills: at counted moments, and every fourth at a moment of the clock."""
    killed, duration = 0, 0.0
    while killed < kills:
        args = ["--resume", "run"] if (folder / "run" / "config.json").exists() else [*new, "--out", "run"]
        if killed % 4 == 3:
            was_killed = finish(start(folder, args), after_s=rng.uniform(0, duration))
        else:
            started = time.monotonic()
            was_killed = finish(start(folder, args, moment=rng.randint(1, 60)))
            duration = max(duration, time.monotonic() - started)
        assert was_killed or (folder / "run" / "README.md").exists(), (folder / "log").read_text()
        if not was_killed:  # it came to its end: kill another one
            (folder / "run").rename(folder / f"ended-{killed}")
        killed += was_killed
    if not (folder / "run" / "README.md").exists():
        args = ["--resume", "run"] if (folder / "run" / "config.json").exists() else [*new, "--out", "run"]
        process = start(folder, args)
        assert not finish(process) and process.exitcode == 0, (folder / "log").read_text()
    return [*folder.glob("ended-*"), folder / "run"]


@pytest.mark.parametrize(
    "kills, optimizer, steps",
    [
        (3, "muon", 30),
        pytest.param(20, "adamw", 150, marks=pytest.mark.slow),
        pytest.param(20, "muon", 150, marks=pytest.mark.slow),
    ],
)
def test_kills_at_random_moments_change_nothing(corpus, tmp_path, kills, optimizer, steps):  # fault 16
    new = ["--dataset", corpus, "--src", "en", "--tgt", "de", *SMALL, "--max-steps", steps]
    new += ["--optimizer", optimizer, "--patience", 100, "--dropout", 0.2, "--bpe-dropout", 0.1]
    through = start(tmp_path, [*new, "--out", "through"])
    assert not finish(through) and through.exitcode == 0, (tmp_path / "log").read_text()
    for run in survive(tmp_path, new, kills, random.Random(kills)):
        assert_equal_runs(tmp_path / "through", run)
        assert scalars(tmp_path / "through") == scalars(run)
        left = [p.name for p in run.rglob(".*") if p.name != ".lock"]
        assert left == [] and names(run) == names(tmp_path / "through")


def names(run):
    return sorted(str(p.relative_to(run)) for p in run.rglob("*") if "tfevents" not in p.name)
