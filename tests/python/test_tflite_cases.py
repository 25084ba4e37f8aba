"""Every TFLite operator that is imported, against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tflite_cases import CASES, RETYPED, Case, Made

import relay

pytestmark = pytest.mark.drawn(2)

litert = pytest.importorskip("ai_edge_litert.interpreter")


def by_litert(
    data: bytes, feeds: dict[str, np.ndarray], reference: bool = True
) -> list[np.ndarray]:
    """The results of LiteRT's reference kernels, or of those that it has beside."""
    kinds = litert.OpResolverType
    resolver = kinds.BUILTIN_REF if reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    run = litert.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    details = {d["name"]: d["index"] for d in run.get_input_details()}
    for name, value in feeds.items():
        run.resize_tensor_input(details[name], value.shape)
    run.allocate_tensors()
    for name, value in feeds.items():
        run.set_tensor(details[name], value)
    run.invoke()
    return [run.get_tensor(d["index"]) for d in run.get_output_details()]


def by_relay(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of Relay, compiled without the passes that only make programs faster."""
    mod, _ = relay.frontend.from_tflite(data)
    exe = relay.build(mod, opt_level=0)
    out = exe(**feeds)
    return [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else [out])]


def compare(expected: list[np.ndarray], found: list[np.ndarray], tolerance: float) -> None:
    """Truth values and, without a tolerance, all else are equal; it is of the greatest result."""
    assert len(expected) == len(found)
    for e, f in zip(expected, found, strict=True):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        if e.dtype.kind in "iub" or tolerance == 0:
            np.testing.assert_array_equal(f, e)
        else:
            scale = max(1e-30, float(np.abs(e.astype(np.float64)).max(initial=0)))
            np.testing.assert_allclose(f, e, rtol=0, atol=tolerance * scale)


def check(case: Case) -> None:
    data, feeds = case.build()
    compare(by_litert(data, feeds, case.reference), by_relay(data, feeds), case.tolerance)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case):
    check(case)


@pytest.mark.parametrize("case", [c for c in CASES if c.name in RETYPED], ids=lambda c: c.name)
def test_other_elements(case):
    """By the evaluator, which takes milliseconds for each of the many."""
    for dtype in RETYPED[case.name].split():
        data, feeds = case.of(dtype)
        mod, _ = relay.frontend.from_tflite(data)
        out = relay.create_executor("debug", mod).evaluate()(**feeds)
        found = [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else [out])]
        tolerance = 2e-3 if dtype == "float16" else case.tolerance
        compare(by_litert(data, feeds, case.reference), found, tolerance)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize(
    ("options", "background"),
    [({}, 1), ({"max_classes_per_detection": 3}, 0), ({"use_regular_nms": True}, 1),
     ({"use_regular_nms": True, "detections_per_class": 3}, 0)],
)  # fmt: skip
@pytest.mark.parametrize("most", [7, 60])
def test_detections(dtype, options, background, most):
    m = Made(most)
    values = {"max_detections": most, "max_classes_per_detection": 1, "num_classes": 4,
              "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5, "y_scale": 10.0,
              "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0} | options  # fmt: skip
    n = 50
    # Scores that are all different, so that their order is one.
    scores = m.rng.permutation(n * (4 + background)).reshape(1, n, -1) / (n * 5)
    centres, sizes = m.rng.random((n, 2)), m.rng.random((n, 2)) * 0.3 + 0.1
    anchors = np.concatenate([centres, sizes], axis=1)
    moves = m.rng.standard_normal((1, n, 4))
    levels = [{}, {}, {}]
    if dtype == "uint8":
        levels = [{"scale": 0.03, "zero": 128}, {"scale": 1 / 255, "zero": 0}, {"scale": 0.005}]
        moves, scores, anchors = (
            np.clip(np.round(v / q["scale"] + q.get("zero", 0)), 0, 255)
            for v, q in zip((moves, scores, anchors), levels, strict=True)
        )
    inputs = [
        m.input(moves.shape, dtype, values=moves, **levels[0]),
        m.input(scores.shape, dtype, values=scores, **levels[1]),
        m.const(anchors, dtype, **levels[2]),
    ]
    shapes = [(1, most, 4), (1, most), (1, most), (1,)]
    custom = bytes(flexbuffers.Dumps(values))
    m.g.op("TFLite_Detection_PostProcess", inputs, [m.out(s) for s in shapes], custom=custom)
    data = m.model.bytes()
    expected, found = by_litert(data, m.feeds), by_relay(data, m.feeds)
    count = int(expected[3][0])
    assert count > 3
    np.testing.assert_array_equal(found[3], expected[3])
    classes = values["max_classes_per_detection"]
    for e, f in zip(expected[:3], found[:3], strict=True):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        # What LiteRT leaves behind the detections is not defined.
        np.testing.assert_allclose(f[:, : count * classes], e[:, : count * classes], rtol=1e-5)
        assert not f[:, count * classes :].any()


@pytest.mark.parametrize(("size", "skips", "every"), [(1, 0, False), (2, 0, True), (2, 1, False),
                                                      (3, 2, True)])  # fmt: skip
def test_skip_grams(size, skips, every):
    options = {"ngram_size": size, "max_skip_size": skips, "all_ngrams": every}
    for text in ("", "one", "one two", "a quick  brown fox jumps over"):
        m = Made(0)
        words = text.encode()
        ends = np.array([1, 12, 12 + len(words)], np.int32).tobytes()
        x = m.g.tensor("x", (1,), "string", data=ends + words)
        m.g.op("SKIP_GRAM", [x], [m.out((-1,), "string")], skip_gram=options)
        data = m.model.bytes()
        (expected,), (found,) = by_litert(data, {}), by_relay(data, {})
        assert [str(f) for f in found] == [e.decode() for e in expected.ravel()]
