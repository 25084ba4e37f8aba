"""Run-time Python numbers in dtypes that may be too narrow, and checks in expressions."""

from __future__ import annotations

import os
import re

from relay import _core
from relay._function.operations.ranges import Range, at_most
from relay._ops.call import call, checked


def line() -> str:
    """Returns the file and line that is read now."""
    return os.path.basename(_core.Tuple([]).span.rpartition(":")[0])


def ensured(test: _core.Expr, pieces: list[str | _core.Expr], expr: _core.Expr) -> _core.Expr:
    """Returns the expression with a check whose failure ends the run, with these pieces and the line."""
    return checked(test, [*pieces, f" ({line()})"], expr)


def bounds_of(dtype: str) -> tuple[int, int] | None:
    """Returns the least and the greatest integer of a dtype, None for other dtypes."""
    found = re.fullmatch(r"(u?)int(\d+)", dtype)
    if found is None:
        return None
    bits = int(found[2])
    return (0, (1 << bits) - 1) if found[1] else (-(1 << bits - 1), (1 << bits - 1) - 1)


def below(number: _core.Expr, known: Range | None, dtype: str) -> _core.Expr | None:
    """Returns the test whether an int64 is below a dtype, None where it never is."""
    low = bounds_of(dtype)[0]
    if low <= -(1 << 63) or (known is not None and at_most(low, known.low)):
        return None
    return call("less", number, _core.Constant(low, "int64"))


def above(number: _core.Expr, known: Range | None, dtype: str) -> _core.Expr | None:
    """Returns the test whether an int64 is above a dtype, None where it never is."""
    high = bounds_of(dtype)[1]
    if high >= (1 << 63) - 1 or (known is not None and at_most(known.high, high)):
        return None
    return call("greater", number, _core.Constant(high, "int64"))


def held(number: _core.Expr, known: Range | None, dtype: str) -> _core.Expr:
    """Converts a run-time Python number to a dtype; the run ends if the dtype cannot hold it.

    As in NumPy, floats are truncated before the comparison with the bounds of the dtype.
    """
    kind = number.checked_type
    if kind.dtype == dtype:
        return number
    out = call("cast", number, dtype=dtype)
    if bounds_of(dtype) is None or kind.shape or kind.dtype not in ("int64", "float64"):
        return out
    if kind.dtype == "float64":
        outside = [call("logical_not", _holds_whole_part(number, dtype))]
    else:
        ends = (side(number, known, dtype) for side in (below, above))
        outside = [end for end in ends if end is not None]
    if not outside:
        return out
    test = outside[0] if len(outside) == 1 else call("logical_or", *outside)
    return ensured(
        call("logical_not", test),
        ["the Python number ", number, f" is not a value of {dtype}"],
        out,
    )


def _holds_whole_part(number: _core.Expr, dtype: str) -> _core.Expr:
    """Returns the test whether an integer dtype holds the truncated float64; false for NaN."""
    low, high = bounds_of(dtype)
    # The least int64 minus 1 is not representable as float64.
    after = "greater" if float(low - 1) < float(low) else "greater_equal"
    least = float(low - 1) if after == "greater" else float(low)
    return call(
        "logical_and",
        call(after, number, _core.Constant(least, "float64")),
        call("less", number, _core.Constant(float(high + 1), "float64")),
    )
