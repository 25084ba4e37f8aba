"""Inner functions that a function returns: closures of the program, which Python calls later."""

from __future__ import annotations

import ast
from typing import Any

from relay import _core
from relay._function.annotations import Names, type_of_annotation
from relay._function.exchange import is_plain, maker
from relay._function.reading.calls import returned_type, returned_value
from relay._function.reading.effects import put
from relay._function.reading.outcome import finished, parameters
from relay._function.syntax import scope
from relay._function.syntax.errors import ANNOTATION, CALL, VALUE, Refusal
from relay._function.values import (
    OUTSIDE,
    Closure,
    Derivative,
    Function,
    FunctionType,
    List,
    Static,
    Tuple,
    Type,
    Value,
    flatten,
    leaf_types,
    pack,
    packed_type,
    unflatten,
    unpack,
    widen,
)

_HELP = 'write def with annotations: def f(y: relay.Tensor[("n",), "float32"]), say'


def has_function(value: Value) -> bool:
    """Whether a value contains a function that is inlined at its calls."""
    if isinstance(value, (Tuple, List)):
        return any(map(has_function, value.items))
    return isinstance(value, (Closure, Derivative))


def returns_function(kind: Type | None) -> bool:
    """Whether a type contains such a function."""
    items = getattr(kind, "items", None)
    if items is not None:
        return any(map(returns_function, items))
    return isinstance(getattr(kind, "obj", None), (Closure, Derivative))


def refuse_functions(kind: Type, what: str) -> None:
    """Refuses a result that contains a function which its caller would have to inline."""
    if returns_function(kind):
        raise Refusal(
            VALUE,
            f"the function that {what} is of returns a function",
            help="return what that gives, and not the function itself",
        )


class _Names(Names):
    """Names of sizes: those of the enclosing function; other names are open sizes."""

    def size(self, size: object) -> object:
        return self.found.get(size) if isinstance(size, str) else size


class ReturnedFunctions:
    def given_out(self, value: Value) -> Value:
        """Returns the function's result with closures converted to functions of the program."""
        if not has_function(value):
            return value
        if isinstance(value, Tuple):
            return Tuple(tuple(map(self.given_out, value.items)), value.form, value.own)
        if isinstance(value, List):
            return List(tuple(map(self.given_out, value.items)), value.own)
        if isinstance(value, Derivative):
            raise Refusal(
                VALUE,
                "what is made of a function is not returned",
                help="return a function within the function that calls it",
            )
        return value if not isinstance(value, Closure) else self._as_function(value)

    def _as_function(self, closure: Closure) -> Function:
        """Returns the closure as a function for the annotated types of its parameters.

        Captured values are computed once, before it; parameters with defaults take these.
        """
        node, frame = closure.node, closure.frame
        kinds = self._kinds(closure)
        with frame.frozen(scope.read([node])) as lets:
            params = parameters(kinds)
            leaves = iter(params)
            # The caller owns the arguments, and all calls share the defaults.
            env = {name: unflatten(kind, leaves, OUTSIDE) for name, kind in kinds.items()}
            for value in closure.defaults.values():
                self.give_away(value)
            tree = frame.within(node, frame).read_body({**closure.defaults, **env})
            returned = widen(returned_type(tree))
            if maker(returned) is not None:
                raise Refusal(
                    VALUE,
                    "a function that is returned gives tensors, numbers, and tuples of them",
                    found=str(returned),
                )
            result = packed_type(returned)
            body = finished(tree, result, lambda end: pack(flatten(returned_value(end), returned)))
        put(self.env, tuple(lets))
        types = [leaf for kind in kinds.values() for leaf in leaf_types(kind)]
        kind = FunctionType(_core.FuncType(types, result), kinds, returned)
        return Function(_core.Function(params, body, result), kind)

    def _kinds(self, closure: Closure) -> dict[str, Type]:
        args = closure.node.args
        name = getattr(closure.node, "name", "lambda")
        if args.vararg or args.kwarg or args.kwonlyargs:
            raise Refusal(
                ANNOTATION, f"{name} is returned, and has parameters that are not positional"
            )
        names = _Names()
        names.found.update((str(size), size) for size in self.program.sizes_of_main)
        kinds: dict[str, Type] = {}
        for arg in (*args.posonlyargs, *args.args):
            if arg.arg in closure.defaults:
                continue
            kind = None
            if arg.annotation is not None:
                kind = type_of_annotation(self._annotation(arg.annotation), names)
            if kind is None:
                raise Refusal(
                    ANNOTATION,
                    f"{name} is returned, and the type of its parameter '{arg.arg}' is not known",
                    help=_HELP,
                )
            if not is_plain(kind):
                raise Refusal(
                    ANNOTATION,
                    f"{name} is returned, and its parameter '{arg.arg}' is neither tensor nor number",
                    found=str(kind),
                )
            kinds[arg.arg] = kind
        return kinds

    def _annotation(self, node: ast.expr) -> object:
        """Evaluates an annotation in the scope around the decorated function."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        names: dict[str, Any] = {}
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                value = self.captured(each.id)
                if not isinstance(value, Static):
                    raise Refusal(ANNOTATION, f"'{each.id}' is not a type")
                names[each.id] = value.obj
        try:
            return eval(compile(ast.Expression(node), "<annotation>", "eval"), names)
        except Exception as error:
            raise Refusal(ANNOTATION, f"the annotation cannot be evaluated: {error}") from error

    def call_function(self, function: Function, args: list[Value], named: dict) -> Value:
        """Returns the value of a call of a function of the program."""
        kinds = function.kind.kinds
        if named or len(args) != len(kinds):
            raise Refusal(CALL, f"the function takes {', '.join(kinds)}, by position")
        leaves = []
        for (name, kind), arg in zip(kinds.items(), args, strict=True):
            leaves += flatten(self.fitting(arg, kind, name), kind)
        # Its body may have effects.
        out = self.effect(_core.Call(function.expr, leaves))
        shared = frozenset().union(*(arg.roots for arg in args))
        return unpack(out, function.kind.returned, shared or None)
