"""What this project wants to reach, beside what the results say: all of it ratios within one run of the benchmark."""

from pathlib import Path
from typing import NamedTuple

from results import Run, best, runs, table

ABOVE_TORCH_S = 0.7
"""Seconds that the first sentence may come after a bare import of torch would have ended."""
SHORT, LONG = 128, 512
"""Output tokens between which decoding may grow in proportion to their number, attention's own share apart."""
NOISE = 1.05
"""Cost of a token at LONG over that at SHORT, to be taken as no growth."""


class Target(NamedTuple):
    """A line of the table."""

    figure: str
    bound: float
    measured: float | None
    """None: the runs that it takes are not there."""
    unit: str = "{:.2f} ×"
    is_upper: bool = False
    """Whether the bound is the most that is allowed; else it is the least."""

    @property
    def row(self) -> list[str]:
        """Figure, target, measured, met."""
        bound = f"{'≤' if self.is_upper else '≥'} {self.unit.format(self.bound)}"
        if self.measured is None:
            return [self.figure, bound, "not measured", "–"]
        is_met = self.measured <= self.bound if self.is_upper else self.measured >= self.bound
        shown = self.unit.format(self.measured)
        if not is_met and shown == self.unit.format(self.bound):  # a digit more shows what it lacks
            shown = self.unit.replace(".2f", ".3f").replace(".1%", ".2%").format(self.measured)
        return [self.figure, bound, shown, "yes" if is_met else "no"]


def made(folder: Path) -> str:
    """The table, from the results in a folder."""
    rows = [target.row for target in [*_training(folder), *_decoding(folder), *_other(folder)]]
    return table(["", "target", "measured", "met"], rows)


def _best(found: list[Run], engine: str, settings: tuple[str, ...], figure: str) -> float | None:
    """An engine's figure at its best setting; None where it was not measured."""
    groups = best((run for run in found if run["engine"] == engine), settings, figure)
    return groups[0].middle(figure) if groups else None


def _ratio(found: list[Run], peer: str, settings: tuple[str, ...], figure: str) -> float | None:
    """Ours over a peer's."""
    ours, theirs = (_best(found, engine, settings, figure) for engine in ("ours", peer))
    return ours / theirs if ours is not None and theirs is not None else None


def _training(folder: Path) -> list[Target]:
    found, settings = runs(folder / "training.json"), ("threads", "keeps_memory")

    def of(tokens: int) -> list[Run]:
        return [run for run in found if run["tokens"] == tokens]

    def over(tokens: int, peer: str) -> float | None:
        return _ratio(of(tokens), peer, settings, "tokens_per_s")

    rows = [
        Target("training, 1,024-token steps, over Hugging Face", 1.25, over(1_024, "huggingface")),
        Target("the same over JoeyNMT", 3.0, over(1_024, "joeynmt")),
        Target("training, 4,096-token steps, over Hugging Face", 1.5, over(4_096, "huggingface")),
    ]
    for tokens in (1_024, 4_096):
        share = _best(of(tokens), "ours", settings, "share_of_matrix_products")
        what = f"training, {tokens:,}-token steps, share of the matrix-product rate"
        rows.append(Target(what, 0.75, share, "{:.1%}"))
    return rows


def _decoding(folder: Path) -> list[Target]:
    measured = runs(folder / "decoding.json")
    found = [run for run in measured if not run.get("shortlist")]

    def over(peer: str, batch: int, beam: int) -> float | None:
        at = [run for run in found if (run["batch"], run["beam"]) == (batch, beam)]
        return _ratio(at, peer, ("threads", "layout", "keeps_memory"), "sentences_per_s")

    greedy = [run for run in measured if (run["batch"], run["beam"]) == (64, 1)]
    with_list = [run for run in greedy if run["engine"] != "ours" or run.get("shortlist")]
    short = _ratio(with_list, "ctranslate2", ("threads", "layout", "keeps_memory"), "sentences_per_s")
    what = "greedy, batch 64, with a vocabulary shortlist"
    scores = [_best(part, "ours", (), "bleu") for part in (with_list, [r for r in greedy if r in found])]
    if scores[0] is not None and scores[1] is not None:
        what += f" (BLEU {scores[0] - scores[1]:+.2f}, at most 0.1 less is wanted)"
    return [
        Target("greedy, batch 64, over CTranslate2", 1.0, over("ctranslate2", 64, 1)),
        Target("the same over Hugging Face", 4.0, over("huggingface", 64, 1)),
        Target(f"{what}, over CTranslate2", 1.4, short),
        Target("beam 5, batch 64, over CTranslate2", 1.0, over("ctranslate2", 64, 5)),
        Target("the same over Hugging Face", 4.0, over("huggingface", 64, 5)),
        Target("greedy, batch 1, over CTranslate2", 0.7, over("ctranslate2", 1, 1)),
        Target("the same over Hugging Face", 3.0, over("huggingface", 1, 1)),
    ]


def _other(folder: Path) -> list[Target]:
    started = runs(folder / "startup.json")
    ours, torch = (_best(started, engine, (), "seconds") for engine in ("ours", "import torch"))
    above = ours - torch if ours is not None and torch is not None else None
    what = (
        'seconds from the shell prompt to one translated sentence, less those of `python -c "import torch"`'
    )
    rows = [Target(what, ABOVE_TORCH_S, above, "{:.2f} s", is_upper=True)]
    grown = [run for run in runs(folder / "growth.json") if run["measures"] == "decoding"]
    for batch in (1, 64):
        at = [run for run in grown if run["batch"] == batch and run["engine"] == "ours"]
        what = f"greedy, batch {batch}: seconds a token at {LONG} tokens over those at {SHORT}, attention's own apart"
        rows.append(Target(what, NOISE, _growth(at), is_upper=True))
    return rows


def _growth(found: list[Run]) -> float | None:
    """Cost of a token at LONG over that at SHORT, the time of attention alone subtracted from both."""
    costs = []
    for length in (SHORT, LONG):
        at = [run for run in found if run["length"] == length]
        seconds, attention = (_best(at, "ours", (), figure) for figure in ("seconds", "attention_s"))
        if seconds is None or attention is None:
            return None
        costs.append((seconds - attention) / length)
    return costs[1] / costs[0]
