"""The network of deep Q-learning (Mnih et al., "Human-level control", 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay.testing import layers
from relay.testing.init import create_workload


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network."""
    out = layers.image(batch_size, image_shape, dtype)
    for i, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        out = layers.conv2d(out, f"conv{i}", channels, kernel, stride)
        out = relay.nn.relu(layers.bias_add(out, f"conv{i}"))
    out = relay.nn.relu(layers.dense(relay.nn.batch_flatten(out), "dense1", 512))
    return layers.network(layers.dense(out, "dense2", num_actions))


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype))
