"""Tensors with sizes of 0: NumPy's answers in Python and text, ONNX's in ONNX, fixed and open.

What every kernel writes at such sizes is checked operator by operator in src/fuzz/test/sizes_test.cc.
"""

import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_onnx_open_args import FLOAT, INT64, built, ints, model_of

import relay

SHAPES = {
    2: [(0, 3), (3, 0), (0, 0), (0, 1), (1, 0), (0, 17)],
    3: [(2, 0, 5), (0, 4, 37), (3, 2, 0)],
}
OPENNESS = ["named", "open"]


def program_of(text: str):
    return relay.build(relay.parse('#[version = "0.0.5"]\n' + text), num_threads=1)


def open_type(rank: int, openness: str, dtype: str) -> tuple[str, str]:
    """The parameters and the type of a tensor all of whose sizes are open."""
    if openness == "open":
        return "", f"Tensor[({'?, ' * rank}), {dtype}]"
    names = [f"n{d}" for d in range(rank)]
    return f"[{', '.join(f'{n}: Dim' for n in names)}]", f"Tensor[({', '.join(names)}), {dtype}]"


def expect_numpy(program, name: str, x: np.ndarray, axes) -> None:
    # Numbers of another run may lie where the result will.
    program(np.ones([d + 3 for d in x.shape], x.dtype))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the mean of an empty slice
        wanted = [np.asarray(getattr(np, name)(x, axis=axis)).astype(x.dtype) for axis in axes]
    for axis, got, want in zip(axes, program(x), wanted, strict=True):
        np.testing.assert_array_equal(
            np.asarray(got), want, f"{name} {x.shape} {axis}", strict=True
        )


@pytest.mark.parametrize("openness", OPENNESS)
@pytest.mark.parametrize("rank", SHAPES)
def test_reductions_of_nothing_have_numpys_identities(rank, openness):
    axes = [*range(rank), None]
    for name in ("sum", "prod", "mean", "any", "all"):
        dtype = "bool" if name in ("any", "all") else "float32"
        dims, of = open_type(rank, openness, dtype)
        calls = ", ".join(f"{name}(%x{'' if a is None else f', axis=[{a}]'})" for a in axes)
        program = program_of(f"def @main{dims}(%x: {of}) {{ ({calls}) }}")
        for shape in SHAPES[rank]:
            expect_numpy(program, name, np.zeros(shape, dtype), axes)


@pytest.mark.parametrize("openness", OPENNESS)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extremum(name, openness):
    dims, of = open_type(2, openness, "float32")
    program = program_of(f"def @main{dims}(%x: {of}) {{ {name}(%x, axis=[1]) }}")
    assert np.asarray(program(np.zeros((0, 3), "float32"))).shape == (0,)
    for rows in (0, 2):
        with pytest.raises(relay.RelayError, match=rf"E0607.*{name}.*at least 1"):
            program(np.zeros((rows, 0), "float32"))
    with pytest.raises(relay.RelayError, match=r"E02.*of none"):
        program_of(f"def @main(%x: Tensor[(2, 0), float32]) {{ {name}(%x, axis=[1]) }}")


def test_an_extremum_of_nothing_on_request():
    text = (
        "def @main[n: Dim](%x: Tensor[(n, 2), DTYPE]) { OP(%x, axis=[0], identity_if_empty=True) }"
    )
    limits = {"int8": np.iinfo("int8"), "uint32": np.iinfo("uint32")}
    for dtype in ("float32", "int8", "uint32"):
        for op in ("max", "min"):
            program = program_of(text.replace("DTYPE", dtype).replace("OP", op))
            if dtype == "float32":
                want = -np.inf if op == "max" else np.inf
            else:
                want = limits[dtype].min if op == "max" else limits[dtype].max
            assert np.asarray(program(np.zeros((0, 2), dtype))).tolist() == [want] * 2
            assert np.asarray(program(np.array([[3, 5], [4, 2]], dtype))).tolist() == (
                [4, 5] if op == "max" else [3, 2]
            )


@relay.function
def column_sums(x, mask):
    return np.sum(x[mask], axis=0), np.prod(x[mask], axis=0), np.mean(x[mask], axis=0)


@relay.function
def greatest(x, mask):
    return np.max(x[mask], axis=0)


def test_python_functions_reduce_what_no_row_matches():
    x = np.random.default_rng(1).normal(size=(9, 21)).astype("float32")
    some, none = np.arange(9) % 2 == 0, np.zeros(9, bool)
    for _ in range(3):
        column_sums(x, some)
        got = [np.asarray(g) for g in column_sums(x, none)]
        assert got[0].tolist() == [0.0] * 21
        assert got[1].tolist() == [1.0] * 21
        assert np.isnan(got[2]).all()
    np.testing.assert_array_equal(np.asarray(greatest(x, some)), x[some].max(axis=0))
    with pytest.raises(relay.RelayError, match=r"E0607.*max.*at least 1"):
        greatest(x, none)


REDUCTIONS = ["Sum", "Prod", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


def reference(model: onnx.ModelProto, values: dict) -> list:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(model).run(None, values)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_onnx_reductions_of_nothing(dtype):
    """All in one model. Integers have no mean of nothing."""
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = [
        n for n in REDUCTIONS if dtype == "float32" or n not in ("Mean", "LogSum", "LogSumExp")
    ]
    nodes = [
        helper.make_node(f"Reduce{n}", ["x", f"axis{a}"], [f"{n}{a}"], keepdims=a)
        for n in names
        for a in (0, 1)
    ]
    results = [f"{n}{a}" for n in names for a in (0, 1)]
    for sizes in (["n", "m"], [0, 17], [4, 0]):
        model = model_of(nodes, [("x", code, sizes)], results)
        model.graph.initializer.extend(numpy_helper.from_array(ints(a), f"axis{a}") for a in (0, 1))
        program = built(model)
        for shape in [(0, 17), (4, 0), (0, 0)] if sizes[0] == "n" else [tuple(sizes)]:
            if sizes[0] == "n":
                program(np.ones((5, 17), dtype))
            x = np.zeros(shape, dtype)
            for name, got, want in zip(
                results, program(x), reference(model, {"x": x}), strict=True
            ):
                # NumPy has its own dtypes for sums of whole numbers.
                want = want.astype(dtype)
                np.testing.assert_array_equal(got, want, f"{name} of {shape}", strict=True)


# A node, the arrays of its inputs with some size 0, and its other inputs, which are constants.
EMPTY_NODES = [
    ("Softmax", {"axis": 1}, [(0, 5), (5, 0)], []),
    ("LogSoftmax", {"axis": 0}, [(0, 5), (5, 0)], []),
    ("TopK", {"axis": 1}, [(0, 5), (3, 4)], [ints(0)]),
    ("Concat", {"axis": 1}, [(2, 0), (2, 3)], [np.ones((2, 3), "float32")]),
    ("Split", {"axis": 0, "num_outputs": 1}, [(0, 3)], []),
    ("Gather", {"axis": 0}, [(4, 3), (4, 0)], [ints()]),
    ("Gather", {"axis": 1}, [(0, 3)], [ints(1, 2)]),
    ("GatherElements", {"axis": 0}, [(3, 2)], [np.zeros((0, 2), "int64")]),
    (
        "ScatterElements",
        {"axis": 0},
        [(3, 2)],
        [np.zeros((0, 2), "int64"), np.zeros((0, 2), "float32")],
    ),
    ("CumSum", {}, [(0, 3), (3, 0)], [np.array(0)]),
    ("Transpose", {}, [(0, 3), (3, 0)], []),
    ("Expand", {}, [(1, 3), (0, 3)], [ints(0, 3)]),
    ("Tile", {}, [(2, 3), (0, 3)], [ints(2, 0)]),
    ("Pad", {}, [(0, 2), (2, 0)], [ints(1, 0, 0, 2), np.array(3, "float32")]),
    ("Slice", {}, [(0, 3), (5, 3)], [ints(0), ints(0), ints(0)]),
    ("MatMul", {}, [(0, 3), (2, 3)], [np.ones((3, 4), "float32")]),
    ("MatMul", {}, [(3, 0)], [np.zeros((0, 4), "float32")]),
    ("Gemm", {}, [(3, 0)], [np.zeros((0, 4), "float32"), np.ones(4, "float32")]),
    ("NonZero", {}, [(0, 3), (2, 0)], []),
    ("Add", {}, [(0, 3), (3, 0)], [np.ones((1, 1), "float32")]),
    ("Where", {}, [(0, 3)], [np.ones((1, 3), "float32"), np.ones((1, 3), "float32")]),
    ("OneHot", {}, [(0,)], [np.array(3), np.array([0, 1], "float32")]),
    ("GlobalMaxPool", {}, [(0, 3, 4, 4)], []),
    ("MaxPool", {"kernel_shape": [2, 2]}, [(0, 3, 4, 4), (2, 0, 4, 4)], []),
    ("AveragePool", {"kernel_shape": [2, 2]}, [(0, 3, 4, 4)], []),
    ("Conv", {}, [(0, 3, 5, 5)], [np.ones((4, 3, 2, 2), "float32")]),
    ("LayerNormalization", {}, [(0, 3)], [np.ones(3, "float32"), np.ones(3, "float32")]),
    ("ArgMax", {"axis": 1}, [(0, 3)], []),
]


@pytest.mark.parametrize("row", EMPTY_NODES, ids=lambda r: f"{r[0]}")
def test_onnx_nodes_of_empty_tensors(row):
    op, attrs, shapes, others = row
    of = {"Where": TensorProto.BOOL, "OneHot": INT64}.get(op, FLOAT)
    dtype = helper.tensor_dtype_to_np_dtype(of)
    names = [f"c{i}" for i in range(len(others))]
    results = ["y", "z"] if op == "TopK" else ["y"]
    node = helper.make_node(op, ["x", *names], results, **attrs)
    for sizes in [*shapes, [f"n{d}" for d in range(len(shapes[0]))]]:
        model = model_of([node], [("x", of, list(sizes))], results)
        model.graph.initializer.extend(map(numpy_helper.from_array, others, names))
        program = built(model)
        for shape in shapes if isinstance(sizes, list) else [sizes]:
            x = np.zeros(shape, dtype)
            got = program(x)
            got = got if isinstance(got, (list, tuple)) else [got]
            for g, want in zip(got, reference(model, {"x": x}), strict=True):
                np.testing.assert_array_equal(g, want, f"{op} of {shape}", strict=True)


@pytest.mark.parametrize("allowzero", [0, 1])
def test_onnx_reshapes_by_a_zero_that_is_computed(allowzero):
    """From an input, and from the sizes of another tensor."""
    nodes = [helper.make_node("Reshape", ["x", "sizes"], ["y"], allowzero=allowzero)]
    told = model_of(nodes, [("x", FLOAT, ["n", "m"]), ("sizes", INT64, [2])], ["y"])
    nodes = [helper.make_node("Shape", ["like"], ["sizes"]), *nodes]
    like = model_of(nodes, [("x", FLOAT, ["n", "m"]), ("like", FLOAT, ["a", "b"])], ["y"])
    by_sizes, by_shape = built(told), built(like)
    cases = [((2, 3), (0, 3)), ((2, 3), (2, 0)), ((2, 3), (0, 0)), ((0, 3), (3, 0)), ((0, 3), (0, 0)),
             ((0, 3), (0, 5)), ((2, 3), (3, 2)), ((0, 3), (5, 0))]  # fmt: skip
    for shape, sizes in cases:
        x = np.arange(np.prod(shape)).reshape(shape).astype("float32")
        try:
            (want,) = reference(told, {"x": x, "sizes": ints(*sizes)})
        except ValueError:
            want = None
        for program, other in ((by_sizes, ints(*sizes)), (by_shape, np.zeros(sizes, "float32"))):
            if want is None:
                with pytest.raises(relay.RelayError, match="E06"):
                    program(x, other)
            else:
                np.testing.assert_array_equal(
                    program(x, other), want, f"{shape} {sizes}", strict=True
                )


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_the_size_that_reshape_infers_beside_a_copied_axis(rows):
    x = np.arange(rows * 12, dtype=np.float32).reshape(rows, 3, 4)
    for known in ("?", "n"):
        head = "def @main[n: Dim]" if known == "n" else "def @main"
        mod = relay.fromtext(
            f'#[version = "0.0.5"]\n{head}(%x: Tensor[({known}, 3, 4), float32]) '
            "{ negative(reshape(%x, newshape=[0, -1])) }"
        )
        got = relay.create_executor("vm", mod, target="llvm").evaluate()(x)
        np.testing.assert_array_equal(got, -x.reshape(rows, 12))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (1, 2), (3, 4)])
def test_the_elements_of_an_empty_axis_are_put_apart(shape):
    x = np.ones(shape, np.float32)
    mod = relay.fromtext(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, ?), float32]) { nn.dilate(%x, strides=[2, 3]) }'
    )
    got = relay.create_executor("vm", mod, target="llvm").evaluate()(x)
    want = np.zeros(
        [max((n - 1) * s + 1, 0) for n, s in zip(shape, (2, 3), strict=True)], np.float32
    )
    want[::2, ::3] = x
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(0, 4), (0, 0), (2, 3)])
def test_a_scalar_is_made_of_one_element_only(shape):
    mod = relay.fromtext(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, ?), float32], %s: Tensor[(0,), int64]) '
        "{ negative(dyn.reshape(%x, %s)) }"
    )
    run = relay.create_executor("vm", mod, target="llvm").evaluate()
    none = np.zeros(0, np.int64)
    with pytest.raises(relay.RelayError, match="E0607"):
        run(np.ones(shape, np.float32), none)
    assert run(np.full((1, 1), 2, np.float32), none) == -2
