// What an instruction that multiplies bytes (dot_products.h) costs beside the product.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace relay {

// Registers that a tile of sums of bytes keeps beside its sums, a vector of weights each, and one of the other factors.
struct ByteProductRegisters {
  int64_t each_weight = 0;  // for each vector of weights
  int64_t constant = 0;
};

ByteProductRegisters byte_product_registers(const Target& target);

}  // namespace relay
