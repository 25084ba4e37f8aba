"""`Trainer`: a model, an optimiser and the state that a step changes."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TextIO

import numpy as np

from relay import random, tree
from relay._errors import wrong
from relay._figure import Figure, curve
from relay._function.derived import value_and_grad
from relay._function.function import RelayFunction, function, plain_function
from relay.train import files
from relay.train.initializers import as_key
from relay.train.optimizers import clip_by_norm, global_norm


class State(NamedTuple):
    """The state that a step changes; a file with it suffices to resume bit for bit."""

    params: Any
    variables: Any
    moments: Any
    step: Any
    key: Any
    scale: Any
    good_steps: Any


@dataclass(frozen=True)
class LossScale:
    """Prevents underflow of small float16 gradients: they are computed `initial` times too large.

    A step whose gradients are not finite changes only the scale, which it halves; `growth` good steps
    double it, 0 keeps it.
    """

    initial: float = 2.0**15
    growth: int = 2000


@function
def _pick(mine: Any, taken: Any, other: Any) -> Any:
    return tree.map(lambda a, b: np.where(taken, a, b), mine, other)


@function(fixed_sizes=True)
def _line(arrays: Any, i: Any) -> Any:
    return tree.map(lambda x: x[i], arrays)


def _step_function(
    loss: RelayFunction,
    optimizer: Any,
    clip: float | None,
    accumulate: int,
    scaling: LossScale | None,
    with_key: bool,
    with_variables: bool,
    num_threads: int,
    in_place: bool,
) -> RelayFunction:
    """Returns the function from state and batch to state and loss: forward, backward, update."""

    donate = {"state": 0} if in_place else None

    @function(fixed_sizes=True, num_threads=num_threads, donate=donate)
    def step(state: Any, batch: Any) -> Any:
        key, own = random.threefry_split(state.key)

        def objective(params: Any, variables: Any, part: Any, key: Any) -> Any:
            given = {"key": key} if with_key else {}
            if with_variables:
                value, variables = loss(params, variables, *part, **given)
            else:
                value = loss(params, *part, **given)
            whole = value.astype("float32")
            return whole * state.scale if scaling is not None else whole, (whole, variables)

        if accumulate == 1:
            (_, (value, variables)), grads = value_and_grad(objective, has_aux=True)(
                state.params, state.variables, batch, own
            )
        else:
            parts = tree.map(
                lambda x: x.reshape((accumulate, x.shape[0] // accumulate, *x.shape[1:])), batch
            )
            value, variables = np.float32(0), state.variables
            grads = tree.map(lambda p: p * 0, state.params)
            for i in range(accumulate):
                own, now = random.threefry_split(own)
                (_, (more, variables)), found = value_and_grad(objective, has_aux=True)(
                    state.params, variables, _line(parts, i), now
                )
                value = value + more / accumulate
                grads = tree.map(lambda a, b: a + b / accumulate, grads, found)
        if scaling is not None:
            grads = tree.map(lambda g: (g / state.scale).astype(g.dtype), grads)
        if clip is not None:
            grads = clip_by_norm(grads, np.float32(clip))
        params, moments = optimizer.update(state.params, grads, state.moments, state.step)
        count, scale, good = state.step + 1, state.scale, state.good_steps
        if scaling is not None:
            fine = np.isfinite(global_norm(grads))
            params = _pick(params, fine, state.params)
            variables = _pick(variables, fine, state.variables)
            moments = _pick(moments, fine, state.moments)
            count = np.where(fine, count, state.step)
            good = np.where(fine, good + 1, 0)
            scale = np.where(fine, scale, scale * 0.5)
            if scaling.growth:
                doubled = good == scaling.growth
                scale = np.where(doubled, scale * 2.0, scale)
                good = np.where(doubled, 0, good)
        return State(params, variables, moments, count, key, scale, good), value

    return step


def _own(tensor: Any) -> Any:
    """A copy in separate, writable memory."""
    clone = getattr(tensor, "clone", None)
    if clone is not None and hasattr(tensor, "__dlpack__"):
        return clone().detach().contiguous()
    return np.array(tensor) if np.ndim(tensor) else tensor


class Trainer:
    """A model, an optimiser, and the compiled step that changes both.

    loss: a function (model, *batch) -> a number, as relay.function reads it. With a parameter `key`
        it receives a new random key at each step. With `variables` - state that changes without
        gradients, such as the statistics of a normalisation - it is (model, variables, *batch) ->
        (number, new variables).
    params: the model, a structure of tensors.
    optimizer: of this module, or any object with their `init` and `update`.
    clip: the largest norm of all gradients together.
    accumulate: the number of parts into which a batch is split; they are computed one after the other.
    loss_scale: for float16; see `LossScale`.
    key: a seed or key.
    in_place: a step overwrites the state, of which there is then one copy in memory. The arrays of
        `params` are copies of the given ones, and the steps change them: copy them to keep a
        state. False: each step allocates new arrays.

    The step is compiled at its first call, for the sizes of the batch. An in-place step that fails while
    it runs leaves an undefined state.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        params: Any,
        optimizer: Any,
        *,
        variables: Any = None,
        clip: float | None = None,
        accumulate: int = 1,
        loss_scale: LossScale | None = None,
        key: Any = 0,
        num_threads: int = 0,
        in_place: bool = True,
    ) -> None:
        loss = plain_function(loss, "relay.train.Trainer")
        if not any("float" in str(leaf.dtype) for leaf in tree.leaves(params).values()):
            raise wrong("the model has no tensors of floats, which a step could change")
        if not (hasattr(optimizer, "init") and hasattr(optimizer, "update")):
            raise wrong(f"an optimizer is relay.train.adam(0.001), say, not {optimizer!r}")
        if clip is not None and not clip > 0:
            raise wrong(f"gradients are clipped to a norm above 0, not {clip}")
        if accumulate < 1:
            raise wrong(f"a batch is computed in 1 or more parts, not {accumulate}")
        self.accumulate = accumulate
        with_key = "key" in inspect.signature(loss).parameters
        self.run = _step_function(
            loss,
            optimizer,
            clip,
            accumulate,
            loss_scale,
            with_key,
            variables is not None,
            num_threads,
            in_place,
        )
        self.in_place = in_place
        self.losses: list[float] = []  # of all steps
        self._begin(
            State(
                params,
                variables,
                optimizer.init(params),
                np.int64(0),
                as_key(key),
                np.float32(1.0 if loss_scale is None else loss_scale.initial),
                np.int64(0),
            )
        )

    def _begin(self, state: State) -> None:
        """Continues from a state, whose tensors are copied if the steps change them."""
        self.state = tree.map(_own, state) if self.in_place else state

    @property
    def params(self) -> Any:
        """The current model."""
        return self.state.params

    @property
    def variables(self) -> Any:
        """The current state that changes without gradients."""
        return self.state.variables

    def step(self, *batch: Any) -> np.ndarray:
        """Trains on a batch; returns its loss before the update."""
        if self.accumulate > 1:
            for name, array in tree.leaves(batch).items():
                if array.ndim == 0 or array.shape[0] % self.accumulate:
                    raise wrong(
                        f"part {name} of the batch, of {tuple(array.shape)}, cannot be computed in "
                        f"{self.accumulate} parts of one size"
                    )
        self.state, value = self.run(self.state, batch)
        self.losses.append(float(value))
        return value

    def fit(
        self,
        data: Any,
        epochs: int = 1,
        progress: bool = True,
        out: TextIO | None = None,
    ) -> list[float]:
        """Trains from the current state until `epochs` of the data are done; returns the mean loss of each.

        progress: a line with the loss and the rate; on a terminal it is renewed while an epoch runs.

        data: `Batches`, or anything with their `len` and `epoch`. An interrupted epoch
        continues where it stopped, with the same batches.
        """
        if not hasattr(data, "epoch"):
            raise wrong(
                f"data is relay.train.Batches((x, y), size), say, not {type(data).__name__}"
            )
        losses = []
        per_epoch = len(data)
        out = out or sys.stderr
        live = out.isatty()
        while (done := int(self.state.step)) < epochs * per_epoch:
            epoch, start = divmod(done, per_epoch)
            values, shown, begin = [], 0.0, time.perf_counter()
            for i, batch in enumerate(data.epoch(epoch, start), start + 1):
                values.append(float(self.step(*batch)))
                now = time.perf_counter()
                if progress and (i == per_epoch or (live and now - shown > 0.2)):
                    rate = len(values) / (now - begin)
                    mean = sum(values) / len(values)
                    line = f"epoch {epoch + 1}/{epochs}  {i}/{per_epoch}  loss {mean:.4f}  {rate:.1f}/s"
                    # A line that is shorter than the last one covers it.
                    start_of_line, end = ("\r", "\x1b[K") if live else ("", "")
                    print(start_of_line + line + end, end="", file=out, flush=True)
                    shown = now
            if progress:
                print(file=out)
            losses.append(sum(values) / len(values))
            if int(self.state.step) <= done:
                raise RuntimeError(
                    "no step of an epoch had finite gradients: the loss is not finite"
                )
        return losses

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The losses of all steps as a figure: notebooks show it, and `path` is an SVG file to write.

        Only losses of this object's own steps are in it.
        """
        out = curve(self.losses, "Training loss", ("step", "loss"))
        if path is not None:
            out.save(path)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state as a safetensors file; the model's tensors are "params...."."""
        files.save_tensors(self.state._asdict(), path, {"format": "relay.train", "version": "1"})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Resumes from a file of `save`, bit for bit. ValueError if it belongs to another model."""
        if files.metadata(path).get("format") != "relay.train":
            raise wrong(
                f"{os.fspath(path)} is not a file of a Trainer: relay.train.load_tensors reads others"
            )
        self._begin(State(**files.load_tensors(self.state._asdict(), path)))
