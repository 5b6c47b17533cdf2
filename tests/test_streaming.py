"""A corpus as a stream, and several corpora: the same rows, exact positions, shares, clean splits."""

import itertools
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from test_train import SMALL, assert_equal_runs, killed_at, words, write_copy_corpus

import checkpoint
import corpus
import model_folder
import origins
import phrasebook
import readers
import strict_json
import train
from checkpoint import TrainState
from config import Config, DataConfig, TrainConfig
from corpus import Mixture
from dataset import BatchSampler, encode_split
from inputs import TextInput
from learner import Learner
from reporting import write_card
from streaming import LaneSettings, StreamSampler, describe, rows_read
from tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["one two three four five six 0123456789"], 280)


def pairs(first, last):
    """Numbered pairs of one to eight words."""
    rng = random.Random(first)
    return [(f"{i} {words(rng, 7)}", f"{i} {words(rng, 7)}") for i in range(first, last)]


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"en": en, "de": de}) + "\n" for en, de in rows))
    return path


@pytest.fixture
def folder(tmp_path):
    """500 training rows beside a validation and a test split."""
    write(tmp_path / "c" / "train.jsonl", pairs(0, 500))
    write(tmp_path / "c" / "validation.jsonl", pairs(1_000, 1_010))
    write(tmp_path / "c" / "test.jsonl", pairs(2_000, 2_010))
    return tmp_path / "c"


def config_of(*paths, **settings):
    return DataConfig(dataset=tuple(map(str, paths)), src="en", tgt="de", streaming=True, **settings)


def sampler_of(config, tokenizer, lanes=1, rows=100, rank=0, world_size=1, max_length=256):
    splits = corpus.read_splits(config)
    settings = LaneSettings(splits, tokenizer, TextInput(tokenizer), None, max_length, rows, 200, 1)
    return StreamSampler(settings, lanes, rank, world_size)


def sources(tokenizer, batch):
    return [tokenizer.decode([i for i in row.tolist() if i > 2]) for row in batch.src]


def first_epoch(sampler, tokenizer):
    """Source sentences of all batches whose block is of the first pass of every lane."""
    state, seen = TrainState(), []
    for group in sampler.steps(state):
        if state.epoch:
            return seen
        seen += [text for batch in group for text in sources(tokenizer, batch)]


def same(a, b):
    return all(
        torch.equal(x.src, y.src) and torch.equal(x.tgt_out, y.tgt_out) for x, y in zip(a, b, strict=True)
    )


def test_an_epoch_has_each_row_once(folder, tokenizer):
    seen = first_epoch(sampler_of(config_of(folder), tokenizer), tokenizer)
    assert sorted(seen) == sorted(en for en, _ in pairs(0, 500))
    assert seen != [en for en, _ in pairs(0, 500)]


@pytest.mark.parametrize("world_size", [1, 2])
def test_lanes_and_ranks_share_the_rows_out(folder, tokenizer, world_size):
    owner = {}
    for rank in range(world_size):
        sampler = sampler_of(config_of(folder), tokenizer, 4, 50, rank, world_size)
        for group in itertools.islice(sampler.steps(TrainState()), 200):
            for lane, batch in zip(range(rank, 4, world_size), group, strict=True):
                for text in sources(tokenizer, batch):
                    assert owner.setdefault(text, lane) == lane
    assert owner.keys() == {en for en, _ in pairs(0, 500)}


def test_two_ranks_give_the_micro_batches_of_one(folder, tokenizer):
    def steps(rank, world_size):
        sampler = sampler_of(config_of(folder), tokenizer, 4, 50, rank, world_size)
        return list(itertools.islice(sampler.steps(TrainState()), 30))

    alone, first, second = steps(0, 1), steps(0, 2), steps(1, 2)
    for whole, a, b in zip(alone, first, second, strict=True):
        assert same(whole, [a[0], b[0], a[1], b[1]])


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("num_corpora", [1, 2])
def test_a_resumed_stream_gives_bit_for_bit_the_batches_that_would_have_come(
    folder, tmp_path, tokenizer, lanes, num_corpora
):
    other = write(tmp_path / "other.jsonl", pairs(5_000, 5_070))
    config = config_of(*[folder, other][:num_corpora], weights=(3.0, 1.0) if num_corpora > 1 else None)
    through = list(itertools.islice(sampler_of(config, tokenizer, lanes).steps(TrainState()), 150))
    for stop in (0, 1, 13, 62, 100):
        state = TrainState()
        before = sampler_of(config, tokenizer, lanes).steps(state)
        for _ in range(stop):
            next(before)
        state = TrainState(stream=json.loads(json.dumps(state.stream)))
        after = sampler_of(config, tokenizer, lanes).steps(state)
        assert all(same(next(after), through[i]) for i in range(stop, 150)), stop


def test_a_position_is_small_and_holds_no_row(folder, tokenizer):
    state = TrainState()
    for _ in itertools.islice(sampler_of(config_of(folder), tokenizer, 2).steps(state), 40):
        pass
    text = json.dumps(state.stream)
    assert len(text) < 2_000 and "three" not in text


def test_a_streamed_run_killed_and_resumed_equals_one_that_ran_through(tmp_path, monkeypatch):  # fault 16
    path = write_copy_corpus(tmp_path / "copy.jsonl", 300)
    monkeypatch.chdir(tmp_path)
    given = ["--dataset", str(path), "--src", "en", "--tgt", "de", "--streaming", "--buffer", "70"]
    given += [*SMALL, "--max-steps", "30", "--accumulate", "2"]
    train.main([*given, "--out", "through"])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Learner, "step", killed_at(17))
        train.main([*given, "--out", "resumed"])
    train.main(["--resume", "resumed"])
    assert_equal_runs(Path("through"), Path("resumed"))


def test_a_broken_row_far_down_a_stream_costs_no_step(tmp_path, monkeypatch):
    path = write_copy_corpus(tmp_path / "copy.jsonl", 300)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corpus, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(readers, "PEEK", 50)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:250], b"\xff" + lines[250], *lines[251:]]))
    given = ["--dataset", str(path), "--src", "en", "--tgt", "de", "--streaming", "--buffer", "70"]
    real, taken = Learner.step, []
    monkeypatch.setattr(Learner, "step", lambda *given: taken.append(given[-1]) or real(*given))
    with pytest.raises(
        ValueError, match=r"line 251: byte 0xff .*; last good checkpoint: run/checkpoints/0000"
    ):
        train.main([*given, *SMALL, "--max-steps", "500", "--validate-every", "400", "--out", "run"])
    steps = [json.loads(line)["step"] for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert checkpoint.load_state(Path("run"))[0].step == len(taken) >= steps[-1] >= 5


def test_a_stream_is_cleaned_like_a_corpus_that_is_read_before(folder, tokenizer):
    bad = [("", "x"), ("only one", " "), ("a" * 300, "b" * 21), pairs(1_000, 1_001)[0], pairs(0, 1)[0]]
    write(folder / "train.jsonl", [*pairs(0, 50), *bad, ("  e\u0301 ", "\te")])
    config = config_of(folder)
    splits = corpus.read_splits(DataConfig(dataset=str(folder), src="en", tgt="de"))
    sampler = sampler_of(config, tokenizer)
    assert sorted(first_epoch(sampler, tokenizer)) == sorted(splits["train"]["src"])
    state = TrainState()
    next(_ for _ in sampler.steps(state) if state.epoch == 2)
    report, expected = rows_read(state), splits.report["train"]
    counts = {reason: count for reason, (count, _) in report.dropped.items()}
    # A block ends where the corpus does, and that of the third pass is read already.
    assert counts == {reason: 3 * count for reason, (count, _) in expected.dropped.items()}
    assert report.read == 3 * expected.read


def test_rows_that_are_too_long_are_left_out_and_counted(folder, tokenizer):
    write(folder / "train.jsonl", [*pairs(0, 50), ("six " * 40, "six " * 40)])
    sampler = sampler_of(config_of(folder), tokenizer, max_length=60)
    state = TrainState()
    for _ in itertools.takewhile(lambda _: state.epoch < 1, sampler.steps(state)):
        pass
    assert rows_read(state).dropped["too long"] == (2, [])  # the second pass has begun


def test_duplicates_are_dropped_within_a_block_and_kept_across_blocks(folder, tokenizer):
    write(folder / "train.jsonl", [*pairs(0, 50), *pairs(0, 50)])
    assert len(first_epoch(sampler_of(config_of(folder), tokenizer, rows=100), tokenizer)) == 50
    assert len(first_epoch(sampler_of(config_of(folder), tokenizer, rows=50), tokenizer)) == 100


def test_splits_that_are_missing_come_from_the_first_rows_and_are_never_learned_from(
    tmp_path, tokenizer, monkeypatch
):
    monkeypatch.setattr(corpus, "SAMPLE_ROWS", 200)
    rows = pairs(0, 500)
    path = write(tmp_path / "c.jsonl", [*rows, *rows[:200]])  # again, beyond the sample
    splits = corpus.read_splits(config_of(path))
    held_out = {*splits["validation"]["src"], *splits["test"]["src"]}
    assert len(held_out) == 20 and held_out <= {en for en, _ in rows[:200]}
    seen = first_epoch(sampler_of(config_of(path), tokenizer), tokenizer)
    assert not held_out & {*seen} and len({*seen}) == 480


def test_evaluation_scores_the_split_that_training_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "SAMPLE_ROWS", 200)
    config = config_of(write(tmp_path / "c.jsonl", pairs(0, 500)))
    assert corpus.read_split(config, "test")[0]["src"][:] == corpus.read_splits(config)["test"]["src"][:]


def parquet_files(path, rows):
    for part in range(2):
        table = [{"translation": {"en": en, "de": de}} for en, de in rows[part::2]]
        datasets.Dataset.from_list(table).to_parquet(path / f"train-{part}.parquet")


@pytest.mark.parametrize("kind", ["text", "csv", "parquet", "hub", "saved"])
def test_every_kind_of_corpus_can_be_streamed_and_resumed(tmp_path, tokenizer, monkeypatch, kind):
    rows = pairs(0, 60)
    path, table = tmp_path / "c", datasets.Dataset.from_list([{"en": en, "de": de} for en, de in rows])
    path.mkdir()
    if kind == "text":
        path = path / "letters"
        for side, suffix in ((0, "en"), (1, "de")):
            Path(f"{path}.{suffix}").write_text("".join(f"{pair[side]}\n" for pair in rows))
    elif kind == "csv":
        table.to_csv(path / "train.csv")
    elif kind == "saved":
        table.save_to_disk(path)
    else:
        parquet_files(path, rows)
    config = config_of(path)
    if kind == "hub":
        real = datasets.load_dataset
        monkeypatch.setattr(datasets, "load_dataset", lambda _, config, **kw: real(str(path), **kw))
        builder = datasets.load_dataset_builder
        monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: builder(str(path)))
        config = config_of("someone/corpus")
    stream = corpus.read_splits(config).streams[0]
    given = [(row["src"], row["tgt"]) for row in stream.rows]
    assert sorted(given) == sorted(rows)
    assert stream.num_rows == (None if kind == "hub" else 61 if kind == "csv" else 60)  # a header is a line
    through = list(itertools.islice(sampler_of(config, tokenizer, rows=14).steps(TrainState()), 40))
    for stop in (3, 17):
        state = TrainState()
        list(itertools.islice(sampler_of(config, tokenizer, rows=14).steps(state), stop))
        after = sampler_of(config, tokenizer, rows=14).steps(TrainState(stream=state.stream))
        assert all(same(next(after), through[i]) for i in range(stop, 40))


def of_unknown_size(monkeypatch):
    """Streams that do not tell how many rows they have, as some of the Hub."""
    find = origins.find_splits

    def without(config):
        return {
            split: replace(reader, stream=lambda reader=reader: replace(reader.stream(), num_rows=None))
            for split, reader in find(config).items()
        }

    monkeypatch.setattr(origins, "find_splits", without)


def test_a_stream_of_unknown_length_says_so(folder, monkeypatch):
    of_unknown_size(monkeypatch)
    splits = corpus.read_splits(config_of(folder))
    assert not splits.is_counted
    assert "assumed to be 1,000,000 since the corpus does not say" in describe(splits, config_of(folder))[0]


def test_a_mixture_with_a_stream_of_unknown_length_needs_weights(folder, tmp_path, monkeypatch):
    of_unknown_size(monkeypatch)
    other = write(tmp_path / "other.jsonl", pairs(500, 600))
    with pytest.raises(ValueError, match="does not say how many rows it has; give each corpus' share: --w"):
        corpus.read_splits(config_of(folder, other))
    assert corpus.read_splits(config_of(folder, other, weights=(1.0, 2.0))).mixture.shares == (1 / 3, 2 / 3)


def test_the_embedded_corpus_can_be_streamed():
    rows = origins.find_splits(DataConfig(streaming=True))["train"].stream().rows
    given = [{"en": row["src"], "fr": row["tgt"]} for row in itertools.islice(rows, 20)]
    assert given == list(itertools.islice(phrasebook.generate("train", seed=0), 20))


def test_a_file_of_one_array_cannot_be_streamed(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps([{"en": "a", "de": "b"}]))
    with pytest.raises(ValueError, match=r"c\.json is one JSON array, .* leave --streaming out"):
        corpus.read_splits(config_of(tmp_path / "c.json"))


def test_text_files_of_different_lengths_are_refused_before_the_stream_begins(tmp_path):
    for suffix, num in (("en", 5), ("de", 6)):
        (tmp_path / f"c.{suffix}").write_text("x\n" * num)
    with pytest.raises(ValueError, match="has 5 lines and .* has 6"):
        corpus.read_splits(config_of(tmp_path / "c"))


def test_fewer_rows_than_lanes_are_refused(folder, tokenizer):
    write(folder / "train.jsonl", pairs(0, 3))
    with pytest.raises(ValueError, match="too few rows to be shared out; leave --streaming out"):
        sampler_of(config_of(folder), tokenizer, lanes=4)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_file_that_changes_while_it_is_read_is_noticed(folder, tokenizer, is_gone):
    steps = sampler_of(config_of(folder), tokenizer, rows=20).steps(TrainState())
    next(steps)
    (folder / "train.jsonl").unlink()
    if not is_gone:
        write(folder / "train.jsonl", pairs(1_000, 1_500))
    with pytest.raises(
        ValueError, match="train.jsonl has changed while it was read; restore it and go on with"
    ):
        list(itertools.islice(steps, 100))


def test_files_that_change_places_while_they_are_read_are_noticed(folder, tokenizer):
    (folder / "train.jsonl").unlink()
    one, other = (write(folder / f"train-{i}.jsonl", pairs(250 * i, 250 * (i + 1))) for i in range(2))
    steps = sampler_of(config_of(folder), tokenizer, rows=20).steps(TrainState())
    next(steps)
    one.rename(folder / "aside"), other.rename(one), (folder / "aside").rename(other)
    with pytest.raises(ValueError, match=r"train-0\.jsonl has changed while it was read"):
        list(itertools.islice(steps, 100))


def test_a_stream_counts_the_pairs_that_are_left_of_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "SAMPLE_ROWS", 200)
    rows = pairs(0, 400)
    path = write(tmp_path / "c.jsonl", [(en, de if i % 2 else "") for i, (en, de) in enumerate(rows)])
    splits = corpus.read_splits(config_of(path))
    kept = splits.report["train"].kept
    assert 0 < kept < 100 and splits.num_pairs == 2 * kept


def test_a_file_that_is_only_touched_goes_on_and_is_read_again_once(folder, tokenizer, monkeypatch):
    steps = sampler_of(config_of(folder), tokenizer, rows=20).steps(TrainState())
    next(steps)
    os.utime(folder / "train.jsonl", (1, 1))
    real, read = readers.glimpse, []
    monkeypatch.setattr(readers, "glimpse", lambda path: read.append(path) or real(path))
    assert len(list(itertools.islice(steps, 20))) == 20
    assert read == [folder / "train.jsonl"]


def test_a_stream_without_a_row_worth_learning_from_is_refused(folder, tokenizer):
    with pytest.raises(ValueError, match="no training row is left"):
        next(sampler_of(config_of(folder), tokenizer, max_length=2).steps(TrainState()))


# ---- several corpora


def read_mixed(*paths, **settings):
    return corpus.read_splits(DataConfig(dataset=tuple(map(str, paths)), src="en", tgt="de", **settings))


def test_a_training_row_of_one_corpus_that_another_scores_is_dropped(folder, tmp_path):
    extra = write(tmp_path / "extra.jsonl", [*pairs(7_000, 7_020), *pairs(2_000, 2_003)])
    splits = read_mixed(folder, extra)
    assert splits.report["train"].dropped["copy of a test row"] == (3, [521, 522, 523])
    assert len(splits["train"]) == 520 and splits.mixture.ends == (500, 523)


def test_without_weights_every_row_of_every_corpus_comes_once(folder, tmp_path, tokenizer):
    splits = read_mixed(folder, write(tmp_path / "extra.jsonl", pairs(7_000, 7_020)))
    rows = encode_split(splits["train"], tokenizer, 256, splits.report["train"])
    batches = list(BatchSampler(rows, 200, 1, mixture=splits.mixture).epoch(0))
    assert sum(len(batch.src) for batch in batches) == 520
    assert all(sum(batch.of_corpora) == batch.num_tokens for batch in batches)


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({"weights": (3.0, 1.0)}, [0.75, 0.25]),
        ({"temperature": 2.0}, [2 / 3, 1 / 3]),
        ({"temperature": 1.0}, [0.8, 0.2]),
    ],
)
def test_corpora_have_the_shares_of_their_weights_or_temperature(tmp_path, tokenizer, settings, shares):
    paths = []
    for name, (first, last) in {"a": (0, 400), "b": (1_000, 1_100)}.items():
        write(tmp_path / name / "train.jsonl", pairs(first, last))
        write(tmp_path / name / "validation.jsonl", pairs(first + 5_000, first + 5_010))
        write(tmp_path / name / "test.jsonl", pairs(first + 7_000, first + 7_010))
        paths.append(tmp_path / name)
    splits = read_mixed(*paths, **settings)
    rows = encode_split(splits["train"], tokenizer, 256, splits.report["train"])
    sampler = BatchSampler(rows, 200, 1, mixture=splits.mixture)
    texts = [text for batch in sampler.epoch(0) for text in sources(tokenizer, batch)]
    of_a = sum(int(text.split()[0]) < 1_000 for text in texts) / len(texts)
    assert of_a == pytest.approx(shares[0], abs=0.01) and len(texts) == 500
    streamed = sampler_of(config_of(*paths, **settings), tokenizer, rows=100).steps(TrainState())
    some = [text for group in itertools.islice(streamed, 200) for text in sources(tokenizer, group[0])]
    assert np.mean([int(text.split()[0]) < 1_000 for text in some]) == pytest.approx(shares[0], abs=0.03)


def test_every_row_of_a_weighted_corpus_comes_once_before_any_comes_again(tokenizer):
    rows = datasets.Dataset.from_dict(
        {
            "src": [[3 + i] for i in range(100)],
            "src_length": [2] * 100,
            "tgt_ids": [[3 + i] for i in range(100)],
            "row": [*range(1, 101)],
        },
        features=datasets.Features(
            src=datasets.List(datasets.Value("int32")),
            src_length=datasets.Value("int32"),
            tgt_ids=datasets.List(datasets.Value("int32")),
            row=datasets.Value("int64"),
        ),
    )
    sampler = BatchSampler(rows, 50, 1, mixture=Mixture(("a", "b"), (90, 100), (0.5, 0.5)))
    epochs = [
        [i for batch in sampler.epoch(epoch) for i in (batch.tgt_out[:, 0] - 3).tolist()]
        for epoch in range(2)
    ]
    of_large = [i for epoch in epochs for i in epoch if i < 90]
    assert [len(epoch) for epoch in epochs] == [100, 100] and len(of_large) == 100
    assert {*of_large} == {*range(90)}
    assert sorted(i for i in epochs[0] if i >= 90) == sorted([*range(90, 100)] * 5)


@pytest.mark.parametrize("extra", [[], ["--streaming", "--buffer", "50"]])
def test_the_log_says_how_many_tokens_each_corpus_gave(tmp_path, monkeypatch, capsys, extra):
    write(tmp_path / "a.jsonl", pairs(0, 200))
    write(tmp_path / "b.jsonl", pairs(1_000, 1_100))
    monkeypatch.chdir(tmp_path)
    given = ["--dataset", "a.jsonl", "b.jsonl", "--weights", "3", "1", "--src", "en", "--tgt", "de"]
    train.main([*given, *SMALL, "--max-steps", "40", *extra])
    state = checkpoint.load_state(Path("runs/a+b-en-de"))[0]
    assert sum(state.corpus_tokens) == state.target_tokens
    assert state.corpus_tokens[0] / state.target_tokens == pytest.approx(0.75, abs=0.06)
    said = f"target tokens so far: a.jsonl {state.corpus_tokens[0]:,} ("
    assert said in capsys.readouterr().out


def test_a_configuration_of_format_3_had_one_corpus(tmp_path):
    tokenizer = Tokenizer.train(["a"], 270)
    config = Config(DataConfig("letters"), train=TrainConfig(accumulate=1))
    model_folder.create(tmp_path, config, tokenizer, TextInput(tokenizer), "abc")
    record = json.loads((tmp_path / "config.json").read_text())
    record["format_version"] = 3
    del record["checksum"]
    record["config"]["data"]["dataset"] = "letters"
    for name in ("weights", "temperature", "streaming", "buffer"):
        del record["config"]["data"][name]
    (tmp_path / "config.json").write_text(json.dumps(record))
    assert model_folder.read_config(tmp_path)[0] == config


def test_a_checkpoint_from_before_streaming_still_resumes(tmp_path):
    checkpoint.save_state(tmp_path, TrainState(step=3), {"x": torch.zeros(1)}, 1)
    file = tmp_path / "checkpoints" / "000003" / "state.json"
    record = json.loads(file.read_text())
    del record["state"]["stream"], record["state"]["corpus_tokens"], record["checksum"]
    record["checksum"] = strict_json.checksum(record)
    file.write_text(json.dumps(record))
    assert checkpoint.load_state(tmp_path)[0] == TrainState(step=3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": ("a", "a")}, "--dataset must be different corpora, got a a"),
        ({"weights": (1.0,)}, "--weights needs several corpora"),
        (
            {"dataset": ("a", "b"), "weights": (1.0,)},
            "--weights must be a number above 0, at most 1e9, for each of the 2 corpora",
        ),
        (
            {"dataset": ("a", "b"), "weights": (1.0, 1.0), "temperature": 2.0},
            "--weights and --temperature both set",
        ),
        ({"dataset": ("a", "b"), "temperature": 0.0}, "--temperature must be from 0.1 to 1e9, got 0.0"),
        ({"streaming": True, "source": "image"}, "--streaming reads text, but --source is image"),
        ({"buffer": 0}, "--buffer must be at least 1, got 0"),
    ],
)
def test_impossible_mixtures_name_their_flag(settings, message):
    with pytest.raises(ValueError, match=message):
        DataConfig(**settings)


def test_corpora_whose_shares_of_a_small_block_round_to_nothing_come_all_the_same(
    folder, tmp_path, tokenizer
):
    other = write(tmp_path / "other.jsonl", pairs(500, 600))
    sampler = sampler_of(config_of(folder, other, weights=(1.0, 1.0)), tokenizer, rows=1)
    given = [
        text
        for [batch] in itertools.islice(sampler.steps(TrainState()), 20)
        for text in sources(tokenizer, batch)
    ]
    assert {en for en, _ in pairs(0, 500)} & {*given} and {en for en, _ in pairs(500, 600)} & {*given}


def test_rows_of_the_block_in_use_are_counted(folder, tokenizer):
    state = TrainState()
    next(sampler_of(config_of(folder), tokenizer, rows=100).steps(state))
    assert rows_read(state).read == 100


def test_the_card_says_that_the_pairs_of_a_stream_are_not_counted(tmp_path):
    for streaming, told in ((False, ": 1,234 sentence pairs"), (True, ": about 1,234 sentence pairs")):
        config = Config(DataConfig("pairs.jsonl", streaming=streaming))
        write_card(tmp_path, config, TrainState(), {}, 1_234, 1, torch.device("cpu"))
        assert told in (tmp_path / "README.md").read_text()


def test_text_files_that_come_apart_while_they_are_read_are_named(tmp_path):
    src, tgt = tmp_path / "c.en", tmp_path / "c.de"
    src.write_text("a\nb\n")
    tgt.write_text("c\n")
    with pytest.raises(ValueError, match=r"c\.en and .*c\.de were changed meanwhile: only one .* a line 2"):
        list(origins._side_by_side(src, tgt))
