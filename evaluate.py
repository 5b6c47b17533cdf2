"""The scoring command: translate a split or read a finished file, score it, compare it with another one."""

import json
import re
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import model_folder
import runtime
from command_line import parse_args
from config import DataConfig, DecodeConfig
from inputs import STATISTICS, FeatureInput, Source
from languages import primary_language
from lines import read_lines
from scores import (
    TRIALS,
    Paired,
    Score,
    check_bootstrap,
    measure,
    paired_of,
    scores_of,
    sentence_chrf,
    without_line_breaks,
)
from strict_json import Json, to_json
from translator import Translator

SPLIT = "test"


@dataclass(frozen=True)
class EvaluateConfig:
    """Evaluation: what is scored, and against what."""

    model: Path | None = None
    """Model folder whose translations are scored; the newest finished one unless given."""
    hypotheses: Path | None = None
    """Score this finished translation, one sentence a line, and translate nothing."""
    references: Path | None = None
    """Reference translations for --hypotheses, one a line, in place of a split of a corpus."""
    against: Path | None = None
    """Second system for the paired significance test: a model folder, or a file like --hypotheses."""
    dataset: str | None = None
    """One corpus, as for train.py; the model's own unless given. Likewise the three options below."""
    dataset_config: str | None = None
    """Configuration of a Hub dataset."""
    src: str | None = None
    """Source language or column."""
    tgt: str | None = None
    """Target language or column."""
    source: Literal["text", "image", "features"] | None = None
    """Kind of source, as for train.py; the model's own unless given."""
    split: str | None = None
    """Split to translate: train, validation, test, or another that the corpus has; test unless given."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    device: str = "auto"
    """cpu, cuda, mps …; auto takes an accelerator when there is one."""
    threads: int | None = None
    """CPU threads; all cores by default."""
    bootstrap: int = 1000
    """Resamples behind the 95 % intervals."""
    worst: int = 5
    """Worst sentences to print, by their own chrF2++."""
    output: Path | None = None
    """Save the translations here, one a line."""
    json: Path | None = None
    """Save scores, settings and every sentence here."""

    def __post_init__(self) -> None:
        check_bootstrap(self.bootstrap)
        if self.worst < 0:
            raise ValueError(f"--worst must be 0 or more, got {self.worst}")
        if self.references is not None and self.hypotheses is None:
            raise ValueError("--references needs --hypotheses, the file that they belong to")
        if self.references is not None and self.against is not None and self.against.is_dir():
            raise ValueError("--against a model needs a corpus to translate; leave --references out")
        of_corpus = {
            "--dataset": self.dataset,
            "--dataset-config": self.dataset_config,
            "--src": self.src,
            "--source": self.source,
            "--split": self.split,
        }
        given = [flag for flag, value in of_corpus.items() if value is not None]
        if self.references is not None and given:
            raise ValueError(
                f"--references takes the place of a corpus; leave it out, or {' and '.join(given)}"
            )


@dataclass(frozen=True)
class System:
    """One system's translations of the set."""

    name: str
    lines: list[str]
    elapsed_s: float | None = None
    """Time to translate, in seconds; None for a file."""
    warnings: dict[str, int] = field(default_factory=dict)
    """Sentences by kind of warning."""

    @property
    def sentences_per_s(self) -> float | None:
        """None for a file."""
        return None if self.elapsed_s is None else len(self.lines) / max(self.elapsed_s, 1e-9)


@dataclass(frozen=True)
class Evaluation:
    """Everything the command found; prints as text, saved as JSON."""

    corpus: str
    left_out: str
    """Rows of the corpus that cannot be scored, by reason."""
    system: System
    other: System | None
    sources: list[str] | None
    references: list[str]
    scores: list[Score]
    other_scores: list[Score]
    paired: list[Paired]
    sentence_scores: list[float]
    settings: dict[str, Json]

    def text(self, worst: int) -> str:
        """At most 100 columns, sentences wrapped."""
        blocks = [self._head(), _score_table(self.scores)]
        blocks.append(
            "\n".join(f"{s.name.split()[0]}|{s.signature}" for s in self.scores if s.name != "exact match")
        )
        if self.other is not None:
            blocks.append(_paired_table(self.other.name, self.paired))
        for system in filter(None, (self.system, self.other)):
            if system.warnings:
                counted = "\n".join(f"{num:>8,}  {kind}" for kind, num in system.warnings.items())
                blocks.append(f"sentences with a warning, {system.name}\n{counted}")
        if worst:
            blocks.append(self._worst(worst))
        return "\n\n".join(blocks) + "\n"

    def as_json(self) -> dict[str, Json]:
        """Plain JSON values."""
        sentences: list[Json] = []
        for i, reference in enumerate(self.references):
            row: dict[str, Json] = {} if self.sources is None else {"source": self.sources[i]}
            row |= {
                "hypothesis": self.system.lines[i],
                "reference": reference,
                "chrF2++": self.sentence_scores[i],
            }
            sentences.append(row | ({} if self.other is None else {"other": self.other.lines[i]}))
        against: Json = None
        if self.other is not None:
            paired: list[Json] = [{**p._asdict(), "difference": p.value - p.other} for p in self.paired]
            against = {**_system_json(self.other, self.other_scores), "trials": TRIALS, "paired": paired}
        system = _system_json(self.system, self.scores)
        return {
            "corpus": self.corpus,
            "left_out": self.left_out,
            **self.settings,
            **system,
            "against": against,
            "sentences": sentences,
        }

    def _head(self) -> str:
        left_out = f", rows left out: {self.left_out}" if self.left_out else ""
        lines = [f"corpus   {self.corpus}: {len(self.references):,} sentences{left_out}"]
        for label, system in (("system", self.system), ("against", self.other)):
            if system is None:
                continue
            speed = ""
            if system.elapsed_s is not None:
                speed = f": {system.elapsed_s:,.1f} s, {system.sentences_per_s:,.1f} sentences/s"
            lines.append(f"{label:<9}{system.name}{speed}")
        return "\n".join(lines)

    def _worst(self, num: int) -> str:
        differing = [
            i for i, ref in enumerate(self.references) if self.system.lines[i].strip() != ref.strip()
        ]
        ranked = sorted(differing, key=lambda i: self.sentence_scores[i])[:num]
        if not ranked:
            return "every sentence equals its reference"
        blocks = [f"sentences that differ from their reference: {len(differing):,}; the worst:"]
        for i in ranked:
            sides = [("translation", self.system.lines[i]), ("reference", self.references[i])]
            if self.sources is not None:
                sides.insert(0, ("source", self.sources[i]))
            blocks.append(
                f"sentence {i + 1:,}, chrF2++ {self.sentence_scores[i]:.1f}\n"
                + "\n".join(_wrapped(*side) for side in sides)
            )
        return "\n\n".join(blocks)


def _score_table(scores: Sequence[Score]) -> str:
    rows = [f"{'metric':<24}{'score':>8}   95 % interval"]
    for s in scores:
        rows.append(f"{_label(s.name):<24}{s.value:>8.2f}   {s.low:.2f} – {s.high:.2f}")
    return "\n".join(rows)


def _paired_table(other: str, paired: Sequence[Paired]) -> str:
    rows = [
        f"against {other}; p by approximate randomization, {TRIALS:,} trials, two-sided",
        f"{'metric':<24}{'score':>8}{'other':>9}{'difference':>13}{'p':>9}",
    ]
    for p in paired:
        verdict = "significant" if p.p_value < 0.05 else "not significant"
        difference = f"{p.value - p.other:>+13.2f}"
        rows.append(
            f"{_label(p.name):<24}{p.value:>8.2f}{p.other:>9.2f}{difference}{p.p_value:>9.4f}   {verdict}"
        )
    return "\n".join(rows)


def _label(name: str) -> str:
    return {"TER": "TER (lower is better)", "exact match": "exact match, %"}.get(name, name)


def _wrapped(label: str, text: str) -> str:
    """A labelled paragraph of at most 100 columns; what a terminal might obey is left out."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return (
        textwrap.fill(
            shown, 100, initial_indent=f"  {label:<13}", subsequent_indent=" " * 15, break_on_hyphens=False
        )
        or f"  {label}"
    )


def _system_json(system: System, scores: Sequence[Score]) -> dict[str, Json]:
    return {
        "system": system.name,
        "elapsed_s": system.elapsed_s,
        "sentences_per_s": system.sentences_per_s,
        "warnings": dict(system.warnings),
        "scores": [s._asdict() for s in scores],
    }


def _wanted(options: EvaluateConfig) -> "_Set":
    """What to score; an empty set is refused."""
    wanted = _corpus_set(options) if options.references is None else _Set.from_file(options.references)
    if not wanted.references:
        raise ValueError(f"{wanted.name} is empty; there is nothing to score")
    return wanted


def _corpus_set(options: EvaluateConfig) -> "_Set":
    """The split to score, of the model's corpus or of what the flags say instead."""
    if options.model is None and options.hypotheses is not None and options.dataset is not None:
        path, own = None, DataConfig()
    else:
        path = options.model or model_folder.newest_run()
        own = model_folder.read_config(path)[0].data
    models = {"--model": path} if path is not None and options.hypotheses is None else {}
    if models and options.source not in (None, own.source):
        raise ValueError(
            f"--source {options.source}, but --model {path} reads {own.source}; give a model that reads"
            f" {options.source}, or leave --source out"
        )
    if options.against is not None and options.against.is_dir():
        models["--against"] = options.against
    data = _overridden(own, options)
    # What does not fit comes to light before the corpus is read, or at least before anything is translated.
    for flag, model in models.items():
        _check_direction(flag, model, data)
    try:
        wanted = _Set.from_corpus(data, options.split or SPLIT)
    except (FileNotFoundError, ValueError) as error:
        # The user of a model need not know where its corpus was.
        if options.dataset is not None or not str(error).startswith("--dataset "):
            raise
        raise FileNotFoundError(
            f"the corpus of {path} cannot be read; name the place where it is now with --dataset ({error})"
        ) from None
    for flag, model in models.items():
        _check_cells(flag, model, wanted, data)
    return wanted


def _overridden(data: DataConfig, options: EvaluateConfig) -> DataConfig:
    """A corpus with what the flags say instead."""
    if options.dataset is not None:
        data = replace(data, dataset=(options.dataset,), dataset_config=None, weights=None, temperature=None)
        # Both at once, since a buffer is refused without streaming.
        data = replace(data, streaming=False, buffer=DataConfig.buffer)
    if options.dataset_config is not None:
        data = replace(data, dataset_config=options.dataset_config)
    # Both at once, since the other direction swaps them.
    data = replace(data, src=options.src or data.src, tgt=options.tgt or data.tgt)
    return replace(data, source=options.source or data.source)


def _check_cells(flag: str, path: Path, wanted: "_Set", data: DataConfig) -> None:
    """Raise a ValueError if a model would get what it does not read; one of pictures draws sentences."""
    config = model_folder.read_config(path)[0]
    own, first = config.data.source, next((s for s in wanted.sources or () if isinstance(s, bytes)), None)
    if first is None:
        return
    if own != data.source:
        raise ValueError(f"{flag} {path} reads {own}, but the set holds pictures; give another model")
    if own == "features":
        from cells import num_channels  # what reads corpora takes half a second to import

        known = len(FeatureInput.of_file(config.source.frame_stride, path / STATISTICS).mean)
        if num_channels(first) != known:  # all rows of a set have the same
            what = f"frames × {known}, but the set holds frames × {num_channels(first)}"
            raise ValueError(f"{flag} {path} reads {what}; give another model")


def _check_direction(flag: str, path: Path, data: DataConfig) -> None:
    """Raise a ValueError if a model reads another kind of source, or other languages, than the set holds."""
    own = model_folder.read_config(path)[0].data
    if own.source != data.source and "features" in (own.source, data.source):
        raise ValueError(
            f"{flag} {path} reads {own.source}, but the set holds {data.source}; give another model"
        )
    sides = ((own.src, data.src), (own.tgt, data.tgt))
    languages = [(primary_language(mine), primary_language(wanted)) for mine, wanted in sides]
    # Names of another kind (eng or english for en) may well be the same language; of one kind, they are not.
    if any(mine != wanted and len(mine) == len(wanted) for mine, wanted in languages):
        raise ValueError(
            f"{flag} {path} translates {own.src} → {own.tgt}, but the set is {data.src} → {data.tgt}; give"
            " --src and --tgt that name its languages, another model, or a file of finished translations"
        )


class _Set(NamedTuple):
    """What is to be scored: sentences in the order of the corpus."""

    name: str
    data: DataConfig | None
    """The corpus; None for a file of references."""
    sources: list[Source] | None
    references: list[str]
    rows: list[int]
    """Number of each sentence in the corpus, from 1."""
    num_rows: int
    """Rows of the corpus, those left out included."""
    left_out: str

    @classmethod
    def from_file(cls, path: Path) -> "_Set":
        references = [without_line_breaks(line.text) for line in read_lines(path)]
        num = len(references)
        return cls(str(path), None, None, references, list(range(1, num + 1)), num, "")

    @classmethod
    def from_corpus(cls, data: DataConfig, split: str) -> "_Set":
        import corpus  # a second of imports that scoring two files need not pay

        rows, report = corpus.read_split(data, split)
        references = [without_line_breaks(text) for text in rows["tgt"]]
        left_out = ", ".join(f"{num:,} {reason}" for reason, (num, _) in report.dropped.items())
        name = f"{data.name}, {split}, {data.src} → {data.tgt}"
        return cls(name, data, list(rows["src"]), references, list(rows["row"]), report.read, left_out)

    def labels(self) -> list[str] | None:
        """The sources as a person can read them: sentences, or the numbers of the rows."""
        if self.sources is None:
            return None
        named = zip(self.sources, self.rows, strict=True)
        return [source if isinstance(source, str) else f"row {row:,}" for source, row in named]

    def system(self, flag: str, path: Path) -> System:
        """A finished translation of this set, or of the whole corpus that it was taken from."""
        lines = [without_line_breaks(line.text) for line in read_lines(path)]
        if len(lines) == self.num_rows > len(self.rows):
            lines = [lines[row - 1] for row in self.rows]
        if len(lines) != len(self.references):
            raise ValueError(
                f"{flag} {path} has {len(lines):,} lines for {len(self.references):,} references; "
                "line n must be the translation of sentence n"
            )
        return System(str(path), lines)


def _translate(path: Path, sources: Sequence[Source], options: EvaluateConfig, workers: int) -> System:
    # A row of a corpus is one unit, however many sentences it holds: so it was in training.
    translator = Translator.load(path, device=options.device, split_sentences=False, workers=workers)
    print(f"translating {len(sources):,} sentences with {path}", file=sys.stderr)
    start = time.perf_counter()
    translations = translator.translate(sources, decode=options.decode)
    elapsed_s = time.perf_counter() - start
    kinds = Counter(kind for t in translations for kind in {_kind(warning) for warning in t.warnings})
    lines = [without_line_breaks(t.text) for t in translations]
    return System(str(path), lines, elapsed_s, dict(kinds.most_common()))


def _kind(warning: str) -> str:
    """A warning without what is particular to one sentence: its excerpt and numbers."""
    return re.sub(r"\d+", "n", warning.split(": ")[0])


def _systems(options: EvaluateConfig, wanted: _Set, workers: int) -> tuple[System, System | None]:
    """The system to score and the one to compare it with, finished files first; saves --output."""
    sources: list[Source] = wanted.sources or []
    system = other = None
    if options.hypotheses is not None:
        system = wanted.system("--hypotheses", options.hypotheses)
    if options.against is not None and not options.against.is_dir():
        other = wanted.system("--against", options.against)
    if system is None:
        assert options.model is not None
        system = _translate(options.model, sources, options, workers)
    if options.output is not None:
        runtime.write_atomic(options.output, "".join(f"{line}\n" for line in system.lines))
    if options.against is not None and other is None:
        other = _translate(options.against, sources, options, workers)
    return system, other


def evaluate(options: EvaluateConfig) -> Evaluation:
    """Translate or read what is to be scored, then score it; saves --output on the way.

    Raises:
        ValueError, FileNotFoundError: files, splits or models that are missing or do not fit together.
    """
    # First what can be wrong: it should not come to light after minutes of translation.
    workers = runtime.start(options.threads)
    runtime.check_writable("--output", options.output)
    runtime.check_writable("--json", options.json)
    if options.model is None and options.hypotheses is None:  # when it is loaded, another may be the newest
        options = replace(options, model=model_folder.newest_run())
    wanted = _wanted(options)
    system, other = _systems(options, wanted, workers)
    data, references = wanted.data, wanted.references
    tgt = options.tgt or ("" if data is None else data.tgt)
    measured = measure(system.lines, references, tgt, options.bootstrap)
    others = None if other is None else measure(other.lines, references, tgt, options.bootstrap)
    translated = options.hypotheses is None or (other is not None and other.elapsed_s is not None)
    return Evaluation(
        corpus=wanted.name,
        left_out=wanted.left_out,
        system=system,
        other=other,
        sources=wanted.labels(),
        references=references,
        scores=scores_of(measured, options.bootstrap),
        other_scores=[] if others is None else scores_of(others, options.bootstrap),
        paired=[] if others is None else paired_of(measured, others),
        sentence_scores=sentence_chrf(measured),
        settings={
            "data": None if data is None else to_json(data) | {"dataset": data.name},
            "split": None if data is None else options.split or SPLIT,
            "decode": to_json(options.decode) if translated else None,
        },
    )


EXAMPLES = """Score translations: BLEU, chrF2++, TER.

examples:
  python evaluate.py                                        the newest model on its own test split
  python evaluate.py --model runs/a --against runs/b        is a better than b by more than chance?
  python evaluate.py --hypotheses out.txt --references ref.txt
"""


def main() -> None:
    """Score and print; see --help."""
    options = parse_args(EvaluateConfig, description=EXAMPLES)
    evaluation = evaluate(options)
    if options.json is not None:
        text = json.dumps(evaluation.as_json(), indent=2, ensure_ascii=False, allow_nan=False)
        runtime.write_atomic(options.json, text + "\n")
    print(evaluation.text(options.worst), end="")


if __name__ == "__main__":
    runtime.run_command(main)
