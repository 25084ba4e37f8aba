"""NumPy's functions that arrange elements: shapes, diagonals, grids, windows, and new tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function.numpy.registry import add_method, numpy_function, there
from relay._function.operations.arithmetic import (
    apply,
    cast,
    describe,
    dtype_name,
    kind_of,
    numpy_dtype,
)
from relay._function.operations.arrays import (
    axes_of,
    count_of,
    filled_each,
    full,
    known,
    one_axis,
    operands_of,
    reshape,
    same_dtype,
    size_value,
    stacked,
    tensor_of,
)
from relay._function.operations.indexing import Slice, get, places_of
from relay._function.operations.shorthand import (
    add,
    along,
    choose,
    concatenated,
    div,
    eq,
    flat,
    floating,
    floordiv,
    ge,
    le,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    need,
    neg,
    part,
    positions,
    positions_of,
    power,
    sizes,
    sub,
    taken,
    value_of,
)
from relay._function.syntax.errors import CALL, VALUE, Refusal
from relay._function.values import (
    Batch,
    List,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
    as_expr,
    lift,
)
from relay._ops.call import call


def _items(value: Value, what: str) -> list[Value]:
    """The elements of a list or tuple."""
    if isinstance(value, (List, Tuple)):
        return list(value.items)
    if isinstance(value, Tensor) and value.shape and isinstance(value.shape[0], int):
        return [get(value, Static(i)) for i in range(value.shape[0])]
    raise Refusal(VALUE, f"{what} is a list or tuple of tensors", found=describe(value))


# ---- Axes ----------------------------------------------------------------------------------------


def _at_least(rank: int, where: Callable[[int], list[int]]) -> Callable:
    """np.atleast_*: new axes at the places that `where` names, for each rank below."""

    def lifted(*arys):
        out = []
        for ary in map(tensor_of, arys):
            made = ary.expr
            for at in where(len(ary.shape)) if len(ary.shape) < rank else []:
                made = call("expand_dims", made, axis=at)
            out.append(Tensor(made, False, ary.roots))
        return out[0] if len(out) == 1 else Tuple(tuple(out))

    return lifted


numpy_function("atleast_1d")(_at_least(1, lambda rank: [0]))
numpy_function("atleast_2d")(_at_least(2, lambda rank: [0] * (2 - rank)))
numpy_function("atleast_3d")(_at_least(3, lambda rank: {0: [0, 0, 0], 1: [0, 2], 2: [2]}[rank]))


@numpy_function("rollaxis")
def _rollaxis(a, axis, start=0):
    a = tensor_of(a)
    at, to = one_axis(axis, a), known(start, "start")
    to += len(a.shape) if to < 0 else 0
    return there("moveaxis")(a, at, to - 1 if at < to else to)


@numpy_function("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x):
    return there("swapaxes")(x, -1, -2)


@numpy_function("fliplr")
def _fliplr(m):
    return there("flip")(m, 1)


@numpy_function("flipud")
def _flipud(m):
    return there("flip")(m, 0)


@numpy_function("rot90")
def _rot90(m, k=1, axes=(0, 1)):
    m = tensor_of(m)
    first, second = axes_of(axes, m)
    turns = known(k, "k") % 4
    if turns == 0:
        return m
    if turns == 2:
        return there("flip")(m, (first, second))
    if turns == 1:
        return there("swapaxes")(there("flip")(m, second), first, second)
    return there("flip")(there("swapaxes")(m, first, second), second)


@numpy_function("unstack")
def _unstack(x, axis=0):
    x = tensor_of(x)
    at = one_axis(axis, x)
    need(isinstance(x.shape[at], int), "np.unstack needs an axis of known size",
         "use for, over the first axis")  # fmt: skip
    parts = (part(x, at, i, i + 1) for i in range(x.shape[at]))
    return Tuple(tuple(Tensor(call("squeeze", p.expr, axis=[at]), False, x.roots) for p in parts))


# ---- Joining and taking apart --------------------------------------------------------------------


@numpy_function("dstack")
def _dstack(tup):
    return there("concatenate")(List(tuple(there("atleast_3d")(t) for t in operands_of(tup))), 2)


@numpy_function("column_stack")
def _column_stack(tup):
    columns = []
    for t in operands_of(tup):
        if not t.shape:
            t = there("atleast_2d")(t)
        columns.append(there("expand_dims")(t, 1) if len(t.shape) == 1 else t)
    return there("concatenate")(List(tuple(columns)), 1)


@numpy_function("append")
def _append(arr, values, axis=None):
    pair = List((tensor_of(arr), tensor_of(values)))
    return there("concatenate")(pair, axis if known(axis, "axis") is not None else None)


@numpy_function("block")
def _block(arrays):
    def depth(value: Value) -> int:
        return 1 + max(map(depth, value.items)) if isinstance(value, List) else 0

    deep = depth(arrays)

    def lifted(value: Value) -> list[Tensor]:
        if isinstance(value, List):
            return [t for item in value.items for t in lifted(item)]
        return [tensor_of(value)]

    leaves = lifted(arrays)
    rank = max([deep, *(len(t.shape) for t in leaves)])

    def joined(value: Value, level: int) -> Tensor:
        if not isinstance(value, List):
            t = tensor_of(value)
            lacking = rank - len(t.shape)
            return (
                Tensor(call("expand_dims", t.expr, axis=0, num_newaxis=lacking)) if lacking else t
            )
        parts = List(tuple(joined(item, level - 1) for item in value.items))
        return there("concatenate")(parts, rank - level)

    return cast(joined(arrays, deep), same_dtype(leaves)[0].dtype)


@numpy_function("split")
def _split(ary, indices_or_sections, axis=0):
    ary = tensor_of(ary)
    sections = known(indices_or_sections, "indices_or_sections")
    at = one_axis(axis, ary)
    size = ary.shape[at]
    if isinstance(sections, int) and isinstance(size, int) and size % max(sections, 1):
        raise Refusal(
            VALUE, f"an axis of size {size} has no {sections} equal parts", help="np.array_split"
        )
    return _parts(ary, sections, at)


def _parts(ary: Tensor, sections: object, at: int) -> List:
    made = call("split", ary.expr, indices_or_sections=sections, axis=at)
    fields = (_core.TupleGetItem(made, i) for i in range(len(made.checked_type.fields)))
    return List(tuple(Tensor(field, False, ary.roots) for field in fields))


@numpy_function("array_split")
def _array_split(ary, indices_or_sections, axis=0):
    ary = tensor_of(ary)
    at, sections = one_axis(axis, ary), known(indices_or_sections, "indices_or_sections")
    if not isinstance(sections, int):
        return _parts(ary, sections, at)
    size = ary.shape[at]
    if isinstance(size, int):
        each, more = divmod(size, sections)
        ends = np.cumsum([each + (i < more) for i in range(sections)])[:-1]
        return _parts(ary, [int(e) for e in ends], at)
    count = size_value(ary, at)
    each, more = floordiv(count, sections), mod(count, sections)
    ends = [add(mul(each, i), minimum(more, i)) for i in range(sections + 1)]
    pairs = itertools.pairwise(ends)
    return List(tuple(part(ary, at, start, stop) for start, stop in pairs))


def _split_along(name: str, axis: int) -> None:
    def split(ary, indices_or_sections):
        ary = tensor_of(ary)
        at = 0 if name == "hsplit" and len(ary.shape) == 1 else axis
        return _split(ary, indices_or_sections, at)

    numpy_function(name)(split)


_split_along("hsplit", 1)
_split_along("vsplit", 0)
_split_along("dsplit", 2)


@numpy_function("resize")
def _resize(a, new_shape):
    line = flat(tensor_of(a))
    shape = known(new_shape, "new_shape")
    shape = [shape] if isinstance(shape, int) else list(shape)
    count = math.prod(shape)
    at = mod(positions(count), size_value(line, 0))
    return reshape(taken(line, at), shape)


@numpy_function("trim_zeros")
def _trim_zeros(filt, trim="fb"):
    line = tensor_of(filt)
    need(len(line.shape) == 1, "np.trim_zeros is there for vectors")
    sides, hits = known(trim, "trim").lower(), there("flatnonzero")(line)
    count = value_of(size_value(line, 0))
    far = concatenated([hits, reshape(cast(tensor_of(count), "int64"), Static(1))])
    none = eq(size_value(hits, 0), 0)
    first = there("min")(far) if "f" in sides else Static(0)
    near = concatenated([hits, Tensor(_core.Constant(np.array([-1])))])
    stop = add(there("max")(near), 1) if "b" in sides else count
    stop = choose(none, 0, stop) if "f" not in sides else maximum(stop, first)
    return part(line, 0, first, stop)


@numpy_function("insert", only="obj= one known position")
def _insert(arr, obj, values, axis=None):
    arr = tensor_of(arr)
    if known(axis, "axis") is None:
        arr, axis = flat(arr), 0
    at, place = one_axis(axis, arr), known(obj, "obj")
    need(isinstance(place, int), "np.insert is there for one position", "np.concatenate the parts")
    new = cast(tensor_of(filled_each(values, arr.dtype)), arr.dtype)
    if len(new.shape) == len(arr.shape) and len(arr.shape) == 1:
        pass
    elif len(new.shape) == len(arr.shape):
        new = Tensor(call("transpose", new.expr, axes=_first_to(at, len(arr.shape))))
    else:
        shape = list(arr.shape)
        shape[at] = 1
        need(None not in shape, "np.insert needs sizes that have names")
        if len(new.shape) == len(arr.shape) - 1:
            new = there("expand_dims")(new, at)
        new = there("broadcast_to")(new, lift(tuple(shape)))
    return concatenated([part(arr, at, None, place), new, part(arr, at, place)], at)


def _first_to(at: int, rank: int) -> list[int]:
    order = list(range(1, rank))
    order.insert(at, 0)
    return order


@numpy_function("delete", only="obj= known positions or a known slice")
def _delete(arr, obj, axis=None):
    arr = tensor_of(arr)
    if known(axis, "axis") is None:
        arr, axis = flat(arr), 0
    gone = obj.known() if isinstance(obj, Slice) else known(obj, "obj")
    at, size = one_axis(axis, arr), arr.shape[one_axis(axis, arr)]
    if isinstance(gone, int) and not isinstance(size, int):
        behind = part(arr, at, gone + 1) if gone != -1 else part(arr, at, 0, 0)
        return concatenated([part(arr, at, None, gone), behind], at)
    if not isinstance(size, int):
        need(isinstance(gone, (list, tuple)), "np.delete of a slice needs an axis of known size",
             "np.concatenate what is before and behind it")  # fmt: skip
        count = value_of(size_value(arr, at))
        places = Tensor(_core.Constant(np.array(gone, "int64")))
        hit = there("isin")(positions_of(arr, at), mod(places, count), invert=True)
        return taken(arr, there("flatnonzero")(hit), at)
    kept = np.delete(np.arange(size), gone)
    return taken(arr, Tensor(_core.Constant(kept.astype("int64"))), at)


@numpy_function("roll")
def _roll(a, shift, axis=None):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        line = flat(a)
        return reshape(_rolled(line, _whole_shift(shift), 0), sizes(a))
    axes, by = axes_of(axis, a), shift
    shifts = list(by.items) if isinstance(by, (Tuple, List)) else [by]
    if len(axes) != len(shifts):
        if 1 not in (len(axes), len(shifts)):
            raise Refusal(
                VALUE,
                "np.roll takes a shift for each axis, or one for all",
                expected=f"{len(axes)} shifts",
                found=f"{len(shifts)}",
            )
        count = max(len(axes), len(shifts))
        axes, shifts = axes * (count // len(axes)), shifts * (count // len(shifts))
    for at, one in zip(axes, shifts, strict=True):
        a = _rolled(a, one, at)
    return a


def _whole_shift(shift: Value) -> Value:
    if not isinstance(shift, (Tuple, List)):
        return shift
    total: Value = Static(0)
    for one in shift.items:
        total = add(total, one)
    return total


def _rolled(a: Tensor, shift: object, at: int) -> Tensor:
    by, size = value_of(shift), a.shape[at]
    if isinstance(by, Static) and isinstance(size, int):
        by = Static(by.obj % size if size else 0)
        if by.obj == 0:
            return cast(a, a.dtype)
        return concatenated([part(a, at, -by.obj), part(a, at, 0, -by.obj)], at)
    count = size_value(a, at)
    index = mod(sub(positions_of(a, at), by), count)
    return taken(a, index, at)


# ---- Diagonals and triangles ---------------------------------------------------------------------


@numpy_function("diagonal", method=True)
def _diagonal(a, offset=0, axis1=0, axis2=1):
    a = tensor_of(a)
    rank, k = len(a.shape), known(offset, "offset")
    i, j = one_axis(axis1, a), one_axis(axis2, a)
    need(i != j, "a diagonal lies between two axes")
    order = [axis for axis in range(rank) if axis not in (i, j)] + [i, j]
    turned = Tensor(call("transpose", a.expr, axes=order)) if order != list(range(rank)) else a
    rows, columns = (value_of(size_value(turned, rank - 2)), value_of(size_value(turned, rank - 1)))
    down, right = max(-k, 0), max(k, 0)
    if isinstance(rows, Static) and isinstance(columns, Static):
        count = Static(max(min(rows.obj - down, columns.obj - right), 0))
    else:
        count = maximum(minimum(sub(rows, down), sub(columns, right)), 0)
        if (
            isinstance(rows, Size)
            and isinstance(columns, Size)
            and rows.dim == columns.dim
            and k == 0
        ):
            count = rows
    at = positions(count)
    shape = Tuple((*(size_value(turned, n) for n in range(rank - 2)), Static(-1)))
    line = reshape(turned, shape)
    index = add(mul(add(at, down), columns), add(at, right))
    out = taken(line, tensor_of(index), rank - 2)
    return Tensor(out.expr, False, a.roots)


@numpy_function("linalg.diagonal")
def _linalg_diagonal(x, offset=0):
    return _diagonal(x, offset, -2, -1)


@numpy_function("trace", method=True)
def _trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    return there("sum")(_diagonal(a, offset, axis1, axis2), -1, dtype)


@numpy_function("linalg.trace")
def _linalg_trace(x, offset=0, dtype=None):
    return _trace(x, offset, -2, -1, dtype)


@numpy_function("diag")
def _diag(v, k=0):
    v = tensor_of(v)
    if len(v.shape) == 2:
        return _diagonal(v, k)
    need(len(v.shape) == 1, "np.diag takes a vector or a matrix", "np.diagonal")
    off = known(k, "k")
    if v.shape == (0,):
        return full(Tuple((Static(abs(off)),) * 2), Static(0), v.dtype)
    size = add(size_value(v, 0), abs(off))
    at = positions(size)
    row, column = along(at, 0, 2), along(at, 1, 2)
    hit = eq(sub(column, row), off)
    last = sub(tensor_of(size_value(v, 0)), 1)
    index = maximum(minimum(sub(at, max(-off, 0)), last), 0)
    spread = along(taken(v, tensor_of(index)), 0, 2)
    return choose(hit, spread, Tensor(_core.Constant(np.zeros((), numpy_dtype(v.dtype)))))


@numpy_function("diagflat")
def _diagflat(v, k=0):
    return _diag(flat(tensor_of(v)), k)


@numpy_function("tri")
def _tri(N, M=None, k=0, dtype=None):
    name = known(dtype, "dtype")
    rows = value_of(N)
    columns = rows if M is None or (isinstance(M, Static) and M.obj is None) else value_of(M)
    index = le(sub(along(positions(columns), 1, 2), along(positions(rows), 0, 2)), k)
    return cast(index, "float64" if name is None else dtype_name(name))


def _triangle_mask(rows: Value, columns: Value, k: object, upper: bool) -> Tensor:
    apart = sub(along(positions(columns), 1, 2), along(positions(rows), 0, 2))
    return ge(apart, k) if upper else le(apart, k)


def _indices_of(mask: Tensor) -> Tuple:
    return there("nonzero")(mask)


def _triangle_indices(upper: bool) -> Callable:
    def indices(n, k=0, m=None):
        columns = n if m is None or known(m, "m") is None else m
        return _indices_of(_triangle_mask(value_of(n), value_of(columns), k, upper))

    return indices


def _triangle_indices_from(upper: bool) -> Callable:
    def indices(arr, k=0):
        arr = tensor_of(arr)
        need(len(arr.shape) == 2, "a matrix is needed")
        mask = _triangle_mask(*(value_of(size_value(arr, i)) for i in (0, 1)), k, upper)
        return _indices_of(mask)

    return indices


numpy_function("triu_indices")(_triangle_indices(True))
numpy_function("tril_indices")(_triangle_indices(False))
numpy_function("triu_indices_from")(_triangle_indices_from(True))
numpy_function("tril_indices_from")(_triangle_indices_from(False))


@numpy_function("diag_indices")
def _diag_indices(n, ndim=2):
    return Tuple((positions(value_of(n)),) * known(ndim, "ndim"))


@numpy_function("diag_indices_from")
def _diag_indices_from(arr):
    arr = tensor_of(arr)
    return Tuple((positions_of(arr, 0),) * len(arr.shape))


# ---- Grids ---------------------------------------------------------------------------------------


@numpy_function("meshgrid")
def _meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    order = known(indexing, "indexing")
    need(order in ("xy", "ij"), "np.meshgrid is there for indexing= xy and ij")
    lines = [flat(tensor_of(x)) for x in xi]
    rank = len(lines)
    places = list(range(rank))
    if order == "xy" and rank > 1:
        places[:2] = [1, 0]
    thin = [along(line, places[i], rank) for i, line in enumerate(lines)]
    if known(sparse, "sparse"):
        return Tuple(tuple(thin))
    out = []
    for i, x in enumerate(thin):
        for j, line in enumerate(lines):
            if j != i:
                one = Tensor(call("ones_like", line.expr))
                ones = along(cast(eq(one, one), x.dtype) if x.dtype == "bool" else cast(one, x.dtype),
                             places[j], rank)  # fmt: skip
                x = apply("multiply", x, ones)
        out.append(cast(x, lines[i].dtype))
    return Tuple(tuple(out))


@numpy_function("ix_")
def _ix(*args):
    lines = []
    for x in map(tensor_of, args):
        lines.append(there("flatnonzero")(x) if x.dtype == "bool" else x)
    return Tuple(tuple(along(line, i, len(lines)) for i, line in enumerate(lines)))


@numpy_function("indices")
def _indices(dimensions, dtype=None, sparse=False):
    lines = [positions(value_of(n)) for n in _items(dimensions, "dimensions")]
    name = known(dtype, "dtype")
    lines = [cast(x, "int64" if name is None else dtype_name(name)) for x in lines]
    grids = _meshgrid(*lines, sparse=sparse, indexing="ij")
    return grids if known(sparse, "sparse") else stacked(list(grids.items), 0)


@numpy_function("broadcast_arrays")
def _broadcast_arrays(*args):
    tensors = list(map(tensor_of, args))
    if all(None not in t.shape for t in tensors):
        total = cast(tensors[0], "int8")
        for t in tensors[1:]:
            total = add(total, cast(t, "int8"))
        shape = list(total.shape)
        if None not in shape:
            made = (call("broadcast_to", t.expr, shape=shape) for t in tensors)
            return Tuple(
                tuple(Tensor(m, False, t.roots) for m, t in zip(made, tensors, strict=True))
            )
    total = cast(tensors[0], "int8")
    for t in tensors[1:]:
        total = add(total, cast(t, "int8"))
    made = (call("broadcast_to_like", t.expr, total.expr) for t in tensors)
    return Tuple(tuple(Tensor(m, False, t.roots) for m, t in zip(made, tensors, strict=True)))


# ---- New tensors ---------------------------------------------------------------------------------


@numpy_function("linspace")
def _linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    start, stop = value_of(start), value_of(stop)
    count, ends = known(num, "num"), bool(known(endpoint, "endpoint"))
    wanted, both_results = known(dtype, "dtype"), known(retstep, "retstep")
    if isinstance(start, Static) and isinstance(stop, Static):
        made = np.linspace(start.obj, stop.obj, count, ends, True, wanted)
        line = Tensor(_core.Constant(made[0]))
        return Tuple((line, Tensor(_core.Constant(np.float64(made[1]))))) if both_results else line
    need(isinstance(count, int), "num= is known when the function is compiled")
    start, stop = (
        cast(tensor_of(v), "float64") if _is_wide(v) else tensor_of(v) for v in (start, stop)
    )
    start, stop = (floating(v) for v in (start, stop))
    width = sub(stop, start)
    steps = count - 1 if ends else count
    rank = len(width.shape)
    at = along(Tensor(_core.Constant(np.arange(count, dtype="float64"))), 0, rank + 1)
    step = div(width, float(steps)) if steps > 0 else mul(width, float("nan"))
    line = add(start, mul(cast(at, width.dtype), step if steps > 0 else width))
    if ends and count > 1:
        last = eq(at, float(count - 1))
        line = choose(last, stop, line)
    name = wanted if wanted is not None else None
    if name is not None:
        name = dtype_name(name)
        line = apply("floor", line) if kind_of(name) == "i" else line
        line = cast(line, name)
    if rank and known(axis, "axis") != 0:
        line = there("moveaxis")(line, 0, known(axis, "axis"))
    return Tuple((line, step)) if both_results else line


def _is_wide(value: Value) -> bool:
    """Numbers of Python's and integers are float64 here."""
    return not isinstance(value, Tensor) or value.weak or kind_of(value.dtype) != "f"


@numpy_function("logspace")
def _logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    given = [value_of(v) for v in (start, stop, base)]
    if all(isinstance(v, Static) for v in given):
        options = known(num, "num"), bool(known(endpoint, "endpoint")), given[2].obj
        made = np.logspace(given[0].obj, given[1].obj, *options, known(dtype, "dtype"))
        return Tensor(_core.Constant(made))
    out = power(given[2], _linspace(start, stop, num, endpoint, axis=axis))
    name = known(dtype, "dtype")
    return out if name is None else cast(out, dtype_name(name))


@numpy_function("geomspace")
def _geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    given = [value_of(v) for v in (start, stop)]
    if all(isinstance(v, Static) for v in given):
        made = np.geomspace(given[0].obj, given[1].obj, known(num, "num"),
                            bool(known(endpoint, "endpoint")), known(dtype, "dtype"))  # fmt: skip
        return Tensor(_core.Constant(made))
    sign = apply("sign", value_of(start))
    low, high = (apply("log10", apply("absolute", v)) for v in given)
    line = power(10.0, _linspace(low, high, num, endpoint, axis=axis))
    return mul(line, sign)


@numpy_function("vander")
def _vander(x, N=None, increasing=False):
    x = tensor_of(x)
    count = known(N, "N")
    count = x.shape[0] if count is None else count
    need(isinstance(count, int), "np.vander needs the number of columns", "N=")
    exponents = np.arange(count, dtype="int64")
    exponents = exponents if known(increasing, "increasing") else exponents[::-1].copy()
    wide = cast(x, np.promote_types(numpy_dtype(x.dtype), int).name)
    columns = [_whole_power(wide, int(e)) for e in exponents]
    return stacked(columns, 1)


def _whole_power(x: Tensor, exponent: int) -> Tensor:
    """The power by products, as NumPy multiplies the columns up."""
    out = Tensor(call("ones_like", x.expr))
    for _ in range(exponent):
        out = mul(out, x)
    return out


def _by_numpy(*names: str) -> None:
    """Functions of what is known when the function is compiled: NumPy's result is a constant."""
    for name in names:
        of = np
        for piece in name.split("."):
            of = getattr(of, piece, None)
        if of is None:
            continue

        def constant(*args, _of=of, _name=name, **named):
            given = [known(a, f"an argument of np.{_name}") for a in args]
            options = {k: known(v, f"'{k}' of np.{_name}") for k, v in named.items()}
            try:
                made = _of(*given, **options)
            except (TypeError, ValueError) as error:
                raise Refusal(VALUE, str(error)) from None
            return lift(made)

        numpy_function(name, only="known arguments")(constant)


_by_numpy(
    "bartlett", "blackman", "hamming", "hanning", "kaiser",
    "broadcast_shapes", "can_cast", "promote_types", "min_scalar_type", "issubdtype", "isdtype",
    "mintypecode", "typename", "base_repr", "binary_repr", "mask_indices",
)  # fmt: skip


def _dtype_of(value: Value) -> object:
    """What np.result_type asks of a value: its dtype, or a number of Python's."""
    if isinstance(value, Tensor):
        return (
            {"b": False, "i": 0, "f": 0.0}[kind_of(value.dtype)]
            if value.weak
            else numpy_dtype(value.dtype)
        )
    return 0 if isinstance(value, Size) else known(value, "a dtype")


@numpy_function("result_type")
def _result_type(*arrays_and_dtypes):
    return Static(np.result_type(*map(_dtype_of, arrays_and_dtypes)))


@numpy_function("common_type")
def _common_type(*arrays):
    return Static(np.common_type(*(np.empty(0, numpy_dtype(tensor_of(a).dtype)) for a in arrays)))


@numpy_function("isfortran")
def _isfortran(a):
    tensor_of(a)
    return Static(False)


@numpy_function("isscalar")
def _isscalar(element):
    return Static(
        isinstance(element, (Static, Size)) or (isinstance(element, Tensor) and element.weak)
    )


@numpy_function("iterable")
def _iterable(y):
    return Static(not isinstance(y, (Static, Size)) and bool(not isinstance(y, Tensor) or y.shape))


@numpy_function("asanyarray", "asfortranarray")
def _asanyarray(a, dtype=None):
    return there("asarray")(a, dtype)


@numpy_function("require")
def _require(a, dtype=None, requirements=None):
    return there("asarray")(a, dtype)


@numpy_function("astype")
def _astype(x, dtype):
    return cast(tensor_of(x), dtype_name(known(dtype, "dtype")))


# ---- Changes, as new tensors ---------------------------------------------------------------------


@numpy_function("select")
def _select(condlist, choicelist, default=0):
    conditions, choices = _items(condlist, "condlist"), _items(choicelist, "choicelist")
    need(len(conditions) == len(choices) and len(choices) > 0, "a choice for each condition")
    out = value_of(default)
    # NumPy gives the dtype of all choices and the default.
    for test, value in zip(reversed(conditions), reversed(choices), strict=True):
        out = choose(tensor_of(test), value_of(value), out)
    tensors = [t for v in choices if not isinstance(t := value_of(v), Static)]
    dtype = out.dtype
    if tensors:
        kinds = [_dtype_of(value_of(v)) for v in (*choices, value_of(default))]
        dtype = np.result_type(*kinds).name
    return cast(out, dtype)


@numpy_function("choose", method=True, only="choices as a list")
def _choose(a, choices, mode="raise"):
    a, many = (
        cast(tensor_of(a), "int64"),
        same_dtype(list(map(tensor_of, _items(choices, "choices")))),
    )
    how = known(mode, "mode")
    if how == "wrap":
        a = mod(a, len(many))
    elif how == "clip":
        a = maximum(0, minimum(a, len(many) - 1))
    else:
        checked = choose(lt(a, 0), add(neg(a), len(many)), a)
        count = _core.Constant(np.array(len(many)))
        a = Tensor(call("checked_index", checked.expr, count))
    out = many[-1]
    for i in reversed(range(len(many) - 1)):
        out = choose(eq(a, i), many[i], out)
    return add(out, mul(cast(a, out.dtype), 0)) if len(many) == 1 else out


@numpy_function("compress")
def _compress(condition, a, axis=None):
    a = tensor_of(a)
    if known(axis, "axis") is None:
        a, axis = flat(a), 0
    return _hit(condition, a, one_axis(axis, a))


def _hit(condition: Value, a: Tensor, axis: int) -> Tensor:
    """The slices where a condition is true, which may be shorter than the axis but not longer."""
    hits = there("flatnonzero")(tensor_of(condition))
    return taken(a, Tensor(places_of(hits, a, axis)), axis)


add_method("compress", lambda a, condition, axis=None: _compress(condition, a, axis))


@numpy_function("extract")
def _extract(condition, arr):
    return _hit(condition, flat(tensor_of(arr)), 0)


@numpy_function("pad", only="mode= constant, edge, reflect, symmetric, wrap")
def _pad(array, pad_width, mode="constant", constant_values=0):
    array = tensor_of(array)
    rank, how = len(array.shape), known(mode, "mode")
    widths = _pairs(pad_width, rank, "pad_width")
    if how in ("constant", "edge", "reflect"):
        fills = _fills(constant_values, rank)
        if how == "constant" and fills is not None:
            return _filled_pad(array, widths, fills)
        if how != "reflect" or _one_reflection(array, widths):
            fill = (
                constant_values if isinstance(constant_values, Value) else Static(constant_values)
            )
            value = as_expr(cast(tensor_of(fill), array.dtype))
            return Tensor(call("nn.pad", array.expr, value, pad_width=widths, pad_mode=how))
    if how not in ("reflect", "symmetric", "wrap"):
        raise Refusal(
            CALL,
            f"np.pad is there without the mode {how!r}",
            expected="constant, edge, reflect, symmetric or wrap",
            help="np.concatenate puts the borders beside the tensor",
        )
    for at, (before, behind) in enumerate(widths):
        if before or behind:
            array = _repeated_border(array, at, before, behind, how)
    return array


def _pairs(width: Value, rank: int, what: str) -> list[list]:
    given = known(width, what)
    if isinstance(given, dict):
        return [list(_pair(given.get(i, given.get(i - rank, 0)))) for i in range(rank)]
    spread = np.broadcast_to(np.asarray(given), (rank, 2))
    return [[int(v) for v in row] for row in spread]


def _pair(value: object) -> tuple:
    return (value, value) if isinstance(value, int) else tuple(value)


def _fills(values: object, rank: int) -> list[list] | None:
    """The values of each border, where they differ."""
    if not isinstance(values, (Tuple, List)):
        return None
    return np.broadcast_to(np.asarray(known(values, "constant_values")), (rank, 2)).tolist()


def _filled_pad(array: Tensor, widths: list[list], fills: list[list]) -> Tensor:
    for at, (sides, values) in enumerate(zip(widths, fills, strict=True)):
        for side, (count, number) in enumerate(zip(sides, values, strict=True)):
            width = [[0, 0] for _ in array.shape]
            width[at][side] = count
            value = _core.Constant(np.array(number).astype(numpy_dtype(array.dtype)))
            array = Tensor(call("nn.pad", array.expr, value, pad_width=width, pad_mode="constant"))
    return array


def _one_reflection(array: Tensor, widths: list[list]) -> bool:
    """Whether each border is less than the tensor is long, so that it is reflected once."""
    pairs = zip(array.shape, widths, strict=True)
    return all(isinstance(n, int) and max(w) < n for n, w in pairs)


def _repeated_border(a: Tensor, at: int, before: int, behind: int, how: str) -> Tensor:
    count = value_of(size_value(a, at))
    index = sub(positions(add(count, before + behind)), before)
    if how == "wrap":
        index = mod(index, count)
    elif how == "symmetric":
        index = mod(index, mul(count, 2))
        index = minimum(index, sub(sub(mul(count, 2), 1), index))
    else:
        round_trip = maximum(sub(mul(count, 2), 2), 1)
        index = mod(index, round_trip)
        index = minimum(index, sub(sub(mul(count, 2), 2), index))
        index = maximum(index, 0)
    return taken(a, tensor_of(index), at)


@numpy_function("piecewise", reads=True, only="functions of the whole tensor")
def _piecewise(reader, x, condlist, funclist):
    x, results = tensor_of(x), _items(funclist, "funclist")
    tests = condlist.items if isinstance(condlist, (List, Tuple)) else [condlist]
    tests = list(map(tensor_of, tests))
    need(len(results) - len(tests) in (0, 1), "np.piecewise takes a function for each condition")

    def value(result: Value) -> Value:
        is_number = isinstance(result, Static) and isinstance(result.obj, (int, float))
        return result if is_number or isinstance(result, Tensor) else reader.call(result, [x], {})

    out = value(results[-1]) if len(results) > len(tests) else Static(0)
    for test, result in zip(reversed(tests), reversed(results[: len(tests)]), strict=True):
        out = choose(test, value(result), out)
    return cast(out, x.dtype)


@numpy_function("fromfunction", reads=True)
def _fromfunction(reader, function, shape, dtype=None):
    name = known(dtype, "dtype")
    lines = [positions(value_of(n)) for n in _items(shape, "shape")]
    wanted = "float64" if name is None else dtype_name(name)
    grids = _meshgrid(*(cast(line, wanted) for line in lines), indexing="ij")
    return reader.call(function, list(grids.items), {})


@numpy_function("apply_along_axis", reads=True)
def _apply_along_axis(reader, func1d, axis, arr, *args, **kwargs):
    arr = tensor_of(arr)
    at, rank = one_axis(axis, arr), len(arr.shape)
    need(not args and not kwargs, "np.apply_along_axis passes the vector alone",
         "a lambda passes other arguments")  # fmt: skip
    turned = there("moveaxis")(arr, at, -1)
    outer = [size_value(turned, i) for i in range(rank - 1)]
    rows = Tuple((count_of(turned, [*range(rank - 1)]), size_value(turned, rank - 1)))
    rows = reshape(turned, rows)
    done = reader.call(Batch("vmap", func1d, in_axes=0, out_axes=0), [rows], {})
    done = tensor_of(done)
    inner = [size_value(done, i) for i in range(1, len(done.shape))]
    out = reshape(done, Tuple((*outer, *inner)))
    order = list(range(len(out.shape)))
    new = order[rank - 1 :]
    return Tensor(call("transpose", out.expr, axes=order[:at] + new + order[at : rank - 1]))


@numpy_function("apply_over_axes", reads=True)
def _apply_over_axes(reader, func, a, axes):
    out = tensor_of(a)
    for at in axes_of(axes, out):
        made = tensor_of(reader.call(func, [out, Static(at)], {}))
        lost = len(made.shape) < len(out.shape)
        out = there("expand_dims")(made, at) if lost else made
    return out


# ---- Index arithmetic ----------------------------------------------------------------------------


@numpy_function("unravel_index")
def _unravel_index(indices, shape):
    index = tensor_of(indices)
    numbers = (
        [value_of(n) for n in _items(shape, "shape")]
        if isinstance(shape, (Tuple, List))
        else [shape]
    )
    rest, out = cast(index, "int64"), []
    for n in reversed(numbers):
        out.append(mod(rest, n))
        rest = floordiv(rest, n)
    return Tuple(tuple(reversed(out)))


@numpy_function("ravel_multi_index")
def _ravel_multi_index(multi_index, dims, mode="raise"):
    how = known(mode, "mode")
    total: Value = Static(0)
    for index, n in zip(_items(multi_index, "multi_index"), _items(dims, "dims"), strict=True):
        index = tensor_of(index)
        if how == "wrap":
            index = mod(index, n)
        elif how == "clip":
            index = maximum(0, minimum(index, sub(n, 1)))
        else:
            size = as_expr(value_of(n), "int64")
            far = choose(lt(index, 0), add(neg(index), value_of(n)), index)
            index = Tensor(call("checked_index", cast(far, "int64").expr, size))
        total = add(mul(total, n), index)
    return cast(tensor_of(total), "int64")
