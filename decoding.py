"""Greedy and beam search over token ids, step by step with a cache; knows no text.

Shapes: A sentences still searched, W beams, V vocabulary, T steps so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from model import KVCache, Transformer


class Hypothesis(NamedTuple):
    """One translation as ids."""

    ids: list[int]
    """Without BOS and EOS."""
    score: float
    """Log-probability, EOS included, divided by the length penalty."""
    finished: bool
    """False: the length bound came before EOS."""


def length_penalty(length: int, alpha: float) -> float:
    """Divisor that makes scores of different lengths comparable; `length` counts EOS, alpha 0 switches it off.

    Source: Wu et al. 2016, eq. 14, arXiv:1609.08144.
    """
    return ((5.0 + length) / 6.0) ** alpha


@torch.inference_mode()
def search(
    model: Transformer,
    src: Tensor,
    src_mask: Tensor,
    max_lengths: Sequence[int],
    *,
    bos_id: int,
    eos_id: int,
    banned_ids: Sequence[int] = (),
    beam: int = 1,
    alpha: float = 1.0,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """Find the best translations of each row. The result of a row does not depend on the other rows.

    Args:
        src: what the model's src_embed takes; for text ids, (B, S), int64.
        src_mask: (B, 1, 1, S), bool, False at padding.
        max_lengths: most tokens of each row's translation, EOS included, (B,).
        banned_ids: ids that are never produced (padding, BOS). EOS is not produced first.
        beam: 1 is greedy search, which ends at its first EOS.
        alpha: exponent of the length penalty.
        n_best: hypotheses wanted a row, at most `beam`; the first does not depend on it.
    Returns:
        For each row at most n_best hypotheses, best first.
    """
    if not 1 <= n_best <= beam:
        raise ValueError(f"n-best must be between 1 and the beam, got {n_best} with a beam of {beam}")
    encoder_output = model.encode(src, src_mask)
    cache = model.start_cache(encoder_output)
    vocabulary = Vocabulary(bos_id, eos_id, tuple(banned_ids))
    if beam == 1:
        return _greedy(model, cache, src_mask, max_lengths, vocabulary, alpha)
    return _beam(model, cache, src_mask, max_lengths, vocabulary, beam, alpha, n_best)


class Vocabulary(NamedTuple):
    """The ids that mean something to the search."""

    bos_id: int
    eos_id: int
    banned_ids: tuple[int, ...]


def _next_logits(
    model: Transformer, cache: KVCache, src_mask: Tensor, last: Tensor, ids: Vocabulary
) -> Tensor:
    """Float32 logits (rows, V) of the token that follows `last` (rows,)."""
    is_first = cache.length == 0
    decoded = model.decode(cache.layers[0].cross_key, src_mask, last.unsqueeze(1), None, cache)
    logits = model.project(decoded[:, -1]).float()
    banned = [*ids.banned_ids, ids.eos_id] if is_first else list(ids.banned_ids)
    logits[:, banned] = -torch.inf
    return logits


def _greedy(
    model: Transformer,
    cache: KVCache,
    src_mask: Tensor,
    max_lengths: Sequence[int],
    ids: Vocabulary,
    alpha: float,
) -> list[list[Hypothesis]]:
    found: list[list[Hypothesis]] = [[] for _ in max_lengths]
    tokens: list[list[int]] = [[] for _ in max_lengths]
    scores = [0.0] * len(max_lengths)
    rows = list(range(len(max_lengths)))  # which sentence each active row is
    last = src_mask.new_full((len(rows),), ids.bos_id, dtype=torch.int64)
    while rows:
        logits = _next_logits(model, cache, src_mask, last, ids)
        best, last = logits.max(-1)
        gains = (best - logits.logsumexp(-1)).tolist()
        alive = []
        for i, (row, token) in enumerate(zip(rows, last.tolist(), strict=True)):
            scores[row] += gains[i]
            finished = token == ids.eos_id
            if not finished:
                tokens[row].append(token)
            if finished or len(tokens[row]) == max_lengths[row]:
                score = scores[row] / length_penalty(len(tokens[row]) + finished, alpha)
                found[row] = [Hypothesis(tokens[row], score, finished)]
            else:
                alive.append(i)
        if len(alive) < len(rows):
            rows = [rows[i] for i in alive]
            kept = torch.tensor(alive, dtype=torch.int64, device=last.device)
            last, src_mask = last[kept], src_mask[kept]
            cache.keep(kept, kept)
    return found


@dataclass
class BeamState:
    """What a beam search knows between two steps."""

    rows: list[int]
    """Which sentence each active one is, (A,)."""
    scores: Tensor
    """Log-probability of each live beam, (A, W), float32; -inf where there is none."""
    tokens: Tensor
    """Ids of the live beams so far, (A, W, T), int64."""
    finished: list[list[Hypothesis]]
    """For every sentence, its best W hypotheses that ended with EOS, best first."""

    def keep(self, alive: Tensor) -> None:
        """Go on with these of the active sentences alone, int64 (A',)."""
        self.rows = [self.rows[i] for i in alive.tolist()]
        self.scores, self.tokens = self.scores[alive], self.tokens[alive]


def _beam(
    model: Transformer,
    cache: KVCache,
    src_mask: Tensor,
    max_lengths: Sequence[int],
    ids: Vocabulary,
    beam: int,
    alpha: float,
    n_best: int,
) -> list[list[Hypothesis]]:
    A = len(max_lengths)
    # All beams start alike, so only the first may live, or they would stay alike.
    scores = torch.full((A, beam), -torch.inf, device=src_mask.device)
    scores[:, 0] = 0.0
    tokens = torch.full((A, beam, 1), ids.bos_id, dtype=torch.int64, device=src_mask.device)
    state = BeamState(list(range(A)), scores, tokens, [[] for _ in max_lengths])
    while state.rows:
        logits = _next_logits(model, cache, src_mask, state.tokens[:, :, -1].flatten(), ids)
        parents = _advance(state, logits, ids, beam, alpha)  # (A, W)
        offsets = torch.arange(len(state.rows), device=parents.device).unsqueeze(1) * beam
        length = state.tokens.size(2) - 1
        best_live = state.scores[:, 0].tolist()
        alive = [
            i
            for i, row in enumerate(state.rows)
            if not _is_done(state.finished[row], best_live[i], length, max_lengths[row], alpha, n_best)
        ]
        for i in set(range(len(state.rows))) - set(alive):
            _add_unfinished(state, i, n_best, length, alpha)
        if len(alive) == len(state.rows):
            cache.reorder((parents + offsets).flatten())
        else:
            kept = torch.tensor(alive, dtype=torch.int64, device=parents.device)
            cache.keep(kept, (parents + offsets)[kept].flatten())
            src_mask = src_mask[kept]
            state.keep(kept)
    return [found[:n_best] for found in state.finished]


def _advance(state: BeamState, logits: Tensor, ids: Vocabulary, beam: int, alpha: float) -> Tensor:
    """Take one step in every beam; returns which beam each new one goes on from, (A, W), int64."""
    A = len(state.rows)
    # 2W candidates hold at least W that do not end: of a beam's continuations only one is EOS.
    k = min(2 * beam, logits.size(-1))
    top, token = logits.topk(k, dim=-1)  # (A·W, k)
    gain = top - logits.logsumexp(-1, keepdim=True)
    total = (state.scores.view(-1, 1) + gain).view(A, -1)  # (A, W·k)
    total, index = total.topk(min(2 * beam, total.size(1)), dim=-1)  # (A, 2W)
    token = token.view(A, -1).gather(1, index)
    parent = index // k
    ends = token == ids.eos_id
    _add_finished(state, total, parent, ends, beam, alpha)
    state.scores, live = total.masked_fill(ends, -torch.inf).topk(beam, dim=-1)  # (A, W), best first
    parent, token = parent.gather(1, live), token.gather(1, live)
    so_far = state.tokens.gather(1, parent.unsqueeze(2).expand(-1, -1, state.tokens.size(2)))
    state.tokens = torch.cat([so_far, token.unsqueeze(2)], 2)
    return parent


def _add_finished(
    state: BeamState, total: Tensor, parent: Tensor, ends: Tensor, beam: int, alpha: float
) -> None:
    # An ending outside the best W would not have been in a beam that keeps its endings.
    where = (ends[:, :beam] & total[:, :beam].isfinite()).nonzero().tolist()
    length = state.tokens.size(2)  # BOS out, EOS in
    for i, rank in where:
        score = total[i, rank].item() / length_penalty(length, alpha)
        found = state.finished[state.rows[i]]
        if len(found) < beam or score > found[-1].score:
            found.append(Hypothesis(state.tokens[i, parent[i, rank], 1:].tolist(), score, True))
            found.sort(key=lambda h: -h.score)
            del found[beam:]


def _is_done(
    found: list[Hypothesis], best_live: float, length: int, max_length: int, alpha: float, n_best: int
) -> bool:
    """Whether no live beam can still enter the n best: log-probabilities only fall, penalties only grow."""
    if length >= max_length or best_live == -torch.inf:
        return True
    return len(found) >= n_best and best_live / length_penalty(max_length, alpha) <= found[n_best - 1].score


def _add_unfinished(state: BeamState, i: int, n_best: int, length: int, alpha: float) -> None:
    """Where the length bound left fewer than n_best endings, live beams fill the places behind them."""
    found = state.finished[state.rows[i]]
    for tokens, score in zip(state.tokens[i, :, 1:].tolist(), state.scores[i].tolist(), strict=True):
        if len(found) < n_best and score > -torch.inf:
            found.append(Hypothesis(tokens, score / length_penalty(length, alpha), False))
