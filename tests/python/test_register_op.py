"""Operators of users: relay.register_op, relay.te and relay.prim_func."""

# Text in annotations names sizes and dtypes.
# ruff: noqa: F821, UP037

import numpy as np
import pytest

import relay
from relay import te

RNG = np.random.default_rng(3)


def both(program, *arrays):
    """What evaluator and compiler give, which is the same."""
    mod = program if isinstance(program, relay.IRModule) else relay.IRModule.from_expr(program)
    slow = relay.create_executor("debug", mod).evaluate()(*arrays)
    for level in (0, 3):
        fast = relay.build(mod, opt_level=level, num_threads=1)(*arrays)
        np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-6)
    return slow


def kernels(program):
    import json

    return len(json.loads(relay.build(program, num_threads=1).metadata)["kernels"])


@pytest.fixture
def swish():
    @relay.register_op("mylib.swish", attrs={"beta": 1.0})
    def swish(x, beta):
        """x * sigmoid(beta * x)."""
        return x * relay.sigmoid(x * beta)

    with swish:
        yield swish


def swish_of(x, beta=1.0):
    return x / (1 + np.exp(-beta * x))


# ---- By a definition -----------------------------------------------------------------------------


def test_a_definition_in_relay(swish):
    x = relay.var("x", shape=(2, 3))
    data = RNG.standard_normal((2, 3)).astype("float32")
    f = relay.Function([x], swish(relay.exp(x), beta=0.5) + 1.0)
    np.testing.assert_allclose(both(f, data), swish_of(np.exp(data), 0.5) + 1, rtol=1e-5)
    assert kernels(f) == 1, "it is fused with its neighbours"
    row = relay.op.get("mylib.swish")
    assert row.doc == "x * sigmoid(beta * x)." and row.attrs[0].default == 1.0
    assert "beta=1.0" in repr(swish) and swish(x).attrs.beta == 1.0


def test_it_is_printed_parsed_and_pickled(swish):
    import pickle

    n = relay.TypeVar("n")
    x = relay.var("x", relay.TensorType((n, 4)))
    mod = relay.IRModule.from_expr(relay.Function([x], swish(x, 2.0), type_params=[n]))
    text = mod.astext()
    assert "mylib.swish(%x, beta=2" in text
    assert relay.parse(text) == mod
    again = pickle.loads(pickle.dumps(mod))
    assert again == mod
    data = RNG.standard_normal((5, 4)).astype("float32")
    np.testing.assert_allclose(both(again, data), swish_of(data, 2.0), rtol=1e-5)


def test_its_gradient_follows(swish):
    x = relay.var("x", shape=(4,))
    f = relay.Function([x], swish(x))
    g = relay.Function(
        f.params,
        relay.TupleGetItem(relay.TupleGetItem(relay.Call(relay.transform.gradient(f), [x]), 1), 0),
    )
    data = RNG.standard_normal(4).astype("float32")
    s = 1 / (1 + np.exp(-data))
    np.testing.assert_allclose(both(g, data), s + data * s * (1 - s), rtol=1e-4)
    first = relay.transform.gradient(f, mode="first_order")
    out = relay.create_executor("debug", relay.IRModule.from_expr(first)).evaluate()(data)
    np.testing.assert_allclose(out[1][0], s + data * s * (1 - s), rtol=1e-4)


def test_a_relay_function_is_a_definition():
    @relay.function
    def scaled(x, y, times: relay.Static[int]):
        for _ in range(times):
            x = x * y
        return np.maximum(x, 0)

    with relay.register_op("mylib.scaled", scaled, attrs={"times": 2}) as op:
        x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(2, 3))
        a = RNG.standard_normal(3).astype("float32")
        b = RNG.standard_normal((2, 3)).astype("float32")
        np.testing.assert_allclose(
            both(relay.Function([x, y], op(x, y, times=3)), a, b),
            np.maximum(a * b**3, 0),
            rtol=1e-5,
        )
    a = relay.var("a", shape=(3,))
    plain = relay.Function([a], relay.exp(a) + a)
    with relay.register_op("mylib.plain", plain) as op:
        x = relay.var("x", shape=(3,))
        data = np.ones(3, "float32")
        np.testing.assert_allclose(
            both(relay.Function([x], op(op(x))), data), np.exp(np.e + 1) + np.e + 1, rtol=1e-5
        )


def test_a_custom_gradient():
    def through(call, adjoint, result):
        return [adjoint * 3.0]

    @relay.register_op("mylib.straight", gradient=through)
    def straight(x):
        return relay.round(x)

    with straight:
        x = relay.var("x", shape=(3,))
        g = relay.transform.gradient(relay.Function([x], straight(x)))
        data = np.array([0.4, 1.6, -2.2], "float32")
        value, (dx,) = relay.create_executor("debug", relay.IRModule.from_expr(g)).evaluate()(data)
        assert value.tolist() == [0, 2, -2] and dx.tolist() == [3, 3, 3]


def test_a_rotary_embedding():
    @relay.register_op("mylib.rotary")
    def rotary(x, cos, sin):
        """Rotates pairs of features by angles that depend on the position."""
        left, right = relay.split(x, 2, axis=-1)
        turned = relay.concatenate([relay.negative(right), left], axis=-1)
        return x * cos + turned * sin

    with rotary:
        x = relay.var("x", shape=(2, 4, 6, 8))
        c, s = relay.var("c", shape=(6, 8)), relay.var("s", shape=(6, 8))
        data = RNG.standard_normal((2, 4, 6, 8)).astype("float32")
        angle = RNG.standard_normal((6, 8)).astype("float32")
        turned = np.concatenate([-data[..., 4:], data[..., :4]], axis=-1)
        out = both(relay.Function([x, c, s], rotary(x, c, s)), data, np.cos(angle), np.sin(angle))
        np.testing.assert_allclose(out, data * np.cos(angle) + turned * np.sin(angle), rtol=1e-5)


# ---- By a tensor expression ----------------------------------------------------------------------


def is_one(size):
    return isinstance(size, int) and size == 1


def broadcast_add(a, b):
    rank = max(a.ndim, b.ndim)

    def size(axis):
        sizes = [t.shape[axis - rank] for t in (a, b) if t.ndim >= rank - axis]
        return next((s for s in sizes if not is_one(s)), 1)

    def element(t, at):
        places = zip(t.shape, at[rank - t.ndim :], strict=True)
        return t[tuple(0 if is_one(s) else i for s, i in places)]

    return te.compute(
        [size(axis) for axis in range(rank)], lambda *at: element(a, at) + element(b, at)
    )


def broadcast_add_gradient(call, adjoint, result):
    return [relay.collapse_sum_like(adjoint, arg) for arg in call.args]


def test_broadcast_add():
    with relay.register_op(
        "mylib.broadcast_add",
        compute=broadcast_add,
        fusion="Broadcast",
        gradient=broadcast_add_gradient,
    ) as op:
        x, y = relay.var("x", shape=(4, 1, 3)), relay.var("y", shape=(5, 3))
        a = RNG.standard_normal((4, 1, 3)).astype("float32")
        b = RNG.standard_normal((5, 3)).astype("float32")
        f = relay.Function([x, y], relay.exp(op(relay.tanh(x), y)))
        np.testing.assert_allclose(both(f, a, b), np.exp(np.tanh(a) + b), rtol=1e-5)
        assert op(x, y).shape == (4, 5, 3)
        assert kernels(f) <= 2
        g = relay.transform.gradient(relay.Function([x, y], op(x, y)))
        _, (dx, dy) = relay.create_executor("debug", relay.IRModule.from_expr(g)).evaluate()(a, b)
        assert np.array_equal(dx, np.full_like(a, 5)) and np.array_equal(dy, np.full_like(b, 4))
        n = relay.TypeVar("n")
        z = relay.var("z", relay.TensorType((n, 3)))
        f = relay.Function([z], op(z, z), type_params=[n])
        assert np.array_equal(both(f, b), 2 * b)


def test_reductions_and_stages():
    def softmax(x, axis):
        n, m = x.shape
        k, l = te.reduce_axis((0, m)), te.reduce_axis((0, m))  # noqa: E741
        top = te.compute((n,), lambda i: te.max(x[i, k], axis=k), "top")
        e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), "e")
        total = te.compute((n,), lambda i: te.sum(e[i, l], axis=l), "total")
        return te.compute((n, m), lambda i, j: e[i, j] / total[i], "softmax")

    with relay.register_op("mylib.softmax", compute=softmax, attrs={"axis": 1}) as op:
        x = relay.var("x", shape=(3, 7))
        data = RNG.standard_normal((3, 7)).astype("float32")
        e = np.exp(data - data.max(1, keepdims=True))
        np.testing.assert_allclose(
            both(relay.Function([x], op(x * 1.0)), data), e / e.sum(1, keepdims=True), rtol=1e-5
        )

    def matmul(a, b):
        k = te.reduce_axis((0, a.shape[1]))
        return te.compute(
            (a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "matmul"
        )

    with relay.register_op("mylib.matmul", compute=matmul) as op:
        x, y = relay.var("x", shape=(5, 6)), relay.var("y", shape=(6, 7))
        a = RNG.standard_normal((5, 6)).astype("float32")
        b = RNG.standard_normal((6, 7)).astype("float32")
        np.testing.assert_allclose(both(relay.Function([x, y], op(x, y)), a, b), a @ b, rtol=1e-4)

    def best(x):
        k = te.reduce_axis((0, x.shape[1]))
        return te.compute((x.shape[0],), lambda i: te.argmax(x[i, k], axis=k))

    with relay.register_op("mylib.best", compute=best) as op:
        x = relay.var("x", shape=(5, 6))
        assert np.array_equal(both(relay.Function([x], op(x)), a), a.argmax(1))


def test_the_fusion_class_is_seen_in_an_example():
    def shifted(x):
        return te.compute(x.shape, lambda i: x[i] * 2 + te.if_then_else(i > 0, x[i - 1], 0.0))

    with relay.register_op(
        "mylib.shifted", compute=shifted, examples=[["Tensor[(4,), float32]"]]
    ) as op:
        x = relay.var("x", shape=(6,))
        data = RNG.standard_normal(6).astype("float32")
        f = relay.Function([x], relay.exp(op(x)))
        expected = np.exp(data * 2 + np.concatenate([[0], data[:-1]]))
        np.testing.assert_allclose(both(f, data), expected, rtol=1e-5)
        assert kernels(f) == 1


def test_reads_outside_are_zero():
    with relay.register_op(
        "mylib.ahead", compute=lambda x: te.compute(x.shape, lambda i: x[i + 2])
    ) as op:
        x = relay.var("x", shape=(4,))
        out = both(relay.Function([x], op(x)), np.arange(4, dtype="float32"))
        assert out.tolist() == [2, 3, 0, 0]
    with relay.register_op(
        "mylib.pick", compute=lambda x, at: te.compute(at.shape, lambda i: x[at[i]])
    ) as op:
        x, at = relay.var("x", shape=(4,)), relay.var("at", shape=(3,), dtype="int32")
        out = both(
            relay.Function([x, at], op(x, at)),
            np.arange(4, dtype="float32"),
            np.array([3, -1, 9], "int32"),
        )
        assert out.tolist() == [3, 0, 0]


def test_arithmetic_of_the_tensor_ir():
    x = te.placeholder((4,), "float32", "x")
    n = te.placeholder((4,), "int32", "n")
    assert (x[0] + 1).dtype == "float32" and (n[0] + 1).dtype == "int32"
    assert (x[0] + n[0]).dtype == "float32" and (n[0] * 2**40).dtype == "int64"
    assert (x[0] < n[1]).dtype == "bool" and te.isnan(x[0]).dtype == "bool"
    assert te.exp(n[0]).dtype == "float32" and (x[0] ** 2).dtype == "float32"
    assert n[0].astype("int8").dtype == "int8" and te.const(1, "uint8").dtype == "uint8"
    assert repr(x) == "te.Tensor(x: (4,) float32)"
    with pytest.raises(TypeError, match="if_then_else"):
        bool(x[0] > 0)
    with pytest.raises(TypeError, match="// divides integers"):
        n[0] / 2
    with pytest.raises(TypeError, match="1 axis and is read with 2 indices"):
        x[0, 1]
    with pytest.raises(TypeError, match="an index of x is of float32"):
        x[x[0]]
    with pytest.raises(TypeError, match="no function 'nope'"):
        te.call("nope", x[0])
    with pytest.raises(TypeError, match="has 1 axis"):
        te.compute((4,), lambda i, j: x[i])
    k = te.reduce_axis((0, 4))
    with pytest.raises(TypeError, match="within a reduction"):
        te.sum(te.sum(x[k], axis=k), axis=k)
    with pytest.raises(TypeError, match=r"te\.reduce_axis"):
        te.sum(x[0], axis=[0])
    with pytest.raises(TypeError, match="is of bools"):
        te.all(x[k], axis=k)
    with pytest.raises(TypeError, match="not iterated over"):
        list(x)
    with pytest.raises(TypeError, match="nor reduced over"):
        te.compute((4,), lambda i: x[k])
    leaked = []
    te.compute((4,), lambda i: leaked.append(i) or x[i])
    with pytest.raises(TypeError, match="not an axis of it"):
        te.compute((4,), lambda i: x[i] * leaked[0].astype("float32"))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_division_by_zero_has_a_value(dtype):
    def divided(x, y):
        return te.compute((4,), lambda i: x[i] // i * 1000 + x[i] % y[i] + 7 // y[i])

    with relay.register_op("mylib.divided", compute=divided) as op:
        variables = [relay.var(n, shape=(4,), dtype=dtype) for n in "xy"]
        a, b = np.array([5, -3, 2, 1], dtype), np.array([3, 0, -2, 0], dtype)
        found = both(relay.Function(variables, op(*variables)), a, b)
        assert found.tolist() == [5000 + 2 + 2, -3000 + 7, 1000 - 4, 7]


def test_what_is_no_kernel():
    with relay.register_op(
        "mylib.extern", compute=lambda x: te.extern(x.shape, [x], lambda *_: 3)
    ) as op:
        x = relay.var("x", shape=(4,))
        with pytest.raises(relay.UserError, match=r"E0911.*prim_func"):
            relay.build(relay.Function([x], op(x)))


# ---- What goes wrong -----------------------------------------------------------------------------


def test_names():
    def identity(x):
        return x + 0.0

    with pytest.raises(relay.UserError, match="E0802"):
        relay.register_op("swish", identity)
    with pytest.raises(relay.UserError, match="E0802"):
        relay.register_op("nn.mine", identity)
    with relay.register_op("mylib.twice", identity), pytest.raises(relay.UserError, match="E0803"):
        relay.register_op("mylib.twice", identity)
    with relay.register_op("mylib.twice", identity):
        pass
    with pytest.raises(relay.UserError, match="E0105"):
        relay.unregister_op("mylib.twice")
    with pytest.raises(relay.UserError, match="E0802"):
        relay.unregister_op("nn.relu")
    with pytest.raises(TypeError, match="no parameter alpha"):
        relay.register_op("mylib.a", identity, attrs={"alpha": 1})
    with pytest.raises(TypeError, match="have names"):
        relay.register_op("mylib.a", lambda *args: args[0])


def test_a_program_outlives_its_operator():
    @relay.register_op("mylib.gone")
    def gone(x):
        return relay.exp(x)

    x = relay.var("x", shape=(2,))
    f = relay.Function([x], gone(x))
    gone.unregister()
    data = np.ones(2, "float32")
    np.testing.assert_allclose(both(f, data), np.exp(data), rtol=1e-5)
    with pytest.raises(relay.UserError, match="E0105"):
        relay.parse(relay.IRModule.from_expr(f).astext())


def test_an_exception_names_the_call():
    def bad(x):
        raise ZeroDivisionError("nothing there")

    x = relay.var("x", shape=(2,))
    with (
        relay.register_op("mylib.bad", bad) as op,
        pytest.raises(
            relay.UserError, match=r"E0911.*mylib\.bad, definition: ZeroDivisionError"
        ) as caught,
    ):
        op(x)
    assert "in bad" in str(caught.value) and isinstance(caught.value.__cause__, ZeroDivisionError)
    with relay.register_op("mylib.bad", bad):
        text = (
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2,), float32]) {\n  exp(mylib.bad(%x))\n}'
        )
        with pytest.raises(relay.UserError, match=r"(?s)E0911.*<text>:3:7") as caught:
            relay.parse(text)
    with (
        relay.register_op("mylib.bad", compute=bad, relation=lambda t: t) as op,
        pytest.raises(relay.UserError, match=r"E0911.*mylib\.bad, compute: ZeroDivisionError"),
    ):
        relay.build(relay.Function([x], op(x)))
    with (
        relay.register_op("mylib.bad", lambda x: x, relation=bad) as op,
        pytest.raises(relay.UserError, match=r"E0911.*mylib\.bad, type relation"),
    ):
        op(x)
    with (
        relay.register_op("mylib.bad", lambda x: relay.exp(x), gradient=lambda *_: bad(0)) as op,
        pytest.raises(relay.UserError, match=r"E0911.*mylib\.bad, gradient"),
    ):
        relay.transform.gradient(relay.Function([x], op(x)))


def test_relays_own_errors_keep_their_code():
    @relay.register_op("mylib.dense")
    def dense(x, w):
        return relay.nn.dense(x, w)

    with dense, pytest.raises(relay.UserError, match=r"mylib\.dense, definition: ") as caught:
        dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 5)))
    assert caught.value.code.startswith("E02")


@pytest.mark.parametrize("garbage", [3j, "text", None])
def test_garbage(garbage):
    x = relay.var("x", shape=(2,))
    for columns in (
        {"definition": lambda x: garbage},
        {"compute": lambda x: garbage},
        {"definition": lambda x: relay.exp(x), "relation": lambda t: garbage},
    ):
        with (
            relay.register_op("mylib.garbage", **columns) as op,
            pytest.raises(relay.UserError, match="E0912"),
        ):
            op(x)
    for gradient in (lambda *_: garbage, lambda *_: [relay.const(1.0)], lambda *_: [None, None]):
        with (
            relay.register_op("mylib.garbage", lambda x: relay.exp(x), gradient=gradient) as op,
            pytest.raises(relay.UserError, match="E0912"),
        ):
            relay.transform.gradient(relay.Function([x], op(x)))


@pytest.mark.parametrize("given", [[], [0], [0, 1, 0]])
def test_must_fail_E0912_gradients_of_another_number(given):
    """What is left out is no zero: it may have been forgotten."""

    def gradient(call, adjoint, result):
        every = [adjoint * call.args[1], adjoint * call.args[0]]
        return [every[i] for i in given]

    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    with (
        relay.register_op("mylib.product", lambda a, b: a * b, gradient=gradient) as op,
        pytest.raises(relay.UserError, match=r"(?s)E0912.*2, one for each of a, b.*found") as error,
    ):
        relay.transform.gradient(relay.Function([x, y], op(x, y)))
    assert f"found:    {len(given)}" in str(error.value)


def test_none_is_no_gradient():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    with relay.register_op(
        "mylib.product", lambda a, b: a * b, gradient=lambda c, g, r: [g * c.args[1], None]
    ) as op:
        f = relay.transform.gradient(relay.Function([x, y], op(x, y)))
        _, (dx, dy) = relay.create_executor("debug", relay.IRModule.from_expr(f)).evaluate()(
            np.float32([1, 2, 3]), np.float32([4, 5, 6])
        )
        assert dx.tolist() == [4, 5, 6] and dy.tolist() == [0, 0, 0]


def test_must_fail_E0912_variables_that_nothing_binds():
    x, stray = relay.var("x", shape=(3,)), relay.var("stray", shape=(3,))
    inner = relay.Function([relay.var("z", shape=(3,))], stray)
    for columns in (
        {"definition": lambda a: a * stray},
        {"definition": lambda a: relay.Tuple([a, relay.Let(relay.var("v"), a, stray)])},
        {"definition": lambda a: relay.Call(inner, [a])},
        {"definition": lambda a: a * stray, "relation": lambda t: t},
    ):
        with (
            relay.register_op("mylib.stray", **columns) as op,
            pytest.raises(relay.UserError, match=r"E0912.*definition") as error,
        ):
            relay.build(relay.Function([x], op(x)))
        assert "the variable 'stray', which nothing binds" in str(error.value)
        assert "(a)" in str(error.value)
    with (
        relay.register_op("mylib.g", lambda a: a * a, gradient=lambda c, g, r: [g * stray]) as op,
        pytest.raises(relay.UserError, match=r"E0912.*the gradient of 'a'"),
    ):
        relay.transform.gradient(relay.Function([x], op(x)))
    # Its arguments may be expressions with variables of the program, in a definition of any form.
    y = relay.var("y", shape=(3,))
    with relay.register_op("mylib.fine", lambda a: relay.Let(v := relay.var("v"), a, v * v)) as op:
        f = relay.Function([x], relay.Let(y, relay.exp(x), op(y + x)))
        assert np.allclose(both(f, np.zeros(3, "float32")), 1)


def test_columns_that_contradict_each_other():
    x = relay.var("x", shape=(4,))
    longer = relay.TensorType((8,))
    with (
        relay.register_op("mylib.liar", lambda x: relay.exp(x), relation=lambda t: longer) as op,
        pytest.raises(relay.UserError, match="E0912"),
    ):
        relay.build(relay.Function([x], op(x)))

    def double(x):
        return te.compute(x.shape, lambda i: x[i] * 2)

    with (
        relay.register_op("mylib.liar", compute=double, relation=lambda t: longer) as op,
        pytest.raises(relay.UserError, match=r"E0912(.|\n)*relation"),
    ):
        relay.build(relay.Function([x], op(x)))

    def total(x):
        k = te.reduce_axis((0, x.shape[0]))
        return te.compute((), lambda: te.sum(x[k], axis=k))

    with (
        relay.register_op("mylib.liar", compute=total, fusion="ElemWise") as op,
        pytest.raises(relay.UserError, match=r"E0912.*fusion"),
    ):
        relay.build(relay.Function([x], op(x)))
    with pytest.raises(ValueError, match="fusion is"):
        relay.register_op("mylib.liar", compute=total, fusion="sometimes")


def identity(x):
    return te.compute(x.shape, lambda i: x[i])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": 3}, "the name of an operator is a string, not 3"),
        ({"doc": 3}, "doc is a sentence"),
        ({"attrs": 3}, "attrs are names with defaults"),
        ({"attrs": {3: 1}}, "the name of an attribute is a string"),
        ({"attrs": {"a": object()}}, "the attribute a has the default <object"),
        ({"examples": ["Tensor[(3,), float32]"]}, "an example is a list of types"),
        ({"relation": 3}, "relation is a function, not 3"),
        ({"gradient": "no"}, "gradient is a function, not 'no'"),
        ({"compute": 3}, "3 is not a function"),
    ],
)
def test_columns_of_the_wrong_kind(columns, message):
    given = {"name": "mylib.odd", "compute": lambda x, a=0: identity(x), **columns}
    with pytest.raises(TypeError, match=message):
        relay.register_op(given.pop("name"), **given)


def test_examples_that_are_none():
    with pytest.raises(relay.UserError, match=r"E0912.*mylib\.odd: an example(.|\n)*1 types"):
        relay.register_op("mylib.odd", compute=identity, examples=[[]])
    with pytest.raises(relay.UserError, match="E0103"):
        relay.register_op("mylib.odd", compute=identity, examples=[["nonsense"]])


def test_operators_that_are_defined_by_themselves():
    with (
        relay.register_op("mylib.ouroboros", lambda x: relay._ops.call.call("mylib.ouroboros", x)),
        pytest.raises(relay.UserError, match=r"E0912(.|\n)*without an end"),
    ):
        relay._ops.call.call("mylib.ouroboros", relay.var("x", shape=(2,)))


# ---- Tensor functions ----------------------------------------------------------------------------


@relay.prim_func
def spmm(
    data: relay.Tensor[("nnz",), "float32"],
    indices: relay.Tensor[("nnz",), "int32"],
    indptr: relay.Tensor[("rows1",), "int32"],
    dense: relay.Tensor[("k", "n"), "float32"],
    like: relay.Tensor[("m", 1), "float32"],
    out: relay.Tensor[("m", "n"), "float32"],
):
    """A sparse matrix (CSR) by a dense one."""
    for i in relay.parallel(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for j in range(out.shape[1]):
                out[i, j] += data[e] * dense[indices[e], j]


def test_a_sparse_product():
    a = (RNG.random((6, 5)) < 0.4) * RNG.standard_normal((6, 5))
    rows = [np.nonzero(r)[0] for r in a]
    data = np.concatenate([a[i, r] for i, r in enumerate(rows)]).astype("float32")
    indices = np.concatenate(rows).astype("int32")
    indptr = np.cumsum([0, *map(len, rows)]).astype("int32")
    b = RNG.standard_normal((5, 3)).astype("float32")
    like = np.zeros((6, 1), "float32")
    with relay.register_op("mylib.spmm", compute=spmm) as op:
        arrays = [data, indices, indptr, b, like]
        variables = [
            relay.var(f"v{i}", shape=v.shape, dtype=str(v.dtype)) for i, v in enumerate(arrays)
        ]
        f = relay.Function(variables, op(*variables))
        np.testing.assert_allclose(both(f, *arrays), (a @ b), rtol=1e-5, atol=1e-6)
        for wrong in (np.full_like(indices, 9), np.full_like(indices, -1)):
            with pytest.raises(relay.RunError):
                relay.build(f)(data, wrong, indptr, b, like)
    with pytest.raises(relay.UserError, match=r"E0911.*'dense' has 2 axes"):
        spmm(*variables[:3], relay.var("b", shape=(3,)), variables[4])
    assert np.allclose(spmm(*arrays), a @ b, atol=1e-5)
    spmm.operator.unregister()
    assert "for i in" in spmm.astext()


SCALE = 3


def test_the_language_of_tensor_functions():
    import math

    @relay.prim_func
    def many(x: relay.Tensor[("n",), "float32"], out: relay.Tensor[("n",), "float32"]):
        n = x.shape[0]
        top = x[0]
        for i in range(1, n):
            if x[i] > top:
                top = x[i]
        for i in range(n):
            y: "float32" = 0
            if i % 2 == 0 and x[i] > 0:
                y = math.exp(x[i] - top) * SCALE
            elif i == 1:
                y += min(x[i], 1.0) + abs(x[-1 + i])
            else:
                y -= x[i] if i < n - 1 else float(i) / 2
            out[i] = y
        for i in range(0, n, 3):
            out[i] *= 2

    def expected(x):
        n, out = len(x), np.zeros_like(x)
        top = x.max()
        for i in range(n):
            if i % 2 == 0 and x[i] > 0:
                out[i] = np.exp(x[i] - top) * 3
            elif i == 1:
                out[i] = min(x[i], 1.0) + abs(x[0])
            else:
                out[i] = -x[i] if i < n - 1 else -i / 2
        out[0::3] *= 2
        return out

    for n in (1, 2, 7):
        x = RNG.standard_normal(n).astype("float32")
        np.testing.assert_allclose(many(x), expected(x), rtol=1e-5)
    many.operator.unregister()


def refused(code, text):
    return pytest.raises(relay.UserError, match=rf"{code}.*{text}(.|\n)*test_register_op\.py:\d+")


X = relay.Tensor[("n",), "float32"]


def test_what_tensor_functions_refuse():
    with refused("E0902", "While"):

        @relay.prim_func
        def loop(x: X, out: X):
            while True:
                pass

    with refused("E0902", "read only"):

        @relay.prim_func
        def writes(x: X, out: X):
            x[0] = 1.0

    with refused("E0908", "'x' has no type"):

        @relay.prim_func
        def untyped(x, out: X):
            pass

    with refused("E0903", "'nowhere' has no value"):

        @relay.prim_func
        def unknown(x: X, out: X):
            out[0] = nowhere

    with refused("E0905", "has 1 axis"):

        @relay.prim_func
        def rank(x: X, out: X):
            out[0, 1] = 1.0

    with refused("E0907", "cannot be called"):

        @relay.prim_func
        def calls(x: X, out: X):
            out[0] = sorted(x[0])

    with refused("E0904", "at the same time"):

        @relay.prim_func
        def race(x: X, out: X):
            total = 0.0
            for i in relay.parallel(x.shape[0]):
                total += x[i]

    with refused("E0903", "'y' has no value"):

        @relay.prim_func
        def outside(x: X, out: X):
            for i in range(2):
                y = x[i]
            out[0] = y


def test_an_assertion_and_an_index_stop_a_run():
    @relay.prim_func
    def checked(x: X, out: X):
        for i in range(x.shape[0]):
            assert x[i] >= 0, "x is negative"
            out[i] = x[i + x.shape[0] - 1 - 2 * i]

    try:
        assert checked(np.array([1, 2, 3], "float32")).tolist() == [3, 2, 1]
        with pytest.raises(relay.RunError, match="a condition on the data does not hold"):
            checked(np.array([1, -2, 3], "float32"))
    finally:
        checked.operator.unregister()

    @relay.prim_func
    def beyond(x: X, out: X):
        for i in range(x.shape[0]):
            out[i + 1] = x[i]

    try:
        with pytest.raises(relay.RunError, match="an index lies outside"):
            beyond(np.ones(3, "float32"))
    finally:
        beyond.operator.unregister()


def test_tensor_functions_of_one_name():
    def times(factor):
        @relay.prim_func
        def scaled(x: relay.Tensor[(2,), "float32"], out: relay.Tensor[(2,), "float32"]):
            for i in range(2):
                out[i] = x[i] * factor

        return scaled

    x = np.ones(2, "float32")
    assert [times(f)(x).tolist() for f in (2.0, 3.0)] == [[2, 2], [3, 3]]


# ---- What passes rewrite by ----------------------------------------------------------------------


def dequantised(x, scale, zero):
    scale, zero = relay.const(np.float32(scale)), relay.const(np.int32(zero))
    return relay.qnn.op.dequantize(x, scale, zero)


def in_integers(body, *params):
    mod = relay.IRModule.from_expr(relay.Function(list(params), body))
    return mod, relay.transform.FakeQuantizationToInteger()(mod)


def same(before, after, *arrays):
    want = relay.create_executor("debug", before).evaluate()(*arrays)
    np.testing.assert_allclose(both(after, *arrays), want, rtol=1e-6)


def test_an_operator_that_moves_elements_moves_integers():
    def mirrored(x):
        return relay.concatenate((x, relay.reverse(x, axis=0)), axis=0)

    x = relay.var("x", shape=(4,), dtype="int8")
    array = np.array([-128, -1, 3, 127], "int8")
    with relay.register_op("mylib.mirrored", mirrored, moves=["x"]) as op:
        before, after = in_integers(op(dequantised(x, 0.5, 3)), x)
        assert "mylib.mirrored(%x)" in after.astext()
        same(before, after, array)
    with relay.register_op("mylib.mirrored", mirrored) as op:
        before, after = in_integers(op(dequantised(x, 0.5, 3)), x)
        assert "mylib.mirrored(%x)" not in after.astext()


def test_an_operator_says_what_it_is_on_integers():
    asked = []

    def halved(call, operands, wanted):
        asked.append((operands[0] is None, wanted is None))
        if operands[0] is None or wanted is not None:
            return None
        data, scale, zero, axis = operands[0]
        assert axis == 0
        return data, scale * relay.const(np.float32(0.5)), zero

    x, y = relay.var("x", shape=(4,), dtype="int8"), relay.var("y", shape=(4,))
    with relay.register_op("mylib.half", lambda x: x * 0.5, quantized=halved) as op:
        before, after = in_integers(op(dequantised(x, 0.5, 3)) + op(y), x, y)
        assert after.astext().count("mylib.half") == 1
        same(before, after, np.array([-128, -1, 3, 127], "int8"), np.ones(4, "float32"))
    assert (False, True) in asked
    for wrong in (3, (1, 2), [None], lambda: 0):
        with (
            relay.register_op(
                "mylib.half", lambda x: x * 0.5, quantized=lambda *_, wrong=wrong: wrong
            ) as op,
            pytest.raises(relay.UserError, match="E0912"),
        ):
            in_integers(op(dequantised(x, 0.5, 3)), x)


def test_an_operator_names_its_approximation():
    x = relay.var("x", shape=(4,))
    rough = relay.register_op("mylib.rough", lambda x: x)
    exact = relay.register_op("mylib.exact", lambda x: x * 1.0, approximation="mylib.rough")
    with rough, exact:
        mod = relay.IRModule.from_expr(relay.Function([x], exact(x)))
        assert "mylib.rough(%x)" in relay.transform.FastMath()(mod).astext()


def test_columns_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="moves has names of arguments"):
        relay.register_op("mylib.bad", lambda x: x, moves=["y"])
    with pytest.raises(TypeError, match="quantized is a function"):
        relay.register_op("mylib.bad", lambda x: x, quantized=3)
