"""The pictures of docs/performance.md, from the results alone: start-up, decoding time, training memory."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from peers import NAMES
from report import PICTURES
from results import Run, best, runs

COLOURS = dict(zip(NAMES, ("tab:blue", "tab:orange", "tab:green", "tab:red"), strict=True))


def draw(folder: Path, docs: Path) -> None:
    """Draw those pictures whose results are in a folder."""
    found = runs(folder / "growth.json")
    decoded = [run for run in found if run["measures"] == "decoding"]
    learned = [run for run in found if run["measures"] == "memory"]
    if started := runs(folder / "startup.json"):
        _save(_startup(started), docs / PICTURES["startup"])
    if decoded:
        _save(_decoding(decoded), docs / PICTURES["growth"])
    if learned:
        _save(_memory(learned), docs / PICTURES["memory"])


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _line(axes: Axes, found: list[Run], x: str, y: str, label: str, colour: str, style: str = "-") -> None:
    """A curve through the medians at each x."""
    points = {
        float(value): best([run for run in found if run[x] == value], (), y)[0].middle(y)
        for value in sorted({float(run[x]) for run in found})
    }
    axes.plot(list(points), list(points.values()), style, marker=".", label=label, color=colour)


def _engines(axes: Axes, found: list[Run], x: str, y: str) -> None:
    for engine in dict.fromkeys(str(run["engine"]) for run in found):
        own = [run for run in found if run["engine"] == engine]
        _line(axes, own, x, y, NAMES[engine], COLOURS[engine])
    axes.grid(alpha=0.3)
    axes.legend()


def _decoding(found: list[Run]) -> Figure:
    batches = sorted({float(run["batch"]) for run in found})
    figure = Figure(figsize=(5 * len(batches), 4), layout="constrained")
    panels = figure.subplots(1, len(batches), squeeze=False)[0]
    for axes, batch in zip(panels, batches, strict=True):
        at = [run for run in found if run["batch"] == batch]
        own = [run for run in at if "attention_s" in run]
        if own:
            label = "attention alone, bare"
            _line(axes, own, "length", "attention_s", label, COLOURS["ours"], ":")
        _engines(axes, at, "length", "seconds")
        title = f"greedy, batch {batch:.0f}, one thread"
        axes.set(xlabel="output tokens", ylabel="seconds for a batch", title=title, ylim=(0, None))
    return figure


def _memory(found: list[Run]) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    # Most points share the usual value of what the panel does not vary.
    for axes, x, other in zip(panels, ("length", "vocab_size"), ("vocab_size", "length"), strict=True):
        values = [float(run[other]) for run in found]
        usual = max(set(values), key=lambda v: len({run[x] for run in found if run[other] == v}))
        _engines(axes, [run for run in found if run[other] == usual], x, "peak_mb")
        names = {"length": "tokens of each row", "vocab_size": "subwords"}
        title = f"{found[0]['tokens']:,} target tokens a step, {usual:,.0f} {names[other]}"
        axes.set(xlabel=names[x], ylabel="peak MB of training", title=title, ylim=(0, None))
    return figure


def _startup(found: list[Run]) -> Figure:
    groups = best(found, ("threads",), "seconds", lowest=True)[::-1]
    figure = Figure(figsize=(7, 2.5), layout="constrained")
    axes = figure.subplots()
    names = {**NAMES, "import torch": "import torch, nothing else"}
    seconds = [group.middle("seconds") for group in groups]
    axes.barh(
        [names[g.engine] for g in groups], seconds, color=[COLOURS.get(g.engine, "grey") for g in groups]
    )
    axes.set(xlabel="seconds from the start of the process to the first translated sentence")
    return figure
