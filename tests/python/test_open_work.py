"""Reports on programs whose sizes a run decides have numbers of these sizes, or formulas, never 0."""

from __future__ import annotations

import json
import math
import re

import onnx
import pytest
from command_line import relay as command
from command_line import relay_json
from onnx import TensorProto, helper

HEAD = '#[version = "0.0.5"]\n'
OPEN = (
    HEAD
    + """def @main[n: Dim, m: Dim](%x: Tensor[(n, m, 32), float32], %w: Tensor[(64, 32), float32]) {
  let %a = nn.softmax(nn.relu(nn.dense(%x, %w)));
  (sum(%a, axis=[1]), mean(exp(%a), axis=[0, 2]))
}
"""
)
FIXED = OPEN.replace("[n: Dim, m: Dim]", "").replace("(n, m, 32)", "(6, 5, 32)")
CONV = (
    HEAD
    + """def @main[b: Dim, h: Dim](%x: Tensor[(b, 3, h, 32), float32], %w: Tensor[(8, 3, 3, 3), float32]) {
  nn.max_pool2d(nn.relu(nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1])), pool_size=[2, 2])
}
"""
)
FIXED_CONV = CONV.replace("[b: Dim, h: Dim]", "").replace("(b, 3, h, 32)", "(2, 3, 24, 32)")


@pytest.fixture(params=["dense", "conv"])
def pair(request, tmp_path):
    """A program of open sizes, the same of fixed ones, and the options that say the sizes."""
    text, fixed, dims = {
        "dense": (OPEN, FIXED, {"n": 6, "m": 5}),
        "conv": (CONV, FIXED_CONV, {"b": 2, "h": 24}),
    }[request.param]
    paths = tmp_path / "open.relay", tmp_path / "fixed.relay"
    for path, program in zip(paths, (text, fixed), strict=True):
        path.write_text(program)
    artifact = tmp_path / "open.so"
    command("compile", paths[0], "-o", artifact, "-q")
    return *paths, artifact, dims


def options(dims):
    return [word for name, size in dims.items() for word in ("--dim", f"{name}={size}")]


def flops_of(report):
    return sum(k["gflops"] * k["seconds"] * k["calls"] for k in report["kernels"]) * 1e9


def bytes_of(report):
    return sum(k["bytes"] * k["calls"] for k in report["kernels"])


def test_profiles_count_the_sizes_of_the_run(pair):
    path, fixed, artifact, dims = pair
    words = ("--profile", "--repeat", "1", "--threads", "1")
    want = relay_json("bench", fixed, *words)
    assert flops_of(want) > 1000
    for model in (path, artifact):
        threads = words if model != artifact else words[:3]
        got = relay_json("bench", model, *threads, *options(dims))
        assert math.isclose(flops_of(got), flops_of(want), rel_tol=1e-6)
        # Other kernels may be fused, and so move other bytes, but not of another order.
        assert bytes_of(want) / 3 < bytes_of(got) < 3 * bytes_of(want)
    twice = {name: 2 * size for name, size in dims.items()}
    assert flops_of(relay_json("bench", artifact, *words[:3], *options(twice))) > 3 * flops_of(got)


def test_no_report_prints_a_false_zero(pair, tmp_path):
    path, _, artifact, dims = pair
    for words in (
        ("run", path, *options(dims)),
        ("run", artifact, *options(dims)),
        ("compile", path, "-o", tmp_path / "again.so"),
        ("explain", path),
        ("explain", artifact),
    ):
        text = command(*words).stdout
        assert not re.search(r"(?<![\w.])0(\.0)? (GFLOP/s|MFLOP|FLOP)|arena +0 B", text), text
    words = ("--profile", "--repeat", "1", "--trace", tmp_path / "t.json")
    text = command("bench", artifact, *words, *options(dims)).stdout
    assert "0 B" not in re.findall(r"\b\d+ B\b", text), text
    trace = json.loads((tmp_path / "t.json").read_text())
    counts = [e["args"] for e in trace["traceEvents"] if e["name"] != "run"]
    assert counts and all(a.get("bytes", 1) > 0 for a in counts)
    assert any(a.get("flops", 0) > 1000 for a in counts)


def test_a_run_says_its_rate(pair):
    path, fixed, artifact, dims = pair
    want = relay_json("run", fixed)
    for model in (path, artifact):
        got = relay_json("run", model, *options(dims))
        flops = [r["gflops"] * r["seconds"] for r in (want, got)]
        assert flops[0] > 0 and math.isclose(*flops, rel_tol=1e-6)


def test_explain_and_check_have_formulas(pair, tmp_path):
    _, fixed, artifact, dims = pair
    kernels = relay_json("explain", artifact)["kernels"]
    # A kernel has names of its own for what is computed of the program's.
    sizes = {"d0": (dims.get("h", 1) - 1) // 2 + 1, **dims}
    total = sum(
        k["calls"] * eval(k["flops_by_sizes"]["text"], {}, dict(sizes))
        for k in kernels
        if "flops_by_sizes" in k
    )
    want = sum(k["calls"] * k["flops"] for k in relay_json("explain", fixed)["kernels"])
    assert math.isclose(total, want, rel_tol=1e-6)
    assert " FLOP, " in command("explain", artifact).stdout


def test_check_has_the_operations_of_open_sizes_as_a_formula(tmp_path):
    value = helper.make_tensor_value_info
    reports = []
    for batch in ("batch", 7):
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Exp", ["y"], ["z"])],
            "g",
            [value("x", TensorProto.FLOAT, [batch, 16])],
            [value("z", TensorProto.FLOAT, None)],
            [helper.make_tensor("w", TensorProto.FLOAT, [16, 8], [0.5] * 128)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = tmp_path / f"{batch}.onnx"
        onnx.save(model, path)
        reports.append((path, relay_json("check", path)["program"]))
    (path, found), (_, fixed) = reports
    assert found["flops"] == 0 and found["uncounted_kernels"] == 0
    assert eval(found["flops_by_sizes"], {}, {"batch": 7}) == fixed["flops"] > 0
    text = command("check", path).stdout
    assert "*batch FLOP" in text and "0.0 MFLOP" not in text
