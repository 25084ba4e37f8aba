"""docs/pytorch.md: its snippets run, one after the other."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parents[2] / "docs/pytorch.md"


def test_the_snippets_run(capsys):
    torch._dynamo.reset()
    torch.manual_seed(0)
    text = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    assert text.count("\n") > 40
    exec(compile(text, str(PAGE), "exec"), {"__name__": "guide"})
    assert "linalg_svd" in capsys.readouterr().out
    torch._dynamo.reset()
