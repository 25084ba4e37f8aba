// One of the loop programs of each kind in C, as gcc -O2 compiles it: a peer of loops.py.
//
// An array argument is a pointer and its sizes; an array that is the result is the last argument.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

static i64 least(i64 a, i64 b) { return a < b ? a : b; }

i64 edit_distance(const i64* a, i64 n, const i64* b, i64 m) {
  const i64 row = m + 1;
  i64* d = calloc((n + 1) * row, sizeof(i64));
  for (i64 i = 0; i <= n; ++i) d[i * row] = i;
  for (i64 j = 0; j <= m; ++j) d[j] = j;
  for (i64 i = 1; i <= n; ++i) {
    for (i64 j = 1; j <= m; ++j) {
      i64 cost = a[i - 1] == b[j - 1] ? 0 : 1;
      i64 best = least(d[(i - 1) * row + j] + 1, d[i * row + j - 1] + 1);
      d[i * row + j] = least(best, d[(i - 1) * row + j - 1] + cost);
    }
  }
  i64 out = d[n * row + m];
  free(d);
  return out;
}

void insertion_sort(const double* x, i64 n, double* y) {
  memcpy(y, x, n * sizeof(double));
  for (i64 i = 1; i < n; ++i) {
    double v = y[i];
    i64 j = i - 1;
    for (; j >= 0 && y[j] > v; --j) y[j + 1] = y[j];
    y[j + 1] = v;
  }
}

void moving_average(const double* x, i64 n, double alpha, double* out) {
  double s = x[0];
  for (i64 i = 0; i < n; ++i) {
    s = alpha * x[i] + (1.0 - alpha) * s;
    out[i] = s;
  }
}

void sobel(const double* image, i64 n, i64 m, double* out) {
  memset(out, 0, n * m * sizeof(double));
  for (i64 i = 1; i < n - 1; ++i) {
    const double *up = image + (i - 1) * m, *here = up + m, *down = here + m;
    for (i64 j = 1; j < m - 1; ++j) {
      double gx = up[j + 1] + 2.0 * here[j + 1] + down[j + 1];
      gx -= up[j - 1] + 2.0 * here[j - 1] + down[j - 1];
      double gy = down[j - 1] + 2.0 * down[j] + down[j + 1];
      gy -= up[j - 1] + 2.0 * up[j] + up[j + 1];
      out[i * m + j] = sqrt(gx * gx + gy * gy);
    }
  }
}

i64 match_count(const i64* text, i64 n, const i64* pattern, i64 m) {
  i64* fail = calloc(m, sizeof(i64));
  i64 k = 0, count = 0;
  for (i64 i = 1; i < m; ++i) {
    while (k > 0 && pattern[i] != pattern[k]) k = fail[k - 1];
    if (pattern[i] == pattern[k]) ++k;
    fail[i] = k;
  }
  k = 0;
  for (i64 i = 0; i < n; ++i) {
    while (k > 0 && text[i] != pattern[k]) k = fail[k - 1];
    if (text[i] == pattern[k]) ++k;
    if (k == m) {
      ++count;
      k = fail[k - 1];
    }
  }
  free(fail);
  return count;
}

i64 coprime_pairs(i64 n) {
  i64 count = 0;
  for (i64 i = 1; i < n; ++i) {
    for (i64 j = 1; j < i; ++j) {
      i64 a = i, b = j;
      while (b != 0) {
        i64 rest = a % b;
        a = b;
        b = rest;
      }
      count += a == 1;
    }
  }
  return count;
}

void floyd_warshall(const double* w, i64 n, i64 m, double* d) {
  (void)m;
  memcpy(d, w, n * n * sizeof(double));
  for (i64 k = 0; k < n; ++k) {
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < n; ++j) {
        if (d[i * n + k] + d[k * n + j] < d[i * n + j]) d[i * n + j] = d[i * n + k] + d[k * n + j];
      }
    }
  }
}

void cholesky(const double* a, i64 n, i64 m, double* out) {
  (void)m;
  memset(out, 0, n * n * sizeof(double));
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = 0; j <= i; ++j) {
      double total = a[i * n + j];
      for (i64 k = 0; k < j; ++k) total -= out[i * n + k] * out[j * n + k];
      out[i * n + j] = i == j ? sqrt(total) : total / out[j * n + j];
    }
  }
}

void nearest_centers(const double* points, i64 n, i64 axes, const double* centers, i64 count,
                     i64 width, i64* label) {
  for (i64 i = 0; i < n; ++i) {
    double best = INFINITY;
    for (i64 c = 0; c < count; ++c) {
      double square = 0.0;
      for (i64 k = 0; k < axes; ++k) {
        double d = points[i * axes + k] - centers[c * width + k];
        square += d * d;
      }
      if (square < best) {
        best = square;
        label[i] = c;
      }
    }
  }
}

void square_roots(const double* x, i64 n, double tolerance, double* out) {
  for (i64 i = 0; i < n; ++i) {
    double a = x[i], root = a;
    while (fabs(root * root - a) > tolerance * a) root = 0.5 * (root + a / root);
    out[i] = root;
  }
}

i64 fibonacci(i64 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
