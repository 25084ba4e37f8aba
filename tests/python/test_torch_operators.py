"""PyTorch's samples of its operators pass, but for those of a list that only shrinks (torch_operators.py)."""

from __future__ import annotations

import pytest
import torch_operators as operators

# How long the list of pairs that do not pass may be. A pair that passes leaves the list, and this number goes down.
MOST = 10_000
# The part of all counted pairs that passes at least.
PART = 0.85

GROUPS: dict[str, list] = {}
for pair, op in operators.tenth():
    GROUPS.setdefault(pair.operator, []).append((pair, op))


def outcome(pair, op, limit):
    try:
        operators.check(pair, op, limit)
    except operators.Missing as problem:
        return str(problem)
    return None


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_a_fixed_tenth(name):
    listed = operators.listed()
    for pair, op in GROUPS[name]:
        problem = outcome(pair, op, 4)
        if str(pair) not in listed:
            assert problem is None, f"{pair}: {problem}"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_all_samples(number):
    listed = operators.listed()
    failed, passed = {}, []
    for pair, op in operators.tenth(number):
        problem = outcome(pair, op, None)
        if problem is not None and (str(pair) not in listed or "WRONG" in problem):
            failed[str(pair)] = problem
        if problem is None and str(pair) in listed:
            passed.append(str(pair))
    assert failed == {}
    assert passed == [], "these pass: take them off the list"


def test_the_list_only_shrinks():
    listed = operators.listed()
    known = {str(pair) for pair, _ in operators.pairs()}
    assert set(listed) <= known
    assert len(listed) <= MOST
    assert 1 - len(listed) / len(known) >= PART
    assert not [p for p, reason in listed.items() if "WRONG" in reason]
