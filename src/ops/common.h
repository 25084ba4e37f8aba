// What the operator families share: type relations, shape helpers, layout rules.
#pragma once

#include <string>

#include "ir/op.h"
#include "lower/interface/compute_rule.h"

namespace relay::ops {

using tir::Indices;
using tir::PrimExpr;
using TirTensor = tir::Tensor;
using Ints = std::vector<int64_t>;

// The row of one of Relay's operators; a defect when there is none of that name.
const OpInfo* operator_row(std::string_view name);

// The column `may_end_run` of an operator whose every call may.
inline bool on_every_call(const relay::CallNode&) { return true; }

// ---- Relations
// What relations of many operators ask and answer.

// The first argument, which has the result's type: taken from the result when only that is known.
// Null when neither is.
const TensorTypeNode* like_result(RelationContext& ctx);
// The type of the first argument.
Type identity(RelationContext& ctx);
// The same, for floating dtypes only.
Type float_identity(RelationContext& ctx);
// NumPy broadcasting of both arguments of one dtype; `bool` result for comparisons.
Type broadcast(RelationContext& ctx);
Type broadcast_compare(RelationContext& ctx);
Type broadcast_bool(RelationContext& ctx);
// For operators on bits: the same without floats, or of integers only.
Type broadcast_bits(RelationContext& ctx);
Type broadcast_shift(RelationContext& ctx);
Type bits_identity(RelationContext& ctx);

// The broadcast of two shapes; fails in `ctx` with both shapes when they do not fit.
std::optional<std::vector<Dim>> broadcast_shapes(RelationContext& ctx, const std::vector<Dim>& a,
                                                 const std::vector<Dim>& b);

// An axis counted from the front; fails in `ctx` when it is out of range.
std::optional<int64_t> normal_axis(RelationContext& ctx, int64_t axis, int64_t rank,
                                   const char* name = "axis");
// For compute rules, where the relation has held.
inline int64_t from_front(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// What a reduction computes in: float32 for 16-bit floats, which has each of them; sums by more bits, the least and greatest
// by vectors.
inline DType accumulator(DType d) { return d.is_floating() && d.bits == 16 ? DType::Float(32) : d; }

bool require(RelationContext& ctx, bool condition, const DiagnosticCode& code,
             const std::string& message, const std::string& expected = {},
             const std::string& found = {});

// Whether an attribute can be a size of `least` or more: a number that is, or what a run will find to
// be; fails in `ctx` with `what` is wrong when not.
bool check_size(RelationContext& ctx, const Dim& size, const char* what, int64_t least = 0);
// The size of an axis whose elements are put `stride` apart: of none, none.
Dim dilated_size(const Dim& size, int64_t stride);

// Whether the sizes of an attribute are a shape that a machine can hold; fails in `ctx` when not.
bool check_shape(RelationContext& ctx, const std::vector<Dim>& shape);

std::string shape_text(const std::vector<Dim>& shape);

// ---- Computation
// What compute rules of many operators are made of.

// The index along an axis of `size` that belongs to index `i` along that of the result: 0 for a size
// of one. Where only a run can tell whether the size is one, that is decided for each element, so
// kernels are also made for the case that it is not (KernelOf::equal_sizes).
PrimExpr broadcast_index(const PrimExpr& i, const PrimExpr& size, const PrimExpr& result);
// The element of `t` that broadcasts to index `i` of a result of that shape, of higher or equal rank.
PrimExpr broadcast_read(const TirTensor& t, const Indices& i, const std::vector<PrimExpr>& result);
// Element-wise over one input.
std::shared_ptr<const ComputeRule> unary_rule(PrimExpr (*f)(const PrimExpr& x));

// The order of two strings: below, at or above 0.
PrimExpr string_order(const PrimExpr& a, const PrimExpr& b);
// The key of a string (runtime::string_key), as the bits of an int64.
PrimExpr string_key(const PrimExpr& x);

// True for the constant one.
bool is_one(const PrimExpr& e);

// ---- Layout rules
// For operators that take several layouts.

// Any layout will do: takes that of the first argument that has one; scalars stay.
std::optional<LayoutDecision> follow_layout(const relay::CallNode& call,
                                            std::span<const Layout> offered, const Layout& desired);

// The same, where arguments of up to `free_rank` axes stay.
std::optional<LayoutDecision> follow_layout_beside(const relay::CallNode& call,
                                                   std::span<const Layout> offered,
                                                   int64_t free_rank);

// Where an axis of a tensor whose axes are in their first order (NCW, NCHW, NCDHW by the rank) is in the layout;
// nullopt for other ranks.
std::optional<int64_t> axis_in(const Layout& layout, int64_t axis, int64_t rank);

// Floating point operations: one for each element of the result.
double elementwise_cost(const relay::CallNode& call);
// The operands of a contraction have one dtype, or are bytes of which one is signed and the other is not.
bool one_dtype_or_bytes(RelationContext& ctx, const TensorTypeNode& a, const TensorTypeNode& b,
                        const char* problem);
// The result of a contraction: the sum over `extents` of the product of the factors of element i at k, in the dtype that
// sums of the result's dtype are taken in, then as the result's.
TirTensor sum_of_products(
    const std::string& name, const ComputeContext& ctx, const std::vector<PrimExpr>& extents,
    const std::function<std::vector<PrimExpr>(const Indices& i, const Indices& k)>& factors);
double num_elements(const Type& type);

}  // namespace relay::ops
