// Run-time values as Python has them, led by their types: arrays, tuples, lists for `List`, a value
// or None for `Option`, and ConstructorValue for any other data type.
#include <nanobind/stl/string.h>

#include <algorithm>

#include "base/codes/runtime.h"
#include "bind/convert.h"
#include "ir/type_params.h"
#include "node/structural.h"

namespace relay::bind {
namespace {

using runtime::Value;

// A value of a data type that Python has no type of its own for.
struct ConstructorValue {
  std::string constructor;
  nb::object fields;  // a tuple
};

// A data type applied to its arguments.
struct Data {
  TypeData definition;  // null: not a data type, or one that is not known
  TypeParams arguments;

  Type field(size_t constructor, size_t i) const {
    return with_type_params(definition->constructors[constructor]->inputs[i], arguments);
  }
  size_t size() const { return definition->constructors.size(); }
  const ConstructorNode& constructor(size_t i) const { return *definition->constructors[i]; }
  // The index of the constructor of that name; size() when there is none.
  size_t find(std::string_view name) const {
    size_t i = 0;
    while (i < size() && constructor(i).name_hint != name) ++i;
    return i;
  }
  // Whether the definition is, but for order, that of the prelude: one constructor with so many
  // fields and one without.
  bool is(std::string_view type, std::string_view full, size_t fields,
          std::string_view empty) const {
    return definition && size() == 2 && definition->header->name_hint == type && find(full) < 2 &&
           constructor(find(full)).inputs.size() == fields && find(empty) < 2 &&
           constructor(find(empty)).inputs.empty();
  }
  bool is_list(const Type& self) const {
    if (!is("List", "Cons", 2, "Nil")) return false;
    Type tail = field(find("Cons"), 1);
    return tail == self || structural_equal(tail, self);
  }
  // An option of an option is not: None could be either.
  bool is_option(const Module& mod) const;
};

Data data_of(const Type& type, const Module& mod) {
  Data out;
  auto* applied = as<TypeCallNode>(type);
  auto* header = as<GlobalTypeVarNode>(applied != nullptr ? applied->func : type);
  if (header == nullptr || !mod) return out;
  TypeData definition = mod->find_type(header->name_hint);
  size_t given = applied != nullptr ? applied->args.size() : 0;
  if (!definition || definition->type_vars.size() != given) return out;
  for (size_t i = 0; i < given; ++i) {
    out.arguments[definition->type_vars[i].get()] = applied->args[i];
  }
  out.definition = definition;
  return out;
}

bool Data::is_option(const Module& mod) const {
  auto is_it = [](const Data& data) { return data.is("Option", "Some", 1, "None"); };
  return is_it(*this) && !is_it(data_of(field(find("Some"), 0), mod));
}

// The type of a parameter as far as an artifact keeps it: null for data, functions and references.
Type type_of(const std::vector<runtime::TypePart>& parts, size_t& at) {
  const runtime::TypePart& part = parts[at++];
  if (part.kind == runtime::TypePart::tensor) {
    std::vector<Dim> dims;
    for (int64_t d : part.spec.shape) dims.push_back(d < 0 ? dim_any() : dim(d));
    return tensor_type(std::move(dims), part.spec.dtype);
  }
  if (part.kind == runtime::TypePart::other) return nullptr;
  std::vector<Type> fields;
  for (uint32_t i = 0; i < part.fields; ++i) {
    fields.push_back(type_of(parts, at));
    if (!fields.back()) return nullptr;
  }
  return tuple_type(std::move(fields));
}

// Reads one input; what is wrong is said with the way to it: "input 'xs', element 3, field 0".
class Reader {
 public:
  Reader(const runtime::Slot& slot, const Module& mod) : slot_(slot), mod_(mod) {}

  Value read(nb::handle object, const Type& type) {
    Nesting deeper;
    if (auto* t = as<TensorTypeNode>(type)) return tensor(object, *t);
    if (auto* t = as<TupleTypeNode>(type)) return tuple(object, *t);
    if (isa<TypeVarNode>(type)) return anything(object);
    Data data = data_of(type, mod_);
    if (!data.definition) {
      fail(type, object,
           "Python has no values of this type; only a program that is built here knows how data "
           "types are made");
    }
    if (data.is_list(type)) return list(object, type, data);
    if (data.is_option(mod_)) {
      if (object.is_none()) return Value::adt(tag(data, "None"), {});
      size_t some = data.find("Some");
      return Value::adt(static_cast<int32_t>(some), {read(object, data.field(some, 0))});
    }
    return constructed(object, type, data);
  }

  // An array or number for a parameter that is a tensor; the program checks its shape.
  Value whole(nb::handle object) {
    try {
      return to_tensor_of(object, slot_.tensor.dtype);
    } catch (nb::builtin_exception& e) {
      fail_as(e.what(), slot_.type_string());
    } catch (nb::python_error& e) {
      fail_as(python_text(e.value()), slot_.type_string());
    }
  }

 private:
  static int32_t tag(const Data& data, std::string_view name) {
    return static_cast<int32_t>(data.find(name));
  }

  Value tensor(nb::handle object, const TensorTypeNode& type) {
    Tensor out;
    auto want = [&] { return to_string(Type(&type)); };
    try {
      out = to_tensor_of(object, type.dtype);
    } catch (nb::builtin_exception& e) {
      fail_as(e.what(), want());
    } catch (nb::python_error& e) {
      fail_as(python_text(e.value()), want());
    }
    bool fits = out.dtype() == type.dtype && out.shape().size() == type.shape.size();
    for (size_t i = 0; fits && i < type.shape.size(); ++i) {
      auto size = as_const(type.shape[i]);
      // The run-time system compares named sizes of parameters, but not those within data.
      if (!size && !isa<DimAnyNode>(type.shape[i]) && depth_ > 0) {
        fail_as("a tensor within data", want(), "give sizes within data types as numbers or `?`");
      }
      fits = !size || *size == out.shape()[i];
    }
    if (!fits) fail_as(runtime::type_string(out.dtype(), out.shape()), want());
    return out;
  }

  // What a type variable stands for is not looked into.
  Value anything(nb::handle object) {
    Nesting deeper;
    if (!PyTuple_Check(object.ptr())) return to_tensor(object);
    std::vector<Value> fields;
    for (nb::handle field : nb::iter(object)) fields.push_back(anything(field));
    return Value::tuple(fields);
  }

  std::vector<nb::object> items(nb::handle object, const Type& type) {
    if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) fail(type, object, "");
    std::vector<nb::object> out;
    for (nb::handle item : nb::iter(object)) out.push_back(nb::borrow(item));
    return out;
  }

  Value tuple(nb::handle object, const TupleTypeNode& type) {
    std::vector<nb::object> given = items(object, Type(&type));
    if (given.size() != type.fields.size()) fail(Type(&type), object, "");
    std::vector<Value> fields;
    for (size_t i = 0; i < given.size(); ++i) {
      fields.push_back(at("field", i, [&] { return read(given[i], type.fields[i]); }));
    }
    return Value::tuple(fields);
  }

  Value list(nb::handle object, const Type& type, const Data& data) {
    std::vector<nb::object> given = items(object, type);
    size_t cons = data.find("Cons");
    Type element = data.field(cons, 0);
    ++depth_;
    std::vector<Value> values;
    for (size_t i = 0; i < given.size(); ++i) {
      values.push_back(at("element", i, [&] { return read(given[i], element); }));
    }
    --depth_;
    Value out = Value::adt(tag(data, "Nil"), {});
    for (size_t i = values.size(); i-- > 0;) {
      out = Value::adt(static_cast<int32_t>(cons), {std::move(values[i]), std::move(out)});
    }
    return out;
  }

  Value constructed(nb::handle object, const Type& type, const Data& data) {
    if (!nb::isinstance<ConstructorValue>(object)) {
      fail(type, object, "give a relay.ConstructorValue of this data type");
    }
    const auto& made = nb::cast<const ConstructorValue&>(object);
    size_t which = data.find(made.constructor);
    if (which == data.size()) fail(type, object, "it has no such constructor");
    size_t count = data.constructor(which).inputs.size();
    if (nb::len(made.fields) != count) {
      fail(type, object, "the constructor takes " + std::to_string(count) + " fields");
    }
    ++depth_;
    std::vector<Value> fields;
    for (size_t i = 0; i < count; ++i) {
      nb::object field = made.fields[i];
      fields.push_back(at("field", i, [&] { return read(field, data.field(which, i)); }));
    }
    --depth_;
    return Value::adt(static_cast<int32_t>(which), fields);
  }

  template <class F>
  Value at(const char* what, size_t i, F read_part) {
    place_.emplace_back(what, i);
    Value out = read_part();
    place_.pop_back();
    return out;
  }

  [[noreturn]] void fail(const Type& type, nb::handle object, const std::string& help) {
    fail_as(class_name(object) + " " + python_text(object),
            type ? to_string(type) : slot_.type_string(), help);
  }
  [[noreturn]] void fail_as(const std::string& found, const std::string& expected,
                            const std::string& help =
                                "give a NumPy array, a DLPack tensor, a "
                                "number or a list of numbers") {
    std::string where = "input '" + slot_.name + "'";
    for (const auto& [what, i] : place_)
      where += std::string(", ") + what + " " + std::to_string(i);
    Diagnostic problem(codes::run_input, {}, where + " does not fit");
    problem.expected(expected).found(found);
    if (!help.empty()) problem.help(help);
    throw UserError(problem);
  }

  const runtime::Slot& slot_;
  const Module& mod_;
  std::vector<std::pair<const char*, size_t>> place_;
  int depth_ = 0;  // data types around the value that is read
};

[[noreturn]] void cannot_hold() {
  throw nb::type_error(
      "the result holds a function, a reference, or data whose type is not known here, which "
      "Python cannot hold");
}

nb::object from_list(Value value, const Data& data, const Module& mod) {
  nb::list out;
  size_t cons = data.find("Cons");
  Type element = data.field(cons, 0);
  while (static_cast<size_t>(value.tag()) == cons) {
    out.append(from_run_value(value.field(0), element, mod));
    value = value.field(1);
  }
  return out;
}

}  // namespace

runtime::Value to_run_value(nb::handle object, const runtime::Slot& slot, const Type& type,
                            const Module& mod) {
  Reader reader(slot, mod);
  if (slot.is_tensor) return reader.whole(object);
  if (type || slot.parts.empty()) return reader.read(object, type);
  size_t at = 0;
  return reader.read(object, type_of(slot.parts, at));
}

nb::object from_run_value(const runtime::Value& value, const Type& type, const Module& mod) {
  Nesting deeper;
  if (value.is_tensor()) return to_numpy(value.tensor());
  if (value.is_tuple()) {
    auto* t = as<TupleTypeNode>(type);
    bool typed = t != nullptr && t->fields.size() == value.num_fields();
    nb::list fields;
    for (size_t i = 0; i < value.num_fields(); ++i) {
      fields.append(from_run_value(value.field(i), typed ? t->fields[i] : nullptr, mod));
    }
    return nb::tuple(fields);
  }
  if (value.kind() != runtime::ObjectKind::adt) cannot_hold();
  Data data = data_of(type, mod);
  auto which = static_cast<size_t>(value.tag());
  if (!data.definition || which >= data.size()) cannot_hold();
  if (data.is_list(type)) return from_list(value, data, mod);
  if (data.is_option(mod)) {
    if (value.num_fields() == 0) return nb::none();
    return from_run_value(value.field(0), data.field(which, 0), mod);
  }
  nb::list fields;
  for (size_t i = 0; i < value.num_fields(); ++i) {
    fields.append(from_run_value(value.field(i), data.field(which, i), mod));
  }
  return nb::cast(ConstructorValue{data.constructor(which).name_hint, nb::tuple(fields)});
}

void bind_values(nb::module_& m) {
  nb::class_<ConstructorValue>(m, "ConstructorValue",
                               "A value of a data type: the name of its constructor, and its "
                               "fields. Lists and options of the "
                               "prelude are Python's lists, and values or None.")
      .def(
          "__init__",
          [](ConstructorValue* self, const std::string& constructor, nb::iterable fields) {
            new (self) ConstructorValue{constructor, nb::tuple(fields)};
          },
          nb::arg("constructor"), nb::arg("fields") = nb::tuple())
      .def_ro("constructor", &ConstructorValue::constructor)
      .def_prop_ro(
          "fields", [](const ConstructorValue& self) { return self.fields; },
          nb::sig("def fields(self) -> tuple[object, ...]"))
      .def("__eq__",
           [](const ConstructorValue& a, nb::handle other) {
             if (!nb::isinstance<ConstructorValue>(other)) return false;
             const auto& b = nb::cast<const ConstructorValue&>(other);
             return a.constructor == b.constructor && a.fields.equal(b.fields);
           })
      .def("__repr__", [](const ConstructorValue& self) {
        Nesting deeper;
        std::string out = "ConstructorValue('" + self.constructor + "'";
        if (nb::len(self.fields) != 0)
          out += ", " + to_text(nb::repr(self.fields), "a representation");
        return out + ")";
      });
}

}  // namespace relay::bind
