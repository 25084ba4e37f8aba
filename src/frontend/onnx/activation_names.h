// Activation functions by the names that attributes and operators have for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/common/activation.h"

namespace relay::frontend::onnx {

struct ActivationName {
  std::string_view name;  // "HardSigmoid"
  ActivationKind kind;
  // What they are where a model does not say; nullopt for parameters that the function does not have.
  std::optional<double> alpha = std::nullopt, beta = std::nullopt;
};

// In upper or lower case; null for another name.
const ActivationName* find_activation(std::string_view name);
// "Affine, Elu or Tanh"
std::string all_activations();

}  // namespace relay::frontend::onnx
