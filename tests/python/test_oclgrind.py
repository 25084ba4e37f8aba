"""Kernels of OpenCL under Oclgrind (Debian: oclgrind), which reports wrong accesses, races and wrong calls.

Oclgrind interprets kernels, and is slow. Its check for uninitialised values is left out: it reports inputs
of some kernels.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import device_rows
import pytest
from command_line import relay as relay_command

HERE = Path(__file__).parent
AGREED = device_rows.read(device_rows.FILES["pocl"])

OPERATOR = """
import json, sys
import device_rows
print(json.dumps(device_rows.outcomes(sys.argv[1], own=True)))
"""
GROUPS = """
import sys
import numpy as np
import oracles, relay
mod = relay.parse(sys.argv[1])
shape = [int(d) for d in sys.argv[2].split(",")]
x = np.random.default_rng(0).standard_normal(shape).astype("float32")
want = relay.create_executor("debug", mod).evaluate()(x)
got = relay.build(mod, target="native; opencl -device=gpu", num_threads=1)(x)
oracles.assert_agree(oracles.as_arrays(got), oracles.as_arrays(want), sys.argv[1], 1e-4)
"""
# What groups of items with shared memory and barriers compute: larger than the operators' examples.
IN_GROUPS = {
    "nn.relu(nn.dense(%x, %x))": (256, 16),
    "max(%x, axis=[1])": (17, 600),
    "add(sum(%x), %x)": (50, 100),
}


def library() -> Path | None:
    command = shutil.which("oclgrind")
    if command is None:
        return None
    path = Path(command).resolve().parents[1] / "lib" / "oclgrind" / "liboclgrind-rt.so"
    return path if path.exists() else None


pytestmark = pytest.mark.skipif(library() is None, reason="oclgrind is not installed")


def run(code: str, *words: str, log: Path) -> str:
    """The output of a process whose OpenCL device is Oclgrind, which must find nothing."""
    environment = {
        "RELAY_OPENCL": str(library()),
        "OCLGRIND_LOG": str(log),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_CHECK_API": "1",
        # Its interpreter lacks functions that its optimiser calls, and miscomputes some vectors of it.
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    found = log.read_text() if log.exists() else ""
    assert done.returncode == 0, done.stderr + found
    assert found == "", found
    return done.stdout


@pytest.mark.drawn(40)
@pytest.mark.parametrize("name", AGREED)
def test_operators(name, tmp_path):
    got = json.loads(run(OPERATOR, name, log=tmp_path / "log"))
    assert got == {dtype: AGREED[name][dtype] for dtype in got}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("body", IN_GROUPS)
def test_groups(body, tmp_path):
    rows, columns = IN_GROUPS[body]
    text = (
        f'#[version = "0.0.5"]\ndef @main(%x: Tensor[({rows}, {columns}), float32]) {{ {body} }}\n'
    )
    run(GROUPS, text, f"{rows},{columns}", log=tmp_path / "log")


def test_the_device_is_that_of_oclgrind():
    done = relay_command("doctor", prefix=("env", f"RELAY_OPENCL={library()}"), check=False)
    assert "Oclgrind" in done.stdout, done.stdout + done.stderr
