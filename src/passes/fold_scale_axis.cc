#include "passes/fold_scale_axis.h"

#include <unordered_map>

#include "ir/layout.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/constant_expressions.h"

namespace relay {
namespace {

std::optional<std::vector<int64_t>> static_shape(const Expr& e) {
  auto* t = as<TensorTypeNode>(e->type);
  return t == nullptr ? std::nullopt : t->const_shape();
}

Expr reshape(const Expr& e, const std::vector<int64_t>& shape) {
  const OpInfo& row = *OpRegistry::global().get("reshape")->row;
  ValueList dims;
  for (int64_t d : shape) dims.push_back(Value(d));
  return call("reshape", {e},
              make_attrs(*row.attrs, {{"newshape", Value(std::move(dims))}}, row.name, e->span),
              e->span);
}

// Where a heavy operator keeps its output channels.
struct Channels {
  int64_t result_axis;  // of the result
  int64_t weight_axis;  // of the weight
  int64_t count;
};

std::optional<Channels> channels_of(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr) return std::nullopt;
  auto result = static_shape(Expr(&c));
  auto weight = c.args.size() > 1 ? static_shape(c.args[1]) : std::nullopt;
  if (!result || !weight) return std::nullopt;
  if (op->name == "nn.dense") {
    return Channels{static_cast<int64_t>(result->size()) - 1, 0, (*weight)[0]};
  }
  bool transposed = op->name == "nn.conv2d_transpose" || op->name == "nn.conv1d_transpose" ||
                    op->name == "nn.conv3d_transpose";
  bool conv = op->name == "nn.conv2d" || op->name == "nn.conv1d" || op->name == "nn.conv3d";
  if (!conv && !transposed) return std::nullopt;
  // The channels of a grouped transposed convolution are spread over two weight axes.
  if (transposed && *attr_value(c.attrs, "groups").get_if<int64_t>() != 1) return std::nullopt;
  std::string data = *attr_value(c.attrs, "data_layout").get_if<std::string>();
  std::string out = *attr_value(c.attrs, "out_layout").get_if<std::string>();
  std::string kernel = *attr_value(c.attrs, "kernel_layout").get_if<std::string>();
  Layout result_layout = Layout::of(out.empty() ? data : out), kernel_layout = Layout::of(kernel);
  if (result_layout.block_of('C') != 1 || kernel_layout.block_of('O') != 1) return std::nullopt;
  int64_t at = result_layout.index_of('C'), weight_at = kernel_layout.index_of('O');
  if (at < 0 || weight_at < 0) return std::nullopt;
  return Channels{at, weight_at, (*weight)[static_cast<size_t>(weight_at)]};
}

// True when a tensor that broadcasts against a rank-`rank` one varies along `axis` only.
bool varies_along(const Expr& e, int64_t axis, int64_t rank, int64_t count) {
  auto shape = static_shape(e);
  if (!shape || static_cast<int64_t>(shape->size()) > rank) return false;
  int64_t first = rank - static_cast<int64_t>(shape->size());
  for (size_t i = 0; i < shape->size(); ++i) {
    bool here = first + static_cast<int64_t>(i) == axis;
    if ((*shape)[i] != 1 && !(here && (*shape)[i] == count)) return false;
  }
  return true;
}

class Folder : public Rewriter {
 public:
  explicit Folder(const Function& f) : Rewriter(family::expr | family::pattern) {
    post_order(
        f,
        [&](const Node& n) {
          for_each_child(n, [&](const NodeRef& child) { ++uses_[child.get()]; });
        },
        family::expr | family::pattern);
  }

  NodeRef pre(const NodeRef& node) override {
    auto* f = as<FunctionNode>(node);
    return f != nullptr && f->is_primitive() ? node : nullptr;
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (!is_call_to(Expr::unchecked(rebuilt), "multiply")) return rebuilt;
    auto* before = as<CallNode>(original);
    auto* now = as<CallNode>(rebuilt);
    for (size_t side = 0; side < 2; ++side) {
      // A value that others use too is needed unscaled.
      if (uses_[before->args[side].get()] != 1) continue;
      Expr folded = fold(*before, side, now->args[side], now->args[1 - side]);
      if (folded) return folded;
    }
    return rebuilt;
  }

 private:
  Expr fold(const CallNode& before, size_t side, const Expr& value, const Expr& scale) {
    if (!constants_.contains(scale)) return nullptr;
    if (Expr scaled = scale_weights(value, scale)) return scaled;
    bool add = is_call_to(value, "add");
    bool bias_add = is_call_to(value, "nn.bias_add");
    if (!add && !bias_add) return nullptr;
    auto* sum = as<CallNode>(value);
    auto* sum_before = as<CallNode>(before.args[side]);
    if (sum_before == nullptr || sum_before->args.size() != 2) return nullptr;
    for (size_t heavy = 0; heavy < (add ? 2u : 1u); ++heavy) {
      const Expr& bias = sum->args[1 - heavy];
      if (uses_[sum_before->args[heavy].get()] != 1 || !constants_.contains(bias)) continue;
      Expr wide = bias;
      if (bias_add) {
        // As a tensor that broadcasts by itself.
        int64_t rank = as<TensorTypeNode>(value->type)->rank();
        int64_t axis = *attr_value(sum->attrs, "axis").get_if<int64_t>();
        std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
        auto length = static_shape(bias);
        if (!length) continue;
        shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = (*length)[0];
        wide = reshape(bias, shape);
      }
      Expr scaled = scale_weights(sum->args[heavy], scale);
      if (!scaled) continue;
      return call("add", {scaled, call("multiply", {wide, scale}, nullptr, sum->span)}, nullptr,
                  sum->span);
    }
    return nullptr;
  }

  // The heavy operator with its weights multiplied, or null when it is none or the scale is not
  // along its channels.
  Expr scale_weights(const Expr& value, const Expr& scale) {
    auto* c = as<CallNode>(value);
    if (c == nullptr) return nullptr;
    auto channels = channels_of(*c);
    auto* type = as<TensorTypeNode>(value->type);
    auto* weight = as<TensorTypeNode>(channels ? c->args[1]->type : Type());
    auto* scale_type = as<TensorTypeNode>(scale->type);
    if (!channels || !constants_.contains(c->args[1]) || !weight->dtype.is_floating() ||
        !(weight->dtype == scale_type->dtype) || !(weight->dtype == type->dtype) ||
        !varies_along(scale, channels->result_axis, type->rank(), channels->count)) {
      return nullptr;
    }
    std::vector<int64_t> shape(static_cast<size_t>(weight->rank()), 1);
    auto scale_shape = static_shape(scale);
    int64_t total = 1;
    for (int64_t d : *scale_shape) total *= d;
    shape[static_cast<size_t>(channels->weight_axis)] = total;
    Expr scaled = call("multiply", {c->args[1], reshape(scale, shape)}, nullptr, c->span);
    return call(c->op, {c->args[0], scaled}, c->attrs, c->span);
  }

  std::unordered_map<const Node*, int> uses_;
  ConstantExpressions constants_;
};

Module run(const Module& mod, PassContext& ctx) {
  if (!ctx.evaluate) return mod;
  return map_functions(mod, [](const GlobalVar&, const Function& f) { return Folder(f).apply(f); });
}

}  // namespace

const Pass kFoldScaleAxis{"FoldScaleAxis",
                          3,
                          Form::graph,
                          Form::graph,
                          "Moves per-channel scales into the weights before them.",
                          run};

}  // namespace relay
