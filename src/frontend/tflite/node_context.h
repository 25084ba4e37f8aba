// One operator during its conversion: its inputs, its options, what the file says of its tensors.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/common/operands.h"
#include "frontend/tflite/importer.h"
#include "frontend/tflite/rows.h"

namespace relay::frontend::tflite {

// real = scale * (integer - zero); one entry, or one for each line of an axis.
struct Quantization {
  std::vector<float> scale;
  std::vector<int64_t> zero;
  int64_t axis = 0;

  bool per_axis() const { return scale.size() > 1; }
  bool operator==(const Quantization&) const = default;
};

class NodeContext : public Operands {
 public:
  NodeContext(Importer& importer, size_t graph, const schema::Operator& op, const Row* row,
              Values inputs, Span span);

  Importer& importer() const { return importer_; }
  const schema::Operator& op() const { return op_; }
  std::string_view name() const { return row_->op; }
  // Relay's operator of the row.
  std::string relay_op() const { return std::string(row_->relay); }

  // The options, which the row says the type of; all defaults where the file has none.
  template <class Table>
  const Table& options() const {
    return *reinterpret_cast<const Table*>(options_table());
  }
  std::string_view custom_options() const;

  // ---- What the file says of tensors
  size_t num_outputs() const;
  // The number of the tensor that is an input; -1 for one that is left out.
  int32_t input_index(size_t i) const;
  const schema::Tensor& input_tensor(size_t i) const;
  const schema::Tensor& output_tensor(size_t i = 0) const;
  const schema::Tensor& intermediate(size_t i) const;
  DType out_dtype(size_t i = 0) const;
  DType in_dtype(size_t i) const { return dtype_of(in(i)); }
  // Whether inputs are integers that stand for real numbers.
  bool is_quantized(size_t i = 0) const;
  // The parameters of a quantised tensor; E0508 where they are missing or out of range. With `words` it may be of int32.
  Quantization quantization(const schema::Tensor& tensor, bool words = false) const;
  Quantization in_quantization(size_t i) const { return quantization(input_tensor(i)); }
  Quantization out_quantization(size_t i = 0) const { return quantization(output_tensor(i)); }

  // ---- Shared by rows
  // The fused activation of an operator on floats or plain integers.
  Expr activated(Expr y, schema::FusedActivation activation) const;
  Expr scalar_of(size_t i, DType dtype) const;
  // An input with so many axes at least; E0205 otherwise.
  Expr in_of_rank(size_t i, int64_t least) const;
  // The real and the imaginary part of a complex input; E0504 for another.
  std::pair<Expr, Expr> complex_in(size_t i) const;
  // E0504: a dtype that the operator is not imported for.
  [[noreturn]] void unsupported_dtype(DType dtype) const;
  // The vector of all entries of a value of one axis or none as dimensions.
  std::vector<int64_t> axes_of(size_t i, int64_t rank) const;

 private:
  const flatbuffers::Table* options_table() const;

  Importer& importer_;
  size_t graph_;
  const schema::Operator& op_;
  const Row* row_;
};

// Whether it is a list of a real and an imaginary part; the handle of a resource is a list without entries.
bool is_complex(const ValuePtr& value);

inline Values one(Expr e) { return {value_of(std::move(e))}; }
Values values_of(const std::vector<Expr>& parts);

}  // namespace relay::frontend::tflite
