"""Speech translation measured: English of a small slice of the phrasebook, spoken by espeak-ng, into French text.

    python benchmarks/speech.py make DIR
    python benchmarks/speech.py run DIR --minutes 20 --out RUN

and, for the score on voices that were not heard in training:

    python benchmarks/speech.py make OTHER --test-only --voices en-029 en-us+f5 en-gb+m1
    python benchmarks/speech.py run DIR --minutes 20 --out RUN --also OTHER

`make` needs the program espeak-ng (Debian and Ubuntu: apt-get install espeak-ng); nothing else here does. The
voice is a machine's, so a score says what the whole path from features to text can learn, not how well it would
understand a person.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import tyro
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import phrasebook
import runtime
from command_line import parse_args

ROOT = Path(__file__).resolve().parent.parent

RATE = 22_050  # what espeak-ng speaks at, Hz
WINDOW = 551  # 25 ms
HOP = 220  # 10 ms
FFT = 1_024
BANDS = 40
HIGHEST_HZ = 8_000.0
FLOOR = 1e-6  # of power in a band: far below speech, so that silence is finite

VOICES = (
    "en-us", "en-gb", "en-gb-scotland", "en-us+f2", "en-us+m3", "en-gb+f4", "en-gb+m7", "en-gb-scotland+f3"
)  # fmt: skip
WORDS_PER_MINUTE = (140, 200)
HELD_OUT = 500
PATIENCE = 300_000
"""Sentences of the phrasebook in a row without one of the slice after which the slice counts as exhausted."""

TRAIN_FLAGS = tuple(
    "--preset phrasebook --batch-tokens 768 --accumulate 2 --warmup-steps 300 --vocab-size 1000".split()
    + "--optimizer adamw --lr 2e-3 --weight-decay 0.01".split()
)
"""Flags of train.py beside the corpus, the time and the folder."""

_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")


# ---- Features -------------------------------------------------------------------------------------


@cache
def mel_filterbank(
    bands: int = BANDS, fft: int = FFT, rate: int = RATE, highest: float = HIGHEST_HZ
) -> Tensor:
    """Triangles evenly spaced on the mel scale from 0 Hz: each peaks at 1 where its neighbours begin and end.

    Returns:
        (fft // 2 + 1, bands), float32.
    Source: the scale of O'Shaughnessy 1987, 2595 log10(1 + f / 700).
    """
    top = 2_595 * math.log10(1 + highest / 700)
    edges = 700 * (10 ** (torch.linspace(0, top, bands + 2, dtype=torch.float64) / 2_595) - 1)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    hertz = torch.arange(fft // 2 + 1, dtype=torch.float64).unsqueeze(1) * rate / fft
    rising, falling = (hertz - lower) / (centre - lower), (upper - hertz) / (upper - centre)
    return torch.minimum(rising, falling).clamp(min=0).float()


def log_mel(samples: Tensor) -> Tensor:
    """Logarithm of the power in each mel band, window by window.

    Args:
        samples: (n,), float32 in [-1, 1], at 22,050 Hz.
    Returns:
        (1 + (n - 551) // 220, 40), float32; what is shorter than a window counts as one, ended by silence.
    """
    if len(samples) < WINDOW:
        samples = torch.nn.functional.pad(samples, (0, WINDOW - len(samples)))
    windows = samples.unfold(0, WINDOW, HOP) * torch.hann_window(WINDOW)  # (frames, 551)
    power = torch.fft.rfft(windows, n=FFT).abs().square()  # (frames, 513)
    return (power @ mel_filterbank()).clamp(min=FLOOR).log()


def samples_of(wav: bytes) -> Tensor:
    """The samples of a RIFF file as espeak-ng writes it to a pipe: (n,), float32 in [-1, 1].

    Raises:
        ValueError: it is not 16-bit mono sound at 22,050 Hz.
    """
    # Into a pipe the length in the header is made up; the samples go to the end.
    header = struct.Struct("<4s4x4s4s4xHHI4x2xH")
    found = header.unpack_from(wav) if len(wav) >= 44 else None
    if found != (b"RIFF", b"WAVE", b"fmt ", 1, 1, RATE, 16):
        raise ValueError(f"expected 16-bit mono sound at {RATE} Hz from espeak-ng, got {wav[:44]!r}")
    values = np.frombuffer(wav, dtype="<i2", offset=44, count=(len(wav) - 44) // 2)
    return torch.from_numpy(values.astype(np.float32) / 32_768)


# ---- The slice and how it is spoken ---------------------------------------------------------------


class Utterance(NamedTuple):
    """A sentence pair and how its English is spoken."""

    en: str
    fr: str
    voice: str
    speed: int
    """Words per minute."""


def spoken_words(text: str) -> tuple[str, ...]:
    """What is heard of an English sentence: its words, in small letters."""
    return tuple(_WORD.findall(text.lower()))


@cache
def common_words(num_words: int) -> frozenset[str]:
    """The most frequent English words of the phrasebook's usual training draw."""
    counts = Counter(word for pair in phrasebook.sentences("train") for word in spoken_words(pair.en))
    return frozenset(word for word, _ in counts.most_common(num_words))


def slice_of(
    split: str, num_pairs: int, num_words: int, longest: int, known: frozenset[str] | None = None
) -> list[phrasebook.Sentence]:
    """Sentences of a split of the phrasebook that are short and made of frequent words alone.

    Args:
        num_pairs: how many. num_words: most frequent English words that may occur.
        longest: words of the longest sentence.
        known: if given, all words that the two sides may have.
    Returns:
        Sentences that sound different from one another.
    Raises:
        ValueError: the slice has fewer.
    """
    allowed, heard, misses = common_words(num_words), set[tuple[str, ...]](), 0
    chosen: list[phrasebook.Sentence] = []
    for pair in phrasebook.sentences(split, sys.maxsize):
        words = spoken_words(pair.en)
        fits = 2 <= len(words) <= longest and allowed.issuperset(words) and not re.search(r"\d", pair.en)
        if not fits or words in heard or not (known is None or pair.words() <= known):
            misses += 1
            if misses > PATIENCE:
                break
            continue
        misses = 0
        heard.add(words)
        chosen.append(pair)
        if len(chosen) == num_pairs:
            return chosen
    advice = "ask for fewer --pairs, more --words or a greater --longest"
    raise ValueError(f"the slice gives {len(chosen)} pairs for {split}, not {num_pairs}; {advice}")


def utterances(config: MakeConfig) -> dict[str, list[Utterance]]:
    """Every split's sentences, each with a voice and a speed drawn with the seed.

    No sentence of validation or test sounds like one of another split; its words all occur in training.
    """
    train = slice_of("train", config.pairs, config.words, config.longest)
    known = frozenset(word for pair in train for word in pair.words())
    chosen = {"train": train}
    for split in ("validation", "test"):
        heard = {spoken_words(pair.en) for pairs in chosen.values() for pair in pairs}
        # The phrasebook's splits share no sentence; a few differ in punctuation alone, so some are spare.
        pairs = slice_of(split, HELD_OUT + HELD_OUT // 10, config.words, config.longest, known)
        chosen[split] = [pair for pair in pairs if spoken_words(pair.en) not in heard][:HELD_OUT]
    spoken = {}
    for split, pairs in chosen.items():
        draw = Random(f"{split}:{config.seed}")
        spoken[split] = [
            Utterance(pair.en, pair.fr, draw.choice(config.voices), draw.randint(*WORDS_PER_MINUTE))
            for pair in pairs
        ]
    return spoken


def espeak_version() -> str:
    """The version of espeak-ng.

    Raises:
        FileNotFoundError: it is not installed.
    """
    if shutil.which("espeak-ng") is None:
        raise FileNotFoundError(
            "the program espeak-ng is not installed; install it, e.g. with: apt-get install -y espeak-ng"
        )
    done = subprocess.run(["espeak-ng", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split(" Data at")[0].strip()


def speak(utterance: Utterance) -> Tensor:
    """Its samples, (n,), float32 in [-1, 1], without the pause at the end."""
    command = ["espeak-ng", "-z", "-v", utterance.voice, "-s", str(utterance.speed), "--stdin", "--stdout"]
    done = subprocess.run(command, input=utterance.en.encode(), capture_output=True)
    if done.returncode or not done.stdout:
        raise ValueError(f"{shlex.join(command)} failed: {done.stderr.decode().strip()}")
    return samples_of(done.stdout)


# ---- make -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MakeConfig:
    """A corpus of spoken sentences."""

    folder: tyro.conf.Positional[Path]
    """Folder to make; it gets train.jsonl, validation.jsonl, test.jsonl and the features as .npy files."""
    pairs: int = 8_000
    """Training pairs; validation and test have 500 each."""
    words: int = 400
    """Most frequent English words of the phrasebook that sentences are made of."""
    longest: int = 10
    """Words of the longest sentence."""
    seed: int = 1
    """Fixes every sentence's voice and speed."""
    voices: tuple[str, ...] = VOICES
    """Voices of espeak-ng that share the sentences, a variant after +."""
    test_only: bool = False
    """Write the test split alone: the same sentences for other voices."""

    def __post_init__(self) -> None:
        for flag, least in (("pairs", 1), ("words", 1), ("longest", 2)):
            if getattr(self, flag) < least:
                raise ValueError(f"--{flag} must be at least {least}, got {getattr(self, flag)}")
        if not self.voices:
            raise ValueError("--voices needs at least one voice; espeak-ng --voices=en lists them")


def make(config: MakeConfig) -> None:
    """Speak the slice and write its features.

    Raises:
        FileNotFoundError: espeak-ng is not installed.
        ValueError: the folder is not empty, or the slice has too few sentences.
    """
    version = espeak_version()
    if config.folder.exists() and (not config.folder.is_dir() or any(config.folder.iterdir())):
        raise ValueError(f"{config.folder} is there already and is not empty; name another folder")
    started = time.monotonic()
    splits = utterances(config)
    if config.test_only:
        splits = {"test": splits["test"]}
    print(f"{sum(map(len, splits.values())):,} sentences chosen in {time.monotonic() - started:.0f} s")
    table = ["| split | sentences | hours | frames a sentence | English words | French words |"]
    table.append("|---|---:|---:|---:|---:|---:|")
    for split, spoken in splits.items():
        started = time.monotonic()
        num_frames = write_split(config.folder, split, spoken)
        print(f"{split}: {num_frames:,} frames in {time.monotonic() - started:.0f} s", flush=True)
        sizes = [len(spoken), num_frames * HOP / RATE / 3_600, num_frames / len(spoken)]
        counts = [f"{size:,.{digits}f}" for size, digits in zip(sizes, (0, 2, 0), strict=True)]
        counts += [f"{num_words(u.en for u in spoken):,}", f"{num_words(u.fr for u in spoken):,}"]
        table.append(f"| {split} | " + " | ".join(counts) + " |")
    runtime.write_atomic(config.folder / "README.md", readme(config, version, table))
    print(f"done; the corpus is in {config.folder}")


def write_split(folder: Path, split: str, spoken: list[Utterance]) -> int:
    """Write a split's .npy files and its .jsonl; returns the number of frames."""
    (folder / split).mkdir(parents=True)

    def write(number: int, utterance: Utterance) -> int:
        features: npt.NDArray[np.float32] = log_mel(speak(utterance)).numpy()
        # Half precision: steps of 0.01 in a logarithm that spans 20, at half the size.
        np.save(folder / split / f"{number:06}.npy", features.astype(np.float16))
        return len(features)

    with ThreadPoolExecutor(2) as pool:
        num_frames = sum(pool.map(write, range(1, len(spoken) + 1), spoken))
    rows = (
        {"speech": f"{split}/{number:06}.npy", "en": u.en, "fr": u.fr, "voice": u.voice, "speed": u.speed}
        for number, u in enumerate(spoken, 1)
    )
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    runtime.write_atomic(folder / f"{split}.jsonl", lines)
    return num_frames


def num_words(texts: Iterable[str]) -> int:
    """How many different words there are."""
    return len({word for text in texts for word in re.findall(r"[\w-]+", text.lower())})


def readme(config: MakeConfig, version: str, table: list[str]) -> str:
    """What the corpus is and how to make it again."""
    slowest, fastest = WORDS_PER_MINUTE
    command = f"python benchmarks/speech.py make {shlex.quote(str(config.folder))} --pairs {config.pairs}"
    command += f" --words {config.words} --longest {config.longest} --seed {config.seed}"
    command += "" if config.voices == VOICES else f" --voices {shlex.join(config.voices)}"
    command += " --test-only" if config.test_only else ""
    paragraphs = [
        "---\nlanguage:\n- en\n- fr\n---",
        "# Spoken phrasebook, English speech to French text",
        f"Sentences of the embedded phrasebook of at most {config.longest} words, out of its {config.words} most "
        f"frequent; validation and test sentences do not occur in training, their words do. Spoken by {version}, "
        f"each sentence once, with one of the voices {', '.join(config.voices)} at {slowest} to {fastest} words per "
        "minute.",
        f"Features: {BANDS} log-mel bands from 0 to {HIGHEST_HZ:,.0f} Hz, windows of 25 ms every 10 ms, float16, "
        "(frames, bands).",
        f"```bash\n{command}\n```",
        "\n".join(table),
    ]
    return "\n\n".join(paragraphs) + "\n"


# ---- run ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunConfig:
    """A model of spoken sentences, trained and scored."""

    folder: tyro.conf.Positional[Path]
    """Folder that make has made."""
    out: Path
    """Model folder to train."""
    minutes: float = 20.0
    """Minutes of training."""
    also: Path | None = None
    """Another folder of make, scored too."""
    flags: str = shlex.join(TRAIN_FLAGS)
    """Other flags of train.py, as one argument: --flags="--lr 1e-3 --dropout 0.1"."""


class ScoreRow(NamedTuple):
    """One score of evaluate.py's report, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str


def run(config: RunConfig) -> None:
    """Train, score the unseen sentences and print the result as a Markdown table.

    Raises:
        FileNotFoundError: no corpus in a folder.
        ValueError: training or scoring failed.
    """
    for folder, file in ((config.folder, "train.jsonl"), (config.also or config.folder, "test.jsonl")):
        if not (folder / file).is_file():
            advice = f"make it first: python benchmarks/speech.py make {shlex.quote(str(folder))}"
            raise FileNotFoundError(f"no {file} in {folder}; {advice}")
    train = ["train.py", "--dataset", str(config.folder), "--source", "features", "--src", "speech"]
    train += ["--tgt", "fr", "--max-minutes", f"{config.minutes:g}", "--out", str(config.out)]
    commands = [[*train, *shlex.split(config.flags)]]
    python(commands[0])
    scores: dict[str, list[ScoreRow]] = {}
    for folder in filter(None, (config.folder, config.also)):
        commands.append(["evaluate.py", "--model", str(config.out), "--split", "test"])
        commands[-1] += [] if folder == config.folder else ["--dataset", str(folder)]
        with tempfile.TemporaryDirectory() as temporary:
            report = Path(temporary) / "report.json"
            python([*commands[-1], "--json", str(report)])
            rows = json.loads(report.read_text(encoding="utf-8"))["scores"]
        scores[folder.name] = [ScoreRow(**row) for row in rows]
    print(result(commands, scores))


def python(command: list[str]) -> None:
    """Run one of the project's commands, with what it prints.

    Raises:
        ValueError: it fails.
    """
    done = subprocess.run([sys.executable, str(ROOT / command[0]), *command[1:]])
    if done.returncode:
        raise ValueError(f"python {shlex.join(command)} ended with exit code {done.returncode}")


def result(commands: list[list[str]], scores: dict[str, list[ScoreRow]]) -> str:
    """The scores by corpus as a Markdown table, then all that belongs to them."""
    lines = ["", "| unseen sentences of | metric | score | 95 % interval |", "|---|---|---:|---|"]
    for corpus, rows in scores.items():
        lines += [f"| {corpus} | {s.name} | {s.value:.2f} | {s.low:.2f} – {s.high:.2f} |" for s in rows]
    signatures = {s.signature: s.name for rows in scores.values() for s in rows if s.name == "BLEU"}
    named = "; ".join(f"{name} `{signature}`" for signature, name in signatures.items())
    lines += ["", f"{named}, on {hardware()}.", "", "```bash"]
    lines += [f"python {shlex.join(command)}" for command in commands]
    return "\n".join([*lines, "```"])


def hardware() -> str:
    """Cores that this process may use, and their kind."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.M) if info.exists() else None
    return f"{cores} CPU cores ({found[1] if found else platform.machine()})"


def main(args: list[str] | None = None) -> None:
    """The command."""
    words = sys.argv[1:] if args is None else args
    if words[:1] == ["make"]:
        make(parse_args(MakeConfig, args=words[1:], description=f"{__doc__}"))
    elif words[:1] == ["run"]:
        run(parse_args(RunConfig, args=words[1:], description=f"{__doc__}"))
    else:
        raise ValueError(
            f"say make or run, then --help for their flags; got {words[0] if words else 'nothing'}"
        )


if __name__ == "__main__":
    runtime.run_command(main)
