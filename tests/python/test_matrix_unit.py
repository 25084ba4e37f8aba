"""Artifacts whose kernels use AMX are refused by number where processor or system lacks it."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

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


def compiled(folder: Path, dtype) -> Path:
    x = relay.var("x", shape=(32, 64), dtype=np.dtype(dtype).name)
    product = relay.nn.dense(x, relay.const(np.ones((32, 64), dtype)))
    module = relay.build(relay.IRModule.from_expr(relay.Function([x], product)), target=TARGET)
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
    assert "AMX" in message or "amx-bf16" in message
    assert "--target" in message


def test_an_artifact_for_amx_that_does_not_use_it_asks_for_nothing(tmp_path):
    message = load_without_amx(compiled(tmp_path, np.float32))
    assert "amx" not in message.lower(), message


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_an_artifact_runs_or_is_refused_by_number(tmp_path, dtype):
    path = compiled(tmp_path, dtype)
    try:
        run = relay.runtime.load_module(str(path))
    except relay.UserError as e:
        assert "E0610" in str(e)
        return
    np.testing.assert_array_equal(
        np.asarray(run(np.ones((32, 64), dtype))).astype("float32"), np.full((32, 32), 64.0)
    )
