#include "bind/convert.h"

#include <nanobind/stl/string.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/codes/donation.h"
#include "bind/buffer.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "runtime/core/strings.h"

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
    PythonLock lock;
    PyBuffer_Release(&view);
  }
};

// A tensor of the strings that a contiguous array of Python's objects holds; TypeError for other objects.
Tensor tensor_of_texts(const Py_buffer& view) {
  auto* items = static_cast<PyObject* const*>(view.buf);
  std::vector<std::string_view> texts;
  const Py_ssize_t count = view.len / view.itemsize;
  texts.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = items[i] != nullptr ? items[i] : Py_None;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, &size) : nullptr;
    if (text == nullptr) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      throw WrongArgument((python_text(item) + " is not a string").c_str());
    }
    texts.emplace_back(text, static_cast<size_t>(size));
  }
  return runtime::make_strings(std::vector<int64_t>(view.shape, view.shape + view.ndim), texts);
}

// A tensor of the strings of a fixed length, "12w", that a contiguous array of NumPy holds: code points in the order of bytes
// of the machine, without the zeros at their ends. nullopt for others.
std::optional<Tensor> tensor_of_code_points(const Py_buffer& view) {
  const std::string_view format = view.format;
  size_t most = 0;
  const auto [end, error] = std::from_chars(format.data(), format.data() + format.size(), most);
  const bool known = error == std::errc() && *end == 'w' && end[1] == '\0' && most > 0 &&
                     most * sizeof(uint32_t) == static_cast<size_t>(view.itemsize);
  if (!known || reinterpret_cast<uintptr_t>(view.buf) % alignof(uint32_t) != 0) return std::nullopt;
  return runtime::make_strings(std::vector<int64_t>(view.shape, view.shape + view.ndim),
                               static_cast<const uint32_t*>(view.buf), most);
}

bool is_c_contiguous(const Py_buffer& view) { return PyBuffer_IsContiguous(&view, 'C') != 0; }

// The strings of a contiguous array; nullopt for what holds none. TypeError for other objects than strings.
std::optional<Tensor> try_texts(const Py_buffer& view) {
  if (view.format == nullptr || !is_c_contiguous(view)) return std::nullopt;
  constexpr std::string_view kObjects = "O";
  return view.format == kObjects ? tensor_of_texts(view) : tensor_of_code_points(view);
}

// What an object shows of its memory; null where it shows none.
std::shared_ptr<BufferOwner> shown_buffer(nb::handle object) {
  auto owner = std::make_shared<BufferOwner>();
  if (PyObject_GetBuffer(object.ptr(), &owner->view, PyBUF_RECORDS_RO) == 0) return owner;
  PyErr_Clear();
  return nullptr;
}

// The tensor of elements of a dtype, a copy where they are not contiguous and aligned.
Tensor tensor_of_buffer(const std::shared_ptr<BufferOwner>& owner, DType dtype) {
  const Py_buffer& view = owner->view;
  std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
  bool aligned = reinterpret_cast<uintptr_t>(view.buf) % dtype.bytes() == 0;
  if (view.buf != nullptr && aligned && is_c_contiguous(view)) {
    return Tensor::from_external(view.buf, dtype, shape, owner, view.readonly != 0);
  }
  Tensor copy = Tensor::empty(dtype, shape);
  if (copy.byte_size() != 0 && PyBuffer_ToContiguous(copy.data(), &view, view.len, 'C') != 0) {
    throw nb::python_error();
  }
  return copy;
}

// nullopt: the object does not show its memory, or its elements have no counterpart in Relay.
std::optional<Tensor> try_buffer(nb::handle object) {
  auto owner = shown_buffer(object);
  if (!owner) return std::nullopt;
  const Py_buffer& view = owner->view;
  if (auto texts = try_texts(view)) return texts;
  auto dtype = buffer_dtype(view.format, view.itemsize);
  return dtype ? std::optional(tensor_of_buffer(owner, *dtype)) : std::nullopt;
}

// The name of an array's element type; empty when it has none.
std::string element_type(nb::handle object) {
  if (!nb::hasattr(object, "dtype")) return "";
  nb::object dtype = object.attr("dtype");
  return to_text(nb::str(dtype), "an element type");
}

// The dtypes that NumPy's arrays have from the package ml_dtypes; its buffers cannot tell them.
std::optional<DType> extension_dtype(const std::string& name) {
  auto dtype = DType::parse(name);
  bool extends = dtype && (dtype->is_bfloat16() || dtype->is_narrow());
  return extends ? dtype : std::nullopt;
}
nb::object extension_class(DType dtype) {
  return nb::module_::import_("ml_dtypes").attr(dtype.to_string().c_str());
}

[[noreturn]] void no_counterpart(nb::handle object) {
  throw WrongArgument(
      ("arrays of element type '" + element_type(object) + "' have no counterpart in Relay")
          .c_str());
}

// Python's own numbers and lists of them, which have no element type of their own.
bool is_plain(PyObject* raw) {
  return PyBool_Check(raw) || PyLong_Check(raw) || PyFloat_CheckExact(raw) || PyList_Check(raw) ||
         PyTuple_Check(raw);
}

// A NumPy array of the object; TypeError for what holds anything but numbers, None among them.
nb::object number_array(nb::handle object) {
  nb::object array = numpy().attr("asarray")(object);
  std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind.size() == 1 && std::strchr("biuf", kind[0]) != nullptr) return array;
  if (extension_dtype(element_type(array))) return array;
  throw WrongArgument((python_text(object) + " is not a number or an array of numbers").c_str());
}

// Whether a NumPy array's elements are strings: of a fixed length, of any, or Python's own.
bool holds_text(const nb::object& array) {
  std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  return kind == "U" || kind == "T" || kind == "O";
}

// A tensor of strings; TypeError for what holds anything else.
Tensor string_tensor(nb::handle object) {
  // A list of strings loses zeros at their ends in a dtype of fixed length.
  nb::object array =
      numpy().attr("asarray")(object, nb::arg("dtype") = "object", nb::arg("order") = "C");
  return try_buffer(array).value();
}

// The array in another element type, without loss: integers and bools stay what they are, floats
// may be rounded but not to infinity.
nb::object cast_array(nb::handle object, const nb::object& array, DType wanted) {
  nb::object np = numpy();
  nb::object dtype = extension_dtype(wanted.to_string()) ? np.attr("dtype")(extension_class(wanted))
                                                         : np.attr("dtype")(wanted.to_string());
  nb::object have = array.attr("dtype");
  if (have.equal(dtype)) return array;
  auto refuse = [&] {
    throw WrongArgument(
        (python_text(object) + " cannot be " + wanted.to_string() + " without loss").c_str());
  };
  if (nb::cast<int64_t>(array.attr("size")) == 0) return array.attr("astype")(dtype);
  std::string kind = nb::cast<std::string>(have.attr("kind"));
  bool is_float = kind == "f" || element_type(array) == "bfloat16";
  if ((kind == "b") != wanted.is_bool() || (is_float && !wanted.is_floating())) refuse();
  nb::object quiet = np.attr("errstate")(nb::arg("all") = "ignore");
  quiet.attr("__enter__")();
  nb::object cast = array.attr("astype")(dtype);
  nb::object kept = is_float
                        ? np.attr("isfinite")(cast.attr("astype")("float64"))
                              .attr("__eq__")(np.attr("isfinite")(array.attr("astype")("float64")))
                        : cast.attr("astype")(have).attr("__eq__")(array);
  if (!is_float && wanted.is_integer()) {
    // Wrapping twice gives the first value back; the sign tells.
    kept = np.attr("logical_and")(kept,
                                  cast.attr("__lt__")(0).attr("__eq__")(array.attr("__lt__")(0)));
  }
  bool all = nb::cast<bool>(np.attr("all")(kept).attr("item")());
  quiet.attr("__exit__")(nb::none(), nb::none(), nb::none());
  if (!all) refuse();
  return cast;
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

namespace {
thread_local int nesting = 0;
constexpr int kMaxNesting = 1000;
}  // namespace

Nesting::Nesting() {
  if (nesting == kMaxNesting) throw WrongArgument("this value is nested too deeply");
  ++nesting;
}
Nesting::~Nesting() { --nesting; }

std::string class_name(nb::handle object) {
  return to_text(object.type().attr("__name__"), "the name of a type");
}

std::string python_text(nb::handle object) {
  nb::object text = nb::steal(PyObject_Repr(object.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "a value of type " + class_name(object);
  }
  Py_ssize_t size = 0;
  const char* shown = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (shown == nullptr) {
    PyErr_Clear();
    return "a value that cannot be shown";
  }
  constexpr Py_ssize_t kShown = 80;
  if (size <= kShown) return shown;
  Py_ssize_t end = kShown;
  while ((static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80) --end;
  return std::string(shown, static_cast<size_t>(end)) + "...";
}

int64_t to_int64(nb::handle object) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  int64_t out = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    throw WrongArgument((python_text(object) + " does not fit into 64 bits").c_str());
  }
  return out;
}

std::string to_text(nb::handle object, const char* what) {
  if (PyUnicode_Check(object.ptr())) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    return {text, static_cast<size_t>(size)};
  }
  throw WrongArgument((std::string(what) + " is a string, not " + python_text(object)).c_str());
}

nb::dict to_named(nb::handle object, const char* what) {
  if (!PyDict_Check(object.ptr())) {
    throw WrongArgument(
        (std::string(what) + " is a dictionary by name, not " + python_text(object)).c_str());
  }
  return nb::borrow<nb::dict>(object);
}

AttrValue to_value(nb::handle object) {
  Nesting deeper;
  PyObject* raw = object.ptr();
  if (object.is_none()) return {};
  if (PyBool_Check(raw)) return raw == Py_True;
  if (PyLong_Check(raw)) return to_int64(object);
  if (PyFloat_Check(raw)) return nb::cast<double>(object);
  if (PyUnicode_Check(raw)) return to_text(object, "an attribute");
  if (PyTuple_Check(raw) || PyList_Check(raw)) {
    ValueList out;
    for (nb::handle item : nb::iter(object)) out.push_back(to_value(item));
    return out;
  }
  if (nb::isinstance<PyNode>(object)) {
    const NodeRef& node = nb::cast<const PyNode&>(object).ref;
    auto* name = as<TypeVarNode>(node);
    if (isa<DimNode>(node)) return to_value(Dim::unchecked(node));
    if (name != nullptr && name->kind == Kind::Dim) return to_value(dim(TypeVar(name)));
    throw WrongArgument("an attribute is known when the program is built, not an expression");
  }
  if (PyDict_Check(raw))
    throw WrongArgument(
        (python_text(object) + " is not a number, a text, a dtype or a list of these").c_str());
  // NumPy: a number or an array, else a dtype or a type that names one.
  if (nb::hasattr(object, "tolist")) return to_value(object.attr("tolist")());
  return to_dtype(object).to_string();
}

nb::object from_value(const AttrValue& value) {
  if (auto* b = value.get_if<bool>()) return nb::bool_(*b);
  if (auto* i = value.get_if<int64_t>()) return nb::int_(*i);
  if (auto* d = value.get_if<double>()) return nb::float_(*d);
  if (auto* s = value.get_if<std::string>()) return nb::str(s->c_str(), s->size());
  if (auto* list = value.get_if<ValueList>()) {
    nb::list out;
    for (const AttrValue& item : *list) out.append(from_value(item));
    return out;
  }
  if (const NodeRef* node = node_in(value)) {
    auto* name = as<DimVarNode>(*node);
    return wrap(name == nullptr ? *node : NodeRef(name->var));
  }
  return nb::none();
}

Dict to_dict(nb::handle object) {
  Dict out;
  for (auto [key, value] : to_named(object, "a set of attributes")) {
    out[to_text(key, "the name of an attribute")] = to_value(value);
  }
  return out;
}

DType to_dtype(nb::handle object) {
  std::string name;
  if (PyUnicode_Check(object.ptr())) {
    name = to_text(object, "an element type");
  } else {
    name = nb::cast<std::string>(numpy().attr("dtype")(object).attr("name"));
  }
  // The first Relay's short names.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort{
      {{"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"uint1", "bool"}}};
  for (auto [text, full] : kShort) {
    if (name == text) name = full;
  }
  auto dtype = DType::parse(name);
  if (!dtype || !dtype->is_scalar()) {
    throw WrongArgument(("'" + name + "' is not an element type of Relay").c_str());
  }
  return *dtype;
}

Tensor to_tensor(nb::handle object) {
  PyObject* raw = object.ptr();
  bool plain = is_plain(raw);
  if (PyUnicode_Check(raw)) return string_tensor(object);
  const bool shows = !plain && PyObject_CheckBuffer(raw) != 0;
  // First, since most arguments are arrays of numbers: to ask for a dtype takes longer.
  if (shows) {
    if (auto tensor = try_buffer(object)) return *tensor;
  }
  if (nb::hasattr(object, "dtype") && nb::hasattr(object.attr("dtype"), "kind") &&
      holds_text(nb::borrow(object))) {
    return string_tensor(object);
  }
  if (shows) {
    auto dtype = extension_dtype(element_type(object));
    if (dtype && nb::hasattr(object, "view")) {  // the bits travel
      DType bits = dtype->is_bfloat16() ? DType::UInt(16) : dtype->storage();
      return to_tensor(object.attr("view")(bits.to_string())).as_dtype(*dtype);
    }
    no_counterpart(object);
  }
  if (!plain && nb::hasattr(object, "__dlpack__")) return from_capsule(object.attr("__dlpack__")());
  if (plain) {
    nb::object array = numpy().attr("asarray")(object);
    if (nb::cast<std::string>(array.attr("dtype").attr("kind")) == "U")
      return string_tensor(object);
  }
  nb::object array = number_array(object);
  auto tensor = try_buffer(array);
  if (!tensor) no_counterpart(array);
  return *tensor;
}

std::optional<Tensor> plain_number(nb::handle object, DType wanted) {
  PyObject* raw = object.ptr();
  if (PyBool_Check(raw)) {
    if (!wanted.is_bool()) return std::nullopt;
    return Tensor::scalar(int64_t{raw == Py_True}, wanted);
  }
  if (PyFloat_CheckExact(raw)) {
    double value = PyFloat_AsDouble(raw);
    bool kept = wanted == DType::Float(64) ||
                (wanted == DType::Float(32) &&
                 std::isfinite(value) == std::isfinite(static_cast<float>(value)));
    return kept ? std::optional(Tensor::scalar(value, wanted)) : std::nullopt;
  }
  if (!PyLong_CheckExact(raw)) return std::nullopt;
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(raw, &overflow);
  // The integers up to 2^bits that the element type has all of.
  int bits = wanted == DType::Float(64)   ? 53
             : wanted == DType::Float(32) ? 24
             : wanted.is_integer()        ? wanted.bits - (wanted.code == DType::kInt ? 1 : 0)
                                          : 0;
  if (overflow != 0 || bits == 0 || (value < 0 && wanted.code == DType::kUInt)) return std::nullopt;
  bool fits = bits >= 63 || (value < (int64_t{1} << bits) && value >= -(int64_t{1} << bits));
  return fits ? std::optional(Tensor::scalar(value, wanted)) : std::nullopt;
}

Tensor to_tensor_of(nb::handle object, DType wanted) {
  if (wanted.is_string()) return to_tensor(object);
  if (auto number = plain_number(object, wanted)) return *number;
  if (is_plain(object.ptr())) return to_tensor(cast_array(object, number_array(object), wanted));
  return to_tensor(object);
}

Tensor cast_tensor(nb::handle object, DType wanted) {
  if (wanted.is_string()) return string_tensor(object);
  if (PyUnicode_Check(object.ptr())) {
    throw WrongArgument((python_text(object) + " is not a number or an array of numbers").c_str());
  }
  nb::object array = is_plain(object.ptr()) ? number_array(object) : to_numpy(to_tensor(object));
  return to_tensor(cast_array(object, array, wanted));
}

Tensor to_donated(nb::handle object, const runtime::Slot& slot) {
  PyObject* raw = object.ptr();
  auto refuse = [&](const std::string& found) {
    throw UserError(Diagnostic(codes::donation_memory, {},
                               "input '" + slot.name + "' is donated, and cannot be written into")
                        .expected("a contiguous, aligned array of " +
                                  slot.tensor.dtype.to_string() + " that may be written to")
                        .found(found)
                        .help("numpy.require(x, dtype, \"CAW\") makes such an array"));
  };
  bool shows =
      !is_plain(raw) && (PyObject_CheckBuffer(raw) != 0 || nb::hasattr(object, "__dlpack__"));
  if (!shows || PyUnicode_Check(raw)) refuse(class_name(object) + " " + python_text(object));
  Tensor tensor = to_tensor(object);
  // What is no view of foreign memory is a copy.
  if (!tensor.rep()->owner) refuse("an array that is not contiguous or not aligned");
  if (tensor.dtype() != slot.tensor.dtype) refuse("elements of " + tensor.dtype().to_string());
  if (tensor.read_only()) refuse("a read-only array");
  return tensor;
}

namespace {

// An object of Python that holds the tensor in whose memory an array is.
struct TensorBytes {
  PyObject head;
  Tensor tensor;
};

// A tensor may hold an array, whose memory is another such object's, and so on without an end, as where a loop passes a
// result that is an argument to the next call: what is dropped within a drop waits for its end. Python's lock guards the list.
void drop_bytes(PyObject* self) {
  static auto* waiting = new std::vector<Tensor>;
  static bool drops = false;
  PyTypeObject* type = Py_TYPE(self);
  Tensor& tensor = reinterpret_cast<TensorBytes*>(self)->tensor;
  waiting->push_back(std::move(tensor));
  tensor.~Tensor();
  PyObject_Free(self);
  Py_DECREF(type);
  if (drops) return;
  drops = true;
  while (!waiting->empty()) {
    const Tensor last = std::move(waiting->back());
    waiting->pop_back();
  }
  drops = false;
}

PyTypeObject* bytes_type() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(drop_bytes)}, {0, nullptr}};
  static PyType_Spec spec = {"relay._core.TensorBytes", sizeof(TensorBytes), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* made = PyType_FromSpec(&spec);
  if (made == nullptr) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(made);
}

// NumPy's table of C functions, in which each keeps its place: an array made through it takes a third of the time of a call
// of the class.
class NumpyFunctions {
 public:
  NumpyFunctions() {
    PyObject* module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (module == nullptr) {
      PyErr_Clear();
      module = PyImport_ImportModule("numpy.core._multiarray_umath");  // before 1.26
    }
    if (module == nullptr) throw nb::python_error();
    nb::object table = nb::steal(module).attr("_ARRAY_API");
    table_ = static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
    if (table_ == nullptr) throw nb::python_error();
  }

  // An array of Python's objects, all of which are null, and its memory.
  std::pair<nb::object, PyObject**> objects(nb::handle type, const nb::object& dtype,
                                            runtime::Shape shape) const {
    using GetPtr = void* (*)(PyObject * array, const intptr_t* indices);
    constexpr size_t kGetPtr = 160;
    nb::object made = make(type, dtype, shape, nullptr, 0);
    const std::vector<intptr_t> first(shape.size());
    auto* begin = reinterpret_cast<GetPtr>(table_[kGetPtr])(made.ptr(), first.data());
    return {made, static_cast<PyObject**>(begin)};
  }

  // A C-contiguous array that may be written, on memory that `owner` keeps.
  nb::object array(nb::handle type, const nb::object& dtype, runtime::Shape shape, void* data,
                   nb::object owner) const {
    using SetBaseObject = int (*)(PyObject * array, PyObject * base);
    constexpr size_t kSetBaseObject = 282;
    constexpr int kContiguous = 0x0001, kAligned = 0x0100, kWriteable = 0x0400;
    // NumPy allocates where it gets a null pointer, also for no bytes.
    static char none = 0;
    nb::object made = make(type, dtype, shape, data == nullptr ? &none : data,
                           kContiguous | kAligned | kWriteable);
    const auto set_base = reinterpret_cast<SetBaseObject>(table_[kSetBaseObject]);
    if (set_base(made.ptr(), owner.release().ptr()) != 0) throw nb::python_error();
    return made;
  }

 private:
  nb::object make(nb::handle type, const nb::object& dtype, runtime::Shape shape, void* data,
                  int flags) const {
    using NewFromDescr =
        PyObject* (*)(PyObject * type, PyObject * dtype, int rank, const intptr_t* shape,
                      const intptr_t* strides, void* data, int flags, PyObject* finalised);
    constexpr size_t kNewFromDescr = 94;
    const std::vector<intptr_t> sizes(shape.begin(), shape.end());
    nb::object made = nb::steal(reinterpret_cast<NewFromDescr>(table_[kNewFromDescr])(
        type.ptr(), nb::object(dtype).release().ptr(), static_cast<int>(shape.size()), sizes.data(),
        nullptr, data, flags, nullptr));
    if (!made.is_valid()) throw nb::python_error();
    return made;
  }

  void** table_;
};

// Looked up once for a process: the class of arrays, and the dtypes by code and log2 of the size.
struct NumpyTypes {
  PyTypeObject* bytes = bytes_type();
  NumpyFunctions functions;
  nb::object array = numpy().attr("ndarray");
  nb::object object = numpy().attr("dtype")("object");
  std::array<std::array<nb::object, 4>, 4> dtypes;

  nb::object& dtype(DType of) {
    const size_t code = of.code == DType::kInt     ? 0
                        : of.code == DType::kFloat ? 1
                        : of.code == DType::kBool  ? 2
                                                   : 3;
    nb::object& found = dtypes[code][static_cast<size_t>(std::countr_zero(of.bytes()))];
    if (!found.is_valid()) {
      const DType known = code == 3 ? DType::UInt(of.bits) : of;
      found = numpy().attr("dtype")(known.to_string());
    }
    return found;
  }

  static NumpyTypes& get() {
    // Objects of Python that outlive the interpreter are not released.
    static auto* types = new NumpyTypes;
    return *types;
  }
};

nb::object string_array(const Tensor& t) {
  NumpyTypes& types = NumpyTypes::get();
  auto [out, elements] = types.functions.objects(types.array, types.object, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    std::string_view text = runtime::string_at(t, i);
    elements[i] = PyUnicode_FromStringAndSize(text.data() == nullptr ? "" : text.data(),
                                              static_cast<Py_ssize_t>(text.size()));
    if (elements[i] == nullptr) throw nb::python_error();
  }
  return out;
}

}  // namespace

std::optional<Tensor> shown_array(nb::handle object, DType dtype, size_t rank) {
  if (!object.type().is(NumpyTypes::get().array)) return std::nullopt;
  auto owner = shown_buffer(object);
  if (!owner || static_cast<size_t>(owner->view.ndim) != rank) return std::nullopt;
  if (dtype.is_string()) {
    // Other objects are an error, which names the input where arguments are read one after the other.
    try {
      return try_texts(owner->view);
    } catch (const WrongArgument&) {
      return std::nullopt;
    } catch (const nb::python_error&) {
      return std::nullopt;
    }
  }
  if (buffer_dtype(owner->view.format, owner->view.itemsize) != dtype) return std::nullopt;
  return tensor_of_buffer(owner, dtype);
}

nb::object to_numpy(const Tensor& given) {
  if (given.dtype().is_string()) return string_array(given);
  Tensor tensor = given.read_only() ? given.copy() : given;
  NumpyTypes& types = NumpyTypes::get();
  nb::object& dtype = types.dtype(tensor.dtype().storage());
  auto* bytes = PyObject_New(TensorBytes, types.bytes);
  if (bytes == nullptr) throw nb::python_error();
  const runtime::Shape shape = tensor.shape();
  void* data = tensor.byte_size() == 0 ? nullptr : tensor.data();
  new (&bytes->tensor) Tensor(std::move(tensor));
  nb::object out = types.functions.array(types.array, dtype, shape, data, nb::steal(&bytes->head));
  const bool extends = given.dtype().is_bfloat16() || given.dtype().is_narrow();
  return extends ? out.attr("view")(extension_class(given.dtype())) : out;
}

}  // namespace relay::bind
