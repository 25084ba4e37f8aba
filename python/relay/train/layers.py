"""The training forms of operators that differ between training and inference."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay import random
from relay._function.annotations import Static
from relay._function.function import function


@function
def dropout(key: Any, x: Any, rate: Static[float]) -> Any:
    """Replaces a fraction `rate` of the elements, drawn by a key, by zeros and scales the others up."""
    kept = random.uniform(key, x.shape)[1] >= rate
    return np.where(kept, x / (1.0 - rate), 0.0)


@function
def batch_norm(
    x: Any,
    scale: Any,
    shift: Any,
    statistics: Any,
    momentum: Static[float] = 0.1,
    epsilon: Static[float] = 1e-5,
) -> Any:
    """Normalises the channels, along axis 1, by their mean and variance over the batch.

    statistics: the running means and variances, a tuple; new ones are returned beside the result.
    They follow the batch's by `momentum`, as in PyTorch; the variance is an unbiased estimate.
    """
    axes = (0, *range(2, x.ndim))
    mean = x.mean(axis=axes)
    count = x.size / x.shape[1]
    shape = (1, x.shape[1], *([1] * (x.ndim - 2)))
    centred = x - mean.reshape(shape)
    variance = np.square(centred).mean(axis=axes)
    factor = (scale / np.sqrt(variance + epsilon)).reshape(shape)
    old_mean, old_variance = statistics
    unbiased = variance * (count / (count - 1.0)).astype(x.dtype)
    new = (
        (1.0 - momentum) * old_mean + momentum * mean,
        (1.0 - momentum) * old_variance + momentum * unbiased,
    )
    return centred * factor + shift.reshape(shape), new
