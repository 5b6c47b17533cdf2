"""Rows to ids to batches: shift, padding and masks, order, and what is left out."""

import io
import os
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dataset
from cleaning import SplitReport
from dataset import Batch, BatchSampler, causal_mask, check_sources, encode_split
from inputs import FeatureInput, pad_source
from tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer

IDS = st.lists(st.integers(3, 20), max_size=7)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a man on a bike", "ein Mann auf einem Rad"], 270)


def text_rows(pairs):
    def generate(pairs):
        yield from ({"src": src, "tgt": tgt, "row": row} for row, (src, tgt) in enumerate(pairs, 1))

    return datasets.Dataset.from_generator(generate, gen_kwargs={"pairs": tuple(pairs)})


def id_rows(lengths):
    """Rows whose ids all say which row they are of."""
    rows = {
        "src": [[3 + i] * src for i, (src, _) in enumerate(lengths)],
        "src_length": [src + 1 for src, _ in lengths],
        "tgt_ids": [[3 + i] * tgt for i, (_, tgt) in enumerate(lengths)],
        "row": [*range(1, len(lengths) + 1)],
    }
    lists = datasets.List(datasets.Value("int32"))
    length, row = datasets.Value("int32"), datasets.Value("int64")
    features = datasets.Features(src=lists, src_length=length, tgt_ids=lists, row=row)
    return datasets.Dataset.from_dict(rows, features=features)


def random_lengths(num_rows, seed=0, longest=30):
    return np.random.default_rng(seed).integers(1, longest, (num_rows, 2)).tolist()


def rows_in(batch):
    """Which rows of `id_rows` a batch holds, by their targets."""
    return (batch.tgt_out[:, 0] - 3).tolist()


# ---- masks and batches


def test_the_causal_mask_lets_each_position_see_itself_and_before():
    mask = causal_mask(3)
    assert mask.shape == (1, 1, 3, 3) and mask.dtype == torch.bool
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_a_source_ends_in_eos_and_its_mask_shows_the_real_tokens():
    src, mask = pad_source([[5], [6, 7, 8]])
    assert src.tolist() == [[5, EOS_ID, PAD_ID, PAD_ID], [6, 7, 8, EOS_ID]] and src.dtype == torch.int64
    assert mask.shape == (2, 1, 1, 4) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False, False], [True, True, True, True]]


def test_an_empty_source_still_has_a_token_to_look_at():
    src, mask = pad_source([[], [5]])
    assert src.tolist() == [[EOS_ID, PAD_ID], [5, EOS_ID]] and mask.any(-1).all()


def test_targets_are_shifted_by_one_between_bos_and_eos():
    batch = Batch.from_pairs([[3], [3]], [[5, 6], [7]])
    assert batch.tgt_in.tolist() == [[BOS_ID, 5, 6], [BOS_ID, 7, PAD_ID]]
    assert batch.tgt_out.tolist() == [[5, 6, EOS_ID], [7, EOS_ID, PAD_ID]]


def test_the_target_mask_is_causal_and_without_padding():
    batch = Batch.from_pairs([[3], [3]], [[5, 6], [7]])
    assert batch.tgt_mask.shape == (2, 1, 3, 3) and batch.tgt_mask.dtype == torch.bool
    assert batch.tgt_mask[0, 0].tolist() == causal_mask(3)[0, 0].tolist()
    assert batch.tgt_mask[1, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6))
def test_a_batch_holds_its_pairs_and_counts_their_target_tokens(pairs):
    sources, targets = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    batch = Batch.from_pairs(sources, targets)
    for i, (src, tgt) in enumerate(pairs):
        assert [t for t in batch.src[i].tolist() if t != PAD_ID] == [*src, EOS_ID]
        assert [t for t in batch.tgt_in[i].tolist() if t != PAD_ID] == [BOS_ID, *tgt]
        assert [t for t in batch.tgt_out[i].tolist() if t != PAD_ID] == [*tgt, EOS_ID]
    assert batch.num_tokens == sum(len(tgt) + 1 for tgt in targets) == int((batch.tgt_out != PAD_ID).sum())
    assert batch.tgt_mask.any(-1).all() and batch.src_mask.any(-1).all()
    assert not (batch.tgt_mask & ~causal_mask(batch.tgt_in.size(1))).any()
    assert ((batch.tgt_in != PAD_ID) == (batch.tgt_out != PAD_ID)).all()


def test_a_batch_needs_as_many_sources_as_targets():
    with pytest.raises(ValueError, match="as many sources as targets, got 2 and 1"):
        Batch.from_pairs([[3], [3]], [[3]])


def test_a_batch_moves_whole():
    batch = Batch.from_pairs([[3], [4, 5]], [[6, 7], [8]])
    moved = batch.to(torch.device("meta"))
    for name in ("src", "src_mask", "tgt_in", "tgt_out", "tgt_mask"):
        assert getattr(moved, name).device.type == "meta"
        assert getattr(moved, name).shape == getattr(batch, name).shape
    assert moved.num_tokens == batch.num_tokens


# ---- ids


def test_rows_become_the_ids_of_their_texts(tokenizer):
    pairs = [("a man", "ein Mann"), ("a bike", "ein Rad")]
    encoded = encode_split(text_rows(pairs), tokenizer, 99, SplitReport(2))
    assert encoded.column_names == ["src", "src_length", "tgt_ids", "row"]
    assert [(tokenizer.decode(row["src"]), tokenizer.decode(row["tgt_ids"])) for row in encoded] == pairs


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("length, is_kept", [(9, True), (10, True), (11, False), (100, False)])
def test_a_row_is_too_long_past_max_length_with_eos_counted(tokenizer, side, length, is_kept):  # fault 24
    # Digits are apart, so a number of n digits and the space before it have n + 1 tokens.
    long = ["a", "a"]
    long[side] = "7" * (length - 2)
    assert len(tokenizer.encode(long[side])) + 1 == length
    report = SplitReport(4)
    encoded = encode_split(
        text_rows([("a", "b"), tuple(long), ("b", "a"), ("c", "a")]), tokenizer, 10, report
    )
    assert encoded["row"][:] == ([1, 2, 3, 4] if is_kept else [1, 3, 4])
    assert report.dropped == ({} if is_kept else {"too long": (1, [2])})


def test_too_long_rows_are_counted_again_from_the_cache(tokenizer):  # fault 24
    rows = text_rows([("a", "b"), ("7" * 50, "b"), ("b", "7" * 50)])
    reports = [SplitReport(3) for _ in range(2)]
    for report in reports:
        encode_split(rows, tokenizer, 20, report)
    assert reports[0].dropped == reports[1].dropped == {"too long": (2, [2, 3])}


def test_ids_are_not_made_twice_for_the_same_tokenizer(tokenizer, tmp_path, monkeypatch):
    rows = text_rows([("a man", "ein Mann")])
    encode_split(rows, tokenizer, 99, SplitReport(2))
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    monkeypatch.setattr(again, "encode_batch", lambda texts: 1 / 0)
    assert tokenizer.decode(encode_split(rows, again, 99, SplitReport(2))[0]["src"]) == "a man"


def test_a_tokenizer_is_not_written_to_disk_to_know_it_again(tokenizer, monkeypatch):
    monkeypatch.setattr(Tokenizer, "save", lambda self, path: pytest.fail("saved"))
    assert len(encode_split(text_rows([("a man", "ein Mann")]), tokenizer, 99, SplitReport(2))) == 1


def test_the_cache_of_the_tests_is_their_own_and_goes_with_them(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path), "HF_HOME": "/home/mine", "HF_DATASETS_CACHE": "/home/mine"}
    code = (
        "import conftest, datasets, pathlib; cache = pathlib.Path(datasets.config.HF_DATASETS_CACHE);"
        "cache.mkdir(); print(cache.parent.parent)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}\n"), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", ["tokenizer", "max_length", "rows"])
def test_ids_are_made_anew_when_something_changes(tokenizer, change):
    pairs = [("a man", "ein Mann"), ("a man on a bike", "ein Mann")]
    encode_split(text_rows(pairs), tokenizer, 99, SplitReport(2))
    other = Tokenizer.train(["x"], 260) if change == "tokenizer" else tokenizer
    rows = text_rows([("a cat", "eine Katze"), *pairs[1:]] if change == "rows" else pairs)
    max_length = 14 if change == "max_length" else 99
    encoded = encode_split(rows, other, max_length, SplitReport(2))
    wanted = [other.encode(src) for src in rows["src"] if len(other.encode(src)) < max_length]
    assert list(encoded["src"]) == wanted


def test_ids_lie_in_the_cache_not_in_memory(tokenizer):
    encoded = encode_split(text_rows([("a man", "ein Mann")]), tokenizer, 99, SplitReport(2))
    assert encoded.cache_files


def test_when_every_row_is_too_long_no_batches_are_made(tokenizer):
    report = SplitReport(2)
    encoded = encode_split(text_rows([("a man", "ein Mann")] * 2), tokenizer, 2, report)
    assert report.kept == 0
    with pytest.raises(ValueError, match="--max-length"):
        BatchSampler(encoded, 100, seed=0)


# ---- batches of an epoch


@pytest.mark.parametrize("batch_tokens", [1, 20, 64, 10**6])
def test_an_epoch_has_every_row_once(batch_tokens):
    sampler = BatchSampler(id_rows(random_lengths(200)), batch_tokens, seed=0)
    assert sorted(row for batch in sampler.epoch(0) for row in rows_in(batch)) == list(range(200))


def test_a_batch_pairs_each_source_with_its_target():
    lengths = random_lengths(100)
    for batch in BatchSampler(id_rows(lengths), 64, seed=0).epoch(0):
        assert (batch.src[:, 0] == batch.tgt_out[:, 0]).all()
        assert ((batch.src != PAD_ID).sum(1) - 1).tolist() == [lengths[row][0] for row in rows_in(batch)]
        assert ((batch.tgt_out != PAD_ID).sum(1) - 1).tolist() == [lengths[row][1] for row in rows_in(batch)]


def test_a_batch_has_at_most_so_many_real_target_tokens():
    sampler = BatchSampler(id_rows(random_lengths(500)), 64, seed=0)
    assert max(batch.num_tokens for batch in sampler.epoch(0)) <= 64
    assert np.mean([batch.num_tokens for batch in sampler.epoch(0)]) > 48


def test_a_row_longer_than_a_batch_is_a_batch_of_its_own():
    batches = list(BatchSampler(id_rows([(3, 3), (3, 100), (3, 4)]), 20, seed=0).epoch(0))
    assert sorted(map(rows_in, batches)) == [[0, 2], [1]]


def test_long_sources_of_short_targets_do_not_pile_up():
    sampler = BatchSampler(id_rows([(50, 1)] * 100), 100, seed=0)
    assert max(batch.src.numel() for batch in sampler.epoch(0)) <= 400


def same(first, second):
    return len(first) == len(second) and all(
        torch.equal(a.src, b.src) and torch.equal(a.tgt_out, b.tgt_out)
        for a, b in zip(first, second, strict=True)
    )


def test_seed_and_epoch_fix_the_batches():
    rows = id_rows(random_lengths(200))
    epochs = [
        list(BatchSampler(rows, 64, seed).epoch(epoch)) for seed, epoch in [(0, 0), (0, 0), (1, 0), (0, 1)]
    ]
    assert same(epochs[0], epochs[1])
    assert not same(epochs[0], epochs[2]) and not same(epochs[0], epochs[3])


def test_asking_about_another_epoch_meanwhile_changes_nothing():
    sampler = BatchSampler(id_rows(random_lengths(200)), 64, seed=0)
    batches = sampler.epoch(0)
    first = [next(batches)]
    sampler.num_batches(1)
    assert same(first + list(batches), list(sampler.epoch(0)))


@pytest.mark.parametrize("start", [0, 1, 7])
def test_an_epoch_goes_on_from_any_batch_without_reading_those_before(start, monkeypatch):
    rows = id_rows(random_lengths(200))
    whole = list(BatchSampler(rows, 64, seed=0).epoch(3))
    made = []
    original = Batch.from_source
    monkeypatch.setattr(Batch, "from_source", lambda *args: made.append(1) or original(*args))
    assert same(list(BatchSampler(rows, 64, seed=0).epoch(3, start=start)), whole[start:])
    assert len(made) == len(whole) - start


def test_num_batches_is_the_number_of_batches():
    sampler = BatchSampler(id_rows(random_lengths(200)), 64, seed=0)
    for epoch in range(3):
        assert sampler.num_batches(epoch) == len(list(sampler.epoch(epoch)))


def test_rows_of_one_length_are_mixed_anew_in_every_epoch():
    sampler = BatchSampler(id_rows([(5, 5)] * 100), 60, seed=0)
    first, second = ({frozenset(rows_in(batch)) for batch in sampler.epoch(epoch)} for epoch in range(2))
    assert len(first & second) < 2


def test_batches_do_not_come_in_order_of_length():
    lengths = [batch.tgt_in.size(1) for batch in BatchSampler(id_rows(random_lengths(2_000)), 64, 0).epoch(0)]
    assert 0.4 < np.mean(np.diff(lengths) > 0) < 0.6


def test_the_padding_share_is_that_of_the_batches():
    sampler = BatchSampler(id_rows(random_lengths(500)), 128, seed=0)
    batches = list(sampler.epoch(2))
    for side, share in zip(("src", "tgt_out"), sampler.padding(2), strict=True):
        tensors = [getattr(batch, side) for batch in batches]
        real = sum(int((tensor != PAD_ID).sum()) for tensor in tensors)
        assert share == pytest.approx(1 - real / sum(tensor.numel() for tensor in tensors))


def test_captions_are_padded_by_two_percent_on_the_target_and_eight_on_the_source_side_at_most():
    # Lengths like those of Multi30k with 6,000 subwords: mean 15, the other side a little different.
    draw = np.random.default_rng(0)
    tgt = np.clip(draw.lognormal(2.65, 0.35, 29_000), 3, 60).astype(int)
    src = np.maximum(tgt + draw.integers(-4, 4, len(tgt)), 2)
    lists = [np.zeros(n, np.int32) for n in tgt], [np.zeros(n, np.int32) for n in src]
    columns = {"tgt_ids": lists[0], "src": lists[1], "src_length": (src + 1).astype(np.int32)}
    rows = datasets.Dataset.from_dict(columns)
    for batch_tokens in (1_024, 4_096):
        padding = BatchSampler(rows, batch_tokens, seed=0).padding(0)
        assert padding.tgt < 0.02 and padding.src < 0.08


def test_selected_rows_give_batches_of_themselves():
    sampler = BatchSampler(id_rows(random_lengths(50)).select([30, 10, 20]), 10**6, seed=0)
    assert sorted(rows_in(next(sampler.epoch(0)))) == [10, 20, 30]


def test_rows_in_many_chunks_are_found():
    parts = [id_rows([(2, 3)] * n) for n in (3, 1, 5)]
    rows = datasets.concatenate_datasets(parts)
    assert rows.data.column("tgt_ids").num_chunks > 1
    batch = next(BatchSampler(rows, 10**6, seed=0).epoch(0))
    assert sorted(rows_in(batch)) == sorted([0, 1, 2, 0, 0, 1, 2, 3, 4])


def test_importing_dataset_imports_neither_datasets_nor_pillow():
    code = "import sys, dataset; assert not {'datasets', 'pyarrow', 'pandas', 'PIL'} & set(sys.modules)"
    root = Path(dataset.__file__).parent
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


# ---- sources other than text


def feature_rows(shapes, split="train"):
    cells = []
    for shape in shapes:
        file = io.BytesIO()
        np.save(file, np.ones(shape, np.float32))
        cells.append(file.getvalue())
    rows = {"src": cells, "tgt": ["a man"] * len(cells), "row": [*range(1, len(cells) + 1)]}
    features = datasets.Features(
        src=datasets.Value("large_binary"), tgt=datasets.Value("string"), row=datasets.Value("int64")
    )
    return datasets.Dataset.from_dict(rows, features=features)


FEATURES = FeatureInput(2, np.zeros(3, np.float32), np.ones(3, np.float32))


def test_frames_are_counted_as_tokens_and_fill_batches(tokenizer, tmp_path):
    rows = feature_rows([(8, 3), (8, 3), (41, 3), (40, 3)])
    report = SplitReport(4)
    encoded = encode_split(rows, tokenizer, 20, report, FEATURES)
    assert encoded["src_length"][:] == [4, 4, 20]
    assert report.dropped == {"too long": (1, [3])}
    # 10 target tokens allow 40 of the source: all but the last row fit together.
    batches = list(BatchSampler(encoded, 4 * len(tokenizer.encode("a man")), 0, FEATURES).epoch(0))
    assert sorted(batch.src.size(0) for batch in batches) == [3]
    small = list(BatchSampler(encoded, 6, 0, FEATURES).epoch(0))
    assert max(int(batch.src_mask.sum()) for batch in small) <= 24


@pytest.mark.parametrize(
    "shape, longest, message",
    [
        ((4, 5), None, "test, row 2: features: 4 × 5, but this model reads frames × 3"),
        ((50, 3), 20, "test, row 2: 25 tokens, but --max-length is 20 and positions are learned; cut it"),
    ],
)
def test_a_source_that_cannot_be_read_is_named_before_training(shape, longest, message):
    rows = feature_rows([(4, 3), shape])
    with pytest.raises(ValueError, match=message):
        check_sources(rows, FEATURES, "test", longest)
    if longest is None:
        with pytest.raises(ValueError, match=message.replace("test", "train")):
            encode_split(rows, Tokenizer.train(["a"], 260), 99, SplitReport(2), FEATURES)


def test_values_far_from_the_training_rows_are_named_by_split_and_row():
    rows = feature_rows([(4, 3)] * 2)
    narrow = FeatureInput(2, np.zeros(3, np.float32), np.array([1, 1, 1e-20], np.float32))
    with pytest.raises(ValueError, match="validation, row 1: features: frame 1, channel 3 is 1, but"):
        check_sources(rows, narrow, "validation", None)
    with pytest.raises(ValueError, match="train, row 1: features: frame 1, channel 3 is 1, but"):
        encode_split(rows, Tokenizer.train(["a"], 260), 99, SplitReport(2), narrow)
