"""Models whose inputs have sizes that only a run knows, where operators had to know them."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_onnx_open_args import FLOAT, INT64, built, ints, model_of

import relay


@pytest.mark.parametrize("shape", [["n", 4, "m"], [None, None, None]], ids=["named", "open"])
def test_random_numbers_of_open_sizes(shape):
    """They are the ones of a program for these sizes; also where only data tells how many there are."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"], mean=2.0, scale=3.0),
        helper.make_node("RandomUniformLike", ["x"], ["b"], low=-1.0, dtype=TensorProto.DOUBLE),
        helper.make_node("Bernoulli", ["x"], ["c"]),
        helper.make_node("Dropout", ["x", "", "training"], ["d", "mask"]),
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("RandomNormalLike", ["where"], ["e"], dtype=FLOAT),
    ]
    results = ["a", "b", "c", "d", "mask", "e"]
    x = np.random.default_rng(8).uniform(size=(3, 4, 5)).astype("float32")
    training = numpy_helper.from_array(np.array(True), "training")
    got = []
    for sizes in (shape, x.shape):
        model = model_of(nodes, [("x", FLOAT, sizes)], results)
        model.graph.initializer.append(training)
        program = built(model)
        got.append(program(x))
        if sizes is shape:
            assert program(x[:, :, :0])[0].shape == (3, 4, 0)
    for of_open, of_fixed in zip(*got, strict=True):
        np.testing.assert_array_equal(of_open, of_fixed)
    assert got[0][5].shape == (3, 60)


def test_boxes_and_scores_name_their_sizes_as_they_like():
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"])
    inputs = [("boxes", FLOAT, ["b", "n", "four"]), ("scores", FLOAT, ["c", "classes", "m"]),
              ("most", INT64, [1]), ("overlap", FLOAT, [1])]  # fmt: skip
    model = model_of([node], inputs, ["y"])
    program, oracle = built(model), ReferenceEvaluator(model)
    rng = np.random.default_rng(9)
    boxes = rng.uniform(size=(2, 9, 4)).astype("float32")
    scores = rng.uniform(size=(2, 3, 9)).astype("float32")
    values = [boxes, scores, ints(4), np.array([0.3], "float32")]
    (want,) = oracle.run(None, dict(zip((i[0] for i in inputs), values, strict=True)))
    np.testing.assert_array_equal(program(*values), want)
    for wrong in (
        [boxes[:, :8], *values[1:]],
        [boxes[:1], *values[1:]],
        [boxes[..., :2], *values[1:]],
    ):
        with pytest.raises(relay.RelayError, match="E06"):
            program(*wrong)


@pytest.mark.parametrize("computed", [False, True], ids=["input", "computed"])
def test_deformed_convolutions_of_images_of_any_size(computed):
    """Places that a convolution of the same image computes, and an input with names of its own."""
    rng = np.random.default_rng(10)
    w, v = (rng.normal(size=s).astype("float32") for s in ((4, 2, 3, 3), (18, 2, 3, 3)))
    settings = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}
    nodes = [helper.make_node("Conv", ["x", "v"], ["moves"], **settings)] if computed else []
    nodes.append(helper.make_node("DeformConv", ["x", "w", "moves"], ["y"], **settings))
    inputs = [("x", FLOAT, ["n", 2, "height", "width"])]
    if not computed:
        inputs.append(("moves", FLOAT, ["k", 18, "rows", "columns"]))
    model = model_of(nodes, inputs, ["y"], 22)
    model.graph.initializer.extend(
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")]
    )
    program, oracle = built(model), ReferenceEvaluator(model)
    for shape in ((1, 2, 6, 5), (2, 2, 7, 8)):
        given = {"x": rng.normal(size=shape).astype("float32")}
        places = (shape[0], 18, (shape[2] + 1) // 2, shape[3])
        if not computed:
            given["moves"] = rng.normal(size=places).astype("float32")
        (want,) = oracle.run(None, given)
        np.testing.assert_allclose(program(**given), want, rtol=1e-4, atol=1e-4)
    if not computed:
        turned = given["moves"].transpose(0, 1, 3, 2).copy()
        with pytest.raises(relay.RelayError, match="E06"):
            program(given["x"], turned)
