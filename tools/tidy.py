"""Runs clang-tidy on the sources of the release build, in parallel, within a time budget.

A file is skipped when it was found clean with the same text, headers and configuration: build/tidy/clean
holds one empty file per clean state. The order is shuffled by the commit, so that runs that stop early cover
different files. The compile commands are of a build in which each source is a unit of its own; it is
configured for them and never made.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
COMMANDS = ROOT / "build" / "tidy"
CLEAN = COMMANDS / "clean"


def dependencies() -> dict[str, list[Path]]:
    """Source file -> the files of the tree that its unit was compiled from, as ninja recorded them."""
    text = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, list[Path]] = {}
    for block in text.split("\n\n"):
        files = [(BUILD / line.strip()).resolve() for line in block.splitlines()[1:]]
        own = [file for file in files if file.is_relative_to(ROOT / "src")]
        found |= {str(file): own for file in own if file.suffix == ".cc"}
    return found


def state(files: list[Path]) -> str:
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for file in sorted(files):
        digest.update(str(file).encode())
        digest.update(file.read_bytes() if file.exists() else b"")
    return digest.hexdigest()


def tidy(source: str) -> tuple[str, bool, str]:
    done = subprocess.run(
        # The compile commands are GCC's: clang does not know all of its warning options.
        [
            "clang-tidy-14",
            "--quiet",
            "-p",
            str(COMMANDS),
            "--extra-arg=-Wno-unknown-warning-option",
            source,
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return source, done.returncode == 0, done.stdout + ("" if done.returncode == 0 else done.stderr)


def main(arguments: list[str]) -> int:
    budget = (
        float("inf") if "--all" in arguments else float(os.environ.get("RELAY_TIDY_SECONDS", "240"))
    )
    only = [str((ROOT / name).resolve()) for name in arguments if not name.startswith("--")]
    CLEAN.mkdir(parents=True, exist_ok=True)
    recorded = dependencies()
    options = ["-DRELAY_UNITY=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]
    subprocess.run(
        ["cmake", "--preset", "release", "-B", str(COMMANDS), *options],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    commands = json.loads((COMMANDS / "compile_commands.json").read_text())
    sources = {
        entry["file"] for entry in commands if Path(entry["file"]).is_relative_to(ROOT / "src")
    }
    sources = {source for source in sources if "/test/" not in source}
    if only:
        sources &= set(only)
    states = {source: state(recorded.get(source, [Path(source)])) for source in sources}
    waiting = sorted(source for source in sources if not (CLEAN / states[source]).exists())
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout
    random.Random(commit).shuffle(waiting)

    deadline = time.monotonic() + budget
    faulty = 0
    reached = 0

    def work(source: str) -> tuple[str, bool, str] | None:
        return tidy(source) if time.monotonic() < deadline else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(work, waiting):
            if result is None:
                continue
            reached += 1
            source, clean, output = result
            if clean:
                (CLEAN / states[source]).touch()
            else:
                faulty += 1
                print(f"-- {Path(source).relative_to(ROOT)}\n{output}", flush=True)
    unreached = len(waiting) - reached
    late = f", {unreached} not reached in {budget:.0f} s" if unreached else ""
    unchanged = len(sources) - len(waiting)
    print(f"clang-tidy: {unchanged} unchanged, {reached} looked at, {faulty} with findings{late}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
