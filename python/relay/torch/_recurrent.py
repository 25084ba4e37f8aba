"""Recurrent layers of PyTorch as operators of Relay.

Traced as PyTorch does it, a layer is one operator for each step of its sequence, or an operator of oneDNN
without a gradient for its weights. `keep_layers` puts operators in their place that run one direction of a
layer: the back end compiles `relay::recurrent_layer` and its gradient as loops, and PyTorch runs them where
the back end does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

# How many tensors a layer keeps for its gradient: the states before each step, and its gates.
_KEPT = {"lstm": 6, "gru": 5, "rnn_tanh": 2, "rnn_relu": 2}
_RESULTS = 3 + max(_KEPT.values())

_LIBRARY = torch.library.Library("relay", "DEF")
_OPERANDS = "Tensor input, Tensor h, Tensor? c, Tensor w, Tensor r, Tensor? w_bias, Tensor? r_bias"
_LIBRARY.define(
    f"recurrent_layer({_OPERANDS}, str cell, bool reverse, bool keep) "
    f"-> (Tensor y, Tensor h_n, Tensor c_n, {', '.join(f'Tensor kept_{i}' for i in range(_RESULTS - 3))})"
)
_LIBRARY.define(
    f"recurrent_layer_backward(Tensor grad_y, Tensor grad_h, Tensor? grad_c, {_OPERANDS}, "
    "Tensor[] kept, str cell, bool reverse) "
    "-> (Tensor grad_input, Tensor grad_h_0, Tensor grad_c_0, Tensor grad_w, Tensor grad_r, "
    "Tensor grad_w_bias, Tensor grad_r_bias)"
)


def keep_layers(graph_module: fx.GraphModule) -> None:
    """Replaces the calls of recurrent layers in a graph that Dynamo made, before it is differentiated."""
    for module in graph_module.modules():
        if not isinstance(module, fx.GraphModule):
            continue
        layers = [
            n for n in module.graph.nodes if n.op == "call_function" and n.target in _REPLACEMENTS
        ]
        for node in layers:
            node.target = _REPLACEMENTS[node.target]
        if layers:
            module.recompile()


def _lstm(*args: Any) -> Any:
    return _run("lstm", torch.lstm, args)


def _gru(*args: Any) -> Any:
    return _run("gru", torch.gru, args)


def _rnn_tanh(*args: Any) -> Any:
    return _run("rnn_tanh", torch.rnn_tanh, args)


def _rnn_relu(*args: Any) -> Any:
    return _run("rnn_relu", torch.rnn_relu, args)


_REPLACEMENTS = {
    torch.lstm: _lstm,
    torch.gru: _gru,
    torch.rnn_tanh: _rnn_tanh,
    torch.rnn_relu: _rnn_relu,
}


def _run(cell: str, otherwise: Any, args: tuple[Any, ...]) -> Any:
    """A recurrent layer of PyTorch, one direction of each of its layers after the other.

    Packed sequences, projections, other devices, and what autocast casts are PyTorch's.
    """
    x, given, parameters = args[:3]
    packed = not isinstance(
        args[3], bool
    )  # the signature of packed sequences has another argument there
    if packed or x.dim() != 3 or x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return otherwise(*args)
    _, _, _, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
    states = list(given) if cell == "lstm" else [given]
    directions, each = 1 + bidirectional, 4 if has_biases else 2
    sizes = [s.shape[2] for s in states] + [parameters[1].shape[1]]
    if len(set(sizes)) > 1 or len(parameters) != num_layers * directions * each:
        return otherwise(*args)
    x = x.transpose(0, 1) if batch_first else x
    if isinstance(x.shape[0], int) and x.shape[0] == 0:
        return otherwise(*args)
    last: list[list[torch.Tensor]] = [[] for _ in states]
    for layer in range(num_layers):
        sides = []
        for reverse in (False, True)[:directions]:
            at = layer * directions + reverse
            weights = [*parameters[at * each : (at + 1) * each], None, None][:4]
            before = [s[at] for s in states] + [None]
            keep = torch.is_grad_enabled() and any(
                t is not None and t.requires_grad for t in (x, *before, *weights)
            )
            results = torch.ops.relay.recurrent_layer(x, *before[:2], *weights, cell, reverse, keep)
            sides.append(results[0])
            for ends, end in zip(last, results[1:3], strict=False):
                ends.append(end)
        x = torch.cat(sides, 2) if bidirectional else sides[0]
        if dropout and train and layer + 1 < num_layers:
            x = torch.dropout(x, dropout, True)
    x = x.transpose(0, 1) if batch_first else x
    return (x, *(torch.stack(ends) for ends in last))


# ---- The operators ------------------------------------------------------------------------------


def _layer(
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor | None,
    w: torch.Tensor,
    r: torch.Tensor,
    w_bias: torch.Tensor | None,
    r_bias: torch.Tensor | None,
    cell: str,
    reverse: bool,
    keep: bool,
) -> tuple[torch.Tensor, ...]:
    """Step by step: the states of all steps, the last ones, and what the gradient takes."""
    products = torch.nn.functional.linear(x, w, w_bias)
    states = [h] if c is None else [h, c]
    lines = []
    order = range(x.shape[0])
    for t in reversed(order) if reverse else order:
        of_state = torch.nn.functional.linear(states[0], r, r_bias)
        if cell == "gru":
            # The reset and update gates, and the new state, whose products are apart.
            read, of_x = products[t].split([2 * h.shape[1], h.shape[1]], 1)
            more, of_h = of_state.split([2 * h.shape[1], h.shape[1]], 1)
            reset, update = (read + more).sigmoid().chunk(2, 1)
            fresh = (of_x + reset * of_h).tanh()
            gates = [update, reset, fresh, of_h]
            after = [fresh + update * (states[0] - fresh)]
        elif cell == "lstm":
            i, f, g, o = (products[t] + of_state).chunk(4, 1)
            gates = [i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()]
            carried = gates[1] * states[1] + gates[0] * gates[2]
            after = [gates[3] * carried.tanh(), carried]
        else:
            read = products[t] + of_state
            after = gates = [read.tanh() if cell == "rnn_tanh" else read.relu()]
        lines.append([after[0], *states, *gates])
        states = after
    if reverse:
        lines.reverse()
    y, *kept = (torch.stack(parts) for parts in zip(*lines, strict=True))
    return _filled(x, y, [s.clone() for s in states], kept if keep else [])


def _filled(
    x: torch.Tensor, y: torch.Tensor, states: list[torch.Tensor], kept: list[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """The results, with tensors without elements in place of those that a cell or a layer does not have."""
    made = [y, *states, *(x.new_empty(0) for _ in range(2 - len(states))), *kept]
    return (*made, *(x.new_empty(0) for _ in range(_RESULTS - len(made))))


def _fake_layer(
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor | None,
    w: torch.Tensor,
    r: torch.Tensor,
    w_bias: torch.Tensor | None,
    r_bias: torch.Tensor | None,
    cell: str,
    reverse: bool,
    keep: bool,
) -> tuple[torch.Tensor, ...]:
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[1]
    states = [x.new_empty(batch, hidden) for s in (h, c) if s is not None]
    kept = [x.new_empty(steps, batch, hidden) for _ in range(_KEPT[cell] if keep else 0)]
    return _filled(x, x.new_empty(steps, batch, hidden), states, kept)


def _layer_backward(
    grad_y: torch.Tensor,
    grad_h: torch.Tensor,
    grad_c: torch.Tensor | None,
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor | None,
    w: torch.Tensor,
    r: torch.Tensor,
    w_bias: torch.Tensor | None,
    r_bias: torch.Tensor | None,
    kept: Sequence[torch.Tensor],
    cell: str,
    reverse: bool,
) -> tuple[torch.Tensor, ...]:
    """By differentiation of the steps."""
    with torch.enable_grad():
        operands = [
            t if t is None else t.detach().requires_grad_() for t in (x, h, c, w, r, w_bias, r_bias)
        ]
        results = _layer(*operands, cell, reverse, False)
        pairs = [(results[0], grad_y), (results[1], grad_h)]
        if grad_c is not None:
            pairs.append((results[2], grad_c))
        given = [t for t in operands if t is not None]
        found = iter(torch.autograd.grad([y for y, _ in pairs], given, [g for _, g in pairs]))
    bias = [x.new_empty(w.shape[0]) for _ in range(2)]
    absent = [None, None, x.new_empty(0), None, None, *bias]
    return tuple(a if t is None else next(found) for t, a in zip(operands, absent, strict=True))


def _fake_layer_backward(
    grad_y: torch.Tensor,
    grad_h: torch.Tensor,
    grad_c: torch.Tensor | None,
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor | None,
    w: torch.Tensor,
    r: torch.Tensor,
    *_: Any,
) -> tuple[torch.Tensor, ...]:
    bias = [x.new_empty(w.shape[0]) for _ in range(2)]
    like = [x, h, x.new_empty(0) if c is None else c, w, r]
    return (*(x.new_empty(t.shape) for t in like), *bias)


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    *operands, cell, reverse, _ = inputs
    ctx.cell, ctx.reverse = cell, reverse
    ctx.save_for_backward(*operands, *output[3 : 3 + _KEPT[cell]])


def _gradients(ctx: Any, grad_y: Any, grad_h: Any, grad_c: Any, *_: Any) -> tuple[Any, ...]:
    operands, kept = ctx.saved_tensors[:7], ctx.saved_tensors[7:]
    found = torch.ops.relay.recurrent_layer_backward(
        grad_y,
        grad_h,
        grad_c if ctx.cell == "lstm" else None,
        *operands,
        list(kept),
        ctx.cell,
        ctx.reverse,
    )
    gradients = [None if t is None else g for t, g in zip(operands, found, strict=True)]
    return (*gradients, None, None, None)


_LIBRARY.impl("recurrent_layer", _layer, "CPU")
_LIBRARY.impl("recurrent_layer_backward", _layer_backward, "CPU")
torch.library.register_fake("relay::recurrent_layer", _fake_layer, lib=_LIBRARY)
torch.library.register_fake("relay::recurrent_layer_backward", _fake_layer_backward, lib=_LIBRARY)
torch.library.register_autograd(
    "relay::recurrent_layer", _gradients, setup_context=_set_up, lib=_LIBRARY
)
