"""benchmarks/gpu.py: one machine compiles, another checks without the compiler; here on an OpenCL device."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import device_rows
import gpu
import gpu_measure
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


def test_what_ends_the_compiler_is_refused(tmp_path, monkeypatch):
    (tmp_path / "runtime.so").touch()
    monkeypatch.setattr(gpu, "runtime_library", lambda: tmp_path / "runtime.so")
    monkeypatch.setattr(gpu, "attempt_all", lambda folder, args, tasks, jobs, note: tasks)
    args = argparse.Namespace(parts="gemm", dtypes="float32", only="", jobs=2)
    gpu.prepare(tmp_path / "out", args)
    refused = json.loads((tmp_path / "out" / "refused.json").read_text())
    assert refused == dict.fromkeys(
        ("gemm-1024-float32", "gemm-4096-float32"), "the compiler ends its process"
    )
    assert json.loads((tmp_path / "out" / "cases.json").read_text()) == []


def test_processes_that_say_much_and_end_are_reported(tmp_path, monkeypatch):
    """A case fails with the last line of its process, however much that writes."""
    script = tmp_path / "dies.py"
    script.write_text(
        "import sys\n"
        "if '--work' in sys.argv: print('{\"begins\": \"a\"}', flush=True)\n"
        "else: print('no row')\n"
        "sys.exit('much\\n' * 100000 + 'the last word')\n"
    )
    monkeypatch.setattr(gpu_measure, "__file__", str(script))
    monkeypatch.setattr(gpu_measure, "PATIENCE_S", 20)
    results: dict[str, str] = {}
    gpu_measure.Worker(tmp_path, ["a"], results).run()
    assert results == {"a": "the process ends with 1: the last word"}
    case = {"part": "measure", "name": "m", "batch": 1, "dtype": "float32", "flops": 0}
    (tmp_path / "cases.json").write_text(json.dumps([case]))
    assert gpu_measure.main([str(tmp_path), "--measure"]) == 0
    (row,) = json.loads((tmp_path / "gpu_measure.json").read_text())
    said = row["relay_failed"]
    assert said.startswith("the process ends with 1") and said.endswith("the last word\n"), said
