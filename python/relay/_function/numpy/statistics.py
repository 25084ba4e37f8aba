"""NumPy's statistics: order statistics, histograms, and reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function.numpy.registry import numpy_function, there
from relay._function.operations.arithmetic import apply, cast, in_float32, kind_of, numpy_dtype
from relay._function.operations.arrays import (
    axes_of,
    full,
    known,
    matmul,
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
    eq,
    flat,
    floating,
    floor,
    floordiv,
    ge,
    gt,
    isnan,
    le,
    lt,
    maximum,
    minimum,
    mul,
    need,
    no,
    sqrt,
    sub,
    taken,
    value_of,
)
from relay._function.values import List, Static, Tensor, Tuple, Value
from relay._ops.call import call


def _constant(number: float, dtype: str) -> Tensor:
    return Tensor(_core.Constant(np.array(number).astype(numpy_dtype(dtype))))


def lined_up(a: Tensor, axis: object) -> tuple[Tensor, int, list[int]]:
    """Returns the tensor with the reduced axes merged, the merged axis, and the axes that it replaces."""
    axes = axes_of(axis, a)
    rank = len(a.shape)
    if axes is None:
        return flat(a), 0, list(range(rank))
    if len(axes) == 1:
        return a, axes[0], axes
    kept = [i for i in range(rank) if i not in axes]
    turned = Tensor(call("transpose", a.expr, axes=kept + sorted(axes)))
    shape = Tuple((*(size_value(a, i) for i in kept), Static(-1)))
    return reshape(turned, shape), len(kept), sorted(axes)


def _back(out: Tensor, axes: list[int], keepdims: object) -> Tensor:
    """Returns the result with the reduced axes as axes of size 1."""
    if known(keepdims, "keepdims"):
        for at in sorted(axes):
            out = Tensor(call("expand_dims", out.expr, axis=at))
    return out


def _sorted(a: Tensor, axis: int) -> Tensor:
    return Tensor(call("sort", a.expr, axis=axis, is_ascend=True))


def _any_nan(a: Tensor, axis: int) -> Tensor | None:
    if kind_of(a.dtype) != "f":
        return None
    return Tensor(call("any", isnan(a).expr, axis=[axis]))


def _nan_where(hit: Tensor | None, out: Tensor) -> Tensor:
    return out if hit is None else choose(hit, _constant(np.nan, out.dtype), out)


# ---- Order statistics ----------------------------------------------------------------------------


@numpy_function("median")
def _median(a, axis=None, keepdims=False):
    a, at, axes = lined_up(tensor_of(a), axis)
    count = tensor_of(value_of(size_value(a, at)))
    ends = [maximum(floordiv(sub(count, 1), 2), 0), floordiv(count, 2)]
    line = _sorted(_never_empty(floating(a), at), at)
    low, high = (taken(line, tensor_of(e), at) for e in ends)
    return _back(_nan_where(_any_nan(a, at), _middle(low, high)), axes, keepdims)


def _never_empty(a: Tensor, at: int) -> Tensor:
    """Appends a NaN to an axis that may be empty, so that its median is NaN."""
    if isinstance(a.shape[at], int) and a.shape[at]:
        return a
    width = [[0, int(i == at)] for i in range(len(a.shape))]
    nan = _constant(np.nan, a.dtype).expr
    return Tensor(call("nn.pad", a.expr, nan, pad_width=width, pad_mode="constant"))


def _middle(low: Tensor, high: Tensor) -> Tensor:
    return choose(eq(low, high), low, div(add(low, high), _constant(2, low.dtype)))


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(a: Tensor, q: Value, axis: object, method: object, keepdims: object, name: str):
    how = known(method, "method")
    need(how in _METHODS, f"np.{name} is there for method= {', '.join(_METHODS)}", "linear, say")
    a, at, axes = lined_up(floating(a), axis)
    count = value_of(size_value(a, at))
    line, rank = _sorted(a, at), len(a.shape)
    out = _at_quantile(line, at, rank, q, count, how, a.dtype)
    hit = _any_nan(a, at)
    return _back_behind(_nan_where(hit, out), len(q.shape), axes, keepdims)


def _back_behind(out: Tensor, new: int, axes: list[int], keepdims: object) -> Tensor:
    """As `_back`, after the axes of the quantiles."""
    if not known(keepdims, "keepdims"):
        return out
    return _back(out, [new + i for i in axes], True)


def _at_quantile(line: Tensor, at: int, rank: int, q: Tensor, count, how: str, dtype: str):
    last = sub(count, 1)
    place = mul(q, cast(value_of(last), q.dtype))
    # Ties go to the even index, as in rint.
    ends = [
        apply(name, place) for name in (("rint", "rint") if how == "nearest" else ("floor", "ceil"))
    ]
    numbers = [cast(e, "int64") for e in ends]
    numbers = [cast(maximum(0, minimum(n, last)), "int64") for n in numbers]
    many = len(q.shape)

    def chosen(index: Tensor) -> Tensor:
        found = taken(line, index, at)
        if many and at:
            order = list(range(len(found.shape)))
            moved = [at + i for i in range(many)]
            order = moved + [i for i in order if i not in moved]
            found = Tensor(call("transpose", found.expr, axes=order))
        return found

    low, high = map(chosen, numbers)
    if how in ("lower", "nearest"):
        return low
    if how == "higher":
        return high
    if how == "midpoint":
        return _lerp(
            low, high, choose(eq(*ends), _constant(0, q.dtype), _constant(0.5, q.dtype)), rank
        )
    return _lerp(low, high, sub(place, ends[0]), rank)


def _lerp(low: Tensor, high: Tensor, share: Tensor, rank: int) -> Tensor:
    lacking = len(low.shape) - len(share.shape)
    if len(share.shape) and lacking:
        share = Tensor(call("expand_dims", share.expr, axis=len(share.shape), num_newaxis=lacking))
    step = sub(high, low)
    near = add(low, mul(step, share))
    far = sub(high, mul(step, sub(1, share)))
    out = choose(ge(share, 0.5), far, near)
    return choose(eq(high, low), add(low, mul(share, 0)), out)


def _quantiles(a: Tensor, q: Value, percent: bool) -> Tensor:
    """Returns the quantiles as a tensor; numbers take the float dtype of the data, as in NumPy."""
    floats = kind_of(a.dtype) == "f"
    one = isinstance(q, Static)
    q = tensor_of(q)
    if one or (q.weak and not q.shape):
        q = cast(q, a.dtype if floats else "float64")
    elif kind_of(q.dtype) != "f":
        q = cast(q, "float64")
    if percent:
        q = div(q, _constant(100, a.dtype if floats else "float64"))
    return q


@numpy_function("quantile", only=f"method= {', '.join(_METHODS)}")
def _np_quantile(a, q, axis=None, method="linear", keepdims=False):
    a = tensor_of(a)
    return _quantile(a, _quantiles(a, q, False), axis, method, keepdims, "quantile")


@numpy_function("percentile", only=f"method= {', '.join(_METHODS)}")
def _np_percentile(a, q, axis=None, method="linear", keepdims=False):
    a = tensor_of(a)
    return _quantile(a, _quantiles(a, q, True), axis, method, keepdims, "percentile")


@numpy_function("ptp")
def _ptp(a, axis=None, keepdims=False):
    return sub(there("max")(a, axis, keepdims), there("min")(a, axis, keepdims))


# ---- Means with weights, and how variables go together -------------------------------------------


@numpy_function("average")
@in_float32
def _average(a, axis=None, weights=None, returned=False, keepdims=False):
    a, mean = tensor_of(a), there("mean")
    both_results = known(returned, "returned")
    if weights is None or (isinstance(weights, Static) and weights.obj is None):
        out = mean(a, axis, None, keepdims)
        count = there("size")(a) if known(axis, "axis") is None else _product_of(a, axis)
        total = add(mul(out, 0), cast(tensor_of(count), out.dtype))
        return Tuple((out, total)) if both_results else out
    weights = tensor_of(weights)
    if len(weights.shape) != len(a.shape):
        axes = axes_of(axis, a)
        need(
            axes is not None and len(weights.shape) == len(axes),
            "np.average takes weights of the tensor's shape, or one for each element of axis=",
            "give axis=",
        )
        out = weights.expr
        behind = len(a.shape) - 1 - axes[-1]
        if axes[0]:
            out = call("expand_dims", out, axis=0, num_newaxis=axes[0])
        if behind:
            out = call("expand_dims", out, axis=axes[-1] + 1, num_newaxis=behind)
        weights = Tensor(out)
    ints = kind_of(a.dtype) != "f" and kind_of(weights.dtype) != "f"
    weighted = mul(a, weights)
    dtype = "float64" if ints else weighted.dtype
    weighted, weights = cast(weighted, dtype), cast(weights, dtype)
    spread = add(weights, mul(cast(a, dtype), 0))
    spread = choose(isnan(spread), weights, spread)
    total = there("sum")(spread, axis, None, keepdims)
    out = div(there("sum")(weighted, axis, None, keepdims), total)
    return Tuple((out, total)) if both_results else out


def _product_of(a: Tensor, axis: object) -> Value:
    total: Value = Static(1)
    for at in axes_of(axis, a):
        total = apply("multiply", total, value_of(size_value(a, at)))
    return total


def _variables(m: Tensor, y: Value | None, rowvar: object) -> Tensor:
    """Returns the variables as rows, those of a second tensor after the first's."""
    rows = [m] if y is None or (isinstance(y, Static) and y.obj is None) else [m, tensor_of(y)]
    out = []
    for x in same_dtype(list(map(floating, rows))):
        need(len(x.shape) <= 2, "variables are a vector or a matrix")
        if len(x.shape) == 1:
            x = Tensor(call("expand_dims", x.expr, axis=0))
        elif not known(rowvar, "rowvar"):
            x = Tensor(call("transpose", x.expr, axes=[1, 0]))
        out.append(x)
    return out[0] if len(out) == 1 else concatenated(out)


def _cov_matrix(m, y, rowvar, bias, ddof) -> Tensor:
    x = _variables(tensor_of(m), y, rowvar)
    count = tensor_of(value_of(size_value(x, 1)))
    off = known(ddof, "ddof")
    off = (0 if known(bias, "bias") else 1) if off is None else off
    away = sub(x, there("mean")(x, 1, None, True))
    turned = Tensor(call("transpose", away.expr, axes=[1, 0]))
    return div(matmul(away, turned), cast(tensor_of(maximum(sub(count, off), 0)), x.dtype))


def _plain(matrix: Tensor) -> Tensor:
    """Returns the matrix of one variable as a number."""
    return reshape(matrix, Tuple(())) if matrix.shape == (1, 1) else matrix


@numpy_function("cov")
@in_float32
def _cov(m, y=None, rowvar=True, bias=False, ddof=None):
    return _plain(_float64(_cov_matrix, m, y, rowvar, bias, ddof))


def _float64(function: Callable, m: Value, y: Value | None, *more: object) -> Tensor:
    """Returns the tensor in float64: NumPy computes these in at least float64."""
    wide = [
        x
        if x is None or (isinstance(x, Static) and x.obj is None)
        else cast(tensor_of(x), "float64")
        for x in (m, y)
    ]
    return function(*wide, *more)


@numpy_function("corrcoef")
@in_float32
def _corrcoef(x, y=None, rowvar=True):
    c = _float64(_cov_matrix, x, y, rowvar, False, None)
    if c.shape == (1, 1):
        return _plain(div(c, c))
    size = sqrt(there("diagonal")(c))
    out = div(div(c, along(size, 0, 2)), along(size, 1, 2))
    return there("clip")(out, Static(-1.0), Static(1.0))


# ---- Counts --------------------------------------------------------------------------------------


@numpy_function("bincount")
def _bincount(x, weights=None, minlength=0):
    x = tensor_of(x)
    need(len(x.shape) == 1 and kind_of(x.dtype) in "ib", "np.bincount takes a vector of integers",
         "astype makes integers of floats")  # fmt: skip
    x = cast(x, "int64")
    least = known(minlength, "minlength")
    # With -1 appended, an empty vector has a maximum.
    top = there("max")(concatenated([x, Tensor(_core.Constant(np.array([-1])))]))
    count = maximum(add(top, 1), least)
    # The run refuses negative numbers.
    below = there("min")(concatenated([x, Tensor(_core.Constant(np.array([0])))]))
    first = Tensor(call("checked_index", neg_to_far(below, count).expr, add(count, 1).expr))
    count = add(count, mul(first, 0))
    return _counts(x, weights, Tuple((count,)))


def neg_to_far(index: Tensor, count: Value) -> Tensor:
    """Returns the index, with negative ones out of bounds."""
    return choose(lt(index, 0), add(count, 5), index)


def _counts(place: Tensor, weights: Value | None, shape: Tuple) -> Tensor:
    """Returns for each index how often it occurs, or the sum of its weights."""
    if weights is None or (isinstance(weights, Static) and weights.obj is None):
        each = Tensor(call("ones_like", place.expr))
    else:
        each = cast(tensor_of(weights), "float64")
    zeros = full(shape, Static(0), each.dtype)
    return Tensor(
        call("scatter_elements", zeros.expr, place.expr, each.expr, axis=0, reduction="add")
    )


def _limits(a: Tensor, range_: Value | None) -> tuple[Value, Value]:
    if range_ is not None and known(range_, "range") is not None:
        low, high = (float(v) for v in known(range_, "range"))
        return _constant(*_apart(low, high)[:1], "float64"), _constant(
            _apart(low, high)[1], "float64"
        )
    wide = cast(a, "float64")
    ends = (_constant(v, "float64") for v in (np.inf, -np.inf))
    low, high = (
        there(name)(concatenated([wide, reshape(end, Static(1))]))
        for name, end in zip(("min", "max"), ends, strict=True)
    )
    # NumPy's range of an empty tensor is 0 to 1.
    low, high = choose(gt(low, high), 0.0, low), choose(gt(low, high), 1.0, high)
    same = eq(low, high)
    return choose(same, sub(low, 0.5), low), choose(same, add(high, 0.5), high)


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(a: Tensor, bins: Value, range_: Value | None) -> tuple[Tensor, int | None]:
    """Returns the edges of a histogram, and the number of bins of equal width, None for given edges."""
    given = tensor_of(bins) if isinstance(bins, (List, Tuple, Tensor)) else None
    if given is not None and given.shape:
        return given, None
    count = known(bins, "bins")
    need(isinstance(count, int) and count > 0, "bins is a number that is known, or the edges",
         "compute the edges outside, and pass them")  # fmt: skip
    low, high = _limits(a, range_)
    return there("linspace")(low, high, count + 1), count


@numpy_function("histogram_bin_edges", only="bins= a known number or edges")
def _histogram_bin_edges(a, bins=10, range=None, weights=None):
    a = flat(tensor_of(a))
    edges, _ = _edges(a, value_of(bins), range)
    return _stored(edges, a)


def _stored(edges: Tensor, a: Tensor) -> Tensor:
    """Converts edges of equal width to the float dtype of the data, as NumPy does."""
    return cast(edges, a.dtype) if kind_of(a.dtype) == "f" else edges


@numpy_function("histogram", only="bins= a known number or edges")
def _histogram(a, bins=10, range=None, density=None, weights=None):
    a = flat(tensor_of(a))
    edges, count = _edges(a, value_of(bins), range)
    bare = weights is None or (isinstance(weights, Static) and weights.obj is None)
    each = None if bare else flat(tensor_of(weights))
    place = sub(there("searchsorted")(edges, a, "right"), 1)
    last = sub(value_of(size_value(edges, 0)), 1)
    # The last edge belongs to the last bin.
    place = choose(eq(a, taken(edges, tensor_of(last))), sub(last, 1), place)
    inside = both(ge(place, 0), lt(place, last))
    if kind_of(a.dtype) == "f":
        inside = both(inside, no(isnan(a)))
    amount = cast(inside, "int64") if each is None else mul(each, cast(inside, each.dtype))
    zeros = full(Tuple((value_of(last),)), Static(0), amount.dtype)
    kept = choose(inside, place, 0)
    made = call("scatter_elements", zeros.expr, cast(kept, "int64").expr, amount.expr, axis=0,
                reduction="add")  # fmt: skip
    out = Tensor(made)
    edges = _stored(edges, a) if count is not None else edges
    if known(density, "density"):
        width = there("diff")(edges)
        out = div(div(out, cast(width, "float64")), there("sum")(cast(out, "float64")))
    return Tuple((out, edges))


# ---- Without NaN ---------------------------------------------------------------------------------


def _without(a: Tensor, neutral: float) -> Tensor:
    if kind_of(a.dtype) != "f":
        return a
    return choose(isnan(a), _constant(neutral, a.dtype), a)


def _there_mask(a: Tensor) -> Tensor:
    return no(isnan(a)) if kind_of(a.dtype) == "f" else Tensor(call("ones_like", eq(a, a).expr))


@numpy_function("nansum")
def _nansum(a, axis=None, dtype=None, keepdims=False, initial=None, where=None):
    return there("sum")(_without(tensor_of(a), 0), axis, dtype, keepdims, initial, where)


@numpy_function("nanprod")
def _nanprod(a, axis=None, dtype=None, keepdims=False, initial=None, where=None):
    return there("prod")(_without(tensor_of(a), 1), axis, dtype, keepdims, initial, where)


@numpy_function("nancumsum")
def _nancumsum(a, axis=None, dtype=None):
    return there("cumsum")(_without(tensor_of(a), 0), axis, dtype)


@numpy_function("nancumprod")
def _nancumprod(a, axis=None, dtype=None):
    return there("cumprod")(_without(tensor_of(a), 1), axis, dtype)


def _mask(a: Tensor, where: Value | None) -> Tensor:
    mask = _there_mask(a)
    return mask if where is None else both(mask, tensor_of(where))


@numpy_function("nanmean")
def _nanmean(a, axis=None, dtype=None, keepdims=False, where=None):
    a = tensor_of(a)
    return there("mean")(a, axis, dtype, keepdims, _mask(a, where))


@numpy_function("nanvar")
@in_float32
def _nanvar(
    a, axis=None, ddof=0, keepdims=False, dtype=None, where=None, mean=None, correction=None
):
    a = tensor_of(a)
    given = known(correction, "correction")
    ddof = ddof if given is None else given
    mask = _mask(a, where)
    # With no more than ddof elements NumPy returns NaN.
    count = sub(there("sum")(mask, axis, None, keepdims), Static(known(ddof, "ddof")))
    out = there("var")(a, axis, ddof, keepdims, dtype, mask, mean)
    return choose(le(count, 0), _constant(np.nan, out.dtype), out)


@numpy_function("nanstd")
@in_float32
def _nanstd(
    a, axis=None, ddof=0, keepdims=False, dtype=None, where=None, mean=None, correction=None
):
    return sqrt(_nanvar(a, axis, ddof, keepdims, dtype, where, mean, correction))


def _nan_end(name: str, worst: float) -> Callable:
    def reduced(a, axis=None, keepdims=False, initial=None, where=None):
        a = tensor_of(a)
        pick = there(name)
        if kind_of(a.dtype) != "f":
            return pick(a, axis, keepdims, initial, where)
        out = pick(_without(a, worst), axis, keepdims, initial, where)
        if initial is not None:
            return out
        none = there("all")(isnan(a), axis, keepdims)
        return choose(none, _constant(np.nan, out.dtype), out)

    return reduced


numpy_function("nanmax")(_nan_end("max", -np.inf))
numpy_function("nanmin")(_nan_end("min", np.inf))


def _nan_arg(name: str, worst: float) -> Callable:
    def found(a, axis=None, keepdims=False):
        return there(name)(_without(tensor_of(a), worst), axis, keepdims)

    return found


_ALL_NAN = "of NaN alone index 0 is the result"
numpy_function("nanargmax", only=_ALL_NAN)(_nan_arg("argmax", -np.inf))
numpy_function("nanargmin", only=_ALL_NAN)(_nan_arg("argmin", np.inf))


@numpy_function("nanmedian")
def _nanmedian(a, axis=None, keepdims=False):
    a = tensor_of(a)
    if kind_of(a.dtype) != "f":
        return _median(a, axis, keepdims)
    return _nan_quantile(a, cast(tensor_of(Static(0.5)), a.dtype), axis, keepdims, True)


def _nan_quantile(a: Tensor, q: Tensor, axis: object, keepdims: object, middle: bool = False):
    need(not q.shape, "the quantile is one number", "call it for each")
    a, at, axes = lined_up(floating(a), axis)
    a = _never_empty(a, at)
    mask = no(isnan(a))
    line = _sorted(a, at)
    count = there("sum")(mask, at, None, True)
    last = maximum(sub(count, 1), 0)
    if middle:
        ends = [floordiv(last, 2), minimum(floordiv(count, 2), last)]
        low, high = (_along(line, e, at) for e in ends)
        out = _middle(low, high)
    else:
        place = mul(q, cast(last, q.dtype))
        ends = [cast(e, "int64") for e in (floor(place), apply("ceil", place))]
        low, high = (_along(line, e, at) for e in ends)
        share = sub(place, floor(place))
        step = sub(high, low)
        near, far = add(low, mul(step, share)), sub(high, mul(step, sub(1, share)))
        out = choose(eq(high, low), add(low, mul(share, 0)), choose(ge(share, 0.5), far, near))
    out = choose(eq(count, 0), _constant(np.nan, out.dtype), out)
    out = Tensor(call("squeeze", out.expr, axis=[at]))
    return _back(out, axes, keepdims)


def _along(line: Tensor, index: Tensor, axis: int) -> Tensor:
    return Tensor(call("gather", line.expr, cast(index, "int64").expr, axis=axis))


@numpy_function("nanquantile", only="q= a number; method= linear")
def _np_nanquantile(a, q, axis=None, keepdims=False):
    a = tensor_of(a)
    return _nan_quantile(a, _quantiles(a, q, False), axis, keepdims)


@numpy_function("nanpercentile", only="q= a number; method= linear")
def _np_nanpercentile(a, q, axis=None, keepdims=False):
    a = tensor_of(a)
    return _nan_quantile(a, _quantiles(a, q, True), axis, keepdims)
