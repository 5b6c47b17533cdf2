"""The model folder: what training leaves behind and everything else takes. Nothing in it can run code.

Weights are safetensors, the rest is JSON. Files appear whole or not at all.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import runtime
import shortlist
import tensor_files
from config import Config, DataConfig, SourceConfig
from inputs import FONT, STATISTICS, FeatureInput, Input, Source, TextInput
from model import Transformer, build_transformer
from strict_json import Json, checksum, from_json, to_json
from tokenizer import Tokenizer

FORMAT_VERSION = 5
WEIGHTS = "model.safetensors"
CARD = "README.md"
TOKENIZER = "tokenizer.json"
SIDE_FILES = (TOKENIZER, FONT, STATISTICS, shortlist.FILE)
"""What `create` may write beside config.json, which holds their checksums."""
# Far more than our own files have: a larger one is refused before it is read.
MAX_JSON, MAX_SIDE_FILE = 4 << 20, 256 << 20
# What draws random values.
DRAWING = {"normal_", "uniform_", "kaiming_normal_", "kaiming_uniform_"}


class LoadedModel(NamedTuple):
    """A model folder in memory, the model in evaluation mode."""

    model: Transformer
    tokenizer: Tokenizer
    source: Input
    config: Config
    path: Path


def make_source(config: Config, tokenizer: Tokenizer, sources: Iterable[Source]) -> Input:
    """The source side of a new model.

    Args:
        sources: the source cells of the training rows; read for features only, once.
    """
    match config.data.source:
        case "text":
            return TextInput(tokenizer, config.train.bpe_dropout, config.data.max_length)
        case "image":
            from pictures import PictureInput  # Pillow takes a tenth of a second, and text needs none of it

            font = None if config.source.font is None else Path(config.source.font)
            return PictureInput.of_font(config.source, font, config.data.max_length)
        case "features":
            return FeatureInput.of_rows(config.source.frame_stride, sources)


def read_source(config: Config, tokenizer: Tokenizer, path: Path) -> Input:
    """The source side of a model folder.

    Raises:
        FileNotFoundError, ValueError: the folder lacks a file, or it is damaged.
    """
    match config.data.source:
        case "text":
            return make_source(config, tokenizer, ())
        case "image":
            from pictures import PictureInput  # as above

            return PictureInput.of_font(config.source, _needed(path / FONT), config.data.max_length)
        case "features":
            return FeatureInput.of_file(config.source.frame_stride, _needed(path / STATISTICS))


def _needed(file: Path) -> Path:
    if not file.is_file():
        lacking = f"{file.parent} has no {file.name}"
        raise FileNotFoundError(f"{lacking}, which a model of this source needs; copy it whole")
    return file


def build(config: Config, vocab_size: int, source: Input) -> Transformer:
    """A model of this configuration with initial weights; text has one vocabulary and embedding for both sides."""
    model, longest = config.model, config.data.max_length
    src_embed = source.embedding(model.d_model)
    return build_transformer(
        vocab_size,
        vocab_size,
        longest,
        longest,
        model.d_model,
        model.num_layers,
        model.num_heads,
        model.dropout,
        model.d_ff,
        num_decoder_layers=model.num_decoder_layers,
        norm=model.norm,
        activation=model.activation,
        positions=model.positions,
        tie_embeddings=True,
        share_vocab=src_embed is None,
        src_embed=src_embed,
    )


def create(path: Path, config: Config, tokenizer: Tokenizer, source: Input, data_fingerprint: str) -> None:
    """Begin a model folder: its tokenizer, what its source needs, and config.json."""
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    record: dict[str, Json] = {
        "format_version": FORMAT_VERSION,
        "versions": dict(versions),
        "data_fingerprint": data_fingerprint,
    }
    tokenizer.save(path / TOKENIZER)
    source.save(path)
    record["files"] = {name: _file_checksum(path / name) for name in SIDE_FILES if (path / name).is_file()}
    record["config"] = to_json(config)
    text = json.dumps({**record, "checksum": checksum(record)}, indent=2, ensure_ascii=False)
    runtime.write_atomic(path / "config.json", text + "\n")


def read_config(path: Path) -> tuple[Config, str]:
    """The configuration of a model folder and the fingerprint of the data it learned from.

    Raises:
        FileNotFoundError: there is no such folder, or it holds no model.
        ValueError: it is not one of ours, of a newer format, damaged, or leads out of itself.
    """
    file = path / "config.json"
    if not path.is_dir():
        raise FileNotFoundError(f"no model in {path}; train one first: python train.py --out {path}")
    if not file.is_file():
        raise FileNotFoundError(f"{path} is not a model folder: it has no config.json")
    _check_links(path)
    record = runtime.read_json(file, MAX_JSON)
    record = record if isinstance(record, dict) else {}
    version, fingerprint = record.get("format_version"), record.get("data_fingerprint")
    if type(version) is not int or not isinstance(fingerprint, str):
        raise ValueError(f"{path} is not a model folder of this program: {file} has no format_version")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {version}, newer than {FORMAT_VERSION}, the newest known here; update"
        )
    seal = record.pop("checksum", None)
    is_as_written = seal is None or seal == checksum(record)  # older formats have none
    _upgrade(record.get("config"), version)
    config = from_json(Config, record.get("config"), str(file))
    _check_side_files(path, record.get("files", {}))
    if not is_as_written:
        raise ValueError(f"{file} is not as it was written, its checksum differs; restore it")
    return config, fingerprint


def _check_links(path: Path) -> None:
    """A link could make a reader, or a run that goes on and writes, reach any file of this machine."""
    home = os.path.realpath(path)
    for file in path.rglob("*"):
        if file.is_symlink() and not os.path.realpath(file).startswith(home + os.sep):
            raise ValueError(
                f"{file} is a link that leads out of the model folder; put the file itself there"
            )


def _check_side_files(path: Path, checksums: Json) -> None:
    """See that the files beside config.json are those that were written with it (older formats do not say)."""
    expected = checksums if isinstance(checksums, dict) else {}
    for file in (path / name for name in SIDE_FILES if (path / name).is_file()):
        runtime.check_size(file, MAX_SIDE_FILE)
        if file.name in expected and (given := _file_checksum(file)) != expected[file.name]:
            unlike = f"its checksum is {given}, expected {str(expected[file.name])[:32]}"
            raise ValueError(f"{file} is not the one this model learned with: {unlike}; copy it anew")


def _file_checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, hashlib.blake2b).hexdigest()[:32]


def _upgrade(config: Json, version: int) -> None:
    """Bring the settings of an older format up to date: every source was text (1), all learned by AdamW (2), from
    initial weights (3), from one corpus that was read before (4)."""
    if not isinstance(config, dict):
        return
    if version < 2 and isinstance(data := config.get("data"), dict):
        data["source"], config["source"] = "text", to_json(SourceConfig())
    if version < 3 and isinstance(train := config.get("train"), dict):
        train["optimizer"] = "adamw"
    if version < 4 and isinstance(train := config.get("train"), dict):
        train["init_from"] = None
    if version < 5 and isinstance(data := config.get("data"), dict):
        names = data.get("dataset")
        data["dataset"] = [names] if isinstance(names, str) else names
        data |= {"weights": None, "temperature": None, "streaming": False, "buffer": DataConfig.buffer}


def load(path: Path, device: torch.device) -> LoadedModel:
    """Load a trained model from its folder.

    Raises:
        FileNotFoundError, ValueError: see `read_config`; also weights that are missing, damaged or do not fit.
    """
    config, _ = read_config(path)
    tokenizer = Tokenizer.load(path / TOKENIZER)
    source = read_source(config, tokenizer, path)
    if not (path / WEIGHTS).is_file():
        is_finished = (path / CARD).is_file()
        why = "copy the folder again, whole" if is_finished else "its training has not reached a validation"
        raise FileNotFoundError(f"{path} has no {WEIGHTS}{'' if is_finished else ' yet'}; {why}")
    try:
        shapes = tensor_files.read_shapes(path / WEIGHTS)
        model = _outline(config, tokenizer.vocab_size, source, shapes, path / WEIGHTS)
        tensors, stamp = tensor_files.read(path / WEIGHTS)
        _check_origin(stamp, path)
    except ValueError as error:
        restore = (
            f"restore it: python train.py --resume {path}"
            if any((path / "checkpoints").glob("[0-9]*"))
            else "copy it anew"
        )
        raise ValueError(f"{error}; {restore}") from None
    tensor_files.check_types(tensors, path / WEIGHTS)
    model.load_state_dict({name: t.float() for name, t in tensors.items()}, strict=False, assign=True)
    model.projection_layer.proj.weight = model.tgt_embed.embedding.weight  # tied by `build`, which that undid
    if not all(p.isfinite().all() for p in model.parameters()):
        raise ValueError(f"{path / WEIGHTS} holds values that are not finite; train it again")
    return LoadedModel(model.eval().to(device), tokenizer, source, config, path)


def _check_origin(stamp: str, path: Path) -> None:
    """See that weights learned with the subwords of this folder; those of another run may have the same shapes."""
    match stamp.split():  # of older formats and other programs it does not say
        case [_, vocabulary, _] if vocabulary != _file_checksum(path / TOKENIZER):
            raise ValueError(f"{path / WEIGHTS} is of another model: it learned with another {TOKENIZER}")


class _Undrawn(TorchFunctionMode):
    """Leaves weights as they are where random values would be drawn for them: without memory there is nothing to
    fill, and torch would load its compiler, a second and more, to find that out."""

    def __torch_function__(
        self,
        func: Callable[[*tuple[object, ...]], Tensor],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> Tensor:
        given = kwargs or {}
        if getattr(func, "__name__", "") in DRAWING:
            target = given["tensor"] if "tensor" in given else args[0]
            assert isinstance(target, Tensor)
            return target
        return func(*args, **given)


def _outline(
    config: Config, vocab_size: int, source: Input, given: tensor_files.Shapes, file: Path
) -> Transformer:
    """The model without memory for its weights, which is not drawn at random only to be overwritten.

    Raises:
        ValueError: the weights have other sizes than config.json claims.
    """
    model = config.model
    shapes: tensor_files.Shapes = {
        "encoder.layers.0.feed_forward_block.linear_1.weight": (model.d_ff, model.d_model)
    }
    embedding = "src_embed" if config.data.source == "text" else "tgt_embed"  # the first name of a shared one
    shapes[f"{embedding}.embedding.weight"] = (vocab_size, model.d_model)
    with torch.device("meta"), _Undrawn():
        front = source.embedding(model.d_model)
    if front is not None:
        shapes |= {f"src_embed.{name}": tuple(p.shape) for name, p in front.named_parameters()}
    if model.positions == "learned":
        shapes["src_pos.table"] = (config.data.max_length, model.d_model)
    for name, shape in shapes.items():
        if given.get(name) != shape:
            raise ValueError(
                f"{file} does not fit its config.json: {name} {given.get(name)}, expected {shape}"
            )
    for stack, expected in (("encoder", model.num_layers), ("decoder", model.num_decoder_layers)):
        num_layers = len({n.split(".")[2] for n in given if n.startswith(f"{stack}.layers.")})
        if num_layers != expected:
            layers = f"{num_layers} {stack} layers, expected {expected}"
            raise ValueError(f"{file} does not fit its config.json: {layers}")
    with torch.device("meta"), _Undrawn():
        whole = build(config, vocab_size, source)
    tensor_files.check_shapes(
        {name: tuple(p.shape) for name, p in tensor_files.of_model(whole).items()}, given, file
    )
    return whole


def newest_run(root: Path = Path("runs")) -> Path:
    """The model folder under `root` whose training finished last (a finished one has its card).

    Raises:
        FileNotFoundError: names the command that makes a model.
    """
    finished = [card.parent for card in root.glob(f"*/{CARD}") if (card.parent / WEIGHTS).is_file()]
    if not finished:
        raise FileNotFoundError(f"no finished model in {root}/; train one first: python train.py")
    return max(finished, key=lambda path: (path / CARD).stat().st_mtime_ns)


def save_weights(path: Path, model: nn.Module, step: int = 0) -> str:
    """Write model.safetensors, the weights of that step, into a folder begun by `create`; returns their stamp."""
    return write_weights(path, tensor_files.of_model(model), step)


def write_weights(path: Path, tensors: dict[str, Tensor], step: int) -> str:
    """The same from tensors by name."""
    raw, stamp = tensor_files.pack(tensors, f"{step} {_file_checksum(path / TOKENIZER)}")
    runtime.write_atomic(path / WEIGHTS, raw)
    return stamp
