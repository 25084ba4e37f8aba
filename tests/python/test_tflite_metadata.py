"""The metadata of TFLite files: shown by `relay check`, used by `relay run` for images and labels."""

from __future__ import annotations

import io
import json
import re
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY
from tflite_writer import TfliteModel, metadata_bytes

COLOURS = "red\r\ngreen\nblue\n"


def command(*args, code: int = 0) -> str:
    run = subprocess.run([str(RELAY), *map(str, args)], capture_output=True, text=True)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout if code == 0 else run.stderr


def mean_colour(dtype: str, metadata: dict | None = None, size=(4, 6), labels=COLOURS) -> bytes:
    """A model of the mean of each channel of an image, and the file of the labels of its result."""
    m = TfliteModel()
    g = m.graph()
    q = {"scale": 1 / 64, "zero": -3} if dtype == "int8" else {}
    x = g.tensor("photo", (1, *size, 3), dtype, **q)
    y = g.tensor("colour", (1, 3), dtype, **q)
    g.op("MEAN", [x, g.tensor("axes", None, "int32", data=[1, 2])], [y], reducer={})
    g.inputs, g.outputs = [x], [y]
    if metadata is None:
        return m.bytes()
    m.metadata["TFLITE_METADATA"] = metadata_bytes(metadata)
    out = io.BytesIO(m.bytes())
    with zipfile.ZipFile(out, "a") as z:
        z.writestr("labels.txt", labels, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def image_use(mean, std) -> dict:
    return {
        "name": "Colours", "description": "Mean colour", "author": "A. Person", "license": "none",
        "subgraphs": [{
            "inputs": [{
                "name": "image", "description": "A photograph",
                "content": {"properties": ("ImageProperties", {"colour_space": "rgb"})},
                "process_units": [{"options": ("Normalization", {"mean": mean, "std": std})}],
            }],
            "outputs": [{"name": "scores",
                         "files": [{"name": "labels.txt", "kind": "axis_labels"}]}],
        }],
    }  # fmt: skip


@pytest.fixture
def photo(tmp_path) -> tuple[Path, np.ndarray]:
    pixels = np.random.default_rng(7).integers(0, 256, (4, 6, 3)).astype(np.uint8)
    path = tmp_path / "photo.ppm"
    path.write_bytes(b"P6 6 4 255\n" + pixels.tobytes())
    return path, pixels.astype(np.float32)


def written(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def result(*args, tmp_path: Path) -> np.ndarray:
    command("run", *args, "--output", tmp_path / "out", "--force")
    return np.load(tmp_path / "out/colour.npy")


def test_check_shows_metadata(tmp_path):
    use = image_use([127.5], [100.0, 50.0, 25.0])
    path = written(tmp_path, "m.tflite", mean_colour("float32", use))
    text = re.sub(r"\s+", " ", command("check", path))
    for words in ("Colours", "Mean colour", "A. Person", "photo: image; A photograph; RGB image; "
                  "mean 127.5; std 100, 50, 25", "colour: scores; 3 labels: red, green, blue",
                  "labels.txt, 16 B"):  # fmt: skip
        assert words in text, text
    found = json.loads(command("check", "--json", path))["file"]["metadata"]
    assert found["outputs"][0]["labels"] == ["red", "green", "blue"]
    assert found["inputs"][0]["std"] == [100, 50, 25]


def test_run_uses_metadata(tmp_path, photo):
    file, pixels = photo
    std = np.float32([100.0, 50.0, 25.0])
    use = image_use([127.5], list(std))
    path = written(tmp_path, "m.tflite", mean_colour("float32", use))
    expected = ((pixels - 127.5) / std).mean(axis=(0, 1))
    text = command(
        "run", path, "--input", f"photo={file}", "--labels", "--output", tmp_path / "out"
    )
    np.testing.assert_allclose(np.load(tmp_path / "out/colour.npy")[0], expected, rtol=1e-4)
    rows = re.findall(r"^ *(\d) +(\w+) +(\S+)$", text, re.MULTILINE)
    names = ("red", "green", "blue")
    order = np.argsort(-expected)
    assert [(int(i), n) for i, n, _ in rows] == [(i, names[i]) for i in order], text
    np.testing.assert_allclose([float(s) for _, _, s in rows], expected[order], atol=1e-3)
    # Options come before metadata, and JSON has the classes.
    report = json.loads(command("run", path, "--input", f"photo={file},mean=0,std=1", "--labels",
                                "--json"))  # fmt: skip
    best = report["outputs"][0]["classes"][0]
    plain = pixels.mean(axis=(0, 1))
    assert best["label"] == names[int(plain.argmax())]
    assert best["score"] == pytest.approx(float(plain.max()), rel=1e-5)


def test_images_are_quantised(tmp_path, photo):
    file, pixels = photo
    path = written(tmp_path, "m.tflite", mean_colour("int8", image_use([128.0], [128.0])))
    exact = (pixels - 128) / 128 * 64
    levels = np.clip(np.sign(exact) * np.floor(np.abs(exact) + 0.5) - 3, -128, 127)
    mean = levels.mean(axis=(0, 1))
    found = result(path, "--input", f"photo={file}", tmp_path=tmp_path)
    assert found.dtype == np.int8
    np.testing.assert_allclose(found[0], mean, atol=0.51)
    # Without metadata int8 has no meaning for levels.
    bare = written(tmp_path, "bare.tflite", mean_colour("int8"))
    assert "int8 does not hold the levels" in command(
        "run", bare, "--input", f"photo={file}", code=1
    )


def test_sizes_that_differ(tmp_path, photo):
    file, pixels = photo
    bare = written(tmp_path, "bare.tflite", mean_colour("float32", size=(2, 3)))
    text = command("run", bare, "--input", f"photo={file}", code=1)
    assert "E0702" in text and "2x3" in text and "4x6" in text and ",resize" in text
    # Halved by linear interpolation, every pixel is the mean of four.
    expected = pixels.mean(axis=(0, 1))
    for option in ("resize", "resize=2x3"):
        found = result(bare, "--input", f"photo={file},{option}", tmp_path=tmp_path)
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    # The metadata says that the input is an image.
    use = written(tmp_path, "use.tflite", mean_colour("float32", image_use([0.0], [1.0]), (2, 3)))
    found = result(use, "--input", f"photo={file}", tmp_path=tmp_path)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)


def test_layouts_of_any_model(tmp_path, photo):
    file, pixels = photo
    program = tmp_path / "m.relay"
    program.write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 3, 4, 6), float32]) { mean(%x, axis=[2, 3]) }'
    )
    command(
        "run", program, "--input", f"x={file},mean=10:20:30,std=2", "--output", tmp_path / "out"
    )
    (saved,) = (tmp_path / "out").glob("*.npy")
    expected = ((pixels - [10, 20, 30]) / 2).mean(axis=(0, 1))
    np.testing.assert_allclose(np.load(saved)[0], expected, rtol=1e-5)


@pytest.mark.parametrize(("value", "words"), [
    ("photo={file},size=3", "cannot be read"),
    ("photo={file},std=0", "cannot be read"),
    ("photo={file},mean=1:2", "cannot be read"),
    ("photo={file},resize=5x5", "other sizes"),
    ("foto={file}", "does not exist"),
    ("photo={folder}/none.png", "none.png"),
    ("photo={folder}/text.png", "image"),
])  # fmt: skip
def test_bad_images(tmp_path, photo, value, words):
    (tmp_path / "text.png").write_text("no image")
    path = written(tmp_path, "m.tflite", mean_colour("float32"))
    text = command("run", path, "--input", value.format(file=photo[0], folder=tmp_path), code=1)
    assert "error[E" in text and words in text, text


def test_bad_metadata(tmp_path):
    bare = written(tmp_path, "bare.tflite", mean_colour("float32"))
    assert "has no labels" in command("run", bare, "--labels", code=1)
    data = mean_colour("float32", image_use([0.0], [1.0]))
    # Whatever a file says of itself, the program runs and errors are typed.
    spoiled = {
        "metadata": data.replace(b"M001", b"M999"),
        "archive": data[:-30] + bytes(30),
        "entry": data.replace(b"labels.txt", b"../bel.txt"),
        "directory": data[:-6] + b"\xff\xff\xff\x7f\0\0",
    }
    for name, content in spoiled.items():
        path = written(tmp_path, f"{name}.tflite", content)
        command("run", path)
        run = subprocess.run([str(RELAY), "check", str(path)], capture_output=True, text=True)
        assert run.returncode == (0 if name == "archive" else 1), (name, run.stdout, run.stderr)
        assert run.returncode == 0 or "E0502" in run.stderr + run.stdout, (name, run.stderr)
