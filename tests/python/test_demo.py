"""The README's second command, over a few files."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("magika")
pytest.importorskip("onnxruntime")


def test_the_demo_agrees_with_onnx_runtime(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples/demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    # Short files are where the model is least certain; what is long fills all of its input.
    files = sorted(demo.repository_files(), key=lambda path: path.stat().st_size)
    monkeypatch.setattr(demo, "repository_files", lambda: files[:40] + files[-10:])
    assert demo.main([]) == 0
    assert "largest difference" in capsys.readouterr().out
    monkeypatch.setattr(demo, "TOLERANCE", 0)
    assert demo.main([]) == 1
