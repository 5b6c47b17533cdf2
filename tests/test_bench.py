"""The benchmark: what it counts, that all engines decode the same model, and the report made from results alone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_model import enlarged

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import curves
import decoding_growth
import export
import jobs
import parts
import peers
import plan
import report
import results
import targets
from engine_ours import Ours, configuration, learn_rows, train
from flops import Product, backward_products, bare_rate, forward_products, training_flops
from growth import memory_points
from measuring import Clock, Shape
from pairs import PairsConfig, prepare, read_ids
from peers import BOS_ID, PAD_ID, RECIPE, Architecture, Subwords, longest

import model_folder
from config import Config, DataConfig, ModelConfig
from dataset import causal_mask
from inputs import TextInput
from tokenizer import Tokenizer
from translator import Translator

ROOT = Path(__file__).resolve().parent.parent
TOY = Architecture(d_model=4, layers=1, heads=2, d_ff=8, vocab_size=5)
SHAPE = Shape(rows=1, src_length=2, tgt_length=3, projected=3, num_tokens=3)
SENTENCES = ["Where is the dog?", "I see two old houses near the station.", "dogs", "Naïve café – 42!"]


def make_model_folder(path, norm="post", **settings):
    """A model with random weights that speaks: initial ones all but repeat one token."""
    tokenizer = Tokenizer.train(["Where is the station? I see two dogs near the old house, really."] * 2, 340)
    sizes = ModelConfig(
        d_model=16, num_layers=2, num_decoder_layers=3, num_heads=2, d_ff=32, norm=norm, **settings
    )
    config = Config(DataConfig(max_length=64, src="en", tgt="de"), sizes)
    model_folder.create(path, config, tokenizer, TextInput(tokenizer), "none")
    torch.manual_seed(0)
    model = model_folder.build(config, tokenizer.vocab_size, TextInput(tokenizer))
    for parameter in enlarged(model).parameters():
        parameter.data = 1.5 * parameter.data + 0.1 * torch.randn_like(parameter)
    model.projection_layer.proj.bias.data[[PAD_ID, BOS_ID]] = -100.0  # which only our search bans
    model_folder.save_weights(path, model)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return {norm: make_model_folder(root / norm, norm) for norm in ("pre", "post")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split, num in (("train", 120), ("validation", 10), ("test", 10)):
        rows = [{"en": f"{split} a dog {i}", "de": f"{split} ein Hund sieht {i}"} for i in range(num)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepare(PairsConfig(str(folder), folder / "pairs", vocab_size=300, rows=80))
    return folder


def flops_of(*products):
    return sum(2 * batch * m * k * n for batch, m, k, n in products)


def test_flops_of_a_toy_model_are_those_counted_by_hand():
    encoder = [(1, 2, 4, 12), (2, 2, 2, 2), (2, 2, 2, 2), (1, 2, 4, 4), (1, 2, 4, 8), (1, 2, 8, 4)]
    own = [(1, 3, 4, 12), (2, 3, 2, 3), (2, 3, 3, 2), (1, 3, 4, 4)]
    cross = [(1, 3, 4, 4), (1, 2, 4, 8), (2, 3, 2, 2), (2, 3, 2, 2), (1, 3, 4, 4)]
    decoder = [*own, *cross, (1, 3, 4, 8), (1, 3, 8, 4)]
    assert flops_of(*encoder) == 576 and flops_of(*decoder) == 1_328
    forward = 576 + 1_328 + 2 * 3 * 4 * 5
    assert sum(p.flops for p in forward_products(SHAPE, TOY)) == forward
    assert training_flops(SHAPE, TOY) == 3 * forward


def test_the_backward_pass_multiplies_twice_for_each_product():
    product = Product(2, 3, 5, 7)
    assert sum(p.flops for p in backward_products(product)) == 2 * product.flops


def test_bare_products_have_a_rate_with_one_worker_and_with_two():
    assert all(bare_rate([[SHAPE, SHAPE]], TOY, workers, 0.02) > 0 for workers in (1, 2))


def test_windows_leave_the_warm_up_out_and_part_the_rest_evenly():
    clock = Clock(steps=10, minutes=None)
    clock.marks = [(float(i), 100 * i) for i in range(13)]
    assert [time for time, _ in clock.windows()] == [2, 4, 6, 8, 10, 12]
    assert peers.rates(clock.windows()) == [100.0] * 5


def test_a_time_of_few_steps_has_fewer_windows():
    clock = Clock(steps=None, minutes=1)
    clock.marks = [(0.0, 0), (1.0, 50), (3.0, 150)]
    assert peers.rates(clock.windows()) == [50.0, 50.0]


def test_the_clock_is_over_after_the_warm_up_and_the_steps():
    clock = Clock(steps=10, minutes=None)
    clock.start()
    ticks = 0
    while not clock.is_over:
        clock.tick([SHAPE])
        ticks += 1
    assert ticks == 12 and clock.marks[-1][1] == 12 * SHAPE.num_tokens


def test_the_peers_tokenizer_is_ours(models):
    ours, theirs = Tokenizer.load(models["post"] / "tokenizer.json"), Subwords(models["post"])
    texts = [*SENTENCES, "", "  two  spaces ", "cafe\u0301"]
    assert theirs.encode(texts) == ours.encode_batch(texts)
    assert [theirs.decode(ids) for ids in theirs.encode(texts)] == [
        ours.decode(ids).strip() for ids in ours.encode_batch(texts)
    ]
    assert len(theirs.vocabulary) == ours.vocab_size


def test_all_engines_learn_the_ids_that_ours_learns(corpus):
    tokenizer = Tokenizer.load(corpus / "pairs" / "tokenizer.json")
    texts = [
        json.loads(line)["de"]
        for line in (corpus / "pairs" / "corpus" / "train.jsonl").read_text().splitlines()
    ]
    assert read_ids(corpus / "pairs" / "train.de") == tokenizer.encode_batch(texts)


def test_a_part_of_the_corpus_has_its_first_rows(corpus):
    assert len(read_ids(corpus / "pairs" / "train.en")) == 80
    assert len(read_ids(corpus / "pairs" / "test.en")) == 4
    first = [
        json.loads((f / "train.jsonl").read_text().splitlines()[0])
        for f in (corpus, corpus / "pairs" / "corpus")
    ]
    assert first[0] == first[1]


def test_our_engine_trains_by_the_clock_and_counts_real_tokens(corpus):
    clock = Clock(steps=5, minutes=None)
    tiny = Architecture(d_model=8, layers=1, heads=2, d_ff=16, vocab_size=300)
    translator = train(corpus / "pairs", str(corpus), tiny, 64, 1, clock)
    assert len(clock.shapes) == 7
    assert all(0 < shape.num_tokens <= 64 for step in clock.shapes for shape in step)
    assert len(translator.translate(["a dog"])) == 1


def test_our_engine_learns_by_the_recipe_of_the_peers():
    config = configuration("corpus", peers.FULL, 1_024, 2)
    assert config.train.optimizer == "adamw" and config.model.norm == "post"
    assert (config.train.lr, config.train.warmup_steps) == (RECIPE.lr, RECIPE.warmup_steps)


def test_our_engine_learns_from_made_up_rows_in_a_batch_for_each_worker(monkeypatch):
    seen = []
    monkeypatch.setattr("engine_ours.Learner.step", lambda self, batches, lr, step: seen.append(batches))
    rows = [([5, 6, 7], [8, 9, 10])] * 256
    learn_rows(rows, Architecture(d_model=8, layers=1, heads=2, d_ff=16, vocab_size=300), 2, 3)
    assert [[batch.num_tokens for batch in batches] for batches in seen] == [[512, 512]] * 3


def test_our_engine_translates_as_users_have_it_and_a_batch_of_1_is_a_call_a_sentence(models, monkeypatch):
    calls = []
    translate = Translator.translate

    def counted(self, sources, *, decode):
        calls.append(len(sources))
        return translate(self, sources, decode=decode)

    monkeypatch.setattr(Translator, "translate", counted)
    engine = Ours(models["post"], 1)
    assert engine.translate(SENTENCES, 1, 1) == engine.translate(SENTENCES, 2, 1)
    assert calls == [1] * len(SENTENCES) + [len(SENTENCES)]
    assert type(engine.translator.tokenizer) is Tokenizer


def test_a_model_without_an_end_writes_as_many_tokens_as_its_source_allows(models, tmp_path):
    export.to_endless(model_folder.load(models["post"], torch.device("cpu")), tmp_path / "endless")
    engine = Ours(tmp_path / "endless", 1, keeps_ids=True)
    engine.translate(SENTENCES, 4, 1)
    sources = Subwords(models["post"]).encode(SENTENCES)
    assert [len(ids) for ids in engine.ids()] == [longest(len(ids) + 1) for ids in sources]


def test_made_up_sources_have_just_the_wanted_tokens_and_differ(models):
    subwords = Subwords(models["post"])
    texts = decoding_growth.made_up(subwords, " ".join(SENTENCES).split(), 14, 3)
    assert [len(ids) for ids in subwords.encode(texts)] == [13] * 3 and len(set(texts)) == 3


def test_too_few_words_for_the_sources_of_the_growth_are_named(models):
    with pytest.raises(ValueError, match="no 3 texts of 250 tokens; take a larger corpus"):
        decoding_growth.made_up(Subwords(models["post"]), ["dogs"], 250, 3)


def test_bare_attention_takes_longer_for_more_tokens():
    few, many = (decoding_growth.attention_s(4, length, length, TOY) for length in (16, 2_048))
    assert 0 < few < many


def test_each_point_of_the_memory_is_measured_once(tmp_path):
    points = memory_points(plan.BenchConfig())
    assert len(set(points)) == len(points) == 10
    assert len(memory_points(plan.BenchConfig(small=True))) == 1


def test_the_ids_of_our_engine_are_those_of_its_text(models):
    engine = Ours(models["post"], 1, keeps_ids=True)
    texts = engine.translate(SENTENCES, 2, 1)
    assert len(set(texts)) > 1
    said = [Subwords(models["post"]).decode(ids) for ids in engine.ids()]
    assert [text.split() for text in said] == [text.split() for text in texts]


def assert_same(ours, theirs):
    bounds = [longest(len(ids) + 1) for ids in Subwords.encode(theirs.subwords, SENTENCES)]
    ours.translate(SENTENCES, 64, 1)
    theirs.translate(SENTENCES, 64, 1)
    assert len(set(map(tuple, ours.ids()))) > 1
    assert all(map(parts.is_equal, ours.ids(), theirs.ids(), bounds))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_ctranslate2_decodes_our_models_token_by_token(models, norm, tmp_path):
    pytest.importorskip("ctranslate2", reason="a peer of the benchmark, not installed")
    from engine_ctranslate2 import CTranslate2

    export.to_ctranslate2(model_folder.load(models[norm], torch.device("cpu")), tmp_path / "out")
    shutil.copy(models[norm] / "tokenizer.json", tmp_path / "out")
    assert_same(Ours(models[norm], 1, keeps_ids=True), CTranslate2(tmp_path / "out", 1, "inter"))


def test_marian_decodes_our_model_token_by_token_after_its_folder_is_read(models, tmp_path):
    pytest.importorskip("transformers", reason="a peer of the benchmark, not installed")
    from engine_huggingface import HuggingFace

    loaded = model_folder.load(models["post"], torch.device("cpu"))
    export.to_marian(loaded).save_pretrained(tmp_path)
    shutil.copy(models["post"] / "tokenizer.json", tmp_path)
    theirs = HuggingFace.load(tmp_path, 1)
    assert_same(Ours(models["post"], 1, keeps_ids=True), theirs)
    text = TextInput(loaded.tokenizer)
    src, mask = text.pad(text.encode(SENTENCES))
    tgt = torch.tensor([[BOS_ID, 5, 9, 40]] * len(SENTENCES))
    with torch.inference_mode():
        our_logits = loaded.model(src, mask, tgt, causal_mask(4))
        logits = theirs.model(input_ids=src, attention_mask=mask[:, 0, 0], decoder_input_ids=tgt).logits
    assert torch.allclose(our_logits, logits, atol=1e-4)


def test_batches_for_hugging_face_hold_every_pair_once_within_the_tokens():
    pytest.importorskip("transformers", reason="a peer of the benchmark, not installed")
    from random import Random

    from engine_huggingface import batches

    pairs = [([i], list(range(1 + i % 7))) for i in range(50)]
    seen, stream = [], batches(pairs, 16, Random(0))
    while len(seen) < 50:
        batch = next(stream)
        assert sum(len(tgt) + 1 for _, tgt in batch) <= 16
        seen += batch
    assert sorted(seen) == sorted(pairs)


def test_a_pre_norm_model_cannot_become_a_marian_model(models):
    loaded = model_folder.load(models["pre"], torch.device("cpu"))
    pytest.importorskip("transformers", reason="a peer of the benchmark, not installed")
    with pytest.raises(ValueError, match="post-norm, .* is not; train one with --norm post"):
        export.to_marian(loaded)


def test_learned_positions_are_refused(tmp_path):
    path = make_model_folder(tmp_path / "learned", positions="learned")
    loaded = model_folder.load(path, torch.device("cpu"))
    pytest.importorskip("ctranslate2", reason="a peer of the benchmark, not installed")
    with pytest.raises(ValueError, match="learned positions; train one with --positions sinusoidal"):
        export.to_ctranslate2(loaded, tmp_path / "out")


def test_a_peer_may_go_on_where_our_length_bound_stopped_us_and_nowhere_else():
    assert parts.is_equal([3, 4], [3, 4], 9) and parts.is_equal([3, 4], [3, 4, 5], 2)
    assert not parts.is_equal([3, 4], [3, 4, 5], 9) and not parts.is_equal([3, 4], [3, 5, 5], 2)


def test_ctranslate2_is_measured_without_torch_in_its_process():
    code = "import sys, decoding_speed, pairs, peers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT / "benchmarks").returncode == 0


@pytest.mark.parametrize(
    "command, message",
    [
        ("bench.py --repetitions 0", "--repetitions must be at least 1, got 0"),
        ("bench.py --minutes -1", "--minutes must be more than 0, got -1"),
        ("training.py ours --out x", "give either --steps or --minutes"),
        ("training.py ours --out x --steps 2", "--steps must be at least 5"),
        ("training.py ours --out x --steps 9 --data none", "no none/test.en; make it first"),
        ("decoding_speed.py ours --out x --batch 0", "--batch must be at least 1, got 0"),
        ("decoding_speed.py ctranslate2 --out x --model none", "no trained model in none; make it first"),
        ("decoding_growth.py ours --out x --lengths 33", "--lengths must be even and at least 24, got (33"),
        ("training_memory.py ours --out x --length 1", "--length must be from 2 to 1024, got 1"),
        ("pairs.py --rows 0", "--rows must be at least 20, got 0"),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line(command, message, tmp_path):
    script, *words = command.split()
    words = [sys.executable, str(ROOT / "benchmarks" / script), *words]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("error: ") and message in done.stderr


def test_more_threads_than_cores_are_refused():
    with pytest.raises(ValueError, match="--threads must be from 1 to the .* got 1000"):
        peers.pin(1_000)


def test_a_failed_measurement_names_its_last_line_and_its_log(tmp_path):
    with pytest.raises(ValueError, match=r"failed: ValueError: broken; all it printed is in .*log"):
        jobs.run([sys.executable, "-c", "raise ValueError('broken')"], tmp_path / "log")


def test_the_share_of_other_processes_is_what_the_cores_worked_beyond_the_child(tmp_path, monkeypatch):
    busy, own = iter([100.0, 110.0]), iter([7.0, 11.0])
    monkeypatch.setattr(jobs, "_busy_s", lambda: next(busy))
    monkeypatch.setattr(jobs, "_children_s", lambda: next(own))
    done = jobs.run([sys.executable, "-c", "pass"], tmp_path / "log")
    assert done.others == round((10 - 4) / (done.seconds * os.cpu_count()), 3)


def test_the_memory_of_worker_processes_is_counted_but_not_what_they_share(tmp_path):
    work = "import os, time; shared = bytearray(b'x') * (60 << 20)\n"
    work += (
        "if os.fork() == 0:\n    own = bytearray(b'x') * (30 << 20); time.sleep(1.5); os._exit(0)\nos.wait()"
    )
    held = jobs.run([sys.executable, "-c", work], tmp_path / "log").children_mb
    assert 28 < held < 50


def test_a_record_holds_the_memory_of_the_children_too(tmp_path, monkeypatch):
    out = tmp_path / "record.json"
    code = f"open({str(out)!r}, 'w').write('{{\"peak_mb\": 100}}')"
    monkeypatch.setattr("jobs._Watch.close", lambda self: 11.0)
    assert jobs.measured([sys.executable, "-c", code], out)["peak_mb"] == 111


def runs_of(engine, threads, *rates):
    return [{"engine": engine, "threads": threads, "tokens_per_s": rate} for rate in rates]


def test_the_best_setting_is_that_of_the_best_median():
    found = [*runs_of("ours", 1, 5, 6, 90), *runs_of("ours", 2, 7, 8, 9), *runs_of("joeynmt", 1, 1)]
    best = results.best(found, ("threads",), "tokens_per_s")
    assert [(group.engine, group.middle("tokens_per_s")) for group in best] == [("ours", 8), ("joeynmt", 1)]
    assert results.best(found, ("threads",), "tokens_per_s", lowest=True)[0].middle("tokens_per_s") == 6


def test_a_figure_stands_with_its_smallest_and_largest():
    assert results.Group("ours", runs_of("ours", 1, 1_000, 3_000, 2_500)).spread("tokens_per_s", 0) == (
        "2,500 (1,000–3,000)"
    )


def test_tables_replace_what_stands_between_their_markers_alone():
    text = "a\n<!-- one -->\nold\n<!-- /one -->\nb\n<!-- two -->\nkept\n<!-- /two -->\n"
    made = report.render(text, {"one": "new", "absent": "x"})
    assert made == text.replace("old", "new")
    assert report.render(made, {"one": "new"}) == made


def test_every_table_has_its_place_in_one_document():
    text = "".join(document.read_text() for document in report.DOCUMENTS)
    for name in report.blocks(Path("nowhere")):
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- /{name} -->") == 1


def test_the_documents_are_what_the_results_give():
    made = report.blocks(results.RESULTS)
    for document in report.DOCUMENTS:
        text = document.read_text()
        assert report.render(text, made) == text


def test_quality_takes_the_setting_that_trained_fastest_and_guesses_none(tmp_path):
    rows = [
        {**run, "tokens": 1_024, "keeps_memory": run["threads"] == 2}
        for run in [*runs_of("joeynmt", 1, 4), *runs_of("joeynmt", 2, 9)]
    ]
    peers.write_json(tmp_path / "training.json", {"runs": rows})
    options = plan.BenchConfig(results=tmp_path)
    assert parts.fastest("joeynmt", options) == plan.Variant("joeynmt", 2, True)
    with pytest.raises(
        ValueError, match=r"how ours is fastest; measure: python benchmarks/bench.py training"
    ):
        parts.fastest("ours", options)


def test_repetitions_are_rounds_over_all_settings(tmp_path, monkeypatch):
    seen = []

    def measured(command, out, environment):
        seen.append((command[2], command[command.index("--tokens") + 1]))
        return {"tokens_per_s": 1.0}

    monkeypatch.setattr(jobs, "measured", measured)
    options = plan.BenchConfig(model=tmp_path / "bench", repetitions=2)
    *_, last = parts.training(options)
    assert len(seen) == len(last["runs"]) == 2 * 2 * len(plan.TRAINING)
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    assert [run["repetition"] for run in last["runs"]] == [0] * (len(seen) // 2) + [1] * (len(seen) // 2)


def test_the_small_scale_repeats_once_unless_told_and_takes_one_setting_of_each_engine():
    small = plan.BenchConfig(small=True)
    assert (small.rounds, plan.BenchConfig(small=True, repetitions=2).rounds, plan.BenchConfig().rounds) == (
        1,
        2,
        3,
    )
    assert [variant.engine for variant in small.chosen(plan.DECODING)] == list(plan.DECODERS)


ENGINES = {"ours": 300.0, "ctranslate2": 200.0, "huggingface": 100.0, "joeynmt": 50.0}


def made_up_results(folder):
    origin = {"hardware": {"cpu": "CPU X", "simd": "avx2", "cores": 2, "memory_gb": 24}}
    origin |= {"versions": {"torch": "2.13.0"}, "date": "2030-01-02", "load_average": [0.1, 1.9]}
    common = {"others": 0.01, "peak_mb": 500, "tokens_per_s": 1_234.0, "threads": 2, "repetition": 0}
    learned = {"tokens_per_step": 1_000.0, "steps": 2_000, "keeps_memory": False}
    scored = {"bleu": 33.3, "low": 32.1, "high": 34.5, "signature": "nrefs:1", "minutes": 15.0}
    trained = {**common, **learned, "padding": 0.01, "share_of_matrix_products": 0.75}
    runs = {"training": [], "quality": [], "startup": [], "decoding": [], "growth": []}
    for engine in plan.TRAINERS:
        speed = {"engine": engine, "tokens_per_s": ENGINES[engine]}
        runs["training"] += [{**trained, **speed, "tokens": tokens} for tokens in (1_024, 4_096)]
        runs["quality"].append({**trained, **scored, "engine": engine})
    for engine in plan.DECODERS:
        for batch, beam in ((64, 1), (64, 5), (1, 1)):
            searched = {"engine": engine, "batch": batch, "beam": beam, "layout": "inter"}
            runs["decoding"].append({**common, **searched, "sentences_per_s": ENGINES[engine], "bleu": 33.1})
        runs["startup"].append({**common, "engine": engine, "seconds": 2.0})
        for batch, length in ((1, 128), (1, 512), (64, 128), (64, 512)):
            point = {"measures": "decoding", "engine": engine, "batch": batch, "length": length}
            own = {"attention_s": length**2 / 1e4} if engine == "ours" else {}
            runs["growth"].append({**common, **point, **own, "seconds": length**2 / 1e4 + length / 10})
        runs["growth"].append(
            {"measures": "memory", "engine": engine, "length": 32, "vocab_size": 8_000, "tokens": 4_096}
            | {"peak_mb": 900, "others": 0.0}
        )
    runs["startup"].append({**common, "engine": "import torch", "seconds": 1.5})
    equal = {"engine": "ctranslate2", "beam": 1, "equal": 999, "of": 1_000, "our_bleu": 33.1, "bleu": 33.2}
    for name, rows in runs.items():
        peers.write_json(folder / f"{name}.json", {**origin, "equality": [equal], "runs": rows})


def test_every_table_is_made_of_results_alone(tmp_path):
    made_up_results(tmp_path)
    made = report.blocks(tmp_path)
    assert not any("Not measured" in block for block in made.values())
    measured = [made[name] for name in made if name != "targets"]
    assert all(results.VALID in block and "CPU X" in block for block in measured)
    assert "load average 0.1 before and 1.9 after" in made["training"]
    assert "| JoeyNMT, 1,024 tokens a step | 2 threads | 50 | 500 | 1,000 | 1.0% | 75% |" in made["training"]
    assert "| JoeyNMT | 15 | 33.30 (32.10–34.50) | 2.00 |" in made["quality"]
    assert "| CTranslate2, greedy | 999 of 1,000 | 33.10 | 33.20 |" in made["equality"]
    assert "| 2 cores, batch 64, beam 5 | 300.0 | 200.0 | 100.0 |" in made["decoding"]
    assert "| `python translate.py` | 2.00 |" in made["startup"]
    assert "| batch 64, 512 tokens | 26.21 | 77.41 | 77.41 | 77.41 |" in made["growth"]
    assert "| 32 tokens, 8,000 subwords | 900 | 900 | 900 |" in made["growth"]
    assert "| this project | 300 | 300 | 300 |" in made["speed"]


def test_targets_are_ratios_of_the_best_settings_and_say_whether_they_are_met(tmp_path):
    made_up_results(tmp_path)
    rows = {row.split(" | ")[0]: row for row in targets.made(tmp_path).splitlines()}
    assert rows["| training, 1,024-token steps, over Hugging Face"].endswith("| ≥ 1.25 × | 3.00 × | yes |")
    assert rows["| training, 1,024-token steps, share of the matrix-product rate"].endswith(
        "| ≥ 75.0% | 75.0% | yes |"
    )
    assert rows["| greedy, batch 64, over CTranslate2"].endswith("| ≥ 1.00 × | 1.50 × | yes |")
    assert targets.made(tmp_path).count("| the same over Hugging Face | ≥ 4.00 × | 3.00 × | no |") == 2
    assert "| ≤ 0.70 s | 0.50 s | yes |" in targets.made(tmp_path)
    assert targets.made(tmp_path).count("| ≤ 1.05 × | 1.00 × | yes |") == 2  # the square is attention's own


def test_targets_without_results_are_named_as_not_measured(tmp_path):
    made_up_results(tmp_path)
    (tmp_path / "decoding.json").unlink()
    lines = [line for line in targets.made(tmp_path).splitlines() if "batch 64, over" in line]
    assert lines and all(line.endswith("| not measured | – |") for line in lines)


def test_a_part_that_was_not_measured_is_named_with_its_command(tmp_path):
    made_up_results(tmp_path)
    (tmp_path / "decoding.json").unlink()
    made = report.blocks(tmp_path)
    assert made["decoding"] == "Not measured yet: `make bench PART=decoding`."
    assert "| this project | 300 | not measured | not measured |" in made["speed"]
    assert "Not measured" not in made["training"]


def test_the_short_table_names_both_processors_of_its_columns(tmp_path):
    made_up_results(tmp_path)
    assert "on 2 cores of CPU X (avx2), float32" in report.speed(tmp_path)
    record = json.loads((tmp_path / "decoding.json").read_text())
    peers.write_json(
        tmp_path / "decoding.json", {**record, "hardware": {**record["hardware"], "cpu": "CPU Y"}}
    )
    assert "CPU X (avx2) in training and 2 cores of CPU Y (avx2) in decoding" in report.speed(tmp_path)


def test_results_of_an_interrupted_part_make_a_table_of_what_is_there(tmp_path):
    made_up_results(tmp_path)
    record = json.loads((tmp_path / "decoding.json").read_text())
    peers.write_json(tmp_path / "decoding.json", {**record, "runs": record["runs"][:4]})
    assert "| 2 cores, batch 64, beam 5 | 300.0 | – |" in report.blocks(tmp_path)["decoding"]


def test_every_picture_of_a_table_is_drawn_and_none_without_results(tmp_path):
    (tmp_path / "results").mkdir()
    curves.draw(tmp_path / "results", tmp_path)
    assert not list(tmp_path.glob("*.png"))
    made_up_results(tmp_path / "results")
    curves.draw(tmp_path / "results", tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == set(report.PICTURES.values())


def test_make_clean_removes_the_peers_and_keeps_the_results():
    recipe = subprocess.run(["make", "--dry-run", "clean"], cwd=ROOT, capture_output=True, text=True).stdout
    assert " .venv-bench " in recipe and "results" not in recipe


def test_published_scores_are_of_lower_cased_moses_tokens(tmp_path, capsys, monkeypatch):
    pytest.importorskip("sacremoses", reason="for the comparison with papers alone, not installed")
    import published

    for name, text in (("out", "zwei „hunde“ , und ein vogel."), ("ref", 'Zwei "Hunde", und ein Vogel .')):
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    assert published.tokenized(tmp_path / "out", "de") == ['zwei " hunde " , und ein vogel .']
    words = ["published.py", "--hypotheses", str(tmp_path / "out"), "--references", str(tmp_path / "ref")]
    monkeypatch.setattr(sys, "argv", words)
    published.main()
    assert "tokens: 100.00  nrefs:1|case:mixed|eff:no|tok:none|" in capsys.readouterr().out
