"""The examples in Python, and the snippets of docs/python_function.md and the README, do what they say."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from function_oracle import agree

ROOT = Path(__file__).resolve().parents[2]


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


T = load(ROOT / "examples" / "python" / "tutorials.py")
rng = np.random.default_rng(5)


def f32(*shape):
    return rng.standard_normal(shape).astype("float32")


symmetric = f32(6, 6)
CASES = {
    "life": [((rng.random((9, 7)) > 0.5).astype("int32"),)],
    "mandelbrot": [(*np.meshgrid(np.linspace(-2, 1, 7), np.linspace(-1, 1, 5)), 12)],
    "kmeans": [(f32(20, 3), f32(4, 3), 5)],
    "power_iteration": [(symmetric @ symmetric.T, f32(6), 1e-3)],
    "attention": [(f32(2, 5, 4), f32(2, 5, 4), f32(2, 5, 3), causal) for causal in (False, True)],
    "layer_norm": [(f32(3, 8), f32(8), f32(8)), (f32(2, 3, 8), f32(8), f32(8), 1e-3)],
    "lstm": [(f32(n, 3), T.LSTMState(f32(4), f32(4)), f32(7, 16), f32(16)) for n in (5, 1)],
    "predict": [([(f32(6, 5), f32(6)), (f32(4, 6), f32(4)), (f32(3, 4), f32(3))], f32(5))],
    "fit_line": [(f32(9), f32(9), 20, 0.1)],
    "newton_root": [(3, 2.0), (2, 9.0)],
}


@pytest.mark.parametrize("name", CASES)
def test_tutorials(name):
    for args in CASES[name]:
        agree(
            getattr(T, name), *args, levels=(3,), rtol=2e-3 if name == "power_iteration" else 2e-4
        )


def test_every_tutorial_is_tested():
    made = [n for n, v in vars(T).items() if type(v).__name__ == "RelayFunction"]
    assert sorted(made) == sorted(CASES) and len(made) >= 10


PAGE = ROOT / "docs" / "python_function.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_does_what_it_says(tmp_path):
    """Snippets build on each other; `# ->` behind an expression is its value, printed."""
    path = tmp_path / "page.py"
    text = "\n".join(SNIPPETS)
    path.write_text(text)
    module = sys.modules["page"] = types.ModuleType("page")
    tested = 0
    exec(compile(text, str(path), "exec"), vars(module))
    for expression, value in re.findall(r"^(\S.*?)\s+# -> (.*)$", text, re.MULTILINE):
        assert str(eval(expression, vars(module))) == value, expression
        tested += 1
    assert len(SNIPPETS) >= 8 and tested >= 8


def test_the_function_of_the_readme(tmp_path):
    readme = (ROOT / "README.md").read_text()
    (text,) = [s for s in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "@relay" in s]
    path = tmp_path / "readme.py"
    path.write_text(text)
    module = sys.modules["readme"] = types.ModuleType("readme")
    exec(compile(text, str(path), "exec"), vars(module))
    np.testing.assert_allclose(module.value, 3, rtol=1e-4)


def test_the_page_says_of_each_tutorial_what_had_to_change():
    table = re.search(r"## Functions of tutorials\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)[1]
    rows = dict(re.findall(r"^\| `(\w+)` \| (NumPy|PyTorch|JAX) \| .+ \|$", table, re.MULTILINE))
    assert sorted(rows) == sorted(CASES)
    for name, source in rows.items():
        assert getattr(T, name).__doc__.startswith(f"{source}: "), name
