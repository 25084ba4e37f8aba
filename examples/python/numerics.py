"""Derivatives in numerical programs: Newton's method, an equation of motion that is learnt, meta-learning.

python examples/python/numerics.py
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import relay
from relay import train

init = train.initializers


# ---- Rosenbrock's valley by Newton's method


@relay.function
def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@relay.function(fixed_sizes=True)
def newton(x: Any, limit: int) -> Any:
    """Newton's method with a step that is halved until it leads down, from second derivatives.

    The system of equations is solved by conjugate gradients, so the matrix is only multiplied with.
    """
    for step in range(limit):
        slope = relay.grad(rosenbrock)(x)
        if np.abs(slope).max() < 1e-10:
            return x, step
        matrix = relay.hessian(rosenbrock)(x)
        # Of a matrix that is not positive the normal equations are solved.
        right = matrix @ slope
        move, rest = np.zeros_like(x), right
        along, size = rest, (rest * rest).sum()
        for _ in range(3 * x.shape[0]):
            image = matrix @ (matrix @ along)
            length = size / np.maximum((along * image).sum(), 1e-300)
            move = move + length * along
            rest = rest - length * image
            new_size = (rest * rest).sum()
            along = rest + new_size / np.maximum(size, 1e-300) * along
            size = new_size
        scale, here = 1.0, rosenbrock(x)
        while rosenbrock(x - scale * move) > here and scale > 1e-6:
            scale = scale * 0.5
        x = x - scale * move
    return x, limit


# ---- A neural differential equation: a pendulum, from where it was at some times


@relay.function
def field(params: Any, state: Any) -> Any:
    hidden = np.tanh(state @ params["w1"] + params["b1"])
    return hidden @ params["w2"]


@relay.function
def trajectory(params: Any, start: Any, times: relay.Static[int], step: relay.Static[float]) -> Any:
    """The states after each of the times, by Runge and Kutta's method with 4 steps in between."""
    states = np.zeros((times, *start.shape), "float32")
    state = start
    for t in range(times):
        for _ in range(4):
            h = np.float32(step / 4)
            k1 = field(params, state)
            k2 = field(params, state + h / 2 * k1)
            k3 = field(params, state + h / 2 * k2)
            k4 = field(params, state + h * k3)
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states[t] = state
    return states


@relay.function
def path_loss(params: Any, start: Any, path: Any) -> Any:
    return np.square(trajectory(params, start, 20, 0.15) - path).mean()


def pendulum(start: np.ndarray, times: int = 20, step: float = 0.15) -> np.ndarray:
    """Where a damped pendulum is: angle and speed, in fine steps."""
    states, state = [], start.astype("float64")
    for _ in range(times):
        for _ in range(100):
            a, v = state[:, 0], state[:, 1]
            state = state + step / 100 * np.stack([v, -np.sin(a) - 0.1 * v], axis=1)
        states.append(state)
    return np.stack(states).astype("float32")


def learn_pendulum(steps: int = 300) -> float:
    """The mean squared error on starts that were not trained with."""
    starts = init.uniform(7, (96, 2), -1.5, 1.5)
    known, unknown = starts[:64], starts[64:]
    keys = init.Keys(0)
    params = {
        "w1": init.glorot_uniform(next(keys), (2, 32)),
        "b1": init.zeros((32,)),
        "w2": init.glorot_uniform(next(keys), (32, 2)),
    }
    rate = train.schedules.Cosine(0.02, steps=steps, warmup=10)
    trainer = train.Trainer(path_loss, params, train.adam(rate), clip=1.0)
    path = pendulum(known)
    for _ in range(steps):
        trainer.step(known, path)

    @relay.function(fixed_sizes=True)
    def error(params: Any, start: Any, path: Any) -> Any:
        return path_loss(params, start, path)

    return float(error(trainer.params, unknown, pendulum(unknown)))


# ---- Model-agnostic meta-learning (Finn, Abbeel and Levine, 2017) on sinusoids


@relay.function
def wave(params: Any, x: Any) -> Any:
    for w, b in params[:-1]:
        x = np.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


@relay.function
def wave_loss(params: Any, x: Any, y: Any) -> Any:
    return np.square(wave(params, x) - y).mean()


@relay.function
def adapted(params: Any, x: Any, y: Any) -> Any:
    """The parameters after three steps of gradient descent on one task."""
    for _ in range(3):
        grads = relay.grad(wave_loss)(params, x, y)
        params = relay.tree.map(lambda p, g: p - np.float32(0.05) * g, params, grads)
    return params


@relay.function
def meta_loss(params: Any, x: Any, y: Any, new_x: Any, new_y: Any) -> Any:
    """How wrong the adapted parameters are on new points, over the tasks of a batch."""
    total = np.float32(0)
    for task in range(x.shape[0]):
        own = adapted(params, x[task], y[task])
        total = total + wave_loss(own, new_x[task], new_y[task])
    return total / x.shape[0]


def tasks(random: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Sinusoids: ten points to adapt with and ten others, for each task."""
    height = random.uniform(0.5, 2.0, (count, 1, 1))
    shift = random.uniform(0, np.pi, (count, 1, 1))
    x = random.uniform(-3, 3, (count, 20, 1))
    y = height * np.sin(x + shift)
    x, y = x.astype("float32"), y.astype("float32")
    return x[:, :10], y[:, :10], x[:, 10:], y[:, 10:]


def learn_to_learn(steps: int = 400) -> tuple[float, float]:
    """The loss after three steps on new tasks: from the start, and from what was learnt."""
    keys = init.Keys(0)
    sizes = [1, 40, 40, 1]
    params = [
        (init.glorot_uniform(next(keys), (n, m)), init.zeros((m,)))
        for n, m in itertools.pairwise(sizes)
    ]
    trainer = train.Trainer(
        meta_loss, params, train.adam(train.schedules.Cosine(5e-3, steps)), clip=5.0
    )
    random = np.random.default_rng(0)
    for _ in range(steps):
        trainer.step(*tasks(random, 8))

    @relay.function(fixed_sizes=True)
    def evaluated(params: Any, x: Any, y: Any, new_x: Any, new_y: Any) -> Any:
        return meta_loss(params, x, y, new_x, new_y)

    new = tasks(np.random.default_rng(1), 50)
    return float(evaluated(params, *new)), float(evaluated(trainer.params, *new))


if __name__ == "__main__":
    x, steps = newton(np.full(6, -1.0), 100)
    print(f"Rosenbrock's valley in 6 dimensions: {x.round(6)} after {steps} steps")
    print(f"pendulum: mean squared error {learn_pendulum():.1e} on unseen starts")
    before, after = learn_to_learn()
    print(f"new sinusoids after three steps: {before:.2f} untrained, {after:.3f} meta-trained")
