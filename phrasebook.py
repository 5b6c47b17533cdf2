"""The embedded corpus: a synchronous grammar that yields English–French sentence pairs of everyday life."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple, NoReturn, TypeVar

from lexicon import (
    ADJECTIVES,
    ASPIRATED,
    CITIES,
    COUNTRIES,
    DAYS,
    GAMES,
    INSTRUMENTS,
    LANGUAGE_NAMES,
    MONTHS,
    NOUNS,
    NOUNS_BY_KIND,
    SEASONS,
    VERBS,
    Adjective,
    Noun,
    Verb,
    french_forms,
    parse_pairs,
    table_lines,
)

SPLIT_SIZES: dict[str, int] = {"train": 48_000, "validation": 1_000, "test": 1_000, "combinations": 1_000}
LANGUAGES = ("en", "fr")

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]
"""Lemma ids that meet in a phrase: ("a:red", "n:car"), ("v:buy", "n:car")."""


class Phrase(NamedTuple):
    """A piece of a sentence in both languages."""

    en: str
    fr: str
    person: int = 2
    gender: str = "m"
    pairs: Pairs = ()
    clitic: str = ""
    noun: str = ""

    @property
    def is_plural(self) -> bool:
        """True where French agrees in the plural; the polite "vous" does not."""
        return self.person in (3, 5)


class Sentence(NamedTuple):
    """A sentence pair, its topic and the lemma pairs that meet in it."""

    en: str
    fr: str
    topic: str
    pairs: Pairs


def _words(text: str) -> frozenset[str]:
    """The words of a table, as a set."""
    return frozenset(text.split())


def _in_order(text: str) -> list[str]:
    """The words of a table, in order."""
    return text.split()


def pick(rng: Random, items: Sequence[T]) -> T:
    """Like rng.choice, but the same on every Python version."""
    return items[int(rng.random() * len(items))]


# ---- French surface -------------------------------------------------------------------------------

_VOWELS = "aeiouàâéèêëîïôûùœh"
_NOT_ASPIRATED = "(?!" + "|".join(ASPIRATED) + r"|oui\b)"
_ELISION = re.compile(rf"\b([JjNnDdMmTtSsLl]|[Qq]u)[ea] (?={_NOT_ASPIRATED}(?:[{_VOWELS}AEIOUÉ]|y\b))")
_SI_IL = re.compile(r"\b([Ss])i (?=ils?\b)")
_STARTS_WITH_VOWEL = re.compile(f"{_NOT_ASPIRATED}[{_VOWELS}]")


def elide(french: str) -> str:
    """Join "je ai" to "j'ai", "que il" to "qu'il", "si il" to "s'il"; h aspiré stays apart."""
    french = _ELISION.sub(r"\1'", french)
    return _SI_IL.sub(r"\1'", french) if "i il" in french else french


def contract(preposition: str, french: str) -> str:
    """Put "à" or "de" before a noun phrase: "au", "aux", "du", "des"."""
    forms = {"à": ("au ", "aux "), "de": ("du ", "des ")}.get(preposition.rpartition(" ")[2])
    if forms:
        head = preposition.rpartition(" ")[0]
        for article, form in zip(("le ", "les "), forms, strict=True):
            if french.startswith(article):
                return (head + " " if head else "") + form + french[len(article) :]
    return f"{preposition} {french}"


def agree(word: str, gender: str, is_plural: bool) -> str:
    """Give a participle the gender and number of what it agrees with."""
    word += "e" if gender == "f" else ""
    return word + "s" if is_plural and word[-1] != "s" else word


def finish(english: str, french: str) -> tuple[str, str]:
    """Capital first letter, elision, and a space before "?" and "!" in French."""
    french = elide(french)
    return english[0].upper() + english[1:], french[0].upper() + french[1:]


# ---- Numbers, times, dates, prices ----------------------------------------------------------------

_EN_UNITS = _in_order("""zero one two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen
sixteen seventeen eighteen nineteen""")
_EN_TENS = _in_order("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
_FR_UNITS = _in_order("""zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze
quinze seize
dix-sept dix-huit dix-neuf""")
_FR_TENS = _in_order("""_ _ vingt trente quarante cinquante soixante soixante quatre-vingt
quatre-vingt""")


def english_number(n: int) -> str:
    """Words for 0 to 1000, the British way."""
    if n == 1000:
        return "one thousand"
    if n >= 100:
        rest = f" and {english_number(n % 100)}" if n % 100 else ""
        return f"{_EN_UNITS[n // 100]} hundred{rest}"
    if n < 20:
        return _EN_UNITS[n]
    return _EN_TENS[n // 10] + (f"-{_EN_UNITS[n % 10]}" if n % 10 else "")


def french_number(n: int, gender: str = "m") -> str:
    """Words for 0 to 1000 in the traditional spelling: hyphens below a hundred except around "et"."""
    one = "une" if gender == "f" else "un"
    if n == 1000:
        return "mille"
    if n >= 100:
        head = "cent" if n < 200 else f"{_FR_UNITS[n // 100]} cent"
        if n % 100 == 0:
            return head + "s" if n >= 200 else head
        return f"{head} {french_number(n % 100, gender)}"
    if n < 20:
        return one if n == 1 else _FR_UNITS[n]
    tens, unit = _FR_TENS[n // 10], n % 20 if n >= 60 else n % 10
    if n == 80:
        return "quatre-vingts"
    if unit == 0:
        return tens
    if unit in (1, 11) and n < 80:
        return f"{tens} et {one if unit == 1 else 'onze'}"
    return f"{tens}-{one if unit == 1 else _FR_UNITS[unit]}"


def _hours(hour: int) -> str:
    return "une heure" if hour == 1 else f"{_FR_UNITS[hour]} heures"


def clock_time(rng: Random, first: int = 1, last: int = 11) -> Phrase:
    """A time of day from hour `first` to `last`: three o'clock, a quarter to eight, noon."""
    hour = first + int(rng.random() * (last - first + 1))
    following = hour % 12 + 1
    form = int(rng.random() * 8)
    if form == 0 and last - first == 10:
        return pick(rng, (Phrase("noon", "midi"), Phrase("midnight", "minuit")))
    if form <= 3:
        return Phrase(f"{_EN_UNITS[hour]} o'clock", _hours(hour))
    if form == 4:
        return Phrase(f"half past {_EN_UNITS[hour]}", f"{_hours(hour)} et demie")
    if form == 5:
        return Phrase(f"a quarter past {_EN_UNITS[hour]}", f"{_hours(hour)} et quart")
    minutes = pick(rng, (5, 10, 20, 25))
    if following == 12:
        return Phrase(
            f"{english_number(minutes)} past {_EN_UNITS[hour]}", f"{_hours(hour)} {french_number(minutes)}"
        )
    if form == 6:
        return Phrase(f"a quarter to {_EN_UNITS[following]}", f"{_hours(following)} moins le quart")
    return Phrase(
        f"{english_number(minutes)} to {_EN_UNITS[following]}",
        f"{_hours(following)} moins {french_number(minutes)}",
    )


def digital_time(rng: Random) -> Phrase:
    """A time as timetables print it: 17:05, 17 h 05."""
    hour, minutes = 6 + int(rng.random() * 17), pick(rng, range(5, 60, 5))
    return Phrase(f"{hour}:{minutes:02}", f"{hour} h {minutes:02}")


def _ordinal(n: int) -> str:
    suffix = "th" if n in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def date(rng: Random) -> Phrase:
    """A day of the year: 3rd of May, le 3 mai, le 1er mai."""
    day = 1 + int(rng.random() * 28)
    en, fr = pick(rng, _MONTHS)
    return Phrase(f"{en} {_ordinal(day)}", f"{'1er' if day == 1 else day} {fr}")


def bigger_price(rng: Random) -> Phrase:
    """What furniture or a machine costs: hundreds of euros, in words or in digits."""
    n = 100 + int(rng.random() * 901)
    return (
        Phrase(f"{english_number(n)} euros", f"{french_number(n)} euros")
        if rng.random() < 0.7
        else Phrase(f"€{n}", f"{n} €")
    )


def price(rng: Random) -> Phrase:
    """An amount of money, in words or in digits."""
    form = rng.random()
    if form < 0.4:
        euros, cents = 1 + int(rng.random() * 60), pick(rng, (10, 20, 25, 50, 75, 80, 90, 95))
        return Phrase(f"€{euros}.{cents}", f"{euros},{cents} €")
    n = 2 + int(rng.random() * 98)
    return Phrase(f"{english_number(n)} euros", f"{french_number(n)} euros")


# ---- Noun phrases ---------------------------------------------------------------------------------

_MONTHS, _DAYS, _SEASONS = parse_pairs(MONTHS), parse_pairs(DAYS), parse_pairs(SEASONS)
_COUNTRIES, _CITIES, _LANGUAGES = parse_pairs(COUNTRIES), parse_pairs(CITIES), parse_pairs(LANGUAGE_NAMES)
_MASS = _words("food snack_food hot_drink cold_drink staple seasoning subject")
_ALWAYS_PLURAL = frozenset(("pair",))
_EN_POSSESSIVES = ("my", "your", "his", "our", "your", "their")
_FR_POSSESSIVES = (
    ("mon", "ma", "mes"),
    ("ton", "ta", "tes"),
    ("son", "sa", "ses"),
    ("notre", "notre", "nos"),
    ("votre", "votre", "vos"),
    ("leur", "leur", "leurs"),
)
_ADJECTIVES_BY_KIND: dict[str, tuple[Adjective, ...]] = {
    kind: tuple(a for a in ADJECTIVES if kind in a.kinds)
    for kind in {k: 0 for a in ADJECTIVES for k in a.kinds}
}


def _fr_determiner(det: str, rest: str, noun: Noun, is_plural: bool, adjective: Adjective | None) -> str:
    """The French determiner with its space, or apostrophe, for the words that follow."""
    is_feminine, before_vowel = noun.gender == "f", _STARTS_WITH_VOWEL.match(rest) is not None
    if det in ("the", "gen"):
        return "les " if is_plural else "l'" if before_vowel else "la " if is_feminine else "le "
    if det == "a":
        return "une " if is_feminine else "un "
    if det == "this":
        return "ces " if is_plural else "cette " if is_feminine else "cet " if before_vowel else "ce "
    if det in ("no", "none"):
        return "de "
    if det in ("some", "any", "bare"):
        if is_plural:
            return "de " if adjective and adjective.is_before_noun else "des "
        return "de l'" if before_vowel else "de la " if is_feminine else "du "
    owner = _FR_POSSESSIVES[int(det[-1])]
    return owner[2 if is_plural else 1 if is_feminine and not before_vowel else 0] + " "


def _en_determiner(det: str, rest: str, is_plural: bool, owner_gender: str) -> str:
    if det == "a":
        return "an " if rest[0] in "aeiou" and not rest.startswith(("uni", "use", "euro")) else "a "
    if det in ("bare", "gen", "none"):
        return ""
    if det in ("the", "some"):
        return det + " "
    if det in ("no", "any"):
        return "any "
    if det == "this":
        return "these " if is_plural else "this "
    return ("her" if det == "my2" and owner_gender == "f" else _EN_POSSESSIVES[int(det[-1])]) + " "


def noun_phrase(
    noun: Noun, det: str, is_plural: bool = False, adjective: Adjective | None = None, owner_gender: str = "m"
) -> Phrase:
    """Determiner, adjective and noun, agreeing.

    Args:
        det: a, the, this, some, bare (no English determiner), gen (in general), no (after a
            negation), or "my" and the person 0 to 5 of the owner.
        owner_gender: "f" makes the third person "her".
    """
    en, fr = (noun.en_plural, noun.fr_plural) if is_plural else (noun.en, noun.fr)
    pairs: Pairs = ()
    if adjective:
        en = f"{adjective.en} {en}"
        form = adjective.form(noun.gender, is_plural)
        if adjective.is_before_noun and not is_plural and noun.gender == "m" and _STARTS_WITH_VOWEL.match(fr):
            form = adjective.fr[4]
        fr = f"{form} {fr}" if adjective.is_before_noun else f"{fr} {form}"
        pairs = ((f"a:{adjective.en}", f"n:{noun.en}"),)
    return Phrase(
        _en_determiner(det, en, is_plural, owner_gender) + en,
        _fr_determiner(det, fr, noun, is_plural, adjective) + fr,
        5 if is_plural else 2,
        noun.gender,
        pairs,
        noun=f"n:{noun.en}",
    )


# True of things one has, but not what one goes out for: nobody orders cold soup.
_PREDICATIVE = _words("bad broken dirty boring hot cold salty practical useful empty heavy sad")
_SAID_OF = {k: tuple(a for a in v if a.en != "new") for k, v in _ADJECTIVES_BY_KIND.items()}
_ATTRIBUTIVE = {k: tuple(a for a in v if a.en not in _PREDICATIVE) for k, v in _ADJECTIVES_BY_KIND.items()}


def some_noun(
    rng: Random, kind: str, det: str, adjective_rate: float = 0.3, is_plural: bool = False
) -> Phrase:
    """A random noun of a kind, perhaps with an adjective that suits the kind."""
    noun = pick(rng, NOUNS_BY_KIND[kind])
    adjectives = _ATTRIBUTIVE.get(kind)
    adjective = pick(rng, adjectives) if adjectives and rng.random() < adjective_rate else None
    return noun_phrase(noun, det, is_plural or kind in _ALWAYS_PLURAL, adjective)


_NAMES = tuple(
    Phrase(n, n, 2, "m") for n in _in_order("Paul Pierre Thomas Nicolas Lucas Louis Martin Victor Antoine")
)
_NAMES += tuple(
    Phrase(n, n, 2, "f") for n in _in_order("Marie Sophie Julie Claire Alice Anne Camille Louise Emma")
)
_PRONOUNS = (
    Phrase("I", "je", 0),
    Phrase("you", "vous", 4),
    Phrase("he", "il", 2),
    Phrase("she", "elle", 2, "f"),
    Phrase("we", "nous", 3),
    Phrase("they", "ils", 5),
)
_DIRECT = {"I": ("me", "me"), "you": ("you", "vous"), "he": ("him", "le"), "she": ("her", "la")}
_DIRECT |= {"we": ("us", "nous"), "they": ("them", "les")}


def relative(
    rng: Random, owners: Sequence[str], is_plural: bool = False, names: Sequence[str] = ()
) -> Phrase:
    """Somebody's mother or friend; one has but one wife, and shares her with nobody."""
    noun = pick(
        rng, [n for n in NOUNS_BY_KIND["family"] if n.en in names] if names else NOUNS_BY_KIND["family"]
    )
    owner = pick(rng, owners)
    if noun.en in ("wife", "mother", "father"):
        is_plural, owner = False, "my0" if owner == "my3" and noun.en == "wife" else owner
    return noun_phrase(noun, owner, is_plural)


_STRANGERS = NOUNS_BY_KIND["worker"] + NOUNS_BY_KIND["someone"]


def person(rng: Random) -> Phrase:
    """Somebody named: my brother, the doctors, Marie."""
    form = rng.random()
    if form < 0.2:
        return pick(rng, _NAMES)
    is_plural = rng.random() < 0.2
    if form < 0.65:
        return relative(rng, ("my0", "my0", "my4", "my3"), is_plural)
    return noun_phrase(pick(rng, _STRANGERS), "the", is_plural)


def subject(rng: Random) -> Phrase:
    """Who does it: mostly a pronoun."""
    return pick(rng, _PRONOUNS) if rng.random() < 0.6 else person(rng)


def pronoun_object(rng: Random, doer: Phrase, is_indirect: bool) -> Phrase:
    """An object pronoun other than the doer's own; `fr` is empty because it stands before the verb."""
    who = pick(rng, [p for p in _PRONOUNS if p.person != doer.person and {p.person, doer.person} != {0, 3}])
    en, fr = _DIRECT[who.en]
    if is_indirect:
        return Phrase(
            en, "", who.person, who.gender, clitic={"le": "lui", "la": "lui", "les": "leur"}.get(fr, fr)
        )
    return Phrase(en, "", who.person, who.gender, clitic=fr)


# ---- Verb phrases ---------------------------------------------------------------------------------

_BE = ("am", "are", "is", "are", "are", "are")
_NT = "n't"
_NOT = {"am": "am not", "will": "won't", "can": "can't"}
_REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
_AUXILIARIES = {
    name: french_forms(name) for name in ("avoir", "être", "aller", "venir", "pouvoir", "devoir", "vouloir")
}
_WOULD_LIKE = tuple("voudr" + e for e in ("ais", "ais", "ait", "ions", "iez", "aient"))
_ADVERBS = {"often": "souvent", "always": "toujours", "sometimes": "parfois", "rarely": "rarement"}
_POLARITY = {
    "not": "pas",
    "never": "jamais",
    "no longer": "plus",
    "yet": "pas encore",
    "already": "déjà",
} | _ADVERBS
_NEGATIVE = frozenset(("not", "never", "no longer", "yet"))


def _english_tense(verb: Verb, who: int, tense: str) -> tuple[str, str, str]:
    """Auxiliary, what follows it, and the form used when the auxiliary is an unspoken "do"."""
    third = who == 2
    base, have, do = verb.en, "has" if third else "have", "does" if third else "do"
    if tense == "habit":
        return do, base, verb.en_s if third else base
    if tense == "past":
        return "did", base, verb.en_past
    if tense == "used":
        return "did", f"use to {base}", f"used to {base}"
    if tense == "want":
        return do, f"want to {base}", f"{'wants' if third else 'want'} to {base}"
    if tense in ("perfect", "just"):
        return have, ("just " if tense == "just" else "") + verb.en_participle, ""
    if tense in ("prog", "going"):
        return _BE[who], verb.en_ing if tense == "prog" else f"going to {base}", ""
    return ("would", f"like to {base}", "") if tense == "would" else (tense, base, "")


def english_clause(verb: Verb, doer: Phrase, tense: str, polarity: str, is_question: bool) -> str:
    """Subject and verb in English, in question order if asked."""
    aux, rest, plain = _english_tense(verb, doer.person, tense)
    adverb = polarity if polarity in _POLARITY and polarity not in ("not", "yet") else ""
    particle = f" {verb.particle}" if verb.particle else ""
    if polarity in ("not", "yet") and not is_question:
        return f"{doer.en} {_NOT.get(aux, aux + _NT)} {rest}{particle}"
    adverb = adverb + " " if adverb else ""
    if is_question:
        return f"{aux} {doer.en} {adverb}{rest}{particle}"
    if plain:
        return f"{doer.en} {adverb}{plain}{particle}"
    return f"{doer.en} {aux} {adverb}{rest}{particle}"


def _french_tense(verb: Verb, doer: Phrase, tense: str, clitic: str, thing: Phrase) -> tuple[str, str]:
    """The finite verb with its clitic, and what follows it."""
    who = doer.person
    before = clitic + " " if clitic else ""
    simple = {"habit": verb.present, "prog": verb.present, "will": verb.future, "used": verb.imperfect}.get(
        tense
    )
    if simple:
        return before + simple[who], ""
    if tense in ("past", "perfect"):
        participle = verb.participle
        if verb.takes_etre:
            participle = agree(participle, doer.gender, doer.is_plural)
        elif clitic in ("me", "le", "la", "les", "nous", "vous") and not verb.preposition:
            participle = agree(participle, thing.gender, thing.is_plural)
        return before + _AUXILIARIES["être" if verb.takes_etre else "avoir"][0][who], participle
    infinitive = f"{before}{verb.fr}"
    if tense == "would":
        return _WOULD_LIKE[who], infinitive
    modal = {"going": "aller", "just": "venir", "can": "pouvoir", "must": "devoir", "want": "vouloir"}[tense]
    return _AUXILIARIES[modal][0][who], ("de " if tense == "just" else "") + infinitive


def french_clause(verb: Verb, doer: Phrase, tense: str, polarity: str, thing: Phrase) -> str:
    """Subject, clitics, negation, verb and object in French."""
    clitic = _REFLEXIVE[doer.person] if verb.is_reflexive else thing.clitic
    finite, rest = _french_tense(verb, doer, tense, clitic, thing)
    words = [doer.fr, "ne" if polarity in _NEGATIVE else "", finite, _POLARITY.get(polarity, ""), rest]
    words.append(_french_object(verb, thing))
    return " ".join(word for word in words if word)


def _french_object(verb: Verb, thing: Phrase) -> str:
    """What follows the verb: the object behind its preposition, or "visite" once "lui" stands in front."""
    if thing.clitic:
        return f"{verb.preposition.rpartition(' ')[0]}{thing.fr}"
    return contract(verb.preposition, thing.fr) if verb.preposition and thing.fr else thing.fr


_FIXED = {
    "city": _CITIES,
    "language": _LANGUAGES,
    "game": parse_pairs(GAMES),
    "instrument": parse_pairs(INSTRUMENTS),
    "radio": (("the radio", "la radio"),),
    "television": (("television", "la télévision"),),
    "song": (("a song", "une chanson"), ("a beautiful song", "une belle chanson")),
    "crossing": parse_pairs("the street|la rue; the bridge|le pont; the square|la place; the road|la route"),
}
_OWNED = _words(
    "clothes pair belonging machine furniture vehicle stationery book pet farm textile toy dish "
    "mail paper lesson"
)
_PROPER = ("city", "language", "game", "instrument")
_MOVES = {"to": "à", "at": "à", "in": "à", "from": "de"}


def complement(rng: Random, verb: Verb, doer: Phrase, tense: str, polarity: str) -> Phrase:
    """What the verb takes: a thing, a person, a place or nothing."""
    if not verb.complement:
        return Phrase("", "")
    how, _, kind = pick(rng, verb.complement).rpartition(":")
    if kind == "home":
        return Phrase("at home", "à la maison")
    if kind in ("country", "land"):
        return _country(rng, how, kind == "land" or verb.en == "visit")
    if kind in _FIXED:
        en, fr = pick(rng, _FIXED[kind])
        if kind == "song" and polarity in _NEGATIVE:
            en, fr = "any songs", "de chansons"
    elif kind == "place" and how in _MOVES:
        spot = some_noun(rng, "place", "the", 0.15)
        return spot._replace(en=f"{how} {spot.en}", fr=contract(_MOVES[how], spot.fr))
    elif kind == "person":
        if rng.random() < 0.4 and not verb.is_reflexive:
            return pronoun_object(rng, doer, bool(verb.preposition))
        return person(rng)
    else:
        return _thing(rng, kind, how, doer, "own" if verb.en == "have" else tense, polarity)
    if how in _MOVES:
        return Phrase(f"{how} {en}", contract(_MOVES[how], fr), noun=f"n:{en}")
    noun = f"n:{en}" if kind in _PROPER else ""
    if how == "gen":
        fr = f"l'{fr}" if _STARTS_WITH_VOWEL.match(fr) else f"le {fr}"
    return Phrase(en, fr, noun=noun)


def _country(rng: Random, how: str, is_direct: bool) -> Phrase:
    """A country after a preposition, or with its article."""
    en, fr = pick(rng, _COUNTRIES)
    if not is_direct:
        return Phrase(f"{how} {en}", fr, noun=f"n:{en}")
    preposition, _, name = fr.partition(" ")
    gender = "f" if preposition == "en" else "m"
    return Phrase(
        en, _fr_determiner("the", name.lower(), Noun(en, "", name, "", gender, ""), False, None) + name
    )


def _thing(rng: Random, kind: str, how: str, doer: Phrase, tense: str, polarity: str) -> Phrase:
    """A noun phrase whose determiner suits the tense, the polarity and the kind."""
    own = f"my{doer.person}"
    is_plural = rng.random() < {"vegetable": 0.9, "fruit": 0.75}.get(kind, 0.25)
    if how == "gen":
        is_plural, dets = kind not in _MASS, ["gen"]
    elif how == "the":
        is_habit = tense in ("habit", "used")
        dets = ["the", "the", own] if kind in _OWNED else ["the", "the"]
        dets, is_plural = (
            (dets, is_plural or kind not in ("room", "ride")) if is_habit else ([*dets, "this"], is_plural)
        )
    elif kind in _MASS:
        dets = ["bare" if tense in ("habit", "used", "can") else "some"] * 4 + ["the"]
    elif tense in ("habit", "used") and polarity not in _NEGATIVE:
        is_plural, dets = True, ["bare"]
    elif tense == "own":
        dets = ["some"] if is_plural else ["a"]
    else:
        dets = ["some"] if is_plural else ["a", "a", "the", "this"]
    is_plural = (is_plural or kind in _ALWAYS_PLURAL) and kind not in _MASS
    det = pick(rng, dets)
    if kind in _ALWAYS_PLURAL and det == "a":
        det = "some"
    if polarity in _NEGATIVE and det in ("a", "some", "bare"):
        return _negated(rng, kind, is_plural, bare=det == "bare", article=det == "a")
    noun = pick(rng, NOUNS_BY_KIND[kind])
    adjectives = _ATTRIBUTIVE.get(kind, ())
    adjective = pick(rng, adjectives) if adjectives and how != "gen" and rng.random() < 0.3 else None
    return noun_phrase(noun, det, is_plural, adjective, doer.gender)


def _negated(rng: Random, kind: str, is_plural: bool, bare: bool, article: bool) -> Phrase:
    """An object after a negation: "any bread", "a car" → "de pain", "de voiture"."""
    noun = pick(rng, NOUNS_BY_KIND[kind])
    french = noun_phrase(noun, "no", is_plural)
    english = noun_phrase(noun, "a" if article else "bare" if bare else "no", is_plural)
    return french._replace(en=english.en)


# ---- Clauses --------------------------------------------------------------------------------------

_TIMES = {
    "habit": parse_pairs("""every day|tous les jours; every morning|tous les matins
every evening|tous les soirs
every week|toutes les semaines; at weekends|le week-end; every month|tous les mois
every other day|un jour sur deux
every Sunday|tous les dimanches; every Saturday|tous les samedis; in the morning|le matin
in the evening|le soir
every afternoon|tous les après-midi; twice a week|deux fois par semaine; once a month|une fois par mois"""),
    "prog": parse_pairs("now|maintenant; at the moment|en ce moment; at this very moment|en ce moment même"),
    "past": parse_pairs("""yesterday|hier; yesterday evening|hier soir; last week|la semaine dernière
this morning|ce matin; two days ago|il y a deux jours
yesterday morning|hier matin; an hour ago|il y a une heure; last Sunday|dimanche dernier
last Friday|vendredi dernier; the day before yesterday|avant-hier"""),
    "will": parse_pairs("""tomorrow|demain; tomorrow morning|demain matin; next week|la semaine prochaine
tonight|ce soir; in three days|dans trois jours; next Monday|lundi prochain; soon|bientôt
tomorrow evening|demain soir; in an hour|dans une heure
next Thursday|jeudi prochain; the day after tomorrow|après-demain; this afternoon|cet après-midi"""),
    "can": parse_pairs("today|aujourd'hui; tomorrow|demain; this afternoon|cet après-midi; tonight|ce soir"),
    "used": parse_pairs("""every day|tous les jours; every summer|tous les étés; every evening|tous les soirs
every Sunday|tous les dimanches; every week|toutes les semaines; during the holidays|pendant les vacances"""),
}
_LONG_TIMES = {
    "past": parse_pairs("""last month|le mois dernier; last year|l'année dernière; last summer|l'été dernier
three weeks ago|il y a trois semaines; two years ago|il y a deux ans; last winter|l'hiver dernier"""),
    "will": parse_pairs("""next month|le mois prochain; next year|l'année prochaine
next summer|l'été prochain
in two weeks|dans deux semaines; in two months|dans deux mois"""),
}
_TIMES |= {"going": _TIMES["will"], "want": _TIMES["can"], "would": _TIMES["will"], "must": _TIMES["can"]}
_PLACES = {
    "room": parse_pairs("""in the kitchen|dans la cuisine; in the garden|dans le jardin; at home|à la maison
in the living room|dans le salon; on the terrace|sur la terrasse; on the balcony|sur le balcon"""),
    "bed": parse_pairs("""in the bedroom|dans la chambre; in the living room|dans le salon
at home|à la maison
in this room|dans cette pièce; upstairs|à l'étage"""),
    "shop": parse_pairs("""at the market|au marché; at the supermarket|au supermarché
in this shop|dans ce magasin
in town|en ville; at the department store|au grand magasin"""),
    "market": parse_pairs("at the market|au marché; on the internet|sur internet; in town|en ville"),
    "restaurant": parse_pairs("at the restaurant|au restaurant; in the café|dans le café"),
    "park": parse_pairs("""in the park|dans le parc; in the forest|dans la forêt
near the river|près de la rivière
in the garden|dans le jardin; on the beach|sur la plage; in the countryside|à la campagne"""),
    "pool": parse_pairs("in the sea|dans la mer; in the lake|dans le lac; at the swimming pool|à la piscine"),
    "library": parse_pairs("""at the library|à la bibliothèque; at school|à l'école
at university|à l'université
at home|à la maison"""),
    "office": parse_pairs("at the office|au bureau; at home|à la maison"),
    "home": parse_pairs("at home|à la maison; in the living room|dans le salon; with friends|avec des amis"),
    "town": parse_pairs(
        "in town|en ville; in Paris|à Paris; near the station|près de la gare; in Rome|à Rome"
    ),
    "garage": parse_pairs("in the garage|dans le garage; in the workshop|dans l'atelier"),
    "by": parse_pairs(
        "by train|en train; by plane|en avion; by car|en voiture; by boat|en bateau; by bike|à vélo"
    ),
}
_TENSES = {
    "": ("habit",) * 6
    + ("past",) * 6
    + ("will",) * 4
    + ("prog", "going", "can", "must", "want", "would") * 2
    + ("perfect", "perfect", "used", "just"),
    "bare": ("past", "past", "past", "will", "will", "going", "can", "must", "want", "would"),
    "question": (
        "habit",
        "prog",
        "past",
        "past",
        "will",
        "will",
        "going",
        "can",
        "must",
        "want",
        "would",
        "perfect",
    ),
    "asked": ("past", "past", "will", "will", "going", "must", "want"),
}
_LASTING = _words("visit go work study learn teach rent sell travel organise write meet")
_POLARITIES: dict[str, tuple[str, ...]] = {
    "habit": ("", "", "", "", "not", "not", "never", "no longer", *_ADVERBS),
    "prog": ("", "", "", "not"),
    "past": ("", "", "", "not"),
    "perfect": ("already", "never", "yet"),
    "will": ("", "", "", "not", "never"),
    "going": ("", "", "", "not"),
    "can": ("", "", "not", "no longer"),
    "must": ("", "", "not"),
    "want": ("", "", "not", "no longer"),
}
# Nobody "is losing" a key, or signs the contract every day.
_MOMENTARY = _words("find lose forget miss understand break begin finish arrive meet sign choose follow")
_INVOLUNTARY = _words("lose miss forget break receive find see understand arrive meet")
_CHILDHOOD = _words(
    "eat drink play swim run sing dance draw paint read watch walk visit go write wear collect prepare feed"
)


_HOURS = {"morning": (5, 9), "night": (8, 11)}


def _adjunct(rng: Random, verb: Verb, thing: Phrase, doer: Phrase, tense: str) -> tuple[str, str]:
    """Where, with whom or when by the clock."""
    if verb.adjunct in (".", "!") or (
        rng.random() < 0.6 and not (verb.adjunct in _HOURS and tense == "habit")
    ):
        return "", ""
    if verb.adjunct == "with":
        who = person(rng)
        return ("", "") if who.en in (doer.en, thing.en) else (f" with {who.en}", f" avec {who.fr}")
    if verb.adjunct in _HOURS:
        at = clock_time(rng, *_HOURS[verb.adjunct])
        return f" at {at.en}", f" à {at.fr}"
    en, fr = pick(rng, _PLACES[verb.adjunct])
    return f" {en}", f" {fr}"


def _draw_tense(rng: Random, verb: Verb, kind: str) -> str:
    if verb.adjunct == "!":
        return "habit"
    tense = pick(rng, _TENSES.get(kind, _TENSES[""]))
    if tense == "prog" and verb.adjunct in _HOURS:
        return "habit"
    unfit = tense in ("prog", "habit") and (
        verb.en in _MOMENTARY or (tense == "prog" and verb.en in _INVOLUNTARY)
    )
    unfit = unfit or (tense in ("want", "would", "must", "can") and verb.en in _INVOLUNTARY)
    return "past" if unfit or (tense == "used" and verb_id(verb)[2:] not in _CHILDHOOD) else tense


def _draw_polarity(rng: Random, verb: Verb, tense: str, kind: str) -> str:
    if kind in ("question", "asked"):
        return "already" if tense == "perfect" else ""
    if verb.adjunct == "!":
        return pick(rng, ("", "", "not"))
    polarity = pick(rng, _POLARITIES.get(tense, ("",)))
    return "yet" if tense == "perfect" and polarity == "never" and not verb.complement else polarity


def _draw_doer(rng: Random, tense: str, kind: str) -> Phrase:
    """A subject; nobody asks others what "I" or "we" do."""
    doer = subject(rng)
    while kind in ("question", "asked") and doer.person in (0, 3) and tense not in ("can", "must"):
        doer = subject(rng)
    return doer


def clause(
    rng: Random,
    verb: Verb,
    doer: Phrase | None = None,
    tense: str = "",
    polarity: str | None = None,
    kind: str = "",
    thing: Phrase | None = None,
) -> Phrase:
    """A clause without capital or full stop; what is not given is drawn.

    Args:
        kind: "" statement, "bare" statement without a time, "question" yes/no question, "asked"
            what follows a question word.
    """
    tense = tense or _draw_tense(rng, verb, kind)
    doer = doer or _draw_doer(rng, tense, kind)
    polarity = _draw_polarity(rng, verb, tense, kind) if polarity is None else polarity
    thing = complement(rng, verb, doer, tense, polarity) if thing is None else thing
    where_en, where_fr = _adjunct(rng, verb, thing, doer, tense)
    lemma = verb_id(verb)
    if verb.particle == "on" and thing.clitic:
        verb, thing = verb._replace(particle=""), thing._replace(en=f"{thing.en} on")
    en = english_clause(verb, doer, tense, polarity, kind in ("question", "asked"))
    en += (f" {thing.en}" if thing.en else "") + where_en
    fr = french_clause(verb, doer, tense, polarity, thing) + where_fr
    pairs = (*thing.pairs, (lemma, thing.noun)) if thing.noun else thing.pairs
    if polarity == "yet":
        return Phrase(f"{en} yet", fr, pairs=pairs)
    has_clock = verb.adjunct in _HOURS and where_en
    if verb.adjunct == "!" or kind in ("bare", "asked") or has_clock or polarity not in ("", "not"):
        return Phrase(en, fr, pairs=pairs)
    must_have_time = tense == "prog" or (tense == "habit" and polarity == "" and kind in ("", "embedded"))
    if tense in _TIMES and (must_have_time or rng.random() < 0.5) and not (tense == "habit" and polarity):
        is_long = verb_id(verb)[2:] in _LASTING and tense in _LONG_TIMES and rng.random() < 0.5
        when_en, when_fr = pick(rng, (_LONG_TIMES if is_long else _TIMES)[tense])
        if kind == "" and tense != "prog" and rng.random() < 0.15:
            return Phrase(f"{when_en}, {en}", f"{when_fr}, {fr}", pairs=pairs)
        en, fr = f"{en} {when_en}", f"{fr} {when_fr}"
    return Phrase(en, fr, pairs=pairs)


def verb_id(verb: Verb) -> str:
    """Lemma id of a verb with its particle."""
    return f"v:{verb.en} {verb.particle}".strip()


def infinitive(rng: Random, verb: Verb, doer: Phrase) -> Phrase:
    """Verb and complement without subject or tense; the reflexive follows the doer."""
    thing = complement(rng, verb, doer, "can", "")
    where_en, where_fr = _adjunct(rng, verb, thing, doer, "can") if verb.adjunct != "with" else ("", "")
    en = " ".join(word for word in (verb.en, verb.particle, thing.en) if word)
    clitic = _REFLEXIVE[doer.person] if verb.is_reflexive else thing.clitic
    fr = " ".join(word for word in (clitic, verb.fr, _french_object(verb, thing)) if word)
    pairs = (*thing.pairs, (verb_id(verb), thing.noun)) if thing.noun else thing.pairs
    return Phrase(en + where_en, fr + where_fr, pairs=pairs)


_IDIOMS = parse_pairs(
    "hungry|faim; thirsty|soif; cold|froid; hot|chaud; afraid|peur; sleepy|sommeil; right|raison"
)
_REASONS = ("tired", "ill", "busy", "in a hurry")
_STATES = tuple(a for a in ADJECTIVES if "person" in a.kinds)
_CHARACTERS = tuple(a for a in ADJECTIVES if "character" in a.kinds)
_TIRED = tuple(a for a in _STATES if a.en in _REASONS)
_WHEN = {"now": 0, "then": 1, "later": 2}


def _be(doer: Phrase, when: str) -> str:
    if when == "then":
        return "was" if doer.person in (0, 2) else "were"
    return _BE[doer.person] if when == "now" else "will be"


def is_such(doer: Phrase, adjective: Adjective, when: str = "now", is_negative: bool = False) -> Phrase:
    """Noun phrase, "be" and an adjective that agrees."""
    be = _be(doer, when)
    be = _NOT.get(be, be + _NT) if is_negative and when != "later" else be
    etre = _AUXILIARIES["être"][_WHEN[when]][doer.person]
    etre = f"ne {etre} pas" if is_negative and when != "later" else etre
    pairs = (*doer.pairs, (f"a:{adjective.en}", doer.noun)) if doer.noun else doer.pairs
    form = adjective.form(doer.gender, doer.is_plural)
    return Phrase(f"{doer.en} {be} {adjective.en}", f"{doer.fr} {etre} {form}", pairs=pairs)


def state(rng: Random, doer: Phrase | None = None, when: str = "now") -> Phrase:
    """Somebody is tired, hungry, kind; `when` is now, then (was) or later (will be)."""
    doer = doer or subject(rng)
    if rng.random() < 0.35:
        en, fr = pick(rng, _IDIOMS)
        avoir = _AUXILIARIES["avoir"][_WHEN[when]][doer.person]
        return Phrase(f"{doer.en} {_be(doer, when)} {en}", f"{doer.fr} {avoir} {fr}", pairs=doer.pairs)
    adjectives = _STATES if when != "now" or rng.random() < 0.6 else _CHARACTERS
    return is_such(doer, pick(rng, adjectives), when, rng.random() < 0.15)


def excuse(rng: Random, doer: Phrase, is_past: bool) -> Phrase:
    """Why somebody does not do something: too tired, no time, work to do."""
    form, which = rng.random(), int(is_past)
    avoir, devoir = (_AUXILIARIES[name][which][doer.person] for name in ("avoir", "devoir"))
    third = doer.person == 2
    if form < 0.2:
        do = "didn't" if is_past else "doesn't" if third else "don't"
        return Phrase(f"{doer.en} {do} have time", f"{doer.fr} ne {avoir} pas le temps")
    if form < 0.35:
        have_to = "had to" if is_past else "has to" if third else "have to"
        return Phrase(f"{doer.en} {have_to} work", f"{doer.fr} {devoir} travailler")
    if form < 0.5:
        have = "had" if is_past else "has" if third else "have"
        en, fr = pick(rng, _BURDENS)
        return Phrase(f"{doer.en} {have} {en}", f"{doer.fr} {avoir} {fr}")
    if form < 0.6:
        return Phrase(
            f"{doer.en} {_be(doer, 'then' if is_past else 'now')} sleepy", f"{doer.fr} {avoir} sommeil"
        )
    return is_such(doer, pick(rng, _TIRED), "then" if is_past else "now")


_BURDENS = parse_pairs(
    """a headache|mal à la tête; a cold|un rhume; a lot of work|beaucoup de travail
an exam|un examen; a fever|de la fièvre; an appointment|un rendez-vous; no money|besoin d'argent
a sore throat|mal à la gorge; too much work|trop de travail""".replace("; no money|besoin d'argent", "")
)
_MORE = _words(
    "beautiful expensive elegant comfortable practical modern famous interesting boring useful "
    "difficult important"
)
_DESCRIBED = tuple(
    k for k in dict.fromkeys(k for a in ADJECTIVES for k in a.kinds) if k not in ("person", "character")
)


def _described(rng: Random, kind: str, rate: float = 0.25) -> tuple[Phrase, Adjective]:
    """A definite noun phrase of a kind, and an adjective that suits it."""
    is_plural = kind in _ALWAYS_PLURAL or (kind not in _MASS and rng.random() < rate)
    det = (
        "gen"
        if kind == "subject"
        else pick(rng, ("the", "this", "my4", "my0") if kind in _OWNED else ("the", "this"))
    )
    thing = noun_phrase(pick(rng, NOUNS_BY_KIND[kind]), det, is_plural)
    return thing, pick(rng, _SAID_OF[kind])


def description(rng: Random) -> Phrase:
    """A thing is or was such: the soup is delicious, the train isn't cheaper than the bus."""
    kind = pick(rng, _DESCRIBED)
    thing, adjective = _described(rng, kind)
    is_subject = kind == "subject"
    form = rng.random()
    said = is_such(thing, adjective, "then" if form < 0.25 and not is_subject else "now", 0.2 < form < 0.4)
    if adjective.en in _MORE and form > 0.7:
        other = noun_phrase(pick(rng, NOUNS_BY_KIND[kind]), "gen" if is_subject else "the", thing.is_plural)
        if other.noun != thing.noun:
            more_en, more_fr = pick(rng, (("more", "plus"), ("less", "moins")))
            return _insert(said, more_en, more_fr, f" than {other.en}", f" que {other.fr}")
    if form > 0.6 and adjective.en not in _ABSOLUTE:
        return _insert(said, *pick(rng, (*_DEGREES, ("too", "trop")) if adjective.en in _TOO else _DEGREES))
    return said


_DEGREES = (("very", "très"), ("really", "vraiment"), ("quite", "assez"))
_TOO = _words("small big expensive heavy long short difficult easy hot cold salty sweet old")
_ABSOLUTE = _words(
    "red blue green black white grey yellow purple pink brown delicious excellent magnificent "
    "broken secret empty "
    "ancient fat"
)


def _insert(said: Phrase, before_en: str, before_fr: str, after_en: str = "", after_fr: str = "") -> Phrase:
    """Put a degree before the last word of a description, and a comparison after it."""
    en, _, en_last = said.en.rpartition(" ")
    fr, _, fr_last = said.fr.rpartition(" ")
    return said._replace(
        en=f"{en} {before_en} {en_last}{after_en}", fr=f"{fr} {before_fr} {fr_last}{after_fr}"
    )


def _weather_forms(impersonal_en: str, impersonal_fr: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Now, then, later and as yesterday's event, from the present."""
    en = tuple(impersonal_en.replace(" is ", f" {be} ") for be in ("is", "was", "will be", "was", "is"))
    fr = [impersonal_fr]
    for present, then, later in (("fait", "faisait", "fera"), ("y a", "y avait", "y aura")):
        if present in impersonal_fr:
            fr += [impersonal_fr.replace(present, then), impersonal_fr.replace(present, later)]
    return en, (*fr, fr[1], fr[0])


_BAD_WEATHER = (
    (
        ("it is raining", "it was raining", "it will rain", "it rained", "it rains"),
        ("il pleut", "il pleuvait", "il pleuvra", "il a plu", "il pleut"),
    ),
    (
        ("it is snowing", "it was snowing", "it will snow", "it snowed", "it snows"),
        ("il neige", "il neigeait", "il neigera", "il a neigé", "il neige"),
    ),
    _weather_forms("it is cold", "il fait froid"),
    _weather_forms("it is windy", "il y a du vent"),
    _weather_forms("it is foggy", "il y a du brouillard"),
    _weather_forms("it is too hot", "il fait trop chaud"),
)
_GOOD_WEATHER = (
    _weather_forms("it is hot", "il fait chaud"),
    _weather_forms("it is sunny", "il y a du soleil"),
    _weather_forms("the weather is nice", "il fait beau"),
    _weather_forms("it is mild", "il fait doux"),
)


def weather(rng: Random, tense: int = 0, table: Sequence[tuple[Sequence[str], Sequence[str]]] = ()) -> Phrase:
    """The weather now (0), then (1), later (2), as an event (3) or after "if" (4)."""
    en, fr = pick(rng, table or _BAD_WEATHER + _GOOD_WEATHER)
    return Phrase(en[tense], fr[tense])


# ---- Templates ------------------------------------------------------------------------------------

_TEMPLATES = """
greetings: Good morning, {title}. | Bonjour, {title}.
greetings: Good evening, {title}. | Bonsoir, {title}.
greetings: Goodbye, {name}. | Au revoir, {name}.
greetings: Hello, {name}! | Salut, {name} !
greetings: Thank you very much, {title}. | Merci beaucoup, {title}.
greetings: Thank you for {the:belonging}. | Merci pour {the:belonging}.
greetings: How is {yourkin}? | Comment va {yourkin} ?
greetings: My name is {name} and I live in {city}. | Je m'appelle {name} et j'habite à {city}.
greetings: See you {when}. | À {when}.
greetings: Welcome to {city}! | Bienvenue à {city} !
greetings: Happy birthday, {name}! | Bon anniversaire, {name} !
greetings: Are you {name}'s {kinword}? | Êtes-vous {kinword} de {name} ?
greetings: I am pleased to meet you, {title}. | Je suis content de vous rencontrer, {title}.
directions: Where is {the:place}, please? | Où est {the:place}, s'il vous plaît ?
directions: Is there {a:place} near here? | Est-ce qu'il y a {a:place} près d'ici ?
directions: {the:place} is opposite {the:place#2}. | {the:place} est en face {de the:place#2}.
directions: {the:place} is next to {the:place#2}. | {the:place} est à côté {de the:place#2}.
directions: {the:place} is between {the:place#2} and {the:place#3}.
    | {the:place} est entre {the:place#2} et {the:place#3}.
directions: Turn {side} after {the:place}. | Tournez à {side} après {the:place}.
directions: Go straight on as far as {the:place}. | Allez tout droit jusqu'{à the:place}.
directions: Take the {ordinal} street on the {side}. | Prenez la {ordinal} rue à {side}.
directions: How can I get to {the:place}? | Comment est-ce que je peux aller {à the:place} ?
directions: {the:place} is {number} metres from {the:place#2}.
    | {the:place} est à {number} mètres {de the:place#2}.
directions: It is {number} kilometres from {city} to {city#2}.
    | Il y a {number} kilomètres de {city} à {city#2}.
restaurant: I would like {some:food} and {some:cold_drink}, please.
    | Je voudrais {some:food} et {some:cold_drink}, s'il vous plaît.
restaurant: A table for {few}, please. | Une table pour {few}, s'il vous plaît.
restaurant: Would you like {some:cold_drink} with {the:food}?
    | Voulez-vous {some:cold_drink} avec {the:food} ?
restaurant: Is there {any:seasoning} in {the:food}? | Est-ce qu'il y a {any:seasoning} dans {the:food} ?
restaurant: Could you bring me {a:dish}? | Pourriez-vous m'apporter {a:dish} ?
restaurant: There isn't any {none:food} left. | Il ne reste plus {none:food}.
restaurant: We have run out of {none:staple}. | Nous n'avons plus {none:staple}.
restaurant: I will have {the:snack} with {some:cold_drink}. | Je prendrai {the:snack} avec {some:cold_drink}.
shops: How much does {the:clothes} cost? | Combien coûte {the:clothes} ?
shops: {this:clothes} costs {price}. | {this:clothes} coûte {price}.
shops: {the:furniture} costs {bigprice}. | {the:furniture} coûte {bigprice}.
shops: {the:machine} costs {bigprice}. | {the:machine} coûte {bigprice}.
shops: I paid {price} for {the:textile}. | J'ai payé {the:textile} {price}.
shops: Do you have {this:clothes!} in {colour}? | Avez-vous {this:clothes!} en {colour} ?
shops: Give me {few} {fruits}, please. | Donnez-moi {few} {fruits}, s'il vous plaît.
shops: I would like a kilo of {fruits}. | Je voudrais un kilo de {fruits}.
shops: We need {some:staple} and {few} {fruits}. | Il nous faut {some:staple} et {few} {fruits}.
time: What time does {the:place} open? | À quelle heure ouvre {the:place} ?
time: {the:place} opens at {morning} and closes at {evening}.
    | {the:place} ouvre à {morning} et ferme à {evening}.
time: It is {clock}. | Il est {clock}.
work: Our break is at {clock}. | Notre pause est à {clock}.
time: It is already {clock}. | Il est déjà {clock}.
time: It isn't {clock} yet. | Il n'est pas encore {clock}.
time: Today is {day}, {date}. | Aujourd'hui, nous sommes le {day} {date}.
time: {kin}'s birthday is on {date}. | L'anniversaire de {kin} est le {date}.
time: The meeting is on {day} at {morning}. | La réunion a lieu {day} à {morning}.
time: {the:show} starts at {evening}. | {the:show} commence à {evening}.
time: {the:show} lasts {couple} hours. | {the:show} dure {couple} heures.
time: I was born on {date}, {year}. | Je suis né le {date} {year}.
time: {woman} was born in {month} {year}. | {woman} est née en {month} {year}.
travel: {the:ride} to {city} leaves at {digital}. | {the:ride} pour {city} part à {digital}.
travel: {the:ride} from {city} arrives at {digital}. | {the:ride} de {city} arrive à {digital}.
travel: A ticket to {city} costs {price}. | Un billet pour {city} coûte {price}.
travel: I have lost {my:belonging} at {the:place}. | J'ai perdu {my:belonging} {à the:place}.
travel: How long does it take to get to {city}? | Combien de temps faut-il pour aller à {city} ?
travel: We stayed in {city} for {few} days. | Nous sommes restés {few} jours à {city}.
travel: Where can I rent {a:vehicle}? | Où est-ce que je peux louer {a:vehicle} ?
travel: I would like a room for {few} nights. | Je voudrais une chambre pour {few} nuits.
family: {kin} lives in {city}. | {kin} habite à {city}.
family: {child} is {childage} years old. | {child} a {childage} ans.
family: {sibling} is {adultage} years old. | {sibling} a {adultage} ans.
family: {parent} is {middleage} years old. | {parent} a {middleage} ans.
family: {grandparent} is {oldage} years old. | {grandparent} a {oldage} ans.
family: {child} is {childage} and {grandparent} is {oldage}.
    | {child} a {childage} ans et {grandparent} en a {oldage}.
family: I have {few} {siblings}. | J'ai {few} {siblings}.
family: What is {yourkin}'s name? | Comment s'appelle {yourkin} ?
family: {name}'s {kinword} works in {city}. | {kinword} de {name} travaille à {city}.
weather: {weather} in {city}. | {weather} à {city}.
weather: {weatherwas} yesterday in {city}. | Hier, {weatherwas} à {city}.
weather: {weatherwill} tomorrow in {city}. | Demain, {weatherwill} à {city}.
weather: It often rains here {season}. | Il pleut souvent ici {season}.
weather: It never snows in {city} {season}. | Il ne neige jamais à {city} {season}.
weather: It is {degrees} degrees in {city} today. | Il fait {degrees} degrés à {city} aujourd'hui.
weather: Take {my4:clothes}, {badweather}. | Prenez {my4:clothes}, {badweather}.
health: My {ache} hurts. | J'ai mal {à ache}.
health: Does your {ache} hurt? | Avez-vous mal {à ache} ?
health: {kin}'s {ache} hurts. | {kin} a mal {à ache}.
health: I have broken my {limb}. | Je me suis cassé {limb}.
health: You must take {this:remedy} {three} times a day.
    | Vous devez prendre {this:remedy} {three} fois par jour.
health: Take {this:remedy} twice a day. | Prenez {this:remedy} deux fois par jour.
family: {woman}'s husband lives in {city}. | Le mari de {woman} habite à {city}.
health: I have an appointment with {adviser} at {morning}. | J'ai rendez-vous avec {adviser} à {morning}.
work: I have worked here for {few} years. | Je travaille ici depuis {few} ans.
work: {the:paper} is on {my4:furniture}. | {the:paper} est sur {my4:furniture}.
work: Can you send me {the:paper} before {day}? | Pouvez-vous m'envoyer {the:paper} avant {day} ?
school: Open {my4:book} at page {page}. | Ouvrez {my4:book} à la page {page}.
school: There are {number} pupils in this school. | Il y a {number} élèves dans cette école.
home: Please lend me {my4:belonging}. | Prêtez-moi {my4:belonging}, s'il vous plaît.
shops: Please show me {this:clothes}. | Montrez-moi {this:clothes}, s'il vous plaît.
shops: Do you have {any:snack_food}? | Avez-vous {any:snack_food} ?
restaurant: The bill, please. | L'addition, s'il vous plaît.
restaurant: Please bring us {some:cold_drink}. | Apportez-nous {some:cold_drink}, s'il vous plaît.
school: Please explain {the:task} to me. | Expliquez-moi {the:task}, s'il vous plaît.
school: I don't understand {this:query}. | Je ne comprends pas {this:query}.
work: Please send me {the:paper} before {evening}. | Envoyez-moi {the:paper} avant {evening}, s'il vous plaît.
directions: Can you show me {the:place} on the map? | Pouvez-vous me montrer {the:place} sur le plan ?
weather: The temperature will be {degrees} degrees tomorrow. | La température sera de {degrees} degrés demain.
weather: What is the weather like in {city}? | Quel temps fait-il à {city} ?
travel: The plane took off at {digital} and landed at {digital#2}.
    | L'avion a décollé à {digital} et a atterri à {digital#2}.
home: Where is {my:belonging}? | Où est {my:belonging} ?
home: {my:belonging} is on {the:furniture}. | {my:belonging} est sur {the:furniture}.
home: {the:pet} is sleeping under {the:furniture}. | {the:pet} dort sous {the:furniture}.
home: There is {a:pet} in {the:room}. | Il y a {a:pet} dans {the:room}.
home: There is {a:furniture} in {the:room}. | Il y a {a:furniture} dans {the:room}.
home: There are {few} {dishes} on {surface}. | Il y a {few} {dishes} sur {surface}.
home: Don't forget to close {the:opening}. | N'oubliez pas de fermer {the:opening}.
shops: A kilo of {fruits} costs {price}. | Un kilo de {fruits} coûte {price}.
shops: Do you sell {snacks}? | Est-ce que vous vendez des {snacks} ?
shops: I have just bought {few} {stationeries}. | Je viens d'acheter {few} {stationeries}.
greetings: Give my regards to {yourkin}. | Transmettez mes amitiés {à yourkin}.
greetings: Do you know {yourkin}'s friend? | Connaissez-vous l'ami {de yourkin} ?
greetings: Congratulations on {the:event}! | Félicitations pour {the:event} !
directions: You must change trains in {city}. | Vous devez changer de train à {city}.
school: {the:lesson} is on page {page}. | {the:lesson} est à la page {page}.
home: {the:belonging} is in the drawer of {the:furniture}.
    | {the:belonging} est dans le tiroir {de the:furniture}.
work: {the:event} with {adviser} will take place on {day}. | {the:event} avec {adviser} aura lieu {day}.
work: {worker} earns {bigprice} a week. | {worker} gagne {bigprice} par semaine.
family: {kin} has been living in {city} for {few} years. | {kin} habite à {city} depuis {few} ans.
travel: {the:ride} is {few} minutes late. | {the:ride} a {few} minutes de retard.
travel: Two tickets to {city}, please. | Deux billets pour {city}, s'il vous plaît.
"""
_COLOURS = parse_pairs(
    "blue|bleu; red|rouge; green|vert; black|noir; white|blanc; grey|gris; yellow|jaune; pink|rose"
)
_ORDINALS = parse_pairs("""first|première; second|deuxième; third|troisième; fourth|quatrième; next|prochaine
last|dernière""")
_TITLES = parse_pairs("""sir|monsieur; madam|madame; doctor|docteur; Mr Martin|monsieur Martin
everybody|tout le monde
Mrs Martin|madame Martin; ladies and gentlemen|mesdames et messieurs; miss|mademoiselle; my friend|mon ami
my dear friends|mes chers amis; children|les enfants; Mr Bernard|monsieur Bernard
Mrs Laurent|madame Laurent""")
_LATER = parse_pairs("""tomorrow|demain; tonight|ce soir; next week|la semaine prochaine; soon|bientôt
next year|l'année prochaine; tomorrow morning|demain matin; on Monday|lundi; on Friday|vendredi
on Sunday|dimanche""")
_SIBLINGS = parse_pairs(
    "brothers|frères; sisters|sœurs; cousins|cousins; children|enfants; uncles|oncles; aunts|tantes"
)
_SURFACES = parse_pairs("the table|la table; the desk|le bureau; the shelf|l'étagère; the tray|le plateau")
_LIMBS = _words("leg arm foot wrist ankle finger shoulder nose")


def _of(table: tuple[tuple[str, str], ...]) -> Callable[[Random], Phrase]:
    return lambda rng: Phrase(*pick(rng, table))


def _counted(low: int, high: int, in_words: float) -> Callable[[Random], Phrase]:
    def draw(rng: Random) -> Phrase:
        n = low + int(rng.random() * (high - low + 1))
        return (
            Phrase(english_number(n), french_number(n)) if rng.random() < in_words else Phrase(str(n), str(n))
        )

    return draw


def _kin(owners: Sequence[str], names: str = "") -> Callable[[Random], Phrase]:
    return lambda rng: relative(rng, owners, names=names.split())


def _bare_plural(*kinds: str) -> Callable[[Random], Phrase]:
    nouns = [noun for kind in kinds for noun in NOUNS_BY_KIND[kind]]

    def draw(rng: Random) -> Phrase:
        noun = pick(rng, nouns)
        return Phrase(noun.en_plural, noun.fr_plural, noun=f"n:{noun.en}")

    return draw


def _definite_french(nouns: Sequence[Noun]) -> Callable[[Random], Phrase]:
    """Bare in English, with the article in French: (my) leg, la jambe."""

    def draw(rng: Random) -> Phrase:
        noun = pick(rng, nouns)
        return Phrase(noun.en, noun_phrase(noun, "the").fr)

    return draw


_ADVISERS = tuple(
    n
    for n in NOUNS_BY_KIND["worker"]
    if n.en
    in _in_order("doctor dentist lawyer hairdresser teacher architect headmaster headmistress secretary")
)
_SLOTS: dict[str, Callable[[Random], Phrase]] = {
    "name": lambda rng: pick(rng, _NAMES),
    "woman": lambda rng: pick(rng, [n for n in _NAMES if n.gender == "f"]),
    "title": _of(_TITLES),
    "when": _of(_LATER),
    "kin": _kin(("my0", "my0", "my4", "my3")),
    "yourkin": _kin(("my4",)),
    "kinword": _definite_french([n for n in NOUNS_BY_KIND["family"] if n.gender == "m"]),
    "city": _of(_CITIES),
    "side": _of((("left", "gauche"), ("right", "droite"))),
    "ordinal": _of(_ORDINALS),
    "number": _counted(2, 1000, 0.6),
    "few": _counted(2, 12, 1.0),
    "child": _kin(("my0", "my4", "my3"), "son daughter nephew niece"),
    "childage": _counted(2, 25, 0.7),
    "sibling": _kin(("my0", "my4"), "brother sister cousin wife friend"),
    "adultage": _counted(18, 45, 0.7),
    "parent": _kin(("my0", "my4", "my3"), "mother father uncle aunt neighbour"),
    "middleage": _counted(40, 69, 0.7),
    "grandparent": _kin(("my0", "my4", "my3"), "grandmother grandfather"),
    "oldage": _counted(66, 99, 0.7),
    "couple": _counted(2, 4, 1.0),
    "three": _counted(3, 6, 1.0),
    "morning": lambda rng: clock_time(rng, 6, 10),
    "evening": lambda rng: clock_time(rng, 4, 8),
    "adviser": lambda rng: noun_phrase(pick(rng, _ADVISERS), "the"),
    "page": _counted(2, 99, 0.0),
    "degrees": _counted(2, 35, 0.5),
    "year": _counted(1950, 2015, 0.0),
    "price": price,
    "bigprice": bigger_price,
    "clock": clock_time,
    "digital": digital_time,
    "date": date,
    "day": _of(_DAYS),
    "month": _of(_MONTHS),
    "season": _of(_SEASONS),
    "colour": _of(_COLOURS),
    "siblings": _of(_SIBLINGS),
    "surface": _of(_SURFACES),
    "fruits": _bare_plural("fruit", "vegetable"),
    "snacks": _bare_plural("snack", "cake"),
    "dishes": _bare_plural("dish", "cutlery"),
    "stationeries": _bare_plural("stationery"),
    "ache": _definite_french(NOUNS_BY_KIND["body"]),
    "limb": _definite_french([n for n in NOUNS_BY_KIND["body"] if n.en in _LIMBS]),
    "worker": lambda rng: noun_phrase(pick(rng, NOUNS_BY_KIND["worker"]), "the"),
    "weather": weather,
    "weatherwas": lambda rng: weather(rng, 3),
    "weatherwill": lambda rng: weather(rng, 2),
    "badweather": lambda rng: weather(rng, 0, _BAD_WEATHER[:4]),
}
_SLOT = re.compile(r"\{(?:(à|de) )?([^}]+)\}")


@cache
def _templates(topic: str) -> tuple[tuple[str, str], ...]:
    lines = [line.partition(": ") for line in table_lines(_TEMPLATES)]
    return parse_pairs("\n".join(text.replace(" | ", "|") for name, _, text in lines if name == topic))


def from_template(rng: Random, topic: str) -> Phrase:
    """Fill a template's slots, each drawn once for both languages."""
    en, fr = pick(rng, _templates(topic))
    filled: dict[str, Phrase] = {}
    for _, key in _SLOT.findall(en):
        phrase = _fill(rng, key)
        while any(phrase.en == other.en for other in filled.values()):
            phrase = _fill(rng, key)
        filled[key] = phrase
    english = _SLOT.sub(lambda m: filled[m[2]].en, en)
    french = _SLOT.sub(lambda m: contract(m[1], filled[m[2]].fr) if m[1] else filled[m[2]].fr, fr)
    return Phrase(english, french, pairs=tuple(pair for phrase in filled.values() for pair in phrase.pairs))


def _fill(rng: Random, key: str) -> Phrase:
    """A slot's phrase: {city}, or {determiner:kind}, with #2 and so on for a second of the same."""
    name = key.partition("#")[0]
    if name in _SLOTS:
        return _SLOTS[name](rng)
    det, _, kind = name.partition(":")
    return some_noun(
        rng, kind.rstrip("!"), "my0" if det == "my" else det, 0.0 if det == "none" or kind[-1] == "!" else 0.3
    )


# ---- Whole sentences ------------------------------------------------------------------------------


def _with_mark(phrase: Phrase, mark: str) -> Phrase:
    """End a sentence; French sets "?" and "!" off with a space."""
    return phrase._replace(en=phrase.en + mark, fr=phrase.fr + (mark if mark == "." else " " + mark))


def _join(first: Phrase, en: str, fr: str, second: Phrase) -> Phrase:
    return Phrase(
        f"{first.en}{en}{second.en}", f"{first.fr}{fr}{second.fr}", pairs=(*first.pairs, *second.pairs)
    )


def _statement(rng: Random, verb: Verb) -> Phrase:
    return _with_mark(clause(rng, verb), ".")


def _yes_no_question(rng: Random, verb: Verb) -> Phrase:
    asked = clause(rng, verb, kind="question")
    return _with_mark(asked._replace(fr=f"est-ce que {asked.fr}"), "?")


_ASKING = parse_pairs("when|quand; why|pourquoi")
_WHERE = _words("buy find lose meet rent sell study learn hide photograph eat work")


def _question(rng: Random, verb: Verb) -> Phrase:
    """Who, what, when, where, why."""
    form = rng.random()
    if form < 0.3:
        polarity = "" if verb.adjunct != "!" else pick(rng, ("", "not"))
        return _with_mark(clause(rng, verb, Phrase("who", "qui"), polarity=polarity, kind="bare"), "?")
    if form < 0.55 and verb.complement and not verb.preposition and not verb.takes_etre:
        kinds = {c.rpartition(":")[2] for c in verb.complement}
        asks_person = kinds == {"person"}
        if asks_person or kinds <= _THINGS:
            en, fr = ("who", "qui est-ce que") if asks_person else ("what", "qu'est-ce que")
            asked = clause(rng, verb, kind="asked", thing=Phrase("", ""))
            return _with_mark(asked._replace(en=f"{en} {asked.en}", fr=f"{fr} {asked.fr}"), "?")
    en, fr = ("where", "où") if verb.en in _WHERE and form > 0.75 else pick(rng, _ASKING)
    place_free = verb._replace(adjunct=".") if en == "where" or verb.adjunct in _HOURS else verb
    if verb.adjunct == "!" or (en == "where" and verb.en == "work"):
        return _yes_no_question(rng, verb)
    asked = clause(rng, place_free, kind="asked")
    return _with_mark(asked._replace(en=f"{en} {asked.en}", fr=f"{fr} est-ce que {asked.fr}"), "?")


_THINGS = frozenset(NOUNS_BY_KIND) - {"subject", "family", "worker", "someone"}


def _command(rng: Random, verb: Verb) -> Phrase:
    """An order, a prohibition or a proposal: Please close the door. Let's eat!"""
    form = rng.random()
    is_negative = form < 0.25
    we = form > 0.7
    you = _PRONOUNS[4] if we else _PRONOUNS[1]
    thing = complement(rng, verb, you, "past", "not" if is_negative else "")
    if verb.adjunct == "!" or verb.is_reflexive or thing.clitic or verb.en in _INVOLUNTARY:
        return _statement(rng, verb)
    pairs = (*thing.pairs, (verb_id(verb), thing.noun)) if thing.noun else thing.pairs
    en = " ".join(word for word in (verb.en, verb.particle, thing.en) if word)
    fr = (
        f"{verb.present[3 if we else 4]}{' pas' if is_negative else ''} {_french_object(verb, thing)}".strip()
    )
    if we:
        return Phrase(f"let's {en}!", f"{fr} !", pairs=pairs)
    if is_negative:
        return Phrase(f"don't {en}.", f"ne {fr}.", pairs=pairs)
    return Phrase(f"please {en}.", f"{fr}, s'il vous plaît.", pairs=pairs)


_BELIEFS = parse_pairs("""I think that|je pense que; I know that|je sais que; I hope that|j'espère que
he says that|il dit que; she says that|elle dit que; they say that|ils disent que
I am sure that|je suis sûr que
we know that|nous savons que; it is true that|c'est vrai que; everybody knows that|tout le monde sait que
he thinks that|il pense que; she thinks that|elle pense que; we hope that|nous espérons que""")


_INEXCUSABLE = ("!", "bed", "morning", "night")


def _because(rng: Random, verb: Verb) -> Phrase:
    """Something that somebody does not do, and why."""
    doer = subject(rng)
    if verb.adjunct in _INEXCUSABLE or verb.en in _INVOLUNTARY or verb.en == "work":
        return _statement(rng, verb)
    tense = pick(rng, ("past", "can", "want", "will", "going"))
    first = clause(rng, verb, doer, tense, "not", kind="bare")
    if verb_id(verb) in _OUTDOORS and rng.random() < 0.4:
        second = weather(rng, int(tense == "past"), _BAD_WEATHER)
    else:
        second = excuse(rng, _pronoun_for(doer), tense == "past")
    return _with_mark(_join(first, " because ", " parce que ", second), ".")


_OUTDOORS = (
    "v:swim",
    "v:run",
    "v:walk",
    "v:go",
    "v:go for a walk",
    "v:visit",
    "v:play",
    "v:cross",
    "v:travel",
)


def _hungry(rng: Random, verb: Verb) -> Phrase:
    """Something that somebody eats, drinks or does, and the need behind it."""
    need = {"drink": ("thirsty", "soif"), "eat": ("hungry", "faim"), "order": ("hungry", "faim")}.get(verb.en)
    need = need or {
        "sleep": ("sleepy", "sommeil"),
        "go": ("sleepy", "sommeil") if verb.is_reflexive else None,
    }.get(verb.en)
    doer = subject(rng)
    if need is None or (verb.en == "order" and "cold_drink" in verb.complement and rng.random() < 0.5):
        return _contrast(rng, verb)
    tense = pick(rng, ("past", "going", "want", "would"))
    first, again = clause(rng, verb, doer, tense, "", kind="bare"), _pronoun_for(doer)
    avoir = _AUXILIARIES["avoir"][int(tense == "past")][doer.person]
    second = Phrase(
        f"{again.en} {_be(again, 'then' if tense == 'past' else 'now')} {need[0]}",
        f"{again.fr} {avoir} {need[1]}",
    )
    return _with_mark(_join(first, " because ", " parce que ", second), ".")


def _pronoun_for(doer: Phrase) -> Phrase:
    """The pronoun that takes up a subject; feminine plurals keep their gender in French."""
    if doer.person == 2:
        return _PRONOUNS[3] if doer.gender == "f" else _PRONOUNS[2]
    if doer.person == 5 and doer.gender == "f":
        return Phrase("they", "elles", 5, "f")
    return next(p for p in _PRONOUNS if p.person == doer.person)


def _giving(rng: Random, verb: Verb) -> Phrase:
    """He lent me his bike; they will show the photo to my sister."""
    verb, doer = pick(rng, _GIVING), subject(rng)
    tense = pick(rng, ("past", "past", "will", "going", "can", "want", "would", "must", "just"))
    gift = complement(rng, verb, doer, tense, "")
    if rng.random() < 0.6:
        whom = pronoun_object(rng, doer, True)
        while whom.clitic == "lui":
            whom = pronoun_object(rng, doer, True)
        gift = gift._replace(en=f"{whom.en} {gift.en}", person=2, gender="m", clitic=whom.clitic)
    else:
        whom = person(rng)
        gift = gift._replace(en=f"{gift.en} to {whom.en}", fr=f"{gift.fr} {contract('à', whom.fr)}")
    return _with_mark(clause(rng, verb, doer, tense, "", thing=gift), ".")


_GIVING = tuple(v for v in VERBS if v.topic == "giving")


def _childhood(rng: Random, verb: Verb) -> Phrase:
    """When I was a child, I used to play chess."""
    doer = pick(rng, _PRONOUNS)
    if verb_id(verb)[2:] not in _CHILDHOOD:
        verb = pick(rng, _CHILDHOOD_VERBS)
    young = Phrase(
        f"when {doer.en} {_be(doer, 'then')} {'children' if doer.is_plural else 'a child'}",
        f"quand {doer.fr} {_AUXILIARIES['être'][1][doer.person]} {'enfants' if doer.is_plural else 'enfant'}",
    )
    return _with_mark(_join(young, ", ", ", ", clause(rng, verb, doer, "used", "", "bare")), ".")


_CHILDHOOD_VERBS = tuple(v for v in VERBS if verb_id(v)[2:] in _CHILDHOOD)
_OUTINGS = tuple(
    v
    for v in VERBS
    if verb_id(v) in (*_OUTDOORS, "v:sleep", "v:rest", "v:wear", "v:clean", "v:watch", "v:stay", "v:read")
)


def _condition(rng: Random, verb: Verb) -> Phrase:
    """If it is sunny tomorrow, we will go to the beach."""
    sky = weather(rng, 4)
    sky = Phrase(f"if {sky.en} tomorrow", f"si {sky.fr} demain")
    second = clause(rng, pick(rng, _OUTINGS), tense="will", polarity=pick(rng, ("", "", "not")), kind="bare")
    return _with_mark(_join(sky, ", ", ", ", second), ".")


def _arrival(rng: Random, verb: Verb) -> Phrase:
    """When he arrives at the station, we will take the train: French has the future in both."""
    first, doer = pick(rng, _ARRIVALS), subject(rng)
    if verb.adjunct in ("!", "morning") or verb.en in _INVOLUNTARY:
        return _statement(rng, verb)
    place = complement(rng, first, doer, "past", "")
    en = f"when {english_clause(first, doer, 'habit', '', False)} {place.en}".strip()
    fr = f"quand {french_clause(first, doer, 'will', '', place)}"
    pairs = ((verb_id(first), place.noun),) if place.noun else ()
    then = _pronoun_for(doer) if first.is_reflexive else subject(rng)
    second = clause(rng, verb, then, "will", "", "bare")
    return _with_mark(_join(Phrase(en, fr, pairs=(*place.pairs, *pairs)), ", ", ", ", second), ".")


_ARRIVALS = tuple(
    v
    for v in VERBS
    if (v.en, v.particle) in (("arrive", ""), ("come", "back"), ("wake", "up"), ("get", "up"))
)


def _belief(rng: Random, verb: Verb) -> Phrase:
    """I think that the soup is delicious; one hopes only for what is still open."""
    en, fr = pick(rng, _BELIEFS)
    what, is_hope = rng.random(), "hope" in en
    if what < 0.5 or is_hope:
        is_open = is_hope and verb.adjunct != "!"
        second = clause(
            rng, verb, tense=pick(rng, ("will", "will", "past", "going")) if is_open else "", kind="embedded"
        )
    else:
        second = state(rng) if what < 0.75 else description(rng)
    return _with_mark(_join(Phrase(en, fr), " ", " ", second), ".")


def _contrast(rng: Random, verb: Verb) -> Phrase:
    """I would like to dance, but I am tired."""
    doer = subject(rng)
    if verb.adjunct in _INEXCUSABLE or verb.en in _INVOLUNTARY or verb.en == "work":
        return _statement(rng, verb)
    first = clause(rng, verb, doer, pick(rng, ("want", "would")), "", kind="bare")
    return _with_mark(_join(first, ", but ", ", mais ", excuse(rng, _pronoun_for(doer), False)), ".")


def _preference(rng: Random, verb: Verb) -> Phrase:
    """He likes tea, but he prefers coffee."""
    kind, doer = (
        pick(rng, ("food", "hot_drink", "cold_drink", "fruit", "vegetable", "subject")),
        pick(rng, _PRONOUNS),
    )
    first, second = pick(rng, NOUNS_BY_KIND[kind]), pick(rng, NOUNS_BY_KIND[kind])
    if first is second:
        return _statement(rng, verb)
    is_plural = kind not in _MASS
    said = [
        clause(rng, verb, doer, "habit", "", thing=noun_phrase(noun, "gen", is_plural))
        for verb, noun in zip(_LIKINGS, (first, second), strict=True)
    ]
    return _with_mark(_join(said[0], ", but ", ", mais ", said[1]), ".")


_LIKINGS = tuple(next(v for v in VERBS if v.en == name) for name in ("like", "prefer"))
_INTENTIONS = parse_pairs("""decided to|décider de; forgot to|oublier de; tried to|essayer de
refused to|refuser de
helped us to|nous aider à; promised to|promettre de; hesitated to|hésiter à; preferred to|préférer""")


def _intention(rng: Random, verb: Verb) -> Phrase:
    """He decided to learn Chinese."""
    doer = subject(rng)
    en, fr = pick(rng, _INTENTIONS)
    clitic = "nous " if fr.startswith("nous ") else ""
    name, _, preposition = fr.removeprefix("nous ").partition(" ")
    participle = agree(_past_participle(name), "m", True) if clitic else _past_participle(name)
    if verb.adjunct == "!" or verb.en in _INVOLUNTARY or (clitic and (doer.person == 3 or verb.is_reflexive)):
        return _statement(rng, verb)
    act = infinitive(rng, verb, doer)
    if clitic and ("nous" in act.fr or " our " in act.en or " my " in act.en):
        return _statement(rng, verb)
    avoir = _AUXILIARIES["avoir"][0][doer.person]
    french = " ".join(
        word for word in (doer.fr, clitic.strip(), avoir, participle, preposition, act.fr) if word
    )
    return _with_mark(Phrase(f"{doer.en} {en} {act.en}", french, pairs=act.pairs), ".")


@cache
def _past_participle(name: str) -> str:
    return french_forms(name)[3]


_JUDGEMENTS = tuple(
    (en, fr, tuple(names.split(", ")))
    for en, fr, names in (
        (
            "important",
            "important",
            "learn, wash, clean, sign, rest, sleep, read, study, correct, help, thank, listen to",
        ),
        (
            "necessary",
            "nécessaire",
            "water, feed, close, clean, wash, repair, prepare, print, wait for, study, invite",
        ),
        (
            "easy",
            "facile",
            "learn, understand, draw, cook, play, correct, explain, translate, find, prepare, use",
        ),
        (
            "difficult",
            "difficile",
            "learn, understand, draw, paint, play, teach, translate, repair, carry, explain",
        ),
        ("possible", "possible", "rent, visit, buy, travel, order, taste, borrow, photograph, taste, cross"),
        (
            "impossible",
            "impossible",
            "sleep, rent, repair, find, understand, carry, cross, forget, open, close, move",
        ),
        ("dangerous", "dangereux", "swim, cross, run, travel, follow, hide, move"),
        ("forbidden", "interdit", "enter, swim, run, dance, sleep, sing, photograph, feed, follow, cross"),
        (
            "pleasant",
            "agréable",
            "walk, swim, travel, read, sing, dance, rest, sleep, listen to, visit, eat, drink, play",
        ),
    )
)


def _judgement(rng: Random, verb: Verb) -> Phrase:
    """It is difficult to learn Chinese."""
    fitting = [(en, fr) for en, fr, names in _JUDGEMENTS if verb_id(verb)[2:] in names]
    if not fitting or verb.is_reflexive:
        return _statement(rng, verb)
    en, fr = pick(rng, fitting)
    act = infinitive(rng, verb, Phrase("", "", 5))
    if re.search(r"\b(their|leur|leurs)\b", act.en + act.fr):
        return _statement(rng, verb)
    return _with_mark(Phrase(f"it is {en} to {act.en}", f"il est {fr} de {act.fr}", pairs=act.pairs), ".")


_ERRANDS = (
    ("market", "buy", "fruit vegetable flower"),
    ("supermarket", "buy", "food snack_food staple cold_drink seasoning"),
    ("bakery", "buy", "cake"),
    ("butcher's shop", "buy", "food"),
    ("bookshop", "buy", "book"),
    ("pharmacy", "buy", "remedy"),
    ("library", "read", "book writing"),
    ("restaurant", "eat", "food cake"),
    ("cinema", "see", "show"),
    ("post office", "send", "card mail"),
    ("zoo", "photograph", "pet"),
)


def _errand(rng: Random, verb: Verb) -> Phrase:
    """I am going to the market to buy some apples."""
    place_name, verb_name, kinds = pick(rng, _ERRANDS)
    place = noun_phrase(next(n for n in NOUNS_BY_KIND["place"] if n.en == place_name), "the")
    there = Phrase(f"to {place.en}", contract("à", place.fr), noun=place.noun)
    go, do = _GO, next(v for v in VERBS if v.en == verb_name)
    doer = subject(rng)
    first = clause(
        rng, go._replace(adjunct="."), doer, pick(rng, ("past", "will", "must", "want")), "", "bare", there
    )
    act = infinitive(rng, do._replace(complement=tuple(kinds.split()), adjunct="."), doer)
    return _with_mark(_join(first, " to ", " pour ", act), ".")


_GO = next(v for v in VERBS if v.en == "go" and v.complement)


def _suited(rng: Random, verb: Verb) -> tuple[Phrase, Adjective] | None:
    """Something the verb takes as direct object, with an adjective that suits it."""
    kinds = [
        k
        for c in verb.complement
        if (k := c.rpartition(":")[2]) in _ADJECTIVES_BY_KIND and k in NOUNS_BY_KIND
    ]
    if not kinds or verb.preposition or verb.adjunct == "!":
        return None
    return _described(rng, pick(rng, kinds), 0.2)


def _relative(rng: Random, verb: Verb) -> Phrase:
    """The apples that I bought yesterday are ripe: the participle agrees with what precedes it."""
    suited, doer = _suited(rng, verb), subject(rng)
    if suited is None or suited[0].en.startswith("my "):
        return _person_relative(rng)
    thing, adjective = suited
    noun = next(n for n in NOUNS if f"n:{n.en}" == thing.noun)
    thing = noun_phrase(noun, "the", thing.is_plural)
    participle = agree(verb.participle, noun.gender, thing.is_plural)
    when_en, when_fr = pick(rng, _TIMES["past"]) if rng.random() < 0.5 else ("", "")
    en = f"{thing.en} that {english_clause(verb, doer, 'past', '', False)} {when_en}".rstrip()
    fr = f"{thing.fr} que {doer.fr} {_AUXILIARIES['avoir'][0][doer.person]} {participle} {when_fr}".rstrip()
    said = is_such(thing._replace(en=en, fr=fr), adjective, pick(rng, ("now", "then")), rng.random() < 0.15)
    return _with_mark(said._replace(pairs=(*said.pairs, (verb_id(verb), thing.noun))), ".")


def _person_relative(rng: Random) -> Phrase:
    """The doctor who works in Lyon is very kind."""
    is_plural = rng.random() < 0.25
    who = noun_phrase(pick(rng, NOUNS_BY_KIND["worker"] + NOUNS_BY_KIND["someone"]), "the", is_plural)
    verb = _LIVE if rng.random() < 0.5 else _WORK
    where = Phrase(*pick(rng, _CITIES))
    en = f"{who.en} who {verb.en if is_plural else verb.en_s} in {where.en}"
    fr = f"{who.fr} qui {verb.present[who.person]} à {where.fr}"
    return _with_mark(is_such(who._replace(en=en, fr=fr), pick(rng, _CHARACTERS)), ".")


_WORK = next(v for v in VERBS if v.en == "work")
_LIVE = _WORK._replace(en="live", en_s="lives", present=french_forms("habiter")[0])


def _taken_up(rng: Random, verb: Verb) -> Phrase:
    """This shirt is beautiful. I would like to buy it."""
    suited, doer = _suited(rng, verb), pick(rng, _PRONOUNS[:1] + _PRONOUNS[2:])
    if suited is None:
        return _person_taken_up(rng, verb)
    thing, adjective = suited
    clitic = "les" if thing.is_plural else "la" if thing.gender == "f" else "le"
    it = Phrase("them" if thing.is_plural else "it", "", thing.person, thing.gender, clitic=clitic)
    tense = pick(rng, ("will", "would", "past", "want", "going", "perfect", "can"))
    if verb.en in _INVOLUNTARY:
        tense = "past"
    polarity = "already" if tense == "perfect" else "" if tense == "would" else pick(rng, ("", "", "not"))
    second = clause(rng, verb._replace(adjunct="."), doer, tense, polarity, "bare", it)
    return _two_sentences(is_such(thing, adjective), second, (verb_id(verb), thing.noun))


_CARING = _words("help call visit telephone")
_FRIENDLY = _words("thank invite talk greet")
_PITIABLE = tuple(a for a in _STATES if a.en in ("ill", "alone", "worried", "tired", "disappointed"))


def _person_taken_up(rng: Random, verb: Verb) -> Phrase:
    """My mother is tired. I am going to help her."""
    if verb.complement != ("person",) or verb.en not in _CARING | _FRIENDLY:
        return _statement(rng, verb)
    who, doer = person(rng), pick(rng, (_PRONOUNS[0], _PRONOUNS[4]))
    again = _pronoun_for(who)
    clitic = {"il": "le", "elle": "la"}.get(again.fr, "les")
    if verb.preposition:
        clitic = "leur" if clitic == "les" else "lui"
    them = Phrase(_DIRECT[again.en][0], "", who.person, who.gender, clitic=clitic)
    tense = pick(rng, ("will", "going", "must", "want", "would"))
    second = clause(rng, verb._replace(adjunct="."), doer, tense, "", "bare", them)
    first = is_such(who, pick(rng, _PITIABLE if verb.en in _CARING else _CHARACTERS))
    return _two_sentences(first, second, (verb_id(verb), who.noun or "n:"))


def _two_sentences(first: Phrase, second: Phrase, pair: tuple[str, str]) -> Phrase:
    second = Phrase(*finish(second.en, second.fr))
    return _with_mark(_join(first, ". ", ". ", second)._replace(pairs=(*first.pairs, pair)), ".")


def _profession(rng: Random, verb: Verb) -> Phrase:
    """My mother is a dentist, without the article in French."""
    noun = pick(rng, NOUNS_BY_KIND["worker"])
    who = person(rng)
    while who.gender != noun.gender or who.is_plural or who.en.startswith("the "):
        who = person(rng)
    job = noun_phrase(noun, "a").en
    when = pick(rng, ("now", "now", "then", "later"))
    etre = _AUXILIARIES["être"][_WHEN[when]][2]
    said = Phrase(f"{who.en} {_be(who, when)} {job}", f"{who.fr} {etre} {noun.fr}")
    if when == "now" and rng.random() < 0.5:
        en, fr = pick(rng, _CITIES)
        return _with_mark(_join(said, " ", " ", Phrase(f"in {en}", f"à {fr}")), ".")
    return _with_mark(said, ".")


_PRODUCERS: tuple[Callable[[Random, Verb], Phrase], ...] = (
    *(_statement,) * 9,
    *(_yes_no_question,) * 3,
    *(_question,) * 3,
    *(_command,) * 2,
    *(_because,) * 2,
    *(_belief,) * 2,
    *(_relative,) * 2,
    *(_taken_up,) * 3,
    *(_giving,) * 2,
    *(_hungry, _childhood, _arrival, _contrast, _intention, _intention, _judgement, _errand),
)
_OWN_PRODUCERS: dict[str, tuple[Callable[[Random, Verb], Phrase], ...]] = {
    "weather": (_condition,),
    "work": (_profession, *_PRODUCERS[:20]),
    "restaurant": (_preference, _preference, *_PRODUCERS),
}
TOPICS = tuple(dict.fromkeys(line.partition(":")[0] for line in table_lines(_TEMPLATES)))
_VERBS_BY_TOPIC = {topic: tuple(v for v in VERBS if v.topic == topic) for topic in TOPICS}


def sentence(rng: Random) -> Sentence:
    """One sentence pair drawn from the grammar."""
    topic = pick(rng, TOPICS)
    form = rng.random()
    if form < 0.25:
        phrase = from_template(rng, topic)
    elif form < 0.32:
        phrase = _with_mark(description(rng), ".")
    elif form < 0.335:
        phrase = _with_mark(state(rng, when=pick(rng, ("now", "now", "then", "later"))), ".")
    else:
        verbs = _VERBS_BY_TOPIC[topic] or VERBS
        phrase = pick(rng, _OWN_PRODUCERS.get(topic, _PRODUCERS))(rng, pick(rng, verbs))
    en, fr = finish(phrase.en, phrase.fr)
    return Sentence(en, fr, topic, phrase.pairs)


# ---- Splits ---------------------------------------------------------------------------------------


@cache
def is_held_out(first: str, second: str) -> bool:
    """True for the lemma pairs that only the combinations split may contain: one in 25."""
    return _bucket(f"{first}+{second}", 25) == 0


def _bucket(text: str, count: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % count


_WORD = re.compile(r"[\w-]+")


@cache
def _lemmas() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """English word form → lemma ids it may belong to; first word → forms of several words."""
    forms: dict[str, set[str]] = {}
    entries: list[tuple[str, tuple[str, ...]]] = [(f"n:{n.en}", (n.en, n.en_plural)) for n in NOUNS] + [
        (f"a:{a.en}", (a.en,)) for a in ADJECTIVES
    ]
    entries += [(verb_id(v), (v.en, v.en_s, v.en_past, v.en_participle, v.en_ing)) for v in VERBS]
    entries += [(f"n:{en}", (en.lower(),)) for kind in _PROPER for en, _ in _FIXED[kind]]
    entries += [(f"n:{en}", (en.lower(),)) for en, _ in _COUNTRIES]
    for lemma, words in entries:
        for word in words:
            forms.setdefault(" ".join(_WORD.findall(word)), set()).add(lemma)
    long_forms: dict[str, tuple[str, ...]] = {}
    for form in forms:
        first, _, rest = form.partition(" ")
        if rest:
            long_forms[first] = (*long_forms.get(first, ()), form)
    return {form: tuple(sorted(ids)) for form, ids in forms.items()}, long_forms


def meets_held_out(english: str) -> bool:
    """True if anywhere in the sentence a verb or adjective meets a noun held out from it."""
    words = _WORD.findall(english.lower())
    lemmas, long_forms = _lemmas()
    text = " ".join(words) + " "
    found = [lemma for word in words if word in lemmas for lemma in lemmas[word]]
    for word in words:
        for form in long_forms.get(word, ()):
            if form + " " in text:
                found += lemmas[form]
    nouns = [lemma for lemma in found if lemma[0] == "n"]
    return any(is_held_out(other, noun) for other in found if other[0] != "n" for noun in nouns)


def is_in_split(pair: Sentence, split: str, seed: int) -> bool:
    """Whether a sentence belongs to a split, by its content alone; some belong to none."""
    meets = any(is_held_out(*words) for words in pair.pairs)
    if split == "combinations" or meets:
        return meets and split == "combinations"
    bucket = _bucket(f"{seed}:{pair.en}", 20)
    return _BUCKETS.get(bucket, "train") == split and not meets_held_out(pair.en)


_BUCKETS = {0: "validation", 1: "test"}
_PATIENCE = 100_000
"""Draws in a row without a new sentence after which the grammar counts as exhausted."""


def sentences(split: str, num_pairs: int | None = None, seed: int = 0) -> Iterator[Sentence]:
    """Like `generate`, with topic and lemma pairs."""
    if split not in SPLIT_SIZES:
        raise ValueError(f"no split {split!r}; there are {', '.join(SPLIT_SIZES)}")
    wanted = SPLIT_SIZES[split] if num_pairs is None else num_pairs
    if wanted < 0:
        raise ValueError(f"--num-pairs must be at least 0, got {wanted}")
    known = _training_words(seed) if split != "train" and wanted else None
    rng = Random(f"{split}:{seed}")
    seen: set[str] = set()
    misses = 0
    while len(seen) < wanted:
        pair = sentence(rng)
        if pair.en in seen or not is_in_split(pair, split, seed) or (known and not pair_words(pair) <= known):
            misses += 1
            if misses > _PATIENCE:
                raise ValueError(
                    f"the grammar gives about {len(seen)} pairs for {split}, not {wanted}; ask for fewer"
                )
            continue
        misses = 0
        seen.add(pair.en)
        yield pair


def pair_words(pair: Sentence) -> set[str]:
    return {*_WORD.findall(pair.en.lower()), *_WORD.findall(pair.fr.lower())}


@cache
def _training_words(seed: int) -> frozenset[str]:
    """Every word of the default training draw, so that the other splits measure composition alone."""
    return frozenset(word for pair in sentences("train", None, seed) for word in pair_words(pair))


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


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Print sentence pairs, tab-separated."""
    parser = _Parser(description=__doc__)
    parser.add_argument("--split", default="train", help=", ".join(SPLIT_SIZES))
    parser.add_argument("--num-pairs", type=int, help="default: the usual size of the split")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    try:
        for pair in generate(args.split, args.num_pairs, args.seed):
            print(pair["en"], pair["fr"], sep="\t")
        sys.stdout.flush()
    except ValueError as error:
        parser.error(str(error))
    except BrokenPipeError:
        # The reader has seen enough; keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
