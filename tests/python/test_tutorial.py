"""The tutorial does what it says: every cell runs, and prints what stands under it."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import tutorial  # noqa: E402

CHAPTERS = sorted(tutorial.FOLDER.glob("[0-9]*.md"))


@pytest.mark.usefixtures("operators_as_before")
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.stem)
def test_a_chapter(chapter, tmp_path):
    printed = tutorial.run(chapter, tmp_path)
    assert len(printed) >= 8
    for cell, out in printed:
        assert cell.output is None or tutorial.fits(cell.output, out), (cell.line, out)


def test_every_cell_is_found_and_says_what_it_prints():
    for chapter in CHAPTERS:
        text = chapter.read_text()
        found = tutorial.cells(chapter)
        assert len(found) == text.count("```{code-cell}") > 0
        # Each text block belongs to a cell, which leaves it to the block to show the output.
        assert text.count("```text\n") == sum(cell.output is not None for cell in found)
        assert all("remove-output" in c.tags for c in found if c.output is not None), chapter
        assert len(text.split("\n---\n", 1)[1].split("\n# ", 2)) == 2, "one title"


def test_the_index_names_every_chapter():
    linked = re.findall(r"\]\((\d\w+\.md)\)", (tutorial.FOLDER / "index.md").read_text())
    assert linked == [chapter.name for chapter in CHAPTERS] and len(CHAPTERS) == 11


def test_a_compiler_in_500_lines():
    (chapter,) = [c for c in CHAPTERS if "500" in c.stem]
    lines = [line for cell in tutorial.cells(chapter) for line in cell.code.splitlines()]
    assert len(lines) <= 500
    assert not re.search(r"^\s*(import|from) relay", "\n".join(lines), re.M)


def test_a_cell_that_prints_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```{code-cell} ipython3\nx = 2\nx + 1\n```\n\n```text\n4\n```\n")
    ((cell, out),) = tutorial.run(page, tmp_path)
    assert out == "3\n" and not tutorial.fits(cell.output, out)
    assert tutorial.fits("...\n", out) and cell.line == 2


def test_every_page_is_on_the_site():
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages == set(re.findall(r"^(\w+)$", index, re.M))
