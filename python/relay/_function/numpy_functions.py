"""NumPy's functions by their names: what each is in operators.

One function for each, with NumPy's parameters; `FUNCTIONS` finds it by NumPy's own function object.
Element-wise functions are the rows of `arithmetic.UFUNCS`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function import arithmetic
from relay._function.arithmetic import (
    UFUNCS,
    apply,
    cast,
    dtype_name,
    kind_of,
    numpy_dtype,
    truth,
)
from relay._function.arrays import (
    axes_of,
    count_of,
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
from relay._function.errors import CALL, VALUE, Refusal
from relay._function.indexing import Slice, get
from relay._function.values import List, Static, Tensor, Tuple, Value, as_expr, is_text
from relay._wrappers import call

FUNCTIONS: dict[int, Callable] = {}
# Methods and attributes of arrays, by their names.
METHODS: dict[str, Callable] = {}


def _numpy(*names: str, method: bool = False) -> Callable:
    def add(function: Callable) -> Callable:
        for name in names:
            of = np
            for part in name.split("."):
                of = getattr(of, part)
            # By identity: some of NumPy's objects compare element-wise.
            FUNCTIONS[id(of)] = function
        if method:
            METHODS[names[0]] = function
        return function

    return add


def _install_ufuncs() -> None:
    def elementwise(name: str) -> Callable:
        if getattr(np, name).nin == 1:
            return lambda x: apply(name, tensor_or_number(x))
        return lambda x1, x2: apply(name, tensor_or_number(x1), tensor_or_number(x2))

    for name in [*UFUNCS, "positive"]:
        FUNCTIONS[id(getattr(np, name))] = elementwise(name)


def tensor_or_number(value: Value) -> Value:
    return tensor_of(value) if isinstance(value, (List, Tuple)) else value


_install_ufuncs()


@_numpy("matmul")
def _matmul(x1, x2):
    return matmul(tensor_of(x1), tensor_of(x2))


@_numpy("dot", method=True)
def _dot(a, b):
    a, b = tensor_of(a), tensor_of(b)
    if not a.shape or not b.shape:
        return apply("multiply", a, b)
    if len(b.shape) > 2:
        raise Refusal(CALL, "np.dot of a tensor of rank 3 or more", help="use @ or np.einsum")
    return matmul(a, b)


@_numpy("square")
def _square(x):
    return apply("multiply", x, x)


@_numpy("reciprocal")
def _reciprocal(x):
    return apply("divide", Static(1), x)


@_numpy("outer")
def _outer(a, b):
    a, b = reshape(tensor_of(a), Static(-1)), reshape(tensor_of(b), Static(-1))
    return apply("multiply", _expand_dims(a, 1), _expand_dims(b, 0))


@_numpy("einsum")
def _einsum(subscripts, *operands):
    tensors = same_dtype([tensor_of(v) for v in operands])
    equation = known(subscripts, "the equation of einsum").replace(" ", "")
    if "->" not in equation:
        labels = equation.replace(",", "")
        equation += "->" + "".join(sorted(c for c in set(labels) if labels.count(c) == 1))
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


@_numpy("sum", method=True)
def _sum(a, axis=None, dtype=None, keepdims=False):
    a = tensor_of(a)
    return reduced("sum", cast(a, _summed_dtype(a, dtype)), axis, keepdims)


@_numpy("prod", method=True)
def _prod(a, axis=None, dtype=None, keepdims=False):
    a = tensor_of(a)
    return reduced("prod", cast(a, _summed_dtype(a, dtype)), axis, keepdims)


def _floating(a: Value) -> Tensor:
    a = tensor_of(a)
    return a if kind_of(a.dtype) == "f" else cast(a, "float64")


@_numpy("mean", "average", method=True)
def _mean(a, axis=None, dtype=None, keepdims=False):
    given = known(dtype, "dtype")
    a = _floating(a) if given is None else cast(tensor_of(a), dtype_name(given))
    return reduced("mean", a, axis, keepdims)


@_numpy("var", method=True)
def _var(a, axis=None, ddof=0, keepdims=False):
    a = _floating(a)
    off = apply("subtract", a, reduced("mean", a, axis, True))
    total = reduced("sum", apply("multiply", off, off), axis, keepdims)
    count = apply("subtract", count_of(a, axis), Static(known(ddof, "ddof")))
    return apply("divide", total, count)


@_numpy("std", method=True)
def _std(a, axis=None, ddof=0, keepdims=False):
    return apply("sqrt", _var(a, axis, ddof, keepdims))


@_numpy("max", "amax", method=True)
def _max(a, axis=None, keepdims=False):
    return reduced("max", tensor_of(a), axis, keepdims)


@_numpy("min", "amin", method=True)
def _min(a, axis=None, keepdims=False):
    return reduced("min", tensor_of(a), axis, keepdims)


def _arg(op: str) -> Callable:
    def found(a, axis=None, keepdims=False):
        a = tensor_of(a)
        if known(axis, "axis") is None:
            a, axis = reshape(a, Static(-1)), Static(0)
        return cast(reduced(op, a, axis, keepdims), "int64")

    return found


_numpy("argmax", method=True)(_arg("argmax"))
_numpy("argmin", method=True)(_arg("argmin"))


@_numpy("any", method=True)
def _any(a, axis=None, keepdims=False):
    return reduced("any", Tensor(truth(tensor_of(a))), axis, keepdims)


@_numpy("all", method=True)
def _all(a, axis=None, keepdims=False):
    return reduced("all", Tensor(truth(tensor_of(a))), axis, keepdims)


@_numpy("count_nonzero")
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


_numpy("cumsum", method=True)(_scan("cumsum"))
_numpy("cumprod", method=True)(_scan("cumprod"))


@_numpy("linalg.norm")
def _norm(x, ord=None, axis=None, keepdims=False):
    if known(ord, "ord") not in (None, 2):
        raise Refusal(CALL, "np.linalg.norm is there for ord=None and 2")
    x = _floating(x)
    axes = axes_of(axis, x)
    if known(ord, "ord") == 2 and len(axes or x.shape) != 1:
        raise Refusal(CALL, "np.linalg.norm with ord=2 is there for vectors")
    return apply("sqrt", reduced("sum", apply("multiply", x, x), axis, keepdims))


@_numpy("linalg.inv")
def _inv(a):
    return Tensor(call("linalg.inv", _floating(a).expr))


@_numpy("linalg.det")
def _det(a):
    return Tensor(call("linalg.det", _floating(a).expr))


@_numpy("linalg.solve")
def _solve(a, b):
    return matmul(_inv(a), _floating(b))


# ---- Sums and logarithms that do not overflow, or lose what is small ------------------------------


@_numpy("log1p")
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


@_numpy("logaddexp")
def _logaddexp(x1, x2):
    pair = [tensor_or_number(x) for x in (x1, x2)]
    apart = apply("absolute", apply("subtract", *pair))
    # Two infinities are not apart.
    apart = _where(apply("equal", *pair), Static(0.0), apart)
    return apply("add", apply("maximum", *pair), _log1p(apply("exp", apply("negative", apart))))


# ---- Shapes --------------------------------------------------------------------------------------


@_numpy("reshape")
def _reshape(a, shape):
    return reshape(tensor_of(a), shape)


@_numpy("ravel", method=True)
def _ravel(a):
    return reshape(tensor_of(a), Static(-1))


@_numpy("transpose")
def _transpose(a, axes=None):
    a = tensor_of(a)
    order = axes_of(axes, a)
    if order is None:
        order = list(reversed(range(len(a.shape))))
    return Tensor(call("transpose", a.expr, axes=order), False, a.roots)


@_numpy("swapaxes", method=True)
def _swapaxes(a, axis1, axis2):
    a = tensor_of(a)
    order = list(range(len(a.shape)))
    i, j = one_axis(axis1, a), one_axis(axis2, a)
    order[i], order[j] = order[j], order[i]
    return _transpose(a, Tuple(tuple(map(Static, order))))


@_numpy("moveaxis")
def _moveaxis(a, source, destination):
    a = tensor_of(a)
    moved, places = axes_of(source, a), axes_of(destination, a)
    order = [i for i in range(len(a.shape)) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return _transpose(a, Tuple(tuple(map(Static, order))))


@_numpy("expand_dims")
def _expand_dims(a, axis):
    a = tensor_of(a)
    axes = known(axis, "axis")
    axes = axes if isinstance(axes, (tuple, list)) else [axes]
    rank = len(a.shape) + len(axes)
    out = a.expr
    for at in sorted(x % rank for x in axes):
        out = call("expand_dims", out, axis=at)
    return Tensor(out, False, a.roots)


@_numpy("squeeze", method=True)
def _squeeze(a, axis=None):
    a = tensor_of(a)
    axes = axes_of(axis, a)
    if axes is None:
        if not all(isinstance(n, int) for n in a.shape):
            raise Refusal(
                CALL, "np.squeeze of a tensor of open sizes says which axes", help="axis="
            )
        axes = [i for i, n in enumerate(a.shape) if n == 1]
    return Tensor(call("squeeze", a.expr, axis=axes), False, a.roots) if axes else a


@_numpy("broadcast_to")
def _broadcast_to(array, shape):
    array = tensor_of(array)
    return Tensor(call("broadcast_to", array.expr, shape=shape_of(shape)))


@_numpy("concatenate")
def _concatenate(arrays, axis=0):
    tensors = operands_of(arrays)
    if known(axis, "axis") is None:
        tensors, axis = [reshape(t, Static(-1)) for t in tensors], 0
    exprs = _core.Tuple([t.expr for t in tensors])
    return Tensor(call("concatenate", exprs, axis=one_axis(axis, tensors[0])))


@_numpy("stack")
def _stack(arrays, axis=0):
    tensors = operands_of(arrays)
    at = known(axis, "axis")
    return stacked(tensors, at if at >= 0 else at + len(tensors[0].shape) + 1)


@_numpy("vstack")
def _vstack(tup):
    tensors = operands_of(tup)
    rows = [_expand_dims(t, 0) if len(t.shape) == 1 else t for t in tensors]
    return _concatenate(List(tuple(rows)), 0)


@_numpy("hstack")
def _hstack(tup):
    tensors = operands_of(tup)
    return _concatenate(List(tuple(tensors)), 0 if len(tensors[0].shape) == 1 else 1)


@_numpy("split", "array_split")
def _split(ary, indices_or_sections, axis=0):
    ary = tensor_of(ary)
    sections = known(indices_or_sections, "indices_or_sections")
    parts = call("split", ary.expr, indices_or_sections=sections, axis=one_axis(axis, ary))
    count = len(parts.checked_type.fields)
    fields = (_core.TupleGetItem(parts, i) for i in range(count))
    return List(tuple(Tensor(field, False, ary.roots) for field in fields))


@_numpy("tile")
def _tile(A, reps):
    A = tensor_of(A)
    return Tensor(call("tile", A.expr, reps=shape_of(reps, "reps")))


@_numpy("repeat")
def _repeat(a, repeats, axis=None):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        a, axis = reshape(a, Static(-1)), 0
    times = known(repeats, "repeats")
    return Tensor(call("repeat", a.expr, repeats=times, axis=one_axis(axis, a)))


@_numpy("flip")
def _flip(m, axis=None):
    m = tensor_of(m)
    axes = axes_of(axis, m)
    out = m.expr
    for at in range(len(m.shape)) if axes is None else axes:
        out = call("reverse", out, axis=at)
    return Tensor(out, False, m.roots)


@_numpy("roll")
def _roll(a, shift, axis=None):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        flat = _roll(reshape(a, Static(-1)), shift, 0)
        return reshape(flat, Tuple(tuple(size_value(a, i) for i in range(len(a.shape)))))
    at, by = one_axis(axis, a), known(shift, "shift")
    size = a.shape[at]
    if isinstance(size, int) and size:
        by %= size
    if by == 0:
        return a
    whole = [Slice(Static(None), Static(None), Static(None))] * at
    last = get(a, Tuple((*whole, Slice(Static(-by), Static(None), Static(None)))))
    first = get(a, Tuple((*whole, Slice(Static(None), Static(-by), Static(None)))))
    return _concatenate(List((last, first)), at)


@_numpy("pad")
def _pad(array, pad_width, mode="constant", constant_values=0):
    array = tensor_of(array)
    width, rank = known(pad_width, "pad_width"), len(array.shape)
    if isinstance(width, int):
        width = [(width, width)] * rank
    elif len(width) == 2 and all(isinstance(w, int) for w in width):
        width = [tuple(width)] * rank
    elif len(width) == 1:
        width = list(width) * rank
    name = {"constant": "constant", "edge": "edge", "reflect": "reflect"}.get(known(mode, "mode"))
    if name is None:
        raise Refusal(CALL, "np.pad is there for the modes constant, edge and reflect")
    fill = constant_values if isinstance(constant_values, Value) else Static(constant_values)
    value = as_expr(cast(tensor_of(fill), array.dtype))
    widths = [list(w) for w in width]
    return Tensor(call("nn.pad", array.expr, value, pad_width=widths, pad_mode=name))


@_numpy("atleast_2d")
def _atleast_2d(ary):
    ary = tensor_of(ary)
    missing = 2 - len(ary.shape)
    return _expand_dims(ary, tuple(range(missing))) if missing > 0 else ary


@_numpy("diff")
def _diff(a, n=1, axis=-1):
    a = tensor_of(a)
    whole = [Slice(Static(None), Static(None), Static(None))] * one_axis(axis, a)
    for _ in range(known(n, "n")):
        upper = get(a, Tuple((*whole, Slice(Static(1), Static(None), Static(None)))))
        lower = get(a, Tuple((*whole, Slice(Static(None), Static(-1), Static(None)))))
        a = apply("subtract", upper, lower)
    return a


# ---- Choice --------------------------------------------------------------------------------------


@_numpy("where")
def _where(condition, x=None, y=None):
    if x is None or y is None:
        raise Refusal(CALL, "np.where takes a condition and two values", help="or np.argwhere")
    if is_text(x) or is_text(y):
        pair = [t.expr for t in same_dtype([tensor_of(x), tensor_of(y)])]
        return Tensor(call("where", truth(tensor_of(condition)), *pair))
    # The dtype of both, as a sum has it.
    both = apply("maximum", *(_flat_number(v) for v in (x, y))).dtype
    dtype = both if isinstance(both, str) else both.name
    pair = [as_expr(v, dtype) for v in map(tensor_or_number, (x, y))]
    pair = [e if e.checked_type.dtype == dtype else call("cast", e, dtype=dtype) for e in pair]
    return Tensor(call("where", truth(tensor_of(condition)), *pair))


def _flat_number(value: Value) -> Value:
    """A number of the value's dtype, to ask what a pair of dtypes gives."""
    value = tensor_or_number(value)
    if isinstance(value, Tensor) and not value.weak:
        return Tensor(_core.Constant(0, value.dtype))
    return value


@_numpy("clip")
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


METHODS["clip"] = lambda a, min=None, max=None: _clip(a, min, max)


@_numpy("take", method=True)
def _take(a, indices, axis=None):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        a, axis = reshape(a, Static(-1)), 0
    index = arithmetic.integers(tensor_of(indices), "indices")
    return Tensor(call("take", a.expr, index, axis=one_axis(axis, a), mode="fast"))


@_numpy("take_along_axis")
def _take_along_axis(arr, indices, axis=-1):
    arr = tensor_of(arr)
    at = one_axis(axis, arr)
    index = arithmetic.integers(tensor_of(indices), "indices")
    return Tensor(call("gather", arr.expr, index, axis=at))


@_numpy("argwhere")
def _argwhere(a):
    return cast(Tensor(call("argwhere", truth(tensor_of(a)))), "int64")


@_numpy("sort")
def _sort(a, axis=-1):
    a = tensor_of(a)
    return Tensor(call("sort", a.expr, axis=one_axis(axis, a), is_ascend=True))


@_numpy("argsort", method=True)
def _argsort(a, axis=-1):
    a = tensor_of(a)
    return Tensor(call("argsort", a.expr, axis=one_axis(axis, a), is_ascend=True, dtype="int64"))


@_numpy("tril")
def _tril(m, k=0):
    return Tensor(
        call("trilu", tensor_of(m).expr, _core.Constant(known(k, "k"), "int64"), upper=False)
    )


@_numpy("triu")
def _triu(m, k=0):
    return Tensor(
        call("trilu", tensor_of(m).expr, _core.Constant(known(k, "k"), "int64"), upper=True)
    )


# ---- New tensors ---------------------------------------------------------------------------------


def _named_dtype(dtype: object, default: str) -> str:
    given = known(dtype, "dtype")
    return default if given is None else dtype_name(given)


@_numpy("zeros", "empty")
def _zeros(shape, dtype=None):
    return full(shape, Static(0), _named_dtype(dtype, "float64"))


@_numpy("ones")
def _ones(shape, dtype=None):
    return full(shape, Static(1), _named_dtype(dtype, "float64"))


@_numpy("full")
def _full(shape, fill_value, dtype=None):
    return full(shape, fill_value, _named_dtype(dtype, as_expr(fill_value).checked_type.dtype))


def _like(a: Tensor, value: Value, dtype: object) -> Tensor:
    name = _named_dtype(dtype, a.dtype)
    if None in a.shape:
        filled = call("full_like", a.expr, as_expr(value, a.dtype))
        return cast(Tensor(filled), name)
    return full(Tuple(tuple(map(arithmetic.size_or_number, a.shape))), value, name)


@_numpy("zeros_like", "empty_like")
def _zeros_like(a, dtype=None):
    return _like(tensor_of(a), Static(0), dtype)


@_numpy("ones_like")
def _ones_like(a, dtype=None):
    return _like(tensor_of(a), Static(1), dtype)


@_numpy("full_like")
def _full_like(a, fill_value, dtype=None):
    return _like(tensor_of(a), fill_value, dtype)


@_numpy("arange")
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


@_numpy("linspace")
def _linspace(start, stop, num=50, endpoint=True, dtype=None):
    args = [known(v, "an argument of np.linspace") for v in (start, stop, num, endpoint)]
    made = np.linspace(args[0], args[1], args[2], bool(args[3]), dtype=known(dtype, "dtype"))
    return Tensor(_core.Constant(made))


@_numpy("eye", "identity")
def _eye(N, M=None, k=0, dtype=None):
    sizes = known(N, "N"), known(M, "M")
    return Tensor(
        _core.Constant(np.eye(*sizes, k=known(k, "k"), dtype=_named_dtype(dtype, "float64")))
    )


@_numpy("array", "copy")
def _array(a, dtype=None):
    a = tensor_of(a)
    return cast(a, _named_dtype(dtype, a.dtype))


@_numpy("asarray", "ascontiguousarray")
def _asarray(a, dtype=None):
    made = tensor_of(a)
    # The same memory where nothing is converted.
    same = made is a and _named_dtype(dtype, made.dtype) == made.dtype
    return made if same else _array(a, dtype)


@_numpy("char.upper")
def _upper(a):
    return Tensor(call("text.change_case", tensor_of(a).expr, upper=True))


@_numpy("char.lower")
def _lower(a):
    return Tensor(call("text.change_case", tensor_of(a).expr, upper=False))


@_numpy("char.add")
def _add_text(x1, x2):
    return apply("add", tensor_or_number(x1), tensor_or_number(x2))


METHODS["upper"], METHODS["lower"] = _upper, _lower
METHODS["copy"] = lambda a: cast(tensor_of(a), tensor_of(a).dtype)
METHODS["astype"] = lambda a, dtype: cast(tensor_of(a), dtype_name(known(dtype, "dtype")))
METHODS["flatten"] = lambda a: Tensor(_ravel(a).expr)
METHODS["item"] = lambda a: reshape(tensor_of(a), Tuple(()))
METHODS["round"] = lambda a: apply("rint", a)
METHODS["repeat"] = _repeat


def _method_reshape(a, *shape):
    return reshape(tensor_of(a), shape[0] if len(shape) == 1 else Tuple(shape))


def _method_transpose(a, *axes):
    if len(axes) == 1 and isinstance(axes[0], Static) and isinstance(axes[0].obj, int):
        return _transpose(a, Tuple(axes))
    return _transpose(a, (axes[0] if len(axes) == 1 else Tuple(axes)) if axes else None)


METHODS["reshape"] = _method_reshape
METHODS["transpose"] = _method_transpose


@_numpy("shape")
def _shape(a):
    a = tensor_of(a)
    return Tuple(tuple(size_value(a, i) for i in range(len(a.shape))))


@_numpy("ndim")
def _ndim(a):
    return Static(len(tensor_of(a).shape))


@_numpy("size")
def _size(a):
    return count_of(tensor_of(a), None)


@_numpy("round", "around")
def _round(a, decimals=0):
    if known(decimals, "decimals") != 0:
        raise Refusal(VALUE, "np.round is there for decimals=0")
    return apply("rint", a)


ATTRIBUTES: dict[str, Callable] = {
    "shape": _shape,
    "ndim": _ndim,
    "size": _size,
    "T": _transpose,
    "dtype": lambda a: Static(arithmetic.numpy_dtype(a.dtype)),
    "mT": lambda a: _swapaxes(a, -1, -2),
}
