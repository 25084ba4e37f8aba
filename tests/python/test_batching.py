"""Batching: functions in all lanes of a batch, compiled and evaluated, and what is refused."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from command_line import relay as command

import relay

ROOT = Path(__file__).resolve().parents[2]
VERSION = '#[version = "0.0.5"]\n'
NETWORK = (
    VERSION
    + """def @main(%x: Tensor[(2, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32],
          %b: Tensor[(4), float32], %v: Tensor[(5, 64), float32]) {
  let %c = nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1]), %b));
  let %p = nn.max_pool2d(%c, pool_size=[2, 2], strides=[2, 2]);
  nn.log_softmax(nn.dense(nn.batch_flatten(%p), %v))
}
"""
)
POWER = (
    VERSION
    + """def @power(%x: float32, %n: int32) -> float32 {
  if (less_equal(%n, 0)) { 1f } else { multiply(%x, @power(%x, subtract(%n, 1))) }
}
def @main(%x: float32, %n: int32) { @power(%x, %n) }
"""
)


def test_snippets_of_the_documentation(tmp_path):
    snippets = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/batching.md").read_text(), re.DOTALL
    )
    assert len(snippets) == 6
    # Of functions in Python the source is read: it is in a file.
    page = tmp_path / "batching_page.py"
    page.write_text("\n".join(snippets))
    module = sys.modules["batching_page"] = types.ModuleType("batching_page")
    exec(compile(page.read_text(), str(page), "exec"), vars(module))


def sample(mod, lanes=None):
    random = np.random.default_rng(3)
    shapes = [tuple(p.shape) for p in mod.functions["main"].params]
    return [
        random.standard_normal(s if n is None else (n, *s)).astype("float32")
        for s, n in zip(shapes, lanes or [None] * len(shapes), strict=True)
    ]


@pytest.mark.parametrize("in_axes", [(0, None, None, None), (None, 0, 0, None), (0, 0, 0, 0)])
def test_a_network_compiled(in_axes):
    mod = relay.parse(NETWORK)
    f = mod.functions["main"]
    assert relay.transform.lane_by_lane(f, in_axes, axis_size=3) == []
    g = relay.transform.vmap(f, in_axes, axis_size=3, strict=True)
    inputs = sample(mod, [None if a is None else 3 for a in in_axes])
    one = relay.build(f)
    lanes = [
        one(*(x if a is None else x[k] for x, a in zip(inputs, in_axes, strict=True)))
        for k in range(3)
    ]
    for level in (0, 3):
        with relay.transform.PassContext(level):
            assert np.allclose(relay.build(g)(*inputs), np.stack(lanes), atol=1e-5)


def test_any_number_of_lanes():
    mod = relay.parse(NETWORK)
    g = relay.transform.vmap(mod.functions["main"], (0, None, None, None))
    many = relay.build(g)
    x, *weights = sample(mod, [5, None, None, None])
    whole = many(x, *weights)
    assert whole.shape == (5, 2, 5)
    assert np.allclose(many(x[:2], *weights), whole[:2], atol=1e-5)


def test_gradients_of_single_examples():
    mod = relay.parse(NETWORK)
    loss = relay.parse(
        NETWORK.replace("nn.log_softmax(", "mean(nn.log_softmax(").replace("%v))\n", "%v)))\n")
    )
    g = relay.transform.gradient(loss.functions["main"], loss)
    each = relay.build(relay.transform.vmap(g, (0, None, None, None), axis_size=3))
    x, *weights = sample(mod, [3, None, None, None])
    _, gradients = each(x, *weights)
    assert [v.shape[0] for v in gradients] == [3] * 4
    one = relay.build(g)
    for k in range(3):
        for found, wanted in zip(gradients, one(x[k], *weights)[1], strict=True):
            assert np.allclose(found[k], wanted, atol=1e-4)


def test_a_module_with_functions_of_its_own():
    mod = relay.parse(POWER)
    with pytest.raises(ValueError, match="add_batched"):
        relay.transform.vmap(mod.functions["main"], mod=mod)
    [(what, why, place)] = relay.transform.lane_by_lane(mod.functions["main"], mod=mod)
    assert what == "if" and "may fail or not end" in why and ":3:" in place
    out = relay.transform.add_batched(mod, "main", "many", axis_size=3)
    x, n = np.float32([2, 3, 4]), np.int32([5, 0, 2])
    found = relay.create_executor("debug", out).evaluate().run("many", x, n)
    assert np.allclose(found, x**n)
    whole = out.with_function("main", out.functions["many"])
    assert np.allclose(relay.build(whole)(x, n), x**n)


def test_the_pass(tmp_path):
    program = tmp_path / "power.relay"
    program.write_text(POWER)
    text = command("opt", "--passes", "Batch", program).stdout
    assert "def @main[lanes: Dim]" in text.replace("[%lanes", "[lanes")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"in_axes": (3, 0)}, "E1101"),
        ({"in_axes": (0, 0, 0)}, "E1101"),
        ({"in_axes": 0, "out_axes": None}, "E1101"),
        ({"in_axes": None}, "E1103"),
        ({"strict": True}, "E1104"),
    ],
)
def test_refusals(options, code):
    mod = relay.parse(POWER)
    with pytest.raises(relay.RelayError, match=code):
        relay.transform.add_batched(mod, "main", "many", **options)


def test_what_is_no_axis():
    mod = relay.parse(POWER)
    with pytest.raises(relay.RelayError, match="an axis is an int"):
        relay.transform.add_batched(mod, in_axes="0")
    with pytest.raises(relay.RelayError, match="axis_size"):
        relay.transform.add_batched(mod, axis_size=-1)
    with pytest.raises(TypeError, match="Function is needed"):
        relay.transform.vmap(relay.var("x"))
    nested = []
    nested.append(nested)
    with pytest.raises(relay.RelayError, match="too deep"):
        relay.transform.add_batched(mod, in_axes=nested)


# ---- Functions in Python


@relay.function
def score(x, w):
    return np.tanh(x * w["a"]).sum() + w["b"][0]


def weights():
    random = np.random.default_rng(1)
    return {"a": random.normal(size=3).astype("float32"), "b": np.float32([2, 3])}


def rows(count=4):
    return np.random.default_rng(2).normal(size=(count, 3)).astype("float32")


def plain(x, w):
    return np.tanh(x * w["a"]).sum() + w["b"][0]


def test_a_python_function():
    many = relay.vmap(score, in_axes=(0, None))
    w = weights()
    for count in (4, 1, 6):
        x = rows(count)
        assert np.allclose(many(x, w), [plain(row, w) for row in x], atol=1e-5)
    columns = relay.vmap(score, in_axes=(1, None))
    assert np.allclose(columns(rows().T.copy(), w), many(rows(), w), atol=1e-6)


def test_batches_of_batches_and_gradients():
    w, x = weights(), rows()
    pairs = relay.vmap(relay.vmap(score, in_axes=(0, None)), in_axes=(None, 0))
    several = {"a": np.stack([w["a"], 2 * w["a"]]), "b": np.stack([w["b"], w["b"]])}
    assert pairs(x, several).shape == (2, 4)
    each = relay.vmap(relay.grad(score, argnums=(0, 1)), in_axes=(0, None))
    dx, dw = each(x, w)
    slope = 1 - np.tanh(x * w["a"]) ** 2
    assert np.allclose(dx, slope * w["a"], atol=1e-5)
    assert np.allclose(dw["a"], slope * x, atol=1e-5) and dw["b"].tolist() == [[1, 0]] * 4

    @relay.function
    def total(x, w):
        def one(row):
            return score(row, w)

        return relay.vmap(one)(x).sum()

    assert np.allclose(relay.grad(total)(x, w), slope * w["a"], atol=1e-5)


@relay.function
def newton(x):
    y = x
    while abs(y * y - x) > 1e-4 * x:
        y = (y + x / y) / 2
    return y, (x > 2, [y, x])


def test_structures_and_loops():
    x = np.float32([1, 2, 50, 9])
    root, (large, [again, same]) = relay.vmap(newton)(x)
    assert np.allclose(root, np.sqrt(x), rtol=1e-3) and large.tolist() == [False, False, True, True]
    assert np.array_equal(root, again) and np.array_equal(same, x)
    root, _ = relay.vmap(newton, out_axes=(0, 0))(x)
    assert root.shape == (4,)


def test_axes_by_names():
    @relay.function
    def layer(p, x):
        return {"h": x @ p["w"] + p["b"], "more": (x * 2, x.sum())}

    draw = np.random.default_rng(3).normal
    w, b, x = draw(size=(4, 3, 2)), draw(size=2), draw(size=(3, 4))
    lanes = [layer({"w": w[i], "b": b}, x[:, i]) for i in range(4)]
    axes = {"h": 1, "more": (-1, 0)}

    @relay.function
    def within(p, x):
        return relay.vmap(layer, in_axes=({"b": None, "w": 0}, 1), out_axes=axes)(p, x)

    outside = relay.vmap(layer, in_axes=({"b": None, "w": 0}, 1), out_axes=axes)
    for batch in (outside, within):
        found = batch({"w": w, "b": b}, x)
        np.testing.assert_allclose(found["h"], np.stack([y["h"] for y in lanes], axis=1), rtol=1e-5)
        np.testing.assert_allclose(found["more"][0], x * 2)
        np.testing.assert_allclose(found["more"][1], x.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("axes", "args", "code"),
    [
        ((0, 0), (rows(4), rows(3)), "E1102"),
        ((2, 0), (rows(4), rows(4)), "E1101"),
        ((0,), (rows(4), rows(4)), "E1101"),
        (((0, 0), 0), (rows(4), rows(4)), "E1101"),
        (({"w": 0}, 0), (rows(4), rows(4)), "E1101"),
        (None, (rows(4), rows(4)), "E1103"),
    ],
)
def test_refusals_of_python_functions(axes, args, code):
    @relay.function
    def add(x, y):
        return x + y

    with pytest.raises(relay.UserError, match=code) as raised:
        relay.vmap(add, in_axes=axes)(*args)
    if code == "E1102":
        assert "4, as argument 0 has" in str(raised.value)
        assert "3 in argument 1" in str(raised.value)


def test_what_is_no_python_function():
    with pytest.raises(TypeError, match="takes a function, not ufunc"):
        relay.vmap(np.sin)
    with pytest.raises(TypeError, match="an axis is"):
        relay.vmap(score, in_axes="0")


Pair = relay.Tensor[(2,), "float32"]


@relay.data
class Plant:
    class Bud:
        size: Pair

    class Twig:
        left: "Plant"
        right: "Plant"

    class Stem:
        parts: "list[Plant]"


@relay.function
def weight(w, plant: Plant):
    match plant:
        case Plant.Bud(size):
            return np.tanh(w * size)
        case Plant.Twig(left, right):
            return np.tanh(w * weight(w, left) + weight(w, right))
        case Plant.Stem(parts):
            total = w
            for part in parts:
                total = total * np.float32(0.5) + weight(w, part)
            return total


@relay.function(fixed_sizes=True)
def all_weights(w, plants: list[Plant]):
    total = np.float32(0)
    for i, plant in enumerate(plants):
        total = total + weight(w, plant).sum() * i
    return total


def test_trees_depth_by_depth():
    """Compiled: floats in trees, lists of parts, none, one; the gradient with them."""
    random = np.random.default_rng(3)

    def draw(depth):
        kind = random.integers(0, 3) if depth else 0
        if kind == 0:
            return Plant.Bud(random.normal(size=2).astype("float32"))
        if kind == 1:
            return Plant.Twig(draw(depth - 1), draw(depth - 1))
        return Plant.Stem([draw(depth - 1) for _ in range(random.integers(0, 4))])

    w = np.float32([0.5, -1])
    plants = [draw(depth) for depth in (4, 0, 3, 4, 1)]
    one_by_one = relay.value_and_grad(all_weights)(w, plants)
    with relay.transform.PassContext(required_pass=["BatchTrees"]):
        slope = relay.value_and_grad(all_weights)
        together = slope(w, plants)
        assert "_forest" in slope.lower(w, plants).astext()
    assert np.allclose(one_by_one[0], together[0], rtol=1e-5)
    assert np.allclose(one_by_one[1], together[1], rtol=1e-4)


def test_a_branch_that_may_fail_is_not_evaluated_for_other_lanes():
    # An index of the untaken branch lies outside the table.
    text = """#[version = "0.0.5"]
    def @main(%which: bool, %i: Tensor[(2), int64]) -> Tensor[(2), int64] {
      if (%which) { checked_index(%i, 3i64) } else { %i }
    }"""
    which, i = np.array([True, False]), np.array([[0, -1], [7, -9]], "int64")
    out = relay.transform.vmap(relay.parse(text)["main"])
    for run in (relay.build(out), relay.create_executor("debug", out).evaluate()):
        np.testing.assert_array_equal(run(which, i), [[0, 2], [7, -9]])


def test_random_numbers_of_each_lane_by_its_key():
    mod = relay.parse(
        VERSION
        + """def @main(%key: Tensor[(10), uint64], %scale: float32) {
  let %keys = random.threefry_split(%key);
  let %u = random.uniform(%keys.0, 0f, %scale, out_shape=[3, 5]);
  (%u.1, random.normal(%keys.1, 1f, 2f, out_shape=[4]))
}
"""
    )
    f = mod.functions["main"]
    keys = np.stack([np.asarray(relay.random.threefry_key(seed).data) for seed in range(6)])
    scales = np.float32(np.arange(6) + 1)
    one = relay.build(f)
    alone = [one(key, scale) for key, scale in zip(keys, scales, strict=True)]
    for lanes in (6, None):
        together = relay.build(relay.transform.vmap(f, 0, axis_size=lanes, strict=True))(
            keys, scales
        )
        for k, (u, (next_key, normal)) in enumerate(alone):
            assert np.array_equal(together[0][k], u)
            assert np.array_equal(together[1][0][k], next_key)
            assert np.array_equal(together[1][1][k], normal)


def test_what_is_the_same_in_all_lanes_of_a_tuple_is_not_repeated():
    mod = relay.parse(
        VERSION
        + """def @main(%w: Tensor[(4, 3), float32], %x: Tensor[(3), float32], %i: int64) {
  (einsum((%w, %x), equation="ij,j"), adv_index((%w, %i)))
}
"""
    )
    g = relay.transform.vmap(mod.functions["main"], (None, 0, 0), axis_size=7, strict=True)
    assert "broadcast_to" not in str(g) and "repeat" not in str(g)
    random = np.random.default_rng(2)
    w, x = np.float32(random.normal(size=(4, 3))), np.float32(random.normal(size=(7, 3)))
    i = random.integers(0, 4, 7)
    products, rows = relay.build(g)(w, x, i)
    assert np.allclose(products, x @ w.T, atol=1e-5) and np.array_equal(rows, w[i])


def test_trees_with_lists_of_parts_are_batched_without_a_gradient():
    """A loop over parts reads rows of one tensor with a row more: its size tells how many there are."""
    mod = relay.parse("""#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
type Rose { Rose(Tensor[(4), float32], List[Rose]) }
def @parts(%w: Tensor[(4), float32], %l: List[Rose], %s: Tensor[(4), float32]) -> Tensor[(4), float32] {
  match (%l) {
    Cons(%t, %r) => { let %one = @worth(%w, %t); @parts(%w, %r, add(%s, %one)) },
    Nil => %s } }
def @worth(%w: Tensor[(4), float32], %t: Rose) -> Tensor[(4), float32] {
  match (%t) { Rose(%x, %l) => {
    let %c = @parts(%w, %l, zeros(shape=[4], dtype="float32")); tanh(multiply(%w, add(%x, %c))) } } }
def @fill(%n: int32, %x: Tensor[(4), float32], %l: List[Rose]) -> List[Rose] {
  if (equal(%n, 0)) { %l } else { @fill(subtract(%n, 1), multiply(%x, 0.9f), Cons(Rose(%x, %l), %l)) } }
def @main(%w: Tensor[(4), float32], %n: int32, %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  @worth(%w, Rose(%x, @fill(%n, %x, Nil))) }
""")
    args = np.float32([0.5, -0.25, 1, 0.125]), np.int32(4), np.float32([1, 2, -1, 0.5])
    config = {"relay.BatchTrees.strict": True}
    with relay.transform.PassContext(required_pass=["BatchTrees"], config=config):
        together = relay.build(mod)(*args)
    np.testing.assert_allclose(together, relay.build(mod)(*args), rtol=1e-5)
