"""ForwardFoldScaleAxis, BackwardFoldScaleAxis and CanonicalizeCast: what they change, and what they leave."""

import numpy as np
import pytest

import relay
from relay import transform
from relay.analysis import list_op_freqs

RNG = np.random.default_rng(7)


def draw(*shape):
    return RNG.uniform(0.5, 2.0, shape).astype("float32")


def values(f, x):
    return relay.build(f, num_threads=1, opt_level=0)(x)


def folded(f):
    return transform.ForwardFoldScaleAxis()(relay.IRModule.from_expr(f))


CHANGED = {
    "conv2d": (
        lambda x: relay.nn.conv2d(x * draw(3, 1, 1), relay.const(draw(4, 3, 3, 3)), padding=(1, 1)),
        (2, 3, 8, 8),
    ),
    "conv2d NHWC, the scale in front": (
        lambda x: relay.nn.conv2d(
            relay.const(draw(1, 1, 1, 3)) * x,
            relay.const(draw(3, 3, 3, 4)),
            data_layout="NHWC",
            kernel_layout="HWIO",
        ),
        (2, 8, 8, 3),
    ),
    "one number": (
        lambda x: relay.nn.conv1d(x * draw(1, 1), relay.const(draw(4, 1, 3))),
        (2, 1, 9),
    ),
    "dense behind relu": (
        lambda x: relay.nn.dense(relay.nn.relu(x * draw(5)), relay.const(draw(4, 5))),
        (3, 5),
    ),
}
KEPT = {
    "another axis": (
        lambda x: relay.nn.conv2d(x * draw(8, 1), relay.const(draw(4, 3, 3, 3))),
        (2, 3, 8, 8),
    ),
    "groups": (
        lambda x: relay.nn.conv2d(x * draw(4, 1, 1), relay.const(draw(4, 2, 3, 3)), groups=2),
        (2, 4, 8, 8),
    ),
    "a negative scale behind relu": (
        lambda x: relay.nn.dense(relay.nn.relu(x * -draw(5)), relay.const(draw(4, 5))),
        (3, 5),
    ),
    "weights that are not constant": (lambda x: relay.nn.dense(x * draw(5), relay.exp(x)), (3, 5)),
    "a scale that is larger than the data": (
        lambda x: relay.nn.dense(x * draw(3, 1), relay.const(draw(4, 5))),
        (1, 5),
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_scales_in_front_move_into_weights(what):
    make, shape = CHANGED[what]
    x = relay.var("x", shape=shape)
    f = relay.Function([x], make(x))
    out = folded(f)
    assert list_op_freqs(relay.IRModule.from_expr(f))["multiply"] == 1
    assert "multiply" not in list_op_freqs(out)
    data = draw(*shape) - 1
    np.testing.assert_allclose(values(out, data), values(f, data), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("what", KEPT)
def test_what_stays(what):
    make, shape = KEPT[what]
    x = relay.var("x", shape=shape)
    mod = relay.IRModule.from_expr(relay.Function([x], make(x)))
    assert relay.structural_equal(folded(mod["main"]), mod)


def test_scales_behind_move_into_weights():
    x = relay.var("x", shape=(2, 3, 8, 8))
    f = relay.Function([x], relay.nn.conv2d(x, relay.const(draw(4, 3, 3, 3))) * draw(4, 1, 1))
    out = transform.Sequential([transform.BackwardFoldScaleAxis(), transform.FoldConstant()])(
        relay.IRModule.from_expr(f)
    )
    assert "multiply" not in list_op_freqs(out)
    data = draw(2, 3, 8, 8)
    np.testing.assert_allclose(values(out, data), values(f, data), rtol=2e-5)


def test_each_element_wise_operator_has_its_cast():
    x = relay.var("x", shape=(4, 4), dtype="int8")
    wide = relay.cast(x, "int32")
    readers = [wide + relay.const(1), wide * wide, relay.negative(wide), relay.sum(wide)]
    f = relay.Function([x], relay.Tuple(readers))
    mod = relay.IRModule.from_expr(f)
    out = transform.CanonicalizeCast()(mod)
    # The first reader keeps the cast, and so does the sum, which is not element-wise.
    assert list_op_freqs(mod)["cast"] == 1
    assert list_op_freqs(out)["cast"] == 3
    back = transform.EliminateCommonSubexpr()(out)
    assert relay.structural_equal(back, mod)
    data = np.arange(16, dtype="int8").reshape(4, 4)
    for got, want in zip(values(out, data), values(f, data), strict=True):
        assert np.array_equal(got, want)


def test_one_reader_keeps_its_cast():
    x = relay.var("x", shape=(4,), dtype="int8")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(relay.cast(x, "float32"))))
    assert relay.structural_equal(transform.CanonicalizeCast()(mod), mod)
