// Values of Python as run-time values, led by the types of parameters.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/codes/runtime.h"
#include "base/quantities.h"
#include "bind/data_types.h"
#include "bind/data_values.h"
#include "bind/device_arrays.h"
#include "bind/exchange.h"
#include "bind/functions.h"
#include "bind/wrong_argument.h"
#include "node/structural.h"

namespace relay::bind {
namespace {

using runtime::Value;

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

constexpr const char* kTensorHelp =
    "give a NumPy array, a DLPack tensor, a number or a list of numbers";

// Reads one input; what is wrong is said with the way to it: "input 'xs', element 3, field 0".
class Reader {
 public:
  // `whole` is the type of a value that no slot describes.
  Reader(const runtime::Slot& slot, const Module& mod, Exchange& exchange, Type whole = nullptr)
      : slot_(slot), whole_(std::move(whole)), types_(mod), exchange_(exchange) {}

  Value read(nb::handle object, const Type& type) {
    Value done = begin(object, type);
    while (true) {
      if (done) {
        if (open_.empty()) return done;
        open_.back().done.push_back(std::move(done));
      }
      Open& top = open_.back();
      size_t i = top.done.size();
      if (i == top.given.size()) {
        done = close();
      } else {
        nb::object part = top.given[i];
        Type of = top.types[std::min(i, top.types.size() - 1)];
        done = begin(part, of);
      }
    }
  }

  // An array or number for a parameter that is a tensor; the program checks its shape.
  Value whole(nb::handle object) {
    return tensor_from(object, slot_.tensor.dtype, [&] { return slot_.type_string(); });
  }

 private:
  enum class Made { tuple, list, data, option, ref };
  // What is read with its parts one after the other.
  struct Open {
    Made made;
    nb::object object;
    std::vector<nb::object> given;
    std::vector<Type> types;  // of the parts; the last one of all that follow
    const DataType* data = nullptr;
    size_t constructor = 0;
    std::vector<Value> done{};
  };

  // The value of an object without parts; null for one that is open now.
  Value begin(nb::handle object, const Type& type) {
    if (auto* t = as<TensorTypeNode>(type)) return tensor(object, *t);
    if (auto* t = as<TupleTypeNode>(type)) return tuple(object, *t);
    if (isa<TypeVarNode>(type)) return anything(object, type);
    if (auto* t = as<RefTypeNode>(type)) return reference(object, *t);
    if (isa<FuncTypeNode>(type)) return function(object, type);
    const DataType* data = types_.of(type);
    if (data == nullptr) {
      fail(type, object,
           "Python has no values of this type; only a program that is built here knows how data "
           "types are made");
    }
    bool made_by_name = nb::isinstance<ConstructorValue>(object);
    if (data->is_list && !made_by_name) return list(object, type, *data);
    if (data->is_option && !made_by_name) {
      if (object.is_none()) return Value::adt(static_cast<int32_t>(data->empty), {});
      open_.push_back({Made::option,
                       nb::borrow(object),
                       {nb::borrow(object)},
                       data->fields[data->full],
                       data,
                       data->full});
      return {};
    }
    return constructed(object, type, *data);
  }

  Value close() {
    Open& top = open_.back();
    Value out;
    switch (top.made) {
      case Made::tuple:
        out = Value::tuple(top.done);
        break;
      case Made::list:
        out = Value::adt(static_cast<int32_t>(top.data->empty), {});
        for (size_t i = top.done.size(); i-- > 0;) {
          out = Value::adt(static_cast<int32_t>(top.data->full),
                           {std::move(top.done[i]), std::move(out)});
        }
        --depth_;
        break;
      case Made::data:
        out = Value::adt(static_cast<int32_t>(top.constructor), top.done);
        made_[top.object.ptr()] = {top.data, out};
        --depth_;
        break;
      case Made::option:
        out = Value::adt(static_cast<int32_t>(top.constructor), top.done);
        break;
      case Made::ref: {
        Reference& r = *exchange_.of_object(top.object);
        r.given = top.done[0];
        static_cast<runtime::Cell*>(r.cell.object())->fields[0] = std::move(top.done[0]).take();
        out = r.cell;
        --depth_;
        break;
      }
    }
    around_.erase(top.object.ptr());
    open_.pop_back();
    return out;
  }

  void open(Open parts) {
    if (PyList_Check(parts.object.ptr()) && !around_.insert(parts.object.ptr()).second) {
      fail(nullptr, parts.object, "it holds itself; a value of the language is finite");
    }
    open_.push_back(std::move(parts));
  }

  template <class Wanted>
  Value tensor_from(nb::handle object, DType dtype, const Wanted& wanted) {
    try {
      // Data keeps its tensors for as long as it likes, and is on the host.
      if (depth_ == 0) {
        if (auto there = tensor_on_device(object)) return *there;
      }
      return to_tensor_of(object, dtype);
    } catch (const WrongArgument& e) {
      fail_as(e.message(), wanted());
    } catch (nb::builtin_exception& e) {
      fail_as(e.what(), wanted());
    } catch (nb::python_error& e) {
      fail_as(python_text(e.value()), wanted());
    }
  }

  Value tensor(nb::handle object, const TensorTypeNode& type) {
    auto want = [&] { return to_string(Type(&type)); };
    Value out = tensor_from(object, type.dtype, want);
    Tensor made = out.tensor();
    bool fits = made.dtype() == type.dtype && made.shape().size() == type.shape.size();
    for (size_t i = 0; fits && i < type.shape.size(); ++i) {
      auto size = as_const(type.shape[i]);
      // The run-time system compares named sizes of parameters, but not those within data.
      if (!size && !isa<DimAnyNode>(type.shape[i]) && depth_ > 0) {
        fail_as("a tensor within data", want(), "give sizes within data types as numbers or `?`");
      }
      fits = !size || *size == made.shape()[i];
    }
    if (!fits) fail_as(runtime::type_string(made.dtype(), made.shape()), want());
    return out;
  }

  // What a type variable stands for is not looked into.
  Value anything(nb::handle object, const Type& type) {
    if (!PyTuple_Check(object.ptr())) return to_tensor(object);
    open({Made::tuple, nb::borrow(object), items(object, type), {type}});
    return {};
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
    open({Made::tuple, nb::borrow(object), std::move(given), type.fields});
    return {};
  }

  Value list(nb::handle object, const Type& type, const DataType& data) {
    ++depth_;
    open({Made::list, nb::borrow(object), items(object, type), {data.fields[data.full][0]}, &data});
    return {};
  }

  Value constructed(nb::handle object, const Type& type, const DataType& data) {
    if (!nb::isinstance<ConstructorValue>(object)) {
      fail(type, object, "give a relay.ConstructorValue of this data type");
    }
    auto before = made_.find(object.ptr());
    if (before != made_.end() && before->second.first == &data) return before->second.second;
    const auto& made = nb::cast<const ConstructorValue&>(object);
    size_t which = data.find(made.constructor);
    bool other = !made.type.empty() && made.type != data.definition->header->name_hint;
    if (which == data.size() || other) fail(type, object, "it has no such constructor");
    size_t count = data.fields[which].size();
    if (nb::len(made.fields) != count) {
      fail(type, object, "the constructor takes " + counted(count, "field"));
    }
    if (count == 0) return Value::adt(static_cast<int32_t>(which), {});
    std::vector<nb::object> given;
    for (size_t i = 0; i < count; ++i) given.push_back(made.fields[i]);
    ++depth_;
    open({Made::data, nb::borrow(object), std::move(given), data.fields[which], &data, which});
    return {};
  }

  Value reference(nb::handle object, const RefTypeNode& type) {
    if (!nb::isinstance<RefValue>(object)) fail(Type(&type), object, "give a relay.RefValue");
    if (Reference* known = exchange_.of_object(object)) {
      if (!structural_equal(known->type, Type(&type))) {
        fail_as("the same RefValue as one of type " + to_string(known->type),
                to_string(Type(&type)), "what a reference refers to is of one type");
      }
      return known->cell;
    }
    exchange_.add(nb::borrow(object), Value::ref(Value()), Type(&type));
    ++depth_;
    open({Made::ref, nb::borrow(object), {nb::cast<const RefValue&>(object).value}, {type.value}});
    return {};
  }

  Value function(nb::handle object, const Type& type) {
    if (!nb::isinstance<FunctionValue>(object)) {
      fail(type, object,
           "give a relay.FunctionValue that this program gave; a function of Python is none of the "
           "program's: write it into the program");
    }
    const auto& given = nb::cast<const FunctionValue&>(object);
    if (given.owner != exchange_.owner()) {
      fail(type, object, "it is of another program: a program runs its own functions only");
    }
    if (!structural_equal(given.type, type)) {
      fail_as(to_string(Type(given.type)), to_string(type),
              "give the sizes of functions among parameters as numbers or `?`");
    }
    if (!exchange_.take_references(given)) {
      fail_as("a function that captured a RefValue which is given too",
              "one reference in one place", "give the function before the RefValue");
    }
    exchange_.add_function(nb::borrow(object), given.value);
    return given.value;
  }

  [[noreturn]] void fail(const Type& type, nb::handle object, const std::string& help) {
    fail_as(class_name(object) + " " + python_text(object),
            type     ? to_string(type)
            : whole_ ? to_string(whole_)
                     : slot_.type_string(),
            help);
  }
  [[noreturn]] void fail_as(const std::string& found, const std::string& expected,
                            const std::string& help = kTensorHelp) {
    Diagnostic problem(codes::run_input, {},
                       "input '" + slot_.name + "'" + way() + " does not fit");
    problem.expected(expected).found(found);
    if (!help.empty()) problem.help(help);
    throw UserError(problem);
  }

  // The way to what is read now: its first and last steps, where they are many.
  std::string way() const {
    constexpr size_t kShown = 4;
    std::vector<std::string> steps;
    for (const Open& o : open_) {
      if (o.made == Made::option) continue;
      std::string what = o.made == Made::list  ? "element"
                         : o.made == Made::ref ? "content"
                                               : "field";
      steps.push_back(o.made == Made::ref ? what : what + " " + std::to_string(o.done.size()));
    }
    std::string out;
    for (size_t i = 0; i < steps.size(); ++i) {
      bool between = i >= kShown && i + kShown < steps.size();
      if (!between) out += ", " + steps[i];
      if (between && i == kShown) {
        out += ", ... " + std::to_string(steps.size() - 2 * kShown) + " more ...";
      }
    }
    return out;
  }

  const runtime::Slot& slot_;
  Type whole_;
  DataTypes types_;
  Exchange& exchange_;
  std::vector<Open> open_;
  std::unordered_set<PyObject*> around_;  // the lists that are open
  // Data that stands in several places is one value.
  std::unordered_map<PyObject*, std::pair<const DataType*, Value>> made_;
  int depth_ = 0;  // data and references around the value that is read
};

}  // namespace

Value to_run_value(nb::handle object, const runtime::Slot& slot, const Type& type,
                   const Module& mod, Exchange& exchange) {
  Reader reader(slot, mod, exchange);
  if (slot.is_tensor) return reader.whole(object);
  if (type || slot.parts.empty()) return reader.read(object, type);
  size_t at = 0;
  return reader.read(object, type_of(slot.parts, at));
}

Value to_run_value(nb::handle object, const std::string& name, const Type& type, const Module& mod,
                   Exchange& exchange) {
  runtime::Slot slot;
  slot.name = name;
  return Reader(slot, mod, exchange, type).read(object, type);
}

}  // namespace relay::bind
