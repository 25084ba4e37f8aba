"""NumPy's functions by their names: what each is in operators.

One function for each, with NumPy's parameters; `FUNCTIONS` finds it by NumPy's own function object.
Element-wise functions are the rows of `arithmetic.UFUNCS`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function.numpy.registry import (
    ATTRIBUTES,
    add_method,
    numpy_function,
    there,
)
from relay._function.operations import arithmetic
from relay._function.operations.arithmetic import (
    UFUNCS,
    apply,
    cast,
    dtype_name,
    in_float32,
    kind_of,
    numpy_dtype,
    truth,
)
from relay._function.operations.arrays import (
    axes_of,
    count_of,
    filled_each,
    full,
    known,
    matmul,
    one_axis,
    operands_of,
    reduced,
    reshape,
    same_dtype,
    shape_of,
    size_value,
    stacked,
    tensor_of,
)
from relay._function.operations.indexing import get, places_of
from relay._function.operations.shorthand import choose
from relay._function.syntax.errors import CALL, VALUE, Refusal
from relay._function.values import (
    List,
    Static,
    Tensor,
    Tuple,
    Value,
    as_expr,
    is_text,
)
from relay._ops.call import call


def _install_ufuncs() -> None:
    def elementwise(name: str) -> Callable:
        if getattr(np, name).nin == 1:
            return lambda x: apply(name, tensor_or_number(x))
        return lambda x1, x2: apply(name, tensor_or_number(x1), tensor_or_number(x2))

    for name in [*UFUNCS, "positive"]:
        numpy_function(name)(elementwise(name))


def tensor_or_number(value: Value) -> Value:
    return tensor_of(value) if isinstance(value, (List, Tuple)) else value


_install_ufuncs()


@numpy_function("matmul")
def _matmul(x1, x2):
    return matmul(tensor_of(x1), tensor_of(x2))


@numpy_function("outer")
def _outer(a, b):
    a, b = reshape(tensor_of(a), Static(-1)), reshape(tensor_of(b), Static(-1))
    return apply("multiply", _expand_dims(a, 1), _expand_dims(b, 0))


@numpy_function("einsum")
def _einsum(subscripts, *operands):
    tensors = same_dtype([tensor_of(v) for v in operands])
    equation = known(subscripts, "the equation of einsum").replace(" ", "")
    if "->" not in equation:
        labels = equation.replace(",", "")
        equation += "->" + "".join(sorted(c for c in set(labels) if labels.count(c) == 1))
    if tensors and tensors[0].dtype == "bool":
        # A product of bools is `and`, a sum of them `or`.
        hits = _core.Tuple([cast(t, "int64").expr for t in tensors])
        return cast(Tensor(call("einsum", hits, equation=equation)), "bool")
    return Tensor(call("einsum", _core.Tuple([t.expr for t in tensors]), equation=equation))


# ---- Reductions ----------------------------------------------------------------------------------


def _summed_dtype(tensor: Tensor, dtype: object) -> str:
    """The dtype that sums and products have."""
    given = known(dtype, "dtype")
    if given is not None:
        return dtype_name(given)
    kind = numpy_dtype(tensor.dtype)
    if kind.kind in "bi" and kind.itemsize < 8:
        return "int64"
    return "uint64" if kind.kind == "u" else tensor.dtype


def _kept(a: Tensor, where: Value | None, neutral: object) -> Tensor:
    """The elements that a mask chooses, and what changes nothing in the place of the others."""
    if where is None or (isinstance(where, Static) and where.obj is True):
        return a
    if not isinstance(neutral, Tensor):
        neutral = Tensor(_core.Constant(np.array(neutral).astype(numpy_dtype(a.dtype))))
    return _where(tensor_of(where), a, neutral)


def _started(name: str, made: Tensor, initial: Value | None) -> Tensor:
    """The result of a reduction together with what it starts from."""
    if initial is None or (isinstance(initial, Static) and initial.obj is None):
        return made
    return cast(apply(name, made, tensor_or_number(initial)), made.dtype)


@numpy_function("sum", method=True)
def _sum(a, axis=None, dtype=None, keepdims=False, initial=None, where=None):
    a = tensor_of(a)
    a = _kept(cast(a, _summed_dtype(a, dtype)), where, 0)
    return _started("add", reduced("sum", a, axis, keepdims), initial)


@numpy_function("prod", method=True)
def _prod(a, axis=None, dtype=None, keepdims=False, initial=None, where=None):
    a = tensor_of(a)
    a = _kept(cast(a, _summed_dtype(a, dtype)), where, 1)
    return _started("multiply", reduced("prod", a, axis, keepdims), initial)


def _floating(a: Value) -> Tensor:
    a = tensor_of(a)
    return a if kind_of(a.dtype) == "f" else cast(a, "float64")


@numpy_function("mean", method=True)
def _mean(a, axis=None, dtype=None, keepdims=False, where=None):
    given = known(dtype, "dtype")
    a = _floating(a) if given is None else cast(tensor_of(a), dtype_name(given))
    if where is None:
        return reduced("mean", a, axis, keepdims)
    total = reduced("sum", _kept(a, where, 0), axis, keepdims)
    return apply("divide", total, cast(chosen_count(a, where, axis, keepdims), total.dtype))


def chosen_count(a: Tensor, where: Value, axis: object, keepdims: object) -> Tensor:
    """How many elements of a reduction a mask chooses."""
    chosen = apply("logical_and", tensor_of(where), Tensor(call("ones_like", truth_like(a))))
    return _sum(chosen, axis, None, keepdims)


def truth_like(a: Tensor) -> _core.Expr:
    """A tensor of bools of the same shape."""
    return call("isnan", a.expr) if kind_of(a.dtype) == "f" else truth(a)


@numpy_function("var", method=True)
@in_float32
def _var(a, axis=None, ddof=0, keepdims=False, dtype=None, where=None, mean=None, correction=None):
    given, off = known(dtype, "dtype"), known(correction, "correction")
    a = _floating(a) if given is None else cast(tensor_of(a), dtype_name(given))
    middle = _mean(a, axis, None, True, where) if mean is None else tensor_of(mean)
    off = Static(known(ddof, "ddof") if off is None else off)
    away = apply("subtract", a, middle)
    total = reduced("sum", _kept(apply("multiply", away, away), where, 0), axis, keepdims)
    if where is None:
        return apply("divide", total, apply("subtract", count_of(a, axis), off))
    count = apply("subtract", chosen_count(a, where, axis, keepdims), off)
    nothing = Tensor(_core.Constant(np.array(0, "int64")))
    return apply("divide", total, cast(apply("maximum", count, nothing), total.dtype))


@numpy_function("std", method=True)
@in_float32
def _std(a, axis=None, ddof=0, keepdims=False, dtype=None, where=None, mean=None, correction=None):
    return apply("sqrt", _var(a, axis, ddof, keepdims, dtype, where, mean, correction))


@numpy_function("max", "amax", method=True)
def _max(a, axis=None, keepdims=False, initial=None, where=None):
    a = tensor_of(a)
    a = _kept(a, where, _needed(initial, where, "max"))
    return _started("maximum", reduced("max", a, axis, keepdims), initial)


def _needed(initial: Value | None, where: Value | None, name: str) -> Value | None:
    """What the greatest or least of nothing is: a mask may choose nothing."""
    if where is not None and initial is None:
        raise Refusal(CALL, f"np.{name} with where= needs initial=", help="initial=0, say")
    return None if initial is None else tensor_of(initial)


@numpy_function("min", "amin", method=True)
def _min(a, axis=None, keepdims=False, initial=None, where=None):
    a = tensor_of(a)
    a = _kept(a, where, _needed(initial, where, "min"))
    return _started("minimum", reduced("min", a, axis, keepdims), initial)


def _arg(op: str) -> Callable:
    def found(a, axis=None, keepdims=False):
        a = tensor_of(a)
        if known(axis, "axis") is None:
            a, axis = reshape(a, Static(-1)), Static(0)
        return cast(reduced(op, a, axis, keepdims), "int64")

    return found


numpy_function("argmax", method=True)(_arg("argmax"))
numpy_function("argmin", method=True)(_arg("argmin"))


@numpy_function("any", method=True)
def _any(a, axis=None, keepdims=False, where=None):
    return reduced("any", _kept(Tensor(truth(tensor_of(a))), where, False), axis, keepdims)


@numpy_function("all", method=True)
def _all(a, axis=None, keepdims=False, where=None):
    return reduced("all", _kept(Tensor(truth(tensor_of(a))), where, True), axis, keepdims)


@numpy_function("count_nonzero")
def _count_nonzero(a, axis=None, keepdims=False):
    return _sum(Tensor(truth(tensor_of(a))), axis, None, keepdims)


def _scan(op: str) -> Callable:
    def scanned(a, axis=None, dtype=None):
        a = tensor_of(a)
        a = cast(a, _summed_dtype(a, dtype))
        if known(axis, "axis") is None:
            a, axis = reshape(a, Static(-1)), Static(0)
        return Tensor(call(op, a.expr, axis=one_axis(axis, a)))

    return scanned


def _cumulative(name: str, first: int) -> Callable:
    def scanned(x, axis=None, dtype=None, include_initial=False):
        x = tensor_of(x)
        if known(axis, "axis") is None and len(x.shape) != 1:
            raise Refusal(
                CALL, f"np.{name} of a tensor of rank 2 or more needs axis=", help="axis=0"
            )
        at = 0 if known(axis, "axis") is None else one_axis(axis, x)
        out = _scan("cumsum" if first == 0 else "cumprod")(x, at, dtype)
        if not known(include_initial, "include_initial"):
            return out
        width = [[int(i == at), 0] for i in range(len(x.shape))]
        start = _core.Constant(np.array(first, numpy_dtype(out.dtype)))
        return Tensor(call("nn.pad", out.expr, start, pad_width=width, pad_mode="constant"))

    return scanned


numpy_function("cumulative_sum")(_cumulative("cumulative_sum", 0))
numpy_function("cumulative_prod")(_cumulative("cumulative_prod", 1))
numpy_function("cumsum", method=True)(_scan("cumsum"))
numpy_function("cumprod", method=True)(_scan("cumprod"))


@numpy_function("linalg.inv")
def _inv(a):
    return Tensor(call("linalg.inv", _floating(a).expr))


@numpy_function("linalg.det")
def _det(a):
    return Tensor(call("linalg.det", _floating(a).expr))


@numpy_function("linalg.solve")
def _solve(a, b):
    return matmul(_inv(a), _floating(b))


# ---- Sums and logarithms that do not overflow, or lose what is small ------------------------------


@numpy_function("log1p")
@in_float32
def _log1p(x):
    """What 1 + x loses of x is added to its logarithm as a constant: derivatives are those of log(1 + x)."""
    x = _floating(x)
    whole = apply("add", x, Static(1.0))
    log = apply("log", whole)
    part = apply("subtract", whole, Static(1.0))
    nothing = apply("equal", part, Static(0.0))
    share = apply("divide", apply("subtract", x, part), _where(nothing, Static(1.0), part))
    # At -1 and at infinity nothing is lost that a logarithm tells.
    lost = _where(apply("isfinite", log), apply("multiply", log, share), Static(0.0))
    lost = _where(nothing, x, lost)
    return apply("add", log, Tensor(call("stop_gradient", lost.expr)))


@numpy_function("logaddexp")
@in_float32
def _logaddexp(x1, x2):
    pair = [tensor_or_number(x) for x in (x1, x2)]
    apart = apply("absolute", apply("subtract", *pair))
    # Two infinities are not apart.
    apart = _where(apply("equal", *pair), Static(0.0), apart)
    return apply("add", apply("maximum", *pair), _log1p(apply("exp", apply("negative", apart))))


# ---- Shapes --------------------------------------------------------------------------------------


@numpy_function("reshape")
def _reshape(a, shape):
    return reshape(tensor_of(a), shape)


@numpy_function("ravel", method=True)
def _ravel(a):
    return reshape(tensor_of(a), Static(-1))


@numpy_function("transpose")
def _transpose(a, axes=None):
    a = tensor_of(a)
    order = axes_of(axes, a)
    if order is None:
        order = list(reversed(range(len(a.shape))))
    return Tensor(call("transpose", a.expr, axes=order), False, a.roots)


@numpy_function("swapaxes", method=True)
def _swapaxes(a, axis1, axis2):
    a = tensor_of(a)
    order = list(range(len(a.shape)))
    i, j = one_axis(axis1, a), one_axis(axis2, a)
    order[i], order[j] = order[j], order[i]
    return _transpose(a, Tuple(tuple(map(Static, order))))


@numpy_function("moveaxis")
def _moveaxis(a, source, destination):
    a = tensor_of(a)
    moved, places = axes_of(source, a), axes_of(destination, a)
    order = [i for i in range(len(a.shape)) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return _transpose(a, Tuple(tuple(map(Static, order))))


@numpy_function("expand_dims")
def _expand_dims(a, axis):
    a = tensor_of(a)
    axes = known(axis, "axis")
    axes = axes if isinstance(axes, (tuple, list)) else [axes]
    rank = len(a.shape) + len(axes)
    out = a.expr
    for at in sorted(x % rank for x in axes):
        out = call("expand_dims", out, axis=at)
    return Tensor(out, False, a.roots)


@numpy_function("squeeze", method=True)
def _squeeze(a, axis=None):
    a = tensor_of(a)
    axes = axes_of(axis, a)
    if axes is None:
        if not all(isinstance(n, int) for n in a.shape):
            raise Refusal(
                CALL,
                "which axes np.squeeze drops depends on sizes that only the run knows",
                found=arithmetic.describe(a),
                help="name the axes of size 1: np.squeeze(x, axis=0) or x.squeeze((0, 2))",
            )
        axes = [i for i, n in enumerate(a.shape) if n == 1]
    return Tensor(call("squeeze", a.expr, axis=axes), False, a.roots) if axes else a


@numpy_function("broadcast_to")
def _broadcast_to(array, shape):
    array = tensor_of(array)
    return Tensor(call("broadcast_to", array.expr, shape=shape_of(shape)), False, array.roots)


def _in_dtype(tensors: list[Tensor], dtype: object) -> list[Tensor]:
    given = known(dtype, "dtype")
    return tensors if given is None else [cast(t, dtype_name(given)) for t in tensors]


@numpy_function("concatenate")
def _concatenate(arrays, axis=0, dtype=None):
    tensors = _in_dtype(operands_of(arrays), dtype)
    if known(axis, "axis") is None:
        tensors, axis = [reshape(t, Static(-1)) for t in tensors], 0
    exprs = _core.Tuple([t.expr for t in tensors])
    return Tensor(call("concatenate", exprs, axis=one_axis(axis, tensors[0])))


@numpy_function("stack")
def _stack(arrays, axis=0, dtype=None):
    tensors = _in_dtype(operands_of(arrays), dtype)
    at = known(axis, "axis")
    return stacked(tensors, at if at >= 0 else at + len(tensors[0].shape) + 1)


@numpy_function("vstack")
def _vstack(tup, dtype=None):
    tensors = _in_dtype(operands_of(tup), dtype)
    rows = [_expand_dims(t, 0) if len(t.shape) == 1 else t for t in tensors]
    return _concatenate(List(tuple(rows)), 0)


@numpy_function("hstack")
def _hstack(tup, dtype=None):
    tensors = _in_dtype(operands_of(tup), dtype)
    return _concatenate(List(tuple(tensors)), 0 if len(tensors[0].shape) == 1 else 1)


@numpy_function("tile")
def _tile(A, reps):
    A = tensor_of(A)
    return Tensor(call("tile", A.expr, reps=shape_of(reps, "reps")))


@numpy_function("repeat")
def _repeat(a, repeats, axis=None):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        a, axis = reshape(a, Static(-1)), 0
    times = known(repeats, "repeats")
    return Tensor(call("repeat", a.expr, repeats=times, axis=one_axis(axis, a)))


@numpy_function("flip")
def _flip(m, axis=None):
    m = tensor_of(m)
    axes = axes_of(axis, m)
    out = m.expr
    for at in range(len(m.shape)) if axes is None else axes:
        out = call("reverse", out, axis=at)
    return Tensor(out, False, m.roots)


# ---- Choice --------------------------------------------------------------------------------------


@numpy_function("where")
def _where(condition, x=None, y=None):
    if x is None or y is None:
        return there("nonzero")(condition)
    if is_text(x) or is_text(y):
        pair = [t.expr for t in same_dtype([tensor_of(x), tensor_of(y)])]
        return Tensor(call("where", truth(tensor_of(condition)), *pair))
    return choose(tensor_of(condition), x, y)


@numpy_function("clip")
def _clip(a, a_min=None, a_max=None, min=None, max=None):
    bounds = [a_min if min is None else min, a_max if max is None else max]
    a = tensor_or_number(a)
    numbers = [b.obj for b in bounds if isinstance(b, Static) and type(b.obj) in (int, float)]
    floats = isinstance(a, Tensor) and not a.weak and "float" in a.dtype
    if floats and len(numbers) == 2 and numbers[0] <= numbers[1]:
        # The operator, whose derivative at its bounds is 1.
        return Tensor(call("clip", a.expr, a_min=float(numbers[0]), a_max=float(numbers[1])))
    for bound, name in zip(bounds, ("maximum", "minimum"), strict=True):
        if bound is not None and not (isinstance(bound, Static) and bound.obj is None):
            a = apply(name, a, tensor_or_number(bound))
    return a


add_method("clip", lambda a, min=None, max=None: _clip(a, min, max))


@numpy_function("take", method=True)
def _take(a, indices, axis=None, mode="raise"):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        a, axis = reshape(a, Static(-1)), 0
    mode = known(mode, "mode")
    if mode not in ("raise", "wrap", "clip"):
        raise Refusal(VALUE, "mode is 'raise', 'wrap' or 'clip'", found=repr(mode))
    at = one_axis(axis, a)
    index = arithmetic.integers(tensor_of(indices), "indices")
    if mode == "raise":
        index, mode = places_of(Tensor(index), a, at), "clip"
    return Tensor(call("take", a.expr, index, axis=at, mode=mode))


@numpy_function("take_along_axis")
def _take_along_axis(arr, indices, axis=-1):
    arr, indices = tensor_of(arr), tensor_of(indices)
    if kind_of(indices.dtype) != "i":
        raise Refusal(VALUE, "indices are integers", found=arithmetic.describe(indices))
    if known(axis, "axis") is None:
        arr, axis = reshape(arr, Static(-1)), 0
        if len(indices.shape) != 1:
            raise Refusal(
                VALUE, "without an axis, indices have one", found=arithmetic.describe(indices)
            )
    at = one_axis(axis, arr)
    if len(indices.shape) != len(arr.shape):
        raise Refusal(
            VALUE,
            "the array and its indices have as many axes",
            expected=f"rank {len(arr.shape)}",
            found=arithmetic.describe(indices),
            help="None in an index adds an axis: indices[..., None]",
        )
    # Beside the axis both broadcast.
    sizes = [(a, b) for a, b in zip(arr.shape, indices.shape, strict=True)]
    for i, (a, b) in enumerate(sizes):
        if i != at and isinstance(a, int) and isinstance(b, int) and a != b and 1 not in (a, b):
            raise Refusal(
                VALUE,
                f"an array and its indices broadcast beside the axis, and axis {i} differs",
                expected=str(a),
                found=str(b),
            )
    beside = [i for i in range(len(sizes)) if i != at]
    arr_sizes = [b if i in beside and a == 1 else a for i, (a, b) in enumerate(sizes)]
    index_sizes = [a if i in beside and a != 1 else b for i, (a, b) in enumerate(sizes)]
    index = Tensor(arithmetic.integers(indices, "indices"))
    arr, index = _spread_to(arr, arr_sizes), _spread_to(index, index_sizes)
    return Tensor(call("gather", arr.expr, index.expr, axis=at, checked=True))


def _spread_to(tensor: Tensor, sizes: list) -> Tensor:
    """The tensor broadcast to sizes; those that only the data tells are left to the run."""
    if list(tensor.shape) == sizes:
        return tensor
    if None not in sizes:
        return Tensor(call("broadcast_to", tensor.expr, shape=sizes))
    if any(mine == 1 and size != 1 for mine, size in zip(tensor.shape, sizes, strict=True)):
        raise Refusal(
            VALUE,
            "sizes that are known only at run time are not broadcast to here",
            found=arithmetic.describe(tensor),
            help="give both the same sizes",
        )
    return tensor


@numpy_function("argwhere")
def _argwhere(a):
    return cast(Tensor(call("argwhere", truth(tensor_of(a)))), "int64")


@numpy_function("tril")
def _tril(m, k=0):
    return Tensor(
        call("trilu", tensor_of(m).expr, _core.Constant(known(k, "k"), "int64"), upper=False)
    )


@numpy_function("triu")
def _triu(m, k=0):
    return Tensor(
        call("trilu", tensor_of(m).expr, _core.Constant(known(k, "k"), "int64"), upper=True)
    )


# ---- New tensors ---------------------------------------------------------------------------------


def _named_dtype(dtype: object, default: str) -> str:
    given = known(dtype, "dtype")
    return default if given is None else dtype_name(given)


@numpy_function("zeros", "empty")
def _zeros(shape, dtype=None):
    return full(shape, Static(0), _named_dtype(dtype, "float64"))


@numpy_function("ones")
def _ones(shape, dtype=None):
    return full(shape, Static(1), _named_dtype(dtype, "float64"))


@numpy_function("full")
def _full(shape, fill_value, dtype=None):
    return full(shape, fill_value, _named_dtype(dtype, as_expr(fill_value).checked_type.dtype))


def _like(a: Tensor, value: Value, dtype: object) -> Tensor:
    name = _named_dtype(dtype, a.dtype)
    if None in a.shape:
        return Tensor(call("full_like", cast(a, name).expr, arithmetic.filled(value, name)))
    return full(Tuple(tuple(map(arithmetic.size_or_number, a.shape))), value, name)


@numpy_function("zeros_like", "empty_like")
def _zeros_like(a, dtype=None):
    return _like(tensor_of(a), Static(0), dtype)


@numpy_function("ones_like")
def _ones_like(a, dtype=None):
    return _like(tensor_of(a), Static(1), dtype)


@numpy_function("full_like")
def _full_like(a, fill_value, dtype=None):
    return _like(tensor_of(a), fill_value, dtype)


@numpy_function("arange")
def _arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = Static(0), start
    step = Static(1) if step is None else step
    parts = [v if isinstance(v, Value) else Static(v) for v in (start, stop, step)]
    floats = [kind_of(as_expr(v).checked_type.dtype) == "f" for v in parts]
    name = _named_dtype(dtype, "float64" if any(floats) else "int64")
    if any(isinstance(v, Tensor) for v in parts):
        return Tensor(call("dyn.arange", *(cast(tensor_of(v), name).expr for v in parts)))
    start, stop, step = (known(v, "a bound of np.arange") for v in parts)
    if all(isinstance(v, (int, float)) for v in (start, stop, step)):
        return Tensor(_core.Constant(np.arange(start, stop, step, dtype=name)))
    return Tensor(call("arange", start=start, stop=stop, step=step, dtype=name))


@numpy_function("eye", "identity")
def _eye(N, M=None, k=0, dtype=None):
    is_square = M is None or (isinstance(M, Static) and M.obj is None)
    sizes = [n if isinstance(n, Value) else Static(n) for n in (N, N if is_square else M)]
    name = _named_dtype(dtype, "float64")
    if all(isinstance(size, Static) for size in sizes):
        numbers = [size.obj for size in sizes]
        return Tensor(_core.Constant(np.eye(*numbers, k=known(k, "k"), dtype=name)))
    rows, columns = (_arange(size) for size in sizes)
    diagonal = apply("add", rows, k if isinstance(k, Value) else Static(k))
    diagonal = Tensor(call("expand_dims", tensor_of(diagonal).expr, axis=1))
    return cast(apply("equal", diagonal, columns), name)


@numpy_function("array", "copy")
def _array(a, dtype=None):
    given = known(dtype, "dtype")
    if given is not None and kind_of(dtype_name(given)) == "i":
        # A Python number that the dtype does not hold is an error.
        a = filled_each(a, dtype_name(given))
    a = tensor_of(a)
    return cast(a, _named_dtype(dtype, a.dtype))


@numpy_function("asarray", "ascontiguousarray")
def _asarray(a, dtype=None):
    made = tensor_of(a)
    # The same memory where nothing is converted.
    same = made is a and _named_dtype(dtype, made.dtype) == made.dtype
    return made if same else _array(a, dtype)


@numpy_function("char.upper")
def _upper(a):
    return Tensor(call("text.change_case", tensor_of(a).expr, upper=True))


@numpy_function("char.lower")
def _lower(a):
    return Tensor(call("text.change_case", tensor_of(a).expr, upper=False))


@numpy_function("char.add")
def _add_text(x1, x2):
    return apply("add", tensor_or_number(x1), tensor_or_number(x2))


add_method("copy", lambda a: cast(tensor_of(a), tensor_of(a).dtype))
add_method("astype", lambda a, dtype: cast(tensor_of(a), dtype_name(known(dtype, "dtype"))))


def _item(a, *args):
    if not args:
        return reshape(tensor_of(a), Tuple(()))
    index = args[0] if len(args) == 1 else Tuple(args)
    line = tensor_of(a) if len(args) > 1 or isinstance(index, Tuple) else _ravel(a)
    return get(line, index)


add_method("item", _item)
add_method("flatten", lambda a: Tensor(_ravel(a).expr))
add_method("repeat", _repeat)


def _method_reshape(a, *shape):
    return reshape(tensor_of(a), shape[0] if len(shape) == 1 else Tuple(shape))


def _method_transpose(a, *axes):
    if len(axes) == 1 and isinstance(axes[0], Static) and isinstance(axes[0].obj, int):
        return _transpose(a, Tuple(axes))
    return _transpose(a, (axes[0] if len(axes) == 1 else Tuple(axes)) if axes else None)


add_method("reshape", _method_reshape)
add_method("transpose", _method_transpose)


@numpy_function("shape")
def _shape(a):
    a = tensor_of(a)
    return Tuple(tuple(size_value(a, i) for i in range(len(a.shape))))


@numpy_function("ndim")
def _ndim(a):
    return Static(len(tensor_of(a).shape))


@numpy_function("size")
def _size(a, axis=None):
    return count_of(tensor_of(a), axis)


ATTRIBUTES |= {
    "shape": _shape,
    "ndim": _ndim,
    "size": _size,
    "T": _transpose,
    "dtype": lambda a: Static(arithmetic.numpy_dtype(a.dtype)),
    "itemsize": lambda a: Static(numpy_dtype(a.dtype).itemsize),
    "nbytes": lambda a: apply("multiply", _size(a), Static(numpy_dtype(a.dtype).itemsize)),
    "real": lambda a: a,
    "imag": lambda a: Tensor(call("zeros_like", a.expr)),
    "mT": lambda a: _swapaxes(a, -1, -2),
}
