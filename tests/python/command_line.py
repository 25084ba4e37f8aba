"""How the tests of the command line run `relay`, and the small programs that they give it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from hosts import TEXT_HOST
from onnx import TensorProto, helper, numpy_helper

# Beside the interpreter, where an installed Relay has it; RELAY names another one.
RELAY = os.environ.get("RELAY") or str(Path(sys.executable).with_name("relay"))

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  nn.relu(nn.dense(%x, %w))
}
"""


# What only looks at a program does not look at the machine, so that tests see the same text on every one.
LOOKS = ("show", "opt", "explain")


def relay(
    *args, cwd=None, check=True, timeout=60, prefix=(), host=None
) -> subprocess.CompletedProcess:
    """Runs the command, behind `prefix`, with its output in pipes; with `check`, it must succeed.

    host: the machine that the target `native` is (hosts.py); None: this one, and for commands that only
    look at a program TEXT_HOST.
    """
    command = [*prefix, RELAY, *map(str, args)]
    if host is None and args and args[0] in LOOKS:
        host = os.environ.get("RELAY_HOST") or TEXT_HOST
    environment = os.environ | ({"RELAY_HOST": host} if host else {})
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, env=environment
    )
    if check:
        assert done.returncode == 0, done.stderr + done.stdout
    return done


def relay_json(*args, **kwargs):
    return json.loads(relay(*args, "--json", **kwargs).stdout)


def fails(code: str, *args, cwd=None, mentions=(), errors=1) -> str:
    """The message of a command that a user's mistake must stop: exit code 1, a paragraph with the
    code for each error, nothing on standard output."""
    done = relay(*args, cwd=cwd, check=False)
    assert done.returncode == 1, (done.returncode, done.stderr, done.stdout)
    assert f"error[{code}]" in done.stderr, done.stderr
    assert "internal" not in done.stderr.lower(), done.stderr
    assert done.stdout == "", done.stdout
    for text in mentions:
        assert text in done.stderr, f"{text!r} is not in:\n{done.stderr}"
    assert len(re.findall(r"^error\[", done.stderr, re.MULTILINE)) == errors, done.stderr
    assert "\n\n" not in done.stderr.strip(), "more than a paragraph:\n" + done.stderr
    return done.stderr


def model(nodes, inputs, outputs, initializers=(), opset=17) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape):
    """An initialiser of numbers that are the same in every run."""
    numbers = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(numbers, name)


def small_model() -> onnx.ModelProto:
    """A convolution, a pooling and a dense layer."""
    nodes = [
        helper.make_node("Conv", ["data", "w"], ["c"], "conv", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("MatMul", ["f", "m"], ["scores"], "classify"),
    ]
    return model(
        nodes,
        [value("data", [1, 3, 10, 10])],
        [value("scores", [1, 5])],
        [weight("w", 8, 3, 3, 3), weight("m", 8, 5)],
    )
