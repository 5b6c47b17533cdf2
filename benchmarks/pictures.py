"""How well a model of drawn text reads pictures that were made elsewhere: other sizes, formats, inks and grounds.

python benchmarks/pictures.py runs/phrasebook-en-fr-image [--limit 1000]
"""

import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import tyro
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import corpus
import model_folder
import render
import runtime
from command_line import parse_args
from scores import score
from translator import Translator


class Look(NamedTuple):
    """How a picture is made."""

    height: int
    size: int
    kind: str
    ink: int
    ground: int


LOOKS = (
    Look(16, 12, "PNG", 0, 255),
    Look(32, 24, "PNG", 0, 255),
    Look(64, 48, "JPEG", 0, 255),
    Look(48, 36, "JPEG", 40, 230),
    Look(48, 36, "PNG", 255, 0),
)


@dataclass(frozen=True)
class PicturesConfig:
    """Options."""

    model: tyro.conf.Positional[Path]
    """Model folder, trained with --source image on sentences."""
    limit: int = 1_000
    """Test sentences, at most."""


def picture(text: str, look: Look, font: ImageFont.FreeTypeFont) -> bytes:
    """The file of a picture of a line of text, vertically centred by Pillow and not by render.py."""
    image = Image.new("L", (int(font.getlength(text)) + 8, look.height), look.ground)
    ImageDraw.Draw(image).text((4, look.height // 2), text, fill=look.ink, font=font, anchor="lm")
    file = BytesIO()
    image.save(file, look.kind)
    return file.getvalue()


def main() -> None:
    """Print the table."""
    options = parse_args(PicturesConfig, description=f"{__doc__}")
    config, _ = model_folder.read_config(options.model)
    if config.data.source != "image":
        raise ValueError(f"{options.model} reads {config.data.source}; name a model of --source image")
    workers = runtime.start(None)
    translator = Translator.load(options.model, split_sentences=False, workers=workers)
    rows = corpus.read_split(config.data, "test")[0]
    rows = rows.select(range(min(options.limit, len(rows))))
    print("| the test sentences as | BLEU | 95 % interval |\n|---|---|---|")
    for look in (None, *LOOKS):
        sources, name = list(rows["src"]), "text, drawn by render.py"
        if look is not None:
            font = ImageFont.truetype(BytesIO(render.packaged_font()), look.size)
            sources = [picture(text, look, font) for text in sources]
            name = f"{look.kind}, {look.height} pixels high, {look.size} to the em, grey {look.ink} on {look.ground}"
        hypotheses = [t.text for t in translator.translate(sources)]
        bleu = score(hypotheses, list(rows["tgt"]), tgt=config.data.tgt)[0]
        print(f"| {name} | {bleu.value:.2f} | {bleu.low:.2f}–{bleu.high:.2f} |", flush=True)
    print(f"\n{bleu.name} `{bleu.signature}`")


if __name__ == "__main__":
    runtime.run_command(main)
