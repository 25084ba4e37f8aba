"""The Python classes of the nodes of a program, and the variables of drawn expressions."""

from __future__ import annotations

import random

import numpy as np
import pytest

import relay
from relay import _core, analysis

# Every kind of node that a program can hold.
PROGRAM = """#[version = "0.0.5"]
type Shape[A] {
  Box(A, float32),
  Dot,
}

def @f[n: Dim](%x: Tensor[(n, 2), float32], %k: fn (float32) -> float32) -> Tensor[(n, 2), float32] {
  %x
}

def @main[n: Dim](
  %x: Tensor[(n, 2), float32],
  %y: Tensor[(2 * n, ?), float32],
  %s: Shape[(float32, float32)],
  %r: ref(float32)
) {
  let %g = fn (%a: float32, Composite="mine") { add(%a, 1f) };
  let %h = if (less(ref_read(%r), 0f)) { %g(2f) } else { ref_read(ref(3f)) };
  let %u = ref_write(%r, %h);
  let %z = @f(%x, %g);
  match (%s) {
    Box((%p, _), %q) => (sum(%z, axis=[0, 1]), %p, (%q, sum(%y)).0),
    Dot => (%h, 1f, 2f),
  }
}
"""

KINDS = {
    "Constant", "Var", "GlobalVar", "Op", "Constructor", "Function", "Call", "Let", "If", "Tuple",
    "TupleGetItem", "Match", "RefCreate", "RefRead", "RefWrite", "Clause", "PatternWildcard",
    "PatternVar", "PatternConstructor", "PatternTuple", "TensorType", "TupleType", "FuncType",
    "TypeVar", "RefType", "TypeCall", "GlobalTypeVar", "TypeData", "Attrs", "Dim",
}  # fmt: skip


def nodes_of(mod: relay.IRModule) -> list[_core.Node]:
    """The nodes of a program, found through all of their fields."""
    found: dict[_core.Node, None] = {}
    todo: list[object] = [*mod.functions.values(), *mod.type_definitions]
    while todo:
        each = todo.pop()
        if isinstance(each, (list, tuple)):
            todo += each
        elif isinstance(each, _core.Node) and each not in found:
            found[each] = None
            names = dir(each) + (["checked_type"] if isinstance(each, relay.Expr) else [])
            todo += [getattr(each, name) for name in names]
    return list(found)


def test_every_node_that_is_read_has_the_class_of_its_kind():
    nodes = nodes_of(relay.parse(PROGRAM))
    assert {type(node).__name__ for node in nodes} == KINDS
    # All classes of nodes but those of families are met, and all that users build with have a name.
    families = {"Node", "Expr", "Type"}
    classes = {name for name, made in vars(_core).items()
               if isinstance(made, type) and issubclass(made, _core.Node)}  # fmt: skip
    assert classes - families == KINDS
    assert all(getattr(relay, name) is getattr(_core, name) for name in KINDS - {"Dim"})
    for node in nodes:
        assert isinstance(node, relay.Pattern) == type(node).__name__.startswith("Pattern")


def test_what_is_built_is_of_the_classes_that_are_read():
    mod = relay.parse(PROGRAM)
    shape = next(t for t in mod.type_definitions if t.header == relay.GlobalTypeVar("Shape"))
    assert isinstance(shape, relay.TypeData)
    pair = relay.TupleType([relay.TensorType(()), relay.TensorType(())])
    made = relay.TypeCall(relay.GlobalTypeVar("Shape"), [pair])
    x, _, s, r = mod["main"].params
    assert s.checked_type == made == shape.header(pair) and made.func == shape.header
    assert r.checked_type == relay.RefType(relay.TensorType(()))
    assert isinstance(r.checked_type, relay.RefType) and not isinstance(x, relay.RefType)
    with pytest.raises(TypeError):
        relay.TypeCall(pair, [pair])
    with pytest.raises(TypeError):
        relay.RefType("float32")


def test_attributes_are_read_by_name():
    function = relay.Function([], relay.const(1.0), attrs={"Composite": "mine", "sizes": [1, 2]})
    assert function.attrs["Composite"] == "mine" and "Compiler" not in function.attrs
    assert dict(function.attrs) == {"Composite": "mine", "sizes": [1, 2]}
    assert list(function.attrs.items()) == [("Composite", "mine"), ("sizes", [1, 2])]
    with pytest.raises(KeyError):
        function.attrs["Compiler"]
    call = relay.sum(relay.var("x", shape=(2, 3)), axis=1, keepdims=True)
    attrs = call.attrs
    assert isinstance(attrs, relay.Attrs) and attrs["axis"] == attrs.axis == [1]
    assert (
        attrs.keys() == list(attrs)
        and sorted(attrs.keys()) == dir(attrs)
        and len(attrs) == len(attrs.items())
    )
    assert dict(attrs)["keepdims"] is True and "axis" in attrs and "layout" not in attrs
    assert attrs.get_int_tuple("axis") == (1,)
    softmax = relay.nn.softmax(relay.var("x", shape=(2, 3)), axis=1)
    assert softmax.attrs.get_int("axis") == 1
    with pytest.raises(KeyError):
        attrs["layout"]


def test_no_attribute_of_an_operator_hides_a_method_of_attributes():
    methods = {"keys", "items", "get_int", "get_str", "get_int_tuple"}
    for name in relay.op.list_op_names():
        assert not methods & {a.name for a in relay.op.get(name).attrs}, name


class Drawn:
    """Expressions of variables without types, with the variables that are free and bound in them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loose = [relay.Var(f"g{i}") for i in range(4)]
        prelude = relay.Prelude()
        self.cons, self.nil = prelude.cons, prelude.nil

    def fresh(self) -> relay.Var:
        return relay.Var(f"v{self.random.randrange(10)}")

    def pattern(self, depth: int):
        """A pattern and its variables."""
        kind = self.random.choice(["var", "wildcard", "cons", "nil", "tuple"] if depth else ["var"])
        if kind == "var":
            v = self.fresh()
            return relay.PatternVar(v), {v}
        if kind in ("wildcard", "nil"):
            made = (
                relay.PatternWildcard()
                if kind == "wildcard"
                else relay.PatternConstructor(self.nil)
            )
            return made, set()
        (a, in_a), (b, in_b) = self.pattern(depth - 1), self.pattern(depth - 1)
        if kind == "tuple":
            return relay.PatternTuple([a, b]), in_a | in_b
        return relay.PatternConstructor(self.cons, [a, b]), in_a | in_b

    def draw(self, depth: int, around: list):
        """An expression, its free and its bound variables; `around` are bound outside of it."""
        if depth == 0:
            v = self.random.choice([*around, *self.loose])
            return v, {v}, set()
        kind = self.random.choice(
            ["fn", "let", "rec", "match", "if", "tuple", "field", "call", "ref"]
        )
        part = lambda inner=(): self.draw(depth - 1, [*around, *inner])  # noqa: E731
        if kind == "fn":
            params = [self.fresh() for _ in range(self.random.randrange(3))]
            body, free, bound = part(params)
            return relay.Function(params, body), free - set(params), bound | set(params)
        if kind in ("let", "rec"):
            v, params = self.fresh(), [self.fresh()]
            value, in_value, of_value = part([v, *params] if kind == "rec" else [])
            if kind == "rec":
                value = relay.Function(params, value)
                in_value, of_value = in_value - {v, *params}, of_value | set(params)
            body, in_body, of_body = part([v])
            return relay.Let(v, value, body), in_value | (in_body - {v}), of_value | of_body | {v}
        if kind == "match":
            data, free, bound = part()
            clauses = []
            for _ in range(self.random.randrange(1, 4)):
                pattern, names = self.pattern(2)
                value, in_value, of_value = part(sorted(names, key=str))
                clauses.append(relay.Clause(pattern, value))
                free, bound = free | (in_value - names), bound | of_value | names
            return relay.Match(data, clauses), free, bound
        a, b, c = part(), part(), part()
        if kind == "field":
            return relay.TupleGetItem(a[0], 0), a[1], a[2]
        free, bound = a[1] | b[1], a[2] | b[2]
        if kind == "ref":
            whole = relay.RefWrite(relay.RefCreate(a[0]), relay.RefRead(b[0]))
        elif kind == "call":
            whole = relay.Call(a[0], [b[0]])
        elif kind == "tuple":
            whole = relay.Tuple([a[0], b[0]])
        else:
            whole, free, bound = relay.If(a[0], b[0], c[0]), free | c[1], bound | c[2]
        return whole, free, bound


@pytest.mark.parametrize("seed", range(60))
def test_variables_of_drawn_expressions(seed):
    expr, free, bound = Drawn(seed).draw(5, [])
    assert set(analysis.free_vars(expr)) == free
    assert set(analysis.bound_vars(expr)) == bound
    assert set(analysis.all_vars(expr)) == free | bound
    for found in (analysis.free_vars(expr), analysis.bound_vars(expr), analysis.all_vars(expr)):
        assert len(set(found)) == len(found)


def test_variables_of_a_match_that_was_read():
    mod = relay.parse(
        '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil }\n'
        "def @main(%l: List[float32], %y: float32) {\n"
        "  match (%l) { Cons(%h, _) => add(%h, %y), Nil => %y } }"
    )
    body = mod["main"].body
    assert [v.name_hint for v in analysis.free_vars(body)] == ["l", "y"]
    assert [v.name_hint for v in analysis.bound_vars(body)] == ["h"]
    function = relay.Function(analysis.free_vars(body), body)
    assert [v.name_hint for v in analysis.free_vars(function)] == []
    assert relay.IRModule({"main": function}).functions.keys() == {"main"}


def test_type_variables_of_types_within():
    n, t = relay.TypeVar("n"), relay.TypeVar("t", False)
    inner = relay.FuncType([relay.RefType(t)], relay.TensorType([2 * n, None]), [n])
    whole = relay.TupleType([inner, relay.TypeCall(relay.GlobalTypeVar("List"), [t])])
    assert set(analysis.all_type_vars(whole)) == {n, t}
    assert analysis.bound_type_vars(whole) == [n] and analysis.free_type_vars(whole) == [t]
    x = relay.Var("x", whole)
    assert analysis.free_type_vars(relay.Function([x], x, type_params=[t])) == []
    np.testing.assert_equal(len(analysis.free_type_vars(x)), 1)
