"""Lines of UTF-8 text, read the same way everywhere: LF and CRLF end a line, nothing else does."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BOM = "\ufeff".encode()


class Line(NamedTuple):
    """One line and what it needs to be written back."""

    number: int
    """From 1."""
    text: str
    ending: str
    """LF or CRLF; LF for a last line without one."""


def decode_utf8(data: bytes, where: str) -> str:
    """UTF-8 to text.

    Raises:
        ValueError: it is none; `where` and the byte are named.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        byte = f"0x{data[error.start]:02x}"
        raise ValueError(f"{where}: byte {byte} is not valid UTF-8; convert it first") from None


def parse_line(data: bytes, number: int, name: str) -> Line:
    """A line from its bytes, ending included; a byte order mark is dropped at the start of the first.

    Args:
        name: what the line is read from, for the message when it is not UTF-8.
    """
    ending = b"\r\n" if data.endswith(b"\r\n") else b"\n"
    text = data.removesuffix(ending).removeprefix(BOM if number == 1 else b"")
    return Line(number, decode_utf8(text, f"{name}, line {number}"), ending.decode())


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file, one after another.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is not UTF-8; its number is in the message.
    """
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; name a text file")
    with path.open("rb") as file:  # binary files are split at LF alone
        for number, data in enumerate(file, 1):
            yield parse_line(data, number, str(path))
