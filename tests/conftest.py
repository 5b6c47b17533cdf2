"""What every test shares: a cache of its own for datasets, one thread, no network."""

import atexit
import os
import shutil
import tempfile

# Before anything imports datasets or torch. Two test processes of one thread each are faster than one of two.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="translator-tests-")
os.environ["HF_DATASETS_CACHE"] = f"{os.environ['HF_HOME']}/datasets"
os.environ["HF_HUB_CACHE"] = f"{os.environ['HF_HOME']}/hub"
os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

import torch

atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)
torch.set_num_threads(1)
