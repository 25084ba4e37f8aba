"""NumPy's functions of linear algebra, composed of products, sums, inverses and determinants."""

from __future__ import annotations

import math

import numpy as np

from relay import _core
from relay._function.numpy.registry import numpy_function, there
from relay._function.operations.arithmetic import apply, cast, in_float32
from relay._function.operations.arrays import (
    axes_of,
    count_of,
    known,
    matmul,
    reshape,
    same_dtype,
    size_value,
    stacked,
    tensor_of,
)
from relay._function.operations.shorthand import (
    absolute,
    along,
    choose,
    eq,
    flat,
    floating,
    mul,
    ne,
    need,
    positions,
    power,
    sqrt,
    sub,
    taken,
    value_of,
)
from relay._function.values import Static, Tensor, Tuple
from relay._ops.call import call


def _contracted(a: Tensor, b: Tensor, left: list[int], right: list[int]) -> Tensor:
    """The sum over pairs of axes: a product of two matrices."""
    a, b = same_dtype([a, b])
    keep_a = [i for i in range(len(a.shape)) if i not in left]
    keep_b = [i for i in range(len(b.shape)) if i not in right]
    shape = Tuple((*(size_value(a, i) for i in keep_a), *(size_value(b, i) for i in keep_b)))
    # Every size is computed: -1 is undefined beside an inner size of 0.
    inner = count_of(a, left)
    rows, columns = Tuple((count_of(a, keep_a), inner)), Tuple((inner, count_of(b, keep_b)))
    a = Tensor(call("transpose", a.expr, axes=keep_a + left))
    b = Tensor(call("transpose", b.expr, axes=right + keep_b))
    return reshape(matmul(reshape(a, rows), reshape(b, columns)), shape)


@numpy_function("tensordot", "linalg.tensordot")
def _tensordot(a, b, axes=2):
    a, b = tensor_of(a), tensor_of(b)
    given = known(axes, "axes")
    if isinstance(given, int):
        left = list(range(len(a.shape) - given, len(a.shape)))
        right = list(range(given))
    else:
        left, right = ([v] if isinstance(v, int) else list(v) for v in given)
        left, right = [i % len(a.shape) for i in left], [i % len(b.shape) for i in right]
    need(len(left) == len(right), "as many axes of the first as of the second are summed")
    if not a.shape or not b.shape:
        return mul(a, b)
    return _contracted(a, b, left, right)


@numpy_function("dot", method=True)
def _dot(a, b):
    a, b = tensor_of(a), tensor_of(b)
    if not a.shape or not b.shape:
        return mul(a, b)
    if len(b.shape) <= 2:
        return matmul(a, b)
    return _contracted(a, b, [len(a.shape) - 1], [len(b.shape) - 2])


@numpy_function("inner")
def _inner(a, b):
    a, b = tensor_of(a), tensor_of(b)
    if not a.shape or not b.shape:
        return mul(a, b)
    if len(a.shape) == len(b.shape) == 1:
        return matmul(a, b)
    return _contracted(a, b, [len(a.shape) - 1], [len(b.shape) - 1])


@numpy_function("vdot")
def _vdot(a, b):
    return matmul(flat(tensor_of(a)), flat(tensor_of(b)))


@numpy_function("vecdot")
def _vecdot(x1, x2):
    return _rows_dot(tensor_of(x1), tensor_of(x2))


@numpy_function("linalg.vecdot")
def _linalg_vecdot(x1, x2, axis=-1):
    a, b = tensor_of(x1), tensor_of(x2)
    at = known(axis, "axis")
    return _rows_dot(there("moveaxis")(a, at, -1), there("moveaxis")(b, at, -1))


def _rows_dot(a: Tensor, b: Tensor) -> Tensor:
    product = mul(a, b)
    return cast(there("sum")(product, -1), product.dtype)


@numpy_function("matvec")
def _matvec(x1, x2):
    x2 = tensor_of(x2)
    return _rows_dot(tensor_of(x1), there("expand_dims")(x2, -2))


@numpy_function("vecmat")
def _vecmat(x1, x2):
    turned = there("swapaxes")(tensor_of(x2), -1, -2)
    return _rows_dot(there("expand_dims")(tensor_of(x1), -2), turned)


@numpy_function("linalg.matmul")
def _linalg_matmul(x1, x2):
    return matmul(tensor_of(x1), tensor_of(x2))


@numpy_function("linalg.outer")
def _linalg_outer(x1, x2):
    return there("outer")(x1, x2)


@numpy_function("kron")
def _kron(a, b):
    a, b = tensor_of(a), tensor_of(b)
    rank = max(len(a.shape), len(b.shape))

    def lifted(x: Tensor) -> Tensor:
        lacking = rank - len(x.shape)
        return Tensor(call("expand_dims", x.expr, axis=0, num_newaxis=lacking)) if lacking else x

    a, b = lifted(a), lifted(b)
    shape = tuple(
        apply("multiply", value_of(size_value(a, i)), value_of(size_value(b, i)))
        for i in range(rank)
    )
    x, y = a.expr, b.expr
    for i in range(rank):
        x = call("expand_dims", x, axis=2 * i + 1)
        y = call("expand_dims", y, axis=2 * i)
    return reshape(mul(Tensor(x), Tensor(y)), Tuple(shape)) if rank else mul(a, b)


@numpy_function("cross")
def _cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    a, b = tensor_of(a), tensor_of(b)
    if known(axis, "axis") is not None:
        axisa = axisb = axisc = axis
    a, b = there("moveaxis")(a, axisa, -1), there("moveaxis")(b, axisb, -1)
    a, b = _of_three(a), _of_three(b)
    counts = a.shape[-1], b.shape[-1]
    need(set(counts) <= {2, 3}, "np.cross needs vectors of 3 numbers", "give the axis with axis=")

    def numbers(x: Tensor, count: int) -> list[Tensor]:
        at = len(x.shape) - 1
        return [taken(x, Tensor(_core.Constant(np.int64(i))), at) for i in range(count)]

    x, y = numbers(a, counts[0]), numbers(b, counts[1])
    last = sub(mul(x[0], y[1]), mul(x[1], y[0]))
    if counts == (2, 2):
        return last
    nothing = Static(0)
    x, y = ([*v, nothing] if len(v) == 2 else v for v in (x, y))
    first = sub(mul(x[1], y[2]), mul(x[2], y[1]))
    second = sub(mul(x[2], y[0]), mul(x[0], y[2]))
    rank = len(last.shape)
    at = known(axisc, "axisc") % (rank + 1)
    return stacked([first, second, last], at)


def _of_three(x: Tensor) -> Tensor:
    """The vectors, of 3 numbers where their size is open: a run checks it."""
    if isinstance(x.shape[-1], int):
        return x
    outer = (value_of(size_value(x, i)) for i in range(len(x.shape) - 1))
    return reshape(x, Tuple((*outer, Static(3))))


@numpy_function("linalg.cross")
def _linalg_cross(x1, x2, axis=-1):
    return _cross(x1, x2, axis=axis)


# ---- Matrices ------------------------------------------------------------------------------------


@numpy_function("linalg.matrix_power")
def _matrix_power(a, n):
    a, count = tensor_of(a), known(n, "n")
    need(isinstance(count, int), "the exponent of a matrix is known when the function is compiled",
         "write a for loop of products")  # fmt: skip
    if count < 0:
        a, count = Tensor(call("linalg.inv", floating(a).expr)), -count
    if count == 0:
        return _identity_like(a)
    out = None
    while count:
        if count & 1:
            out = a if out is None else matmul(out, a)
        count >>= 1
        a = matmul(a, a) if count else a
    return out


def _identity_like(a: Tensor) -> Tensor:
    rank = len(a.shape)
    at = positions(size_value(a, rank - 1))
    ones = cast(eq(along(at, rank - 2, rank), along(at, rank - 1, rank)), a.dtype)
    return choose(eq(ones, 1), ones, Tensor(call("zeros_like", a.expr))) if rank > 2 else ones


@numpy_function("linalg.multi_dot")
def _multi_dot(arrays):
    tensors = list(map(tensor_of, arrays.items))
    need(len(tensors) >= 2, "np.linalg.multi_dot takes two tensors or more")
    known_sizes = [t.shape for t in tensors]
    if all(isinstance(n, int) for shape in known_sizes for n in shape):
        return _best_order(tensors)
    out = tensors[0]
    for t in tensors[1:]:
        out = matmul(out, t)
    return out


def _best_order(tensors: list[Tensor]) -> Tensor:
    """The products in the order of the least multiplications (Cormen et al., matrix chains)."""
    rows = [t.shape[0] if len(t.shape) == 2 else 1 for t in tensors]
    last = tensors[-1]
    ends = [*rows, last.shape[1] if len(last.shape) == 2 else 1]
    if len(tensors[0].shape) == 1:
        ends[1] = tensors[0].shape[0]
    count = len(tensors)
    cost = {(i, i): (0, i) for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + ends[i] * ends[k + 1] * ends[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return tensors[i]
        k = cost[i, j][1]
        return matmul(product(i, k), product(k + 1, j))

    return product(0, count - 1)


@numpy_function("linalg.tensorinv")
def _tensorinv(a, ind=2):
    a, at = tensor_of(a), known(ind, "ind")
    shape = [size_value(a, i) for i in range(len(a.shape))]
    axes = [*range(len(shape))]
    square = reshape(floating(a), Tuple((count_of(a, axes[:at]), count_of(a, axes[at:]))))
    out = Tensor(call("linalg.inv", square.expr))
    return reshape(out, Tuple((*shape[at:], *shape[:at])))


@numpy_function("linalg.tensorsolve")
def _tensorsolve(a, b):
    a, b = floating(a), floating(b)
    rank = len(b.shape)
    shape = Tuple(tuple(size_value(a, i) for i in range(rank, len(a.shape))))
    line = flat(b)
    unknowns = count_of(a, [*range(rank, len(a.shape))])
    square = reshape(a, Tuple((value_of(size_value(line, 0)), unknowns)))
    return reshape(matmul(Tensor(call("linalg.inv", square.expr)), line), shape)


# ---- Norms ---------------------------------------------------------------------------------------


def _vector_norm(x: Tensor, ord_: object, axis: object, keepdims: object) -> Tensor:
    size = absolute(x)
    total = there("sum")
    if ord_ is None or ord_ == 2:
        return sqrt(total(mul(x, x), axis, None, keepdims))
    if ord_ == math.inf:
        return there("max")(size, axis, keepdims)
    if ord_ == -math.inf:
        return there("min")(size, axis, keepdims)
    if ord_ == 0:
        return total(cast(ne(x, 0), x.dtype), axis, None, keepdims)
    if ord_ == 1:
        return total(size, axis, None, keepdims)
    need(isinstance(ord_, (int, float)), f"no vector has the norm of order {ord_!r}")
    return power(total(power(size, float(ord_)), axis, None, keepdims), 1.0 / ord_)


_SINGULAR = "np.linalg.norm of a matrix is there without the orders of singular values: 2, -2, nuc"


def _matrix_norm(x: Tensor, ord_: object, axes: list[int], keepdims: object) -> Tensor:
    row, column = axes
    if ord_ in (None, "fro", "f"):
        return sqrt(there("sum")(mul(x, x), Tuple((Static(row), Static(column))), None, keepdims))
    need(ord_ in (1, -1, math.inf, -math.inf), _SINGULAR, "compute it outside, and pass the result")
    over, along_axis = (row, column) if ord_ in (1, -1) else (column, row)
    sums = there("sum")(absolute(x), over, None, True)
    pick = there("max" if ord_ in (1, math.inf) else "min")
    out = pick(sums, along_axis, True)
    if known(keepdims, "keepdims"):
        return out
    return Tensor(call("squeeze", out.expr, axis=sorted(axes)))


@numpy_function("linalg.norm", only="of matrices ord= fro, 1, -1, inf, -inf")
@in_float32
def _norm(x, ord=None, axis=None, keepdims=False):
    x, order = floating(x), known(ord, "ord")
    axes = axes_of(axis, x)
    if axes is None and (order is None or len(x.shape) == 1):
        return _vector_norm(x, order, None, keepdims)
    axes = list(range(len(x.shape))) if axes is None else axes
    if len(axes) == 1:
        return _vector_norm(x, order, axes[0], keepdims)
    need(len(axes) == 2, "np.linalg.norm takes one axis or two", "axis=")
    return _matrix_norm(x, order, axes, keepdims)


@numpy_function("linalg.vector_norm")
@in_float32
def _np_vector_norm(x, axis=None, keepdims=False, ord=2):
    return _vector_norm(floating(x), known(ord, "ord"), axis, keepdims)


@numpy_function("linalg.matrix_norm", only="ord= fro, 1, -1, inf, -inf")
@in_float32
def _np_matrix_norm(x, keepdims=False, ord="fro"):
    x = floating(x)
    return _matrix_norm(x, known(ord, "ord"), [len(x.shape) - 2, len(x.shape) - 1], keepdims)


@numpy_function("linalg.cond", only="p= fro, 1, -1, inf, -inf")
def _cond(x, p=None):
    x, order = floating(x), known(p, "p")
    need(order in ("fro", 1, -1, math.inf, -math.inf),
         "np.linalg.cond is there without the orders of singular values", "p=1, or p='fro'")  # fmt: skip
    axes = [len(x.shape) - 2, len(x.shape) - 1]
    inverse = Tensor(call("linalg.inv", x.expr))
    return mul(_matrix_norm(x, order, axes, False), _matrix_norm(inverse, order, axes, False))
