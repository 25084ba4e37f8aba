"""`create_executor`: Relay's other way to run a module."""

from __future__ import annotations

from collections.abc import Callable

from relay import _core
from relay._build import as_module, build


class Executor:
    """Evaluates functions of a module."""

    def __init__(self, mod: _core.IRModule, **options: object) -> None:
        self.mod = mod
        self.options = options

    def evaluate(self) -> Callable[..., object]:
        """Returns @main as a function of arrays."""
        return build(self.mod, **self.options)


def create_executor(
    kind: str = "debug",
    mod: _core.IRModule | _core.Expr | None = None,
    target: str | None = None,
    params: dict | None = None,
    opt_level: int | None = None,
) -> Executor:
    """Returns an executor of a module: "vm" and "graph" compile it; "debug" is the evaluator."""
    if mod is None:
        raise TypeError("create_executor() needs a module")
    if kind in ("vm", "graph", "aot"):
        options = {"target": target, "params": params, "opt_level": opt_level}
        return Executor(as_module(mod), **options)
    if kind == "debug":
        raise _core.RelayError('this build has no reference evaluator; use the executor "vm"')
    raise _core.RelayError(f'there is no executor "{kind}"; there are "debug" and "vm"')
