"""Dataflow patterns: descriptions of expressions, used to match, rewrite and partition programs.

    x, w, b = wildcard(), wildcard(), is_constant()
    biased = is_op("nn.bias_add")(is_op("nn.conv2d")(x, w), b)
    pattern = biased.optional(lambda y: is_op("nn.relu")(y))
    pattern.match(expr)
    partition(pattern, expr)

A pattern that occurs twice matches one expression. Alternatives are tried from left to right, and the
first match is used. Patterns match calls and operands, not bindings of `let`
(`relay.transform.ToGraphNormalForm` removes them). All functions take time linear in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from relay import _core
from relay._absent import absent
from relay._errors import wrong
from relay._expr import parse_type


class DFPattern:
    """A pattern of expressions; the functions of this module make it."""

    def __init__(self, handle: _core.DFPattern) -> None:
        self._handle = handle

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """A call of a match of this; with any arguments for `pattern(None)`.

        The operands of `add` and `multiply` match in either order.
        """
        return CallPattern(self, None if args == (None,) else list(args))

    def __repr__(self) -> str:
        shown = (type(v).__name__ if isinstance(v, DFPattern) else str(v)
                 for name, v in vars(self).items() if not name.startswith("_"))  # fmt: skip
        return f"<{type(self).__name__}({', '.join(shown)})>"

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> DFPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> DFPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> DFPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> DFPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: dict[str, object]) -> AttrPattern:
        """Matches a call, function or operator (`TOpPattern`) whose attributes have these values."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: _core.Type | str) -> TypePattern:
        """Matches an expression of this type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: object) -> DataTypePattern:
        """Matches a tensor of this dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[int]) -> ShapePattern:
        """Matches a tensor of exactly this shape."""
        return ShapePattern(self, shape)

    def where(self, condition: Callable[[_core.Expr], object]) -> DFPattern:
        """A match of this that the function accepts."""
        return DFPattern(self._handle.where(condition))

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This, or the pattern that the function makes from it, which is tried first."""
        return option_constructor(self) | self

    def dominates(self, child: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """A match of `child` that is computed from this only, through matches of `path`."""
        return DominatorPattern(self, wildcard() if path is None else path, child)

    def match(self, expr: _core.Expr) -> bool:
        """Returns whether the expression matches."""
        return self._handle.match(_expression(expr))

    def find(self, expr: _core.Expr) -> NodeMap | None:
        """Returns the matches of the pattern's parts, or None if it does not match."""
        found = self._handle.find(_expression(expr))
        return None if found is None else NodeMap(found)

    def partition(
        self,
        expr: _core.Expr,
        attrs: dict[str, object] | None = None,
        check: Callable[[_core.Expr], object] | None = None,
    ) -> _core.Expr:
        """Returns `partition(self, expr, attrs, check)`."""
        return partition(self, expr, attrs, check)


class NodeMap:
    """The expressions that the parts of a pattern match: `node_map[part]` is a list of them.

    The list has one element, except for parts on a path of `dominates` or within a recursive pattern.
    """

    def __init__(self, match: _core.DFMatch) -> None:
        self._match = match

    def __getitem__(self, part: DFPattern) -> list[_core.Expr]:
        found = self.get(part)
        if found is None:
            raise KeyError("this pattern took no part in the match")
        return found

    def get(self, part: DFPattern) -> list[_core.Expr] | None:
        """Returns None for a part that matched nothing."""
        return self._match.all(part._handle) or None

    def __contains__(self, part: object) -> bool:
        return isinstance(part, DFPattern) and self.get(part) is not None


def _expression(expr: object) -> _core.Expr:
    if not isinstance(expr, _core.Expr):
        raise wrong(f"{expr!r} is not an expression")
    return expr


def _handle(pattern: object) -> _core.DFPattern:
    if not isinstance(pattern, DFPattern):
        raise wrong(f"{pattern!r} is not a pattern; wildcard() matches anything")
    return pattern._handle


def _handles(patterns: Iterable[object]) -> list[_core.DFPattern]:
    return [_handle(p) for p in patterns]


class WildcardPattern(DFPattern):
    """Anything."""

    def __init__(self) -> None:
        super().__init__(_core.df_wildcard())


class ConstantPattern(DFPattern):
    """A constant."""

    def __init__(self) -> None:
        super().__init__(_core.df_constant())


class VarPattern(DFPattern):
    """A variable, of that name unless it is empty."""

    def __init__(self, name_hint: str = "") -> None:
        super().__init__(_core.df_var(name_hint))


class ExprPattern(DFPattern):
    """This very expression; or an equal one if it is a constant, an operator or a global."""

    def __init__(self, expr: _core.Expr) -> None:
        self.expr = _expression(expr)
        super().__init__(_core.df_expr(expr))


class CallPattern(DFPattern):
    """A call; with any arguments if they are None."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None) -> None:
        self.op, self.args = op, args
        callee = _handle(op)
        if args is None:
            super().__init__(callee.call_any())
            return
        parts = _handles(args)
        if len(parts) == 2 and getattr(op, "name", None) in ("add", "multiply"):
            super().__init__(callee.either_order(*parts))
        else:
            super().__init__(callee.call(parts))


class _OpPattern(DFPattern):
    """An operator by name."""

    def __init__(self, name: str) -> None:
        _core.op_node(name)
        self.name = name
        super().__init__(_core.df_op(name))


class TuplePattern(DFPattern):
    """A tuple; with any fields if they are None."""

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = fields
        made = _core.df_any_tuple() if fields is None else _core.df_tuple(_handles(fields))
        super().__init__(made)


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any field if the index is None."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple, self.index = tuple_value, index
        at = -1 if index is None else index
        super().__init__(_core.df_tuple_get_item(_handle(tuple_value), at))


class IfPattern(DFPattern):
    """An `if`."""

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch
        super().__init__(_core.df_if(*_handles((cond, true_branch, false_branch))))


class LetPattern(DFPattern):
    """A variable with its value, and the body."""

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var, self.value, self.body = var, value, body
        super().__init__(_core.df_let(*_handles((var, value, body))))


class FunctionPattern(DFPattern):
    """A function; with any parameters if they are None."""

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params, self.body = params, body
        if params is None:
            super().__init__(_core.df_any_function(_handle(body)))
        else:
            super().__init__(_core.df_function(_handles(params), _handle(body)))


class AltPattern(DFPattern):
    """One or the other."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right
        super().__init__(_handle(left).either(_handle(right)))


class TypePattern(DFPattern):
    """An expression of a type."""

    def __init__(self, pattern: DFPattern, ttype: _core.Type | str) -> None:
        self.pattern = pattern
        self.type = parse_type(ttype) if isinstance(ttype, str) else ttype
        if not isinstance(self.type, _core.Type):
            raise wrong(f"{ttype!r} is not a type")
        super().__init__(_handle(pattern).has_type(self.type))


class DataTypePattern(DFPattern):
    """A tensor of a dtype."""

    def __init__(self, pattern: DFPattern, dtype: object) -> None:
        self.pattern, self.dtype = pattern, dtype
        super().__init__(_handle(pattern).has_dtype(dtype))


class ShapePattern(DFPattern):
    """A tensor of a shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[int]) -> None:
        self.pattern, self.shape = pattern, tuple(shape)
        super().__init__(_handle(pattern).has_shape(list(self.shape)))


class AttrPattern(DFPattern):
    """A call, function or operator with these attributes."""

    def __init__(self, pattern: DFPattern, attrs: dict[str, object]) -> None:
        self.pattern, self.attrs = pattern, dict(attrs)
        made = _handle(pattern)
        for name, value in self.attrs.items():
            made = made.has_attr(name, value)
        super().__init__(made)


class DominatorPattern(DFPattern):
    """A `child` that is computed from one `parent`, with only `path` between them."""

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent, self.path, self.child = parent, path, child
        super().__init__(_core.df_dominates(*_handles((parent, path, child))))


class RecursivePattern(DFPattern):
    """A pattern that contains itself."""

    def __init__(self, body: Callable[[DFPattern], DFPattern]) -> None:
        super().__init__(_core.df_recursive(lambda handle: _handle(body(DFPattern(handle)))))


def wildcard() -> WildcardPattern:
    """Matches anything."""
    return WildcardPattern()


def is_constant() -> ConstantPattern:
    """Matches a constant."""
    return ConstantPattern()


def is_var(name: str = "") -> VarPattern:
    """Matches a variable, of that name unless it is empty."""
    return VarPattern(name)


def is_expr(expr: _core.Expr) -> ExprPattern:
    """Matches this very expression; for a constant, operator or global also an equal one."""
    return ExprPattern(expr)


def is_op(op_name: str) -> DFPattern:
    """Matches an operator; called with patterns of arguments, it matches a call."""
    return _OpPattern(op_name)


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """Matches a tuple; with any fields if they are None."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Matches a field of a tuple; any field if the index is None."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """Matches an `if`."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """Matches a variable with its value and body."""
    return LetPattern(var, value, body)


def is_function(params: Sequence[DFPattern] | None, body: DFPattern) -> FunctionPattern:
    """Matches a function; with any parameters if they are None."""
    return FunctionPattern(params, body)


def has_type(ttype: _core.Type | str, pattern: DFPattern | None = None) -> TypePattern:
    """Matches an expression that `pattern` matches, of this type."""
    return TypePattern(wildcard() if pattern is None else pattern, ttype)


def has_dtype(dtype: object, pattern: DFPattern | None = None) -> DataTypePattern:
    """Matches an expression that `pattern` matches, of this dtype."""
    return DataTypePattern(wildcard() if pattern is None else pattern, dtype)


def has_shape(shape: Sequence[int], pattern: DFPattern | None = None) -> ShapePattern:
    """Matches an expression that `pattern` matches, of this shape."""
    return ShapePattern(wildcard() if pattern is None else pattern, shape)


def has_attr(attrs: dict[str, object], pattern: DFPattern | None = None) -> AttrPattern:
    """Matches an expression that `pattern` matches, with these attributes."""
    return AttrPattern(wildcard() if pattern is None else pattern, attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """Matches an expression that `child` matches and that is computed from one match of `parent`.

    Every path up from the child's operands ends at the parent, through matches of `path` only.
    """
    return DominatorPattern(parent, path, child)


def recursive(body: Callable[[DFPattern], DFPattern]) -> RecursivePattern:
    """Matches the pattern that `body` makes from the pattern itself.

        chain = recursive(lambda self: is_op("nn.relu")(self) | is_var())

    Its parts match other expressions at each level.
    """
    return RecursivePattern(body)


def match(pattern: DFPattern, expr: _core.Expr) -> bool:
    """Returns whether the expression matches."""
    _handle(pattern)
    return pattern.match(expr)


class DFPatternCallback:
    """A rewrite: `pattern`, and `callback`, which returns the replacement of a match.

        class Twice(DFPatternCallback):
            def __init__(self):
                super().__init__()
                self.x = wildcard()
                self.pattern = is_op("add")(self.x, self.x)

            def callback(self, pre, post, node_map):
                return node_map[self.x][0] * relay.const(2.0)

    require_type: kept for compatibility; an expression has a type if its subexpressions have.
    rewrite_once: rewrites the program once, instead of until nothing changes.
    """

    pattern: DFPattern

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: _core.Expr) -> _core.Expr:
        """Returns the expression after this rewrite."""
        return rewrite(self, expr)

    def callback(self, pre: _core.Expr, post: _core.Expr, node_map: NodeMap) -> _core.Expr:
        """Returns the replacement of `post`.

        pre: the expression in the program.
        post: the same with its children rewritten, which matched.
        node_map: the matches of the pattern's parts in `post`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no callback")


def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback],
    expr: _core.Expr,
    mod: _core.IRModule | None = None,
) -> _core.Expr:
    """Returns the expression after the rewrites of all matches, children before parents.

    The rewrites are repeated while one changes the program; UserError E0317 if this does not
    terminate. `mod` is kept for compatibility.
    """
    rules = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    rows = []
    for rule in rules:
        if not isinstance(rule, DFPatternCallback):
            raise wrong(f"{rule!r} is not a DFPatternCallback")
        if not hasattr(rule, "pattern"):
            raise wrong(f"{type(rule).__name__} has no pattern")
        rows.append((_handle(rule.pattern), _calling(rule), rule.rewrite_once))
    return _core.df_rewrite(rows, _expression(expr))


def _calling(rule: DFPatternCallback) -> Callable:
    return lambda pre, post, match: rule.callback(pre, post, NodeMap(match))


def partition(
    pattern: DFPattern,
    expr: _core.Expr,
    attrs: dict[str, object] | None = None,
    check: Callable[[_core.Expr], object] | None = None,
) -> _core.Expr:
    """Returns the expression with each match moved into a function that is called instead.

    The matches of wildcards and variables are the arguments; constants that `is_constant` matches become
    part of the function. Matches do not overlap, and one whose parts are used elsewhere is not moved.

    attrs: attributes of the functions, in addition to PartitionedFromPattern.
    check: rejects a match by returning False.
    """
    return _handle(pattern).partition(_expression(expr), dict(attrs or {}), check)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.dataflow_pattern", name)
