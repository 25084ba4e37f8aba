"""Passes: each is a class whose objects map a module to a module."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from relay import _core

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
    """

    def __init__(
        self,
        opt_level: int = 3,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        config: dict | None = None,
        target: str = "native",
        verify: bool = False,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
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
        _active.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        stack = getattr(_active, "stack", None)
        if not stack or stack[-1] is not self:
            raise ValueError("this is not the innermost PassContext of the thread")
        stack.pop()

    @staticmethod
    def current() -> PassContext:
        """Returns the innermost active context, or the defaults."""
        stack = getattr(_active, "stack", None)
        return stack[-1] if stack else PassContext()


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

    def __call__(self, mod: _core.IRModule) -> _core.IRModule:
        """Returns the transformed module, whatever the optimisation level is."""
        return _core.run_pass(self.name, mod, self.settings(), True)

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
            mod = _core.run_pass(step.name, mod, settings, False)
        return mod

    def __repr__(self) -> str:
        return f"relay.transform.Sequential({self.passes!r})"


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


def _install() -> list[str]:
    names = []
    for name, level, doc, options in _core.pass_rows():
        members = {
            "name": name,
            "opt_level": level,
            "options": tuple(option.partition(":")[0] for option in options.split()),
            "__doc__": doc,
            "__module__": __name__,
        }
        made = globals().setdefault(name, type(name, (Pass,), members))
        made.opt_level = level
        names.append(name)
    return names


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

__all__ = [
    "Pass",
    "PassContext",
    "Sequential",
    "add_derivative",
    "gradient",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "to_cps",
    "un_cps",
    "value_and_grad",
    "vjp",
    *_install(),
]
