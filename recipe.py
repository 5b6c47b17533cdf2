"""The recipe: settings for a corpus, a time budget and a machine."""

import math
from dataclasses import replace
from typing import Literal

from config import Config, DataConfig, ModelConfig, TrainConfig

PRESETS: dict[str, tuple[ModelConfig, TrainConfig]] = {
    # For the embedded corpus, where the source fixes the translation: nothing to smooth, little to overfit.
    "phrasebook": (
        ModelConfig(d_model=128, num_layers=3, num_decoder_layers=2, num_heads=4, d_ff=512, dropout=0.05),
        TrainConfig(
            "phrasebook",
            batch_tokens=1_024,
            optimizer="muon",
            lr=4e-3,
            warmup_steps=200,
            weight_decay=0.1,
            label_smoothing=0.05,
            ema_decay=0.99,
        ),
    ),
    # For corpora of fewer than 100,000 pairs.
    "tiny": (
        ModelConfig(d_model=128, num_layers=4, num_decoder_layers=4, num_heads=4, d_ff=512, dropout=0.1),
        TrainConfig(
            "tiny",
            batch_tokens=1_536,
            optimizer="muon",
            lr=4e-3,
            warmup_steps=300,
            weight_decay=0.1,
            ema_decay=0.99,
        ),
    ),
    # As many weights as tiny, but most of them where all tokens are read at once: quick to translate with (Kasai et al.
    # 2021, arXiv:2006.10369). Only on request.
    "fast": (
        ModelConfig(d_model=128, num_layers=8, num_decoder_layers=1, num_heads=4, d_ff=512, dropout=0.1),
        TrainConfig(
            "fast",
            batch_tokens=1_536,
            optimizer="muon",
            lr=4e-3,
            warmup_steps=300,
            weight_decay=0.1,
            ema_decay=0.99,
        ),
    ),
    # For tiny's corpora with time for many epochs: twice the weights, and more against overfitting.
    "compact": (
        ModelConfig(d_model=192, num_layers=4, num_decoder_layers=4, num_heads=4, d_ff=768, dropout=0.2),
        TrainConfig(
            "compact",
            batch_tokens=2_048,
            optimizer="muon",
            lr=4e-3,
            warmup_steps=400,
            weight_decay=0.1,
            ema_decay=0.995,
            bpe_dropout=0.05,
        ),
    ),
    "small": (
        ModelConfig(d_model=256, num_layers=3, num_decoder_layers=3, num_heads=4, d_ff=1_024, dropout=0.15),
        TrainConfig(
            "small",
            batch_tokens=2_048,
            optimizer="muon",
            lr=4e-3,
            warmup_steps=400,
            weight_decay=0.1,
            ema_decay=0.99,
        ),
    ),
    "base": (
        ModelConfig(d_model=512, num_layers=6, num_decoder_layers=6, num_heads=8, d_ff=2_048, dropout=0.1),
        TrainConfig("base", batch_tokens=16_384, lr=7e-4, warmup_steps=4_000, ema_decay=0.999),
    ),
}


# Learning rate and weight decay of an optimizer that a preset does not have.
OTHER_OPTIMIZERS = {"adamw": (1e-3, 0.01), "muon": (4e-3, 0.1)}

# A micro-batch smaller than this spends more time around its matrix products than in them.
MIN_MICRO_BATCH = 512
# Features have about so many source tokens for each target token: so much less of the target fills a micro-batch.
FRAMES_PER_TARGET = 4
# Target tokens that a CPU thread learns from in a second with the preset small and with compact, and that a pair has:
# rough figures, to tell how many epochs there is time for.
SMALL_TOKENS_PER_S, COMPACT_TOKENS_PER_S, TOKENS_PER_PAIR = 1_000, 900, 20
# From so many on, more weights serve a small corpus better than more epochs (docs/log.md).
COMPACT_EPOCHS = 12


def recipe(config: Config, num_pairs: int, workers: int, has_accelerator: bool) -> tuple[Config, str]:
    """Settings for a corpus, a time budget and a machine, and the reason in a sentence.

    Where the weights come from another model, so does the vocabulary.

    Args:
        config: of it, the data, the preset and the budget count.
        workers: CPU threads.
    """
    train = config.train
    name, why = train.preset, "as asked"
    if name == "auto":
        name, why = _choose_preset(config, num_pairs, workers, has_accelerator)
    model, preset = PRESETS[name]
    # A subword should be met often enough to be learned: the vocabulary grows with the root of the corpus. The
    # embedded one has fewer words than others of its size.
    factor = 24 if name == "phrasebook" else 36
    vocab_size = min(32_000, max(1_000, int(round(factor * num_pairs**0.5, -3))))
    schedule: Literal["cosine", "inverse-sqrt"] = "cosine"
    minutes = train.max_minutes
    limits = [f"{train.max_steps:,} steps"] if train.max_steps else []
    budget = " or ".join([*limits, *([f"{minutes:g} minutes"] if minutes else [])])
    if minutes is None and train.max_steps is None:
        if _is_builtin(config.data):
            minutes, budget = 5.0, "5 minutes, enough for the embedded corpus"
        else:
            schedule, budget = "inverse-sqrt", "no budget, so until validation no longer improves"
    if train.max_steps:
        # A warm-up as long as the run would never let it learn.
        preset = replace(preset, warmup_steps=max(1, min(preset.warmup_steps, train.max_steps // 5)))
    if config.data.source == "features":  # each target token has many frames
        preset = replace(preset, batch_tokens=preset.batch_tokens // 2)
    preset = replace(preset, schedule=schedule, max_minutes=minutes)
    chosen = Config(config.data, replace(model, vocab_size=vocab_size), preset, config.source)
    sizes = [] if train.init_from else [f"at most {vocab_size:,} subwords for {num_pairs:,} pairs"]
    return chosen, ", ".join([f"preset {name} ({why})", *sizes, f"{schedule} schedule ({budget})"])


def with_optimizer(train: TrainConfig, optimizer: Literal["adamw", "muon"]) -> TrainConfig:
    """A preset's settings for the other optimizer: its own learning rate and decay would not suit it."""
    lr, weight_decay = OTHER_OPTIMIZERS[optimizer]
    return replace(train, optimizer=optimizer, lr=lr, weight_decay=weight_decay)


def _is_builtin(data: DataConfig) -> bool:
    return all(name.startswith("builtin:") for name in data.dataset)


def _choose_preset(
    config: Config, num_pairs: int, workers: int, has_accelerator: bool
) -> tuple[Literal["phrasebook", "tiny", "compact", "small", "base"], str]:
    if _is_builtin(config.data):
        return "phrasebook", "the embedded corpus"
    seconds = 60 * (config.train.max_minutes or math.inf)
    if num_pairs < 100_000:
        speed = math.inf if has_accelerator else workers * COMPACT_TOKENS_PER_S
        num_tokens = min(
            seconds * speed, (config.train.max_steps or math.inf) * PRESETS["compact"][1].batch_tokens
        )
        has_time = num_tokens >= COMPACT_EPOCHS * num_pairs * TOKENS_PER_PAIR
        if has_time and num_pairs >= 10_000 and config.data.source == "text":
            return "compact", f"10,000 to 100,000 pairs, and time for {COMPACT_EPOCHS} epochs"
        return "tiny", "fewer than 100,000 pairs"
    if has_accelerator:
        return ("base", "a large corpus") if num_pairs >= 1_000_000 else ("small", "a mid-sized corpus")
    if seconds * workers * SMALL_TOKENS_PER_S < num_pairs * TOKENS_PER_PAIR:
        return "tiny", "too little time for an epoch of a larger model"
    return "small", "the largest that a CPU trains in reasonable time"


def num_micro_batches(config: Config, workers: int, has_accelerator: bool) -> int:
    """`--accumulate`, or its default for this machine."""
    if config.train.accumulate is not None:
        return config.train.accumulate
    least = MIN_MICRO_BATCH // (FRAMES_PER_TARGET if config.data.source == "features" else 1)
    return 1 if has_accelerator else max(1, min(workers, config.train.batch_tokens // least))
