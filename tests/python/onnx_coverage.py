"""What of each ONNX operator is imported: element types, and inputs that a run gives.

Found by importing: the backend suite has a model of one node for nearly every operator, with all inputs
given by the run; each is imported with every element type that the operator's schema allows for its data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx
import onnx_cases
from onnx import TensorProto

import relay

# Names of several element types together, in the order in which they are shown.
GROUPS = {
    "floats": {"float16", "bfloat16", "float", "double"},
    "integers": {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
    "float8": {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"},
    "int4": {"int4", "uint4"},
    "int2": {"int2", "uint2"},
    "complex": {"complex64", "complex128"},
}
# Models of one operator that are tried for one element type.
TRIES = 4


@dataclass
class Coverage:
    """Of an operator: the element types of its data, those that are refused, and the other inputs."""

    types: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)


def shown(types: set[str]) -> str:
    """Returns a set of element types in few words."""
    words, rest = [], set(types)
    for name, group in GROUPS.items():
        if group <= rest:
            words.append(name)
            rest -= group
    return ", ".join([*words, *sorted(rest)])


def _element(text: str) -> str | None:
    """Returns float for tensor(float); None for anything else."""
    return text[len("tensor(") : -1] if text.startswith("tensor(") else None


def _imports(model: onnx.ModelProto) -> bool:
    try:
        relay.frontend.from_onnx(model.SerializeToString())
    except relay.RelayError:
        return False
    return True


def _allowed(schema: onnx.defs.OpSchema, formal: onnx.defs.OpSchema.FormalParameter) -> set[str]:
    for constraint in schema.type_constraints:
        if constraint.type_param_str == formal.type_str:
            return {e for t in constraint.allowed_type_strs if (e := _element(t))}
    return {e for e in [_element(formal.type_str)] if e}


def _schema(model: onnx.ModelProto) -> onnx.defs.OpSchema | None:
    node = model.graph.node[0]
    version = max((o.version for o in model.opset_import if o.domain == node.domain), default=1)
    try:
        return onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None


def _try(case: onnx_cases.Case, found: dict[tuple[str, str], Coverage], tried: dict) -> None:
    model = onnx.load_from_string(case.model)
    if len(model.graph.node) != 1 or model.functions or not model.graph.node[0].input:
        return
    node, schema = model.graph.node[0], _schema(model)
    if schema is None or not schema.inputs:
        return
    formals = [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(len(node.input))]
    entry = found.setdefault((node.domain, node.op_type), Coverage())
    for name, formal in zip(node.input, formals, strict=True):
        if name and formal.type_str != formals[0].type_str and formal.name not in entry.inputs:
            entry.inputs.append(formal.name)
    elements = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    now = elements.get(node.input[0])
    for kind in sorted(_allowed(schema, formals[0]) - entry.types):
        # What has the data's element type has another one with it, where that may be.
        of_data = {n for n, f in zip(node.input, formals, strict=True)
                   if elements.get(n) == now and kind in _allowed(schema, f)}  # fmt: skip
        key = (node.domain, node.op_type, kind)
        if tried.get(key, 0) >= TRIES:
            continue
        tried[key] = tried.get(key, 0) + 1
        variant = onnx.ModelProto()
        variant.CopyFrom(model)
        del variant.graph.value_info[:]
        names = {"float": "FLOAT", "double": "DOUBLE"}
        element = TensorProto.DataType.Value(names.get(kind, kind.upper()))
        for value in variant.graph.input:
            if value.name in of_data and value.type.HasField("tensor_type"):
                value.type.tensor_type.elem_type = element
        for value in variant.graph.output:
            value.ClearField("type")
        (entry.types if _imports(variant) else entry.refused).add(kind)
    entry.refused -= entry.types


def coverage() -> dict[tuple[str, str], Coverage]:
    """Returns what is imported, by domain and operator, of those that the backend suite has."""
    found: dict[tuple[str, str], Coverage] = {}
    tried: dict[tuple[str, str, str], int] = {}
    for case in onnx_cases.cases():
        if case.kind == "node":
            _try(case, found, tried)
    return found
