"""Translate from the command line: arguments, a file or standard input to text."""

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import cast

import tyro

import checkpoint
import runtime
from config import DecodeConfig, Json, parse_args
from lines import Line, decode_utf8, parse_line, read_lines
from translator import LINE_BREAK, Translation, Translator

DESCRIPTION = """Translate sentences, a file or standard input. Line n of the output belongs to line n
of the input.

examples:
  python translate.py "Where is the bank?" "How much does the coffee cost?"
  python translate.py --input letter.txt --output brief.txt
  echo "Good morning" | python translate.py --model runs/letters-en-fr --beam 1
  python translate.py "Where is the bank?" --attention attention.png
"""
PICTURES = (".png", ".svg", ".pdf")
READ_BYTES = 65_536


@dataclass(frozen=True)
class TranslateConfig:
    """What goes in, what comes out, and the model between."""

    sentences: tyro.conf.Positional[tuple[str, ...]] = ()
    """Texts to translate, after -- if one starts with a dash; without any, --input or standard input."""
    input: Path | None = None
    """File to translate, UTF-8, line by line."""
    output: Path | None = None
    """File to write, whole or not at all; standard output by default."""
    model: Path | None = None
    """Model folder; the newest finished one in runs/ by default."""
    n_best: int = 1
    """Translations of each line, at most --beam; more than one as: line, tab, rank, tab, score, tab, text."""
    json: bool = False
    """Print one object a line: source, translation, score, candidates, warnings (otherwise on stderr)."""
    attention: Path | None = None
    """Draw where the model looked (.png, .svg, .pdf), for the first sentence of a single text."""
    threads: int | None = None
    """CPU threads; all cores by default."""
    device: str = "auto"
    """cpu, cuda, mps, …; auto takes an accelerator when there is one."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    def __post_init__(self) -> None:
        if self.sentences and self.input:
            raise ValueError("give sentences or --input, not both")
        if not 1 <= self.n_best <= self.decode.beam:
            raise ValueError(f"--n-best must be between 1 and --beam ({self.decode.beam}), got {self.n_best}")
        if self.attention and len(self.sentences) != 1:
            raise ValueError("--attention draws one sentence; give it as the only argument")
        if self.attention and self.attention.suffix not in PICTURES:
            raise ValueError(f"--attention must end in {', '.join(PICTURES)}, got {self.attention}")


def main(args: Sequence[str] | None = None) -> None:
    """Translate and print or save; see --help."""
    config = parse_args(TranslateConfig, args=args, description=DESCRIPTION)
    workers = runtime.start(config.threads)
    runtime.check_writable("--output", config.output)
    runtime.check_writable("--attention", config.attention)
    # A file is read whole before anything is translated: what is wrong with it is said at once.
    given = list(read_lines(config.input)) if config.input else _arguments(config.sentences)
    path = config.model or checkpoint.newest_run()
    if config.model is None:
        data = checkpoint.read_config(path)[0].data
        print(f"model: {path} ({data.src} → {data.tgt})", file=sys.stderr)
    translator = Translator.load(path, device=config.device, workers=workers)
    if config.attention:
        _draw(translator, config.sentences[0], config.attention, config.decode)
    from_stdin = not config.sentences and not config.input
    chunks = _read_stdin() if from_stdin else _chunks(given, 16 * config.decode.batch_size)
    outputs = _translate(translator, chunks, config)
    if config.output:
        runtime.write_atomic(config.output, "".join(outputs))
    else:
        for output in outputs:
            sys.stdout.buffer.write(output.encode())
            sys.stdout.buffer.flush()


def _translate(
    translator: Translator, chunks: Iterable[list[Line]], config: TranslateConfig
) -> Iterator[str]:
    """What to write for each chunk of lines; warnings go to standard error meanwhile."""
    unit = "sentence" if config.sentences else "line"
    for chunk in chunks:
        texts = [line.text for line in chunk]
        translations = translator.translate(texts, decode=config.decode, n_best=config.n_best)
        if not config.json:
            for line, translation in zip(chunk, translations, strict=True):
                for warning in translation.warnings:
                    print(f"{unit} {line.number}: {warning}", file=sys.stderr)
        yield "".join(_format(*pair, config) for pair in zip(chunk, translations, strict=True))


def _format(line: Line, translation: Translation, config: TranslateConfig) -> str:
    if config.json:
        candidates: list[Json] = [{"text": c.text, "score": c.score} for c in translation.candidates]
        record: dict[str, Json] = {"source": translation.source, "translation": translation.text}
        record |= {"score": translation.score, "candidates": candidates}
        record["warnings"] = list(translation.warnings)
        return json.dumps(record, ensure_ascii=False) + "\n"
    if config.n_best == 1:
        return translation.text + line.ending
    return "".join(
        f"{line.number}\t{rank}\t{candidate.score:.4f}\t{re.sub(LINE_BREAK, ' ', candidate.text)}\n"
        for rank, candidate in enumerate(translation.candidates, 1)
    )


def _arguments(sentences: Sequence[str]) -> list[Line]:
    raw = enumerate((text.encode(errors="surrogateescape") for text in sentences), 1)
    return [Line(number, decode_utf8(data, f"sentence {number}"), "\n") for number, data in raw]


def _read_stdin() -> Iterator[list[Line]]:
    """Whole lines as soon as they are there, many at once where they come fast."""
    if sys.stdin.isatty():
        print("Type a sentence and press Enter; Ctrl-D ends.", file=sys.stderr)
    stdin = cast(io.BufferedReader, sys.stdin.buffer)
    number, rest = 0, b""
    while data := stdin.read1(READ_BYTES):
        *whole, rest = (rest + data).split(b"\n")
        if whole:
            numbered = enumerate(whole, number + 1)
            yield [parse_line(line + b"\n", i, "standard input") for i, line in numbered]
        number += len(whole)
    if rest:
        yield [parse_line(rest, number + 1, "standard input")]


def _chunks(given: Iterable[Line], size: int) -> Iterator[list[Line]]:
    rest = iter(given)
    while chunk := list(islice(rest, size)):
        yield chunk


def _draw(translator: Translator, text: str, path: Path, decode: DecodeConfig) -> None:
    from picture import draw_attention

    attention = translator.attention(text, decode=decode)
    image = io.BytesIO()
    draw_attention(*attention).savefig(image, format=path.suffix[1:])
    runtime.write_atomic(path, image.getvalue())


if __name__ == "__main__":
    runtime.run_command(main)
