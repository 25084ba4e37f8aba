"""No NaN comes out of a branch of `where` that is not taken: gradients, and gradients of gradients."""

import numpy as np
import pytest

import relay

pytestmark = pytest.mark.drawn(3)

VERSION = '#[version = "0.0.5"]\n'
X = np.array([-1, 0, 0.5, 2])
LEVELS = [0, 1, 2, 3]


def safe(condition, x=X):
    """The elements that are taken, and 1 for the others."""
    return np.where(condition, x, 1)


TAKEN = X > 0
LOG = np.log(safe(TAKEN))
X_LOG_X = (np.where(TAKEN, LOG + 1, 0), np.where(TAKEN, 1 / safe(TAKEN), 0))
BOTH = X_LOG_X[0] * 2, X_LOG_X[1] * 2
Q = safe(TAKEN) * LOG
SIGNS = np.array([[1], [-1]])
MIRRORED = SIGNS * X + 1.5
INSIDE = safe(MIRRORED > 0, MIRRORED)

# The function, its slope at X and its second derivative: all of them are sums over functions of one element.
CASES = {
    "product": ("where(greater(%x, 0f64), multiply(%x, log(%x)), 0f64)", *X_LOG_X),
    "second_branch": ("where(less_equal(%x, 0f64), 0f64, multiply(%x, log(%x)))", *X_LOG_X),
    "not": (
        "where(logical_not(greater(%x, 0f64)), 0f64, multiply(%x, log(%x)))",
        *X_LOG_X,
    ),
    "finite_value_infinite_slope": (
        "where(greater(%x, 0f64), multiply(%x, sqrt(%x)), 3f64)",
        np.where(TAKEN, 1.5 * np.sqrt(safe(TAKEN)), 0),
        np.where(TAKEN, 0.75 / np.sqrt(safe(TAKEN)), 0),
    ),
    "square_of_a_product": (
        "let %q = multiply(%x, log(%x)); where(greater(%x, 0f64), multiply(%q, %q), 0f64)",
        np.where(TAKEN, 2 * Q * (LOG + 1), 0),
        np.where(TAKEN, 2 * ((LOG + 1) ** 2 + Q / safe(TAKEN)), 0),
    ),
    "quotient": (
        "where(greater(%x, 0f64), divide(log(%x), multiply(%x, %x)), 0f64)",
        np.where(TAKEN, (1 - 2 * LOG) / safe(TAKEN) ** 3, 0),
        np.where(TAKEN, (6 * LOG - 5) / safe(TAKEN) ** 4, 0),
    ),
    "overflow": (
        "let %y = multiply(%x, 1000f64);\n  where(less(%y, 100f64), log(add(1f64, exp(%y))), %y)",
        np.array([0, 500, 1000, 1000]),
        np.array([0, 250000, 0, 0]),
    ),
    "nested": (
        "where(greater(%x, 0f64), where(less(%x, 1f64), multiply(%x, log(%x)),"
        " multiply(%x, log(subtract(%x, 1f64)))), 0f64)",
        np.array([0, 0, np.log(0.5) + 1, 2]),
        np.array([0, 0, 2, 0]),
    ),
    "below_another_chain": (
        "let %y = where(less(%x, 1f64), multiply(%x, log(%x)), %x);\n"
        "  where(greater(%x, 0f64), multiply(%y, log(%x)), 0f64)",
        np.array([0, 0, np.log(0.5) ** 2 + 2 * np.log(0.5), np.log(2) + 1]),
        np.array([0, 0, 2 * (np.log(0.5) + 1) / 0.5, 1 / 2]),
    ),
    "two_conditions": (
        "let %q = multiply(%x, log(%x));\n"
        "  add(where(greater(%x, 0f64), %q, 0f64), where(greater(%x, 1f64), %q, 0f64))",
        X_LOG_X[0] * np.array([1, 1, 1, 2]),
        X_LOG_X[1] * np.array([1, 1, 1, 2]),
    ),
    "a_condition_on_the_value": (
        "let %q = multiply(%x, log(%x)); where(isfinite(%q), %q, 0f64)",
        *X_LOG_X,
    ),
    "a_condition_on_a_first_choice": (
        "let %q = where(greater(%x, 0f64), multiply(%x, log(%x)), 7f64);\n"
        "  where(less(%q, 5f64), multiply(%q, log(%x)), 0f64)",
        np.where(TAKEN, LOG**2 + 2 * LOG, 0),
        np.where(TAKEN, 2 * (LOG + 1) / safe(TAKEN), 0),
    ),
    "used_outside": (
        "let %y = add(%x, 3f64); let %l = log(%y);\n"
        "  add(where(greater(%x, 0f64), multiply(%l, log(%x)), 0f64), %l)",
        np.where(TAKEN, np.log(X + 3) / safe(TAKEN) + LOG / (X + 3), 0) + 1 / (X + 3),
        np.where(
            TAKEN,
            2 / safe(TAKEN) / (X + 3) - np.log(X + 3) / safe(TAKEN) ** 2 - LOG / (X + 3) ** 2,
            0,
        )
        - 1 / (X + 3) ** 2,
    ),
    "reshape_and_transpose": (
        "let %y = transpose(reshape(multiply(%x, log(%x)), newshape=[2, 2]), axes=[1, 0]);\n"
        "  where(greater(transpose(reshape(%x, newshape=[2, 2]), axes=[1, 0]), 0f64), %y, 0f64)",
        *X_LOG_X,
    ),
    "slice": (
        "let %y = strided_slice(multiply(%x, log(%x)), begin=[1], end=[4]);\n"
        "  where(greater(strided_slice(%x, begin=[1], end=[4]), 0f64), %y, 0f64)",
        *X_LOG_X,
    ),
    "condition_broadcasts": (
        "where(greater(expand_dims(%x, axis=1), 0f64),\n"
        '  multiply(expand_dims(multiply(%x, log(%x)), axis=1), ones(shape=[1, 2], dtype="float64")), 0f64)',
        *BOTH,
    ),
    "branch_broadcasts": (
        'let %c = logical_and(greater(expand_dims(%x, axis=0), 0f64), ones(shape=[2, 1], dtype="bool"));\n'
        "  where(%c, multiply(%x, log(%x)), 0f64)",
        *BOTH,
    ),
    "factor_broadcasts": (
        'let %c = greater(expand_dims(%x, axis=0), full(0f64, shape=[2, 1], dtype="float64"));\n'
        '  where(%c, multiply(multiply(%x, log(%x)), ones(shape=[2, 4], dtype="float64")), 0f64)',
        *BOTH,
    ),
    "sums": (
        "let %y = reshape(%x, newshape=[2, 2]);\n"
        "  where(greater(min(%y, axis=[1]), 0f64), sum(multiply(%y, log(%y)), axis=[1]), 0f64)",
        X_LOG_X[0] * [0, 0, 1, 1],
        X_LOG_X[1] * [0, 0, 1, 1],
    ),
    "concatenate": (
        "where(greater(concatenate((%x, %x)), 0f64), concatenate((multiply(%x, log(%x)), %x)), 0f64)",
        np.where(TAKEN, X_LOG_X[0] + 1, 0),
        X_LOG_X[1],
    ),
    "stack_of_one_part_that_others_use": (
        "let %q = multiply(%x, log(%x)); let %l = log(add(%x, 2f64));\n"
        "  let %c = greater(stack((%x, %x), axis=1), 0f64);\n"
        "  add(sum(where(%c, stack((%q, %l), axis=1), 0f64), axis=[1]), %l)",
        X_LOG_X[0] + (1 + TAKEN) / (X + 2),
        X_LOG_X[1] - (1 + TAKEN) / (X + 2) ** 2,
    ),
    "split": (
        "let %s = split(multiply(%x, log(%x)), indices_or_sections=2, axis=0);\n"
        "  let %c = split(greater(%x, 0f64), indices_or_sections=2, axis=0);\n"
        "  add(where(%c.0, %s.0, 0f64), where(%c.1, %s.1, 0f64))",
        *X_LOG_X,
    ),
    "split_of_which_one_part_is_asked_for": (
        "let %s = split(multiply(%x, log(%x)), indices_or_sections=2, axis=0);\n"
        "  where(greater(strided_slice(%x, begin=[0], end=[2]), 0f64), %s.0, %s.1)",
        # The second half is taken where the first is not, for both of these elements.
        np.where([False, False, True, True], X_LOG_X[0], 0),
        np.where([False, False, True, True], X_LOG_X[1], 0),
    ),
    "adjoints_of_copies": (
        'let %y = broadcast_to(%x, shape=[2, 4]); let %o = full(1f64, shape=[1, 4], dtype="float64");\n'
        "  let %z = add(multiply(%y, concatenate((%o, negative(%o)))), 1.5f64);\n"
        "  where(greater(%z, 0f64), multiply(%y, log(%z)), 0f64)",
        np.where(MIRRORED > 0, np.log(INSIDE) + SIGNS * X / INSIDE, 0).sum(0),
        np.where(MIRRORED > 0, 2 * SIGNS / INSIDE - X / INSIDE**2, 0).sum(0),
    ),
    "product_of_matrices": (
        "let %y = expand_dims(%x, axis=1);\n"
        '  let %o = ones(shape=[2, 1], dtype="float64");\n'
        "  where(greater(%y, 0f64), nn.dense(multiply(%y, log(%y)), %o), 0f64)",
        *BOTH,
    ),
    "both_factors_of_a_product": (
        "let %y = reshape(%x, newshape=[4, 1, 1]); let %c = greater(%y, 0f64);\n"
        "  where(%c, nn.batch_matmul(log(%y), %y), 0f64)",
        *X_LOG_X,
    ),
    "a_factor_for_all_rows": (
        "let %y = expand_dims(%x, axis=1); let %o = stop_gradient(log(%y));\n"
        "  let %w = expand_dims(sum(where(greater(%x, 0f64), %x, 0f64), keepdims=True), axis=1);\n"
        "  where(greater(%y, 0f64), nn.dense(%o, %w), 0f64)",
        np.where(TAKEN, LOG.sum(), 0),
        0 * X,
    ),
    "einsum": (
        "let %y = expand_dims(%x, axis=1);\n"
        "  where(greater(transpose(%y, axes=[1, 0]), 0f64),"
        ' einsum((log(%y), %x), equation="ij,i->ji"), 0f64)',
        *X_LOG_X,
    ),
    "convolution": (
        'let %y = reshape(%x, newshape=[1, 1, 4]); let %k = ones(shape=[1, 1, 1], dtype="float64");\n'
        "  where(greater(%y, 0f64), nn.conv1d(multiply(%y, log(%y)), %k, kernel_size=[1], channels=1), 0f64)",
        *X_LOG_X,
    ),
    "windows": (
        "let %y = reshape(multiply(%x, log(%x)), newshape=[1, 1, 4]);\n"
        '  let %k = ones(shape=[1, 1, 2], dtype="float64");\n'
        "  let %c = greater(reshape(strided_slice(%x, begin=[0], end=[3]), newshape=[1, 1, 3]), 0f64);\n"
        "  where(%c, nn.conv1d(%y, %k, kernel_size=[2], channels=1), 0f64)",
        *X_LOG_X,
    ),
    "one_condition_for_all": (
        "let %y = reshape(%x, newshape=[2, 2]);\n"
        "  where(less(sum(%x), 0f64), nn.dense(multiply(%y, log(%y)), sqrt(%y)), 0f64)",
        0 * X,
        0 * X,
    ),
}


def program(body):
    return relay.parse(VERSION + "def @main(%x: Tensor[(4), float64]) {\n  " + body + "\n}")


def run(function, level, *args):
    if level is None:
        return relay.create_executor("debug", relay.IRModule.from_expr(function)).evaluate()(*args)
    with relay.transform.PassContext(level):
        return relay.build(function)(*args)


@pytest.mark.parametrize("level", [None, *LEVELS])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_slopes(case, level):
    body, slope, second = CASES[case]
    mod = program(body)
    main = mod.functions["main"]
    one = np.ones(4)
    for mode in ("first_order", "higher_order"):
        g = relay.transform.gradient(main, mod, mode=mode)
        value, (dx,) = run(g, level, X)
        assert np.isfinite(np.asarray(value)).all()
        np.testing.assert_allclose(np.asarray(dx), slope, err_msg=mode)
        # Forward over reverse, and reverse over reverse.
        dx_alone = relay.Function(g.params, relay.TupleGetItem(relay.TupleGetItem(g.body, 1), 0))
        for twice in (
            relay.transform.gradient(dx_alone, mode=mode),
            relay.transform.jvp(dx_alone),
        ):
            args = [X] if len(twice.params) == 1 else [X, one]
            _, ddx = run(twice, level, *args)
            if len(args) == 1:
                (ddx,) = ddx
            np.testing.assert_allclose(np.asarray(ddx), second, err_msg=mode)
    _, change = run(relay.transform.jvp(main, mod), level, X, one)
    np.testing.assert_allclose(np.asarray(change).sum(), slope.sum())
    np.testing.assert_allclose(
        np.asarray(run(relay.transform.hvp(main, mod), level, X, one)[0]), second
    )


@relay.function
def entropy(x):
    return x * np.log(x)


@relay.function
def entropies(x, floor):
    return entropy(x) + np.where(x > 1, entropy(x - 1), floor)


def test_branches_reach_into_functions_that_they_call():
    found = relay.grad(lambda x: np.where(x > 0, entropies(x, 0.0), 0.0).sum())(X)
    more = np.where(X > 1, np.log(safe(X > 1, X - 1)) + 1, 0)
    np.testing.assert_allclose(found, X_LOG_X[0] + more)
    second = relay.hvp(lambda x: np.where(x > 0, entropy(x), 0.0).sum())(X, np.ones(4))
    np.testing.assert_allclose(second, X_LOG_X[1])


RECURSION = (
    VERSION
    + """
def @power(%x: Tensor[(3), float64], %n: int32) -> Tensor[(3), float64] {
  if (less_equal(%n, 0)) { log(%x) } else { multiply(%x, @power(%x, subtract(%n, 1))) }
}
def @of_all(%x: Tensor[(3), float64], %n: int32) {
  where(greater(sum(%x), 0f64), @power(%x, %n), 0f64)
}
def @by_element(%x: Tensor[(3), float64], %n: int32) {
  let %r = @power(%x, %n); where(greater(%x, 0f64), %r, 0f64)
}
"""
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("of", ["of_all", "by_element"])
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_nothing_comes_out_of_a_recursion_that_nobody_asks_for(of, level):
    with relay.transform.PassContext(level):
        slope = relay.build(relay.transform.add_derivative(relay.parse(RECURSION), of, "main"))
    for x in (np.zeros(3), -np.ones(3), np.array([1, 2, 3.0])):
        value, (dx, _) = slope(x, np.int32(2))
        at = safe(x > 0, x)
        np.testing.assert_allclose(np.asarray(value), np.where(x > 0, at**2 * np.log(at), 0))
        np.testing.assert_allclose(np.asarray(dx), np.where(x > 0, 2 * at * np.log(at) + at, 0))
