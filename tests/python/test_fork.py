"""Children of fork: what threads of the parent were doing keeps no child from building and running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Threads of the parent build, run and call functions while the main thread forks again and again. Each child
# builds, runs what the parent built, and calls a function that another thread may have been compiling.
PROGRAM = """
import multiprocessing, os, sys, threading, time
import numpy as np
import relay

TEXT = '''#[version = "0.0.5"]
def @main(%x: Tensor[(4, {n}), float32], %w: Tensor[(8, {n}), float32]) {{
  nn.softmax(nn.relu(nn.dense(%x, %w)))
}}
'''

def program(n):
    return relay.parse(TEXT.format(n=n))

def inputs(n):
    return np.ones((4, n), "float32"), np.ones((8, n), "float32")

@relay.function(num_threads=2)
def shared(x):
    return (x * 2.0).sum()

kept = relay.build(program(3), num_threads=2)
stop = False
built = 0

def build(start):
    global built
    n = start
    while not stop:
        n = start + (n - start + 2) % 40
        relay.build(program(n), cache=n % 3 != 0)
        built += 1

def run():
    while not stop:
        kept(*inputs(3))

def call():
    rank = 0
    while not stop:
        rank = (rank + 1) % 4
        shared.cache_clear()
        shared(np.ones((2,) * rank, "float32"))

def work(n):
    assert abs(float(kept(*inputs(3))[0].sum()) - 1) < 1e-4
    exe = relay.build(program(n), cache=False, num_threads=2)
    assert abs(float(exe(*inputs(n))[0].sum()) - 1) < 1e-4
    assert float(shared(np.ones((2, 3), "float32"))) == 12.0
    assert float(shared(np.ones(5, "float32"))) == 10.0

threads = [threading.Thread(target=build, args=(5,)), threading.Thread(target=build, args=(6,)),
           threading.Thread(target=run), threading.Thread(target=call)]
for t in threads:
    t.start()

def wait_for(pid, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"

codes = []
for i in range(ROUNDS):
    time.sleep(0.003 * (i % 7))
    pid = os.fork()
    if pid == 0:
        try:
            work(3 + i)
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    codes.append(wait_for(pid, 120))
# And as most programs fork.
child = multiprocessing.get_context("fork").Process(target=work, args=(77,))
child.start()
child.join(120)
codes.append(child.exitcode)
if child.is_alive():
    child.kill()
stop = True
for t in threads:
    t.join()
# The parent goes on, too.
work(99)
assert built > 0
print(codes)
sys.exit(0 if set(codes) == {0} else 1)
"""


def check(folder: Path, rounds: int) -> None:
    # A file: functions are read from their source.
    script = folder / "program.py"
    script.write_text(PROGRAM.replace("ROUNDS", str(rounds)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])


def test_children_build_and_run_while_threads_of_the_parent_do(tmp_path):
    check(tmp_path, 6)


@pytest.mark.slow
def test_many_children_build_and_run(tmp_path):
    check(tmp_path, 150)
