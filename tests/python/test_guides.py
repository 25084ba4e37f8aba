"""The guides say how many places there are to touch, and their code is code that is compiled and run.

Blocks that name a file are built by tests/guides from their text; the others stand word for word in a test.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import guide_tree  # noqa: E402

GUIDES = sorted((ROOT / "docs").glob("adding_*.md"))
# Where the blocks stand that name no file.
TESTS = ["src/driver/test/hard_shrink.h", "src/passes/test/pass_manager_test.cc"]


def words(text: str) -> str:
    return " ".join(text.split())


def touched(guide: Path) -> str:
    """What a guide touches, as "1 file + 1 line": a list with a line more, and files with more than that."""
    places = guide_tree.places(guide)
    lines = [path for path, added in places.lines.items() if len(added) == 1]
    files = {*places.new, *(places.changed.keys() - set(lines))}
    if guide.name == "adding_a_target.md":
        # The file that the guide speaks of is there.
        assert (ROOT / "src/runtime/machine/loongarch.cc").exists()
        files.add("src/runtime/machine/loongarch.cc")
    text = f"{len(files)} file" + ("s" if len(files) > 1 else "")
    text += f" + {len(lines)} line" if lines else ""
    return text + ("s" if len(lines) > 1 else "")


def test_the_counts_are_those_of_the_documentation():
    table = re.findall(
        r"^\| an? [^|]+ \| ([^|]+) \| `(\w+\.md)` \|$",
        (ROOT / "docs/architecture.md").read_text(),
        re.M,
    )
    assert {name: count for count, name in table} == {g.name: touched(g) for g in GUIDES}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda g: g.stem)
def test_code_that_names_no_file_stands_in_a_test(guide):
    tested = words("\n".join((ROOT / t).read_text() for t in TESTS))
    for block in re.findall(r"^```cpp\n(.*?)^```$", guide.read_text(), re.M | re.S):
        assert words(block) in tested, block


def test_a_row_from_outside_is_the_same_row():
    """hard_shrink.h is the operator of the guide under names of its own."""
    guide = (ROOT / "docs/adding_an_operator.md").read_text()
    blocks = re.findall(r"^```cpp src/\S+\n(.*?)^```$", guide, re.M | re.S)[1:-1]
    assert len(blocks) == 5
    outside = words((ROOT / TESTS[0]).read_text())
    for block in blocks:
        block = block.replace('"relay.attrs.', '"mylib.attrs.').replace('"nn.', '"mylib.')
        assert words(block) in outside, block


def test_what_stands_elsewhere_is_not_added(tmp_path):
    for kind, path, text, why in [
        ("cpp", "src/ir/op.h", "", "which is there"),
        ("diff", "src/ops/rows.h", "+  Shrink,\n   Nothing,\n", "not in src/ops/rows.h"),
        ("diff", "src/ops/rows.h", " \n+  Shrink,\n", "more than once"),
    ]:
        guide = tmp_path / "guide.md"
        guide.write_text(f"```{kind} {path}\n{text}```\n")
        with pytest.raises(SystemExit, match=why):
            guide_tree.places(guide)
