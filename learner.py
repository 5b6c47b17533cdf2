"""One step of learning: loss, gradients, optimizer, averaged weights; all of it as tensors for a checkpoint."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import checkpoint
import runtime
from config import TrainConfig
from dataset import Batch
from model import Transformer, dropout_from
from optimizer import make_optimizers
from tokenizer import PAD_ID


def loss_sum(model: Transformer, batch: Batch, label_smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy summed over the real target tokens of a batch, float32 scalar."""
    is_real = batch.tgt_out != PAD_ID
    logits = model(batch.src, batch.src_mask, batch.tgt_in, batch.tgt_mask, is_real)
    target = batch.tgt_out[is_real]
    return F.cross_entropy(logits.float(), target, label_smoothing=label_smoothing, reduction="sum")


class Learner:
    """The model with its optimizer and averaged weights: one call a step, one dictionary for a checkpoint.

    On a CPU the micro-batches of a step run side by side, each in a thread of its own: torch's own threads
    share every single operation, and stall whenever another process takes one of the cores.
    """

    def __init__(
        self, model: Transformer, config: TrainConfig, device: torch.device, workers: int = 1
    ) -> None:
        self.model, self.config, self.device = model.to(device), config, device
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.ema_decay))
        self.average.requires_grad_(False)
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.dtype = runtime.autocast_dtype(device, config.mixed_precision)
        self.pool = ThreadPoolExecutor(workers if device.type == "cpu" else 1)
        self.optimizers = make_optimizers(model, config, self.pool)
        self.first_bad = torch.zeros((), dtype=torch.int64, device=device)
        """The first step whose loss or gradient was not finite; 0 while there is none. Stays on the device."""

    def step(self, batches: list[Batch], lr: float, step: int) -> tuple[Tensor, Tensor]:
        """Learn from micro-batches as if they were one.

        Args:
            step: its number; with the seed, it fixes dropout.
        Returns:
            Loss per target token and gradient norm, scalars.
        """
        num_tokens = sum(batch.num_tokens for batch in batches)
        seeds = np.random.SeedSequence([self.config.seed, step]).generate_state(len(batches), np.uint64)
        total = torch.zeros((), device=self.device)
        parameters = list(self.trained.values())
        # Summed in the order of the batches, whichever thread is first: the same run gives the same weights.
        for loss, gradients in self.pool.map(self._gradients, batches, seeds.tolist()):
            total += loss / num_tokens
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        torch._foreach_div_([p.grad for p in parameters if p.grad is not None], num_tokens)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.config.clip_norm)
        is_first_bad = (self.first_bad == 0) & ~(total.isfinite() & norm.isfinite())
        self.first_bad = torch.where(is_first_bad, step, self.first_bad)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr
            optimizer.step()
            optimizer.zero_grad()
        self.average.update_parameters(self.model)
        return total, norm

    def _gradients(self, batch: Batch, seed: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss summed over a micro-batch and its gradients."""
        if self.device.type == "cpu":
            dropout: AbstractContextManager[None] = dropout_from(torch.Generator().manual_seed(seed))
        else:
            dropout = nullcontext()
            torch.manual_seed(seed)
        with dropout, torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            loss = loss_sum(self.model, batch.to(self.device), self.config.label_smoothing)
        return loss.detach(), torch.autograd.grad(loss, list(self.trained.values()))

    @property
    def num_parameters(self) -> int:
        """Weights, tied ones once."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def averaged(self) -> Transformer:
        """The model with averaged weights, which is validated and kept."""
        assert isinstance(self.average.module, Transformer)
        return self.average.module

    def tensors(self) -> dict[str, Tensor]:
        """Everything that an exact resume needs beside TrainState."""
        state = {f"model.{n}": p for n, p in checkpoint.weights(self.model).items()}
        state |= {f"{checkpoint.AVERAGE}{n}": p for n, p in checkpoint.weights(self.averaged).items()}
        names: dict[Tensor, str] = {p: n for n, p in self.trained.items()}
        for optimizer in self.optimizers:
            for parameter, values in optimizer.state.items():
                state |= {f"optimizer.{names[parameter]}.{k}": v for k, v in values.items()}
        state["num_averaged"] = self.average.n_averaged
        return state

    def restore(self, state: dict[str, Tensor], source: Path) -> None:
        """Go back to what `tensors` returned."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}

        checkpoint.copy_weights(self.model, part("model."), source)
        checkpoint.copy_weights(self.averaged, part(checkpoint.AVERAGE), source)
        names: dict[Tensor, str] = {p: n for n, p in self.trained.items()}
        for optimizer in self.optimizers:
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                moments = part(f"optimizer.{names[parameter]}.")
                optimizer.state[parameter] = {k: t.to(self.device) for k, t in moments.items()}
        self.average.n_averaged.copy_(state["num_averaged"])
