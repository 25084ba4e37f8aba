// Recurrent layers of integers: inputs and results of 8 bits, cells of 16.
//
// A gate is a number of 16 bits with three bits before the point. Products by the inputs and by the state before are
// scaled and saturated to it one after the other. Its functions are tables of all 2^16 gates.
#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/step_loop.h"
#include "frontend/common/tensor_bytes.h"
#include "frontend/tflite/quantized.h"
#include "frontend/tflite/recurrent/lstm.h"

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

// x / 2^n, halves away from zero, of a wide x.
Expr over_wide_power(const Builder& build, const Expr& x, int n) {
  auto wide = [&](int64_t v) { return build.scalar(static_cast<double>(v), kWide); };
  Expr positive = build.call("greater", {x, wide(0)});
  const int64_t half = int64_t{1} << (n - 1);
  Expr moved = build.add(x, build.where(positive, wide(half), wide(-half)));
  return build.call("trunc_divide", {moved, wide(int64_t{1} << n)});
}

// 1 / sqrt(v) of integers v from 1 to 2^30, as a factor of 31 bits and the power of two that divides the product by it.
struct InverseRoot {
  Expr factor, shift;
};

InverseRoot inverse_root(const Builder& build, const Expr& v) {
  auto wide = [&](int64_t n) { return build.scalar(static_cast<double>(n), kWide); };
  auto right = [&](const Expr& e, const Expr& n) { return build.call("right_shift", {e, n}); };
  auto left = [&](const Expr& e, const Expr& n) { return build.call("left_shift", {e, n}); };
  auto less = [&](const Expr& a, const Expr& b) { return build.call("less", {a, b}); };
  // A product of numbers of 31 bits, halves up; operands are not negative.
  auto product = [&](const Expr& a, const Expr& b) {
    return right(build.add(build.mul(a, b), wide(int64_t{1} << 30)), wide(31));
  };
  auto saturated = [&](const Expr& e) { return build.minimum(e, wide(INT32_MAX)); };
  // v times a power of four, from 2^27 to 2^29.
  Expr large = build.call("greater_equal", {v, wide(1 << 29)});
  Expr small = build.where(large, right(v, wide(2)), v);
  std::vector<int64_t> limits;
  for (int k = 27; k >= 3; k -= 2) limits.push_back(int64_t{1} << k);
  Expr pairs =
      build.reduce("sum", build.cast(less(small, build.ints(limits, kWide)), kWide), {1}, true);
  Expr shift = build.sub(build.add(wide(11), build.cast(large, kWide)), pairs);
  Expr input = left(small, build.mul(pairs, wide(2)));
  // Newton's steps x * (3 - v x^2) / 2, with three bits before the point.
  Expr half_input = right(build.add(right(input, wide(1)), wide(1)), wide(1));
  Expr half_three = wide((1 << 28) + (1 << 27));
  Expr x = build.call("full_like", {v, wide(1 << 28)});
  for (int i = 0; i < 5; ++i) {
    Expr cube = saturated(left(product(product(x, x), x), wide(6)));
    x = saturated(left(build.sub(product(half_three, x), product(half_input, cube)), wide(3)));
  }
  x = product(x, wide(1518500250));  // sqrt(1/2)
  // A negative shift becomes part of the factor.
  Expr over = build.maximum(build.sub(wide(0), shift), wide(0));
  x = left(x, over);
  shift = build.maximum(shift, wide(0));
  Expr tiny = less(v, wide(2));
  return {build.where(tiny, wide(INT32_MAX), x), build.where(tiny, wide(0), shift)};
}

// (batch, cells) less the mean of each line, divided by its deviation: with 10 bits behind the point, in 64 bits. A
// variance below 1 counts as `guard`.
Expr normalised_line(const Builder& build, const Expr& x, int64_t cells, int64_t guard) {
  auto wide = [&](int64_t n) { return build.scalar(static_cast<double>(n), kWide); };
  auto divided = [&](const Expr& e, int64_t n) { return build.call("trunc_divide", {e, wide(n)}); };
  Expr e = build.cast(x, kWide);
  Expr mean = divided(build.mul(build.reduce("sum", e, {1}, true), wide(1024)), cells);
  Expr squares = build.reduce("sum", build.mul(e, e), {1}, true);
  constexpr int64_t kUnit = 1 << 20;
  Expr variance =
      divided(build.sub(build.mul(squares, wide(kUnit / cells)), build.mul(mean, mean)), kUnit);
  variance = build.where(build.call("less", {variance, wide(1)}), wide(guard), variance);
  const InverseRoot root = inverse_root(build, variance);
  Expr centred = build.sub(build.mul(e, wide(1024)), mean);
  Expr product = build.add(build.mul(centred, root.factor), wide(int64_t{1} << 30));
  product = build.call("right_shift", {product, wide(31)});
  // Divided by a power of two, halves away from zero.
  Expr half = build.call("right_shift", {build.call("left_shift", {wide(1), root.shift}), wide(1)});
  Expr below = build.call("less", {product, wide(0)});
  Expr nudge = build.sub(half, build.where(below, build.minimum(half, wide(1)), wide(0)));
  return build.call("right_shift", {build.add(product, nudge), root.shift});
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

class IntegerLstm {
 public:
  IntegerLstm(NodeContext& ctx, const LstmForm& form);

  // Over (steps, batch, features).
  LstmResults run(const Expr& x) const;

 private:
  // The weights of all gates behind each other, and the factor of each line.
  struct Weights {
    Expr w;
    std::vector<Multiplier> factors;
  };
  Weights joined(size_t first, float input_scale) const;
  // What a gate reads of sums for all gates, of the cell through its peephole, and normalised.
  Expr read(const Expr& sum, LstmGate gate) const;
  Expr read(const Expr& sum, LstmGate gate, size_t peephole, const Expr& cell) const;
  Expr normalised(const Expr& sum, LstmGate gate) const;
  Expr result_of(const Expr& product) const;
  Step step(const Expr& from_input, const Weights& recurrent,
            const std::vector<Expr>& states) const;

  NodeContext& ctx_;
  const LstmPlaces at_;
  LstmGates gates_;
  bool normed_;
  float scales_[4];     // of what each gate reads
  int cell_power_ = 0;  // the scale of the cell is 2^cell_power_
  int64_t cell_clip_ = 0, projection_clip_ = 0;
  Level x_, state_, hidden_;
  ShortTable sigmoid_, tanh_;
  std::optional<ShortTable> tanh_of_cell_;
};

IntegerLstm::IntegerLstm(NodeContext& ctx, const LstmForm& form)
    : ctx_(ctx),
      gates_(ctx, at_),
      normed_(ctx.has(at_.norm + kForgetGate)),
      x_(level_of(ctx, ctx.in_quantization(0))),
      state_(level_of(ctx, ctx.in_quantization(at_.state))),
      hidden_(level_of(ctx, ctx.quantization(ctx.intermediate(4)))),
      sigmoid_(ctx, [](int16_t a) { return logistic_16(a, 3); }),
      tanh_(ctx, [](int16_t a) { return tanh_16(a, 3); }) {
  if (form.activation != schema::FusedActivation::tanh)
    ctx.unsupported("an LSTM of integers with an activation other than tanh");
  if (form.diagonal) ctx.unsupported("an LSTM of integers with diagonal recurrent weights");
  // The kernel of the older form, whose sums are of 8 bits, reads scales beyond the end of their list.
  if (const auto* list = ctx.op().intermediates(); list != nullptr && list->size() != 5)
    ctx.unsupported("an LSTM of integers whose gates are sums of 8 bits");
  for (LstmGate g : gates_.list) {
    // A gate that is not normalised has 12 bits behind the point.
    scales_[g] = normed_ ? level_of(ctx, ctx.quantization(ctx.intermediate(g))).scale
                         : std::ldexp(1.0f, -12);
  }
  // LiteRT applies the weights of peepholes to as many cells as there are results.
  if (ctx.has(at_.peep + 1) &&
      ctx.const_dim(ctx.in(at_.state), 1, "the number of results") != gates_.cells)
    ctx.unsupported("an LSTM of integers with peepholes and another number of results than cells");
  check_dtype(ctx, 0, DType::Int(8));
  check_dtype(ctx, at_.state, DType::Int(8));
  check_dtype(ctx, at_.state + 1, kShort);
  const Level cell = level_of(ctx, ctx.in_quantization(at_.state + 1));
  const float fraction = std::frexp(cell.scale, &cell_power_);
  --cell_power_;
  // A cell has 0 to 6 bits before the point.
  if (fraction != 0.5f || cell_power_ < -15 || cell_power_ > -9 || cell.zero != 0)
    ctx.unsupported("a cell whose scale is not a power of two from 2^-15 to 2^-9");
  const int bits = 15 + cell_power_;
  tanh_of_cell_.emplace(ctx, [&](int16_t a) { return tanh_16(a, bits); });
  auto clip = [](float most, float scale, int limit) {
    return most > 0 ? static_cast<int64_t>(std::min(most / scale, static_cast<float>(limit))) : 0;
  };
  cell_clip_ = clip(form.cell_clip, cell.scale, INT16_MAX);
  projection_clip_ =
      clip(form.projection_clip, level_of(ctx, ctx.out_quantization()).scale, INT8_MAX);
}

IntegerLstm::Weights IntegerLstm::joined(size_t first, float input_scale) const {
  Weights out;
  std::vector<Expr> parts;
  for (LstmGate g : gates_.list) {
    const size_t i = first + g;
    check_dtype(ctx_, i, DType::Int(8));
    parts.push_back(ctx_.in(i));
    const float factor = weight_scale(ctx_, i) * input_scale / scales_[g];
    out.factors.insert(out.factors.end(), static_cast<size_t>(gates_.cells),
                       multiplier_of(static_cast<double>(factor)));
  }
  out.w = ctx_.concat(std::move(parts), 0);
  return out;
}

Expr IntegerLstm::read(const Expr& sum, LstmGate gate) const {
  return normalised(gates_.part(ctx_, sum, gate), gate);
}

Expr IntegerLstm::read(const Expr& sum, LstmGate gate, size_t peephole, const Expr& cell) const {
  const size_t i = at_.peep + peephole;
  if (!ctx_.has(i)) return read(sum, gate);
  check_dtype(ctx_, i, kShort);
  const float factor = std::ldexp(1.0f, cell_power_) * weight_scale(ctx_, i) / scales_[gate];
  Expr product = scaled(ctx_, ctx_.mul(cell, ctx_.cast(ctx_.in(i), kInt)),
                        multiplier_of(static_cast<double>(factor)));
  return normalised(saturated_short(ctx_, ctx_.add(gates_.part(ctx_, sum, gate), product)), gate);
}

// A gate less its mean, divided by its deviation, by its coefficients, plus its bias: with 12 bits behind the point.
Expr IntegerLstm::normalised(const Expr& sum, LstmGate gate) const {
  if (!normed_) return sum;
  const size_t i = at_.norm + gate;
  check_dtype(ctx_, i, kShort);
  const float scale = weight_scale(ctx_, i);
  const auto guard = std::max<int64_t>(1, static_cast<int64_t>(10000 * scale));
  Expr y = normalised_line(ctx_, sum, gates_.cells, guard);
  y = ctx_.mul(y, ctx_.cast(ctx_.in(i), kWide));
  y = ctx_.add(y, ctx_.cast(ctx_.in(at_.bias + gate), kWide));
  y = ctx_.cast(over_wide_power(ctx_, y, 10), kInt);
  Multiplier m = multiplier_of(static_cast<double>(scale));
  m.shift += 12;
  return saturated_short(ctx_, scaled(ctx_, y, m));
}

// The state of 8 bits, of a gate by a cell.
Expr IntegerLstm::result_of(const Expr& product) const {
  const float unit = std::ldexp(1.0f, -15);
  const float factor = unit / hidden_.scale * unit;
  Expr y = scaled(ctx_, product, multiplier_of(static_cast<double>(factor)));
  Expr hidden = stored(ctx_, y, hidden_.zero, {INT8_MIN, INT8_MAX}, DType::Int(8));
  if (!ctx_.has(at_.projection)) return hidden;
  check_dtype(ctx_, at_.projection, DType::Int(8));
  Expr sum = byte_product(ctx_, hidden, hidden_.zero, ctx_.in(at_.projection));
  if (ctx_.has(at_.projection + 1)) sum = ctx_.add(sum, ctx_.in(at_.projection + 1));
  const float to_state = weight_scale(ctx_, at_.projection) * hidden_.scale / state_.scale;
  Range range{INT8_MIN, INT8_MAX};
  if (projection_clip_ > 0) range = {-projection_clip_, projection_clip_};
  return stored(ctx_, scaled(ctx_, sum, multiplier_of(static_cast<double>(to_state))), state_.zero,
                range, DType::Int(8));
}

Step IntegerLstm::step(const Expr& from_input, const Weights& recurrent,
                       const std::vector<Expr>& states) const {
  Expr product = byte_product(ctx_, states[0], state_.zero, recurrent.w);
  Expr sum = saturated_short(
      ctx_, ctx_.add(ctx_.cast(from_input, kInt), scaled_lines(ctx_, product, recurrent.factors)));
  Expr cell = ctx_.cast(states[1], kInt);
  Expr forget = sigmoid_(ctx_, read(sum, kForgetGate, 1, cell));
  Expr fresh = tanh_(ctx_, read(sum, kCellGate));
  Expr input = gates_.coupled ? ctx_.sub(whole(ctx_, INT16_MAX), forget)
                              : sigmoid_(ctx_, read(sum, kInputGate, 0, cell));
  Expr next =
      saturated_short(ctx_, ctx_.add(over_power(ctx_, ctx_.mul(forget, cell), 15),
                                     over_power(ctx_, ctx_.mul(input, fresh), 30 + cell_power_)));
  const auto most = static_cast<double>(cell_clip_);
  if (cell_clip_ > 0) next = ctx_.clip(next, -most, most);
  Expr output = sigmoid_(ctx_, read(sum, kOutputGate, 2, next));
  Expr y = result_of(ctx_.mul(output, (*tanh_of_cell_)(ctx_, next)));
  return {{y, ctx_.cast(next, kShort)}, {y}};
}

LstmResults IntegerLstm::run(const Expr& x) const {
  const Weights weights = joined(at_.w, x_.scale), recurrent = joined(at_.r, state_.scale);
  const std::vector<Dim> shape = Builder::shape_of(x);
  Expr rows = ctx_.reshape(x, std::vector<Dim>{shape[0] * shape[1], shape[2]});
  Expr sum = byte_product(ctx_, rows, x_.zero, weights.w);
  if (!normed_) {
    std::vector<Expr> biases;
    for (size_t i : gates_.inputs(at_.bias)) biases.push_back(ctx_.in(i));
    sum = ctx_.add(sum, ctx_.concat(biases, 0));
  }
  sum = ctx_.cast(saturated_short(ctx_, scaled_lines(ctx_, sum, weights.factors)), kShort);
  Expr from_inputs = ctx_.reshape(sum, std::vector<Dim>{shape[0], shape[1], dim(gates_.lines())});
  Expr lines = zeros_along(ctx_, x, 0);
  const StepLoop loop{length_of(ctx_, lines),
                      lines,
                      {ctx_.in(at_.state), ctx_.in(at_.state + 1)},
                      {false},
                      nullptr};
  const StepResults out =
      run_steps(ctx_, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& states) {
        return step(ctx_.call("take", {from_inputs, t}, {{"axis", int64_t{0}}}), recurrent, states);
      });
  return {out.stacked[0], out.states[0], out.states[1]};
}

}  // namespace

LstmResults quantized_lstm(NodeContext& ctx, const Expr& x, const LstmForm& form) {
  return IntegerLstm(ctx, form).run(x);
}

// ---- One step of uint8 -------------------------------------------------------------------------

Values basic_quantized_lstm(NodeContext& ctx) {
  // Inputs and states are in units of 1/128, a cell has 11 bits behind the point.
  for (size_t i : {0, 1, 2}) check_dtype(ctx, i, DType::UInt(8));
  check_dtype(ctx, 3, kInt);
  check_dtype(ctx, 4, kShort);
  const Level w = level_of(ctx, ctx.in_quantization(2)),
              cell = level_of(ctx, ctx.in_quantization(4));
  for (size_t i : {0, 1}) {
    const Level level = level_of(ctx, ctx.in_quantization(i));
    if (level.zero != 128 || level.scale != 1.0f / 128)
      ctx.unsupported("an LSTM of uint8 whose inputs are in other units than 1/128 around 128");
  }
  if (cell.scale != std::ldexp(1.0f, -11) || cell.zero != 0)
    ctx.unsupported("an LSTM of uint8 whose cell has another scale than 2^-11");
  const ShortTable sigmoid(ctx, [](int16_t a) { return logistic_16(a, 3); }),
      tanh(ctx, [](int16_t a) { return tanh_16(a, 3); });
  Expr joined = ctx.concat({ctx.in(0), ctx.in(1)}, 1);
  Expr sum = ctx.call("qnn.dense",
                      {joined, ctx.in(2), whole(ctx, 128), whole(ctx, w.zero),
                       ctx.scalar(1, kFloat), ctx.scalar(1, kFloat)},
                      {{"out_dtype", to_value(kInt)}});
  // The bias has the scale of the sum; what the gates read has 12 bits behind the point.
  const schema::Quantization* q = ctx.input_tensor(3).quantization();
  const float scale =
      q == nullptr || q->scale() == nullptr || q->scale()->size() != 1 ? 0 : q->scale()->Get(0);
  if (!(scale > 0) || !std::isfinite(scale))
    bad_tensor(ctx.span(), "the bias has no scale, which the operator needs",
               "a finite number above 0");
  sum = scaled(ctx, ctx.add(sum, ctx.in(3)), multiplier_of(4096 * static_cast<double>(scale)));
  Expr all = saturated_short(ctx, sum);
  const std::vector<Expr> gates = ctx.split(all, 1, 4);  // input, new, forget, output
  // A product of fractions of 15 bits, halves up.
  auto product = [&](const Expr& a, const Expr& b) {
    Expr half = ctx.add(ctx.mul(a, b), whole(ctx, 1 << 14));
    return saturated_short(ctx, ctx.call("right_shift", {half, whole(ctx, 15)}));
  };
  Expr fresh = over_power(ctx, product(sigmoid(ctx, gates[0]), tanh(ctx, gates[1])), 4);
  Expr kept = product(sigmoid(ctx, gates[2]), ctx.cast(ctx.in(4), kInt));
  Expr next = saturated_short(ctx, ctx.add(fresh, kept));
  Expr of_cell = tanh(ctx, saturated_short(ctx, ctx.add(next, next)));
  Expr y = over_power(ctx, product(sigmoid(ctx, gates[3]), of_cell), 8);
  return {value_of(stored(ctx, y, 128, {0, UINT8_MAX}, DType::UInt(8))),
          value_of(ctx.cast(next, kShort)), value_of(joined), value_of(ctx.cast(all, kShort))};
}

}  // namespace relay::frontend::tflite
