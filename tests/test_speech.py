"""The speech benchmark: log-mel features, the slice of the phrasebook, and its command."""

import math
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import speech
from speech import BANDS, FFT, FLOOR, HOP, RATE, WINDOW, log_mel, mel_filterbank, samples_of

ROOT = Path(speech.__file__).parent.parent


def tone(hertz, seconds=0.2):
    return 0.5 * torch.sin(2 * math.pi * hertz * torch.arange(round(seconds * RATE)) / RATE)


def centre_hz(band):
    top = 2_595 * math.log10(1 + speech.HIGHEST_HZ / 700)
    return 700 * (10 ** (top * (band + 1) / (BANDS + 1) / 2_595) - 1)


def riff(samples, rate=RATE):
    data = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 0x7FFFF024, b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16
    )
    return head + struct.pack("<4sI", b"data", 0x7FFFF000) + data


def test_every_mel_band_peaks_at_its_centre():
    peaks = mel_filterbank().argmax(0) * RATE / FFT
    for band, hertz in enumerate(peaks.tolist()):
        assert abs(hertz - centre_hz(band)) <= RATE / FFT, band


def test_neighbouring_mel_bands_share_each_frequency_between_them():
    hertz = torch.arange(FFT // 2 + 1) * RATE / FFT
    inner = (hertz > centre_hz(0)) & (hertz < centre_hz(BANDS - 1))
    assert torch.allclose(mel_filterbank()[inner].sum(1), torch.ones(int(inner.sum())), atol=1e-5)


def test_no_mel_band_is_empty_or_hears_above_8_kilohertz():
    weights = mel_filterbank()
    assert weights.shape == (FFT // 2 + 1, BANDS)
    assert (weights.sum(0) > 0.5).all()
    assert not weights[torch.arange(FFT // 2 + 1) * RATE / FFT >= 8_000].any()


@pytest.mark.parametrize("band", [3, 10, 20, 30, 39])
def test_a_pure_tone_is_loudest_in_its_own_band(band):
    assert (log_mel(tone(centre_hz(band))).argmax(1) == band).all()


def test_twice_the_amplitude_adds_the_logarithm_of_four():
    quiet, loud = log_mel(tone(1_000)), log_mel(2 * tone(1_000))
    assert torch.allclose(loud[:, 14] - quiet[:, 14], torch.full((len(loud),), math.log(4)), atol=1e-4)


@pytest.mark.parametrize("num_samples", [WINDOW, WINDOW + HOP - 1, WINDOW + HOP, RATE])
def test_frames_are_the_windows_that_fit(num_samples):
    assert log_mel(torch.zeros(num_samples)).shape == (1 + (num_samples - WINDOW) // HOP, BANDS)


@pytest.mark.parametrize("num_samples", [0, 1, WINDOW - 1])
def test_less_than_a_window_is_one_frame(num_samples):
    assert log_mel(torch.zeros(num_samples)).shape == (1, BANDS)


def test_silence_is_the_floor():
    assert torch.allclose(log_mel(torch.zeros(RATE)), torch.tensor(math.log(FLOOR)))


def test_a_frame_depends_on_its_own_window_alone():
    samples = tone(440)
    alone = log_mel(samples[3 * HOP : 3 * HOP + WINDOW])
    # A product of one row is rounded in another way on some processors.
    torch.testing.assert_close(log_mel(samples)[3:4], alone, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(log_mel(tone(523))[3:4], alone, rtol=1e-4, atol=1e-4)


def test_samples_are_read_to_the_end_whatever_length_the_header_gives():
    assert samples_of(riff([0, 16_384, -32_768])).tolist() == [0.0, 0.5, -1.0]


@pytest.mark.parametrize("wav", [b"", b"RIFF", riff([1, 2], rate=16_000), b"x" * 100])
def test_other_sound_is_refused(wav):
    with pytest.raises(ValueError, match="expected 16-bit mono sound at 22050 Hz from espeak-ng, got"):
        samples_of(wav)


def test_spoken_words_leave_out_what_is_not_heard():
    assert speech.spoken_words("Don't go, Anne-Marie!") == speech.spoken_words("don't go Anne-Marie.")


def slice_of(monkeypatch, sentences, **kwargs):
    pairs = [speech.phrasebook.Sentence(en, "oui non", "home", ()) for en in sentences]
    monkeypatch.setattr(speech.phrasebook, "sentences", lambda split, num=None: iter(pairs))
    speech.common_words.cache_clear()
    try:
        return [pair.en for pair in speech.slice_of("train", **kwargs)]
    finally:
        speech.common_words.cache_clear()


def test_the_slice_keeps_short_sentences_of_frequent_words(monkeypatch):
    given = [
        "A cat sees a dog.",
        "A cat sleeps.",
        "A dog sees it.",
        "A dog sees a cat.",
        "A cat sees 2 dogs.",
    ]
    chosen = slice_of(monkeypatch, given, num_pairs=2, num_words=4, longest=5)
    assert chosen == ["A cat sees a dog.", "A dog sees a cat."]


def test_sentences_that_sound_the_same_are_in_the_slice_once(monkeypatch):
    given = ["A cat sees.", "A cat sees!", "A cat, sees?", "Cat sees a."]
    assert slice_of(monkeypatch, given, num_pairs=2, num_words=9, longest=5) == ["A cat sees.", "Cat sees a."]


def test_a_slice_that_is_too_small_says_so(monkeypatch):
    with pytest.raises(ValueError, match="gives 1 pairs for train, not 3; ask for fewer --pairs"):
        slice_of(monkeypatch, ["A cat sees."], num_pairs=3, num_words=9, longest=5)


def test_without_espeak_the_command_says_how_to_install_it_and_ends_with_2(tmp_path):
    command = [sys.executable, speech.__file__, "make", str(tmp_path / "corpus")]
    env = {**speech.os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "apt-get install -y espeak-ng" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_running_without_a_corpus_says_how_to_make_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no train.jsonl in .*make it first: python .* make"):
        speech.main(["run", str(tmp_path), "--out", str(tmp_path / "run")])


def test_a_number_of_pairs_that_cannot_be_names_the_flag(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        speech.main(["make", str(tmp_path / "corpus"), "--pairs", "0"])
    assert "--pairs must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.parametrize("args", [[], ["sing"]])
def test_there_is_make_and_run_and_nothing_else(args):
    with pytest.raises(ValueError, match="say make or run"):
        speech.main(args)


def small_corpus(monkeypatch, folder, **kwargs):
    """A few utterances in place of the slice and, where there is no espeak-ng, tones in place of a voice."""
    spoken = [speech.Utterance(f"Word {n}.", f"Mot {n}.", speech.VOICES[n % 2], 150 + n) for n in range(3)]
    monkeypatch.setattr(speech, "utterances", lambda config: {"train": spoken, "validation": spoken[:1]})
    monkeypatch.setattr(speech, "espeak_version", lambda: "tones 1.0")
    monkeypatch.setattr(speech, "speak", lambda utterance: tone(10 * utterance.speed))
    speech.make(speech.MakeConfig(folder, **kwargs))


def test_rows_name_their_features_and_hold_both_texts(monkeypatch, tmp_path):
    small_corpus(monkeypatch, tmp_path / "corpus")
    rows = [speech.json.loads(line) for line in (tmp_path / "corpus/train.jsonl").read_text().splitlines()]
    assert rows[1] == {
        "speech": "train/000002.npy", "en": "Word 1.", "fr": "Mot 1.", "voice": "en-gb", "speed": 151
    }  # fmt: skip
    features = np.load(tmp_path / "corpus" / rows[1]["speech"])
    assert features.shape == (1 + (len(tone(1_510)) - WINDOW) // HOP, BANDS)


def test_the_corpus_names_the_speaker_and_counts_sentences(monkeypatch, tmp_path):
    small_corpus(monkeypatch, tmp_path / "corpus")
    text = (tmp_path / "corpus/README.md").read_text()
    assert "Spoken by tones 1.0" in text
    assert "| train | 3 | 0.00 | 18 | 4 | 4 |" in text


def test_other_voices_speak_the_test_sentences_alone(monkeypatch, tmp_path):
    pair = speech.phrasebook.Sentence("A cat sleeps.", "Un chat dort.", "home", ())
    monkeypatch.setattr(speech, "slice_of", lambda split, *_: [pair._replace(en=f"{split} sleeps.")])
    monkeypatch.setattr(speech, "espeak_version", lambda: "tones 1.0")
    monkeypatch.setattr(speech, "speak", lambda utterance: tone(440))
    speech.make(speech.MakeConfig(tmp_path / "corpus", voices=("en-us+f5",), test_only=True))
    assert [path.name for path in (tmp_path / "corpus").glob("*.jsonl")] == ["test.jsonl"]
    row = speech.json.loads((tmp_path / "corpus/test.jsonl").read_text())
    assert (row["en"], row["voice"]) == ("test sleeps.", "en-us+f5")


def test_held_out_sentences_never_sound_like_those_of_another_split(monkeypatch, tmp_path):
    pairs = {
        "train": ["A cat.", "A dog."],
        "validation": ["A dog!", "A bird."],
        "test": ["A bird?", "A fox."],
    }
    sentences = {
        split: [speech.phrasebook.Sentence(en, "", "home", ()) for en in pairs[split]] for split in pairs
    }
    monkeypatch.setattr(speech, "slice_of", lambda split, *_: sentences[split])
    spoken = speech.utterances(speech.MakeConfig(tmp_path))
    chosen = {split: [utterance.en for utterance in spoken[split]] for split in spoken}
    assert chosen == {"train": ["A cat.", "A dog."], "validation": ["A bird."], "test": ["A fox."]}


def test_the_seed_fixes_voices_and_speeds(monkeypatch, tmp_path):
    pairs = [speech.phrasebook.Sentence(f"{n} cats.", "", "home", ()) for n in range(20)]
    monkeypatch.setattr(speech, "slice_of", lambda split, *_: pairs)
    first, again, other = (speech.utterances(speech.MakeConfig(tmp_path, seed=seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_a_folder_with_something_in_it_is_not_written_to(monkeypatch, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ValueError, match="is there already and is not empty; name another folder"):
        small_corpus(monkeypatch, tmp_path)


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_the_same_sentence_sounds_the_same_again_and_slower_lasts_longer():
    utterances = [speech.Utterance("Where is the bank?", "", "en-gb+f4", speed) for speed in (140, 140, 200)]
    slow, again, fast = (speech.speak(utterance) for utterance in utterances)
    assert torch.equal(slow, again)
    assert len(slow) > len(fast)


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_a_voice_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="-v nobody .* does not exist"):
        speech.speak(speech.Utterance("Hello.", "", "nobody", 150))


def test_the_result_shows_scores_signature_hardware_and_commands():
    score = speech.ScoreRow("BLEU", 61.234, 58.0, 64.0, "nrefs:1|tok:13a")
    text = speech.result([["train.py", "--out", "my run"], ["evaluate.py"]], {"spoken": [score]})
    assert "| spoken | BLEU | 61.23 | 58.00 – 64.00 |" in text
    assert "`nrefs:1|tok:13a`" in text
    assert "CPU cores" in text
    assert "python train.py --out 'my run'\npython evaluate.py" in text
