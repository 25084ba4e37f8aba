"""Programs for other architectures, run under QEMU by relay-run: what the tests of targets share."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import relay

PACKAGE = Path(relay.__file__).parent
ROOT = Path(__file__).resolve().parents[2]


def arch_of(target: str) -> str:
    """The architecture of a target whose first word is the architecture, or a level of it."""
    first = target.split()[0].partition("-")[0]
    levels = {"rv64gc": "riscv64", "rv64gcv": "riscv64", "armv7": "armv7"}
    return levels.get(first, "aarch64" if first.startswith("armv") else first)


def emulator_of(arch: str) -> str:
    return {"armv7": "qemu-arm"}.get(arch, f"qemu-{arch}")


def relay_run(target: str) -> Path | None:
    """The program relay-run for a target such as aarch64-linux, where it is built."""
    for folder in (PACKAGE, ROOT / "build/release"):
        program = folder / "targets" / target / "relay-run"
        if program.exists():
            return program
    return None


def lacks(target: str) -> str:
    """Why programs for the target cannot be run here, "" when they can."""
    emulator = emulator_of(arch_of(target))
    if shutil.which(emulator) is None:
        return f"{emulator} is not installed (qemu-user)"
    return "" if relay_run(target) else f"`make targets` has not built relay-run for {target}"


def emulator_ends_at_conversions() -> bool:
    """QEMU before 8.0 fails an assertion of its own at some vector conversions of floats to integers."""
    if shutil.which("qemu-riscv64") is None:
        return False
    text = subprocess.run(["qemu-riscv64", "--version"], capture_output=True, text=True).stdout
    return int(re.search(r"version (\d+)", text)[1]) < 8


class NotEmulatedError(Exception):
    """A program whose values no .npy file holds, or that needs more libraries than the runtime."""


class EmulatedError(Exception):
    """What relay-run says went wrong."""


class Emulated:
    """A program that is compiled for a target and called like one that is built for this machine."""

    def __init__(self, mod: Any, target: str, **options: Any) -> None:
        self.arch = arch_of(target)
        self.program = relay.build(mod, target=target, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = tuple(kwargs[slot.name] for slot in self.program.input_info())
        with tempfile.TemporaryDirectory() as folder:
            return self._run(Path(folder), args)

    def _run(self, folder: Path, args: tuple) -> Any:
        self.program.export_library(folder / "model.so")
        words = []
        for i, (slot, arg) in enumerate(zip(self.program.input_info(), args, strict=True)):
            if arg is None or isinstance(arg, list | tuple):
                raise NotEmulatedError("an input that is not a tensor")
            array = np.asarray(arg)
            if array.dtype == object and all(isinstance(x, str) for x in array.flat):
                array = array.astype(str)
            if array.dtype == ml_dtypes.bfloat16:
                array = array.view(np.uint16)
            if array.dtype.kind not in "biufU" or array.dtype.isbuiltin == 2:
                raise NotEmulatedError(f"an input of {array.dtype}")
            np.save(folder / f"{i}.npy", array)
            words += ["--input", f"{slot.name}={folder / f'{i}.npy'}"]
        done = subprocess.run(
            [emulator_of(self.arch), relay_run(f"{self.arch}-linux"), folder / "model.so", *words,
             "--output", folder / "out", "--report", folder / "report", "--repeat", "0",
             "--threads", "2"],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        if done.returncode != 0:
            if "E0618" in done.stderr or "is not made of tensors" in done.stderr:
                raise NotEmulatedError(done.stderr)
            raise EmulatedError(f"{done.returncode}: {done.stderr}")
        outputs = []
        for line in (folder / "report").read_text().splitlines():
            if not line.startswith("output "):
                continue
            _, dtype, file = line.split(" ", 2)
            array = np.load(folder / "out" / file)
            if dtype == "bfloat16":
                array = array.view(ml_dtypes.bfloat16)
            elif dtype == "string":
                array = array.astype(object)
            elif dtype != str(array.dtype):
                raise NotEmulatedError(f"an output of {dtype}")
            outputs.append(array)
        return tuple(outputs) if len(outputs) != 1 else outputs[0]
