// Recurrent layers. Their states are variables, which are zero at the start of a run.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/tflite/quantized.h"
#include "frontend/tflite/recurrent/float_recurrent.h"

namespace relay::frontend::tflite {
namespace {

// (steps, batch, features) of what has its batch first.
Expr by_steps(NodeContext& ctx, const Expr& x, bool time_major) {
  if (Builder::rank_of(x) != 3)
    ctx.fail(codes::type_rank, "the input must be sequences of vectors", "rank 3",
             to_string(x->type));
  return time_major ? x : ctx.transpose(x, {1, 0, 2});
}
// And back, of (steps, batch, results).
Expr from_steps(NodeContext& ctx, const Expr& y, bool time_major) {
  return time_major ? y : ctx.transpose(y, {1, 0, 2});
}

// The state behind the last step becomes the value of the variable.
void keep_state(NodeContext& ctx, size_t input, const Expr& last) {
  ctx.importer().update_state(ctx.input_index(input), value_of(last));
}

// ---- LSTM

// One step of a basic LSTM: (x, state, weights (4 * hidden, features + hidden), bias, cell).
Values basic_lstm(NodeContext& ctx) {
  Values out;
  if (ctx.is_quantized()) {
    out = basic_quantized_lstm(ctx);
  } else {
    Expr x = ctx.in(0), h = ctx.in(1), w = ctx.in(2), b = ctx.in(3), c = ctx.in(4);
    Expr joined = ctx.concat({x, h}, 1);
    Expr all = ctx.add(ctx.call("nn.dense", {joined, w}), b);
    const std::vector<Expr> gates = ctx.split(all, 1, 4);  // input, new, forget, output
    auto sigmoid = [&](const Expr& e) { return ctx.call("sigmoid", {e}); };
    auto tanh = [&](const Expr& e) { return ctx.call("tanh", {e}); };
    Expr next = ctx.add(ctx.mul(sigmoid(gates[0]), tanh(gates[1])), ctx.mul(sigmoid(gates[2]), c));
    Expr y = ctx.mul(sigmoid(gates[3]), tanh(next));
    out = {value_of(y), value_of(next), value_of(joined), value_of(all)};
  }
  ctx.importer().update_state(ctx.input_index(1), out[0]);
  ctx.importer().update_state(ctx.input_index(4), out[1]);
  return out;
}

// A layer of one direction over (steps, batch, features).
Expr lstm_layer(NodeContext& ctx, const Expr& x, const Expr& aux, const LstmPlaces& at,
                const LstmForm& form) {
  const LstmResults out =
      ctx.is_quantized() ? quantized_lstm(ctx, x, form) : float_lstm(ctx, x, aux, at, form);
  keep_state(ctx, at.state, out.state);
  keep_state(ctx, at.state + 1, out.cell);
  return out.y;
}

template <class Options>
LstmForm form_of(const Options& o) {
  return {.activation = o.activation(),
          .cell_clip = o.cell_clip(),
          .projection_clip = o.proj_clip(),
          .asymmetric = o.asymmetric_inputs()};
}

Values lstm(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Lstm>();
  if (o.kernel() == schema::LstmKernel::basic) return basic_lstm(ctx);
  Expr step = ctx.expand_dims(ctx.in_of_rank(0, 2), 0);
  return one(ctx.squeeze(lstm_layer(ctx, step, nullptr, {}, form_of(o)), {0}));
}

Values sequence_lstm(NodeContext& ctx) {
  const auto& o = ctx.options<schema::UnidirectionalLstm>();
  LstmForm form = form_of(o);
  form.diagonal = o.diagonal_recurrent();
  Expr x = by_steps(ctx, ctx.in(0), o.time_major());
  return one(from_steps(ctx, lstm_layer(ctx, x, nullptr, {}, form), o.time_major()));
}

// The sequences that a layer of two directions reads. A second input has weights of its own in both directions, or is
// what the backward direction reads.
struct TwoInputs {
  Expr forward, backward, aux;
};

TwoInputs two_inputs(NodeContext& ctx, size_t aux, size_t aux_weights, bool time_major) {
  Expr x = by_steps(ctx, ctx.in(0), time_major);
  if (!ctx.has(aux)) return {x, x, nullptr};
  Expr second = by_steps(ctx, ctx.in(aux), time_major);
  if (ctx.has(aux_weights)) return {x, x, second};
  return {x, second, nullptr};
}

// The result of both directions: joined along the last axis, or two outputs.
Values both_ways(NodeContext& ctx, const Expr& forward, const Expr& backward, bool time_major,
                 bool merged) {
  Expr a = from_steps(ctx, forward, time_major), b = from_steps(ctx, backward, time_major);
  if (merged) return one(ctx.concat({a, b}, 2));
  return {value_of(a), value_of(b)};
}

Values bidirectional_lstm(NodeContext& ctx) {
  const auto& o = ctx.options<schema::BidirectionalLstm>();
  if (ctx.is_quantized()) ctx.unsupported("an LSTM of integers in two directions");
  const size_t aux_weights[] = {40, 44};
  const TwoInputs in = two_inputs(ctx, 39, aux_weights[0] + kForgetGate, o.time_major());
  Expr out[2];
  for (size_t way : {0, 1}) {
    const size_t first = way * 17;
    const LstmPlaces at{.w = 1 + first,
                        .r = 5 + first,
                        .peep = 9 + first,
                        .bias = 12 + first,
                        .projection = 16 + first,
                        .state = 35 + 2 * way,
                        .norm = 0,
                        .aux = aux_weights[way]};
    LstmForm form = form_of(o);
    form.backward = way == 1;
    out[way] = lstm_layer(ctx, form.backward ? in.backward : in.forward, in.aux, at, form);
  }
  return both_ways(ctx, out[0], out[1], o.time_major(), o.merge_outputs());
}

// ---- RNN

Expr rnn_layer(NodeContext& ctx, const Expr& x, const Expr& aux, const RnnPlaces& at,
               const RnnForm& form) {
  const RnnResults out = float_rnn(ctx, x, aux, at, form);
  keep_state(ctx, at.first + 3, out.state);
  return out.y;
}

Values rnn(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Rnn>();
  Expr x = ctx.expand_dims(ctx.in_of_rank(0, 2), 0);
  return one(
      ctx.squeeze(rnn_layer(ctx, x, nullptr, {}, {o.activation(), o.asymmetric_inputs()}), {0}));
}

Values sequence_rnn(NodeContext& ctx) {
  const auto& o = ctx.options<schema::SequenceRnn>();
  Expr x = by_steps(ctx, ctx.in(0), o.time_major());
  Expr y = rnn_layer(ctx, x, nullptr, {}, {o.activation(), o.asymmetric_inputs()});
  return one(from_steps(ctx, y, o.time_major()));
}

Values bidirectional_rnn(NodeContext& ctx) {
  const auto& o = ctx.options<schema::BidirectionalRnn>();
  TwoInputs in = two_inputs(ctx, 9, 10, o.time_major());
  // LiteRT's kernel reads the first input in both directions where the batch is first.
  if (!o.time_major()) in.backward = in.forward;
  const RnnForm form{o.activation(), o.asymmetric_inputs()};
  RnnForm back = form;
  back.backward = true;
  Expr forward = rnn_layer(ctx, in.forward, in.aux, {1, 10}, form),
       backward = rnn_layer(ctx, in.backward, in.aux, {5, 11}, back);
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
  const GateWeights features(ctx, {1}, o.asymmetric_inputs());
  Expr times = float_weight(ctx, 2);
  Expr past = ctx.reshape(ctx.in(4), std::vector<Dim>{batch, dim(filters), dim(memory)});
  Expr now = ctx.expand_dims(features.by_rows(x), 2);
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
