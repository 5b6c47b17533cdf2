"""What every test shares: a cache of its own for datasets, one thread, no network."""

import os
import tempfile

# Before anything imports datasets or torch. Two test processes of one thread each are faster than one of two.
os.environ.setdefault("HF_HOME", tempfile.mkdtemp(prefix="translator-tests-"))
os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

import torch

torch.set_num_threads(1)
