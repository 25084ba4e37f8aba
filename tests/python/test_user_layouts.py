"""Operators of users in a change of layout: relay.register_op(layout=...)."""

import numpy as np
import pytest

import relay
from relay import te

RNG = np.random.default_rng(5)
W = RNG.standard_normal((8, 8, 3, 3)).astype("float32") / 8


def softplus(x):
    """log(1 + exp(x))."""
    return te.compute(x.shape, lambda *i: te.log(te.exp(x[i]) + 1.0), "softplus")


def channel_shift(x, axis):
    """Each channel, and half of the one before."""

    def element(*i):
        before = (*i[:axis], i[axis] - 1, *i[axis + 1 :])
        return x[i] + x[before] * 0.5

    return te.compute(x.shape, element, "channel_shift")


def channels(call, offered, desired):
    """The axis of the channels goes where the layout has them."""
    layout = offered[0]
    if layout is None:
        return ["NCHW"], ["NCHW"]
    return [layout], [layout], {"axis": layout.index("C")}


def model(op, **attrs):
    """A convolution, the operator, a convolution."""
    x = relay.var("x", shape=(1, 8, 10, 10))
    y = relay.nn.conv2d(x, relay.const(W), padding=(1, 1))
    y = op(y, **attrs)
    return relay.Function([x], relay.nn.conv2d(y, relay.const(W), padding=(1, 1)))


def transforms(function):
    return relay.optimize(function).astext(False).count("layout_transform(%")


def expected(function):
    """The program as it is written, on the evaluator."""
    x = RNG.standard_normal((1, 8, 10, 10)).astype("float32")
    mod = relay.IRModule.from_expr(function)
    return x, relay.create_executor("debug", mod).evaluate()(x)


def test_an_operator_goes_through_a_change_of_layout():
    plain = transforms(model(relay.nn.relu))
    for layout, more in (("follow", 0), (None, 2)):
        with relay.register_op(
            "mylib.softplus", compute=softplus, fusion="ElemWise", layout=layout
        ) as op:
            f = model(op)
            assert transforms(f) == plain + more
            x, y = expected(f)
            np.testing.assert_allclose(relay.build(f)(x), y, rtol=1e-4, atol=1e-5)


def test_a_rule_says_layouts_and_attributes():
    plain = transforms(model(relay.nn.relu))
    with relay.register_op(
        "mylib.shift", compute=channel_shift, attrs={"axis": 1}, layout=channels
    ) as op:
        f = model(op)
        assert transforms(f) == plain
        assert "mylib.shift" in relay.optimize(f).astext(False)
        assert "axis=3" in relay.optimize(f).astext(False)
        x, y = expected(f)
        np.testing.assert_allclose(relay.build(f)(x), y, rtol=1e-4, atol=1e-5)


def test_a_definition_takes_part_when_the_pass_runs_alone():
    with relay.register_op("mylib.twice", lambda x: x + x, layout="follow") as op:
        mod = relay.transform.ConvertLayout(**{"nn.conv2d": "NHWC"})(
            relay.IRModule.from_expr(model(op))
        )
        text = mod.astext(False)
        assert text.count("layout_transform(%") == 2 and "mylib.twice(" in text


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (lambda call, offered, desired: 3, "E0912"),
        (lambda call, offered, desired: (["nonsense"], ["NCHW"]), "E0912"),
        (lambda call, offered, desired: (["NHWC", "NHWC"], ["NHWC"]), "E0912"),
        (lambda call, offered, desired: (["NHWC"], ["NHWC"], {"nope": 1}), "E0912"),
        (lambda call, offered, desired: (["NHWC"], ["NWC"]), "E1301"),
        (lambda call, offered, desired: (["NHWC"], ["NCHW"]), "E1301"),
        (lambda call, offered, desired: (["NHWC"], ["NHWC"], {"axis": 9}), "E1301"),
        (lambda call, offered, desired: 1 / 0, r"E0911(.|\n)*mylib\.shift, layout rule"),
    ],
)
def test_rules_that_are_wrong(rule, code):
    def relation(x, axis):
        if axis > 3:
            raise ValueError("no such axis")
        return x

    with relay.register_op(
        "mylib.shift",
        compute=channel_shift,
        relation=relation,
        attrs={"axis": 1},
        layout=lambda call, offered, desired: rule(call, offered, desired) if offered[0] else None,
    ) as op:
        f = model(op)
        with pytest.raises(relay.UserError, match=code):
            relay.optimize(f)


def test_an_attribute_is_no_dictionary():
    with pytest.raises(TypeError, match="is not a number, a text, a dtype or a list"):
        relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})


def test_what_is_no_rule():
    for wrong in ("NHWC", 3):
        with pytest.raises(TypeError, match="'follow'"):
            relay.register_op("mylib.wrong", compute=softplus, layout=wrong)
