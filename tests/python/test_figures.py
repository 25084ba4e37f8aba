"""The figures and transcripts of the documents: drawn from what is measured, run as they are printed."""

from __future__ import annotations

import contextlib
import io
import re
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from test_highlight import tool

ROOT = Path(__file__).resolve().parents[2]
figures = tool("figures")


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_is_what_the_script_draws(name):
    drawn = figures.FIGURES[name]()
    assert (ROOT / "docs/figures" / name).read_text() == drawn
    root = xml.fromstring(drawn)
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter():
        x, y = float(node.get("x", 0)), float(node.get("y", 0))
        assert x >= 0 and x + float(node.get("width", 0)) <= width, node.attrib
        assert y >= 0 and y + float(node.get("height", 0)) <= height, node.attrib
    documents = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    assert any(f"figures/{name})" in file.read_text() for file in documents)


def test_bars_have_the_numbers_of_the_table(monkeypatch):
    drawn = figures.peers()
    labels = re.findall(r'text-anchor="end">([0-9.]+)</text>', drawn)
    _, one, two = figures.table("| | ResNet-18 |")
    assert labels == [
        f"{float(v):.2f}" for pair in zip(one[1:], two[1:], strict=True) for v in pair
    ]
    # Another number makes another figure.
    changed = [row[:] for row in figures.table("| | ResNet-18 |")]
    changed[1][1] = "0.99"
    monkeypatch.setattr(figures, "table", lambda first: changed)
    assert figures.peers() != drawn


def test_the_readme_compares_by_measured_numbers():
    """Each number of its table is in docs/measurements.md."""
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Where Relay stands") : text.index("## Two commands")]
    rows = [row.split("|")[3] for row in section.split("\n") if row.startswith("| ")][1:]
    numbers = [n for row in rows for n in re.findall(r"\d+\.\d+", row)]
    measured = (ROOT / "docs/measurements.md").read_text()
    assert len(rows) == 6 and len(numbers) >= 10
    assert all(re.search(rf"(?<![\d.]){re.escape(n)}(?![\d.]*\d)", measured) for n in numbers)


def test_the_transcript_of_the_tools_is_true():
    text = (ROOT / "docs/tools.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "tools.md", "exec"), {})
    promised = re.findall(r"^# (.*)$", snippet, re.MULTILINE)
    assert printed.getvalue().splitlines() == promised and len(promised) == 4
