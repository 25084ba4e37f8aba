"""The parts of an FX graph that Relay compiles, and what PyTorch runs between them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils._sympy.symbol import SymT, symbol_is_type

from relay import _core
from relay.torch import _report, _schema

# Why operators that draw random numbers run in PyTorch.
DRAWS = "it draws from PyTorch's generator of random numbers"


@dataclass
class Region:
    """Operators that become one program, with the values that go in and come out.

    donated: outputs that are written over an argument of the graph, each with that argument.
    """

    number: int
    nodes: list[fx.Node] = field(default_factory=list)
    inputs: list[fx.Node] = field(default_factory=list)
    outputs: list[fx.Node] = field(default_factory=list)
    donated: dict[fx.Node, fx.Node] = field(default_factory=dict)


@dataclass
class Partition:
    """A graph in regions: `after[n]` are the nodes that Python runs when region n is done (0: before all).

    refused: the operators that Relay does not have, each with its reason.
    """

    regions: list[Region]
    after: dict[int, list[fx.Node]]
    refused: dict[fx.Node, str]


def operators(graph: fx.Graph) -> list[fx.Node]:
    """The nodes of a graph that compute tensors."""
    return [
        n
        for n in graph.nodes
        if n.op in ("call_function", "call_module", "call_method") and not _is_bookkeeping(n)
    ]


def refused(graph_module: fx.GraphModule) -> dict[fx.Node, str]:
    """The operators of a graph that Relay cannot compile, each with its reason."""
    found: dict[fx.Node, str] = {}
    kept = []
    for node in operators(graph_module.graph):
        reason = DRAWS if is_random(node) else _unwritable(node, graph_module)
        if reason is None:
            kept.append(node)
        else:
            found[node] = reason
    inputs = outside(kept)
    written = _schema.write(
        kept,
        inputs,
        results(kept, graph_module.graph),
        graph_module,
        numbers=unbound(kept, inputs),
    )
    try:
        unsupported = _core.torch_unsupported(written.text)
    except _core.UserError as error:
        # What no single operator is the reason of, such as a size that cannot be expressed.
        return found | dict.fromkeys(kept, _report.first_line(error))
    for index, _, reason in unsupported:
        node = written.nodes[index]
        # A number that no expression is: what takes it is refused.
        for n in [node] if node is not None else _users(written, index):
            found[n] = reason
    return found


def _users(written: _schema.Written, index: int) -> list[fx.Node]:
    """The operators that take a number which the writer added as a node."""
    name = written.program["graph_module"]["graph"]["nodes"][index]["name"]
    return [
        n for n in written.nodes if n is not None and any(p.name == name for p in n.all_input_nodes)
    ]


def is_random(node: fx.Node) -> bool:
    """Whether an operator draws from PyTorch's generator: PyTorch runs it, as in eager mode."""
    return isinstance(node.target, torch._ops.OpOverload) and draws(node)


def partition(
    graph_module: fx.GraphModule, refusals: dict[fx.Node, str], shows_memory: bool
) -> Partition:
    """Cuts a graph into as few regions as its dependences allow.

    An operator is in the first region in which its operands are known: the same as theirs, or the one
    after what Python computes for it. Python runs a node when its operands are there. Operators that
    draw random numbers keep their order; those that change a tensor run at the end.

    shows_memory: whether all results are the caller's, who sees which of them share memory.
    """
    graph = graph_module.graph
    compiled = {n for n in operators(graph) if n not in refusals and not changes(n)}
    when: dict[fx.Node, int] = {}
    last_draw = 0
    for node in graph.nodes:
        if node.op == "output":
            continue
        if node in compiled:
            when[node] = 1
            for p in node.all_input_nodes:
                if not _is_expression(p):
                    later = producer(p) not in compiled
                    when[node] = max(when[node], when[p] + later)
            continue
        when[node] = max((when[p] for p in node.all_input_nodes), default=0)
        if draws(node):
            last_draw = when[node] = max(when[node], last_draw)
    last = max(when.values(), default=0)

    by_number: dict[int, Region] = {}
    for node in graph.nodes:
        if node in compiled:
            by_number.setdefault(when[node], Region(when[node])).nodes.append(node)
    for number, region in list(by_number.items()):
        # A program that computes nothing would only copy.
        if all(is_view(n) for n in region.nodes):
            compiled.difference_update(region.nodes)
            del by_number[number]
    in_python = _python_nodes(graph, compiled, by_number, shows_memory)
    used = [by_number[n] for n in sorted(by_number) if by_number[n].outputs]
    for region in used:
        region.donated = _donated(graph, region, set(region.nodes).difference(in_python))

    after: dict[int, list[fx.Node]] = {}
    for node in in_python:
        after.setdefault(last if changes(node) else when[node], []).append(node)
    return Partition(used, after, refusals)


def _donated(graph: fx.Graph, region: Region, inside: set[fx.Node]) -> dict[fx.Node, fx.Node]:
    """The outputs of a region that do nothing but replace an argument which nothing but `inside` reads.

    inside: the nodes of the region that Python does not run, too.
    """
    found: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        if node.target is not torch.ops.aten.copy_.default or len(node.args) != 2 or node.kwargs:
            continue
        given, result = node.args
        if not (isinstance(given, fx.Node) and isinstance(result, fx.Node)):
            continue
        old, new = _schema.value_of(given), _schema.value_of(result)
        same_sizes = [str(_schema.expression_of(n)) for n in old.shape] == [
            str(_schema.expression_of(n)) for n in new.shape
        ]
        if (
            given.op == "placeholder"
            and given in region.inputs
            and result in region.outputs
            and result not in found
            and given not in found.values()
            and all(user is node or producer(user) in inside for user in given.users)
            and all(user is node or producer(user) in inside for user in result.users)
            and old.dtype == new.dtype
            and same_sizes
        ):
            found[result] = given
    return found


def _python_nodes(
    graph: fx.Graph, compiled: set[fx.Node], regions: dict[int, Region], shows_memory: bool
) -> list[fx.Node]:
    """Sets inputs and outputs of the regions; returns the nodes that Python runs, in the order of the graph.

    A result that is a view of what Python has anyway is a view there, not a copy that a program makes.
    With `shows_memory`, programs return what results share or show a part of.
    """
    region_of = {n: r for r in regions.values() for n in r.nodes}
    (output,) = [n for n in graph.nodes if n.op == "output"]
    eager = {n for n in graph.nodes if n not in compiled and _runs_always(n)}
    stack = list(output.all_input_nodes)
    for node in eager:
        stack.extend(node.all_input_nodes)
    for region in regions.values():
        region.inputs = outside(region.nodes)
        stack.extend(region.inputs)
        # Data-dependent numbers are arguments, too.
        operands = {p for n in region.nodes for p in n.all_input_nodes}
        stack += [
            p for p in operands if _schema.is_number(_schema.value_of(p)) and not _is_expression(p)
        ]

    def base_of(node: fx.Node) -> fx.Node:
        """The value that a value of a region is a view of."""
        while producer(node) in region_of and is_view(node):
            node = node.args[0]
        return node

    if shows_memory:
        bases = {n: base_of(n) for n in output.all_input_nodes}
        views_of = Counter(bases.values())
        stack += [
            base
            for node, base in bases.items()
            if node is not base
            and (views_of[base] > 1 or memory_order(_schema.value_of(node)) is None)
        ]
    wanted = set(stack)

    def is_there(node: fx.Node) -> bool:
        """Whether Python has a value without asking a region for it."""
        base = base_of(node)
        return producer(base) not in region_of or base in wanted

    needed: set[fx.Node] = set()
    views: set[fx.Node] = set()
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        if producer(node) not in region_of:
            stack.extend(node.all_input_nodes)
        elif is_view(node) and is_there(node.args[0]):
            views.add(node)
            stack.extend(node.all_input_nodes)
        else:
            region_of[producer(node)].outputs.append(node)
    position = {n: i for i, n in enumerate(graph.nodes)}
    for region in regions.values():
        region.outputs.sort(key=position.__getitem__)
    return [
        n
        for n in graph.nodes
        if n.op not in ("placeholder", "output")
        and (n in eager or n in views or (n in needed and producer(n) not in region_of))
    ]


def outside(nodes: Sequence[fx.Node]) -> list[fx.Node]:
    """The tensors that nodes take from elsewhere, in the order of their first use."""
    inside = set(nodes)
    found: dict[fx.Node, None] = {}
    for node in nodes:
        for p in node.all_input_nodes:
            if producer(p) in inside or not isinstance(_schema.value_of(p), torch.Tensor):
                continue
            found.setdefault(p)
    return list(found)


def unbound(nodes: Sequence[fx.Node], inputs: Iterable[fx.Node]) -> list[tuple[Any, Any]]:
    """The symbols in the values of nodes that are neither a size of an input nor decided by one of the nodes.

    Each is with its shape environment. Programs take them as numbers.
    """
    bound = set()
    for node in inputs:
        for size in _schema.value_of(node).shape:
            if isinstance(size, torch.SymInt):
                bound.add(str(_schema.expression(size)))
    found: dict[str, tuple[Any, Any]] = {}
    for node in nodes:
        used = _schema.symbols_of([_schema.value_of(p) for p in node.all_input_nodes])
        made = _schema.symbols_of([_schema.value_of(node)])
        # A symbol of a result that no operand has, such as the number of elements of masked_select.
        bound |= {
            name
            for name, (symbol, env) in made.items()
            if name not in used and env.is_unbacked_symint(symbol)
        }
        found |= used | made
    return [found[name] for name in sorted(found.keys() - bound)]


def results(nodes: Sequence[fx.Node], graph: fx.Graph) -> list[fx.Node]:
    """The tensors that nodes compute and others use."""
    inside = set(nodes)
    return [
        n
        for n in graph.nodes
        if producer(n) in inside
        and isinstance(_schema.value_of(n), torch.Tensor)
        and any(producer(u) not in inside for u in n.users)
    ]


def producer(node: fx.Node) -> fx.Node:
    """The node that computes a value: of parts of results, the operator."""
    while node.op == "call_function" and node.target is operator.getitem:
        node = node.args[0]
    return node


def is_view(node: fx.Node) -> bool:
    """Whether a node's result, or each of its results, is in its first argument's memory."""
    first = node.args[0] if node.args else None
    if not isinstance(first, fx.Node):
        return False
    if node.target is operator.getitem:
        # A part of a tensor that was split.
        return isinstance(_schema.value_of(first), (list, tuple)) and is_view(first)
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable or len(schema.returns) != 1:
        return False
    alias = schema.returns[0].alias_info
    return (
        alias is not None
        and not alias.is_write
        and isinstance(_schema.value_of(node), (torch.Tensor, list, tuple))
    )


def memory_order(value: torch.Tensor) -> tuple[int, ...] | None:
    """The dimensions of a dense tensor from the outermost in memory to the innermost; None for others."""
    sizes, strides = list(value.shape), list(value.stride())

    def same(a: Any, b: Any) -> bool:
        return _schema.expression_of(a) == _schema.expression_of(b)

    def dense(order: Sequence[int]) -> bool:
        expected: Any = 1
        for axis in reversed(order):
            if same(sizes[axis], 1):
                continue
            if not same(strides[axis], expected):
                return False
            expected = _schema.expression_of(expected) * _schema.expression_of(sizes[axis])
        return True

    identity = tuple(range(len(sizes)))
    if dense(identity):
        return identity
    hints = [_hint(s) for s in strides]
    if any(h is None for h in hints):
        return None
    order = tuple(sorted(identity, key=lambda axis: (-hints[axis], axis)))
    return order if dense(order) else None


def _hint(number: Any) -> int | None:
    return number.node.hint if isinstance(number, torch.SymInt) else int(number)


def changes(node: fx.Node) -> bool:
    """Whether an operator writes into an argument."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def draws(node: fx.Node) -> bool:
    """Whether an operator draws random numbers or has another effect."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return isinstance(node.target, torch._ops.HigherOrderOperator)
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    # Attention draws only if it drops weights.
    for i, parameter in enumerate(node.target._schema.arguments):
        if parameter.name == "dropout_p":
            default = parameter.default_value
            given = node.args[i] if i < len(node.args) else node.kwargs.get("dropout_p", default)
            return given != 0
    return True


def _is_bookkeeping(node: fx.Node) -> bool:
    """Parts of results, numbers, and checks, which Python computes."""
    value = _schema.value_of(node)
    return (
        node.target is operator.getitem
        or value is None
        or _schema.is_number(value)
        or _is_ordered_check(node)
    )


def _is_ordered_check(node: fx.Node) -> bool:
    """Whether a node is the check of a matrix function that PyTorch keeps in order with other effects."""
    return (
        node.target is torch.ops.higher_order.with_effects
        and node.args[1] is torch.ops.aten._linalg_check_errors.default
    )


def _runs_always(node: fx.Node) -> bool:
    """Whether Python runs a node that is not compiled even where its result is unused."""
    if node.op in ("placeholder", "output", "get_attr") or node.target is operator.getitem:
        return False
    if _is_ordered_check(node):
        return True
    return not _is_bookkeeping(node) or _schema.value_of(node) is None


def _is_expression(node: fx.Node) -> bool:
    """Whether a value is a number over the sizes of inputs: programs have it as an expression."""
    value = _schema.value_of(node)
    if not _schema.is_number(value):
        return False
    unbacked = (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT)
    return not any(
        symbol_is_type(symbol, unbacked) for symbol, _ in _schema.symbols_of([value]).values()
    )


def _unwritable(node: fx.Node, owner: fx.GraphModule) -> str | None:
    """Why a node is not written; None where it is."""
    if node.op != "call_function":
        return f"a node of kind {node.op}"
    values = [_schema.value_of(p) for p in node.all_input_nodes if p.op != "get_attr"]
    for value in _tensors([*values, _schema.value_of(node)]):
        if value.device.type != "cpu":
            return f"a tensor is on the device {value.device}; Relay's programs run on the CPU"
        if value.layout is not torch.strided:
            return f"a tensor has the layout {value.layout}; Relay's tensors are dense"
        if type(value) is not torch.Tensor and not isinstance(
            value, (torch._subclasses.FakeTensor, torch.nn.Parameter)
        ):
            return f"a tensor is of the class {type(value).__name__}"
    try:
        trial = _schema._Graph(owner)
        for value in _tensors(values):
            trial.tensor("input", value)
        trial.add_node(node)
    except _schema.Unwritable as problem:
        return f"the format of exported programs lacks {problem}"
    return None


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found
