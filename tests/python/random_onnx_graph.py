"""Graphs that grow node by node: the values of each node are computed when it is added."""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 18
MOST_ELEMENTS = 600
FLOAT, INTS = "float32", ("int32", "int64")
FAR = np.iinfo(np.int64).max


@dataclass
class Value:
    """A tensor of the graph: `exact` when no rounding went into it."""

    name: str
    array: np.ndarray
    exact: bool
    constant: bool = False

    @property
    def rank(self) -> int:
        return self.array.ndim

    def info(self) -> onnx.ValueInfoProto:
        dtype = helper.np_dtype_to_tensor_dtype(self.array.dtype)
        return helper.make_tensor_value_info(self.name, dtype, self.array.shape)


class Refused(Exception):
    """The operator does not take what was drawn."""


@dataclass
class Graph:
    """A graph under construction."""

    rng: np.random.Generator
    values: list[Value] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)

    # ---- Drawing

    def one_of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def size(self) -> int:
        return self.one_of([0] + [1] * 4 + [2, 2, 3, 3, 4, 5, 7])

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(int(self.rng.integers(least, most + 1))))

    def numbers(self, shape, dtype=FLOAT) -> np.ndarray:
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        low = 0 if dtype.startswith("u") else -4
        return np.asarray(self.rng.integers(low, 5, shape)).astype(dtype)

    def input(self, shape, dtype=FLOAT) -> Value:
        v = Value(f"x{len(self.inputs)}", self.numbers(shape, dtype), True)
        self.inputs.append(v)
        self.values.append(v)
        return v

    def fixed_input(self, array: np.ndarray) -> Value:
        """An input of these numbers; it is for one operator only."""
        v = Value(f"x{len(self.inputs)}", array, True)
        self.inputs.append(v)
        return v

    def constant(self, array) -> Value:
        v = Value(f"c{len(self.constants)}", np.asarray(array), True, constant=True)
        self.constants.append(numpy_helper.from_array(v.array, v.name))
        return v

    def data(self, shape, dtype=FLOAT) -> Value:
        """New numbers: an input or a constant."""
        return (
            self.constant(self.numbers(shape, dtype))
            if self.chance(0.5)
            else self.input(shape, dtype)
        )

    def pick(self, dtypes=(FLOAT,), least: int = 0, most: int = 6, exact: bool = False) -> Value:
        """A value that is there, or a new input."""
        fits = [v for v in self.values if str(v.array.dtype) in dtypes
                and least <= v.rank <= most and (v.exact or not exact)]  # fmt: skip
        if fits and self.chance(0.85):
            # The latest are the most likely ones, so that graphs get deep.
            return fits[-1 - min(int(self.rng.geometric(0.4)) - 1, len(fits) - 1)]
        return self.input(self.shape(least, min(most, max(least, 4))), self.one_of(dtypes))

    def axis(self, rank: int) -> int:
        if rank == 0:
            raise Refused
        return int(self.rng.integers(-rank, rank))

    def axes(self, rank: int) -> list[int]:
        some = [a for a in range(rank) if self.chance(0.5)]
        self.rng.shuffle(some)
        return [int(a - rank if self.chance(0.5) else a) for a in some]

    def like(self, v: Value) -> Value:
        """Something that broadcasts with `v`, of its dtype."""
        dtype = str(v.array.dtype)
        shape = [d if self.chance(0.7) else 1 for d in v.array.shape]
        cut = int(self.rng.integers(0, len(shape) + 1)) if self.chance(0.4) else 0
        return self.data(tuple(shape[cut:]), dtype)

    # ---- Adding

    def add(self, op: str, inputs: list[Value | None], outputs: int = 1, exact: bool = True,
            **attributes) -> list[Value]:  # fmt: skip
        """Adds a node; raises Refused when the reference cannot compute it."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, **attributes)
        there = [v for v in inputs if v]
        graph = helper.make_graph(
            [node], "one",
            [v.info() for v in {v.name: v for v in there}.values()],
            [helper.make_empty_tensor_value_info(n) for n in names],
        )  # fmt: skip
        single = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                arrays = ReferenceEvaluator(single).run(None, {v.name: v.array for v in there})
        except Exception as error:
            raise Refused from error
        arrays = [np.asarray(a) for a in arrays]
        if any(a.size > MOST_ELEMENTS or a.ndim > 6 for a in arrays):
            raise Refused
        for a in arrays:
            # Numbers grow, and past 2^20 sums of them are rounded.
            if (
                a.dtype.kind in "fiu"
                and a.size
                and not np.abs(np.nan_to_num(a.astype("f8"))).max() < 2**20
            ):
                raise Refused
        exact = exact and all(v.exact for v in there)
        made = [Value(n, a, exact) for n, a in zip(names, arrays, strict=True)]
        self.nodes.append(node)
        self.values += made
        return made

    def model(self) -> onnx.ModelProto:
        used = {name for node in self.nodes for name in node.input}
        results = [v for v in self.values if v.name not in used and not v.name.startswith("x")]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [v.info() for v in self.inputs if v.name in used],
            [v.info() for v in results],
            [c for c in self.constants if c.name in used],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8
        )
