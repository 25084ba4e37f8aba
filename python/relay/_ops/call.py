"""Calls of operators: how they are made, and how they are recognised."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from relay import _core
from relay.op import row


def call(name: str, *args: object, **attrs: object) -> _core.Call:
    """Returns a call of an operator by its registry name, arguments and attributes."""
    return _core.Call(row(name).node, list(args), attrs)


def checked(test: _core.Expr, pieces: Sequence[str | _core.Expr], expr: _core.Expr) -> _core.Expr:
    """Returns the expression after a check: a run that fails it ends with E0616 and the pieces."""
    said = _core.Tuple([_core.Constant(p) if isinstance(p, str) else p for p in pieces])
    check = call("debug.check", test, said)
    return _core.Let(_core.Var("fits", check.checked_type), check, expr)


def is_number(value: object) -> bool:
    """Whether it is an integer of Python or NumPy, but not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_call(expr: _core.Expr, name: str) -> bool:
    """Whether an expression is a call of the operator."""
    return isinstance(expr, _core.Call) and getattr(expr.op, "name", None) == name


def transposed_weight(expr: _core.Expr) -> _core.Var | None:
    """Returns the variable of nn.dense(x, transpose(variable)), None for any other expression."""
    if not is_call(expr, "nn.dense") or not is_call(expr.args[1], "transpose"):
        return None
    weight = expr.args[1].args[0]
    axes = list(expr.args[1].attrs.axes or ())
    return weight if isinstance(weight, _core.Var) and axes in ([], [1, 0], [-1, -2]) else None
