"""From the name of a corpus to its splits as `datasets`, row by row as they stand there."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

import datasets

import cells
import clauses
import constructions
import descriptions
import hosted
import lexicon
import phrasebook
import phrases
import quantities
import readers
import row_cache
import runtime
import templates
from arrays import LARGE_ROWS
from config import DataConfig
from row_cache import ALIASES, Reader, Stream

Place = tuple[str, str, readers.Field, readers.Field]
"""A file, the folder where the paths in it begin, and where its two sides stand."""
# What the pairs of the phrasebook follow from: a change in any of these files makes them anew.
GRAMMAR = (lexicon, phrases, quantities, clauses, descriptions, templates, constructions, phrasebook)
# Progress is shown for files larger than this.
LONG_BYTES = 32 << 20


def find_splits(config: DataConfig) -> dict[str, Reader]:
    """Split name → what reads it, from wherever it is; of one corpus."""
    row_cache.show_progress(False)
    (name,) = config.dataset
    if config.dataset_config and (name.startswith("builtin:") or Path(name).is_file()):
        raise ValueError(f"--dataset-config is for the Hub and for folders; {name} has no configurations")
    if name.startswith("builtin:"):
        return _builtin(config)
    path = Path(os.path.expanduser(name))  # noqa: PTH111 (Path.expanduser raises for an unknown user)
    if path.is_file():
        return _files({"train": [path]}, config)
    if pairs := readers.aligned_files(path, config.src, config.tgt):
        return _line_files(row_cache.name_splits(pairs), config)
    if any((path / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return hosted.from_disk(path, config)
    if path.is_dir():
        return _folder(path, config)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.suffix in readers.SUFFIXES:
        raise FileNotFoundError(
            f"--dataset {name}: no such file or folder, and no pair of text files {name}.{config.src} and"
            f" {name}.{config.tgt}"
        )
    return hosted.from_hub(config)


def _builtin(config: DataConfig) -> dict[str, Reader]:
    if config.name != "builtin:phrasebook":
        raise ValueError(
            f"--dataset {config.name}: no such corpus in the program; there is: builtin:phrasebook"
        )
    if config.source == "features":
        raise ValueError(
            f"--dataset {config.name} holds text; --source features needs a corpus whose --src column holds"
            " arrays (frames × channels) or paths of .npy files"
        )
    seed = config.data_seed
    src, tgt = readers.match_sides(["en", "fr"], config.src, config.tgt, config.name)
    content = runtime.code_digest(*(str(module.__file__) for module in GRAMMAR))

    def read(split: str) -> datasets.Dataset:
        return row_cache.generate(
            _phrasebook_rows, split=split, seed=seed, src=src, tgt=tgt, kind="text", content=content
        )

    def stream(split: str) -> Stream:
        rows = row_cache.iterable(
            _phrasebook_rows, split=split, seed=seed, src=src, tgt=tgt, kind="text", content=content
        )
        return Stream(rows, phrasebook.SPLIT_SIZES[split], content)

    return {split: Reader(partial(read, split), partial(stream, split)) for split in phrasebook.SPLIT_SIZES}


def _phrasebook_rows(
    split: str, seed: int, src: str, tgt: str, kind: cells.Kind, content: str
) -> Iterator[cells.Row]:
    pairs = ((split, pair) for pair in phrasebook.generate(split, seed=seed))
    yield from cells.rows_of([cells.Table(pairs, (src,), (tgt,))], kind)


def _folder(path: Path, config: DataConfig) -> dict[str, Reader]:
    """Splits by the names of the files, as `datasets` infers them."""
    try:
        builder = datasets.load_dataset_builder(str(path), config.dataset_config)
        found = {
            str(split): list(map(Path, files)) for split, files in (builder.config.data_files or {}).items()
        }
        problem = (
            f"holds other files than {', '.join(readers.SUFFIXES)} and no text files *.{config.src} and"
            f" *.{config.tgt}"
        )
    except Exception as error:  # a folder may hold anything, and what reads it raises errors of its own
        found, problem = {}, f"cannot be read: {runtime.said(error)}"
    splits = {split: files for split, files in found.items() if files}
    if not splits or any(f.suffix.lower() not in readers.SUFFIXES for fs in splits.values() for f in fs):
        # Pictures or arrays beside the files that name them mislead `datasets`.
        splits = {} if config.source == "text" or config.dataset_config else _splits_by_name(path)
    if not splits:
        raise ValueError(f"--dataset {path} {problem}; give the file itself")
    return _files(row_cache.name_splits(splits), config)


def _splits_by_name(path: Path) -> dict[str, list[Path]]:
    """Files by the word for a split in their path; where none has one, all are for training."""
    files = [f for f in sorted(path.rglob("*")) if f.suffix.lower() in readers.SUFFIXES and f.is_file()]
    splits: dict[str, list[Path]] = {}
    for file in files:
        words = re.findall("[a-z]+", str(file.relative_to(path)).lower())
        if split := next((word for word in reversed(words) if word in ALIASES), None):
            splits.setdefault(split, []).append(file)
    return splits or ({"train": files} if files else {})


def _files(splits: Mapping[str, Sequence[Path]], config: DataConfig) -> dict[str, Reader]:
    def places(files: Sequence[Path]) -> tuple[Place, ...]:
        # Text has no paths in it, and is the same in any folder.
        return tuple(
            (
                str(file),
                str(file.parent.absolute()) if config.source != "text" else "",
                *readers.match_fields(readers.fields_of(file), config.src, config.tgt, str(file)),
            )
            for file in files
        )

    def cells_of(files: Sequence[Path]) -> Iterator[object]:
        # One file after another: mostly the first few cells of the first tell.
        return cells.source_cells(table for file in files for table in _tables(places([file]), LARGE_ROWS))

    kind = cells.kind_of(config, splits, cells_of)

    def read(files: Sequence[Path]) -> datasets.Dataset:
        content = " ".join(readers.inspect(file).digest for file in files)
        row_cache.show_progress(sum(file.stat().st_size for file in files) > LONG_BYTES)
        return row_cache.generate(_file_rows, places=places(files), kind=kind, content=content)

    def stream(files: Sequence[Path]) -> Stream:
        if array := next(filter(readers.is_json_array, files), None):
            advice = "write one record a line (.jsonl), or leave --streaming out"
            raise ValueError(f"{array} is one JSON array, which cannot be read row by row; {advice}")
        return row_cache.stream_of_files(
            row_cache.iterable(_file_rows, places=places(files), kind=kind, content=""), files
        )

    return {split: Reader(partial(read, files), partial(stream, files)) for split, files in splits.items()}


def _file_rows(places: tuple[Place, ...], kind: cells.Kind, content: str) -> Iterator[cells.Row]:
    yield from cells.rows_of(_tables(places, readers.PEEK if kind == "text" else LARGE_ROWS), kind)


def _tables(places: tuple[Place, ...], batch: int) -> Iterator[cells.Table]:
    for file, folder, src, tgt in places:
        yield cells.Table(readers.records(Path(file), (src[0], tgt[0]), batch), src, tgt, Path(folder))


def _line_files(splits: Mapping[str, tuple[Path, Path]], config: DataConfig) -> dict[str, Reader]:
    kind = cells.kind_of(config, splits, lambda files: iter(readers.texts_of(files[0])))

    def check_counts(src: Path, tgt: Path, counts: Sequence[int]) -> None:
        if counts[0] != counts[1]:
            raise ValueError(
                f"{src} has {counts[0]:,} lines and {tgt} has {counts[1]:,}; line n of one must belong to"
                " line n of the other"
            )

    def read(src: Path, tgt: Path) -> datasets.Dataset:
        contents = [readers.inspect(src), readers.inspect(tgt)]
        check_counts(src, tgt, [content.num_lines for content in contents])
        row_cache.show_progress(src.stat().st_size > LONG_BYTES)
        content = " ".join(content.digest for content in contents)
        folder = "" if kind == "text" else str(src.parent.absolute())
        return row_cache.generate(
            _line_rows, src=str(src), tgt=str(tgt), folder=folder, kind=kind, content=content
        )

    def stream(src: Path, tgt: Path) -> Stream:
        counts = [readers.count_lines(src), readers.count_lines(tgt)]
        check_counts(src, tgt, counts)
        rows = row_cache.iterable(_line_rows, src=str(src), tgt=str(tgt), folder="", kind=kind, content="")
        return row_cache.stream_of_files(rows, (src, tgt), counts[0])

    return {split: Reader(partial(read, *files), partial(stream, *files)) for split, files in splits.items()}


def _line_rows(src: str, tgt: str, folder: str, kind: cells.Kind, content: str) -> Iterator[cells.Row]:
    records = (
        (f"{src}, line {number}", {"src": src_text, "tgt": tgt_text})
        for number, (src_text, tgt_text) in enumerate(_side_by_side(Path(src), Path(tgt)), 1)
    )
    yield from cells.rows_of([cells.Table(records, ("src",), ("tgt",), Path(folder))], kind)


def _side_by_side(src: Path, tgt: Path) -> Iterator[tuple[str, str]]:
    """The lines of two files, which were of one length when they were counted."""
    for number, pair in enumerate(zip_longest(readers.texts_of(src), readers.texts_of(tgt)), 1):
        if None in pair:
            raise ValueError(f"{src} and {tgt} were changed meanwhile: only one of them has a line {number}")
        yield pair
