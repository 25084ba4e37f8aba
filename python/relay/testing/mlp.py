"""A perceptron with two hidden layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay.testing import layers
from relay.testing.init import create_workload


def get_net(
    batch_size: int,
    num_classes: int = 10,
    image_shape: Sequence[int] = (1, 28, 28),
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network."""
    out = relay.nn.batch_flatten(layers.image(batch_size, image_shape, dtype))
    out = relay.nn.relu(layers.dense(out, "fc1", 128))
    out = relay.nn.relu(layers.dense(out, "fc2", 64))
    out = layers.dense(out, "fc3", num_classes)
    return layers.network(relay.nn.softmax(out))


def get_workload(
    batch_size: int,
    num_classes: int = 10,
    image_shape: Sequence[int] = (1, 28, 28),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
