// What operators whose sizes are tensors share: relations of `?`, and rules that compute sizes by
// statements.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/loops.h"

namespace relay::ops {

// Writes one int64 vector, the sizes of a result, from the inputs of a call.
using WriteSizes = std::function<tir::Stmt(
    const ComputeContext&, const std::vector<tir::Buffer>& in, const tir::Buffer& sizes)>;
// The sizes that argument `arg` holds; none may be negative.
WriteSizes sizes_in_argument(size_t arg);
// The same as a rule for a result of `rank` axes.
TirTensor sizes_of(const ComputeContext& ctx, int64_t rank, const WriteSizes& write);
std::function<TirTensor(const ComputeContext&)> sizes_rule(WriteSizes write);

// The i-th entry of a vector of integers, and a store of one, as int64.
PrimExpr element(const tir::Buffer& vector, size_t i);
tir::Stmt set(const tir::Buffer& sizes, size_t i, PrimExpr value);
tir::Stmt mismatch_unless(PrimExpr condition, std::string message);

// The length of an argument that holds sizes or axes: a vector of integers of known length.
std::optional<int64_t> length_of_sizes(RelationContext& ctx, size_t arg);
// A tensor of that rank with no known size.
relay::Type open_tensor(int64_t rank, runtime::DType dtype);

// What all operators here say alike.
OpInfo dynamic_row(const char* name, const char* doc, std::vector<ArgInfo> args, AttrsInfo attrs,
                   TypeRelation relation, std::shared_ptr<const ComputeRule> compute,
                   Column<CostRule> cost, Column<GradientRule> gradient, OpExample example);
// The row of an operator whose sizes another operator has as attributes.
OpInfo with_static_form(OpInfo row, StaticForm form);
// An example of this shape and these inputs.
OpExample given(std::vector<std::string> args, std::vector<std::vector<double>> inputs,
                std::string attrs = "");

}  // namespace relay::ops
