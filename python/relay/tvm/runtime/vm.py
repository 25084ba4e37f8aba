"""The virtual machine by the names of the first Relay: `relay.vm.compile` and `VirtualMachine`."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay._absent import absent
from relay._build import Executable as _CoreExecutable
from relay._errors import wrong
from relay.tvm import nd
from relay.tvm.runtime.module import BenchmarkResult, Module, check_graph, measure


class Executable:
    """A compiled program; `VirtualMachine(executable, device)` runs it."""

    def __init__(self, library: Module) -> None:
        self.mod = library

    @property
    def lib(self) -> Module:
        """The library, which `export_library` writes."""
        return self.mod

    def save(self) -> tuple[bytearray, Module]:
        """Returns the description of the program, as bytes, and its library."""
        return bytearray(self.mod.get_graph_json().encode()), self.mod

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Module) -> Executable:
        """Returns the program of a description and a library that `save` returned."""
        return Executable(check_graph(bytecode, lib))

    @property
    def globals(self) -> list[str]:
        """The names of the functions that may be run."""
        return self.mod.executable.function_names

    @property
    def stats(self) -> str:
        """The functions with their types."""
        return repr(self.mod.executable)

    def get_function_params(self, func_name: str) -> list[str]:
        """Returns the names of a function's parameters."""
        return [slot.name for slot in self.mod.executable.input_info(func_name)]

    def __getattr__(self, name: str) -> Any:
        raise absent("relay.tvm.runtime.vm.Executable", name)


def _kept(value: object) -> object:
    """An argument that later changes of the caller's NumPy array do not change."""
    return value.copy() if isinstance(value, np.ndarray) else value


class VirtualMachine:
    """Runs functions of a compiled program; tensors are returned as NDArrays, tuples as lists of them."""

    NAIVE_ALLOCATOR, POOLED_ALLOCATOR = 1, 2

    def __init__(
        self, exe: Executable | Module, device: Any = None, memory_cfg: object = None
    ) -> None:
        nd.known(device)
        if memory_cfg not in (None, "naive", "pooled") and not isinstance(memory_cfg, dict):
            raise wrong(f"memory_cfg is 'naive' or 'pooled', not {memory_cfg!r}")
        library = exe.mod if isinstance(exe, Executable) else exe
        if not isinstance(library, Module):
            raise wrong(f"a program is what relay.vm.compile or load_module returns, not {exe!r}")
        self._program: _CoreExecutable = library.executable
        self._inputs: dict[str, tuple[tuple, dict[str, Any]]] = {}
        self._results: Any = None

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Sets the arguments of the next runs of a function; NumPy arrays are copied."""
        known = self._program.function_names
        if func_name not in known:
            raise wrong(f"the program has no function {func_name!r}; it has {', '.join(known)}")
        self._inputs[func_name] = (
            tuple(map(_kept, args)),
            {name: _kept(value) for name, value in kwargs.items()},
        )

    def invoke(self, func_name: str, *args: object, **kwargs: object) -> Any:
        """Runs a function, with the arguments of `set_input` if none are given."""
        if not args and not kwargs:
            args, kwargs = self._inputs.get(func_name, ((), {}))
        self._results = nd.result_of(self._program.run(func_name, *args, **kwargs))
        return self._results

    def run(self, *args: object, **kwargs: object) -> Any:
        """Runs @main."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Runs a function; `get_outputs` returns its results."""
        self.invoke(func_name, *args, **kwargs)

    def get_outputs(self) -> list[Any]:
        """Returns the results of the last run."""
        return self._results if isinstance(self._results, list) else [self._results]

    def benchmark(
        self,
        device: Any,
        *args: object,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: object,
    ) -> BenchmarkResult:
        """Returns the times of runs of a function. end_to_end: setting the inputs is measured, too."""
        nd.known(device)
        self.set_input(func_name, *args, **kwargs)

        def run() -> None:
            if end_to_end:
                self.set_input(func_name, *args, **kwargs)
            self.invoke(func_name)

        return measure(
            run,
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )

    def __getattr__(self, name: str) -> Any:
        raise absent("relay.tvm.runtime.vm.VirtualMachine", name)


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.runtime.vm", name)
