// FarmHash's Fingerprint64, the hash by which LiteRT projects (G. Pike, "Introducing FarmHash", 2014).
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend::tflite {

// Hashes of the 4 bytes of each seed, a float32, followed by the bytes of each line of `lines` (along its first axis), in the
// order of memory with little-endian elements: (seeds, lines), uint64. E0505 for a line whose size is symbolic.
Expr farm_hashes(const Builder& build, const Expr& seeds, const Expr& lines);

}  // namespace relay::frontend::tflite
