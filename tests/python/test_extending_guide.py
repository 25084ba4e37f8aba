"""The code of docs/extending_python.md runs."""

import re
from pathlib import Path

from relay._register_op import RegisteredOp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending_python.md"


def test_the_code_of_the_page_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) >= 6
    # Functions that are read from their source need a file.
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    names = {"__name__": "page"}
    try:
        exec(compile(script.read_text(), str(script), "exec"), names)
    finally:
        for value in names.values():
            if isinstance(value, RegisteredOp):
                value.unregister()
