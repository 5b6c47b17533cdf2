"""The recipe: what is chosen for a corpus, and why."""

from dataclasses import replace

from config import Config, DataConfig, TrainConfig
from recipe import PRESETS, num_micro_batches, recipe


def test_the_recipe_grows_with_the_corpus_and_says_why():
    files = Config(DataConfig(dataset="pairs.jsonl"))
    small, why_small = recipe(files, 20_000, 2, False)
    large, why_large = recipe(files, 5_000_000, 2, True)
    assert small.model.d_model < large.model.d_model and small.model.vocab_size < large.model.vocab_size
    assert "20,000 pairs" in why_small and "5,000,000 pairs" in why_large


def test_a_preset_that_is_asked_for_is_taken():
    config = Config(train=TrainConfig(preset="base"))
    chosen, why = recipe(config, 20_000, 2, False)
    assert replace(chosen.model, vocab_size=PRESETS["base"][0].vocab_size) == PRESETS["base"][0]
    assert "as asked" in why


def test_the_recipe_of_a_tuned_run_names_no_vocabulary():
    _, why = recipe(Config(train=TrainConfig(init_from="runs/other")), 30_000, 1, False)
    assert "subwords" not in why and "preset" in why


def test_the_budget_chooses_the_schedule():
    files = DataConfig(dataset="pairs.jsonl")
    assert recipe(Config(files), 20_000, 2, False)[0].train.schedule == "inverse-sqrt"
    timed = Config(files, train=TrainConfig(max_minutes=3.0))
    assert recipe(timed, 20_000, 2, False)[0].train.schedule == "cosine"
    assert recipe(Config(), 48_000, 2, False)[0].train.max_minutes == 5.0


def test_micro_batches_follow_the_threads_on_a_cpu_and_stay_large():
    train = TrainConfig(batch_tokens=2_048)
    config = Config(train=train)
    assert [num_micro_batches(config, n, False) for n in (1, 2, 64)] == [1, 2, 4]
    assert num_micro_batches(config, 8, True) == 1
    assert num_micro_batches(Config(train=TrainConfig(batch_tokens=1)), 8, False) == 1
    assert num_micro_batches(Config(train=TrainConfig(accumulate=3)), 8, True) == 3


def test_features_have_smaller_steps_and_micro_batches_than_text():
    text, features = Config(DataConfig("x.jsonl")), Config(DataConfig("x.jsonl", source="features"))
    tokens = [recipe(config, 5_000, 2, False)[0].train.batch_tokens for config in (text, features)]
    assert tokens[1] == tokens[0] // 2
    train = TrainConfig(batch_tokens=768)
    assert [num_micro_batches(replace(config, train=train), 2, False) for config in (text, features)] == [
        1,
        2,
    ]


def test_the_warm_up_of_a_short_run_is_shorter():
    short = Config(DataConfig(dataset="pairs.jsonl"), train=TrainConfig(max_steps=20, max_minutes=3.0))
    chosen, why = recipe(short, 20_000, 2, False)
    assert chosen.train.warmup_steps == 4 and "20 steps or 3 minutes" in why


def test_the_time_there_is_chooses_the_model():
    def chosen(minutes):
        config = Config(DataConfig(dataset="pairs.jsonl"), train=TrainConfig(max_minutes=minutes))
        return recipe(config, 2_000_000, 2, False)[0].train.preset

    assert (chosen(1.0), chosen(6_000.0)) == ("tiny", "small")


def test_a_small_corpus_gets_the_larger_model_when_there_is_time_for_many_epochs():
    def chosen(num_pairs, **limits):
        config = Config(DataConfig(dataset="pairs.jsonl"), train=TrainConfig(**limits))
        return recipe(config, num_pairs, 2, False)[0].train.preset

    assert [chosen(29_000, max_minutes=minutes) for minutes in (15.0, 100.0)] == ["tiny", "compact"]
    assert [chosen(29_000, max_steps=steps) for steps in (100, 10_000)] == ["tiny", "compact"]
    assert [chosen(num_pairs) for num_pairs in (1_000, 29_000)] == ["tiny", "compact"]
