"""Text to token ids and back: a byte-level BPE that loses nothing, trained on the corpus."""

import hashlib
import json
import random
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import cast

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

import runtime
from strict_json import Json

# "⟨" is none of the 256 characters that stand for bytes: no text can ever become one of these tokens.
SPECIAL_TOKENS = ("⟨pad⟩", "⟨bos⟩", "⟨eos⟩")
PAD_ID, BOS_ID, EOS_ID = range(3)
MIN_VOCAB_SIZE = len(SPECIAL_TOKENS) + 256

# Of tokenizer.json: several times what a vocabulary of 32,000 takes.
MAX_BYTES = 32 << 20
# Each word is cut in one of this many ways under BPE-dropout: varied enough, and few enough to be cached.
NUM_DRAWS = 16


class Tokenizer:
    """Byte-level BPE on NFC text, every digit a token of its own.

    `decode(encode(text))` equals NFC(text) for every string. A space is put before the text, so that the
    first word has the same token as inside a sentence. The special tokens have ids and nothing else: text
    that spells one, like "⟨eos⟩" or "[EOS]", is ordinary text.
    """

    def __init__(self, vocab: dict[str, int], merges: list[tuple[str, str]]) -> None:
        # The special tokens are plain entries, never "added tokens", which are looked for in the text.
        self._hf = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
        self._hf.pre_tokenizer = _words()
        self._hf.decoder = decoders.ByteLevel()
        self._vocab = vocab
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._segment = lru_cache(maxsize=2**17)(self.segment)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn the merges; the same texts give the same tokenizer.

        Args:
            texts: read once, never held in memory together.
            vocab_size: the most tokens there may be, special ones and the 256 bytes included.
        """
        if vocab_size < MIN_VOCAB_SIZE:
            raise ValueError(f"--vocab-size must be at least {MIN_VOCAB_SIZE}, got {vocab_size}")
        hf = tokenizers.Tokenizer(models.BPE())
        hf.pre_tokenizer = _words()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=list(_BYTES),
            show_progress=False,
        )
        hf.train_from_iterator((_prepare(text) for text in texts), trainer)
        return cls(*_read_model(json.loads(hf.to_str())))

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a tokenizer.json that `save` wrote.

        Raises:
            FileNotFoundError: nothing there.
            ValueError: the file is not one of ours.
        """
        if not path.is_file():
            raise FileNotFoundError(f"no tokenizer file {path}; training writes it into the model folder")
        try:
            obj = cast(dict[str, Json], runtime.read_json(path, MAX_BYTES))
            vocab, merges = _read_model(obj)
            tokenizer = cls(vocab, merges)
            own = json.loads(tokenizer._hf.to_str())
            if any(
                obj.get(part) != own[part]
                for part in ("added_tokens", "normalizer", "pre_tokenizer", "decoder")
            ):
                raise ValueError("it cuts text in another way")
            return tokenizer
        except ValueError as error:  # of json and Unicode, too
            reason = str(error).splitlines()[0][:200]
        raise ValueError(
            f"{path} is not a tokenizer that this program trained ({reason}); take tokenizer.json anew"
        )

    def save(self, path: Path) -> None:
        """Write tokenizer.json, whole or not at all."""
        runtime.write_atomic(path, self._hf.to_str(pretty=True))

    @property
    def vocab_size(self) -> int:
        """Number of token ids, special ones included."""
        return len(self._vocab)

    @property
    def digest(self) -> str:
        """The same for two tokenizers only if they cut every text alike; in hexadecimal."""
        return hashlib.blake2b(self._hf.to_str().encode(), digest_size=16).hexdigest()

    def encode(self, text: str, *, dropout: float = 0.0, seed: int = 0) -> list[int]:
        """Token ids of a text, without special ones.

        Args:
            dropout: probability of leaving a merge out (BPE-dropout), for training only.
            seed: fixes what is left out.
        Raises:
            ValueError: the string holds a lone surrogate, so it is not text.
        """
        prepared = _prepare(text)
        if not prepared:
            return []
        if not dropout:
            return self._hf.encode(prepared).ids
        draws = random.Random(seed)
        words = self._hf.pre_tokenizer.pre_tokenize_str(prepared)
        return [i for word, _ in words for i in self._segment(word, dropout, int(draws.random() * NUM_DRAWS))]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many texts, on all threads."""
        return [encoding.ids for encoding in self._hf.encode_batch_fast([_prepare(text) for text in texts])]

    def segment(self, word: str, dropout: float, draw: int) -> tuple[int, ...]:
        """Token ids of one word when each merge is left out with a probability, anew at every step.

        Args:
            word: as the pre-tokenizer gives it, one character per byte.
            draw: which of the possible results; the same draw gives the same result.
        Source: Provilkov et al. 2020, arXiv:1910.13267, algorithm 1.
        """
        drop = random.Random(f"{draw} {word}").random
        symbols = list(word)
        while True:
            ranks = (self._ranks.get(pair) for pair in pairwise(symbols))
            kept = [(rank, i) for i, rank in enumerate(ranks) if rank is not None and drop() >= dropout]
            if not kept:
                return tuple(self._vocab[symbol] for symbol in symbols)
            _, i = min(kept)
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids; special ones are left out, bytes that are not UTF-8 become U+FFFD."""
        text = self._hf.decode([i for i in ids if i >= len(SPECIAL_TOKENS)])
        return text.removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person can read it: "▁" for a space, "\\xc3" for half a character."""
        return [self._piece(i) for i in ids]

    def _piece(self, token_id: int) -> str:
        if token_id < len(SPECIAL_TOKENS):
            return SPECIAL_TOKENS[token_id]
        token = cast(str, self._hf.id_to_token(token_id))
        text = bytes(map(_BYTES.index, token)).decode(errors="backslashreplace").replace(" ", "▁")
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def check_text(text: str) -> None:
    """Raise a ValueError for a string that holds lone surrogates, as bytes that are not UTF-8 leave them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"not text: {text[:40]!a} holds a lone surrogate; give valid Unicode") from None


def _prepare(text: str) -> str:
    """NFC, with a space in front; the one place where text is changed before it is cut."""
    check_text(text)
    return " " + unicodedata.normalize("NFC", text) if text else ""


def _words() -> pre_tokenizers.PreTokenizer:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])


def _read_model(file: Json) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges of a parsed tokenizer.json, checked down to the last token."""
    model = file.get("model") if isinstance(file, dict) else None
    if not isinstance(model, dict) or model.get("type") != "BPE":
        raise ValueError("it holds no BPE model")
    vocab, merges = model.get("vocab"), model.get("merges")
    if not isinstance(vocab, dict) or not isinstance(merges, list):
        raise ValueError("it holds no vocabulary or no merges")
    tokens = list(vocab)
    if list(vocab.values()) != list(range(len(tokens))) or any(isinstance(i, bool) for i in vocab.values()):
        raise ValueError("its ids are not 0, 1, 2, … in order")
    if tuple(tokens[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS or not vocab.keys() >= set(_BYTES):
        raise ValueError("its special tokens or its bytes are not ours")
    if not set().union(*tokens[len(SPECIAL_TOKENS) :]) <= set(_BYTES):
        raise ValueError("it has a token that is not made of bytes")
    if not all(_is_merge(merge, vocab) for merge in merges):
        raise ValueError("it has a merge that gives no token")
    return cast(dict[str, int], vocab), [
        cast(tuple[str, str], tuple(cast(list[str], merge))) for merge in merges
    ]


def _is_merge(merge: Json, vocab: dict[str, Json]) -> bool:
    if not isinstance(merge, list) or len(merge) != 2:
        return False
    left, right = merge
    return isinstance(left, str) and isinstance(right, str) and {left, right, left + right} <= vocab.keys()


def _byte_characters() -> str:
    """The character that stands for each byte: itself where it can be printed, else one from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))


_BYTES = _byte_characters()
