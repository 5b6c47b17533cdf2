"""The search: greedy = one beam, wide beam = exhaustive, batch of one = batch of many, the right stop."""

import itertools
import math

import pytest
import torch
from torch import Tensor

import decoding
from dataset import causal_mask, pad_source
from decoding import Hypothesis, length_penalty, search
from model import Transformer, build_transformer

BOS, EOS = 1, 2


def tiny(vocab: int, seed: int = 0, scale: float = 2.0) -> Transformer:
    """A model with random but opinionated weights."""
    torch.manual_seed(seed)
    model = build_transformer(vocab, vocab, 12, 12, 16, 1, 2, 0.0, 32).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(scale)
    return model


def find(
    model: Transformer, sources: list[list[int]], bounds: list[int], **options
) -> list[list[Hypothesis]]:
    return search(model, *pad_source(sources), bounds, bos_id=BOS, eos_id=EOS, banned_ids=(0, BOS), **options)


def log_probability(model: Transformer, source: list[int], output: list[int]) -> float:
    src, src_mask = pad_source([source])
    tgt = torch.tensor([[BOS, *output]])
    logits = model(src, src_mask, tgt, causal_mask(tgt.size(1)))[0]
    logits[:, [0, BOS]] = -math.inf
    logits[0, EOS] = -math.inf
    steps = logits.log_softmax(-1)
    return sum(steps[t, token].item() for t, token in enumerate([*output, EOS]))


def exhaustive(
    model: Transformer, source: list[int], bound: int, alpha: float, vocab: int
) -> list[Hypothesis]:
    found = []
    for n in range(1, bound):
        for output in itertools.product(range(3, vocab), repeat=n):
            score = log_probability(model, source, list(output)) / length_penalty(n + 1, alpha)
            found.append(Hypothesis(list(output), score, True))
    return sorted(found, key=lambda h: -h.score)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_beam_wide_enough_equals_exhaustive_search(alpha, seed):  # fault 19
    vocab, bound = 6, 4
    model = tiny(vocab, seed)
    expected = exhaustive(model, [3, 4, 5], bound, alpha, vocab)[:5]
    actual = find(model, [[3, 4, 5]], [bound], beam=vocab**bound, alpha=alpha, n_best=5)[0]
    assert [h.ids for h in actual] == [h.ids for h in expected]
    for a, e in zip(actual, expected, strict=True):
        assert a.score == pytest.approx(e.score, abs=1e-4)


def test_one_beam_equals_greedy_search():  # fault 19
    model = tiny(9, scale=1.5)
    sources = [[3, 4], [5, 6, 7, 8, 3], [4], [8, 8, 8]]
    src, src_mask = pad_source(sources)
    bounds = [12, 9, 15, 4]
    ids = decoding.Vocabulary(BOS, EOS, (0, BOS))
    cache = model.start_cache(model.encode(src, src_mask))
    with torch.inference_mode():
        as_beam = decoding._beam(model, cache, src_mask, bounds, ids, 1, 0.0, 1)
    greedy = find(model, sources, bounds, alpha=0.0)
    for a, e in zip(as_beam, greedy, strict=True):
        assert a[0].ids == e[0].ids and a[0].finished == e[0].finished
        assert a[0].score == pytest.approx(e[0].score, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_row_alone_or_in_any_batch_gives_the_same(beam):  # fault 2
    model = tiny(20, scale=1.6)
    generator = torch.Generator().manual_seed(3)
    sources = [torch.randint(3, 20, (n,), generator=generator).tolist() for n in (3, 9, 40)]
    bounds = [10, 22, 60]
    together = find(model, sources, bounds, beam=beam)
    for source, bound, in_batch in zip(sources, bounds, together, strict=True):
        alone = find(model, [source], [bound], beam=beam)[0]
        assert alone[0].ids == in_batch[0].ids
        assert alone[0].score == pytest.approx(in_batch[0].score, abs=1e-5)


def test_the_best_does_not_depend_on_how_many_are_wanted():  # fault 19
    model = tiny(12, scale=1.5)
    sources = [[3, 5, 7], [11, 4]]
    alone = find(model, sources, [8, 8], beam=5)
    for n in (2, 5):
        several = find(model, sources, [8, 8], beam=5, n_best=n)
        assert [s[0] for s in several] == [a[0] for a in alone]
        assert all([h.score for h in s] == sorted((h.score for h in s), reverse=True) for s in several)
        assert all(len({tuple(h.ids) for h in s}) == n for s in several)


class Scripted(torch.nn.Module):
    """Stands in for a model: the next token's probabilities are read from a table of prefixes."""

    def __init__(self, table: dict[tuple[int, ...], dict[int, float]], vocab: int) -> None:
        super().__init__()
        self.table, self.vocab = table, vocab

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        return src.unsqueeze(-1).float()

    def start_cache(self, memory: Tensor) -> "ScriptedCache":
        return ScriptedCache(memory)

    def decode(self, memory, src_mask, tgt, tgt_mask, cache) -> Tensor:
        if not cache.prefixes:
            cache.prefixes = [()] * len(tgt)
        else:
            cache.prefixes = [(*p, t) for p, t in zip(cache.prefixes, tgt[:, 0].tolist(), strict=True)]
        cache.length += 1
        rows = [self.table.get(p, {EOS: 1.0}) for p in cache.prefixes]
        logits = torch.zeros(len(rows), 1, self.vocab)
        for i, row in enumerate(rows):
            for token, probability in row.items():
                logits[i, 0, token] = probability
        return logits.log()

    def project(self, x: Tensor) -> Tensor:
        return x.clone()


class ScriptedCache:
    def __init__(self, memory: Tensor) -> None:
        self.length, self.prefixes = 0, []
        self.layers = [type("Layer", (), {"cross_key": memory})]

    def reorder(self, rows: Tensor) -> None:
        self.prefixes = [self.prefixes[i] for i in rows.tolist()]

    def keep(self, sentences: Tensor, rows: Tensor) -> None:
        self.reorder(rows)


def test_search_goes_on_past_a_short_ending_that_a_longer_one_beats():  # fault 19
    # [3] ends at once with log 0.45; [4, 5, 5, 5] costs log 0.45 too, and divided by its length it wins.
    table = {(): {3: 0.5, 4: 0.5}, (3,): {EOS: 0.9, 5: 0.1}, (4,): {5: 1.0}, (4, 5): {5: 1.0}}
    table[4, 5, 5] = {5: 1.0}
    table[4, 5, 5, 5] = {EOS: 0.9, 3: 0.1}
    best = find(Scripted(table, 6), [[3]], [9], beam=2, alpha=1.0)[0][0]
    assert best.ids == [4, 5, 5, 5]
    assert best.score == pytest.approx(math.log(0.45) / length_penalty(5, 1.0), abs=1e-4)
    assert find(Scripted(table, 6), [[3]], [9], beam=2, alpha=0.0)[0][0].ids == [3]


def test_search_stops_when_no_live_beam_can_win():
    table = {(): {3: 0.9, 4: 0.1}, (3,): {EOS: 1.0}, (4,): {4: 1.0}}
    model = Scripted(table, 6)
    steps = []
    decode = model.decode
    model.decode = lambda *args: steps.append(1) or decode(*args)
    find(model, [[3]], [50], beam=2, alpha=0.0)
    assert len(steps) == 2


def test_an_output_cut_by_the_bound_says_so():
    table = {(3,) * n: {3: 1.0} for n in range(20)}
    for beam in (1, 3):
        best = find(Scripted(table, 6), [[3]], [7], beam=beam)[0][0]
        assert best.ids == [3] * 7 and not best.finished


def test_an_endless_sentence_does_not_hold_up_or_change_the_others():
    model = tiny(20, scale=1.6)
    short = find(model, [[3, 4]], [3], beam=3)[0]
    with_long = find(model, [[5, 6, 7], [3, 4], [9]], [60, 3, 5], beam=3)[1]
    assert with_long[0].ids == short[0].ids


def test_the_first_token_is_never_the_end():
    assert find(Scripted({(): {EOS: 0.99, 3: 0.01}}, 6), [[3]], [5])[0][0].ids == [3]


def test_padding_and_bos_are_never_produced():
    table = {(): {0: 0.6, BOS: 0.3, 3: 0.1}, (3,): {0: 0.5, 4: 0.4, BOS: 0.1}}
    for beam in (1, 2):
        assert find(Scripted(table, 6), [[3]], [5], beam=beam)[0][0].ids == [3, 4]


def test_length_penalty_is_that_of_the_paper():
    assert length_penalty(7, 0.6) == pytest.approx((12 / 6) ** 0.6)
    assert length_penalty(7, 0.0) == 1.0


@pytest.mark.parametrize(("beam", "n_best"), [(2, 3), (2, 0)])
def test_more_hypotheses_than_beams_are_refused(beam, n_best):
    with pytest.raises(ValueError, match=f"got {n_best} with a beam of {beam}"):
        find(tiny(6), [[3]], [5], beam=beam, n_best=n_best)
