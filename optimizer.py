"""The optimizers: Muon for the matrices inside the layers, AdamW for everything else.

Shapes: n matrices of one shape, R rows and C columns.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor

import torch
from torch import Tensor, nn

import distributed
from config import TrainConfig
from model import MultiHeadAttentionBlock, Transformer

# The odd polynomial of Jordan et al. 2024 that lifts small singular values fastest towards 1.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
# Matrices orthogonalised together; fixed, so that the number of workers changes no result.
CHUNK = 8


def orthogonalised(matrices: Tensor) -> Tensor:
    """The nearest matrices whose singular values are about 1, mostly 0.7 to 1.2, by Newton-Schulz iteration.

    Args:
        matrices: (n, R, C), float32.
    Returns:
        (n, R, C). A zero matrix stays zero.
    Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """
    a, b, c = NEWTON_SCHULZ
    is_tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if is_tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)  # its largest singular value is at most 1
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose direction is orthogonalised, so that a matrix learns in all directions at the same pace.

    In float32: torch's own Muon computes in bfloat16, which a CPU without it emulates, far slower. An update has
    about the size of AdamW's, so one learning rate serves both in one run.

    A matrix that is split among ranks is put together on each of them, which then moves its own share.

    Args:
        params: matrices.
        fused: how many matrices stand above one another in each of them (queries, keys and values: 3).
        run: maps a function over chunks of the work, in order; threads may share it.
    Source: Jordan et al. 2024; scale and weight decay from Liu et al. 2025, arXiv:2502.16982.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        fused: Callable[[Tensor], int],
        run: Executor,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.fused, self.run = fused, run

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            directions: dict[Tensor, Tensor] = {}
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                average = state["momentum"]
                average.lerp_(parameter.grad, 1 - group["momentum"])
                direction = parameter.grad.lerp(average, group["momentum"])  # Nesterov's
                directions[parameter] = distributed.whole(direction)
                for part in directions[parameter].chunk(self.fused(parameter)):
                    by_shape.setdefault(part.shape, []).append(part)
            chunks = [same[i : i + CHUNK] for same in by_shape.values() for i in range(0, len(same), CHUNK)]
            for chunk, updates in zip(
                chunks, self.run.map(orthogonalised, map(torch.stack, chunks)), strict=True
            ):
                for part, update in zip(chunk, updates, strict=True):
                    part.copy_(update)
            for parameter, update in directions.items():
                size = 0.2 * max(len(update) // self.fused(parameter), update.size(1)) ** 0.5
                parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(
                    distributed.like(update, parameter), alpha=-group["lr"] * size
                )


STATE_NAMES: dict[type[torch.optim.Optimizer], set[str]] = {
    torch.optim.AdamW: {"step", "exp_avg", "exp_avg_sq"},
    Muon: {"momentum"},
}
"""What each keeps of a weight."""


def make_optimizers(
    model: Transformer, config: TrainConfig, run: Executor, shares: Sequence[Sequence[Tensor]]
) -> list[torch.optim.Optimizer]:
    """What trains a model: every weight that learns belongs to one of them.

    Args:
        run: the workers, to which Muon gives its work.
        shares: all weights that learn, shared out among the workers.
    Returns:
        An AdamW for each share, and Muon if it is asked for.
    """
    inside = [m for stack in (model.encoder, model.decoder) for m in stack.modules()]
    hidden = [m.weight for m in inside if isinstance(m, nn.Linear)] if config.optimizer == "muon" else []
    stacked = {m.w_qkv.weight for m in inside if isinstance(m, MultiHeadAttentionBlock)}
    optimizers: list[torch.optim.Optimizer] = []
    is_hidden = set(hidden)
    for share in shares:
        others = [p for p in share if p not in is_hidden]
        groups = [
            {"params": [p for p in others if p.dim() > 1], "weight_decay": config.weight_decay},
            {"params": [p for p in others if p.dim() == 1], "weight_decay": 0.0},
        ]
        optimizers.append(torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.98), eps=1e-9, fused=True))
    if hidden:
        muon = Muon(
            hidden, lambda p: 3 if p in stacked else 1, run, config.lr, weight_decay=config.weight_decay
        )
        optimizers.append(muon)
    return optimizers


def take_step(optimizers: Sequence[torch.optim.Optimizer], run: Executor) -> None:
    """Move all weights by their gradients, which are then gone.

    Args:
        run: the workers, which do AdamW's parts; Muon runs here meanwhile, and shares its own work out among them.
    """
    running = [run.submit(each.step) for each in optimizers if not isinstance(each, Muon)]
    for muon in (each for each in optimizers if isinstance(each, Muon)):
        muon.step()
    for each in running:
        each.result()
    for optimizer in optimizers:
        optimizer.zero_grad()
