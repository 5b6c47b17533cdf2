"""The model folder: what training leaves behind and everything else takes. Nothing in it can run code.

Weights are safetensors, the rest is JSON. Files and checkpoints appear whole or not at all.
"""

import json
import platform
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

import runtime
from config import Config, Json, SourceConfig, from_json, to_json
from inputs import STATISTICS, FeatureInput, Input, Source, TextInput
from model import Transformer, build_transformer
from tokenizer import Tokenizer

FORMAT_VERSION = 3
WEIGHTS = "model.safetensors"
CARD = "README.md"


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
    record = {"format_version": FORMAT_VERSION, "versions": versions, "data_fingerprint": data_fingerprint}
    tokenizer.save(path / "tokenizer.json")
    source.save(path)
    text = json.dumps({**record, "config": to_json(config)}, indent=2, ensure_ascii=False)
    runtime.write_atomic(path / "config.json", text + "\n")


def read_config(path: Path) -> tuple[Config, str]:
    """The configuration of a model folder and the fingerprint of the data it learned from.

    Raises:
        FileNotFoundError: there is no such folder, or it holds no model.
        ValueError: it is not one of ours, or of a newer format.
    """
    file = path / "config.json"
    if not path.is_dir():
        raise FileNotFoundError(f"no model in {path}; train one first: python train.py --out {path}")
    if not file.is_file():
        raise FileNotFoundError(f"{path} is not a model folder: it has no config.json")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from None
    version = record.get("format_version") if isinstance(record, dict) else None
    if type(version) is not int or not isinstance(record.get("data_fingerprint"), str):
        raise ValueError(f"{path} is not a model folder of this program: {file} has no format_version")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {version}, newer than {FORMAT_VERSION}, the newest known here; update"
        )
    _upgrade(record.get("config"), version)
    return from_json(Config, record.get("config"), str(file)), record["data_fingerprint"]


def _upgrade(config: Json, version: int) -> None:
    """Bring the settings of an older format up to date: every source was text (1), all learned by AdamW (2)."""
    if not isinstance(config, dict):
        return
    if version < 2 and isinstance(data := config.get("data"), dict):
        data["source"], config["source"] = "text", to_json(SourceConfig())
    if version < 3 and isinstance(train := config.get("train"), dict):
        train["optimizer"] = "adamw"


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
    tensors = _read_tensors(path / WEIGHTS)
    _check_sizes(config, tokenizer.vocab_size, source, tensors, path / WEIGHTS)
    model = build(config, tokenizer.vocab_size, source)
    copy_weights(model, tensors, path / WEIGHTS)
    if not all(p.isfinite().all() for p in model.parameters()):
        raise ValueError(f"{path / WEIGHTS} holds values that are not finite; train it again")
    return LoadedModel(model.eval().to(device), tokenizer, source, config, path)


def _check_sizes(
    config: Config, vocab_size: int, source: Input, tensors: dict[str, Tensor], file: Path
) -> None:
    """Before anything of the sizes that config.json claims is built, see that the weights have them too."""
    model = config.model
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.layers.0.feed_forward_block.linear_1.weight": (model.d_ff, model.d_model)
    }
    embedding = "src_embed" if config.data.source == "text" else "tgt_embed"  # the first name of a shared one
    shapes[f"{embedding}.embedding.weight"] = (vocab_size, model.d_model)
    with torch.device("meta"):
        front = source.embedding(model.d_model)
    if front is not None:
        shapes |= {f"src_embed.{name}": tuple(p.shape) for name, p in front.named_parameters()}
    if model.positions == "learned":
        shapes["src_pos.table"] = (config.data.max_length, model.d_model)
    for name, shape in shapes.items():
        given = tuple(tensors[name].shape) if name in tensors else None
        if given != shape:
            raise ValueError(f"{file} does not fit its config.json: {name} {given}, expected {shape}")
    for stack, expected in (("encoder", model.num_layers), ("decoder", model.num_decoder_layers)):
        num_layers = len({n.split(".")[2] for n in tensors if n.startswith(f"{stack}.layers.")})
        if num_layers != expected:
            layers = f"{num_layers} {stack} layers, expected {expected}"
            raise ValueError(f"{file} does not fit its config.json: {layers}")


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
    if unlike := sorted(set(mine) ^ set(tensors)):
        raise ValueError(
            f"{source} does not fit its config.json: {len(unlike)} tensors differ, first {unlike[0]}"
        )
    for name, target in mine.items():
        if target.shape != tensors[name].shape:
            shapes = f"{tuple(tensors[name].shape)}, expected {tuple(target.shape)}"
            raise ValueError(f"{source} does not fit its config.json: {name} is {shapes}")
        target.copy_(tensors[name])


def save_weights(path: Path, model: nn.Module) -> None:
    """Write model.safetensors."""
    tensors = {name: p.contiguous().cpu() for name, p in weights(model).items()}
    runtime.write_atomic(path / WEIGHTS, safetensors.torch.save(tensors))


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(file)
    except (safetensors.SafetensorError, KeyError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{file} is not a complete safetensors file: {error}") from None


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


def save_state(path: Path, state: TrainState, tensors: dict[str, Tensor], keep: int) -> Path:
    """Write checkpoints/<step>/ beside, flushed, then renamed; keep the newest `keep`."""
    root = path / "checkpoints"
    final = root / f"{state.step:06d}"
    temporary = root / f".{final.name}.incomplete"
    replaced = root / f".{final.name}.replaced"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        cpu = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
        runtime.write_atomic(temporary / "state.safetensors", safetensors.torch.save(cpu))
        runtime.write_atomic(temporary / "state.json", json.dumps(to_json(state), indent=2) + "\n")
        if final.exists():  # the same step again after a resume: never a moment without one of the two
            final.replace(replaced)
        temporary.replace(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    runtime.sync_folder(root)
    shutil.rmtree(replaced, ignore_errors=True)
    for old in checkpoints(path)[:-keep]:
        shutil.rmtree(old)
    return final


def checkpoints(path: Path) -> list[Path]:
    """Complete checkpoints of a model folder, oldest first, by number and not by name."""
    found = [
        p for p in (path / "checkpoints").glob("*") if p.name.isdecimal() and (p / "state.json").is_file()
    ]
    return sorted(found, key=lambda p: int(p.name))


def load_state(path: Path) -> tuple[TrainState, dict[str, Tensor]]:
    """The newest checkpoint that can be read; a damaged one is skipped with a warning.

    Raises:
        FileNotFoundError: there is none.
    """
    for candidate in reversed(checkpoints(path)):
        try:
            record: Json = json.loads((candidate / "state.json").read_text(encoding="utf-8"))
            return from_json(TrainState, record, str(candidate)), _read_tensors(
                candidate / "state.safetensors"
            )
        except (ValueError, OSError) as error:
            print(f"warning: {candidate} is damaged and skipped: {error}", file=sys.stderr)
    raise FileNotFoundError(f"{path} has no checkpoint to resume from; start it again with another --out")
