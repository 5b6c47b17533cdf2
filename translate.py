"""Translate from the command line: arguments, a file, standard input, pictures or features to text."""

import glob
import hashlib
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import cast

import torch
import tyro

import distributed
import model_folder
import runtime
from command_line import parse_args
from config import DecodeConfig
from inputs import Source
from lines import Line, decode_utf8, parse_line, read_lines
from strict_json import Json
from translator import LINE_BREAK, Translation, Translator

DESCRIPTION = """Translate sentences, a file or standard input. Line n of the output belongs to line n
of the input. A file whose translation to --output was killed goes on where it stood: give the same command again.
torchrun shares such a file out.

examples:
  python translate.py "Where is the bank?" "How much does the coffee cost?"
  python translate.py --input letter.txt --output brief.txt
  echo "Good morning" | python translate.py --model runs/letters-en-fr --beam 1
  python translate.py "Where is the bank?" --attention attention.png
  python translate.py --model runs/signs --image sign.png
"""
PICTURES = (".png", ".svg", ".pdf")
READ_BYTES = 65_536
# Ranks that are done wait for the last one, however long that is; should one end, the others notice at once.
RANK_TIMEOUT = 60.0 * 24 * 30


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

    @property
    def goes_on(self) -> bool:
        """Whether it is a file to a file, which is done in parts; a pipe or a terminal can be read only once."""
        if self.input is None or self.output is None:
            return False
        return self.input.is_file() or not self.input.exists()


def main(args: Sequence[str] | None = None) -> None:
    """Translate and print or save; see --help."""
    config = parse_args(TranslateConfig, args=args, description=DESCRIPTION)
    if distributed.world_size() > 1 and not config.goes_on:
        raise ValueError(
            "several processes share out a file; give --input FILE and --output FILE, or start one"
        )
    with distributed.group(torch.device("cpu"), RANK_TIMEOUT):
        run(config)


def run(config: TranslateConfig) -> None:
    """Translate as one of the ranks, or alone."""
    workers = runtime.start(config.threads)
    runtime.check_writable("--output", config.output)
    runtime.check_writable("--attention", config.attention)
    files = config.image or config.features or ()
    # A file is read whole before anything is translated: what is wrong with it is said at once.
    given: Sequence[Line] = ()
    if config.goes_on:
        num_lines = sum(1 for _ in read_lines(cast(Path, config.input)))
    elif config.input:
        given = list(read_lines(config.input))
    else:
        given = _arguments(config.sentences or files, "file" if files else "sentence")
    path = config.model or model_folder.newest_run()
    data = model_folder.read_config(path)[0].data
    _check_kind(config, path, data.source)
    if config.model is None and distributed.is_first():
        print(f"model: {path} ({data.src} → {data.tgt})", file=sys.stderr)
    device = distributed.device(config.device)
    translator = Translator.load(path, device=str(device), workers=workers)
    if config.attention:
        source = files[0] if files else config.sentences[0]
        _draw(translator, source, config.attention, config.decode)
    if config.goes_on:
        _translate_in_parts(translator, config, path, num_lines)
        return
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


def _translate_in_parts(translator: Translator, config: TranslateConfig, model: Path, num_lines: int) -> None:
    """Translate a file in parts, which lie beside the output until all are there; those there already are kept.

    Several ranks take turns: every n-th part is one's own.
    """
    assert config.input is not None and config.output is not None
    given, output, size = config.input, config.output, 16 * config.decode.batch_size
    # Another input, model or decoding has a folder of its own: nothing can be mixed.
    name = f".{output.name}.{_fingerprint(config, model, given)}.parts"
    folder = output.resolve().with_name(name)
    files = [folder / f"{number:08d}" for number in range(-(-num_lines // size))]
    with runtime.locked(folder) if distributed.is_first() else nullcontext():
        if distributed.is_first():
            _say_what_is_there(folder, files, output)
        for number, chunk in enumerate(_chunks(read_lines(given), size)):
            if number == len(files):
                raise ValueError(f"{given} has grown meanwhile; leave it as it is, and start again")
            if number % distributed.world_size() == distributed.rank() and not files[number].is_file():
                runtime.write_atomic(files[number], "".join(_translate(translator, [chunk], config)))
        distributed.barrier()
        if distributed.is_first():
            _join(files, output)
            shutil.rmtree(folder, ignore_errors=True)


def _join(files: Sequence[Path], output: Path) -> None:
    if missing := [file for file in files if not file.is_file()]:
        advice = "put --output where every machine sees it, and leave the input as it is"
        raise ValueError(f"{len(missing)} of {len(files)} parts are not in {missing[0].parent}; {advice}")
    runtime.write_atomic(output, (file.read_bytes() for file in files))


def _fingerprint(config: TranslateConfig, model: Path, given: Path) -> str:
    """A name for all that the translation of a file depends on."""
    digest = hashlib.blake2b(digest_size=6)
    parts = (p for p in model.iterdir() if p.suffix in (".json", ".safetensors", ".ttf"))
    for path in (*sorted(parts), given):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    digest.update(repr((config.decode, config.n_best, config.json)).encode())
    return digest.hexdigest()


def _say_what_is_there(folder: Path, files: Sequence[Path], output: Path) -> None:
    """Name what an earlier start has left, so that nobody wonders."""
    for other in folder.parent.glob(f".{glob.escape(output.name)}.*.parts"):
        if other != folder:
            print(f"{other} is of another input, model or decoding, and not used", file=sys.stderr)
    if num_done := sum(file.is_file() for file in files):
        print(f"going on: {num_done:,} of {len(files):,} parts are translated already", file=sys.stderr)


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
    runtime.run_command(main, several_ranks=True)
