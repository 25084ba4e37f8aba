"""`relay fmt`: the programs of this repository are in canonical layout, which depends on tokens only."""

import re
from pathlib import Path

import pytest
from command_line import relay

import relay as rl

ROOT = Path(__file__).resolve().parents[2]
HOUSE = sorted([*ROOT.glob("examples/**/*.relay"), *ROOT.glob("src/ir/text/prelude/*.rly")])
# Unusual layouts: a token in each line, and everything in one.
SQUEEZED = ("\n", " ")


def bare(text: str) -> str:
    """The text without comments and empty lines, which stay where their writer put them."""
    return re.sub(r"\n\n+", "\n", re.sub(r" *//[^\n]*", "", text))


def test_every_program_of_the_house_is_in_canonical_layout():
    assert len(HOUSE) >= 14
    assert relay("fmt", "--check", *HOUSE).stdout == ""


@pytest.mark.parametrize("file", HOUSE, ids=lambda f: f.name)
@pytest.mark.parametrize("between", SQUEEZED, ids=["lines", "one line"])
def test_white_space_changes_neither_layout_nor_meaning(file, between, tmp_path):
    program = bare(file.read_text())
    squeezed = tmp_path / "squeezed.relay"
    squeezed.write_text(re.sub(r"\s+", between, program))
    written = relay("fmt", squeezed).stdout
    plain = tmp_path / "plain.relay"
    plain.write_text(program)
    assert bare(written).strip() == bare(relay("fmt", plain).stdout).strip()
    assert rl.structural_equal(rl.parse(written), rl.parse(file.read_text()))


BROKEN = sorted(ROOT.glob("tests/must_fail/**/*.relay"))


def test_what_parses_means_the_same_in_canonical_layout(tmp_path):
    """The must-fail programs too, as far as they are text: they have what others do not have."""
    count = 0
    for file in BROKEN:
        once = relay("fmt", file, check=False)
        if once.returncode != 0:
            continue
        count += 1
        again = tmp_path / "again.relay"
        again.write_text(once.stdout)
        assert relay("fmt", again).stdout == once.stdout, file
    assert count > 20
