"""Checkpoints: all the state that an exact resume needs. One appears whole or not at all; a damaged one is skipped."""

import json
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

import model_folder
import runtime
import tensor_files
from strict_json import Json, checksum, from_json, to_json

STATE, STATE_TENSORS = "state.json", "state.safetensors"
AVERAGE = "average."
"""How the names of the averaged weights begin in a checkpoint; the best of them are those of model.safetensors."""
REPLACED = ".replaced"


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
    best_weights: str = ""
    """Stamp of the weights of that step, which model.safetensors carries."""
    bad_validations: int = 0
    """Validations since the best."""
    target_tokens: int = 0
    """Real target tokens learned from."""
    needs_validation: bool = False
    """The validation that belongs to this step is still to come: a signal was faster."""
    corpus_tokens: list[int] = field(default_factory=list)
    """Real target tokens learned from each corpus, where there are several."""
    stream: dict[str, Json] = field(default_factory=dict)
    """With --streaming, the position of each lane (see streaming.py) by its number.

    `batch` stays 0 then, and `epoch` is only reported."""


def save_state(path: Path, state: TrainState, tensors: dict[str, Tensor], keep: int) -> Path:
    """Write checkpoints/<step>/ beside, flushed, then renamed; then `prune`."""
    root = path / "checkpoints"
    final = root / f"{state.step:06d}"
    temporary = root / f".{final.name}{runtime.INCOMPLETE}"
    replaced = root / f".{final.name}{REPLACED}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        raw, stamp = tensor_files.pack(tensors, str(state.step))
        record: dict[str, Json] = {"state": to_json(state), "tensors": stamp}
        record["checksum"] = checksum(record)
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
    tensors, stamp = tensor_files.read(checkpoint / STATE_TENSORS)
    if stamp != expected:
        raise ValueError(f"{STATE} and {STATE_TENSORS} are not of one checkpoint")
    return state, tensors


def _read_record(checkpoint: Path) -> tuple[TrainState, str]:
    """Where the run stood, and the stamp of the tensors that belong to it."""
    record = runtime.read_json(checkpoint / STATE, model_folder.MAX_JSON)
    if not isinstance(record, dict) or not isinstance(stamp := record.get("tensors"), str):
        raise ValueError(f"{checkpoint / STATE} has no checksum")
    if record.pop("checksum", None) != checksum(record):
        raise ValueError(f"{checkpoint / STATE} is damaged, its checksum differs")
    if isinstance(state := record.get("state"), dict):  # older ones have one corpus, no stream, no stamp
        record["state"] = {"corpus_tokens": [], "stream": {}, "best_weights": "", **state}
    return from_json(TrainState, record.get("state"), str(checkpoint)), stamp


def restore_weights(path: Path, state: TrainState) -> None:
    """See that model.safetensors holds the best weights as `state` knows them.

    A kill between the two writes, damage, or going back to an older checkpoint leaves others there. What no
    checkpoint holds any more is given up with a warning, and the next validation counts as the best.
    """
    if not state.best_step and not state.best_weights:
        return
    try:
        if tensor_files.read(path / model_folder.WEIGHTS)[1] == state.best_weights:
            return
    except (ValueError, OSError):
        pass
    best = path / "checkpoints" / f"{state.best_step:06d}"
    try:
        tensors = _read_state(best)[1]
    except (ValueError, OSError) as error:
        print(f"warning: the best weights, of {best}, are lost: {error}", file=sys.stderr)
        state.best_score, state.best_step, state.best_weights = -1.0, 0, ""
        return
    averaged = {n.removeprefix(AVERAGE): t for n, t in tensors.items() if n.startswith(AVERAGE)}
    state.best_weights = model_folder.write_weights(path, averaged, state.best_step)
    print(f"{model_folder.WEIGHTS} is written anew from {best}")
