// Operators on small constants, computed as FoldConstant does.
#pragma once

#include <vector>

#include "analysis/evaluate_constants.h"

namespace relay::partial {

class Folding {
 public:
  explicit Folding(const ConstantEvaluator& evaluate) : evaluate_(evaluate) {}

  // The value of a call of an operator on constants (and tuples of constants); null when it is not
  // pure, not small, or fails. Larger ones are for FoldConstant: nothing is decided by them.
  Constant fold(const Call& call, const std::vector<Constant>& leaves) const;

 private:
  const ConstantEvaluator& evaluate_;
};

}  // namespace relay::partial
