// LSTM layers: what their operators have in common, in floats (float_recurrent.cc) and in integers
// (quantized_recurrent.cc).
#pragma once

#include <algorithm>
#include <vector>

#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {

// The places of a gate in the lists of weights, biases and coefficients.
enum LstmGate : size_t { kInputGate = 0, kForgetGate, kCellGate, kOutputGate };

// The inputs of the operator at which the lists of a direction begin; 0 for those it does not have.
struct LstmPlaces {
  size_t w = 1, r = 5, peep = 9, bias = 12, projection = 16, state = 18, norm = 20, aux = 0;
};

struct LstmForm {
  schema::FusedActivation activation = schema::FusedActivation::tanh;
  float cell_clip = 0, projection_clip = 0;  // 0 for none
  bool asymmetric = false;                   // how floats are rounded before products by integers
  bool diagonal = false;                     // recurrent weights are the diagonals of matrices
  bool backward = false;
};

struct LstmResults {
  Expr y;            // (steps, batch, results)
  Expr state, cell;  // behind the last step
};

// The gates that a layer computes. Where the input and forget gates are coupled, the input gate is 1 - the forget gate.
class LstmGates {
 public:
  LstmGates(NodeContext& ctx, const LstmPlaces& at)
      : coupled(!ctx.has(at.w)),
        cells(ctx.const_dim(ctx.in(at.w + kForgetGate), 0, "the number of cells")) {
    for (LstmGate g : {kInputGate, kForgetGate, kCellGate, kOutputGate})
      if (g != kInputGate || !coupled) list.push_back(g);
  }
  // The numbers of the inputs from `first` on, one for each gate.
  std::vector<size_t> inputs(size_t first) const {
    std::vector<size_t> out;
    for (LstmGate g : list) out.push_back(first + g);
    return out;
  }
  // The gate's part of (batch, gates * cells).
  Expr part(const Builder& build, const Expr& all, LstmGate gate) const {
    const auto at = std::ranges::find(list, gate) - list.begin();
    return build.slice(all, 1, at * cells, (at + 1) * cells);
  }
  int64_t lines() const { return static_cast<int64_t>(list.size()) * cells; }

  bool coupled;
  int64_t cells;
  std::vector<LstmGate> list;
};

// Over x (steps, batch, features) and a second sequence, null for none, with weights of its own.
LstmResults float_lstm(NodeContext& ctx, const Expr& x, const Expr& aux, const LstmPlaces& at,
                       const LstmForm& form);
// Of int8, by the inputs of the operators LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM.
LstmResults quantized_lstm(NodeContext& ctx, const Expr& x, const LstmForm& form);

}  // namespace relay::frontend::tflite
