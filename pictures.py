"""Pictures, and text drawn as pictures, as the source side; apart from inputs.py so that text is read without Pillow.

Shapes: H and W a strip's height and width in pixels.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import render
import runtime
from config import SourceConfig
from inputs import FONT, Source, Values, content_of, mask_of
from sources import StripEmbedding, num_patches

MAX_LISTED = 20
"""Characters that a warning lists."""


class PictureInput:
    """Strips of a fixed height, cut into patches: pictures as they are, or text drawn when it is needed.

    Drawn text is stored as its code points, a picture as its pixels row by row.
    Source: Salesky et al. 2021, arXiv:2104.08211.
    """

    most_per_token = 4  # a patch holds a word or more

    def __init__(self, config: SourceConfig, font: bytes, max_length: int) -> None:
        self.config, self.font, self.max_length = config, font, max_length
        self.renderer = render.Renderer(font, config.strip_height)
        self.large_renderer = render.Renderer(font, 2 * config.strip_height)

    @classmethod
    def of_font(cls, config: SourceConfig, file: Path | None, max_length: int) -> "PictureInput":
        """With the font of a file, or the packaged one.

        Raises:
            FileNotFoundError, ValueError: the file is missing, or no font.
        """
        return cls(config, render.packaged_font() if file is None else render.read_font(file), max_length)

    def arrow_type(self, is_text: bool) -> str:
        return "int32" if is_text else "uint8"

    def encode(self, sources: Sequence[Source]) -> list[Values]:
        return [self._encode(source) for source in sources]

    def _encode(self, source: Source) -> Values:
        if isinstance(source, str):
            return np.frombuffer(source.encode("utf-32-le"), np.int32)
        if isinstance(source, np.ndarray):
            raise ValueError("this model reads pictures and sentences, got an array of features")
        data, where = content_of(source, "a picture")
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
        return torch.from_numpy(src), mask_of([self._num_patches(strip) for strip in strips])

    def embedding(self, d_model: int) -> nn.Module | None:
        config = self.config
        return StripEmbedding(d_model, config.strip_height, config.patch_width, config.patch_stride)

    def signal(self, values: Values) -> tuple[Tensor, int] | None:
        return torch.from_numpy(self.strip(values)), self.config.patch_stride

    def warnings(self, text: str) -> list[str]:
        found, name = [], text.strip()
        # Path.is_file raises for a sentence too long for a name.
        if name.lower().endswith(render.PICTURE_SUFFIXES) and os.path.isfile(name):  # noqa: PTH113
            found.append(f"{name} is a file; --image translates pictures")
        if missing := self.renderer.missing(text):
            rest = f" … and {len(missing) - MAX_LISTED:,} more" if len(missing) > MAX_LISTED else ""
            listed = " ".join(missing[:MAX_LISTED])
            found.append(f"the font cannot draw some characters: {listed}{rest}")
        return found

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


def _text_of(values: Values) -> str:
    return values.tobytes().decode("utf-32-le")
