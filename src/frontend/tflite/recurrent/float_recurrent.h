// Recurrent layers of floats, whose weights are floats, or integers of 8 bits (dynamic range).
#pragma once

#include "frontend/tflite/recurrent/lstm.h"

namespace relay::frontend::tflite {

// The weights of an input as floats, whatever they are stored in.
Expr float_weight(NodeContext& ctx, size_t i);

// Floats by the matrices of several inputs of the operator, one below the other: float matrices, or integer ones by
// which each row of floats is rounded to integers.
class GateWeights {
 public:
  GateWeights(NodeContext& ctx, const std::vector<size_t>& inputs, bool asymmetric);

  int64_t lines() const { return lines_; }
  Expr by_rows(const Expr& rows) const;
  // Of (steps, batch, features): (steps, batch, lines).
  Expr by_sequence(const Expr& x) const;

 private:
  NodeContext& ctx_;
  Expr w_;
  int64_t lines_ = 0;
  std::vector<float> scales_;  // of integers, one for each line
  bool asymmetric_;
};

// The inputs of an RNN in one direction: (weights, recurrent weights, bias, state) from `first` on; `aux`: the weights
// of the second sequence, 0 for none.
struct RnnPlaces {
  size_t first = 1, aux = 0;
};
struct RnnForm {
  schema::FusedActivation activation;
  bool asymmetric = false, backward = false;
};
struct RnnResults {
  Expr y, state;  // (steps, batch, units); behind the last step
};
RnnResults float_rnn(NodeContext& ctx, const Expr& x, const Expr& aux, const RnnPlaces& at,
                     const RnnForm& form);

}  // namespace relay::frontend::tflite
