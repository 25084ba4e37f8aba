"""From a module to something that runs."""

from __future__ import annotations

import os
from dataclasses import dataclass

from relay import _core
from relay.transform import PassContext


@dataclass(frozen=True)
class Slot:
    """A parameter or result of a compiled function.

    A dimension of `shape` is a size, the name of a symbolic one, or None; `shape`, `dtype` and
    `device` ("cpu") are None for anything but a tensor.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None
    dtype: str | None
    device: str | None


class Executable:
    """A compiled program; calling it runs `main`. Any number of threads may run it at once."""

    def __init__(self, module: _core.Module) -> None:
        self._module = module

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs `main` on arrays (NumPy or DLPack, without a copy), by position or input name.

        Returns a NumPy array, or a tuple of them when the program gives a tuple.
        """
        return self._module.run("main", args, kwargs)

    def run(self, function: str, *args: object, **kwargs: object) -> object:
        """Runs another function of the program."""
        return self._module.run(function, args, kwargs)

    def export_library(self, path: str | os.PathLike, overwrite: bool = True) -> None:
        """Writes one deployable file, which `relay.runtime.load_module` and the C API load."""
        self._module.export_library(os.fspath(path), overwrite)

    @property
    def function_names(self) -> list[str]:
        """The functions that may be run."""
        return self._module.function_names

    @property
    def num_threads(self) -> int:
        """The threads that kernels are split over."""
        return self._module.num_threads

    @property
    def metadata(self) -> str:
        """Provenance and kernels, as JSON text."""
        return self._module.metadata

    def input_info(self, function: str = "main") -> list[Slot]:
        """Returns the parameters of a function."""
        return [Slot(*row) for row in self._module.params(function)]

    def output_info(self, function: str = "main") -> list[Slot]:
        """Returns the tensors of a function's result."""
        return [Slot(*row) for row in self._module.results(function)]


def _settings(target: str | None, opt_level: int | None, num_threads: int = 0) -> dict:
    settings = PassContext.current().settings()
    settings["num_threads"] = num_threads
    if target is not None:
        settings["target"] = target
    if opt_level is not None:
        settings["opt_level"] = opt_level
    return settings


def build(
    mod: _core.IRModule | _core.Expr,
    target: str | None = None,
    params: dict | None = None,
    opt_level: int | None = None,
    num_threads: int = 0,
    cache: bool = True,
) -> Executable:
    """Returns the compiled program.

    target: "native", "x86-64-v3", "llvm -mcpu=znver4", ...; None: the PassContext's, else native.
    params: values of @main's parameters by name, which become constants.
    opt_level: 0 to 3; None: the PassContext's, else 3.
    num_threads: threads that kernels are split over; 0: what the machine offers.
    cache: use and keep compiled kernels in the user's cache folder (see `relay cache`).
    """
    settings = _settings(target, opt_level, num_threads) | {"cache": cache}
    return Executable(_core.build(as_module(mod), params or {}, settings))


def optimize(
    mod: _core.IRModule | _core.Expr,
    target: str | None = None,
    params: dict | None = None,
    opt_level: int | None = None,
) -> _core.IRModule:
    """Returns the module after the optimisation pipeline for the target."""
    bound = _core.bind_params(as_module(mod), params or {})
    return _core.optimize(bound, _settings(target, opt_level))


def as_module(mod: _core.IRModule | _core.Expr) -> _core.IRModule:
    """Returns a module; an expression becomes its @main."""
    return _core.IRModule.from_expr(mod) if isinstance(mod, _core.Expr) else mod
