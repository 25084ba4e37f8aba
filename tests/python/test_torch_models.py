"""Whole PyTorch models: inference, a step of training, and open sizes are eager mode's."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_models

import relay

MODELS = torch_models.MODELS


@pytest.fixture(autouse=True)
def from_the_beginning():
    torch._dynamo.reset()
    relay.torch.reset()
    torch.manual_seed(3)
    # Dynamo leaves recurrent layers out of graphs otherwise.
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def kinds():
    return [g.kind for g in relay.torch.report().graphs]


@pytest.mark.parametrize("name", MODELS)
def test_inference(name):
    make, arguments = MODELS[name]
    model = make().eval()
    fast = torch.compile(model, backend="relay", options={"fallback": False})
    given = arguments(2)
    with torch.no_grad():
        torch.testing.assert_close(fast(*given), model(*given), rtol=1e-4, atol=1e-5)
    assert relay.torch.report().fallbacks == []
    assert kinds() == ["inference"]


@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_training(name):
    make, arguments = MODELS[name]
    model = make().train()
    twin = copy.deepcopy(model)
    fast = torch.compile(model, backend="relay")
    given = arguments(2)
    losses = []
    for m, run in ((model, fast), (twin, twin)):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
        result = run(*given)
        loss = (result * torch.linspace(0, 1, result.numel()).view_as(result)).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-4)
    # Gradients that are sums of what cancels out have the rounding of the largest ones.
    scale = max(float(p.grad.abs().max()) for p in twin.parameters() if p.grad is not None)
    for (path, mine), (_, other) in zip(
        model.named_parameters(), twin.named_parameters(), strict=True
    ):
        assert (mine.grad is None) == (other.grad is None), path
        if mine.grad is not None:
            difference = float((mine.grad - other.grad).abs().max())
            assert difference <= 1e-4 * scale, (path, difference, scale)
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
    for mine, other in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
    assert kinds() == ["forward", "backward"]


SOON = ("resnet", "bert", "llama", "lstm")


@pytest.mark.parametrize(
    "name", [m if m in SOON else pytest.param(m, marks=pytest.mark.slow) for m in MODELS]
)
def test_open_sizes(name):
    make, arguments = MODELS[name]
    model = make().eval()
    fast = torch.compile(model, backend="relay", dynamic=True)
    with torch.no_grad():
        for batch in (2, 3, 5):
            given = arguments(batch)
            torch.testing.assert_close(fast(*given), model(*given), rtol=1e-4, atol=1e-5)
    assert 1 <= len(kinds()) <= 2
