"""Arguments of operators in forms of the first Relay: sizes as expressions, float indices, short dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import relay

pytestmark = pytest.mark.drawn(2)

RNG = np.random.default_rng(0)
IMAGE = RNG.random((1, 2, 4, 5), "float32")
FLOAT = RNG.random((3, 1, 4, 1), "float32")


def both(expr, *arrays, free):
    """The results of the evaluator and of the compiled program, which are equal."""
    mod = relay.IRModule.from_expr(relay.Function(free, expr))
    found = [relay.create_executor(kind, mod).evaluate()(*arrays) for kind in ("debug", "vm")]
    for first, second in zip(*map(tensors, found), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-6)
    return found[1]


def tensors(value):
    return value if isinstance(value, tuple) else (value,)


def sizes(name="n", count=None):
    return relay.var(name, shape=() if count is None else (count,), dtype="int64")


def check(make, data, given, want, count=None):
    x, n = relay.var("x", shape=data.shape, dtype=str(data.dtype)), sizes(count=count)
    got = both(make(x, n), data, np.asarray(given, "int64"), free=[x, n])
    for a, b in zip(tensors(got), tensors(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_squeeze_and_expand_dims():
    for axis in ([1], [-1], [1, 3], [3, 1]):
        want = np.squeeze(FLOAT, tuple(axis))
        check(lambda x, n: relay.squeeze(x, axis=n), FLOAT, axis, want, len(axis))
    for axis in (0, 2, -1):
        want = np.expand_dims(FLOAT, axis)
        check(lambda x, n: relay.expand_dims(x, n), FLOAT, axis, want)


@pytest.mark.parametrize("ret_type", ["both", "values", "indices"])
def test_topk(ret_type):
    data = RNG.permutation(24).reshape(4, 6).astype("float32")
    for k in (0, 1, 3, 9):
        for axis in (0, -1):
            order = np.argsort(-data, axis=axis, kind="stable")
            size = data.shape[axis]
            order = order.take(range(min(k or size, size)), axis)
            values = np.take_along_axis(data, order, axis)
            want = {"both": (values, order), "values": values, "indices": order}[ret_type]
            check(
                lambda x, n, axis=axis: relay.topk(x, k=n, axis=axis, ret_type=ret_type),
                data, k, want,
            )  # fmt: skip


def test_one_hot():
    data = np.array([[0, 2], [1, 5]], "int32")
    for axis in (-1, 0, 1):
        want = np.moveaxis(np.where(data[..., None] == np.arange(4), 3.0, 1.0), -1, axis)
        check(
            lambda x, n, a=axis: relay.one_hot(
                x, relay.const(3.0), relay.const(1.0), n, a, "float32"
            ),
            data, 4, want,
        )  # fmt: skip


def test_pad_and_slice():
    data = FLOAT[:, 0, :, 0]
    x, n = relay.var("x", shape=(3, 4)), relay.var("n", shape=(2, 2), dtype="int64")
    width = np.array([[1, 0], [2, 3]])
    got = both(relay.nn.pad(x, n, 7.0), data, width, free=[x, n])
    np.testing.assert_array_equal(got, np.pad(data, width, constant_values=7))
    check(
        lambda x, n: relay.strided_slice(x, n, [2, -1], slice_mode="size"),
        data, [1, 1], data[1:3, 1:], 2,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_resize_is_that_of_known_sizes(mode, method):
    for size in ((4, 5), (8, 3), (1, 10)):
        for layout in ("NCHW", "NHWC"):
            data = IMAGE if layout == "NCHW" else IMAGE.transpose(0, 2, 3, 1)
            options = {"layout": layout, "method": method, "coordinate_transformation_mode": mode}
            x = relay.var("x", shape=data.shape)
            known = both(relay.image.resize2d(x, size, **options), data, free=[x])
            check(
                lambda x, n, o=options: relay.image.resize2d(x, n, None, **o), data, size, known, 2
            )


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float16", "float64"])
def test_resized_integers_are_rounded_once(dtype, mode):
    low, high = (0, 255) if dtype == "uint8" else (-100, 100)
    data = RNG.integers(low, high, (1, 2, 5, 7)).astype(dtype)
    x, n = relay.var("x", shape=data.shape, dtype=dtype), sizes(count=2)
    for method in ("linear", "nearest_neighbor"):
        for size in ((8, 9), (3, 14), (5, 2)):
            for out in (dtype, "float32", *(["int32"] if "int" in dtype else [])):
                options = {
                    "method": method,
                    "coordinate_transformation_mode": mode,
                    "out_dtype": out,
                }
                known = relay.image.resize2d(x, size, **options)
                want = relay.build(relay.Function([x], known))(data)
                unknown = relay.Function([x, n], relay.image.resize2d(x, n, **options))
                got = relay.build(unknown)(data, np.array(size))
                assert got.dtype == want.dtype == out
                near = 0 if "int" in out else 1e-4 if dtype != "float16" else 0.1
                np.testing.assert_allclose(got, want, rtol=0, atol=near)


@pytest.mark.parametrize(
    "rounding", ["round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
)
def test_nearest_places_are_exact(rounding):
    # 49 / 49 is 1 as a quotient of integers, and less as a product with a rounded ratio.
    data = np.arange(60, dtype="float32").reshape(1, 1, 1, 60)
    x, n = relay.var("x", shape=data.shape), sizes(count=2)
    for mode in ("asymmetric", "half_pixel", "pytorch_half_pixel"):
        options = {
            "method": "nearest_neighbor",
            "coordinate_transformation_mode": mode,
            "rounding_method": rounding,
        }
        run = relay.build(relay.Function([x, n], relay.image.resize2d(x, n, **options)))
        for width in (1, 7, 49, 123):
            known = relay.build(relay.Function([x], relay.image.resize2d(x, (1, width), **options)))
            np.testing.assert_array_equal(run(data, np.array([1, width])), known(data))


def test_constants_are_known_sizes():
    x = relay.var("x", shape=(1, 2, 1, 5))
    for size in (relay.const([4, 6]), relay.const([4, 6], "int64")):
        assert tuple(relay.image.resize2d(x, size).shape) == (1, 2, 4, 6)
    assert tuple(relay.squeeze(x, relay.const(2)).shape) == (1, 2, 5)
    assert tuple(relay.squeeze(x, relay.const([0, 2])).shape) == (2, 5)
    assert tuple(relay.expand_dims(x, relay.const([1])).shape) == (1, 1, 2, 1, 5)
    assert tuple(relay.topk(x, relay.const(3), ret_type="values").shape) == (1, 2, 1, 3)
    assert tuple(relay.nn.pad(x, relay.const([[0, 0], [1, 1], [0, 0], [2, 0]])).shape) == (
        1, 4, 1, 7,
    )  # fmt: skip
    assert tuple(relay.nn.upsampling(x, relay.const(2.0), 3).shape) == (1, 2, 2, 15)
    hot = relay.one_hot(
        relay.var("i", shape=(2,), dtype="int32"), relay.const(1.0), relay.const(0.0),
        relay.const(4), -1, "float32",
    )  # fmt: skip
    assert tuple(hot.shape) == (2, 4)


def test_upsampling():
    x = relay.var("x", shape=IMAGE.shape)
    n = relay.var("n", shape=(), dtype="float32")
    for method in ("nearest_neighbor", "bilinear"):
        known = both(relay.nn.upsampling(x, 2, 3, method=method), IMAGE, free=[x])
        got = both(relay.nn.upsampling(x, n, 3, method=method), IMAGE, np.float32(2), free=[x, n])
        np.testing.assert_allclose(got, known, rtol=1e-5, atol=1e-6)
    # 2.5 rows become 3: halves are rounded up, as they are where the scale is known.
    odd = RNG.random((1, 1, 5, 2), "float32")
    y = relay.var("x", shape=odd.shape)
    known = both(relay.nn.upsampling(y, 0.5, 1), odd, free=[y])
    got = both(relay.nn.upsampling(y, n, 1), odd, np.float32(0.5), free=[y, n])
    assert got.shape == known.shape == (1, 1, 3, 2)
    np.testing.assert_array_equal(got, known)


def ends(expr, *arrays, free, match):
    """Asserts that runs of the evaluator and of the compiled program end with the check's error."""
    mod = relay.IRModule.from_expr(relay.Function(free, expr))
    for kind in ("debug", "vm"):
        run = relay.create_executor(kind, mod).evaluate()
        with pytest.raises(relay.RunError, match=match) as raised:
            run(*arrays)
        assert raised.value.code == "E0616"


def test_a_run_checks_axes_and_sizes():
    data = FLOAT
    x = relay.var("x", shape=data.shape)
    two, one = sizes(count=2), sizes(count=1)
    for axis in ([1, 4], [-5, 1]):
        ends(relay.squeeze(x, two), data, np.array(axis), free=[x, two], match="not in -4 to 3")
    ends(relay.squeeze(x, two), data, np.array([1, 1]), free=[x, two], match="axis is given twice")
    for axis in (5, -6):
        ends(
            relay.expand_dims(x, one), data, np.array([axis]), free=[x, one],
            match=r"the axis \[-?\d\] is not in -5 to 4",
        )  # fmt: skip
    resized = relay.image.resize2d(x, two)
    ends(resized, data, np.array([0, 3]), free=[x, two], match="size 0 x 3 is not 1 or more")
    scale = relay.var("s", shape=())
    ends(
        relay.nn.upsampling(x, scale), data, np.float32(0.1), free=[x, scale],
        match="size 0 x 1 is not 1 or more",
    )  # fmt: skip
    i, n = relay.var("i", shape=(2,), dtype="int32"), sizes()
    hot = relay.one_hot(i, relay.const(1.0), relay.const(0.0), n, -1, "float32")
    ends(hot, np.zeros(2, "int32"), np.int64(-1), free=[i, n], match="depth -1 is negative")


def test_fixed_point_multiply():
    data = RNG.integers(-(2**20), 2**20, 50).astype("int32")
    x = relay.var("x", shape=data.shape, dtype="int32")
    m, s = (relay.var(name, shape=(), dtype="int32") for name in "ms")
    for rounding in ("ONCE", "TWICE"):
        for multiplier, shift in ((1395864371, -3), (1 << 30, 2), (1073741825, 0)):
            known = both(relay.fixed_point_multiply(x, multiplier, shift, rounding), data, free=[x])
            got = both(
                relay.fixed_point_multiply(x, m, s, rounding),
                data, np.int32(multiplier), np.int32(shift), free=[x, m, s],
            )  # fmt: skip
            np.testing.assert_array_equal(got, known)
            got = both(
                relay.fixed_point_multiply(x, m, shift, rounding), data, np.int32(multiplier),
                free=[x, m],
            )  # fmt: skip
            np.testing.assert_array_equal(got, known)
    many = relay.var("m", shape=(50,), dtype="int32")
    with pytest.raises(ValueError, match="fixed_point_multiply_per_axis takes one for each"):
        relay.fixed_point_multiply(x, many, 1)


def test_what_forms_refuse():
    x, n = relay.var("x", shape=(1, 2, 4, 5)), sizes(count=2)
    with pytest.raises(ValueError, match="method is nearest_neighbor or linear, not 'cubic'"):
        relay.image.resize2d(x, n, None, method="cubic")
    with pytest.raises(ValueError, match="asymmetric or tf_half_pixel_for_nn, not 'tf_crop"):
        relay.image.resize2d(x, n, None, coordinate_transformation_mode="tf_crop_and_resize")
    for name, value in {"roi": [0.0] * 4, "cubic_alpha": -0.75, "cubic_exclude": 1}.items():
        with pytest.raises(ValueError, match=f"{name} needs sizes that are known"):
            relay.image.resize2d(x, n, **{name: value})
    for method in ("linear", "nearest_neighbor"):
        with pytest.raises(ValueError, match="rounding_method is one of round, floor"):
            relay.image.resize2d(x, n, method=method, rounding_method="nearest")
    with pytest.raises(ValueError, match="nearest_neighbor or bilinear, not 'bicubic'"):
        relay.nn.upsampling(x, relay.var("s", shape=()), method="bicubic")
    with pytest.raises(ValueError, match="data are numbers"):
        relay.image.resize2d(relay.var("b", shape=(1, 1, 2, 2), dtype="bool"), n)
    i, depth = relay.var("i", shape=(2,), dtype="int32"), sizes()
    for axis in (2, -3, None):
        with pytest.raises(ValueError, match="axis is a number from -2 to 1"):
            relay.one_hot(i, relay.const(1.0), relay.const(0.0), depth, axis, "float32")
    with pytest.raises(relay.RelayError, match="topk"):
        relay.topk(relay.var("x", shape=()), k=depth)
    with pytest.raises(ValueError, match="dtype"):
        relay.cast(x, ["int"])
    with pytest.raises(ValueError, match="layout is NCHW in any order"):
        relay.image.resize2d(x, n, None, layout="NCHH")
    with pytest.raises(ValueError, match="has 1 elements, not 2"):
        relay.topk(x, k=n)
    with pytest.raises(ValueError, match="known number of axes"):
        relay.squeeze(relay.var("y"), axis=n)
    with pytest.raises(ValueError, match=r"of the shape \(4, 2\)"):
        relay.nn.pad(x, n)
    with pytest.raises(ValueError, match="a vector or a number"):
        relay.squeeze(x, axis=relay.var("m", shape=(2, 2), dtype="int64"))


def test_operands():
    b = relay.var("b", shape=(2, 3), dtype="bool")
    truth = np.array([[True, False, True], [True, True, True]])
    assert both(relay.sum(b), truth, free=[b]) == 5
    x, i = relay.var("x", shape=(3, 4)), relay.var("i", shape=(2,))
    data = RNG.random((3, 4), "float32")
    got = both(relay.take(x, i, axis=0), data, np.array([2.0, 0.9], "float32"), free=[x, i])
    np.testing.assert_array_equal(got, data[[2, 0]])


PRODUCTS = {
    "dense": (lambda x, w, **o: relay.nn.dense(x, w, **o), (3, 5), (4, 5)),
    "matmul": (lambda x, w, **o: relay.nn.matmul(x, w, **o), (3, 5), (5, 4)),
    "batch_matmul": (lambda x, w, **o: relay.nn.batch_matmul(x, w, **o), (2, 3, 5), (2, 4, 5)),
    "conv1d": (lambda x, w, **o: relay.nn.conv1d(x, w, **o), (1, 2, 6), (3, 2, 3)),
    "conv2d": (lambda x, w, **o: relay.nn.conv2d(x, w, **o), (1, 2, 6, 5), (3, 2, 3, 3)),
    "conv2d_transpose": (
        lambda x, w, **o: relay.nn.conv2d_transpose(x, w, **o), (1, 2, 4, 3), (2, 3, 3, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(
    ("dtypes", "out_dtype", "want"),
    [
        (("float16", "float32"), "", "float16"),
        (("float32", "float16"), "", "float32"),
        (("float32", "float64"), "float64", "float64"),
        (("int8", "int32"), "int32", "int32"),
    ],
)
def test_products_of_two_dtypes_are_cast(name, dtypes, out_dtype, want):
    make, *shapes = PRODUCTS[name]
    values = [
        (RNG.integers(-9, 9, s) / (1 if "int" in d else 3)).astype(d)
        for s, d in zip(shapes, dtypes, strict=True)
    ]
    x, w = (
        relay.var(n, shape=v.shape, dtype=str(v.dtype)) for n, v in zip("xw", values, strict=True)
    )
    options = {"out_dtype": out_dtype} if out_dtype else {}
    got = both(make(x, w, **options), *values, free=[x, w])
    cast = [v.astype(want) for v in values]
    y, v = (relay.var(n, shape=c.shape, dtype=want) for n, c in zip("yv", cast, strict=True))
    np.testing.assert_array_equal(got, both(make(y, v), *cast, free=[y, v]))
    assert got.dtype == want


def test_products_of_two_dtypes_that_are_not_cast():
    """Without out_dtype an integer would round the other operand; bytes are multiplied as they are."""
    x, w = relay.var("x", shape=(3, 5), dtype="int8"), relay.var("w", shape=(4, 5))
    with pytest.raises(relay.UserError, match="the arguments have different dtypes"):
        relay.nn.dense(x, w)
    u = relay.var("u", shape=(4, 5), dtype="uint8")
    assert "cast" not in str(relay.nn.dense(x, u, out_dtype="int32"))


def test_depthwise_weights_with_a_multiplier():
    data, weight = RNG.random((1, 3, 6, 6), "float32"), RNG.random((3, 2, 3, 3), "float32")
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    options = {"kernel_size": (3, 3), "groups": 3, "channels": 6}
    got = both(relay.nn.conv2d(x, w, **options), data, weight, free=[x, w])
    one = np.zeros((1, 6, 4, 4), "float32")
    for c in range(6):
        for i, j in np.ndindex(4, 4):
            one[0, c, i, j] = np.sum(data[0, c // 2, i : i + 3, j : j + 3] * weight[c // 2, c % 2])
    np.testing.assert_allclose(got, one, rtol=1e-4)
    many = relay.var("w", shape=(3, relay.ShapeVar("m"), 3, 3))
    del options["channels"]
    open_one = both(relay.nn.conv2d(x, many, **options), data, weight, free=[x, many])
    np.testing.assert_allclose(open_one, one, rtol=1e-4)
    options["channels"] = 6
    y, v = relay.var("x", shape=(1, 6, 6, 3)), relay.var("w", shape=(3, 3, 3, 2))
    last = both(
        relay.nn.conv2d(y, v, data_layout="NHWC", kernel_layout="HWOI", **options),
        data.transpose(0, 2, 3, 1), weight.transpose(2, 3, 0, 1), free=[y, v],
    )  # fmt: skip
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), one, rtol=1e-4)


def test_short_names_of_dtypes():
    for short, full in {
        "int": "int32", "uint": "uint32", "float": "float32", "uint1": "bool",
    }.items():  # fmt: skip
        assert relay.var("x", shape=(1,), dtype=short).dtype == full
        assert relay.cast(relay.var("x", shape=(1,)), short).dtype == full
    assert relay.const(1, "int").dtype == "int32"


def test_old_methods():
    x = relay.var("x", shape=(2, 3))
    parts = relay.split(x, 3, axis=1)
    assert parts.astuple() is parts.tuple_value is parts
    with pytest.raises(ValueError, match="not a tuple"):
        relay.nn.relu(x).astuple()
    f = relay.Function([x], x).with_attr("Composite", "a").with_attr({"global_symbol": "g"})
    assert dict(f.attrs) == {"Composite": "a", "global_symbol": "g"}
    assert dict(f.without_attr("Composite").attrs) == {"global_symbol": "g"}
    assert x.checked_type.concrete_shape == (2, 3)
    with pytest.raises(ValueError, match="not all numbers"):
        _ = relay.TensorType((relay.Any(), 2)).concrete_shape
    kinds = relay.TypeKind
    same = relay.TypeVar("t", kinds.Type)
    y = relay.var("y", same)
    assert relay.Function([y], y, same, [same]).checked_type is not None
    assert relay.TensorType((relay.TypeVar("n", kinds.ShapeVar),)).shape[0] is not None
    with pytest.raises(ValueError, match="Type or ShapeVar"):
        relay.TypeVar("t", kinds.TypeData)


# ---- Layouts


def in_blocks(x: np.ndarray, *sizes: int) -> np.ndarray:
    """The first axes in blocks of these sizes, which come last, those of the last axis first."""
    rest = x.shape[len(sizes) :]
    split = [n for axis, size in zip(x.shape, sizes, strict=False) for n in (axis // size, size)]
    outer, inner = [2 * i for i in range(len(sizes))], [2 * i + 1 for i in range(len(sizes))]
    behind = range(2 * len(sizes), 2 * len(sizes) + len(rest))
    return x.reshape(*split, *rest).transpose(*outer, *behind, *reversed(inner))


@pytest.mark.parametrize("out_layout", ["", "NCHW", "NCHW2c"])
def test_convolutions_of_blocked_layouts(out_layout):
    x, w = RNG.random((1, 8, 5, 6), "float32"), RNG.random((4, 8, 3, 3), "float32")
    plain = relay.nn.conv2d(relay.const(x), relay.const(w), channels=4, kernel_size=(3, 3))
    want = relay.create_executor("debug", relay.IRModule.from_expr(plain)).evaluate()()
    blocked = np.moveaxis(x.reshape(1, 2, 4, 5, 6), 2, -1)
    data, weight = relay.var("x", shape=blocked.shape), relay.var("w", shape=(2, 2, 3, 3, 4, 2))
    made = relay.nn.conv2d(data, weight, channels=4, kernel_size=(3, 3), data_layout="NCHW4c",
                           kernel_layout="OIHW4i2o", out_layout=out_layout)  # fmt: skip
    got = both(made, blocked, in_blocks(w, 2, 4), free=[data, weight])
    for block in [] if out_layout == "NCHW" else [2 if out_layout else 4]:
        want = np.moveaxis(want.reshape(1, 4 // block, block, *want.shape[2:]), 2, -1)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("depthwise", [False, True])
def test_packed_convolutions(depthwise):
    x, w = (
        RNG.random((1, 8, 5, 6), "float32"),
        RNG.random((8, 1 if depthwise else 8, 3, 3), "float32"),
    )
    options = {
        "channels": 8,
        "kernel_size": (3, 3),
        "groups": 8 if depthwise else 1,
        "padding": (1, 1),
    }
    plain = relay.nn.conv2d(relay.const(x), relay.const(w), **options)
    want = relay.create_executor("debug", relay.IRModule.from_expr(plain)).evaluate()()
    packed = in_blocks(w, 4, 1 if depthwise else 2)
    function = relay.nn.contrib_conv2d_nchwc
    if depthwise:
        function = relay.nn.contrib_depthwise_conv2d_nchwc
    data = relay.var("x", shape=(1, 2, 5, 6, 4))
    weight = relay.var("w", shape=packed.shape)
    made = function(data, weight, data_layout="NCHW4c", out_layout="NCHW2c",
                    kernel_layout="OIHW1i4o" if depthwise else "OIHW2i4o", **options)  # fmt: skip
    blocked = np.moveaxis(x.reshape(1, 2, 4, 5, 6), 2, -1)
    got = both(made, blocked, packed, free=[data, weight])
    np.testing.assert_allclose(got, np.moveaxis(want.reshape(1, 4, 2, 5, 6), 2, -1), rtol=1e-5)


WINDOWS = {
    "max_pool2d": (relay.nn.max_pool2d, {"pool_size": (2, 2), "strides": (2, 2)}),
    "avg_pool2d": (relay.nn.avg_pool2d, {"pool_size": (2, 2), "strides": (2, 2)}),
    "global_avg_pool2d": (relay.nn.global_avg_pool2d, {}),
    "adaptive_max_pool2d": (relay.nn.adaptive_max_pool2d, {"output_size": (2, 3)}),
    "upsampling": (relay.nn.upsampling, {"scale_h": 2, "scale_w": 3}),
    "resize2d": (relay.image.resize2d, {"size": (3, 5)}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_blocked_layouts(name):
    function, options = WINDOWS[name]
    x = RNG.random((1, 8, 4, 6), "float32")
    plain = function(relay.const(x), **options)
    want = relay.create_executor("debug", relay.IRModule.from_expr(plain)).evaluate()()
    blocked = np.moveaxis(x.reshape(1, 2, 4, 4, 6), 2, -1)
    data = relay.var("x", shape=blocked.shape)
    got = both(function(data, layout="NCHW4c", **options), blocked, free=[data])
    want = np.moveaxis(want.reshape(1, 2, 4, *want.shape[2:]), 2, -1)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("name", ["roi_align", "roi_pool"])
def test_regions_of_images_with_channels_last(name):
    x = RNG.random((1, 6, 7, 3), "float32")
    rois = np.array([[0, 1, 1, 5, 4], [0, 0, 2, 6, 5]], "float32")
    function, r = getattr(relay.vision, name), relay.var("r", shape=rois.shape)
    first = relay.var("x", shape=(1, 3, 6, 7))
    want = both(function(first, r, (2, 2), 1.0), x.transpose(0, 3, 1, 2), rois, free=[first, r])
    last = relay.var("x", shape=x.shape)
    got = both(function(last, r, (2, 2), 1.0, layout="NHWC"), x, rois, free=[last, r])
    np.testing.assert_allclose(got, want.transpose(0, 2, 3, 1), rtol=1e-5)
