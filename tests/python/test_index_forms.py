"""Drawn forms of indexing against NumPy: values, gradients in both modes, lanes and hessians.

One of eight cases has an index outside, which the run refuses with the index, the size and the line.
"""

import os
import re

import index_cases
import numpy as np
import pytest

import relay

COUNT = 200
LONG = int(os.environ.get("RELAY_EXAMPLES", "5000"))


def agree(got, want, what, case):
    np.testing.assert_allclose(
        np.asarray(got), want, rtol=1e-6, atol=1e-4, err_msg=f"{what} of\n{case.text}{case.args}"
    )


def lanes_of(case):
    """Three lanes of x and of i, the second as it is."""
    x, i, *rest = case.args
    xs = np.stack([x * 0.5, x, x * -1.25])
    return xs, np.array([i - 1, i, i - 1]), rest


def check_forward(case, f):
    x, *rest = case.args
    along = np.cos(np.arange(x.size)).reshape(x.shape)
    _, slope = relay.jvp(f)(*case.args, along, *(None for _ in rest))
    agree(slope, index_cases.slope(case, along), "the tangent", case)


def check_lanes(case, f):
    xs, many, rest = lanes_of(case)
    try:
        want = [case.python(x, i, *rest) for x, i in zip(xs, many, strict=True)]
    except IndexError:
        with pytest.raises(relay.RelayError, match="out of bounds"):
            relay.vmap(f, in_axes=(0, 0, None, None, None))(xs, many, *rest)
        many = np.array([case.args[1]] * 3)
        want = [case.python(x, i, *rest) for x, i in zip(xs, many, strict=True)]
    got = relay.vmap(f, in_axes=(0, 0, None, None, None))(xs, many, *rest)
    agree(got, want, "the lanes", case)


def check_hessian(case, f):
    x, *rest = case.args
    slopes, step = relay.grad(f), 1e-5
    got = np.asarray(relay.hessian(f)(x, *rest))
    for at in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[at] = step
        up, down = (np.asarray(slopes(x + d, *rest)) for d in (move, -move))
        agree(got[(..., *at)], (up - down) / (2 * step), f"the hessian at {at}", case)


def check_outside(case, f):
    with pytest.raises(relay.RelayError) as error:
        pytest.fail(f"gave {f(*case.args)} for\n{case.text}{case.args}")
    message = str(error.value)
    # What is known when it is compiled is refused then.
    if isinstance(error.value, relay.RunError):
        pattern = r"E0605\]: index -?\d+ is out of bounds for an axis of size \d+ \((.*):(\d+)\)"
        file, line = re.search(pattern, message).groups()
        code = case.python.__code__
        lines = {number for _, _, number in code.co_lines()}
        assert file == os.path.basename(code.co_filename) and int(line) in lines, message


CHECKS = (check_forward, check_lanes, check_hessian)


def check(case, all_ways):
    f = relay.function(case.python, fixed_sizes=case.number % 2 == 0)
    if case.fails:
        return check_outside(case, f)
    value, slopes = relay.value_and_grad(f)(*case.args)
    agree(value, case.python(*case.args), "the value", case)
    agree(slopes, index_cases.gradient(case), "the gradient", case)
    for number, way in enumerate(CHECKS):
        lanes_part = way is check_lanes and case.dynamic
        if not lanes_part and (all_ways or number == case.number % len(CHECKS)):
            way(case, f)
    if all_ways:
        agree(f(*case.args), case.python(*case.args), "the value alone", case)


@pytest.mark.parametrize("part", range(4))
def test_forms(part, tmp_path):
    cases = index_cases.draw(part, COUNT // 4, tmp_path)
    assert len(cases) > COUNT // 5
    for case in cases:
        check(case, all_ways=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(max(1, LONG // 100)))
def test_many_forms(part, tmp_path):
    for case in index_cases.draw(1000 + part, 100, tmp_path):
        check(case, all_ways=True)
