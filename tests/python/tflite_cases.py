"""Cases of TFLite operators: small models with inputs, one for each operator and kind of element.

usage: tflite_cases.py FOLDER   writes the models
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from flatbuffers import flexbuffers
from tflite_writer import DTYPES, Graph, TfliteModel

F, I8, U8, I16, I32, I64, B = "float32", "int8", "uint8", "int16", "int32", "int64", "bool"


@dataclass
class Case:
    """A model of one operator, or of a few."""

    name: str
    fill: Callable[[Made], None]
    # 0 for results that are equal bit for bit; otherwise relative to the greatest result.
    tolerance: float = 1e-5
    # LiteRT's kernels: those for reference, but for the operators that have only others.
    reference: bool = True
    # The input whose elements count, where it is not the first one.
    typed: int = 0

    def made(self) -> Made:
        made = Made(sum(self.name.encode()))
        self.fill(made)
        return made

    def build(self) -> tuple[bytes, dict[str, np.ndarray]]:
        """The file, and the values of its inputs by name."""
        made = self.made()
        return made.model.bytes(), made.feeds

    def of(self, dtype: str) -> tuple[bytes, dict[str, np.ndarray]]:
        """The same with other elements: weights of int4, or all that are of the first kind."""
        made = self.made()
        kind = self.compared()[self.operator][0]
        base, levels = kind.split()[0], kind.endswith("quantised")
        if dtype == "int4":
            for t in made.g.tensors:
                if t["type"] == I8 and t.get("buffer") and len(t["shape"]) > 1:
                    as_int4(made, t)
        elif levels:
            move_levels(made, base, dtype)
        else:
            retype(made, base, dtype)
        return made.model.bytes(), made.feeds

    def other_kinds(self) -> list[str]:
        """The kinds of `compared` for the elements of RETYPED."""
        others = RETYPED.get(self.name, "").split()
        kind = self.compared()[self.operator][0] if others else ""
        if kind.endswith(" by int8"):
            return [f"float32 by {dtype}" for dtype in others]
        return [dtype + " quantised" * kind.endswith(" quantised") for dtype in others]

    @property
    def operator(self) -> str:
        return self.name.split("-")[0]

    def compared(self) -> dict[str, list[str]]:
        """Elements by operator, "int8 quantised" or "float32 by int8"; several for "-types".

        Those of the operator that the case is named for, and of all operators on complex numbers,
        which are chained, or of all in the graph for "-chain".
        """
        made = self.made()
        kinds: dict[str, list[str]] = {self.operator: []}
        for o in made.g.operators:
            name = made.model.codes[o["opcode_index"]][0]
            first = o["inputs"][0] if o["inputs"] else -1
            if first >= 0 and made.g.tensors[first]["type"] == "complex64":
                kinds.setdefault(name, []).append("complex64")
            elif self.name.endswith("-chain"):
                types = [made.g.tensors[t]["type"] for t in (*o["inputs"], *o["outputs"])]
                values = [t for t in types if t != "resource"] or ["resource"]
                kinds.setdefault(name, []).append(values[0])
            elif name == self.operator and (not kinds[name] or self.name.endswith("-types")):
                kinds[name].append(self.kind(made.g.tensors, o["inputs"]))
        return kinds

    def kind(self, tensors: list[dict], inputs: list[int]) -> str:
        """The elements of an operator with these inputs."""
        if self.name.endswith("hybrid"):
            return "float32 by int8"
        if self.name.endswith("int4"):
            return "int4 quantised"
        place = self.typed or {"SPLIT": 1, "TRANSPOSE_CONV": 2}.get(self.operator, 0)
        t = tensors[inputs[place]]
        return t["type"] + (" quantised" if "quantization" in t else "")


# Operators that tests of their own in test_tflite_cases.py compare.
COMPARED_ELSEWHERE = {
    "HASHTABLE_IMPORT": ["string"],
    "SKIP_GRAM": ["string"],
    "TFLite_Detection_PostProcess": ["float32", "uint8 quantised"],
}

# Operators that LiteRT cannot be asked about, with what tests compare them with.
NOT_BY_LITERT = {
    "CALL": "LiteRT has no kernel; compared with NumPy",
    **dict.fromkeys(
        ("Convolution2DTransposeBias", "Landmarks2TransformMatrix", "MaxPoolingWithArgmax2D",
         "MaxUnpooling2D", "TransformLandmarks", "TransformTensor", "TransformTensorBilinear"),
        "LiteRT has no kernel; compared with NumPy",
    ),
    **dict.fromkeys(
        ("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"),
        "LiteRT draws other numbers; the distribution is tested",
    ),
}  # fmt: skip

CASES: list[Case] = []


@dataclass
class Made:
    """A model in the making, with the values of its inputs."""

    seed: int
    model: TfliteModel = field(default_factory=TfliteModel)
    feeds: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.g: Graph = self.model.graph()

    def draw(self, shape, dtype=F, low=None, high=None) -> np.ndarray:
        if dtype == B:
            return self.rng.integers(0, 2, shape).astype(bool)
        kind = DTYPES[dtype]
        if np.issubdtype(kind, np.integer):
            info = np.iinfo(kind)
            low = max(info.min, -(2**15)) if low is None else low
            high = min(info.max, 2**15) if high is None else high
            return self.rng.integers(low, high + 1, shape).astype(kind)
        low, high = -2.0 if low is None else low, 2.0 if high is None else high
        return (self.rng.random(shape) * (high - low) + low).astype(kind)

    def input(self, shape, dtype=F, low=None, high=None, values=None, **q) -> int:
        name = f"x{len(self.feeds)}"
        t = self.g.tensor(name, tuple(shape), dtype, **q)
        self.g.inputs.append(t)
        sizes = tuple(abs(d) for d in shape)
        self.feeds[name] = (
            np.asarray(values, DTYPES[dtype]).reshape(sizes)
            if values is not None
            else self.draw(sizes, dtype, low, high)
        )
        return t

    def const(self, values, dtype=I32, **q) -> int:
        return self.g.tensor(f"c{len(self.g.tensors)}", None, dtype, data=values, **q)

    def out(self, shape=(), dtype=F, **q) -> int:
        t = self.g.tensor(f"y{len(self.g.tensors)}", tuple(shape), dtype, **q)
        self.g.outputs.append(t)
        return t

    def mid(self, shape=(), dtype=F, **q) -> int:
        return self.g.tensor(f"m{len(self.g.tensors)}", tuple(shape), dtype, **q)


def case(name: str, tolerance: float = 1e-5, reference: bool = True, typed: int = 0):
    """Registers a function that fills a model."""

    def add(fill: Callable[[Made], None]) -> Callable[[Made], None]:
        CASES.append(Case(name, fill, tolerance, reference, typed))
        return fill

    return add


def simple(
    op: str, shapes, dtype=F, out=None, low=None, high=None, tag="", reference=True, **options
):
    """A case whose inputs are all drawn."""
    exact = DTYPES[dtype] is bool or np.issubdtype(DTYPES[dtype], np.integer)

    @case(f"{op}-{tag or dtype}", 0 if exact else 1e-5, reference)
    def _(m: Made) -> None:
        inputs = [m.input(s, dtype, low, high) for s in shapes]
        m.g.op(op, inputs, [m.out(shapes[0], out or dtype)], **options)


# Scales of quantised operands, and of results.
QX, QY = {"scale": 0.047, "zero": 3}, {"scale": 0.061, "zero": -7}
UX, UY = {"scale": 0.047, "zero": 131}, {"scale": 0.061, "zero": 121}
WX, WY = {"scale": 0.00047, "zero": 0}, {"scale": 0.00061, "zero": 0}
LEVELS = {I8: (QX, QY), U8: (UX, UY), I16: (WX, WY)}

# ---- Elements

for _op in ("ABS", "NEG", "SIN", "COS", "EXP", "SQUARE", "FLOOR", "RELU", "RELU6", "RELU_N1_TO_1",
            "RELU_0_TO_1", "TANH", "LOGISTIC", "SIGN", "HARD_SWISH", "ZEROS_LIKE"):  # fmt: skip
    simple(_op, [(2, 3, 4)])
for _op in ("CEIL", "ROUND", "ELU"):
    simple(_op, [(2, 3, 4)], reference=False)
for _op in ("LOG", "SQRT", "RSQRT"):
    simple(_op, [(2, 3, 4)], low=0.25, high=9)
simple("LEAKY_RELU", [(2, 5)], leaky_relu={"alpha": 0.1})
simple("GELU", [(2, 5)], gelu={"approximate": False})
simple("GELU", [(2, 5)], gelu={"approximate": True}, tag="tanh")
simple("SOFTMAX", [(2, 5)], softmax={"beta": 1.0})
simple("SOFTMAX", [(2, 3, 5)], softmax={"beta": 0.5}, tag="beta")
simple("LOG_SOFTMAX", [(2, 5)])
simple("PRELU", [(2, 3, 4), (4,)])
simple("L2_NORMALIZATION", [(2, 5)], l2_norm={})
# The reference kernel leaves out the last place of a window, unlike the operator's definition.
simple("LOCAL_RESPONSE_NORMALIZATION", [(1, 2, 3, 6)], reference=False,
       local_response={"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.75})  # fmt: skip
simple("LOGICAL_NOT", [(7,)], B)
simple("ABS", [(7,)], I32)
simple("NEG", [(7,)], I32)
simple("NEG", [(7,)], I64)
for _op, _member in (("ADD", "add"), ("SUB", "sub"), ("MUL", "mul"), ("DIV", "div")):
    simple(_op, [(2, 3, 4), (3, 1)], low=0.5, high=3, **{_member: {}})
    simple(
        _op, [(2, 3), (2, 3)], low=0.5, high=3, tag="relu6", **{_member: {"activation": "relu6"}}
    )
    simple(_op, [(2, 3), (2, 3)], I32, low=1, high=100, **{_member: {}})
for _op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
    simple(_op, [(2, 3, 4), (4,)])
    simple(_op, [(2, 3), (2, 3)], I32, low=-100, high=100)
for _op in ("POW", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"):
    simple(_op, [(2, 3), (2, 3)], low=0.5, high=3)
for _op in ("FLOOR_DIV", "FLOOR_MOD"):
    simple(_op, [(9,), (9,)], I32, low=1, high=90)


@case("ATAN2-corners")
def _(m: Made) -> None:
    values = np.array([-np.inf, -1.5, -0.0, 0.0, 1.5, np.inf], np.float32)
    y, x = (v.ravel() for v in np.meshgrid(values, values))
    m.g.op("ATAN2", [m.input((36,), values=y), m.input((36,), values=x)], [m.out((36,))])


simple("LOGICAL_AND", [(7,), (7,)], B)
simple("LOGICAL_OR", [(7,), (7,)], B)
simple("BITWISE_XOR", [(7,), (7,)], I32)
simple("RIGHT_SHIFT", [(7,), (7,)], I32, low=0, high=20)
simple("ADD_N", [(2, 3), (2, 3), (2, 3)])
for _op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    simple(_op, [(3, 4), (4,)], out=B)
    simple(_op, [(3, 4), (4,)], I32, out=B, low=-2, high=2)


@case("CAST-float-int", 0)
def _(m: Made) -> None:
    m.g.op("CAST", [m.input((7,), high=100)], [m.out((7,), I32)], cast={"from": F, "to": I32})


@case("CAST-int-float")
def _(m: Made) -> None:
    m.g.op("CAST", [m.input((7,), I32)], [m.out((7,))], cast={"from": I32, "to": F})


@case("FAKE_QUANT")
def _(m: Made) -> None:
    m.g.op("FAKE_QUANT", [m.input((2, 7))], [m.out((2, 7))],
           fake_quant={"min": -1.5, "max": 1.25, "bits": 8})  # fmt: skip


# ---- Reductions and order


def reduction(op: str, axes, keep: bool, dtype=F, tag=""):
    @case(f"{op}-{tag or dtype}", 0 if dtype != F else 1e-5)
    def _(m: Made) -> None:
        x = m.input((2, 3, 4), dtype, -3, 3) if dtype != B else m.input((2, 3, 4), B)
        m.g.op(op, [x, m.const(axes)], [m.out((1,), dtype)], reducer={"keep_dims": keep})


for _op in ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
    reduction(_op, [1], True)
    reduction(_op, [0, -1], False, tag="two")
for _op in ("SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
    reduction(_op, [2], False, I32)
for _dtype, _level in ((I8, 0.06), (I16, 0.0004)):

    @case(f"REDUCE_PROD-q{_dtype}", 0)
    def _(m: Made, dtype=_dtype, level=_level) -> None:
        x = m.input((4, 3, 5), dtype, scale=level, zero=3 if dtype == I8 else 0)
        y = m.out((1,), dtype, scale=3 * level, zero=-2 if dtype == I8 else 0)
        m.g.op("REDUCE_PROD", [x, m.const([1])], [y], reducer={"keep_dims": False})


for _op in ("REDUCE_ANY", "REDUCE_ALL"):
    reduction(_op, [1], False, B)
for _op, _member in (("ARG_MAX", "arg_max"), ("ARG_MIN", "arg_min")):

    @case(f"{_op}-float32", 0)
    def _(m: Made, op=_op, member=_member) -> None:
        inputs = [m.input((2, 3, 4)), m.const(1)]
        m.g.op(op, inputs, [m.out((2, 4), I32)], **{member: {"type": I32}})


@case("TOPK_V2-float32")
def _(m: Made) -> None:
    outs = [m.out((2, 3)), m.out((2, 3), I32)]
    m.g.op("TOPK_V2", [m.input((2, 9)), m.const(3)], outs)


@case("CUMSUM-float32")
def _(m: Made) -> None:
    options = {"exclusive": True, "reverse": True}
    m.g.op("CUMSUM", [m.input((2, 5)), m.const(1)], [m.out((2, 5))], cumsum=options)


@case("BUCKETIZE-float32", 0)
def _(m: Made) -> None:
    options = {"boundaries": np.array([-1.0, 0.0, 1.5], np.float32)}
    m.g.op("BUCKETIZE", [m.input((9,))], [m.out((9,), I32)], bucketize=options)


@case("BUCKETIZE-float64", 0)
def _(m: Made) -> None:
    # The second number is below 0.1 as a float32, and both are equal to it in float32.
    values = [0.1, float(np.float32(0.1)), np.nan, -np.inf, np.inf]
    options = {"boundaries": np.array([-1.0, 0.1, 1.5], np.float32)}
    x = m.input((5,), "float64", values=values)
    m.g.op("BUCKETIZE", [x], [m.out((5,), I32)], bucketize=options)


@case("UNIQUE-int32", 0)
def _(m: Made) -> None:
    outs = [m.out((-1,), I32), m.out((9,), I32)]
    m.g.op("UNIQUE", [m.input((9,), I32, 0, 4)], outs, unique={"index_type": I32})


# ---- Moves


def move(op: str, sizes, constants, out, tag="float32", dtype=F, first=True, **options):
    @case(f"{op}-{tag}", 0)
    def _(m: Made) -> None:
        x = m.input(sizes, dtype)
        rest = [m.const(c) for c in constants]
        m.g.op(op, [x, *rest] if first else [*rest, x], [m.out(out, dtype)], **options)


move("RESHAPE", (2, 3, 4), [[6, -1]], (6, 4), reshape={"new_shape": [6, -1]})
move("TRANSPOSE", (2, 3, 4), [[2, 0, 1]], (4, 2, 3))
move("EXPAND_DIMS", (2, 3), [1], (2, 1, 3))
move("SQUEEZE", (1, 3, 1), [], (3, 1), squeeze={"axes": [0]})
move("BROADCAST_TO", (3, 1), [[2, 3, 4]], (2, 3, 4))
move("TILE", (2, 3), [[2, 2]], (4, 6))
move("SLICE", (4, 5), [[1, 2], [2, -1]], (2, 3))
move("STRIDED_SLICE", (4, 5, 6), [[0, 1, 0], [4, 5, 1], [2, 2, 1]], (2, 2),
     strided_slice={"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 4})  # fmt: skip
move("STRIDED_SLICE", (4, 5), [[3, 0], [0, 5], [-1, 1]], (3, 5), tag="back", strided_slice={})
move("STRIDED_SLICE", (4, 5), [[0, 0, 0], [0, 0, 3], [1, 1, 1]], (4, 1, 3), tag="new",
     strided_slice={"ellipsis_mask": 1, "new_axis_mask": 2})  # fmt: skip
move("PAD", (2, 3), [[[1, 0], [2, 1]]], (3, 6))
move("MIRROR_PAD", (3, 4), [[[1, 2], [2, 1]]], (6, 7), mirror_pad={"mode": "reflect"})
move("MIRROR_PAD", (3, 4), [[[1, 2], [2, 1]]], (6, 7), tag="symmetric",
     mirror_pad={"mode": "symmetric"})  # fmt: skip
move("REVERSE_V2", (3, 4), [[1]], (3, 4))
move("REVERSE_SEQUENCE", (3, 4), [[2, 4, 1]], (3, 4),
     reverse_sequence={"seq_dim": 1, "batch_dim": 0})  # fmt: skip
move("GATHER", (5, 3), [[4, 0, 2]], (3, 3), gather={"axis": 0})
move("GATHER_ND", (4, 5), [[[0, 1], [3, 4]]], (2,))
move("SPACE_TO_DEPTH", (1, 4, 6, 2), [], (1, 2, 3, 8), space_to_depth={"block_size": 2})
move("DEPTH_TO_SPACE", (1, 2, 3, 8), [], (1, 4, 6, 2), depth_to_space={"block_size": 2})
move("SPACE_TO_BATCH_ND", (1, 4, 5, 2), [[2, 2], [[0, 0], [1, 0]]], (4, 2, 3, 2))
move("BATCH_TO_SPACE_ND", (4, 2, 3, 2), [[2, 2], [[0, 0], [1, 0]]], (1, 4, 5, 2))
move("EMBEDDING_LOOKUP", (6, 3), [[5, 0, 2]], (3, 3), first=False)
move("MATRIX_DIAG", (2, 3), [], (2, 3, 3))
move("SHAPE", (2, 3), [], (2,), shape={"type": I32}, dtype=I32)
for _dtype in (I8, U8, I16, I32, I64, B):
    move("TRANSPOSE", (2, 3, 4), [[2, 0, 1]], (4, 2, 3), tag=_dtype, dtype=_dtype)
    move(
        "RESHAPE", (2, 6), [[3, 4]], (3, 4), tag=_dtype, dtype=_dtype, reshape={"new_shape": [3, 4]}
    )


@case("GATHER-batch", 0)
def _(m: Made) -> None:
    inputs = [m.input((2, 5, 3)), m.const([[4, 0], [1, 1]])]
    m.g.op("GATHER", inputs, [m.out((2, 2, 3))], gather={"axis": 1, "batch_dims": 1})


@case("CONCATENATION-float32", 0)
def _(m: Made) -> None:
    inputs = [m.input((2, 3)), m.input((2, 1))]
    m.g.op("CONCATENATION", inputs, [m.out((2, 4))], concatenation={"axis": -1})


@case("PACK-float32", 0)
def _(m: Made) -> None:
    inputs = [m.input((2, 3)), m.input((2, 3))]
    m.g.op("PACK", inputs, [m.out((2, 2, 3))], pack={"count": 2, "axis": 1})


@case("UNPACK-float32", 0)
def _(m: Made) -> None:
    m.g.op("UNPACK", [m.input((2, 3))], [m.out((2,)) for _ in range(3)],
           unpack={"count": 3, "axis": 1})  # fmt: skip


@case("SPLIT-float32", 0)
def _(m: Made) -> None:
    outs = [m.out((2, 3)), m.out((2, 3))]
    m.g.op("SPLIT", [m.const(1), m.input((2, 6))], outs, split={"parts": 2})


@case("SPLIT_V-float32", 0)
def _(m: Made) -> None:
    outs = [m.out((1, 2)), m.out((5, 2))]
    m.g.op("SPLIT_V", [m.input((6, 2)), m.const([1, -1]), m.const(0)], outs, split_v={"parts": 2})


@case("PADV2-float32", 0)
def _(m: Made) -> None:
    inputs = [m.input((2, 3)), m.const([[1, 0], [0, 2]]), m.const(np.float32(7), F)]
    m.g.op("PADV2", inputs, [m.out((3, 5))])


@case("SELECT-float32", 0)
def _(m: Made) -> None:
    m.g.op("SELECT", [m.input((2,), B), m.input((2, 3)), m.input((2, 3))], [m.out((2, 3))])


@case("SELECT_V2-float32", 0)
def _(m: Made) -> None:
    m.g.op("SELECT_V2", [m.input((2, 1), B), m.input((2, 3)), m.input((3,))], [m.out((2, 3))])


@case("WHERE-bool", 0)
def _(m: Made) -> None:
    m.g.op("WHERE", [m.input((3, 4), B)], [m.out((-1, 2), I64)])


@case("SCATTER_ND-float32")
def _(m: Made) -> None:
    inputs = [m.const([[3], [1], [3]]), m.input((3, 2)), m.const([5, 2])]
    m.g.op("SCATTER_ND", inputs, [m.out((5, 2))])


@case("SPARSE_TO_DENSE-float32", 0)
def _(m: Made) -> None:
    inputs = [m.const([[0, 1], [2, 2]]), m.const([3, 4]), m.input((2,)), m.const(np.float32(9), F)]
    m.g.op("SPARSE_TO_DENSE", inputs, [m.out((3, 4))])


@case("DYNAMIC_UPDATE_SLICE-float32", 0)
def _(m: Made) -> None:
    inputs = [m.input((4, 5)), m.input((2, 3)), m.input((2,), I32, values=[1, 9])]
    m.g.op("DYNAMIC_UPDATE_SLICE", inputs, [m.out((4, 5))])


@case("DYNAMIC_UPDATE_SLICE-empty", 0)
def _(m: Made) -> None:
    inputs = [m.input((4, 5)), m.input((0, 3)), m.input((2,), I32, values=[1, 9])]
    m.g.op("DYNAMIC_UPDATE_SLICE", inputs, [m.out((4, 5))])


@case("ONE_HOT-float32", 0)
def _(m: Made) -> None:
    inputs = [
        m.input((4,), I32, -1, 5),
        m.const(4),
        m.const(np.float32(2), F),
        m.const(np.float32(-1), F),
    ]
    m.g.op("ONE_HOT", inputs, [m.out((4, 4))], one_hot={"axis": -1})


@case("FILL-float32", 0)
def _(m: Made) -> None:
    m.g.op("FILL", [m.const([2, 3]), m.input(())], [m.out((2, 3))])


@case("RANGE-int32", 0)
def _(m: Made) -> None:
    y = m.mid((5,), I32)
    m.g.op("RANGE", [m.const(1), m.const(11), m.const(2)], [y])
    m.g.op("ADD", [y, m.input((5,), I32)], [m.out((5,), I32)], add={})


@case("RANGE-int64", 0)
def _(m: Made) -> None:
    # Numbers that no float64 holds.
    y = m.mid((4,), I64)
    m.g.op("RANGE", [m.const(2**53 + 7, I64), m.const(2**53, I64), m.const(-2, I64)], [y])
    m.g.op("ADD", [y, m.input((4,), I64)], [m.out((4,), I64)], add={})


for _kind, _start, _limit, _step in (
    # In float64 the quotient is just above 3, and there are 4 elements.
    ("float32", 0.0, 0.3, 0.1), ("down", 1.0, -1.0, -0.3), ("long", 0.1, 40.0, 0.1),
):  # fmt: skip

    @case(f"RANGE-{_kind}", 0)
    def _(m: Made, values=(_start, _limit, _step)) -> None:
        numbers = [np.float32(v) for v in values]
        n = int(np.ceil(np.abs((numbers[1] - numbers[0]) / numbers[2])))
        y = m.mid((n,))
        m.g.op("RANGE", [m.const(v, F) for v in numbers], [y])
        m.g.op("ADD", [y, m.input((n,))], [m.out((n,))], add={})


@case("MATRIX_SET_DIAG-float32", 0)
def _(m: Made) -> None:
    m.g.op("MATRIX_SET_DIAG", [m.input((2, 3, 3)), m.input((2, 3))], [m.out((2, 3, 3))])


@case("SEGMENT_SUM-float32", reference=False)
def _(m: Made) -> None:
    m.g.op("SEGMENT_SUM", [m.input((4, 2)), m.const([0, 0, 1, 2])], [m.out((3, 2))])


for _op in ("SUM", "PROD", "MAX", "MIN"):

    @case(f"UNSORTED_SEGMENT_{_op}-float32")
    def _(m: Made, op=_op) -> None:
        inputs = [m.input((4, 2)), m.const([2, 0, -1, 2]), m.const(3)]
        m.g.op(f"UNSORTED_SEGMENT_{op}", inputs, [m.out((3, 2))])


for _op, _member in (
    ("RESIZE_BILINEAR", "resize_bilinear"),
    ("RESIZE_NEAREST_NEIGHBOR", "resize_nearest"),
):
    for _align, _half in ((False, False), (True, False), (False, True)):

        @case(f"{_op}-{'align' if _align else 'half' if _half else 'plain'}")
        def _(m: Made, op=_op, member=_member, align=_align, half=_half) -> None:
            options = {"align_corners": align, "half_pixel_centers": half}
            m.g.op(op, [m.input((1, 4, 5, 2)), m.const([7, 3])], [m.out((1, 7, 3, 2))],
                   **{member: options})  # fmt: skip


# ---- Layers


def conv(m: Made, padding, stride=1, dilation=1, groups=1, activation="none"):
    x, w = m.input((1, 7, 6, 4)), m.const(m.draw((6, 3, 2, 4 // groups)), F)
    m.g.op("CONV_2D", [x, w, m.const(m.draw((6,)), F)], [m.out((1, 7, 6, 6))],
           conv_2d={"padding": padding, "stride_w": stride, "stride_h": stride,
                    "dilation_w": dilation, "dilation_h": dilation,
                    "activation": activation})  # fmt: skip


case("CONV_2D-same")(lambda m: conv(m, "same"))
case("CONV_2D-stride")(lambda m: conv(m, "same", stride=2, activation="relu6"))
case("CONV_2D-valid")(lambda m: conv(m, "valid", dilation=2))
case("CONV_2D-groups")(lambda m: conv(m, "valid", groups=2, activation="relu"))


@case("DEPTHWISE_CONV_2D-float32")
def _(m: Made) -> None:
    x, w = m.input((2, 7, 6, 3)), m.const(m.draw((1, 3, 3, 6)), F)
    m.g.op("DEPTHWISE_CONV_2D", [x, w, m.const(m.draw((6,)), F)], [m.out((2, 4, 3, 6))],
           depthwise_conv_2d={"padding": "same", "stride_w": 2, "stride_h": 2, "multiplier": 2,
                              "activation": "relu"})  # fmt: skip


for _padding, _shape in (("same", (1, 8, 6, 5)), ("valid", (1, 9, 8, 5))):

    @case(f"TRANSPOSE_CONV-{_padding}")
    def _(m: Made, padding=_padding, shape=_shape) -> None:
        x, w = m.input((1, 4, 3, 2)), m.const(m.draw((5, 3, 4, 2)), F)
        m.g.op("TRANSPOSE_CONV", [m.const(shape), w, x], [m.out(shape)],
               transpose_conv={"padding": padding, "stride_w": 2, "stride_h": 2})  # fmt: skip


@case("CONV_3D-float32")
def _(m: Made) -> None:
    x, w = m.input((1, 4, 5, 6, 2)), m.const(m.draw((2, 3, 2, 2, 4)), F)
    m.g.op("CONV_3D", [x, w, m.const(m.draw((4,)), F)], [m.out((1, 4, 5, 6, 4))],
           conv_3d={"padding": "same", "stride_d": 1, "stride_w": 1, "stride_h": 1})  # fmt: skip


for _op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
    for _padding in ("same", "valid"):

        @case(f"{_op}-{_padding}")
        def _(m: Made, op=_op, padding=_padding) -> None:
            m.g.op(op, [m.input((1, 7, 6, 3))], [m.out((1, 4, 3, 3))],
                   pool_2d={"padding": padding, "stride_w": 2, "stride_h": 2, "filter_w": 3,
                            "filter_h": 2, "activation": "relu"})  # fmt: skip


@case("FULLY_CONNECTED-float32")
def _(m: Made) -> None:
    inputs = [m.input((2, 3, 4)), m.const(m.draw((5, 4)), F), m.const(m.draw((5,)), F)]
    m.g.op("FULLY_CONNECTED", inputs, [m.out((6, 5))], fully_connected={"activation": "relu"})


@case("FULLY_CONNECTED-keep")
def _(m: Made) -> None:
    inputs = [m.input((2, 3, 4)), m.const(m.draw((5, 4)), F), -1]
    m.g.op("FULLY_CONNECTED", inputs, [m.out((2, 3, 5))], fully_connected={"keep_num_dims": True})


@case("BATCH_MATMUL-float32")
def _(m: Made) -> None:
    m.g.op("BATCH_MATMUL", [m.input((2, 3, 4)), m.input((2, 5, 4))], [m.out((2, 3, 5))],
           batch_matmul={"adj_y": True})  # fmt: skip


# ---- Recurrent layers


def float_weights(m: Made, shape, form: str = "", scale=0.5) -> int:
    """Weights of floats, or of integers where floats are multiplied by them."""
    if "hybrid" in form:
        return m.const(m.draw(shape, I8, -127), I8, scale=scale / 127)
    return m.const(m.draw(shape, low=-scale, high=scale), F)


def lstm_inputs(m: Made, x: int, form: str = "", n=5, features=4, batch=2) -> list[int]:
    """The inputs of an LSTM of floats; `form` says which it has beside the plain ones."""
    coupled, normed, projected = (w in form for w in ("coupled", "norm", "projection"))
    results = 3 if projected else n
    weights = [float_weights(m, (n, features), form) for _ in range(4)]
    shape = (n,) if "diagonal" in form else (n, results)
    recurrent = [float_weights(m, shape, form) for _ in range(4)]
    peepholes = [float_weights(m, (n,), form, 2) if "peephole" in form else -1 for _ in range(3)]
    biases = [m.const(m.draw((n,)), F) for _ in range(4)]
    norms = [m.const(m.draw((n,), low=0.5), F) if normed else -1 for _ in range(4)]
    for each in (weights, recurrent, peepholes, biases, norms):
        each[0] = -1 if coupled else each[0]
    projection = [-1, -1]
    if projected:
        projection = [float_weights(m, (results, n), form), m.const(m.draw((results,)), F)]
    states = [m.g.tensor("state", (batch, results), F, is_variable=True),
              m.g.tensor("cell", (batch, n), F, is_variable=True)]  # fmt: skip
    return [x, *weights, *recurrent, *peepholes, *biases, *projection, *states, *norms]


for _form, _options in (
    ("float32", {}), ("peephole", {}), ("coupled-peephole", {"cell_clip": 0.7}),
    ("norm", {"activation": "relu"}), ("projection", {"proj_clip": 0.4}),
    ("coupled-norm-peephole-projection", {"time_major": True}),
    ("diagonal", {"diagonal_recurrent": True}), ("hybrid", {}),
    ("norm-peephole-projection-hybrid", {}), ("coupled-hybrid", {"asymmetric_inputs": True}),
    ("projection-asymmetric-hybrid", {"asymmetric_inputs": True, "proj_clip": 0.6}),
):  # fmt: skip

    @case(f"UNIDIRECTIONAL_SEQUENCE_LSTM-{_form}")
    def _(m: Made, form=_form, options=_options) -> None:
        shape = (2, 3) if not options.get("time_major") else (3, 2)
        inputs = lstm_inputs(m, m.input((*shape, 4)), form)
        results = 3 if "projection" in form else 5
        m.g.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [m.out((*shape, results))],
               unidirectional_lstm={"activation": "tanh"} | options)  # fmt: skip


for _form in ("float32", "norm-projection", "hybrid"):

    @case(f"LSTM-{_form}")
    def _(m: Made, form=_form) -> None:
        inputs = lstm_inputs(m, m.input((2, 4)), form)
        m.g.op("LSTM", inputs, [m.out((2, 3 if "projection" in form else 5))],
               lstm={"activation": "tanh"})  # fmt: skip


@case("LSTM-basic")
def _(m: Made) -> None:
    w = m.const(m.draw((20, 9), low=-0.5, high=0.5), F)
    states = [m.g.tensor(name, (2, 5), F, is_variable=True) for name in ("state", "cell")]
    outs = [m.out((2, 5)), m.out((2, 5)), m.mid((2, 9)), m.mid((2, 20))]
    m.g.op("LSTM", [m.input((2, 4)), states[0], w, m.const(m.draw((20,)), F), states[1]], outs,
           lstm={"activation": "tanh", "kernel": "basic"})  # fmt: skip


@case("LSTM-quint8", 0)
def _(m: Made) -> None:
    unit = {"scale": 1 / 128, "zero": 128}
    x, w_scale = m.input((2, 4), U8, **unit), 0.02
    w = m.const(m.draw((20, 9), U8), U8, scale=w_scale, zero=119)
    bias = m.const(m.draw((20,), I32, -9000, 9000), I32, scale=w_scale / 128)
    state = m.input((2, 5), U8, **unit)
    cell = m.input((2, 5), I16, scale=2**-11)
    outs = [m.out((2, 5), U8, **unit), m.out((2, 5), I16, scale=2**-11),
            m.mid((2, 9), U8, **unit), m.mid((2, 20), I16, scale=2**-12)]  # fmt: skip
    m.g.op("LSTM", [x, state, w, bias, cell], outs,
           lstm={"activation": "tanh", "kernel": "basic"})  # fmt: skip


def second_input(form: str) -> str:
    """What the second input is: none, one with weights of its own, or what the backward direction reads."""
    return next((word for word in ("aux", "parallel") if word in form), "")


for _form in ("float32", "coupled-projection-aux", "peephole-parallel", "hybrid", "aux-hybrid"):

    @case(f"BIDIRECTIONAL_SEQUENCE_LSTM-{_form}")
    def _(m: Made, form=_form) -> None:
        second, x = second_input(form), m.input((3, 2, 4))
        ways = [lstm_inputs(m, x, form) for _ in range(2)]
        aux = m.input((3, 2, 4)) if second else -1
        aux_weights = [float_weights(m, (5, 4), form) if second == "aux" else -1 for _ in range(8)]
        if "coupled" in form:
            aux_weights[0] = aux_weights[4] = -1
        inputs = [x, *ways[0][1:18], *ways[1][1:18], *ways[0][18:20], *ways[1][18:20], aux]
        n, merged = 3 if "projection" in form else 5, second == "parallel"
        outs = [m.out((3, 2, 2 * n))] if merged else [m.out((3, 2, n)) for _ in range(2)]
        m.g.op("BIDIRECTIONAL_SEQUENCE_LSTM", inputs + aux_weights, outs,
               bidirectional_lstm={"activation": "tanh", "time_major": True,
                                   "merge_outputs": merged})  # fmt: skip


def rnn_inputs(m: Made, form: str) -> list[int]:
    return [float_weights(m, (5, 4), form), float_weights(m, (5, 5), form),
            m.const(m.draw((5,)), F), m.g.tensor("state", (2, 5), F, is_variable=True)]  # fmt: skip


for _form in ("float32", "hybrid", "asymmetric-hybrid"):
    _options = {"asymmetric_inputs": "asymmetric" in _form}

    @case(f"UNIDIRECTIONAL_SEQUENCE_RNN-{_form}")
    def _(m: Made, form=_form, options=_options) -> None:
        m.g.op("UNIDIRECTIONAL_SEQUENCE_RNN", [m.input((2, 3, 4)), *rnn_inputs(m, form)],
               [m.out((2, 3, 5))], sequence_rnn={"activation": "tanh"} | options)  # fmt: skip

    @case(f"RNN-{_form}")
    def _(m: Made, form=_form, options=_options) -> None:
        m.g.op("RNN", [m.input((2, 4)), *rnn_inputs(m, form)], [m.out((2, 5))],
               rnn={"activation": "relu"} | options)  # fmt: skip

    @case(f"SVDF-{_form}")
    def _(m: Made, form=_form, options=_options) -> None:
        inputs = [m.input((2, 4)), float_weights(m, (6, 4), form), float_weights(m, (6, 5), form)]
        inputs += [m.const(m.draw((3,)), F), m.g.tensor("state", (2, 30), F, is_variable=True)]
        m.g.op("SVDF", inputs, [m.out((2, 3))], svdf={"rank": 2} | options)


for _form in ("float32", "aux", "parallel", "parallel-steps", "hybrid", "aux-hybrid"):

    @case(f"BIDIRECTIONAL_SEQUENCE_RNN-{_form}")
    def _(m: Made, form=_form) -> None:
        second = second_input(form)
        shape = (3, 2, 4) if "steps" in form else (2, 3, 4)
        x, ways = m.input(shape), [rnn_inputs(m, form) for _ in range(2)]
        aux = m.input(shape) if second else -1
        aux_weights = [float_weights(m, (5, 4), form) if second == "aux" else -1 for _ in range(2)]
        outs = [m.out((*shape[:2], 10))] if second else [m.out((*shape[:2], 5)) for _ in range(2)]
        m.g.op("BIDIRECTIONAL_SEQUENCE_RNN", [x, *ways[0], *ways[1], aux, *aux_weights], outs,
               bidirectional_rnn={"activation": "tanh", "time_major": "steps" in form,
                                  "merge_outputs": bool(second)})  # fmt: skip


def integer_lstm_inputs(
    m: Made, x: int, cell: float, n=5, features=4, batch=2, parts=""
) -> list[int]:
    """The inputs of an LSTM of integers; its cell has the scale `cell`."""
    coupled, projected = "coupled" in parts, "projection" in parts
    # LiteRT's peepholes need as many results as cells.
    results = 3 if projected and "peephole" not in parts else n
    weights = [m.const(m.draw((n, features), I8, -127), I8, scale=0.004 + 0.001 * i)
               for i in range(4)]  # fmt: skip
    recurrent = [m.const(m.draw((n, results), I8, -127), I8, scale=0.006 - 0.001 * i)
                 for i in range(4)]  # fmt: skip
    if coupled:
        weights[0] = recurrent[0] = -1
    peepholes = [m.const(m.draw((n,), I16), I16, scale=2**-15) if "peephole" in parts else -1
                 for _ in range(3)]  # fmt: skip
    if coupled:
        peepholes[0] = -1
    biases = [m.const(m.draw((n,), I32, -3000, 3000)) for _ in range(4)]
    if coupled:
        biases[0] = -1
    projection = [-1, -1]
    if projected:
        projection = [m.const(m.draw((results, n), I8, -127), I8, scale=0.009),
                      m.const(m.draw((results,), I32, -900, 900))]  # fmt: skip
    states = [
        m.g.tensor("state", (batch, results), I8, scale=1 / 127, zero=3, is_variable=True),
        m.g.tensor("cell", (batch, n), I16, scale=cell, is_variable=True),
    ]
    norms = [-1] * 4
    if "norm" in parts:
        norms = [m.const(m.draw((n,), I16, 9000), I16, scale=2**-14 + i / 2**17) for i in range(4)]
        norms[0] = -1 if coupled else norms[0]
    return [x, *weights, *recurrent, *peepholes, *biases, *projection, *states, *norms]


for _parts, _cell, _clip, _projection in (
    ("qint8", 2**-11, 0.0, 0.0), ("qint8-peephole", 2**-15, 0.0, 0.0),
    ("qint8-coupled", 2**-9, 1.5, 0.0), ("qint8-projection", 2**-12, 0.0, 0.3),
    ("qint8-coupled-peephole-projection", 2**-10, 0.0, 0.0), ("qint8-norm", 2**-11, 0.0, 0.0),
    ("qint8-coupled-norm-projection", 2**-12, 0.0, 0.0),
):  # fmt: skip

    @case(f"UNIDIRECTIONAL_SEQUENCE_LSTM-{_parts}", 0)
    def _(m: Made, parts=_parts, cell=_cell, clip=_clip, projection=_projection) -> None:
        x = m.input((2, 7, 4), I8, scale=0.03, zero=-5)
        inputs = integer_lstm_inputs(m, x, cell, parts=parts)
        gate = 2**-9 if "norm" in parts else 2**-12
        hidden = [m.mid((1,), I16, scale=gate) for _ in range(4)]
        hidden.append(m.mid((1,), I8, scale=1 / 120, zero=4))
        y = m.out(
            (2, 7, 3 if "projection" in parts and "peephole" not in parts else 5),
            I8,
            scale=1 / 127,
            zero=3,
        )
        m.g.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], intermediates=hidden,
               unidirectional_lstm={"activation": "tanh", "cell_clip": clip,
                                    "proj_clip": projection})  # fmt: skip


@case("SVDF-qint8", 0)
def _(m: Made) -> None:
    inputs = [m.input((2, 4), I8, scale=0.03, zero=-7)]
    inputs.append(m.const(m.draw((6, 4), I8, -127), I8, scale=0.007))
    inputs.append(m.const(m.draw((6, 5), I16), I16, scale=2**-15))
    inputs.append(m.const(m.draw((3,), I32, -(2**24), 2**24)))
    inputs.append(m.g.tensor("state", (2, 30), I16, scale=2**-12, is_variable=True))
    m.g.op("SVDF", inputs, [m.out((2, 3), I8, scale=0.02, zero=-30)],
           svdf={"rank": 2, "activation": "relu"})  # fmt: skip


# ---- Complex numbers


def parts_of(m: Made, z: int, shape) -> None:
    for op in ("REAL", "IMAG", "COMPLEX_ABS"):
        m.g.op(op, [z], [m.out(shape)])


# Lines of the size of the transform, shorter ones and longer ones; a single line is not transformed across.
for _tag, _shape, _sizes in (
    ("float32", (2, 8, 16), [8, 16]), ("padded", (3, 10), [4, 16]), ("cut", (2, 5, 20), [2, 8]),
    ("line", (3, 1, 64), [1, 64]),
):  # fmt: skip

    @case(f"RFFT2D-{_tag}")
    def _(m: Made, shape=_shape, sizes=_sizes) -> None:
        result = (*shape[:-2], sizes[0], sizes[1] // 2 + 1)
        z = m.mid(result, "complex64")
        m.g.op("RFFT2D", [m.input(shape), m.const(sizes)], [z], rfft_2d={})
        parts_of(m, z, result)


# Parts that are infinite, of finite inputs.
@case("COMPLEX_ABS-infinite", 0)
def _(m: Made) -> None:
    z = m.mid((1, 3), "complex64")
    m.g.op("RFFT2D", [m.input((1, 4), values=[3e38, 3e38, -3e38, -3e38]), m.const([1, 4])], [z],
           rfft_2d={})  # fmt: skip
    # The sums of the other elements overflow in some orders.
    for op in ("REAL", "IMAG", "COMPLEX_ABS"):
        part = m.mid((1, 3))
        m.g.op(op, [z], [part])
        m.g.op("SLICE", [part, m.const([0, 1]), m.const([1, 1])], [m.out((1, 1))], slice={})


# A spectrogram: pieces of a signal through operators that move complex numbers.
@case("COMPLEX_ABS-spectrogram")
def _(m: Made) -> None:
    shapes = [(2, 3, 1, 17), (2, 3, 17), (6, 17), (6, 1, 17)]
    z = [m.mid(s, "complex64") for s in shapes]
    m.g.op("RFFT2D", [m.input((2, 3, 1, 32)), m.const([1, 32])], [z[0]], rfft_2d={})
    m.g.op("SQUEEZE", [z[0]], [z[1]], squeeze={"axes": [-2]})
    m.g.op("RESHAPE", [z[1], m.const([6, -1])], [z[2]], reshape={})
    m.g.op("EXPAND_DIMS", [z[2], m.const(-2)], [z[3]])
    parts_of(m, z[3], shapes[3])


@case("CAST-complex")
def _(m: Made) -> None:
    z, w = m.mid((2, 9), "complex64"), m.mid((2, 9), "complex64")
    m.g.op("RFFT2D", [m.input((2, 16)), m.const([2, 16])], [z], rfft_2d={})
    m.g.op("CAST", [z], [m.out((2, 9))], cast={"from": "complex64", "to": F})
    m.g.op("CAST", [m.input((2, 9))], [w], cast={"from": F, "to": "complex64"})
    parts_of(m, w, (2, 9))


# ---- Tables


for _combiner in ("sum", "mean", "sqrtn"):

    @case(f"EMBEDDING_LOOKUP_SPARSE-{_combiner}", typed=4)
    def _(m: Made, combiner=_combiner) -> None:
        places = m.const([1, 3, 0, 5])
        coordinates = m.const([[0, 0, 0], [0, 2, 0], [0, 2, 1], [1, 1, 0]])
        inputs = [places, coordinates, m.const([2, 3, 2]), m.input((4,), low=0.5),
                  m.input((6, 4, 2))]  # fmt: skip
        m.g.op("EMBEDDING_LOOKUP_SPARSE", inputs, [m.out((2, 3, 4, 2))],
               embedding_sparse={"combiner": combiner})  # fmt: skip


@case("HASHTABLE_LOOKUP-float32", 0, typed=2)
def _(m: Made) -> None:
    query = m.input((5,), I32, values=[7, -3, 8, 7, 100])
    inputs = [query, m.const([-3, 0, 7, 99]), m.input((4, 2, 3))]
    m.g.op("HASHTABLE_LOOKUP", inputs, [m.out((5, 2, 3)), m.out((5,), U8)])


for _kind, _shape in (("sparse", (3, 7)), ("dense", (2, 32))):

    @case(f"LSH_PROJECTION-{_kind}-types", 0, typed=1)
    def _(m: Made, kind=_kind, shape=_shape) -> None:
        # Lines of each length that has a formula of its own, up to those of several blocks.
        lines = [((3, 1), I8), ((4, 3), B), ((2, 1), F), ((5, 5), U8), ((3, 3), I32), ((2, 2), I64),
                 ((3, 2, 7), I16), ((2, 29), I8), ((2, 15), F), ((1, 61), U8), ((3, 31), I32),
                 ((2, 62), I16), ((4, 9, 9), F)]  # fmt: skip
        for i, (line, dtype) in enumerate(lines):
            inputs = [m.const(m.draw(shape), F), m.input(line, dtype)]
            if i % 2:
                inputs.append(m.input(line[:1], low=-1, high=1))
            size = shape[0] if kind == "sparse" else shape[0] * shape[1]
            m.g.op("LSH_PROJECTION", inputs, [m.out((size,), I32)], lsh_projection={"kind": kind})


@case("LSH_PROJECTION-cancelled", 0, typed=1)
def _(m: Made) -> None:
    # Equal lines whose weights cancel out leave what the others say, or nothing.
    same, other = m.draw((3,)), m.draw((3,))
    for lines, weights in (([same, same], [0.3, -0.3]), ([same, other, same], [0.7, 0.1, -0.7]),
                           ([same, same, same], [0.1, 0.2, -0.3])):  # fmt: skip
        inputs = [m.const(m.draw((4, 32)), F), m.const(np.array(lines), F),
                  m.input((len(lines),), values=weights)]  # fmt: skip
        m.g.op("LSH_PROJECTION", inputs, [m.out((128,), I32)], lsh_projection={"kind": "dense"})


# ---- Every type of elements that LiteRT has a kernel for

ALL_TYPES = (F, I8, U8, I16, I32, I64, B)
NO_BOOL, NO_SHORT = ALL_TYPES[:-1], (F, I8, U8, I32, I64, B)


def of_types(op: str, dtypes, *shapes, before=(), after=(), out=(1,), outs=1, **options) -> None:
    """A case with one operator for each type; integers of up to 16 bits plain and quantised.

    shapes: those of the inputs of the type.
    before, after: the inputs around them, constants or shapes with dtypes.
    out: the shape of the `outs` results of the type, or a list of shapes and dtypes, None for the type.
    """

    @case(f"{op}-types", 0, typed=len(before))
    def _(m: Made) -> None:
        def others(given) -> list[int]:
            return [m.input(*c) if isinstance(c, tuple) else m.const(c) for c in given]

        for dtype in dtypes:
            for q in ({}, LEVELS[dtype][0]) if dtype in LEVELS else ({},):
                typed = [m.input(s, dtype, **q) for s in shapes]
                wanted = out if isinstance(out, list) else [(out, None)] * outs
                results = [m.out(s, d or dtype, **({} if d else q)) for s, d in wanted]
                m.g.op(op, [*others(before), *typed, *others(after)], results, **options)


of_types("BATCH_TO_SPACE_ND", ALL_TYPES, (4, 2, 3, 2), after=[[2, 2], [[0, 0], [1, 0]]])
of_types("BROADCAST_TO", ALL_TYPES, (3, 1), after=[[2, 3, 4]])
of_types("CONCATENATION", ALL_TYPES, (2, 3), (2, 1), concatenation={"axis": -1})
of_types("DEPTH_TO_SPACE", NO_SHORT[:-1], (1, 2, 3, 8), depth_to_space={"block_size": 2})
of_types("DYNAMIC_UPDATE_SLICE", ALL_TYPES, (4, 5), (2, 2), after=[[1, 2]])
of_types("EMBEDDING_LOOKUP", ALL_TYPES, (6, 3), before=[[5, 0, 2]])
of_types("EXPAND_DIMS", ALL_TYPES, (2, 3), after=[1])
of_types("FILL", ALL_TYPES, (), before=[[2, 3]])
of_types("GATHER", ALL_TYPES, (5, 3), after=[[4, 0, 2]], gather={"axis": 0})
of_types("GATHER_ND", ALL_TYPES, (4, 5), after=[[[0, 1], [3, 4]]])
of_types("MATRIX_DIAG", NO_BOOL, (2, 3), out=(2, 3, 3))
of_types("MIRROR_PAD", ALL_TYPES, (3, 4), after=[[[1, 2], [2, 1]]],
         mirror_pad={"mode": "reflect"})  # fmt: skip
of_types("PACK", NO_BOOL, (2, 3), (2, 3), pack={"count": 2, "axis": 1})
of_types("PAD", ALL_TYPES, (2, 3), after=[[[1, 0], [2, 1]]])
of_types("RESIZE_NEAREST_NEIGHBOR", (F, I8, U8, I16, I32, B), (1, 3, 4, 2), after=[[6, 8]],
         resize_nearest={})  # fmt: skip
of_types("REVERSE_SEQUENCE", (F, U8, I16, I32, I64), (3, 4), after=[[2, 4, 1]],
         reverse_sequence={"seq_dim": 1, "batch_dim": 0})  # fmt: skip
of_types("REVERSE_V2", ALL_TYPES, (3, 4), after=[[1]])
of_types("SCATTER_ND", NO_SHORT, (2, 3), before=[[[1], [3]]], after=[[5, 3]])
of_types("SLICE", ALL_TYPES, (4, 5), after=[[1, 2], [2, -1]], out=(2, 3))
of_types("SPACE_TO_BATCH_ND", ALL_TYPES, (1, 4, 5, 2), after=[[2, 2], [[0, 0], [1, 0]]])
of_types("SPACE_TO_DEPTH", NO_SHORT[:-1], (1, 4, 6, 2), space_to_depth={"block_size": 2})
of_types("SPLIT", NO_BOOL, (2, 6), before=[1], out=(2, 2), outs=3, split={"parts": 3})
of_types("SPLIT_V", NO_BOOL, (2, 6), after=[[1, 2, -1], 1], outs=3, split_v={"parts": 3})
of_types("SQUEEZE", ALL_TYPES, (1, 3, 1), squeeze={"axes": [0]})
of_types("STRIDED_SLICE", ALL_TYPES, (4, 5, 6), after=[[0, 1, 0], [4, 5, 1], [2, 2, 1]],
         strided_slice={"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 4})  # fmt: skip
of_types("TILE", ALL_TYPES, (2, 3), after=[[2, 2]])
of_types("TOPK_V2", NO_BOOL, (2, 9), after=[3], out=[((2, 3), None), ((2, 3), I32)])
of_types("UNPACK", (F, I8, U8, I16, I32, B), (2, 3), outs=3, unpack={"count": 3, "axis": 1})
of_types("WHERE", NO_SHORT, (3, 4), out=[((-1, 2), I64)])
for _op in ("MAXIMUM", "MINIMUM"):
    of_types(_op, NO_BOOL, (2, 3), (2, 3))
for _op in ("REDUCE_MAX", "REDUCE_MIN"):
    of_types(_op, ALL_TYPES, (2, 3, 4), after=[[1]], reducer={"keep_dims": True})
for _op in ("SELECT", "SELECT_V2"):
    of_types(_op, ALL_TYPES, (2, 3), (2, 3), before=[((2, 3), B)])
for _op, _member in (("ARG_MAX", "arg_max"), ("ARG_MIN", "arg_min")):
    of_types(_op, (F, I8, U8, I32, B), (2, 3, 4), after=[1], out=[((2, 4), I32)],
             **{_member: {"type": I32}})  # fmt: skip


@case("CAST-types", 0)
def _(m: Made) -> None:
    for dtype in ALL_TYPES:
        x = m.input((7,), dtype, 0, 100) if dtype != B else m.input((7,), B)
        for to in ALL_TYPES:
            if to != dtype:
                m.g.op("CAST", [x], [m.out((7,), to)], cast={"from": dtype, "to": to})


# ---- StableHLO and windows


def body(m: Made, op: str) -> int:
    """A subgraph of one operator on two numbers, or of none; gives its number."""
    g = m.model.graph()
    g.inputs = [g.tensor("a", ()), g.tensor("b", ())]
    g.outputs = [g.inputs[1]]
    if op:
        g.outputs = [g.tensor("c", ())]
        g.op(op, g.inputs, g.outputs)
    return len(m.model.graphs) - 1


for _dtype in (B, I32):
    simple("STABLEHLO_AND", [(2, 7), (2, 7)], _dtype, reference=False)
simple("STABLEHLO_SHIFT_LEFT", [(7,), (7,)], I32, low=0, high=12, reference=False,
       hlo_shift_left={})  # fmt: skip

for _algorithm, _dtype in (("threefry", "uint32"), ("threefry", I64), ("philox", I32),
                           ("standard", "uint64")):  # fmt: skip

    @case(f"STABLEHLO_RNG_BIT_GENERATOR-{_algorithm}-{_dtype}", 0)
    def _(m: Made, algorithm=_algorithm, dtype=_dtype) -> None:
        # The counter passes its end.
        state = [0x0123456789ABCDEF, 2**64 - 2, 5][: 2 if algorithm == "threefry" else 3]
        x = m.input((len(state),), "uint64", values=np.array(state, np.uint64))
        outs = [m.out((len(state),), "uint64"), m.out((3, 7), dtype)]
        m.g.op("STABLEHLO_RNG_BIT_GENERATOR", [x], outs, hlo_random={"algorithm": algorithm})


for _tag, _low, _high, _interior in (
    ("float32", [1, 2], [0, 3], [0, 0]), ("between", [1, 0], [0, 2], [2, 1]),
    ("crop", [-1, 2], [0, -3], [1, 2]),
):  # fmt: skip

    @case(f"STABLEHLO_PAD-{_tag}", 0)
    def _(m: Made, low=_low, high=_high, interior=_interior) -> None:
        inputs = [m.input((3, 4)), m.const(0.5, F)]
        m.g.op("STABLEHLO_PAD", inputs, [m.out((1, 1))],
               hlo_pad={"low": low, "high": high, "interior": interior})  # fmt: skip


for _tag, _shape, _starts, _options in (
    ("float32", (6, 4), [[4], [0], [9]], {"offset_dims": [1], "collapsed_slice_dims": [0],
     "start_index_map": [0], "index_vector_dim": 1, "slice_sizes": [1, 4]}),
    ("parts", (5, 6), [[3, 5], [0, -2]], {"offset_dims": [0, 2], "collapsed_slice_dims": [],
     "start_index_map": [1, 0], "index_vector_dim": 1, "slice_sizes": [2, 3]}),
):  # fmt: skip

    @case(f"STABLEHLO_GATHER-{_tag}", 0)
    def _(m: Made, shape=_shape, starts=_starts, options=_options) -> None:
        starts = np.array(starts)
        out = m.out((1,) * (starts.ndim - 1 + len(options["offset_dims"])))
        inputs = [m.input(shape), m.input(starts.shape, I32, values=starts)]
        m.g.op("STABLEHLO_GATHER", inputs, [out], hlo_gather=options)


for _tag, _op, _shape, _starts, _updates, _options in (
    ("float32", "STABLEHLO_ADD", (5, 4), [[1], [1], [7], [3]], (4, 4),
     {"update_window_dims": [1], "inserted_window_dims": [0],
      "scatter_dims_to_operand_dims": [0], "index_vector_dim": 1}),
    ("update", "", (5, 6), [[1, 2], [4, 0]], (2, 2, 3),
     {"update_window_dims": [0, 2], "inserted_window_dims": [],
      "scatter_dims_to_operand_dims": [0, 1], "index_vector_dim": 1}),
    ("max", "STABLEHLO_MAXIMUM", (3, 4), [[1], [2], [1]], (3, 3),
     {"update_window_dims": [0], "inserted_window_dims": [1],
      "scatter_dims_to_operand_dims": [1], "index_vector_dim": 1}),
    ("product", "STABLEHLO_MULTIPLY", (4,), [[1], [0], [1]], (3,),
     {"update_window_dims": [], "inserted_window_dims": [0],
      "scatter_dims_to_operand_dims": [0], "index_vector_dim": 1}),
):  # fmt: skip

    @case(f"STABLEHLO_SCATTER-{_tag}", 1e-6)
    def _(m: Made, op=_op, shape=_shape, starts=_starts, updates=_updates, options=_options):
        starts = np.array(starts)
        inputs = [m.input(shape), m.input(starts.shape, I32, values=starts), m.input(updates)]
        m.g.op("STABLEHLO_SCATTER", inputs, [m.out(shape)],
               hlo_scatter=options | {"computation_subgraph": body(m, op)})  # fmt: skip


for _tag, _op, _first, _options in (
    ("float32", "STABLEHLO_ADD", 0.0, {"padding": [0, 0, 1, 2]}),
    ("dilated", "STABLEHLO_MAXIMUM", -9.0, {"base_dilations": [2, 1], "window_dilations": [1, 2],
                                            "padding": [1, 0, 0, 0]}),
    ("product", "STABLEHLO_MULTIPLY", 0.5, {"window_strides": [1, 2]}),
):  # fmt: skip

    @case(f"STABLEHLO_REDUCE_WINDOW-{_tag}")
    def _(m: Made, op=_op, first=_first, options=_options) -> None:
        form = {"window_dimensions": [2, 3], "window_strides": [2, 1], "base_dilations": [1, 1],
                "window_dilations": [1, 1], "padding": [0] * 4}  # fmt: skip
        inputs = [m.input((6, 7)), m.const(first, F)]
        m.g.op("STABLEHLO_REDUCE_WINDOW", inputs, [m.out((1, 1))],
               hlo_reduce_window=form | options | {"body_subgraph": body(m, op)})  # fmt: skip


for _function, _tag, _first in ((1, "float32", 1.0), (2, "product", 2.0), (3, "min", 9.0),
                                (4, "max", -9.0)):  # fmt: skip

    @case(f"REDUCE_WINDOW-{_tag}")
    def _(m: Made, function=_function, first=_first) -> None:
        form = [m.const(np.array(v), I64) for v in ([2, 3], [2, 1], [1, 2])]
        m.g.op("REDUCE_WINDOW", [m.input((6, 9)), m.const(first, F), *form], [m.out((3, 5))],
               reduce_window={"function": function})  # fmt: skip


def unary_graph(m: Made, op: str) -> int:
    g = m.model.graph()
    g.inputs, g.outputs = [g.tensor("x", (2, 3))], [g.tensor("y", (2, 3))]
    g.op(op, g.inputs, g.outputs)
    return len(m.model.graphs) - 1


@case("STABLEHLO_COMPOSITE-float32")
def _(m: Made) -> None:
    options = {"name": "test.negate", "decomposition_subgraph": unary_graph(m, "NEG"),
               "attributes": np.frombuffer(flexbuffers.Dumps({}), np.uint8)}  # fmt: skip
    m.g.op("STABLEHLO_COMPOSITE", [m.input((2, 3))], [m.out((2, 3))], hlo_composite=options)


for _number in (0, 1, 2, -1):

    @case(f"STABLEHLO_CASE-{_number}", reference=False)
    def _(m: Made, number=_number) -> None:
        branches = [unary_graph(m, op) for op in ("NEG", "ABS", "EXP")]
        inputs = [m.input((), I32, values=number), m.input((2, 3))]
        m.g.op("STABLEHLO_CASE", inputs, [m.out((2, 3))], hlo_case={"branches": branches})


for _op in ("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"):
    for _dtype in (F, I32):
        simple(_op, [(2, 7), (2, 7)], _dtype, reference=False, low=-9, high=9)


@case("BITCAST-types", 0)
def _(m: Made) -> None:
    for dtype, to, shape, out in ((F, I32, (2, 3), (2, 3)), (I32, F, (2, 3), (2, 3)),
                                  (I32, U8, (2, 3), (2, 3, 4)), (I16, I64, (3, 4), (3,))):  # fmt: skip
        m.g.op("BITCAST", [m.input(shape, dtype, low=0, high=9)], [m.out(out, to)], bitcast={})


@case("BROADCAST_ARGS-types", 0)
def _(m: Made) -> None:
    for dtype in (I32, I64):
        inputs = [m.const([4, 1, 3], dtype), m.const([2, 1], dtype)]
        m.g.op("BROADCAST_ARGS", inputs, [m.out((3,), dtype)])


@case("RANK-float32", 0)
def _(m: Made) -> None:
    m.g.op("RANK", [m.input((2, 3, 1))], [m.out((), I32)], rank={})


@case("DILATE-types", 0)
def _(m: Made) -> None:
    for dtype, q in ((F, {}), (I32, {}), (I64, {}), (I8, {}), (U8, {}), (I16, {})):
        filler = m.const(np.array(-7 if dtype != U8 else 7), dtype, **q)
        inputs = [m.input((3, 2, 4), dtype, **q), m.const([2, 1, 3]), filler]
        m.g.op("DILATE", inputs, [m.out((5, 2, 10), dtype, **q)])


for _padding, _stride in (("same", 2), ("valid", 1)):

    @case(f"CONV_3D_TRANSPOSE-{_padding}", typed=2)
    def _(m: Made, padding=_padding, stride=_stride) -> None:
        w = m.const(m.draw((2, 3, 2, 4, 3)), F)  # depth, height, width, to, from
        size = [1, 6, 8, 10, 4] if padding == "same" else [1, 4, 6, 6, 4]
        inputs = [m.const(size), w, m.input((1, 3, 4, 5, 3)), m.const(m.draw((4,)), F)]
        strides = {f"stride_{a}": stride for a in "dwh"}
        m.g.op("CONV_3D_TRANSPOSE", inputs, [m.out(size)], conv_3d={"padding": padding, **strides})


@case("VAR_HANDLE-chain", 0)
def _(m: Made) -> None:
    init = m.model.graph()
    name = {"container": "", "shared_name": "v"}
    first = init.tensor("first", None, F, data=m.draw((2, 3)))
    handles = [m.mid((), "resource") if g is m.g else g.tensor("handle", (), "resource")
               for g in (m.g, init)]  # fmt: skip
    init.op("VAR_HANDLE", [], [handles[1]], var_handle=name)
    init.op("ASSIGN_VARIABLE", [handles[1], first], [], assign_variable={})
    m.g.op("CALL_ONCE", [], [], call_once={"init_subgraph": 1})
    m.g.op("VAR_HANDLE", [], [handles[0]], var_handle=name)
    read, total = m.mid((2, 3)), m.mid((2, 3))
    m.g.op("READ_VARIABLE", [handles[0]], [read], read_variable={})
    m.g.op("ADD", [read, m.input((2, 3))], [total], add={})
    m.g.op("ASSIGN_VARIABLE", [handles[0], total], [], assign_variable={})
    m.g.op("READ_VARIABLE", [handles[0]], [m.out((2, 3))], read_variable={})


def texts(g: Graph, name: str, words: list[str]) -> int:
    """A constant of strings: their number, where each begins and the last one ends, their bytes."""
    ends = np.cumsum([4 * (len(words) + 2), *(len(w.encode()) for w in words)])
    head = np.array([len(words), *ends], np.int32).tobytes()
    return g.tensor(name, (len(words),), "string", data=head + "".join(words).encode())


@case("HASHTABLE-chain", 0, reference=False)
def _(m: Made) -> None:
    init = m.model.graph()
    options = {"table_id": 3, "key_type": "string", "value_type": I64}
    handles = [m.mid((), "resource"), init.tensor("table", (), "resource")]
    init.op("HASHTABLE", [], [handles[1]], hashtable=options)
    values = init.tensor("values", None, I64, data=np.array([10, 20, 30], np.int64))
    keys = texts(init, "keys", ["one", "two", "three"])
    init.op("HASHTABLE_IMPORT", [handles[1], keys, values], [], hashtable_import={})
    m.g.op("CALL_ONCE", [], [], call_once={"init_subgraph": 1})
    m.g.op("HASHTABLE", [], [handles[0]], hashtable=options)
    query = [handles[0], texts(m.g, "query", ["two", "four", "one"]), m.const([-1], I64)]
    m.g.op("HASHTABLE_FIND", query, [m.out((3,), I64)], hashtable_find={})
    m.g.op("HASHTABLE_SIZE", [handles[0]], [m.out((1,), I64)], hashtable_size={})


# Few enough that all are chosen, and more than there are boxes to choose.
for _version, _most in ((4, 3), (4, 12), (5, 3), (5, 12)):

    @case(f"NON_MAX_SUPPRESSION_V{_version}-{'float32' if _most == 3 else 'many'}", 0)
    def _(m: Made, version=_version, most=_most) -> None:
        corners = m.rng.random((12, 4))
        boxes = m.input((12, 4), values=corners * 4)
        scores = m.input((12,), values=m.rng.permutation(12) / 12)
        inputs = [boxes, scores, m.const(most), m.const(0.3, F), m.const(0.2, F)]
        outs = [m.out((most,), I32), m.out((), I32)]
        if version == 5:
            inputs.append(m.const(0.0, F))
            outs.insert(1, m.out((most,)))
            m.g.outputs = outs
        options = {"nms_v4": {}} if version == 4 else {"nms_v5": {}}
        m.g.op(f"NON_MAX_SUPPRESSION_V{version}", inputs, outs, **options)


# ---- Control


@case("IF-float32")
def _(m: Made) -> None:
    x = m.input((2, 3))
    for op in ("NEG", "SQUARE"):
        g = m.model.graph()
        a, b = g.tensor("a", (2, 3)), g.tensor("b", (2, 3))
        g.op(op, [a], [b])
        g.inputs, g.outputs = [a], [b]
    condition = m.input((), B, values=[True])
    options = {"then_subgraph": 1, "else_subgraph": 2}
    m.g.op("IF", [condition, x], [m.out((2, 3))], if_graphs=options)


@case("WHILE-float32")
def _(m: Made) -> None:
    n, x = m.input((), I32, values=[0]), m.input((2, 3))
    test = m.model.graph()
    a, b = test.tensor("n", (), I32), test.tensor("x", (2, 3))
    limit, go = test.tensor("limit", None, I32, data=5), test.tensor("go", (), B)
    test.op("LESS", [a, limit], [go])
    test.inputs, test.outputs = [a, b], [go]
    body = m.model.graph()
    a, b = body.tensor("n", (), I32), body.tensor("x", (2, 3))
    c, d = body.tensor("m", (), I32), body.tensor("y", (2, 3))
    body.op("ADD", [a, body.tensor("one", None, I32, data=1)], [c], add={})
    body.op("ADD", [b, body.tensor("half", None, F, data=0.5)], [d], add={})
    body.inputs, body.outputs = [a, b], [c, d]
    outs = [m.out((), I32), m.out((2, 3))]
    m.g.op("WHILE", [n, x], outs, while_graphs={"cond_subgraph": 1, "body_subgraph": 2})


# ---- Integers that stand for real numbers


def quantized(
    op: str, shapes, dtypes=(I8,), out=None, levels=None, tag="", reference=True, **options
):
    """A case for each dtype whose inputs are all drawn, bit for bit."""
    for dtype in dtypes:
        qx, qy = levels or LEVELS[dtype]

        @case(f"{op}-{tag or 'q'}{dtype}", 0, reference)
        def _(m: Made, dtype=dtype, qx=qx, qy=qy) -> None:
            inputs = [m.input(s, dtype, **(qx if i == 0 else qy)) for i, s in enumerate(shapes)]
            q = {} if out == B else qy
            m.g.op(op, inputs, [m.out(shapes[0], out or dtype, **q)], **options)


quantized("ADD", [(40, 50), (40, 50)], (I8, U8), add={"activation": "relu"})
quantized("SUB", [(40, 50), (50,)], (I8, U8), sub={})
quantized("ADD", [(40, 50), (40, 50)], (I16,), add={"pot_scale_int16": False})
quantized("MUL", [(40, 50), (40, 50)], (I8, U8, I16), mul={"activation": "relu6"})
quantized("SQUARED_DIFFERENCE", [(40, 50), (40, 50)])
quantized("RELU", [(40, 50)], (I8, U8, I16))
quantized("RELU6", [(40, 50)], (I8, U8))
quantized("RELU_N1_TO_1", [(40, 50)], (I8,))
quantized("LEAKY_RELU", [(40, 50)], (I8, U8), leaky_relu={"alpha": 0.17})
quantized("PRELU", [(2, 4, 5, 50), (1, 1, 50)], (I8, U8))
quantized("HARD_SWISH", [(40, 50)], (I8, U8))
quantized("QUANTIZE", [(40, 50)], (I8, U8, I16))
quantized("ABS", [(40, 50)], (I8,))
for _op in ("EQUAL", "LESS", "GREATER_EQUAL"):
    quantized(_op, [(40, 50), (40, 50)], (I8, U8, I16), out=B)
for _op in ("NOT_EQUAL", "LESS_EQUAL", "GREATER"):
    quantized(_op, [(40, 50), (40, 50)], (I8, I16), out=B)
for _scale in (0.01, 0.05, 0.13, 0.7, 3.0):
    for _dtype in (I8, U8):
        _low = -128 if _dtype == I8 else 0
        _x = {"scale": _scale, "zero": _low + 140}
        quantized("LOGISTIC", [(30, 50)], (_dtype,), tag=f"{_scale}-",
                  levels=(_x, {"scale": 1 / 256, "zero": _low}))  # fmt: skip
        quantized("TANH", [(30, 50)], (_dtype,), tag=f"{_scale}-",
                  levels=(_x, {"scale": 1 / 128, "zero": _low + 128}))  # fmt: skip
        quantized("SOFTMAX", [(30, 50)], (_dtype,), tag=f"{_scale}-", softmax={"beta": 1.0},
                  levels=(_x, {"scale": 1 / 256, "zero": _low}))  # fmt: skip


def of_all_shorts(op: str, scale: float, **options) -> None:
    """A function of all int16."""

    @case(f"{op}-{scale}-qint16", 0)
    def _(m: Made) -> None:
        x = m.input((2**16,), I16, values=np.arange(-(2**15), 2**15), scale=scale)
        m.g.op(op, [x], [m.out((2**16,), I16, scale=2**-15)], **options)


for _scale in (2**-12, 2**-11, 2**-13, 0.0003, 0.002):
    of_all_shorts("LOGISTIC", _scale)
    of_all_shorts("TANH", _scale)


for _op, _scale, _to in (
    ("EXP", 2**-14, 2**-12),
    ("LOG", 2**-12, 2**-13),
    ("GELU", 2**-12, 2**-12),
):

    @case(f"{_op}-curve-qint16", 0)
    def _(m: Made, op=_op, scale=_scale, to=_to) -> None:
        x = m.input((2**16,), I16, values=np.arange(-(2**15), 2**15), scale=scale)
        options = {"gelu": {"approximate": True}} if op == "GELU" else {}
        m.g.op(op, [x], [m.out((2**16,), I16, scale=to)], **options)


for _scale in (2**-12, 0.0001, 0.003):

    @case(f"SOFTMAX-{_scale}-qint16", 0)
    def _(m: Made, scale=_scale) -> None:
        x = m.input((70, 50), I16, scale=scale)
        m.g.op("SOFTMAX", [x], [m.out((70, 50), I16, scale=2**-15)], softmax={"beta": 1.0})


quantized(
    "EXP", [(30, 50)], (I8,), levels=({"scale": 0.02, "zero": 0}, {"scale": 0.05, "zero": -128})
)
quantized("ELU", [(30, 50)], (I8,), reference=False)
quantized("NEG", [(40, 50)], (I8, I16))
quantized("LOG", [(30, 50)], (I8,))
for _dtype, _to in ((I8, 0.11), (U8, 0.11), (I16, 0.013)):

    @case(f"DIV-q{_dtype}", 0)
    def _(m: Made, dtype=_dtype, to=_to) -> None:
        x = m.input((40, 50), dtype, **LEVELS[dtype][0])
        by = m.input((40, 50), dtype, **LEVELS[dtype][1])
        first, zero = (level["zero"] for level in LEVELS[dtype])
        divisors, dividends = m.feeds["x1"], m.feeds["x0"]
        divisors[divisors == zero] = zero + 1
        # LiteRT shifts the quotient of a small dividend by more bits than a number has.
        least = 130 if dtype == I16 else 16
        dividends[np.abs(dividends.astype(int) - first) < least] = first + least
        y = m.out((40, 50), dtype, scale=to, zero=LEVELS[dtype][0]["zero"])
        m.g.op("DIV", [x, by], [y], div={"activation": "none" if dtype != I16 else "relu6"})


# Sums of int16 by shifts: the scale of the first operand, then that of the second, is less than the result's.
for _op, _member in (("ADD", "add"), ("SUB", "sub")):
    for _powers in ((-11, -9), (-9, -12)):

        @case(f"{_op}-shifts{_powers[0]}-qint16", 0)
        def _(m: Made, op=_op, member=_member, powers=_powers) -> None:
            inputs = [m.input((40, 50), I16, scale=2.0**p) for p in powers]
            y = m.out((40, 50), I16, scale=2.0**-9)
            m.g.op(op, inputs, [y], **{member: {"pot_scale_int16": True}})

    quantized(_op, [(40, 50), (40, 50)], (I16,), tag="standard-q", **{_member: {}})
quantized("GELU", [(30, 50)], (I8,), gelu={"approximate": False})


@case("QUANTIZE-float32-int8", 0)
def _(m: Made) -> None:
    m.g.op("QUANTIZE", [m.input((40, 50), low=-9, high=9)], [m.out((40, 50), I8, **QX)])


@case("QUANTIZE-float32-uint8", 0)
def _(m: Made) -> None:
    m.g.op("QUANTIZE", [m.input((40, 50), low=-9, high=9)], [m.out((40, 50), U8, **UX)])


for _from, _to in ((I32, I8), (I32, I16), (I16, I32)):

    @case(f"QUANTIZE-{_from}-{_to}", 0)
    def _(m: Made, source=_from, target=_to) -> None:
        levels = {I32: {"scale": 0.0005}, I16: {"scale": 0.0003}, I8: QX}
        x = m.input((40, 50), source, **levels[source])
        m.g.op("QUANTIZE", [x], [m.out((40, 50), target, **levels[target])])


for _dtype, _x in ((I8, QX), (U8, UX), (I16, {"scale": 0.07})):

    @case(f"DEQUANTIZE-{_dtype}", 0)
    def _(m: Made, dtype=_dtype, x=_x) -> None:
        m.g.op("DEQUANTIZE", [m.input((40, 50), dtype, **x)], [m.out((40, 50))])


@case("DEQUANTIZE-float16", 0)
def _(m: Made) -> None:
    w = m.mid((3, 4))
    m.g.op("DEQUANTIZE", [m.const(m.draw((3, 4), "float16"), "float16")], [w])
    m.g.op("ADD", [m.input((3, 4)), w], [m.out((3, 4))], add={})


for _dtype in (I8, U8):

    @case(f"CONCATENATION-q{_dtype}", 0)
    def _(m: Made, dtype=_dtype) -> None:
        qx, qy = LEVELS[dtype]
        inputs = [
            m.input((20, 30), dtype, **qx),
            m.input((20, 9), dtype, **(qx if dtype == I8 else qy)),
        ]
        m.g.op("CONCATENATION", inputs, [m.out((20, 39), dtype, **qx)], concatenation={"axis": 1})

    for _op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        for _padding in ("same", "valid"):

            @case(f"{_op}-{_padding}-q{_dtype}", 0)
            def _(m: Made, op=_op, padding=_padding, dtype=_dtype) -> None:
                q = LEVELS[dtype][0]
                m.g.op(op, [m.input((1, 17, 16, 3), dtype, **q)], [m.out((1, 9, 8, 3), dtype, **q)],
                       pool_2d={"padding": padding, "stride_w": 2, "stride_h": 2, "filter_w": 3,
                                "filter_h": 2, "activation": "relu"})  # fmt: skip

    @case(f"AVERAGE_POOL_2D-global-q{_dtype}", 0)
    def _(m: Made, dtype=_dtype) -> None:
        q = LEVELS[dtype][0]
        m.g.op("AVERAGE_POOL_2D", [m.input((2, 7, 7, 30), dtype, **q)],
               [m.out((2, 1, 1, 30), dtype, **q)],
               pool_2d={"padding": "valid", "stride_w": 7, "stride_h": 7, "filter_w": 7,
                        "filter_h": 7})  # fmt: skip

    for _op in ("MEAN", "SUM"):
        # The reference kernel of SUM gives -1 for all elements of int8.
        @case(f"{_op}-q{_dtype}", 0, reference=not (_op == "SUM" and _dtype == I8))
        def _(m: Made, op=_op, dtype=_dtype) -> None:
            qx, qy = LEVELS[dtype]
            m.g.op(op, [m.input((4, 7, 5, 300), dtype, **qx), m.const([1, 2])],
                   [m.out((4, 300), dtype, **qy)], reducer={"keep_dims": False})  # fmt: skip

    @case(f"RESIZE_BILINEAR-q{_dtype}", 0)
    def _(m: Made, dtype=_dtype) -> None:
        q = LEVELS[dtype][0]
        m.g.op("RESIZE_BILINEAR", [m.input((1, 9, 8, 3), dtype, **q), m.const([13, 21])],
               [m.out((1, 13, 21, 3), dtype, **q)],
               resize_bilinear={"half_pixel_centers": True})  # fmt: skip


def conv_weights(m: Made, shape, dtype, axis, channels, per_axis, x_scale, bias_dtype=I32):
    """Weights and bias with the scales that a converter gives them."""
    scale = m.rng.random(channels if per_axis else 1) * 0.01 + 0.004
    zero = 0 if dtype == I8 else 118
    w = m.const(
        m.draw(shape, dtype, -127 if dtype == I8 else 0), dtype, scale=scale, zero=zero, axis=axis
    )
    b = m.const(m.draw((channels,), I32, -3000, 3000), bias_dtype,
                scale=scale.astype(np.float32) * np.float32(x_scale))  # fmt: skip
    return w, b


for _dtype, _per_axis in ((I8, True), (I8, False), (U8, False), (I16, True)):
    _tag = f"q{_dtype}-{'channels' if _per_axis else 'one'}"
    _weight = U8 if _dtype == U8 else I8
    _bias = I64 if _dtype == I16 else I32

    @case(f"CONV_2D-{_tag}", 0)
    def _(m: Made, dtype=_dtype, per_axis=_per_axis, weight=_weight, bias=_bias) -> None:
        qx, qy = LEVELS[dtype]
        x = m.input((1, 23, 22, 8), dtype, **qx)
        w, b = conv_weights(m, (10, 3, 3, 8), weight, 0, 10, per_axis, qx["scale"], bias)
        m.g.op("CONV_2D", [x, w, b], [m.out((1, 12, 11, 10), dtype, **qy)],
               conv_2d={"padding": "same", "stride_w": 2, "stride_h": 2,
                        "activation": "relu6"})  # fmt: skip

    @case(f"DEPTHWISE_CONV_2D-{_tag}", 0)
    def _(m: Made, dtype=_dtype, per_axis=_per_axis, weight=_weight, bias=_bias) -> None:
        qx, qy = LEVELS[dtype]
        x = m.input((1, 13, 12, 16), dtype, **qx)
        w, b = conv_weights(m, (1, 3, 3, 16), weight, 3, 16, per_axis, qx["scale"], bias)
        m.g.op("DEPTHWISE_CONV_2D", [x, w, b], [m.out((1, 13, 12, 16), dtype, **qy)],
               depthwise_conv_2d={"padding": "same", "stride_w": 1, "stride_h": 1,
                                  "multiplier": 1})  # fmt: skip

    if not (_dtype == I8 and not _per_axis):

        @case(f"TRANSPOSE_CONV-{_tag}", 0)
        def _(m: Made, dtype=_dtype, per_axis=_per_axis, weight=_weight, bias=_bias) -> None:
            qx, qy = LEVELS[dtype]
            x = m.input((1, 5, 4, 6), dtype, **qx)
            w, b = conv_weights(m, (7, 3, 3, 6), weight, 0, 7, per_axis, qx["scale"], bias)
            shape = (1, 10, 8, 7)
            m.g.op("TRANSPOSE_CONV", [m.const(shape), w, x, b], [m.out(shape, dtype, **qy)],
                   transpose_conv={"padding": "same", "stride_w": 2, "stride_h": 2})  # fmt: skip

    if not _per_axis or _dtype != U8:

        @case(f"FULLY_CONNECTED-{_tag}", 0)
        def _(m: Made, dtype=_dtype, per_axis=_per_axis, weight=_weight, bias=_bias) -> None:
            qx, qy = LEVELS[dtype]
            x = m.input((30, 40), dtype, **qx)
            w, b = conv_weights(m, (200, 40), weight, 0, 200, per_axis, qx["scale"], bias)
            m.g.op("FULLY_CONNECTED", [x, w, b], [m.out((30, 200), dtype, **qy)],
                   fully_connected={"activation": "none"})  # fmt: skip


@case("BATCH_MATMUL-qint8", 0)
def _(m: Made) -> None:
    m.g.op("BATCH_MATMUL", [m.input((2, 40, 30), I8, **QX), m.input((2, 30, 80), I8, **QY)],
           [m.out((2, 40, 80), I8, scale=0.7, zero=2)], batch_matmul={})  # fmt: skip


@case("FULLY_CONNECTED-hybrid")
def _(m: Made) -> None:
    w = m.const(m.draw((20, 40), I8, -127), I8, scale=0.013)
    m.g.op("FULLY_CONNECTED", [m.input((5, 40)), w, m.const(m.draw((20,)), F)], [m.out((5, 20))],
           fully_connected={})  # fmt: skip


@case("CONV_2D-hybrid")
def _(m: Made) -> None:
    w = m.const(m.draw((6, 3, 3, 4), I8, -127), I8, scale=m.rng.random(6) * 0.01 + 0.01)
    m.g.op("CONV_2D", [m.input((2, 7, 6, 4)), w, m.const(m.draw((6,)), F)], [m.out((2, 7, 6, 6))],
           conv_2d={"padding": "same", "stride_w": 1, "stride_h": 1})  # fmt: skip


@case("FULLY_CONNECTED-channels-hybrid")
def _(m: Made) -> None:
    w = m.const(m.draw((20, 40), I8, -127), I8, scale=m.rng.random(20) * 0.01 + 0.01)
    m.g.op("FULLY_CONNECTED", [m.input((5, 40)), w, m.const(m.draw((20,)), F)], [m.out((5, 20))],
           fully_connected={})  # fmt: skip


@case("DEPTHWISE_CONV_2D-hybrid")
def _(m: Made) -> None:
    w = m.const(m.draw((1, 3, 3, 4), I8, -127), I8, scale=m.rng.random(4) * 0.01 + 0.01, axis=3)
    m.g.op("DEPTHWISE_CONV_2D", [m.input((2, 7, 6, 4)), w, m.const(m.draw((4,)), F)],
           [m.out((2, 7, 6, 4))],
           depthwise_conv_2d={"padding": "same", "stride_w": 1, "stride_h": 1,
                              "multiplier": 1})  # fmt: skip


def sparse_matrix(m: Made, dense: np.ndarray, block: int) -> int:
    """A constant matrix whose blocks of `block` columns are stored where they are not zero."""
    rows, columns = dense.shape
    blocks = dense.reshape(rows, columns // block, block)
    kept = [np.flatnonzero(b.any(axis=1)) for b in blocks]
    segments = np.cumsum([0, *map(len, kept)])
    indices = np.concatenate(kept)
    stored = np.concatenate([b[k] for b, k in zip(blocks, kept, strict=True)])
    dimensions = [
        {"kind": "dense", "dense_size": rows},
        {"kind": "sparse_csr", "segments": ("Int32Vector", {"values": segments}),
         "indices": ("Uint8Vector", {"values": indices})},
        {"kind": "dense", "dense_size": block},
    ]  # fmt: skip
    sparsity = {"traversal_order": [0, 1, 2], "block_map": [1], "dimensions": dimensions}
    name = f"c{len(m.g.tensors)}"
    return m.g.tensor(name, dense.shape, data=stored.tobytes(), sparsity=sparsity)


for _block in (1, 4):

    @case(f"DENSIFY-{'blocks' if _block > 1 else 'float32'}", 0)
    def _(m: Made, block=_block) -> None:
        # Most lines are empty.
        dense = np.zeros((30, 16), np.float32)
        dense[3, 5], dense[3, 12], dense[17, 0] = 1, 2, 3
        w = m.mid((30, 16))
        m.g.op("DENSIFY", [sparse_matrix(m, dense, block)], [w], densify={})
        m.g.op("ADD", [m.input((30, 16)), w], [m.out((30, 16))], add={})


@case("FULLY_CONNECTED-long-qint16", 0)
def _(m: Made) -> None:
    # Some of the sums are beyond 32 bits.
    x = m.input((3, 20_000), I16, low=20_000, scale=0.0002)
    weights = m.draw((9, 20_000), I8, -127)
    weights[:4] = abs(weights[:4].astype(int))
    w = m.const(weights, I8, scale=0.007)
    bias = m.const(m.draw((9,), I32, -3000, 3000), I64, scale=0.0002 * 0.007)
    m.g.op("FULLY_CONNECTED", [x, w, bias], [m.out((3, 9), I16, scale=0.05)], fully_connected={})


@case("FULLY_CONNECTED-int4", 0)
def _(m: Made) -> None:
    values = m.draw((20, 40), I8, -7, 7).ravel().astype(np.uint8)
    packed = (values[0::2] & 15) | (values[1::2] << 4)
    w = m.g.tensor("w", (20, 40), "int4", data=packed.astype(np.uint8).tobytes(), scale=0.013)
    m.g.op("FULLY_CONNECTED", [m.input((5, 40), I8, **QX), w, -1], [m.out((5, 20), I8, **QY)],
           fully_connected={})  # fmt: skip


def write_models(folder: Path) -> None:
    """Writes the model of every case as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in CASES:
        (folder / f"{each.name}.tflite").write_bytes(each.build()[0])


def as_int4(made: Made, tensor: dict) -> None:
    """A constant of int8 as one of int4 with the same scales, clamped."""
    values = np.frombuffer(made.model.buffers[tensor["buffer"]], np.int8)
    nibbles = np.clip(values, -7, 7).astype(np.uint8) & 15
    nibbles = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8))
    made.model.buffers[tensor["buffer"]] = (nibbles[::2] | nibbles[1::2] << 4).tobytes()
    tensor["type"] = "int4"


def retype(made: Made, base: str, dtype: str, levels: bool = False, shift: int = 0) -> None:
    """Gives the tensors of a type, with scales or without, another one; adds `shift` to their elements."""

    def converted(values: np.ndarray) -> np.ndarray:
        values = values.astype(np.float64) + shift
        return values > 0 if dtype == B else values.astype(DTYPES[dtype])

    changed = set()
    for g in made.model.graphs:
        for t in g.tensors:
            if t["type"] != base or ("quantization" in t) != levels:
                continue
            t["type"] = dtype
            changed.add(t["name"])
            stored = made.model.buffers[t.get("buffer", 0)]
            if isinstance(stored, bytes):
                values = np.frombuffer(stored, DTYPES[base])
                made.model.buffers[t["buffer"]] = converted(values).tobytes()
    made.feeds.update({n: converted(v) for n, v in made.feeds.items() if n in changed})


def move_levels(made: Made, base: str, dtype: str) -> None:
    """Gives the quantised tensors of a type another one: int16, whose zero point is 0, or uint8."""
    shift = {I16: 0, U8: 128}[dtype]
    for g in made.model.graphs:
        for t in g.tensors:
            if t["type"] == base and "quantization" in t:
                zero = np.asarray(t["quantization"]["zero_point"])
                t["quantization"]["zero_point"] = zero + shift if shift else zero * 0
    retype(made, base, dtype, levels=True, shift=shift)


# Other elements for which LiteRT has a kernel, with the cases whose models take them in place of their own.
_OTHER_ELEMENTS = {
    "float16": """
        COS-float32 DENSIFY-float32 FLOOR-float32 GATHER-float32 GATHER_ND-float32 GELU-float32
        LOGISTIC-float32 MAXIMUM-float32 MINIMUM-float32 NEG-float32 PAD-float32 REVERSE_V2-float32
        ROUND-float32 SIN-float32 SOFTMAX-float32 TANH-float32 UNPACK-float32""",
    "int16": """
        ABS-qint8 AVERAGE_POOL_2D-same-qint8 BATCH_MATMUL-qint8 LEAKY_RELU-qint8
        MAX_POOL_2D-same-qint8 MEAN-qint8 RELU6-qint8 RESIZE_BILINEAR-qint8 SUM-qint8""",
    "int32": """
        ADD_N-float32 POW-float32 SEGMENT_SUM-float32 UNSORTED_SEGMENT_MAX-float32
        UNSORTED_SEGMENT_MIN-float32 UNSORTED_SEGMENT_PROD-float32 UNSORTED_SEGMENT_SUM-float32""",
    "int4": """
        CONV_2D-hybrid CONV_2D-qint16-channels CONV_2D-qint8-channels
        DEPTHWISE_CONV_2D-qint8-channels FULLY_CONNECTED-hybrid FULLY_CONNECTED-qint8-channels""",
    "int64": "ONE_HOT-float32 REDUCE_PROD-float32 SPARSE_TO_DENSE-float32 SUB-float32 SUM-float32",
    "uint32": "BITCAST-types PACK-float32 WHERE-bool",
    "uint8": "RELU_N1_TO_1-qint8",
    "float16 float64": "ATAN2-float32",
    "float16 uint32": "CONCATENATION-float32 RESIZE_NEAREST_NEIGHBOR-plain",
    "int32 float64": "SIGN-float32",
    "int32 int64": "BUCKETIZE-float32 CUMSUM-float32 MEAN-float32 ZEROS_LIKE-float32",
    "int8 int16": "FLOOR_DIV-float32 STABLEHLO_SHIFT_LEFT-int32",
    "float16 float64 uint32": """
        BATCH_TO_SPACE_ND-float32 BROADCAST_TO-float32 CAST-float-int DYNAMIC_UPDATE_SLICE-float32
        EMBEDDING_LOOKUP-types EXPAND_DIMS-float32 FILL-types LSH_PROJECTION-sparse-types
        MIRROR_PAD-float32 RESHAPE-float32 SELECT-types SELECT_V2-types SLICE-float32
        SPACE_TO_BATCH_ND-float32 SQUEEZE-float32 STRIDED_SLICE-float32 TILE-float32
        TRANSPOSE-float32""",
    "int64 bool float16": "EQUAL-float32 NOT_EQUAL-float32",
    "int64 float16 uint32": "MUL-float32",
    "int64 int16 float16": """
        ADD-float32 GREATER-float32 GREATER_EQUAL-float32 LESS-float32 LESS_EQUAL-float32""",
    "int64 int8 int16": "FLOOR_MOD-float32",
    "bool float16 float64 uint32": "DILATE-types",
    "float32 int64 int16 float16": "WHILE-float32",
    "int8 uint8 int16 uint32": "BITWISE_XOR-int32 RIGHT_SHIFT-int32",
    "int32 int64 int8 int16 float16": "STABLEHLO_COMPOSITE-float32",
    "int32 int64 int8 uint8 int16": "MATRIX_SET_DIAG-float32",
    "int64 int8 uint8 int16 uint32": "STABLEHLO_AND-bool",
    "int32 int64 int8 uint8 int16 float64": "REDUCE_WINDOW-float32 STABLEHLO_REDUCE_WINDOW-float32",
    "int32 int64 int8 uint8 int16 bool float16": "PADV2-float32",
    "int32 int64 int8 uint8 int16 float16 float64 uint32": "STABLEHLO_SCATTER-float32",
    "int64 int8 uint8 int16 bool float16 float64 uint32": """
        STABLEHLO_ADD-float32 STABLEHLO_MAXIMUM-float32 STABLEHLO_MINIMUM-float32
        STABLEHLO_MULTIPLY-float32""",
    "int32 int64 int8 uint8 int16 bool float16 float64 uint32": """
        HASHTABLE_LOOKUP-float32 RANK-float32 STABLEHLO_GATHER-float32 STABLEHLO_PAD-float32""",
}
RETYPED = {case: kinds for kinds, cases in _OTHER_ELEMENTS.items() for case in cases.split()}


if __name__ == "__main__":
    write_models(Path(sys.argv[1]))
