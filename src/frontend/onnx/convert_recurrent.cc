// RNN, LSTM and GRU.
#include <algorithm>
#include <functional>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/quantized.h"
#include "frontend/common/recurrent.h"
#include "frontend/onnx/activation_names.h"
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

std::vector<bool> directions_of(NodeContext& ctx) {
  const std::string direction = ctx.attr_string("direction", "forward");
  if (direction == "bidirectional") return {false, true};
  if (direction == "reverse") return {true};
  if (direction == "forward") return {false};
  ctx.fail(codes::frontend_attribute, "attribute 'direction' has an unknown value",
           "forward, reverse or bidirectional", direction);
}

// The lengths of the sequences of a batch; none when all are known to have the whole length.
Expr lengths_of(NodeContext& ctx, const Dim& steps) {
  if (!ctx.has(4)) return nullptr;
  auto k = ctx.known(4);
  bool whole = k && k->is_int();
  for (const Dim& n : whole ? k->ints : std::vector<Dim>{}) whole = whole && dim_equal(n, steps);
  return whole ? nullptr : ctx.cast(ctx.in(4), DType::Int(64));
}

// The activation functions, `count` for each direction; none where the node does not say them. Parameters are given only
// for the functions that take them, in order.
std::vector<std::vector<Activation>> activations_of(NodeContext& ctx, size_t directions,
                                                    size_t count) {
  std::vector<std::vector<Activation>> out(directions);
  const std::vector<std::string> names = ctx.attr_strings("activations");
  if (names.empty()) return out;
  if (names.size() < count * directions) {
    ctx.fail(codes::frontend_attribute, "attribute 'activations' is too short",
             std::to_string(count * directions), std::to_string(names.size()));
  }
  const std::vector<double> alphas = ctx.attr_floats("activation_alpha"),
                            betas = ctx.attr_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  auto next = [](const std::optional<double>& otherwise, const std::vector<double>& given,
                 size_t& at) {
    if (!otherwise) return 0.0;
    return at < given.size() ? given[at++] : *otherwise;
  };
  for (size_t i = 0; i < count * directions; ++i) {
    const ActivationName* row = find_activation(names[i]);
    if (row == nullptr) {
      ctx.fail(codes::frontend_attribute, "an activation function is not supported",
               all_activations(), names[i].substr(0, 100));
    }
    const double alpha = next(row->alpha, alphas, next_alpha);
    out[i / count].push_back({row->kind, alpha, next(row->beta, betas, next_beta)});
  }
  return out;
}

// Inputs are x, weights, recurrent weights, biases, lengths, the states before, and peepholes.
RecurrentLayer layer_of(NodeContext& ctx, RecurrentCell cell, bool batch_first) {
  RecurrentLayer layer{.cell = cell, .x = ctx.in(0)};
  if (NodeContext::rank_of(layer.x) != 3) {
    ctx.fail(codes::type_rank, "the input must be a sequence of matrices", "rank 3",
             to_string(layer.x->type));
  }
  if (batch_first) layer.x = ctx.transpose(layer.x, {1, 0, 2});
  Expr r = ctx.in(2);
  if (NodeContext::rank_of(r) != 3) {
    ctx.fail(codes::type_rank, "the recurrent weight has the wrong rank", "rank 3",
             to_string(r->type));
  }
  layer.hidden = ctx.const_dim(r, 2, "the hidden size");
  int64_t declared = ctx.attr("hidden_size", layer.hidden);
  if (declared != layer.hidden) {
    ctx.fail(codes::type_shape, "attribute 'hidden_size' does not fit the recurrent weight",
             std::to_string(layer.hidden), std::to_string(declared));
  }
  layer.lengths = lengths_of(ctx, NodeContext::shape_of(layer.x)[0]);
  layer.clip = ctx.attr_float("clip", 0);
  layer.coupled = ctx.attr("input_forget", 0) != 0;
  layer.reset_after = ctx.attr("linear_before_reset", 0) != 0;
  layer.all_steps = ctx.output_used(0);

  const std::vector<bool> backward = directions_of(ctx);
  auto activations = activations_of(ctx, backward.size(), standard_activations(cell).size());
  auto state = [&](size_t input, int64_t d) -> Expr {
    if (!ctx.has(input)) return nullptr;
    Expr e = ctx.in(input);
    if (NodeContext::rank_of(e) != 3) {
      ctx.fail(codes::type_rank, "an initial state has the wrong rank", "rank 3",
               to_string(e->type));
    }
    return ctx.select(batch_first ? ctx.transpose(e, {1, 0, 2}) : e, 0, d);
  };
  const int64_t rows = gates_of(cell) * layer.hidden;
  for (size_t i = 0; i < backward.size(); ++i) {
    const auto d = static_cast<int64_t>(i);
    RecurrentDirection side{.w = direction_of(ctx, 1, d), .r = direction_of(ctx, 2, d)};
    if (ctx.has(3)) {
      side.w_bias = ctx.slice(direction_of(ctx, 3, d), 0, 0, rows);
      side.r_bias = ctx.slice(direction_of(ctx, 3, d), 0, rows, 2 * rows);
    }
    side.state = state(5, d);
    if (cell == RecurrentCell::Lstm) {
      side.cell = state(6, d);
      if (ctx.has(7)) {
        std::vector<Expr> p = ctx.split(direction_of(ctx, 7, d), 0, 3);
        side.peep_input = p[0];
        side.peep_output = p[1];
        side.peep_forget = p[2];
      }
    }
    side.backward = backward[i];
    side.activations = std::move(activations[i]);
    layer.directions.push_back(std::move(side));
  }
  return layer;
}

// The outputs: Y (all hidden states), and the last of each state. `read` is RecurrentLayer::read.
Values convert_layer(NodeContext& ctx, RecurrentCell cell,
                     std::function<Expr(const Expr&)> read = nullptr) {
  const bool batch_first = ctx.attr("layout", 0) != 0;
  RecurrentLayer layer = layer_of(ctx, cell, batch_first);
  layer.read = std::move(read);
  RecurrentResults results = recurrent(ctx, layer);
  Values out(std::max<size_t>(ctx.num_outputs(), 1));
  if (results.y) {
    out[0] = value_of(batch_first ? ctx.transpose(results.y, {2, 0, 1, 3}) : results.y);
  }
  for (size_t i = 0; i < results.last.size(); ++i) {
    const Expr& e = results.last[i];
    if (ctx.output_used(1 + i)) {
      out[1 + i] = value_of(batch_first ? ctx.transpose(e, {1, 0, 2}) : e);
    }
  }
  return out;
}

Values convert_rnn(NodeContext& ctx) { return convert_layer(ctx, RecurrentCell::Rnn); }
Values convert_lstm(NodeContext& ctx) { return convert_layer(ctx, RecurrentCell::Lstm); }
Values convert_gru(NodeContext& ctx) { return convert_layer(ctx, RecurrentCell::Gru); }

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
  return convert_layer(plain, RecurrentCell::Lstm,
                       [&](const Expr& h) { return dynamically_quantized(plain, h); });
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
