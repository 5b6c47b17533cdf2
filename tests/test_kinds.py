"""Pictures and features through the commands: trained, scored, translated, resumed; mistakes in one line."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

import checkpoint
import model_folder
import render
import train
from config import DecodeConfig
from translator import Translator

ROOT = Path(train.__file__).parent
WORDS = ("one", "two", "three", "four", "five", "six")
TINY = (
    "--d-model 16 --num-heads 2 --num-layers 1 --num-decoder-layers 1 --d-ff 32 --batch-tokens 200 --tgt en "
    "--vocab-size 300 --validate-every 10 --log-every 5 --threads 1 --max-steps 20"
).split()
SPOKEN = np.random.default_rng(0).normal(size=(len(WORDS), 8)).astype(np.float32)


def command(script, *args, cwd, stdin=None):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(ROOT / script), *map(str, args)]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, stdin=stdin)


def sentences(num, seed=0, longest=6):
    rng = random.Random(seed)
    drawn = {" ".join(rng.choices(WORDS, k=rng.randint(1, longest))) for _ in range(4 * num)}
    return rng.sample(sorted(drawn), num)


def speak(sentence, rng):
    """Frames (L, 8): the vector of each word twice, with noise."""
    frames = np.repeat(SPOKEN[[WORDS.index(word) for word in sentence.split()]], 2, axis=0)
    return (frames + 0.3 * rng.normal(size=frames.shape)).astype(np.float32) * 5 + 40


def write_features(path, num):
    rng = np.random.default_rng(1)
    rows = [{"speech": speak(s, rng).round(2).tolist(), "en": s} for s in sentences(num)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_pictures(folder, num):
    """A corpus of picture files, each of another height, and its jsonl."""
    folder.mkdir()
    lines = []
    for i, sentence in enumerate(sentences(num)):
        strip = render.Renderer(render.packaged_font(), 16 + i % 5).strip(sentence, 12)
        (folder / f"{i}.png").write_bytes(render.png(strip))
        lines.append(json.dumps({"picture": f"{i}.png", "en": sentence}) + "\n")
    (folder / "rows.jsonl").write_text("".join(lines))
    return folder / "rows.jsonl"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A model of drawn text that has learned nothing."""
    path = tmp_path_factory.mktemp("drawn")
    rows = "".join(json.dumps({"de": s, "en": s}) + "\n" for s in sentences(60))
    (path / "text.jsonl").write_text(rows)
    args = ["--dataset", "text.jsonl", "--src", "de", "--source", "image", *TINY]
    done = command("train.py", *args, "--out", "model", cwd=path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A model of features that has learned nothing."""
    path = tmp_path_factory.mktemp("spoken")
    write_features(path / "rows.jsonl", 60)
    args = ["--dataset", "rows.jsonl", "--src", "speech", "--source", "features", *TINY]
    done = command("train.py", *args, "--out", "model", "--frame-stride", 2, cwd=path)
    assert done.returncode == 0, done.stderr
    np.save(path / "one.npy", speak("one two", np.random.default_rng(5)))
    return path


def test_noisy_vectors_are_learned_above_95_percent_through_the_commands(tmp_path):
    write_features(tmp_path / "rows.jsonl", 3_000)
    size = "--d-model 64 --num-heads 4 --num-layers 1 --num-decoder-layers 1 --d-ff 128 --dropout 0"
    how = "--batch-tokens 600 --lr 3e-3 --warmup-steps 50 --max-steps 400 --threads 1 --vocab-size 300"
    kind = "--dataset rows.jsonl --src speech --tgt en --source features --frame-stride 2 --out model"
    done = command("train.py", *size.split(), *how.split(), *kind.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scored = command("evaluate.py", "--model", "model", "--json", "scores.json", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    scores = {s["name"]: s["value"] for s in json.loads((tmp_path / "scores.json").read_text())["scores"]}
    assert scores["exact match"] >= 95
    np.save(tmp_path / "utterance.npy", speak("six five one two", np.random.default_rng(9)))
    said = command("translate.py", "--model", "model", "--features", "utterance.npy", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (0, "six five one two\n")


def test_a_sentence_and_its_picture_are_translated_alike(drawn, tmp_path):
    loaded = model_folder.load(drawn / "model", torch.device("cpu"))
    strip = loaded.source.strip(loaded.source.encode(["two three"])[0])
    (tmp_path / "strip.png").write_bytes(render.png(strip))
    model = ["--model", drawn / "model"]
    picture = command("translate.py", *model, "--image", "strip.png", cwd=tmp_path)
    sentence = command("translate.py", *model, "two three", cwd=tmp_path)
    assert picture.returncode == sentence.returncode == 0, picture.stderr + sentence.stderr
    assert picture.stdout == sentence.stdout != "\n"


def test_look_alikes_are_translated_alike_by_a_model_of_drawn_text(drawn):
    translator = Translator.load(drawn / "model", device="cpu")
    latin, cyrillic = translator.translate(["a pace", "а расе"], decode=DecodeConfig(beam=1))
    assert latin.text == cyrillic.text and latin.score == cyrillic.score


@pytest.mark.parametrize("beam", [1, 3])
def test_pictures_and_sentences_alone_and_together_are_translated_alike(drawn, beam):  # fault 2
    translator = Translator.load(drawn / "model", device="cpu", split_sentences=False)
    given = ["one", "five six " * 8, "two three four", "six"]
    together = translator.translate(given, decode=DecodeConfig(beam=beam))
    for source, result in zip(given, together, strict=True):
        [alone] = translator.translate([source], decode=DecodeConfig(beam=beam))
        assert alone.text == result.text and alone.score == pytest.approx(result.score, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
def test_features_alone_and_together_are_translated_alike(spoken, beam):  # fault 2
    translator = Translator.load(spoken / "model", device="cpu")
    rng = np.random.default_rng(2)
    given = [speak(s, rng) for s in ("one", "two three four five six one two", "six six")]
    together = translator.translate(given, decode=DecodeConfig(beam=beam))
    for source, result in zip(given, together, strict=True):
        [alone] = translator.translate([source], decode=DecodeConfig(beam=beam))
        assert alone.text == result.text and alone.score == pytest.approx(result.score, abs=1e-5)


def test_lines_of_a_file_are_drawn_and_stay_in_their_places(drawn, tmp_path):
    (tmp_path / "in.txt").write_text("one two\n\n—\nthree\n")
    done = command("translate.py", "--model", drawn / "model", "--input", "in.txt", cwd=tmp_path)
    lines = done.stdout.split("\n")
    assert done.returncode == 0 and len(lines) == 5 and lines[1:3] == ["", "—"] and lines[0] and lines[3]


def test_a_column_of_pictures_is_trained_on_and_scored(tmp_path):
    rows = write_pictures(tmp_path / "pictures", 60)
    args = ["--dataset", rows, "--src", "picture", "--source", "image", *TINY]
    trained = command("train.py", *args, "--out", "model", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    scored = command("evaluate.py", "--model", "model", "--json", "scores.json", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    sources = {row["source"] for row in json.loads((tmp_path / "scores.json").read_text())["sentences"]}
    assert all(source.startswith("row ") for source in sources)
    picture = tmp_path / "pictures" / "0.png"
    done = command("translate.py", "--model", "model", "--image", picture, "--json", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["source"] == str(picture)


def test_several_pictures_are_translated_in_their_order(drawn, tmp_path):
    for i, text in enumerate(("one", "two two two two")):
        strip = render.Renderer(render.packaged_font(), 20).strip(text, 14)
        (tmp_path / f"{i}.png").write_bytes(render.png(strip))
    model = ["--model", drawn / "model", "--beam", 1]
    both = command("translate.py", *model, "--image", "0.png", "1.png", cwd=tmp_path)
    each = [command("translate.py", *model, "--image", f"{i}.png", cwd=tmp_path).stdout for i in (0, 1)]
    assert both.returncode == 0 and both.stdout == "".join(each)


@pytest.mark.parametrize("kind", ["drawn", "spoken"])
def test_a_resumed_run_equals_an_uninterrupted_one(kind, request, tmp_path):  # fault 16
    folder = request.getfixturevalue(kind)
    source = {"drawn": ["de", "--source", "image"], "spoken": ["speech", "--source", "features"]}[kind]
    rows = folder / {"drawn": "text.jsonl", "spoken": "rows.jsonl"}[kind]
    args = ["--dataset", rows, "--src", *source, *TINY, "--schedule", "inverse-sqrt", "--warmup-steps", 5]
    for out, steps in (("whole", 20), ("parts", 10)):
        done = command(
            "train.py", *args, "--out", out, "--max-steps", steps, "--bpe-dropout", 0.2, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    done = command("train.py", "--resume", "parts", "--max-steps", 20, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole, parts = (
        safetensors.torch.load_file(checkpoint.checkpoints(tmp_path / out)[-1] / "state.safetensors")
        for out in ("whole", "parts")
    )
    assert whole.keys() == parts.keys() and all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.parametrize(
    "stride, message",
    [("2", "model is finished, after 20 steps"), ("3", "cannot change --frame-stride from 2 to 3")],
)
def test_a_resumed_run_may_be_given_the_settings_of_its_own_source(stride, message, spoken, monkeypatch):
    monkeypatch.chdir(spoken)
    with pytest.raises(ValueError, match=message):
        train.main(["--resume", "model", "--frame-stride", stride])


def test_a_folder_of_drawn_text_works_elsewhere_without_the_font_file(tmp_path):
    (tmp_path / "mine.ttf").write_bytes(render.packaged_font())
    rows = "".join(json.dumps({"de": s, "en": s}) + "\n" for s in sentences(40))
    (tmp_path / "text.jsonl").write_text(rows)
    args = ["--dataset", "text.jsonl", "--src", "de", "--source", "image", "--font", "mine.ttf", *TINY]
    done = command("train.py", *args, "--out", "model", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "mine.ttf").unlink()
    (tmp_path / "model").rename(tmp_path / "moved")
    said = command("translate.py", "--model", "moved", "one two", cwd=tmp_path)
    assert said.returncode == 0 and said.stdout.strip(), said.stderr


@pytest.mark.parametrize("kind, given", [("drawn", ["one two three"]), ("spoken", ["--features", "one.npy"])])
def test_attention_is_drawn_below_the_source(kind, given, request):
    folder = request.getfixturevalue(kind)
    done = command("translate.py", "--model", "model", *given, "--attention", "a.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    with Image.open(folder / "a.png") as picture:
        assert picture.format == "PNG" and np.ptp(np.asarray(picture.convert("L"))) > 100


def test_attention_has_a_row_for_each_target_token_and_a_column_for_each_patch(drawn):
    translator = Translator.load(drawn / "model", device="cpu")
    seen = translator.attention("one two three", decode=DecodeConfig(beam=1))
    assert seen.signal is not None and seen.step == 40 and seen.signal.shape[0] == 16
    assert seen.weights.shape == (len(seen.target), len(seen.source))
    torch.testing.assert_close(seen.weights.sum(1), torch.ones(len(seen.target)), atol=1e-4, rtol=0)


MISTAKES = {
    "a picture for a model of features": (
        ["--model", "spoken", "--image", "x.png"],
        "give it --features FILE",
    ),
    "a sentence for a model of features": (["--model", "spoken", "Hello"], "give it --features FILE"),
    "features for a model of pictures": (
        ["--model", "drawn", "--features", "one.npy"],
        "give it sentences or --image FILE",
    ),
    "no such picture": (["--model", "drawn", "--image", "no.png"], "no.png is not there"),
    "no picture": (["--model", "drawn", "--image", "rows.jsonl"], "rows.jsonl: no picture"),
    "no features": (["--model", "spoken", "--features", "rows.jsonl"], "rows.jsonl is not a .npy file"),
    "other channels": (
        ["--model", "spoken", "--features", "wide.npy"],
        "wide.npy: 4 × 9, but this model reads",
    ),
    "a sentence and a picture": (["--model", "drawn", "--image", "x.png", "--input", "y"], "not both"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_source_that_does_not_fit_is_one_line_and_exit_code_2(mistake, drawn, spoken):
    args, message = MISTAKES[mistake]
    np.save(spoken / "wide.npy", np.ones((4, 9), np.float32))
    models = {"spoken": spoken / "model", "drawn": drawn / "model"}
    done = command("translate.py", *(models.get(arg, arg) for arg in args), cwd=spoken)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "args, message",
    [
        (["--frame-stride", 2], "--frame-stride is for --source features, but the source is text"),
        (["--source", "image", "--frame-stride", 2], "--frame-stride is for --source features"),
        (["--source", "features", "--patch-width", 4], "--patch-width is for --source image"),
        (["--source", "image", "--patch-overlap", 40], "--patch-overlap must be from 0 to less than"),
        (["--source", "image", "--font", "no.ttf"], "no.ttf is not there"),
        (
            ["--source", "image", "--positions", "learned", "--max-length", 3, "--patch-width", 2],
            "--max-length must be at least 12 with --positions learned",
        ),
        (["--source", "features"], "--source features needs a corpus whose --src column holds"),
    ],
)
def test_a_mistake_in_the_flags_of_train_is_one_line_and_exit_code_2(args, message, tmp_path):
    done = command("train.py", *args, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["--model", "--against"])
def test_scoring_features_of_other_channels_names_the_model_before_translating(flag, spoken, tmp_path):
    rows = [{"speech": [[1.0, 2.0], [0.5, i]], "en": s} for i, s in enumerate(sentences(4))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "said.txt").write_text("one\n" * 4)
    given = ["--hypotheses", "said.txt"] if flag == "--against" else []
    corpus = ["--dataset", "rows.jsonl", "--src", "speech", "--tgt", "en", "--source", "features"]
    args = [flag, spoken / "model", *given, *corpus, "--split", "train", "--output", "out.txt"]
    done = command("evaluate.py", *args, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert f"{flag} {spoken / 'model'} reads frames × 8, but the set holds frames × 2" in done.stderr
    assert not (tmp_path / "out.txt").exists()


def test_a_picture_of_nothing_is_translated_with_a_warning(drawn, tmp_path):
    Image.new("L", (60, 20), 255).save(tmp_path / "blank.png")
    done = command("translate.py", "--model", drawn / "model", "--image", "blank.png", cwd=tmp_path)
    assert done.returncode == 0 and "file 1: nothing is to be seen in it" in done.stderr
