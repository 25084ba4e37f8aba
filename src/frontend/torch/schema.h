// A program as PyTorch exports it: what Relay reads of its schema, as plain data.
//
// PyTorch writes an exported program as JSON (torch/_export/serde/schema.py). The reader checks that every field has the
// type of the schema; what the fields mean is checked where they are used.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/source.h"

namespace relay::frontend::torch {

struct Graph;

// A size: a number, or the text of an expression over symbols (sizes.h).
using SizeText = std::variant<int64_t, std::string>;

// A value of a graph that an argument refers to.
struct ValueName {
  std::string name;
};

// One element of an argument. The empty alternative is None.
using Element = std::variant<std::monostate, bool, int64_t, double, std::string, ValueName>;

// An argument of an operator: an element or a list of elements, and what the numbers stand for.
struct Argument {
  enum class Kind {
    value,          // numbers, strings, None, values of the graph
    scalar_type,    // the number is a ScalarType
    memory_format,  // the number is a MemoryFormat
    layout,         // the number is a Layout
    device,         // the string is the type of a device
    graph,          // a part of the program
    complex,        // two numbers: the real and the imaginary part
    unsupported,    // `what` names the alternative of the schema
  };
  Kind kind = Kind::value;
  bool is_list = false;
  std::vector<Element> elements;  // one, if it is not a list
  std::shared_ptr<const Graph> graph;
  std::string what;

  bool is_none() const {
    return kind == Kind::value && !is_list && elements.size() == 1 &&
           std::holds_alternative<std::monostate>(elements[0]);
  }
  // The name of the one value that it refers to; null for anything else.
  const std::string* name() const {
    const bool one = kind == Kind::value && !is_list && elements.size() == 1;
    const auto* value = one ? std::get_if<ValueName>(&elements[0]) : nullptr;
    return value == nullptr ? nullptr : &value->name;
  }
};

struct TensorMeta {
  int64_t dtype = 0;  // a ScalarType
  std::vector<SizeText> sizes, strides;
  SizeText offset = int64_t{0};
  int64_t layout = kStrided;
  static constexpr int64_t kStrided = 7;
};

struct Node {
  std::string target, name;
  std::vector<std::pair<std::string, Argument>> inputs;  // by the name in the operator's signature
  std::vector<Argument> outputs;
  std::string stack_trace;  // PyTorch's, the last frame at the end
  size_t source = 0;        // its place among the nodes of the graph that was read
  std::string refusal;      // why it cannot be imported, if that is known already
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::unordered_map<std::string, TensorMeta> tensors;
  std::unordered_map<std::string, SizeText> sizes;  // of the values that are integers
};

struct InputSpec {
  enum class Kind { user_input, parameter, buffer, tensor_constant, constant, unsupported };
  Kind kind = Kind::user_input;
  Argument arg;
  std::string target;     // of a weight: its name in the module; of `unsupported`: the alternative
  bool is_saved = false;  // in the state of the module: parameters, and buffers that are persistent

  bool is_weight() const {
    return kind == Kind::parameter || kind == Kind::buffer || kind == Kind::tensor_constant;
  }
};

struct OutputSpec {
  std::string kind;  // the alternative of the schema: "user_output", "buffer_mutation", ...
  Argument arg;
  std::string target;
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;    // as many as the graph has
  std::vector<OutputSpec> outputs;  // as many as the graph has
  struct Range {
    std::optional<int64_t> least, greatest;
  };
  std::map<std::string, Range> ranges;  // of symbols
  std::map<std::string, int64_t> seen;  // sizes of the example by their expressions
  std::string torch_version;
};

// A tensor of an archive: which file its elements are in, and how they lie there.
struct Payload {
  std::string file;
  bool pickled = false;
  std::optional<TensorMeta> meta;
};

// Reads the JSON of a program. E0502 for what is no JSON or lacks the fields of the schema, E0503 for a version of the
// schema that is not read, E0506 for graphs in each other beyond kMaxNesting.
Program read_program(std::string_view json, const std::shared_ptr<const SourceFile>& file);
// Reads the JSON that says where the tensors of an archive are, by their names. E0502 as above.
std::map<std::string, Payload> read_payloads(std::string_view json, const Span& span);

}  // namespace relay::frontend::torch
