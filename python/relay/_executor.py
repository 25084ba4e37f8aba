"""`create_executor`: runs a module in the evaluator or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from relay import _core
from relay._build import Slot, as_module, build
from relay._errors import refuse, wrong
from relay._specialise import OpenModel, Programs


class Evaluation:
    """A program on the reference evaluator; calling it runs `main`.

    It defines the meaning of a program: operators are interpreted from their compute rules, without
    compilation or optimisation. It is slow, and runs one thread at a time.
    """

    def __init__(self, module: _core.Evaluator) -> None:
        self._module = module

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Runs `main`; arguments and results are those of an `Executable`."""
        return self._module.run("main", args, kwargs)

    def run(self, function: str, /, *args: object, **kwargs: object) -> Any:
        """Runs another function of the program."""
        return self._module.run(function, args, kwargs)

    def __repr__(self) -> str:
        return f"<relay.Evaluation of {self._module.module!r}>"

    def input_info(self, function: str = "main") -> list[Slot]:
        """Returns the parameters of a function."""
        return [Slot(*row) for row in self._module.params(function)]

    def output_info(self, function: str = "main") -> list[Slot]:
        """Returns the tensors of a function's result."""
        return [Slot(*row) for row in self._module.results(function)]


class Executor:
    """Runs functions of a module."""

    def __init__(
        self,
        mod: _core.IRModule | OpenModel,
        make: Callable[[_core.IRModule | OpenModel], Callable[..., Any]],
    ) -> None:
        self.mod = mod
        self._make = make

    def evaluate(
        self, expr: _core.Expr | None = None, binds: Mapping[_core.Var, object] | None = None
    ) -> Any:
        """Returns @main, or another function, as a function of arrays; the value of another expression.

        expr: a function or a GlobalVar of the module; or an expression, which may call the module's
            functions and is evaluated at once.
        binds: values of free variables of `expr`.
        """
        if expr is None:
            if binds:
                raise wrong("evaluate() binds variables of an expression, and none is given")
            return self._make(self.mod)
        if not isinstance(self.mod, _core.IRModule):
            raise self.mod.error
        if not isinstance(expr, _core.Expr):
            raise wrong(f"evaluate() takes an expression, not {type(expr).__name__}")
        for variable in binds or ():
            if not isinstance(variable, _core.Var):
                raise wrong(f"evaluate() binds values to variables: {variable!r} is not a variable")
        if binds:
            values = [v if isinstance(v, _core.Expr) else _core.Constant(v) for v in binds.values()]
            for variable, value in zip(reversed(binds), reversed(values), strict=True):
                expr = _core.Let(variable, value, expr)
        if isinstance(expr, _core.GlobalVar):
            expr = self.mod[expr.name_hint]
        if isinstance(expr, _core.Function):
            return self._make(self.mod.with_function("main", expr))
        return self._make(self.mod.with_function("main", _core.Function([], expr)))()

    def __repr__(self) -> str:
        return f"<relay.Executor of {self.mod!r}>"


def _call(programs: Programs, /, *args: object, **kwargs: object) -> Any:
    return programs(args, kwargs)


def create_executor(
    kind: str = "debug",
    mod: _core.IRModule | _core.Expr | OpenModel | None = None,
    device: None = None,
    target: str | None = None,
    params: dict[str, Any] | None = None,
    opt_level: int | None = None,
) -> Executor:
    """Returns an executor of a module; without one, of an empty module, for `evaluate(expr)`.

    kind: "debug" is the reference evaluator, which takes no target and no opt_level; "vm", "graph"
        and "aot" compile the module.
    device: kept for compatibility, None; the target says where the program runs.
    params: values of @main's parameters by name, which become constants.
    """
    refuse("relay.create_executor", {"device": device})
    if mod is None:
        mod = _core.IRModule()
    whole = mod if isinstance(mod, OpenModel) else as_module(mod)
    if kind == "debug":
        if target is not None or opt_level is not None:
            raise wrong('the executor "debug" takes no target and no opt_level')

        def evaluation(module: _core.IRModule) -> Evaluation:
            return Evaluation(_core.evaluator(module, {} if params is None else params))

        def evaluated(module: Any) -> Callable[..., Any]:
            if isinstance(module, OpenModel):
                return partial(_call, Programs(module, evaluation))
            return evaluation(module)

        return Executor(whole, evaluated)
    if kind in ("vm", "graph", "aot"):
        return Executor(
            whole, lambda module: build(module, target, params=params, opt_level=opt_level)
        )
    raise wrong(f'there is no executor "{kind}"; there are "debug" and "vm"')
