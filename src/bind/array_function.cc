// A function of a program on the arrays of one library, such as PyTorch's tensors.
//
// Arrays come and go by the library's table of C functions (runtime/core/dlpack_exchange.h): no method of
// Python is called for an argument or a result, and contiguous ones are not copied.
#include <algorithm>
#include <vector>

#include "bind/compiler.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "runtime/core/dlpack_exchange.h"

namespace relay::bind {
namespace {

constexpr const char* kTable = "__dlpack_c_exchange_api__";

const DLPackExchangeAPI* table_of(nb::handle type) {
  nb::object capsule = nb::steal(PyObject_GetAttrString(type.ptr(), kTable));
  if (!capsule.is_valid()) PyErr_Clear();
  const void* found = capsule.is_valid() && PyCapsule_CheckExact(capsule.ptr())
                          ? PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api")
                          : nullptr;
  if (found == nullptr) {
    PyErr_Clear();
    throw WrongArgument(python_text(type) + " has no " + kTable +
                        ": its arrays are exchanged one by one");
  }
  // Older tables follow newer ones.
  const auto* header = static_cast<const DLPackExchangeAPIHeader*>(found);
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  if (header == nullptr) throw WrongArgument(python_text(type) + " has no table of DLPack 1");
  return reinterpret_cast<const DLPackExchangeAPI*>(header);
}

// The bytes of a tensor.
struct Range {
  const char* begin;
  const char* end;

  explicit Range(const Tensor& t) : begin(t.data<char>()), end(t.data<char>() + t.byte_size()) {}
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

class ArrayFunction {
 public:
  ArrayFunction(const Executable& exe, nb::handle function, nb::handle type)
      : exe_(exe),
        function_(to_text(function, "the name of a function")),
        type_(nb::borrow(type)),
        table_(table_of(type)) {
    exe_.module.function(function_);
  }

  // The results are in memory of their own: a caller may write into them, and into the arguments. Those that arguments
  // are donated to are these arguments.
  nb::object call(nb::handle arguments) const {
    std::vector<Tensor> inputs;
    nb::object items = nb::steal(PySequence_Fast(arguments.ptr(), "arguments are a sequence"));
    if (!items.is_valid()) throw nb::python_error();
    const Py_ssize_t count = PySequence_Size(items.ptr());
    inputs.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      nb::object item = nb::steal(PySequence_GetItem(items.ptr(), i));
      inputs.push_back(take(item));
    }
    const runtime::Function& f = exe_.module.function(function_);
    std::vector<Range> taken;
    for (const Tensor& t : inputs) taken.emplace_back(t);
    // A program writes into a donated argument while it reads the others. One that overlaps another, or that was copied to be
    // read, is written at the end, by its own method.
    std::vector<bool> late(f.results.size());
    for (const runtime::Donation& d : f.donations) {
      const auto i = static_cast<size_t>(d.param);
      if (i >= inputs.size()) continue;
      bool apart = inputs[i].rep()->owner != nullptr && !inputs[i].read_only();
      for (size_t j = 0; j < taken.size(); ++j) apart &= j == i || !taken[i].overlaps(taken[j]);
      if (apart) continue;
      late[static_cast<size_t>(d.output)] = true;
      inputs[i] = inputs[i].copy();
    }
    std::vector<Tensor> results = run_unlocked([&](runtime::RunOptions options) {
      options.keeps_on_devices = false;
      return exe_.module.run(function_, inputs, options);
    });
    std::vector<nb::object> given(results.size());
    for (const runtime::Donation& d : f.donations) {
      const auto o = static_cast<size_t>(d.output);
      given[o] = nb::steal(PySequence_GetItem(items.ptr(), d.param));
      if (late[o]) given[o].attr("copy_")(give(results[o]));
    }
    nb::list out;
    for (size_t i = 0; i < results.size(); ++i)
      out.append(given[i].is_valid() ? given[i] : give(separate(std::move(results[i]), taken)));
    return out;
  }

 private:
  Tensor take(nb::handle object) const {
    const int is_array = PyObject_IsInstance(object.ptr(), type_.ptr());
    if (is_array < 0) throw nb::python_error();
    if (is_array == 0) {
      throw WrongArgument(python_text(object) + " is not of the class " + python_text(type_));
    }
    DLManagedTensorVersioned* managed = nullptr;
    if (table_->managed_tensor_from_py_object_no_sync(object.ptr(), &managed) != 0) {
      throw nb::python_error();
    }
    return runtime::from_dlpack(managed);
  }

  // The tensor, or a copy where it shares memory with an argument, a constant or a result before it.
  static Tensor separate(Tensor t, std::vector<Range>& taken) {
    const bool may_share = t.rep()->owner != nullptr || t.use_count() > 1;
    const Range range(t);
    if (t.read_only() || (may_share && std::ranges::any_of(taken, [&](const Range& other) {
                            return range.overlaps(other);
                          }))) {
      return t.copy();
    }
    taken.push_back(range);
    return t;
  }

  nb::object give(const Tensor& tensor) const {
    void* object = nullptr;
    if (table_->managed_tensor_to_py_object_no_sync(runtime::to_dlpack_versioned(tensor),
                                                    &object) != 0) {
      throw nb::python_error();
    }
    return nb::steal(static_cast<PyObject*>(object));
  }

  Executable exe_;
  std::string function_;
  nb::object type_;
  const DLPackExchangeAPI* table_;
};

}  // namespace

void bind_array_function(nb::module_& m) {
  nb::class_<ArrayFunction>(m, "ArrayFunction",
                            "A function of a program on the arrays of one library.")
      .def("__init__", [](ArrayFunction* self, const Executable& exe, nb::handle function,
                          nb::handle type) { new (self) ArrayFunction(exe, function, type); })
      .def("__call__", &ArrayFunction::call, nb::arg("arguments"),
           "The results for a sequence of arrays, as a list.");
}

}  // namespace relay::bind
