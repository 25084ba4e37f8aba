"""Writes the tables of docs/python_function.md: which functions of NumPy and Python are supported.

python tools/numpy_table.py [--check]

A registered function is supported; the parameters of NumPy's signature that its composition lacks are
its limits; a function that is not supported has a row with the code to write instead.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from relay._function import numpy_catalogue, python_math, python_methods
from relay._function.numpy_registry import (
    ATTRIBUTES,
    METHOD_ROWS,
    ROWS,
    STORAGE,
    Row,
    found,
    missing,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/python_function.md"
BEGIN = "<!-- from here to the end of the section: tools/numpy_table.py -->\n"
# The heading of the section after the tables.
END = "\n## Functions of tutorials\n"
TEXT = """
The tables are for NumPy {numpy} and Python {python}. Elementwise functions take only their
operands: write `np.where(mask, np.f(x), x)` for `where=`. No function has `out=`: assign the
result. Functions of two operands have `np.f.outer`; sums, products and extremes have `reduce` and
`accumulate`. Storage arguments such as `order=`, `device=` and `copy=` are ignored: a tensor has
no storage order here.
"""


def versions() -> tuple[str, str]:
    """The versions of NumPy and Python whose names the tables list."""
    return ".".join(np.__version__.split(".")[:2]), "{}.{}".format(*sys.version_info)


def spaces() -> dict[str, tuple[str, list[str], dict[str, tuple[Row, object]]]]:
    """By namespace: its title, its public names, and the supported ones with the original of each."""
    numpy = {n: (row, found(n)) for n, row in ROWS.items() if "." not in n}
    linalg = {
        n.removeprefix("linalg."): (row, found(n))
        for n, row in ROWS.items()
        if n.startswith("linalg.")
    }
    of_array = dict(METHOD_ROWS) | {n: Row(f) for n, f in ATTRIBUTES.items()}
    of_array |= python_methods.CHANGING["ndarray"]
    containers = {}
    for of in (list, dict, str):
        name = of.__name__
        here = python_methods.READING[name] | python_methods.CHANGING.get(name, {})
        containers[name] = (
            f"Methods of `{name}`",
            _members(of),
            {n: (r, None) for n, r in here.items()},
        )
    return {
        "numpy": ("`numpy`", _functions(np), numpy),
        "numpy.linalg": ("`numpy.linalg`", _functions(np.linalg), linalg),
        "ndarray": (
            "Methods and attributes of arrays",
            _members(np.ndarray),
            {n: (row, getattr(np.ndarray, n, None)) for n, row in of_array.items()},
        ),
        "math": (
            "`math`",
            _functions(math),
            {n: (row, None) for n, row in python_math.MATH.items()},
        ),
        **containers,
    }


def _functions(of: object) -> list[str]:
    """The public functions of a module."""
    names = (n for n in dir(of) if not n.startswith("_") and n != "row_stack")
    made = ((n, getattr(of, n)) for n in names)
    return [n for n, f in made if callable(f) and not isinstance(f, type)]


def _members(of: type) -> list[str]:
    return [n for n in dir(of) if not n.startswith("_")]


def limits(row: Row, original: object) -> str:
    """The limits of a supported function; empty if it has none."""
    parts = [row.only] if row.only else []
    if isinstance(original, Callable) and not isinstance(original, np.ufunc):
        lacks = [n for n in missing(row.function, original) if n not in STORAGE and n != "self"]
        if lacks:
            parts.append("all but " + ", ".join(f"`{n}=`" for n in lacks))
    return "; ".join(parts)


def table() -> str:
    """Returns the tables of all spaces."""
    out = [TEXT.format(numpy=versions()[0], python=versions()[1])]
    for space, (title, names, here) in spaces().items():
        whole, partly = [], {}
        for name in sorted(here):
            if name in names:
                text = limits(*here[name])
                (partly.setdefault(text, []) if text else whole).append(name)
        absent: dict[str, list[str]] = {}
        for name in sorted(numpy_catalogue.ABSENT[space]):
            if name in names:
                absent.setdefault(numpy_catalogue.ABSENT[space][name], []).append(name)
        out.append(
            f"### {title}\n\n**Supported**: {_listed(whole)}\n" if whole else f"### {title}\n"
        )
        if partly:
            rows = "".join(f"| {_listed(n)} | {text} |\n" for text, n in sorted(partly.items()))
            out.append(f"| partly supported | limits |\n|---|---|\n{rows}")
        if absent:
            rows = "".join(f"| {_listed(n)} | {text} |\n" for text, n in sorted(absent.items()))
            out.append(f"| not supported | write instead |\n|---|---|\n{rows}")
    return "\n".join(out)


def _listed(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def page(text: str) -> str:
    """Returns the page with current tables."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def main(argv: list[str]) -> int:
    """Writes the page; with --check, returns 1 if it is not current."""
    text = PAGE.read_text()
    if argv == ["--check"]:
        return int(text != page(text))
    PAGE.write_text(page(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
