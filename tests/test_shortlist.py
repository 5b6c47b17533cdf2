"""Shortlists: learned alignments, what is always allowed, damaged files."""

import numpy as np
import pytest
import safetensors.torch
import torch

import shortlist
from shortlist import FILE, MAX_CANDIDATES, Shortlist
from tokenizer import EOS_ID

VOCAB = 400


def pairs(num=400, seed=0):
    """Source subword i is translated by i + 100, in another order; 50 becomes 150 in every sentence."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(num):
        ids = np.append(rng.integers(3, 50, 5), 50).astype(np.int32)
        rows.append((ids, rng.permutation(ids + 100).astype(np.int32)))
    return rows


def test_the_first_candidate_is_the_translation():
    learned = Shortlist.learn(pairs(), VOCAB)
    assert torch.equal(learned.candidates[3:50, 0], torch.arange(103, 150, dtype=torch.int32))


def test_frequent_subwords_come_in_the_order_of_their_frequency():
    frequent = Shortlist.learn(pairs(), VOCAB).frequent
    counts = np.bincount(np.concatenate([tgt for _, tgt in pairs()]))
    assert frequent[0] == 150 and (np.diff(counts[frequent]) <= 0).all()


def test_of_a_corpus_with_too_many_links_the_end_counts_as_much_as_the_beginning(monkeypatch):
    monkeypatch.setattr(shortlist, "MAX_LINKS", 2_000)
    first, last = [np.array([5], np.int32)] * 2, [np.array([6], np.int32), np.array([106], np.int32)]
    learned = Shortlist.learn([tuple(first)] * 5_000 + [tuple(last)] * 5_000, VOCAB)
    assert learned.candidates[6, 0] == 106


def test_a_sentence_may_use_candidates_frequent_ones_itself_and_the_end():
    candidates = torch.full((VOCAB, MAX_CANDIDATES), EOS_ID, dtype=torch.int32)
    candidates[7, :3] = torch.tensor([107, 207, 307])
    learned = Shortlist(candidates, torch.arange(200, 264, dtype=torch.int32))
    allowed = learned.of(np.array([7], np.int32), 1)
    assert allowed.tolist() == sorted([EOS_ID, 7, 107, *range(200, 264)])


def test_an_empty_sentence_has_a_shortlist():
    assert EOS_ID in Shortlist.learn(pairs(), VOCAB).of(np.array([], np.int32), 4)


def test_subwords_never_seen_have_no_candidate_but_the_end():
    assert (Shortlist.learn(pairs(), VOCAB).candidates[300] == EOS_ID).all()


def test_what_was_saved_is_loaded(tmp_path):
    learned = Shortlist.learn(pairs(), VOCAB)
    learned.save(tmp_path)
    for a, b in zip(learned, Shortlist.load(tmp_path, VOCAB), strict=True):
        assert torch.equal(a, b)


def test_a_folder_without_a_shortlist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{tmp_path} has no {FILE}, which --shortlist needs"):
        Shortlist.load(tmp_path, VOCAB)


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: {"candidates": t["candidates"][:-1], "frequent": t["frequent"]},
        lambda t: {"candidates": t["candidates"] + VOCAB, "frequent": t["frequent"]},
        lambda t: {"candidates": t["candidates"].long(), "frequent": t["frequent"]},
        lambda t: {"candidates": t["candidates"], "frequent": -t["frequent"]},
        lambda t: {"candidates": t["candidates"]},
        lambda t: t | {"more": t["frequent"].clone()},
    ],
)
def test_a_damaged_shortlist_is_refused(tmp_path, damage):
    tensors = Shortlist.learn(pairs(), VOCAB)._asdict()
    (tmp_path / FILE).write_bytes(safetensors.torch.save(damage(tensors)))
    with pytest.raises(ValueError, match=FILE):
        Shortlist.load(tmp_path, VOCAB)


def test_a_cut_file_is_refused(tmp_path):
    Shortlist.learn(pairs(), VOCAB).save(tmp_path)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-9])
    with pytest.raises(ValueError, match="damaged"):
        Shortlist.load(tmp_path, VOCAB)
