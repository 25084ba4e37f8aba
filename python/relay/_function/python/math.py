"""The functions of Python's `math` on run-time numbers.

`MATH` maps a name to a function of the reader and of float64 numbers. Calls whose arguments are all known are
computed by Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from relay._function.numpy.catalogue import instead_of
from relay._function.numpy.registry import Row, loop, there
from relay._function.operations.arithmetic import apply, cast, describe, is_number, kind_of
from relay._function.operations.arrays import tensor_of
from relay._function.operations.shorthand import (
    absolute,
    add,
    both,
    choose,
    div,
    either,
    eq,
    floor,
    floordiv,
    gt,
    isfinite,
    le,
    lt,
    maximum,
    mul,
    neg,
    sqrt,
    sub,
)
from relay._function.syntax.errors import CALL, VALUE, Refusal
from relay._function.values import Static, Tensor, Tuple, Value
from relay._ops.call import call

MATH: dict[str, Row] = {}


def _math(*names: str, only: str = "") -> Callable:
    def add_rows(function: Callable) -> Callable:
        for name in names:
            if hasattr(math, name):
                MATH[name] = Row(function, only)
        return function

    return add_rows


def call_math(reader, function: Callable, args: list[Value], named: dict[str, Value]) -> Value:
    """The value of a call of a function of math."""
    flat = [*args, *named.values()]
    if all(isinstance(a, Static) for a in flat):
        given = {key: value.obj for key, value in named.items()}
        return reader._python(lambda: function(*(a.obj for a in args), **given))
    row = MATH.get(function.__name__)
    if row is None:
        raise Refusal(
            CALL,
            f"math.{function.__name__} is for known numbers here",
            help=instead_of("math", function.__name__),
        )
    return reader._apply(row.function, f"math.{function.__name__}", [reader, *args], named, 1)


def _number(value: Value) -> Value:
    """A number as a float64 of the program."""
    if not is_number(value) or (isinstance(value, Tensor) and value.shape):
        raise Refusal(VALUE, "math is for numbers", found=describe(value), help="use numpy")
    return value if isinstance(value, Static) else Tensor(cast(value, "float64").expr, True)


def _integer(value: Value) -> Value:
    """A number as an int64 of the program."""
    number = _number(value)
    of = value.obj if isinstance(value, Static) else None
    is_float = isinstance(of, float) or (isinstance(value, Tensor) and kind_of(value.dtype) == "f")
    if is_float:
        raise Refusal(VALUE, "an integer is needed", found=describe(value), help="int(x) makes one")
    return Tensor(
        cast(tensor_of(value if isinstance(value, Tensor) else number), "int64").expr, True
    )


def _as(dtype: str, value: Value) -> Tensor:
    return Tensor(cast(value, dtype).expr, True)


def _elementwise(name: str, dtype: str) -> Callable:
    return lambda reader, *args: _as(dtype, there(name)(*map(_number, args)))


for _name, _numpy_name in {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "cbrt": "cbrt", "copysign": "copysign", "cos": "cos",
    "cosh": "cosh", "degrees": "degrees", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "fabs": "fabs", "fmod": "fmod", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "nextafter": "nextafter", "pow": "power", "radians": "radians", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}.items():  # fmt: skip
    _math(_name)(_elementwise(_numpy_name, "float64"))
for _name in ("ceil", "floor", "trunc"):
    _math(_name)(_elementwise(_name, "int64"))
for _name in ("isfinite", "isinf", "isnan"):
    _math(_name)(_elementwise(_name, "bool"))


@_math("log")
def _log(reader, x, base=None):
    out = apply("log", _number(x))
    return _as("float64", out if base is None else div(out, apply("log", _number(base))))


@_math("hypot")
def _hypot(reader, *coordinates):
    out: Value = Static(0.0)
    for x in coordinates:
        out = there("hypot")(out, _number(x))
    return _as("float64", out)


@_math("dist")
def _dist(reader, p, q):
    pairs = zip(reader.elements(p, "math.dist"), reader.elements(q, "math.dist"), strict=True)
    return _hypot(reader, *(sub(_number(a), _number(b)) for a, b in pairs))


@_math("isclose")
def _isclose(reader, a, b, rel_tol=1e-9, abs_tol=0.0):
    a, b = _number(a), _number(b)
    limit = maximum(mul(rel_tol, maximum(absolute(a), absolute(b))), abs_tol)
    near = both(both(isfinite(a), isfinite(b)), le(absolute(sub(a, b)), limit))
    return Tensor(either(near, eq(a, b)).expr, True)


@_math("remainder")
def _remainder(reader, x, y):
    # As C's remainder: exact, a tie goes to the even quotient.
    x, y = _number(x), _number(y)
    size, by = absolute(x), absolute(y)
    m = apply("fmod", size, by)
    c = sub(by, m)
    tie = sub(m, mul(2.0, apply("fmod", mul(0.5, sub(size, m)), by)))
    out = choose(lt(m, c), m, choose(gt(m, c), neg(c), tie))
    out = mul(there("copysign")(Static(1.0), x), out)
    infinite = both(isfinite(x), there("isinf")(y))
    return _as("float64", choose(infinite, x, out))


@_math("ldexp")
def _ldexp(reader, x, i):
    return _as("float64", there("ldexp")(Tensor(tensor_of(_number(x)).expr), _integer(i)))


@_math("frexp")
def _frexp(reader, x):
    mantissa, exponent = there("frexp")(tensor_of(_number(x))).items
    return Tuple((_as("float64", mantissa), _as("int64", exponent)))


@_math("modf")
def _modf(reader, x):
    return Tuple(tuple(_as("float64", v) for v in there("modf")(tensor_of(_number(x))).items))


@_math("ulp")
def _ulp(reader, x):
    return _as("float64", absolute(there("spacing")(_number(x))))


@_math("erf")
def _erf(reader, x):
    return Tensor(call("erf", tensor_of(_number(x)).expr), True)


# ---- Integers ------------------------------------------------------------------------------------


def _folded(name: str, start: int) -> Callable:
    def fold(reader, *integers):
        out: Value = Static(start)
        for x in integers:
            out = there(name)(reader, out, _integer(x) if not isinstance(x, Static) else x)
        return _as("int64", out)

    return fold


_math("gcd")(_folded("gcd", 0))
_math("lcm")(_folded("lcm", 1))


def _loop(reader, function: object, *args: Value) -> Tensor:
    given = [Tensor(tensor_of(a).expr) for a in args]
    return Tensor(reader.program.call(reader, function, given, {}).expr, True)


@_math("factorial", only="up to 20, as int64 holds them")
def _factorial(reader, n):
    return _loop(reader, loop("factorial"), _integer(n))


@_math("comb", only="as int64 holds them")
def _comb(reader, n, k):
    return _loop(reader, loop("comb"), _integer(n), _integer(k))


@_math("perm", only="as int64 holds them")
def _perm(reader, n, k=None):
    n = _integer(n)
    return _loop(reader, loop("perm"), n, n if k is None else _integer(k))


@_math("isqrt")
def _isqrt(reader, n):
    n = _integer(n)
    root = cast(floor(sqrt(cast(n, "float64"))), "int64")
    # The root of a float64 is rounded: for squares above 2**52 it may be off by one.
    root = choose(gt(mul(root, root), n), sub(root, 1), root)
    above = add(root, 1)
    return _as("int64", choose(le(above, floordiv(n, maximum(above, 1))), above, root))


@_math("prod")
def _prod(reader, iterable, start=1):
    out: Value = start if isinstance(start, Value) else Static(start)
    for item in reader.elements(iterable, "math.prod"):
        out = mul(out, item)
    return out


@_math("sumprod")
def _sumprod(reader, p, q):
    total: Value = Static(0)
    pairs = zip(reader.elements(p, "math.sumprod"), reader.elements(q, "math.sumprod"), strict=True)
    for a, b in pairs:
        total = add(total, mul(a, b))
    return total
