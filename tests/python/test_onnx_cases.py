"""The onnx package's backend suite: a case passes, or is in onnx_cases.toml with the reason why not.

The list is exact: a case that is on it and passes fails the test, so that the list never says more
than is true. A case that cannot pass yet is refused with a code, and never answered wrongly. Where
results are random numbers of another generator, they have the right shapes and types.

`make test` runs all cases compiled at level 0 and every tenth at level 3 and on the evaluator,
another tenth each day; `make test-long` runs all of them in all ways, and with all sizes open.
"""

import datetime
import fnmatch
import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx_cases
import pytest

ROOT = Path(__file__).resolve().parents[2]
OPEN = onnx_cases.open_cases()
# Which tenth is today's; RELAY_TENTH chooses another.
TENTH = int(os.environ.get("RELAY_TENTH", datetime.date.today().toordinal() % 10))


def check(chosen: list[onnx_cases.Case], way: str) -> None:
    complaints, passed = [], 0
    for case, outcome in onnx_cases.judge(chosen, way):
        group = OPEN.get(case.name)
        passed += outcome.kind == "passed"
        wanted = "passed" if group is None else "wrong" if group.get("random") else "refused"
        if outcome.kind == wanted:
            continue
        if outcome.kind == "passed":
            complaints.append(f"{case.name}: passes; take it off the list ({group['reason']})")
        else:
            complaints.append(f"{case.name}: {outcome}; must be {wanted}")
    print(f"\nONNX's backend suite, {way}: {passed} of {len(chosen)} pass")
    assert not complaints, "\n".join(complaints)


def test_compiled():
    check(list(onnx_cases.cases()), "0")


@pytest.mark.parametrize("way", ["3", "evaluator"])
def test_a_tenth(way):
    print(f"RELAY_TENTH={TENTH}")
    check(list(onnx_cases.cases()[TENTH::10]), way)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["3", "evaluator"])
def test_all(way):
    check(list(onnx_cases.cases()), way)


# Of the cases of one node these have a size that must be known, and are refused without it.
NEEDS_SIZES = {
    "test_*deform_conv*": "the sizes of the weight",
    "test_dft*": "whether the numbers are complex",
    "test_stft*": "whether the numbers are complex",
    "test_quantizelinear_e?m?*": "whether there is one scale, or one for each line",
}


@pytest.mark.slow
def test_open_sizes():
    """Every size of every input has a name of its own, and only the run says which it is."""
    chosen = [c for case in onnx_cases.cases() if case.kind in ("node", "simple") and case.name not in OPEN
              and (c := onnx_cases.with_open_sizes(case)) is not None]  # fmt: skip
    assert len(chosen) > 1800
    complaints, refused = [], 0
    for case, outcome in onnx_cases.judge(chosen, "0"):
        may_be = any(fnmatch.fnmatchcase(case.name, pattern) for pattern in NEEDS_SIZES)
        refused += outcome.kind == "refused" and may_be
        if outcome.kind != "passed" and not (outcome.kind == "refused" and may_be):
            complaints.append(f"{case.name}: {outcome}")
    print(f"\nwith open sizes {len(chosen) - refused - len(complaints)} of {len(chosen)} pass")
    assert not complaints, "\n".join(complaints)
    assert refused <= 18


def test_the_suite_is_whole():
    """The numbers of the release that is pinned: a case that is not found is not a case that passes."""
    kinds = [case.kind for case in onnx_cases.cases()]
    assert {kind: kinds.count(kind) for kind in onnx_cases.KINDS} == onnx_cases.KINDS


def test_every_line_of_the_list_is_a_case():
    assert not OPEN.keys() - {case.name for case in onnx_cases.cases()}


def test_the_page_is_current():
    """docs/onnx.md is what tools/onnx_table.py writes."""
    done = subprocess.run([sys.executable, ROOT / "tools/onnx_table.py", "--check"], check=False)
    assert done.returncode == 0, "run tools/onnx_table.py"


def test_unknown_operator_is_refused_by_name():
    """An unknown operator is refused with the code for that, and named."""
    case = next(case for case in onnx_cases.cases() if case.name == "test_abs")
    model = onnx.load_from_string(case.model)
    model.graph.node[0].op_type = "NoSuchOperator"
    unknown = onnx_cases.Case("node", "unknown", model.SerializeToString(), case.data, 0, 0)
    outcome = onnx_cases.run(unknown, "0")
    assert (outcome.kind, outcome.code) == ("refused", "E0501"), outcome
    assert "NoSuchOperator" in outcome.text
