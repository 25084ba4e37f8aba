// Values of the language at run time: tensors, tuples, values of algebraic data types, closures
// and references.
//
//   Value pair = Value::tuple({x, y});
//   Value list = Value::adt(kCons, {head, tail});
//   list.field(1).tag();
//
// A Value is a reference-counted handle; null by default. Everything but a reference is immutable.
// Letting go of a deep value needs constant stack.
#pragma once

#include <initializer_list>
#include <span>

#include "base/diagnostic.h"
#include "runtime/core/immediate.h"
#include "runtime/core/object.h"
#include "runtime/core/tensor.h"

namespace relay::runtime {

class Value {
 public:
  Value() = default;
  Value(Tensor tensor) : object_(std::move(tensor).take()) {}
  Value(const Value& other) : object_(other.object_) { retain_value(object_); }
  Value(Value&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Value() { release_value(object_); }

  static Value tuple(std::span<const Value> fields) { return make(ObjectKind::tuple, 0, fields); }
  static Value tuple(std::initializer_list<Value> fields) {
    return tuple(std::span(fields.begin(), fields.size()));
  }
  static Value adt(int32_t tag, std::span<const Value> fields) {
    return make(ObjectKind::adt, tag, fields);
  }
  static Value adt(int32_t tag, std::initializer_list<Value> fields) {
    return adt(tag, std::span(fields.begin(), fields.size()));
  }
  static Value ref(Value content) { return make(ObjectKind::ref, 0, std::span(&content, 1)); }

  explicit operator bool() const { return object_ != nullptr; }
  ObjectKind kind() const { return kind_of(object_); }
  bool is_tensor() const { return object_ != nullptr && kind() == ObjectKind::tensor; }
  bool is_tuple() const { return object_ != nullptr && kind() == ObjectKind::tuple; }

  // Only for a value of that kind. A scalar in the machine's form gives a new tensor each time.
  Tensor tensor() const {
    RELAY_CHECK(is_tensor());
    return tensor_of(object_);
  }
  int32_t tag() const { return cell()->tag; }
  size_t num_fields() const { return cell()->count; }
  Value field(size_t i) const {
    RELAY_CHECK(i < num_fields());
    return share(cell()->fields[i]);
  }

  static Value adopt(Object* object) {
    Value value;
    value.object_ = object;
    return value;
  }
  static Value share(Object* object) {
    retain_value(object);
    return adopt(object);
  }
  Object* object() const { return object_; }
  Object* take() && { return std::exchange(object_, nullptr); }

 private:
  static Value make(ObjectKind kind, int32_t tag, std::span<const Value> fields) {
    Cell* cell = Cell::make(kind, tag, static_cast<uint32_t>(fields.size()));
    for (size_t i = 0; i < fields.size(); ++i) {
      retain_value(fields[i].object_);
      cell->fields[i] = fields[i].object_;
    }
    return adopt(cell);
  }
  const Cell* cell() const {
    RELAY_CHECK(object_ != nullptr && kind() != ObjectKind::tensor);
    return &cell_of(object_);
  }

  Object* object_ = nullptr;
};

}  // namespace relay::runtime
