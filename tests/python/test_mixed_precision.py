"""ToMixedPrecision: which calls are computed in 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

import relay

HEAD = (
    '#[version = "0.0.5"]\n'
    "def @main(%x: Tensor[(3, 5), float32], %w: Tensor[(4, 5), float32]) {\n  "
)
DENSE = 'nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"))'
WIDE = DENSE[:-1] + ', out_dtype="float32")'

CASES = {
    "what follows a product": (
        "nn.softmax(nn.relu(nn.dense(%x, %w)))",
        f'nn.softmax(cast(nn.relu({DENSE}), dtype="float32"))',
    ),
    "constants beside low operands": (
        "add(nn.dense(%x, %w), 1f)",
        f'cast(add({DENSE}, cast(1f, dtype="float16")), dtype="float32")',
    ),
    "operands of both kinds stay wide": (
        "%0 = nn.dense(%x, %w); add(%0, nn.softmax(%0))",
        f"%0 = {WIDE}; add(%0, nn.softmax(%0))",
    ),
    "sums that are wanted in float32 are not rounded before": (
        "nn.softmax(nn.dense(%x, %w))",
        f"nn.softmax({WIDE})",
    ),
    "and rounded for those who want 16 bits": (
        "%0 = nn.dense(%x, %w); add(nn.softmax(%0), nn.relu(%0))",
        f'%0 = {WIDE}; add(nn.softmax(%0), cast(nn.relu(cast(%0, dtype="float16")), dtype="float32"))',
    ),
    "results keep their sums": (
        "%0 = nn.dense(%x, %w); (%0, exp(%0))",
        f"%0 = {WIDE}; (%0, exp(%0))",
    ),
    "a dtype that is asked for": (
        'nn.relu(nn.dense(%x, %w, out_dtype="float32"))',
        f"nn.relu({WIDE})",
    ),
    "parts of a tuple": (
        "%0 = split(nn.dense(%x, %w), indices_or_sections=2, axis=1); concatenate((%0.1, %0.0), axis=1)",
        f"%0 = split({DENSE}, indices_or_sections=2, axis=1); "
        'cast(concatenate((%0.1, %0.0), axis=1), dtype="float32")',
    ),
}


def program(body):
    return relay.parse(HEAD + body + "\n}")


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    before, after = map(program, CASES[name])
    found = relay.transform.ToMixedPrecision()(before)
    assert found == after, found.astext()
    x = np.linspace(-1, 1, 15, dtype="float32").reshape(3, 5)
    w = np.linspace(1, -1, 20, dtype="float32").reshape(4, 5)
    found, expected = relay.build(found)(x, w), relay.build(before)(x, w)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_nothing_begins_without_a_product():
    mod = program("nn.relu(add(%x, 1f))")
    assert relay.transform.ToMixedPrecision("bfloat16")(mod) == mod


def test_only_sixteen_bits():
    with pytest.raises(relay.UserError, match=r"E0313(.|\n)*float16 or bfloat16"):
        relay.transform.ToMixedPrecision("float64")(program("%x"))
