// Recurrent layers of integers: inputs and results of 8 bits, cells of 16.
//
// A gate is a number of 16 bits with three bits before the point. Products by the inputs and by the state before are
// scaled and saturated to it one after the other. Its functions are tables of all 2^16 gates.
#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/step_loop.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

const DType kShort = DType::Int(16);

Expr whole(const Builder& build, int64_t v) { return build.scalar(static_cast<double>(v), kInt); }

Expr saturated_short(const Builder& build, const Expr& x) {
  return build.clip(x, INT16_MIN, INT16_MAX);
}

// x / 2^n, halves away from zero, of an x whose magnitude is at most 2^30.
Expr over_power(const Builder& build, const Expr& x, int n) {
  if (n == 0) return x;
  Expr sign = build.call("right_shift", {x, whole(build, 31)});
  Expr moved = build.add(build.add(x, whole(build, int64_t{1} << (n - 1))), sign);
  return build.call("right_shift", {moved, whole(build, n)});
}

// A function of 16-bit numbers.
class ShortTable {
 public:
  template <class F>
  ShortTable(NodeContext& ctx, const F& f) {
    constexpr int64_t kEntries = 1 << 16;
    ctx.charge_bytes(kEntries, kShort);
    Tensor t = Tensor::empty(kShort, {kEntries});
    for (int64_t i = 0; i < kEntries; ++i)
      t.data<int16_t>()[i] = f(static_cast<int16_t>(i + INT16_MIN));
    table_ = ctx.constant(std::move(t));
  }
  // Of int32 in the range of 16 bits, as int32.
  Expr operator()(const Builder& build, const Expr& x) const {
    Expr place = build.sub(x, whole(build, INT16_MIN));
    return build.cast(
        build.call("take", {table_, place}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}}),
        kInt);
  }

 private:
  Expr table_;
};

// Sums of products of 8-bit numbers, in 32 bits; weights have no zero point.
Expr byte_product(const Builder& build, const Expr& x, int64_t zero, const Expr& w) {
  return build.call(
      "qnn.dense",
      {x, w, whole(build, zero), whole(build, 0), build.scalar(1, kFloat), build.scalar(1, kFloat)},
      {{"out_dtype", to_value(kInt)}});
}

float weight_scale(NodeContext& ctx, size_t i) {
  const Level level = level_of(ctx, ctx.in_quantization(i));
  if (level.zero != 0) ctx.unsupported("a recurrent layer of weights with a zero point");
  return level.scale;
}

void check_dtype(NodeContext& ctx, size_t i, DType dtype) {
  if (ctx.in_dtype(i) != dtype) ctx.unsupported_dtype(ctx.in_dtype(i));
}

}  // namespace

// ---- SVDF --------------------------------------------------------------------------------------

SvdfResult quantized_svdf(NodeContext& ctx, int64_t filters, int64_t memory, int64_t rank) {
  check_dtype(ctx, 0, DType::Int(8));
  check_dtype(ctx, 1, DType::Int(8));
  check_dtype(ctx, 2, kShort);
  check_dtype(ctx, 4, kShort);
  const Level x = level_of(ctx, ctx.in_quantization(0)), y = level_of(ctx, ctx.out_quantization()),
              state = level_of(ctx, ctx.in_quantization(4));
  const float in = x.scale * weight_scale(ctx, 1) / state.scale,
              out = state.scale * weight_scale(ctx, 2) / y.scale;
  Expr product = scaled(ctx, byte_product(ctx, ctx.in(0), x.zero, ctx.in(1)),
                        multiplier_of(static_cast<double>(in)));
  Expr now = ctx.expand_dims(ctx.cast(saturated_short(ctx, product), kShort), 2);
  const Dim batch = Builder::shape_of(ctx.in(0))[0];
  Expr past = ctx.reshape(ctx.in(4), std::vector<Dim>{batch, dim(filters), dim(memory)});
  Expr kept = ctx.concat({ctx.slice(past, 2, 1, memory), now}, 2);
  Expr sum =
      ctx.reduce("sum", ctx.mul(ctx.cast(kept, kInt), ctx.cast(ctx.in(2), kInt)), {2}, false);
  sum = ctx.reshape(sum, std::vector<Dim>{batch, dim(filters / rank), dim(rank)});
  sum = ctx.reduce("sum", sum, {2}, false);
  if (ctx.has(3)) sum = ctx.add(sum, ctx.in(3));
  sum = scaled(ctx, sum, multiplier_of(static_cast<double>(out)));
  return {stored(ctx, sum, y.zero, {INT8_MIN, INT8_MAX}, DType::Int(8)), kept};
}

// ---- LSTM --------------------------------------------------------------------------------------

namespace {

// The places of a gate in the lists of weights and biases.
enum Gate : size_t { kInput = 0, kForget, kCell, kOutput };

class IntegerLstm {
 public:
  IntegerLstm(NodeContext& ctx, float cell_clip);

  // Over (steps, batch, features).
  IntegerLstmResults run(const Expr& x) const;

 private:
  static constexpr size_t kWeights = 1, kRecurrent = 5, kPeepholes = 9, kBiases = 12,
                          kProjection = 16, kProjectionBias = 17, kState = 18, kCellState = 19,
                          kNorms = 20;

  // The weights of all gates behind each other, and the factor of each line.
  struct Weights {
    Expr w;
    std::vector<Multiplier> factors;
  };
  Weights joined(size_t first, float input_scale) const;
  // The gate's part of numbers for all gates.
  Expr part(const Expr& all, Gate gate) const;
  Expr with_peephole(const Expr& sum, Gate gate, size_t place, const Expr& cell) const;
  Expr result_of(const Expr& product) const;
  Step step(const Expr& from_input, const Weights& recurrent,
            const std::vector<Expr>& states) const;

  NodeContext& ctx_;
  std::vector<Gate> gates_;
  bool coupled_;
  int64_t cells_;
  int cell_power_ = 0;  // the scale of the cell is 2^cell_power_
  int64_t clip_ = 0;
  Level x_, state_, hidden_;
  ShortTable sigmoid_, tanh_;
  std::optional<ShortTable> tanh_of_cell_;
};

IntegerLstm::IntegerLstm(NodeContext& ctx, float cell_clip)
    : ctx_(ctx),
      coupled_(!ctx.has(kWeights)),
      cells_(ctx.const_dim(ctx.in(kWeights + kForget), 0, "the number of cells")),
      x_(level_of(ctx, ctx.in_quantization(0))),
      state_(level_of(ctx, ctx.in_quantization(kState))),
      hidden_(level_of(ctx, ctx.quantization(ctx.intermediate(4)))),
      sigmoid_(ctx, [](int16_t a) { return logistic_16(a, 3); }),
      tanh_(ctx, [](int16_t a) { return tanh_16(a, 3); }) {
  for (Gate g : {kInput, kForget, kCell, kOutput})
    if (g != kInput || !coupled_) gates_.push_back(g);
  for (size_t i = kNorms; i < kNorms + 4; ++i)
    if (ctx.has(i)) ctx.unsupported("an LSTM of integers with layer normalisation");
  // LiteRT applies the weights of peepholes to as many cells as there are results.
  if (ctx.has(kPeepholes + 1) &&
      ctx.const_dim(ctx.in(kState), 1, "the number of results") != cells_)
    ctx.unsupported("an LSTM of integers with peepholes and another number of results than cells");
  check_dtype(ctx, 0, DType::Int(8));
  check_dtype(ctx, kState, DType::Int(8));
  check_dtype(ctx, kCellState, kShort);
  const Level cell = level_of(ctx, ctx.in_quantization(kCellState));
  const float fraction = std::frexp(cell.scale, &cell_power_);
  --cell_power_;
  // A cell has 0 to 6 bits before the point.
  if (fraction != 0.5f || cell_power_ < -15 || cell_power_ > -9 || cell.zero != 0)
    ctx.unsupported("a cell whose scale is not a power of two from 2^-15 to 2^-9");
  const int bits = 15 + cell_power_;
  tanh_of_cell_.emplace(ctx, [&](int16_t a) { return tanh_16(a, bits); });
  if (cell_clip > 0)
    clip_ = static_cast<int64_t>(std::min(cell_clip / cell.scale, static_cast<float>(INT16_MAX)));
}

IntegerLstm::Weights IntegerLstm::joined(size_t first, float input_scale) const {
  Weights out;
  std::vector<Expr> parts;
  for (Gate g : gates_) {
    const size_t i = first + g;
    check_dtype(ctx_, i, DType::Int(8));
    parts.push_back(ctx_.in(i));
    // A gate has 12 bits behind the point.
    const float factor = weight_scale(ctx_, i) * input_scale / std::ldexp(1.0f, -12);
    out.factors.insert(out.factors.end(), static_cast<size_t>(cells_),
                       multiplier_of(static_cast<double>(factor)));
  }
  out.w = ctx_.concat(std::move(parts), 0);
  return out;
}

Expr IntegerLstm::part(const Expr& all, Gate gate) const {
  const auto at = std::ranges::find(gates_, gate) - gates_.begin();
  return ctx_.slice(all, 1, at * cells_, (at + 1) * cells_);
}

Expr IntegerLstm::with_peephole(const Expr& sum, Gate gate, size_t place, const Expr& cell) const {
  const size_t i = kPeepholes + place;
  Expr own = part(sum, gate);
  if (!ctx_.has(i)) return own;
  check_dtype(ctx_, i, kShort);
  const float factor =
      std::ldexp(1.0f, cell_power_) * weight_scale(ctx_, i) / std::ldexp(1.0f, -12);
  Expr product = scaled(ctx_, ctx_.mul(cell, ctx_.cast(ctx_.in(i), kInt)),
                        multiplier_of(static_cast<double>(factor)));
  return saturated_short(ctx_, ctx_.add(own, product));
}

// The state of 8 bits, of a gate by a cell.
Expr IntegerLstm::result_of(const Expr& product) const {
  const float unit = std::ldexp(1.0f, -15);
  const float factor = unit / hidden_.scale * unit;
  Expr y = scaled(ctx_, product, multiplier_of(static_cast<double>(factor)));
  Expr hidden = stored(ctx_, y, hidden_.zero, {INT8_MIN, INT8_MAX}, DType::Int(8));
  if (!ctx_.has(kProjection)) return hidden;
  check_dtype(ctx_, kProjection, DType::Int(8));
  Expr sum = byte_product(ctx_, hidden, hidden_.zero, ctx_.in(kProjection));
  if (ctx_.has(kProjectionBias)) sum = ctx_.add(sum, ctx_.in(kProjectionBias));
  const float to_state = weight_scale(ctx_, kProjection) * hidden_.scale / state_.scale;
  return stored(ctx_, scaled(ctx_, sum, multiplier_of(static_cast<double>(to_state))), state_.zero,
                {INT8_MIN, INT8_MAX}, DType::Int(8));
}

Step IntegerLstm::step(const Expr& from_input, const Weights& recurrent,
                       const std::vector<Expr>& states) const {
  Expr product = byte_product(ctx_, states[0], state_.zero, recurrent.w);
  Expr sum = saturated_short(
      ctx_, ctx_.add(ctx_.cast(from_input, kInt), scaled_lines(ctx_, product, recurrent.factors)));
  Expr cell = ctx_.cast(states[1], kInt);
  Expr forget = sigmoid_(ctx_, with_peephole(sum, kForget, 1, cell));
  Expr fresh = tanh_(ctx_, part(sum, kCell));
  Expr input = coupled_ ? ctx_.sub(whole(ctx_, INT16_MAX), forget)
                        : sigmoid_(ctx_, with_peephole(sum, kInput, 0, cell));
  Expr next =
      saturated_short(ctx_, ctx_.add(over_power(ctx_, ctx_.mul(forget, cell), 15),
                                     over_power(ctx_, ctx_.mul(input, fresh), 30 + cell_power_)));
  if (clip_ > 0) next = ctx_.clip(next, static_cast<double>(-clip_), static_cast<double>(clip_));
  Expr output = sigmoid_(ctx_, with_peephole(sum, kOutput, 2, next));
  Expr y = result_of(ctx_.mul(output, (*tanh_of_cell_)(ctx_, next)));
  return {{y, ctx_.cast(next, kShort)}, {y}};
}

IntegerLstmResults IntegerLstm::run(const Expr& x) const {
  const Weights weights = joined(kWeights, x_.scale), recurrent = joined(kRecurrent, state_.scale);
  const std::vector<Dim> shape = Builder::shape_of(x);
  const auto lines_of_gates = static_cast<int64_t>(gates_.size()) * cells_;
  std::vector<Expr> biases;
  for (Gate g : gates_) biases.push_back(ctx_.in(kBiases + g));
  Expr rows = ctx_.reshape(x, std::vector<Dim>{shape[0] * shape[1], shape[2]});
  Expr sum = ctx_.add(byte_product(ctx_, rows, x_.zero, weights.w), ctx_.concat(biases, 0));
  sum = ctx_.cast(saturated_short(ctx_, scaled_lines(ctx_, sum, weights.factors)), kShort);
  Expr from_inputs = ctx_.reshape(sum, std::vector<Dim>{shape[0], shape[1], dim(lines_of_gates)});
  Expr lines = zeros_along(ctx_, x, 0);
  const StepLoop loop{
      length_of(ctx_, lines), lines, {ctx_.in(kState), ctx_.in(kCellState)}, {false}, nullptr};
  const StepResults out =
      run_steps(ctx_, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
        return step(ctx_.call("take", {from_inputs, t}, {{"axis", int64_t{0}}}), recurrent, states);
      });
  return {out.stacked[0], out.states[0], out.states[1]};
}

}  // namespace

IntegerLstmResults quantized_lstm(NodeContext& ctx, const Expr& x, float cell_clip) {
  return IntegerLstm(ctx, cell_clip).run(x);
}

}  // namespace relay::frontend::tflite
