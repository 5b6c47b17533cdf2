"""Validation: the averaged weights scored on decoded text."""

from collections.abc import Sequence
from pathlib import Path

from datasets import Dataset

import distributed
import model_folder
from checkpoint import TrainState
from config import Config, DecodeConfig
from inputs import Input, Source
from learner import Learner
from reporting import Reporter
from scores import quick_score
from stopping import Interrupted, StopRequest
from tokenizer import Tokenizer
from translator import Translation, Translator

VALIDATION_ROWS = 1_000
NUM_SAMPLES = 5


class Validator:
    """Scores the averaged weights on decoded text and keeps the best ones.

    Args:
        rows: columns src and tgt; of more than 1,000, 1,000 at even distances are used.
    """

    def __init__(
        self,
        learner: Learner,
        tokenizer: Tokenizer,
        source: Input,
        config: Config,
        rows: Dataset,
        workers: int,
    ) -> None:
        num = min(len(rows), VALIDATION_ROWS)
        chosen = rows.select([i * len(rows) // num for i in range(num)])[:]
        self.sources, self.references = list(chosen["src"]), list(chosen["tgt"])
        with_words = (s for s in self.sources if not isinstance(s, str) or any(map(str.isalpha, s)))
        self.example = next(with_words, "1")
        self.learner, self.tgt, self.names = learner, config.data.tgt, config.data.dataset
        self.translator = Translator(
            learner.averaged,
            tokenizer,
            src_lang=config.data.src,
            max_length=config.data.max_length,
            split_sentences=False,
            workers=workers,
            source=source,
        )

    def __call__(self, state: TrainState, reporter: Reporter | None, path: Path, stop: StopRequest) -> None:
        """Translate, score, log; on a better score note it in `state` and write model.safetensors.

        The ranks translate a share of the rows each, and each has the score of all of them.

        Raises:
            Interrupted: a signal came to one of the ranks; nothing has changed on any.
        """
        with self.learner.gathered():
            self._validate(state, reporter, path, stop)

    def _validate(self, state: TrainState, reporter: Reporter | None, path: Path, stop: StopRequest) -> None:
        translations = []
        for translation in distributed.shared(lambda rows: self._translate(rows, stop), self.sources):
            if translation is None:
                raise Interrupted
            translations.append(translation)
        bleu, chrf = quick_score([t.text for t in translations], self.references, tgt=self.tgt)
        state.needs_validation = False
        if bleu > state.best_score:
            state.best_score, state.best_step, state.bad_validations = bleu, state.step, 0
            if reporter is not None:
                state.best_weights = model_folder.save_weights(path, self.learner.averaged, state.step)
        else:
            state.bad_validations += 1
        if reporter is None:
            return
        picture = self.translator.attention(self.example)
        values = {"bleu": bleu, "chrf": chrf}
        reporter.log_validation(state, values, translations[:NUM_SAMPLES], picture)
        if state.corpus_tokens:
            reporter.say(f"target tokens so far: {tokens_given(self.names, state)}")

    def _translate(self, sources: list[Source], stop: StopRequest) -> Sequence[Translation | None]:
        """This rank's share; Nones when a signal breaks it off, which the other ranks have to hear of."""
        try:
            with stop.interruptible():
                return self.translator.translate(sources, decode=DecodeConfig(beam=1))
        except Interrupted:
            return [None] * len(sources)


def tokens_given(names: Sequence[str], state: TrainState) -> str:
    """How many target tokens each of several corpora gave so far."""
    given = zip(names, state.corpus_tokens, strict=True)
    total = max(1, sum(state.corpus_tokens))
    return ", ".join(f"{name} {count:,} ({count / total:.1%})" for name, count in given)
