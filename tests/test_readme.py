"""Every command of the README, run as it stands there, on a small corpus where it names one."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import render

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.S)
COMMANDS = [
    line.split("  #")[0].strip()
    for kind, text in BLOCKS
    if kind == "bash"
    for line in text.splitlines()
    if line
]
# Training as written takes minutes: here the same command learns for a moment.
BRIEF = "--max-steps 3 --d-model 16 --num-heads 2 --num-layers 1 --num-decoder-layers 1 --d-ff 32 --vocab-size 400"
ELSEWHERE = ("make ", "python3 -m venv", "tensorboard")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder like a user's: the program, a corpus, texts, and what the README's first commands leave."""
    desk = tmp_path_factory.mktemp("desk")
    for path in [*ROOT.glob("*.py")]:
        (desk / path.name).symlink_to(path)
    rng = random.Random(0)
    pairs = [[f"{rng.choice(side)} {rng.choice(side)} {i}" for side in ("ab", "xy")] for i in range(400)]
    for i, lang in enumerate(("en", "de")):
        (desk / f"letters.{lang}").write_text("".join(pair[i] + "\n" for pair in pairs))
    (desk / "letter.txt").write_text("a b 1.\n\nb a 2.\n")
    (desk / "sign.png").write_bytes(render.png(render.Renderer(render.packaged_font(), 24).strip("Exit", 18)))
    talks = [
        json.dumps({"speech": np.eye(9)[i % 5 :].tolist(), "fr": pair[1]}) for i, pair in enumerate(pairs)
    ]
    (desk / "talks.jsonl").write_text("\n".join(talks))
    np.save(desk / "utterance.npy", np.eye(9))
    for name in ("mine.txt", "other.txt", "reference.txt"):
        (desk / name).write_text("".join(f"{pair[1]}\n" for pair in pairs[:50]))
    return desk


def run(command, desk):
    # The interpreter of the tests in place of the one of an activated environment.
    command = re.sub(r"(^|\| )python ", rf"\1{sys.executable} ", command)
    return subprocess.run(["bash", "-c", command], cwd=desk, capture_output=True, text=True, timeout=300)


def test_every_command_of_the_readme_works_in_its_order(desk):
    ran = 0
    for command in COMMANDS:
        if command.startswith(ELSEWHERE):
            continue
        brief = command
        if "train.py" in command:
            brief += " --max-steps 6" if "--resume" in command else f" {BRIEF}"
        done = run(brief, desk)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        ran += 1
    assert ran >= 10
    assert (desk / "brief.txt").read_text().count("\n") == 3
    assert (desk / "attention.png").read_bytes().startswith(b"\x89PNG")
    python = next(text for kind, text in BLOCKS if kind == "python")
    done = subprocess.run([sys.executable, "-c", python], cwd=desk, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    left = next(text for kind, text in BLOCKS if text.startswith("runs/NAME"))
    named = {line.split()[0].rstrip("/") for line in left.splitlines()[1:] if line.strip()}
    assert named - {"font.ttf"} == {p.name for p in (desk / "runs" / "letters-en-de").iterdir()}


@pytest.mark.parametrize("target", [c for c in COMMANDS if c.startswith("make ")])
def test_make_targets_exist(target):
    done = subprocess.run([*target.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_make_demo_trains_with_no_arguments_and_translates_five_sentences():
    recipe = subprocess.run(
        ["make", "--dry-run", "demo", "DEMO=runs/absent"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert "python train.py; fi" in recipe and "translate.py" in recipe
    import phrasebook

    sentences = (ROOT / "docs" / "demo.txt").read_text().splitlines()
    known = {pair["en"] for pair in phrasebook.generate("train")}
    assert len(sentences) == 5 and not known & set(sentences)


def test_tensorboard_is_installed():
    done = subprocess.run(
        [sys.executable, "-m", "tensorboard.main", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0


def test_ci_runs_exactly_the_test_command_of_the_readme():
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and line[0] != "#"]
    assert lines[-1] == "make test" and "make test" in COMMANDS
