// The discrete Fourier transform: of a known length by the operator, of another as a matrix product. Complex numbers are pairs of a real and an imaginary part
// along the last axis, which real signals may have with one part.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend {

struct FourierSpec {
  bool inverse = false;
  bool onesided = false;  // of real signals: without the bins that mirror others
};

// 1 or 2; E0203 for another last axis, or one that is open.
int64_t complex_parts(const Builder& build, const Expr& x);

// The parts of complex numbers; without imaginary parts they are real.
struct ComplexParts {
  Expr re, im;
};
// The transform of length n along the last axis, whose size is known; not one-sided and inverse.
ComplexParts fourier_of_lines(const Builder& build, const ComplexParts& lines, int64_t n,
                              const FourierSpec& spec);

// The transform of length n along an axis of known size, which is not the last; not one-sided and inverse. Longer signals
// are cut, shorter ones continued by zeros.
Expr fourier(const Builder& build, const Expr& x, int64_t axis, int64_t n, const FourierSpec& spec);
// The same along the last axis but one, whatever its size, of so many parts. `count` is the length of the transform, an integer scalar, or null
// for that of the signal.
Expr fourier_at_run_time(const Builder& build, const Expr& x, int64_t parts, const Expr& count,
                         const FourierSpec& spec);

// Overlapping pieces of signals (batch, length, parts), each times the window, if it is not null, and transformed: (batch,
// pieces, bins, 2). The step and the length of a piece are int64 scalars.
Expr short_time_fourier(const Builder& build, const Expr& x, const Expr& step, const Expr& length,
                        const Expr& window, const FourierSpec& spec);

}  // namespace relay::frontend
