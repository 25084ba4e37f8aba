#!/usr/bin/env python3
"""Refuses words that have a standard term in the field, in sources, tests and documents.

tools/check_words.py              check the tree; one line per word found, exit code 1 if there is any
tools/check_words.py --self-test  check that every rule refuses its example and leaves its counterexample
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ENDINGS = (".h", ".cc", ".c", ".py", ".md", ".relay", ".rly", ".toml", ".sh", ".txt")
THINGS = (
    r"argument|array|base64|block|call|closure|constant|digit|directory|dtype|element.type|file"
    r"|folder|function|identifier|image|index|input|integer|intrinsic|leaf|letter|list|loop"
    r"|multiple|name|number|object|operator|parameter|pass|power.of.two|reference|register"
    r"|scalar|shape|single.store|size|statement|tensor|text|tuple|type|variable|vector"
)


@dataclass(frozen=True)
class Rule:
    """The field writes `standard` for what matches `found`; `where` is a pattern of paths."""

    found: str
    standard: str
    refused: str  # an example
    accepted: str  # what reads alike and is fine
    where: str = ""


RULES = [
    Rule(r"\bpictures?\b", "image, feature map", "one picture", "one image"),
    Rule(
        r"\b(first|second|third) cache\b",
        "L1, L2, L3",
        "the second cache",
        "the second cached value",
    ),
    Rule(r"\bturned around\b", "transposed", "it is turned around", "the turn around the corner"),
    Rule(r"\bgone into\b", "inlined", "calls are gone into", "calls into it"),
    Rule(r"\bare no more\b", "are eliminated", "they are no more", "they are no more than two"),
    Rule(r"\bdata decides?\b", "data-dependent", "sizes that data decide", "the database decides"),
    Rule(r"\bby formula\b", "analytic", "loops by formula", "the formula"),
    Rule(r"\bsquares?\b", "tile", "a square of results", "squared", where=r"winograd"),
    Rule(
        rf"(?<!there )\b(is|are) no ({THINGS})\b(?! left| more| memory)",
        "is not a ...",
        "this is no number",
        "there is no number",
    ),
    Rule(
        r"\bcompile[sd]? (it|them|all of it) away|\bcompiled away",
        "optimised away",
        "compiles it away",
        "compiles it",
    ),
    Rule(r"\bthe house\b", "repository, project", "words of the house", "the household"),
    Rule(r"\bbehind one another\b", "contiguous, concatenated", "behind one another", "behind it"),
    Rule(
        r"\b(arrays?|tensors?) without axes\b",
        "0-d",
        "a tensor without axes",
        "a reduction without axes",
    ),
    Rule(r"\bon every way\b", "on every path", "a value on every way", "every wayside"),
    Rule(r"(?<![%@\"])\bnobody\b(?!\")", "unused, no other", "nobody reads it", "%nobody"),
    Rule(r"\bat hand\b", "current, available", "the frame at hand", "by hand"),
    Rule(r"\bcomes? to nothing\b", "is eliminated", "it comes to nothing", "it comes to one"),
    Rule(r"\bturned in blocks\b", "transposed in blocks", "turned in blocks", "blocks in turn"),
    Rule(r"\btold apart\b", "distinguished", "they are told apart", "they are apart"),
    Rule(r"\bbeforehand\b", "ahead of time", "known beforehand", "known before"),
    Rule(r"\bslow, and right\b", "slow", "slow, and right", "slow and exact"),
    Rule(
        r"\b(columns|rows) (outside|within)\b(?! (the|it|of))",
        "outermost loop, inner loop",
        "tiles, columns outside",
        "columns outside the matrix",
    ),
    Rule(r"\bmoved to the border\b", "clamped", "it is moved to the border", "the border moved"),
    Rule(r"\b1 (inputs|arguments|outputs)\b", "1 input", "takes 1 inputs", "takes 11 inputs"),
    Rule(r"^\s*// ?[-=*]{4,}$", "a line of its own title", "// ------", "// ---- Field lists ----"),
]


def hits(path: str, text: str) -> list[tuple[int, Rule, str]]:
    """The line, the rule and the words of everything in a file that a rule refuses."""
    out = []
    rules = [r for r in RULES if re.search(r.where, path)]
    for number, line in enumerate(text.splitlines(), 1):
        for rule in rules:
            if m := re.search(rule.found, line, re.IGNORECASE):
                rest = line[m.end() :].lstrip()
                if rule.standard == "are eliminated" and rest.startswith("than"):
                    continue
                out.append((number, rule, m.group().strip()))
    return out


def self_test() -> int:
    wrong = [
        r.found
        for r in RULES
        if not any(h[1] is r for h in hits(r.where or "x", r.refused))
        or any(h[1] is r for h in hits(r.where or "x", r.accepted))
    ]
    print(
        f"check_words: rules that fail their examples: {wrong}"
        if wrong
        else "check_words: the self-test passes"
    )
    return 1 if wrong else 0


def main() -> int:
    if "--self-test" in sys.argv[1:]:
        return self_test()
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    count = 0
    for name in listed:
        if (
            not name.endswith(ENDINGS)
            or name == "tools/check_words.py"
            or not (root / name).is_file()
        ):
            continue
        for number, rule, words in hits(
            name, (root / name).read_text(encoding="utf-8", errors="replace")
        ):
            print(f"{name}:{number}: '{words}': the field says {rule.standard}")
            count += 1
    print(
        f"check_words: {count} words to replace"
        if count
        else f"check_words: {len(RULES)} rules hold"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
