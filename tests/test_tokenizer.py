"""Claims about the tokenizer: nothing is lost, no special token can be spelled, training repeats itself."""

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenizer import BOS_ID, EOS_ID, MIN_VOCAB_SIZE, NUM_DRAWS, PAD_ID, SPECIAL_TOKENS, Tokenizer

TEXTS = [
    "Where is the station, please?",
    "Où est la gare, s'il vous plaît ?",
    "The train leaves at 10:45 from platform 3.",
    "Le train part à 10 h 45 du quai 3.",
    "Don't re-use (it)!",
    "Two children are playing in the snow near the station.",
    "Deux enfants jouent dans la neige près de la gare.",
] * 3
SPELLED = ["[PAD] [BOS] [EOS]", "⟨pad⟩⟨bos⟩⟨eos⟩", "a ⟨eos⟩ b", "<s></s><pad><unk>", "[EOS]", "Ġ Ã© Ċ"]

ANY_TEXT = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(" \t\n\r\x00\x1b\x85\xa0\u2028\u200b\u0301\ufeff\ufffdeéE1٣½⟨⟩[]'👩🏽‍🚀🇫🇷"),
        st.sampled_from(["  ", "⟨eos⟩", "the ", "station", "'t"]).flatmap(lambda s: st.sampled_from(s)),
    )
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, 400)


@pytest.fixture(scope="module")
def poisoned() -> Tokenizer:
    """Trained on a corpus full of text that spells special tokens."""
    return Tokenizer.train((TEXTS + SPELLED * 50), 500)


@settings(max_examples=1000, deadline=None)
@given(text=ANY_TEXT)
def test_decode_of_encode_is_nfc_for_every_string(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


@settings(max_examples=200, deadline=None)
@given(text=ANY_TEXT)
def test_decode_of_encode_is_nfc_after_training_on_spelled_specials(poisoned: Tokenizer, text: str) -> None:
    assert poisoned.decode(poisoned.encode(text)) == unicodedata.normalize("NFC", text)


@settings(max_examples=200, deadline=None)
@given(text=ANY_TEXT)
def test_decode_of_encode_is_nfc_under_dropout(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, dropout=0.3, seed=5)
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)


# fault 9
@pytest.mark.parametrize(
    "text", ["Crème brûlée, Ærø, Łódź", "Καλημέρα κόσμε", "☂", "½ cup", "👩🏽‍🚀🇫🇷", "日本語", "ـ٣"]
)
def test_characters_that_training_never_saw_come_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


# fault 11
@pytest.mark.parametrize(
    "text", ["Don't re-use (it)!", "a , b", "« Non »", " lead", "trail ", "a   b", "\t", " ", ""]
)
def test_spaces_are_neither_inserted_nor_lost(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(max_examples=300, deadline=None)
@given(ids=st.lists(st.integers(0, 450), max_size=20))
def test_decode_and_pieces_take_any_ids_a_model_can_give(tokenizer: Tokenizer, ids: list[int]) -> None:
    tokenizer.decode(ids).encode()
    pieces = tokenizer.pieces([i for i in ids if i < tokenizer.vocab_size])
    assert all(piece.isprintable() for piece in pieces)


def test_bytes_that_are_not_utf8_become_replacement_characters(tokenizer: Tokenizer) -> None:
    first, second = tokenizer.encode("Ω")[-2:]
    assert tokenizer.decode([first]) == "\ufffd"
    assert tokenizer.decode([first, second]) == "Ω"


def test_special_ids_are_0_1_2_and_decode_leaves_them_out(tokenizer: Tokenizer) -> None:
    assert (PAD_ID, BOS_ID, EOS_ID) == (0, 1, 2)
    assert tokenizer.decode([BOS_ID, *tokenizer.encode("the station"), EOS_ID, PAD_ID]) == "the station"


@pytest.mark.parametrize("text", [*SPELLED, *SPECIAL_TOKENS])
def test_text_that_spells_a_special_token_is_ordinary_text(
    poisoned: Tokenizer, text: str, tmp_path: Path
) -> None:
    poisoned.save(tmp_path / "tokenizer.json")
    for tokenizer in (poisoned, Tokenizer.load(tmp_path / "tokenizer.json")):
        ids = tokenizer.encode(text)
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(ids) | (
            {*range(3)} & set(tokenizer.encode_batch([text])[0])
        )
        assert tokenizer.decode(ids) == text


def test_each_digit_is_a_token_of_its_own() -> None:
    tokenizer = Tokenizer.train(["in 1984 and 1984 and 1984"] * 9, 300)
    assert tokenizer.pieces(tokenizer.encode("1984 v1.10"))[:5] == ["▁", "1", "9", "8", "4"]
    assert len(set(tokenizer.encode("11111"))) == 2


def test_the_first_word_has_the_same_token_as_inside_a_sentence(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("station the station") == [
        *tokenizer.encode("station the"),
        *tokenizer.encode("station"),
    ]


def test_composed_and_decomposed_accents_give_the_same_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("plai\u0302t") == tokenizer.encode("plaît")


def test_empty_text_has_no_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("") == [] == tokenizer.encode("", dropout=0.5)
    assert tokenizer.encode_batch(["", "a"]) == [[], tokenizer.encode("a")]


def test_batch_encoding_equals_single_encoding(tokenizer: Tokenizer) -> None:
    texts = [*TEXTS, *SPELLED, "  ", "plai\u0302t"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("text", ["\ud800", "fine until \udfff here"])
def test_a_lone_surrogate_is_refused_in_one_line(tokenizer: Tokenizer, text: str) -> None:
    for call in (
        tokenizer.encode,
        lambda t: tokenizer.encode_batch([t]),
        lambda t: tokenizer.encode(t, dropout=0.1),
    ):
        with pytest.raises(ValueError, match="lone surrogate") as error:
            call(text)
        assert "\n" not in str(error.value)


# BPE-dropout


@settings(max_examples=300, deadline=None)
@given(text=ANY_TEXT)
def test_our_merge_loop_without_dropout_equals_the_library(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text, dropout=1e-300) == tokenizer.encode(text)


def test_the_same_seed_drops_the_same_merges(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    for seed in range(20):
        assert tokenizer.encode(TEXTS[0], dropout=0.3, seed=seed) == again.encode(
            TEXTS[0], dropout=0.3, seed=seed
        )


def test_another_seed_drops_other_merges(tokenizer: Tokenizer) -> None:
    assert len({tuple(tokenizer.encode(TEXTS[5], dropout=0.3, seed=seed)) for seed in range(20)}) > 15


def test_dropout_of_one_leaves_single_bytes(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("à la gare", dropout=1.0)) == len(" à la gare".encode())


def test_more_dropout_gives_more_tokens(tokenizer: Tokenizer) -> None:
    lengths = [
        sum(len(tokenizer.encode(TEXTS[5], dropout=p, seed=s)) for s in range(50))
        for p in (0.0, 0.1, 0.4, 0.8)
    ]
    assert lengths == sorted(set(lengths))


def test_a_word_has_at_most_as_many_segmentations_as_draws(tokenizer: Tokenizer) -> None:
    assert (
        1
        < len({tuple(tokenizer.encode("station", dropout=0.5, seed=seed)) for seed in range(400)})
        <= NUM_DRAWS
    )


# Training


def test_training_text_is_streamed_and_the_vocabulary_bounded() -> None:
    def texts() -> Iterator[str]:
        yield from TEXTS

    assert Tokenizer.train(texts(), 300).vocab_size == 300


def test_a_small_corpus_gives_fewer_tokens_than_asked_for() -> None:
    assert MIN_VOCAB_SIZE < Tokenizer.train(["a cat", "a cat"], 5_000).vocab_size < 300
    assert Tokenizer.train([], 5_000).vocab_size == MIN_VOCAB_SIZE


def test_what_is_seen_once_is_not_merged() -> None:
    assert Tokenizer.train(["xyz"], 5_000).vocab_size == MIN_VOCAB_SIZE


def test_a_vocabulary_too_small_for_the_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="--vocab-size must be at least 259, got 258"):
        Tokenizer.train(TEXTS, 258)


def test_the_same_texts_give_the_same_file_whatever_the_threads_and_the_hash_seed(tmp_path: Path) -> None:
    # Rare words with equal counts everywhere: ties are what could come out in another order.
    code = (
        "import sys; from pathlib import Path; from tokenizer import Tokenizer\n"
        "texts = [' '.join(f'{a}{b}{c}' for c in 'zyxwv') for a in 'abcdefghij' for b in 'klmnopqrst'] * 2\n"
        "Tokenizer.train(texts, 700).save(Path(sys.argv[1]))"
    )
    files = []
    for run, threads in enumerate(("1", "2", "4")):
        path = tmp_path / f"{run}.json"
        env = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": str(run)}
        subprocess.run(
            [sys.executable, "-c", code, path], check=True, env=env, cwd=Path(__file__).parent.parent
        )
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]


# Files


def test_a_saved_tokenizer_loads_equal(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)
    assert loaded.encode(TEXTS[0], dropout=0.4, seed=7) == tokenizer.encode(TEXTS[0], dropout=0.4, seed=7)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()


def test_the_digest_stays_with_the_file_and_differs_for_another_tokenizer(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").digest == tokenizer.digest
    assert Tokenizer.train(TEXTS, MIN_VOCAB_SIZE).digest != tokenizer.digest


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no tokenizer file .*tokenizer\.json"):
        Tokenizer.load(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj.pop("model"),
        lambda obj: obj.update(model={"type": "WordPiece", "vocab": {}}),
        lambda obj: obj["model"].update(vocab={}),
        lambda obj: obj["model"].update(merges=[["never", "seen"]]),
        lambda obj: obj["model"].update(merges=["a b", 3]),
        lambda obj: obj["model"]["vocab"].update({"⟨pad⟩": 5}),
        lambda obj: obj["model"]["vocab"].update({"日": 400}),
        lambda obj: obj["model"]["vocab"].update({"Ġzz": -1}),
        lambda obj: obj["model"]["vocab"].update({"Ġzz": 10**30}),
        lambda obj: obj["model"]["vocab"].update({"Ġzz": "x"}),
        lambda obj: obj["model"]["vocab"].pop("a"),
        lambda obj: obj.update(added_tokens=[{"id": 0, "content": "[PAD]"}]),
        lambda obj: obj.update(pre_tokenizer={"type": "Whitespace"}),
        lambda obj: obj.update(normalizer={"type": "NFKC"}),
    ],
)
def test_a_foreign_tokenizer_file_is_refused_in_one_line(
    tokenizer: Tokenizer, tmp_path: Path, change: object
) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    obj = json.loads(path.read_text())
    assert callable(change)
    change(obj)
    path.write_text(json.dumps(obj))
    assert_refused(path)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe\x00", b"[" * 100_000, b'{"model": {"type": "BPE"}}']
)
def test_a_broken_tokenizer_file_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    assert_refused(path)


def assert_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="is not a tokenizer that this program trained") as error:
        Tokenizer.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
