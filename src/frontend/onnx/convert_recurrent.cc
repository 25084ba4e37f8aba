// RNN, LSTM and GRU as programs of ordinary operators: the product of the inputs is one matrix
// product over the whole sequence, the recurrence is unrolled over its steps.
#include <algorithm>
#include <cctype>
#include <limits>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/graph_importer.h"

namespace relay::importer {
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
    steps_ = ctx.const_dim(x_, 0, "the length of the sequence");
    int64_t limit = ctx.importer().options().max_unrolled_steps;
    if (steps_ < 1 || steps_ > limit) {
      ctx.fail(codes::frontend_limit, "the sequence has an unsuitable length",
               "1 to " + std::to_string(limit), std::to_string(steps_));
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
    check_lengths();
    read_activations();
  }

  int64_t directions() const { return static_cast<int64_t>(reversed_.size()); }
  int64_t steps() const { return steps_; }
  // The place in the sequence of the t-th step.
  int64_t at(int64_t direction, int64_t t) const {
    return reversed_[static_cast<size_t>(direction)] ? steps_ - 1 - t : t;
  }
  int64_t hidden() const { return hidden_; }
  DType dtype() const { return NodeContext::dtype_of(x_); }

  // Half of the bias: that of the inputs (0) or that of the recurrence (1); null when absent.
  Expr bias(int64_t direction, int64_t half) const {
    if (!ctx_.has(3)) return nullptr;
    int64_t size = gates_ * hidden_;
    return ctx_.slice(direction_of(ctx_, 3, direction), 0, half * size, (half + 1) * size);
  }

  // x W^T + bias for every step: a list of (batch, gates * hidden).
  std::vector<Expr> inputs(int64_t direction, const Expr& bias) const {
    Expr w = direction_of(ctx_, 1, direction);
    const Dim& features = NodeContext::shape_of(x_)[2];
    Expr rows = ctx_.reshape(x_, {dim(steps_) * batch_, features});
    Expr product = ctx_.call("nn.dense", {rows, w});
    if (bias) product = ctx_.call("nn.bias_add", {product, bias}, {{"axis", int64_t{-1}}});
    Expr all = ctx_.reshape(product, {dim(steps_), batch_, dim(gates_ * hidden_)});
    std::vector<Expr> out;
    for (const Expr& step : ctx_.split(all, 0, steps_)) out.push_back(ctx_.squeeze(step, {0}));
    return out;
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
    return ctx_.select(e, 0, direction);
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

  // The operator's outputs from each direction's states: Y (all hidden states), Y_h, and the last
  // of further states.
  Values outputs(const std::vector<std::vector<Expr>>& hidden,
                 const std::vector<std::vector<Expr>>& last_states) const {
    Values out(std::max<size_t>(ctx_.num_outputs(), 1));
    if (ctx_.output_used(0)) {
      // (steps, directions, batch, hidden)
      std::vector<Expr> sides;
      for (int64_t d = 0; d < directions(); ++d) {
        std::vector<Expr> in_order(static_cast<size_t>(steps_));
        for (int64_t t = 0; t < steps_; ++t) {
          in_order[static_cast<size_t>(at(d, t))] =
              hidden[static_cast<size_t>(d)][static_cast<size_t>(t)];
        }
        sides.push_back(ctx_.call("stack", {ctx_.tuple_of(in_order)}, {{"axis", int64_t{0}}}));
      }
      Expr y = sides.size() == 1
                   ? ctx_.expand_dims(sides[0], 1)
                   : ctx_.call("stack", {ctx_.tuple_of(sides)}, {{"axis", int64_t{1}}});
      out[0] = value_of(batch_first_ ? ctx_.transpose(y, {2, 0, 1, 3}) : y);
    }
    std::vector<Expr> last_hidden;
    for (const auto& h : hidden) last_hidden.push_back(h.back());
    if (ctx_.output_used(1)) out[1] = value_of(states(last_hidden));
    for (size_t i = 0; i < last_states.size(); ++i) {
      if (ctx_.output_used(2 + i)) out[2 + i] = value_of(states(last_states[i]));
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

  // Lengths per batch entry are accepted when all are the whole length.
  void check_lengths() const {
    if (!ctx_.has(4)) return;
    auto k = ctx_.known(4);
    bool whole = k && k->is_int() && k->is_constant();
    for (int64_t i = 0; whole && i < k->size(); ++i) whole = k->int_at(i) == steps_;
    if (!whole) {
      ctx_.unsupported("a batch of sequences of different lengths (sequence_lens)",
                       "run sequences of one length together, and drop the input sequence_lens");
    }
  }

  void read_activations() {
    bool lstm = ctx_.op_type() == "LSTM", gru = ctx_.op_type() == "GRU";
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
  int64_t steps_ = 0, hidden_ = 0;
  Dim batch_;
  std::vector<bool> reversed_;
  double clip_ = 0;
  int64_t per_direction_ = 1;
  std::vector<Activation> activations_;
};

Expr add_some(NodeContext& ctx, const Expr& a, const Expr& b) {
  if (!a) return b;
  return b ? ctx.add(a, b) : a;
}

}  // namespace

Values convert_rnn(NodeContext& ctx) {
  Recurrence rec(ctx, 1);
  std::vector<std::vector<Expr>> hidden;
  for (int64_t d = 0; d < rec.directions(); ++d) {
    std::vector<Expr> xs = rec.inputs(d, add_some(ctx, rec.bias(d, 0), rec.bias(d, 1)));
    Expr r = direction_of(ctx, 2, d);
    Expr h = rec.initial(5, d);
    hidden.emplace_back();
    for (int64_t t = 0; t < rec.steps(); ++t) {
      Expr sum = ctx.add(xs[static_cast<size_t>(rec.at(d, t))], ctx.call("nn.dense", {h, r}));
      h = rec.activate(d, 0, sum);
      hidden.back().push_back(h);
    }
  }
  return rec.outputs(hidden, {});
}

Values convert_lstm(NodeContext& ctx) {
  if (ctx.attr("input_forget", 0) != 0) ctx.unsupported("coupled input and forget gates");
  Recurrence rec(ctx, 4);
  std::vector<std::vector<Expr>> hidden;
  std::vector<Expr> last_cells;
  for (int64_t d = 0; d < rec.directions(); ++d) {
    std::vector<Expr> xs = rec.inputs(d, add_some(ctx, rec.bias(d, 0), rec.bias(d, 1)));
    Expr r = direction_of(ctx, 2, d);
    Expr h = rec.initial(5, d), c = rec.initial(6, d);
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
    hidden.emplace_back();
    for (int64_t t = 0; t < rec.steps(); ++t) {
      Expr sum = ctx.add(xs[static_cast<size_t>(rec.at(d, t))], ctx.call("nn.dense", {h, r}));
      // Gates in the order input, output, forget, cell.
      std::vector<Expr> g = ctx.split(sum, 1, 4);
      Expr i = rec.activate(d, 0, peep(g[0], peep_i, c));
      Expr f = rec.activate(d, 0, peep(g[2], peep_f, c));
      Expr z = rec.activate(d, 1, g[3]);
      c = ctx.add(ctx.mul(f, c), ctx.mul(i, z));
      Expr o = rec.activate(d, 0, peep(g[1], peep_o, c));
      h = ctx.mul(o, rec.activate(d, 2, c));
      hidden.back().push_back(h);
    }
    last_cells.push_back(c);
  }
  return rec.outputs(hidden, {last_cells});
}

Values convert_gru(NodeContext& ctx) {
  Recurrence rec(ctx, 3);
  bool linear_first = ctx.attr("linear_before_reset", 0) != 0;
  int64_t n = rec.hidden();
  std::vector<std::vector<Expr>> hidden;
  for (int64_t d = 0; d < rec.directions(); ++d) {
    Expr wb = rec.bias(d, 0), rb = rec.bias(d, 1);
    // The recurrent bias of the new state is inside the reset gate when that comes after.
    std::vector<Expr> xs = rec.inputs(d, linear_first ? wb : add_some(ctx, wb, rb));
    Expr r = direction_of(ctx, 2, d);
    Expr h = rec.initial(5, d);
    Expr r_gates, r_new;
    if (!linear_first) {
      r_gates = ctx.slice(r, 0, 0, 2 * n);
      r_new = ctx.slice(r, 0, 2 * n, 3 * n);
    }
    hidden.emplace_back();
    for (int64_t t = 0; t < rec.steps(); ++t) {
      Expr x = xs[static_cast<size_t>(rec.at(d, t))];
      Expr z, candidate;
      if (linear_first) {
        Expr recurrent = ctx.call("nn.dense", {h, r});
        if (rb) recurrent = ctx.call("nn.bias_add", {recurrent, rb}, {{"axis", int64_t{-1}}});
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
      h = ctx.add(ctx.mul(ctx.sub(ctx.scalar_like(1, z), z), fresh), ctx.mul(z, h));
      hidden.back().push_back(h);
    }
  }
  return rec.outputs(hidden, {});
}

}  // namespace relay::importer
