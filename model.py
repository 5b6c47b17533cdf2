"""The Transformer encoder-decoder (Vaswani et al. 2017, arXiv:1706.03762).

Shapes: B batch, S source length, T target length, D model width, H heads, K = D // H, V vocabulary, W beams.
Masks are bool, True = may attend, broadcastable to (B, H, T, S).
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Norm = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "silu"]
Positions = Literal["sinusoidal", "learned"]
INITIAL_SCALE = 0.5
"""Standard deviation of initial matrices, times the root of the number of inputs; of embeddings, of their width."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "gelu": F.gelu, "silu": F.silu}
"""Any of them may write into what it is given."""


def sinusoidal_positional_encoding(seq_len: int, dim: int, device: torch.device | None = None) -> Tensor:
    """Sine and cosine of the position at geometrically spaced wavelengths, in even and odd channels.

    Returns:
        (seq_len, dim), float32.
    Source: Vaswani et al. 2017, section 3.5.
    """
    position = torch.arange(seq_len, device=device, dtype=torch.float32).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, dim, 2, device=device) * (-math.log(10_000.0) / dim))
    table = torch.empty(seq_len, dim, device=device)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency[: dim // 2])  # an odd dim has one cosine fewer
    return table


_thread = threading.local()


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Within this, and in this thread alone, dropout on the CPU draws from a generator of the caller's."""
    _thread.generator = generator
    try:
        yield
    finally:
        _thread.generator = None


class Dropout(nn.Module):
    """Zeroes units with probability p and scales the others up, like torch's.

    Inside `dropout_from` it compares random bytes with p (to the nearest 1/256): three times as fast on a CPU
    as drawing a number for each unit, and the same whatever other threads do.

    Raises:
        ValueError: p is not in [0, 1).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout must be in [0, 1), got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        generator: torch.Generator | None = getattr(_thread, "generator", None)
        if not self.training or not self.p:
            return x
        if generator is None:
            return F.dropout(x, self.p)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(
            -(2**63), None, generator=generator
        )
        byte = words.view(torch.uint8)[: x.numel()].view_as(x)
        threshold = min(max(1, round(256 * self.p)), 255)
        return x * torch.where(byte >= threshold, 256 / (256 - threshold), 0.0)


class InputEmbeddings(nn.Module):
    """Token ids (B, T) to vectors (B, T, D), scaled by √D as in section 3.4 of the paper."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(vocab_size, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.embedding(x) * math.sqrt(self.d_model)


@lru_cache(maxsize=32)
def _sinusoidal_table(seq_len: int, dim: int, device: torch.device) -> Tensor:
    # Made while decoding or while training, it must serve the other too.
    with torch.inference_mode(False):
        return sinusoidal_positional_encoding(seq_len, dim, device)


class PositionalEncoding(nn.Module):
    """Adds positions to (B, T, D), then dropout.

    Args:
        seq_len: longest sequence of a learned table; sinusoidal positions have no longest.
    Raises:
        ValueError: a sequence runs past a learned table.
    """

    def __init__(self, d_model: int, seq_len: int, dropout: float, kind: Positions = "sinusoidal") -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.table = nn.Parameter(torch.randn(seq_len, d_model) * 0.02) if kind == "learned" else None

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """`start` is the position of x's first step, of all rows or of each, (B,), int64."""
        end = int(start if isinstance(start, int) else start.max()) + x.size(1)
        if self.table is None:
            power_of_two = 1 << (end - 1).bit_length()
            table = _sinusoidal_table(max(512, power_of_two), x.size(2), x.device)
        else:
            table = self.table
        if end > len(table):
            raise ValueError(f"a sequence of {end} tokens does not fit {len(table)} learned positions")
        if isinstance(start, int):
            return self.dropout(x + table[start:end].type_as(x))
        positions = start.unsqueeze(1) + torch.arange(x.size(1), device=x.device)
        return self.dropout(x + table[positions].type_as(x))


class FeedForwardBlock(nn.Module):
    """Two linear maps with a non-linearity between, at every position: (B, T, D) → (B, T, D)."""

    def __init__(self, d_model: int, d_ff: int, dropout: float, activation: Activation = "relu") -> None:
        super().__init__()
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        # Of two dimensions: of a view that is written into, autograd would copy the gradient.
        inner = self.linear_1(x.flatten(0, -2))
        return self.linear_2(self.dropout(self.activation(inner))).view_as(x)


class MultiHeadAttentionBlock(nn.Module):
    """Scaled dot-product attention of h heads; q, k and v are projected by one matrix where they are the same.

    Args:
        dropout: of the attention weights while training, by a slower path; 0 keeps the fast one.
    Raises:
        ValueError: h does not divide d_model.
    """

    def __init__(self, d_model: int, h: int, dropout: float = 0.0) -> None:
        super().__init__()
        if h < 1 or d_model % h:
            raise ValueError(f"d_model must be divisible by h, got {d_model} and {h}")
        self.h = h
        self.w_qkv = nn.Linear(d_model, 3 * d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, weights: list[Tensor] | None = None
    ) -> Tensor:
        """Attend from q to k and v.

        Args:
            q: (B, T, D). k, v: (B, S, D).
            mask: bool, broadcastable to (B, H, T, S), True = may attend; None = everything.
            weights: a list that gets the attention weights (B, H, T, S) appended, by a slower path; they are
                those before dropout.
        Returns:
            (B, T, D); zero before the output projection where a row may attend to nothing.
        """
        if q is k is v:
            query, key, value = self.project(q, 0, 3)
        elif k is v:
            # A split's gradient is put together at once; each slice has one of zeros around its own.
            sizes = [q.size(-1), 2 * q.size(-1)]
            (w_q, w_kv), (b_q, b_kv) = self.w_qkv.weight.split(sizes), self.w_qkv.bias.split(sizes)
            [query], (key, value) = self._heads(q, w_q, b_q), self._heads(k, w_kv, b_kv)
        else:
            query, key, value = (self.project(x, i, i + 1)[0] for i, x in enumerate((q, k, v)))
        return self.attend(query, key, value, mask, weights)

    def project(self, x: Tensor, first: int, last: int) -> list[Tensor]:
        """Heads (B, H, T, K) of x for the roles first..last-1 of 0 query, 1 key, 2 value."""
        w: Tensor = self.w_qkv.weight
        b: Tensor = self.w_qkv.bias
        if last - first < 3:
            D = x.size(-1)
            w, b = w[first * D : last * D], b[first * D : last * D]
        return self._heads(x, w, b)

    def _heads(self, x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
        B, T, D = x.shape
        heads = F.linear(x, w, b).view(B, T, len(w) // D, self.h, D // self.h)
        return [role.transpose(1, 2) for role in heads.unbind(2)]  # each (B, H, T, K)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Attention over projected heads (B, H, T, K), then the output projection: (B, T, D)."""
        if weights is None and not (self.training and self.dropout.p):
            x = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:  # torch's own dropout in there would not draw from the generator of `dropout_from`
            shares = attention_weights(query, key, mask)
            if weights is not None:
                weights.append(shares)
            x = self.dropout(shares) @ value
        return self.w_o(x.transpose(1, 2).flatten(2))


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax of the scaled products, (B, H, T, S); a row that may attend to nothing is all zero, not NaN."""
    # In float32 from the start: the products alone can overflow half precision.
    scores = query.float() @ key.float().transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
        return torch.softmax(scores, -1).masked_fill(~mask.any(-1, keepdim=True), 0.0).type_as(query)
    return torch.softmax(scores, -1).type_as(query)


class ResidualConnection(nn.Module):
    """x plus its sublayer, normalised before the sublayer (pre) or after the sum (post)."""

    def __init__(self, features: int, dropout: float, norm: Norm = "pre") -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(features)
        self.is_pre = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.is_pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderBlock(nn.Module):
    """Self-attention and, unless there is none, feed-forward, each with its residual connection."""

    def __init__(
        self,
        features: int,
        self_attention_block: MultiHeadAttentionBlock,
        feed_forward_block: FeedForwardBlock | None,
        dropout: float,
        norm: Norm = "pre",
    ) -> None:
        super().__init__()
        self.self_attention_block = self_attention_block
        self.feed_forward_block = feed_forward_block
        self.residual_connections = nn.ModuleList(
            ResidualConnection(features, dropout, norm) for _ in range(1 if feed_forward_block is None else 2)
        )

    def forward(self, x: Tensor, src_mask: Tensor | None, weights: list[Tensor] | None = None) -> Tensor:
        """x (B, S, D) to the same shape; `weights` gets the attention weights (B, H, S, S) appended."""
        x = self.residual_connections[0](x, lambda y: self.self_attention_block(y, y, y, src_mask, weights))
        if self.feed_forward_block is None:
            return x
        return self.residual_connections[1](x, self.feed_forward_block)


class Encoder(nn.Module):
    """A stack of encoder blocks; pre-norm stacks end with a normalisation of their own."""

    def __init__(self, features: int, layers: nn.ModuleList, norm: Norm = "pre") -> None:
        super().__init__()
        self.layers = layers
        self.norm = nn.LayerNorm(features) if norm == "pre" else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None, weights: list[Tensor] | None = None) -> Tensor:
        """x (B, S, D) to the same shape; `weights` gets each layer's attention weights (B, H, S, S) appended."""
        for layer in self.layers:
            x = layer(x, mask, weights)
        return self.norm(x)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention and feed-forward, each with its residual connection."""

    def __init__(
        self,
        features: int,
        self_attention_block: MultiHeadAttentionBlock,
        cross_attention_block: MultiHeadAttentionBlock,
        feed_forward_block: FeedForwardBlock,
        dropout: float,
        norm: Norm = "pre",
    ) -> None:
        super().__init__()
        self.self_attention_block = self_attention_block
        self.cross_attention_block = cross_attention_block
        self.feed_forward_block = feed_forward_block
        self.residual_connections = nn.ModuleList(
            ResidualConnection(features, dropout, norm) for _ in range(3)
        )

    def connections(self) -> list[ResidualConnection]:
        """Those around self-attention, cross-attention and feed-forward, by their type."""
        return cast(list[ResidualConnection], list(self.residual_connections))

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor,
        src_mask: Tensor | None,
        tgt_mask: Tensor | None,
        cross_weights: list[Tensor] | None = None,
    ) -> Tensor:
        cross, memory = self.cross_attention_block, encoder_output
        x = self.residual_connections[0](x, lambda y: self.self_attention_block(y, y, y, tgt_mask))
        x = self.residual_connections[1](x, lambda y: cross(y, memory, memory, src_mask, cross_weights))
        return self.residual_connections[2](x, self.feed_forward_block)


class Decoder(nn.Module):
    """A stack of decoder blocks; pre-norm stacks end with a normalisation of their own."""

    def __init__(self, features: int, layers: nn.ModuleList, norm: Norm = "pre") -> None:
        super().__init__()
        self.layers = layers
        self.norm = nn.LayerNorm(features) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor,
        src_mask: Tensor | None,
        tgt_mask: Tensor | None,
        cross_weights: list[Tensor] | None = None,
    ) -> Tensor:
        for block in self.blocks():
            x = block(x, encoder_output, src_mask, tgt_mask, cross_weights)
        return self.norm(x)

    def blocks(self) -> list[DecoderBlock]:
        """The layers, by their type."""
        return cast(list[DecoderBlock], list(self.layers))


class ProjectionLayer(nn.Module):
    """Vectors (…, D) to logits over the vocabulary (…, V)."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.proj = nn.Linear(d_model, vocab_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x)


class Transformer(nn.Module):
    """An encoder and a decoder with the layers that lead into and out of them; either side can be swapped."""

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        src_embed: nn.Module,
        tgt_embed: InputEmbeddings,
        src_pos: PositionalEncoding,
        tgt_pos: PositionalEncoding,
        projection_layer: ProjectionLayer,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.src_embed = src_embed
        self.tgt_embed = tgt_embed
        self.src_pos = src_pos
        self.tgt_pos = tgt_pos
        self.projection_layer = projection_layer

    def encode(self, src: Tensor, src_mask: Tensor | None) -> Tensor:
        """Read the source.

        Args:
            src: token ids, (B, S), int64; or what a source side of another kind makes (B, S, D) of.
            src_mask: (B, 1, 1, S), bool, False at padding.
        Returns:
            (B, S, D).
        """
        return self.encoder(self.src_pos(self.src_embed(src)), src_mask)

    def decode(
        self,
        encoder_output: Tensor,
        src_mask: Tensor | None,
        tgt: Tensor,
        tgt_mask: Tensor | None,
        cross_weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Read a whole target.

        Args:
            encoder_output: (B, S, D).
            src_mask: (B, 1, 1, S), bool.
            tgt: token ids, (B, T), int64.
            tgt_mask: (B, 1, T, T), bool, causal.
            cross_weights: a list that gets each layer's cross-attention weights (B, H, T, S).
        Returns:
            (B, T, D).
        """
        return self.decoder(
            self.tgt_pos(self.tgt_embed(tgt)), encoder_output, src_mask, tgt_mask, cross_weights
        )

    def project(self, x: Tensor) -> Tensor:
        """Logits (…, V) of decoder outputs (…, D)."""
        return self.projection_layer(x)

    def forward(
        self, src: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor, at: Tensor | None = None
    ) -> Tensor:
        """Teacher-forced logits: (B, T, V), or (n, V) at the n positions where `at` (B, T) is True."""
        x = self.decode(self.encode(src, src_mask), src_mask, tgt, tgt_mask)
        return self.project(x if at is None else x[at])


def check_sizes(sizes: dict[str, int]) -> None:
    """Raise a ValueError that names the first size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def build_transformer(
    src_vocab_size: int,
    tgt_vocab_size: int,
    src_seq_len: int,
    tgt_seq_len: int,
    d_model: int = 512,
    N: int = 6,
    h: int = 8,
    dropout: float = 0.1,
    d_ff: int = 2048,
    *,
    num_decoder_layers: int | None = None,
    norm: Norm = "pre",
    activation: Activation = "relu",
    positions: Positions = "sinusoidal",
    tie_embeddings: bool = False,
    share_vocab: bool = False,
    src_embed: nn.Module | None = None,
) -> Transformer:
    """Build a Transformer with initial weights.

    Args:
        src_vocab_size, tgt_vocab_size: number of token ids a side; the source's is not used with src_embed.
        src_seq_len, tgt_seq_len: longest sequences of learned positions; sinusoidal ones have no longest.
        d_model: width. N: encoder layers, and decoder layers unless num_decoder_layers is given. h: heads.
        dropout: on embeddings, inside feed-forward blocks and on every sublayer's output.
        d_ff: inner width of the feed-forward blocks.
        tie_embeddings: the output projection uses the target embedding's matrix.
        share_vocab: source and target use one embedding matrix; their vocabularies must be the same size.
        src_embed: makes (B, S, D) of a source of another kind, in place of the token embedding; its weights are
            drawn anew.
    Raises:
        ValueError: a size or dropout that cannot be; a shared vocabulary with a source that has none.
    """
    num_decoder_layers = N if num_decoder_layers is None else num_decoder_layers
    sizes = {"src_vocab_size": src_vocab_size} if src_embed is None else {}
    sizes |= {"tgt_vocab_size": tgt_vocab_size, "src_seq_len": src_seq_len, "tgt_seq_len": tgt_seq_len}
    sizes |= {"d_model": d_model, "N": N, "h": h, "d_ff": d_ff, "num_decoder_layers": num_decoder_layers}
    check_sizes(sizes)
    if share_vocab:
        _check_shared(src_vocab_size, tgt_vocab_size, src_embed)
    # What is built first draws first: another order gives a seed other weights.
    encoder, decoder = _stacks((N, num_decoder_layers), d_model, h, dropout, d_ff, norm, activation)
    tgt_embed = InputEmbeddings(d_model, tgt_vocab_size)
    if src_embed is None:
        src_embed = tgt_embed if share_vocab else InputEmbeddings(d_model, src_vocab_size)
    src_pos = PositionalEncoding(d_model, src_seq_len, dropout, positions)
    tgt_pos = PositionalEncoding(d_model, tgt_seq_len, dropout, positions)
    projection = ProjectionLayer(d_model, tgt_vocab_size)
    model = Transformer(encoder, decoder, src_embed, tgt_embed, src_pos, tgt_pos, projection)
    _initialise(model)
    if tie_embeddings:
        projection.proj.weight = tgt_embed.embedding.weight
    return model


def _check_shared(src_vocab_size: int, tgt_vocab_size: int, src_embed: nn.Module | None) -> None:
    if src_embed is not None:
        raise ValueError(
            "share_vocab needs text on both sides, but src_embed was given; leave one of them out"
        )
    if src_vocab_size != tgt_vocab_size:
        raise ValueError(f"a shared vocabulary needs equal sizes, got {src_vocab_size} and {tgt_vocab_size}")


def _stacks(
    N: tuple[int, int], d_model: int, h: int, dropout: float, d_ff: int, norm: Norm, activation: Activation
) -> tuple[Encoder, Decoder]:
    """An encoder and a decoder of N blocks each."""

    def attention() -> MultiHeadAttentionBlock:
        return MultiHeadAttentionBlock(d_model, h)

    def feed_forward() -> FeedForwardBlock:
        return FeedForwardBlock(d_model, d_ff, dropout, activation)

    encoder = [EncoderBlock(d_model, attention(), feed_forward(), dropout, norm) for _ in range(N[0])]
    decoder = [
        DecoderBlock(d_model, attention(), attention(), feed_forward(), dropout, norm) for _ in range(N[1])
    ]
    return Encoder(d_model, nn.ModuleList(encoder), norm), Decoder(d_model, nn.ModuleList(decoder), norm)


def _initialise(model: Transformer) -> None:
    """Biases zero; convolutions so that unit variance comes out, all else half as large.

    Source: LeCun et al. 1998, Efficient BackProp, section 4.6, for unit variance; half learns faster than Xavier's
    matrices (docs/log.md).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):  # both (…, inputs or width)
            nn.init.normal_(module.weight, std=INITIAL_SCALE / module.weight.size(1) ** 0.5)
        elif isinstance(module, nn.Conv1d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
        if isinstance(module, nn.Linear | nn.Conv1d) and module.bias is not None:
            nn.init.zeros_(module.bias)
