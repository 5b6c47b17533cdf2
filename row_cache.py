"""The splits of a corpus: their names, and their rows, written to the cache and found there, or streamed."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

import datasets

import arrays
import cells
import lines
import readers
import runtime

P = ParamSpec("P")
T = TypeVar("T")
ROW_FEATURES = datasets.Features(
    src=datasets.Value("string"), tgt=datasets.Value("string"), row=datasets.Value("int64")
)
# Of pictures and arrays; `file` is the stamp of the file that a cell names, and is not handed on.
SOURCE_FEATURES = datasets.Features(
    {**ROW_FEATURES, "src": datasets.Value("large_binary"), "file": datasets.Value("string")}
)
SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "development"),
    "test": ("test", "testing"),
}
ALIASES = {alias: split for split, names in SPLIT_NAMES.items() for alias in names}


@dataclass
class Stream:
    """A split that is read row by row, each time from its beginning or from where it was left."""

    rows: datasets.IterableDataset
    """Columns src, tgt and row."""
    num_rows: int | None
    """How many there are, or about how many; None where nobody can tell."""
    identity: str
    """Changes with the beginning or the size of a file; of the Hub, with the version or the number of rows."""
    files: dict[Path, tuple[str, str]] = field(default_factory=dict)
    """Stamp (`cells.stamp`) and digest (`readers.glimpse`) of each file of this machine that is read."""

    def require_unchanged(self) -> None:
        """See that the files are still those of the beginning.

        Raises:
            ValueError: one has changed, or is gone.
        """
        for path, (stamp, digest) in self.files.items():
            # Only a file that looks changed is opened: a corpus may have many, and each block asks for all.
            if (now := cells.stamp(path)) != stamp:
                if not path.is_file() or readers.glimpse(path).digest != digest:
                    raise ValueError(
                        f"{path} has changed while it was read; restore it and go on with --resume"
                    )
                self.files[path] = now, digest


def stream_of_files(
    rows: datasets.IterableDataset, files: Sequence[Path], num_rows: int | None = None
) -> Stream:
    """A stream of these files; counted roughly by their beginnings unless the number of rows is given."""
    # Before the files are read: a change in between must not go unseen.
    stamps = [cells.stamp(file) for file in files]
    seen = [readers.glimpse(file) for file in files]
    if num_rows is None:
        num_rows = sum(content.num_lines for content in seen)
    digests = [content.digest for content in seen]
    states = dict(zip(files, zip(stamps, digests, strict=True), strict=True))
    return Stream(rows, num_rows, " ".join(digests), states)


@dataclass(frozen=True)
class Reader:
    """What reads one split of a corpus."""

    read: Callable[[], datasets.Dataset]
    """Gives all rows (columns src, tgt and row), from the cache if they are there."""
    stream: Callable[[], Stream]
    """Gives them one after another."""


def name_splits(splits: Mapping[str, T]) -> dict[str, T]:
    """Splits under our names for them; one of another name is for training when it is the only one."""
    named: dict[str, T] = {}
    for name in sorted(splits, key=lambda name: name not in SPLIT_NAMES):
        split = ALIASES.get(name.lower(), name)
        named[name if split in named else split] = splits[name]
    if len(named) == 1 and not named.keys() & SPLIT_NAMES.keys():
        return {"train": next(iter(named.values()))}
    return named


def show_progress(is_long: bool) -> None:
    """Whether the terminal shows how far `datasets` is with what it does next."""
    if is_long and sys.stderr.isatty():
        datasets.enable_progress_bars()
    else:
        datasets.disable_progress_bars()


def code_of(rows: Callable[P, object]) -> str:
    """Digest of the code that this function reads with: a change in it must not find what the code before it wrote."""
    own = inspect.getfile(rows)
    return runtime.code_digest(own, __file__, *(str(m.__file__) for m in (readers, cells, lines)))


def generate(
    rows: Callable[P, Iterator[cells.Row]], *none: P.args, **arguments: P.kwargs
) -> datasets.Dataset:
    """Rows written to the Arrow cache under a name made of the keyword arguments, or found there.

    Among them is `content`, a digest of what is read: a file that changes is never taken from the cache. Neither
    are rows when a file that they name has changed.
    """
    is_text = arguments["kind"] == "text"

    def made(content: str) -> datasets.Dataset:
        return datasets.Dataset.from_generator(
            rows,
            features=ROW_FEATURES if is_text else SOURCE_FEATURES,
            gen_kwargs={**arguments, "content": f"{content} {code_of(rows)}"},
            writer_batch_size=arrays.ROWS if is_text else arrays.LARGE_ROWS,
        )

    try:
        first = made(str(arguments["content"]))
        if is_text:
            return first
        changed = _changed_files(first)
        return (made(f"{arguments['content']} {changed}") if changed else first).remove_columns("file")
    except datasets.exceptions.DatasetGenerationError as error:
        cause = error.__cause__
        if isinstance(cause, ValueError | OSError):
            raise cause from None
        raise
    except ValueError as error:
        if "corresponds to no data" not in str(error):
            raise
        raise ValueError("the corpus has no row; give a file with at least one pair") from None


def iterable(
    rows: Callable[P, Iterator[cells.Row]], *none: P.args, **arguments: P.kwargs
) -> datasets.IterableDataset:
    """The rows of `generate` one after another. As the arguments hold no list, they are one shard."""
    return datasets.IterableDataset.from_generator(rows, features=ROW_FEATURES, gen_kwargs=arguments)


def _changed_files(rows: datasets.Dataset) -> str:
    """Digest of the state of all files that the rows name; empty when none has changed since they were read."""
    digest, is_changed = hashlib.blake2b(digest_size=16), False
    for batch in rows.select_columns("file").iter(1_000):
        for recorded in filter(None, batch["file"]):
            now = cells.stamp(Path(recorded.partition(" ")[2]))
            is_changed |= now != recorded
            digest.update(f"{now}\n".encode())
    return digest.hexdigest() if is_changed else ""
