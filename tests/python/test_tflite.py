"""TFLite files as a whole: recognition, names, open sizes, weights, custom operators, errors."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY
from tflite_writer import TfliteModel, operators

import relay

HERE = Path(__file__).parent


def small_model(**fields) -> tuple[TfliteModel, bytes]:
    """relu(x + w) of an open first axis."""
    model = TfliteModel()
    model.fields.update(fields)
    g = model.graph()
    x, w = g.tensor("x", (-1, 3)), g.tensor("w", None, "float32", data=np.float32([1, -2, 3]))
    y = g.tensor("y", (-1, 3))
    g.op("ADD", [x, w], [y], add={"activation": "relu"})
    g.inputs, g.outputs = [x], [y]
    return model, model.bytes()


def refused(data: bytes, code: str, *words: str, **options) -> str:
    with pytest.raises(relay.UserError) as caught:
        relay.frontend.from_tflite(data, **options)
    text = str(caught.value)
    assert f"[{code}]" in text or code in text, text
    for word in words:
        assert word in text, text
    return text


def test_open_sizes_and_names():
    mod, params = relay.frontend.from_tflite(small_model()[1])
    assert params == {}
    assert "x_0" in str(mod["main"].checked_type if hasattr(mod["main"], "checked_type") else mod)
    exe = relay.build(mod, opt_level=0)
    for n in (1, 4):
        x = np.arange(3 * n, dtype="float32").reshape(n, 3) - 4
        np.testing.assert_array_equal(exe(x=x), np.maximum(x + np.float32([1, -2, 3]), 0))
    fixed, _ = relay.frontend.from_tflite(small_model()[1], {"x": (2, 3)})
    assert "Tensor[(2, 3), float32]" in str(fixed)


def test_weights_as_parameters():
    mod, params = relay.frontend.from_tflite(small_model()[1], freeze_params=False)
    assert list(params) == ["w"]
    x = np.zeros((1, 3), "float32")
    np.testing.assert_array_equal(relay.build(mod, params=params, opt_level=0)(x=x), [[1, 0, 3]])


def test_signatures():
    model, _ = small_model(
        signatures=[
            {
                "key": "serve",
                "inputs": [{"name": "image", "tensor": 0}],
                "outputs": [{"name": "classes", "tensor": 2}],
                "subgraph": 0,
            }
        ]
    )
    data = model.bytes()
    mod, _ = relay.frontend.from_tflite(data, signature="serve")
    assert "image" in str(mod)
    refused(data, "E0515", "serve", signature="train")


def run_relay(*args: object) -> subprocess.CompletedProcess:
    return subprocess.run([RELAY, *map(str, args)], capture_output=True, text=True, check=False)


def test_command_line_recognises_the_content(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(small_model()[1])
    out = run_relay("show", path)
    assert out.returncode == 0 and "add" in out.stdout, out.stderr
    out = run_relay("run", path, "--input", "x=1x3")
    assert out.returncode == 0, out.stderr


def test_custom_operators():
    model = TfliteModel()
    g = model.graph()
    x, y = g.tensor("x", (2, 3)), g.tensor("y", (2, 3))
    g.op("Scale", [x], [y], custom=b"\x03")
    g.inputs, g.outputs = [x], [y]
    data = model.bytes()
    refused(data, "E0501", "Scale", "relay.frontend.tflite.register")

    def scale(inputs, options, outputs):
        assert outputs == 1
        return relay.multiply(inputs[0], relay.const(float(options[0])))

    relay.frontend.tflite.register("Scale", scale)
    try:
        mod, _ = relay.frontend.from_tflite(data)
        x = np.ones((2, 3), "float32")
        np.testing.assert_array_equal(relay.build(mod, opt_level=0)(x=x), 3 * x)
        relay.frontend.tflite.register("Scale", lambda *_: 1 / 0)
        refused(data, "E0504", "ZeroDivisionError")
    finally:
        relay.frontend.tflite.register("Scale", None)
    refused(data, "E0501")


def test_errors():
    good = small_model()[1]
    refused(b"", "E0502")
    refused(good[:4] + b"TFL9" + good[8:], "E0502")
    refused(good[: len(good) // 2], "E0502")
    refused(small_model(version=9)[0].bytes(), "E0503")
    model, _ = small_model()
    model.codes = [("ADD", 99)]
    refused(model.bytes(), "E0503", "ADD", "99")
    model, _ = small_model()
    model.graphs[0].operators[0]["inputs"] = [0, 77]
    refused(model.bytes(), "E0502", "tensor 77")
    model, _ = small_model()
    model.graphs[0].operators[0]["inputs"] = [0, 2]
    refused(model.bytes(), "E0507", "not computed")
    model, _ = small_model()
    model.buffers[1] = b"1234"
    refused(model.bytes(), "E0508", "12 bytes")


def test_all_unknown_operators_are_named_at_once():
    model = TfliteModel()
    g = model.graph()
    x, y, z = (g.tensor(n, (2, 3)) for n in "xyz")
    g.op("First", [x], [y])
    g.op("Second", [y], [z])
    g.inputs, g.outputs = [x], [z]
    refused(model.bytes(), "E0501", "First", "Second", "operator #1")


def test_refused_operators_are_listed():
    imported = {name for _, name in relay.frontend.tflite.operators()}
    listed = set(tomllib.loads((HERE / "tflite_refused.toml").read_text()))
    has_kernel = {name for name, (_, version) in operators().items() if version > 0}
    assert listed == has_kernel - imported - {"CUSTOM"}


def mutants(data: bytes, count: int, seed: int):
    """The file with a few bytes changed, cut or moved."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        bytes_ = bytearray(data)
        kind = rng.integers(4)
        for _ in range(int(rng.integers(1, 5))):
            at = int(rng.integers(len(bytes_)))
            if kind == 0:
                bytes_[at] = int(rng.integers(256))
            elif kind == 1:
                bytes_[at] ^= 1 << int(rng.integers(8))
            elif kind == 2:
                word = rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 127, 255])
                bytes_[at : at + 4] = int(word).to_bytes(4, "little", signed=True)
            else:
                del bytes_[at : at + int(rng.integers(1, 9))]
            if len(bytes_) < 8:
                break
        yield bytes(bytes_)


def check_mutants(count: int, seed: int) -> None:
    from tflite_cases import CASES

    models = [c.build()[0] for c in CASES[:: max(1, len(CASES) // 12)]]
    for i, data in enumerate(models):
        for mutant in mutants(data, count // len(models) + 1, seed + i):
            with contextlib.suppress(relay.UserError):
                relay.frontend.from_tflite(mutant)


def test_mutated_files_give_typed_errors():
    check_mutants(600, 20261127)


@pytest.mark.slow
def test_many_mutated_files_give_typed_errors():
    check_mutants(100_000, 7)


def test_a_large_file_imports_fast(tmp_path):
    model = TfliteModel()
    g = model.graph()
    x = g.tensor("x", (1, 1024))
    for i in range(25):
        w = g.tensor(f"w{i}", (1024, 1024), data=np.zeros((1024, 1024), np.float32))
        y = g.tensor(f"y{i}", (1, 1024))
        g.op("FULLY_CONNECTED", [x, w, -1], [y], fully_connected={})
        x = y
    g.inputs, g.outputs = [0], [x]
    path = tmp_path / "large.tflite"
    path.write_bytes(model.bytes())
    assert path.stat().st_size > 100e6
    relay.frontend.from_tflite(path)
    begin = time.perf_counter()
    relay.frontend.from_tflite(path)
    taken = time.perf_counter() - begin
    # 0.3 s on an idle machine; tests run beside others.
    assert taken < 3, taken
    sys.stdout.write(f"import of 100 MB: {taken:.3f} s\n")


PAGE = HERE.parents[1] / "docs/tflite.md"


def test_the_snippets_of_the_guide_run():
    text = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    assert text.count("\n") > 10
    exec(compile(text, str(PAGE), "exec"), {"__name__": "guide"})


def test_the_table_of_the_guide_is_current():
    tool = HERE.parents[1] / "tools/tflite_table.py"
    assert subprocess.run([sys.executable, tool, "--check"], check=False).returncode == 0
