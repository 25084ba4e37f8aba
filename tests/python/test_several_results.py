"""Tensor functions and tensor expressions with several results."""

# Text in annotations names sizes and dtypes.
# ruff: noqa: F821

import pickle

import numpy as np
import pytest

import relay
from relay import te

RNG = np.random.default_rng(4)


@relay.prim_func(outputs=2)
def extremes(
    x: relay.Tensor[("n", "m"), "float32"],
    least: relay.Tensor[("n",), "float32"],
    where: relay.Tensor[("n", 2), "int32"],
):
    """The least element of each row, and where the least and the greatest are."""
    for i in relay.parallel(x.shape[0]):
        least[i] = x[i, 0]
        top = x[i, 0]
        where[i, 0] = 0
        where[i, 1] = 0
        for j in range(x.shape[1]):
            if x[i, j] < least[i]:
                least[i] = x[i, j]
                where[i, 0] = j
            if x[i, j] > top:
                top = x[i, j]
                where[i, 1] = j


def expected(x):
    return x.min(1), np.stack([x.argmin(1), x.argmax(1)], 1).astype("int32")


def same(found, wanted):
    assert isinstance(found, tuple) and len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5)


def everywhere(function, *arrays):
    """What the evaluator gives, and compiled code at two levels."""
    mod = relay.IRModule.from_expr(function)
    yield relay.create_executor("debug", mod).evaluate()(*arrays)
    for level in (0, 3):
        yield relay.build(mod, opt_level=level, num_threads=1)(*arrays)


def test_called_with_arrays_and_in_a_program():
    x = RNG.standard_normal((5, 7)).astype("float32")
    same(extremes(x), expected(x))
    n = relay.TypeVar("n")
    for shape in ((5, 7), (n, 7)):
        v = relay.var("x", relay.TensorType(shape))
        both = extremes(relay.exp(v))
        assert isinstance(both.checked_type, relay.TupleType)
        least, where = both
        f = relay.Function([v], relay.Tuple([relay.log(least) + 1.0, where]))
        for found in everywhere(f, x):
            same(found, (x.min(1) + 1, expected(x)[1]))
        # One of the results alone.
        for found in everywhere(relay.Function([v], least * 2.0), x):
            np.testing.assert_allclose(found, np.exp(x).min(1) * 2, rtol=1e-5)
    assert "least[i]" in extremes.astext() and "where[i, 0]" in extremes.astext()
    extremes.operator.unregister()


def test_an_operator_prints_parses_and_pickles():
    def gradient(call, adjoint, result):
        rows = relay.expand_dims(result[0], 1)
        hit = relay.cast(relay.equal(call.args[0], rows), "float32")
        return [hit * relay.expand_dims(adjoint[0], 1)]

    with relay.register_op("mylib.extremes", compute=extremes, gradient=gradient) as op:
        v = relay.var("x", shape=(5, 7))
        mod = relay.IRModule.from_expr(relay.Function([v], op(v)))
        assert relay.parse(mod.astext()) == mod and "mylib.extremes(%x)" in mod.astext()
        assert pickle.loads(pickle.dumps(mod)) == mod
        x = RNG.standard_normal((5, 7)).astype("float32")
        same(relay.build(mod)(x), expected(x))
        g = relay.transform.gradient(relay.Function([v], op(v)[0]))
        value, (dx,) = relay.build(g)(x)
        np.testing.assert_allclose(value, x.min(1))
        assert np.array_equal(dx, (x == x.min(1, keepdims=True)).astype("float32"))


def test_a_tensor_expression_of_a_tuple():
    def polar(x, y):
        return te.compute(x.shape, lambda i: (te.sqrt(x[i] * x[i] + y[i] * y[i]), x[i] < y[i]))

    def range_of(x):
        k = te.reduce_axis((0, x.shape[1]))
        return te.compute(
            (x.shape[0],), lambda i: (te.min(x[i, k], axis=k), te.max(x[i, k], axis=k)), "range"
        )

    a, b = RNG.standard_normal((2, 6)).astype("float32")
    with relay.register_op("mylib.polar", compute=polar) as op:
        x, y = relay.var("x", shape=(6,)), relay.var("y", shape=(6,))
        for found in everywhere(relay.Function([x, y], op(x, y)), a, b):
            same(found, (np.hypot(a, b), a < b))
    with relay.register_op("mylib.range", compute=range_of) as op:
        z = relay.var("z", shape=(2, 6))
        both = np.stack([a, b])
        for found in everywhere(relay.Function([z], op(z)), both):
            same(found, (both.min(1), both.max(1)))
    p = te.placeholder((4,), name="p")
    assert [t.dtype for t in te.compute((4,), lambda i: (p[i], p[i] > 0))] == ["float32", "bool"]
    for wrong in (lambda i: (), lambda i: (p[i], "text")):
        with pytest.raises(TypeError):
            te.compute((4,), wrong)


def test_an_extern_of_several_shapes():
    x = te.placeholder((3, 4), name="x")
    least, where = te.extern([(3,), (3, 2)], [x], extremes, ["float32", "int32"], "extremes")
    assert least.shape == (3,) and where.dtype == "int32"
    # A tensor of the two brings the statements of both.
    kernel = te.create_prim_func([x], te.compute((3,), lambda i: where[i, 1] * 10))
    data = RNG.standard_normal((3, 4)).astype("float32")
    assert np.array_equal(kernel(data), data.argmax(1) * 10)
    with pytest.raises(TypeError, match="as many dtypes as shapes"):
        te.extern([(3,), (3, 2)], [x], extremes, ["float32"])


def test_what_is_refused():
    with pytest.raises(relay.UserError, match=r"E0908.*its last 2 parameters; it has 1"):

        @relay.prim_func(outputs=2)
        def short(x: relay.Tensor[("n",), "float32"]):
            pass

    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="outputs"):
            relay.prim_func(outputs=wrong)
    with pytest.raises(relay.UserError, match=r"E0902.*read only: a, b is written"):

        @relay.prim_func(outputs=2)
        def writes(
            x: relay.Tensor[("n",), "float32"],
            a: relay.Tensor[("n",), "float32"],
            b: relay.Tensor[("n",), "float32"],
        ):
            x[0] = 1.0

    x = relay.var("x", shape=(2, 3))
    for relation in (
        lambda t: relay.TensorType((2,)),
        lambda t: relay.TupleType([relay.TensorType((2,))] * 3),
    ):
        with (
            relay.register_op("mylib.wrong", compute=extremes, relation=relation) as op,
            pytest.raises(relay.UserError, match="E0912"),
        ):
            relay.build(relay.Function([x], op(x)))
