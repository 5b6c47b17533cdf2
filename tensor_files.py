"""Weights by name, and the safetensors files that hold them with their origin and checksum."""

import hashlib
import os
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

import distributed

Shapes = dict[str, tuple[int, ...]]
# Far more than our own files have: a larger one is refused before it is read.
MAX_HEADER = 16 << 20


def of_model(model: nn.Module) -> dict[str, Tensor]:
    """Parameters by name, tied ones once."""
    return {name: p.detach() for name, p in model.named_parameters()}


def copy_into(model: nn.Module, tensors: dict[str, Tensor], source: Path) -> None:
    """Fill a model in place.

    Raises:
        ValueError: a tensor is missing, left over, of another shape or no floating-point one.
    """
    mine = of_model(model)
    shapes, given = ({name: tuple(t.shape) for name, t in of.items()} for of in (mine, tensors))
    check_shapes(shapes, given, source)
    check_types(tensors, source)
    for name, target in mine.items():
        target.copy_(distributed.like(tensors[name], target))


def check_types(tensors: dict[str, Tensor], source: Path) -> None:
    """See that all are floating-point."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{source} does not fit its config.json: {name} holds {tensor.dtype}")


def check_shapes(expected: Shapes, given: Shapes, source: Path) -> None:
    """See that names and shapes are the expected ones."""
    if unlike := sorted(set(expected) ^ set(given)):
        raise ValueError(
            f"{source} does not fit its config.json: {len(unlike)} tensors differ, first {unlike[0]}"
        )
    for name, shape in expected.items():
        if given[name] != shape:
            raise ValueError(
                f"{source} does not fit its config.json: {name} is {given[name]}, expected {shape}"
            )


def pack(tensors: dict[str, Tensor], origin: str) -> tuple[bytes, str]:
    """The content of a safetensors file that carries its stamp, and that: the origin and a checksum."""
    cpu = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    stamp = _stamp(cpu, origin)
    return safetensors.torch.save(cpu, {"stamp": stamp}), stamp


def _stamp(tensors: dict[str, Tensor], origin: str) -> str:
    """Origin and digest as one string: safetensors writes several metadata entries in no fixed order."""
    digest = hashlib.blake2b(origin.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return f"{origin} {digest.hexdigest()}"


def read_shapes(file: Path) -> Shapes:
    """Shapes by name, read without any of the values.

    Raises:
        ValueError: no safetensors file, or more than the memory of this machine.
    """
    size = file.stat().st_size
    if hasattr(os, "sysconf") and size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise ValueError(f"{file} has {size:,} bytes, more than the memory of this machine")
    with file.open("rb") as opened:
        header = int.from_bytes(opened.read(8), "little")
    if header > min(size, MAX_HEADER):
        raise ValueError(f"{file} is not a complete safetensors file: its header would have {header:,} bytes")
    try:
        with safetensors.safe_open(file, "pt") as opened:
            return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OverflowError) as error:
        raise ValueError(f"{file} is not a complete safetensors file: {error}") from None


def read(file: Path) -> tuple[dict[str, Tensor], str]:
    """What `pack` has packed, and its stamp; empty for a file of another program.

    Raises:
        ValueError: the file is damaged.
    """
    read_shapes(file)
    try:
        tensors = safetensors.torch.load_file(file)
        with safetensors.safe_open(file, "pt") as opened:
            stamp = str((opened.metadata() or {}).get("stamp", ""))
    except (safetensors.SafetensorError, KeyError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{file} is not a complete safetensors file: {error}") from None
    if stamp and stamp != _stamp(tensors, stamp.rpartition(" ")[0]):
        raise ValueError(f"{file} is damaged, its checksum differs")
    return tensors, stamp
