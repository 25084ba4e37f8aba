"""Random ONNX graphs (onnx_random_graphs.py): Relay gives what ONNX's reference or ONNX Runtime gives.

RELAY_EXAMPLES draws that many new graphs instead of the usual ones.
"""

import os
import random
from collections import Counter

import onnx_random_graphs
import pytest

COUNT = int(os.environ.get("RELAY_EXAMPLES", "60"))
FIRST = random.SystemRandom().randrange(10**6, 10**9) if "RELAY_EXAMPLES" in os.environ else 0
BATCH = 20


@pytest.mark.parametrize("start", range(FIRST, FIRST + COUNT, BATCH))
def test_graphs_agree_with_an_oracle(start):
    kinds = Counter()
    complaints = []
    for seed in range(start, min(start + BATCH, FIRST + COUNT)):
        graph = onnx_random_graphs.draw(seed)
        if not graph.nodes:
            continue
        outcome = onnx_random_graphs.judge(graph)
        kinds[outcome.kind] += 1
        if outcome.kind in ("wrong", "failed"):
            operators = onnx_random_graphs.operators_of(graph)
            complaints.append(f"seed {seed}: {outcome.kind}: {outcome.text} [{operators}]")
    assert not complaints, "\n".join(complaints)
    # A graph may be refused with a reason; were it the rule, nothing would be tested.
    assert kinds["agrees"] >= 0.8 * sum(kinds.values()), kinds


def test_most_operators_are_drawn():
    drawn = {n.op_type for seed in range(400) for n in onnx_random_graphs.draw(seed).nodes}
    assert drawn == set(onnx_random_graphs.OPERATORS)
