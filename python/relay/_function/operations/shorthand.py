"""NumPy's operators on values and Python numbers, for compositions."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function.operations.arithmetic import apply, cast, kind_of, numpy_dtype, truth
from relay._function.operations.arrays import reshape, size_value, tensor_of
from relay._function.operations.indexing import Slice, get
from relay._function.syntax.errors import VALUE, Refusal
from relay._function.values import List, Size, Static, Tensor, Tuple, Value, as_expr
from relay._ops.call import call


def value_of(value: object) -> Value:
    """Returns the value of a Python number or of a list of values."""
    if not isinstance(value, Value):
        return Static(value)
    return tensor_of(value) if isinstance(value, (List, Tuple)) else value


def _operator(name: str, python: Callable | None = None) -> Callable[..., Tensor]:
    def applied(*operands: object) -> Value:
        values = list(map(value_of, operands))
        # Arithmetic of known sizes and positions stays known.
        known = all(isinstance(v, Static) and type(v.obj) in (int, float) for v in values)
        if python is not None and known:
            return Static(python(*(v.obj for v in values)))
        return apply(name, *values)

    return applied


add, sub = _operator("add", operator.add), _operator("subtract", operator.sub)
mul, div = _operator("multiply", operator.mul), _operator("divide")
floordiv, mod, power = map(_operator, ("floor_divide", "remainder", "power"))
maximum, minimum = _operator("maximum", max), _operator("minimum", min)
eq, ne, lt, le = map(_operator, ("equal", "not_equal", "less", "less_equal"))
gt, ge = map(_operator, ("greater", "greater_equal"))
both, either, no = map(_operator, ("logical_and", "logical_or", "logical_not"))
neg, absolute, sqrt, exp, log = map(_operator, ("negative", "absolute", "sqrt", "exp", "log"))
floor = _operator("floor")
isnan, isinf, isfinite = map(_operator, ("isnan", "isinf", "isfinite"))


def choose(condition: Value, x: object, y: object) -> Tensor:
    """Returns np.where; the dtype is the common dtype of both values, as of np.maximum."""
    pair = [value_of(x), value_of(y)]
    kind = apply("maximum", *map(_flat_number, pair)).dtype
    dtype = kind if isinstance(kind, str) else kind.name
    made = [as_expr(v, dtype) for v in pair]
    made = [e if e.checked_type.dtype == dtype else call("cast", e, dtype=dtype) for e in made]
    return Tensor(call("where", truth(condition), *made))


def _flat_number(value: Value) -> Value:
    """Returns a scalar of the value's dtype, to find the common dtype of a pair."""
    if isinstance(value, Tensor) and not value.weak:
        return Tensor(_core.Constant(np.zeros((), numpy_dtype(value.dtype))))
    return value


def stopped(x: Tensor) -> Tensor:
    """Returns the tensor with zero derivatives."""
    return Tensor(call("stop_gradient", x.expr))


def bits(x: Tensor) -> Tensor:
    """Returns the bits of floats as signed integers of the same width."""
    width = numpy_dtype(x.dtype).itemsize * 8
    return Tensor(call("reinterpret", stopped(x).expr, dtype=f"int{width}"))


def floating(a: Value) -> Tensor:
    """Returns the tensor, integers converted to float64."""
    a = tensor_of(a)
    return a if kind_of(a.dtype) == "f" else cast(a, "float64")


def flat(a: Tensor) -> Tensor:
    """Returns the elements as a vector."""
    return a if len(a.shape) == 1 else reshape(a, Static(-1))


def positions(size: object) -> Tensor:
    """Returns 0, 1, ... below a size, which is a number, a dimension or a scalar of the program."""
    if isinstance(size, Static):
        size = size.obj
    if isinstance(size, Size):
        size = size.dim
    if isinstance(size, int):
        return Tensor(_core.Constant(np.arange(size, dtype="int64")))
    if not isinstance(size, Tensor):
        return Tensor(call("arange", start=0, stop=size, step=1, dtype="int64"))
    bounds = _core.Constant(0, "int64"), cast(size, "int64").expr, _core.Constant(1, "int64")
    return Tensor(call("dyn.arange", *bounds))


def positions_of(a: Tensor, axis: int) -> Tensor:
    """Returns the indices of an axis."""
    return positions(size_value(a, axis))


def along(x: Tensor, axis: int, rank: int) -> Tensor:
    """Returns a vector as a tensor of that rank whose other axes have size 1."""
    out = x.expr
    if axis:
        out = call("expand_dims", out, axis=0, num_newaxis=axis)
    if rank - axis - 1:
        out = call("expand_dims", out, axis=axis + 1, num_newaxis=rank - axis - 1)
    return Tensor(out)


def taken(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """Returns x[index] along an axis; the indices are known to be in bounds."""
    return Tensor(call("take", x.expr, cast(index, "int64").expr, axis=axis, mode="fast"))


def part(
    x: Tensor, axis: int, start: object = None, stop: object = None, step: object = None
) -> Tensor:
    """Returns x[start:stop:step] along an axis, a view."""
    whole = [Slice(Static(None), Static(None), Static(None))] * axis
    bounds = (v if isinstance(v, Value) else Static(v) for v in (start, stop, step))
    return get(x, Tuple((*whole, Slice(*bounds))))


def masked(x: Tensor, mask: Tensor) -> Tensor:
    """Returns x[mask], a vector or rows."""
    return get(x, Tensor(truth(mask)))


def sizes(a: Tensor) -> Tuple:
    """Returns the shape as a tuple of values."""
    return Tuple(tuple(size_value(a, i) for i in range(len(a.shape))))


def concatenated(parts: list[Tensor], axis: int = 0) -> Tensor:
    """Concatenates tensors of one dtype."""
    return Tensor(call("concatenate", _core.Tuple([p.expr for p in parts]), axis=axis))


def need(condition: bool, message: str, help: str = "") -> None:
    """Refuses arguments that a function does not support."""
    if not condition:
        raise Refusal(VALUE, message, help=help)
