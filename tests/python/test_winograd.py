"""3x3 convolutions by minimal filtering, compiled, against ONNX Runtime.

The sizes give whole and part tiles, groups of tiles and all at once, register tiles that divide them
evenly and not, borders on every side, and followers that are fused.
"""

import dataclasses

import numpy as np
import onnx
import oracles
import pytest
from command_line import model, relay, value
from hosts import HOSTS
from onnx import helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class Case:
    height: int
    width: int
    inputs: int = 64
    outputs: int = 64
    batch: int = 1
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    residual: bool = False
    open: bool = False  # only a run knows the batch
    open_image: bool = False  # only a run knows the height and width
    given: bool = False  # only a run knows the weight

    def out_shape(self) -> list[int]:
        top, left, bottom, right = self.pads
        return [
            self.batch,
            self.outputs,
            self.height + top + bottom - 2,
            self.width + left + right - 2,
        ]

    def shapes(self) -> dict[str, list[int]]:
        x = {"x": [self.batch, self.inputs, self.height, self.width]}
        return x | ({"r": self.out_shape()} if self.residual else {})

    def weight(self) -> np.ndarray:
        w = np.random.default_rng(1).standard_normal((self.outputs, self.inputs, 3, 3))
        return (w / np.sqrt(9 * self.inputs)).astype(np.float32)

    def build(self) -> onnx.ModelProto:
        b = np.random.default_rng(3).standard_normal(self.outputs)
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=self.pads)]
        if self.residual:
            nodes.append(helper.make_node("Add", ["c", "r"], ["a"]))
        nodes.append(helper.make_node("HardSwish", [nodes[-1].output[0]], ["y"]))
        constants = [numpy_helper.from_array(b.astype(np.float32), "b")]
        if not self.given:
            constants.append(numpy_helper.from_array(self.weight(), "w"))
        batch = ["batch"] if self.open else [self.batch]
        known = 2 if self.open_image else 4
        names = {"x": ["h", "w"], "r": ["h_out", "w_out"]}
        inputs = [
            value(name, batch + shape[1:known] + (names[name] if self.open_image else []))
            for name, shape in self.shapes().items()
        ]
        if self.given:
            inputs.append(value("w", self.weight().shape))
        result = self.out_shape()[1:known] + (["h_out", "w_out"] if self.open_image else [])
        return model(nodes, inputs, [value("y", batch + result)], constants)

    def arguments(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(2)
        out = {n: rng.standard_normal(s).astype(np.float32) for n, s in self.shapes().items()}
        return out | ({"w": self.weight()} if self.given else {})


CASES = [
    Case(16, 16),
    Case(56, 56),
    Case(14, 14, 128, 64),
    Case(28, 28, 64, 128, residual=True),
    Case(23, 17),
    Case(13, 68, pads=(0, 2, 1, 0)),
    Case(5, 6, batch=9, residual=True),
    Case(28, 28, 256, 256),
    Case(7, 7, 256, 256, batch=8, residual=True),
    Case(7, 6, 512, 256, batch=9, given=True),
    Case(30, 27, 64, 96, batch=2, residual=True, given=True),
    Case(112, 9, 64, 192, pads=(2, 2, 2, 2)),
    Case(28, 28, batch=3, residual=True, open=True),
    Case(16, 16, 256, 256, batch=2, open=True),
    Case(62, 57, open_image=True),
    Case(3, 1, 64, 128, batch=3, open_image=True),
    Case(30, 27, 128, 64, batch=2, pads=(0, 2, 1, 0), given=True, open=True, open_image=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_onnxruntime(case):
    threads = [{"num_threads": 1}, {"num_threads": 2}]
    oracles.assert_builds_agree(case.build(), case.arguments(), threads, str(case), 1e-4)


@pytest.mark.parametrize("caches", ["-l2=1M", "-l2=512K"])
@pytest.mark.parametrize("shape", [(62, 57), (3, 1), (18, 30)])
def test_lines_and_all_tiles_of_open_images_agree(shape, caches):
    """By lines where L2 holds the weights, else all at once."""
    case = Case(*shape, batch=3, residual=True, open=True, open_image=True)
    builds = [{"target": f"native {caches}", "num_threads": n} for n in (1, 2)]
    oracles.assert_builds_agree(case.build(), case.arguments(), builds, str(case), 1e-4)


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3"])
def test_older_processors_code_agrees(target):
    case = Case(23, 17, residual=True)
    build = [{"target": target}]
    oracles.assert_builds_agree(case.build(), case.arguments(), build, target, 1e-4)


LARGE = "x86-64-v4 -l2=2M -l3=64M"
SMALL = "x86-64-v4 -l2=1M -l3=16M"


# What is chosen follows from the caches, and so from the target alone, on whichever machine.
@pytest.mark.parametrize(
    ("case", "target", "phrase"),
    [
        (Case(56, 56), LARGE, "196 tiles, groups of 7, threads over groups"),
        (Case(56, 56), SMALL, "196 tiles, groups of 7, threads over groups"),
        (Case(28, 28, 128, 128), SMALL, "49 tiles, all at once, threads in each phase"),
        (Case(56, 56, open_image=True), SMALL, "open tiles, by lines, threads over lines"),
        (
            Case(56, 56, 128, 128, open_image=True),
            SMALL,
            "open tiles, all at once, threads in each phase",
        ),
        (Case(16, 16, 256, 256), LARGE, "16 tiles, all at once"),
        (Case(16, 16, 512, 512, open=True), LARGE, "16 tiles, "),
        (Case(28, 28, given=True), SMALL, "schedule = winograd: weights, "),
        (Case(56, 56, open=True), SMALL, "threads over groups"),
        (Case(56, 56, open=True), "x86-64-v2", "196 tiles, all at once"),
    ],
    ids=str,
)
def test_the_rule_says_what_it_chose(tmp_path, case, target, phrase):
    path = tmp_path / "model.onnx"
    onnx.save(case.build(), path)
    for host in {HOSTS[case.height % len(HOSTS)], HOSTS[-1]}:
        text = relay("show", path, "--tir", "--threads", 2, "--target", target, host=host).stdout
        assert "schedule = winograd: " in text and phrase in text, text[:2000]


@pytest.mark.parametrize("host", HOSTS)
def test_the_rule_takes_the_convolution_on_every_machine(tmp_path, host):
    path = tmp_path / "model.onnx"
    onnx.save(Case(56, 56).build(), path)
    assert "schedule = winograd: " in relay("show", path, "--tir", host=host).stdout


def test_the_rule_can_be_left_out(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(Case(56, 56, open=True).build(), path)
    without = relay("show", path, "--tir", "--disable-pass", "WinogradConvolution").stdout
    assert "schedule = winograd: " not in without and "schedule = sum: " in without
