"""Images from the bytes of their files: what they become, what is refused, and which library that needs.

src/image/test/image_test.cc has the formats and damaged files; ONNX's own cases of ImageDecoder are in
test_onnx_cases.py.
"""

import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import relay

SIZE = (5, 7)
EXECUTORS = ("vm", "debug")


def pixels() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (*SIZE, 3), np.uint8)


def png(
    image: np.ndarray, packed: bytes | None = None, sizes: tuple[int, int] | None = None
) -> bytes:
    """Returns a file with the pixels; `packed` and `sizes` say something else."""
    height, width = sizes or image.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in image)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", packed or zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


def parse(text: str) -> relay.IRModule:
    return relay.parse('#[version = "0.0.5"]\n' + text)


def program(attrs: str = "") -> relay.IRModule:
    return parse(f"def @main[n: Dim](%x: Tensor[(n,), uint8]) {{ image.decode(%x{attrs}) }}")


def decode(file: bytes, executor: str = "vm", attrs: str = "") -> np.ndarray:
    x = np.frombuffer(file, np.uint8)
    if executor == "debug":
        return np.asarray(relay.create_executor("debug", program(attrs)).evaluate()(x))
    return np.asarray(relay.build(program(attrs))(x))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_channels(executor):
    image = pixels()
    file = png(image)
    assert np.array_equal(decode(file, executor), image)
    assert np.array_equal(decode(file, executor, ', pixel_format="BGR"'), image[:, :, ::-1])
    grey = (image.astype(int) @ [19595, 38470, 7471] + 32768) >> 16
    assert np.array_equal(decode(file, executor, ', pixel_format="Grayscale"')[:, :, 0], grey)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("file", "says"),
    [
        (b"", "no PNG, JPEG, BMP or PNM"),
        (b"GIF89a", "no PNG, JPEG, BMP or PNM"),
        (png(pixels())[:-13], "damaged"),
        (png(pixels(), packed=b"\x78\x9c\xff"), "damaged"),
        (png(pixels(), packed=zlib.compress(bytes(1 << 24))), "damaged"),
        (png(pixels(), sizes=(16000, 16000)), "134217728 pixels"),
        (b"RIFF\1\0\0\0WEBPVP8 ", "WebP"),
        (b"II*\0\x08\0\0\0", "TIFF"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
    ],
    ids=["nothing", "gif", "cut", "not packed", "bomb", "huge", "webp", "tiff", "jpeg2000"],
)
def test_what_is_refused(executor, file, says):
    with pytest.raises(relay.RelayError, match="E0617") as error:
        decode(file, executor)
    assert says in str(error.value)


def test_a_run_goes_on_after_a_refused_image():
    run = relay.build(program())
    with pytest.raises(relay.RelayError, match="E0617"):
        run(np.zeros(9, np.uint8))
    image = pixels()
    assert np.array_equal(run(np.frombuffer(png(image), np.uint8)), image)


def test_the_artifact_names_its_library(tmp_path):
    path = tmp_path / "program.so"
    relay.build(program()).export_library(str(path))
    shown = subprocess.run(
        [Path(sys.executable).with_name("relay"), "show", path], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert "librelay_image.so" in shown.stdout
    plain = tmp_path / "plain.so"
    relay.build(parse("def @main(%x: Tensor[(3,), uint8]) { %x + %x }")).export_library(str(plain))
    shown = subprocess.run(
        [Path(sys.executable).with_name("relay"), "show", plain], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert "librelay" not in shown.stdout


LOAD = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1])
runtime.relay_last_error.restype = ctypes.c_char_p
module = ctypes.c_void_p()
print(runtime.relay_module_load(sys.argv[2].encode(), 1, ctypes.byref(module)))
print((runtime.relay_last_error() or b"").decode())
print("librelay_image" in open("/proc/self/maps").read())
"""


@pytest.mark.parametrize("beside", [True, False])
def test_the_runtime_alone_opens_the_library_or_says_what_is_missing(tmp_path, beside):
    path = tmp_path / "program.so"
    relay.build(program()).export_library(str(path))
    for name in ("librelay_runtime.so", "librelay_image.so")[: 2 if beside else 1]:
        shutil.copy(Path(relay.__file__).parent / "lib" / name, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, tmp_path / "librelay_runtime.so", path],
        capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines()[-1] == str(beside)
    assert ("E0618" in done.stdout and "librelay_image.so" in done.stdout) == (not beside)
