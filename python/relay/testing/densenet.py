"""DenseNet (Huang et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay._errors import wrong
from relay.testing import layers
from relay.testing.init import create_workload

# By the number of layers: the stem's channels, growth, and layers of each block.
_VERSIONS = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}


def _normed(data: _core.Expr, name: str) -> _core.Expr:
    return relay.nn.relu(layers.batch_norm(data, name))


def _layer(data: _core.Expr, name: str, growth: int) -> _core.Expr:
    out = layers.conv2d(_normed(data, f"{name}_bn1"), f"{name}_conv1", 4 * growth, 1)
    return layers.conv2d(_normed(out, f"{name}_bn2"), f"{name}_conv2", growth, 3, padding=1)


def get_net(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network."""
    if densenet_size not in _VERSIONS:
        known = ", ".join(map(str, _VERSIONS))
        raise wrong(f"there is DenseNet {known}, not {densenet_size!r}")
    channels, growth, blocks = _VERSIONS[densenet_size]
    data = layers.image(batch_size, image_shape, dtype)
    out = _normed(layers.conv2d(data, "stem_conv", channels, 7, stride=2, padding=3), "stem_bn")
    out = relay.nn.max_pool2d(out, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for i, count in enumerate(blocks):
        for j in range(count):
            more = _layer(out, f"block{i}_layer{j}", growth)
            out = relay.concatenate((out, more), axis=1)
        if i + 1 < len(blocks):
            out = layers.conv2d(_normed(out, f"t{i}_bn"), f"t{i}_conv", out.shape[1] // 2, 1)
            out = relay.nn.avg_pool2d(out, pool_size=(2, 2), strides=(2, 2))
    out = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(_normed(out, "last_bn")))
    return layers.network(layers.dense(out, "classifier", classes))


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
