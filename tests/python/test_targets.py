"""A target with a name is the same on every machine, and what a machine cannot run it can still build."""

import ml_dtypes
import numpy as np
import pytest
from command_line import fails, relay
from hosts import HOSTS

import relay as R

# AVX-512 beside what only AMD's processors of before had: no machine runs code for it.
NOWHERE = "x86-64-v4 -mattr=+xop,+tbm"
SHAPE = (1, 64, 14, 14)
NAMED = [
    "x86-64-v2",
    "x86-64-v4",
    "x86-64-v4 -l1=48K -l2=2M -l3=64M -num-threads=2",
    "x86-64-v3 -mtune=znver2",
    "x86-64-v4 -mattr=+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8",
    "llvm -mcpu=znver4",
    "llvm -mcpu=x86-64-v3 -num-threads=3",
]


def network() -> R.IRModule:
    """A convolution, products of two widths, and constants that are folded by the interpreter and by compiled
    code, with sums that vectors of other widths round differently."""
    rng = np.random.default_rng(1)

    def constant(*shape, dtype="float32"):
        return R.const((rng.standard_normal(shape) / 16).astype(dtype))

    x = R.var("x", shape=SHAPE)
    y = R.nn.conv2d(x, constant(64, 64, 3, 3), padding=(1, 1), channels=64, kernel_size=(3, 3))
    folded = R.mean(R.exp(constant(64, 3000)), axis=1) + R.sum(constant(64, 9), axis=1)
    y = R.nn.relu(R.nn.bias_add(y, folded))
    y = R.nn.batch_flatten(R.nn.global_avg_pool2d(y))
    half = R.cast(R.nn.dense(y, R.nn.dense(constant(96, 512), constant(64, 512))), "bfloat16")
    y = R.cast(R.nn.dense(half, constant(64, 96, dtype=ml_dtypes.bfloat16)), "float32")
    return R.IRModule.from_expr(R.Function([x], R.nn.softmax(y)))


def built(target: str, path) -> bytes:
    R.build(network(), target=target, cache=False).export_library(path)
    return path.read_bytes()


@pytest.fixture(params=HOSTS)
def host(request, monkeypatch):
    """Runs the test on each machine that is described."""
    monkeypatch.setenv("RELAY_HOST", request.param)
    return request.param


def expect_equal(target: str, hosts: list[str], path, monkeypatch) -> None:
    here = built(target, path)
    for name in hosts:
        monkeypatch.setenv("RELAY_HOST", name)
        assert built(target, path) == here, f"{target} built on {name} differs"


@pytest.mark.parametrize(("turn", "target"), list(enumerate(NAMED)))
def test_a_named_target_gives_equal_bytes_on_every_machine(turn, target, tmp_path, monkeypatch):
    hosts = [HOSTS[(turn + step) % len(HOSTS)] for step in (0, 2)]
    expect_equal(target, hosts, tmp_path / "program.so", monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("target", NAMED)
def test_a_named_target_gives_equal_bytes_on_all_machines(target, tmp_path, monkeypatch):
    expect_equal(target, HOSTS, tmp_path / "program.so", monkeypatch)


def test_code_for_the_machine_differs_by_machine(tmp_path, monkeypatch):
    seen = set()
    for name in HOSTS:
        monkeypatch.setenv("RELAY_HOST", name)
        seen.add(built("native", tmp_path / "there.so"))
    assert len(seen) == len(HOSTS)


def test_constants_have_the_same_bits_for_every_target():
    terms = R.const(np.linspace(-3, 2, 256 * 999, dtype="float32"))
    constants = R.IRModule.from_expr(R.Function([], R.mean(R.exp(terms))))
    values = {
        np.asarray(R.build(constants, target=target, cache=False)()).tobytes()
        for target in ["x86-64-v2", "native"]
    }
    assert len(values) == 1


def test_the_machines_own_code_is_built_and_runs_or_is_refused_by_number(host, tmp_path):
    program = R.build(network())
    path = tmp_path / "native.so"
    program.export_library(path)
    assert program.input_info()[0].shape == SHAPE
    x = np.random.default_rng(2).standard_normal(SHAPE).astype("float32")
    for run in [lambda: program(x), lambda: R.runtime.load_module(path)(x)]:
        try:
            got = np.asarray(run())
        except R.UserError as e:
            assert "E0610" in str(e) and "this processor lacks" in str(e)
        else:
            np.testing.assert_allclose(got.sum(), 1, rtol=1e-2)


def test_what_no_machine_runs_is_built_written_and_refused_when_it_runs(tmp_path):
    program = R.build(network(), target=NOWHERE)
    assert "xop" not in program.function_names and "kernels" in program.metadata
    x = np.zeros(SHAPE, "float32")
    for _ in range(2):
        with pytest.raises(R.UserError, match=r"E0610.*instructions that this processor lacks"):
            program(x)
    path = tmp_path / "nowhere.so"
    program.export_library(path)
    with pytest.raises(R.UserError, match=r"E0610.*this processor lacks") as refused:
        R.runtime.load_module(path)
    assert "operating system" not in str(refused.value)
    (tmp_path / "m.relay").write_text(network().astext())
    relay("compile", tmp_path / "m.relay", "-o", tmp_path / "m.so", "--target", NOWHERE)
    fails("E0610", "run", tmp_path / "m.relay", "--target", NOWHERE, mentions=["lacks: "])


@pytest.mark.parametrize(
    "words",
    ["-l2=0", "-l2=1.5M", "-l3=8T", "-l1=32K -l1=48K", "-l4=1M", "-mtune=z80", "-mcpu=znver4"],
)
def test_words_that_say_nothing_are_refused(words, tmp_path):
    with pytest.raises(R.UserError, match="E0403"):
        R.build(network(), target=f"x86-64-v3 {words}")


def test_an_unknown_machine_is_refused(monkeypatch):
    monkeypatch.setenv("RELAY_HOST", "z80")
    with pytest.raises(R.UserError, match=r"(?s)E0403.*RELAY_HOST.*sapphire-rapids.*z80"):
        R.build(network())
    R.build(network(), target="x86-64-v3")


def test_the_machines_that_tests_know_are_those_of_the_compiler(monkeypatch):
    monkeypatch.setenv("RELAY_HOST", "z80")
    with pytest.raises(R.UserError) as refused:
        R.build(network())
    assert ", ".join(HOSTS) in str(refused.value)
