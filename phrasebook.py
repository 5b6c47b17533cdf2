"""The embedded corpus: English–French sentence pairs of everyday life, drawn from a synchronous grammar."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from command_line import parse_args
from constructions import CONSTRUCTIONS, CONSTRUCTIONS_OF_TOPIC, punctuated
from descriptions import LATER, NOW, THEN, description, state
from lexicon import ADJECTIVES, FIXED, NOUNS, PROPER, VERBS
from phrases import Pairs, finish, pick
from templates import TOPICS, from_template

SPLIT_SIZES: dict[str, int] = {"train": 48_000, "validation": 1_000, "test": 1_000, "combinations": 1_000}
_BUCKETS = {0: "validation", 1: "test"}
_PATIENCE = 100_000
"""Draws in a row without a new sentence after which the grammar counts as exhausted."""
_LARGEST_SHARE = 0.02
"""How much of the combinations one held-out pair may fill."""
_VERBS_BY_TOPIC = {topic: tuple(v for v in VERBS if v.topic == topic) or VERBS for topic in TOPICS}
_WORD = re.compile(r"[\w-]+")


class Sentence(NamedTuple):
    """A sentence pair, its topic and the pairs of lemmas that meet in it."""

    en: str
    fr: str
    topic: str
    pairs: Pairs

    def words(self) -> set[str]:
        """The words of both sides."""
        return {*_WORD.findall(self.en.lower()), *_WORD.findall(self.fr.lower())}


def sentence(rng: Random) -> Sentence:
    """One sentence pair drawn from the grammar."""
    topic = pick(rng, TOPICS)
    form = rng.random()
    if form < 0.25:
        phrase = from_template(rng, topic)
    elif form < 0.32:
        phrase = punctuated(description(rng))
    elif form < 0.335:
        phrase = punctuated(state(rng, when=pick(rng, (NOW, NOW, THEN, LATER))))
    else:
        construction = pick(rng, CONSTRUCTIONS_OF_TOPIC.get(topic, CONSTRUCTIONS))
        phrase = construction(rng, pick(rng, _VERBS_BY_TOPIC[topic]))
    return Sentence(*finish(phrase.en, phrase.fr), topic, phrase.pairs)


# ---- Splits ---------------------------------------------------------------------------------------


@cache
def is_held_out(first: str, second: str) -> bool:
    """True for the pairs of lemmas that only the combinations split may contain: one in 25."""
    return _bucket(f"{first}+{second}", 25) == 0


def _bucket(text: str, count: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % count


@cache
def _forms() -> dict[str, list[tuple[str, str]]]:
    """First word → the English forms that it begins, with a space behind, and their lemmas."""
    entries: list[tuple[str, tuple[str, ...]]] = [
        (f"n:{noun.en}", (noun.en, noun.en_plural)) for noun in NOUNS
    ]
    entries += [(f"a:{adjective.en}", (adjective.en,)) for adjective in ADJECTIVES]
    entries += [(v.lemma, (v.en, v.en_s, v.en_past, v.en_participle, v.en_ing)) for v in VERBS]
    entries += [(f"n:{en}", (en.lower(),)) for kind in PROPER for en, _ in FIXED[kind]]
    found: dict[str, list[tuple[str, str]]] = {}
    for lemma, forms in entries:
        for form in dict.fromkeys(forms):
            first, *rest = _WORD.findall(form)
            found.setdefault(first, []).append((" ".join((first, *rest, "")), lemma))
    return found


def meets_held_out(english: str) -> bool:
    """True if anywhere in the sentence a verb or adjective meets a noun held out from it."""
    found, forms = _WORD.findall(english.lower()), _forms()
    text = " ".join(found) + " "
    lemmas = [lemma for word in found for form, lemma in forms.get(word, ()) if form in text]
    nouns = [lemma for lemma in lemmas if lemma[0] == "n"]
    return any(is_held_out(other, noun) for other in lemmas if other[0] != "n" for noun in nouns)


def held_out_pairs(pair: Sentence) -> list[tuple[str, str]]:
    """The held-out pairs that meet in a sentence, each once."""
    return [met for met in dict.fromkeys(pair.pairs) if is_held_out(*met)]


def is_in_split(pair: Sentence, split: str, seed: int) -> bool:
    """Whether a sentence belongs to a split, by its content alone; some belong to none."""
    meets = any(is_held_out(*met) for met in pair.pairs)
    if split == "combinations" or meets:
        return meets and split == "combinations"
    bucket = _bucket(f"{seed}:{pair.en}", 20)
    return _BUCKETS.get(bucket, "train") == split and not meets_held_out(pair.en)


def sentences(split: str, num_pairs: int | None = None, seed: int = 0) -> Iterator[Sentence]:
    """Like `generate`, with topic and pairs of lemmas."""
    if split not in SPLIT_SIZES:
        raise ValueError(f"no split {split!r}; there are {', '.join(SPLIT_SIZES)}")
    wanted = SPLIT_SIZES[split] if num_pairs is None else num_pairs
    if wanted < 0:
        raise ValueError(f"--num-pairs must be at least 0, got {wanted}")
    known = _training_words(seed) if split != "train" and wanted else None
    rng = Random(f"{split}:{seed}")
    seen: set[str] = set()
    times: Counter[tuple[str, str]] = Counter()
    misses = 0
    while len(seen) < wanted:
        pair = sentence(rng)
        held_out = held_out_pairs(pair) if split == "combinations" else []
        if (
            pair.en in seen
            or not is_in_split(pair, split, seed)
            or (known and not pair.words() <= known)
            or any(times[met] > _LARGEST_SHARE * len(seen) for met in held_out)
        ):
            misses += 1
            if misses > _PATIENCE:
                raise ValueError(
                    f"the grammar gives about {len(seen)} pairs for {split}, not {wanted}; ask for fewer"
                )
            continue
        misses = 0
        seen.add(pair.en)
        times.update(held_out)
        yield pair


@cache
def _training_words(seed: int) -> frozenset[str]:
    """Every word of the default training draw, so that the other splits measure composition alone."""
    return frozenset(word for pair in sentences("train", None, seed) for word in pair.words())


def generate(split: str, num_pairs: int | None = None, seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield distinct sentence pairs {"en": …, "fr": …} of a split.

    Args:
        split: train, validation, test, or combinations (sentences in which words meet that never
            meet elsewhere, though each occurs in training).
        num_pairs: how many; None for the usual size.
        seed: the same seed yields the same pairs.
    Raises:
        ValueError: no such split, or more pairs than the grammar can give.
    """
    for pair in sentences(split, num_pairs, seed):
        yield {"en": pair.en, "fr": pair.fr}


@dataclass(frozen=True)
class PhrasebookConfig:
    """Sentence pairs to print."""

    split: str = "train"
    """train, validation, test or combinations."""
    num_pairs: int | None = None
    """How many; the usual size of the split by default."""
    seed: int = 0
    """The same seed prints the same pairs."""


def main(args: Sequence[str] | None = None) -> None:
    """Print sentence pairs, tab-separated."""
    options = parse_args(PhrasebookConfig, args=args, description=f"{__doc__}")
    for pair in generate(options.split, options.num_pairs, options.seed):
        print(pair["en"], pair["fr"], sep="\t")


if __name__ == "__main__":
    import runtime  # brings torch, which generating does without

    runtime.run_command(main)
