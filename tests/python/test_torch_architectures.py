"""Whole models of torchvision, timm and transformers: inference, a step of training, and open sizes."""

from __future__ import annotations

import pytest
import torch_architectures as architectures

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def from_the_beginning():
    architectures.fresh()
    yield
    architectures.fresh()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check,name", list(architectures.cases()))
def test_architecture(check, name):
    for package in ("torchvision", "timm", "transformers"):
        pytest.importorskip(package, reason=f"{package} is an extra: see torch_architectures.py")
    architectures.CHECKS[check][0](name)
