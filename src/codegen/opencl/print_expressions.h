// Expressions as OpenCL C: arithmetic with the results of the tensor IR, conversions, intrinsics and loads.
//
// Integers wrap, division rounds as the operator says, half floats are computed in float and rounded after each operation.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/opencl/kernel_text.h"
#include "tir/intrinsics.h"

namespace relay::codegen {

class ExpressionPrinter : protected KernelText {
 protected:
  explicit ExpressionPrinter(const tir::PrimFuncNode& f) : KernelText(f) {}
  ~ExpressionPrinter() = default;

  // Parts that these expressions of a statement use several times are computed once.
  void count_uses(const std::vector<tir::PrimExpr>& roots);
  // Ends the life of all but the first `mark` of these.
  void forget(size_t mark);
  // A new constant with this value.
  std::string temporary(const std::string& type, const std::string& text);
  // The expression as text. Lines before it compute its parts.
  std::string value(const tir::PrimExpr& e);
  // An element in memory, in the form in which it is stored.
  virtual std::string element(const tir::BufferNode& b,
                              const std::vector<tir::PrimExpr>& indices) = 0;

 private:
  static bool is_name(const std::string& text);
  std::string named(const tir::PrimExpr& e);
  std::string compute(const tir::PrimExprNode& e);
  std::string integer(tir::DType d, int64_t v);
  std::string floating(tir::DType d, double v);
  std::string rounded(tir::DType d, const std::string& text);
  // Integers of less than 64 bits wrap.
  std::string wrapping(tir::DType d, const std::string& a, const char* op, const std::string& b);
  std::string binary(const tir::BinaryNode& n);
  std::string bits(const tir::BinaryNode& n, const char* op);
  std::string divided(const tir::BinaryNode& n, const std::string& name);
  std::string shift(const tir::BinaryNode& n);
  // Only the chosen side may read, and what a side computes for itself is not known outside of it.
  std::string select(const tir::SelectNode& n);
  void side(const std::string& out, const tir::PrimExpr& e);
  std::string cast(const tir::CastNode& n);
  std::string load(const tir::LoadNode& n);
  std::string call(const tir::CallNode& n);
  std::string integer_call(const tir::CallNode& n);
  std::string bitcast(tir::DType from, tir::DType to, std::string v);

  // Of the statement that is printed.
  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, std::string> cache_;
  std::vector<const Node*> cached_;
  std::vector<tir::PrimExpr> kept_;
};

// Whether OpenCL C has a form of the intrinsic. Strings and images are the host's.
bool has_opencl_form(const tir::Intrinsic& intrinsic);

}  // namespace relay::codegen
