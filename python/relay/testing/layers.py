"""Layers with their own weights, for the networks of this package."""

from __future__ import annotations

from collections.abc import Sequence

import relay
from relay import _core
from relay.analysis import free_vars


def conv2d(
    data: _core.Expr,
    name: str,
    channels: int,
    kernel: int | tuple[int, ...],
    stride: int = 1,
    padding: int | tuple[int, ...] = 0,
    groups: int = 1,
) -> _core.Expr:
    """A convolution without bias, over as many axes as the data has; its weight is `NAME_weight`."""
    axes = len(data.shape) - 2
    size = (kernel,) * axes if isinstance(kernel, int) else kernel
    pad = (padding,) * axes if isinstance(padding, int) else padding
    read = data.shape[1] // groups
    weight = relay.var(f"{name}_weight", shape=(channels, read, *size), dtype=data.dtype)
    conv = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}[axes]
    return conv(
        data,
        weight,
        strides=(stride,) * axes,
        padding=pad,
        groups=groups,
        channels=channels,
        kernel_size=size,
    )


def bias_add(data: _core.Expr, name: str, axis: int = 1) -> _core.Expr:
    """Adds `NAME_bias` along an axis."""
    bias = relay.var(f"{name}_bias", shape=(data.shape[axis],), dtype=data.dtype)
    return relay.nn.bias_add(data, bias, axis=axis)


def batch_norm(data: _core.Expr, name: str, epsilon: float = 1e-5) -> _core.Expr:
    """Batch normalisation by stored moments: `NAME_gamma`, `_beta`, `_moving_mean`, `_moving_var`."""
    parts = ("gamma", "beta", "moving_mean", "moving_var")
    given = [relay.var(f"{name}_{p}", shape=(data.shape[1],), dtype=data.dtype) for p in parts]
    return relay.nn.batch_norm(data, *given, epsilon=epsilon)[0]


def dense(data: _core.Expr, name: str, units: int) -> _core.Expr:
    """A dense layer with bias."""
    weight = relay.var(f"{name}_weight", shape=(units, data.shape[1]), dtype=data.dtype)
    return bias_add(relay.nn.dense(data, weight, units=units), name, axis=1)


def conv_block(
    data: _core.Expr,
    name: str,
    channels: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
) -> _core.Expr:
    """Convolution, batch normalisation, ReLU."""
    out = conv2d(data, f"{name}_conv", channels, kernel, stride, padding, groups)
    return relay.nn.relu(batch_norm(out, f"{name}_bn"))


def image(batch_size: int, image_shape: Sequence[int], dtype: str) -> _core.Var:
    """The input, `data`."""
    return relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)


def network(body: _core.Expr) -> _core.Function:
    """The function whose parameters are the input and the weights, in the order of their use."""
    found = free_vars(body)
    found.sort(key=lambda v: v.name_hint != "data")
    return _core.Function(found, body)
