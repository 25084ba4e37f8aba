// Recurrent layers: the product of the inputs is one matrix product over the whole sequence, the recurrence is a loop over
// its steps (step_loop.h).
//
//   RecurrentLayer layer{.cell = RecurrentCell::Gru, .x = x, .hidden = 64};
//   layer.directions.push_back({.w = w, .r = r, .w_bias = b});
//   Expr y = recurrent(build, layer).y;   // (steps, 1, batch, 64)
//
// Where inputs and weights are 16-bit floats, products have such factors and sums in float32; gates and the cell of an LSTM
// are float32, and the other state is rounded after each step.
#pragma once

#include <functional>
#include <vector>

#include "frontend/common/activation.h"

namespace relay::frontend {

enum class RecurrentCell { Rnn, Lstm, Gru };

// How many gates a cell has: 1, 4 and 3.
int64_t gates_of(RecurrentCell cell);
// Tanh, and sigmoid of gates.
std::vector<Activation> standard_activations(RecurrentCell cell);

// One direction over the sequence. Rows of the weights are the gates one after the other, `hidden` rows each.
struct RecurrentDirection {
  Expr w;                 // (gates * hidden, features)
  Expr r;                 // (gates * hidden, hidden)
  Expr w_bias = nullptr;  // (gates * hidden), of the inputs' product; null for none
  Expr r_bias = nullptr;  // the same of the state's product
  // Of an LSTM, what the input, output and forget gates read of the cell; all null for none.
  Expr peep_input = nullptr, peep_output = nullptr, peep_forget = nullptr;
  // The states before the first step, (batch, hidden); null for zeros. The second is the cell of an LSTM.
  Expr state = nullptr, cell = nullptr;
  bool backward = false;
  // Of an RNN the cell's; of a GRU those of its gates and its new state; of an LSTM those of its gates, its new state
  // and its result. Empty for the standard ones.
  std::vector<Activation> activations = {};
};

struct RecurrentLayer {
  RecurrentCell cell;
  Expr x;  // (steps, batch, features)
  Expr lengths =
      nullptr;  // of the sequences of a batch, int64; null where all have the whole length
  int64_t hidden = 0;
  std::vector<RecurrentDirection> directions = {};
  // Where the gates stand in the weights: of an LSTM the input, output, forget and cell gates, of a GRU the update and
  // reset gates, before its new state. Empty for this order.
  std::vector<size_t> gate_order = {};
  double clip = 0;           // what activations read is between -clip and clip; 0 for no bounds
  bool coupled = false;      // an LSTM's forget gate is 1 - its input gate
  bool reset_after = false;  // a GRU's reset gate scales the product of the state, not the state
  bool all_steps = true;     // whether the states of all steps are wanted
  // Whether a gradient will need what the steps compute (RecurrentResults::kept). Not with `lengths`.
  bool keep = false;
  // How a step of an LSTM reads the state before it, for its product; null for as it is.
  std::function<Expr(const Expr&)> read = nullptr;
};

struct RecurrentResults {
  Expr y;                  // (steps, directions, batch, hidden); null where it is not wanted
  std::vector<Expr> last;  // of each state, (directions, batch, hidden)
  // With `keep`, of each direction, by the places of the sequence: the states before each step, and its gates; each
  // (steps, batch, hidden).
  std::vector<std::vector<Expr>> kept = {};
};

// What a cell computes in a step; each (batch, hidden).
struct CellStep {
  std::vector<Expr> states;  // after it
  // What activations give. Of an RNN its state; of an LSTM the input, forget and cell gates and the output gate; of a GRU
  // the update and reset gates and the new state, and where the reset comes after the product, that product of the state.
  std::vector<Expr> gates;
};

// How many gates a step has.
size_t num_step_gates(const RecurrentLayer& layer);

// The states after a step, from its gates and the states before it.
std::vector<Expr> states_of_gates(const Builder& build, const RecurrentLayer& layer,
                                  const RecurrentDirection& direction,
                                  const std::vector<Expr>& gates, const std::vector<Expr>& states);

// The places of an LSTM's input, output, forget and cell gates in its weights, or of a GRU's update and reset gates.
std::vector<size_t> gate_order(const RecurrentLayer& layer);

// E0506 for a sequence that is known to have no steps.
RecurrentResults recurrent(const Builder& build, const RecurrentLayer& layer);

}  // namespace relay::frontend
