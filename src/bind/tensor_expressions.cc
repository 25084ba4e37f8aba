#include "bind/tensor_expressions.h"
#include "base/quantities.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>

#include "base/codes/python.h"
#include "bind/python_code.h"
#include "bind/wrong_argument.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/arith/analyzer.h"
#include "tir/arith/inside.h"
#include "tir/intrinsics.h"
#include "tir/joint_tensors.h"
#include "tir/text.h"

namespace relay::bind {
namespace {

using tir::BinaryOp;
using tir::DType;
using tir::PrimExpr;

constexpr std::pair<const char*, BinaryOp> kBinary[] = {
    {"add", BinaryOp::Add},
    {"sub", BinaryOp::Sub},
    {"mul", BinaryOp::Mul},
    {"div", BinaryOp::Div},
    {"floordiv", BinaryOp::FloorDiv},
    {"mod", BinaryOp::FloorMod},
    {"min", BinaryOp::Min},
    {"max", BinaryOp::Max},
    {"eq", BinaryOp::Eq},
    {"ne", BinaryOp::Ne},
    {"lt", BinaryOp::Lt},
    {"le", BinaryOp::Le},
    {"gt", BinaryOp::Gt},
    {"ge", BinaryOp::Ge},
    {"and", BinaryOp::BitAnd},
    {"or", BinaryOp::BitOr},
    {"xor", BinaryOp::BitXor},
    {"shl", BinaryOp::Shl},
    {"shr", BinaryOp::Shr},
    {"trunc_div", BinaryOp::Div},
    {"trunc_mod", BinaryOp::Mod},
};

[[noreturn]] void refuse(const std::string& message) { throw WrongArgument(message.c_str()); }

PrimExpr from_number(nb::handle object, DType dtype) {
  PyObject* raw = object.ptr();
  if (PyBool_Check(raw)) {
    PrimExpr b = tir::boolean(raw == Py_True);
    return dtype.is_bool() ? b : tir::cast(dtype, b);
  }
  if (PyFloat_Check(raw)) {
    if (!dtype.is_floating()) dtype = DType::Float(32);
    return tir::imm_float(dtype, PyFloat_AsDouble(raw));
  }
  int64_t value = to_int64(object);
  if (dtype.is_floating()) return tir::imm_float(dtype, static_cast<double>(value));
  if (dtype.is_bool()) dtype = tir::kIndex;
  // What does not fit widens the other side.
  bool small =
      dtype.bits == 64 || (value >= -(int64_t{1} << (dtype.bits - 1)) &&
                           value < (int64_t{1} << (dtype.bits - (dtype.is_uint() ? 0 : 1))));
  if (dtype.is_uint() && value < 0) small = false;
  return tir::imm(small ? dtype : tir::kIndex, value);
}

bool is_number(nb::handle object) {
  PyObject* raw = object.ptr();
  return PyBool_Check(raw) || PyFloat_Check(raw) || PyIndex_Check(raw);
}

// The dtype in which two values meet: a float if there is one, of the wider kind.
DType common(DType a, DType b) {
  if (a == b) return a;
  if (a.is_bool()) return b;
  if (b.is_bool()) return a;
  if (a.is_floating() != b.is_floating()) return a.is_floating() ? a : b;
  if (a.is_floating()) {
    // Neither half precision holds the other's numbers.
    if (a.bits == b.bits) return DType::Float(32);
    return a.bits > b.bits ? a : b;
  }
  if (a.bits != b.bits) return a.bits > b.bits ? a : b;
  return a.is_int() ? a : b;
}

PrimExpr cast_to(const PrimExpr& e, DType dtype) {
  return e->dtype == dtype ? e : tir::cast(dtype, e);
}

// Both sides as expressions of one dtype.
std::pair<PrimExpr, PrimExpr> operands(nb::handle left, nb::handle right) {
  PrimExpr a, b;
  auto dtype_of = [](nb::handle h) {
    return nb::isinstance<PyPrim>(h) ? nb::cast<const PyPrim&>(h).expr->dtype : tir::kIndex;
  };
  a = to_prim(left, dtype_of(right));
  b = to_prim(right, dtype_of(left));
  DType dtype = common(a->dtype, b->dtype);
  return {cast_to(a, dtype), cast_to(b, dtype)};
}

nb::object wrap_prim(PrimExpr e) { return nb::cast(PyPrim{std::move(e)}); }

nb::object binary(const std::string& name, nb::handle left, nb::handle right) {
  auto [a, b] = operands(left, right);
  DType dtype = a->dtype;
  BinaryOp op = BinaryOp::Add;
  for (const auto& [known, code] : kBinary) {
    if (name == known) op = code;
  }
  if (op == BinaryOp::BitAnd && dtype.is_bool()) return wrap_prim(tir::logical_and(a, b));
  if (op == BinaryOp::BitOr && dtype.is_bool()) return wrap_prim(tir::logical_or(a, b));
  if (op == BinaryOp::BitXor && dtype.is_bool()) return wrap_prim(tir::ne(a, b));
  bool of_integers = op >= BinaryOp::BitAnd;
  if (of_integers && !dtype.is_integer())
    refuse("'" + name + "' is of integers, not of " + dtype.to_string());
  if (dtype.is_bool() && !tir::is_comparison(op)) {
    a = tir::cast(DType::Int(32), a);
    b = tir::cast(DType::Int(32), b);
    dtype = DType::Int(32);
  }
  if (name == "div" && !dtype.is_floating())
    refuse("/ is of floats: // divides integers, and astype('float32') makes floats of them");
  if (dtype.is_floating() && name == "floordiv")
    return wrap_prim(tir::call("floor", dtype, {tir::div(a, b)}));
  if (dtype.is_floating() && name == "mod") {
    PrimExpr q = tir::call("floor", dtype, {tir::div(a, b)});
    return wrap_prim(a - q * b);
  }
  if (dtype.is_floating() && name == "trunc_mod")
    return wrap_prim(tir::call("fmod", dtype, {a, b}));
  return wrap_prim(tir::binary(op, a, b));
}

PrimExpr intrinsic(const std::string& name, nb::handle list) {
  const tir::Intrinsic* row = tir::find_intrinsic(name);
  if (row == nullptr) refuse("there is no function '" + name + "' in the tensor IR");
  if (row->rule == tir::IntrinsicRule::String)
    refuse(name + " is called for strings, of which a tensor expression sees nothing");
  if (row->arity == 0) refuse(name + " has no value");
  std::vector<PrimExpr> args = to_prims(list);
  if (static_cast<int>(args.size()) != row->arity)
    refuse(name + " takes " + counted(row->arity, "argument") + ", not " +
           std::to_string(args.size()));
  DType dtype = args[0]->dtype;
  for (const PrimExpr& a : args) dtype = common(dtype, a->dtype);
  if (row->rule == tir::IntrinsicRule::Float && !dtype.is_floating()) dtype = DType::Float(32);
  for (PrimExpr& a : args) a = cast_to(a, dtype);
  DType result = row->rule == tir::IntrinsicRule::Test ? DType::Bool() : dtype;
  if (auto defect = tir::intrinsic_defect(name, result, args)) refuse(name + ": " + *defect);
  return tir::call(name, result, std::move(args));
}

// ---- Access within bounds

struct Loop {
  tir::Var var;
  PrimExpr min;
  PrimExpr extent;
};

// Reads that may be outside of their tensor give 0.
PrimExpr with_guarded_reads(const PrimExpr& body, const std::vector<Loop>& axes) {
  tir::Analyzer analyzer;
  for (const Loop& l : axes) analyzer.bind(l.var, l.min, l.extent);
  if (auto* r = as<tir::ReduceNode>(body)) {
    for (const tir::IterVar& a : r->axes) analyzer.bind(a->var, tir::index(0), a->extent);
  }
  return PrimExpr::unchecked(rewrite(
      body,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* l = as<tir::LoadNode>(rebuilt);
        if (l == nullptr) return rebuilt;
        PrimExpr inside = tir::inside_condition(analyzer, l->indices, l->buffer);
        if (!inside) return rebuilt;
        return tir::select(inside, PrimExpr::unchecked(rebuilt), tir::imm(l->dtype, 0));
      },
      family::tir_expr));
}

std::vector<PrimExpr> to_indices(nb::handle given, size_t rank, const std::string& name) {
  std::vector<nb::object> items;
  if (PyTuple_Check(given.ptr()) || PyList_Check(given.ptr())) {
    for (nb::handle i : nb::iter(given)) items.push_back(nb::borrow(i));
  } else {
    items.push_back(nb::borrow(given));
  }
  if (items.size() != rank)
    refuse(name + " has " + counted(rank, "axis") + " and is read with " +
           counted(items.size(), "index"));
  std::vector<PrimExpr> out;
  for (const nb::object& i : items) {
    PrimExpr e = to_prim(i);
    if (!e->dtype.is_integer()) refuse("an index of " + name + " is of " + e->dtype.to_string());
    out.push_back(cast_to(e, tir::kIndex));
  }
  return out;
}

nb::tuple shape_of(const std::vector<PrimExpr>& shape) {
  nb::list out;
  for (const PrimExpr& d : shape) out.append(from_prim(d));
  return nb::tuple(out);
}

// Refuses variables of other tensors, and axes that nothing reduces over: those that are known are `axes`, and sizes.
void check_variables(const std::string& name, const PrimExpr& body, const std::vector<Loop>& axes,
                     const std::vector<PrimExpr>& sizes) {
  std::unordered_set<const Node*> known;
  auto add_all = [&](const PrimExpr& e) {
    post_order(
        e, [&](const Node& n) { known.insert(&n); }, family::tir_expr);
  };
  for (const Loop& l : axes) known.insert(l.var.get());
  for (const PrimExpr& s : sizes) add_all(s);
  std::vector<const tir::VarNode*> used;
  post_order(
      body,
      [&](const Node& n) {
        if (auto* v = as<tir::VarNode>(&n)) used.push_back(v);
        if (auto* r = as<tir::ReduceNode>(&n)) {
          for (const tir::IterVar& a : r->axes) known.insert(a->var.get());
        }
        if (auto* l = as<tir::LoadNode>(&n)) {
          for (const PrimExpr& d : l->buffer->shape) add_all(d);
        }
      },
      family::tir_expr);
  for (const tir::VarNode* v : used) {
    if (!known.contains(v))
      refuse(name + " uses '" + v->name + "', which is not an axis of it, nor reduced over");
  }
}

// The tensors whose elements `body` gives, a tuple of them or one; and whether it is a tuple.
std::pair<std::vector<PyTensor>, bool> compute(const std::string& name, nb::handle shape,
                                               nb::handle body) {
  std::vector<PrimExpr> sizes = to_prims(shape);
  for (PrimExpr& s : sizes) {
    if (!s->dtype.is_integer()) refuse("a size is an integer");
    s = cast_to(s, tir::kIndex);
  }
  std::vector<PyTensor> out;
  bool several = false;
  for (size_t count = 1; out.size() < count;) {
    const size_t which = out.size();
    std::string own = which == 0 ? name : name + std::to_string(which);
    out.push_back({tir::compute(own, sizes, [&](const tir::Indices& i) {
      nb::list variables;
      std::vector<Loop> axes;
      for (size_t d = 0; d < i.size(); ++d) {
        variables.append(wrap_prim(i[d]));
        axes.push_back({tir::Var(as<tir::VarNode>(i[d])), tir::index(0), sizes[d]});
      }
      nb::object result = body(*nb::tuple(variables));
      bool tuple = PyTuple_Check(result.ptr()) || PyList_Check(result.ptr());
      size_t found = tuple ? nb::len(result) : 1;
      if (which == 0) {
        several = tuple;
        count = found;
      }
      if (tuple != several || found != count || found == 0)
        refuse(name + " gives one value, or the same number of values for every element");
      PrimExpr value = to_prim(tuple ? nb::object(result[which]) : result, DType::Float(32));
      check_variables(name, value, axes, sizes);
      return with_guarded_reads(value, axes);
    })});
  }
  return {std::move(out), several};
}

tir::Combiner combiner_of(const std::string& name) {
  constexpr tir::Combiner kAll[] = {tir::Combiner::Sum, tir::Combiner::Prod, tir::Combiner::Min,
                                    tir::Combiner::Max, tir::Combiner::And,  tir::Combiner::Or};
  constexpr const char* kNames[] = {"sum", "prod", "min", "max", "all", "any"};
  for (size_t i = 0; i < std::size(kAll); ++i) {
    if (name == kNames[i]) return kAll[i];
  }
  refuse("there is no reduction '" + name + "'");
}

// The expression over the axes that a reduction makes.
PrimExpr over(const PrimExpr& body, const std::vector<const PyAxis*>& axes, const tir::Indices& k) {
  std::unordered_map<const Node*, NodeRef> places;
  for (size_t i = 0; i < axes.size(); ++i) places[axes[i]->expr.get()] = k[i] + axes[i]->min;
  return PrimExpr::unchecked(substitute(body, places, family::tir_expr | family::tir_other));
}

bool has_reduction(const PrimExpr& e) {
  bool found = false;
  post_order(
      e, [&](const Node& n) { found |= isa<tir::ReduceNode>(&n); }, family::tir_expr);
  return found;
}

nb::object reduce(const std::string& name, nb::handle value, nb::handle axis) {
  std::vector<const PyAxis*> axes;
  std::vector<PrimExpr> extents;
  auto add = [&](nb::handle a) {
    if (!nb::isinstance<PyAxis>(a)) refuse("a reduction is over axes of te.reduce_axis");
    axes.push_back(&nb::cast<const PyAxis&>(a));
    extents.push_back(axes.back()->extent);
  };
  if (nb::isinstance<PyAxis>(axis)) {
    add(axis);
  } else {
    for (nb::handle a : nb::iter(axis)) add(a);
  }
  if (axes.empty()) refuse("a reduction is over one axis at least");
  PrimExpr body = to_prim(value, DType::Float(32));
  if (has_reduction(body)) refuse("a reduction within a reduction needs a te.compute of its own");
  if (name == "argmin" || name == "argmax") {
    if (axes.size() != 1) refuse(name + " is over one axis");
    auto kind = name == "argmin" ? tir::Combiner::ArgMin : tir::Combiner::ArgMax;
    return wrap_prim(tir::arg_reduce(kind, extents[0],
                                     [&](const PrimExpr& k) { return over(body, axes, {k}); }));
  }
  tir::Combiner combiner = combiner_of(name);
  bool logical = combiner == tir::Combiner::And || combiner == tir::Combiner::Or;
  if (logical != body->dtype.is_bool())
    refuse(logical ? name + " is of bools" : name + " is of numbers, not of bools");
  return wrap_prim(
      tir::reduce(combiner, extents, [&](const tir::Indices& k) { return over(body, axes, k); }));
}

// ---- Statements

tir::Stmt to_stmt(nb::handle object) {
  if (!nb::isinstance<PyStmt>(object))
    refuse("a relay.prim_func writes the tensor, not a function that gives " + python_text(object));
  return nb::cast<const PyStmt&>(object).stmt;
}

std::vector<Loop> to_loops(nb::handle list) {
  std::vector<Loop> out;
  for (nb::handle row : nb::iter(list)) {
    PrimExpr v = to_prim(row[0]);
    out.push_back({tir::Var(as<tir::VarNode>(v)), to_prim(row[1]), to_prim(row[2])});
  }
  return out;
}

// The condition under which an access is within the buffer, None where it always is.
nb::object inside(const PyBuffer& b, nb::handle indices, nb::handle loops, nb::handle conditions) {
  tir::Analyzer analyzer;
  for (const Loop& l : to_loops(loops)) analyzer.bind(l.var, l.min, l.extent);
  std::vector<tir::Analyzer::Scope> scopes;
  for (nb::handle c : nb::iter(conditions)) scopes.push_back(analyzer.assume(to_prim(c)));
  PrimExpr cond = tir::inside_condition(
      analyzer, to_indices(indices, b.buffer->shape.size(), b.buffer->name), b.buffer);
  while (!scopes.empty()) scopes.pop_back();
  return cond ? wrap_prim(cond) : nb::none();
}

// Tensors that statements write, of these names, dtypes and shapes; `build` is called with lists of the buffers of the inputs and
// of the tensors.
std::vector<PyTensor> extern_tensors(const std::vector<std::string>& names, nb::handle dtypes,
                                     nb::handle shapes, const std::vector<PyTensor>& inputs,
                                     nb::handle build) {
  Held code(build);
  std::string name = names.empty() ? "extern" : names[0];
  if (names.size() != nb::len(shapes) || names.size() != nb::len(dtypes) || names.empty())
    refuse(name + " has as many dtypes as shapes, and as many names, one at least");
  std::vector<tir::JointOutput> outputs;
  for (size_t i = 0; i < names.size(); ++i)
    outputs.push_back({names[i], to_dtype(dtypes[i]), to_prims(shapes[i])});
  auto buffers = [](const std::vector<tir::Buffer>& list) {
    nb::list out;
    for (const tir::Buffer& b : list) out.append(nb::cast(PyBuffer{b}));
    return out;
  };
  auto write = [=](const std::vector<tir::Buffer>& in, const std::vector<tir::Buffer>& out) {
    return in_python(codes::python_operator, {}, "tensor function " + name,
                     [&] { return to_stmt(code.get()(buffers(in), buffers(out))); });
  };
  std::vector<PyTensor> made;
  for (tir::Tensor& t : tir::joint_tensors(outputs, tensors_of(inputs), write))
    made.push_back({std::move(t)});
  return made;
}

void bind_expressions(nb::module_& m) {
  nb::class_<PyPrim> prim(m, "PrimExpr", "A scalar expression of the tensor IR.");
  auto define = [&](const char* method, const char* name, bool swapped = false) {
    prim.def(method, [name = std::string(name), swapped](nb::handle self, nb::handle other) {
      return swapped ? binary(name, other, self) : binary(name, self, other);
    });
  };
  for (const char* name : {"add", "sub", "mul", "floordiv", "mod", "and", "or", "xor"}) {
    define((std::string("__") + name + "__").c_str(), name);
    define((std::string("__r") + name + "__").c_str(), name, true);
  }
  define("__truediv__", "div");
  define("__rtruediv__", "div", true);
  define("__lshift__", "shl");
  define("__rlshift__", "shl", true);
  define("__rshift__", "shr");
  define("__rrshift__", "shr", true);
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"})
    define((std::string("__") + name + "__").c_str(), name);
  prim.def("__pow__",
           [](nb::handle a, nb::handle b) {
             return wrap_prim(intrinsic("pow", nb::make_tuple(a, b)));
           })
      .def("__rpow__",
           [](nb::handle a, nb::handle b) {
             return wrap_prim(intrinsic("pow", nb::make_tuple(b, a)));
           })
      .def("__neg__", [](nb::handle a) { return binary("sub", nb::int_(0), a); })
      .def("__abs__", [](nb::handle a) { return wrap_prim(intrinsic("abs", nb::make_tuple(a))); })
      .def("__invert__",
           [](const PyPrim& a) {
             if (a.expr->dtype.is_bool()) return wrap_prim(tir::logical_not(a.expr));
             if (!a.expr->dtype.is_integer()) refuse("~ is of integers and bools");
             return wrap_prim(tir::binary(BinaryOp::BitXor, a.expr, tir::imm(a.expr->dtype, -1)));
           })
      .def("__bool__",
           [](const PyPrim&) -> bool {
             refuse(
                 "an expression has no value while the program is built; te.if_then_else(c, a, b) "
                 "chooses");
           })
      .def("__hash__",
           [](const PyPrim& a) { return reinterpret_cast<intptr_t>(a.expr.get()) >> 4; })
      .def(
          "astype",
          [](const PyPrim& a, nb::handle dtype) {
            return wrap_prim(cast_to(a.expr, to_dtype(dtype)));
          },
          nb::arg("dtype"), "The value in another dtype.")
      .def_prop_ro("dtype", [](const PyPrim& a) { return a.expr->dtype.to_string(); })
      .def("__repr__", [](const PyPrim& a) { return tir::to_string(a.expr); });
  nb::class_<PyAxis, PyPrim>(m, "ReduceAxis", "An axis that is reduced over.");
  nb::class_<PyTensor>(m, "TETensor", "A tensor expression: a placeholder, or a compute of others.")
      .def("__call__",
           [](const PyTensor& t, const nb::args& indices) {
             return wrap_prim(
                 t.tensor(to_indices(indices, t.tensor->shape().size(), t.tensor->name)));
           })
      .def("__getitem__",
           [](const PyTensor& t, nb::handle indices) {
             return wrap_prim(
                 t.tensor(to_indices(indices, t.tensor->shape().size(), t.tensor->name)));
           })
      .def_prop_ro("name", [](const PyTensor& t) { return t.tensor->name; })
      .def_prop_ro("shape", [](const PyTensor& t) { return shape_of(t.tensor->shape()); })
      .def_prop_ro("ndim", [](const PyTensor& t) { return t.tensor->shape().size(); })
      .def_prop_ro("dtype", [](const PyTensor& t) { return t.tensor->dtype.to_string(); })
      .def("__repr__", [](const PyTensor& t) {
        return "te.Tensor(" + t.tensor->name + ": " +
               nb::cast<std::string>(nb::str(nb::repr(shape_of(t.tensor->shape())))) + " " +
               t.tensor->dtype.to_string() + ")";
      });
  m.def("te_binary",
        [](const std::string& name, nb::handle a, nb::handle b) { return binary(name, a, b); });
  m.def("te_call",
        [](const std::string& name, nb::handle args) { return wrap_prim(intrinsic(name, args)); });
  m.def("te_const", [](nb::handle value, nb::handle dtype) {
    DType wanted = to_dtype(dtype);
    if (!is_number(value)) refuse(python_text(value) + " is not a number");
    return wrap_prim(cast_to(from_number(value, wanted), wanted));
  });
  m.def("te_var", [](const std::string& name, nb::handle dtype) {
    return wrap_prim(tir::var(name, to_dtype(dtype)));
  });
  m.def("te_select", [](nb::handle c, nb::handle yes, nb::handle no) {
    PrimExpr cond = to_prim(c);
    if (!cond->dtype.is_bool()) refuse("a condition is a bool, not " + cond->dtype.to_string());
    auto [a, b] = operands(yes, no);
    return wrap_prim(tir::select(cond, a, b));
  });
  m.def("te_limit", [](nb::handle dtype, bool greatest) {
    DType d = to_dtype(dtype);
    return wrap_prim(greatest ? tir::max_value(d) : tir::min_value(d));
  });
  m.def("te_placeholder", [](nb::handle shape, nb::handle dtype, const std::string& name) {
    return PyTensor{tir::placeholder(name, to_dtype(dtype), to_prims(shape))};
  });
  m.def("te_compute", &compute);
  m.def("te_reduce_axis", [](nb::handle begin, nb::handle end, const std::string& name) {
    PyAxis axis;
    axis.expr = tir::var(name);
    axis.min = cast_to(to_prim(begin), tir::kIndex);
    axis.extent = cast_to(to_prim(end), tir::kIndex) - axis.min;
    return axis;
  });
  m.def("te_reduce", &reduce);
  m.def("te_extern", &extern_tensors);
}

void bind_statements(nb::module_& m) {
  nb::class_<PyBuffer>(m, "TirBuffer", "Memory that statements read and write.")
      .def_prop_ro("name", [](const PyBuffer& b) { return b.buffer->name; })
      .def_prop_ro("shape", [](const PyBuffer& b) { return shape_of(b.buffer->shape); })
      .def_prop_ro("dtype", [](const PyBuffer& b) { return b.buffer->dtype.to_string(); });
  nb::class_<PyStmt>(m, "TirStmt", "A statement of the tensor IR.")
      .def("__repr__", [](const PyStmt& s) { return tir::to_string(s.stmt); });
  m.def("tir_load", [](const PyBuffer& b, nb::handle indices) {
    return wrap_prim(
        tir::load(b.buffer, to_indices(indices, b.buffer->shape.size(), b.buffer->name)));
  });
  m.def("tir_inside", &inside);
  m.def("tir_store", [](const PyBuffer& b, nb::handle indices, nb::handle value) {
    PrimExpr v = to_prim(value, b.buffer->dtype);
    return PyStmt{tir::store(b.buffer, to_indices(indices, b.buffer->shape.size(), b.buffer->name),
                             cast_to(v, b.buffer->dtype))};
  });
  m.def("tir_for", [](nb::handle var, nb::handle min, nb::handle extent, const PyStmt& body,
                      const std::string& kind) {
    tir::ForKind how = kind == "parallel" ? tir::ForKind::Parallel : tir::ForKind::Serial;
    PrimExpr v = to_prim(var);
    return PyStmt{tir::for_(tir::Var(as<tir::VarNode>(v)), cast_to(to_prim(min), tir::kIndex),
                            cast_to(to_prim(extent), tir::kIndex), body.stmt, how)};
  });
  m.def(
      "tir_if",
      [](nb::handle cond, const PyStmt& yes, std::optional<PyStmt> no) {
        PrimExpr c = to_prim(cond);
        if (!c->dtype.is_bool()) refuse("a condition is a bool, not " + c->dtype.to_string());
        return PyStmt{tir::if_(c, yes.stmt, no ? no->stmt : tir::Stmt())};
      },
      nb::arg("cond"), nb::arg("yes"), nb::arg("no").none());
  m.def("tir_seq", [](const std::vector<PyStmt>& list) {
    std::vector<tir::Stmt> all;
    for (const PyStmt& s : list) all.push_back(s.stmt);
    return PyStmt{tir::seq(std::move(all))};
  });
  m.def("tir_let", [](nb::handle var, nb::handle value, const PyStmt& body) {
    PrimExpr v = to_prim(var);
    return PyStmt{tir::let_stmt(tir::Var(as<tir::VarNode>(v)), to_prim(value), body.stmt)};
  });
  m.def("tir_buffer", [](const std::string& name, nb::handle dtype, nb::handle shape) {
    return PyBuffer{tir::buffer(name, to_dtype(dtype), to_prims(shape), tir::Scope::Local)};
  });
  m.def("tir_allocate", [](const PyBuffer& b, const PyStmt& body) {
    return PyStmt{tir::allocate(b.buffer, body.stmt)};
  });
  m.def("tir_check", [](nb::handle cond, const std::string& message, bool of_index) {
    return PyStmt{tir::check(
        to_prim(cond), of_index ? RELAY_KERNEL_INDEX_OUT_OF_BOUNDS : RELAY_KERNEL_CHECK_FAILED,
        message)};
  });
}

}  // namespace

std::vector<tir::Tensor> tensors_of(const std::vector<PyTensor>& tensors) {
  std::vector<tir::Tensor> out;
  for (const PyTensor& t : tensors) out.push_back(t.tensor);
  return out;
}

PrimExpr to_prim(nb::handle object, DType number) {
  if (nb::isinstance<PyPrim>(object)) return nb::cast<const PyPrim&>(object).expr;
  nb::object value = nb::borrow(object);
  if (!is_number(value) && nb::hasattr(value, "item")) value = value.attr("item")();
  if (!is_number(value))
    refuse(python_text(object) + " is not an expression of the tensor IR or a number");
  return from_number(value, number);
}

std::vector<PrimExpr> to_prims(nb::handle list) {
  std::vector<PrimExpr> out;
  for (nb::handle item : nb::iter(list)) {
    DType number = PyFloat_Check(item.ptr()) ? DType::Float(32) : tir::kIndex;
    out.push_back(to_prim(item, number));
  }
  return out;
}

nb::object from_prim(const PrimExpr& e) {
  if (auto value = tir::as_int(e)) return nb::int_(*value);
  return wrap_prim(e);
}

void bind_tensor_expressions(nb::module_& m) {
  bind_expressions(m);
  bind_statements(m);
}

}  // namespace relay::bind
