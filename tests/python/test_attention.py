"""Attention as PyTorch exports it, compiled, against ONNX Runtime and the evaluator."""

import dataclasses

import numpy as np
import onnx
import oracles
import pytest
from command_line import model, relay, value
from onnx import helper, numpy_helper

import relay as rl


@dataclasses.dataclass(frozen=True)
class Case:
    queries: int
    keys: int
    heads: int = 2
    depth: int = 16
    batch: int = 1
    scale: str = "product"  # or on the "operands", or "none"
    mask: str = "none"  # "added" for each key, "causal" constant, or "chosen" by a condition
    last: bool = True  # features are the last axis; else heads come apart as they are

    def shapes(self) -> dict[str, list[int]]:
        features = self.heads * self.depth
        if self.last:
            q, k = ([self.batch, n, features] for n in (self.queries, self.keys))
        else:
            q, k = ([self.batch, self.heads, n, self.depth] for n in (self.queries, self.keys))
        mask = {"m": [self.batch, 1, 1, self.keys]} if self.mask == "added" else {}
        return {"q": q, "k": k, "v": k} | mask

    def out_shape(self) -> list[int]:
        return self.shapes()["q"]

    def build(self) -> onnx.ModelProto:
        nodes, constants = [], []

        def node(op: str, inputs: list[str], **attrs) -> str:
            name = f"n{len(nodes)}"
            nodes.append(helper.make_node(op, inputs, [name], **attrs))
            return name

        def constant(array: np.ndarray) -> str:
            name = f"c{len(constants)}"
            constants.append(numpy_helper.from_array(array, name))
            return name

        def heads(name: str, length: int, perm: list[int]) -> str:
            if self.last:
                shape = constant(np.array([self.batch, length, self.heads, self.depth]))
                return node("Transpose", [node("Reshape", [name, shape])], perm=perm)
            return node("Transpose", [name], perm=[0, 1, 3, 2]) if perm[2] == 3 else name

        q = heads("q", self.queries, [0, 2, 1, 3])
        k = heads("k", self.keys, [0, 2, 3, 1])
        v = heads("v", self.keys, [0, 2, 1, 3])
        if self.scale == "operands":
            root = constant(np.float32(self.depth**-0.25))
            q, k = node("Mul", [q, root]), node("Mul", [k, root])
        s = node("MatMul", [q, k])
        if self.scale == "product":
            s = node("Div", [s, constant(np.float32(np.sqrt(self.depth)))])
        allowed = np.tri(self.queries, self.keys, dtype=bool)
        if self.mask == "added":
            s = node("Add", [s, "m"])
        elif self.mask == "causal":
            s = node("Add", [s, constant(np.where(allowed, 0, -np.inf).astype(np.float32))])
        elif self.mask == "chosen":
            lowest = constant(np.finfo(np.float32).min)
            s = node("Where", [constant(allowed), s, lowest])
        out = node("MatMul", [node("Softmax", [s], axis=-1), v])
        if self.last:
            out = node("Transpose", [out], perm=[0, 2, 1, 3])
            out = node("Reshape", [out, constant(np.array(self.out_shape()))])
        nodes[-1].output[0] = "y"
        inputs = [value(name, shape) for name, shape in self.shapes().items()]
        return model(nodes, inputs, [value("y", self.out_shape())], constants)

    def arguments(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(3)
        out = {n: rng.standard_normal(s).astype(np.float32) for n, s in self.shapes().items()}
        if self.mask == "added":
            out["m"] = np.where(out["m"] > 1, np.float32(-10000), np.float32(0))
        return out


CASES = [
    Case(128, 128, heads=4, depth=64, mask="added"),
    Case(197, 197, heads=3, depth=32, scale="operands"),
    Case(64, 64, mask="causal"),
    Case(50, 50, mask="chosen", batch=2),
    Case(33, 70, last=False),
    Case(70, 33, heads=1, last=False, scale="none", mask="causal"),
    Case(1100, 1100),
    Case(1, 500),
    Case(17, 19, heads=5, depth=7, batch=3, mask="added"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_onnxruntime(case):
    threads = [{"num_threads": 1}, {"num_threads": 2}]
    oracles.assert_builds_agree(case.build(), case.arguments(), threads, str(case), 1e-5)


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3"])
def test_older_processors_code_agrees(target):
    case = Case(197, 101, heads=3, depth=32, mask="added")
    build = [{"target": target}]
    oracles.assert_builds_agree(case.build(), case.arguments(), build, target, 1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_is_one_and_can_be_left_out(case, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(case.build(), path)
    text = relay("explain", path).stdout
    # A single query leaves the vectors of scores empty.
    assert ("(rule attention)" in text) == (case.queries > 1), text
    assert ("nn_softmax" in text) == (case.queries == 1), text
    without = relay("explain", path, "--disable-pass", "FuseAttention").stdout
    assert "(rule attention)" not in without and "nn.batch_matmul" in without


def test_sizes_that_only_a_run_knows():
    text = """#[version = "0.0.5"]
def @main[n: Dim](%q: Tensor[(1, 2, n, 8), float32], %k: Tensor[(1, 2, n, 8), float32]) {
  nn.attention(%q, %k, %k, 0f, scale=0.5f)
}
"""
    exe = rl.build(rl.parse(text))
    rng = np.random.default_rng(4)
    for n in (1, 5, 40):
        q, k = rng.standard_normal((2, 1, 2, n, 8)).astype(np.float32)
        s = 0.5 * q.astype(np.float64) @ k.swapaxes(2, 3)
        w = np.exp(s - s.max(-1, keepdims=True))
        want = w / w.sum(-1, keepdims=True) @ k
        np.testing.assert_allclose(exe(q, k), want, rtol=1e-5, atol=1e-6)
