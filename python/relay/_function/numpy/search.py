"""NumPy's functions that sort, search, and compare tensors as sets; interpolation and convolution."""

from __future__ import annotations

import numpy as np

from relay import _core
from relay._function.numpy.registry import add_method, loop, numpy_function, there
from relay._function.operations.arithmetic import cast, in_float32, kind_of, numpy_dtype, truth
from relay._function.operations.arrays import (
    known,
    matmul,
    one_axis,
    reshape,
    same_dtype,
    size_value,
    tensor_of,
)
from relay._function.operations.shorthand import (
    add,
    along,
    both,
    choose,
    concatenated,
    div,
    either,
    eq,
    flat,
    floating,
    floordiv,
    ge,
    gt,
    isnan,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    ne,
    need,
    neg,
    no,
    part,
    positions,
    positions_of,
    sizes,
    sub,
    taken,
    value_of,
)
from relay._function.syntax.errors import CALL, Refusal
from relay._function.values import Form, List, Static, Tensor, Tuple, Value
from relay._ops.call import call

# ---- Where elements are --------------------------------------------------------------------------


@numpy_function("nonzero", method=True)
def _nonzero(a):
    a = tensor_of(a)
    need(bool(a.shape), "np.nonzero of a number", "np.atleast_1d(x).nonzero()")
    hits = cast(Tensor(call("argwhere", truth(a))), "int64")
    columns = (taken(hits, Tensor(_core.Constant(np.int64(i))), 1) for i in range(len(a.shape)))
    return Tuple(tuple(columns))


@numpy_function("flatnonzero")
def _flatnonzero(a):
    (hits,) = _nonzero(flat(tensor_of(a))).items
    return hits


# ---- Sorting -------------------------------------------------------------------------------------

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _line(a: Tensor, axis: object) -> tuple[Tensor, int]:
    """Returns the tensor, flattened if the axis is None, and the axis."""
    if known(axis, "axis") is None:
        return flat(a), 0
    return a, one_axis(axis, a)


def _check_kind(kind: object) -> None:
    given = known(kind, "kind")
    need(given in _KINDS, f"kind= is one of {', '.join(map(str, _KINDS))}, not {given!r}")


# Sorting is always stable, which every kind of NumPy allows.
@numpy_function("sort")
def _sort(a, axis=-1, kind=None, stable=None):
    _check_kind(kind)
    a, at = _line(tensor_of(a), axis)
    return Tensor(call("sort", a.expr, axis=at, is_ascend=True))


@numpy_function("argsort", method=True)
def _argsort(a, axis=-1, kind=None, stable=None):
    _check_kind(kind)
    a, at = _line(tensor_of(a), axis)
    return Tensor(call("argsort", a.expr, axis=at, is_ascend=True, dtype="int64"))


# A sorted tensor is a valid partition.
@numpy_function("partition")
def _partition(a, kth, axis=-1):
    known(kth, "kth")
    return _sort(a, axis)


@numpy_function("argpartition", method=True)
def _argpartition(a, kth, axis=-1):
    known(kth, "kth")
    return _argsort(a, axis)


@numpy_function("lexsort")
def _lexsort(keys, axis=-1):
    rows = keys.items if isinstance(keys, (List, Tuple)) else None
    if rows is None:
        keys = tensor_of(keys)
        need(isinstance(keys.shape[0], int), "np.lexsort takes a tuple of keys")
        rows = [Tensor(call("squeeze", part(keys, 0, i, i + 1).expr, axis=[0]))
                for i in range(keys.shape[0])]  # fmt: skip
    rows = list(map(tensor_of, rows))
    at = one_axis(axis, rows[0])
    order = None
    # From the least significant key to the most; each sort is stable.
    for row in rows:
        if order is None:
            order = _argsort(row, at)
        else:
            again = _argsort(_gathered(row, order, at), at)
            order = _gathered(order, again, at)
    return order


def _gathered(x: Tensor, index: Tensor, axis: int) -> Tensor:
    return Tensor(call("gather", x.expr, index.expr, axis=axis))


@numpy_function("searchsorted")
def _searchsorted(a, v, side="left", sorter=None):
    a, v = tensor_of(a), tensor_of(v)
    need(len(a.shape) == 1, "np.searchsorted searches a vector", "relay.searchsorted, for rows")
    way = known(side, "side")
    need(way in ("left", "right"), f"side= is left or right, not {way!r}")
    if sorter is not None and not (isinstance(sorter, Static) and sorter.obj is None):
        a = taken(a, tensor_of(sorter))
    a, v = same_dtype([a, v])
    if a.dtype == "bool":
        a, v = cast(a, "int8"), cast(v, "int8")
    if kind_of(a.dtype) != "f":
        return _place(a, v, way)
    # NaN is ordered last.
    found = _place(a, v, way)
    count = cast(tensor_of(value_of(size_value(a, 0))), "int64")
    real = sub(count, there("sum")(isnan(a)))
    return choose(isnan(v), real if way == "left" else count, _capped(found, real))


def _capped(found: Tensor, real: Tensor) -> Tensor:
    return cast(minimum(found, real), "int64")


def _place(a: Tensor, v: Tensor, way: str) -> Tensor:
    values = reshape(v, Static(1)) if not v.shape else v
    lines = flat(values)
    out = Tensor(call("searchsorted", a.expr, lines.expr, right=way == "right", dtype="int64"))
    return reshape(out, sizes(v))


add_method("searchsorted", _searchsorted)


@numpy_function("digitize")
def _digitize(x, bins, right=False):
    x, bins = tensor_of(x), tensor_of(bins)
    side = "left" if known(right, "right") else "right"
    rising = _searchsorted(bins, x, side)
    count = value_of(size_value(bins, 0))
    back = Tensor(call("reverse", bins.expr, axis=0))
    falling = sub(count, _searchsorted(back, x, "right" if side == "left" else "left"))
    ends = concatenated([bins, _filler(bins)])
    last = taken(ends, maximum(sub(tensor_of(count), 1), 0))
    return cast(choose(gt(taken(ends, tensor_of(Static(0))), last), falling, rising), "int64")


# ---- Sets ----------------------------------------------------------------------------------------


def _first_of_runs(line: Tensor, equal_nan: bool = True) -> Tensor:
    """Returns which elements of a sorted vector differ from their predecessor."""
    at = positions_of(line, 0)
    before = taken(line, maximum(sub(at, 1), 0))
    differs = ne(line, before)
    if kind_of(line.dtype) == "f" and equal_nan:
        differs = both(differs, no(both(isnan(line), isnan(before))))
    return either(differs, eq(at, 0))


def _ordered(line: Tensor) -> tuple[Tensor, Tensor]:
    """Returns a sorted vector, and the original indices of its elements."""
    plain = cast(line, "uint8") if line.dtype == "bool" else line
    order = Tensor(call("argsort", plain.expr, axis=0, is_ascend=True, dtype="int64"))
    return taken(line, order), order


@numpy_function("unique", only="axis= of vectors")
def _unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, equal_nan=True,
    sorted=True,
):  # fmt: skip
    ar = tensor_of(ar)
    if known(axis, "axis") is not None and len(ar.shape) != 1:
        raise Refusal(
            CALL,
            "np.unique is there without axis= for tensors of rank 2 or more",
            help="np.lexsort the columns, and compare neighbouring rows",
        )
    whole = ar
    line, order = _ordered(flat(ar))
    fresh = _first_of_runs(line, bool(known(equal_nan, "equal_nan")))
    starts = _flatnonzero(fresh)
    out: list[Value] = [taken(line, starts)]
    if known(return_index, "return_index"):
        out.append(taken(order, starts))
    if known(return_inverse, "return_inverse"):
        number = sub(Tensor(call("cumsum", cast(fresh, "int64").expr, axis=0)), 1)
        zeros = Tensor(call("zeros_like", order.expr))
        placed = call(
            "scatter_elements", zeros.expr, order.expr, cast(number, "int64").expr, axis=0
        )
        out.append(reshape(Tensor(placed), sizes(whole)))
    if known(return_counts, "return_counts"):
        count = cast(tensor_of(value_of(size_value(line, 0))), "int64")
        ends = concatenated([starts, reshape(count, Static(1))])
        out.append(there("diff")(ends))
    return out[0] if len(out) == 1 else Tuple(tuple(out))


def _result(name: str, *items: Value) -> Tuple:
    """Returns a named tuple of the class that NumPy's array API functions return."""
    cls = {"unique_all": "UniqueAllResult", "unique_counts": "UniqueCountsResult",
           "unique_inverse": "UniqueInverseResult"}[name]  # fmt: skip
    import numpy.lib._arraysetops_impl as sets

    made = getattr(sets, cls)
    return Tuple(tuple(items), Form("namedtuple", made, made._fields))


@numpy_function("unique_values")
def _unique_values(x):
    return _unique(x, equal_nan=False)


@numpy_function("unique_counts")
def _unique_counts(x):
    return _result("unique_counts", *_unique(x, return_counts=True, equal_nan=False).items)


@numpy_function("unique_inverse")
def _unique_inverse(x):
    return _result("unique_inverse", *_unique(x, return_inverse=True, equal_nan=False).items)


@numpy_function("unique_all")
def _unique_all(x):
    return _result("unique_all", *_unique(x, True, True, True, equal_nan=False).items)


def _pair(a: Value, b: Value) -> list[Tensor]:
    return same_dtype([flat(tensor_of(a)), flat(tensor_of(b))])


@numpy_function("isin")
def _isin(element, test_elements, assume_unique=False, invert=False):
    element = tensor_of(element)
    line, many = _pair(element, test_elements)
    many, _ = _ordered(many)
    place = _searchsorted(many, line)
    count = value_of(size_value(many, 0))
    # Behind the last one stands no element; of none at all there is one that is not asked for.
    ends = concatenated([many, _filler(many)])
    hit = both(lt(place, count), eq(taken(ends, place), line))
    hit = no(hit) if known(invert, "invert") else hit
    return reshape(hit, sizes(element))


def _filler(like: Tensor) -> Tensor:
    value = "" if like.dtype == "string" else 0
    dtype = object if like.dtype == "string" else numpy_dtype(like.dtype)
    return Tensor(_core.Constant(np.array([value], dtype)))


@numpy_function("intersect1d")
def _intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    a, b = _pair(ar1, ar2)
    mine, first = _unique(a, return_index=True).items
    hit = _flatnonzero(_isin(mine, b))
    out = taken(mine, hit)
    if not known(return_indices, "return_indices"):
        return out
    theirs, second = _unique(b, return_index=True).items
    places = _searchsorted(theirs, out)
    return Tuple((out, taken(first, hit), taken(second, places)))


@numpy_function("setdiff1d")
def _setdiff1d(ar1, ar2, assume_unique=False):
    a, b = _pair(ar1, ar2)
    a = a if known(assume_unique, "assume_unique") else _unique(a)
    return taken(a, _flatnonzero(_isin(a, b, invert=True)))


@numpy_function("union1d")
def _union1d(ar1, ar2):
    return _unique(concatenated(_pair(ar1, ar2)))


@numpy_function("setxor1d")
def _setxor1d(ar1, ar2, assume_unique=False):
    a, b = map(_unique, _pair(ar1, ar2))
    line, _ = _ordered(concatenated([a, b]))
    at = positions_of(line, 0)
    last = sub(value_of(size_value(line, 0)), 1)
    lone = both(
        either(eq(at, 0), ne(line, taken(line, maximum(sub(at, 1), 0)))),
        either(eq(at, last), ne(line, taken(line, minimum(add(at, 1), last)))),
    )
    return taken(line, _flatnonzero(lone))


# ---- Equality of wholes --------------------------------------------------------------------------


@numpy_function("allclose")
def _allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return there("all")(there("isclose")(a, b, rtol, atol, equal_nan))


def _may_be_equal(a: Tensor, b: Tensor) -> bool:
    """Whether the known shapes allow equality."""
    return len(a.shape) == len(b.shape) and not any(
        isinstance(x, int) and isinstance(y, int) and x != y
        for x, y in zip(a.shape, b.shape, strict=True)
    )


@numpy_function("array_equal", only="sizes that are equal by name; a run ends where others differ")
def _array_equal(a1, a2, equal_nan=False):
    a, b = tensor_of(a1), tensor_of(a2)
    if not _may_be_equal(a, b):
        return Tensor(_core.Constant(np.bool_(False)))
    same = eq(a, b)
    if known(equal_nan, "equal_nan") and "f" in kind_of(a.dtype) + kind_of(b.dtype):
        same = either(same, both(isnan(a), isnan(b)))
    return there("all")(same)


@numpy_function("array_equiv", only="sizes that broadcast")
def _array_equiv(a1, a2):
    return there("all")(eq(tensor_of(a1), tensor_of(a2)))


# ---- Differences, integrals, interpolation -------------------------------------------------------


@numpy_function("diff")
def _diff(a, n=1, axis=-1, prepend=None, append=None):
    a = tensor_of(a)
    at = one_axis(axis, a)
    ends = [_border(v, a, at) for v in (prepend, append)]
    if any(e is not None for e in ends):
        front, back = ends
        parts = [p for p in (front, a, back) if p is not None]
        a = concatenated(same_dtype(parts), at)
    for _ in range(known(n, "n")):
        upper, lower = part(a, at, 1), part(a, at, None, -1)
        a = ne(upper, lower) if a.dtype == "bool" else sub(upper, lower)
    return a


def _border(value: Value | None, a: Tensor, at: int) -> Tensor | None:
    if value is None:
        return None
    value = value_of(value)
    value = (
        Tensor(value.expr, True) if isinstance(value, Tensor) and value.weak else tensor_of(value)
    )
    if value.shape:
        return value
    shape = [1 if i == at else size_value(a, i) for i in range(len(a.shape))]
    return there("broadcast_to")(value, Tuple(tuple(value_of(n) for n in shape)))


@numpy_function("ediff1d")
def _ediff1d(ary, to_end=None, to_begin=None):
    line = flat(tensor_of(ary))
    out = sub(part(line, 0, 1), part(line, 0, None, -1))
    ends = [None if v is None else flat(cast(tensor_of(v), out.dtype)) for v in (to_begin, to_end)]
    parts = [p for p in (ends[0], out, ends[1]) if p is not None]
    return concatenated(parts) if len(parts) > 1 else out


@numpy_function("trapezoid")
@in_float32
def _trapezoid(y, x=None, dx=1.0, axis=-1):
    y = tensor_of(y)
    at = one_axis(axis, y)
    if x is None:
        width: Value = value_of(dx)
    else:
        x = tensor_of(x)
        width = _diff(x) if len(x.shape) == 1 else _diff(x, 1, at)
        width = along(width, at, len(y.shape)) if len(x.shape) == 1 else width
    pairs = add(part(y, at, 1), part(y, at, None, -1))
    return there("sum")(div(mul(width, pairs), 2.0), at)


@numpy_function("gradient", only="a spacing for each axis, a number or a vector")
def _gradient(f, *varargs, axis=None, edge_order=1):
    f = floating(f)
    rank = len(f.shape)
    axes = list(range(rank)) if known(axis, "axis") is None else known(axis, "axis")
    axes = [one_axis(a, f) for a in (axes if isinstance(axes, (list, tuple)) else [axes])]
    spacing = [value_of(v) for v in varargs] or [Static(1.0)]
    if len(spacing) == 1 and not (isinstance(spacing[0], Tensor) and spacing[0].shape):
        spacing = spacing * len(axes)
    need(len(spacing) == len(axes), "np.gradient takes one spacing, or one for each axis")
    order = known(edge_order, "edge_order")
    need(order in (1, 2), "edge_order= is 1 or 2")
    out = [_slope(f, at, h, order) for at, h in zip(axes, spacing, strict=True)]
    return out[0] if len(out) == 1 else Tuple(tuple(out))


def _slope(f: Tensor, at: int, h: Value, order: int) -> Tensor:
    rank = len(f.shape)

    def p(start: int | None, stop: int | None) -> Tensor:
        return part(f, at, start, stop)

    if isinstance(h, Tensor) and h.shape:
        step = _diff(floating(h))
        left, right = (along(part(step, 0, *b), at, rank) for b in ((None, -1), (1, None)))
        whole = add(left, right)
        a = neg(div(right, mul(left, whole)))
        b = div(sub(right, left), mul(left, right))
        c = div(left, mul(right, whole))
        inner = add(add(mul(a, p(None, -2)), mul(b, p(1, -1))), mul(c, p(2, None)))
        first, last = (along(part(step, 0, *b), at, rank) for b in ((0, 1), (-1, None)))
        second, before = (along(part(step, 0, *b), at, rank) for b in ((1, 2), (-2, -1)))
    else:
        h = tensor_of(h)
        h = cast(h, f.dtype) if h.weak else h
        inner = div(sub(p(2, None), p(None, -2)), mul(h, 2))
        first = last = second = before = h
    if order == 1:
        ends = [div(sub(p(1, 2), p(0, 1)), first), div(sub(p(-1, None), p(-2, -1)), last)]
    else:
        ends = [
            _edge(p(0, 1), p(1, 2), p(2, 3), first, second),
            neg(_edge(p(-1, None), p(-2, -1), p(-3, -2), last, before)),
        ]
    return concatenated(same_dtype([ends[0], inner, ends[1]]), at)


def _edge(x0: Tensor, x1: Tensor, x2: Tensor, h1: Value, h2: Value) -> Tensor:
    """Returns the slope at the first of three points."""
    whole = add(h1, h2)
    a = neg(div(add(mul(h1, 2), h2), mul(h1, whole)))
    b = div(whole, mul(h1, h2))
    c = neg(div(h1, mul(h2, whole)))
    return add(add(mul(a, x0), mul(b, x1)), mul(c, x2))


@numpy_function("interp")
@in_float32
def _interp(x, xp, fp, left=None, right=None, period=None):
    x, xp, fp = (cast(tensor_of(v), "float64") for v in (x, xp, fp))
    turn = None if period is None else known(period, "period")
    if turn is not None:
        x, xp = mod(x, abs(turn)), mod(xp, abs(turn))
        xp, order = _ordered(xp)
        fp = taken(fp, order)
        ends = [part(xp, 0, -1), part(xp, 0, 0, 1)]
        xp = concatenated([sub(ends[0], abs(turn)), xp, add(ends[1], abs(turn))])
        fp = concatenated([part(fp, 0, -1), fp, part(fp, 0, 0, 1)])
        left = right = None
    last = sub(value_of(size_value(xp, 0)), 1)
    low = maximum(minimum(sub(_searchsorted(xp, x, "right"), 1), last), 0)
    high = minimum(add(low, 1), last)
    x0, x1, y0, y1 = taken(xp, low), taken(xp, high), taken(fp, low), taken(fp, high)
    width = sub(x1, x0)
    usable = ne(width, 0)
    slope = div(sub(y1, y0), choose(usable, width, 1.0))
    found = add(y0, mul(choose(usable, slope, 0.0), sub(x, x0)))
    found = choose(eq(x, x0), y0, found)
    ends = [
        taken(fp, tensor_of(i)) if v is None or (isinstance(v, Static) and v.obj is None) else v
        for v, i in ((left, Static(0)), (right, last))
    ]
    found = choose(lt(x, taken(xp, tensor_of(Static(0)))), ends[0], found)
    found = choose(gt(x, taken(xp, tensor_of(last))), ends[1], found)
    return choose(isnan(x), x, found)


# ---- Convolution and polynomials -----------------------------------------------------------------


def _conv_full(a: Tensor, v: Tensor) -> Tensor:
    """Returns the full convolution, in the dtype of the product."""
    a, v = same_dtype([a, v])
    need(len(a.shape) == 1 and len(v.shape) == 1, "vectors are needed")
    short, long = (v, a) if _shorter(v, a) else (a, v)
    count, more = value_of(size_value(short, 0)), value_of(size_value(long, 0))
    # Each row is a window of the longer vector, padded with zeros.
    border = sub(count, 1)
    total = add(more, border)
    index = sub(along(positions(total), 0, 2), along(positions(count), 1, 2))
    inside = both(ge(index, 0), lt(index, more))
    nothing = Tensor(_core.Constant(np.zeros((), numpy_dtype(long.dtype))))
    at = maximum(minimum(index, sub(more, 1)), 0)
    rows = choose(inside, taken(long, tensor_of(at)), nothing)
    if kind_of(rows.dtype) == "f":
        return matmul(rows, short)
    return cast(there("sum")(mul(rows, short), 1), short.dtype)


def _shorter(a: Tensor, b: Tensor) -> bool:
    sizes_of = a.shape[0], b.shape[0]
    return not all(isinstance(n, int) for n in sizes_of) or sizes_of[0] <= sizes_of[1]


@numpy_function("convolve")
def _convolve(a, v, mode="full"):
    a, v = tensor_of(a), tensor_of(v)
    a, v = (reshape(t, Static(1)) if not t.shape else t for t in (a, v))
    return _conv_part(_conv_full(a, v), a, v, known(mode, "mode"))


def _conv_part(whole: Tensor, a: Tensor, v: Tensor, how: str, flipped: bool = False) -> Tensor:
    if how == "full":
        return whole
    need(how in ("same", "valid"), "mode= is full, same or valid")
    n, m = (value_of(size_value(t, 0)) for t in (a, v))
    least, most = minimum(n, m), maximum(n, m)
    before = floordiv(sub(least, 1), 2) if how == "same" else sub(least, 1)
    if how == "same" and flipped:
        # NumPy swaps them and reverses the result if the second is longer.
        before = choose(lt(n, m), floordiv(least, 2), before)
    length = most if how == "same" else add(sub(most, least), 1)
    return part(whole, 0, before, add(before, length))


@numpy_function("correlate")
def _correlate(a, v, mode="valid"):
    a, v = tensor_of(a), tensor_of(v)
    back = Tensor(call("reverse", v.expr, axis=0))
    return _conv_part(_conv_full(a, back), a, v, known(mode, "mode"), flipped=True)


def _coefficients(value: Value) -> Tensor:
    value = tensor_of(value)
    return reshape(value, Static(1)) if not value.shape else value


@numpy_function("polyval", reads=True)
def _polyval(reader, p, x):
    p, x = _coefficients(p), Tensor(tensor_of(x).expr)
    if not isinstance(p.shape[0], int):
        dtype = add(Tensor(_core.Constant(np.zeros((), numpy_dtype(p.dtype)))), x).dtype
        return reader.program.call(reader, loop("polyval"), [cast(p, dtype), cast(x, dtype)], {})
    out: Value = Tensor(call("zeros_like", x.expr))
    for i in range(p.shape[0]):
        out = add(mul(out, x), taken(p, Tensor(_core.Constant(np.int64(i)))))
    return out


@numpy_function("polyadd")
def _polyadd(a1, a2):
    return _poly_sum(a1, a2, add)


@numpy_function("polysub")
def _polysub(a1, a2):
    return _poly_sum(a1, a2, sub)


def _poly_sum(a1: Value, a2: Value, op) -> Tensor:
    a, b = same_dtype([_coefficients(a1), _coefficients(a2)])
    count = maximum(*(value_of(size_value(t, 0)) for t in (a, b)))

    def filled(t: Tensor) -> Tensor:
        index = sub(positions(count), sub(count, value_of(size_value(t, 0))))
        nothing = Tensor(_core.Constant(np.zeros((), numpy_dtype(t.dtype))))
        return choose(ge(index, 0), taken(t, tensor_of(maximum(index, 0))), nothing)

    return op(filled(a), filled(b))


@numpy_function("polymul")
def _polymul(a1, a2):
    return _conv_full(_coefficients(a1), _coefficients(a2))


@numpy_function("polyder")
def _polyder(p, m=1):
    p = _coefficients(p)
    for _ in range(known(m, "m")):
        count = value_of(size_value(p, 0))
        factors = sub(sub(count, 1), positions(sub(count, 1)))
        p = mul(part(p, 0, 0, -1), factors)
    return p


@numpy_function("polyint")
def _polyint(p, m=1, k=None):
    p = _coefficients(p)
    start = None if k is None else tensor_of(k)
    if start is not None and not start.shape:
        start = reshape(start, Static(1))
    for i in range(known(m, "m")):
        factors = sub(value_of(size_value(p, 0)), positions_of(p, 0))
        if start is None:
            tail = Tensor(_core.Constant(np.zeros(1)))
        else:
            tail = part(start, 0, i, i + 1) if start.shape[0] != 1 else start
        p = concatenated(same_dtype([div(p, factors), tail]))
    return p
