"""The programs of examples/language in NumPy: a function for each file, with the same value."""

import math

import numpy as np


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _weight(f, rows, columns, scale=1.0):
    return (f(np.arange(rows * columns)) * scale).reshape(rows, columns)


def tree_lstm():
    vocabulary, leaf = _weight(np.sin, 16, 4), _weight(np.cos, 18, 4)
    weight = _weight(np.sin, 30, 12, 0.5)

    def encode(phrase):
        if isinstance(phrase, int):
            i, o, u = np.split(leaf @ vocabulary[phrase], 3)
            c = _sigmoid(i) * np.tanh(u)
        else:
            (h1, c1), (h2, c2) = map(encode, phrase)
            i, f1, f2, o, u = np.split(weight @ np.concatenate([h1, h2]), 5)
            c = _sigmoid(i) * np.tanh(u) + _sigmoid(f1) * c1 + _sigmoid(f2) * c2
        return _sigmoid(o) * np.tanh(c), c

    sentences = [
        ((0, 1), (2, (3, (0, 4)))),
        ((5, (6, (7, (8, 9)))), (10, (11, (12, (13, 14))))),
        ((0, (15, 1)), (10, (3, (13, 4)))),
        (8, 6),
    ]
    return [encode(sentence)[0][None] for sentence in sentences]


def recurrent():
    rnn_weight, gru_weight = _weight(np.sin, 4, 7), _weight(np.cos, 8, 7)
    lstm_weight = _weight(np.sin, 16, 7)

    def last_states(n):
        rnn = gru = h = c = np.zeros(4)
        for t in range(n):
            x = np.full(3, math.sin(t))
            rnn = np.tanh(rnn_weight @ np.concatenate([x, rnn]))
            reset, update = np.split(_sigmoid(gru_weight @ np.concatenate([x, gru])), 2)
            proposal = np.tanh(rnn_weight @ np.concatenate([x, reset * gru]))
            gru = update * gru + (1 - update) * proposal
            i, f, g, o = np.split(lstm_weight @ np.concatenate([x, h]), 4)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
        return rnn[None], gru[None], h[None]

    return [last_states(5), last_states(12)]


def beam_search():
    scores = np.log(_softmax(_weight(lambda i: np.sin(i * 7.0), 5, 5, 2)))
    beam = [(0.0, [1])]
    for _ in range(8):
        longer = [
            (score + scores[words[-1], word], [*words, word])
            for score, words in beam
            if words[-1] != 0
            for word in range(5)
        ]
        ended = [hypothesis for hypothesis in beam if hypothesis[1][-1] == 0]
        beam = sorted(longer + ended, key=lambda hypothesis: -hypothesis[0])[:3]
    return beam


def stack_machine():
    return [6 * 7 - 2], [0, 2**10]


def mutual_recursion():
    return 1 + 2 * 3 * (4 + 5), False, True


def church():
    return 3 + 3 * 3, 10 - 4, 1 + 2 + 3


def memo():
    a, b = 0, 1
    for _ in range(90):
        a, b = b, a + b
    return a, 91


def pipeline():
    def prepare(x):
        x = x - x.mean()
        return x / math.sqrt((x * x).sum() + 1e-6)

    batches = [prepare(np.sin(np.arange(4) * i)) for i in range(1, 6)]
    mean = np.zeros(4)
    for batch in batches:
        mean = 0.9 * mean + 0.1 * batch
    peaks = [(i, batch.max()) for i, batch in enumerate(batches, 1)]
    return sum(i * i for i in range(1, 1000, 2)), peaks, mean


def while_loop():
    # The method stops when the eigenvalue is found; its vector is known to fewer digits.
    a = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])
    v, before = np.array([[1.0], [2.0], [3.0]]), 0.0
    while True:
        v = a @ v
        size = math.sqrt((v * v).sum())
        v /= size
        if abs(size - before) < 1e-4:
            assert math.isclose(size, 2 + math.sqrt(2), rel_tol=1e-3)
            return size, v, True
        before = size


def early_exit():
    classifier = _weight(np.cos, 3, 8)

    def decide(x):
        for depth in range(13):
            p = _softmax(classifier @ x)
            if p.max() > 0.95 or depth == 12:
                return p.argmax(), p.max(), depth
            x = x + np.maximum(np.sin(np.arange(64) + depth).reshape(8, 8) @ x, 0)

    return [decide(np.cos(np.arange(8)) * scale) for scale in (2.0, 0.5, 0.1, 0.01)]


def _threefry(key, x0, x1):
    ks = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    x0, x1 = (x0 + ks[0]) % 2**32, (x1 + ks[1]) % 2**32
    for number in range(1, 6):
        for bits in ((13, 15, 26, 6), (17, 29, 16, 24))[(number - 1) % 2]:
            x0 = (x0 + x1) % 2**32
            x1 = ((x1 << bits | x1 >> (32 - bits)) % 2**32) ^ x0
        x0 = (x0 + ks[number % 3]) % 2**32
        x1 = (x1 + ks[(number + 1) % 3] + number) % 2**32
    return x0, x1


def sampler():
    def split(key):
        words = [_threefry(key, 0, counter) for counter in range(2)]
        return [(words[i][0], words[i][1]) for i in range(2)]

    def uniform(key, n):
        return np.array([_threefry(key, i, 0)[0] >> 8 for i in range(n)]) / 2**24

    few, rest = split((0, 42))
    x, y = (uniform(key, 1000) for key in split(rest))
    # Those that the paper's authors publish.
    vectors = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, counter, words in vectors:
        assert _threefry(key, *counter) == words
    published = [tuple(np.array([word]) for word in words) for _, _, words in vectors]
    return published, uniform(few, 6), (x * x + y * y < 1).mean() * 4
