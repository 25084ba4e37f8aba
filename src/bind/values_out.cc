// Run-time values as Python has them, led by their types: arrays, tuples, lists for `List`, a value
// or None for `Option`, RefValue, FunctionValue, and ConstructorValue for any other data type.
#include <unordered_map>
#include <vector>

#include "bind/data_types.h"
#include "bind/data_values.h"
#include "bind/device_arrays.h"
#include "bind/exchange.h"
#include "bind/wrong_argument.h"

namespace relay::bind {
namespace {

using runtime::Object;
using runtime::ObjectKind;
using runtime::Value;

[[noreturn]] void cannot_hold() {
  throw WrongArgument(
      "the result holds data whose type is not known here: only a program that is built in this "
      "process says what its data types are");
}

class Writer {
 public:
  Writer(const Module& mod, Exchange& exchange) : types_(mod), exchange_(exchange) {}

  nb::object write(const Value& value, const Type& type) {
    nb::object done = begin(value, type);
    while (true) {
      if (done.is_valid()) {
        if (open_.empty()) return done;
        open_.back().done.append(done);
      }
      done = step();
    }
  }

 private:
  // What is written with its parts one after the other.
  struct Open {
    Value value;               // of a list: what is left of it
    const DataType* data;      // null: a tuple
    std::vector<Type> fields;  // empty when they are not known
    nb::list done;
    const Object* shared;  // where others refer to the value too
    size_t next = 0;
  };

  // The object of a value without parts; invalid for one that is open now.
  nb::object begin(const Value& value, const Type& type) {
    if (value.is_tensor()) return to_array(value.tensor());
    if (value.is_tuple()) {
      auto* t = as<TupleTypeNode>(type);
      bool typed = t != nullptr && t->fields.size() == value.num_fields();
      open_.push_back(
          {value, nullptr, typed ? t->fields : std::vector<Type>(), nb::list(), nullptr});
      return {};
    }
    if (value.kind() == ObjectKind::ref) return reference(value, type);
    if (value.kind() == ObjectKind::closure) return exchange_.function(value, type);
    if (value.kind() != ObjectKind::adt) cannot_hold();
    const DataType* data = types_.of(type);
    auto which = static_cast<size_t>(value.tag());
    if (data == nullptr || which >= data->size()) cannot_hold();
    if (data->is_option) {
      // Options of options are not: there is one value within.
      return which == data->empty ? nb::none() : begin(value.field(0), data->fields[which][0]);
    }
    if (data->is_list) {
      open_.push_back({value, data, {}, nb::list(), nullptr});
      return {};
    }
    const bool in_places = runtime::is_object(value.object()) &&
                           value.object()->refs.load(std::memory_order_relaxed) > 2;
    const Object* shared = in_places ? value.object() : nullptr;
    if (shared != nullptr) {
      auto found = shared_.find(shared);
      if (found != shared_.end()) return found->second;
    }
    open_.push_back({value, data, data->fields[which], nb::list(), shared});
    return {};
  }

  // Begins the next part of what was opened last, or closes it and gives its object.
  nb::object step() {
    Open& top = open_.back();
    if (top.data != nullptr && top.data->is_list) {
      if (static_cast<size_t>(top.value.tag()) != top.data->full) return close(top.done);
      Value first = top.value.field(0);
      top.value = top.value.field(1);
      return begin(first, top.data->fields[top.data->full][0]);
    }
    if (top.next < top.value.num_fields()) {
      size_t i = top.next++;
      Value field = top.value.field(i);
      Type type = i < top.fields.size() ? top.fields[i] : nullptr;
      return begin(field, type);
    }
    if (top.data == nullptr) return close(nb::tuple(top.done));
    const std::string& name = top.data->constructor(static_cast<size_t>(top.value.tag())).name_hint;
    nb::object made = nb::cast(
        ConstructorValue{name, nb::tuple(top.done), top.data->definition->header->name_hint});
    if (top.shared != nullptr) shared_[top.shared] = made;
    return close(made);
  }

  nb::object close(nb::object made) {
    open_.pop_back();
    return made;
  }

  // The same object for the same reference; its content comes with write_back.
  nb::object reference(const Value& value, const Type& type) {
    if (Reference* known = exchange_.of_cell(value.object())) return known->object;
    return exchange_.add(nb::cast(RefValue{nb::none()}), value, type).object;
  }

  DataTypes types_;
  Exchange& exchange_;
  std::vector<Open> open_;
  // Data that stands in several places, which are one object in Python too.
  std::unordered_map<const Object*, nb::object> shared_;
};

}  // namespace

nb::object from_run_value(const Value& value, const Type& type, const Module& mod,
                          Exchange& exchange) {
  if (value.is_tensor()) return to_array(value.tensor());
  return Writer(mod, exchange).write(value, type);
}

}  // namespace relay::bind
