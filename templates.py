"""Sentence templates of the embedded corpus, by topic, and what fills their slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from descriptions import BAD_WEATHER, EVENT, LATER, NOW, weather
from lexicon import FIXED, NOUNS_BY_KIND, Noun, parse_tables, table_lines, words
from phrases import FIRST_NAMES, WOMEN, Phrase, contract, noun_phrase, pick, relative, some_noun
from quantities import clock_time, count, date, digital_time, high_price, price

# A topic, then its templates. A slot is {name} or {determiner:kind of noun}; "à" or "de" before it contracts
# with its article, #2 makes another slot of the same kind, ! leaves adjectives out.
_TEMPLATES = """
greetings
Good morning, {title}. | Bonjour, {title}.
Good evening, {title}. | Bonsoir, {title}.
Goodbye, {name}. | Au revoir, {name}.
Hello, {name}! | Salut, {name} !
Thank you very much, {title}. | Merci beaucoup, {title}.
Thank you for {the:belonging}. | Merci pour {the:belonging}.
How is {yourkin}? | Comment va {yourkin} ?
My name is {name} and I live in {city}. | Je m'appelle {name} et j'habite à {city}.
See you {later}. | À {later}.
Welcome to {city}! | Bienvenue à {city} !
Happy birthday, {name}! | Bon anniversaire, {name} !
Are you {name}'s {kinword}? | Êtes-vous {kinword} de {name} ?
I am pleased to meet you, {title}. | Je suis content de vous rencontrer, {title}.
Give my regards to {yourkin}. | Transmettez mes amitiés {à yourkin}.
Do you know {yourkin}'s friend? | Connaissez-vous l'ami {de yourkin} ?
Congratulations on {the:event}! | Félicitations pour {the:event} !
directions
Where is {the:place}, please? | Où est {the:place}, s'il vous plaît ?
Is there {a:place} near here? | Est-ce qu'il y a {a:place} près d'ici ?
{the:place} is opposite {the:place#2}. | {the:place} est en face {de the:place#2}.
{the:place} is next to {the:place#2}. | {the:place} est à côté {de the:place#2}.
{the:place} is between {the:place#2} and {the:place#3}.
    | {the:place} est entre {the:place#2} et {the:place#3}.
Turn {side} after {the:place}. | Tournez à {side} après {the:place}.
Go straight on as far as {the:place}. | Allez tout droit jusqu'{à the:place}.
Take the {ordinal} street on the {side}. | Prenez la {ordinal} rue à {side}.
How can I get to {the:place}? | Comment est-ce que je peux aller {à the:place} ?
{the:place} is {number} metres from {the:place#2}. | {the:place} est à {number} mètres {de the:place#2}.
It is {number} kilometres from {city} to {city#2}. | Il y a {number} kilomètres de {city} à {city#2}.
Can you show me {the:place} on the map? | Pouvez-vous me montrer {the:place} sur le plan ?
You must change trains in {city}. | Vous devez changer de train à {city}.
restaurant
I would like {some:food} and {some:cold_drink}, please.
    | Je voudrais {some:food} et {some:cold_drink}, s'il vous plaît.
A table for {few}, please. | Une table pour {few}, s'il vous plaît.
Would you like {some:cold_drink} with {the:food}? | Voulez-vous {some:cold_drink} avec {the:food} ?
Is there {any:seasoning} in {the:food}? | Est-ce qu'il y a {any:seasoning} dans {the:food} ?
Could you bring me {a:dish}? | Pourriez-vous m'apporter {a:dish} ?
There isn't any {none:food} left. | Il ne reste plus {none:food}.
We have run out of {none:staple}. | Nous n'avons plus {none:staple}.
I will have {the:snack} with {some:cold_drink}. | Je prendrai {the:snack} avec {some:cold_drink}.
The bill, please. | L'addition, s'il vous plaît.
Please bring us {some:cold_drink}. | Apportez-nous {some:cold_drink}, s'il vous plaît.
shops
How much does {the:clothes} cost? | Combien coûte {the:clothes} ?
{this:clothes} costs {price}. | {this:clothes} coûte {price}.
{the:furniture} costs {highprice}. | {the:furniture} coûte {highprice}.
{the:machine} costs {highprice}. | {the:machine} coûte {highprice}.
I paid {price} for {the:textile}. | J'ai payé {the:textile} {price}.
Do you have {this:clothes!} in {colour}? | Avez-vous {this:clothes!} en {colour} ?
Give me {few} {fruits}, please. | Donnez-moi {few} {fruits}, s'il vous plaît.
I would like a kilo of {fruits}. | Je voudrais un kilo de {fruits}.
We need {some:staple} and {few} {fruits}. | Il nous faut {some:staple} et {few} {fruits}.
Please show me {this:clothes}. | Montrez-moi {this:clothes}, s'il vous plaît.
Do you have {any:snack_food}? | Avez-vous {any:snack_food} ?
A kilo of {fruits} costs {price}. | Un kilo de {fruits} coûte {price}.
Do you sell {snacks}? | Est-ce que vous vendez des {snacks} ?
I have just bought {few} {stationeries}. | Je viens d'acheter {few} {stationeries}.
time
What time does {the:place} open? | À quelle heure ouvre {the:place} ?
{the:place} opens at {morning} and closes at {evening}. | {the:place} ouvre à {morning} et ferme à {evening}.
It is {clock}. | Il est {clock}.
It is already {clock}. | Il est déjà {clock}.
It isn't {clock} yet. | Il n'est pas encore {clock}.
Today is {day}, {date}. | Aujourd'hui, nous sommes le {day} {date}.
{kin}'s birthday is on {date}. | L'anniversaire de {kin} est le {date}.
The meeting is on {day} at {morning}. | La réunion a lieu {day} à {morning}.
{the:show} starts at {evening}. | {the:show} commence à {evening}.
{the:show} lasts {couple} hours. | {the:show} dure {couple} heures.
I was born on {date}, {year}. | Je suis né le {date} {year}.
{woman} was born in {month} {year}. | {woman} est née en {month} {year}.
work
Our break is at {clock}. | Notre pause est à {clock}.
I have worked here for {few} years. | Je travaille ici depuis {few} ans.
{the:paper} is on {my4:furniture}. | {the:paper} est sur {my4:furniture}.
Can you send me {the:paper} before {day}? | Pouvez-vous m'envoyer {the:paper} avant {day} ?
Please send me {the:paper} before {evening}. | Envoyez-moi {the:paper} avant {evening}, s'il vous plaît.
{the:event} with {adviser} will take place on {day}. | {the:event} avec {adviser} aura lieu {day}.
{worker} earns {highprice} a week. | {worker} gagne {highprice} par semaine.
travel
{the:ride} to {city} leaves at {digital}. | {the:ride} pour {city} part à {digital}.
{the:ride} from {city} arrives at {digital}. | {the:ride} de {city} arrive à {digital}.
A ticket to {city} costs {price}. | Un billet pour {city} coûte {price}.
I have lost {my:belonging} at {the:place}. | J'ai perdu {my:belonging} {à the:place}.
How long does it take to get to {city}? | Combien de temps faut-il pour aller à {city} ?
We stayed in {city} for {few} days. | Nous sommes restés {few} jours à {city}.
Where can I rent {a:vehicle}? | Où est-ce que je peux louer {a:vehicle} ?
I would like a room for {few} nights. | Je voudrais une chambre pour {few} nuits.
The plane took off at {digital} and landed at {digital#2}.
    | L'avion a décollé à {digital} et a atterri à {digital#2}.
{the:ride} is {few} minutes late. | {the:ride} a {few} minutes de retard.
Two tickets to {city}, please. | Deux billets pour {city}, s'il vous plaît.
family
{kin} lives in {city}. | {kin} habite à {city}.
{child} is {childage} years old. | {child} a {childage} ans.
{sibling} is {adultage} years old. | {sibling} a {adultage} ans.
{parent} is {middleage} years old. | {parent} a {middleage} ans.
{grandparent} is {oldage} years old. | {grandparent} a {oldage} ans.
{child} is {childage} and {grandparent} is {oldage}.
    | {child} a {childage} ans et {grandparent} en a {oldage}.
I have {few} {siblings}. | J'ai {few} {siblings}.
What is {yourkin}'s name? | Comment s'appelle {yourkin} ?
{name}'s {kinword} works in {city}. | {kinword} de {name} travaille à {city}.
{woman}'s husband lives in {city}. | Le mari de {woman} habite à {city}.
{kin} has been living in {city} for {few} years. | {kin} habite à {city} depuis {few} ans.
weather
{weather} in {city}. | {weather} à {city}.
{weatherwas} yesterday in {city}. | Hier, {weatherwas} à {city}.
{weatherwill} tomorrow in {city}. | Demain, {weatherwill} à {city}.
It often rains here {season}. | Il pleut souvent ici {season}.
It never snows in {city} {season}. | Il ne neige jamais à {city} {season}.
It is {degrees} degrees in {city} today. | Il fait {degrees} degrés à {city} aujourd'hui.
Take {my4:clothes}, {badweather}. | Prenez {my4:clothes}, {badweather}.
The temperature will be {degrees} degrees tomorrow. | La température sera de {degrees} degrés demain.
What is the weather like in {city}? | Quel temps fait-il à {city} ?
health
My {ache} hurts. | J'ai mal {à ache}.
Does your {ache} hurt? | Avez-vous mal {à ache} ?
{kin}'s {ache} hurts. | {kin} a mal {à ache}.
I have broken my {limb}. | Je me suis cassé {limb}.
You must take {this:remedy} {three} times a day. | Vous devez prendre {this:remedy} {three} fois par jour.
Take {this:remedy} twice a day. | Prenez {this:remedy} deux fois par jour.
I have an appointment with {adviser} at {morning}. | J'ai rendez-vous avec {adviser} à {morning}.
school
Open {my4:book} at page {page}. | Ouvrez {my4:book} à la page {page}.
There are {number} pupils in this school. | Il y a {number} élèves dans cette école.
Please explain {the:task} to me. | Expliquez-moi {the:task}, s'il vous plaît.
I don't understand {this:query}. | Je ne comprends pas {this:query}.
{the:lesson} is on page {page}. | {the:lesson} est à la page {page}.
home
Please lend me {my4:belonging}. | Prêtez-moi {my4:belonging}, s'il vous plaît.
Where is {my:belonging}? | Où est {my:belonging} ?
{my:belonging} is on {the:furniture}. | {my:belonging} est sur {the:furniture}.
{the:pet} is sleeping under {the:furniture}. | {the:pet} dort sous {the:furniture}.
There is {a:pet} in {the:room}. | Il y a {a:pet} dans {the:room}.
There is {a:furniture} in {the:room}. | Il y a {a:furniture} dans {the:room}.
There are {few} {dishes} on {surface}. | Il y a {few} {dishes} sur {surface}.
Don't forget to close {the:opening}. | N'oubliez pas de fermer {the:opening}.
{the:belonging} is in the drawer of {the:furniture}. | {the:belonging} est dans le tiroir {de the:furniture}.
"""
_SLOT = re.compile(r"\{(?:(à|de) )?([^}]+)\}")
Draw = Callable[[Random], Phrase]


def _parse(table: str) -> dict[str, list[tuple[str, str]]]:
    """Topic → its templates in both languages."""
    topics: dict[str, list[tuple[str, str]]] = {}
    found: list[tuple[str, str]] = []
    for line in table_lines(table):
        en, _, fr = line.partition(" | ")
        if fr:
            found.append((en, fr))
        else:
            found = topics[en] = []
    return topics


_TEMPLATES_BY_TOPIC = _parse(_TEMPLATES)
TOPICS = tuple(_TEMPLATES_BY_TOPIC)


def from_template(rng: Random, topic: str) -> Phrase:
    """Fill a template's slots, each drawn once for both languages."""
    en, fr = pick(rng, _TEMPLATES_BY_TOPIC[topic])
    filled: dict[str, Phrase] = {}
    for _, slot in _SLOT.findall(en):
        phrase = _fill(rng, slot)
        while any(phrase.en == other.en for other in filled.values()):
            phrase = _fill(rng, slot)
        filled[slot] = phrase
    english = _SLOT.sub(lambda m: filled[m[2]].en, en)
    french = _SLOT.sub(lambda m: contract(m[1], filled[m[2]].fr) if m[1] else filled[m[2]].fr, fr)
    return Phrase(english, french, pairs=tuple(pair for phrase in filled.values() for pair in phrase.pairs))


def _fill(rng: Random, slot: str) -> Phrase:
    name = slot.partition("#")[0]
    if name in _PHRASES:
        return Phrase(*pick(rng, _PHRASES[name]))
    if name in _SLOTS:
        return _SLOTS[name](rng)
    det, _, kind = name.partition(":")
    adjective_rate = 0.0 if det == "none" or kind.endswith("!") else 0.3
    return some_noun(rng, kind.rstrip("!"), "my0" if det == "my" else det, adjective_rate)


# ---- Slots ----------------------------------------------------------------------------------------


def _counted(low: int, high: int, in_words: float) -> Draw:
    return lambda rng: count(rng, low, high, in_words)


def _kin(owners: str, names: str = "") -> Draw:
    return lambda rng: relative(rng, words(owners), names=words(names))


def _definite(nouns: Sequence[Noun]) -> Draw:
    return lambda rng: noun_phrase(pick(rng, nouns), "the")


def _bare_plural(*kinds: str) -> Draw:
    nouns = [noun for kind in kinds for noun in NOUNS_BY_KIND[kind]]

    def draw(rng: Random) -> Phrase:
        noun = pick(rng, nouns)
        return Phrase(noun.en_plural, noun.fr_plural)

    return draw


def _definite_in_french(nouns: Sequence[Noun]) -> Draw:
    """Bare in English, with the article in French: (my) leg, la jambe."""

    def draw(rng: Random) -> Phrase:
        noun = pick(rng, nouns)
        return Phrase(noun.en, noun_phrase(noun, "the").fr)

    return draw


_PHRASES = FIXED | parse_tables("""
title: sir|monsieur; madam|madame; doctor|docteur; Mr Martin|monsieur Martin; everybody|tout le monde;
    Mrs Martin|madame Martin; ladies and gentlemen|mesdames et messieurs; miss|mademoiselle; my friend|mon ami;
    my dear friends|mes chers amis; children|les enfants; Mr Bernard|monsieur Bernard;
    Mrs Laurent|madame Laurent
siblings: brothers|frères; sisters|sœurs; cousins|cousins; children|enfants; uncles|oncles; aunts|tantes
side: left|gauche; right|droite
ordinal: first|première; second|deuxième; third|troisième; fourth|quatrième; next|prochaine; last|dernière
surface: the table|la table; the desk|le bureau; the shelf|l'étagère; the tray|le plateau
colour: blue|bleu; red|rouge; green|vert; black|noir; white|blanc; grey|gris; yellow|jaune; pink|rose
season: in spring|au printemps; in summer|en été; in autumn|en automne; in winter|en hiver
later: tomorrow|demain; tonight|ce soir; next week|la semaine prochaine; soon|bientôt;
    next year|l'année prochaine; tomorrow morning|demain matin; on Monday|lundi; on Friday|vendredi;
    on Sunday|dimanche
""")
_ADVISERS = words("doctor dentist lawyer hairdresser teacher architect headmaster headmistress secretary")
_LIMBS = words("leg arm foot wrist ankle finger shoulder nose")
_SLOTS: dict[str, Draw] = {
    "name": lambda rng: pick(rng, FIRST_NAMES),
    "woman": lambda rng: pick(rng, WOMEN),
    "kin": _kin("my0 my0 my4 my3"),
    "yourkin": _kin("my4"),
    "kinword": _definite_in_french([n for n in NOUNS_BY_KIND["family"] if n.gender == "m"]),
    "child": _kin("my0 my4 my3", "son daughter nephew niece"),
    "childage": _counted(2, 25, 0.7),
    "sibling": _kin("my0 my4", "brother sister cousin wife friend"),
    "adultage": _counted(18, 45, 0.7),
    "parent": _kin("my0 my4 my3", "mother father uncle aunt neighbour"),
    "middleage": _counted(40, 69, 0.7),
    "grandparent": _kin("my0 my4 my3", "grandmother grandfather"),
    "oldage": _counted(66, 99, 0.7),
    "worker": _definite(NOUNS_BY_KIND["worker"]),
    "adviser": _definite([n for n in NOUNS_BY_KIND["worker"] if n.en in _ADVISERS]),
    "fruits": _bare_plural("fruit", "vegetable"),
    "snacks": _bare_plural("snack", "cake"),
    "dishes": _bare_plural("dish", "cutlery"),
    "stationeries": _bare_plural("stationery"),
    "ache": _definite_in_french(NOUNS_BY_KIND["body"]),
    "limb": _definite_in_french([n for n in NOUNS_BY_KIND["body"] if n.en in _LIMBS]),
    "couple": _counted(2, 4, 1.0),
    "three": _counted(3, 6, 1.0),
    "few": _counted(2, 12, 1.0),
    "number": _counted(2, 1000, 0.6),
    "page": _counted(2, 99, 0.0),
    "degrees": _counted(2, 35, 0.5),
    "year": _counted(1950, 2015, 0.0),
    "price": price,
    "highprice": high_price,
    "clock": clock_time,
    "morning": lambda rng: clock_time(rng, 6, 10),
    "evening": lambda rng: clock_time(rng, 4, 8),
    "digital": digital_time,
    "date": date,
    "weather": weather,
    "weatherwas": lambda rng: weather(rng, EVENT),
    "weatherwill": lambda rng: weather(rng, LATER),
    "badweather": lambda rng: weather(rng, NOW, BAD_WEATHER[:4]),
}
