"""The part of the benchmark that shows how costs grow: decoding with the length of the output, memory of training with
the lengths of the rows and with the vocabulary."""

import jobs
from decoding_speed import exported
from peers import TINY
from plan import DECODERS, BenchConfig, Record, say, without

from strict_json import Json

LENGTHS = (32, 64, 128, 256, 512)
"""Output tokens."""
ROW_LENGTHS, VOCABULARIES = (16, 32, 64, 128, 256, 512), (2_000, 4_000, 8_000, 16_000, 32_000)
"""The rows of one are of the vocabulary of all other parts, those of the other of USUAL_LENGTH tokens."""
USUAL_LENGTH = 32
LEARNERS = ("ours", "huggingface")


def growth(options: BenchConfig) -> Record:
    """Seconds by output tokens, with one thread; peak memory by row length and by vocabulary, with two."""
    runs: list[Json] = []
    model = exported("endless", options.folder)
    lengths = LENGTHS[:2] if options.small else LENGTHS
    for number in range(options.rounds):
        for batch in (4,) if options.small else (1, 64):
            for engine in DECODERS:
                words = ["--model", model, "--data", options.beside("pairs"), "--batch", batch]
                words += ["--lengths", *lengths, *options.tiny()]
                out = options.beside("work") / f"growth-{engine}.json"
                record = jobs.measured(jobs.script("decoding_growth.py", engine, *words), out)
                points = record["points"]
                assert isinstance(points, list)
                common: dict[str, Json] = {
                    **without(record, "points"),
                    "measures": "decoding",
                    "repetition": number,
                }
                runs += [common | point for point in points if isinstance(point, dict)]
                say(f"growth {engine} batch {batch}: {points}")
                yield {"runs": runs}
    for length, vocab_size in memory_points(options):
        for learner in LEARNERS:
            words = ["--length", length, "--vocab-size", vocab_size, *options.tiny()]
            words += ["--tokens", 512] if options.small else []
            out = options.beside("work") / f"memory-{learner}.json"
            record = jobs.measured(jobs.script("training_memory.py", learner, *words), out)
            runs.append(record | {"measures": "memory"})
            say(f"memory {learner} length {length} vocabulary {vocab_size}: {record['peak_mb']} MB")
            yield {"runs": runs}


def memory_points(options: BenchConfig) -> list[tuple[int, int]]:
    """Row length and vocabulary of each measurement, each pair once."""
    if options.small:
        return [(USUAL_LENGTH, TINY.vocab_size)]
    points = [(length, options.architecture.vocab_size) for length in ROW_LENGTHS]
    return list(dict.fromkeys([*points, *((USUAL_LENGTH, size) for size in VOCABULARIES)]))
