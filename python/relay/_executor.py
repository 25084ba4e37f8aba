"""`create_executor`: runs a module in the evaluator or compiled."""

from __future__ import annotations

from collections.abc import Callable
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
        self, mod: _core.IRModule | OpenModel, make: Callable[[], Callable[..., Any]]
    ) -> None:
        self.mod = mod
        self._make = make

    def evaluate(self) -> Callable[..., Any]:
        """Returns @main as a function of arrays."""
        return self._make()

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
    """Returns an executor of a module.

    kind: "debug" is the reference evaluator, which takes no target and no opt_level; "vm", "graph"
        and "aot" compile the module.
    device: kept for compatibility; only one is supported.
    params: values of @main's parameters by name, which become constants.
    """
    if mod is None:
        raise wrong("create_executor() needs a module")
    refuse("relay.create_executor", {"device": device})
    if kind == "debug":
        if target is not None or opt_level is not None:
            raise wrong('the executor "debug" takes no target and no opt_level')

        def evaluation(module: _core.IRModule) -> Evaluation:
            return Evaluation(_core.evaluator(module, {} if params is None else params))

        if isinstance(mod, OpenModel):
            return Executor(mod, lambda: partial(_call, Programs(mod, evaluation)))
        module = as_module(mod)
        return Executor(module, lambda: evaluation(module))
    if kind in ("vm", "graph", "aot"):
        module = mod if isinstance(mod, OpenModel) else as_module(mod)
        return Executor(module, lambda: build(module, target, params=params, opt_level=opt_level))
    raise wrong(f'there is no executor "{kind}"; there are "debug" and "vm"')
