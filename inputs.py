"""The source side as data: a cell of the corpus → the array that is stored → what the encoder reads.

Shapes: B rows of a batch, S source tokens (subwords, patches, strided frames), H and W a strip's height and width in
pixels, L frames, C channels.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import render
import runtime
from config import Config, SourceConfig
from sources import FrameEmbedding, StripEmbedding, num_frames, num_patches
from tokenizer import EOS_ID, PAD_ID, Tokenizer

Ids = Sequence[int] | npt.NDArray[np.int32]
Values = npt.NDArray[np.int32] | npt.NDArray[np.uint8] | npt.NDArray[np.float32]
Source = str | bytes | Path | npt.NDArray[np.float32]
"""A sentence; a picture or a .npy file, as bytes or path; features (L, C)."""

FONT = "font.ttf"
STATISTICS = "features.json"
MAX_CHANNELS = 100_000


class Input(Protocol):
    """How sources of one kind become what the encoder reads."""

    def arrow_type(self, is_text: bool) -> str:
        """Type of the stored values, for cells that are text or not."""

    def encode(self, sources: Sequence[Source]) -> list[Values]:
        """What is stored of each source, one-dimensional.

        Raises:
            ValueError: a source of another kind, or broken.
        """

    def length(self, values: Values) -> int:
        """Tokens that the encoder will read."""

    @property
    def most_per_token(self) -> int:
        """Target tokens that a token of the source may become, at most; twenty more are always allowed."""

    def pad(self, rows: Sequence[Values], rng: np.random.Generator | None = None) -> tuple[Tensor, Tensor]:
        """A batch.

        Args:
            rng: for training: sources may be varied, differently each time.
        Returns:
            src: what `embedding` takes, and src_mask (B, 1, 1, S), bool, True on real tokens.
        """

    def embedding(self, d_model: int) -> nn.Module | None:
        """The model's front end, with fresh weights: src → (B, S, D); None where src is token ids."""

    def doubts(self, text: str) -> list[str]:
        """What a reader of this text's translation should know."""

    def save(self, path: Path) -> None:
        """Write what `load` needs into a model folder."""

    @property
    def digest(self) -> str:
        """The same for two inputs only if they store and measure every source alike."""


class TextInput:
    """Subwords."""

    def __init__(self, tokenizer: Tokenizer, bpe_dropout: float = 0.0, max_length: int = 2) -> None:
        """
        Args:
            bpe_dropout: for training; what it makes longer than max_length (EOS counted) stays as it was.
        """
        self.tokenizer, self.bpe_dropout, self.max_length = tokenizer, bpe_dropout, max_length

    most_per_token = 2

    def arrow_type(self, is_text: bool) -> str:
        return "int32"

    def encode(self, sources: Sequence[Source]) -> list[Values]:
        return [np.array(ids, np.int32) for ids in self.tokenizer.encode_batch(_texts(sources))]

    def length(self, values: Values) -> int:
        return len(values) + 1

    def pad(self, rows: Sequence[Values], rng: np.random.Generator | None = None) -> tuple[Tensor, Tensor]:
        ids = cast(Sequence[Ids], rows)
        if rng is not None and self.bpe_dropout:
            ids = [self.resegment(row, int(rng.integers(2**32))) for row in ids]
        return pad_source(ids)

    def resegment(self, ids: Ids, seed: int) -> list[int]:
        """The same text cut anew (BPE-dropout)."""
        whole = [int(i) for i in ids]
        cut = self.tokenizer.encode(self.tokenizer.decode(whole), dropout=self.bpe_dropout, seed=seed)
        return cut if len(cut) < self.max_length else whole

    def embedding(self, d_model: int) -> nn.Module | None:
        return None

    def doubts(self, text: str) -> list[str]:
        return []

    def save(self, path: Path) -> None:
        pass  # tokenizer.json holds it all

    @property
    def digest(self) -> str:
        return f"text {self.tokenizer.digest}"


class PictureInput:
    """Strips of a fixed height, cut into patches: pictures as they are, or text drawn when it is needed.

    Drawn text is stored as its code points, a picture as its pixels row by row.
    Source: Salesky et al. 2021, arXiv:2104.08211.
    """

    def __init__(self, config: SourceConfig, font: bytes, max_length: int) -> None:
        self.config, self.font, self.max_length = config, font, max_length
        self.renderer = render.Renderer(font, config.strip_height)
        self.large_renderer = render.Renderer(font, 2 * config.strip_height)

    most_per_token = 4  # a patch holds a word or more

    def arrow_type(self, is_text: bool) -> str:
        return "int32" if is_text else "uint8"

    def encode(self, sources: Sequence[Source]) -> list[Values]:
        return [self._encode(source) for source in sources]

    def _encode(self, source: Source) -> Values:
        if isinstance(source, str):
            return np.frombuffer(source.encode("utf-32-le"), np.int32)
        if isinstance(source, np.ndarray):
            raise ValueError("this model reads pictures and sentences, got an array of features")
        data, where = _read(source, "a picture")
        return self._aligned(render.picture_strip(data, self.config.strip_height, where)).ravel()

    def _aligned(self, strip: render.Strip) -> render.Strip:
        gap = self.config.gap_pixels
        return render.align_words(strip, gap, self.config.patch_stride) if gap else strip

    def length(self, values: Values) -> int:
        return self._num_patches(self.strip(values))

    def strip(self, values: Values) -> render.Strip:
        """The picture (H, W) of what is stored, uint8, 255 for ink, its words where patches begin."""
        if values.dtype == np.int32:
            return self._aligned(self.renderer.strip(_text_of(values), self.config.font_size))
        return values.astype(np.uint8, copy=False).reshape(self.config.strip_height, -1)

    def _varied(self, values: Values, rng: np.random.Generator) -> render.Strip:
        """The same for training, where a part of the text looks as a picture from elsewhere might."""
        config = self.config
        if values.dtype != np.int32 or rng.random() >= config.varied_share:
            return self.strip(values)
        size = config.font_size + int(rng.integers(-config.font_size_range, config.font_size_range + 1))
        if rng.random() < 0.5:
            drawn = self.renderer.strip(_text_of(values), size)
        else:
            drawn = render.halved(self.large_renderer.strip(_text_of(values), 2 * size))
        strip = self._aligned(render.moved_down(drawn, int(rng.integers(-1, 2))))
        # Learned positions have an end.
        return strip if self._num_patches(strip) <= self.max_length else self.strip(values)

    def _num_patches(self, strip: render.Strip) -> int:
        return num_patches(strip.shape[1], self.config.patch_width, self.config.patch_stride)

    def pad(self, rows: Sequence[Values], rng: np.random.Generator | None = None) -> tuple[Tensor, Tensor]:
        strips = [self.strip(values) if rng is None else self._varied(values, rng) for values in rows]
        # Beyond its own strip there is background for the last patch of each, in any batch.
        src = np.zeros((len(strips), self.config.strip_height, max(s.shape[1] for s in strips)), np.uint8)
        for padded, strip in zip(src, strips, strict=True):
            padded[:, : strip.shape[1]] = strip
        return torch.from_numpy(src), _mask([self._num_patches(strip) for strip in strips])

    def embedding(self, d_model: int) -> nn.Module | None:
        config = self.config
        return StripEmbedding(d_model, config.strip_height, config.patch_width, config.patch_stride)

    def doubts(self, text: str) -> list[str]:
        missing = self.renderer.missing(text)
        return [f"the font cannot draw some characters: {' '.join(missing)}"] if missing else []

    def save(self, path: Path) -> None:
        runtime.write_atomic(path / FONT, self.font)

    @property
    def digest(self) -> str:
        config = self.config
        sizes = (
            config.strip_height,
            config.patch_width,
            config.patch_overlap,
            config.font_size,
            config.gap_pixels,
        )
        drawn_by = render.PILLOW  # its glyphs, and so the lengths, may differ from another release's
        return f"image {sizes} {drawn_by} {hashlib.blake2b(self.font, digest_size=16).hexdigest()}"


class FeatureInput:
    """Feature sequences (L, C), each channel brought to mean 0 and deviation 1 by what training rows have.

    Stored as they came, frame by frame.
    """

    def __init__(self, stride: int, mean: npt.NDArray[np.float32], std: npt.NDArray[np.float32]) -> None:
        """
        Args:
            stride: frames to a token. mean, std: of each channel, (C,).
        """
        self.stride, self.mean, self.std = stride, mean, std

    @classmethod
    def of_rows(cls, stride: int, sources: Iterable[Source]) -> "FeatureInput":
        """With the statistics of the training rows, read one after another."""
        import cells  # what reads corpora takes half a second to import, and text needs none of it

        count, total, squares = 0, np.zeros(0), np.zeros(0)
        for source in sources:
            frames = cells.load_frames(cast(bytes, source), "a training row").astype(np.float64)
            if not count:
                shift = frames.mean(0)  # so that squares of large values do not swallow small deviations
                total, squares = np.zeros_like(shift), np.zeros_like(shift)
            centred = frames - shift
            count += len(frames)
            total += centred.sum(0)
            squares += (centred**2).sum(0)
        mean = total / count
        std = np.sqrt(np.maximum(squares / count - mean**2, 0))
        if len(mean) > MAX_CHANNELS:
            raise ValueError(f"features have {len(mean):,} channels; at most {MAX_CHANNELS:,} are allowed")
        # A channel that never changes tells nothing; it becomes zero. Float32 holds no finer changes.
        std[std <= np.maximum(1e-6 * np.abs(mean + shift), np.finfo(np.float32).tiny)] = 1
        return cls(stride, (mean + shift).astype(np.float32), std.astype(np.float32))

    most_per_token = 8  # a frame may stand for more than a sound

    def arrow_type(self, is_text: bool) -> str:
        return "float32"

    def encode(self, sources: Sequence[Source]) -> list[Values]:
        return [self._encode(source) for source in sources]

    def _encode(self, source: Source) -> Values:
        import cells

        C = len(self.mean)
        if isinstance(source, str):
            raise ValueError(f"this model reads features (frames × {C}), got text; give a .npy file")
        frames = source
        where = "features"
        if not isinstance(frames, np.ndarray):
            data, where = _read(frames, "features")
            frames = cells.load_frames(data, where)
        if frames.ndim != 2 or frames.shape[1] != C or not len(frames):
            raise ValueError(
                f"{where}: {' × '.join(map(str, frames.shape))}, but this model reads frames × {C}"
            )
        if not np.isfinite(frames).all():
            raise ValueError(f"{where}: holds values that are not finite")
        return frames.astype(np.float32).ravel()

    def length(self, values: Values) -> int:
        return num_frames(len(values) // len(self.mean), self.stride)

    def normalised(self, values: Values) -> npt.NDArray[np.float32]:
        """Frames (L, C) of what is stored, as the encoder gets them."""
        frames: npt.NDArray[np.float32] = (values.reshape(-1, len(self.mean)) - self.mean) / self.std
        return frames

    def pad(self, rows: Sequence[Values], rng: np.random.Generator | None = None) -> tuple[Tensor, Tensor]:
        frames = [self.normalised(values) for values in rows]
        src = np.zeros((len(rows), max(map(len, frames)), len(self.mean)), np.float32)
        for padded, real in zip(src, frames, strict=True):
            padded[: len(real)] = real
        return torch.from_numpy(src), _mask([num_frames(len(real), self.stride) for real in frames])

    def embedding(self, d_model: int) -> nn.Module | None:
        return FrameEmbedding(d_model, len(self.mean), self.stride)

    def doubts(self, text: str) -> list[str]:
        return []

    def save(self, path: Path) -> None:
        record = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        runtime.write_atomic(path / STATISTICS, json.dumps(record, indent=2) + "\n")

    @property
    def digest(self) -> str:
        return f"features {self.stride} {len(self.mean)}"


def create(config: Config, tokenizer: Tokenizer, sources: Iterable[Source]) -> Input:
    """The input of a new model.

    Args:
        sources: the source cells of the training rows; read for features only, once.
    """
    match config.data.source:
        case "text":
            return TextInput(tokenizer, config.train.bpe_dropout, config.data.max_length)
        case "image":
            path = config.source.font
            font = render.packaged_font() if path is None else render.read_font(Path(path))
            return PictureInput(config.source, font, config.data.max_length)
        case "features":
            return FeatureInput.of_rows(config.source.frame_stride, sources)


def load(config: Config, tokenizer: Tokenizer, path: Path) -> Input:
    """The input of a model folder.

    Raises:
        FileNotFoundError, ValueError: the folder lacks a file, or it is damaged.
    """
    if config.data.source == "text":
        return create(config, tokenizer, ())
    file = path / (FONT if config.data.source == "image" else STATISTICS)
    if not file.is_file():
        raise FileNotFoundError(
            f"{path} has no {file.name}, which a model of this source needs; copy it whole"
        )
    if config.data.source == "image":
        return PictureInput(config.source, render.read_font(file), config.data.max_length)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        mean, std = (np.array(record[name], np.float32) for name in ("mean", "std"))
        is_good = mean.ndim == 1 and 0 < len(mean) <= MAX_CHANNELS and mean.shape == std.shape
        if not (is_good and np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
            raise ValueError("it needs a finite mean and a positive std for each channel")
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ValueError(f"{file} does not hold the statistics of features ({error}); copy it anew") from None
    return FeatureInput(config.source.frame_stride, mean, std)


def pad_source(src_ids: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Token ids of different lengths as one tensor, each closed by EOS.

    Args:
        src_ids: B token id lists without special ids; an empty one is allowed.
    Returns:
        src (B, S), int64, and src_mask (B, 1, 1, S), bool, True on real tokens; no row is all padding.
    """
    lengths = lengths_of(src_ids)
    return torch.from_numpy(closed(padded(src_ids, lengths), lengths)), _mask(lengths + 1)


def lengths_of(ids: Sequence[Ids]) -> npt.NDArray[np.int64]:
    """Length of each list, (B,)."""
    return np.fromiter(map(len, ids), np.int64, len(ids))


def padded(ids: Sequence[Ids], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """(B, longest + 1): each list, then padding."""
    rows = np.full((len(ids), int(lengths.max()) + 1), PAD_ID, dtype=np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.concatenate(
        [np.asarray(row, np.int32) for row in ids]
    )
    return rows


def closed(rows: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same with EOS after each list."""
    ended = rows.copy()
    ended[np.arange(len(ended)), lengths] = EOS_ID
    return ended


def _mask(lengths: Sequence[int] | npt.NDArray[np.int64]) -> Tensor:
    """(B, 1, 1, S), bool, True on the first lengths[b] tokens."""
    real = torch.as_tensor(lengths)
    return (torch.arange(int(real.max())) < real[:, None])[:, None, None, :]


def _text_of(values: Values) -> str:
    return values.tobytes().decode("utf-32-le")


def _texts(sources: Sequence[Source]) -> list[str]:
    for source in sources:
        if not isinstance(source, str):
            given = "a picture or features" if isinstance(source, bytes | Path) else "an array"
            raise ValueError(f"this model reads text, got {given}; give it sentences")
    return cast(list[str], list(sources))


def _read(source: bytes | Path, wanted: str) -> tuple[bytes, str]:
    """Content and name of a file, or of bytes that were one."""
    if isinstance(source, bytes):
        return source, wanted
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; name {wanted} to translate")
    return path.read_bytes(), str(path)
