#include "target/dot_products.h"

#include <algorithm>

#include "target/word_products.h"

namespace relay {

namespace {

// SVE has products of signed bytes in every processor.
bool has_sve_dot(const Target& target) {
  return target.has_feature("sve") && target.vector_bits > 128;
}

}  // namespace

bool has_byte_dot(const Target& target) {
  bool wide = target.has_feature("avx512vnni") && target.has_feature("avx512vl");
  return wide || (target.has_feature("avxvnni") && target.vector_bits <= 256) ||
         target.has_feature("dotprod") || target.has_feature("i8mm") || has_sve_dot(target);
}

// Zen 4 and 5 multiply and add 1.8 times as many numbers by vdpbf16ps as by FMA. Cores of Intel with instructions for float16
// (Sapphire Rapids and later) do half as many: 43 billion a second, and 88 by FMA, at 2.75 GHz. They have AMX.
bool has_bfloat16_dot(const Target& target) {
  return target.has_feature("bf16") ||
         (target.has_feature("avx512bf16") && target.has_feature("avx512vl") &&
          !target.has_feature("avx512fp16"));
}

WordProductTile word_product_tile(const Target& target, MatrixFactors factors) {
  const bool bytes = factors == MatrixFactors::Byte;
  WordProductTile out;
  // Two words of two columns stand together: a vector of weights becomes two.
  if (target.has_feature(bytes ? "i8mm" : "bf16") && target.vector_bits == 128) {
    out.rows = 2;
    out.each_weight = 1;
  }
  // Products of signed bytes only: 128 less of the unsigned ones, and what that is in the sums, which a vector of weights
  // shares; 128 and 64 are constants. Of NEON's registers LLVM 19 needs four more to load and shift rows ahead: otherwise a
  // GEMM on the Cortex-A76 moves 23 vectors to and from the stack in each step.
  const bool is_signed = target.has_feature("dotprod") || has_sve_dot(target);
  if (bytes && is_signed && !target.has_feature("i8mm")) {
    out.each_weight = 1;
    out.constant = target.vector_bits == 128 ? 6 : 2;
  }
  return out;
}

std::optional<MatrixUnit> matrix_unit(const Target& target, MatrixFactors factors) {
  const char* feature = factors == MatrixFactors::Byte ? "amx-int8" : "amx-bf16";
  // What follows a sum is done by vectors of a register's row.
  if (!target.has_feature("amx-tile") || !target.has_feature(feature) ||
      target.vector_bits != 512) {
    return std::nullopt;
  }
  MatrixUnit out;
  out.word_elements = factors == MatrixFactors::Byte ? 4 : 2;
  return out;
}

std::vector<std::string> matrix_features(const Target& target, MatrixFactors factors) {
  if (!matrix_unit(target, factors)) return {};
  return {"amx-tile", factors == MatrixFactors::Byte ? "amx-int8" : "amx-bf16"};
}

int64_t matrix_words(const MatrixUnit& unit, int64_t elements) {
  if (elements <= 0 || elements % unit.word_elements != 0) return 0;
  const int64_t words = elements / unit.word_elements;
  for (int64_t step = std::min(unit.words, words); 4 * step >= unit.words; --step) {
    if (words % step == 0) return step;
  }
  return 0;
}

int64_t whole_matrix_words(const MatrixUnit& unit, int64_t elements) {
  if (elements <= 0) return elements;
  auto rounded_up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t words = rounded_up(elements, unit.word_elements);
  const int64_t steps = rounded_up(words, unit.words);
  return steps * rounded_up(words, steps) * unit.word_elements;
}

}  // namespace relay
