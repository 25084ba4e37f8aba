"""What the operators of the quantised dialect mean, over NumPy's arrays; see oracle_registry."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from oracle_registry import ORACLES, along, oracle


def spread(p: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A scale or zero point such that it broadcasts."""
    return p.reshape(()) if p.size == 1 else along(p, axis, rank)


def real(q, scale, zero, axis=-1) -> np.ndarray:
    """The numbers that the integers stand for."""
    wide = q.astype(np.int64) - spread(zero, axis, q.ndim)
    return wide * spread(scale, axis, q.ndim)


def integers(x, scale, zero, dtype, axis=-1) -> np.ndarray:
    """The numbers rounded, halves to even, and saturated."""
    q = np.round(x / spread(scale, axis, x.ndim)) + spread(zero, axis, x.ndim)
    return saturated(q, dtype)


def saturated(q, dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(q, info.min, info.max).astype(dtype)


def upward(x):
    return np.floor(x + 0.5)


ROUNDINGS = {
    "UPWARD": upward,
    "TONEAREST": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "TONEAREST_EVEN": np.round,
}


@oracle("qnn.quantize")
def _(a, x, scale, zero):
    rounded = ROUNDINGS[a.rounding](x / spread(scale, a.axis, x.ndim))
    return saturated(rounded + spread(zero, a.axis, x.ndim), a.out_dtype)


@oracle("qnn.dequantize")
def _(a, q, scale, zero):
    return real(q, scale, zero, a.axis)


@oracle("qnn.requantize")
def _(a, q, in_scale, in_zero, out_scale, out_zero):
    x = real(q, in_scale, in_zero, a.axis) / spread(out_scale, a.axis, q.ndim)
    nearest = ROUNDINGS["UPWARD" if a.rounding == "None" else a.rounding]
    return saturated(nearest(x) + spread(out_zero, a.axis, q.ndim), a.out_dtype)


SIMULATED = {1: np.int8, 2: np.uint8, 3: np.int32}


@oracle("qnn.simulated_quantize")
def _(a, x, code, scale, zero):
    return x if code == 0 else integers(x, scale, zero, SIMULATED[int(code)], a.axis).astype(float)


@oracle("qnn.simulated_dequantize")
def _(a, x, code, scale, zero):
    return x if code == 0 else (x - spread(zero, a.axis, x.ndim)) * spread(scale, a.axis, x.ndim)


for _name, _f in {"add": np.add, "subtract": np.subtract}.items():

    def _sum(a, x, y, xs, xz, ys, yz, s, z, f=_f):
        left, right = (
            upward(r / s) for r in (real(x, xs, xz, a.lhs_axis), real(y, ys, yz, a.rhs_axis))
        )
        return saturated(f(left, right) + z, x.dtype)

    oracle(f"qnn.{_name}")(_sum)


@oracle("qnn.mul")
def _(a, x, y, xs, xz, ys, yz, s, z):
    value = real(x, xs, xz, a.lhs_axis) * real(y, ys, yz, a.rhs_axis)
    return saturated(upward(value / s) + z, x.dtype)


def rounded_once(f):
    """The oracle of a function of the numbers."""
    return lambda a, q, xs, xz, s, z: integers(f(a, real(q, xs, xz)), s, z, q.dtype)


for _name in ("abs", "erf", "exp", "log", "rsqrt", "sigmoid", "sqrt", "tanh"):
    oracle(f"qnn.{_name}")(rounded_once(lambda a, x, name=_name: ORACLES[name](a, x)))
for _name in ("avg_pool2d", "leaky_relu", "softmax"):
    oracle(f"qnn.{_name}")(rounded_once(lambda a, x, name=_name: ORACLES[f"nn.{name}"](a, x)))
oracle("qnn.hardswish")(rounded_once(lambda a, x: x * np.clip(x + 3, 0, 6) / 6))


@oracle("qnn.concatenate")
def _(a, *args):
    count = (len(args) - 2) // 3
    parts, scales, zeros = args[:count], args[count : 2 * count], args[2 * count : 3 * count]
    rows = zip(parts, scales, zeros, strict=True)
    joined = [integers(real(*row), *args[-2:], parts[0].dtype) for row in rows]
    return np.concatenate(joined, a.axis)


def exact(name: str, weight_axis):
    """The oracle of a sum of products: that of the plain operator on centred integers."""

    def run(a, x, w, x_zero, w_zero, _x_scale, _w_scale):
        x = x.astype(np.int64) - x_zero
        w = w.astype(np.int64) - spread(w_zero, weight_axis(a), w.ndim)
        return ORACLES[name](a, x, w).astype(np.int32)

    oracle(name.replace("nn.", "qnn."))(run)


exact("nn.dense", lambda a: 0)
exact("nn.contrib_dense_pack", lambda a: 0)
exact("nn.conv2d_transpose", lambda a: 1)


@oracle("qnn.conv2d")
def _(a, x, w, x_zero, w_zero, _x_scale, _w_scale):
    w = w.astype(np.int64) - spread(w_zero, a.kernel_layout.index("O"), 4)
    w = w.transpose([a.kernel_layout.index(axis) for axis in "OIHW"])
    return ORACLES["nn.conv2d"](a, x.astype(np.int64) - x_zero, w).astype(np.int32)


def block_weights(a, words, scale, zero):
    """The weights of few bits as they are packed, and what they stand for: (units, inputs)."""

    def columns(t):
        return t.transpose(0, 2, 1).reshape(-1, t.shape[1])[: a.units] if t.ndim == 3 else t

    words, scale, zero = (columns(np.asarray(t)) for t in (words, scale, zero))
    places = np.arange(0, 32, a.bits)
    q = (words.astype(np.int64)[..., None] >> places & ((1 << a.bits) - 1)).reshape(len(words), -1)
    of_block = q.shape[1] // scale.shape[1]
    wide = [t if t.ndim == 0 else np.repeat(t, of_block, 1) for t in (zero, scale)]
    return (q - wide[0].astype(np.float64)) * wide[1]


@oracle("nn.contrib_dense_bits")
def _(a, x, words, scale, zero):
    return x @ block_weights(a, words, scale, zero).T


@oracle("qnn.contrib_dense_bits")
def _(a, x, words, scale, zero, x_scale):
    places = 8 // a.bits
    x = x.astype(np.float64)
    straight = x.reshape(*x.shape[:-1], -1, places, 4).swapaxes(-1, -2).reshape(x.shape)
    straight = straight * np.repeat(x_scale, x.shape[-1] // x_scale.shape[-1], -1)
    return straight @ block_weights(a, words, scale, zero).T


@oracle("qnn.batch_matmul")
def _(a, x, y, x_zero, y_zero, _x_scale, _y_scale):
    plain = SimpleNamespace(transpose_a=False, transpose_b=True)
    y = y.astype(np.int64) - spread(y_zero, 1, 3)
    return ORACLES["nn.batch_matmul"](plain, x.astype(np.int64) - x_zero, y).astype(np.int32)
