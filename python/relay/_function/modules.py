"""Functions of the language that a function in Python calls: of modules, of built programs, alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from relay import _core, analysis
from relay._build import Executable
from relay._function import prelude
from relay._function.arithmetic import describe
from relay._function.errors import CALL, VALUE, Refusal
from relay._function.values import (
    ChainType,
    List,
    TensorType,
    Tuple,
    TupleType,
    Type,
    Value,
    flatten,
    sizes_in,
    type_of,
    unflatten,
    widen,
)
from relay.transform import InferType


@dataclass(frozen=True, eq=False)
class ModuleFunction:
    """A function of a module, with the others that it calls."""

    module: _core.IRModule
    name: str


def function_of_module(mod: _core.IRModule, name: object) -> ModuleFunction:
    """The function that `mod[name]` is."""
    if name not in mod.functions:
        raise Refusal(
            CALL,
            f"the module has no function {name!r}",
            expected=", ".join(map(repr, mod.functions)),
        )
    return ModuleFunction(mod, str(name))


def function_of_program(program: Executable, name: str = "main") -> ModuleFunction:
    """The function of the module that a program was built from."""
    if program._source is None:
        raise Refusal(
            CALL,
            "a loaded program is machine code, and cannot be a part of another",
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
    return function_of_module(program._source(), name)


def function_alone(function: _core.Function) -> ModuleFunction:
    """A function as that of a module of its own."""
    called = analysis.global_names(function)
    if called:
        raise Refusal(
            CALL,
            f"this function calls @{called[0]} of its module, which is not known here",
            help='name the module: mod["main"](x)',
        )
    return ModuleFunction(_core.IRModule.from_expr(function), "main")


def reachable(mod: _core.IRModule, name: str) -> list[str]:
    """The names of a function and of those that it calls."""
    found: dict[str, None] = {}
    todo = [name]
    while todo:
        now = todo.pop()
        if now not in found:
            found[now] = None
            todo += analysis.global_names(mod.functions[now])
    return list(found)


class ImportedFunctions:
    """The part of a program that has functions of other modules, under names that are free."""

    def __init__(self) -> None:
        # The modules are kept: their addresses are keys.
        self._known: dict[tuple[int, str], tuple[_core.IRModule, _core.GlobalVar]] = {}

    def var_of(self, program: Any, function: ModuleFunction) -> _core.GlobalVar:
        """The function, as one of the program."""
        key = (id(function.module), function.name)
        if key not in self._known:
            self._known[key] = function.module, self._added(program, function)
        return self._known[key][1]

    def _added(self, program: Any, function: ModuleFunction) -> _core.GlobalVar:
        mod = InferType()(function.module)
        names = reachable(mod, function.name)
        taken = set(mod.functions)
        new: dict[str, str] = {}
        for name in names:
            new[name] = program.fresh(name if name != "main" else "imported", taken)
            taken.add(new[name])
        renamed = mod.replace_global_vars(new)
        _add_types(program, mod.type_definitions)
        program.derived |= {new[name]: renamed.functions[new[name]] for name in names}
        kind = renamed.functions[new[function.name]].checked_type
        return _core.GlobalVar(new[function.name], kind)


def _add_types(program: Any, definitions: Iterable) -> None:
    """Gives the program data types; those of the prelude are its own."""
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
    """The type of values of Python functions; None where they have none."""
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


def argument(reader: Any, value: Value, kind: Type, name: str) -> _core.Expr:
    """The value as a parameter of that type takes it."""
    if isinstance(kind, TupleType):
        if not isinstance(value, (Tuple, List)) or len(value.items) != len(kind.items):
            raise Refusal(VALUE, f"'{name}' is a tuple", expected=str(kind), found=describe(value))
        parts = zip(value.items, kind.items, strict=True)
        return _core.Tuple([argument(reader, part, of, name) for part, of in parts])
    reader.fitting(value, kind, name)
    given = widen(type_of(value))
    if isinstance(kind, TensorType) and isinstance(given, TensorType) and not given.weak:
        # An open size where a number is wanted is checked in the run.
        sizes = zip(kind.shape, given.shape, strict=True)
        unknown = (None if isinstance(k, int) and not isinstance(g, int) else g for k, g in sizes)
        kind = TensorType(kind.dtype, tuple(unknown))
    (leaf,) = flatten(value, kind)
    return leaf


def result(expr: _core.Expr) -> Value:
    """The value of a call."""
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
    """A call of a function of a module."""
    var = reader.program.imported.var_of(reader.program, function)
    names = [p.name_hint for p in function.module.functions[function.name].params]
    if len(args) > len(names):
        raise Refusal(CALL, f"@{function.name} takes {len(names)} arguments, not {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            raise Refusal(
                CALL, f"@{function.name} has no parameter '{name}'", expected=", ".join(names)
            )
        if name in given:
            raise Refusal(CALL, f"@{function.name} gets '{name}' twice")
        given[name] = value
    exprs = []
    for name, core in zip(names, var.checked_type.arg_types, strict=True):
        if name not in given:
            raise Refusal(CALL, f"@{function.name} needs '{name}'")
        kind = kind_of_core(core)
        if kind is None:
            raise Refusal(
                CALL,
                f"'{name}' of @{function.name} is of a type that a function in Python has not",
                found=str(core),
            )
        exprs.append(argument(reader, given[name], kind, name))
    return result(_core.Call(var, exprs))
