"""Every setting of every command: dataclasses, recipes, the command-line parser, strict JSON both ways."""

import contextlib
import io
import math
import re
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def _require(ok: bool, flag: str, allowed: str, given: object) -> None:
    if not ok:
        raise ValueError(f"{flag} must be {allowed}, got {given}")


@dataclass(frozen=True)
class DataConfig:
    """Corpus: which rows to learn from."""

    dataset: tuple[str, ...] = ("builtin:phrasebook",)
    """builtin:phrasebook, a Hub name, a local folder or file (jsonl, csv, tsv, parquet), or the prefix of two
    aligned text files (letters for letters.en and letters.de); several are mixed."""
    dataset_config: str | None = None
    """Configuration of a Hub dataset, e.g. en-fr for opus_books."""
    weights: tuple[float, ...] | None = None
    """Several corpora: the share of the training rows that each gives, as numbers like 3 1; by default each row
    counts once."""
    temperature: float | None = None
    """Several corpora: shares like the number of rows to the power of 1/temperature; 1 leaves them as they are, a
    high one makes them equal."""
    streaming: bool = False
    """Read the rows one after another while training, for a corpus that neither memory nor disk should hold."""
    buffer: int = 50_000
    """Rows that are shuffled and cut into batches together with --streaming."""
    src: str = "en"
    """Source language: a column, a key of the translation column, or a text file's suffix."""
    tgt: str = "fr"
    """Target language, likewise."""
    source: Literal["text", "image", "features"] = "text"
    """What the source side holds: text; image: a column of pictures, or text that is drawn as pictures; features:
    a column of arrays (frames × channels), nested lists or paths of .npy files."""
    max_length: int = 256
    """Longest row kept, in tokens a side (subwords with the end token, patches, frames after --frame-stride);
    longer ones are dropped and counted."""
    max_length_ratio: float = 9.0
    """Largest ratio between the lengths of two texts in characters (short rows are spared)."""
    data_seed: int = 0
    """Fixes the built-in corpus and which rows a missing validation or test split takes."""

    def __post_init__(self) -> None:
        _require(self.max_length >= 2, "--max-length", "at least 2", self.max_length)
        _require(self.max_length_ratio >= 1, "--max-length-ratio", "at least 1", self.max_length_ratio)
        if isinstance(self.dataset, str):  # Python users may give one name as it is
            object.__setattr__(self, "dataset", (self.dataset,))
        _require(bool(self.dataset) and all(self.dataset), "--dataset", "a name or a path", "nothing")
        _require(
            len({*self.dataset}) == len(self.dataset),
            "--dataset",
            "different corpora",
            " ".join(self.dataset),
        )
        self._check_mixture()
        _require(self.buffer >= 1, "--buffer", "at least 1", self.buffer)
        if not self.streaming and self.buffer != type(self).buffer:
            raise ValueError(f"--buffer {self.buffer} is for --streaming; add that, or leave it out")
        if self.streaming and self.source != "text":
            raise ValueError(f"--streaming reads text, but --source is {self.source}; leave one of them out")
        _require(0 <= self.data_seed < 2**63, "--data-seed", "0 or more and less than 2^63", self.data_seed)
        _require(self.src != self.tgt, "--src and --tgt", "two different languages", f"{self.src} twice")

    def _check_mixture(self) -> None:
        given = [f"--{name}" for name in ("weights", "temperature") if getattr(self, name) is not None]
        if len(given) == 2:
            raise ValueError(
                "--weights and --temperature both set the shares of the corpora; give one of them"
            )
        if given and len(self.dataset) == 1:
            raise ValueError(f"{given[0]} needs several corpora; give them as --dataset a b, or leave it out")
        if self.weights is not None:
            numbers = " ".join(f"{weight:g}" for weight in self.weights)
            is_good = all(0 < weight <= 1e9 for weight in self.weights)
            allowed = f"a number above 0, at most 1e9, for each of the {len(self.dataset)} corpora"
            _require(is_good and len(self.weights) == len(self.dataset), "--weights", allowed, numbers)
        if self.temperature is not None:
            is_good = 0.1 <= self.temperature <= 1e9
            _require(is_good, "--temperature", "from 0.1 to 1e9", self.temperature)

    @property
    def name(self) -> str:
        """The corpora, for messages."""
        return " + ".join(self.dataset)


# The components of a patch are found in a matrix of its pixels by its pixels.
MAX_PATCH_PIXELS = 4_096


@dataclass(frozen=True)
class SourceConfig:
    """Pictures and features: how they become what the encoder reads."""

    strip_height: int = 16
    """Height in pixels to which pictures are scaled and in which text is drawn."""
    patch_width: int = 40
    """Pixels of a strip that are one token of the source."""
    patch_overlap: int = 0
    """Pixels that a patch shares with the next one."""
    word_gap: float = 0.18
    """Blank columns that part two words, as a share of --strip-height; a new patch begins at each word. 0 = patches
    are cut at even distances."""
    font: str | None = None
    """Font file to draw text with, DejaVu Sans by default; the model folder keeps a copy."""
    font_size: int = 12
    """Size of drawn text, in pixels."""
    font_size_range: int = 1
    """Pixels by which a part of the training text is drawn smaller or larger, at most."""
    varied_share: float = 0.5
    """Share of the drawn training text that looks as a picture from elsewhere might: in another size, a pixel higher or
    lower, or scaled down from twice the size."""
    frame_stride: int = 4
    """Frames of a feature sequence that become one token of the source."""

    def __post_init__(self) -> None:
        height = self.strip_height
        _require(4 <= height <= 256, "--strip-height", "from 4 to 256", height)
        most = MAX_PATCH_PIXELS // height
        _require(
            1 <= self.patch_width <= most,
            "--patch-width",
            f"from 1 to {most} for this --strip-height",
            self.patch_width,
        )
        _require(0 <= self.word_gap <= 4, "--word-gap", "from 0 to 4", self.word_gap)
        below = f"from 0 to less than --patch-width ({self.patch_width})"
        _require(0 <= self.patch_overlap < self.patch_width, "--patch-overlap", below, self.patch_overlap)
        _require(4 <= self.font_size <= height, "--font-size", "from 4 to --strip-height", self.font_size)
        most = min(self.font_size - 4, height - self.font_size)
        _require(
            0 <= self.font_size_range <= most,
            "--font-size-range",
            f"from 0 to {most} for this --font-size and --strip-height",
            self.font_size_range,
        )
        _require(0 <= self.varied_share <= 1, "--varied-share", "from 0 to 1", self.varied_share)
        _require(1 <= self.frame_stride <= 64, "--frame-stride", "from 1 to 64", self.frame_stride)

    @property
    def patch_stride(self) -> int:
        """Pixels from one patch to the next."""
        return self.patch_width - self.patch_overlap

    @property
    def gap_pixels(self) -> int:
        """Blank columns that part two words; 0 = words are not told apart."""
        return math.ceil(self.word_gap * self.strip_height)


@dataclass(frozen=True)
class ModelConfig:
    """Model: its size and shape."""

    d_model: int = 128
    """Width of embeddings and layers."""
    num_layers: int = 3
    """Encoder layers."""
    num_decoder_layers: int = 3
    """Decoder layers."""
    num_heads: int = 4
    """Attention heads; must divide --d-model."""
    d_ff: int = 512
    """Inner width of the feed-forward blocks."""
    dropout: float = 0.1
    """Probability of dropping a unit."""
    norm: Literal["pre", "post"] = "pre"
    """Layer normalisation before each block, or after it as in the original paper."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """Non-linearity of the feed-forward blocks."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Sinusoidal positions have no longest length; learned ones end at --max-length."""
    vocab_size: int = 4_000
    """Subword vocabulary, the most that is learned: joint for text, of the target for other sources."""

    def __post_init__(self) -> None:
        for flag in ("d_model", "num_layers", "num_decoder_layers", "num_heads", "d_ff"):
            _require(
                getattr(self, flag) >= 1, f"--{flag.replace('_', '-')}", "at least 1", getattr(self, flag)
            )
        _require(0 <= self.dropout < 1, "--dropout", "in [0, 1)", self.dropout)
        # 256 bytes and 3 special tokens are always there.
        _require(self.vocab_size >= 259, "--vocab-size", "at least 259", self.vocab_size)
        if self.d_model % self.num_heads:
            raise ValueError(f"--num-heads must divide --d-model, got {self.num_heads} and {self.d_model}")


@dataclass(frozen=True)
class DecodeConfig:
    """Decoding: how translations are searched for."""

    beam: int = 5
    """Beams kept; 1 is greedy search."""
    length_penalty: float = 1.0
    """Exponent of the length penalty (Wu et al. 2016); 0 compares bare log-probabilities."""
    batch_size: int = 64
    """Sentences decoded together."""
    shortlist: int = 0
    """Likely translations considered of each source subword, beside frequent ones, in place of the whole
    vocabulary; less work, but some outputs change. 0 = off."""

    def __post_init__(self) -> None:
        _require(1 <= self.beam <= 1_000, "--beam", "at least 1 and at most 1000", self.beam)
        _require(0 <= self.length_penalty <= 10, "--length-penalty", "from 0 to 10", self.length_penalty)
        _require(self.batch_size >= 1, "--batch-size", "at least 1", self.batch_size)
        _require(0 <= self.shortlist <= 64, "--shortlist", "from 0 to 64", self.shortlist)


@dataclass(frozen=True)
class TrainConfig:
    """Training: how the model learns, and for how long."""

    preset: Literal["auto", "phrasebook", "tiny", "small", "base"] = "auto"
    """Model and training settings to start from; auto chooses by corpus size and time. Other flags override."""
    batch_tokens: int = 4_096
    """Target tokens per optimizer step, padding not counted, all ranks together."""
    accumulate: int | None = None
    """Micro-batches a step is split into. On a CPU they run side by side, by default one for each thread, of at
    least 512 tokens each (128 of features); elsewhere more of them save memory, and one is the default."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """Muon for the matrices inside the layers and AdamW for the rest, or AdamW for all."""
    lr: float = 2e-3
    """Highest learning rate, the same for both optimizers."""
    schedule: Literal["cosine", "inverse-sqrt"] = "cosine"
    """After the warm-up: cosine to zero at the end of the budget, or the inverse square root of the step."""
    warmup_steps: int = 500
    """Steps over which the learning rate rises from zero."""
    label_smoothing: float = 0.1
    """Probability mass spread over the whole vocabulary."""
    weight_decay: float = 0.01
    """Decoupled decay of matrices; biases and normalisation are exempt."""
    clip_norm: float = 1.0
    """Largest gradient norm; longer gradients are scaled down."""
    ema_decay: float = 0.995
    """Decay of the exponential moving average of the weights, which is what is validated and kept; 0 = off."""
    bpe_dropout: float = 0.0
    """Probability of leaving a merge out when training text is cut into subwords."""
    max_minutes: float | None = None
    """Time budget in minutes, validation included; with --max-steps, whichever ends first. None = no limit."""
    max_steps: int | None = None
    """Optimizer steps. None = no limit."""
    validate_every: int | None = None
    """Steps between validations, each with a checkpoint; by default an epoch or the warm-up, whichever is longer,
    but at most 1,000 steps."""
    patience: int | None = 10
    """Validations without a better score before training stops; None = never."""
    keep_checkpoints: int = 2
    """Newest checkpoints kept, and those of their best weights so far: at most twice as many."""
    log_every: int = 20
    """Steps between log lines."""
    seed: int = 1
    """Fixes weights, dropout and the order of the batches."""
    mixed_precision: bool = True
    """Use bfloat16 where the hardware computes in it (never on a CPU)."""
    init_from: str | None = None
    """Model folder whose weights, tokenizer and architecture a new run starts from (fine-tuning); the optimizer and
    the schedule start afresh."""

    def __post_init__(self) -> None:
        for flag in ("batch_tokens", "warmup_steps", "keep_checkpoints", "log_every"):
            _require(
                getattr(self, flag) >= 1, f"--{flag.replace('_', '-')}", "at least 1", getattr(self, flag)
            )
        for flag in ("accumulate", "max_minutes", "max_steps", "validate_every", "patience"):
            value = getattr(self, flag)
            allowed = "more than 0" if value != math.inf else "a finite number"
            _require(value is None or 0 < value < math.inf, f"--{flag.replace('_', '-')}", allowed, value)
        for flag in ("label_smoothing", "ema_decay", "bpe_dropout"):
            value = getattr(self, flag)
            _require(0 <= value < 1, f"--{flag.replace('_', '-')}", "in [0, 1)", value)
        if self.accumulate is not None and self.accumulate > self.batch_tokens:
            given = f"{self.accumulate} for {self.batch_tokens} tokens"
            raise ValueError(f"--accumulate must be at most --batch-tokens, got {given}")
        _require(0 <= self.seed < 2**63, "--seed", "0 or more and less than 2^63", self.seed)
        _require(self.lr > 0, "--lr", "more than 0", self.lr)
        _require(self.weight_decay >= 0, "--weight-decay", "0 or more", self.weight_decay)
        _require(self.clip_norm > 0, "--clip-norm", "more than 0", self.clip_norm)


@dataclass(frozen=True)
class Config:
    """All that defines a run; saved in its model folder as config.json."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    source: SourceConfig = field(default_factory=SourceConfig)


def check_source(config: Config) -> None:
    """See that the settings of a new run fit its --source; those of a saved one did when it began.

    Raises:
        ValueError: one is for another source, or learned positions end before the width of a character.
    """
    data, source = config.data, config.source
    for option in fields(SourceConfig):
        kind = "features" if option.name == "frame_stride" else "image"
        if kind != data.source and getattr(source, option.name) != option.default:
            flag = f"--{option.name.replace('_', '-')}"
            raise ValueError(f"{flag} is for --source {kind}, but the source is {data.source}")
    if data.source == "image" and config.model.positions == "learned":
        # The widest character of DejaVu Sans has 1.75 times its size, and no character can be cut.
        widest = 2 * source.font_size
        least = 1 + math.ceil(max(0, widest - source.patch_width) / source.patch_stride)
        _require(
            data.max_length >= least,
            "--max-length",
            f"at least {least} with --positions learned, so that its patches hold the widest character"
            f" ({widest} pixels)",
            data.max_length,
        )


PRESETS: dict[str, tuple[ModelConfig, TrainConfig]] = {
    # For the embedded corpus, where the source fixes the translation: nothing to smooth, little to overfit.
    "phrasebook": (
        ModelConfig(d_model=128, num_layers=3, num_decoder_layers=2, num_heads=4, d_ff=512, dropout=0.05),
        TrainConfig(
            "phrasebook", batch_tokens=1_024, lr=4e-3, warmup_steps=200, label_smoothing=0.05, ema_decay=0.99
        ),
    ),
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
    "small": (
        ModelConfig(d_model=256, num_layers=3, num_decoder_layers=3, num_heads=4, d_ff=1_024, dropout=0.15),
        TrainConfig("small", batch_tokens=2_048, lr=2e-3, warmup_steps=400, ema_decay=0.99),
    ),
    "base": (
        ModelConfig(d_model=512, num_layers=6, num_decoder_layers=6, num_heads=8, d_ff=2_048, dropout=0.1),
        TrainConfig("base", batch_tokens=16_384, lr=7e-4, warmup_steps=4_000, ema_decay=0.999),
    ),
}


# A micro-batch smaller than this spends more time around its matrix products than in them.
MIN_MICRO_BATCH = 512
# Features have about so many source tokens for each target token: so much less of the target fills a micro-batch.
FRAMES_PER_TARGET = 4
# Target tokens that a CPU thread learns from in a second with the preset small, and that a pair has: rough figures,
# to tell whether there is time for one epoch.
SMALL_TOKENS_PER_S, TOKENS_PER_PAIR = 1_000, 20


def recipe(config: Config, num_pairs: int, workers: int, has_accelerator: bool) -> tuple[Config, str]:
    """Settings for a corpus, a time budget and a machine, and the reason in a sentence.

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
    vocab_size = min(32_000, max(1_000, round(factor * num_pairs**0.5, -3)))
    schedule: Literal["cosine", "inverse-sqrt"] = "cosine"
    minutes = train.max_minutes
    budget = f"{minutes or 0:g} minutes"
    if minutes is None and train.max_steps is None:
        if _is_builtin(config.data):
            minutes, budget = 5.0, "5 minutes, enough for the embedded corpus"
        else:
            schedule, budget = "inverse-sqrt", "no budget, so until validation no longer improves"
    if train.max_steps:
        budget = " or ".join([f"{train.max_steps:,} steps", *([f"{minutes:g} minutes"] if minutes else [])])
        # A warm-up as long as the run would never let it learn.
        preset = replace(preset, warmup_steps=max(1, min(preset.warmup_steps, train.max_steps // 5)))
    if config.data.source == "features":  # each target token has many frames
        preset = replace(preset, batch_tokens=preset.batch_tokens // 2)
    preset = replace(preset, schedule=schedule, max_minutes=minutes)
    chosen = Config(config.data, replace(model, vocab_size=int(vocab_size)), preset, config.source)
    size = f"at most {vocab_size:,.0f} subwords for {num_pairs:,} pairs"
    return chosen, f"preset {name} ({why}), {size}, {schedule} schedule ({budget})"


def _is_builtin(data: DataConfig) -> bool:
    return all(name.startswith("builtin:") for name in data.dataset)


def _choose_preset(
    config: Config, num_pairs: int, workers: int, has_accelerator: bool
) -> tuple[Literal["phrasebook", "tiny", "small", "base"], str]:
    if _is_builtin(config.data):
        return "phrasebook", "the embedded corpus"
    if num_pairs < 100_000:
        return "tiny", "fewer than 100,000 pairs"
    if has_accelerator:
        return ("base", "a large corpus") if num_pairs >= 1_000_000 else ("small", "a mid-sized corpus")
    seconds = 60 * (config.train.max_minutes or math.inf)
    if seconds * workers * SMALL_TOKENS_PER_S < num_pairs * TOKENS_PER_PAIR:
        return "tiny", "too little time for an epoch of a larger model"
    return "small", "the largest that a CPU trains in reasonable time"


def num_micro_batches(config: Config, workers: int, has_accelerator: bool) -> int:
    """`--accumulate`, or its default for this machine."""
    if config.train.accumulate is not None:
        return config.train.accumulate
    least = MIN_MICRO_BATCH // (FRAMES_PER_TARGET if config.data.source == "features" else 1)
    return 1 if has_accelerator else max(1, min(workers, config.train.batch_tokens // least))


def parse_args(
    cls: type[T], *, args: Sequence[str] | None = None, default: T | None = None, description: str = ""
) -> T:
    """Read a dataclass from the command line; nested dataclasses become groups of flat flags.

    Args:
        args: words after the program's name; sys.argv by default.
        default: values for the flags that are not given; the class's own by default.
        description: text above the options in --help.
    Raises:
        SystemExit: code 0 after --help, code 2 after one line on stderr for a flag that is wrong.
    """
    import tyro  # 0.1 s that Python users of the modules need not pay

    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            flat = (tyro.conf.OmitArgPrefixes,)
            read = tyro.cli(cls, args=args, default=default, description=description, config=flat)
            return cast(T, read)
    except SystemExit as end:
        if end.code:
            print(f"error: {_one_line(errors.getvalue())}; see --help", file=sys.stderr)
        sys.exit(end.code)


def _one_line(boxed: str) -> str:
    """The message inside the box that tyro draws (of plain dashes where the terminal has no others)."""
    words: list[str] = []
    for line in boxed.splitlines()[1:]:
        text = line.strip("│|╭╰╮╯+ ")
        if set(text) <= {"─", "-"}:
            if words:
                break
            continue
        words += text.split()
    message = " ".join(words)
    # "Error parsing model: --d-model must be …": the check has named the flag already.
    return re.sub(r"^Error parsing [^:]*: (?=--)", "", message)


def to_json(config: object) -> dict[str, Json]:
    """A dataclass as plain JSON values."""
    assert is_dataclass(config) and not isinstance(config, type)
    values = {f.name: getattr(config, f.name) for f in fields(config)}
    return {
        k: to_json(v) if is_dataclass(v) else list(v) if isinstance(v, tuple) else v
        for k, v in values.items()
    }


def from_json(cls: type[T], obj: Json, where: str = "config") -> T:
    """Read back what `to_json` wrote: every field, no other, each of its own type.

    Raises:
        ValueError: names the field and what it should be.
    """
    if not isinstance(obj, dict):
        raise ValueError(f"{where} must be a JSON object, got {obj!r:.40}")
    types_of = get_type_hints(cls)
    if unlike := set(obj) ^ set(types_of):
        raise ValueError(
            f"{where} must have exactly the fields {sorted(types_of)}; differing: {sorted(unlike)}"
        )
    return cls(**{k: _typed(types_of[k], v, f"{where}.{k}") for k, v in obj.items()})


def _typed(hint: object, value: Json, where: str) -> object:
    if is_dataclass(hint):
        return from_json(cast("type[object]", hint), value, where)
    if get_origin(hint) in (list, tuple) and isinstance(value, list):
        items = [_typed(get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if get_origin(hint) is list else tuple(items)
    if get_origin(hint) is dict and isinstance(value, dict):
        return value
    if get_origin(hint) is Literal:
        allowed: tuple[object, ...] = get_args(hint)
    elif get_origin(hint) in (types.UnionType, Union):
        if value is None and type(None) in get_args(hint):
            return None
        return _typed(next(a for a in get_args(hint) if a is not type(None)), value, where)
    else:
        if hint is float and type(value) is int and abs(value) < 2**53:
            value = float(value)
        if type(value) is hint:
            return value
        allowed = (getattr(hint, "__name__", hint),)
    if value not in allowed:
        raise ValueError(f"{where} must be {' or '.join(map(str, allowed))}, got {value!r:.40}")
    return value
