"""From the name of a corpus to its splits as `datasets`, row by row as they stand there."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import ParamSpec, TypeVar

import datasets
import huggingface_hub

import clauses
import constructions
import descriptions
import lexicon
import phrasebook
import phrases
import quantities
import readers
import templates
from config import DataConfig

P = ParamSpec("P")
T = TypeVar("T")
Row = dict[str, str | int | None]
Reader = Callable[[], datasets.Dataset]

ROW_FEATURES = datasets.Features(
    src=datasets.Value("string"), tgt=datasets.Value("string"), row=datasets.Value("int64")
)
SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "development"),
    "test": ("test", "testing"),
}
# What the pairs of the phrasebook follow from: a change in any of these files makes them anew.
GRAMMAR = (lexicon, phrases, quantities, clauses, descriptions, templates, constructions, phrasebook)
# Progress is shown for files larger than this.
LONG_BYTES = 32 << 20


def find_splits(config: DataConfig) -> dict[str, Reader]:
    """Split name → a function that reads its rows (columns src, tgt and row), from wherever they are."""
    _show_progress(False)
    name = config.dataset
    if config.dataset_config and (name.startswith("builtin:") or Path(name).is_file()):
        raise ValueError(f"--dataset-config is for the Hub and for folders; {name} has no configurations")
    if name.startswith("builtin:"):
        return _builtin(config)
    path = Path(os.path.expanduser(name))  # noqa: PTH111 (Path.expanduser raises for an unknown user)
    if path.is_file():
        return {"train": _file_reader([path], config)}
    if pairs := readers.aligned_files(path, config.src, config.tgt):
        return {split: _pair_reader(*files) for split, files in name_splits(pairs).items()}
    if path.is_dir():
        return _folder(path, config)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.suffix in readers.SUFFIXES:
        raise FileNotFoundError(
            f"--dataset {name}: no such file or folder, and no pair of text files {name}.{config.src} and"
            f" {name}.{config.tgt}"
        )
    return _hub(config)


def name_splits(splits: dict[str, T]) -> dict[str, T]:
    """Splits under our names for them; one of another name is for training when it is the only one."""
    aliases = {alias: split for split, names in SPLIT_NAMES.items() for alias in names}
    named: dict[str, T] = {}
    for name in sorted(splits, key=lambda name: name not in SPLIT_NAMES):
        split = aliases.get(name.lower(), name)
        named[name if split in named else split] = splits[name]
    if len(named) == 1 and not named.keys() & SPLIT_NAMES.keys():
        return {"train": next(iter(named.values()))}
    return named


def _builtin(config: DataConfig) -> dict[str, Reader]:
    if config.dataset != "builtin:phrasebook":
        raise ValueError(
            f"--dataset {config.dataset}: no such corpus in the program; there is: builtin:phrasebook"
        )
    src, tgt = readers.match_sides(["en", "fr"], config.src, config.tgt, config.dataset)
    content = readers.code_digest(*(str(module.__file__) for module in GRAMMAR))

    def reader(split: str) -> Reader:
        return lambda: _generate(
            _phrasebook_rows, split=split, seed=config.data_seed, src=src, tgt=tgt, content=content
        )

    return {split: reader(split) for split in phrasebook.SPLIT_SIZES}


def _folder(path: Path, config: DataConfig) -> dict[str, Reader]:
    """Splits by the names of the files, as `datasets` infers them."""
    try:
        builder = datasets.load_dataset_builder(str(path), config.dataset_config)
    except Exception as error:  # a folder may hold anything, and what reads it raises errors of its own
        raise ValueError(
            f"--dataset {path} cannot be read: {_one_line(error)}; give the file itself"
        ) from None
    files = {
        str(split): [Path(file) for file in files]
        for split, files in (builder.config.data_files or {}).items()
    }
    if any(file.suffix.lower() not in readers.SUFFIXES for split in files.values() for file in split):
        raise ValueError(
            f"--dataset {path}: holds other files than {', '.join(readers.SUFFIXES)} and no text files"
            f" *.{config.src} and *.{config.tgt}; give the file itself"
        )
    return {split: _file_reader(files, config) for split, files in name_splits(files).items()}


def _file_reader(files: Sequence[Path], config: DataConfig) -> Reader:
    def read() -> datasets.Dataset:
        content = " ".join(readers.inspect(file).digest for file in files)
        places = tuple(
            (str(file), *readers.match_fields(readers.fields_of(file), config.src, config.tgt, str(file)))
            for file in files
        )
        _show_progress(sum(file.stat().st_size for file in files) > LONG_BYTES)
        return _generate(_file_rows, places=places, content=content)

    return read


def _pair_reader(src: Path, tgt: Path) -> Reader:
    def read() -> datasets.Dataset:
        contents = [readers.inspect(src), readers.inspect(tgt)]
        counts = [content.num_lines for content in contents]
        if counts[0] != counts[1]:
            raise ValueError(
                f"{src} has {counts[0]:,} lines and {tgt} has {counts[1]:,}; line n of one must belong to"
                " line n of the other"
            )
        _show_progress(src.stat().st_size > LONG_BYTES)
        content = " ".join(content.digest for content in contents)
        return _generate(_line_rows, src=str(src), tgt=str(tgt), content=content)

    return read


def _hub(config: DataConfig) -> dict[str, Reader]:
    name = config.dataset
    _show_progress(True)
    huggingface_hub.logging.set_verbosity_error()
    not_here = f"--dataset {name}: no such file, folder or pair of text files here"
    try:
        # Otherwise pandas takes the words null and NA for missing cells.
        is_csv = datasets.load_dataset_builder(name, config.dataset_config).name == "csv"
        options = {"keep_default_na": False} if is_csv else {}
        loaded = datasets.load_dataset(name, config.dataset_config, **options)
    except datasets.exceptions.DatasetNotFoundError:
        raise FileNotFoundError(f"{not_here}, and no such dataset on the Hugging Face Hub") from None
    except ConnectionError as error:
        raise ValueError(
            f"{not_here}, and the Hugging Face Hub is out of reach ({_one_line(error)})"
        ) from None
    except (ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise ValueError(
            f"--dataset {name}, --dataset-config {config.dataset_config}: {_one_line(error)}"
        ) from None

    def reader(rows: datasets.Dataset) -> Reader:
        src, tgt = readers.match_fields(readers.schema_fields(rows.data.schema), config.src, config.tgt, name)
        return lambda: rows.map(
            _pick,
            batched=True,
            with_indices=True,
            fn_kwargs={"src": src, "tgt": tgt},
            remove_columns=rows.column_names,
            features=ROW_FEATURES,
        )

    return {
        split: reader(rows)
        for split, rows in name_splits({str(s): rows for s, rows in loaded.items()}).items()
    }


def _pick(
    batch: dict[str, list[object]], indices: list[int], src: readers.Field, tgt: readers.Field
) -> dict[str, list[object]]:
    """The two sides of a batch of Hub rows."""
    columns: dict[str, list[object]] = {"row": [index + 1 for index in indices]}
    for side, field_ in (("src", src), ("tgt", tgt)):
        cells = ({field_[0]: value} for value in batch[field_[0]])
        columns[side] = [
            readers.as_text(cell, field_, f"row {row}")
            for cell, row in zip(cells, columns["row"], strict=True)
        ]
    return columns


def _show_progress(is_long: bool) -> None:
    if is_long and sys.stderr.isatty():
        datasets.enable_progress_bars()
    else:
        datasets.disable_progress_bars()


def _generate(rows: Callable[P, Iterator[Row]], *none: P.args, **arguments: P.kwargs) -> datasets.Dataset:
    """Rows written to the Arrow cache under a name made of the keyword arguments, or found there.

    Among them is `content`, a digest of what is read: a file that changes is never taken from the cache.
    """
    try:
        # A change in the reading code must not find what the code before it wrote.
        code = readers.code_digest(__file__, str(readers.__file__))
        return datasets.Dataset.from_generator(
            rows, features=ROW_FEATURES, gen_kwargs={**arguments, "content": f"{arguments['content']} {code}"}
        )
    except datasets.exceptions.DatasetGenerationError as error:
        cause = error.__cause__
        if isinstance(cause, ValueError | OSError):
            raise cause from None
        raise
    except ValueError as error:
        if "corresponds to no data" not in str(error):
            raise
        raise ValueError("the corpus has no row; give a file with at least one pair") from None


def _phrasebook_rows(split: str, seed: int, src: str, tgt: str, content: str) -> Iterator[Row]:
    for number, pair in enumerate(phrasebook.generate(split, seed=seed), 1):
        yield {"src": pair[src], "tgt": pair[tgt], "row": number}


def _file_rows(places: tuple[tuple[str, readers.Field, readers.Field], ...], content: str) -> Iterator[Row]:
    pairs = chain.from_iterable(readers.pairs(Path(file), src, tgt) for file, src, tgt in places)
    for number, (src_text, tgt_text) in enumerate(pairs, 1):
        yield {"src": src_text, "tgt": tgt_text, "row": number}


def _line_rows(src: str, tgt: str, content: str) -> Iterator[Row]:
    pairs = zip(readers.texts_of(Path(src)), readers.texts_of(Path(tgt)), strict=True)
    for number, (src_text, tgt_text) in enumerate(pairs, 1):
        yield {"src": src_text, "tgt": tgt_text, "row": number}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
