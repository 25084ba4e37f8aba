"""Recurrent layers of PyTorch: their results and gradients are eager mode's, at any length."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import relay

KINDS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn": nn.RNN,
    "rnn by relu": lambda *sizes, **how: nn.RNN(*sizes, nonlinearity="relu", **how),
}
SHAPES = {
    "one layer": {},
    "two layers in two directions": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "no biases": {"bias": False, "bidirectional": True},
}


@pytest.fixture(autouse=True)
def from_the_beginning():
    torch._dynamo.reset()
    relay.torch.reset()
    torch.manual_seed(3)
    # Dynamo leaves recurrent layers out of graphs otherwise.
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def close(got, want, tolerance=2e-5):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def flat(results):
    output, states = results
    return [output, *(states if isinstance(states, tuple) else (states,))]


def gradients(run, model, x, states, weights):
    """The results, and the gradients of their sum by weights with respect to all arguments and parameters."""
    given = [x, *states]
    for t in [*given, *model.parameters()]:
        t.grad = None
        t.requires_grad_()
    results = flat(run(x, tuple(states) if len(states) > 1 else states[0]))
    sum((r * w).sum() for r, w in zip(results, weights, strict=True)).backward()
    return [r.detach() for r in results], [t.grad for t in [*given, *model.parameters()]]


def arguments(kind, steps, batch, num_layers=1, bidirectional=False, batch_first=False, **_):
    x = torch.randn(*((batch, steps) if batch_first else (steps, batch)), 5)
    layers = num_layers * (1 + bidirectional)
    return x, [torch.randn(layers, batch, 6) for _ in range(2 if kind == "lstm" else 1)]


def check_gradients(run, model, x, states):
    given = tuple(states) if len(states) > 1 else states[0]
    weights = [torch.randn_like(r) for r in flat(model(x, given))]
    got = gradients(run, model, x, states, weights)
    close(got, gradients(model, model, x, states, weights))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_layers_and_gradients_without_fallback(kind, shape):
    model = KINDS[kind](5, 6, **SHAPES[shape])
    run = torch.compile(model, backend="relay", options={"fallback": False})
    check_gradients(run, model, *arguments(kind, 4, 3, **SHAPES[shape]))
    assert [(g.kind, g.calls) for g in relay.torch.report().graphs] == [
        ("forward", 1),
        ("backward", 1),
    ]


def test_one_program_trains_with_batches_of_all_sizes():
    model = nn.LSTM(5, 6)
    run = torch.compile(model, backend="relay", dynamic=True, options={"fallback": False})
    for batch in (3, 2):
        check_gradients(run, model, *arguments("lstm", 4, batch))
    assert [(g.kind, g.calls) for g in relay.torch.report().graphs] == [
        ("forward", 2),
        ("backward", 2),
    ]


def test_one_program_runs_sequences_of_all_lengths():
    model = nn.LSTM(5, 6, num_layers=2, bidirectional=True)
    run = torch.compile(model, backend="relay", dynamic=True, options={"fallback": False})
    with torch.no_grad():
        for steps, batch in ((4, 3), (7, 2)):
            x = torch.randn(steps, batch, 5)
            close(flat(run(x)), flat(model(x)))
    (graph,) = relay.torch.report().graphs
    assert graph.calls == 2


@pytest.mark.parametrize("kind", KINDS)
def test_inference_keeps_nothing_for_gradients(kind):
    model = KINDS[kind](5, 6, bidirectional=True)
    run = torch.compile(model, backend="relay", options={"fallback": False})
    x = torch.randn(4, 3, 5)
    with torch.no_grad():
        close(flat(run(x)), flat(model(x)))
    (graph,) = relay.torch.report().graphs
    assert graph.kind == "inference" and graph.programs == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dynamic", [False, True])
def test_layers_of_16_bit_floats(kind, dtype, dynamic):
    """Products, gates and the cell of an LSTM are in float32; the other state is rounded at each step."""
    model = KINDS[kind](32, 64, num_layers=2, bidirectional=True)
    exact = copy.deepcopy(model.to(dtype)).float()
    run = torch.compile(model, backend="relay", dynamic=dynamic, options={"fallback": False})
    for batch in (1, 9):
        x = torch.randn(5, batch, 32, dtype=dtype)
        with torch.no_grad():
            got, want = flat(run(x)), flat(exact(x.float()))
        assert {t.dtype for t in got} == {dtype}
        close([t.float() for t in got], want, 2e-2 if dtype == torch.bfloat16 else 3e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_16_bit_floats(kind):
    model = KINDS[kind](5, 6).to(torch.bfloat16)
    exact = copy.deepcopy(model).float()
    run = torch.compile(model, backend="relay", options={"fallback": False})
    x, states = arguments(kind, 4, 3)
    narrow = [t.to(torch.bfloat16) for t in (x, *states)]
    weights = [
        torch.randn_like(r) for r in flat(exact(x, tuple(states) if len(states) > 1 else states[0]))
    ]
    got = gradients(run, model, narrow[0], narrow[1:], [w.bfloat16() for w in weights])
    wide = [t.detach().float() for t in narrow]
    want = gradients(exact, exact, wide[0], wide[1:], weights)
    for g, w in zip(got, want, strict=True):
        close([t.float() for t in g], w, 6e-2)


def test_the_last_state_alone_and_parameters_alone():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(5, 6)

        def forward(self, x):
            return self.layer(x)[1][0]

    model = Last()
    twin = copy.deepcopy(model)
    x = torch.randn(4, 3, 5)
    torch.compile(model, backend="relay", options={"fallback": False})(x).sum().backward()
    twin(x).sum().backward()
    close([p.grad for p in model.parameters()], [p.grad for p in twin.parameters()])


def test_layers_with_dropout_draw_eager_modes_numbers():
    model = nn.GRU(5, 6, num_layers=2, dropout=0.5)
    run = torch.compile(model, backend="relay")
    x = torch.randn(4, 3, 5)
    results = []
    for f in (run, model):
        torch.manual_seed(5)
        results.append(flat(f(x)))
    close(*results)
    assert {f.operator for f in relay.torch.report().fallbacks} == {"aten.native_dropout.default"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True])
def test_pytorch_runs_the_operators_alike(kind, reverse):
    """What a refused operator would run: the same results, gradients, and values kept for gradients."""
    cell = {"rnn": "rnn_tanh", "rnn by relu": "rnn_relu"}.get(kind, kind)
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    sizes = [(4, 3, 5), (3, 6), (3, 6), (gates * 6, 5), (gates * 6, 6), (gates * 6,), (gates * 6,)]
    operands = [torch.randn(s) for s in sizes]
    if cell != "lstm":
        operands[2] = None

    def layer(*given):
        return torch.ops.relay.recurrent_layer(*given, cell, reverse, True)

    found = []
    for f in (layer, torch.compile(layer, backend="relay", options={"fallback": False})):
        given = [t if t is None else t.clone().requires_grad_() for t in operands]
        y, h, c, *kept = f(*given)
        loss = (y * y).sum() + h.sum() + (c * c).sum()
        loss.backward()
        found.append([[y, h, c, *kept], [t.grad for t in given if t is not None]])
    close(*found)
    operator = torch.ops.relay.recurrent_layer.default
    given = [t if t is None else t.requires_grad_() for t in operands]
    torch.library.opcheck(operator, (*given, cell, reverse, True))


@pytest.mark.parametrize("case", ["projections", "autocast"])
def test_other_layers_are_pytorchs(case):
    model = nn.LSTM(5, 6, proj_size=3 if case == "projections" else 0)
    run = torch.compile(model, backend="relay")
    x = torch.randn(4, 3, 5)
    with torch.no_grad(), torch.autocast("cpu", enabled=case == "autocast"):
        try:
            expected = flat(model(x))
        except RuntimeError as error:
            pytest.skip(f"PyTorch has no such layer on this processor: {error}")
        close(flat(run(x)), expected, 2e-2)
    assert relay.torch.report().graphs
