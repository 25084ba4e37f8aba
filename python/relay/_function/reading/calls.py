"""Calls of inner functions, of other Relay functions, of operators, of NumPy and of Python."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import _core
from relay._build import Executable
from relay._function import prelude
from relay._function.bound import BoundMethod
from relay._function.numpy import catalogue as numpy_catalogue
from relay._function.numpy import registry as numpy_registry
from relay._function.operations.arithmetic import describe, filled
from relay._function.operations.arrays import known, size_value, tensor_of
from relay._function.operations.ranges import Range
from relay._function.python import functions as python_functions
from relay._function.python import methods as python_methods
from relay._function.python.math import call_math
from relay._function.reading import modules
from relay._function.reading.effects import bound_around, effects_of, put
from relay._function.reading.memory import Activation, memory_of
from relay._function.reading.outcome import (
    Env,
    Exit,
    Fall,
    Go,
    Never,
    Tree,
    bound,
    finished,
    has_effects,
    joined_type,
    leaves,
    leaves_of,
    parameters,
    result_type,
)
from relay._function.syntax import scope
from relay._function.syntax.errors import (
    CALL,
    LIMIT,
    RECURSION,
    VALUE,
    Pending,
    Refusal,
)
from relay._function.values import (
    Chain,
    Clash,
    ClashType,
    Closure,
    Data,
    Derivative,
    Form,
    Function,
    List,
    Mismatch,
    PythonFunction,
    Size,
    Static,
    Tensor,
    TensorType,
    Tuple,
    TupleType,
    Type,
    Value,
    as_expr,
    fits_weakly,
    flatten,
    join,
    leaf_types,
    lift,
    opened,
    pack,
    packed_type,
    placed,
    type_of,
    unflatten,
    unpack,
    widen,
)
from relay._ops.call import call
from relay._ops.registered_op import RegisteredOp
from relay._plural import counted
from relay._prim_func import PrimFunc

# Python functions that are not compiled, and what to write instead.
_INSTEAD = {
    "input": "compiled code reads nothing; pass the value",
    "map": "write a list comprehension",
    "numpy.frompyfunc": "call the function, or relay.vmap of it",
    "filter": "write a list comprehension with if",
    "numpy.add.at": 'relay.scatter_nd(x, i[None], v, mode="add") gives what np.add.at(x, i, v) makes of x',
    "open": "read the file outside, and pass what is in it",
}

# The deepest nesting of functions that are inlined into each other.
_MAX_INLINED = 100
_MAX_ROUNDS = 8


@dataclass(frozen=True, eq=False, repr=False)
class Bound(Value):
    """A method bound to its object; `of_class`: the object's class defines it."""

    function: Any
    base: Value
    of_class: bool = True
    name: str = ""

    def __repr__(self) -> str:
        return (
            f"the method {self.name or getattr(self.function, '__name__', '')}, which is not called"
        )


class NeedsFunction(Exception):
    """An inlined function turns out to be recursive."""

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.activation = activation


class Calls:
    def on_Call(self, node: ast.Call) -> Value:
        changed = self.changing_call(node)
        if changed is not None:
            return changed
        function = self.expr(node.func)
        return self.call(function, *self.arguments(node))

    def arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        """Returns the positional and the keyword arguments of a call."""
        args = self._display(node.args)
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.expr(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, Tuple) and value.is_dict:
                named.update(zip(value.form.names, value.items, strict=True))
            else:
                raise Refusal(VALUE, "** takes a dictionary", found=describe(value))
        return args, named

    def call(self, function: Value, args: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Closure):
            return self.call_closure(function, args, named)
        if isinstance(function, Derivative):
            return self.call_derivative(function, args, named)
        if isinstance(function, Function):
            return self.call_function(function, args, named)
        if isinstance(function, Bound):
            if not function.of_class:
                given = [function.base, *args]
                return self._apply(function.function, function.name, given, named, 1)
            return self._call_known(function.function, [function.base, *args], named)
        if isinstance(function, Tuple) and function.form is not None:
            method = vars(function.form.cls).get("__call__")
            if method is not None:
                return self._call_known(method, [function, *args], named)
        if isinstance(function, Static):
            return self._call_known(function.obj, args, named)
        raise Refusal(CALL, "this is not a function", found=describe(function))

    def _call_known(self, obj: Any, args: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(obj, BoundMethod):
            return self._call_known(obj.__func__, [lift(obj.__self__), *args], named)
        if isinstance(obj, PythonFunction):
            if obj.derivative is not None:
                return self.call_derivative(obj.derivative, args, named)
            return self.program.call(self, obj, args, named)
        if (found := numpy_registry.FUNCTIONS.get(id(obj))) is not None:
            reads = id(obj) in numpy_registry.READERS
            given = [self, *args] if reads else args
            return self._apply(found, numpy_name(obj), given, named, len(given) - len(args))
        if id(obj) in python_functions.BUILTINS:
            function = python_functions.BUILTINS[id(obj)]
            return self._apply(function, obj.__name__, [self, *args], named, 1)
        if getattr(obj, "__module__", None) == "math":
            return call_math(self, obj, args, named)
        if isinstance(getattr(obj, "__self__", None), str):
            method = python_methods.reading(Static(""), obj.__name__)
            if method is not None:
                given = [self, Static(obj.__self__), *args]
                return self._apply(method, obj.__name__, given, named, 2)
            help = numpy_catalogue.instead_of("str", obj.__name__)
            raise Refusal(CALL, f"str.{obj.__name__} is not part of relay.function", help=help)
        if isinstance(obj, type) and obj in numpy_catalogue.DESCRIBED and args:
            return Static(self._python(lambda: obj(known(args[0], "a dtype"))).obj)
        if isinstance(obj, type):
            return self._construct(obj, args, named)
        if isinstance(obj, RegisteredOp):
            return self._registered(obj, args, named)
        if (function := called_function(obj)) is not None:
            return modules.call_of(self, function, args, named)
        if isinstance(obj, _core.Expr):
            return self.lifted(obj(*(as_expr(a) for a in args)))
        if isinstance(obj, PrimFunc) or (
            isinstance(obj, types.FunctionType) and str(obj.__module__).partition(".")[0] == "relay"
        ):
            return self._operator(obj, args, named)
        name = getattr(obj, "__qualname__", None) or repr(obj)
        module = getattr(obj, "__module__", "") or ""
        if module.partition(".")[0] == "numpy":
            space, name = numpy_catalogue.NAMES.get(id(obj), ("numpy", name))
            drawn = module.startswith("numpy.random") or obj is np.random.default_rng
            help = "random numbers come from a key: relay.random.uniform(key, shape), which is an argument"
            raise Refusal(
                CALL,
                f"numpy's {name} is not part of relay.function",
                help=help if drawn else numpy_catalogue.instead_of(space, name),
            )
        if isinstance(of := getattr(obj, "__self__", None), np.ufunc):
            found = numpy_catalogue.ufunc_method(of, obj.__name__)
            if found is not None:
                name = f"np.{of.__name__}.{obj.__name__}"
                return self._apply(found, name, args, named, 0)
            name = f"numpy.{of.__name__}.{obj.__name__}"
        help = _INSTEAD.get(name, "decorate it with @relay.function, or call it outside")
        raise Refusal(CALL, f"{name} is not a function that can be compiled", help=help)

    def _apply(
        self, function: Callable, name: str, args: list, named: dict[str, Value], before: int
    ) -> Any:
        """Calls the composition of a NumPy function, a Python function or a method with this name.

        before: the number of leading arguments that are not the call's: the reader, a method's object.
        """
        try:
            _signature(function).bind(*args, **named)
        except TypeError:
            raise _wrong_call(function, name, args, named, before) from None
        try:
            made = function(*args, **named)
        except _core.RelayError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            given = (*args[before:], *named.values())
            raise Refusal(
                CALL,
                f"{name} does not take these arguments here",
                found=", ".join(describe(v) for v in given if isinstance(v, Value)),
                help="docs/python_function.md has what is there",
            ) from error
        # A function that returns its argument may stand for a copy: the result is a separate object.
        if isinstance(made, Tensor) and any(made is arg for arg in args):
            return dataclasses.replace(made)
        return made

    def _operator(self, function: Callable, args: list[Value], named: dict[str, Value]) -> Value:
        """Calls a function of the package that makes an expression, such as that of an operator."""
        values = [operand(a) for a in args]
        try:
            made = function(*values, **{name: operand(a) for name, a in named.items()})
        except _core.RelayError:
            raise
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise Refusal(CALL, str(error)) from error
        return self.lifted(made)

    def _registered(self, op: Any, args: list[Value], named: dict[str, Value]) -> Value:
        """Calls a user's operator; numbers among its arguments take the dtype of the tensors."""
        try:
            given = op.__signature__.bind(*args, **named).arguments
        except TypeError as error:
            raise Refusal(CALL, f"{op.__name__}: {error}") from error
        tensors = [v for v in given.values() if isinstance(v, Tensor) and not v.weak]

        def tensor(value: Value) -> _core.Expr:
            kind = widen(type_of(value))
            if tensors and isinstance(kind, TensorType) and kind.weak:
                dtype = tensors[0].dtype
                if fits_weakly(kind.dtype, dtype):
                    return flatten(value, TensorType(dtype, ()))[0]
            try:
                return as_expr(value)
            except Mismatch:
                message = "an operator takes tensors and constants"
                raise Refusal(CALL, message, found=describe(value)) from None

        operands = {n: tensor(given[n]) if n in op.arguments else operand(given[n]) for n in given}
        try:
            return self.lifted(op(**operands))
        except (TypeError, ValueError) as error:
            raise Refusal(CALL, f"{op.__name__}: {error}") from error

    def lifted(self, made: object) -> Value:
        """Returns the value of an operator's result."""
        if not isinstance(made, _core.Expr):
            return lift(made)
        kind = made.checked_type
        if isinstance(kind, _core.TensorType):
            return Tensor(made)
        if isinstance(kind, _core.TupleType):
            fields = range(len(kind.fields))
            return Tuple(tuple(self.lifted(_core.TupleGetItem(made, i)) for i in fields))
        raise Refusal(CALL, "the type of this call is not known", found=str(kind))

    def _construct(self, cls: type, args: list[Value], named: dict[str, Value]) -> Value:
        if issubclass(cls, np.generic):
            value = args[0] if args else Static(0)
            name = np.dtype(cls).name
            if isinstance(value, (List, Tuple)):
                value = tensor_of(value)
            if isinstance(value, Static):
                return Tensor(as_expr(value, name))
            return Tensor(filled(value, name))
        if hasattr(cls, "__relay_constructor__"):
            return self.make_data(cls, args, named)
        if cls is _core.RefValue:
            return self.new_reference(args, named)
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
            tree = reader.read_body(variables)
            reader.finished = len(self.program.changes)
            return tree

        key = (id(closure.node), id(frame))
        return self.activate(key, name, closure.node, env, enter, closure.defaults)

    def activate(
        self,
        key: object,
        name: str,
        node: ast.AST,
        env: Env,
        enter: Callable[[Env], Tree],
        defaults: Env | None = None,
    ) -> Value:
        """Inlines a function into its caller; a recursive function becomes a function of the program."""
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
        activation = Activation(key, name, memory_of(env.values()))
        active.append(activation)
        try:
            try:
                tree = enter(dict(env))
                return self._inlined(tree, activation, node, env, defaults or {})
            except NeedsFunction as need:
                if need.activation is not activation:
                    raise
                return self._recursive(activation, name, node, env, enter)
        finally:
            active.remove(activation)

    def _inlined(
        self, tree: Tree, activation: Activation, node: ast.AST, env: Env, defaults: Env
    ) -> Value:
        names = self.changed_parameters(activation, env)
        if isinstance(tree, (Exit, Fall)):
            put(self.env, effects_of(tree.env))
            value, after = returned_value(tree), {name: tree.env[name] for name in names}
        else:
            value, after = self._values_of(tree, names)
        if not names:
            return value
        return self.hand_back(activation, node, env, after, value, defaults)

    def _values_of(self, tree: Tree, names: list[str]) -> tuple[Value, Env]:
        """Returns the result of a body that ends on several paths, and the variables after it."""
        returned = returned_type(tree)
        if any(isinstance(end, Never) for end in leaves(tree)):
            raise Pending
        ends = [end for end in leaves(tree) if not isinstance(end, Go)]
        kinds = {n: joined_type([type_of(end.env[n]) for end in ends], n) for n in names}
        clashes = {n: k.clash for n, k in kinds.items() if isinstance(k, ClashType)}
        kinds = {n: k for n, k in kinds.items() if n not in clashes}
        kind = TupleType((returned, *kinds.values()))
        does = has_effects(tree)

        def whole(end: Tree) -> Value:
            return Tuple((returned_value(end), *(end.env[n] for n in kinds)))

        if not leaf_types(kind) and not does:
            out = _core.Tuple([])
        else:
            out = finished(tree, packed_type(kind), lambda end: pack(flatten(whole(end), kind)))
            out = self.effect(out) if does else out
        count = len(leaf_types(kind))
        exprs = [out] if count == 1 else [_core.TupleGetItem(out, i) for i in range(count)]
        source = iter(exprs)
        value = unflatten(returned, source, returned_roots(tree) or None)
        after = {
            n: placed(unflatten(k, source), [end.env[n] for end in ends], {}, ())
            for n, k in kinds.items()
        }
        return value, after | clashes

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
                activation.widened = True
        if activation.returned is None or activation.widened:
            raise Pending
        out = _core.Call(activation.var, leaves_of(env, activation.kinds))
        roots = frozenset().union(*(value.roots for value in env.values()))
        return unpack(
            self.effect(out) if activation.does else out,
            activation.returned,
            (roots or None) if activation.shares else None,
        )

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
        activation.changed.clear()
        whole = frozenset().union(*(value.roots for value in env.values()))
        with self.frozen(scope.read([node])) as lets:
            partial = self.program.partial
            for _ in range(_MAX_ROUNDS):
                activation.widened, self.program.partial = False, partial
                kinds = activation.kinds
                params = parameters(kinds)
                tree = enter(bound(kinds, params, [env]))
                returned = None if activation.widened else widen(returned_type(tree))
                found = returned, has_effects(tree), bool(returned_roots(tree) & whole)
                known = activation.returned, activation.does, activation.shares
                if not activation.widened and found == known:
                    break
                activation.returned, activation.does, activation.shares = found
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
        out = bound_around(tuple(lets), out)
        roots = (whole or None) if activation.shares else None
        return unpack(self.effect(out) if activation.does else out, returned, roots)

    # ---- What is not known yet

    def attempted(self, way: Callable[[], Value]) -> Value | None:
        """Returns a value; None where it needs the result of a recursive call."""
        try:
            return way()
        except Pending:
            return None

    def only_known(self, ways: list[Value | None]) -> Value:
        """Returns the available one of two values, while the type of the other is unknown.

        The function is read again when that type is known.
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
            return Tensor(length, True, range=Range(0))
        if isinstance(value, Static) and hasattr(value.obj, "__len__"):
            return Static(len(value.obj))
        raise Refusal(VALUE, "this has no length", found=describe(value))


def _signature(function: Callable) -> inspect.Signature:
    # A partial that holds a reader is not cached: the cache would keep the reader alive.
    bound = isinstance(function, functools.partial)
    return inspect.signature(function) if bound else _kept_signature(function)


@functools.lru_cache(maxsize=2048)
def _kept_signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


def numpy_name(obj: Any) -> str:
    """Returns the name of a NumPy function as programs write it."""
    module = getattr(obj, "__module__", None) or "numpy"
    within = module.partition(".")[2]
    public = within and not any(part.startswith("_") for part in within.split("."))
    return f"np.{within + '.' if public else ''}{obj.__name__}"


# Parameters of NumPy functions that are not supported, and what to write instead.
_NO_PARAMETER = {
    "out": "assign the result: y = ...",
    "where": "np.where chooses between two results, element by element",
    "order": "leave it out: the elements are in C order",
    "key": "sort or compare what the key gives",
    "dtype": "astype converts the result",
    "casting": "astype converts the result",
    "initial": "np.maximum, np.minimum or + take one more number in",
}


def _wrong_call(
    function: Callable, name: str, args: list, named: dict[str, Value], before: int
) -> Refusal:
    """Returns the error of a call whose arguments do not match the parameters."""
    parameters = list(_signature(function).parameters.values())[before:]
    takes = [str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters]
    known = {p.name for p in parameters}
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    unknown = [key for key in named if key not in known and not takes_any]
    shown = ", ".join(takes) or "nothing"
    if unknown:
        message = f"{name} does not take '{unknown[0]}' here"
        return Refusal(CALL, message, expected=shown, help=_NO_PARAMETER.get(unknown[0], ""))
    return Refusal(CALL, f"{name} takes other arguments", expected=shown,
                   found=str(len(args) - before + len(named)))  # fmt: skip


def called_function(obj: object) -> modules.ModuleFunction | None:
    """Returns the function of the language that the object calls; None for any other object."""
    if isinstance(obj, modules.ModuleFunction):
        return obj
    if isinstance(obj, Executable):
        return modules.function_of_program(obj)
    of = getattr(obj, "__self__", None)
    if isinstance(of, Executable) and getattr(obj, "__name__", "") == "run":
        raise Refusal(
            CALL,
            "a program's run is not a part of relay.function",
            help='call the function of the module that it was built from: mod["name"](x)',
        )
    if isinstance(obj, _core.GlobalVar):
        raise Refusal(
            CALL,
            f"@{obj.name_hint} is the name of a function, of a module that is not known here",
            help=f'name the module: mod["{obj.name_hint}"](x)',
        )
    if isinstance(obj, _core.Function):
        known = [p.type_annotation for p in obj.params]
        if all(kind is not None and modules.kind_of_core(kind) is not None for kind in known):
            return modules.function_alone(obj)
    return None


def operand(value: Value) -> object:
    """Returns a value as functions of the package take it."""
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


def returned_roots(tree: Tree) -> frozenset[int]:
    """Returns the memory that the result of a body may share."""
    ends = (end for end in leaves(tree) if isinstance(end, (Exit, Fall)))
    return frozenset().union(*(returned_value(end).roots for end in ends))


def returned_type(tree: Tree) -> Type:
    """Returns the joined type of the results of a body."""
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
        advice = "return one dtype and rank on every path, with astype or reshape"
        if "None" in shown:
            # A path without a value is the error, whatever the other paths return.
            shown = [next(kind for kind in shown if kind != "None"), "None"]
            advice = "return a value on every path, also where no case matches"
        raise Refusal(
            VALUE,
            "the function returns values of different types",
            expected=shown[0],
            found=shown[1] if len(shown) > 1 else shown[0],
            help=advice,
        ) from None


def bind(
    node: ast.FunctionDef | ast.Lambda,
    defaults: dict[str, Value],
    args: list[Value],
    named: dict[str, Value],
) -> Env:
    """Binds arguments to the parameters of a function by Python's rules."""
    spec = node.args
    name = getattr(node, "name", "lambda")
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    names = [*positional, *(a.arg for a in spec.kwonlyargs)]
    env: Env = dict(zip(positional, args, strict=False))
    extra = args[len(positional) :]
    if spec.vararg is not None:
        env[spec.vararg.arg] = Tuple(tuple(extra))
    elif extra:
        raise Refusal(
            CALL, f"{name}() takes {counted(len(positional), 'argument')}, not {len(args)}"
        )
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
