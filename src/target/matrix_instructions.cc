#include "target/matrix_instructions.h"

#include <algorithm>

namespace relay {
namespace {

using Operand = MatrixInstruction::Operand;

// Those that do more at a time come first.
constexpr MatrixInstruction kInstructions[] = {
    {"mma-f16", Operand::Float16, 16, 16},   {"mma-f16-k8", Operand::Float16, 16, 8},
    {"mma-bf16", Operand::BFloat16, 16, 16}, {kTf32, Operand::Float32, 16, 8},
    {"mma-int8", Operand::Bytes, 16, 32},    {"mma-int8-m8", Operand::Bytes, 8, 16},
};

}  // namespace

std::optional<MatrixInstruction> matrix_instruction(const Target& target, Operand operand) {
  for (const MatrixInstruction& i : kInstructions) {
    if (i.operand == operand && target.has_feature(i.feature)) return i;
  }
  return std::nullopt;
}

bool is_matrix_instruction(Operand operand, int64_t rows, int64_t terms) {
  return std::ranges::any_of(kInstructions, [&](const MatrixInstruction& i) {
    return i.operand == operand && i.rows == rows && i.terms == terms;
  });
}

bool has_matrix_instructions(const Target& target) {
  return std::ranges::any_of(kInstructions,
                             [&](const auto& i) { return target.has_feature(i.feature); });
}

bool is_matrix_feature(std::string_view feature) {
  return std::ranges::find(kInstructions, feature, &MatrixInstruction::feature) !=
         std::end(kInstructions);
}

std::string nvidia_matrix_features(int capability) {
  return capability < 80 ? "+mma-f16-k8,+mma-int8-m8" : "+mma-f16,+mma-bf16,+mma-int8";
}

}  // namespace relay
