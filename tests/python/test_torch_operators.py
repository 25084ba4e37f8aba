"""PyTorch's samples of its operators pass, but for those of a list that only shrinks (torch_operators.py)."""

from __future__ import annotations

import os

import pytest
import torch_operators as operators

# How long the list of pairs that do not pass may be; a pair that passes leaves it, and this goes down.
MOST = 48

GROUPS: dict[str, list] = {}
for pair, op in operators.pairs():
    GROUPS.setdefault(pair.operator, []).append((pair, op))

# The part of the operators that every run of the tests checks.
PART = int(os.environ.get("RELAY_TORCH_PART", os.environ["TESTS_OF_DAY"]))
NAMES = [
    name
    if operators.part_of(name) == PART % operators.PARTS
    else pytest.param(name, marks=pytest.mark.slow)
    for name in sorted(GROUPS)
]


def outcome(pair, op):
    try:
        operators.check(pair, op, limit=4)
    except operators.Missing as problem:
        return str(problem)
    return None


@pytest.mark.parametrize("name", NAMES)
def test_operator(name):
    listed = operators.listed()
    problems = {
        str(pair): outcome(pair, op) for pair, op in GROUPS[name] if str(pair) not in listed
    }
    assert {p: why for p, why in problems.items() if why is not None} == {}


@pytest.mark.slow
def test_what_is_listed_does_not_pass():
    listed = operators.listed()
    pairs = [(pair, op) for pair, op in operators.pairs() if str(pair) in listed]
    problems = {str(pair): outcome(pair, op) for pair, op in pairs}
    assert [p for p, why in problems.items() if why is None] == [], "take them off the list"


def test_the_list_only_shrinks():
    listed = operators.listed()
    assert set(listed) <= {str(pair) for pair, _ in operators.pairs()}
    assert len(listed) <= MOST
    assert not [p for p, reason in listed.items() if "WRONG" in reason]
