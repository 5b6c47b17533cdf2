"""Train a translator: read a corpus, choose a recipe, learn, validate decoded text, leave a model folder."""

import contextlib
import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import checkpoint
import distributed
import model_folder
import runtime
import tensor_files
from checkpoint import TrainState
from cleaning import Report
from command_line import parse_args
from config import Config, TrainConfig
from corpus import Splits
from dataset import Batch, Sampler, check_sources
from inputs import Input, Source
from learner import Learner
from preparation import learn_shortlist, make_sampler, make_sides
from reporting import USES, Reporter, write_card
from run_settings import LAUNCH, TrainCommand, final_config, prepare_run, refuse_taken, resolve_folder
from scores import Score, score
from sources import StripEmbedding
from stopping import Interrupted, StopRequest
from streaming import describe, gather_positions, rows_read
from tokenizer import Tokenizer
from translator import Translator
from validator import Validator

DESCRIPTION = """Train a translator and leave it in a model folder. The defaults shown for model and training
are replaced by those of the preset, which README.md lists.

examples:
  python train.py
  python train.py --dataset letters --src en --tgt de --max-minutes 15
  python train.py --dataset opus_books --dataset-config en-fr
  python train.py --source image
  python train.py --resume runs/letters-en-de
  python train.py --init-from runs/letters-en-de --dataset reports --src en --tgt de
"""
# Of a time budget, the warm-up takes no more than this share.
WARMUP_SHARE = 0.2
# Rows whose patches say what patches look like.
FITTED_ROWS = 4_000


def learning_rate(step: int, progress: float, config: TrainConfig) -> float:
    """Learning rate of a step (the first is 1) when this share of the budget is used up."""
    warm = step / config.warmup_steps
    if config.max_steps is None:  # of a time budget, nobody knows beforehand how many steps it has
        warm = max(warm, progress / WARMUP_SHARE)
    warm = min(1.0, warm)
    if config.schedule == "inverse-sqrt":
        return config.lr * min(warm, math.sqrt(config.warmup_steps / step))
    return config.lr * warm * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def progress_of(state: TrainState, config: TrainConfig) -> float:
    """Share of the budget used up, 0 to 1; 0 when there is no budget."""
    by_steps = state.step / config.max_steps if config.max_steps else 0.0
    by_time = state.elapsed_s / (60 * config.max_minutes) if config.max_minutes else 0.0
    return min(1.0, max(by_steps, by_time))


def train(
    learner: Learner,
    sampler: Sampler,
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
    epoch_steps = _num_steps(sampler, config)
    validate_every = config.validate_every or min(1_000, max(epoch_steps, config.warmup_steps))
    save = partial(_save, learner, state, path, config.keep_checkpoints, reporter)
    stream = sampler.steps(state)
    started = time.monotonic() - state.elapsed_s
    signal_number = 0
    with StopRequest() as stop:
        while state.needs_validation or not _is_over(state, config):
            # What a signal cut short, or what a run starts from, is validated before the first step.
            if not state.needs_validation:
                lr = learning_rate(state.step + 1, progress_of(state, config), config)
                batches = _next(stream, save, path)
                loss, norm = learner.step(batches, lr, state.step + 1)
                state.step += 1
                signal_number = _agree(state, batches, time.monotonic() - started, stop)
                state.needs_validation = state.step % validate_every == 0 or _is_over(state, config)
                if state.step % config.log_every == 0 or state.needs_validation:
                    _check_finite(learner, path)
                    if reporter is not None:
                        reporter.log_step(state, loss, norm, lr, progress_of(state, config))
            is_validation = state.needs_validation
            if is_validation:
                _validate(validate, state, reporter, path, stop, save)
                signal_number = _agree(state, [], time.monotonic() - started, stop)
                if reporter is not None:
                    reporter.restart_clock(state)
            if is_validation or signal_number:
                save()
            if signal_number:
                _stop(state, reporter, path, signal_number)


def _validate(
    validate: Validator,
    state: TrainState,
    reporter: Reporter | None,
    path: Path,
    stop: StopRequest,
    save: Callable[[], None],
) -> None:
    """Validate; what a signal or the death of a worker breaks off is still due afterwards."""
    try:
        validate(state, reporter, path, stop)
    except Interrupted:
        pass
    except ChildProcessError:
        if distributed.world_size() == 1:  # as in `_next`
            save()
        raise


def _num_steps(sampler: Sampler, config: TrainConfig) -> int:
    """Steps of an epoch, about."""
    assert config.accumulate is not None
    return -(-sampler.num_batches(0) // config.accumulate)


def _next(stream: Iterator[list[Batch]], save: Callable[[], None], path: Path) -> list[Batch]:
    """The next step's micro-batches; where a row far down a stream is broken, nothing learned before it is lost."""
    try:
        return next(stream)
    except (ValueError, OSError) as error:
        if distributed.world_size() == 1:  # the other ranks do not know of it, and could not take part
            save()
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


def _save(learner: Learner, state: TrainState, path: Path, keep: int, reporter: Reporter | None) -> None:
    """Write a checkpoint, the same whether weights and lanes are shared out among ranks or not."""
    _check_finite(learner, path)
    if reporter is not None:
        reporter.flush()
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
    return is_stuck or progress_of(state, config) >= 1


def _check_finite(learner: Learner, path: Path) -> None:
    step = int(learner.first_bad)
    if step:
        what = f"loss or gradient is not finite at step {step}"
        raise ValueError(f"{what}; {_last_good(path)}; start a new run with a lower --lr")


def _last_good(path: Path) -> str:
    good = checkpoint.checkpoints(path)
    return f"last good checkpoint: {good[-1]}" if good else "no checkpoint yet"


def main(args: list[str] | None = None) -> None:
    """The command."""
    cmd = parse_args(TrainCommand, args=args, description=DESCRIPTION)
    workers = runtime.start(cmd.run.threads)
    device = distributed.device(cmd.run.device)
    if cmd.run.shard and distributed.world_size() == 1:
        raise ValueError("--shard splits a model among several processes; start them with torchrun")
    with distributed.group(device, cmd.run.rank_timeout), contextlib.ExitStack() as held:
        run(cmd, args, device, workers, held)


class Prepared(NamedTuple):
    """All that a run learns from, settled and read, in a model folder that is its own."""

    path: Path
    config: Config
    splits: Splits
    tokenizer: Tokenizer
    source: Input
    sampler: Sampler
    is_resumed: bool


def run(
    cmd: TrainCommand, args: list[str] | None, device: torch.device, workers: int, held: contextlib.ExitStack
) -> None:
    """Train as one of the ranks, or alone.

    Args:
        held: takes the lock of the model folder, which rank 0 holds for all.
    """
    prepared = _prepare(cmd, args, device, workers, held)
    path, config, splits, tokenizer, source, sampler, _ = prepared
    learner, state = _make_learner(prepared, device, workers, cmd.run.shard)
    validate = Validator(learner, tokenizer, source, config, splits["validation"], workers)
    _begin(prepared)
    _record_data(prepared, len(validate.sources))
    about, num_steps = "about " if config.data.streaming else "", _num_steps(sampler, config.train)
    print(
        f"training on {about}{sampler.num_pairs:,} pairs, {tokenizer.vocab_size:,} subwords,"
        f" {learner.num_parameters:,} parameters, {device}: about {num_steps:,} steps an epoch,"
        f" {config.train.accumulate} micro-batches a step, from step {state.step}"
    )
    reporter = Reporter(path, state) if distributed.is_first() else None
    try:
        train(learner, sampler, validate, config.train, path, state, reporter)
    except OSError as error:
        raise ValueError(f"{_reason(error, path)}; {_last_good(path)}") from None
    if reporter is not None:
        reporter.close()
    _finish(prepared, state, learner.num_parameters, device, workers)


def _prepare(
    cmd: TrainCommand, args: list[str] | None, device: torch.device, workers: int, held: contextlib.ExitStack
) -> Prepared:
    """Settle the settings, read the corpus and take the folder; no rank goes on before all have the same."""
    cmd, path = resolve_folder(cmd, args)
    is_resumed = cmd.run.resume is not None
    if is_resumed:
        model_folder.read_config(path)  # there is a run, and no link in it leads elsewhere
        if distributed.is_first():
            held.enter_context(runtime.locked(path))
    with distributed.first_on_machine_first():
        cmd, splits = prepare_run(cmd, path, args, workers * distributed.world_size())
    config = final_config(cmd, workers, device)
    distributed.require_same("settings", repr(config))
    torch.manual_seed(config.train.seed)
    init_from = None if config.train.init_from is None else Path(config.train.init_from)
    tokenizer, source = make_sides(config, splits["train"], path if is_resumed else init_from)
    with distributed.first_on_machine_first():
        sampler = make_sampler(splits, tokenizer, source, config)
    print(*(describe(splits, config.data) if config.data.streaming else ()), splits.report, sep="\n")
    _check_scored(splits, source, config)
    distributed.require_same("training data", f"{splits.fingerprint} {tokenizer.digest} {source.digest}")
    if distributed.is_first():
        if not is_resumed:
            held.enter_context(runtime.locked(path))
            refuse_taken(path)  # again: another run may have come and gone
        checkpoint.clear_leftovers(path)
    distributed.barrier()
    return Prepared(path, config, splits, tokenizer, source, sampler, is_resumed)


def _check_scored(splits: Splits, source: Input, config: Config) -> None:
    """See that validation and test rows can be read: nothing drops one of them."""
    longest = config.data.max_length if config.model.positions == "learned" else None
    for split in splits.keys() - {"train"}:
        check_sources(splits[split], source, split, longest)


def _begin(prepared: Prepared) -> None:
    """Begin the model folder, and see that every rank sees it."""
    path, config, splits, tokenizer, source, _, is_resumed = prepared
    if distributed.is_first():
        if (launch := distributed.launch()) is not None:
            runtime.write_atomic(path / LAUNCH, launch)
        if config.data.source == "text" and not is_resumed:
            learn_shortlist(splits["train"], tokenizer, config.data.max_length).save(path)
        model_folder.create(path, config, tokenizer, source, splits.fingerprint)
        (path / model_folder.CARD).unlink(missing_ok=True)  # a finished run that goes on is unfinished
    distributed.barrier()
    if not (path / "config.json").is_file():
        raise ValueError(
            f"{path}, which rank 0 writes, is not to be seen here; put it where every machine sees it: --out DIR"
        )


def _finish(
    prepared: Prepared, state: TrainState, num_parameters: int, device: torch.device, workers: int
) -> None:
    """Score what was learned on the test splits, and tell of it: in the folder's card and on the console."""
    path, config, splits = prepared.path, prepared.config, prepared.splits
    if config.data.streaming:
        print(Report(stream=rows_read(state)))
    translator = Translator.load(path, device=str(device), split_sentences=False, workers=workers)
    scores = score_tests(translator, splits, config.data.tgt)
    if distributed.is_first():
        learned_from = prepared.sampler.num_pairs if splits.is_counted else None
        write_card(path, config, state, scores, learned_from, num_parameters, device)
    _say_done(path, config, state, splits["validation"][0]["src"])


def _say_done(path: Path, config: Config, state: TrainState, first: Source) -> None:
    if state.best_score < 1:
        print(f"warning: validation BLEU {state.best_score:.2f}, next to nothing was learned; train longer")
    example = shlex.quote(first) if isinstance(first, str) else USES[config.data.source][-1]
    print(f"done; the model is in {path}")
    print(f"translate: python translate.py --model {shlex.quote(str(path))} {example}")


def _make_learner(
    prepared: Prepared, device: torch.device, workers: int, shard: bool
) -> tuple[Learner, TrainState]:
    """The learner of a run, and where that stands: at the start, or at its newest checkpoint.

    The weights that a run starts from become its first checkpoint, before its config.json is there: what becomes of
    their folder matters no more.
    """
    path, config, source = prepared.path, prepared.config.train, prepared.source
    model = model_folder.build(prepared.config, prepared.tokenizer.vocab_size, source)
    is_new = not checkpoint.checkpoints(path)
    if is_new:
        _refuse_lost_checkpoints(path)
    if is_new and config.init_from is not None:
        start = model_folder.load(Path(config.init_from), torch.device("cpu"))
        tensor_files.copy_into(model, tensor_files.of_model(start.model), start.path)
    elif is_new and isinstance(model.src_embed, StripEmbedding):
        rng, values = np.random.default_rng(config.seed), prepared.sampler.sources(FITTED_ROWS)
        model.src_embed.fit(source.pad(values[i : i + 64], rng) for i in range(0, len(values), 64))
    distributed.barrier()  # all have seen whether there is a checkpoint
    learner = Learner(model, config, device, workers, shard)
    if is_new:
        # What it starts from may be better than what it learns: that is validated first.
        state = TrainState(needs_validation=config.init_from is not None)
        if config.init_from is not None:
            _save(learner, state, path, config.keep_checkpoints, None)
        return learner, state
    state = _restore(learner, path, config.keep_checkpoints)
    if _is_over(state, config) and (path / model_folder.CARD).exists():
        advice = "raise --max-steps, --max-minutes or --patience to train longer"
        raise ValueError(f"{path} is finished, after {state.step:,} steps; {advice}")
    if _is_over(state, config) and not (path / model_folder.WEIGHTS).is_file():
        state.needs_validation = True  # fewer steps are asked for than there are: these become the model
    return learner, state


def _refuse_lost_checkpoints(path: Path) -> None:
    """See that a folder without checkpoints holds no model that a run from the beginning would overwrite."""
    metrics = path / "metrics.jsonl"
    told = metrics.read_text(encoding="utf-8", errors="replace") if metrics.is_file() else ""
    # A kill right after the first validation leaves no checkpoint, but weights that come again just so.
    if (path / model_folder.CARD).exists() or told.count('"kind": "validation"') > 1:
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


def _record_data(prepared: Prepared, num_validated: int) -> None:
    """Write and say what became of the rows, and how much padding the batches hold."""
    padding = prepared.sampler.padding(0)._asdict()
    record = {"rows": prepared.splits.report.to_json(), "validated": num_validated, "padding": padding}
    if distributed.is_first():
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        runtime.write_atomic(prepared.path / "data.json", text)
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
