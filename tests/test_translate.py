"""Claims about translate.py: lines stay lines, files are whole, mistakes are one line and exit code 2."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_model import enlarged

import model_folder
import runtime
import translate
from config import Config, DataConfig, DecodeConfig, ModelConfig
from inputs import TextInput
from tokenizer import Tokenizer
from translator import Translator

ROOT = Path(__file__).parent.parent
TEXT = "Where is the station?\n\n  I see two dogs. Really!\n—\nthe house\u2028by the\rold\u0085road\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished model folder with random weights."""
    path = tmp_path_factory.mktemp("runs") / "tiny"
    torch.manual_seed(3)
    tokenizer = Tokenizer.train(["Where is the station? I see two dogs near the old house."] * 2, 320)
    shape = ModelConfig(d_model=16, num_layers=1, num_decoder_layers=2, num_heads=2, d_ff=32, vocab_size=320)
    config = Config(DataConfig(max_length=48), shape)
    model_folder.create(path, config, tokenizer, TextInput(tokenizer), "0")
    network = model_folder.build(config, tokenizer.vocab_size, TextInput(tokenizer))
    for parameter in enlarged(network).parameters():
        parameter.data *= 1.5
    model_folder.save_weights(path, network)
    (path / model_folder.CARD).write_text("# A model\n")
    return path


@pytest.fixture
def expected(model: Path) -> "Expected":
    return Expected(model)


class Expected:
    def __init__(self, model: Path) -> None:
        self.translator = Translator.load(model)

    def __call__(self, text: str, beam: int = 1) -> str:
        return self.translator.translate([text], decode=DecodeConfig(beam=beam))[0].text


def run(model: Path, *args: object, beam: int = 1) -> None:
    translate.main(["--model", str(model), "--beam", str(beam), *map(str, args)])


def fails(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line that a wrong command prints."""
    with pytest.raises(SystemExit) as end:
        runtime.run_command(lambda: translate.main([str(arg) for arg in args]))
    captured = capsys.readouterr()
    assert end.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    return captured.err


def give_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# Arguments


def test_each_sentence_gets_its_translation(
    model: Path, expected: Expected, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(model, "Where is the station?", "two dogs")
    lines = f"{expected('Where is the station?')}\n{expected('two dogs')}\n"
    assert capfdbinary.readouterr().out == lines.encode()


# fault 23
def test_a_sentence_of_digits_alone_is_translated(
    model: Path, expected: Expected, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(model, "1984")
    assert capfdbinary.readouterr().out.decode() == expected("1984") + "\n"
    assert expected("1984") != "1984"


def test_a_sentence_with_line_breaks_keeps_them(
    model: Path, expected: Expected, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(model, "two dogs\n\nthe station")
    assert capfdbinary.readouterr().out.decode() == f"{expected('two dogs')}\n\n{expected('the station')}\n"


def test_a_sentence_that_starts_with_a_dash_comes_after_two(
    model: Path, expected: Expected, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(model, "--", "--beam me up")
    assert capfdbinary.readouterr().out.decode() == expected("--beam me up") + "\n"


def test_the_beam_is_passed_on(
    model: Path, expected: Expected, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(model, "I see two dogs", beam=4)
    assert capfdbinary.readouterr().out.decode() == expected("I see two dogs", beam=4) + "\n"


# Lines


# fault 15: the same holds for a file; fault 7: so it does for blank and dash lines
@pytest.mark.parametrize("source", ["file", "stdin"])
def test_line_n_of_the_output_belongs_to_line_n_of_the_input(
    source: str,
    model: Path,
    expected: Expected,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    (tmp_path / "in.txt").write_bytes(TEXT.encode())
    give_stdin(monkeypatch, TEXT.encode())
    run(model, *(["--input", tmp_path / "in.txt"] if source == "file" else []))
    out = capfdbinary.readouterr().out.decode()
    assert out.split("\n") == [expected(line) for line in TEXT.split("\n")]
    assert out.split("\n")[3] == "—" and out.count("\u2028") == out.count("\r") == out.count("\u0085") == 1


@pytest.mark.parametrize(
    ("data", "endings"),
    [(b"", ""), (b"\n", "\n"), (b"a", "\n"), (b"a\r\n\r\nb\n", "\r\n|\r\n|\n"), (b"a\n\n\n", "\n|\n|\n")],
)
def test_the_number_of_lines_and_their_ends_stay(
    data: bytes,
    endings: str,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    give_stdin(monkeypatch, data)
    run(model)
    lines = capfdbinary.readouterr().out.decode().splitlines(keepends=True)
    assert ["\r\n" if line.endswith("\r\n") else line[-1:] for line in lines] == [
        e for e in endings.split("|") if e
    ]


def test_a_byte_order_mark_is_not_text(
    model: Path, expected: Expected, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "in.txt").write_bytes("\ufefftwo dogs\n\ufeff\n".encode())
    run(model, "--input", tmp_path / "in.txt")
    assert capfdbinary.readouterr().out.decode() == expected("two dogs") + "\n\ufeff\n"


def test_lines_cut_anywhere_by_the_pipe_come_out_whole(
    model: Path,
    expected: Expected,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(translate, "READ_BYTES", 3)
    give_stdin(monkeypatch, "déjà vu\nÆtna\r\n\nlast".encode())
    run(model)
    lines = [expected("déjà vu"), "\n", expected("Ætna"), "\r\n", "\n", expected("last"), "\n"]
    assert capfdbinary.readouterr().out.decode() == "".join(lines)


# Output


def test_an_output_file_holds_what_would_be_printed(
    model: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "in.txt").write_bytes(TEXT.encode())
    run(model, "--input", tmp_path / "in.txt")
    printed = capfdbinary.readouterr().out
    run(model, "--input", tmp_path / "in.txt", "--output", tmp_path / "in.txt", "--batch-size", 1)
    assert (tmp_path / "in.txt").read_bytes() == printed
    assert capfdbinary.readouterr().out == b""


def test_an_output_file_is_written_whole_or_not_at_all(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(translate, "READ_BYTES", 4)
    give_stdin(monkeypatch, b"one\ntwo\nthr\xe9e\nfour\n")
    (tmp_path / "out.txt").write_text("before")
    with pytest.raises(ValueError, match="standard input, line 3: byte 0xe9 is not valid UTF-8"):
        run(model, "--output", tmp_path / "out.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
    assert (tmp_path / "out.txt").read_text() == "before"


def test_json_gives_an_object_a_line(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    give_stdin(monkeypatch, "Où ? 7\r\n\n".encode())
    run(model, "--json", "--n-best", "2", beam=3)
    captured = capfdbinary.readouterr()
    first, blank = map(json.loads, captured.out.decode().splitlines())
    assert set(first) == {"source", "translation", "score", "candidates", "warnings"}
    assert first["source"] == "Où ? 7" and captured.out.count("Où".encode()) >= 1
    assert len(first["candidates"]) == 2
    assert first["candidates"][0] == {"text": first["translation"], "score": first["score"]}
    assert any("digits differ" in warning for warning in first["warnings"]) and captured.err == b""
    text = {"source": "", "translation": "", "score": 0.0, "warnings": []}
    assert blank == {**text, "candidates": [{"text": "", "score": 0.0}]}


def test_n_best_prints_line_rank_score_and_text(
    model: Path, expected: Expected, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(model, "I see two dogs", "the\nhouse", "--n-best", "3", beam=3)
    rows = [line.split("\t", 3) for line in capfdbinary.readouterr().out.decode().splitlines()]
    first, second = ([row for row in rows if row[0] == number] for number in ("1", "2"))
    assert rows == first + second and min(len(first), len(second)) > 1
    assert [row[1] for row in first] == [str(rank + 1) for rank in range(len(first))]
    assert first[0][3] == expected("I see two dogs", beam=3)
    assert second[0][3] == expected("the\nhouse", beam=3).replace("\n", " ")
    assert float(first[0][2]) >= float(first[1][2])


# fault 10
def test_warnings_name_their_line_on_standard_error(
    model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    give_stdin(monkeypatch, b"\n\nroom 7\n")
    run(model)
    assert "line 3: the digits differ: room 7\n" in capfd.readouterr().err


# Pictures


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_attention_draws_a_picture(suffix: str, magic: bytes, model: Path, tmp_path: Path) -> None:
    run(model, "I see two dogs", "--attention", tmp_path / f"out.{suffix}")
    assert (tmp_path / f"out.{suffix}").read_bytes().startswith(magic)


# Mistakes


def test_without_a_model_the_command_that_makes_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "python train.py" in fails(capsys, "Hello")
    assert "python train.py" in fails(capsys, "Hello", "--model", "runs/none")


def test_the_newest_finished_model_is_the_default(
    model: Path,
    expected: Expected,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(model.parent.parent)
    (model.parent.parent / "runs").symlink_to(model.parent, target_is_directory=True)
    translate.main(["two dogs", "--beam", "1"])
    assert capfdbinary.readouterr().out.decode() == expected("two dogs") + "\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--input", "none.txt"], "none.txt is not there; name a text file"),
        (["--input", "."], ". is a folder; name a text file"),
        (["--input", "latin.txt"], "latin.txt, line 2: byte 0xe9 is not valid UTF-8"),
        (["Hello", "--input", "latin.txt"], "give sentences or --input, not both"),
        (["--image"], "--image needs at least one file"),
        (["--features"], "--features needs at least one file"),
        (["Hello", "--output", "."], "--output . cannot be written"),
        (["Hello", "--output", "latin.txt/out"], "--output latin.txt/out cannot be written"),
        (["Hello", "--output", "pipe"], "--output pipe cannot be written"),
        (["Hello", "--n-best", "6"], "--n-best must be between 1 and --beam (5), got 6"),
        (["Hello", "--n-best", "0"], "--n-best must be between 1 and --beam (5), got 0"),
        (["Hello", "--beam", "0"], "--beam must be at least 1 and at most 1000, got 0"),
        (["Hello", "--beam", "two"], "--beam"),
        (["Hello", "--length-penalty", "-1"], "--length-penalty must be from 0 to 10"),
        (["Hello", "--batch-size", "-2"], "--batch-size must be at least 1, got -2"),
        (["Hello", "--threads", "0"], "--threads must be at least 1, got 0"),
        (["Hello", "--device", "quantum"], "--device quantum"),
        (["Hello", "--unheard-of", "1"], "--unheard-of"),
        (["Hello", "you", "--attention", "a.png"], "--attention draws one sentence"),
        (["--attention", "a.png"], "--attention draws one sentence"),
        (["Hello", "--attention", "a.doc"], "--attention must end in .png, .svg, .pdf, got a.doc"),
        (["—", "--attention", "a.png"], "nothing to translate in '—'"),
        (["bad \udce9 byte"], "sentence 1: byte 0xe9 is not valid UTF-8"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    args: list[str],
    message: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"fine\nf\xe9\n")
    os.mkfifo(tmp_path / "pipe")
    assert message in fails(capsys, "--model", model, *args)
    assert {path.name for path in tmp_path.iterdir()} == {"latin.txt", "pipe"}
    assert (tmp_path / "pipe").is_fifo()


def test_help_fits_a_screen_and_shows_examples(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as end:
        translate.main(["--help"])
    out = capsys.readouterr().out
    assert end.value.code == 0
    assert "python translate.py --input letter.txt --output brief.txt" in out
    assert len(out.splitlines()) <= 60


# Processes


def command(*args: object) -> list[str]:
    return [sys.executable, str(ROOT / "translate.py"), *map(str, args)]


def test_nothing_that_translating_does_not_need_is_imported(model: Path) -> None:
    code = (
        "import sys, translate; translate.main(sys.argv[1:]);"
        "heavy = {'datasets', 'pandas', 'pyarrow', 'tensorboard', 'sacrebleu', 'matplotlib', 'evaluate',"
        " 'torch._dynamo'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    args = [sys.executable, "-c", code, "--model", str(model), "--beam", "1", "—"]
    done = subprocess.run(args, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "—\n[]\n"


def test_a_closed_pipe_is_no_error(model: Path) -> None:
    producer = subprocess.Popen(
        command("--model", model, "--beam", 1, *["—"] * 5, *[f"dog {i}" for i in range(3)]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert producer.stdout and producer.stderr
    producer.stdout.close()
    errors = producer.stderr.read().decode().splitlines()
    producer.stderr.close()
    assert producer.wait(60) in (0, 141)
    assert [line for line in errors if not line.startswith("sentence ")] == []


def test_a_line_from_a_pipe_is_translated_before_the_next_one_comes(model: Path, expected: Expected) -> None:
    env = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }  # no UTF-8 terminal either
    process = subprocess.Popen(
        command("--model", model, "--beam", 1), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )
    assert process.stdin and process.stdout
    with process.stdin, process.stdout:
        for text in ("déjà vu", "two dogs"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == expected(text) + "\n"
    assert process.wait(60) == 0
