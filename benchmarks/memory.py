"""Memory of reading, encoding and iterating a corpus, by number of rows: it should stay flat.

    python benchmarks/memory.py 10_000 100_000 1_000_000
    python benchmarks/memory.py --train 10_000 100_000 1_000_000 10_000_000

--train: of training, read before and streamed: the peak until step 20, and the time until the first batch is there, as
seconds of one CPU, which other work on the machine changes least.
Each size runs in a process of its own, on made-up sentences and with an empty cache. RssAnon is what the
process holds; RSS also counts pages of the memory-mapped cache, which the system takes back when it must.
"""

import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))


class AnonymousMemory:
    """Samples the anonymous memory of this process until it is closed."""

    def __init__(self) -> None:
        self.peak = self.now()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    @staticmethod
    def now() -> float:
        """Anonymous resident memory, MB."""
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
        raise ValueError("the kernel does not report RssAnon")

    def restart(self) -> float:
        """Peak since the last restart, MB."""
        peak, self.peak = max(self.peak, self.now()), self.now()
        return peak

    def _sample(self) -> None:
        while not self._closed.wait(0.02):
            self.peak = max(self.peak, self.now())


def write_rows(path: Path, num_rows: int) -> None:
    """Made-up sentence pairs of 3 to 25 words, all different."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(num_rows):
            length = draw.randint(3, 25)
            src, tgt = (" ".join(draw.choices(words, k=length)) for _ in range(2))
            file.write(json.dumps({"en": f"{number} {src}", "de": f"{number} {tgt}"}) + "\n")


def measure(path: Path, num_rows: int) -> None:
    """One size, in this process: prints a row of the table."""
    import corpus
    from config import DataConfig
    from dataset import BatchSampler, encode_split
    from tokenizer import Tokenizer

    memory, start = AnonymousMemory(), time.perf_counter()
    peaks = [memory.restart()]
    splits = corpus.read_splits(DataConfig(dataset=str(path), src="en", tgt="de"))
    peaks.append(memory.restart())
    read_s = time.perf_counter() - start
    # The same rows at every size: this is about the corpus, not about the tokenizer's training.
    tokenizer = Tokenizer.train(corpus.texts(splits["train"].select(range(5_000))), 4_000)
    memory.restart()
    start = time.perf_counter()
    rows = encode_split(splits["train"], tokenizer, 256, splits.report["train"])
    peaks.append(memory.restart())
    encode_s = time.perf_counter() - start
    start = time.perf_counter()
    sampler = BatchSampler(rows, 4_096, seed=0)
    num_rows_given = sum(batch.src.size(0) for batch in sampler.epoch(0))
    peaks.append(memory.restart())
    epoch_s = time.perf_counter() - start
    assert num_rows_given == sampler.num_pairs
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells = [f"{num_rows:,}", *(f"{peak:,.0f}" for peak in peaks), f"{rss:,.0f}"]
    print("| " + " | ".join([*cells, *(f"{s:.1f}" for s in (read_s, encode_s, epoch_s))]) + " |", flush=True)


class Enough(Exception):
    """Ends a run after the steps that are measured."""


def measure_training(path: Path, num_rows: int, is_streaming: bool) -> None:
    """Training through its command, in this process, until step 20: prints a row of the table."""
    import train
    from dataset import Batch
    from learner import Learner

    memory, first_s = AnonymousMemory(), 0.0
    real = Learner.step

    def step(learner: Learner, batches: list[Batch], lr: float, number: int) -> object:
        nonlocal first_s
        first_s = first_s or time.process_time()
        if number > 20:
            raise Enough
        return real(learner, batches, lr, number)

    Learner.step = step
    size = "--d-model 64 --num-heads 4 --num-layers 1 --num-decoder-layers 1 --d-ff 128 --vocab-size 4000"
    how = "--batch-tokens 4096 --accumulate 2 --max-steps 1000 --warmup-steps 500 --validate-every 500 --threads 2"
    cache = Path(os.environ["HF_HOME"])
    given = ["--dataset", str(path), "--src", "en", "--tgt", "de", "--out", str(cache / "run")]
    with contextlib.suppress(Enough), contextlib.redirect_stdout(sys.stderr):
        train.main([*given, *size.split(), *how.split(), *(["--streaming"] if is_streaming else [])])
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    way = "streamed" if is_streaming else "read before"
    disk = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file()) / 1e6
    cells = [
        f"{num_rows:,}",
        way,
        f"{memory.restart():,.0f}",
        f"{rss:,.0f}",
        f"{first_s:,.1f}",
        f"{disk:,.0f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


TABLES = {
    "--measure": (
        "| rows | anonymous MB: start | read | encode | epoch | peak RSS MB | read s | encode s | epoch s |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ),
    "--train": (
        "| rows | corpus | peak anonymous MB | peak RSS MB | first batch after CPU s | cache on disk MB |",
        "|---:|---|---:|---:|---:|---:|",
    ),
}


def main() -> None:
    """Run every size in a process of its own."""
    if len(sys.argv) == 4 and sys.argv[1] == "--measure":
        return measure(Path(sys.argv[2]), int(sys.argv[3]))
    if len(sys.argv) == 5 and sys.argv[1] == "--measure":
        return measure_training(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "streamed")
    table = "--train" if "--train" in sys.argv else "--measure"
    print(*TABLES[table], sep="\n", flush=True)
    sizes = [int(arg) for arg in sys.argv[1:] if not arg.startswith("--")] or [10_000, 100_000, 1_000_000]
    for num_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            write_rows(path, num_rows)
            for way in (["read"], ["streamed"]) if table == "--train" else ([],):
                with tempfile.TemporaryDirectory() as cache:
                    env = {**os.environ, "HF_HOME": cache, "OMP_NUM_THREADS": "1"}
                    command = [sys.executable, __file__, "--measure", str(path), str(num_rows), *way]
                    subprocess.run(command, env={**env, "TOKENIZERS_PARALLELISM": "false"}, check=True)


if __name__ == "__main__":
    main()
