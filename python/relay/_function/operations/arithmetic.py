"""NumPy's element-wise functions: the operator and the dtype of each.

The dtypes are NumPy's own (`numpy.ufunc.resolve_dtypes`): a Python number yields to an array.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function.operations.fitting import above, below, bounds_of
from relay._function.operations.ranges import Range, combined
from relay._function.syntax.errors import VALUE, Refusal
from relay._function.values import (
    Size,
    Static,
    Tensor,
    Value,
    as_expr,
    converted,
    is_text,
    kind_of,
    number_type,
    range_of,
    sizes_in,
    type_of,
)
from relay._ops.call import call

# Operators by NumPy's name; other functions have a row in `_SPECIAL`.
UFUNCS = {
    "absolute": "abs", "add": "add", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh", "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "ceil": "ceil", "cos": "cos",
    "cosh": "cosh", "divide": "divide", "equal": "equal", "exp": "exp", "fabs": "abs",
    "floor": "floor", "floor_divide": "floor_divide", "fmod": "mod", "greater": "greater",
    "greater_equal": "greater_equal", "invert": "bitwise_not", "isfinite": "isfinite",
    "isinf": "isinf", "isnan": "isnan", "left_shift": "left_shift", "less": "less",
    "less_equal": "less_equal", "log": "log", "log10": "log10", "log2": "log2",
    "logical_and": "logical_and", "logical_not": "logical_not", "logical_or": "logical_or",
    "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum",
    "multiply": "multiply", "negative": "negative", "not_equal": "not_equal", "power": "power",
    "remainder": "floor_mod", "right_shift": "right_shift", "rint": "round", "sign": "sign",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "subtract": "subtract", "tan": "tan",
    "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip

# Operators on bools, where the operator on numbers has another meaning.
_BOOL = {
    "add": "logical_or", "multiply": "logical_and", "maximum": "logical_or",
    "minimum": "logical_and", "bitwise_and": "logical_and", "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor", "bitwise_not": "logical_not", "not_equal": "logical_xor",
}  # fmt: skip
_LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}
# Rounding leaves integers as they are.
_ROUNDING = {"floor", "ceil", "trunc", "round"}

# Python's operators: the NumPy function, and the function on known objects.
BINARY = {
    "Add": ("add", operator.add), "Sub": ("subtract", operator.sub),
    "Mult": ("multiply", operator.mul), "Div": ("divide", operator.truediv),
    "FloorDiv": ("floor_divide", operator.floordiv), "Mod": ("remainder", operator.mod),
    "Pow": ("power", operator.pow), "LShift": ("left_shift", operator.lshift),
    "RShift": ("right_shift", operator.rshift), "BitAnd": ("bitwise_and", operator.and_),
    "BitOr": ("bitwise_or", operator.or_), "BitXor": ("bitwise_xor", operator.xor),
}  # fmt: skip
COMPARE = {
    "Eq": ("equal", operator.eq), "NotEq": ("not_equal", operator.ne),
    "Lt": ("less", operator.lt), "LtE": ("less_equal", operator.le),
    "Gt": ("greater", operator.gt), "GtE": ("greater_equal", operator.ge),
}  # fmt: skip
UNARY = {
    "USub": ("negative", operator.neg), "UAdd": ("positive", operator.pos),
    "Invert": ("invert", operator.invert),
}  # fmt: skip
# Compositions by NumPy's name; their arguments have the dtypes in which NumPy computes.
COMPOSED: dict[str, Callable] = {}
# Functions of the bits of their operands: they keep the operands' dtype.
_OF_BITS = {"copysign", "nextafter", "signbit", "spacing"}
_HALVES = ("float16", "bfloat16")


def in_float32(function: Callable) -> Callable:
    """Wraps a composition so that float16 and bfloat16 are computed in float32 and rounded once.

    Otherwise each operator of the composition would round. Nothing changes if a dtype is requested or if the
    operands have several dtypes.
    """

    @functools.wraps(function)
    def wide(*args, **kwargs):
        given = [*args, *kwargs.values()]
        floats = {v.dtype for v in given if isinstance(v, Tensor) and kind_of(v.dtype) == "f"}
        if len(floats) != 1 or not floats <= {*_HALVES} or "dtype" in kwargs:
            return function(*args, **kwargs)
        narrow = floats.pop()

        def widened(v: Value) -> Value:
            return cast(v, "float32") if isinstance(v, Tensor) and v.dtype == narrow else v

        out = function(*map(widened, args), **{k: widened(v) for k, v in kwargs.items()})
        return cast(out, narrow) if isinstance(out, Tensor) and out.dtype == "float32" else out

    return wide


_SIZE_OPERATORS = {"add", "subtract", "multiply", "floor_divide", "remainder"}


def is_number(value: Value) -> bool:
    """Whether it is a tensor, a number or a size."""
    if isinstance(value, (Tensor, Size)):
        return True
    return isinstance(value, Static) and number_type(value.obj) is not None


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's object for a dtype of Relay."""
    if name == "string":
        return np.dtype(object)
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _weak(value: Value) -> str | None:
    """Returns the dtype of a Python number, None for any other tensor."""
    if isinstance(value, Tensor):
        return value.dtype if value.weak else None
    return "int64" if isinstance(value, Size) else number_type(value.obj).dtype


def describe(value: Value) -> str:
    """A value's type, for messages."""
    if isinstance(value, Static) and number_type(value.obj) is not None:
        return f"the Python number {value.obj!r}"
    return str(type_of(value))


def apply(name: str, *operands: Value) -> Value:
    """Applies the NumPy function of that name to tensors, numbers and sizes."""
    if any(map(is_text, operands)):
        return _of_texts(name, operands)
    for value in operands:
        if not is_number(value):
            raise Refusal(
                VALUE,
                f"{name} needs a tensor or a number",
                found=describe(value),
            )
    if name == "positive":
        (value,) = operands
        return Tensor(value.expr, value.weak) if isinstance(value, Tensor) else value
    if (sized := _of_sizes(name, operands)) is not None:
        return sized
    ufunc = getattr(np, name)
    weak = [_weak(value) for value in operands]
    kinds = {"bool": np.dtype(bool), "int64": int, "float64": float}
    own = [
        numpy_dtype(value.dtype) if number is None else kinds[number]
        for value, number in zip(operands, weak, strict=True)
    ]
    all_weak = all(weak)
    if all_weak:
        own = [np.dtype(number) for number in weak]
    of_integers = all(np.dtype(d).kind in "iu" for d in own)
    if name in ("floor", "ceil", "trunc") and of_integers:
        return apply("positive", *operands)
    if name == "power" and of_integers and isinstance(operands[1], Static) and operands[1].obj < 0:
        if not all_weak:
            raise Refusal(
                VALUE,
                "integers have no negative powers",
                found=" and ".join(map(describe, operands)),
                help="convert the base with astype, or divide 1 by the power",
            )
        own = [np.dtype("float64")] * 2
    try:
        resolved = ufunc.resolve_dtypes((*own, None))
    except TypeError:
        raise Refusal(
            VALUE,
            f"numpy.{name} is not defined for these dtypes",
            found=", ".join(map(describe, operands)),
            help="astype converts a tensor to another dtype",
        ) from None
    op = UFUNCS.get(name)
    if name in COMPOSED:
        inputs = [
            converted(value, d) for value, d in zip(operands, _wide(name, resolved), strict=False)
        ]
        out = COMPOSED[name](*map(Tensor, inputs)).expr
    elif name in _COMPARISONS and (out := _compared(name, operands, resolved[0].name)) is not None:
        pass
    elif op in _LOGICAL:
        inputs = [truth(value) for value in operands]
        out = call(op, *inputs)
    else:
        inputs = [converted(value, d.name) for value, d in zip(operands, resolved, strict=False)]
        out = _call(op, inputs, operands, resolved[0].name)
    if out.checked_type.dtype != resolved[-1].name:
        out = call("cast", out, dtype=resolved[-1].name)
    return Tensor(out, all_weak, range=_range(name, out, operands))


def _range(name: str, out: _core.Expr, operands: tuple) -> Range | None:
    """Returns the known bounds of an integer that is computed from others."""
    if out.checked_type.dtype != "int64" or len(out.checked_type.shape):
        return None
    ranges = [range_of(value) for value in operands]
    if name == "negative":
        return None if ranges[0] is None else ranges[0].mirrored()
    return combined(name, *ranges) if len(ranges) == 2 else None


def _wide(name: str, dtypes: tuple) -> list[str]:
    """Returns the dtypes in which a composition computes: float32 for floats of 16 bits."""
    names = [d.name for d in dtypes]
    if name in _OF_BITS:
        return names
    return ["float32" if n in _HALVES else n for n in names]


_COMPARISONS = {numpy_name for numpy_name, _ in COMPARE.values()}


def _compared(name: str, operands: tuple, dtype: str) -> _core.Expr | None:
    """Returns a comparison of integers with a Python integer outside their dtype, None for any other.

    Such a number is below or above all values of the dtype.
    """
    at = next((i for i, v in enumerate(operands) if _weak(v) == "int64"), None)
    if at is None or _weak(operands[1 - at]) is not None or bounds_of(dtype) is None:
        return None
    number, others = operands[at], as_expr(operands[1 - at])
    if sizes_in(as_expr(number).checked_type):
        return None

    def verdict(sign: int) -> _core.Expr:
        pair = (sign, 0) if at == 0 else (0, sign)
        return _core.Constant(bool(getattr(np, name)(*pair)), "bool")

    def compare(of: _core.Expr) -> _core.Expr:
        return call(UFUNCS[name], *((of, others) if at == 0 else (others, of)))

    if isinstance(number, Static):
        low, high = bounds_of(dtype)
        if low <= number.obj <= high:
            return None
        return call("full_like", compare(others), verdict(1 if number.obj > high else -1))
    expr, known = as_expr(number), range_of(number)
    sides = ((below(expr, known, dtype), -1), (above(expr, known, dtype), 1))
    outside = [(test, sign) for test, sign in sides if test is not None]
    if not outside:
        return None
    out = compare(call("cast", expr, dtype=dtype))
    for test, sign in outside:
        out = call("where", test, verdict(sign), out)
    return out


# Strings are ordered by their characters.
_TEXT = {
    "add": "text.concat", "equal": "equal", "not_equal": "not_equal", "less": "less",
    "less_equal": "less_equal", "greater": "greater", "greater_equal": "greater_equal",
}  # fmt: skip


def _of_texts(name: str, operands: tuple) -> Value:
    """Applies a function to strings, which are compared and concatenated with strings only."""
    if name not in _TEXT or not all(map(is_text, operands)):
        raise Refusal(
            VALUE,
            f"numpy.{name} is not defined for "
            + ("strings" if name not in _TEXT else "strings and numbers"),
            found=", ".join(map(describe, operands)),
            help="+, ==, !=, <, <=, > and >= take strings on both sides; "
            "astype makes numbers of strings",
        )
    return Tensor(call(_TEXT[name], *(as_expr(value, "string") for value in operands)))


def _of_sizes(name: str, operands: tuple) -> Value | None:
    """Returns arithmetic of sizes and known integers, which is a size."""
    if name not in _SIZE_OPERATORS or not any(isinstance(v, Size) for v in operands):
        return None
    known = [
        v.dim if isinstance(v, Size) else v.obj
        for v in operands
        if isinstance(v, Size) or (isinstance(v, Static) and type(v.obj) is int)
    ]
    if len(known) != len(operands):
        return None
    # Python's quotients by zero are errors, and by what may be zero they are numbers of the run.
    if name in ("floor_divide", "remainder") and not (isinstance(known[1], int) and known[1] > 0):
        return None
    python = next(op for numpy_name, op in BINARY.values() if numpy_name == name)
    return size_or_number(python(*known))


def size_or_number(dim: object) -> Value:
    """Returns a size of a shape as a value: a number if it is known."""
    return Static(dim) if isinstance(dim, int) else Size(dim)


def _call(op: str, inputs: list, operands: tuple, dtype: str) -> _core.Expr:
    if dtype == "bool":
        op = _BOOL.get(op, op)
        if op == "equal":
            return call("logical_not", call("logical_xor", *inputs))
        if op in ("less", "less_equal", "greater", "greater_equal"):
            inputs = [call("cast", i, dtype="uint8") for i in inputs]
    if op in ("isnan", "isinf", "isfinite") and kind_of(dtype) != "f":
        inputs = [call("cast", i, dtype="float32") for i in inputs]
    if op in _ROUNDING and kind_of(dtype) != "f":
        return inputs[0]
    if op == "power" and isinstance(operands[1], Static):
        # A square is a product, as in NumPy.
        if operands[1].obj == 2:
            return call("multiply", inputs[0], inputs[0])
        if operands[1].obj == 0.5:
            return call("sqrt", inputs[0])
    return call(op, *inputs)


def truth(value: Value) -> _core.Expr:
    """Returns whether each element is neither zero nor an empty string."""
    expr = as_expr(value)
    dtype = expr.checked_type.dtype
    if dtype == "bool":
        return expr
    nothing = _core.Constant("") if dtype == "string" else _core.Constant(0, dtype)
    return call("not_equal", expr, nothing)


def integers(value: Tensor, what: str) -> _core.Expr:
    """Returns a tensor of integers or bools as int64; refuses others, as NumPy does."""
    if kind_of(value.dtype) not in "ib":
        raise Refusal(
            VALUE,
            f"{what} are integers",
            found=describe(value),
            help="astype makes integers of floats",
        )
    return cast(value, "int64").expr


def cast(value: Value, dtype: str) -> Tensor:
    """Returns a copy of the value in another dtype, as astype does."""
    expr = as_expr(value)
    have = expr.checked_type.dtype
    if have == dtype:
        return Tensor(expr)
    if "string" in (have, dtype):
        if have != "string" or kind_of(dtype) not in "if":
            raise Refusal(
                VALUE,
                f"{have} is not made {dtype}",
                found=describe(value),
                help="relay.text.format writes numbers as strings; astype makes numbers of these",
            )
        return Tensor(call("text.parse", expr, dtype=dtype))
    if dtype == "bool":
        return Tensor(truth(value))
    return Tensor(call("cast", expr, dtype=dtype))


def number_of(number: float, dtype: str) -> _core.Expr:
    """Returns a Python number as an element of an array of that dtype."""
    held = np.empty((), numpy_dtype(dtype))
    try:
        held[()] = number
    except (OverflowError, ValueError):
        raise Refusal(
            VALUE,
            f"{number} is not a value of {dtype}",
            help="astype(...) of a wider dtype holds it; np.array(x).astype(...) keeps the bits that fit",
        ) from None
    return _core.Constant(held)


def filled(value: Value, dtype: str) -> _core.Expr:
    """Converts a value as NumPy does when it is assigned to elements of that dtype.

    A Python number outside the dtype is refused, or ends the run; elements of an array are truncated.
    """
    if isinstance(value, Static) and number_type(value.obj) is not None:
        return number_of(value.obj, dtype)
    if dtype != "bool" and (isinstance(value, Size) or (isinstance(value, Tensor) and value.weak)):
        return converted(value, dtype)
    return cast(value, dtype).expr


def dtype_name(obj: object) -> str:
    """Returns the name of a dtype, which is NumPy's, a Python number class or a name."""
    if isinstance(obj, str):
        return obj
    try:
        dtype = np.dtype(obj)
        return "string" if dtype.kind in "UT" else dtype.name
    except TypeError:
        raise Refusal(VALUE, f"{obj!r} is not a dtype") from None
