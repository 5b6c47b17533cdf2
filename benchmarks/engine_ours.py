"""This project as an engine of the benchmark: the code that train.py and translate.py run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from measuring import Clock, Shape
from pairs import MAX_LENGTH
from peers import RECIPE, SRC, TGT, Architecture, Pair

import corpus
import model_folder
import runtime
from checkpoint import TrainState
from config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from dataset import Batch
from inputs import TextInput
from learner import Learner
from preparation import make_sampler
from recipe import num_micro_batches
from tokenizer import MIN_VOCAB_SIZE, Tokenizer
from train import learning_rate
from translator import Translator


def train(
    data: Path, source: str, architecture: Architecture, tokens: int, threads: int, clock: Clock
) -> Translator:
    """Train by train.py's own steps, without validation, until the clock says stop.

    Args:
        data: folder of pairs.py, for its tokenizer.
        source: the corpus itself, --dataset of train.py.
    Returns:
        A translator with the averaged weights, which train.py keeps too.
    """
    workers = runtime.start(threads)
    config = configuration(source, architecture, tokens, workers)
    tokenizer = Tokenizer.load(data / "tokenizer.json")
    splits = corpus.read_splits(config.data)
    text = TextInput(tokenizer)
    learner, state = new_learner(config, tokenizer.vocab_size, text, workers), TrainState()
    stream = make_sampler(splits, tokenizer, text, config).steps(state)
    clock.start()
    while not clock.is_over:
        batches = next(stream)
        lr = learning_rate(state.step + 1, clock.progress, config.train)
        learner.step(batches, lr, state.step + 1)
        state.step += 1
        clock.tick([shape_of(batch) for batch in batches])
    return Translator(
        learner.averaged,
        tokenizer,
        src_lang=SRC,
        max_length=MAX_LENGTH,
        split_sentences=False,
        workers=workers,
    )


def new_learner(config: Config, vocab_size: int, text: TextInput, workers: int) -> Learner:
    """A model with initial weights and all that it learns with."""
    torch.manual_seed(RECIPE.seed)
    return Learner(model_folder.build(config, vocab_size, text), config.train, torch.device("cpu"), workers)


def learn_rows(rows: Sequence[Pair], architecture: Architecture, threads: int, steps: int) -> None:
    """A few steps on the same rows, for the memory that they take."""
    workers = runtime.start(threads)
    config = configuration("made up", architecture, sum(len(tgt) + 1 for _, tgt in rows), workers)
    # Ids are given: of the tokenizer only the type is needed.
    text = TextInput(Tokenizer.train([], MIN_VOCAB_SIZE))
    learner = new_learner(config, architecture.vocab_size, text, workers)
    parts = config.train.accumulate or 1
    groups = [group for i in range(parts) if (group := rows[i::parts])]
    for step in range(1, steps + 1):
        batches = [Batch.from_pairs([src for src, _ in g], [tgt for _, tgt in g]) for g in groups]
        learner.step(batches, RECIPE.lr, step)


def shape_of(batch: Batch) -> Shape:
    """Its padded sizes; logits are computed for real targets alone."""
    rows, tgt_length = batch.tgt_in.shape
    return Shape(rows, batch.src.size(1), tgt_length, batch.num_tokens, batch.num_tokens)


def configuration(source: str, architecture: Architecture, tokens: int, workers: int) -> Config:
    """The benchmark's settings in the words of train.py."""
    model = ModelConfig(
        d_model=architecture.d_model,
        num_layers=architecture.layers,
        num_decoder_layers=architecture.layers,
        num_heads=architecture.heads,
        d_ff=architecture.d_ff,
        dropout=architecture.dropout,
        norm="post",
        vocab_size=architecture.vocab_size,
    )
    training = TrainConfig(
        batch_tokens=tokens,
        optimizer="adamw",  # as the peers have it
        lr=RECIPE.lr,
        warmup_steps=RECIPE.warmup_steps,
        label_smoothing=RECIPE.label_smoothing,
        weight_decay=RECIPE.weight_decay,
        clip_norm=RECIPE.clip_norm,
        seed=RECIPE.seed,
    )
    config = Config(DataConfig(dataset=source, src=SRC, tgt=TGT, max_length=MAX_LENGTH), model, training)
    accumulate = num_micro_batches(config, workers, has_accelerator=False)
    return replace(config, train=replace(training, accumulate=accumulate))


class Recorder(Tokenizer):
    """Remembers the ids behind each text, which `translate` does not hand out."""

    said: dict[str, list[int]]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids."""
        text = super().decode(ids)
        self.said[_key(text)] = list(ids)
        return text

    def ids(self, text: str) -> list[int]:
        """The ids of a translation; none where the source was copied."""
        return self.said.get(_key(text), [])


def _key(text: str) -> str:
    """The same before and after a line break in a translation has become a space."""
    return " ".join(text.split())


class Ours:
    """Translates with our own Translator as translate.py has it, a worker for each core.

    Args:
        keeps_ids: `ids` will be asked for.
        shortlist: candidates of each source subword; 0 = the whole vocabulary.
    """

    def __init__(self, model: Path, threads: int, keeps_ids: bool = False, shortlist: int = 0) -> None:
        workers = runtime.start(threads)
        self.translator = Translator.load(model, device="cpu", split_sentences=False, workers=workers)
        self.shortlist = shortlist
        self.recorder: Recorder | None = None
        if keeps_ids:
            recorder = Recorder.load(model / "tokenizer.json")
            assert isinstance(recorder, Recorder)
            self.translator.tokenizer = self.recorder = recorder
        self._texts: list[str] = []

    def translate(self, sentences: Sequence[str], batch: int, beam: int) -> list[str]:
        """Text to text; with a batch of 1, a call for each sentence."""
        if self.recorder is not None:
            self.recorder.said = {}
        decode = DecodeConfig(beam=beam, batch_size=batch, shortlist=self.shortlist)
        groups = [[sentence] for sentence in sentences] if batch == 1 else [sentences]
        found = [self.translator.translate(group, decode=decode) for group in groups]
        self._texts = [translation.text for group in found for translation in group]
        return self._texts

    def ids(self) -> list[list[int]]:
        """Of the last translation."""
        assert self.recorder is not None
        return [self.recorder.ids(text) for text in self._texts]
