"""Greedy and beam search over token ids, step by step with a cache; knows no text.

Shapes: A sentences still searched, W beams, V vocabulary, T steps so far.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from incremental import GROUP, IncrementalDecoder, KVCache, Moves


class Hypothesis(NamedTuple):
    """One translation as ids."""

    ids: list[int]
    """Without BOS and EOS."""
    score: float
    """Log-probability, EOS included, divided by the length penalty."""
    finished: bool
    """False: the length bound came before EOS."""


def length_penalty(length: float, alpha: float) -> float:
    """Divisor that makes scores of different lengths comparable; `length` counts EOS, alpha 0 switches it off.

    Source: Wu et al. 2016, eq. 14, arXiv:1609.08144.
    """
    return ((5.0 + length) / 6.0) ** alpha


@torch.inference_mode()
def search(
    decoder: IncrementalDecoder,
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
    shortlists: Sequence[Tensor] | None = None,
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
        shortlists: for each row the only ids that may be produced, EOS among them, int64, rising; None = all.
    Returns:
        For each row at most n_best hypotheses, best first.
    Raises:
        ValueError: the weights give scores that are not finite.
    """
    if not 1 <= n_best <= beam:
        raise ValueError(f"n-best must be between 1 and the beam, got {n_best} with a beam of {beam}")
    cache = decoder.start_cache(decoder.encode(src, src_mask), src_mask, beam)
    scorer = TokenScorer(decoder, bos_id, eos_id, banned_ids, shortlists)
    found = (
        _greedy(decoder, cache, scorer, max_lengths, alpha)
        if beam == 1
        else _beam(decoder, cache, scorer, max_lengths, beam, alpha, n_best)
    )
    if not all(row and math.isfinite(row[0].score) for row in found):
        raise ValueError(
            "the model's scores are not finite: its weights are damaged; copy it anew, or train again"
        )
    return found


class TokenScorer:
    """Best next tokens from decoder outputs.

    Reductions over a whole vocabulary cost as much as a layer when they track positions. So columns are taken in
    groups: a plain maximum of each group first, then positions in the best groups alone.

    Args:
        decoder: whose output projection it is.
        shortlists: for each sentence the only ids that may be produced; None = all. One product serves them all.
    """

    def __init__(
        self,
        decoder: IncrementalDecoder,
        bos_id: int,
        eos_id: int,
        banned_ids: Sequence[int],
        shortlists: Sequence[Tensor] | None = None,
    ) -> None:
        self.bos_id, self.eos_id = bos_id, eos_id
        self.ids = None if shortlists is None else torch.cat(list(shortlists)).unique()
        self.matrix = decoder.output_layer(self.ids)  # (D + 1, width)
        self.banned, self.banned_first = map(self._columns, (banned_ids, (*banned_ids, eos_id)))
        self.logits, self.scores = self.matrix.new_empty(0), self.matrix.new_empty(0)
        self.mask: Tensor | None = None
        """(A, width), float: -inf where a sentence may not produce what another may."""
        if shortlists is not None and self.ids is not None and len(shortlists) > 1:
            self.mask = self.matrix.new_full((len(shortlists), self.matrix.size(1)), -torch.inf)
            for row, ids in zip(self.mask, shortlists, strict=True):
                row[torch.searchsorted(self.ids, ids)] = 0.0

    def keep(self, moves: Moves) -> None:
        """Go on with some of the sentences alone."""
        self.mask = None if self.mask is None else moves(self.mask)

    def _columns(self, ids: Sequence[int]) -> Tensor:
        wanted = torch.tensor(ids, dtype=torch.int64, device=self.matrix.device)
        return wanted if self.ids is None else torch.isin(self.ids, wanted).nonzero().squeeze(1)

    def log_probabilities(self, x: Tensor, is_first: bool) -> Tensor:
        """(R, D) to (R, groups, GROUP), float32, in a buffer that the next call uses again."""
        (R, D), width = x.shape, self.matrix.size(1)
        if self.logits.numel() < R * width:
            self.logits, self.scores = x.new_empty(R * width), x.new_empty(R * width)
        logits, scores = (buffer[: R * width].view(R, width) for buffer in (self.logits, self.scores))
        inputs = x.new_ones(R, D + 1)
        inputs[:, :D] = x
        torch.mm(inputs, self.matrix, out=logits)
        logits.index_fill_(1, self.banned_first if is_first else self.banned, -torch.inf)
        if self.mask is not None:
            logits.view(len(self.mask), -1, width).add_(self.mask.unsqueeze(1))
        return torch.log_softmax(logits, 1, out=scores).view(R, -1, GROUP)

    def top(self, x: Tensor, scores: Tensor, k: int, is_first: bool) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of the W beams of each sentence.

        Args:
            x: (A, W, D). scores: of the beams so far, (A, W).
        Returns:
            Scores (A, k), best first; the beams they go on from and the ids of the tokens, (A, k), int64.
        """
        A, W, D = x.shape
        gain = self.log_probabilities(x.reshape(A * W, D), is_first)  # (A·W, G, GROUP)
        G = gain.size(1)
        num_groups = min(k, W * G)
        # The k best lie in the k groups with the best maxima; groups of all beams of a sentence compete.
        _, group = (gain.amax(2) + scores.view(-1, 1)).view(A, W * G).topk(num_groups, dim=1)  # (A, k)
        row = torch.arange(A, device=x.device).unsqueeze(1) * (W * G) + group
        before = scores.gather(1, group // G).unsqueeze(2)
        candidates = gain.view(A * W * G, GROUP)[row] + before  # (A, k, GROUP)
        best, index = candidates.flatten(1).topk(min(k, num_groups * GROUP), dim=1)
        group = group.gather(1, index // GROUP)
        # Where nothing is left to choose, the choice may fall on what only fills the last group.
        column = (group % G * GROUP + index % GROUP).masked_fill_(~best.isfinite(), 0)
        return best, group // G, column if self.ids is None else self.ids[column]

    def best(self, x: Tensor, is_first: bool) -> tuple[Tensor, Tensor]:
        """The best token of each row (R, D): its log-probability and its id, (R,)."""
        gain = self.log_probabilities(x, is_first)  # (R, G, GROUP)
        largest, group = gain.amax(2).max(1)
        column = group * GROUP + gain[torch.arange(len(x), device=x.device), group].argmax(1)
        return largest, column if self.ids is None else self.ids[column]


# Rows that have ended are dropped when no more than this share still goes on: a dozen tensors are to be changed.
MAX_ALIVE_SHARE = 0.94


def _greedy(
    decoder: IncrementalDecoder, cache: KVCache, scorer: TokenScorer, max_lengths: Sequence[int], alpha: float
) -> list[list[Hypothesis]]:
    found: list[list[Hypothesis]] = [[] for _ in max_lengths]
    tokens: list[list[int]] = [[] for _ in max_lengths]
    scores = [0.0] * len(max_lengths)
    rows: list[int | None] = list(range(len(max_lengths)))  # which sentence each row is; None = it has ended
    last = torch.full((len(rows),), scorer.bos_id, device=scorer.matrix.device)
    while True:
        gain, last = scorer.best(decoder.step(last.unsqueeze(1), cache).squeeze(1), cache.length == 1)
        for i, (row, token, log_probability) in enumerate(
            zip(rows, last.tolist(), gain.tolist(), strict=True)
        ):
            if row is None:
                continue
            scores[row] += log_probability
            finished = token == scorer.eos_id
            if not finished:
                tokens[row].append(token)
            if finished or len(tokens[row]) == max_lengths[row]:
                score = scores[row] / length_penalty(len(tokens[row]) + finished, alpha)
                found[row] = [Hypothesis(tokens[row], score, finished)]
                rows[i] = None
        alive = [i for i, row in enumerate(rows) if row is not None]
        if not alive:
            break
        if len(alive) <= MAX_ALIVE_SHARE * len(rows):
            moves = Moves.of(alive, last.device)
            rows, last = moves.of_list(rows), moves(last)
            cache.keep(moves)
            scorer.keep(moves)
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
    settled: set[int]
    """Sentences whose best is found; only the places behind it are still open."""

    def keep(self, moves: Moves) -> None:
        """Go on with some of the active sentences alone."""
        self.rows = moves.of_list(self.rows)
        self.scores, self.tokens = moves(self.scores), moves(self.tokens)


def _beam(
    decoder: IncrementalDecoder,
    cache: KVCache,
    scorer: TokenScorer,
    max_lengths: Sequence[int],
    beam: int,
    alpha: float,
    n_best: int,
) -> list[list[Hypothesis]]:
    A, device = len(max_lengths), scorer.matrix.device
    # All beams start alike, so only the first may live, or they would stay alike.
    scores = torch.full((A, beam), -torch.inf, device=device)
    scores[:, 0] = 0.0
    tokens = torch.full((A, beam, 1), scorer.bos_id, dtype=torch.int64, device=device)
    state = BeamState(list(range(A)), scores, tokens, [[] for _ in max_lengths], set())
    while True:
        decoded = decoder.step(state.tokens[:, :, -1], cache)
        parents = _advance(state, scorer, decoded, beam, alpha)  # (A, W)
        length = state.tokens.size(2) - 1
        best_live = state.scores[:, 0].tolist()
        alive = []
        for i, row in enumerate(state.rows):
            found = state.finished[row]
            if _is_done(found, best_live[i], length, max_lengths[row], alpha, 1):
                state.settled.add(row)
            if not _is_done(found, best_live[i], length, max_lengths[row], alpha, n_best):
                alive.append(i)
        for i in set(range(len(state.rows))) - set(alive):
            _add_unfinished(state, i, n_best, length, alpha)
        if not alive:
            break
        if len(alive) < len(state.rows):
            moves = Moves.of(alive, device)
            parents = moves(parents)
            cache.keep(moves)
            scorer.keep(moves)
            state.keep(moves)
        cache.reorder(parents)
    return [found[:n_best] for found in state.finished]


def _advance(state: BeamState, scorer: TokenScorer, decoded: Tensor, beam: int, alpha: float) -> Tensor:
    """Take one step in every beam; returns which beam each new one goes on from, (A, W), int64."""
    # 2W candidates hold at least W that do not end: of a beam's continuations only one is EOS.
    total, parent, token = scorer.top(decoded, state.scores, 2 * beam, state.tokens.size(2) == 1)  # (A, 2W)
    ends = token == scorer.eos_id
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
        if state.rows[i] in state.settled and score > found[0].score:
            continue  # a search for the best alone would have ended before
        if len(found) < beam or score > found[-1].score:
            found.append(Hypothesis(state.tokens[i, parent[i, rank], 1:].tolist(), score, True))
            found.sort(key=lambda h: -h.score)
            del found[beam:]


# A beam may outgrow the best translation found by this factor and so many tokens.
LENGTH_MARGIN = 1.25, 6


def _is_done(
    found: list[Hypothesis], best_live: float, length: int, max_length: int, alpha: float, n_best: int
) -> bool:
    """Whether no live beam can still enter the n best: log-probabilities only fall, penalties only grow.

    A translation far longer than the best so far is not waited for, though its score could be better.
    """
    if length >= max_length or best_live == -torch.inf:
        return True
    if len(found) < n_best:
        return False
    longest = min(max_length, LENGTH_MARGIN[0] * (len(found[0].ids) + 1) + LENGTH_MARGIN[1])
    return best_live / length_penalty(max(length, longest), alpha) <= found[n_best - 1].score


def _add_unfinished(state: BeamState, i: int, n_best: int, length: int, alpha: float) -> None:
    """Where the length bound left fewer than n_best endings, live beams fill the places behind them."""
    found = state.finished[state.rows[i]]
    for tokens, score in zip(state.tokens[i, :, 1:].tolist(), state.scores[i].tolist(), strict=True):
        if len(found) < n_best and score > -torch.inf:
            found.append(Hypothesis(tokens, score / length_penalty(length, alpha), False))
