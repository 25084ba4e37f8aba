"""A Tree-LSTM (Tai, Socher and Manning, 2015) that learns what expressions of and, or, xor are worth.

    python examples/python/trees.py

The network has the shape of the expression: a function that calls itself on the two parts. The pass
BatchTrees computes what is at one depth of all expressions together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import relay
from relay import train

init = train.initializers
WIDTH = 24
Number = Annotated[np.integer, relay.Tensor[(), "int32"]]


@relay.data
class Expression:
    @dataclass
    class Value:
        truth: Number

    @dataclass
    class Apply:
        operator: Number
        left: Expression
        right: Expression


OPERATORS = [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b]


def draw(source: random.Random, depth: int) -> tuple[Any, int]:
    """An expression and what it is worth."""
    if depth == 0 or source.random() < 0.2:
        truth = source.randrange(2)
        return Expression.Value(np.int32(truth)), truth
    operator = source.randrange(3)
    (left, a), (right, b) = draw(source, depth - 1), draw(source, depth - 1)
    return Expression.Apply(np.int32(operator), left, right), OPERATORS[operator](a, b)


def sample(seed: int, count: int, depth: int) -> tuple[list[Any], np.ndarray]:
    source = random.Random(seed)
    drawn = [draw(source, depth) for _ in range(count)]
    return [tree for tree, _ in drawn], np.array([truth for _, truth in drawn], "int32")


def model(keys: Any) -> dict[str, Any]:
    return {
        "values": init.normal(next(keys), (2, 2 * WIDTH), 0.5),
        "operators": init.normal(next(keys), (3, WIDTH), 0.5),
        "gates": init.glorot_uniform(next(keys), (3 * WIDTH, 5 * WIDTH)),
        "bias": np.repeat(np.array([0, 1, 1, 0, 0], "float32"), WIDTH),
        "out": init.glorot_uniform(next(keys), (WIDTH, 2)),
    }


@relay.function
def encode(params: Any, tree: Expression) -> Any:
    match tree:
        case Expression.Value(truth):
            both = params["values"][truth]
            return both[:WIDTH], both[WIDTH:]
        case Expression.Apply(operator, left, right):
            h1, c1 = encode(params, left)
            h2, c2 = encode(params, right)
            inputs = np.concatenate([params["operators"][operator], h1, h2])
            gates = inputs @ params["gates"] + params["bias"]
            i, f1, f2, o, g = np.split(gates, 5)
            c = relay.sigmoid(i) * np.tanh(g) + relay.sigmoid(f1) * c1 + relay.sigmoid(f2) * c2
            return relay.sigmoid(o) * np.tanh(c), c


@relay.function
def loss(params: Any, trees: list[Expression], truths: Any) -> Any:
    total = np.float32(0)
    for i, tree in enumerate(trees):
        h, _ = encode(params, tree)
        total = total + train.losses.softmax_cross_entropy(h @ params["out"], truths[i])
    return total / truths.shape[0]


@relay.function
def right(params: Any, trees: list[Expression], truths: Any) -> Any:
    count = np.float32(0)
    for i, tree in enumerate(trees):
        h, _ = encode(params, tree)
        count = count + (np.argmax(h @ params["out"]) == truths[i]).astype("float32")
    return count / truths.shape[0]


def fit(steps: int) -> float:
    """Trains on expressions of three levels; returns how many of five levels are judged rightly."""
    trainer = train.Trainer(loss, model(init.Keys(0)), train.adam(0.01), clip=1.0)
    with relay.transform.PassContext(required_pass=["BatchTrees"]):
        for step in range(steps):
            trainer.step(*sample(step + 1, 64, 3))
    return float(right(trainer.params, *sample(0, 500, 5)))


if __name__ == "__main__":
    print(f"{fit(300):.1%} of 500 deeper expressions are judged rightly")
