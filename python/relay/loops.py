"""Loops as recursion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay import _core


def while_loop(
    cond: Callable[..., _core.Expr],
    loop_vars: Sequence[_core.Var],
    loop_bodies: Callable[..., Sequence[_core.Expr]],
) -> _core.Let:
    """Returns a function from the initial values to the tuple of the final values of variables.

    cond: from the variables to a scalar bool: whether there is another iteration.
    loop_vars: variables with the types of the values.
    loop_bodies: from the variables to their values in the next iteration.

        i = relay.var("i", shape=(), dtype="int32")
        count = relay.loops.while_loop(lambda i: i < 10, [i], lambda i: [i + 1])
        last = count(relay.const(0))
    """
    fresh = [_core.Var(v.name_hint, v.type_annotation) for v in loop_vars]
    types = [v.type_annotation for v in fresh]
    result = None if None in types else _core.TupleType(types)
    kind = None if result is None else _core.FuncType(types, result)
    loop = _core.Var("while_loop", kind)
    again = _core.Call(loop, list(loop_bodies(*fresh)))
    body = _core.If(cond(*fresh), again, _core.Tuple(fresh))
    return _core.Let(loop, _core.Function(fresh, body, result), loop)
