"""Whole models under QEMU, float and int8, and language examples, on each architecture."""

import emulation
import packaged_models
import pytest
import target_models

ARCHITECTURES = ("aarch64-linux", "riscv64-linux", "armv7-linux")
REASONS = [r for r in map(emulation.lacks, ARCHITECTURES) if r]
pytestmark = pytest.mark.skipif(bool(REASONS), reason="; ".join(REASONS))


@pytest.mark.drawn(17)
@pytest.mark.parametrize("name", target_models.cases())
def test_results(name):
    if name == "magika" and packaged_models.find(name) is None:
        pytest.skip("magika is not installed")
    target_models.errors_of(name)


def test_the_document_lists_every_case():
    _, (head, _, *rows), _ = target_models.in_document()
    assert [target_models.name_in(row) for row in rows] == list(target_models.cases())
    assert all(f"`{target}`" in head for target in target_models.TARGETS)
