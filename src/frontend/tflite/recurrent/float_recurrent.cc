#include "frontend/tflite/recurrent/float_recurrent.h"

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/step_loop.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {

Expr float_weight(NodeContext& ctx, size_t i) {
  Expr w = ctx.in(i);
  if (ctx.is_quantized(i)) return to_floats(ctx, w, ctx.in_quantization(i));
  if (!Builder::dtype_of(w).is_floating()) ctx.unsupported_dtype(Builder::dtype_of(w));
  return ctx.cast(w, kFloat);
}

// ---- Products ----------------------------------------------------------------------------------

GateWeights::GateWeights(NodeContext& ctx, const std::vector<size_t>& inputs, bool asymmetric)
    : ctx_(ctx), asymmetric_(asymmetric) {
  const bool integers = ctx.is_quantized(inputs.back());
  std::vector<Expr> parts;
  for (size_t i : inputs) {
    Expr w = ctx.in_of_rank(i, 2);
    const int64_t lines = ctx.const_dim(w, 0, "the rows of a weight");
    lines_ += lines;
    if (ctx.is_quantized(i) != integers)
      ctx.unsupported("a recurrent layer with both integer and float weights");
    if (integers) {
      if (ctx.in_dtype(i) != DType::Int(8)) ctx.unsupported_dtype(ctx.in_dtype(i));
      const Level level = level_of(ctx, ctx.in_quantization(i));
      if (level.zero != 0) ctx.unsupported("a recurrent layer of weights with a zero point");
      ctx.charge_bytes(lines, kFloat);
      scales_.insert(scales_.end(), static_cast<size_t>(lines), level.scale);
    }
    parts.push_back(integers ? w : float_weight(ctx, i));
  }
  w_ = parts.size() == 1 ? parts[0] : ctx.concat(std::move(parts), 0);
}

Expr GateWeights::by_rows(const Expr& rows) const {
  if (scales_.empty()) return ctx_.call("nn.dense", {rows, w_});
  return hybrid_product(ctx_, rows, w_, scales_, asymmetric_);
}

Expr GateWeights::by_sequence(const Expr& x) const {
  const std::vector<Dim> shape = Builder::shape_of(x);
  Expr rows = ctx_.reshape(x, std::vector<Dim>{shape[0] * shape[1], shape[2]});
  return ctx_.reshape(by_rows(rows), std::vector<Dim>{shape[0], shape[1], dim(lines_)});
}

// ---- Loops -------------------------------------------------------------------------------------

namespace {

// The steps of a layer over what its inputs give, (steps, batch, lines), from these states on.
StepResults over_sequence(
    NodeContext& ctx, const Expr& from_inputs, const std::vector<Expr>& states, bool backward,
    const std::function<std::vector<Expr>(const Expr& line, const std::vector<Expr>&)>& step) {
  Expr lines = zeros_along(ctx, from_inputs, 0);
  const StepLoop loop{length_of(ctx, lines), lines, states, {backward}, nullptr};
  return run_steps(ctx, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& now) {
    Expr last = ctx.sub(loop.count, ctx.scalar(1, DType::Int(64)));
    Expr at = backward ? ctx.sub(last, t) : t;
    Expr line = ctx.call("take", {from_inputs, at}, {{"axis", int64_t{0}}});
    std::vector<Expr> next = step(line, now);
    Expr result = next[0];
    return Step{std::move(next), {result}};
  });
}

// A state before the first step, with the batch of the sequence.
Expr first_state(NodeContext& ctx, size_t input, const Expr& x) {
  Expr state = ctx.in_of_rank(input, 2);
  return ctx.reshape(state, std::vector<Dim>{Builder::shape_of(x)[1], Builder::shape_of(state)[1]});
}

Expr joined_vectors(NodeContext& ctx, const std::vector<size_t>& inputs) {
  std::vector<Expr> parts;
  for (size_t i : inputs) parts.push_back(float_weight(ctx, i));
  return ctx.concat(std::move(parts), 0);
}

// ---- LSTM --------------------------------------------------------------------------------------

class FloatLstm {
 public:
  FloatLstm(NodeContext& ctx, const LstmPlaces& at, const LstmForm& form)
      : ctx_(ctx),
        at_(at),
        form_(form),
        gates_(ctx, at),
        weights_(ctx, gates_.inputs(at.w), form.asymmetric),
        normed_(at.norm != 0 && ctx.has(at.norm + kForgetGate)) {
    if (form.diagonal) {
      diagonal_ = joined_vectors(ctx, gates_.inputs(at.r));
    } else {
      recurrent_.emplace(ctx, gates_.inputs(at.r), form.asymmetric);
    }
    if (ctx.has(at.projection))
      projection_.emplace(ctx, std::vector<size_t>{at.projection}, form.asymmetric);
  }

  LstmResults run(const Expr& x, const Expr& aux) const;

 private:
  // What a gate reads: the sums of products, what its peephole reads of the cell, and the normalised sum of both.
  Expr gate(const Expr& sums, LstmGate g, size_t peephole, const Expr& cell) const;
  Expr normalised(const Expr& sum, LstmGate g) const;
  std::vector<Expr> step(const Expr& line, const std::vector<Expr>& states) const;
  Expr of_state(const Expr& state) const;
  Expr result_of(const Expr& hidden) const;
  Expr sigmoid(const Expr& e) const { return ctx_.call("sigmoid", {e}); }

  NodeContext& ctx_;
  const LstmPlaces& at_;
  const LstmForm& form_;
  LstmGates gates_;
  GateWeights weights_;
  bool normed_;
  Expr diagonal_;
  std::optional<GateWeights> recurrent_, projection_;
};

Expr FloatLstm::of_state(const Expr& state) const {
  if (recurrent_) return recurrent_->by_rows(state);
  return ctx_.mul(ctx_.concat(std::vector<Expr>(gates_.list.size(), state), 1), diagonal_);
}

Expr FloatLstm::normalised(const Expr& sum, LstmGate g) const {
  if (!normed_) return sum;
  Expr centred = ctx_.sub(sum, ctx_.reduce("mean", sum, {1}, true));
  Expr variance = ctx_.reduce("mean", ctx_.mul(centred, centred), {1}, true);
  Expr scale = ctx_.call("rsqrt", {ctx_.add(variance, ctx_.scalar_like(1e-8, variance))});
  Expr y = ctx_.mul(ctx_.mul(centred, scale), float_weight(ctx_, at_.norm + g));
  return ctx_.add(y, float_weight(ctx_, at_.bias + g));
}

Expr FloatLstm::gate(const Expr& sums, LstmGate g, size_t peephole, const Expr& cell) const {
  Expr own = gates_.part(ctx_, sums, g);
  const size_t i = at_.peep + peephole;
  if (ctx_.has(i)) own = ctx_.add(own, ctx_.mul(cell, float_weight(ctx_, i)));
  return sigmoid(normalised(own, g));
}

Expr FloatLstm::result_of(const Expr& hidden) const {
  if (!projection_) return hidden;
  Expr y = projection_->by_rows(hidden);
  if (ctx_.has(at_.projection + 1)) y = ctx_.add(y, float_weight(ctx_, at_.projection + 1));
  const auto most = static_cast<double>(form_.projection_clip);
  return most > 0 ? ctx_.clip(y, -most, most) : y;
}

std::vector<Expr> FloatLstm::step(const Expr& line, const std::vector<Expr>& states) const {
  const Expr& cell = states[1];
  Expr sums = ctx_.add(line, of_state(states[0]));
  Expr forget = gate(sums, kForgetGate, 1, cell);
  Expr input = gates_.coupled ? ctx_.sub(ctx_.scalar_like(1, forget), forget)
                              : gate(sums, kInputGate, 0, cell);
  Expr fresh =
      ctx_.activated(normalised(gates_.part(ctx_, sums, kCellGate), kCellGate), form_.activation);
  Expr next = ctx_.add(ctx_.mul(forget, cell), ctx_.mul(input, fresh));
  const auto most = static_cast<double>(form_.cell_clip);
  if (most > 0) next = ctx_.clip(next, -most, most);
  Expr output = gate(sums, kOutputGate, 2, next);
  return {result_of(ctx_.mul(output, ctx_.activated(next, form_.activation))), next};
}

LstmResults FloatLstm::run(const Expr& x, const Expr& aux) const {
  Expr from_inputs = weights_.by_sequence(x);
  if (aux) {
    const GateWeights own(ctx_, gates_.inputs(at_.aux), form_.asymmetric);
    from_inputs = ctx_.add(from_inputs, own.by_sequence(aux));
  }
  // Normalised sums have the bias behind them.
  if (!normed_) from_inputs = ctx_.add(from_inputs, joined_vectors(ctx_, gates_.inputs(at_.bias)));
  const StepResults out = over_sequence(
      ctx_, from_inputs, {first_state(ctx_, at_.state, x), first_state(ctx_, at_.state + 1, x)},
      form_.backward, [&](const Expr& line, const std::vector<Expr>& s) { return step(line, s); });
  return {out.stacked[0], out.states[0], out.states[1]};
}

}  // namespace

LstmResults float_lstm(NodeContext& ctx, const Expr& x, const Expr& aux, const LstmPlaces& at,
                       const LstmForm& form) {
  return FloatLstm(ctx, at, form).run(x, aux);
}

// ---- RNN ---------------------------------------------------------------------------------------

RnnResults float_rnn(NodeContext& ctx, const Expr& x, const Expr& aux, const RnnPlaces& at,
                     const RnnForm& form) {
  const GateWeights recurrent(ctx, {at.first + 1}, form.asymmetric);
  Expr from_inputs = GateWeights(ctx, {at.first}, form.asymmetric).by_sequence(x);
  if (aux) {
    const GateWeights own(ctx, {at.aux}, form.asymmetric);
    from_inputs = ctx.add(from_inputs, own.by_sequence(aux));
  }
  from_inputs = ctx.add(from_inputs, float_weight(ctx, at.first + 2));
  const StepResults out =
      over_sequence(ctx, from_inputs, {first_state(ctx, at.first + 3, x)}, form.backward,
                    [&](const Expr& line, const std::vector<Expr>& states) -> std::vector<Expr> {
                      Expr sum = ctx.add(line, recurrent.by_rows(states[0]));
                      return {ctx.activated(sum, form.activation)};
                    });
  return {out.stacked[0], out.states[0]};
}

}  // namespace relay::frontend::tflite
