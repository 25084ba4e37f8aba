"""Sums of updates that meet are the same, bit for bit, however many threads add them."""

import numpy as np
import pytest

import relay

rng = np.random.default_rng(7)


def updated(text: str, threads: int, *inputs: np.ndarray) -> np.ndarray:
    run = relay.build(relay.fromtext(f'#[version = "0.0.5"]\n{text}'), num_threads=threads)
    return np.asarray(run(*inputs))


# Updates in order, one after the other: what a thread more must not change.
def in_order(data: np.ndarray, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    out = data.copy()
    for at, update in zip(places, updates, strict=True):
        out[at] += update
    return out


@pytest.mark.parametrize("columns", [1, 70, 128, 200])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_lines_that_meet_are_added_in_order(columns, threads):
    places = rng.integers(-50, 50, 700)
    updates = rng.normal(size=(700, columns)).astype("float32")
    text = f"""def @main(%i: Tensor[(1, 700), int64], %u: Tensor[(700, {columns}), float32]) {{
      scatter_nd(zeros(shape=[3000, {columns}], dtype="float32"), %i, %u, mode="add")
    }}"""
    expected = in_order(np.zeros((3000, columns), "float32"), places, updates)
    np.testing.assert_array_equal(updated(text, threads, places[None], updates), expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_that_meet_are_added_in_order(axis, threads):
    data = rng.normal(size=(160, 200)).astype("float32")
    places = rng.integers(0, 30, (400, 200) if axis == 0 else (160, 300))
    updates = rng.normal(size=places.shape).astype("float32")
    many = f"{places.shape[0]}, {places.shape[1]}"
    text = f"""def @main(%d: Tensor[(160, 200), float32],
                         %i: Tensor[({many}), int64], %u: Tensor[({many}), float32]) {{
      scatter_elements(%d, %i, %u, axis={axis}, reduction="add")
    }}"""
    expected = data.copy()
    across = np.arange(200) if axis == 0 else np.arange(160)
    for k in range(places.shape[axis]):
        at = places.take(k, axis)
        expected[(at, across) if axis == 0 else (across, at)] += updates.take(k, axis)
    np.testing.assert_array_equal(updated(text, threads, data, places, updates), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_index_outside_fails_on_every_thread(threads):
    text = """def @main(%i: Tensor[(1, 700), int64], %u: Tensor[(700, 128), float32]) {
      scatter_nd(zeros(shape=[60, 128], dtype="float32"), %i, %u, mode="add")
    }"""
    places = np.zeros((1, 700), "int64")
    places[0, 650] = 60
    with pytest.raises(relay.RelayError, match="index 60 is out of bounds"):
        updated(text, threads, places, np.ones((700, 128), "float32"))
