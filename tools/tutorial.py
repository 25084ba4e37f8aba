"""Runs the chapters of docs/tutorial: every cell, in order, as a notebook would.

    tools/tutorial.py [--update] [CHAPTER.md ...]

A block ```text directly after a cell is the output of the cell and the value of its last expression; `...` in
it matches anything. --update writes the output into blocks that differ. Lines with ! are commands.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorial"
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?P<tags>:tags: [^\n]*\n\n?)?(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.M | re.S,
)


@dataclass
class Cell:
    """One cell: its code with its line in the file, and its expected output, if there is one."""

    line: int
    code: str
    tags: str
    output: str | None
    span: tuple[int, int]


def cells(path: Path) -> list[Cell]:
    """Returns the cells of a chapter."""
    text = path.read_text()
    return [
        Cell(
            text.count("\n", 0, m.start("code")) + 1,
            m["code"],
            m["tags"] or "",
            m["output"],
            m.span("output"),
        )
        for m in CELL.finditer(text)
    ]


def shell(command: str) -> None:
    """Runs a command of a cell and prints what it prints."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": path},
    )
    print(done.stdout, end="")


def as_python(code: str) -> str:
    return re.sub(r"^!(.*)$", lambda m: f"shell({m[1]!r})", code, flags=re.M)


def run(path: Path, folder: Path) -> list[tuple[Cell, str]]:
    """Runs a chapter within a folder; returns what each cell prints."""
    found = cells(path)
    lines: list[str] = []
    for cell in found:
        lines += [""] * (cell.line - 1 - len(lines)) + as_python(cell.code).splitlines()
    # Functions that are read from their source need a file; its lines are those of the chapter.
    name = re.sub(r"\W", "_", path.stem)
    page = folder / f"{name}.py"
    page.write_text("\n".join(lines) + "\n")
    module = types.ModuleType(name)
    module.__file__ = str(page)
    vars(module)["shell"] = shell
    before = os.getcwd()
    sys.modules[name] = module
    printed = []
    os.chdir(folder)
    try:
        for cell in found:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                run_cell(cell, page, vars(module))
            text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip("\n")
            printed.append((cell, f"{text}\n" if text else ""))
    finally:
        os.chdir(before)
        del sys.modules[name]
    return printed


def run_cell(cell: Cell, page: Path, names: dict) -> None:
    tree = ast.parse("\n" * (cell.line - 1) + as_python(cell.code), str(page))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(page), "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), str(page), "eval"), names)
        if value is not None:
            print(repr(value))


def fits(wanted: str, printed: str) -> bool:
    """Whether a cell prints what is wanted."""
    parts = [re.escape(part) for part in wanted.split("...")]
    return re.fullmatch(".*?".join(parts), printed, re.S) is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("chapters", nargs="*", type=Path)
    options = parser.parse_args()
    wrong = 0
    for path in options.chapters or sorted(FOLDER.glob("[0-9]*.md")):
        with tempfile.TemporaryDirectory() as folder:
            printed = run(path.resolve(), Path(folder))
        text = path.read_text()
        for cell, out in reversed(printed):
            if cell.output is None or fits(cell.output, out):
                continue
            wrong += 1
            if options.update:
                text = text[: cell.span[0]] + out + text[cell.span[1] :]
            else:
                print(f"{path}:{cell.line}: prints\n{out}")
        path.write_text(text)
    sys.exit(1 if wrong and not options.update else 0)


if __name__ == "__main__":
    main()
