"""BLEU as papers on Multi30k count it: lower case, Moses tokens. For a comparison with their figures and nothing else.

    python evaluate.py --model runs/NAME --output out.de
    python benchmarks/published.py --hypotheses out.de --references test.de

Both sides pass through what the corpus's authors do with it: lower case, Moses' normalisation of punctuation, Moses'
tokenizer (https://github.com/multi30k/dataset, scripts/task1-tokenize.sh); then plain BLEU over tokens. It needs
sacremoses, which `make bench` installs.
"""

from dataclasses import dataclass
from pathlib import Path

import peers
from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from command_line import parse_args
from lines import read_lines


@dataclass(frozen=True)
class PublishedConfig:
    """What is scored."""

    hypotheses: Path
    """Translations, one a line."""
    references: Path
    """References, one a line."""
    lang: str = "de"
    """Their language."""


def tokenized(path: Path, lang: str) -> list[str]:
    """The lines of a file in lower case, tokens apart."""
    normalizer, tokenizer = MosesPunctNormalizer(lang=lang), MosesTokenizer(lang=lang)
    lines = (normalizer.normalize(line.text.lower()) for line in read_lines(path))
    return [tokenizer.tokenize(line, return_str=True, escape=False) for line in lines]


def main() -> None:
    """The command."""
    options = parse_args(PublishedConfig, description=str(__doc__))
    sides = [tokenized(path, options.lang) for path in (options.hypotheses, options.references)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{options.hypotheses} has {len(sides[0]):,} lines and {options.references} {len(sides[1]):,};"
            " give the same sentences"
        )
    bleu = BLEU(tokenize="none", force=True)
    print(
        f"lower-cased Moses tokens: {bleu.corpus_score(sides[0], [sides[1]]).score:.2f}  {bleu.get_signature()}"
    )


if __name__ == "__main__":
    peers.run_command(main)
