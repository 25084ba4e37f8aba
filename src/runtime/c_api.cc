// The C interface on top of Module: status codes for exceptions, indices checked.
#include "relay/c_api.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "base/codes/runtime.h"
#include "base/thread_locals.h"
#include "runtime/core/strings.h"
#include "runtime/device_tensor.h"
#include "runtime/donations.h"
#include "runtime/external_kernels.h"
#include "runtime/module.h"

using relay::Diagnostic;
using relay::UserError;
using relay::runtime::Device;
using relay::runtime::DType;
using relay::runtime::Module;
using relay::runtime::Shape;
using relay::runtime::Slot;
using relay::runtime::Tensor;

struct relay_module {
  Module module;
  std::vector<std::string> names;
};

struct relay_session {
  Module module;
  const relay::runtime::Function* function;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  relay::runtime::RunOptions options;
  // Copies of the outputs on devices, once they are asked for.
  mutable std::vector<Tensor> outputs_on_host{};
};

namespace {

constexpr const char* kOutOfMemory = "out of memory";

// The message of each thread. It hangs on a key, because to register the destructor of a thread-local
// variable ends the process when memory is short.
class LastError {
 public:
  LastError() : valid_(pthread_key_create(&key_, release) == 0) {}
  // The code of `release` may go away with the library.
  ~LastError() {
    if (valid_) pthread_key_delete(key_);
  }

  // If there is no memory, the message says so.
  void set(const char* text) noexcept {
    if (!valid_) return;
    void* before = pthread_getspecific(key_);
    char* copy = strdup(text);
    bool set = pthread_setspecific(key_, copy != nullptr ? copy : kOutOfMemory) == 0;
    release(set ? before : copy);
  }
  const char* get() const noexcept {
    auto* text = valid_ ? static_cast<const char*>(pthread_getspecific(key_)) : nullptr;
    return text != nullptr ? text : "";
  }

 private:
  static void release(void* text) {
    if (text != static_cast<const void*>(kOutOfMemory)) std::free(text);
  }

  pthread_key_t key_{};
  bool valid_;
};

LastError& last_error() {
  static LastError error;
  return error;
}

relay_status failed(relay_status status, const char* text) noexcept {
  last_error().set(text);
  return status;
}

// Runs `f`; an exception becomes a status and the message.
template <typename F>
relay_status guarded(F&& f) noexcept {
  try {
    relay::require_thread_locals();
    f();
    return RELAY_OK;
  } catch (const UserError& error) {
    return failed(RELAY_USER_ERROR, error.what());
  } catch (const relay::RuntimeError& error) {
    return failed(RELAY_RUNTIME_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return failed(RELAY_RUNTIME_ERROR, kOutOfMemory);
  } catch (const std::exception& error) {
    return failed(RELAY_INTERNAL_ERROR, error.what());
  } catch (...) {
    return failed(RELAY_INTERNAL_ERROR, "unknown error");
  }
}

[[noreturn]] void wrong(std::string message) {
  throw UserError(Diagnostic(relay::codes::run_input, {}, std::move(message)));
}

void need(const void* pointer, const char* name) {
  if (pointer == nullptr) wrong(std::string("argument '") + name + "' is null");
}

template <typename T>
const T& at(const std::vector<T>& items, size_t index, const char* what) {
  if (index >= items.size()) {
    wrong(std::string("there is no ") + what + " " + std::to_string(index) + ", only " +
          std::to_string(items.size()));
  }
  return items[index];
}

relay_tensor_type c_type(DType dtype, Shape shape, Device device) {
  return {dtype.code,   dtype.bits,  static_cast<int32_t>(shape.size()),
          shape.data(), device.type, device.id};
}

// The device of a caller's tensor; zeros are the CPU.
Device device_of(const relay_tensor_type& type) {
  constexpr int32_t kMax = std::numeric_limits<uint16_t>::max();
  if (type.device_type == 0 && type.device_id == 0) return Device::cpu();
  bool exists = type.device_type > 0 && type.device_type <= kMax && type.device_id >= 0 &&
                type.device_id <= kMax;
  Device device;
  if (exists) {
    device.type = static_cast<uint16_t>(type.device_type);
    device.id = static_cast<uint16_t>(type.device_id);
  }
  if (!exists || !device.is_host()) {
    throw UserError(Diagnostic(relay::codes::run_input, {},
                               "the CPU cannot read the memory of device type " +
                                   std::to_string(type.device_type) + ", number " +
                                   std::to_string(type.device_id))
                        .help("set device_type to RELAY_CPU for memory of the host, also where the "
                              "parameter is on a device; give memory of a device by "
                              "relay_session_set_input_dlpack"));
  }
  return device;
}

void slot_info(const Slot& slot, const char** name, relay_tensor_type* type) {
  if (name != nullptr) *name = slot.name.c_str();
  if (type == nullptr) return;
  if (!slot.is_tensor) wrong("'" + slot.name + "' is not a tensor but a " + slot.type_text);
  *type = c_type(slot.tensor.dtype, slot.tensor.shape, slot.tensor.device);
}

relay_status set_input(relay_session* session, size_t index, void* data,
                       const relay_tensor_type* type, bool read_only) {
  return guarded([&] {
    need(session, "session");
    need(type, "type");
    at(session->function->params, index, "input");
    if (type->rank < 0) wrong("the rank is negative");
    if (type->rank > 0) need(type->shape, "type->shape");
    DType dtype;
    dtype.code = static_cast<DType::Code>(type->dtype_code);
    dtype.bits = static_cast<uint8_t>(type->dtype_bits);
    if (type->dtype_code < 0 || type->dtype_code > RELAY_BOOL || type->dtype_bits < 0 ||
        type->dtype_bits > 64 || !dtype.valid()) {
      wrong("the dtype (code " + std::to_string(type->dtype_code) + ", " +
            std::to_string(type->dtype_bits) + " bits) does not exist");
    }
    Shape shape(type->shape, static_cast<size_t>(type->rank));
    if (relay::runtime::checked_num_elements(dtype, shape) > 0) need(data, "data");
    if (reinterpret_cast<uintptr_t>(data) % dtype.bytes() != 0) {
      wrong("the data is not aligned to its element");
    }
    session->inputs[index] =
        Tensor::from_external(data, dtype, shape, nullptr, read_only, device_of(*type));
  });
}

}  // namespace

extern "C" {

int32_t relay_api_version(void) { return RELAY_C_API_VERSION; }

const char* relay_last_error(void) { return last_error().get(); }

relay_status relay_module_load(const char* path, int32_t num_threads, relay_module** module) {
  return relay_module_load_version(path, "", num_threads, module);
}

relay_status relay_module_load_version(const char* path, const char* version, int32_t num_threads,
                                       relay_module** module) {
  return guarded([&] {
    need(path, "path");
    need(version, "version");
    need(module, "module");
    *module = nullptr;
    relay::runtime::LoadOptions options;
    options.num_threads = num_threads;
    options.version = version;
    Module loaded = Module::load(path, options);
    std::vector<std::string> names = loaded.function_names();
    *module = new relay_module{std::move(loaded), std::move(names)};
  });
}

void relay_module_free(relay_module* module) { delete module; }

relay_status relay_module_metadata(const relay_module* module, const char** text) {
  return guarded([&] {
    need(module, "module");
    need(text, "text");
    *text = module->module.metadata().c_str();
  });
}

relay_status relay_module_num_functions(const relay_module* module, size_t* count) {
  return guarded([&] {
    need(module, "module");
    need(count, "count");
    *count = module->names.size();
  });
}

relay_status relay_module_function_name(const relay_module* module, size_t index,
                                        const char** name) {
  return guarded([&] {
    need(module, "module");
    need(name, "name");
    *name = at(module->names, index, "function").c_str();
  });
}

relay_status relay_session_create(relay_module* module, const char* function,
                                  relay_session** session) {
  return guarded([&] {
    need(module, "module");
    need(function, "function");
    need(session, "session");
    *session = nullptr;
    const relay::runtime::Function& f = module->module.function(function);
    *session = new relay_session{module->module, &f, std::vector<Tensor>(f.params.size()), {}, {}};
    (*session)->options.keeps_on_devices = true;
  });
}

void relay_session_free(relay_session* session) { delete session; }

relay_status relay_session_num_inputs(const relay_session* session, size_t* count) {
  return guarded([&] {
    need(session, "session");
    need(count, "count");
    *count = session->function->params.size();
  });
}

relay_status relay_session_input_info(const relay_session* session, size_t index, const char** name,
                                      relay_tensor_type* type) {
  return guarded([&] {
    need(session, "session");
    slot_info(at(session->function->params, index, "input"), name, type);
  });
}

relay_status relay_session_input_index(const relay_session* session, const char* name,
                                       size_t* index) {
  return guarded([&] {
    need(session, "session");
    need(name, "name");
    need(index, "index");
    const std::vector<Slot>& params = session->function->params;
    for (size_t n = 0; n < params.size(); ++n) {
      if (params[n].name == name) {
        *index = n;
        return;
      }
    }
    std::string names;
    for (const Slot& slot : params) names += (names.empty() ? "" : ", ") + slot.name;
    throw UserError(Diagnostic(relay::codes::run_input, {},
                               "function '" + session->function->name + "' has no input '" +
                                   relay::escape_for_terminal(name, 200) + "'")
                        .expected("one of " + names));
  });
}

relay_status relay_session_num_outputs(const relay_session* session, size_t* count) {
  return guarded([&] {
    need(session, "session");
    need(count, "count");
    *count = session->function->results.size();
  });
}

relay_status relay_session_output_info(const relay_session* session, size_t index,
                                       const char** name, relay_tensor_type* type) {
  return guarded([&] {
    need(session, "session");
    slot_info(at(session->function->results, index, "output"), name, type);
  });
}

relay_status relay_session_set_input(relay_session* session, size_t index, const void* data,
                                     const relay_tensor_type* type) {
  return set_input(session, index, const_cast<void*>(data), type, /*read_only=*/true);
}

relay_status relay_session_donate_input(relay_session* session, size_t index, void* data,
                                        const relay_tensor_type* type) {
  return set_input(session, index, data, type, /*read_only=*/false);
}

relay_status relay_session_input_donation(const relay_session* session, size_t index,
                                          int64_t* output) {
  return guarded([&] {
    need(session, "session");
    need(output, "output");
    at(session->function->params, index, "input");
    const auto* donation = relay::runtime::donation_of_param(*session->function, index);
    *output = donation == nullptr ? -1 : donation->output;
  });
}

relay_status relay_session_set_input_strings(relay_session* session, size_t index,
                                             const char* const* strings, const int64_t* shape,
                                             int32_t rank) {
  return guarded([&] {
    need(session, "session");
    at(session->function->params, index, "input");
    if (rank < 0) wrong("the rank is negative");
    if (rank > 0) need(shape, "shape");
    Shape sizes(shape, static_cast<size_t>(rank));
    const auto count =
        static_cast<size_t>(relay::runtime::checked_num_elements(DType::String(), sizes));
    if (count > 0) need(strings, "strings");
    std::vector<std::string_view> texts;
    for (size_t n = 0; n < count; ++n) {
      need(strings[n], "strings[n]");
      texts.emplace_back(strings[n]);
    }
    session->inputs[index] = relay::runtime::make_strings(sizes, texts);
  });
}

relay_status relay_session_set_input_dlpack(relay_session* session, size_t index,
                                            void* dl_managed_tensor) {
  return guarded([&] {
    need(dl_managed_tensor, "dl_managed_tensor");
    Tensor tensor = relay::runtime::from_dlpack(static_cast<DLManagedTensor*>(dl_managed_tensor),
                                                relay::runtime::device_exchange());
    need(session, "session");
    at(session->function->params, index, "input");
    session->inputs[index] = std::move(tensor);
  });
}

relay_status relay_session_set_limits(relay_session* session, const relay_limits* limits) {
  return guarded([&] {
    need(session, "session");
    relay_limits given = limits != nullptr ? *limits : relay_limits{};
    if (given.fuel < 0 || given.memory_bytes < 0 || !(given.seconds >= 0)) {
      wrong("a limit is negative or not a number");
    }
    session->options.fuel = given.fuel > 0 ? given.fuel : -1;
    session->options.memory_limit = given.memory_bytes > 0 ? given.memory_bytes : -1;
    session->options.time_limit = given.seconds;
  });
}

relay_status relay_session_run(relay_session* session) {
  return guarded([&] {
    need(session, "session");
    session->outputs.clear();
    session->outputs_on_host.clear();
    session->outputs =
        session->module.run(session->function->name, session->inputs, session->options);
  });
}

relay_status relay_session_output(const relay_session* session, size_t index,
                                  relay_tensor* tensor) {
  return guarded([&] {
    need(session, "session");
    need(tensor, "tensor");
    Tensor output = at(session->outputs, index, "output of a run");
    if (!output.device().is_host()) {
      session->outputs_on_host.resize(session->outputs.size());
      Tensor& copy = session->outputs_on_host[index];
      if (!copy) copy = relay::runtime::to_host(output);
      output = copy;
    }
    *tensor = {c_type(output.dtype(), output.shape(), output.device()), output.data(),
               output.byte_size()};
  });
}

relay_status relay_session_output_string(const relay_session* session, size_t index, size_t element,
                                         const char** bytes, size_t* size) {
  return guarded([&] {
    need(session, "session");
    need(bytes, "bytes");
    need(size, "size");
    const Tensor& output = at(session->outputs, index, "output of a run");
    if (!output.dtype().is_string()) wrong("the output holds no strings");
    if (element >= static_cast<size_t>(output.num_elements())) {
      wrong("there is no element " + std::to_string(element) + ", only " +
            std::to_string(output.num_elements()));
    }
    std::string_view text = relay::runtime::string_at(output, static_cast<int64_t>(element));
    *bytes = text.data() == nullptr ? "" : text.data();
    *size = text.size();
  });
}

relay_status relay_session_output_dlpack(const relay_session* session, size_t index,
                                         void** dl_managed_tensor) {
  return guarded([&] {
    need(session, "session");
    need(dl_managed_tensor, "dl_managed_tensor");
    *dl_managed_tensor = relay::runtime::to_dlpack(at(session->outputs, index, "output of a run"),
                                                   relay::runtime::device_exchange());
  });
}

relay_status relay_register_host_kernel(const char* name, relay_host_kernel kernel) {
  return guarded([&] {
    need(name, "name");
    if (*name == '\0') wrong("the name of a host kernel is empty");
    relay::runtime::register_host_kernel(name, kernel);
  });
}

void relay_kernel_fail(const struct relay_kernel_context* context) {
  if (context != nullptr) *context->error = RELAY_KERNEL_CHECK_FAILED;
}

}  // extern "C"
