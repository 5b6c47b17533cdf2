"""What `bench.py` is asked to measure: its options, and the settings of each engine of which the best one counts."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import peers
import results
import tyro
from decoding_speed import Translating
from pairs import PairsConfig
from peers import FULL, TINY, Architecture

from runtime import KEEP_MEMORY
from strict_json import Json

Part = Literal["all", "model", "training", "decoding", "startup", "growth", "quality", "report"]
Record = Iterator[dict[str, Json]]
"""The results of a part so far, again after each run."""
SHORTLIST = 16
"""Candidates of a subword in the variants with a shortlist."""
DECODERS: tuple[Translating, ...] = ("ours", "ctranslate2", "huggingface")
TRAINERS = ("ours", "huggingface", "joeynmt")


class Variant(NamedTuple):
    """A setting of an engine; the best of its variants counts."""

    engine: str
    threads: int
    keeps_memory: bool = False
    layout: str = "inter"
    shortlist: int = 0

    @property
    def environment(self) -> Mapping[str, str]:
        """What is set in its process's environment: what `runtime.keep_memory` does in our own processes."""
        return {name: str(value % 2**64) for name, _, value in KEEP_MEMORY} if self.keeps_memory else {}


TRAINING = (
    Variant("ours", 2),
    *(Variant(engine, 1) for engine in TRAINERS[1:]),
    *(Variant(engine, 2) for engine in TRAINERS[1:]),
    *(Variant(engine, 2, keeps_memory=True) for engine in TRAINERS[1:]),
)
DECODING = (
    *(Variant(engine, 1) for engine in DECODERS),
    *(Variant("ours", threads, shortlist=SHORTLIST) for threads in (1, 2)),
    *(Variant(engine, 2) for engine in DECODERS),
    Variant("ctranslate2", 2, layout="intra"),
    *(Variant(engine, threads, keeps_memory=True) for threads in (1, 2) for engine in DECODERS[1:]),
    Variant("ctranslate2", 2, keeps_memory=True, layout="intra"),
)


@dataclass(frozen=True)
class BenchConfig:
    """What is measured, and how often."""

    part: tyro.conf.Positional[Part] = "all"
    """all, or one part of it; report alone measures nothing."""
    corpus: str = PairsConfig.corpus
    """What train.py takes as --dataset, with columns en and de."""
    model: Path = Path("runs/bench")
    """Model folder whose decoding is measured; trained where it is missing. Other files are put beside it."""
    results: Path = results.RESULTS
    """Folder of the results."""
    minutes: float = 15.0
    """Training of the model, and of each engine for its quality."""
    repetitions: int | None = None
    """Runs of each setting (quality: one): 3 by default, on the small scale 1."""
    small: bool = False
    """A tiny model and few sentences, in runs/bench-small; no document is changed."""

    def __post_init__(self) -> None:
        if not 0 < self.minutes < math.inf:
            raise ValueError(f"--minutes must be more than 0, got {self.minutes}")
        if self.repetitions is not None and self.repetitions < 1:
            raise ValueError(f"--repetitions must be at least 1, got {self.repetitions}")

    @property
    def folder(self) -> Path:
        """The model folder."""
        return self.model.with_name("bench-small") if self.small else self.model

    def beside(self, name: str) -> Path:
        """A file or folder beside the model folder."""
        return self.folder.with_name(f"{self.folder.name}-{name}")

    @property
    def target(self) -> Path:
        """Folder of the results."""
        return self.beside("results") if self.small else self.results

    @property
    def rounds(self) -> int:
        """Repetitions."""
        return self.repetitions or (1 if self.small else 3)

    @property
    def architecture(self) -> Architecture:
        """The model that all engines train and decode."""
        return TINY if self.small else FULL

    @property
    def learned(self) -> str:
        """The corpus that the engines learn from; on the small scale the part of it that pairs.py leaves."""
        return str(self.beside("pairs") / "corpus") if self.small else self.corpus

    def chosen(self, variants: Sequence[Variant]) -> list[Variant]:
        """All of them; on the small scale of each engine the one with most threads, which is the last."""
        return list({v.engine: v for v in variants}.values()) if self.small else list(variants)

    def tiny(self) -> list[str]:
        """The flag of a measuring script for the small scale."""
        return ["--tiny"] if self.small else []


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def without(record: dict[str, Json], *names: str) -> dict[str, Json]:
    """A record less some of its entries."""
    return {key: value for key, value in record.items() if key not in names}


def origin(load_before: float) -> dict[str, Json]:
    """What stands above every file of results."""
    return {**peers.origin(), "load_average": [load_before, peers.load_average()]}
