"""Programs for RISC-V give the results of this machine under QEMU, with and without vectors."""

import itertools
import os
import re

import emulation
import numpy as np
import onnx_cases
import pytest
import test_native
import test_onnx_cases
from command_line import PROGRAM, fails, relay, relay_json
from emulation import emulator_ends_at_conversions
from test_emulation import (
    check_cases,
    check_example,
    check_gradient,
    check_graphs,
    check_native_functions,
)
from test_language_examples import PROGRAMS

import relay as R

ARCH = "riscv64-linux"
pytestmark = pytest.mark.skipif(bool(emulation.lacks(ARCH)), reason=emulation.lacks(ARCH))

SEED = 20261127
# A target, and the processor that it is run on.
VECTORS = "rv64,v=true,vext_spec=v1.0,vlen="
MACHINES = {
    "rv64gc": "rv64",
    "rv64gcv": VECTORS + "128",
    "rv64gcv +zvl256b": VECTORS + "256",
    # A longer register than the target promises.
    "rv64gcv -panel=8": VECTORS + "512",
}


@pytest.fixture(params=MACHINES)
def target(request, monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES[request.param])
    return request.param


def on_both(mod, inputs, target):
    got, want = emulation.Emulated(mod, target)(*inputs), R.build(mod)(*inputs)
    return [v if isinstance(v, tuple) else (v,) for v in (got, want)]


def test_a_network(target):
    """Convolutions of widths that fill no register, sums, and functions of the mathematics library."""
    rng = np.random.default_rng(SEED)

    def weight(*shape):
        return R.const((rng.standard_normal(shape) / 4).astype("float32"))

    x = R.var("x", shape=(1, 3, 17, 17))
    y = R.nn.conv2d(x, weight(21, 3, 3, 3), padding=(1, 1), kernel_size=(3, 3))
    y = R.nn.relu(R.nn.bias_add(y, weight(21)))
    y = R.nn.conv2d(y, weight(21, 1, 3, 3), strides=(2, 2), groups=21, kernel_size=(3, 3))
    y = R.nn.dense(R.nn.batch_flatten(R.tanh(y)), weight(33, 21 * 8 * 8))
    mod = R.IRModule.from_expr(R.Function([x], R.Tuple([R.nn.softmax(y), R.exp(y), R.erf(y)])))
    inputs = [rng.standard_normal((1, 3, 17, 17)).astype("float32")]
    for got, want in zip(*on_both(mod, inputs, target), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-4, atol=1e-5)


def test_integers_have_the_same_bits(target):
    rng = np.random.default_rng(SEED)
    for units, depth, data in itertools.product((7, 32), (33, 64), ("uint8", "int8")):
        low = 0 if data == "uint8" else -128
        x = rng.integers(low, low + 256, (5, depth)).astype(data)
        w = rng.integers(-128, 128, (units, depth)).astype("int8")
        a = R.var("x", shape=x.shape, dtype=data)
        mod = R.IRModule.from_expr(R.Function([a], R.nn.dense(a, R.const(w), out_dtype="int32")))
        got = emulation.Emulated(mod, target)(x)
        np.testing.assert_array_equal(np.asarray(got), x.astype("int64") @ w.T.astype("int64"))
    a = R.var("a", shape=(97,), dtype="int64")
    parts = [a // R.const(np.int64(7)), a % R.const(np.int64(7)), R.sum(a), R.sort(a)]
    mod = R.IRModule.from_expr(R.Function([a], R.Tuple(parts)))
    for got, want in zip(*on_both(mod, [rng.integers(-(2**40), 2**40, 97)], target), strict=True):
        np.testing.assert_array_equal(got, np.asarray(want))


def test_sums_of_bytes_are_single_instructions(tmp_path):
    """No product and sum, with changes of the length of elements. The factors fit in 16 bits."""
    w = np.random.default_rng(SEED).integers(-128, 128, (64, 64)).astype("int8")
    for data, fits in (("uint8", True), ("int8", True), ("int32", False)):
        x = R.var("x", shape=(14, 64), dtype=data)
        weight = R.const(w if fits else w.astype("int32"))
        mod = R.IRModule.from_expr(R.Function([x], R.nn.dense(x, weight, out_dtype="int32")))
        (tmp_path / "m.relay").write_text(mod.astext())
        for target in ("rv64gcv", "rv64gcv +zvl256b"):
            words = ("show", "m.relay", "--asm", "--target", target)
            text = relay(*words, cwd=tmp_path).stdout
            assert bool(re.search(r"\bvwmacc\.vx\b", text)) == fits
            assert not re.search(r"\bvwmul", text)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_floats(target, dtype):
    x = R.var("x", shape=(6, 31), dtype=dtype)
    w = np.random.default_rng(SEED).standard_normal((9, 31)).astype(dtype)
    parts = [R.nn.dense(x, R.const(w)), R.sqrt(R.abs(x)), R.cast(x, "float32")]
    if target == "rv64gc" or not emulator_ends_at_conversions():
        parts.append(R.cast(x, "int32"))
    mod = R.IRModule.from_expr(R.Function([x], R.Tuple(parts)))
    inputs = [(np.random.default_rng(1).standard_normal((6, 31)) * 9).astype(dtype)]
    for got, want in zip(*on_both(mod, inputs, target), strict=True):
        np.testing.assert_allclose(
            got, np.asarray(want), rtol=4 * float(np.finfo(dtype).eps), atol=1e-2
        )


def test_a_model_is_compiled_and_run_in_one_command(tmp_path):
    """Under a processor with vectors, unless the environment names another one."""
    (tmp_path / "m.relay").write_text(PROGRAM)
    words = ("run", "-q", "m.relay", "--emulate", "--target")
    run = relay_json(*words, ARCH, cwd=tmp_path)
    assert run["emulator"] == "qemu-riscv64" and run["outputs"][0]["shape"] == [2, 4]
    relay(*words, "rv64gcv +zvl512b", cwd=tmp_path)
    relay(*words, "riscv64-linux+v+zvl256b", cwd=tmp_path)


def test_instructions_that_the_emulator_lacks_are_E1503(tmp_path, monkeypatch):
    (tmp_path / "m.relay").write_text(PROGRAM)
    words = ("run", "-q", "m.relay", "--emulate", "--target")
    monkeypatch.setenv("QEMU_CPU", "rv64")
    fails("E1503", *words, "rv64gcv", cwd=tmp_path, mentions=("QEMU_CPU",))
    monkeypatch.setenv("QEMU_CPU", VECTORS + "128")
    fails("E1503", *words, "rv64gcv +zvl256b", cwd=tmp_path, mentions=("zvl256b",))
    monkeypatch.delenv("QEMU_CPU")
    fails("E1503", *words, f"{ARCH} -mcpu=sifive-x280", cwd=tmp_path, mentions=("zba",))


@pytest.mark.skipif(not emulator_ends_at_conversions(), reason="this QEMU translates all of V")
def test_an_emulator_that_fails_is_E1503(tmp_path, monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES["rv64gcv"])
    x = R.var("x", shape=(64,), dtype="float64")
    mod = R.IRModule.from_expr(R.Function([x], R.cast(x, "int32")))
    (tmp_path / "m.relay").write_text(mod.astext())
    words = ("run", "-q", "m.relay", "--emulate", "--target", "rv64gcv")
    fails("E1503", *words, cwd=tmp_path, mentions=("Assertion", "newer QEMU"))


def test_another_architecture_is_refused_and_says_how_to_run_it(tmp_path):
    (tmp_path / "m.relay").write_text(PROGRAM)
    relay("compile", "-q", "m.relay", "--target", ARCH, "-o", "m.so", cwd=tmp_path)
    fails("E0610", "run", "m.so", cwd=tmp_path, mentions=("riscv64", "--emulate"))
    fails("E0403", "run", "m.relay", "--target", f"{ARCH} -mcpu=sifive-x28", cwd=tmp_path,
          mentions=("did you mean sifive-x280",))  # fmt: skip


def test_a_gradient(monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES["rv64gcv"])
    check_gradient("rv64gcv")


def test_random_graphs(monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES["rv64gc"])
    check_graphs(range(SEED, SEED + 5), ARCH)


@pytest.mark.slow
def test_many_random_graphs(monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES["rv64gc"])
    check_graphs(range(300), ARCH)


@pytest.mark.parametrize("name", PROGRAMS)
def test_language_examples(name, tmp_path):
    check_example(name, tmp_path, "rv64gcv")


@pytest.mark.parametrize("name", test_native.PROGRAMS)
def test_native_functions(name, tmp_path):
    check_native_functions(name, tmp_path, ARCH)


def loop_of_functions(count):
    """Two functions of so many parameters that call each other."""
    names = [f"%x{i}" for i in range(count)]
    params = ", ".join(f"{n}: int64" for n in names)
    moved = ", ".join([f"{names[0]} - 1i64", *names[2:], f"{names[1]} + 1i64"])
    return f"""
def @loop({params}) -> int64 {{ if (%x0 > 0i64) {{ @other({moved}) }} else {{ {names[-1]} }} }}
def @other({params}) -> int64 {{ if (%x0 > 0i64) {{ @loop({moved}) }} else {{ {names[1]} }} }}
def @main(%n: int64) -> int64 {{ @loop(%n{", %n" * (count - 1)}) }}
"""


def loop_of_closures(count):
    """A function of so many parameters that goes on through a closure that it is given."""
    names = [f"%x{i}" for i in range(count - 1)]
    params = ", ".join(f"{n}: int64" for n in names)
    moved = ", ".join([f"{names[0]} - 1i64", *names[2:], f"{names[1]} + 1i64"])
    types = ", ".join(["Step", *["int64"] * (count - 1)])
    return f"""
type Step {{ Step(fn ({types}) -> int64) }}
def @loop(%s: Step, {params}) -> int64 {{
  if (%x0 > 0i64) {{ match (%s) {{ Step(%f) => %f(%s, {moved}) }} }} else {{ {names[-1]} }}
}}
def @main(%n: int64) -> int64 {{
  let %s = Step(fn (%t: Step, {params}) -> int64 {{ @loop(%t, {", ".join(names)}) }});
  @loop(%s, %n{", %n" * (count - 2)})
}}
"""


@pytest.mark.parametrize("loop", [loop_of_functions, loop_of_closures])
def test_functions_with_more_words_than_registers_are_interpreted(loop, tmp_path):
    """A tail call takes no stack while all words are in registers: nine parameters, and not ten."""
    for count, is_native in ((9, True), (10, False)):
        path = test_native.write(tmp_path, loop(count))
        functions = relay_json("explain", path, "--target", ARCH)["functions"]
        assert {f["native"] for f in functions if f["function"] != "main"} == {is_native}
        words = ("run", "-q", path, "--force", "--input=n=1000000", "--output")
        relay(*words, "there", "--target", ARCH, "--emulate", cwd=tmp_path)
        relay(*words, "here", cwd=tmp_path)
        (file,) = (tmp_path / "here").iterdir()
        assert np.load(tmp_path / "there" / file.name) == np.load(file)


def test_onnx_cases_of_today(monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES["rv64gc"])
    part = int(os.environ.get("RELAY_TENTH", test_onnx_cases.TENTH))
    check_cases(list(onnx_cases.cases())[part::100], ARCH)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["", " +v"])
def test_all_onnx_cases(vectors, monkeypatch):
    if vectors and emulator_ends_at_conversions():
        pytest.skip("QEMU before 8.0 cannot run all vector instructions")
    monkeypatch.setenv("QEMU_CPU", MACHINES["rv64gcv" if vectors else "rv64gc"])
    check_cases(list(onnx_cases.cases()), ARCH + vectors)
