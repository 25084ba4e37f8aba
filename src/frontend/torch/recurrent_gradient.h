// Gradients of recurrent layers: a loop over the steps from the last to the first, and one matrix product over the whole
// sequence for each weight and for the inputs.
#pragma once

#include <vector>

#include "frontend/common/recurrent.h"

namespace relay::frontend::torch {

struct RecurrentGradients {
  Expr x;                    // (steps, batch, features)
  std::vector<Expr> states;  // of the states before the first step, (batch, hidden) each
  Expr w, r;                 // of the weights
  Expr w_bias, r_bias;
};

// Of a layer with one direction. `kept` is what its run kept; `y` and `last` are the adjoints of the states of all steps,
// (steps, batch, hidden), and of the last states. Only for a GRU that resets after the product.
RecurrentGradients recurrent_gradient(const Builder& build, const RecurrentLayer& layer,
                                      const std::vector<Expr>& kept, const Expr& y,
                                      const std::vector<Expr>& last);

}  // namespace relay::frontend::torch
