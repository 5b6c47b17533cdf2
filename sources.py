"""Source sides other than text: the parts that make vectors of pictures, of feature sequences and of sets.

All are thin names over model.py: its attention, its encoder block, its positions.

Shapes as there, and C channels, N patches or instances, Q queries, p patch side. A mask is bool, True = may attend:
(B, K) for keys that are real, (B, Q, K) for pairs, or (B, 1, 1, K) and whatever else broadcasts to (B, H, Q, K).
A row that may attend to nothing gives finite outputs and gradients.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import (
    Dropout,
    Encoder,
    EncoderBlock,
    FeedForwardBlock,
    MultiHeadAttentionBlock,
    Norm,
    PositionalEncoding,
    Positions,
    check_sizes,
    sinusoidal_positional_encoding,
)

COMPONENTS = 320
"""Principal components that describe a patch of text, at most."""
RIDGE = 0.01
"""Components with less than this share of the first one's variance are not brought up to it: they are noise."""


def sinusoidal_positional_encoding_2d(
    height: int, width: int, dim: int, device: torch.device | None = None
) -> Tensor:
    """Positions of a grid read row by row: half of the channels encode the row, the other half the column.

    Returns:
        (height * width, dim), float32.
    Raises:
        ValueError: dim is not divisible by 4, which sine and cosine of both halves need.
    Source: the 1-D form of Vaswani et al. 2017, arXiv:1706.03762, once for each axis.
    """
    if dim % 4:
        raise ValueError(f"dim must be divisible by 4 for positions in two dimensions, got {dim}")
    rows = sinusoidal_positional_encoding(height, dim // 2, device).repeat_interleave(width, 0)
    columns = sinusoidal_positional_encoding(width, dim // 2, device).repeat(height, 1)
    return torch.cat([rows, columns], 1)


def _over_heads(mask: Tensor | None, B: int, Q: int, K: int) -> Tensor | None:
    """A mask of any of the shapes above as one that broadcasts to (B, H, Q, K)."""
    if mask is None:
        return None
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be bool, True = may attend; got {mask.dtype}")
    wide = mask[:, None, None] if mask.dim() == 2 else mask[:, None] if mask.dim() == 3 else mask
    if (
        wide.dim() != 4
        or wide.size(0) not in (1, B)
        or wide.size(2) not in (1, Q)
        or wide.size(3) not in (1, K)
    ):
        allowed = f"(B, K), (B, Q, K) or (B, 1, 1, K) with B={B}, Q={Q}, K={K}"
        raise ValueError(f"a mask must have the shape {allowed}; got {tuple(mask.shape)}")
    return wide


def _real_only(x: Tensor, mask: Tensor | None) -> Tensor:
    """x (B, N, C) with zeros where the mask (B, N) is False: not even a NaN gets out of padding."""
    if mask is None:
        return x
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        given = f"{mask.dtype} {tuple(mask.shape)}"
        raise ValueError(f"the mask must be bool {tuple(x.shape[:2])}, True = real; got {given}")
    return torch.where(mask.unsqueeze(-1), x, 0)


class MultiheadSelfAttention(nn.Module):
    """Self-attention with one projection for query, key and value: (B, N, D) → (B, N, D).

    Args:
        attn_dropout: of the attention weights; proj_dropout: of the output.
    Raises:
        ValueError: num_heads does not divide embed_dim.
    Source: Vaswani et al. 2017, section 3.2.2, arXiv:1706.03762.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, attn_dropout: float = 0.0, proj_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttentionBlock(embed_dim, num_heads, attn_dropout)
        self.proj_dropout = Dropout(proj_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, weights: list[Tensor] | None = None) -> Tensor:
        """`weights` gets the attention weights (B, H, N, N) appended."""
        B, N, _ = x.shape
        return self.proj_dropout(self.attention(x, x, x, _over_heads(mask, B, N, N), weights))


class SelfAttention(nn.Module):
    """Attention from queries to keys and values of any other length, scaled by the root of the head width.

    Raises:
        ValueError: heads does not divide embed_size.
    Source: Vaswani et al. 2017, section 3.2, arXiv:1706.03762.
    """

    def __init__(self, embed_size: int, heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttentionBlock(embed_size, heads)

    def forward(self, values: Tensor, keys: Tensor, query: Tensor, mask: Tensor | None = None) -> Tensor:
        """values, keys (B, K, D), query (B, Q, D) → (B, Q, D)."""
        wide = _over_heads(mask, query.size(0), query.size(1), keys.size(1))
        return self.attention(query, keys, values, wide)


class MLP(FeedForwardBlock):
    """Two linear maps with GELU between, `mlp_ratio` times as wide inside: (B, N, D) → (B, N, D).

    Source: Dosovitskiy et al. 2021, section 3.1, arXiv:2010.11929.
    """

    def __init__(self, embed_dim: int, mlp_ratio: float = 4.0, dropout: float = 0.0) -> None:
        super().__init__(embed_dim, int(embed_dim * mlp_ratio), dropout, "gelu")


class TransformerBlock(EncoderBlock):
    """Self-attention and MLP, each with its residual connection: (B, N, D) → (B, N, D).

    Args:
        mlp_ratio: inner width of the MLP ÷ embed_dim; None leaves the MLP out.
        dropout: inside the MLP and on both sublayers' outputs.
        norm: "pre" normalises before each sublayer, "post" after each sum.
    Raises:
        ValueError: num_heads does not divide embed_dim.
    Source: Dosovitskiy et al. 2021, section 3.1, arXiv:2010.11929; "post" is Vaswani et al. 2017.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: float | None = 4.0,
        dropout: float = 0.0,
        norm: Norm = "pre",
    ) -> None:
        attention = MultiHeadAttentionBlock(embed_dim, num_heads)
        mlp = None if mlp_ratio is None else MLP(embed_dim, mlp_ratio, dropout)
        super().__init__(embed_dim, attention, mlp, dropout, norm)

    def forward(self, x: Tensor, mask: Tensor | None = None, weights: list[Tensor] | None = None) -> Tensor:
        """`weights` gets the attention weights (B, H, N, N) appended."""
        B, N, _ = x.shape
        return super().forward(x, _over_heads(mask, B, N, N), weights)


class SequenceEncoder(nn.Module):
    """A Transformer encoder between channels: projection, positions, blocks and a 1×1 convolution.

    Args:
        feature_channel, output_channel: C and C' of (B, C, L) → (B, C', L).
        forward_expansion: inner width of the feed-forward blocks ÷ embed_size.
        seq_length: longest L of learned positions; sinusoidal ones have no longest.
        norm: "pre" ends the blocks with a normalisation of their own, "post" does not.
    Raises:
        ValueError: heads does not divide embed_size; a size below 1; L beyond seq_length; a mask that is not (B, L).
    Source: Vaswani et al. 2017, section 3.1, arXiv:1706.03762.
    """

    def __init__(
        self,
        feature_channel: int,
        output_channel: int,
        embed_size: int,
        num_layers: int,
        heads: int,
        forward_expansion: float,
        seq_length: int,
        dropout: float,
        *,
        norm: Norm = "pre",
        positions: Positions = "learned",
    ) -> None:
        super().__init__()
        sizes = {"feature_channel": feature_channel, "output_channel": output_channel, "heads": heads}
        check_sizes(sizes | {"embed_size": embed_size, "num_layers": num_layers, "seq_length": seq_length})
        self.projection = nn.Linear(feature_channel, embed_size)
        self.positions = PositionalEncoding(embed_size, seq_length, dropout, positions)
        blocks = (
            TransformerBlock(embed_size, heads, forward_expansion, dropout, norm) for _ in range(num_layers)
        )
        self.encoder = Encoder(embed_size, nn.ModuleList(blocks), norm)
        self.output = nn.Conv1d(embed_size, output_channel, 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, C, L) → (B, C', L); mask (B, L), True = a real step. What stands in padded steps changes nothing."""
        x = self.projection(_real_only(x.transpose(1, 2), mask))  # (B, L, D)
        return self.output(self.encoder(self.positions(x), mask).transpose(1, 2))


class TransformerEncoder(nn.Module):
    """Instances of a set that attend to each other: (B, N, in_dim) → (B, N, out_dim), without positions.

    A projection to att_dim, pre-norm layers, a last normalisation and a projection to out_dim. Permuting the
    instances permutes the output.

    Args:
        out_dim: width of the output; None = in_dim.
        use_mlp: False leaves each layer's MLP out.
        add_self: add the input to the output; in_dim, att_dim and out_dim must then be equal.
    Raises:
        ValueError: n_heads does not divide att_dim; a size below 1; add_self between unequal widths.
    Source: Lee et al. 2019, Set Transformer, section 3, arXiv:1810.00825.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int | None = None,
        att_dim: int = 512,
        n_heads: int = 4,
        n_layers: int = 4,
        use_mlp: bool = True,
        add_self: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        width = in_dim if out_dim is None else out_dim
        sizes = {"in_dim": in_dim, "out_dim": width, "att_dim": att_dim}
        check_sizes(sizes | {"n_heads": n_heads, "n_layers": n_layers})
        if add_self and not in_dim == att_dim == width:
            given = f"in_dim {in_dim}, att_dim {att_dim} and out_dim {width}"
            raise ValueError(f"add_self needs att_dim and out_dim equal to in_dim, got {given}")
        mlp_ratio = 4.0 if use_mlp else None
        blocks = (TransformerBlock(att_dim, n_heads, mlp_ratio, dropout) for _ in range(n_layers))
        self.projection = nn.Linear(in_dim, att_dim)
        self.encoder = Encoder(att_dim, nn.ModuleList(blocks))
        self.output = nn.Linear(att_dim, width)
        self.add_self = add_self

    def forward(
        self, X: Tensor, mask: Tensor | None = None, return_att: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Encode a batch of sets.

        Args:
            X: (B, N, in_dim). mask: (B, N), True = a real instance; the others get no attention.
            return_att: also return the attention weights, by a slower path.
        Returns:
            (B, N, out_dim), and with return_att (layers, B, H, N, N). A row of weights sums to 1, or to 0 in a
            set without a real instance.
        """
        X = _real_only(X, mask)
        weights: list[Tensor] | None = [] if return_att else None
        Y = self.output(self.encoder(self.projection(X), mask, weights))
        if self.add_self:
            Y = Y + X
        return Y if weights is None else (Y, torch.stack(weights))


class TransformerLayer(nn.Module):
    """A `TransformerEncoder` of one layer; with return_att the weights are (B, H, N, N)."""

    def __init__(
        self,
        in_dim: int,
        out_dim: int | None = None,
        att_dim: int = 512,
        n_heads: int = 4,
        use_mlp: bool = True,
        add_self: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = TransformerEncoder(in_dim, out_dim, att_dim, n_heads, 1, use_mlp, add_self, dropout)

    def forward(
        self, X: Tensor, mask: Tensor | None = None, return_att: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """X (B, N, in_dim), mask (B, N) → (B, N, out_dim), and with return_att (B, H, N, N)."""
        if not return_att:
            return self.encoder(X, mask)
        Y, weights = self.encoder(X, mask, True)
        return Y, weights[0]


class PatchEmbedding(nn.Module):
    """A picture cut into patches, each projected: (B, C, H, W) → (B, N, D), row by row.

    Args:
        patch_size: side, or (height, width), in pixels.
        stride: from patch to patch, likewise; None = patch_size. Less than that overlaps.
    Raises:
        ValueError: a side that does not divide into whole patches; another number of channels; a size below 1.
    Source: Dosovitskiy et al. 2021, section 3.1, arXiv:2010.11929.
    """

    def __init__(
        self,
        in_channels: int = 3,
        embed_dim: int = 256,
        patch_size: int | tuple[int, int] = 16,
        stride: int | tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.patch_size = (patch_size, patch_size) if isinstance(patch_size, int) else patch_size
        stride = self.patch_size if stride is None else stride
        self.stride = (stride, stride) if isinstance(stride, int) else stride
        sizes = {"in_channels": in_channels, "embed_dim": embed_dim}
        check_sizes(sizes | {"patch_size": min(self.patch_size), "stride": min(self.stride)})
        self.projection = nn.Linear(in_channels * self.patch_size[0] * self.patch_size[1], embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) → (B, N, D)."""
        if x.dim() != 4 or x.size(1) != self.in_channels:
            raise ValueError(f"pictures must be (B, {self.in_channels}, H, W), got {tuple(x.shape)}")
        for name, size, patch, stride in zip(
            ("height", "width"), x.shape[2:], self.patch_size, self.stride, strict=True
        ):
            if size < patch or (size - patch) % stride:
                fits = f"a multiple of {patch}" if stride == patch else f"{patch} plus a multiple of {stride}"
                raise ValueError(f"a {name} of {size} does not divide into patches: it must be {fits}")
        # Where the picture gets no gradient this is faster on a CPU than the convolution it equals.
        return self.projection(self.cut(x))

    def cut(self, x: Tensor) -> Tensor:
        """The pixels of each patch, (B, N, C·p·p)."""
        for axis, patch, stride in zip((2, 3), self.patch_size, self.stride, strict=True):
            x = x.unfold(axis, patch, stride)
        return x.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def num_patches(width: int, patch_width: int, stride: int) -> int:
    """How many patches cover a strip of this width, the last one perhaps beyond its end; at least 1."""
    return 1 + -(-max(0, width - patch_width) // stride)


class StripEmbedding(nn.Module):
    """Pictures of a line of text, cut into patches from left to right: (B, height, W) → (B, S, D).

    S = num_patches(W, patch_width, stride); background is added on the right until the last patch is whole. A strip's
    patches are the same alone and padded with background in a batch.

    A patch is described by its principal components, scaled to unit variance but for the weakest, which `fit` takes
    from training rows and nothing changes after that; then come two linear maps with a GELU between, and a
    normalisation. Learned from the raw pixels instead, words take several times as long to be told apart: docs/log.md.

    Args:
        patch_width, stride: in pixels; a stride below the width overlaps.
    Raises:
        ValueError: strips of another height; a stride that leaves columns unread; a size below 1.
    Source: Salesky et al. 2021, arXiv:2104.08211; components as in Turk & Pentland 1991, Eigenfaces for Recognition.
    """

    def __init__(self, d_model: int, height: int, patch_width: int, stride: int) -> None:
        super().__init__()
        check_sizes({"d_model": d_model, "height": height, "patch_width": patch_width, "stride": stride})
        if stride > patch_width:
            raise ValueError(f"stride must be at most patch_width, got {stride} and {patch_width}")
        self.height, self.patch_width, self.stride = height, patch_width, stride
        num_components = min(COMPONENTS, height * patch_width)
        self.patches = PatchEmbedding(1, num_components, (height, patch_width), (height, stride))
        self.patches.requires_grad_(False)
        self.linear_1 = nn.Linear(num_components, 4 * d_model)
        self.linear_2 = nn.Linear(4 * d_model, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x: uint8, 0 = background, 255 = ink."""
        with torch.autocast(x.device.type, enabled=False):  # small components need all their bits
            components = self.patches(self._ink(x))
        return self.norm(self.linear_2(F.gelu(self.linear_1(components))))

    @torch.no_grad()
    def fit(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Take the components from batches of strips (B, height, W) with their masks (B, 1, 1, S), True = counts."""
        count, total, products = 0, torch.zeros(()), torch.zeros(())
        for x, mask in batches:
            patches = self.patches.cut(self._ink(x))[mask[:, 0, 0]].double()  # (n, height·patch_width)
            count, total, products = (
                count + len(patches),
                total + patches.sum(0),
                products + patches.T @ patches,
            )
        mean = total / count
        variances, directions = torch.linalg.eigh(products / count - mean.outer(mean))
        num_components = self.patches.projection.out_features
        variances, directions = variances[-num_components:].clamp(min=0), directions[:, -num_components:]
        weight = (directions / (variances + RIDGE * variances[-1] + 1e-12).sqrt()).T
        self.patches.projection.weight.copy_(weight)
        self.patches.projection.bias.copy_(-weight @ mean)

    def _ink(self, x: Tensor) -> Tensor:
        """Strips in [0, 1] and as wide as their last patch needs, (B, 1, height, W)."""
        if x.dim() != 3 or x.size(1) != self.height:
            raise ValueError(f"strips must be (B, {self.height}, W), got {tuple(x.shape)}")
        last = num_patches(x.size(2), self.patch_width, self.stride) - 1
        x = F.pad(x, (0, last * self.stride + self.patch_width - x.size(2)))
        return x.unsqueeze(1).to(self.patches.projection.weight.dtype) / 255


def num_frames(length: int, stride: int) -> int:
    """How many vectors a sequence of this many frames is shortened to."""
    return -(-length // stride)


class FrameEmbedding(nn.Module):
    """Sequences of feature frames, shortened by one strided convolution: (B, L, C) → (B, S, D), L at least 1.

    S = num_frames(L, stride). Frames of zeros after a sequence's end leave its own S vectors as they are, which is why
    there is one convolution: a second would read what the first made of the padding. A last normalisation gives unit
    variance.

    Args:
        channels: C. stride: frames a vector; each sees `stride` frames to both sides.
    Raises:
        ValueError: another number of channels; no frame; a size below 1.
    """

    def __init__(self, d_model: int, channels: int, stride: int) -> None:
        super().__init__()
        check_sizes({"d_model": d_model, "channels": channels, "stride": stride})
        self.channels = channels
        self.convolution = nn.Conv1d(channels, d_model, 2 * stride + 1, stride, padding=stride)
        self.linear = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x: float32, padded with zeros."""
        if x.dim() != 3 or x.size(2) != self.channels or not x.size(1):
            raise ValueError(f"features must be (B, L, {self.channels}), L at least 1, got {tuple(x.shape)}")
        x = self.convolution(x.transpose(1, 2)).transpose(1, 2)  # (B, S, D)
        return self.norm(self.linear(F.gelu(x)))
