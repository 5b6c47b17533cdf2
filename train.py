"""Train a translator: read a corpus, choose a recipe, learn, validate decoded text, leave a model folder."""

import contextlib
import json
import math
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from datasets import Dataset

import checkpoint
import distributed
import runtime
from checkpoint import TrainState
from command_line import parse_args
from config import Config, DataConfig, DecodeConfig, TrainConfig, check_source
from corpus import Report, Splits, read_splits, texts
from dataset import Batch, BatchSampler, check_sources, encode_split
from inputs import Input, Source, TextInput
from learner import Learner
from model import Transformer
from recipe import num_micro_batches, recipe
from render import read_font
from reporting import USES, Reporter, write_card
from scores import Score, quick_score, score
from shortlist import Shortlist
from sources import StripEmbedding
from streaming import Settings, StreamSampler, describe, gather_positions, rows_read
from tokenizer import Tokenizer
from translator import Translation, Translator

DESCRIPTION = """Train a translator and leave it in a model folder.

examples:
  python train.py
  python train.py --dataset letters --src en --tgt de --max-minutes 15
  python train.py --dataset opus_books --dataset-config en-fr
  python train.py --source image
  python train.py --resume runs/letters-en-de
  python train.py --init-from runs/letters-en-de --dataset reports --src en --tgt de
"""
# Settings that a resumed run may change; everything else has already shaped the weights or the data.
CHANGEABLE = {
    "--dataset",  # where the same rows lie
    "--max-minutes", "--max-steps", "--patience", "--keep-checkpoints", "--log-every", "--validate-every",
}  # fmt: skip
# Settings of model and source that a run started from another's weights may change: they shape no weight.
FREE = {"--dropout", "--font-size-range", "--varied-share"}
VALIDATION_ROWS = 1_000
# In the model folder of a run that torchrun began: which of its launches that was.
LAUNCH = Path("checkpoints", "launch")
# Rows whose patches say what patches look like.
FITTED_ROWS = 4_000
# Rows from which likely translations of each subword are learned.
SHORTLIST_ROWS = 50_000
NUM_SAMPLES = 5


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
    into one device."""


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


class Interrupted(BaseException):
    """A signal arrived during work that can be thrown away."""


class StopRequest:
    """While it is entered, Ctrl-C or SIGTERM asks the loop to save and stop; a second one stops at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.is_interruptible = False

    def __enter__(self) -> "StopRequest":
        numbers = (signal.SIGINT, signal.SIGTERM)
        self.before = [(number, signal.signal(number, self._remember)) for number in numbers]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before:
            signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        for each, _ in self.before:  # the next one ends the process, whatever it is waiting for
            signal.signal(each, signal.SIG_DFL)
        if self.is_interruptible:
            raise Interrupted

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Inside, a signal raises Interrupted, and one that came before does so at the beginning."""
        if self.signal is not None:
            raise Interrupted
        self.is_interruptible = True
        try:
            yield
        finally:
            self.is_interruptible = False


def batches_from(
    sampler: BatchSampler | StreamSampler, state: TrainState, accumulate: int
) -> Iterator[list[Batch]]:
    """This rank's micro-batches of one step after another, without end; moves `state` on as they are handed out."""
    if isinstance(sampler, StreamSampler):
        yield from sampler.steps(state)
        return
    ranks = distributed.rank(), distributed.world_size()
    while True:
        for step in sampler.steps(state.epoch, state.batch, accumulate, *ranks):
            state.batch += step.num_batches
            yield step.batches
        state.epoch, state.batch = state.epoch + 1, 0


class Validator:
    """Scores the averaged weights on decoded text and keeps the best ones.

    Args:
        rows: columns src and tgt; of more than 1,000, 1,000 at even distances are used.
    """

    def __init__(
        self,
        learner: Learner,
        tokenizer: Tokenizer,
        source: Input,
        config: Config,
        rows: Dataset,
        workers: int,
    ) -> None:
        num = min(len(rows), VALIDATION_ROWS)
        chosen = rows.select([i * len(rows) // num for i in range(num)])[:]
        self.sources, self.references = list(chosen["src"]), list(chosen["tgt"])
        has_words = (s for s in self.sources if not isinstance(s, str) or any(map(str.isalpha, s)))
        self.pictured = next(has_words, "1")
        self.learner, self.tgt, self.names = learner, config.data.tgt, config.data.dataset
        self.translator = Translator(
            learner.averaged,
            tokenizer,
            src_lang=config.data.src,
            max_length=config.data.max_length,
            split_sentences=False,
            workers=workers,
            source=source,
        )

    def __call__(self, state: TrainState, reporter: Reporter | None, path: Path, stop: StopRequest) -> None:
        """Translate, score, log; on a better score note it in `state` and write model.safetensors.

        The ranks translate a share of the rows each, and each has the score of all of them.

        Raises:
            Interrupted: a signal came to one of the ranks; nothing has changed on any.
        """
        self.learner.gather()
        translations = []
        for translation in distributed.shared(lambda rows: self._translate(rows, stop), self.sources):
            if translation is None:
                raise Interrupted
            translations.append(translation)
        bleu, chrf = quick_score([t.text for t in translations], self.references, tgt=self.tgt)
        state.needs_validation = False
        if bleu > state.best_score:
            state.best_score, state.best_step, state.bad_validations = bleu, state.step, 0
            if reporter is not None:
                checkpoint.save_weights(path, self.learner.averaged, state.step)
        else:
            state.bad_validations += 1
        if reporter is None:
            return
        picture = self.translator.attention(self.pictured)
        values = {"bleu": bleu, "chrf": chrf}
        reporter.log_validation(state, values, translations[:NUM_SAMPLES], picture)
        if state.corpus_tokens:
            reporter.say(f"target tokens so far: {tokens_given(self.names, state)}")

    def _translate(self, sources: list[Source], stop: StopRequest) -> Sequence[Translation | None]:
        """This rank's share; Nones when a signal breaks it off, which the other ranks have to hear of."""
        try:
            with stop.interruptible():
                return self.translator.translate(sources, decode=DecodeConfig(beam=1))
        except Interrupted:
            return [None] * len(sources)


def train(
    learner: Learner,
    sampler: BatchSampler | StreamSampler,
    validate: Validator,
    config: TrainConfig,
    path: Path,
    state: TrainState,
    reporter: Reporter | None,
) -> None:
    """Train until the budget is used up, validation no longer improves, or a signal asks to stop.

    Several ranks share one clock, rank 0's, and one another's signals: all stop after the same step.

    Args:
        reporter: None on ranks other than 0, which write nothing.
    Raises:
        ValueError: the loss is no longer finite; names the step and the last good checkpoint.
        SystemExit: 128 + signal, after saving.
    """
    assert config.accumulate is not None
    epoch_steps = -(-sampler.num_batches(0) // config.accumulate)
    validate_every = config.validate_every or min(1_000, max(epoch_steps, config.warmup_steps))
    stream = batches_from(sampler, state, config.accumulate)
    started = time.monotonic() - state.elapsed_s
    logged_at, logged_tokens = time.monotonic(), state.target_tokens
    signal_number = 0
    with StopRequest() as stop:
        while state.needs_validation or not _is_over(state, config):
            # One comes first where a signal broke it off, and where the weights to start from are another model's.
            if not state.needs_validation:
                lr = learning_rate(state.step + 1, progress_of(state.step, state.elapsed_s, config), config)
                batches = _next(stream, learner, state, config, path)
                loss, norm = learner.step(batches, lr, state.step + 1)
                state.step += 1
                signal_number = _agree(state, batches, time.monotonic() - started, stop)
                state.needs_validation = state.step % validate_every == 0 or _is_over(state, config)
                if state.step % config.log_every == 0 or state.needs_validation:
                    _check_finite(learner, path)
                    rate = (state.target_tokens - logged_tokens) / (time.monotonic() - logged_at)
                    values = {
                        "loss": loss.item(),
                        "lr": lr,
                        "gradient_norm": norm.item(),
                        "tokens_per_s": rate,
                    }
                    if reporter is not None:
                        reporter.log_step(state, values, progress_of(state.step, state.elapsed_s, config))
                    logged_at, logged_tokens = time.monotonic(), state.target_tokens
            is_validation = state.needs_validation
            if is_validation:
                with contextlib.suppress(Interrupted):
                    validate(state, reporter, path, stop)
                signal_number = _agree(state, [], time.monotonic() - started, stop)
                logged_at = time.monotonic()
            if is_validation or signal_number:
                _check_finite(learner, path)
                if reporter is not None:
                    reporter.flush()
                _save(learner, state, path, config.keep_checkpoints)
            if signal_number:
                _stop(state, reporter, path, signal_number)


def _next(
    stream: Iterator[list[Batch]], learner: Learner, state: TrainState, config: TrainConfig, path: Path
) -> list[Batch]:
    """The next step's micro-batches; where a row far down a stream is broken, nothing learned before it is lost."""
    try:
        return next(stream)
    except (ValueError, OSError) as error:
        if distributed.world_size() == 1:  # the other ranks do not know of it, and could not take part
            _save(learner, state, path, config.keep_checkpoints)
        raise ValueError(f"{_reason(error, path)}; {_last_good(path)}") from error


def _reason(error: Exception, path: Path) -> str:
    """What an error says, with the file or else the model folder where the system had it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename or path}"
    return str(error)


def _agree(state: TrainState, batches: list[Batch], elapsed_s: float, stop: StopRequest) -> int:
    """Have the time, the epoch and the token counts of all ranks in `state`; the signal that one of them got, or 0.

    Args:
        batches: this rank's, if there was a step.
    """
    num_tokens = sum(batch.num_tokens for batch in batches)
    of_corpora = [sum(counts) for counts in zip(*(batch.of_corpora for batch in batches), strict=True)]
    ranks = distributed.every(elapsed_s, stop.signal or 0, state.epoch, num_tokens, *of_corpora)
    state.elapsed_s, state.epoch = float(ranks[0, 0]), int(ranks[:, 2].min())
    num_tokens, *of_corpora = ranks[:, 3:].sum(0).int().tolist()
    state.target_tokens += num_tokens
    if of_corpora:
        before = state.corpus_tokens or [0] * len(of_corpora)
        state.corpus_tokens = [old + new for old, new in zip(before, of_corpora, strict=True)]
    return int(ranks[:, 1].max())


def _save(learner: Learner, state: TrainState, path: Path, keep: int) -> None:
    """Write a checkpoint, the same whether weights and lanes are shared out among ranks or not."""
    gather_positions(state)
    tensors = learner.tensors()
    if learner.is_sharded:
        folder = path / "checkpoints" / f".shards{runtime.INCOMPLETE}"
        tensors = distributed.gather_through(folder, tensors)
    if distributed.is_first():
        checkpoint.save_state(path, state, tensors, keep)


def _stop(state: TrainState, reporter: Reporter | None, path: Path, signal_number: int) -> None:
    """Say where a run that a signal has stopped was saved, and exit."""
    if reporter is not None:
        reporter.close()
        print(f"stopped at step {state.step:,}, saved in {checkpoint.checkpoints(path)[-1]}")
        print(f"go on with: python train.py --resume {shlex.quote(str(path))}")
    distributed.barrier()  # torchrun ends the others as soon as one exits: none does before all is saved
    sys.exit(128 + signal_number)


def _is_over(state: TrainState, config: TrainConfig) -> bool:
    is_stuck = config.patience is not None and state.bad_validations >= config.patience
    return is_stuck or progress_of(state.step, state.elapsed_s, config) >= 1


def tokens_given(names: Sequence[str], state: TrainState) -> str:
    """How many target tokens each of several corpora gave so far."""
    given = zip(names, state.corpus_tokens, strict=True)
    total = max(1, sum(state.corpus_tokens))
    return ", ".join(f"{name} {count:,} ({count / total:.1%})" for name, count in given)


def _check_finite(learner: Learner, path: Path) -> None:
    step = int(learner.first_bad)
    if step:
        what = f"loss or gradient is not finite at step {step}"
        raise ValueError(f"{what}; {_last_good(path)}; start a new run with a lower --lr")


def _last_good(path: Path) -> str:
    good = checkpoint.checkpoints(path)
    return f"last good checkpoint: {good[-1]}" if good else "no checkpoint yet"


def _placed(cmd: TrainCommand, args: list[str] | None) -> tuple[TrainCommand, Path]:
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
    _refuse_taken(path)
    if cmd.source.font is not None and cmd.train.init_from is None:
        read_font(Path(cmd.source.font))  # before the corpus is read rather than after
    splits = read_splits(cmd.data)
    has_accelerator = runtime.device(cmd.run.device).type != "cpu"
    chosen, reason = recipe(cmd, splits.num_pairs, workers, has_accelerator)
    print(f"recipe: {reason}")
    if cmd.train.init_from is not None:
        train = replace(chosen.train, init_from=cmd.train.init_from)
        chosen = replace(chosen, model=cmd.model, train=train)
        sides = checkpoint.read_config(Path(cmd.train.init_from))[0].data
        print(
            f"weights, tokenizer and architecture: from {cmd.train.init_from} ({sides.src} → {sides.tgt});"
            f" this run learns {cmd.data.src} → {cmd.data.tgt}"
        )
    final = parse_args(TrainCommand, args=args, default=_command(chosen))
    for flag, preset, given in _differences(chosen, final):
        print(f"overridden: {flag} {given}" + ("" if preset is None else f" instead of {preset}"))
    return final, splits


def _refuse_taken(out: Path) -> None:
    """See that a new run may begin in a folder."""
    if (out / "config.json").exists():
        if (out / checkpoint.CARD).exists():
            raise ValueError(
                f"{out} holds a finished run; translate with it, or choose another folder: --out DIR"
            )
        advice = f"go on with it: --resume {out}, or choose another folder: --out DIR"
        raise ValueError(f"{out} holds an unfinished run; {advice}")
    if (out / runtime.LOCK).exists():  # of a run that was killed before it began, or that holds it just now
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there already and is not empty; choose another folder: --out DIR")


def _with_architecture(cmd: TrainCommand, path: Path, args: list[str] | None) -> TrainCommand:
    """The command with all that the weights in `path` fix: the model, and how it reads its source."""
    start, _ = checkpoint.read_config(path)
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
    saved, fingerprint = checkpoint.read_config(path)
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


def make_sampler(
    splits: Splits, tokenizer: Tokenizer, source: Input, config: Config
) -> BatchSampler | StreamSampler:
    """Micro-batches of the training rows, with BPE-dropout if it is asked for."""
    cfg, max_length = config.train, config.data.max_length
    assert cfg.accumulate is not None
    cut = TextInput(tokenizer, cfg.bpe_dropout, max_length).resegment
    resegment = cut if cfg.bpe_dropout else None
    batch_tokens = cfg.batch_tokens // cfg.accumulate
    if config.data.streaming:
        rows_of_block = max(1, config.data.buffer // cfg.accumulate)
        settings = Settings(
            splits, tokenizer, source, resegment, max_length, rows_of_block, batch_tokens, cfg.seed
        )
        return StreamSampler(settings, cfg.accumulate, distributed.rank(), distributed.world_size())
    rows = encode_split(splits["train"], tokenizer, max_length, splits.report, source=source)
    return BatchSampler(rows, batch_tokens, cfg.seed, source, resegment, splits.mixture)


def main(args: list[str] | None = None) -> None:
    """The command."""
    cmd = parse_args(TrainCommand, args=args, description=DESCRIPTION)
    runtime.keep_memory()
    workers = runtime.start(cmd.run.threads)
    device = distributed.device(cmd.run.device)
    if cmd.run.shard and distributed.world_size() == 1:
        raise ValueError("--shard splits a model among several processes; start them with torchrun")
    with distributed.group(device, cmd.run.rank_timeout), contextlib.ExitStack() as held:
        run(cmd, args, device, workers, held)


def run(
    cmd: TrainCommand, args: list[str] | None, device: torch.device, workers: int, held: contextlib.ExitStack
) -> None:
    """Train as one of the ranks, or alone.

    Args:
        held: takes the lock of the model folder, which rank 0 holds for all.
    """
    cmd, path = _placed(cmd, args)
    is_resumed = cmd.run.resume is not None
    if is_resumed:
        checkpoint.read_config(path)  # there is a run, and no link in it leads elsewhere
        if distributed.is_first():
            held.enter_context(runtime.locked(path))
    with distributed.first_on_machine_first():
        cmd, splits = prepare_run(cmd, path, args, workers * distributed.world_size())
    config = _final_config(cmd, workers, device)
    distributed.require_same("settings", repr(config))
    torch.manual_seed(config.train.seed)
    init_from = None if config.train.init_from is None else Path(config.train.init_from)
    tokenizer, source = _make_sides(config, splits["train"], path if is_resumed else init_from)
    with distributed.first_on_machine_first():
        sampler = make_sampler(splits, tokenizer, source, config)
    print(*(describe(splits, config.data) if config.data.streaming else ()), splits.report, sep="\n")
    longest = config.data.max_length if config.model.positions == "learned" else None
    for split in splits.keys() - {"train"}:
        check_sources(splits[split], source, split, longest)
    distributed.require_same("training data", f"{splits.fingerprint} {tokenizer.digest} {source.digest}")
    if distributed.is_first() and not is_resumed:
        held.enter_context(runtime.locked(path))
        _refuse_taken(path)  # again: another run may have come and gone
    if distributed.is_first():
        checkpoint.clear_leftovers(path)
    distributed.barrier()
    model = checkpoint.build(config, tokenizer.vocab_size, source)
    learner, state = _make_learner(model, config.train, source, sampler, path, device, workers, cmd.run.shard)
    validate = Validator(learner, tokenizer, source, config, splits["validation"], workers)
    _begin(path, config, tokenizer, source, splits, is_resumed)
    _record_data(path, splits, sampler, len(validate.sources))
    num_pairs = f"{'about ' if config.data.streaming else ''}{sampler.num_pairs:,}"
    sizes = f"{num_pairs} pairs, {tokenizer.vocab_size:,} subwords, {learner.num_parameters:,} parameters"
    print(f"training on {sizes}, {device}: {_steps(sampler, config.train)}, from step {state.step}")
    reporter = Reporter(path, state) if distributed.is_first() else None
    try:
        train(learner, sampler, validate, config.train, path, state, reporter)
    except OSError as error:
        raise ValueError(f"{_reason(error, path)}; {_last_good(path)}") from None
    if reporter is not None:
        reporter.close()
    if config.data.streaming:
        print(Report(stream=rows_read(state)))
    translator = Translator.load(path, device=str(device), split_sentences=False, workers=workers)
    scores = score_tests(translator, splits, config.data.tgt)
    if distributed.is_first():
        learned_from = sampler.num_pairs if splits.is_counted else None
        write_card(path, config, state, scores, learned_from, learner.num_parameters)
    _say_done(path, config, state, splits["validation"][0]["src"])


def _final_config(cmd: TrainCommand, workers: int, device: torch.device) -> Config:
    """The settings of a run, with the micro-batches of a step, all ranks together: at least one for each."""
    ranks, given = distributed.world_size(), cmd.train.accumulate
    if cmd.train.patience is None and cmd.train.max_minutes is None and cmd.train.max_steps is None:
        raise ValueError("--patience None never ends without --max-minutes or --max-steps; give one of them")
    if given is not None and given < ranks:
        advice = f"start at most {given}, or a new run with a larger --accumulate"
        raise ValueError(
            f"--accumulate {given}: so few micro-batches a step are too few for {ranks} ranks; {advice}"
        )
    accumulate = given or max(ranks, num_micro_batches(cmd, workers * ranks, device.type != "cpu"))
    return Config(cmd.data, cmd.model, replace(cmd.train, accumulate=accumulate), cmd.source)


def _steps(sampler: BatchSampler | StreamSampler, config: TrainConfig) -> str:
    assert config.accumulate is not None
    num_steps = -(-sampler.num_batches(0) // config.accumulate)
    return f"about {num_steps:,} steps an epoch, {config.accumulate} micro-batches a step"


def _begin(
    path: Path, config: Config, tokenizer: Tokenizer, source: Input, splits: Splits, is_resumed: bool
) -> None:
    """Begin the model folder, and see that every rank sees it."""
    if distributed.is_first():
        if (launch := distributed.launch()) is not None:
            runtime.write_atomic(path / LAUNCH, launch)
        if config.data.source == "text" and not is_resumed:
            _learn_shortlist(splits["train"], tokenizer, config.data.max_length).save(path)
        checkpoint.create(path, config, tokenizer, source, splits.fingerprint)
        (path / checkpoint.CARD).unlink(missing_ok=True)  # a finished run that goes on is unfinished
    distributed.barrier()
    if not (path / "config.json").is_file():
        raise ValueError(
            f"{path}, which rank 0 writes, is not to be seen here; put it where every machine sees it: --out DIR"
        )


def _say_done(path: Path, config: Config, state: TrainState, first: Source) -> None:
    if state.best_score < 1:
        print(f"warning: validation BLEU {state.best_score:.2f}, next to nothing was learned; train longer")
    example = shlex.quote(first) if isinstance(first, str) else USES[config.data.source][-1]
    print(f"done; the model is in {path}")
    print(f"translate: python translate.py --model {shlex.quote(str(path))} {example}")


def _make_sides(config: Config, rows: Dataset, path: Path | None) -> tuple[Tokenizer, Input]:
    """Tokenizer and source side: from the training rows, or from the folder of the run that goes on."""
    if path is not None:
        tokenizer = Tokenizer.load(path / "tokenizer.json")
        return tokenizer, checkpoint.read_source(config, tokenizer, path)
    # A source that is no token ids needs no vocabulary.
    sides = ("src", "tgt") if config.data.source == "text" else ("tgt",)
    tokenizer = Tokenizer.train(texts(rows, sides), config.model.vocab_size)
    source = checkpoint.make_source(config, tokenizer, (row["src"] for row in rows))
    if config.data.source == "image" and isinstance(rows[0]["src"], str):
        _warn_of_missing_characters(rows, source)
    return tokenizer, source


def _learn_shortlist(rows: Dataset, tokenizer: Tokenizer, max_length: int) -> Shortlist:
    num = min(len(rows), SHORTLIST_ROWS)
    chosen = rows.select([i * len(rows) // num for i in range(num)])[:]
    src, tgt = (tokenizer.encode_batch(chosen[side]) for side in ("src", "tgt"))
    # Longer rows are not learned from either, and a pair has as many links as the product of its lengths.
    pairs = [pair for pair in zip(src, tgt, strict=True) if max(map(len, pair)) < max_length]
    return Shortlist.learn(pairs, tokenizer.vocab_size)


def _warn_of_missing_characters(rows: Dataset, source: Input) -> None:
    """Name the characters of sentences to draw that the font lacks: the model would learn their empty boxes."""
    characters: set[str] = set()
    for text in texts(rows, ("src",)):
        characters.update(text)
    # With spaces between them, none is composed with the one before.
    for doubt in source.doubts(" ".join(sorted(characters))):
        print(f"warning: {doubt}; train with another font: --font FILE")


def _make_learner(
    model: Transformer,
    config: TrainConfig,
    source: Input,
    sampler: BatchSampler | StreamSampler,
    path: Path,
    device: torch.device,
    workers: int,
    shard: bool,
) -> tuple[Learner, TrainState]:
    """The learner of a model, and where its run stands: at the start, or at the newest checkpoint in `path`.

    The weights that a run starts from become its first checkpoint, before its config.json is there: what becomes of
    their folder matters no more.
    """
    is_new = not checkpoint.checkpoints(path)
    if is_new:
        _refuse_lost_checkpoints(path)
    if is_new and config.init_from is not None:
        start = checkpoint.load(Path(config.init_from), torch.device("cpu"))
        checkpoint.copy_weights(model, checkpoint.weights(start.model), start.path)
    elif is_new and isinstance(model.src_embed, StripEmbedding) and isinstance(sampler, BatchSampler):
        rng, values = np.random.default_rng(config.seed), sampler.sources(FITTED_ROWS)
        model.src_embed.fit(source.pad(values[i : i + 64], rng) for i in range(0, len(values), 64))
    distributed.barrier()  # all have seen whether there is a checkpoint
    learner = Learner(model, config, device, workers, shard)
    if is_new:
        # What it starts from may be better than what it learns: that is validated first.
        state = TrainState(needs_validation=config.init_from is not None)
        if config.init_from is not None:
            _save(learner, state, path, config.keep_checkpoints)
        return learner, state
    state = _restore(learner, path, config.keep_checkpoints)
    if _is_over(state, config) and (path / checkpoint.CARD).exists():
        advice = "raise --max-steps, --max-minutes or --patience to train longer"
        raise ValueError(f"{path} is finished, after {state.step:,} steps; {advice}")
    if _is_over(state, config) and not (path / checkpoint.WEIGHTS).is_file():
        state.needs_validation = True  # fewer steps are asked for than there are: these become the model
    return learner, state


def _refuse_lost_checkpoints(path: Path) -> None:
    """See that a folder without checkpoints holds no model that a run from the beginning would overwrite."""
    metrics = path / "metrics.jsonl"
    told = metrics.read_text(encoding="utf-8", errors="replace") if metrics.is_file() else ""
    # A kill right after the first validation leaves no checkpoint, but weights that come again just so.
    if (path / checkpoint.CARD).exists() or told.count('"kind": "validation"') > 1:
        advice = f"restore {path / 'checkpoints'}, or start a new run from its weights: --init-from {path} --out DIR"
        raise ValueError(f"{path} has a model, but no checkpoint that training could go on from; {advice}")


def _restore(learner: Learner, path: Path, keep: int) -> TrainState:
    """Go back to the newest checkpoint that rank 0 can read, on every rank; rank 0 mends the folder."""
    found = checkpoint.load_state(path) if distributed.is_first() else None
    step = distributed.from_first(found[0].step if found else 0)
    state, tensors = found or checkpoint.load_state(path, step)
    try:
        learner.restore(tensors, path)
    except KeyError as error:
        raise ValueError(f"{path} has a checkpoint that lacks {error}; start a new run") from None
    if distributed.is_first():
        checkpoint.restore_weights(path, state)
        checkpoint.prune(path, state.step, keep)
    return distributed.from_first(state)


def _record_data(
    path: Path, splits: Splits, sampler: BatchSampler | StreamSampler, num_validated: int
) -> None:
    padding = sampler.padding(0)._asdict()
    record = {"rows": splits.report.to_json(), "validated": num_validated, "padding": padding}
    if distributed.is_first():
        runtime.write_atomic(path / "data.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    shares = f"{padding['src']:.1%} of source and {padding['tgt']:.1%} of target positions are padding"
    print(f"{shares}; validation on {num_validated:,} rows")


def score_tests(translator: Translator, splits: Splits, tgt: str) -> dict[str, list[Score]]:
    """Translate every test split with the default decoding, print and return the scores by split."""
    scores: dict[str, list[Score]] = {}
    for split in (name for name in splits if name not in ("train", "validation")):
        rows = splits[split]
        parts = (batch["src"] for batch in rows.select_columns("src").iter(5_000))
        hypotheses = [t.text for part in parts for t in distributed.shared(translator.translate, part)]
        scores[split] = score(hypotheses, list(rows["tgt"]), tgt=tgt)
        for s in scores[split]:
            print(f"{split}: {s.name} {s.value:.2f} [{s.low:.2f}, {s.high:.2f}]  {s.signature}")
    return scores


if __name__ == "__main__":
    runtime.run_command(main, several_ranks=True)
