"""One meaning of an index: where a mode reads, its adjoint, its tangent and its lanes do too."""

import numpy as np
import op_programs
import oracles
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay

SIZE = 4
PLACES = np.arange(-2 * SIZE - 1, 2 * SIZE + 2)
MEANINGS = {
    "clip": lambda i: np.clip(i, 0, SIZE - 1),
    "wrap": lambda i: i % SIZE,
    "fast": lambda i: np.clip(np.where(i < 0, i + SIZE, i), 0, SIZE - 1),
}


def take_of(mode, axis, size, index_type):
    shape = f"({size}, 3)" if axis == 0 else f"(3, {size})"
    dims = f"[{size}: Dim]" if size == "n" else ""
    text = (
        f"{op_programs.VERSION}def @main{dims}(%x: Tensor[{shape}, float64], %i: {index_type}) "
        f'{{ take(%x, %i, axis={axis}, mode="{mode}") }}\n'
    )
    return relay.parse(text)


@pytest.mark.parametrize("size", [SIZE, "n"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mode", MEANINGS)
def test_an_adjoint_goes_where_the_value_was_read(mode, axis, size):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((SIZE, 3) if axis == 0 else (3, SIZE))
    for index_type, dtype, width in (("int64", "int64", 0), ("Tensor[(2,), int32]", "int32", 1)):
        mod = take_of(mode, axis, size, index_type)
        backward = relay.transform.gradient(mod["main"], mod=mod)
        run = relay.create_executor("debug", relay.IRModule.from_expr(backward)).evaluate()
        for place in PLACES[: len(PLACES) - width]:
            index = np.array([place, place + 1] if width else place, dtype)
            value, (dx, *_) = run(x, index)
            at = MEANINGS[mode](index)
            np.testing.assert_array_equal(oracles.as_arrays(value)[0], np.take(x, at, axis))
            want = np.zeros_like(x)
            np.add.at(want, (at,) if axis == 0 else (slice(None), at), 1)
            np.testing.assert_array_equal(oracles.as_arrays(dx)[0], want, f"{mode} {place}")


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
@pytest.mark.parametrize("mode", MEANINGS)
def test_lanes_read_where_one_reads(mode, dtype):
    x = np.random.default_rng(2).standard_normal((len(PLACES), 300))
    # More elements than an int8 counts; of a uint64 those that no int64 holds are beyond any axis.
    places = np.arange(len(PLACES)).astype(dtype)
    if dtype == "uint64":
        places[-1] = np.iinfo("uint64").max
    elif dtype == "int64":
        places = PLACES * 100
    else:
        places = PLACES.astype(dtype)
    text = (
        f"{op_programs.VERSION}def @main(%x: Tensor[(300,), float64], %i: {dtype}) "
        f'{{ take(%x, %i, axis=0, mode="{mode}") }}\n'
    )
    batched = relay.transform.vmap(relay.parse(text)["main"])
    wide = [int(v) for v in places]
    at = {
        "clip": lambda i: min(max(i, 0), 299),
        "wrap": lambda i: min(i, np.iinfo("int64").max) % 300,
        "fast": lambda i: min(max(i + 300 if i < 0 else i, 0), 299),
    }[mode]
    want = [row[at(i)] for row, i in zip(x, wide, strict=True)]
    got = relay.create_executor("debug", relay.IRModule.from_expr(batched)).evaluate()(x, places)
    np.testing.assert_array_equal(oracles.as_arrays(got)[0], want)


# ---- Indices that have to be inside --------------------------------------------------------------


@relay.function
def element(x, i):
    return x[i]


@relay.function
def written(x, i):
    y = x + 0
    y[i] = 7
    return y


@relay.function
def rows(x, at):
    return x[at]


@relay.function
def columns(x, at):
    return x[at, at]


@relay.function
def first(x):
    return x[4]


LONG = np.zeros(70_000, "int64")


@pytest.mark.parametrize("open_size", [True, False])
@pytest.mark.parametrize(
    "function, arguments, index, size",
    [
        (element, (np.arange(5), 5), 5, 5),
        (element, (np.arange(5), -6), -6, 5),
        (element, (np.zeros((0, 2)), 0), 0, 0),
        (written, (np.arange(5), 9), 9, 5),
        (written, (np.arange(5), -7), -7, 5),
        (rows, (np.arange(5), np.array([1, 2, -8, 9])), -8, 5),
        (columns, (np.ones((3, 9)), np.array([0, 1, 5])), 5, 3),
        # On several threads.
        (rows, (np.ones((5, 2)), np.where(np.arange(70_000) == 60_001, 6, LONG)), 6, 5),
        (first, (np.arange(3),), 4, 3),
    ],
)
def test_an_index_outside_ends_the_run_and_is_named(function, arguments, index, size, open_size):
    if not open_size and len(arguments[0]) == 0:
        pytest.skip("a known size of 0 is refused when the function is compiled")
    compiled = relay.function(function.python, fixed_sizes=not open_size)
    line = function.node.body[-2 if function is written else -1].lineno
    said = rf"index {index} is out of bounds for an axis of size {size} \(test_index_meaning.py:{line}\)"
    if function is first and not open_size:
        said = "index 4 of an axis of size 3"
    with pytest.raises(relay.RelayError, match=said):
        compiled(*arguments)
    if open_size:
        mod = compiled.lower(*arguments).module
        with pytest.raises(relay.RelayError, match="E0605(.|\n)*" + said):
            relay.create_executor("debug", mod).evaluate()(*arguments)


def checks_in(function, *arguments):
    return str(relay.function(function).lower(*arguments).module).count("checked_index(")


def walks(x, n):
    s = 0.0
    for t in range(len(x)):
        s += x[t] * x[-t - 1]
    for t in range(1, x.shape[0]):
        s += x[t - 1] * x[-t] * x[x.shape[0] - t]
    for t in range(x.shape[0] - 1, -1, -1):
        s += x[t]
    for t in range(x.shape[0] - 2):
        for u in range(3):
            s += x[t + u] * x[t + u % 3]
    for t in range(n):
        s += x[t % x.shape[0]]
    y = x + 0.0
    for t in range(x.shape[0]):
        y[t] = x[t] * 2.0
    return s + y.sum()


def steps(x, n):
    s = 0.0
    for t in range(n):
        s += x[t]
    for t in range(x.shape[0]):
        s += x[t + 1]
    k = 0
    while k < n:
        s += x[k]
        k += 1
    return s


def test_loops_that_stay_inside_are_not_checked():
    assert checks_in(walks, np.ones(4), 3) == 0
    assert checks_in(steps, np.ones(4), 3) == 3


def masked(x, mask):
    return x[mask]


def test_a_mask_needs_no_check_of_its_places():
    assert checks_in(masked, np.ones(4), np.ones(4, bool)) == 0
    assert checks_in(masked, np.ones(4), np.ones(3, bool)) == 0


def test_numpys_take_has_its_modes():
    x = np.arange(5)

    @relay.function
    def taken(x, i):
        return np.take(x, i, mode="wrap"), np.take(x, i, mode="clip")

    wrapped, clipped = taken(x, np.array([7, -1, 2]))
    np.testing.assert_array_equal(wrapped, [2, 4, 2])
    np.testing.assert_array_equal(clipped, [4, 0, 2])
    with pytest.raises(relay.RelayError, match="index 7 is out of bounds"):
        relay.function(plain_take)(x, np.array([7]))


def plain_take(x, i):
    return np.take(x, i)


# ---- Models --------------------------------------------------------------------------------------


def compress(size, condition):
    """A Compress whose condition is an input, or a constant when it is given."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])]
    if condition is None:
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, ["m"]))
    graph = helper.make_graph(
        [helper.make_node("Compress", ["x", "c"], ["y"], axis=0)],
        "compress",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])],
        [] if condition is None else [numpy_helper.from_array(condition, "c")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return relay.frontend.from_onnx(model)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("size", ["n", 3])
def test_a_condition_of_compress_is_no_longer_than_the_axis(size, constant):
    x = np.arange(3, dtype="float32")
    short, long = np.array([False, True]), np.array([True, False, True, True])

    def run(condition):
        mod, params = compress(size, condition if constant else None)
        arguments = {"x": x} if constant else {"x": x, "c": condition}
        return oracles.as_arrays(relay.build(mod, params=params)(**arguments))[0]

    np.testing.assert_array_equal(run(short), [1])
    with pytest.raises(relay.RelayError, match="E0504" if constant and size == 3 else "E0605"):
        run(long)


# ---- Sizes that meet -----------------------------------------------------------------------------


@relay.function
def product(x):
    y = x[1:] if x[0] > 0 else x[:-2]
    return np.prod(y)


@relay.function
def product_of_rows(x):
    y = x[1:] if x[0, 0] > 0 else x[:-2]
    return np.prod(y) + np.prod(y, axis=0).sum()


def test_gradients_of_products_of_joined_sizes():
    for x in (np.array([1.0, 2, 0, 4]), np.array([-1.0, 2, 0, 0]), np.array([3.0, 2, 5])):
        got, want = relay.grad(product)(x), np.zeros_like(x)
        for at in range(len(x)):
            move = np.zeros_like(x)
            move[at] = 1e-6
            want[at] = (product.python(x + move) - product.python(x - move)) / 2e-6
        np.testing.assert_allclose(got, want, atol=1e-6)
    x = np.array([[1.0, 2], [3, -0.5], [2, 0.25], [0, 1]])
    got, want = relay.grad(product_of_rows)(x), np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[at] = 1e-6
        up, down = (product_of_rows.python(x + d) for d in (move, -move))
        want[at] = (up - down) / 2e-6
    np.testing.assert_allclose(got, want, atol=1e-6)
