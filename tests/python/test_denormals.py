"""Numbers below the normal ones: zero, or kept with -denormals=keep, wherever a program computes."""

import re

import numpy as np
import pytest
from command_line import relay as command

import relay

TINY = 1e-40
MODES = ["flush", "keep"]


def target_of(mode):
    return f"native -denormals={mode}"


def expect(got, want, mode):
    """`want` as IEEE 754 has it, or zero where denormals are flushed."""
    want = np.asarray(want)
    least = np.finfo(want.dtype).tiny
    if mode == "flush":
        want = np.where(np.abs(want) < least, want.dtype.type(0), want)
    np.testing.assert_array_equal(np.asarray(got), want, strict=True)


def some(dtype, size=37):
    """Some normal numbers, some denormal ones, of both signs."""
    least = np.finfo(dtype).tiny
    return (np.linspace(-3, 3, size) * least).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", range(4))
def test_products_and_folded_constants(level, dtype, mode):
    x = some(dtype)
    half = np.array(0.5, dtype)
    v = relay.var("x", shape=x.shape, dtype=dtype)
    constant = relay.multiply(relay.const(x), relay.const(half))
    scalar = relay.multiply(relay.const(x[20]), relay.const(half))
    body = relay.Tuple([v * relay.const(half), constant, scalar, relay.reshape(v, [1, -1])])
    exe = relay.build(relay.Function([v], body), target_of(mode), opt_level=level)
    before = np.float32(TINY) * np.float32(0.5)
    product, folded, one, moved = (np.asarray(r) for r in exe(x))
    operand = x if mode == "keep" else np.where(np.abs(x) < np.finfo(dtype).tiny, 0, x)
    expect(np.abs(product), np.abs((operand * half).astype(dtype)), mode)
    np.testing.assert_array_equal(np.abs(folded), np.abs(product))
    np.testing.assert_array_equal(np.abs(one), np.abs(product[20]))
    np.testing.assert_array_equal(moved, x.reshape(1, -1))
    assert before != 0 and np.float32(TINY) * np.float32(0.5) == before, "the caller's own mode"


@pytest.mark.parametrize("mode", MODES)
def test_worker_threads_and_loaded_artifacts(tmp_path, mode):
    x = np.full(1 << 20, TINY, "float32")
    v = relay.var("x", shape=x.shape, dtype="float32")
    function = relay.Function([v], relay.exp(v) * v * relay.const(np.float32(0.5)))
    exe = relay.build(function, target_of(mode) + " -num-threads=2", num_threads=2)
    exe.export_library(tmp_path / "m.so")
    other = relay.build(function, target_of("keep" if mode == "flush" else "flush"), num_threads=2)
    loaded = relay.runtime.load_module(tmp_path / "m.so", num_threads=2)
    for program in (exe, loaded, exe):
        # Threads of the pool serve programs of both modes in turn.
        other(x)
        expect(program(x), np.full(x.shape, np.float32(TINY) * np.float32(0.5)), mode)


SCALARS = """
def @halve(%x: float32, %k: int32) -> float32 {
  if (%k < 1) { %x } else { @halve(%x * 0.5f, %k - 1) }
}
def @main(%x: float32) -> (float32, bool) { (@halve(%x, 3), @halve(%x, 1) == 0f) }
"""


@pytest.mark.parametrize("mode", MODES)
def test_scalars_of_the_virtual_machine(mode):
    exe = relay.build(relay.parse('#[version = "0.0.5"]\n' + SCALARS), target_of(mode))
    x = np.float32(TINY)
    value, is_zero = exe(x)
    expect(value, x * np.float32(0.125), mode)
    assert bool(is_zero) == (mode == "flush")


@pytest.mark.parametrize("mode", MODES)
def test_the_evaluator_agrees(tmp_path, mode):
    (tmp_path / "m.relay").write_text('#[version = "0.0.5"]\n' + SCALARS)
    np.save(tmp_path / "x.npy", np.float32(TINY))
    texts = [
        command(
            "run",
            "m.relay",
            "--input",
            "x=x.npy",
            "--executor",
            kind,
            "--target",
            target_of(mode),
            cwd=tmp_path,
        ).stdout
        for kind in ("vm", "eval")
    ]
    found = [re.findall(r"^(?:  )?output\d.*", text, re.MULTILINE) for text in texts]
    assert len(found[0]) == 2 and found[0] == found[1], texts
    assert (found[0][1].split()[-1] == "1") == (mode == "flush"), texts[0]


def test_the_python_evaluator_flushes():
    x = np.array([1e-39, -1e-39, 2e-38, 1.0], "float32")
    v = relay.var("x", shape=x.shape, dtype="float32")
    module = relay.IRModule.from_expr(relay.Function([v], v * relay.const(np.float32(0.5))))
    for kind in ("debug", "vm"):
        got = np.asarray(relay.create_executor(kind, module).evaluate()(x))
        np.testing.assert_array_equal(got, np.array([0, 0, 0, 0.5], "float32"))


@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_functions_of_kept_denormals(level):
    """Within a unit of the last place of a denormal number, and no other zero than IEEE 754 has."""
    x = np.array([1e-45, 3e-42, TINY, 1e-38, 5e-38], "float32")
    v = relay.var("x", shape=x.shape, dtype="float32")
    wide = x.astype("float64")
    # exp of x - 90: results below the normal numbers.
    low = relay.const(np.linspace(-103, -87, 5).astype("float32"))
    body = relay.Tuple([relay.sqrt(v), relay.log(v), relay.exp(low + v), relay.tanh(v),
                        relay.nn.relu(v), relay.sin(v), v / relay.const(np.float32(3))])  # fmt: skip
    exe = relay.build(relay.Function([v], body), f"x86-64-{level} -denormals=keep")
    want = [np.sqrt(wide), np.log(wide), np.exp(low.data.astype("float64")), np.tanh(wide),
            wide, np.sin(wide), wide / 3]  # fmt: skip
    try:
        got = exe(x)
    except relay.UserError as refused:
        assert "E0610" in str(refused)
        return
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6, atol=3e-45)


def test_instructions_that_flush_are_left_out_or_refused(tmp_path):
    rapids = "llvm -mcpu=sapphirerapids -denormals=keep"
    v = relay.var("x", shape=(64, 64), dtype="bfloat16")
    w = relay.var("w", shape=(64, 64), dtype="bfloat16")
    function = relay.Function([v, w], relay.nn.dense(v, w))
    for target, asks in ((rapids, False), ("llvm -mcpu=sapphirerapids", True)):
        relay.build(function, target).export_library(tmp_path / f"{asks}.so")
        shown = command("show", tmp_path / f"{asks}.so", check=False)
        told = shown.stdout + shown.stderr
        assert ("bf16" in told) == asks, told
    with pytest.raises(relay.UserError, match="flush denormals in any mode") as refused:
        relay.build(function, rapids + " -mattr=+amx-bf16")
    assert "-denormals=keep or +amx-bf16" in str(refused.value)
    with pytest.raises(relay.UserError, match="-denormals=flush or -denormals=keep"):
        relay.build(function, "native -denormals=maybe")


@pytest.mark.parametrize("mode", MODES)
def test_float16_below_its_normal_numbers(mode):
    # They are normal float32, in folded constants too, whose code does not depend on the processor.
    x = np.arange(1 << 16, dtype="uint16").view("float16")
    x = np.tile(x[np.isfinite(x)], 2)
    v = relay.var("x", shape=x.shape, dtype="float16")
    folded = relay.cast(relay.const(x), "float32")
    for target in ("native", "x86-64-v2"):
        body = relay.Tuple([relay.cast(v, "float32"), folded])
        for found in relay.build(relay.Function([v], body), f"{target} -denormals={mode}")(x):
            np.testing.assert_array_equal(np.asarray(found), x.astype("float32"))
