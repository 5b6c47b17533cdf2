"""Muon: orthogonal updates, fused matrices apart, every weight in one optimizer, workers change nothing."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from config import TrainConfig
from model import build_transformer
from optimizer import Muon, make_optimizers, orthogonalised

POOL = ThreadPoolExecutor(1)


@pytest.mark.parametrize("shape", [(16, 16), (64, 16), (16, 64)])
def test_singular_values_come_near_one_and_directions_stay(shape):
    torch.manual_seed(0)
    matrix = torch.randn(2, *shape)
    result = orthogonalised(matrix)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    rotated = u.mT @ result @ v.mT
    values = rotated.diagonal(dim1=1, dim2=2)
    assert values.min() > 0.4 and values.max() < 1.3
    assert (rotated - torch.diag_embed(values)).abs().max() < 1e-3


def test_the_size_of_a_gradient_does_not_matter():
    matrix = torch.randn(1, 8, 12)
    assert torch.allclose(orthogonalised(matrix), orthogonalised(1e4 * matrix), atol=1e-4)


def test_a_zero_gradient_moves_nothing():
    assert torch.equal(orthogonalised(torch.zeros(1, 4, 6)), torch.zeros(1, 4, 6))


def test_fused_projections_are_orthogonalised_apart():
    torch.manual_seed(0)
    gradient = torch.randn(48, 16) * torch.tensor([1.0, 100.0, 0.01]).repeat_interleave(16)[:, None]
    whole = torch.zeros(48, 16, requires_grad=True)
    apart = [torch.zeros(16, 16, requires_grad=True) for _ in range(3)]
    whole.grad = gradient
    for parameter, part in zip(apart, gradient.chunk(3), strict=True):
        parameter.grad = part.clone()
    Muon([whole], lambda _: 3, POOL, lr=0.1).step()
    Muon(apart, lambda _: 1, POOL, lr=0.1).step()
    assert torch.allclose(whole, torch.cat(apart), atol=1e-6)


def test_an_update_has_the_usual_size_of_adamw():
    torch.manual_seed(0)
    weight = torch.zeros(64, 256, requires_grad=True)
    weight.grad = torch.randn(64, 256)
    Muon([weight], lambda _: 1, POOL, lr=1.0).step()
    assert weight.detach().square().mean().sqrt().item() == pytest.approx(0.2, rel=0.2)


def test_weight_decay_shrinks_a_weight_that_does_not_learn():
    weight = torch.ones(4, 4, requires_grad=True)
    weight.grad = torch.zeros(4, 4)
    Muon([weight], lambda _: 1, POOL, lr=0.5, weight_decay=0.1).step()
    assert torch.allclose(weight, torch.full((4, 4), 0.95))


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_every_weight_belongs_to_one_optimizer(optimizer):
    model = build_transformer(20, 20, 12, 12, 16, 1, 2, tie_embeddings=True, share_vocab=True)
    weights = list(model.parameters())
    made = make_optimizers(model, TrainConfig(optimizer=optimizer), POOL, [weights[:5], weights[5:]])
    held = [p for o in made for group in o.param_groups for p in group["params"]]
    assert len(held) == len(set(held)) and set(held) == set(model.parameters())


def test_muon_has_the_matrices_inside_the_layers_alone():
    model = build_transformer(20, 20, 12, 12, 16, 1, 2)
    _, muon = make_optimizers(model, TrainConfig(optimizer="muon"), POOL, [list(model.parameters())])
    names = {p: name for name, p in model.named_parameters()}
    held = [names[p] for p in muon.param_groups[0]["params"]]
    expected = [
        n for n, p in model.named_parameters() if p.dim() == 2 and n.startswith(("encoder", "decoder"))
    ]
    assert sorted(held) == sorted(expected)


def test_the_number_of_workers_changes_no_update():
    torch.manual_seed(0)
    gradients = [torch.randn(12, 12) for _ in range(20)]
    results = []
    for workers in (1, 3):
        weights = [torch.zeros(12, 12, requires_grad=True) for _ in gradients]
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.clone()
        Muon(weights, lambda _: 1, ThreadPoolExecutor(workers), lr=0.1).step()
        results.append(torch.stack([w.detach() for w in weights]))
    assert torch.equal(*results)
