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

// A node as Python holds it; one class of Python for each kind of expression, pattern and type.
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
// A pattern, or a clause.
template <class N>
struct PyPatternOf : PyNode {
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

// Guards a conversion that descends into nested values; ValueError where they are too deep.
struct Nesting {
  Nesting();
  ~Nesting();
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
};

// The name of an object's type, without its module.
std::string class_name(nb::handle object);
// What Python prints for an object, in short, for messages.
std::string python_text(nb::handle object);
// An integer or what Python takes for one; TypeError for floats too, ValueError beyond 64 bits.
int64_t to_int64(nb::handle object);
// A string, or a dictionary; `what` is the subject of the TypeError.
std::string to_text(nb::handle object, const char* what);
nb::dict to_named(nb::handle object, const char* what);

// Attribute values; a dtype is its name. Throws TypeError.
AttrValue to_value(nb::handle object);
nb::object from_value(const AttrValue& value);
Dict to_dict(nb::handle object);

DType to_dtype(nb::handle object);

// Anything with a buffer or DLPack shares its memory and keeps its element type; Python's numbers
// and lists of them become a new tensor. Throws TypeError for anything else.
Tensor to_tensor(nb::handle object);
// The same, where numbers and lists take the element type `wanted`, in which they must be exact
// but for the rounding of floats; TypeError for others.
Tensor to_tensor_of(nb::handle object, DType wanted);
// The same, for arrays too.
Tensor cast_tensor(nb::handle object, DType wanted);
// A number of Python's that the element type has, without a way through NumPy; nullopt for others.
std::optional<Tensor> plain_number(nb::handle object, DType wanted);
// The memory of a NumPy array of that dtype and rank, a copy where it is not contiguous; nullopt, with nothing copied, for
// other arrays and other objects.
std::optional<Tensor> shown_array(nb::handle object, DType dtype, size_t rank);
// The object's own memory for an input that is donated, which a run writes over: UserError E1205 for
// what would have to be copied or converted.
Tensor to_donated(nb::handle object, const runtime::Slot& slot);
// A NumPy array on the tensor's memory; read-only tensors are copied.
nb::object to_numpy(const Tensor& tensor);

class Exchange;

// Run-time values by their types (values_in.cc, values_out.cc): arrays, tuples, lists, options,
// RefValue, FunctionValue, ConstructorValue. Iterative. `type` and `mod`, which has the definitions of data types,
// may be null: what the slot says counts. UserError E0603 names the input, what it should be and
// what it is.
runtime::Value to_run_value(nb::handle object, const runtime::Slot& slot, const Type& type,
                            const Module& mod, Exchange& exchange);
// The same for a value that is not a parameter of a program; `name` is what messages call it.
runtime::Value to_run_value(nb::handle object, const std::string& name, const Type& type,
                            const Module& mod, Exchange& exchange);
// TypeError for functions and data of unknown types.
nb::object from_run_value(const runtime::Value& value, const Type& type, const Module& mod,
                          Exchange& exchange);

void bind_array_function(nb::module_& m);
void bind_plain_call(nb::module_& m);
void bind_errors(nb::module_& m);
void bind_nodes(nb::module_& m);
void bind_builders(nb::module_& m);
void bind_compiler(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_dataflow_patterns(nb::module_& m);
void bind_external_codegen(nb::module_& m);
void bind_quantize(nb::module_& m);
void bind_operators(nb::module_& m);
void bind_command(nb::module_& m);

}  // namespace relay::bind
