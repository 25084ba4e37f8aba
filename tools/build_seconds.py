"""How many seconds the compiler took for each build in build/, and for a thousand lines of C++.

Read from ninja's logs: the time from the start to the end of each compilation, the last one of
each object. What a compile cache had is nearly free, so only a build without one says what the
sources cost.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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


def main() -> None:
    for log in sorted(ROOT.glob("build/*/.ninja_log")):
        times = compilations(log)
        if not times:
            continue
        seconds, thousands = sum(times.values()), lines(times) / 1000
        print(
            f"compiler, {log.parent.name + ':':9} {seconds:5.0f} s, {len(times)} sources, "
            f"{seconds / thousands:.1f} s per thousand lines"
        )


if __name__ == "__main__":
    main()
