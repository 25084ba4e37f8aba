// Tensors on devices as Python has them: relay.runtime.NDArray, which DLPack exchanges without a copy.
#pragma once

#include <optional>

#include "bind/convert.h"

namespace relay::bind {

// The tensor of an NDArray, or of another library's array that is on a device; nullopt for what is in the memory of the host.
// UserError E0602 for memory that Relay's driver of the device cannot use.
std::optional<Tensor> tensor_on_device(nb::handle object);

// A NumPy array on the tensor's memory, or an NDArray where it is on a device.
nb::object to_array(const Tensor& tensor);

// The value with its tensors, those of nested tuples too, in the memory of the host.
runtime::Value value_on_host(const runtime::Value& value);

void bind_device_arrays(nb::module_& m);

}  // namespace relay::bind
