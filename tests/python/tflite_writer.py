"""Writes TFLite files: the tables of `src/frontend/tflite/schema.fbs` by the names of their fields.

model = TfliteModel()
g = model.graph()
x, y = g.tensor("x", (2, 3), "float32"), g.tensor("y", (2, 3), "float32")
g.op("RELU", [x], [y])
g.inputs, g.outputs = [x], [y]
data = model.bytes()
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flatbuffers
import flatbuffers.number_types as numbers
import ml_dtypes
import numpy as np

ROOM = Path(__file__).resolve().parents[2] / "src/frontend/tflite"

SCALARS = {
    "byte": (np.int8, numbers.Int8Flags),
    "ubyte": (np.uint8, numbers.Uint8Flags),
    "bool": (np.bool_, numbers.BoolFlags),
    "ushort": (np.uint16, numbers.Uint16Flags),
    "int": (np.int32, numbers.Int32Flags),
    "uint": (np.uint32, numbers.Uint32Flags),
    "long": (np.int64, numbers.Int64Flags),
    "ulong": (np.uint64, numbers.Uint64Flags),
    "float": (np.float32, numbers.Float32Flags),
}


@functools.cache
def schema(name: str = "schema") -> SimpleNamespace:
    """The tables, enumerations and unions of a schema, "schema" or "metadata"."""
    text = re.sub(r"//[^\n]*", "", (ROOM / f"{name}.fbs").read_text())
    tables, enums, unions = {}, {}, {}
    for name, body in re.findall(r"table (\w+) \{([^}]*)\}", text):
        slots, at = {}, 0
        for field, kind, rest in re.findall(r"(\w+): ([\w\[\]]+)([^;]*);", body):
            at += kind in text_unions(text)
            standard = re.search(r"= (\w+)", rest)
            slots[field] = (at, kind, standard[1] if standard else None)
            at += 1
        tables[name] = slots
    for name, body in re.findall(r"enum (\w+) : byte \{([^}]*)\}", text):
        words = [w.split("=")[0].strip() for w in body.split(",")]
        enums[name] = {w: i for i, w in enumerate(words)}
    for name, body in re.findall(r"union (\w+) \{([^}]*)\}", text):
        members = {}
        for i, member in enumerate(body.split(",")):
            word, _, table = member.strip().partition(": ")
            members[word] = (i + 1, table or word)
        unions[name] = members
    return SimpleNamespace(tables=tables, enums=enums, unions=unions)


def text_unions(text: str) -> set[str]:
    return set(re.findall(r"union (\w+)", text))


@functools.cache
def operators() -> dict[str, tuple[int, int]]:
    """Code and greatest version of every builtin operator, by name."""
    rows = re.findall(
        r"RELAY_TFLITE_OPERATOR\((\d+), (\w+), (\d+)\)", (ROOM / "operators.def").read_text()
    )
    return {name: (int(code), int(version)) for code, name, version in rows}


class Encoder:
    """Writes tables, which are dictionaries by field, with what is inside them first."""

    def __init__(self, name: str = "schema") -> None:
        self.builder = flatbuffers.Builder(1 << 16)
        self.schema = schema(name)

    def vector(self, kind: str, values: Any) -> int:
        b = self.builder
        if kind in SCALARS:
            dtype, _ = SCALARS[kind]
            array = np.ascontiguousarray(values, dtype)
            if kind == "ubyte":
                return self.bytes(array.tobytes())
            return b.CreateNumpyVector(array)
        offsets = [b.CreateString(v) if kind == "string" else self.table(kind, v) for v in values]
        b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    def bytes(self, data: bytes) -> int:
        b = self.builder
        b.StartVector(1, len(data), 16)
        b.head = b.head - len(data)
        b.Bytes[b.head : b.head + len(data)] = data
        return b.EndVector()

    def table(self, name: str, fields: dict[str, Any]) -> int:
        b, s = self.builder, self.schema
        slots = s.tables[name]
        parts: list[tuple[int, Any, Any]] = []
        for field, value in fields.items():
            if value is None:
                continue
            at, kind, _ = slots[field]
            if kind in s.unions:
                member, inner = value
                number, table = s.unions[kind][member]
                parts.append((at - 1, numbers.Uint8Flags, number))
                parts.append((at, None, self.table(table, inner)))
            elif kind.startswith("["):
                parts.append((at, None, self.vector(kind[1:-1], value)))
            elif kind == "string":
                parts.append((at, None, b.CreateString(value)))
            elif kind in s.tables:
                parts.append((at, None, self.table(kind, value)))
            elif kind in s.enums:
                number = s.enums[kind][value] if isinstance(value, str) else value
                parts.append((at, numbers.Int8Flags, number))
            else:
                parts.append((at, SCALARS[kind][1], value))
        b.StartObject(max((at for at, _, _ in slots.values()), default=-1) + 1)
        for at, flags, value in parts:
            if flags is None:
                b.PrependUOffsetTRelativeSlot(at, value, 0)
            else:
                # Written even where it is the default value, as other writers may.
                b.ForceDefaults(True)
                b.PrependSlot(flags, at, value, None)
        return b.EndObject()


def metadata_bytes(fields: dict[str, Any]) -> bytes:
    """The buffer "TFLITE_METADATA": the table `Model` of metadata.fbs."""
    e = Encoder("metadata")
    e.builder.Finish(e.table("Model", fields), file_identifier=b"M001")
    return bytes(e.builder.Output())


DTYPES = {
    "float32": np.float32,
    "float16": np.float16,
    "float64": np.float64,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "bool": np.bool_,
    "bfloat16": ml_dtypes.bfloat16,
}


class Graph:
    """A subgraph: its tensors and operators."""

    def __init__(self, model: TfliteModel) -> None:
        self.model = model
        self.tensors: list[dict[str, Any]] = []
        self.operators: list[dict[str, Any]] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.arrays: list[Any] = []

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...] | None,
        dtype: str = "float32",
        data: Any = None,
        scale: Any = None,
        zero: Any = 0,
        axis: int = 0,
        **fields: Any,
    ) -> int:
        """Adds a tensor and returns its number.

        shape: its sizes; -1 for an open one, which is 1 in `shape` and -1 in `shape_signature`.
        data: its elements, for a constant: an array, or bytes.
        scale, zero: numbers, or vectors along `axis`.
        fields: further fields of the table.
        """
        if data is not None and not isinstance(data, bytes):
            data = np.asarray(data, DTYPES[dtype])
            shape = data.shape if shape is None else shape
        row: dict[str, Any] = {"type": dtype, "name": name}
        if shape is not None:
            row["shape"] = [abs(d) for d in shape]
            if any(d < 0 for d in shape):
                row["shape_signature"] = list(shape)
            row["has_rank"] = True
        if data is not None:
            row["buffer"] = self.model.buffer(data if isinstance(data, bytes) else data.tobytes())
        if scale is not None:
            scale = np.atleast_1d(np.asarray(scale, np.float32))
            zeros = np.broadcast_to(np.asarray(zero, np.int64), scale.shape)
            row["quantization"] = {"scale": scale, "zero_point": zeros, "quantized_dimension": axis}
        self.tensors.append(row | fields)
        self.arrays.append(data)
        return len(self.tensors) - 1

    def op(
        self,
        name: str,
        inputs: list[int],
        outputs: list[int],
        version: int | None = None,
        custom: bytes | None = None,
        intermediates: list[int] | None = None,
        **options: dict[str, Any],
    ) -> None:
        """Adds an operator: a builtin one in capitals, else a custom one.

        options: the member of one of the unions, as a keyword with its fields.
        """
        row: dict[str, Any] = {
            "opcode_index": self.model.opcode(name, version),
            "inputs": inputs,
            "outputs": outputs,
            "intermediates": intermediates,
        }
        if options:
            member = next(iter(options.items()))
            row["options" if member[0] in schema().unions["Options"] else "options_2"] = member
        if custom is not None:
            row["custom_options"] = np.frombuffer(custom, np.uint8)
        self.operators.append(row)


class TfliteModel:
    """A file with its subgraphs, buffers and signatures."""

    def __init__(self) -> None:
        # Bytes, or the place of a buffer behind the tables and its size.
        self.buffers: list[bytes | tuple[int, int] | None] = [None]
        self.codes: list[tuple[str, int]] = []
        self.graphs: list[Graph] = []
        self.fields: dict[str, Any] = {}
        self.metadata: dict[str, bytes] = {}

    def buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def opcode(self, name: str, version: int | None) -> int:
        # Kernels have the first version of all operators but of this one.
        key = (name, version or (2 if name == "BROADCAST_TO" else 1))
        if key not in self.codes:
            self.codes.append(key)
        return self.codes.index(key)

    def graph(self) -> Graph:
        self.graphs.append(Graph(self))
        return self.graphs[-1]

    def bytes(self) -> bytes:
        """The file."""
        codes = []
        for name, version in self.codes:
            if name in operators():
                code = operators()[name][0]
                codes.append({"deprecated_code": min(code, 127), "code": code, "version": version})
            else:
                codes.append(
                    {"deprecated_code": 32, "code": 32, "custom_code": name, "version": version}
                )
        metadata = [{"name": k, "buffer": self.buffer(v)} for k, v in self.metadata.items()]
        e = Encoder()
        model = {
            "version": 3,
            "operator_codes": codes,
            "subgraphs": [
                {
                    "tensors": g.tensors,
                    "inputs": g.inputs,
                    "outputs": g.outputs,
                    "operators": g.operators,
                    "name": f"graph{i}",
                }
                for i, g in enumerate(self.graphs)
            ],
            "buffers": [
                {}
                if d is None
                else {"offset": d[0], "size": d[1]}
                if isinstance(d, tuple)
                else {"data": np.frombuffer(d, np.uint8)}
                for d in self.buffers
            ],
            "metadata": metadata or None,
        }
        e.builder.Finish(e.table("Model", model | self.fields), file_identifier=b"TFL3")
        return bytes(e.builder.Output())
