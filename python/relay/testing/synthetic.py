"""A small network of every kind of layer, for quick tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay._errors import wrong
from relay.testing import layers
from relay.testing.init import create_workload


def get_net(
    input_shape: Sequence[int] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> _core.Function:
    """Returns the network; `wtype` is kept for compatibility: weights have the dtype of the data."""
    if wtype not in (None, dtype):
        raise wrong("the weights have the dtype of the data")
    data = relay.var("data", shape=tuple(input_shape), dtype=dtype)
    out = layers.conv_block(data, "conv", 32, 3, 1, 1)
    out = relay.nn.max_pool2d(out, pool_size=(2, 2), strides=(2, 2))
    out = layers.dense(relay.nn.batch_flatten(out), "fc", 10)
    return layers.network(relay.nn.softmax(out))


def get_workload(
    input_shape: Sequence[int] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(input_shape, dtype, wtype))
