"""Damaged and hostile model folders: each loads and translates, or is refused in one line; no more memory, no crash."""

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import checkpoint
import model_folder
import reporting
import runtime
import strict_json
from checkpoint import TrainState
from config import Config, DataConfig, ModelConfig, SourceConfig, TrainConfig
from inputs import FeatureInput
from learner import Learner
from tokenizer import Tokenizer
from translator import Translator

SOURCES = {"text": "one two", "image": "one two", "features": np.ones((6, 4), np.float32)}
VALUES = (
    None, True, -1, 0, 1, 0.5, 1e-320, float("nan"), float("inf"), 2**31, 2**63, 10**400, "", "x" * 5_000, "\ud800",
    "../../etc/passwd", "U8", [], {}, [2**62, 2**62], [[0]] * 999,
)  # fmt: skip
MOST_GROWTH = 512 << 20  # bytes
MOST_S = 30  # of CPU time for one folder


def make_folder(path, kind):
    """A model folder of a run with two checkpoints that has learned nothing."""
    data = DataConfig(dataset="rows.jsonl", source=kind, max_length=30)
    size = ModelConfig(d_model=16, num_layers=1, num_decoder_layers=1, num_heads=2, d_ff=32, vocab_size=270)
    config = Config(data, size, TrainConfig(max_steps=9, accumulate=1), SourceConfig(frame_stride=2))
    tokenizer = Tokenizer.train(["one two three", "three two one"] * 3, 270)
    torch.manual_seed(0)
    if kind == "features":
        source = FeatureInput(2, np.zeros(4, np.float32), np.ones(4, np.float32))
    else:
        source = model_folder.make_source(config, tokenizer, [])
    model_folder.create(path, config, tokenizer, source, "0")
    learner = Learner(
        model_folder.build(config, tokenizer.vocab_size, source), config.train, torch.device("cpu")
    )
    model_folder.save_weights(path, learner.averaged, 1)
    for step in (1, 2):
        checkpoint.save_state(path, TrainState(step=step, best_step=1), learner.tensors(), keep=2)
    rows = [json.dumps({"kind": "train", "step": step, "loss": 1.5}) for step in (1, 2)]
    (path / "metrics.jsonl").write_text("\n".join(rows) + "\n")


def places(node, path=()):
    """Where in a JSON value there is something."""
    yield path
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs if len(pairs := list(pairs)) <= 50 else pairs[:50]:
        yield from places(value, (*path, key))


def changed(node, rng):
    """A JSON value with another value, one less, one more or one deeper somewhere in it."""
    path = rng.choice(list(places(node)))
    if not path:
        return rng.choice(VALUES)
    parent = node
    for key in path[:-1]:
        parent = parent[key]
    match rng.randrange(5):
        case 0:
            del parent[path[-1]]
        case 1 if isinstance(parent, dict):
            parent[rng.choice(["x", "", "__class__", "step"])] = parent[path[-1]]
        case 2:
            for _ in range(rng.choice([1, 50, 900])):
                parent[path[-1]] = [parent[path[-1]]]
        case _:
            parent[path[-1]] = rng.choice(VALUES)
    return node


def mutated_json(raw, rng):
    return json.dumps(changed(json.loads(raw), rng), ensure_ascii=rng.random() < 0.5).encode(
        errors="surrogatepass"
    )


def mutated_header(raw, rng):
    """A safetensors file with other names, types, shapes, offsets or length in its header."""
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    if rng.random() < 0.7:
        header.pop("__metadata__")  # a file without a checksum, as an attacker would leave it
    header = json.dumps(changed(header, rng)).encode()
    length = (
        len(header) if rng.random() < 0.8 else rng.choice([0, 1, 2**31, 2**63, len(raw), len(header) + 1])
    )
    return length.to_bytes(8, "little") + header + raw[8 + size :]


def mutated_bytes(raw, rng):
    data = bytearray(raw)
    match rng.randrange(5):
        case 0:
            return bytes(data[: rng.randrange(len(data) + 1)])
        case 1:
            at = rng.randrange(len(data) + 1)
            return bytes(data[:at]) + rng.randbytes(rng.choice([1, 8, 1_000])) + bytes(data[at:])
        case 2:
            return rng.randbytes(rng.choice([0, 1, 100, 10_000]))
        case _:
            for _ in range(rng.choice([1, 1, 4, 64])):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            return bytes(data)


def mutate(folder, rng):
    """Damage one file of a folder, and in half of the cases correct the checksums that would give it away."""
    file = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    raw = file.read_bytes()
    if file.suffix == ".json" and rng.random() < 0.8:
        file.write_bytes(mutated_json(raw, rng))
    elif file.suffix == ".safetensors" and rng.random() < 0.7:
        file.write_bytes(mutated_header(raw, rng))
    else:
        file.write_bytes(mutated_bytes(raw, rng))
    if rng.random() < 0.5:
        correct(folder, file)
    return file


def correct(folder, file):
    try:
        record = json.loads((folder / "config.json").read_text())
        if file.name in record["files"]:
            record["files"][file.name] = model_folder._file_checksum(file)
        if file.name in (*record["files"], "config.json"):
            record.pop("checksum", None)
            record["checksum"] = strict_json.checksum(record)
            (folder / "config.json").write_text(json.dumps(record))
        if file.name == "state.json":
            record = json.loads(file.read_text())
            record.pop("checksum", None)
            file.write_text(json.dumps({**record, "checksum": strict_json.checksum(record)}))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass


def use(folder, kind):
    """All that reading a folder consists of, where only messages to a user are raised; returns how many were."""
    refusals = 0
    for action in (
        lambda: Translator.load(folder, device="cpu").translate([SOURCES[kind]]),
        lambda: checkpoint.load_state(folder),
        lambda: checkpoint.restore_weights(folder, TrainState(step=2, best_step=1)),
        lambda: reporting._lines_until(folder / "metrics.jsonl", TrainState(1)),
    ):
        try:
            action()
        except (ValueError, OSError) as error:
            message = runtime._message(error)
            assert message and "\n" not in message and len(message) < 2_000, message[:3_000]
            refusals += 1
    return refusals


def fuzz(origin, kind, seed, num, work):
    """Use mutated copies; what goes wrong is raised, with the number that makes the same copy again."""
    soft = sum(int(n) for n in Path("/proc/self/statm").read_text().split()[:1]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (soft + 8 * MOST_GROWTH, soft + 8 * MOST_GROWTH))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    refused = 0
    for number in range(seed, seed + num):
        folder = shutil.copytree(origin, work / "model")
        file = mutate(folder, random.Random(number))
        print(kind, number, file.name, flush=True)
        signal.setitimer(signal.ITIMER_PROF, MOST_S)  # ends the process
        try:
            refused += use(folder, kind) > 0
        except BaseException as error:
            raise AssertionError(
                f"{kind} {number}, {file.name}: {type(error).__name__}: {error}"[:2_000]
            ) from error
        signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024 - before
        assert grown < MOST_GROWTH, f"{kind} {number}, {file.name}: {grown:,} bytes more"
        shutil.rmtree(folder)
    print(f"refused: {refused} of {num}")
    assert 0.2 < refused / num < 0.8  # what is damaged beyond reading, and what is not


@pytest.mark.parametrize(
    "kind, num",
    [
        ("text", 100),
        ("image", 60),
        ("features", 60),
        pytest.param("text", 4_000, marks=pytest.mark.slow),
        pytest.param("image", 3_000, marks=pytest.mark.slow),
        pytest.param("features", 3_000, marks=pytest.mark.slow),
    ],
)
def test_a_mutated_folder_loads_and_translates_or_is_refused_in_one_line(tmp_path, kind, num):
    make_folder(tmp_path / "origin", kind)
    log = tmp_path / "log"

    def child():
        sys.stdout = sys.stderr = log.open("w")
        fuzz(tmp_path / "origin", kind, 0, num, tmp_path)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0, "".join(log.read_text().splitlines(keepends=True)[-30:])
