"""What a training run tells: console, metrics.jsonl, TensorBoard, and the model card at the end."""

import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

import runtime
from checkpoint import TrainState
from config import Config, DecodeConfig
from model_folder import CARD, WEIGHTS
from picture import draw_attention
from scores import Score
from translator import Attention, Translation

# What a translation is made of, by kind of source.
USES = {
    "text": ('"sentence"',),
    "image": ('"sentence"', "--image picture.png"),
    "features": ("--features frames.npy",),
}


READS = {"text": "Reads text", "image": "Reads text as pictures", "features": "Reads sequences of features"}


class Reporter:
    """Writes the progress of one run; after a resume it goes on where the checkpoint stood."""

    def __init__(self, path: Path, state: TrainState) -> None:
        from torch.utils.tensorboard import SummaryWriter  # a second that only training pays

        self.file = path / "metrics.jsonl"
        kept, is_due = _lines_until(self.file, state), state.needs_validation
        runtime.write_atomic(self.file, "".join(kept))
        # TensorBoard drops what a killed process wrote of this step and later ones. The files stay as they are.
        self.writer = SummaryWriter(path / "tensorboard", purge_step=state.step + (not is_due))
        for row in map(json.loads, kept[-1:] if is_due else ()):
            if row["step"] == state.step:  # dropped with the validation that comes again
                self._draw(row)
        self.bar: tqdm | None = None
        if sys.stderr.isatty():
            self.bar = tqdm(total=100, bar_format="{percentage:3.0f}%|{bar:20}| {desc}", desc="training")
        self.restart_clock(state)

    def restart_clock(self, state: TrainState) -> None:
        """Count the tokens per second from here on: a validation is not training."""
        self.logged_at, self.logged_tokens = time.monotonic(), state.target_tokens

    def log_step(self, state: TrainState, loss: Tensor, norm: Tensor, lr: float, progress: float) -> None:
        """Log loss, gradient norm and learning rate of this step, and the target tokens per second since the last.

        Args:
            progress: share of the budget used up, 0 to 1.
        """
        rate = (state.target_tokens - self.logged_tokens) / (time.monotonic() - self.logged_at)
        values = {"loss": loss.item(), "lr": lr, "gradient_norm": norm.item(), "tokens_per_s": rate}
        self._write("train", state, values)
        eta = _clock(state.elapsed_s * (1 - progress) / progress) if progress else "?"
        where = f"step {state.step:,} | epoch {state.epoch}"
        line = f"{where} | loss {values['loss']:.3f} | lr {lr:.2e} | {rate:,.0f} tokens/s"
        if self.bar is None:
            print(f"{line} | {_clock(state.elapsed_s)} | eta {eta}", flush=True)
        else:
            self.bar.n = round(100 * progress)
            self.bar.set_description_str(f"{_clock(state.elapsed_s)}<{eta} | {line}")
        self.restart_clock(state)

    def log_validation(
        self,
        state: TrainState,
        values: Mapping[str, float],
        samples: Sequence[Translation],
        picture: Attention,
    ) -> None:
        """Log validation scores, some translations as text and one cross-attention picture."""
        self._write("validation", state, values)
        text = "\n\n".join(f"{s.source}  \n→ {s.text}" for s in samples)
        self.writer.add_text("samples", text, state.step)
        figure = draw_attention(*picture)
        self.writer.add_figure("cross-attention", figure, state.step)
        best = " (best so far)" if state.best_step == state.step else ""
        result = f"BLEU {values['bleu']:.2f}, chrF2++ {values['chrf']:.2f}{best}"
        self.say(f"validation at step {state.step:,}: {result}, after {_clock(state.elapsed_s)}")

    def say(self, text: str) -> None:
        """A line for the person watching, above the bar if there is one."""
        tqdm.write(text)
        sys.stdout.flush()

    def flush(self) -> None:
        """Before a checkpoint is written: what has been told of the steps up to it must not get lost."""
        self.writer.flush()

    def close(self) -> None:
        """Close the bar and TensorBoard's file."""
        if self.bar is not None:
            self.bar.close()
        self.writer.close()

    def _write(self, kind: str, state: TrainState, values: Mapping[str, float]) -> None:
        fixed = {
            "kind": kind,
            "step": state.step,
            "epoch": state.epoch,
            "elapsed_s": round(state.elapsed_s, 2),
        }
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**fixed, **values}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._draw({**fixed, **values})

    def _draw(self, row: Mapping[str, object]) -> None:
        """The values of a row of metrics.jsonl as points of TensorBoard's curves."""
        for name, value in row.items():
            if name not in ("kind", "step", "epoch", "elapsed_s"):
                self.writer.add_scalar(f"{row['kind']}/{name}", value, row["step"])


def _lines_until(file: Path, state: TrainState) -> list[str]:
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n") and _is_until(line, state)]


def _is_until(line: str, state: TrainState) -> bool:
    """Whether a line tells of this step or one before, and of no validation that is due; a damaged one never does."""
    try:
        row = json.loads(line)
        is_due = state.needs_validation and row["kind"] == "validation"
        return bool(row["step"] + is_due <= state.step)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def write_card(
    path: Path,
    config: Config,
    state: TrainState,
    scores: Mapping[str, Sequence[Score]],
    num_pairs: int | None,
    num_parameters: int,
    device: torch.device,
) -> None:
    """Write the folder's README.md: languages, data, scores with signatures, how to use it.

    Args:
        scores: scores by split.
        num_pairs: sentence pairs learned from, of a stream about so many; None = a stream of unknown length.
        num_parameters: weights of the model.
        device: that it learned on.
    """
    source = config.data.source
    lines = [
        *_head(config, state, num_pairs, num_parameters, _name(device)),
        "",
        f"Scores with beam {DecodeConfig.beam} and length penalty {DecodeConfig.length_penalty}:",
        "",
        "| split | metric | score | 95 % interval | signature |",
        "|---|---|---|---|---|",
        *(_row(split, score) for split, of_split in scores.items() for score in of_split),
        "",
        "Use:",
        "",
        "```",
        *(f"python translate.py --model {shlex.quote(str(path))} {given}" for given in USES[source]),
        "```",
        "",
        "It knows what its corpus holds; sentences far from it come out wrong.",
        "",
    ]
    runtime.write_atomic(path / CARD, "\n".join(lines))


def _head(
    config: Config, state: TrainState, num_pairs: int | None, num_parameters: int, hardware: str
) -> list[str]:
    """What was learned from, for how long, and the model that came of it."""
    data, model, init_from = config.data, config.model, config.train.init_from
    about = "about " if data.streaming else ""
    pairs = "a stream of sentence pairs" if num_pairs is None else f"{about}{num_pairs:,} sentence pairs"
    return [
        f"# Translator {data.src} → {data.tgt}",
        "",
        f"Trained on `{data.name}`: {pairs}, {state.target_tokens:,} target tokens "
        f"seen in {state.step:,} steps, {_clock(state.elapsed_s)} on {hardware}"
        + (f", from the weights of `{init_from}`." if init_from else "."),
        "",
        f"{READS[data.source]}. Transformer with {model.num_layers} encoder and {model.num_decoder_layers} decoder "
        f"layers, width {model.d_model}, {model.num_heads} heads, feed-forward {model.d_ff}; {num_parameters:,} "
        f"parameters; weights of step {state.best_step:,} (validation BLEU {state.best_score:.2f}) in `{WEIGHTS}`.",
    ]


def _row(split: str, score: Score) -> str:
    """A score as a row of the card's table."""
    signature = score.signature.replace("|", "\\|")  # a bare one ends the cell
    interval = f"{score.low:.2f}–{score.high:.2f}"
    return f"| {split} | {score.name} | {score.value:.2f} | {interval} | `{signature}` |"


def _name(device: torch.device) -> str:
    if device.type == "cpu":
        return f"a CPU with {os.cpu_count()} cores"
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
