"""The operators of ai.onnx.ml on numbers, and trees, against ONNX Runtime."""

import numpy as np
import onnx.reference
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relay

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
X = np.random.default_rng(0).normal(0, 2, (37, 5)).astype("float32")


def model(node, out, n_in=1, kind=FLOAT, version=3, width=5):
    inputs = [helper.make_tensor_value_info(f"x{i}", kind, ["n", width]) for i in range(n_in)]
    outputs = [helper.make_tensor_value_info(name, k, None) for name, k in out]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def ml(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attrs)


def run(proto, *inputs, level=3, threads=1):
    mod, params = relay.frontend.from_onnx(proto.SerializeToString())
    out = relay.build(mod, params=params, opt_level=level, num_threads=threads)(*inputs)
    return out if isinstance(out, (list, tuple)) else [out]


def agree(proto, *inputs, rtol=2e-5, atol=1e-6):
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})
    for level in (0, 3):
        got = run(proto, *inputs, level=level)
        for g, w in zip(got, want, strict=True):
            if w.dtype.kind == "f":
                assert g.shape == w.shape
                np.testing.assert_allclose(g, w, rtol, atol)
            else:
                np.testing.assert_array_equal(g, w)


def test_scaler():
    offset, scale = [0.5, 1, 2, -1, 0], [1, 2, 0.5, -1, 3]
    agree(model(ml("Scaler", ["x0"], ["y"], offset=offset, scale=scale), [("y", FLOAT)]), X)


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normalizer(norm):
    agree(model(ml("Normalizer", ["x0"], ["y"], norm=norm), [("y", FLOAT)]), X)


@pytest.mark.parametrize("replaced", [float("nan"), 0.0])
@pytest.mark.parametrize("values", [[7.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_imputer(values, replaced):
    x = X.copy()
    x[::3, 1], x[1::4, 3] = replaced, replaced
    node = ml("Imputer", ["x0"], ["y"], imputed_value_floats=values, replaced_value_float=replaced)
    agree(model(node, [("y", FLOAT)]), x)


def test_one_hot_encoder():
    x = np.random.default_rng(1).integers(0, 6, (7, 5))
    node = ml("OneHotEncoder", ["x0"], ["y"], cats_int64s=[3, 1, 4], zeros=1)
    agree(model(node, [("y", FLOAT)], kind=INT64), x)


def test_feature_vectorizer():
    node = ml("FeatureVectorizer", ["x0", "x1"], ["y"], inputdimensions=[5, 5])
    agree(model(node, [("y", FLOAT)], n_in=2), X, X[:, ::-1].copy())


@pytest.mark.parametrize(
    "shape, wanted", [([5], 5), ([5], 3), ([5], 7), ([4, 3, 2], 6), ([4, 3, 2], 4)]
)
def test_feature_vectorizer_of_other_ranks(shape, wanted):
    node = ml("FeatureVectorizer", ["x"], ["y"], inputdimensions=[wanted])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", FLOAT, shape)],
                              [helper.make_tensor_value_info("y", FLOAT, None)])  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    agree(proto, np.random.default_rng(16).normal(size=shape).astype("float32"))


@pytest.mark.parametrize("post", ["NONE"])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets, post):
    w = np.random.default_rng(2).normal(size=targets * 5).tolist()
    node = ml("LinearRegressor", ["x0"], ["y"], coefficients=w, intercepts=[0.5] * targets,
              targets=targets, post_transform=post)  # fmt: skip
    agree(model(node, [("y", FLOAT)]), X)


@pytest.mark.parametrize("labels", ["ints", "strings"])
@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_classifier(post, labels):
    w = np.random.default_rng(3).normal(size=15).tolist()
    names = {"classlabels_ints": [5, 7, 11]}
    kind = INT64
    if labels == "strings":
        names, kind = {"classlabels_strings": ["a", "b", "c"]}, TensorProto.STRING
    node = ml("LinearClassifier", ["x0"], ["l", "y"], coefficients=w, intercepts=[0.1, 0.2, 0.3],
              post_transform=post, multi_class=1, **names)  # fmt: skip
    agree(model(node, [("l", kind), ("y", FLOAT)]), X)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kernel):
    rng = np.random.default_rng(4)
    node = ml("SVMRegressor", ["x0"], ["y"], kernel_type=kernel, kernel_params=[0.2, 0.5, 3.0],
              coefficients=rng.normal(size=7).tolist(), support_vectors=rng.normal(size=35).tolist(),
              n_supports=7, rho=[0.25])  # fmt: skip
    agree(model(node, [("y", FLOAT)]), X, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kernel", ["LINEAR", "RBF"])
def test_svm_classifier(kernel, classes):
    rng = np.random.default_rng(12)
    vectors, pairs = 3 * classes, classes * (classes - 1) // 2
    node = ml("SVMClassifier", ["x0"], ["l", "y"], kernel_type=kernel, kernel_params=[0.1, 0.0, 3.0],
              coefficients=rng.normal(size=(classes - 1) * vectors).tolist(),
              support_vectors=rng.normal(size=5 * vectors).tolist(), rho=rng.normal(size=pairs).tolist(),
              vectors_per_class=[3] * classes, classlabels_ints=[7, 3, 5, 1][:classes])  # fmt: skip
    agree(model(node, [("l", INT64), ("y", FLOAT)]), X, rtol=1e-4, atol=1e-4)


def classifier_of_vectors(classes, post="NONE", **attrs):
    rng = np.random.default_rng(13)
    vectors, pairs = 3 * classes, classes * (classes - 1) // 2
    node = ml("SVMClassifier", ["x0"], ["l", "y"], kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0],
              coefficients=rng.normal(size=(classes - 1) * vectors).tolist(),
              support_vectors=rng.normal(size=5 * vectors).tolist(), rho=rng.normal(size=pairs).tolist(),
              vectors_per_class=[3] * classes, classlabels_ints=list(range(classes)),
              post_transform=post, **attrs)  # fmt: skip
    return model(node, [("l", INT64), ("y", FLOAT)])


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX"])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_svm_probabilities(classes, post):
    rng = np.random.default_rng(14)
    a, b = (rng.normal(size=classes * (classes - 1) // 2).tolist() for _ in "ab")
    agree(classifier_of_vectors(classes, post, prob_a=a, prob_b=b), X, rtol=2e-4, atol=2e-5)


def test_svm_probabilities_that_do_not_fit_are_refused():
    proto = classifier_of_vectors(3, prob_a=[1.0], prob_b=[1.0, 2.0, 3.0])
    with pytest.raises(relay.UserError, match="E0504"):
        relay.frontend.from_onnx(proto.SerializeToString())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_svm_classifier_without_vectors(classes, sign):
    rng = np.random.default_rng(15)
    w = rng.normal(size=(classes, 5))
    node = ml("SVMClassifier", ["x0"], ["l", "y"], kernel_type="LINEAR", rho=[0.3],
              kernel_params=[0.0, 0.0, 0.0],
              coefficients=(np.abs(w) if sign > 0 else w).ravel().tolist(),
              classlabels_ints=[7, 3, 5][:classes])  # fmt: skip
    agree(model(node, [("l", INT64), ("y", FLOAT)]), X)


def test_svm_of_one_class():
    rng = np.random.default_rng(4)
    node = ml("SVMRegressor", ["x0"], ["y"], kernel_type="RBF", kernel_params=[0.2, 0.5, 3.0],
              coefficients=rng.normal(size=7).tolist(), support_vectors=rng.normal(size=35).tolist(),
              n_supports=7, rho=[0.01], one_class=1)  # fmt: skip
    agree(model(node, [("y", FLOAT)]), X)


# ---- Maps: two vectors, keys and values


def map_model(op, key, value, out, **attrs):
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    outputs = [helper.make_tensor_value_info("y", out, None)]
    graph = helper.make_graph(
        [ml(op, ["x"], ["y"], **attrs)], "g", [helper.make_value_info("x", kind)], outputs
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("given", [{3: 1.5, 1: 2.5, 9: 7.0}, {2: -1.0}])
@pytest.mark.parametrize("form, attrs", [
    ("DictVectorizer", {"int64_vocabulary": [1, 2, 3]}),
    ("CastMap", {"map_form": "DENSE"}),
    ("CastMap", {"map_form": "DENSE", "cast_to": "TO_INT64"}),
    ("CastMap", {"map_form": "SPARSE", "max_map": 10}),
])  # fmt: skip
def test_maps(form, attrs, given):
    out = INT64 if attrs.get("cast_to") else FLOAT
    proto = map_model(form, INT64, FLOAT, out, **attrs)
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": given})[0]
    keys = np.array(list(given), np.int64)
    values = np.array(list(given.values()), np.float32)
    mod, _ = relay.frontend.from_onnx(proto.SerializeToString())
    for level in (0, 3):
        got = relay.build(mod, opt_level=level)((keys, values))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_an_empty_map():
    none = np.zeros(0, np.int64), np.zeros(0, np.float32)
    for op, attrs, want in [("DictVectorizer", {"int64_vocabulary": [1, 2]}, [[0, 0]]),
                            ("CastMap", {"map_form": "DENSE"}, np.zeros((1, 0))),
                            ("CastMap", {"map_form": "SPARSE", "max_map": 2}, [[0, 0]])]:  # fmt: skip
        mod, _ = relay.frontend.from_onnx(
            map_model(op, INT64, FLOAT, FLOAT, **attrs).SerializeToString()
        )
        np.testing.assert_array_equal(relay.build(mod)(none), want)


def test_maps_of_words():
    proto = map_model(
        "DictVectorizer", TensorProto.STRING, FLOAT, FLOAT, string_vocabulary=["a", "b", "ç"]
    )
    mod, _ = relay.frontend.from_onnx(proto.SerializeToString())
    keys, values = np.array(["ç", "a"], object), np.array([2.5, 1.5], np.float32)
    np.testing.assert_array_equal(relay.build(mod)((keys, values)), [[1.5, 0, 2.5]])
    proto = map_model("CastMap", INT64, TensorProto.STRING, FLOAT, map_form="SPARSE", max_map=3)
    mod, _ = relay.frontend.from_onnx(proto.SerializeToString())
    keys, values = np.array([2, 0]), np.array(["2.5", "-1"], object)
    np.testing.assert_array_equal(relay.build(mod)((keys, values)), [[-1, 0, 2.5]])


def test_a_key_without_a_place_ends_the_run():
    proto = map_model("CastMap", INT64, FLOAT, FLOAT, map_form="SPARSE", max_map=3)
    mod, _ = relay.frontend.from_onnx(proto.SerializeToString())
    with pytest.raises(relay.RelayError, match="E0605"):
        relay.build(mod)((np.array([3]), np.array([1.0], np.float32)))


@pytest.mark.parametrize("labels", [[4, 2, 9, 1, 0], ["a", "b", "ç", "", "e"]])
def test_zip_map_gives_records(labels):
    kind = "classlabels_int64s" if isinstance(labels[0], int) else "classlabels_strings"
    graph = helper.make_graph(
        [ml("ZipMap", ["x0"], ["y"], **{kind: labels})], "g",
        [helper.make_tensor_value_info("x0", FLOAT, ["n", 5])],
        [helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
            INT64 if kind.endswith("int64s") else TensorProto.STRING,
            helper.make_tensor_type_proto(FLOAT, []))))])  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)],
                              ir_version=10)  # fmt: skip
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, _ = relay.frontend.from_onnx(proto.SerializeToString())
    for level in (0, 3):
        built = relay.build(mod, opt_level=level)
        for x in (X, X[:1], X[:0]):
            got = [dict(zip(k.tolist(), v.tolist(), strict=True)) for k, v in built(x)]
            assert got == (session.run(None, {"x0": x})[0] if len(x) else [])


# ---- Trees


def forest(rng, trees, depth, features, modes, missing=False, dead=0.1):
    """Returns random trees as the attributes of versions 1 to 3, and their leaves; `depth` is that of
    all, or a function of the tree's number."""
    rows = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                            "falsenodeids", "missing_value_tracks_true")}  # fmt: skip
    leaves = []
    deepest = depth if callable(depth) else lambda tree: depth

    def grow(tree, level, counter):
        node, counter[0] = counter[0], counter[0] + 1
        at = len(rows["nodeids"])
        leaf = level == deepest(tree) or (level > 1 and rng.random() < dead)
        row = {"treeids": tree, "nodeids": node, "featureids": 0 if leaf else
               int(rng.integers(features)), "values": 0.0 if leaf else float(rng.normal(0, 2)),
               "modes": "LEAF" if leaf else str(rng.choice(modes)), "truenodeids": 0,
               "falsenodeids": 0, "missing_value_tracks_true":
               int(missing and not leaf and rng.random() < 0.5)}  # fmt: skip
        for k, v in row.items():
            rows[k].append(v)
        if leaf:
            leaves.append((tree, node))
            return node
        rows["truenodeids"][at] = grow(tree, level + 1, counter)
        rows["falsenodeids"][at] = grow(tree, level + 1, counter)
        return node

    for tree in range(trees):
        grow(tree, 0, [0])
    return {f"nodes_{k}": v for k, v in rows.items()}, leaves


LEQ, MIXED = ["BRANCH_LEQ"], ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]


@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], ["BRANCH_LT"], ["BRANCH_GTE"], ["BRANCH_GT"],
                                   ["BRANCH_EQ"], ["BRANCH_NEQ"], MIXED])  # fmt: skip
@pytest.mark.parametrize("together", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(together, modes):
    rng = np.random.default_rng(5)
    nodes, leaves = forest(rng, 19, 5, 5, modes)
    targets = {"target_treeids": [], "target_nodeids": [], "target_ids": [], "target_weights": []}
    for tree, node in leaves:
        for target in range(2):
            for key, v in zip(targets, (tree, node, target, float(rng.normal())), strict=True):
                targets[key].append(v)
    node = ml("TreeEnsembleRegressor", ["x0"], ["y"], n_targets=2, aggregate_function=together,
              base_values=[0.5, -0.5], **nodes, **targets)  # fmt: skip
    x = X.copy()
    x[:5, 0] = [np.inf, -np.inf, nodes["nodes_values"][0], 0, 1e30]
    agree(model(node, [("y", FLOAT)]), x)


def classifier(classes, post, modes, ids, low):
    """Returns a classifier whose leaves vote for `ids` in turn, with weights from `low` to 1."""
    rng = np.random.default_rng(6)
    nodes, leaves = forest(rng, 21, 4, 5, modes, missing=True)
    votes = {"class_treeids": [], "class_nodeids": [], "class_ids": [], "class_weights": []}
    for i, (tree, node) in enumerate(leaves):
        row = (tree, node, ids[i % len(ids)], float(rng.uniform(low, 1)) / 21)
        for key, v in zip(votes, row, strict=True):
            votes[key].append(v)
    node = ml("TreeEnsembleClassifier", ["x0"], ["l", "y"], post_transform=post,
              classlabels_int64s=[3, 1, 4][:classes], **nodes, **votes)  # fmt: skip
    return model(node, [("l", INT64), ("y", FLOAT)])


def with_missing():
    x = X.copy()
    x[3:9, 2] = np.nan
    x[5, :] = np.nan
    return x


@pytest.mark.parametrize("modes", [LEQ, ["BRANCH_GT"], MIXED])
@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize(("classes", "ids", "low"), [(3, [0, 1, 2], -1), (2, [0], -1), (2, [0], 0),
                                                     (2, [1], -1)])  # fmt: skip
def test_tree_classifier(classes, ids, low, post, modes):
    agree(classifier(classes, post, modes, ids, low), with_missing())


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_tree_classifier_with_votes_for_both_of_two_classes(post):
    """ONNX Runtime gives 0 and 1 there, whatever the labels are; the reference gives the labels."""
    proto = classifier(2, post, LEQ, [0, 1], 0)
    labels, scores = onnx.reference.ReferenceEvaluator(proto).run(None, {"x0": with_missing()})
    got = run(proto, with_missing())
    np.testing.assert_array_equal(got[0], labels)
    np.testing.assert_allclose(got[1], scores, 1e-5, 1e-6)


def test_trees_of_one_leaf_and_of_many_levels():
    for trees, depth in ((1, 0), (3, 1), (5, 20)):
        nodes, leaves = forest(np.random.default_rng(7), trees, depth, 5, LEQ, dead=0.45)
        node = ml("TreeEnsembleRegressor", ["x0"], ["y"], n_targets=1, **nodes,
                  target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
                  target_ids=[0] * len(leaves),
                  target_weights=[float(i) for i in range(len(leaves))])  # fmt: skip
        agree(model(node, [("y", FLOAT)]), X)


def test_many_trees_of_different_depths():
    """Trees of about one depth are followed together, those with few leaves by bits."""
    nodes, leaves = forest(np.random.default_rng(13), 300, lambda tree: tree % 12, 5, LEQ, dead=0.2)
    node = ml("TreeEnsembleRegressor", ["x0"], ["y"], n_targets=1, **nodes,
              target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
              target_ids=[0] * len(leaves), aggregate_function="AVERAGE",
              target_weights=np.random.default_rng(14).normal(size=len(leaves)).tolist())  # fmt: skip
    proto = model(node, [("y", FLOAT)])
    agree(proto, X, rtol=1e-4, atol=1e-5)
    mod, _ = relay.frontend.from_onnx(proto.SerializeToString())
    got = relay.create_executor("debug", mod).evaluate()(X[:3])
    np.testing.assert_allclose(got, run(proto, X[:3])[0], 1e-5, 1e-6)


def test_threads_and_many_samples():
    nodes, leaves = forest(np.random.default_rng(8), 50, 6, 5, LEQ)
    node = ml("TreeEnsembleRegressor", ["x0"], ["y"], n_targets=1, **nodes,
              target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
              target_ids=[0] * len(leaves),
              target_weights=np.random.default_rng(9).normal(size=len(leaves)).tolist())  # fmt: skip
    proto = model(node, [("y", FLOAT)])
    x = np.random.default_rng(10).normal(size=(3000, 5)).astype("float32")
    np.testing.assert_array_equal(run(proto, x)[0], run(proto, x, threads=2)[0])
    # Few samples are followed tree by tree, which adds the votes in another order; blocks are not full.
    for count in (1, 7, 64, 77, 127):
        np.testing.assert_allclose(run(proto, x)[0][:count], run(proto, x[:count])[0], 1e-5, 1e-6)


@pytest.mark.parametrize("depth", [3, 7, 12])
def test_branches_of_all_kinds_and_missing_values_in_blocks_of_samples(depth):
    """Twelve levels are walked, fewer are told by bits; one sample is always walked."""
    rng = np.random.default_rng(21)
    nodes, leaves = forest(rng, 9, depth, 5, LEQ)
    count = len(nodes["nodes_modes"])
    kinds = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    nodes["nodes_modes"] = [
        m if m == "LEAF" else kinds[rng.integers(6)] for m in nodes["nodes_modes"]
    ]
    nodes["nodes_values"] = rng.integers(-2, 3, count).astype(float).tolist()
    nodes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, count).tolist()
    node = ml("TreeEnsembleRegressor", ["x0"], ["y"], n_targets=3, **nodes,
              target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
              target_ids=rng.integers(0, 3, len(leaves)).tolist(),
              target_weights=rng.integers(-9, 9, len(leaves)).astype(float).tolist())  # fmt: skip
    proto = model(node, [("y", FLOAT)])
    x = rng.integers(-3, 4, (150, 5)).astype("float32")
    x[rng.random(x.shape) < 0.1] = np.nan
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x0": x})[0]
    for rows in (1, 31, 100, 150):
        np.testing.assert_array_equal(run(proto, x[:rows])[0], want[:rows])


def ensemble_with_sets(rng, sets, inner):
    """A tree that asks in each node for a set; where `inner` is set, members go on, too."""
    n = len(sets)
    members = np.concatenate([np.array([*s, np.nan]) for s in sets]).astype("float32")
    leaves = rng.normal(size=2 * n + 2).astype("float32")
    # Node i goes on to i + 1 where its value is no member, else to a leaf or to a test behind the sets.
    yes_leaf = [0 if inner else 1] * n + [1] * (n if inner else 0)
    yes = [n + i if inner else i for i in range(n)] + (list(range(n)) if inner else [])
    no_leaf = [0] * (n - 1) + [1] + [1] * (n if inner else 0)
    no = [*range(1, n), 2 * n + 1] + ([n + i for i in range(n)] if inner else [])
    count = len(yes)
    attrs = {
        "nodes_featureids": [i % 5 for i in range(n)] + [(i + 2) % 5 for i in range(count - n)],
        "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [count], [6] * n + [1] * (count - n)),
        "nodes_splits": helper.make_tensor("s", FLOAT, [count], [0.0] * count),
        "nodes_truenodeids": yes, "nodes_trueleafs": yes_leaf, "nodes_falsenodeids": no,
        "nodes_falseleafs": no_leaf, "tree_roots": [0], "n_targets": 1,
        "leaf_targetids": [0] * len(leaves),
        "leaf_weights": helper.make_tensor("w", FLOAT, [len(leaves)], leaves),
        "membership_values": helper.make_tensor("v", FLOAT, [len(members)], members),
    }  # fmt: skip

    def value(x):
        for i, s in enumerate(sets):
            if x[i % 5] in s:
                return leaves[i if not inner or x[(i + 2) % 5] < 0 else n + i]
        return leaves[2 * n + 1]

    return attrs, value


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("sets", [[[1.0]], [[1, 2, 3], [-1.0], [0, 2], [-2, 3]], [[], [0, 1]]])
def test_trees_with_sets(sets, inner):
    rng = np.random.default_rng(17)
    attrs, value = ensemble_with_sets(rng, sets, inner)
    x = rng.integers(-3, 4, (50, 5)).astype("float32")
    x[3], x[4, 0] = np.nan, np.nan
    proto = model(ml("TreeEnsemble", ["x0"], ["y"], **attrs), [("y", FLOAT)], version=5)
    want = np.array([[value(line)] for line in x], "float32")
    for level in (0, 3):
        np.testing.assert_array_equal(run(proto, x, level=level)[0], want)


def test_trees_of_halves():
    """Version 5 has samples, splits and weights of 16 bits."""

    def tensor(name, values):
        return helper.make_tensor(name, TensorProto.FLOAT16, [len(values)], values)

    node = ml("TreeEnsemble", ["x0"], ["y"], n_targets=1, tree_roots=[0], nodes_featureids=[1, 0],
              nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [2], [0, 1]),
              nodes_splits=tensor("s", [0.1, 0.5]), nodes_truenodeids=[1, 0],
              nodes_trueleafs=[0, 1], nodes_falsenodeids=[1, 2], nodes_falseleafs=[1, 1],
              leaf_targetids=[0, 0, 0], leaf_weights=tensor("w", [1.5, -2.25, 4.0]))  # fmt: skip
    x = np.array([[0.4, 0.1], [0.5, 0.0999], [0, 0.2], [0.6, 0.1001]], np.float16)
    (got,) = run(
        model(node, [("y", TensorProto.FLOAT16)], kind=TensorProto.FLOAT16, version=5, width=2), x
    )
    split = np.float16(0.1)
    want = [[(1.5 if a < 0.5 else 4.0) if b <= split else -2.25] for a, b in x]
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.array(want, np.float16))


def broken(**changes):
    nodes, leaves = forest(np.random.default_rng(11), 2, 2, 5, LEQ)
    attrs = {**nodes, "target_treeids": [t for t, _ in leaves],
             "target_nodeids": [n for _, n in leaves], "target_ids": [0] * len(leaves),
             "target_weights": [1.0] * len(leaves), "n_targets": 1}  # fmt: skip
    return model(ml("TreeEnsembleRegressor", ["x0"], ["y"], **{**attrs, **changes}), [("y", FLOAT)])


@pytest.mark.parametrize("changes", [
    {"nodes_featureids": [99] * 14},
    {"nodes_featureids": [0]},
    {"nodes_truenodeids": [0] * 14},
    {"nodes_falsenodeids": [77] * 14},
    {"target_ids": [5] * 8},
    {"target_nodeids": [1000] * 8},
    {"n_targets": 0},
    {"nodes_modes": ["BRANCH_MOON"] * 14},
])  # fmt: skip
def test_trees_that_are_none_are_refused(changes):
    with pytest.raises(relay.RelayError, match="E05"):
        relay.frontend.from_onnx(broken(**changes).SerializeToString())
