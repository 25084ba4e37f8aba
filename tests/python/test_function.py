"""relay.function: each construct of the subset against Python's own run of the same function."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from function_oracle import agree

import relay

rng = np.random.default_rng(7)


def f32(*shape):
    return rng.standard_normal(shape).astype("float32")


CASES = []


def case(*arguments):
    """The function below is compiled and compared on each tuple of arguments."""

    def add(function):
        compiled = relay.function(function)
        CASES.append(pytest.param(compiled, arguments, id=function.__name__))
        return compiled

    return add


@pytest.mark.parametrize("function, arguments", CASES)
def test_is_what_python_does(function, arguments):
    for args in arguments:
        agree(function, *args)


# ---- Operators -----------------------------------------------------------------------------------

VECTOR = f32(4)
MATRIX = f32(3, 4)
INTEGERS = np.array([7, -7, 5, 3], dtype="int32")


@case((VECTOR, f32(4)), (f32(3, 4), f32(4)))
def arithmetic(x, y):
    """Docstrings are skipped."""
    return x + y * 2 - y / 3, -x, +x, abs(x), x**2, (x * x) ** 0.5, 2 ** abs(x), x % 2, x // 2


@case((INTEGERS, np.array([2, 2, -3, 4], dtype="int32")))
def integers(x, y):
    return x + y, x * 3, x // y, x % y, x / y, x & y, x | y, x ^ y, ~x, abs(y) << 2, x >> 1


@case((MATRIX, f32(4, 2), f32(2, 3, 4), f32(4)))
def products(a, b, c, v):
    return a @ b, c @ b, v @ b, a @ v, v @ v, c @ v, c @ c.transpose(0, 2, 1)


@case((VECTOR, np.float32(0.5)))
def comparisons(x, s):
    return x > s, x <= 0, x == x, x != 0, (x > 0) & (x < 1), ~(x > 0), 0 < s < 1, not s > 1


@case((np.float32(2), np.int32(3), 2.5, 4), (np.float32(-2), np.int32(0), -1.5, 0))
def numbers(a, b, c, d):
    low = a if a < c else np.float32(0)
    return a + c, b + d, c * d, d / 2, a > 0 and c > 0 and d > 1, b > 0 or d > 0, low, d // 3, d % 3


@case((np.arange(4, dtype="int8"), f32(4), np.array([True, False, True, False])))
def promotion(small, x, flags):
    return (
        small + 1,
        small * True,
        x + (True and 2.5),
        small + x,
        flags + flags,
        flags * 2,
        small / 2,
        x + small.astype("int64"),
    )


# ---- Indexing ------------------------------------------------------------------------------------

CUBE = f32(4, 5, 6)


@case((CUBE, 2), (f32(3, 4, 2), -1))
def basic_indexing(x, i):
    return (
        x[1],
        x[-1],
        x[i],
        x[i, 0],
        x[1:3],
        x[:, 1:],
        x[..., 0],
        x[:, None],
        x[::2, ::-1],
        x[0, 1, -1],
    )


@case((CUBE, 1, 3))
def open_slices(x, i, j):
    return x[i:j], x[:, i:], x[:j], x[:-1], x[-2:, 1:-1]


@case((CUBE, np.array([0, 2, -1]), np.array([1, 1, 0])))
def tensor_indexing(x, i, j):
    return x[i], x[:, i], x[i, j], x[[0, 2]], x[i][:, j], x[x[:, 0, 0] > 0]


@case((CUBE[0], 2, np.array([0, 3])), (f32(4, 6), -2, np.array([-1, 1])))
def writes(x, i, at):
    y = x.copy()
    y[0] = 1
    y[i] = y[i] * 2
    y[1:3] += 0.5
    y[:, 1] = y[:, 0]
    y[at] = 7
    y[0, i] = 9
    y[-1, 2:] -= 1
    z = np.zeros_like(x)
    z[x > 0] = 1
    z[..., 0] = -1
    return y, z


@case((f32(6), 4))
def writes_in_a_loop(x, n):
    out = np.zeros(n, "float32")
    for i in range(n):
        out[i] = x[: i + 1].sum()
    for j in range(1, n):
        out[j] += out[j - 1]
    return out


@case((f32(3), f32(3)))
def copies_are_apart(x, y):
    a = x + 1
    b = a.copy()
    a[0] = 5
    c = [a, b]
    a = a + y
    return a, b, c


# ---- Control flow --------------------------------------------------------------------------------

SIGNS = [(f32(4) + 9,), (f32(4) - 9,), (np.zeros(4, "float32"),)]


@case(*SIGNS)
def branches(x):
    total = x.sum()
    if total > 1:
        y, z = x * 2, 1
    elif total < -1:
        y, z = -x, 2
    else:
        y, z = x + 1, 3
    return y if z != 2 else y * 3, z


@case(*SIGNS)
def early_returns(x):
    total = x.sum()
    if total > 1:
        if x[0] > 100:
            return x * 100
        x = x + 1
    elif total < -1:
        return -x
    y = x * 2
    if y[0] == 0:
        return y - 1
    return y


@case((20,), (100,), (0,))
def while_loop(n):
    i, total = 0, 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        if total > 500:
            break
        total += i
    return i, total


@case((np.float32(7),), (np.float32(0.5),))
def returns_from_loops(a):
    x = a
    for step in range(50):
        better = 0.5 * (x + a / x)
        if abs(better - x) < 1e-6:
            return better, step
        x = better
    return x, -1


@case((50,))
def sieve(n):
    prime = np.ones(n, dtype=bool)
    prime[0] = prime[1] = 0
    i = 2
    while i * i < n:
        if prime[i]:
            j = i * i
            while j < n:
                prime[j] = False
                j += i
        i += 1
    return prime.sum()


@case((f32(5), f32(3)))
def convolution(x, k):
    n, m = x.shape[0], k.shape[0]
    out = np.zeros(n - m + 1, "float32")
    for i in range(n - m + 1):
        out[i] = (x[i : i + m] * k).sum()
    return out


@case((np.array([1, 2, 3, 4]), np.array([2, 3, 5])))
def edit_distance(a, b):
    before = np.arange(len(b) + 1)
    for i in range(len(a)):
        now = np.zeros(len(b) + 1, dtype=np.int64)
        now[0] = i + 1
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            now[j + 1] = min(before[j + 1] + 1, now[j] + 1, before[j] + cost)
        before = now
    return before[len(b)]


@case((MATRIX, 5), (f32(2, 3), 0))
def nested_loops(x, n):
    total = np.float32(0)
    for i in range(n):
        for row in x:
            if row[0] < 0:
                continue
            for v in row:
                total = total + v * i
            if total > 50:
                break
    return total


@case((MATRIX, f32(3)))
def over_several(x, y):
    total, last = 0, x[0]
    for i, (row, v) in enumerate(zip(x, y, strict=False)):
        total = total + row * v * i
        last = row
    for i in reversed(range(x.shape[0])):
        total = total + i * x[i]
    for k in range(10, 0, -3):
        total = total + k
    return total, last


@case((f32(3), [f32(3, 4), f32(4, 2)]))
def unrolled(x, weights):
    for w in weights:
        x = np.tanh(x @ w)
    for i in range(2):
        x = np.concatenate([x, x * i])
    return x


@case((f32(3), 10))
def search(x, n):
    found = -1
    while True:
        n = n - 1
        if n < 0:
            break
        if n * n < 30:
            found = n
            break
    return found, x


# ---- Structures ----------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: object
    right: object


@dataclass
class State:
    x: object
    step: int = 0


@pytest.mark.parametrize("x", [10.0, 1e8])
def test_a_variable_that_each_break_has_set_has_a_value_behind_the_loop(x):
    def first_below(x):
        while True:
            new, count = x * 0.5, 3
            if new < 1.0:
                break
            if new > 1e6:
                count = 4
                break
            x = new
        return new, count

    def or_returns(x):
        while True:
            new = x * 0.5
            if new < 1.0:
                break
            if new > 1e6:
                return -new
            x = new
        return new

    def nested(x):
        total = 0.0
        while True:
            while True:
                y = x * 0.5
                if y < 2.0:
                    break
                x = y
            total += y
            twice = total * 2
            if total > 5.0:
                break
            x = x + 3.0
        return twice, y

    for function in (first_below, or_returns, nested):
        made = relay.function(function)(x)
        np.testing.assert_allclose(np.array(made), np.array(function(x)))


@case((Pair(f32(3), f32(2)), State(f32(3), 4), {"k": f32(1), "l": (f32(2), 3)}))
def structures(pair, state, table):
    left, right = pair
    (a, b), c = table["l"], table["k"]
    moved = State(state.x + left, state.step + 1)
    again = dataclasses.replace(moved, x=moved.x * 2)
    first, *rest = [a, right, c]
    swapped = Pair(right=pair.left, left=pair.right)
    return swapped, again, {**table, "m": b}, rest, (first, ())[0], len(rest), "text", None


@case((f32(3), 4))
def state_in_a_loop(x, n):
    state = State(x)
    pair = (x, 0.0)
    for _ in range(n):
        state = State(state.x * 2, state.step + 1)
        pair = (pair[0] + state.x, pair[1] + 1)
    return state.x, state.step, pair


@case((f32(3), 5), (f32(3), 0))
def lists(x, n):
    xs = []
    for i in range(n):
        xs.append(x * i)
        if i == 2:
            xs.append(-x)
    total = np.float32(0)
    for y in xs:
        total = total + y.sum()
    return xs, len(xs), total


@case((f32(3), 6))
def lists_change(x, n):
    xs = [x, x * 2]
    for i in range(n):
        xs += [x * i, x]
    xs[1] = xs[0] + xs[-1]
    xs[n] = x
    return xs, xs[n - 1], xs[-2]


@case((4,))
def lists_of_lists(n):
    rows = []
    for i in range(n):
        row = []
        for j in range(i):
            row.append((j, [j, -j]))
        rows.append(row)
    return rows, rows[2], len(rows[-1])


@case(({"a": f32(2), "b": f32(2)},))
def dictionaries(table):
    total = 0.0
    for name, value in table.items():
        total = total + value.sum() * (2 if name == "a" else 1)
    for name in table:
        total = total + table[name][0]
    table = {**table, "c": total}
    table["a"] = table["b"]
    return table, list(table.keys()), "b" in table, sum(v.sum() for v in table.values())


@case((f32(3, 4), 4), (f32(2, 4), 0))
def sums(x, n):
    rows = sum(x)
    shifted = sum((row * 2 for row in x), x[0])
    count = sum([i * i for i in range(n)])
    return rows, shifted, count + sum(range(n))


@case((MATRIX, 3))
def comprehensions(x, n):
    squares = [i * i for i in range(n)]
    rows = [row * 2 for row in x if row.sum() > 0]
    grid = [[i + j for j in range(2)] for i in range(3)]
    pairs = [(i, r.sum()) for i, r in enumerate(x)]
    return squares, rows, grid, pairs, sum(v * 2 for v in [1, 2, 3]), any([n > 2, n > 5]), max(n, 2)


# ---- Functions -----------------------------------------------------------------------------------

SCALE = 3
OFFSET = np.array([1, 2, 3], dtype="float32")
TABLE = {"a": 2.0, "b": (1, 2)}


@relay.function
def helper(x, times=2, *, plus=0.0):
    for _ in range(times):
        x = x * 2
    return x + plus


@case((f32(3),))
def calls(x):
    return helper(x), helper(x, 3), helper(x, plus=1.5), x * SCALE + OFFSET * TABLE["b"][1]


@case((f32(3), 2.5))
def closures(x, k):
    def add(v, by=1):
        return v + by * k

    def twice(f):
        return lambda v: f(f(v))

    def select(*parts, **named):
        return parts[0] + named["last"]

    n = 5
    late = lambda v: v + n  # noqa: E731
    n = 6
    return add(x), twice(add)(x), twice(twice(add))(x), late(x), select(x, k, last=x)


@case((10,), (1,))
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@case((12,))
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@case((10,), (7,))
def even(n):
    if n == 0:
        return True
    return odd(n - 1)


@relay.function
def odd(n):
    return False if n == 0 else even(n - 1)


@case((f32(3), 4))
def local_recursion(x, n):
    def go(v, i):
        if i == 0:
            return v
        return go(v * 2 + x.sum(), i - 1)

    def iterate(f, v, i):
        return v if i == 0 else iterate(f, f(v), i - 1)

    return go(x, n), iterate(lambda v: v + x, x, n)


@relay.data
class Tree:
    class Leaf:
        pass

    class Node:
        left: Tree
        value: float
        right: Tree


def tree(*values):
    made = Tree.Leaf()
    for value in values:
        made = insert.python(made, value)
    return made


@relay.function
def insert(t: Tree, v: float) -> Tree:
    match t:
        case Tree.Node(left, x, right):
            if v < x:
                return Tree.Node(insert(left, v), x, right)
            return Tree.Node(left, x, insert(right, v))
        case _:
            return Tree.Node(Tree.Leaf(), v, Tree.Leaf())


@relay.function
def total_of(t: Tree) -> float:
    match t:
        case Tree.Leaf():
            return 0.0
        case Tree.Node(left=l, value=v, right=r):
            return total_of(l) + v + total_of(r)


@relay.function
def in_order(t: Tree, after: list[float]) -> list[float]:
    match t:
        case Tree.Leaf():
            return after
        case Tree.Node(left, v, right):
            rest = [v]
            rest += in_order(right, after)
            return in_order(left, rest)


def test_data():
    numbers = [3.0, 1.0, 2.0, 5.0]
    made = tree(*numbers)
    grown = insert(made, 4.0)
    assert isinstance(grown, Tree.Node) and isinstance(grown.left.left, Tree.Leaf)
    assert float(total_of(grown)) == float(total_of.python(insert.python(made, 4.0))) == 15
    assert [float(v) for v in in_order(grown, [])] == [1, 2, 3, 4, 5]


@relay.function
def quicksort(xs: list[float]) -> list[float]:
    match xs:
        case []:
            return []
        case [pivot, *rest]:
            low = [v for v in rest if v < pivot]
            high = [v for v in rest if v >= pivot]
            return quicksort(low) + [pivot] + quicksort(high)  # noqa: RUF005


def test_quicksort():
    for values in ([], [3.0, 1.0, 2.0, 5.0, 4.0, 1.0]):
        assert [float(v) for v in quicksort(values)] == sorted(values)


@relay.function
def staircase(n: int) -> Tree:
    made = Tree.Leaf()
    for i in range(n):
        made = Tree.Node(made, float(i), Tree.Leaf())
    return made


def test_data_that_is_only_made():
    made = staircase(2)
    assert (float(made.value), float(made.left.value)) == (1, 0)
    assert isinstance(made.left.left, Tree.Leaf) and isinstance(made.right, Tree.Leaf)
    assert relay.parse(staircase.astext()).astext() == staircase.astext()


@case((3,), (1,), (7,))
def match_numbers(n):
    match n:
        case 1 | 2:
            return 10
        case 3:
            return 30
        case k if k > 5:
            return k
    return 0


@case(([f32(2), f32(2)],))
def static_match(xs):
    match xs:
        case [a]:
            return a
        case [a, b]:
            return a + b


@relay.function
def sum_list(xs: list[float]) -> float:
    match xs:
        case []:
            return 0.0
        case [first, *rest]:
            return first + sum_list(rest)


def test_lists_of_any_length():
    assert float(sum_list([1.0, 2.0, 3.5])) == 6.5
    assert float(sum_list([])) == 0
    assert sum_list.cache_info().currsize == 1


# ---- NumPy ---------------------------------------------------------------------------------------


@case((MATRIX,))
def elementwise(x):
    y = np.abs(x) + 0.1
    return (
        np.exp(x), np.log(y), np.sqrt(y), np.sin(x), np.cos(x), np.tanh(x), np.floor(x), np.ceil(x),
        np.sign(x), np.square(x), np.reciprocal(y), np.log2(y), np.log10(y), np.arctan(x),
        np.maximum(x, 0), np.minimum(x, y), np.power(y, 3), np.isnan(x), np.rint(x), np.trunc(x),
        np.where(x > 0, x, -1.0), np.clip(x, -0.5, 0.5), np.logical_and(x > 0, y > 1), np.sinh(x),
    )  # fmt: skip


@case(
    (
        np.float32([0, 1e-30, -1e-8, 3e-4, -0.999, 7, 1e30]),
        np.float32([0, 40, -90, 5, 5, -3e38, 1]),
    ),
    (np.array([-1, 1e-12, np.inf, -3e-9]), np.array([np.inf, -np.inf, 0, -800])),
)
def small_and_large(x, y):
    return (np.log1p(x), np.logaddexp(x, y), np.logaddexp(y, y), np.logaddexp(y, 0.0))


@case(
    (np.eye(3) * 2 + np.arange(9).reshape(3, 3) / 9, np.arange(3.0), np.arange(6.0).reshape(3, 2))
)
def systems(a, x, y):
    return (np.linalg.det(a), np.linalg.inv(a), np.linalg.solve(a, x), np.linalg.solve(a, y))


@case((f32(3, 4, 5), np.arange(12, dtype="int32").reshape(3, 4)))
def reductions(x, n):
    return (
        x.sum(), x.sum(axis=1), x.mean(axis=(0, 2)), x.max(axis=-1, keepdims=True), x.min(),
        np.prod(x, axis=0), x.std(axis=1), np.var(x), x.argmax(), x.argmin(axis=1), n.sum(),
        n.mean(), n.max(axis=0), np.any(x > 2), np.all(x > -9, axis=0), np.cumsum(n, axis=1),
        np.cumsum(x), np.linalg.norm(x), np.linalg.norm(x, axis=1), np.count_nonzero(n > 3, axis=0),
    )  # fmt: skip


@case((f32(3, 4, 5), f32(3, 4, 5)))
def shapes(x, y):
    n = x.shape[0]
    return (
        x.reshape(-1), x.reshape(n, -1), x.reshape((n * 2, 2, 5)), np.transpose(x, (2, 0, 1)), x.T,
        np.swapaxes(x, 0, 1), np.moveaxis(x, 0, -1), np.expand_dims(x, 1), x[:, :1].squeeze(1),
        np.concatenate([x, y], axis=1), np.stack([x, y], -1), np.vstack([x, y]), np.hstack((x, y)),
        np.split(x, 2, axis=1), np.tile(x, (1, 2, 1)), np.repeat(x, 2, axis=0), np.flip(x, 1),
        np.roll(x, 1, axis=0), np.pad(x, ((1, 0), (0, 0), (2, 2))), np.diff(x, axis=-1),
        np.broadcast_to(x[0], (2, 4, 5)), x.ravel(), x.size, x.ndim, np.shape(x), x.swapaxes(1, 2),
    )  # fmt: skip


@case((4, f32(3)), (2, f32(5)))
def new_tensors(n, x):
    return (
        np.zeros(3), np.ones((2, 3), dtype="float32"), np.full((2,), 7), np.eye(3), np.arange(5),
        np.arange(0, 1, 0.25), np.linspace(0, 1, 5), np.array([[1, 2], [3, 4]]), np.zeros(x.shape),
        np.array([x[0], x[1]]), np.ones_like(x), np.full_like(x, 2), np.arange(n), np.zeros(n),
        np.arange(x.shape[0]), np.zeros((x.shape[0], 2), np.float32), np.float32(n), np.asarray(x),
    )  # fmt: skip


@case((f32(3, 5), np.array([2, 0, 1])))
def choices(x, order):
    return (
        np.sort(x, axis=1), np.argsort(x, axis=0), np.take(x, order, axis=0), np.tril(x), np.triu(x, 1),
        np.take_along_axis(x, np.argsort(x, axis=1), axis=1), np.argwhere(x > 0), np.outer(x[0], x[1]),
        np.einsum("ij,kj->ik", x, x), np.einsum("ij,ij->i", x, x), np.dot(x[0], x[1]), x[0].dot(x[1]),
    )  # fmt: skip


@case((0.3, 2), (1.7, 5))
def mathematics(x, n):
    return (
        math.sqrt(2) * x,
        math.exp(x),
        math.floor(x),
        math.pi,
        int(x * 3),
        float(n),
        round(x),
        n**2,
    )


@relay.function
def attention(q, k, mask: relay.Static[bool] = False):
    scores = relay.nn.softmax(relay.nn.matmul(q, k, transpose_b=True), axis=-1)
    return relay.nn.relu(scores) * 2 if mask else scores


def test_operators_by_their_names():
    q, k = f32(3, 4), f32(5, 4)
    scores = np.exp(q @ k.T)
    scores /= scores.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(attention(q, k), scores, rtol=1e-4)
    np.testing.assert_allclose(attention(q, k, mask=True), scores * 2, rtol=1e-4)
    assert attention.cache_info().currsize == 2
