"""Runs one measurement in a process of its own, and says how much of the machine others had meanwhile."""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import peers

from strict_json import Json

SCRIPTS = Path(__file__).resolve().parent


class Done(NamedTuple):
    """A process that has ended well."""

    seconds: float
    others: float
    """Share of all cores that other processes took while it ran, 0 to 1."""
    children_mb: float
    """What its worker processes held together at most, pages that they share with it or with each other left out."""


class _Watch:
    """Looks at the memory of a process's children twice a second; only looking at what is there costs time."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak_mb = pid, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def close(self) -> float:
        """Stop; returns the peak, MB."""
        self._over.set()
        self._thread.join()
        return self.peak_mb

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self.peak_mb = max(self.peak_mb, sum(map(_private_mb, _descendants(self.pid))))


def _descendants(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, _read(file).split()):
            yield child
            yield from _descendants(child)


def _private_mb(pid: int) -> float:
    lines = _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # the process has ended
        return ""


def script(name: str, *words: object) -> list[str]:
    """The command of a script of this folder, or of the project where there is none."""
    path = SCRIPTS / name if (SCRIPTS / name).is_file() else peers.ROOT / name
    return [sys.executable, str(path), *map(str, words)]


def run(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run to the end, with what it prints in a file.

    Raises:
        ValueError: it failed; names the file and its last line.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    busy, own, started = _busy_s(), _children_s(), time.perf_counter()
    # The thread counts are the benchmark's to set, not the caller's environment's.
    inherited = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with log.open("w", encoding="utf-8") as file:
        env = {**inherited, **(environment or {})}
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=env)
        watch = _Watch(process.pid)
        try:
            failed = process.wait()
        except BaseException:  # Ctrl-C ends it too
            process.kill()
            raise
    seconds = time.perf_counter() - started
    children_mb = watch.close()
    if failed:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
        raise ValueError(f"{' '.join(command[1:3])} failed: {last.strip()[:300]}; all it printed is in {log}")
    others = (_busy_s() - busy) - (_children_s() - own)
    return Done(seconds, round(max(0.0, others) / (seconds * (os.cpu_count() or 1)), 3), children_mb)


def measured(
    command: Sequence[str], out: Path, environment: Mapping[str, str] | None = None
) -> dict[str, Json]:
    """Run a script that writes a record to `--out`, and return the record; its memory with that of its children."""
    out.unlink(missing_ok=True)
    done = run([*command, "--out", str(out)], out.with_suffix(".log"), environment)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    if "peak_mb" in record:
        record["peak_mb"] = round(record["peak_mb"] + done.children_mb)
    return {**record, "others": done.others}


def _busy_s() -> float:
    """Seconds that all cores together have worked since the machine started, the hypervisor's theft included."""
    file = Path("/proc/stat")
    if not file.is_file():
        raise ValueError("the benchmark reads /proc/stat and runs on Linux alone")
    user, nice, system, _, _, irq, softirq, steal = map(int, file.read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _children_s() -> float:
    """Processor seconds of this process and of those it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
