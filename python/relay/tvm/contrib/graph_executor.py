"""Graph modules: a program whose inputs are set, which is run, and whose results are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay._absent import absent
from relay._errors import wrong
from relay.tvm import nd
from relay.tvm.runtime.module import (
    BenchmarkResult,
    GraphRuntime,
    GraphState,
    Module,
    check_graph,
    measure,
)


class GraphModule(GraphState):
    """The program of `lib["default"](device)`."""

    def __init__(self, module: GraphRuntime) -> None:
        if not isinstance(module, GraphRuntime):
            raise wrong(f'a graph module is made of lib["default"](device), not of {module!r}')
        # The functions of the module and of this object share inputs and results.
        self.module = module
        self.__dict__.update(vars(module.state))
        module.state = self

    def __getitem__(self, key: str) -> Callable[..., Any]:
        return self.module[key]

    def benchmark(
        self,
        device: nd.Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Returns the times of runs; kwargs are inputs. end_to_end: setting the inputs is measured, too."""
        nd.known(device)
        self.set_input(**kwargs)
        function = self[func_name]
        inputs = kwargs if end_to_end else {}
        return measure(
            lambda: function(**inputs),
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )

    def __getattr__(self, name: str) -> Any:
        raise absent("relay.tvm.contrib.graph_executor.GraphModule", name)


def create(graph_json_str: Any, libmod: Module, device: Any) -> GraphModule:
    """Returns the graph module of a graph and its library, for a device or a list of one."""
    nd.known(device)
    return GraphModule(GraphRuntime(check_graph(graph_json_str, libmod)))


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.contrib.graph_executor", name)
