"""Artifacts whose kernels use AMX are refused by number where processor or system lacks it."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hosts import HOSTS

import relay

TARGET = "x86-64-v4 -mattr=+avx512bf16,+amx-tile,+amx-bf16,+amx-int8"

# A stack for signals that cannot hold the state of AMX: the system refuses it to the process.
REFUSED = """
import ctypes, sys
import relay

class Stack(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

memory = ctypes.create_string_buffer(4096)
stack = Stack(ctypes.addressof(memory), 0, 4096)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0
try:
    relay.runtime.load_module(sys.argv[1])
    print("loaded")
except relay.UserError as e:
    print(e)
"""


def built(dtype) -> relay.Executable:
    x = relay.var("x", shape=(32, 64), dtype=np.dtype(dtype).name)
    product = relay.nn.dense(x, relay.const(np.ones((32, 64), dtype)))
    return relay.build(relay.IRModule.from_expr(relay.Function([x], product)), target=TARGET)


def compiled(folder: Path, dtype) -> Path:
    module = built(dtype)
    path = folder / "product.so"
    module.export_library(str(path))
    return path


def load_without_amx(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_an_artifact_that_uses_amx_says_what_it_lacks(tmp_path):
    message = load_without_amx(compiled(tmp_path, ml_dtypes.bfloat16))
    assert "E0610" in message
    assert "--target" in message
    # Either the processor has no such unit, or the system does not grant it: never the one for the other.
    if "processor lacks" in message:
        assert "amx-bf16" in message and "operating system" not in message
    else:
        assert "operating system does not grant the use of AMX" in message


def test_an_artifact_for_amx_that_does_not_use_it_asks_for_nothing(tmp_path):
    path = compiled(tmp_path, np.float32)
    message = load_without_amx(path).replace(str(path), "")
    assert "amx" not in message.lower(), message


def expect_runs_or_is_refused(load, dtype):
    """A program that was built runs, or says by number why it does not."""
    try:
        got = load()(np.ones((32, 64), dtype))
    except relay.UserError as e:
        assert "E0610" in str(e) and "--target" in str(e)
        return
    np.testing.assert_array_equal(np.asarray(got).astype("float32"), np.full((32, 32), 64.0))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_an_artifact_runs_or_is_refused_by_number(tmp_path, dtype):
    path = compiled(tmp_path, dtype)
    expect_runs_or_is_refused(lambda: relay.runtime.load_module(str(path)), dtype)
    expect_runs_or_is_refused(lambda: built(dtype), dtype)


@pytest.mark.parametrize("host", HOSTS)
def test_every_machine_builds_for_amx(tmp_path, host, monkeypatch):
    monkeypatch.setenv("RELAY_HOST", host)
    path = compiled(tmp_path, ml_dtypes.bfloat16)
    monkeypatch.delenv("RELAY_HOST")
    there = path.read_bytes()
    assert compiled(tmp_path, ml_dtypes.bfloat16).read_bytes() == there
