"""ResNet (He et al., 2015), for images of 224 x 224, and for CIFAR images of 32 x 32 and less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay._errors import wrong
from relay.testing import layers
from relay.testing.init import create_workload

# Blocks in each stage, by the number of layers.
_STAGES = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
    200: (3, 24, 36, 3), 269: (3, 30, 48, 8),
}  # fmt: skip


def _unit(data: _core.Expr, name: str, channels: int, stride: int, bottleneck: bool) -> _core.Expr:
    """Two or three convolutions, with a skip connection."""
    wide = channels * 4 if bottleneck else channels
    out = data
    if bottleneck:
        out = layers.conv_block(out, f"{name}_1", channels, 1)
        out = layers.conv_block(out, f"{name}_2", channels, 3, stride, 1)
        out = layers.conv2d(out, f"{name}_3_conv", wide, 1)
    else:
        out = layers.conv_block(out, f"{name}_1", channels, 3, stride, 1)
        out = layers.conv2d(out, f"{name}_3_conv", wide, 3, 1, 1)
    out = layers.batch_norm(out, f"{name}_3_bn")
    if stride != 1 or data.shape[1] != wide:
        data = layers.conv2d(data, f"{name}_sc_conv", wide, 1, stride)
        data = layers.batch_norm(data, f"{name}_sc_bn")
    return relay.nn.relu(out + data)


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network."""
    data = layers.image(batch_size, image_shape, dtype)
    axes = len(image_shape) - 1
    small = image_shape[-1] <= 32
    if small:
        if (num_layers - 2) % 6 != 0:
            raise wrong(f"for small images there is no ResNet of {num_layers} layers")
        stages, widths, bottleneck = ((num_layers - 2) // 6,) * 3, (16, 32, 64), False
        out = layers.conv_block(data, "stem", 16, 3, 1, 1)
    else:
        if num_layers not in _STAGES:
            known = ", ".join(map(str, _STAGES))
            raise wrong(f"there is no ResNet of {num_layers} layers; there are {known}")
        stages, widths, bottleneck = _STAGES[num_layers], (64, 128, 256, 512), num_layers >= 50
        out = layers.conv_block(data, "stem", 64, 7, 2, 3)
        pool = relay.nn.max_pool2d if axes == 2 else relay.nn.max_pool3d
        out = pool(out, pool_size=(3,) * axes, strides=(2,) * axes, padding=(1,) * axes)
    for i, (blocks, width) in enumerate(zip(stages, widths, strict=True)):
        for j in range(blocks):
            stride = 2 if i > 0 and j == 0 else 1
            out = _unit(out, f"stage{i + 1}_unit{j + 1}", width, stride, bottleneck)
    pool = relay.nn.global_avg_pool2d if axes == 2 else relay.nn.global_avg_pool3d
    out = relay.nn.batch_flatten(pool(out))
    return layers.network(relay.nn.softmax(layers.dense(out, "fc1", num_classes)))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, dtype))
