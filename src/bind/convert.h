// Between Python's values and Relay's. All functions need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "ir/module.h"
#include "runtime/core/value.h"
#include "runtime/vm/bytecode.h"

namespace relay::bind {

namespace nb = nanobind;

// A node as Python holds it; one class of Python for each kind of expression and type.
struct PyNode {
  NodeRef ref;
};
struct PyExpr : PyNode {
  Expr expr() const { return Expr::unchecked(ref); }
};
struct PyType : PyNode {
  Type type() const { return Type::unchecked(ref); }
};
template <class N>
struct PyExprOf : PyExpr {
  using node_type = N;
  Ref<N> get() const { return Ref<N>::unchecked(ref); }
};
template <class N>
struct PyTypeOf : PyType {
  using node_type = N;
};

// A module, and where it came from for the provenance of what is built from it.
struct PyModule {
  Module module;
  std::string source_name;
  std::string source_hash;
};

// The object of the fitting class; None for null.
nb::object wrap(const NodeRef& ref);

// Attribute values; a dtype is its name. Throws TypeError.
Value to_value(nb::handle object);
nb::object from_value(const Value& value);
Dict to_dict(nb::handle object);

DType to_dtype(nb::handle object);

// Anything with a buffer or DLPack shares its memory; numbers and lists become a new tensor, of
// `wanted` when given. Throws TypeError for anything else.
Tensor to_tensor(nb::handle object, std::optional<DType> wanted = std::nullopt);
// A NumPy array on the tensor's memory; read-only tensors are copied.
nb::object to_numpy(const Tensor& tensor);

// Run-time values: arrays and (nested) tuples of them.
runtime::Value to_run_value(nb::handle object, const runtime::Slot& slot);
nb::object from_run_value(const runtime::Value& value);

void bind_errors(nb::module_& m);
void bind_nodes(nb::module_& m);
void bind_compiler(nb::module_& m);

}  // namespace relay::bind
