"""Functions over expressions by their kinds: `ExprFunctor`, `ExprVisitor` and `ExprMutator`."""

from __future__ import annotations

from typing import Any

from relay import _core, analysis

# The method for each kind of expression.
_METHODS = {
    "Constant": "visit_constant", "Var": "visit_var", "GlobalVar": "visit_global_var",
    "Op": "visit_op", "Constructor": "visit_constructor", "Function": "visit_function",
    "Call": "visit_call", "Let": "visit_let", "If": "visit_if", "Tuple": "visit_tuple",
    "TupleGetItem": "visit_tuple_getitem", "Match": "visit_match",
    "RefCreate": "visit_ref_create", "RefRead": "visit_ref_read", "RefWrite": "visit_ref_write",
}  # fmt: skip


class ExprFunctor:
    """A function over expressions: a method for each kind, its result kept for each expression.

    `visit` first visits all that an expression is made of, parts before wholes, and so never
    recurses deeply: methods that visit the parts of their argument find the results.
    """

    def __init__(self) -> None:
        self.memo_map: dict[_core.Expr, Any] = {}

    def visit(self, expr: _core.Expr) -> Any:
        """Returns what the method for the expression's kind gives."""
        if not isinstance(expr, _core.Expr):
            raise TypeError(f"{expr!r} is not an expression")
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

    @property
    def _opened(self) -> set[_core.Expr]:
        return self.__dict__.setdefault("_open", set())

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS.values():
            raise NotImplementedError(f"{type(self).__name__} has no {name}")
        raise AttributeError(name)


def _expressions_in(expr: _core.Expr) -> list[_core.Expr]:
    """The expressions that it is made of, those of patterns and clauses among them."""
    found, todo = [], analysis.children(expr)[::-1]
    while todo:
        node = todo.pop()
        if isinstance(node, _core.Expr):
            found.append(node)
        else:
            todo.extend(reversed(analysis.children(node)))
    return found


class ExprVisitor(ExprFunctor):
    """Visits each expression once; a method that is overridden sees its kind, behind the parts."""

    def _visit_parts(self, expr: _core.Expr) -> None:
        for part in _expressions_in(expr):
            self.visit(part)


for _name in _METHODS.values():
    setattr(ExprVisitor, _name, ExprVisitor._visit_parts)


class ExprMutator(ExprFunctor):
    """Rewrites an expression: what a method gives takes the place of its argument wherever that was.

        class Halve(relay.ExprMutator):
            def visit_constant(self, c):
                return relay.const(c.data / 2)

    The methods that are not overridden put the expression together anew from what its parts became;
    an overridden one asks for that with `super().visit_call(call)`. Where no part changed, it is the
    same object.
    """

    def _rebuild(self, expr: _core.Expr) -> _core.Expr:
        parts = _expressions_in(expr)
        return _core.with_parts(expr, parts, [self.visit(part) for part in parts])


for _name in _METHODS.values():
    setattr(ExprMutator, _name, ExprMutator._rebuild)
