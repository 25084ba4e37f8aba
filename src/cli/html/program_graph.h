// The expressions of a function as a graph, for drawings.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace relay::cli {

struct ProgramGraph {
  // Calls, variables, branches and other expressions, operands first. Constants, and what is inside of kernels, are left
  // out; a variable of a `let` stands for its value.
  std::vector<const ExprNode*> nodes;
  // From an operand to what takes it, as numbers of nodes, the lower first.
  std::vector<std::pair<size_t, size_t>> edges;
};

ProgramGraph program_graph(const Function& f);

// An expression as a short label: "nn.conv2d", "@f", "fused_nn_conv2d_add", "%x".
std::string label_of(const ExprNode& e);

}  // namespace relay::cli
