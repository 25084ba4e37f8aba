"""Time of a build and a test run by room: compilers, C++ tests, Python tests.

    tools/minutes.py                from ninja's logs in build/
    tools/minutes.py build/results  and from the JUnit files of a test run

A compilation counts from its start to its end, the last one of each object. Hits of a compile cache are
nearly free, so only a build without one shows the cost of the sources. Each of several concurrent
processes counts: divide by the number of processors.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SLOWEST = 5


def compilations(log: Path) -> dict[str, float]:
    """Object file to seconds."""
    seconds = {}
    for line in log.read_text().splitlines()[1:]:
        start, end, _, output, *_ = line.split("\t")
        if output.endswith(".o"):
            seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def lines(outputs: dict[str, float]) -> int:
    """Lines of the sources of these objects, and of all headers once."""
    sources = {ROOT / re.sub(r"CMakeFiles/[^/]+\.dir/", "", o).removesuffix(".o") for o in outputs}
    files = [*filter(Path.is_file, sources), *(ROOT / "src").rglob("*.h")]
    return sum(file.read_bytes().count(b"\n") for file in files)


def room_of(path: str) -> str:
    """`src/ops/...` belongs to `ops`; what lies outside of src to the first folder that it names."""
    parts = Path(path).parts
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def tests(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Room and seconds of each JUnit suite of the C++ tests, file and seconds of each Python test."""
    for file in sorted(folder.rglob("*.xml")):
        root = ElementTree.parse(file).getroot()
        if file.parent != folder:
            room = file.stem.removesuffix("_test").partition(".")[
                0
            ]  # `passes.2` is a part of `passes`
            yield "C++", room, float(root.get("time") or 0)
            continue
        for case in root.iter("testcase"):
            name = case.get("classname", "").rpartition(".")[2]
            yield "Python", name, float(case.get("time") or 0)


def table(columns: dict[str, dict[str, float]]) -> None:
    """Prints seconds by room, the dearest first, and their sums."""
    rooms = {room for column in columns.values() for room in column}
    rows = [(r, [c.get(r, 0.0) for c in columns.values()]) for r in rooms]
    rows = [r for r in rows if sum(r[1]) >= 0.5]
    rows.sort(key=lambda r: -sum(r[1]))
    rows.append(("together", [sum(c.values()) for c in columns.values()]))
    wide = max(len("together"), *(len(room) for room, _ in rows))
    print(f"\n{'seconds':{wide}}", *(f"{name:>16}" for name in columns), f"{'together':>10}")
    for room, values in rows:
        print(f"{room:{wide}}", *(f"{v:16.0f}" for v in values), f"{sum(values):10.0f}")


def main(arguments: list[str]) -> None:
    columns: dict[str, dict[str, float]] = {}
    sums: list[str] = []
    for log in sorted(ROOT.glob("build/*/.ninja_log")):
        times = compilations(log)
        if not times:
            continue
        by_room = columns.setdefault(f"build {log.parent.name}", defaultdict(float))
        for output, spent in times.items():
            by_room[room_of(output)] += spent
        seconds, thousands = sum(times.values()), lines(times) / 1000
        sums.append(
            f"compiler, {log.parent.name + ':':9} {seconds:5.0f} s, {len(times)} sources, "
            f"{seconds / thousands:.1f} s per thousand lines"
        )
    python: dict[str, float] = defaultdict(float)
    for folder in arguments:
        for kind, name, seconds in tests(Path(folder)):
            if kind == "Python":
                python[name] += seconds
            else:
                columns.setdefault("C++ tests", defaultdict(float))[name] += seconds
    if python:
        columns["Python tests"] = {"(tests/python)": sum(python.values())}
    if columns:
        table(columns)
        print()
    print(*sums, sep="\n")
    for name, seconds in sorted(python.items(), key=lambda item: -item[1])[:SLOWEST]:
        print(f"Python tests, {name + ':':32} {seconds:5.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
