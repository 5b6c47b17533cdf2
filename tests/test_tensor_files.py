"""Files of weights: refused before they are read where they are not what they should be."""

import os

import pytest
import safetensors.torch
import torch
from test_model_folder import CPU, damaged, folder

import model_folder

__all__ = ["damaged", "folder"]  # fixtures


def test_weights_of_another_model_are_refused(damaged):
    tensors = safetensors.torch.load_file(damaged / "model.safetensors")
    tensors["decoder.extra"] = torch.zeros(2)
    safetensors.torch.save_file(tensors, damaged / "model.safetensors")
    with pytest.raises(ValueError, match="1 tensors differ, first decoder.extra"):
        model_folder.load(damaged, CPU)


def test_a_cut_weights_file_is_refused(damaged):
    file = damaged / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is not a complete safetensors file"):
        model_folder.load(damaged, CPU)


@pytest.mark.parametrize("length", [2**63, 2**30, 17 << 20])
def test_an_absurd_header_is_refused_before_it_is_read(damaged, length):
    (damaged / "model.safetensors").write_bytes(length.to_bytes(8, "little") + b'{"a":')
    with pytest.raises(ValueError, match=rf"its header would have {length:,} bytes"):
        model_folder.load(damaged, CPU)


def test_weights_larger_than_the_memory_are_refused_before_they_are_read(damaged):
    os.truncate(damaged / "model.safetensors", 1 << 42)  # sparse: it takes no disk
    with pytest.raises(ValueError, match="more than the memory of this machine"):
        model_folder.load(damaged, CPU)
