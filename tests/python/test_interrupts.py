"""Ctrl-C ends compiling and running, and a build tells how far it is."""

from __future__ import annotations

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
    "evaluator": (
        LOOP + "    run = relay.create_executor('debug', mod).evaluate()\n",
        "run(10**12, np.ones(4, 'float32'))",
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_an_interrupt_ends_the_work(name):
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
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "begins\n", child.stderr.read()
        time.sleep(0.4)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert child.stdout.readline() == "interrupted\n", child.stderr.read()
        # A third of a second on a machine of one's own.
        assert time.monotonic() - began < 3
        out, err = child.communicate(timeout=60)
        assert (out, err, child.returncode) == ("[2.0, 2.0, 2.0]\n", "", 0)


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
