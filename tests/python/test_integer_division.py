"""Quotients and remainders of integers, whatever the operands: no division fails (docs/language.md)."""

import numpy as np
import pytest

import relay

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TRUNCATING = {"divide": 0, "trunc_divide": 0, "mod": 1, "trunc_mod": 1}
FLOORING = {"floor_divide": 0, "floor_mod": 1}


def quotient_and_rest(a, b, floors):
    """Of Python's integers; by zero the dividend and no rest."""
    if b == 0:
        return a, 0
    q, r = divmod(a, b)
    if not floors and r != 0 and (a < 0) != (b < 0):
        q, r = q + 1, r - b
    return q, r


def expected(op, a, b):
    """The operator's result, which wraps, for arrays."""
    part = {**TRUNCATING, **FLOORING}[op]
    a, b = np.broadcast_arrays(a, b)
    exact = [
        quotient_and_rest(int(x), int(y), op in FLOORING)[part]
        for x, y in zip(a.ravel(), b.ravel(), strict=True)
    ]
    bits = a.dtype.itemsize * 8
    wrapped = np.array([x % 2**bits for x in exact], f"uint{bits}")
    return wrapped.view(a.dtype).reshape(a.shape)


def hard_numbers(dtype):
    """The ends of the range, what is near them and near zero, and some others."""
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, 8, 100]
    numbers = [info.max, info.max - 1, info.min, info.min + 1, info.max // 2, info.max // 2 + 1]
    numbers += near + ([-x for x in near] if info.min < 0 else [])
    return np.array(sorted({x for x in numbers if info.min <= x <= info.max}), dtype)


def check(program, ops, operands, inputs):
    """Evaluator, compiled code and Python's integers agree on all operators."""
    mod = relay.IRModule.from_expr(program)
    evaluated = relay.create_executor("debug", mod).evaluate()(*inputs)
    compiled = relay.build(mod)(*inputs)
    for i, op in enumerate(ops):
        want = expected(op, *operands[i])
        np.testing.assert_array_equal(np.asarray(evaluated[i]), want, err_msg=f"evaluator: {op}")
        np.testing.assert_array_equal(np.asarray(compiled[i]), want, err_msg=f"compiled: {op}")


def operators():
    names = [name for name in [*TRUNCATING, *FLOORING] if hasattr(relay, name)]
    assert {"divide", "mod", "floor_divide", "floor_mod"} <= set(names)
    return names


@pytest.mark.parametrize("dtype", DTYPES)
def test_divisors_of_a_run(dtype):
    numbers = hard_numbers(dtype)
    a, b = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    x, y = relay.var("x", shape=a.shape, dtype=dtype), relay.var("y", shape=b.shape, dtype=dtype)
    ops = operators()
    body = relay.Tuple([getattr(relay, op)(x, y) for op in ops])
    check(relay.Function([x, y], body), ops, [(a, b)] * len(ops), [a, b])
    # One divisor for all lanes.
    scalar = relay.var("s", shape=(), dtype=dtype)
    program = relay.Function(
        [x, scalar], relay.Tuple([getattr(relay, op)(x, scalar) for op in ops])
    )
    exe = relay.build(relay.IRModule.from_expr(program))
    for divisor in numbers:
        results = exe(a, divisor)
        for i, op in enumerate(ops):
            np.testing.assert_array_equal(np.asarray(results[i]), expected(op, a, divisor))


@pytest.mark.parametrize("dtype", DTYPES)
def test_divisors_of_the_program(dtype):
    numbers = hard_numbers(dtype)
    low, high = max(np.iinfo(dtype).min, -1), np.iinfo(dtype)
    divisors = [np.array(d, dtype) for d in {0, 1, low, high.min, high.max, 6}]
    # Several in one vector: the zero among others.
    divisors.append(np.resize(np.array([0, 1, low, 5], dtype), numbers.shape))
    x = relay.var("x", shape=numbers.shape, dtype=dtype)
    ops, operands, calls = [], [], []
    for op in operators():
        for divisor in divisors:
            ops.append(op)
            operands.append((numbers, divisor))
            calls.append(getattr(relay, op)(x, relay.const(divisor)))
    check(relay.Function([x], relay.Tuple(calls)), ops, operands, [numbers])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars(dtype):
    numbers = hard_numbers(dtype)
    x, y = relay.var("x", shape=(), dtype=dtype), relay.var("y", shape=(), dtype=dtype)
    ops = operators()
    program = relay.Function([x, y], relay.Tuple([getattr(relay, op)(x, y) for op in ops]))
    exe = relay.build(relay.IRModule.from_expr(program))
    for a in numbers:
        for b in numbers:
            results = exe(a, b)
            for i, op in enumerate(ops):
                got, want = np.asarray(results[i]), expected(op, a, b)
                np.testing.assert_array_equal(got, want, err_msg=f"{op}({a}, {b})")
