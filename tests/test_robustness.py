"""Noise of the robustness benchmark: letters and digits alone, as many as it says, the same for both models."""

import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import robustness
from robustness import LOOK_ALIKES, NOISES, SHARES, noisy

from render import Renderer, packaged_font

TEXT = "My sister would like to buy 2 green dresses, wouldn't she?"
TEXTS = [f"{TEXT} {n}{n + 1} {'abc' * (n % 5)}" for n in range(300)]
PAIRS = [(c, other) for c, alike in LOOK_ALIKES.items() for other in alike]


def letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def shape(text: str) -> str:
    """Where letters and digits stand, and what stands between them."""
    return "".join("x" if c.isalnum() else c for c in text)


def edits(text: str, noise: str, share: float, seed: int = 1) -> set[int]:
    """Positions that differ, where the noise keeps the length."""
    got = noisy(text, noise, share, seed)
    return {i for i, (a, b) in enumerate(zip(text, got, strict=True)) if a != b}


# noise


@pytest.mark.parametrize("noise", NOISES)
def test_no_share_leaves_the_text_as_it_is(noise):
    assert noisy(TEXT, noise, 0.0, 1) == TEXT


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_seed_gives_the_same_text(noise):
    assert noisy(TEXT, noise, 0.2, 1) == noisy(TEXT, noise, 0.2, 1)


@pytest.mark.parametrize("noise", NOISES)
def test_another_seed_gives_another_text(noise):
    assert len({noisy(TEXT, noise, 0.2, seed) for seed in range(5)}) > 1


@pytest.mark.parametrize("noise", ["swapped", "look-alikes"])
def test_spaces_and_punctuation_stay_in_their_places(noise):
    assert all(shape(noisy(text, noise, 0.5, 1)) == shape(text) for text in TEXTS)


@pytest.mark.parametrize("noise", NOISES)
def test_spaces_and_punctuation_are_never_touched(noise):
    for text in TEXTS[:50]:
        got = noisy(text, noise, 0.5, 1)
        assert [c for c in got if not c.isalnum()] == [c for c in text if not c.isalnum()]


@pytest.mark.parametrize("noise", NOISES)
def test_a_text_without_letters_stays_as_it_is(noise):
    assert noisy("— ?! …  ", noise, 1.0, 1) == "— ?! …  "


@pytest.mark.parametrize("share", SHARES)
def test_as_many_characters_are_dropped_as_the_share_says(share):
    before = sum(map(letters, TEXTS))
    after = sum(letters(noisy(text, "dropped", share, 1)) for text in TEXTS)
    assert abs((before - after) / before - share) < 4 * np.sqrt(share * (1 - share) / before)


@pytest.mark.parametrize("share", SHARES)
def test_as_many_characters_are_replaced_as_the_share_says(share):
    text = "".join(LOOK_ALIKES) * 50
    assert abs(len(edits(text, "look-alikes", share)) / len(text) - share) < 0.02


@pytest.mark.parametrize("share", SHARES)
def test_as_many_characters_are_swapped_as_the_share_says(share):
    # Words of two different letters: an odd number of choices swaps them.
    text = "ab " * 3_000
    swapped = noisy(text, "swapped", share, 1).split().count("ba") / 3_000
    assert abs(swapped - 2 * share * (1 - share)) < 0.03


def test_all_are_dropped_at_a_share_of_one():
    assert noisy("Two cats, 3 dogs.", "dropped", 1.0, 1) == " ,  ."


@pytest.mark.parametrize(
    "word, swapped", [("ab", {"ab", "ba"}), ("a", {"a"}), ("a-b", {"a-b"}), ("a b", {"a b"})]
)
def test_a_letter_is_swapped_with_one_of_its_own_word(word, swapped):
    assert {noisy(word, "swapped", 0.5, seed) for seed in range(30)} == swapped


def test_swapping_keeps_every_character_of_the_text():
    assert all(Counter(noisy(text, "swapped", 0.5, 1)) == Counter(text) for text in TEXTS)


def test_each_replacement_is_a_look_alike_of_its_letter():
    for text in TEXTS[:50]:
        got = noisy(text, "look-alikes", 0.5, 1)
        assert all(a == b or b in LOOK_ALIKES[a] for a, b in zip(text, got, strict=True))


def test_every_look_alike_of_a_letter_is_used():
    assert set(noisy("o" * 200, "look-alikes", 1.0, 1)) == set(LOOK_ALIKES["o"])


def test_a_letter_without_look_alikes_stays():
    assert noisy("漢字", "look-alikes", 1.0, 1) == "漢字"


@pytest.mark.parametrize("noise", ["look-alikes", "dropped"])
def test_what_is_wrong_at_a_small_share_is_wrong_at_a_larger_one(noise):
    if noise == "look-alikes":
        assert edits(TEXT, noise, 0.1) <= edits(TEXT, noise, 0.2) <= edits(TEXT, noise, 0.5)
    else:
        small, large = (Counter(noisy(TEXT, noise, share, 1)) for share in (0.1, 0.2))
        assert large <= small


def test_mixed_noise_swaps_drops_and_replaces():
    got = "".join(noisy(text, "mixed", 0.3, 1) for text in TEXTS)
    assert letters(got) < sum(map(letters, TEXTS))
    assert any(ord(c) > 0x370 for c in got)
    assert "".join(noisy("ab " * 200, "mixed", 0.3, 1)).count("ba") > 5


# look-alikes


def test_there_are_look_alikes_for_every_letter_of_english_and_every_digit_but_seven():
    import string

    assert set(string.ascii_letters + string.digits) - set(LOOK_ALIKES) == {"7"}
    assert len(PAIRS) > 40


def test_no_character_is_a_look_alike_of_itself_or_twice():
    assert all(c not in alike and len(set(alike)) == len(alike) for c, alike in LOOK_ALIKES.items())


def test_look_alikes_stay_different_under_the_normal_form_of_the_corpus():
    assert all(unicodedata.normalize("NFC", other) == other for _, other in PAIRS)


def test_look_alikes_are_letters_or_digits():
    assert all(other.isalnum() for _, other in PAIRS)


def test_the_packaged_font_has_every_look_alike():
    assert Renderer(packaged_font(), 32).missing("".join(LOOK_ALIKES.values())) == []


def test_some_look_alikes_have_the_same_pixels_and_some_have_not():
    alike, pairs = robustness.same_pixels()
    assert pairs == len(PAIRS)
    assert 0.3 < alike / pairs < 0.7


# the table


@pytest.fixture(scope="module")
def table():
    """The rows of a model that says nothing right and of one that is always right, and what both read."""
    read = ([], [])
    references = ["one two three four five", "six seven eight nine ten"]

    def wrong(lines):
        read[0].append(lines)
        return ["x"] * len(lines)

    def right(lines):
        read[1].append(lines)
        return references

    return list(robustness.rows_of(TEXTS[:2], references, (wrong, right), "fr", 1)), read


def test_the_table_has_a_row_without_noise_and_one_for_each_noise_and_share(table):
    rows, _ = table
    assert [(row.noise, row.share) for row in rows] == [
        ("none", 0.0),
        *((noise, share) for noise in NOISES for share in SHARES),
    ]


def test_both_models_read_the_same_noisy_sentences(table):
    _, (by_one, by_other) = table
    assert by_one == by_other
    assert by_one[0] == TEXTS[:2] and by_one[-1] != TEXTS[:2]


def test_a_row_gives_both_scores_and_their_difference(table):
    rows, _ = table
    assert rows[1].cells()[:5] == ["swapped", "5 %", "0.00", "100.00", "+100.00"]


def test_a_row_for_a_file_names_every_metric_of_both(table):
    row = table[0][1].as_json()
    assert row["text"].keys() == row["image"].keys() >= {"BLEU", "chrF2++", "exact match"}
    assert (row["noise"], row["share"]) == ("swapped", 0.05)


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(ValueError, match="^--limit must be at least 1, got 0$"):
        robustness.RobustnessConfig(Path("a"), Path("b"), limit=0)
