"""`create_executor`: Relay's other way to run a module."""

from __future__ import annotations

from collections.abc import Callable

from relay import _core
from relay._build import Slot, as_module, build


class Evaluation:
    """A program on the reference evaluator; calling it runs `main`.

    It says what a program means: operators are interpreted from their compute rules, nothing is
    compiled or optimised. It is slow, and one thread at a time runs.
    """

    def __init__(self, module: _core.Evaluator) -> None:
        self._module = module

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs `main` on arrays (NumPy or DLPack), by position or input name.

        Returns a NumPy array, or a tuple of them when the program gives a tuple.
        """
        return self._module.run("main", args, kwargs)

    def run(self, function: str, *args: object, **kwargs: object) -> object:
        """Runs another function of the program."""
        return self._module.run(function, args, kwargs)

    def input_info(self, function: str = "main") -> list[Slot]:
        """Returns the parameters of a function."""
        return [Slot(*row) for row in self._module.params(function)]

    def output_info(self, function: str = "main") -> list[Slot]:
        """Returns the tensors of a function's result."""
        return [Slot(*row) for row in self._module.results(function)]


class Executor:
    """Runs functions of a module."""

    def __init__(self, mod: _core.IRModule, make: Callable[[], Callable[..., object]]) -> None:
        self.mod = mod
        self._make = make

    def evaluate(self) -> Callable[..., object]:
        """Returns @main as a function of arrays."""
        return self._make()


def create_executor(
    kind: str = "debug",
    mod: _core.IRModule | _core.Expr | None = None,
    target: str | None = None,
    params: dict | None = None,
    opt_level: int | None = None,
) -> Executor:
    """Returns an executor of a module.

    kind: "debug" is the reference evaluator, which ignores target and opt_level; "vm", "graph" and
    "aot" compile the module.
    params: values of @main's parameters by name, which become constants.
    """
    if mod is None:
        raise TypeError("create_executor() needs a module")
    mod = as_module(mod)
    if kind == "debug":
        return Executor(mod, lambda: Evaluation(_core.evaluator(mod, params or {})))
    if kind in ("vm", "graph", "aot"):
        return Executor(mod, lambda: build(mod, target, params, opt_level))
    raise _core.RelayError(f'there is no executor "{kind}"; there are "debug" and "vm"')
