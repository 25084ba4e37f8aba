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
    open: bool = False  # only a run knows the batch and the lengths

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
                sizes = [0, 0] if self.open else [self.batch, length]
                shape = constant(np.array([*sizes, self.heads, self.depth]))
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
            sizes = [0, 0, self.out_shape()[2]] if self.open else self.out_shape()
            out = node("Reshape", [out, constant(np.array(sizes))])
        nodes[-1].output[0] = "y"

        def named(name: str, shape: list[int]) -> list[int | str]:
            if not self.open:
                return shape
            length = "queries" if name in "qy" else "keys"
            names = ["batch", length, ""] if self.last else ["batch", "", length, ""]
            if name == "m":
                names = ["batch", "", "", "keys"]
            return [n or size for n, size in zip(names, shape, strict=True)]

        inputs = [value(name, named(name, shape)) for name, shape in self.shapes().items()]
        return model(nodes, inputs, [value("y", named("y", self.out_shape()))], constants)

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
    assert "(rule attention)" in text and "nn_softmax" not in text, text
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


@pytest.mark.parametrize("last", [True, False])
def test_open_lengths_agree_with_onnxruntime(last):
    """One program for all sizes: blocks of every kind, a single query, and nothing at all."""
    case = Case(4, 4, heads=3, depth=8, mask="added", last=last, open=True)
    graph = case.build()
    mod, params = rl.frontend.from_onnx(graph)
    exe = rl.build(mod, params=params)
    for batch, queries, keys in [(1, 1, 1), (2, 69, 35), (1, 1, 100), (3, 20, 7), (1, 130, 2)]:
        sized = dataclasses.replace(case, batch=batch, queries=queries, keys=keys)
        inputs = sized.arguments()
        want = oracles.run_onnxruntime(graph, inputs)
        oracles.assert_agree(oracles.as_arrays(exe(**inputs)), want, str(sized), 1e-5)
    empty = dataclasses.replace(case, batch=0, queries=5, keys=3)
    assert exe(**empty.arguments()).shape == tuple(empty.out_shape())


def test_heads_of_queries_that_share_keys():
    """As models with grouped queries repeat them: one kernel reads each head of keys where it is."""
    text = """#[version = "0.0.5"]
def @main[b: Dim, n: Dim, m: Dim](%q: Tensor[(b, 6, n, 8), float32],
                                  %k: Tensor[(b, 3, m, 8), float32],
                                  %v: Tensor[(b, 3, m, 8), float32]) {
  %0 = broadcast_to(expand_dims(%k, axis=2), shape=[b, 3, 2, m, 8]);
  %1 = broadcast_to(expand_dims(%v, axis=2), shape=[b, 3, 2, m, 8]);
  %2 = nn.batch_matmul(reshape(%q, newshape=[6 * b, n, 8]), reshape(%0, newshape=[6 * b, m, 8]),
                       transpose_b=True);
  %3 = nn.softmax(reshape(%2, newshape=[b, 6, n, m]), axis=3);
  %4 = nn.batch_matmul(reshape(%3, newshape=[6 * b, n, m]), reshape(%1, newshape=[6 * b, m, 8]));
  reshape(%4, newshape=[b, 6, n, 8])
}
"""
    exe = rl.build(rl.parse(text))
    rng = np.random.default_rng(5)
    for b, n, m in [(1, 1, 9), (2, 21, 70)]:
        q = rng.standard_normal((b, 6, n, 8)).astype(np.float32)
        k, v = rng.standard_normal((2, b, 3, m, 8)).astype(np.float32)
        all_k, all_v = (np.repeat(x.astype(np.float64), 2, axis=1) for x in (k, v))
        w = np.exp(q @ all_k.swapaxes(2, 3))
        want = w / w.sum(-1, keepdims=True) @ all_v
        np.testing.assert_allclose(exe(q, k, v), want, rtol=1e-5, atol=1e-5)


def decoder(queries: int | str, heads: int, depth: int) -> onnx.ModelProto:
    """Keys and values of tokens before and of new ones, which are kept; a condition says what may be seen."""
    nodes = [
        helper.make_node("Concat", ["past_k", "k"], ["all_k"], axis=2),
        helper.make_node("Concat", ["past_v", "v"], ["all_v"], axis=2),
        helper.make_node("Transpose", ["all_k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scaled"]),
        helper.make_node("Where", ["may", "scaled", "lowest"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "all_v"], ["y"]),
    ]
    new, past = ["b", heads, queries, depth], ["b", heads, "past", depth]
    constants = [
        numpy_helper.from_array(np.float32(depth**-0.5), "scale"),
        numpy_helper.from_array(np.finfo(np.float32).min, "lowest"),
    ]
    inputs = [value(n, new) for n in "qkv"] + [value("past_k", past), value("past_v", past)]
    inputs.append(value("may", [1, 1, queries, "all"], onnx.TensorProto.BOOL))
    outputs = [value(n, [None] * 4) for n in ("y", "all_k", "all_v")]
    return model(nodes, inputs, outputs, constants)


@pytest.mark.parametrize("queries", [1, "new"])
def test_a_decoder_with_keys_of_before(queries, tmp_path):
    heads, depth = 3, 16
    graph = decoder(queries, heads, depth)
    onnx.save(graph, tmp_path / "decoder.onnx")
    assert "(rule attention)" in relay("explain", tmp_path / "decoder.onnx").stdout
    mod, params = rl.frontend.from_onnx(graph)
    exe = rl.build(mod, params=params)
    rng = np.random.default_rng(6)
    for new, past in [(1, 0), (1, 40), (1, 130)] + [(50, 0), (5, 77)] * (queries != 1):
        arrays = {n: rng.standard_normal((2, heads, new, depth)) for n in "qkv"}
        arrays |= {n: rng.standard_normal((2, heads, past, depth)) for n in ("past_k", "past_v")}
        inputs = {n: a.astype(np.float32) for n, a in arrays.items()}
        inputs["may"] = np.tri(new, past + new, past, dtype=bool)[None, None]
        want = oracles.run_onnxruntime(graph, inputs)
        what = f"{new} after {past}"
        oracles.assert_agree(oracles.as_arrays(exe(**inputs)), want, what, 1e-5)
