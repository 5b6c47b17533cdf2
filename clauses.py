"""Clauses of the embedded corpus: verbs with their objects, tenses, negation, questions, times and places."""

from __future__ import annotations

from random import Random

from lexicon import FIXED, NOUNS_BY_KIND, PROPER, Verb, french_forms, parse_tables, words
from phrases import (
    ALWAYS_PLURAL,
    MASS,
    NOTHING,
    OWNED,
    Phrase,
    agree,
    contract,
    fr_determiner,
    noun_phrase,
    other_object,
    person,
    pick,
    some_noun,
    spaced,
    subject,
)
from quantities import clock_time

# ---- Verb and object ------------------------------------------------------------------------------

BE = ("am", "are", "is", "are", "are", "are")
NEGATED = {"am": "am not", "will": "won't", "can": "can't"}
"""Where it isn't the auxiliary with "n't"."""
AUXILIARIES = {name: french_forms(name) for name in words("avoir être aller venir pouvoir devoir vouloir")}
_MODALS = {"going": "aller", "just": "venir", "can": "pouvoir", "must": "devoir", "want": "vouloir"}
_WOULD_LIKE = tuple("voudr" + ending for ending in words("ais ais ait ions iez aient"))
_REFLEXIVE = words("me te se nous vous se")
_ADVERBS = {"often": "souvent", "always": "toujours", "sometimes": "parfois", "rarely": "rarement"}
_POLARITY = {"not": "pas", "never": "jamais", "no longer": "plus", "yet": "pas encore", "already": "déjà"}
_POLARITY |= _ADVERBS
_NEGATIVE = ("not", "never", "no longer", "yet")


def _english_tense(verb: Verb, who: int, tense: str) -> tuple[str, str, str]:
    """Auxiliary, what follows it, and the form used when the auxiliary is an unspoken "do"."""
    is_third = who == 2
    base, have, do = verb.en, "has" if is_third else "have", "does" if is_third else "do"
    if tense == "habit":
        return do, base, verb.en_s if is_third else base
    if tense == "past":
        return "did", base, verb.en_past
    if tense == "used":
        return "did", f"use to {base}", f"used to {base}"
    if tense == "want":
        return do, f"want to {base}", f"{'wants' if is_third else 'want'} to {base}"
    if tense == "perfect":
        return have, verb.en_participle, ""
    if tense == "just":
        return have, f"just {verb.en_participle}", ""
    if tense in ("prog", "going"):
        return BE[who], verb.en_ing if tense == "prog" else f"going to {base}", ""
    return ("would", f"like to {base}", "") if tense == "would" else (tense, base, "")


def english_clause(
    verb: Verb, doer: Phrase, tense: str, polarity: str, thing: Phrase, is_question: bool = False
) -> str:
    """Subject, verb and object in English, in question order if asked."""
    aux, rest, plain = _english_tense(verb, doer.person, tense)
    adverb = "" if polarity in ("not", "yet") else polarity
    behind = english_object(verb, thing)
    if is_question:
        return spaced(aux, doer.en, adverb, rest, behind)
    if polarity in ("not", "yet"):
        return spaced(doer.en, NEGATED.get(aux, aux + "n't"), rest, behind)
    return spaced(doer.en, "" if plain else aux, adverb, plain or rest, behind)


def english_object(verb: Verb, thing: Phrase) -> str:
    """The verb's particle and its object: "on the coat", but "it on"."""
    if verb.particle == "on" and thing.clitic:
        return f"{thing.en} on"
    return spaced(verb.particle, thing.en)


def _french_tense(verb: Verb, doer: Phrase, tense: str, clitic: str, thing: Phrase) -> tuple[str, str]:
    """The finite verb with its clitic, and what follows it."""
    who = doer.person
    simple = {"habit": verb.present, "prog": verb.present, "will": verb.future, "used": verb.imperfect}
    if tense in simple:
        return spaced(clitic, simple[tense][who]), ""
    if tense in ("past", "perfect"):
        participle = verb.participle
        if verb.takes_etre:
            participle = agree(participle, doer.gender, doer.is_plural)
        elif clitic in ("me", "le", "la", "les", "nous", "vous") and not verb.preposition:
            participle = agree(participle, thing.gender, thing.is_plural)
        return spaced(clitic, AUXILIARIES["être" if verb.takes_etre else "avoir"][0][who]), participle
    infinitive = spaced("de" if tense == "just" else "", clitic, verb.fr)
    return _WOULD_LIKE[who] if tense == "would" else AUXILIARIES[_MODALS[tense]][0][who], infinitive


def french_clause(verb: Verb, doer: Phrase, tense: str, polarity: str, thing: Phrase) -> str:
    """Subject, clitics, negation, verb and object in French."""
    finite, rest = _french_tense(verb, doer, tense, _clitic(verb, doer, thing), thing)
    ne = "ne" if polarity in _NEGATIVE else ""
    return spaced(doer.fr, ne, finite, _POLARITY.get(polarity, ""), rest, french_object(verb, thing))


def _clitic(verb: Verb, doer: Phrase, thing: Phrase) -> str:
    return _REFLEXIVE[doer.person] if verb.is_reflexive else thing.clitic


def french_object(verb: Verb, thing: Phrase) -> str:
    """What follows the verb: the object behind its preposition, or "visite" once "lui" stands in front."""
    if thing.clitic:
        return verb.preposition.rpartition(" ")[0] + thing.fr
    return contract(verb.preposition, thing.fr) if verb.preposition and thing.fr else thing.fr


# ---- What a verb takes ----------------------------------------------------------------------------

_PLURAL = (*ALWAYS_PLURAL, "fruit", "vegetable")
"""Kinds of things that verbs take by the pair or the kilo."""
MOVES = {"to": "à", "at": "à", "in": "à", "from": "de"}
"""English prepositions of place → French ones, before a noun or the name of a city."""


def complement(rng: Random, verb: Verb, doer: Phrase, tense: str, polarity: str) -> Phrase:
    """What the verb takes: a thing, a person, a place or nothing."""
    if not verb.complement:
        return NOTHING
    how, _, kind = pick(rng, verb.complement).rpartition(":")
    if kind in ("country", "land"):
        return _country(rng, how, kind == "land" or verb.en == "visit")
    if kind in FIXED:
        return _fixed(rng, kind, how, polarity)
    if kind == "place" and how in MOVES:
        spot = some_noun(rng, "place", "the", 0.15)
        return spot._replace(en=f"{how} {spot.en}", fr=contract(MOVES[how], spot.fr))
    if kind == "person":
        if rng.random() < 0.4 and not verb.is_reflexive:
            return other_object(rng, doer, bool(verb.preposition))
        return person(rng)
    return _thing(rng, kind, how, doer, "own" if verb.en == "have" else tense, polarity)


def _country(rng: Random, how: str, is_direct: bool) -> Phrase:
    """A country after a preposition, or with its article."""
    en, fr = pick(rng, FIXED["country"])
    if not is_direct:
        return Phrase(f"{how} {en}", fr, noun=f"n:{en}")
    preposition, _, name = fr.partition(" ")
    return Phrase(en, fr_determiner("the", name.lower(), "f" if preposition == "en" else "m") + name)


def _fixed(rng: Random, kind: str, how: str, polarity: str) -> Phrase:
    """A city, a language, a game: names that take no determiner of ours."""
    en, fr = pick(rng, FIXED[kind])
    if kind == "song" and polarity in _NEGATIVE:
        return Phrase("any songs", "de chansons")
    if how in MOVES:
        return Phrase(f"{how} {en}", contract(MOVES[how], fr), noun=f"n:{en}")
    if how == "gen":
        fr = fr_determiner("the", fr, "m") + fr
    return Phrase(en, fr, noun=f"n:{en}" if kind in PROPER else "")


def _thing(rng: Random, kind: str, how: str, doer: Phrase, tense: str, polarity: str) -> Phrase:
    """A noun phrase whose determiner suits the tense, the polarity and the kind."""
    if how == "gen":
        return noun_phrase(pick(rng, NOUNS_BY_KIND[kind]), "gen", kind not in MASS)
    is_plural = kind in _PLURAL or rng.random() < 0.25
    dets, is_plural = _determiners(kind, how, doer, tense, polarity, is_plural)
    det = pick(rng, dets)
    if polarity in _NEGATIVE and det in ("a", "some", "bare"):
        # "any bread", "a car" → "de pain", "de voiture"
        noun = pick(rng, NOUNS_BY_KIND[kind])
        english = noun_phrase(noun, "no" if det == "some" else det, is_plural).en
        return noun_phrase(noun, "no", is_plural)._replace(en=english)
    return some_noun(rng, kind, det, 0.3, is_plural, doer.gender)


def _determiners(
    kind: str, how: str, doer: Phrase, tense: str, polarity: str, is_plural: bool
) -> tuple[tuple[str, ...], bool]:
    """The determiners to choose from, and whether the plural fits them."""
    is_habit = tense in ("habit", "used")
    if how == "the":
        dets = ("the", "the", *((f"my{doer.person}",) if kind in OWNED else ()))
        if is_habit:
            return dets, kind not in (*MASS, "room", "ride")
        return (*dets, "this"), is_plural and kind not in MASS
    if kind in MASS:
        return (*("bare" if is_habit or tense == "can" else "some",) * 4, "the"), False
    if is_habit and polarity not in _NEGATIVE:
        return ("bare",), True
    if is_plural:
        return ("some",), True
    return ("a",) if tense == "own" else ("a", "a", "the", "this"), False


# ---- Times and places -----------------------------------------------------------------------------

_FUTURE = """tomorrow|demain; tomorrow morning|demain matin; next week|la semaine prochaine; tonight|ce soir;
    in three days|dans trois jours; next Monday|lundi prochain; soon|bientôt; tomorrow evening|demain soir;
    in an hour|dans une heure; next Thursday|jeudi prochain; the day after tomorrow|après-demain;
    this afternoon|cet après-midi"""
_SOON = "today|aujourd'hui; tomorrow|demain; this afternoon|cet après-midi; tonight|ce soir"
TIMES = parse_tables(f"""
habit: every day|tous les jours; every morning|tous les matins; every evening|tous les soirs;
    every week|toutes les semaines; at weekends|le week-end; every month|tous les mois;
    every other day|un jour sur deux; every Sunday|tous les dimanches; every Saturday|tous les samedis;
    in the morning|le matin; in the evening|le soir; every afternoon|tous les après-midi;
    twice a week|deux fois par semaine; once a month|une fois par mois
prog: now|maintenant; at the moment|en ce moment; at this very moment|en ce moment même
past: yesterday|hier; yesterday evening|hier soir; last week|la semaine dernière; this morning|ce matin;
    two days ago|il y a deux jours; yesterday morning|hier matin; an hour ago|il y a une heure;
    last Sunday|dimanche dernier; last Friday|vendredi dernier; the day before yesterday|avant-hier
used: every day|tous les jours; every summer|tous les étés; every evening|tous les soirs;
    every Sunday|tous les dimanches; every week|toutes les semaines; during the holidays|pendant les vacances
will: {_FUTURE}
going: {_FUTURE}
would: {_FUTURE}
can: {_SOON}
want: {_SOON}
must: {_SOON}
""")
_LONG_TIMES = parse_tables("""
past: last month|le mois dernier; last year|l'année dernière; last summer|l'été dernier;
    three weeks ago|il y a trois semaines; two years ago|il y a deux ans; last winter|l'hiver dernier
will: next month|le mois prochain; next year|l'année prochaine; next summer|l'été prochain;
    in two weeks|dans deux semaines; in two months|dans deux mois
""")
_LASTING = words("visit go work study learn teach rent sell travel organise write meet")
_PLACES = parse_tables("""
room: in the kitchen|dans la cuisine; in the garden|dans le jardin; at home|à la maison;
    in the living room|dans le salon; on the terrace|sur la terrasse; on the balcony|sur le balcon
bed: in the bedroom|dans la chambre; in the living room|dans le salon; at home|à la maison;
    in this room|dans cette pièce; upstairs|à l'étage
shop: at the market|au marché; at the supermarket|au supermarché; in this shop|dans ce magasin;
    in town|en ville; at the department store|au grand magasin
market: at the market|au marché; on the internet|sur internet; in town|en ville
restaurant: at the restaurant|au restaurant; in the café|dans le café
park: in the park|dans le parc; in the forest|dans la forêt; near the river|près de la rivière;
    in the garden|dans le jardin; on the beach|sur la plage; in the countryside|à la campagne
pool: in the sea|dans la mer; in the lake|dans le lac; at the swimming pool|à la piscine
library: at the library|à la bibliothèque; at school|à l'école; at university|à l'université;
    at home|à la maison
office: at the office|au bureau; at home|à la maison
home: at home|à la maison; in the living room|dans le salon; with friends|avec des amis
town: in town|en ville; in Paris|à Paris; near the station|près de la gare; in Rome|à Rome
garage: in the garage|dans le garage; in the workshop|dans l'atelier
by: by train|en train; by plane|en avion; by car|en voiture; by boat|en bateau; by bike|à vélo
""")
HOURS = {"morning": (5, 9), "night": (8, 11)}
"""Adjuncts that are a time by the clock → the first and the last hour."""


def _adjunct(rng: Random, verb: Verb, thing: Phrase, doer: Phrase, tense: str) -> Phrase:
    """Where, with whom or when by the clock; often nothing."""
    if verb.adjunct in (".", "!"):
        return NOTHING
    if rng.random() < 0.6 and not (verb.adjunct in HOURS and tense == "habit"):
        return NOTHING
    if verb.adjunct == "with":
        who = person(rng)
        is_new = who.en not in (doer.en, thing.en)
        return Phrase(f"with {who.en}", f"avec {who.fr}") if is_new else NOTHING
    if verb.adjunct in HOURS:
        at = clock_time(rng, *HOURS[verb.adjunct])
        return Phrase(f"at {at.en}", f"à {at.fr}")
    return Phrase(*pick(rng, _PLACES[verb.adjunct]))


# ---- Clauses --------------------------------------------------------------------------------------

_TENSES = {
    "": words("""habit habit habit habit habit habit past past past past past past will will will will
        prog going can must want would prog going can must want would perfect perfect used just"""),
    "bare": words("past past past will will going can must want would"),
    "question": words("habit prog past past will will going can must want would perfect"),
    "asked": words("past past will will going must want"),
}
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
_MOMENTARY = words("find lose forget miss understand break begin finish arrive meet sign choose follow")
INVOLUNTARY = words("lose miss forget break receive find see understand arrive meet")
CHILDHOOD = words("""eat drink play swim run sing dance draw paint read watch walk visit go write wear prepare
    feed""")


def _draw_tense(rng: Random, verb: Verb, kind: str) -> str:
    """A tense that suits the kind of clause and the verb."""
    if verb.adjunct == "!":
        return "habit"
    tense = pick(rng, _TENSES.get(kind, _TENSES[""]))
    if tense == "prog" and verb.adjunct in HOURS:
        return "habit"
    is_unfit = (
        (tense in ("prog", "habit") and verb.en in _MOMENTARY)
        or (tense in ("prog", "want", "would", "must", "can") and verb.en in INVOLUNTARY)
        or (tense == "used" and verb.name not in CHILDHOOD)
    )
    return "past" if is_unfit else tense


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
        tense: habit, prog(ressive), past, perfect, just, used (to), will, going (to), can, must, want or
            would (like to).
        polarity: "", not, never, no longer, yet, already or an adverb of frequency.
        kind: "" statement, "embedded" statement after "that", "bare" statement without a time,
            "question" yes/no question, "asked" what follows a question word.
    """
    tense = tense or _draw_tense(rng, verb, kind)
    doer = doer or _draw_doer(rng, tense, kind)
    polarity = _draw_polarity(rng, verb, tense, kind) if polarity is None else polarity
    thing = complement(rng, verb, doer, tense, polarity) if thing is None else thing
    where = _adjunct(rng, verb, thing, doer, tense)
    en = english_clause(verb, doer, tense, polarity, thing, kind in ("question", "asked"))
    fr = french_clause(verb, doer, tense, polarity, thing)
    said = Phrase(
        spaced(en, where.en, "yet" if polarity == "yet" else ""),
        spaced(fr, where.fr),
        pairs=thing.pairs_with(verb.lemma),
    )
    is_timeless = verb.adjunct == "!" or kind in ("bare", "asked") or polarity not in ("", "not")
    if is_timeless or (verb.adjunct in HOURS and where.en):
        return said
    return _timed(rng, said, verb, tense, polarity, kind)


def _timed(rng: Random, said: Phrase, verb: Verb, tense: str, polarity: str, kind: str) -> Phrase:
    """A clause, perhaps with a time before or after it."""
    must_have_time = tense == "prog" or (tense == "habit" and not polarity and kind in ("", "embedded"))
    if tense not in TIMES or not (must_have_time or rng.random() < 0.5) or (tense == "habit" and polarity):
        return said
    is_long = verb.name in _LASTING and tense in _LONG_TIMES and rng.random() < 0.5
    when_en, when_fr = pick(rng, (_LONG_TIMES if is_long else TIMES)[tense])
    if kind == "" and tense != "prog" and rng.random() < 0.15:
        return said._replace(en=f"{when_en}, {said.en}", fr=f"{when_fr}, {said.fr}")
    return said._replace(en=f"{said.en} {when_en}", fr=f"{said.fr} {when_fr}")


def infinitive(rng: Random, verb: Verb, doer: Phrase) -> Phrase:
    """Verb and complement without subject or tense; the reflexive follows the doer."""
    thing = complement(rng, verb, doer, "can", "")
    where = _adjunct(rng, verb, thing, doer, "can") if verb.adjunct != "with" else NOTHING
    return Phrase(
        spaced(verb.en, english_object(verb, thing), where.en),
        spaced(_clitic(verb, doer, thing), verb.fr, french_object(verb, thing), where.fr),
        pairs=thing.pairs_with(verb.lemma),
    )
