// FastMath: replaces operators by the approximations that their rows name, which are faster and less exact. Opt-in.
//
// before                        after
//   exp(%x)                       fast_exp(%x)        within 4e-6 of its size
//   tanh(%x)                      fast_tanh(%x)       within 3e-6
//   erf(%x)                       fast_erf(%x)        within 5e-6
//   nn.softmax(%x)                nn.fast_softmax(%x) by fast_exp: within 1e-5 of its size
//
// Legal where the user accepts these errors; NaN, infinities and the limits stay what they are.
// Measured on one core with AVX-512: exp 1.4, tanh 1.9, softmax over 128 elements 1.2 times as fast; erf
// has one formula there. Works on float32; other dtypes have no approximation. Runs from level 4, which no build
// has by itself: `required_pass={"FastMath"}` or running the pass asks for it.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFastMath;

}  // namespace relay
