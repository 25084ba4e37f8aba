"""FX graphs as the JSON of an exported program (torch._export.serde.schema), which Relay's front end reads.

    text = program_text([node_1, node_2], inputs=[x, w], outputs=[node_2], owner=graph_module)

torch.export writes this format for the graphs that it makes itself. The graphs that torch.compile hands to
a back end are FX graphs of the same operators: what is written here is what torch.export would write.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

# The numbers of torch._export.serde.schema.
SCHEMA_VERSION = {"major": 8, "minor": 20}
_SCALAR_TYPES = {
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "complex32": 9,
    "complex64": 10,
    "complex128": 11,
    "bool": 12,
    "bfloat16": 13,
    "uint16": 28,
    "float8_e4m3fn": 29,
    "float8_e5m2": 30,
    "float8_e4m3fnuz": 31,
    "float8_e5m2fnuz": 32,
    "float8_e8m0fnu": 33,
    "uint32": 34,
    "uint64": 35,
}
SCALAR_TYPES = {getattr(torch, name): number for name, number in _SCALAR_TYPES.items()}
_LAYOUTS = {torch.strided: 7, torch.sparse_coo: 1}
_MEMORY_FORMATS = {
    torch.contiguous_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
    torch.preserve_format: 4,
}
_POSITIONAL, _KEYWORD = 1, 2


class Unwritable(Exception):
    """A value that the format does not have; the message says which."""


def value_of(node: fx.Node) -> Any:
    """What tracing says of a node's result: fake tensors, symbolic numbers, tuples of these."""
    if node.op == "get_attr":
        return attribute(node.graph.owning_module, str(node.target))
    return node.meta["val"] if "val" in node.meta else node.meta.get("example_value")


def attribute(owner: Any, path: str) -> Any:
    """A constant or a nested graph of a graph module."""
    for part in path.split("."):
        owner = getattr(owner, part)
    return owner


def is_number(value: Any) -> bool:
    """Whether a value is a symbolic number, or one that tracing knows."""
    return isinstance(value, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool))


def expression(value: Any) -> Any:
    """The sympy expression of a symbolic number, with the equalities that tracing has found since."""
    return value.node.expr


def expression_of(number: Any) -> Any:
    """The expression of a symbolic integer; another number itself."""
    return expression(number) if isinstance(number, torch.SymInt) else number


# Graphs with symbolic sizes have each expression in the sizes and strides of many tensors.
_EXPRESSIONS = 1 << 14


@functools.lru_cache(maxsize=_EXPRESSIONS, typed=True)
def _text(expr: Any) -> str:
    return str(expr)


@functools.lru_cache(maxsize=_EXPRESSIONS, typed=True)
def _symbols(expr: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((str(symbol), symbol) for symbol in expr.free_symbols)


def known_number(value: Any) -> Any:
    """The number of a symbolic number that is constant; None for one that is not."""
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    expr = expression(value)
    if _symbols(expr) or not expr.is_number:
        return None
    if isinstance(value, torch.SymBool):
        return bool(expr)
    return int(expr) if isinstance(value, torch.SymInt) else float(expr)


def symbols_of(values: Iterable[Any]) -> dict[str, tuple[Any, Any]]:
    """The free symbols of tensors' sizes and of numbers, by name, each with its shape environment."""
    found: dict[str, tuple[Any, Any]] = {}
    for value in values:
        if isinstance(value, torch.Tensor):
            numbers: Iterable[Any] = value.shape
        elif isinstance(value, (list, tuple)):
            found |= symbols_of(value)
            continue
        else:
            numbers = (value,)
        for n in numbers:
            if isinstance(n, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                for name, symbol in _symbols(expression(n)):
                    found.setdefault(name, (symbol, n.node.shape_env))
    return found


def operator_name(target: Any) -> str:
    """The name of an operator as rows have it: "aten.add.Tensor", "higher_order.cond"."""
    return target_name(target).removeprefix("torch.ops.")


def target_name(target: Any) -> str:
    if isinstance(target, str):
        return target
    module = target.__module__
    if module.startswith("torch._ops"):
        return f"{module.replace('torch._ops', 'torch.ops')}.{target.__name__}"
    return f"{module}.{target.__name__}"


def _float(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


class _Graph:
    """One graph of the format, written node by node."""

    def __init__(self, owner: fx.GraphModule) -> None:
        self.owner = owner
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.nodes: list[Any] = []
        self.sources: list[fx.Node | None] = []  # of `nodes`; None for what the writer adds
        self.tensor_values: dict[str, Any] = {}
        self.numbers: dict[str, dict[str, Any]] = {
            "sym_int_values": {},
            "sym_float_values": {},
            "sym_bool_values": {},
        }
        self.symbols: dict[str, tuple[Any, Any]] = {}
        self.given: set[str] = set()  # the symbols that are inputs
        self.single = False
        # Of getitem nodes that take the same part, the name of the first.
        self.same_part: dict[str, str] = {}

    # ---- Values ----------------------------------------------------------------------------------

    def tensor(self, name: str, value: torch.Tensor) -> dict[str, Any]:
        if value.dtype not in SCALAR_TYPES:
            raise Unwritable(f"the element type {value.dtype}")
        if value.layout is not torch.strided:
            raise Unwritable(f"the layout {value.layout}")
        self.tensor_values[name] = {
            "dtype": SCALAR_TYPES[value.dtype],
            "sizes": [self.size(s) for s in value.shape],
            "requires_grad": bool(value.requires_grad),
            "device": {"type": value.device.type, "index": value.device.index},
            "strides": [self.size(s) for s in value.stride()],
            "storage_offset": self.size(value.storage_offset()),
            "layout": _LAYOUTS[torch.strided],
        }
        return {"name": name}

    def size(self, value: Any) -> dict[str, Any]:
        number = known_number(value)
        if number is not None:
            return {"as_int": int(number)}
        self.symbols |= symbols_of([value])
        seen = value.node.hint if value.node.has_hint() else None
        hint = None if seen is None else {"as_int": int(seen)}
        return {"as_expr": {"expr_str": _text(expression(value)), "hint": hint}}

    def number(self, name: str, value: Any) -> dict[str, Any]:
        """The reference to a number that a node computes, with its expression."""
        if isinstance(value, (bool, torch.SymBool)):
            kind, known_as = "bool", "as_bool"
        elif isinstance(value, (int, torch.SymInt)):
            kind, known_as = "int", "as_int"
        else:
            kind, known_as = "float", "as_float"
        number = known_number(value)
        if number is not None:
            said = {known_as: _float(number) if kind == "float" else number}
        else:
            self.symbols |= symbols_of([value])
            said = {"as_expr": {"expr_str": _text(expression(value)), "hint": None}}
        self.numbers[f"sym_{kind}_values"][name] = said
        return {f"as_sym_{kind}": {"as_name": name}}

    def computed_number(self, node: fx.Node, value: Any) -> dict[str, Any]:
        """The reference to a number, which comes before its first use as a node of its own.

        A number over sizes has no inputs: the number is its expression. One over symbols that are inputs is
        computed from them.
        """
        stack = [node]
        while stack:
            at = stack.pop()
            operands = at.all_input_nodes if self.is_computed(at) else []
            missing = [p for p in operands if not self.is_written(p)]
            if missing:
                stack += [at, *missing]
                continue
            if self.is_written(at):
                continue
            inputs = self.arguments(at, None) if operands else []
            target = "torch.sym_int" if at.op == "placeholder" else target_name(at.target)
            reference = self.number(at.name, value_of(at))
            self.append(_node(target, inputs, reference, at.name), None)
        given = self.given_symbol(value)
        if given is not None:
            kind = "int" if isinstance(value, torch.SymInt) else "float"
            return {f"as_sym_{kind}": {"as_name": given}}
        return self.number(node.name, value)

    def given_symbol(self, value: Any) -> str | None:
        """The name of the input that a number is."""
        symbolic = isinstance(value, (torch.SymInt, torch.SymFloat))
        name = _text(expression(value)) if symbolic else ""
        return name if name in self.given else None

    def is_written(self, node: fx.Node) -> bool:
        """Whether a number is an input or has its node."""
        known = any(node.name in kind for kind in self.numbers.values())
        return known or self.given_symbol(value_of(node)) is not None

    def is_computed(self, node: fx.Node) -> bool:
        """Whether a number is computed from numbers among which are inputs."""
        operands = node.all_input_nodes
        return (
            node.op == "call_function"
            and all(is_number(value_of(p)) for p in operands)
            and not self.given.isdisjoint(symbols_of([value_of(node)]))
        )

    def append(self, written: dict[str, Any], source: fx.Node | None) -> None:
        self.nodes.append(written)
        self.sources.append(source)

    def result(self, name: str, value: Any) -> dict[str, Any]:
        if value is None:
            return {"as_none": True}
        if isinstance(value, torch.Tensor):
            return {"as_tensor": self.tensor(name, value)}
        if is_number(value):
            return self.number(name, value)
        raise Unwritable(f"a result of type {type(value).__name__}")

    # ---- Arguments -------------------------------------------------------------------------------

    def reference(self, node: fx.Node) -> dict[str, Any]:
        if node.op == "get_attr":
            part = attribute(self.owner, str(node.target))
            if isinstance(part, fx.GraphModule):
                return {"as_graph": {"name": str(node.target), "graph": nested(part, self)}}
        value = value_of(node)
        if is_number(value):
            return self.computed_number(node, value)
        return {"as_tensor": {"name": self.same_part.get(node.name, node.name)}}

    def argument(self, value: Any, declared: Any = None) -> dict[str, Any]:
        if isinstance(value, fx.Node):
            return self.reference(value)
        if value is None:
            return {"as_none": True}
        if isinstance(value, bool):
            return {"as_bool": value}
        if isinstance(value, int):
            return {"as_int": value}
        if isinstance(value, float):
            return {"as_float": _float(value)}
        if isinstance(value, complex):
            return {"as_complex": {"real": _float(value.real), "imag": _float(value.imag)}}
        if isinstance(value, str):
            return {"as_string": value}
        if isinstance(value, torch.dtype):
            if value not in SCALAR_TYPES:
                raise Unwritable(f"the element type {value}")
            return {"as_scalar_type": SCALAR_TYPES[value]}
        if isinstance(value, torch.layout):
            return {"as_layout": _LAYOUTS.get(value, 0)}
        if isinstance(value, torch.memory_format):
            return {"as_memory_format": _MEMORY_FORMATS[value]}
        if isinstance(value, torch.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return {"as_operator": target_name(value)}
        if isinstance(value, (list, tuple)):
            return self.list_argument(list(value), declared)
        raise Unwritable(f"an argument of type {type(value).__name__}")

    def list_argument(self, items: list[Any], declared: Any) -> dict[str, Any]:
        if not items:
            return {_kind_of_empty(declared): []}
        kinds = {type(i) for i in items}
        if kinds == {bool}:
            return {"as_bools": items}
        if kinds == {int}:
            return {"as_ints": items}
        if kinds == {float}:
            return {"as_floats": [_float(i) for i in items]}
        if kinds == {str}:
            return {"as_strings": items}
        values = [value_of(i) if isinstance(i, fx.Node) else i for i in items]
        if all(isinstance(v, torch.Tensor) for v in values):
            return {"as_tensors": [self.reference(i)["as_tensor"] for i in items]}
        if all(v is None or isinstance(v, torch.Tensor) for v in values):
            optional = [{"as_none": True} if i is None else self.reference(i) for i in items]
            return {"as_optional_tensors": optional}
        for kind, types in (
            ("bool", (bool, torch.SymBool)),
            ("int", (int, torch.SymInt)),
            ("float", (int, float, torch.SymInt, torch.SymFloat)),
        ):
            if all(isinstance(v, types) for v in values):
                return {
                    f"as_sym_{kind}s": [
                        self.reference(i)[f"as_sym_{kind}"]
                        if isinstance(i, fx.Node)
                        else {f"as_{kind}": _float(i) if kind == "float" else i}
                        for i in items
                    ]
                }
        if all(isinstance(i, (list, tuple)) for i in items):
            inner = [self.list_argument(list(i), None) for i in items]
            if all("as_tensors" in i for i in inner):
                return {"as_nested_tensors": [i["as_tensors"] for i in inner]}
            if all("as_ints" in i for i in inner):
                return {"as_int_lists": [i["as_ints"] for i in inner]}
        raise Unwritable("a list of several kinds of values")

    # ---- Nodes -----------------------------------------------------------------------------------

    def add_input(self, node: fx.Node) -> None:
        self.inputs.append(self.result(node.name, value_of(node)))

    def add_real(self, name: str) -> dict[str, Any]:
        """A real number that is an input: the element of a tensor in float64; returns what the input is."""
        tensor = self.tensor(f"{name}_given", torch.empty((), dtype=torch.float64, device="meta"))
        self.tensor_values[tensor["name"]]["device"] = {"type": "cpu", "index": None}
        self.inputs.append({"as_tensor": tensor})
        self.numbers["sym_float_values"][name] = {"as_expr": {"expr_str": name, "hint": None}}
        given = {"name": "self", "arg": {"as_tensor": tensor}, "kind": _POSITIONAL}
        target = target_name(torch.ops.aten._local_scalar_dense.default)
        self.append(_node(target, [given], {"as_sym_float": {"as_name": name}}, name), None)
        return {"user_input": {"arg": {"as_tensor": tensor}}}

    def add_node(self, node: fx.Node) -> None:
        schema = getattr(node.target, "_schema", None)
        metadata = {}
        if trace := node.meta.get("stack_trace"):
            metadata["stack_trace"] = trace
        written = {
            "target": target_name(node.target),
            "inputs": self.arguments(node, schema),
            "outputs": self.results(node, schema),
            "metadata": metadata,
            "is_hop_single_tensor_return": None
            if schema is not None
            else isinstance(value_of(node), torch.Tensor),
            "name": node.name,
        }
        self.append(written, node)

    def arguments(self, node: fx.Node, schema: Any) -> list[dict[str, Any]]:
        def named(name: str, value: Any, kind: int, declared: Any = None) -> dict[str, Any]:
            return {"name": name, "arg": self.argument(value, declared), "kind": kind}

        if schema is None:
            return [named("", a, _POSITIONAL) for a in node.args] + [
                named(name, a, _KEYWORD) for name, a in node.kwargs.items()
            ]
        out = []
        for i, parameter in enumerate(schema.arguments):
            if parameter.name in node.kwargs:
                given, kind = node.kwargs[parameter.name], _KEYWORD
            elif not parameter.kwarg_only and i < len(node.args):
                given, kind = node.args[i], _POSITIONAL
            else:
                continue  # it has its default
            out.append(named(parameter.name, given, kind, parameter.type))
        return out

    def results(self, node: fx.Node, schema: Any) -> list[dict[str, Any]]:
        """The results of a node; parts of several are named as the getitem nodes that take them."""
        value = value_of(node)
        if schema is not None and len(schema.returns) == 0:
            return []
        if not isinstance(value, (list, tuple)):
            return [self.result(node.name, value)]
        parts = self.parts(node)

        def tensors(values: Sequence[Any], taken: dict[int, fx.Node], prefix: str) -> dict:
            names = [taken[i].name if i in taken else f"{prefix}_{i}" for i in range(len(values))]
            for v in values:
                if not isinstance(v, torch.Tensor):
                    raise Unwritable("a list of results that are not all tensors")
            return {"as_tensors": [self.tensor(n, v) for n, v in zip(names, values, strict=True)]}

        unused = f"{node.name}_unused"
        if schema is not None and len(schema.returns) == 1:
            return [tensors(value, parts, unused)]
        out = []
        for i, part in enumerate(value):
            if isinstance(part, (list, tuple)):
                inner = self.parts(parts[i]) if i in parts else {}
                out.append(tensors(part, inner, f"{unused}_{i}"))
            else:
                name = parts[i].name if i in parts else f"{unused}_{i}"
                out.append(self.result(name, part))
        return out

    def parts(self, node: fx.Node) -> dict[int, fx.Node]:
        found: dict[int, fx.Node] = {}
        for user in node.users:
            if user.target is operator.getitem and user.args[0] is node:
                first = found.setdefault(user.args[1], user)
                if first is not user:
                    self.same_part[user.name] = first.name
        return found

    def add_output(self, value: Any) -> None:
        self.outputs.append(self.argument(value))

    def written(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "nodes": self.nodes,
            "tensor_values": self.tensor_values,
            **self.numbers,
            "is_single_tensor_return": self.single,
            "custom_obj_values": {},
        }


def _kind_of_empty(declared: Any) -> str:
    text = str(declared).lower()
    for name, kind in (("bool", "as_bools"), ("int", "as_ints"), ("float", "as_floats")):
        if name in text:
            return kind
    return "as_strings" if "str" in text else "as_tensors"


def nested(module: fx.GraphModule, around: _Graph) -> dict[str, Any]:
    """The graph of a branch or a body, which a node of the graph `around` refers to."""
    graph = _Graph(module)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            graph.add_input(node)
        elif node.op == "call_function":
            if node.target is not operator.getitem and not is_number(value_of(node)):
                graph.add_node(node)
        elif node.op == "output":
            (results,) = node.args
            graph.single = isinstance(results, fx.Node)
            for r in [results] if graph.single else results:
                graph.add_output(r)
    around.symbols |= graph.symbols
    return graph.written()


def _range(symbol: Any, shape_env: Any) -> dict[str, Any]:
    bounds = shape_env.bound_sympy(symbol)
    ends = [int(e) if e.is_Integer else None for e in (bounds.lower, bounds.upper)]
    if shape_env.is_unbacked_symint(symbol):
        # What PyTorch says of data-dependent sizes may be too small: of masked_select it is the number
        # of elements before they are broadcast.
        ends[1] = None
    return {"min_val": ends[0], "max_val": ends[1]}


class Written:
    """A program of the format: its text, and the FX nodes that its nodes are of."""

    def __init__(self, program: dict[str, Any], nodes: list[fx.Node | None]) -> None:
        self.program = program
        self.nodes = nodes

    @property
    def text(self) -> str:
        return json.dumps(self.program, allow_nan=False)


def write(
    nodes: Sequence[fx.Node],
    inputs: Sequence[fx.Node],
    outputs: Sequence[fx.Node],
    owner: fx.GraphModule,
    *,
    constants: Sequence[str] = (),
    order_of: dict[fx.Node, tuple[int, ...]] | None = None,
    numbers: Sequence[tuple[Any, Any]] = (),
) -> Written:
    """Returns a part of a graph as a program of the format.

    nodes: its operators in order; getitem nodes and nodes that compute numbers are left out: parts have
        names, numbers have expressions.
    inputs: values from outside, tensors; among them get_attr nodes of constants.
    constants: the names of inputs that are constants, which the program is imported with.
    order_of: of inputs and outputs that are dense but not contiguous, the order of their dimensions in
        memory. Such a tensor comes and goes as the contiguous one with the dimensions in that order.
    numbers: symbols that no size of an input is, with their shape environments: inputs behind the others.
    """
    graph = _Graph(owner)
    order_of = {} if order_of is None else order_of
    specs = []
    for node in inputs:
        name = node.name
        if node in order_of:
            name = f"{node.name}_in_memory"
            order = order_of[node]
            stored = value_of(node).permute(order)
            graph.inputs.append({"as_tensor": graph.tensor(name, stored)})
            graph.tensor(node.name, value_of(node))
            back = [order.index(i) for i in range(len(order))]
            graph.append(_permute(name, node.name, back), None)
        else:
            graph.add_input(node)
        argument = {"as_tensor": {"name": name}}
        if name in constants:
            spec = {"tensor_constant": {"arg": {"name": name}, "tensor_constant_name": name}}
        else:
            spec = {"user_input": {"arg": argument}}
        specs.append(spec)
    for symbol, env in numbers:
        name = str(symbol)
        graph.given.add(name)
        if not symbol.is_integer:
            specs.append(graph.add_real(name))
            continue
        graph.symbols[name] = symbol, env
        said = {"as_expr": {"expr_str": name, "hint": None}}
        graph.numbers["sym_int_values"][name] = said
        argument = {"as_sym_int": {"as_name": name}}
        graph.inputs.append(argument)
        specs.append({"user_input": {"arg": argument}})
    for node in nodes:
        graph.add_node(node)
    for node in outputs:
        name = graph.same_part.get(node.name, node.name)
        if node in order_of:
            stored_name = f"{node.name}_stored"
            order = order_of[node]
            graph.tensor(stored_name, value_of(node).permute(order))
            graph.append(_permute(name, stored_name, order), None)
            name = stored_name
        graph.outputs.append({"as_tensor": {"name": name}})
    program = {
        "graph_module": {
            "graph": graph.written(),
            "signature": {
                "input_specs": specs,
                "output_specs": [{"user_output": {"arg": o}} for o in graph.outputs],
            },
            "module_call_graph": [],
            "metadata": {},
        },
        "opset_version": {},
        "range_constraints": {name: _range(*graph.symbols[name]) for name in sorted(graph.symbols)},
        "schema_version": SCHEMA_VERSION,
        "verifiers": [],
        "torch_version": torch.__version__,
    }
    return Written(program, graph.sources)


def _node(
    target: str, inputs: list[dict[str, Any]], output: dict[str, Any], name: str
) -> dict[str, Any]:
    return {
        "target": target,
        "inputs": inputs,
        "outputs": [output],
        "metadata": {},
        "is_hop_single_tensor_return": None,
        "name": name,
    }


def _permute(source: str, result: str, order: Sequence[int]) -> dict[str, Any]:
    def named(name: str, argument: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "arg": argument, "kind": _POSITIONAL}

    inputs = [
        named("self", {"as_tensor": {"name": source}}),
        named("dims", {"as_ints": list(order)}),
    ]
    return _node("torch.ops.aten.permute.default", inputs, {"as_tensor": {"name": result}}, result)
