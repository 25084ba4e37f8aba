"""Values that nest deeper than the stack, and long lists: in, out, compared, copied, pickled, printed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import relay

VERSION = '#[version = "0.0.5"]\n'
TEXT = "type T { Leaf, Node(T, float32, T), Many(List[T]) }\ndef @main(%t: T) -> T { %t }"
DEPTH = 50_000
VALUE = relay.ConstructorValue


def executors():
    mod = relay.parse(VERSION + TEXT)
    return [relay.build(mod), relay.create_executor("debug", mod).evaluate()]


def chain(depth, wrap):
    out = VALUE("Leaf")
    for i in range(depth):
        out = VALUE("Many", [[out]]) if i % 3 == 0 else VALUE("Node", wrap(out))
    return out


def test_deep_data_goes_in_and_comes_out():
    deep = chain(DEPTH, lambda t: (t, 1.0, VALUE("Leaf")))
    for run in executors():
        out = run(deep)
        assert out == deep and hash(out) == hash(deep) and out.type == "T"
    assert VALUE("Node", (deep, 1.0, VALUE("Leaf"))) != VALUE("Node", (deep, 2.0, VALUE("Leaf")))
    assert len(repr(deep)) < 5000 and repr(deep).startswith("Node(Many([Node(")
    assert copy.deepcopy(deep) == deep
    assert pickle.loads(pickle.dumps(deep)) == deep


def test_what_stands_in_several_places_is_one_value():
    # 2^200 leaves where each were its own.
    shared = chain(200, lambda t: (t, 1.0, t))
    for run in executors():
        out = run(shared)
        assert out == shared and out.fields[0] is out.fields[2]
    again = pickle.loads(pickle.dumps(copy.deepcopy(shared)))
    assert again == shared and again.fields[0] is again.fields[2]


def test_the_place_of_what_does_not_fit_is_cut():
    deep = VALUE("Node", (VALUE("Leaf"), "a", VALUE("Leaf")))
    for _ in range(1000):
        deep = VALUE("Node", (VALUE("Leaf"), 1.0, deep))
    for run in executors():
        with pytest.raises(relay.UserError, match="E0603") as caught:
            run(deep)
        message = caught.value.diagnostics[0].message
        assert message.endswith(
            "field 2, field 2, ... 993 more ..., field 2, field 2, field 2, field 1 does not fit"
        )


def test_a_list_that_holds_itself_is_refused():
    ring: list = []
    ring.append(VALUE("Many", [ring]))
    for run in executors():
        with pytest.raises(relay.UserError, match="holds itself"):
            run(ring[0])
    for walk in (copy.deepcopy, pickle.dumps):
        with pytest.raises(ValueError, match="holds itself"):
            walk(ring[0])
    assert "..." in repr(ring[0])


def test_long_lists():
    mod = relay.parse(VERSION + "def @main(%xs: List[int32]) -> List[int32] { Cons(7, %xs) }")
    given = np.arange(100_000, dtype="int32").tolist()
    for run in (relay.build(mod), relay.create_executor("debug", mod).evaluate()):
        assert run(given) == [7, *given]


@relay.data
class Tree:
    class Leaf:
        pass

    class Node:
        left: Tree
        value: float
        right: Tree

    class Many:
        children: list[Tree]
        name: relay.Tensor[(2,), np.int32]


@relay.function
def grown(tree: Tree) -> Tree:
    match tree:
        case Tree.Node(left, value, right):
            return Tree.Node(right, value + 1, left)
        case _:
            return tree


def test_deep_values_of_relay_data():
    tree, name = Tree.Leaf(), np.int32([1, 2])
    for i in range(DEPTH):
        tree = Tree.Node(tree, 1.0, Tree.Leaf()) if i % 2 else Tree.Many([tree, tree], name)
    out = grown(tree)
    assert isinstance(out, Tree.Node) and out.value == 2.0 and isinstance(out.left, Tree.Leaf)
    assert out.right.children[0] is out.right.children[1]
    again = pickle.loads(pickle.dumps(copy.deepcopy(out)))
    assert again.value == 2.0 and again.right.children[0] is again.right.children[1]
    assert copy.copy(out) is out
    shown = repr(out)
    assert shown.startswith(
        "Tree.Node(left=Tree.Leaf(), value=2.0, right=Tree.Many(children=[Tree."
    )
    assert len(shown) < 10_000
    assert repr(Tree.Many([Tree.Leaf()], name)) == "Tree.Many(children=[Tree.Leaf()], name=[1, 2])"


@relay.function
def doubled(values: list[float]) -> list[float]:
    out = []
    for value in values:
        out.append(2 * value)
    return out


def test_a_long_list_through_a_function():
    out = doubled([float(i) for i in range(100_000)])
    assert len(out) == 100_000 and out[99_999] == 199_998


@relay.function
def first(values):
    return values[0]


def test_an_argument_that_nests_too_deeply_is_refused():
    deep: list = [np.float32(1)]
    for _ in range(5000):
        deep = [deep]
    ring: list = []
    ring.append(ring)
    for value in (deep, ring):
        with pytest.raises(relay.UserError, match="E0909") as caught:
            first(value)
        assert "def first(values)" in str(caught.value)


def test_a_long_list_without_annotation_is_refused():
    assert first([1.0] * 2000) == 1
    with pytest.raises(relay.UserError, match=r"E0908(.|\n)*annotate it, list\[float\]"):
        first([1.0] * 2001)
