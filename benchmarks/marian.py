"""Our architecture as Hugging Face's MarianMTModel."""

import torch
from peers import BOS_ID, EOS_ID, PAD_ID, POSITIONS
from transformers import MarianConfig, MarianMTModel

from config import ModelConfig
from model import sinusoidal_positional_encoding


def set_positions(marian: MarianMTModel) -> MarianMTModel:
    """Marian has sines in the first half of the channels and cosines in the second; we alternate.

    To be called after `from_pretrained` too, which makes the table anew.
    """
    config = marian.config
    table = sinusoidal_positional_encoding(config.max_position_embeddings, config.d_model)
    with torch.no_grad():
        for side in (marian.model.encoder, marian.model.decoder):
            side.embed_positions.weight.copy_(table)
    return marian


def marian_config(config: ModelConfig, vocab_size: int) -> MarianConfig:
    """Our architecture in the words of Marian."""
    return MarianConfig(
        vocab_size=vocab_size,
        d_model=config.d_model,
        encoder_layers=config.num_layers,
        decoder_layers=config.num_decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.num_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        activation_function=config.activation,
        # Where we have dropout, and nowhere else.
        dropout=config.dropout,
        activation_dropout=config.dropout,
        attention_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=POSITIONS,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS_ID,
    )


def new_marian(config: MarianConfig) -> MarianMTModel:
    """A MarianMTModel with initial weights and torch's fused attention."""
    config._attn_implementation = "sdpa"
    return MarianMTModel(config)
