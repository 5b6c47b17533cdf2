"""What a run learns with: tokenizer, source side, shortlist, micro-batches."""

from pathlib import Path

from datasets import Dataset

import arrays
import distributed
import model_folder
from config import Config
from corpus import Splits, texts
from dataset import BatchSampler, Sampler, encode_split
from inputs import Input, TextInput
from shortlist import Shortlist
from streaming import LaneSettings, StreamSampler
from tokenizer import Tokenizer

# Rows from which the subwords are learned: more would take memory for their different words and change little.
TOKENIZER_ROWS = 1_000_000
# Rows from which likely translations of each subword are learned.
SHORTLIST_ROWS = 50_000


def make_sides(config: Config, rows: Dataset, path: Path | None) -> tuple[Tokenizer, Input]:
    """Tokenizer and source side: from the training rows, or from the folder of a run (to go on, or --init-from).

    The tokenizer is learned from at most TOKENIZER_ROWS of them, at even distances.
    """
    if path is not None:
        tokenizer = Tokenizer.load(path / model_folder.TOKENIZER)
        return tokenizer, model_folder.read_source(config, tokenizer, path)
    # A source that is no token ids needs no vocabulary.
    sides = ("src", "tgt") if config.data.source == "text" else ("tgt",)
    tokenizer = Tokenizer.train(texts(_sample(rows, TOKENIZER_ROWS), sides), config.model.vocab_size)
    source = model_folder.make_source(config, tokenizer, (row["src"] for row in rows))
    if config.data.source == "image" and arrays.has_text(rows):
        _warn_of_missing_characters(rows, source)
    return tokenizer, source


def _warn_of_missing_characters(rows: Dataset, source: Input) -> None:
    """Name the characters of sentences to draw that the font lacks: the model would learn their empty boxes."""
    characters: set[str] = set()
    for text in texts(rows, ("src",)):
        characters.update(text)
    # With spaces between them, none is composed with the one before.
    for warning in source.warnings(" ".join(sorted(characters))):
        print(f"warning: {warning}; train with another font: --font FILE")


def learn_shortlist(rows: Dataset, tokenizer: Tokenizer, max_length: int) -> Shortlist:
    """Likely translations of each subword, from rows at even distances."""
    chosen = _sample(rows, SHORTLIST_ROWS)[:]
    src, tgt = (tokenizer.encode_batch(chosen[side]) for side in ("src", "tgt"))
    # Longer rows are not learned from either, and a pair has as many links as the product of its lengths.
    pairs = [pair for pair in zip(src, tgt, strict=True) if max(map(len, pair)) < max_length]
    return Shortlist.learn(pairs, tokenizer.vocab_size)


def _sample(rows: Dataset, num: int) -> Dataset:
    """So many rows at even distances, or all where there are no more."""
    if len(rows) <= num:
        return rows
    return rows.select([i * len(rows) // num for i in range(num)])


def make_sampler(splits: Splits, tokenizer: Tokenizer, source: Input, config: Config) -> Sampler:
    """This rank's micro-batches of the training rows, with BPE-dropout if it is asked for."""
    cfg, max_length = config.train, config.data.max_length
    assert cfg.accumulate is not None
    cut = TextInput(tokenizer, cfg.bpe_dropout, max_length).resegment
    resegment = cut if cfg.bpe_dropout else None
    batch_tokens = cfg.batch_tokens // cfg.accumulate
    share = cfg.accumulate, distributed.rank(), distributed.world_size()
    if config.data.streaming:
        settings = LaneSettings(
            splits=splits,
            tokenizer=tokenizer,
            source=source,
            resegment=resegment,
            max_length=max_length,
            block_rows=max(1, config.data.buffer // cfg.accumulate),
            batch_tokens=batch_tokens,
            seed=cfg.seed,
        )
        return StreamSampler(settings, *share)
    rows = encode_split(splits["train"], tokenizer, max_length, splits.report["train"], source)
    return BatchSampler(rows, batch_tokens, cfg.seed, source, resegment, splits.mixture, *share)
