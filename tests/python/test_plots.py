"""Figures that the package draws: what is in them, at any numbers."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import PROGRAM
from command_line import relay as command

import relay
from relay import _figure, train

SVG = "{http://www.w3.org/2000/svg}"


def elements(text, tag):
    return list(ElementTree.fromstring(text).iter(SVG + tag))


def test_losses_of_a_trainer(tmp_path):
    @relay.function
    def loss(w, x):
        return ((x @ w) ** 2).mean()

    trainer = train.Trainer(loss, np.ones((3, 2), "float32"), train.sgd(0.1))
    x = np.eye(3, dtype="float32")
    values = [float(trainer.step(x)) for _ in range(5)]
    assert trainer.losses == values
    path = tmp_path / "loss.svg"
    figure = trainer.plot(path)
    assert figure._repr_svg_() == path.read_text()
    (line,) = elements(path.read_text(), "polyline")
    heights = [float(p.split(",")[1]) for p in line.get("points").split()]
    # Losses fall, so the line does, too: y grows downwards.
    assert len(heights) == 5 and heights == sorted(heights)


@pytest.mark.parametrize(
    "values", [[], [1.0], [2.0, 2.0], [1.0, math.nan, 3.0, 2.0], [math.inf] * 3, [1e-30, 1e30]]
)
def test_any_values_make_a_curve(values):
    text = _figure.curve(values, "<Loss> & more", ("step", "loss")).svg()
    assert (
        "nan" not in text.split("</style>")[1] and "<title>&lt;Loss&gt; &amp; more</title>" in text
    )
    drawn = sum(len(p.get("points").split()) for p in elements(text, "polyline"))
    drawn += len(elements(text, "circle"))
    assert drawn == sum(map(math.isfinite, values))


@pytest.mark.parametrize(
    "times", [[0.001], [0.001] * 9, list(np.linspace(1e-6, 5e-6, 400)), [0.001] * 99 + [9.0]]
)
def test_every_run_is_in_the_histogram(times):
    figure = _figure.latency(times, "m.onnx")
    bars = [e for e in elements(figure.svg(), "rect") if e.get("class") == "a"]
    ticks = figure.axes((0, 1), (0, 1), ("", ""))[1]
    assert bars and all(0 < float(b.get("height")) <= ticks.begin - ticks.end + 0.1 for b in bars)
    assert f"{len(times)} runs" in figure.note


def test_kernels_lie_under_the_roof():
    limits = {"gflops": 100.0, "read_gbytes_per_second": {"L2": 50.0, "memory": 10.0}}
    kernels = [
        {"name": "conv", "gflops": 80.0, "bytes": 1e6, "seconds": 1e-3, "share": 0.75},
        {"name": "relu", "gflops": 1.0, "bytes": 4e6, "seconds": 4e-4, "share": 0.25},
        {"name": "gather", "gflops": None, "bytes": 4e6, "seconds": 4e-4, "share": 0.0},
    ]
    figure = _figure.roofline(kernels, limits, "m.onnx")
    circles = elements(figure.svg(), "circle")
    assert [c.find(SVG + "title").text.split(":")[0] for c in circles] == ["conv", "relu"]
    big, small = (float(c.get("cy")) for c in circles)
    assert big < small  # faster is higher
    assert _figure.roofline(kernels[2:], limits, "m.onnx") is None


def test_memory_over_a_run_has_the_heights_of_its_steps():
    report = {
        "arena_bytes": 4096,
        "alive_bytes": [1024, 4096, 0, 2048],
        "steps": ["conv1", "conv2", "pool", "head"],
        "kernels": [0, 1, 0, 2],
    }
    profile = [{"kernel": k, "seconds": s} for k, s in enumerate([1e-3, 4e-3, 1e-3])]
    for kernels, widths in (([], [1, 1, 1, 1]), (profile, [1, 4, 1, 1])):
        figure = _figure.memory(report, kernels, "m.onnx")
        (line,) = elements(figure.svg(), "polyline")
        points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
        heights = [points[0][1] - y for _, y in points[::2]]
        foot = points[4][1]
        assert [round((foot - y) / (foot - points[2][1]) * 4) for _, y in points[::2]] == [
            1,
            4,
            0,
            2,
        ]
        spans = [b[0] - a[0] for a, b in zip(points[::2], points[1::2], strict=True)]
        assert [round(s / spans[0]) for s in spans] == widths and heights[0] == 0
        assert "4 KiB in use, in step 2 of 4: conv2" in figure.note
    assert _figure.memory({**report, "arena_bytes": 0}, [], "m.onnx") is None


def test_each_quantised_layer_has_a_bar_as_long_as_its_error():
    layers = [
        {"name": "conv1", "quantized": True, "error": 0.01},
        {"name": "a/very/long/name/of/a/layer/in/a/model", "quantized": True, "error": 0.04},
        {"name": "softmax", "quantized": False, "error": None},
    ]
    figure = _figure.layer_errors(layers, "m.onnx")
    short, long = (
        float(e.get("width")) for e in elements(figure.svg(), "rect") if e.get("class") == "a"
    )
    assert long == pytest.approx(4 * short, rel=0.01)
    words = [e.text for e in elements(figure.svg(), "text")]
    assert {"conv1", "softmax", "float", "0.04"} <= set(words)
    assert "2 of 3 layers" in figure.note


def test_quantize_draws_its_layers(tmp_path):
    (tmp_path / "m.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(16, 64), float32]) {\n'
        "  nn.dense(%x, ones(shape=[64, 64]))\n}\n"
    )
    figure = tmp_path / "error.svg"
    quantize = ("quantize", tmp_path / "m.relay", "--calibrate", "2", "--plot", figure)
    command(*quantize, "-o", tmp_path / "q.relay")
    assert "Error of quantised layers: m.relay" in figure.read_text()
    again = command(*quantize, "-o", tmp_path / "r.relay", check=False)
    assert again.returncode == 1 and "--force" in again.stderr


@pytest.mark.parametrize("profile", [False, True])
def test_bench_draws_its_runs(tmp_path, profile):
    # A value between two kernels is in memory.
    body = "nn.dense(nn.softmax(nn.dense(%x, %w)), ones(shape=[5, 4]))"
    (tmp_path / "m.relay").write_text(PROGRAM.replace("nn.relu(nn.dense(%x, %w))", body))
    figure = tmp_path / "m.svg"
    bench = ("bench", tmp_path / "m.relay", "--repeat", "20", "--plot", figure)
    command(*bench, *(["--profile"] if profile else []))
    text = figure.read_text()
    assert "Time of a run: m.relay" in text and "20 runs" in text
    assert "Memory over a run: m.relay" in text
    assert ("Roofline: m.relay" in text) == profile
    again = command(*bench, check=False)
    assert again.returncode == 1 and "--force" in again.stderr
