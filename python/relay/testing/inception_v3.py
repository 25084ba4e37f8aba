"""Inception v3 (Szegedy et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relay
from relay import _core
from relay.testing import layers
from relay.testing.init import create_workload


def _conv(
    data: _core.Expr,
    name: str,
    channels: int,
    kernel: int | tuple[int, int] = 1,
    stride: int = 1,
    padding: int | tuple[int, int] = 0,
) -> _core.Expr:
    out = layers.conv2d(data, f"{name}_conv", channels, kernel, stride, padding)
    return relay.nn.relu(layers.batch_norm(out, f"{name}_bn", 1e-3))


def _chain(data: _core.Expr, name: str, *steps: tuple) -> _core.Expr:
    for i, step in enumerate(steps):
        data = _conv(data, f"{name}_{i}", *step)
    return data


def _pool(data: _core.Expr, name: str, channels: int) -> _core.Expr:
    pooled = relay.nn.avg_pool2d(
        data, pool_size=(3, 3), strides=(1, 1), padding=(1, 1), count_include_pad=True
    )
    return _conv(pooled, f"{name}_pool", channels)


def _max(data: _core.Expr) -> _core.Expr:
    return relay.nn.max_pool2d(data, pool_size=(3, 3), strides=(2, 2))


_ROW, _COLUMN = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def _block_a(x: _core.Expr, name: str, pooled: int) -> _core.Expr:
    return relay.concatenate(
        (
            _conv(x, f"{name}_1x1", 64),
            _chain(x, f"{name}_5x5", (48,), (64, 5, 1, 2)),
            _chain(x, f"{name}_3x3", (64,), (96, 3, 1, 1), (96, 3, 1, 1)),
            _pool(x, name, pooled),
        ),
        axis=1,
    )


def _block_c(x: _core.Expr, name: str, inner: int) -> _core.Expr:
    twice = ((inner,), (inner, *_COLUMN), (inner, *_ROW), (inner, *_COLUMN), (192, *_ROW))
    return relay.concatenate(
        (
            _conv(x, f"{name}_1x1", 192),
            _chain(x, f"{name}_7x7", (inner,), (inner, *_ROW), (192, *_COLUMN)),
            _chain(x, f"{name}_7x7twice", *twice),
            _pool(x, name, 192),
        ),
        axis=1,
    )


def _block_e(x: _core.Expr, name: str) -> _core.Expr:
    def split(data: _core.Expr, part: str) -> tuple[_core.Expr, _core.Expr]:
        row = _conv(data, f"{name}_{part}_row", 384, (1, 3), 1, (0, 1))
        return row, _conv(data, f"{name}_{part}_column", 384, (3, 1), 1, (1, 0))

    return relay.concatenate(
        (
            _conv(x, f"{name}_1x1", 320),
            *split(_conv(x, f"{name}_3x3", 384), "3x3"),
            *split(_chain(x, f"{name}_twice", (448,), (384, 3, 1, 1)), "twice"),
            _pool(x, name, 192),
        ),
        axis=1,
    )


def get_net(
    batch_size: int,
    num_classes: int,
    image_shape: Sequence[int],
    dtype: str,
) -> _core.Function:
    """Returns the network."""
    data = layers.image(batch_size, image_shape, dtype)
    out = _max(_chain(data, "stem", (32, 3, 2), (32, 3), (64, 3, 1, 1)))
    out = _max(_chain(out, "stem2", (80,), (192, 3)))
    for i, pooled in enumerate((32, 64, 64)):
        out = _block_a(out, f"a{i}", pooled)
    out = relay.concatenate(
        (
            _conv(out, "b_3x3", 384, 3, 2),
            _chain(out, "b_twice", (64,), (96, 3, 1, 1), (96, 3, 2)),
            _max(out),
        ),
        axis=1,
    )
    for i, inner in enumerate((128, 160, 160, 192)):
        out = _block_c(out, f"c{i}", inner)
    out = relay.concatenate(
        (
            _chain(out, "d_3x3", (192,), (320, 3, 2)),
            _chain(out, "d_7x7", (192,), (192, *_ROW), (192, *_COLUMN), (192, 3, 2)),
            _max(out),
        ),
        axis=1,
    )
    for i in range(2):
        out = _block_e(out, f"e{i}")
    out = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(out))
    return layers.network(relay.nn.softmax(layers.dense(out, "fc1", num_classes)))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 299, 299),
    dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
