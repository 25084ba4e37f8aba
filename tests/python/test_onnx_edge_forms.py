"""Valid forms at the edges of ONNX's operators, drawn at random, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import relay

MIN, MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max
OPSET = 21


class Case:
    """One node with its operands: x of open or fixed sizes, and others that are constants or inputs."""

    def __init__(self, op, operands, attributes, rng):
        self.op, self.attributes = op, attributes
        # An operand is (array, whether a run gives it, its declared shape) or None.
        self.operands = operands
        self.rng = rng

    def __repr__(self):
        shown = [
            None if o is None else (o[0].dtype.name, o[0].shape if o[0].size > 16 else o[0].tolist(), *o[1:])
            for o in self.operands
        ]  # fmt: skip
        return f"{self.op}({shown}, {self.attributes})"

    def add(self, graph, prefix):
        names = []
        for i, operand in enumerate(self.operands):
            if operand is None:
                names.append("")
                continue
            array, given, shape = operand
            name = f"{prefix}{i}"
            names.append(name)
            if given:
                dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
                sizes = [f"{prefix}{i}_{a}" if d is None else d for a, d in enumerate(shape)]
                graph.inputs.append(helper.make_tensor_value_info(name, dtype, sizes))
                graph.feeds[name] = array
            else:
                graph.constants.append(numpy_helper.from_array(array, name))
        graph.nodes.append(helper.make_node(self.op, names, [prefix + "y"], **self.attributes))
        graph.outputs.append(helper.make_empty_tensor_value_info(prefix + "y"))


class Graph:
    def __init__(self, cases):
        self.inputs, self.constants, self.nodes, self.outputs, self.feeds = [], [], [], [], {}
        for i, case in enumerate(cases):
            case.add(self, f"c{i}_")

    def model(self):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options)


def operand(rng, array, given=None):
    """An array that a run gives, with open sizes or not, or a constant."""
    given = rng.random() < 0.5 if given is None else given
    return array, given, tuple(None if rng.random() < 0.5 else d for d in array.shape)


def values(rng, shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(0, 100, shape).astype(dtype)


DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64",
          "uint32", "uint64", "bool")  # fmt: skip


def sizes(rng, rank):
    return tuple(int(d) for d in rng.integers(1, 5, rank))


def draw_slice(rng):
    rank = int(rng.integers(1, 4))
    x = values(rng, sizes(rng, rank), str(rng.choice(DTYPES)))
    axes = rng.permutation(rank)[: int(rng.integers(1, rank + 1))]
    n = len(axes)
    bounds = [MIN, MIN + 1, -7, -2, -1, 0, 1, 2, 7, MAX - 1, MAX]
    steps = [MIN, MIN + 1, -3, -2, -1, 1, 2, 3, MAX]
    integers = [
        np.array(rng.choice(bounds, n), "int64"),
        np.array(rng.choice(bounds, n), "int64"),
        np.array([a - rank if rng.random() < 0.5 else a for a in axes], "int64"),
        np.array(rng.choice(steps, n), "int64"),
    ]
    # ONNX Runtime gives one element where so long a step goes away from the end: none is between.
    far = integers[3] < -1000
    integers[1][far] = MIN
    given = rng.random() < 0.3
    fixed = [(a, given and i != 2, a.shape) for i, a in enumerate(integers)]
    return Case("Slice", [operand(rng, x, True), *fixed], {}, rng)


def draw_pad(rng):
    rank = int(rng.integers(1, 4))
    dtype = str(rng.choice(DTYPES))
    x = values(rng, sizes(rng, rank), dtype)
    axes = rng.permutation(rank)[: int(rng.integers(1, rank + 1))]
    some = rng.random() < 0.5
    count = len(axes) if some else rank
    pads = np.array(rng.choice([-2, -1, 0, 0, 1, 2, 5], 2 * count), "int64")
    given = rng.random() < 0.3
    fill = None if rng.random() < 0.5 else (values(rng, (), dtype), rng.random() < 0.5, ())
    mode = str(rng.choice(["constant", "constant", "edge", "reflect", "wrap"]))
    which = (np.array(axes, "int64"), False, (count,)) if some else None
    operands = [operand(rng, x, True), (pads, given, pads.shape), fill, which]
    return Case("Pad", operands, {"mode": mode}, rng)


EQUATIONS = ("ij,jk->ik", "ij,ij->", "ij,kj->ikj", "bij,bjk->bik", "...ij,...jk->...ik", "ij,j->i",
             "i,i", "ij,jk,kl->il", "ii->i", "bii->b", "ij->ji", "...i->...", "ij,ij,ij->j",
             "bhqd,bhkd->bhqk", "i,j->ij", "...i,i->...", "iij,j->i")  # fmt: skip


def draw_einsum(rng):
    equation = str(rng.choice(EQUATIONS))
    label = {c: int(rng.integers(1, 5)) for c in equation if c.isalpha()}
    dots = sizes(rng, 2)
    operands = []
    for term in equation.split("->")[0].split(","):
        own = {c: 1 if rng.random() < 0.25 else n for c, n in label.items()}
        front = tuple(1 if rng.random() < 0.3 else d for d in dots) if "..." in term else ()
        shape = front + tuple(own[c] for c in term.replace("...", ""))
        operands.append(operand(rng, values(rng, shape, "float32"), True))
    # ONNX Runtime asks for equal sizes where both are open; an open size of 1 is of the same kind.
    operands = [(a, g, a.shape) for a, g, _ in operands]
    return Case("Einsum", operands, {"equation": equation}, rng)


def draw_eye(rng):
    x = values(rng, sizes(rng, 2), "float32")
    attributes = {} if rng.random() < 0.5 else {"k": int(rng.choice([-5, -1, 0, 1, 3]))}
    if rng.random() < 0.5:
        dtype = np.dtype(str(rng.choice(["float32", "float64", "int32", "int64", "uint8"])))
        attributes["dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
    return Case("EyeLike", [operand(rng, x, True)], attributes, rng)


DRAWS = {"Slice": draw_slice, "Pad": draw_pad, "Einsum": draw_einsum, "EyeLike": draw_eye}


def check(op, seed, count):
    rng = np.random.default_rng(seed)
    cases, wanted, drawn = [], [], 0
    while len(cases) < count:
        drawn += 1
        assert drawn < 20 * count, "ONNX Runtime takes hardly any of them"
        case = DRAWS[op](rng)
        alone = Graph([case])
        try:
            (want,) = session_of(alone.model()).run(None, alone.feeds)
        except Exception:  # what ONNX Runtime refuses is for other tests
            continue
        cases.append(case)
        wanted.append(want)
    for begin in range(0, count, 25):
        some = cases[begin : begin + 25]
        graph = Graph(some)
        try:
            mod, _ = relay.frontend.from_onnx(graph.model())
            found = relay.build(mod, opt_level=1)(**graph.feeds)
        except relay.RelayError:
            # Which one it is.
            for case in some:
                alone = Graph([case])
                try:
                    mod, _ = relay.frontend.from_onnx(alone.model())
                    relay.build(mod, opt_level=1)(**alone.feeds)
                except relay.RelayError as error:
                    raise AssertionError(f"seed {seed}: {case}: {error}") from error
            raise
        found = found if isinstance(found, tuple) else (found,)
        for case, want, got in zip(some, wanted[begin:], found, strict=False):
            assert got.shape == want.shape and got.dtype == want.dtype, (seed, case)
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=f"seed {seed}: {case}")


@pytest.mark.parametrize("op", DRAWS)
def test_drawn_forms_agree(op):
    check(op, 26, 25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("op", DRAWS)
def test_many_drawn_forms_agree(op, seed):
    check(op, 1000 + seed, 50)
