"""LSTM (Hochreiter and Schmidhuber, 1997), one step after the other."""

from __future__ import annotations

from typing import Any

import relay
from relay import _core
from relay.testing.init import create_workload


def lstm_cell(
    num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = ""
) -> _core.Function:
    """Returns fn (inputs, (h, c), i2h_weight, i2h_bias, h2h_weight, h2h_bias) -> (out, (h, c))."""
    state = relay.TensorType((batch_size, num_hidden), dtype)
    weight = relay.TensorType((4 * num_hidden, num_hidden), dtype)
    bias = relay.TensorType((4 * num_hidden,), dtype)
    inputs = relay.Var("inputs", state)
    states = relay.Var("states", relay.TupleType([state, state]))
    kinds = {"i2h_weight": weight, "i2h_bias": bias, "h2h_weight": weight, "h2h_bias": bias}
    given = [relay.Var(f"{name}{part}", kind) for part, kind in kinds.items()]
    i2h_weight, i2h_bias, h2h_weight, h2h_bias = given
    gates = relay.nn.bias_add(relay.nn.dense(inputs, i2h_weight), i2h_bias) + relay.nn.bias_add(
        relay.nn.dense(states[0], h2h_weight), h2h_bias
    )
    i, f, c, o = relay.split(gates, 4, axis=1)
    memory = relay.sigmoid(f) * states[1] + relay.sigmoid(i) * relay.tanh(c)
    hidden = relay.sigmoid(o) * relay.tanh(memory)
    result = relay.Tuple([hidden, relay.Tuple([hidden, memory])])
    return relay.Function([inputs, states, *given], result)


def get_net(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> _core.Function:
    """Returns the network: `data` has a row of every step, and the result is the last output."""
    data = relay.var("data", shape=(iterations, batch_size, num_hidden), dtype=dtype)
    weights = [
        relay.var("i2h_weight", shape=(4 * num_hidden, num_hidden), dtype=dtype),
        relay.var("i2h_bias", shape=(4 * num_hidden,), dtype=dtype),
        relay.var("h2h_weight", shape=(4 * num_hidden, num_hidden), dtype=dtype),
        relay.var("h2h_bias", shape=(4 * num_hidden,), dtype=dtype),
    ]
    zeros = relay.zeros((batch_size, num_hidden), dtype)
    function = lstm_cell(num_hidden, batch_size, dtype)
    cell = relay.Var("lstm_cell", function.checked_type)
    out, states = None, relay.Tuple([zeros, zeros])
    for step in range(iterations):
        inputs = relay.take(data, relay.const(step), axis=0)
        pair = relay.Call(cell, [inputs, states, *weights])
        out, states = relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)
    return relay.Function([data, *weights], relay.Let(cell, function, out))


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
