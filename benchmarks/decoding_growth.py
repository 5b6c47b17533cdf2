"""How the time of greedy decoding grows with the length of the output, one engine on one core.

    python benchmarks/decoding_growth.py ours --model runs/bench-endless --batch 64 --out ours.json

The model is one that never ends a sentence (export.py endless): every engine stops at the length bound of 2·S + 20
tokens and nowhere else, so that a source of S tokens fixes the length of the output. For our own engine, attention
alone is timed too, with the same shapes: the share of the time that must grow with the square of the length.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import peers
import tyro
from decoding_speed import Translating, exported, load
from pairs import PairsConfig, read_lines
from peers import FULL, TINY, Architecture, Subwords, longest

from command_line import parse_args
from strict_json import Json

SINGLES = 4
"""Sentences one by one for a batch of 1."""
TIMED_STEPS = 16
"""Steps of bare attention that are timed, at even distances."""


@dataclass(frozen=True)
class GrowthConfig:
    """Who decodes what."""

    engine: tyro.conf.Positional[Translating]
    """Who translates."""
    out: Path
    """JSON file to write."""
    model: Path = Path("runs/bench-endless")
    """Model folder that export.py endless made; the peers' exports of it are made beside it."""
    data: Path = PairsConfig.out
    """Folder that pairs.py made of the corpus."""
    batch: int = 64
    """Sentences decoded together."""
    lengths: tuple[int, ...] = (32, 64, 128, 256, 512)
    """Output tokens of a sentence; even, and more than 22."""
    tiny: bool = False
    """The model is the tiny one."""

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"--batch must be at least 1, got {self.batch}")
        if any(length < 24 or length % 2 for length in self.lengths):
            raise ValueError(f"--lengths must be even and at least 24, got {self.lengths}")


def made_up(subwords: Subwords, words: Sequence[str], num_tokens: int, count: int) -> list[str]:
    """Different texts of so many tokens each, the end token counted, of these words in their order."""
    wanted = num_tokens - 1
    sizes = [len(ids) for ids in subwords.encode(words)]
    found: dict[str, None] = {}
    for start in range(len(words)):
        chosen: list[str] = []
        room = wanted
        for i in islice(cycle(range(len(words))), start, start + len(words)):
            if sizes[i] <= room:  # one that is too long is passed over
                chosen.append(words[i])
                room -= sizes[i]
        text = " ".join(chosen)
        if len(subwords.encode([text])[0]) == wanted:
            found[text] = None
        if len(found) == count:
            return list(found)
    raise ValueError(f"the test split has no {count} texts of {num_tokens} tokens; take a larger corpus")


def attention_s(rows: int, length: int, src_length: int, a: Architecture) -> float:
    """Seconds that nothing but the decoder's attention takes for `length` tokens of so many sentences."""
    import torch
    import torch.nn.functional as F

    head = a.d_model // a.heads
    own, cross = (
        [torch.randn(2, rows, a.heads, size, head) for _ in range(a.layers)] for size in (length, src_length)
    )
    query = torch.randn(rows, a.heads, 1, head)
    seconds = 0.0
    with torch.inference_mode():
        for step in range(1, length + 1, max(1, length // TIMED_STEPS)):
            started = time.perf_counter()
            for (key, value), (cross_key, cross_value) in zip(own, cross, strict=True):
                F.scaled_dot_product_attention(query, key[:, :, :step], value[:, :, :step])
                F.scaled_dot_product_attention(query, cross_key, cross_value)
            seconds += time.perf_counter() - started
    return seconds * max(1, length // TIMED_STEPS)


def measure(options: GrowthConfig) -> dict[str, Json]:
    """Decode each length, and write down the seconds of a batch."""
    folder = exported(options.engine, options.model)
    peers.pin(1)
    subwords = Subwords(folder)
    words = " ".join(read_lines(options.data / "test.txt")).split()
    engine = load(options.engine, folder, 1, keeps_ids=True)
    points: list[Json] = []
    for number, length in enumerate(options.lengths):
        num_source = (length - 20) // 2
        assert longest(num_source) == length
        texts = made_up(subwords, words, num_source, options.batch if options.batch > 1 else SINGLES)
        if not number:
            engine.translate(texts, options.batch, 1)  # to warm up
        started = time.perf_counter()
        engine.translate(texts, options.batch, 1)
        seconds = (time.perf_counter() - started) * options.batch / len(texts)
        if {len(ids) for ids in engine.ids()} != {length}:
            raise ValueError(f"{options.engine} did not write {length} tokens; make {options.model} anew")
        point: dict[str, Json] = {"length": length, "seconds": round(seconds, 5)}
        if options.engine == "ours":
            shapes = (options.batch, length, num_source, TINY if options.tiny else FULL)
            point["attention_s"] = round(attention_s(*shapes), 5)
        points.append(point)
    return {"engine": options.engine, "batch": options.batch, "points": points}


def main() -> None:
    """The command."""
    options = parse_args(GrowthConfig, description=str(__doc__))
    record = measure(options)
    peers.write_json(options.out, record)
    print(f"{options.engine}: {record['points']}", file=sys.stderr)


if __name__ == "__main__":
    peers.run_command(main)
