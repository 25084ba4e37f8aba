"""Programs for Armv7, whose addresses have 32 bits, give the results of this machine under QEMU."""

import itertools
import os
import re
import subprocess

import emulation
import numpy as np
import onnx_cases
import pytest
import test_onnx_cases
from command_line import PROGRAM, fails, relay, relay_json
from test_emulation import (
    as_tuple,
    check_cases,
    check_example,
    check_gradient,
    check_graphs,
    on_both,
)
from test_language_examples import PROGRAMS

import relay as R

TARGET = "armv7-linux"
pytestmark = pytest.mark.skipif(bool(emulation.lacks(TARGET)), reason=emulation.lacks(TARGET))

SEED = 20261128
# A target, and the processor that it is run on: without and with products and sums in one instruction.
MACHINES = {f"{TARGET} -mcpu=cortex-a8": "cortex-a8", TARGET: "cortex-a7"}


@pytest.fixture(params=MACHINES)
def target(request, monkeypatch):
    monkeypatch.setenv("QEMU_CPU", MACHINES[request.param])
    return request.param


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
    for got, want in zip(*map(as_tuple, on_both(mod, inputs, target)), strict=True):
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
    seven = R.const(np.int64(7))
    parts = [a // seven, a % seven, R.sum(a), R.sort(a), R.cast(a, "float64"), R.cast(a, "float32")]
    mod = R.IRModule.from_expr(R.Function([a], R.Tuple(parts)))
    for got, want in zip(*on_both(mod, [rng.integers(-(2**40), 2**40, 97)], target), strict=True):
        np.testing.assert_array_equal(got, np.asarray(want))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_floats(target, dtype):
    """float16 includes subnormal numbers, which vectors of float32 would flush."""
    x = R.var("x", shape=(6, 31), dtype=dtype)
    w = np.random.default_rng(SEED).standard_normal((9, 31)).astype(dtype)
    parts = [R.nn.dense(x, R.const(w)), R.sqrt(R.abs(x)), R.cast(x, "float32"), R.cast(x, "int32")]
    mod = R.IRModule.from_expr(R.Function([x], R.Tuple(parts)))
    values = (np.random.default_rng(1).standard_normal((6, 31)) * 9).astype(dtype)
    values[0, :3] = (1e-7, -6e-8, 3e-6)
    for got, want in zip(*on_both(mod, [values], target), strict=True):
        np.testing.assert_allclose(
            got, np.asarray(want), rtol=4 * float(np.finfo(dtype).eps), atol=1e-2
        )


def test_products_are_single_instructions(tmp_path):
    """Of bytes, widened to 16 bits; and of floats where the processor has them."""
    w = np.random.default_rng(SEED).integers(-128, 128, (64, 64))
    for data, target, word in (
        ("uint8", TARGET, "vmlal.s16"),
        ("int8", TARGET, "vmlal.s16"),
        ("float32", TARGET, "vfma.f32"),
        ("float32", f"{TARGET} -mcpu=cortex-a9", "vmul.f32"),
    ):
        x = R.var("x", shape=(14, 64), dtype=data)
        is_float = data == "float32"
        weight = R.const(w.astype("float32" if is_float else "int8"))
        out = R.nn.dense(x, weight, out_dtype="float32" if is_float else "int32")
        (tmp_path / "m.relay").write_text(R.IRModule.from_expr(R.Function([x], out)).astext())
        text = relay("show", "m.relay", "--asm", "--target", target, cwd=tmp_path).stdout
        assert re.search(rf"\b{re.escape(word)}\s+q", text), (data, target)


@pytest.mark.parametrize("mode", ["flush", "keep"])
def test_subnormal_numbers(mode):
    """Vectors of floats flush them; with `keep` there are none."""
    x = R.var("x", shape=(64,))
    mod = R.IRModule.from_expr(R.Function([x], x * R.const(np.float32(0.5))))
    values = np.full(64, 1.5e-38, np.float32)
    got = emulation.Emulated(mod, f"{TARGET} -denormals={mode}")(values)
    np.testing.assert_array_equal(got, values / 2 if mode == "keep" else np.zeros(64, np.float32))


def test_scalars_of_every_width(tmp_path):
    """Those that a word of 32 bits holds, and those that take a tensor."""
    (tmp_path / "p.relay").write_text(
        '#[version = "0.0.5"]\n'
        "def @half(%n: int64, %sum: float64) -> (int64, float64) {\n"
        "  if (%n <= 0i64) { (%n, %sum) } else { @half(%n - 1073741823i64, %sum + 0.5f64) }\n"
        "}\n"
        "def @main(%n: int64) { @half(%n, 1f64) }\n"
    )
    words = ("run", "-q", "p.relay", "--input", "n=99999999999", "--output")
    relay(*words, "there", "--target", TARGET, "--emulate", cwd=tmp_path)
    relay(*words, "here", cwd=tmp_path)
    for file in (tmp_path / "here").iterdir():
        np.testing.assert_array_equal(np.load(tmp_path / "there" / file.name), np.load(file))


def test_a_model_is_compiled_and_run_in_one_command(tmp_path):
    (tmp_path / "m.relay").write_text(PROGRAM)
    run = relay_json("run", "-q", "m.relay", "--emulate", "--target", TARGET, cwd=tmp_path)
    assert run["emulator"] == "qemu-arm" and run["outputs"][0]["shape"] == [2, 4]


def test_what_is_refused(tmp_path, monkeypatch):
    (tmp_path / "m.relay").write_text(PROGRAM)
    relay("compile", "-q", "m.relay", "--target", TARGET, "-o", "m.so", cwd=tmp_path)
    relay("check", "m.so", cwd=tmp_path)
    fails("E0610", "run", "m.so", cwd=tmp_path, mentions=("armv7", "--emulate"))
    fails("E0403", "run", "m.relay", "--target", f"{TARGET} -mcpu=cortex-a71", cwd=tmp_path,
          mentions=("did you mean", "cortex-a7,"))  # fmt: skip
    fails("E0403", "run", "m.relay", "--target", f"{TARGET} -mcpu=cortex-a53", cwd=tmp_path,
          mentions=("aarch64-linux -mcpu=cortex-a53",))  # fmt: skip
    monkeypatch.setenv("QEMU_CPU", "cortex-a8")
    fails("E1503", "run", "m.so", "--emulate", cwd=tmp_path, mentions=("vfp4", "QEMU_CPU"))


def test_a_tensor_beyond_the_address_space_is_E0408(tmp_path):
    (tmp_path / "m.relay").write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1), float32]) { broadcast_to(%x, shape=[1073741824]) }\n"
    )
    fails("E0408", "compile", "m.relay", "--target", TARGET, "-o", "m.so", cwd=tmp_path,
          mentions=("2147483647 bytes",))  # fmt: skip


def test_a_tensor_whose_size_the_run_knows_is_E0601(tmp_path):
    (tmp_path / "m.relay").write_text(
        '#[version = "0.0.5"]\n'
        "def @main[n: Dim](%x: Tensor[(n, 1), float32], %y: Tensor[(1, n), float32]) { %x + %y }\n"
    )
    relay("compile", "-q", "m.relay", "--target", TARGET, "-o", "m.so", cwd=tmp_path)
    assert "(3, 3)" in run_alone(tmp_path / "m.so", "--dim", "n=3").stdout
    done = run_alone(tmp_path / "m.so", "--dim", "n=23171")
    assert done.returncode == 1 and "error[E0601]" in done.stderr, done.stderr
    assert "less than 2^31 bytes" in done.stderr


def run_alone(file, *words):
    command = [emulation.emulator_of("armv7"), emulation.relay_run(TARGET), file, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_files_that_are_damaged_or_too_large_are_refused(tmp_path):
    """src/runtime/test/artifact_test.cc changes every word of the code."""
    (tmp_path / "m.relay").write_text(PROGRAM)
    relay("compile", "-q", "m.relay", "--target", TARGET, "-o", "m.so", cwd=tmp_path)
    good = (tmp_path / "m.so").read_bytes()
    assert good[4] == 1  # ELFCLASS32
    assert run_alone(tmp_path / "m.so").returncode == 0
    (tmp_path / "bad.so").write_bytes(good[:4] + b"\2" + good[5:])
    done = run_alone(tmp_path / "bad.so")
    assert done.returncode == 1 and "error[E0608]" in done.stderr, done.stderr
    with (tmp_path / "large.so").open("wb") as file:
        file.truncate(2**31 + 4096)
    done = run_alone(tmp_path / "large.so")
    assert done.returncode == 1 and "error[E0611]" in done.stderr, done.stderr


def test_a_gradient():
    check_gradient(TARGET)


def test_random_graphs():
    check_graphs(range(SEED, SEED + 5), TARGET)


@pytest.mark.slow
def test_many_random_graphs():
    check_graphs(range(300), TARGET)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_language_examples(name, tmp_path):
    check_example(name, tmp_path, TARGET)


def test_onnx_cases_of_today():
    part = int(os.environ.get("RELAY_TENTH", test_onnx_cases.TENTH))
    check_cases(list(onnx_cases.cases())[part::200], TARGET)


@pytest.mark.slow
def test_all_onnx_cases():
    check_cases(list(onnx_cases.cases()), TARGET)
