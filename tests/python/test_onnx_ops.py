"""ONNX's own cases for every operator: each passes, or is refused with a code for a listed reason.

What Relay does not do is in onnx_node_cases.toml, with reasons. The list is exact: a case that is
on it and passes fails the test, so that the list never says more than is true.
"""

import fnmatch
from collections import Counter

import onnx_node_cases
import pytest

EXPECTATIONS = onnx_node_cases.Expectations()
COUNTS: Counter[str] = Counter()


@pytest.fixture(scope="module")
def judge():
    with onnx_node_cases.Judge() as child:
        yield child
    total = sum(COUNTS.values())
    if total:
        passed = COUNTS["passed"]
        print(f"\nONNX operator cases: {passed} of {total} pass ({100 * passed / total:.0f} %); "
              + ", ".join(f"{n} {kind}" for kind, n in sorted(COUNTS.items())))  # fmt: skip


@pytest.mark.parametrize("module", onnx_node_cases.module_names())
def test_operator(module, judge):
    complaints = []
    for case in onnx_node_cases.cases_of(module):
        outcome = judge.judge(case)
        COUNTS[outcome.kind] += 1
        reason = EXPECTATIONS.refused(case)
        if reason is None and outcome.kind != "passed":
            complaints.append(f"{case.name}: {outcome}")
        elif reason is not None and outcome.kind == "passed":
            complaints.append(f"{case.name}: passes; take it off the list ({reason})")
        elif reason is not None and outcome.kind != "refused":
            complaints.append(f"{case.name}: {outcome}; must be refused with a code ({reason})")
    assert not complaints, "\n".join(complaints)


def test_every_line_of_the_list_is_used():
    """A name that no case matches is a spelling mistake or a leftover."""
    known: dict[str, set[str]] = {"operators": set(), "types": set(), "cases": set()}
    for module in onnx_node_cases.module_names():
        for case in onnx_node_cases.cases_of(module):
            known["operators"] |= onnx_node_cases.op_types(case.model)
            known["types"] |= onnx_node_cases.value_types(case.model)
            known["cases"].add(case.name)
    unused = [n for kind in ("operators", "types") for n in EXPECTATIONS.tables[kind]
              if n not in known[kind]]  # fmt: skip
    unused += [p for p in EXPECTATIONS.tables["cases"] if not fnmatch.filter(known["cases"], p)]
    assert not unused


def test_unknown_operator_is_refused_by_name(judge):
    """An operator that nobody has is refused with the code for that, and named."""
    (case, *_) = onnx_node_cases.cases_of("abs")
    case.model.graph.node[0].op_type, kept = "NoSuchOperator", case.model.graph.node[0].op_type
    try:
        outcome = judge.judge(case)
    finally:
        case.model.graph.node[0].op_type = kept
    assert (outcome.kind, outcome.code) == ("refused", "E0501"), outcome
    assert "NoSuchOperator" in outcome.text
