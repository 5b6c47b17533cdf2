"""The files of results as report.py, targets.py and curves.py read them: groups of repetitions, medians, tables."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from peers import ROOT

from strict_json import Json

RESULTS = ROOT / "benchmarks" / "results"
Run = dict[str, str | float]
VALID = "valid for this configuration"


class Group(NamedTuple):
    """The repetitions of one setting of an engine."""

    engine: str
    runs: list[Run]

    def middle(self, name: str) -> float:
        """Median of a figure."""
        return median(float(run[name]) for run in self.runs)

    def spread(self, name: str, digits: int) -> str:
        """Median, smallest and largest of a figure."""
        values = [float(run[name]) for run in self.runs]
        figure = f"{median(values):,.{digits}f}"
        return (
            figure if len(values) == 1 else f"{figure} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"
        )


def read(file: Path) -> dict[str, Json]:
    """A file of results; empty if there is none."""
    if not file.is_file():
        return {}
    record = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"{file} holds no results; measure again: python benchmarks/bench.py {file.stem}")
    return record


def runs(file: Path) -> list[Run]:
    """The runs of a file of results, their plain figures alone."""
    rows = read(file).get("runs", [])
    assert isinstance(rows, list)
    return [
        {key: value for key, value in row.items() if isinstance(value, (str, float, int))}
        for row in rows
        if isinstance(row, dict)
    ]


def best(found: Iterable[Run], settings: Sequence[str], figure: str, lowest: bool = False) -> list[Group]:
    """For each engine, its setting with the best median, in the order in which the engines first appear."""
    groups: dict[tuple[str | float | None, ...], Group] = {}
    for run in found:
        key = (run["engine"], *(run.get(name) for name in settings))
        groups.setdefault(key, Group(str(run["engine"]), [])).runs.append(run)
    engines = dict.fromkeys(group.engine for group in groups.values())
    pick = min if lowest else max
    return [
        pick((g for g in groups.values() if g.engine == engine), key=lambda g: g.middle(figure))
        for engine in engines
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, figures to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def search_name(beam: Json) -> str:
    """How a beam is called."""
    return "greedy" if beam == 1 else f"beam {beam}"
