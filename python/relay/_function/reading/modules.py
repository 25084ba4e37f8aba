"""Calls of Relay functions from Python functions: of modules, of built programs, of single functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from relay import _core, analysis
from relay._build import Executable
from relay._function import prelude
from relay._function.operations.arithmetic import apply, describe, size_or_number
from relay._function.operations.indexing import size_along
from relay._function.syntax.errors import ANNOTATION, CALL, VALUE, Refusal
from relay._function.values import (
    ChainType,
    List,
    Tensor,
    TensorType,
    Tuple,
    TupleType,
    Type,
    Value,
    flatten,
    sizes_in,
    unflatten,
)
from relay._ops.call import call
from relay._plural import counted
from relay.transform import InferType

# The kind of type parameters that are sizes.
_SIZE = _core.TypeVar("n").kind


@dataclass(frozen=True, eq=False)
class ModuleFunction:
    """A function of a module; its callees are found in the module."""

    module: _core.IRModule
    name: str


def function_of_module(mod: _core.IRModule, name: object) -> ModuleFunction:
    """Returns the function `mod[name]`."""
    if name not in mod.functions:
        raise Refusal(
            CALL,
            f"the module has no function {name!r}",
            expected=", ".join(map(repr, mod.functions)),
        )
    return ModuleFunction(mod, str(name))


def function_of_program(program: Executable, name: str = "main") -> ModuleFunction:
    """Returns a function of the module from which a program was built."""
    source = None if program._source is None else program._source()
    if source is None:
        raise Refusal(
            CALL,
            "a loaded program is machine code, and cannot be a part of another"
            if program._source is None
            else "the module that this program was built from is gone: its weights are not kept twice",
            found=repr(program),
            help='call the module that it was built from, mod["main"](x), or call the program outside '
            "and give its result as an argument",
        )
    if name in program.function_names and program.donations(name):
        raise Refusal(
            CALL,
            "a call of this program changes an array that it is given",
            found=", ".join(d.input for d in program.donations(name)),
            help="build it without donate=, or donate in the function that calls it",
        )
    return function_of_module(source, name)


def function_alone(function: _core.Function) -> ModuleFunction:
    """Returns a function as @main of a new module."""
    called = analysis.global_names(function)
    if called:
        raise Refusal(
            CALL,
            f"this function calls @{called[0]} of its module, which is not known here",
            help='name the module: mod["main"](x)',
        )
    return ModuleFunction(_core.IRModule.from_expr(function), "main")


def reachable(mod: _core.IRModule, name: str) -> list[str]:
    """Returns the names of a function and of all functions that it reaches by calls."""
    found: dict[str, None] = {}
    todo = [name]
    while todo:
        now = todo.pop()
        if now not in found:
            found[now] = None
            todo += analysis.global_names(mod.functions[now])
    return list(found)


@dataclass
class _Imported:
    """A module, and the names of its functions in the program."""

    module: _core.IRModule
    typed: _core.IRModule
    names: dict[str, str] = field(default_factory=dict)
    known: dict[str, tuple[_core.GlobalVar, bool]] = field(default_factory=dict)


class ImportedFunctions:
    """The functions of other modules in a program, each once, under fresh names."""

    def __init__(self) -> None:
        # By address: the modules are kept alive here.
        self._modules: dict[int, _Imported] = {}

    def of(self, program: Any, function: ModuleFunction) -> tuple[_core.GlobalVar, bool]:
        """Returns the function as one of the program, and whether its calls have effects."""
        mod = self._modules.get(id(function.module))
        if mod is None:
            typed = InferType()(function.module)
            mod = self._modules[id(function.module)] = _Imported(function.module, typed)
            _add_types(program, typed.type_definitions)
        if function.name not in mod.known:
            mod.known[function.name] = self._added(program, mod, function.name)
        return mod.known[function.name]

    def _added(self, program: Any, mod: _Imported, of: str) -> tuple[_core.GlobalVar, bool]:
        new = [name for name in reachable(mod.typed, of) if name not in mod.names]
        for name in new:
            but = {*mod.typed.functions, *mod.names.values()}
            mod.names[name] = program.fresh("imported" if name == "main" else name, but)
        renamed = mod.typed.replace_global_vars(mod.names)
        program.derived |= {mod.names[n]: renamed.functions[mod.names[n]] for n in new}
        name = mod.names[of]
        kind = renamed.functions[name].checked_type
        return _core.GlobalVar(name, kind), _core.has_effects(mod.typed, of)


def _add_types(program: Any, definitions: Iterable) -> None:
    """Adds data types to the program, which has those of the prelude."""
    known = {str(t.header): t for t in prelude.module().type_definitions}
    added = {str(t.header): t for t in program.derived_types}
    for definition in definitions:
        name = str(definition.header)
        before = known.get(name) or added.get(name)
        if before is None:
            program.derived_types.append(definition)
        elif str(before) != str(definition):
            raise Refusal(VALUE, f"two modules define the data type {name}, each in its own way")
        elif name in known:
            prelude.use()


def kind_of_core(kind: _core.Type) -> Type | None:
    """Returns the type that Python functions use for a type of Relay; None where there is none."""
    if isinstance(kind, _core.TensorType):
        return TensorType(kind.dtype, sizes_in(kind))
    if isinstance(kind, _core.TupleType):
        parts = [kind_of_core(field) for field in kind.fields]
        return None if None in parts else TupleType(tuple(parts))
    if isinstance(kind, _core.TypeCall) and len(kind.args) == 1:
        item = kind_of_core(kind.args[0])
        if item is not None and _core.structural_equal(prelude.list_of(kind.args[0]), kind):
            return ChainType(item)
    return None


class _Arguments:
    """The arguments of one call, each converted to the type of its parameter.

    The first argument with a named size defines it. Sizes that the types do not prove equal are compared
    at run time, before the call.
    """

    def __init__(self, reader: Any, name: str, type_params: list) -> None:
        self._reader = reader
        self._function = name
        self._names = {*type_params}
        self._sizes: dict[_core.TypeVar, object] = {}
        # Names for `?`, which a function around the call has as sizes, each with the outer value.
        self._opened: dict[_core.TypeVar, Tensor] = {}
        self._around: dict[int, tuple[_core.Var, _core.Expr]] = {}

    def learn(self, pairs: list[tuple[Value, Type]]) -> None:
        """Finds the named sizes in tensors, those in tuples included."""
        tensors = list(_tensors_in(pairs))
        count = Counter(s for _, kind in tensors for s in kind.shape if s in self._names)
        for value, kind in tensors:
            for wanted, given in zip(kind.shape, value.shape, strict=False):
                if wanted in self._names and given is not None:
                    self._sizes.setdefault(wanted, given)
        for value, kind in tensors:
            for axis, wanted in enumerate(kind.shape[: len(value.shape)]):
                if wanted in self._names and wanted not in self._sizes and count[wanted] > 1:
                    self._open(value, axis, wanted)

    def _open(self, value: Tensor, axis: int, wanted: _core.TypeVar) -> None:
        """Names a `?` that several arguments share."""
        name = _core.TypeVar(wanted.name_hint)
        before, outside = self._around.get(id(value), (None, value.expr))
        sizes = list(sizes_in(outside.checked_type if before is None else before.type_annotation))
        sizes[axis] = name
        var = _core.Var(wanted.name_hint, _core.TensorType(sizes, value.dtype))
        self._around[id(value)] = var, outside
        self._opened[name] = Tensor(size_along(None, outside, axis))
        self._sizes[wanted] = name

    def expr(self, value: Value, kind: Type, name: str) -> _core.Expr:
        """Returns the value converted to the type of the parameter."""
        if isinstance(kind, TupleType):
            if not isinstance(value, (Tuple, List)) or len(value.items) != len(kind.items):
                raise Refusal(
                    VALUE, f"'{name}' is a tuple", expected=str(kind), found=describe(value)
                )
            parts = zip(value.items, kind.items, strict=True)
            return _core.Tuple([self.expr(part, of, name) for part, of in parts])
        self._reader.fitting(value, kind, name)
        if not isinstance(kind, TensorType) or not isinstance(value, Tensor) or value.weak:
            (leaf,) = flatten(value, kind)
            return leaf
        wanted = [self._sizes.get(s, s) if s in self._names else s for s in kind.shape]
        pairs = zip(wanted, value.shape, strict=True)
        if any(isinstance(w, int) and isinstance(g, int) and w != g for w, g in pairs):
            raise Refusal(
                ANNOTATION,
                f"'{name}' of @{self._function} is of other sizes",
                expected=str(TensorType(kind.dtype, tuple(wanted))),
                found=describe(value),
            )
        return self._narrowed(value, wanted, name)

    def _narrowed(self, value: Tensor, wanted: list, name: str) -> _core.Expr:
        """Returns the tensor with the wanted sizes, which are compared at run time."""
        expr, _ = self._around.get(id(value), (value.expr, None))
        have = sizes_in(expr.checked_type)
        known = {*self._sizes.values()}
        # The type checker compares names of the function itself, and sizes computed from them.
        axes = [
            axis
            for axis, (size, of) in enumerate(zip(wanted, have, strict=True))
            if size is not None and size != of and (isinstance(size, int) or size in known)
        ]
        for axis in axes:
            given = Tensor(size_along(value.shape[axis], value.expr, axis))
            right = self._opened.get(wanted[axis]) or size_or_number(wanted[axis])
            self._reader.ensure(
                apply("equal", given, right),
                f"axis {axis} of '{name}' of @{self._function} is of size ",
                given,
                ", not ",
                right,
            )
        if not axes:
            return expr
        # 0 in newshape keeps the size.
        shape = [wanted[axis] if axis in axes else 0 for axis in range(len(have))]
        return call("reshape", expr, newshape=shape)

    def call(self, var: _core.GlobalVar, exprs: list[_core.Expr]) -> _core.Expr:
        """Returns the call."""
        made = _core.Call(var, exprs)
        if not self._around:
            return made
        params, given = zip(*self._around.values(), strict=True)
        return _core.Call(_core.Function(params, made, None, [*self._opened]), list(given))


def _tensors_in(pairs: Iterable[tuple[Value, Type]]) -> Iterator[tuple[Tensor, TensorType]]:
    """Yields the tensors among values, those in tuples included, each with the type of its parameter."""
    todo = list(pairs)[::-1]
    while todo:
        value, kind = todo.pop()
        if isinstance(kind, TupleType) and isinstance(value, (Tuple, List)):
            todo += list(zip(value.items, kind.items, strict=False))[::-1]
        elif isinstance(kind, TensorType) and isinstance(value, Tensor):
            yield value, kind


def result(expr: _core.Expr) -> Value:
    """Returns the value of a call."""
    core = expr.checked_type
    if isinstance(core, _core.TupleType):
        fields = range(len(core.fields))
        return Tuple(tuple(result(_core.TupleGetItem(expr, i)) for i in fields))
    kind = kind_of_core(core)
    if kind is None:
        raise Refusal(
            CALL, "the result is of a type that a function in Python has not", found=str(core)
        )
    return unflatten(kind, iter([expr]))


def call_of(
    reader: Any, function: ModuleFunction, args: list[Value], named: dict[str, Value]
) -> Value:
    """Returns the value of a call of a module's function."""
    var, has_effects = reader.program.imported.of(reader.program, function)
    names = [p.name_hint for p in function.module.functions[function.name].params]
    if len(args) > len(names):
        takes = counted(len(names), "argument")
        raise Refusal(CALL, f"@{function.name} takes {takes}, not {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            raise Refusal(
                CALL, f"@{function.name} has no parameter '{name}'", expected=", ".join(names)
            )
        if name in given:
            raise Refusal(CALL, f"@{function.name} gets '{name}' twice")
        given[name] = value
    for name in names:
        if name not in given:
            raise Refusal(CALL, f"@{function.name} needs '{name}'")
    made = _checked_call(reader, function, var, [(name, given[name]) for name in names])
    if has_effects:
        made = reader.effect(made)
    return result(made)


def _checked_call(
    reader: Any,
    function: ModuleFunction,
    var: _core.GlobalVar,
    given: list[tuple[str, Value]],
) -> _core.Expr:
    """Returns the call of a function whose parameters have known ranks and dtypes."""
    signature = var.checked_type
    if any(p.kind != _SIZE for p in signature.type_params):
        raise Refusal(
            CALL,
            f"@{function.name} is for values of any rank or dtype",
            found=str(signature),
            help="call a function of that module whose parameters have types",
        )
    kinds = []
    for (name, _), core in zip(given, signature.arg_types, strict=True):
        kind = kind_of_core(core)
        if kind is None:
            raise Refusal(
                CALL,
                f"'{name}' of @{function.name} is of a type that a function in Python has not",
                found=str(core),
            )
        kinds.append(kind)
    arguments = _Arguments(reader, function.name, signature.type_params)
    arguments.learn([(value, kind) for (_, value), kind in zip(given, kinds, strict=True)])
    pairs = zip(given, kinds, strict=True)
    return arguments.call(var, [arguments.expr(v, kind, name) for (name, v), kind in pairs])
