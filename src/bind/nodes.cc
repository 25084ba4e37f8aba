// The program's nodes: one Python class per kind, attributes from the field lists.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "bind/convert.h"
#include "bind/own_variables.h"
#include "bind/places.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "driver/model.h"
#include "ir/bindings.h"
#include "ir/op.h"
#include "ir/open_types.h"
#include "ir/text/text.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/structure/form.h"
#include "types/infer.h"
#include "types/read_module.h"

namespace relay::bind {
namespace {

template <class P>
nb::object wrap_as(const NodeRef& ref) {
  P out;
  out.ref = ref;
  return nb::cast(std::move(out));
}
using Wrapper = nb::object (*)(const NodeRef&);

// The class of each kind of node; kinds that are not here are of the class of their family.
template <template <class> class Class, class... N>
void add_classes(std::unordered_map<int, Wrapper>& out) {
  (out.emplace(N::kKind, &wrap_as<Class<N>>), ...);
}
const std::unordered_map<int, Wrapper>& classes() {
  static const std::unordered_map<int, Wrapper> known = [] {
    std::unordered_map<int, Wrapper> out;
    add_classes<PyExprOf, ConstantNode, VarNode, GlobalVarNode, OpNode, ConstructorNode,
                FunctionNode, CallNode, LetNode, IfNode, TupleNode, TupleGetItemNode, MatchNode,
                RefCreateNode, RefReadNode, RefWriteNode>(out);
    add_classes<PyPatternOf, PatternWildcardNode, PatternVarNode, PatternConstructorNode,
                PatternTupleNode, ClauseNode>(out);
    add_classes<PyTypeOf, TensorTypeNode, TupleTypeNode, FuncTypeNode, TypeVarNode, RefTypeNode,
                TypeCallNode, GlobalTypeVarNode, TypeDataNode>(out);
    return out;
  }();
  return known;
}

Type to_type(nb::handle object) {
  if (nb::isinstance<PyType>(object)) return nb::cast<const PyType&>(object).type();
  throw WrongArgument((python_text(object) + " is not a type; relay.parse_type reads one").c_str());
}

// Null where Python gives None.
Type optional_type(nb::handle object) { return object.is_none() ? Type() : to_type(object); }

// A number of NumPy's as Python's own; anything else stays as it is.
nb::object plain_number(nb::handle object) {
  if (PyFloat_CheckExact(object.ptr()) || PyLong_CheckExact(object.ptr()))
    return nb::borrow(object);
  nb::object generic = nb::module_::import_("numpy").attr("generic");
  return nb::isinstance(object, generic) ? object.attr("item")() : nb::borrow(object);
}

// Whether the number is one of the element type, but for the rounding of floats.
bool fits(PyObject* number, DType dtype) {
  if (PyBool_Check(number)) return dtype.is_bool();
  if (PyFloat_Check(number)) {
    if (!dtype.is_floating()) return false;
    double value = PyFloat_AsDouble(number);
    double limit = dtype.bits == 64                          ? std::numeric_limits<double>::max()
                   : dtype.bits == 32 || dtype.is_bfloat16() ? 3.4e38
                                                             : 65504.0;
    return !std::isfinite(value) || std::abs(value) <= limit;
  }
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0) return false;
  if (dtype.is_floating()) {
    int digits = dtype.is_bfloat16() ? 8 : dtype.bits == 64 ? 53 : dtype.bits == 32 ? 24 : 11;
    return value >= -(int64_t{1} << digits) && value <= int64_t{1} << digits;
  }
  if (dtype.is_uint()) return value >= 0 && (dtype.bits == 64 || value < int64_t{1} << dtype.bits);
  if (!dtype.is_int()) return false;
  return dtype.bits == 64 ||
         (value >= -(int64_t{1} << (dtype.bits - 1)) && value < int64_t{1} << (dtype.bits - 1));
}

// An argument of an expression: a node; an array is a constant, a tuple or list a tuple. A number
// is a constant of the first element type in `near` that it fits, else float32, int32 or bool.
Expr to_expr(nb::handle given, const std::vector<DType>& near = {}) {
  Nesting deeper;
  if (nb::isinstance<PyExpr>(given)) return nb::cast<const PyExpr&>(given).expr();
  if (PyTuple_Check(given.ptr()) || PyList_Check(given.ptr())) {
    std::vector<Expr> fields;
    for (nb::handle field : nb::iter(given)) fields.push_back(to_expr(field, near));
    return tuple(std::move(fields), current_place());
  }
  nb::object object = plain_number(given);
  PyObject* raw = object.ptr();
  if (!PyFloat_Check(raw) && !PyLong_Check(raw))
    return constant(to_tensor(object).copy(), current_place());
  DType dtype = PyBool_Check(raw)    ? DType::Bool()
                : PyFloat_Check(raw) ? DType::Float(32)
                                     : DType::Int(32);
  for (DType d : near) {
    if (!fits(raw, d)) continue;
    dtype = d;
    break;
  }
  return constant(cast_tensor(object, dtype).copy(), current_place());
}

std::vector<Expr> to_exprs(nb::handle list) {
  // Numbers take the element type of a tensor beside them.
  std::vector<DType> near;
  for (nb::handle item : nb::iter(list)) {
    if (!nb::isinstance<PyExpr>(item)) continue;
    Expr e = nb::cast<const PyExpr&>(item).expr();
    if (auto* t = e->type ? as<TensorTypeNode>(e->type) : nullptr) near.push_back(t->dtype);
  }
  std::vector<Expr> out;
  for (nb::handle item : nb::iter(list)) out.push_back(to_expr(item, near));
  return out;
}

Attrs to_attrs(const OpInfo& op, nb::handle values) {
  std::vector<std::pair<std::string, AttrValue>> named;
  for (auto [key, value] : to_named(values, "a set of attributes")) {
    named.emplace_back(to_text(key, "the name of an attribute"), to_value(value));
  }
  if (op.attrs == nullptr) {
    if (!named.empty()) {
      throw WrongArgument((std::string(op.name) + " has no attributes").c_str());
    }
    return nullptr;
  }
  return make_attrs(*op.attrs, named, op.name, Span());
}

Dim to_dim(nb::handle object) {
  if (object.is_none()) return dim_any();
  if (nb::isinstance<PyTypeOf<TypeVarNode>>(object)) {
    auto name = TypeVar::unchecked(nb::cast<const PyNode&>(object).ref);
    if (name->kind != Kind::Dim) {
      throw WrongArgument((name->name_hint + " does not stand for a size").c_str());
    }
    return dim(name);
  }
  if (nb::isinstance<PyNode>(object)) {
    const NodeRef& ref = nb::cast<const PyNode&>(object).ref;
    if (ref.get()->info().family != family::dim) {
      throw WrongArgument((python_text(object) + " is not a size").c_str());
    }
    return Dim::unchecked(ref);
  }
  int64_t size = to_int64(object);
  if (size < 0) {
    throw WrongArgument(
        (std::to_string(size) + " is not a size; None is one that is known at run time only")
            .c_str());
  }
  return dim(size);
}

// A number, a name as the TypeVar that programs are written with, or an expression of sizes.
nb::object from_dim(const Dim& d) {
  if (auto value = as_const(d)) return nb::int_(*value);
  auto* name = as<DimVarNode>(d);
  return name == nullptr ? wrap(d) : wrap(name->var);
}

Dim divisor(nb::handle object) {
  Dim d = to_dim(object);
  if (as_const(d).value_or(1) < 1) throw WrongArgument("a size is divided by a number below one");
  return d;
}

// Python's arithmetic on sizes.
template <class Class>
void bind_dim_arithmetic(Class& c) {
  using Operator = Dim (*)(const Dim&, const Dim&);
  auto operation = [&](const char* name, const char* reflected, Operator op) {
    c.def(name, [op](nb::handle a, nb::handle b) { return from_dim(op(to_dim(a), to_dim(b))); });
    c.def(reflected,
          [op](nb::handle a, nb::handle b) { return from_dim(op(to_dim(b), to_dim(a))); });
  };
  operation("__add__", "__radd__", [](const Dim& a, const Dim& b) { return a + b; });
  operation("__sub__", "__rsub__", [](const Dim& a, const Dim& b) { return a - b; });
  operation("__mul__", "__rmul__", [](const Dim& a, const Dim& b) { return a * b; });
  c.def("__floordiv__",
        [](nb::handle a, nb::handle b) { return from_dim(floor_div(to_dim(a), divisor(b))); });
  c.def("__mod__", [](nb::handle a, nb::handle b) { return from_dim(mod(to_dim(a), divisor(b))); });
}

// An expression of sizes.
struct PyDim : PyNode {};
// The attributes of a call.
struct PyAttrs : PyNode {};

nb::object get_field(const PyNode& self, const std::string& name) {
  const Node& node = *self.ref.get();
  auto is_expr = [&] { return node.info().family == family::expr; };
  if (name == "checked_type" && is_expr()) return wrap(static_cast<const ExprNode&>(node).type);
  if (is_expr() && (name == "shape" || name == "dtype")) {
    const Type& type = static_cast<const ExprNode&>(node).type;
    if (as<TensorTypeNode>(type) == nullptr) {
      throw nb::attribute_error(
          ("only a tensor has a " + name + "; this is of type " +
           (type ? to_string(type) : "that is not known yet (give the variables types)"))
              .c_str());
    }
    return get_field(PyNode{type}, name);
  }
  if (auto* c = as<ConstantNode>(self.ref); c != nullptr && name == "data") {
    return to_numpy(c->data.copy());
  }
  if (auto* t = as<TensorTypeNode>(self.ref); t != nullptr && name == "shape") {
    nb::list dims;
    for (const Dim& d : t->shape) dims.append(from_dim(d));
    return nb::tuple(dims);
  }
  const Field* field = node.info().find(name);
  if (field == nullptr) {
    throw nb::attribute_error(
        (std::string(node.info().name) + " has no attribute '" + name + "'").c_str());
  }
  const void* at = field->in(node);
  if (std::string_view(field->ops->type_name) == "dict") {
    nb::dict out;
    for (const auto& [key, value] : *static_cast<const Dict*>(at)) {
      out[nb::str(key.c_str(), key.size())] = from_value(value);
    }
    return out;
  }
  if (field->ops->get_child == nullptr) return from_value(field->ops->get(at));
  if (std::string_view(field->ops->type_name) == "node") return wrap(field->ops->get_child(at, 0));
  nb::list out;
  for (size_t i = 0; i < field->ops->count(at); ++i) {
    out.append(wrap(field->ops->get_child(at, i)));
  }
  return out;
}

std::string node_text(const PyNode& self) {
  uint32_t kind = self.ref.get()->info().family;
  if (kind == family::expr) {
    PrintOptions options;
    options.show_metadata = false;
    return print_expr(Expr::unchecked(self.ref), options);
  }
  if (kind == family::type) return to_string(Type::unchecked(self.ref));
  if (kind == family::dim) return to_string(Dim::unchecked(self.ref));
  return "<" + std::string(self.ref.get()->info().name) + ">";
}

template <class P>
void set_ref(P* self, NodeRef ref) {
  new (self) P;
  self->ref = std::move(ref);
}

std::vector<std::string> field_names(const PyNode& self) {
  std::vector<std::string> names;
  for (const Field& f : self.ref.get()->info().fields) names.emplace_back(f.name);
  return names;
}

// By name as by attribute: `call.attrs["axis"]`.
void bind_attrs(nb::module_& m) {
  auto item = [](const PyAttrs& self, const std::string& name) {
    if (self.ref.get()->info().find(name) == nullptr) throw nb::key_error(name.c_str());
    return get_field(self, name);
  };
  nb::class_<PyAttrs, PyNode>(m, "Attrs", "The attributes of a call: attrs.axis, attrs[\"axis\"].")
      .def("__getitem__", item)
      .def("__contains__",
           [](const PyAttrs& self, nb::handle name) {
             return PyUnicode_Check(name.ptr()) &&
                    self.ref.get()->info().find(nb::cast<std::string>(name)) != nullptr;
           })
      .def("__len__", [](const PyAttrs& self) { return self.ref.get()->info().fields.size(); })
      .def("__iter__", [](const PyAttrs& self) { return nb::iter(nb::cast(field_names(self))); })
      .def("keys", &field_names, "The names.")
      .def(
          "items",
          [](const PyAttrs& self) {
            nb::list out;
            for (const std::string& name : field_names(self)) {
              out.append(nb::make_tuple(name, get_field(self, name)));
            }
            return out;
          },
          "Pairs of a name and a value.")
      .def("get_int", item, nb::arg("key"), "The value of that name.")
      .def("get_str", item, nb::arg("key"), "The value of that name.")
      .def(
          "get_int_tuple",
          [item](const PyAttrs& self, const std::string& name) {
            return nb::tuple(item(self, name));
          },
          nb::arg("key"), "The list of that name, as a tuple.");
}

nb::object op_row(const OpInfo& row) {
  nb::list args;
  for (const ArgInfo& a : row.args) {
    args.append(nb::make_tuple(std::string(a.name), std::string(a.doc)));
  }
  nb::list attrs;
  if (row.attrs != nullptr) {
    Attrs defaults = make_attrs(*row.attrs, {}, row.name, Span());
    for (const Field& f : row.attrs->fields) {
      attrs.append(nb::make_tuple(std::string(f.name), f.ops->type_name,
                                  from_value(f.ops->get(f.in(*defaults))), std::string(f.doc)));
    }
  }
  nb::list examples;
  for (const OpExample& e : row.examples) {
    examples.append(nb::make_tuple(e.args, e.attrs, e.low, e.high, e.inputs, e.results));
  }
  nb::object source = nb::none();
  if (row.expected) source = nb::cast(row.expected.get());
  return nb::make_tuple(std::string(row.name), std::string(row.doc), args, attrs, examples,
                        row.support_level, source);
}

void bind_exprs(nb::module_& m) {
  using PyVar = PyExprOf<VarNode>;
  nb::class_<PyVar, PyExpr>(m, "Var", "A local variable; identity is what counts.")
      .def(
          "__init__",
          [](PyVar* self, const std::string& name, nb::handle type) {
            set_ref(self, var(name, optional_type(type), current_place()));
          },
          nb::arg("name"), nb::arg("type_annotation") = nb::none());
  using PyConstant = PyExprOf<ConstantNode>;
  nb::class_<PyConstant, PyExpr>(m, "Constant", "A tensor known at compile time.")
      .def(
          "__init__",
          [](PyConstant* self, nb::handle data, nb::handle dtype) {
            Tensor tensor = dtype.is_none() ? to_tensor(data) : cast_tensor(data, to_dtype(dtype));
            set_ref(self, constant(tensor.copy(), current_place()));
          },
          nb::arg("data").none(), nb::arg("dtype") = nb::none());
  using PyGlobalVar = PyExprOf<GlobalVarNode>;
  nb::class_<PyGlobalVar, PyExpr>(m, "GlobalVar", "A function of the module, equal by name.")
      .def(
          "__init__",
          [](PyGlobalVar* self, const std::string& name, nb::handle type) {
            set_ref(self, global_var(name, optional_type(type)));
          },
          nb::arg("name"), nb::arg("type") = nb::none());
  nb::class_<PyExprOf<OpNode>, PyExpr>(m, "Op", "A primitive operator.");
  using PyFunction = PyExprOf<FunctionNode>;
  nb::class_<PyFunction, PyExpr>(m, "Function", "A function with parameters and a body.")
      .def(
          "__init__",
          [](PyFunction* self, const std::vector<PyVar>& params, nb::handle body,
             nb::handle ret_type, const std::vector<PyTypeOf<TypeVarNode>>& type_params,
             nb::dict attrs) {
            std::vector<Var> vars;
            for (const PyVar& p : params) vars.push_back(p.get());
            std::vector<TypeVar> bound;
            for (const auto& t : type_params) bound.push_back(TypeVar::unchecked(t.ref));
            set_ref(self, function(std::move(vars), to_expr(body), optional_type(ret_type),
                                   std::move(bound), to_dict(attrs), current_place()));
          },
          nb::arg("params"), nb::arg("body"), nb::arg("ret_type") = nb::none(),
          nb::arg("type_params") = std::vector<PyTypeOf<TypeVarNode>>(),
          nb::arg("attrs") = nb::dict());
  using PyCall = PyExprOf<CallNode>;
  nb::class_<PyCall, PyExpr>(m, "Call", "An operator or function applied to arguments.")
      .def(
          "__init__",
          [](PyCall* self, const PyExpr& op, nb::handle args, nb::dict attrs) {
            Attrs made;
            if (auto* primitive = as<OpNode>(op.ref)) made = to_attrs(*primitive->row, attrs);
            set_ref(self, call(op.expr(), to_exprs(args), std::move(made), current_place()));
          },
          nb::arg("op"), nb::arg("args"), nb::arg("attrs") = nb::dict());
  using PyLet = PyExprOf<LetNode>;
  nb::class_<PyLet, PyExpr>(m, "Let", "Names a value in a body.")
      .def(
          "__init__",
          [](PyLet* self, const PyVar& v, nb::handle value, nb::handle body) {
            set_ref(self, let(v.get(), to_expr(value), to_expr(body), current_place()));
          },
          nb::arg("var"), nb::arg("value"), nb::arg("body"));
  using PyIf = PyExprOf<IfNode>;
  nb::class_<PyIf, PyExpr>(m, "If", "A choice by a scalar bool.")
      .def(
          "__init__",
          [](PyIf* self, nb::handle cond, nb::handle yes, nb::handle no) {
            set_ref(self, if_(to_expr(cond), to_expr(yes), to_expr(no), current_place()));
          },
          nb::arg("cond"), nb::arg("true_branch"), nb::arg("false_branch"));
  using PyTuple = PyExprOf<TupleNode>;
  nb::class_<PyTuple, PyExpr>(m, "Tuple", "Several values.")
      .def(
          "__init__",
          [](PyTuple* self, nb::handle fields) {
            set_ref(self, tuple(to_exprs(fields), current_place()));
          },
          nb::arg("fields"));
  using PyGet = PyExprOf<TupleGetItemNode>;
  nb::class_<PyGet, PyExpr>(m, "TupleGetItem", "One field of a tuple.")
      .def(
          "__init__",
          [](PyGet* self, const PyExpr& of, int64_t index) {
            set_ref(self, tuple_get_item(of.expr(), index, current_place()));
          },
          nb::arg("tuple_value"), nb::arg("index"));
  using PyMatch = PyExprOf<MatchNode>;
  nb::class_<PyMatch, PyExpr>(m, "Match", "A choice by patterns.")
      .def(
          "__init__",
          [](PyMatch* self, nb::handle data, nb::handle clauses, bool complete) {
            std::vector<Clause> made;
            for (nb::handle c : nb::iter(clauses)) {
              const NodeRef& ref = nb::cast<const PyNode&>(c).ref;
              if (!isa<ClauseNode>(ref)) {
                throw WrongArgument((python_text(c) + " is not a relay.Clause").c_str());
              }
              made.push_back(Clause::unchecked(ref));
            }
            set_ref(self, match(to_expr(data), std::move(made), complete, current_place()));
          },
          nb::arg("data"), nb::arg("clauses"), nb::arg("complete") = true);
  using PyRefCreate = PyExprOf<RefCreateNode>;
  nb::class_<PyRefCreate, PyExpr>(m, "RefCreate", "A new reference.")
      .def(
          "__init__",
          [](PyRefCreate* self, nb::handle value) {
            set_ref(self, ref_create(to_expr(value), current_place()));
          },
          nb::arg("value"));
  using PyRefRead = PyExprOf<RefReadNode>;
  nb::class_<PyRefRead, PyExpr>(m, "RefRead", "The content of a reference.")
      .def(
          "__init__",
          [](PyRefRead* self, const PyExpr& ref) {
            set_ref(self, ref_read(ref.expr(), current_place()));
          },
          nb::arg("ref"));
  using PyRefWrite = PyExprOf<RefWriteNode>;
  nb::class_<PyRefWrite, PyExpr>(m, "RefWrite", "Changes a reference.")
      .def(
          "__init__",
          [](PyRefWrite* self, const PyExpr& ref, nb::handle value) {
            set_ref(self, ref_write(ref.expr(), to_expr(value), current_place()));
          },
          nb::arg("ref"), nb::arg("value"));
}

// A module or a node, as the root of a walk.
NodeRef to_part(nb::handle h) {
  if (nb::isinstance<PyModule>(h)) return NodeRef(nb::cast<const PyModule&>(h).module);
  if (nb::isinstance<PyNode>(h)) return nb::cast<const PyNode&>(h).ref;
  throw WrongArgument((python_text(h) + " is not a part of a program").c_str());
}

// The same module with other attributes.
PyModule with_attrs(const PyModule& self, Dict attrs) {
  return {make_module(self.module->global_vars, self.module->functions,
                      self.module->type_definitions, std::move(attrs)),
          self.source_name, self.source_hash};
}

std::string in_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  char out[32];
  std::snprintf(out, sizeof out, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return out;
}

int64_t constant_bytes(const Module& mod) {
  int64_t bytes = 0;
  post_order(
      mod,
      [&](const Node& n) {
        if (auto* c = as<ConstantNode>(&n)) bytes += static_cast<int64_t>(c->data.byte_size());
      },
      family::module | family::program);
  return bytes;
}

// "IRModule(@main: fn (float32) -> float32, 3 operators, 44.6 MB of constants)".
std::string summary(const Module& mod) {
  std::string out;
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(mod->functions.size(), kShown); ++i) {
    const Type& type = mod->functions[i]->type;
    out += (i > 0 ? ", @" : "@") + mod->global_vars[i]->name_hint;
    if (type) out += ": " + to_string(type);
  }
  if (mod->functions.size() > kShown)
    out += ", " + std::to_string(mod->functions.size() - kShown) + " more functions";
  if (mod->functions.empty()) out = "no functions";
  size_t calls = 0;
  post_order(
      mod,
      [&](const Node& n) {
        if (auto* c = as<CallNode>(&n)) calls += isa<OpNode>(c->op);
      },
      family::module | family::program);
  const int64_t bytes = constant_bytes(mod);
  out += ", " + std::to_string(calls) + (calls == 1 ? " operator" : " operators");
  if (bytes > 0) out += ", " + in_bytes(bytes) + " of constants";
  return "IRModule(" + out + ")";
}

// A function as a module has it: it binds its variables, those of types too.
Function closed(const Function& f) {
  check_bindings(f);
  return with_free_type_vars(f);
}

void bind_modules(nb::module_& m) {
  m.def(
      "constant_bytes", [](const PyModule& mod) { return constant_bytes(mod.module); },
      nb::arg("mod"), "The bytes of all constants of a module.");
  nb::class_<PyModule>(m, "IRModule", "Functions and data types by name; immutable.",
                       nb::is_weak_referenceable())
      .def(
          "__init__",
          [](PyModule* self, nb::handle functions) {
            std::vector<GlobalVar> names;
            std::vector<Function> bodies;
            for (auto [key, value] : to_named(functions, "a set of functions")) {
              auto* global = nb::isinstance<PyExpr>(key)
                                 ? as<GlobalVarNode>(nb::cast<const PyNode&>(key).ref)
                                 : nullptr;
              std::string name =
                  global != nullptr ? global->name_hint : to_text(key, "the name of a function");
              if (!nb::isinstance<PyExprOf<FunctionNode>>(value))
                throw WrongArgument((python_text(value) + " is not a relay.Function").c_str());
              Function f = closed(nb::cast<const PyExprOf<FunctionNode>&>(value).get());
              names.push_back(global_var(name, f->type));
              bodies.push_back(f);
            }
            Module made = make_module(std::move(names), std::move(bodies));
            new (self) PyModule{infer_types(with_own_variables(made)), "", ""};
          },
          nb::arg("functions") = nb::dict(), "A typed module of functions by name.")
      .def_static(
          "from_expr",
          [](const PyExpr& e) {
            Expr main = e.expr();
            if (!isa<FunctionNode>(main)) main = function(free_vars(main), main);
            return PyModule{infer_types(module_from_expr(closed(Function::unchecked(main)))), "",
                            ""};
          },
          nb::arg("expr"),
          "The typed module whose @main is the expression; where that is not a function, its free "
          "variables are the parameters.")
      .def(
          "astext",
          [](const PyModule& self, bool show_meta_data, bool show_types) {
            PrintOptions options;
            options.show_metadata = show_meta_data;
            options.show_types = show_types;
            return print_module(self.module, options);
          },
          nb::arg("show_meta_data") = true, nb::arg("show_types") = false,
          "The text form; with the metadata it parses back to an equal module.")
      .def("__getitem__",
           [](const PyModule& self, nb::handle name) {
             auto* global = nb::isinstance<PyExpr>(name)
                                ? as<GlobalVarNode>(nb::cast<const PyNode&>(name).ref)
                                : nullptr;
             std::string text =
                 global != nullptr ? global->name_hint : to_text(name, "the name of a function");
             Function f = self.module->find(text);
             if (!f) throw nb::key_error(text.c_str());
             return wrap(f);
           })
      .def("__contains__",
           [](const PyModule& self, const std::string& name) {
             return static_cast<bool>(self.module->find(name));
           })
      .def(
          "get_global_var",
          [](const PyModule& self, const std::string& name) {
            GlobalVar g = self.module->find_global_var(name);
            if (!g) throw nb::key_error(name.c_str());
            return wrap(g);
          },
          nb::arg("name"), "What calls of the function of that name refer to.")
      .def(
          "get_type",
          [](const PyModule& self, const std::string& name) {
            TypeData t = self.module->find_type(name);
            if (!t) throw nb::key_error(name.c_str());
            nb::list out;
            out.append(wrap(t->header));
            for (const Constructor& c : t->constructors) out.append(wrap(c));
            return nb::tuple(out);
          },
          nb::arg("name"), "The data type of that name and its constructors.")
      .def_prop_ro(
          "type_definitions",
          [](const PyModule& self) {
            nb::list out;
            for (const TypeData& t : self.module->type_definitions) out.append(wrap(t));
            return out;
          },
          nb::sig("def type_definitions(self) -> list[Node]"), "The definitions of data types.")
      .def(
          "import_from_std",
          [](const PyModule& self, const std::string& file) {
            Module out = import_prelude(self.module, file);
            if (out.get() == self.module.get()) return self;
            return PyModule{infer_types(out), self.source_name, self.source_hash};
          },
          nb::arg("file"),
          "The module with what it lacks of prelude.rly, nat.rly or tensor_array.rly.")
      .def(
          "with_function",
          [](const PyModule& self, const std::string& name, const PyExprOf<FunctionNode>& given) {
            Function f = closed(given.get());
            Module out = with_function(self.module, global_var(name, f->type), f);
            return PyModule{infer_types(with_own_variables(out)), self.source_name,
                            self.source_hash};
          },
          nb::arg("name"), nb::arg("function"), "The module with one function added or replaced.")
      .def(
          "get_attr",
          [](const PyModule& self, const std::string& key) {
            auto it = self.module->attrs.find(key);
            return it == self.module->attrs.end() ? nb::none() : from_value(it->second);
          },
          nb::arg("attr_key"), "An attribute of the module; None where there is none of that name.")
      .def(
          "with_attr",
          [](const PyModule& self, const std::string& key, nb::handle value) {
            Dict attrs = self.module->attrs;
            attrs[key] = to_value(value);
            return with_attrs(self, std::move(attrs));
          },
          nb::arg("attr_key"), nb::arg("attr_value").none(), "The module with an attribute.")
      .def(
          "without_attr",
          [](const PyModule& self, const std::string& key) {
            Dict attrs = self.module->attrs;
            attrs.erase(key);
            return with_attrs(self, std::move(attrs));
          },
          nb::arg("attr_key"), "The module without an attribute.")
      .def_prop_ro("functions",
                   [](const PyModule& self) {
                     nb::dict out;
                     for (size_t i = 0; i < self.module->functions.size(); ++i) {
                       out[self.module->global_vars[i]->name_hint.c_str()] =
                           wrap(self.module->functions[i]);
                     }
                     return out;
                   })
      .def("__eq__",
           [](const PyModule& a, nb::handle b) {
             return nb::isinstance<PyModule>(b) &&
                    structural_equal(a.module, nb::cast<const PyModule&>(b).module);
           })
      .def("__hash__",
           [](const PyModule& a) { return static_cast<int64_t>(structural_hash(a.module) >> 1); })
      .def("__str__",
           [](const PyModule& self) {
             PrintOptions options;
             options.show_metadata = false;
             return print_module(self.module, options);
           })
      .def("__repr__", [](const PyModule& self) { return summary(self.module); });
  m.def("parse", [](const std::string& text, const std::string& name) {
    return compile_unlocked([&] {
      return PyModule{read_module(SourceFile::make(name, text)), name, ""};
    });
  });
  m.def("in_form", [](const PyModule& self, const std::string& form) {
    return !find_form_defect(self.module, form == "anf" ? Form::anf : Form::basic_blocks);
  });
  m.def(
      "free_vars",
      [](const PyExpr& e) {
        nb::list out;
        for (const Var& v : free_vars(e.expr())) out.append(wrap(v));
        return out;
      },
      nb::arg("expr"), nb::sig("def free_vars(expr: Expr) -> list[Var]"));
  m.def("infer_type", [](const PyExpr& e) { return wrap(infer_type(e.expr())); });
  m.def("parse_type", [](const std::string& text) { return wrap(parse_type(text)); });
  m.def(
      "structural_equal",
      [](nb::handle a, nb::handle b, bool map_free_vars) {
        return structural_equal(to_part(a), to_part(b), map_free_vars);
      },
      nb::arg("lhs"), nb::arg("rhs"), nb::arg("map_free_vars") = false,
      "Equal up to the names of bound variables; with `map_free_vars` of free ones too.");
  m.def(
      "structural_hash",
      [](nb::handle part, bool map_free_vars) {
        return static_cast<int64_t>(structural_hash(to_part(part), map_free_vars) >> 1);
      },
      nb::arg("part"), nb::arg("map_free_vars") = false,
      "A number that is the same for parts of programs that are structurally equal.");
  m.def("op_names", [] {
    std::vector<std::string> out;
    for (const Op& op : OpRegistry::global().all()) out.push_back(op->name);
    return out;
  });
  m.def("op_row",
        [](const std::string& name) { return op_row(*OpRegistry::global().get(name)->row); });
  m.def("op_node", [](const std::string& name) { return wrap(OpRegistry::global().get(name)); });
}

}  // namespace

nb::object wrap(const NodeRef& ref) {
  if (!ref) return nb::none();
  auto found = classes().find(ref.get()->kind());
  if (found != classes().end()) return found->second(ref);
  switch (ref.get()->info().family) {
    case family::type:
      return wrap_as<PyType>(ref);
    case family::dim:
      return wrap_as<PyDim>(ref);
    case family::attrs:
      return wrap_as<PyAttrs>(ref);
    default:
      return nb::cast(PyNode{ref});
  }
}

void bind_nodes(nb::module_& m) {
  nb::class_<PyNode>(m, "Node", "A part of a program: immutable; == is identity.")
      .def("__getattr__", &get_field, nb::sig("def __getattr__(self, name: str, /) -> typing.Any"))
      .def("__dir__", &field_names)
      .def(
          "__eq__",
          [](const PyNode& a, nb::handle b) {
            return nb::isinstance<PyNode>(b) && a.ref == nb::cast<const PyNode&>(b).ref;
          },
          nb::arg("other").none())
      .def("__hash__", [](const PyNode& a) { return reinterpret_cast<intptr_t>(a.ref.get()) >> 4; })
      .def("__str__", &node_text)
      .def("__repr__", &node_text);

  nb::class_<PyType, PyNode>(m, "Type", "A type; == compares structure.")
      .def(
          "__call__",
          [](const PyType& self, const nb::args& args) {
            if (as<GlobalTypeVarNode>(self.ref) == nullptr) {
              throw WrongArgument("only a data type, such as List, takes type arguments");
            }
            std::vector<Type> types;
            for (nb::handle a : args) types.push_back(to_type(a));
            return wrap(type_call(GlobalTypeVar::unchecked(self.ref), std::move(types)));
          },
          "The data type with type arguments: List applied to int32.")
      .def(
          "__eq__",
          [](const PyType& a, nb::handle b) {
            return nb::isinstance<PyType>(b) &&
                   structural_equal(a.ref, nb::cast<const PyType&>(b).ref);
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const PyType& a) { return static_cast<int64_t>(structural_hash(a.ref) >> 1); });
  using PyTensorType = PyTypeOf<TensorTypeNode>;
  nb::class_<PyTensorType, PyType>(m, "TensorType", "A dense tensor's type.")
      .def(
          "__init__",
          [](PyTensorType* self, nb::iterable shape, nb::handle dtype) {
            std::vector<Dim> dims;
            for (nb::handle d : shape) dims.push_back(to_dim(d));
            set_ref(self, tensor_type(std::move(dims), to_dtype(dtype)));
          },
          nb::arg("shape"), nb::arg("dtype") = "float32");
  using PyTupleType = PyTypeOf<TupleTypeNode>;
  nb::class_<PyTupleType, PyType>(m, "TupleType", "A tuple's type.")
      .def(
          "__init__",
          [](PyTupleType* self, const std::vector<PyType>& fields) {
            std::vector<Type> types;
            for (const PyType& f : fields) types.push_back(f.type());
            set_ref(self, tuple_type(std::move(types)));
          },
          nb::arg("fields"));
  using PyFuncType = PyTypeOf<FuncTypeNode>;
  nb::class_<PyFuncType, PyType>(m, "FuncType", "A function's type.")
      .def(
          "__init__",
          [](PyFuncType* self, const std::vector<PyType>& args, const PyType& ret,
             const std::vector<PyTypeOf<TypeVarNode>>& type_params) {
            std::vector<Type> types;
            for (const PyType& a : args) types.push_back(a.type());
            std::vector<TypeVar> bound;
            for (const auto& t : type_params) bound.push_back(TypeVar::unchecked(t.ref));
            set_ref(self, func_type(std::move(types), ret.type(), std::move(bound)));
          },
          nb::arg("arg_types"), nb::arg("ret_type"),
          nb::arg("type_params") = std::vector<PyTypeOf<TypeVarNode>>());
  using PyRefType = PyTypeOf<RefTypeNode>;
  nb::class_<PyRefType, PyType>(m, "RefType", "The type of references to values of a type.")
      .def(
          "__init__",
          [](PyRefType* self, const PyType& value) { set_ref(self, ref_type(value.type())); },
          nb::arg("value"));
  using PyTypeCall = PyTypeOf<TypeCallNode>;
  nb::class_<PyTypeCall, PyType>(m, "TypeCall", "A data type with type arguments.")
      .def(
          "__init__",
          [](PyTypeCall* self, const PyTypeOf<GlobalTypeVarNode>& func,
             const std::vector<PyType>& args) {
            std::vector<Type> types;
            for (const PyType& a : args) types.push_back(a.type());
            set_ref(self, type_call(GlobalTypeVar::unchecked(func.ref), std::move(types)));
          },
          nb::arg("func"), nb::arg("args"));
  using PyDimVar = PyTypeOf<TypeVarNode>;
  nb::class_<PyDimVar, PyType> type_var(m, "TypeVar",
                                        "A type variable; by default a named dimension.");
  type_var.def(
      "__init__",
      [](PyDimVar* self, const std::string& name, int64_t is_dim) {
        if (is_dim != 0 && is_dim != 1) {
          throw WrongArgument("a type variable is of the kind Type or ShapeVar");
        }
        set_ref(self, relay::type_var(name, is_dim == 1 ? Kind::Dim : Kind::Type));
      },
      nb::arg("name"), nb::arg("is_dim") = 1,
      nb::sig("def __init__(self, name: str, is_dim: bool | int = True) -> None"),
      "is_dim: whether it is a dimension, or `relay.TypeKind.ShapeVar` or `.Type`.");
  bind_dim_arithmetic(type_var);
  nb::class_<PyDim, PyNode> dim(
      m, "Dim", "A size that is computed of others: 2 * n, n + m; == compares structure.");
  dim.def(
         "__eq__",
         [](const PyDim& a, nb::handle b) {
           return nb::isinstance<PyDim>(b) &&
                  structural_equal(a.ref, nb::cast<const PyDim&>(b).ref);
         },
         nb::arg("other").none())
      .def("__hash__",
           [](const PyDim& a) { return static_cast<int64_t>(structural_hash(a.ref) >> 1); });
  bind_dim_arithmetic(dim);
  bind_attrs(m);

  nb::class_<PyExpr, PyNode>(m, "Expr", "An expression.");
  bind_exprs(m);
  bind_modules(m);
}

}  // namespace relay::bind
