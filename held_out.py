"""Rows held out of training for the splits that a corpus lacks: always the same ones."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import arrays
from arrays import Bools, Ints

# Carved splits: this share of the training rows, at most so many.
CARVED_SHARE, CARVED_MAX = 0.05, 1_000


def carve(hashes: Ints, is_kept: Bools, missing: Sequence[str], seed: int) -> dict[str, Ints]:
    """Which of the rows that are kept go to the splits that are not there.

    That is decided by the hash of the source sentence and the seed alone, so the order of the rows does not
    matter and a sentence with several translations is on one side only.

    Args:
        hashes: of the source sentences; more different ones than missing splits.
    """
    if not missing:
        return {}
    num_kept = int(np.count_nonzero(is_kept))
    size = min(CARVED_MAX, max(1, round(CARVED_SHARE * num_kept)))
    # The rows of the smallest keys nearly always do; grouping all rows takes memory that grows with them.
    for num_near in (4 * size * len(missing), num_kept):
        is_all = num_near >= num_kept
        near, keys = _of_smallest_keys(hashes, is_kept, num_near, seed)
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        # A sentence that fills a split alone ("Yes." 5,000 times) stays in training, unless all do that.
        queue = np.flatnonzero(counts <= size)
        if is_all or counts[queue].sum() > 2 * size * len(missing):
            break
    num_spared = 1 if is_all and len(queue) == len(counts) else 0
    if len(queue) < len(missing):
        queue, num_spared = np.argsort(counts, kind="stable"), 1
    taken: dict[str, Ints] = {}
    for later, split in zip(reversed(range(len(missing))), missing, strict=True):
        wanted = np.searchsorted(np.cumsum(counts[queue]), size) + 1
        num_sources = min(int(wanted), len(queue) - later - num_spared)
        chosen, queue = queue[:num_sources], queue[num_sources:]
        taken[split] = near[np.isin(inverse, chosen)].astype(np.int32)
    return taken


def _of_smallest_keys(
    hashes: Ints, is_kept: Bools, most: int, seed: int
) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """Positions, rising, and keys of the rows up to the key that is greater than `most` others, or of all."""
    near, keys = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    for positions in arrays.positions(is_kept):
        near = np.concatenate([near, positions])
        keys = np.concatenate([keys, _mix(hashes[positions], seed)])
        if len(keys) > most:
            is_near = keys <= np.partition(keys, most)[most]
            near, keys = near[is_near], keys[is_near]
    return near, keys


def _mix(hashes: Ints, seed: int) -> npt.NDArray[np.uint64]:
    """Another order for every seed. Source: the finaliser of SplitMix64, Steele et al. 2014."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")
    z = hashes.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    return z
