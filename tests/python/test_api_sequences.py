"""The Python package under random calls: nothing but a user's mistakes is ever reported."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("api_sequences.py")


def run(first: int, count: int) -> None:
    done = subprocess.run(
        [sys.executable, DRIVER, str(first), str(count)], capture_output=True, text=True
    )
    last = re.findall(r"sequence \d+", done.stdout)[-1:]
    failed = done.stdout[done.stdout.find("FAILED") :] if "FAILED" in done.stdout else last
    assert done.returncode == 0, f"{failed} {done.stderr[-2000:]}"
    assert last == [f"sequence {first + count - 1}"]


def test_a_sample_of_sequences():
    run(0, 200)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_sequences(part):
    run(1000 * part, 1000)


ENDLESS = """
import sys, relay
mod = relay.parse('#[version = "0.0.5"]\\n'
    'def @f(%x: int32) -> int32 { if (%x < 0) { 0 } else { @f(bitwise_and(%x + 1, 255)) } }\\n'
    'def @main(%x: int32) -> int32 { @f(%x) }')
run = relay.build(mod) if sys.argv[1] == "vm" else relay.create_executor("debug", mod).evaluate()
print("running", flush=True)
try:
    run(1)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("kind", ["vm", "debug"])
def test_ctrl_c_ends_a_run(kind):
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, kind], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "running\n"
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGINT)
            assert process.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            process.kill()
