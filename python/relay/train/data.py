"""Batches of data, shuffled by a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from relay._errors import wrong
from relay.train.initializers import Keys, words


class Batches:
    """Examples in batches of one size, in a new order in each epoch; the last batch has the remainder.

    data: a tuple of arrays with the examples along the first axis.
    key: a seed or key of the orders; None keeps the order of the data.
    drop_last: omits a smaller last batch. A step that is compiled for the sizes of a batch is compiled
        again for a smaller one.
    """

    def __init__(self, data: tuple, size: int, key: Any = None, *, drop_last: bool = False) -> None:
        self.data = tuple(map(np.asarray, data))
        counts = {len(array) for array in self.data}
        if len(counts) != 1:
            raise wrong(f"the arrays have different numbers of examples: {sorted(counts)}")
        self.count, self.size = counts.pop(), size
        if not 1 <= size <= self.count:
            raise wrong(f"a batch has from 1 to {self.count} examples, not {size}")
        self.seed, self.drop_last = key, drop_last

    def __len__(self) -> int:
        """Returns the number of batches in an epoch."""
        return self.count // self.size if self.drop_last else -(-self.count // self.size)

    def epoch(self, number: int, start: int = 0) -> Iterator[tuple]:
        """Yields the batches of an epoch from number `start` on."""
        order = self._order(number)
        for i in range(start, len(self)):
            chosen = order[i * self.size : (i + 1) * self.size]
            yield tuple(np.ascontiguousarray(array[chosen]) for array in self.data)

    def __iter__(self) -> Iterator[tuple]:
        return self.epoch(0)

    def _order(self, epoch: int) -> np.ndarray:
        if self.seed is None:
            return np.arange(self.count)
        keys = Keys(self.seed)
        for _ in range(epoch + 1):
            key = next(keys)
        return np.argsort(words(key, self.count), kind="stable")
