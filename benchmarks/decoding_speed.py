"""Translate the test sentences with one engine and measure it: sentences a second, peak memory, BLEU.

    python benchmarks/decoding_speed.py ours --model runs/bench --batch 64 --beam 5 --threads 2 --out ours.json

bench.py runs it for every engine on the same weights. Text goes in and comes out: the time of the tokenizer, which
is the same for all, is counted, and output tokens are those of the texts, cut anew. Lengths are bounded by 2·S + 20
tokens for a source of S; CTranslate2 takes one bound for a call and Hugging Face one for a batch, where it is that of
the longest sentence. With a beam, each engine has its own form of length penalty, of exponent 1, and its own rule when
to stop.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import peers
import tyro
from pairs import PairsConfig, read_lines
from peers import Decoder, Layout

from command_line import parse_args
from strict_json import Json

WARM_UP = 8
"""Sentences that are at least translated before the clock starts."""
Translating = Literal["ours", "ctranslate2", "huggingface"]
Exported = Translating | Literal["endless"]


@dataclass(frozen=True)
class DecodingConfig:
    """Who translates, and how."""

    engine: tyro.conf.Positional[Translating]
    """Who translates."""
    out: Path
    """JSON file to write."""
    model: Path = Path("runs/bench")
    """Model folder of train.py; the peers' exports of it are made beside it."""
    data: Path = PairsConfig.out
    """Folder that pairs.py made of the corpus."""
    batch: int = 64
    """Sentences decoded together."""
    beam: int = 5
    """Beams; 1 is greedy search."""
    threads: int = 2
    """Cores of the process."""
    layout: Layout = "inter"
    """How CTranslate2 uses its threads: inter, a batch each; intra, every operation together."""
    shortlist: int = 0
    """Of our own engine: candidates of each source subword; 0 = the whole vocabulary."""
    sentences: int = 1_000
    """Only the first so many test sentences."""
    ids: bool = False
    """Write the ids of all tokens down, for a comparison of engines; such a run is not to be timed."""

    def __post_init__(self) -> None:
        for flag in ("batch", "beam", "sentences"):
            if getattr(self, flag) < 1:
                raise ValueError(f"--{flag} must be at least 1, got {getattr(self, flag)}")


def exported(kind: Exported, model: Path) -> Path:
    """The folder that an engine loads: ours, or an export, made where it is missing or older than the model."""
    if kind == "ours":
        return model
    weights, folder = model / "model.safetensors", model.with_name(f"{model.name}-{kind}")
    if not weights.is_file():
        raise FileNotFoundError(
            f"no trained model in {model}; make it first: python benchmarks/bench.py model"
        )
    done = folder / "tokenizer.json"  # written last
    if not done.is_file() or done.stat().st_mtime < weights.stat().st_mtime:
        # In a process of its own: its memory is not the engine's.
        script = str(Path(__file__).with_name("export.py"))
        command = [sys.executable, script, kind, "--model", str(model), "--out", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def load(
    engine: Translating,
    folder: Path,
    threads: int,
    layout: Layout = "inter",
    keeps_ids: bool = False,
    shortlist: int = 0,
) -> Decoder:
    """An engine with its model.

    Args:
        keeps_ids: whether `Decoder.ids` will be asked for; our own translator is then not quite as users have it.
    """
    match engine:
        case "ours":
            from engine_ours import Ours

            return Ours(folder, threads, keeps_ids, shortlist)
        case "ctranslate2":
            from engine_ctranslate2 import CTranslate2

            return CTranslate2(folder, threads, layout)
        case "huggingface":
            from engine_huggingface import HuggingFace

            return HuggingFace.load(folder, threads)


def measure(options: DecodingConfig) -> dict[str, Json]:
    """Translate, and write down what was measured."""
    folder = exported(options.engine, options.model)
    peers.pin(options.threads)
    sentences = read_lines(options.data / "test.txt")[: options.sentences]
    references = read_lines(options.data / "reference.txt")[: options.sentences]
    engine = load(options.engine, folder, options.threads, options.layout, options.ids, options.shortlist)
    # Enough for every worker to have had a batch.
    warm_up = max(WARM_UP, options.threads * options.batch if options.batch > 1 else 0)
    engine.translate(sentences[:warm_up], options.batch, options.beam)
    started = time.perf_counter()
    translations = engine.translate(sentences, options.batch, options.beam)
    seconds = time.perf_counter() - started
    peak_mb = peers.peak_mb()
    num_tokens = sum(map(len, peers.Subwords(folder).encode(translations)))
    record: dict[str, Json] = {
        "engine": options.engine,
        "batch": options.batch,
        "beam": options.beam,
        "threads": options.threads,
        "layout": options.layout if options.engine == "ctranslate2" else None,
        "shortlist": options.shortlist,
        "sentences": len(sentences),
        "sentences_per_s": round(len(sentences) / seconds, 2),
        "tokens_per_s": round(num_tokens / seconds, 1),
        "peak_mb": round(peak_mb),
        "bleu": round(corpus_bleu(translations, references), 2),
    }
    return record | ({"ids": [list(row) for row in engine.ids()]} if options.ids else {})


def corpus_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """sacreBLEU, its defaults."""
    from sacrebleu.metrics.bleu import BLEU

    return float(BLEU(force=True).corpus_score(list(translations), [list(references)]).score)


def main() -> None:
    """The command."""
    options = parse_args(DecodingConfig, description=str(__doc__))
    record = measure(options)
    peers.write_json(options.out, record)
    print(
        f"{options.engine}: {record['sentences_per_s']} sentences/s, {record['peak_mb']} MB", file=sys.stderr
    )


if __name__ == "__main__":
    peers.run_command(main)
