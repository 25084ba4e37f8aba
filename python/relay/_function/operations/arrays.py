"""Conversion of values to tensors, and code that NumPy's functions on whole tensors share."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from relay import _core
from relay._function.operations.arithmetic import (
    apply,
    cast,
    describe,
    filled,
    integers,
    is_number,
    numpy_dtype,
    size_or_number,
)
from relay._function.operations.indexing import get
from relay._function.syntax.errors import STATIC, VALUE, Refusal
from relay._function.values import (
    Chain,
    List,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
    as_expr,
    converted,
    is_text,
    number_type,
    range_of,
    sizes_in,
)
from relay._ops.call import call

_HELP = {
    "a key": "a dictionary has the same keys in every run; a table by numbers is an array, and that of a "
    "recursion's results one that a loop fills: t = np.zeros(n + 1), then t[i] = ... of t[i - 1]",
}


def known(value: object, what: str) -> object:
    """Returns the Python object of a known value; raises E0906 for others."""
    if not isinstance(value, Value):
        return value
    if isinstance(value, Static):
        return value.obj
    if isinstance(value, Size):
        return value.dim
    if isinstance(value, Tuple) and value.form is None:
        return tuple(known(item, what) for item in value.items)
    if isinstance(value, List):
        return [known(item, what) for item in value.items]
    raise Refusal(
        STATIC,
        f"{what} is known when the function is compiled",
        found=describe(value),
        help=_HELP.get(what, "write it as a constant, or annotate the parameter with relay.Static"),
    )


def tensor_of(value: Value) -> Tensor:
    """Returns the value as numpy.asarray does: nested lists are stacked."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (List, Tuple)):
        return stacked([tensor_of(item) for item in value.items], 0)
    if isinstance(value, Chain):
        raise Refusal(
            VALUE,
            "a list whose length is known only at run time is not a tensor",
            found=describe(value),
            help="fill a tensor instead: out = np.zeros(shape), then out[i] = v in the loop",
        )
    if not is_number(value) and not is_text(value):
        raise Refusal(VALUE, "a tensor or a number is needed", found=describe(value))
    return Tensor(as_expr(value), True, range=range_of(value))


def filled_each(value: Value, dtype: str) -> Value:
    """Returns the value with its numbers, also those in nested lists, converted as elements of that dtype."""
    if isinstance(value, (List, Tuple)):
        return Tuple(tuple(filled_each(item, dtype) for item in value.items))
    return Tensor(filled(value, dtype)) if is_number(value) else value


def operands_of(value: Value) -> list[Tensor]:
    """Returns the tensors of a list or tuple, in one dtype."""
    if isinstance(value, Tensor):
        if not value.shape or not isinstance(value.shape[0], int):
            raise Refusal(VALUE, "a list or tuple of tensors is needed", found=describe(value))
        rows = [Static(i) for i in range(value.shape[0])]
        return [get(value, row) for row in rows]
    if not isinstance(value, (List, Tuple)):
        tensor_of(value)
        raise Refusal(VALUE, "a list or tuple of tensors is needed", found=describe(value))
    return same_dtype([tensor_of(item) for item in value.items])


def same_dtype(tensors: list[Tensor]) -> list[Tensor]:
    if any(map(is_text, tensors)):
        return [cast(t, "string") for t in tensors]
    strong = [t.dtype for t in tensors if not t.weak] or [t.dtype for t in tensors]
    dtype = np.result_type(*map(numpy_dtype, strong)).name if strong else "float64"
    return [Tensor(converted(t, dtype)) if t.weak else cast(t, dtype) for t in tensors]


def stacked(tensors: list[Tensor], axis: int) -> Tensor:
    if not tensors:
        return Tensor(_core.Constant(np.zeros((0,))))
    exprs = [t.expr for t in same_dtype(tensors)]
    return Tensor(call("stack", _core.Tuple(exprs), axis=axis))


def axes_of(axis: object, tensor: Tensor) -> list[int] | None:
    """Returns an axis argument as a list of non-negative axes; None: all."""
    axis = known(axis, "axis")
    if axis is None:
        return None
    rank = len(tensor.shape)
    out = []
    for a in axis if isinstance(axis, (tuple, list)) else [axis]:
        if not isinstance(a, int) or isinstance(a, bool) or not -rank <= a < rank:
            raise Refusal(VALUE, f"axis {a!r} of a tensor of rank {rank}")
        out.append(a % rank)
    return out


def one_axis(axis: object, tensor: Tensor) -> int:
    axes = axes_of(axis, tensor)
    if axes is None or len(axes) != 1:
        raise Refusal(
            VALUE,
            "one axis is needed here",
            found="None" if axes is None else f"{len(axes)} axes",
            help="call it once for each axis; x.reshape(-1) has all elements along one",
        )
    return axes[0]


def shape_of(shape: object, what: str = "a shape") -> list | _core.Expr:
    """Returns a shape argument: sizes, or an expression if a size is known at run time only."""
    items = shape.items if isinstance(shape, (Tuple, List)) else [shape]
    if any(isinstance(item, Tensor) for item in items):
        if isinstance(shape, Tensor) and shape.shape:
            return integers(shape, f"the sizes of {what}")
        parts = [
            integers(i, f"the sizes of {what}") if isinstance(i, Tensor) else as_expr(i)
            for i in items
        ]
        return call("stack", _core.Tuple(parts), axis=0)
    out = known(shape, what)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def full(shape: object, value: Value, dtype: str) -> Tensor:
    sizes = shape_of(shape)
    fill = filled(value, dtype)
    if isinstance(sizes, _core.Expr):
        return Tensor(call("dyn.full", fill, sizes))
    if all(isinstance(n, int) for n in sizes) and min(sizes, default=0) < 0:
        raise Refusal(VALUE, f"a shape has no negative sizes: {tuple(sizes)}")
    return Tensor(call("full", fill, shape=sizes, dtype=dtype))


def reshape(tensor: Tensor, shape: object) -> Tensor:
    sizes = shape_of(shape)
    if isinstance(sizes, _core.Expr):
        out = call("dyn.reshape", tensor.expr, sizes, allowzero=True)
    else:
        out = call("reshape", tensor.expr, newshape=sizes, allowzero=True)
    return Tensor(out, False, tensor.roots)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """NumPy's product of matrices, vectors and batches of matrices."""
    a, b = same_dtype([a, b])
    return Tensor(product(a.expr, b.expr))


def product(x: _core.Expr, y: _core.Expr) -> _core.Expr:
    """The same for expressions of one dtype."""
    left, right = sizes_in(x.checked_type), sizes_in(y.checked_type)
    if not left or not right:
        raise Refusal(
            VALUE,
            "@ needs tensors of rank 1 or more",
            found=f"{x.checked_type} and {y.checked_type}",
            help="use * for numbers",
        )
    if len(left) == 1:
        x = call("expand_dims", x, axis=0)
    if len(right) == 1:
        y = call("expand_dims", y, axis=1)
    drop = [-2] * (len(left) == 1) + [-1] * (len(right) == 1)
    out = _product(x, y)
    if drop:
        rank = len(sizes_in(out.checked_type))
        out = call("squeeze", out, axis=sorted(rank + d for d in drop))
    return out


def _product(x: _core.Expr, y: _core.Expr) -> _core.Expr:
    left, right = sizes_in(x.checked_type), sizes_in(y.checked_type)
    if len(left) == len(right) == 2:
        return call("nn.matmul", x, y)
    if len(right) == 2 and left[:-2].count(None) == 0:
        # A batch of rows is one product of two matrices.
        rows = call("reshape", x, newshape=[_joined(left[:-1]), _size(left[-1])], allowzero=True)
        out = call("nn.matmul", rows, y)
        return call("reshape", out, newshape=[*left[:-1], _size(right[-1])], allowzero=True)
    batch = _batch(left[:-2], right[:-2])
    if len(batch) == 1 and left[0] == right[0]:
        return call("nn.batch_matmul", x, y)
    x = _batched(x, batch, left)
    y = _batched(y, batch, right)
    out = call("nn.batch_matmul", x, y)
    return call("reshape", out, newshape=[*batch, left[-2], right[-1]], allowzero=True)


def _joined(sizes: Sequence) -> object:
    """Returns the product of several sizes. With a size of 0, -1 would be ambiguous."""
    return -1 if None in sizes else functools.reduce(lambda a, b: a * b, sizes, 1)


def _size(dim: object) -> object:
    if dim is None:
        raise Refusal(
            VALUE,
            "@ of these tensors needs sizes that have names",
            help="annotate the parameters with named dimensions",
        )
    return dim


def _batch(left: tuple, right: tuple) -> list:
    """Returns the broadcast batch axes of both."""
    rank = max(len(left), len(right))
    left = (1,) * (rank - len(left)) + left
    right = (1,) * (rank - len(right)) + right
    out = []
    for a, b in zip(left, right, strict=True):
        a, b = _size(a), _size(b)
        if a != b and 1 not in (a, b):
            raise Refusal(
                VALUE,
                "the batches of @ differ",
                expected=f"one batch, of sizes {tuple(map(str, left))}",
                found=str(tuple(map(str, right))),
                help="give equal sizes one name in the annotations",
            )
        out.append(b if a == 1 else a)
    return out


def _batched(x: _core.Expr, batch: list, shape: tuple) -> _core.Expr:
    matrix = [_size(d) for d in shape[-2:]]
    if list(shape[:-2]) != batch:
        x = call("broadcast_to", x, shape=[*batch, *matrix])
    return call("reshape", x, newshape=[_joined(batch), *matrix], allowzero=True)


def reduced(op: str, tensor: Tensor, axis: object, keepdims: object) -> Tensor:
    axes = axes_of(axis, tensor)
    keep = bool(known(keepdims, "keepdims"))
    if axes == [] or (axes is None and not tensor.shape):
        return tensor
    return Tensor(call(op, tensor.expr, axis=axes, keepdims=keep))


def count_of(tensor: Tensor, axis: object) -> Value:
    """Returns the number of elements that a reduction combines."""
    axes = axes_of(axis, tensor)
    total: Value = Static(1)
    for i, size in enumerate(tensor.shape):
        if axes is None or i in axes:
            total = apply("multiply", total, size_value(tensor, i) if size is None
                          else size_or_number(size))  # fmt: skip
    return total


def size_value(tensor: Tensor, axis: int) -> Value:
    """Returns the size of an axis as a value."""
    size = tensor.shape[axis]
    if size is not None:
        return size_or_number(size)
    shape = call("shape_of", tensor.expr, dtype="int64")
    return Tensor(call("take", shape, _core.Constant(axis, "int64"), axis=0), True)


def is_scalar_number(value: Value) -> bool:
    return isinstance(value, Static) and number_type(value.obj) is not None
