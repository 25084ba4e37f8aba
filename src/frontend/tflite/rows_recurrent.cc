// Recurrent layers. Their states are variables, which are zero at the start of a run.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/recurrent.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

// Weights as floats, whatever they are stored in.
Expr weight(NodeContext& ctx, size_t i) {
  Expr w = ctx.in(i);
  if (Builder::dtype_of(w).is_integer())
    ctx.unsupported("a recurrent layer with integer weights", "dequantise the weights");
  return ctx.cast(w, DType::Float(32));
}

Activation activation_of(NodeContext& ctx, schema::FusedActivation a) {
  using F = schema::FusedActivation;
  switch (a) {
    case F::none:
      return {ActivationKind::Affine, 1, 0};
    case F::relu:
      return {ActivationKind::Relu};
    case F::tanh:
      return {ActivationKind::Tanh};
    default:
      ctx.unsupported("a recurrent layer with an activation other than relu and tanh");
  }
}

// (steps, batch, features) of what has its batch first.
Expr by_steps(NodeContext& ctx, const Expr& x, bool time_major) {
  if (Builder::rank_of(x) != 3)
    ctx.fail(codes::type_rank, "the input must be sequences of vectors", "rank 3",
             to_string(x->type));
  return time_major ? x : ctx.transpose(x, {1, 0, 2});
}
// And back, of (steps, 1, batch, hidden).
Expr from_steps(NodeContext& ctx, const Expr& y, bool time_major) {
  Expr flat = ctx.squeeze(y, {1});
  return time_major ? flat : ctx.transpose(flat, {1, 0, 2});
}

// The state behind the last step becomes the value of the variable.
void keep_state(NodeContext& ctx, size_t input, const Expr& last) {
  ctx.importer().update_state(ctx.input_index(input), value_of(ctx.squeeze(last, {0})));
}

// ---- LSTM

// The weights of a layer begin at these inputs; 0 where the operator has none.
struct LstmInputs {
  size_t w = 1, r = 5, peep = 9, bias = 12, projection = 16, state = 18, norm = 20;
};

RecurrentDirection lstm_direction(NodeContext& ctx, const LstmInputs& at, bool backward,
                                  schema::FusedActivation activation) {
  for (size_t i = at.norm; at.norm != 0 && i < at.norm + 4; ++i)
    if (ctx.has(i)) ctx.unsupported("an LSTM with layer normalisation");
  if (ctx.has(at.projection)) ctx.unsupported("an LSTM with a projection");
  if (!ctx.has(at.w)) ctx.unsupported("an LSTM whose input and forget gates are coupled");
  // The file has the input, forget, cell and output gates; the layer the input, output, forget and cell gates.
  auto joined = [&](size_t first) {
    std::vector<Expr> gates;
    for (size_t gate : {0, 3, 1, 2}) gates.push_back(weight(ctx, first + gate));
    return ctx.concat(std::move(gates), 0);
  };
  RecurrentDirection d{.w = joined(at.w), .r = joined(at.r), .w_bias = joined(at.bias)};
  if (ctx.has(at.peep + 1)) {
    d.peep_input = weight(ctx, at.peep);
    d.peep_forget = weight(ctx, at.peep + 1);
    d.peep_output = weight(ctx, at.peep + 2);
  }
  d.state = ctx.in(at.state);
  d.cell = ctx.in(at.state + 1);
  d.backward = backward;
  const Activation sigmoid{ActivationKind::Sigmoid}, own = activation_of(ctx, activation);
  d.activations = {sigmoid, own, own};
  return d;
}

void check_clips(NodeContext& ctx, float cell, float projection) {
  if (cell != 0 || projection != 0) ctx.unsupported("an LSTM that clips its cells");
}

int64_t hidden_of(NodeContext& ctx, size_t recurrent) {
  return ctx.const_dim(ctx.in(recurrent), 1, "the size of the state");
}

// One step of a basic LSTM: (x, state, weights (4 * hidden, features + hidden), bias, cell).
Values basic_lstm(NodeContext& ctx) {
  Expr x = ctx.in(0), h = ctx.in(1), w = ctx.in(2), b = ctx.in(3), c = ctx.in(4);
  if (ctx.is_quantized()) ctx.unsupported("an LSTM of integers");
  Expr joined = ctx.concat({x, h}, 1);
  Expr all = ctx.add(ctx.call("nn.dense", {joined, w}), b);
  const std::vector<Expr> gates = ctx.split(all, 1, 4);  // input, new, forget, output
  auto sigmoid = [&](const Expr& e) { return ctx.call("sigmoid", {e}); };
  auto tanh = [&](const Expr& e) { return ctx.call("tanh", {e}); };
  Expr next = ctx.add(ctx.mul(sigmoid(gates[0]), tanh(gates[1])), ctx.mul(sigmoid(gates[2]), c));
  Expr y = ctx.mul(sigmoid(gates[3]), tanh(next));
  ctx.importer().update_state(ctx.input_index(1), value_of(y));
  ctx.importer().update_state(ctx.input_index(4), value_of(next));
  return {value_of(y), value_of(next), value_of(joined), value_of(all)};
}

// A layer of one direction over (steps, batch, features).
RecurrentResults full_lstm(NodeContext& ctx, const Expr& x, const LstmInputs& at, bool backward,
                           schema::FusedActivation activation) {
  if (ctx.is_quantized()) ctx.unsupported("an LSTM of integers");
  RecurrentLayer layer{.cell = RecurrentCell::Lstm, .x = x, .hidden = hidden_of(ctx, at.r + 1)};
  layer.directions.push_back(lstm_direction(ctx, at, backward, activation));
  RecurrentResults out = recurrent(ctx, layer);
  keep_state(ctx, at.state, out.last[0]);
  keep_state(ctx, at.state + 1, out.last[1]);
  return out;
}

// A layer of integers over (steps, batch, features).
Expr integer_lstm(NodeContext& ctx, const Expr& x, schema::FusedActivation activation,
                  float cell_clip, float projection_clip) {
  if (activation != schema::FusedActivation::tanh)
    ctx.unsupported("an LSTM of integers with an activation other than tanh");
  if (projection_clip != 0) ctx.unsupported("an LSTM of integers that clips its projection");
  const IntegerLstmResults out = quantized_lstm(ctx, x, cell_clip);
  const LstmInputs at;
  ctx.importer().update_state(ctx.input_index(at.state), value_of(out.state));
  ctx.importer().update_state(ctx.input_index(at.state + 1), value_of(out.cell));
  return out.y;
}

Values lstm(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Lstm>();
  if (o.kernel() == schema::LstmKernel::basic) return basic_lstm(ctx);
  if (ctx.is_quantized()) {
    Expr step = ctx.expand_dims(ctx.in_of_rank(0, 2), 0);
    return one(
        ctx.squeeze(integer_lstm(ctx, step, o.activation(), o.cell_clip(), o.proj_clip()), {0}));
  }
  check_clips(ctx, o.cell_clip(), o.proj_clip());
  Expr step = ctx.expand_dims(ctx.in(0), 0);
  return one(ctx.squeeze(full_lstm(ctx, step, {}, false, o.activation()).y, {0, 1}));
}

Values sequence_lstm(NodeContext& ctx) {
  const auto& o = ctx.options<schema::UnidirectionalLstm>();
  if (o.diagonal_recurrent()) ctx.unsupported("an LSTM with diagonal recurrent weights");
  Expr x = by_steps(ctx, ctx.in(0), o.time_major());
  if (ctx.is_quantized()) {
    Expr y = integer_lstm(ctx, x, o.activation(), o.cell_clip(), o.proj_clip());
    return one(o.time_major() ? y : ctx.transpose(y, {1, 0, 2}));
  }
  check_clips(ctx, o.cell_clip(), o.proj_clip());
  return one(from_steps(ctx, full_lstm(ctx, x, {}, false, o.activation()).y, o.time_major()));
}

// The result of both directions: joined along the last axis, or two outputs.
Values both_ways(NodeContext& ctx, const RecurrentResults& forward,
                 const RecurrentResults& backward, bool time_major, bool merged) {
  Expr a = from_steps(ctx, forward.y, time_major), b = from_steps(ctx, backward.y, time_major);
  if (merged) return one(ctx.concat({a, b}, 2));
  return {value_of(a), value_of(b)};
}

Values bidirectional_lstm(NodeContext& ctx) {
  const auto& o = ctx.options<schema::BidirectionalLstm>();
  if (ctx.has(39)) ctx.unsupported("an LSTM with an auxiliary input");
  check_clips(ctx, o.cell_clip(), o.proj_clip());
  Expr x = by_steps(ctx, ctx.in(0), o.time_major());
  RecurrentResults out[2];
  for (size_t way : {0, 1}) {
    const size_t first = way * 17;
    const LstmInputs at{.w = 1 + first,
                        .r = 5 + first,
                        .peep = 9 + first,
                        .bias = 12 + first,
                        .projection = 16 + first,
                        .state = 35 + 2 * way,
                        .norm = 0};
    out[way] = full_lstm(ctx, x, at, way == 1, o.activation());
  }
  return both_ways(ctx, out[0], out[1], o.time_major(), o.merge_outputs());
}

// ---- RNN

// (weights, recurrent weights, bias, state) from this input on.
RecurrentResults rnn_direction(NodeContext& ctx, const Expr& x, size_t first, bool backward,
                               schema::FusedActivation activation) {
  RecurrentLayer layer{.cell = RecurrentCell::Rnn, .x = x, .hidden = hidden_of(ctx, first + 1)};
  RecurrentDirection d{.w = weight(ctx, first),
                       .r = weight(ctx, first + 1),
                       .w_bias = ctx.in(first + 2),
                       .state = ctx.in(first + 3),
                       .backward = backward,
                       .activations = {activation_of(ctx, activation)}};
  layer.directions.push_back(std::move(d));
  RecurrentResults out = recurrent(ctx, layer);
  keep_state(ctx, first + 3, out.last[0]);
  return out;
}

Values rnn(NodeContext& ctx) {
  Expr x = ctx.expand_dims(ctx.in(0), 0);
  const RecurrentResults out =
      rnn_direction(ctx, x, 1, false, ctx.options<schema::Rnn>().activation());
  return one(ctx.squeeze(out.y, {0, 1}));
}

Values sequence_rnn(NodeContext& ctx) {
  const auto& o = ctx.options<schema::SequenceRnn>();
  Expr x = by_steps(ctx, ctx.in(0), o.time_major());
  return one(from_steps(ctx, rnn_direction(ctx, x, 1, false, o.activation()).y, o.time_major()));
}

Values bidirectional_rnn(NodeContext& ctx) {
  const auto& o = ctx.options<schema::BidirectionalRnn>();
  if (ctx.has(9)) ctx.unsupported("an RNN with an auxiliary input");
  Expr x = by_steps(ctx, ctx.in(0), o.time_major());
  const RecurrentResults forward = rnn_direction(ctx, x, 1, false, o.activation()),
                         backward = rnn_direction(ctx, x, 5, true, o.activation());
  return both_ways(ctx, forward, backward, o.time_major(), o.merge_outputs());
}

// ---- SVDF: a filter over time of rank 1 or more, by (x, features, times, bias, state)
Values svdf(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Svdf>();
  Expr x = ctx.in_of_rank(0, 1);
  const int64_t filters = ctx.const_dim(ctx.in_of_rank(2, 2), 0, "the number of filters"),
                memory = ctx.const_dim(ctx.in(2), 1, "the length of the memory");
  if (o.rank() < 1 || filters % o.rank() != 0) {
    ctx.fail(codes::frontend_attribute, "the rank does not divide the filters",
             "a divisor of " + std::to_string(filters), std::to_string(o.rank()));
  }
  const Dim batch = Builder::shape_of(x)[0];
  auto keep = [&](const Expr& kept) {
    ctx.importer().update_state(
        ctx.input_index(4),
        value_of(ctx.reshape(kept, std::vector<Dim>{batch, dim(filters * memory)})));
  };
  if (ctx.is_quantized()) {
    if (o.activation() != schema::FusedActivation::relu)
      ctx.unsupported("an SVDF of integers with an activation other than relu");
    const SvdfResult out = quantized_svdf(ctx, filters, memory, o.rank());
    keep(out.memory);
    return one(out.y);
  }
  Expr features = weight(ctx, 1), times = weight(ctx, 2);
  Expr past = ctx.reshape(ctx.in(4), std::vector<Dim>{batch, dim(filters), dim(memory)});
  Expr now = ctx.expand_dims(ctx.call("nn.dense", {x, features}), 2);
  Expr kept = ctx.concat({ctx.slice(past, 2, 1, memory), now}, 2);
  Expr y = ctx.reduce("sum", ctx.mul(kept, times), {2}, false);
  y = ctx.reshape(y, std::vector<Dim>{batch, dim(filters / o.rank()), dim(o.rank())});
  y = ctx.reduce("sum", y, {2}, false);
  if (ctx.has(3)) y = ctx.add(y, ctx.in(3));
  keep(kept);
  return one(ctx.activated(y, o.activation()));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Recurrent>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"BIDIRECTIONAL_SEQUENCE_LSTM", bidirectional_lstm, O::bidirectional_lstm},
      {"BIDIRECTIONAL_SEQUENCE_RNN", bidirectional_rnn, O::bidirectional_rnn},
      {"LSTM", lstm, O::lstm},
      {"RNN", rnn, O::rnn},
      {"SVDF", svdf, O::svdf},
      {"UNIDIRECTIONAL_SEQUENCE_LSTM", sequence_lstm, O::unidirectional_lstm},
      {"UNIDIRECTIONAL_SEQUENCE_RNN", sequence_rnn, O::sequence_rnn},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
