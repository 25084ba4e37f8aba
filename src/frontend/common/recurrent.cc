#include "frontend/common/recurrent.h"

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/step_loop.h"

namespace relay::frontend {
namespace {

// The recurrence of a layer, a direction after the other.
class Recurrence {
 public:
  Recurrence(const Builder& build, const RecurrentLayer& layer)
      : build_(build),
        layer_(layer),
        gates_(gates_of(layer.cell)),
        standard_(standard_activations(layer.cell)),
        order_(layer.gate_order) {
    if (Builder::rank_of(layer.x) != 3) {
      build.fail(codes::type_rank, "the input must be a sequence of matrices", "rank 3",
                 to_string(layer.x->type));
    }
    steps_ = Builder::shape_of(layer.x)[0];
    batch_ = Builder::shape_of(layer.x)[1];
    if (as_const(steps_) == 0) {
      build.fail(codes::frontend_limit, "the sequence has no steps",
                 "1 step or more, or an open length", "0");
    }
    if (order_.empty()) order_ = {0, 1, 2, 3};
  }

  void run(const RecurrentDirection& d) {
    switch (layer_.cell) {
      case RecurrentCell::Rnn:
        return run_rnn(d);
      case RecurrentCell::Lstm:
        return run_lstm(d);
      case RecurrentCell::Gru:
        return run_gru(d);
    }
  }

  RecurrentResults results() const {
    RecurrentResults out;
    if (layer_.all_steps) out.y = together(stacked_, 1);
    for (size_t i = 0; i < last_[0].size(); ++i) {
      std::vector<Expr> sides;
      for (const std::vector<Expr>& states : last_) sides.push_back(states[i]);
      out.last.push_back(together(sides, 0));
    }
    return out;
  }

 private:
  // One step of a cell: the next states for the step's inputs, of which the first is the output.
  using Cell = std::function<std::vector<Expr>(const Expr& x, const std::vector<Expr>& states)>;

  void run_rnn(const RecurrentDirection& d) {
    over_steps(d, both(d.w_bias, d.r_bias), {initial(d.state)},
               [&](const Expr& x, const std::vector<Expr>& s) -> std::vector<Expr> {
                 return {activate(d, 0, build_.add(x, product(s[0], d.r)))};
               });
  }

  void run_lstm(const RecurrentDirection& d) {
    auto peep = [&](const Expr& gate, const Expr& weight, const Expr& cell) {
      return weight ? build_.add(gate, build_.mul(weight, cell)) : gate;
    };
    over_steps(d, both(d.w_bias, d.r_bias), {initial(d.state), initial(d.cell)},
               [&](const Expr& x, const std::vector<Expr>& states) -> std::vector<Expr> {
                 Expr c = states[1], h = layer_.read ? layer_.read(states[0]) : states[0];
                 std::vector<Expr> g = build_.split(build_.add(x, product(h, d.r)), 1, gates_);
                 auto gate = [&](size_t which) { return g[order_[which]]; };
                 Expr i = activate(d, 0, peep(gate(0), d.peep_input, c));
                 Expr f = layer_.coupled ? build_.sub(build_.scalar_like(1, i), i)
                                         : activate(d, 0, peep(gate(2), d.peep_forget, c));
                 Expr z = activate(d, 1, gate(3));
                 c = build_.add(build_.mul(f, c), build_.mul(i, z));
                 Expr o = activate(d, 0, peep(gate(1), d.peep_output, c));
                 return {build_.mul(o, activate(d, 2, c)), c};
               });
  }

  void run_gru(const RecurrentDirection& d) {
    const int64_t n = layer_.hidden;
    const bool after = layer_.reset_after;
    Expr r_gates, r_new;
    if (!after) {
      r_gates = build_.slice(d.r, 0, 0, 2 * n);
      r_new = build_.slice(d.r, 0, 2 * n, 3 * n);
    }
    // The recurrent bias of the new state is inside the reset gate when that comes after.
    over_steps(d, after ? d.w_bias : both(d.w_bias, d.r_bias), {initial(d.state)},
               [&](const Expr& x, const std::vector<Expr>& states) -> std::vector<Expr> {
                 const Expr& h = states[0];
                 Expr recurrent, gates;
                 if (after) {
                   recurrent = with_bias(product(h, d.r), d.r_bias);
                   gates = build_.slice(recurrent, 1, 0, 2 * n);
                 } else {
                   gates = product(h, r_gates);
                 }
                 gates = build_.add(build_.slice(x, 1, 0, 2 * n), gates);
                 std::vector<Expr> g = build_.split(gates, 1, 2);
                 Expr z = activate(d, 0, g[order_[0]]), reset = activate(d, 0, g[order_[1]]);
                 Expr candidate = after
                                      ? build_.mul(reset, build_.slice(recurrent, 1, 2 * n, 3 * n))
                                      : product(build_.mul(reset, h), r_new);
                 candidate = build_.add(build_.slice(x, 1, 2 * n, 3 * n), candidate);
                 Expr fresh = activate(d, 1, candidate);
                 // (1 - z) * fresh + z * h
                 return {build_.add(build_.mul(build_.sub(build_.scalar_like(1, z), z), fresh),
                                    build_.mul(z, h))};
               });
  }

  // Runs a direction over the sequence. `bias` is that of the inputs' product, null for none.
  void over_steps(const RecurrentDirection& d, const Expr& bias, const std::vector<Expr>& initial,
                  const Cell& cell) {
    const Expr& lengths = layer_.lengths;
    // Sequences of different lengths are turned round each within its own.
    const bool turned = d.backward && lengths, from_end = d.backward && !turned;
    Expr xs = inputs(d, bias);
    if (turned) xs = turn(xs);
    Expr lines = zeros_along(build_, layer_.x, 0);
    StepLoop loop{length_of(build_, lines), lines, initial, {}, nullptr};
    if (layer_.all_steps) loop.backward.push_back(from_end);
    StepResults out =
        run_steps(build_, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
          Expr one = build_.scalar(1, DType::Int(64));
          Expr at = from_end ? build_.sub(build_.sub(loop.count, one), t) : t;
          Step step{cell(build_.call("take", {xs, at}, {{"axis", int64_t{0}}}), states), {}};
          Expr line = step.states[0];
          if (lengths) {
            // A sequence that has ended keeps its states, and gives zeros.
            Expr runs = build_.expand_dims(build_.call("less", {t, lengths}), 1);
            for (size_t i = 0; i < states.size(); ++i) {
              step.states[i] = build_.where(runs, step.states[i], states[i]);
            }
            line = build_.where(runs, line, build_.scalar_like(0, line));
          }
          if (layer_.all_steps) step.results.push_back(line);
          return step;
        });
    if (layer_.all_steps) stacked_.push_back(turned ? turn(out.stacked[0]) : out.stacked[0]);
    last_.push_back(out.states);
  }

  // x W^T + bias of every step: (steps, batch, gates * hidden).
  Expr inputs(const RecurrentDirection& d, const Expr& bias) const {
    const Dim& features = Builder::shape_of(layer_.x)[2];
    bool fixed = as_const(steps_) && as_const(batch_);
    Expr rows = fixed ? build_.reshape(layer_.x, {steps_ * batch_, features}) : layer_.x;
    Expr all = with_bias(product(rows, d.w), bias);
    return fixed ? build_.reshape(all, {steps_, batch_, dim(gates_ * layer_.hidden)}) : all;
  }

  // A state before the first step. It has the sequences' batch, whatever name its own size has; a run compares them.
  Expr initial(const Expr& state) const {
    if (!state) {
      return build_.full(0, {batch_, dim(layer_.hidden)}, Builder::dtype_of(layer_.x));
    }
    return build_.reshape(state, {batch_, dim(layer_.hidden)});
  }

  Expr product(const Expr& x, const Expr& weights) const {
    return build_.call("nn.dense", {x, weights});
  }
  Expr with_bias(const Expr& y, const Expr& bias) const {
    return bias ? build_.call("nn.bias_add", {y, bias}, {{"axis", int64_t{-1}}}) : y;
  }
  Expr both(const Expr& a, const Expr& b) const {
    if (!a) return b;
    return b ? build_.add(a, b) : a;
  }

  // The n-th activation function of a direction.
  Expr activate(const RecurrentDirection& d, size_t n, Expr e) const {
    if (layer_.clip > 0) e = build_.clip(std::move(e), -layer_.clip, layer_.clip);
    return frontend::activate(build_, (d.activations.empty() ? standard_ : d.activations)[n], e);
  }

  // The sequences of a batch, each backwards.
  Expr turn(const Expr& e) const {
    return build_.call("reverse_sequence", {e, layer_.lengths},
                       {{"seq_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
  }

  // One for each direction, along a new axis.
  Expr together(const std::vector<Expr>& sides, int64_t axis) const {
    if (sides.size() == 1) return build_.expand_dims(sides[0], axis);
    return build_.call("stack", {build_.tuple_of(sides)}, {{"axis", axis}});
  }

  const Builder& build_;
  const RecurrentLayer& layer_;
  const int64_t gates_;
  const std::vector<Activation> standard_;
  std::vector<size_t> order_;
  Dim steps_, batch_;
  // Of each direction.
  std::vector<Expr> stacked_;
  std::vector<std::vector<Expr>> last_;
};

}  // namespace

int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::Lstm ? 4 : cell == RecurrentCell::Gru ? 3 : 1;
}

std::vector<Activation> standard_activations(RecurrentCell cell) {
  constexpr Activation kGate{ActivationKind::Sigmoid}, kTanh{ActivationKind::Tanh};
  if (cell == RecurrentCell::Lstm) return {kGate, kTanh, kTanh};
  if (cell == RecurrentCell::Gru) return {kGate, kTanh};
  return {kTanh};
}

RecurrentResults recurrent(const Builder& build, const RecurrentLayer& layer) {
  Recurrence run(build, layer);
  for (const RecurrentDirection& d : layer.directions) run.run(d);
  return run.results();
}

}  // namespace relay::frontend
