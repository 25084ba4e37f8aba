"""Functions over expressions with a method for each kind: `ExprFunctor`, `ExprVisitor`, `ExprMutator`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relay import _core, analysis
from relay._errors import wrong

# The method for each kind of expression.
_METHODS = {
    "Constant": "visit_constant", "Var": "visit_var", "GlobalVar": "visit_global_var",
    "Op": "visit_op", "Constructor": "visit_constructor", "Function": "visit_function",
    "Call": "visit_call", "Let": "visit_let", "If": "visit_if", "Tuple": "visit_tuple",
    "TupleGetItem": "visit_tuple_getitem", "Match": "visit_match",
    "RefCreate": "visit_ref_create", "RefRead": "visit_ref_read", "RefWrite": "visit_ref_write",
}  # fmt: skip


class ExprFunctor:
    """A function over expressions with a method for each kind; results are memoised by expression.

    `visit` visits parts before wholes with an explicit stack, so it never recurses deeply: methods that
    visit the parts of their argument find memoised results.
    """

    def __init__(self) -> None:
        self.memo_map: dict[_core.Expr, Any] = {}

    def visit(self, expr: _core.Expr) -> Any:
        """Returns the result of the method for the expression's kind."""
        if not isinstance(expr, _core.Expr):
            raise wrong(f"{expr!r} is not an expression")
        if expr in self.memo_map:
            return self.memo_map[expr]
        stack = [expr]
        while stack:
            node = stack[-1]
            todo = [c for c in _expressions_in(node) if c not in self.memo_map]
            if todo and node not in self._opened:
                self._opened.add(node)
                stack.extend(reversed(todo))
                continue
            stack.pop()
            if node not in self.memo_map:
                method = getattr(self, _METHODS[type(node).__name__])
                self.memo_map[node] = method(node)
            self._opened.discard(node)
        return self.memo_map[expr]

    if TYPE_CHECKING:

        def visit_constant(self, constant: _core.Constant, /) -> Any: ...
        def visit_var(self, var: _core.Var, /) -> Any: ...
        def visit_global_var(self, var: _core.GlobalVar, /) -> Any: ...
        def visit_op(self, op: _core.Op, /) -> Any: ...
        def visit_constructor(self, constructor: _core.Constructor, /) -> Any: ...
        def visit_function(self, function: _core.Function, /) -> Any: ...
        def visit_call(self, call: _core.Call, /) -> Any: ...
        def visit_let(self, let: _core.Let, /) -> Any: ...
        def visit_if(self, choice: _core.If, /) -> Any: ...
        def visit_tuple(self, tup: _core.Tuple, /) -> Any: ...
        def visit_tuple_getitem(self, item: _core.TupleGetItem, /) -> Any: ...
        def visit_match(self, match: _core.Match, /) -> Any: ...
        def visit_ref_create(self, ref: _core.RefCreate, /) -> Any: ...
        def visit_ref_read(self, read: _core.RefRead, /) -> Any: ...
        def visit_ref_write(self, write: _core.RefWrite, /) -> Any: ...

    @property
    def _opened(self) -> set[_core.Expr]:
        return self.__dict__.setdefault("_open", set())

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name in _METHODS.values():
                raise NotImplementedError(f"{type(self).__name__} has no {name}")
            raise AttributeError(name)


def _add_methods(cls: type, does: Callable[[Any, Any], Any], doc: str) -> None:
    """Gives the class a method for each kind of expression."""
    for kind, name in _METHODS.items():

        def method(self, expr, /):
            return does(self, expr)

        method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
        method.__doc__ = doc.format(kind)
        setattr(cls, name, method)


def _expressions_in(expr: _core.Expr) -> list[_core.Expr]:
    """Returns the direct parts of an expression, those in patterns and clauses included."""
    found, todo = [], analysis.children(expr)[::-1]
    while todo:
        node = todo.pop()
        if isinstance(node, _core.Expr):
            found.append(node)
        else:
            todo.extend(reversed(analysis.children(node)))
    return found


class ExprVisitor(ExprFunctor):
    """Visits each expression once, after its parts; override the methods of the kinds of interest."""

    def _visit_parts(self, expr: _core.Expr) -> None:
        for part in _expressions_in(expr):
            self.visit(part)


_add_methods(ExprVisitor, ExprVisitor._visit_parts, "Visits what a {} is made of.")


class ExprMutator(ExprFunctor):
    """Rewrites an expression: the result of a method replaces its argument at every use.

        class Halve(relay.ExprMutator):
            def visit_constant(self, c):
                return relay.const(c.data / 2)

    Methods that are not overridden rebuild the expression from its rewritten parts; an overridden one does
    so with `super().visit_call(call)`. An expression without changed parts stays the same object.
    """

    def _rebuild(self, expr: _core.Expr) -> _core.Expr:
        parts = _expressions_in(expr)
        return _core.with_parts(expr, parts, [self.visit(part) for part in parts])


_add_methods(ExprMutator, ExprMutator._rebuild, "Returns a {} of what its parts became.")
