"""Programs for AArch64 give the results of this machine under QEMU: the same bits where they are integers."""

import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import emulation
import language_models
import ml_dtypes
import numpy as np
import onnx_cases
import onnx_random_graphs
import pytest
import tensor_results
import test_native
import test_onnx_cases
from command_line import PROGRAM, RELAY, fails, relay, relay_json
from test_language_examples import FOLDER, PROGRAMS, same

import relay as R

sys.path.insert(0, str(emulation.ROOT / "tools"))

import target_estimates

TARGET = "aarch64-linux"
pytestmark = pytest.mark.skipif(bool(emulation.lacks(TARGET)), reason=emulation.lacks(TARGET))

# Versions of the architecture whose kernels for bytes differ: no dot product, sdot, usdot; and with vectors
# of SVE, shorter than those of the emulated processor and as long.
TARGETS = [TARGET, f"{TARGET} +dotprod", f"{TARGET} +dotprod,+i8mm,+bf16,+fullfp16"]
SVE_TARGETS = [f"{TARGET} +sve256", f"{TARGET} +sve512,+i8mm,+bf16"]
SEED = 20261127


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulation")
    (folder / "model.relay").write_text(PROGRAM)
    relay("compile", "-q", "model.relay", "--target", TARGET, "-o", "model.so", cwd=folder)
    return folder


def test_a_model_is_compiled_and_run_in_one_command(here):
    run = relay_json("run", "-q", "model.relay", "--target", TARGET, "--emulate", cwd=here)
    assert run["emulator"] == "qemu-aarch64" and run["target"].startswith(f"{TARGET}: generic")
    (output,) = run["outputs"]
    assert output["shape"] == [2, 4] and output["dtype"] == "float32" and run["seconds"] > 0
    text = relay("run", "-q", "model.relay", "--target", TARGET, "--emulate", cwd=here).stdout
    assert re.search(r"^time .* under qemu-aarch64$", text, re.M), text


@pytest.mark.parametrize("target", [TARGET, "armv8.6-a", f"{TARGET} +sve256"])
def test_generic_code_keeps_sums_in_registers(target, tmp_path):
    """Where no processor is named: the loop of a GEMM moves no register to the stack or back."""
    w = np.random.default_rng(SEED).integers(-9, 9, (256, 256))
    for data, weights, out in (("float32", "float32", "float32"), ("uint8", "int8", "int32")):
        x = R.var("x", shape=(256, 256), dtype=data)
        product = R.nn.dense(x, R.const(w.astype(weights)), out_dtype=out)
        mod = R.IRModule.from_expr(R.Function([x], product))
        loop = target_estimates.inner_loop(target_estimates.assembly(mod, target))
        assert len(loop) > 90 and not [line for line in loop if "[sp" in line], loop


def test_a_compiled_file_gives_the_numbers_of_this_machine(here, tmp_path):
    rng = np.random.default_rng(SEED)
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((2, 3), (4, 3)))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", w)
    inputs = ["--input", f"x={tmp_path}/x.npy", "--input", f"w={tmp_path}/w.npy"]
    relay("run", here / "model.so", "--emulate", *inputs, "--output", tmp_path / "out")
    (file,) = (tmp_path / "out").iterdir()
    np.testing.assert_allclose(np.load(file), np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)
    # The same random inputs as on this machine.
    assert "2 inputs not given" in relay("run", here / "model.so", "--emulate").stdout


def test_bench_measures_under_the_emulator(here):
    report = relay_json("bench", "model.so", "--emulate", "--repeat", "4", cwd=here)
    assert report["runs"] == 4 and report["emulator"] == "qemu-aarch64"
    assert 0 < report["min_seconds"] <= report["median_seconds"] <= report["p90_seconds"]
    text = relay("bench", "model.so", "--emulate", cwd=here).stdout
    assert "(3 runs" in text and "under qemu-aarch64" in text


def test_another_architecture_is_refused_and_says_how_to_run_it(here):
    fails("E0610", "run", "model.so", cwd=here, mentions=("aarch64", "--emulate"))
    fails("E0610", "run", "-q", "model.relay", "--target", TARGET, cwd=here, mentions=("x86_64",))


def test_an_emulator_that_is_missing_is_E1501(here, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    fails("E1501", "run", "model.so", "--emulate", cwd=here, mentions=("qemu-user",))


@pytest.fixture
def command_alone(tmp_path):
    """The command of a copy of the installed package without the folder `targets`, and its package."""
    (tmp_path / "bin").mkdir()
    shutil.copy(RELAY, tmp_path / "bin/relay")
    package = tmp_path / "lib/python3.99/site-packages/relay"
    (package / "lib").mkdir(parents=True)
    for file in [emulation.PACKAGE / "_core.abi3.so", *emulation.PACKAGE.glob("lib/*.so")]:
        (package / file.relative_to(emulation.PACKAGE)).symlink_to(file)
    # The symbolic link of the module leads to the package that it came from; a copy does not.
    (package / "_core.abi3.so").unlink()
    shutil.copy(emulation.PACKAGE / "_core.abi3.so", package)
    return tmp_path / "bin/relay", package


def refused_alone(command, code, *words):
    done = subprocess.run([command, *words], capture_output=True, text=True)
    assert done.returncode == 1 and f"error[{code}]" in done.stderr, done.stderr
    assert "pip install 'relay[targets]" in done.stderr
    return done.stderr


def test_without_the_package_of_other_architectures(here, command_alone):
    """No runtime is E1502, no code generator E1506, and one of another version E1507."""
    command, package = command_alone
    assert "make targets" in refused_alone(command, "E1502", "run", here / "model.so", "--emulate")
    compile_words = ("compile", "-q", here / "model.relay", "-o", here / "none.so", "--target")
    for target in (TARGET, f"{TARGET} +dotprod", "rv64gcv"):
        refused_alone(command, "E1506", *compile_words, target)
    # An unknown feature of this machine's architecture asks for no other code generator.
    done = subprocess.run(
        [command, *compile_words, "x86-64-v3 +dotprod"], capture_output=True, text=True
    )
    assert "error[E0403]" in done.stderr and "dotprod is a feature of aarch64" in done.stderr
    (package / "targets").mkdir()
    library = package / "targets/librelay_targets.so"
    data = (emulation.PACKAGE / "targets" / library.name).read_bytes()
    version = f"relay {R.__version__}, LLVM ".encode()
    assert data.count(version) == 1
    library.write_bytes(data.replace(version, version.replace(b"relay", b"delay")))
    said = refused_alone(command, "E1507", *compile_words, TARGET)
    assert f"delay {R.__version__}" in said
    library.write_bytes(b"no library")
    refused_alone(command, "E1507", *compile_words, TARGET)
    library.unlink()
    library.symlink_to(emulation.PACKAGE / "targets" / library.name)
    subprocess.run([command, *compile_words, TARGET], check=True)


def test_instructions_that_the_emulator_lacks_are_E1503(here, monkeypatch):
    monkeypatch.setenv("QEMU_CPU", "cortex-a53")
    relay("run", "model.so", "--emulate", cwd=here)
    words = ("run", "-q", "model.relay", "--target", f"{TARGET} +dotprod", "--emulate")
    fails("E1503", *words, cwd=here, mentions=("dotprod", "QEMU_CPU"))


@pytest.mark.parametrize(
    ("program", "words", "mentions"),
    [
        (PROGRAM, (), "this machine's architecture"),
        (
            '#[version = "0.0.5"]\ndef @main(%x: int64) -> List[int64] { Cons(%x, Nil) }\n',
            ("--target", TARGET),
            "List",
        ),
        (
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) '
            '{ cast(%x, dtype="float8_e4m3fn") }\n',
            ("--target", TARGET),
            "float8_e4m3fn",
        ),
    ],
)
def test_what_cannot_be_emulated_is_E1504(tmp_path, program, words, mentions):
    (tmp_path / "p.relay").write_text(program)
    command = ("run", "-q", "p.relay", *words, "--emulate")
    fails("E1504", *command, cwd=tmp_path, mentions=(mentions,))


def test_options_of_this_process_are_refused(here):
    for words in (("--fuel", "5"), ("--executor", "eval"), ("--time-limit", "9")):
        fails("E0702", "run", "model.so", "--emulate", *words, cwd=here, mentions=(words[0],))
    fails("E0702", "bench", "model.so", "--emulate", "--profile", cwd=here, mentions=("--profile",))


@pytest.mark.parametrize("arch", ["aarch64-linux", "riscv64-linux", "armv7-linux"])
def test_damaged_files_are_refused(arch, tmp_path):
    """Bytes all over the file: an error with a number, or what the whole file gives; no signal."""
    if why := emulation.lacks(arch):
        pytest.skip(why)
    (tmp_path / "m.relay").write_text(PROGRAM)
    relay("compile", "-q", "m.relay", "--target", arch, "-o", "m.so", cwd=tmp_path)
    good = (tmp_path / "m.so").read_bytes()

    def run(content):
        (tmp_path / "bad.so").write_bytes(content)
        command = [emulation.emulator_of(emulation.arch_of(arch)), emulation.relay_run(arch)]
        return subprocess.run(
            [*command, tmp_path / "bad.so", "--repeat", "0"],
            capture_output=True,
            text=True,
            timeout=60,
        )

    want = run(good)
    assert want.returncode == 0, want.stderr
    rng = np.random.default_rng(SEED)
    refused = 0
    for place in rng.integers(0, len(good), 20):
        bad = bytearray(good)
        bad[place] ^= int(rng.integers(1, 256))
        done = run(bytes(bad))
        refused += done.returncode == 1 and "error[E" in done.stderr
        assert done.returncode == 1 or done.stdout == want.stdout, (place, done.stderr)
    for size in rng.integers(0, len(good), 3):
        assert "error[E" in run(good[:size]).stderr
    assert refused >= 5


def test_an_error_of_the_run_is_the_commands(here, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((9, 3), np.float32))
    words = ("run", "model.so", "--input", f"x={tmp_path / 'x.npy'}", "--emulate")
    fails("E0603", *words, cwd=here, mentions=("'x'",))
    done = relay(*words, "--json", cwd=here, check=False)
    assert done.returncode == 1 and "E0603" in json.loads(done.stdout)["errors"][0]["message"]


# ---- relay-run by itself, as on a device.


def alone(*words, check=True, cwd=None):
    command = ["qemu-aarch64", emulation.relay_run(TARGET), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def test_relay_run_needs_no_library():
    """No segment of its ELF file names a loader or a table of libraries."""
    file = emulation.relay_run(TARGET).read_bytes()
    (table,) = struct.unpack_from("<Q", file, 32)
    size, count = struct.unpack_from("<HH", file, 54)
    kinds = {struct.unpack_from("<I", file, table + i * size)[0] for i in range(count)}
    load, dynamic, interpreter = 1, 2, 3
    assert load in kinds and not kinds & {dynamic, interpreter}


@pytest.mark.parametrize("arch", ["aarch64-linux", "riscv64-linux"])
def test_the_shared_runtime_needs_no_glibc_after_2_28(arch):
    library = emulation.ROOT / "build/release/targets" / arch / "librelay_runtime.so"
    if not library.exists():
        pytest.skip("`make targets` has not built it")
    command = ["readelf", "--version-info", library]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions = re.findall(r"GLIBC_2\.(\d+)", text)
    assert versions and max(map(int, versions)) <= 28


def test_relay_run_prints_times_and_a_profile(here, tmp_path):
    text = alone(here / "model.so", "--repeat", "3", "--profile", "--threads", "2").stdout
    assert re.search(r"^output  \S+ \(2, 4\) float32$", text, re.M), text
    assert re.search(r"^time    min .*, median .* \(3 runs, 2 threads\)$", text, re.M), text
    assert re.search(r"^ +3 +[\d.]+ +[\d.]+  \S*dense", text, re.M), text
    assert "usage: relay-run" in alone("--help").stdout
    alone(here / "model.so", "--output", tmp_path / "out", "--seed", "7")
    again = alone(here / "model.so", "--output", tmp_path / "out", check=False)
    assert again.returncode == 1 and "E0703" in again.stderr
    (file,) = (tmp_path / "out").iterdir()
    first = np.load(file)
    alone(here / "model.so", "--output", tmp_path / "out", "--seed", "8", "--force")
    assert not np.array_equal(first, np.load(file))


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        ((), "E0704", 2),
        (("model.so", "other.so"), "E0704", 2),
        (("model.so", "--inputs", "x"), "E0704", 2),
        (("model.so", "--input"), "E0704", 2),
        (("model.so", "--repeat", "many"), "E0704", 2),
        (("model.so", "--input", "y=x.npy"), "E0702", 1),
        (("model.so", "--input", "x=missing.npy"), "E0701", 1),
        (("model.so", "--input", "x=wide.npy"), "E0603", 1),
        (("model.so", "--dim", "n=4"), "E0702", 1),
        (("model.so", "--function", "other"), "E0612", 1),
        (("missing.so",), "E0611", 1),
        (("cut.so",), "E0608", 1),
        (("changed.so",), "E0608", 1),
    ],
)
def test_relay_run_refuses(here, words, code, status):
    np.save(here / "wide.npy", np.zeros((9, 3), np.float32))
    bits = (here / "model.so").read_bytes()
    (here / "cut.so").write_bytes(bits[: len(bits) // 2])
    (here / "changed.so").write_bytes(bits[:4096] + bytes([bits[4096] ^ 1]) + bits[4097:])
    done = alone(*words, check=False, cwd=here)
    assert done.returncode == status and f"error[{code}]" in done.stderr, done.stderr


def test_an_open_dimension_has_the_size_that_is_given(tmp_path):
    (tmp_path / "p.relay").write_text(
        '#[version = "0.0.5"]\n'
        "def @main[n: Dim](%x: Tensor[(n, 3), float32], %y: Tensor[(n, 3), float32]) { %x + %y }\n"
    )
    relay("compile", "-q", "p.relay", "--target", TARGET, "-o", "p.so", cwd=tmp_path)
    assert "(1, 3)" in alone("p.so", cwd=tmp_path).stdout
    assert "(5, 3)" in alone("p.so", "--dim", "n=5", cwd=tmp_path).stdout
    np.save(tmp_path / "y.npy", np.zeros((4, 3), np.float32))
    assert "(4, 3)" in alone("p.so", "--input", "y=y.npy", cwd=tmp_path).stdout
    wrong = alone("p.so", "--input", "y=y.npy", "--dim", "n=5", check=False, cwd=tmp_path)
    assert wrong.returncode == 1 and "E0702" in wrong.stderr
    emulated = relay("run", "p.so", "--emulate", "--dim", "n=6", cwd=tmp_path).stdout
    assert "(6, 3)" in emulated


# ---- Results.


def on_both(mod, inputs, target):
    return emulation.Emulated(mod, target)(*inputs), R.build(mod)(*inputs)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("target", TARGETS + SVE_TARGETS)
def test_bytes_are_multiplied_exactly(target):
    """A dense layer and a convolution of int8 with extreme values, at widths that fill no register."""
    rng = np.random.default_rng(SEED)

    def integers(*shape, low=-128, high=128, dtype=np.int8):
        a = rng.integers(low, high, shape).astype(dtype)
        a.flat[:2] = (low, high - 1)
        return a

    for units, depth, data in itertools.product((1, 7, 32), (4, 33, 64), ("uint8", "int8")):
        low = 0 if data == "uint8" else -128
        x = integers(5, depth, low=low, high=low + 256, dtype=data)
        w = integers(units, depth)
        a = R.var("x", shape=x.shape, dtype=data)
        mod = R.IRModule.from_expr(R.Function([a], R.nn.dense(a, R.const(w), out_dtype="int32")))
        got = emulation.Emulated(mod, target)(x)
        want = x.astype(np.int64) @ w.T.astype(np.int64)
        np.testing.assert_array_equal(np.asarray(got), want, err_msg=f"{units} {depth} {data}")
    x, w = integers(1, 8, 9, 9, low=0, high=256, dtype=np.uint8), integers(16, 8, 3, 3)
    a = R.var("x", shape=x.shape, dtype="uint8")
    conv = R.nn.conv2d(a, R.const(w), padding=(1, 1), kernel_size=(3, 3), out_dtype="int32")
    got, want = on_both(R.IRModule.from_expr(R.Function([a], conv)), [x], target)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("target", [TARGETS[-1], SVE_TARGETS[-1]])
def test_bfloat16_is_multiplied_in_pairs(target, tmp_path):
    """Whole numbers, whose sums are exact in every order; nothing is widened to float32 first."""
    rng = np.random.default_rng(SEED)

    def numbers(*shape):
        return rng.integers(-31, 32, shape).astype(ml_dtypes.bfloat16)

    for units, depth in ((16, 8), (40, 62)):
        x, w = numbers(9, depth), numbers(units, depth)
        a = R.var("x", shape=x.shape, dtype="bfloat16")
        product = R.nn.dense(a, R.const(w), out_dtype="float32")
        mod = R.IRModule.from_expr(R.Function([a], product))
        got = emulation.Emulated(mod, target)(x)
        np.testing.assert_array_equal(got, x.astype("float32") @ w.astype("float32").T)
        (tmp_path / "m.relay").write_text(mod.astext())
        text = relay("show", "m.relay", "--asm", "--target", target, cwd=tmp_path).stdout
        assert re.search(r"\sbfdot\s", text) and not re.search(r"\sfml[as]\s", text)
        # Two rows at a time in a loop; the ninth row, and a sum without a loop, by pairs.
        by_two_rows = target == TARGETS[-1] and depth == 62
        assert bool(re.search(r"\sbfmmla\s", text)) == by_two_rows
    x, w = numbers(1, 8, 9, 9), numbers(24, 8, 3, 3)
    a = R.var("x", shape=x.shape, dtype="bfloat16")
    conv = R.nn.conv2d(
        a, R.const(w), padding=(1, 1), strides=(2, 2), kernel_size=(3, 3), out_dtype="float32"
    )
    got, want = on_both(R.IRModule.from_expr(R.Function([a], conv)), [x], target)
    np.testing.assert_array_equal(got, np.asarray(want))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_mathematics(dtype):
    """Every function with a vector form, and those of the C library, over all magnitudes."""
    names = ["exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "sqrt", "rsqrt", "atan"]
    names += ["sinh", "cosh", "log2", "log10"]
    x = R.var("x", shape=(515,), dtype=dtype)
    outputs = [getattr(R, n)(x) for n in names]
    mod = R.IRModule.from_expr(R.Function([x], R.Tuple(outputs)))
    rng = np.random.default_rng(SEED)
    values = rng.standard_normal(515) * 10.0 ** rng.integers(-4, 2, 515)
    values[:5] = (0, -0.0, np.inf, -np.inf, np.nan)
    values = values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for target in (TARGETS[0], TARGETS[-1], SVE_TARGETS[-1]):
        got, want = on_both(mod, [values], target)
        for name, a, b in zip(names, as_tuple(got), as_tuple(want), strict=True):
            eps = float(ml_dtypes.finfo(values.dtype).eps)
            wide = [np.asarray(v).astype(np.float64) for v in (a, b)]
            np.testing.assert_allclose(
                *wide, rtol=8 * eps, atol=8 * eps, err_msg=f"{name} {target}"
            )


@pytest.mark.parametrize("mode", ["flush", "keep"])
def test_subnormal_numbers(mode):
    x = R.var("x", shape=(64,))
    mod = R.IRModule.from_expr(R.Function([x], x * R.const(np.float32(0.5))))
    values = np.full(64, 1.5e-38, np.float32)
    got = emulation.Emulated(mod, f"{TARGET} -denormals={mode}")(values)
    np.testing.assert_array_equal(got, values / 2 if mode == "keep" else np.zeros(64, np.float32))


def test_a_gradient():
    check_gradient(TARGET)


def check_gradient(target):
    x, w = R.var("x", shape=(6, 20)), R.var("w", shape=(9, 20))
    loss = R.sum(R.nn.softmax(R.tanh(R.nn.dense(x, w))) * R.const(np.arange(9, dtype=np.float32)))
    mod = R.transform.InferType()(R.IRModule.from_expr(R.Function([x, w], loss)))
    mod = mod.with_function("main", R.transform.gradient(mod["main"], mod))
    rng = np.random.default_rng(SEED)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in ((6, 20), (9, 20))]
    got, want = on_both(mod, inputs, target)
    flat = [as_tuple(want)[0], *as_tuple(as_tuple(want)[1])]
    for a, b in zip(as_tuple(got), flat, strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", test_native.PROGRAMS)
def test_native_functions(name, tmp_path):
    check_native_functions(name, tmp_path, TARGET)


def check_native_functions(name, tmp_path, target):
    """Results, and errors, of the functions between kernels; lists and other data as tensors."""
    text, cases = test_native.PROGRAMS[name]
    path = test_native.write(tmp_path, text)
    path.write_text(tensor_results.with_tensors(path.read_text()))
    functions = relay_json("explain", path, "--target", target)["functions"]
    assert any(f["native"] for f in functions), functions
    relay("compile", "-q", path, "--target", target, "-o", "p.so", cwd=tmp_path)
    main = re.search(r"def @main\((.*?)\)", text)[1]
    names = re.findall(r"%(\w+):", main)
    inputs = [f"--input={n}={value}" for n, value in zip(names, cases[-1], strict=True)]
    words = ("run", "-q", *inputs, "--output")
    there = relay(*words, "there", "p.so", "--emulate", cwd=tmp_path, check=False)
    here = relay(*words, "here", path, cwd=tmp_path, check=False)
    assert there.returncode == here.returncode, there.stderr
    if here.returncode != 0:
        assert there.stderr[:12] == here.stderr[:12]
        return
    for file in (tmp_path / "here").iterdir():
        np.testing.assert_array_equal(np.load(tmp_path / "there" / file.name), np.load(file))


@pytest.mark.parametrize("name", PROGRAMS)
def test_language_examples(name, tmp_path):
    check_example(name, tmp_path, TARGET)


def check_example(name, tmp_path, target):
    """The value of its NumPy program; lists and other data are written as tensors, and read from these."""
    text = (FOLDER / f"{name}.relay").read_text()
    program = tmp_path / f"{name}.relay"
    program.write_text(tensor_results.with_tensors(text))
    relay("run", "-q", program, "--output", tmp_path / "out", "--target", target, "--emulate")
    count = len(list((tmp_path / "out").iterdir()))
    outputs = [np.load(tmp_path / f"out/output{i}.npy") for i in range(count)]
    same(tensor_results.value_of(text, outputs), getattr(language_models, name)())


def check_graphs(seeds, target=TARGET):
    complaints, agreed = [], 0
    for seed in seeds:
        outcome = onnx_random_graphs.judge(onnx_random_graphs.draw(seed), target=target)
        agreed += outcome.kind == "agrees"
        if outcome.kind in ("wrong", "failed"):
            complaints.append(f"graph {seed}: {outcome.kind} {outcome.text}")
    assert not complaints, "\n".join(complaints)
    assert agreed >= len(seeds) / 2


def test_random_graphs():
    check_graphs(range(SEED, SEED + 20))


@pytest.mark.slow
def test_many_random_graphs():
    check_graphs(range(1000))


def needs_more_than_numbers(case):
    """Whether a case has values that no .npy file holds, strings among them, or decodes an image: what
    the runtime of an emulated program takes is asked of all others."""
    values = [v for inputs, outputs in case.data for v in (*inputs, *outputs)]
    plain = all(
        isinstance(v, np.ndarray) and v.dtype.kind in "biuf" and v.dtype.isbuiltin == 1
        for v in values
    )
    return not plain or "image_decoder" in case.name


def check_cases(chosen, target=TARGET):
    """As test_onnx_cases, where a case may also have values that no .npy file holds."""
    complaints, passed = [], 0
    for case, outcome in onnx_cases.judge(chosen, target):
        group = test_onnx_cases.OPEN.get(case.name)
        passed += outcome.kind == "passed"
        is_excused = not outcome.code and needs_more_than_numbers(case)
        may_be_refused = outcome.kind == "refused" and (group is not None or is_excused)
        random = group is not None and group.get("random") and outcome.kind == "wrong"
        if outcome.kind != "passed" and not may_be_refused and not random:
            complaints.append(f"{case.name}: {outcome}")
    print(f"\nONNX's backend suite on {target}: {passed} of {len(chosen)} pass")
    assert not complaints, "\n".join(complaints)


def test_onnx_cases_of_today():
    part = int(os.environ.get("RELAY_TENTH", test_onnx_cases.TENTH))
    check_cases(list(onnx_cases.cases())[part::50])


@pytest.mark.slow
def test_all_onnx_cases():
    check_cases(list(onnx_cases.cases()))
