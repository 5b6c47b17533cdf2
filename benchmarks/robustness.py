"""BLEU of a model that reads text and one that reads pictures of it, as more and more characters go wrong.

    python benchmarks/robustness.py --text runs/A --image runs/B --output robustness.json

Letters and digits of the source are swapped with a neighbour, dropped, replaced by look-alikes, or one of the three
at random. Both models read the same sentences, and the references stay as they are. Each letter or digit is chosen
with the probability in the table; those chosen at 5 % are among those chosen at 10 %, and so on.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import corpus
import model_folder
import runtime
from command_line import parse_args
from config import DecodeConfig
from render import Renderer, packaged_font
from scores import Measured, measure, paired_of
from strict_json import Json
from translator import Translator

OPERATIONS = ("swapped", "dropped", "look-alikes")
NOISES = (*OPERATIONS, "mixed")
SHARES = (0.05, 0.1, 0.2)
BEAM = 5
EXAMPLES = 3

# What a person takes for the same character: Cyrillic, Greek, Armenian, Roman numerals, digits for letters and
# letters for digits. In most fonts some are drawn with the same pixels (Cyrillic а) and some are not (Greek η, 0).
LOOK_ALIKES = {
    "a": "аɑα", "b": "ƅЬ6", "c": "сϲⅽ", "d": "ԁⅾ", "e": "еҽ", "f": "ƒſ", "g": "ɡց9", "h": "һհ", "i": "іı1",
    "j": "јϳ", "k": "кκ", "l": "ӏ1I", "m": "мⅿ", "n": "ոηп", "o": "оο0", "p": "рρ", "q": "ԛզ", "r": "гɼ",
    "s": "ѕꜱ5", "t": "тτ", "u": "սυц", "v": "νѵⅴ", "w": "ԝωш", "x": "хχ", "y": "уγү", "z": "ᴢʐ2",
    "A": "АΑ", "B": "ВΒ8", "C": "СϹ", "D": "Ⅾ", "E": "ЕΕ", "F": "ϜҒ", "G": "Ԍ6", "H": "НΗ", "I": "ІΙl1",
    "J": "Ј", "K": "КΚ", "L": "Ⅼ", "M": "МΜ", "N": "Ν", "O": "ОΟ0", "P": "РΡ", "Q": "Ԛ", "R": "Ʀ", "S": "Ѕ5",
    "T": "ТΤ", "U": "ՍԱ", "V": "ѴⅤ", "W": "Ԝ", "X": "ХΧ", "Y": "ΥҮ", "Z": "Ζ2",
    "0": "OО", "1": "lI", "2": "Z", "3": "ЗӠ", "4": "Ч", "5": "SЅ", "6": "бb", "8": "B", "9": "g",
    "ä": "ӓ", "ç": "ҫ", "è": "ѐ", "ë": "ё", "ï": "ї", "ö": "ӧ", "ß": "β",
}  # fmt: skip


@dataclass(frozen=True)
class RobustnessConfig:
    """Two models of one corpus, and how much of it they read."""

    text: Path
    """Model folder of the model that reads text."""
    image: Path
    """Model folder of the model that reads pictures of text."""
    split: str = "test"
    """Split of their corpus."""
    limit: int = 1000
    """Its first so many sentences."""
    seed: int = 1
    """Fixes which characters go wrong."""
    output: Path | None = None
    """Save scores and examples here, as JSON."""

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"--limit must be at least 1, got {self.limit}")


class Row(NamedTuple):
    """Both models under one noise."""

    noise: str
    share: float
    """Probability of each letter or digit to be chosen."""
    text: list[Measured]
    image: list[Measured]
    p_value: float
    """Of the difference in BLEU."""
    examples: list[str]

    def cells(self) -> list[str]:
        """The row of the table."""
        text, image = self.text[0].value(), self.image[0].value()
        scores = [f"{text:.2f}", f"{image:.2f}", f"{image - text:+.2f}", f"{self.p_value:.4f}"]
        return [self.noise, f"{100 * self.share:g} %", *scores]

    def as_json(self) -> dict[str, Json]:
        """Every metric of both, for a file."""
        return {
            "noise": self.noise,
            "share": self.share,
            "text": {metric.name: metric.value() for metric in self.text},
            "image": {metric.name: metric.value() for metric in self.image},
            "p_value": self.p_value,
            "examples": list[Json](self.examples),
        }


def noisy(text: str, noise: str, share: float, seed: int) -> str:
    """A text in which each letter or digit was chosen with the same probability and made wrong.

    A chosen character is swapped with the next one of its word, the last with the one before it; or dropped; or
    replaced by one of its look-alikes, which nearly all have. A word of one letter has nothing to be swapped with.

    Args:
        noise: one of `NOISES`.
        share: the probability; what is chosen at a smaller one is chosen at a larger one too.
        seed: together with text and noise it decides everything.
    """
    draw = random.Random(f"{seed}\n{noise}\n{text}")
    characters, swaps = list(text), []
    for i, c in enumerate(text):
        if not c.isalnum():
            continue
        # As many numbers for every character, chosen or not, so that larger shares choose the same and more.
        chance, which, other = draw.random(), draw.random(), draw.random()
        if chance >= share:
            continue
        operation = OPERATIONS[int(which * len(OPERATIONS))] if noise == "mixed" else noise
        if operation == "swapped":
            swaps.append(i)
        elif operation == "dropped":
            characters[i] = ""
        else:
            alike = LOOK_ALIKES.get(c, c)
            characters[i] = alike[int(other * len(alike))]
    for i in swaps:
        neighbour = next((j for j in (i + 1, i - 1) if 0 <= j < len(text) and text[j].isalnum()), i)
        characters[i], characters[neighbour] = characters[neighbour], characters[i]
    return "".join(characters)


def same_pixels() -> tuple[int, int]:
    """How many of the pairs of look-alikes the packaged font draws alike, and how many pairs there are."""
    renderer = Renderer(packaged_font(), 32)
    pairs = [(c, other) for c, alike in LOOK_ALIKES.items() for other in alike]
    drawn = [(renderer.strip(c, 24), renderer.strip(other, 24)) for c, other in pairs]
    return sum(a.shape == b.shape and bool((a == b).all()) for a, b in drawn), len(pairs)


def rows_of(
    sources: Sequence[str],
    references: Sequence[str],
    models: tuple[Callable[[list[str]], list[str]], Callable[[list[str]], list[str]]],
    tgt: str,
    seed: int,
) -> Iterator[Row]:
    """One row after another, the first without noise.

    Args:
        models: what translates with the model of text, and with that of pictures.
        tgt: target language, for the scores.
    """
    for noise, share in [("none", 0.0), *((noise, share) for noise in NOISES for share in SHARES)]:
        read = [noisy(source, noise, share, seed) for source in sources]
        text, image = (measure(translate(read), references, tgt) for translate in models)
        [paired] = paired_of(image[:1], text[:1])
        yield Row(noise, share, text, image, paired.p_value, read[:EXAMPLES])


def table_line(cells: Sequence[str]) -> str:
    """Cells as a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def read_sentences(options: RobustnessConfig) -> tuple[list[str], list[str], str]:
    """Sources, references and target language.

    Raises:
        FileNotFoundError, ValueError: no such model or split, or models of two corpora.
    """
    data, other = (model_folder.read_config(path)[0].data for path in (options.text, options.image))
    of_text, of_image = (
        f"{d.dataset}{f' ({d.dataset_config})' if d.dataset_config else ''}, {d.src} to {d.tgt}, --data-seed"
        f" {d.data_seed}"
        for d in (data, other)
    )
    if of_text != of_image:
        raise ValueError(
            f"--text learned from {of_text}, but --image from {of_image}; give two models of one corpus"
        )
    rows, _ = corpus.read_split(data, options.split)
    rows = rows.select(range(min(options.limit, len(rows))))
    sources, references = list(rows["src"]), list(rows["tgt"])
    if not all(isinstance(source, str) for source in sources):
        raise ValueError(f"the sources of {data.dataset} are no text; give a corpus of sentences")
    return sources, references, data.tgt


def translating(path: Path, workers: int) -> Callable[[list[str]], list[str]]:
    """What translates sentences with the model of a folder."""
    translator = Translator.load(path, split_sentences=False, workers=workers)

    def translate(sources: list[str]) -> list[str]:
        return [found.text for found in translator.translate(sources, decode=DecodeConfig(beam=BEAM))]

    return translate


def run(options: RobustnessConfig) -> dict[str, Json]:
    """Print the table row by row; the same and more as JSON."""
    runtime.check_writable("--output", options.output)
    workers, start = runtime.start(None), time.perf_counter()
    sources, references, tgt = read_sentences(options)
    models = translating(options.text, workers), translating(options.image, workers)
    alike, pairs = same_pixels()
    print(table_line(["noise", "characters", "BLEU, text", "BLEU, picture", "difference", "p"]))
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    rows = []
    for row in rows_of(sources, references, models, tgt, options.seed):
        print(table_line(row.cells()), flush=True)
        rows.append(row)
    signature = rows[0].text[0].signature
    print(
        f"\n{options.text} and {options.image}: {len(sources):,} sentences of {options.split}, seed {options.seed},"
        f" beam {BEAM}. BLEU|{signature}; p by paired approximate randomization.\nOf {pairs} pairs of look-alikes,"
        f" DejaVu Sans draws {alike} with the same pixels."
    )
    return {
        "text": str(options.text),
        "image": str(options.image),
        "split": options.split,
        "sentences": len(sources),
        "seed": options.seed,
        "beam": BEAM,
        "signatures": {metric.name: metric.signature for metric in rows[0].text},
        "look_alikes": {"pairs": pairs, "same_pixels": alike},
        "elapsed_s": round(time.perf_counter() - start, 1),
        "rows": [row.as_json() for row in rows],
    }


def main() -> None:
    """The command."""
    options = parse_args(RobustnessConfig, description=(__doc__ or "").split("\n")[0])
    found = run(options)
    if options.output is not None:
        runtime.write_atomic(options.output, json.dumps(found, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    runtime.run_command(main)
