"""Losses: the error of a result as one number, the mean over all examples.

Each is a relay.function of the model's result and the target; `reduce=False` returns the loss of each
example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relay._errors import wrong
from relay._function.annotations import Static
from relay._function.function import function
from relay._operators import nn


@function
def _one_shape(found: Any, wanted: Any) -> None:
    """Checks that both have one shape, so that none is broadcast by mistake, or that one is a number."""
    if found.ndim == 0 or wanted.ndim == 0:
        return
    if found.ndim != wanted.ndim:
        raise wrong(f"{found.ndim} axes against {wanted.ndim}: a loss compares one shape")
    for axis in range(found.ndim):
        mine, other = found.shape[axis], wanted.shape[axis]
        assert mine == other, f"axis {axis} of a loss has sizes {mine} and {other}"


@function
def _one_label_each(logits: Any, labels: Any) -> None:
    """Checks that labels have the axes of the logits except the last, the class axis."""
    if labels.ndim != logits.ndim - 1:
        raise wrong(f"{labels.ndim} axes of labels for {logits.ndim} of logits: one less is right")
    for axis in range(labels.ndim):
        mine, other = labels.shape[axis], logits.shape[axis]
        assert mine == other, f"{mine} labels for {other} rows of logits, along axis {axis}"


@function
def squared_error(found: Any, wanted: Any, reduce: Static[bool] = True) -> Any:
    """Returns the squared difference."""
    _one_shape(found, wanted)
    out = np.square(found - wanted)
    return out.mean() if reduce else out


@function
def absolute_error(found: Any, wanted: Any, reduce: Static[bool] = True) -> Any:
    """The absolute value of the difference."""
    _one_shape(found, wanted)
    out = np.abs(found - wanted)
    return out.mean() if reduce else out


@function
def huber(found: Any, wanted: Any, delta: Static[float] = 1.0, reduce: Static[bool] = True) -> Any:
    """Half the square of differences up to `delta`, and linear beyond."""
    _one_shape(found, wanted)
    size = np.abs(found - wanted)
    near = np.minimum(size, delta)
    out = near * (size - 0.5 * near)
    return out.mean() if reduce else out


@function
def softmax_cross_entropy(
    logits: Any,
    labels: Any,
    smoothing: Static[float] = 0.0,
    reduce: Static[bool] = True,
    ignore_index: Static[int | None] = None,
    check: Static[bool] = True,
) -> Any:
    """Returns the cross-entropy of class labels and logits on the last axis.

    labels: class indices, integers without that axis. A fraction `smoothing` of the probability is spread
    evenly over all classes. Logits of any magnitude are accepted. Examples with the label `ignore_index`
    are ignored. A label that is not a class ends the run (E0616); check=False omits this check, and the
    loss of such a label is then that of an arbitrary class.
    """
    _one_label_each(logits, labels)
    counts = labels == labels if ignore_index is None else labels != ignore_index
    if check:
        classes = logits.shape[-1]
        wrong = np.logical_and(counts, np.logical_or(labels < 0, labels >= classes)).ravel()
        first = labels.ravel()[np.argmax(wrong)] if wrong.size else 0
        assert not np.any(wrong), f"label {first} is none of {classes} classes, 0 to {classes - 1}"
    logs = nn.log_softmax(logits, axis=-1)
    known = np.clip(labels, 0, logits.shape[-1] - 1)
    out = -np.take_along_axis(logs, known[..., None], axis=-1)[..., 0]
    if smoothing:
        out = (1.0 - smoothing) * out - smoothing * logs.mean(axis=-1)
    if ignore_index is None:
        return out.mean() if reduce else out
    out = np.where(counts, out, 0)
    return out.sum() / counts.sum().astype(out.dtype) if reduce else out


@function
def sigmoid_cross_entropy(logits: Any, wanted: Any, reduce: Static[bool] = True) -> Any:
    """Minus the logarithm of the probability of the targets, numbers from 0 to 1, from logits."""
    _one_shape(logits, wanted)
    out = np.maximum(logits, 0) - logits * wanted + np.log(1.0 + np.exp(-np.abs(logits)))
    return out.mean() if reduce else out


@function
def accuracy(logits: Any, labels: Any) -> Any:
    """The fraction of the examples whose largest logit is that of the label, a float32."""
    _one_label_each(logits, labels)
    return (np.argmax(logits, axis=-1) == labels).astype("float32").mean()
