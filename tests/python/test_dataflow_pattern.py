"""relay.dataflow_pattern: matching, rewriting and partitioning from Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

import relay
from relay.dataflow_pattern import (
    DFPatternCallback,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_function,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    partition,
    recursive,
    rewrite,
    wildcard,
)

X = relay.var("x", shape=(2, 4))
Y = relay.var("y", shape=(2, 4))
W = relay.var("w", shape=(4, 4))


def test_calls():
    pattern = is_op("nn.relu")(is_op("add")(is_var("x"), is_constant()))
    assert pattern.match(relay.nn.relu(X + 1.0))
    assert match(pattern, relay.nn.relu(1.0 + X)), "the operands of add match in either order"
    assert not pattern.match(relay.nn.relu(Y + 1.0))
    assert not is_op("subtract")(is_var(), is_constant()).match(1.0 - X)
    assert is_op("nn.dense")(None).match(relay.nn.dense(X, W))
    assert not is_op("nn.dense")(wildcard()).match(relay.nn.dense(X, W))
    assert (wildcard() * wildcard() + wildcard()).match(X * Y + X)
    assert (wildcard() / wildcard() - wildcard()).match(X / Y - X)


def test_the_same_pattern_is_the_same_expression():
    a = wildcard()
    assert is_op("add")(a, a).match(X + X)
    assert not is_op("add")(a, a).match(X + Y)


def test_alternatives_and_options():
    pattern = (is_op("add") | is_op("multiply"))(wildcard(), wildcard())
    assert pattern.match(X + Y) and pattern.match(X * Y) and not pattern.match(X - Y)
    dense = is_op("nn.dense")(wildcard(), wildcard())
    chain = dense.optional(lambda d: is_op("nn.relu")(d))
    assert chain.match(relay.nn.dense(X, W)) and chain.match(relay.nn.relu(relay.nn.dense(X, W)))
    assert not chain.match(relay.nn.relu(X))


def test_tuples_and_fields():
    pair = is_tuple([is_var("x"), wildcard()])
    assert pair.match(relay.Tuple([X, Y])) and not pair.match(relay.Tuple([X]))
    assert is_tuple(None).match(relay.Tuple([X])) and not is_tuple(None).match(X)
    half = (
        relay.split(X, 2).astuple()[1]
        if hasattr(relay.split(X, 2), "astuple")
        else relay.split(X, 2)[1]
    )
    split = is_op("split")(wildcard())
    assert is_tuple_get_item(split).match(half) and is_tuple_get_item(split, 1).match(half)
    assert not is_tuple_get_item(split, 0).match(half)


def test_control():
    cond = relay.var("c", shape=(), dtype="bool")
    assert is_if(is_var("c"), wildcard(), is_op("exp")(wildcard())).match(
        relay.If(cond, X, relay.exp(X))
    )
    v = relay.var("v")
    let = relay.Let(v, relay.exp(X), v + v)
    assert is_let(is_var("v"), is_op("exp")(wildcard()), wildcard()).match(let)
    function = relay.Function([X, Y], X + Y)
    assert is_function(None, is_op("add")(None)).match(function)
    assert is_function([is_var("x"), is_var("y")], wildcard()).match(function)
    assert not is_function([is_var()], wildcard()).match(function)


def test_types_and_attributes():
    assert has_dtype("float32").match(X) and not has_dtype("int8").match(X)
    assert has_shape((2, 4)).match(X) and not has_shape((4, 2)).match(X)
    assert has_type("Tensor[(2, 4), float32]").match(X)
    assert not wildcard().has_type(relay.TensorType((2, 5))).match(X)
    total = is_op("sum")(wildcard()).has_attr({"keepdims": True, "axis": [1]})
    assert total.match(relay.sum(X, 1, True)) and not total.match(relay.sum(X, 1))
    assert has_attr({"Composite": "a"}).match(relay.Function([X], X, attrs={"Composite": "a"}))
    elementwise = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    assert elementwise.match(relay.exp(X)) and not elementwise.match(relay.nn.softmax(X))
    with pytest.raises(TypeError, match="not a type"):
        has_type(3.5)
    assert wildcard().where(lambda e: isinstance(e, relay.Var)).match(X)
    assert is_expr(X).match(X) and not is_expr(X).match(Y)
    assert is_expr(relay.const(1.0)).match(relay.const(1.0))


def test_dominators():
    elementwise = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    broadcast = wildcard().has_attr({"TOpPattern": 1})(wildcard(), wildcard())
    d = wildcard()
    dense = is_op("nn.dense")(d, wildcard())
    pattern = dominates(dense, elementwise | broadcast, is_op("nn.relu")(wildcard()))
    root = relay.nn.dense(X, W)
    end = relay.nn.relu(relay.exp(root) + relay.tanh(root) * root)
    assert pattern.match(end)
    assert pattern.find(end)[dense] == [root]
    assert len(pattern.find(end)[elementwise]) == 2
    # It is computed of the parent alone: not of a constant or a variable besides.
    for other in (relay.const(2.0), relay.var("z", shape=(2, 4)), relay.zeros((2, 4), "float32")):
        assert not pattern.match(relay.nn.relu(relay.exp(root) + relay.tanh(root) * other))
    assert not pattern.match(relay.nn.relu(relay.exp(X) + root))
    assert not pattern.match(relay.nn.relu(relay.nn.softmax(root)))
    assert not pattern.match(relay.nn.relu(root + relay.nn.dense(Y, W)))
    assert dense.dominates(is_op("exp")(wildcard())).match(relay.exp(root))


def test_what_is_on_the_path_may_look_like_the_parent():
    once = relay.exp(X)
    twice = relay.exp(once)
    exp = is_op("exp")(wildcard())
    pattern = dominates(exp, is_op("exp")(wildcard()), is_op("add")(wildcard(), wildcard()))
    for e in (relay.add(once, twice), relay.add(twice, once)):
        assert pattern.match(e)
        assert pattern.find(e)[exp] == [once]
    # The nearest one, where there are several.
    assert pattern.find(relay.add(twice, twice))[exp] == [twice]


@pytest.mark.parametrize("seed", range(40))
def test_dominators_of_drawn_programs(seed):
    """Every way up ends at one parent, by the definition: all ways, one after the other."""
    draw = random.Random(seed)
    nodes = [X, Y, relay.const(1.0)]
    for _ in range(9):
        a, b = (draw.choice(nodes[-5:]) for _ in range(2))
        make = draw.choice([relay.exp, relay.tanh, relay.nn.relu, relay.add, relay.multiply])
        nodes.append(make(a, b) if make in (relay.add, relay.multiply) else make(a))

    def name(e):
        return e.op.name if isinstance(e, relay.Call) else ""

    parents, passed = ({"tanh", "exp"}, {"exp", "add", "nn.relu"})

    def ways(e):
        """The operators' expressions on each way from the operands of `e` up."""
        if not isinstance(e, relay.Call):
            yield []
            return
        for operand in e.args:
            for rest in ways(operand):
                yield [operand, *rest]

    def dominating(e):
        every = list(ways(e)) if isinstance(e, relay.Call) else []
        for i, p in enumerate(every[0]) if every else ():
            reached = all(
                p in way and all(name(b) in passed for b in way[: way.index(p)]) for way in every
            )
            if name(p) in parents and reached:
                return p, i
        return None

    any_call = is_op("exp")(wildcard()) | is_op("tanh")(wildcard())
    path = is_op("exp")(wildcard()) | is_op("nn.relu")(wildcard()) | is_op("add")(None)
    pattern = dominates(any_call, path, wildcard())
    for e in nodes:
        found, expected = pattern.find(e), dominating(e)
        assert (found is None) == (expected is None), str(e)
        assert found is None or found[any_call] == [expected[0]]


def test_recursion():
    x = is_var()
    chain = recursive(lambda self: is_op("exp")(self) | is_op("tanh")(self) | x)
    e = X
    for i in range(30):
        e = relay.exp(e) if i % 3 else relay.tanh(e)
    assert chain.match(e) and not chain.match(relay.exp(relay.nn.relu(e)))
    assert chain.find(e)[x] == [X]
    whole = is_op("sum")(chain)
    assert whole.match(relay.sum(e)) and not whole.match(e)
    with pytest.raises(relay.UserError, match=r"E0316.*contains itself in its own place"):
        recursive(lambda self: self | x).match(relay.nn.relu(X))


def test_nothing_recurses_over_programs_and_all_is_linear():
    e = X
    for _ in range(30000):
        e = relay.exp(e)
    chain = recursive(lambda self: is_op("exp")(self) | is_var())
    assert chain.match(e)
    assert dominates(is_var(), is_op("exp")(wildcard()), is_op("sum")(wildcard())).match(
        relay.sum(e)
    )
    # A pattern that asks for the whole chain at each of its expressions.
    inner = recursive(lambda self: is_op("exp")(self) | is_var())

    class Once(DFPatternCallback):
        def __init__(self):
            super().__init__(rewrite_once=True)
            self.pattern = is_op("exp")(inner)
            self.count = 0

        def callback(self, pre, post, node_map):
            self.count += 1
            return post

    once = Once()
    assert rewrite(once, e) == e and once.count == 30000


class Strength(DFPatternCallback):
    """x * 2 is x + x."""

    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("multiply")(self.x, is_expr(relay.const(2.0)))

    def callback(self, pre, post, node_map):
        x = node_map[self.x][0]
        assert self.x in node_map and wildcard() not in node_map
        with pytest.raises(KeyError):
            node_map[wildcard()]
        return x + x


def test_rewrite():
    before = relay.Function([X], (X * 2.0) * 2.0)
    after = rewrite(Strength(), before)
    mod = relay.IRModule.from_expr(after)
    assert relay.analysis.list_op_freqs(mod) == {"add": 2}
    x = np.ones((2, 4), "float32")
    assert np.array_equal(relay.create_executor("debug", mod).evaluate()(x), 4 * x)
    assert Strength().rewrite(after) == after
    kept = []

    class Keep(Strength):
        def callback(self, pre, post, node_map):
            kept.append((self.x, node_map))
            return post

    rewrite([Keep(), Strength()], before)
    part, found = kept[0]
    assert found[part] == [X], "what a callback keeps stays valid"


def test_rewrites_that_go_wrong():
    class Bad(Strength):
        def __init__(self, result):
            super().__init__()
            self.result = result

        def callback(self, pre, post, node_map):
            return self.result(post)

    f = relay.Function([X], X * 2.0)
    with pytest.raises(relay.UserError, match=r"E0315"):
        rewrite(Bad(lambda post: None), f)
    with pytest.raises(relay.UserError, match=r"E0314.*ZeroDivisionError"):
        rewrite(Bad(lambda post: 1 / 0), f)
    with pytest.raises(relay.UserError, match=r"E0317"):
        rewrite(Bad(lambda post: relay.multiply(post.args[0], post.args[1])), f)
    with pytest.raises(relay.UserError, match=r"E0316.*nested too deeply"):
        deep = wildcard()
        for _ in range(1000):
            deep = is_op("exp")(deep)
    with pytest.raises(relay.UserError, match=r"E0105"):
        is_op("no_such_op")
    with pytest.raises(TypeError, match="not a pattern"):
        is_op("exp")(X)
    with pytest.raises(TypeError, match="DFPatternCallback"):
        rewrite([3], f)
    with pytest.raises(relay.UserError, match=r"E0314.*a condition of a pattern"):
        wildcard().where(lambda e: 1 / 0).match(X)


def test_partition():
    conv = is_op("nn.dense")(wildcard(), wildcard())
    pattern = is_op("nn.relu")(is_op("add")(conv, is_constant()))
    bias = relay.const(np.arange(4, dtype="float32"))
    inside = relay.nn.relu(relay.nn.dense(X, W) + bias)
    f = relay.Function([X, W], relay.exp(relay.nn.dense(inside, W)))
    out = partition(pattern, f, {"Composite": "mylib.dense"})
    call = out.body.args[0].args[0]
    assert isinstance(call.op, relay.Function) and len(call.op.params) == 2
    attrs = dict(call.op.attrs)
    assert attrs["PartitionedFromPattern"] == "nn.dense_add_nn.relu_"
    assert attrs["Composite"] == "mylib.dense"
    assert list(call.args) == [X, W]
    x, w = np.ones((2, 4), "float32"), np.eye(4, dtype="float32")
    results = [
        relay.create_executor("debug", relay.IRModule.from_expr(e)).evaluate()(x, w)
        for e in (f, out)
    ]
    assert np.array_equal(*results)
    assert np.array_equal(relay.build(relay.IRModule.from_expr(out))(x, w), relay.build(f)(x, w))
    assert partition(pattern, f, check=lambda e: False) == f
    # What is used elsewhere is not taken away.
    shared = relay.nn.dense(X, W)
    g = relay.Function([X, W], relay.nn.relu(shared + bias) + shared)
    assert partition(pattern, g) == g
    assert partition(is_if(wildcard(), wildcard(), wildcard()), f) == f


def test_partition_takes_recursion_and_paths():
    chain = recursive(lambda self: is_op("exp")(self) | wildcard())
    f = relay.Function([X], relay.nn.softmax(relay.exp(relay.exp(relay.exp(relay.tanh(X))))))
    out = chain.partition(f.body, check=lambda e: isinstance(e, relay.Call))
    call = out.args[0] if isinstance(out.op, relay.Op) else out
    assert isinstance(call.op, relay.Function)
    assert str(call.op.body).count("exp") == 3


def test_matches_do_not_overlap():
    pair = is_op("exp")(is_op("exp")(wildcard()))
    e = X
    for _ in range(5):
        e = relay.exp(e)
    out = pair.partition(relay.Function([X], e))
    functions = []
    relay.analysis.post_order_visit(
        out.body, lambda n: functions.append(n) if isinstance(n, relay.Function) else None
    )
    assert len(functions) == 2
