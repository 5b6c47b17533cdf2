"""Greedy and beam search over token ids, step by step with a cache; knows no text.

Shapes: A sentences still searched, W beams, V vocabulary, T steps so far.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from incremental import GROUP, IncrementalDecoder, KVCache, Moves


class Sentences(NamedTuple):
    """Sentences that the encoder reads together."""

    src: Tensor
    """What the model's src_embed takes; for text ids, (A, S), int64."""
    src_mask: Tensor
    """(A, 1, 1, S), bool, False at padding."""
    max_lengths: Sequence[int]
    """Most tokens of each one's translation, EOS included, (A,)."""
    shortlists: Sequence[Tensor] | None = None
    """For each one the only ids that may be produced, EOS among them, int64, rising; None = all."""


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


class Vocabulary(NamedTuple):
    """Ids that the search treats in a way of their own."""

    bos_id: int
    eos_id: int
    banned_ids: Sequence[int] = ()
    """Never produced (padding, BOS). EOS is not produced first."""


@torch.inference_mode()
def search(
    decoder: IncrementalDecoder,
    batches: Iterable[Sentences],
    vocabulary: Vocabulary,
    *,
    beam: int = 1,
    alpha: float = 1.0,
    n_best: int = 1,
) -> list[list[list[Hypothesis]]]:
    """Find the best translations of each sentence, whose result does not depend on the others.

    Args:
        batches: each is taken when its turn comes. Greedy search has as many sentences at work as the first one
            has: where a translation ends, a sentence of the next ones takes its place.
        beam: 1 is greedy search, which ends at its first EOS.
        alpha: exponent of the length penalty.
        n_best: hypotheses wanted a sentence, at most `beam`; the first does not depend on it.
    Returns:
        For each batch, for each of its sentences, at most n_best hypotheses, best first.
    Raises:
        ValueError: the weights give scores that are not finite.
    """
    if not 1 <= n_best <= beam:
        raise ValueError(f"n-best must be between 1 and the beam, got {n_best} with a beam of {beam}")
    if beam == 1:
        found = GreedySearch(decoder, iter(batches), vocabulary, alpha).run()
    else:
        found = []
        for batch in batches:
            cache = decoder.start_cache(decoder.encode(batch.src, batch.src_mask), batch.src_mask, beam)
            scorer = TokenScorer(decoder, vocabulary, batch.shortlists)
            found.append(_beam(decoder, cache, scorer, batch.max_lengths, beam, alpha, n_best))
    if not all(row and math.isfinite(row[0].score) for rows in found for row in rows):
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
        waiting: the same for sentences that may take their places.
    """

    def __init__(
        self,
        decoder: IncrementalDecoder,
        vocabulary: Vocabulary,
        shortlists: Sequence[Tensor] | None = None,
        waiting: Sequence[Tensor] = (),
    ) -> None:
        self.bos_id, self.eos_id = vocabulary.bos_id, vocabulary.eos_id
        self.ids: Tensor | None = None
        if shortlists is not None:
            listed = torch.cat([*shortlists, *waiting])
            is_listed = torch.zeros(int(listed.max()) + 1, dtype=torch.bool, device=listed.device)
            is_listed[listed] = True
            self.ids = is_listed.nonzero().squeeze(1)
            self.column_of = is_listed.cumsum(0) - 1
        self.matrix = decoder.output_layer(self.ids)  # (D + 1, width)
        self.banned, self.eos = self._columns(vocabulary.banned_ids), self._columns([self.eos_id])
        self.logits, self.scores = self.matrix.new_empty(0), self.matrix.new_empty(0)
        self.mask: Tensor | None = None
        """(A, width), float: -inf where a sentence may not produce what another may."""
        if shortlists is not None and len(shortlists) > 1:
            self.mask = self.matrix.new_empty(len(shortlists), self.matrix.size(1))
            self.fill(range(len(shortlists)), shortlists)

    def fill(self, places: Sequence[int], shortlists: Sequence[Tensor]) -> None:
        """Sentences with these shortlists begin in these places."""
        if self.mask is None:
            return
        for place, ids in zip(places, shortlists, strict=True):
            self.mask[place] = -torch.inf
            self.mask[place, self.column_of[ids]] = 0.0

    def keep(self, moves: Moves) -> None:
        """Go on with some of the sentences alone."""
        self.mask = None if self.mask is None else moves(self.mask)

    def _columns(self, ids: Sequence[int]) -> Tensor:
        wanted = torch.tensor(ids, dtype=torch.int64, device=self.matrix.device)
        return wanted if self.ids is None else torch.isin(self.ids, wanted).nonzero().squeeze(1)

    def log_probabilities(self, x: Tensor, first: Sequence[int]) -> Tensor:
        """(R, D) to (R, groups, GROUP), float32, in a buffer that the next call uses again; `first` are the rows that
        have no token yet."""
        (R, D), width = x.shape, self.matrix.size(1)
        if self.logits.numel() < R * width:
            self.logits, self.scores = x.new_empty(R * width), x.new_empty(R * width)
        logits, scores = (buffer[: R * width].view(R, width) for buffer in (self.logits, self.scores))
        inputs = x.new_ones(R, D + 1)
        inputs[:, :D] = x
        torch.mm(inputs, self.matrix, out=logits)
        logits.index_fill_(1, self.banned, -torch.inf)
        if first:
            logits[torch.tensor(first, device=x.device), self.eos] = -torch.inf
        if self.mask is not None:
            logits.view(len(self.mask), -1, width).add_(self.mask.unsqueeze(1))
        return torch.log_softmax(logits, 1, out=scores).view(R, -1, GROUP)

    def top(self, x: Tensor, scores: Tensor, k: int, first: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of the W beams of each sentence.

        Args:
            x: (A, W, D). scores: of the beams so far, (A, W). first: rows of A·W that have no token yet.
        Returns:
            Scores (A, k), best first; the beams they go on from and the ids of the tokens, (A, k), int64.
        """
        A, W, D = x.shape
        gain = self.log_probabilities(x.reshape(A * W, D), first)  # (A·W, G, GROUP)
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

    def best(self, x: Tensor, first: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The best token of each row (R, D), of which `first` have none yet: its log-probability and its id, (R,)."""
        gain = self.log_probabilities(x, first)  # (R, G, GROUP)
        largest, group = gain.amax(2).max(1)
        column = group * GROUP + gain[torch.arange(len(x), device=x.device), group].argmax(1)
        return largest, column if self.ids is None else self.ids[column]


# Rows that have ended are dropped when no more than this share still goes on: a dozen tensors are to be changed.
MAX_ALIVE_SHARE = 0.94


@dataclass
class Greedy:
    """A translation that greedy search writes."""

    max_length: int
    shortlist: Tensor | None
    tokens: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    finished: bool = False

    @property
    def has_ended(self) -> bool:
        """With EOS, or at the length bound."""
        return self.finished or len(self.tokens) == self.max_length

    def add(self, token: int, log_probability: float, eos_id: int) -> None:
        """Write the next token."""
        self.log_probability += log_probability
        self.finished = token == eos_id
        if not self.finished:
            self.tokens.append(token)

    def hypothesis(self, alpha: float) -> Hypothesis:
        """What was written."""
        length = len(self.tokens) + self.finished
        return Hypothesis(self.tokens, self.log_probability / length_penalty(length, alpha), self.finished)


class GreedySearch:
    """Greedy search through batches. Where a translation ends, the next sentence that waits begins in its place, so
    that a step has as many rows as the first batch for as long as sentences wait."""

    def __init__(
        self, decoder: IncrementalDecoder, batches: Iterator[Sentences], vocabulary: Vocabulary, alpha: float
    ) -> None:
        self.decoder, self.batches, self.vocabulary, self.alpha = decoder, batches, vocabulary, alpha
        self.found: list[list[Greedy]] = []
        self.rows: list[Greedy] = []
        """What each row writes."""
        self.num_waiting = 0
        """So many of the last batch found have not begun."""

    def run(self) -> list[list[list[Hypothesis]]]:
        """As `search`."""
        for batch in self.batches:
            self.rows = self._add(batch)
            self.cache = self._encoded(batch)
            self.scorer = TokenScorer(self.decoder, self.vocabulary, batch.shortlists)
            self.last = torch.full(
                (len(self.rows),), self.vocabulary.bos_id, device=self.scorer.matrix.device
            )
            while self.rows:
                self._step()
                self._fill([i for i, row in enumerate(self.rows) if row.has_ended])
        return [[[row.hypothesis(self.alpha)] for row in rows] for rows in self.found]

    def _add(self, batch: Sentences) -> list[Greedy]:
        shortlists: Sequence[Tensor | None] = batch.shortlists or [None] * len(batch.max_lengths)
        self.found.append([Greedy(*row) for row in zip(batch.max_lengths, shortlists, strict=True)])
        return list(self.found[-1])

    def _encoded(self, batch: Sentences) -> KVCache:
        encoded = self.decoder.encode(batch.src, batch.src_mask)
        return self.decoder.start_cache(encoded, batch.src_mask, may_fill=len(self.rows) > 1)

    def _step(self) -> None:
        first = [i for i, row in enumerate(self.rows) if not row.tokens]
        x = self.decoder.step(self.last.unsqueeze(1), self.cache).squeeze(1)
        gain, self.last = self.scorer.best(x, first)
        for row, token, log_probability in zip(self.rows, self.last.tolist(), gain.tolist(), strict=True):
            if not row.has_ended:
                row.add(token, log_probability, self.vocabulary.eos_id)

    def _fill(self, free: list[int]) -> None:
        """Begin what waits in rows that have ended, and drop them where nothing waits."""
        while free and self._is_waiting():
            places, free = free[: self.num_waiting], free[self.num_waiting :]
            start = len(self.found[-1]) - self.num_waiting
            begun = self.found[-1][start : start + len(places)]
            self.num_waiting -= len(places)
            for place, row in zip(places, begun, strict=True):
                self.rows[place] = row
            self.last[places] = self.vocabulary.bos_id
            self.scorer.fill(places, [row.shortlist for row in begun if row.shortlist is not None])
            self.cache.fill(torch.tensor(places, device=self.last.device), self.waiting, start)
        if len(free) == len(self.rows):
            self.rows = []
            return
        num_alive = len(self.rows) - len(free)
        # Rows of different lengths are dropped at once: one that has ended might grow past the longest bound.
        if free and (self.cache.lengths is not None or num_alive <= MAX_ALIVE_SHARE * len(self.rows)):
            moves = Moves.of([i for i in range(len(self.rows)) if i not in set(free)], self.last.device)
            self.rows, self.last = moves.of_list(self.rows), moves(self.last)
            self.cache.keep(moves)
            self.scorer.keep(moves)

    def _is_waiting(self) -> bool:
        """Whether a sentence waits, of a batch taken for it if need be. A sentence that is searched alone, for which
        the cache has a faster form, waits for no other."""
        if not self.num_waiting and len(self.rows) > 1 and (batch := next(self.batches, None)):
            rows = self._add(batch)
            self.num_waiting, self.waiting = len(rows), self._encoded(batch)
            if batch.shortlists is not None:
                now = [row.shortlist for row in self.rows if row.shortlist is not None]
                self.scorer = TokenScorer(self.decoder, self.vocabulary, now, batch.shortlists)
        return self.num_waiting > 0


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
    first = range(len(state.rows) * beam) if state.tokens.size(2) == 1 else ()
    total, parent, token = scorer.top(decoded, state.scores, 2 * beam, first)  # (A, 2W)
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
