"""Text to pictures and pictures to strips: one line of text as grey pixels of a fixed height; no model, no corpus.

A strip is (height, width), uint8: 0 where there is nothing, 255 where there is ink.
"""

import math
import threading
import unicodedata
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image, ImageDraw, ImageFont, ImageOps
from PIL.PngImagePlugin import PngInfo

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
# Pillow's names of the same; others that it reads are refused (EPS would start another program).
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
ALLOWED = "allowed: PNG, JPEG, GIF, BMP, TIFF, WebP"
# A few kilobytes can claim to be gigabytes of pixels.
MAX_PIXELS, MAX_WIDTH = 50_000_000, 100_000
# Less contrast than this (of 255) is nothing that could be read.
FAINT = 32
# Less ink than this is none: what scaling and JPEG leave between words.
NOISE = 24
PILLOW = PIL.__version__
# A note in the pictures of `png`, so that even a strip full of ink is read back as it was.
INK_KEY, DARK_INK = "Ink", "dark"

Strip = npt.NDArray[np.uint8]  # (height, width), 0 = background, 255 = ink


class _Glyph(NamedTuple):
    """One character in one size."""

    ink: Strip | None
    """The smallest box with all its ink; None where there is none."""
    top: int
    """Row of the strip where the box begins."""
    left: int
    """Columns from the pen to the box; negative where it reaches back over its neighbour."""
    advance: int
    """Columns that the pen moves on."""


class _Face(NamedTuple):
    """A font in one size, and the glyphs that have been drawn with it."""

    font: ImageFont.FreeTypeFont
    baseline: int
    glyphs: dict[str, _Glyph]


class Renderer:
    """Draws lines of text in one font; may be used by several threads.

    Scripts whose letters join or change order (Arabic, Devanagari, …) are drawn letter by letter, left to right.

    Args:
        font: content of a TrueType or OpenType file.
        height: rows of every strip, whatever the size of the letters.
    Raises:
        ValueError: the font cannot be read.
    """

    def __init__(self, font: bytes, height: int) -> None:
        self.font, self.height = font, height
        self._faces: dict[int, _Face] = {}
        # FreeType draws in the font object itself; what has been drawn already is read without the lock.
        self._freetype = threading.Lock()
        self._face(height)

    def strip(self, text: str, size: int) -> Strip:
        """Draw a text on one line.

        The baseline is in the same row for all texts of a size, and the font's ascent and descent are centred;
        what does not fit into the height is cut. Each white-space character, line breaks and tabs among them,
        is a space; control and format characters are nothing; a character that the font lacks is its box.

        Args:
            size: of the font, pixels per em.
        Returns:
            (height, width); the width is the text's advance, and 1 (of background) where nothing moves the pen.
        Raises:
            ValueError: the font has no such size.
        """
        face = self._face(size)
        drawn = face.glyphs
        glyphs = [drawn.get(c) or self._draw(face, c) for c in _normal(text)]
        width = sum([glyph.advance for glyph in glyphs]) or 1
        # A margin of an em on both sides for what reaches out of its own place.
        canvas = np.zeros((self.height, width + 2 * size), np.uint8)
        pen = reach = size
        for ink, top, left, advance in glyphs:
            if ink is not None:
                start, (rows, columns) = pen + left, ink.shape
                place = canvas[top : top + rows, start : start + columns]
                place[:] = ink if start >= reach else _over(ink, place)
                reach = max(reach, start + columns)
            pen += advance
        return canvas[:, size : size + width].copy()

    def missing(self, text: str) -> list[str]:
        """Characters of a text that the font cannot draw, each once; white space and controls are no such."""
        return [
            c
            for c in dict.fromkeys(_normal(text))
            if ord(c) not in self._characters and not c.isspace() and not _is_invisible(c)
        ]

    @cached_property
    def _characters(self) -> frozenset[int]:
        from matplotlib.ft2font import FT2Font  # 0.1 s that drawing does without

        return frozenset(FT2Font(BytesIO(self.font)).get_charmap())

    def _face(self, size: int) -> _Face:
        face = self._faces.get(size)
        if face is None:
            try:
                # Not the layout of libraqm, which kerns and joins letters: some machines have it, others not, and
                # all should draw alike. The basic one places the same glyphs at whole pixels.
                basic = ImageFont.Layout.BASIC
                with self._freetype:
                    font = ImageFont.truetype(BytesIO(self.font), size, layout_engine=basic)
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"the font cannot be used at {size} pixels ({error}); give a TrueType or OpenType font"
                ) from None
            ascent, descent = font.getmetrics()
            baseline = (self.height - ascent - descent) // 2 + ascent
            face = self._faces.setdefault(size, _Face(font, baseline, {}))
        return face

    def _draw(self, face: _Face, c: str) -> _Glyph:
        """Draw a character for the first time; five times faster than drawing whole lines, with equal pixels."""
        if _is_invisible(c):
            return face.glyphs.setdefault(c, _Glyph(None, 0, 0, 0))
        shown = " " if c.isspace() else c
        with self._freetype:
            advance = math.ceil(face.font.getlength(shown))
            margin = int(face.font.size)
            image = Image.new("L", (advance + 2 * margin, self.height))
            at = (margin, face.baseline)
            ImageDraw.Draw(image).text(at, shown, fill=255, font=face.font, anchor="ls")
        pixels = np.asarray(image)
        rows, columns = np.flatnonzero(pixels.any(1)), np.flatnonzero(pixels.any(0))
        if len(rows):
            (top, bottom), (left, right) = rows[[0, -1]].tolist(), columns[[0, -1]].tolist()
            ink = pixels[top : bottom + 1, left : right + 1].copy()
            glyph = _Glyph(ink, top, left - margin, advance)
        else:
            glyph = _Glyph(None, 0, 0, advance)
        return face.glyphs.setdefault(c, glyph)


def packaged_font() -> bytes:
    """DejaVu Sans, which matplotlib brings: Latin, Greek, Cyrillic and more, 5,000 characters."""
    import matplotlib

    return (Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf").read_bytes()


def read_font(path: Path) -> bytes:
    """Content of a font file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no font.
    """
    if not path.is_file():
        what = "a folder" if path.is_dir() else "not there"
        raise FileNotFoundError(f"{path} is {what}; name a TrueType or OpenType font file")
    font = path.read_bytes()
    try:
        Renderer(font, 32).missing("a")  # its characters are read by another library
    except (ValueError, RuntimeError):
        raise ValueError(f"{path} is no font; name a TrueType or OpenType font file") from None
    return font


def picture_strip(data: bytes, height: int, where: str) -> Strip:
    """Read a picture of one line of text.

    The first frame counts, turned as its EXIF orientation says; what is transparent is white, or black where
    nothing could be seen on white. The middle value of the outermost pixels is the ground, which becomes 0: dark ink
    on a light ground and light ink on a dark one give the same strip. The darkest ink becomes 255. Another height is
    scaled, keeping the ratio of the sides. A strip that `png` has written comes back exactly.

    Args:
        data: content of a PNG, JPEG, GIF, BMP, TIFF or WebP file.
        where: what the picture is read from, for the message.
    Returns:
        (height, width), width at least 1.
    Raises:
        ValueError: no picture, a damaged one, or one with too many pixels or too wide a one for its height.
    """
    with _opened(data, where) as image:
        _require_pixels(*image.size, where)
        if image.mode in ("I", "F"):
            raise ValueError(f"{where}: pixels of 32 bits; save the picture with 8 or 16 bits a channel")
        is_ours = image.info.get(INK_KEY) == DARK_INK
        try:
            grey = _grey(ImageOps.exif_transpose(image))
        except Exception as error:  # a damaged file makes Pillow raise nearly anything
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{where}: the {image.format} picture is cut off or damaged ({reason}); {ALLOWED}"
            ) from None
    rows, columns = grey.shape
    width = max(1, round(columns * height / rows))
    if width > MAX_WIDTH:
        raise ValueError(
            f"{where}: {columns:,} × {rows:,} pixels would be {width:,} wide at a height of {height}; allowed are"
            f" {MAX_WIDTH:,}; give one line of text, cut into several pictures"
        )
    border = np.concatenate((grey[0], grey[-1], grey[:, 0], grey[:, -1]))
    if is_ours:
        strip = 255 - grey
    else:
        ground = int(np.median(border))
        strip = _stretched(
            ground - grey.astype(np.int16) if ground >= 128 else grey.astype(np.int16) - ground
        )
    if rows != height:
        scaled = Image.fromarray(strip).resize((width, height), Image.Resampling.LANCZOS)
        strip = np.asarray(scaled)
    return np.array(strip)  # one that can be written to


def align_words(strip: Strip, gap: int, step: int) -> Strip:
    """Move words so that each begins where a patch does: the same word is then the same patches anywhere.

    Args:
        gap: columns with next to no ink that part two words, at least 1.
        step: columns from patch to patch.
    Returns:
        (height, width), without columns before the first word and after the last. At least `gap` columns stay
        between words, so that aligning once more changes nothing. A strip without ink is one column.
    Source: structured rendering, Lotz et al. 2023, arXiv:2311.00522; here by the ink, so for pictures too.
    """
    inked = np.flatnonzero((strip > NOISE).any(0))
    if not len(inked):
        return strip[:, :1].copy()
    breaks = np.flatnonzero(np.diff(inked) > gap)
    firsts, lasts = inked[np.append(0, breaks + 1)], inked[np.append(breaks, len(inked) - 1)]
    widths = lasts + 1 - firsts
    starts = np.cumsum(np.append(0, -(-(widths + gap) // step) * step)).tolist()
    aligned = np.zeros((len(strip), starts[-2] + int(widths[-1])), np.uint8)
    for start, first, last in zip(starts, firsts.tolist(), lasts.tolist(), strict=False):
        aligned[:, start : start + last + 1 - first] = strip[:, first : last + 1]
    return aligned


def halved(strip: Strip) -> Strip:
    """Half as high and wide, each pixel the mean of four: how a larger picture arrives."""
    rows, columns = strip.shape
    padded = np.pad(strip, ((0, rows % 2), (0, columns % 2))).astype(np.uint16)
    sums = padded[::2, ::2] + padded[1::2, ::2] + padded[::2, 1::2] + padded[1::2, 1::2]
    return (sums // 4).astype(np.uint8)


def moved_down(strip: Strip, rows: int) -> Strip:
    """Moved down by some rows, up if negative; what leaves the strip is lost."""
    moved, height = np.zeros_like(strip), len(strip)
    rows = max(-height, min(rows, height))
    moved[max(0, rows) : height + min(0, rows)] = strip[max(0, -rows) : height - max(0, rows)]
    return moved


def png(strip: Strip) -> bytes:
    """A PNG file of a strip, dark ink on white; `picture_strip` of it gives the strip back."""
    note, file = PngInfo(), BytesIO()
    note.add_text(INK_KEY, DARK_INK)
    Image.fromarray(255 - strip).save(file, "PNG", pnginfo=note)
    return file.getvalue()


def _normal(text: str) -> str:
    """The text so that what looks the same is the same: composed letters, a line break of one character."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


def _is_invisible(c: str) -> bool:
    """Controls that are no white space, and characters that only say how others are to be shown."""
    is_selector = "\ufe00" <= c <= "\ufe0f" or "\U000e0100" <= c <= "\U000e01ef"
    return is_selector or (unicodedata.category(c) in ("Cc", "Cf") and not c.isspace())


def _over(ink: Strip, place: Strip) -> Strip:
    """Ink on top of other ink, in Pillow's integer arithmetic."""
    seen = place.astype(np.uint32) * (255 - ink) + 128
    return (ink + (((seen >> 8) + seen) >> 8)).astype(np.uint8)


def _opened(data: bytes, where: str) -> Image.Image:
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ValueError(f"{where}: too large a picture; {_pixels_allowed()}") from None
    except Exception:  # a damaged head makes Pillow raise nearly anything
        what = "no picture that can be read" if data else "an empty file, no picture"
        raise ValueError(f"{where}: {what}; {ALLOWED} (convert others, like SVG and PDF)") from None


def _require_pixels(columns: int, rows: int, where: str) -> None:
    if columns * rows > MAX_PIXELS:
        raise ValueError(f"{where}: a picture of {columns:,} × {rows:,} pixels; {_pixels_allowed()}")


def _pixels_allowed() -> str:
    return f"at most {MAX_PIXELS:,} are allowed; scale it down or cut it"


def _grey(image: Image.Image) -> Strip:
    """Brightness of every pixel, (rows, columns); transparency is gone."""
    if image.mode.startswith("I;16"):
        return (np.asarray(image) >> 8).astype(np.uint8)
    if image.has_transparency_data:
        on_white = _flattened(image, 255)
        return on_white if np.ptp(on_white) >= FAINT else _flattened(image, 0)
    return np.asarray(image.convert("L"))


def _stretched(ink: npt.NDArray[np.int16]) -> Strip:
    """Ink from 0 for what is no darker than the ground to 255 for the darkest; faint ink stays as it is."""
    darkest = int(ink.max())
    return (ink.clip(0) * (255 / darkest if darkest >= FAINT else 1)).round().astype(np.uint8)


def _flattened(image: Image.Image, ground: int) -> Strip:
    paper = Image.new("RGBA", image.size, (ground, ground, ground, 255))
    return np.asarray(Image.alpha_composite(paper, image.convert("RGBA")).convert("L"))
