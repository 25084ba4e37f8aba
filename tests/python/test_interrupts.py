"""Ctrl-C ends compiling and running, and a build tells how far it is."""

# What the annotations of tensor functions name is a dtype.
# ruff: noqa: F821

import functools
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import relay

# What is interrupted: the program first, the work behind it.
LOOP = """
    TEXT = '''#[version = "0.0.5"]
    def @main(%n: int64, %x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {
      if (greater(%n, 0i64)) { @main(subtract(%n, 1i64), add(%x, 1f)) } else { %x }
    }'''
    mod = relay.parse(TEXT)
"""
# One kernel that goes on for hours, with a reduction in every element.
SPIN = """
    @relay.prim_func
    def spin(x: relay.Tensor[("n",), "float32"], out: relay.Tensor[("n",), "float32"]):
        for i in RANGE:
            t = 0.0
            for k in range(LIMIT):
                t = t * 0.5 + x[i]
            out[i] = t
    x = relay.var("x", relay.TensorType((SIZE,), "float32"))
    run = relay.build(relay.Function([x], spin(x)))
"""


def spin(loop, limit, size):
    return SPIN.replace("RANGE", loop).replace("LIMIT", limit).replace("SIZE", size)


WORK = {
    "workers": (
        """
    y = relay.var("x", shape=(16, 64))
    for i in range(900):
        y = relay.nn.relu(relay.nn.dense(y, relay.var(f"w{i}", shape=(64 + i, y.shape[1]))))
    f = relay.Function(relay.analysis.free_vars(y), y)
    """,
        "relay.build(f, cache=False)",
    ),
    "passes": (
        """
    y = relay.var("x", shape=(64,))
    for i in range(50_000):
        y = relay.exp(y)
    f = relay.Function(relay.analysis.free_vars(y), y)
    """,
        "relay.build(f, cache=False)",
    ),
    "compiled_loop": (LOOP + "    run = relay.build(mod)\n", "run(10**12, np.ones(4, 'float32'))"),
    "serial_kernel": (spin("range(x.shape[0])", "10**12", "4"), "run(np.ones(4, 'float32'))"),
    "parallel_kernel": (
        spin("relay.parallel(x.shape[0])", "10**12", "64"),
        "run(np.ones(64, 'float32'))",
    ),
    "open_kernel": (
        spin("range(x.shape[0])", "x.shape[0]", "relay.Any()"),
        "run(np.ones(2_000_000, 'float32'))",
    ),
    # Ten seconds of one core.
    "matmul": (
        """
    x, w = (relay.var(name, shape=(8_000, 8_000)) for name in "xw")
    run = relay.build(relay.Function([x, w], relay.nn.dense(x, w)))
    zeros = np.zeros((8_000, 8_000), "float32")
    """,
        "run(zeros, zeros)",
    ),
    "evaluator": (
        LOOP + "    run = relay.create_executor('debug', mod).evaluate()\n",
        "run(10**12, np.ones(4, 'float32'))",
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_an_interrupt_ends_the_work(name, tmp_path):
    program, work = WORK[name]
    code = (
        # What runs in the background of a shell begins with the signal ignored.
        "import signal, numpy as np, relay\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        + textwrap.dedent(program)
        + textwrap.dedent(
            f"""
            print("begins", flush=True)
            try:
                {work}
                print("ended by itself", flush=True)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            x = relay.var("x", shape=(3,))
            after = relay.build(relay.Function([x], x + 1.0), cache=False)
            print(after(np.ones(3, "float32")).tolist())
            """
        )
    )
    # A file: a tensor function is read from its source.
    script = tmp_path / "program.py"
    script.write_text(code)
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "begins\n", child.stderr.read()
        time.sleep(0.4)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert child.stdout.readline() == "interrupted\n", child.stderr.read()
        # A third of a second on an idle machine.
        assert time.monotonic() - began < 3
        out, err = child.communicate(timeout=60)
        assert (out, err, child.returncode) == ("[2.0, 2.0, 2.0]\n", "", 0)


@functools.cache
def long_kernel():
    @relay.prim_func
    def spin(x: relay.Tensor[(4,), "float32"], out: relay.Tensor[(4,), "float32"]):
        for i in relay.parallel(4):
            t = 0.0
            for _ in range(1_000_000_000_000):
                t = t * 0.5 + x[i]
            out[i] = t

    x = relay.var("x", shape=(4,))
    return relay.build(relay.Function([x], spin(x)))


def test_a_limit_ends_a_kernel():
    run = long_kernel()
    for _ in range(2):
        began = time.monotonic()
        with relay.limits(time=0.2), pytest.raises(relay.RunError, match="E0615"):
            run(np.ones(4, "float32"))
        assert 0.2 <= time.monotonic() - began < 2
    assert relay.build(network()) is not None


def test_a_handler_that_returns_lets_a_kernel_go_on():
    asked = []
    before = signal.signal(signal.SIGALRM, lambda *_: asked.append(time.monotonic()))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        run = long_kernel()
        with relay.limits(time=1), pytest.raises(relay.RunError, match="E0615"):
            run(np.ones(4, "float32"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(asked) == 1, "the handler runs while the kernel does"


# ---- Progress ------------------------------------------------------------------------------------


def network():
    y = relay.var("x", shape=(4, 8))
    for size in (16, 24, 32):
        y = relay.tanh(relay.nn.dense(y, relay.const(np.ones((size, y.shape[1]), "float32"))))
    return relay.Function(relay.analysis.free_vars(y), y)


def test_a_build_tells_how_far_it_is():
    told = []
    relay.build(network(), cache=False, progress=lambda *how_far: told.append(how_far))
    phases = list(dict.fromkeys(phase for phase, _, _ in told))
    assert phases == ["optimize", "plan", "lower", "generate", "link"]
    for wanted in ("lower", "generate"):
        made = [(done, total) for phase, done, total in told if phase == wanted]
        assert made == [(done, made[-1][1]) for done in range(made[-1][1] + 1)] and len(made) > 2
    assert len([phase for phase, _, _ in told if phase == "optimize"]) > 20, "each pass is told"


@pytest.mark.parametrize("phase", ["optimize", "lower", "generate", "link"])
def test_what_it_raises_ends_the_build(phase):
    def stop(now, done, total):
        if now == phase and done >= total:
            raise LookupError(f"enough at {now}")

    with pytest.raises(
        relay.UserError, match=rf"E0314.*progress at {phase}: LookupError"
    ) as caught:
        relay.build(network(), cache=False, progress=stop)
    assert "in stop" in str(caught.value) and isinstance(caught.value.__cause__, LookupError)
    assert relay.build(network()) is not None


def test_an_interrupt_in_it_stays_one():
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relay.build(network(), cache=False, progress=stop)
    with pytest.raises(TypeError, match="progress is a function"):
        relay.build(network(), progress=3)
