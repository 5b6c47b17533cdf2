"""Work on a CPU shared out over processes that are forked for one call."""

import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

# Elsewhere a forked process may not use what its parent has loaded.
CAN_FORK = sys.platform == "linux"


def fork_map(
    function: Callable[[Iterator[Item]], Sequence[Result]], items: Sequence[Item], num_workers: int
) -> list[Result]:
    """The results of all items, in order; whoever is free takes the next item.

    Threads would wait for Python's lock between any two operations. Forked processes wait for nothing, and share
    the model's memory. Where they are not to be had, threads do the work.

    Args:
        function: each worker calls it once; it takes items as it needs them, until there are no more, and returns
            their results in the same order. They can be pickled; what it changes in memory is lost.
        num_workers: this process included.
    Raises:
        ChildProcessError: a worker was killed.
        Whatever the function raises.
    """
    num_workers = min(num_workers, len(items))
    if num_workers < 2:
        return list(function(iter(items)))
    work = Work(function, items)
    results: dict[int, Result] = {}
    if CAN_FORK:
        _fork(work, num_workers, results)
    else:
        with ThreadPoolExecutor(num_workers) as pool:
            for part in pool.map(lambda _: work.done(), range(num_workers)):
                results |= part
    return [results[i] for i in range(len(items))]


def _fork(work: "Work[Item, Result]", num_workers: int, results: dict[int, Result]) -> None:
    context = multiprocessing.get_context("fork")
    workers = []
    try:
        for _ in range(num_workers - 1):
            receiver, sender = context.Pipe(duplex=False)
            worker = context.Process(target=work.serve, args=(sender,), daemon=True)
            worker.start()
            sender.close()
            workers.append((worker, receiver))
        results |= work.done()
        for _, receiver in workers:
            results |= _received(receiver)
    finally:
        for worker, receiver in workers:
            receiver.close()
            worker.kill()
            worker.join()


class Work(Generic[Item, Result]):
    """Items that several workers take one after the other."""

    def __init__(self, function: Callable[[Iterator[Item]], Sequence[Result]], items: Sequence[Item]) -> None:
        self.function, self.items = function, items
        self.num_taken = multiprocessing.Value("q", 0)
        self.parent = os.getpid()

    def done(self) -> dict[int, Result]:
        """Results of the items that were free, by number, when there are no more."""
        numbers: list[int] = []
        results = self.function(self._free(numbers))
        return dict(zip(numbers, results, strict=True))

    def _free(self, numbers: list[int]) -> Iterator[Item]:
        """Items that nobody has taken, noting their numbers."""
        while self.parent in (os.getpid(), os.getppid()):  # else nobody waits for them
            with self.num_taken.get_lock():
                number = self.num_taken.value
                self.num_taken.value += 1
            if number >= len(self.items):
                return
            numbers.append(number)
            yield self.items[number]

    def serve(self, sender: "Connection[dict[int, Result] | Exception, None]") -> None:
        """What a forked process does: send the results, or what went wrong."""
        for number in (signal.SIGINT, signal.SIGTERM):  # the parent ends its workers, after it has saved
            signal.signal(number, signal.SIG_IGN)
        torch.set_num_threads(1)  # torch's own threads did not come along
        try:
            sender.send(self.done())
        except BrokenPipeError:
            pass
        except Exception as error:
            try:
                sender.send(error)
            except (
                pickle.PicklingError,
                TypeError,
                AttributeError,
            ):  # what an error holds may not be sendable
                sender.send(RuntimeError(repr(error)))


def _received(receiver: "Connection[None, dict[int, Result] | Exception]") -> dict[int, Result]:
    try:
        answer = receiver.recv()
    except EOFError:
        raise ChildProcessError(
            "a worker process was killed, perhaps for want of memory; try --threads 1"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer
