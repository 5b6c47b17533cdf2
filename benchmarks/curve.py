"""Draw validation BLEU over training minutes from a model folder's metrics.jsonl.

python benchmarks/curve.py runs/multi30k-en-de docs/multi30k.png
"""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure


def main() -> None:
    """The command: a model folder and the picture to write."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} MODEL_FOLDER PICTURE")
    folder, picture = Path(sys.argv[1]), sys.argv[2]
    lines = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    points = [(line["elapsed_s"] / 60, line["bleu"]) for line in lines if line["kind"] == "validation"]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*points, strict=True), marker="o")
    axes.set(xlabel="minutes of training", ylabel="validation BLEU (greedy)", title=folder.name)
    axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=120)
    print("| minutes | BLEU |\n|---|---|")
    for minutes, bleu in points:
        print(f"| {minutes:.1f} | {bleu:.2f} |")


if __name__ == "__main__":
    main()
