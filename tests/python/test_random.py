"""random.*: Threefry as its authors publish it, keys that share nothing, and distributions."""

import numpy as np
import oracles
import pytest
from random_oracles import MASK, threefry, words

import relay


def run(build, *inputs, compiled=True):
    """Values of an expression over parameters with these inputs' types."""
    params = [relay.var(f"x{i}", shape=x.shape, dtype=str(x.dtype)) for i, x in enumerate(inputs)]
    mod = relay.IRModule.from_expr(relay.Function(params, build(*params)))
    if compiled:
        return oracles.as_arrays(relay.build(mod, num_threads=1)(*inputs))
    return oracles.as_arrays(relay.create_executor("debug", mod).evaluate()(*inputs))


def key(seed):
    return np.array(relay.random.threefry_key(seed).data)


ALL = [MASK] * 4
PI = [0x452821E638D01377, 0xBE5466CF34E90C6C, 0xBE5466CF34E90C6C, 0xC0AC29B7C97C50DD]
MORE_PI = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
# From the authors' Random123: key, counter, words.
PUBLISHED = [
    ([0] * 4, [0] * 4, "09218ebde6c85537 55941f5266d86105 4bd25e16282434dc ee29ec846bd2e40b"),
    (ALL, ALL, "29c24097942bba1b 0371bbfb0f6f4e11 3c231ffa33f83a1c cd29113fde32d168"),
    (PI, MORE_PI, "a7e8fde591651bd9 baafd0c30138319b 84a5c1a729e685b9 901d406ccebc1ba4"),
]


@pytest.mark.parametrize("cipher, counter, expected", PUBLISHED)
@pytest.mark.parametrize("compiled", [False, True])
def test_words_are_those_that_the_authors_publish(cipher, counter, expected, compiled):
    given = np.array([*cipher, *counter, 0, 0], dtype="uint64")
    _, out = run(lambda k: relay.random.threefry_generate(k, [4]), given, compiled=compiled)
    assert [f"{w:016x}" for w in out] == expected.split()
    assert threefry(cipher, counter) == [int(w) for w in out]


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_follow_each_other(compiled):
    start = key(7)
    start[7] = MASK - 1  # the counter's lower word runs over
    after, first = run(
        lambda k: relay.random.threefry_generate(k, [2, 3]), start, compiled=compiled
    )
    np.testing.assert_array_equal(first.ravel(), words(start, 6))
    assert (int(after[6]), int(after[7])) == (1, 0)
    after_both, both = run(
        lambda k: relay.random.threefry_generate(k, [13]), start, compiled=compiled
    )
    np.testing.assert_array_equal(both, words(start, 13))
    assert (int(after_both[6]), int(after_both[7])) == (1, 2)
    _, second = run(lambda k: relay.random.threefry_generate(k, [5]), after, compiled=compiled)
    np.testing.assert_array_equal(second, both[8:])


def test_keys_of_a_tree_of_splits_share_no_block():
    level, blocks = [key(1)], set()
    for _ in range(4):
        below = []
        for parent in level:
            blocks.add(tuple(words(parent, 4)))
            below += run(relay.random.threefry_split, parent, compiled=False)
        level = below
    blocks |= {tuple(words(leaf, 4)) for leaf in level}
    assert len(blocks) == 1 + 2 + 4 + 8 + 16


def test_a_path_has_no_end():
    """128 splits fill the path; the next key of the cipher is a hash of it."""
    at, seen = key(3), set()
    splits = relay.build(
        relay.IRModule.from_expr(
            relay.Function(
                [k := relay.var("k", shape=(10,), dtype="uint64")], relay.random.threefry_split(k)
            )
        ),
        num_threads=1,
    )
    for step in range(140):
        seen.add(tuple(words(at, 4)))
        left, right = oracles.as_arrays(splits(at))
        seen.add(tuple(words(left if step % 3 else right, 4)))
        at = right if step % 3 else left
    assert len(seen) == 2 * 140
    assert list(at[:4]) != list(key(3)[:4])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("compiled", [False, True])
def test_uniform(dtype, compiled):
    n = 20000 if compiled else 300
    _, out = run(
        lambda k: relay.random.uniform(k, [n], dtype, low=-1.0, high=3.0), key(5), compiled=compiled
    )
    bits = words(key(5), n)
    part = (bits >> 11) * 2.0**-53 if dtype == "float64" else (bits >> 40) * 2.0**-24
    np.testing.assert_allclose(out, -1 + 4 * part, rtol=1e-6, atol=1e-6)
    assert out.dtype == dtype and out.min() >= -1 and out.max() <= 3
    if compiled:
        counts, _ = np.histogram(out, bins=20, range=(-1, 3))
        assert ((counts - n / 20) ** 2 / (n / 20)).sum() < 45  # chi-squared, 19 degrees: p = 0.001


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    n = 20001  # an odd number: the last one has half a pair
    build = lambda k: relay.random.normal(k, [n], dtype, mean=2.0, scale=3.0)  # noqa: E731
    _, out = run(build, key(6))
    _, few = run(lambda k: relay.random.normal(k, [51], dtype), key(6), compiled=False)
    z = (out - 2) / 3
    np.testing.assert_allclose(z[:51], few, rtol=1e-4, atol=1e-5)
    assert abs(z.mean()) < 4 / n**0.5 and abs(z.var() - 1) < 4 * (2 / n) ** 0.5
    assert abs((z**3).mean()) < 4 * (15 / n) ** 0.5 and abs((z**4).mean() - 3) < 4 * (96 / n) ** 0.5
    assert abs((z[:-1] * z[1:]).mean()) < 4 / n**0.5


@pytest.mark.parametrize("compiled", [False, True])
def test_multinomial(compiled):
    n = 20000 if compiled else 200
    probs = np.array([[0, 1, 2, 1, 0], [0.1, 0, 0.2, 0.3, 0.4]], dtype="float32")
    _, out = run(lambda k, p: relay.random.multinomial(k, p, n), key(8), probs, compiled=compiled)
    assert out.shape == (2, n) and out.dtype == "int32"
    for row, weights in zip(out, probs, strict=True):
        found = np.bincount(row, minlength=5)
        share = weights / weights.sum()
        assert (found[share == 0] == 0).all()
        wanted = n * share[share > 0]
        assert ((found[share > 0] - wanted) ** 2 / wanted).sum() < 16.3  # 3 degrees: p = 0.001


def test_names():
    assert relay.op.random.uniform is relay.random.uniform
    with pytest.raises(ValueError, match="a seed is"):
        relay.random.threefry_key(-1)
    with pytest.raises(relay.UserError, match="a key has ten words"):
        run(relay.random.threefry_split, np.zeros(9, dtype="uint64"))
