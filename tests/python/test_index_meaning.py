"""One meaning of an index: where a mode reads, its adjoint, its tangent and its lanes do too."""

import numpy as np
import op_programs
import oracles
import pytest

import relay

SIZE = 4
PLACES = np.arange(-2 * SIZE - 1, 2 * SIZE + 2)
MEANINGS = {
    "clip": lambda i: np.clip(i, 0, SIZE - 1),
    "wrap": lambda i: i % SIZE,
    "fast": lambda i: np.clip(np.where(i < 0, i + SIZE, i), 0, SIZE - 1),
}


def take_of(mode, axis, size, index_type):
    shape = f"({size}, 3)" if axis == 0 else f"(3, {size})"
    dims = f"[{size}: Dim]" if size == "n" else ""
    text = (
        f"{op_programs.VERSION}def @main{dims}(%x: Tensor[{shape}, float64], %i: {index_type}) "
        f'{{ take(%x, %i, axis={axis}, mode="{mode}") }}\n'
    )
    return relay.parse(text)


@pytest.mark.parametrize("size", [SIZE, "n"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mode", MEANINGS)
def test_an_adjoint_goes_where_the_value_was_read(mode, axis, size):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((SIZE, 3) if axis == 0 else (3, SIZE))
    for index_type, dtype, width in (("int64", "int64", 0), ("Tensor[(2,), int32]", "int32", 1)):
        mod = take_of(mode, axis, size, index_type)
        backward = relay.transform.gradient(mod["main"], mod=mod)
        run = relay.create_executor("debug", relay.IRModule.from_expr(backward)).evaluate()
        for place in PLACES[: len(PLACES) - width]:
            index = np.array([place, place + 1] if width else place, dtype)
            value, (dx, *_) = run(x, index)
            at = MEANINGS[mode](index)
            np.testing.assert_array_equal(oracles.as_arrays(value)[0], np.take(x, at, axis))
            want = np.zeros_like(x)
            np.add.at(want, (at,) if axis == 0 else (slice(None), at), 1)
            np.testing.assert_array_equal(oracles.as_arrays(dx)[0], want, f"{mode} {place}")


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
@pytest.mark.parametrize("mode", MEANINGS)
def test_lanes_read_where_one_reads(mode, dtype):
    x = np.random.default_rng(2).standard_normal((len(PLACES), 300))
    # More elements than an int8 counts; of a uint64 those that no int64 holds are beyond any axis.
    places = np.arange(len(PLACES)).astype(dtype)
    if dtype == "uint64":
        places[-1] = np.iinfo("uint64").max
    elif dtype == "int64":
        places = PLACES * 100
    else:
        places = PLACES.astype(dtype)
    text = (
        f"{op_programs.VERSION}def @main(%x: Tensor[(300,), float64], %i: {dtype}) "
        f'{{ take(%x, %i, axis=0, mode="{mode}") }}\n'
    )
    batched = relay.transform.vmap(relay.parse(text)["main"])
    wide = [int(v) for v in places]
    at = {
        "clip": lambda i: min(max(i, 0), 299),
        "wrap": lambda i: min(i, np.iinfo("int64").max) % 300,
        "fast": lambda i: min(max(i + 300 if i < 0 else i, 0), 299),
    }[mode]
    want = [row[at(i)] for row, i in zip(x, wide, strict=True)]
    got = relay.create_executor("debug", relay.IRModule.from_expr(batched)).evaluate()(x, places)
    np.testing.assert_array_equal(oracles.as_arrays(got)[0], want)
