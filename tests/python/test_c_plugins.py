"""Plug-ins in C: shared libraries that add operators, passes and rewrites (include/relay/plugin.h)."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import fails
from command_line import relay as command

import relay

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = Path(relay.__path__[0]) / "include"

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def compile_library(source: str, out: Path, language: str = "c", flags: tuple = ()) -> Path:
    file = out.with_suffix("." + language)
    file.write_text(source)
    compiler = "cc" if language == "c" else "c++"
    subprocess.run(
        [compiler, *flags, "-shared", "-fPIC", "-I", INCLUDE, file, "-o", out],
        check=True,
        capture_output=True,
    )
    return out


@pytest.fixture(scope="module")
def mylib(tmp_path_factory):
    source = (ROOT / "examples" / "plugin" / "mylib.c").read_text()
    strict = ("-std=c11", "-Wall", "-Werror")
    out = tmp_path_factory.mktemp("plugin") / "mylib.so"
    return compile_library(source, out, flags=strict)


PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(4,), float32]) {
  mylib.scaled(mylib.swish(%x), factor=3f)
}
"""


def swish(x):
    return x / (1 + np.exp(-x))


@pytest.fixture(scope="module")
def loaded(mylib):
    assert relay.plugins.load(mylib) == [str(mylib)]
    assert relay.plugins.load(str(mylib)) == []
    assert str(mylib) in relay.plugins.loaded()
    yield relay.parse(PROGRAM)
    for name in ("mylib.swish", "mylib.scaled", "mylib.row_sums"):
        relay.unregister_op(name)
    for name in ("mylib.CountPrograms", "mylib.FindSwish"):
        relay._core.remove_pass(name)


def test_operators_work_like_built_in_ones(loaded):
    x = np.array([-1, 0, 1, 2], "float32")
    for level in (0, 3):
        out = relay.build(loaded, opt_level=level)(x)
        np.testing.assert_allclose(out, 3 * swish(x), rtol=1e-5)
    slow = relay.create_executor("debug", loaded).evaluate()(x)
    np.testing.assert_allclose(slow, 3 * swish(x), rtol=1e-5)
    assert relay.parse(loaded.astext()) == loaded == pickle.loads(pickle.dumps(loaded))
    assert relay.op.get("mylib.scaled").attrs[0].default == 2.0
    kernels = json.loads(relay.build(loaded, num_threads=1).metadata)["kernels"]
    assert len(kernels) == 1, "they are fused"


def test_their_gradients(loaded):
    x = np.array([-1, 0, 1, 2], "float32")
    value, (dx,) = relay.build(relay.transform.gradient(loaded["main"]))(x)
    np.testing.assert_allclose(value, 3 * swish(x), rtol=1e-5)
    s = 1 / (1 + np.exp(-x))
    # By the definition of one, and the other's own gradient, which leaves the factor out.
    np.testing.assert_allclose(dx, s + x * s * (1 - s), rtol=1e-4)


def test_the_rewrite_and_the_pass_are_in_the_pipeline(loaded):
    x = relay.var("x", shape=(4,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x) * relay.sigmoid(relay.exp(x))))
    names = {name for name, *_ in relay._core.pass_rows()}
    assert {"mylib.FindSwish", "mylib.CountPrograms"} <= names
    seen = []

    class See(relay.transform.PassInstrument):
        def run_after_pass(self, mod, info):
            if info.name.startswith("mylib."):
                seen.append((info.name, "mylib.swish" in mod.astext(False)))

    with relay.transform.PassContext(instruments=[See()]):
        built = relay.build(mod)
    # The operand is computed once where it is one expression, and in two places here.
    assert ("mylib.CountPrograms", False) in seen and ("mylib.FindSwish", False) in seen
    y = relay.exp(x)
    with relay.transform.PassContext(instruments=[See()]):
        built = relay.build(relay.Function([x], y * relay.sigmoid(y)))
    assert ("mylib.FindSwish", True) in seen
    data = np.array([-1, 0, 1, 2], "float32")
    np.testing.assert_allclose(built(data), swish(np.exp(data)), rtol=1e-5)


def test_the_command_loads_it(mylib, tmp_path):
    (tmp_path / "model.relay").write_text(PROGRAM)
    np.save(tmp_path / "x.npy", np.ones(4, "float32"))
    out = command("run", "--plugin", mylib, "model.relay", "--input", "x=x.npy", cwd=tmp_path)
    assert "mean 2.193" in out.stdout
    assert "mylib" in fails("E0105", "run", "model.relay", cwd=tmp_path, errors=2)
    fails("E1302", "run", "--plugin", tmp_path / "none.so", "model.relay", cwd=tmp_path)
    listed = command("plugins", mylib).stdout
    assert "operators  mylib.swish, mylib.scaled" in listed
    assert "passes  mylib.CountPrograms, mylib.FindSwish" in listed


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_cmake_builds_the_example(tmp_path):
    place = f"{relay.__path__[0]}/lib/cmake/relay"
    source = ROOT / "examples" / "plugin"
    for line in (
        ["cmake", "-S", source, "-B", tmp_path, f"-Drelay_DIR={place}"],
        ["cmake", "--build", tmp_path],
    ):
        subprocess.run(line, check=True, capture_output=True)
    assert (tmp_path / "mylib.so").exists()


# ---- What goes wrong -----------------------------------------------------------------------------

HEAD = """
#include <relay/plugin.h>
static const relay_plugin_api* relay;
static const char* const x[] = {"x"};
"""
OPERATOR = """
static relay_plugin_status add_all(const relay_plugin_api* api) {
  relay = api;
  relay_operator_spec op = {sizeof op};
  op.name = "broken.op";
  op.doc = "Broken.";
  op.args = x;
  op.num_args = 1;
  op.definition = "fn (%%x) { exp(%%x) }";
  %s
  return api->add_operator(api->plugin, &op);
}
RELAY_PLUGIN(add_all)
"""


def operator(change: str, before: str = "") -> str:
    return HEAD + before + OPERATOR % change


def adding(spec: str, kind: str, before: str = "") -> str:
    return f"""{HEAD}{before}
static relay_plugin_status add_all(const relay_plugin_api* api) {{
  relay = api;
  relay_{kind}_spec it = {{sizeof it}};
  it.name = "broken.It";
  it.doc = "Broken.";
  {spec}
  return api->add_{kind}(api->plugin, &it);
}}
RELAY_PLUGIN(add_all)
"""


LATE = """
static relay_plugin_status late(void* state, const relay_call* call, relay_reply* reply) {
  return %s;
}
"""
WRONG = {
    "no_symbol": ("int nothing;", "E1302", "has no relay_plugin_version"),
    "half": ("int relay_plugin_version(void) { return 1; }", "E1302", "has no relay_plugin_init"),
    "version": (
        operator("").replace("RELAY_PLUGIN(add_all)", "")
        + "unsigned relay_plugin_version(void) { return 77; }\n"
        "int relay_plugin_init(void* a) { return add_all(a); }\n",
        "E1303",
        "version 77",
    ),
    "fails": (
        HEAD + "static relay_plugin_status no(const relay_plugin_api* a) "
        "{ return RELAY_PLUGIN_FAILED; }\nRELAY_PLUGIN(no)",
        "E1304",
        "did not say why",
    ),
    "status": (
        HEAD + "static relay_plugin_status no(const relay_plugin_api* a) "
        "{ return (relay_plugin_status)99; }\nRELAY_PLUGIN(no)",
        "E1304",
        "status 99",
    ),
    "unknown": (
        "void missing(void);\n" + operator("missing();"),
        "E1302",
        "undefined symbol: missing",
    ),
    "size": (operator("op.size = 1 << 20;"), "E1304", "E1305(.|\n)*size"),
    "small": (operator("op.size = 0;"), "E1304", "E1305(.|\n)*size"),
    "name": (operator("op.name = 0;"), "E1304", "E1305(.|\n)*without a name"),
    "space": (operator('op.name = "op";'), "E1304", "E0802"),
    "doc": (operator("op.doc = 0;"), "E1304", "E1305"),
    "args": (operator("op.args = 0;"), "E1304", "E1305"),
    "neither": (operator("op.definition = 0;"), "E1304", "E1305"),
    "both": (
        operator('op.compute = "def f(x: float32[n]) -> (y: float32[n]):\\n  pass";'),
        "E1304",
        "E1305",
    ),
    "tensor_text": (
        operator('op.definition = 0; op.compute = "def f(x: float32[n]) -> (y: float32[n]):\\n'
                 '  y[0] = 1";'),
        "E1304",
        "E1306(.|\n)*holds float32, and this is int64",
    ),
    "tensor_arity": (
        operator('op.definition = 0; op.compute = "def f() -> (y: float32[4]):\\n  pass";'),
        "E1304",
        "E1305(.|\n)*0 parameters that are read",
    ),
    "text": (operator('op.definition = "fn (%x) { exp(";'), "E1304", "E0101"),
    "function": (operator('op.definition = "exp";'), "E1304", "E1305"),
    "arity": (operator('op.definition = "fn (%x, %y) { %x }";'), "E1304", "E1305(.|\n)*2 param"),
    "layout": (operator('op.layout = "NHWC";'), "E1304", "E1305"),
    "gradient": (operator('op.gradient = "fn (%x) { %x }";'), "E1304", "E1305"),
    "attribute": (
        operator(
            'static const relay_attribute_spec a[] = {{"k", "number", "1", ""}};'
            "op.attrs = a; op.num_attrs = 1;"
        ),
        "E1304",
        "E0805",
    ),
    "default": (
        operator(
            'static const relay_attribute_spec a[] = {{"k", "int", "\\"text\\"", ""}};'
            "op.attrs = a; op.num_attrs = 1;"
        ),
        "E1304",
        "E0",
    ),
    "twice": (
        operator("if (api->add_operator(api->plugin, &op)) return RELAY_PLUGIN_FAILED;"),
        "E1304",
        "E0803",
    ),
    "place": (
        adding('it.place = "after:nowhere"; it.run = late;', "pass",
               "static relay_plugin_status late(void* s, const char* p, relay_reply* r) "
               "{ return RELAY_PLUGIN_DECLINED; }"),
        "E1304",
        "E0312",
    ),
    "level": (
        adding('it.opt_level = 9; it.run = late;', "pass",
               "static relay_plugin_status late(void* s, const char* p, relay_reply* r) "
               "{ return RELAY_PLUGIN_DECLINED; }"),
        "E1304",
        "E0312",
    ),
    "no_run": (adding("", "pass"), "E1304", "E1305"),
    "no_pattern": (adding("", "rewrite"), "E1304", "E1305"),
    "pattern": (
        adding('it.pattern = "fn (%x) { let %y = exp(%x); %y }"; it.replacement = "fn (%x) {%x}";',
               "rewrite"),
        "E1304",
        "E0316",
    ),
    "anything": (
        adding('it.pattern = "fn (%x) { %x }"; it.replacement = "fn (%x) { %x }";', "rewrite"),
        "E1304",
        "E0316",
    ),
    "unused": (
        adding('it.pattern = "fn (%x, %y) { exp(%x) }"; it.replacement = "fn (%x, %y) { %x }";',
               "rewrite"),
        "E1304",
        "E0316(.|\n)*%y does not occur",
    ),
    "constants": (
        adding('it.pattern = "fn (%y) { exp(%y) }"; it.replacement = "fn (%y) { %y }";'
               "it.constants = x; it.num_constants = 1;", "rewrite"),
        "E1304",
        "E0316(.|\n)*no parameter 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_loaded(name, tmp_path):
    source, code, message = WRONG[name]
    operators, passes = relay.op.list_op_names(), relay._core.pass_rows()
    library = compile_library(source, tmp_path / f"{name}.so")
    with pytest.raises(relay.UserError, match=rf"{code}(.|\n)*{message}") as caught:
        relay.plugins.load(library)
    assert caught.value.code == code
    assert relay.op.list_op_names() == operators, "nothing is left of it"
    assert relay._core.pass_rows() == passes
    assert str(library) not in relay.plugins.loaded()


def test_what_is_no_library(tmp_path):
    for name, content in (("empty.so", b""), ("text.so", b"\x7fELF and more")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(relay.UserError, match="E1302"):
            relay.plugins.load(tmp_path / name)
    for path in (tmp_path / "none.so", tmp_path):
        with pytest.raises(relay.UserError, match="E1302"):
            relay.plugins.load(path)


def loading(source: str, path: Path, language: str = "c"):
    relay.plugins.load(compile_library(source, path, language))


@pytest.fixture
def broken():
    yield
    for name in relay.op.list_op_names():
        if name.startswith("broken."):
            relay.unregister_op(name)
    for name, *_ in relay._core.pass_rows():
        if name.startswith("broken."):
            relay._core.remove_pass(name)


TEXT = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4,), float32]) {\n  broken.op(%x)\n}\n'


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ('relay->fail(reply, "out of sorts")', "E1304", "broken.op, definition: out of sorts"),
        ("RELAY_PLUGIN_FAILED", "E1304", "did not say why"),
        ("RELAY_PLUGIN_OK", "E1304", "no answer"),
        ("RELAY_PLUGIN_DECLINED", "E1304", "no answer"),
        ('relay->answer(reply, "fn (")', "E0101", "broken.op, definition"),
        ('relay->answer(reply, "1f")', "E1305", "broken.op, definition"),
        ("relay->answer(reply, relay->arg_type(call, 7))", "E1304", "did not say why"),
        ('relay->answer(reply, relay->attr(call, "none"))', "E1304", "did not say why"),
        ('relay->answer(reply, "fn (%x) { broken.op(%x) }")', "E0912", "without an end"),
    ],
)
def test_callbacks_that_fail(answer, code, message, tmp_path, broken):
    loading(operator("op.definition = 0; op.define = late;", LATE % answer), tmp_path / "broken.so")
    with pytest.raises(relay.UserError, match=rf"{code}(.|\n)*{message}"):
        relay.parse(TEXT)


def test_a_relation_that_lies_and_one_that_answers_nonsense(tmp_path, broken):
    lies = "op.relation = late;"
    for answer, code in (
        ('relay->answer(reply, "Tensor[(5,), float32]")', "E0912"),
        ('relay->answer(reply, "Tensor[(")', "E0101"),
    ):
        loading(operator(lies, LATE % answer), tmp_path / f"{code}.so")
        with pytest.raises(relay.UserError, match=code):
            relay.build(relay.parse(TEXT))
        relay.unregister_op("broken.op")


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")
def test_an_exception_of_c_plus_plus_is_caught(tmp_path, broken):
    throws = "#include <stdexcept>\n" + operator(
        "op.definition = nullptr; op.define = late;",
        LATE % '(throw std::runtime_error("thrown"), RELAY_PLUGIN_OK)',
    ).replace("{sizeof op}", "{}; op.size = sizeof op")
    loading(throws, tmp_path / "throws.so", "cc")
    with pytest.raises(relay.UserError, match=r"E1304(.|\n)*exception was thrown"):
        relay.parse(TEXT)


PASS = """
static relay_plugin_status late(void* state, const char* program, relay_reply* reply) {
  return %s;
}
"""


def test_passes_that_give_garbage(tmp_path, broken):
    mod = relay.parse(TEXT.replace("broken.op", "exp"))
    for i, (answer, code) in enumerate(
        [
            ('relay->answer(reply, "nonsense")', "E0107"),
            ('relay->answer(reply, "#[version = \\"0.0.5\\"]")', "E0315"),
            ('relay->fail(reply, "tired")', "E1304"),
        ]
    ):
        loading(
            adding('it.place = "after:import"; it.run = late;', "pass", PASS % answer),
            tmp_path / f"p{i}.so",
        )
        with pytest.raises(relay.UserError, match=rf"{code}(.|\n)*broken\.It"):
            relay.build(mod)
        relay._core.remove_pass("broken.It")


def test_rewrites_with_a_condition_and_another_type(tmp_path, broken):
    pattern = 'it.pattern = "fn (%x) { exp(%x) }"; it.place = "after:import";'
    only_long = LATE % (
        "(relay->arg_type(call, 0)[8] == '4') ? relay->answer(reply, \"fn (%x) { tanh(%x) }\")"
        " : RELAY_PLUGIN_DECLINED"
    )
    loading(adding(pattern + "it.replace = late;", "rewrite", only_long), tmp_path / "r0.so")
    for size, function in ((4, np.tanh), (5, np.exp)):
        x = relay.var("x", shape=(size,))
        data = np.linspace(-1, 1, size, dtype="float32")
        out = relay.build(relay.Function([x], relay.exp(x)))(data)
        np.testing.assert_allclose(out, function(data), rtol=1e-5)
    relay._core.remove_pass("broken.It")
    loading(
        adding(pattern + 'it.replacement = "fn (%x) { sum(%x) }";', "rewrite"), tmp_path / "r1.so"
    )
    with pytest.raises(relay.UserError, match=r"E0912(.|\n)*type of the replacement"):
        relay.build(relay.Function([x], relay.exp(x)))
    relay._core.remove_pass("broken.It")
    for name, endless in (("r2", "exp(tanh(%x))"), ("r3", "exp(exp(%x))")):
        loading(
            adding(f'{pattern}it.replacement = "fn (%x) {{ {endless} }}";', "rewrite"),
            tmp_path / f"{name}.so",
        )
        with pytest.raises(relay.UserError, match="E0317"):
            relay.build(relay.Function([x], relay.exp(x)))
        relay._core.remove_pass("broken.It")


def test_the_header_is_the_one_of_the_sources():
    header = INCLUDE / "relay" / "plugin.h"
    assert header.read_text() == (ROOT / "include" / "relay" / "plugin.h").read_text()


# ---- Tensor functions


def test_a_tensor_function_of_the_example(loaded):
    program = relay.parse("""#[version = "0.0.5"]
def @main[m: Dim, k: Dim](%t: Tensor[(3, m), float32], %rows: Tensor[(k,), int64]) {
  multiply(mylib.row_sums(%t, %rows), 2f)
}
""")
    table = np.arange(12, dtype="float32").reshape(3, 4)
    expected = table[[2, 0]].sum(1) * 2
    for run in (relay.build(program), relay.create_executor("debug", program).evaluate()):
        np.testing.assert_array_equal(run(table, np.array([2, 0])), expected)
        with pytest.raises(relay.RunError):
            run(table, np.array([2, 3]))
    with pytest.raises(relay.UserError, match=r"E0912(.|\n)*int64"):
        relay.parse(relay.astext(program).replace("int64", "int32"))


MAKES = r"""
#include <relay/plugin.h>
#include <stdio.h>
static const relay_plugin_api* relay;
static relay_plugin_status make(void* state, const relay_call* call, relay_reply* reply) {
  char text[300];
  if (relay->num_args(call) != 1) return relay->fail(reply, "one argument");
  snprintf(text, sizeof text,
           "def f(x: float32[n, 2]) -> (y: float32[n], z: int32[1]):\n"
           "  z[0] = int32(%s)\n"
           "  for i in range(n):\n"
           "    y[i] = pow(x[i, 0], x[i, 1]) * float32(%s)\n",
           relay->attr(call, "times"), relay->attr(call, "times"));
  return relay->answer(reply, text);
}
static relay_plugin_status add_all(const relay_plugin_api* api) {
  static const char* const args[] = {"x"};
  static const relay_attribute_spec times[] = {{"times", "int", "1", "A factor."}};
  relay_operator_spec op = {sizeof op};
  relay = api;
  op.name = "broken.powers";
  op.doc = "Powers.";
  op.args = args;
  op.num_args = 1;
  op.attrs = times;
  op.num_attrs = 1;
  op.make_compute = make;
  return api->add_operator(api->plugin, &op);
}
RELAY_PLUGIN(add_all)
"""


def test_a_tensor_function_for_a_call(tmp_path, broken):
    loading(MAKES, tmp_path / "powers.so")
    program = relay.parse(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(3, 2), float32]) '
        "{ broken.powers(%x, times=3) }\n"
    )
    x = np.array([[2, 3], [3, 2], [5, 1]], "float32")
    y, z = relay.build(program)(x)
    np.testing.assert_allclose(y, [24, 27, 15], rtol=1e-6)
    assert z.tolist() == [3]
