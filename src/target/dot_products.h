// Instructions that multiply several elements of a lane and add the products, and units that do it for whole tiles.
#pragma once

#include <optional>

#include "target/target.h"

namespace relay {

// Whether one instruction adds the four products of bytes, the first ones unsigned and the second ones signed, to every
// lane of 32 bits in a vector.
bool has_byte_dot(const Target& target);

// Whether one instruction adds the two products of bfloat16 to every lane of float32 in a vector, and does so in no more
// time than two multiplications of float32. It takes denormal numbers for zero.
bool has_bfloat16_dot(const Target& target);

// What a matrix unit multiplies. Sums are of 32 bits.
enum class MatrixFactors {
  Byte,      // of either sign
  BFloat16,  // sums are rounded to float32
};

// Registers of `rows` rows of `words` words of 32 bits, and an instruction
//
//   sums[r, c] += sum over w of dot(a[r, w], b[w, c])
//
// for registers with so many rows and words or fewer, where a word holds neighbouring factors of the sum.
struct MatrixUnit {
  int64_t rows = 16;
  int64_t words = 16;
  int64_t registers = 8;
  int64_t word_elements = 1;  // factors in a word
  // Cycles that an instruction takes for each row of sums, with no fewer than `least_rows`, and that reading a register
  // takes for each of its rows.
  double row_cycles = 1;
  int64_t least_rows = 8;
  double load_cycles = 1;
};

// Nullopt when the target has none.
std::optional<MatrixUnit> matrix_unit(const Target& target, MatrixFactors factors);

// The features that code for the unit needs beside those of the vectors: amx-tile, amx-int8.
std::vector<std::string> matrix_features(const Target& target, MatrixFactors factors);

// How many words of a sum of `elements` factors one instruction takes so that every one takes as many; 0 when the sum is
// no whole number of words, or so many would leave most of the unit idle.
int64_t matrix_words(const MatrixUnit& unit, int64_t elements);
// The least number of factors, no fewer than `elements`, that the fewest instructions take, each as many words.
int64_t whole_matrix_words(const MatrixUnit& unit, int64_t elements);

}  // namespace relay
