"""Functions from the tutorials of NumPy, PyTorch and JAX, written for Relay.

Each runs as Python (`name.python(...)`) and compiled. Its docstring describes the changes from the
original, if there are any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import relay

Array = Any


@relay.function
def life(board: Array) -> Array:
    """NumPy: one step of the game of life, on a board whose edges meet."""
    count = np.zeros_like(board)
    for rows in (-1, 0, 1):
        for columns in (-1, 0, 1):
            if (rows, columns) != (0, 0):
                count = count + np.roll(np.roll(board, rows, axis=0), columns, axis=1)
    born = (board == 0) & (count == 3)
    stays = (board == 1) & ((count == 2) | (count == 3))
    return np.where(born | stays, 1, 0).astype("int32")


@relay.function
def mandelbrot(real: Array, imaginary: Array, limit: int) -> Array:
    """NumPy: how many steps each point of the plane takes to leave the circle of radius 2.

    Changed: complex numbers are two tensors, and what left is masked instead of dropped.
    """
    x, y = real * 0, imaginary * 0
    steps = np.zeros_like(real, dtype="int32")
    for _ in range(limit):
        inside = x * x + y * y <= 4
        steps = steps + inside.astype("int32")
        moved = np.where(inside, x * x - y * y + real, x)
        y = np.where(inside, 2 * x * y + imaginary, y)
        x = moved
    return steps


@relay.function
def kmeans(points: Array, centres: Array, steps: int) -> tuple[Array, Array]:
    """NumPy: Lloyd's algorithm.

    Changed: groups are averaged with a matrix of zeros and ones instead of a mask for each.
    """
    nearest = np.zeros(points.shape[0], "int64")
    for _ in range(steps):
        distances = ((points[:, None, :] - centres[None]) ** 2).sum(axis=-1)
        nearest = np.argmin(distances, axis=1)
        members = (nearest[:, None] == np.arange(centres.shape[0])).astype("float32")
        counts = np.maximum(members.sum(axis=0), 1)
        centres = members.T @ points / counts[:, None]
    return centres, nearest


@relay.function
def power_iteration(matrix: Array, start: Array, tolerance: float) -> tuple[Array, Array]:
    """NumPy: the largest eigenvalue and its vector, until they settle."""
    vector, value = start / np.linalg.norm(start), start.sum() * 0
    for _ in range(1000):
        moved = matrix @ vector
        found = vector @ moved
        vector = moved / np.linalg.norm(moved)
        if abs(found - value) < tolerance:
            return found, vector
        value = found
    return value, vector


@relay.function
def attention(q: Array, k: Array, v: Array, causal: relay.Static[bool] = False) -> Array:
    """PyTorch: scaled dot-product attention over a batch, with a causal mask on request."""

    def softmax(x: Array) -> Array:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
    if causal:
        places = np.arange(q.shape[-2])
        scores = np.where(places[:, None] >= places, scores, np.float32(-1e9))
    return softmax(scores) @ v


@relay.function
def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float = 1e-5) -> Array:
    """PyTorch: normalises the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + epsilon) * scale + shift


class LSTMState(NamedTuple):
    h: Array
    c: Array


@relay.function
def lstm(xs: Array, state: LSTMState, weight: Array, bias: Array) -> tuple[Array, LSTMState]:
    """PyTorch: an LSTM over a sequence of any length; its hidden states, and the last state."""

    def sigmoid(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    out = np.zeros((xs.shape[0], state.h.shape[0]), "float32")
    for t in range(xs.shape[0]):
        gates = np.concatenate([xs[t], state.h]) @ weight + bias
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * state.c + sigmoid(i) * np.tanh(g)
        state = LSTMState(sigmoid(o) * np.tanh(c), c)
        out[t] = state.h
    return out, state


@relay.function
def predict(params: list[tuple[Array, Array]], image: Array) -> Array:
    """JAX: the multi-layer perceptron of its first tutorial; logarithms of probabilities."""
    x = image
    for w, b in params[:-1]:
        x = np.maximum(w @ x + b, 0)
    w, b = params[-1]
    logits = w @ x + b
    top = logits.max()
    return logits - (np.log(np.exp(logits - top).sum()) + top)


@relay.function
def fit_line(x: Array, y: Array, steps: int, rate: float) -> dict[str, Array]:
    """JAX: gradient descent on a line, the parameters in a dictionary.

    Changed: the gradient is written out; the loop is a plain `for` instead of `lax.fori_loop`.
    """
    params = {"w": np.float32(0), "b": np.float32(0)}
    for _ in range(steps):
        error = params["w"] * x + params["b"] - y
        gradient = {"w": 2 * (error * x).mean(), "b": 2 * error.mean()}
        params = {
            "w": params["w"] - rate * gradient["w"],
            "b": params["b"] - rate * gradient["b"],
        }
    return params


@relay.function
def newton_root(power: int, target: float) -> tuple[Array, Array]:
    """JAX: Newton's method with a loop that stops when it is done: a `while`, not `lax.while_loop`."""
    x, steps = target, 0
    while abs(x**power - target) > 1e-9 * target and steps < 100:
        slope = power * x ** (power - 1)
        x = x - (x**power - target) / slope
        steps += 1
    return x, steps


if __name__ == "__main__":
    board = (np.random.default_rng(0).random((8, 8)) > 0.6).astype("int32")
    for row in life(board):
        print("".join(".#"[cell] for cell in row))
    print("the cube root of 2:", float(newton_root(3, 2.0)[0]))
    print(life.explain())
