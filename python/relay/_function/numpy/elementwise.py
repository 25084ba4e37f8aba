"""NumPy's element-wise functions that no operator is: each composed of operators, with its derivative."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function.numpy.registry import add_method, loop, numpy_function, there
from relay._function.operations import arithmetic
from relay._function.operations.arithmetic import apply, cast, kind_of, numpy_dtype
from relay._function.operations.arrays import known, one_axis, tensor_of
from relay._function.operations.shorthand import (
    absolute,
    add,
    bits,
    both,
    choose,
    concatenated,
    div,
    either,
    eq,
    exp,
    floating,
    floor,
    floordiv,
    ge,
    gt,
    isfinite,
    isinf,
    isnan,
    le,
    log,
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
    power,
    sqrt,
    stopped,
    sub,
    value_of,
)
from relay._function.values import Static, Tensor, Tuple, Value
from relay._ops.call import call


def _composed(*names: str) -> Callable:
    """A function of tensors that have the dtypes which NumPy's ufunc computes in."""

    def add_rows(function: Callable) -> Callable:
        for name in names:
            if not hasattr(np, name):
                continue
            arithmetic.COMPOSED[name] = function
            if getattr(np, name).nin == 1:
                row = lambda x, name=name: apply(name, value_of(x))  # noqa: E731
            else:
                row = lambda x1, x2, name=name: apply(name, value_of(x1), value_of(x2))  # noqa: E731
            numpy_function(name)(row)
        return function

    return add_rows


@_composed("signbit")
def _signbit(x):
    if kind_of(x.dtype) != "f":
        return lt(x, 0)
    return lt(bits(x), 0)


@_composed("copysign")
def _copysign(x1, x2):
    size = absolute(x1)
    return choose(_signbit(x2), neg(size), size)


@_composed("arctan2")
def _arctan2(y, x):
    # Of two infinities the signs count.
    both_inf = both(isinf(x), isinf(y))
    y, x = (choose(both_inf, _copysign(Tensor(_one(v)), v), v) for v in (y, x))
    steep = gt(absolute(y), absolute(x))
    under = choose(steep, y, x)
    nothing = eq(under, 0)
    turned = apply("arctan", div(choose(steep, x, y), choose(nothing, _like(x, 1), under)))
    behind = both(_signbit(x), no(steep))
    half = _copysign(_like(y, math.pi / 2), y)
    whole = _copysign(_like(y, math.pi), y)
    return choose(steep, sub(half, turned), choose(behind, add(whole, turned), turned))


def _like(x: Tensor, number: float) -> Tensor:
    return Tensor(_core.Constant(np.array(number).astype(numpy_dtype(x.dtype))))


def _one(x: Tensor) -> _core.Expr:
    return call("ones_like", x.expr)


@_composed("hypot")
def _hypot(x1, x2):
    a, b = absolute(x1), absolute(x2)
    top = stopped(maximum(a, b))
    usual = both(gt(top, 0), isfinite(top))
    scale = choose(usual, top, _like(x1, 1))
    a, b = div(a, scale), div(b, scale)
    long = mul(scale, sqrt(add(mul(a, a), mul(b, b))))
    # At the origin a root has no derivative; an infinity is one also beside NaN.
    plain = choose(usual, long, add(absolute(x1), absolute(x2)))
    return choose(either(isinf(x1), isinf(x2)), _like(x1, math.inf), plain)


@_composed("expm1")
def _expm1(x):
    """Kahan's quotient, where e**x - 1 loses digits; its derivative is that of e**x."""
    whole = exp(x)
    plain = sub(whole, 1)
    at = choose(either(eq(whole, 1), eq(plain, -1)), _like(x, math.e), whole)
    better = div(mul(plain, x), log(at))
    better = choose(eq(whole, 1), x, choose(eq(plain, -1), plain, better))
    better = choose(isfinite(whole), better, plain)
    return choose(isfinite(plain), add(plain, stopped(sub(better, plain))), plain)


@_composed("exp2")
def _exp2(x):
    return apply("power", _like(x, 2), x)


@_composed("cbrt")
def _cbrt(x):
    size = absolute(x)
    usual = both(isfinite(x), ne(x, 0))
    base = choose(usual, size, _like(x, 1))
    root = apply("power", base, _like(x, 1 / 3))
    # A step of Newton's: the third of 1 is rounded.
    square = mul(root, root)
    step = stopped(div(sub(mul(square, root), base), mul(square, 3)))
    return choose(usual, _copysign(sub(root, step), x), x)


@_composed("fmax")
def _fmax(x1, x2):
    return _without_nan(maximum, x1, x2)


@_composed("fmin")
def _fmin(x1, x2):
    return _without_nan(minimum, x1, x2)


def _without_nan(pick: Callable, x1: Tensor, x2: Tensor) -> Tensor:
    if kind_of(x1.dtype) != "f":
        return pick(x1, x2)
    return choose(isnan(x1), x2, choose(isnan(x2), x1, pick(x1, x2)))


@_composed("heaviside")
def _heaviside(x1, x2):
    step = choose(gt(x1, 0), _like(x1, 1), _like(x1, 0))
    return choose(isnan(x1), x1, choose(eq(x1, 0), x2, step))


@_composed("deg2rad", "radians")
def _radians(x):
    return mul(x, _like(x, math.pi / 180))


@_composed("rad2deg", "degrees")
def _degrees(x):
    return mul(x, _like(x, 180 / math.pi))


@_composed("ldexp")
def _ldexp(x1, x2):
    # In two steps: the power itself may be none of the dtype.
    half = floordiv(x2, 2)
    powers = (apply("power", _like(x1, 2), cast(e, x1.dtype)) for e in (half, sub(x2, half)))
    first, second = powers
    return mul(mul(x1, first), second)


@_composed("float_power")
def _float_power(x1, x2):
    return power(x1, x2)


@_composed("logaddexp2")
def _logaddexp2(x1, x2):
    apart = choose(eq(x1, x2), _like(x1, 0), absolute(sub(x1, x2)))
    small = _exp2(neg(apart))
    tail = mul(there("log1p")(small), _like(x1, 1 / math.log(2)))
    return add(maximum(x1, x2), tail)


@_composed("nextafter")
def _nextafter(x1, x2):
    at = bits(x1)
    one = Tensor(call("ones_like", at.expr))
    away = eq(lt(x1, x2), ge(at, 0))
    moved = Tensor(call("reinterpret", add(at, choose(away, one, neg(one))).expr, dtype=x1.dtype))
    least = Tensor(call("reinterpret", one.expr, dtype=x1.dtype))
    moved = choose(eq(x1, 0), _copysign(least, x2), moved)
    return choose(either(isnan(x1), isnan(x2)), add(x1, x2), choose(eq(x1, x2), x2, moved))


@_composed("spacing")
def _spacing(x):
    size = absolute(x)
    far = sub(_nextafter(size, Tensor(call("full_like", size.expr, _like(x, math.inf).expr))), size)
    return choose(isfinite(x), _copysign(far, x), _like(x, math.nan))


@_composed("bitwise_count")
def _bitwise_count(x):
    if kind_of(x.dtype) == "b":
        return cast(x, "uint8")
    dtype = numpy_dtype(x.dtype)
    size = x
    if dtype.kind == "i":
        size = choose(lt(x, 0), neg(x), x)
    # The counts of 2, 4, 8 ... neighbouring bits, side by side.
    bits_of = cast(size, f"uint{dtype.itemsize * 8}")
    count, width = bits_of, dtype.itemsize * 8
    masks = {1: 0x5555555555555555, 2: 0x3333333333333333, 4: 0x0F0F0F0F0F0F0F0F,
             8: 0x00FF00FF00FF00FF, 16: 0x0000FFFF0000FFFF, 32: 0x00000000FFFFFFFF}  # fmt: skip
    step = 1
    while step < width:
        mask = _core.Constant(np.array(masks[step] & ((1 << width) - 1), bits_of.dtype))
        by = _core.Constant(np.array(step, bits_of.dtype))
        low = call("bitwise_and", count.expr, mask)
        high = call("bitwise_and", call("right_shift", count.expr, by), mask)
        count, step = Tensor(call("add", low, high)), step * 2
    return cast(count, "uint8")


@_composed("conjugate")
def _conjugate(x):
    return x


add_method("conj", lambda x: apply("conjugate", x))
add_method("conjugate", lambda x: apply("conjugate", x))


@numpy_function("divmod")
def _divmod(x1, x2):
    return Tuple((floordiv(x1, x2), mod(x1, x2)))


def _in_floats(name: str, x: Value) -> Tensor:
    """The operand in the floats that NumPy's function computes in."""
    x = tensor_of(x)
    dtypes = getattr(np, name).resolve_dtypes((numpy_dtype(x.dtype), None, None))
    return cast(x, dtypes[0].name)


@numpy_function("modf")
def _modf(x):
    x = _in_floats("modf", x)
    whole = apply("trunc", x)
    rest = choose(isinf(x), _like(x, 0), sub(x, whole))
    return Tuple((_copysign(rest, x), whole))


@numpy_function("frexp")
def _frexp(x):
    x = _in_floats("frexp", x)
    usual = both(isfinite(x), ne(x, 0))
    size = stopped(choose(usual, absolute(x), _like(x, 1)))
    exponent = add(floor(apply("log2", size)), 1)

    def scaled(e: Tensor) -> Tensor:
        return _ldexp(size, cast(neg(e), "int32"))

    # The logarithm is rounded: at a power of 2 it may be one off.
    exponent = choose(ge(scaled(exponent), 1), add(exponent, 1), exponent)
    exponent = choose(lt(scaled(exponent), 0.5), sub(exponent, 1), exponent)
    found = cast(exponent, "int32")
    mantissa = choose(usual, _ldexp(x, neg(found)), x)
    nothing = Tensor(_core.Constant(np.int32(0)))
    return Tuple((mantissa, choose(usual, found, nothing)))


@_composed("square")
def _square(x):
    return mul(x, x)


@numpy_function("reciprocal")
def _reciprocal(x):
    x = value_of(x)
    if isinstance(x, Tensor) and not x.weak and kind_of(x.dtype) == "i":
        # Of integers NumPy's is one, of which only 1 and -1 have a reciprocal that is not 0.
        one = Tensor(_core.Constant(np.array(1, x.dtype)))
        return choose(eq(absolute(x), 1), x, choose(eq(x, 0), x, sub(one, one)))
    return div(1, x)


@numpy_function("gcd", reads=True)
def gcd(reader, x1, x2):
    return _of_integers(reader, "gcd", x1, x2)


@numpy_function("lcm", reads=True)
def lcm(reader, x1, x2):
    return _of_integers(reader, "lcm", x1, x2)


def _of_integers(reader, name: str, x1: Value, x2: Value) -> Value:
    """A loop on two tensors of integers, in NumPy's dtype and the shape of both."""
    pair = [value_of(x1), value_of(x2)]
    if all(isinstance(v, Static) for v in pair):
        return Static(getattr(math, name)(*(v.obj for v in pair)))
    whole = add(*pair)
    need(
        kind_of(whole.dtype) == "i" and not is_number_float(pair),
        f"np.{name} takes integers", "astype makes integers of floats",
    )  # fmt: skip
    spread = mul(whole, 0)
    a, b = (cast(add(spread, v), "int64") for v in pair)
    out = cast(reader.program.call(reader, loop(name), [a, b], {}), whole.dtype)
    return Tensor(out.expr, whole.weak)


def is_number_float(values: list[Value]) -> bool:
    """Whether one is a Python float."""
    return any(isinstance(v, Static) and isinstance(v.obj, float) for v in values)


# ---- Tests ---------------------------------------------------------------------------------------


@numpy_function("isclose")
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    a, b = value_of(a), value_of(b)
    if not isinstance(b, Tensor) or kind_of(b.dtype) != "f":
        b = floating(b)
        if not isinstance(a, Tensor) or kind_of(a.dtype) != "f":
            a = floating(a)
        else:
            b = Tensor(b.expr, True) if not b.shape else b
    limit = add(atol, mul(rtol, absolute(b)))
    near = both(le(absolute(sub(a, b)), limit), isfinite(b))
    near = either(near, eq(a, b))
    if known(equal_nan, "equal_nan"):
        near = either(near, both(isnan(a), isnan(b)))
    return near


@numpy_function("isposinf")
def _isposinf(x):
    return both(isinf(x), gt(x, 0))


@numpy_function("isneginf")
def _isneginf(x):
    return both(isinf(x), lt(x, 0))


@numpy_function("isreal")
def _isreal(x):
    return eq(mul(0, cast(tensor_of(x), "int8")), 0)


@numpy_function("iscomplex")
def _iscomplex(x):
    return no(_isreal(x))


@numpy_function("isrealobj")
def _isrealobj(x):
    tensor_of(x)
    return Static(True)


@numpy_function("iscomplexobj")
def _iscomplexobj(x):
    tensor_of(x)
    return Static(False)


# ---- Parts of numbers ----------------------------------------------------------------------------


@numpy_function("real")
def _real(val):
    return tensor_of(val)


@numpy_function("imag")
def _imag(val):
    return Tensor(call("zeros_like", tensor_of(val).expr))


@numpy_function("real_if_close")
def _real_if_close(a, tol=100):
    return tensor_of(a)


@numpy_function("angle")
def _angle(z, deg=False):
    turned = apply("arctan2", Static(0), tensor_of(z))
    return mul(turned, 180.0 / math.pi) if known(deg, "deg") else turned


@numpy_function("fix")
def _fix(x):
    return apply("trunc", value_of(x))


def _least(dtype: str) -> float:
    """A number whose sine is itself."""
    import ml_dtypes

    return float(ml_dtypes.finfo(numpy_dtype(dtype)).eps)


@numpy_function("sinc")
@arithmetic.in_float32
def _sinc(x):
    x = floating(x)
    at = mul(_like(x, math.pi), choose(eq(x, 0), _like(x, _least(x.dtype)), x))
    return div(apply("sin", at), at)


@numpy_function("nan_to_num")
def _nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = tensor_of(x)
    if kind_of(x.dtype) != "f":
        return cast(x, x.dtype)
    import ml_dtypes

    most = float(ml_dtypes.finfo(numpy_dtype(x.dtype)).max)
    ends = []
    for given, value in ((posinf, most), (neginf, -most)):
        given = Static(None) if given is None else value_of(given)
        ends.append(_like(x, value) if isinstance(given, Static) and given.obj is None else given)
    high, low = (cast(e, x.dtype) for e in ends)
    out = choose(isinf(x), choose(gt(x, 0), high, low), x)
    return choose(isnan(x), cast(value_of(nan), x.dtype), out)


@numpy_function("unwrap")
def _unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    given = tensor_of(p)
    p = floating(given)
    at = one_axis(axis, p)
    turn = known(period, "period")
    limit = known(discont, "discont")
    limit = turn / 2 if limit is None else max(limit, turn / 2)
    step = floating(there("diff")(given, axis=at))
    inside = sub(mod(add(step, turn / 2), turn), turn / 2)
    inside = choose(both(eq(inside, -turn / 2), gt(step, 0)), _like(p, turn / 2), inside)
    fix = sub(inside, step)
    fix = choose(lt(absolute(step), limit), _like(p, 0), fix)
    sums = Tensor(call("cumsum", fix.expr, axis=at))
    return concatenated([part(p, at, 0, 1), add(part(p, at, 1), sums)], at)


def rounded(x: Value, decimals: int) -> Value:
    """The value rounded to decimals, or to tens where they are negative, as NumPy does it."""
    if decimals == 0:
        return apply("rint", x)
    whole = isinstance(x, Tensor) and kind_of(x.dtype) != "f"
    if whole and decimals > 0:
        return x
    scale = float(10 ** abs(decimals))
    if whole:
        return cast(mul(apply("rint", div(x, scale)), scale), x.dtype)
    if decimals > 0:
        return div(apply("rint", mul(x, scale)), scale)
    return mul(apply("rint", div(x, scale)), scale)


@numpy_function("round", "around")
def _round(a, decimals=0):
    return rounded(value_of(a), known(decimals, "decimals"))


add_method("round", _round)


def round_exactly(x: Tensor, decimals: int) -> Tensor:
    """Python's round(x, n) of a float64: the exact decimal decides, not the rounded product."""
    scale = _like(x, float(10 ** abs(decimals)))
    if decimals < 0:
        return mul(apply("rint", div(x, scale)), scale)
    product = mul(x, scale)
    # What the product lost, exactly: both factors in halves (Dekker 1971).
    split = _like(x, float(2**27 + 1))

    def halves(v: Tensor) -> tuple[Tensor, Tensor]:
        wide = mul(split, v)
        high = sub(wide, sub(wide, v))
        return high, sub(v, high)

    (a, b), (c, d) = halves(x), halves(scale)
    lost = sub(mul(b, d), sub(sub(sub(product, mul(a, c)), mul(b, c)), mul(a, d)))
    below = floor(product)
    tie = eq(sub(product, below), 0.5)
    turned = choose(lt(lost, 0), below, choose(gt(lost, 0), add(below, 1), apply("rint", product)))
    near = div(choose(tie, turned, apply("rint", product)), scale)
    # From 2**53 on the number itself is the nearest to its decimal.
    return choose(lt(absolute(product), float(2**53)), near, x)
