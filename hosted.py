"""Corpora that `datasets` provides: from the Hugging Face Hub, or from a folder that `save_to_disk` has written."""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import datasets
import huggingface_hub
import pyarrow as pa

import arrays
import cells
import readers
import row_cache
import runtime
from config import DataConfig
from row_cache import ROW_FEATURES, Reader, Stream


def from_hub(config: DataConfig) -> dict[str, Reader]:
    """Splits of a dataset on the Hub.

    Raises:
        FileNotFoundError, ValueError: no such dataset or configuration, or the Hub is out of reach.
    """
    name = config.name
    row_cache.show_progress(True)
    huggingface_hub.logging.set_verbosity_error()
    not_here = f"--dataset {name}: no such file, folder or pair of text files here"
    try:
        # Otherwise pandas takes the words null and NA for missing cells.
        is_csv = datasets.load_dataset_builder(name, config.dataset_config).name == "csv"
        options = {"keep_default_na": False} if is_csv else {}
        loaded = datasets.load_dataset(name, config.dataset_config, streaming=config.streaming, **options)
    except datasets.exceptions.DatasetNotFoundError:
        raise FileNotFoundError(f"{not_here}, and no such dataset on the Hugging Face Hub") from None
    except ConnectionError as error:
        raise ValueError(
            f"{not_here}, and the Hugging Face Hub is out of reach ({runtime.said(error)})"
        ) from None
    except (ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise ValueError(
            f"--dataset {name}, --dataset-config {config.dataset_config}: {runtime.said(error)}"
        ) from None
    return _streamed(loaded, config) if config.streaming else _loaded(loaded, config, can_map=True)


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

    splits = row_cache.name_splits({str(split): rows for split, rows in loaded.items()})
    return {
        split: Reader(partial(read, split, rows), partial(stream, split, rows))
        for split, rows in splits.items()
    }


def _sides_of(rows: datasets.IterableDataset, config: DataConfig) -> datasets.IterableDataset:
    """The two sides of each row, and its number."""
    features = rows.features or rows._resolve_features().features or datasets.Features()
    src, tgt = _fields(features.arrow_schema, config)
    return rows.map(
        _pick,
        batched=True,
        with_indices=True,
        fn_kwargs={"src": src, "tgt": tgt, "code": ""},
        remove_columns=list(features),
        features=ROW_FEATURES,
    )


def _fields(schema: pa.Schema, config: DataConfig) -> tuple[readers.Field, readers.Field]:
    """Where the two sides stand."""
    return readers.match_fields(readers.schema_fields(schema), config.src, config.tgt, config.name)


def from_disk(path: Path, config: DataConfig) -> dict[str, Reader]:
    """Splits of what `save_to_disk` of `datasets` has written.

    Raises:
        ValueError: it is damaged.
    """
    try:
        loaded = datasets.load_from_disk(str(path))
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise ValueError(f"--dataset {path} cannot be read: {runtime.said(error)}") from None
    # What map makes would lie in that folder.
    return _loaded(loaded if isinstance(loaded, dict) else {"train": loaded}, config, can_map=False)


def _loaded(loaded: Mapping[str, datasets.Dataset], config: DataConfig, can_map: bool) -> dict[str, Reader]:
    """Readers of datasets; text is read in less time with map."""
    splits = row_cache.name_splits({str(split): rows for split, rows in loaded.items()})

    def cells_of(rows: datasets.Dataset) -> Iterator[object]:
        src, tgt = _fields(rows.data.schema, config)
        return cells.source_cells([cells.Table(_records(rows, config.name, src, tgt), src, tgt)])

    kind = cells.kind_of(config, splits, cells_of)

    def read(name: str, rows: datasets.Dataset) -> datasets.Dataset:
        src, tgt = _fields(rows.data.schema, config)
        if kind != "text" or not can_map:
            return row_cache.generate(
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
            fn_kwargs={"src": src, "tgt": tgt, "code": row_cache.code_of(_pick)},
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
    batches = (batch for table in columns.iter(arrays.LARGE_ROWS) for batch in table.to_batches())
    return readers.arrow_records(batches, name)
