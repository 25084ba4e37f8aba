"""VGG (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay._errors import wrong
from relay.testing import layers
from relay.testing.init import create_workload

# Convolutions in each stage, by the number of layers.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def get_net(
    batch_size: int,
    image_shape: Sequence[int] = (3, 224, 224),
    num_classes: int = 1000,
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> _core.Function:
    """Returns the network."""
    if num_layers not in _STAGES:
        raise wrong(f"there is no VGG of {num_layers} layers; there are 11, 13, 16, 19")
    out: _core.Expr = layers.image(batch_size, image_shape, dtype)
    for i, (count, channels) in enumerate(
        zip(_STAGES[num_layers], (64, 128, 256, 512, 512), strict=True), 1
    ):
        for j in range(count):
            name = f"conv{i}_{j + 1}"
            out = layers.bias_add(layers.conv2d(out, name, channels, 3, 1, 1), name)
            out = relay.nn.relu(layers.batch_norm(out, f"bn{i}_{j + 1}") if batch_norm else out)
        out = relay.nn.max_pool2d(out, pool_size=(2, 2), strides=(2, 2))
    out = relay.nn.batch_flatten(out)
    for name in ("fc6", "fc7"):
        out = relay.nn.relu(layers.dense(out, name, 4096))
    return layers.network(relay.nn.softmax(layers.dense(out, "fc8", num_classes)))


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    net = get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm)
    return create_workload(net)
