// What instructions that multiply words of several elements (dot_products.h) ask of a tile of sums.
#pragma once

#include <cstdint>

#include "target/dot_products.h"

namespace relay {

struct WordProductTile {
  // Registers that a tile keeps beside its sums, a vector of weights each, and one of the other factors.
  int64_t each_weight = 0;  // for each vector of weights
  int64_t constant = 0;
  int64_t rows = 1;  // that one instruction multiplies
};

WordProductTile word_product_tile(const Target& target, MatrixFactors factors);

}  // namespace relay
