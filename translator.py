"""Text, pictures or features in, translation out: sentences, batches, layout, warnings. All that decodes goes
through here.

Shapes: B sources of a batch, S source length, T target length.
"""

import re
import textwrap
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

import model_folder
import runtime
from config import DecodeConfig
from dataset import causal_mask
from decoding import Hypothesis, Sentences, Vocabulary, search
from incremental import IncrementalDecoder
from inputs import Input, Source, TextInput, Values
from languages import primary_language
from model import Transformer
from parallel import fork_map
from shortlist import Shortlist
from tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer, check_text

LINE_BREAK = r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])+"
# Where too long a sentence may be cut: after a stop with a space behind it, or one that needs none.
STOP = re.compile(r"[.!?;:,…)\]»”](?=\s)|[。！？；：，、]")
DECODE = DecodeConfig()
# Fewer sentences than this are not worth a second process.
MIN_BATCH = 8
SOURCES = (str, bytes, Path, np.ndarray)


class Candidate(NamedTuple):
    """One translation of a text among the n best."""

    text: str
    score: float


@dataclass(frozen=True)
class Translation:
    """What became of one text."""

    source: str
    """The text, or the name of a picture or of features."""
    text: str
    """The best translation, with the source's white space between sentences."""
    score: float
    """Mean of its sentences' scores (length-penalised log-probabilities); 0 where nothing was translated."""
    candidates: tuple[Candidate, ...]
    """Best first, the first being `text`. The k-th joins each sentence's k-th best, or its last."""
    warnings: tuple[str, ...]
    """What a reader of the translation should know, a line each."""


class Attention(NamedTuple):
    """Where the decoder looked when it wrote each token."""

    source: list[str]
    """S tokens as a person can read them, the end token included; numbers for patches and frames."""
    target: list[str]
    """T tokens, likewise."""
    weights: Tensor
    """(T, S), float32, rows sum to 1; mean over the heads of one layer."""
    signal: Tensor | None = None
    """What patches or frames were cut from: a strip (height, width), uint8, or features (channels, frames), float32."""
    step: int = 1
    """Columns of `signal` from one source token to the next."""


Key = str | int
"""A sentence, or the position of a picture or features among the sources."""


class Part(NamedTuple):
    """A stretch of a text: a sentence to translate, or white space and symbols to copy."""

    text: str
    key: Key | None
    """What stands for its translation; None for what is copied."""


class Result(NamedTuple):
    """One translation of a sentence."""

    text: str
    score: float
    finished: bool


class Translator:
    """A model with its tokenizer.

    Args:
        src_lang: code of the source language, for the rules that find its sentences.
        max_length: longest source the model was trained on, in tokens, end token included.
        split_sentences: False translates each text as one unit, like a row of a corpus.
        workers: batches translated side by side on a CPU; see `runtime.start`.
        source: what the model reads; text unless given.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        src_lang: str,
        max_length: int,
        split_sentences: bool = True,
        workers: int = 1,
        source: Input | None = None,
    ) -> None:
        self.model, self.tokenizer, self.source = model, tokenizer, source or TextInput(tokenizer)
        self.src_lang, self.max_length = src_lang, max_length
        self.split_sentences = split_sentences
        self.decoder: IncrementalDecoder | None = None
        """Kept where the weights stay as they are."""
        self.path: Path | None = None
        """The model folder it was loaded from."""
        self._shortlist: Shortlist | None = None
        self.workers = workers

    @property
    def device(self) -> torch.device:
        """Where the model is; a training run may move it."""
        return self.model.projection_layer.proj.weight.device

    @classmethod
    def load(
        cls, path: Path | str, *, device: str = "auto", split_sentences: bool = True, workers: int = 1
    ) -> "Translator":
        """Load a model folder.

        Raises:
            FileNotFoundError, ValueError: nothing there, or not a model folder.
        """
        loaded = model_folder.load(Path(path), runtime.device(device))
        translator = cls(
            loaded.model,
            loaded.tokenizer,
            src_lang=loaded.config.data.src,
            max_length=loaded.config.data.max_length,
            split_sentences=split_sentences,
            workers=workers,
            source=loaded.source,
        )
        translator.decoder, translator.path = IncrementalDecoder(loaded.model), loaded.path
        return translator

    def translate(
        self, sources: Sequence[Source], *, decode: DecodeConfig = DECODE, n_best: int = 1
    ) -> list[Translation]:
        """Translate texts of any length and layout, or pictures, or features; none depends on the others.

        Lines, sentences and the white space around them stay where they are. What has neither letter nor
        digit is copied. A sentence longer than the model knows is translated in pieces, with a warning.

        Args:
            sources: of the kinds that the model reads; a path names a picture or a .npy file.
            n_best: candidates wanted, at most `decode.beam`; the best does not depend on it.
        Raises:
            ValueError, FileNotFoundError: a source of another kind, broken or missing.
        """
        if isinstance(sources, str) or not all(isinstance(source, SOURCES) for source in sources):
            raise TypeError("translate takes a list of sources, also for one: translate(['Good morning.'])")
        if not 1 <= n_best <= decode.beam:
            raise ValueError(
                f"--n-best must be between 1 and --beam, got {n_best} with a beam of {decode.beam}"
            )
        self._prepare_shortlist(decode)
        encoded: dict[Key, Values] = {}
        plans = []
        for number, source in enumerate(sources):
            warnings: list[str] = []
            plans.append((list(self._parts(source, number, encoded, warnings)), warnings))
        results = self._search(encoded, decode, n_best)
        return [_assemble(parts, warnings, results) for parts, warnings in plans]

    def attention(self, source: Source, *, decode: DecodeConfig = DECODE, layer: int = -1) -> Attention:
        """Cross-attention between the first sentence of a text, a picture or features, and its translation.

        Args:
            layer: which of the decoder's layers; in the last, -1, most names look at themselves.
        """
        self._prepare_shortlist(decode)
        encoded: dict[Key, Values] = {}
        for _ in self._parts(source, 0, encoded, []):
            if encoded:
                break
        if not encoded:
            raise ValueError(f"nothing to translate in {str(source)[:40]!r}; give a sentence")
        values = next(iter(encoded.values()))
        with _evaluating(self.model):
            [[[best]]] = self._decode(self._ready(), [[values]], decode, 1)
        src, src_mask = self._batch([values])
        said = [*best.ids, EOS_ID] if best.finished else best.ids
        tgt = torch.tensor([[BOS_ID, *said[:-1]]], device=src.device)  # (1, T)
        tgt_mask = causal_mask(tgt.size(1), src.device)
        layers: list[Tensor] = []
        with _evaluating(self.model), torch.inference_mode():
            memory = self.model.encode(src, src_mask)
            self.model.decode(memory, src_mask, tgt, tgt_mask, cross_weights=layers)
        weights = layers[layer][0].float().mean(0).cpu()  # (T, S)
        pieces = self.tokenizer.pieces
        signal = self.source.signal(values)
        if signal is None:
            return Attention(pieces([*values.tolist(), EOS_ID]), pieces(said), weights)
        numbers = [str(i) for i in range(1, weights.size(1) + 1)]
        return Attention(numbers, pieces(said), weights, *signal)

    def _parts(
        self, source: Source, number: int, encoded: dict[Key, Values], warnings: list[str]
    ) -> Iterator[Part]:
        """Cut a source; its parts joined are the text. Its sentences go into `encoded`, ready for the model."""
        if isinstance(source, str):
            yield from self._sentences(source, encoded, warnings)
            return
        [values] = self.source.encode([source])
        length = self.source.length(values)
        self._require_positions(_name(source, number), values)
        if length > self.max_length:
            warnings.append(f"{length} tokens, but the model was trained on at most {self.max_length}")
        if not values.any():
            warnings.append("nothing is to be seen in it; what follows is made up")
        encoded[number] = values
        yield Part(_name(source, number), number)

    def _sentences(self, text: str, encoded: dict[Key, Values], warnings: list[str]) -> Iterator[Part]:
        check_text(text)
        warnings += self.source.warnings(text)
        for unit in self._units(text):
            pieces = [unit]
            if _has_words(unit) and unit.strip() not in encoded:
                length = self._length(unit.strip())
                if length > self.max_length:
                    pieces = list(self._pieces(unit))
                    warnings.append(
                        f"{length} tokens, but the model was trained on at most {self.max_length}: "
                        f"translated in {len(pieces)} pieces: {_excerpt(unit)}"
                    )
            for piece in pieces:
                core = piece.strip() if _has_words(piece) else ""
                before, _, after = piece.partition(core) if core else (piece, "", "")
                if core and core not in encoded:
                    [encoded[core]] = self.source.encode([core])
                    self._require_positions(repr(core), encoded[core])
                parts = (Part(before, None), Part(core, core), Part(after, None))
                yield from (part for part in parts if part.text)

    def _require_positions(self, name: str, values: Values) -> None:
        """See that learned positions reach to the end of what cannot be cut: a file, a single wide character."""
        if self.model.src_pos.table is not None and (length := self.source.length(values)) > self.max_length:
            raise ValueError(
                f"{name}: {length} tokens, but the model has {self.max_length} positions;"
                " cut it, or train with a larger --max-length"
            )

    def _units(self, text: str) -> Iterator[str]:
        if not self.split_sentences:
            yield text
            return
        from sentencex import segment  # rows of corpora do without it

        for line in re.split(f"({LINE_BREAK})", text):
            sentences = list(segment(primary_language(self.src_lang), line)) if _has_words(line) else [line]
            yield from sentences if "".join(sentences) == line else [line]

    def _pieces(self, text: str) -> Iterator[str]:
        """Cut after the last stop of the second half that fits, else at white space, else anywhere."""
        room = self.max_length
        # A token has seldom more characters, and encoding the whole rest each time would be quadratic.
        window = 8 * room

        def num_tokens(length: int) -> int:
            return self._length(text[:length].strip())

        while len(text) > window or num_tokens(len(text)) > room:
            end = max(1, bisect_right(range(min(len(text), window) + 1), room, lo=1, key=num_tokens) - 1)
            stops = [match.end() for match in STOP.finditer(text, end // 2, end)]
            spaces = [match.end() for match in re.finditer(r"\s+", text[:end])]
            end = (stops or [i for i in spaces if text[:i].strip()] or [end])[-1]
            yield text[:end]
            text = text[end:]
        yield text

    def _length(self, text: str) -> int:
        """Tokens that the encoder reads of a sentence."""
        return self.source.length(self.source.encode([text])[0])

    def _search(
        self, encoded: dict[Key, Values], decode: DecodeConfig, n_best: int
    ) -> dict[Key, list[Result]]:
        """Translate each distinct sentence once, with others of its length."""
        order = sorted(encoded, key=lambda key: -self.source.length(encoded[key]))
        # Batches side by side fill the cores of a CPU; an accelerator is filled by one, and its memory by several.
        workers = self.workers if self.device.type == "cpu" else 1
        # A part for each worker that has MIN_BATCH sentences to do; the longest first, so that all end together.
        size = min(decode.batch_size, max(MIN_BATCH, -(-len(order) // workers)))
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        decoder = self._ready()

        def decoded(batches: Iterator[list[Key]]) -> list[list[list[Hypothesis]]]:
            return self._decode(
                decoder, ([encoded[key] for key in batch] for batch in batches), decode, n_best
            )

        with _evaluating(self.model):
            rows = [row for rows in fork_map(decoded, batches, workers) for row in rows]
        return {key: self._results(key, row) for key, row in zip(order, rows, strict=True)}

    def _results(self, key: Key, hypotheses: list[Hypothesis]) -> list[Result]:
        results: dict[str, Result] = {}  # two ways of cutting the same words are one translation
        for ids, score, finished in hypotheses:
            text = self.tokenizer.decode(ids).strip()
            if not re.search(LINE_BREAK, str(key)):
                text = re.sub(LINE_BREAK, " ", text)  # lines of the output belong to lines of the input
            results.setdefault(text, Result(text, score, finished))
        return list(results.values())

    def _prepare_shortlist(self, decode: DecodeConfig) -> None:
        if decode.shortlist and self._shortlist is None:
            if self.path is None:
                raise ValueError("--shortlist needs a translator that was loaded from a model folder")
            self._shortlist = Shortlist.load(self.path, self.tokenizer.vocab_size)

    def _ready(self) -> IncrementalDecoder:
        """The decoder as the search needs it: made anew each time where the weights may have changed."""
        return self.decoder or IncrementalDecoder(self.model)

    def _decode(
        self, decoder: IncrementalDecoder, batches: Iterable[list[Values]], decode: DecodeConfig, n_best: int
    ) -> list[list[list[Hypothesis]]]:
        """The only call of the search: batches of sources to hypotheses."""
        return search(
            decoder,
            (self._padded(batch, decode.shortlist) for batch in batches),
            Vocabulary(BOS_ID, EOS_ID, (PAD_ID, BOS_ID)),
            beam=decode.beam,
            alpha=decode.length_penalty,
            n_best=n_best,
        )

    def _padded(self, batch: list[Values], num_candidates: int) -> Sentences:
        learned = self.model.tgt_pos.table
        longest = None if learned is None else len(learned)
        # Beyond the lengths it was trained on a model may never end, and minutes would pass.
        lengths = [min(self.source.length(values), self.max_length) for values in batch]
        bounds = [self.source.most_per_token * length + 20 for length in lengths]
        return Sentences(
            *self._batch(batch),
            [min(bound, longest or bound) for bound in bounds],
            self._shortlists(batch, num_candidates),
        )

    def _shortlists(self, batch: list[Values], num_candidates: int) -> list[Tensor] | None:
        if not num_candidates:
            return None
        assert self._shortlist is not None
        return [self._shortlist.of(values, num_candidates).to(self.device) for values in batch]

    def _batch(self, batch: list[Values]) -> tuple[Tensor, Tensor]:
        """What the encoder reads, padded, and its mask (B, 1, 1, S)."""
        src, src_mask = self.source.pad(batch)
        return src.to(self.device), src_mask.to(self.device)


@contextmanager
def _evaluating(model: Transformer) -> Iterator[None]:
    """Without dropout; afterwards the model is as it was."""
    was_training = model.training
    if was_training:  # setting it visits every module
        model.eval()
    try:
        yield
    finally:
        if was_training:
            model.train()


def _assemble(parts: list[Part], warnings: list[str], results: dict[Key, list[Result]]) -> Translation:
    keys = [part.key for part in parts if part.key is not None]
    count = max((len(results[key]) for key in keys), default=1)
    candidates = []
    for rank in range(count):
        chosen = {key: results[key][min(rank, len(results[key]) - 1)] for key in keys}
        score = sum(chosen[key].score for key in keys) / max(1, len(keys))
        candidates.append(Candidate(_join(parts, chosen), score))
    for key in dict.fromkeys(keys):  # each one once, in order
        of = f": {_excerpt(key)}" if isinstance(key, str) else ""
        warnings += [f"{what}{of}" for what in _warnings(key, results[key][0])]
    text = "".join(part.text for part in parts)
    return Translation(text, *candidates[0], tuple(candidates), tuple(warnings))


def _join(parts: list[Part], chosen: dict[Key, Result]) -> str:
    joined = ""
    for i, part in enumerate(parts):
        # Scripts that end a sentence without a space meet one that needs it.
        if (
            part.key is not None
            and i
            and parts[i - 1].text[-1:] in "。！？"
            and joined[-1:] in (".", "!", "?")
        ):
            joined += " "
        joined += part.text if part.key is None else chosen[part.key].text
    return joined


def _warnings(key: Key, result: Result) -> Iterator[str]:
    if not result.text:
        yield "translated to nothing"
    if not result.finished:
        yield "stopped at the length bound, the end may be missing"
    if isinstance(key, str) and _digits(key) != _digits(result.text):
        yield "the digits differ"
    if "\ufffd" in result.text and "\ufffd" not in str(key):
        yield "a character came out broken"


def _digits(text: str) -> Counter[int]:
    return Counter(value for c in text if (value := unicodedata.decimal(c, None)) is not None)


def _has_words(text: str) -> bool:
    return any(c.isalnum() for c in text)


def _excerpt(text: str) -> str:
    return textwrap.shorten(text, 60, placeholder=" …") if " " in text[:60].strip() else text[:60]


def _name(source: Source, number: int) -> str:
    """How a source that is no text is called: its path, or its position among the sources, from 1."""
    return str(source) if isinstance(source, Path) else f"source {number + 1}"
