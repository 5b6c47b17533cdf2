"""Work shared out over forked processes."""

import os
import signal
import time
from itertools import islice

import pytest

import parallel
from parallel import fork_map

needs_fork = pytest.mark.skipif(not parallel.CAN_FORK, reason="processes are forked on Linux alone")


def each(function):
    """The same for all items that a worker takes."""
    return lambda items: [function(item) for item in items]


def square(number):
    time.sleep(0.01)  # long enough for the others to take some
    return number * number


@pytest.mark.parametrize("num_workers", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_items(num_workers):
    assert fork_map(each(square), range(10), num_workers) == [square(i) for i in range(10)]


def test_a_worker_takes_items_when_it_needs_them_and_may_do_several_at_once():
    def in_threes(items):
        results = []
        while group := list(islice(items, 3)):
            time.sleep(0.02)
            results += [(item, len(group)) for item in group]
        return results

    assert [item for item, _ in fork_map(in_threes, range(10), 3)] == list(range(10))
    assert fork_map(in_threes, range(4), 1) == [(0, 3), (1, 3), (2, 3), (3, 1)]


def test_nothing_to_do_is_done():
    assert fork_map(each(square), [], 2) == []


def test_threads_do_the_work_where_no_process_can_be_forked(monkeypatch):
    monkeypatch.setattr(parallel, "CAN_FORK", False)
    assert fork_map(each(lambda i: (square(i), os.getpid())), range(4), 2) == [
        (i * i, os.getpid()) for i in range(4)
    ]


@needs_fork
def test_the_work_is_shared():
    assert len(set(fork_map(each(lambda i: time.sleep(0.05) or os.getpid()), range(6), 2))) == 2


@needs_fork
@pytest.mark.parametrize("who", ["parent", "child"])
def test_an_error_reaches_the_caller_from_whichever_process(who):
    parent = os.getpid()

    def fails(number):
        time.sleep(0.02)
        if (os.getpid() == parent) == (who == "parent"):
            raise ValueError(f"{who} failed")
        return number

    with pytest.raises(ValueError, match=f"{who} failed"):
        fork_map(each(fails), range(6), 2)


@needs_fork
def test_an_error_that_cannot_be_sent_is_told_all_the_same():
    parent = os.getpid()

    def fails(number):
        time.sleep(0.02)
        if os.getpid() != parent:
            raise ValueError("no number", lambda: number)
        return number

    with pytest.raises(RuntimeError, match="ValueError.*no number"):
        fork_map(each(fails), range(6), 2)


@needs_fork
def test_a_killed_worker_is_told_and_does_not_hang():
    parent = os.getpid()

    def dies(number):
        time.sleep(0.02)
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(ChildProcessError, match="worker process was killed.*--threads 1"):
        fork_map(each(dies), range(6), 2)


@needs_fork
def test_a_worker_leaves_sigterm_to_its_parent():
    parent = os.getpid()

    def asked_to_stop(number):
        time.sleep(0.02)
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
        return number

    assert fork_map(each(asked_to_stop), range(6), 2) == list(range(6))


@needs_fork
def test_workers_do_not_outlive_the_call(tmp_path):
    parent = os.getpid()

    def slow_in_the_child(number):
        if os.getpid() != parent:
            (tmp_path / "child").write_text(f"{os.getpid()}\n")
            time.sleep(60)
        while not (tmp_path / "child").exists() or "\n" not in (tmp_path / "child").read_text():
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fork_map(each(slow_in_the_child), range(6), 2)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "child").read_text()), 0)
