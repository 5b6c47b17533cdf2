"""Flags of a command from a dataclass; one line for a wrong one."""

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from typing import TypeVar, cast

T = TypeVar("T")
# What tyro and Python say of a value that is no number: the flag, what it takes, the value.
NOT_A_NUMBER = re.compile(r"Error parsing (--\S+): .*\b(INT|FLOAT|int|float)\b.*?'([^']*)'")


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
    if (found := NOT_A_NUMBER.match(message)) is not None:
        flag, kind, given = found.groups()
        wanted = "a whole number" if kind.lower() == "int" else "a number"
        return f"{flag} must be {wanted}, got {given!r}"
    # "Error parsing model: --d-model must be …": the check has named the flag already.
    return re.sub(r"^Error parsing ([^:]*: (?=--)|[A-Z]\w*: )", "", message)
