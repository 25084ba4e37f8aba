"""SqueezeNet (Iandola et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay._errors import wrong
from relay.testing import layers
from relay.testing.init import create_workload

# The stem's channels, kernel and stride; then squeezed channels, None for a pool.
_VERSIONS = {
    "1.0": ((96, 7, 2), (None, 16, 16, 32, None, 32, 48, 48, 64, None, 64)),
    "1.1": ((64, 3, 2), (None, 16, 16, None, 32, 32, None, 48, 48, 64, 64)),
}


def _conv(data: _core.Expr, name: str, channels: int, kernel: int, **more: int) -> _core.Expr:
    return relay.nn.relu(layers.bias_add(layers.conv2d(data, name, channels, kernel, **more), name))


def get_net(
    batch_size: int,
    image_shape: Sequence[int] = (3, 224, 224),
    num_classes: int = 1000,
    version: str = "1.0",
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network."""
    if version not in _VERSIONS:
        raise wrong(f"there is SqueezeNet 1.0 and 1.1, not {version!r}")
    (channels, kernel, stride), blocks = _VERSIONS[version]
    out = _conv(
        layers.image(batch_size, image_shape, dtype), "stem", channels, kernel, stride=stride
    )
    for i, squeezed in enumerate(blocks):
        if squeezed is None:
            out = relay.nn.max_pool2d(out, pool_size=(3, 3), strides=(2, 2), ceil_mode=True)
            continue
        out = _conv(out, f"fire{i}_squeeze", squeezed, 1)
        narrow = _conv(out, f"fire{i}_expand1x1", squeezed * 4, 1)
        wide = _conv(out, f"fire{i}_expand3x3", squeezed * 4, 3, padding=1)
        out = relay.concatenate((narrow, wide), axis=1)
    out = relay.nn.global_avg_pool2d(_conv(out, "classifier", num_classes, 1))
    return layers.network(relay.nn.softmax(relay.nn.batch_flatten(out)))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
