"""The generator of DCGAN (Radford et al., 2015): images of 64 x 64 from random numbers."""

from __future__ import annotations

from typing import Any

import relay
from relay import _core
from relay._errors import wrong
from relay.testing import layers
from relay.testing.init import create_workload


def _deconv(data: _core.Expr, name: str, channels: int) -> _core.Expr:
    """A transposed convolution that doubles the image."""
    shape = (data.shape[1], channels, 4, 4)
    weight = relay.var(f"{name}_weight", shape=shape, dtype=data.dtype)
    return relay.nn.conv2d_transpose(
        data, weight, strides=(2, 2), padding=(1, 1), channels=channels, kernel_size=(4, 4)
    )


def get_net(
    batch_size: int, random_len: int = 100, oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128, dtype: str = "float32",
) -> _core.Function:  # fmt: skip
    """Returns the network; `data` is of shape (batch_size, random_len)."""
    if tuple(oshape[1:]) != (64, 64):
        raise wrong(f"the images are of 64 x 64, not {tuple(oshape[1:])}")
    data = relay.var("data", shape=(batch_size, random_len), dtype=dtype)
    weight = relay.var("dense_weight", shape=(4 * 4 * ngf * 8, random_len), dtype=dtype)
    out = relay.nn.relu(relay.nn.dense(data, weight))
    out = relay.reshape(out, newshape=(batch_size, ngf * 8, 4, 4))
    for i, channels in enumerate((ngf * 4, ngf * 2, ngf)):
        out = _deconv(out, f"g{i + 2}", channels)
        out = relay.nn.relu(layers.batch_norm(out, f"g{i + 2}"))
    return layers.network(relay.tanh(_deconv(out, "g5", oshape[0])))


def get_workload(
    batch_size: int, oshape: tuple[int, int, int] = (3, 64, 64), ngf: int = 128,
    random_len: int = 100, dtype: str = "float32",
) -> tuple[_core.IRModule, dict[str, Any]]:  # fmt: skip
    """Returns the module and its weights."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, dtype))
