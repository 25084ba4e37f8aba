"""Derivatives of functions in Python: relay.grad and the like, against differences and closed forms."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import pytest

import relay

rng = np.random.default_rng(11)


class Line(NamedTuple):
    w: object
    b: object


@relay.function
def squares(line, x, y):
    return ((x @ line.w + line.b - y) ** 2).mean()


@relay.function
def cube(x):
    return x * x * x


def test_the_gradient_of_a_structure_has_its_structure():
    line = Line(rng.normal(size=(3, 2)), rng.normal(size=2))
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    found = relay.grad(squares)(line, x, y)
    error = 2 * (x @ line.w + line.b - y) / 10
    assert isinstance(found, Line)
    np.testing.assert_allclose(found.w, x.T @ error)
    np.testing.assert_allclose(found.b, error.sum(axis=0))
    value, (again, dx) = relay.value_and_grad(squares, argnums=(0, 1))(line, x, y)
    np.testing.assert_allclose(value, squares.python(line, x, y))
    np.testing.assert_allclose(again.w, found.w)
    np.testing.assert_allclose(dx, error @ line.w.T)


def test_derivatives_of_a_number():
    assert relay.grad(cube)(2.0) == 12
    assert relay.grad(relay.grad(cube))(2.0) == 12
    assert relay.grad(relay.grad(relay.grad(cube)))(2.0) == 6
    value, change = relay.jvp(cube)(2.0, 10.0)
    assert (value, change) == (8, 120)
    assert relay.hvp(cube)(2.0, 10.0) == 120
    value, (change,) = relay.vjp(cube)(np.float32([1, 2]), np.float32([1, 10]))
    assert change.tolist() == [3, 120]


def test_matrices_of_derivatives():
    @relay.function(fixed_sizes=True)
    def pair(x, scale):
        return np.stack([x[0] * x[1], np.sin(x[1]) * scale])

    x = np.array([2.0, 0.5])
    np.testing.assert_allclose(relay.jacobian(pair)(x, 3.0), [[0.5, 2.0], [0, 3 * math.cos(0.5)]])

    @relay.function(fixed_sizes=True)
    def product(x, scale):
        return x[0] ** 2 * x[1] * scale

    np.testing.assert_allclose(relay.hessian(product)(x, 3.0), [[3, 12], [12, 0]])


def test_logarithms_of_what_is_near_one():
    x = np.array([-0.5, -1e-13, 0, 1e-30, 2e-16, 1e-9, 3, 1e20])
    once = relay.grad(lambda x: np.log1p(x).sum())
    twice = relay.grad(lambda x: once(x).sum())
    np.testing.assert_allclose(once(x), 1 / (1 + x), rtol=1e-15)
    np.testing.assert_allclose(twice(x), -1 / (1 + x) ** 2, rtol=1e-15)
    y = np.array([-0.5, 30, 0, 40, -800, 1e-9, np.inf, -1e20])
    by_x, by_y = relay.grad(lambda x, y: np.logaddexp(x, y).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(by_x, 1 / (1 + np.exp(y - x)), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(by_x + by_y, 1, rtol=1e-13)


def test_matrices_of_structures():
    @relay.function
    def layer(p, x):
        return {"h": x @ p["w"] + p["b"], "count": np.argmax(x), "sum": (x.sum(), x)}

    p, x = {"w": np.arange(6.0).reshape(3, 2), "b": np.array([0.5, 1])}, np.array([1.0, 2, 3])
    found = relay.jacobian(lambda p: layer(p, x)["h"])(p)
    by_w = np.einsum("i,jk->jik", x, np.eye(2))
    np.testing.assert_array_equal(found["w"], by_w)
    np.testing.assert_array_equal(found["b"], np.eye(2))

    both = relay.jacobian(layer, argnums=(1, 0))(p, x)
    assert both["count"] is None and set(both) == {"h", "count", "sum"}
    (by_x, by_p), (of_sum, _), (of_x, none) = both["h"], both["sum"][0], both["sum"][1]
    np.testing.assert_array_equal(by_x, p["w"].T)
    np.testing.assert_array_equal(by_p["w"], by_w)
    np.testing.assert_array_equal(of_sum, np.ones(3))
    np.testing.assert_array_equal(of_x, np.eye(3))
    assert not none["w"].any() and none["w"].shape == (3, 3, 2)


@relay.function(fixed_sizes=True)
def adapted(w, x, rate):
    inner = lambda w: ((w * x).sum() - 1.0) ** 2  # noqa: E731
    return inner(w - rate * relay.grad(inner)(w))


def test_a_derivative_within_a_function_that_is_differentiated():
    w, x = rng.normal(size=3), rng.normal(size=3)
    found, by_x, by_rate = relay.grad(adapted, argnums=(0, 1, 2))(w, x, 0.1)

    def plain(w, x, rate):
        return (((w - rate * 2 * ((w * x).sum() - 1) * x) * x).sum() - 1) ** 2

    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        slope = (plain(w + step, x, 0.1) - plain(w - step, x, 0.1)) / 2e-6
        np.testing.assert_allclose(found[i], slope, rtol=1e-6)
        slope = (plain(w, x + step, 0.1) - plain(w, x - step, 0.1)) / 2e-6
        np.testing.assert_allclose(by_x[i], slope, rtol=1e-6)
    slope = (plain(w, x, 0.1 + 1e-6) - plain(w, x, 0.1 - 1e-6)) / 2e-6
    np.testing.assert_allclose(by_rate, slope, rtol=1e-6)


def test_loops_recursion_and_lists():
    @relay.function
    def power(x, n):
        out = x
        while n > 1:
            out = out * x
            n = n - 1
        return out

    assert relay.grad(power)(2.0, 5) == 80

    @relay.function
    def factorial_like(x, n: int) -> float:
        return 1.0 if n == 0 else (x + n) * factorial_like(x, n - 1)

    # d/dx (x + 1)(x + 2)(x + 3) at 0 is 3 2 + 3 1 + 2 1.
    assert relay.grad(factorial_like)(0.0, 3) == 11

    @relay.function
    def total(values: list[float], by: float) -> float:
        out = 0.0
        for v in values:
            out += v * v * by
        return out

    assert relay.grad(total)([1.0, 2.0, 3.0], 2.0) == [4, 8, 12]
    assert relay.grad(total, argnums=1)([1.0, 2.0, 3.0], 2.0) == 14


def test_tangents_and_weights_of_lists():
    @relay.function
    def folded(values: list[float], by: float) -> float:
        out = 0.0
        for v in values:
            out = np.sin(out * by) + v * v * by
        return out

    values, by, along, turn, step = [0.3, 0.5, 0.2], 0.7, [1.0, 0.5, -2.0], 0.5, 1e-6
    slope = relay.grad(folded, argnums=(0, 1))

    def moved(by_how_much):
        changed = [v + by_how_much * d for v, d in zip(values, along, strict=True)]
        return changed, by + by_how_much * turn

    (up, up_by), (down, down_by) = slope(*moved(step)), slope(*moved(-step))
    expected = [(a - b) / (2 * step) for a, b in zip([*up, up_by], [*down, down_by], strict=True)]
    for found, found_by in (
        relay.hvp(folded)(values, by, along, turn),
        relay.jvp(slope)(values, by, along, turn)[1],
    ):
        np.testing.assert_allclose([*found, found_by], expected, rtol=1e-5)
    with pytest.raises(relay.RunError, match="E0607"):
        relay.jvp(folded)(values, by, along[:2], turn)

    @relay.function
    def scaled(values: list[float], by: float) -> list[float]:
        out: list[float] = []
        for v in values:
            out.append(v * by)
        return out

    assert relay.jvp(scaled)([1.0, 2.0], 3.0, [10.0, 0.0], 1.0)[1] == [31, 2]
    assert relay.vjp(scaled)([1.0, 2.0], 3.0, [1.0, 10.0])[1] == ([3, 30], 21)

    @relay.function
    def counted(numbers: list[int], x: float) -> float:
        for n in numbers:
            x = x * n
        return x

    with pytest.raises(relay.UserError, match=r"E0905.*tangent of these data"):
        relay.jvp(counted)([1, 2], 0.5, [0, 0], 1.0)


@pytest.mark.parametrize("tangent", [np.ones(4), np.ones((3, 3)), 2.0])
def test_a_tangent_of_other_sizes_is_refused(tangent):
    with pytest.raises(relay.UserError, match=r"E0905.*a tangent has the sizes of its argument"):
        relay.jvp(cube)(np.ones(3), tangent)


def test_further_results_and_what_holds_no_floats():
    @relay.function
    def loss(params, scale):
        found = params["w"] * scale + params["shift"]
        return found.sum(), {"largest": found.max(), "count": params["shift"].sum()}

    params = {"w": np.float32([1, 2]), "shift": np.int32([3, 4])}
    grads, more = relay.grad(loss, has_aux=True)(params, np.float32(5))
    assert grads["w"].tolist() == [5, 5] and grads["shift"] is None
    assert more["largest"] == 14 and more["count"] == 7


REFUSED = [
    ("relay.grad(f)(x)", "one floating number", "E0905"),
    ("relay.grad(lambda v: (v * 2).astype('int32').sum())(x)", "one floating number", "E0905"),
    ("relay.grad(lambda v: v.sum(), argnums=1)(x)", "no argument 1", "E0907"),
    ("relay.grad(lambda v: v.sum(), argnums=-1)(x)", "argnums", "E0907"),
    ("relay.grad(lambda v: v.sum(), has_aux=True)(x)", "a number and something else", "E0905"),
    ("relay.grad(lambda n: n * x.sum())(2)", "argument 0 holds no floats", "E1001"),
    ("relay.jacobian(f)(x.astype('int32'))", "argument 0 holds no floats", "E1001"),
    ("relay.grad(lambda v: (v * np.random.rand()).sum())(x)", "come from a key", "E0907"),
    ("relay.jvp(f)(x)", "a tangent for each", "E0907"),
    ("relay.vjp(f)(x, np.ones(3, 'float32'))", "the weight of a result has its sizes", "E0905"),
    ("relay.jvp(f)(x, (x, x))", "structure of its argument", "E0905"),
]


@pytest.mark.parametrize(("expression", "says", "code"), REFUSED)
def test_what_is_refused_has_a_place(expression, says, code, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(
        f"import numpy as np\nimport relay\n\n@relay.function\ndef wrong(x):\n    f = lambda v: v * 2\n"
        f"    return {expression}\n"
    )
    names: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(relay.UserError, match=says) as error:
        names["wrong"](np.float32([1, 2]))
    assert code in str(error.value) and "wrong.py:" in str(error.value)


def test_arguments_are_known_by_number():
    with pytest.raises(TypeError, match="argnums"):
        relay.grad(cube, argnums=True)


def test_published_identities():
    """The gradient of log-sum-exp is softmax; that of a Gaussian's log density its precision's part."""

    @relay.function
    def log_sum_exp(x):
        top = x.max()
        return top + np.log(np.exp(x - top).sum())

    @relay.function
    def log_density(x, mean, precision, log_determinant):
        centred = x - mean
        return (
            0.5 * log_determinant
            - 0.5 * (centred @ (precision @ centred))
            - 0.5 * x.shape[0] * np.float64(np.log(2 * np.pi))
        )

    for x in (np.array([0.5, -1, 2]), np.array([1e4, -1e4, 1e4 - 1]), np.array([-1e4, -1e4 - 3])):
        shifted = np.exp(x - x.max())
        softmax = shifted / shifted.sum()
        value, slope = relay.value_and_grad(log_sum_exp)(x)
        np.testing.assert_allclose(value, x.max() + np.log(shifted.sum()), rtol=1e-14)
        np.testing.assert_allclose(slope, softmax, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(
            relay.hessian(log_sum_exp)(x), np.diag(softmax) - np.outer(softmax, softmax), atol=1e-12
        )
    random = np.random.default_rng(4)
    half, x, mean = random.normal(size=(3, 3)), random.normal(size=3), random.normal(size=3)
    precision = half @ half.T + np.eye(3)
    centred, determinant = x - mean, np.linalg.slogdet(precision)[1]
    value, (dx, dmean, dprecision) = relay.value_and_grad(log_density, argnums=(0, 1, 2))(
        x, mean, precision, determinant
    )
    known = 0.5 * determinant - 0.5 * centred @ precision @ centred - 1.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(value, known, rtol=1e-12)
    np.testing.assert_allclose(dx, -precision @ centred, rtol=1e-12)
    np.testing.assert_allclose(dmean, precision @ centred, rtol=1e-12)
    np.testing.assert_allclose(dprecision, -0.5 * np.outer(centred, centred), rtol=1e-12)


def plain(x):
    return (x * x * x).sum()


def test_functions_that_are_not_decorated_are_read_as_if_they_were():
    x = np.arange(3.0)
    np.testing.assert_array_equal(relay.grad(plain)(x), 3 * x * x)
    np.testing.assert_array_equal(relay.hessian(plain)(x), np.diag(6 * x))
    lanes = relay.vmap(relay.grad(lambda x: (x * x).sum()))
    np.testing.assert_array_equal(lanes(np.stack([x, x + 1])), [2 * x, 2 * x + 2])
    assert relay.grad(relay.grad(lambda x: x * x * x))(2.0) == 12
    # What functools.wraps copies is that of the function within.
    wrapper = functools.wraps(plain)(lambda x: (x * x).sum())
    np.testing.assert_array_equal(relay.grad(wrapper)(x), 2 * x)
    for other in (np.sin, functools.partial(plain), None):
        with pytest.raises(TypeError, match="takes a function, not"):
            relay.grad(other)


@pytest.mark.parametrize("f", [plain, cube])
def test_a_derivative_is_the_same_function_each_time(f):
    assert relay.grad(f) is relay.grad(f) is not relay.value_and_grad(f)
    assert relay.grad(f) is not relay.grad(f, argnums=(0,))
    assert relay.vmap(f) is relay.vmap(f) is not relay.vmap(f, in_axes=None)
    # It is compiled with the settings around its first call.
    with relay.transform.PassContext(opt_level=1):
        assert relay.grad(f) is relay.grad(f)
        under = relay.grad(f)
    assert under is not relay.grad(f)


def test_clipping_passes_on_what_arrives_at_its_bounds():
    clipped = relay.grad(lambda x: np.clip(x, 0, 1).sum())
    np.testing.assert_array_equal(clipped(np.array([-1.0, 0, 0.5, 1, 2])), [0, 1, 1, 1, 0])
    # Bounds that are arrays, or cross, are NumPy's minimum of a maximum.
    crossed = relay.function(lambda x: np.clip(x, 2, 1))
    np.testing.assert_array_equal(crossed(np.array([0.0, np.nan])), np.clip([0.0, np.nan], 2, 1))
    assert relay.function(lambda x: np.clip(x, 0, 1))(np.array([np.nan]))[0] != 0
