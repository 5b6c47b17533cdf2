"""evaluate.py: scores equal the sacrebleu command; intervals, paired tests, files, report and mistakes."""

import json
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from sacrebleu import __version__ as sacrebleu_version
from sacrebleu.significance import PairedTest

import evaluate
import lines
import model_folder
import scores
from config import Config, DataConfig, DecodeConfig, ModelConfig
from inputs import TextInput
from languages import primary_language
from scores import Score, measure, paired_test, quick_score, score, sentence_chrf
from strict_json import to_json
from tokenizer import Tokenizer
from translator import Translation, Translator

WORDS = (
    "Le", "chat", "noir", "dort", "sur", "la", "vieille", "table", "de", "Marie", "et", "l'enfant", "mange",
    "une", "pomme", "rouge", "ici", "aujourd'hui",
)  # fmt: skip
# Line separators that are none, white space at the ends, symbols, a blank line, lower and upper case.
ODD = [
    "",
    "  espace devant",
    "fin \t ",
    "a\u2028b c d e",
    "a\x85b c d",
    "a\rb c d",
    "½ ☂ 3,5 % !",
    "LE CHAT noir dort.",
]


def corpus(num, noise, seed=0):
    """References, and hypotheses with a share of the words left out and some in capitals."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) + "." for _ in range(num)] + ODD
    rng = random.Random(noise)
    hypotheses = []
    for reference in references:
        words = [
            w.upper() if rng.random() < 0.05 else w for w in reference.split(" ") if rng.random() > noise
        ]
        hypotheses.append(" ".join(words))
    return hypotheses, references


def write(path, rows, end="\n"):
    path.write_bytes("".join(line + end for line in rows).encode())
    return path


def read_lines(path):
    return [line.text for line in lines.read_lines(path)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    hypotheses, references = corpus(60, 0.2)
    return write(folder / "hyp.txt", hypotheses, "\r\n"), write(folder / "ref.txt", references)


def sacrebleu(files, *flags):
    """What the command says: one dictionary for each metric."""
    hyp, ref = map(str, files)
    metrics = ["-m", "bleu", "chrf", "ter", "--chrf-word-order", "2", "--confidence", "--force", "-w", "6"]
    command = [sys.executable, "-m", "sacrebleu", ref, "-i", hyp, *metrics, "-f", "json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ours(files):
    return {s.name: s for s in score(*map(read_lines, files))}


@pytest.fixture(scope="module")
def theirs(files):
    cased, lowered = sacrebleu(files), sacrebleu(files, "--lowercase")
    return {**{row["name"]: row for row in cased}, "BLEU lower-cased": lowered[0]}


# ---- scores


@pytest.mark.parametrize("name", ["BLEU", "BLEU lower-cased", "chrF2++", "TER"])
def test_score_equals_the_sacrebleu_command_on_the_same_raw_files(ours, theirs, name):  # fault 12
    assert ours[name].value == pytest.approx(theirs[name]["score"], abs=1e-5)


@pytest.mark.parametrize("name", ["BLEU", "BLEU lower-cased", "chrF2++", "TER"])
def test_signature_equals_that_of_the_sacrebleu_command(ours, theirs, name):
    assert ours[name].signature == theirs[name]["signature"]


@pytest.mark.parametrize("name", ["BLEU", "BLEU lower-cased", "chrF2++", "TER"])
def test_interval_is_as_wide_as_that_of_the_sacrebleu_command(ours, theirs, name):
    assert (ours[name].high - ours[name].low) / 2 == pytest.approx(theirs[name]["confidence_var"], abs=1e-3)


def test_interval_contains_the_score_and_is_not_a_point(ours):
    assert len(ours) == 5
    for s in ours.values():
        assert s.low < s.value < s.high


def test_interval_is_the_same_when_resampled_in_small_chunks(monkeypatch):
    hypotheses, references = corpus(20, 0.2)
    whole = score(hypotheses, references, bootstrap=100)
    monkeypatch.setattr(scores, "_chunks", lambda rows, width: iter([rows // 3, 1, rows - rows // 3 - 1]))
    assert score(hypotheses, references, bootstrap=100) == whole


def test_quick_score_equals_the_full_score(files, ours):
    assert quick_score(*map(read_lines, files)) == pytest.approx((ours["BLEU"].value, ours["chrF2++"].value))


def test_lower_cased_figure_differs_only_where_case_does():
    references = ["Le chat noir dort sur la table.", "Marie mange une pomme rouge ici."]
    by_name = {s.name: s.value for s in score([r.upper() for r in references], references)}
    assert by_name["BLEU lower-cased"] == pytest.approx(100)
    assert by_name["BLEU"] < 10
    by_name = {s.name: s.value for s in score(references[::-1], references)}
    assert by_name["BLEU lower-cased"] == by_name["BLEU"]


def test_exact_match_is_the_share_of_equal_sentences():
    assert score(["a b", "c ", "d", ""], ["a b", "c", "D", ""])[-1][:2] == ("exact match", 75.0)


def test_perfect_translation_scores_100_with_no_edits():
    _, references = corpus(10, 0)
    values = [s.value for s in score(references, references)]
    assert values == pytest.approx([100, 100, 100, 0, 100])


def test_blank_references_and_hypotheses_have_finite_scores():
    for hypotheses, references in (
        [["", ""], ["", ""]],
        [["a", ""], ["", ""]],
        [["", ""], ["a b c d e", ""]],
    ):
        for s in score(hypotheses, references):
            assert 0 <= s.low <= s.value <= s.high


def test_each_of_several_identical_lines_counts():
    hypotheses, references = ["a b c d", "a b c d", "x"], ["a b c d", "a b c d", "y"]
    assert score(hypotheses, references)[-1].value == pytest.approx(200 / 3)


def test_line_break_inside_a_text_counts_as_a_space():
    assert (
        score(["a-\nb c d e", "f"], ["a- b c d e", "f"])[0].value
        == score(["a- b c d e", "f"], ["a- b c d e", "f"])[0].value
    )


def test_unequal_lengths_are_refused_with_both_numbers():
    for function in (score, quick_score):
        with pytest.raises(ValueError, match="2 hypotheses for 1 references"):
            function(["a", "b"], ["a"])


def test_chrf_of_a_sentence_is_that_of_sacrebleu():
    hypotheses, references = corpus(10, 0.3)
    chrf = scores.CHRF(word_order=2)
    expected = [chrf.sentence_score(h, [r]).score for h, r in zip(hypotheses, references, strict=True)]
    assert sentence_chrf(measure(hypotheses, references, "")) == pytest.approx(expected)


def test_nothing_to_score_is_refused():
    with pytest.raises(ValueError, match="nothing to score"):
        score([], [])


def test_too_few_resamples_are_refused():
    with pytest.raises(ValueError, match="--bootstrap must be at least 40, got 39"):
        score(["a"], ["a"], bootstrap=39)


@pytest.mark.parametrize("tgt", ["zh", "zh_CN", "zho_Hans"])
def test_chinese_is_scored_by_characters_and_the_signatures_say_so(tgt):
    bleu, _, _, ter, _ = score(["我喜欢猫和狗。"], ["我喜欢猫和鸟。"], tgt=tgt)
    assert "tok:zh" in bleu.signature and bleu.value > 30
    assert "asian:yes" in ter.signature and ter.value == pytest.approx(100 / 7)


@pytest.mark.parametrize(("tgt", "extra"), [("ja", "ja-mecab"), ("ko_KR", "ko-mecab")])
def test_japanese_and_korean_fall_back_to_characters_without_the_extra(tgt, extra, monkeypatch):
    monkeypatch.setattr(scores, "find_spec", lambda module: None)
    assert scores.bleu_tokenizer(tgt) == "char"
    monkeypatch.setattr(scores, "find_spec", lambda module: module)
    assert scores.bleu_tokenizer(tgt) == extra


@pytest.mark.parametrize(
    ("tag", "language"), [("pt_BR", "pt"), ("ZHO-Hans", "zho"), ("en", "en"), ("french", "french"), ("", "")]
)
def test_primary_language_is_the_tag_without_script_and_region(tag, language):
    assert primary_language(tag) == language


@pytest.mark.parametrize("tgt", ["", "de", "fr_FR", "pt-BR", "kok"])
def test_spaced_languages_use_13a(tgt):
    assert scores.bleu_tokenizer(tgt) == "13a"


# ---- paired tests


def test_clear_improvement_is_significant_in_every_metric():
    better, references = corpus(120, 0.1)
    worse, _ = corpus(120, 0.4)
    for p in paired_test(better, worse, references):
        assert p.p_value < 0.01
        assert (p.value < p.other) == (p.name == "TER")


def test_identical_system_is_not_significant():
    hypotheses, references = corpus(60, 0.2)
    assert [p.p_value for p in paired_test(hypotheses, hypotheses, references)] == [1.0] * 5


def test_one_differing_sentence_is_not_significant():
    hypotheses, references = corpus(60, 0.2)
    assert all(p.p_value == 1 for p in paired_test(["Rien.", *hypotheses[1:]], hypotheses, references))


def test_p_values_equal_those_by_sacrebleu_where_no_differences_tie():
    ours, references = corpus(60, 0.2, seed=3)
    theirs, _ = corpus(60, 0.25, seed=3)
    metrics = {"BLEU": scores.BLEU(force=True), "TER": scores.TER()}
    _, result = PairedTest([("other", theirs), ("this", ours)], metrics, [references], n_samples=2000)()
    by_name = {p.name: p for p in paired_test(ours, theirs, references)}
    assert 0.001 < by_name["BLEU"].p_value < 0.9
    assert by_name["BLEU"].p_value == pytest.approx(result["BLEU"][1].p_value, abs=0.04)


def test_p_value_of_exact_matches_is_that_of_the_sign_test():
    # Four sentences are won and none lost: as large a difference by chance in 2 of 2^4 swaps.
    references = ["a", "b", "c", "d", "e"]
    paired = paired_test(references, ["x", "x", "x", "x", "e"], references)
    assert paired[-1].p_value == pytest.approx(2 / 16, abs=0.015)


# ---- files


def test_lines_split_on_lf_and_crlf_only(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("a\u2028b\r\nc\x85d\ne\rf\x0b\x0c\x1c\n\nlast".encode())
    assert read_lines(path) == ["a\u2028b", "c\x85d", "e\rf\x0b\x0c\x1c", "", "last"]


def test_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfa\nb\n")
    assert read_lines(path) == ["a", "b"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_invalid_utf8_is_refused_with_its_line_number(tmp_path, mark):
    path = tmp_path / "x.txt"
    path.write_bytes(mark + b"a\nb\ncaf\xe9\n")
    with pytest.raises(ValueError, match=r"x\.txt, line 3: byte 0xe9 is not valid UTF-8"):
        read_lines(path)


# ---- the command


def run(monkeypatch, capsys, *args):
    """Standard output, standard error and exit code of `python evaluate.py …`."""
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *map(str, args)])
    code = 0
    try:
        evaluate.runtime.run_command(evaluate.main)
    except SystemExit as end:
        code = end.code
    return *capsys.readouterr(), code


def refused(monkeypatch, capsys, *args):
    """The one line with which the command refuses."""
    out, err, code = run(monkeypatch, capsys, *args)
    assert (out, code, err.count("\n")) == ("", 2, 1)
    return err


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model folder for a corpus of four rows, one without a target; translations come from a table."""
    rows = [
        {"en": "One cat.", "fr": "Un chat noir."},
        {"en": "Two dogs.", "fr": "Deux chiens."},
        {"en": "Nothing.", "fr": ""},
        {"en": "Three birds sing.", "fr": "Trois oiseaux chantent ici."},
    ]
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "test"):
        write(folder / f"{split}.jsonl", [json.dumps(row) for row in rows])
    path = tmp_path / "model"
    path.mkdir()
    config = Config(data=DataConfig(dataset=str(folder), src="en", tgt="fr"))
    record = {"format_version": 1, "versions": {}, "data_fingerprint": "", "config": to_json(config)}
    (path / "config.json").write_text(json.dumps(record))
    table = {
        "One cat.": "Un\nchat noir.",
        "Two dogs.": "Chiens.",
        "Three birds sing.": "Trois oiseaux chantent.",
    }

    class Table:
        decode: DecodeConfig

        @classmethod
        def load(cls, path, *, device, split_sentences, workers):
            assert not split_sentences
            return cls()

        def translate(self, texts, *, decode):
            Table.decode = decode
            warnings = {
                "Two dogs.": ("the digits differ: Two dogs.", "300 tokens: a", "the digits differ: b")
            }
            return [Translation(t, table[t], 0.0, (), warnings.get(t, ("300 tokens: x",))) for t in texts]

    monkeypatch.setattr(evaluate, "Translator", Table)
    return path


def test_printed_report_is_this(tmp_path, monkeypatch, capsys):
    write(tmp_path / "a.txt", ["Un chat noir dort.", "Le chien mange."])
    write(tmp_path / "b.txt", ["Un chat noir dort.", "un chien blanc mange tout."])
    write(tmp_path / "ref.txt", ["Un chat noir dort.", "Un chien blanc mange tout."])
    monkeypatch.chdir(tmp_path)
    flags = ("--hypotheses", "a.txt", "--references", "ref.txt", "--against", "b.txt")
    out, _, code = run(monkeypatch, capsys, *flags)
    assert code == 0
    assert out.replace(sacrebleu_version, "VERSION") == EXPECTED


EXPECTED = """\
corpus   ref.txt: 2 sentences
system   a.txt
against  b.txt

metric                     score   95 % interval
BLEU                       53.76   7.58 – 100.00
BLEU lower-cased           53.76   7.58 – 100.00
chrF2++                    58.19   27.31 – 100.00
TER (lower is better)      44.44   0.00 – 80.00
exact match, %             50.00   0.00 – 100.00

BLEU|nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:VERSION
BLEU|nrefs:1|bs:1000|seed:12345|case:lc|eff:no|tok:13a|smooth:exp|version:VERSION
chrF2++|nrefs:1|bs:1000|seed:12345|case:mixed|eff:yes|nc:6|nw:2|space:no|version:VERSION
TER|nrefs:1|bs:1000|seed:12345|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:VERSION

against b.txt; p by approximate randomization, 10,000 trials, two-sided
metric                     score    other   difference        p
BLEU                       53.76    86.28       -32.52   1.0000   not significant
BLEU lower-cased           53.76   100.00       -46.24   1.0000   not significant
chrF2++                    58.19    95.10       -36.92   1.0000   not significant
TER (lower is better)      44.44     0.00       +44.44   1.0000   not significant
exact match, %             50.00    50.00        +0.00   1.0000   not significant

sentences that differ from their reference: 1; the worst:

sentence 2, chrF2++ 27.3
  translation  Le chien mange.
  reference    Un chien blanc mange tout.
"""


def test_report_stays_within_100_columns(tmp_path, monkeypatch, capsys, files):
    hyp, ref = files
    long = write(tmp_path / "long.txt", [line * 30 for line in read_lines(hyp)])
    monkeypatch.chdir(hyp.parent)
    out, _, _ = run(
        monkeypatch, capsys, "--hypotheses", long, "--references", ref.name, "--against", hyp.name
    )
    table = [line for line in out.splitlines() if str(long) not in line]
    assert max(map(len, table)) <= 100
    assert sum(line.startswith("sentence ") for line in table) == 5


def test_worst_sentences_come_first_and_right_ones_not_at_all(monkeypatch, capsys, files):
    hypotheses, references = map(read_lines, files)
    out, _, _ = run(monkeypatch, capsys, "--hypotheses", files[0], "--references", files[1], "--worst", 1000)
    shown = [line.split() for line in out.splitlines() if line.startswith("sentence ")]
    values = [float(words[-1]) for words in shown]
    assert values == sorted(values) and values[0] < values[-1]
    wrong = [
        i for i, (a, b) in enumerate(zip(hypotheses, references, strict=True), 1) if a.strip() != b.strip()
    ]
    assert sorted(int(words[1].strip(",")) for words in shown) == wrong


def test_worst_sentences_do_not_send_control_codes_to_the_terminal(tmp_path, monkeypatch, capsys):
    hyp, ref = write(tmp_path / "hyp.txt", ["a \x1b[2J b"]), write(tmp_path / "ref.txt", ["a b"])
    out, _, _ = run(monkeypatch, capsys, "--hypotheses", hyp, "--references", ref)
    assert "a  [2J b" in out.replace("\n", "") or "a [2J b" in out


def test_model_is_scored_on_the_split_of_its_own_corpus(model, monkeypatch, capsys):
    out, err, code = run(monkeypatch, capsys, "--model", model, "--beam", 3)
    assert code == 0 and "translating 3 sentences" in err
    assert "corpus, test, en → fr: 3 sentences, rows left out: 1 one-sided\n" in out
    assert f"{model}: " in out and " sentences/s" in out
    assert "exact match, %             33.33" in out
    assert evaluate.Translator.decode == DecodeConfig(beam=3)


def test_source_stands_beside_translation_and_reference(model, monkeypatch, capsys):
    out, _, _ = run(monkeypatch, capsys, "--model", model, "--worst", 1)
    assert out.endswith("\n  source       Two dogs.\n  translation  Chiens.\n  reference    Deux chiens.\n")


def test_warnings_are_counted_by_kind_once_a_sentence(model, monkeypatch, capsys):
    out, _, _ = run(monkeypatch, capsys, "--model", model)
    assert "\n       3  n tokens\n       1  the digits differ\n" in out


def test_saved_translations_keep_line_n_for_sentence_n_and_score_the_same(
    model, tmp_path, monkeypatch, capsys
):
    saved, first, again = tmp_path / "new" / "out.txt", tmp_path / "1.json", tmp_path / "2.json"
    run(monkeypatch, capsys, "--model", model, "--output", saved, "--json", first)
    assert saved.read_text() == "Un chat noir.\nChiens.\nTrois oiseaux chantent.\n"
    run(monkeypatch, capsys, "--model", model, "--hypotheses", saved, "--json", again)
    assert json.loads(first.read_text())["scores"] == json.loads(again.read_text())["scores"]


def test_finished_file_may_also_cover_the_rows_that_are_left_out(model, tmp_path, monkeypatch, capsys):
    whole = write(
        tmp_path / "all.txt", ["Un chat noir.", "Deux chiens.", "Rien.", "Trois oiseaux chantent ici."]
    )
    out, _, code = run(monkeypatch, capsys, "--model", model, "--hypotheses", whole)
    assert code == 0 and "every sentence equals its reference" in out


def test_file_needs_no_model_when_the_dataset_is_given(model, tmp_path, monkeypatch, capsys):
    hyp = write(tmp_path / "hyp.txt", ["Un chat.", "Deux chiens.", "Trois."])
    monkeypatch.chdir(tmp_path)
    flags = ("--hypotheses", hyp, "--dataset", tmp_path / "corpus", "--src", "fr", "--tgt", "en")
    out, _, code = run(monkeypatch, capsys, *flags)
    assert code == 0 and "fr → en" in out


def test_against_a_model_translates_with_it_too(model, tmp_path, monkeypatch, capsys):
    hyp = write(tmp_path / "hyp.txt", ["Un chat.", "Deux chiens.", "Trois."])
    out, err, code = run(monkeypatch, capsys, "--model", model, "--hypotheses", hyp, "--against", model)
    assert code == 0 and err.count("translating") == 1
    assert f"against {model}; p by approximate randomization" in out


@pytest.fixture
def pictures(tmp_path):
    """A corpus of files without a test split, and a model folder that read it."""
    rows = [{"en": f"{i}.png", "fr": f"Phrase {i}."} for i in range(60)]
    for row in rows:
        (tmp_path / row["en"]).write_bytes(row["en"].encode())
    path = write(tmp_path / "pictures.jsonl", map(json.dumps, rows))
    config = Config(data=DataConfig(dataset=str(path), source="image"))
    record = {"format_version": 2, "versions": {}, "data_fingerprint": "", "config": to_json(config)}
    folder = tmp_path / "seeing"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(record))
    return path, folder


def test_a_finished_file_is_scored_on_the_split_that_the_model_of_its_source_has(
    model, pictures, tmp_path, monkeypatch, capsys
):
    corpus, seeing = pictures
    hyp, saved = write(tmp_path / "hyp.txt", ["Phrase."] * 3), tmp_path / "scores.json"
    found = []
    for flags in (["--model", seeing], ["--dataset", corpus, "--source", "image"]):
        flags = ("--hypotheses", hyp, *flags, "--json", saved)
        _, err, code = run(monkeypatch, capsys, *flags)
        assert code == 0, err
        found.append(json.loads(saved.read_text())["sentences"])
    assert found[0] == found[1]


def test_a_finished_file_for_paths_of_pictures_needs_their_source(
    model, pictures, tmp_path, monkeypatch, capsys
):
    hyp = write(tmp_path / "hyp.txt", ["Phrase."] * 3)
    line = refused(monkeypatch, capsys, "--hypotheses", hyp, "--dataset", pictures[0])
    assert line.endswith("the first '0.png'; read the files that they name with --source image\n")


def test_sentences_are_given_to_a_model_that_draws_them(model, pictures, tmp_path, monkeypatch, capsys):
    hyp = write(tmp_path / "hyp.txt", ["Un chat.", "Deux chiens.", "Trois."])
    flags = ("--model", model, "--hypotheses", hyp, "--against", pictures[1])
    _, err, code = run(monkeypatch, capsys, *flags)
    assert code == 0 and f"translating 3 sentences with {pictures[1]}" in err


def test_pictures_are_not_given_to_a_model_of_text(model, pictures, monkeypatch, capsys):
    line = refused(monkeypatch, capsys, "--model", pictures[1], "--against", model)
    assert line == f"error: --against {model} reads text, but the set holds pictures; give another model\n"


def test_another_source_than_the_models_is_refused(model, monkeypatch, capsys):
    line = refused(monkeypatch, capsys, "--model", model, "--source", "image")
    assert f"--source image, but --model {model} reads text; give a model that reads image" in line


def test_real_model_folder_is_translated_and_scored(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(evaluate, "Translator", Translator)
    config, _ = model_folder.read_config(model)
    config = replace(config, model=ModelConfig(16, 1, 1, 2, 16, vocab_size=300))
    tokenizer = Tokenizer.train(["One cat.", "Un chat noir."], 300)
    source = TextInput(tokenizer)
    model_folder.create(model, config, tokenizer, source, "")
    model_folder.save_weights(model, model_folder.build(config, tokenizer.vocab_size, source))
    saved = tmp_path / "out.txt"
    out, err, code = run(monkeypatch, capsys, "--model", model, "--device", "cpu", "--output", saved)
    assert code == 0, err
    assert "exact match, %              0.00" in out and len(read_lines(saved)) == 3


def strict(text):
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_json_is_strict_and_holds_everything(model, tmp_path, monkeypatch, capsys):
    path = tmp_path / "scores.json"
    run(monkeypatch, capsys, "--model", model, "--against", model, "--json", path)
    found = strict(path.read_text())
    assert found["system"] == str(model) and found["split"] == "test" and found["decode"]["beam"] == 5
    assert found["data"]["dataset"] == str(tmp_path / "corpus") and found["left_out"] == "1 one-sided"
    assert found["elapsed_s"] >= 0 and found["sentences_per_s"] > 0
    assert found["warnings"] == {"n tokens": 3, "the digits differ": 1}
    assert [s["name"] for s in found["scores"]] == [
        "BLEU",
        "BLEU lower-cased",
        "chrF2++",
        "TER",
        "exact match",
    ]
    assert all(set(s) == set(Score._fields) and s["signature"] for s in found["scores"])
    assert [p["p_value"] for p in found["against"]["paired"]] == [1.0] * 5
    assert found["against"]["scores"] == found["scores"]
    assert found["sentences"][1] == {
        "source": "Two dogs.",
        "hypothesis": "Chiens.",
        "reference": "Deux chiens.",
        "chrF2++": pytest.approx(sentence_chrf(measure(["Chiens."], ["Deux chiens."], ""))[0]),
        "other": "Chiens.",
    }
    assert [s["source"] for s in found["sentences"]] == ["One cat.", "Two dogs.", "Three birds sing."]


# ---- mistakes


def test_files_of_different_length_are_refused_with_both_numbers(tmp_path, monkeypatch, capsys):
    hyp, ref = write(tmp_path / "hyp.txt", ["a"] * 999), write(tmp_path / "ref.txt", ["a"] * 1000)
    for flags in (["--hypotheses", hyp], ["--hypotheses", ref, "--against", hyp]):
        line = refused(monkeypatch, capsys, *flags, "--references", ref)
        assert f"{hyp} has 999 lines for 1,000 references" in line


def test_missing_file_is_refused(tmp_path, monkeypatch, capsys):
    ref = write(tmp_path / "ref.txt", ["a"])
    line = refused(monkeypatch, capsys, "--hypotheses", tmp_path / "nope", "--references", ref)
    assert line == f"error: {tmp_path / 'nope'} is not there; name a text file\n"


def test_empty_set_is_refused(tmp_path, monkeypatch, capsys):
    empty = write(tmp_path / "empty.txt", [])
    line = refused(monkeypatch, capsys, "--hypotheses", empty, "--references", empty)
    assert line == f"error: {empty} is empty; there is nothing to score\n"


def test_unknown_split_is_refused_with_those_there_are(model, monkeypatch, capsys):
    line = refused(monkeypatch, capsys, "--model", model, "--split", "exam")
    assert "--split exam" in line and "train" in line and "test" in line


def test_missing_model_is_refused_with_the_command_that_makes_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "python train.py" in refused(monkeypatch, capsys)
    assert "python train.py --out none" in refused(monkeypatch, capsys, "--model", "none")


def test_foreign_folder_in_against_is_refused_before_anything_is_translated(
    model, tmp_path, monkeypatch, capsys
):
    line = refused(monkeypatch, capsys, "--model", model, "--against", tmp_path)
    assert "is not a model folder" in line


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--references", "ref.txt"], "--references needs --hypotheses"),
        (["--hypotheses", "a", "--references", "b", "--against", "."], "leave --references out"),
        (["--hypotheses", "a", "--references", "b", "--source", "image"], "leave it out, or --source"),
        (["--worst", "-1"], "--worst must be 0 or more, got -1"),
        (["--bootstrap", "10"], "--bootstrap must be at least 40, got 10"),
        (["--bootstrap", "10000000000"], "--bootstrap must be at most 1,000,000, got 10000000000"),
        (["--json", "."], "--json . cannot be written"),
        (["--threads", "0"], "--threads must be at least 1, got 0"),
        *[
            (["--hypotheses", "a", "--references", "b", flag, "en"], f"leave it out, or {flag}")
            for flag in ("--dataset", "--dataset-config", "--src", "--split")
        ],
        (["--beam", "0"], "--beam must be at least 1 and at most 1000, got 0"),
    ],
)
def test_impossible_options_are_refused_in_one_line(flags, message, monkeypatch, capsys):
    assert message in refused(monkeypatch, capsys, *flags)


@pytest.mark.parametrize("flag", ["--output", "--json"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_translated(
    flag, model, tmp_path, monkeypatch, capsys
):
    file = write(tmp_path / "file", ["a"])
    line = refused(monkeypatch, capsys, "--model", model, flag, file / "out")
    assert line == f"error: {flag} {file / 'out'} cannot be written; name a file in a folder of yours\n"


def test_a_model_of_another_direction_is_refused_before_anything_is_translated(model, monkeypatch, capsys):
    line = refused(monkeypatch, capsys, "--model", model, "--src", "fr", "--tgt", "en")
    assert f"--model {model} translates en → fr, but the set is fr → en; give --src and --tgt" in line


def test_against_a_model_of_another_direction_is_refused(model, tmp_path, monkeypatch, capsys):
    record = json.loads((model / "config.json").read_text())
    record["config"]["data"] |= {"src": "fr", "tgt": "en"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps(record))
    line = refused(monkeypatch, capsys, "--model", model, "--against", other)
    assert f"--against {other} translates fr → en, but the set is en → fr" in line


def test_another_script_or_region_is_no_other_direction(model, monkeypatch, capsys):
    out, _, code = run(monkeypatch, capsys, "--model", model, "--src", "en_GB", "--tgt", "FR-Latn")
    assert code == 0 and "en_GB → FR-Latn" in out


def test_names_of_another_kind_may_be_the_same_language(model):
    evaluate._check_direction("--model", model, DataConfig(src="english", tgt="fra_Latn"))


@pytest.mark.parametrize("place", ["{}/moved", "moved"])
def test_when_the_corpus_of_the_model_has_moved_the_message_names_dataset(
    place, model, tmp_path, monkeypatch, capsys
):
    record = json.loads((model / "config.json").read_text())
    record["config"]["data"]["dataset"] = place.format(tmp_path)
    (model / "config.json").write_text(json.dumps(record))
    line = refused(monkeypatch, capsys, "--model", model)
    start = f"error: the corpus of {model} cannot be read; name the place where it is now with --dataset ("
    assert line.startswith(start)
    assert run(monkeypatch, capsys, "--model", model, "--dataset", tmp_path / "corpus")[2] == 0


def test_a_model_trained_on_a_stream_is_scored_on_another_corpus(model, tmp_path, monkeypatch, capsys):
    record = json.loads((model / "config.json").read_text())
    record["format_version"] = model_folder.FORMAT_VERSION  # older ones knew no streams
    record["config"]["data"] |= {"streaming": True, "buffer": 10_000}
    (model / "config.json").write_text(json.dumps(record))
    out, err, code = run(monkeypatch, capsys, "--model", model, "--dataset", tmp_path / "corpus")
    assert code == 0, err
    assert "3 sentences" in out


def test_the_newest_run_is_asked_for_once(model, monkeypatch, capsys):
    newest = iter([model])  # a run that ends meanwhile would be the next answer
    monkeypatch.setattr(model_folder, "newest_run", lambda: next(newest))
    assert run(monkeypatch, capsys)[2] == 0


def test_statistics_are_made_once_for_each_metric(files, monkeypatch, capsys):
    made = []
    measured = scores._measured
    monkeypatch.setattr(scores, "_measured", lambda name, *rest: made.append(name) or measured(name, *rest))
    run(monkeypatch, capsys, "--hypotheses", files[0], "--references", files[1])
    assert made == ["BLEU", "BLEU lower-cased", "chrF2++", "TER"]


def test_help_shows_examples_and_groups(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    out, err, code = run(monkeypatch, capsys, "--help")
    assert (code, err) == (0, "")
    assert "python evaluate.py --hypotheses out.txt --references ref.txt" in out
    assert out.index("--against") < out.index("decode options") < out.index("--beam")
    assert len(out.splitlines()) <= 70


def test_nothing_is_written_when_the_command_is_refused(model, tmp_path, monkeypatch, capsys):
    hyp = write(tmp_path / "hyp.txt", ["a"])
    flags = ("--output", tmp_path / "o.txt", "--json", tmp_path / "o.json")
    refused(monkeypatch, capsys, "--model", model, "--hypotheses", hyp, *flags)
    assert not list(tmp_path.glob("*o.*"))
