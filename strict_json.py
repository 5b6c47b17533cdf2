"""Dataclasses as JSON and back: every field, no other, each of its own type (a dict as it is)."""

import hashlib
import json
import types
from dataclasses import fields, is_dataclass
from typing import Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def to_json(config: object) -> dict[str, Json]:
    """A dataclass as plain JSON values."""
    assert is_dataclass(config) and not isinstance(config, type)
    values = {f.name: getattr(config, f.name) for f in fields(config)}
    return {
        k: to_json(v) if is_dataclass(v) else list(v) if isinstance(v, tuple) else v
        for k, v in values.items()
    }


def from_json(cls: type[T], obj: Json, where: str = "config") -> T:
    """Read back what `to_json` wrote: every field, no other, each of its own type.

    Raises:
        ValueError: names the field and what it should be.
    """
    if not isinstance(obj, dict):
        raise ValueError(f"{where} must be a JSON object, got {obj!r:.40}")
    types_of = get_type_hints(cls)
    if unlike := set(obj) ^ set(types_of):
        raise ValueError(
            f"{where} must have exactly the fields {sorted(types_of)}; differing: {sorted(unlike)}"
        )
    values = {k: _typed(types_of[k], v, f"{where}.{k}") for k, v in obj.items()}
    try:
        return cls(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _typed(hint: object, value: Json, where: str) -> object:
    if is_dataclass(hint):
        return from_json(cast("type[object]", hint), value, where)
    if get_origin(hint) in (list, tuple) and isinstance(value, list):
        items = [_typed(get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if get_origin(hint) is list else tuple(items)
    if get_origin(hint) is dict and isinstance(value, dict):
        return value
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{where} must be {' or '.join(map(str, get_args(hint)))}, got {value!r:.40}")
        return value
    if get_origin(hint) in (types.UnionType, Union):
        if value is None and type(None) in get_args(hint):
            return None
        return _typed(next(a for a in get_args(hint) if a is not type(None)), value, where)
    if hint is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not hint:
        raise ValueError(f"{where} must be {getattr(hint, '__name__', hint)}, got {value!r:.40}")
    return value


def checksum(record: dict[str, Json]) -> str:
    """Of a record, whatever the order of its keys."""
    return hashlib.blake2b(json.dumps(record, sort_keys=True).encode(), digest_size=16).hexdigest()
