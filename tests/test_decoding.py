"""The search: greedy = one beam, wide beam = exhaustive, batch of one = batch of many, the right stop."""

import itertools
import math

import pytest
import torch
from test_model import enlarged
from torch import Tensor

import decoding
from dataset import causal_mask, pad_source
from decoding import Hypothesis, Sentences, TokenScorer, Vocabulary, length_penalty, search
from incremental import GROUP, IncrementalDecoder, Linear, Moves, filled
from model import Transformer, build_transformer

BOS, EOS = 1, 2
VOCABULARY, ENDLESS = Vocabulary(BOS, EOS, (0, BOS)), Vocabulary(BOS, EOS, (0, BOS, EOS))


def tiny(vocab: int, seed: int = 0, scale: float = 2.0, **options) -> Transformer:
    """A model with random but opinionated weights."""
    torch.manual_seed(seed)
    model = enlarged(build_transformer(vocab, vocab, 12, 12, 16, 1, 2, 0.0, 32, **options)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(scale)
    return model


def find(
    model: Transformer,
    sources: list[list[int]],
    bounds: list[int],
    shortlists: list[Tensor] | None = None,
    vocabulary: Vocabulary = VOCABULARY,
    **options,
) -> list[list[Hypothesis]]:
    decoder = model if isinstance(model, Scripted) else IncrementalDecoder(model)
    batch = Sentences(*pad_source(sources), bounds, shortlists)
    [found] = search(decoder, [batch], vocabulary, **options)
    return found


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
    decoder = IncrementalDecoder(model)
    scorer = TokenScorer(decoder, VOCABULARY)
    with torch.inference_mode():
        cache = decoder.start_cache(decoder.encode(src, src_mask), src_mask)
        as_beam = decoding._beam(decoder, cache, scorer, bounds, 1, 0.0, 1)
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


@pytest.mark.parametrize("has_shortlists", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("sizes", [[4, 4, 4, 1], [2, 7, 1, 3], [1, 5], [6, 1]])
def test_where_a_translation_ends_the_next_begins_and_none_changes(sizes, positions, has_shortlists):
    model, generator = tiny(20, scale=1.6, positions=positions), torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 12, (sum(sizes),), generator=generator).tolist()
    sources = [torch.randint(3, 20, (n,), generator=generator).tolist() for n in lengths]
    bounds = torch.randint(1, 13, (sum(sizes),), generator=generator).tolist()
    lists = [torch.randperm(18, generator=generator)[:9] + 2 for _ in sources]
    lists = [torch.cat([ids, torch.tensor([EOS])]).unique() for ids in lists]
    decoder, starts = IncrementalDecoder(model), [0, *itertools.accumulate(sizes)]
    rows: list[int] = []
    step = decoder.step
    decoder.step = lambda tgt, cache: (rows.append(len(tgt)), step(tgt, cache))[1]
    batches = [
        Sentences(*pad_source(sources[a:b]), bounds[a:b], lists[a:b] if has_shortlists else None)
        for a, b in itertools.pairwise(starts)
    ]
    found = search(decoder, batches, VOCABULARY)
    assert [len(batch) for batch in found] == sizes
    together = [best for batch in found for [best] in batch]
    for i, best in enumerate(together):
        [[alone]] = find(model, [sources[i]], [bounds[i]], [lists[i]] if has_shortlists else None)
        assert (best.ids, best.finished) == (alone.ids, alone.finished)
        assert best.score == pytest.approx(alone.score, abs=1e-5)
    # Whenever two or more are at work and another waits, no row is idle.
    num_tokens = [len(best.ids) + best.finished for best in together]
    if sizes[0] > 1:
        assert sum(rows) == sum(num_tokens) and rows[: -max(num_tokens)] == [sizes[0]] * (
            len(rows) - max(num_tokens)
        )


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

    def output_layer(self, shortlist: None) -> Tensor:
        return filled(Linear(torch.zeros(self.vocab), torch.eye(self.vocab)).with_bias(), GROUP)

    def start_cache(
        self, memory: Tensor, src_mask: Tensor, beam: int = 1, may_fill: bool = False
    ) -> "ScriptedCache":
        return ScriptedCache(len(memory), beam)

    def step(self, tgt: Tensor, cache: "ScriptedCache") -> Tensor:
        if cache.length:
            pairs = zip(cache.prefixes, tgt.tolist(), strict=True)
            cache.prefixes = [[(*p, t) for p, t in zip(*pair, strict=True)] for pair in pairs]
        cache.length += 1
        probabilities = torch.zeros(*tgt.shape, self.vocab)
        for a, beams in enumerate(cache.prefixes):
            for w, prefix in enumerate(beams):
                for token, probability in self.table.get(prefix, {EOS: 1.0}).items():
                    probabilities[a, w, token] = probability
        return probabilities.log().clamp_min(-1e4)


class ScriptedCache:
    def __init__(self, num_sentences: int, beam: int) -> None:
        self.length = 0
        self.prefixes: list[list[tuple[int, ...]]] = [[()] * beam for _ in range(num_sentences)]

    def reorder(self, parents: Tensor) -> None:
        pairs = zip(self.prefixes, parents.tolist(), strict=True)
        self.prefixes = [[beams[w] for w in chosen] for beams, chosen in pairs]

    def keep(self, moves: Moves) -> None:
        self.prefixes = moves.of_list(self.prefixes)


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
    step = model.step
    model.step = lambda *args: steps.append(1) or step(*args)
    find(model, [[3]], [50], beam=2, alpha=0.0)
    assert len(steps) == 2


@pytest.mark.parametrize("beam", [1, 3])
def test_an_output_cut_by_the_bound_says_so(beam):
    [[best]] = find(tiny(20), [[3]], [7], vocabulary=ENDLESS, beam=beam)
    assert len(best.ids) == 7 and not best.finished


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


@pytest.mark.parametrize("vocab", [GROUP - 1, GROUP, 5 * GROUP + 3, 2_500])
@pytest.mark.parametrize("has_shortlist", [False, True])
def test_the_scorer_finds_what_plain_log_softmax_and_topk_find(vocab, has_shortlist):
    torch.manual_seed(vocab)
    model, x, scores = tiny(vocab), torch.randn(3, 4, 16), torch.randn(3, 4)
    shortlist = torch.arange(1, vocab, 2) if has_shortlist else None
    with torch.inference_mode():
        logits = model.project(x)  # (A, W, V)
        logits[..., [0, BOS]] = -math.inf
        if shortlist is not None:
            outside = torch.ones(vocab, dtype=torch.bool)
            outside[shortlist] = False
            logits[..., outside] = -math.inf
        total = (logits.log_softmax(-1) + scores.unsqueeze(-1)).flatten(1)
        expected, index = total.topk(8)
        shortlists = None if shortlist is None else [shortlist] * 3
        scorer = TokenScorer(IncrementalDecoder(model), VOCABULARY, shortlists)
        best, beam, token = scorer.top(x, scores, 8, first=[])
        gain, first = scorer.best(x[:, 0], first=[])
    torch.testing.assert_close(best, expected)
    assert torch.equal(beam, index // vocab) and torch.equal(token, index % vocab)
    best_gain, best_first = logits[:, 0].log_softmax(-1).max(-1)
    torch.testing.assert_close(gain, best_gain)
    assert torch.equal(first, best_first)


@pytest.mark.parametrize("beam", [1, 3])
def test_with_a_shortlist_a_sentence_produces_nothing_else_whatever_its_neighbours_may(beam):
    model = tiny(40, scale=1.6)
    lists = [torch.tensor([EOS, 5, 7, 11, 30]), torch.tensor([EOS, 6, 7, 12, 31, 33])]
    together = find(model, [[3, 4], [9, 8, 7]], [9, 9], beam=beam, shortlists=lists)
    for source, shortlist, found in zip([[3, 4], [9, 8, 7]], lists, together, strict=True):
        assert set(found[0].ids) <= set(shortlist.tolist()) - {EOS}
        [[alone]] = find(model, [source], [9], beam=beam, shortlists=[shortlist])
        assert alone.ids == found[0].ids and alone.score == pytest.approx(found[0].score, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_shortlist_of_everything_changes_nothing(beam):
    model = tiny(40, scale=1.6)
    everything = find(model, [[3, 4]], [9], beam=beam, shortlists=[torch.arange(40)])
    plain = find(model, [[3, 4]], [9], beam=beam)
    assert everything[0][0].ids == plain[0][0].ids
    assert everything[0][0].score == pytest.approx(plain[0][0].score, abs=1e-5)


def test_a_search_does_not_wait_for_an_ending_far_beyond_the_best():
    # [3] ends at once; 4 goes on for ever, at a cost that dividing by a great length would make up for.
    table = {(): {3: 0.7, 4: 0.3}, (3,): {EOS: 1.0}} | {(4,) * n: {4: 1.0} for n in range(1, 300)}
    model = Scripted(table, 6)
    steps = []
    step = model.step
    model.step = lambda *args: steps.append(1) or step(*args)
    assert find(model, [[3]], [250], beam=2, alpha=1.0)[0][0].ids == [3]
    assert len(steps) < 20


def test_an_ending_that_the_search_for_one_does_not_wait_for_is_not_the_best_of_several():  # fault 19
    table = {(): {3: 0.7, 4: 0.3}, (3,): {EOS: 1.0}} | {(4,) * n: {4: 1.0} for n in range(1, 60)}
    for n_best in (1, 2):
        [found] = find(Scripted(table, 6), [[3]], [250], beam=2, alpha=1.0, n_best=n_best)
        assert found[0].ids == [3] and found[0].finished


def test_long_searches_forget_what_no_beam_descends_from():
    decoder = IncrementalDecoder(tiny(20, seed=1, scale=1.3))
    sizes: list[tuple[int, int]] = []
    step = decoder.step
    decoder.step = lambda tgt, cache: (sizes.append((cache.length, cache.num_nodes)), step(tgt, cache))[1]
    search(decoder, [Sentences(*pad_source([[3, 4, 5], [6, 7]]), [120, 120])], ENDLESS, beam=4)
    assert len(sizes) >= 119
    assert all(nodes <= 2 * (length + 20 * 4) for length, nodes in sizes)
    assert any(nodes < 4 * length for length, nodes in sizes)


@pytest.mark.parametrize("beam", [1, 3])
def test_weights_whose_scores_are_not_finite_are_refused(beam):
    model = tiny(9)
    with torch.no_grad():
        model.decoder.layers[0].self_attention_block.w_qkv.weight.fill_(1e30)
    with pytest.raises(ValueError, match="scores are not finite: its weights are damaged"):
        find(model, [[3, 4]], [5], beam=beam)
