"""gather_nd with batch dimensions, against its definition over NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import relay


def gathered(x, indices, batch):
    """x at the place of each index vector, which keeps its first `batch` numbers."""
    lead = indices.shape[1:]
    out = np.empty(lead + x.shape[len(indices) + batch :], x.dtype)
    for at in np.ndindex(*lead):
        out[at] = x[at[:batch] + tuple(indices[(slice(None), *at)])]
    return out


# Shapes of data and index vectors: with and without slices behind, and more leading axes than batches.
CASES = [
    ((2, 3, 4), (1, 2, 3), 2),
    ((2, 3, 4, 5), (2, 2, 3), 2),
    ((2, 3, 4, 5), (1, 2, 3), 2),
    ((3, 2, 2, 3, 4), (3, 3, 2), 2),
    ((3, 2, 2, 3, 4), (1, 3, 2, 3), 2),
    ((2, 3, 4), (2, 2), 1),
    ((2, 3, 4), (1, 2, 5), 1),
    ((2, 3, 2, 5), (1, 2, 3, 2), 3),
    ((2, 3, 2, 5), (2, 2, 3), 1),
    ((4, 5), (2, 3, 2), 0),
]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_batch_dimensions(case, is_open):
    shape, index_shape, batch = CASES[case]
    rng = np.random.default_rng(case)
    x = rng.standard_normal(shape).astype("float32")
    sizes = shape[batch : batch + index_shape[0]]
    i = np.stack([rng.integers(0, s, index_shape[1:]) for s in sizes]).astype("int64")
    names = [relay.TypeVar(f"n{k}") for k in range(batch)] if is_open else list(shape[:batch])
    a = relay.var("x", shape=(*names, *shape[batch:]))
    b = relay.var("i", shape=(index_shape[0], *names, *index_shape[1 + batch :]), dtype="int64")
    f = relay.Function([a, b], relay.gather_nd(a, b, batch_dims=batch))
    wanted = gathered(x, i, batch)
    np.testing.assert_array_equal(relay.build(f)(x, i), wanted)
    evaluated = relay.create_executor("debug", relay.IRModule.from_expr(f)).evaluate()(x, i)
    np.testing.assert_array_equal(evaluated, wanted)
