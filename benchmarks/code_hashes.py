"""Tests whether a change of the compiler changes the code that it generates.

    python benchmarks/code_hashes.py --out before.txt       # with the build before the change
    python benchmarks/code_hashes.py --compare before.txt   # with the build after it: prints the differences

Compiles the benchmark models, in their small forms with constant and symbolic batch sizes and, on request, in
full, for targets that are the same on every machine, and prints a line for each: the hashes of the kernels'
code and of the whole artifact. Equal code needs no timing.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import models
import onnx

import relay

TARGETS = (
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "x86-64-v4 -mtune=znver4",
    "llvm -mcpu=sapphirerapids",
)


def section(artifact: Path, name: str) -> bytes:
    out = artifact.with_suffix(name)
    subprocess.run(
        ["objcopy", "-O", "binary", f"--only-section={name}", str(artifact), str(out)], check=True
    )
    return out.read_bytes()


def short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def forms(name: str, full: bool) -> Iterator[tuple[str, onnx.ModelProto]]:
    yield "small", models.build(name, small=True)
    yield "open", models.batched(models.build(name, small=True), "n")
    if full:
        yield "full", models.build(name)


def lines(only: str, folder: Path, full: bool) -> Iterator[str]:
    for name in models.MODELS:
        if only not in name:
            continue
        for form, model in forms(name, full):
            mod, params = relay.frontend.from_onnx(model)
            for target in TARGETS:
                file = folder / "model.so"
                relay.build(mod, target, params=params, cache=False).export_library(file)
                code, all_of_it = short(section(file, ".text")), short(file.read_bytes())
                yield f"{name}\t{form}\t{target}\t{code}\t{all_of_it}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--full", action="store_true", help="the models in full size, too: minutes")
    parser.add_argument("--out", type=Path, help="write the lines to this file")
    parser.add_argument("--compare", type=Path, help="compare with the lines of this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for line in lines(args.only, Path(folder), args.full):
            print(line, flush=True)
            made.append(line)
    if args.out:
        args.out.write_text("".join(f"{line}\n" for line in made))
    if args.compare:
        rows = [line.split("\t") for line in args.compare.read_text().splitlines()]
        before = {tuple(row[:3]): row[3] for row in rows}
        other = [
            line for line in made if before.get(tuple(line.split("\t")[:3])) != line.split("\t")[3]
        ]
        print(f"{len(other)} of {len(made)} have other code", *other, sep="\n  ")
        return 1 if other else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
