"""ResNet of three spatial axes (Tran et al., 2018: R3D), for video clips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relay import _core
from relay._errors import wrong
from relay.testing import resnet
from relay.testing.init import create_workload


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sequence[int] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> _core.Function:
    """Returns the network; `image_shape` is (channels, frames, height, width)."""
    if layout != "NCDHW":
        raise wrong(f"the network is made in NCDHW, not {layout}; ConvertLayout changes it")
    return resnet.get_net(batch_size, num_classes, num_layers, image_shape, dtype)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sequence[int] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    net = get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype)
    return create_workload(net)
