"""Translate from the command line: arguments, a file, standard input, pictures or features to text."""

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
from inputs import Source
from lines import Line, decode_utf8, parse_line, read_lines
from translator import LINE_BREAK, Translation, Translator

DESCRIPTION = """Translate sentences, a file or standard input. Line n of the output belongs to line n
of the input.

examples:
  python translate.py "Where is the bank?" "How much does the coffee cost?"
  python translate.py --input letter.txt --output brief.txt
  echo "Good morning" | python translate.py --model runs/letters-en-fr --beam 1
  python translate.py "Where is the bank?" --attention attention.png
  python translate.py --model runs/signs --image sign.png
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
    image: tuple[Path, ...] | None = None
    """Pictures to translate, each of one line of text that fills its height like a line of print (the size of the
    letters is about 3/4 of it), with a model that was trained with --source image."""
    features: tuple[Path, ...] | None = None
    """.npy files (frames × channels) to translate, with a model that was trained with --source features."""
    output: Path | None = None
    """File to write, whole or not at all; standard output by default."""
    model: Path | None = None
    """Model folder; the newest finished one in runs/ by default."""
    n_best: int = 1
    """Translations of each line, at most --beam; more than one as: line, tab, rank, tab, score, tab, text."""
    json: bool = False
    """Print one object a line: source, translation, score, candidates, warnings (otherwise on stderr)."""
    attention: Path | None = None
    """Draw where the model looked (.png, .svg, .pdf), for the first sentence of a single text, or for a single
    picture or feature file."""
    threads: int | None = None
    """CPU threads; all cores by default."""
    device: str = "auto"
    """cpu, cuda, mps, …; auto takes an accelerator when there is one."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    def __post_init__(self) -> None:
        for flag, files in (("--image", self.image), ("--features", self.features)):
            if files == ():
                raise ValueError(f"{flag} needs at least one file")
        given = {
            "sentences": self.sentences,
            "--input": self.input,
            "--image": self.image,
            "--features": self.features,
        }
        if len(flags := [flag for flag, value in given.items() if value]) > 1:
            raise ValueError(f"give {' or '.join(flags)}, not both")
        if not 1 <= self.n_best <= self.decode.beam:
            raise ValueError(f"--n-best must be between 1 and --beam ({self.decode.beam}), got {self.n_best}")
        if self.attention and len(self.sentences or self.image or self.features or ()) != 1:
            raise ValueError("--attention draws one sentence, picture or feature file; give it alone")
        if self.attention and self.attention.suffix not in PICTURES:
            raise ValueError(f"--attention must end in {', '.join(PICTURES)}, got {self.attention}")


def main(args: Sequence[str] | None = None) -> None:
    """Translate and print or save; see --help."""
    config = parse_args(TranslateConfig, args=args, description=DESCRIPTION)
    workers = runtime.start(config.threads)
    runtime.check_writable("--output", config.output)
    runtime.check_writable("--attention", config.attention)
    # A file is read whole before anything is translated: what is wrong with it is said at once.
    files = config.image or config.features or ()
    given = (
        list(read_lines(config.input))
        if config.input
        else _arguments(config.sentences or files, "file" if files else "sentence")
    )
    path = config.model or checkpoint.newest_run()
    data = checkpoint.read_config(path)[0].data
    _check_kind(config, path, data.source)
    if config.model is None:
        print(f"model: {path} ({data.src} → {data.tgt})", file=sys.stderr)
    translator = Translator.load(path, device=config.device, workers=workers)
    if config.attention:
        source = files[0] if files else config.sentences[0]
        _draw(translator, source, config.attention, config.decode)
    from_stdin = not (config.sentences or config.input or files)
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
    is_file = bool(config.image or config.features)
    unit = "sentence" if config.sentences else "file" if is_file else "line"
    for chunk in chunks:
        sources = [Path(line.text) if is_file else line.text for line in chunk]
        translations = translator.translate(sources, decode=config.decode, n_best=config.n_best)
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


def _check_kind(config: TranslateConfig, path: Path, source: str) -> None:
    """Before the weights are loaded: raise a ValueError if the model reads other sources than those given."""
    given = "image" if config.image else "features" if config.features else "text"
    if given == source or (given == "text" and source == "image"):  # sentences are drawn
        return
    wanted = {"text": "sentences", "image": "sentences or --image FILE", "features": "--features FILE"}
    what = "pictures" if given == "image" else given
    raise ValueError(f"{path} does not read {what}; give it {wanted[source]}")


def _arguments(words: Sequence[str | Path], unit: str) -> list[Line]:
    raw = enumerate((str(word).encode(errors="surrogateescape") for word in words), 1)
    return [Line(number, decode_utf8(data, f"{unit} {number}"), "\n") for number, data in raw]


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


def _draw(translator: Translator, source: Source, path: Path, decode: DecodeConfig) -> None:
    from picture import draw_attention

    attention = translator.attention(source, decode=decode)
    image = io.BytesIO()
    draw_attention(*attention).savefig(image, format=path.suffix[1:])
    runtime.write_atomic(path, image.getvalue())


if __name__ == "__main__":
    runtime.run_command(main)
