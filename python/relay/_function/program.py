"""A program made of Python functions: each is read for the types of its calls."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay import _core, analysis
from relay._function import prelude
from relay._function.reading.calls import bind, returned_roots, returned_type, returned_value
from relay._function.reading.loops import Iteration
from relay._function.reading.modules import ImportedFunctions
from relay._function.reading.outcome import Env, Never, finished, has_effects, leaves
from relay._function.reading.reader import Reader
from relay._function.reading.returned_functions import has_function, returns_function
from relay._function.syntax.errors import LIMIT, RECURSION, VALUE, Pending, Refusal, fail
from relay._function.values import (
    OUTSIDE,
    ChainType,
    Closure,
    DataType,
    Derivative,
    ListType,
    SizeType,
    StaticType,
    TensorType,
    TupleType,
    Type,
    Value,
    flatten,
    forward,
    given_up,
    leaf_types,
    pack,
    packed_type,
    type_of,
    unflatten,
    unpack,
    widen,
)
from relay.transform import PassContext, RemoveUnusedFunctions

# The most forms of one function in a program; forms differ in dtypes, ranks or known values.
MAX_FORMS = 64
_MAX_ROUNDS = 8
# Python's default recursion limit is too low for deep syntax trees.
_RECURSION_LIMIT = 20_000


@dataclass
class FunctionForm:
    """A function specialised for the types of its parameters."""

    name: str
    kinds: dict[str, Type]
    type_params: list
    returned: Type | None = None
    declared: Type | None = None
    used: bool = False
    # Whether a call has effects; whether a recursive call was read under the assumption that it has none.
    does: bool = False
    taken_for_pure: bool = False
    # Whether its result may share memory with its arguments.
    shares: bool = False
    function: Any = None
    var: Any = None

    def declare(self, kind: Type) -> None:
        self.returned = kind
        types = [leaf for k in self.kinds.values() for leaf in leaf_types(k)]
        self.var = _core.GlobalVar(
            self.name, _core.FuncType(types, packed_type(kind), self.type_params)
        )


@dataclass
class Program:
    """The functions that have been read; `place` is the current place, which new expressions get."""

    # Whether functions that are not recursive are inlined into their callers.
    inlines: bool = False
    forms: dict[object, FunctionForm] = field(default_factory=dict)
    active: list = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    place: tuple = (None, 0, 0)
    line: str = ""
    captures: dict[tuple, Value] = field(default_factory=dict)
    data: dict[type, None] = field(default_factory=dict)
    # How often one of two values stood for both because the other's type was unknown.
    partial: int = 0
    # The number of loops that have been read, for fresh names.
    loops: int = 0
    has_lists: bool = False
    # The memory that references refer to, which is not changed in place.
    given_away: frozenset[int] = frozenset()
    # The memory that was changed in place, in order; the memory that was read from ended functions.
    changes: list[frozenset[int]] = field(default_factory=list)
    finished_reads: frozenset[int] = frozenset()
    # The functions and data types that derivatives, batches and imports add.
    derived: dict[str, Any] = field(default_factory=dict)
    derived_types: list = field(default_factory=list)
    imported: ImportedFunctions = field(default_factory=ImportedFunctions)

    def note(self, reader: Reader, node: object, text: str) -> None:
        line = f"{reader.source.name}:{node.lineno}: {text}"
        if line not in self.notes:
            self.notes.append(line)

    @property
    def sizes_of_main(self) -> list:
        """Returns the named sizes of the compiled function."""
        return next(form.type_params for form in self.forms.values() if form.name == "main")

    def entry(self, function: Any, kinds: dict[str, Type]) -> FunctionForm:
        """Reads a function as @main; returns its form."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
        try:
            with prelude.watched() as used:
                form = self._form(function, kinds, "main")
                self.has_lists = used()
                return form
        except Pending:
            self._endless(function)
        except RecursionError:
            fail(
                LIMIT,
                function.source,
                function.node,
                "the function is nested too deeply",
                help="name intermediate results, or use a loop",
            )
        except Refusal as problem:
            fail(problem.code, function.source, function.node, problem.message, **problem.more)
        finally:
            sys.setrecursionlimit(limit)
            _core.set_place(None)
        raise AssertionError

    def _endless(self, function: Any) -> None:
        for name, repeated in _calls_in_loops(function.node):
            fail(
                RECURSION,
                function.source,
                repeated,
                f"{name} calls itself in a loop, where the type that it returns is not known yet",
                help=f"annotate what {name} returns, as in def {name}(...) -> int:",
            )
        fail(
            RECURSION,
            function.source,
            function.node,
            f"what {function.__name__} returns is only what it returns itself",
            help="return a value on some way that does not call the function, or annotate what it returns",
        )

    def module(self) -> _core.IRModule:
        """Returns the typed module of all functions that were read."""
        read = {form.name: form.function for form in self.forms.values()}
        made = self._with(read, self.has_lists)
        return RemoveUnusedFunctions()(made) if made.functions.keys() > read.keys() else made

    def _with(self, functions: dict[str, Any], has_lists: bool) -> _core.IRModule:
        """Returns the module of these functions, the derived functions, and all data types."""
        made = [cls.__relay_type__ for cls in self._all_data()]
        types = [each.definition for each in made]
        has_lists = has_lists or any(each.has_lists for each in made)
        base = prelude.module() if has_lists else prelude.empty()
        return _core.with_definitions(
            base, {**functions, **self.derived}, types + self.derived_types
        )

    def derive(self, function: _core.Function, kind: str, count: int) -> _core.GlobalVar:
        """Adds the derivative of a closed function by its first parameters to the program."""

        def add(whole: _core.IRModule, of: str, name: str) -> _core.IRModule:
            settings = PassContext.current().settings()
            mode = "higher_order"
            return _core.add_derivative(whole, of, name, kind, mode, settings, count)[0]

        return self._add(function, kind, add)

    def batch(
        self, function: _core.Function, in_axes: tuple, out_axes: Any, lanes: int | None
    ) -> _core.GlobalVar:
        """Adds the batch of a closed function to the program; lanes: None for any number."""

        def add(whole: _core.IRModule, of: str, name: str) -> _core.IRModule:
            settings = PassContext.current().settings()
            return _core.add_batched(whole, of, name, in_axes, out_axes, lanes, False, settings)[0]

        return self._add(function, "batch", add)

    def _add(
        self,
        function: _core.Function,
        base: str,
        add: Callable[[_core.IRModule, str, str], _core.IRModule],
    ) -> _core.GlobalVar:
        """Adds a function that a transform makes of a closed function, with the functions that it needs."""
        read = {form.name: form.function for form in self.forms.values()}
        for name in analysis.global_names(function):
            if name in read and read[name] is None:
                raise Refusal(
                    RECURSION,
                    f"the {base} of a function is needed to read that function",
                    help="take that of a function that does not call this one",
                )
        taken = {*read, *self.derived, "main"}
        of, name = "original", base
        while of in taken:
            of += "_"
        while name in taken or name == of:
            name += "_"
        # A function that is read now has no body yet, but its name is taken.
        nothing = _core.Function([], _core.Tuple([]))
        named = {k: nothing if f is None else f for k, f in read.items()}
        whole = self._with(named | {of: function}, prelude.used())
        out = add(whole, of, name)
        known = set(whole.functions)
        self.derived |= {k: f for k, f in out.functions.items() if k not in known}
        known_types = set(map(str, (t.header for t in whole.type_definitions)))
        self.derived_types += [t for t in out.type_definitions if str(t.header) not in known_types]
        return out.get_global_var(name)

    def _all_data(self) -> list[type]:
        found: dict[type, None] = {}
        todo = list(self.data)
        while todo:
            cls = todo.pop()
            if cls in found:
                continue
            found[cls] = None
            for fields in cls.__relay_type__.fields.values():
                for kind in fields.values():
                    todo += data_in(kind)
        return list(found)

    # ---- Forms

    def call(
        self, reader: Reader, function: Any, args: list[Value], named: dict[str, Value]
    ) -> Value:
        """Returns the value of a call of a Relay function from another one."""
        given = bind(function.node, function.defaults, args, named)
        if function.donate or any(has_function(value) for value in given.values()):
            # The caller sees what the function writes to its arguments.
            return self._inline(reader, function, given)
        kinds: dict[str, Type] = {}
        for name, value in given.items():
            declared = function.kinds.get(name)
            if name in function.static:
                kinds[name] = type_of(value)
            elif declared is not None:
                reader.fitting(value, declared, name)
                kinds[name] = _with_sizes_of(declared, type_of(value))
            elif value is function.defaults.get(name):
                kinds[name] = type_of(value)
            else:
                kinds[name] = forward(widen(type_of(value)))
        if (
            self.inlines
            and (key := _key_of_types(function, generalised(kinds)[0])) not in self._active_keys()
        ):
            return self._inline_declared(reader, function, given, key)
        form = self._form(function, kinds, self.fresh(function.__name__))
        if returns_function(form.returned):
            # The captures of a returned function belong to the caller.
            return self._inline(reader, function, given)
        exprs = []
        for name, value in given.items():
            target = form.kinds[name]
            exprs += flatten(value, _with_sizes_of(target, widen(type_of(value))))
        out = _core.Call(form.var, exprs)
        if form.does:
            out = reader.effect(out)
        elif form.function is None:
            form.taken_for_pure = True
        shared = frozenset().union(*(value.roots for value in given.values()))
        return unpack(out, form.returned, (shared or None) if form.shares else None)

    def _active_keys(self) -> set[object]:
        return {activation.key for activation in self.active}

    def _inline_declared(self, reader: Reader, function: Any, given: Env, key: object) -> Value:
        """Inlines a call; declared parameters and results have their declared types."""

        def converted(value: Value, name: str) -> Value:
            declared = function.kinds.get(name)
            if declared is None:
                return value
            reader.fitting(value, declared, name)
            kind = _with_sizes_of(declared, widen(type_of(value)))
            return unflatten(kind, iter(flatten(value, kind)), value.roots or None)

        given = {name: converted(value, name) for name, value in given.items()}
        return converted(self._inline(reader, function, given, key), "return")

    def _inline(
        self, reader: Reader, function: Any, given: Env, key: object | None = None
    ) -> Value:
        def enter(variables: Env):
            inner = Reader(self, function.source, function.node, self.capture(function))
            inner.outer = None
            return inner.read_body(variables)

        functions = tuple(
            (name, id(value.node), id(value.frame))
            if isinstance(value, Closure)
            else (name, id(value), 0)
            for name, value in given.items()
            if isinstance(value, (Closure, Derivative))
        )
        key = (id(function), functions) if key is None else key
        return reader.activate(key, function.__name__, function.node, given, enter)

    def fresh(self, name: str, but: Iterable[str] = ()) -> str:
        """Returns a fresh function name that is not in `but`."""
        taken = {*but} | {form.name for form in self.forms.values()} | {*self.derived, "main"}
        taken |= set(prelude.module().functions)
        made, i = name.replace("<", "").replace(">", ""), 0
        while made in taken:
            i += 1
            made = f"{name}_{i}"
        return made

    def _form(self, function: Any, kinds: dict[str, Type], name: str) -> FunctionForm:
        kinds, names = generalised(kinds)
        type_params = list(names.values())
        key = _key_of_types(function, kinds)
        form = self.forms.get(key)
        if form is not None:
            if form.returned is None:
                form.used = True
                raise Pending
            form.used = True
            return form
        of_function = sum(1 for k in self.forms if k[0] == id(function))
        if of_function >= MAX_FORMS:
            raise Refusal(
                LIMIT,
                f"{function.__name__} is called with more than {MAX_FORMS} combinations of types",
                help="a recursion whose types grow has no end; use a list of open length",
            )
        form = self.forms[key] = FunctionForm(name, kinds, type_params)
        if "return" in function.kinds:
            form.declared = renamed(function.kinds["return"], lambda dim: names.get(dim))
            form.declare(form.declared)
        try:
            self._read(function, form)
        except BaseException:
            self.forms.pop(key, None)
            raise
        return form

    def _read(self, function: Any, form: FunctionForm) -> None:
        """Reads the body until its result type equals the type assumed for recursive calls."""
        declared = form.declared
        partial = self.partial
        for _ in range(_MAX_ROUNDS):
            before, self.partial = dict(self.forms), partial
            form.used = form.taken_for_pure = False
            params, env = _parameters(form.kinds)
            if form.name == "main":
                env |= {name: given_up(env[name]) for name in function.donate if name in env}
            reader = Reader(self, function.source, function.node, self.capture(function))
            reader.gives_out = form.name == "main"
            saved, self.active = self.active, []
            try:
                tree = reader.read_body(dict(env))
                for kind in form.kinds.values():
                    self.data.update(dict.fromkeys(data_in(kind)))
                with reader.at(function.node):
                    returned = forward(widen(returned_type(tree)))
                    if form.name == "main":
                        _check_result(returned)
                    if declared is not None:
                        reader.fitting(unflatten_type(returned), declared, "return")
                        returned = declared
            finally:
                self.active = saved
            form.does = form.does or has_effects(tree)
            shared, form.shares = form.shares, form.shares or bool(returned_roots(tree) & OUTSIDE)
            settled = not form.used or (returned, shared) == (form.returned, form.shares)
            if settled and not (form.does and form.taken_for_pure):
                break
            form.declare(returned)
            for key in [k for k in self.forms if k not in before]:
                del self.forms[key]
        else:
            raise Refusal(RECURSION, f"the type that {function.__name__} returns does not settle")
        if self.partial != partial or any(isinstance(end, Never) for end in leaves(tree)):
            # A callee is still being read: this function is read again when the callee's type is known.
            form.declare(returned)
            return
        with reader.at(function.node):
            result = packed_type(returned)
            body = finished(tree, result, lambda end: pack(flatten(returned_value(end), returned)))
            form.function = _core.Function(params, body, result, form.type_params)
            if form.returned != returned or form.var is None:
                form.declare(returned)

    def capture(self, function: Any):
        """Returns the lookup of names outside a function; each name has one value in the program."""

        def find(name: str) -> Value:
            key = (id(function), name)
            if key not in self.captures:
                self.captures[key] = function.captured(name)
            return self.captures[key]

        return find


def _key_of_types(function: Any, kinds: dict[str, Type]) -> object:
    """Returns the key of a function and the types of a call."""
    order: dict[object, int] = {}
    return id(function), tuple((n, _key(kind, order)) for n, kind in kinds.items())


def _parameters(kinds: dict[str, Type]) -> tuple[list, Env]:
    """Returns the parameters of a function, named after the structures that they are parts of."""
    params: list = []
    env: Env = {}
    taken: set[str] = set()

    def fresh(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    for name, kind in kinds.items():
        pairs = zip(_names(name, kind), leaf_types(kind), strict=True)
        made = [_core.Var(fresh(n), t) for n, t in pairs]
        params += made
        env[name] = unflatten(kind, iter(made), OUTSIDE)
    return params, env


def _names(name: str, kind: Type) -> list[str]:
    if isinstance(kind, (TupleType, ListType)):
        form = getattr(kind, "form", None)
        parts = range(len(kind.items)) if form is None else form.names
        pairs = zip(parts, kind.items, strict=True)
        return [leaf for part, item in pairs for leaf in _names(f"{name}_{part}", item)]
    return [name] * len(leaf_types(kind))


_RESULTS = (bool, int, float, str, type(None), np.dtype)


def _check_result(kind: Type) -> None:
    """Refuses results that are not tensors, numbers, strings or structures of them."""
    if isinstance(kind, (TupleType, ListType)):
        for item in kind.items:
            _check_result(item)
    elif isinstance(kind, StaticType) and not isinstance(kind.obj, _RESULTS):
        raise Refusal(
            VALUE,
            "a compiled function returns tensors, numbers, strings and structures of them",
            found=_shown(kind.obj),
            help="call the function here, and return what it gives",
        )


def _shown(obj: object) -> str:
    """Describes a known object that cannot be a result."""
    if isinstance(obj, (Value, Iteration)):
        return repr(obj)
    if isinstance(obj, type) or callable(obj):
        return f"{'the class' if isinstance(obj, type) else 'the function'} {obj.__name__}"
    return f"a value of type {type(obj).__name__}"


def _calls_in_loops(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yields the recursive calls inside loops, of a function and of its inner functions."""
    for made in ast.walk(node):
        if not isinstance(made, ast.FunctionDef) or made.returns is not None:
            continue
        loops = (n for n in ast.walk(made) if isinstance(n, (ast.For, ast.While)))
        for call in (n for loop in loops for n in ast.walk(loop)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", None) == made.name:
                yield made.name, call


def unflatten_type(kind: Type) -> Value:
    """Returns a value of a type, to compare it with a declared type."""
    return unflatten(kind, iter([_core.Var("result", t) for t in leaf_types(kind)]))


def data_in(kind: Type) -> list[type]:
    """Returns the data types in a type."""
    if isinstance(kind, DataType):
        return [kind.cls]
    if isinstance(kind, (TupleType, ListType)):
        return [cls for item in kind.items for cls in data_in(item)]
    return data_in(kind.item) if isinstance(kind, ChainType) else []


def _key(kind: Type, order: dict) -> object:
    """Returns a type as a key, in which sizes are numbered by their position."""
    if isinstance(kind, TensorType):
        sizes = tuple(
            d if d is None or isinstance(d, int) else ("d", order.setdefault(d, len(order)))
            for d in kind.shape
        )
        return kind.dtype, kind.weak, sizes
    if isinstance(kind, TupleType):
        return kind.form, tuple(_key(item, order) for item in kind.items)
    if isinstance(kind, ListType):
        return "list", tuple(_key(item, order) for item in kind.items)
    if isinstance(kind, ChainType):
        return "chain", kind.backward, _key(kind.item, order)
    return kind


def generalised(kinds: dict[str, Type]) -> tuple[dict[str, Type], dict]:
    """Returns the types with each symbolic size replaced by a name of the function, and the names."""
    names: dict[object, Any] = {}

    def name_of(dim: object) -> object:
        if dim not in names:
            names[dim] = _core.TypeVar(f"d{len(names)}" if " " in str(dim) or "(" in str(dim)
                                       else str(dim))  # fmt: skip
        return names[dim]

    return {name: renamed(kind, name_of) for name, kind in kinds.items()}, names


def renamed(kind: Type, name_of: Callable[[Any], Any]) -> Type:
    """Returns the type with symbolic sizes replaced."""
    if isinstance(kind, TensorType):
        sizes = (d if d is None or isinstance(d, int) else name_of(d) for d in kind.shape)
        return TensorType(kind.dtype, tuple(sizes), kind.weak)
    if isinstance(kind, TupleType):
        return TupleType(tuple(renamed(item, name_of) for item in kind.items), kind.form)
    if isinstance(kind, ListType):
        return ListType(tuple(renamed(item, name_of) for item in kind.items))
    if isinstance(kind, ChainType):
        return ChainType(renamed(kind.item, name_of), kind.backward)
    return TensorType("int64", (), True) if isinstance(kind, SizeType) else kind


def _with_sizes_of(kind: Type, value: Type) -> Type:
    """Returns the declared type with the sizes of a value; declared numbers stay."""
    if isinstance(kind, TensorType) and isinstance(value, TensorType):
        if len(kind.shape) != len(value.shape):
            return kind
        return TensorType(kind.dtype, value.shape, kind.weak)
    if isinstance(kind, TupleType) and isinstance(value, TupleType):
        pairs = zip(kind.items, value.items, strict=True)
        return TupleType(tuple(_with_sizes_of(k, v) for k, v in pairs), kind.form)
    if isinstance(kind, ListType) and isinstance(value, ListType):
        pairs = zip(kind.items, value.items, strict=True)
        return ListType(tuple(_with_sizes_of(k, v) for k, v in pairs))
    return kind
