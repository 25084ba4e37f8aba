"""Passes: each is a class whose objects map a module to a module."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from relay import _core

if TYPE_CHECKING:
    from relay._passes import *  # noqa: F403

_active = threading.local()


def _names(what: str, names: Iterable[str] | None) -> set[str]:
    if isinstance(names, str):
        raise TypeError(f"{what} is a list of names, not the string {names!r}")
    return set(names or ())


class PassContext:
    """Settings for the passes and builds inside a `with` block.

    opt_level: 0 to 3.
    required_pass, disabled_pass: names of passes that run, or do not, at any level.
    config: options of passes, "relay.FuseOps.max_depth"; unknown ones are refused.
    target: what is compiled for where `build` is not told.
    verify: checks the program after every pass.
    instruments: objects that are told of every pass (`PassInstrument`).
    """

    def __init__(
        self,
        opt_level: int = 3,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Sequence[object] | None = None,
        config: dict | None = None,
        target: str = "native",
        verify: bool = False,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
        self.instruments = list(instruments or ())
        for instrument in self.instruments:
            if not any(hasattr(instrument, method) for method in _METHODS):
                raise TypeError(f"{instrument!r} is no instrument: it has none of {_METHODS}")
        self.config = dict(config or {})
        self.target = target
        self.verify = verify
        _core.check_settings(self.settings())

    def settings(self) -> dict:
        """Returns the settings by name, for the compiler."""
        return dict(vars(self))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"relay.transform.PassContext({settings})"

    def __enter__(self) -> PassContext:
        if not hasattr(_active, "stack"):
            _active.stack = []
        for instrument in self.instruments:
            _call(instrument, "enter_pass_ctx")
        _active.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        stack = getattr(_active, "stack", None)
        if not stack or stack[-1] is not self:
            raise ValueError("this is not the innermost PassContext of the thread")
        stack.pop()
        for instrument in self.instruments:
            _call(instrument, "exit_pass_ctx")

    @staticmethod
    def current() -> PassContext:
        """Returns the innermost active context, or the defaults."""
        stack = getattr(_active, "stack", None)
        return stack[-1] if stack else PassContext()


# What an instrument is told of, of which it has one at least.
_METHODS = (
    "enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass",
)  # fmt: skip


def _call(instrument: object, method: str) -> None:
    getattr(instrument, method, lambda: None)()


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass; for an instrument behind a pass, the seconds that it took too."""

    name: str
    opt_level: int = 0
    required: list[str] = field(default_factory=list)
    traceable: bool = False
    doc: str = ""
    seconds: float = 0.0


class Pass:
    """A transformation of modules; `name` is what the compiler calls it.

    What a pass has in `options` is given by position or by name: `EtaExpand(expand_constructor=True)`.
    """

    name = ""
    opt_level = 0
    options: tuple[str, ...] = ()

    def __init__(self, *values: object, **named: object) -> None:
        if len(values) > len(self.options):
            raise TypeError(f"{self.name} takes {len(self.options)} options, not {len(values)}")
        given = dict(zip(self.options, values, strict=False))
        for option in named:
            if option not in self.options or option in given:
                known = ", ".join(self.options) or "none"
                raise TypeError(f"{self.name} cannot take {option}; its options: {known}")
        self.config = {f"relay.{self.name}.{k}": v for k, v in {**given, **named}.items()}
        _core.check_settings({"config": self.config})

    def settings(self) -> dict:
        """Returns the settings of the PassContext with this pass's options."""
        settings = PassContext.current().settings()
        settings["config"] = {**settings["config"], **self.config}
        return settings

    @property
    def info(self) -> PassInfo:
        """Name, level and what the pass does."""
        return PassInfo(self.name, self.opt_level, doc=inspect.getdoc(type(self)) or "")

    def __call__(self, mod: _core.IRModule) -> _core.IRModule:
        """Returns the transformed module, whatever the optimisation level is."""
        return self._run(mod, self.settings(), True)

    def _run(self, mod: _core.IRModule, settings: dict, always: bool) -> _core.IRModule:
        return _core.run_pass(self.name, mod, settings, always)

    def __repr__(self) -> str:
        options = ", ".join(f"{k.rsplit('.', 1)[1]}={v!r}" for k, v in self.config.items())
        return f"relay.transform.{self.name}({options})"


class Sequential(Pass):
    """Passes in order; those above the level of the PassContext are left out."""

    name = "Sequential"

    def __init__(self, passes: Sequence[Pass], opt_level: int | None = None) -> None:
        super().__init__()
        self.passes = list(passes)
        for step in self.passes:
            if not isinstance(step, Pass):
                raise TypeError(f"{step!r} is not a pass; relay.transform.FuseOps() is one")
        self.level = opt_level
        if opt_level is not None:
            PassContext(opt_level)

    def __call__(self, mod: _core.IRModule) -> _core.IRModule:
        for step in self.passes:
            if isinstance(step, Sequential):
                mod = step(mod)
                continue
            settings = step.settings()
            if self.level is not None:
                settings["opt_level"] = self.level
            mod = step._run(mod, settings, False)
        return mod

    def __repr__(self) -> str:
        return f"relay.transform.Sequential({self.passes!r})"


# ---- Passes in Python ----------------------------------------------------------------------------


class _PythonPass(Pass):
    """A pass that is a function of Python, on modules or on their functions."""

    of_functions = False

    def __init__(self, code: Callable, opt_level: int, name: str, required: Sequence[str]) -> None:
        self.name = name if "." in name else f"python.{name}"
        super().__init__()
        if not callable(code):
            raise TypeError(f"{code!r} is not a function that could be a pass")
        self.opt_level = opt_level
        self.required = list(required)
        self.__doc__ = inspect.getdoc(code) or f"The pass {name}."
        self.code = code
        takes_context = _takes_context(code, 3 if self.of_functions else 2)

        def call(*parts):
            return code(*parts, PassContext.current()) if takes_context else code(*parts)

        doc = self.__doc__.partition("\n")[0]
        self._pass = _core.PythonPass(
            call, self.name, opt_level, doc, self.of_functions, self.required
        )

    @property
    def info(self) -> PassInfo:
        """Name, level, the passes that run before, and what the pass does."""
        return PassInfo(self.name, self.opt_level, self.required, doc=self.__doc__ or "")

    def _run(self, mod: _core.IRModule, settings: dict, always: bool) -> _core.IRModule:
        return self._pass.run(mod, settings, always)


class ModulePass(_PythonPass):
    """A pass of Python on modules; `module_pass` makes one."""


class FunctionPass(_PythonPass):
    """A pass of Python on each function of a module; `function_pass` makes one."""

    of_functions = True


def _takes_context(code: Callable, most: int) -> bool:
    try:
        parameters = inspect.signature(code).parameters.values()
    except ValueError:
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= most or any(p.kind == p.VAR_POSITIONAL for p in parameters)


def _decorate(kind: type, method: str, code, opt_level, name, required, traceable):
    if opt_level is None:
        raise ValueError("a pass has an opt_level: it runs at this level and above")
    if traceable:
        raise TypeError("a pass is not traceable: it takes and gives programs")

    def make(code):
        label = name or f"{code.__module__}.{code.__qualname__}".replace("<locals>.", "")
        if not inspect.isclass(code):
            return kind(code, opt_level, label, required or ())
        if not hasattr(code, method):
            raise TypeError(f"the class of a pass has a method {method}")

        class Made(kind):
            def __init__(self, *args, **kwargs):
                self.instance = code(*args, **kwargs)
                super().__init__(getattr(self.instance, method), opt_level, label, required or ())

            def __getattr__(self, attribute):
                return getattr(self.__dict__["instance"], attribute)

        return functools.wraps(code, updated=())(Made)

    return make if code is None else make(code)


def module_pass(
    pass_func: Callable | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., Any]:
    """Makes a pass of a function (mod, ctx) -> mod, or of a class with a method transform_module.

        @relay.transform.module_pass(opt_level=1, name="mylib.Fold")
        def fold(mod, ctx): ...

    opt_level: the level of the PassContext from which it runs.
    name: with a namespace, "mylib.Fold"; the function's own by default.
    required: names of passes that run before it.
    """
    return _decorate(
        ModulePass, "transform_module", pass_func, opt_level, name, required, traceable
    )


def function_pass(
    pass_func: Callable | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., Any]:
    """Makes a pass of a function (func, mod, ctx) -> func, or of a class with transform_function.

    It is called for every function of the module but the primitive ones. The parameters are those of
    `module_pass`.
    """
    return _decorate(
        FunctionPass, "transform_function", pass_func, opt_level, name, required, traceable
    )


class _Added:
    """A pass in the pipeline; as a `with` block it takes it out again."""

    def __init__(self, name: str) -> None:
        self.name = name

    def remove(self) -> None:
        """Takes the pass out."""
        _core.remove_pass(self.name)

    def __enter__(self) -> _Added:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def add_pass(step: ModulePass | FunctionPass, place: str) -> _Added:
    """Puts a pass of Python into the optimisation pipeline, for every thread.

    place: "before:NAME" or "after:NAME", where NAME is a phase ("import", "structure", "simplify",
    "combine", "layout", "fusion", "normal_form") or a pass of the pipeline.
    Returns a handle: `remove()` takes the pass out, and so does the end of a `with` block. UserError
    E0312 for a place that does not exist and a name that is taken.
    """
    if not isinstance(step, _PythonPass):
        raise TypeError(f"{step!r} is not a pass of Python; module_pass makes one")
    step._pass.add(place)
    return _Added(step.name)


def remove_pass(step: Pass | str) -> None:
    """Takes a pass that was added out of the pipeline; UserError E0301 where there is none."""
    name = step if isinstance(step, str) else step.name
    if not _core.remove_pass(name):
        _core.check_settings({"required_pass": [name]})
        raise ValueError(f"{name} is Relay's own: disabled_pass leaves it out")


def PrintIR(header: str = "", show_meta_data: bool = False) -> ModulePass:
    """Returns a pass that prints the module and leaves it as it is."""

    def show(mod, ctx):
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}")
        return mod

    return ModulePass(show, 0, "relay.transform.PrintIR", ())


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> ModulePass:
    """Returns a pass that applies another to the functions whose names match, and leaves the others."""
    import re

    def apply(mod, ctx):
        after = transform(mod).functions
        chosen = {n: f for n, f in after.items() if re.fullmatch(func_name_regex, n)}
        if error_if_no_function_matches_regex and not chosen:
            raise ValueError(f"no function's name matches {func_name_regex!r}")
        for name, function in chosen.items():
            mod = mod.with_function(name, function)
        return mod

    return ModulePass(apply, 0, "relay.transform.ApplyPassToFunction", ())


# ---- Instruments ---------------------------------------------------------------------------------


class PassInstrument:
    """Is told of every pass; a class with some of these methods need not derive from it.

    with relay.transform.PassContext(instruments=[MyInstrument()]):
        relay.build(mod)
    """

    def enter_pass_ctx(self) -> None:
        """Called when the context begins."""

    def exit_pass_ctx(self) -> None:
        """Called when the context ends."""

    def should_run(self, mod: _core.IRModule, info: PassInfo) -> bool:
        """Whether the pass runs; what other passes need cannot be left out."""
        return True

    def run_before_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Called with the program that the pass is given."""

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Called with what the pass gave; `info.seconds` is the time that it took."""


def pass_instrument(pi_cls: type | None = None) -> Callable[..., Any]:
    """Makes an instrument class of a class that has some of PassInstrument's methods."""

    def make(cls):
        return functools.wraps(cls, updated=())(type(cls.__name__, (cls, PassInstrument), {}))

    return make if pi_cls is None else make(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Collects the time of every pass."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Notes the time."""
        self.rows.append((info.name, info.seconds))

    def render(self) -> str:
        """Returns a table of the passes in the order in which they ran, with milliseconds."""
        total = sum(seconds for _, seconds in self.rows)
        lines = [f"{seconds * 1e3:9.3f} ms  {name}" for name, seconds in self.rows]
        return "\n".join([*lines, f"{total * 1e3:9.3f} ms  all passes"])


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of these names."""

    def __init__(
        self,
        print_before_pass_names: Iterable[str] = (),
        print_after_pass_names: Iterable[str] = (),
    ) -> None:
        self.before = _names("print_before_pass_names", print_before_pass_names)
        self.after = _names("print_after_pass_names", print_after_pass_names)

    def run_before_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        if info.name in self.before:
            print(f"Before {info.name}:\n{mod}")

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        if info.name in self.after:
            print(f"After {info.name}:\n{mod}")


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        print(f"Before {info.name}:\n{mod}")


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        print(f"After {info.name}:\n{mod}")


# ---- Functions -----------------------------------------------------------------------------------


class Defunctionalization(Pass):
    """Makes data of functions used as values.

    `Defunctionalization()` is the pass; `Defunctionalization(func, mod)` is the function after it,
    in terms of the functions and data types of the program, as the pass makes it.
    """

    name = "Defunctionalization"

    def __new__(cls, func: _core.Function | None = None, mod: _core.IRModule | None = None):
        if func is None:
            return super().__new__(cls)
        return cls()(_with("main", func, mod)).functions["main"]

    def __init__(self) -> None:
        super().__init__()


def _with(name: str, func: _core.Function, mod: _core.IRModule | None) -> _core.IRModule:
    if not isinstance(func, _core.Function):
        raise TypeError(f"a relay.Function is needed, not {func!r}")
    if mod is not None:
        return mod.with_function(name, func)
    return _core.IRModule.from_expr(func).with_function(name, func)


def _describe(option: tuple[str, str, str]) -> str:
    name, kind, doc = option
    return f"{name} ({kind}): {doc}"


def _install() -> list[str]:
    names = []
    for name, level, doc, options in _core.pass_rows():
        members = {
            "name": name,
            "opt_level": level,
            "options": tuple(option for option, _, _ in options),
            "__doc__": "\n".join([doc, *([""] if options else []), *map(_describe, options)]),
            "__module__": __name__,
        }
        made = globals().setdefault(name, type(name, (Pass,), members))
        made.opt_level = level
        names.append(name)
    return names


def _with_expr(step: Pass, expr: _core.Expr, mod: _core.IRModule | None = None) -> _core.Expr:
    """The expression after a pass."""
    function = expr if isinstance(expr, _core.Function) else _core.Function([], expr)
    free = [] if isinstance(expr, _core.Function) else _free_vars(expr)
    if free:
        function = _core.Function(free, expr)
    whole = _core.IRModule.from_expr(function)
    if mod is not None:
        whole = mod.with_function("main", function)
    out = step(whole)["main"]
    return out if isinstance(expr, _core.Function) else out.body


def _pass(name: str) -> Pass:
    """A pass of the compiler's own; their classes are made when the module is loaded."""
    return globals()[name]()


def _free_vars(expr: _core.Expr) -> list[_core.Var]:
    from relay.analysis import free_vars

    return free_vars(expr)


def FoldConstantExpr(
    expr: _core.Expr, mod: _core.IRModule | None = None, fold_qnn: bool = False
) -> _core.Expr:
    """Returns the expression with what is constant computed; `mod` has the functions that it calls."""
    return _with_expr(_pass("FoldConstant"), expr, mod)


def ToANormalFormExpr(e: _core.Expr) -> _core.Expr:
    """Returns the expression in A-normal form."""
    return _with_expr(_pass("ToANormalForm"), e)


def InferTypeLocal(expr: _core.Expr) -> _core.Type:
    """Returns the type of an expression."""
    return _core.infer_type(expr).checked_type


def to_cps(func: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns the function in continuation-passing style: its last parameter takes the result.

    `mod` has the functions that it calls; where there are any, the result calls their forms of that
    style, which `ToCPS()(mod)` has. ValueError when the function has no such form: it handles data
    types that hold functions.
    """
    whole = _with("func", func, mod)
    out = _core.run_pass("ToCPS", whole, PassContext.current().settings(), True).functions
    if "func_cps" not in out:
        raise ValueError("the function handles data types that hold functions")
    return out["func_cps"]


def un_cps(func: _core.Function) -> _core.Function:
    """Returns a function of direct style that calls one that `to_cps` made."""
    last = (
        func.params[-1].type_annotation
        if isinstance(func, _core.Function) and func.params
        else None
    )
    if not isinstance(last, _core.FuncType):
        raise TypeError(
            "un_cps takes a function that to_cps made: its last parameter is a function"
        )
    params = [_core.Var(p.name_hint, p.type_annotation) for p in func.params[:-1]]
    result = last.arg_types[0]
    value = _core.Var("r", result)
    identity = _core.Function([value], value, result)
    return _core.Function(params, _core.Call(func, [*params, identity]), result)


def add_derivative(
    mod: _core.IRModule,
    func: str = "main",
    name: str = "gradient",
    kind: str = "gradient",
    mode: str = "higher_order",
) -> _core.IRModule:
    """Returns the module with a derivative of @func as the function @name.

    kind: "gradient", "vjp", "jvp", "hvp", "jacobian" or "hessian": the functions of this module with
    these names say what each of them computes.
    mode: "higher_order" for the whole language, "first_order" for plain dataflow (gradients only).
    """
    settings = PassContext.current().settings()
    return _core.add_derivative(mod, func, name, kind, mode, settings)[0]


def _derivative(
    expr: _core.Expr, mod: _core.IRModule | None, kind: str, mode: str = "higher_order"
) -> _core.Function:
    if not isinstance(expr, _core.Function):
        raise TypeError(f"a relay.Function is needed, not {expr!r}")
    known = set() if mod is None else set(mod.functions)
    of, name = (_unused(base, known) for base in ("differentiated", "derivative"))
    whole = _with(of, expr, mod)
    settings = PassContext.current().settings()
    out, alone = _core.add_derivative(whole, of, name, kind, mode, settings)
    if not alone:
        raise ValueError(
            f"the {kind} of this function needs functions or data types of its own: "
            "relay.transform.add_derivative gives the module that has them"
        )
    return out.functions[name]


def _unused(base: str, known: set[str]) -> str:
    while base in known:
        base += "_"
    return base


def gradient(
    expr: _core.Function, mod: _core.IRModule | None = None, mode: str = "higher_order"
) -> _core.Function:
    """Returns fn (args) -> (expr(args), (the gradient of each argument)).

    The gradient is that of the sum of all floats of the result. It has the type of the argument; what
    holds no floats has the empty tuple. `mod` has the functions and data types that the function uses.
    mode: "higher_order" for the whole language, "first_order" for plain dataflow.
    ValueError when the gradient needs functions or data types of its own, as that of a recursion over
    a list does: `add_derivative` gives the module with them.
    """
    return _derivative(expr, mod, "gradient", mode)


def vjp(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args, w) -> (expr(args), gradients) for the result weighted by `w`."""
    return _derivative(expr, mod, "vjp")


def jvp(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args, tangents) -> (expr(args), how it changes along the tangents)."""
    return _derivative(expr, mod, "jvp")


def hvp(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args, tangents) -> how the gradients change along the tangents."""
    return _derivative(expr, mod, "hvp")


def jacobian(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args) -> (the derivatives of each element of the result by each argument).

    Each has the sizes of the result, then those of the argument; all are tensors.
    """
    return _derivative(expr, mod, "jacobian")


def hessian(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (x) -> (the second derivatives,) for a function of one tensor."""
    return _derivative(expr, mod, "hessian")


value_and_grad = gradient

build_config = PassContext

Axes = int | None | tuple["Axes", ...]


def add_batched(
    mod: _core.IRModule,
    func: str = "main",
    name: str = "batched",
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    strict: bool = False,
) -> _core.IRModule:
    """Returns the module with @func for a batch as the function @name.

    @func computes one lane: `vmap` says what the arguments mean.
    """
    settings = PassContext.current().settings()
    return _core.add_batched(mod, func, name, in_axes, out_axes, axis_size, strict, settings)[0]


def vmap(
    expr: _core.Function,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    mod: _core.IRModule | None = None,
    strict: bool = False,
) -> _core.Function:
    """Returns the function that computes `expr` in all lanes of a batch.

    in_axes: the axis of each parameter along which the lanes are, None for what is the same in all
    lanes; one for all parameters, or a tuple with an entry for each of them. The entry of a tuple may
    be a tuple for its fields. Axes are those of the parameter of the result: 0 puts the lanes first.
    out_axes: the same for the result.
    axis_size: how many lanes there are; None: any number.
    mod: the functions and data types that `expr` uses.
    strict: refuse (E1104) what would be computed one lane after the other; `lane_by_lane` lists it.

    ValueError when the batch needs functions or data types of its own, as that of a recursive function
    of the module does: `add_batched` gives the module with them.
    """
    batched, alone, _, name = _batched(expr, in_axes, out_axes, axis_size, mod, strict)
    if not alone:
        raise ValueError(
            "the batch of this function needs functions or data types of its own: "
            "relay.transform.add_batched gives the module that has them"
        )
    return batched.functions[name]


def lane_by_lane(
    expr: _core.Function,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    mod: _core.IRModule | None = None,
) -> list[tuple[str, str, str]]:
    """Lists what `vmap` leaves to a loop over the lanes: what it is, why, and where it stands."""
    return _batched(expr, in_axes, out_axes, axis_size, mod, False)[2]


def _batched(
    expr: _core.Expr,
    in_axes: Axes,
    out_axes: Axes,
    axis_size: int | None,
    mod: _core.IRModule | None,
    strict: bool,
) -> tuple[_core.IRModule, bool, list[tuple[str, str, str]], str]:
    if not isinstance(expr, _core.Function):
        raise TypeError(f"a relay.Function is needed, not {expr!r}")
    known = set() if mod is None else set(mod.functions)
    of, name = (_unused(base, known) for base in ("lane", "batched"))
    settings = PassContext.current().settings()
    whole = _with(of, expr, mod)
    return (
        *_core.add_batched(whole, of, name, in_axes, out_axes, axis_size, strict, settings),
        name,
    )


__all__ = [
    "ApplyPassToFunction",
    "BatchingOps",
    "ChangeBatch",
    "FoldConstantExpr",
    "FunctionPass",
    "InferTypeLocal",
    "MergeComposite",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintIR",
    "Sequential",
    "ToANormalFormExpr",
    "AnnotateSpans",
    "FlattenAtrousConv",
    "SimplifyFCTranspose",
    "add_batched",
    "add_derivative",
    "add_pass",
    "build_config",
    "function_pass",
    "gradient",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "module_pass",
    "pass_instrument",
    "recast",
    "remove_pass",
    "lane_by_lane",
    "to_cps",
    "un_cps",
    "value_and_grad",
    "vjp",
    "vmap",
    *_install(),
]

# Made of what is above.
from relay._known_passes import (  # noqa: E402
    AnnotateSpans,
    BatchingOps,
    ChangeBatch,
    FlattenAtrousConv,
    MergeComposite,
    SimplifyFCTranspose,
    recast,
)

if not TYPE_CHECKING:

    def __getattr__(name):
        from relay._wrappers import absent

        raise absent("relay.transform", name)
