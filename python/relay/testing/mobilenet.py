"""MobileNet (Howard et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay.testing import layers
from relay.testing.init import create_workload

# Channels and stride of each separable block.
_BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1)
)  # fmt: skip


def get_net(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network."""
    out = layers.conv_block(layers.image(batch_size, image_shape, dtype), "block1", 32, 3, 2, 1)
    for i, (channels, stride) in enumerate(_BLOCKS, 2):
        groups = out.shape[1]
        out = layers.conv_block(out, f"block{i}_depthwise", groups, 3, stride, 1, groups)
        out = layers.conv_block(out, f"block{i}_pointwise", channels, 1)
    out = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(out))
    return layers.network(relay.nn.softmax(layers.dense(out, "fc", num_classes)))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
