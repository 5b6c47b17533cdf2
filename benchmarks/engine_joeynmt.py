"""JoeyNMT as an engine of the benchmark: its own loop, loss, optimizer, schedule and beam search.

It is given ids between spaces as words, with a vocabulary file of them, so that it sees the sequences of the others.
What it has no setting for stays as it is: its token batches count padding and are not of similar lengths, dropout is
on the attention weights too, and its vocabulary has one more entry, for unknown words.
"""

import shutil
from pathlib import Path

import torch
from joeynmt.batch import Batch
from joeynmt.config import parse_global_args
from joeynmt.prediction import predict, prepare
from joeynmt.training import TrainManager
from measuring import Clock, Shape
from pairs import MAX_LENGTH, read_ids
from peers import EOS_ID, RECIPE, SRC, TGT, Architecture, Subwords, longest

from strict_json import Json


class Timed(TrainManager):
    """JoeyNMT's loop, with a mark after each step."""

    clock: Clock
    seen: list[Shape]

    def _train_step(self, batch: Batch) -> tuple[float, int]:
        # Called first in each step, so a step ends where the next begins.
        self._mark()
        rows, length = batch.trg.shape
        self.seen = [Shape(rows, batch.src.size(1), length, rows * length, batch.ntokens)]
        if self.clock.is_over:
            self.stats.is_max_update = True  # this step is the last, and not counted
        return super()._train_step(batch)

    def _mark(self) -> None:
        if self.seen:
            self.clock.tick(self.seen)
        else:
            self.clock.start()


class JoeyNMT:
    """Trains, and translates the test sentences with its beam search.

    Args:
        data: folder of pairs.py.
        out: folder for its vocabulary and checkpoints; one that is there is replaced.
    """

    def __init__(self, data: Path, out: Path, architecture: Architecture, tokens: int, threads: int) -> None:
        torch.set_num_threads(threads)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        num_ids = len(Subwords(data).vocabulary)
        (out / "vocabulary.txt").write_text("".join(f"{i}\n" for i in range(EOS_ID + 1, num_ids)))
        config = configuration(data, out, architecture, tokens)
        self.args = parse_global_args(config, rank=0, mode="train")
        self.model, self.train_data, _, self.test_data = prepare(self.args, rank=0, mode="train")

    def train(self, clock: Clock) -> None:
        """Train until the clock says stop."""
        args = self.args
        trainer = Timed(
            rank=0,
            model=self.model,
            model_dir=args.model_dir,
            device=args.device,
            autocast=args.autocast,
            seed=args.seed,
            train_args=args.train,
            dev_args=args.test,
        )
        trainer.clock, trainer.seen = clock, []
        # It asks for validation data, which with this validation_freq it never reads.
        trainer.train_and_validate(train_data=self.train_data, valid_data=self.test_data)

    def translate_test(self) -> list[list[int]]:
        """Ids of the test sentences' translations."""
        args = self.args
        lines = predict(self.model, self.test_data, args.device, 0, args=args.test, autocast=args.autocast)[2]
        return [[int(word) for word in line.split() if word.isdigit()] for line in lines]


def configuration(data: Path, out: Path, architecture: Architecture, tokens: int) -> dict[str, Json]:
    """The benchmark's settings in the words of JoeyNMT."""
    a = architecture

    def side(language: str) -> dict[str, Json]:
        return {
            "lang": language,
            "level": "word",
            "max_length": MAX_LENGTH,
            "voc_file": str(out / "vocabulary.txt"),
        }

    def stack() -> dict[str, Json]:
        return {
            "type": "transformer",
            "num_layers": a.layers,
            "num_heads": a.heads,
            "embeddings": {"embedding_dim": a.d_model, "scale": True, "dropout": a.dropout},
            "hidden_size": a.d_model,
            "ff_size": a.d_ff,
            "dropout": a.dropout,
            "layer_norm": "post",
            "activation": "relu",
        }

    most = max(map(len, read_ids(data / f"test.{SRC}"))) + 1
    return {
        "name": "benchmark",
        "model_dir": str(out),
        "use_cuda": False,
        "random_seed": RECIPE.seed,
        "data": {
            "train": str(data / "train"),
            "test": str(data / "test"),
            "dataset_type": "plain",
            "src": side(SRC),
            "trg": side(TGT),
        },
        "training": {
            "normalization": "tokens",
            "label_smoothing": RECIPE.label_smoothing,
            "optimizer": "adamw",
            "adam_betas": list(RECIPE.betas),
            "learning_rate": RECIPE.lr,
            "learning_rate_min": 1e-8,
            "learning_rate_warmup": RECIPE.warmup_steps,
            "scheduling": "warmupinversesquareroot",
            "weight_decay": RECIPE.weight_decay,
            "clip_grad_norm": RECIPE.clip_norm,
            "batch_type": "token",
            "batch_size": tokens,
            "epochs": 1_000_000,  # the clock stops it
            "logging_freq": 100,
            "validation_freq": 10**9,  # never
        },
        # One bound for all sentences: the largest.
        "testing": {"beam_size": 5, "beam_alpha": 1.0, "batch_size": 64, "max_output_length": longest(most)},
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack(),
            "decoder": stack(),
        },
    }
