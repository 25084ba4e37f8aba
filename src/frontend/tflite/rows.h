// The table of operators, builtin and custom: a row for each, in the file of its family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "frontend/common/model_value.h"
#include "frontend/tflite/model.h"

namespace relay::frontend::tflite {

class NodeContext;

// Converts an operator into its outputs, as many as it has; null for one that is left out.
using Converter = Values (*)(NodeContext& ctx);

struct Row {
  std::string_view op;  // "ADD"
  Converter convert;
  // The member of the union that the operator's options are; its options are its own.
  schema::Options options = schema::Options::NONE;
  // Relay's operator, for rows that share a converter.
  std::string_view relay = {};
  // The same of the second union, for operators that came later.
  schema::Options2 options_2 = schema::Options2::NONE;
  // The operator only moves the elements of its first input; the importer applies it to the real and to the imaginary part of
  // complex numbers.
  bool moves = false;
};

// The families of rows; each is a file rows_*.cc with a table.
enum class Family {
  Activation,
  Arithmetic,
  Compare,
  Control,
  Convolution,
  Create,
  Detection,
  Gather,
  Hash,
  Join,
  Lookup,
  MediaPipe,
  Pool,
  Product,
  Quantize,
  Random,
  Recurrent,
  Reduce,
  Resize,
  Select,
  Shape,
  Signal,
  Slice,
  Space,
  StableHlo,
  Text,
  Unary,
  kCount,
};

// They live as long as the process.
template <Family kFamily>
std::span<const Row> rows();

// The row of an operator; null for one that is not imported.
const Row* row_of(const OperatorKind& kind);
// Sorted by name.
const std::vector<Row>& all_rows();

}  // namespace relay::frontend::tflite
