"""The source side as data: a cell of the corpus → the array that is stored → what the encoder reads.

Shapes: B rows of a batch, S source tokens (subwords, patches, strided frames), H and W a strip's height and width in
pixels, L frames, C channels.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import runtime
from sources import FrameEmbedding, num_frames
from tokenizer import EOS_ID, PAD_ID, Tokenizer

Ids = Sequence[int] | npt.NDArray[np.int32]
Values = npt.NDArray[np.int32] | npt.NDArray[np.uint8] | npt.NDArray[np.float32]
Source = str | bytes | Path | npt.NDArray[np.float32]
"""A sentence; a picture or a .npy file, as bytes or path; features (L, C)."""

# Files of a model folder that hold what a source of another kind than text is read with.
STATISTICS, FONT = "features.json", "font.ttf"
MAX_CHANNELS = 100_000
MAX_BYTES = 64 * MAX_CHANNELS  # of the file: two numbers for each channel
# The squares of what the encoder makes of larger values do not fit into float32.
MAX_DEVIATIONS = 1e15


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
        """The model's front end, with initial weights: src → (B, S, D); None where src is token ids."""

    def signal(self, values: Values) -> tuple[Tensor, int] | None:
        """What patches or frames were cut from, and its columns from one source token to the next; None for text."""

    def warnings(self, text: str) -> list[str]:
        """What a reader of this text's translation should know."""

    def save(self, path: Path) -> None:
        """Write what `model_folder.read_source` needs into a model folder."""

    @property
    def digest(self) -> str:
        """The same for two inputs only if they store and measure every source alike."""


class TextInput:
    """Subwords."""

    most_per_token = 2

    def __init__(self, tokenizer: Tokenizer, bpe_dropout: float = 0.0, max_length: int = 2) -> None:
        """
        Args:
            bpe_dropout: for training; what it makes longer than max_length (EOS counted) stays as it was.
        """
        self.tokenizer, self.bpe_dropout, self.max_length = tokenizer, bpe_dropout, max_length

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

    def signal(self, values: Values) -> tuple[Tensor, int] | None:
        return None

    def warnings(self, text: str) -> list[str]:
        return []

    def save(self, path: Path) -> None:
        pass  # tokenizer.json holds it all

    @property
    def digest(self) -> str:
        return f"text {self.tokenizer.digest}"


class FeatureInput:
    """Feature sequences (L, C), each channel brought to mean 0 and deviation 1 by what training rows have.

    Stored as they came, frame by frame.
    """

    most_per_token = 8  # a frame may stand for more than a sound

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

    @classmethod
    def of_file(cls, stride: int, file: Path) -> "FeatureInput":
        """With the statistics that `save` has written.

        Raises:
            ValueError: the file is damaged.
        """
        try:
            record = cast(dict[str, list[float]], runtime.read_json(file, MAX_BYTES))
            mean, std = (np.array(record[name], np.float32) for name in ("mean", "std"))
            is_good = mean.ndim == 1 and 0 < len(mean) <= MAX_CHANNELS and mean.shape == std.shape
            if not (is_good and np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
                raise ValueError("it needs a finite mean and a positive std for each channel")
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ValueError(
                f"{file} does not hold the statistics of features ({error}); copy it anew"
            ) from None
        return cls(stride, mean, std)

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
            data, where = content_of(frames, "features")
            frames = cells.load_frames(data, where)
        if frames.dtype.kind not in "iuf":
            raise ValueError(f"{where} must hold numbers, got {frames.dtype!s:.40}")
        if frames.ndim != 2 or frames.shape[1] != C or not len(frames):
            raise ValueError(
                f"{where}: {' × '.join(map(str, frames.shape))}, but this model reads frames × {C}"
            )
        if not np.isfinite(frames).all():
            raise ValueError(f"{where}: holds values that are not finite in float32")
        with np.errstate(over="ignore"):  # infinite is too far
            values = frames.astype(np.float32).ravel()
        far = np.argwhere(~(np.abs(self.normalised(values)) <= MAX_DEVIATIONS))
        if len(far):
            frame, channel = far[0].tolist()
            given = f"frame {frame + 1}, channel {channel + 1} is {frames[frame, channel]:g}"
            known = f"mean {self.mean[channel]:g}, deviation {self.std[channel]:g}"
            raise ValueError(
                f"{where}: {given}, but this model's training rows were far smaller ({known});"
                " make features as for training"
            )
        return values

    def length(self, values: Values) -> int:
        return num_frames(len(values) // len(self.mean), self.stride)

    def normalised(self, values: Values) -> npt.NDArray[np.float32]:
        """Frames (L, C) of what is stored, as the encoder gets them."""
        frames = (values.reshape(-1, len(self.mean)).astype(np.float64) - self.mean) / self.std
        with np.errstate(over="ignore"):  # `encode` refuses what becomes infinite
            return frames.astype(np.float32)

    def pad(self, rows: Sequence[Values], rng: np.random.Generator | None = None) -> tuple[Tensor, Tensor]:
        frames = [self.normalised(values) for values in rows]
        src = np.zeros((len(rows), max(map(len, frames)), len(self.mean)), np.float32)
        for padded, real in zip(src, frames, strict=True):
            padded[: len(real)] = real
        return torch.from_numpy(src), mask_of([num_frames(len(real), self.stride) for real in frames])

    def embedding(self, d_model: int) -> nn.Module | None:
        return FrameEmbedding(d_model, len(self.mean), self.stride)

    def signal(self, values: Values) -> tuple[Tensor, int] | None:
        return torch.from_numpy(self.normalised(values)).T, self.stride

    def warnings(self, text: str) -> list[str]:
        return []

    def save(self, path: Path) -> None:
        record = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        runtime.write_atomic(path / STATISTICS, json.dumps(record, indent=2) + "\n")

    @property
    def digest(self) -> str:
        return f"features {self.stride} {len(self.mean)}"


def pad_source(src_ids: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Token ids of different lengths as one tensor, each closed by EOS.

    Args:
        src_ids: B token id lists without special ids; an empty one is allowed.
    Returns:
        src (B, S), int64, and src_mask (B, 1, 1, S), bool, True on real tokens; no row is all padding.
    """
    lengths = lengths_of(src_ids)
    return torch.from_numpy(closed(padded(src_ids, lengths), lengths)), mask_of(lengths + 1)


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


def mask_of(lengths: Sequence[int] | npt.NDArray[np.int64]) -> Tensor:
    """(B, 1, 1, S), bool, True on the first lengths[b] tokens."""
    real = torch.as_tensor(lengths)
    return (torch.arange(int(real.max())) < real[:, None])[:, None, None, :]


def _texts(sources: Sequence[Source]) -> list[str]:
    for source in sources:
        if not isinstance(source, str):
            given = "a picture or features" if isinstance(source, bytes | Path) else "an array"
            raise ValueError(f"this model reads text, got {given}; give it sentences")
    return cast(list[str], list(sources))


def content_of(source: bytes | Path, wanted: str) -> tuple[bytes, str]:
    """Content and name of a file, or of bytes that were one.

    Raises:
        FileNotFoundError: there is no such file; the message says that it should be `wanted`.
    """
    if isinstance(source, bytes):
        return source, wanted
    if not source.is_file():
        what = "a folder" if source.is_dir() else "no ordinary file" if source.exists() else "not there"
        raise FileNotFoundError(f"{source} is {what}; name {wanted} to translate")
    return source.read_bytes(), str(source)
