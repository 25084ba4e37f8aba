#include "grad/batch_call.h"

#include <algorithm>

#include "analysis/calls.h"
#include "analysis/lanes.h"
#include "ir/contraction.h"

namespace relay {
namespace {

const std::vector<Dim>& shape_of(const Expr& e) { return tensor_of(e)->shape; }

Expr reshaped(const Expr& e, const std::vector<Dim>& shape) {
  return make_call("reshape", {e},
                   {{"newshape", to_value(Dims(shape.begin(), shape.end()))}, {"allowzero", true}},
                   e->span);
}

// The axis of a tensor that is one dimension and nothing else.
std::optional<size_t> own_axis(const Contraction::Tensor& t, size_t dim) {
  for (size_t a = 0; a < t.size(); ++a) {
    if (t[a].dims == std::vector<size_t>{dim} && !t[a].window && !t[a].blocked()) return a;
  }
  return std::nullopt;
}

// The axis along which a dimension of this role runs, alone or with others.
std::optional<size_t> axis_of_role(const Contraction& k, const Contraction::Tensor& t,
                                   ContractionRole role) {
  for (size_t a = 0; a < t.size(); ++a) {
    if (t[a].window || t[a].blocked()) continue;
    for (size_t d : t[a].dims) {
      if (k.dims[d].role == role) return a;
    }
  }
  return std::nullopt;
}

class BatchedContraction {
 public:
  BatchedContraction(const BatchingContext& ctx, Contraction k)
      : ctx_(ctx), c_(ctx.call), k_(std::move(k)) {}

  Expr run() {
    if (k_.operands.size() != 2 || c_.args.size() != 2) return nullptr;
    for (const Expr& a : c_.args) {
      if (tensor_of(a) == nullptr || !has_named_sizes(a)) return nullptr;
    }
    if (Expr e = as_rows()) return e;
    if (Expr e = along_dimension()) return e;
    if (Expr e = along_batch()) return e;
    if (Expr e = as_matrices()) return e;
    return as_groups();
  }

 private:
  bool both() const { return ctx_.batched[0] && ctx_.batched[1]; }
  Expr operand(size_t i) const {
    return ctx_.batched[i] ? ctx_.args[i] : in_all_lanes(ctx_.args[i], ctx_.lanes);
  }
  bool has_attr(const char* name) const {
    return c_.attrs && std::ranges::any_of(c_.attrs->info().fields,
                                           [&](const Field& f) { return f.name == name; });
  }
  // What the attributes say of a number of channels that is now another.
  std::vector<std::pair<std::string, AttrValue>> more_columns() const {
    std::vector<std::pair<std::string, AttrValue>> out;
    for (const char* name : {"units", "channels"}) {
      if (has_attr(name)) out.emplace_back(name, AttrValue());
    }
    return out;
  }

  // Vectors that one matrix is multiplied with are rows: of a product with the matrix on the other
  // side, so that the lanes stay where they are.
  Expr as_rows() const {
    if (both() || !ctx_.batched[1] || !has_attr("out_dtype")) return nullptr;
    auto row = k_.only(ContractionRole::Row), column = k_.only(ContractionRole::Column),
         sum = k_.only(ContractionRole::Reduced);
    if (!row || !column || !sum || k_.dims.size() != 3 || as_const(k_.dims[*column].extent) != 1 ||
        tensor_of(c_.args[0])->dtype != tensor_of(c_.args[1])->dtype) {
      return nullptr;
    }
    auto at = own_axis(k_.operands[0], *row), inner = own_axis(k_.operands[0], *sum);
    if (!at || !inner || k_.operands[0].size() != 2 || k_.operands[1].size() != 2) return nullptr;
    auto* lane = as<TensorTypeNode>(c_.type);
    Expr vectors = reshaped(ctx_.args[1], {ctx_.lanes, k_.dims[*sum].extent});
    Expr product = make_call(
        "nn.matmul", {vectors, ctx_.args[0]},
        {{"transpose_b", *at < *inner}, {"out_dtype", AttrValue(lane->dtype.to_string())}}, c_);
    std::vector<Dim> shape = lane->shape;
    shape.insert(shape.begin(), ctx_.lanes);
    return reshaped(product, shape);
  }

  // Lanes of one operand are more rows, or more columns.
  Expr along_dimension() const {
    if (both()) return nullptr;
    const size_t own = ctx_.batched[0] ? 0 : 1;
    for (size_t d = 0; d < k_.dims.size(); ++d) {
      if (k_.dims[d].role != (own == 0 ? ContractionRole::Row : ContractionRole::Column)) continue;
      auto from = own_axis(k_.operands[own], d), to = own_axis(k_.result, d);
      if (!from || !to || !k_.axes_of(k_.operands[1 - own], d).empty()) continue;
      std::vector<Expr> args = ctx_.args;
      args[own] = fold_lanes(args[own], *from);
      std::vector<std::pair<std::string, AttrValue>> changes;
      if (own == 1) changes = more_columns();
      return unfold_lanes(with_attrs(c_, std::move(args), changes), *to, ctx_.lanes, c_.type);
    }
    return nullptr;
  }

  // More products in a batch of them.
  Expr along_batch() const {
    for (size_t d = 0; d < k_.dims.size(); ++d) {
      if (k_.dims[d].role != ContractionRole::Batch) continue;
      auto to = own_axis(k_.result, d);
      if (!to) return nullptr;
      std::vector<Expr> args;
      for (size_t i = 0; i < 2; ++i) {
        const Contraction::Tensor& t = k_.operands[i];
        auto from = own_axis(t, d);
        Expr e = operand(i);
        if (!from) {
          // One matrix for all of them.
          auto one = std::ranges::find_if(t, [](const auto& a) { return a.dims.empty(); });
          if (one == t.end()) return nullptr;
          from = static_cast<size_t>(one - t.begin());
          std::vector<Dim> shape = shape_of(e);
          shape[*from + 1] = k_.dims[d].extent;
          e = make_call("broadcast_to", {e},
                        {{"shape", to_value(Dims(shape.begin(), shape.end()))}}, c_);
        }
        args.push_back(fold_lanes(e, *from));
      }
      return unfold_lanes(call(c_.op, std::move(args), c_.attrs, c_.span), *to, ctx_.lanes,
                          c_.type);
    }
    return nullptr;
  }

  // A product of two matrices, rows flattened, for each lane.
  Expr as_matrices() const {
    auto column = k_.only(ContractionRole::Column), sum = k_.only(ContractionRole::Reduced);
    if (!column || !sum || k_.count(ContractionRole::Row) + 2 != k_.dims.size()) return nullptr;
    auto at = own_axis(k_.operands[1], *column), inner = own_axis(k_.operands[1], *sum);
    auto data_sum = own_axis(k_.operands[0], *sum);
    if (!at || !inner || !data_sum || k_.operands[1].size() != 2) return nullptr;
    // The rows of the result in the order of the data, then the column.
    std::vector<size_t> rows;
    for (size_t a = 0; a < k_.operands[0].size(); ++a) {
      if (a == *data_sum) continue;
      const Contraction::Axis& axis = k_.operands[0][a];
      if (axis.dims.size() != 1 || axis.blocked()) return nullptr;
      rows.push_back(axis.dims[0]);
    }
    if (k_.result.size() != rows.size() + 1 || own_axis(k_.result, *column) != rows.size())
      return nullptr;
    Dim count = dim(1);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (own_axis(k_.result, rows[r]) != r) return nullptr;
      count = count * k_.dims[rows[r]].extent;
    }
    Expr x = operand(0), w = operand(1);
    x = with_axis_moved(x, *data_sum + 1, k_.operands[0].size());
    x = reshaped(x, {ctx_.lanes, count, k_.dims[*sum].extent});
    std::vector<std::pair<std::string, AttrValue>> attrs{{"transpose_a", false},
                                                         {"transpose_b", *at < *inner}};
    if (has_attr("out_dtype"))
      attrs.emplace_back("out_dtype", tensor_of(Expr(&c_))->dtype.to_string());
    Expr product = make_call("nn.batch_matmul", {x, w}, attrs, c_);
    std::vector<Dim> shape = as<TensorTypeNode>(c_.type)->shape;
    shape.insert(shape.begin(), ctx_.lanes);
    return reshaped(product, shape);
  }

  // A group of channels for each lane.
  Expr as_groups() const {
    auto lanes = as_const(ctx_.lanes);
    if (!lanes || !has_attr("groups")) return nullptr;
    auto data = axis_of_role(k_, k_.operands[0], ContractionRole::Reduced);
    auto weight = axis_of_role(
        k_, k_.operands[1], k_.transposed() ? ContractionRole::Reduced : ContractionRole::Column);
    auto result = axis_of_role(k_, k_.result, ContractionRole::Column);
    if (!data || !weight || !result) return nullptr;
    auto changes = more_columns();
    changes.emplace_back("groups", int_attr(c_, "groups") * *lanes);
    return unfold_lanes(
        with_attrs(c_, {fold_lanes(operand(0), *data), fold_lanes(operand(1), *weight)}, changes),
        *result, ctx_.lanes, c_.type);
  }

  const BatchingContext& ctx_;
  const CallNode& c_;
  Contraction k_;
};

Expr broadcast_call(const BatchingContext& ctx) {
  auto* result = as<TensorTypeNode>(ctx.call.type);
  if (result == nullptr) return nullptr;
  std::vector<Expr> args = ctx.args;
  for (size_t i = 0; i < args.size(); ++i) {
    if (tensor_of(args[i]) == nullptr) return nullptr;
    if (ctx.batched[i]) args[i] = lanes_of_rank(args[i], result->rank());
  }
  return call(ctx.call.op, std::move(args), ctx.call.attrs, ctx.call.span);
}

}  // namespace

Expr batched_call(const BatchingContext& ctx) {
  const OpInfo& row = *as<OpNode>(ctx.call.op)->row;
  BuildAt place(ctx.call.span);
  if (row.batching) return row.batching(ctx);
  if (row.fusion.get() <= FusionClass::Broadcast) return broadcast_call(ctx);
  auto contraction = contraction_of(ctx.call);
  return contraction ? BatchedContraction(ctx, std::move(*contraction)).run() : nullptr;
}

}  // namespace relay
