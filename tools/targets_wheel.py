"""Makes the wheel relay-targets: the code generators of other architectures, and the runtime for each.

targets_wheel.py TARGETS FOLDER

TARGETS is build/release/targets, as tools/build.sh and tools/targets.sh write it. The files lie in the
folder relay/targets of the package relay, which finds them there (src/runtime/core/own_folder.h).
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

from pack_wheel import Compressor

ROOT = Path(__file__).resolve().parents[1]
TAG = "py3-none-manylinux_2_28_x86_64"
LIBRARY = "librelay_targets.so"
RUNTIME = ("relay-run", "librelay_runtime.so", "librelay_runtime.a")


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(relay VERSION ([0-9.]+)", text)[1]  # type: ignore[index]


def files_of(targets: Path) -> dict[str, Path]:
    """The files of the wheel by name."""
    names = [LIBRARY]
    for toolchain in sorted(ROOT.glob("cmake/targets/*.cmake")):
        names += [f"{toolchain.stem}/{name}" for name in RUNTIME]
    missing = [name for name in names if not (targets / name).exists()]
    if missing:
        sys.exit(
            f"targets_wheel: {targets} has no {', '.join(missing)}; `make targets` builds them"
        )
    return {f"relay/targets/{name}": targets / name for name in names}


def metadata() -> str:
    return "\n".join([
        "Metadata-Version: 2.1", "Name: relay-targets", f"Version: {version()}",
        "Summary: Code generators and runtimes of Relay for other architectures",
        "License: Apache-2.0", "Requires-Python: >=3.10", f"Requires-Dist: relay=={version()}",
        "", "`relay compile model.onnx --target aarch64-linux -o model.so` needs this package.", "",
    ])  # fmt: skip


def write(targets: Path, folder: Path) -> Path:
    info = f"relay_targets-{version()}.dist-info"
    content = {
        name: (path.read_bytes(), path.stat().st_mode) for name, path in files_of(targets).items()
    }
    texts = {
        "METADATA": metadata(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: relay\nRoot-Is-Purelib: false\nTag: {TAG}\n",
        "licenses/LICENSE": (ROOT / "LICENSE").read_text(),
        "licenses/NOTICE": (ROOT / "NOTICE").read_text(),
    }
    content |= {f"{info}/{name}": (text.encode(), 0o100644) for name, text in texts.items()}
    record = ""
    for name, (data, _) in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    content[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o100644)
    zipfile._get_compressor = Compressor  # type: ignore[attr-defined]
    path = folder / f"relay_targets-{version()}-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, (data, mode) in content.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (mode & 0o100777) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return path


if __name__ == "__main__":
    made = write(*map(Path, sys.argv[1:]))
    print(f"{'package of other architectures':30} {made.stat().st_size:>12,}\n{made}")
