"""relay.adt: constructors as classes that make values of data types, and match what comes out."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import relay
from relay import adt

TEXT = """#[version = "0.0.5"]
type Shape { Dot, Box(float32, Tensor[(2,), int32]), Many(List[Shape]) }
type Pair[A] { Pair(A, A) }
def @main(%s: Shape, %o: Option[int32], %names: List[string], %t: Tree[float32], %p: Pair[bool])
    -> (Shape, Option[int32], List[string], Tree[float32], Pair[bool]) {
  (%s, %o, %names, %t, %p)
}
"""
MOD = relay.parse(TEXT)
TYPES = adt.types(MOD)
SHAPE = TYPES.Shape


def area(shape):
    match shape:
        case SHAPE.Box(width, sides):
            return float(width) * int(sides.sum())
        case SHAPE.Many([first, *rest]):
            return area(first) + sum(map(area, rest))
        case SHAPE.Many([]) | SHAPE.Dot():
            return 0.0


def test_values_go_in_and_come_out_and_are_matched():
    given = SHAPE.Many([SHAPE.Dot(), SHAPE.Box(2.0, [1, 2]), SHAPE.Many([])])
    tree = adt.Tree.Rose(1.0, [adt.Tree.Rose(2.0, []), adt.Tree.Rose(3.0, [])])
    for run in (relay.build(MOD), relay.create_executor("debug", MOD).evaluate()):
        shape, option, names, out, pair = run(
            given, 3, ["a", "b"], tree, TYPES.Pair.Pair(True, False)
        )
        assert area(shape) == 6.0 and option == 3 and names == ["a", "b"]
        match out:
            case adt.Tree.Rose(x, [adt.Tree.Rose(y, []), adt.Tree.Rose(z, [])]):
                assert (x, y, z) == (1, 2, 3)
            case _:
                pytest.fail(f"{out} is another tree")
        match pair:
            case relay.ConstructorValue("Pair", (first, second)):
                assert first and not second
        assert shape.type == "Shape" and isinstance(shape, SHAPE) and not isinstance(out, SHAPE)
        shown = "Many([Dot, Box(2.0, [1, 2]), Many([])])"
        assert repr(shape) == adt.text(shape) == shown and adt.text(names) == '["a", "b"]'
        assert shape == given and pickle.loads(pickle.dumps(shape)) == copy.deepcopy(shape) == given


def test_what_the_prelude_has_goes_in_by_constructors_too():
    cons, nil = adt.List.Cons, adt.List.Nil
    tree = adt.Tree.Rose(1.0, nil())
    pair = TYPES.Pair.Pair(True, True)
    for run in (relay.build(MOD), relay.create_executor("debug", MOD).evaluate()):
        out = run(SHAPE.Dot(), adt.Option.Some(3), cons("a", cons("b", nil())), tree, pair)
        assert out[1] == 3 and out[2] == ["a", "b"]
        out = run(SHAPE.Dot(), getattr(adt.Option, "None")(), cons("a", ["b"]), tree, pair)
        assert out[1] is None and out[2] == ["a", "b"]


def test_a_type_says_what_it_is():
    assert repr(SHAPE) == "type Shape { Dot, Box(float32, Tensor[(2,), int32]), Many(List[Shape]) }"
    assert repr(adt.List) == "type List[A] { Cons(A, List[A]), Nil }"
    assert repr(SHAPE.Box) == "<constructor Box(float32, Tensor[(2,), int32]) of Shape>"
    assert list(TYPES)[:2] == ["Shape", "Pair"] and TYPES["Shape"] is SHAPE
    assert {"Shape", "List"} <= set(dir(TYPES)) and {"Dot", "Box"} <= set(dir(SHAPE))


def test_what_is_not_there_is_named():
    with pytest.raises(TypeError, match=r"Box has 2 fields \(float32, .*\), 1 are given"):
        SHAPE.Box(1.0)
    with pytest.raises(AttributeError, match="no constructor 'Ring': type Shape"):
        SHAPE.Ring  # noqa: B018
    with pytest.raises(AttributeError, match="no data type 'Form'; it has Shape, Pair"):
        TYPES.Form  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Rope'"):
        adt.Rope  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '_2'"):
        SHAPE.Box(1.0, [1, 2])._2  # noqa: B018
    # The constructor of another type that has the same name.
    exe = relay.build(MOD)
    other = relay.ConstructorValue("Dot", (), "Figure")
    assert not isinstance(other, SHAPE) and other != SHAPE.Dot()
    with pytest.raises(relay.UserError, match="no such constructor"):
        exe(other, 1, [], adt.Tree.Rose(1.0, []), TYPES.Pair.Pair(True, True))


def test_types_are_defined_in_python():
    shape = relay.GlobalTypeVar("Shape")
    number = relay.scalar_type("float32")
    definition = relay.TypeData(shape, [], [("Circle", [number]), ("Scaled", [shape, number])])
    circle, scaled = definition.constructors
    s, r, by = relay.var("s", shape), relay.var("r", number), relay.var("by", number)
    body = relay.Match(
        s,
        [
            relay.Clause(
                relay.PatternConstructor(circle, [relay.PatternVar(r)]), r * relay.const(2.0)
            ),
            relay.Clause(
                relay.PatternConstructor(scaled, [relay.PatternWildcard(), relay.PatternVar(by)]),
                by,
            ),
        ],
    )
    mod = relay.IRModule().with_type(definition)
    mod = mod.with_function("main", relay.Function([s], body))
    made = adt.types(mod).Shape
    for run in (relay.build(mod), relay.create_executor("debug", mod).evaluate()):
        assert run(made.Circle(1.5)) == np.float32(3)
        assert run(made.Scaled(made.Circle(1.5), 4.0)) == np.float32(4)


def test_the_page_does_what_it_says(capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text()
    checked = 0
    for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        scope: dict = {}
        exec(text, scope)
        for name, value in re.findall(r"^(\w+)\s+# -> (.*)$", text, re.MULTILINE):
            assert str(scope[name]) == value
            checked += 1
    assert checked == 6
    assert capsys.readouterr().out == "2.0 1\n"
