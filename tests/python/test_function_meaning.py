"""What Python's and NumPy's functions mean where they are easily got wrong: classes, NaN, powers, ranges."""

from __future__ import annotations

import numpy as np
import pytest
from function_oracle import agree, same

import relay

NAN = float("nan")


def classes(x, n, t, values, table, pair, f):
    return (
        isinstance(x, np.ndarray), isinstance(x, (list, tuple)), isinstance(n, int), isinstance(n, float),
        isinstance(n, (float, bool)), isinstance(n > 0, bool), isinstance(n > 0, int),
        isinstance(f, float), isinstance(f, int), isinstance(t, str), isinstance(values, list),
        isinstance(values, tuple), isinstance(table, dict), isinstance(pair, tuple),
        isinstance(x[0], np.floating), isinstance(x[0], float), isinstance(x[0], int),
        isinstance(x.sum(), np.ndarray), isinstance(x.shape[0], int), isinstance(n, int | float),
        isinstance(x.astype("int32")[0], np.integer), isinstance(x[0] > 0, bool),
        isinstance(x.astype("float32")[0], float),
    )  # fmt: skip


def test_isinstance_is_pythons():
    args = (np.ones(3), 2, "a", [1, 2], {"k": 1}, (1, 2), 2.0)
    found = relay.function(classes)(*args)
    assert [bool(v) for v in found] == list(classes(*args))
    with pytest.raises(relay.UserError, match="a number of NumPy's or an array"):
        relay.function(lambda x: isinstance(x, float))(np.float64(1))


def least_and_greatest(a, b, x):
    return min(a, b), max(a, b), min(b, a), max([b, a]), min(x), max(x), np.minimum(a, b), np.max(x)


@pytest.mark.parametrize("a, b", [(1.0, NAN), (NAN, 1.0), (2.0, 1.0), (NAN, NAN)])
def test_min_and_max_of_nan(a, b):
    compiled = relay.function(least_and_greatest)
    for x in ([1, NAN, 3], [NAN, 2, 1], [3.0, 1, 2], [NAN, NAN]):
        given = a, b, np.array(x)
        found, expected = compiled(*given), least_and_greatest(*given)
        np.testing.assert_array_equal([float(v) for v in found], [float(v) for v in expected])


def first_places(x):
    return (
        np.argmax(x), np.argmin(x), x.argmax(axis=1), x.argmin(axis=0), np.argmax(x[0]),
        x.astype("float16").argmax(axis=1), x.astype("float32").argmin(axis=1),
    )  # fmt: skip


def test_places_of_nan():
    x = np.array([[1.0, NAN, np.inf, NAN], [4, 5, -np.inf, 2], [NAN] * 4, [1, 1, 0, 0]])
    for found, expected in zip(relay.function(first_places)(x), first_places(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def powers(a, b):
    return a**b, a**70, a**3, a ** (b % 5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_powers_of_integers_wrap(dtype):
    rng, info = np.random.default_rng(5), np.iinfo(dtype)
    a = rng.integers(info.min, info.max, 600, dtype=dtype, endpoint=True)
    b = rng.integers(0, info.max, 600, dtype=dtype, endpoint=True)
    a[:16] = [0, 1, 2, 3, 5, 7, 9, 15, 17, 100, info.min, info.max, 6, 10, 12, 125]
    b[100:300] = rng.integers(0, min(130, info.max), 200)
    for found, expected in zip(relay.function(powers)(a, b), powers(a, b), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_integers_have_no_negative_powers():
    compiled = relay.function(lambda a, b: a**b)
    with pytest.raises(relay.RunError, match=r"E0616.*exponent of an integer's power is negative"):
        compiled(np.array([1, 2]), np.array([1, -1]))
    same(compiled(np.array([2.0, 4.0]), np.array([1, -1])), np.array([2.0, 0.25]))


REFUSED_STORES = [
    lambda y: np.full((2,), 300, np.uint8),
    lambda y: np.array([1, -1], dtype=np.uint8),
    lambda y: np.full_like(y.astype("int8"), 128),
]


def store(number):
    def stored(x):
        y = np.zeros(3, np.uint8)
        y[0] = number
        y[1:] = x[0]
        return y

    return relay.function(stored)


def test_stores_hold_their_number():
    same(store(255)(np.float64([2.7])), np.uint8([255, 2, 2]))
    for number in (300, -1, NAN):
        with pytest.raises(relay.UserError, match=r"E0905.*is not a value of uint8"):
            store(number)(np.float64([1]))
    for made in REFUSED_STORES:
        with pytest.raises(relay.UserError, match=r"E0905.*is not a value of"):
            relay.function(made)(np.ones(2))


NARROW = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]
# What holds `n`, a Python number of the run, in the dtype of `y`.
HOLDS = [
    "y[0] = n", "y[1:3] = n", "y[y == 0] = n", "y[-1] += n", "y += n", "y = y * 0 + n", "y.fill(n)",
    "y = np.full(3, n, y.dtype)", "y = np.full_like(y, n)", "y = np.array([n, 1, 2], y.dtype)",
    "y = np.insert(y, 1, n)", "y = np.maximum(y, n)", "y = np.asarray(n, y.dtype)", "y[0] = n + 0",
    "y[0] = int(z[0]) + n", "y[0] = n if n < 5 else n * 1", "y[0] = float(n)", "y[0] = max(n, -1000)",
    "y[0] = sum([n, 0])",
]  # fmt: skip


def written(lines, tmp_path, arguments="y, n: int, z"):
    name = tmp_path / f"stores_{abs(hash(lines))}.py"
    body = "\n    ".join(["y = y.copy()", *lines.splitlines(), "return y"])
    name.write_text(f"def f({arguments}):\n    {body}\n")
    space = {"np": np}
    exec(compile(name.read_text(), str(name), "exec"), space)
    return space["f"]


@pytest.mark.parametrize("at", range(len(HOLDS)))
def test_numbers_of_the_run_are_held_or_end_it(at, tmp_path):
    plain = written(HOLDS[at], tmp_path)
    compiled = relay.function(plain)
    dtype = NARROW[at % len(NARROW)]
    info = np.iinfo(dtype)
    y, z = np.zeros(3, dtype), np.zeros(1, "int64")
    held = {0, 1, 5, max(info.min, -1000), min(info.max, 1 << 40)}
    for n in sorted(held - {0} if "float" in HOLDS[at] else held):
        same(compiled(y, n, z), plain(y, n, z))
    past = {info.min - 1, -1 - info.max, info.max + 1, -(1 << 50), 1 << 50}
    for n in sorted(n for n in past if abs(n) < 1 << 62 and not info.min <= n <= info.max):
        if "max(" in HOLDS[at] and n < 0 and info.min <= -1000:
            continue
        with pytest.raises(OverflowError):
            plain(y, n, z)
        with pytest.raises(
            relay.RunError, match=rf"E0616.*Python number .* is not a value of {dtype} \(stores_"
        ):
            compiled(y, n, z)


def test_numbers_that_are_elements_wrap(tmp_path):
    plain = written("y[0] = n[0]\ny[1] = n.sum()\ny[2:] = n[:1]", tmp_path, "y, n")
    n = np.array([300, -1])
    same(relay.function(plain)(np.zeros(3, "uint8"), n), plain(np.zeros(3, "uint8"), n))
    plain = written("y[0] = n", tmp_path, "y, n")
    same(relay.function(plain)(np.zeros(1, "uint8"), np.int64(300)), np.uint8([44]))


def test_floats_are_held_without_their_fraction():
    def stored(f: float):
        y, z = np.zeros(1, "uint8"), np.zeros(1, "int64")
        y[0], z[0] = f, f
        return y, z

    compiled = relay.function(stored)
    for f in (255.9, -0.5, 3.0):
        for found, expected in zip(compiled(f), stored(f), strict=True):
            same(found, expected)
    for f in (256.0, -1.0, NAN, float("inf"), 1e30):
        with pytest.raises((OverflowError, ValueError)):
            stored(f)
        with pytest.raises(relay.RunError, match=r"E0616.* is not a value of uint8"):
            compiled(f)


def compared(y, n: int):
    first = (y[0] < n, y[0] == n, n >= y[0])
    return first, y < n, y <= n, y > n, n > y, n <= y, y == n, y != n, n == y, np.not_equal(n, y)


@pytest.mark.parametrize("dtype", NARROW)
def test_comparisons_take_any_integer(dtype):
    info = np.iinfo(dtype)
    y = np.array([info.min, 0, 1, 7, info.max], dtype)
    compiled = relay.function(compared)
    for n in (-(1 << 62), -300, -1, 0, 7, 300, 70000, 1 << 40, (1 << 63) - 1):
        found, expected = compiled(y, n), compared(y, n)
        for a, b in zip([*found[0], *found[1:]], [*expected[0], *expected[1:]], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{dtype} {n}")

    def with_known(y):
        return y < 300, y > 300, y == -1, y != 1 << 40, y > -1

    for a, b in zip(relay.function(with_known)(y), with_known(y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_counters_that_fit_are_not_checked():
    def counted(n: int):
        wide, narrow = np.zeros(5, "int64"), np.zeros(5, "uint8")
        for i in range(n):
            wide[i % 5] = i
            wide[i % 5] += i
        for i in range(5):
            narrow[i] = i
            narrow[i] = i * 50
        return wide, narrow

    compiled = relay.function(counted)
    for found, expected in zip(compiled(9), counted(9), strict=True):
        same(found, expected)
    assert "debug.check" not in compiled.module.astext()

    def overflowing(n: int):
        narrow = np.zeros(5, "uint8")
        for i in range(n):
            narrow[i % 5] = i
        return narrow

    compiled = relay.function(overflowing)
    same(compiled(256), overflowing(256))
    with pytest.raises(relay.RunError, match=r"E0616.*256 is not a value of uint8"):
        compiled(257)


def test_lanes_and_joined_numbers_are_held():
    def stored(n: int):
        y = np.zeros(2, "uint8")
        y[0] = n
        return y

    lanes = relay.vmap(relay.function(stored))
    same(lanes(np.array([3, 255])), np.uint8([[3, 0], [255, 0]]))
    with pytest.raises(relay.RunError, match=r"E0616.* is not a value of uint8"):
        lanes(np.array([3, 256]))

    def joined(y, n: int):
        m = n
        for i in range(len(y)):
            if y[i] > 10:
                m = y[i]
        return m

    compiled = relay.function(joined)
    y = np.uint8([1, 20, 3])
    assert compiled(y, 7) == 20 and compiled(y[:1], 7) == 7
    with pytest.raises(relay.RunError, match=r"E0616.*300 is not a value of uint8"):
        compiled(y[:1], 300)


def test_take_along_axis_broadcasts_and_checks():
    x = np.arange(12.0).reshape(3, 4)

    def chosen(x, i):
        return np.take_along_axis(x, i, axis=1)

    compiled = relay.function(chosen)
    for i in ([[1, 3]], [[0], [1], [-1]], [[0, 1], [2, 3], [-4, 3]]):
        same(compiled(x, np.array(i)), chosen(x, np.array(i)))
    same(compiled(x[:1], np.array([[1], [2], [0]])), chosen(x[:1], np.array([[1], [2], [0]])))
    for i in ([[4]], [[0], [0], [-5]]):
        with pytest.raises(relay.RunError):
            compiled(x, np.array(i))
    for i in ([[0], [0]], [0, 1, 2], [[0.5]]):
        with pytest.raises(relay.RelayError):
            compiled(x, np.array(i))


def lists_of_the_run(n):
    xs = list(range(n))
    ys = list(xs)
    ys.append(7)
    return len(xs), xs[n - 1], xs[-1], ys[n]


def test_lists_of_open_length():
    same(relay.function(lists_of_the_run)(4), tuple(map(np.asarray, lists_of_the_run(4))))

    def item(xs: list[float], i: int):
        return xs[i]

    compiled = relay.function(item)
    assert compiled([1.0, 2.0], -1) == 2
    for i in (2, -3):
        with pytest.raises(relay.RunError, match=rf"E0616.*index {i} of a list of length 2 \("):
            compiled([1.0, 2.0], i)


@relay.function
def rolled(x):
    return np.roll(x, (1, 2), (0, 1)), np.roll(x, 1, (0, 1)), min([], default=3), np.roll(x, 1)


def test_shifts_of_several_axes():
    agree(rolled, np.arange(6.0).reshape(2, 3))


def test_labels_are_classes():
    loss = relay.train.losses.softmax_cross_entropy
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((6, 5)).astype("float32")
    labels = np.array([0, 4, 2, 1, 3, 3])
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    each = -logs[np.arange(6), labels]
    np.testing.assert_allclose(loss(logits, labels), each.mean(), rtol=1e-5)
    for wrong in (5, 99, -1):
        bad = labels.copy()
        bad[3] = wrong
        with pytest.raises(
            relay.RunError, match=f"E0616.*label {wrong} is none of 5 classes, 0 to 4"
        ):
            loss(logits, bad)
        rest = np.delete(each, 3)
        np.testing.assert_allclose(loss(logits, bad, ignore_index=wrong), rest.mean(), rtol=1e-5)
        assert np.isfinite(loss(logits, bad, check=False))
    for other in (labels[:5], labels[:, None], np.zeros((6, 5))):
        with pytest.raises(relay.RelayError, match=r"labels"):
            loss(logits, other)
    with pytest.raises(relay.RelayError, match=r"5 labels for 6 rows"):
        relay.train.losses.accuracy(logits, labels[:5])
    with pytest.raises(relay.RelayError, match=r"one shape"):
        relay.train.losses.squared_error(logits, logits[0])
    with pytest.raises(relay.RelayError, match=r"sizes 5 and 1"):
        relay.train.losses.squared_error(logits, logits[:, :1])


def test_labels_in_a_gradient_name_the_users_line():
    def objective(w, x, y):
        return relay.train.losses.softmax_cross_entropy(x @ w, y)

    slope = relay.grad(objective)
    w, x = np.eye(3, dtype="float32"), np.ones((4, 3), "float32")
    assert slope(w, x, np.array([0, 1, 2, 0])).shape == (3, 3)
    with pytest.raises(
        relay.RunError, match=r"label 3 is none of 3 classes.*test_function_meaning\.py:\d+\)"
    ):
        slope(w, x, np.array([0, 1, 3, 0]))


def test_targets_of_the_operator_are_classes():
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[(3, 4), float32], %t: Tensor[(3,), int64], %w: Tensor[(4,), float32]) {
      nn.nll_loss(%x, %t, %w)
    }"""
    mod = relay.parse(text)
    x, w = np.arange(12, dtype="float32").reshape(3, 4), np.ones(4, "float32")
    for run in (relay.build(mod), relay.create_executor("debug", mod).evaluate()):
        np.testing.assert_allclose(run(x, np.array([0, 3, -100]), w), -(0 + 7) / 2)
        for target in (4, -1, 99):
            said = rf"E0605.*label {target} is none of 4 classes, 0 to 3"
            with pytest.raises(relay.RunError, match=said):
                run(x, np.array([0, target, 1]), w)


def test_the_last_batch_has_what_is_left():
    data = np.arange(10)
    batches = relay.train.Batches((data,), 4, key=2)
    assert [len(part) for (part,) in batches] == [4, 4, 2] and len(batches) == 3
    assert sorted(v for (part,) in batches for v in part) == list(range(10))
    dropped = relay.train.Batches((data,), 4, key=2, drop_last=True)
    assert [len(part) for (part,) in dropped] == [4, 4] and len(dropped) == 2


def stepped(a, b, step):
    total, count, last = 0, 0, -1
    for i in range(a, b, step):
        if i == 13:
            continue
        total = total * 3 % 1009 + i
        count += 1
        last = i
    return total, count, last


def test_ranges_with_a_step_of_the_run():
    """Both signs by one compiled form; a step of 0 is an error that names it."""
    compiled = relay.function(stepped)
    for a, b in [(0, 10), (10, 0), (3, 20), (5, 5), (-5, 5), (9, -9), (13, 14)]:
        for step in (1, 2, 3, 40, -1, -2, -9):
            assert compiled(a, b, step) == stepped(a, b, step), (a, b, step)
    assert compiled.cache_info().currsize == 1
    with pytest.raises(relay.RunError, match=r"the step of the range at \S+:\d+ is 0"):
        compiled(0, 5, 0)
    with pytest.raises(relay.UserError, match="the step of a range is an integer, not 0"):
        relay.function(lambda n: [i for i in range(0, n, 0)])(3)


def stepped_by_sizes(x, m):
    y = x.copy()
    for i in range(0, len(x), len(m)):
        y[i] = 0
    for i in range(len(x) - 1, -1, -len(m)):
        y[i] += 2
    return y


def test_ranges_with_a_step_of_a_size():
    agree(relay.function(stepped_by_sizes), np.arange(10.0), np.ones(3))
