"""The model folder: what training leaves behind and everything else takes. Nothing in it can run code.

Weights are safetensors, the rest is JSON. Files and checkpoints appear whole or not at all.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import distributed
import runtime
import shortlist
from config import Config, DataConfig, SourceConfig
from inputs import STATISTICS, FeatureInput, Input, Source, TextInput
from model import Transformer, build_transformer
from strict_json import Json, from_json, to_json
from tokenizer import Tokenizer

FORMAT_VERSION = 5
WEIGHTS = "model.safetensors"
CARD = "README.md"
AVERAGE = "average."
"""How the names of the averaged weights begin in a checkpoint; the best of them are those of model.safetensors."""
STATE, STATE_TENSORS = "state.json", "state.safetensors"
SIDE_FILES = ("tokenizer.json", "font.ttf", STATISTICS, shortlist.FILE)
"""What `create` may write beside config.json, which holds their checksums."""
# Far more than our own files have: a larger one is refused before it is read.
MAX_JSON, MAX_HEADER, MAX_SIDE_FILE = 4 << 20, 16 << 20, 256 << 20
REPLACED = ".replaced"


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
            from pictures import FONT, PictureInput  # as above

            return PictureInput.of_font(config.source, _needed(path / FONT), config.data.max_length)
        case "features":
            return FeatureInput.of_file(config.source.frame_stride, _needed(path / STATISTICS))


def _needed(file: Path) -> Path:
    if not file.is_file():
        lacking = f"{file.parent} has no {file.name}"
        raise FileNotFoundError(f"{lacking}, which a model of this source needs; copy it whole")
    return file


def build(config: Config, vocab_size: int, source: Input) -> Transformer:
    """A model of this configuration with fresh weights; text has one vocabulary and embedding for both sides."""
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
    tokenizer.save(path / "tokenizer.json")
    source.save(path)
    record["files"] = {name: _checksum(path / name) for name in SIDE_FILES if (path / name).is_file()}
    record["config"] = to_json(config)
    text = json.dumps({**record, "checksum": _seal(record)}, indent=2, ensure_ascii=False)
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
    is_as_written = seal is None or seal == _seal(record)  # older formats have none
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
        if file.name in expected and (given := _checksum(file)) != expected[file.name]:
            unlike = f"its checksum is {given}, expected {str(expected[file.name])[:32]}"
            raise ValueError(f"{file} is not the one this model learned with: {unlike}; copy it anew")


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, hashlib.blake2b).hexdigest()[:32]


def _blake2b(data: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)


def _upgrade(config: Json, version: int) -> None:
    """Bring the settings of an older format up to date: every source was text (1), all learned by AdamW (2), from
    fresh weights (3), from one corpus that was read before (4)."""
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
    tokenizer = Tokenizer.load(path / "tokenizer.json")
    source = read_source(config, tokenizer, path)
    if not (path / WEIGHTS).is_file():
        raise FileNotFoundError(f"{path} has no {WEIGHTS} yet; its training has not reached a validation")
    try:
        shapes = _read_header(path / WEIGHTS)
        model = _outline(config, tokenizer.vocab_size, source, shapes, path / WEIGHTS)
        tensors, _ = _read_tensors(path / WEIGHTS)
    except ValueError as error:
        restore = f"restore it: python train.py --resume {path}" if checkpoints(path) else "copy it anew"
        raise ValueError(f"{error}; {restore}") from None
    _check_types(tensors, path / WEIGHTS)
    model.load_state_dict({name: t.float() for name, t in tensors.items()}, strict=False, assign=True)
    model.projection_layer.proj.weight = model.tgt_embed.embedding.weight  # tied by `build`, which that undid
    if not all(p.isfinite().all() for p in model.parameters()):
        raise ValueError(f"{path / WEIGHTS} holds values that are not finite; train it again")
    return LoadedModel(model.eval().to(device), tokenizer, source, config, path)


Shapes = dict[str, tuple[int, ...]]


DRAWING = {"normal_", "uniform_", "kaiming_normal_", "kaiming_uniform_", "xavier_uniform_"}


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


def _outline(config: Config, vocab_size: int, source: Input, given: Shapes, file: Path) -> Transformer:
    """The model without memory for its weights, which is not drawn at random only to be overwritten.

    Raises:
        ValueError: the weights have other sizes than config.json claims.
    """
    model = config.model
    shapes: Shapes = {"encoder.layers.0.feed_forward_block.linear_1.weight": (model.d_ff, model.d_model)}
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
    _check_shapes({name: tuple(p.shape) for name, p in weights(whole).items()}, given, file)
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


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters by name, tied ones once."""
    return {name: p.detach() for name, p in model.named_parameters()}


def copy_weights(model: nn.Module, tensors: dict[str, Tensor], source: Path) -> None:
    """Fill a model in place.

    Raises:
        ValueError: a tensor is missing, left over or of another shape.
    """
    mine = weights(model)
    shapes, given = ({name: tuple(t.shape) for name, t in of.items()} for of in (mine, tensors))
    _check_shapes(shapes, given, source)
    _check_types(tensors, source)
    for name, target in mine.items():
        target.copy_(distributed.like(tensors[name], target))


def _check_types(tensors: dict[str, Tensor], source: Path) -> None:
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{source} does not fit its config.json: {name} holds {tensor.dtype}")


def _check_shapes(expected: Shapes, given: Shapes, source: Path) -> None:
    if unlike := sorted(set(expected) ^ set(given)):
        raise ValueError(
            f"{source} does not fit its config.json: {len(unlike)} tensors differ, first {unlike[0]}"
        )
    for name, shape in expected.items():
        if given[name] != shape:
            raise ValueError(
                f"{source} does not fit its config.json: {name} is {given[name]}, expected {shape}"
            )


def save_weights(path: Path, model: nn.Module, step: int = 0) -> None:
    """Write model.safetensors, the weights of that step."""
    _write_weights(path, weights(model), step)


def _write_weights(path: Path, tensors: dict[str, Tensor], step: int) -> None:
    raw, _ = _pack(tensors, step)
    runtime.write_atomic(path / WEIGHTS, raw)


def _pack(tensors: dict[str, Tensor], step: int) -> tuple[bytes, str]:
    """The content of a safetensors file that carries its step and checksum, and those."""
    cpu = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    stamp = _stamp(cpu, str(step))
    return safetensors.torch.save(cpu, {"stamp": stamp}), stamp


def _stamp(tensors: dict[str, Tensor], step: str) -> str:
    """In one string, for safetensors writes several ones in any order."""
    digest = _blake2b(step.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return f"{step} {digest.hexdigest()}"


def _read_header(file: Path) -> Shapes:
    """Shapes by name, read without any of the values.

    Raises:
        ValueError: no safetensors file, or more than the memory of this machine.
    """
    size = file.stat().st_size
    if hasattr(os, "sysconf") and size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise ValueError(f"{file} has {size:,} bytes, more than the memory of this machine")
    with file.open("rb") as opened:
        header = int.from_bytes(opened.read(8), "little")
    if header > min(size, MAX_HEADER):
        raise ValueError(f"{file} is not a complete safetensors file: its header would have {header:,} bytes")
    try:
        with safetensors.safe_open(file, "pt") as opened:
            return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OverflowError) as error:
        raise ValueError(f"{file} is not a complete safetensors file: {error}") from None


def _read_tensors(file: Path) -> tuple[dict[str, Tensor], str]:
    """What `_pack` has packed, and its stamp; empty for a file of another program.

    Raises:
        ValueError: the file is damaged.
    """
    _read_header(file)
    try:
        tensors = safetensors.torch.load_file(file)
        with safetensors.safe_open(file, "pt") as opened:
            stamp = str((opened.metadata() or {}).get("stamp", ""))
    except (safetensors.SafetensorError, KeyError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{file} is not a complete safetensors file: {error}") from None
    if stamp and stamp != _stamp(tensors, stamp.partition(" ")[0]):
        raise ValueError(f"{file} is damaged, its checksum differs")
    return tensors, stamp


@dataclass
class TrainState:
    """Where a run stands, beside its tensors."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch done."""
    elapsed_s: float = 0.0
    """Seconds trained, validation included, all starts together."""
    best_score: float = -1.0
    """Best validation BLEU so far."""
    best_step: int = 0
    bad_validations: int = 0
    """Validations since the best."""
    target_tokens: int = 0
    """Real target tokens learned from."""
    needs_validation: bool = False
    """The validation that belongs to this step is still to come: a signal was faster."""
    corpus_tokens: list[int] = field(default_factory=list)
    """Those of each corpus, where there are several."""
    stream: dict[str, Json] = field(default_factory=dict)
    """With --streaming, the position of each lane (see streaming.py) by its number; epoch and batch do not count."""


def save_state(path: Path, state: TrainState, tensors: dict[str, Tensor], keep: int) -> Path:
    """Write checkpoints/<step>/ beside, flushed, then renamed; then `prune`."""
    root = path / "checkpoints"
    final = root / f"{state.step:06d}"
    temporary = root / f".{final.name}{runtime.INCOMPLETE}"
    replaced = root / f".{final.name}{REPLACED}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        raw, stamp = _pack(tensors, state.step)
        record: dict[str, Json] = {"state": to_json(state), "tensors": stamp}
        record["checksum"] = _seal(record)
        runtime.write_atomic(temporary / STATE_TENSORS, raw)
        runtime.write_atomic(temporary / STATE, json.dumps(record, indent=2) + "\n")
        if final.exists():  # the same step again after a resume: never a moment without one of the two
            final.replace(replaced)
        temporary.replace(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    runtime.sync_folder(root)
    shutil.rmtree(replaced, ignore_errors=True)
    prune(path, state.step, keep)
    return final


def prune(path: Path, step: int, keep: int) -> None:
    """Of the checkpoints of a run that stands at `step`, keep the newest `keep` and the best of each of them."""
    # Later ones belong to a future that this run has left: it went back, because they were damaged.
    newest = [p for p in checkpoints(path) if int(p.name) <= step][-keep:]
    kept = {int(p.name) for p in newest} | {best for p in newest if (best := _best_step(p)) is not None}
    for old in (p for p in checkpoints(path) if int(p.name) not in kept):
        # First the name, so that a kill leaves no half of it under the old one.
        shutil.rmtree(old.replace(old.with_name(f".{old.name}{runtime.INCOMPLETE}")))


def _best_step(checkpoint: Path) -> int | None:
    try:
        return _read_record(checkpoint)[0].best_step
    except (ValueError, OSError):
        return None


def clear_leftovers(path: Path) -> None:
    """Remove what a killed run left half-written; only for the process that holds the folder's lock."""
    root = path / "checkpoints"
    if not (path / "config.json").exists():  # killed before its training began
        shutil.rmtree(root, ignore_errors=True)
    for replaced in root.glob(f".*{REPLACED}"):
        final = root / replaced.name[1 : -len(REPLACED)]
        if final.exists():
            shutil.rmtree(replaced)
        else:
            replaced.replace(final)
    for unfinished in [*path.glob(f".*{runtime.INCOMPLETE}"), *root.glob(f".*{runtime.INCOMPLETE}")]:
        if unfinished.is_dir():
            shutil.rmtree(unfinished)
        else:
            unfinished.unlink()


def checkpoints(path: Path) -> list[Path]:
    """Complete checkpoints of a model folder, oldest first, by number and not by name."""
    found = [
        p
        for p in (path / "checkpoints").glob("*")
        if re.fullmatch("[0-9]{6,18}", p.name) and (p / STATE).is_file()
    ]
    return sorted(found, key=lambda p: int(p.name))


def load_state(path: Path, step: int | None = None) -> tuple[TrainState, dict[str, Tensor]]:
    """The newest checkpoint that can be read; a damaged one is skipped with a warning.

    Args:
        step: that of this step and no other.
    Raises:
        FileNotFoundError: there is none.
    """
    for candidate in reversed(checkpoints(path)):
        if step not in (None, int(candidate.name)):
            continue
        try:
            return _read_state(candidate)
        except (ValueError, OSError) as error:
            print(f"warning: {candidate} is damaged and skipped: {error}", file=sys.stderr)
    raise FileNotFoundError(f"{path} has no checkpoint to resume from; start it again with another --out")


def _read_state(checkpoint: Path) -> tuple[TrainState, dict[str, Tensor]]:
    state, expected = _read_record(checkpoint)
    if state.step != int(checkpoint.name):
        raise ValueError(f"it is of step {state.step}")
    tensors, stamp = _read_tensors(checkpoint / STATE_TENSORS)
    if stamp != expected:
        raise ValueError(f"{STATE} and {STATE_TENSORS} are not of one checkpoint")
    return state, tensors


def _read_record(checkpoint: Path) -> tuple[TrainState, str]:
    """Where the run stood, and the stamp of the tensors that belong to it."""
    record = runtime.read_json(checkpoint / STATE, MAX_JSON)
    if not isinstance(record, dict) or not isinstance(stamp := record.get("tensors"), str):
        raise ValueError(f"{checkpoint / STATE} has no checksum")
    if record.pop("checksum", None) != _seal(record):
        raise ValueError(f"{checkpoint / STATE} is damaged, its checksum differs")
    if isinstance(state := record.get("state"), dict):  # format 4 had one corpus and no stream
        record["state"] = {"corpus_tokens": [], "stream": {}, **state}
    return from_json(TrainState, record.get("state"), str(checkpoint)), stamp


def _seal(record: dict[str, Json]) -> str:
    return _blake2b(json.dumps(record, sort_keys=True).encode()).hexdigest()


def restore_weights(path: Path, state: TrainState) -> None:
    """See that model.safetensors holds the best weights as `state` knows them.

    A kill between the two writes, damage, or going back to an older checkpoint leaves others there. What no
    checkpoint holds any more is given up with a warning, and the next validation counts as the best.
    """
    if not state.best_step:
        return
    try:
        if _read_tensors(path / WEIGHTS)[1].startswith(f"{state.best_step} "):
            return
    except (ValueError, OSError):
        pass
    best = path / "checkpoints" / f"{state.best_step:06d}"
    try:
        tensors = _read_state(best)[1]
    except (ValueError, OSError) as error:
        print(f"warning: the best weights, of {best}, are lost: {error}", file=sys.stderr)
        state.best_score, state.best_step = TrainState.best_score, TrainState.best_step
        return
    averaged = {n.removeprefix(AVERAGE): t for n, t in tensors.items() if n.startswith(AVERAGE)}
    _write_weights(path, averaged, state.best_step)
    print(f"{WEIGHTS} is written anew from {best}")
