"""Noun phrases of the embedded corpus, and the French surface: agreement, elision, contraction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from lexicon import ADJECTIVES, ASPIRATED, NOUNS_BY_KIND, Adjective, Noun, words

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]
"""Lemmas that meet in a phrase: ("a:red", "n:car"), ("v:buy", "n:car")."""


class Phrase(NamedTuple):
    """A piece of a sentence in both languages."""

    en: str
    fr: str
    person: int = 2
    """0 to 5, as je, tu, il, nous, vous, ils; "you" is the polite "vous"."""
    gender: str = "m"
    pairs: Pairs = ()
    clitic: str = ""
    """The French pronoun before the verb that stands for the phrase."""
    noun: str = ""
    """The lemma of its noun."""

    @property
    def is_plural(self) -> bool:
        """True where French agrees in the plural; the polite "vous" does not."""
        return self.person in (3, 5)

    def pairs_with(self, lemma: str) -> Pairs:
        """Its pairs once a verb or an adjective meets its noun."""
        return (*self.pairs, (lemma, self.noun)) if self.noun else self.pairs


NOTHING = Phrase("", "")


def pick(rng: Random, items: Sequence[T]) -> T:
    """Like rng.choice, but the same on every Python version."""
    return items[int(rng.random() * len(items))]


def spaced(*parts: str) -> str:
    """The parts that are there, with a space between."""
    return " ".join(filter(None, parts))


# ---- French surface -------------------------------------------------------------------------------

_VOWELS = "aeiouàâéèêëîïôûùœh"
_NOT_ASPIRATED = "(?!" + "|".join(ASPIRATED) + r"|oui\b)"
_BEFORE_VOWEL = rf"(?={_NOT_ASPIRATED}(?:[{_VOWELS}AEIOUÉ]|y\b))"
# What goes comes first, and what is before it is looked up behind: eight times as fast as the other way round.
_ELISION = re.compile(
    rf"[ea] (?:(?<=\b[JjNnDdMmTtSsLl]. )|(?<=\b[Qq]u. )){_BEFORE_VOWEL}|i (?<=\b[Ss]i )(?=ils?\b)"
)
_STARTS_WITH_VOWEL = re.compile(f"{_NOT_ASPIRATED}[{_VOWELS}]")


def elide(french: str) -> str:
    """Join "je ai" to "j'ai", "que il" to "qu'il", "si il" to "s'il"; h aspiré stays apart."""
    return _ELISION.sub("'", french)


def contract(preposition: str, french: str) -> str:
    """Put a preposition before a noun phrase; "à" and "de" make "au", "aux", "du", "des" with the article."""
    head, _, last = preposition.rpartition(" ")
    article, _, noun = french.partition(" ")
    form = _CONTRACTIONS.get((last, article))
    return spaced(head, form, noun) if form else f"{preposition} {french}"


_CONTRACTIONS = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}


def agree(participle: str, gender: str, is_plural: bool) -> str:
    """Give a participle the gender and number of what it agrees with."""
    participle += "e" if gender == "f" else ""
    return participle + "s" if is_plural and participle[-1] != "s" else participle


def finish(english: str, french: str) -> tuple[str, str]:
    """Capital first letters, and elision in French."""
    french = elide(french)
    return english[0].upper() + english[1:], french[0].upper() + french[1:]


# ---- Noun phrases ---------------------------------------------------------------------------------

MASS = words("food snack_food hot_drink cold_drink staple seasoning subject")
"""Kinds of nouns that have no plural."""
OWNED = words("""clothes pair belonging machine furniture vehicle stationery book pet farm textile toy dish mail
    paper lesson""")
"""Kinds of things that somebody has."""
ALWAYS_PLURAL = ("pair",)
ADJECTIVES_BY_KIND = {
    kind: tuple(a for a in ADJECTIVES if kind in a.kinds)
    for kind in dict.fromkeys(k for a in ADJECTIVES for k in a.kinds)
}
# True of things one has, but not what one goes out for: nobody orders cold soup.
_PREDICATIVE = words("bad broken dirty boring hot cold salty practical useful empty heavy sad")
ATTRIBUTIVE = {
    kind: tuple(a for a in adjectives if a.en not in _PREDICATIVE)
    for kind, adjectives in ADJECTIVES_BY_KIND.items()
}
_EN_POSSESSIVES = words("my your his our your their")
_FR_POSSESSIVES = tuple(
    words(forms)
    for forms in (
        "mon ma mes",
        "ton ta tes",
        "son sa ses",
        "notre notre nos",
        "votre votre vos",
        "leur leur leurs",
    )
)


def en_determiner(det: str, following: str, is_plural: bool, owner_gender: str) -> str:
    """The English determiner with its space, for the words that follow."""
    if det == "a":
        return "an " if following[0] in "aeiou" and not following.startswith(("uni", "use")) else "a "
    if det in ("bare", "gen", "none"):
        return ""
    if det in ("the", "some"):
        return det + " "
    if det in ("no", "any"):
        return "any "
    if det == "this":
        return "these " if is_plural else "this "
    return ("her" if det == "my2" and owner_gender == "f" else _EN_POSSESSIVES[int(det[-1])]) + " "


def fr_determiner(
    det: str, following: str, gender: str, is_plural: bool = False, is_adjective_next: bool = False
) -> str:
    """The French determiner with its space, or apostrophe, for the words that follow."""
    is_feminine, before_vowel = gender == "f", starts_with_vowel(following)
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
            return "de " if is_adjective_next else "des "
        return "de l'" if before_vowel else "de la " if is_feminine else "du "
    owner = _FR_POSSESSIVES[int(det[-1])]
    return owner[2 if is_plural else 1 if is_feminine and not before_vowel else 0] + " "


def starts_with_vowel(french: str) -> bool:
    """True where French elides before a word."""
    return _STARTS_WITH_VOWEL.match(french) is not None


def noun_phrase(
    noun: Noun, det: str, is_plural: bool = False, adjective: Adjective | None = None, owner_gender: str = "m"
) -> Phrase:
    """Determiner, adjective and noun, agreeing.

    Args:
        det: a, the, this, some, any, bare (no English determiner), gen (in general), no and none (after
            a negation; "any" and no determiner in English), or "my" and the person 0 to 5 of the owner.
        owner_gender: "f" makes the third person "her".
    """
    en, fr = (noun.en_plural, noun.fr_plural) if is_plural else (noun.en, noun.fr)
    lemma, is_adjective_next = f"n:{noun.en}", False
    pairs: Pairs = ()
    if adjective:
        en = f"{adjective.en} {en}"
        is_adjective_next = adjective.is_before_noun
        form = adjective.form(noun.gender, is_plural)
        if is_adjective_next and not is_plural and noun.gender == "m" and starts_with_vowel(fr):
            form = adjective.fr[4]
        fr = f"{form} {fr}" if is_adjective_next else f"{fr} {form}"
        pairs = ((f"a:{adjective.en}", lemma),)
    return Phrase(
        en_determiner(det, en, is_plural, owner_gender) + en,
        fr_determiner(det, fr, noun.gender, is_plural, is_adjective_next) + fr,
        5 if is_plural else 2,
        noun.gender,
        pairs,
        noun=lemma,
    )


def some_noun(
    rng: Random,
    kind: str,
    det: str,
    adjective_rate: float = 0.3,
    is_plural: bool = False,
    owner_gender: str = "m",
) -> Phrase:
    """A random noun of a kind, perhaps with an adjective that suits the kind."""
    noun, adjectives = pick(rng, NOUNS_BY_KIND[kind]), ATTRIBUTIVE.get(kind)
    adjective = pick(rng, adjectives) if adjectives and rng.random() < adjective_rate else None
    return noun_phrase(noun, det, is_plural or kind in ALWAYS_PLURAL, adjective, owner_gender)


# ---- People ---------------------------------------------------------------------------------------

WOMEN = tuple(Phrase(n, n, 2, "f") for n in words("Marie Sophie Julie Claire Alice Anne Camille Louise Emma"))
FIRST_NAMES = (
    tuple(Phrase(n, n) for n in words("Paul Pierre Thomas Nicolas Lucas Louis Martin Victor Antoine")) + WOMEN
)
PRONOUNS = (
    Phrase("I", "je", 0),
    Phrase("you", "vous", 4),
    Phrase("he", "il", 2),
    Phrase("she", "elle", 2, "f"),
    Phrase("we", "nous", 3),
    Phrase("they", "ils", 5),
)
_, YOU, HE, SHE, WE, _ = PRONOUNS
_OBJECTS = {"I": ("me", "me"), "you": ("you", "vous"), "he": ("him", "le"), "she": ("her", "la")}
_OBJECTS |= {"we": ("us", "nous"), "they": ("them", "les")}
_INDIRECT = {"le": "lui", "la": "lui", "les": "leur"}
STRANGERS = NOUNS_BY_KIND["worker"] + NOUNS_BY_KIND["someone"]


def relative(
    rng: Random, owners: Sequence[str], is_plural: bool = False, names: Sequence[str] = ()
) -> Phrase:
    """Somebody's mother or friend; one has but one wife, and shares her with nobody."""
    family = NOUNS_BY_KIND["family"]
    noun = pick(rng, [noun for noun in family if noun.en in names] if names else family)
    owner = pick(rng, owners)
    if noun.en in ("wife", "mother", "father"):
        is_plural, owner = False, "my0" if owner == "my3" and noun.en == "wife" else owner
    return noun_phrase(noun, owner, is_plural)


def person(rng: Random) -> Phrase:
    """Somebody named: my brother, the doctors, Marie."""
    form = rng.random()
    if form < 0.2:
        return pick(rng, FIRST_NAMES)
    is_plural = rng.random() < 0.2
    if form < 0.65:
        return relative(rng, ("my0", "my0", "my4", "my3"), is_plural)
    return noun_phrase(pick(rng, STRANGERS), "the", is_plural)


def subject(rng: Random) -> Phrase:
    """Who does it: mostly a pronoun."""
    return pick(rng, PRONOUNS) if rng.random() < 0.6 else person(rng)


def pronoun_for(doer: Phrase) -> Phrase:
    """The pronoun that takes up a subject; feminine plurals keep their gender in French."""
    if doer.person == 2:
        return SHE if doer.gender == "f" else HE
    if doer.person == 5 and doer.gender == "f":
        return Phrase("they", "elles", 5, "f")
    return next(p for p in PRONOUNS if p.person == doer.person)


def object_pronoun(who: Phrase, is_indirect: bool) -> Phrase:
    """The object form of a personal pronoun; `fr` is empty because it stands before the verb."""
    en, clitic = _OBJECTS[who.en]
    if is_indirect:
        clitic = _INDIRECT.get(clitic, clitic)
    return Phrase(en, "", who.person, who.gender, clitic=clitic)


def other_object(rng: Random, doer: Phrase, is_indirect: bool) -> Phrase:
    """An object pronoun other than the doer's own; "I" and "we" do not meet."""
    others = [p for p in PRONOUNS if p.person != doer.person and {p.person, doer.person} != {0, 3}]
    return object_pronoun(pick(rng, others), is_indirect)
