"""Signals that ask a run to stop."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Interrupted(BaseException):
    """A signal arrived during work that can be thrown away."""


class StopRequest:
    """While it is entered, Ctrl-C or SIGTERM asks the loop to save and stop; a second one stops at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.is_interruptible = False

    def __enter__(self) -> "StopRequest":
        numbers = (signal.SIGINT, signal.SIGTERM)
        self.before = [(number, signal.getsignal(number)) for number in numbers]
        for number in numbers:
            signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before:
            signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        for each, _ in self.before:  # the next one ends the process, whatever it is waiting for
            signal.signal(each, signal.SIG_DFL)
        if self.is_interruptible:
            raise Interrupted

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Inside, a signal raises Interrupted, and one that came before does so at the beginning."""
        self.is_interruptible = True
        try:
            if self.signal is not None:
                raise Interrupted
            yield
        finally:
            self.is_interruptible = False
