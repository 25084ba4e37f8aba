// Weights from a file of their own, in place of those that a model has.
//
//   GivenWeights given(source.weights);
//   Tensor value = given.take("fc.weight", DType::Float(32), {10, 64});   // null: the file does not have it
//   if (!value) given.miss("fc.weight");                                  // the model needs it
//   given.finish();
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/common/front_end.h"

namespace relay::frontend {

class GivenWeights {
 public:
  // `file` lives as long as this; without one, nothing is given and nothing is missing.
  explicit GivenWeights(const std::optional<WeightFile>& file) : file_(file) {}

  // The value of a weight of the model; null where the file does not have it. E0508 for another type than that.
  Tensor take(const std::string& name, DType dtype, const std::vector<int64_t>& shape);
  // Notes a weight without which the model cannot be used.
  void miss(const std::string& name);
  // E0508 when weights are missing, E0510 when the file has values that nothing took.
  void finish() const;

 private:
  const std::optional<WeightFile>& file_;
  std::set<std::string> known_;  // the weights of the model
  std::vector<std::string> missing_;
};

}  // namespace relay::frontend
