"""Train a translator: read a corpus, choose a recipe, learn, validate decoded text, leave a model folder."""

import itertools
import json
import math
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import FrameType

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import checkpoint
import runtime
from checkpoint import TrainState
from config import Config, DecodeConfig, TrainConfig, parse_args, recipe
from corpus import Splits, read_splits
from dataset import Batch, BatchSampler, encode_split
from model import Transformer
from reporting import Reporter, write_card
from scores import Score, quick_score, score
from tokenizer import PAD_ID, Tokenizer
from translator import Translator

DESCRIPTION = """Train a translator and leave it in a model folder.

Examples:
  python train.py
  python train.py --dataset corpus --src en --tgt de --max-minutes 15
  python train.py --dataset opus_books --dataset-config en-fr
  python train.py --resume runs/corpus-en-de
"""
# Settings that a resumed run may change; everything else has already shaped the weights or the data.
CHANGEABLE = {"max_minutes", "max_steps", "patience", "keep_checkpoints", "log_every", "validate_every"}
VALIDATION_ROWS = 1_000
NUM_SAMPLES = 5


@dataclass(frozen=True)
class RunConfig:
    """Run: where it happens."""

    out: Path | None = None
    """Model folder to make; runs/<dataset>-<src>-<tgt> by default."""
    resume: Path | None = None
    """Model folder whose training goes on."""
    threads: int | None = None
    """CPU threads; torch's choice by default."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps …"""


@dataclass(frozen=True)
class TrainCommand(Config):
    """All flags of train.py."""

    run: RunConfig = field(default_factory=RunConfig)


def learning_rate(step: int, progress: float, config: TrainConfig) -> float:
    """Learning rate of a step (the first is 1) when this share of the budget is used up."""
    warm = min(1.0, step / config.warmup_steps)
    if config.schedule == "inverse-sqrt":
        return config.lr * min(warm, math.sqrt(config.warmup_steps / step))
    return config.lr * warm * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def progress_of(step: int, elapsed_s: float, config: TrainConfig) -> float:
    """Share of the budget used up, 0 to 1; 0 when there is no budget."""
    by_steps = step / config.max_steps if config.max_steps else 0.0
    by_time = elapsed_s / (60 * config.max_minutes) if config.max_minutes else 0.0
    return min(1.0, max(by_steps, by_time))


def loss_sum(model: Transformer, batch: Batch, label_smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy summed over the real target tokens of a batch, float32 scalar."""
    is_real = batch.tgt_out != PAD_ID
    logits = model(batch.src, batch.src_mask, batch.tgt_in, batch.tgt_mask, is_real)
    target = batch.tgt_out[is_real]
    return F.cross_entropy(logits.float(), target, label_smoothing=label_smoothing, reduction="sum")


class Learner:
    """The model with its optimizer and averaged weights: one call a step, one dictionary for a checkpoint."""

    def __init__(self, model: Transformer, config: TrainConfig, device: torch.device) -> None:
        self.model, self.config, self.device = model.to(device), config, device
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.ema_decay))
        self.average.requires_grad_(False)
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() == 1]
        groups = [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.dtype = runtime.autocast_dtype(device, config.mixed_precision)

    def step(self, batches: list[Batch], lr: float) -> tuple[Tensor, Tensor]:
        """Learn from micro-batches as if they were one; returns loss per token and gradient norm, scalars."""
        num_tokens = sum(batch.num_tokens for batch in batches)
        total = torch.zeros((), device=self.device)
        for batch in batches:
            on_device = batch.to(self.device)
            with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
                loss = loss_sum(self.model, on_device, self.config.label_smoothing) / num_tokens
            loss.backward()
            total += loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.average.update_parameters(self.model)
        return total, norm

    @property
    def averaged(self) -> Transformer:
        """The model with averaged weights, which is validated and kept."""
        assert isinstance(self.average.module, Transformer)
        return self.average.module

    def tensors(self) -> dict[str, Tensor]:
        """Everything that an exact resume needs beside TrainState."""
        state = {f"model.{n}": p for n, p in checkpoint.weights(self.model).items()}
        state |= {f"average.{n}": p for n, p in checkpoint.weights(self.averaged).items()}
        names: dict[Tensor, str] = {p: n for n, p in self.model.named_parameters()}
        for parameter, values in self.optimizer.state.items():
            state |= {f"optimizer.{names[parameter]}.{k}": v for k, v in values.items()}
        state["num_averaged"] = self.average.n_averaged
        state["rng.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            state["rng.cuda"] = torch.cuda.get_rng_state(self.device)
        return state

    def restore(self, state: dict[str, Tensor], source: Path) -> None:
        """Go back to what `tensors` returned."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}

        checkpoint.copy_weights(self.model, part("model."), source)
        checkpoint.copy_weights(self.averaged, part("average."), source)
        for name, parameter in self.model.named_parameters():
            self.optimizer.state[parameter] = {
                k: t if k == "step" else t.to(self.device) for k, t in part(f"optimizer.{name}.").items()
            }
        self.average.n_averaged.copy_(state["num_averaged"])
        torch.set_rng_state(state["rng.cpu"])
        if self.device.type == "cuda" and "rng.cuda" in state:
            torch.cuda.set_rng_state(state["rng.cuda"], self.device)


class StopRequest:
    """Ctrl-C or SIGTERM asks the loop to save and stop; a second one stops at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            sys.exit(128 + number)
        self.signal = number


def batches_from(sampler: BatchSampler, state: TrainState, accumulate: int) -> Iterator[list[Batch]]:
    """The micro-batches of one step after another, without end; moves `state` on as they are handed out."""
    while True:
        steps = sampler.epoch(state.epoch, start=state.batch)
        while group := list(itertools.islice(steps, accumulate)):
            state.batch += len(group)
            yield group
        state.epoch, state.batch = state.epoch + 1, 0


class Validator:
    """Scores the averaged weights on decoded text and keeps the best ones."""

    def __init__(
        self, learner: Learner, tokenizer: Tokenizer, config: Config, pairs: tuple[list[str], list[str]]
    ) -> None:
        self.learner, (self.sources, self.references), self.tgt = learner, pairs, config.data.tgt
        self.translator = Translator(
            learner.averaged,
            tokenizer,
            src_lang=config.data.src,
            max_length=config.data.max_length,
            split_sentences=False,
        )

    def __call__(self, state: TrainState, reporter: Reporter, path: Path) -> None:
        translations = self.translator.translate(self.sources, decode=DecodeConfig(beam=1))
        bleu, chrf = quick_score([t.text for t in translations], self.references, tgt=self.tgt)
        if bleu > state.best_score:
            state.best_score, state.best_step, state.bad_validations = bleu, state.step, 0
            checkpoint.save_weights(path, self.learner.averaged)
        else:
            state.bad_validations += 1
        picture = self.translator.attention(self.sources[0])
        values = {"bleu": bleu, "chrf": chrf}
        reporter.log_validation(state, values, translations[:NUM_SAMPLES], picture)


def train(
    learner: Learner,
    sampler: BatchSampler,
    validate: Validator,
    cfg: TrainConfig,
    path: Path,
    state: TrainState,
    reporter: Reporter,
) -> None:
    """Train until the budget is used up, validation no longer improves, or a signal asks to stop.

    Raises:
        ValueError: the loss is no longer finite; names the step and the last good checkpoint.
        SystemExit: 128 + signal, after saving.
    """
    stop = StopRequest()
    validate_every = cfg.validate_every or min(1_000, -(-sampler.num_batches(0) // cfg.accumulate))
    stream = batches_from(sampler, state, cfg.accumulate)
    started = time.monotonic() - state.elapsed_s
    logged_at, logged_tokens = time.monotonic(), state.target_tokens

    def progress() -> float:
        return progress_of(state.step, state.elapsed_s, cfg)

    def is_over() -> bool:
        return progress() >= 1 or (cfg.patience is not None and state.bad_validations >= cfg.patience)

    def save() -> Path:
        return checkpoint.save_state(path, state, learner.tensors(), cfg.keep_checkpoints)

    while not is_over():
        lr = learning_rate(state.step + 1, progress(), cfg)
        batches = next(stream)
        loss, norm = learner.step(batches, lr)
        state.step += 1
        state.target_tokens += sum(batch.num_tokens for batch in batches)
        state.elapsed_s = time.monotonic() - started
        is_validation = state.step % validate_every == 0 or is_over()
        if state.step % cfg.log_every == 0 or is_validation or stop.signal is not None:
            now = time.monotonic()
            values = {"loss": loss.item(), "lr": lr, "gradient_norm": norm.item()}
            values["tokens_per_s"] = (state.target_tokens - logged_tokens) / (now - logged_at)
            _check_finite(values, state, path)
            reporter.log_step(state, values, progress())
            logged_at, logged_tokens = now, state.target_tokens
        if is_validation:
            validate(state, reporter, path)
            state.elapsed_s = time.monotonic() - started
            save()
            logged_at = time.monotonic()
        if stop.signal is not None:
            saved = save()
            reporter.close()
            print(f"stopped at step {state.step:,}, saved in {saved}")
            print(f"go on with: python train.py --resume {path}")
            sys.exit(128 + stop.signal)


def _check_finite(values: dict[str, float], state: TrainState, path: Path) -> None:
    if not all(map(math.isfinite, values.values())):
        good = checkpoint.checkpoints(path)
        advice = f"last good checkpoint: {good[-1]}" if good else "no checkpoint yet"
        what = f"loss {values['loss']}, gradient norm {values['gradient_norm']}"
        raise ValueError(f"not finite at step {state.step}: {what}; {advice}; start anew with a lower --lr")


def prepare_run(cmd: TrainCommand, args: list[str] | None) -> tuple[TrainCommand, Splits, Path]:
    """Read the corpus and fill the settings that were not given, by recipe or from the run to go on with."""
    if cmd.run.resume is not None:
        return _prepare_resume(cmd, cmd.run.resume, args)
    name = cmd.data.dataset.removeprefix("builtin:").rstrip("/").rsplit("/", 1)[-1].split(".")[0]
    out = cmd.run.out or Path("runs") / f"{name}-{cmd.data.src}-{cmd.data.tgt}"
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(
            f"{out} is taken; go on with it: --resume {out}, or choose another folder: --out DIR"
        )
    splits = read_splits(cmd.data)
    has_accelerator = runtime.device(cmd.run.device).type != "cpu"
    chosen, reason = recipe(cmd, len(splits["train"]), has_accelerator)
    print(f"recipe: {reason}")
    final = parse_args(TrainCommand, args=args, default=TrainCommand(chosen.data, chosen.model, chosen.train))
    return final, splits, out


def _prepare_resume(
    cmd: TrainCommand, path: Path, args: list[str] | None
) -> tuple[TrainCommand, Splits, Path]:
    saved, fingerprint = checkpoint.read_config(path)
    default = TrainCommand(saved.data, saved.model, saved.train)
    final = parse_args(TrainCommand, args=args, default=default)
    for group in ("data", "model", "train"):
        was, now = getattr(saved, group), getattr(final, group)
        for name in (f.name for f in fields(was) if getattr(was, f.name) != getattr(now, f.name)):
            change = f"--{name.replace('_', '-')} from {getattr(was, name)} to {getattr(now, name)}"
            if name not in CHANGEABLE:
                raise ValueError(
                    f"a resumed run cannot change {change}; leave the flag out or start a new run"
                )
            print(f"changed on resume: {change}")
    splits = read_splits(final.data)
    if splits.fingerprint != fingerprint:
        raise ValueError(
            f"{final.data.dataset} is not the data that {path} learned from; restore it or start anew"
        )
    return final, splits, path


def main(args: list[str] | None = None) -> None:
    """The command."""
    cmd = parse_args(TrainCommand, args=args, description=DESCRIPTION)
    device = runtime.device(cmd.run.device)
    cmd, splits, path = prepare_run(cmd, args)
    config = Config(cmd.data, cmd.model, cmd.train)
    runtime.setup(cmd.run.threads, config.train.seed)
    is_resumed = cmd.run.resume is not None
    if is_resumed:
        tokenizer = Tokenizer.load(path / "tokenizer.json")
    else:
        texts = (
            text for batch in splits["train"].iter(1_000) for side in ("src", "tgt") for text in batch[side]
        )
        tokenizer = Tokenizer.train(texts, config.model.vocab_size)
    rows = encode_split(splits["train"], tokenizer, config.data.max_length, splits.report)
    print(splits.report)
    model = checkpoint.build(config.model, tokenizer.vocab_size, config.data.max_length)
    learner, state = Learner(model, config.train, device), TrainState()
    if is_resumed:
        state, tensors = checkpoint.load_state(path)
        learner.restore(tensors, path)
    checkpoint.create(path, config, tokenizer, splits.fingerprint)
    runtime.write_atomic(
        path / "data.json", json.dumps(splits.report.to_json(), indent=2, ensure_ascii=False) + "\n"
    )
    parameters = sum(p.numel() for p in model.parameters())
    sizes = f"{len(rows):,} training pairs, {tokenizer.vocab_size:,} subwords, {parameters:,} parameters"
    print(f"{sizes}, on {device} with {torch.get_num_threads()} threads")
    sampler = BatchSampler(rows, config.train.batch_tokens // config.train.accumulate, config.train.seed)
    validation = splits["validation"].select(range(min(VALIDATION_ROWS, len(splits["validation"]))))
    validate = Validator(learner, tokenizer, config, (list(validation["src"]), list(validation["tgt"])))
    reporter = Reporter(path, config, state)
    train(learner, sampler, validate, config.train, path, state, reporter)
    reporter.close()
    finish(path, splits, config, state, len(rows), parameters)


def finish(
    path: Path, splits: Splits, config: Config, state: TrainState, num_pairs: int, parameters: int
) -> None:
    """Score the best weights on every test split, write the card, say what to type next."""
    translator = Translator.load(path, split_sentences=False)
    scores: dict[str, list[Score]] = {}
    for split in (name for name in splits if name not in ("train", "validation")):
        rows = splits[split]
        hypotheses = [t.text for t in translator.translate(list(rows["src"]))]
        scores[split] = score(hypotheses, list(rows["tgt"]), tgt=config.data.tgt)
        for s in scores[split]:
            print(f"{split}: {s.name} {s.value:.2f} [{s.low:.2f}, {s.high:.2f}]  {s.signature}")
    write_card(path, config, state, scores, num_pairs, parameters)
    example = splits["validation"][0]["src"]
    print(f'done; the model is in {path}\ntranslate: python translate.py --model {path} "{example}"')


if __name__ == "__main__":
    runtime.run_command(main)
