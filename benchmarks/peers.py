"""What every part of the benchmark shares: its engines, its settings, the machine, and how a figure is written down.

Nothing here imports torch: CTranslate2 runs without it, and its memory and start-up are measured without it.
"""

import json
import os
import platform
import resource
import sys
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from strict_json import Json

ROOT = Path(__file__).resolve().parent.parent
Layout = Literal["inter", "intra"]
Pair = tuple[list[int], list[int]]
"""Source and target ids without special ones."""
NAMES = {
    "ours": "this project",
    "ctranslate2": "CTranslate2",
    "huggingface": "Hugging Face Marian",
    "joeynmt": "JoeyNMT",
}
PACKAGES = {"torch", "ctranslate2", "transformers", "joeynmt", "tokenizers", "sacrebleu", "numpy"}
SRC, TGT = "en", "de"
PAD_ID, BOS_ID, EOS_ID = range(3)  # of tokenizer.py, which imports torch
POSITIONS = 1_024
"""Longest sequence of an exported model."""


class Architecture(NamedTuple):
    """The model that every engine trains: post-norm, ReLU, sinusoidal positions, one matrix for all embeddings."""

    d_model: int = 256
    layers: int = 3
    """Of the encoder, and as many of the decoder."""
    heads: int = 4
    d_ff: int = 1_024
    vocab_size: int = 8_000
    dropout: float = 0.1


class Recipe(NamedTuple):
    """How every engine learns."""

    lr: float = 1e-3
    warmup_steps: int = 400
    label_smoothing: float = 0.1
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = 1.0
    seed: int = 1


FULL = Architecture()
TINY = Architecture(d_model=32, layers=1, heads=2, d_ff=64, vocab_size=600)
"""To see that everything runs."""
RECIPE = Recipe()


class Decoder(Protocol):
    """An engine that translates."""

    def translate(self, sentences: Sequence[str], batch: int, beam: int) -> list[str]:
        """Text to text, tokenizer included; a batch of 1 is a call for each sentence."""

    def ids(self) -> list[list[int]]:
        """Token ids of what `translate` gave last, without BOS and EOS; of an engine that was loaded to keep them."""


class Subwords:
    """The tokenizer of a model folder, by the `tokenizers` package alone: what tokenizer.py does, without torch."""

    def __init__(self, folder: Path) -> None:
        self._hf = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))

    @property
    def vocabulary(self) -> list[str]:
        """Every token in the order of the ids."""
        ids = self._hf.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special ones."""
        prepared = [" " + unicodedata.normalize("NFC", text) if text else "" for text in texts]
        return [encoding.ids for encoding in self._hf.encode_batch_fast(prepared)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; special ones are left out."""
        text: str = self._hf.decode([i for i in ids if i > EOS_ID])
        return text.removeprefix(" ").strip()


def longest(num_tokens: int) -> int:
    """The length bound of a translation, EOS included, for a source of so many tokens with its EOS."""
    return 2 * num_tokens + 20


def pin(threads: int) -> None:
    """Keep this process on its first `threads` cores, whatever threads its libraries start."""
    cores = sorted(os.sched_getaffinity(0))
    if not 1 <= threads <= len(cores):
        raise ValueError(f"--threads must be from 1 to the {len(cores)} cores there are, got {threads}")
    os.sched_setaffinity(0, cores[:threads])


def peak_mb() -> float:
    """Largest resident memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def hardware() -> dict[str, Json]:
    """The processor, its cores and the memory, as the system names them."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    simd = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in flags]
    return {
        "cpu": names[0] if names else platform.processor(),
        "simd": " ".join(simd),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory_kb / 1024**2),
    }


def versions() -> dict[str, Json]:
    """Version of Python and of each package that a figure depends on, where it is installed."""
    found = {d.name.lower(): d.version for d in metadata.distributions() if d.name}
    return {"python": platform.python_version(), **{n: found[n] for n in sorted(PACKAGES) if n in found}}


def origin() -> dict[str, Json]:
    """What stands above every file of results."""
    return {"hardware": hardware(), "versions": versions(), "date": date.today().isoformat()}


def load_average() -> float:
    """Processes that ran or wanted to, in the mean of the last minute."""
    return round(os.getloadavg()[0], 2)


def write_json(path: Path, record: Json) -> None:
    """Write a record so that a person can read it and a diff shows what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def cumulated(marks: Sequence[tuple[float, int]]) -> tuple[float, int]:
    """Seconds and tokens from the first of some (time, tokens so far) to the last."""
    return marks[-1][0] - marks[0][0], marks[-1][1] - marks[0][1]


def rates(marks: Sequence[tuple[float, int]]) -> list[float]:
    """Tokens a second in each window between two (time, tokens so far)."""
    return [(later[1] - sooner[1]) / (later[0] - sooner[0]) for sooner, later in pairwise(marks)]


def run_command(main: Callable[[], None]) -> None:
    """Run a command; the user's mistakes become one line on stderr and exit code 2, as everywhere here."""
    try:
        main()
    except (ValueError, OSError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
