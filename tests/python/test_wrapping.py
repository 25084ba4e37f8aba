"""Integers wrap around in kernels, in loops, between kernels and in the evaluator.

Drawn expressions of the numbers at the ends of their dtypes against NumPy.
"""

from __future__ import annotations

import inspect
import random
from dataclasses import dataclass

import drawn_functions
import numpy as np
import pytest

import relay


@dataclass
class Case:
    number: int
    text: str
    python: object = None


class Draw:
    def __init__(self, seed: int, dtype: str, leaves: list[str]) -> None:
        self.rng = random.Random(seed)
        self.dtype = np.iinfo(dtype)
        self.leaves = leaves
        self.scalar = "h" in leaves

    def constant(self) -> int:
        greatest, least = self.dtype.max, self.dtype.min
        known = [
            2,
            3,
            7,
            31,
            greatest,
            greatest // 3,
            greatest // 100_000 + 1,
            1_000_003,
            least,
            -3,
        ]
        return self.rng.choice([c for c in known if least <= c <= greatest and c != 0])

    def divisor(self) -> str:
        return self.rng.choice([str(self.constant()), f"({self.rng.choice(self.leaves)} | 1)"])

    def test(self, depth: int) -> str:
        right = self.rng.choice([self.number(depth), str(self.constant()), "0"])
        return (
            f"({self.number(depth)} {self.rng.choice(['<', '<=', '==', '!=', '>', '>='])} {right})"
        )

    def number(self, depth: int) -> str:
        if depth == 0:
            return self.rng.choice(self.leaves)
        a, b = self.number(depth - 1), self.number(depth - 1)
        chosen = (
            f"({a} if {self.test(depth - 1)} else {b})"
            if self.scalar
            else f"np.where({self.test(depth - 1)}, {a}, {b})"
        )
        least, greatest = ("min", "max") if self.scalar else ("np.minimum", "np.maximum")
        bounded = f"({a} % {self.rng.choice([5, 16, 97])})"
        return self.rng.choice(
            [
                *(f"({a} {op} {b})" for op in ("+", "-", "*", "&", "|", "^")),
                *(f"({a} {op} {self.constant()})" for op in ("+", "-", "*", "*")),
                f"({bounded} * {self.constant()})",
                f"({a} // {self.divisor()})",
                f"({a} % {self.divisor()})",
                f"(-{a})",
                f"abs({a})",
                f"({a} << {self.rng.randint(1, 7)})",
                f"({a} >> {self.rng.randint(1, 7)})",
                f"{least}({a}, {b})",
                f"{greatest}({a}, {b})",
                chosen,
            ]
        )


def extremes(dtype: str) -> np.ndarray:
    d = np.iinfo(dtype)
    near = [d.min, d.min + 1, d.min // 2, d.max // 3, d.max // 2, d.max - 1, d.max]
    signed = () if d.min == 0 else (-1, -2, -7)
    return np.array([*near, 0, 1, 2, 5, 99, *signed], dtype)


def agree(python, args) -> None:
    with np.errstate(all="ignore"):
        want = python(*args)
    module = relay.function(python).lower(*args).module
    runs = {
        "compiled": relay.build(module),
        "evaluator": relay.create_executor("debug", module).evaluate(),
    }
    if "for " in inspect.getsource(python):
        with relay.transform.PassContext(disabled_pass=["OutlineLoops"]):
            runs["no kernel of the loop"] = relay.build(module)
    for name, run in runs.items():
        for k, (got, right) in enumerate(zip(run(*args), want, strict=True)):
            np.testing.assert_array_equal(np.asarray(got), right, err_msg=f"{name}, result {k}")


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "uint64"])
def test_expressions_of_elements(dtype, tmp_path):
    places = ["np.arange(x.shape[0])"] if dtype == "int64" else []
    draw = Draw(29, dtype, ["x", "y", *places])
    count = 4 if dtype == "int64" else 2
    cases = []
    for number in range(count):
        results = [draw.number(3) for _ in range(4)] + [draw.test(2) for _ in range(8)]
        cases.append(Case(number, f"def case_{number}(x, y):\n    return {', '.join(results)}\n"))
    drawn_functions.load(cases, tmp_path / f"elements_{dtype}.py")
    x = extremes(dtype)
    args = [np.ascontiguousarray(a.ravel()) for a in np.meshgrid(x, x)]
    for case in cases:
        agree(case.python, args)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_expressions_of_a_loop(dtype, tmp_path):
    # NumPy's integers, which wrap.
    counting = ["np.int64(i)", "n"] if dtype == "int64" else []
    draw = Draw(7, dtype, ["h", "x[i]", "x[(i * 7) % n]", "h", *counting])
    cases = []
    for number in range(12):
        text = f"""\
def case_{number}(x, h, n):
    c = 0
    for i in range(n):
        h = {draw.number(3)}
        if {draw.test(2)}:
            c += 1
        if {draw.test(1)}:
            h = h ^ x[i]
    return h, c
"""
        cases.append(Case(number, text))
    drawn_functions.load(cases, tmp_path / f"loops_{dtype}.py")
    x = extremes(dtype)
    args = (x[np.random.default_rng(3).permutation(x.size)], x.dtype.type(12345), np.int64(x.size))
    for case in cases:
        agree(case.python, args)


def divided(x, d):
    q = np.zeros(x.shape[0], dtype=np.int64)
    r = np.zeros(x.shape[0], dtype=np.int64)
    for i in range(x.shape[0]):
        q[i] = x[i] // d
        r[i] = x[i] % d
    return q, r


@pytest.mark.parametrize("d", [-1, 1, -3, 7, 2**32 + 1, -(2**63), 2**63 - 1])
def test_a_loop_divides_by_a_number(d):
    x = extremes("int64")
    q, r = relay.function(divided)(x, d)
    # Of the quotients one leaves int64, which wraps.
    assert q.tolist() == [(v // d + 2**63) % 2**64 - 2**63 for v in x.tolist()]
    assert r.tolist() == [v % d for v in x.tolist()]


def below_zero(x):
    return (x % 1000003) * 92233720368547 < 0, x * 2 // 2 == x


def test_a_product_that_wraps_is_below_zero():
    agree(below_zero, (np.array([200000, 200001, 2**62, -(2**63)]),))


def powers(n):
    c = 0
    for i in range(n):
        if i * i * i * i * i < 0:
            c += 1
    return c


def powers_of_a_size(x):
    n = x.shape[0]
    c = 0
    for i in range(n):
        if i * n * n * n * n < 0:
            c += 1
    return c


def powers_in_an_array(x):
    i = np.arange(x.shape[0])
    return i * i * i * i * i < 0, i * x.shape[0] * x.shape[0] * x.shape[0] * x.shape[0] < 0


def test_powers_of_what_counts_wrap():
    x = np.zeros(10000)
    agree(powers_in_an_array, (x,))
    of_places, of_sizes = powers_in_an_array(x)
    assert relay.function(powers)(x.size) == of_places.sum()
    assert relay.function(powers_of_a_size)(x) == of_sizes.sum()


def halves(x):
    i = np.arange(x.shape[0]).astype("uint64")
    half = ((i - np.uint64(5)) // np.uint64(2)).astype("int64")
    return half, half + 10 < 0


def test_a_difference_of_uint64_wraps():
    agree(halves, (np.zeros(8),))


@relay.function
def sum_by_three(a: int, b: int):
    n = 0
    for i in range(a, b, 3):
        n += i % 7
    return n


@relay.function
def sum_downwards(a: int, b: int):
    n = 0
    for i in range(a, b, -1):
        n += i % 7
    return n


@relay.function
def sum_by_much(a: int, b: int):
    n = 0
    for i in range(a, b, 2**59):
        n += i % 7
    return n


@relay.function
def sum_by(a: int, b: int, step: int):
    n = 0
    for i in range(a, b, step):
        n += i % 7
    return n


@relay.function
def first_above(a: int, b: int, step: int):
    n = 0
    for i in range(a, b, step):
        n += i % 7
        if n > 100:
            break
    return n


def test_ranges_of_more_indices_than_int64_counts():
    least, greatest = -(2**63), 2**63 - 1
    for a, b, step in ((least, greatest, 1), (least, greatest, 2), (greatest, least, -1)):
        assert first_above(a, b, step) == first_above.python(a, b, step), step


def test_ranges_over_more_than_int64():
    least, greatest = -(2**63), 2**63 - 1
    ends = [least, least + 10, -(2**59), -5, 0, 4, 2**59, greatest - 12, greatest]
    for a in ends:
        for b in ends:
            for step, function in ((3, sum_by_three), (-1, sum_downwards), (2**59, sum_by_much)):
                indices = range(a, b, step)
                if (b - a) * (1 if step > 0 else -1) > 2**30 * abs(step):
                    continue  # too many
                wanted = sum(i % 7 for i in indices)
                assert function(a, b) == wanted, (a, b, step)
                assert sum_by(a, b, step) == wanted, (a, b, step)
            for step in (2**58 + 1, -(2**60), greatest, -greatest):
                assert sum_by(a, b, step) == sum(i % 7 for i in range(a, b, step)), (a, b, step)
