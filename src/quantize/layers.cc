#include "quantize/layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "analysis/calls.h"
#include "ir/contraction.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/precision/fake_quantization_to_integer.h"

namespace relay::quantize {
namespace {

using Ints = std::vector<int64_t>;

bool is_float_tensor(const Expr& e) {
  auto* t = tensor_of(e);
  return t != nullptr && t->dtype == DType::Float(32);
}

Expr rounded(const Expr& e, const Range& range, const IntegerForm& form) {
  Scale s = scale_of(range, form.data);
  Expr scale = constant(s.scale, DType::Float(32), e->span);
  Expr zero = constant(s.zero_point, DType::Int(32), e->span);
  Expr q = make_call("qnn.quantize", {e, scale, zero},
                     {{"out_dtype", form.data.to_string()}, {"rounding", form.rounding}}, e->span);
  return make_call("qnn.dequantize", {q, scale, zero}, {}, e->span);
}

constexpr float kLargestWeight = 127;

// The scale of weights of a largest magnitude: it is 127, or the next power of 2 is 128.
float weight_scale(float largest, bool power2) {
  float scale = largest / kLargestWeight;
  if (power2) {
    int exponent = 0;
    const float part = std::frexp(largest, &exponent);
    constexpr int kBits = 7;
    scale = std::ldexp(1.0F, (part == 0.5F ? exponent - 1 : exponent) - kBits);
  }
  return scale > 0 ? scale : 1;
}

// Weights in int8 around 0, with a scale for all elements or for each entry of an axis.
Expr rounded_weights(const Constant& weights, std::optional<int64_t> axis, bool power2) {
  const Tensor& w = weights->data;
  size_t count = axis ? static_cast<size_t>(w.dim(static_cast<size_t>(*axis))) : 1;
  int64_t inner = 1;  // elements for each index of the axis
  if (axis) {
    for (size_t d = static_cast<size_t>(*axis) + 1; d < static_cast<size_t>(w.rank()); ++d)
      inner *= w.dim(d);
  }
  auto entry = [&](int64_t i) { return axis ? static_cast<size_t>(i / inner) % count : size_t{0}; };
  auto* x = w.data<float>();
  std::vector<float> largest(count, 0);
  for (int64_t i = 0; i < w.num_elements(); ++i)
    largest[entry(i)] = std::max(largest[entry(i)], std::abs(x[i]));
  Tensor scales = axis ? Tensor::empty(DType::Float(32), {static_cast<int64_t>(count)})
                       : Tensor::empty(DType::Float(32), {});
  for (size_t c = 0; c < count; ++c) scales.data<float>()[c] = weight_scale(largest[c], power2);
  Tensor q = Tensor::empty(DType::Int(8), w.shape());
  for (int64_t i = 0; i < w.num_elements(); ++i) {
    float n = std::nearbyint(x[i] / scales.data<float>()[entry(i)]);
    q.data<int8_t>()[i] = static_cast<int8_t>(std::clamp(n, -kLargestWeight, kLargestWeight));
  }
  const Span& at = weights->span;
  return make_call(
      "qnn.dequantize",
      {constant(q, at, weights->name_hint), constant(scales, at), constant(0, DType::Int(32), at)},
      {{"axis", AttrValue(axis.value_or(-1))}}, at);
}

// Any range: whether a rounded tensor can be quantised does not depend on it.
constexpr Range kAnyRange{0, 1};

// Whether the operator only moves elements of its first argument, so that it can move bytes instead.
bool moves_bytes(const CallNode& c, const IntegerForm& form) {
  auto* op = as<OpNode>(c.op);
  const bool moves =
      op != nullptr && (op->row->reshape_only || (op->row->moves && op->row->moves->holds_for(c)));
  if (!moves || c.args.empty() || !is_float_tensor(c.args[0]) ||
      as<ConstantNode>(c.args[0]) != nullptr)
    return false;
  std::vector<Expr> args = c.args;
  args[0] = rounded(c.args[0], kAnyRange, form);
  Expr moved = in_integers(*as<CallNode>(call(c.op, std::move(args), c.attrs, c.span)));
  return moved && is_call_to(moved, "qnn.dequantize");
}

// "conv1" of the location "node conv1 (Conv)"; the first of several locations that has a name.
std::string model_name(const Span& span) {
  for (const Span& part : span.parts()) {
    if (std::string name = part.parts().empty() ? part.label() : ""; !name.empty())
      return model_name(part);
  }
  std::string label =
      span.file() != nullptr && span.label().empty() ? span.describe() : span.label();
  if (label.starts_with("node ")) label = label.substr(5);
  if (size_t at = label.rfind(" ("); at != std::string::npos) label = label.substr(0, at);
  return label;
}

const std::string& op_name(const CallNode& c) { return as<OpNode>(c.op)->name; }

// A sum of products that holds a layer's weights; a null handle for anything else.
const CallNode* as_layer(const Node& n) {
  auto* c = as<CallNode>(&n);
  if (c == nullptr || as<OpNode>(c->op) == nullptr) return nullptr;
  auto contraction = contraction_of(*c);
  return contraction && !factors_of(*c).empty() && contraction->operands.size() == 2 ? c : nullptr;
}

// Gives layers without a location one, by which reports and profiles name them: "nn.conv2d 3".
Module with_places(const Module& module) {
  std::map<std::string, size_t> numbered;
  std::shared_ptr<const SourceFile> file = SourceFile::make("program");
  return map_functions(module, [&](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as_layer(*rebuilt.get());
          if (c == nullptr || c->span) return rebuilt;
          std::string label = op_name(*c) + " " + std::to_string(++numbered[op_name(*c)]);
          return call(c->op, c->args, c->attrs, Span::place(file, label));
        },
        family::program));
  });
}

class Finder {
 public:
  Finder(const Module& module, const IntegerForm& form) {
    out_.module = with_places(module);
    out_.form = form;
  }

  Layers find() {
    Function main = out_.module->find("main");
    // Expressions that are computed whenever @main is: a value inside a branch or a function may never be observed.
    std::set<const Node*> straight;
    post_order_if(
        main->body,
        [](const Node& n) {
          return as<FunctionNode>(&n) == nullptr && as<IfNode>(&n) == nullptr &&
                 as<MatchNode>(&n) == nullptr && as<LetNode>(&n) == nullptr;
        },
        [&](const Node& n) { straight.insert(&n); }, family::expr);
    for (const Function& f : out_.module->functions) {
      post_order(
          f->body,
          [&](const Node& n) {
            if (auto* c = as_layer(n)) add(*c, straight.contains(&n));
          },
          family::program);
    }
    return std::move(out_);
  }

 private:
  void add(const CallNode& c, bool is_straight) {
    Layer layer;
    layer.call = Call(ref(c));
    layer.name = unique(model_name(c.span));
    layer.obstacle = is_straight
                         ? obstacle(c, layer)
                         : "in a branch, a loop or a function of its own: calibration sees what "
                           "@main computes in any case";
    if (layer.quantizable()) layer.source = source(factors_of(c)[0]);
    out_.layers.push_back(std::move(layer));
  }

  std::string unique(std::string name) {
    size_t n = ++named_[name];
    return n == 1 ? name : name + " #" + std::to_string(n);
  }

  // The reason why the call cannot be computed in integers; sets the properties of the layer's weights.
  std::string obstacle(const CallNode& c, Layer& layer) const {
    const std::vector<Expr> factors = factors_of(c);
    if (!is_float_tensor(factors[0]) || !is_float_tensor(factors[1]))
      return "computes in " + tensor_of(factors[0])->dtype.to_string() + ", not in float32";
    auto* weights = as<ConstantNode>(factors[1]);
    if (weights == nullptr) return "both operands are computed: there are no weights";
    if (as<ConstantNode>(factors[0]) != nullptr) return "both operands are constants";
    layer.channels = channels_of_factors(c);
    for (bool by_channel : {true, false}) {
      if (by_channel && (!out_.form.per_channel || !layer.channels)) continue;
      layer.by_channel = by_channel;
      layer.weights =
          rounded_weights(cast<ConstantNode>(factors[1]),
                          by_channel ? std::optional(layer.channels->weight_axis) : std::nullopt,
                          out_.form.power2_weights);
      Expr trial = quantized_layer(layer, factors[0], kAnyRange, out_.form);
      if (in_integers(*as<CallNode>(trial))) return "";
    }
    layer.weights = nullptr;
    return op_name(c) + " with these attributes has no form of integers";
  }

  size_t source(Expr e) {
    for (auto* c = as<CallNode>(e); c != nullptr && moves_bytes(*c, out_.form); c = as<CallNode>(e))
      e = c->args[0];
    auto [it, fresh] = source_of_.emplace(e.get(), out_.sources.size());
    if (fresh) out_.sources.push_back(e);
    return it->second;
  }

  Layers out_;
  std::map<std::string, size_t> named_;
  std::unordered_map<const Node*, size_t> source_of_;
};

// One number for each output channel, in a shape that is added to the layer's result.
Expr along_channels(const Tensor& numbers, const Layer& layer) {
  Ints shape(static_cast<size_t>(tensor_of(layer.call)->rank() - layer.channels->result_axis), 1);
  shape[0] = layer.channels->count;
  return constant(numbers.reshape(shape), layer.call->span);
}

}  // namespace

int64_t Layer::weight_bytes() const {
  auto* w = as<ConstantNode>(factors_of(*call)[1]);
  return w == nullptr ? 0 : static_cast<int64_t>(w->data.byte_size());
}

double Layer::flops() const { return contraction_cost(*call); }

Module Layers::with_results(std::vector<Expr> results) const {
  Function main = module->find("main");
  Dict attrs = main->attrs;
  attrs.erase(attr::kOutputNames);
  Function made = function(main->params, tuple(std::move(results)), nullptr, main->type_params,
                           std::move(attrs), main->span);
  return with_function(module, global_var("main", made->type), made);
}

Layers find_layers(const Module& prepared, const IntegerForm& form) {
  return Finder(prepared, form).find();
}

Expr quantized_layer(const Layer& layer, const Expr& data, const Range& range,
                     const IntegerForm& form) {
  const CallNode& c = *layer.call;
  return with_factors(c, {rounded(data, range, form), layer.weights});
}

Module with_quantized(const Layers& layers, const std::vector<bool>& chosen,
                      const Parameters& parameters) {
  std::unordered_map<const Node*, size_t> layer_of, source_of;
  for (size_t i = 0; i < layers.layers.size(); ++i) {
    if (!chosen[i]) continue;
    const Layer& layer = layers.layers[i];
    layer_of[layer.call.get()] = i;
    source_of[layers.sources[layer.source].get()] = layer.source;
  }
  Function main = layers.module->find("main");
  // The sources without the rounding, by their rounded form.
  std::unordered_map<const Node*, Expr> plain;
  // Everything that reads a source reads its integers: it is kept in one form only.
  auto quantize = [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
    if (auto it = layer_of.find(original.get()); it != layer_of.end()) {
      const Layer& layer = layers.layers[it->second];
      auto* c = as<CallNode>(rebuilt);
      Expr sum = with_factors(*c, {factors_of(*c)[0], layer.weights});
      if (const Tensor& correction = parameters.corrections[it->second])
        sum = make_call("add", {sum, along_channels(correction, layer)}, {}, c->span);
      rebuilt = sum;
    }
    if (auto it = source_of.find(original.get()); it != source_of.end()) {
      Expr e = Expr::unchecked(rebuilt);
      Expr integers = rounded(e, parameters.ranges[it->second], layers.form);
      plain[integers.get()] = e;
      rebuilt = integers;
    }
    return rebuilt;
  };
  Expr body = Expr::unchecked(rewrite(main->body, quantize, family::program));

  // Results of the program are given as they are.
  class Results : public Rewriter {
   public:
    explicit Results(const std::unordered_map<const Node*, Expr>& plain) : plain_(plain) {}
    NodeRef pre(const NodeRef& node) override {
      if (auto it = plain_.find(node.get()); it != plain_.end()) return it->second;
      return as<TupleNode>(node) == nullptr ? node : nullptr;
    }

   private:
    const std::unordered_map<const Node*, Expr>& plain_;
  };
  body = Results(plain).apply(body);
  Function made =
      function(main->params, body, main->ret_type, main->type_params, main->attrs, main->span);
  return with_function(layers.module, global_var("main", made->type), made);
}

}  // namespace relay::quantize
