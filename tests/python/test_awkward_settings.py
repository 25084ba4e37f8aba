"""Settings at the edge of what an operator takes, against ONNX Runtime: windows and borders beyond the
image, rows that fill no vectors, many parts, scans from behind, orders with ties and NaN, of numbers and of
words, transforms of any length."""

import itertools

import numpy as np
import onnxruntime
import pytest
from cliff_models import DOUBLE, FLOAT, HALF, INT8, INT64, UINT8, In, Weights, ints, one, traced
from onnx import TensorProto

import relay

pytestmark = pytest.mark.drawn(3)

BOOL = TensorProto.BOOL
RNG = np.random.default_rng(7)


def agree(build, *inputs, tolerance=1e-5, want=None):
    """Relay, optimised and not, gives what ONNX Runtime does for a model; NaN and infinities, too."""
    model = build().SerializeToString()
    if want is None:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        want = session.run(None, dict(zip(names, inputs, strict=True)))
    module, params = relay.frontend.from_onnx(model)
    for level in (3, 0):
        got = relay.build(module, params=params, opt_level=level)(*inputs)
        got = [np.asarray(g) for g in (got if isinstance(got, (list, tuple)) else [got])]
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(
                a.astype("float64"), b.astype("float64"), rtol=tolerance, atol=tolerance
            )


def normal(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


# Kernel, size, pads before and behind, stride: beyond the image on one side, on both, by far.
WINDOWS = [(1280, 7, 0, 1273, 1), (9, 7, 4, 4, 1), (9, 7, 8, 0, 2), (301, 5, 150, 300, 3),
           (40, 40, 39, 39, 7), (1001, 100, 500, 500, 1), (2, 1, 1, 1, 1), (5, 6, 4, 4, 5)]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("op, attrs", [
    ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {}),
])  # fmt: skip
def test_windows_beyond_the_image(op, attrs, window):
    kernel, size, before, behind, stride = window
    x = In((2, 3, size, 5))
    build = one(op, x, kernel_shape=[kernel, 2], pads=[before, 1, behind, 1], strides=[stride, 1],
                **attrs)  # fmt: skip
    agree(build, normal(2, 3, size, 5), tolerance=1e-4)


@pytest.mark.parametrize("dtype, name", [(FLOAT, "float32"), (INT8, "int8"), (UINT8, "uint8")])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kernel, pads, strides", [
    ([3, 3], [1, 1, 1, 1], [2, 2]), ([9, 30], [4, 15, 4, 15], [1, 3]), ([1, 1], [0, 0, 0, 0], [3, 1]),
    ([2, 5], [1, 0, 0, 4], [1, 2]),
])  # fmt: skip
def test_places_of_maxima(kernel, pads, strides, order, dtype, name):
    # Few values: most windows hold their greatest several times, and the first one counts.
    x = RNG.integers(0, 4, (2, 3, 8, 11)).astype(name)
    build = one("MaxPool", In(x.shape, dtype), results=(dtype, INT64), kernel_shape=kernel, pads=pads,
                strides=strides, storage_order=order)  # fmt: skip
    if order == 0:
        agree(build, x)
        return
    # ONNX Runtime gives other places for this order: they are those of rows, counted through the columns.
    rows = one("MaxPool", In(x.shape, dtype), results=(dtype, INT64), kernel_shape=kernel, pads=pads,
               strides=strides)  # fmt: skip
    session = onnxruntime.InferenceSession(rows().SerializeToString())
    y, at = session.run(None, {"x0": x})
    line, place = np.divmod(at, 88)
    row, column = np.divmod(place, 11)
    agree(build, x, want=[y, line * 88 + column * 8 + row])


@pytest.mark.parametrize("shape, kernel", [((7,), [3]), ((3, 4, 5), [2, 3, 2])])
def test_places_of_maxima_of_other_ranks(shape, kernel):
    x = RNG.integers(0, 5, (1, 2, *shape)).astype("float32")
    agree(one("MaxPool", In(x.shape), results=(FLOAT, INT64), kernel_shape=kernel), x)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("dtype, name", [(FLOAT, "float32"), (INT8, "int8"), (DOUBLE, "float64")])
@pytest.mark.parametrize(
    "row, before, behind", [(13, 1, 3), (3, 1, 1), (3, 2, 2), (31, 8, 7), (1, 0, 0)]
)
def test_borders_of_short_rows(row, before, behind, mode, dtype, name):
    # Borders of up to half a row are copied one by one, wider ones are gathered.
    x = normal(2, 3, 5, row, dtype="float32").astype(name)
    pads = ints(0, 1, 2, before, 0, 0, 1, behind)
    build = one("Pad", In(x.shape, dtype), pads, mode=mode, results=(dtype,), opset=19)
    agree(build, x)


@pytest.mark.parametrize("dtype, name", [(UINT8, "uint8"), (BOOL, "bool"), (FLOAT, "float32")])
@pytest.mark.parametrize("shape, axis", [((1, 9, 7, 5), 0), ((3, 2, 31, 3), 1), ((2, 13, 11), 1)])
def test_short_rows_joined_along_an_outer_axis(shape, axis, dtype, name):
    parts = [RNG.integers(0, 2, shape).astype(name) for _ in range(3)]
    operands = [In(shape, dtype)] * 3
    agree(one("Concat", *operands, axis=axis, results=(dtype,)), *parts)


@pytest.mark.parametrize("dtype, name", [
    (HALF, "float16"), (INT8, "int8"), (BOOL, "bool"), (FLOAT, "float32"), (INT64, "int64"),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(257,), (7, 3), (5, 1000), (3, 1, 31, 2), (2, 600, 3)])
def test_few_places_written_into_much(shape, dtype, name):
    x, update = (RNG.integers(0, 2, s).astype(name) for s in (shape, [2] + [1] * (len(shape) - 1)))
    places = np.array([1, -1]).reshape(update.shape)
    build = one("ScatterElements", In(shape, dtype), places, In(update.shape, dtype), axis=0,
                results=(dtype,))  # fmt: skip
    agree(build, x, update)
    rows = one("ScatterND", In(shape, dtype), np.array([[0]]), In((1, *shape[1:]), dtype),
               results=(dtype,))  # fmt: skip
    agree(rows, x, x[:1] ^ True if name == "bool" else 1 - x[:1])


@pytest.mark.parametrize("pads, strides", [([20] * 4, [1, 1]), ([0, 9, 30, 2], [2, 3])])
def test_convolutions_with_a_border_wider_than_the_kernel(pads, strides):
    build = one("Conv", In((1, 16, 8, 8)), Weights((16, 16, 3, 3)), pads=pads, strides=strides)
    agree(build, normal(1, 16, 8, 8), tolerance=1e-3)


@pytest.mark.parametrize("boxes, classes, most, iou, least", [
    (1, 1, 5, 0.5, 0.0), (37, 3, 100, 0.5, 0.2), (300, 2, 300, 0.3, 0.0), (300, 1, 7, 0.99, 0.0),
    (50, 2, 0, 0.5, 0.0), (50, 2, 10, 0.0, 0.0), (50, 1, 10, 0.5, 2.0),
    # Few of many, and more than are taken before all are sorted.
    (1500, 2, 5, 0.5, 0.2), (700, 1, 90, 0.3, 0.0),
])  # fmt: skip
@pytest.mark.parametrize("centred", [0, 1])
def test_non_max_suppression(boxes, classes, most, iou, least, centred):
    corners = RNG.uniform(0, 30, (2, boxes, 2))
    size = RNG.uniform(0, 9, (2, boxes, 2))
    places = np.concatenate([corners, size if centred else corners + size], 2).astype("float32")
    # Some scores are tied, and some are no numbers.
    scores = RNG.integers(0, 40, (2, classes, boxes)).astype("float32") / 40
    build = one("NonMaxSuppression", In(places.shape), In(scores.shape), ints(most),
                np.float32([iou]), np.float32([least]), results=(INT64,),
                center_point_box=centred)  # fmt: skip
    agree(build, places, scores)
    scores[0, 0, 0] = np.inf
    scores[1, -1, boxes // 2] = -np.inf
    agree(build, places, scores)


def test_suppression_leaves_out_scores_that_are_no_numbers():
    places = np.float32([[[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]]])
    scores = np.float32([[[np.nan, 0.5, 0.7]]])
    build = one("NonMaxSuppression", In(places.shape), In(scores.shape), ints(9), np.float32([0.5]),
                np.float32([0.1]), results=(INT64,))  # fmt: skip
    agree(build, places, scores, want=[np.int64([[0, 0, 2], [0, 0, 1]])])


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
def test_regions_of_any_form(mode, ratio):
    # Inside, thinner than an element, beyond the image, of no size, and all of it.
    boxes = np.float32(
        [
            [1, 2, 9, 7],
            [3, 1, 3.25, 8],
            [-4, -3, 30, 40],
            [5, 5, 5, 5],
            [90, 90, 95, 99],
            [0, 0, 12, 9],
        ]
    )
    x = normal(2, 33, 10, 13)
    build = one("RoiAlign", In(x.shape), In(boxes.shape), np.int64([0, 1, 0, 1, 0, 1]), output_height=3,
                output_width=4, sampling_ratio=ratio, coordinate_transformation_mode=mode)  # fmt: skip
    agree(build, x, boxes)
    rows = np.concatenate([np.float32([[0], [1], [0], [1], [0], [1]]), boxes], 1)
    agree(one("MaxRoiPool", In(x.shape), In(rows.shape), pooled_shape=[3, 4]), x, rows)


@pytest.mark.parametrize("shape, repeats", [
    ((5, 17), (1, 30)), ((3, 4, 8, 2), (2, 1, 7, 1)), ((7, 3), (2, 9)), ((4, 1, 16), (1, 3, 2)),
    ((2, 5), (0, 3)), ((0, 5), (2, 2)), ((1, 1), (3, 70)), ((6,), (1,)),
    # Short runs that are copied first: of an axis in the middle, of single elements, with more axes behind.
    ((2, 3, 69, 2), (1, 30, 1, 2)), ((3, 200, 1), (7, 1, 9)), ((9, 40, 2, 3), (2, 5, 3, 1)),
])  # fmt: skip
@pytest.mark.parametrize("dtype, name", [(FLOAT, "float32"), (UINT8, "uint8"), (DOUBLE, "float64")])
def test_tiles(dtype, name, shape, repeats):
    x = RNG.integers(0, 99, shape).astype(name)
    agree(one("Tile", In(shape, dtype), ints(*repeats), results=(dtype,)), x)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceL1", "ReduceMax"])
@pytest.mark.parametrize("shape, axes", [
    ((5, 4, 29, 4), None), ((9, 31), None), ((6, 3, 7), [1, 2]), ((4, 4, 4), [1, 2]), ((1, 1, 7), None),
])  # fmt: skip
def test_reductions_of_the_last_axes(op, shape, axes):
    x = normal(*shape)
    attrs = {} if axes is None else {"axes": axes}
    build = one(op, In(shape), **attrs)
    agree(build, x, tolerance=1e-4)
    x.flat[-1] = np.inf
    agree(build, x, tolerance=1e-4)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("n", [1, 7, 9, 10, 15, 16, 17, 31])
def test_softmax_of_short_rows(op, n):
    x = normal(50, n)
    x[3, 0] = -np.inf
    x[4, -1] = 1e30
    agree(one(op, In(x.shape)), x)


def test_words_that_are_made_are_long_and_short():
    text = TensorProto.STRING
    short, long = (
        np.array(["a", "", "bc", "a"], object),
        np.array(["x" * 70, "", "y" * 64, ""], object),
    )
    build = one("StringConcat", In((4,), text), In((4,), text), results=(text,), opset=20)
    module, params = relay.frontend.from_onnx(build().SerializeToString())
    exe = relay.build(module, params=params)
    for a, b in itertools.product((short, long), (short, long)):
        assert list(exe(a, b)) == [x + y for x, y in zip(a, b, strict=True)]
    # One word at many places.
    build = one("Expand", In((1,), text), ints(3), results=(text,))
    module, params = relay.frontend.from_onnx(build().SerializeToString())
    for word in ("", "w", "z" * 100):
        assert list(relay.build(module, params=params)(np.array([word], object))) == [word] * 3


def test_axes_of_one_element():
    x = normal(13, 1, 40, 1, 3)
    for perm in ([1, 2, 0, 3, 4], [4, 1, 3, 2, 0], [2, 3, 4, 0, 1]):
        agree(one("Transpose", In(x.shape), perm=perm), x)
    column = normal(300, 1)
    for op in ("Softmax", "LogSoftmax"):
        agree(one(op, In(column.shape), axis=0), column)
        agree(one(op, In(column.shape), axis=1), column)
    for shape in ((300, 3, 1), (300, 1), (1, 300, 1), (1, 1)):
        x = RNG.integers(-9, 9, shape).astype(np.int8)
        for axis in range(len(shape)):
            agree(one("ArgMin", In(shape, INT8), axis=axis, results=(INT64,)), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_many_parameters_are_joined_by_groups(axis):
    parts = [normal(2, 3) for _ in range(70)]
    agree(one("Concat", *[In((2, 3))] * 70, axis=axis), *parts)


def test_depthwise_convolutions_of_single_pixels():
    x = normal(2, 6, 41)
    for more in ({}, {"pads": [1, 1]}, {"strides": [2]}):
        agree(one("Conv", In(x.shape), Weights((6, 1, 1)), Weights((6,)), group=6, **more), x)


SHAPES = [(300, 31), (7, 3), (5, 1), (1, 9), (13,), (2, 3, 5, 7), (64, 57), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype, name", [
    (UINT8, "uint8"), (INT8, "int8"), (BOOL, "bool"), (HALF, "float16"), (FLOAT, "float32"),
    (DOUBLE, "float64"),
])  # fmt: skip
def test_rows_that_fill_no_vectors(dtype, name, shape):
    x = RNG.integers(0, 2 if name == "bool" else 100, shape).astype(name)
    order = list(range(len(shape)))[::-1]
    agree(one("Transpose", In(shape, dtype), results=(dtype,), perm=order), x)
    agree(one("Expand", In(shape, dtype), ints(3, *([1] * len(shape))), results=(dtype,)), x)
    agree(one("Tile", In(shape, dtype), ints(*range(2, 2 + len(shape))), results=(dtype,)), x)
    agree(one("Concat", *[In(shape, dtype)] * 3, axis=-1, results=(dtype,)), x, x, x)
    agree(one("Concat", *[In(shape, dtype)] * 5, axis=0, results=(dtype,)), *[x] * 5)
    if name == "bool":
        agree(one("Not", In(shape, dtype), results=(dtype,)), x)
        return
    agree(one("Cast", In(shape, dtype), results=(FLOAT,), to=FLOAT), x)
    row = x[(0,) * (x.ndim - 1)] if x.ndim > 1 else x
    if name.startswith("float"):
        agree(one("Add", In(shape, dtype), In(row.shape, dtype), results=(dtype,)), x, row)
        agree(one("Sub", In(shape, dtype), In(shape, dtype), results=(dtype,)), x, x)


def test_many_tensors_are_joined_and_cut():
    parts = [normal(3, n) for n in (1, 9, 20, 1, 33, 8, 7, 16, 2, 100)]
    inputs = [In(p.shape) for p in parts]
    agree(one("Concat", *inputs, axis=1), *parts)
    agree(one("Concat", *[In(p.T.shape) for p in parts], axis=0), *(p.T.copy() for p in parts))
    sizes = [p.shape[1] for p in parts]
    build = one("Split", In((3, sum(sizes))), ints(*sizes), axis=1, results=(FLOAT,) * len(sizes))
    agree(build, np.concatenate(parts, 1))


def test_fields_of_one_kernel_are_results():
    # All of them, some of them, one of them twice, and beside what is computed from another.
    x = normal(6, 7, 5)

    def some(g, x):
        a, b, c = g.op("Split", x, g.ints(2, 4, 1), axis=1, outputs=3)
        for name, value, n in (("y0", c, 1), ("y1", g.op("Exp", a), 2), ("y2", c, 1)):
            g.output(g.op("Identity", value), name, (6, n, 5))
        return b

    agree(one("Split", In(x.shape), ints(2, 4, 1), axis=1, results=(FLOAT,) * 3), x)
    agree(traced("some", some, In(x.shape)), x)
    agree(one("TopK", In(x.shape), ints(3), axis=1, results=(FLOAT, INT64)), x)
    agree(one("MaxPool", In((1, *x.shape)), kernel_shape=[2, 2], results=(FLOAT, INT64)), x[None])


@pytest.mark.parametrize("inputs", [1, 2, 3, 5, 63, 479])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("data", ["int8", "uint8"])
def test_sums_of_bytes_that_end_within_a_word(inputs, weights, data):
    types = {"int8": INT8, "uint8": UINT8}
    ranges = {"int8": (-128, 128), "uint8": (0, 256)}
    x = RNG.integers(*ranges[data], (5, inputs)).astype(data)
    w = RNG.integers(*ranges[weights], (inputs, 7)).astype(weights)
    x[0], w[:, 0] = ranges[data][1] - 1, ranges[weights][1] - 1
    build = one("MatMulInteger", In(x.shape, types[data]), w, results=(TensorProto.INT32,))
    agree(build, x, want=[x.astype("int32") @ w.astype("int32")])


@pytest.mark.parametrize("count, axis", [(100, 1), (100, 0), (9, 1)])
def test_parts_of_a_parameter_that_are_many(count, axis):
    # Parts of 0 elements and of different sizes, some of them used by other operators.
    sizes = [(i * 7) % 4 for i in range(count)]
    shape = (3, sum(sizes)) if axis else (sum(sizes), 3)
    x = normal(*shape)
    build = one("Split", In(shape), ints(*sizes), axis=axis, results=(FLOAT,) * count)
    agree(build, x)


def test_rows_that_are_taken_one_by_one():
    # The steps of a loop that was unrolled: kernels that differ in the row that they read.
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[(40, 5, 7), float32], %y: Tensor[(40, 5, 7), float32]) {{
      ({})
    }}"""
    row = "add(take(%x, {}i64, axis=0), tanh(take(%y, {}i64, axis=0)))"
    module = relay.parse(text.format(", ".join(row.format(i, 39 - i) for i in range(40))))
    x, y = normal(40, 5, 7), normal(40, 5, 7)
    for level in (3, 0):
        got = relay.build(module, opt_level=level)(x, y)
        for i, part in enumerate(got):
            np.testing.assert_allclose(part, x[i] + np.tanh(y[39 - i]), rtol=1e-5, atol=1e-6)


WORDS = ["", "a", "b", "ab", "\u00e7", "\u4e2d", "a\0", "z" * 40]
WORDS += ["z" * 7 + end for end in ("", "a", "ba", "\u00e7", "b\0")]  # alike in their first bytes


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 65, 1000])
def test_words_are_sorted_by_code_points(count):
    words = [WORDS[i] for i in RNG.integers(0, len(WORDS), count)]
    x = np.array(words, dtype=object)
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[({0},), string]) {{
      (sort(%x), argsort(%x, dtype="int64"), sort(%x, is_ascend=False),
       argsort(%x, is_ascend=False, dtype="int64"))
    }}"""
    got = relay.build(relay.parse(text.format(count)))(x)
    up = sorted(range(count), key=lambda i: words[i].encode())
    down = sorted(range(count), key=lambda i: words[i].encode(), reverse=True)
    # Equal words keep their order in either direction.
    assert [str(w) for w in got[0]] == [words[i] for i in up]
    assert np.asarray(got[1]).tolist() == up
    assert [str(w) for w in got[2]] == [words[i] for i in down]
    assert np.asarray(got[3]).tolist() == down


def test_words_are_sorted_along_each_axis():
    x = RNG.choice(WORDS[:6], (3, 4, 5)).astype(object)
    for axis in range(3):
        text = f"""#[version = "0.0.5"]
        def @main(%x: Tensor[(3, 4, 5), string]) {{ sort(%x, axis={axis}) }}"""
        got = np.asarray(relay.build(relay.parse(text))(x)).astype(str)
        assert got.tolist() == np.sort(x.astype(str), axis=axis).tolist()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_quantisation_by_channel_of_odd_rows(axis):
    shape = (3, 5, 57)
    row = (shape[axis],)
    scale, zero = Weights(row, FLOAT, 0.01, 0.02), Weights(row, UINT8, 100, 140)
    agree(
        one("QuantizeLinear", In(shape), scale, zero, axis=axis, results=(UINT8,)), normal(*shape)
    )
    x = RNG.integers(0, 256, shape).astype("uint8")
    agree(one("DequantizeLinear", In(shape, UINT8), scale, zero, axis=axis), x)


HALVES = np.float16([0, -0.0, 1, -1, 65504, -65504, 6e-8, np.inf, -np.inf, np.nan, 0.5, -2, 3])


@pytest.mark.parametrize("op, result, opset, attrs", [
    ("IsNaN", BOOL, 20, {}), ("IsInf", BOOL, 20, {}), ("Sign", HALF, 17, {}), ("Abs", HALF, 17, {}),
    ("LeakyRelu", HALF, 17, {"alpha": 0.25}), ("Relu", HALF, 17, {}),
    ("ThresholdedRelu", HALF, 17, {"alpha": 0.25}),
])  # fmt: skip
def test_comparisons_of_half_floats(op, result, opset, attrs):
    x = np.tile(HALVES, 7).reshape(7, 13)
    if op in ("Sign", "Relu", "LeakyRelu", "ThresholdedRelu"):
        x = np.nan_to_num(x, nan=5.0)  # what these make of NaN differs from processor to processor
    agree(one(op, In(x.shape, HALF), results=(result,), opset=opset, **attrs), x)


def test_maxima_of_half_floats():
    x = RNG.permutation(np.tile(np.nan_to_num(HALVES, nan=7.0), 60))[:756].reshape(1, 3, 14, 18)
    agree(
        one("MaxPool", In(x.shape, HALF), kernel_shape=[3, 2], pads=[1, 0, 1, 1], results=(HALF,)),
        x,
    )
    column = x.reshape(1, 3, 252, 1)
    agree(
        one("MaxPool", In(column.shape, HALF), kernel_shape=[8, 1], pads=[1, 0, 1, 0], strides=[3, 2],
            results=(HALF,)),
        column,
    )  # fmt: skip
    agree(one("Max", In(x.shape, HALF), In((18,), HALF), results=(HALF,)), x, x[0, 0, 0])
    agree(one("Less", In(x.shape, HALF), In((18,), HALF), results=(BOOL,)), x, x[0, 0, 0])


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_bytes_of_channels_side_by_side(size, mode):
    x = RNG.integers(0, 256, (1, 2 * size * size, 3, 37)).astype("uint8")
    agree(one("DepthToSpace", In(x.shape, UINT8), blocksize=size, mode=mode, results=(UINT8,)), x)


@pytest.mark.parametrize("shape", [(5, 7, 3), (4, 9), (1, 1, 6), (3, 1, 2, 5), (2, 0, 3)])
@pytest.mark.parametrize("reverse, exclusive", list(itertools.product((0, 1), (0, 1))))
@pytest.mark.parametrize("dtype, name", [(FLOAT, "float32"), (INT64, "int64")])
def test_scans(shape, reverse, exclusive, dtype, name):
    x = RNG.integers(-9, 9, shape).astype(name)
    for axis in range(len(shape)):
        build = one("CumSum", In(shape, dtype), np.array(axis, np.int64), results=(dtype,),
                    reverse=reverse, exclusive=exclusive)  # fmt: skip
        agree(build, x)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("shape, axis", [((9,), 0), ((6, 5), 0), ((6, 5), 1), ((4, 7, 3), 1)])
@pytest.mark.parametrize("dtype, name", [(FLOAT, "float32"), (INT64, "int64"), (INT8, "int8")])
def test_selections_with_ties(shape, axis, k, largest, dtype, name):
    x = RNG.integers(-2, 3, shape).astype(name)
    build = one(
        "TopK", In(shape, dtype), ints(k), axis=axis, largest=largest, results=(dtype, INT64)
    )
    order = np.argsort(-x if largest else x, axis=axis, kind="stable")
    first = np.take(order, range(k), axis)
    agree(build, x, want=[np.take_along_axis(x, first, axis), first])


@pytest.mark.parametrize("largest", [0, 1])
def test_numbers_come_before_nan_in_either_direction(largest):
    nan, inf = np.nan, np.inf
    x = np.float32(
        [[nan, 1, 2], [nan, nan, nan], [nan, -inf, nan], [nan, inf, -inf], [0.0, -0.0, nan]]
    )
    build = one("TopK", In(x.shape), ints(1), axis=1, largest=largest, results=(FLOAT, INT64))
    at = np.int64([[2], [0], [1], [1], [0]] if largest else [[1], [0], [1], [2], [0]])
    agree(build, x, want=[np.take_along_axis(x, at, 1), at])


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 67, 96, 101, 128, 509, 1000, 1009, 2048])
@pytest.mark.parametrize("parts, inverse, onesided", [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0)])
def test_fourier_transforms_of_any_length(n, parts, inverse, onesided):
    x = normal(3, n, parts)
    build = one("DFT", In(x.shape), axis=1, inverse=inverse, onesided=onesided)
    z = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    z = (np.fft.ifft if inverse else np.fft.fft)(z.astype(np.complex128), axis=1)
    z = z[:, : n // 2 + 1] if onesided else z
    want = np.stack([z.real, z.imag], -1).astype("float32")
    agree(build, x, want=[want], tolerance=2e-6 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("length", [4, 50, 73, 300])
def test_fourier_transforms_that_cut_or_continue_the_signal(length):
    x = normal(2, 73, 3, 1)
    build = one("DFT", In(x.shape), np.array(length, np.int64), axis=1)
    z = np.fft.fft(x[..., 0].astype(np.float64), n=length, axis=1)
    want = np.stack([z.real, z.imag], -1).astype("float32")
    agree(build, x, want=[want], tolerance=2e-5)


def test_what_hangs_on_a_fill_is_a_constant():
    # A fill is too large to be kept; what a scan makes of it is not worth computing in each run.
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[(300, 200), float32]) {
      let %ones = broadcast_to(1f, shape=[300, 200]);
      (add(%x, cumsum(%ones, axis=1)), multiply(%x, sum(%ones)), add(%x, %ones))
    }"""
    x = normal(300, 200)
    got = relay.build(relay.parse(text))(x)
    np.testing.assert_allclose(got[0], x + np.cumsum(np.ones((300, 200)), 1), rtol=1e-5)
    np.testing.assert_allclose(got[1], x * np.float32(60000), rtol=1e-5)
    np.testing.assert_allclose(got[2], x + 1, rtol=1e-5)
