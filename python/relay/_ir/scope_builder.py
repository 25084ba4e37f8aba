"""`ScopeBuilder` builds a body line by line, with bindings and an if."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from relay import _core


class ScopeBuilder:
    """Builds an expression of bindings, which may end in an if.

    sb = relay.ScopeBuilder()
    y = sb.let("y", relay.add(x, x))
    with sb.if_scope(cond):
        sb.ret(y)
    with sb.else_scope():
        sb.ret(x)
    body = sb.get()
    """

    def __init__(self) -> None:
        self._bindings: list[list[tuple[_core.Var, _core.Expr]]] = [[]]
        self._ret: list[_core.Expr | None] = [None]
        self._if: tuple[_core.Expr, _core.Expr] | None = None

    def let(self, var: _core.Var | str, value: object) -> _core.Var:
        """Names a value; returns the variable."""
        expr = value if isinstance(value, _core.Expr) else _core.Tuple([value]).fields[0]
        if isinstance(var, str):
            var = _core.Var(var, expr.checked_type)
        self._bindings[-1].append((var, expr))
        return var

    def ret(self, value: object) -> None:
        """Sets the result of the current scope."""
        if self._ret[-1] is not None:
            raise RuntimeError("ret() is called once in a scope")
        self._ret[-1] = value if isinstance(value, _core.Expr) else _core.Tuple([value]).fields[0]

    @contextmanager
    def if_scope(self, cond: _core.Expr) -> Iterator[None]:
        """The scope in which the condition is true."""
        with self._scope() as made:
            yield
        self._if = (cond, made[0])

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The scope in which the condition of the preceding if_scope is false; it ends the body."""
        if self._if is None:
            raise RuntimeError("else_scope() follows an if_scope()")
        (cond, yes), self._if = self._if, None
        with self._scope() as made:
            yield
        self.ret(_core.If(cond, yes, made[0]))

    @contextmanager
    def _scope(self) -> Iterator[list[_core.Expr]]:
        made: list[_core.Expr] = []
        self._bindings.append([])
        self._ret.append(None)
        try:
            yield made
            made.append(self._closed())
        finally:
            self._bindings.pop()
            self._ret.pop()

    def _closed(self) -> _core.Expr:
        if self._if is not None:
            raise RuntimeError("an if_scope() needs an else_scope()")
        out = self._ret[-1]
        if out is None:
            raise RuntimeError("a scope needs a ret()")
        for var, value in reversed(self._bindings[-1]):
            out = _core.Let(var, value, out)
        return out

    def __repr__(self) -> str:
        names = ", ".join(v.name_hint for scope in self._bindings for v, _ in scope)
        return f"<relay.ScopeBuilder: {names or 'no bindings'}>"

    def get(self) -> _core.Expr:
        """Returns the body."""
        return self._closed()

    def type_of(self, expr: _core.Expr) -> _core.Type:
        """Returns the type of an expression, None where it is not known yet."""
        return expr.checked_type


class WithScope:
    """A value for a `with` block, and a function that is called at its end.

    with relay.WithScope(10, lambda: print("the end")) as ten: ...
    """

    def __init__(self, enter_value: object, exit_cb: Callable[[], object]) -> None:
        self._enter_value = enter_value
        self._exit_cb = exit_cb

    def __enter__(self) -> Any:
        return self._enter_value

    def __exit__(self, *error: object) -> None:
        self._exit_cb()
