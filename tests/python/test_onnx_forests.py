"""Forests with many nodes, with nodes in any order, and what is too large for one."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper

import relay

DEPTH, FEATURES = 9, 7


def forest(trees: int, seed: int, leaf_bits: int = 10):
    """Returns lists of the nodes of complete trees, numbered level by level, and of their votes."""
    rng = np.random.default_rng(seed)
    inner, each = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1
    ids = np.tile(np.arange(each), trees)
    is_leaf = ids >= inner
    nodes = {
        "treeids": np.repeat(np.arange(trees), each),
        "nodeids": ids,
        "featureids": np.where(is_leaf, 0, rng.integers(0, FEATURES, ids.size)),
        "truenodeids": np.where(is_leaf, 0, 2 * ids + 1),
        "falsenodeids": np.where(is_leaf, 0, 2 * ids + 2),
        "values": np.where(is_leaf, 0, rng.normal(size=ids.size)).astype(np.float32),
        "modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ"),
    }
    # Whole numbers, so that sums are the same in any order.
    votes = {
        "treeids": nodes["treeids"][is_leaf],
        "nodeids": ids[is_leaf],
        "ids": np.zeros(is_leaf.sum(), np.int64),
        "weights": rng.integers(-(2**leaf_bits), 2**leaf_bits, is_leaf.sum()).astype(np.float32),
    }
    return nodes, votes


def model(nodes, votes, targets=1) -> bytes:
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml",
                            n_targets=targets)  # fmt: skip
    kinds = {"i": ("INTS", "ints"), "f": ("FLOATS", "floats"), "U": ("STRINGS", "strings")}
    for prefix, lists in (("nodes", nodes), ("target", votes)):
        for name, values in lists.items():
            kind, field = kinds[values.dtype.kind]
            a = node.attribute.add(name=f"{prefix}_{name}")
            a.type = getattr(type(a), kind)
            listed = values.tolist()
            getattr(a, field).extend([v.encode() for v in listed] if kind == "STRINGS" else listed)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def expected(nodes, votes, x):
    trees, inner = nodes["treeids"][-1] + 1, 2**DEPTH - 1
    features = nodes["featureids"].reshape(trees, -1)
    splits = nodes["values"].reshape(trees, -1)
    weights = votes["weights"].reshape(trees, -1)
    out = np.zeros(len(x))
    tree = np.arange(trees)
    for k, row in enumerate(x):
        at = np.zeros(trees, np.int64)
        for _ in range(DEPTH):
            at = 2 * at + 1 + (row[features[tree, at]] > splits[tree, at])
        out[k] = weights[tree, at - inner].sum(dtype=np.float64)
    return out[:, None]


def built(bits: bytes):
    mod, params = relay.frontend.from_onnx(bits)
    return relay.build(mod, params=params, num_threads=1, opt_level=1)


def test_more_than_a_million_nodes():
    nodes, votes = forest(1000, 1)
    assert len(nodes["nodeids"]) > 1_000_000
    x = np.random.default_rng(2).normal(size=(33, FEATURES)).astype(np.float32)
    program = built(model(nodes, votes))
    np.testing.assert_array_equal(program(x), expected(nodes, votes, x))
    np.testing.assert_array_equal(program(x[:1]), expected(nodes, votes, x[:1]))


@pytest.mark.parametrize("stride", [1, 3])
def test_nodes_in_any_order(stride):
    """Trees side by side, ids with gaps, backwards: the first node of each tree is its root."""
    nodes, votes = forest(5, 3)
    x = np.random.default_rng(4).normal(size=(9, FEATURES)).astype(np.float32)
    want = expected(nodes, votes, x)
    rng = np.random.default_rng(5)
    order = rng.permutation(len(nodes["nodeids"]))
    order = np.concatenate(
        [order[nodes["nodeids"][order] == 0], order[nodes["nodeids"][order] > 0]]
    )
    mixed = {name: values[order] for name, values in nodes.items()}
    for name in ("nodeids", "truenodeids", "falsenodeids"):
        mixed[name] = -stride * mixed[name]
    some = rng.permutation(len(votes["nodeids"]))
    counted = {name: values[some] for name, values in votes.items()}
    counted["nodeids"] = -stride * counted["nodeids"]
    np.testing.assert_array_equal(built(model(mixed, counted))(x), want)


def test_a_node_that_is_there_twice_is_refused():
    nodes, votes = forest(2, 6)
    nodes["nodeids"][-1] = nodes["nodeids"][-2]
    with pytest.raises(relay.UserError, match=r"E0504.*a node is there twice") as error:
        relay.frontend.from_onnx(model(nodes, votes))
    assert f"node {nodes['nodeids'][-1]} of tree 1" in str(error.value)


def test_votes_for_too_many_targets_are_refused():
    """Each leaf has room for as many votes as the one with the most, which are 256 MiB together."""
    nodes, votes = forest(1, 7)
    targets = 2**18
    for name in ("treeids", "nodeids"):
        votes[name] = np.append(votes[name], np.full(targets, votes[name][0]))
    votes["ids"] = np.append(votes["ids"], np.arange(targets))
    votes["weights"] = np.append(votes["weights"], np.ones(targets, np.float32))
    with pytest.raises(relay.UserError, match="E0506"):
        relay.frontend.from_onnx(model(nodes, votes, targets))


LONG = """
import relay
# A node whose attribute nodes_nodeids is a packed list of 2^25 + 1 zeros.
def field(number, content): return varint(number << 3 | 2) + varint(len(content)) + content
def varint(v):
    out = b""
    while v >= 128: out += bytes([v & 127 | 128]); v >>= 7
    return out + bytes([v])
ids = field(1, b"nodes_nodeids") + varint(20 << 3) + varint(7) + field(8, bytes(2**25 + 1))
node = field(1, b"x") + field(2, b"y") + field(4, b"TreeEnsembleRegressor") + field(7, b"ai.onnx.ml")
sizes = field(1, field(2, b"n")) + field(1, varint(1 << 3) + varint(7))
kind = field(1, varint(1 << 3) + varint(1) + field(2, sizes))
graph = field(1, node + field(5, ids)) + field(2, b"g") + field(11, field(1, b"x") + field(2, kind))
graph += field(12, field(1, b"y"))
sets = field(8, varint(2 << 3) + varint(21)) + field(8, field(1, b"ai.onnx.ml") + varint(2 << 3) + varint(3))
model = varint(1 << 3) + varint(10) + field(7, graph) + sets
try:
    relay.frontend.from_onnx(model)
except relay.UserError as error:
    print(error)
"""


def test_lists_that_are_too_long_are_refused():
    """More nodes than 2^25."""
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)
    assert "E0506" in done.stdout
    assert "attribute 'nodes_nodeids' has too many elements" in done.stdout
