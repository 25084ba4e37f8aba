"""Programs of loops over numbers: recurrences, integers, particles, tolerances and recursion.

Each is a plain Python function of NumPy arrays and numbers, and returns numbers and arrays of its own.
loop_programs.py lists them with their arguments.
"""

import math

import numpy as np

# ---- Recurrences and filters


def moving_average(x, alpha):
    out = np.zeros(len(x))
    s = x[0]
    for i in range(len(x)):
        s = alpha * x[i] + (1.0 - alpha) * s
        out[i] = s
    return out


def biquad(x, b0, b1, b2, a1, a2):
    out = np.zeros(len(x))
    x1 = x2 = y1 = y2 = 0.0
    for i in range(len(x)):
        y = b0 * x[i] + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        x2, x1 = x1, x[i]
        y2, y1 = y1, y
        out[i] = y
    return out


def kalman(measured, process_noise, noise):
    out = np.empty_like(measured)
    estimate = 0.0
    variance = 1.0
    for i in range(len(measured)):
        variance += process_noise
        gain = variance / (variance + noise)
        estimate += gain * (measured[i] - estimate)
        variance *= 1.0 - gain
        out[i] = estimate
    return out


def shift_register(state, steps):
    ones = 0
    for _ in range(steps):
        bit = (state ^ (state >> 2) ^ (state >> 3) ^ (state >> 5)) & 1
        state = (state >> 1) | (bit << 15)
        ones += bit
    return state, ones


def running_variance(x):
    mean = 0.0
    total = 0.0
    count = 0
    for v in x:
        count += 1
        delta = v - mean
        mean += delta / count
        total += delta * (v - mean)
    return mean, total / (count - 1)


def garch(returns, omega, alpha, beta):
    variance = 1.0
    likelihood = 0.0
    for r in returns:
        likelihood -= 0.5 * (math.log(variance) + r * r / variance)
        variance = omega + alpha * r * r + beta * variance
    return likelihood


# ---- Integer arithmetic


def coprime_pairs(n):
    count = 0
    for i in range(1, n):
        for j in range(1, i):
            a, b = i, j
            while b != 0:
                a, b = b, a % b
            if a == 1:
                count += 1
    return count


def power_sum(n, modulus):
    total = 0
    for k in range(1, n):
        base = k % modulus
        exponent = n
        power = 1
        while exponent > 0:
            if exponent % 2 == 1:
                power = power * base % modulus
            base = base * base % modulus
            exponent //= 2
        total = (total + power) % modulus
    return total


def longest_collatz(limit):
    best = 0
    start = 1
    for n in range(1, limit):
        steps = 0
        k = n
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        if steps > best:
            best = steps
            start = n
    return start, best


def sieve(n):
    prime = np.ones(n + 1, dtype=np.bool_)
    prime[0] = False
    prime[1] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
        i += 1
    count = 0
    for i in range(n + 1):
        if prime[i]:
            count += 1
    return count


def xorshift(seed, steps):
    x = seed
    total = 0
    for _ in range(steps):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        total += x & 255
    return x, total


def divisor_sums(n):
    perfect = 0
    abundant = 0
    for k in range(2, n):
        total = 1
        d = 2
        while d * d <= k:
            if k % d == 0:
                total += d
                if d * d != k:
                    total += k // d
            d += 1
        if total == k:
            perfect += 1
        elif total > k:
            abundant += 1
    return perfect, abundant


# ---- Particles


def planets(position, velocity, mass, steps, dt):
    p = position.copy()
    v = velocity.copy()
    n = len(mass)
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                dx = p[i, 0] - p[j, 0]
                dy = p[i, 1] - p[j, 1]
                dz = p[i, 2] - p[j, 2]
                square = dx * dx + dy * dy + dz * dz
                pull = dt / (square * math.sqrt(square))
                v[i, 0] -= dx * mass[j] * pull
                v[i, 1] -= dy * mass[j] * pull
                v[i, 2] -= dz * mass[j] * pull
                v[j, 0] += dx * mass[i] * pull
                v[j, 1] += dy * mass[i] * pull
                v[j, 2] += dz * mass[i] * pull
        for i in range(n):
            for k in range(3):
                p[i, k] += dt * v[i, k]
    return p, v


def cell_counts(x, y, cells):
    counts = np.zeros((cells, cells), dtype=np.int64)
    for i in range(len(x)):
        counts[int(x[i] * cells), int(y[i] * cells)] += 1
    return counts


def pair_forces(x, cutoff):
    n = x.shape[0]
    force = np.zeros((n, 3))
    energy = 0.0
    for i in range(n):
        for j in range(i):
            square = 0.0
            for k in range(3):
                square += (x[i, k] - x[j, k]) ** 2
            if square < cutoff * cutoff:
                r6 = 1.0 / (square * square * square)
                energy += 4.0 * r6 * (r6 - 1.0)
                scale = 24.0 * r6 * (2.0 * r6 - 1.0) / square
                for k in range(3):
                    f = scale * (x[i, k] - x[j, k])
                    force[i, k] += f
                    force[j, k] -= f
    return energy, force


def nearest_centers(points, centers):
    label = np.zeros(len(points), dtype=np.int64)
    for i in range(len(points)):
        best = np.inf
        for c in range(len(centers)):
            square = 0.0
            for k in range(points.shape[1]):
                d = points[i, k] - centers[c, k]
                square += d * d
            if square < best:
                best = square
                label[i] = c
    return label


# ---- Iteration to a tolerance


def square_roots(x, tolerance):
    out = np.zeros(len(x))
    for i in range(len(x)):
        a = x[i]
        root = a
        while abs(root * root - a) > tolerance * a:
            root = 0.5 * (root + a / root)
        out[i] = root
    return out


def power_iteration(a, tolerance):
    n = a.shape[0]
    v = np.ones(n)
    value = 0.0
    for step in range(1000):
        w = np.zeros(n)
        norm = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += a[i, j] * v[j]
            w[i] = total
            norm = max(norm, abs(total))
        for i in range(n):
            v[i] = w[i] / norm
        if abs(norm - value) < tolerance:
            return norm, step
        value = norm
    return value, -1


def bisection(c, tolerance):
    out = np.zeros(len(c))
    for i in range(len(c)):
        low, high = 0.0, 2.0
        while high - low > tolerance:
            middle = 0.5 * (low + high)
            if middle * middle * middle + middle < c[i]:
                low = middle
            else:
                high = middle
        out[i] = 0.5 * (low + high)
    return out


def kepler(mean, eccentricity):
    out = np.zeros(len(mean))
    for i in range(len(mean)):
        e = mean[i]
        for _ in range(100):
            step = (e - eccentricity * math.sin(e) - mean[i]) / (1.0 - eccentricity * math.cos(e))
            e -= step
            if abs(step) < 1e-12:
                break
        out[i] = e
    return out


def mandelbrot(n, limit):
    out = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            cx = -2.0 + 3.0 * j / n
            cy = -1.5 + 3.0 * i / n
            x = 0.0
            y = 0.0
            count = 0
            while count < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                count += 1
            out[i, j] = count
    return out


# ---- Recursion


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def binomial(n, k):
    if k == 0 or k == n:
        return 1
    return binomial(n - 1, k - 1) + binomial(n - 1, k)


def queens(board, columns, left, right):
    """Counts the ways to fill the other rows; the bits of `board` are the columns of a row."""
    if columns == board:
        return 1
    count = 0
    free = board & ~(columns | left | right)
    while free != 0:
        bit = free & -free
        free ^= bit
        count += queens(board, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count
