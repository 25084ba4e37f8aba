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


@pytest.mark.parametrize("profile", [False, True])
def test_bench_draws_its_runs(tmp_path, profile):
    (tmp_path / "m.relay").write_text(PROGRAM)
    figure = tmp_path / "m.svg"
    bench = ("bench", tmp_path / "m.relay", "--repeat", "20", "--plot", figure)
    command(*bench, *(["--profile"] if profile else []))
    text = figure.read_text()
    assert "Time of a run: m.relay" in text and "20 runs" in text
    assert ("Roofline: m.relay" in text) == profile
    again = command(*bench, check=False)
    assert again.returncode == 1 and "--force" in again.stderr
