// Instructions with which the items of a warp - 32 neighbours in a group - add a product of matrices to sums that lie in
// their registers (tir/warp_nest.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "target/target.h"

namespace relay {

// rows x terms by terms x kColumns.
struct MatrixInstruction {
  // Sums are float32; of Bytes, signed or not, int32. Float32 operands are rounded to 10 bits of mantissa.
  enum class Operand { Float16, BFloat16, Float32, Bytes };
  static constexpr int64_t kColumns = 8;

  std::string_view feature;  // of targets that have it (Target::features)
  Operand operand = Operand::Float16;
  int64_t rows = 16, terms = 16;
};

// The instruction of the target for such operands that does most at a time.
std::optional<MatrixInstruction> matrix_instruction(const Target& target,
                                                    MatrixInstruction::Operand operand);
// Whether there is such an instruction, whatever target has it.
bool is_matrix_instruction(MatrixInstruction::Operand operand, int64_t rows, int64_t terms);
// Whether the target has an instruction for any operands.
bool has_matrix_instructions(const Target& target);

// Whether the feature is that of an instruction: code generators do not know the word.
bool is_matrix_feature(std::string_view feature);

// The features of an NVIDIA GPU of a compute capability, 75 to 90: "+mma-f16,+mma-bf16,...".
std::string nvidia_matrix_features(int capability);
// The word of targets that round products of float32.
inline constexpr std::string_view kTf32 = "tf32";

}  // namespace relay
