"""Natural numbers of the prelude: conversion to expressions and values, and back.

from relay import testing
testing.nat.count(prelude, testing.nat.make_nat_value(prelude, 5))    # 5
"""

from __future__ import annotations

from relay import _core
from relay._errors import wrong
from relay.prelude import Prelude


def count(prelude: Prelude, n: _core.ConstructorValue) -> int:
    """Returns the number that a value of type nat represents."""
    found = 0
    while n.constructor == prelude.s.name_hint:
        (n,) = n.fields
        found += 1
    if n.constructor != prelude.z.name_hint:
        raise wrong(f"{n} is not a value of type nat")
    return found


def make_nat_value(prelude: Prelude, n: int) -> _core.ConstructorValue:
    """Returns a number as a value of type nat, as an argument of a program."""
    _check(n)
    value = _core.ConstructorValue(prelude.z.name_hint, (), "nat")
    for _ in range(n):
        value = _core.ConstructorValue(prelude.s.name_hint, (value,), "nat")
    return value


def make_nat_expr(prelude: Prelude, n: int) -> _core.Expr:
    """Returns a number as an expression of type nat."""
    _check(n)
    expr = _core.Call(prelude.z, [])
    for _ in range(n):
        expr = _core.Call(prelude.s, [expr])
    return expr


def _check(n: int) -> None:
    if n < 0:
        raise wrong(f"a natural number is not negative: {n}")
