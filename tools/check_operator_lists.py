#!/usr/bin/env python3
"""Refuses lists of operators' names in the rooms that meet operators as rows of the registry.

tools/check_operator_lists.py              check the tree; one line per list, exit code 1 if there is any
tools/check_operator_lists.py --self-test  check the checker on texts with planted lists

Passes and analyses read columns of operators' rows (src/ir/op.h, src/ir/op_facts.h), which operators from
outside fill, too. A list is an initializer, or a statement, that holds more than three names of operators.
Tests may hold lists.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from check_instruction_sets import without_comments

ROOMS = ("passes", "analysis")
MOST = 3
# In rows: `.name = "abs"`, `{.name = "abs"`, `pool_row("nn.max_pool2d"`.
ROW = re.compile(r'\.name = "([\w.]+)"|\brow\(\s*"([\w.]+)"|_row(?:<\w+>)?\(\s*"([\w.]+)"')
TOKEN = re.compile(r'"((?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])\'|[{};]')


def operator_names(texts: list[str]) -> set[str]:
    """The names in the rows of these sources."""
    return {next(filter(None, m.groups())) for text in texts for m in ROW.finditer(text)}


def lists(text: str, names: set[str]) -> list[tuple[int, list[str]]]:
    """The line on which each list begins, and the names in it; of nested lists the outermost."""
    text = without_comments(text)
    found: list[tuple[int, int, set[str]]] = []  # begin, end, names
    # An open brace: where it begins, its names, those of its current statement, whether it holds statements.
    stack: list[list] = [[0, set(), set(), True]]
    begin = 0  # of the current statement

    def take(first: int, last: int, held: set[str]) -> None:
        if len(held) > MOST:
            found.append((first, last, set(held)))

    for m in TOKEN.finditer(text):
        top = stack[-1]
        if m[0] == "{":
            stack.append([m.start(), set(), set(), False])
        elif m[0] == "}" and len(stack) > 1:
            first, held, statement, is_body = stack.pop()
            take(first, m.end(), statement if is_body else held)
            if not is_body:  # an initializer is part of the statement around it
                stack[-1][1] |= held
                stack[-1][2] |= held
            else:
                stack[-1][2].clear()
        elif m[0] == ";":
            take(begin, m.end(), top[2])
            top[2].clear()
            top[3] = True
            begin = m.end()
        elif m[1] in names:
            if not top[2]:
                begin = m.start()
            top[1].add(m[1])
            top[2].add(m[1])
    outermost = [
        f
        for f in found
        if not any(o is not f and o[0] <= f[0] and f[1] <= o[1] and o[2] >= f[2] for o in found)
    ]
    return sorted((text.count("\n", 0, first) + 1, sorted(held)) for first, _, held in outermost)


def self_test() -> list[str]:
    """What is not noticed of planted lists, and what is noticed wrongly."""
    rows = [
        '{.name = "abs", .doc = ""}',
        'pool_row("nn.pool", 1)',
        'row("exp")',
        'f({\n.name = "a.b",',
    ] + [f'{{.name = "{n}"}}' for n in ("add", "sub")]
    names = operator_names(rows)
    problems = [
        f"{n} is not read as a row's name"
        for n in ("abs", "nn.pool", "exp", "a.b", "add", "sub")
        if n not in names
    ]
    planted = [
        'const char* kNames[] = {"abs", "exp", "add", "sub"};',
        'void f() { for (auto op : {"abs", "exp", "add", "sub"}) g(op); }',
        'Row rows[] = {{"abs", 1}, {"exp", 2}, {"add", 3}, {"a.b", 4}};',
        'bool f(S n) { return n == "abs" || n == "exp" || n == "add" || n == "nn.pool"; }',
        'map m{{"abs", [] { return 1; }}, {"exp", [] { return 2; }}, {"add", h}, {"sub", h}};',
    ]
    accepted = [
        'const char* kNames[] = {"abs", "exp", "add"};',
        'const char* kNames[] = {"abs", "exp", "add", "axis", "data"};',
        '// {"abs", "exp", "add", "sub"}\n',
        'void f() { g("abs"); g("exp"); g("add"); g("sub"); }',
        'void f() { if (a) { g("abs"); } g("exp"); } void h() { g("add"); g("sub"); }',
    ]
    problems += [f"not noticed: {t}" for t in planted if not lists(t, names)]
    problems += [f"noticed wrongly: {t}" for t in accepted if lists(t, names)]
    return problems


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        problems = self_test()
        for problem in problems:
            print(f"check_operator_lists: {problem}")
        return bool(problems)
    source = Path(__file__).resolve().parent.parent / "src"
    names = operator_names(
        [
            f.read_text()
            for room in ("ops", "strategies")
            for f in sorted((source / room).rglob("*.cc"))
            if "test" not in f.parts
        ]
    )
    if len(names) < 300:
        print(
            f"check_operator_lists: only {len(names)} operators are read from rows",
            file=sys.stderr,
        )
        return 1
    failed = False
    for room in ROOMS:
        for f in sorted((source / room).rglob("*")):
            if f.suffix not in (".h", ".cc", ".def") or "test" in f.parts:
                continue
            for line, held in lists(f.read_text(), names):
                print(f"src/{f.relative_to(source)}:{line}: a list of operators: {', '.join(held)}")
                failed = True
    if failed:
        print(
            "passes and analyses read columns of operators' rows: src/ir/op_facts.h",
            file=sys.stderr,
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
