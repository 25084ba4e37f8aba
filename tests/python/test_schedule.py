"""relay.te.Schedule: loops are rewritten step by step, and compute what they did."""

from __future__ import annotations

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
