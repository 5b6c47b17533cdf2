"""Commands: one line for a mistake, whole files, quiet pipes."""

import errno
import os
import platform
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import runtime

ROOT = Path(__file__).parent.parent


def test_a_users_mistake_is_one_line_and_exit_code_2(capsys):
    def main():
        raise ValueError("--beam must be\n at least 1, got 0")

    with pytest.raises(SystemExit) as end:
        runtime.run_command(main)
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: --beam must be at least 1, got 0\n"


def test_a_message_that_quotes_a_damaged_file_is_cut(capsys):
    def main():
        raise ValueError("strange: " + "x" * 5_000)

    with pytest.raises(SystemExit):
        runtime.run_command(main)
    assert len(capsys.readouterr().err) < 1_100


def test_a_missing_file_names_it(capsys, tmp_path):
    with pytest.raises(SystemExit):
        runtime.run_command(lambda: (tmp_path / "absent").read_text())
    assert capsys.readouterr().err == f"error: No such file or directory: {tmp_path / 'absent'}\n"


def test_a_full_disk_says_so(capsys):
    def main():
        raise OSError(errno.ENOSPC, "No space left on device", "out.txt")

    with pytest.raises(SystemExit) as end:
        runtime.run_command(main)
    assert end.value.code == 2
    assert "No space left on device: out.txt; free some space" in capsys.readouterr().err


def test_warnings_from_inside_pillow_are_not_shown(recwarn):
    def main():
        warnings.warn_explicit("Truncated", UserWarning, "t.py", 1, module="PIL.TiffImagePlugin")
        warnings.warn_explicit("ours", UserWarning, "render.py", 1, module="render")

    runtime.run_command(main)
    assert [str(warning.message) for warning in recwarn] == ["ours"]


def test_our_own_bugs_keep_their_traceback():
    with pytest.raises(KeyError):
        runtime.run_command(lambda: {}["bug"])


def test_several_ranks_are_refused(monkeypatch, capsys):  # fault 20
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit) as end:
        runtime.run_command(lambda: pytest.fail("ran"))
    assert end.value.code == 2 and "several ranks" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error():
    code = "import runtime; runtime.run_command(lambda: [print(i) for i in range(10**5)])"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -c '{code}' | head -1"],
        capture_output=True,
        text=True,
        cwd=Path(runtime.__file__).parent,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_ctrl_c_exits_with_its_own_code():
    with pytest.raises(SystemExit) as end:
        runtime.run_command(lambda: signal.raise_signal(signal.SIGINT))
    assert end.value.code == 130


def test_a_file_is_written_whole(tmp_path):
    runtime.write_atomic(tmp_path / "new" / "a.txt", "é")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"\xc3\xa9"
    runtime.write_atomic(tmp_path / "new" / "a.txt", b"second")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"second"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        runtime.write_atomic(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is no ordinary file"):
        runtime.write_atomic(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_leads_to_the_file_that_is_written(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    runtime.write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_a_file_keeps_its_mode(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o600)
    runtime.write_atomic(tmp_path / "file", "new")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_a_folder_in_use_is_refused_in_one_line_that_names_it(tmp_path):
    with (
        runtime.locked(tmp_path / "run"),
        pytest.raises(
            ValueError, match=rf"run is in use by process {os.getpid()} on .*; wait until .*another folder"
        ),
        runtime.locked(tmp_path / "run"),
    ):
        pass
    with runtime.locked(tmp_path / "run"):
        pass


def test_a_dead_process_holds_no_lock(tmp_path):
    child = os.fork()
    if not child:
        with runtime.locked(tmp_path):
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    with runtime.locked(tmp_path):
        assert (tmp_path / runtime.LOCK).read_text().startswith(f"process {os.getpid()} on ")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / runtime.LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError), runtime.locked(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.parametrize("name", ["warp", "meta"])
def test_an_unknown_device_lists_what_there_is(name):
    with pytest.raises(ValueError, match=f"--device {name} is not on this machine; there is: cpu"):
        runtime.device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_an_absent_device_is_refused():
    with pytest.raises(ValueError, match="--device cuda is not on this machine"):
        runtime.device("cuda")


def test_mixed_precision_is_off_on_a_cpu():
    assert runtime.autocast_dtype(torch.device("cpu")) is torch.float32


def test_mixed_precision_is_off_on_a_gpu_that_emulates_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert runtime.autocast_dtype(torch.device("cuda")) is torch.float32


PAGES = """
import resource, torch, runtime
{before}
def is_mapped_anew():
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(2**24)  # 64 MB: 16,384 pages, or 32 huge ones
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start > 16
rounds = [is_mapped_anew() for _ in range(30)]
print(sum(rounds[20:]))  # in the first few, small objects that outlive a tensor may lie in the memory it left
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_memory_that_is_kept_is_not_mapped_anew():
    times = {}
    for before in ("", "runtime.keep_memory()"):
        command = [sys.executable, "-c", PAGES.format(before=before)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        times[before] = int(done.stdout)
    assert times[""] == 10
    assert times["runtime.keep_memory()"] <= 1


@pytest.mark.parametrize(("threads", "allowed"), [(0, "at least 1"), (10**8, "at most 1,024")])
def test_an_impossible_number_of_threads_is_refused(threads, allowed):
    with pytest.raises(ValueError, match=f"--threads must be {allowed}, got {threads}"):
        runtime.start(threads)


@pytest.mark.parametrize("allocate", [torch.empty, np.empty])
def test_an_allocation_that_fails_is_one_line_and_exit_code_2(allocate, capsys):
    with pytest.raises(SystemExit) as end:
        runtime.run_command(lambda: allocate(10**16))
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: there is not enough memory; give less work at a time or a smaller model (")
    assert said.count("\n") == 1


def test_another_error_of_the_program_keeps_its_traceback():
    def main():
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        runtime.run_command(main)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX alone")
def test_a_forked_process_that_lives_longer_does_not_hold_the_lock(tmp_path):
    """Workers that validate live until their batch ends, also when the process that holds the folder is killed."""
    script = (
        "import os, sys, time, runtime, pathlib\n"
        "with runtime.locked(pathlib.Path(sys.argv[1])):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(3)\n"
        "        os._exit(0)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    root = Path(runtime.__file__).parent
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=False)
    with runtime.locked(tmp_path):
        pass


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_an_empty_one(monkeypatch, name):
    monkeypatch.setattr(sys, name, None)
    runtime.run_command(lambda: print("said", file=sys.stderr) or (sys.stdin.isatty() and None))
    assert getattr(sys, name).name == os.devnull
