#include "passes/pipelines.h"

#include <algorithm>
#include <array>

#include "passes/fold_constant.h"
#include "passes/fuse_ops.h"
#include "passes/simplify_inference.h"

namespace relay {
namespace {

constexpr std::array kAll{
    &kFoldConstant,
    &kFuseOps,
    &kSimplifyInference,
};

constexpr std::array kOptimize{
    &kSimplifyInference,  // from here on no operator that only training needs
    &kFoldConstant,
    &kFuseOps,  // from here on every operator call is inside a primitive function
};

}  // namespace

std::span<const Pass* const> all_passes() { return kAll; }
std::span<const Pass* const> optimize_pipeline() { return kOptimize; }

}  // namespace relay
