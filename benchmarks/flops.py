"""What a training step must compute, counted from shapes, and how fast this machine computes just that.

The share of the machine's matrix-product rate is model FLOPs ÷ seconds ÷ that rate: how much of the time a loop
spends in the matrix products that nobody can avoid.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from measuring import Shape
from peers import Architecture
from torch import Tensor


class Product(NamedTuple):
    """So many independent products (m, k) × (k, n), one after the other in one operation."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def flops(self) -> int:
        """A multiplication and an addition for each term."""
        return 2 * self.batch * self.m * self.k * self.n


def forward_products(shape: Shape, a: Architecture) -> Iterator[Product]:
    """Every matrix product of a forward pass over a batch; padding is multiplied like the rest."""
    d, head = a.d_model, a.d_model // a.heads
    src, tgt = shape.rows * shape.src_length, shape.rows * shape.tgt_length

    def attention(t: int, s: int) -> Iterator[Product]:
        yield Product(shape.rows * a.heads, t, head, s)  # scores
        yield Product(shape.rows * a.heads, t, s, head)  # their mean of the values

    def feed_forward(positions: int) -> Iterator[Product]:
        yield Product(1, positions, d, a.d_ff)
        yield Product(1, positions, a.d_ff, d)

    for _ in range(a.layers):
        yield Product(1, src, d, 3 * d)
        yield from attention(shape.src_length, shape.src_length)
        yield Product(1, src, d, d)
        yield from feed_forward(src)
    for _ in range(a.layers):
        yield Product(1, tgt, d, 3 * d)
        yield from attention(shape.tgt_length, shape.tgt_length)
        yield Product(1, tgt, d, d)
        yield Product(1, tgt, d, d)  # query of the cross-attention
        yield Product(1, src, d, 2 * d)  # its keys and values
        yield from attention(shape.tgt_length, shape.src_length)
        yield Product(1, tgt, d, d)
        yield from feed_forward(tgt)
    yield Product(1, shape.projected, d, a.vocab_size)


def training_flops(shape: Shape, architecture: Architecture) -> int:
    """Forward and backward, which multiplies twice for each product of the forward pass."""
    return 3 * sum(product.flops for product in forward_products(shape, architecture))


def backward_products(product: Product) -> tuple[Product, Product]:
    """Those for the gradients of its two factors."""
    batch, m, k, n = product
    return Product(batch, m, n, k), Product(batch, k, m, n)


def bare_rate(
    steps: Sequence[Sequence[Shape]], architecture: Architecture, workers: int, seconds: float
) -> float:
    """FLOP/s of nothing but the matrix products of some steps, each worker in a thread with its own batch.

    Args:
        steps: the batches of each step, of which a few typical ones are computed again and again.
        workers: threads of torch.set_num_threads(1) side by side; 1 leaves it to torch's own threads.
        seconds: how long it is measured.
    """
    shapes = [shape for step in steps[: 2 * workers] for shape in step][: 2 * workers]
    tasks = [_Task(shape, architecture) for shape in shapes]
    with ThreadPoolExecutor(workers) as pool:
        run_all = map if workers == 1 else pool.map
        list(run_all(_Task.run, tasks))  # pages touched, kernels chosen
        started, flops = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            flops += sum(run_all(_Task.run, tasks))
        return flops / (time.perf_counter() - started)


class _Task:
    """The products of one batch, with their factors ready."""

    def __init__(self, shape: Shape, architecture: Architecture) -> None:
        products = [p for f in forward_products(shape, architecture) for p in (f, *backward_products(f))]
        made = {p: _operands(p) for p in set(products)}
        self.operands = [made[p] for p in products]
        self.flops = sum(p.flops for p in products)

    def run(self) -> int:
        """Compute all of them; returns their FLOPs."""
        with torch.inference_mode():
            for left, right, out in self.operands:
                (torch.bmm if left.dim() == 3 else torch.mm)(left, right, out=out)
        return self.flops


def _operands(product: Product) -> tuple[Tensor, Tensor, Tensor]:
    batch, m, k, n = product
    leading = (batch,) if batch > 1 else ()
    with torch.inference_mode():
        return torch.randn(*leading, m, k), torch.randn(*leading, k, n), torch.empty(*leading, m, n)
