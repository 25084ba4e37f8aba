"""Writes the table of docs/tflite.md: operators, and the elements for which each is compared with LiteRT.

usage: tflite_table.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/tflite.md"
BEGIN, END = "<!-- table: tools/tflite_table.py -->\n", "<!-- end of table -->\n"


def table() -> str:
    """The rows of the page."""
    sys.path.insert(0, str(ROOT / "tests/python"))
    from tflite_cases import CASES, COMPARED_ELSEWHERE, NOT_BY_LITERT

    import relay

    kinds: dict[str, list[str]] = {name: list(of) for name, of in COMPARED_ELSEWHERE.items()}
    for case in CASES:
        for name, found in case.compared().items():
            of = kinds.setdefault(name, [])
            of += [kind for kind in dict.fromkeys(found) if kind not in of]
        of = kinds.setdefault(case.operator, [])
        of += [kind for kind in case.other_kinds() if kind not in of]
    lines = ["", "| operator | compared with LiteRT for |", "|---|---|"]
    imported = sorted(name for _, name in relay.frontend.tflite.operators())
    rows = {name: NOT_BY_LITERT.get(name) or ", ".join(kinds[name]) for name in imported}
    lines += [f"| `{name}` | {found} |" for name, found in rows.items()]
    return "\n".join(lines) + "\n\n"


def main() -> int:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    page = before + BEGIN + table() + END + rest.split(END)[1]
    if "--check" in sys.argv:
        return int(page != text)
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
