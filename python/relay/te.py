"""Tensor expressions: the computation of an operator, element by element.

    from relay import te

    def matmul(a, b):
        k = te.reduce_axis((0, a.shape[1]))
        return te.compute(
            (a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "matmul"
        )

Numbers take the dtype of the other operand; of two dtypes the wider one is used, or a float dtype if one
is. An out-of-bounds read of a tensor gives 0.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from relay import _core
from relay._errors import wrong
from relay._plural import counted

Block = _core.Block
Loop = _core.Loop
PrimExpr = _core.PrimExpr
ReduceAxis = _core.ReduceAxis
Schedule = _core.Schedule
Tensor = _core.TETensor
PrimFunc = _core.TirPrimFunc
Axes = ReduceAxis | Sequence[ReduceAxis]


def placeholder(
    shape: Sequence[int | PrimExpr], dtype: str = "float32", name: str = "placeholder"
) -> Tensor:
    """Returns an input."""
    return _core.te_placeholder(_shape(shape), dtype, name)


def compute(
    shape: Sequence[int | PrimExpr], fcompute: Callable[..., object], name: str = "compute"
) -> Any:
    """Returns the tensor whose element at (i, j, ...) is fcompute(i, j, ...).

    If that is a tuple, returns a tuple of tensors.
    """
    sizes = _shape(shape)
    try:
        inspect.signature(fcompute).bind(*sizes)
    except TypeError as problem:
        raise wrong(f"{name} has {counted(len(sizes), 'axis')}: {problem}") from None
    tensors, several = _core.te_compute(name, sizes, fcompute)
    return tuple(tensors) if several else tensors[0]


def var(name: str, dtype: str = "int64") -> PrimExpr:
    """Returns a variable, for a symbolic size."""
    return _core.te_var(name, dtype)


def create_prim_func(
    inputs: Sequence[Tensor], outputs: Tensor | Sequence[Tensor], name: str = "main"
) -> PrimFunc:
    """Returns the kernel that computes the outputs: a block for each tensor, in loops over its axes.

    Calling it with arrays interprets it; `Schedule` rewrites its loops.
    """
    found = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    return _core.te_create_prim_func(list(inputs), found, name)


def extern(
    shape: Sequence[Any],
    inputs: Sequence[Tensor],
    fcompute: Callable,
    dtype: str | Sequence[str] = "float32",
    name: str | Sequence[str] = "extern",
) -> Any:
    """Returns the tensor that a `relay.prim_func`, or a scheduled kernel, computes from the inputs.

    With lists of shapes and dtypes, returns the list of the tensors that it writes; `name` may be a list.
    """
    several = builtins.any(isinstance(size, (list, tuple)) for size in shape)
    shapes = [_shape(one) for one in (shape if several else [shape])]
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    write = getattr(fcompute, "emit", None)
    if write is None:

        def write(given: list, written: list) -> Any:
            return fcompute(given, written if several else written[0])

    if isinstance(name, str):
        name = [f"{name}{i or ''}" for i in range(len(shapes))]
    tensors = _core.te_extern(list(name), dtypes, shapes, list(inputs), write)
    return tensors if several else tensors[0]


def reduce_axis(dom: tuple[int | PrimExpr, int | PrimExpr], name: str = "k") -> ReduceAxis:
    """Returns a reduction axis from the first number to below the second."""
    begin, end = dom
    return _core.te_reduce_axis(begin, end, name)


def sum(expr: object, axis: Axes) -> PrimExpr:
    """Returns the sum over the axes; the whole body of a compute."""
    return _core.te_reduce("sum", expr, axis)


def prod(expr: object, axis: Axes) -> PrimExpr:
    """Returns the product over the axes."""
    return _core.te_reduce("prod", expr, axis)


def max(expr: object, axis: Axes) -> PrimExpr:
    """Returns the maximum over the axes; `maximum` is the maximum of two numbers."""
    return _core.te_reduce("max", expr, axis)


def min(expr: object, axis: Axes) -> PrimExpr:
    """Returns the minimum over the axes; `minimum` is the minimum of two numbers."""
    return _core.te_reduce("min", expr, axis)


def all(expr: object, axis: Axes) -> PrimExpr:
    """Returns whether all bools over the axes are true."""
    return _core.te_reduce("all", expr, axis)


def any(expr: object, axis: Axes) -> PrimExpr:
    """Returns whether any bool over the axes is true."""
    return _core.te_reduce("any", expr, axis)


def argmax(expr: object, axis: ReduceAxis) -> PrimExpr:
    """Returns the index (int64) of the first maximum along the axis."""
    return _core.te_reduce("argmax", expr, axis)


def argmin(expr: object, axis: ReduceAxis) -> PrimExpr:
    """Returns the index (int64) of the first minimum along the axis."""
    return _core.te_reduce("argmin", expr, axis)


def maximum(a: object, b: object) -> PrimExpr:
    """Returns the greater of two numbers; NaN if one is NaN."""
    return _core.te_binary("max", a, b)


def minimum(a: object, b: object) -> PrimExpr:
    """Returns the lesser of two numbers; NaN if one is NaN."""
    return _core.te_binary("min", a, b)


def divide(name: str, a: object, b: object) -> PrimExpr:
    """Returns a quotient or a remainder by its name in the tensor IR.

    An integer divided by 0 is the dividend, with remainder 0. (The tensor IR itself leaves this undefined.)
    """
    out = _core.te_binary(name, a, b)
    if "float" in out.dtype or (isinstance(b, int) and b != 0):
        return out
    by_zero = _core.te_binary("eq", b, 0)
    out = _core.te_binary(name, a, _core.te_select(by_zero, 1, b))
    return _core.te_select(by_zero, 0 if name.endswith("mod") else a, out)


def truncdiv(a: object, b: object) -> PrimExpr:
    """Returns the quotient of integers, rounded towards zero."""
    return divide("trunc_div", a, b)


def truncmod(a: object, b: object) -> PrimExpr:
    """Returns the remainder with the sign of `a`."""
    return divide("trunc_mod", a, b)


def floordiv(a: object, b: object) -> PrimExpr:
    """Returns the quotient, rounded towards minus infinity: a // b."""
    return divide("floordiv", a, b)


def floormod(a: object, b: object) -> PrimExpr:
    """Returns the remainder with the sign of `b`: a % b."""
    return divide("mod", a, b)


def if_then_else(cond: PrimExpr, true_value: object, false_value: object) -> PrimExpr:
    """Returns one of two values; only the elements of the selected one are read."""
    return _core.te_select(cond, true_value, false_value)


select = if_then_else


def const(value: float, dtype: str = "float32") -> PrimExpr:
    """Returns a number of a dtype."""
    return _core.te_const(value, dtype)


def min_value(dtype: str) -> PrimExpr:
    """Returns the least value of a dtype."""
    return _core.te_limit(dtype, False)


def max_value(dtype: str) -> PrimExpr:
    """Returns the greatest value of a dtype."""
    return _core.te_limit(dtype, True)


def call(name: str, *args: object) -> PrimExpr:
    """Returns a call of a function of the tensor IR by its name."""
    return _core.te_call(name, list(args))


_FUNCTIONS = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "erf",
    "exp", "floor", "fma", "fmod", "isfinite", "isinf", "isnan", "log", "log10", "log2", "popcount",
    "pow", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip


def _function(name: str) -> Callable[..., PrimExpr]:
    def build(*args: object) -> PrimExpr:
        return _core.te_call(name, list(args))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"Returns {name} of the arguments."
    return build


globals().update({name: _function(name) for name in _FUNCTIONS})
power = globals()["pow"]


def _shape(shape: object) -> list:
    if isinstance(shape, (int, PrimExpr)):
        return [shape]
    sizes = list(shape)
    for size in sizes:
        if isinstance(size, bool):
            raise wrong(f"{size!r} is not a size")
        if isinstance(size, int) and size < 0:
            raise wrong(f"{size} is not a size")
    return sizes


def _no_iteration(self) -> None:
    raise wrong("a tensor is not iterated over: te.compute goes over its elements")


# Python would index without end: there is no IndexError.
Tensor.__iter__ = _no_iteration
PrimExpr.__floordiv__ = floordiv
PrimExpr.__rfloordiv__ = lambda self, other: floordiv(other, self)
PrimExpr.__mod__ = floormod
PrimExpr.__rmod__ = lambda self, other: floormod(other, self)
