"""Several processes (ranks) on one machine or many: who is who, what they share, how they end together.

torchrun starts them and says in the environment who is who. A process of its own is rank 0 of 1, and nothing here
costs it anything.
"""

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

import runtime

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule

T = TypeVar("T")
R = TypeVar("R")

# A large corpus takes hours to read. A rank that has ended is noticed all the same.
PREPARATION = timedelta(days=30)
# What torch says when a rank of the group is gone or does not answer; of its own it has no class for that.
LOST = ("gloo", "nccl", "connection", "timed out", "timeout", "socket", "broken pipe")


def rank() -> int:
    """Number of this process, from 0; rank 0 alone writes files and speaks."""
    return int(os.environ.get("RANK", "0")) if world_size() > 1 else 0


def world_size() -> int:
    """Processes that work together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Whether this is the rank that writes and speaks."""
    return rank() == 0


def device(name: str = "auto") -> torch.device:
    """The device of this rank: of several accelerators in a machine, one each.

    Raises:
        ValueError: the device is unknown, not on this machine, or there are more ranks than devices.
    """
    where = runtime.device(name)
    if world_size() == 1 or where.type == "cpu":
        return where
    number, there = int(os.environ.get("LOCAL_RANK", "0")), torch.accelerator.device_count()
    if where.index is not None or number >= there:
        advice = "give no number to --device, and start at most as many ranks a machine as it has devices"
        raise ValueError(f"rank {rank()} needs a device of its own, and this machine has {there}; {advice}")
    torch.accelerator.set_device_index(number)
    return torch.device(where.type, number)


@contextmanager
def group(where: torch.device, timeout_minutes: float) -> Iterator[None]:
    """While it is entered, the ranks can share; those other than 0 print nothing to standard output.

    Args:
        timeout_minutes: a rank that has waited for another so long ends.
    Raises:
        ValueError: the others cannot be reached, or one has ended or does not answer.
    """
    if world_size() == 1:
        yield
        return
    backend = "cpu:gloo"
    if where.type != "cpu":
        backend += f",{where.type}:{dist.get_default_backend_for_device(where.type)}"
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(sys.stdout if is_first() else nowhere):
            timeout = timedelta(minutes=timeout_minutes)
            store, number, ranks = next(rendezvous("env://", timeout=timeout))
            # torchrun keeps the store when it starts the ranks again, with the addresses of those that are gone.
            store = dist.PrefixStore(f"start {num_restarts()}", store)
            dist.init_process_group(backend, timeout=timeout, world_size=ranks, rank=number, store=store)
            yield
            dist.barrier()  # none ends, and has the others ended by torchrun, before all are done
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and not any(w in str(error).lower() for w in LOST):
            raise
        what = f"another rank has ended or does not answer: {str(error).splitlines()[0]:.200}"
        raise ValueError(f"{what}; its own message says why") from error
    # Only here: after an error it would wait for ranks that are gone.
    dist.destroy_process_group()


def barrier(timeout: timedelta | None = None) -> None:
    """Wait until every rank is here, for as long as the group waits unless it is said."""
    if world_size() > 1:
        dist.barrier(timeout=timeout)


def every(*values: float) -> Tensor:
    """The values of every rank, (ranks, values), float64, on the CPU."""
    mine = torch.tensor(values, dtype=torch.float64)
    if world_size() == 1:
        return mine[None]
    rows = list(torch.empty(world_size(), len(values), dtype=torch.float64))
    dist.all_gather(rows, mine)
    return torch.stack(rows)


def add_up(tensor: Tensor) -> Tensor:
    """The sum over the ranks, in place."""
    if world_size() > 1:
        dist.all_reduce(tensor)
    return tensor


def shared(function: Callable[[list[T]], Sequence[R]], items: Sequence[T]) -> list[R]:
    """Let each rank do its share of the items; the results of all, in the order of the items, on every rank.

    Args:
        function: a result for each item, none depending on the others.
    """
    results = [iter(part) for part in gathered(function(list(items[rank() :: world_size()])))]
    return [next(results[i % world_size()]) for i in range(len(items))]


def gathered(value: T) -> list[T]:
    """The value of every rank, in the order of the ranks."""
    values = [value] * world_size()
    if world_size() > 1:
        dist.all_gather_object(values, value)
    return values


def from_first(value: T) -> T:
    """Rank 0's value, on every rank; its own otherwise counts for nothing."""
    return gathered(value)[0]


def require_same(what: str, value: str) -> None:
    """See that every rank has the same.

    Raises:
        ValueError: this rank's is not rank 0's.
    """
    if value != from_first(value):
        raise ValueError(
            f"other {what} than rank 0; start every machine with the same flags and the same files"
        )


@contextmanager
def first_on_machine_first() -> Iterator[None]:
    """Let one rank of each machine go first, so that the others find its work in the cache."""
    is_leader = os.environ.get("LOCAL_RANK", "0") == "0"
    if not is_leader:
        barrier(PREPARATION)
    yield
    if is_leader:
        barrier(PREPARATION)


def launch() -> str | None:
    """What the starts of one torchrun command have in common; None without torchrun.

    Its run id where there is one (`--rdzv-id`, `--standalone`), otherwise the folder that it makes for each launch.
    """
    run_id = os.environ.get("TORCHELASTIC_RUN_ID")
    if run_id not in (None, "none"):
        return run_id
    log = os.environ.get("TORCHELASTIC_ERROR_FILE")  # …/launch/attempt_0/0/error.json
    return str(Path(log).parents[2]) if log and len(Path(log).parents) > 2 else None


def num_restarts() -> int:
    """How often torchrun has started the ranks again (`--max-restarts`)."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def replicate(model: nn.Module) -> DistributedDataParallel:
    """The model, with rank 0's weights on every rank; a backward pass leaves the mean of the ranks' gradients."""
    return DistributedDataParallel(model)


@contextmanager
def synchronised(model: nn.Module, is_last: bool) -> Iterator[None]:
    """Around forward and backward pass of a micro-batch: the ranks share gradients in the last one of a step only."""
    if isinstance(model, DistributedDataParallel):
        with nullcontext() if is_last else model.no_sync():
            yield
        return
    cast("FSDPModule", model).set_requires_gradient_sync(is_last)
    yield


def shard(model: nn.Module, layers: Iterable[nn.Module], where: torch.device) -> None:
    """Split every weight of rank 0 among the ranks, in place; a layer is put together only while it computes.

    Args:
        layers: parts of the model whose weights are put together at a time; the rest is one more part.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard  # a second that only this pays

    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), src=0)
    mesh = init_device_mesh(where.type, (world_size(),))
    for part in (*layers, model):
        sharded = fully_shard(part, mesh=mesh)
        sharded.set_force_sum_reduction_for_comms(where.type == "cpu")  # gloo has no mean


def whole(tensor: Tensor) -> Tensor:
    """A tensor as it is on a single rank: put together, if it is split; every rank has to ask."""
    if world_size() == 1:
        return tensor
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A whole tensor on the device of a parameter; this rank's share of it, if that is split and it has its shape."""
    tensor = tensor.to(parameter.device)
    if world_size() == 1:
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(parameter, DTensor) or tensor.shape != parameter.shape:
        return tensor
    return distribute_tensor(tensor, parameter.device_mesh, parameter.placements, src_data_rank=None)


def gather_through(folder: Path, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors on rank 0, on the CPU, of which the ranks have a share each; elsewhere nothing.

    Each rank writes its share, at the same time as the others; rank 0 reads. In safetensors: torch's own format for
    this is a pickle, which can run code.

    Args:
        folder: that every rank sees; made for this and removed.
        tensors: those that are not split pass through.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.tensor import DTensor

    split = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, DTensor)}
    if is_first():
        shutil.rmtree(folder, ignore_errors=True)
    barrier()
    try:
        dcp.save(split, storage_writer=dcp.HuggingFaceStorageWriter(str(folder), save_distributed=True))
    except CheckpointException as error:  # on every rank, with what went wrong on any
        raise next(iter(error.failures.values()))[0] from None
    if not is_first():
        return {}
    whole = {name: torch.empty(tensor.shape, dtype=tensor.dtype) for name, tensor in split.items()}
    with warnings.catch_warnings(action="ignore"):  # that rank 0 reads alone is meant
        dcp.load(whole, storage_reader=dcp.HuggingFaceStorageReader(str(folder)), no_dist=True)
    shutil.rmtree(folder)
    return tensors | whole
