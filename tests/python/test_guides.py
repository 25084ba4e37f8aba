"""The code in the guides is code that is compiled and run: it stands word for word in a test."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Guide, language of its blocks, and the file that holds them.
GUIDES = [("adding_an_operator.md", "cpp", "src/driver/test/hard_shrink.h")]


def blocks(guide: str, language: str) -> list[str]:
    text = (ROOT / "docs" / guide).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.mark.parametrize(("guide", "language", "source"), GUIDES)
def test_code_of_a_guide_is_compiled(guide, language, source):
    def lines(text: str) -> list[str]:
        return [line.strip() for line in text.splitlines()]

    tested = "\n".join(lines((ROOT / source).read_text()))
    found = blocks(guide, language)
    assert found
    for block in found:
        assert "\n".join(lines(block)).strip() in tested, block
