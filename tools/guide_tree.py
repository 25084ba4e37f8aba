"""Makes the files that the code blocks of a guide add to the tree.

    guide_tree.py OUT GUIDE...   writes under OUT the files that the guides add or change; prints their names

A block that begins with ```cpp PATH is a part of the new file PATH, in the order of the text. A block that
begins with ```diff PATH has added lines between lines of PATH, which must occur there exactly once.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(cpp|diff) (\S+)\n(.*?)^```$", re.M | re.S)


@dataclass
class Places:
    """Texts of new files, and of changed files with the lines that are added."""

    new: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)


def inserted(text: str, hunk: list[str], path: str) -> str:
    """The text with the hunk's new lines where its old ones stand."""
    old = "".join(line[1:] + "\n" for line in hunk if line[0] == " ")
    new = "".join(line[1:] + "\n" for line in hunk)
    if ("\n" + text).count("\n" + old) != 1:
        sys.exit(f"the lines around what is added are not in {path}, or more than once:\n{old}")
    return ("\n" + text).replace("\n" + old, "\n" + new)[1:]


def places(guide: Path) -> Places:
    """What one guide adds."""
    out = Places()
    for kind, path, block in BLOCK.findall(guide.read_text()):
        if kind == "cpp":
            if (ROOT / path).exists():
                sys.exit(f"{guide.name} adds {path}, which is there")
            out.new[path] = f"{out.new[path]}\n{block}" if path in out.new else block
            continue
        hunk = [line or " " for line in block.splitlines()]
        text = out.changed.get(path) or (ROOT / path).read_text()
        out.changed[path] = inserted(text, hunk, path)
        out.lines.setdefault(path, []).extend(line[1:] for line in hunk if line[0] == "+")
    return out


def main(target: str, *guides: str) -> None:
    for guide in guides:
        found = places(Path(guide))
        for path, text in (found.new | found.changed).items():
            print(path)
            file = Path(target) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists() or file.read_text() != text:
                file.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
