"""Kinds of sentences of the embedded corpus: statements, questions, orders, reasons, relative clauses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from clauses import (
    AUXILIARIES,
    CHILDHOOD,
    HOURS,
    INVOLUNTARY,
    MOVES,
    TIMES,
    clause,
    complement,
    english_clause,
    english_object,
    french_clause,
    french_object,
    infinitive,
)
from descriptions import (
    BAD_WEATHER,
    CHARACTERS,
    CONDITION,
    LATER,
    NOW,
    PITIABLE,
    THEN,
    be,
    described,
    description,
    excuse,
    has_need,
    is_such,
    state,
    weather,
)
from lexicon import FIXED, NOUNS_BY_KIND, VERBS, Adjective, Verb, french_forms, parse_pairs, table_rows, words
from phrases import (
    ADJECTIVES_BY_KIND,
    MASS,
    NOTHING,
    PRONOUNS,
    STRANGERS,
    WE,
    YOU,
    Phrase,
    agree,
    contract,
    finish,
    noun_phrase,
    object_pronoun,
    other_object,
    person,
    pick,
    pronoun_for,
    spaced,
    subject,
)

Construction = Callable[[Random, Verb], Phrase]
"""Draws a whole sentence around a verb; one that the verb does not fit becomes a statement."""

_BECAUSE = (" because ", " parce que ")
_BUT = (", but ", ", mais ")
_COMMA = (", ", ", ")


def punctuated(phrase: Phrase, mark: str = ".") -> Phrase:
    """End a sentence; French sets "?" and "!" off with a space."""
    return Phrase(phrase.en + mark, phrase.fr + (mark if mark == "." else " " + mark), pairs=phrase.pairs)


def _joined(first: Phrase, link: tuple[str, str], second: Phrase) -> Phrase:
    """A sentence of two clauses."""
    en, fr = f"{first.en}{link[0]}{second.en}", f"{first.fr}{link[1]}{second.fr}"
    return punctuated(Phrase(en, fr, pairs=(*first.pairs, *second.pairs)))


# ---- Simple sentences -----------------------------------------------------------------------------

_ASKING = parse_pairs("when|quand; why|pourquoi")
_WHERE = words("buy find lose meet rent sell study learn hide photograph eat")
_THINGS = frozenset(NOUNS_BY_KIND) - {"subject", "family", "worker", "someone"}


def _statement(rng: Random, verb: Verb) -> Phrase:
    return punctuated(clause(rng, verb))


def _yes_no_question(rng: Random, verb: Verb) -> Phrase:
    asked = clause(rng, verb, kind="question")
    return punctuated(asked._replace(fr=f"est-ce que {asked.fr}"), "?")


def _question(rng: Random, verb: Verb) -> Phrase:
    """Who, what, when, where, why."""
    form = rng.random()
    if form < 0.3:
        polarity = "" if verb.adjunct != "!" else pick(rng, ("", "not"))
        return punctuated(clause(rng, verb, Phrase("who", "qui"), polarity=polarity, kind="bare"), "?")
    kinds = {taken.rpartition(":")[2] for taken in verb.complement}
    is_person = kinds == {"person"}
    has_object = kinds and not verb.preposition and not verb.takes_etre
    if form < 0.55 and has_object and (is_person or kinds <= _THINGS):
        en, fr = ("who", "qui est-ce que") if is_person else ("what", "qu'est-ce que")
        asked = clause(rng, verb, kind="asked", thing=NOTHING)
        return punctuated(asked._replace(en=f"{en} {asked.en}", fr=f"{fr} {asked.fr}"), "?")
    en, fr = ("where", "où") if verb.en in _WHERE and form > 0.75 else pick(rng, _ASKING)
    if verb.adjunct == "!":
        return _yes_no_question(rng, verb)
    if en == "where" or verb.adjunct in HOURS:
        verb = verb._replace(adjunct=".")
    asked = clause(rng, verb, kind="asked")
    return punctuated(asked._replace(en=f"{en} {asked.en}", fr=f"{fr} est-ce que {asked.fr}"), "?")


def _command(rng: Random, verb: Verb) -> Phrase:
    """An order, a prohibition or a proposal: Please close the door. Let's eat!"""
    form = rng.random()
    is_negative, is_ours = form < 0.25, form > 0.7
    thing = complement(rng, verb, WE if is_ours else YOU, "past", "not" if is_negative else "")
    if verb.adjunct == "!" or verb.is_reflexive or thing.clitic or verb.en in INVOLUNTARY:
        return _statement(rng, verb)
    en = spaced(verb.en, english_object(verb, thing))
    fr = spaced(verb.present[3 if is_ours else 4], "pas" if is_negative else "", french_object(verb, thing))
    if is_ours:
        en, fr = f"let's {en}!", f"{fr} !"
    elif is_negative:
        en, fr = f"don't {en}.", f"ne {fr}."
    else:
        en, fr = f"please {en}.", f"{fr}, s'il vous plaît."
    return Phrase(en, fr, pairs=thing.pairs_with(verb.lemma))


def _giving(rng: Random, verb: Verb) -> Phrase:
    """He lent me his bike; they will show the photo to my sister."""
    verb, doer = pick(rng, _GIVING), subject(rng)
    tense = pick(rng, ("past", "past", "will", "going", "can", "want", "would", "must", "just"))
    gift = complement(rng, verb, doer, tense, "")
    if rng.random() < 0.6:
        whom = other_object(rng, doer, True)
        while whom.clitic == "lui":
            whom = other_object(rng, doer, True)
        gift = gift._replace(en=f"{whom.en} {gift.en}", person=2, gender="m", clitic=whom.clitic)
    else:
        whom = person(rng)
        gift = gift._replace(en=f"{gift.en} to {whom.en}", fr=f"{gift.fr} {contract('à', whom.fr)}")
    return punctuated(clause(rng, verb, doer, tense, "", thing=gift))


_GIVING = tuple(v for v in VERBS if v.topic == "giving")


def profession(rng: Random, verb: Verb) -> Phrase:
    """My mother is a dentist, without the article in French."""
    noun = pick(rng, NOUNS_BY_KIND["worker"])
    who = person(rng)
    while who.gender != noun.gender or who.is_plural or who.en.startswith("the "):
        who = person(rng)
    job = noun_phrase(noun, "a").en
    when = pick(rng, (NOW, NOW, THEN, LATER))
    said = Phrase(f"{who.en} {be(who, when)} {job}", f"{who.fr} {AUXILIARIES['être'][when][2]} {noun.fr}")
    if when == NOW and rng.random() < 0.5:
        en, fr = pick(rng, FIXED["city"])
        said = Phrase(f"{said.en} in {en}", f"{said.fr} à {fr}")
    return punctuated(said)


# ---- Two clauses ----------------------------------------------------------------------------------

_OUTDOORS = ("swim", "run", "walk", "go", "go for a walk", "visit", "play", "cross", "travel")
_OUTINGS = tuple(v for v in VERBS if v.name in (*_OUTDOORS, *words("sleep rest wear clean watch stay read")))
_CHILDHOOD_VERBS = tuple(v for v in VERBS if v.name in CHILDHOOD)
_ARRIVALS = tuple(v for v in VERBS if v.name in ("arrive", "come back", "wake up", "get up"))
_LIKINGS = tuple(next(v for v in VERBS if v.name == name) for name in ("like", "prefer"))
_BELIEFS = parse_pairs(
    "I think that|je pense que; I know that|je sais que; I hope that|j'espère que; he says that|il dit que; "
    "she says that|elle dit que; they say that|ils disent que; I am sure that|je suis sûr que; "
    "we know that|nous savons que; it is true that|c'est vrai que; everybody knows that|tout le monde sait que; "
    "he thinks that|il pense que; she thinks that|elle pense que; we hope that|nous espérons que"
)


def _is_excusable(verb: Verb) -> bool:
    """Whether one may have a reason for not doing it."""
    return (
        verb.adjunct not in ("!", "bed", "morning", "night")
        and verb.en not in INVOLUNTARY
        and verb.en != "work"
    )


def _because(rng: Random, verb: Verb) -> Phrase:
    """Something that somebody does not do, and why."""
    doer = subject(rng)
    if not _is_excusable(verb):
        return _statement(rng, verb)
    tense = pick(rng, ("past", "can", "want", "will", "going"))
    when = THEN if tense == "past" else NOW
    first = clause(rng, verb, doer, tense, "not", kind="bare")
    if verb.name in _OUTDOORS and rng.random() < 0.4:
        return _joined(first, _BECAUSE, weather(rng, when, BAD_WEATHER))
    return _joined(first, _BECAUSE, excuse(rng, pronoun_for(doer), when))


def _contrast(rng: Random, verb: Verb) -> Phrase:
    """I would like to dance, but I am tired."""
    doer = subject(rng)
    if not _is_excusable(verb):
        return _statement(rng, verb)
    first = clause(rng, verb, doer, pick(rng, ("want", "would")), "", kind="bare")
    return _joined(first, _BUT, excuse(rng, pronoun_for(doer)))


def _hungry(rng: Random, verb: Verb) -> Phrase:
    """Something that somebody eats, drinks or does, and the need behind it."""
    doer, need = subject(rng), _NEEDS.get(verb.name)
    if need is None or (verb.en == "order" and "cold_drink" in verb.complement and rng.random() < 0.5):
        return _contrast(rng, verb)
    tense = pick(rng, ("past", "going", "want", "would"))
    first = clause(rng, verb, doer, tense, "", kind="bare")
    return _joined(first, _BECAUSE, has_need(pronoun_for(doer), need, THEN if tense == "past" else NOW))


_NEEDS = {
    **dict.fromkeys(("eat", "order"), ("hungry", "faim")),
    **dict.fromkeys(("sleep", "go to bed"), ("sleepy", "sommeil")),
    "drink": ("thirsty", "soif"),
}


def _childhood(rng: Random, verb: Verb) -> Phrase:
    """When I was a child, I used to play chess."""
    doer = pick(rng, PRONOUNS)
    if verb.name not in CHILDHOOD:
        verb = pick(rng, _CHILDHOOD_VERBS)
    en, fr = ("children", "enfants") if doer.is_plural else ("a child", "enfant")
    etre = AUXILIARIES["être"][THEN][doer.person]
    young = Phrase(f"when {doer.en} {be(doer, THEN)} {en}", f"quand {doer.fr} {etre} {fr}")
    return _joined(young, _COMMA, clause(rng, verb, doer, "used", "", "bare"))


def condition(rng: Random, verb: Verb) -> Phrase:
    """If it is sunny tomorrow, we will go to the beach."""
    sky = weather(rng, CONDITION)
    sky = Phrase(f"if {sky.en} tomorrow", f"si {sky.fr} demain")
    outing = pick(rng, _OUTINGS)
    return _joined(sky, _COMMA, clause(rng, outing, None, "will", pick(rng, ("", "", "not")), "bare"))


def _arrival(rng: Random, verb: Verb) -> Phrase:
    """When he arrives at the station, we will take the train: French has the future in both."""
    first, doer = pick(rng, _ARRIVALS), subject(rng)
    if verb.adjunct in ("!", "morning") or verb.en in INVOLUNTARY:
        return _statement(rng, verb)
    place = complement(rng, first, doer, "past", "")
    arriving = Phrase(
        f"when {english_clause(first, doer, 'habit', '', place)}",
        f"quand {french_clause(first, doer, 'will', '', place)}",
        pairs=place.pairs_with(first.lemma),
    )
    then = pronoun_for(doer) if first.is_reflexive else subject(rng)
    return _joined(arriving, _COMMA, clause(rng, verb, then, "will", "", "bare"))


def _belief(rng: Random, verb: Verb) -> Phrase:
    """I think that the soup is delicious; one hopes only for what is still open."""
    en, fr = pick(rng, _BELIEFS)
    what, is_hope = rng.random(), "hope" in en
    if what < 0.5 or is_hope:
        is_open = is_hope and verb.adjunct != "!"
        tense = pick(rng, ("will", "will", "past", "going")) if is_open else ""
        second = clause(rng, verb, tense=tense, kind="embedded")
    else:
        second = state(rng) if what < 0.75 else description(rng)
    return _joined(Phrase(en, fr), (" ", " "), second)


def preference(rng: Random, verb: Verb) -> Phrase:
    """He likes tea, but he prefers coffee."""
    kind = pick(rng, ("food", "hot_drink", "cold_drink", "fruit", "vegetable", "subject"))
    doer = pick(rng, PRONOUNS)
    nouns = pick(rng, NOUNS_BY_KIND[kind]), pick(rng, NOUNS_BY_KIND[kind])
    if nouns[0] is nouns[1]:
        return _statement(rng, verb)
    likes, prefers = (
        clause(rng, liking, doer, "habit", "", thing=noun_phrase(noun, "gen", kind not in MASS))
        for liking, noun in zip(_LIKINGS, nouns, strict=True)
    )
    return _joined(likes, _BUT, prefers)


# ---- Infinitives ----------------------------------------------------------------------------------

_INTENTIONS = parse_pairs(
    "decided to|décider de; forgot to|oublier de; tried to|essayer de; refused to|refuser de; "
    "helped us to|nous aider à; promised to|promettre de; hesitated to|hésiter à; preferred to|préférer"
)
# what it is|in French|to do what
_JUDGEMENTS = table_rows("""
important|important|learn, wash, clean, sign, rest, sleep, read, study, correct, help, thank, listen to
necessary|nécessaire|water, feed, close, clean, wash, repair, prepare, print, wait for, study, invite
easy|facile|learn, understand, draw, cook, play, correct, explain, translate, find, prepare, use
difficult|difficile|learn, understand, draw, paint, play, teach, translate, repair, carry, explain
possible|possible|rent, visit, buy, travel, order, taste, borrow, photograph, cross
impossible|impossible|sleep, rent, repair, find, understand, carry, cross, forget, open, close, move
dangerous|dangereux|swim, cross, run, travel, follow, hide, move
forbidden|interdit|enter, swim, run, dance, sleep, sing, photograph, feed, follow, cross
pleasant|agréable|walk, swim, travel, read, sing, dance, rest, sleep, listen to, visit, eat, drink, play
""")
# place|verb|kinds of things
_ERRANDS = table_rows("""
market|buy|fruit vegetable flower
supermarket|buy|food snack_food staple cold_drink seasoning
bakery|buy|cake
butcher's shop|buy|food
bookshop|buy|book
pharmacy|buy|remedy
library|read|book writing
restaurant|eat|food cake
cinema|see|show
post office|send|card mail
zoo|photograph|pet
""")
_GO = next(v for v in VERBS if v.en == "go" and v.complement)


def _intention(rng: Random, verb: Verb) -> Phrase:
    """He decided to learn Chinese."""
    doer = subject(rng)
    en, fr = pick(rng, _INTENTIONS)
    clitic = "nous" if fr.startswith("nous ") else ""
    name, _, preposition = fr.removeprefix("nous ").partition(" ")
    if verb.adjunct == "!" or verb.en in INVOLUNTARY or (clitic and (doer.person == 3 or verb.is_reflexive)):
        return _statement(rng, verb)
    act = infinitive(rng, verb, doer)
    if clitic and ("nous" in act.fr or " our " in act.en or " my " in act.en):
        return _statement(rng, verb)
    participle = agree(french_forms(name)[3], "m", bool(clitic))
    avoir = AUXILIARIES["avoir"][NOW][doer.person]
    french = spaced(doer.fr, clitic, avoir, participle, preposition, act.fr)
    return punctuated(Phrase(f"{doer.en} {en} {act.en}", french, pairs=act.pairs))


def _judgement(rng: Random, verb: Verb) -> Phrase:
    """It is difficult to learn Chinese."""
    fitting = [(en, fr) for en, fr, names in _JUDGEMENTS if verb.name in names.split(", ")]
    if not fitting or verb.is_reflexive:
        return _statement(rng, verb)
    en, fr = pick(rng, fitting)
    act = infinitive(rng, verb, Phrase("", "", 5))
    if re.search(r"\b(their|leur|leurs)\b", act.en + act.fr):
        return _statement(rng, verb)
    return punctuated(Phrase(f"it is {en} to {act.en}", f"il est {fr} de {act.fr}", pairs=act.pairs))


def _errand(rng: Random, verb: Verb) -> Phrase:
    """I am going to the market to buy some apples."""
    place_name, verb_name, kinds = pick(rng, _ERRANDS)
    place = noun_phrase(next(n for n in NOUNS_BY_KIND["place"] if n.en == place_name), "the")
    there = Phrase(f"to {place.en}", contract("à", place.fr), noun=place.noun)
    doing = next(v for v in VERBS if v.en == verb_name)._replace(complement=words(kinds), adjunct=".")
    doer, tense = subject(rng), pick(rng, ("past", "will", "must", "want"))
    first = clause(rng, _GO._replace(adjunct="."), doer, tense, "", "bare", there)
    return _joined(first, (" to ", " pour "), infinitive(rng, doing, doer))


# ---- Something taken up ---------------------------------------------------------------------------

_WORK = next(v for v in VERBS if v.en == "work")
_LIVE = _WORK._replace(en="live", en_s="lives", present=french_forms("habiter")[0])
_CARING = words("help call visit telephone")
_FRIENDLY = words("thank invite talk greet")


def _suited(rng: Random, verb: Verb, det: str = "") -> tuple[Phrase, Adjective] | None:
    """Something the verb takes as direct object, with an adjective that suits it."""
    taken = [(how, kind) for how, _, kind in (taken.rpartition(":") for taken in verb.complement)]
    kinds = [k for how, k in taken if how not in MOVES and k in ADJECTIVES_BY_KIND and k in NOUNS_BY_KIND]
    if not kinds or verb.preposition or verb.adjunct == "!":
        return None
    return described(rng, pick(rng, kinds), 0.2, det)


def _relative(rng: Random, verb: Verb) -> Phrase:
    """The apples that I bought yesterday are ripe: the participle agrees with what precedes it."""
    suited, doer = _suited(rng, verb, "the"), subject(rng)
    if suited is None:
        return _person_relative(rng)
    thing, adjective = suited
    when_en, when_fr = pick(rng, TIMES["past"]) if rng.random() < 0.5 else ("", "")
    did = english_clause(verb, doer, "past", "", NOTHING)
    avoir = AUXILIARIES["avoir"][NOW][doer.person]
    participle = agree(verb.participle, thing.gender, thing.is_plural)
    what = thing._replace(
        en=spaced(thing.en, "that", did, when_en),
        fr=spaced(thing.fr, "que", doer.fr, avoir, participle, when_fr),
    )
    said = is_such(what, adjective, pick(rng, (NOW, THEN)), rng.random() < 0.15)
    return punctuated(said._replace(pairs=(*said.pairs, (verb.lemma, thing.noun))))


def _person_relative(rng: Random) -> Phrase:
    """The doctor who works in Lyon is very kind."""
    is_plural = rng.random() < 0.25
    who = noun_phrase(pick(rng, STRANGERS), "the", is_plural)
    verb = _LIVE if rng.random() < 0.5 else _WORK
    city_en, city_fr = pick(rng, FIXED["city"])
    en = f"{who.en} who {verb.en if is_plural else verb.en_s} in {city_en}"
    fr = f"{who.fr} qui {verb.present[who.person]} à {city_fr}"
    return punctuated(is_such(who._replace(en=en, fr=fr), pick(rng, CHARACTERS)))


def _taken_up(rng: Random, verb: Verb) -> Phrase:
    """This shirt is beautiful. I would like to buy it."""
    suited, doer = _suited(rng, verb), pick(rng, [p for p in PRONOUNS if p is not YOU])
    if suited is None:
        return _person_taken_up(rng, verb)
    thing, adjective = suited
    clitic = "les" if thing.is_plural else "la" if thing.gender == "f" else "le"
    it = thing._replace(en="them" if thing.is_plural else "it", fr="", clitic=clitic, pairs=())
    tense = pick(rng, ("will", "would", "past", "want", "going", "perfect", "can"))
    if verb.en in INVOLUNTARY:
        tense = "past"
    polarity = "already" if tense == "perfect" else "" if tense == "would" else pick(rng, ("", "", "not"))
    second = clause(rng, verb._replace(adjunct="."), doer, tense, polarity, "bare", it)
    return _two_sentences(is_such(thing, adjective), second)


def _person_taken_up(rng: Random, verb: Verb) -> Phrase:
    """My mother is tired. I am going to help her."""
    if verb.complement != ("person",) or verb.en not in (*_CARING, *_FRIENDLY):
        return _statement(rng, verb)
    who, doer = person(rng), pick(rng, (PRONOUNS[0], WE))
    them = object_pronoun(pronoun_for(who), bool(verb.preposition))._replace(noun=who.noun)
    tense = pick(rng, ("will", "going", "must", "want", "would"))
    second = clause(rng, verb._replace(adjunct="."), doer, tense, "", "bare", them)
    first = is_such(who, pick(rng, PITIABLE if verb.en in _CARING else CHARACTERS))
    return _two_sentences(first, second)


def _two_sentences(first: Phrase, second: Phrase) -> Phrase:
    en, fr = finish(second.en, second.fr)
    return _joined(first, (". ", ". "), second._replace(en=en, fr=fr))


CONSTRUCTIONS: Sequence[Construction] = (
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
CONSTRUCTIONS_OF_TOPIC: dict[str, Sequence[Construction]] = {
    "weather": (condition,),
    "work": (profession, *CONSTRUCTIONS[:20]),
    "restaurant": (preference, preference, *CONSTRUCTIONS),
}
"""For topics that have constructions of their own."""
