"""What is so, in the embedded corpus: states, excuses, descriptions, comparisons and the weather."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from clauses import AUXILIARIES, BE, NEGATED
from lexicon import NOUNS_BY_KIND, Adjective, parse_pairs, words
from phrases import (
    ADJECTIVES_BY_KIND,
    ALWAYS_PLURAL,
    MASS,
    OWNED,
    Phrase,
    noun_phrase,
    pick,
    subject,
)

NOW, THEN, LATER = range(3)
"""When something is so; also the place of the tense in the French forms of a verb."""

# ---- People ---------------------------------------------------------------------------------------

_IDIOMS = parse_pairs(
    "hungry|faim; thirsty|soif; cold|froid; hot|chaud; afraid|peur; sleepy|sommeil; right|raison"
)
_BURDENS = parse_pairs(
    "a headache|mal à la tête; a cold|un rhume; a lot of work|beaucoup de travail; an exam|un examen; "
    "a fever|de la fièvre; an appointment|un rendez-vous; a sore throat|mal à la gorge; "
    "too much work|trop de travail"
)
_STATES = ADJECTIVES_BY_KIND["person"]
CHARACTERS = ADJECTIVES_BY_KIND["character"]
PITIABLE = tuple(a for a in _STATES if a.en in ("ill", "alone", "worried", "tired", "disappointed"))
_EXCUSING = tuple(a for a in _STATES if a.en in ("tired", "ill", "busy", "in a hurry"))


def be(doer: Phrase, when: int) -> str:
    """The English "be" that goes with a subject."""
    if when == THEN:
        return "was" if doer.person in (0, 2) else "were"
    return BE[doer.person] if when == NOW else "will be"


def is_such(doer: Phrase, adjective: Adjective, when: int = NOW, is_negative: bool = False) -> Phrase:
    """Noun phrase, "be" and an adjective that agrees; nothing is denied of the future."""
    is_, est = be(doer, when), AUXILIARIES["être"][when][doer.person]
    if is_negative and when != LATER:
        is_, est = NEGATED.get(is_, is_ + "n't"), f"ne {est} pas"
    return Phrase(
        f"{doer.en} {is_} {adjective.en}",
        f"{doer.fr} {est} {adjective.form(doer.gender, doer.is_plural)}",
        pairs=doer.pairs_with(f"a:{adjective.en}"),
    )


def has_need(doer: Phrase, need: tuple[str, str], when: int = NOW) -> Phrase:
    """Somebody is hungry, thirsty, sleepy: French has hunger, thirst, sleep."""
    en, fr = need
    avoir = AUXILIARIES["avoir"][when][doer.person]
    return Phrase(f"{doer.en} {be(doer, when)} {en}", f"{doer.fr} {avoir} {fr}", pairs=doer.pairs)


def state(rng: Random, doer: Phrase | None = None, when: int = NOW) -> Phrase:
    """Somebody is, was or will be tired, hungry, kind."""
    doer = doer or subject(rng)
    if rng.random() < 0.35:
        return has_need(doer, pick(rng, _IDIOMS), when)
    adjectives = _STATES if when != NOW or rng.random() < 0.6 else CHARACTERS
    return is_such(doer, pick(rng, adjectives), when, rng.random() < 0.15)


def excuse(rng: Random, doer: Phrase, when: int = NOW) -> Phrase:
    """Why somebody does not, or did not, do something: too tired, no time, work to do."""
    form, is_third = rng.random(), doer.person == 2
    avoir, devoir = (AUXILIARIES[name][when][doer.person] for name in ("avoir", "devoir"))
    have = "had" if when == THEN else "has" if is_third else "have"
    if form < 0.2:
        do = "didn't" if when == THEN else "doesn't" if is_third else "don't"
        return Phrase(f"{doer.en} {do} have time", f"{doer.fr} ne {avoir} pas le temps")
    if form < 0.35:
        return Phrase(f"{doer.en} {have} to work", f"{doer.fr} {devoir} travailler")
    if form < 0.5:
        en, fr = pick(rng, _BURDENS)
        return Phrase(f"{doer.en} {have} {en}", f"{doer.fr} {avoir} {fr}")
    if form < 0.6:
        return has_need(doer, ("sleepy", "sommeil"), when)
    return is_such(doer, pick(rng, _EXCUSING), when)


# ---- Things ---------------------------------------------------------------------------------------

_SAID_OF = {kind: tuple(a for a in found if a.en != "new") for kind, found in ADJECTIVES_BY_KIND.items()}
_KINDS = tuple(kind for kind in ADJECTIVES_BY_KIND if kind not in ("person", "character"))
_COMPARED = words("""beautiful expensive elegant comfortable practical modern famous interesting boring useful
    difficult important""")
_DEGREES = (("very", "très"), ("really", "vraiment"), ("quite", "assez"))
_TOO = words("small big expensive heavy long short difficult easy hot cold salty sweet old")
_ABSOLUTE = words("""red blue green black white grey yellow purple pink brown delicious excellent magnificent broken
    secret empty ancient fat""")


def described(rng: Random, kind: str, plural_rate: float = 0.25, det: str = "") -> tuple[Phrase, Adjective]:
    """A noun phrase of a kind, definite unless another determiner is given, and an adjective that suits it."""
    is_plural = kind in ALWAYS_PLURAL or (kind not in MASS and rng.random() < plural_rate)
    dets = ("the", "this", "my4", "my0") if kind in OWNED else ("the", "this")
    det = det or ("gen" if kind == "subject" else pick(rng, dets))
    return noun_phrase(pick(rng, NOUNS_BY_KIND[kind]), det, is_plural), pick(rng, _SAID_OF[kind])


def description(rng: Random) -> Phrase:
    """A thing is or was such: the soup is delicious, the house is less beautiful than the flat."""
    kind = pick(rng, _KINDS)
    thing, adjective = described(rng, kind)
    is_subject = kind == "subject"
    form = rng.random()
    said = is_such(thing, adjective, THEN if form < 0.25 and not is_subject else NOW, 0.2 < form < 0.4)
    if adjective.en in _COMPARED and form > 0.7:
        other = noun_phrase(pick(rng, NOUNS_BY_KIND[kind]), "gen" if is_subject else "the", thing.is_plural)
        if other.noun != thing.noun:
            said = _graded(said, *pick(rng, (("more", "plus"), ("less", "moins"))))
            return said._replace(en=f"{said.en} than {other.en}", fr=f"{said.fr} que {other.fr}")
    if form > 0.6 and adjective.en not in _ABSOLUTE:
        return _graded(said, *pick(rng, (*_DEGREES, ("too", "trop")) if adjective.en in _TOO else _DEGREES))
    return said


def _graded(said: Phrase, en_degree: str, fr_degree: str) -> Phrase:
    """Put a degree before the last word of a description, which is the adjective."""
    en, _, en_last = said.en.rpartition(" ")
    fr, _, fr_last = said.fr.rpartition(" ")
    return said._replace(en=f"{en} {en_degree} {en_last}", fr=f"{fr} {fr_degree} {fr_last}")


# ---- The weather ----------------------------------------------------------------------------------

EVENT, CONDITION = 3, 4
"""Forms of the weather beyond now, then and later: what happened, and after "if"."""
Weather = tuple[tuple[str, ...], tuple[str, ...]]


def _weather_forms(en: str, fr: str) -> Weather:
    """All forms, from the present."""
    present, then, later = ("y a", "y avait", "y aura") if "y a" in fr else ("fait", "faisait", "fera")
    return (
        tuple(en.replace(" is ", f" {form} ") for form in ("is", "was", "will be", "was", "is")),
        tuple(fr.replace(present, form) for form in (present, then, later, then, present)),
    )


BAD_WEATHER: tuple[Weather, ...] = (
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
_ANY_WEATHER = (
    *BAD_WEATHER,
    _weather_forms("it is hot", "il fait chaud"),
    _weather_forms("it is sunny", "il y a du soleil"),
    _weather_forms("the weather is nice", "il fait beau"),
    _weather_forms("it is mild", "il fait doux"),
)


def weather(rng: Random, form: int = NOW, among: Sequence[Weather] = _ANY_WEATHER) -> Phrase:
    """The weather: it is raining, it was windy, it will be hot."""
    en, fr = pick(rng, among)
    return Phrase(en[form], fr[form])
