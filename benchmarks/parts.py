"""The parts of the benchmark but for growth.py's: training, decoding, start-up, quality. Each yields its results again
after every run. Repetitions are rounds over all settings, so that a slow minute of the machine hits all alike."""

import sys

import jobs
import results
from decoding_speed import exported
from pairs import read_ids, read_lines
from peers import SRC, longest
from plan import DECODERS, DECODING, TRAINERS, TRAINING, BenchConfig, Record, Variant, say, without

from strict_json import Json

LEAST_EQUAL = 0.99
"""Share of greedy translations that must be equal before anything is timed: rounding may turn a near tie."""
TRAINING_SIZES = ((1_024, 40), (4_096, 15))
"""Target tokens a step, and steps."""
DECODING_SIZES = ((64, 1, 1_000), (64, 5, 1_000), (1, 1, 200), (1, 5, 200))
"""Batch, beam and test sentences."""


def training(options: BenchConfig) -> Record:
    """Target tokens a second, memory and the share of the matrix-product rate."""
    runs: list[Json] = []
    for number in range(options.rounds):
        for tokens, steps in ((1_024, 5),) if options.small else TRAINING_SIZES:
            for variant in options.chosen(TRAINING):
                words = ["--tokens", tokens, "--steps", steps, "--flops", *_training_words(options, variant)]
                record = jobs.measured(
                    jobs.script("training.py", variant.engine, *words),
                    options.beside("work") / f"training-{variant.engine}.json",
                    variant.environment,
                )
                record |= {"repetition": number, "keeps_memory": variant.keeps_memory}
                runs.append(without(record, "versions"))
                what = f"training {tokens} {variant.engine} {variant.threads}"
                say(f"{what}: {record['tokens_per_s']} tokens/s")
                yield {"runs": runs}


def _training_words(options: BenchConfig, variant: Variant) -> list[object]:
    words: list[object] = ["--corpus", options.learned, "--data", options.beside("pairs")]
    return [*words, "--threads", variant.threads, *options.tiny()]


def decoding(options: BenchConfig) -> Record:
    """Sentences a second, after all engines have been seen to say the same."""
    equality = identity(options)
    runs: list[Json] = []
    for number in range(options.rounds):
        for batch, beam, sentences in ((16, 5, 40),) if options.small else DECODING_SIZES:
            for variant in options.chosen(DECODING):
                if variant.shortlist and beam > 1:  # it is an aim of greedy search alone
                    continue
                record = _decoded(options, variant, batch, beam, "--sentences", sentences)
                runs.append(record | {"repetition": number})
                what = f"decoding batch {batch} beam {beam} {variant.engine} {variant.threads}"
                if variant.keeps_memory:
                    what += " memory kept"
                say(f"{what} {variant.layout}: {record['sentences_per_s']} sentences/s")
                yield {"equality": equality, "runs": runs}


def _decoded(options: BenchConfig, variant: Variant, batch: int, beam: int, *more: object) -> dict[str, Json]:
    words: list[object] = ["--model", options.folder, "--data", options.beside("pairs"), "--batch", batch]
    words += ["--beam", beam, "--threads", variant.threads, "--layout", variant.layout, *more]
    words += ["--shortlist", variant.shortlist]
    out = options.beside("work") / f"decoding-{variant.engine}.json"
    record = jobs.measured(jobs.script("decoding_speed.py", variant.engine, *words), out, variant.environment)
    return record | {"keeps_memory": variant.keeps_memory}


def identity(options: BenchConfig) -> list[Json]:
    """How many translations of each peer are ours, token by token.

    Raises:
        ValueError: greedy search differs in more than a few near ties, so that the models are not the same.
    """
    bounds = [longest(len(ids) + 1) for ids in read_ids(options.beside("pairs") / f"test.{SRC}")]
    found: list[Json] = []
    for beam in (1,) if options.small else (1, 5):
        ours, *others = (_decoded(options, Variant(engine, 1), 64, beam, "--ids") for engine in DECODERS)
        for theirs in others:
            equal = sum(map(is_equal, _ids(ours), _ids(theirs), bounds))
            row: dict[str, Json] = {"engine": theirs["engine"], "beam": beam, "equal": equal}
            found.append(row | {"of": len(bounds), "our_bleu": ours["bleu"], "bleu": theirs["bleu"]})
            say(f"identity {theirs['engine']} beam {beam}: {equal} of {len(bounds)}")
            if beam == 1 and equal < LEAST_EQUAL * len(bounds):
                what = f"{theirs['engine']} says what we say in {equal} of {len(bounds)} sentences only"
                raise ValueError(f"{what}; nothing is timed, as it is not the same model")
    return found


def _ids(record: dict[str, Json]) -> list[list[int]]:
    rows = record["ids"]
    assert isinstance(rows, list)
    return [[i for i in row if isinstance(i, int)] for row in rows if isinstance(row, list)]


def is_equal(ours: list[int], theirs: list[int], bound: int) -> bool:
    """Whether two engines gave the same tokens; at our bound, a peer whose own is larger may go on."""
    return theirs == ours or (len(ours) == bound and theirs[:bound] == ours)


def startup(options: BenchConfig) -> Record:
    """Seconds from nothing to the first translated sentence, beside importing torch and nothing else."""
    sentence = read_lines(options.beside("pairs") / "test.txt")[0]
    commands = {
        Variant("import torch", 1): [sys.executable, "-c", "import torch"],
        Variant("ours", 2): jobs.script("translate.py", "--model", options.folder, sentence),
    }
    for engine in DECODERS[1:]:
        folder = exported(engine, options.folder)
        for threads in (1, 2):
            words = (engine, threads, folder, sentence)
            commands[Variant(engine, threads)] = jobs.script("first_sentence.py", *words)
    log, runs = options.beside("work") / "startup.log", list[Json]()
    for command in commands.values() if not options.small else ():  # files are read into memory
        jobs.run(command, log)
    for number in range(options.rounds if options.small else 3 * options.rounds):  # seconds each
        for variant in options.chosen(tuple(commands)):
            done = jobs.run(commands[variant], log)
            record: dict[str, Json] = {"engine": variant.engine, "threads": variant.threads}
            runs.append(
                record | {"seconds": round(done.seconds, 3), "others": done.others, "repetition": number}
            )
            say(f"start-up {variant.engine} {variant.threads}: {done.seconds:.2f} s")
            yield {"runs": runs}


def quality(options: BenchConfig) -> Record:
    """BLEU on the test split after the same time, each engine with the variant that trained fastest."""
    minutes = 0.05 if options.small else options.minutes
    runs: list[Json] = []
    for engine in TRAINERS:
        variant = fastest(engine, options)
        say(f"quality {engine}: {minutes:g} minutes")
        words = ["--tokens", 1_024, "--minutes", minutes, *_training_words(options, variant)]
        out = options.beside("work") / f"quality-{engine}.json"
        record = jobs.measured(jobs.script("training.py", engine, *words), out, variant.environment)
        runs.append(without(record, "versions", "peak_mb") | {"keeps_memory": variant.keeps_memory})
        say(f"quality {engine}: BLEU {record['bleu']}")
        yield {"runs": runs}


def fastest(engine: str, options: BenchConfig) -> Variant:
    """The variant with the highest median in the results of the part training.

    Raises:
        ValueError: there are none, and none is guessed.
    """
    file = options.target / "training.json"
    at = [r for r in results.runs(file) if r["engine"] == engine and r["tokens"] == 1_024]
    for group in results.best(at, ("threads", "keeps_memory"), "tokens_per_s"):
        return Variant(engine, int(group.runs[0]["threads"]), bool(group.runs[0]["keeps_memory"]))
    raise ValueError(
        f"{file} does not say how {engine} is fastest; measure: python benchmarks/bench.py training"
    )
