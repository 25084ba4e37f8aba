"""benchmarks/gpu.py: one machine compiles, another checks without the compiler; here on an OpenCL device."""

import subprocess
import sys
from pathlib import Path

import device_rows
import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)


def test_a_folder_is_checked_where_it_is_carried(tmp_path):
    if why := device_rows.no_device():
        pytest.skip(why)
    arguments = ("--target", "opencl", "--parts", "rows", "--only", "row-nn.softmax", "--jobs", "1")
    prepared = run(BENCHMARKS / "gpu.py", "--prepare", tmp_path, *arguments)
    assert "4 programs, 0 refused" in prepared.stdout, prepared.stderr
    check = [tmp_path / "gpu_measure.py", tmp_path, "--check", "--workers", "1"]
    right = run(*check)
    assert right.returncode == 0 and "4 of 4 are right" in right.stdout, right.stdout + right.stderr
    data = tmp_path / "nn.softmax-float16.npz"
    with np.load(data) as arrays:
        np.savez(data, **{k: v * (1 + 0.1 * (k == "out0")) for k, v in arrays.items()})
    wrong = run(*check, "--only", "float16")
    assert wrong.returncode == 1 and "nn.softmax-float16: output 0: error 9.0e-02" in wrong.stdout
