"""Calls: of functions within the function, of other Relay functions, operators, NumPy and Python."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay import _core
from relay._function import numpy_functions, prelude, scope
from relay._function.arithmetic import apply, cast, describe, is_number, kind_of
from relay._function.arrays import known, size_value, tensor_of
from relay._function.errors import (
    CALL,
    LIMIT,
    RECURSION,
    UNSUPPORTED,
    VALUE,
    Pending,
    Refusal,
)
from relay._function.loops import Counter, Iteration
from relay._function.outcome import (
    Env,
    Exit,
    Fall,
    Never,
    Tree,
    bound,
    finished,
    leaves,
    leaves_of,
    parameters,
    result_type,
)
from relay._function.values import (
    Chain,
    Clash,
    Closure,
    Data,
    Form,
    List,
    Mismatch,
    Size,
    Static,
    Tensor,
    Tuple,
    Type,
    Value,
    as_expr,
    flatten,
    join,
    leaf_types,
    lift,
    opened,
    pack,
    packed_type,
    type_of,
    unpack,
    widen,
)
from relay._wrappers import call

# Functions that are read into each other.
_MAX_INLINED = 100
_MAX_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Bound(Value):
    """A method with the object that it is of; `of_class`: one that the object's class has."""

    function: Any
    base: Value
    of_class: bool = True


@dataclass(eq=False)
class Activation:
    """A function within the function that is being read; once it calls itself, as a function."""

    key: object
    recursive: bool = False
    kinds: dict[str, Type] = field(default_factory=dict)
    returned: Type | None = None
    var: Any = None
    changed: bool = False


class NeedsFunction(Exception):
    """A function that was read into its caller calls itself."""

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.activation = activation


class Calls:
    def on_Call(self, node: ast.Call) -> Value:
        function = self.expr(node.func)
        args = self._display(node.args)
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.expr(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, Tuple) and value.form and value.form.kind == "dict":
                named.update(zip(value.form.names, value.items, strict=True))
            else:
                raise Refusal(VALUE, "** takes a dictionary", found=describe(value))
        return self.call(function, args, named)

    def call(self, function: Value, args: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Closure):
            return self.call_closure(function, args, named)
        if isinstance(function, Bound):
            if not function.of_class:
                return self._apply(function.function, [function.base, *args], named)
            return self._call_known(function.function, [function.base, *args], named)
        if isinstance(function, Tuple) and function.form is not None:
            method = vars(function.form.cls).get("__call__")
            if method is not None:
                return self._call_known(method, [function, *args], named)
        if isinstance(function, Static):
            return self._call_known(function.obj, args, named)
        raise Refusal(CALL, "this is not a function", found=describe(function))

    def _call_known(self, obj: Any, args: list[Value], named: dict[str, Value]) -> Value:
        from relay._function.function import RelayFunction

        if isinstance(obj, RelayFunction):
            return self.program.call(self, obj, args, named)
        if id(obj) in numpy_functions.FUNCTIONS:
            return self._apply(numpy_functions.FUNCTIONS[id(obj)], args, named)
        if id(obj) in BUILTINS:
            return self._apply(BUILTINS[id(obj)], [self, *args], named)
        if getattr(obj, "__module__", None) == "math":
            return self._math(obj, args)
        if isinstance(obj, type):
            return self._construct(obj, args, named)
        if isinstance(obj, _core.Expr):
            return self.lifted(obj(*(as_expr(a) for a in args)))
        if isinstance(obj, types.FunctionType) and obj.__module__.partition(".")[0] == "relay":
            return self._operator(obj, args, named)
        name = getattr(obj, "__qualname__", None) or repr(obj)
        if (getattr(obj, "__module__", "") or "").partition(".")[0] == "numpy":
            raise Refusal(
                CALL,
                f"numpy's {name} is not part of relay.function",
                help="docs/python_function.md has those that are",
            )
        help = _INSTEAD.get(name, "decorate it with @relay.function, or call it outside")
        raise Refusal(CALL, f"{name} is not a function that can be compiled", help=help)

    def _apply(self, function: Callable, args: list, named: dict[str, Value]) -> Value:
        try:
            return function(*args, **named)
        except TypeError as error:
            raise Refusal(CALL, str(error)) from error

    def _operator(self, function: Callable, args: list[Value], named: dict[str, Value]) -> Value:
        """A function of Relay's: an operator, or what makes an expression."""
        values = [operand(a) for a in args]
        try:
            made = function(*values, **{name: operand(a) for name, a in named.items()})
        except _core.RelayError:
            raise
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise Refusal(CALL, str(error)) from error
        return self.lifted(made)

    def lifted(self, made: object) -> Value:
        """The value of what an operator makes."""
        if not isinstance(made, _core.Expr):
            return lift(made)
        kind = made.checked_type
        if isinstance(kind, _core.TensorType):
            return Tensor(made)
        if isinstance(kind, _core.TupleType):
            fields = range(len(kind.fields))
            return Tuple(tuple(self.lifted(_core.TupleGetItem(made, i)) for i in fields))
        raise Refusal(CALL, "the type of this call is not known", found=str(kind))

    def _math(self, function: Callable, args: list[Value]) -> Value:
        if all(isinstance(a, Static) for a in args):
            return self._python(lambda: function(*(a.obj for a in args)))
        name = _MATH.get(function.__name__)
        if name is None:
            raise Refusal(CALL, f"math.{function.__name__} is for known numbers here")
        numbers = []
        for a in args:
            if not is_number(a) or (isinstance(a, Tensor) and a.shape):
                raise Refusal(VALUE, "math is for numbers", found=describe(a), help="use numpy")
            numbers.append(
                Tensor(cast(a, "float64").expr, True) if not isinstance(a, Static) else a
            )
        out = apply(name, *numbers)
        to = "int64" if name in ("floor", "ceil") else "float64"
        return Tensor(cast(out, to).expr, True)

    def _construct(self, cls: type, args: list[Value], named: dict[str, Value]) -> Value:
        if issubclass(cls, np.generic):
            value = args[0] if args else Static(0)
            name = np.dtype(cls).name
            if isinstance(value, (List, Tuple)):
                value = tensor_of(value)
            if isinstance(value, Static):
                return Tensor(as_expr(value, name))
            return cast(value, name)
        if hasattr(cls, "__relay_constructor__"):
            return self.make_data(cls, args, named)
        fields = getattr(cls, "_fields", None)
        if issubclass(cls, tuple) and fields is not None:
            defaults = cls._field_defaults
            return self._record(Form("namedtuple", cls, tuple(fields)), defaults, args, named)
        if dataclasses.is_dataclass(cls):
            if hasattr(cls, "__post_init__"):
                raise Refusal(CALL, f"{cls.__name__} has a __post_init__, which is not compiled")
            all_fields = dataclasses.fields(cls)
            defaults = {
                f.name: f.default for f in all_fields if f.default is not dataclasses.MISSING
            }
            form = Form("dataclass", cls, tuple(f.name for f in all_fields))
            return self._record(form, defaults, args, named)
        raise Refusal(
            CALL,
            f"{cls.__name__} objects are not made in a compiled function",
            help="use a tuple, a named tuple or a data class",
        )

    def _record(self, form: Form, defaults: dict, args: list[Value], named: dict) -> Value:
        given = dict(zip(form.names, args, strict=False))
        unknown = [name for name in named if name not in form.names or name in given]
        if len(args) > len(form.names) or unknown:
            raise Refusal(CALL, f"{form.cls.__name__} takes {', '.join(form.names)}")
        given.update(named)
        for name, default in defaults.items():
            given.setdefault(name, lift(default))
        missing = [name for name in form.names if name not in given]
        if missing:
            raise Refusal(CALL, f"{form.cls.__name__} needs {', '.join(missing)}")
        return Tuple(tuple(given[name] for name in form.names), form)

    # ---- Functions within the function

    def call_closure(self, closure: Closure, args: list[Value], named: dict[str, Value]) -> Value:
        env = bind(closure.node, closure.defaults, args, named)
        frame = closure.frame
        name = getattr(closure.node, "name", "lambda")

        def enter(variables: Env) -> Tree:
            reader = frame.within(closure.node, frame)
            return reader.read_body(variables)

        key = (id(closure.node), id(frame))
        return self.activate(key, name, closure.node, env, enter)

    def activate(
        self, key: object, name: str, node: ast.AST, env: Env, enter: Callable[[Env], Tree]
    ) -> Value:
        """Reads a function into its caller; as a function of its own when it calls itself."""
        active = self.program.active
        for activation in active:
            if activation.key == key:
                if not activation.recursive:
                    raise NeedsFunction(activation)
                return self._recur(activation, env)
        if len(active) >= _MAX_INLINED:
            raise Refusal(
                LIMIT,
                f"more than {_MAX_INLINED} functions are read into each other",
                help="decorate functions of their own with @relay.function",
            )
        activation = Activation(key)
        active.append(activation)
        try:
            try:
                return self._inlined(enter(dict(env)))
            except NeedsFunction as need:
                if need.activation is not activation:
                    raise
                return self._recursive(activation, name, node, env, enter)
        finally:
            active.remove(activation)

    def _inlined(self, tree: Tree) -> Value:
        if isinstance(tree, Exit):
            return tree.value
        if isinstance(tree, Fall):
            return Static(None)
        return self.value_of(tree)

    def value_of(self, tree: Tree) -> Value:
        """The result of a body that ends in several ways."""
        kind = returned_type(tree)
        if any(isinstance(end, Never) for end in leaves(tree)):
            raise Pending
        if not leaf_types(kind):
            return unpack(_core.Tuple([]), kind)
        out = finished(
            tree, packed_type(kind), lambda end: pack(flatten(returned_value(end), kind))
        )
        return unpack(out, kind)

    def _recur(self, activation: Activation, env: Env) -> Value:
        for name, kind in activation.kinds.items():
            try:
                joined = opened(join(kind, widen(type_of(env[name]))))
            except Mismatch:
                raise Refusal(
                    VALUE,
                    f"the recursive call gives '{name}' another type",
                    expected=str(kind),
                    found=describe(env[name]),
                ) from None
            if joined != kind:
                activation.kinds[name] = joined
                activation.changed = True
        if activation.returned is None or activation.changed:
            raise Pending
        args = leaves_of(env, activation.kinds)
        return unpack(_core.Call(activation.var, args), activation.returned)

    def _recursive(
        self,
        activation: Activation,
        name: str,
        node: ast.AST,
        env: Env,
        enter: Callable[[Env], Tree],
    ) -> Value:
        activation.recursive = True
        activation.kinds = {k: opened(widen(type_of(value))) for k, value in env.items()}
        with self.frozen(scope.read([node])) as lets:
            partial = self.program.partial
            for _ in range(_MAX_ROUNDS):
                activation.changed, self.program.partial = False, partial
                kinds = activation.kinds
                params = parameters(kinds)
                tree = enter(bound(kinds, params, [env]))
                returned = None if activation.changed else widen(returned_type(tree))
                if not activation.changed and returned == activation.returned:
                    break
                activation.returned = returned
                if returned is not None:
                    types_ = [v.type_annotation for v in params]
                    activation.var = _core.Var(name, _core.FuncType(types_, packed_type(returned)))
            else:
                raise Refusal(RECURSION, f"the types of {name} do not settle")
        if any(isinstance(end, Never) for end in leaves(tree)):
            raise Pending
        result = packed_type(returned)
        body = finished(tree, result, lambda end: pack(flatten(returned_value(end), returned)))
        start = _core.Call(activation.var, leaves_of(env, kinds))
        out = _core.Let(activation.var, _core.Function(params, body, result), start)
        for v, value in reversed(lets):
            out = _core.Let(v, value, out)
        return unpack(out, returned)

    # ---- What is not known yet

    def attempted(self, way: Callable[[], Value]) -> Value | None:
        """A value; None where it needs the result of a recursive call."""
        try:
            return way()
        except Pending:
            return None

    def only_known(self, ways: list[Value | None]) -> Value:
        """Of two values the one that is there, while the type of the other is not known.

        What reads it is read again when the type is known.
        """
        for way in ways:
            if way is not None:
                self.program.partial += 1
                return way
        raise Pending

    def builtin_len(self, value: Value) -> Value:
        if isinstance(value, (Tuple, List)):
            return Static(len(value.items))
        if isinstance(value, Tensor) and value.shape:
            return size_value(value, 0)
        if isinstance(value, Chain):
            length = call("cast", prelude.length(value.expr), dtype="int64")
            return Tensor(length, True, natural=True)
        if isinstance(value, Static) and hasattr(value.obj, "__len__"):
            return Static(len(value.obj))
        raise Refusal(VALUE, "this has no length", found=describe(value))


def operand(value: Value) -> object:
    """A value as Relay's own functions take it."""
    if isinstance(value, Static):
        return value.obj
    if isinstance(value, Size):
        return value.dim
    if isinstance(value, (Tuple, List)):
        items = [operand(item) for item in value.items]
        return items if isinstance(value, List) else tuple(items)
    if isinstance(value, (Tensor, Chain, Data)):
        return value.expr
    raise Refusal(CALL, "an operator takes tensors and constants", found=describe(value))


def returned_value(end: Tree) -> Value:
    return end.value if isinstance(end, Exit) else Static(None)


def returned_type(tree: Tree) -> Type:
    """The type of what a body returns on its ways."""
    kinds = []
    for end in leaves(tree):
        if isinstance(end, (Exit, Fall)):
            value = returned_value(end)
            if isinstance(value, Clash):
                raise Refusal(value.code, value.message, help=value.help)
            kinds.append(type_of(value))
    if not kinds:
        raise Pending
    try:
        return result_type(kinds)
    except Mismatch:
        shown = list(dict.fromkeys(str(kind) for kind in kinds))
        raise Refusal(
            VALUE,
            "the function returns values of different types",
            expected=shown[0],
            found=shown[1] if len(shown) > 1 else shown[0],
            help="return one dtype and rank on every way, with astype or reshape",
        ) from None


def bind(
    node: ast.FunctionDef | ast.Lambda,
    defaults: dict[str, Value],
    args: list[Value],
    named: dict[str, Value],
) -> Env:
    """The parameters of a function by name, as Python binds them."""
    spec = node.args
    name = getattr(node, "name", "lambda")
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    names = [*positional, *(a.arg for a in spec.kwonlyargs)]
    env: Env = dict(zip(positional, args, strict=False))
    extra = args[len(positional) :]
    if spec.vararg is not None:
        env[spec.vararg.arg] = Tuple(tuple(extra))
    elif extra:
        raise Refusal(CALL, f"{name}() takes {len(positional)} arguments, not {len(args)}")
    rest: dict[str, Value] = {}
    for key, value in named.items():
        if key in env:
            raise Refusal(CALL, f"{name}() gets '{key}' twice")
        (env if key in names else rest)[key] = value
    if spec.kwarg is not None:
        env[spec.kwarg.arg] = Tuple(tuple(rest.values()), Form("dict", dict, tuple(rest)))
    elif rest:
        raise Refusal(CALL, f"{name}() takes no '{next(iter(rest))}'")
    for key in names:
        if key not in env:
            if key not in defaults:
                raise Refusal(CALL, f"{name}() needs '{key}'")
            env[key] = defaults[key]
    return env


# ---- Functions of Python -------------------------------------------------------------------------


def _index_value(value: Value) -> Value:
    """A bound of a range, in the dtype that loops count in."""
    if isinstance(value, Tensor):
        if value.shape or kind_of(value.dtype) != "i":
            raise Refusal(VALUE, "range takes integers", found=describe(value))
        return Tensor(cast(value, "int64").expr, True)
    if not is_number(value) or (isinstance(value, Static) and not isinstance(value.obj, int)):
        raise Refusal(VALUE, "range takes integers", found=describe(value))
    return value


def _range(reader, *bounds: Value) -> Value:
    if not 1 <= len(bounds) <= 3:
        raise Refusal(CALL, "range takes one to three numbers")
    start, stop = (Static(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = known(bounds[2], "the step of a range") if len(bounds) == 3 else 1
    if not isinstance(step, int) or step == 0:
        raise Refusal(VALUE, "the step of a range is an integer, not 0")
    return Static(reader.range_of(Counter(_index_value(start), _index_value(stop), step)))


def _enumerate(reader, values: Value, start: Value | None = None) -> Value:
    inner = reader.iteration(values)
    first = Static(0) if start is None else start
    known_items = None
    if inner.known is not None and isinstance(first, Static):
        known_items = [
            lambda i=i, item=item: Tuple((Static(first.obj + i), item()))
            for i, item in enumerate(inner.known)
        ]
    return Static(
        Iteration(
            [Counter(first, None), *inner.sources],
            lambda found: Tuple((found[0], inner.value(found[1:]))),
            known_items,
            inner.unrolled,
        )
    )


def _zip(reader, *values: Value, strict: Value | None = None) -> Value:
    parts = [reader.iteration(value) for value in values]
    if strict is not None and known(strict, "strict"):
        counts = {None if part.known is None else len(part.known) for part in parts}
        if counts == {None} or len(counts) > 1:
            raise Refusal(
                VALUE,
                "zip with strict=True needs equal known lengths",
                found=", ".join("open" if n is None else str(n) for n in sorted(counts, key=str)),
            )
    unrolled = any(part.unrolled for part in parts)
    known_items = None
    if all(part.known is not None for part in parts):
        rows = zip(*(part.known for part in parts), strict=False)
        known_items = [lambda row=row: Tuple(tuple(item() for item in row)) for row in rows]
    elif unrolled:
        raise Refusal(
            VALUE,
            "zip of a list of known length and one of open length",
            help="use two lists of known length, or two of open length",
        )

    def value(found: list[Value]) -> Value:
        items, at = [], 0
        for part in parts:
            items.append(part.value(found[at : at + len(part.sources)]))
            at += len(part.sources)
        return Tuple(tuple(items))

    sources = [source for part in parts for source in part.sources]
    return Static(Iteration(sources, value, known_items, unrolled))


def _reversed(reader, value: Value) -> Value:
    if isinstance(value, Chain):
        return dataclasses.replace(value, backward=not value.backward)
    inner = reader.iteration(value)
    if inner.known is not None:
        items = list(reversed(inner.known))
        return Static(Iteration([], inner.value, items, unrolled=True))
    (counter,) = inner.sources
    if counter.step != 1:
        raise Refusal(UNSUPPORTED, "reversed of a range with a step", help="range(n - 1, -1, -1)")
    last = apply("subtract", counter.stop, Static(1))
    before = apply("subtract", counter.start, Static(1))
    return Static(Iteration([Counter(last, before, -1, counter.over)], inner.value))


def _fold(name: str, python: Callable) -> Callable:
    def folded(reader, *values: Value) -> Value:
        if len(values) == 1:
            if isinstance(values[0], Tensor):
                return numpy_functions.METHODS[name](values[0])
            values = tuple(reader.elements(values[0], name))
        if not values:
            raise Refusal(VALUE, f"{name}() of nothing")
        if all(isinstance(v, Static) for v in values):
            return reader._python(lambda: python([v.obj for v in values]))
        out = values[0]
        for value in values[1:]:
            if any(isinstance(v, Tensor) and v.shape for v in (out, value)):
                raise Refusal(
                    VALUE,
                    f"{name}() compares numbers",
                    help=f"use np.{name}imum element by element",
                )
            out = apply(f"{name}imum", out, value)
        return out

    return folded


def _sum(reader, values: Value, start: Value | None = None) -> Value:
    total = Static(0) if start is None else start
    for item in reader.elements(values, "sum"):
        total = reader.binary(ast.Add(), total, item)
    return total


def _any_all(is_any: bool) -> Callable:
    def found(reader, values: Value) -> Value:
        if isinstance(values, Tensor):
            return numpy_functions.METHODS["any" if is_any else "all"](values)
        out: Value = Static(not is_any)
        for item in reader.elements(values, "any" if is_any else "all"):
            test = reader.truth_of(item)
            if isinstance(test, bool):
                if test == is_any:
                    return Static(is_any)
                continue
            both = "logical_or" if is_any else "logical_and"
            out = Tensor(test if isinstance(out, Static) else call(both, out.expr, test), True)
        return out

    return found


def _number(dtype: str, python: type) -> Callable:
    def number(reader, value: Value) -> Value:
        if isinstance(value, Static):
            return reader._python(lambda: python(value.obj))
        if dtype == "bool":
            test = reader.truth_of(value)
            return Static(test) if isinstance(test, bool) else Tensor(test, True)
        if not is_number(value):
            raise Refusal(VALUE, f"{python.__name__}() takes a number", found=describe(value))
        if isinstance(value, Size):
            return value if dtype == "int64" else Tensor(cast(value, dtype).expr, True)
        expr = value.expr
        if any(size != 1 for size in value.shape):
            raise Refusal(VALUE, f"{python.__name__}() takes one number", found=describe(value))
        if value.shape:
            expr = call("reshape", expr, newshape=[])
        return Tensor(cast(Tensor(expr), dtype).expr, True)

    return number


def _isinstance(reader, value: Value, classes: Value) -> Value:
    wanted = known(classes, "a class")
    if isinstance(value, Static):
        return Static(isinstance(value.obj, wanted))
    if isinstance(value, Tuple) and value.form is not None:
        return Static(issubclass(value.form.cls, wanted))
    of = {Tensor: np.ndarray, Tuple: tuple, List: list, Chain: list}.get(type(value))
    if of is None:
        raise Refusal(UNSUPPORTED, "isinstance of this value", help="use match")
    return Static(issubclass(of, wanted))


def _round(reader, value: Value) -> Value:
    if isinstance(value, Static):
        return reader._python(lambda: round(value.obj))
    return Tensor(cast(apply("rint", value), "int64").expr, True)


def _dict(reader, **named: Value) -> Value:
    return Tuple(tuple(named.values()), Form("dict", dict, tuple(named)))


def _replace(reader, base: Value, **named: Value) -> Value:
    if not isinstance(base, Tuple) or base.form is None or base.form.kind != "dataclass":
        raise Refusal(VALUE, "replace takes a data class", found=describe(base))
    unknown = [name for name in named if name not in base.form.names]
    if unknown:
        raise Refusal(CALL, f"{base.form.cls.__name__} has no field '{unknown[0]}'")
    pairs = zip(base.form.names, base.items, strict=True)
    return Tuple(tuple(named.get(name, item) for name, item in pairs), base.form)


_NOTHING = Tuple(())

BUILTINS = {
    id(builtins.abs): lambda reader, x: apply("absolute", x),
    id(builtins.all): _any_all(False),
    id(builtins.any): _any_all(True),
    id(builtins.bool): _number("bool", bool),
    id(builtins.dict): _dict,
    id(builtins.enumerate): _enumerate,
    id(builtins.float): _number("float64", float),
    id(builtins.int): _number("int64", int),
    id(builtins.isinstance): _isinstance,
    id(builtins.len): lambda reader, x: reader.builtin_len(x),
    id(builtins.list): lambda reader, x=_NOTHING: (
        x if isinstance(x, Chain) else List(tuple(reader.elements(x, "list")))
    ),
    id(builtins.max): _fold("max", max),
    id(builtins.min): _fold("min", min),
    id(builtins.pow): lambda reader, x, y: reader.binary(ast.Pow(), x, y),
    id(builtins.range): _range,
    id(builtins.reversed): _reversed,
    id(builtins.round): _round,
    id(builtins.sum): _sum,
    id(builtins.tuple): lambda reader, x=_NOTHING: Tuple(tuple(reader.elements(x, "tuple"))),
    id(builtins.zip): _zip,
    id(dataclasses.replace): _replace,
}

# math's functions on what is known only at run time, by NumPy's names.
_MATH = {
    "acos": "arccos", "asin": "arcsin", "atan": "arctan", "ceil": "ceil", "cos": "cos",
    "cosh": "cosh", "exp": "exp", "fabs": "fabs", "floor": "floor", "log": "log",
    "log10": "log10", "log2": "log2", "pow": "power", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip

_INSTEAD = {
    "print": "compiled code prints nothing; return the value",
    "input": "compiled code reads nothing; pass the value",
    "sorted": "np.sort sorts a tensor",
    "map": "write a list comprehension",
    "filter": "write a list comprehension with if",
    "open": "read the file outside, and pass what is in it",
}
