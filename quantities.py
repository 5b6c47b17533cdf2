"""Numbers, times, dates and prices of the embedded corpus, in words and in digits."""

from __future__ import annotations

from random import Random

from lexicon import FIXED, words
from phrases import Phrase, pick

_EN_UNITS = words("""zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen""")
_EN_TENS = words("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
_FR_UNITS = words("""zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze
    seize dix-sept dix-huit dix-neuf""")
_FR_TENS = words("_ _ vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")


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


def french_number(n: int) -> str:
    """Words for 0 to 1000 in the traditional spelling: hyphens below a hundred except around "et"."""
    if n == 1000:
        return "mille"
    if n >= 100:
        head = "cent" if n < 200 else f"{_FR_UNITS[n // 100]} cent"
        if n % 100 == 0:
            return head + "s" if n >= 200 else head
        return f"{head} {french_number(n % 100)}"
    if n < 20:
        return _FR_UNITS[n]
    if n == 80:
        return "quatre-vingts"
    tens, unit = _FR_TENS[n // 10], n % 20 if n >= 60 else n % 10
    if unit == 0:
        return tens
    return f"{tens} et {_FR_UNITS[unit]}" if unit in (1, 11) and n < 80 else f"{tens}-{_FR_UNITS[unit]}"


def count(rng: Random, low: int, high: int, in_words: float) -> Phrase:
    """A number from `low` to `high`, in words at a rate of `in_words`."""
    n = low + int(rng.random() * (high - low + 1))
    return Phrase(english_number(n), french_number(n)) if rng.random() < in_words else Phrase(str(n), str(n))


def clock_time(rng: Random, first: int = 1, last: int = 11) -> Phrase:
    """A time of day from hour `first` to `last`: three o'clock, a quarter to eight, noon."""
    hour = first + int(rng.random() * (last - first + 1))
    form = int(rng.random() * 8)
    if form == 0 and last - first == 10:
        return pick(rng, (Phrase("noon", "midi"), Phrase("midnight", "minuit")))
    en, fr, en_next, fr_next = _EN_UNITS[hour], _hours(hour), _EN_UNITS[hour + 1], _hours(hour + 1)
    if form <= 3:
        return Phrase(f"{en} o'clock", fr)
    if form == 4:
        return Phrase(f"half past {en}", f"{fr} et demie")
    if form == 5:
        return Phrase(f"a quarter past {en}", f"{fr} et quart")
    minutes = pick(rng, (5, 10, 20, 25))
    if hour == 11:  # not "to twelve", which French calls noon or midnight
        return Phrase(f"{english_number(minutes)} past {en}", f"{fr} {french_number(minutes)}")
    if form == 6:
        return Phrase(f"a quarter to {en_next}", f"{fr_next} moins le quart")
    return Phrase(f"{english_number(minutes)} to {en_next}", f"{fr_next} moins {french_number(minutes)}")


def _hours(hour: int) -> str:
    return "une heure" if hour == 1 else f"{_FR_UNITS[hour]} heures"


def digital_time(rng: Random) -> Phrase:
    """A time as timetables print it: 17:05, 17 h 05."""
    hour, minutes = 6 + int(rng.random() * 17), pick(rng, range(5, 60, 5))
    return Phrase(f"{hour}:{minutes:02}", f"{hour} h {minutes:02}")


def date(rng: Random) -> Phrase:
    """A day of the year: May 3rd, 3 mai; May 1st, 1er mai."""
    day = 1 + int(rng.random() * 28)
    en, fr = pick(rng, FIXED["month"])
    suffix = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return Phrase(f"{en} {day}{suffix}", f"{'1er' if day == 1 else day} {fr}")


def price(rng: Random) -> Phrase:
    """An amount of money for small things, in words or in digits."""
    if rng.random() < 0.4:
        euros, cents = 1 + int(rng.random() * 60), pick(rng, (10, 20, 25, 50, 75, 80, 90, 95))
        return Phrase(f"€{euros}.{cents}", f"{euros},{cents} €")
    n = 2 + int(rng.random() * 98)
    return Phrase(f"{english_number(n)} euros", f"{french_number(n)} euros")


def high_price(rng: Random) -> Phrase:
    """What furniture or a machine costs: hundreds of euros, in words or in digits."""
    n = 100 + int(rng.random() * 901)
    if rng.random() < 0.7:
        return Phrase(f"{english_number(n)} euros", f"{french_number(n)} euros")
    return Phrase(f"€{n}", f"{n} €")
