"""Derivatives and batches of slices whose size control flow decides, against NumPy and differences."""

import itertools

import numpy as np
import pytest

import relay

LOWS = ["", "1", "2", "-3"]
HIGHS = ["", "-1", "4", "-2"]
SIZE = 6

BRANCH = """
def f(x):
    y = x[{a}] if np.sum(x) > 0 else x[{b}]
    return np.sum(y * y * y)
"""
STATEMENT = """
def f(x):
    y = x * 2
    if np.sum(x) > 0:
        y = y[{a}]
    else:
        y = y[{b}] * x[0]
    return np.sum(y * y * y)
"""
FOR = """
def f(x):
    y = x
    for i in range(2):
        y = y[{a}] * 2 if i == 0 else y[{b}]
    return np.sum(y * y * y)
"""
WHILE = """
def f(x):
    y, i = x, 0
    while i < 2:
        y = y[{a}] if np.sum(y) > 0 else y[{b}]
        i += 1
    return np.sum(y * y * y)
"""
FORMS = {"branch": BRANCH, "statement": STATEMENT, "for": FOR, "while": WHILE}


def drawn(count, seed):
    """Pairs of slices; about half of those of a pair differ in size."""
    rng = np.random.default_rng(seed)
    slices = [f"{low}:{high}" for low, high in itertools.product(LOWS, HIGHS)]
    return [tuple(rng.choice(slices, 2)) for _ in range(count)]


def functions(form, a, b, folder, fixed_sizes):
    """The Python function and the one of Relay."""
    path = folder / "program.py"
    path.write_text(FORMS[form].format(a=a, b=b))
    names = {"np": np}
    exec(compile(path.read_text(), path, "exec"), names)
    return names["f"], relay.function(names["f"], fixed_sizes=fixed_sizes)


def gradient(f, x, step=1e-4):
    rows = np.eye(x.size) * step
    return np.array([(f(x + r) - f(x - r)) / (2 * step) for r in rows])


def check(form, a, b, folder, fixed_sizes=False):
    plain, compiled = functions(form, a, b, folder, fixed_sizes)
    points = np.random.default_rng(1).uniform(0.5, 1.5, (2, SIZE))
    points[1] *= -1
    what = f"{form} of [{a}] and [{b}]"
    for x in points:
        near = dict(rtol=1e-6, atol=1e-5, err_msg=what)
        slope = gradient(plain, x)
        np.testing.assert_allclose(compiled(x), plain(x), **near)
        np.testing.assert_allclose(relay.grad(compiled)(x), slope, **near)
        direction = np.linspace(-1, 2, SIZE)
        _, tangent = relay.jvp(compiled)(x, direction)
        np.testing.assert_allclose(tangent, slope @ direction, **near)
        curve = gradient(lambda at: gradient(plain, at), x, step=1e-3)
        np.testing.assert_allclose(relay.hessian(compiled)(x), curve, rtol=1e-4, atol=1e-3,
                                   err_msg=what)  # fmt: skip
        np.testing.assert_allclose(relay.hvp(compiled)(x, direction), curve @ direction, rtol=1e-4,
                                   atol=1e-3, err_msg=what)  # fmt: skip
    # Lanes that take different ways have values of one size: else the program is refused, or its run.
    try:
        lanes = relay.vmap(compiled)(points)
    except (relay.UserError, relay.RunError) as refused:
        one = np.zeros(SIZE)
        assert eval(f"one[{a}].size != one[{b}].size", {"one": one}), what
        assert refused.code == ("E0401" if fixed_sizes else "E0607"), what
    else:
        np.testing.assert_allclose(lanes, [plain(x) for x in points], **near)
    same = relay.vmap(relay.hessian(compiled))(points[:1].repeat(2, 0))
    np.testing.assert_allclose(same[1], relay.hessian(compiled)(points[0]), **near)


@pytest.mark.parametrize("form", FORMS)
def test_slices_that_differ(form, tmp_path):
    check(form, "1:", ":-1", tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_drawn_slices_of_fixed_sizes(form, tmp_path):
    for a, b in drawn(1, seed=len(form)):
        check(form, a, b, tmp_path, fixed_sizes=True)


@pytest.mark.slow
@pytest.mark.parametrize("fixed_sizes", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_many_drawn_slices(form, fixed_sizes, tmp_path):
    for a, b in drawn(8, seed=10 + len(form)):
        check(form, a, b, tmp_path, fixed_sizes)
