"""The parts of other sources: equal to torch's own, blind to padding and to order, loud about sizes that do not fit."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from test_model import copy_attention, copy_layer, enlarged
from torch import Tensor, nn

from dataset import causal_mask
from decoding import Sentences, Vocabulary, search
from incremental import IncrementalDecoder
from model import (
    INITIAL_SCALE,
    EncoderBlock,
    FeedForwardBlock,
    MultiHeadAttentionBlock,
    Transformer,
    build_transformer,
    dropout_from,
    sinusoidal_positional_encoding,
)
from sources import (
    COMPONENTS,
    MLP,
    FrameEmbedding,
    MultiheadSelfAttention,
    PatchEmbedding,
    SelfAttention,
    SequenceEncoder,
    StripEmbedding,
    TransformerBlock,
    TransformerEncoder,
    TransformerLayer,
    num_frames,
    num_patches,
    sinusoidal_positional_encoding_2d,
)

D, H, V = 16, 4, 11


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def lively(module: nn.Module) -> nn.Module:
    """In evaluation, with weights that leave no bias at 0 and no gain at 1."""
    for p in module.parameters():
        nn.init.normal_(p, std=0.3)
    return module.eval()


def real_steps(*lengths: int, of: int) -> Tensor:
    return torch.arange(of) < torch.tensor(lengths).unsqueeze(1)  # (B, of)


def finite_gradients(module: nn.Module) -> bool:
    trained = (p for p in module.parameters() if p.requires_grad)
    return all(p.grad is not None and bool(p.grad.isfinite().all()) for p in trained)


# patches


def test_square_patches_of_a_picture_have_the_expected_shape():
    assert PatchEmbedding()(torch.rand(2, 3, 224, 224)).shape == (2, 196, 256)


@pytest.mark.parametrize(
    ("patch", "stride"), [(4, None), ((2, 4), None), (4, 2), ((4, 6), (2, 3)), ((8, 4), 1)]
)
def test_patches_equal_unfolding_and_a_linear_map(patch, stride):
    part = PatchEmbedding(3, D, patch, stride)
    x = torch.randn(2, 3, 8, 12)
    columns = F.unfold(x, patch, stride=patch if stride is None else stride)  # (B, C·p·p, N)
    close(part(x), part.projection(columns.transpose(1, 2)))


def test_patches_equal_a_strided_convolution():
    part = PatchEmbedding(3, D, (2, 4), (1, 2))
    x = torch.randn(2, 3, 6, 8)
    kernel = part.projection.weight.view(D, 3, 2, 4)
    expected = F.conv2d(x, kernel, part.projection.bias, (1, 2)).flatten(2).transpose(1, 2)
    close(part(x), expected)


def test_patches_stand_row_by_row():
    part = PatchEmbedding(1, 1, (2, 3))
    nn.init.ones_(part.projection.weight)
    nn.init.zeros_(part.projection.bias)
    x = torch.arange(4.0).view(2, 2).repeat_interleave(2, 0).repeat_interleave(3, 1)  # one value a patch
    assert part(x[None, None]).flatten().tolist() == [0, 6, 12, 18]


@pytest.mark.parametrize(
    ("options", "size", "message"),
    [
        ({}, (225, 224), "a height of 225 does not divide into patches: it must be a multiple of 16"),
        ({}, (224, 230), "a width of 230 does not divide into patches: it must be a multiple of 16"),
        ({}, (0, 16), "a height of 0 .* a multiple of 16"),
        ({"patch_size": (8, 4)}, (8, 6), "a width of 6 .* a multiple of 4"),
        ({"patch_size": 16, "stride": 6}, (28, 30), "a width of 30 .* must be 16 plus a multiple of 6"),
        ({"patch_size": 16, "stride": 4}, (12, 16), "a height of 12 .* must be 16 plus a multiple of 4"),
    ],
)
def test_a_side_that_does_not_divide_is_named_with_what_it_must_be(options, size, message):
    with pytest.raises(ValueError, match=message):
        PatchEmbedding(3, 8, **options)(torch.rand(1, 3, *size))


def test_another_number_of_channels_is_named():
    with pytest.raises(ValueError, match=r"pictures must be \(B, 3, H, W\), got \(1, 1, 16, 16\)"):
        PatchEmbedding(embed_dim=8)(torch.rand(1, 1, 16, 16))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patch_size": (4, 0)}, "patch_size must be at least 1, got 0"),
        ({"stride": 0}, "stride must be at least 1, got 0"),
    ],
)
def test_patches_without_extent_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PatchEmbedding(3, 8, **options)


# positions


@pytest.mark.parametrize("dim", [6, 7, 1])
def test_positions_in_one_dimension_take_odd_and_even_widths(dim):
    table = sinusoidal_positional_encoding(5, dim)
    assert table.shape == (5, dim)
    assert table[0].tolist() == [i % 2 for i in range(dim)]


def test_positions_in_two_dimensions_go_row_by_row_with_the_row_in_the_first_half():
    height, width, dim = 3, 5, 8
    table = sinusoidal_positional_encoding_2d(height, width, dim)
    assert table.shape == (15, dim)
    rows, columns = (sinusoidal_positional_encoding(n, dim // 2) for n in (height, width))
    for i in range(height):
        for j in range(width):
            assert torch.equal(table[i * width + j], torch.cat([rows[i], columns[j]]))


@pytest.mark.parametrize("dim", [2, 6, 7])
def test_positions_in_two_dimensions_need_a_width_divisible_by_4(dim):
    with pytest.raises(ValueError, match=f"dim must be divisible by 4 .*, got {dim}"):
        sinusoidal_positional_encoding_2d(2, 2, dim)


# attention

MASKS = {
    "none": None,
    "keys": real_steps(6, 3, 1, of=6),
    "keys over heads": real_steps(6, 3, 1, of=6)[:, None, None],
    "pairs": torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(2)) > 0.5,
}
MASKS["pairs"] |= torch.eye(6, dtype=torch.bool)  # torch's own has NaN where a row may attend to nothing


def for_torch(mask: Tensor | None, Q: int, K: int) -> Tensor | None:
    """The same for torch: (B·H, Q, K), True = may not attend."""
    if mask is None:
        return None
    wide = mask[:, None, None] if mask.dim() == 2 else mask[:, None] if mask.dim() == 3 else mask
    return ~wide.expand(3, H, Q, K).flatten(0, 1)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_fused_self_attention_equals_that_of_torch(mask):
    theirs = lively(nn.MultiheadAttention(D, H, batch_first=True))
    ours = MultiheadSelfAttention(D, H)
    copy_attention(ours.attention, theirs)
    x = torch.randn(3, 6, D)
    expected, shares = theirs(x, x, x, attn_mask=for_torch(mask, 6, 6), average_attn_weights=False)
    weights: list[Tensor] = []
    close(ours(x, mask), expected)
    close(ours(x, mask, weights), expected)
    close(weights[0], shares)


def test_self_attention_has_one_projection_for_query_key_and_value():
    shapes = {name: tuple(p.shape) for name, p in MultiheadSelfAttention(D, H).named_parameters()}
    assert shapes["attention.w_qkv.weight"] == (3 * D, D) and len(shapes) == 4


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_general_attention_equals_that_of_torch_with_other_queries_than_keys(mask):
    theirs = lively(nn.MultiheadAttention(D, H, batch_first=True))
    ours = SelfAttention(D, H)
    copy_attention(ours.attention, theirs)
    values, keys, query = torch.randn(3, 6, D), torch.randn(3, 6, D), torch.randn(3, 4, D)
    if mask is not None and mask.dim() == 3:
        mask = mask[:, :4]
    expected, _ = theirs(query, keys, values, attn_mask=for_torch(mask, 4, 6))
    close(ours(values, keys, query, mask), expected)


def test_masks_of_keys_are_accepted_in_every_shape():
    part = SelfAttention(D, H)
    x, query = torch.randn(2, 5, D), torch.randn(2, 3, D)
    mask = real_steps(5, 2, of=5)
    expected = part(x, x, query, mask[:, None, None])
    for other in (mask, mask[:, None], mask[:, None].expand(2, 3, 5), mask[:, None, None].expand(2, H, 3, 5)):
        assert torch.equal(part(x, x, query, other), expected)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 1, 1, 5), r"must be bool, True = may attend; got torch.float32"),
        (torch.ones(2, 4, dtype=torch.bool), r"\(B, K\).* with B=2, Q=3, K=5; got \(2, 4\)"),
        (torch.ones(2, 5, 3, dtype=torch.bool), r"\(B, Q, K\).* with B=2, Q=3, K=5; got \(2, 5, 3\)"),
        (torch.ones(3, 1, 1, 5, dtype=torch.bool), r"\(B, 1, 1, K\) with B=2.* got \(3, 1, 1, 5\)"),
        (torch.ones(5, dtype=torch.bool), r"got \(5,\)"),
    ],
)
def test_a_mask_that_does_not_fit_is_named_with_those_that_do(mask, message):
    with pytest.raises(ValueError, match=message):
        SelfAttention(D, H)(torch.randn(2, 5, D), torch.randn(2, 5, D), torch.randn(2, 3, D), mask)


@pytest.mark.parametrize(
    "build",
    [
        MultiheadSelfAttention,
        SelfAttention,
        TransformerBlock,
        lambda d, h: TransformerEncoder(3, att_dim=d, n_heads=h),
    ],
)
def test_heads_that_do_not_divide_the_width_are_named(build):
    with pytest.raises(ValueError, match="divisible by h, got 10 and 4"):
        build(10, 4)


def test_attention_without_heads_is_refused():
    with pytest.raises(ValueError, match="divisible by h, got 10 and 0"):
        SelfAttention(10, 0)


@pytest.mark.parametrize("mask", [torch.zeros(2, 1, 1, 5), torch.zeros(2, 3, 5)], ids=["keys", "pairs"])
def test_a_query_that_may_attend_to_nothing_is_finite(mask):
    part = SelfAttention(D, H)
    x, query = torch.randn(2, 5, D), torch.randn(2, 3, D)
    out = part(x, x, query, mask.bool())
    assert torch.equal(out, part.attention.w_o.bias.expand_as(out))
    out.sum().backward()
    assert finite_gradients(part)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_gradients_are_finite_where_a_set_is_all_masked(rate):
    part = MultiheadSelfAttention(D, H, attn_dropout=rate)
    part(torch.randn(2, 5, D), real_steps(5, 0, of=5)).square().sum().backward()
    assert finite_gradients(part)


def test_attention_dropout_drops_weights_in_training_alone():
    part = MultiheadSelfAttention(D, H, attn_dropout=0.5)
    x = torch.randn(2, 5, D)
    plain = part.eval()(x)
    assert torch.equal(part(x), plain)
    part.train()
    weights: list[Tensor] = []
    assert not torch.allclose(part(x, None, weights), plain)
    close(weights[0].sum(-1), torch.ones(2, H, 5))


def test_attention_dropout_keeps_the_mean():
    part = MultiheadSelfAttention(D, H, attn_dropout=0.25)
    x = torch.randn(1, 5, D)
    mean = part(x.expand(20_000, -1, -1)).mean(0)
    torch.testing.assert_close(mean, part.eval()(x)[0], atol=0.02, rtol=0)


def test_attention_dropout_draws_from_the_generator_in_force():
    part = MultiheadSelfAttention(D, H, attn_dropout=0.5, proj_dropout=0.5)
    x = torch.randn(2, 5, D)
    runs = []
    for _ in range(2):
        with dropout_from(torch.Generator().manual_seed(7)):
            runs.append(part(x))
    assert torch.equal(*runs)


def test_attention_without_dropout_stays_on_the_fast_path(monkeypatch):
    monkeypatch.setattr("model.attention_weights", None)
    MultiheadSelfAttention(D, H, proj_dropout=0.3)(torch.randn(2, 5, D))
    TransformerBlock(D, H, dropout=0.3)(torch.randn(2, 5, D))
    MultiheadSelfAttention(D, H, attn_dropout=0.3).eval()(torch.randn(2, 5, D))
    with pytest.raises(TypeError):
        MultiheadSelfAttention(D, H, attn_dropout=0.3)(torch.randn(2, 5, D))


def test_output_dropout_zeroes_its_share():
    x = torch.randn(8, 50, D)
    zeros = MultiheadSelfAttention(D, H, proj_dropout=0.25)(x) == 0
    assert zeros.float().mean().item() == pytest.approx(0.25, abs=0.03)


# blocks


def test_an_mlp_is_two_linear_maps_with_gelu_between():
    part = MLP(6, 2.5)
    assert isinstance(part, FeedForwardBlock) and part.linear_1.out_features == 15
    x = torch.randn(2, 3, 6)
    close(part(x), part.linear_2(F.gelu(part.linear_1(x))))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_block_equals_that_of_torch(norm, mask):
    theirs = lively(
        nn.TransformerEncoderLayer(D, H, 2 * D, 0.0, "gelu", batch_first=True, norm_first=norm == "pre")
    )
    ours = TransformerBlock(D, H, 2.0, norm=norm)
    copy_layer(ours, theirs, {"self_attention_block": "self_attn"})
    x = torch.randn(3, 6, D)
    close(ours(x, mask), theirs(x, for_torch(mask, 6, 6)))


def test_a_block_is_pre_norm_unless_told_otherwise():
    x = torch.randn(2, 3, D)
    pre, post = TransformerBlock(D, H), TransformerBlock(D, H, norm="post")
    post.load_state_dict(pre.state_dict())
    assert not torch.allclose(pre(x), post(x))
    close(post(x).mean(-1), torch.zeros(2, 3))


def test_a_block_keeps_masked_steps_out_of_the_others():
    block = TransformerBlock(D, H)
    x, mask = torch.randn(2, 5, D), real_steps(5, 2, of=5)
    other = torch.where(mask.unsqueeze(-1), x, 9.0)
    assert torch.equal(block(x, mask)[mask], block(other, mask)[mask])
    assert not torch.allclose(block(x)[mask], block(other)[mask])


def test_there_is_one_attention_and_one_block():
    parts = [
        TransformerBlock(D, H),
        SequenceEncoder(3, 2, D, 1, H, 2, 9, 0.0),
        TransformerEncoder(3, att_dim=D, n_layers=1),
        TransformerLayer(3, att_dim=D),
    ]
    for part in parts:
        blocks = [m for m in part.modules() if isinstance(m, EncoderBlock)]
        assert len(blocks) == 1 and isinstance(blocks[0].self_attention_block, MultiHeadAttentionBlock)
        assert isinstance(blocks[0].feed_forward_block, FeedForwardBlock)


# between channels


def channels(norm: str = "pre", positions: str = "learned", dropout: float = 0.0) -> SequenceEncoder:
    return SequenceEncoder(3, 5, D, 2, H, 2, 9, dropout, norm=norm, positions=positions)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("padded", [False, True])
def test_a_channel_encoder_equals_a_stack_of_torch(norm, padded):
    pre = norm == "pre"
    layer = nn.TransformerEncoderLayer(D, H, 2 * D, 0.0, "gelu", batch_first=True, norm_first=pre)
    theirs = lively(nn.TransformerEncoder(layer, 2, nn.LayerNorm(D) if pre else None))
    ours = lively(channels(norm))
    for mine, other in zip(ours.encoder.layers, theirs.layers, strict=True):
        copy_layer(mine, other, {"self_attention_block": "self_attn"})
    if pre:
        ours.encoder.norm.load_state_dict(theirs.norm.state_dict())
    x = torch.randn(3, 3, 7)
    mask = real_steps(7, 4, 1, of=7) if padded else torch.ones(3, 7, dtype=torch.bool)
    encoded = theirs(
        ours.projection(x.transpose(1, 2)) + ours.positions.table[:7], src_key_padding_mask=~mask
    )
    expected = (encoded @ ours.output.weight.squeeze(-1).T + ours.output.bias).transpose(1, 2)
    actual = ours(x, mask if padded else None)
    assert actual.shape == (3, 5, 7)
    close(actual.transpose(1, 2)[mask], expected.transpose(1, 2)[mask])


@pytest.mark.parametrize(("length", "fits"), [(1, True), (8, True), (9, True), (10, False)])
def test_a_channel_encoder_takes_shorter_sequences_and_names_longer_ones(length, fits):
    x = torch.randn(2, 3, length)
    if fits:
        assert channels()(x).shape == (2, 5, length)
    else:
        with pytest.raises(ValueError, match="10 tokens does not fit 9"):
            channels()(x)


def test_sinusoidal_positions_of_a_channel_encoder_have_no_longest():
    assert channels(positions="sinusoidal")(torch.randn(1, 3, 600)).shape == (1, 5, 600)


@pytest.mark.parametrize("filler", [0.0, 1e6, float("inf"), float("nan")])
def test_what_stands_in_padded_steps_changes_nothing(filler):
    part = lively(channels())
    x, mask = torch.randn(3, 3, 7), real_steps(7, 4, 1, of=7)
    other = torch.where(mask.unsqueeze(1), x, filler)
    actual, expected = (part(y, mask).transpose(1, 2) for y in (other, x))
    assert torch.equal(actual[mask], expected[mask]) and actual.isfinite().all()


def test_a_sequence_alone_and_padded_in_a_batch_are_equal():
    part = lively(channels())
    x, mask = torch.randn(3, 3, 7), real_steps(7, 4, 1, of=7)
    together = part(x, mask)
    for i, length in enumerate((7, 4, 1)):
        close(together[i : i + 1, :, :length], part(x[i : i + 1, :, :length]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_channel_encoder_in_half_precision_is_finite(dtype):
    out = channels().to(dtype)(torch.randn(2, 3, 7, dtype=dtype), real_steps(7, 0, of=7))
    assert out.dtype == dtype and out.isfinite().all()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_sequence_of_padding_alone_gives_finite_outputs_and_gradients(norm):
    part = channels(norm, dropout=0.1)
    x = torch.full((2, 3, 7), torch.nan)
    x[0] = 1.0
    out = part(x, real_steps(7, 0, of=7))
    assert out.isfinite().all()
    out.square().sum().backward()
    assert finite_gradients(part)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 6, dtype=torch.bool), r"must be bool \(2, 7\), True = real; got torch.bool \(2, 6\)"),
        (torch.ones(2, 7), r"must be bool \(2, 7\), True = real; got torch.float32 \(2, 7\)"),
    ],
)
def test_a_mask_of_other_steps_is_named(mask, message):
    with pytest.raises(ValueError, match=message):
        channels()(torch.randn(2, 3, 7), mask)
    with pytest.raises(ValueError, match=message):
        TransformerLayer(3, att_dim=D)(torch.randn(2, 7, 3), mask)


# sets


def instances(**options: object) -> TransformerEncoder:
    return lively(TransformerEncoder(5, **{"att_dim": D, "n_layers": 2, **options}))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_permuting_the_instances_permutes_the_output(data):
    torch.manual_seed(0)
    part = instances(out_dim=3, use_mlp=data.draw(st.booleans()))
    n = data.draw(st.integers(1, 7))
    order = data.draw(st.permutations(range(n)))
    mask = torch.tensor(
        data.draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=2, max_size=2))
    )
    X = torch.randn(2, n, 5)
    out, att = part(X, mask, return_att=True)
    permuted, permuted_att = part(X[:, order], mask[:, order], return_att=True)
    close(permuted, out[:, order])
    close(permuted_att, att[..., order, :][..., order])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=3))
def test_masked_instances_get_no_attention_and_rows_sum_to_one(real):
    mask = torch.tensor(real)
    _, att = instances()(torch.randn(len(real), 4, 5), mask, return_att=True)
    assert (att.masked_select(~mask[None, :, None, None]) == 0).all()
    expected = mask.any(-1).float()[None, :, None, None].expand(2, len(real), 4, 4)
    close(att.sum(-1), expected)


def test_rows_of_attention_sum_to_one_without_a_mask():
    _, att = instances()(torch.randn(3, 4, 5), return_att=True)
    close(att.sum(-1), torch.ones(2, 3, 4, 4))


@pytest.mark.parametrize(("out_dim", "width"), [(None, 5), (3, 3)])
def test_a_set_encoder_has_the_shapes_it_promises(out_dim, width):
    X = torch.randn(2, 6, 5)
    encoder, layer = (kind(5, out_dim, D) for kind in (TransformerEncoder, TransformerLayer))
    assert encoder(X).shape == layer(X).shape == (2, 6, width)
    out, att = encoder(X, return_att=True)
    assert out.shape == (2, 6, width) and att.shape == (4, 2, 4, 6, 6)
    out, att = layer(X, return_att=True)
    assert out.shape == (2, 6, width) and att.shape == (2, 4, 6, 6)


def test_returning_attention_changes_no_output():
    part, X, mask = instances(), torch.randn(2, 6, 5), real_steps(6, 2, of=6)
    close(part(X, mask, return_att=True)[0], part(X, mask))


def test_a_layer_equals_an_encoder_of_one():
    layer = lively(TransformerLayer(5, 3, D))
    encoder = TransformerEncoder(5, 3, D, n_layers=1)
    encoder.load_state_dict(layer.encoder.state_dict())
    X, mask = torch.randn(2, 6, 5), real_steps(6, 2, of=6)
    out, att = layer(X, mask, return_att=True)
    expected, expected_att = encoder(X, mask, return_att=True)
    assert torch.equal(out, expected) and torch.equal(att, expected_att[0])
    assert torch.equal(layer(X, mask), encoder(X, mask))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_a_set_encoder_equals_a_stack_of_torch():
    layer = nn.TransformerEncoderLayer(D, H, 4 * D, 0.0, "gelu", batch_first=True, norm_first=True)
    theirs = lively(nn.TransformerEncoder(layer, 2, nn.LayerNorm(D)))
    ours = instances(out_dim=3)
    for mine, other in zip(ours.encoder.layers, theirs.layers, strict=True):
        copy_layer(mine, other, {"self_attention_block": "self_attn"})
    ours.encoder.norm.load_state_dict(theirs.norm.state_dict())
    X, mask = torch.randn(3, 6, 5), real_steps(6, 3, 1, of=6)
    expected = ours.output(theirs(ours.projection(X), src_key_padding_mask=~mask))
    close(ours(X, mask)[mask], expected[mask])


def test_without_an_mlp_only_attention_is_left():
    part = instances(use_mlp=False, n_layers=1, out_dim=D)
    assert not any(isinstance(m, FeedForwardBlock) for m in part.modules())
    X = torch.randn(2, 4, 5)
    block = part.encoder.layers[0]
    x = part.projection(X)
    y = block.residual_connections[0].norm(x)
    x = x + block.self_attention_block(y, y, y, None)
    close(part(X), part.output(part.encoder.norm(x)))


def test_add_self_adds_the_input():
    plain, added = instances(att_dim=5, n_heads=1), instances(att_dim=5, n_heads=1, add_self=True)
    added.load_state_dict(plain.state_dict())
    X = torch.randn(2, 4, 5)
    close(added(X), plain(X) + X)
    close(added(X, return_att=True)[0], plain(X) + X)


@pytest.mark.parametrize("kind", [TransformerEncoder, TransformerLayer])
@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({}, "in_dim 8, att_dim 512 and out_dim 8"),
        ({"att_dim": 8, "out_dim": 4}, "in_dim 8, att_dim 8 and out_dim 4"),
        ({"att_dim": 4, "out_dim": 8}, "in_dim 8, att_dim 4 and out_dim 8"),
    ],
)
def test_add_self_between_unequal_widths_is_refused(kind, options, given):
    with pytest.raises(ValueError, match=f"add_self needs att_dim and out_dim equal to in_dim, got {given}"):
        kind(8, add_self=True, **options)


def test_an_encoder_without_layers_is_refused():
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        TransformerEncoder(5, n_layers=0)
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        SequenceEncoder(3, 5, D, 0, H, 2, 9, 0.0)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: PatchEmbedding(0, D), "in_channels"),
        (lambda: PatchEmbedding(3, 0), "embed_dim"),
        (lambda: StripEmbedding(0, HEIGHT, PATCH, STRIDE), "d_model"),
        (lambda: StripEmbedding(D, 0, PATCH, STRIDE), "height"),
        (lambda: StripEmbedding(D, HEIGHT, 0, 0), "patch_width"),
        (lambda: FrameEmbedding(0, 3, 2), "d_model"),
        (lambda: FrameEmbedding(D, 0, 2), "channels"),
        (lambda: SequenceEncoder(0, 5, D, 2, H, 2, 9, 0.0), "feature_channel"),
        (lambda: SequenceEncoder(3, 0, D, 2, H, 2, 9, 0.0), "output_channel"),
        (lambda: SequenceEncoder(3, 5, 0, 2, H, 2, 9, 0.0), "embed_size"),
        (lambda: TransformerEncoder(5, att_dim=0), "att_dim"),
    ],
)
def test_a_size_below_1_is_named(build, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        build()


@pytest.mark.parametrize("filler", [1e6, float("nan")])
def test_what_stands_in_masked_instances_changes_nothing(filler):
    part = instances(att_dim=5, n_heads=1, add_self=True)
    X, mask = torch.randn(2, 6, 5), real_steps(6, 2, of=6)
    other = torch.where(mask.unsqueeze(-1), X, filler)
    assert torch.equal(part(X, mask)[mask], part(other, mask)[mask])
    assert part(other, mask).isfinite().all()


@pytest.mark.parametrize("return_att", [False, True])
def test_a_set_of_masked_instances_alone_gives_finite_outputs_and_gradients(return_att):
    part = TransformerEncoder(5, att_dim=D, n_layers=2, dropout=0.1)
    out = part(torch.randn(2, 6, 5), real_steps(6, 0, of=6), return_att)
    out = out[0] + out[1].sum() if return_att else out
    assert out.isfinite().all()
    out.square().sum().backward()
    assert finite_gradients(part)


# strips

HEIGHT, PATCH, STRIDE = 6, 4, 2


def strip(width: int, height: int = HEIGHT) -> Tensor:
    drawn = torch.randint(0, 256, (1, height, width), generator=torch.Generator().manual_seed(width))
    return drawn.to(torch.uint8)


@pytest.mark.parametrize(
    ("width", "patch", "stride", "expected"),
    [
        (1, 4, 2, 1),
        (4, 4, 2, 1),
        (5, 4, 2, 2),
        (6, 4, 2, 2),
        (7, 4, 2, 3),
        (12, 4, 4, 3),
        (13, 4, 4, 4),
        (0, 4, 2, 1),
    ],
)
def test_patches_of_a_strip_cover_its_width(width, patch, stride, expected):
    assert num_patches(width, patch, stride) == expected
    assert StripEmbedding(8, 3, patch, stride)(strip(width, 3)).shape == (1, expected, 8)


def test_a_strip_alone_equals_one_padded_in_a_batch():
    part = StripEmbedding(D, HEIGHT, PATCH, STRIDE)
    widths = [3, 11, 8, 20]
    together = part(torch.cat([F.pad(strip(w), (0, 20 - w)) for w in widths]))
    for i, width in enumerate(widths):
        alone = part(strip(width))
        assert alone.size(1) == num_patches(width, PATCH, STRIDE)
        close(together[i : i + 1, : alone.size(1)], alone)


def test_background_gives_a_vector_of_unit_variance_like_any_other_patch():
    part = build_front(StripEmbedding(64, HEIGHT, PATCH, STRIDE))
    part.fit([(strip(400), torch.ones(1, 1, 1, num_patches(400, PATCH, STRIDE), dtype=torch.bool))])
    blank = torch.zeros(1, HEIGHT, 8, dtype=torch.uint8)
    for x in (blank, strip(30), ~blank):
        assert part(x).var(-1, correction=0).mean().item() == pytest.approx(1.0, abs=1e-3)


def fitted() -> tuple[StripEmbedding, Tensor, Tensor]:
    """A front end fitted to a batch of strips, with the batch and its mask."""
    part = StripEmbedding(D, HEIGHT, PATCH, PATCH)
    x = torch.cat([strip(40)] * 30)
    generator = torch.Generator().manual_seed(0)
    x = (x * torch.rand(x.shape, generator=generator) * torch.linspace(0.2, 1, HEIGHT)[:, None]).to(
        torch.uint8
    )
    x[:, 2] = x[:, 1]  # a row of pixels that tells nothing new
    mask = torch.arange(10) < torch.arange(30)[:, None] % 10 + 1
    part.fit([(x[:9], mask[:9, None, None]), (x[9:], mask[9:, None, None])])
    return part, x, mask


def test_fitted_components_are_uncorrelated_with_unit_variance_over_the_real_patches():
    part, x, mask = fitted()
    patches = part.patches(x.unsqueeze(1).float() / 255)[mask]
    covariance = torch.cov(patches.T, correction=0)
    torch.testing.assert_close(patches.mean(0), torch.zeros(len(covariance)), atol=1e-3, rtol=0)
    off = covariance - covariance.diag().diag()
    torch.testing.assert_close(off, torch.zeros_like(off), atol=1e-3, rtol=0)
    # The ridge takes a little of the small ones, and what has no variance stays without.
    variances = covariance.diag()
    assert variances.max() > 0.97 and variances.max() <= 1.001 and variances.min() < 1e-3


def test_what_stands_in_padding_does_not_change_the_components():
    part, x, mask = fitted()
    dirty = torch.where(mask.repeat_interleave(PATCH, 1)[:, None], x, 255)
    other = StripEmbedding(D, HEIGHT, PATCH, PATCH)
    other.fit([(dirty, mask[:, None, None])])
    # Directions of equal variance may be turned, which changes no distance.
    ours, theirs = (p.patches.projection.weight.double() for p in (part, other))
    torch.testing.assert_close(ours.T @ ours, theirs.T @ theirs, atol=1e-3, rtol=1e-3)


def test_components_are_not_trained():
    part = StripEmbedding(D, HEIGHT, PATCH, STRIDE)
    assert {name for name, p in part.named_parameters() if not p.requires_grad} == {
        "patches.projection.weight",
        "patches.projection.bias",
    }


def test_a_patch_has_no_more_components_than_pixels_and_no_more_than_the_most():
    sizes = [StripEmbedding(D, height, 8, 8).patches.projection.out_features for height in (2, 60)]
    assert sizes == [16, COMPONENTS]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(1, 7, 9, dtype=torch.uint8), r"strips must be \(B, 6, W\), got \(1, 7, 9\)"),
        (torch.zeros(6, 9, dtype=torch.uint8), r"strips must be \(B, 6, W\), got \(6, 9\)"),
    ],
)
def test_a_strip_of_another_height_is_named(x, message):
    with pytest.raises(ValueError, match=message):
        StripEmbedding(D, HEIGHT, PATCH, STRIDE)(x)


@pytest.mark.parametrize(
    ("stride", "message"),
    [(5, "stride must be at most patch_width, got 5 and 4"), (0, "stride must be at least 1, got 0")],
)
def test_a_stride_that_reads_a_strip_wrongly_is_refused(stride, message):
    with pytest.raises(ValueError, match=message):
        StripEmbedding(D, HEIGHT, 4, stride)


# frames


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 12, 13])
def test_frames_are_shortened_by_the_stride(length, stride):
    expected = -(-length // stride)
    assert num_frames(length, stride) == expected
    assert FrameEmbedding(D, 3, stride)(torch.randn(2, length, 3)).shape == (2, expected, D)


def test_a_frame_goes_through_convolution_gelu_linear_and_normalisation():
    part = lively(FrameEmbedding(D, 3, 2))
    x = torch.randn(2, 7, 3)
    windows = F.pad(x, (0, 0, 2, 2)).unfold(1, 5, 2)  # (B, S, C, 5)
    convolved = windows.flatten(2) @ part.convolution.weight.flatten(1).T + part.convolution.bias
    close(part(x), part.norm(part.linear(F.gelu(convolved))))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_frames_alone_equal_those_padded_in_a_batch(stride):
    part = FrameEmbedding(D, 3, stride)
    lengths = [1, 13, 6, 7]
    x = torch.randn(4, 13, 3) * real_steps(*lengths, of=13).unsqueeze(-1)
    together = part(x)
    for i, length in enumerate(lengths):
        alone = part(x[i : i + 1, :length])
        close(together[i : i + 1, : alone.size(1)], alone)


def test_normalised_frames_give_vectors_of_unit_variance():
    part = build_front(FrameEmbedding(64, 5, 2))
    out = part(torch.randn(2, 50, 5))
    assert out.var(-1, correction=0).mean().item() == pytest.approx(1.0, abs=1e-3)


def test_a_fresh_convolution_keeps_the_variance_of_its_features():
    part = build_front(FrameEmbedding(64, 5, 2))
    out = part.convolution(torch.randn(8, 5, 200))
    assert out.var().item() == pytest.approx(1.0, abs=0.3) and not part.convolution.bias.any()


@pytest.mark.parametrize("shape", [(1, 9, 4), (9, 3), (2, 0, 3)])
def test_frames_of_another_shape_are_named(shape):
    with pytest.raises(
        ValueError, match=r"features must be \(B, L, 3\), L at least 1, got \(" + str(shape)[1:-1]
    ):
        FrameEmbedding(D, 3, 2)(torch.randn(shape))


# in a whole model


def build(src_embed: nn.Module, d_model: int = D, dropout: float = 0.0, **options: object) -> Transformer:
    model = build_transformer(
        0, V, 12, 12, d_model, 1, H, dropout, 2 * d_model, src_embed=src_embed, **options
    )
    return enlarged(model).eval()


def build_front(src_embed: nn.Module) -> nn.Module:
    """The front end with the weights that a fresh model draws for it."""
    return build(src_embed, 64).src_embed


def strips_in_a_batch() -> tuple[nn.Module, list[Tensor], Tensor, list[int]]:
    alone = [strip(width) for width in (5, 19, 12)]
    batch = torch.cat([F.pad(x, (0, 19 - x.size(2))) for x in alone])
    sizes = [num_patches(x.size(2), PATCH, STRIDE) for x in alone]
    return StripEmbedding(D, HEIGHT, PATCH, STRIDE), alone, batch, sizes


def frames_in_a_batch() -> tuple[nn.Module, list[Tensor], Tensor, list[int]]:
    alone = [torch.randn(1, length, 3) for length in (4, 17, 8)]
    batch = torch.cat([F.pad(x, (0, 0, 0, 17 - x.size(1))) for x in alone])
    return FrameEmbedding(D, 3, 2), alone, batch, [num_frames(x.size(1), 2) for x in alone]


FRONTS = pytest.mark.parametrize("front", [strips_in_a_batch, frames_in_a_batch])


def over_heads(*sizes: int) -> Tensor:
    return real_steps(*sizes, of=max(sizes))[:, None, None]  # (B, 1, 1, S)


def targets(rows: int = 3) -> Tensor:
    return torch.randint(3, V, (rows, 4), generator=torch.Generator().manual_seed(1))


@FRONTS
@pytest.mark.parametrize(
    "options", [{}, {"positions": "learned"}, {"norm": "post"}, {"tie_embeddings": True}], ids=str
)
def test_logits_do_not_depend_on_a_sources_padding(front, options):
    src_embed, alone, batch, sizes = front()
    model, tgt = build(src_embed, **options), targets()
    together = model(batch, over_heads(*sizes), tgt, causal_mask(4))
    assert together.shape == (3, 4, V)
    for i, x in enumerate(alone):
        one = slice(i, i + 1)
        close(together[one], model(x, over_heads(sizes[i]), tgt[one], causal_mask(4)))


@FRONTS
def test_a_source_of_another_kind_is_searched_alone_as_in_a_batch(front):
    src_embed, alone, batch, sizes = front()
    decoder = IncrementalDecoder(build(src_embed))
    for beam in (1, 3):
        batches = [Sentences(batch, over_heads(*sizes), [6] * 3)]
        batches += [Sentences(x, over_heads(size), [6]) for x, size in zip(alone, sizes, strict=True)]
        together, *one_by_one = (
            [best.ids for [best] in found]
            for batch in batches
            for found in search(decoder, [batch], Vocabulary(1, 2), beam=beam)
        )
        assert one_by_one == [[ids] for ids in together]


@FRONTS
def test_a_model_of_another_source_learns_its_pairs(front):
    src_embed, _, batch, sizes = front()
    model, tgt = build(src_embed, dropout=0.1).train(), targets()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    with dropout_from(torch.Generator().manual_seed(0)):
        for _ in range(30):
            logits = model(batch, over_heads(*sizes), tgt[:, :-1], causal_mask(3))
            loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@FRONTS
def test_a_source_of_padding_alone_gives_finite_gradients(front):
    src_embed, _, batch, sizes = front()
    model = build(src_embed).train()
    mask = over_heads(*sizes)
    mask[1] = False
    logits = model(torch.zeros_like(batch), mask, targets(), causal_mask(4))
    assert logits.isfinite().all()
    logits.square().sum().backward()
    assert finite_gradients(model)


@FRONTS
def test_gradients_reach_a_front_end(front):
    src_embed, _, batch, sizes = front()
    model = build(src_embed).train()
    model(batch, over_heads(*sizes), targets(), causal_mask(4)).square().sum().backward()
    assert all(p.grad.any() for p in src_embed.parameters() if p.requires_grad)


def test_a_source_longer_than_learned_positions_is_named():
    model = build(FrameEmbedding(D, 3, 2), positions="learned")
    with pytest.raises(ValueError, match="13 tokens does not fit 12"):
        model.encode(torch.randn(1, 26, 3), None)


def test_a_source_of_another_kind_takes_the_place_of_the_embedding():
    front = nn.Sequential()  # which is false, having no parts
    model = build(front)
    assert model.src_embed is front and "src_embed.embedding.weight" not in model.state_dict()


def test_a_vocabulary_is_not_shared_with_a_source_that_has_none():
    with pytest.raises(ValueError, match="share_vocab needs text on both sides, but src_embed was given"):
        build(FrameEmbedding(D, 3, 2), share_vocab=True)


def test_a_part_of_another_width_inside_a_front_end_gets_fresh_weights():
    part = SequenceEncoder(3, D, 8, 1, 2, 2, 9, 0.0)
    build_transformer(0, V, 12, 12, D, 1, H, src_embed=part)
    weight = part.encoder.layers[0].self_attention_block.w_qkv.weight
    assert weight.std().item() == pytest.approx(INITIAL_SCALE / 8**0.5, rel=0.2)
