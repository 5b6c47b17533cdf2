"""Claims about the Translator: layout and symbols stay, batches change nothing, what is doubtful is said."""

from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_model import enlarged

import translator as translator_module
from config import DecodeConfig, SourceConfig
from decoding import Hypothesis, Sentences, Vocabulary
from incremental import IncrementalDecoder
from inputs import FeatureInput, Source, Values
from model import Positions, Transformer, build_transformer
from pictures import PictureInput
from render import packaged_font
from tokenizer import EOS_ID, PAD_ID, Tokenizer
from translator import Key, Translator

GREEDY = DecodeConfig(beam=1)
TOKENIZER = Tokenizer.train(["Where is the station? I see two dogs near the old house, really."] * 2, 340)
LAYOUT = st.text(
    st.sampled_from(" \t\n\r.!?,—\u2028\u00a0ab1Z。☂é\x00") | st.characters(exclude_categories=["Cs"]),
    max_size=60,
)


def tiny_model(positions: Positions = "sinusoidal", max_length: int = 64) -> Transformer:
    torch.manual_seed(0)
    size = TOKENIZER.vocab_size
    model = build_transformer(size, size, max_length, max_length, 16, 2, 2, 0.1, 32, positions=positions)
    for parameter in enlarged(model).parameters():  # initial weights all but repeat one token; these speak
        parameter.data *= 1.5
    return model.eval()


def real(max_length: int = 64, positions: Positions = "sinusoidal", **settings: bool) -> Translator:
    return Translator(
        tiny_model(positions, max_length), TOKENIZER, src_lang="en", max_length=max_length, **settings
    )


class Says(Protocol):
    def __call__(
        self,
        answer: Callable[[str], str | list[str]] = ...,
        max_length: int = ...,
        split_sentences: bool = ...,
    ) -> Translator: ...


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Says:
    """Makes a Translator whose search answers with a function of the source text, and counts its calls."""

    def make(
        answer: Callable[[str], str | list[str]] = str.upper,
        max_length: int = 64,
        split_sentences: bool = True,
    ) -> Translator:
        def search(
            model: IncrementalDecoder, given: Iterable[Sentences], vocabulary: Vocabulary, **_: object
        ) -> list[list[list[Hypothesis]]]:
            return [[answered(ids) for ids in batch.src.tolist()] for batch in map(noted, given)]

        def answered(ids: list[int]) -> list[Hypothesis]:
            assert ids[ids.index(EOS_ID) + 1 :] == [PAD_ID] * (len(ids) - ids.index(EOS_ID) - 1)
            answers = answer(TOKENIZER.decode(ids))
            texts = [answers] if isinstance(answers, str) else answers
            return [Hypothesis(TOKENIZER.encode(text), -0.5 - i, True) for i, text in enumerate(texts)]

        def noted(batch: Sentences) -> Sentences:
            batches.append([TOKENIZER.decode(ids) for ids in batch.src.tolist()])
            return batch

        batches: list[list[str]] = []
        monkeypatch.setattr(translator_module, "search", search)
        model = tiny_model(max_length=max_length)
        made = Translator(
            model, TOKENIZER, src_lang="en", max_length=max_length, split_sentences=split_sentences
        )
        made.batches = batches  # type: ignore[attr-defined]
        return made

    return make


def one(translator: Translator, text: str) -> str:
    return translator.translate([text])[0].text


# Layout


@pytest.mark.parametrize(
    "text",
    [
        "I see two dogs. Where is the station?",
        "  I see two dogs.  Where is \tthe station? ",
        "First line.\n\n\tSecond line. Third!\r\nfourth\n",
        "one\u2028two\u0085three\rfour",
        "No-break\u00a0space.\u00a0 Next.",
    ],
)
def test_lines_sentences_and_white_space_stay_where_they_are(says: Says, text: str) -> None:
    assert one(says(), text) == text.upper()


@settings(max_examples=300, deadline=None)
@given(text=LAYOUT)
@pytest.mark.parametrize("split_sentences", [True, False])
def test_the_parts_of_any_text_join_to_the_text(text: str, split_sentences: bool) -> None:
    translator = Translator(MODEL, TOKENIZER, src_lang="en", max_length=12, split_sentences=split_sentences)
    encoded: dict[Key, Values] = {}
    parts = list(translator._parts(text, 0, encoded, []))
    assert "".join(part.text for part in parts) == text
    assert {part.text for part in parts if part.key is not None} == set(encoded)
    assert all(len(ids) < 12 or len(str(sentence)) == 1 for sentence, ids in encoded.items())


MODEL = tiny_model()


# fault 7
@pytest.mark.parametrize(
    "text",
    ["", "   ", "\t", "\u00a0", "—", "...", "\n\n \n", "👩🏽‍🚀 ☂", "\u200b", "\ufeff", "\x00", "-" * 999],
)
def test_what_has_neither_letter_nor_digit_is_copied(says: Says, text: str) -> None:
    [result] = says(lambda source: "invented").translate([text])
    assert (result.text, result.score, result.warnings) == (text, 0.0, ())
    assert result.candidates == ((text, 0.0),)


# fault 7
def test_blank_and_dash_lines_between_sentences_stay(says: Says) -> None:
    text = "I see.\n\n—\n   \n\t\n\u00a0\n...\nYou see."
    assert one(says(), text) == text.upper()


def test_a_row_of_a_corpus_is_one_unit(says: Says) -> None:
    translator = says(split_sentences=False)
    assert one(translator, " I see. You\nsee. ") == " I SEE. YOU\nSEE. "
    assert translator.batches == [["I see. You\nsee."]]  # type: ignore[attr-defined]


def test_a_line_break_that_the_model_invents_becomes_a_space(says: Says) -> None:
    for split_sentences in (True, False):
        translator = says(lambda source: "a\r\n\u2028b\n", split_sentences=split_sentences)
        assert one(translator, "I see.") == "a b"


def test_an_unknown_language_still_finds_sentences() -> None:
    translator = Translator(MODEL, TOKENIZER, src_lang="no such language", max_length=64)
    assert list(translator._units("I see. You see.")) == ["I see. ", "You see."]


def test_a_space_is_put_between_sentences_of_a_script_that_has_none(says: Says) -> None:
    answers = {"今日。": "Today.", "明日。": "Tomorrow."}
    assert one(says(answers.__getitem__), "今日。明日。") == "Today. Tomorrow."


# Batches


# fault 2
@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_alone_and_in_any_batch_gives_the_same_translation(beam: int) -> None:
    texts = [
        "the dogs",
        "I see two old dogs near the house",
        "where is it " * 12,
        "station 12",
        "a",
        "really near it",
    ]
    alone = [real().translate([text], decode=DecodeConfig(beam=beam))[0] for text in texts]
    assert len({result.text for result in alone}) > 3
    for batch_size in (2, 64):
        together = real().translate(texts, decode=DecodeConfig(beam=beam, batch_size=batch_size))
        assert [r.text for r in together] == [r.text for r in alone]
        assert [r.score for r in together] == pytest.approx([r.score for r in alone], abs=1e-5)


def test_results_come_in_the_order_of_the_texts(says: Says) -> None:
    texts = ["a long sentence about two dogs", "b", "a longer sentence about two old dogs", "", "c d"]
    results = says().translate(texts, decode=DecodeConfig(beam=1, batch_size=2))
    assert [(r.source, r.text) for r in results] == [(text, text.upper()) for text in texts]


def test_batches_hold_batch_size_sentences_of_like_length(says: Says) -> None:
    translator = says()
    translator.translate(["aa bb cc", "a", "aa bb", "b", "aa"], decode=DecodeConfig(beam=1, batch_size=2))
    assert translator.batches == [["aa bb cc", "aa bb"], ["aa", "a"], ["b"]]  # type: ignore[attr-defined]


def test_two_workers_find_what_one_finds() -> None:
    texts = [f"I see {n} dogs, and a cat" for n in range(40)]
    alone, together = real(), real()
    together.workers = 2
    for decode in (GREEDY, DecodeConfig(beam=3, batch_size=6)):
        pairs = zip(
            alone.translate(texts, decode=decode), together.translate(texts, decode=decode), strict=True
        )
        assert all(a.text == b.text and abs(a.score - b.score) < 1e-5 for a, b in pairs)


def test_an_identical_sentence_is_translated_once(says: Says) -> None:
    translator = says()
    assert [r.text for r in translator.translate(["a.\nb.\na.", "a."])] == ["A.\nB.\nA.", "A."]
    assert sorted(translator.batches[0]) == ["a.", "b."]  # type: ignore[attr-defined]


def test_no_texts_give_no_translations() -> None:
    assert real().translate([]) == []


def test_a_model_in_training_is_evaluated_and_goes_on_training() -> None:
    translator = real()
    expected = translator.translate(["I see two dogs"], decode=GREEDY)
    translator.model.train()
    assert translator.translate(["I see two dogs"], decode=GREEDY) == expected
    assert translator.model.training


# Candidates


# fault 19
def test_the_best_does_not_change_with_n_best() -> None:
    translator, decode = real(), DecodeConfig(beam=4)
    texts = ["I see two dogs. Where is it?", "the old station"]
    for n_best in (2, 4):
        results = translator.translate(texts, decode=decode, n_best=n_best)
        expected = translator.translate(texts, decode=decode)
        assert [(r.text, r.score, r.candidates[0]) for r in results] == [
            (r.text, r.score, r.candidates[0]) for r in expected
        ]


def test_candidates_are_best_first_and_distinct() -> None:
    [result] = real().translate(["I see two dogs"], decode=DecodeConfig(beam=6), n_best=6)
    scores = [candidate.score for candidate in result.candidates]
    assert scores == sorted(scores, reverse=True)
    assert len({candidate.text for candidate in result.candidates}) == len(scores) > 1


def test_the_kth_candidate_joins_each_sentences_kth_best_or_its_last(says: Says) -> None:
    answers = {"a.": ["A1", "A2", "A2"], "b.": ["B1", "B2", "B3"]}
    [result] = says(answers.__getitem__).translate(["a.\nb."], n_best=3)
    assert [candidate.text for candidate in result.candidates] == ["A1\nB1", "A2\nB2", "A2\nB3"]
    assert [candidate.score for candidate in result.candidates] == [-0.5, -1.5, -2.0]


def test_the_score_is_the_mean_of_the_sentences(says: Says) -> None:
    translator = real(split_sentences=True)
    a, b, both = (
        r.score for r in translator.translate(["I see.", "Two dogs.", "I see. Two dogs."], decode=GREEDY)
    )
    assert both == pytest.approx((a + b) / 2)


@pytest.mark.parametrize("n_best", [0, 6, -1])
def test_n_best_beyond_the_beam_is_refused(n_best: int) -> None:
    with pytest.raises(
        ValueError, match=f"--n-best must be between 1 and --beam, got {n_best} with a beam of 5"
    ):
        real().translate(["a"], n_best=n_best)


# Lengths


# fault 6
def test_a_character_wider_than_learned_positions_is_named_in_one_line() -> None:
    source = PictureInput(SourceConfig(patch_width=4), packaged_font(), 2)
    embedding, size = source.embedding(16), TOKENIZER.vocab_size
    model = build_transformer(size, size, 2, 2, 16, 1, 2, 0.0, 32, positions="learned", src_embed=embedding)
    reader = Translator(model, TOKENIZER, src_lang="en", max_length=2, source=source)
    with pytest.raises(ValueError, match=r"'W': 3 tokens, but the model has 2 positions; cut it, or train"):
        reader.translate(["W"], decode=GREEDY)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("length", [30, 31, 32, 320])
def test_sources_around_and_far_beyond_the_longest_are_translated(positions: Positions, length: int) -> None:
    text = "1" * (length - 2)  # a space, a token for each digit, an end token
    [result] = real(max_length=31, positions=positions).translate([text], decode=GREEDY)
    assert any("translated in" in warning for warning in result.warnings) == (length > 31)


# fault 24
def test_a_sentence_too_long_is_cut_at_stops_and_nothing_is_lost(says: Says) -> None:
    text = "I see the old dogs, really, and the old house; " * 9 + "the station"
    translator = says()
    [result] = translator.translate([text])
    assert result.text == text.upper()
    assert len(result.warnings) == 1
    assert "tokens, but the model was trained on at most 64: translated in" in result.warnings[0]
    pieces = translator.batches[0]  # type: ignore[attr-defined]
    assert all(
        piece[-1] in ",;" for piece in pieces if piece != text.split()[-1] and not piece.endswith("station")
    )


def test_without_stops_a_sentence_is_cut_at_white_space(says: Says) -> None:
    text = "dogs houses stations " * 20
    translator = says()
    assert one(translator, text) == text.upper()
    words = {word for piece in translator.batches[0] for word in piece.split()}  # type: ignore[attr-defined]
    assert words == {"dogs", "houses", "stations"}


def test_without_white_space_a_sentence_is_cut_between_characters(says: Says) -> None:
    text = "日本é9x" * 100
    assert one(says(), text) == text.upper()


def test_the_pieces_of_a_very_long_sentence_join_to_it() -> None:
    translator = real()
    text = "abc def " * 5_000
    assert "".join(part.text for part in translator._parts(text, 0, {}, [])) == text


def test_the_output_is_bounded_by_the_source_and_says_so() -> None:
    translator = real()
    translator.model.projection_layer.proj.bias.data[EOS_ID] = -100.0  # never ends
    [result] = translator.translate(["dogs"], decode=GREEDY)
    assert result.warnings[0].startswith("stopped at the length bound")
    bound = 2 * (len(TOKENIZER.encode("dogs")) + 1) + 20
    [[[hypothesis]]] = translator._decode(translator._ready(), [[TOKENIZER.encode("dogs")]], GREEDY, 1)
    assert (len(hypothesis.ids), hypothesis.finished) == (bound, False)


def test_sources_longer_than_any_of_training_are_bounded_like_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[int] = []

    def search(
        model: IncrementalDecoder, given: Iterable[Sentences], vocabulary: Vocabulary, **_: object
    ) -> list[list[list[Hypothesis]]]:
        lengths = [batch.max_lengths for batch in given]
        bounds.extend(chain(*lengths))
        return [[[Hypothesis([], 0.0, True)] for _ in batch] for batch in lengths]

    monkeypatch.setattr(translator_module, "search", search)
    source = FeatureInput(1, np.zeros(2, np.float32), np.ones(2, np.float32))
    translator = Translator(tiny_model(), TOKENIZER, src_lang="speech", max_length=10, source=source)
    translator.translate([np.ones((length, 2), np.float32) for length in (4, 10, 5_000)])
    assert bounds == [8 * 10 + 20, 8 * 10 + 20, 8 * 4 + 20]


# Warnings


def test_a_good_translation_has_no_warning(says: Says) -> None:
    assert says().translate(["It is 10:45, see 3 dogs."])[0].warnings == ()


# fault 8
def test_a_sentence_that_becomes_nothing_is_flagged(says: Says) -> None:
    [result] = says(lambda source: " ").translate(["I see.\nTwo dogs."])
    assert result.text == "\n"
    assert result.warnings == ("translated to nothing: I see.", "translated to nothing: Two dogs.")


# fault 10
@pytest.mark.parametrize(
    ("source", "translation", "is_flagged"),
    [
        ("version 1.10 of 2024", "2024: Version 1.10", False),
        ("version 1.10", "Version 1.1", True),
        ("1,000 dogs", "1 000 Hunde", False),
        ("in 1984", "im Jahr", True),
        ("two dogs", "2 Hunde", True),
        ("٣ dogs", "3 Hunde", False),
    ],
)
def test_other_digits_than_in_the_source_are_flagged(
    says: Says, source: str, translation: str, is_flagged: bool
) -> None:
    [result] = says(lambda _: translation).translate([source])
    assert result.warnings == ((f"the digits differ: {source}",) if is_flagged else ())


# fault 23
def test_a_sentence_of_digits_alone_is_translated(says: Says) -> None:
    translator = says()
    assert one(translator, "1984") == "1984"
    assert translator.batches[0] == ["1984"]  # type: ignore[attr-defined]


def test_a_warning_names_its_sentence_once(says: Says) -> None:
    [result] = says(lambda source: "!").translate(["Dog 7. Cat. Dog 7. " + "X " * 25 + "8."])
    assert [w[:40] for w in result.warnings] == [
        "the digits differ: Dog 7.",
        "the digits differ: X X X X X X X X X X X",
    ]
    assert all(len(warning) < 90 and "\n" not in warning for warning in result.warnings)


def test_a_broken_character_is_flagged(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = says()
    half = TOKENIZER.encode("é")[:-1]
    monkeypatch.setattr(translator_module, "search", lambda *_, **__: [[[Hypothesis(half, -1.0, True)]]])
    assert translator.translate(["a"])[0].warnings == ("a character came out broken: a",)


def test_a_lone_surrogate_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        real().translate(["fine", "bad \ud800 text"])


# Attention


def test_attention_has_a_row_for_each_target_token_that_sums_to_one() -> None:
    translator = real()
    attention = translator.attention("I see two dogs. Never seen.", decode=GREEDY)
    assert attention.source == [*TOKENIZER.pieces(TOKENIZER.encode("I see two dogs.")), "⟨eos⟩"]
    assert attention.weights.shape == (len(attention.target), len(attention.source))
    torch.testing.assert_close(attention.weights.sum(1), torch.ones(len(attention.target)))
    [[[best]]] = translator._decode(translator._ready(), [[TOKENIZER.encode("I see two dogs.")]], GREEDY, 1)
    end = ["⟨eos⟩"] if best.finished else []
    assert attention.target == [*TOKENIZER.pieces(best.ids), *end]


def test_attention_of_a_text_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to translate in ' — '"):
        real().attention(" — ")


def test_the_attention_picture_can_be_drawn_for_any_token() -> None:
    from picture import draw_attention

    source = ["▁Two", "bush", "es", "日", "$x$", "\\xc3", "▁", "⟨eos⟩"]
    figure = draw_attention(source, ["▁", "▁Zwei", "⟨eos⟩"], torch.rand(3, 8))
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels[:3] == ["Two-", "bush-", "es-"] and labels[4:] == ["$x$", "\\xc3", "␣", "end"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["␣", "Zwei", "end"]
    shown = figure.axes[0].get_xticklabels() + figure.axes[0].get_yticklabels()
    assert len(shown) == 11 and not any(label.get_parse_math() for label in shown)  # "$x$" is no formula
    figure.canvas.draw()


def test_a_picture_with_other_sizes_than_its_tokens_is_refused() -> None:
    from picture import draw_attention

    with pytest.raises(ValueError, match="weights of 2 × 3 do not fit 2 target and 2 source tokens"):
        draw_attention(["a", "b"], ["c", "d"], torch.rand(2, 3))


@pytest.mark.parametrize("texts", ["Hi.", [None], [1]])
def test_anything_but_a_list_of_sources_is_a_type_error(texts: list[str]) -> None:
    with pytest.raises(TypeError, match="translate takes a list of sources"):
        real().translate(texts)


@pytest.mark.parametrize("source", [b"x", Path("x.png"), np.zeros((2, 3), np.float32)])
def test_a_model_of_text_refuses_pictures_and_features(source: Source) -> None:
    with pytest.raises(ValueError, match="this model reads text, got .*; give it sentences"):
        real().translate([source])
