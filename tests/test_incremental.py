"""Decoding step by step: equal to decoding whole, with any beams, reorders and dropped sentences."""

import pytest
import torch
from test_model import enlarged
from torch import Tensor

from dataset import causal_mask, pad_source
from incremental import IncrementalDecoder, Moves
from model import Transformer, build_transformer


def tiny(**options) -> Transformer:
    torch.manual_seed(0)
    return enlarged(build_transformer(11, 11, 12, 12, 16, 2, 4, 0.0, 32, **options)).eval()


def ids(*shape: int) -> Tensor:
    return torch.randint(3, 11, shape, generator=torch.Generator().manual_seed(1))


def padded(lengths: list[int]) -> tuple[Tensor, Tensor]:
    return pad_source([ids(n).tolist() for n in lengths])


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_step_by_step_logits_equal_teacher_forced_logits(norm, positions, activation):  # fault 4
    model = tiny(norm=norm, positions=positions, activation=activation, tie_embeddings=True, share_vocab=True)
    src, src_mask = padded([7, 3, 5])
    tgt = ids(3, 9)
    expected = model(src, src_mask, tgt, causal_mask(9))
    decoder = IncrementalDecoder(model)
    cache = decoder.start_cache(model.encode(src, src_mask), src_mask)
    steps = [model.project(decoder.step(tgt[:, t : t + 1], cache)) for t in range(9)]
    torch.testing.assert_close(torch.cat(steps, 1), expected, atol=1e-5, rtol=1e-5)


def test_beams_share_one_copy_of_their_sentence():
    model = tiny()
    src, src_mask = padded([4, 6])
    tgt = ids(6, 4)  # 3 beams of 2 sentences
    memory = model.encode(src, src_mask)
    decoder = IncrementalDecoder(model)
    cache = decoder.start_cache(memory, src_mask, 3)
    steps = [decoder.step(tgt[:, t].view(2, 3), cache).view(6, 1, -1) for t in range(4)]
    rows = torch.tensor([0, 0, 0, 1, 1, 1])
    expected = model.decode(memory[rows], src_mask[rows], tgt, causal_mask(4))
    torch.testing.assert_close(torch.cat(steps, 1), expected, atol=1e-5, rtol=1e-5)


def test_reordered_beams_go_on_from_their_parents():
    model = tiny()
    src, src_mask = padded([5])
    memory = model.encode(src, src_mask)
    tgt = ids(2, 4)
    decoder = IncrementalDecoder(model)
    cache = decoder.start_cache(memory, src_mask, 2)
    for t in range(3):
        decoder.step(tgt[None, :, t], cache)
    cache.reorder(torch.tensor([[1, 0]]))
    step = decoder.step(tgt[None, [1, 0], 3], cache)
    expected = model.decode(memory.expand(2, -1, -1), src_mask, tgt[[1, 0]], causal_mask(4))[:, 3]
    torch.testing.assert_close(step[0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_cache_through_any_reorders_and_dropped_sentences_equals_none(seed):
    """Random parents and finished sentences: each beam reads as its own history would, decoded whole."""
    model, generator = tiny(), torch.Generator().manual_seed(seed)
    A, W, steps = 3, 4, 14
    src, src_mask = padded([4, 6, 3])
    memory = model.encode(src, src_mask)
    decoder = IncrementalDecoder(model)
    cache = decoder.start_cache(memory, src_mask, W)
    sentences, history = torch.arange(A), torch.empty(A, W, 0, dtype=torch.int64)
    for step in range(steps):
        token = torch.randint(3, 11, (len(sentences), W), generator=generator)
        history = torch.cat([history, token.unsqueeze(2)], 2)
        decoded = decoder.step(token, cache)
        rows = sentences.repeat_interleave(W)
        whole = model.decode(memory[rows], src_mask[rows], history.flatten(0, 1), causal_mask(step + 1))
        torch.testing.assert_close(decoded.flatten(0, 1), whole[:, -1], atol=1e-5, rtol=1e-5)
        if step in (4, 9):
            moves = Moves.of([0, 2] if step == 4 else [1], sentences.device)
            cache.keep(moves)
            sentences, history = moves(sentences), moves(history)
        # Few parents, so that most nodes lose their last descendant.
        parents = torch.randint(0, 2, (len(sentences), W), generator=generator)
        cache.reorder(parents)
        history = history.gather(1, parents.unsqueeze(2).expand_as(history))
    assert cache.num_nodes < W * steps / 2


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_sentences_that_begin_in_the_places_of_others_read_as_if_alone(positions):
    """Shorter and longer sources come in at three moments, and some rows are dropped; each is decoded whole."""
    model, generator = tiny(positions=positions), torch.Generator().manual_seed(0)
    decoder = IncrementalDecoder(model)
    lengths = {0: [4, 6, 3, 5], 2: [2, 5], 3: [9, 7, 1], 8: [1]}  # of those that begin before a step
    begins = {2: [3, 0], 3: [1, 0, 2], 8: [2]}  # and where
    src, src_mask = padded(lengths[0])
    memory = list(zip(model.encode(src, src_mask), src_mask, strict=True))
    cache = decoder.start_cache(model.encode(src, src_mask), src_mask)
    history: list[list[int]] = [[] for _ in memory]
    for step in range(12):
        if step in begins:
            src, src_mask = padded([8, *lengths[step]])  # the first of these is never begun
            waiting = decoder.start_cache(model.encode(src, src_mask), src_mask, may_fill=True)
            cache.fill(torch.tensor(begins[step]), waiting, 1)
            new = list(zip(model.encode(src, src_mask), src_mask, strict=True))[1:]
            for place, row in zip(begins[step], new, strict=True):
                memory[place], history[place] = row, []
        if step == 10:
            moves = Moves.of([1, 3], torch.device("cpu"))
            cache.keep(moves)
            memory, history = moves.of_list(memory), moves.of_list(history)
        token = torch.randint(3, 11, (len(memory), 1), generator=generator)
        decoded = decoder.step(token, cache)
        for row, (encoded, mask) in enumerate(memory):
            history[row].append(int(token[row]))
            said = torch.tensor([history[row]])
            whole = model.decode(encoded[None], mask[None], said, causal_mask(said.size(1)))
            torch.testing.assert_close(decoded[row, 0], whole[0, -1], atol=1e-5, rtol=1e-5)
    assert cache.num_nodes == max(map(len, history)) == 10


@pytest.mark.parametrize("alive", [[0, 1, 2, 3, 4], [1, 4], [0, 3, 4], [2], [0, 1]])
def test_rows_that_go_on_fill_the_places_of_those_that_end(alive):
    rows = list(range(10, 15))
    moves = Moves.of(alive, torch.device("cpu"))
    moved = moves(torch.tensor(rows).repeat(2, 1).t().contiguous())  # (5, 2)
    assert moved[:, 0].tolist() == moves.of_list(rows) and torch.equal(moved[:, 0], moved[:, 1])
    assert sorted(moved[:, 0].tolist()) == [rows[i] for i in alive]
    stayed = [i for i in alive if i < len(alive)]
    assert [moved[i, 0] for i in stayed] == [rows[i] for i in stayed]


def test_a_shortlist_gives_the_columns_of_the_whole_projection():
    model = tiny()
    x, shortlist = torch.randn(2, 16), torch.tensor([2, 5, 9])
    logits = torch.cat([x, torch.ones(2, 1)], 1) @ IncrementalDecoder(model).output_layer(shortlist)
    torch.testing.assert_close(logits[:, :3], model.project(x)[:, shortlist])
    assert (logits[:, 3:] == -torch.inf).all()
