// One call of an operator: its arguments by the names of PyTorch's signature, with their defaults.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/builder.h"
#include "frontend/torch/importer.h"

namespace relay::frontend::torch {

// Of positions, sizes and whole numbers.
inline const DType kI64 = DType::Int(64);

// A number that is an argument: known, or a scalar that a run knows.
struct Number {
  enum Kind { truth, integer, real } kind = integer;
  std::optional<double> value;   // of a real
  std::optional<int64_t> whole;  // of an integer or a truth value
  Expr expr;                     // where only a run knows it

  bool is_known() const { return value || whole; }
  double as_double() const { return value ? *value : static_cast<double>(*whole); }
};

struct Row;

class NodeContext : public Builder {
 public:
  NodeContext(Importer& importer, const Graph& graph, const Node& node, const Row& row, Span span);

  Importer& importer() const { return importer_; }
  const Node& node() const { return node_; }
  // Relay's operator of the row.
  std::string_view relay_op() const;

  // ---- Arguments. One that is left out has its default, None counts as left out.
  // An argument that is given, null otherwise; counts as read.
  const Argument* find(std::string_view name) const;
  // The same by position, for operators without a signature.
  const Argument& at(size_t index) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  Expr tensor(std::string_view name) const;  // E0507 when it is left out
  Expr tensor_or_null(std::string_view name) const;
  std::vector<Expr> tensors(std::string_view name) const;
  // With null for those that are None.
  std::vector<Expr> optional_tensors(std::string_view name) const;
  // What is known of a tensor beside its expression; null when it is left out.
  ValuePtr known_tensor(std::string_view name) const;
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = std::nullopt) const;
  using Builder::ints;
  // A list of integers; one integer is a list of one.
  std::vector<int64_t> ints(std::string_view name,
                            std::optional<std::vector<int64_t>> otherwise = std::nullopt) const;
  // The same with `count` entries, where one entry stands for all.
  std::vector<int64_t> ints_for(std::string_view name, int64_t count, int64_t otherwise) const;
  // Sizes, which may be terms over open dimensions, or `?`.
  Dim size(std::string_view name, std::optional<int64_t> otherwise = std::nullopt) const;
  std::vector<Dim> sizes(std::string_view name) const;
  double real(std::string_view name, std::optional<double> otherwise = std::nullopt) const;
  bool truth(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
  std::vector<double> reals(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name = "dtype") const;
  // A number, or null when it is left out.
  std::optional<Number> number(std::string_view name) const;
  // A number as a scalar of the dtype.
  Expr number_as(const Number& n, DType dtype) const;
  const Graph& part(size_t index) const;
  // The value of an element that names one, or is a number.
  ValuePtr value_of_element(const Element& e) const;
  Dim size_of_element(const Element& e, std::string_view name) const;

  // An axis of a tensor, in [0, rank); a tensor of rank 0 has the axis 0, too.
  int64_t axis_of(std::string_view name, int64_t rank, std::optional<int64_t> otherwise) const;

  // ---- Results
  const std::vector<OutputRef>& outputs() const { return outputs_; }
  bool is_used(size_t output) const { return output < outputs_.size(); }
  // What the metadata of a result says.
  DType out_dtype(size_t output = 0) const;
  std::vector<Dim> out_shape(size_t output = 0) const;

  // Gives a tensor that is an argument other elements.
  void write(std::string_view name, const Expr& elements) const;

  // ---- Shared by rows
  // The dtype in which PyTorch computes an operator of these operands: that of the highest kind among tensors with
  // dimensions, then among those without, then among numbers.
  DType promoted(const std::vector<Expr>& tensors, const std::vector<Number>& numbers = {}) const;
  // Both operands in the dtype of the operator, `other` a tensor or a number.
  struct Pair {
    Expr a, b;
    DType dtype;
  };
  Pair pair(std::string_view self = "self", std::string_view other = "other") const;
  // Whether the elements of a value lie in row-major order, as far as its metadata says.
  bool is_contiguous(std::string_view name) const;

  // E0504 for arguments that no row has read.
  void check_all_read() const;

 private:
  const Argument& must(std::string_view name) const;
  // The expression of a tensor, in float32 where the row asks for that.
  Expr operand(const ValuePtr& v) const;
  [[noreturn]] void bad_argument(std::string_view name, const char* expected) const;

  Importer& importer_;
  const Graph& graph_;
  const Node& node_;
  const Row& row_;
  std::vector<OutputRef> outputs_;
  mutable std::vector<bool> read_;
};

// "aten.add.Tensor" of "torch.ops.aten.add.Tensor".
std::string_view operator_of(std::string_view target);
// The dtype of a ScalarType; nullopt for one that Relay lacks.
std::optional<DType> dtype_of(int64_t scalar_type);
const char* name_of_scalar_type(int64_t scalar_type);
// The dtype that holds what both hold, as PyTorch promotes.
DType promoted(DType a, DType b);

// ---- The table of rows

using Converter = Values (*)(NodeContext& ctx);
using Viewer = std::vector<View> (*)(NodeContext& ctx);

// An operator. A view has the tensor of its first argument as base and one view for each result; all others have one
// value for each result.
struct Row {
  std::string_view target;
  Converter convert = nullptr;
  Viewer view = nullptr;
  // Relay's operator, for rows that share a converter.
  std::string_view relay = {};
  // The operator is made of several of Relay's, each of which would round to float16 or bfloat16: its tensors of these
  // types are cast to float32, and the results back.
  bool in_float32 = false;

  constexpr Row(const char* name, Converter c, bool wide = false)
      : target(name), convert(c), in_float32(wide) {}
  constexpr Row(const char* name, Converter c, const char* op, bool wide = false)
      : target(name), convert(c), relay(op), in_float32(wide) {}
  constexpr Row(const char* name, Viewer v) : target(name), view(v) {}
};
inline constexpr bool kInFloat32 = true;

// The families of rows; each is a file rows_*.cc with a table.
enum class Family {
  Activation,
  Backward,
  Binary,
  Control,
  Create,
  Fourier,
  Index,
  Loss,
  Nn,
  Order,
  Product,
  Quantize,
  Recurrent,
  Reduce,
  Resize,
  Shape,
  Size,
  Special,
  Unary,
  View,
  Window,
  kCount,
};

// They live as long as the process.
template <Family kFamily>
std::span<const Row> rows();

const Row* find_row(std::string_view target);
// The row for a target; the row of the operator that it does in place, since aten.add_.Tensor is aten.add.Tensor into its
// first argument; or that of the view that it copies, as aten.view_copy.default does. No row for an unknown one.
struct FoundRow {
  const Row* row = nullptr;
  bool in_place = false;
  bool copies = false;
};
FoundRow row_for(std::string_view target);
bool is_imported(std::string_view target);
const std::vector<Row>& all_rows();

}  // namespace relay::frontend::torch
