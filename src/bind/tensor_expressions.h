// The tensor IR as Python writes it: scalar expressions, tensors, statements.
#pragma once

#include <vector>

#include "bind/convert.h"
#include "tir/compute.h"

namespace relay::bind {

// A scalar expression of the tensor IR.
struct PyPrim {
  tir::PrimExpr expr;
};
// An axis that is reduced over.
struct PyAxis : PyPrim {
  tir::PrimExpr min;
  tir::PrimExpr extent;
};
struct PyTensor {
  tir::Tensor tensor;
};
struct PyBuffer {
  tir::Buffer buffer;
};
struct PyStmt {
  tir::Stmt stmt;
};

std::vector<tir::Tensor> tensors_of(const std::vector<PyTensor>& tensors);
// An expression, or a number of Python's as one of that dtype. TypeError for anything else.
tir::PrimExpr to_prim(nb::handle object, tir::DType number = tir::kIndex);
std::vector<tir::PrimExpr> to_prims(nb::handle list);
// A constant as a number.
nb::object from_prim(const tir::PrimExpr& e);

void bind_tensor_expressions(nb::module_& m);
void bind_schedules(nb::module_& m);

}  // namespace relay::bind
