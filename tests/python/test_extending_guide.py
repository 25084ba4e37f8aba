"""The code of docs/extending_python.md runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending_python.md"


@pytest.mark.usefixtures("operators_as_before")
def test_the_code_of_the_page_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) >= 6
    # Functions that are read from their source need a file.
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "page"})
