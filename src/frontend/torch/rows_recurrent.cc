// RNN, LSTM and GRU over sequences of one length.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/recurrent.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/recurrent_gradient.h"

namespace relay::frontend::torch {
namespace {

// A layer without directions, with the gates where PyTorch has them.
RecurrentLayer pytorch_layer(RecurrentCell cell, Expr x) {
  RecurrentLayer of{.cell = cell, .x = std::move(x)};
  if (cell == RecurrentCell::Lstm) of.gate_order = {0, 3, 1, 2};
  if (cell == RecurrentCell::Gru) of.gate_order = {1, 0};
  of.reset_after = cell == RecurrentCell::Gru;
  return of;
}

// Layers on each other, each in one or two directions; results are the states of all steps of the last layer and, for each
// state, the last ones of all layers.
Values layers(NodeContext& ctx, RecurrentCell cell, ActivationKind activation) {
  Expr x = ctx.tensor("input");
  const bool batch_first = ctx.truth("batch_first", false),
             has_biases = ctx.truth("has_biases", true);
  const bool batched = Builder::rank_of(x) == 3;
  if (!batched)
    ctx.fail(codes::type_rank, "the input must be a batch of sequences", "rank 3",
             to_string(x->type));
  if (ctx.truth("train", false) && ctx.real("dropout", 0) > 0)
    ctx.unsupported("dropout in training", "export the module in evaluation: model.eval()");
  ctx.find("dropout");
  const int64_t num_layers = ctx.integer("num_layers");
  const int64_t directions = ctx.truth("bidirectional", false) ? 2 : 1;
  const std::vector<Expr> weights = ctx.tensors("params");
  std::vector<Expr> states;
  if (cell == RecurrentCell::Lstm) {
    states = ctx.tensors("hx");
  } else {
    states = {ctx.tensor("hx")};
  }
  const int64_t per = has_biases ? 4 : 2;
  const size_t wanted_states = cell == RecurrentCell::Lstm ? 2 : 1;
  if (num_layers < 1 || num_layers > 10000 || states.size() != wanted_states ||
      static_cast<int64_t>(weights.size()) != num_layers * directions * per) {
    const bool projected =
        has_biases && static_cast<int64_t>(weights.size()) == num_layers * directions * 5;
    if (projected) ctx.unsupported("an LSTM with projections");
    ctx.fail(codes::frontend_attribute,
             "the weights or states of a recurrent layer are not as many as its layers");
  }
  if (batch_first) x = ctx.transpose(x, {1, 0, 2});
  std::vector<std::vector<Expr>> last(wanted_states);
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    RecurrentLayer of = pytorch_layer(cell, x);
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t at = layer * directions + d;
      auto weight = [&](int64_t i) { return weights[static_cast<size_t>(at * per + i)]; };
      RecurrentDirection direction{.w = weight(0), .r = weight(1)};
      if (has_biases) {
        direction.w_bias = weight(2);
        direction.r_bias = weight(3);
      }
      direction.state = ctx.select(states[0], 0, at);
      if (cell == RecurrentCell::Lstm) direction.cell = ctx.select(states[1], 0, at);
      direction.backward = d == 1;
      if (cell == RecurrentCell::Rnn) direction.activations = {{activation}};
      of.hidden = ctx.const_dim(direction.r, 1, "the hidden size");
      of.directions.push_back(std::move(direction));
    }
    const RecurrentResults r = recurrent(ctx, of);
    for (size_t s = 0; s < wanted_states; ++s) last[s].push_back(r.last[s]);
    // (steps, directions, batch, hidden) to (steps, batch, features)
    x = directions == 1 ? ctx.squeeze(r.y, {1})
                        : ctx.merge_axes(ctx.transpose(r.y, {0, 2, 1, 3}), 2, 4);
  }
  if (batch_first) x = ctx.transpose(x, {1, 0, 2});
  Values out{value_of(x)};
  for (std::vector<Expr>& of_layers : last) out.push_back(value_of(ctx.concat(of_layers, 0)));
  return out;
}

// One step.
Values cell_step(NodeContext& ctx, RecurrentCell cell, ActivationKind activation) {
  Expr x = ctx.tensor("input");
  const std::vector<Expr> states =
      cell == RecurrentCell::Lstm ? ctx.tensors("hx") : std::vector<Expr>{ctx.tensor("hx")};
  if (states.empty() || (cell == RecurrentCell::Lstm && states.size() != 2))
    ctx.fail(codes::frontend_attribute, "a cell has other states");
  RecurrentLayer of = pytorch_layer(cell, ctx.expand_dims(x, 0));
  of.all_steps = false;
  RecurrentDirection direction{.w = ctx.tensor("w_ih"),
                               .r = ctx.tensor("w_hh"),
                               .w_bias = ctx.tensor_or_null("b_ih"),
                               .r_bias = ctx.tensor_or_null("b_hh"),
                               .state = states[0]};
  if (cell == RecurrentCell::Lstm) direction.cell = states[1];
  if (cell == RecurrentCell::Rnn) direction.activations = {{activation}};
  of.hidden = ctx.const_dim(direction.r, 1, "the hidden size");
  of.directions.push_back(std::move(direction));
  Values out;
  for (const Expr& e : recurrent(ctx, of).last) out.push_back(value_of(ctx.squeeze(e, {0})));
  return out;
}

// ---- One direction of a layer, with its gradient: operators that relay.torch declares

// As "cell", "input", "h", "c", "w", "r" and the biases say.
RecurrentLayer one_direction(NodeContext& ctx) {
  const std::string name = ctx.text("cell", "");
  const bool lstm = name == "lstm", relu = name == "rnn_relu";
  if (!lstm && name != "gru" && name != "rnn_tanh" && !relu)
    ctx.fail(codes::frontend_attribute, "there is no such cell", "lstm, gru, rnn_tanh or rnn_relu",
             name);
  RecurrentLayer of = pytorch_layer(lstm            ? RecurrentCell::Lstm
                                    : name == "gru" ? RecurrentCell::Gru
                                                    : RecurrentCell::Rnn,
                                    ctx.tensor("input"));
  RecurrentDirection d{.w = ctx.tensor("w"),
                       .r = ctx.tensor("r"),
                       .w_bias = ctx.tensor_or_null("w_bias"),
                       .r_bias = ctx.tensor_or_null("r_bias"),
                       .state = ctx.tensor("h"),
                       .cell = ctx.tensor_or_null("c"),
                       .backward = ctx.truth("reverse", false)};
  if (lstm != static_cast<bool>(d.cell))
    ctx.fail(codes::frontend_attribute, "an LSTM has two states, another cell has one");
  if (of.cell == RecurrentCell::Rnn)
    d.activations = {{relu ? ActivationKind::Relu : ActivationKind::Tanh}};
  of.hidden = ctx.const_dim(d.r, 1, "the hidden size");
  of.directions.push_back(std::move(d));
  return of;
}

// What a cell or a layer does not have is a tensor without elements.
ValuePtr nothing(NodeContext& ctx, const RecurrentLayer& of) {
  return value_of(ctx.full(0, {dim(0)}, Builder::dtype_of(of.x)));
}

// The states of all steps, the last ones, and what the gradient takes: of an LSTM two states and four gates.
constexpr size_t kLayerResults = 9;
Values recurrent_layer(NodeContext& ctx) {
  RecurrentLayer of = one_direction(ctx);
  of.keep = ctx.truth("keep", false);
  const RecurrentResults r = recurrent(ctx, of);
  Values out{value_of(ctx.squeeze(r.y, {1}))};
  for (const Expr& e : r.last) out.push_back(value_of(ctx.squeeze(e, {0})));
  if (r.last.size() == 1) out.push_back(nothing(ctx, of));
  if (of.keep) {
    for (const Expr& e : r.kept[0]) out.push_back(value_of(e));
  }
  while (out.size() < kLayerResults) out.push_back(nothing(ctx, of));
  return out;
}

// The adjoints of the input, the states, the weights and the biases.
Values recurrent_layer_backward(NodeContext& ctx) {
  const RecurrentLayer of = one_direction(ctx);
  const bool lstm = of.cell == RecurrentCell::Lstm;
  const std::vector<Expr> kept = ctx.tensors("kept");
  if (kept.size() != (lstm ? 2 : 1) + num_step_gates(of))
    ctx.fail(codes::frontend_attribute, "the layer has not kept what its gradient takes");
  std::vector<Expr> last{ctx.tensor("grad_h")};
  if (Expr c = ctx.tensor_or_null("grad_c")) last.push_back(c);
  if (lstm != (last.size() == 2))
    ctx.fail(codes::frontend_attribute, "an LSTM has two states, another cell has one");
  const RecurrentGradients g = recurrent_gradient(ctx, of, kept, ctx.tensor("grad_y"), last);
  return {value_of(g.x),     value_of(g.states[0]), lstm ? value_of(g.states[1]) : nothing(ctx, of),
          value_of(g.w),     value_of(g.r),         value_of(g.w_bias),
          value_of(g.r_bias)};
}

template <RecurrentCell kCell, ActivationKind kActivation = ActivationKind::Tanh>
Values sequence(NodeContext& ctx) {
  return layers(ctx, kCell, kActivation);
}
template <RecurrentCell kCell, ActivationKind kActivation = ActivationKind::Tanh>
Values step(NodeContext& ctx) {
  return cell_step(ctx, kCell, kActivation);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Recurrent>() {
  static constexpr Row kRows[] = {
      {"aten.lstm.input", sequence<RecurrentCell::Lstm>},
      {"aten.gru.input", sequence<RecurrentCell::Gru>},
      {"aten.rnn_tanh.input", sequence<RecurrentCell::Rnn>},
      {"aten.rnn_relu.input", sequence<RecurrentCell::Rnn, ActivationKind::Relu>},
      {"aten.lstm_cell.default", step<RecurrentCell::Lstm>},
      {"aten.gru_cell.default", step<RecurrentCell::Gru>},
      {"aten.rnn_tanh_cell.default", step<RecurrentCell::Rnn>},
      {"aten.rnn_relu_cell.default", step<RecurrentCell::Rnn, ActivationKind::Relu>},
      {"relay.recurrent_layer.default", recurrent_layer},
      {"relay.recurrent_layer_backward.default", recurrent_layer_backward, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
