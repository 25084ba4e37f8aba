#!/usr/bin/env python3
"""Refuses words that have a standard term in the field, in sources, tests and documents.

tools/check_words.py              check the tree; one line per word found, exit code 1 if there is any
tools/check_words.py --count      count what the rules for documents would refuse in sources, by folder
tools/check_words.py --self-test  check that every rule refuses its example and leaves its counterexample

A rule of DOCUMENTS reads the prose of Markdown files: no code blocks, no inline code, and phrases that a
line break divides, too. In the folders of CLEAN these rules hold for sources, too. Add a folder to CLEAN
when --count finds nothing in it, and move a rule to RULES when --count finds nothing for it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
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
    Rule(r"\bone way at least\b", "on one path", "one way at least ends", "one path at least ends"),
    Rule(
        r"\bas large as data\b", "data-dependent", "as large as data says", "as large as the data"
    ),
]

# Folders whose sources are clean: the rules of DOCUMENTS hold for them, too.
CLEAN = (
    "benchmarks/",
    "cmake/",
    "examples/",
    "tools/",
)

# For the prose of documents, and for the sources of CLEAN.
DOCUMENTS = [
    Rule(r"\bone's own\b", "custom, your own", "a pass of one's own", "one owns it"),
    Rule(r"\b(its|their) kin\b", "and the like", "grad and its kin", "it is kind"),
    Rule(
        r"\bopen (sums?|sizes?|dimensions?|ax[ei]s|batch|rows|columns|lengths?|number of)\b",
        "symbolic",
        "columns of open sizes",
        "an open list",
    ),
    Rule(r"\b(is|are) taken to be\b", "is assumed to be", "it is taken to be 8", "it is taken"),
    Rule(
        r"\b(is|are|was|be) looked (at|into)\b",
        "is read, is examined",
        "nothing is looked at",
        "it looks up",
    ),
    Rule(r"\bkernels? that sums?\b", "reduction", "kernels that sum", "kernels that sort"),
    Rule(
        r"\b(is|are) turned\b(?! (off|on|into|up|out|down)\b)",
        "is transposed",
        "weights are turned, too",
        "it is turned off",
    ),
    Rule(
        r"\b(only )?(a|the) run (says?|tells?|decides?|finds?|knows)\b",
        "known only at run time",
        "sizes that only a run knows",
        "the run ends",
    ),
    Rule(r"\bdata (says?|tells?)\b", "data-dependent", "what data says", "the data are said to be"),
    Rule(
        r"\bwhat (is|are) there\b",
        "which ones exist",
        "what is there already",
        "what is their size",
    ),
    Rule(
        r"\bstands? (in|at|beside|behind|under|over|between|there|here|where|as (what|it is))\b(?!s)(?! for)",
        "is",
        "the row stands in its file",
        "a vector stands for numbers",
    ),
    Rule(
        r"\bbehind (the|a|an|each|every|all|its) (end|last|loop|call|kernel|pass|node|value|result|name"
        r"|operand|axis|operator|branch|function|step|softmax|product)\b",
        "after",
        "a call behind the loop",
        "the rules behind it",
    ),
    Rule(
        r"\bin the place of\b",
        "instead of",
        "in the place of x",
        "in place",
    ),
    Rule(
        r"(^|[.:] )(?-i:What [a-z])",
        "a subject that names the thing",
        "What is found is kept.",
        "What Relay is",
    ),
    Rule(
        r"\b(taken|takes?) (it |them )?apart\b",
        "flattened, destructured",
        "it is taken apart",
        "a part",
    ),
    Rule(r"\bwhoever\b", "the caller, the user", "whoever calls it", "who calls it"),
    Rule(
        r"\b(keeps?|kept) (its|their) digits\b", "accurate", "sums keep their digits", "16 digits"
    ),
    Rule(r"\bin turns\b", "alternately", "they run in turns", "in turn"),
    Rule(
        r"\b(is|are) told (of|that|which|what|the|by)\b",
        "receives",
        "it is told the types",
        "it tolls",
    ),
    Rule(r"\bwhat (it|they) (is|are) made of\b", "its parts", "what it is made of", "made of it"),
    Rule(
        r"\bwhat (became|becomes) of\b",
        "how ... is compiled",
        "what became of loops",
        "it becomes of",
    ),
    Rule(r"\bhomes?\b", "allocation, sub-buffer", "values have homes", "a homeomorphism"),
    Rule(r"\bpieces?\b", "part, sub-buffer, allocation", "pieces of memory", "piecewise"),
    Rule(r"\b(is|are|has|have) gone\b", "is dead, is eliminated", "the value is gone", "it goes"),
    Rule(
        r"\bsquares? of (results|rows|outputs|elements)\b",
        "tile",
        "squares of results",
        "sum of squares",
    ),
    Rule(
        r"\bcompose[sd]? (a |the |its )?(kernels?|PrimFuncs?)\b|\b(kernels?|PrimFuncs?) (is|are) composed\b",
        "lowered to TIR",
        "kernels are composed",
        "composed operators",
    ),
    Rule(r"\bto be had\b|\bto hand\b", "available", "it is to be had", "it has to be"),
    Rule(r"\b(seldom|hardly)\b", "rarely", "it is seldom run", "it is rarely run"),
    Rule(r"\bput right\b|\bmended?\b", "corrected, fixed", "it is put right", "put to the right"),
    Rule(r"\bmade (a)?new\b", "allocated each time", "it is made anew", "a new one is made"),
    Rule(
        r"\bfollows? one another\b",
        "contiguous, in succession",
        "they follow one another",
        "one follows",
    ),
    Rule(r"\bat (its|their) places?\b", "at its index", "elements at their places", "at its index"),
    Rule(
        r"\b(say|says|said) (of|what|which)\b",
        "states, names, lists",
        "the row says what it is",
        "it says so",
    ),
    Rule(r"\b(a|the) (thing|way) of\b", "a term that names it", "the way of a model", "by way of"),
    Rule(
        r"\bstays? (what|as) (it is|they are)\b|\bas it lies\b",
        "is unchanged, in place",
        "it stays what it is",
        "it stays in L2",
    ),
]


def prose(text: str) -> str:
    """A Markdown file with spaces for code blocks, and underscores for inline code."""
    fence = re.compile(r"^\s*```.*?^\s*```[^\n]*$", re.MULTILINE | re.DOTALL)
    text = fence.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return re.sub(r"`[^`]*`", lambda m: re.sub(r"[^\n]", "_", m[0]), text)


def document_hits(text: str) -> list[tuple[int, Rule, str]]:
    """What the rules for documents refuse in a text."""
    out = []
    for rule in DOCUMENTS:
        found = re.compile(rule.found.replace(" ", r"\s+"), re.IGNORECASE | re.MULTILINE)
        for m in found.finditer(text):
            out.append((text.count("\n", 0, m.start()) + 1, rule, " ".join(m.group().split())))
    return out


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
    if path.endswith(".md"):
        out += document_hits(prose(text))
    elif path.startswith(CLEAN):
        out += document_hits(text)
    return sorted(out, key=lambda hit: hit[0])


def self_test() -> int:
    def refuses(rule: Rule, text: str) -> bool:
        return any(h[1] is rule for h in hits(rule.where or "x.md", text))

    wrong = [
        r.found for r in RULES + DOCUMENTS if not refuses(r, r.refused) or refuses(r, r.accepted)
    ]
    for rule in DOCUMENTS:
        words = rule.refused.split()
        divided = "\n".join([" ".join(words[:-1]), words[-1]])
        if refuses(rule, f"`{rule.refused}`") or refuses(rule, f"```\n{rule.refused}\n```\n"):
            wrong.append(f"{rule.found} in code")
        if not refuses(rule, divided):
            wrong.append(f"{rule.found} across lines")
    print(
        f"check_words: rules that fail their examples: {wrong}"
        if wrong
        else "check_words: the self-test passes"
    )
    return 1 if wrong else 0


def count_in_sources(files: dict[str, str]) -> int:
    """Prints how often the rules for documents match in sources, by rule and by folder."""
    by_rule: Counter[str] = Counter()
    by_folder: Counter[str] = Counter()
    for name, text in files.items():
        if not name.endswith(".md"):
            for _, rule, _ in document_hits(text):
                by_rule[f"'{rule.refused}': the field says {rule.standard}"] += 1
                by_folder["/".join(name.split("/")[:2])] += 1
    for counter in (by_rule, by_folder):
        for what, count in counter.most_common():
            print(f"{count:6} {what}")
    return 0


def main() -> int:
    if "--self-test" in sys.argv[1:]:
        return self_test()
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = {
        name: (root / name).read_text(encoding="utf-8", errors="replace")
        for name in listed
        if name.endswith(ENDINGS) and name != "tools/check_words.py" and (root / name).is_file()
    }
    if "--count" in sys.argv[1:]:
        return count_in_sources(files)
    count = 0
    for name, text in files.items():
        for number, rule, words in hits(name, text):
            print(f"{name}:{number}: '{words}': the field says {rule.standard}")
            count += 1
    print(
        f"check_words: {count} words to replace"
        if count
        else f"check_words: {len(RULES) + len(DOCUMENTS)} rules hold"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
