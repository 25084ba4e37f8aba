"""Programs for OpenCL devices, from Python and the command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import models
import numpy as np
import packaged_models
import pytest
from command_line import RELAY, fails, relay_json
from command_line import relay as relay_command

import relay

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(80, 90), float32]) { nn.softmax(add(%x, %x)) }
"""
RUN = f"""
import numpy as np, relay
mod = relay.parse('''{PROGRAM}''')
exe = relay.build(mod, target={{"gpu": "opencl"}})
print(exe(np.ones((80, 90), "float32")).sum())
"""


def in_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def opencl():
    """Skips, with the reason, where the machine has no OpenCL device."""
    tried = in_process(RUN)
    if "E0620" in tried.stderr:
        pytest.skip(tried.stderr.strip().splitlines()[-1])
    assert tried.returncode == 0, tried.stderr
    return float(tried.stdout)


def test_a_map_of_targets_is_a_host_and_devices(opencl):
    assert opencl == pytest.approx(80, rel=1e-4)


def test_annotations_place_operators(opencl):
    x = relay.var("x", shape=(4, 5), dtype="float32")
    there = relay.annotation.on_device(relay.exp(x), "opencl")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(there, x)))
    exe = relay.build(mod, target={"cpu": "native", "gpu": "opencl"})
    given = np.linspace(-1, 1, 20, dtype="float32").reshape(4, 5)
    np.testing.assert_allclose(np.asarray(exe(given)), np.exp(given) + given, rtol=1e-5)


def test_a_constant_is_part_of_a_value_of_a_device(opencl):
    """The concatenation is written in place, and the constant copied into it on the device."""
    x = relay.var("x", shape=(4, 5), dtype="float32")
    ones = relay.const(np.ones((4, 2), "float32"))
    joined = relay.concatenate([relay.exp(x), ones], axis=1)
    there = relay.annotation.on_device(relay.argsort(joined, axis=1, dtype="int32"), "opencl")
    exe = relay.build(relay.IRModule.from_expr(relay.Function([x], there)), target="native; opencl")
    given = np.linspace(-2, 1, 20, dtype="float32").reshape(5, 4).T.copy()
    want = np.argsort(np.concatenate([np.exp(given), np.ones((4, 2))], 1), axis=1, kind="stable")
    np.testing.assert_array_equal(np.asarray(exe(given)), want)


def test_the_command_runs_and_prints_kernels(opencl, tmp_path):
    model = tmp_path / "m.relay"
    model.write_text(PROGRAM)
    run = subprocess.run(
        [RELAY, "run", model, "--target", "opencl"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    shown = subprocess.run(
        [RELAY, "show", model, "--target", "opencl", "--asm"], capture_output=True, text=True
    )
    assert "__kernel void" in shown.stdout


def result_of(program, target, folder):
    """The tensors of a run of the command, or what it prints where the result is not a tensor."""
    folder.mkdir()
    words = [] if program.suffix == ".relay" else ["--output", folder]
    done = relay_command("run", program, "--target", target, "-q", *words, timeout=600)
    return [np.load(f) for f in sorted(folder.iterdir())] or done.stdout


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", [*models.MODELS, "magika", "language examples"])
def test_whole_programs(opencl, name, tmp_path):
    if name == "language examples":
        programs = sorted((Path(__file__).parents[2] / "examples/language").glob("*.relay"))
    elif name == "magika":
        programs = [packaged_models.find(name)]
        if programs == [None]:
            pytest.skip("magika is not installed")
    else:
        programs = [tmp_path / "model.onnx"]
        models.write(name, programs[0], small=True)
    for program in programs:
        want, got = (
            result_of(program, target, tmp_path / f"{program.stem} {target}")
            for target in ("native", "opencl")
        )
        if isinstance(want, str):
            assert got == want, program
            continue
        for w, g in zip(want, got, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * np.abs(w).max())


# Stands before the OpenCL library, and makes no program of a source.
NO_SOURCES = """
#include <stddef.h>
#include <stdint.h>
void* clCreateProgramWithSource(void* context, uint32_t n, const char** texts, const size_t* sizes,
                                int32_t* error) {
  (void)context, (void)n, (void)texts, (void)sizes;
  *error = -33;
  return NULL;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_run_takes_the_binaries_of_a_compiled_file(opencl, tmp_path, monkeypatch):
    model, source, binary = (tmp_path / n for n in ("m.relay", "source.so", "binary.so"))
    model.write_text(PROGRAM)
    relay_command("compile", model, "-o", source, "--target", "opencl")
    relay_command("compile", model, "-o", binary, "--target", "opencl -build=0")
    code, library = tmp_path / "no_sources.c", tmp_path / "no_sources.so"
    code.write_text(NO_SOURCES)
    before = os.environ.get("RELAY_OPENCL", "-l:libOpenCL.so.1")
    subprocess.run(
        ["cc", "-shared", "-fPIC", code, "-o", library, "-Wl,--no-as-needed", before], check=True
    )
    monkeypatch.setenv("RELAY_OPENCL", str(library))
    fails("E0622", "run", source)
    relay_command("run", binary)


def test_a_compiled_file_has_binaries_of_a_device(opencl, tmp_path):
    model, compiled = tmp_path / "m.relay", tmp_path / "m.so"
    model.write_text(PROGRAM)
    relay_command("compile", model, "-o", compiled, "--target", "opencl")
    assert b"//binary " not in compiled.read_bytes()
    relay_command("compile", model, "-o", compiled, "--force", "--target", "opencl -build=0")
    assert b"//binary " in compiled.read_bytes()
    exe = relay.runtime.load_module(str(compiled))
    assert float(np.asarray(exe(np.ones((80, 90), "float32"))).sum()) == pytest.approx(80, rel=1e-4)
    fails("E0620", "compile", model, "-o", tmp_path / "n.so", "--target", "opencl -build=77")
    fails("E0403", "compile", model, "-o", tmp_path / "n.so", "--target", "opencl -build=gpu")


def test_explain_counts_what_is_on_each_device(tmp_path):
    """Two inputs go there, one result comes back: no copy could be spared. No device is needed for it."""
    model = tmp_path / "m.relay"
    model.write_text(
        PROGRAM.replace(") {", ", %w: Tensor[(80, 90), float32]) {").replace("%x, %x", "%x, %w")
    )
    explained = relay_command("explain", model, "--target", "opencl").stdout
    assert "device    kernels" in explained and "2, 56.2 KiB" in explained
    host, device = relay_json("explain", model, "--target", "opencl")["devices"]
    size = 80 * 90 * 4
    assert (host["kernels"], host["device"], device["device"]) == (0, "cpu", "opencl:0")
    assert device["kernels"] == device["kernel_calls"] >= 1
    assert device["from_host"] == {"copies": 2, "bytes": 2 * size, "of_open_size": 0}
    assert device["to_host"] == {"copies": 1, "bytes": size, "of_open_size": 0}


SQUARE = "Tensor[(64, 128), float32]"
HERE = 'virtual_device="opencl:0"'
# Programs with the tensors of that shape that must be copied to the device and back.
COPIES = {
    "an operand that is read twice": (["x"], "nn.softmax(add(exp(%x), %x))", 1, 1),
    "two results": (["x"], "(exp(%x), nn.softmax(%x))", 1, 2),
    "an input without use": (["x", "y"], "exp(%x)", 1, 1),
    "an input that is a result": (["x"], "(exp(%x), %x)", 1, 1),
    "a scalar, which the host needs": (["x"], "sum(%x)", 0, 0),
    "other shapes": (["x"], "reshape(exp(reshape(%x, newshape=[8192])), newshape=[32, 256])", 1, 1),
    "a value that both read": (["x"], "let %a = exp(%x); (argwhere(%a), nn.softmax(%a))", 1, 2),
    "a step between two that are placed": (
        ["x"],
        f"let %a = on_device(exp(%x), {HERE}); on_device(add(tanh(nn.softmax(%a)), %a), {HERE})",
        1,
        1,
    ),
    "parts of a concatenation": (
        ["x", "y"],
        "nn.softmax(concatenate((exp(%x), %y), axis=0))",
        2,
        2,
    ),
    "weights that are constant": (
        ["x"],
        'nn.dense(%x, reshape(arange(stop=8192f, dtype="float32"), newshape=[64, 128]))',
        1,
        0.5,
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_as_few_as_they_can_be(name, tmp_path):
    """No device is needed for it."""
    inputs, body, there, back = COPIES[name]
    params = ", ".join(f"%{i}: {SQUARE}" for i in inputs)
    model = tmp_path / "m.relay"
    model.write_text(f'#[version = "0.0.5"]\ndef @main({params}) {{ {body} }}\n')
    explained = relay_json("explain", model, "--target", "opencl")
    device = explained.get("devices", [{}])[-1]
    size = 64 * 128 * 4
    copied = [device.get(key, {}).get("bytes", 0) for key in ("from_host", "to_host")]
    assert copied == [there * size, back * size]


def test_explain_says_why_a_kernel_stays_on_the_host(tmp_path):
    model = tmp_path / "m.relay"
    model.write_text(
        '#[version = "0.0.5"]\n'
        f"def @main(%x: {SQUARE}, %y: Tensor[(8, 8), float32]) {{\n"
        "  (exp(%x), argwhere(%x), sum(%x), tanh(%y))\n}\n"
    )
    kernels = relay_json("explain", model, "--target", "opencl")["kernels"]
    stays = {k.get("stays") for k in kernels if "device" not in k}
    assert stays == {
        "the size of its result is data-dependent",
        "it gives scalars, or few integers, which the host reads",
        "copies of its 128 elements take longer than it does",
    }
    assert [k["device"] for k in kernels if "device" in k] == ["opencl:0"]
    assert "  device    cpu: copies of its 128" in relay_command(
        "explain", model, "--target", "opencl"
    ).stdout  # fmt: skip


def test_explain_gives_the_reason_of_a_schedule(tmp_path):
    """The device, the rule, groups and their memory, or why there are none. No device is needed for it."""
    model = tmp_path / "m.relay"
    model.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(512, 256), float32], %w: Tensor[(512, 256), float32],"
        " %v: Tensor[(12, 256), float32], %r: Tensor[(20, 900), float32]) {\n"
        "  (nn.dense(%x, %w), nn.dense(%x, %v), max(%r, axis=[1]), max(%r, axis=[0]), sum(%x, axis=[1]))\n}\n"
    )
    kernels = relay_json("explain", model, "--target", "opencl -device=gpu")["kernels"]
    assert {(k["device"], k["rule"]) for k in kernels} == {("opencl:0", "work_items")}
    schedules = "\n".join(k["schedule"] for k in kernels)
    for said in (
        "in groups of 16x16 items, tiles of 4x4",
        "16 terms in 8704 bytes of shared memory",
        "not in groups: an extent of 12 leaves most of a tile of 64 empty",
        "groups of 128 items, 576 bytes of shared memory",
        "not in groups: 20 terms are fewer than 512",
        "not in groups: 256 terms are fewer than 512",
    ):
        assert said in schedules, (said, schedules)
    explained = relay_command("explain", model, "--target", "opencl").stdout
    assert "  device    opencl:0" in explained
    assert "not in groups: items are lanes of vectors" in explained


def test_channels_are_last_where_items_are_lanes(tmp_path):
    """Of a GPU the layout is that of the model. No device is needed for it."""
    model = tmp_path / "m.relay"
    weights = 'reshape(arange(stop={0}f, dtype="float32"), newshape={1})'
    model.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1, 32, 16, 16), float32], %r: Tensor[(197, 64), float32]) {\n"
        f"  %0 = nn.conv2d(%x, {weights.format(288, [32, 1, 3, 3])}, padding=[1, 1, 1, 1], groups=32);\n"
        f"  %1 = nn.conv2d_transpose(%0, {weights.format(8192, [32, 64, 2, 2])},"
        " kernel_size=[2, 2], strides=[2, 2]);\n"
        f"  (%1, nn.dense(%r, {weights.format(8192, [128, 64])}))\n}}\n"
    )

    def told(target):
        kernels = relay_json("explain", model, "--target", target)["kernels"]
        return " ".join(f"{k.get('layouts')} {k['schedule']}" for k in kernels)

    lanes, gpu = told("opencl"), told("opencl -device=gpu")
    assert "nn.conv2d: data_layout=NHWC, kernel_layout=HWIO" in lanes, lanes
    assert "nn.conv2d_transpose" not in lanes and "OHWI16o" in lanes, lanes
    # 197 rows have no divisor; 33 tiles of 6 have one row too many.
    assert "T_dense_pack_write, tiles of 1x6" in lanes, lanes
    assert "nn.conv2d: data_layout=NCHW" in gpu and "nn.conv2d_transpose: data_layout=NCHW" in gpu


def test_must_fail_without_a_library_E0620():
    tried = in_process(RUN, RELAY_OPENCL="/absent/libOpenCL.so")
    assert tried.returncode != 0
    assert "E0620" in tried.stderr and "/absent/libOpenCL.so" in tried.stderr


@pytest.mark.parametrize("target", [{}, {"gpu": 3}])
def test_must_fail_maps_that_are_no_targets(target):
    with pytest.raises(relay.ArgumentError, match="a target is a text, or a map"):
        relay.build(relay.parse(PROGRAM), target=target)
