"""Compilation of a module to an executable."""

from __future__ import annotations

import html
import json
import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay import _core
from relay._errors import refuse, wrong
from relay._pass.passes import PassContext
from relay._weights import load_weights

if TYPE_CHECKING:
    from relay._specialise import OpenModel


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


@dataclass(frozen=True)
class Donation:
    """An input whose memory an output reuses: in place, or by a copy at the end of the run."""

    input: str
    output: str
    in_place: bool


class Executable:
    """A compiled program; calling it runs `main`. Any number of threads may run it at once."""

    def __init__(
        self, module: _core.Module, source: Callable[[], _core.IRModule | None] | None = None
    ) -> None:
        self._module = module
        # Returns the module that it was built from while that exists; None for a loaded program.
        self._source = source

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Runs `main` on arrays (NumPy or DLPack, without a copy), by position or input name.

        Numbers and lists of them become tensors if the conversion is exact (floats may be rounded). A
        parameter of type List takes a list, an Option a value or None, a tuple a tuple, a reference a
        RefValue, a function a FunctionValue that this program returned, any other data type a
        ConstructorValue (relay.adt makes and matches them); results are given in the same way,
        tensors as NumPy arrays. Of a loaded artifact only tensors and tuples are known. An argument on a
        device (`relay.runtime.NDArray`, DLPack) is copied where the program needs it elsewhere; a result
        that the program gives on a device is a `relay.runtime.NDArray`.
        """
        return self._module.run("main", args, kwargs)

    def run(self, function: str, /, *args: object, **kwargs: object) -> Any:
        """Runs another function of the program."""
        return self._module.run(function, args, kwargs)

    def prepack(self, /, **inputs: object) -> Prepacked:
        """Sets the inputs that were named in `relay.build(..., prepack=[...])` and returns the program.

        The function main.prepack computes the values that depend on them only, such as weights in the panels
        that kernels read, and calls of the result do not. Call this again when the inputs change.
        """
        once = _core.prepack_function("main")
        known = {slot.name for slot in self.input_info()}
        first = {s.name for s in self.input_info(once)} if once in self.function_names else set()
        for name in inputs:
            if name not in known | first:
                raise wrong(f"the program has no input {name!r}")
        values = {name: value for name, value in inputs.items() if name in known}
        if first:
            made = self.run(once, **{n: value for n, value in inputs.items() if n in first})
            values |= {
                slot.name: value for slot, value in zip(self.output_info(once), made, strict=True)
            }
        return Prepacked(self, values)

    def __repr__(self) -> str:
        return f"<relay.Executable: {describe(self)}>"

    def _repr_html_(self) -> str:
        """The form that notebooks show: the functions with their types, and the kernels, folded."""
        kernels = json.loads(self.metadata).get("kernels", [])
        rows = "".join(
            f"<tr><td>{html.escape(str(k.get('name', '')))}</td>"
            f"<td>{html.escape(str(k.get('schedule', '')))}</td></tr>"
            for k in kernels
        )
        table = f"<table><tr><th>kernel</th><th>schedule</th></tr>{rows}</table>"
        return (
            f"<details><summary><code>{html.escape(repr(self))}</code></summary>{table}</details>"
        )

    def __copy__(self) -> Executable:
        return self

    def __deepcopy__(self, memo: object) -> Executable:
        """Returns the program itself: it is immutable."""
        return self

    def __reduce__(self) -> tuple:
        """Pickles the file that `export_library` writes; the copy knows only what the artifact stores."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.so"
            self.export_library(path)
            return _restored, (path.read_bytes(), self.num_threads)

    def export_library(self, path: str | os.PathLike[str], overwrite: bool = True) -> None:
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

    def donations(self, function: str = "main") -> list[Donation]:
        """Returns the inputs of a function that are donated to outputs."""
        inputs, outputs = self.input_info(function), self.output_info(function)
        return [
            Donation(inputs[i].name, outputs[o].name, in_place)
            for i, o, in_place in self._module.donations(function)
        ]


class Prepacked:
    """A program whose prepacked inputs are set; calling it runs `main` with the others."""

    def __init__(self, executable: Executable, values: dict[str, Any]) -> None:
        self._executable = executable
        self._values = values

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Runs `main`, as `Executable.__call__` does, without the inputs that are set."""
        return self._executable(*args, **kwargs, **self._values)

    def __repr__(self) -> str:
        return f"<relay.Prepacked: {', '.join(self._values)} of {self._executable!r}>"


def _restored(contents: bytes, num_threads: int) -> Executable:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.so"
        path.write_bytes(contents)
        return Executable(_core.load_module(str(path), num_threads))


def describe(program: object) -> str:
    """Returns the functions of a program with their types: "@main(x: float32) -> float32"."""
    lines = []
    for name in program.function_names[:4]:
        inputs = ", ".join(f"{slot.name}: {slot.type}" for slot in program.input_info(name))
        results = ", ".join(slot.type for slot in program.output_info(name))
        lines.append(f"@{name}({inputs}) -> {results}")
    more = len(program.function_names) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def target_text(target: str | Mapping[str, str]) -> str:
    """The text of a target: "native; opencl" for {"cpu": "native", "gpu": "opencl"}."""
    if not isinstance(target, Mapping):
        return target
    if not target or not all(isinstance(part, str) for item in target.items() for part in item):
        raise wrong(f'a target is a text, or a map such as {{"gpu": "opencl"}}, not {target!r}')
    devices = [text for name, text in target.items() if name != "cpu"]
    return "; ".join([target.get("cpu", "native"), *devices])


def _settings(
    target: str | Mapping[str, str] | None, opt_level: int | None, num_threads: int = 0
) -> dict[str, Any]:
    settings = PassContext.current().settings()
    settings["num_threads"] = num_threads
    if target is not None:
        settings["target"] = target_text(target)
    if opt_level is not None:
        settings["opt_level"] = opt_level
    return settings


def build(
    ir_mod: _core.IRModule | _core.Expr | OpenModel,
    target: str | Mapping[str, str] | None = None,
    target_host: None = None,
    executor: None = None,
    runtime: None = None,
    workspace_memory_pools: None = None,
    constant_memory_pools: None = None,
    params: dict[str, Any] | str | os.PathLike[str] | None = None,
    mod_name: str = "default",
    *,
    opt_level: int | None = None,
    num_threads: int = 0,
    cache: bool = True,
    donate: dict[str, str | int] | None = None,
    prepack: Sequence[str] = (),
    param_devices: Mapping[str, str] | None = None,
    result_devices: str | Mapping[str | int, str] | None = None,
    dims: dict[str, tuple[int, int]] | None = None,
    hot: dict[str, Sequence[int]] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Executable:
    """Returns the compiled program.

    For a `relay.frontend.OpenModel`, the program compiles each case of the inputs that determine the rank
    when it first occurs, and keeps the last 16 (`cache_info`).

    target: "native", "x86-64-v3", "llvm -mcpu=znver4 -l2=1M", ...; None: the PassContext's, else native.
        All targets but native give equal programs on every build machine. A program for a target that this
        machine cannot run is built and exported; running it is error E0610. A host and devices are
        "native; opencl", or {"cpu": "native", "gpu": "opencl"}: `relay.annotation.on_device` places
        operators, and a program that places none computes on the first device what it supports.
    params: values of @main's parameters by name, which become constants; or the path of a file of weights,
        as `relay.frontend.load_weights` reads it.
    opt_level: 0 to 3; None: the PassContext's, else 3.
    num_threads: threads over which kernels are split; 0: the target's number (-num-threads=N), and to
        run them the number that the machine provides.
    cache: use and keep compiled kernels in the user's cache folder (see `relay cache`).
    donate: inputs of @main that callers give up, each with the output, by name or number, that is
        written into its memory: {"past": "present"}. A call changes the array that it receives, and
        returns that array; an array that is read-only, not contiguous, of another dtype, or in the
        memory of another input is refused.
    prepack: inputs of @main that are set once for many calls, such as weights that are not constants:
        `Executable.prepack` sets them, and computes all values that depend on them only.
    param_devices: inputs of @main that are in the memory of a device, {"x": "opencl:0"}: an array that is
        there is used as it is (`relay.runtime.array`, or a tensor of another library), any other is copied.
    result_devices: where results of @main stay, "opencl:0" for all, or {"y": "opencl:0"} by the name or
        number of each: calls return them as `relay.runtime.NDArray`. Other results are NumPy arrays.
    dims: the least and the greatest size of named dimensions of @main, which each run checks.
    hot: likely sizes of named dimensions: kernels are specialised for each.
    progress: called with a phase of the compilation, the amount done and the total (0: unknown), from any
        thread, one call at a time. An exception in it ends the compilation (E0314).
    The other parameters are those of the first Relay, and are refused if they are given.
    """
    refuse(
        "relay.build",
        {
            "target_host": target_host,
            "executor": executor,
            "runtime": runtime,
            "workspace_memory_pools": workspace_memory_pools,
            "constant_memory_pools": constant_memory_pools,
        },
    )
    if mod_name != "default":
        raise wrong("relay.build() takes no mod_name: a library has its own name space")
    settings = _settings(target, opt_level, num_threads) | {"cache": cache}
    none = lambda given: {} if given is None else given  # noqa: E731
    settings |= {"dims": none(dims), "hot": none(hot), "progress": progress}

    def make(mod: _core.IRModule) -> Executable:
        bound = mod if params is None else _core.bind_params(mod, _weights(params))
        on = {"": result_devices} if isinstance(result_devices, str) else none(result_devices)
        built = _core.build(bound, {}, settings, none(donate), prepack, none(param_devices), on)
        return Executable(built, _source_of(bound))

    if hasattr(ir_mod, "specialised"):
        return ir_mod._executable(make)
    return make(as_module(ir_mod))


def _weights(params: dict[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
    """The values of parameters by name, read from a file where a path is given."""
    if not isinstance(params, (str, os.PathLike)):
        return params
    return load_weights(params)


# The most bytes of constants with which a program keeps its module alive.
_KEPT = 1 << 20


def _source_of(mod: _core.IRModule) -> Callable[[], _core.IRModule | None]:
    """A function that returns the module while it exists; weights are in memory once, in packed form."""
    return weakref.ref(mod) if _core.constant_bytes(mod) > _KEPT else lambda: mod


def optimize(
    mod: _core.IRModule | _core.Expr,
    target: str | Mapping[str, str] | None = None,
    params: dict[str, Any] | None = None,
    opt_level: int | None = None,
) -> _core.IRModule:
    """Returns the module after the optimisation pipeline for the target."""
    bound = _core.bind_params(as_module(mod), {} if params is None else params)
    return _core.optimize(bound, _settings(target, opt_level))


def as_module(mod: _core.IRModule | _core.Expr) -> _core.IRModule:
    """Returns a module; an expression becomes its @main."""
    if isinstance(mod, _core.IRModule):
        return mod
    if isinstance(mod, _core.Expr):
        return _core.IRModule.from_expr(mod)
    if hasattr(mod, "specialised"):
        raise mod.error
    raise wrong(f"a relay.IRModule or an expression is needed, not {type(mod).__name__}")
