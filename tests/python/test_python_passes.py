"""Passes, mutators and instruments that are written in Python."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import transform

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  nn.relu(multiply(reshape(reshape(%x, newshape=[6]), newshape=[2, 3]), 2f))
}
def @other(%x: Tensor[(2, 3), float32]) { exp(%x) }
"""
HEAD = '#[version = "0.0.5"]\n'
X = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


class Halve(relay.ExprMutator):
    def visit_constant(self, c):
        return relay.const(c.data / 2)


@transform.function_pass(opt_level=1, name="mylib.Halve")
def halve(func, mod, ctx):
    """Halves constants."""
    return Halve().visit(func)


def calls(mod):
    return relay.analysis.list_op_freqs(mod)


def test_function_pass_runs_on_every_function():
    mod = relay.parse(TEXT)
    seen = []

    @transform.function_pass(opt_level=0)
    def look(func, mod, ctx):
        seen.append((func, ctx.opt_level))
        return func

    assert look(mod) is not None and [level for _, level in seen] == [3, 3]
    assert {f for f, _ in seen} == set(mod.functions.values())
    assert look.name.endswith("look") and "." in look.name
    out = halve(mod)
    expected = np.maximum(X, 0)
    assert np.array_equal(relay.create_executor("debug", out).evaluate()(X), expected)
    assert halve.info.name == "mylib.Halve" and halve.info.opt_level == 1
    assert halve.info.doc == "Halves constants."


def test_module_pass_of_a_class():
    @transform.module_pass(opt_level=2, name="mylib.Keep")
    class Keep:
        """Keeps one function."""

        def __init__(self, name):
            self.kept = name

        def transform_module(self, mod, ctx):
            return relay.IRModule.from_expr(mod[self.kept])

    step = Keep("other")
    assert step.kept == "other" and step.info.opt_level == 2
    assert calls(step(relay.parse(TEXT))) == {"exp": 1}
    with pytest.raises(TypeError, match="method transform_function"):
        transform.function_pass(Keep, opt_level=1)


def test_a_pass_in_sequence_obeys_the_level():
    mod = relay.parse(TEXT)
    both = transform.Sequential([halve, transform.FoldConstant()])
    with transform.PassContext(opt_level=0):
        assert both(mod) == mod
    assert both(mod) != mod


def test_required_passes_run_before():
    seen = []

    @transform.module_pass(opt_level=0, name="mylib.Behind", required=["SimplifyExpr"])
    def behind(mod):
        seen.append(calls(mod))
        return mod

    behind(relay.parse(TEXT))
    assert "reshape" in calls(relay.parse(TEXT))
    assert seen == [{"multiply": 1, "nn.relu": 1, "exp": 1}]


def test_a_pass_in_the_pipeline():
    seen = []

    @transform.module_pass(opt_level=0, name="mylib.Watch")
    def watch(mod, ctx):
        seen.append(sorted(calls(mod)))
        return mod

    mod = relay.parse(TEXT)
    with transform.add_pass(watch, "before:simplify"):
        exe = relay.build(mod)
        assert seen == [["multiply", "nn.relu", "reshape"]]
        with transform.PassContext(disabled_pass=["mylib.Watch"]):
            relay.build(mod)
        assert len(seen) == 1
        with pytest.raises(relay.UserError, match=r"E0312.*\n?.*name is taken"):
            transform.add_pass(watch, "after:import")
    relay.build(mod)
    assert len(seen) == 1
    assert np.array_equal(exe(X), np.maximum(2 * X, 0))
    added = transform.add_pass(watch, "after:FuseOps")
    relay.optimize(mod)
    assert len(seen) == 2
    transform.remove_pass(watch)
    added.remove()
    with pytest.raises(relay.UserError, match=r"E0301"):
        transform.remove_pass(watch)
    with pytest.raises(ValueError, match="Relay's own"):
        transform.remove_pass("FuseOps")


def test_a_pass_changes_what_is_compiled():
    class Exp(relay.ExprMutator):
        def visit_call(self, call):
            out = super().visit_call(call)
            return relay.exp(out.args[0]) if call.op.name == "nn.relu" else out

    @transform.function_pass(opt_level=0, name="mylib.Exp")
    def to_exp(func, mod, ctx):
        return Exp().visit(func)

    with transform.add_pass(to_exp, "after:import"):
        exe = relay.build(relay.parse(TEXT))
    np.testing.assert_allclose(exe(X), np.exp(2 * X), rtol=1e-6)


# ---- What goes wrong -----------------------------------------------------------------------------


def make(code, name="mylib.Bad", kind=transform.module_pass):
    return kind(code, opt_level=0, name=name)


def boom(*_):
    raise KeyError("no such weight")


def test_an_exception_names_pass_function_and_line():
    step = make(boom, kind=transform.function_pass)
    with pytest.raises(relay.UserError) as caught:
        step(relay.parse(TEXT))
    text = str(caught.value)
    assert "error[E0314]: pass mylib.Bad, @main: KeyError: 'no such weight'" in text
    assert "raised in Python" in text and "in boom" in text and "test_python_passes.py" in text
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__traceback__ is not None
    with (
        transform.add_pass(make(boom), "after:fusion"),
        pytest.raises(relay.UserError, match=r"E0314.*pass mylib.Bad: KeyError"),
    ):
        relay.build(relay.parse(TEXT))


def test_relays_own_errors_keep_their_code():
    step = make(lambda mod, ctx: relay.parse(HEAD + "def @main() { add(1f) }"))
    with pytest.raises(relay.UserError) as caught:
        step(relay.parse(TEXT))
    assert caught.value.code != "E0314" and "pass mylib.Bad: " in str(caught.value)


@pytest.mark.parametrize("garbage", [None, 3, "def @main() { 1 }", relay.const(1.0)])
def test_garbage_is_no_program(garbage):
    with pytest.raises(relay.UserError, match=r"E0315") as caught:
        make(lambda mod, ctx: garbage)(relay.parse(TEXT))
    assert "expected: a relay.IRModule" in str(caught.value)
    with pytest.raises(relay.UserError, match=r"E0315"):
        make(lambda f, mod, ctx: garbage, kind=transform.function_pass)(relay.parse(TEXT))


def test_a_broken_program_is_refused():
    def unbound(func, mod, ctx):
        return relay.Function([], func.body)

    def ill_typed(func, mod, ctx):
        x = relay.var("x", shape=(2, 3))
        return relay.Function([x], relay.nn.dense(x, x + relay.const(np.zeros((1, 7), "float32"))))

    with pytest.raises(relay.UserError, match=r"E0103.*after pass mylib.Bad"):
        make(unbound, kind=transform.function_pass)(relay.parse(TEXT))
    with pytest.raises(relay.UserError, match=r"mylib\.Bad"):
        make(ill_typed, kind=transform.function_pass)(relay.parse(TEXT))


def test_a_program_without_its_main_is_refused():
    mod = relay.parse(TEXT)
    for out in (relay.IRModule(), relay.IRModule({"other": mod["main"]})):

        def lose(mod, ctx, out=out):
            return out

        with pytest.raises(relay.UserError, match=r"E0315.*without @main"):
            make(lose)(mod)
        with (
            transform.add_pass(make(lose), "after:normal_form"),
            pytest.raises(relay.UserError, match=r"E0315.*without @main"),
        ):
            relay.build(mod)


def test_a_pass_may_leave_type_variables_open():
    n = relay.TypeVar("n")
    z = relay.var("z", relay.TensorType((n,)))

    def other(mod, ctx):
        return mod.with_function("main", relay.Function([z], relay.exp(z)))

    out = make(other)(relay.parse(TEXT))
    assert out["main"].type_params == [n] and relay.parse(out.astext()) == out


def test_a_pass_that_calls_itself_is_named_once():
    def again(mod, ctx):
        return whole(mod)

    whole = make(again)
    with pytest.raises(relay.UserError, match=r"E0314.*RecursionError") as caught:
        whole(relay.parse(TEXT))
    assert str(caught.value).count("pass mylib.") == 1


def test_what_is_no_instrument():
    with pytest.raises(TypeError, match="3 is no instrument"):
        transform.PassContext(instruments=[3])


def test_what_a_pass_cannot_be():
    with pytest.raises(ValueError, match="opt_level"):
        transform.module_pass(boom)
    with pytest.raises(relay.UserError, match=r"E0312.*level"):
        transform.module_pass(boom, opt_level=9)
    with pytest.raises(relay.UserError, match=r"E0301"):
        transform.module_pass(boom, opt_level=0, required=["NoSuchPass"])
    with pytest.raises(relay.UserError, match=r"E0312.*no place 'after:nowhere'"):
        transform.add_pass(make(boom), "after:nowhere")
    with pytest.raises(TypeError, match="pass of Python"):
        transform.add_pass(transform.FuseOps(), "after:fusion")


def test_unknown_settings():
    with pytest.raises(relay.UserError, match=r"E0313"):
        transform.PassContext(config={"relay.NoSuch.option": 1})
    with pytest.raises(relay.UserError, match=r"E0301"):
        transform.PassContext(disabled_pass=["NoSuch"])
    with pytest.raises(relay.UserError, match=r"E0702"):
        transform.PassContext(opt_level=9)


def test_an_interrupt_stays_one():
    def stop(mod, ctx):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(stop)(relay.parse(TEXT))


# ---- Mutators ------------------------------------------------------------------------------------


def test_a_mutator_that_changes_nothing_gives_the_same_object():
    prelude = relay.IRModule.from_expr(relay.var("x", shape=())).import_from_std("prelude.rly")
    for function in prelude.functions.values():
        assert relay.ExprMutator().visit(function) is not None
        assert relay.ExprMutator().visit(function) == function


def test_a_mutator_rebuilds_every_kind():
    mod = relay.parse("""#[version = "0.0.5"]
    type Choice { Left(int32), Right(int32), }
    def @main(%c: Choice, %r: ref(int32)) {
      let %n = match (%c) { Left(%a) => add(%a, 1), Right(%b) => subtract(%b, 1), };
      let %u = ref_write(%r, %n);
      if (less(%n, 1)) { (ref_read(%r), %n).0 } else { (fn (%k: int32) { multiply(%k, 1) })(%n) }
    }""")

    class One(relay.ExprMutator):
        def visit_constant(self, c):
            return relay.const(7)

    out = str(One().visit(mod["main"]))
    assert out.count("7") == 4 and "match" in out and "ref_write" in out


def test_a_mutator_renames_parameters():
    class Rename(relay.ExprMutator):
        def visit_var(self, v):
            return relay.Var(v.name_hint + "_", v.type_annotation)

    mod = relay.parse(TEXT)
    renamed = Rename().visit(mod["main"])
    assert renamed.params[0].name_hint == "x_"
    assert relay.structural_equal(renamed, mod["main"])

    class Wrong(relay.ExprMutator):
        def visit_var(self, v):
            return relay.const(1.0)

    with pytest.raises(relay.UserError, match=r"(?s)E0315.*a relay.Var"):
        Wrong().visit(mod["other"])

    class Nothing(relay.ExprMutator):
        def visit_call(self, call):
            return None

    with pytest.raises(relay.UserError, match=r"E0315"):
        Nothing().visit(mod["other"])


def test_a_mutator_is_safe_on_deep_programs():
    x = relay.var("x", shape=(1,))
    body = x
    for _ in range(20000):
        body = relay.exp(body)

    class Log(relay.ExprMutator):
        def visit_call(self, call):
            return relay.log(self.visit(call.args[0]))

    out = Log().visit(relay.Function([x], body))
    assert relay.analysis.list_op_freqs(relay.IRModule.from_expr(out)) == {"log": 20000}


# ---- Instruments ---------------------------------------------------------------------------------


def test_instruments_see_every_pass():
    seen = []

    @transform.pass_instrument
    class Watch:
        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def run_before_pass(self, mod, info):
            seen.append(("before", info.name, len(mod.functions)))

        def run_after_pass(self, mod, info):
            assert info.seconds >= 0 and info.doc
            seen.append(("after", info.name, len(mod.functions)))

    with transform.PassContext(instruments=[Watch()]):
        transform.SimplifyExpr()(relay.parse(TEXT))
        halve(relay.parse(TEXT))
    assert seen == [
        "enter",
        ("before", "SimplifyExpr", 2),
        ("after", "SimplifyExpr", 2),
        ("before", "mylib.Halve", 2),
        ("after", "mylib.Halve", 2),
        "exit",
    ]


def test_an_instrument_skips_passes():
    class Skip(transform.PassInstrument):
        def should_run(self, mod, info):
            return info.name != "SimplifyExpr"

    mod = relay.parse(TEXT)
    with transform.PassContext(instruments=[Skip()]):
        assert transform.SimplifyExpr()(mod) == mod
    assert transform.SimplifyExpr()(mod) != mod


def test_timing_and_printing(capsys):
    timing = transform.PassTimingInstrument()
    shown = transform.PassPrintingInstrument(["FuseOps"], ["SimplifyExpr"])
    with transform.PassContext(instruments=[timing, shown]):
        relay.build(relay.parse(TEXT))
    assert "FuseOps" in timing.render() and timing.render().endswith("all passes")
    printed = capsys.readouterr().out
    assert printed.count("Before FuseOps:") == 1 and "After SimplifyExpr:" in printed
    with transform.PassContext(instruments=[transform.PrintBeforeAll(), transform.PrintAfterAll()]):
        transform.PrintIR("here")(relay.parse(TEXT))
    printed = capsys.readouterr().out
    assert "PrintIR(here)" in printed and printed.count("relay.transform.PrintIR:") == 2


def test_an_instrument_that_fails_is_named():
    class Bad:
        def run_after_pass(self, mod, info):
            raise RuntimeError("disk full")

    with (
        transform.PassContext(instruments=[Bad()]),
        pytest.raises(relay.UserError, match=r"E0314.*instrument Bad, run_after_pass of pass"),
    ):
        relay.build(relay.parse(TEXT))


def test_a_pass_for_some_functions():
    mod = relay.parse(TEXT)
    step = transform.ApplyPassToFunction(halve, "main")
    out = step(mod)
    assert out["main"] != mod["main"] and relay.structural_equal(out["other"], mod["other"])
    with pytest.raises(relay.UserError, match=r"E0314.*no function's name"):
        transform.ApplyPassToFunction(halve, "nobody", True)(mod)
