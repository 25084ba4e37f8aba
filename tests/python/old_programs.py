"""Small programs in the style of the first Relay's tutorials and tests, with their results by NumPy.

A row: a name, a function from Relay's names to a program (a function, or a module for `tvm`), the
arrays that it is run with, and the results. `ABSENT` has the programs that do not run, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RNG = np.random.default_rng(11)
F = np.float32


def rand(*shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Returns random float32."""
    return RNG.uniform(low, high, shape).astype(F)


@dataclass(frozen=True)
class Program:
    """A row of the table."""

    make: Callable[[Any], Any]
    arrays: tuple[np.ndarray, ...]
    results: Any
    rtol: float = 1e-4


PROGRAMS: dict[str, Program] = {}


def program(
    name: str, make: Callable[..., Any], arrays: Any, results: Any, rtol: float = 1e-4
) -> None:
    """Adds a function of the arrays: `make(relay, *variables)` is its body."""
    given = tuple(np.asarray(a) for a in (arrays if isinstance(arrays, tuple) else (arrays,)))

    def function(relay: Any) -> Any:
        names = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(given)]
        return relay.Function(names, make(relay, *names))

    assert name not in PROGRAMS
    PROGRAMS[name] = Program(function, given, results, rtol)


def whole(name: str, arrays: tuple, results: Any) -> Callable[..., Any]:
    """Adds a function that makes its own variables."""

    def add(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[name] = Program(make, tuple(np.asarray(a) for a in arrays), results)
        return make

    return add


# ---- One operator --------------------------------------------------------------------------------

A, B = rand(3, 4), rand(3, 4)
POSITIVE = rand(3, 4, low=0.1, high=3.0)
WHOLE = RNG.integers(1, 9, (3, 4)).astype("int32")
OTHER = RNG.integers(1, 9, (3, 4)).astype("int32")

_erf = np.vectorize(math.erf)
for _name, _ref, _data in (
    ("log", np.log, POSITIVE), ("exp", np.exp, A), ("sqrt", np.sqrt, POSITIVE),
    ("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE), ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), A),
    ("tanh", np.tanh, A), ("sin", np.sin, A), ("cos", np.cos, A), ("tan", np.tan, A),
    ("atan", np.arctan, A), ("asin", np.arcsin, A), ("acos", np.arccos, A), ("sinh", np.sinh, A),
    ("cosh", np.cosh, A), ("asinh", np.arcsinh, A), ("atanh", np.arctanh, A * F(0.9)),
    ("acosh", np.arccosh, POSITIVE + 1), ("log2", np.log2, POSITIVE), ("log10", np.log10, POSITIVE),
    ("erf", _erf, A), ("floor", np.floor, 3 * A), ("ceil", np.ceil, 3 * A), ("trunc", np.trunc, 3 * A),
    ("round", np.round, 3 * A), ("abs", np.abs, A), ("sign", np.sign, A), ("negative", np.negative, A),
    ("copy", np.copy, A), ("zeros_like", np.zeros_like, A), ("ones_like", np.ones_like, A),
    ("isnan", np.isnan, A), ("isfinite", np.isfinite, A), ("isinf", np.isinf, A),
    ("logical_not", np.logical_not, A > 0), ("bitwise_not", np.bitwise_not, WHOLE),
):  # fmt: skip
    program(f"unary_{_name}", lambda relay, x, n=_name: getattr(relay, n)(x), _data, _ref(_data))

for _name, _ref, _data in (
    ("add", np.add, (A, B)), ("subtract", np.subtract, (A, B)), ("multiply", np.multiply, (A, B)),
    ("divide", np.divide, (A, B)), ("maximum", np.maximum, (A, B)), ("minimum", np.minimum, (A, B)),
    ("power", np.power, (POSITIVE, B)), ("floor_divide", np.floor_divide, (WHOLE, OTHER)),
    ("floor_mod", np.mod, (WHOLE, OTHER)), ("mod", np.fmod, (WHOLE, OTHER)),
    ("equal", np.equal, (WHOLE, OTHER)), ("not_equal", np.not_equal, (WHOLE, OTHER)),
    ("less", np.less, (A, B)), ("less_equal", np.less_equal, (A, B)), ("greater", np.greater, (A, B)),
    ("greater_equal", np.greater_equal, (A, B)), ("logical_and", np.logical_and, (A > 0, B > 0)),
    ("logical_or", np.logical_or, (A > 0, B > 0)), ("logical_xor", np.logical_xor, (A > 0, B > 0)),
    ("bitwise_and", np.bitwise_and, (WHOLE, OTHER)), ("bitwise_or", np.bitwise_or, (WHOLE, OTHER)),
    ("bitwise_xor", np.bitwise_xor, (WHOLE, OTHER)), ("left_shift", np.left_shift, (WHOLE, OTHER)),
    ("right_shift", np.right_shift, (WHOLE, OTHER)),
):  # fmt: skip
    program(
        f"binary_{_name}", lambda relay, x, y, n=_name: getattr(relay, n)(x, y), _data, _ref(*_data)
    )

for _name, _ref in (
    ("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean), ("prod", np.prod),
    ("argmax", np.argmax), ("argmin", np.argmin), ("variance", np.var), ("std", np.std),
):  # fmt: skip
    for _axis in (None, 0, 1):
        program(
            f"reduce_{_name}_{_axis}",
            lambda relay, x, n=_name, a=_axis: getattr(relay, n)(x, axis=a), A, _ref(A, axis=_axis),
        )  # fmt: skip
program("reduce_all", lambda relay, x: relay.all(x, axis=1), A > -0.5, np.all(A > -0.5, 1))
program("reduce_any", lambda relay, x: relay.any(x, axis=0), A > 0.5, np.any(A > 0.5, 0))
program(
    "sum_keepdims",
    lambda relay, x: relay.sum(x, axis=[1], keepdims=True),
    A,
    A.sum(1, keepdims=True),
)
program("sum_exclude", lambda relay, x: relay.sum(x, axis=1, exclude=True), A, A.sum(0))
program("sum_of_bool", lambda relay, x: relay.sum(x), A > 0, np.sum(A > 0))
program("logsumexp", lambda relay, x: relay.logsumexp(x, axis=1), A, np.log(np.exp(A).sum(1)))
program("cumsum", lambda relay, x: relay.cumsum(x, axis=1), A, np.cumsum(A, 1))
program("cumprod", lambda relay, x: relay.cumprod(x, axis=0), A, np.cumprod(A, 0))

# ---- Python's operators --------------------------------------------------------------------------

program(
    "python_arithmetic",
    lambda relay, x, y: (x + y) * x - y / relay.const(2.0),
    (A, B),
    (A + B) * A - B / 2,
)
program("python_comparison", lambda relay, x, y: x < y, (A, B), A < B)
program("python_negative", lambda relay, x: -x, A, -A)
program("python_reflected", lambda relay, x: 2.0 - x, A, 2 - A)
program("python_astype", lambda relay, x: x.astype("int32"), 5 * A, (5 * A).astype("int32"))
program("python_tuple_item", lambda relay, x: relay.split(x, 2, axis=1)[1], A, A[:, 2:])

# ---- Shapes --------------------------------------------------------------------------------------

C = rand(2, 3, 4)
program("reshape", lambda relay, x: relay.reshape(x, (4, -1)), C, C.reshape(4, -1))
program("reshape_zero", lambda relay, x: relay.reshape(x, (0, -1)), C, C.reshape(2, 12))
program("reshape_minus_two", lambda relay, x: relay.reshape(x, (2, -2)), C, C)
program("reshape_minus_three", lambda relay, x: relay.reshape(x, (-3, 4)), C, C.reshape(6, 4))
program(
    "reshape_minus_four",
    lambda relay, x: relay.reshape(x, (-4, 1, 2, -2)),
    C,
    C.reshape(1, 2, 3, 4),
)
program("transpose", lambda relay, x: relay.transpose(x, (2, 0, 1)), C, C.transpose(2, 0, 1))
program("transpose_all", lambda relay, x: relay.transpose(x), C, C.T)
program(
    "expand_dims", lambda relay, x: relay.expand_dims(x, axis=1, num_newaxis=2), A, A[:, None, None]
)
program("squeeze", lambda relay, x: relay.squeeze(x, axis=[1]), A[:, None], A)
program(
    "concatenate",
    lambda relay, x, y: relay.concatenate((x, y), axis=1),
    (A, B),
    np.concatenate((A, B), 1),
)
program("stack", lambda relay, x, y: relay.stack([x, y], axis=1), (A, B), np.stack((A, B), 1))
program("split", lambda relay, x: relay.split(x, 2, axis=1), A, tuple(np.split(A, 2, 1)))
program(
    "split_at", lambda relay, x: relay.split(x, (1, 3), axis=1), A, tuple(np.split(A, [1, 3], 1))
)
program("tile", lambda relay, x: relay.tile(x, (2, 1)), A, np.tile(A, (2, 1)))
program("repeat", lambda relay, x: relay.repeat(x, 2, axis=1), A, np.repeat(A, 2, 1))
program("reverse", lambda relay, x: relay.reverse(x, axis=1), A, A[:, ::-1])
program(
    "broadcast_to",
    lambda relay, x: relay.broadcast_to(x, (2, 3, 4)),
    A,
    np.broadcast_to(A, (2, 3, 4)),
)
program(
    "broadcast_to_like",
    lambda relay, x, y: relay.broadcast_to_like(x, y),
    (A, C),
    np.broadcast_to(A, (2, 3, 4)),
)
program("collapse_sum_like", lambda relay, x, y: relay.collapse_sum_like(x, y), (C, A), C.sum(0))
program(
    "strided_slice", lambda relay, x: relay.strided_slice(x, [0, 1], [3, 4], [1, 2]), A, A[:, 1:4:2]
)
program(
    "strided_slice_back", lambda relay, x: relay.strided_slice(x, [2], [-10], [-1]), A, A[2::-1]
)
program(
    "slice_like",
    lambda relay, x, y: relay.slice_like(x, y, axes=(1,)),
    (A, B[:, :2].copy()),
    A[:, :2],
)
program(
    "reverse_sequence",
    lambda relay, x, n: relay.reverse_sequence(x, n, 1, 0),
    (A, np.array([1, 2, 4], "int32")),
    np.stack([np.r_[r[:n][::-1], r[n:]] for r, n in zip(A, (1, 2, 4), strict=True)]),
)
program("meshgrid", lambda relay, x, y: relay.meshgrid([x, y], indexing="ij"), (A[0], B[:, 0].copy()),
        tuple(np.meshgrid(A[0], B[:, 0], indexing="ij")))  # fmt: skip
program("shape_of", lambda relay, x: relay.shape_of(x), C, np.array([2, 3, 4], "int32"))
program("ndarray_size", lambda relay, x: relay.ndarray_size(x), C, np.int32(24))
program("full", lambda relay, x: relay.full(x, (2, 2), "float32"), F(3), np.full((2, 2), 3, F))
program("arange", lambda relay, x: relay.arange(relay.const(1), relay.const(9), relay.const(2), "int32") + x,
        np.int32(1), np.arange(1, 9, 2) + 1)  # fmt: skip
program("cast", lambda relay, x: relay.cast(x, "int8"), 5 * A, (5 * A).astype("int8"))
program("cast_like", lambda relay, x, y: relay.cast_like(x, y), (A, WHOLE), A.astype("int32"))
program("clip", lambda relay, x: relay.clip(x, -0.5, 0.5), A, np.clip(A, -0.5, 0.5))
program(
    "trilu", lambda relay, x: relay.trilu(x, relay.const(0, "int32"), upper=True), A, np.triu(A)
)
program("matrix_set_diag", lambda relay, x, y: relay.matrix_set_diag(x, y), (A, B[0, :3].copy()),
        A * (1 - np.eye(3, 4, dtype=F)) + np.eye(3, 4, dtype=F) * B[0, :3][:, None])  # fmt: skip

# ---- Indices -------------------------------------------------------------------------------------

PLACES = np.array([2, 0], "int32")
program("take", lambda relay, x, i: relay.take(x, i, axis=0), (A, PLACES), A[PLACES])
program(
    "take_flat",
    lambda relay, x, i: relay.take(x, i),
    (A, np.array([5, 1], "int32")),
    A.ravel()[[5, 1]],
)
program(
    "take_wrap",
    lambda relay, x, i: relay.take(x, i, axis=0, mode="wrap"),
    (A, np.array([4, -1], "int32")),
    A[[1, 2]],
)
program(
    "gather",
    lambda relay, x, i: relay.gather(x, 1, i),
    (A, np.array([[0, 3]] * 3, "int32")),
    A[:, [0, 3]],
)
program(
    "gather_nd",
    lambda relay, x, i: relay.gather_nd(x, i),
    (A, np.array([[0, 2], [1, 3]], "int32")),
    A[[0, 2], [1, 3]],
)
program("scatter_elements", lambda relay, x, i, u: relay.scatter_elements(x, i, u, axis=0),
        (A, np.array([[1, 2, 0, 0]], "int64"), B[:1].copy()),
        np.stack([np.where(np.array([1, 2, 0, 0]) == r, B[0], A[r]) for r in range(3)]))  # fmt: skip
program("scatter_nd", lambda relay, x, i, u: relay.scatter_nd(x, i, u, "update"),
        (A, np.array([[1]], "int64"), B[:1].copy()), np.stack([A[0], B[0], A[2]]))  # fmt: skip
program("where", lambda relay, c, x, y: relay.where(c, x, y), (A > 0, A, B), np.where(A > 0, A, B))
program("argsort", lambda relay, x: relay.argsort(x, axis=1, dtype="int32"), A, np.argsort(A, 1))
program("sort", lambda relay, x: relay.sort(x, axis=1, is_ascend=False), A, -np.sort(-A, 1))
program("topk", lambda relay, x: relay.topk(x, k=2, ret_type="values"), A, -np.sort(-A, 1)[:, :2])
program(
    "one_hot",
    lambda relay, i: relay.one_hot(i, relay.const(1.0), relay.const(0.0), 4, -1, "float32"),
    PLACES,
    np.eye(4, dtype=F)[PLACES],
)
program(
    "sequence_mask",
    lambda relay, x, n: relay.sequence_mask(x, n, 0.0, 1),
    (A, np.array([1, 4, 2], "int32")),
    np.where(np.arange(4) < np.array([[1], [4], [2]]), A, 0),
)
program(
    "searchsorted",
    lambda relay, x, y: relay.searchsorted(x, y),
    (np.sort(A[0]), B[1].copy()),
    np.searchsorted(np.sort(A[0]), B[1]),
)
program(
    "adv_index",
    lambda relay, x, i, j: relay.adv_index([x, i, j]),
    (A, PLACES, np.array([1, 3], "int32")),
    A[PLACES, [1, 3]],
)
program("unravel_index", lambda relay, i, s: relay.unravel_index(i, s), (np.array([5, 11]), np.array([3, 4])),
        np.stack(np.unravel_index([5, 11], (3, 4))))  # fmt: skip

# ---- Layers --------------------------------------------------------------------------------------

IMAGE, KERNEL = rand(1, 3, 6, 6), rand(2, 3, 3, 3)


def conv2d(x: np.ndarray, w: np.ndarray, pad: int = 0, stride: int = 1) -> np.ndarray:
    """Returns the convolution, window by window."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    h, v = ((x.shape[i] - w.shape[i]) // stride + 1 for i in (2, 3))
    out = np.zeros((x.shape[0], w.shape[0], h, v), F)
    for i, j in np.ndindex(h, v):
        part = x[:, :, i * stride : i * stride + w.shape[2], j * stride : j * stride + w.shape[3]]
        out[:, :, i, j] = np.tensordot(part, w, [[1, 2, 3], [1, 2, 3]])
    return out


def windows(x: np.ndarray, size: int, of: Callable[..., np.ndarray]) -> np.ndarray:
    """Returns a function of the windows, which lie side by side."""
    n, c, h, w = x.shape
    return of(x.reshape(n, c, h // size, size, w // size, size), axis=(3, 5))


def softmax(x: np.ndarray) -> np.ndarray:
    """Returns the softmax of the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


program(
    "conv2d",
    lambda relay, x, w: relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=2),
    (IMAGE, KERNEL),
    conv2d(IMAGE, KERNEL),
)
program(
    "conv2d_same",
    lambda relay, x, w: relay.nn.conv2d(x, w, padding=(1, 1)),
    (IMAGE, KERNEL),
    conv2d(IMAGE, KERNEL, 1),
)
program(
    "conv2d_strided",
    lambda relay, x, w: relay.nn.conv2d(x, w, strides=(2, 2), padding=(1, 1, 1, 1)),
    (IMAGE, KERNEL),
    conv2d(IMAGE, KERNEL, 1, 2),
)
program(
    "conv2d_nhwc",
    lambda relay, x, w: relay.nn.conv2d(
        x, w, data_layout="NHWC", kernel_layout="HWIO", channels=2, kernel_size=(3, 3)
    ),
    (IMAGE.transpose(0, 2, 3, 1).copy(), KERNEL.transpose(2, 3, 1, 0).copy()),
    conv2d(IMAGE, KERNEL).transpose(0, 2, 3, 1),
)
program("conv_bias_relu", lambda relay, x, w, b: relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w), b)),
        (IMAGE, KERNEL, rand(2)), None)  # fmt: skip
PROGRAMS["conv_bias_relu"] = Program(
    PROGRAMS["conv_bias_relu"].make, PROGRAMS["conv_bias_relu"].arrays,
    np.maximum(conv2d(IMAGE, KERNEL) + PROGRAMS["conv_bias_relu"].arrays[2][:, None, None], 0),
)  # fmt: skip
program("dense", lambda relay, x, w: relay.nn.dense(x, w), (A, B), A @ B.T)
program("dense_units", lambda relay, x, w: relay.nn.dense(x, w, units=3), (A, B), A @ B.T)
program("matmul", lambda relay, x, w: relay.nn.matmul(x, w), (A, B.T.copy()), A @ B.T)
program(
    "batch_matmul",
    lambda relay, x, y: relay.nn.batch_matmul(x, y),
    (C, C),
    C @ C.transpose(0, 2, 1),
)
program("bias_add", lambda relay, x, b: relay.nn.bias_add(x, b), (A, B[0].copy()), A + B[0])
program("relu", lambda relay, x: relay.nn.relu(x), A, np.maximum(A, 0))
program(
    "leaky_relu",
    lambda relay, x: relay.nn.leaky_relu(x, alpha=0.1),
    A,
    np.where(A > 0, A, F(0.1) * A),
)
program(
    "prelu",
    lambda relay, x, a: relay.nn.prelu(x, a),
    (A, B[0].copy()),
    np.where(A > 0, A, B[0] * A),
)
program("softmax", lambda relay, x: relay.nn.softmax(x), A, softmax(A))
program("log_softmax", lambda relay, x: relay.nn.log_softmax(x, axis=1), A, np.log(softmax(A)))
program(
    "max_pool2d",
    lambda relay, x: relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2)),
    IMAGE,
    windows(IMAGE, 2, np.max),
)
program(
    "avg_pool2d",
    lambda relay, x: relay.nn.avg_pool2d(x, (3, 3), (3, 3)),
    IMAGE,
    windows(IMAGE, 3, np.mean),
)
program(
    "global_avg_pool2d",
    lambda relay, x: relay.nn.global_avg_pool2d(x),
    IMAGE,
    IMAGE.mean((2, 3), keepdims=True),
)
program(
    "adaptive_max_pool2d",
    lambda relay, x: relay.nn.adaptive_max_pool2d(x, (2, 2)),
    IMAGE,
    windows(IMAGE, 3, np.max),
)
program("batch_flatten", lambda relay, x: relay.nn.batch_flatten(x), IMAGE, IMAGE.reshape(1, -1))
program(
    "flatten_dense",
    lambda relay, x, w: relay.nn.dense(relay.nn.batch_flatten(x), w),
    (IMAGE, rand(2, 108)),
    None,
)
PROGRAMS["flatten_dense"] = Program(
    PROGRAMS["flatten_dense"].make, PROGRAMS["flatten_dense"].arrays,
    IMAGE.reshape(1, -1) @ PROGRAMS["flatten_dense"].arrays[1].T,
)  # fmt: skip
program(
    "pad",
    lambda relay, x: relay.nn.pad(x, ((1, 1), (0, 2)), 9.0),
    A,
    np.pad(A, ((1, 1), (0, 2)), constant_values=9),
)
program(
    "mirror_pad",
    lambda relay, x: relay.nn.mirror_pad(x, ((1, 1), (1, 1)), "REFLECT"),
    A,
    np.pad(A, 1, "reflect"),
)
program(
    "upsampling",
    lambda relay, x: relay.nn.upsampling(x, 2, 2),
    IMAGE,
    IMAGE.repeat(2, 2).repeat(2, 3),
)
program("layer_norm", lambda relay, x, g, b: relay.nn.layer_norm(x, g, b), (A, B[0].copy(), B[1].copy()),
        (A - A.mean(1, keepdims=True)) / np.sqrt(A.var(1, keepdims=True) + 1e-5) * B[0] + B[1])  # fmt: skip
program("batch_norm", lambda relay, x, g, b, m, v: relay.nn.batch_norm(x, g, b, m, v)[0],
        (A, B[0].copy(), B[1].copy(), B[2].copy(), POSITIVE[0].copy()),
        (A - B[2]) / np.sqrt(POSITIVE[0] + 1e-5) * B[0] + B[1])  # fmt: skip
program(
    "l2_normalize",
    lambda relay, x: relay.nn.l2_normalize(x, 1e-5, [1]),
    A,
    A / np.sqrt(np.maximum((A * A).sum(1, keepdims=True), 1e-5)),
)
program("dropout", lambda relay, x: relay.nn.dropout(x, 0.5), A, A)
program(
    "depth_to_space",
    lambda relay, x: relay.nn.depth_to_space(relay.nn.space_to_depth(x, 2), 2),
    IMAGE,
    IMAGE,
)
program(
    "cross_entropy",
    lambda relay, x, y: relay.nn.cross_entropy(x, y),
    (softmax(A), softmax(B)),
    -(np.log(softmax(A)) * softmax(B)).sum() / 3,
)
program(
    "resize2d_nearest",
    lambda relay, x: relay.image.resize2d(
        x, (12, 12), None, "NCHW", "nearest_neighbor", "asymmetric"
    ),
    IMAGE,
    IMAGE.repeat(2, 2).repeat(2, 3),
)
program(
    "layout_transform",
    lambda relay, x: relay.layout_transform(x, "NCHW", "NHWC"),
    IMAGE,
    IMAGE.transpose(0, 2, 3, 1),
)
program("einsum", lambda relay, x, y: relay.einsum((x, y), "ij,kj->ik"), (A, B), A @ B.T)
program(
    "quantize",
    lambda relay, x: relay.qnn.op.quantize(x, relay.const(0.1), relay.const(3), out_dtype="int8"),
    A,
    np.clip(np.round(A / F(0.1)) + 3, -128, 127).astype("int8"),
)
program(
    "quantize to int32",
    lambda relay, x: relay.qnn.op.quantize(x, relay.const(1e-3), relay.const(7), out_dtype="int32"),
    A,
    np.round(A / F(1e-3)).astype("int32") + 7,
)
program(
    "dequantize",
    lambda relay, x: relay.qnn.op.dequantize(x, relay.const(0.5), relay.const(2)),
    WHOLE.astype("int8"),
    (WHOLE - 2) * F(0.5),
)

# ---- The language --------------------------------------------------------------------------------


@whole("let", (A,), (A + A) * 2)
def _let(relay: Any) -> Any:
    x, y = relay.var("x", shape=(3, 4)), relay.var("y")
    return relay.Function([x], relay.Let(y, relay.add(x, x), y * relay.const(2.0)))


@whole("if_then_else", (np.array(True), A), np.exp(A))
def _branch(relay: Any) -> Any:
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(3, 4))
    return relay.Function([c, x], relay.If(c, relay.exp(x), relay.negative(x)))


@whole("scope_builder", (np.int32(5),), 10)
def _scope(relay: Any) -> Any:
    n = relay.var("n", shape=(), dtype="int32")
    sb = relay.ScopeBuilder()
    with sb.if_scope(relay.less(n, relay.const(3, "int32"))):
        sb.ret(n)
    with sb.else_scope():
        twice = sb.let("twice", n + n)
        sb.ret(twice)
    return relay.Function([n], sb.get())


@whole("closure", (A,), A + A)
def _closure(relay: Any) -> Any:
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    inner = relay.Function([y], x + y)
    return relay.Function([x], relay.Call(inner, [x]))


@whole("tuple_in_tuple", (A,), A * 2)
def _nested(relay: Any) -> Any:
    x = relay.var("x", shape=(3, 4))
    nested = relay.Tuple([x, relay.Tuple([x + x, x])])
    item = relay.TupleGetItem(relay.TupleGetItem(nested, 1), 0)
    return relay.Function([x], item)


@whole("reference", (np.int32(4),), 5)
def _reference(relay: Any) -> Any:
    n = relay.var("n", shape=(), dtype="int32")
    cell, unit = relay.var("cell"), relay.var("unit")
    write = relay.RefWrite(cell, relay.RefRead(cell) + relay.const(1, "int32"))
    body = relay.Let(cell, relay.RefCreate(n), relay.Let(unit, write, relay.RefRead(cell)))
    return relay.Function([n], body)


@whole("while_loop", (np.int32(5),), 10)
def _loop(relay: Any) -> Any:
    n = relay.var("n", shape=(), dtype="int32")
    i, t = (relay.var(name, shape=(), dtype="int32") for name in "it")
    loop = relay.loops.while_loop(
        lambda i, t: relay.less(i, n), [i, t], lambda i, t: [i + relay.const(1, "int32"), t + i]
    )
    zero = relay.const(0, "int32")
    return relay.Function([n], relay.TupleGetItem(loop(zero, zero), 1))


@whole("text", (A, B), A + B)
def _text(relay: Any) -> Any:
    return relay.fromtext(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(3, 4), float32], %y: Tensor[(3, 4), float32]) { %x + %y }"
    )["main"]


@whole("gradient_by_hand", (A,), (np.sum(A * A), (2 * A,)))
def _gradient(relay: Any) -> Any:
    x = relay.var("x", shape=(3, 4))
    return relay.transform.gradient(relay.Function([x], relay.sum(x * x)))


@whole("bound_parameters", (A,), A + B)
def _bound(relay: Any) -> Any:
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    return relay.bind_params_by_name(relay.Function([x, y], x + y), {"y": B})


@whole("mutator", (A,), np.tanh(np.tanh(A)))
def _mutator(relay: Any) -> Any:
    x = relay.var("x", shape=(3, 4))

    class Replace(relay.ExprMutator):
        def visit_call(self, call: Any) -> Any:
            args = [self.visit(a) for a in call.args]
            return (
                relay.tanh(args[0]) if call.op == relay.op.get("exp") else relay.Call(call.op, args)
            )

    return Replace().visit(relay.Function([x], relay.exp(relay.exp(x))))


@whole("pattern_rewrite", (A,), np.maximum(A, 0))
def _rewrite(relay: Any) -> Any:
    patterns = relay.dataflow_pattern

    class Simplify(patterns.DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.x = patterns.wildcard()
            self.pattern = patterns.is_op("nn.relu")(patterns.is_op("nn.relu")(self.x))

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return relay.nn.relu(node_map[self.x][0])

    x = relay.var("x", shape=(3, 4))
    return relay.Function([x], patterns.rewrite(Simplify(), relay.nn.relu(relay.nn.relu(x))))


# Programs that do not run, each with the message that says why.
ABSENT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "two_dtypes": (
        lambda relay: relay.add(relay.var("x", shape=(2,), dtype="int32"), relay.const(1.5)),
        "the arguments have different dtypes",
    ),
    "transformed_weight": (
        lambda relay: relay.nn.contrib_conv3d_winograd_weight_transform,
        "the compiler chooses layouts",
    ),
    "function_on_device": (
        lambda relay: relay.annotation.function_on_device, "on_device and device_copy place expressions",
    ),
    "device": (
        lambda relay: relay.device_copy(relay.var("x", shape=(2,)), "cpu", "moon"),
        "there is no device 'moon'",
    ),
    "external_code": (
        lambda relay: relay.build(
            relay.transform.PartitionGraph()(
                relay.transform.InferType()(
                    relay.IRModule.from_expr(
                        relay.Function(
                            [x := relay.var("x", shape=(2,))],
                            relay.annotation.compiler_end(
                                relay.exp(relay.annotation.compiler_begin(x, "dnnl")), "dnnl"
                            ),
                        )
                    )
                )
            )
        ),
        'no external code generator "dnnl"',
    ),
    "sqrt_of_integers": (
        lambda relay: relay.sqrt(relay.var("x", shape=(2,), dtype="int32")), "needs a floating dtype",
    ),
    "untyped_text": (
        lambda relay: relay.fromtext('#[version = "0.0.5"]\ndef @main(%x) { %x }'),
        "the type of %x cannot be inferred",
    ),
    "untyped_parameter": (
        lambda relay: relay.create_executor(
            "debug"
        ).evaluate(relay.Function([x := relay.var("x")], relay.exp(x))),
        "the type of %x cannot be inferred",
    ),
    "tensorflow": (lambda relay: relay.frontend.from_tensorflow, "convert models of other formats"),
    "collage_partition": (lambda relay: relay.transform.CollagePartition, "first of the targets"),
    "legalize": (lambda relay: relay.transform.Legalize, "CanonicalizeOps"),
    "span": (lambda relay: relay.Span, "the location of an expression is text"),
    "quantize_annotate": (lambda relay: relay.quantize.annotate, "a single step"),
}  # fmt: skip
