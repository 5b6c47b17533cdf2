"""The tables and pictures of docs/performance.md and the short form in README.md, from the results alone.

    python benchmarks/report.py

A table stands between <!-- NAME --> and <!-- /NAME -->; where its results are not there, it says that they are not.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import peers
import targets
from peers import NAMES, ROOT
from results import RESULTS, VALID, Group, Run, best, read, runs, search_name, table

DOCS = ROOT / "docs"
DOCUMENTS = (DOCS / "performance.md", ROOT / "README.md")
PICTURES = {"startup": "startup.png", "growth": "growth.png", "memory": "training-memory.png"}
"""In docs/, drawn by curves.py."""


def threads(group: Group) -> str:
    """The setting that won."""
    run = group.runs[0]
    kept = ", memory kept" if run.get("keeps_memory") else ""
    unit = "worker" if group.engine == "ours" else "thread"
    return f"{run['threads']} {unit}{'s' if run['threads'] != 1 else ''}{kept}"


def training(folder: Path) -> str:
    """Speed, memory and the share of the matrix-product rate, by target tokens a step."""
    found = runs(folder / "training.json")
    rows = []
    for tokens in sorted({float(run["tokens"]) for run in found}):
        at = [run for run in found if run["tokens"] == tokens]
        for group in best(at, ("threads", "keeps_memory"), "tokens_per_s"):
            figures = [f"{group.middle('peak_mb'):,.0f}", f"{group.middle('tokens_per_step'):,.0f}"]
            figures += [f"{group.middle('padding'):.1%}", f"{group.middle('share_of_matrix_products'):.0%}"]
            name = [f"{NAMES[group.engine]}, {tokens:,.0f} tokens a step", threads(group)]
            rows.append([*name, group.spread("tokens_per_s", 0), *figures])
    head = ["", "best setting", "target tokens/s", "peak MB", "real tokens a step", "target padding"]
    return table([*head, "of the matrix-product rate"], rows)


def decoding(folder: Path) -> str:
    """Sentences a second, and peak memory, by cores, batch and beam."""
    # Our runs with a shortlist stand as an engine of their own.
    found = [
        {**run, "engine": "shortlist"} if run.get("shortlist") else run
        for run in runs(folder / "decoding.json")
    ]
    engines = list(dict.fromkeys(str(run["engine"]) for run in found))
    rows = []
    for cores in sorted({float(run["threads"]) for run in found}):
        for batch, beam in dict.fromkeys((run["batch"], run["beam"]) for run in found):
            # One thread may be faster than two, also where there are two cores.
            at = [
                r for r in found if float(r["threads"]) <= cores and (r["batch"], r["beam"]) == (batch, beam)
            ]
            groups = {g.engine: g for g in best(at, ("threads", "layout", "keeps_memory"), "sentences_per_s")}
            name = f"{cores:.0f} core{'s' if cores > 1 else ''}, batch {batch}, {search_name(beam)}"
            there = [groups[engine] for engine in engines if engine in groups]
            cells = [groups[e].spread("sentences_per_s", 1) if e in groups else "–" for e in engines]
            memory = " / ".join(f"{group.middle('peak_mb'):,.0f}" for group in there)
            tokens = " / ".join(f"{group.middle('tokens_per_s'):,.0f}" for group in there)
            rows.append([name, *cells, tokens, memory])
    names = [{**NAMES, "shortlist": "this project, shortlist"}[engine] for engine in engines]
    return table(["sentences/s", *names, "output tokens/s", "peak MB"], rows)


def equality(folder: Path) -> str:
    """How many translations are the same, token by token, and BLEU."""
    record = read(folder / "decoding.json").get("equality", [])
    assert isinstance(record, list)
    rows = []
    for row in record:
        assert isinstance(row, dict)
        name = f"{NAMES[str(row['engine'])]}, {search_name(row['beam'])}"
        rows.append(
            [name, f"{row['equal']:,} of {row['of']:,}", f"{row['our_bleu']:.2f}", f"{row['bleu']:.2f}"]
        )
    return table(["", "same tokens as ours", "our BLEU", "its BLEU"], rows)


def startup(folder: Path) -> str:
    """Seconds to the first sentence."""
    found = runs(folder / "startup.json")
    groups = best(found, ("threads",), "seconds", lowest=True)
    names = {**NAMES, "ours": "`python translate.py`", "import torch": '`python -c "import torch"`'}
    rows = [[names[g.engine], g.spread("seconds", 2)] for g in groups]
    return f"{table(['', 'seconds'], rows)}\n\n{picture('startup', 'seconds to the first sentence')}"


def picture(name: str, what: str) -> str:
    """A picture of docs/, with what it shows in words."""
    return f"![{what}]({PICTURES[name]})"


def growth(folder: Path) -> str:
    """Seconds by output tokens, and peak memory of training by row length and by vocabulary."""
    found = runs(folder / "growth.json")
    decoded = [run for run in found if run["measures"] == "decoding"]
    learned = [run for run in found if run["measures"] == "memory"]
    own = [
        {**run, "engine": "attention", "seconds": run["attention_s"]}
        for run in decoded
        if "attention_s" in run
    ]
    parts = [_by_point("seconds", [*own, *decoded], ("batch", "length"), "batch {}, {} tokens", 2)]
    parts.append(picture("growth", "seconds by output tokens"))
    if learned:
        parts.append(_by_point("peak_mb", learned, ("length", "vocab_size"), "{} tokens, {:,} subwords", 0))
        parts.append(picture("memory", "peak memory by row length and by vocabulary"))
    return "\n\n".join(parts)


def _by_point(figure: str, found: list[Run], names: tuple[str, str], row: str, digits: int) -> str:
    """A row for each pair of settings, a column for each engine."""
    engines = list(dict.fromkeys(str(run["engine"]) for run in found))
    rows = []
    for point in dict.fromkeys(tuple(run[name] for name in names) for run in found):
        at = [run for run in found if tuple(run[name] for name in names) == point]
        cells = {group.engine: group.spread(figure, digits) for group in best(at, (), figure)}
        rows.append([row.format(*point), *(cells.get(engine, "–") for engine in engines)])
    called = {**NAMES, "attention": "attention alone"}
    unit = {"seconds": "seconds for a batch", "peak_mb": "peak MB of training"}[figure]
    return table([unit, *(called[engine] for engine in engines)], rows)


def quality(folder: Path) -> str:
    """BLEU after the same time."""
    rows = []
    for group in best(runs(folder / "quality.json"), (), "bleu"):
        run = group.runs[0]
        score = f"{float(run['bleu']):.2f} ({float(run['low']):.2f}–{float(run['high']):.2f})"
        tokens = f"{float(run['tokens_per_step']) * float(run['steps']) / 1e6:.2f}"
        rows.append([NAMES[group.engine], f"{float(run['minutes']):g}", score, tokens])
    signature = next((str(run["signature"]) for run in runs(folder / "quality.json")), "")
    head = ["", "minutes", "BLEU, beam 5 (95 % interval)", "million target tokens"]
    return f"{table(head, rows)}\n\nsacreBLEU `{signature}`"


def machine(folder: Path, name: str) -> str:
    """Where and when a file of results was measured."""
    record = read(folder / f"{name}.json")
    hardware, versions, load = record["hardware"], record["versions"], record["load_average"]
    assert isinstance(hardware, dict) and isinstance(versions, dict) and isinstance(load, list)
    parts = [f"{hardware['cpu']} ({hardware['simd']})", f"{hardware['cores']} cores"]
    parts += [f"{hardware['memory_gb']} GB", *(f"{package} {v}" for package, v in versions.items())]
    found = runs(folder / f"{name}.json")
    others = max((float(run.get("others", 0.0)) for run in found), default=0.0)
    busy = f"load average {load[0]} before and {load[1]} after"
    busy += f"; other processes took at most {others:.0%} of the cores during a run"
    rounds = _rounds(found)
    often = f"{rounds} repetition{'s' if rounds > 1 else ''}; " if rounds else ""
    return f"{record['date']}, {VALID}: {', '.join(parts)}; {often}{busy}."


def _rounds(found: Sequence[Run]) -> int:
    """How often each setting was measured."""
    return len({run["repetition"] for run in found if "repetition" in run})


def speed(folder: Path) -> str:
    """The short form: training and decoding on two cores, as far as they were measured."""
    trained = [run for run in runs(folder / "training.json") if run["tokens"] == 1_024]
    decoded = [
        run for run in runs(folder / "decoding.json") if run["batch"] == 64 and not run.get("shortlist")
    ]
    columns = {"training, target tokens/s": best(trained, ("threads", "keeps_memory"), "tokens_per_s")}
    for beam, name in ((1, "greedy"), (5, "beam 5")):
        at = [run for run in decoded if run["beam"] == beam]
        columns[f"{name}, sentences/s"] = best(at, ("threads", "layout", "keeps_memory"), "sentences_per_s")
    rows = []
    for engine in NAMES:
        cells = []
        for head, groups in columns.items():
            figure = "tokens_per_s" if head.startswith("training") else "sentences_per_s"
            missing = "–" if groups else "not measured"
            cells.append(next((f"{g.middle(figure):,.0f}" for g in groups if g.engine == engine), missing))
        rows.append([NAMES[engine], *cells])
    if not trained and not decoded:
        return unmeasured("training", "decoding")
    where = {}
    for part in ("training", "decoding"):
        if (folder / f"{part}.json").is_file():
            hardware = read(folder / f"{part}.json")["hardware"]
            assert isinstance(hardware, dict)
            where[part] = f"{hardware['cores']} cores of {hardware['cpu']} ({hardware['simd']})"
    cores = next(iter(where.values()))
    if len(set(where.values())) > 1:
        cores = f"{where['training']} in training and {where['decoding']} in decoding"
    rounds = min(_rounds(found) for found in (trained, decoded) if found)
    often = f"Medians of {rounds} runs" if rounds > 1 else "One run of each"
    return f"{table(['', *columns], rows)}\n\n{often}, on {cores}, float32, {VALID}."


def unmeasured(*parts: str) -> str:
    """What stands in place of a table whose results are not there."""
    commands = " and ".join(f"`make bench PART={part}`" for part in parts)
    return f"Not measured yet: {commands}."


def blocks(folder: Path) -> dict[str, str]:
    """Every table by its marker."""
    made = {}
    makers: dict[str, tuple[Callable[[Path], str], str]] = {
        "training": (training, "training"),
        "quality": (quality, "quality"),
        "equality": (equality, "decoding"),
        "decoding": (decoding, "decoding"),
        "startup": (startup, "startup"),
        "growth": (growth, "growth"),
    }
    for name, (make, file) in makers.items():
        is_there = (folder / f"{file}.json").is_file()
        made[name] = f"{make(folder)}\n\n{machine(folder, file)}" if is_there else unmeasured(file)
    return made | {"targets": targets.made(folder), "speed": speed(folder)}


def render(text: str, made: dict[str, str]) -> str:
    """A document with its tables in place."""
    for name, block in made.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if start in text:
            before, _, rest = text.partition(start)
            text = f"{before}{start}{block}\n{end}{rest.partition(end)[2]}"
    return text


def write(folder: Path = RESULTS) -> None:
    """Regenerate both documents and the pictures."""
    import curves

    made = blocks(folder)
    curves.draw(folder, DOCS)
    for document in DOCUMENTS:
        document.write_text(render(document.read_text(encoding="utf-8"), made), encoding="utf-8")
    print(f"tables from {folder} in {' and '.join(path.name for path in DOCUMENTS)}")


if __name__ == "__main__":
    peers.run_command(write)
