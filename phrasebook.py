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
from typing import NamedTuple, TypeVar

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
    return _SI_IL.sub(r"\1'", _ELISION.sub(r"\1'", french))


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

_EN_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen""".split()
_EN_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_FR_UNITS = """zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
dix-sept dix-huit dix-neuf""".split()
_FR_TENS = "_ _ vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt".split()


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


def clock_time(rng: Random) -> Phrase:
    """A time of day: three o'clock, a quarter to eight, ten past nine, noon."""
    hour = 1 + int(rng.random() * 11)
    following = hour % 12 + 1
    form = int(rng.random() * 8)
    if form == 0:
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


def price(rng: Random) -> Phrase:
    """An amount of money, in words or in digits."""
    form = rng.random()
    if form < 0.4:
        euros, cents = 1 + int(rng.random() * 60), pick(rng, (10, 20, 25, 50, 75, 80, 90, 95))
        return Phrase(f"€{euros}.{cents}", f"{euros},{cents} €")
    n = 2 + int(rng.random() * 98) if form < 0.8 else 100 + int(rng.random() * 901)
    return Phrase(f"{english_number(n)} euros", f"{french_number(n)} euros")


# ---- Noun phrases ---------------------------------------------------------------------------------

_MONTHS, _DAYS, _SEASONS = parse_pairs(MONTHS), parse_pairs(DAYS), parse_pairs(SEASONS)
_COUNTRIES, _CITIES, _LANGUAGES = parse_pairs(COUNTRIES), parse_pairs(CITIES), parse_pairs(LANGUAGE_NAMES)
_MASS = frozenset("food snack_food hot_drink cold_drink staple subject".split())
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
        form = adjective.fr[2 * is_plural + (noun.gender == "f")]
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


def some_noun(
    rng: Random, kind: str, det: str, adjective_rate: float = 0.3, is_plural: bool = False
) -> Phrase:
    """A random noun of a kind, perhaps with an adjective that suits the kind."""
    noun = pick(rng, NOUNS_BY_KIND[kind])
    adjectives = _ADJECTIVES_BY_KIND.get(kind)
    adjective = pick(rng, adjectives) if adjectives and rng.random() < adjective_rate else None
    return noun_phrase(noun, det, is_plural or kind in _ALWAYS_PLURAL, adjective)


_NAMES = tuple(
    Phrase(n, n, 2, "m") for n in "Paul Pierre Thomas Nicolas Lucas Louis Martin Victor Antoine".split()
)
_NAMES += tuple(
    Phrase(n, n, 2, "f") for n in "Marie Sophie Julie Claire Alice Anne Camille Louise Emma".split()
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


def person(rng: Random) -> Phrase:
    """Somebody named: my brother, the doctors, Marie."""
    form = rng.random()
    if form < 0.2:
        return pick(rng, _NAMES)
    is_plural = rng.random() < 0.2
    if form < 0.65:
        return noun_phrase(
            pick(rng, NOUNS_BY_KIND["family"]), pick(rng, ("my0", "my0", "my4", "my3")), is_plural
        )
    return noun_phrase(pick(rng, NOUNS_BY_KIND["worker"]), "the", is_plural)


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
    if thing.clitic:
        words.append(verb.preposition.rpartition(" ")[0])
    elif thing.fr:
        words.append(contract(verb.preposition, thing.fr) if verb.preposition else thing.fr)
    return " ".join(word for word in words if word)


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
    elif kind == "place" and how in _MOVES:
        spot = some_noun(rng, "place", "the", 0.15)
        return spot._replace(en=f"{how} {spot.en}", fr=contract(_MOVES[how], spot.fr))
    elif kind == "person":
        if rng.random() < 0.4 and not verb.is_reflexive:
            return pronoun_object(rng, doer, bool(verb.preposition))
        return person(rng)
    else:
        return _thing(rng, kind, how, doer, tense, polarity)
    if how in _MOVES:
        return Phrase(f"{how} {en}", contract(_MOVES[how], fr), noun=f"n:{en}")
    if how == "gen":
        fr = f"l'{fr}" if _STARTS_WITH_VOWEL.match(fr) else f"le {fr}"
    return Phrase(en, fr, noun=f"n:{en}")


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
    is_plural = rng.random() < 0.25
    if how == "gen":
        is_plural, dets = kind not in _MASS, ["gen"]
    elif how == "the":
        dets = ["the", "the", own, "this"]
    elif kind in _MASS:
        dets = ["bare" if tense in ("habit", "used", "can") else "some"] * 4 + ["the"]
    elif tense in ("habit", "used") and polarity not in _NEGATIVE:
        is_plural, dets = True, ["bare"]
    else:
        dets = ["some"] if is_plural else ["a", "a", "the", "this"]
    is_plural = (is_plural or kind in _ALWAYS_PLURAL) and kind not in _MASS
    det = pick(rng, dets)
    if kind in _ALWAYS_PLURAL and det == "a":
        det = "some"
    if polarity in _NEGATIVE and det in ("a", "some", "bare"):
        return _negated(rng, kind, is_plural, bare=det == "bare", article=det == "a")
    noun = pick(rng, NOUNS_BY_KIND[kind])
    adjectives = _ADJECTIVES_BY_KIND.get(kind, ())
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
    "habit": parse_pairs("""every day|tous les jours; every morning|tous les matins; every evening|tous les soirs
every week|toutes les semaines; at weekends|le week-end; every month|tous les mois; every night|toutes les nuits
every Sunday|tous les dimanches; every Saturday|tous les samedis; in the morning|le matin; in the evening|le soir"""),
    "prog": parse_pairs("now|maintenant; at the moment|en ce moment"),
    "past": parse_pairs("""yesterday|hier; yesterday evening|hier soir; last week|la semaine dernière
last month|le mois dernier; last year|l'année dernière; this morning|ce matin; two days ago|il y a deux jours
yesterday morning|hier matin; an hour ago|il y a une heure; last Sunday|dimanche dernier; last summer|l'été dernier
last Friday|vendredi dernier; three weeks ago|il y a trois semaines"""),
    "will": parse_pairs("""tomorrow|demain; tomorrow morning|demain matin; next week|la semaine prochaine
tonight|ce soir; in three days|dans trois jours; next Monday|lundi prochain; soon|bientôt
tomorrow evening|demain soir; next month|le mois prochain; next year|l'année prochaine; in an hour|dans une heure
next Thursday|jeudi prochain; the day after tomorrow|après-demain; this afternoon|cet après-midi"""),
    "can": parse_pairs("today|aujourd'hui; tomorrow|demain; this afternoon|cet après-midi; tonight|ce soir"),
    "used": parse_pairs("""every day|tous les jours; every summer|tous les étés; every evening|tous les soirs
every Sunday|tous les dimanches; every week|toutes les semaines"""),
}
_TIMES |= {"going": _TIMES["will"], "want": _TIMES["can"], "would": _TIMES["will"], "must": _TIMES["can"]}
_PLACES = {
    "room": parse_pairs("""in the kitchen|dans la cuisine; in the garden|dans le jardin; at home|à la maison
in the living room|dans le salon; in the bedroom|dans la chambre; on the balcony|sur le balcon"""),
    "shop": parse_pairs("""at the market|au marché; at the supermarket|au supermarché; in this shop|dans ce magasin
in town|en ville; at the department store|au grand magasin"""),
    "market": parse_pairs("at the market|au marché; on the internet|sur internet; in town|en ville"),
    "restaurant": parse_pairs("at the restaurant|au restaurant; in the café|dans le café"),
    "park": parse_pairs("""in the park|dans le parc; in the forest|dans la forêt; near the river|près de la rivière
in the garden|dans le jardin; on the beach|sur la plage"""),
    "bed": parse_pairs("""in the bedroom|dans la chambre; in the living room|dans le salon; at home|à la maison
in this room|dans cette pièce"""),
    "pool": parse_pairs("in the sea|dans la mer; in the lake|dans le lac; at the swimming pool|à la piscine"),
    "library": parse_pairs("""at the library|à la bibliothèque; at school|à l'école; at university|à l'université
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
_TENSES = ("habit",) * 5 + ("prog",) * 3 + ("past",) * 6 + ("perfect",) * 2 + ("will",) * 4 + ("going",) * 3
_TENSES += ("used", "can", "can", "must", "must", "want", "want", "would", "would", "just")
_POLARITIES: dict[str, tuple[str, ...]] = {
    "habit": ("", "", "", "not", "never", "no longer", *_ADVERBS),
    "prog": ("", "", "", "not", "no longer"),
    "past": ("", "", "", "not"),
    "perfect": ("already", "never", "yet"),
    "will": ("", "", "", "not", "never"),
    "going": ("", "", "", "not"),
    "can": ("", "", "not", "no longer"),
    "must": ("", "", "not"),
    "want": ("", "", "not", "no longer"),
}


def _adjunct(rng: Random, verb: Verb, thing: Phrase, doer: Phrase) -> tuple[str, str]:
    """Where, with whom or how."""
    if verb.adjunct in (".", "!") or rng.random() < 0.6:
        return "", ""
    if verb.adjunct == "with":
        who = person(rng)
        return ("", "") if who.en in (doer.en, thing.en) else (f" with {who.en}", f" avec {who.fr}")
    if verb.adjunct == "clock":
        at = clock_time(rng)
        return f" at {at.en}", f" à {at.fr}"
    en, fr = pick(rng, _PLACES[verb.adjunct])
    return f" {en}", f" {fr}"


def clause(
    rng: Random,
    verb: Verb,
    doer: Phrase | None = None,
    tense: str = "",
    polarity: str | None = None,
    kind: str = "",
) -> Phrase:
    """A clause without capital or full stop.

    Args:
        kind: "" statement, "bare" statement without a time, "question" yes/no question.
    """
    doer = doer or subject(rng)
    if not tense:
        tense = "habit" if verb.adjunct == "!" else pick(rng, _TENSES)
    if polarity is None:
        polarity = "" if kind.startswith("question") else pick(rng, _POLARITIES.get(tense, ("",)))
    thing = complement(rng, verb, doer, tense, polarity)
    where_en, where_fr = _adjunct(rng, verb, thing, doer)
    en = english_clause(verb, doer, tense, polarity, kind.startswith("question"))
    en += (f" {thing.en}" if thing.en else "") + where_en
    fr = french_clause(verb, doer, tense, polarity, thing) + where_fr
    pairs = (*doer.pairs, *thing.pairs)
    if thing.noun:
        pairs = (*pairs, (f"v:{_verb_id(verb)}", thing.noun))
    if polarity == "yet":
        return Phrase(f"{en} yet", fr, pairs=pairs)
    times = _TIMES.get(tense) if verb.adjunct != "!" and kind != "bare" else None
    must_have_time = tense == "used" or (tense == "habit" and polarity == "")
    if (
        times
        and verb.adjunct != "clock"
        and (must_have_time or rng.random() < 0.5)
        and polarity in ("", "not")
    ):
        when_en, when_fr = pick(rng, times)
        if kind == "" and rng.random() < 0.15:
            return Phrase(f"{when_en}, {en}", f"{when_fr}, {fr}", pairs=pairs)
        en, fr = f"{en} {when_en}", f"{fr} {when_fr}"
    return Phrase(en, fr, pairs=pairs)


def _verb_id(verb: Verb) -> str:
    return f"{verb.en} {verb.particle}".strip()


_IDIOMS = parse_pairs(
    "hungry|faim; thirsty|soif; cold|froid; hot|chaud; afraid|peur; sleepy|sommeil; right|raison"
)
_STATES = tuple(a for a in ADJECTIVES if "person" in a.kinds)
_CHARACTERS = tuple(a for a in ADJECTIVES if "character" in a.kinds)


def state(rng: Random, doer: Phrase | None = None, tense: str = "now") -> Phrase:
    """Somebody is tired, hungry, kind; tense is now, then (was) or later (will be)."""
    doer = doer or subject(rng)
    be = {"now": _BE[doer.person], "then": "was" if doer.person in (0, 2) else "were", "later": "will be"}[
        tense
    ]
    which = {"now": 0, "then": 1, "later": 2}[tense]
    if rng.random() < 0.35:
        en, fr = pick(rng, _IDIOMS)
        return Phrase(f"{doer.en} {be} {en}", f"{doer.fr} {_AUXILIARIES['avoir'][which][doer.person]} {fr}")
    adjective = pick(rng, _STATES if tense != "now" or rng.random() < 0.6 else _CHARACTERS)
    form = adjective.fr[2 * doer.is_plural + (doer.gender == "f")]
    pairs = (*doer.pairs, (f"a:{adjective.en}", doer.noun)) if doer.noun else doer.pairs
    fr = f"{doer.fr} {_AUXILIARIES['être'][which][doer.person]} {form}"
    return Phrase(f"{doer.en} {be} {adjective.en}", fr, pairs=pairs)


def description(rng: Random) -> Phrase:
    """A thing is or was such: the soup is delicious."""
    kind = pick(
        rng, tuple(k for k in _ADJECTIVES_BY_KIND if k not in ("person", "character", "subject", "animal"))
    )
    adjective = pick(rng, _ADJECTIVES_BY_KIND[kind])
    is_plural = kind in _ALWAYS_PLURAL or (kind not in _MASS and rng.random() < 0.25)
    noun = pick(rng, NOUNS_BY_KIND[kind])
    thing = noun_phrase(noun, pick(rng, ("the", "this", "my4", "my0", "my3")), is_plural)
    is_past = rng.random() < 0.25
    be = ("were" if is_plural else "was") if is_past else _BE[thing.person]
    negation = rng.random() < 0.25
    very = "" if negation or rng.random() < 0.7 else "very "
    form = adjective.fr[2 * is_plural + (noun.gender == "f")]
    etre = _AUXILIARIES["être"][int(is_past)][thing.person]
    en = f"{thing.en} {be}{_NT if negation else ''} {very}{adjective.en}"
    fr = f"{thing.fr} {f'ne {etre} pas' if negation else etre} {'très ' if very else ''}{form}"
    return Phrase(en, fr, pairs=((f"a:{adjective.en}", f"n:{noun.en}"),))


_WEATHER = tuple(
    (en.split("/"), fr.split("/"))
    for en, fr in parse_pairs("""it is raining/it was raining/it will rain/it rained|il pleut/il pleuvait/il pleuvra/il a plu
it is snowing/it was snowing/it will snow/it snowed|il neige/il neigeait/il neigera/il a neigé
it is cold/it was cold/it will be cold/it was cold|il fait froid/il faisait froid/il fera froid/il faisait froid
it is hot/it was hot/it will be hot/it was hot|il fait chaud/il faisait chaud/il fera chaud/il faisait chaud
it is windy/it was windy/it will be windy/it was windy|il y a du vent/il y avait du vent/il y aura du vent/il y avait du vent
it is foggy/it was foggy/it will be foggy/it was foggy|il y a du brouillard/il y avait du brouillard/il y aura du brouillard/il y avait du brouillard
it is sunny/it was sunny/it will be sunny/it was sunny|il y a du soleil/il y avait du soleil/il y aura du soleil/il y avait du soleil
the weather is nice/the weather was nice/the weather will be nice/the weather was nice|il fait beau/il faisait beau/il fera beau/il faisait beau""")
)


def weather(rng: Random, tense: int = 0) -> Phrase:
    """The weather now (0), then (1), later (2) or as an event (3)."""
    en, fr = pick(rng, _WEATHER)
    return Phrase(en[tense], fr[tense])


# ---- Whole sentences ------------------------------------------------------------------------------

_TEMPLATES = """
greetings: Good morning, {title}. | Bonjour, {title}.
greetings: Good evening, {title}. | Bonsoir, {title}.
greetings: Goodbye, {name}. | Au revoir, {name}.
greetings: Hello, {name}! | Salut, {name} !
greetings: Thank you very much, {title}. | Merci beaucoup, {title}.
greetings: Thank you for {the:belonging}. | Merci pour {the:belonging}.
greetings: How is {kin}? | Comment va {kin} ?
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
directions: {the:place} is between {the:place#2} and {the:place#3}. | {the:place} est entre {the:place#2} et {the:place#3}.
directions: Turn {side} after {the:place}. | Tournez à {side} après {the:place}.
directions: Go straight on as far as {the:place}. | Allez tout droit jusqu'{à the:place}.
directions: Take the {ordinal} street on the {side}. | Prenez la {ordinal} rue à {side}.
directions: How can I get to {the:place}? | Comment est-ce que je peux aller {à the:place} ?
directions: {the:place} is {number} metres from {the:place#2}. | {the:place} est à {number} mètres {de the:place#2}.
directions: It is {number} kilometres from {city} to {city#2}. | Il y a {number} kilomètres de {city} à {city#2}.
restaurant: I would like {some:food} and {some:cold_drink}, please. | Je voudrais {some:food} et {some:cold_drink}, s'il vous plaît.
restaurant: A table for {few}, please. | Une table pour {few}, s'il vous plaît.
restaurant: Would you like {some:cold_drink} with {the:food}? | Voulez-vous {some:cold_drink} avec {the:food} ?
restaurant: Is there {any:staple} in {the:food}? | Est-ce qu'il y a {any:staple} dans {the:food} ?
restaurant: Could you bring me {a:dish}? | Pourriez-vous m'apporter {a:dish} ?
restaurant: There isn't any {none:food} left. | Il ne reste plus {none:food}.
restaurant: We have run out of {none:staple}. | Nous n'avons plus {none:staple}.
restaurant: I will have {the:snack} with {some:cold_drink}. | Je prendrai {the:snack} avec {some:cold_drink}.
shops: How much does {the:clothes} cost? | Combien coûte {the:clothes} ?
shops: {this:clothes} costs {price}. | {this:clothes} coûte {price}.
shops: {the:furniture} costs {price}. | {the:furniture} coûte {price}.
shops: {the:machine} costs {price}. | {the:machine} coûte {price}.
shops: I paid {price} for {the:vehicle}. | J'ai payé {the:vehicle} {price}.
shops: Do you have {this:clothes} in {colour}? | Avez-vous {this:clothes} en {colour} ?
shops: Give me {few} {fruits}, please. | Donnez-moi {few} {fruits}, s'il vous plaît.
shops: I would like a kilo of {fruits}. | Je voudrais un kilo de {fruits}.
shops: We need {some:staple} and {few} {fruits}. | Il nous faut {some:staple} et {few} {fruits}.
time: What time does {the:place} open? | À quelle heure ouvre {the:place} ?
time: {the:place} opens at {clock} and closes at {clock#2}. | {the:place} ouvre à {clock} et ferme à {clock#2}.
time: It is {clock}. | Il est {clock}.
time: It is already {clock}. | Il est déjà {clock}.
time: It isn't {clock} yet. | Il n'est pas encore {clock}.
time: Today is {day}, {date}. | Aujourd'hui, nous sommes le {day} {date}.
time: {kin}'s birthday is on {date}. | L'anniversaire de {kin} est le {date}.
time: The meeting is on {day} at {clock}. | La réunion a lieu {day} à {clock}.
time: {the:show} starts at {clock}. | {the:show} commence à {clock}.
time: {the:show} lasts {few} hours. | {the:show} dure {few} heures.
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
family: {kin} is {age} years old. | {kin} a {age} ans.
family: I have {few} {siblings}. | J'ai {few} {siblings}.
family: What is {kin}'s name? | Comment s'appelle {kin} ?
family: {name}'s {kinword} works in {city}. | {kinword} de {name} travaille à {city}.
weather: {weather} in {city}. | {weather} à {city}.
weather: {weatherwas} yesterday in {city}. | Hier, {weatherwas} à {city}.
weather: {weatherwill} tomorrow in {city}. | Demain, {weatherwill} à {city}.
weather: It often rains here {season}. | Il pleut souvent ici {season}.
weather: It never snows in {city} {season}. | Il ne neige jamais à {city} {season}.
weather: It is {degrees} degrees in {city} today. | Il fait {degrees} degrés à {city} aujourd'hui.
weather: Take {my4:clothes}, {weather}. | Prenez {my4:clothes}, {weather}.
health: My {ache} hurts. | J'ai mal {à ache}.
health: Does your {ache} hurt? | Avez-vous mal {à ache} ?
health: {kin}'s {ache} hurts. | {kin} a mal {à ache}.
health: I have broken my {limb}. | Je me suis cassé {limb}.
health: You must take {this:remedy} {few} times a day. | Vous devez prendre {this:remedy} {few} fois par jour.
health: I have an appointment with {worker} at {clock}. | J'ai rendez-vous avec {worker} à {clock}.
work: I have worked here for {few} years. | Je travaille ici depuis {few} ans.
work: {the:paper} is on {my4:furniture}. | {the:paper} est sur {my4:furniture}.
work: Can you send me {the:paper} before {day}? | Pouvez-vous m'envoyer {the:paper} avant {day} ?
school: Open {my4:book} at page {degrees}. | Ouvrez {my4:book} à la page {degrees}.
school: There are {number} pupils in this school. | Il y a {number} élèves dans cette école.
home: Where is {my:belonging}? | Où est {my:belonging} ?
home: {my:belonging} is on {the:furniture}. | {my:belonging} est sur {the:furniture}.
home: {the:animal} is sleeping under {the:furniture}. | {the:animal} dort sous {the:furniture}.
home: There is {a:animal} in {the:room}. | Il y a {a:animal} dans {the:room}.
home: There is {a:furniture} in {the:room}. | Il y a {a:furniture} dans {the:room}.
home: There are {few} {dishes} on {the:furniture}. | Il y a {few} {dishes} sur {the:furniture}.
home: Don't forget to close {the:opening}. | N'oubliez pas de fermer {the:opening}.
"""

_COLOURS = parse_pairs(
    "blue|bleu; red|rouge; green|vert; black|noir; white|blanc; grey|gris; yellow|jaune; pink|rose"
)
_ORDINALS = parse_pairs("""first|première; second|deuxième; third|troisième; fourth|quatrième; next|prochaine
last|dernière""")
_TITLES = parse_pairs("""sir|monsieur; madam|madame; doctor|docteur; Mr Martin|monsieur Martin; everybody|tout le monde
Mrs Martin|madame Martin; ladies and gentlemen|mesdames et messieurs; miss|mademoiselle; my friend|mon ami""")
_LATER = parse_pairs("""tomorrow|demain; tonight|ce soir; next week|la semaine prochaine; soon|bientôt
next year|l'année prochaine; tomorrow morning|demain matin; on Monday|lundi; on Friday|vendredi; on Sunday|dimanche""")
_SIBLINGS = parse_pairs(
    "brothers|frères; sisters|sœurs; cousins|cousins; children|enfants; uncles|oncles; aunts|tantes"
)
_LIMBS = frozenset("leg arm foot wrist ankle finger shoulder nose".split())


def _of(table: tuple[tuple[str, str], ...]) -> Callable[[Random], Phrase]:
    return lambda rng: Phrase(*pick(rng, table))


def _counted(low: int, high: int, in_words: float, gender: str = "m") -> Callable[[Random], Phrase]:
    def draw(rng: Random) -> Phrase:
        n = low + int(rng.random() * (high - low + 1))
        if rng.random() < in_words:
            return Phrase(english_number(n), french_number(n, gender))
        return Phrase(str(n), str(n))

    return draw


def _kin(rng: Random) -> Phrase:
    return noun_phrase(pick(rng, NOUNS_BY_KIND["family"]), pick(rng, ("my0", "my0", "my4", "my3")))


def _bare_plural(kind: str) -> Callable[[Random], Phrase]:
    def draw(rng: Random) -> Phrase:
        noun = pick(rng, NOUNS_BY_KIND[kind])
        return Phrase(noun.en_plural, noun.fr_plural, noun=f"n:{noun.en}")

    return draw


def _body_part(is_limb: bool) -> Callable[[Random], Phrase]:
    def draw(rng: Random) -> Phrase:
        nouns = [n for n in NOUNS_BY_KIND["body"] if n.en != "tooth" and (not is_limb or n.en in _LIMBS)]
        noun = pick(rng, nouns)
        return Phrase(noun.en, noun_phrase(noun, "the").fr)

    return draw


def _kinword(rng: Random) -> Phrase:
    noun = pick(rng, [n for n in NOUNS_BY_KIND["family"] if n.gender == "m"])
    return Phrase(noun.en, noun_phrase(noun, "the").fr)


_SLOTS: dict[str, Callable[[Random], Phrase]] = {
    "name": lambda rng: pick(rng, _NAMES),
    "woman": lambda rng: pick(rng, [n for n in _NAMES if n.gender == "f"]),
    "title": _of(_TITLES),
    "when": _of(_LATER),
    "kin": _kin,
    "kinword": _kinword,
    "city": _of(_CITIES),
    "side": _of((("left", "gauche"), ("right", "droite"))),
    "ordinal": _of(_ORDINALS),
    "number": _counted(2, 1000, 0.6),
    "few": _counted(2, 12, 1.0),
    "age": _counted(2, 99, 0.8),
    "degrees": _counted(2, 60, 0.0),
    "year": _counted(1950, 2015, 0.0),
    "price": price,
    "clock": clock_time,
    "digital": digital_time,
    "date": date,
    "day": _of(_DAYS),
    "month": _of(_MONTHS),
    "season": _of(_SEASONS),
    "colour": _of(_COLOURS),
    "siblings": _of(_SIBLINGS),
    "fruits": _bare_plural("fruit"),
    "dishes": _bare_plural("dish"),
    "ache": _body_part(False),
    "limb": _body_part(True),
    "worker": lambda rng: noun_phrase(pick(rng, NOUNS_BY_KIND["worker"]), "the"),
    "weather": lambda rng: weather(rng),
    "weatherwas": lambda rng: weather(rng, 3),
    "weatherwill": lambda rng: weather(rng, 2),
}
_SLOT = re.compile(r"\{(?:(à|de) )?([^}]+)\}")


@cache
def _templates(topic: str) -> tuple[tuple[str, str], ...]:
    lines = [line.partition(": ") for line in _TEMPLATES.strip().splitlines()]
    return parse_pairs("\n".join(text.replace(" | ", "|") for name, _, text in lines if name == topic))


def _from_template(rng: Random, topic: str) -> Phrase:
    """Fill a template's slots, each drawn once for both languages."""
    en, fr = pick(rng, _templates(topic))
    filled: dict[str, Phrase] = {}
    for _, key in _SLOT.findall(en):
        name = key.partition("#")[0]
        phrase = _fill(rng, name)
        while any(phrase.en == other.en for other in filled.values()):
            phrase = _fill(rng, name)
        filled[key] = phrase
    english = _SLOT.sub(lambda m: filled[m[2]].en, en)
    french = _SLOT.sub(lambda m: contract(m[1], filled[m[2]].fr) if m[1] else filled[m[2]].fr, fr)
    return Phrase(english, french, pairs=tuple(pair for phrase in filled.values() for pair in phrase.pairs))


def _fill(rng: Random, name: str) -> Phrase:
    if name in _SLOTS:
        return _SLOTS[name](rng)
    det, _, kind = name.partition(":")
    return some_noun(rng, kind, "my0" if det == "my" else det, 0.0 if det == "none" else 0.3)


def _with_mark(phrase: Phrase, mark: str) -> Phrase:
    return phrase._replace(en=phrase.en + mark, fr=phrase.fr + (mark if mark == "." else " " + mark))


def _statement(rng: Random, verb: Verb) -> Phrase:
    return _with_mark(clause(rng, verb), ".")


_ASKING = parse_pairs("when|quand; why|pourquoi; where|où")


def _question(rng: Random, verb: Verb) -> Phrase:
    """A yes/no question, or one with a question word, or one about who did it."""
    form = rng.random()
    if form < 0.2:
        return _with_mark(clause(rng, verb, Phrase("who", "qui"), kind="bare"), "?")
    if form < 0.45:
        en, fr = pick(rng, _ASKING if verb.adjunct == "." and verb.complement else _ASKING[:2])
        asked = clause(rng, verb, kind="question_bare")
        return _with_mark(asked._replace(en=f"{en} {asked.en}", fr=f"{fr} est-ce que {asked.fr}"), "?")
    asked = clause(rng, verb, kind="question")
    return _with_mark(asked._replace(fr=f"est-ce que {asked.fr}"), "?")


def _command(rng: Random, verb: Verb) -> Phrase:
    """A polite order: Please close the door."""
    you = _PRONOUNS[1]
    is_negative = rng.random() < 0.3
    thing = complement(rng, verb, you, "past", "not" if is_negative else "")
    if verb.adjunct == "!" or verb.is_reflexive or thing.clitic:
        return _statement(rng, verb)
    object_fr = contract(verb.preposition, thing.fr) if verb.preposition and thing.fr else thing.fr
    pairs = (*thing.pairs, (f"v:{_verb_id(verb)}", thing.noun)) if thing.noun else ()
    en = " ".join(word for word in (verb.en, verb.particle, thing.en) if word)
    if is_negative:
        fr = f"ne {verb.present[4]} pas {object_fr}".strip()
        return Phrase(f"don't {en}.", fr + ".", pairs=pairs)
    return Phrase(
        f"please {en}.", f"{verb.present[4]} {object_fr}".strip() + ", s'il vous plaît.", pairs=pairs
    )


def _join(first: Phrase, en: str, fr: str, second: Phrase) -> Phrase:
    return Phrase(
        f"{first.en}{en}{second.en}", f"{first.fr}{fr}{second.fr}", pairs=(*first.pairs, *second.pairs)
    )


_BELIEFS = parse_pairs("""I think that|je pense que; I know that|je sais que; I hope that|j'espère que
he says that|il dit que; she says that|elle dit que; they say that|ils disent que; I am sure that|je suis sûr que
we know that|nous savons que; it is true that|c'est vrai que; everybody knows that|tout le monde sait que""")
_YOUNG = tuple(
    Phrase(
        f"when {p.en} {'was' if p.person in (0, 2) else 'were'} {'children' if p.is_plural else 'a child'}",
        "",
    )
    for p in _PRONOUNS
)


def _because(rng: Random, verb: Verb) -> Phrase:
    doer = subject(rng)
    first = clause(rng, verb, doer, kind="bare")
    again = _pronoun_for(doer)
    second = weather(rng) if rng.random() < 0.2 else state(rng, again)
    return _with_mark(_join(first, " because ", " parce que ", second), ".")


def _pronoun_for(doer: Phrase) -> Phrase:
    """The pronoun that takes up a subject."""
    if doer.person == 2:
        return _PRONOUNS[3] if doer.gender == "f" else _PRONOUNS[2]
    if doer.person == 5 and doer.gender == "f":
        return doer
    return next(p for p in _PRONOUNS if p.person == doer.person)


def _childhood(rng: Random, verb: Verb) -> Phrase:
    doer = pick(rng, _PRONOUNS)
    child = "enfants" if doer.is_plural else "enfant"
    was = "was" if doer.person in (0, 2) else "were"
    first = Phrase(
        f"when {doer.en} {was} {'children' if doer.is_plural else 'a child'}",
        f"quand {doer.fr} {_AUXILIARIES['être'][1][doer.person]} {child}",
    )
    return _with_mark(_join(first, ", ", ", ", clause(rng, verb, doer, "used", "")), ".")


def _condition(rng: Random, verb: Verb) -> Phrase:
    first = weather(rng)
    first = Phrase(f"if {first.en} tomorrow", f"si {first.fr} demain")
    second = clause(rng, verb, tense="will", kind="bare")
    return _with_mark(_join(first, ", ", ", ", second), ".")


def _belief(rng: Random, verb: Verb) -> Phrase:
    en, fr = pick(rng, _BELIEFS)
    what = rng.random()
    second = clause(rng, verb) if what < 0.5 else state(rng) if what < 0.75 else description(rng)
    return _with_mark(_join(Phrase(en, fr), " ", " ", second), ".")


def _contrast(rng: Random, verb: Verb) -> Phrase:
    doer = pick(rng, _PRONOUNS)
    first = clause(rng, verb, doer, pick(rng, ("want", "would")), "", kind="bare")
    return _with_mark(_join(first, ", but ", ", mais ", state(rng, doer)), ".")


def _preference(rng: Random, verb: Verb) -> Phrase:
    kind = pick(rng, ("food", "hot_drink", "fruit", "vegetable", "subject"))
    doer = pick(rng, _PRONOUNS)
    nouns = NOUNS_BY_KIND[kind]
    first, second = pick(rng, nouns), pick(rng, nouns)
    if first is second:
        return _statement(rng, verb)
    like, prefer = (next(v for v in VERBS if v.en == name) for name in ("like", "prefer"))
    is_plural = kind not in _MASS
    one, two = noun_phrase(first, "gen", is_plural), noun_phrase(second, "gen", is_plural)
    pairs = (("v:like", one.noun), ("v:prefer", two.noun))
    en = f"{english_clause(like, doer, 'habit', '', False)} {one.en}, but "
    en += f"{english_clause(prefer, doer, 'habit', '', False)} {two.en}."
    fr = f"{french_clause(like, doer, 'habit', '', one)}, mais {french_clause(prefer, doer, 'habit', '', two)}."
    return Phrase(en, fr, pairs=pairs)


def _relative(rng: Random, verb: Verb) -> Phrase:
    """The book that I bought yesterday is interesting: the participle agrees with what precedes it."""
    kinds = [k for _, _, k in (c.rpartition(":") for c in verb.complement) if k in _ADJECTIVES_BY_KIND]
    kinds = [k for k in kinds if k in NOUNS_BY_KIND]
    if not kinds or verb.preposition or verb.adjunct == "!":
        return _statement(rng, verb)
    kind, doer = pick(rng, kinds), subject(rng)
    is_plural = kind in _ALWAYS_PLURAL or (kind not in _MASS and rng.random() < 0.2)
    noun, adjective = pick(rng, NOUNS_BY_KIND[kind]), pick(rng, _ADJECTIVES_BY_KIND[kind])
    thing = noun_phrase(noun, "the", is_plural)
    participle = agree(verb.participle, noun.gender, is_plural)
    when_en, when_fr = pick(rng, _TIMES["past"]) if rng.random() < 0.5 else ("", "")
    en = f"{thing.en} that {english_clause(verb, doer, 'past', '', False)} {when_en}".rstrip()
    fr = f"{thing.fr} que {doer.fr} {_AUXILIARIES['avoir'][0][doer.person]} {participle} {when_fr}".rstrip()
    form = adjective.fr[2 * is_plural + (noun.gender == "f")]
    en, fr = f"{en} {_BE[thing.person]} {adjective.en}.", f"{fr} {'sont' if is_plural else 'est'} {form}."
    return Phrase(en, fr, pairs=((f"a:{adjective.en}", thing.noun), (f"v:{_verb_id(verb)}", thing.noun)))


def _taken_up(rng: Random, verb: Verb) -> Phrase:
    """This shirt is beautiful. I would like to buy it."""
    kinds = [k for _, _, k in (c.rpartition(":") for c in verb.complement) if k in _ADJECTIVES_BY_KIND]
    kinds = [k for k in kinds if k in NOUNS_BY_KIND]
    if not kinds or verb.preposition or verb.adjunct == "!":
        return _statement(rng, verb)
    kind, doer = pick(rng, kinds), pick(rng, _PRONOUNS)
    is_plural = kind in _ALWAYS_PLURAL or (kind not in _MASS and rng.random() < 0.2)
    noun, adjective = pick(rng, NOUNS_BY_KIND[kind]), pick(rng, _ADJECTIVES_BY_KIND[kind])
    thing = noun_phrase(noun, pick(rng, ("this", "the")), is_plural)
    it = Phrase(
        "them" if is_plural else "it",
        "",
        thing.person,
        noun.gender,
        clitic="les" if is_plural else "la" if noun.gender == "f" else "le",
    )
    tense = pick(rng, ("will", "would", "past", "want", "going", "perfect", "can"))
    polarity = "already" if tense == "perfect" else pick(rng, _POLARITIES.get(tense, ("",)))
    form = adjective.fr[2 * is_plural + (noun.gender == "f")]
    en = f"{thing.en} {_BE[thing.person]} {adjective.en}. "
    particle_en = english_clause(verb, doer, tense, polarity, False)
    en += f"{particle_en[0].upper()}{particle_en[1:]} {it.en}."
    second = elide(french_clause(verb, doer, tense, polarity, it))
    fr = f"{thing.fr} {'sont' if is_plural else 'est'} {form}. {second[0].upper()}{second[1:]}."
    return Phrase(en, fr, pairs=((f"a:{adjective.en}", thing.noun), (f"v:{_verb_id(verb)}", thing.noun)))


_PRODUCERS: tuple[Callable[[Random, Verb], Phrase], ...] = (
    *(_statement,) * 8,
    *(_question,) * 4,
    _command,
    _because,
    _because,
    _childhood,
    _condition,
    _belief,
    _belief,
    _contrast,
    _preference,
    _relative,
    _relative,
    _taken_up,
    _taken_up,
)
TOPICS = tuple(dict.fromkeys(line.partition(":")[0] for line in _TEMPLATES.strip().splitlines()))
_VERBS_BY_TOPIC = {topic: tuple(v for v in VERBS if v.topic == topic) for topic in TOPICS}


def sentence(rng: Random) -> Sentence:
    """One sentence pair drawn from the grammar."""
    topic = pick(rng, TOPICS)
    form = rng.random()
    if form < 0.3:
        phrase = _from_template(rng, topic)
    elif form < 0.38:
        phrase = _with_mark(
            description(rng) if form < 0.35 else state(rng, tense=pick(rng, ("now", "then"))), "."
        )
    else:
        phrase = pick(rng, _PRODUCERS)(rng, pick(rng, _VERBS_BY_TOPIC[topic] or VERBS))
    en, fr = finish(phrase.en, phrase.fr)
    return Sentence(en, fr, topic, phrase.pairs)


# ---- Splits ---------------------------------------------------------------------------------------


@cache
def is_held_out(first: str, second: str) -> bool:
    """True for the lemma pairs that only the combinations split may contain: one in 25."""
    return _bucket(f"{first}+{second}", 25) == 0


def _bucket(text: str, count: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % count


_WORD = re.compile(r"[\w'-]+")


@cache
def _lemmas() -> dict[str, tuple[str, ...]]:
    """English word form → lemma ids of the nouns, verbs and adjectives it may belong to."""
    forms: dict[str, set[str]] = {}
    for noun in NOUNS:
        for form in (noun.en, noun.en_plural):
            forms.setdefault(form, set()).add(f"n:{noun.en}")
    for adjective in ADJECTIVES:
        forms.setdefault(adjective.en, set()).add(f"a:{adjective.en}")
    for verb in VERBS:
        for form in (verb.en, verb.en_s, verb.en_past, verb.en_participle, verb.en_ing):
            forms.setdefault(form, set()).add(f"v:{_verb_id(verb)}")
    return {form: tuple(sorted(ids)) for form, ids in forms.items()}


def meets_held_out(english: str) -> bool:
    """True if anywhere in the sentence a verb or adjective meets a noun held out from it."""
    words = _WORD.findall(english.lower())
    words += [f"{a} {b}" for a, b in zip(words, words[1:], strict=False)]
    words += [f"{a} {b}" for a, b in zip(words, words[2:], strict=False)]
    lemmas = _lemmas()
    found = [lemma for word in words if word in lemmas for lemma in lemmas[word]]
    nouns = [lemma for lemma in found if lemma[0] == "n"]
    return any(is_held_out(other, noun) for other in found if other[0] != "n" for noun in nouns)


def split_of(pair: Sentence, seed: int) -> str:
    """The split a sentence belongs to, by its content alone; "" for none."""
    if any(is_held_out(*words) for words in pair.pairs):
        return "combinations"
    if meets_held_out(pair.en):
        return ""
    bucket = _bucket(f"{seed}:{pair.en}", 40)
    return {0: "validation", 1: "test"}.get(bucket, "train")


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
        if pair.en in seen or split_of(pair, seed) != split or (known and not _words(pair) <= known):
            misses += 1
            if misses > _PATIENCE:
                raise ValueError(
                    f"the grammar gives about {len(seen)} pairs for {split}, not {wanted}; ask for fewer"
                )
            continue
        misses = 0
        seen.add(pair.en)
        yield pair


def _words(pair: Sentence) -> set[str]:
    return {*_WORD.findall(pair.en.lower()), *_WORD.findall(pair.fr.lower())}


@cache
def _training_words(seed: int) -> frozenset[str]:
    """Every word of the default training draw, so that the other splits measure composition alone."""
    return frozenset(word for pair in sentences("train", None, seed) for word in _words(pair))


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


def main(argv: Sequence[str] | None = None) -> None:
    """Print sentence pairs, tab-separated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="train", help=", ".join(SPLIT_SIZES))
    parser.add_argument("--num-pairs", type=int, default=None, help="default: the usual size of the split")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    try:
        for pair in generate(args.split, args.num_pairs, args.seed):
            print(pair["en"], pair["fr"], sep="\t")
        sys.stdout.flush()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader has seen enough; keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
