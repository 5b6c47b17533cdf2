"""Hugging Face transformers (MarianMTModel) as an engine of the benchmark, as its documentation would have it."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from marian import marian_config, new_marian, set_positions
from measuring import Clock, Shape
from pairs import read_ids
from peers import BOS_ID, EOS_ID, PAD_ID, RECIPE, SRC, TGT, Architecture, Pair, Subwords, longest
from torch import Tensor
from transformers import GenerationConfig, MarianMTModel

from config import ModelConfig

IGNORED = -100


def batches(pairs: Sequence[Pair], tokens: int, rng: Random) -> Iterator[list[Pair]]:
    """Batches of similar lengths of at most so many real target tokens, in random order, without end."""
    while True:
        order = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), rng.random()))
        groups: list[list[Pair]] = [[]]
        room = tokens
        for pair in order:
            if groups[-1] and len(pair[1]) + 1 > room:
                groups.append([])
                room = tokens
            groups[-1].append(pair)
            room -= len(pair[1]) + 1
        rng.shuffle(groups)
        yield from groups


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """(B, longest), int64."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def train(data: Path, architecture: Architecture, tokens: int, threads: int, clock: Clock) -> "HuggingFace":
    """Train until the clock says stop; a plain loop with fused AdamW, warm-up and cosine."""
    subwords = Subwords(data)
    model, optimizer = _new(architecture, len(subwords.vocabulary), threads)
    pairs = list(zip(read_ids(data / f"train.{SRC}"), read_ids(data / f"train.{TGT}"), strict=True))
    stream = batches(pairs, tokens, Random(RECIPE.seed))
    clock.start()
    while not clock.is_over:
        lr = RECIPE.lr * 0.5 * (1 + math.cos(math.pi * clock.progress))
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (len(clock.shapes) + 1) / RECIPE.warmup_steps)
        clock.tick([_step(model, optimizer, next(stream))])
    return HuggingFace(model.eval(), subwords)


def learn_rows(rows: Sequence[Pair], architecture: Architecture, threads: int, steps: int) -> None:
    """A few steps on the same rows, for the memory that they take."""
    model, optimizer = _new(architecture, architecture.vocab_size, threads)
    for _ in range(steps):
        _step(model, optimizer, rows)


def _new(a: Architecture, vocab_size: int, threads: int) -> tuple[MarianMTModel, torch.optim.Optimizer]:
    """A model with initial weights and its optimizer."""
    torch.set_num_threads(threads)
    torch.manual_seed(RECIPE.seed)
    config = ModelConfig(
        a.d_model, a.layers, a.layers, a.heads, a.d_ff, a.dropout, "post", "relu", "sinusoidal"
    )
    model = new_marian(marian_config(config, vocab_size)).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=RECIPE.lr, betas=RECIPE.betas, weight_decay=RECIPE.weight_decay, fused=True
    )
    return model, optimizer


def _step(model: MarianMTModel, optimizer: torch.optim.Optimizer, batch: Sequence[Pair]) -> Shape:
    src = pad([[*src, EOS_ID] for src, _ in batch], PAD_ID)
    tgt_in = pad([[BOS_ID, *tgt] for _, tgt in batch], PAD_ID)
    labels = pad([[*tgt, EOS_ID] for _, tgt in batch], IGNORED)
    logits = model(
        input_ids=src, attention_mask=src != PAD_ID, decoder_input_ids=tgt_in, use_cache=False
    ).logits
    loss = F.cross_entropy(
        logits.view(-1, logits.size(-1)),
        labels.view(-1),
        ignore_index=IGNORED,
        label_smoothing=RECIPE.label_smoothing,
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE.clip_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    num_tokens = sum(len(tgt) + 1 for _, tgt in batch)
    return Shape(len(batch), src.size(1), labels.size(1), labels.numel(), num_tokens)


class HuggingFace:
    """Translates with `generate` and its cache, sentences of similar lengths together."""

    def __init__(self, model: MarianMTModel, subwords: Subwords) -> None:
        self.model, self.subwords = model, subwords
        self._ids: list[list[int]] = []

    @classmethod
    def load(cls, folder: Path, threads: int) -> "HuggingFace":
        """Read a folder that export.py made."""
        torch.set_num_threads(threads)
        model = MarianMTModel.from_pretrained(folder, attn_implementation="sdpa")
        return cls(set_positions(model).eval(), Subwords(folder))

    @torch.inference_mode()
    def translate(self, sentences: Sequence[str], batch: int, beam: int) -> list[str]:
        """Text to text."""
        rows = [[*ids, EOS_ID] for ids in self.subwords.encode(sentences)]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        self._ids = [[] for _ in rows]
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            src = pad([rows[i] for i in chosen], PAD_ID)
            generation = GenerationConfig(
                num_beams=beam,
                do_sample=False,
                length_penalty=1.0,
                # One bound for a batch: that of its longest sentence.
                max_new_tokens=longest(src.size(1)),
                pad_token_id=PAD_ID,
                bos_token_id=BOS_ID,
                eos_token_id=EOS_ID,
                decoder_start_token_id=BOS_ID,
            )
            found = self.model.generate(
                input_ids=src, attention_mask=(src != PAD_ID).long(), generation_config=generation
            )
            for i, ids in zip(chosen, found[:, 1:].tolist(), strict=True):
                self._ids[i] = ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids
        return [self.subwords.decode(ids) for ids in self._ids]

    def ids(self) -> list[list[int]]:
        """Of the last translation."""
        return self._ids
