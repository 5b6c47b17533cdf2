"""Every setting that a model folder keeps, and how translations are searched for: dataclasses, each with its checks."""

import math
from dataclasses import dataclass, field, fields
from typing import Literal


def _require(ok: bool, flag: str, allowed: str, given: object) -> None:
    if not ok:
        raise ValueError(f"{flag} must be {allowed}, got {given}")


def _require_between(config: object, least: int, most: int, *names: str) -> None:
    """See that settings lie between two limits; no machine has use for more than the upper."""
    for name in names:
        value: int = getattr(config, name)
        allowed = f"at least {least}" if value < least else f"at most {most:,}"
        _require(least <= value <= most, f"--{name.replace('_', '-')}", allowed, value)


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
        _require_between(self, 2, 1_000_000, "max_length")
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
        _require_between(self, 1, 10**9, "buffer")
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
        _require_between(self, 1, 1_000, "num_layers", "num_decoder_layers")
        _require_between(self, 1, 100_000, "d_model", "num_heads", "d_ff")
        _require(0 <= self.dropout < 1, "--dropout", "in [0, 1)", self.dropout)
        # 256 bytes and 3 special tokens are always there.
        _require_between(self, 259, 10_000_000, "vocab_size")
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
        _require_between(self, 1, 1_000_000, "batch_size")
        _require(0 <= self.shortlist <= 64, "--shortlist", "from 0 to 64", self.shortlist)


@dataclass(frozen=True)
class TrainConfig:
    """Training: how the model learns, and for how long."""

    preset: Literal["auto", "phrasebook", "tiny", "fast", "compact", "small", "base"] = "auto"
    """Model and training settings to start from; auto chooses by corpus size and time. Other flags override."""
    batch_tokens: int = 4_096
    """Target tokens per optimizer step, padding not counted, all ranks together."""
    accumulate: int | None = None
    """Micro-batches a step is split into. On a CPU they run side by side, by default one for each thread, of at
    least 512 tokens each (128 of features); elsewhere more of them save memory, and one is the default."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """Muon for the matrices inside the layers and AdamW for the rest, or AdamW for all."""
    lr: float = 1e-3
    """Highest learning rate, the same for both optimizers; 4e-3 suits Muon, while AdamW for all wants 1e-3 or less,
    which is what --optimizer adamw alone brings along."""
    schedule: Literal["cosine", "inverse-sqrt"] = "cosine"
    """After the warm-up: cosine to zero at the end of the budget, or the inverse square root of the step."""
    warmup_steps: int = 500
    """Steps over which the learning rate rises from zero; of a time budget alone, at most a fifth of it."""
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
        _require_between(self, 1, 10**9, "batch_tokens", "warmup_steps", "keep_checkpoints", "log_every")
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
        _require(self.lr <= 1_000, "--lr", "at most 1,000", self.lr)
        _require(0 <= self.weight_decay <= 1_000, "--weight-decay", "from 0 to 1,000", self.weight_decay)
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
