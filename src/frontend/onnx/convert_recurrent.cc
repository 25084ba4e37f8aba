// RNN, LSTM and GRU as programs of ordinary operators: the product of the inputs is one matrix
// product over the whole sequence, the recurrence is a loop over its steps.
#include <algorithm>
#include <cctype>
#include <functional>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/quantized.h"
#include "frontend/common/step_loop.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

// The d-th part of a weight along its first axis; a constant's part shares its memory.
Expr direction_of(NodeContext& ctx, size_t input, int64_t d) {
  const ValuePtr& v = ctx.value(input);
  bool shared = v->data && !v->is_parameter && v->data.shape().size() >= 2;
  if (!shared) return ctx.select(ctx.in(input), 0, d);
  const Tensor t = ctx.constant_data(input);
  if (d >= t.dim(0)) {
    ctx.fail(codes::type_shape, "a weight has too few directions", std::to_string(d + 1),
             std::to_string(t.dim(0)));
  }
  std::vector<int64_t> shape(t.shape().begin() + 1, t.shape().end());
  size_t bytes = t.byte_size() / static_cast<size_t>(t.dim(0));
  auto owner = std::make_shared<Tensor>(t);
  Tensor part = Tensor::from_external(t.data<char>() + static_cast<size_t>(d) * bytes, t.dtype(),
                                      shape, owner, true);
  std::string name = v->name + (t.dim(0) > 1 ? "_" + std::to_string(d) : std::string());
  return relay::constant(part, ctx.span(), name);
}

struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

// The recurrence of one direction: its parameters, and how one step is made.
class Recurrence {
 public:
  Recurrence(NodeContext& ctx, int64_t gates) : ctx_(ctx), gates_(gates) {
    batch_first_ = ctx.attr("layout", 0) != 0;
    x_ = ctx.in(0);
    if (NodeContext::rank_of(x_) != 3) {
      ctx.fail(codes::type_rank, "the input must be a sequence of matrices", "rank 3",
               to_string(x_->type));
    }
    if (batch_first_) x_ = ctx.transpose(x_, {1, 0, 2});
    steps_ = NodeContext::shape_of(x_)[0];
    if (as_const(steps_) == 0) {
      ctx.fail(codes::frontend_limit, "the sequence has no steps",
               "1 step or more, or an open length", "0");
    }
    batch_ = NodeContext::shape_of(x_)[1];
    Expr r = ctx.in(2);
    if (NodeContext::rank_of(r) != 3) {
      ctx.fail(codes::type_rank, "the recurrent weight has the wrong rank", "rank 3",
               to_string(r->type));
    }
    hidden_ = ctx.const_dim(r, 2, "the hidden size");
    int64_t declared = ctx.attr("hidden_size", hidden_);
    if (declared != hidden_) {
      ctx.fail(codes::type_shape, "attribute 'hidden_size' does not fit the recurrent weight",
               std::to_string(hidden_), std::to_string(declared));
    }
    std::string direction = ctx.attr_string("direction", "forward");
    if (direction == "bidirectional") {
      reversed_ = {false, true};
    } else if (direction == "reverse") {
      reversed_ = {true};
    } else if (direction == "forward") {
      reversed_ = {false};
    } else {
      ctx.fail(codes::frontend_attribute, "attribute 'direction' has an unknown value",
               "forward, reverse or bidirectional", direction);
    }
    clip_ = ctx.attr_float("clip", 0);
    read_lengths();
    read_activations();
  }

  int64_t directions() const { return static_cast<int64_t>(reversed_.size()); }
  int64_t hidden() const { return hidden_; }
  DType dtype() const { return NodeContext::dtype_of(x_); }

  // Half of the bias: that of the inputs (0) or that of the recurrence (1); null when absent.
  Expr bias(int64_t direction, int64_t half) const {
    if (!ctx_.has(3)) return nullptr;
    int64_t size = gates_ * hidden_;
    return ctx_.slice(direction_of(ctx_, 3, direction), 0, half * size, (half + 1) * size);
  }

  // One step of a cell: the next states for the step's inputs, of which the first is the output.
  using Cell = std::function<std::vector<Expr>(const Expr& x, const std::vector<Expr>& states)>;

  // Runs a direction over the sequence. `bias` is that of the inputs' product, null for none.
  void run(int64_t direction, const Expr& bias, const std::vector<Expr>& initial,
           const Cell& cell) {
    bool reversed = reversed_[static_cast<size_t>(direction)];
    // Sequences of different lengths are turned round each within its own.
    bool turned = reversed && lengths_;
    Expr xs = inputs(direction, bias);
    if (turned) xs = turn(xs);
    Expr lines = zeros_along(ctx_, x_, 0);
    StepLoop loop{length_of(ctx_, lines), lines, initial, {}, nullptr};
    if (ctx_.output_used(0)) loop.backward.push_back(reversed && !turned);
    StepResults out =
        run_steps(ctx_, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
          Expr one = ctx_.scalar(1, DType::Int(64));
          Expr at = reversed && !turned ? ctx_.sub(ctx_.sub(loop.count, one), t) : t;
          Step step{cell(ctx_.call("take", {xs, at}, {{"axis", int64_t{0}}}), states), {}};
          Expr line = step.states[0];
          if (lengths_) {
            // A sequence that has ended keeps its states, and gives zeros.
            Expr runs = ctx_.expand_dims(ctx_.call("less", {t, lengths_}), 1);
            for (size_t i = 0; i < states.size(); ++i) {
              step.states[i] = ctx_.call("where", {runs, step.states[i], states[i]});
            }
            line = ctx_.call("where", {runs, line, ctx_.scalar_like(0, line)});
          }
          if (!loop.backward.empty()) step.results.push_back(line);
          return step;
        });
    if (!out.stacked.empty()) stacked_.push_back(turned ? turn(out.stacked[0]) : out.stacked[0]);
    last_.push_back(out.states);
  }

  // An initial state of one direction, zeros when the input is absent.
  Expr initial(size_t input, int64_t direction) const {
    if (!ctx_.has(input)) return ctx_.full(0, {batch_, dim(hidden_)}, dtype());
    Expr e = ctx_.in(input);
    if (NodeContext::rank_of(e) != 3) {
      ctx_.fail(codes::type_rank, "an initial state has the wrong rank", "rank 3",
                to_string(e->type));
    }
    if (batch_first_) e = ctx_.transpose(e, {1, 0, 2});
    // Of the sequences' batch, whatever name its own size has; a run compares them.
    return ctx_.reshape(ctx_.select(e, 0, direction), {batch_, dim(hidden_)});
  }

  Expr clipped(Expr e) const {
    if (clip_ <= 0) return e;
    return ctx_.call("clip", {std::move(e)}, {{"a_min", -clip_}, {"a_max", clip_}});
  }

  // The n-th activation function of a direction.
  Expr activate(int64_t direction, int64_t n, Expr e) const {
    const Activation& a = activations_[static_cast<size_t>(direction * per_direction_ + n)];
    auto c = [&](double v) { return ctx_.scalar_like(v, e); };
    e = clipped(std::move(e));
    if (a.name == "sigmoid") return ctx_.call("sigmoid", {e});
    if (a.name == "tanh") return ctx_.call("tanh", {e});
    if (a.name == "relu") return ctx_.call("nn.relu", {e});
    if (a.name == "affine") return ctx_.add(ctx_.mul(e, c(a.alpha)), c(a.beta));
    if (a.name == "leakyrelu") return ctx_.call("nn.leaky_relu", {e}, {{"alpha", a.alpha}});
    if (a.name == "thresholdedrelu") {
      return ctx_.call("where", {ctx_.call("greater", {e, c(a.alpha)}), e, c(0)});
    }
    if (a.name == "scaledtanh")
      return ctx_.mul(ctx_.call("tanh", {ctx_.mul(e, c(a.beta))}), c(a.alpha));
    if (a.name == "hardsigmoid") {
      return ctx_.call("clip", {ctx_.add(ctx_.mul(e, c(a.alpha)), c(a.beta))},
                       {{"a_min", 0.0}, {"a_max", 1.0}});
    }
    if (a.name == "elu") {
      Expr low = ctx_.call("minimum", {e, c(0)});
      Expr tail = ctx_.mul(ctx_.sub(ctx_.call("exp", {low}), c(1)), c(a.alpha));
      return ctx_.add(ctx_.call("maximum", {e, c(0)}), tail);
    }
    if (a.name == "softsign") return ctx_.div(e, ctx_.add(ctx_.call("abs", {e}), c(1)));
    if (a.name == "softplus") {
      Expr small = ctx_.call("exp", {ctx_.call("negative", {ctx_.call("abs", {e})})});
      return ctx_.add(ctx_.call("maximum", {e, c(0)}), ctx_.call("log", {ctx_.add(small, c(1))}));
    }
    ctx_.fail(codes::frontend_attribute, "an activation function is not supported",
              "Sigmoid, Tanh, Relu, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, "
              "Elu, Softsign or Softplus",
              a.name.substr(0, 100));
  }

  // The operator's outputs: Y (all hidden states), and the last of each state.
  Values outputs() const {
    Values out(std::max<size_t>(ctx_.num_outputs(), 1));
    if (ctx_.output_used(0)) {
      // (steps, directions, batch, hidden)
      Expr y = stacked_.size() == 1
                   ? ctx_.expand_dims(stacked_[0], 1)
                   : ctx_.call("stack", {ctx_.tuple_of(stacked_)}, {{"axis", int64_t{1}}});
      out[0] = value_of(batch_first_ ? ctx_.transpose(y, {2, 0, 1, 3}) : y);
    }
    for (size_t i = 0; i < last_[0].size(); ++i) {
      if (!ctx_.output_used(1 + i)) continue;
      std::vector<Expr> sides;
      for (const std::vector<Expr>& states : last_) sides.push_back(states[i]);
      out[1 + i] = value_of(states(sides));
    }
    return out;
  }

 private:
  // (directions, batch, hidden) from one state per direction.
  Expr states(const std::vector<Expr>& sides) const {
    Expr all = sides.size() == 1
                   ? ctx_.expand_dims(sides[0], 0)
                   : ctx_.call("stack", {ctx_.tuple_of(sides)}, {{"axis", int64_t{0}}});
    return batch_first_ ? ctx_.transpose(all, {1, 0, 2}) : all;
  }

  // x W^T + bias of every step: (steps, batch, gates * hidden).
  Expr inputs(int64_t direction, const Expr& bias) const {
    Expr w = direction_of(ctx_, 1, direction);
    const Dim& features = NodeContext::shape_of(x_)[2];
    bool fixed = as_const(steps_) && as_const(batch_);
    Expr rows = fixed ? ctx_.reshape(x_, {steps_ * batch_, features}) : x_;
    Expr product = ctx_.call("nn.dense", {rows, w});
    if (bias) product = ctx_.call("nn.bias_add", {product, bias}, {{"axis", int64_t{-1}}});
    return fixed ? ctx_.reshape(product, {steps_, batch_, dim(gates_ * hidden_)}) : product;
  }

  // The sequences of a batch, each backwards.
  Expr turn(const Expr& e) const {
    return ctx_.call("reverse_sequence", {e, lengths_},
                     {{"seq_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
  }

  // The lengths of the sequences of a batch; none when all are known to have the whole length.
  void read_lengths() {
    if (!ctx_.has(4)) return;
    auto k = ctx_.known(4);
    bool whole = k && k->is_int();
    for (const Dim& n : whole ? k->ints : std::vector<Dim>{}) whole = whole && dim_equal(n, steps_);
    if (!whole) lengths_ = ctx_.cast(ctx_.in(4), DType::Int(64));
  }

  void read_activations() {
    bool lstm = ctx_.op_type().ends_with("LSTM"), gru = ctx_.op_type() == "GRU";
    per_direction_ = lstm ? 3 : gru ? 2 : 1;
    std::vector<std::string> names = ctx_.attr_strings("activations");
    if (names.empty()) {
      for (int64_t d = 0; d < directions(); ++d) {
        if (lstm || gru) names.emplace_back("Sigmoid");
        names.emplace_back("Tanh");
        if (lstm) names.emplace_back("Tanh");
      }
    }
    if (static_cast<int64_t>(names.size()) < per_direction_ * directions()) {
      ctx_.fail(codes::frontend_attribute, "attribute 'activations' is too short",
                std::to_string(per_direction_ * directions()), std::to_string(names.size()));
    }
    // Parameters are given only for the functions that take them, in order.
    std::vector<double> alphas = ctx_.attr_floats("activation_alpha");
    std::vector<double> betas = ctx_.attr_floats("activation_beta");
    size_t next_alpha = 0, next_beta = 0;
    for (std::string& name : names) {
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
      struct Default {
        const char* name;
        double alpha, beta;
        bool has_alpha, has_beta;
      };
      static constexpr Default kDefaults[] = {
          {"affine", 1, 0, true, true},           {"leakyrelu", 0.01, 0, true, false},
          {"thresholdedrelu", 1, 0, true, false}, {"scaledtanh", 1, 1, true, true},
          {"hardsigmoid", 0.2, 0.5, true, true},  {"elu", 1, 0, true, false}};
      Activation a{name};
      for (const Default& d : kDefaults) {
        if (name != d.name) continue;
        a.alpha = d.has_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : d.alpha;
        a.beta = d.has_beta && next_beta < betas.size() ? betas[next_beta++] : d.beta;
      }
      activations_.push_back(std::move(a));
    }
  }

  NodeContext& ctx_;
  int64_t gates_;
  bool batch_first_ = false;
  Expr x_;
  Expr lengths_;  // null: all have the whole length
  int64_t hidden_ = 0;
  Dim steps_, batch_;
  std::vector<bool> reversed_;
  double clip_ = 0;
  int64_t per_direction_ = 1;
  std::vector<Activation> activations_;
  // Of each direction.
  std::vector<Expr> stacked_;
  std::vector<std::vector<Expr>> last_;
};

Expr add_some(NodeContext& ctx, const Expr& a, const Expr& b) {
  if (!a) return b;
  return b ? ctx.add(a, b) : a;
}

Values convert_rnn(NodeContext& ctx) {
  Recurrence rec(ctx, 1);
  for (int64_t d = 0; d < rec.directions(); ++d) {
    Expr r = direction_of(ctx, 2, d);
    rec.run(d, add_some(ctx, rec.bias(d, 0), rec.bias(d, 1)), {rec.initial(5, d)},
            [&](const Expr& x, const std::vector<Expr>& s) -> std::vector<Expr> {
              return {rec.activate(d, 0, ctx.add(x, ctx.call("nn.dense", {s[0], r})))};
            });
  }
  return rec.outputs();
}

// `read` is how a step reads the output before it, for the product with the recurrent weights.
Values lstm(NodeContext& ctx, const std::function<Expr(const Expr&)>& read) {
  bool coupled = ctx.attr("input_forget", 0) != 0;
  Recurrence rec(ctx, 4);
  for (int64_t d = 0; d < rec.directions(); ++d) {
    Expr r = direction_of(ctx, 2, d);
    Expr peep_i, peep_o, peep_f;
    if (ctx.has(7)) {
      std::vector<Expr> p = ctx.split(direction_of(ctx, 7, d), 0, 3);
      peep_i = p[0];
      peep_o = p[1];
      peep_f = p[2];
    }
    auto peep = [&](const Expr& gate, const Expr& weight, const Expr& cell) {
      return weight ? ctx.add(gate, ctx.mul(weight, cell)) : gate;
    };
    rec.run(d, add_some(ctx, rec.bias(d, 0), rec.bias(d, 1)),
            {rec.initial(5, d), rec.initial(6, d)},
            [&](const Expr& x, const std::vector<Expr>& states) -> std::vector<Expr> {
              Expr c = states[1];
              Expr sum = ctx.add(x, ctx.call("nn.dense", {read(states[0]), r}));
              // Gates in the order input, output, forget, cell.
              std::vector<Expr> g = ctx.split(sum, 1, 4);
              Expr i = rec.activate(d, 0, peep(g[0], peep_i, c));
              Expr f = coupled ? ctx.sub(ctx.scalar_like(1, i), i)
                               : rec.activate(d, 0, peep(g[2], peep_f, c));
              Expr z = rec.activate(d, 1, g[3]);
              c = ctx.add(ctx.mul(f, c), ctx.mul(i, z));
              Expr o = rec.activate(d, 0, peep(g[1], peep_o, c));
              return {ctx.mul(o, rec.activate(d, 2, c)), c};
            });
  }
  return rec.outputs();
}

Values convert_lstm(NodeContext& ctx) {
  return lstm(ctx, [](const Expr& h) { return h; });
}

// com.microsoft.DynamicQuantizeLSTM: weights are bytes, (directions, width, gates), with a scale and a zero point for each
// direction or column; what is multiplied by them is quantised on the way. Products of whole numbers are exact in floats,
// and so the sums are those of integers but for the last bits.
Values convert_dynamic_quantize_lstm(NodeContext& ctx) {
  Values inputs;
  for (size_t i = 0; i < 8; ++i) inputs.push_back(ctx.has(i) ? ctx.value(i) : nullptr);
  for (size_t i : {size_t{1}, size_t{2}}) {
    const size_t scale = 8 + 2 * (i - 1);
    auto spread = [&](size_t input) {
      Expr e = ctx.cast(ctx.in(input), DType::Float(32));
      const int64_t rank = NodeContext::rank_of(e);
      if (rank < 1 || rank > 2) {
        ctx.fail(codes::type_rank, "a scale has an unsuitable rank", "rank 1 or 2",
                 to_string(e->type));
      }
      return ctx.expand_dims(e, 1, 3 - rank);
    };
    Expr w = ctx.cast(ctx.in(i), DType::Float(32));
    if (NodeContext::rank_of(w) != 3) {
      ctx.fail(codes::type_rank, "a weight has the wrong rank", "rank 3", to_string(w->type));
    }
    w = ctx.mul(ctx.sub(w, spread(scale + 1)), spread(scale));
    inputs[i] = value_of(ctx.transpose(w, {0, 2, 1}));
  }
  inputs[0] = value_of(dynamically_quantized(ctx, ctx.in(0)));
  NodeContext plain(ctx.importer(), ctx.node(), std::move(inputs), ctx.opset(), ctx.span());
  return lstm(plain, [&](const Expr& h) { return dynamically_quantized(plain, h); });
}

Values convert_gru(NodeContext& ctx) {
  Recurrence rec(ctx, 3);
  bool linear_first = ctx.attr("linear_before_reset", 0) != 0;
  int64_t n = rec.hidden();
  for (int64_t d = 0; d < rec.directions(); ++d) {
    Expr wb = rec.bias(d, 0), rb = rec.bias(d, 1);
    Expr r = direction_of(ctx, 2, d);
    Expr r_gates, r_new;
    if (!linear_first) {
      r_gates = ctx.slice(r, 0, 0, 2 * n);
      r_new = ctx.slice(r, 0, 2 * n, 3 * n);
    }
    // The recurrent bias of the new state is inside the reset gate when that comes after.
    Expr bias = linear_first ? wb : add_some(ctx, wb, rb);
    rec.run(d, bias, {rec.initial(5, d)},
            [&](const Expr& x, const std::vector<Expr>& states) -> std::vector<Expr> {
              const Expr& h = states[0];
              Expr z, candidate;
              if (linear_first) {
                Expr recurrent = ctx.call("nn.dense", {h, r});
                if (rb)
                  recurrent = ctx.call("nn.bias_add", {recurrent, rb}, {{"axis", int64_t{-1}}});
                Expr gates = ctx.add(ctx.slice(x, 1, 0, 2 * n), ctx.slice(recurrent, 1, 0, 2 * n));
                std::vector<Expr> g = ctx.split(gates, 1, 2);
                z = rec.activate(d, 0, g[0]);
                Expr reset = rec.activate(d, 0, g[1]);
                candidate = ctx.add(ctx.slice(x, 1, 2 * n, 3 * n),
                                    ctx.mul(reset, ctx.slice(recurrent, 1, 2 * n, 3 * n)));
              } else {
                Expr gates = ctx.add(ctx.slice(x, 1, 0, 2 * n), ctx.call("nn.dense", {h, r_gates}));
                std::vector<Expr> g = ctx.split(gates, 1, 2);
                z = rec.activate(d, 0, g[0]);
                Expr reset = rec.activate(d, 0, g[1]);
                candidate = ctx.add(ctx.slice(x, 1, 2 * n, 3 * n),
                                    ctx.call("nn.dense", {ctx.mul(reset, h), r_new}));
              }
              Expr fresh = rec.activate(d, 1, candidate);
              // (1 - z) * fresh + z * h
              return {ctx.add(ctx.mul(ctx.sub(ctx.scalar_like(1, z), z), fresh), ctx.mul(z, h))};
            });
  }
  return rec.outputs();
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Recurrent>() {
  static constexpr ConverterRow rows[] = {
      {kMicrosoft, "DynamicQuantizeLSTM", 1, convert_dynamic_quantize_lstm},
      {kOnnx, "GRU", 7, convert_gru},
      {kOnnx, "LSTM", 7, convert_lstm},
      {kOnnx, "RNN", 7, convert_rnn},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
