"""Train one engine for a while and measure it: real target tokens a second, peak memory, BLEU after that time.

    python benchmarks/training.py ours --tokens 1024 --steps 60 --flops --out ours.json
    python benchmarks/training.py huggingface --tokens 1024 --minutes 15 --threads 1 --out marian.json

bench.py runs it for every engine. One process trains one engine: its memory is that of the whole process.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

import peers
import tyro
from measuring import Clock
from pairs import PairsConfig, read_ids, read_lines
from peers import FULL, TGT, TINY, Architecture

from command_line import parse_args
from strict_json import Json

BEAM = 5
Translate = Callable[[], list[str]]


@dataclass(frozen=True)
class TrainingConfig:
    """What is trained and for how long."""

    engine: tyro.conf.Positional[Literal["ours", "huggingface", "joeynmt"]]
    """Who trains."""
    out: Path
    """JSON file to write."""
    corpus: str = PairsConfig.corpus
    """What train.py takes as --dataset, with columns en and de."""
    data: Path = PairsConfig.out
    """Folder that pairs.py made of the corpus."""
    tokens: int = 1_024
    """Target tokens a step."""
    steps: int | None = None
    """Steps to measure, after a fifth more of them to warm up."""
    minutes: float | None = None
    """Or minutes to train, after which the test split is translated and scored."""
    threads: int = 2
    """Cores of the process. Torch's threads are as many, or for our own engine the workers, each of one thread."""
    flops: bool = False
    """Measure bare matrix products of the same shapes too."""
    tiny: bool = False
    """A tiny model, to see that everything runs."""

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"--tokens must be at least 1, got {self.tokens}")
        Clock(self.steps, self.minutes)  # checks them

    @property
    def architecture(self) -> Architecture:
        """What is built."""
        return TINY if self.tiny else FULL


def train_ours(options: TrainingConfig, clock: Clock) -> Translate:
    """Train this project's engine; returns what translates the test split."""
    import engine_ours

    from config import DecodeConfig

    translator = engine_ours.train(
        options.data, options.corpus, options.architecture, options.tokens, options.threads, clock
    )
    sentences = read_lines(options.data / "test.txt")
    return lambda: [t.text for t in translator.translate(sentences, decode=DecodeConfig(beam=BEAM))]


def train_huggingface(options: TrainingConfig, clock: Clock) -> Translate:
    """The same for Hugging Face."""
    import engine_huggingface

    engine = engine_huggingface.train(
        options.data, options.architecture, options.tokens, options.threads, clock
    )
    return lambda: engine.translate(read_lines(options.data / "test.txt"), 64, BEAM)


def train_joeynmt(options: TrainingConfig, clock: Clock) -> Translate:
    """The same for JoeyNMT."""
    from engine_joeynmt import JoeyNMT

    folder = options.out.with_suffix("")
    engine = JoeyNMT(options.data, folder, options.architecture, options.tokens, options.threads)
    engine.train(clock)
    subwords = peers.Subwords(options.data)
    return lambda: [subwords.decode(ids) for ids in engine.translate_test()]


def measure(options: TrainingConfig) -> dict[str, Json]:
    """Train, and write down what was measured."""
    peers.pin(options.threads)
    clock = Clock(options.steps, options.minutes)
    trains = {"ours": train_ours, "huggingface": train_huggingface, "joeynmt": train_joeynmt}
    translate = trains[options.engine](options, clock)
    record: dict[str, Json] = {"engine": options.engine, "tokens": options.tokens, "threads": options.threads}
    record |= {"peak_mb": round(peers.peak_mb()), **speed(clock)}
    if options.flops:
        record |= utilisation(clock, options)
    if options.minutes is not None:
        hypotheses = translate()
        record |= {"minutes": options.minutes, **bleu(hypotheses, read_lines(options.data / "reference.txt"))}
    return record | {"versions": peers.versions()}


def speed(clock: Clock) -> dict[str, Json]:
    """Real target tokens a second: the median window, and all of them."""
    rates = peers.rates(clock.windows())
    steps = clock.shapes[clock.warm_up :]
    padded = sum(shape.rows * shape.tgt_length for step in steps for shape in step)
    real = sum(shape.num_tokens for step in steps for shape in step)
    return {
        "tokens_per_s": round(median(rates), 1),
        "windows": [round(rate, 1) for rate in rates],
        "steps": len(steps),
        "tokens_per_step": round(real / len(steps), 1),
        "padding": round(1 - real / padded, 4),
    }


def utilisation(clock: Clock, options: TrainingConfig) -> dict[str, Json]:
    """Model FLOPs a second, the rate of bare matrix products of the same shapes, and their quotient."""
    import torch
    from flops import bare_rate, training_flops

    steps = clock.shapes[clock.warm_up :]
    total = sum(training_flops(shape, options.architecture) for step in steps for shape in step)
    seconds, tokens = peers.cumulated(clock.marks[clock.warm_up :])
    workers = options.threads if torch.get_num_threads() == 1 else 1
    rate = bare_rate(steps, options.architecture, workers, 0.2 if options.tiny else 2.0)
    return {
        "mflop_per_token": round(total / tokens / 1e6, 2),
        "model_gflop_per_s": round(total / seconds / 1e9, 2),
        "matrix_products_gflop_per_s": round(rate / 1e9, 2),
        "share_of_matrix_products": round(total / seconds / rate, 4),
    }


def bleu(hypotheses: list[str], references: list[str]) -> dict[str, Json]:
    """sacreBLEU on raw cased text, with its signature."""
    from scores import score

    first = next(s for s in score(hypotheses, references, tgt=TGT, bootstrap=1_000) if s.name == "BLEU")
    return {
        "bleu": round(first.value, 2),
        "low": round(first.low, 2),
        "high": round(first.high, 2),
        "signature": first.signature,
    }


def main() -> None:
    """The command."""
    options = parse_args(TrainingConfig, description=str(__doc__))
    read_ids(options.data / "test.en")  # said before anything is trained
    record = measure(options)
    peers.write_json(options.out, record)
    print(
        f"{options.engine}: {record['tokens_per_s']} target tokens/s, {record['peak_mb']} MB", file=sys.stderr
    )


if __name__ == "__main__":
    peers.run_command(main)
