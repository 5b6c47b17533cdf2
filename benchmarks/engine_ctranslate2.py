"""CTranslate2 as an engine of the benchmark, float32."""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
from peers import Layout, Subwords, longest


class CTranslate2:
    """Translates with a model that export.py made.

    Args:
        layout: how the threads share the work: inter, a batch each; intra, every operation together.
    """

    def __init__(self, model: Path, threads: int, layout: Layout) -> None:
        self.subwords = Subwords(model)
        self.tokens = self.subwords.vocabulary
        self.index = {token: i for i, token in enumerate(self.tokens)}
        self.engine = ctranslate2.Translator(
            str(model),
            device="cpu",
            compute_type="float32",
            inter_threads=threads if layout == "inter" else 1,
            intra_threads=threads if layout == "intra" else 1,
        )
        self._ids: list[list[int]] = []

    def translate(self, sentences: Sequence[str], batch: int, beam: int) -> list[str]:
        """Text to text; with a batch of 1, a call for each sentence."""
        rows = [[self.tokens[i] for i in ids] for ids in self.subwords.encode(sentences)]
        groups = [[row] for row in rows] if batch == 1 else [rows]
        self._ids = []
        for group in groups:
            results = self.engine.translate_batch(
                group,
                max_batch_size=batch,
                beam_size=beam,
                length_penalty=1.0,
                # One bound for a call: the largest of its sentences.
                max_decoding_length=longest(max(map(len, group)) + 1),
            )
            self._ids += [[self.index[token] for token in result.hypotheses[0]] for result in results]
        return [self.subwords.decode(ids) for ids in self._ids]

    def ids(self) -> list[list[int]]:
        """Of the last translation."""
        return self._ids
