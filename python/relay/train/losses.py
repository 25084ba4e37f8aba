"""Losses: how wrong a result is, as one number, the mean over all examples.

Each is a relay.function of the model's result and what is wanted; `reduce=False` keeps the examples
apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import relay
from relay._function import Static, function


@function
def squared_error(found: Any, wanted: Any, reduce: Static[bool] = True) -> Any:
    """The squared difference."""
    out = np.square(found - wanted)
    return out.mean() if reduce else out


@function
def absolute_error(found: Any, wanted: Any, reduce: Static[bool] = True) -> Any:
    """The size of the difference."""
    out = np.abs(found - wanted)
    return out.mean() if reduce else out


@function
def huber(found: Any, wanted: Any, delta: Static[float] = 1.0, reduce: Static[bool] = True) -> Any:
    """Half the square of differences up to `delta`, and a line from there on."""
    size = np.abs(found - wanted)
    near = np.minimum(size, delta)
    out = near * (size - 0.5 * near)
    return out.mean() if reduce else out


@function
def softmax_cross_entropy(
    logits: Any, labels: Any, smoothing: Static[float] = 0.0, reduce: Static[bool] = True
) -> Any:
    """Minus the logarithm of the probability of the right class, from logits on the last axis.

    labels: the numbers of the classes, integers without that axis. `smoothing` of the probability is
    spread over all classes alike. Logits of any size are taken.
    """
    logs = relay.nn.log_softmax(logits, axis=-1)
    out = -np.take_along_axis(logs, labels[..., None], axis=-1)[..., 0]
    if smoothing:
        out = (1.0 - smoothing) * out - smoothing * logs.mean(axis=-1)
    return out.mean() if reduce else out


@function
def sigmoid_cross_entropy(logits: Any, wanted: Any, reduce: Static[bool] = True) -> Any:
    """Minus the logarithm of the probability of what is wanted, numbers from 0 to 1, from logits."""
    out = np.maximum(logits, 0) - logits * wanted + np.log(1.0 + np.exp(-np.abs(logits)))
    return out.mean() if reduce else out


@function
def accuracy(logits: Any, labels: Any) -> Any:
    """The part of the examples whose largest logit is the right one's, a float32."""
    return (np.argmax(logits, axis=-1) == labels).astype("float32").mean()
