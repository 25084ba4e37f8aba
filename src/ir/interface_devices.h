// Where the inputs and results of a function that callers run are: on the host, unless attributes name devices.
//
//   def @main(%x: Tensor[(4, 8), float32],
//             param_devices=[["x", "opencl:0"]], result_devices=[[0, "opencl:0"]]) { exp(%x) }
//
// A parameter is named as in the program, a result by its number among the tensors of the result, a tuple's leaves in order. A
// result that the program computes by on_device with constrain_result=True is on that device, too: PlanDevices writes it down
// here. The attributes change nothing about what the function computes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "runtime/core/device.h"

namespace relay {

namespace attr {
inline constexpr const char* kParamDevices = "param_devices";
inline constexpr const char* kResultDevices = "result_devices";
}  // namespace attr

// Numbers of parameters, and of tensors of the result, each with its device.
struct InterfaceDevices {
  std::vector<std::pair<size_t, runtime::Device>> params, results;

  bool empty() const { return params.empty() && results.empty(); }
};

// What the attributes of the function say. Throws UserError: E1601 for a parameter, result or device that is not there or named
// twice, or attributes of another form; E1602 for what is not a tensor of numbers, or is donated or prepacked.
InterfaceDevices interface_devices(const FunctionNode& f, const Module& mod);

// Whether a function of the module has such attributes.
bool has_interface_devices(const Module& mod);

// Throws as above, for all functions of the module.
void check_interface_devices(const Module& mod);

// The function with its results there, in addition to those that its attributes name.
Function with_result_devices(const Function& f,
                             const std::vector<std::pair<size_t, runtime::Device>>& results);

// The module with inputs and results of @main on devices: pairs of a name as callers know it, of a result also its number, and
// a device. A result named "" is each of them. Throws as above.
Module with_interface_devices(const Module& mod,
                              const std::vector<std::pair<std::string, std::string>>& params,
                              const std::vector<std::pair<std::string, std::string>>& results);

}  // namespace relay
