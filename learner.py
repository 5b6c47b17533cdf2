"""One step of learning: loss, gradients, optimizer, averaged weights; all of it as tensors for a checkpoint."""

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import checkpoint
import distributed
import runtime
import tensor_files
from config import TrainConfig
from dataset import Batch
from model import MultiHeadAttentionBlock, Transformer, dropout_from
from optimizer import STATE_NAMES, make_optimizers, take_step
from tokenizer import PAD_ID

R = TypeVar("R")


def loss_sum(model: nn.Module, batch: Batch, label_smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy summed over the real target tokens of a batch, float32 scalar."""
    is_real = batch.tgt_out != PAD_ID
    logits = model(batch.src, batch.src_mask, batch.tgt_in, batch.tgt_mask, is_real)
    target = batch.tgt_out[is_real]
    return F.cross_entropy(logits.float(), target, label_smoothing=label_smoothing, reduction="sum")


def _key_bias_masks(model: Transformer) -> list[tuple[Tensor, Tensor]]:
    """The biases of queries, keys and values of a model, each with a mask that is 0 for those of the keys.

    A bias of the keys moves all scores of a query alike, so it changes nothing and its gradient is zero but for
    rounding, which AdamW would blow up to steps of full size: other ones whenever sums are added in another order.
    """
    biases = [m.w_qkv.bias for m in model.modules() if isinstance(m, MultiHeadAttentionBlock)]
    masks = [torch.tensor([1.0, 0.0, 1.0]).repeat_interleave(bias.numel() // 3) for bias in biases]
    return [(bias, distributed.like(mask, bias)) for bias, mask in zip(biases, masks, strict=True)]


def _shares(parameters: Sequence[Tensor], num: int) -> list[range]:
    """At most so many runs of neighbours that hold all of them, as nearly of one size as whole tensors allow."""
    sizes = list(accumulate((p.numel() for p in parameters), initial=0))  # of the first 0, 1, 2, …
    wanted = (sizes[-1] * i / num for i in range(num + 1))
    borders = {min(range(len(sizes)), key=lambda border: abs(sizes[border] - size)) for size in wanted}
    return [range(start, end) for start, end in pairwise(sorted(borders))]


class Learner:
    """The model with its optimizer and averaged weights: one call a step, one dictionary for a checkpoint.

    On a CPU the micro-batches of a step run side by side, each in a thread of its own: torch's own threads
    share every single operation, and stall whenever another process takes one of the cores. Several ranks share
    them out instead, and each does its own one after another.

    Args:
        shard: split weights, their averages and the optimizer's state among the ranks, rather than repeat them.
    """

    def __init__(
        self,
        model: Transformer,
        config: TrainConfig,
        device: torch.device,
        workers: int = 1,
        shard: bool = False,
    ) -> None:
        # What is split moves to its device a layer at a time: no device need hold it whole.
        self.model, self.config, self.device = model if shard else model.to(device), config, device
        self.average = copy.deepcopy(model).requires_grad_(False)
        self.num_averaged = torch.zeros((), dtype=torch.int64)
        self.averaged = copy.deepcopy(self.average) if shard else self.average
        """The model with averaged weights, which is validated and kept; where they are split, while `gathered`."""
        self.is_sharded = shard
        self.replica: nn.Module | None = None
        if shard:
            for whole in (model, self.average):
                distributed.shard(whole, [*whole.encoder.layers, *whole.decoder.layers], device)
            self.replica = model
        elif distributed.world_size() > 1:
            self.replica = distributed.replicate(model)
            self.average.load_state_dict(model.state_dict())  # rank 0's, also of what does not learn
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        averages = dict(self.average.named_parameters())
        self.parameters: list[Tensor] = list(self.trained.values())
        self.averages: list[Tensor] = [averages[name] for name in self.trained]
        self.dtype = runtime.autocast_dtype(device, config.mixed_precision)
        workers = workers if device.type == "cpu" else 1
        self.pool = ThreadPoolExecutor(workers)
        self.key_bias_masks = _key_bias_masks(model)
        self.shares = _shares(self.parameters, workers)
        """What each worker does of the work that every weight needs for itself."""
        shares = [[self.parameters[i] for i in share] for share in self.shares]
        self.optimizers = make_optimizers(model, config, self.pool, shares)
        self.first_bad = torch.zeros((), dtype=torch.int64, device=device)
        """The first step whose loss or gradient was not finite; 0 while there is none. Stays on the device."""

    def step(self, batches: list[Batch], lr: float, step: int) -> tuple[Tensor, Tensor]:
        """Learn from micro-batches as if they were one.

        Args:
            batches: of several ranks, this one's share: every `world_size`-th, beginning with number `rank`.
            step: its number; with the seed, it fixes dropout.
        Returns:
            Loss per target token and gradient norm, scalars, the same on every rank.
        """
        ranks = distributed.world_size()
        if self.is_sharded:  # each pass puts layers together, and that takes all ranks
            most = int(distributed.every(len(batches)).max())
            batches = [*batches, *[batches[0].silenced()] * (most - len(batches))]
        num_tokens = int(distributed.every(sum(batch.num_tokens for batch in batches)).sum())
        # One for each micro-batch of the step, whichever rank has it; a longer list begins like a shorter one.
        numbers = np.random.SeedSequence([self.config.seed, step])
        seeds = numbers.generate_state(ranks * len(batches), np.uint64)[distributed.rank() :: ranks].tolist()
        add_up = self._add_up if self.replica is None else self._add_up_over_ranks
        total = distributed.add_up(add_up(batches, seeds)) / num_tokens
        for bias, learns in self.key_bias_masks:
            if bias.grad is not None:  # None: it does not learn
                bias.grad.mul_(learns)
        # The gradients are the mean of the ranks' sums.
        scale = ranks / num_tokens
        norm = self._norm() * scale
        is_first_bad = (self.first_bad == 0) & ~(total.isfinite() & norm.isfinite())
        self.first_bad = torch.where(is_first_bad, step, self.first_bad)
        clip = (self.config.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        self._share_out(lambda share: torch._foreach_mul_(self._grads(share), scale * clip))
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr
        take_step(self.optimizers, self.pool)
        self._share_out(self._average)
        self.num_averaged += 1
        return total, norm

    def _norm(self) -> Tensor:
        """Of all gradients together."""
        norms = self._share_out(lambda share: torch._foreach_norm(self._grads(share)))
        return distributed.whole(torch.linalg.vector_norm(torch.stack(list(chain(*norms)))))

    def _share_out(self, work: Callable[[range], R]) -> list[R]:
        """Results of work on all shares of the weights, each by a worker of its own."""
        return list(self.pool.map(work, self.shares)) if len(self.shares) > 1 else [work(self.shares[0])]

    @torch.no_grad()
    def _average(self, share: range) -> None:
        """Move the averaged weights of a share; the first time they become the weights themselves."""
        decay = self.config.ema_decay if self.num_averaged else 0.0
        averages, parameters = ([each[i] for i in share] for each in (self.averages, self.parameters))
        torch._foreach_lerp_(averages, parameters, 1 - decay)

    def _add_up(self, batches: list[Batch], seeds: list[int]) -> Tensor:
        """Loss summed over micro-batches, whose gradients, summed likewise, are left in .grad."""
        total = torch.zeros((), device=self.device)
        # Summed in the order of the batches, whichever thread is first: the same run gives the same weights.
        for number, (loss, gradients) in enumerate(self.pool.map(self._gradients, batches, seeds), 1):
            total += loss
            if number == 1:
                for parameter, gradient in zip(self.parameters, gradients, strict=True):
                    parameter.grad = gradient
            elif number < len(batches):
                self._add(gradients, range(len(gradients)))
            else:  # the workers are free
                self._share_out(partial(self._add, gradients))
        return total

    def _grads(self, share: range) -> list[Tensor]:
        return [grad for i in share if (grad := self.parameters[i].grad) is not None]

    def _add(self, gradients: Sequence[Tensor], share: range) -> None:
        torch._foreach_add_(self._grads(share), [gradients[i] for i in share])

    def _add_up_over_ranks(self, batches: list[Batch], seeds: list[int]) -> Tensor:
        """The same, but the gradients are the mean of all ranks' sums, exchanged during the last backward pass."""
        assert self.replica is not None
        total = torch.zeros((), device=self.device)
        for number, (batch, seed) in enumerate(zip(batches, seeds, strict=True), 1):
            with distributed.synchronised(self.replica, is_last=number == len(batches)):
                loss = self._loss(self.replica, batch, seed)
                loss.backward()
            total += loss.detach()
        return total

    def _gradients(self, batch: Batch, seed: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss summed over a micro-batch and its gradients."""
        loss = self._loss(self.model, batch, seed)
        return loss.detach(), torch.autograd.grad(loss, self.parameters)

    def _loss(self, model: nn.Module, batch: Batch, seed: int) -> Tensor:
        """Loss summed over a micro-batch, with the dropout of its seed."""
        if self.device.type == "cpu":
            dropout: AbstractContextManager[None] = dropout_from(torch.Generator().manual_seed(seed))
        else:
            dropout = nullcontext()
            torch.manual_seed(seed)
        with dropout, torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return loss_sum(model, batch.to(self.device), self.config.label_smoothing)

    @property
    def num_parameters(self) -> int:
        """Weights, tied ones once."""
        return sum(p.numel() for p in self.model.parameters())

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """While it is entered, `averaged` is whole and on the device; all ranks have to enter it."""
        if not self.is_sharded:
            yield
            return
        with torch.no_grad():
            for target, part in zip(self.averaged.parameters(), self.average.parameters(), strict=True):
                target.copy_(distributed.whole(part))
        try:
            self.averaged.to(self.device)
            yield
        finally:
            self.averaged.cpu()

    def tensors(self) -> dict[str, Tensor]:
        """Everything that an exact resume needs beside TrainState."""
        state = {f"model.{n}": p for n, p in tensor_files.of_model(self.model).items()}
        state |= {f"{checkpoint.AVERAGE}{n}": p for n, p in tensor_files.of_model(self.average).items()}
        names: dict[Tensor, str] = {p: n for n, p in self.trained.items()}
        for optimizer in self.optimizers:
            for parameter, values in optimizer.state.items():
                state |= {f"optimizer.{names[parameter]}.{k}": v for k, v in values.items()}
        state["num_averaged"] = self.num_averaged
        return state

    def restore(self, state: dict[str, Tensor], source: Path) -> None:
        """Go back to what `tensors` returned."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}

        tensor_files.copy_into(self.model, part("model."), source)
        tensor_files.copy_into(self.average, part(checkpoint.AVERAGE), source)
        names: dict[Tensor, str] = {p: n for n, p in self.trained.items()}
        for optimizer in self.optimizers:
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                moments = part(f"optimizer.{names[parameter]}.")
                if moments and moments.keys() != STATE_NAMES[type(optimizer)]:
                    raise ValueError(
                        f"{source} has a checkpoint of another optimizer than its config.json; restore that, or"
                        " start a new run"
                    )
                # Copies: what was read stays mapped to its file, which is to be removed one day.
                own = {k: distributed.like(t.clone(), parameter) for k, t in moments.items()}
                optimizer.state[parameter] = own
        self.num_averaged.copy_(state["num_averaged"])
