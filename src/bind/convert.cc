#include "bind/convert.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>

#include "base/diagnostic_codes.h"

namespace relay::bind {
namespace {

nb::object numpy() { return nb::module_::import_("numpy"); }

// The dtype of a buffer's element, "<f" of 4 bytes; empty when Relay has none like it.
std::optional<DType> buffer_dtype(const char* format, Py_ssize_t item_size) {
  if (format == nullptr) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  int bits = static_cast<int>(item_size) * 8;
  DType out;
  if (*format == '?') {
    out = DType::Bool();
  } else if (std::strchr("bhilqn", *format) != nullptr) {
    out = DType::Int(bits);
  } else if (std::strchr("BHILQN", *format) != nullptr) {
    out = DType::UInt(bits);
  } else if (std::strchr("efd", *format) != nullptr) {
    out = DType::Float(bits);
  } else {
    return std::nullopt;
  }
  return out.valid() ? std::optional(out) : std::nullopt;
}

// Releases a Python object's buffer from whatever thread lets go of it last.
struct BufferOwner {
  Py_buffer view{};
  ~BufferOwner() {
    if (Py_IsInitialized() == 0) return;
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view);
  }
};

// nullopt: the object does not show its memory, or its elements have no counterpart in Relay.
std::optional<Tensor> try_buffer(nb::handle object) {
  auto owner = std::make_shared<BufferOwner>();
  Py_buffer& view = owner->view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  auto dtype = buffer_dtype(view.format, view.itemsize);
  if (!dtype) return std::nullopt;
  std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
  bool aligned = reinterpret_cast<uintptr_t>(view.buf) % dtype->bytes() == 0;
  if (view.buf != nullptr && aligned && PyBuffer_IsContiguous(&view, 'C') != 0) {
    return Tensor::from_external(view.buf, *dtype, shape, owner, view.readonly != 0);
  }
  Tensor copy = Tensor::empty(*dtype, shape);
  if (copy.byte_size() != 0 && PyBuffer_ToContiguous(copy.data(), &view, view.len, 'C') != 0) {
    throw nb::python_error();
  }
  return copy;
}

// The name of an array's element type; empty when it has none.
std::string element_type(nb::handle object) {
  if (!nb::hasattr(object, "dtype")) return "";
  nb::object dtype = object.attr("dtype");
  return nb::cast<std::string>(nb::str(dtype));
}

[[noreturn]] void no_counterpart(nb::handle object) {
  throw nb::type_error(
      ("arrays of element type '" + element_type(object) + "' have no counterpart in Relay")
          .c_str());
}

Tensor from_capsule(nb::object capsule) {
  PyObject* raw = capsule.ptr();
  if (PyCapsule_IsValid(raw, "dltensor_versioned") != 0) {
    void* managed = PyCapsule_GetPointer(raw, "dltensor_versioned");
    PyCapsule_SetName(raw, "used_dltensor_versioned");
    return runtime::from_dlpack(static_cast<DLManagedTensorVersioned*>(managed));
  }
  void* managed = PyCapsule_GetPointer(raw, "dltensor");
  if (managed == nullptr) throw nb::python_error();
  PyCapsule_SetName(raw, "used_dltensor");
  return runtime::from_dlpack(static_cast<DLManagedTensor*>(managed));
}

}  // namespace

Value to_value(nb::handle object) {
  PyObject* raw = object.ptr();
  if (object.is_none()) return {};
  if (PyBool_Check(raw)) return raw == Py_True;
  if (PyLong_Check(raw)) return nb::cast<int64_t>(object);
  if (PyFloat_Check(raw)) return nb::cast<double>(object);
  if (PyUnicode_Check(raw)) return nb::cast<std::string>(object);
  if (PyTuple_Check(raw) || PyList_Check(raw)) {
    ValueList out;
    for (nb::handle item : nb::iter(object)) out.push_back(to_value(item));
    return out;
  }
  // NumPy: a number or an array, else a dtype or a type that names one.
  if (nb::hasattr(object, "tolist")) return to_value(object.attr("tolist")());
  return to_dtype(object).to_string();
}

nb::object from_value(const Value& value) {
  if (auto* b = value.get_if<bool>()) return nb::bool_(*b);
  if (auto* i = value.get_if<int64_t>()) return nb::int_(*i);
  if (auto* d = value.get_if<double>()) return nb::float_(*d);
  if (auto* s = value.get_if<std::string>()) return nb::str(s->c_str(), s->size());
  if (auto* list = value.get_if<ValueList>()) {
    nb::list out;
    for (const Value& item : *list) out.append(from_value(item));
    return out;
  }
  return nb::none();
}

Dict to_dict(nb::handle object) {
  Dict out;
  for (auto [key, value] : nb::cast<nb::dict>(object)) {
    out[nb::cast<std::string>(key)] = to_value(value);
  }
  return out;
}

DType to_dtype(nb::handle object) {
  std::string name;
  if (PyUnicode_Check(object.ptr())) {
    name = nb::cast<std::string>(object);
  } else {
    name = nb::cast<std::string>(numpy().attr("dtype")(object).attr("name"));
  }
  auto dtype = DType::parse(name);
  if (!dtype || !dtype->is_scalar()) {
    throw nb::type_error(("'" + name + "' is no element type of Relay").c_str());
  }
  return *dtype;
}

Tensor to_tensor(nb::handle object, std::optional<DType> wanted) {
  PyObject* raw = object.ptr();
  bool plain = PyBool_Check(raw) || PyLong_Check(raw) || PyFloat_Check(raw) || PyList_Check(raw) ||
               PyTuple_Check(raw);
  if (!plain && PyObject_CheckBuffer(raw) != 0) {
    if (auto tensor = try_buffer(object)) return *tensor;
    // NumPy's buffers cannot tell bfloat16, so its bits travel.
    if (nb::hasattr(object, "view") && element_type(object) == "bfloat16") {
      auto bits = std::make_shared<Tensor>(to_tensor(object.attr("view")("uint16")));
      return Tensor::from_external(bits->data(), DType::BFloat16(), bits->shape(), bits,
                                   bits->read_only());
    }
    no_counterpart(object);
  }
  if (!plain && nb::hasattr(object, "__dlpack__")) return from_capsule(object.attr("__dlpack__")());
  nb::object array = wanted && !wanted->is_bfloat16()
                         ? numpy().attr("asarray")(object, nb::arg("dtype") = wanted->to_string())
                         : numpy().attr("asarray")(object);
  if (wanted && wanted->is_bfloat16()) {
    array = array.attr("astype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    return to_tensor(array);
  }
  auto tensor = try_buffer(array);
  if (!tensor) no_counterpart(array);
  return *tensor;
}

nb::object to_numpy(const Tensor& given) {
  Tensor tensor = given.read_only() ? given.copy() : given;
  nb::capsule owner(new Tensor(tensor), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  DType dtype = tensor.dtype();
  nb::dlpack::dtype element;
  element.bits = dtype.bits;
  element.lanes = 1;
  using Code = nb::dlpack::dtype_code;
  switch (dtype.code) {
    case DType::kInt:
      element.code = static_cast<uint8_t>(Code::Int);
      break;
    case DType::kFloat:
      element.code = static_cast<uint8_t>(Code::Float);
      break;
    case DType::kBool:
      element.code = static_cast<uint8_t>(Code::Bool);
      break;
    default:
      element.code = static_cast<uint8_t>(Code::UInt);
  }
  nb::ndarray<nb::numpy> array(tensor.data(), shape.size(), shape.data(), owner, nullptr, element);
  nb::object out = nb::cast(array);
  if (dtype.is_bfloat16()) {
    return out.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  }
  return out;
}

runtime::Value to_run_value(nb::handle object, const runtime::Slot& slot) {
  if (slot.is_tensor) {
    try {
      return to_tensor(object, slot.tensor.dtype);
    } catch (nb::python_error& e) {
      throw UserError(
          Diagnostic(codes::run_input, {}, "input '" + slot.name + "' is no array")
              .expected(slot.type_string())
              .found(nb::cast<std::string>(nb::str(e.value())))
              .help("give a NumPy array, a DLPack tensor, a number or a list of numbers"));
    }
  }
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return to_tensor(object);
  std::vector<runtime::Value> fields;
  runtime::Slot any;
  any.is_tensor = false;
  for (nb::handle field : nb::iter(object)) fields.push_back(to_run_value(field, any));
  return runtime::Value::tuple(fields);
}

nb::object from_run_value(const runtime::Value& value) {
  if (value.is_tensor()) return to_numpy(value.tensor());
  if (!value.is_tuple()) {
    throw nb::type_error(
        "the result is a value of an algebraic data type, a function or a "
        "reference, which Python cannot hold");
  }
  nb::list fields;
  for (size_t i = 0; i < value.num_fields(); ++i) fields.append(from_run_value(value.field(i)));
  return nb::tuple(fields);
}

}  // namespace relay::bind
