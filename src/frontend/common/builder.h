// Builders of expressions for one operator of a model: all that they make carries its place, and their errors name it.
//
//   Builder build(program, "add", program.place("node 3 (add)"));
//   Expr y = build.add(build.broadcast_to(a, shape), build.scalar_like(1, b));
//
// They take what a model may leave open: sizes that are terms over named dimensions, and sizes that are `?`. What no
// type can say is refused with E0505, and what makes no sense with E0504 or the E02xx of Relay's operators.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/calls.h"
#include "frontend/common/program_builder.h"

namespace relay::frontend {

using AttrList = std::vector<std::pair<std::string, AttrValue>>;
inline AttrValue to_value(const std::vector<int64_t>& list) { return relay::to_value(list); }
AttrValue to_value(DType dtype);

class Builder {
 public:
  // `what` is the operator's name, which messages begin with.
  Builder(ProgramBuilder& program, std::string what, Span span)
      : program_(program), what_(std::move(what)), span_(std::move(span)) {}

  ProgramBuilder& program() const { return program_; }
  const Span& span() const { return span_; }

  [[noreturn]] void fail(const DiagnosticCode& code, std::string message, std::string expected = {},
                         std::string found = {}, std::string help = {}) const;
  // E0504: this variant of the operator cannot be imported.
  [[noreturn]] void unsupported(const std::string& what, std::string help = {}) const;

  // ---- Types
  static const TensorTypeNode& type_of(const Expr& e);
  static int64_t rank_of(const Expr& e) { return type_of(e).rank(); }
  static DType dtype_of(const Expr& e) { return type_of(e).dtype; }
  static const std::vector<Dim>& shape_of(const Expr& e) { return type_of(e).shape; }
  // A dimension that must be a number: E0505 when it is symbolic.
  int64_t const_dim(const Expr& e, int64_t axis, const char* what) const;
  // An axis in [-rank, rank) as one in [0, rank); E0504 when it is outside.
  int64_t axis(int64_t value, int64_t rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> values, int64_t rank) const;
  // 0, 1, ... below `rank`.
  static std::vector<int64_t> all_axes(int64_t rank);

  // ---- Builders
  // Whether this build of Relay has an operator; where not, a front end may have another way.
  static bool has_op(std::string_view op);
  Expr call(std::string_view op, std::vector<Expr> args, const AttrList& attrs = {}) const;
  Expr add(Expr a, Expr b) const { return call("add", {std::move(a), std::move(b)}); }
  Expr sub(Expr a, Expr b) const { return call("subtract", {std::move(a), std::move(b)}); }
  Expr mul(Expr a, Expr b) const { return call("multiply", {std::move(a), std::move(b)}); }
  Expr div(Expr a, Expr b) const { return call("divide", {std::move(a), std::move(b)}); }
  Expr maximum(Expr a, Expr b) const { return call("maximum", {std::move(a), std::move(b)}); }
  Expr minimum(Expr a, Expr b) const { return call("minimum", {std::move(a), std::move(b)}); }
  Expr where(Expr condition, Expr a, Expr b) const {
    return call("where", {std::move(condition), std::move(a), std::move(b)});
  }
  Expr clip(Expr e, double low, double high) const {
    return call("clip", {std::move(e)}, {{"a_min", low}, {"a_max", high}});
  }
  // A scalar of the dtype, or of the dtype of another expression.
  Expr scalar(double value, DType dtype) const;
  Expr scalar_like(double value, const Expr& like) const { return scalar(value, dtype_of(like)); }
  Expr constant(Tensor data) const { return relay::constant(std::move(data), span_); }
  Expr ints(const std::vector<int64_t>& values, DType dtype = DType::Int(64)) const;
  Expr item(const Expr& tuple, int64_t index) const { return tuple_get_item(tuple, index, span_); }
  Expr tuple_of(std::vector<Expr> fields) const { return relay::tuple(std::move(fields), span_); }
  Expr cast(Expr e, DType dtype) const;  // the identical expression when it has the dtype
  Expr transpose(Expr e, const std::vector<int64_t>& axes) const;  // identity gives `e`
  // The last two axes exchanged.
  Expr swap_last(Expr e) const;
  Expr expand_dims(Expr e, int64_t axis, int64_t count = 1) const;
  Expr squeeze(Expr e, const std::vector<int64_t>& axes) const;
  // `e` with the given dimensions, which must hold as many elements.
  Expr reshape(Expr e, const std::vector<Dim>& shape) const;
  Expr reshape(Expr e, const std::vector<int64_t>& shape) const;
  // Axes [begin, end) as one, whatever is known of their sizes.
  Expr merge_axes(Expr e, size_t begin, size_t end) const;
  // The same tensor, with sizes in its type that are `?` there and known here; `?` here says nothing. A run checks them.
  Expr with_sizes(Expr e, const std::vector<Dim>& sizes) const;
  // numpy broadcasting to exactly `shape`.
  Expr broadcast_to(Expr e, const std::vector<Dim>& shape) const;
  // Elements [begin, end) of an axis.
  Expr slice(Expr e, int64_t axis, int64_t begin, int64_t end) const;
  // The i-th part along an axis, which is removed.
  Expr select(Expr e, int64_t axis, int64_t index) const;
  Expr concat(std::vector<Expr> parts, int64_t axis) const;
  // What is known of the elements of an expression, some of which may be `?`; nullopt for nothing.
  std::optional<KnownValue> partly_known(const Expr& e) const;
  // Equal parts along an axis.
  std::vector<Expr> split(Expr e, int64_t axis, int64_t parts) const;
  // A reduction by Relay's operator of that name. The greatest and the least of no elements are the least and the
  // greatest value of the dtype.
  Expr reduce(const char* op, Expr e, std::vector<int64_t> axes, bool keepdims) const;
  // A tensor filled with a value.
  Expr full(double value, const std::vector<Dim>& shape, DType dtype) const;
  // numpy's matmul: any ranks, batch dimensions broadcast.
  Expr matmul(Expr a, Expr b) const;
  // What `along` makes of the last axis, for another one.
  Expr with_axis_last(Expr e, int64_t axis, const std::function<Expr(const Expr&)>& along) const;
  // The product of every line along an axis with a matrix (old size, new size).
  Expr matmul_along(Expr e, int64_t axis, const Tensor& matrix) const;

  // ---- Values of the model
  // The expression of a value of this model.
  Expr expr_of(const ValuePtr& v) const { return program_.expr_of(v); }
  // The same of a tensor; E0504 for a list.
  Expr tensor_of(const ValuePtr& v) const;
  // The data of a value that is constant, aligned; null for other values and for none.
  static Tensor constant_data(const ValuePtr& v);
  // Counts constants that the front end makes; E0506 when they exceed their bound.
  void charge_bytes(int64_t elements, DType dtype) const;
  // The values of a part of the model whose ranks the operator around it has to know: E0505 for a rank that is open.
  template <class Part>
  Values with_one_rank(const Part& part) const {
    try {
      return part();
    } catch (const BranchesDiffer& branches) {
      throw UserError(rank_is_open(branches, span_));
    }
  }

 private:
  Expr batch_matmul(Expr a, Expr b, const std::vector<Dim>& batch) const;
  Expr open_batch_matmul(const Expr& a, const Expr& b, const std::vector<Dim>& batch) const;

  ProgramBuilder& program_;
  std::string what_;
  Span span_;
};

}  // namespace relay::frontend
