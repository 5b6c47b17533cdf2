"""What a command needs from the machine: device, precision, threads, whole files, errors in one line."""

import ctypes
import errno
import hashlib
import json
import os
import platform
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from strict_json import Json

LOCK = ".lock"
# Open files of the locks that this process holds.
HELD: set[int] = set()
MOST_CHARACTERS = 1_000
"""Of a message: a damaged file may be quoted in it."""
MOST_THREADS = 1_024
# What glibc is told: the name of a setting in the environment, its number for mallopt, and its value.
KEEP_MEMORY = (
    ("MALLOC_ARENA_MAX", -8, 1),  # what one thread has freed serves the others too
    ("MALLOC_MMAP_MAX_", -4, 0),  # no block is a mapping of its own
    ("MALLOC_TRIM_THRESHOLD_", -1, -1),  # nothing goes back
    ("MALLOC_TOP_PAD_", -2, 2**26),
)
INCOMPLETE = ".incomplete"
"""How the name of a file or folder ends that is still being written; its first character is a dot."""


def device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` takes an accelerator when there is one.

    Raises:
        ValueError: the device is unknown or not on this machine.
    """
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        return accelerator or torch.device("cpu")
    there = ["cpu", *([accelerator.type] if accelerator else [])]
    try:
        wanted = torch.device(name)
        torch.empty(1, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError):
        wanted = None
    if wanted is None or wanted.type not in there:
        raise ValueError(f"--device {name} is not on this machine; there is: {', '.join(there)}")
    return wanted


def start(threads: int | None = None) -> int:
    """Prepare this process for work on the CPU; returns how many workers (threads) should share it.

    Each worker computes alone: torch's own threads share every single operation, and whenever another process
    takes a core they wait for one another: training then ran at 310 target tokens/s in place of 2,270 (docs/log.md).

    Args:
        threads: workers wanted; by default as many as there are cores, shared by the ranks on this machine.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        allowed = "at least 1" if threads < 1 else f"at most {MOST_THREADS:,}"
        raise ValueError(f"--threads must be {allowed}, got {threads}")
    torch.set_num_threads(1)
    keep_memory()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return threads or max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def keep_memory() -> None:
    """Have glibc keep the memory that is freed, for a process that is about to want as much again in its next step.

    Else it gives large tensors back to the system, which has to clear and map their pages anew in every step.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        for _, setting, value in KEEP_MEMORY:
            mallopt(setting, value)


def autocast_dtype(where: torch.device, wanted: bool = True) -> torch.dtype:
    """bfloat16 where the hardware computes in it, else float32 (older GPUs and most CPUs emulate it, far slower)."""
    return (
        torch.bfloat16
        if wanted and where.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        else torch.float32
    )


def write_atomic(path: Path, data: bytes | str | Iterable[bytes]) -> None:
    """Write a file whole or not at all: beside it, flushed to disk, then renamed."""
    if isinstance(data, str):
        data = data.encode()
    pieces = [data] if isinstance(data, bytes) else data
    path = path.resolve()  # through a link to the file that it names
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no ordinary file and would be replaced; name another")
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=INCOMPLETE, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the file that the user knows, not the temporary one
        raise
    sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(flag: str, path: Path | None) -> None:
    """Before the work rather than after it: raise a ValueError if a file cannot be written there.

    A device or pipe is refused too: the file would replace it.
    """
    if path is None:
        return
    folder = next(parent for parent in path.resolve().parents if parent.exists())
    if (path.exists() and not path.is_file()) or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{flag} {path} cannot be written; name a file in a folder of yours")


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to disk, so that a rename survives a power cut."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def code_digest(*files: str | Path) -> str:
    """Digest of source files: part of the name of what they make, so that a new version makes it anew."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def check_size(file: Path, most_bytes: int) -> None:
    """Raise a ValueError for a file that is too large for what it should hold."""
    size = file.stat().st_size
    if size > most_bytes:
        raise ValueError(f"{file} has {size:,} bytes, but at most {most_bytes:,} make sense; copy it anew")


def read_json(file: Path, most_bytes: int) -> Json:
    """Parse a JSON file whose size is known to be small.

    Raises:
        ValueError: it is larger, which is seen before it is read, or it is no JSON.
    """
    check_size(file, most_bytes)
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; the kernel lets go when the process ends, however it ends.

    The file that carries the lock stays in the folder: if it were removed, two processes could hold two of them.

    Raises:
        ValueError: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "r+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read(200) or "another process"
            advice = "wait until that has ended, or choose another folder"
            raise ValueError(f"{folder} is in use by {holder}; {advice}") from None
        HELD.add(file.fileno())
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}")
        file.flush()
        try:
            yield
        finally:
            HELD.remove(file.fileno())


def _let_go() -> None:
    """In a forked process, which may live a little longer than the one that holds the locks."""
    for handle in HELD:
        os.close(handle)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def run_command(main: Callable[[], None], several_ranks: bool = False) -> None:
    """Run a command; the user's mistakes become one line on stderr and exit code 2.

    NMT_DEBUG=1 in the environment shows the traceback instead.

    Args:
        several_ranks: whether it knows what to do as one of several processes that torchrun has started.
    """
    # Pillow's remarks on the inside of a picture: what matters is said by render.py, in one line.
    warnings.filterwarnings("ignore", module="PIL")
    threading.excepthook = _report_in_thread
    for name in ("stdin", "stdout", "stderr"):  # closed ones are None
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    is_one_of_several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    try:
        if is_one_of_several and not several_ranks:
            raise ValueError(
                f"several ranks are not supported (WORLD_SIZE={os.environ['WORLD_SIZE']}); run one process"
            )
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (| head): keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        is_a_bug = isinstance(error, RuntimeError) and not _lacks_memory(error)
        if is_a_bug or os.environ.get("NMT_DEBUG"):
            raise
        who = f"rank {os.environ.get('RANK')}: " if is_one_of_several and several_ranks else ""
        print(f"{who}error: {_message(error)}", file=sys.stderr)
        sys.exit(2)


def _report_in_thread(args: threading.ExceptHookArgs) -> None:
    """Without the traceback of a full disk from TensorBoard's thread: the main one meets the same error."""
    if not issubclass(args.exc_type, OSError):
        threading.__excepthook__(args)


def _lacks_memory(error: Exception) -> bool:
    """Whether an allocation failed: in Python or numpy, on an accelerator, or in torch's allocator for CPUs."""
    kinds = (MemoryError, torch.OutOfMemoryError)
    return isinstance(error, kinds) or "DefaultCPUAllocator: can't allocate memory" in str(error)


def _message(error: Exception) -> str:
    if _lacks_memory(error):
        return f"there is not enough memory; give less work at a time or a smaller model ({said(error)})"
    if isinstance(error, OSError) and error.errno is not None:
        what = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        return f"{what}; free some space and run again" if error.errno == errno.ENOSPC else what
    return said(error, MOST_CHARACTERS)


def said(error: Exception, most: int = 300) -> str:
    """What an exception says, on one line and cut after so many characters."""
    words = " ".join(str(error).split())
    return words if len(words) <= most else f"{words[:most]} …"
