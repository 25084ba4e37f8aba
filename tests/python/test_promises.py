"""docs/testing.md names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`((?:tests|src)/[^`]*?)::([^`]*)`")


def names_of_tests(path):
    text = (ROOT / path).read_text()
    if path.endswith(".cc"):
        return {
            f"{suite}.{name}" for suite, name in re.findall(r"^TEST\((\w+), (\w+)\)", text, re.M)
        }
    found = (node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return {name for name in found if name.startswith("test_")}


def test_each_test_that_is_named_exists():
    page = (ROOT / "docs" / "testing.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and "| tests |" not in line]
    assert len(rows) > 40
    for row in rows:
        promise = row.split("|")[1].strip()
        named = NAMED.findall(row)
        assert named and row.count("::") == len(named), promise
        for path, name in named:
            assert name in names_of_tests(path), f"{promise}: {path} has no {name}"
