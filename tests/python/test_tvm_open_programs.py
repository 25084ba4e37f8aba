"""Programs of the first Relay whose sizes only a run knows, and its arrays of tensors of one shape."""

from __future__ import annotations

import numpy as np
import pytest

import relay.tvm as tvm
from relay.tvm import relay
from relay.tvm.relay.dataflow_pattern import FunctionPattern, is_if, is_let, is_op, is_var, wildcard
from relay.tvm.relay.prelude import Prelude, StaticTensorArrayOps, TensorArrayOps

F = "float32"
IMAGES = np.arange(12, dtype=F).reshape(2, 2, 3)


def run(mod, *args):
    if not isinstance(mod, tvm.IRModule):
        mod = tvm.IRModule.from_expr(mod)
    executor = relay.create_executor("vm", mod, device=tvm.cpu(), target="llvm")
    out = executor.evaluate()(*args)
    return [np.asarray(o) for o in out] if isinstance(out, (list, tuple)) else out


# ---- Sizes that only a run knows -----------------------------------------------------------------


def test_unique():
    x = relay.var("x", shape=(relay.Any(),), dtype="int32")
    mod = relay.Function([x], relay.unique(x, is_sorted=True).astuple())
    for values in ([3, 1, 3, 2], [7]):
        found = run(mod, np.array(values, "int32"))
        expected = np.unique(values)
        np.testing.assert_array_equal(found[0][: len(expected)], expected)


def test_boxes():
    data = relay.var("data", shape=(1, relay.Any(), 6))
    valid = relay.vision.get_valid_counts(data, 0.5, 0, 1)
    most = relay.const(-1, "int32")
    kept = relay.vision.non_max_suppression(
        valid[1], valid[0], valid[2], most, 0.4, force_suppress=True, return_indices=False
    )
    boxes = np.float32([
        [[0, 0.8, 1, 20, 25, 45], [1, 0.3, 30, 60, 50, 80], [0, 0.6, 2, 21, 26, 46],
         [2, 0.9, 35, 61, 52, 79]],
    ])  # fmt: skip
    mod = relay.Function([data], relay.Tuple([valid[0], kept]))
    count, found = run(mod, boxes)
    assert count.tolist() == [3]
    # The third box overlaps the first one too much; rows that are left out are -1.
    np.testing.assert_array_equal(
        sorted(found[0, :, 1].tolist()), [-1, -1, np.float32(0.8), np.float32(0.9)]
    )
    # The same program for another number of boxes.
    assert run(mod, boxes[:, :1])[1].shape == (1, 1, 6)


@pytest.mark.parametrize("length", [relay.Any(), relay.ShapeVar("n")])
def test_short_time_fourier_transforms(length):
    signal, window = relay.var("signal", shape=(2, length)), relay.var("window", shape=(8,))
    mod = relay.Function([signal, window], relay.stft(signal, 8, 3, 8, window, False, True))
    weights = np.hanning(8).astype(F)
    for n in (20, 8, 7):
        x = np.random.default_rng(n).random((2, n), F)
        starts = range(0, n - 7, 3)
        frames = np.stack([x[:, i : i + 8] for i in starts], 1) if n >= 8 else np.zeros((2, 0, 8))
        expected = np.fft.rfft(frames * weights).transpose(0, 2, 1)
        found = np.asarray(run(mod, x, weights))
        assert found.shape == (2, 5, len(starts), 2)
        np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-5)


@pytest.mark.parametrize("method", ["nearest_neighbor", "bilinear"])
def test_upsampling(method):
    x = relay.var("x", shape=(1, 2, relay.Any(), relay.Any()))
    y = relay.nn.upsampling(x, 2, 3, method=method)
    data = np.random.default_rng(1).random((1, 2, 3, 4)).astype(F)
    fixed = relay.var("x", shape=data.shape)
    expected = run(relay.Function([fixed], relay.nn.upsampling(fixed, 2, 3, method=method)), data)
    np.testing.assert_allclose(
        run(relay.Function([x], y), data).numpy(), expected.numpy(), rtol=1e-5
    )


def test_segments_are_as_many_as_the_ids_say():
    x = relay.var("x", shape=(relay.Any(), 3))
    ids = relay.var("ids", shape=(relay.Any(),), dtype="int32")
    data, places = IMAGES.reshape(4, 3), np.array([0, 0, 2, 5], "int32")
    for count in (None, relay.const(7)):
        found = run(
            relay.Function([x, ids], relay.segment_sum(x, ids, count)), data, places
        ).numpy()
        expected = np.zeros((6 if count is None else 7, 3), F)
        np.add.at(expected, places, data)
        np.testing.assert_array_equal(found, expected)


# ---- Arrays of tensors of one shape --------------------------------------------------------------


class Arrays:
    """The functions for a shape, in a module of their own."""

    def __init__(self, shape=(2, 3), split=None):
        self.mod = tvm.IRModule()
        self.prelude = Prelude(self.mod)
        self.ops = StaticTensorArrayOps(self.prelude, F, shape)
        self.ops.register()
        if split is not None:
            self.ops.define_tensor_array_split(split, None, True)

    def __getattr__(self, name):
        return self.ops.get_global_var(name)

    def tensor(self, value, shape=None):
        of = self.ops.shape if shape is None else shape
        return self.prelude.get_tensor_ctor_static("tensor_constructor", F, of)(value)

    def run(self, parameters, body, *args):
        self.mod["main"] = relay.Function(parameters, body)
        out = run(self.mod, *args)
        return np.asarray(out.fields[0]) if hasattr(out, "fields") else out.numpy()


def test_stack_concat_gather_and_scatter():
    a = Arrays()
    x = relay.var("x", shape=(relay.Any(), 2, 3))
    i = relay.var("i", shape=(relay.Any(),), dtype="int32")
    parts = a.tensor_array_unstack(x)
    places = np.array([1, 0, 1], "int32")
    np.testing.assert_array_equal(a.run([x], a.tensor_array_stack(parts), IMAGES), IMAGES)
    joined = a.run([x], a.tensor_array_concat(parts), IMAGES)
    np.testing.assert_array_equal(joined, IMAGES.reshape(4, 3))
    gathered = a.run([x, i], a.tensor_array_gather(parts, i), IMAGES, places)
    np.testing.assert_array_equal(gathered, IMAGES[places])
    three = a.tensor_array(relay.const(3))
    scattered = a.tensor_array_scatter(three, i, parts)
    read = a.tensor_get_data(a.tensor_array_read(scattered, relay.const(2)))
    np.testing.assert_array_equal(a.run([x, i], read, IMAGES, np.array([2, 0], "int32")), IMAGES[0])


def test_write_take_and_expand():
    a = Arrays()
    x, n = relay.var("x", shape=(2, 3)), relay.var("n", shape=(), dtype="int32")
    written = a.tensor_array_write(a.tensor_array(n), relay.const(1), a.tensor(x))
    read = a.tensor_get_data(a.tensor_array_read(written, relay.const(1)))
    np.testing.assert_array_equal(a.run([n, x], read, np.int32(3), IMAGES[0]), IMAGES[0])
    taken = a.tensor_take(a.tensor(x), relay.const(1), relay.const(2))
    np.testing.assert_array_equal(a.run([x], taken, IMAGES[0]), IMAGES[0, 1:])
    both = a.tensor_concatenate(a.tensor(x), a.tensor(x))
    np.testing.assert_array_equal(a.run([x], both, IMAGES[0]), np.tile(IMAGES[0], (2, 1)))
    wide = a.run([x], a.tensor_expand_dims(a.tensor(x)), IMAGES[0])
    np.testing.assert_array_equal(wide, IMAGES[:1])
    assert a.ops.get_name("tensor_t") == "static_tensor_float32_2_3_t"


def test_split_and_numbers():
    rows = (relay.Any(), 3)
    a = Arrays(rows, split=(4, 3))
    x, n = relay.var("x", shape=(4, 3)), relay.var("n", shape=(relay.Any(),), dtype="int32")
    array = a.tensor_array(relay.const(2))
    part = a.tensor_array_read(a.tensor_array_split(array, a.tensor(x, (4, 3)), n), relay.const(1))
    data = IMAGES.reshape(4, 3)
    np.testing.assert_array_equal(a.run([x, n], part, data, np.array([1, 2], "int32")), data[1:3])
    numbers = Arrays(())
    v = relay.var("v", shape=(relay.Any(),))
    stacked = numbers.tensor_array_stack(numbers.tensor_array_unstack(v))
    np.testing.assert_array_equal(numbers.run([v], stacked, data.ravel()), data.ravel())
    with pytest.raises(core_error(), match="open first size"):
        Arrays((2, 3), split=(4, 3))
    with pytest.raises(core_error(), match="not registered"):
        Prelude().get_global_var_static("tensor_array", F, (5,))
    ops = TensorArrayOps(Prelude(), F)
    ops.register()
    assert ops.get_global_var("tensor_array_stack").name_hint == "tensor_array_stack_float32"


def core_error():
    import relay as core

    return core.ArgumentError


# ---- Functions for what patterns match -----------------------------------------------------------

X, Y, C = (
    relay.var("x", shape=(3,)),
    relay.var("y", shape=(3,)),
    relay.var("c", shape=(), dtype="bool"),
)
V = relay.var("v", shape=(3,))
VALUES = {"x": np.float32([1, 2, 3]), "y": np.float32([4, -5, 6])}
CALLED = relay.Function([V], relay.nn.relu(relay.multiply(V, Y)))


@pytest.mark.parametrize(("expr", "pattern", "name"), [
    (relay.If(C, relay.add(X, Y), relay.multiply(X, relay.exp(Y))),
     is_if(wildcard(), is_op("add")(wildcard(), wildcard()),
           is_op("multiply")(wildcard(), wildcard())), "add_multiply_if_"),
    (relay.negative(relay.If(C, relay.add(X, Y), relay.exp(Y))),
     is_op("negative")(is_if(wildcard(), wildcard(), wildcard())), "if_negative_"),
    (relay.Let(V, relay.add(X, X), relay.nn.relu(relay.subtract(V, relay.exp(Y)))),
     is_let(is_var("v"), wildcard(), wildcard()), "let_"),
    (relay.Let(V, relay.add(X, X), relay.nn.relu(relay.subtract(V, relay.exp(Y)))),
     is_let(is_var("v"), is_op("add")(wildcard(), wildcard()), is_op("nn.relu")(wildcard())),
     "add_nn.relu_let_"),
    (relay.add(CALLED(relay.exp(Y)), X),
     is_op("add")(FunctionPattern([wildcard()], is_op("nn.relu")(wildcard()))(wildcard()),
                  wildcard()), "nn.relu_function_add_"),
])  # fmt: skip
def test_partition_with_if_let_and_functions(expr, pattern, name):
    assert pattern.match(expr)
    parted = pattern.partition(expr)
    assert parted.op.attrs["PartitionedFromPattern"] == name
    # Nothing is read from outside of the function.
    assert not list(relay.analysis.free_vars(parted.op))
    for truth in (True, False):
        results = []
        for e in (expr, parted):
            free = list(relay.analysis.free_vars(e))
            args = [VALUES.get(v.name_hint, np.array(truth)) for v in free]
            results.append(run(relay.Function(free, e), *args).numpy())
        np.testing.assert_array_equal(*results)


def test_a_variable_that_is_bound_within_and_read_outside():
    called = relay.Function([X], relay.nn.relu(X))
    pattern = is_op("add")(FunctionPattern([wildcard()], wildcard())(wildcard()), wildcard())
    expr = relay.add(called(Y), X)
    assert pattern.match(expr) and pattern.partition(expr) == expr


def test_a_branch_stays_in_its_place():
    # The branch that is not taken does not end.
    n = relay.var("n", shape=(), dtype="int32")
    mod = tvm.IRModule()
    forever = relay.GlobalVar("forever")
    i = relay.var("i", shape=(), dtype="int32")
    mod[forever] = relay.Function([i], forever(i), relay.scalar_type("int32"))
    expr = relay.If(relay.less(n, relay.const(5)), n, forever(n))
    parted = is_if(wildcard(), wildcard(), wildcard()).partition(expr)
    mod["main"] = relay.Function([n], parted)
    assert run(mod, np.int32(3)).numpy() == 3
