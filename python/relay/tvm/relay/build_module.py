"""`relay.build`, `relay.create_executor` and `relay.optimize` as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay import _build, _core, _executor
from relay._absent import absent
from relay._errors import refuse, wrong
from relay._ir import names
from relay.tvm import nd
from relay.tvm._exchange import adapt, given, own_exceptions, returned
from relay.tvm.ir.module import IRModule
from relay.tvm.relay.backend import Executor as Executor
from relay.tvm.relay.backend import Runtime as Runtime
from relay.tvm.runtime.module import Module
from relay.tvm.target import text_of
from relay.tvm.transform import build_config as build_config

bind_params_by_name = adapt(names.bind_params_by_name)


def compiled(
    mod: Any,
    target: Any,
    target_host: Any,
    params: Mapping[str, Any] | None,
    mod_name: str = "default",
) -> Module:
    """Returns the library of a module."""
    text = text_of(target, target_host)
    with own_exceptions():
        program = _build.build(given(mod), text, params=None if params is None else dict(params))
    return Module(program, mod, text, mod_name)


def build(
    ir_mod: IRModule | _core.Function,
    target: Any = None,
    target_host: Any = None,
    executor: Executor | None = None,
    runtime: Runtime | None = None,
    workspace_memory_pools: None = None,
    constant_memory_pools: None = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> Module:
    """Returns the compiled library: `graph_executor.GraphModule(lib["default"](tvm.cpu()))` runs it.

    target: a text, a `tvm.target.Target`, or a map or list of one; None: that of the `with` block, or the
        machine's.
    params: values of @main's parameters by name, which become constants of the library.
    mod_name: the name in place of "default" in `lib["default"]`.
    """
    pools = {
        "workspace_memory_pools": workspace_memory_pools,
        "constant_memory_pools": constant_memory_pools,
    }
    refuse("relay.build", pools)
    if executor is not None and not isinstance(executor, Executor):
        raise wrong(f"executor is relay.backend.Executor('graph'), not {executor!r}")
    if runtime is not None and not isinstance(runtime, Runtime):
        raise wrong(f"runtime is relay.backend.Runtime('cpp'), not {runtime!r}")
    if not isinstance(mod_name, str) or not mod_name:
        raise wrong(f"mod_name is a name, not {mod_name!r}")
    return compiled(ir_mod, target, target_host, params, mod_name)


def optimize(
    mod: Any, target: Any = None, params: Mapping[str, Any] | None = None
) -> tuple[IRModule, dict[str, Any]]:
    """Returns the module after the optimisation pipeline, and {}: parameters are its constants."""
    with own_exceptions():
        out = _build.optimize(given(mod), text_of(target), None if params is None else dict(params))
    return returned(out), {}


class GraphExecutor:
    """Evaluates functions of a module; `relay.create_executor` makes it."""

    def __init__(self, inner: _executor.Executor, mod: Any) -> None:
        self._inner = inner
        self.mod = mod

    def evaluate(self, expr: Any = None, binds: Mapping[_core.Var, Any] | None = None) -> Any:
        """Returns a function of arrays for @main, a function or a GlobalVar; else the expression's value.

        Results are NDArrays, and lists of them for tuples.
        """
        with own_exceptions():
            found = self._inner.evaluate(expr, binds)
        if not callable(found) or isinstance(found, _core.FunctionValue):
            return nd.result_of(found)

        def run(*args: Any, **kwargs: Any) -> Any:
            return nd.result_of(found(*args, **kwargs))

        return run


def create_executor(
    kind: str = "debug",
    mod: Any = None,
    device: Any = None,
    target: Any = "llvm",
    params: Mapping[str, Any] | None = None,
) -> GraphExecutor:
    """Returns an executor of a module: "debug" is the reference evaluator, "graph", "vm" and "aot" compile.

    mod: the module, at the time of this call; None: an empty one.
    """
    nd.known(device)
    text = text_of(target)
    inner = _executor.create_executor(
        kind,
        None if mod is None else given(mod),
        target=None if kind == "debug" else text,
        params=None if params is None else dict(params),
    )
    return GraphExecutor(inner, mod)


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.relay.build_module", name)
