"""Operators of object detection on boxes as detectors have them, against the walk over elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from command_line import relay as command
from op_oracles import ORACLES, attributes

import relay

RNG = np.random.default_rng(23)


def run(build, *arrays):
    variables = [
        relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)
    ]
    made = build(*variables)
    f = relay.Function(variables, made)
    slow = relay.create_executor("debug", relay.IRModule.from_expr(f)).evaluate()(*arrays)
    fast = relay.build(f, num_threads=1)(*arrays)
    slow, fast = (list(v) if isinstance(v, tuple) else [v] for v in (slow, fast))
    for expected, found in zip(slow, fast, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    return fast


def known(name, arrays, **attrs):
    """What the oracle says."""
    defaults = vars(attributes(name, ""))
    defaults |= attrs
    wide = [a.astype("float64") if a.dtype.kind == "f" else a for a in arrays]
    result = ORACLES[name](type("Attributes", (), defaults)(), *wide)
    return result if isinstance(result, list) else [result]


def agree(found, expected):
    for f, e in zip(found, expected, strict=True):
        assert f.shape == e.shape
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-6)


def rows(batch, n, length=6, id_index=0, score_index=1, coord_start=2):
    """Boxes that overlap often, of three classes; some have no score, and some no class."""
    out = RNG.random((batch, n, length)).astype("float32")
    out[..., score_index] = RNG.permutation(batch * n).reshape(batch, n) / (batch * n) - 0.2
    if id_index >= 0:
        out[..., id_index] = RNG.integers(-1, 3, (batch, n))
    low = RNG.integers(0, 12, (batch, n, 2))
    corners = np.concatenate([low, low + RNG.integers(0, 9, (batch, n, 2))], 2)
    # Which corner is first is not said.
    swapped = RNG.random((batch, n)) < 0.3
    corners[swapped] = corners[swapped][:, [2, 1, 0, 3]]
    out[..., coord_start : coord_start + 4] = corners
    return out


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"force_suppress": True, "top_k": 9},
        {"return_indices": False},
        {"return_indices": False, "invalid_to_bottom": True, "top_k": 13},
        {"id_index": -1, "score_index": 0, "coord_start": 1},
    ],
)
def test_non_max_suppression(attrs):
    name = "vision.non_max_suppression"
    places = {k: v for k, v in attrs.items() if k in ("id_index", "score_index", "coord_start")}
    data = rows(3, 24, **places)
    valid = np.array([24, 0, 17], "int32")
    indices = np.stack([RNG.permutation(40)[:24] for _ in range(3)]).astype("int32")

    def build(x, v, i, m, t):
        return relay.vision.non_max_suppression(x, v, i, m, t, **attrs)

    # The thresholds are data, so that one program has all of them.
    for most, limit in itertools.product((-1, 4), (0.3, 0.0)):
        arrays = [data, valid, indices, np.array(most, "int32"), np.array(limit, "float32")]
        agree(run(build, *arrays), known(name, arrays, **attrs))


def test_non_max_suppression_as_it_is_written():
    data, valid = rows(2, 10), np.array([10, 6], "int32")
    indices = np.tile(np.arange(10, dtype="int32"), (2, 1))

    def build(x, v, i):
        return relay.vision.non_max_suppression(x, v, i, max_output_size=3, iou_threshold=0.4)

    wanted = [data, valid, indices, np.array(3), np.array(0.4, "float32")]
    agree(run(build, data, valid, indices), known("vision.non_max_suppression", wanted))


@pytest.mark.parametrize(("id_index", "score_index"), [(0, 1), (-1, 0), (5, 2)])
def test_get_valid_counts(id_index, score_index):
    data = rows(3, 11, id_index=id_index, score_index=score_index)

    def build(x):
        return relay.vision.get_valid_counts(x, 0.25, id_index, score_index)

    wanted = known(
        "vision.get_valid_counts",
        [data, np.float32(0.25)],
        id_index=id_index,
        score_index=score_index,
    )
    agree(run(build, data), wanted)


def test_detections_of_an_ssd():
    """Priors, what predictions make of them, and which boxes stay: batches of open length."""
    batch, classes, feature = 2, 4, np.zeros((2, 8, 3, 5), "float32")
    n = 3 * 5 * 3
    probability = RNG.random((batch, classes, n)).astype("float32")
    loc = (0.5 * RNG.standard_normal((batch, 4 * n))).astype("float32")

    def build(x, p, m):
        anchor = relay.vision.multibox_prior(x, sizes=(0.4, 0.2), ratios=(1, 2))
        boxes, count = relay.vision.multibox_transform_loc(p, m, anchor, threshold=0.6)
        return relay.vision.non_max_suppression(boxes, count, count_numbers, return_indices=False)

    count_numbers = relay.const(np.tile(np.arange(n, dtype="int32"), (batch, 1)))
    found = run(build, feature, probability, loc)
    anchor = known("vision.multibox_prior", [feature], sizes=[0.4, 0.2], ratios=[1, 2])[0]
    boxes, count = known("vision.multibox_transform_loc", [probability, loc, anchor], threshold=0.6)
    wanted = known(
        "vision.non_max_suppression",
        [boxes, count, np.tile(np.arange(n), (batch, 1)), np.array(-1), np.array(0.5)],
        return_indices=False,
    )
    agree(found, wanted)


def test_regular_non_max_suppression():
    boxes = np.sort(RNG.integers(0, 9, (2, 30, 2, 2)), 2).reshape(2, 30, 4).astype("float32")
    scores = (RNG.permutation(2 * 30 * 4).reshape(2, 30, 4) / 240).astype("float32")
    attrs = {
        "max_detections_per_class": 6, "max_detections": 11, "num_classes": 3,
        "iou_threshold": 0.25, "score_threshold": 0.3,
    }  # fmt: skip

    def build(b, s):
        return relay.vision.regular_non_max_suppression(b, s, **attrs)

    agree(
        run(build, boxes, scores),
        known("vision.regular_non_max_suppression", [boxes, scores], **attrs),
    )


def test_proposal():
    attrs = {
        "scales": (2.0, 4.0), "ratios": (0.5, 1.0, 2.0), "feature_stride": 8, "threshold": 0.4,
        "rpn_pre_nms_top_n": 50, "rpn_post_nms_top_n": 40, "rpn_min_size": 6, "iou_loss": False,
    }  # fmt: skip
    scores = (RNG.permutation(2 * 12 * 20).reshape(2, 12, 4, 5) / 480).astype("float32")
    moves = (0.3 * RNG.standard_normal((2, 24, 4, 5))).astype("float32")
    info = np.array([[32, 40, 1], [24, 40, 1.5]], "float32")
    found = run(lambda s, m, i: relay.vision.proposal(s, m, i, **attrs), scores, moves, info)
    wanted = known("vision.proposal", [scores, moves, info], **attrs)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-4)


def test_rows_without_elements():
    indices = np.array([[1, 4], [1, 0], [6, 2]], "int32")
    values, shape = np.array([2, 3, 4], "float32"), np.array([8, 5], "int32")
    found = run(
        lambda i, v, s: relay.sparse_fill_empty_rows(i, v, s, relay.const(-7.0)),
        indices, values, shape,
    )  # fmt: skip
    agree(found, known("sparse_fill_empty_rows", [indices, values, shape, np.array(-7.0)]))
    places = relay.var("places", shape=(1, 2), dtype="int32")
    sizes, one, zero = relay.const([8, 5], "int32"), relay.const([1.0], "float32"), relay.const(0.0)
    f = relay.Function([places], relay.sparse_fill_empty_rows(places, one, sizes, zero)[0])
    with pytest.raises(relay.RelayError, match="out of bounds"):
        relay.build(f)(np.array([[8, 0]], "int32"))


def test_the_weight_of_a_convolution():
    """As the gradient of the convolution itself has it."""
    x = RNG.standard_normal((2, 4, 7, 6)).astype("float32")
    g = RNG.standard_normal((2, 6, 4, 3)).astype("float32")
    w = np.zeros((6, 2, 3, 2), "float32")
    attrs = {"strides": (2, 2), "padding": (1, 0, 1, 1), "groups": 2}
    found = run(
        lambda g, x: relay.nn.conv2d_backward_weight(g, x, kernel_size=(3, 2), **attrs), g, x
    )
    a, b, c = (relay.var(n, shape=v.shape) for n, v in (("x", x), ("w", w), ("g", g)))
    f = relay.Function([a, b, c], relay.sum(relay.nn.conv2d(a, b, **attrs) * c))
    whole = relay.transform.gradient(f, mode="first_order")
    wanted = relay.create_executor("debug", relay.IRModule.from_expr(whole)).evaluate()(x, w, g)
    np.testing.assert_allclose(found[0], wanted[1][1], rtol=1e-4, atol=1e-4)


X = relay.var("x", shape=(2, 5, 6))
IMAGE = relay.var("image", shape=(1, 4, 5, 5))
REFUSED = {
    "score_index is outside of a row": lambda: relay.vision.get_valid_counts(X, 0.5, 0, 6),
    "the boxes are not rows of floats": lambda: relay.vision.get_valid_counts(IMAGE, 0.5),
    "argument 'score_threshold' is one number": lambda: relay.vision.get_valid_counts(X, X),
    "coord_start is outside of a row": lambda: relay.vision.non_max_suppression(
        X, relay.const([5, 5], "int32"), relay.const(np.zeros((2, 5), "int32")), coord_start=3
    ),
    "there are no such classes": lambda: relay.vision.regular_non_max_suppression(
        relay.var("b", shape=(1, 3, 4)), relay.var("s", shape=(1, 3, 2)), 1, 1, 3, 0.5, 0.5
    ),
    "a ratio is not above 0": lambda: relay.vision.multibox_prior(IMAGE, ratios=(0.0,)),
    "variances are four numbers": lambda: relay.vision.multibox_transform_loc(
        relay.var("p", shape=(1, 2, 3)), relay.var("l", shape=(1, 12)), relay.var("a", shape=(1, 3, 4)),
        variances=(1.0,),
    ),
    "the arguments do not fit 1 anchors": lambda: relay.vision.proposal(
        IMAGE, IMAGE, relay.var("i", shape=(1, 3)), (1.0,), (1.0,), 4, 0.5, 10, 5, 1, False
    ),
    "the offset does not fit": lambda: relay.nn.deformable_conv2d(
        IMAGE, relay.var("o", shape=(1, 18, 4, 4)), relay.var("w", shape=(2, 4, 3, 3))
    ),
    "the groups do not divide the channels": lambda: relay.nn.deformable_conv2d(
        IMAGE, relay.var("o", shape=(1, 18, 3, 3)), relay.var("w", shape=(2, 4, 3, 3)), groups=3
    ),
    "needs the size of the kernel": lambda: relay.nn.conv2d_backward_weight(IMAGE, IMAGE),
    "the adjoint has another type": lambda: relay.nn.conv2d_backward_weight(
        IMAGE, IMAGE, kernel_size=(3, 3)
    ),
    "takes the places, values and sizes": lambda: relay.sparse_fill_empty_rows(X, X, X, X),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refuses(message):
    with pytest.raises(relay.UserError, match=rf"E0801[^\n]*{message}"):
        REFUSED[message]()


def test_stop_fusion(tmp_path):
    """The compiled program has two kernels, and no copy between them."""
    x = RNG.standard_normal((3, 4)).astype("float32")

    def plan(build):
        f = relay.Function([v := relay.var("x", shape=x.shape)], build(v))
        np.testing.assert_allclose(relay.build(f)(x), np.exp(np.maximum(x, 0)), rtol=1e-6)
        program = tmp_path / "program.relay"
        program.write_text(relay.IRModule.from_expr(f).astext())
        return command("show", program, "--plan").stdout

    assert "fused_nn_relu_exp" in plan(lambda v: relay.exp(relay.nn.relu(v)))
    apart = plan(lambda v: relay.exp(relay.annotation.stop_fusion(relay.nn.relu(v))))
    assert "= fused_nn_relu(" in apart and "= view " in apart and "= fused_exp(" in apart
    f = relay.Function(
        [v := relay.var("x", shape=(3,))], relay.sum(relay.annotation.stop_fusion(v) * v)
    )
    g = relay.create_executor("debug", relay.transform.gradient(f, mode="first_order")).evaluate()
    np.testing.assert_allclose(g(x[0, :3])[1][0], 2 * x[0, :3], rtol=1e-6)
