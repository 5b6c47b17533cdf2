"""Peak memory of training on made-up rows of one length, by one engine: how it grows with length and vocabulary.

    python benchmarks/training_memory.py ours --length 64 --vocab-size 16_000 --out ours.json

Each step is of as many target tokens, in fewer rows where they are longer. JoeyNMT is not among the engines: its loop
takes files of real text alone.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import peers
import tyro
from peers import EOS_ID, FULL, POSITIONS, RECIPE, TINY, Pair

from command_line import parse_args
from strict_json import Json

STEPS = 3


@dataclass(frozen=True)
class MemoryConfig:
    """Who learns what."""

    engine: tyro.conf.Positional[Literal["ours", "huggingface"]]
    """Who trains."""
    out: Path
    """JSON file to write."""
    length: int = 64
    """Tokens of every source and target, the end token counted."""
    vocab_size: int = FULL.vocab_size
    """Subwords."""
    tokens: int = 4_096
    """Target tokens a step."""
    threads: int = 2
    """Cores of the process."""
    tiny: bool = False
    """A tiny model, to see that everything runs."""

    def __post_init__(self) -> None:
        if not 2 <= self.length <= min(POSITIONS, self.tokens):
            raise ValueError(f"--length must be from 2 to {min(POSITIONS, self.tokens)}, got {self.length}")
        if self.vocab_size < 259:  # bytes and special tokens, as train.py has it
            raise ValueError(f"--vocab-size must be at least 259, got {self.vocab_size}")


def measure(options: MemoryConfig) -> dict[str, Json]:
    """Learn for a few steps, and write the peak down."""
    if options.engine == "ours":
        from engine_ours import learn_rows
    else:
        from engine_huggingface import learn_rows
    peers.pin(options.threads)
    draw = random.Random(RECIPE.seed)

    def side() -> list[int]:
        return [draw.randrange(EOS_ID + 1, options.vocab_size) for _ in range(options.length - 1)]

    rows: list[Pair] = [(side(), side()) for _ in range(options.tokens // options.length)]
    architecture = (TINY if options.tiny else FULL)._replace(vocab_size=options.vocab_size)
    learn_rows(rows, architecture, options.threads, STEPS)
    return {
        "engine": options.engine,
        "length": options.length,
        "vocab_size": options.vocab_size,
        "tokens": options.tokens,
        "peak_mb": round(peers.peak_mb()),
    }


def main() -> None:
    """The command."""
    options = parse_args(MemoryConfig, description=str(__doc__))
    peers.write_json(options.out, measure(options))


if __name__ == "__main__":
    peers.run_command(main)
