"""Gradients of what is long: thousands of operators one after the other, loops of thousands of steps."""

import re

import numpy as np
import pytest

import relay

STEPS = 5000  # a loop of more than 4,096 tensors is not written out


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("mode", ["first_order", "higher_order"])
def test_of_thousands_of_operators(mode, level):
    """Its tape is memory of the plan, however many values are alive at its end."""
    x = relay.var("x", shape=(2,), dtype="float64")
    y = x
    for i in range(STEPS):
        y = relay.sin(y) if i % 2 else y * relay.const(1.25, "float64")
    exe = relay.build(relay.transform.gradient(relay.Function([x], y), mode=mode), opt_level=level)
    given = np.array([0.5, -1.0])
    value, slope = given, np.ones(2)
    for i in range(STEPS):
        slope = slope * np.cos(value) if i % 2 else slope * 1.25
        value = np.sin(value) if i % 2 else value * 1.25
    found, (gradient,) = exe(given)
    np.testing.assert_allclose(found, value, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9)


@relay.function(fixed_sizes=True)
def last(w, xs):
    h = np.zeros(4)
    for t in range(xs.shape[0]):
        h = np.tanh(h * w + xs[t])
    return h.sum()


def test_a_step_that_reads_a_line_adds_that_line_to_the_gradient():
    random = np.random.default_rng(0)
    w, xs = random.normal(size=4), random.normal(size=(STEPS, 4))
    slope = relay.grad(last, argnums=(0, 1))
    dw, dxs = slope(w, xs)
    states = [np.zeros(4)]
    for x in xs:
        states.append(np.tanh(states[-1] * w + x))
    back, wanted_w, wanted_xs = np.ones(4), np.zeros(4), np.zeros_like(xs)
    for t in reversed(range(STEPS)):
        wanted_xs[t] = back * (1 - states[t + 1] ** 2)
        wanted_w += wanted_xs[t] * states[t]
        back = wanted_xs[t] * w
    np.testing.assert_allclose(dxs, wanted_xs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dw, wanted_w, rtol=1e-9)
    # Only zeros are made of that size, once; then lines are written. A sum of such tensors in each
    # step would be a number of steps squared.
    text = relay.optimize(slope.lower(w, xs).module).astext(show_meta_data=False)
    made = re.findall(r"Primitive=1.*-> Tensor\[\(5000, 4\), float64\] {\n *(.*)", text)
    assert made and {re.sub(r".*= |\(.*", "", body) for body in made} == {"zeros", "update_slice"}


def test_lines_of_lanes_are_added_to_the_gradient():
    """Each lane reads another line."""
    x, at = relay.var("x", shape=(6, 3)), relay.var("at", shape=(), dtype="int32")
    line = relay.take(x, at, axis=0, mode="clip")
    slope = relay.transform.gradient(relay.Function([x, at], relay.sum(line * line)))
    many = relay.transform.vmap(slope, in_axes=(None, 0), strict=True)
    data, places = np.float32(np.random.default_rng(1).normal(size=(6, 3))), np.int32([4, -3, 0, 9])
    _, gradients = relay.build(many)(data, places)
    wanted = np.zeros((4, 6, 3), "float32")
    for lane, place in enumerate(np.clip(places, 0, 5)):
        wanted[lane, place] = 2 * data[place]
    np.testing.assert_allclose(gradients[0], wanted, rtol=1e-6)
