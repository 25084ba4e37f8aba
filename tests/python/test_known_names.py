"""Names of Relay that Python alone has: functors over types, passes, analyses, helpers of tests."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import testing

VERSION = '#[version = "0.0.5"]\n'
INT = relay.scalar_type("int32")


def evaluate(expr_or_mod, *args):
    return relay.create_executor("debug", expr_or_mod).evaluate()(*args)


def kinds():
    n, a = relay.TypeVar("n"), relay.TypeVar("a", False)
    prelude = relay.Prelude()
    return {
        "visit_tensor_type": relay.TensorType((3, n, 2 * n)),
        "visit_tuple_type": relay.TupleType([INT, relay.TensorType((n,))]),
        "visit_func_type": relay.FuncType([a], relay.TupleType([a]), [a]),
        "visit_type_var": a,
        "visit_global_type_var": prelude.l,
        "visit_type_call": prelude.l(INT),
        "visit_ref_type": relay.RefType(INT),
        "visit_type_data": prelude.mod.type_definitions[0],
    }


@pytest.mark.parametrize("method", kinds())
def test_a_type_functor_has_a_method_for_each_form(method):
    kind = kinds()[method]
    made = type("Made", (relay.TypeFunctor,), {method: lambda self, t: ("seen", t)})
    others = {m: (lambda self, t: None) for m in kinds() if m != method}
    assert type("All", (made,), others)().visit(kind) == ("seen", kind)
    if method == "visit_type_var":
        with pytest.raises(NotImplementedError, match="has no visit_type_var"):
            relay.TypeFunctor().visit(kind)
    if method != "visit_type_data":
        assert relay.TypeMutator().visit(kind) == kind
    assert relay.TypeVisitor().visit(kind) is None


def test_type_visitors_and_mutators_see_every_part():
    n, m = relay.TypeVar("n"), relay.TypeVar("m")
    prelude = relay.Prelude()
    tensor = relay.TensorType((n, 2 * n + 1, 4), "int8")
    kind = relay.FuncType([prelude.l(relay.TupleType([tensor, relay.RefType(tensor)]))], INT, [n])

    class Count(relay.TypeVisitor):
        def __init__(self):
            super().__init__()
            self.seen = []

        def visit_tensor_type(self, tensor):
            super().visit_tensor_type(tensor)
            self.seen.append(tensor)

        def visit_type_var(self, var):
            self.seen.append(var)

    count = Count()
    count.visit(kind)
    assert set(count.seen) == {n, tensor, INT}

    class Rename(relay.TypeMutator):
        def visit_type_var(self, var):
            return m if var == n else var

        def visit_tensor_type(self, tensor):
            new = super().visit_tensor_type(tensor)
            return relay.TensorType(new.shape, "int16") if tensor.dtype == "int8" else new

    wide = relay.TensorType((m, 2 * m + 1, 4), "int16")
    expected = relay.FuncType([prelude.l(relay.TupleType([wide, relay.RefType(wide)]))], INT, [m])
    assert Rename().visit(kind) == expected
    shape = relay.TypeData(relay.GlobalTypeVar("S"), [], [("A", [tensor]), ("B", [])])
    changed = Rename().visit(shape)
    assert [list(c.inputs) for c in changed.constructors] == [[wide], []]


def test_type_functors_do_not_recurse():
    kind = INT
    for _ in range(1050):
        kind = relay.TupleType([kind])
    relay.TypeVisitor().visit(kind)
    assert relay.TypeMutator().visit(kind) == kind


def test_check_kind():
    kind, of = relay.analysis.check_kind, relay.TypeKind
    prelude = relay.Prelude()
    assert kind(INT) is of.Type and kind(relay.ShapeVar("n")) is of.ShapeVar
    assert kind(relay.TypeVar("a", False)) is of.Type and kind(prelude.l) is of.AdtHandle
    assert kind(prelude.mod.type_definitions[0]) is of.TypeData
    assert kind(prelude.l(INT), prelude.mod) is of.Type
    assert kind(prelude.l, prelude.mod) is of.AdtHandle
    lone = relay.GlobalTypeVar("Rope")
    with pytest.raises(TypeError, match="Rope is not there"):
        kind(relay.TupleType([lone]), prelude.mod)
    with pytest.raises(TypeError, match="List has 1 type variables"):
        kind(relay.TypeCall(prelude.l, [INT, INT]), prelude.mod)


def clauses(text, params="%x: List[(bool, Option[int32])]"):
    mod = relay.parse(
        f"{VERSION}type T {{ A, B(T, T), C(int32) }}\ndef @main({params}) {{ {text} }}"
    )
    return mod["main"].body, mod


def shown(pattern):
    parts = dir(pattern)
    if "patterns" not in parts:
        return "_"
    fields = ", ".join(map(shown, pattern.patterns))
    if "constructor" not in parts:
        return f"({fields})"
    return pattern.constructor.name_hint + (f"({fields})" if fields else "")


def unmatched(match, *mod):
    return sorted(map(shown, relay.analysis.unmatched_cases(match, *mod)))


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("match? (%x) { Nil => 1 }", ["Cons(_, _)"]),
        ("match? (%x) { Cons((_, Some(_)), Nil) => 1 }",
         ["Cons((_, Some(_)), Cons(_, _))", "Cons((_, None), _)", "Nil"]),
        ("match? (%x) { Cons((_, Some(%y)), _) => 1, Nil => 2 }", ["Cons((_, None), _)"]),
        ("match (%x) { Cons(_, _) => 1, Nil => 2 }", []),
        ("match (%x) { %y => 1 }", []),
    ],
)  # fmt: skip
def test_unmatched_cases(text, missing):
    match, mod = clauses(text)
    assert unmatched(match, mod) == sorted(missing)
    assert unmatched(match) == sorted(missing)


def test_unmatched_cases_of_a_type_of_the_module():
    match, mod = clauses("match? (%t) { B(A, B(_, C(_))) => 1, B(C(_), _) => 2 }", "%t: T")
    found = set(unmatched(match, mod))
    assert found == {"A", "C(_)", "B(A, A)", "B(A, C(_))", "B(A, B(_, A))", "B(A, B(_, B(_, _)))",
                     "B(B(_, _), _)"}  # fmt: skip
    with pytest.raises(ValueError, match="no data type T"):
        relay.analysis.unmatched_cases(match)


def test_functions_get_other_names():
    mod = relay.parse(
        VERSION
        + "def @f(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { @g(subtract(%n, 1)) } }\n"
        "def @g(%n: int32) -> int32 { add(@f(%n), 2) }\n"
        "def @main(%n: int32) -> int32 { @g(%n) }"
    )
    new = mod.replace_global_vars({"f": relay.GlobalVar("even"), mod.get_global_var("g"): "odd"})
    assert set(new.functions) == {"even", "odd", "main"} and "f" in mod
    assert evaluate(new, 3) == evaluate(mod, 3) == 8
    with pytest.raises(ValueError, match="no function @h"):
        mod.replace_global_vars({"h": "i"})
    with pytest.raises(ValueError, match="one name"):
        mod.replace_global_vars({"f": "g"})


def test_check_grad():
    x = relay.var("x", shape=(2, 3), dtype="float64")
    y = relay.var("y", shape=(3,), dtype="float64")
    testing.check_grad(relay.Function([x, y], relay.tanh(x * y)), scale=1.0)
    given = [testing.rand("float64", 2, 3), testing.rand("float64", 3)]
    testing.check_grad(relay.Function([x, y], x * y), given, test_inputs=[given[1]])
    # Its gradient is zero almost everywhere, but differences across a step are not.
    step = relay.Function([y], relay.sum(relay.floor(y)))
    with pytest.raises(AssertionError):
        testing.check_grad(step, [np.array([0.5, 1.0, 2.5])])
    with pytest.raises(TypeError, match="target_devices"):
        testing.check_grad(step, target_devices=["cuda"])


def test_rand():
    array = testing.rand("float16", 3, 4)
    assert (
        array.shape == (3, 4) and array.dtype == np.float16 and 0 <= array.min() <= array.max() <= 1
    )
    assert testing.rand().shape == () and testing.rand().dtype == np.float32


def test_nat():
    prelude, nat = relay.Prelude(), testing.nat
    main = relay.Function(
        [], prelude.nat_add(nat.make_nat_expr(prelude, 3), nat.make_nat_expr(prelude, 4))
    )
    assert nat.count(prelude, evaluate(prelude.mod.with_function("main", main))) == 7
    n = relay.var("n", prelude.nat())
    double = relay.Function([n], prelude.nat_double(n))
    value = nat.make_nat_value(prelude, 20_000)
    run = relay.build(prelude.mod.with_function("main", double))
    assert nat.count(prelude, run(value)) == 40_000
    with pytest.raises(ValueError, match="-1"):
        nat.make_nat_value(prelude, -1)
    with pytest.raises(TypeError, match="not a value of type nat"):
        nat.count(prelude, relay.ConstructorValue("Nil"))


def test_resnet_3d():
    mod, params = testing.resnet_3d.get_workload(
        num_classes=10, num_layers=18, image_shape=(3, 2, 33, 33)
    )
    data = np.random.default_rng(0).normal(size=(1, 3, 2, 33, 33)).astype("float32")
    (out,) = [relay.build(mod, params=params)(data)]
    assert out.shape == (1, 10) and np.isclose(out.sum(), 1, atol=1e-5)
    assert relay.analysis.list_op_freqs(mod)["nn.conv3d"] == 20
    with pytest.raises(ValueError, match="NDHWC"):
        testing.resnet_3d.get_net(1, 10, layout="NDHWC")


def test_with_scope():
    said = []
    with relay.WithScope(10, lambda: said.append("end")) as ten:
        assert ten == 10 and said == []
    assert said == ["end"]


def test_recast():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = [relay.var(f"w{i}", shape=(3, 3, 3, 3)) for i in range(3)]
    out = x
    for each in w:
        out = relay.nn.relu(relay.nn.conv2d(out, each, padding=(1, 1)))
    f = relay.Function([x, *w], out)
    g = relay.transform.recast(f, "float16", "float32", skip_layers=[0, -1])
    convs = []
    relay.analysis.post_order_visit(
        g,
        lambda e: (
            convs.append(e) if getattr(getattr(e, "op", None), "name", "") == "nn.conv2d" else 0
        ),
    )
    assert [c.args[1].checked_type.dtype for c in convs] == ["float32", "float16", "float32"]
    assert convs[1].checked_type.dtype == "float32"
    rng = np.random.default_rng(0)
    given = [rng.normal(size=p.checked_type.shape).astype("float32") for p in f.params]
    assert np.allclose(evaluate(f, *given), evaluate(g, *given), rtol=1e-2, atol=5e-2)
    assert not np.array_equal(evaluate(f, *given), evaluate(g, *given))
    both = relay.concatenate([x, x], 1)
    cast = relay.transform.recast(both, "float16", "float32", ops=["concatenate"])
    assert cast.args[0].checked_type.dtype == "float16" and cast.dtype == "float32"


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("pads", "crops", "fires"), [((2, 2), (0, 0), True), ((4, 4), (1, 3), True),
                                                      ((2, 2), (1, 5), False)])  # fmt: skip
def test_flatten_atrous_conv(layout, pads, crops, fires):
    last = layout == "NHWC"
    x = relay.var("x", shape=(1, 10, 8, 3) if last else (1, 3, 10, 8))
    w = relay.var("w", shape=(2, 3, 3, 4) if last else (4, 3, 2, 3))
    block, around, cut = [2, 2], [list(pads)] * 2, [list(crops)] * 2
    if not last:
        block, around, cut = [1, *block], [[0, 0], *around], [[0, 0], *cut]
    inner = relay.nn.conv2d(
        relay.nn.space_to_batch_nd(x, block, around), w, kernel_size=(2, 3), channels=4,
        data_layout=layout, kernel_layout="HWIO" if last else "OIHW", dilation=(1, 1), padding=(1, 1),
    )  # fmt: skip
    f = relay.Function([x, w], relay.nn.batch_to_space_nd(inner, block, cut))
    g = relay.transform.FlattenAtrousConv()(relay.IRModule.from_expr(f))["main"]
    names = set(relay.analysis.list_op_freqs(relay.IRModule.from_expr(g)))
    assert names == (
        {"nn.conv2d"} if fires else set(relay.analysis.list_op_freqs(relay.IRModule.from_expr(f)))
    )
    rng = np.random.default_rng(1)
    given = [rng.normal(size=p.checked_type.shape).astype("float32") for p in f.params]
    assert np.allclose(evaluate(f, *given), evaluate(g, *given), atol=1e-5)
    if fires:
        assert list(g.body.attrs.dilation) == [2, 2]


def test_transposed_weights_of_dense_layers():
    x = relay.var("x", shape=(2, 3))
    w, v = relay.var("w", shape=(3, 4)), relay.var("v", shape=(4, 5))
    out = relay.nn.dense(relay.nn.dense(x, relay.transpose(w)), relay.transpose(v, [1, 0]))
    f = relay.Function([x, w, v], out + relay.sum(v))
    assert relay.analysis.search_fc_transpose(f) == ["w", "v"]
    rng = np.random.default_rng(2)
    params = {"w": testing.rand("float32", 3, 4), "v": testing.rand("float32", 4, 5)}
    g, given = relay.data_dep_optimization.simplify_fc_transpose.convert(f, params)
    # v is used as it is, too.
    assert [p.name_hint for p in g.params] == ["x", "w.T", "v.T", "v"]
    assert set(given) == {"w.T", "v.T", "v"} and given["w.T"].shape == (4, 3)
    data = rng.normal(size=(2, 3)).astype("float32")
    order = [given[p.name_hint] for p in g.params[1:]]
    assert np.allclose(
        evaluate(f, data, params["w"], params["v"]), evaluate(g, data, *order), atol=1e-5
    )
    some = relay.transform.SimplifyFCTranspose(["w"])(relay.IRModule.from_expr(f))["main"]
    assert [p.name_hint for p in some.params] == ["x", "w.T", "v"]


def test_places_of_a_program_that_was_built():
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(x, x)))
    assert not mod["main"].body.span
    placed = relay.transform.AnnotateSpans()(mod)
    assert placed["main"].body.span.startswith("AnnotateSpans:") and placed == mod


def test_operators_between_dequantize_and_quantize():
    x = relay.var("x", shape=(2, 3), dtype="int8")
    scale, zero = relay.const(0.1), relay.const(0, "int32")
    real = relay.qnn.op.dequantize(x, scale, zero)
    inner = relay.nn.relu(real + real)
    out = relay.qnn.op.quantize(inner, scale, zero) + relay.cast(relay.exp(real), "int8")
    mod = relay.IRModule.from_expr(relay.Function([x], out))
    assert relay.analysis.list_fake_quantized_op_freqs(mod) == {"nn.relu": 1, "add": 1}
    y = relay.var("y", shape=(2, 3))
    open_one = relay.qnn.op.quantize(real + y, scale, zero)
    mod = relay.IRModule.from_expr(relay.Function([x, y], open_one))
    assert relay.analysis.list_fake_quantized_op_freqs(mod) == {}
