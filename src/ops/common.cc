#include "ops/common.h"

#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "node/structural.h"
#include "ops/loops.h"

namespace relay::ops {

const OpInfo* operator_row(std::string_view name) {
  Op op = OpRegistry::global().find(name);
  RELAY_CHECK(op != nullptr, std::string(name));
  return op->row.get();
}

std::string shape_text(const std::vector<Dim>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

bool require(RelationContext& ctx, bool condition, const DiagnosticCode& code,
             const std::string& message, const std::string& expected, const std::string& found) {
  if (!condition) ctx.fail(code, message, expected, found);
  return condition;
}

const TensorTypeNode* like_result(RelationContext& ctx) {
  const Type& t = ctx.arg(0);
  if (auto* known = as<TensorTypeNode>(t)) return known;
  const TensorTypeNode* wanted = ctx.wanted_result();
  if (wanted == nullptr || !isa<IncompleteTypeNode>(t)) return ctx.tensor(0);
  ctx.solve(0, Type(wanted));
  return wanted;
}

Type identity(RelationContext& ctx) {
  const TensorTypeNode* t = like_result(ctx);
  return t == nullptr ? nullptr : Type(t);
}

Type float_identity(RelationContext& ctx) {
  const TensorTypeNode* t = like_result(ctx);
  if (t == nullptr) return nullptr;
  if (!require(ctx, t->dtype.is_floating(), codes::type_dtype, "needs a floating dtype",
               "float16, bfloat16, float32 or float64", t->dtype.to_string())) {
    return nullptr;
  }
  return Type(t);
}

std::optional<std::vector<Dim>> broadcast_shapes(RelationContext& ctx, const std::vector<Dim>& a,
                                                 const std::vector<Dim>& b) {
  std::vector<Dim> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    Dim x = i < a.size() ? a[a.size() - 1 - i] : dim(1);
    Dim y = i < b.size() ? b[b.size() - 1 - i] : dim(1);
    Dim& result = out[out.size() - 1 - i];
    result = ctx.broadcast(x, y);
    if (!result) {
      ctx.fail(codes::type_shape,
               "the shapes do not broadcast: dimension " + std::to_string(out.size() - 1 - i) +
                   " is " + to_string(x) + " and " + to_string(y),
               "equal sizes, or one of them 1", shape_text(a) + " and " + shape_text(b));
      return std::nullopt;
    }
  }
  return out;
}

namespace {

Type broadcast_to_dtype(RelationContext& ctx, std::optional<DType> result) {
  // Two tensors of one shape that the caller picks.
  auto *x = as<TensorTypeNode>(ctx.arg(0)), *y = as<TensorTypeNode>(ctx.arg(1));
  if (!result && x != nullptr && y != nullptr && x->shape_var && x->shape_var == y->shape_var &&
      x->dtype == y->dtype && x->dtype_var == y->dtype_var) {
    return Type(x);
  }
  const TensorTypeNode *a = ctx.tensor(0), *b = ctx.tensor(1);
  if (a == nullptr || b == nullptr) return nullptr;
  if (!require(ctx, a->dtype == b->dtype, codes::type_dtype, "the arguments have different dtypes",
               "one dtype", a->dtype.to_string() + " and " + b->dtype.to_string())) {
    return nullptr;
  }
  auto shape = broadcast_shapes(ctx, a->shape, b->shape);
  if (!shape) return nullptr;
  return tensor_type(std::move(*shape), result.value_or(a->dtype));
}

// Whether the first argument, as far as it is known, is made of bits.
bool has_bits(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  return a == nullptr ||
         require(ctx, !a->dtype.is_floating(), codes::type_dtype, "needs arguments made of bits",
                 "an integer type or bool", a->dtype.to_string());
}

}  // namespace

Type broadcast(RelationContext& ctx) { return broadcast_to_dtype(ctx, std::nullopt); }
Type broadcast_compare(RelationContext& ctx) { return broadcast_to_dtype(ctx, DType::Bool()); }
Type broadcast_bool(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  if (a != nullptr && !require(ctx, a->dtype.is_bool(), codes::type_dtype, "needs bool arguments",
                               "bool", a->dtype.to_string())) {
    return nullptr;
  }
  return broadcast_to_dtype(ctx, DType::Bool());
}

Type broadcast_bits(RelationContext& ctx) {
  return has_bits(ctx) ? broadcast_to_dtype(ctx, std::nullopt) : nullptr;
}
Type broadcast_shift(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  if (a != nullptr &&
      !require(ctx, a->dtype.is_integer(), codes::type_dtype, "only integers can be shifted",
               "an integer type", a->dtype.to_string())) {
    return nullptr;
  }
  return broadcast_to_dtype(ctx, std::nullopt);
}
Type bits_identity(RelationContext& ctx) { return has_bits(ctx) ? identity(ctx) : nullptr; }

std::optional<int64_t> normal_axis(RelationContext& ctx, int64_t axis, int64_t rank,
                                   const char* name) {
  int64_t out = axis < 0 ? axis + rank : axis;
  if (rank == 0) {
    ctx.fail(codes::op_bad_attribute, std::string(name) + " names an axis of a scalar",
             "one dimension or more", std::to_string(axis));
    return std::nullopt;
  }
  if (axis < -rank || out < 0 || out >= rank) {
    ctx.fail(codes::op_bad_attribute, std::string(name) + " is out of range",
             "between " + std::to_string(-rank) + " and " + std::to_string(rank - 1),
             std::to_string(axis));
    return std::nullopt;
  }
  return out;
}

Dim dilated_size(const Dim& size, int64_t stride) {
  if (stride == 1) return size;
  Dim last = size - dim(1), out = last * dim(stride) + dim(1);
  return is_any(size) || never_negative(last) ? out : max(out, dim(0));
}

bool check_size(RelationContext& ctx, const Dim& size, const char* what, int64_t least) {
  return require(ctx, ctx.at_least(size, dim(least)), codes::op_bad_attribute, what,
                 std::to_string(least) + " or more", to_string(size));
}

bool check_shape(RelationContext& ctx, const std::vector<Dim>& shape) {
  int64_t total = 1;
  for (const Dim& d : shape) {
    if (!check_size(ctx, d, "a size is negative") ||
        !require(
            ctx,
            !__builtin_mul_overflow(total, std::max<int64_t>(as_const(d).value_or(1), 1), &total) &&
                total < (int64_t{1} << 48),
            codes::type_overflow, "the shape is absurdly large")) {
      return false;
    }
  }
  return true;
}

PrimExpr string_order(const PrimExpr& a, const PrimExpr& b) {
  return tir::call("string_compare", DType::Int(64), {a, b});
}

PrimExpr string_key(const PrimExpr& x) { return tir::call("string_key", DType::Int(64), {x}); }

bool is_one(const PrimExpr& e) { return tir::as_int(e) == 1; }

PrimExpr broadcast_index(const PrimExpr& i, const PrimExpr& size, const PrimExpr& result) {
  if (is_one(size)) return tir::index(0);
  return structural_equal(size, result) ? i : tir::min(i, size - 1);
}

PrimExpr broadcast_read(const TirTensor& t, const Indices& i, const std::vector<PrimExpr>& result) {
  Indices at;
  size_t skip = i.size() - static_cast<size_t>(t->rank());
  for (size_t d = 0; d < static_cast<size_t>(t->rank()); ++d) {
    at.push_back(broadcast_index(i[skip + d], t->shape()[d], result[skip + d]));
  }
  return t(at);
}

std::shared_ptr<const ComputeRule> unary_rule(PrimExpr (*f)(const PrimExpr& x)) {
  return compute_rule([f](const ComputeContext& ctx) {
    const TirTensor& x = ctx.inputs[0];
    return tir::compute("T", ctx.outputs[0].shape, [&](const Indices& i) { return f(x(i)); });
  });
}

std::optional<LayoutDecision> follow_layout(const CallNode& call, std::span<const Layout> offered,
                                            const Layout&) {
  return follow_layout_beside(call, offered, 0);
}

std::optional<LayoutDecision> follow_layout_beside(const CallNode& call,
                                                   std::span<const Layout> offered,
                                                   int64_t free_rank) {
  Layout chosen;
  for (const Layout& l : offered) {
    if (l.defined() && !chosen.defined()) chosen = l;
  }
  if (!chosen.defined()) return std::nullopt;
  LayoutDecision out;
  for (const Expr& a : call.args) {
    std::vector<Expr> parts{a};
    if (auto* t = as<TupleNode>(a)) parts.assign(t->fields.begin(), t->fields.end());
    for (const Expr& part : parts) {
      auto* t = as<TensorTypeNode>(part->type);
      if (t == nullptr) return std::nullopt;
      if (t->rank() <= free_rank) {
        out.inputs.emplace_back();
      } else if (chosen.primal_axes().size() == static_cast<size_t>(t->rank())) {
        out.inputs.push_back(chosen);
      } else {
        return std::nullopt;
      }
    }
  }
  // A padded block would be computed on as if it were data only by operators that keep zeros;
  // blocks are for weights.
  for (const Layout::Axis& a : chosen.axes()) {
    if (a.block > 0) return std::nullopt;
  }
  out.outputs = {chosen};
  out.attrs = call.attrs;
  return out;
}

std::optional<int64_t> axis_in(const Layout& layout, int64_t axis, int64_t rank) {
  const char* first = rank == 3 ? "NCW" : rank == 4 ? "NCHW" : rank == 5 ? "NCDHW" : nullptr;
  if (first == nullptr) return std::nullopt;
  return layout.index_of(first[from_front(axis, rank)]);
}

bool one_dtype_or_bytes(RelationContext& ctx, const TensorTypeNode& a, const TensorTypeNode& b,
                        const char* problem) {
  auto is_byte = [](DType d) { return d.is_integer() && d.bits == 8; };
  return require(ctx, a.dtype == b.dtype || (is_byte(a.dtype) && is_byte(b.dtype)),
                 codes::type_dtype, problem, "one dtype",
                 a.dtype.to_string() + " and " + b.dtype.to_string());
}

namespace {

// The dimensions of each iteration of a call's sum: of the result's axes, then of what is summed over.
std::vector<tir::StatedDimension> stated_dimensions(const ComputeContext& ctx) {
  std::vector<tir::StatedDimension> out;
  if (!ctx.contraction) return out;
  const Contraction& c = *ctx.contraction;
  for (size_t a = 0; a < c.result.size(); ++a) {
    const Contraction::Axis& axis = c.result[a];
    const bool grouped = axis.dims.size() > 1 && !axis.window && !axis.blocked();
    if (!grouped) {
      out.push_back({a, c.role_of(axis)});
      continue;
    }
    for (size_t d : axis.dims) out.push_back({a, c.dims[d].role, ctx.size(c.dims[d].extent)});
  }
  size_t at = c.result.size();
  for (const Contraction::Dimension& d : c.dims) {
    if (is_summed(d.role)) out.push_back({at++, d.role});
  }
  return out;
}

}  // namespace

TirTensor sum_of_products(
    const std::string& name, const ComputeContext& ctx, const std::vector<PrimExpr>& extents,
    const std::function<std::vector<PrimExpr>(const Indices&, const Indices&)>& factors) {
  DType dtype = ctx.outputs[0].dtype, acc = working_dtype(dtype);
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  auto term = [&](const Indices& i, const Indices& k) {
    PrimExpr out;
    for (const PrimExpr& factor : factors(i, k)) {
      PrimExpr f = tir::cast(acc, factor);
      out = out ? out * f : f;
    }
    return out;
  };
  if (extents.empty()) {
    return tir::compute(name, shape,
                        [&](const Indices& i) { return tir::cast(dtype, term(i, {})); });
  }
  TirTensor sums = tir::contract(name, shape, extents, stated_dimensions(ctx), term);
  if (acc == dtype) return sums;
  return tir::compute("T_cast", shape, [&](const Indices& i) { return tir::cast(dtype, sums(i)); });
}

double num_elements(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return 0;
  double total = 0;
  for (const TensorType& t : *tensors) {
    auto shape = t->const_shape();
    if (!shape) return 0;
    double n = 1;
    for (int64_t d : *shape) n *= static_cast<double>(d);
    total += n;
  }
  return total;
}

double elementwise_cost(const CallNode& call) { return num_elements(call.type); }

}  // namespace relay::ops
