"""Compiled programs as the libraries, graph modules and timers of the first Relay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from relay import runtime as _core_runtime
from relay._absent import absent
from relay._build import Executable, Slot
from relay._errors import wrong
from relay.tvm import nd


class BenchmarkResult:
    """Times of runs, in seconds; it prints as a table of milliseconds."""

    def __init__(self, results: Sequence[float]) -> None:
        self.results = list(results)
        self.mean = float(np.mean(self.results))
        self.std = float(np.std(self.results))
        self.median = float(np.median(self.results))
        self.min = float(np.min(self.results))
        self.max = float(np.max(self.results))

    def __repr__(self) -> str:
        return f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, max={self.max})"

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        head = " ".join(f"{name + ' (ms)':^12}" for name in names)
        return f"{head}\n{' '.join(f'{getattr(self, n) * 1e3:^12.4f}' for n in names)}"


def measure(
    run: Callable[[], Any],
    number: int,
    repeat: int,
    min_repeat_ms: float | None,
    limit_zero_time_iterations: int,
    cooldown_interval_ms: float,
    repeats_to_cooldown: int,
) -> BenchmarkResult:
    """Returns the mean times of `repeat` measurements of `number` runs, or more for the least time.

    limit_zero_time_iterations: a measurement ends after so many that the clock took for no time, though
        the least time has not passed.
    cooldown_interval_ms: the time that the processor rests after each `repeats_to_cooldown` measurements.
    """
    if number < 1 or repeat < 1:
        raise wrong(f"a measurement has 1 run or more, not {number} of {repeat}")
    if cooldown_interval_ms < 0 or repeats_to_cooldown < 1 or limit_zero_time_iterations < 1:
        raise wrong(
            "limit_zero_time_iterations and repeats_to_cooldown are 1 or more, cooldown_interval_ms is 0 "
            f"or more, not {limit_zero_time_iterations}, {repeats_to_cooldown} and {cooldown_interval_ms}"
        )
    least = (min_repeat_ms or 0) / 1e3
    run()
    results: list[float] = []
    for i in range(repeat):
        without_time = 0
        while True:
            start = time.perf_counter()
            for _ in range(number):
                run()
            seconds = time.perf_counter() - start
            without_time += seconds == 0
            if seconds >= least or without_time >= limit_zero_time_iterations:
                break
            if seconds > 0:
                number = max(number + 1, int(number * least / seconds))
        results.append(seconds / number)
        if cooldown_interval_ms and (i + 1) % repeats_to_cooldown == 0:
            time.sleep(cooldown_interval_ms / 1e3)
    return BenchmarkResult(results)


class GraphState:
    """The inputs and results of a program between the calls of a graph module's functions."""

    def __init__(self, library: Module) -> None:
        self.library = library
        self.executable = library.executable
        self.slots: list[Slot] = self.executable.input_info()
        self.values: dict[str, nd.NDArray] = {}
        self.results: list[nd.NDArray] | None = None

    def slot(self, key: str | int) -> Slot | None:
        """Returns the input of a name or a number, if there is one."""
        if isinstance(key, (int, np.integer)):
            return self.slots[key] if 0 <= key < len(self.slots) else None
        return next((slot for slot in self.slots if slot.name == key), None)

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Sets an input to a copy, and others by name; names that the program has no input for are left out.

        NumPy arrays and numbers are converted to the input's dtype; an NDArray has it.
        """
        if key is not None:
            self._set(self._known(key), value)
        elif value is not None:
            raise wrong("set_input() takes a value with the name or the number of its input")
        for name, given in params.items():
            slot = self.slot(name)
            if slot is not None:
                self._set(slot, given)

    def set_input_zero_copy(self, key: str | int, value: nd.NDArray | np.ndarray) -> None:
        """Sets an input to an array: later runs read what it holds then."""
        slot = self._known(key)
        if isinstance(value, np.ndarray):
            value = nd.NDArray(value)
        if not isinstance(value, nd.NDArray):
            raise wrong(f"set_input_zero_copy() takes an array, not {type(value).__name__}")
        self.values[slot.name] = _fitting(slot, value)

    def _known(self, key: str | int) -> Slot:
        slot = self.slot(key)
        if slot is None:
            raise RuntimeError(f"Could not find '{key}' in graph's inputs")
        return slot

    def _set(self, slot: Slot, value: Any) -> None:
        if value is None:
            raise wrong(f"the input {slot.name} needs a value, not None")
        if isinstance(value, nd.NDArray):
            made = _fitting(slot, value).copyto(value.device)
        else:
            made = _fitting(slot, nd.NDArray(np.array(value, dtype=slot.dtype, order="C")))
        self.values[slot.name] = made

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Sets the inputs that `save_param_dict` wrote."""
        from relay.tvm.runtime.params import load_param_dict

        self.set_input(**load_param_dict(params_bytes))

    def run(self, **inputs: Any) -> None:
        """Runs the program after setting inputs."""
        self.set_input(**inputs)
        missing = [slot.name for slot in self.slots if slot.name not in self.values]
        if missing:
            raise wrong(f"the input {missing[0]} is not set")
        result = self.executable(**{name: value._array for name, value in self.values.items()})
        self.results = _flat(result)

    def get_output(self, index: int, out: nd.NDArray | None = None) -> nd.NDArray:
        """Returns a tensor of the result, or copies it to `out`."""
        if self.results is None:
            raise wrong("the program has no result before run()")
        if not 0 <= index < len(self.results):
            raise wrong(f"the program has {len(self.results)} results: there is no number {index}")
        return self.results[index] if out is None else self.results[index].copyto(out)

    def get_input(self, index: str | int, out: nd.NDArray | None = None) -> nd.NDArray:
        """Returns the value of an input by name or number, or copies it to `out`."""
        slot = self.slot(index)
        if slot is None or slot.name not in self.values:
            raise wrong(f"the input {index} is not set")
        value = self.values[slot.name]
        return value if out is None else value.copyto(out)

    def get_num_outputs(self) -> int:
        """Returns the number of tensors of the result."""
        return len(self.executable.output_info())

    def get_num_inputs(self) -> int:
        """Returns the number of inputs."""
        return len(self.slots)

    def get_input_index(self, name: str) -> int:
        """Returns the number of an input, -1 for a name that is none."""
        names = [slot.name for slot in self.slots]
        return names.index(name) if name in names else -1

    def get_input_info(self) -> tuple[dict[str, tuple], dict[str, str | None]]:
        """Returns the shapes and dtypes of the inputs by name."""
        return (
            {slot.name: slot.shape or () for slot in self.slots},
            {slot.name: slot.dtype for slot in self.slots},
        )


def _fitting(slot: Slot, value: nd.NDArray) -> nd.NDArray:
    """The array, whose dtype and shape are those of an input; ArgumentError for another one."""
    if value.dtype != slot.dtype:
        raise wrong(f"the input {slot.name} is of {slot.dtype}, not {value.dtype}")
    shape = slot.shape or ()
    same = len(value.shape) == len(shape) and all(
        not isinstance(size, int) or size == given
        for size, given in zip(shape, value.shape, strict=True)
    )
    if not same:
        raise wrong(f"the input {slot.name} has the shape {shape}, not {value.shape}")
    return value


def _flat(result: Any) -> list[nd.NDArray]:
    """The tensors of a result, those of tuples in tuples one after the other."""
    out: list[nd.NDArray] = []
    work = [result]
    while work:
        part = work.pop()
        if isinstance(part, (tuple, list)):
            work.extend(reversed(part))
        elif isinstance(part, (np.ndarray, np.generic)):
            out.append(nd.NDArray(np.asarray(part)))
        else:
            raise wrong(
                f"a graph module has tensors as results, not {type(part).__name__}: run the program by "
                "relay.vm.compile and VirtualMachine"
            )
    return out


_GRAPH_FUNCTIONS = (
    "set_input", "set_input_zero_copy", "run", "get_output", "get_input", "get_num_outputs",
    "get_num_inputs", "load_params", "get_input_index", "get_input_info",
)  # fmt: skip


class GraphRuntime:
    """What `lib["default"](device)` returns: functions by name, for `graph_executor.GraphModule`."""

    def __init__(self, library: Module) -> None:
        self.state = GraphState(library)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in _GRAPH_FUNCTIONS:
            raise AttributeError(f"Module has no function '{name}'")
        return getattr(self.state, name)

    def time_evaluator(
        self,
        func_name: str,
        dev: nd.Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """Returns a function that measures a function of the module."""
        nd.known(dev)
        if f_preproc:
            raise wrong(f"nothing is called before a measurement: f_preproc={f_preproc!r}")
        function = self[func_name]
        return lambda *args: measure(
            lambda: function(*args),
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )


class Module:
    """A library: a compiled program with its provenance as the graph, and weights that are its constants.

    `library["default"](device)` begins to run it; `graph, lib, params = library` is the oldest form.
    """

    def __init__(
        self,
        executable: Executable,
        ir_mod: Any = None,
        target: Any = None,
        libmod_name: str = "default",
    ) -> None:
        self.executable = executable
        self.ir_mod = ir_mod
        self.target = target
        self.libmod_name = libmod_name

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name != self.libmod_name:
            raise AttributeError(
                f"Module has no function '{name}': the library is '{self.libmod_name}'"
            )

        def create(*devices: nd.Device) -> GraphRuntime:
            nd.known(devices)
            return GraphRuntime(self)

        return create

    def get_lib(self) -> Module:
        """Returns the library."""
        return self

    lib = module = property(get_lib)

    def get_params(self) -> dict[str, nd.NDArray]:
        """Returns {}: the weights are constants of the library."""
        return {}

    params = property(get_params)

    def get_graph_json(self) -> str:
        """Returns the provenance and the kernels of the program, as JSON text."""
        return self.executable.metadata

    graph_json = property(get_graph_json)

    def get_executor_config(self) -> str:
        """Returns the graph."""
        return self.get_graph_json()

    def get_devices(self) -> list[str]:
        """Returns the devices that the program needs."""
        return ["llvm"]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.get_graph_json(), self, self.get_params()))

    def export_library(
        self, file_name: str | os.PathLike[str], fcompile: object = None, **options: object
    ) -> str:
        """Writes the library to a file, which `load_module` and the C API load; returns the path.

        The file has no name of a library: loaded, it is "default". fcompile and options of compilers are
        refused: the file needs no compiler.
        """
        for name, value in {"fcompile": fcompile, **options}.items():
            if value not in (None, False):
                raise wrong(f"export_library() takes no {name}: the file needs no compiler")
        self.executable.export_library(file_name)
        return os.fspath(file_name)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> str:
        """Writes the library as `export_library` does; returns the path."""
        _check_format(fmt)
        return self.export_library(file_name)

    def __repr__(self) -> str:
        return f"<tvm.runtime.Module of {self.executable!r}>"

    def __getattr__(self, name: str) -> Any:
        raise absent("relay.tvm.runtime.Module", name)


def _check_format(fmt: str) -> None:
    if fmt not in ("", "so", "tar"):
        raise wrong(f"a library has one format, 'so', whatever its file is called, not {fmt!r}")


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """Returns the library of a file that `export_library` wrote, under the name "default"."""
    _check_format(fmt)
    return Module(_core_runtime.load_module(path))


def check_graph(graph: Any, library: Any) -> Module:
    """Returns a library; ArgumentError if it is none, or if the graph is that of another one."""
    if not isinstance(library, Module):
        raise wrong(f"a library is what relay.build or load_module returns, not {library!r}")
    text = graph.decode() if isinstance(graph, (bytes, bytearray)) else graph
    if text != library.get_graph_json():
        raise wrong("the graph is not that of the library: both are from one build")
    return library


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.runtime.module", name)
