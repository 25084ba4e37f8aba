"""Adds up the JUnit files of a folder to `N passed, N failed, N skipped`; fails if one failed or none ran.

Before it stand the properties that tests record with a name of two words and more, such as which levels of
generated code this machine ran.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def main(folder: str) -> int:
    total = failed = skipped = 0
    said: dict[str, str] = {}
    for file in sorted(Path(folder).rglob("*.xml")):
        root = ElementTree.parse(file).getroot()
        said |= {p.get("name", ""): p.get("value", "") for p in root.iter("property")}
        for suite in root.iter("testsuite"):
            total += int(suite.get("tests", 0))
            failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    for name, value in said.items():
        if " " in name:
            print(f"{name}: {value}")
    print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 0 if total and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
