#!/usr/bin/env python3
"""Finds cold code that the linker merged although the frames differ.

The compiler splits the cold parts of a function (mostly `throw`) into a separate section that begins
within the function's frame. LLD merges sections of equal code (--icf), whatever their frames are: an
exception that is thrown there finds the frame of another function, and ends the process. Sections with
cleanups are never merged. A source that this program names must be compiled without splitting, with
-fno-reorder-blocks-and-partition, as cmake/portable/allocation.cc is.

    tools/folded_parts.py build/release     # links the module once more; fails if it finds one
"""

from __future__ import annotations

import functools
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

MODULE = "src/bind/_core.abi3.so"


def folded(build: Path) -> list[list[tuple[str, str]]]:
    """The sections that became one, each as its file and name, in groups."""
    steps = subprocess.run(
        ["ninja", "-C", build, "-t", "commands", MODULE], capture_output=True, text=True, check=True
    ).stdout
    (link,) = (line for line in steps.splitlines() if f"-o {MODULE} " in line)
    command = shlex.split(link.removeprefix(": && ").partition(" && ")[0])
    with tempfile.TemporaryDirectory() as folder:
        command[command.index(MODULE)] = f"{folder}/module.so"
        command.append("-Wl,--print-icf-sections")
        out = subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout
    groups: list[list[tuple[str, str]]] = []
    for what, file, section in re.findall(
        r"^\s*(selected|removing identical) section (.*?):\((.*)\)$", out, re.MULTILINE
    ):
        if what == "selected":
            groups.append([])
        groups[-1].append((file, section))
    return groups


class Object:
    """The sections of a file: their frames, and the functions that they call."""

    def __init__(self, content: bytes) -> None:
        self.elf = ELFFile(io.BytesIO(content))
        self.symbols = self.elf.get_section_by_name(".symtab")
        self.frames: dict[str, bytes] = {}
        frames = self.elf.get_section_by_name(".eh_frame")
        moved = self.elf.get_section_by_name(".rela.eh_frame")
        if frames is None or moved is None:
            return
        data = frames.data()
        symbols = {r["r_offset"]: r["r_info_sym"] for r in moved.iter_relocations()}
        at = 0
        while at + 8 <= len(data):
            size = int.from_bytes(data[at : at + 4], "little")
            # Length, distance to what frames have in common; then place, its length, and the rules.
            if int.from_bytes(data[at + 4 : at + 8], "little") and at + 8 in symbols:
                shown = self.symbols.get_symbol(symbols[at + 8])
                name = self.elf.get_section(shown["st_shndx"]).name
                self.frames[name] = data[at + 16 : at + 4 + size].rstrip(b"\0")
            at += 4 + size

    def calls(self, section: str) -> set[str]:
        moved = self.elf.get_section_by_name(f".rela{section}")
        if moved is None:
            return set()
        return {self.symbols.get_symbol(r["r_info_sym"]).name for r in moved.iter_relocations()}


def main() -> int:
    build = Path(sys.argv[1]).resolve()

    @functools.cache
    def read(file: str) -> Object:
        archive = re.fullmatch(r"(.*\.a)\((.*)\)", file)
        if archive is None:
            return Object((build / file).read_bytes())
        member = ["ar", "p", archive[1], archive[2]]
        return Object(subprocess.run(member, cwd=build, capture_output=True, check=True).stdout)

    looked_at, found = 0, 0
    for group in folded(build):
        parts = [(file, section) for file, section in group if ".text.unlikely" in section]
        if len(parts) < 2:
            continue
        looked_at += 1
        frames = {read(file).frames.get(section) for file, section in parts}
        file, section = parts[0]
        # What calls nothing, or ends the process, throws nothing.
        if len(frames) > 1 and read(file).calls(section) - {"abort", "__stack_chk_fail"}:
            found += 1
            print("made one, with frames that differ:", *(f"  {f} {s}" for f, s in parts), sep="\n")
    print(f"{looked_at} groups of such parts, {found} with frames that differ")
    return 1 if found or not looked_at else 0


if __name__ == "__main__":
    sys.exit(main())
