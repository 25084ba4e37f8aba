"""FX graphs of operators as functions: regions are Relay's programs, PyTorch runs the rest."""

from __future__ import annotations

import contextlib
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from relay import _core
from relay._build import build
from relay.torch import _regions, _report, _schema
from relay.torch._options import Options


def compile_graph(
    graph_module: fx.GraphModule,
    kind: str,
    options: Options,
    constants: Mapping[fx.Node, torch.Tensor] | None = None,
) -> Callable[[list[Any]], Sequence[Any]]:
    """Returns a function of a list of arguments, which it empties.

    kind: what the report calls the graph.
    constants: placeholders whose values do not change any more; they are arguments all the same.
    """
    begin = time.perf_counter()
    entry = _report.Graph(kind)
    refused = _regions.refused(graph_module)
    if not options.fallback:
        refuse(graph_module, refused)
    function = _compiled(graph_module, refused, options, dict(constants or {}), entry)
    entry.seconds = time.perf_counter() - begin
    _report.record(entry)

    def run(arguments: list[Any]) -> Sequence[Any]:
        entry.calls += 1
        return function(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def refuse(graph_module: fx.GraphModule, refused: Mapping[fx.Node, str]) -> None:
    """Raises the error of the operators that Relay does not have, if there are any.

    Those that draw random numbers are PyTorch's in any case.
    """
    lacking = {n: reason for n, reason in refused.items() if not _regions.is_random(n)}
    if not lacking:
        return
    node, reason = next(iter(lacking.items()))
    count = len(lacking)
    more = "" if count == 1 else f" (and {count - 1} more)"
    place = _report.place_of(node.meta.get("stack_trace"))
    _fail(
        "E0501",
        f"operator {_schema.operator_name(node.target)} cannot be compiled{more}: {reason}"
        + (f"\n  {place}" if place else ""),
        "without fallback=False PyTorch runs it, and relay.torch.report() shows it",
    )


def _fail(code: str, message: str, help: str) -> NoReturn:
    _core.fail(code, None, 0, 0, message, "", "", help)
    raise AssertionError(code)


def _compiled(
    graph_module: fx.GraphModule,
    refused: dict[fx.Node, str],
    options: Options,
    constants: dict[fx.Node, torch.Tensor],
    entry: _report.Graph,
) -> Callable[[list[Any]], Sequence[Any]]:
    # Regions that stay what they are keep their program when others are cut anew.
    made: dict[tuple[Any, ...], _Program] = {}
    while True:
        parts = _regions.partition(graph_module, refused, entry.kind == "inference")
        programs = {}
        try:
            for region in parts.regions:
                key = (
                    tuple(region.nodes),
                    tuple(region.inputs),
                    tuple(region.outputs),
                    tuple(region.donated.items()),
                )
                with _naming(region):
                    if key not in made:
                        made[key] = _Program(graph_module, region, options, constants)
                programs[region.number] = made[key]
            function = _joined(graph_module, parts, programs)
            break
        except _RegionError as failed:
            # An error of several operators together: PyTorch runs the region, and the report has the reason.
            if not options.fallback:
                raise failed.error from None
            refused = refused | {n: _report.first_line(failed.error) for n in failed.region.nodes}

    for node, reason in refused.items():
        place = _report.place_of(node.meta.get("stack_trace"))
        entry.add_fallback(_schema.operator_name(node.target), reason, place)
    entry.operators = sum(len(r.nodes) for r in parts.regions)
    entry.programs = len(programs)
    entry.donated = sum(len(p.donated) for p in programs.values())
    for p in programs.values():
        entry.cached += p.cached[0]
        entry.compiled += p.cached[1]
    entry.symbols = tuple(sorted({s for p in programs.values() for s in p.symbols}))
    return function


class _RegionError(Exception):
    """Why a region has no program, or why its program cannot be called."""

    def __init__(self, region: _regions.Region, error: _core.UserError) -> None:
        super().__init__(str(error))
        self.region = region
        self.error = error


@contextlib.contextmanager
def _naming(region: _regions.Region) -> Iterator[None]:
    """Makes a user error one of the region."""
    try:
        yield
    except _core.UserError as error:
        raise _RegionError(region, error) from error


class _Program:
    """A region as a program, and how its inputs and outputs are in memory."""

    def __init__(
        self,
        owner: fx.GraphModule,
        region: _regions.Region,
        options: Options,
        constants: dict[fx.Node, torch.Tensor],
    ) -> None:
        self.region = region
        self.order_of: dict[fx.Node, tuple[int, ...]] = {}
        self.strided: set[fx.Node] = set()  # inputs that are neither contiguous nor dense
        tensors: dict[str, torch.Tensor] = {}
        for node in region.inputs:
            value = constants.get(node)
            if value is None and node.op == "get_attr":
                value = _schema.value_of(node)
                if isinstance(value, torch._subclasses.FakeTensor):
                    value = None
            if value is not None:
                with _disable_current_modes():
                    tensors[node.name] = _real_pairs(value.detach()).contiguous()
                continue
            order = _regions.memory_order(_schema.value_of(node))
            if order is None:
                self.strided.add(node)
            elif list(order) != sorted(order):
                self.order_of[node] = order
        for node in region.outputs:
            order = _regions.memory_order(_schema.value_of(node))
            if order is not None and list(order) != sorted(order):
                self.order_of[node] = order

        inside = [n for n in region.inputs if n.name not in tensors]
        self.numbers = _regions.unbound(region.nodes, inside)
        written = _schema.write(
            region.nodes,
            region.inputs,
            region.outputs,
            owner,
            constants=list(tensors),
            order_of=self.order_of,
            numbers=self.numbers,
        )
        self.symbols = list(written.program["range_constraints"])
        module, _, description = _core.import_torch(written.text, tensors, True, "torch graph")
        results = [d["result"] for d in description["outputs"]]
        names = [d["name"] for d in description["inputs"]]
        # An input in an order of its own is not the memory that is written.
        self.donated = {
            given: result
            for result, given in region.donated.items()
            if given in inside
            and not {given, result} & self.order_of.keys()
            and given not in self.strided
            and not _schema.value_of(given).is_complex()
            and not _schema.value_of(given).is_neg()
        }
        donate = {
            names[region.inputs.index(given)]: results[region.outputs.index(result)]
            for given, result in self.donated.items()
        }
        executable = build(module, donate=donate, **options.build)
        self.cached = executable._module.cached  # kernels of the cache, and others
        run = _core.ArrayFunction(executable._module, "main", torch.Tensor)

        def call(*given: torch.Tensor) -> list[torch.Tensor]:
            return run(given)

        self.call = call

        # The number of @main's parameter for each input of the region, and then for the numbers.
        parameters = [d["parameter"] for d in description["inputs"]]
        self.kinds = [d["kind"] for d in description["inputs"]]
        order = sorted((p, i) for i, p in enumerate(parameters) if p is not None)
        self.arguments = [i for _, i in order]
        self.outputs = results


# ---- What runs ----------------------------------------------------------------------------------


def _size_input(n: int) -> torch.Tensor:
    """A size that is of no tensor, as a program takes it: that of a tensor without elements."""
    return torch.empty((n, 0), dtype=torch.uint8)


def _real_pairs(x: torch.Tensor) -> torch.Tensor:
    """A tensor as programs take it: no negative bit, a complex one with its parts along a last axis."""
    x = x.resolve_neg()
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _number_input(n: int | float) -> torch.Tensor:
    return torch.tensor(n, dtype=torch.float64 if isinstance(n, float) else torch.int64)


def _joined(
    graph_module: fx.GraphModule,
    parts: _regions.Partition,
    programs: Mapping[int, _Program],
) -> Callable[[list[Any]], Sequence[Any]]:
    """The function that calls the programs and runs the other nodes, as code that torch.fx writes.

    It empties the list of its arguments, and lets each value go after its last use.
    """
    graph = fx.Graph()
    graph.set_codegen(fx.graph._BoxedCodeGen())
    made: dict[fx.Node, fx.Node] = {}
    # What programs have written into their arguments need not be copied there.
    written = {
        user
        for program in programs.values()
        for given in program.donated
        for user in given.users
        if _regions.changes(user)
    }
    for node in graph_module.graph.nodes:
        if node.op == "placeholder":
            made[node] = graph.placeholder(f"in_{len(made)}")

    for number in range(max([0, *parts.after, *programs]) + 1):
        if number in programs:
            # Code that torch.fx writes has one function of a name.
            programs[number].call.__name__ = f"program_{number}"
            with _naming(programs[number].region):
                _add_call(graph, made, programs[number])
        for node in parts.after.get(number, ()):
            if node in written:
                made[node] = made[node.args[0]]
            else:
                made[node] = graph.node_copy(node, made.__getitem__)
    (output,) = [n for n in graph_module.graph.nodes if n.op == "output"]
    graph.output(fx.node.map_arg(output.args[0], made.__getitem__))
    return fx.GraphModule(graph_module, graph).forward


def _add_call(graph: fx.Graph, made: dict[fx.Node, fx.Node], program: _Program) -> None:
    region = program.region
    sources: list[Any] = [*region.inputs, *program.numbers]
    arguments = []
    for i in program.arguments:
        source = sources[i]
        if isinstance(source, fx.Node):
            value = made[source]
            if source in program.order_of:
                order = list(program.order_of[source])
                value = graph.call_function(torch.ops.aten.permute.default, (value, order))
            elif source in program.strided:
                value = graph.call_function(torch.ops.aten.contiguous.default, (value,))
            said = _schema.value_of(source)
            if said.is_neg() or said.is_complex():
                value = graph.call_function(_real_pairs, (value,))
        else:
            make = _size_input if program.kinds[i] == "size" else _number_input
            value = graph.call_function(make, (_symbol(graph, made, source[0]),))
        arguments.append(value)
    results = graph.call_function(program.call, tuple(arguments))
    for node, index in zip(region.outputs, program.outputs, strict=True):
        value = graph.call_function(operator.getitem, (results, index))
        if _schema.value_of(node).is_complex():
            value = graph.call_function(torch.ops.aten.view_as_complex.default, (value,))
        if node in program.order_of:
            order = program.order_of[node]
            back = [order.index(axis) for axis in range(len(order))]
            value = graph.call_function(torch.ops.aten.permute.default, (value, back))
        made[node] = value
    for node in program.donated:
        graph.call_function(torch.autograd.graph.increment_version, (made[node],))


def _symbol(graph: fx.Graph, made: dict[fx.Node, fx.Node], symbol: Any) -> fx.Node:
    """A symbol's value: a number that Python has, or the size of a tensor."""
    for node, copy in made.items():
        value = _schema.value_of(node)
        symbolic = isinstance(value, (torch.SymInt, torch.SymFloat))
        if symbolic and _schema.expression(value) == symbol:
            return copy
    for node, copy in made.items():
        value = _schema.value_of(node)
        if not isinstance(value, torch.Tensor):
            continue
        for axis, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and _schema.expression(size) == symbol:
                return graph.call_function(torch.ops.aten.sym_size.int, (copy, axis))
    _fail(
        "E0505",
        f"the size {symbol} is not a size of an input of the graph",
        "compile with dynamic=False, or give torch.compile an argument of that size",
    )
