"""Makes stubs of system libraries to link against: what a program finds in them is what glibc 2.28 had.

link_stubs.py COMPILER FOLDER

Each symbol has, of the versions that the library of this machine still serves, the last one that is
not newer; symbols that came later are missing, so that using one is an error of the linker. A stub
holds names only; programs load the library of the system.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NEWEST = (2, 28)


def symbols(objdump: str, library: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """The version of each symbol, and its section and size as objdump prints them."""
    table = subprocess.run([objdump, "-T", library], capture_output=True, text=True, check=True)
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for line in table.stdout.splitlines():
        entry = re.match(r"\w+ .{7} (\S+)\s+(\w+)\s+\(?GLIBC_([\d.]+)\)?\s+(\w+)$", line)
        if entry is None or entry[1] == "*ABS*" or entry[1] == "*UND*":
            continue
        version = tuple(map(int, entry[3].split(".")))
        if version <= NEWEST and version > found.get(entry[4], ((0,), ""))[0]:
            found[entry[4]] = (version, f"{entry[1]} {entry[2]}")
    return found


def answer(compiler: str, question: str) -> str:
    """Where the compiler finds something: `-print-file-name=libc.so`."""
    done = subprocess.run([compiler, question], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_stub(compiler: str, real: str, stub: Path) -> None:
    code = ['.section .note.GNU-stack,"",%progbits', ".text"]
    objdump = answer(compiler, "-print-prog-name=objdump")
    versions: dict[tuple[int, ...], list[str]] = {}
    for name, (version, place) in symbols(objdump, real).items() if real else ():
        section, size = place.split()
        versions.setdefault(version, []).append(name)
        code.append(f".globl {name}")
        if section == ".text":
            code.append(f".type {name}, %function\n{name}:")
        else:
            code.append(f".data\n.type {name}, %object\n.size {name}, 0x{size}")
            code.append(f"{name}: .skip 0x{size}\n.text")
    script = "".join(
        f"GLIBC_{'.'.join(map(str, version))} {{ {'; '.join(sorted(names))}; }};\n"
        for version, names in sorted(versions.items())
    )
    source, map_file = stub.with_suffix(".s"), stub.with_suffix(".map")
    source.write_text("\n".join(code) + "\n")
    map_file.write_text(script)
    subprocess.run(
        [compiler, "-shared", "-nostdlib", f"-Wl,-soname,{stub.name}", "-o", stub, source]
        + ([f"-Wl,--version-script={map_file}"] if script else []),
        check=True,
    )


def main(compiler: str, folder: Path) -> None:
    def place_of(file: str) -> str:
        return answer(compiler, f"-print-file-name={file}")

    folder.mkdir(parents=True, exist_ok=True)
    make_stub(compiler, place_of("libc.so.6"), folder / "libc.so.6")
    make_stub(compiler, place_of("libm.so.6"), folder / "libm.so.6")
    # What was in these before glibc 2.34 is found in the stub of libc; older systems load it from here.
    make_stub(compiler, "", folder / "libpthread.so.0")
    make_stub(compiler, "", folder / "libdl.so.2")
    loader = re.search(r"AS_NEEDED \( (\S+) \)", Path(place_of("libc.so")).read_text())[1]
    (folder / "libc.so").write_text(
        f"GROUP ( {folder}/libc.so.6 {place_of('libc_nonshared.a')} AS_NEEDED ( {loader} ) )\n"
    )
    for name in ("libm.so.6", "libpthread.so.0", "libdl.so.2"):
        link = folder / (name.partition(".so")[0] + ".so")
        link.unlink(missing_ok=True)
        link.symlink_to(name)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
