"""relay.te.Schedule: loops are rewritten step by step, and compute what they did."""

# Text in annotations names sizes and dtypes.
# ruff: noqa: F821

import numpy as np
import pytest

import relay
from relay import te

RNG = np.random.default_rng(5)


def matmul(n=8, m=6, k=10):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k))
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    d = te.compute((n, m), lambda i, j: te.maximum(c[i, j], 0.0), "D")
    return te.create_prim_func([a, b], d, "matmul")


def test_steps_keep_the_meaning_and_are_recorded():
    f = matmul()
    x, y = (
        RNG.standard_normal((8, 10)).astype("float32"),
        RNG.standard_normal((10, 6)).astype("float32"),
    )
    expected = np.maximum(x @ y, 0)
    np.testing.assert_allclose(f(x, y), expected, rtol=1e-4)
    s = te.Schedule(f)
    c, d = s.get_blocks()
    assert (c.name, d.name) == ("C", "D") and s.get_block("C") == c
    i, j, r = s.get_loops(c)
    outer, inner = s.split(i, [-1, 4])
    assert s.extent(outer) == 2 and s.extent(inner) == 4
    s.reorder([outer, r, inner, j])
    s.decompose_reduction(c, r)
    s.vectorize(j)
    s.unroll(inner)
    di, dj = s.get_loops(d)
    s.parallel(di)
    s.vectorize(dj)
    np.testing.assert_allclose(s.func(x, y), expected, rtol=1e-4)
    lines = s.trace.splitlines()
    assert lines[0].startswith("split(i") and any(line.startswith("vectorize") for line in lines)
    assert str(te.Schedule.replay(f, s.trace)) == str(s.func)
    assert "vectorized" in str(s.func) or "vector" in str(s.func)
    t = te.Schedule(f)
    fused = t.fuse(t.get_loops(t.get_block("D")))
    assert t.extent(fused) == 48
    t.cache_write(t.get_block("C"), "local")
    np.testing.assert_allclose(t.func(x, y), expected, rtol=1e-4)


def test_open_sizes():
    n = te.var("n")
    a = te.placeholder((n, 4), name="A")
    f = te.create_prim_func([a], te.compute((n, 4), lambda i, j: a[i, j] * 2), "double")
    x = RNG.standard_normal((7, 4)).astype("float32")
    assert np.array_equal(f(x), 2 * x)
    s = te.Schedule(f)
    (block,) = s.get_blocks()
    s.split(s.get_loops(block)[0], [-1, 3])
    assert np.array_equal(s.func(x), 2 * x)


def test_steps_that_are_not_legal():
    s = te.Schedule(matmul())
    c = s.get_block("C")
    i, _, r = s.get_loops(c)
    with pytest.raises(relay.UserError, match="E0402"):
        s.parallel(r)
    with pytest.raises(relay.UserError, match="E0402"):
        s.split(i, [3, 2])
    with pytest.raises(relay.UserError, match="E0402"):
        s.get_block("nowhere")
    with pytest.raises(relay.UserError):
        te.Schedule.replay(matmul(), "split(nowhere, 2)")
    with pytest.raises(ValueError, match="a scope is"):
        s.cache_write(c, "moon")
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, "B")
    with pytest.raises(ValueError, match="not among the inputs"):
        te.create_prim_func([], b)
    with pytest.raises(TypeError, match="not a placeholder"):
        te.create_prim_func([b], b)
    f = te.create_prim_func([a], b)
    with pytest.raises(ValueError, match="another shape"):
        f(np.ones(5, "float32"))
    with pytest.raises(TypeError, match="takes 1 arrays"):
        f()


# ---- Functions in loops ----------------------------------------------------------------------------


@relay.prim_func
def product(
    a: relay.Tensor[("n", "k"), "float32"],
    b: relay.Tensor[("k", 8), "float32"],
    out: relay.Tensor[("n", 8), "float32"],
):
    for i in range(a.shape[0]):
        for j in range(8):
            out[i, j] = 0.0
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


def arrays(*shapes):
    return [RNG.standard_normal(s).astype("float32") for s in shapes]


def test_the_loops_of_a_tensor_function_come_around_a_block():
    assert (
        str(te.Schedule(product).func).strip()
        == """
def product[n, k](a: float32[n, k], b: float32[k, 8]) -> (out: float32[n, 8]):
  for i in range(n):
    for j in range(8):
      block out(i_1 = i, j_1 = j):
        reads out[i_1, j_1], a[i_1, 0:k], b[0:k, j_1]
        writes out[i_1, j_1]
        out[i_1, j_1] = 0f
        for k_1 in range(k):
          out[i_1, j_1] = out[i_1, j_1] + a[i_1, k_1] * b[k_1, j_1]
""".strip()
    )


@pytest.mark.parametrize(
    "steps",
    [
        lambda s, i, j: s.reorder([j, i]),
        lambda s, i, j: (s.parallel(i), s.vectorize(j)),
        lambda s, i, j: s.unroll(s.split(s.fuse([i, j]), [-1, 3])[1]),
        lambda s, i, j: (s.reorder([j, i]), s.vectorize(s.split(i, [-1, 4])[1])),
        lambda s, i, j: (s.cache_read(s.get_blocks()[0], "a", "local"), s.unroll(j)),
        lambda s, i, j: s.cache_write(s.get_blocks()[0], "local"),
        lambda s, i, j: s.partition(j, 3),
    ],
)
def test_a_scheduled_tensor_function_computes_the_same(steps):
    s = te.Schedule(product)
    steps(s, *s.get_loops(s.get_block("out")))
    a, b = arrays((7, 5), (5, 8))
    np.testing.assert_allclose(s.func(a, b), a @ b, rtol=1e-5, atol=1e-6)
    assert s.trace and str(te.Schedule.replay(product, s.trace)) == str(s.func)
    kernel = lambda x, y: te.extern((x.shape[0], 8), [x, y], s.func)  # noqa: E731
    with relay.register_op("mylib.scheduled", compute=kernel) as op:
        x, y = relay.var("x", shape=(relay.Any(), 5)), relay.var("y", shape=(5, 8))
        # Twice, where the second has another size.
        f = relay.Function([x, y], op(op(x, y)[2:, :5], y))
        expected = (a @ b)[2:, :5] @ b
        np.testing.assert_allclose(relay.build(f)(a, b), expected, rtol=1e-4, atol=1e-5)


def test_a_kernel_is_emitted_on_tensors_that_fit():
    s = te.Schedule(matmul())
    x, y = arrays((8, 10), (10, 6))
    with relay.register_op(
        "mylib.kernel", compute=lambda a, b: te.extern((8, 6), [a, b], s.func)
    ) as op:
        a, b = relay.var("a", shape=(8, 10)), relay.var("b", shape=(10, 6))
        got = relay.build(relay.Function([a, b], op(a, b)))(x, y)
        np.testing.assert_allclose(got, np.maximum(x @ y, 0), rtol=1e-4, atol=1e-5)
        with pytest.raises(relay.UserError, match="another shape or dtype as B"):
            c = relay.var("c", shape=(10, 7))
            relay.build(relay.Function([a, c], op(a, c)))
    with pytest.raises(TypeError, match="names"):
        te.extern([(2,), (2,)], [], s.func, name=["one"])


def test_loops_with_scalars_strides_and_several_results():
    @relay.prim_func(outputs=2)
    def pairs(
        x: relay.Tensor[("n",), "float32"],
        both: relay.Tensor[("n",), "float32"],
        least: relay.Tensor[("n",), "float32"],
    ):
        for i in relay.parallel(0, x.shape[0] - 1, 2):
            low = min(x[i], x[i + 1])
            both[i] = low
            both[i + 1] = max(x[i], x[i + 1])
            least[x.shape[0] - 1 - i] = low
            least[x.shape[0] - 2 - i] = 0.0

    s = te.Schedule(pairs)
    assert "in parallel(" in str(s.func) and "block both(i_1 = i)" in str(s.func)
    (x,) = arrays((8,))
    both, least = s.func(x)
    assert np.array_equal(both, np.sort(x.reshape(-1, 2), axis=1).ravel())
    assert np.array_equal(least[::-1], np.c_[x.reshape(-1, 2).min(axis=1), np.zeros(4)].ravel())

    @relay.prim_func
    def inner(x: relay.Tensor[("n",), "float32"], out: relay.Tensor[("n",), "float32"]):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[0] - 3):
                out[i] = x[j]

    s = te.Schedule(inner)
    (i,) = s.get_loops(s.get_block("out"))  # all j write the same
    s.split(i, [-1, 2])
    assert s.func(x)[1:-1].tolist() == [x[4]] * 6
    assert len(s.func(x[:0])) == 0  # loops with an end before their start


@relay.prim_func
def row_sums(x: relay.Tensor[(40, 6), "float32"], out: relay.Tensor[(40,), "float32"]):
    for i in range(40):
        total = 0.0
        for j in range(6):
            total += x[i, j]
        if i == 3:
            total += 1.0
        out[i] = total


@pytest.mark.parametrize(
    "steps",
    [
        lambda s, i: (s.partition(i, 13), s.parallel(i)),
        lambda s, i: s.vectorize(s.split(i, [5, 8])[1]),
        lambda s, i: s.unroll(i),
        lambda s, i: s.unroll(i, 3),
        lambda s, i: s.parallel(i),
    ],
)
def test_local_scalars_belong_to_an_iteration(steps):
    s = te.Schedule(row_sums)
    steps(s, *s.get_loops(s.get_block("out")))
    (x,) = arrays((40, 6))
    expected = x.sum(axis=1) + (np.arange(40) == 3)
    np.testing.assert_allclose(s.func(x), expected, rtol=1e-4, atol=1e-5)
    with relay.register_op(
        "mylib.scheduled", compute=lambda x: te.extern((40,), [x], s.func)
    ) as op:
        v = relay.var("v", shape=(40, 6))
        exe = relay.build(relay.Function([v], op(v)))
        np.testing.assert_allclose(exe(x), expected, rtol=1e-4, atol=1e-5)


def refused(text):
    return pytest.raises(
        relay.UserError, match=rf"E0402.*{text}(.|\n)*test_schedule\.py:\d+(.|\n)*help:"
    )


def test_loops_whose_iterations_depend_on_one_another():
    vector = relay.Tensor[("n",), "float32"]

    @relay.prim_func
    def scan(x: vector, out: vector):
        for i in range(1, x.shape[0]):
            out[i] = out[i - 1] + x[i]

    with refused(r"an iteration of loop i reads out\[i - 1\]"):
        te.Schedule(scan)

    @relay.prim_func
    def total(x: vector, out: relay.Tensor[(1,), "float32"]):
        for i in range(x.shape[0]):
            out[0] += x[i]

    with refused(r"out\[0\] is not an element of its own for each iteration of loop i"):
        te.Schedule(total)

    @relay.prim_func
    def overlap(x: vector, out: vector):
        for i in range(0, x.shape[0] - 2, 2):
            for j in range(3):
                out[i + j] = x[i]

    with refused("is not an element of its own for each iteration of loop i"):
        te.Schedule(overlap)

    @relay.prim_func
    def scatter(x: vector, at: relay.Tensor[("n",), "int32"], out: vector):
        for i in range(x.shape[0]):
            out[at[i]] = x[i]

    with refused(r"out\[int64\(at\[i\]\)\] is not an element of its own"):
        te.Schedule(scatter)

    @relay.prim_func
    def running(x: vector, out: vector):
        top = x[0]
        for i in range(x.shape[0]):
            top = max(top, x[i])
            out[i] = top

    with refused("the iterations of the outermost loop share top"):
        te.Schedule(running)

    @relay.prim_func
    def twice(x: vector, out: vector):
        for i in range(x.shape[0]):
            out[i] = 0.0
        for j in range(x.shape[0]):
            out[j] += x[j]

    with refused("another loop, j, stands beside the outermost loop"):
        te.Schedule(twice)

    @relay.prim_func
    def up_to(x: vector, end: relay.Tensor[(1,), "int32"], out: vector):
        for i in range(end[0]):
            out[i] = x[i]

    with refused(r"a bound of the outermost loop is read from memory: end\[0\]"):
        te.Schedule(up_to)

    with pytest.raises(TypeError, match=r"made by relay\.prim_func, not of 3"):
        te.Schedule(3)
