"""From the name of a corpus to its splits as `datasets`, row by row as they stand there."""

import copy
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import ParamSpec, TypeVar

import datasets
import huggingface_hub

import arrays
import cells
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
Place = tuple[str, str, readers.Field, readers.Field]
"""A file, the folder where the paths in it begin, and where its two sides stand."""

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
# What the pairs of the phrasebook follow from: a change in any of these files makes them anew.
GRAMMAR = (lexicon, phrases, quantities, clauses, descriptions, templates, constructions, phrasebook)
# Progress is shown for files larger than this.
LONG_BYTES = 32 << 20
# Pictures and arrays are large: so many rows of them are in memory together.
BATCH = 32


@dataclass
class Stream:
    """A split that is read row by row, each time from its beginning or from where it was left."""

    rows: datasets.IterableDataset
    """Columns src, tgt and row."""
    num_rows: int | None
    """How many there are, or about how many; None where nobody can tell."""
    identity: str
    """Changes when the beginning or the size of what is read does."""
    files: dict[Path, str] = field(default_factory=dict)
    """State (`cells.stamp`) of each file that is read, where they are files of this machine."""

    def require_unchanged(self) -> None:
        """See that the files are still those of the beginning.

        Raises:
            ValueError: one has changed, or is gone.
        """
        for path, known in self.files.items():
            # Only a file that looks changed is opened: a corpus may have many, and each block asks for all.
            if (now := cells.stamp(path)) != known:
                if not path.is_file() or readers.glimpse(path).digest not in self.identity.split():
                    raise ValueError(
                        f"{path} has changed while it was read; restore it and go on with --resume"
                    )
                self.files[path] = now


def _of_files(rows: datasets.IterableDataset, files: Sequence[Path], num_rows: int | None = None) -> Stream:
    """A stream of these files; counted roughly by their beginnings unless the number of rows is given."""
    # Before the files are read: a change in between must not go unseen.
    states = {file: cells.stamp(file) for file in files}
    seen = [readers.glimpse(file) for file in files]
    if num_rows is None:
        num_rows = sum(content.num_lines for content in seen)
    identity = " ".join(content.digest for content in seen)
    return Stream(rows, num_rows, identity, states)


@dataclass(frozen=True)
class Reader:
    """One split of a corpus: called, it gives all rows (columns src, tgt and row), from the cache if they are there."""

    read: Callable[[], datasets.Dataset]
    stream: Callable[[], Stream]

    def __call__(self) -> datasets.Dataset:
        return self.read()


def find_splits(config: DataConfig) -> dict[str, Reader]:
    """Split name → what reads it, from wherever it is; of one corpus."""
    _show_progress(False)
    (name,) = config.dataset
    if config.dataset_config and (name.startswith("builtin:") or Path(name).is_file()):
        raise ValueError(f"--dataset-config is for the Hub and for folders; {name} has no configurations")
    if name.startswith("builtin:"):
        return _builtin(config)
    path = Path(os.path.expanduser(name))  # noqa: PTH111 (Path.expanduser raises for an unknown user)
    if path.is_file():
        return _files({"train": [path]}, config)
    if pairs := readers.aligned_files(path, config.src, config.tgt):
        return _line_files(name_splits(pairs), config)
    if any((path / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return _saved(path, config)
    if path.is_dir():
        return _folder(path, config)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.suffix in readers.SUFFIXES:
        raise FileNotFoundError(
            f"--dataset {name}: no such file or folder, and no pair of text files {name}.{config.src} and"
            f" {name}.{config.tgt}"
        )
    return _hub(config)


def name_splits(splits: Mapping[str, T]) -> dict[str, T]:
    """Splits under our names for them; one of another name is for training when it is the only one."""
    named: dict[str, T] = {}
    for name in sorted(splits, key=lambda name: name not in SPLIT_NAMES):
        split = ALIASES.get(name.lower(), name)
        named[name if split in named else split] = splits[name]
    if len(named) == 1 and not named.keys() & SPLIT_NAMES.keys():
        return {"train": next(iter(named.values()))}
    return named


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
    src, tgt = readers.match_sides(["en", "fr"], config.src, config.tgt, config.name)
    content = readers.code_digest(*(str(module.__file__) for module in GRAMMAR))

    def read(split: str) -> datasets.Dataset:
        return _generate(
            _phrasebook_rows,
            split=split,
            seed=config.data_seed,
            src=src,
            tgt=tgt,
            kind="text",
            content=content,
        )

    def stream(split: str) -> Stream:
        rows = _iterable(
            _phrasebook_rows,
            split=split,
            seed=config.data_seed,
            src=src,
            tgt=tgt,
            kind="text",
            content=content,
        )
        return Stream(rows, phrasebook.SPLIT_SIZES[split], content)

    return {split: Reader(partial(read, split), partial(stream, split)) for split in phrasebook.SPLIT_SIZES}


def _kind(
    config: DataConfig, splits: Mapping[str, T], cells_of: Callable[[T], Iterator[object]]
) -> cells.Kind:
    """What the source column of every split is stored as; the training rows decide where there is a choice."""
    if config.source == "features":
        return config.source
    split = "train" if "train" in splits else next(iter(splits))
    kind: cells.Kind
    where, kind = f"--dataset {config.name}", "text"
    if config.source == "image":
        kind = cells.picture_or_text(cells_of(splits[split]), where)
    if kind == "text":
        cells.require_sentences(cells_of(splits[split]), where)
    return kind


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
        found, problem = {}, f"cannot be read: {_one_line(error)}"
    splits = {split: files for split, files in found.items() if files}
    if not splits or any(f.suffix.lower() not in readers.SUFFIXES for fs in splits.values() for f in fs):
        # Pictures or arrays beside the files that name them mislead `datasets`.
        splits = {} if config.source == "text" or config.dataset_config else _splits_by_name(path)
    if not splits:
        raise ValueError(f"--dataset {path} {problem}; give the file itself")
    return _files(name_splits(splits), config)


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
        return cells.source_cells(table for file in files for table in _tables(places([file]), BATCH))

    kind = _kind(config, splits, cells_of)

    def read(files: Sequence[Path]) -> datasets.Dataset:
        content = " ".join(readers.inspect(file).digest for file in files)
        _show_progress(sum(file.stat().st_size for file in files) > LONG_BYTES)
        return _generate(_file_rows, places=places(files), kind=kind, content=content)

    def stream(files: Sequence[Path]) -> Stream:
        if array := next(filter(readers.is_json_array, files), None):
            advice = "write one record a line (.jsonl), or leave --streaming out"
            raise ValueError(f"{array} is one JSON array, which cannot be read row by row; {advice}")
        return _of_files(_iterable(_file_rows, places=places(files), kind=kind, content=""), files)

    return {split: Reader(partial(read, files), partial(stream, files)) for split, files in splits.items()}


def _line_files(splits: Mapping[str, tuple[Path, Path]], config: DataConfig) -> dict[str, Reader]:
    kind = _kind(config, splits, lambda files: iter(readers.texts_of(files[0])))

    def check_counts(src: Path, tgt: Path, counts: Sequence[int]) -> None:
        if counts[0] != counts[1]:
            raise ValueError(
                f"{src} has {counts[0]:,} lines and {tgt} has {counts[1]:,}; line n of one must belong to"
                " line n of the other"
            )

    def read(src: Path, tgt: Path) -> datasets.Dataset:
        contents = [readers.inspect(src), readers.inspect(tgt)]
        check_counts(src, tgt, [content.num_lines for content in contents])
        _show_progress(src.stat().st_size > LONG_BYTES)
        content = " ".join(content.digest for content in contents)
        folder = "" if kind == "text" else str(src.parent.absolute())
        return _generate(_line_rows, src=str(src), tgt=str(tgt), folder=folder, kind=kind, content=content)

    def stream(src: Path, tgt: Path) -> Stream:
        counts = [readers.count_lines(src), readers.count_lines(tgt)]
        check_counts(src, tgt, counts)
        rows = _iterable(_line_rows, src=str(src), tgt=str(tgt), folder="", kind=kind, content="")
        return _of_files(rows, (src, tgt), counts[0])

    return {split: Reader(partial(read, *files), partial(stream, *files)) for split, files in splits.items()}


def _hub(config: DataConfig) -> dict[str, Reader]:
    name = config.name
    _show_progress(True)
    huggingface_hub.logging.set_verbosity_error()
    not_here = f"--dataset {name}: no such file, folder or pair of text files here"
    try:
        # Otherwise pandas takes the words null and NA for missing cells.
        is_csv = datasets.load_dataset_builder(name, config.dataset_config).name == "csv"
        options = {"keep_default_na": False} if is_csv else {}
        if config.streaming:
            loaded = datasets.load_dataset(name, config.dataset_config, streaming=True, **options)
            return _streamed(loaded, config)
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

    return _loaded(loaded, config, can_map=True)


def _streamed(loaded: Mapping[str, datasets.IterableDataset], config: DataConfig) -> dict[str, Reader]:
    """Readers of datasets that come row by row over the network."""

    def stream(split: str, rows: datasets.IterableDataset) -> Stream:
        picked = _sides_of(rows, config)
        if split == "train":
            cells.require_sentences((row["src"] for row in copy.deepcopy(picked)), f"--dataset {config.name}")
        known = (rows.info.splits or {}).get(str(rows.split))
        num_rows = known.num_examples if known and known.num_examples else None
        return Stream(picked, num_rows, f"{rows.info.version} {num_rows}")

    def read(split: str, rows: datasets.IterableDataset) -> datasets.Dataset:
        return datasets.Dataset.from_list(list(stream(split, rows).rows), features=ROW_FEATURES)

    splits = name_splits({str(split): rows for split, rows in loaded.items()})
    return {
        split: Reader(partial(read, split, rows), partial(stream, split, rows))
        for split, rows in splits.items()
    }


def _sides_of(rows: datasets.IterableDataset, config: DataConfig) -> datasets.IterableDataset:
    """The two sides of each row, and its number."""
    features = rows.features or rows._resolve_features().features or datasets.Features()
    src, tgt = readers.match_fields(
        readers.schema_fields(features.arrow_schema), config.src, config.tgt, config.name
    )
    return rows.map(
        _pick,
        batched=True,
        with_indices=True,
        fn_kwargs={"src": src, "tgt": tgt, "code": ""},
        remove_columns=list(features),
        features=ROW_FEATURES,
    )


def _saved(path: Path, config: DataConfig) -> dict[str, Reader]:
    """What `save_to_disk` of `datasets` has written."""
    try:
        loaded = datasets.load_from_disk(str(path))
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"--dataset {path} cannot be read: {_one_line(error)}") from None
    # What map makes would lie in that folder.
    return _loaded(loaded if isinstance(loaded, dict) else {"train": loaded}, config, can_map=False)


def _loaded(loaded: Mapping[str, datasets.Dataset], config: DataConfig, can_map: bool) -> dict[str, Reader]:
    """Readers of datasets; text is read in less time with map."""
    splits = name_splits({str(split): rows for split, rows in loaded.items()})

    def sides(rows: datasets.Dataset) -> tuple[readers.Field, readers.Field]:
        fields = readers.schema_fields(rows.data.schema)
        return readers.match_fields(fields, config.src, config.tgt, config.name)

    def cells_of(rows: datasets.Dataset) -> Iterator[object]:
        src, tgt = sides(rows)
        return cells.source_cells([cells.Table(_records(rows, config.name, src, tgt), src, tgt)])

    kind = _kind(config, splits, cells_of)

    def read(name: str, rows: datasets.Dataset) -> datasets.Dataset:
        src, tgt = sides(rows)
        if kind != "text" or not can_map:
            return _generate(
                _dataset_rows,
                dataset=rows,
                name=f"{config.name}, {name}",
                src=src,
                tgt=tgt,
                folder=str(Path.cwd()),
                kind=kind,
                content=rows._fingerprint,
            )
        return rows.map(
            _pick,
            batched=True,
            batch_size=arrays.ROWS,
            writer_batch_size=arrays.ROWS,
            with_indices=True,
            fn_kwargs={"src": src, "tgt": tgt, "code": _code()},
            remove_columns=rows.column_names,
            features=ROW_FEATURES,
        )

    def stream(rows: datasets.Dataset) -> Stream:
        return Stream(_sides_of(rows.to_iterable_dataset(), config), len(rows), rows._fingerprint)

    return {
        split: Reader(partial(read, split, rows), partial(stream, rows)) for split, rows in splits.items()
    }


def _pick(
    batch: dict[str, list[object]], indices: list[int], src: readers.Field, tgt: readers.Field, code: str
) -> dict[str, list[object]]:
    """The two sides of a batch of rows; `code` is part of the name under which they are cached."""
    columns: dict[str, list[object]] = {"row": [index + 1 for index in indices]}
    for side, field_, read in (("src", src, cells.as_text), ("tgt", tgt, readers.as_text)):
        columns[side] = [
            read({field_[0]: value}, field_, f"row {row}")
            for value, row in zip(batch[field_[0]], columns["row"], strict=True)
        ]
    return columns


def _show_progress(is_long: bool) -> None:
    if is_long and sys.stderr.isatty():
        datasets.enable_progress_bars()
    else:
        datasets.disable_progress_bars()


def _code() -> str:
    """A change in the reading code must not find what the code before it wrote."""
    return readers.code_digest(__file__, str(readers.__file__), str(cells.__file__))


def _generate(
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
            gen_kwargs={**arguments, "content": f"{content} {_code()}"},
            writer_batch_size=arrays.ROWS if is_text else BATCH,
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


def _iterable(
    rows: Callable[P, Iterator[cells.Row]], *none: P.args, **arguments: P.kwargs
) -> datasets.IterableDataset:
    """The rows of `_generate` one after another. As the arguments hold no list, they are one shard."""
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


def _phrasebook_rows(
    split: str, seed: int, src: str, tgt: str, kind: cells.Kind, content: str
) -> Iterator[cells.Row]:
    pairs = ((split, pair) for pair in phrasebook.generate(split, seed=seed))
    yield from cells.rows_of([cells.Table(pairs, (src,), (tgt,))], kind)


def _file_rows(places: tuple[Place, ...], kind: cells.Kind, content: str) -> Iterator[cells.Row]:
    yield from cells.rows_of(_tables(places, readers.PEEK if kind == "text" else BATCH), kind)


def _tables(places: tuple[Place, ...], batch: int) -> Iterator[cells.Table]:
    for file, folder, src, tgt in places:
        yield cells.Table(readers.records(Path(file), (src[0], tgt[0]), batch), src, tgt, Path(folder))


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


def _dataset_rows(
    dataset: datasets.Dataset,
    name: str,
    src: readers.Field,
    tgt: readers.Field,
    folder: str,
    kind: cells.Kind,
    content: str,
) -> Iterator[cells.Row]:
    yield from cells.rows_of([cells.Table(_records(dataset, name, src, tgt), src, tgt, Path(folder))], kind)


def _records(
    dataset: datasets.Dataset, name: str, src: readers.Field, tgt: readers.Field
) -> Iterator[readers.Record]:
    # As Arrow: otherwise pictures would be decoded.
    columns = dataset.select_columns(sorted({src[0], tgt[0]})).with_format("arrow")
    batches = (batch for table in columns.iter(BATCH) for batch in table.to_batches())
    return readers.arrow_records(batches, name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
