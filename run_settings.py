"""The settings of a run: flags, recipe, and what a run that goes on or starts from other weights may change."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import torch

import distributed
import model_folder
import runtime
from checkpoint import checkpoints
from command_line import parse_args
from config import Config, DataConfig, TrainConfig, check_source
from corpus import Splits, read_splits
from recipe import num_micro_batches, recipe, with_optimizer
from render import read_font

# Settings that a resumed run may change; everything else has already shaped the weights or the data.
CHANGEABLE = {
    "--dataset",  # where the same rows lie
    "--max-minutes", "--max-steps", "--patience", "--keep-checkpoints", "--log-every", "--validate-every",
}  # fmt: skip
# Settings of model and source that a run started from another's weights may change: they shape no weight.
FREE = {"--dropout", "--font-size-range", "--varied-share"}
# In the model folder of a run that torchrun began: which of its launches that was.
LAUNCH = Path("checkpoints", "launch")


@dataclass(frozen=True)
class RunConfig:
    """Run: where it happens."""

    out: Path | None = None
    """Model folder to make; runs/<dataset>-<src>-<tgt> by default, with the kind of source if it is not text."""
    resume: Path | None = None
    """Model folder whose training goes on."""
    threads: int | None = None
    """CPU threads; all cores by default."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps …"""
    rank_timeout: float = 30.0
    """Minutes that one of several processes waits for the others before it ends with a message."""
    shard: bool = False
    """Split weights, gradients and optimizer state among the processes, for models whose training does not fit
    into one device; each still holds the averaged weights whole while it validates."""


@dataclass(frozen=True)
class TrainCommand(Config):
    """All flags of train.py."""

    run: RunConfig = field(default_factory=RunConfig)


def resolve_folder(cmd: TrainCommand, args: list[str] | None) -> tuple[TrainCommand, Path]:
    """The command with all that --init-from fixes, and the model folder of the run.

    It goes on with a run of that folder if torchrun started the ranks again and an earlier start of them began it.
    """
    if cmd.run.resume is not None:
        if cmd.run.out is not None:
            raise ValueError(f"--resume goes on in its own folder, {cmd.run.resume}; leave --out out")
        return cmd, cmd.run.resume
    if cmd.train.init_from is not None:
        cmd = _with_architecture(cmd, Path(cmd.train.init_from), args)
    else:
        check_source(cmd)
    name = "+".join(map(_short_name, cmd.data.dataset))
    kind = "" if cmd.data.source == "text" else f"-{cmd.data.source}"
    out = cmd.run.out or Path("runs") / f"{name}-{cmd.data.src}-{cmd.data.tgt}{kind}"
    if distributed.from_first(_is_restart(out)):  # the launch may have another name on another machine
        print(f"started again by torchrun: going on with {out}")
        cmd = replace(cmd, run=replace(cmd.run, resume=out))
    return cmd, out


def _is_restart(out: Path) -> bool:
    mark = out / LAUNCH
    is_begun = distributed.num_restarts() > 0 and mark.is_file() and (out / "config.json").exists()
    return is_begun and mark.read_text(encoding="utf-8") == distributed.launch()


def prepare_run(
    cmd: TrainCommand, path: Path, args: list[str] | None, workers: int
) -> tuple[TrainCommand, Splits]:
    """Read the corpus and fill the settings that were not given, by recipe or from the run to go on with."""
    if cmd.run.resume is not None:
        return _prepare_resume(path, args)
    refuse_taken(path)
    if cmd.source.font is not None and cmd.train.init_from is None:
        read_font(Path(cmd.source.font))  # before the corpus is read rather than after
    splits = read_splits(cmd.data)
    has_accelerator = runtime.device(cmd.run.device).type != "cpu"
    chosen, reason = recipe(cmd, splits.num_pairs, workers, has_accelerator)
    print(f"recipe: {reason}")
    if cmd.train.init_from is not None:
        train = replace(chosen.train, init_from=cmd.train.init_from)
        chosen = replace(chosen, model=cmd.model, train=train)
        sides = model_folder.read_config(Path(cmd.train.init_from))[0].data
        print(
            f"weights, tokenizer and architecture: from {cmd.train.init_from} ({sides.src} → {sides.tgt});"
            f" this run learns {cmd.data.src} → {cmd.data.tgt}"
        )
    final = parse_args(TrainCommand, args=args, default=_command(chosen))
    if (optimizer := final.train.optimizer) != chosen.train.optimizer:
        train = with_optimizer(chosen.train, optimizer)
        print(
            f"overridden: --optimizer {optimizer}, with --lr {train.lr} and --weight-decay {train.weight_decay}"
        )
        chosen = replace(chosen, train=train)
        final = parse_args(TrainCommand, args=args, default=_command(chosen))
    for flag, preset, given in _differences(chosen, final):
        print(f"overridden: {flag} {given}" + ("" if preset is None else f" instead of {preset}"))
    return final, splits


def refuse_taken(out: Path) -> None:
    """See that a new run may begin in a folder."""
    if (out / "config.json").exists():
        if (out / model_folder.CARD).exists():
            raise ValueError(
                f"{out} holds a finished run; train it longer with --resume {out} and a larger budget, or choose"
                " another folder: --out DIR"
            )
        advice = f"go on with it: --resume {out}, or choose another folder: --out DIR"
        raise ValueError(f"{out} holds an unfinished run; {advice}")
    if checkpoints(out) or any((out / name).exists() for name in (model_folder.WEIGHTS, "metrics.jsonl")):
        raise ValueError(
            f"{out} has lost the config.json of its run; restore it, or choose another folder: --out DIR"
        )
    if (out / runtime.LOCK).exists():  # of a run that was killed before it began, or that holds it just now
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there already and is not empty; choose another folder: --out DIR")


def _with_architecture(cmd: TrainCommand, path: Path, args: list[str] | None) -> TrainCommand:
    """The command with all that the weights in `path` fix: the model, and how it reads its source."""
    start, _ = model_folder.read_config(path)
    data = replace(DataConfig(), source=start.data.source)
    if start.model.positions == "learned":
        data = replace(data, max_length=start.data.max_length)
    default = TrainCommand(data, start.model, TrainConfig(), start.source)
    final = parse_args(TrainCommand, args=args, default=default)
    free = FREE | {f"--{f.name.replace('_', '-')}" for f in fields(DataConfig)} - {"--source"}
    if start.model.positions == "learned":
        free -= {"--max-length"}
    for flag, was, now in _differences(default, final, ("data", "model", "source")):
        if flag not in free:
            raise ValueError(f"the model in {path} has {flag} {was}, not {now}; leave the flag out")
    return final


def _short_name(dataset: str) -> str:
    path = Path(dataset.removeprefix("builtin:"))
    return (path.resolve() if path.exists() else path).name.split(".")[0]


def _prepare_resume(path: Path, args: list[str] | None) -> tuple[TrainCommand, Splits]:
    saved, fingerprint = model_folder.read_config(path)
    final = parse_args(TrainCommand, args=args, default=_command(saved))
    for flag, was, now in _differences(saved, final):
        if flag not in CHANGEABLE:
            advice = "leave the flag out or start a new run"
            raise ValueError(
                f"a resumed run cannot change {flag} from {_shown(was)} to {_shown(now)}; {advice}"
            )
        print(f"changed on resume: {flag} from {_shown(was)} to {_shown(now)}")
    splits = read_splits(final.data)
    if splits.fingerprint != fingerprint:
        advice = "restore it or start a new run"
        raise ValueError(f"{final.data.name} is not the data that {path} learned from; {advice}")
    return final, splits


def _shown(value: object) -> str:
    """A setting as it is typed."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _command(config: Config) -> TrainCommand:
    return TrainCommand(config.data, config.model, config.train, config.source)


def _differences(
    before: Config, after: Config, groups: tuple[str, ...] = ("data", "model", "train", "source")
) -> Iterator[tuple[str, object, object]]:
    """Flags whose values differ, with both values."""
    for group in groups:
        old, new = getattr(before, group), getattr(after, group)
        for name in (f.name for f in fields(old) if getattr(old, f.name) != getattr(new, f.name)):
            yield f"--{name.replace('_', '-')}", getattr(old, name), getattr(new, name)


def final_config(cmd: TrainCommand, workers: int, device: torch.device) -> Config:
    """The settings of a run, with the micro-batches of a step, all ranks together: at least one for each.

    Raises:
        ValueError: the run would never end, its learning rate never fall, or a rank have nothing to do.
    """
    ranks, given = distributed.world_size(), cmd.train.accumulate
    if cmd.train.max_minutes is None and cmd.train.max_steps is None:
        if cmd.train.patience is None:
            raise ValueError(
                "--patience None never ends without --max-minutes or --max-steps; give one of them"
            )
        if cmd.train.schedule == "cosine":
            other = "" if cmd.run.resume else ", or --schedule inverse-sqrt"
            raise ValueError(
                f"--schedule cosine ends with the budget; give --max-minutes or --max-steps{other}"
            )
    if given is not None and given < ranks:
        advice = f"start at most {given}, or a new run with a larger --accumulate"
        raise ValueError(f"--accumulate {given} gives fewer micro-batches than the {ranks} ranks; {advice}")
    accumulate = max(ranks, num_micro_batches(cmd, workers * ranks, device.type != "cpu"))
    return Config(cmd.data, cmd.model, replace(cmd.train, accumulate=accumulate), cmd.source)
