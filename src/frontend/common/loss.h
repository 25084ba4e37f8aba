// Losses of classifiers.
#pragma once

#include <optional>

#include "frontend/common/builder.h"

namespace relay::frontend {

enum class LossReduction { None, Sum, Mean };
struct Loss {
  Expr weights = nullptr;                         // of the classes, (classes); null for 1
  std::optional<int64_t> ignored = std::nullopt;  // a target that counts for nothing
  LossReduction reduction = LossReduction::Mean;  // a mean is one by weights
};
// The negative logarithm of each target's probability: log_prob is (batch, classes, more...), targets (batch, more...).
Expr negative_log_likelihood(const Builder& build, const Expr& log_prob, const Expr& targets,
                             const Loss& loss);

}  // namespace relay::frontend
