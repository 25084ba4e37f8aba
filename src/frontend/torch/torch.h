// Programs of PyTorch as Relay modules: exported programs in archives (.pt2), and graphs that Python hands over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/common/front_end.h"

namespace relay {

// An input of the graph, in its order.
struct TorchInput {
  std::string name;
  // "tensor"; "size": an empty tensor (n, 0) whose first size is the integer; "size_of": the integer is a size of
  // another input; "number": a scalar of int64; "weight": it has a value; "constant": it is not a tensor.
  std::string kind;
  std::string role;                      // "user_input", "parameter", "buffer" or "tensor_constant"
  std::string target;                    // the name of a weight in the module
  std::optional<size_t> parameter = {};  // of @main
  std::pair<std::string, int64_t> source = {};  // of "size_of": the input and the axis
};

// An output of the graph, in its order; behind these, what operators write into inputs.
struct TorchOutput {
  std::string name;
  std::string kind;    // as the schema calls it: "user_output", "buffer_mutation", ...
  std::string target;  // the input or buffer that is written
  std::optional<size_t> result = {};  // of @main
  // What stands for a value that is no result: None, a truth value, a number, a string.
  std::variant<std::monostate, bool, int64_t, double, std::string> value = {};
  std::string number;    // "int", "float" or "bool" of a scalar that stands for a number
  std::string alias_of;  // the input of which it is a view
};

struct TorchSize {
  std::string name;  // in the type of @main
  std::optional<int64_t> least, greatest;
};

struct TorchProgram {
  ImportedModel model;
  std::vector<TorchInput> inputs;
  std::vector<TorchOutput> outputs;
  std::vector<TorchSize> sizes;  // that are open
};

// The program of a graph in the JSON of torch.export. `tensors` are the values of weights by their names in the
// signature; a weight without a value is an input. `name` stands for the graph in messages.
TorchProgram import_torch_graph(std::string_view json, const std::map<std::string, Tensor>& tensors,
                                const std::string& name, const ImportOptions& options);

// A node that cannot be imported: its place among the nodes of the graph, its operator, and why.
struct TorchGap {
  size_t node = 0;
  std::string target;
  std::string reason;
};
// All nodes that cannot be imported whatever the others are.
std::vector<TorchGap> torch_gaps(std::string_view json, const std::string& name,
                                 const ImportOptions& options);

// The operators with a row, sorted: "aten.add.Tensor".
std::vector<std::string> torch_operators();

}  // namespace relay
