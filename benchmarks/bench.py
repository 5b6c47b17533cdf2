"""This project and its peers, side by side, each run in a process of its own.

    python benchmarks/bench.py                  all parts, then the report
    python benchmarks/bench.py decoding         one part: model, training, decoding, startup, growth, quality, report
    python benchmarks/bench.py --small          everything on a tiny scale, to see that it runs

Repetitions are interleaved (A B C A B C …); figures are medians. Each part writes a file into benchmarks/results/, anew
after every run, and report.py makes the tables and the pictures of those that are there. Leave the machine alone
meanwhile: each run records how much of the cores other processes took.
"""

import jobs
import peers
import report
from growth import growth
from parts import decoding, quality, startup, training
from peers import RECIPE, SRC, TGT
from plan import BenchConfig, origin, say

from command_line import parse_args

SMALL_ROWS = 800
PARTS = {
    "training": training,
    "decoding": decoding,
    "startup": startup,
    "growth": growth,
    "quality": quality,
}


def prepare(options: BenchConfig) -> None:
    """Make the ids and the model where they are missing."""
    data, folder, a = options.beside("pairs"), options.folder, options.architecture
    if not (data / "reference.txt").is_file():
        words: list[object] = ["--corpus", options.corpus, "--out", data, "--vocab-size", a.vocab_size]
        words += ["--rows", SMALL_ROWS] if options.small else []
        jobs.run(jobs.script("pairs.py", *words), options.beside("work") / "pairs.log")
    if (folder / "README.md").is_file():  # the model card, written last
        return
    if (folder / "config.json").is_file():
        words = ["--resume", folder]
    else:
        words = ["--dataset", options.learned, "--src", SRC, "--tgt", TGT, "--norm", "post", "--out", folder]
        words += ["--d-model", a.d_model, "--num-layers", a.layers, "--num-decoder-layers", a.layers]
        words += ["--num-heads", a.heads, "--d-ff", a.d_ff, "--vocab-size", a.vocab_size]
        words += ["--dropout", a.dropout, "--lr", RECIPE.lr, "--warmup-steps", RECIPE.warmup_steps]
        words += ["--optimizer", "adamw", "--batch-tokens", 1_024, "--max-minutes", options.minutes]
        words += ["--max-steps", 20, "--validate-every", 20] if options.small else []
    say(f"training {folder}, {options.minutes:g} minutes" + (" at most" if options.small else ""))
    jobs.run(jobs.script("train.py", *words), options.beside("work") / "model.log")


def main() -> None:
    """The command."""
    options = parse_args(BenchConfig, description=str(__doc__))
    if options.part != "report":
        prepare(options)
    for name, part in PARTS.items():
        if options.part in ("all", name):
            load = peers.load_average()
            for record in part(options):
                peers.write_json(options.target / f"{name}.json", {**origin(load), **record})
    if options.part == "model":
        return
    if options.small:
        print("\n\n".join(report.blocks(options.target).values()))
    else:
        if not any(options.target.glob("*.json")):
            raise ValueError(
                f"{options.target} has no results; measure first, or name their folder: --results"
            )
        report.write(options.target)


if __name__ == "__main__":
    peers.run_command(main)
