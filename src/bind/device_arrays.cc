#include "bind/device_arrays.h"

#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/codes/runtime.h"
#include "bind/buffer.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "runtime/device_tensor.h"
#include "runtime/value_leaves.h"

namespace relay::bind {
namespace {

using runtime::Device;

struct NDArray {
  Tensor tensor;  // on a device
  std::shared_ptr<void> copies{};

  // A copy. Python's lock is held, and let go of meanwhile.
  Tensor on_host() {
    if (copies == nullptr) copies = runtime::ready_for_copies(tensor.device());
    Tensor kept = tensor;
    Unlocked unlocked;
    return runtime::to_host(kept);
  }
};

[[noreturn]] void refuse(std::string message, std::string help = {}) {
  throw UserError(Diagnostic(codes::tensor_dlpack, {}, std::move(message)).help(std::move(help)));
}

// A pair of a DLDeviceType and a number; nullopt where it is none that exists.
std::optional<Device> device_of(nb::handle pair) {
  constexpr int64_t kMax = std::numeric_limits<uint16_t>::max();
  nb::object both = nb::steal(PySequence_Fast(pair.ptr(), "a device of DLPack is a pair"));
  if (!both.is_valid()) throw nb::python_error();
  if (PySequence_Size(both.ptr()) != 2) return std::nullopt;
  const int64_t type = to_int64(nb::steal(PySequence_GetItem(both.ptr(), 0))),
                id = to_int64(nb::steal(PySequence_GetItem(both.ptr(), 1)));
  if (type < 0 || type > kMax || id < 0 || id > kMax) return std::nullopt;
  return Device{static_cast<uint16_t>(type), static_cast<uint16_t>(id)};
}

Device device_named(const std::string& name) {
  std::optional<Device> device = Device::parse(name);
  if (!device || device->is_host()) {
    throw WrongArgument("a device is a text such as 'opencl:0' or 'cuda:1', not '" + name + "'" +
                        (device ? ": NumPy has the arrays of the host" : ""));
  }
  return *device;
}

// What the array API says of streams: of CUDA a number, of other devices nothing. All work on the array is done, so that no
// stream waits for it.
void check_stream(Device device, nb::handle stream) {
  if (stream.is_none()) return;
  if (PyBool_Check(stream.ptr()) || !PyIndex_Check(stream.ptr())) {
    throw WrongArgument("a stream is None or a number, not " + python_text(stream));
  }
  const int64_t number = to_int64(stream);
  if (device.type != kDLCUDA) {
    refuse("a tensor on " + device.to_string() + " is asked for with stream " +
               std::to_string(number) + ", and the device has no streams",
           "leave out the stream");
  }
  if (number == 0 || number < -1) {
    refuse("there is no CUDA stream " + std::to_string(number) + " in DLPack",
           "1 is the legacy default stream, 2 that of the thread, -1 asks for no synchronisation; "
           "else it is a handle");
  }
}

template <class Managed>
nb::object capsule_of(Managed* managed, const char* name) {
  auto destroy = [](PyObject* capsule) {
    const char* now = PyCapsule_GetName(capsule);
    const bool is_used = now == nullptr || std::string_view(now).starts_with("used_");
    if (is_used) return;
    auto* own = static_cast<Managed*>(PyCapsule_GetPointer(capsule, now));
    if (own != nullptr) own->deleter(own);
  };
  PyObject* capsule = PyCapsule_New(managed, name, destroy);
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

nb::object dlpack(NDArray& self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                  nb::handle copy) {
  const Device device = self.tensor.device();
  check_stream(device, stream);
  const bool copies = copy.ptr() == Py_True, shares = copy.ptr() == Py_False;
  if (!copies && !shares && !copy.is_none()) {
    throw WrongArgument("copy is True, False or None, not " + python_text(copy));
  }
  const std::optional<Device> wanted =
      dl_device.is_none() ? std::optional(device) : device_of(dl_device);
  if (!wanted || (*wanted != device && !wanted->is_host())) {
    refuse("a tensor on " + device.to_string() + " is asked for on " +
               (wanted ? wanted->to_string() : "a device that does not exist"),
           "relay.runtime.array(x, device) copies it to another device");
  }
  const bool to_host = *wanted != device;
  if (to_host && shares) {
    refuse("a tensor on " + device.to_string() + " is in the memory of the host only as a copy",
           "leave out copy=False");
  }
  Tensor given = self.tensor;
  if (to_host) {
    given = self.on_host();
  } else if (copies) {
    Unlocked unlocked;
    given = runtime::device_exchange().copy(given);
  }
  bool versioned = false;
  if (!max_version.is_none()) {
    nb::object major = nb::steal(PySequence_GetItem(max_version.ptr(), 0));
    if (!major.is_valid()) throw nb::python_error();
    versioned = to_int64(major) >= DLPACK_MAJOR_VERSION;
  }
  if (!versioned) {
    return capsule_of(runtime::to_dlpack(given, runtime::device_exchange()), "dltensor");
  }
  auto* managed = runtime::to_dlpack_versioned(given, runtime::device_exchange());
  if (to_host || copies) managed->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  return capsule_of(managed, "dltensor_versioned");
}

// Takes the capsule over.
Tensor from_device_capsule(const nb::object& capsule) {
  PyObject* raw = capsule.ptr();
  const bool versioned = PyCapsule_IsValid(raw, "dltensor_versioned") != 0;
  void* managed = PyCapsule_GetPointer(raw, versioned ? "dltensor_versioned" : "dltensor");
  if (managed == nullptr) throw nb::python_error();
  PyCapsule_SetName(raw, versioned ? "used_dltensor_versioned" : "used_dltensor");
  const runtime::DeviceExchange& devices = runtime::device_exchange();
  return versioned ? runtime::from_dlpack(static_cast<DLManagedTensorVersioned*>(managed), devices)
                   : runtime::from_dlpack(static_cast<DLManagedTensor*>(managed), devices);
}

// The other library makes stream 1 wait for its own work, and what takes the memory waits for the device.
nb::object capsule_from(nb::handle object, Device device) {
  nb::object method = object.attr("__dlpack__");
  nb::dict options;
  if (device.type == kDLCUDA) options["stream"] = 1;
  nb::dict versioned = nb::borrow<nb::dict>(nb::steal(PyDict_Copy(options.ptr())));
  versioned["max_version"] = nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  try {
    return method(**versioned);
  } catch (nb::python_error& e) {
    // Older libraries do not know the parameter.
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return method(**options);
}

Tensor given_on_device(nb::handle object) {
  std::optional<Tensor> tensor = tensor_on_device(object);
  if (tensor) return *tensor;
  throw WrongArgument(
      python_text(object) +
      " is not a tensor on a device: relay.runtime.array(x, device) copies it to one");
}

NDArray copy_to(nb::handle object, const std::string& name) {
  const Device device = device_named(name);
  std::optional<Tensor> there = tensor_on_device(object);
  Tensor given = there ? *there : to_tensor(object);
  Unlocked unlocked;
  return {given.device() == device ? runtime::device_exchange().copy(given)
                                   : runtime::to_device(given, device)};
}

constexpr const char* kNDArrayDoc =
    "A tensor in the memory of a device, which programs take and give without a copy.\n\n"
    "`numpy()` copies it to the host, `torch.from_dlpack(x)` shares its memory. Its data is\n"
    "complete: whoever gives it has waited for the device.";

}  // namespace

std::optional<Tensor> tensor_on_device(nb::handle object) {
  // Most arguments are arrays of NumPy.
  if (PyObject_CheckBuffer(object.ptr()) != 0) return std::nullopt;
  if (nb::isinstance<NDArray>(object)) return nb::cast<const NDArray&>(object).tensor;
  if (!nb::hasattr(object, "__dlpack_device__") || PyType_Check(object.ptr())) {
    return std::nullopt;
  }
  const std::optional<Device> device = device_of(object.attr("__dlpack_device__")());
  if (!device || device->is_host()) return std::nullopt;
  return from_device_capsule(capsule_from(object, *device));
}

nb::object to_array(const Tensor& tensor) {
  return tensor.device().is_host() ? to_numpy(tensor) : nb::cast(NDArray{tensor});
}

runtime::Value value_on_host(const runtime::Value& value) {
  std::vector<Tensor> leaves;
  if (!runtime::flatten_tensors(value, leaves)) return value;
  bool same = true;
  for (Tensor& t : leaves) {
    same = same && t.device().is_host();
    t = runtime::to_host(t);
  }
  return same ? value : runtime::with_leaves(value, leaves);
}

void bind_device_arrays(nb::module_& m) {
  nb::class_<NDArray>(m, "NDArray", kNDArrayDoc)
      .def_prop_ro(
          "shape",
          [](const NDArray& self) {
            nb::list out;
            for (int64_t d : self.tensor.shape()) out.append(d);
            return nb::tuple(out);
          },
          nb::for_getter(nb::sig("def shape(self) -> tuple[int, ...]")), "The sizes.")
      .def_prop_ro(
          "dtype", [](const NDArray& self) { return self.tensor.dtype().to_string(); },
          "The name of the element type.")
      .def_prop_ro(
          "device", [](const NDArray& self) { return self.tensor.device().to_string(); },
          "The device that has the memory, 'opencl:0'.")
      .def_prop_ro(
          "nbytes", [](const NDArray& self) { return self.tensor.byte_size(); },
          "The bytes of all elements.")
      .def(
          "numpy", [](NDArray& self) { return to_numpy(self.on_host()); },
          nb::sig("def numpy(self) -> typing.Any"),
          "Returns a copy in the memory of the host, a NumPy array.")
      .def(
          "__array__",
          [](NDArray& self, nb::handle dtype, nb::handle copy) {
            if (copy.ptr() == Py_False) {
              throw nb::value_error("a tensor on a device is a NumPy array only as a copy");
            }
            nb::object out = to_numpy(self.on_host());
            return dtype.is_none() ? out : out.attr("astype")(dtype);
          },
          nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "typing.Any"))
      .def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
           nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
           nb::arg("copy").none() = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, "
                   "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                   "None = None) -> typing.Any"),
           "The memory as a capsule of DLPack: for CUDA an address, for OpenCL a cl_mem.")
      .def(
          "__dlpack_device__",
          [](const NDArray& self) {
            return nb::make_tuple(self.tensor.device().type, self.tensor.device().id);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "__repr__",
          [](const NDArray& self) {
            return "<relay.runtime.NDArray " +
                   runtime::type_string(self.tensor.dtype(), self.tensor.shape()) + " on " +
                   self.tensor.device().to_string() + ">";
          },
          nb::sig("def __repr__(self) -> str"));
  m.def("array_on_device", &copy_to, nb::arg("arr"), nb::arg("device"));
  m.def(
      "from_dlpack", [](nb::handle source) { return NDArray{given_on_device(source)}; },
      nb::arg("source"));
}

}  // namespace relay::bind
