#include "passes/precision/widen_half_precision.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "analysis/typical_sizes.h"
#include "ir/op.h"
#include "passes/layout/alter_op_layout.h"
#include "passes/layout/fewer_products.h"
#include "passes/layout/matrix_products.h"
#include "passes/layout/whole_tiles.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

bool is_half(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && (tensor->dtype.is_float(16) || tensor->dtype.is_bfloat16());
}

Expr as_dtype(const Expr& e, const char* dtype, const CallNode& at) {
  return make_call("cast", {e}, {{"dtype", AttrValue(std::string(dtype))}}, at);
}

// The float32 sum as what the call was.
Expr rounded(const Expr& sum, const CallNode& c) {
  const DType dtype = tensor_of(Expr(&c))->dtype;
  return dtype.is_float(32) ? sum : as_dtype(sum, dtype.to_string().c_str(), c);
}

class Widening {
 public:
  Widening(const PassContext& ctx, const Function& f)
      : ctx_(ctx),
        target_(ctx.target),
        constants_(f),
        typical_(typical_sizes(*f.get())),
        packs_matrix_(packs_matrices(f, ctx)) {}

  // The call with its sum in float32, as what it was; null when it is no contraction of 16-bit floats, or is in float32
  // already.
  Expr apply(const CallNode& c) {
    auto* type = as<TensorTypeNode>(c.type);
    if (type == nullptr || !type->dtype.is_floating()) return nullptr;
    auto product = contraction_of(c);
    if (!product) return nullptr;
    for (const Expr& arg : c.args) {
      auto* tuple = as<TupleNode>(arg);
      for (const Expr& part : tuple != nullptr ? tuple->fields : std::vector<Expr>{arg}) {
        if (!is_half(part->type)) return nullptr;
      }
    }
    std::vector<std::pair<std::string, AttrValue>> changes;
    if (as<OpNode>(c.op)->row->attrs->find("out_dtype") != nullptr) {
      changes.emplace_back("out_dtype", AttrValue(std::string("float32")));
    }
    if (!changes.empty() && c.args.size() == 2) {
      const bool both = is_bfloat16(c.args[0]) && is_bfloat16(c.args[1]);
      if (both && (by_matrix_unit(c, *product, MatrixFactors::BFloat16, target_) ||
                   (by_bfloat16_dot(c, *product, target_) &&
                    !is_better_filtered(c, *product, kAllResults)))) {
        Expr sum = with_attrs(c, c.args, changes);
        if (packs(*as<CallNode>(sum), *product))
          return type->dtype.is_float(32) ? nullptr : rounded(sum, c);
      }
      if (by_pairs_of_batch(c, *product, target_)) {
        const Expr whole = in_whole_tiles(c, *product, target_);
        if (type->dtype.is_float(32) && whole.get() == &c) return nullptr;
        auto* call = as<CallNode>(whole);
        Expr sum = with_attrs(*call, call->args, std::move(changes));
        return without_padding(rounded(sum, c), c);
      }
      if (Expr split = in_halves(c, *product, changes)) return rounded(split, c);
      if (waits_for_weights(c, *product))
        return rounded(with_attrs(c, c.args, std::move(changes)), c);
    }
    std::vector<Expr> args;
    for (const Expr& arg : c.args) {
      auto* tuple = as<TupleNode>(arg);
      std::vector<Expr> parts = tuple != nullptr ? tuple->fields : std::vector<Expr>{arg};
      for (Expr& part : parts) part = as_dtype(part, "float32", c);
      args.push_back(tuple != nullptr ? relay::tuple(std::move(parts)) : parts[0]);
    }
    return rounded(with_attrs(c, std::move(args), std::move(changes)), c);
  }

 private:
  static bool is_bfloat16(const Expr& e) { return tensor_of(e)->dtype.is_bfloat16(); }

  // Whether the weights will be packed for the kernel: those of windows once these have their layout, where packing pays.
  bool packs(const CallNode& c, const Contraction& product) {
    if (product.count(ContractionRole::Window) == 0) return packs_matrix_(c);
    const bool open = std::ranges::any_of(product.dims, [](const Contraction::Dimension& d) {
      return d.role == ContractionRole::Row && !as_const(d.extent);
    });
    return constants_.contains(c.args[1]) || open || rows_of(product) > 1;
  }

  // Whether a few rows take as long as their constant weights come from L3 or memory, where the target widens float16 by an
  // instruction: kernels widen them in registers then, of half the bytes.
  bool waits_for_weights(const CallNode& c, const Contraction& product) {
    constexpr int64_t kFewRows = 4;
    auto *data = tensor_of(c.args[0]), *weight = tensor_of(c.args[1]);
    auto shape = static_shape(c.args[1]);
    const bool matrix = product.count(ContractionRole::Window) +
                            product.count(ContractionRole::Batch) +
                            product.count(ContractionRole::Group) ==
                        0;
    auto column = product.only(ContractionRole::Column),
         sum = product.only(ContractionRole::Reduced);
    if (!target_.converts_float16 || !data->dtype.is_float(16) || !weight->dtype.is_float(16) ||
        !constants_.contains(c.args[1]) || !shape || shape->size() != 2 || !matrix || !column ||
        !sum || !product.operands[0].back().has(*sum) || (*shape)[0] == 1 || (*shape)[1] == 1) {
      return false;
    }
    for (const Contraction::Dimension& d : product.dims) {
      if (!as_const(d.extent)) return false;
    }
    constexpr int64_t kWide = 4;
    return rows_of(product) <= kFewRows && (*shape)[0] * (*shape)[1] * kWide > target_.l2_bytes / 2;
  }

  // A float16 number is the sum of two of bfloat16, high and low, and a product of two the sum of three of such, but for the
  // product of the low parts, which is less than what a float16 result keeps:
  //   sum of x w = sum of [x_high, x_high, x_low] [w_high, w_low, w_high]
  // Null where the matrix unit does not do it, or rows are too few to pay for the longer weights.
  Expr in_halves(const CallNode& c, const Contraction& product,
                 const std::vector<std::pair<std::string, AttrValue>>& changes) {
    constexpr int64_t kParts = 3, kLeastRows = 16;
    for (const Expr& arg : c.args) {
      if (!tensor_of(arg)->dtype.is_float(16)) return nullptr;
    }
    if (!constants_.contains(c.args[1]) || rows_of(product) < kLeastRows ||
        !by_matrix_unit(c, product, MatrixFactors::BFloat16, target_, kParts) ||
        is_better_filtered(c, product, kFewResults)) {
      return nullptr;
    }
    const size_t sum = product.dims.size() - 1;
    std::vector<Expr> args;
    for (size_t i = 0; i < 2; ++i) {
      std::vector<size_t> axes = product.axes_of(product.operands[i], sum);
      if (axes.size() != 1 || product.operands[i][axes[0]].blocked() ||
          product.operands[i][axes[0]].dims.size() != 1) {
        return nullptr;
      }
      Expr high = as_dtype(c.args[i], "bfloat16", c);
      Expr rest = make_call(
          "subtract", {as_dtype(c.args[i], "float32", c), as_dtype(high, "float32", c)}, {}, c);
      Expr low = as_dtype(rest, "bfloat16", c);
      Expr parts = i == 0 ? relay::tuple({high, high, low}) : relay::tuple({high, low, high});
      args.push_back(make_call("concatenate", {parts},
                               {{"axis", AttrValue(static_cast<int64_t>(axes[0]))}}, c));
    }
    return with_attrs(c, std::move(args), changes);
  }

  // Whether fewer products in float32 are faster than these, where a place has so many results or fewer.
  // Faster than three sums by a matrix unit where a place has few results, since cutting its data in halves is a large
  // part. 3x3 convolutions of float16 with 64, 128 and 256 channels took 1.44, 0.74 and 0.63 of their time in float32.
  // Instructions of vectors halve the products, and filtering leaves less than half, but transforms weights.
  static constexpr int64_t kFewResults = 96;
  static constexpr int64_t kAllResults = std::numeric_limits<int64_t>::max();
  bool is_better_filtered(const CallNode& c, const Contraction& product, int64_t most_results) {
    ConvolutionSizes sizes;
    // Algorithms take no sizes that only an operator tells.
    if (std::ranges::any_of(tensor_of(Expr(&c))->shape, is_any)) return false;
    const Type typical = with_type_params(c.type, typical_);
    auto size_of = [&](size_t dim) -> std::optional<int64_t> {
      for (size_t a = 0; a < product.result.size(); ++a) {
        if (product.result[a].has(dim)) return as_const(as<TensorTypeNode>(typical)->shape[a]);
      }
      return std::nullopt;
    };
    for (const Contraction::Axis& axis : product.operands[0]) {
      if (axis.window) {
        if (axis.window->stride != 1 || axis.window->dilation != 1) return false;
        sizes.result.push_back(size_of(axis.dims[0]).value_or(ConvolutionSizes::kUnknown));
        sizes.taps.push_back(*as_const(product.dims[axis.dims[1]].extent));
      } else if (axis.dims.size() == 1 && product.dims[axis.dims[0]].role == ContractionRole::Row) {
        // A typical size may be any number.
        if (__builtin_mul_overflow(sizes.batch, size_of(axis.dims[0]).value_or(1), &sizes.batch))
          return false;
      }
    }
    if (sizes.taps.empty()) return false;
    sizes.inputs = *as_const(product.dims.back().extent);
    sizes.outputs = *as_const(product.dims[*product.only(ContractionRole::Column)].extent);
    sizes.constant_weight = constants_.contains(c.args[1]);
    sizes.pairs = most_results == kAllResults;
    return sizes.outputs <= most_results && has_fewer_products(sizes, ctx_);
  }

  const PassContext& ctx_;
  const Target& target_;
  ConstantExpressions constants_;
  TypeParams typical_;
  std::function<bool(const CallNode&)> packs_matrix_;
};

Module run_widen_half_precision(const Module& mod, PassContext& ctx) {
  if (!ctx.target.has_blocked_kernels) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    Widening widening(ctx, f);
    return rewrite_calls(f, [&](const CallNode& c) { return widening.apply(c); });
  });
}

}  // namespace

const Pass kWidenHalfPrecision{
    "WidenHalfPrecision",    3, Form::any, Form::any, "Sums products of 16-bit floats in float32.",
    run_widen_half_precision};

}  // namespace relay
