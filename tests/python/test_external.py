"""External code generators: what they take, what they compute, and what they may not do."""

import os
import platform
import signal
import subprocess

import numpy as np
import pytest
from command_line import RELAY, fails, relay_json
from command_line import relay as command

import relay
from relay import transform
from relay.dataflow_pattern import is_op, wildcard

NUMPY = {
    "add": np.add,
    "multiply": np.multiply,
    "exp": np.exp,
    "nn.relu": lambda x: np.maximum(x, 0),
    "nn.dense": lambda x, w: x @ w.T,
    "np.dense_relu": lambda x, w: np.maximum(x @ w.T, 0),
    "split": lambda x: tuple(np.split(x, 2)),
}


def outer_calls(expr):
    """Returns the calls of a region in order, without those inside composite functions."""
    out, seen, stack = [], set(), [(expr, False)]
    while stack:
        e, done = stack.pop()
        if done:
            out.append(e)
        elif e not in seen:
            seen.add(e)
            parts = []
            if isinstance(e, relay.Call):
                stack.append((e, True))
                parts = list(e.args)
            elif isinstance(e, relay.Tuple):
                parts = list(e.fields)
            elif isinstance(e, relay.TupleGetItem):
                parts = [e.tuple_value]
            stack.extend((p, False) for p in reversed(parts))
    return out


def compile_by_numpy(name, function):
    calls = outer_calls(function.body)

    def compute(*arrays):
        known = dict(zip(function.params, arrays, strict=True))

        def value(e):
            if e in known:
                return known[e]
            if isinstance(e, relay.Constant):
                return np.asarray(e.data)
            if isinstance(e, relay.TupleGetItem):
                return value(e.tuple_value)[e.index]
            return tuple(value(f) for f in e.fields)

        for call in calls:
            composite = isinstance(call.op, relay.Function)
            key = call.op.attrs["Composite"] if composite else call.op.name
            known[call] = NUMPY[key](*(value(a) for a in call.args))
        return value(function.body)

    return compute


@pytest.fixture(autouse=True)
def codegen():
    """Registers "np", which computes some operators with NumPy."""
    dense = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    relay.external.register(
        "np",
        supports=dict.fromkeys([n for n in NUMPY if "." not in n or n.startswith("nn.")], True),
        patterns=[("np.dense_relu", dense)],
        compile=compile_by_numpy,
    )
    yield
    relay.external.register("np")


def vector(name, shape=(4,), dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def program(params, body):
    return relay.IRModule.from_expr(relay.Function(params, body))


def regions(mod):
    return [f for f in mod.functions.values() if "Compiler" in f.attrs]


def agrees(mod, *args, count=None):
    """Builds the divided program, and compares it and its evaluation with the program itself."""
    divided = relay.external.partition(mod, "np")
    if count is not None:
        assert len(regions(divided)) == count, divided
    want = relay.create_executor("debug", mod=mod).evaluate()(*args)
    for got in (
        relay.create_executor("debug", mod=divided).evaluate()(*args),
        relay.build(divided)(*args),
    ):
        for g, w in zip(
            got if isinstance(got, tuple) else (got,),
            want if isinstance(want, tuple) else (want,),
            strict=True,
        ):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6)
    return divided


X = np.linspace(-1, 1, 4, dtype="float32")


def test_a_chain():
    x, y = vector("x"), vector("y")
    agrees(program([x, y], relay.sqrt(relay.exp((x + y) * x))), X, X, count=1)


def test_two_regions_around_another_operator():
    x = vector("x")
    agrees(program([x], relay.exp(relay.tanh(relay.nn.relu(x)) + x)), X, count=2)


def test_several_results():
    x = vector("x")
    parts = relay.split(relay.exp(x), 2)
    agrees(program([x], relay.Tuple([parts[0], relay.tanh(parts[1])])), X, count=1)


def test_composite_functions():
    x, w = vector("x", (2, 4)), vector("w", (3, 4))
    mod = program([x, w], relay.tanh(relay.nn.relu(relay.nn.dense(x, w))))
    rng = np.random.default_rng(1)
    args = rng.standard_normal((2, 4), "float32"), rng.standard_normal((3, 4), "float32")
    divided = agrees(mod, *args, count=1)
    assert 'Composite="np.dense_relu"' in divided.astext()


def test_a_later_pattern_does_not_match_within_an_earlier_match():
    x, w = vector("x", (2, 4)), vector("w", (3, 4))
    dense = is_op("nn.dense")(wildcard(), wildcard())
    mod = program([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    rows = [("np.dense_relu", is_op("nn.relu")(dense)), ("np.dense", dense)]
    assert transform.MergeComposite(rows)(mod).astext().count("Composite=") == 1


def test_explain_tells_why_an_operator_stays():
    def small(region):
        return "small" if len(outer_calls(region.body)) < 2 else None

    relay.external.register(
        "np",
        supports={"exp": True, "nn.relu": lambda call: "not on a Sunday", "add": True},
        declines=small,
        compile=compile_by_numpy,
    )
    x = vector("x")
    divided = relay.external.partition(
        program([x], relay.exp(relay.tanh(relay.nn.relu(relay.exp(x + x))))), "np"
    )
    assert relay.external.explain(divided, "np").splitlines() == [
        "external code generator np",
        "  takes:",
        "        1  add  @tvmgen_default_np_main_0",
        "        1  exp  @tvmgen_default_np_main_0",
        "  leaves to Relay:",
        "        1  exp      small",
        "        1  nn.relu  not on a Sunday",
        "        1  tanh     not supported",
    ]
    relay.external.register(
        "np", supports={"exp": True, "add": True}, compile=lambda *_: "not today"
    )
    assert "1  add      not today" in relay.external.explain(divided, "np")


def test_open_sizes():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @main[n: Dim](%x: Tensor[(n, 4), float32]) { tanh(exp(nn.relu(%x))) }"
    )
    divided = relay.external.partition(mod, "np")
    exe = relay.build(divided)
    for rows in (0, 1, 3):
        x = np.ones((rows, 4), "float32")
        np.testing.assert_allclose(np.asarray(exe(x)), np.tanh(np.exp(x)), rtol=1e-6)
    assert len(regions(divided)) == 1


def test_constants_and_weights():
    x = vector("x")
    w = relay.const(np.arange(4, dtype="float32"))
    divided = agrees(program([x], relay.tanh(x * w + relay.const(1.0))), X, count=1)
    assert len(regions(divided)[0].params) == 1


def test_regions_in_branches_and_functions():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(4), float32], %c: bool) {\n"
        "  let %a = nn.relu(%x);\n"
        "  if (%c) { exp(add(%a, %x)) } else { tanh(%a) } }"
    )
    for c in (True, False):
        agrees(mod, X, np.array(c))


def test_a_kernel_names_its_code_generator():
    exe = relay.build(relay.external.partition(program([x := vector("x")], relay.exp(x)), "np"))
    assert "external code generator: np, np.tvmgen_default_np_main_0" in exe.metadata


def test_what_is_refused_is_compiled_by_relay():
    seen = []

    def refuse(name, function):
        seen.append(name)
        return "not today"

    relay.external.register("np", supports={"exp": True}, compile=refuse)
    agrees(program([x := vector("x")], relay.tanh(relay.exp(x))), X)
    assert seen == ["tvmgen_default_np_main_0"]


def test_operators_are_added_one_by_one():
    from relay.tvm import ir

    @ir.register_op_attr("tanh", "target.np")
    def _(call):
        return call.checked_type.dtype == "float32"

    x, y = vector("x"), vector("y", dtype="float64")
    mod = program([x, y], relay.Tuple([relay.tanh(relay.exp(x)), relay.tanh(y)]))
    assert len(regions(relay.external.partition(mod, "np"))) == 1
    with pytest.raises(AttributeError, match=r"only 'target\.<name>'"):
        ir.register_op_attr("tanh", "FTVMCompute", lambda call: True)


def test_small_regions_are_declined():
    relay.external.register("np", supports={"exp": True}, declines=lambda f: "too small")
    agrees(program([x := vector("x")], relay.tanh(relay.exp(x))), X, count=0)


def test_a_name_without_a_row_takes_its_composites_E0318():
    x = vector("x")
    pattern = ("lib.exp", is_op("exp")(wildcard()))
    mod = transform.MergeComposite([pattern])(program([x], relay.exp(relay.tanh(x))))
    for run in (
        transform.AnnotateTarget(["lib"]),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ):
        mod = run(mod)
    assert [f.attrs["Compiler"] for f in regions(mod)] == ["lib"]
    with pytest.raises(relay.UserError, match="E0318"):
        relay.build(mod)


# Python shows the exception by sys.unraisablehook.
quiet = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@quiet
@pytest.mark.parametrize(
    "result",
    [
        lambda x: x.astype("float64"),
        lambda x: x[:2],
        lambda x: (x, x),
        lambda x: 1 / 0,
    ],
    ids=["dtype", "shape", "number", "raises"],
)
def test_a_function_that_lies_or_dies_ends_the_run(result):
    relay.external.register("np", supports={"exp": True}, compile=lambda name, f: result)
    exe = relay.build(relay.external.partition(program([x := vector("x")], relay.exp(x)), "np"))
    with pytest.raises(relay.RunError, match=r"E0605.*in the external kernel "):
        exe(X)


@quiet
def test_arguments_are_not_written():
    def write(x):
        x[0] = 7
        return x

    relay.external.register("np", supports={"exp": True}, compile=lambda name, f: write)
    exe = relay.build(relay.external.partition(program([x := vector("x")], relay.exp(x)), "np"))
    with pytest.raises(relay.RunError):
        exe(X.copy())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: relay.external.register(3), "is a string"),
        (lambda: relay.external.register("np", supports=["exp"]), "dictionary of operators"),
        (lambda: relay.external.register("np", supports={"expp": True}), "E0105"),
        (lambda: relay.external.register("np", supports={"exp": 1}), "True, False or a function"),
        (lambda: relay.external.register("np", patterns=[("np.x", "exp")]), "a pattern is"),
        (
            lambda: relay.external.register("np", patterns=[("x", wildcard())]),
            "begins with 'np.'",
        ),
        (lambda: relay.external.register("a.b"), "E0312"),
    ],
)
def test_bad_rows(call, said):
    with pytest.raises((TypeError, relay.UserError), match=said):
        call()


def test_compile_gives_something_else():
    relay.external.register("np", supports={"exp": True}, compile=lambda name, f: 3)
    mod = relay.external.partition(program([x := vector("x")], relay.exp(x)), "np")
    with pytest.raises(relay.UserError, match=r"E0314[\s\S]*a reason to refuse"):
        relay.build(mod)


def test_inline_functions_again():
    mod = program([x := vector("x")], relay.tanh(relay.exp(x)))
    divided = relay.external.partition(mod, "np")
    undone = transform.InlineCompilerFunctionsBoundTo(["tvmgen_default_np_main_0"])(divided)
    assert undone == mod


PLUGIN = """
import numpy as np
import relay

def compute(a, b):
    print("computed outside")
    return np.add(a, b)

def register():
    relay.external.register("sums", supports={"add": True}, compile=lambda name, f: compute)
"""
# Of another architecture than this machine's.
OTHER_TARGET = "x86-64-v3" if platform.machine() == "aarch64" else "aarch64-linux"
SUM = """#[version = "0.0.5"]
def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) { exp(add(%x, %y)) }
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package whose plug-in registers the code generator "sums"; and a program."""
    (tmp_path / "sums_plugin.py").write_text(PLUGIN)
    info = tmp_path / "sums_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sums-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[relay.plugins]\nsums = sums_plugin:register\n")
    folders = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    model = tmp_path / "m.relay"
    model.write_text(SUM)
    return model


def test_the_option_guest_of_the_command(plugin, tmp_path):
    inputs = ["--input", "x=[1,2,3]", "--input", "y=[0,1,2]"]
    run = command("run", plugin, "--guest", "sums", "--output", tmp_path, *inputs)
    assert "computed outside" in run.stdout
    np.testing.assert_allclose(np.load(tmp_path / "output0.npy"), np.exp([1, 3, 5]), rtol=1e-5)
    assert "computed outside" not in command("run", plugin, *inputs).stdout
    # Modules of the working folder, and arguments that are not UTF-8, are those of any command.
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "numpy.py").write_text("raise RuntimeError('the module of the folder')")
    odd = tmp_path / "here" / "\udcff.relay"
    odd.write_text(SUM)
    run = command("run", odd, "--guest", "sums", *inputs, cwd=tmp_path / "here")
    assert "computed outside" in run.stdout
    told = command("explain", plugin, "--guest=sums").stdout
    taken, _, left = told[told.index("external code generator sums") :].partition("leaves to Relay")
    assert "1  add" in taken and "1  exp  not supported" in left, told
    # Two code generators: the first has what both compute.
    both = relay_json("explain", plugin, "--guest", "sums", "--guest", "onednn")
    assert [g["name"] for g in both["guests"]] == ["sums", "onednn"]


def test_must_fail_the_option_guest(plugin, tmp_path):
    said = fails("E0318", "compile", plugin, "-o", tmp_path / "m.so", "--guest", "sum")
    assert "one of onednn, sums" in said and "did you mean sums?" in said, said
    fails("E0702", "run", plugin, "--guest", "sums", "--executor", "eval")
    for words in (
        ("run", "--emulate"),
        ("bench", "--emulate"),
        ("compile", "-o", tmp_path / "n.so"),
    ):
        fails("E0702", *words, plugin, "--guest", "onednn", "--target", OTHER_TARGET)
    command("compile", plugin, "-o", tmp_path / "m.so")
    fails("E0702", "run", tmp_path / "m.so", "--guest", "sums")
    # No other process has the Python function.
    said = fails("E0318", "compile", plugin, "-o", tmp_path / "n.so", "--guest", "sums")
    assert "relay.external.Code" in said and not (tmp_path / "n.so").exists(), said


def test_a_plugin_that_cannot_be_loaded_is_a_warning(plugin, tmp_path):
    (tmp_path / "sums_plugin-1.dist-info" / "entry_points.txt").write_text(
        "[relay.plugins]\nsums = sums_plugin:register\nabsent = absent_module:register\n"
    )
    told = command("explain", plugin, "--guest", "sums")
    assert "external code generator sums" in told.stdout
    assert told.stderr.startswith("warning: the plug-in 'absent' cannot be loaded: "), told.stderr


def test_must_fail_an_older_package_E0701(plugin, tmp_path):
    (tmp_path / "relay").mkdir()
    (tmp_path / "relay" / "__init__.py").touch()
    said = fails("E0701", "run", plugin, "--guest", "onednn")
    assert "no package relay with the module relay._guests" in said, said


def test_signals_end_a_command_in_python(plugin):
    """The process that was started ends by them; no child goes on."""
    module = plugin.with_name("sums_plugin.py")
    module.write_text("import time\nprint('waits', flush=True)\ntime.sleep(600)")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        words = [RELAY, "explain", plugin, "--guest", "sums"]
        with subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # The tests may run where it is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            assert process.stdout.readline() == b"waits\n"
            process.send_signal(number)
            assert process.communicate(timeout=60) == (b"", b"")
            assert process.returncode == -number
