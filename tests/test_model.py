"""The model: equal to torch's own, blind to padding and to the future, finite everywhere, cached = uncached."""

import copy
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from dataset import Batch, causal_mask, pad_source
from model import (
    INITIAL_SCALE,
    Dropout,
    FeedForwardBlock,
    InputEmbeddings,
    MultiHeadAttentionBlock,
    PositionalEncoding,
    Transformer,
    attention_weights,
    build_transformer,
    dropout_from,
    sinusoidal_positional_encoding,
)

V, D, H = 11, 16, 4


def enlarged(model: Transformer) -> Transformer:
    """With weights so large that every part shows in what comes out: initial ones all but copy their input."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    for module in model.modules():  # afterwards, for one may be the output projection too
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    return model


def tiny(**options) -> Transformer:
    torch.manual_seed(0)
    return enlarged(build_transformer(V, V, 12, 12, D, 2, H, 0.0, 32, **options)).eval()


def test_a_fresh_model_has_small_weights_and_no_opinion():
    torch.manual_seed(0)
    model = build_transformer(1_000, 1_000, 12, 12, 128, 2, H, tie_embeddings=True, share_vocab=True).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            expected = INITIAL_SCALE / parameter.size(1) ** 0.5
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name
    logits = teacher_forced(model, ids(4, 9), torch.ones(4, 1, 1, 9, dtype=torch.bool), ids(4, 8))
    other = torch.randint(V, 1_000, (4 * 8,), generator=torch.Generator().manual_seed(2))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), other)
    assert loss.item() == pytest.approx(math.log(1_000), rel=0.05)


def ids(*shape: int) -> Tensor:
    return torch.randint(3, V, shape, generator=torch.Generator().manual_seed(1))


def teacher_forced(model: Transformer, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
    return model(src, src_mask, tgt, causal_mask(tgt.size(1)))


def padded(lengths: list[int]) -> tuple[Tensor, Tensor]:
    return pad_source([ids(n).tolist() for n in lengths])


def copy_attention(ours: MultiHeadAttentionBlock, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        ours.w_qkv.weight.copy_(theirs.in_proj_weight)
        ours.w_qkv.bias.copy_(theirs.in_proj_bias)
    ours.w_o.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(ours: nn.Module, theirs: nn.Module, attentions: dict[str, str]) -> None:
    for mine, other in attentions.items():
        copy_attention(getattr(ours, mine), getattr(theirs, other))
    ours.feed_forward_block.linear_1.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward_block.linear_2.load_state_dict(theirs.linear2.state_dict())
    for i, connection in enumerate(ours.residual_connections, 1):
        connection.norm.load_state_dict(getattr(theirs, f"norm{i}").state_dict())


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_equal_to_torch_nn_transformer_with_the_weights_copied(norm, activation):
    torch.manual_seed(0)
    pre = norm == "pre"
    theirs = nn.Transformer(D, H, 2, 2, 32, 0.0, activation, batch_first=True, norm_first=pre).eval()
    if not pre:  # torch normalises once more after a post-norm stack; the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None
    for p in theirs.parameters():
        nn.init.normal_(p, std=0.3)
    ours = tiny(norm=norm, activation=activation)
    for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        copy_layer(mine, other, {"self_attention_block": "self_attn"})
    for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        names = {"self_attention_block": "self_attn", "cross_attention_block": "multihead_attn"}
        copy_layer(mine, other, names)
    if pre:
        ours.encoder.norm.load_state_dict(theirs.encoder.norm.state_dict())
        ours.decoder.norm.load_state_dict(theirs.decoder.norm.state_dict())
    src, tgt = torch.randn(3, 7, D), torch.randn(3, 5, D)
    padding = torch.arange(7) >= torch.tensor([[7], [4], [1]])  # (B, S), True at padding
    causal = ~causal_mask(5)[0, 0]
    expected = theirs(
        src, tgt, tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding
    )
    src_mask = ~padding[:, None, None]
    actual = ours.decoder(tgt, ours.encoder(src, src_mask), src_mask, causal_mask(5))
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def test_fused_and_separate_projections_are_equal():
    block = MultiHeadAttentionBlock(D, H)
    x = torch.randn(2, 5, D)
    torch.testing.assert_close(block(x, x, x, None), block(x, x.clone(), x.clone(), None))
    y = torch.randn(2, 6, D)
    torch.testing.assert_close(block(x, y, y, None), block(x, y, y.clone(), None))


def test_the_path_that_returns_weights_equals_the_fast_one():
    block = MultiHeadAttentionBlock(D, H)
    x = torch.randn(3, 5, D)
    mask = torch.rand(3, 1, 5, 5) > 0.4
    mask[1] = False  # a row that may attend to nothing
    weights: list[Tensor] = []
    torch.testing.assert_close(block(x, x, x, mask, weights), block(x, x, x, mask), atol=1e-6, rtol=1e-5)
    assert weights[0].shape == (3, H, 5, 5)
    torch.testing.assert_close(weights[0].sum(-1), mask.any(-1).expand(3, H, 5).float())


def test_weights_are_not_kept_on_the_module():
    model = tiny()
    src, src_mask = padded([4, 2])
    before = sum(t.numel() for m in model.modules() for t in vars(m).values() if isinstance(t, Tensor))
    model.decode(model.encode(src, src_mask), src_mask, ids(2, 3), causal_mask(3), cross_weights=[])
    after = sum(t.numel() for m in model.modules() for t in vars(m).values() if isinstance(t, Tensor))
    assert before == after


def test_changing_a_target_token_leaves_earlier_logits_unchanged():  # fault 3
    model = tiny()
    src, src_mask = padded([5, 4])
    tgt = ids(2, 8)
    before = teacher_forced(model, src, src_mask, tgt)
    for k in range(8):
        changed = tgt.clone()
        changed[:, k] = 3 + (changed[:, k] - 2) % (V - 3)
        after = teacher_forced(model, src, src_mask, changed)
        assert torch.equal(before[:, :k], after[:, :k])
        assert not torch.allclose(before[:, k], after[:, k])


def test_padding_changes_nothing():  # fault 2
    model = tiny()
    src = [ids(n).tolist() for n in (3, 9, 5)]
    together = teacher_forced(model, *pad_source(src), ids(3, 6))
    for i, row in enumerate(src):
        alone = teacher_forced(model, *pad_source([row]), ids(3, 6)[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, atol=1e-5, rtol=1e-5)


def test_what_stands_in_padding_changes_nothing():
    model = tiny()
    src, src_mask = padded([3, 9])
    other = torch.where(src_mask[:, 0, 0], src, 5)
    tgt = ids(2, 4)
    assert torch.equal(teacher_forced(model, src, src_mask, tgt), teacher_forced(model, other, src_mask, tgt))


def test_a_source_of_padding_alone_gives_finite_outputs_and_gradients():  # fault 1
    model = tiny().train()
    src, src_mask = padded([4, 2])
    src_mask[1] = False
    logits = teacher_forced(model, src, src_mask, ids(2, 5))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_a_target_of_padding_alone_gives_finite_gradients():  # fault 1
    model = tiny().train()
    src, src_mask = padded([4, 2])
    tgt_mask = causal_mask(5).repeat(2, 1, 1, 1)
    tgt_mask[1] = False
    model(src, src_mask, ids(2, 5), tgt_mask).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("with_weights", [False, True])
def test_half_precision_with_heavy_padding_is_finite(dtype, with_weights):  # fault 5
    model = tiny().to(dtype)
    src, src_mask = padded([1, 40])
    memory = model.encode(src, src_mask)
    weights: list[Tensor] | None = [] if with_weights else None
    out = model.decode(memory, src_mask, ids(2, 6), causal_mask(6), cross_weights=weights)
    assert memory.isfinite().all() and model.project(out).isfinite().all()


def test_masked_weights_are_exactly_zero_in_half_precision():  # fault 5
    query = torch.full((1, 1, 1, 4), 200.0, dtype=torch.float16)
    weights = attention_weights(query, query.expand(1, 1, 3, 4), torch.tensor([[[[True, False, True]]]]))
    assert weights.flatten().tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("length", [11, 12, 13, 120])
def test_sinusoidal_positions_have_no_longest_length(length):  # fault 6
    model = tiny()
    src, src_mask = padded([length - 1])
    assert teacher_forced(model, src, src_mask, ids(1, length)).shape == (1, length, V)


def test_a_grown_position_table_equals_one_built_long():
    grown, long = PositionalEncoding(D, 4, 0.0), PositionalEncoding(D, 100, 0.0)
    x = torch.zeros(1, 50, D)
    assert torch.equal(grown(x), long(x))


@pytest.mark.parametrize(("length", "fits"), [(11, True), (12, True), (13, False), (120, False)])
def test_learned_positions_end_with_both_numbers_named(length, fits):  # fault 6
    model = tiny(positions="learned")
    src, src_mask = padded([length - 1])
    if fits:
        assert model.encode(src, src_mask).shape == (1, length, D)
    else:
        with pytest.raises(ValueError, match=f"{length} tokens does not fit 12"):
            model.encode(src, src_mask)


def test_sinusoidal_values_follow_the_formula_for_odd_and_even_dimensions():
    for dim in (6, 7):
        table = sinusoidal_positional_encoding(5, dim)
        for i in range(dim):
            angle = torch.arange(5.0) / 10_000 ** (i // 2 * 2 / dim)
            expected = angle.sin() if i % 2 == 0 else angle.cos()
            torch.testing.assert_close(table[:, i], expected)


def test_embeddings_are_scaled_by_the_root_of_the_width():
    embed = InputEmbeddings(D, V)
    torch.testing.assert_close(embed(torch.tensor([[3]]))[0, 0], embed.embedding.weight[3] * 4)


def test_inputs_are_not_changed_in_place():
    model = tiny()
    src, src_mask = padded([4, 2])
    tgt, tgt_mask = ids(2, 5), causal_mask(5)
    given = (src, src_mask, tgt, tgt_mask)
    copies = [t.clone() for t in given]
    model(*given)
    memory = model.encode(src, src_mask)
    kept = memory.clone()
    model.decode(memory, src_mask, tgt, tgt_mask)
    assert torch.equal(memory, kept)
    assert all(torch.equal(a, b) for a, b in zip(given, copies, strict=True))


def test_logits_at_chosen_positions_equal_those_of_all():
    model = tiny()
    batch = Batch.from_pairs([[3, 4], [5]], [[6, 7, 8], [9]])
    real = batch.tgt_out != 0
    everything = model(batch.src, batch.src_mask, batch.tgt_in, batch.tgt_mask)
    some = model(batch.src, batch.src_mask, batch.tgt_in, batch.tgt_mask, real)
    torch.testing.assert_close(some, everything[real])


def test_encoder_and_decoder_depths_are_apart():
    model = tiny(num_decoder_layers=1)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (2, 1)


def test_tied_embeddings_are_one_matrix_and_shared_vocabularies_another():
    tied = tiny(tie_embeddings=True)
    assert tied.projection_layer.proj.weight is tied.tgt_embed.embedding.weight
    assert tied.src_embed is not tied.tgt_embed
    shared = tiny(share_vocab=True)
    assert shared.src_embed is shared.tgt_embed
    assert shared.projection_layer.proj.weight is not shared.tgt_embed.embedding.weight


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_activations_are_those_of_torch(activation):
    block = FeedForwardBlock(D, 32, 0.0, activation)
    x = torch.randn(2, 3, D)
    expected = block.linear_2(getattr(torch.nn.functional, activation)(block.linear_1(x)))
    torch.testing.assert_close(block(x), expected)


def test_either_side_can_be_swapped():
    model = tiny()
    other = copy.deepcopy(model)
    nn.init.normal_(other.encoder.layers[0].feed_forward_block.linear_1.weight)
    swapped = Transformer(
        other.encoder,
        model.decoder,
        model.src_embed,
        model.tgt_embed,
        model.src_pos,
        model.tgt_pos,
        model.projection_layer,
    )
    src, src_mask = padded([4])
    assert torch.equal(swapped.encode(src, src_mask), other.encode(src, src_mask))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 10}, "d_model must be divisible by h, got 10 and 4"),
        ({"d_model": 0}, "d_model must be at least 1, got 0"),
        ({"src_vocab_size": -1}, "src_vocab_size must be at least 1, got -1"),
        ({"N": 0}, "N must be at least 1, got 0"),
        ({"num_decoder_layers": 0}, "num_decoder_layers must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"share_vocab": True, "tgt_vocab_size": 12}, "equal sizes, got 11 and 12"),
    ],
)
def test_impossible_sizes_are_named(change, message):
    sizes = {"src_vocab_size": V, "tgt_vocab_size": V, "src_seq_len": 9, "tgt_seq_len": 9, "d_model": D}
    with pytest.raises(ValueError, match=message):
        build_transformer(**{**sizes, "N": 1, "h": H, **change})


def dropped(seed: int, p: float = 0.25) -> Tensor:
    with dropout_from(torch.Generator().manual_seed(seed)):
        return Dropout(p)(torch.ones(400, 101))


@pytest.mark.parametrize("p", [0.001, 0.1, 0.25, 0.9, 0.999])
def test_dropout_zeroes_its_share_and_keeps_the_mean(p):
    x = dropped(0, p)
    share = min(max(1, round(256 * p)), 255) / 256
    assert (x == 0).float().mean().item() == pytest.approx(share, abs=0.01)
    assert x.mean().item() == pytest.approx(1.0, abs=0.02 if p < 0.5 else 0.06 if p < 0.99 else 0.3)
    assert len(x.unique()) == 2


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_dropout_of_everything_or_less_than_nothing_is_refused_in_every_block(p):
    for build in (Dropout, lambda p: FeedForwardBlock(D, 32, p)):
        with pytest.raises(ValueError, match=rf"dropout must be in \[0, 1\), got {p}"):
            build(p)


def test_dropout_is_fixed_by_its_generator_in_any_thread():
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(dropped, [1, 2, 1, 2, 1, 2, 1, 2]))
    assert all(torch.equal(results[i], results[i % 2]) for i in range(8))
    assert not torch.equal(results[0], results[1])


def test_dropout_outside_its_generator_is_that_of_torch():
    torch.manual_seed(5)
    ours = Dropout(0.3)(torch.ones(99))
    torch.manual_seed(5)
    assert torch.equal(ours, torch.nn.functional.dropout(torch.ones(99), 0.3))


def test_dropout_does_nothing_in_evaluation():
    with dropout_from(torch.Generator()):
        assert torch.equal(Dropout(0.5).eval()(torch.ones(9)), torch.ones(9))
