"""Programs of loops over arrays: tables, sorting, stencils, strings, graphs and factorisations.

Each is a plain Python function of NumPy arrays and numbers, and returns numbers and arrays of its own.
loop_programs.py lists them with their arguments.
"""

import math

import numpy as np

# ---- Dynamic programming over tables


def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def common_subsequence(a, b):
    n, m = len(a), len(b)
    best = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                best[i + 1, j + 1] = best[i, j] + 1
            else:
                best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j])
    return best[n, m]


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(weights)):
        w = weights[i]
        for c in range(capacity, w - 1, -1):
            candidate = best[c - w] + values[i]
            if candidate > best[c]:
                best[c] = candidate
    return best[capacity]


def matrix_chain(sizes):
    n = len(sizes) - 1
    cost = np.zeros((n, n), dtype=np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = cost[i + 1, j] + sizes[i] * sizes[i + 1] * sizes[j + 1]
            for k in range(i + 1, j):
                c = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if c < best:
                    best = c
            cost[i, j] = best
    return cost[0, n - 1]


def viterbi(observed, start, step, emit):
    n, states = len(observed), len(start)
    score = np.zeros((n, states))
    back = np.zeros((n, states), dtype=np.int64)
    for s in range(states):
        score[0, s] = start[s] + emit[s, observed[0]]
    for t in range(1, n):
        for s in range(states):
            top = score[t - 1, 0] + step[0, s]
            where = 0
            for r in range(1, states):
                value = score[t - 1, r] + step[r, s]
                if value > top:
                    top = value
                    where = r
            score[t, s] = top + emit[s, observed[t]]
            back[t, s] = where
    path = np.zeros(n, dtype=np.int64)
    last = 0
    for s in range(1, states):
        if score[n - 1, s] > score[n - 1, last]:
            last = s
    path[n - 1] = last
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


def time_warping(x, y):
    n, m = len(x), len(y)
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = abs(x[i - 1] - y[j - 1])
            d[i, j] = cost + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n, m]


def coin_change(coins, amount):
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] = (ways[total] + ways[total - coin]) % 1_000_000_007
    return ways[amount]


# ---- Sorting and searching


def insertion_sort(x):
    y = x.copy()
    for i in range(1, len(y)):
        v = y[i]
        j = i - 1
        while j >= 0 and y[j] > v:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = v
    return y


def shell_sort(x):
    y = x.copy()
    n = len(y)
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            v = y[i]
            j = i
            while j >= gap and y[j - gap] > v:
                y[j] = y[j - gap]
                j -= gap
            y[j] = v
        gap //= 2
    return y


def heap_sort(x):
    y = x.copy()
    n = len(y)
    start = n // 2
    end = n
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            y[end], y[0] = y[0], y[end]
        root = start
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and y[child] < y[child + 1]:
                child += 1
            if y[root] >= y[child]:
                break
            y[root], y[child] = y[child], y[root]
            root = child
    return y


def quick_sort(x):
    y = x.copy()
    low = np.zeros(64, dtype=np.int64)
    high = np.zeros(64, dtype=np.int64)
    high[0] = len(y) - 1
    top = 0
    while top >= 0:
        a, b = low[top], high[top]
        top -= 1
        while a < b:
            pivot = y[(a + b) // 2]
            i, j = a, b
            while i <= j:
                while y[i] < pivot:
                    i += 1
                while y[j] > pivot:
                    j -= 1
                if i <= j:
                    y[i], y[j] = y[j], y[i]
                    i += 1
                    j -= 1
            # The longer part waits, so that 64 places are enough.
            top += 1
            if j - a > b - i:
                low[top], high[top] = a, j
                a = i
            else:
                low[top], high[top] = i, b
                b = j
    return y


def merge_sort(x):
    y = x.copy()
    n = len(y)
    other = np.zeros(n)
    width = 1
    while width < n:
        for left in range(0, n, 2 * width):
            middle = min(left + width, n)
            right = min(left + 2 * width, n)
            i, j = left, middle
            for k in range(left, right):
                if i < middle and (j >= right or y[i] <= y[j]):
                    other[k] = y[i]
                    i += 1
                else:
                    other[k] = y[j]
                    j += 1
        y, other = other, y
        width *= 2
    return y


def binary_search(x, wanted):
    found = np.zeros(len(wanted), dtype=np.int64)
    for q in range(len(wanted)):
        low, high = 0, len(x)
        while low < high:
            middle = (low + high) // 2
            if x[middle] < wanted[q]:
                low = middle + 1
            else:
                high = middle
        found[q] = low
    return found


# ---- Stencils


def heat_line(u, steps):
    old = u.copy()
    n = len(u)
    for _ in range(steps):
        new = old.copy()
        for i in range(1, n - 1):
            new[i] = old[i] + 0.1 * (old[i - 1] - 2.0 * old[i] + old[i + 1])
        old = new
    return old


def jacobi_plate(u, steps):
    a = u.copy()
    b = u.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
        a, b = b, a
    return a


def gauss_seidel(u, steps):
    a = u.copy()
    n, m = a.shape
    change = 0.0
    for _ in range(steps):
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
                change = max(change, abs(new - a[i, j]))
                a[i, j] = new
    return a, change


def life(cells, steps):
    a = cells.copy()
    n, m = a.shape
    for _ in range(steps):
        b = np.zeros((n, m), dtype=np.int64)
        for i in range(n):
            up, down = (i - 1) % n, (i + 1) % n
            for j in range(m):
                left, right = (j - 1) % m, (j + 1) % m
                count = a[up, left] + a[up, j] + a[up, right] + a[i, left] + a[i, right]
                count += a[down, left] + a[down, j] + a[down, right]
                if count == 3 or (count == 2 and a[i, j] == 1):
                    b[i, j] = 1
        a = b
    return a


def sobel(image):
    n, m = image.shape
    out = np.zeros((n, m))
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            gx = image[i - 1, j + 1] + 2.0 * image[i, j + 1] + image[i + 1, j + 1]
            gx -= image[i - 1, j - 1] + 2.0 * image[i, j - 1] + image[i + 1, j - 1]
            gy = image[i + 1, j - 1] + 2.0 * image[i + 1, j] + image[i + 1, j + 1]
            gy -= image[i - 1, j - 1] + 2.0 * image[i - 1, j] + image[i - 1, j + 1]
            out[i, j] = math.sqrt(gx * gx + gy * gy)
    return out


def blur(image, weights):
    n, m = image.shape
    k = weights.shape[0]
    half = k // 2
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            total = 0.0
            for di in range(k):
                for dj in range(k):
                    r = min(max(i + di - half, 0), n - 1)
                    c = min(max(j + dj - half, 0), m - 1)
                    total += weights[di, dj] * image[r, c]
            out[i, j] = total
    return out


# ---- String matching over arrays of integers


def match_count(text, pattern):
    n, m = len(text), len(pattern)
    fail = np.zeros(m, dtype=np.int64)
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[i] != pattern[k]:
            k = fail[k - 1]
        if pattern[i] == pattern[k]:
            k += 1
        fail[i] = k
    count = 0
    k = 0
    for i in range(n):
        while k > 0 and text[i] != pattern[k]:
            k = fail[k - 1]
        if text[i] == pattern[k]:
            k += 1
        if k == m:
            count += 1
            k = fail[k - 1]
    return count


def z_function(text):
    n = len(text)
    z = np.zeros(n, dtype=np.int64)
    left = 0
    right = 0
    for i in range(1, n):
        if i < right:
            z[i] = min(right - i, z[i - left])
        while i + z[i] < n and text[z[i]] == text[i + z[i]]:
            z[i] += 1
        if i + z[i] > right:
            left = i
            right = i + z[i]
    return z


def rolling_hash(text, pattern):
    base, modulus = 257, 1_000_003
    n, m = len(text), len(pattern)
    wanted = 0
    seen = 0
    power = 1
    for i in range(m):
        wanted = (wanted * base + pattern[i]) % modulus
        seen = (seen * base + text[i]) % modulus
        if i > 0:
            power = power * base % modulus
    count = 0
    for i in range(n - m + 1):
        if seen == wanted:
            j = 0
            while j < m and text[i + j] == pattern[j]:
                j += 1
            if j == m:
                count += 1
        if i + m < n:
            seen = ((seen - text[i] * power) * base + text[i + m]) % modulus
    return count


def longest_palindrome(text):
    n = len(text)
    best = 0
    start = 0
    for center in range(2 * n - 1):
        left = center // 2
        right = left + center % 2
        while left >= 0 and right < n and text[left] == text[right]:
            left -= 1
            right += 1
        if right - left - 1 > best:
            best = right - left - 1
            start = left + 1
    return best, start


def closest_window(text, pattern):
    best = len(pattern) + 1
    where = -1
    for i in range(len(text) - len(pattern) + 1):
        different = 0
        for j in range(len(pattern)):
            if text[i + j] != pattern[j]:
                different += 1
                if different >= best:
                    break
        if different < best:
            best = different
            where = i
    return best, where


# ---- Graphs


def floyd_warshall(w):
    d = w.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def bellman_ford(source, target, weight, nodes):
    d = np.full(nodes, np.inf)
    d[0] = 0.0
    for _ in range(nodes - 1):
        changed = False
        for e in range(len(source)):
            new = d[source[e]] + weight[e]
            if new < d[target[e]]:
                d[target[e]] = new
                changed = True
        if not changed:
            break
    return d


def maze_distance(walls):
    n, m = walls.shape
    d = np.full((n, m), -1, dtype=np.int64)
    queue = np.zeros(n * m, dtype=np.int64)
    d[0, 0] = 0
    head = 0
    tail = 1
    while head < tail:
        place = queue[head]
        head += 1
        i, j = place // m, place % m
        for k in range(4):
            r = i + (k == 0) - (k == 1)
            c = j + (k == 2) - (k == 3)
            if 0 <= r < n and 0 <= c < m and not walls[r, c] and d[r, c] < 0:
                d[r, c] = d[i, j] + 1
                queue[tail] = r * m + c
                tail += 1
    return d


def components(source, target, nodes):
    parent = np.arange(nodes)
    count = nodes
    for e in range(len(source)):
        a = source[e]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        b = target[e]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            count -= 1
    return count


def dijkstra(w):
    n = w.shape[0]
    d = np.full(n, np.inf)
    done = np.zeros(n, dtype=np.bool_)
    d[0] = 0.0
    for _ in range(n):
        near = -1
        for i in range(n):
            if not done[i] and (near < 0 or d[i] < d[near]):
                near = i
        done[near] = True
        for i in range(n):
            if d[near] + w[near, i] < d[i]:
                d[i] = d[near] + w[near, i]
    return d


def topological_order(first, target):
    """Edges of node i go to target[first[i]:first[i + 1]]."""
    n = len(first) - 1
    waiting = np.zeros(n, dtype=np.int64)
    for t in target:
        waiting[t] += 1
    order = np.zeros(n, dtype=np.int64)
    tail = 0
    for i in range(n):
        if waiting[i] == 0:
            order[tail] = i
            tail += 1
    head = 0
    while head < tail:
        node = order[head]
        head += 1
        for e in range(first[node], first[node + 1]):
            waiting[target[e]] -= 1
            if waiting[target[e]] == 0:
                order[tail] = target[e]
                tail += 1
    return order


# ---- Factorisations


def cholesky(a):
    n = a.shape[0]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            if i == j:
                out[i, i] = math.sqrt(total)
            else:
                out[i, j] = total / out[j, j]
    return out


def lu_pivoting(matrix):
    a = matrix.copy()
    n = a.shape[0]
    rows = np.arange(n)
    for k in range(n):
        top = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[top, k]):
                top = i
        if top != k:
            rows[k], rows[top] = rows[top], rows[k]
            for j in range(n):
                a[k, j], a[top, j] = a[top, j], a[k, j]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a, rows


def gram_schmidt(a):
    q = a.copy()
    n, m = a.shape
    r = np.zeros((m, m))
    for j in range(m):
        for k in range(j):
            dot = 0.0
            for i in range(n):
                dot += q[i, k] * q[i, j]
            r[k, j] = dot
            for i in range(n):
                q[i, j] -= dot * q[i, k]
        square = 0.0
        for i in range(n):
            square += q[i, j] * q[i, j]
        r[j, j] = math.sqrt(square)
        for i in range(n):
            q[i, j] /= r[j, j]
    return q, r


def tridiagonal(lower, diagonal, upper, right):
    n = len(diagonal)
    c = np.zeros(n)
    x = np.zeros(n)
    c[0] = upper[0] / diagonal[0]
    x[0] = right[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / m
        x[i] = (right[i] - lower[i] * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


def gauss_jordan(matrix):
    a = matrix.copy()
    n = a.shape[0]
    inverse = np.eye(n)
    for k in range(n):
        pivot = a[k, k]
        for j in range(n):
            a[k, j] /= pivot
            inverse[k, j] /= pivot
        for i in range(n):
            if i != k:
                factor = a[i, k]
                for j in range(n):
                    a[i, j] -= factor * a[k, j]
                    inverse[i, j] -= factor * inverse[k, j]
    return inverse
