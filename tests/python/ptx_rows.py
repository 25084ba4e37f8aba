"""The kernels of every operator's examples and of the small models for CUDA: what ptxas makes of them.

    .venv/bin/python tests/python/ptx_rows.py [--arch ARCH] [--own] [OPERATOR or MODEL ...]

compiles and writes ptx_rows.json and the section of docs/devices.md; --own: in the examples' dtypes only.
ptxas is PyPI's nvidia-cuda-nvcc (the extra `cuda-test`), or that in PATH; no GPU is needed.

ptx_rows.json has by operator and dtype, and by model, numbers of the kernels: launches, most registers of an
item, and launches that spill; or the reason why the call is refused.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import device_rows
import onnx
from command_line import relay as relay_command

sys.path.insert(0, str(device_rows.ROOT / "benchmarks"))
import models

AGREED = Path(__file__).with_name("ptx_rows.json")
BEGIN, END = (
    "<!-- ptx: written by tests/python/ptx_rows.py -->",
    "<!-- end of ptx -->",
)
ARCH = "sm_90"
Row = dict[str, int] | str


def ptxas() -> str:
    """The path of ptxas; empty where there is none."""
    for folder in map(Path, sys.path):
        for found in folder.glob("nvidia/cu*/bin/ptxas"):
            return str(found)
    return shutil.which("ptxas") or ""


def sources(artifact: bytes) -> Iterator[str]:
    """The PTX of each kernel in a compiled file (src/runtime/device_source.h)."""
    magic, at = b"RLYDEV1\n", 0
    while (at := artifact.find(magic, at)) >= 0:
        at += len(magic)
        size = int.from_bytes(artifact[at : at + 8], "little")
        text = artifact[at + 8 : at + 8 + size].decode(errors="replace")
        if ".target sm_" in text:
            yield re.sub(r"\A(//(workspace|launch) .*\n)*", "", text)


def assembled(ptx: str, arch: str = ARCH) -> dict[str, int]:
    """What ptxas says of the launches of a kernel. Raises AssertionError with its message for a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ptx")
        path.write_text(ptx)
        done = subprocess.run(
            [ptxas(), "-v", f"-arch={arch}", str(path), "-o", str(path.with_suffix(".cubin"))],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr + "\n" + ptx
    # Functions that kernels call have no line of registers.
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)]
    spills = re.findall(r"(\d+) bytes spill stores", done.stderr)
    return {
        "launches": len(registers),
        "registers": max(registers),
        "spilling": sum(n != "0" for n in spills),
    }


def kernels_of(program: Path, arch: str = ARCH) -> dict[str, int]:
    """All kernels of a program that is compiled for the device."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "program.so")
        relay_command(
            "compile", program, "--target", f"native; cuda -arch={arch}", "-o", out, timeout=600
        )
        rows = [assembled(ptx, arch) for ptx in sources(out.read_bytes())]
    return {
        "launches": sum(r["launches"] for r in rows),
        "registers": max((r["registers"] for r in rows), default=0),
        "spilling": sum(r["spilling"] for r in rows),
    }


def of_operator(name: str, arch: str = ARCH, own: bool = False) -> dict[str, Row]:
    """By dtype."""
    out: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        for dtype, mod, _ in device_rows.programs(name, own):
            program = Path(folder, "program.relay")
            program.write_text(device_rows.on_device(mod, "cuda:0").astext())
            try:
                out[dtype] = kernels_of(program, arch)
            except AssertionError as e:
                first = str(e).splitlines()[0]
                if not first.startswith("error[E0"):
                    raise
                out[dtype] = device_rows.reason(str(e))
    return out


def of_model(name: str, arch: str = ARCH) -> dict[str, Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "model.onnx")
        onnx.save(models.build(name, small=True), program)
        return {"small": kernels_of(program, arch)}


def row_of(name: str, arch: str = ARCH, own: bool = False) -> dict[str, Row]:
    return of_model(name, arch) if name in models.MODELS else of_operator(name, arch, own)


def section(agreed: dict[str, dict[str, Row]]) -> str:
    """The part of docs/devices.md that says what ptxas makes of the kernels."""
    lines = [
        BEGIN,
        "",
        "| kernels of | launches | most registers | launches that spill |",
        "|---|---|---|---|",
    ]
    groups = device_rows.families() | {f"{name}, small": [name] for name in models.MODELS}
    for group, names in groups.items():
        rows = [r for n in names for r in agreed.get(n, {}).values() if isinstance(r, dict)]
        if rows:
            launches, spilling = (sum(r[key] for r in rows) for key in ("launches", "spilling"))
            registers = max(r["registers"] for r in rows)
            lines.append(f"| {group} | {launches} | {registers} | {spilling or ''} |")
    return "\n".join([*lines, "", END])


def page(agreed: dict[str, dict[str, Row]]) -> str:
    return device_rows.with_section(BEGIN, section(agreed), END)


def read() -> dict[str, dict[str, Row]]:
    return json.loads(AGREED.read_text()) if AGREED.exists() else {}


def main(names: Sequence[str]) -> int:
    agreed, failed = read(), []
    arch = names[names.index("--arch") + 1] if "--arch" in names else ARCH
    own = "--own" in names
    names = [n for n in names if n not in ("--own", "--arch", arch)]
    every = [n for family in device_rows.families().values() for n in family]
    for name in names or [*every, *models.MODELS]:
        try:
            row = row_of(name, arch, own)
        except Exception as e:
            failed.append(name)
            print(f"{name}: {type(e).__name__}: {str(e)[:600]}", file=sys.stderr, flush=True)
            continue
        for dtype, what in row.items():
            if isinstance(what, str) or what["spilling"]:
                print(f"{name}, {dtype}: {what}", flush=True)
        if arch == ARCH:
            agreed[name] = agreed.get(name, {}) | row
            AGREED.write_text(json.dumps(dict(sorted(agreed.items())), indent=1) + "\n")
    if arch == ARCH:
        device_rows.PAGE.write_text(page(agreed))
    print(f"refused by ptxas: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
