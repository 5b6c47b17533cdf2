"""The clock that all training loops share: when to stop, and how many real target tokens a second."""

import time
from collections.abc import Sequence
from typing import NamedTuple

NUM_WINDOWS = 5


class Shape(NamedTuple):
    """One batch that went through the model, as it was padded."""

    rows: int
    src_length: int
    tgt_length: int
    projected: int
    """Positions for which logits were computed."""
    num_tokens: int
    """Real target tokens: EOS counted, padding not."""


class Clock:
    """Counts steps, seconds and tokens of a training loop.

    Args:
        steps: how many steps after the warm-up, or None.
        minutes: how many minutes in all, or None.
    """

    def __init__(self, steps: int | None, minutes: float | None) -> None:
        if (steps is None) == (minutes is None):
            raise ValueError("give either --steps or --minutes, how long each engine trains")
        if steps is not None and steps < NUM_WINDOWS:
            raise ValueError(f"--steps must be at least {NUM_WINDOWS}, one a window, got {steps}")
        if minutes is not None and minutes <= 0:
            raise ValueError(f"--minutes must be more than 0, got {minutes}")
        self.steps, self.minutes = steps, minutes
        self.warm_up = 0 if steps is None else max(2, steps // 5)
        self.marks: list[tuple[float, int]] = []
        """Time and tokens so far: at the start, and after each step."""
        self.shapes: list[list[Shape]] = []
        """Batches of each step."""

    def start(self) -> None:
        """Start: everything before it, like reading the corpus, is not counted."""
        self.marks = [(time.perf_counter(), 0)]

    def tick(self, shapes: Sequence[Shape]) -> None:
        """A step is done."""
        self.marks.append((time.perf_counter(), self.marks[-1][1] + sum(s.num_tokens for s in shapes)))
        self.shapes.append(list(shapes))

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.marks[0][0]

    @property
    def progress(self) -> float:
        """Share of the budget used up, 0 to 1."""
        if self.minutes is not None:
            return min(1.0, self.elapsed_s / (60 * self.minutes))
        assert self.steps is not None
        return min(1.0, len(self.shapes) / (self.steps + self.warm_up))

    @property
    def is_over(self) -> bool:
        """Whether the loop should stop."""
        return self.progress >= 1

    def windows(self) -> list[tuple[float, int]]:
        """Marks between which a rate is taken: windows of equally many steps, the warm-up left out."""
        measured = self.marks[self.warm_up :]
        steps = len(measured) - 1
        if steps < 1:
            raise ValueError("not one step fitted into the time; train longer")
        count = min(NUM_WINDOWS, steps)  # of a short time fewer
        return [measured[round(i * steps / count)] for i in range(count + 1)]
