"""What a thing is shown as, at the prompt and in notebooks; what is compared, hashed, copied and pickled."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import relay
from relay import dataflow_pattern as pattern

X = relay.var("x", shape=(2, 3))
MOD = relay.parse(
    '#[version = "0.0.5"]\n'
    "def @f(%x: int32) -> int32 { add(%x, 1) }\ndef @main(%x: int32) -> int32 { @f(@f(%x)) }"
)


@relay.function
def plus(a):
    return a + 1


plus(np.ones(3))

SHOWN = [
    (X, "%x"),
    (X + 1.0, "add(%x, 1f)"),
    (MOD["f"], "<relay.Function: fn (int32) -> int32, 1 operator>"),
    (relay.const(np.ones((50, 50))), "<relay.Constant: Tensor[(50, 50), float64]>"),
    (relay.Let(relay.var("y"), X, X * 2.0), "<relay.Let: Tensor[(2, 3), float32], 1 operator>"),
    (X.checked_type, "Tensor[(2, 3), float32]"),
    (relay.TensorType((2 * relay.TypeVar("n"),)).shape[0], "(2 * n)"),
    (relay.nn.softmax(X, axis=1).attrs, "SoftmaxAttrs(axis=1)"),
    (relay.PatternWildcard(), "_"),
    (relay.PatternTuple([relay.PatternVar(X)]), "(%x,)"),
    (relay.PatternConstructor(relay.Prelude().cons, [relay.PatternVar(X), relay.PatternWildcard()]),
     "Cons(%x, _)"),
    (relay.op.get("add"), "add"),
    (relay.Prelude(), "<relay.Prelude: List, Option, Tree, nat, TensorArray, 57 functions>"),
    (relay.analysis.CallGraph(MOD), "<relay.analysis.CallGraph: @main -> @f>"),
    (relay.ScopeBuilder(), "<relay.ScopeBuilder: no bindings>"),
    (pattern.is_op("add")(pattern.wildcard(), pattern.is_constant()), "<CallPattern("),
    (plus, "<relay.function plus(a), 1 compiled>"),
    (plus.lower(np.ones(3)),
     "<relay.function plus(a: Tensor[(a0,), float64]) -> Tensor[(a0,), float64], lowered>"),
    (relay.grad(plus), "<relay.grad of plus>"),
]  # fmt: skip


@pytest.mark.parametrize(("thing", "text"), SHOWN, ids=lambda v: type(v).__name__)
def test_a_thing_says_what_it_is_in_one_line(thing, text):
    assert repr(thing).startswith(text) and "\n" not in repr(thing) and len(repr(thing)) < 200


def test_a_long_expression_is_said_and_not_shown():
    long = X
    for _ in range(50):
        long = relay.nn.relu(long)
    assert repr(long) == "<relay.Call: Tensor[(2, 3), float32], 50 operators>"
    assert str(long).count("nn.relu") == 50


@pytest.mark.parametrize("thing", [MOD, X + 1.0, plus, plus.lower(np.ones(3)), relay.build(MOD)])
def test_notebooks_show_a_page(thing):
    page = thing._repr_html_()
    assert page.startswith("<details>") and "<script" not in page and page.endswith("</details>")


def test_an_operator_is_what_calls_are_of():
    add = relay.op.get("add")
    call = relay.add(X, X)
    assert (
        call.op == add
        and add == call.op
        and hash(add) == hash(call.op)
        and len({add, call.op}) == 1
    )
    assert relay.op.get("multiply") != add
    assert relay.structural_equal(relay.Call(add, [X, X]), call)
    assert [a.name for a in add.args] == ["lhs", "rhs"] and "Sum" in add.doc and add.attrs == []
    assert add.support_level == 1 and add.examples
    with pytest.raises(relay.RelayError, match="E0105"):
        relay.op.get("ad")


def test_expressions_are_told_by_identity_in_sets_and_dictionaries():
    y = relay.var("y", shape=(2, 3))
    one, other = X + y, X + y
    assert one == one and one != other and relay.structural_equal(one, other)
    assert {X: 1, y: 2}[X] == 1 and X in {X, y} and len({one, other, one}) == 2
    with pytest.raises(TypeError, match=r"relay\.equal"):
        _ = np.ones(3) == X


def test_functions_are_copied_and_pickled_by_name():
    assert copy.copy(plus) is plus and copy.deepcopy([plus])[0] is plus
    assert pickle.loads(pickle.dumps(plus)) is plus

    @relay.function
    def local(a):
        return a

    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)
