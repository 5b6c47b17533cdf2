"""Our model folder as a model of CTranslate2 and of Hugging Face transformers, so that all decode the same weights.

    python benchmarks/export.py ctranslate2 --model runs/bench --out runs/bench-ctranslate2
    python benchmarks/export.py huggingface --model runs/bench --out runs/bench-huggingface
    python benchmarks/export.py endless --model runs/bench --out runs/bench-endless

The last is a model of ours again, which never ends a sentence: its translations are as long as their bound allows.
CTranslate2 takes models of either normalisation, Marian only post-norm ones.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import peers
import torch
import tyro
from peers import BOS_ID, EOS_ID, PAD_ID, POSITIONS
from torch import Tensor, nn

from command_line import parse_args
from config import ModelConfig
from model import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    FeedForwardBlock,
    MultiHeadAttentionBlock,
    ResidualConnection,
    Transformer,
    sinusoidal_positional_encoding,
)
from model_folder import LoadedModel, load, save_weights

if TYPE_CHECKING:
    from ctranslate2.specs import attention_spec, common_spec, transformer_spec
    from transformers import MarianMTModel

NEVER = -1e4


@dataclass(frozen=True)
class ExportConfig:
    """What is exported."""

    engine: tyro.conf.Positional[Literal["ctranslate2", "huggingface", "endless"]]
    """For whom; endless: for ourselves, a model that never says that a sentence ends."""
    model: Path
    """Model folder of train.py."""
    out: Path
    """Folder to write; one that is there is replaced."""


def to_ctranslate2(loaded: LoadedModel, out: Path) -> None:
    """Write a CTranslate2 model folder, float32."""
    from ctranslate2.specs import common_spec, transformer_spec

    model, config = loaded.model, loaded.config.model
    activations = {
        "relu": common_spec.Activation.RELU,
        "gelu": common_spec.Activation.GELU,
        "silu": common_spec.Activation.SWISH,
    }
    spec = transformer_spec.TransformerSpec.from_config(
        (config.num_layers, config.num_decoder_layers),
        config.num_heads,
        pre_norm=config.norm == "pre",
        activation=activations[config.activation],
    )
    embedding = _array(model.tgt_embed.embedding.weight)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = embedding
    table = _array(positions(model, config))
    spec.encoder.position_encodings.encodings = spec.decoder.position_encodings.encodings = table
    _fill_linear(spec.decoder.projection, model.projection_layer.proj)
    for side, stack in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        if isinstance(stack.norm, nn.LayerNorm):
            _fill_norm(side.layer_norm, stack.norm)
        for layer_spec, block in zip(side.layer, _blocks(stack), strict=True):
            _fill_layer(layer_spec, block)
    vocabulary = peers.Subwords(loaded.path).vocabulary
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.unk_token = vocabulary[PAD_ID]  # bytes are never unknown
    spec.config.bos_token = spec.config.decoder_start_token = vocabulary[BOS_ID]
    spec.config.eos_token = vocabulary[EOS_ID]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=None)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    spec.save(str(out))


def _blocks(stack: Encoder | Decoder) -> list[EncoderBlock | DecoderBlock]:
    return [block for block in stack.layers if isinstance(block, (EncoderBlock, DecoderBlock))]


def _array(tensor: Tensor) -> npt.NDArray[np.float32]:
    return tensor.detach().float().numpy()


def _fill_linear(
    spec: common_spec.LinearSpec, linear: nn.Linear, first: int = 0, last: int | None = None
) -> None:
    spec.weight, spec.bias = _array(linear.weight[first:last]), _array(linear.bias[first:last])


def _fill_norm(spec: common_spec.LayerNormSpec, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _fill_attention(
    spec: attention_spec.MultiHeadAttentionSpec, block: MultiHeadAttentionBlock, d_model: int, is_cross: bool
) -> None:
    """CTranslate2 fuses query, key and value like us, and of cross-attention key and value."""
    if is_cross:
        _fill_linear(spec.linear[0], block.w_qkv, 0, d_model)
        _fill_linear(spec.linear[1], block.w_qkv, d_model)
    else:
        _fill_linear(spec.linear[0], block.w_qkv)
    _fill_linear(spec.linear[-1], block.w_o)


def _fill_layer(
    spec: transformer_spec.TransformerEncoderLayerSpec | transformer_spec.TransformerDecoderLayerSpec,
    block: EncoderBlock | DecoderBlock,
) -> None:
    norms = _norms(block)
    d_model = norms[0].normalized_shape[0]
    _fill_attention(spec.self_attention, block.self_attention_block, d_model, is_cross=False)
    _fill_norm(spec.self_attention.layer_norm, norms[0])
    if isinstance(block, DecoderBlock):
        _fill_attention(spec.attention, block.cross_attention_block, d_model, is_cross=True)
        _fill_norm(spec.attention.layer_norm, norms[1])
    ffn = _feed_forward(block)
    _fill_norm(spec.ffn.layer_norm, norms[-1])
    _fill_linear(spec.ffn.linear_0, ffn.linear_1)
    _fill_linear(spec.ffn.linear_1, ffn.linear_2)


def _norms(block: EncoderBlock | DecoderBlock) -> list[nn.LayerNorm]:
    """The normalisation of each sublayer, in their order."""
    return [c.norm for c in block.residual_connections if isinstance(c, ResidualConnection)]


def _feed_forward(block: EncoderBlock | DecoderBlock) -> FeedForwardBlock:
    if block.feed_forward_block is None:
        raise ValueError("an encoder layer without a feed-forward block has no counterpart; train another")
    return block.feed_forward_block


def positions(model: Transformer, config: ModelConfig) -> Tensor:
    """The position table (positions, D)."""
    if model.src_pos.table is not None:
        raise ValueError("the model has learned positions; train one with --positions sinusoidal")
    return sinusoidal_positional_encoding(POSITIONS, config.d_model)


def to_marian(loaded: LoadedModel) -> MarianMTModel:
    """The same weights as a MarianMTModel in evaluation mode."""
    from marian import marian_config, new_marian, set_positions

    config = loaded.config.model
    if config.norm != "post":
        raise ValueError(f"Marian models are post-norm, {loaded.path} is not; train one with --norm post")
    marian = new_marian(marian_config(config, loaded.tokenizer.vocab_size))
    model = loaded.model
    with torch.no_grad():
        marian.model.shared.weight.copy_(model.tgt_embed.embedding.weight)
        marian.final_logits_bias.copy_(model.projection_layer.proj.bias)
        for theirs, ours in ((marian.model.encoder, model.encoder), (marian.model.decoder, model.decoder)):
            for layer, block in zip(theirs.layers, _blocks(ours), strict=True):
                _fill_marian_layer(layer, block)
    return set_positions(marian).eval()


def _fill_marian_layer(layer: nn.Module, block: EncoderBlock | DecoderBlock) -> None:
    norms, ffn = _norms(block), _feed_forward(block)
    pairs = [("fc1", ffn.linear_1), ("fc2", ffn.linear_2), ("self_attn_layer_norm", norms[0])]
    pairs.append(("final_layer_norm", norms[-1]))
    attentions = [("self_attn", block.self_attention_block)]
    if isinstance(block, DecoderBlock):
        attentions.append(("encoder_attn", block.cross_attention_block))
        pairs.append(("encoder_attn_layer_norm", norms[1]))
    for name, module in pairs:
        layer.get_submodule(name).load_state_dict(module.state_dict())
    for name, attention in attentions:
        parts = zip(attention.w_qkv.weight.chunk(3), attention.w_qkv.bias.chunk(3), strict=True)
        for role, (weight, bias) in zip("qkv", parts, strict=True):
            projection = layer.get_submodule(f"{name}.{role}_proj")
            projection.load_state_dict({"weight": weight, "bias": bias})
        layer.get_submodule(f"{name}.out_proj").load_state_dict(attention.w_o.state_dict())


def to_endless(loaded: LoadedModel, out: Path) -> None:
    """Write the model folder anew with an end token that is never the likeliest."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(loaded.path, out, ignore=shutil.ignore_patterns("checkpoints", "tensorboard"))
    with torch.no_grad():
        loaded.model.projection_layer.proj.bias[EOS_ID] = NEVER
    save_weights(out, loaded.model)


def main() -> None:
    """The command."""
    options = parse_args(ExportConfig, description=str(__doc__))
    loaded = load(options.model, torch.device("cpu"))
    if loaded.config.data.source != "text":
        raise ValueError(f"{options.model} reads {loaded.config.data.source}; the peers read text alone")
    match options.engine:
        case "ctranslate2":
            to_ctranslate2(loaded, options.out)
        case "huggingface":
            to_marian(loaded).save_pretrained(options.out)
        case "endless":
            to_endless(loaded, options.out)
    shutil.copy(options.model / "tokenizer.json", options.out)


if __name__ == "__main__":
    peers.run_command(main)
