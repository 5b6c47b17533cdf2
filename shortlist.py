"""Shortlists: which target subwords can be expected in the translation of a sentence, learned from the corpus.

Shapes: V vocabulary, C candidates of a source subword.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.torch
import torch
from torch import Tensor

import runtime
from inputs import Ids, Values
from tokenizer import EOS_ID, PAD_ID

FILE = "shortlist.safetensors"
# Candidates that are stored of each subword, and frequent subwords that are expected everywhere.
MAX_CANDIDATES, FREQUENT = 64, 512
# Pairs of a source and a target position that are looked at, about; of a larger corpus, every n-th sentence counts.
MAX_LINKS = 8_000_000
ITERATIONS = 5


class Shortlist(NamedTuple):
    """Likely translations of each source subword, and the most frequent target subwords, best first."""

    candidates: Tensor
    """(V, 64), int32."""
    frequent: Tensor
    """(512,) or fewer, int32."""

    @classmethod
    def learn(cls, pairs: Sequence[tuple[Ids, Ids]], vocab_size: int) -> "Shortlist":
        """Learn it from pairs of id lists, by IBM model 1.

        Source: Brown et al. 1993, "The mathematics of statistical machine translation".
        """
        link, position = _links(pairs, vocab_size)
        keys, key = np.unique(link, return_inverse=True)
        del link
        probability = np.ones(len(keys))
        for _ in range(ITERATIONS):
            share = probability[key]
            share /= np.bincount(position, share)[position]
            count = np.bincount(key, share)
            probability = count / np.bincount(keys // vocab_size, count, vocab_size)[keys // vocab_size]
        source = keys // vocab_size
        order = np.lexsort((-probability, source))
        rank = np.arange(len(keys)) - np.searchsorted(source, source)  # sorted by source before and after
        is_kept = rank < MAX_CANDIDATES
        candidates = np.full((vocab_size, MAX_CANDIDATES), EOS_ID, np.int32)
        candidates[source[is_kept], rank[is_kept]] = (keys % vocab_size)[order][is_kept]
        frequency = np.bincount(
            np.concatenate([np.zeros(0, np.int64), *(ids for _, ids in pairs)]), minlength=vocab_size
        )
        frequent = np.argsort(-frequency, kind="stable")[:FREQUENT].astype(np.int32)
        return cls(torch.from_numpy(candidates), torch.from_numpy(frequent[frequency[frequent] > 0]))

    def of(self, source: Values, num_candidates: int) -> Tensor:
        """Ids that may be produced for a sentence, int64, rising; its own are among them, since names are copied."""
        own = torch.from_numpy(source).long()
        likely = self.candidates[own, :num_candidates].flatten().long()
        return torch.cat([likely, self.frequent.long(), own, torch.tensor([EOS_ID])]).unique()

    def save(self, path: Path) -> None:
        """Write it into a model folder."""
        runtime.write_atomic(path / FILE, safetensors.torch.save(self._asdict()))

    @classmethod
    def load(cls, path: Path, vocab_size: int) -> "Shortlist":
        """Read it from a model folder.

        Raises:
            FileNotFoundError, ValueError: there is none, or it is damaged or of another vocabulary.
        """
        file = path / FILE
        if not file.is_file():
            lacking = f"{path} has no {FILE}, which --shortlist needs (models of text have it)"
            raise FileNotFoundError(f"{lacking}; leave --shortlist out, or train again")
        try:
            read = cls(**safetensors.torch.load_file(file))
        except (safetensors.SafetensorError, TypeError) as error:
            raise ValueError(f"{file} is damaged: {error}") from None
        shapes = read.candidates.shape == (vocab_size, MAX_CANDIDATES) and read.frequent.dim() == 1
        if not shapes or any(
            t.dtype != torch.int32 or (t.numel() and not 0 <= t.min() <= t.max() < vocab_size) for t in read
        ):
            raise ValueError(f"{file} does not fit the {vocab_size:,} subwords of its model; train again")
        return read


Ints = npt.NDArray[np.int64]


def _links(pairs: Sequence[tuple[Ids, Ids]], vocab_size: int) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Every source id with every target id of its pair, as source · V + target; number of the target position."""
    links: list[Ints] = []
    positions: list[npt.NDArray[np.int32]] = []
    num_positions = 0
    num_links = sum((len(src_ids) + 1) * len(tgt_ids) for src_ids, tgt_ids in pairs)
    for src_ids, tgt_ids in pairs[:: max(1, -(-num_links // MAX_LINKS))]:
        # Padding stands for the NULL word of model 1.
        src, tgt = np.append(src_ids, PAD_ID).astype(np.int64), np.asarray(tgt_ids, np.int64)
        links.append((src * vocab_size + tgt[:, None]).ravel())
        positions.append(
            np.repeat(np.arange(num_positions, num_positions + len(tgt), dtype=np.int32), len(src))
        )
        num_positions += len(tgt)
    return np.concatenate([np.zeros(0, np.int64), *links]), np.concatenate(
        [np.zeros(0, np.int32), *positions]
    )
