"""`relay.function`: a Python function that Relay compiles."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import json
import os
import sys
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy import ndarray

from relay import _core
from relay._build import Executable, build
from relay._errors import wrong
from relay._function.annotations import Names, is_static, type_of_annotation
from relay._function.bound import BoundMethod
from relay._function.exchange import (
    MODEL,
    NamesOfSizes,
    Sizes,
    choices_of_sizes,
    in_library,
    is_plain,
    key_of,
    leaves_of,
    library_of,
    maker,
    type_of_argument,
    value_key,
)
from relay._function.program import FunctionForm, Program
from relay._function.syntax import scope as subset
from relay._function.syntax import source
from relay._function.syntax.errors import (
    ANNOTATION,
    BATCH_SIZES,
    LIMIT,
    NAME,
    RUN_SIZES,
    Refusal,
    fail,
)
from relay._function.values import (
    PythonFunction,
    TensorType,
    TupleType,
    Type,
    Value,
    leaf_types,
    lift,
    static_type,
    type_of,
)
from relay._ir.display import folded
from relay._locks import Lock, cached_property

# Compiled forms of a function that are kept; the one that was used longest ago goes first.
MAX_FORMS = 64


class CacheInfo(NamedTuple):
    """How many forms of a function are compiled and kept, may be kept, and were dropped."""

    currsize: int
    maxsize: int
    dropped: int


@dataclass(repr=False)
class Lowered:
    """A function for arguments of certain types, not compiled yet."""

    function: RelayFunction
    form: FunctionForm
    program: Program
    seconds: float

    @cached_property
    def module(self) -> _core.IRModule:
        """The typed module, whose @main takes the tensors among the arguments."""
        return self.program.module()

    def astext(self) -> str:
        """The module as text."""
        return self.module.astext(show_meta_data=False)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {kind}" for name, kind in self.form.kinds.items())
        return (
            f"<relay.function {self.function.__name__}({kinds}) -> {self.form.returned}, lowered>"
        )

    def _repr_html_(self) -> str:
        return folded(repr(self), self.astext())

    def compile(self) -> Executable:
        """Returns the compiled module; its results are flat tuples of tensors."""
        return build(self.module, **self.function.options, donate=self.donations())

    def donations(self) -> dict[str, int]:
        """The parameters of @main whose memory results take, with the numbers of these results."""
        return self._donations[0]

    @property
    def donates_all(self) -> bool:
        """Whether each array in the parameters that are donated is."""
        return self._donations[1]

    @cached_property
    def _donations(self) -> tuple[dict[str, int], bool]:
        if not self.function.donate:
            return {}, True
        kinds = self.form.kinds
        parts = self._parts()
        ends = list(itertools.accumulate(len(leaf_types(part)) for part in parts))
        names = iter([p.name_hint for p in self.module["main"].params])
        given = {name: [(next(names), t) for t in leaf_types(kinds[name])] for name in kinds}
        out: dict[str, int] = {}
        arrays = 0
        for name, part in self.function.donate.items():
            types_ = leaf_types(parts[part]) if 0 <= part < len(parts) else None
            if types_ is None or len(types_) != len(given.get(name, ())):
                fail(
                    ANNOTATION,
                    self.function.source,
                    self.function.node,
                    f"the parameter '{name}' cannot be donated to part {part} of the result",
                    expected=f"a structure as that of '{name}' among {len(parts)} parts",
                    found="another structure" if types_ else "no such parameter or part",
                )
            first = ends[part] - len(types_)
            for i, ((leaf, mine), other) in enumerate(zip(given[name], types_, strict=True)):
                arrays += _has_memory(mine)
                if _has_memory(mine) and _core.structural_equal(mine, other):
                    out[leaf] = first + i
        return out, len(out) == arrays

    def _parts(self) -> tuple[Type, ...]:
        """The parts of the result, as `donate` counts them."""
        returned = self.form.returned
        if not isinstance(returned, TupleType):
            return (returned,)
        # A structure is one part, but for a named tuple of several that are donated to.
        form = returned.form
        given = [getattr(self.form.kinds.get(n), "form", None) for n in self.function.donate]
        many = form is None or (form.kind == "namedtuple" and form not in given)
        return returned.items if many else (returned,)


def _has_memory(kind: _core.Type) -> bool:
    """Whether values of the type are arrays; a number may be none."""
    return isinstance(kind, _core.TensorType) and len(kind.shape) > 0


@dataclass
class _Compiled:
    lowered: Lowered
    executable: Executable
    seconds: float
    run: Callable[[tuple], Any]
    key: object


class RelayFunction(PythonFunction):
    """A function of Python that is read, not traced, and compiled; see docs/python_function.md.

    Calling it takes and returns NumPy arrays, or tensors of any library that knows DLPack. A
    parameter without annotation is compiled for the dtype and rank that it is called with; a form
    serves all sizes of which the same are equal, and the same are 1. `python` is the function as
    Python runs it.
    """

    # Parameters whose memory parts of the result take.
    donate: Mapping[str, int] = types.MappingProxyType({})
    # Its own derivatives, by what was asked: each is compiled once (derived.py).
    derived: dict[Any, RelayFunction]

    def __init__(
        self,
        python: types.FunctionType,
        options: dict[str, Any],
        fixed_sizes: bool = False,
        scope: dict[str, Any] | None = None,
    ) -> None:
        read, node = source.read(python)
        subset.check(read, node)
        around = {} if scope is None else scope
        self._set_up(python, options, fixed_sizes, read, node, inspect.signature(python), around)

    def _set_up(
        self,
        python: types.FunctionType,
        options: dict[str, Any],
        fixed_sizes: bool,
        read: source.Source,
        node: Any,
        signature: inspect.Signature,
        names_around: dict[str, Any],
    ) -> None:
        functools.update_wrapper(self, python)
        self.python = python
        self.options = options
        self.fixed_sizes = fixed_sizes
        self.source, self.node = read, node
        self.signature = signature
        self.names_around = names_around
        self._lock = Lock()
        self._compiled: OrderedDict[object, _Compiled] = OrderedDict()
        self._runs: dict[object, Callable[[tuple], Any]] = {}
        self._only_run: Callable[[tuple], Any] | None = None
        # Of the form that was found last: the call for such arguments, and what makes its result.
        self._plain: tuple[Callable[[tuple], Any], Callable[[Any], object] | None] | None = None
        self._dropped = 0
        self.derived = {}
        self._read_annotations(names_around)

    def _read_annotations(self, names_around: dict[str, Any]) -> None:
        """Splits the parameters by what their annotations say."""
        self.kinds: dict[str, Type] = {}
        self.static: set[str] = set()
        names = Names()
        for name, annotation in source.annotations(self.python, names_around).items():
            if is_static(annotation):
                self.static.add(name)
                continue
            try:
                kind = type_of_annotation(annotation, names)
            except Refusal as problem:
                fail(problem.code, self.source, self.node, problem.message, **problem.more)
            if kind is not None:
                self.kinds[name] = kind
        parameters = self.signature.parameters
        self._count = len(parameters)
        self._order = tuple(parameters)
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        by_place = all(p.kind in positional for p in parameters.values())
        # How many arguments a call without keywords has for the short ways; -1: no call takes them.
        self._places = self._count if by_place else -1
        self._is_typed = by_place and all(name in self.kinds for name in parameters)

    @cached_property
    def defaults(self) -> dict[str, Value]:
        """The parameters' defaults as values of a program."""
        return {
            name: lift(p.default)
            for name, p in self.signature.parameters.items()
            if p.default is not inspect.Parameter.empty
        }

    def captured(self, name: str) -> Value:
        """What a name outside the function stands for."""
        closure = self.python.__closure__ or ()
        free = dict(zip(self.python.__code__.co_freevars, closure, strict=True))
        if name in free:
            try:
                return lift(free[name].cell_contents)
            except ValueError:
                raise Refusal(NAME, f"'{name}' has no value yet") from None
        if name in self.python.__globals__:
            return lift(self.python.__globals__[name])
        if hasattr(builtins, name):
            return lift(getattr(builtins, name))
        raise Refusal(NAME, f"the name '{name}' is not defined")

    # ---- Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == self._places:
            try:
                if (plain := self._plain) is not None:
                    call, make = plain
                    out = call(args)
                    if out is not NotImplemented:
                        return out if make is None else make(out)
                run = self._only_run or self._run_for(args)
                if run is not None:
                    return run(args)
            except _core.UserError as problem:
                if problem.code != "E0603" or self._is_typed:
                    raise
                # The sizes may be those of another form.
            except _core.RunError as problem:
                self._explain_sizes(problem, *self._bound(args, kwargs))
                raise
        values, given = self._bound(args, kwargs)
        try:
            made = self._form(values, given)
            out = made.run(values)
        except _core.RunError as problem:
            self._explain_sizes(problem, values, given)
            raise
        except _core.UserError as problem:
            self._explain_sizes(problem, values, given)
            # It shows the place in the function: the way through the reader says no more.
            raise problem.with_traceback(None) from problem.__cause__
        self._remember(made, values, given)
        return out

    def _run_for(self, args: tuple) -> Callable[[tuple], Any] | None:
        """The call for positional arguments, if a form for such ones was found before."""
        try:
            return self._runs.get(self._short_key(args))
        except (Refusal, RecursionError):
            return None

    def _explain_sizes(self, problem: Exception, values: tuple, given: frozenset[str]) -> None:
        """Where sizes did not fit: the type error of the function for these sizes, if it has one.

        It shows the line of Python, and the types of both operands.
        """
        if problem.code not in (RUN_SIZES, BATCH_SIZES):
            return
        try:
            self._lower_for(values, given, Sizes(fixed=True), declared_too=True)
        except _core.UserError as shown:
            raise shown.with_traceback(None) from problem

    def __set_name__(self, owner: type, name: str) -> None:
        """A class with methods that are compiled is one of models."""
        setattr(owner, MODEL, True)

    def __get__(self, obj: object, owner: type | None = None) -> Any:
        return self if obj is None else BoundMethod(self, obj)

    def _bound(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, frozenset[str]]:
        """The values of all parameters, in order, and the names of those that are given."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise wrong(f"{self.__name__}(): {problem}") from None
        given = frozenset(bound.arguments)
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self._order), given

    def _short_key(self, values: tuple) -> tuple:
        """What of the arguments a call looks at; their sizes are the compiled form's to check."""
        if self.static:
            pairs = zip(self._order, values, strict=True)
            return tuple([value_key(v) if n in self.static else key_of(v) for n, v in pairs])
        return tuple([(v.dtype, v.ndim) if type(v) is ndarray else key_of(v) for v in values])

    def _sizes(self, values: tuple) -> list[Sizes]:
        """Which sizes of arguments may be numbers, from the fewest on."""
        return choices_of_sizes(self._open_ones(values), self.fixed_sizes)

    def _open_ones(self, values: tuple) -> list:
        """The arguments whose sizes no annotation says."""
        return [v for n, v in zip(self._order, values, strict=True) if n not in self.kinds]

    def _key(self, values: tuple, given: frozenset[str]) -> tuple:
        """What of the arguments decides about the form, beside their sizes."""
        if self._is_typed:
            return ()
        parts: list[object] = []
        for name, value in zip(self._order, values, strict=True):
            if name in self.kinds:
                parts.append(name)
            elif name not in given:
                parts.append("default")
            elif name in self.static:
                parts.append(("known", value_key(value)))
            else:
                parts.append(key_of(value))
        return tuple(parts)

    def _form(self, values: tuple, given: frozenset[str]) -> _Compiled:
        """The compiled form for arguments."""
        try:
            key = self._key(values, given)
            open_ones = self._open_ones(values)
            choices = choices_of_sizes(open_ones, self.fixed_sizes)
            keys = {sizes: (key, sizes.pattern(open_ones)) for sizes in choices}
        except Refusal as problem:
            fail(problem.code, self.source, self.node, problem.message, **problem.more)
        except RecursionError:
            fail(
                LIMIT,
                self.source,
                self.node,
                "an argument nests too deeply, or holds itself",
                help="values of a relay.data class may be of any depth, where the parameter is "
                "annotated with it",
            )
        with self._lock:
            for key in keys.values():
                found = self._compiled.get(key)
                if found is not None:
                    self._compiled.move_to_end(key)
                    return found
            try:
                lowered, sizes = self._lower(values, given)
            except _core.UserError as problem:
                raise self._with_advice(problem, values, given) from problem.__cause__
            begin = time.perf_counter()
            executable = lowered.compile()
            seconds = time.perf_counter() - begin
            run = self._runner(lowered.form, executable)
            key = keys[sizes]
            made = _Compiled(lowered, executable, seconds, run, key)
            self._compiled[key] = made
            if len(self._compiled) > MAX_FORMS:
                _, dropped = self._compiled.popitem(last=False)
                self._runs = {k: r for k, r in self._runs.items() if r is not dropped.run}
                self._plain = None
                self._dropped += 1
            return made

    def _with_advice(
        self,
        problem: _core.UserError,
        values: tuple,
        given: frozenset[str],
        constants: frozenset[str] = frozenset(),
    ) -> _core.UserError:
        """The error, which says so where the function has a form for the sizes of these arguments."""
        if self._is_typed or self.fixed_sizes or not problem.code.startswith("E02"):
            return problem
        try:
            self._lower_for(values, given, Sizes(fixed=True), constants, declared_too=True)
        except _core.UserError:
            return problem
        advice = (
            "sizes of arguments without annotation are open: annotate it with sizes, capture it, "
            "or write relay.function(fixed_sizes=True)"
        )
        told = _core.UserError(f"{problem}\n  help:     {advice}")
        told.code, told.diagnostics = problem.code, problem.diagnostics
        return told

    def _remember(self, made: _Compiled, values: tuple, given: frozenset[str]) -> None:
        """Lets calls with such arguments find the form at once, after one that succeeded.

        A form for sizes that differ takes equal sizes too. Where it donates less than the form for
        equal sizes would, each call looks at the sizes.
        """
        call = None
        if len(given) == self._count and not self.static and not self.donate:
            call = _core.PlainCall.of(made.executable._module, "main", values)
        with self._lock:
            if self._compiled.get(made.key) is not made:
                return
            if self._is_typed:
                self._only_run = made.run
            elif len(given) == self._count and made.lowered.donates_all:
                # Strings of each length are a dtype of NumPy's.
                if len(self._runs) >= 4 * MAX_FORMS:
                    self._runs.clear()
                self._runs[self._short_key(values)] = made.run
            if call is not None:
                self._plain = (call.run, maker(made.lowered.form.returned))

    def _lower(
        self, values: tuple, given: frozenset[str], constants: frozenset[str] = frozenset()
    ) -> tuple[Lowered, Sizes]:
        """The function for arguments, with as many open sizes as it has a type for; and which.

        The parameters `constants` have the values that are given.
        """
        first: _core.UserError | None = None
        for sizes in self._sizes(values):
            try:
                return self._lower_for(values, given, sizes, constants), sizes
            except _core.UserError as problem:
                if not problem.code.startswith("E02"):
                    raise
                first = first or problem
        assert first is not None
        raise first

    def _lower_for(
        self,
        values: tuple,
        given: frozenset[str],
        sizes: Sizes,
        constants: frozenset[str] = frozenset(),
        declared_too: bool = False,
    ) -> Lowered:
        """The function for arguments; `declared_too`: tensors with declared sizes have their own."""
        begin = time.perf_counter()
        kinds: dict[str, Type] = {}
        names = NamesOfSizes(sizes)
        for name, value in zip(self._order, values, strict=True):
            try:
                if name in self.kinds:
                    kind = self.kinds[name]
                    if declared_too and isinstance(kind, TensorType):
                        kind = TensorType(kind.dtype, tuple(np.shape(value)), kind.weak)
                    kinds[name] = kind
                elif name in self.static or name in constants:
                    kinds[name] = static_or_structure(value)
                elif name not in given and name in self.defaults:
                    kinds[name] = type_of(self.defaults[name])
                else:
                    kinds[name] = type_of_argument(value, name, names)
            except Refusal as problem:
                fail(problem.code, self.source, self.node, problem.message, **problem.more)
        return self._read(kinds, begin, bool(constants))

    def _read(self, kinds: dict[str, Type], begin: float, inlines: bool) -> Lowered:
        program = Program(inlines=inlines)
        form = program.entry(self, kinds)
        return Lowered(self, form, program, time.perf_counter() - begin)

    def _runner(self, form: FunctionForm, executable: Executable) -> Callable[[tuple], Any]:
        """A call as short as the types allow."""
        kinds = tuple(form.kinds.values())
        make = maker(form.returned)
        run = executable._module.run
        no_names: dict[str, Any] = {}
        if all(map(is_plain, kinds)):

            def plain(args: tuple) -> Any:
                out = run("main", args, no_names)
                if make is not None:
                    out = make(out)
                library = library_of(args)
                return out if library is None else in_library(out, library, args)

            return plain

        def structured(args: tuple) -> Any:
            try:
                flat = tuple(
                    leaf
                    for kind, arg in zip(kinds, args, strict=True)
                    for leaf in leaves_of(kind, arg)
                )
            except Refusal as problem:
                fail(problem.code, self.source, self.node, problem.message, **problem.more)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                fail(
                    ANNOTATION,
                    self.source,
                    self.node,
                    f"an argument is not of the type that it is declared with: {error}",
                )
            out = run("main", flat, no_names)
            if make is not None:
                out = make(out)
            library = library_of(flat)
            return out if library is None else in_library(out, library, flat)

        return structured

    # ---- What it becomes

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Returns the function for the types of these arguments, not compiled.

        A function whose parameters are all annotated needs none.
        """
        if not args and not kwargs and self._is_typed:
            return self._lower((None,) * self._count, frozenset(self._order))[0]
        return self._lower(*self._bound(args, kwargs))[0]

    @property
    def module(self) -> _core.IRModule:
        """The typed module of the only form: of the annotations, or of the calls so far."""
        return self._only().module

    def astext(self) -> str:
        """The only form as text."""
        return self._only().astext()

    def export_library(self, path: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Writes the only form as one deployable file; see `Executable.export_library`."""
        for made in self._compiled.values():
            if len(self._compiled) == 1:
                made.executable.export_library(path, overwrite)
                return
        self._only().compile().export_library(path, overwrite)

    # ---- Of an object, whose tensors are constants (bound.py)

    def lower_of(self, obj: object, args: tuple, kwargs: dict[str, Any]) -> Lowered:
        """The method of an object for the types of these arguments."""
        own = self._own_parameter()
        if not args and not kwargs and self._is_typed_but(own):
            values = (obj, *(None,) * (self._count - 1))
            return self._lower(values, frozenset(self._order), own)[0]
        values, given = self._bound((obj, *args), kwargs)
        try:
            return self._lower(values, given, own)[0]
        except _core.UserError as problem:
            raise self._with_advice(problem, values, given, own) from problem.__cause__

    def only_of(self, obj: object) -> Lowered:
        """The method of an object, of its annotations or the calls so far."""
        own = self._own_parameter()
        if self._is_typed_but(own):
            return self.lower_of(obj, (), {})
        forms = self._forms_of(obj)
        if len(forms) != 1:
            fail(
                ANNOTATION,
                self.source,
                self.node,
                f"{self.__name__} has {len(forms)} compiled forms for such an object: it is not "
                "known which one is meant",
                help=f"call {self.__name__}.lower(...) of the object with arguments, or annotate the "
                "parameters",
            )
        kinds = dict(forms[0].lowered.form.kinds)
        kinds |= {name: static_or_structure(obj) for name in own}
        return self._read(kinds, time.perf_counter(), True)

    def explain_of(self, obj: object) -> str:
        """What was compiled for objects such as this one."""
        return self._explained(self._forms_of(obj))

    def _own_parameter(self) -> frozenset[str]:
        """The parameter that takes the object of a method."""
        return frozenset(self._order[:1])

    def _is_typed_but(self, own: frozenset[str]) -> bool:
        return all(name in self.kinds for name in self._order if name not in own)

    def _forms_of(self, obj: object) -> list[_Compiled]:
        """The compiled forms for objects of the same structure and sizes."""
        name = self._order[0]
        kind = type_of_argument(obj, name, NamesOfSizes(Sizes(fixed=True)))
        return [m for m in self._compiled.values() if m.lowered.form.kinds[name] == kind]

    def _only(self) -> Lowered:
        if len(self._compiled) == 1:
            return next(iter(self._compiled.values())).lowered
        if self._is_typed:
            return self.lower()
        count = len(self._compiled)
        fail(
            ANNOTATION,
            self.source,
            self.node,
            f"{self.__name__} has {count} compiled forms: it is not known which one is meant",
            help=f"call {self.__name__}.lower(...) with arguments, or annotate the parameters",
        )
        raise AssertionError

    def cache_info(self) -> CacheInfo:
        """Returns how many forms are compiled and kept."""
        return CacheInfo(len(self._compiled), MAX_FORMS, self._dropped)

    def cache_clear(self) -> None:
        """Forgets all compiled forms."""
        with self._lock:
            self._compiled.clear()
            self._runs.clear()
            self._only_run = self._plain = None

    def explain(self) -> str:
        """Returns what was compiled: each form with its types and times.

        Loops are kernels, native, interpreted (with the reason), or unrolled.
        """
        return self._explained(list(self._compiled.values()))

    def _explained(self, forms: list[_Compiled]) -> str:
        lines = [f"{self.__name__} ({self.source.name}:{self.node.lineno})"]
        for made in forms:
            form = made.lowered.form
            types_ = ", ".join(f"{name}: {kind}" for name, kind in form.kinds.items())
            lines.append(f"  ({types_}) -> {form.returned}")
            read, compiled = made.lowered.seconds * 1e3, made.seconds * 1e3
            lines.append(f"    read in {read:.1f} ms, compiled in {compiled:.1f} ms")
            names = [f.name for f in made.lowered.program.forms.values() if f is not form]
            if names:
                lines.append(f"    calls {', '.join(names)}")
            lines += [f"    {note}" for note in made.lowered.program.notes]
            lines += [f"    {loop}" for loop in _loops_of(made.executable)]
        if len(lines) == 1:
            lines.append("  not compiled yet: it is at the first call")
        if self._dropped:
            lines.append(f"  {self._dropped} forms were dropped: {MAX_FORMS} are kept")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<relay.function {self.__name__}{self.signature}, {len(self._compiled)} compiled>"

    def _repr_html_(self) -> str:
        """What notebooks show: what was compiled, and the programs, folded."""
        forms = [made.lowered for made in self._compiled.values()]
        programs = "".join(folded(repr(lowered), lowered.astext()) for lowered in forms)
        return folded(repr(self), self.explain()) + programs

    def __copy__(self) -> RelayFunction:
        return self

    def __deepcopy__(self, memo: object) -> RelayFunction:
        """The function itself, as Python's are copied."""
        return self

    def __reduce__(self) -> str:
        """Its name, as Python's functions are pickled: where it is loaded, its module has it."""
        return self.__qualname__


def _loops_of(executable: Executable) -> list[str]:
    """How the loops that remain loops, and functions with control flow, are compiled, a line each."""
    said = json.loads(executable.metadata)
    lines = []
    for kernel in said["kernels"]:
        if kernel.get("loop", False):
            lines.append(f"{kernel['origin'] or 'a loop'}: a loop is the kernel {kernel['name']}")
        lines += [
            f"{place}: copies the array that it writes to" for place in kernel.get("copies", [])
        ]
    lines += [
        f"{row['place']}: copies the array that it writes to" for row in said.get("copies", [])
    ]
    lines += [f"{row['function']} is native" for row in said.get("functions", []) if row["native"]]
    for row in said.get("interpreted", []):
        lines.append(f"a loop or recursion is interpreted: {row['reason']}")
    return lines


def static_or_structure(value: object) -> Type:
    """The type of an argument whose value is known when it is compiled."""
    lifted = lift(value)
    return static_type(lifted) if lifted.roots else type_of(lifted)


# typing keeps overloads, and with them the module, beyond the interpreter's clean-up.
if TYPE_CHECKING:

    @overload
    def function(
        python: Callable[..., Any],
        *,
        target: str | None = None,
        opt_level: int | None = None,
        num_threads: int = 0,
        fixed_sizes: bool = False,
        donate: Mapping[str, int] | None = None,
    ) -> RelayFunction: ...

    @overload
    def function(
        python: None = None,
        *,
        target: str | None = None,
        opt_level: int | None = None,
        num_threads: int = 0,
        fixed_sizes: bool = False,
        donate: Mapping[str, int] | None = None,
    ) -> Callable[[Callable[..., Any]], RelayFunction]: ...


def function(
    python: Any = None,
    *,
    target: str | None = None,
    opt_level: int | None = None,
    num_threads: int = 0,
    fixed_sizes: bool = False,
    donate: Mapping[str, int] | None = None,
) -> Any:
    """Compiles a Python function: a decorator, plain or with the options of `relay.build`.

        @relay.function
        def relu(x):
            return np.maximum(x, 0)

    The function is read when it is decorated, and compiled when it is first called with new dtypes
    or ranks. UserError E09xx, with the line, for what is not in the subset of Python.

    fixed_sizes: compiles parameters without annotation for the sizes that they are called with.
    donate: parameters that callers give up, each with the part of the result, 0 if it is the only
        one, of the same structure: its arrays are written into those of the parameter, and are
        these. So a call changes its arguments. Numbers, and parts of another type or size, are new.
    """
    options = {"target": target, "opt_level": opt_level, "num_threads": num_threads}
    if python is None:
        return functools.partial(
            function,
            target=target,
            opt_level=opt_level,
            num_threads=num_threads,
            fixed_sizes=fixed_sizes,
            donate=donate,
        )
    if isinstance(python, RelayFunction):
        return python
    if hasattr(python, "cache_info"):
        raise wrong(
            "relay.function decorates a function, not one that keeps its results: remove functools.cache"
        )
    if not isinstance(python, types.FunctionType):
        raise wrong(f"relay.function decorates a function, not {python!r}")
    if donate is not None and not isinstance(donate, Mapping):
        raise wrong(
            "donate is a mapping of parameters to the parts of the result that take their memory, "
            f"such as {{'x': 0}}, not {donate!r}"
        )
    try:
        made = RelayFunction(python, options, fixed_sizes, sys._getframe(1).f_locals)
    except _core.UserError as problem:
        raise problem.with_traceback(None) from None
    made.donate = dict(donate or {})
    return made


# Where a function that is not decorated keeps what was read of it.
_READ = "__relay_function__"


def plain_function(python: Any, asks: str) -> RelayFunction:
    """A function as relay.function reads it, the same each time, also one that is not decorated.

    asks: who wants it, for the TypeError where it is something else.
    """
    if isinstance(python, RelayFunction):
        return python
    if not isinstance(python, types.FunctionType):
        raise wrong(
            f"{asks} takes a function, not {type(python).__name__}; a lambda around it is one, and "
            "relay.transform has derivatives and batches of a relay.Function"
        )
    known = python.__dict__.get(_READ)
    # What functools.wraps copies is that of another function.
    if known is None or known.python is not python:
        caller = sys._getframe(1)
        while caller.f_back and caller.f_globals.get("__name__", "").startswith("relay."):
            caller = caller.f_back
        options = {"target": None, "opt_level": None, "num_threads": 0}
        try:
            known = RelayFunction(python, options, scope=caller.f_locals)
        except _core.UserError as problem:
            raise problem.with_traceback(None) from None
        python.__dict__[_READ] = known
    return known
