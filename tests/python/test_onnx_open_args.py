"""One compiled program for every value of an argument: axes, places, sizes, k, sequences."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import relay

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
X = np.random.default_rng(1).normal(size=(3, 4, 5)).astype("float32")


def model_of(nodes, inputs, outputs, opset=21) -> onnx.ModelProto:
    infos = [
        v if isinstance(v, onnx.ValueInfoProto) else helper.make_tensor_value_info(*v)
        for v in inputs
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "g", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def built(model, **options):
    mod, params = relay.frontend.from_onnx(model, **options)
    return relay.build(mod, params=params, num_threads=1, opt_level=1)


def ints(*values):
    return np.array(values, "int64")


# An operator, its attributes, the names of its inputs behind x, and what they are in each run.
OPEN = [
    ("ReduceMax", {"keepdims": 1}, ["axes"], [[ints(0, 2)], [ints(1, -1)]]),
    ("ReduceSum", {"keepdims": 0}, ["axes"], [[ints(0)], [ints(-1)]]),
    ("Slice", {}, ["starts", "ends", "axes", "steps"],
     [[ints(1, 0), ints(3, 4), ints(2, 1), ints(1, 2)],
      [ints(-1, -100), ints(-100, 100), ints(0, 2), ints(-1, 3)]]),
    ("Pad", {"mode": "reflect"}, ["pads"], [[ints(0, 1, 2, 1, 0, 1)], [ints(2, 0, 0, 0, 0, 3)]]),
    ("Reshape", {}, ["shape"], [[ints(5, -1)], [ints(0, 20)]]),
    ("Tile", {}, ["repeats"], [[ints(1, 2, 1)], [ints(2, 1, 0)]]),
    ("Expand", {}, ["shape"], [[ints(2, 3, 4, 5)], [ints(1, 1, 4, 1)]]),
    ("CumSum", {"reverse": 1}, ["axis"], [[np.array(0)], [np.array(-1)]]),
    ("Unsqueeze", {}, ["axes"], [[ints(0, 2)], [ints(-1, 1)]]),
]  # fmt: skip


@pytest.mark.parametrize("row", OPEN, ids=lambda row: row[0])
def test_one_program_for_all_values(row):
    op, attrs, names, runs = row
    inputs = [("x", FLOAT, ["n", 4, 5])] + [
        (n, INT64, v.shape) for n, v in zip(names, runs[0], strict=True)
    ]
    node = helper.make_node(op, ["x", *names], ["y"], **attrs)
    model = model_of([node], inputs, ["y"])
    program, oracle = built(model), ReferenceEvaluator(model)
    for values in runs:
        (want,) = oracle.run(None, {"x": X, **dict(zip(names, values, strict=True))})
        got = program(X, *values)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


MOST = int(np.iinfo("int64").max)
THETA = np.random.default_rng(5).normal(size=(2, 2, 3)).astype("float32")

# The same with lists of which only a run knows how long they are. An operator, its attributes, the data,
# the names of the lists, what they are in the runs, and lists that do not fit.
LISTS = [
    ("ReduceMax", {"keepdims": 1}, X, ["axes"], [[ints(0)], [ints(1, -1)], [ints()], [ints(0, 1, 2)]],
     [[ints(3)]]),
    ("ReduceL1", {"keepdims": 1, "noop_with_empty_axes": 1}, X, ["axes"], [[ints(2)], [ints()]], []),
    ("ReduceLogSumExp", {"keepdims": 1}, X, ["axes"], [[ints(-3)], [ints(2, 0)]], [[ints(-4)]]),
    ("Slice", {}, X, ["starts", "ends", "axes", "steps"],
     [[ints(1, 0), ints(3, 4), ints(2, 1), ints(1, 2)], [ints(-1), ints(-100), ints(-1), ints(-1)],
      [ints(1, 1, 1), ints(9, 9, 9), ints(0, 1, 2), ints(1, 2, 3)]],
     [[ints(1, 1), ints(2), ints(0, 1), ints(1, 1)], [ints(1), ints(2), ints(0, 1), ints(1, 1)],
      [ints(1), ints(2), ints(-4), ints(1)]]),
    ("Slice", {}, X, ["starts", "ends"], [[ints(1), ints(3)], [ints(0, -2, 1), ints(2, 9, 3)]],
     [[ints(0, 1), ints(2)], [ints(0, 0, 0, 0), ints(1, 1, 1, 1)]]),
    ("Pad", {}, X, ["pads"], [[ints(0, 1, 2, 1, 0, 3)]], [[ints(1, 1)], [ints(*[0] * 8)]]),
    ("Pad", {"mode": "edge"}, X, ["pads", "", "axes"],
     [[ints(1, 2), ints(2)], [ints(1, 0, 0, 2), ints(-1, 0)]],
     [[ints(1, 2), ints(0, 1)], [ints(1, 1), ints(3)], [ints(1, 1), ints(-4)]]),
    ("Tile", {}, X, ["repeats"], [[ints(1, 2, 1)], [ints(2, 1, 0)]], [[ints(2)], [ints(1, 1, 1, 1)]]),
    ("CenterCropPad", {}, X, ["shape"], [[ints(2, 5, 5)]], [[ints(2, 5)]]),
    ("CenterCropPad", {"axes": [2, 0]}, X, ["shape"], [[ints(7, 2)]], [[ints(2, 5, 5)]]),
    ("Resize", {"mode": "linear"}, X, ["", "", "sizes"], [[ints(3, 8, 2)]], [[ints(8, 2)]]),
    ("AffineGrid", {}, THETA, ["size"], [[ints(2, 1, 4, 3)]], [[ints(2, 1, 4)]]),
    ("TopK", {"axis": 1}, X, ["k"], [[ints(2)], [ints(4)]], [[ints(1, 1)], [ints()]]),
    ("SplitToSequence", {"axis": 2}, X, ["split"], [[ints(5)], [ints(1, 0, 3, 1)], [ints(2, 3)]],
     [[ints(1, 1)], [ints(-1, 6)], [ints()]]),
    ("Split", {"axis": 2}, X, ["split"], [[ints(2, 3)], [ints(5, 0)]], [[ints(5)], [ints(2, 2, 1)]]),
]  # fmt: skip


@pytest.mark.parametrize("row", LISTS, ids=lambda row: f"{row[0]} {row[3]}")
@pytest.mark.parametrize("computed", [False, True], ids=["input", "computed"])
def test_lists_of_open_length_are_one_program(row, computed):
    """As inputs of any length, and as the elements of an input that are not the greatest number."""
    op, attrs, data, names, runs, wrong = row
    lists = [name for name in names if name]
    nodes = []
    inputs = [("x", FLOAT, data.shape)] + [(name, INT64, [None]) for name in lists]
    if computed:
        nodes = [helper.make_node("Constant", [], ["most"], value_int=MOST)]
        for name in lists:
            nodes += [helper.make_node("Equal", [name, "most"], [f"{name}_is"]),
                      helper.make_node("Not", [f"{name}_is"], [f"{name}_kept"]),
                      helper.make_node("Compress", [name, f"{name}_kept"], [f"{name}_list"])]  # fmt: skip
    given = [name and (f"{name}_list" if computed else name) for name in names]
    results = {"TopK": ["y", "i"], "Split": ["y", "z"]}.get(op, ["y"])
    nodes.append(helper.make_node(op, ["x", *given], results, **attrs))
    model = model_of(nodes, inputs, results)
    mod, params = relay.frontend.from_onnx(model)
    assert isinstance(mod, relay.IRModule)
    program = relay.build(mod, params=params, num_threads=1, opt_level=1)
    oracle = ReferenceEvaluator(model)
    for values in runs:
        longer = [np.append(v, MOST) for v in values] if computed else values
        want = oracle.run(None, {"x": data, **dict(zip(lists, longer, strict=True))})
        got = program(data, *longer)
        if op == "SplitToSequence":
            (want,) = want
        for a, b in zip(got if isinstance(got, (tuple, list)) else [got], want, strict=True):
            assert np.asarray(a).shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for values in wrong:
        with pytest.raises(relay.RelayError, match="E06"):
            program(data, *values)


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (1, 3, 5, 6)), ((1, 1, 4, 5), (2, 3, 5, 6)),
     ((3, 4, 5), (2, 3, 5, 6)), ((2, 2, 4, 5), (2, 2, 5, 1))],
)  # fmt: skip
def test_products_of_matrices_of_data_dependent_sizes(left, right):
    """Batches that turn out to be one, or to be repeated to one; the sizes that are known stay known."""
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=s).astype("float32") for s in (left, right))
    nodes = [
        helper.make_node("Reshape", ["a", "sa"], ["u"]),
        helper.make_node("Reshape", ["b", "sb"], ["v"]),
        helper.make_node("MatMul", ["u", "v"], ["w"]),
        helper.make_node("Flatten", ["w"], ["y"], axis=2),
    ]
    inputs = [("a", FLOAT, ["n"]), ("sa", INT64, [len(left)]), ("b", FLOAT, ["m"]),
              ("sb", INT64, [len(right)])]  # fmt: skip
    program = built(model_of(nodes, inputs, ["w", "y"]))
    w, y = program(a.ravel(), ints(*left), b.ravel(), ints(*right))
    np.testing.assert_allclose(w, a @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(y, w.reshape(w.shape[0] * w.shape[1], -1))


def test_lines_of_pixels_become_images_and_are_resized():
    """As in segmentation: the size of -1 and the sizes of Resize are terms of the image's."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[4, 4], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["c"], ["s"]),
        helper.make_node("Slice", ["s", "two", "four"], ["sides"]),
        helper.make_node("Slice", ["s", "zero", "two"], ["front"]),
        helper.make_node("Concat", ["front", "minus"], ["lines"], axis=0),
        helper.make_node("Reshape", ["c", "lines"], ["l"]),
        helper.make_node("Transpose", ["l"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Slice", ["s", "zero", "one"], ["batch"]),
        helper.make_node("Concat", ["batch", "sides", "minus"], ["pixels"], axis=0),
        helper.make_node("Reshape", ["t", "pixels"], ["p"]),
        helper.make_node("Transpose", ["p"], ["i"], perm=[0, 3, 1, 2]),
        helper.make_node("MaxPool", ["i"], ["small"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Resize", ["small", "", "", "s"], ["y"], mode="linear"),
    ]
    numbers = {"zero": [0], "one": [1], "two": [2], "four": [4], "minus": [-1]}
    constants = [helper.make_node("Constant", [], [k], value_ints=v) for k, v in numbers.items()]
    w = np.random.default_rng(3).normal(size=(5, 3, 3, 3)).astype("float32")
    model = model_of([*constants, *nodes],
                     [("x", FLOAT, ["n", 3, "height", "width"]), ("w", FLOAT, w.shape)],
                     ["y"])  # fmt: skip
    mod, _ = relay.frontend.from_onnx(model)
    assert "?" not in str(mod["main"].ret_type), mod["main"].ret_type
    program, oracle = built(model), ReferenceEvaluator(model)
    for shape in [(1, 3, 17, 25), (2, 3, 32, 20)]:
        x = np.random.default_rng(4).normal(size=shape).astype("float32")
        (want,) = oracle.run(None, {"x": x, "w": w})
        np.testing.assert_allclose(program(x, w), want, rtol=1e-4, atol=1e-5)


def test_sizes_that_are_known_stay_known():
    """Of a data-dependent new shape the numbers in it are part of the type."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "one"], ["batch"]),
        helper.make_node("Concat", ["batch", "k", "head"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        helper.make_node("Concat", ["k", "k", "head"], ["open"], axis=0),
        helper.make_node("Reshape", ["x", "open"], ["z"]),
    ]
    model = model_of(nodes, [("x", FLOAT, ["n", 12]), ("k", INT64, [1])], ["y", "z"])
    for name, value in (("zero", 0), ("one", 1), ("head", 4)):
        model.graph.initializer.append(numpy_helper.from_array(ints(value), name))
    mod, params = relay.frontend.from_onnx(model)
    assert "(n, 3, 4)" in str(mod["main"].ret_type)
    assert "(?, ?, 4)" in str(mod["main"].ret_type)
    x = np.arange(36.0, dtype="float32").reshape(3, 12)
    y, z = relay.build(mod, params=params)(x, ints(3))
    np.testing.assert_array_equal(y, x.reshape(3, 3, 4))
    np.testing.assert_array_equal(z, x.reshape(3, 3, 4))


def test_k_and_sizes_that_are_computed():
    """k is half of how many are positive; the parts are the halves."""
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1),
        helper.make_node("Split", ["x", "parts"], ["a", "b"], axis=2),
    ]
    model = model_of(nodes, [("x", FLOAT, [3, 4, 5]), ("k", INT64, [1]), ("parts", INT64, [2])],
                     ["v", "i", "a", "b"])  # fmt: skip
    program, oracle = built(model), ReferenceEvaluator(model)
    for k, parts in ((1, (2, 3)), (4, (0, 5))):
        values = [X, ints(k), ints(*parts)]
        want = oracle.run(None, dict(zip(("x", "k", "parts"), values, strict=True)))
        for got, one in zip(program(*values), want, strict=True):
            np.testing.assert_array_equal(got, one)


@pytest.mark.parametrize(("op", "names", "values"), [
    ("ReduceSum", ["axes"], [ints(3)]),
    ("ReduceSum", ["axes"], [ints(0, 0)]),
    ("Squeeze", ["axes"], [ints(1)]),
    ("Reshape", ["shape"], [ints(7, -1)]),
    ("Slice", ["starts", "ends", "axes"], [ints(0), ints(1), ints(3)]),
    ("CumSum", ["axis"], [np.array(3)]),
    ("Tile", ["repeats"], [ints(1, -1, 1)]),
], ids=str)  # fmt: skip
def test_impossible_values_end_the_run(op, names, values):
    inputs = [("x", FLOAT, [3, 4, 5])] + [
        (n, INT64, v.shape) for n, v in zip(names, values, strict=True)
    ]
    attrs = {"keepdims": 0} if op == "ReduceSum" else {}
    program = built(model_of([helper.make_node(op, ["x", *names], ["y"], **attrs)], inputs, ["y"]))
    with pytest.raises(relay.RelayError, match="E06"):
        program(X, *values)


def test_a_loop_may_carry_what_grows():
    body = helper.make_graph(
        [helper.make_node("Concat", ["s", "s"], ["t"], axis=0),
         helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [helper.make_tensor_value_info("i", INT64, []),
         helper.make_tensor_value_info("c", TensorProto.BOOL, []),
         helper.make_tensor_value_info("s", FLOAT, ["k"])],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []),
         helper.make_tensor_value_info("t", FLOAT, ["k"])],
    )  # fmt: skip
    model = model_of([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
                     [("n", INT64, []), ("x", FLOAT, [2])], ["y"])  # fmt: skip
    program, x = built(model), np.array([1, 2], "float32")
    for n in (0, 1, 3):
        np.testing.assert_array_equal(program(np.array(n), x), np.tile(x, 2**n))


def sequence(name, shape):
    return helper.make_tensor_sequence_value_info(name, FLOAT, shape)


def test_sequences_of_any_length():
    nodes = [
        helper.make_node("SequenceInsert", ["xs", "x", "at"], ["more"]),
        helper.make_node("SequenceLength", ["more"], ["n"]),
        helper.make_node("SequenceAt", ["more", "last"], ["y"]),
        helper.make_node("ConcatFromSequence", ["more"], ["all"], axis=0),
        helper.make_node("SequenceErase", ["more", "at"], ["fewer"]),
    ]
    inputs = [sequence("xs", ["k"]), ("x", FLOAT, [2]), ("at", INT64, []), ("last", INT64, [])]
    program = built(model_of(nodes, inputs, ["n", "y", "all", "fewer"]))
    x = np.array([-1, -2], "float32")
    for count in (1, 3):
        xs = [np.arange(i + 1, dtype="float32") for i in range(count)]
        for at in (0, count):
            want = [*xs[:at], x, *xs[at:]]
            n, y, together, fewer = program(xs, x, np.array(at), np.array(-1))
            assert n == count + 1
            np.testing.assert_array_equal(y, want[-1])
            np.testing.assert_array_equal(together, np.concatenate(want))
            assert len(fewer) == count
            for got, one in zip(fewer, xs, strict=True):
                np.testing.assert_array_equal(got, one)


def test_a_place_outside_of_a_sequence_ends_the_run():
    model = model_of([helper.make_node("SequenceAt", ["xs", "at"], ["y"])],
                     [sequence("xs", ["k"]), ("at", INT64, [])], ["y"])  # fmt: skip
    with pytest.raises(relay.RelayError, match="E06"):
        built(model)([X[0, 0]], np.array(1))


def test_what_a_rank_hangs_on_is_named():
    model = model_of([helper.make_node("Reshape", ["x", "shape"], ["y"])],
                     [("x", FLOAT, [6]), ("shape", INT64, ["k"])], ["y"])  # fmt: skip
    mod, _ = relay.frontend.from_onnx(model)
    assert mod.deciding == [("shape", "sizes")]
    assert isinstance(mod, relay.frontend.OpenModel)
    assert repr(mod).startswith("<relay.frontend.OpenModel")
    with pytest.raises(relay.UserError, match=r"(?s)E0505.*the new shape.*--specialise.*'shape'"):
        _ = mod["main"]


def test_frozen_inputs_are_constants():
    model = model_of([helper.make_node("Reshape", ["x", "shape"], ["y"])],
                     [("x", FLOAT, [6]), ("shape", INT64, ["k"])], ["y"])  # fmt: skip
    program = built(model, freeze={"shape": ints(2, 3)})
    assert [slot.shape for slot in program.output_info()] == [(2, 3)]
    assert program(np.zeros(6, "float32")).shape == (2, 3)
    for wrong in ({"shape": np.array([2.0, 3.0])}, {"shape": ints()[None]}, {"other": ints(1)}):
        with pytest.raises(relay.RelayError, match="E0510"):
            relay.frontend.from_onnx(model, freeze=wrong)


def test_another_version_of_the_operator_set():
    """Before version 13 Softmax took all axes from its own on as one."""
    model = model_of(
        [helper.make_node("Softmax", ["x"], ["y"], axis=1)], [("x", FLOAT, [3, 4, 5])], ["y"], 13
    )
    assert built(model)(X).sum(axis=1) == pytest.approx(np.ones((3, 5)), rel=1e-5)
    assert built(model, opset=11)(X).sum(axis=(1, 2)) == pytest.approx(np.ones(3), rel=1e-5)


def test_random_numbers_are_the_same_in_every_run():
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"], mean=2.0, scale=3.0),
        helper.make_node("RandomNormalLike", ["x"], ["b"], mean=2.0, scale=3.0),
        helper.make_node("Bernoulli", ["p"], ["c"]),
    ]
    model = model_of(nodes, [("x", FLOAT, [100, 100]), ("p", FLOAT, [100, 100])], ["a", "b", "c"])
    x, p = np.zeros((100, 100), "float32"), np.full((100, 100), 0.25, "float32")
    program = built(model)
    a, b, c = program(x, p)
    assert abs(a.mean() - 2) < 0.2 and abs(a.std() - 3) < 0.2
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] < 0.05
    assert set(np.unique(c)) == {0, 1} and abs(c.mean() - 0.25) < 0.02
    np.testing.assert_array_equal(a, program(x, p)[0])


def test_parts_whose_size_only_a_run_knows():
    """A sequence of as many parts as there are, the last one smaller; parts of no size end the run."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "size"], ["parts"], axis=0),
        helper.make_node("SequenceLength", ["parts"], ["count"]),
        helper.make_node("SequenceAt", ["parts", "last"], ["y"]),
    ]
    model = model_of(nodes, [("x", FLOAT, ["n", 2]), ("size", INT64, [])], ["count", "y"])
    model.graph.initializer.append(numpy_helper.from_array(np.array(-1), "last"))
    program = built(model)
    x = np.arange(14.0, dtype="float32").reshape(7, 2)
    for size in (1, 3, 7, 9):
        count, y = program(x, np.array(size))
        parts = [x[i : i + size] for i in range(0, 7, size)]
        assert count == len(parts)
        np.testing.assert_array_equal(y, parts[-1])
    with pytest.raises(relay.RunError):
        program(x, np.array(0))


# An operator, its attributes, indices of which one is i, the size of the axis, and what NumPy gives.
INDEXED = [
    ("Gather", {"axis": 1}, lambda i: ints(0, i), 4, lambda i: X[:, [0, i]]),
    ("Gather", {"axis": 0}, lambda i: np.array(i), 3, lambda i: X[i]),
    ("Gather", {"axis": 2}, lambda i: np.full((2, 40), i, "int32"), 5,
     lambda i: X[:, :, np.full((2, 40), i)]),
    ("GatherElements", {"axis": 1}, lambda i: ints(0, i).reshape(1, 2, 1), 4,
     lambda i: X[:1, [0, i], :1]),
    ("GatherND", {}, lambda i: ints(1, 1, i, 0).reshape(2, 2), 3, lambda i: X[[1, i], [1, 0]]),
    ("GatherND", {"batch_dims": 1}, lambda i: np.full((3, 1), i), 4, lambda i: X[:, i]),
]  # fmt: skip


@pytest.mark.parametrize("row", INDEXED, ids=lambda row: f"{row[0]} {row[1]}")
@pytest.mark.parametrize("shape", [[3, 4, 5], ["n", "m", "k"]], ids=["static", "open"])
@pytest.mark.parametrize("executor", ["vm", "debug"])
def test_an_index_outside_is_refused(row, shape, executor):
    op, attrs, at, size, want = row
    i = at(0)
    model = model_of(
        [helper.make_node(op, ["x", "i"], ["y"], **attrs)],
        [("x", FLOAT, shape), ("i", helper.np_dtype_to_tensor_dtype(i.dtype), i.shape)],
        ["y"],
    )
    mod, _ = relay.frontend.from_onnx(model)
    program = relay.create_executor(executor, mod).evaluate()
    for k in (0, size - 1, -size):
        np.testing.assert_array_equal(np.asarray(program(X, at(k))), want(k))
    for k in (size, -size - 1, 2**31 - 1):
        with pytest.raises(relay.RelayError, match="index"):
            program(X, at(k))
