"""Limits of the compiler and of runs; what a process does at its end, and when memory is short."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY

import relay

SPIN = """#[version = "0.0.5"]
def @main(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { @main(subtract(%n, 1)) } }
"""
# A list that grows: memory, and frames.
GROW = """#[version = "0.0.5"]
def @grow(%n: int32, %xs: List[Tensor[(1000), float32]]) -> List[Tensor[(1000), float32]] {
  if (equal(%n, 0)) { %xs } else {
    let %x = add(zeros(shape=[1000], dtype="float32"), cast(%n, dtype="float32"));
    @grow(subtract(%n, 1), Cons(%x, %xs))
  }
}
def @main(%n: int32) -> int32 { match (@grow(%n, Nil())) { Nil() => 0, Cons(_, _) => 1 } }
"""
ENDLESS = 2**31 - 1


# Each call is at a type of twice the size.
POLYMORPHIC = """#[version = "0.0.5"]
def @f[A](%n: int32, %x: A) -> int32 { if (equal(%n, 0)) { 0 } else { @f(subtract(%n, 1), (%x, %x)) } }
def @main() -> int32 { @f(100, 1) }
"""


def run_python(code: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_a_run_ends_at_its_time():
    exe = relay.build(relay.parse(SPIN))
    begin = time.monotonic()
    with relay.limits(time=0.2), pytest.raises(relay.RunError) as error:
        exe(np.int32(ENDLESS))
    assert error.value.code == "E0615"
    assert 0.2 <= time.monotonic() - begin < 1.5
    assert exe(np.int32(10)) == 0


def test_a_run_ends_at_its_fuel_and_memory():
    exe = relay.build(relay.parse(SPIN))
    with relay.limits(fuel=1000):
        assert exe(np.int32(400)) == 0
        with pytest.raises(relay.RunError) as error:
            exe(np.int32(ENDLESS))
    assert error.value.code == "E0606"
    grow = relay.build(relay.parse(GROW))
    with relay.limits(memory="8M"):
        assert grow(np.int32(100)) == 1
        with pytest.raises(relay.RunError) as error:
            grow(np.int32(100_000))
    assert error.value.code == "E0604"
    assert grow(np.int32(1000)) == 1


PEAKS = r"""
    import re
    import numpy as np
    import relay

    def status(key):
        with open("/proc/self/status") as f:
            return int(re.search(key + r":\s+(\d+) kB", f.read())[1]) << 10

    HEAD = '#[version = "0.0.5"]\n'
    PROGRAMS = (
        # Values of open sizes, and panels of a weight that is not a constant.
        (HEAD + '''def @main[n: Dim](%x: Tensor[(n, 64), float32], %w: Tensor[(1024, 64), float32]) {
            nn.softmax(nn.dense(nn.softmax(nn.dense(%x, %w)), transpose(%w))) }''',
         lambda n: (np.ones((n, 64), "float32"), np.ones((1024, 64), "float32"))),
        # Working memory of kernels beside results.
        (HEAD + '''def @main[n: Dim](%x: Tensor[(n, 256), float32]) {
            (argsort(%x, axis=0), cumsum(%x, axis=0), sort(%x, axis=1)) }''',
         lambda n: (np.ones((n, 256), "float32"),)),
        # An argument that has to be copied.
        (HEAD + '''def @main[n: Dim](%x: Tensor[(n, 256), float32]) { exp(%x) }''',
         lambda n: (np.ones((256, n), "float32").T,)),
    )
    LIMIT = 64 << 20
    for text, inputs in PROGRAMS:
        exe = relay.build(relay.parse(text), num_threads=2)
        refused = passed = 0
        for n in (1000, 4000, 10_000, 20_000, 40_000, 60_000):
            args = inputs(n)
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")
            before = status("VmRSS")
            try:
                with relay.limits(memory=LIMIT):
                    result = exe(*args)
                passed += 1
            except relay.RunError as error:
                assert error.code == "E0604", error
                refused += 1
            peak = status("VmHWM") - before
            assert peak <= LIMIT + (6 << 20), (text, n, peak >> 20)
            result = None
        assert passed and refused, (text, passed, refused)
"""


def test_a_process_grows_by_no_more_than_the_limit_of_a_run():
    done = run_python(PEAKS)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_evaluator_has_the_same_limits():
    evaluate = relay.create_executor("debug", mod=relay.parse(SPIN)).evaluate()
    with relay.limits(fuel=1000), pytest.raises(relay.RunError) as error:
        evaluate(np.int32(ENDLESS))
    assert error.value.code == "E0606"
    with relay.limits(time=0.2), pytest.raises(relay.RunError) as error:
        evaluate(np.int32(ENDLESS))
    assert error.value.code == "E0615"


def test_limits_nest_and_belong_to_their_context():
    exe = relay.build(relay.parse(SPIN))
    # A loop that is a kernel counts its iterations about once a millisecond.
    many = np.int32(10**8)
    with relay.limits(fuel=100), relay.limits(fuel=10**9, time=100), pytest.raises(relay.RunError):
        exe(many)
    results = []
    with relay.limits(fuel=100):
        thread = threading.Thread(target=lambda: results.append(exe(many)))
        thread.start()
        thread.join()
    assert results == [0]
    assert exe(many) == 0


@pytest.mark.parametrize(
    "given", [{"time": 0}, {"time": -1}, {"memory": 0.5}, {"fuel": 0}, {"time": float("nan")}]
)
def test_must_fail_limits_that_are_none(given):
    with pytest.raises(ValueError, match="positive"):
        relay.limits(**given)


def test_must_fail_limits_of_another_type():
    with pytest.raises(TypeError):
        relay.limits(time=True)
    with pytest.raises(relay.UserError) as error:
        relay.limits(memory="4X")
    assert error.value.code == "E0702"


def test_must_fail_E0304_E0305_a_compilation_ends_at_its_limits(tmp_path):
    """A program whose types double at each call: no size of machine is enough for it."""
    for limit, code in (
        ({"time": 0.3, "memory": "4G"}, "E0304"),
        ({"time": 50, "memory": "50M"}, "E0305"),
    ):
        begin = time.monotonic()
        with relay.limits(**limit), pytest.raises(relay.UserError) as error:
            relay.build(relay.parse(POLYMORPHIC))
        assert error.value.code == code
        assert time.monotonic() - begin < 10
    # And a program of many lines: nothing is checked in no time.
    endless, long = tmp_path / "endless.relay", tmp_path / "long.relay"
    endless.write_text(POLYMORPHIC)
    lines = [f"  let %x{i + 1} = add(%x{i}, %x{i});" for i in range(20_000)]
    long.write_text(
        "\n".join(
            [
                '#[version = "0.0.5"]',
                "def @main(%x0: Tensor[(2), float32]) {",
                *lines,
                "  %x20000",
                "}",
            ]
        )
    )
    output = tmp_path / "m.so"
    for model, limit, *words in (
        (endless, "0.3", "compile", "-o", str(output)),
        (endless, "0.3", "opt"),
        (endless, "0.3", "explain"),
        (endless, "0.3", "run"),
        (long, "0.005", "check"),
        (long, "0.005", "show"),
    ):
        command = [RELAY, words[0], str(model), *words[1:], "--time-limit", limit]
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "E0304" in done.stderr, (command, done.stderr)
        assert time.monotonic() - begin < 5
    environment = os.environ | {"RELAY_MEMORY_LIMIT": "50M"}
    done = subprocess.run(
        [RELAY, "opt", str(endless)], capture_output=True, text=True, timeout=30, env=environment
    )
    assert done.returncode == 1 and "E0305" in done.stderr, done.stderr
    assert not output.exists()


def test_runs_have_limits_on_the_command_line(tmp_path):
    closed = tmp_path / "closed.relay"
    closed.write_text(
        SPIN.replace("@main", "@spin") + f"def @main() -> int32 {{ @spin({ENDLESS}) }}\n"
    )
    for words, code in (
        (["--fuel", "1000"], "E0606"),
        (["--time-limit", "0.5"], "E0615"),
        (["--executor", "eval", "--fuel", "1000"], "E0606"),
        (["--executor", "eval", "--time-limit", "0.5"], "E0615"),
    ):
        done = subprocess.run(
            [RELAY, "run", str(closed), *words], capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 1 and code in done.stderr, (words, done.stderr)
    for words in (["--time-limit", "soon"], ["--memory-limit", "4X"]):
        done = subprocess.run(
            [RELAY, "run", str(closed), *words], capture_output=True, text=True, timeout=30
        )
        assert done.returncode in (1, 2) and words[0] in done.stderr, done.stderr


@pytest.mark.parametrize("times", range(3))
def test_a_process_ends_while_daemon_threads_run_and_build(times):
    done = run_python(
        f"""
        import threading, time
        import numpy as np
        import relay
        mod = relay.parse({SPIN!r})
        exe = relay.build(mod)
        def run():
            while True:
                exe(np.int32(1000 if len(threading.enumerate()) % 2 else 10**7))
        def build():
            while True:
                relay.build(mod, cache=False)
        def evaluate():
            while True:
                relay.create_executor("debug", mod=mod).evaluate()(np.int32(50))
        for work in (run, run, run, build, evaluate):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        """
    )
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)


def test_the_command_ends_cleanly_when_memory_is_short(tmp_path):
    model = tmp_path / "spin.relay"
    model.write_text(SPIN)
    # What the command needs to begin at all is for the dynamic loader to refuse.
    sizes = [s << 20 for s in (90, 110, 130, 150, 170, 190, 220, 260, 320, 512, 1024)]
    codes = set()
    for words in (
        ["run", str(model), "--no-cache"],
        ["compile", str(model), "--no-cache", "-o", str(tmp_path / "m.so")],
    ):
        for size in sizes:
            done = subprocess.run(
                [RELAY, *words, *(["--force"] if words[0] == "compile" else [])],
                capture_output=True,
                text=True,
                timeout=60,
                preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
            )
            assert done.returncode in (0, 1, 127), (words, size >> 20, done.returncode, done.stderr)
            if done.returncode == 1:
                assert "error" in done.stderr, (size, done.stderr)
            codes.add(done.returncode)
    assert 0 in codes


def _limited(words, size, **options):
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
        **options,
    )


def test_a_command_that_has_hardly_room_for_its_code_says_so(tmp_path):
    """The C library ends a process that has no memory for the variables of a thread."""
    model = tmp_path / "spin.relay"
    model.write_text(SPIN)

    def loads(size):
        return "cannot be loaded" not in _limited([RELAY, "--version"], size).stderr

    # The least size, in steps of 256 KiB, with which the code can be mapped.
    low, high = 16 << 20, 512 << 20
    assert loads(high)
    while high - low > 256 << 10:
        middle = (low + high) // 2
        low, high = (low, middle) if loads(middle) else (middle, high)
    said = set()
    for step in range(-5, 10):
        size = high + step * (256 << 10)
        for words in (["--version"], ["check", str(model)], ["run", str(model), "--no-cache"]):
            done = _limited([RELAY, *words], size)
            assert done.returncode in (0, 1), (size, words, done.returncode, done.stderr)
            assert done.returncode == 0 or "error" in done.stderr, (size, words, done.stderr)
            said.add(done.returncode)
    assert said >= {1}


@pytest.mark.parametrize("size", range(100, 340, 48))
def test_python_that_is_short_of_memory_gets_its_exceptions(size):
    short_of_memory(size)


@pytest.mark.slow
def test_python_that_is_short_of_any_memory_gets_its_exceptions():
    """Memory ends in the middle of code generation in few sizes only, and by chance."""
    for _ in range(20):
        for size in range(184, 216, 4):
            short_of_memory(size)


def short_of_memory(size: int) -> None:
    """Four threads build in a process of `size` MiB: exceptions of Python, or success."""
    code = f"""
        try:
            import threading
            import relay
            mod = relay.parse({SPIN!r})
            relay.build(mod, cache=False, num_threads=4)(20)
            failures = []
            def work():
                try:
                    relay.build(mod, cache=False)(20)
                except (MemoryError, relay.RelayError, OSError) as error:
                    failures.append(error)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        except (ImportError, MemoryError, OSError, RuntimeError) as error:
            print(type(error).__name__)
        except BaseException as error:
            if not type(error).__module__.startswith("relay"):
                raise
        """
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = _limited([sys.executable, "-c", textwrap.dedent(code)], size << 20, env=env)
    # Signals are negative; 127 is the C library's abort.
    assert done.returncode in (0, 1), (size, done.returncode, done.stderr[-1000:])
    assert "ABORT" not in done.stderr and "terminate called" not in done.stderr, done.stderr


def test_every_failure_of_the_system_is_an_error_of_python(tmp_path):
    """Each allocation, thread and file operation of a load and a call fails, once or for ever."""
    library = tmp_path / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-w", str(source), "-o", str(library), "-ldl"], check=True
    )
    artifact = tmp_path / "spin.so"
    relay.build(relay.parse(SPIN)).export_library(artifact)
    done = run_python(
        f"""
        import ctypes
        import numpy as np
        import relay
        faults = ctypes.CDLL({str(library)!r})
        faults.relay_succeed.restype = ctypes.c_long
        value = np.int32(20)
        kept = relay.runtime.load_module({str(artifact)!r})
        kept(value)
        def load():
            return relay.runtime.load_module({str(artifact)!r})(value)
        def call():
            return kept(value)
        failures = 0
        for work in (load, call):
            for ever in (0, 1):
                at = 0
                while True:
                    faults.relay_fail(ctypes.c_long(at), ever)
                    try:
                        result, error = work(), None
                    except (relay.RelayError, MemoryError) as e:
                        result, error = None, e
                    count = faults.relay_succeed()
                    assert error is not None or result == 0, (work, at, result)
                    assert not isinstance(error, relay.InternalError), (work, at, error)
                    failures += error is not None
                    assert work() == 0, (work, at)
                    if count <= at:
                        break
                    at += 1
        print(failures)
        """,
        env=os.environ | {"LD_PRELOAD": str(library)},
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert int(done.stdout) > 20
