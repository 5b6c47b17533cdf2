"""The corpus of the benchmark as token ids, made once, so that all engines learn the same sequences.

    python benchmarks/pairs.py --corpus bentrevett/multi30k --out runs/bench-pairs

The folder holds tokenizer.json, trained on the training rows; train.en and train.de, ids between spaces; the
sentences of the test split, test.txt and their references, reference.txt; test.en, their ids.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import peers
from peers import FULL, SRC, TGT

from command_line import parse_args
from config import DataConfig

MAX_LENGTH = 256
"""Tokens a side, EOS counted; longer rows are left out, as train.py does."""


@dataclass(frozen=True)
class PairsConfig:
    """What is read and where it goes."""

    corpus: str = "bentrevett/multi30k"
    """What train.py takes as --dataset, with columns en and de."""
    out: Path = Path("runs/bench-pairs")
    """Folder to write."""
    vocab_size: int = FULL.vocab_size
    """Joint subwords."""
    rows: int | None = None
    """Only the first so many training rows, and a twentieth of them of each other split, to see that everything runs;
    they stand in OUT/corpus, as a corpus of their own."""

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 20:
            raise ValueError(f"--rows must be at least 20, got {self.rows}")


def read_ids(path: Path) -> list[list[int]]:
    """Lines of ids between spaces."""
    return [[int(i) for i in line.split()] for line in read_lines(path)]


def read_lines(path: Path) -> list[str]:
    """Lines of a file of such a folder.

    Raises:
        FileNotFoundError: names the command that makes it.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no {path}; make it first: python benchmarks/pairs.py --out {path.parent}")
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def prepare(options: PairsConfig) -> None:
    """Read the corpus as train.py does, train the tokenizer and write the folder."""
    import corpus
    from dataset import encode_split
    from scores import without_line_breaks
    from tokenizer import Tokenizer

    splits = corpus.read_splits(DataConfig(dataset=options.corpus, src=SRC, tgt=TGT))
    if options.rows is not None:
        for split in splits:
            chosen = splits[split][: options.rows if split == "train" else options.rows // 20]
            pairs = zip(chosen["src"], chosen["tgt"], strict=True)
            lines = [json.dumps({SRC: src, TGT: tgt}) for src, tgt in pairs]
            _write(options.out / "corpus" / f"{split}.jsonl", lines)
        splits = corpus.read_splits(DataConfig(dataset=str(options.out / "corpus"), src=SRC, tgt=TGT))
    tokenizer = Tokenizer.train(corpus.texts(splits["train"]), options.vocab_size)
    rows = encode_split(splits["train"], tokenizer, MAX_LENGTH, splits.report["train"])
    out = options.out
    tokenizer.save(out / "tokenizer.json")
    for column, name in (("src", SRC), ("tgt_ids", TGT)):
        _write(out / f"train.{name}", [" ".join(map(str, row)) for row in rows[column]])
    test = splits["test"][:]
    sentences = [without_line_breaks(text) for text in test["src"]]
    _write(out / "test.txt", sentences)
    _write(out / "reference.txt", [without_line_breaks(text) for text in test["tgt"]])
    _write(out / f"test.{SRC}", [" ".join(map(str, row)) for row in tokenizer.encode_batch(sentences)])
    print(
        f"{len(rows):,} pairs, {len(sentences):,} test sentences, {tokenizer.vocab_size:,} subwords in {out}"
    )


def main() -> None:
    """The command."""
    prepare(parse_args(PairsConfig, description=str(__doc__)))


if __name__ == "__main__":
    peers.run_command(main)
