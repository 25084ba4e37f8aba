"""Exported programs of PyTorch, written without PyTorch: the JSON of torch.export, and archives of it.

g = TorchGraph()
x, w = g.input("x", ("n", 3)), g.weight("w", np.ones((2, 3), np.float32))
y = g.node("aten.linear.default", {"input": x, "weight": w}, ("n", 2))
data = g.archive(y)
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

SCALAR_TYPES = {
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "complex64": 10,
    "bool": 12,
    "bfloat16": 13,
}


@dataclass(frozen=True)
class Value:
    """A tensor or an integer of the graph."""

    name: str
    is_size: bool = False


def size(s: int | str) -> dict[str, Any]:
    """A size: a number, a symbol or the text of an expression."""
    if isinstance(s, int):
        return {"as_int": s}
    text = f"Symbol('{s}', positive=True, integer=True)" if s.isalnum() else s
    return {"as_expr": {"expr_str": text, "hint": None}}


def strides(shape: tuple) -> list[dict[str, Any]]:
    out: list[str] = []
    step = "1"
    for s in reversed(shape):
        out.append(step)
        step = f"{step}*({s})" if step != "1" else str(s)
    return [size(int(s)) if s.isdigit() else size(f"({s})") for s in reversed(out)]


def meta(shape: tuple, dtype: str = "float32") -> dict[str, Any]:
    return {
        "dtype": SCALAR_TYPES[dtype],
        "sizes": [size(s) for s in shape],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": strides(shape),
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


class TorchGraph:
    """A graph, its weights, and how it is stored."""

    def __init__(self) -> None:
        self.inputs: list[dict] = []
        self.nodes: list[dict] = []
        self.tensors: dict[str, dict] = {}
        self.sizes: dict[str, dict] = {}
        self.specs: list[dict] = []
        self.weights: dict[str, np.ndarray] = {}
        self.ranges: dict[str, dict] = {}
        self.version = (8, 20)
        self.count = 0

    def input(self, name: str, shape: tuple, dtype: str = "float32") -> Value:
        arg = {"as_tensor": {"name": name}}
        self.inputs.append(arg)
        self.tensors[name] = meta(shape, dtype)
        self.specs.append({"user_input": {"arg": arg}})
        return Value(name)

    def integer(self, name: str, symbol: str) -> Value:
        arg = {"as_sym_int": {"as_name": name}}
        self.inputs.append(arg)
        self.sizes[name] = size(symbol)
        self.specs.append({"user_input": {"arg": arg}})
        return Value(name, True)

    def weight(self, name: str, value: np.ndarray, kind: str = "parameter") -> Value:
        local = "w_" + name.replace(".", "_")
        self.inputs.append({"as_tensor": {"name": local}})
        self.tensors[local] = meta(value.shape, str(value.dtype))
        self.weights[name] = value
        spec = {"arg": {"name": local}, f"{kind}_name": name}
        if kind == "buffer":
            spec["persistent"] = True
        self.specs.append({kind: spec})
        return Value(local)

    def argument(self, a: Any) -> dict[str, Any]:
        if isinstance(a, Value):
            return (
                {"as_sym_int": {"as_name": a.name}}
                if a.is_size
                else {"as_tensor": {"name": a.name}}
            )
        if a is None:
            return {"as_none": True}
        if isinstance(a, bool):
            return {"as_bool": a}
        if isinstance(a, int):
            return {"as_int": a}
        if isinstance(a, float):
            return {
                "as_float": a if np.isfinite(a) else {np.inf: "Infinity", -np.inf: "-Infinity"}[a]
            }
        if isinstance(a, str):
            return {"as_string": a}
        if isinstance(a, np.dtype):
            return {"as_scalar_type": SCALAR_TYPES[str(a)]}
        if isinstance(a, TorchGraph):
            return {"as_graph": {"name": "part", "graph": a.graph()}}
        if isinstance(a, list):
            if all(isinstance(i, Value) and not i.is_size for i in a):
                return {"as_tensors": [{"name": i.name} for i in a]}
            if any(isinstance(i, Value) and i.is_size for i in a):
                return {
                    "as_sym_ints": [
                        {"as_name": i.name} if isinstance(i, Value) else {"as_int": i} for i in a
                    ]
                }
            if any(i is None for i in a):
                return {
                    "as_optional_tensors": [
                        {"as_none": True} if i is None else {"as_tensor": {"name": i.name}}
                        for i in a
                    ]
                }
            return {"as_floats" if any(isinstance(i, float) for i in a) else "as_ints": a}
        raise TypeError(a)

    def node(
        self,
        target: str,
        arguments: dict[str, Any] | list[Any],
        shape: tuple | list[tuple] | None = (),
        dtype: str | list[str] = "float32",
        trace: str = "",
    ) -> Any:
        """A call; a list of shapes gives a list of results, None an integer whose size is `dtype`."""
        self.count += 1
        name = f"v{self.count}"
        named = (
            list(arguments.items()) if isinstance(arguments, dict) else [("", a) for a in arguments]
        )
        if shape is None:
            self.sizes[name] = size(dtype)
            outputs: list[dict] = [{"as_sym_int": {"as_name": name}}]
            result: Any = Value(name, True)
        elif isinstance(shape, list):
            dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shape)
            names = [f"{name}_{i}" for i in range(len(shape))]
            for n, s, d in zip(names, shape, dtypes, strict=True):
                self.tensors[n] = meta(s, d)
            outputs = [{"as_tensors": [{"name": n} for n in names]}]
            result = [Value(n) for n in names]
        else:
            self.tensors[name] = meta(shape, dtype)
            outputs = [{"as_tensor": {"name": name}}]
            result = Value(name)
        self.nodes.append(
            {
                "target": target if target.startswith("_operator") else f"torch.ops.{target}",
                "name": name,
                "inputs": [{"name": n, "arg": self.argument(a), "kind": 1} for n, a in named],
                "outputs": outputs,
                "metadata": {"stack_trace": trace} if trace else {},
            }
        )
        return result

    def output(self, *values: Any) -> None:
        self.results = [self.argument(v) for v in values]

    def graph(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "outputs": self.results,
            "nodes": self.nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.sizes,
            "sym_bool_values": {},
        }

    def program(self, *values: Any) -> dict[str, Any]:
        if values:
            self.output(*values)
        return {
            "graph_module": {
                "graph": self.graph(),
                "signature": {
                    "input_specs": self.specs,
                    "output_specs": [{"user_output": {"arg": r}} for r in self.results],
                },
                "module_call_graph": [],
            },
            "opset_version": {"aten": 10},
            "range_constraints": self.ranges,
            "schema_version": {"major": self.version[0], "minor": self.version[1]},
            "torch_version": "2.13.0",
        }

    def json(self, *values: Any) -> str:
        return json.dumps(self.program(*values))

    def archive(
        self, *values: Any, name: str = "model", files: dict[str, bytes] | None = None
    ) -> bytes:
        """The archive, in which `files` are further files, or others in the place of its own."""
        config = {
            n: {
                "path_name": f"weight_{i}",
                "is_param": True,
                "use_pickle": False,
                "tensor_meta": meta(w.shape, str(w.dtype)),
            }
            for i, (n, w) in enumerate(self.weights.items())
        }
        own = {
            f"data/weights/weight_{i}": np.ascontiguousarray(w).tobytes()
            for i, w in enumerate(self.weights.values())
        }
        own[f"data/weights/{name}_weights_config.json"] = json.dumps({"config": config}).encode()
        own[f"data/constants/{name}_constants_config.json"] = b'{"config": {}}'
        own[f"models/{name}.json"] = self.json(*values).encode()
        own["archive_format"] = b"pt2"
        own["archive_version"] = b"0"
        own["byteorder"] = b"little"
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as out:
            for path, data in (own | (files or {})).items():
                out.writestr(f"{name}/{path}", data)
        return buffer.getvalue()
