"""Packs a wheel as small as its format allows, and prints its size by part.

pack_wheel.py WHEEL FOLDER
"""

from __future__ import annotations

import collections
import sys
import zipfile
from pathlib import Path

import deflate

# Of a wheel that is made for PyPI.
MOST_BYTES = 25_000_000


class Compressor:
    """What zipfile compresses a file with: all at once, by libdeflate, in its shortest form."""

    def __init__(self, *_: object) -> None:
        self.parts: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        self.parts.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        return bytes(deflate.deflate_compress(b"".join(self.parts), 12))


def pack(source: Path, target: Path) -> None:
    zipfile._get_compressor = Compressor  # type: ignore[attr-defined]
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            entry.compress_type = zipfile.ZIP_DEFLATED if data else zipfile.ZIP_STORED
            with new.open(entry, "w") as file:
                file.write(data)


def part_of(name: str) -> str:
    short = name.rpartition("/")[2]
    if "/_core." in name and name.endswith(".so"):
        return "compiler"
    if ".libs/" in name:
        return "libraries of others"
    if name.endswith((".so", ".a")):
        return short
    if "/include/" in name or "/lib/" in name:
        return "headers and build files of C"
    if ".data/" in name:
        return "command, manual, completions"
    if name.startswith("relay/"):
        return "stubs" if name.endswith(".pyi") else "Python"
    return "metadata"


def report(path: Path) -> None:
    packed, unpacked = collections.Counter[str](), collections.Counter[str]()
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        for entry in wheel.infolist():
            packed[part_of(entry.filename)] += entry.compress_size
            unpacked[part_of(entry.filename)] += entry.file_size
    print(f"{'part':30} {'packed':>12} {'unpacked':>12}")
    for part, size in packed.most_common():
        print(f"{part:30} {size:>12,} {unpacked[part]:>12,}")
    print(f"{'together':30} {path.stat().st_size:>12,} {sum(unpacked.values()):>12,}")
    print(path)


if __name__ == "__main__":
    wheel, folder = map(Path, sys.argv[1:])
    folder.mkdir(exist_ok=True)
    pack(wheel, folder / wheel.name)
    report(folder / wheel.name)
    if (size := (folder / wheel.name).stat().st_size) > MOST_BYTES:
        sys.exit(f"pack_wheel: {wheel.name} has {size:,} bytes, more than {MOST_BYTES:,}")
