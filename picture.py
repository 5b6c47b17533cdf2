"""The cross-attention picture: which source tokens each target token was written from."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, QUIET, LINE = "#1f2933", "#616e7c", "#dde2e8"
# Tried in turn for a character, where installed; matplotlib brings the first.
FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Arial Unicode MS")
MAX_PIXELS = 6_000


def draw_attention(
    source: Sequence[str],
    target: Sequence[str],
    weights: Tensor,
    signal: Tensor | None = None,
    step: int = 1,
) -> "Figure":
    """Draw weights as a source × target grid; `figure.savefig(path)` writes it.

    Args:
        source: S tokens as `Tokenizer.pieces` gives them. target: T tokens, likewise.
        weights: (T, S), between 0 and 1.
        signal: what the source tokens were cut from, (rows, columns), drawn above the grid: a strip of text, uint8,
            255 for ink, or features, float32, the first channel at the bottom.
        step: columns of `signal` from one source token to the next.
    Raises:
        ValueError: without a signal, weights of another size than the tokens.
    """
    if signal is not None:
        return _draw_under_signal(signal, step, _labels(target), weights)
    T, S = weights.shape
    if (len(target), len(source)) != (T, S):
        raise ValueError(
            f"weights of {T} × {S} do not fit {len(target)} target and {len(source)} source tokens"
        )
    return _draw_grid(_labels(source), _labels(target), weights)


def _draw_grid(columns: Sequence[str], rows: Sequence[str], weights: Tensor) -> "Figure":
    """A cell for each pair of tokens, and the scale of their shades on the right."""
    T, S = weights.shape
    size, cell = (11, 0.38) if max(S, T) <= 60 else (7, 0.2)  # points, inches
    character = 0.6 * size / 72
    left = 0.55 + character * max(map(len, rows))
    top = 0.95 + character * 0.75 * max(map(len, columns))
    right, bottom = max(0.95, 3.6 - S * cell), 0.2
    width, height = left + S * cell + right, top + T * cell + bottom

    figure = _sheet(width, height, "each target token (row) in % of the source (columns)")
    axes = figure.add_axes((left / width, bottom / height, S * cell / width, T * cell / height))
    image = axes.imshow(weights.float().numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    _name_rows_and_columns(axes, columns, rows, size)
    _write_largest(axes, weights, size - 3)

    bar_height = min(T * cell, 3.0)
    x, y = (left + S * cell + 0.25) / width, 1 - (top + bar_height) / height
    place = (x, y, 0.12 / width, bar_height / height)
    bar = figure.colorbar(image, cax=figure.add_axes(place), ticks=(0, 0.5, 1), format="{x:.0%}")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, colors=QUIET)
    return figure


def _name_rows_and_columns(axes: "Axes", columns: Sequence[str], rows: Sequence[str], size: int) -> None:
    """Source tokens on top, target tokens on the left, lines between their cells."""
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, pad=4)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    for text in axes.get_xticklabels() + axes.get_yticklabels():
        text.set(color=INK, fontsize=size, fontfamily=_fonts(), parse_math=False)
    axes.set_xticks([i + 0.5 for i in range(len(columns) - 1)], minor=True)
    axes.set_yticks([i + 0.5 for i in range(len(rows) - 1)], minor=True)
    axes.tick_params(which="minor", length=0)
    axes.grid(which="minor", color=LINE, linewidth=0.7)
    axes.spines[:].set_color(LINE)
    axes.set_xlabel("source", color=QUIET, fontsize=9)
    axes.set_ylabel("target", color=QUIET, fontsize=9)


def _write_largest(axes: "Axes", weights: Tensor, size: int) -> None:
    """The largest weight of each row, in per cent."""
    for row, values in enumerate(weights.tolist()):
        column = max(range(len(values)), key=values.__getitem__)
        ink = "white" if values[column] > 0.5 else INK
        percent = f"{100 * values[column]:.0f}"
        axes.text(column, row, percent, ha="center", va="center", color=ink, fontsize=size)


def _draw_under_signal(signal: Tensor, step: int, rows: Sequence[str], weights: Tensor) -> "Figure":
    """The signal with the borders of its tokens, and under it the weights, column below column."""
    (T, S), (height, columns) = weights.shape, signal.shape
    is_strip = signal.dtype == torch.uint8
    end = max(columns, S * step)
    left, right, top, gap, bottom = 0.5 + 0.09 * max(map(len, rows)), 0.3, 0.75, 0.12, 0.45
    inner = min(14.0, max(5.0, 0.26 * S))
    above = inner * height / end if is_strip else 1.6
    below = 0.24 * T
    width, total = left + inner + right, top + above + gap + below + bottom
    figure = _sheet(width, total, "each target token (row) over the source (columns); darker is more")
    place = (left / width, (bottom + below + gap) / total, inner / width, above / total)
    upper = figure.add_axes(place, xlim=(0, end), yticks=[])
    _draw_signal(upper, signal, borders=range(0, S * step + 1, step))
    lower = figure.add_axes((left / width, bottom / total, inner / width, below / total), xlim=(0, end))
    lower.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto", extent=(0, S * step, T, 0))
    lower.set_yticks(
        [i + 0.5 for i in range(T)], rows, color=INK, fontsize=10, fontfamily=_fonts(), parse_math=False
    )
    every = max(1, S // 12)
    lower.set_xticks([(i + 0.5) * step for i in range(0, S, every)], [str(i + 1) for i in range(0, S, every)])
    lower.tick_params(length=0, labelsize=9)
    what = f"patch of {step} pixels" if is_strip else f"{step} frames"
    lower.set_xlabel(f"source token ({what} each)", color=QUIET, fontsize=9)
    lower.spines[:].set_color(LINE)
    return figure


def _draw_signal(axes: "Axes", signal: Tensor, borders: Sequence[int]) -> None:
    """A strip with lines at the borders of its tokens, or features with marks below them."""
    pixels, (height, columns) = signal.numpy(), signal.shape
    if signal.dtype == torch.uint8:
        axes.imshow(pixels, cmap="Greys", aspect="auto", extent=(0, columns, height, 0))
        axes.grid(axis="x", color="#7aa6d8", linewidth=0.6)
    else:
        axes.imshow(pixels, cmap="magma", aspect="auto", origin="lower", extent=(0, columns, 0, height))
    axes.set_xticks(borders, labels=[])
    axes.tick_params(length=3, color=QUIET)
    axes.spines[:].set_color(LINE)


def _sheet(width: float, height: float, caption: str) -> "Figure":
    """An empty figure of this size in inches, with its title."""
    # matplotlib takes half a second to import. No pyplot: it keeps every figure alive and wants a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), dpi=min(160, MAX_PIXELS / max(width, height)), facecolor="white")
    FigureCanvasAgg(figure)
    left, top = 0.15 / width, 1 - 0.15 / height
    figure.text(left, top, "Cross-attention", va="top", color=INK, fontsize=13, weight="bold")
    figure.text(left, top - 0.27 / height, caption, va="top", color=QUIET, fontsize=8.5)
    return figure


def _labels(pieces: Sequence[str]) -> list[str]:
    """Pieces as words: the space in front goes, and a word that goes on in the next piece gets a hyphen."""
    labels = []
    for piece, following in pairwise([*pieces, "▁"]):
        label = piece.removeprefix("▁") or "␣"
        goes_on = label[-1].isalpha() and following[0].isalpha()
        labels.append("end" if piece == "⟨eos⟩" else _drawable(label) + "-" * goes_on)
    return labels


def _drawable(label: str) -> str:
    """Characters that no font here can draw, by number."""
    return "".join(c if ord(c) in _characters() else f"U+{ord(c):04X}" for c in label)


@cache
def _fonts() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return tuple(font for font in FONTS if font in installed)


@cache
def _characters() -> frozenset[int]:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset().union(*(FT2Font(findfont(font)).get_charmap() for font in _fonts()))
