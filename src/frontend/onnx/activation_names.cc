#include "frontend/onnx/activation_names.h"

#include <algorithm>
#include <cctype>

namespace relay::frontend::onnx {
namespace {

constexpr ActivationName kNames[] = {
    {"Affine", ActivationKind::Affine, 1.0, 0.0},
    {"Elu", ActivationKind::Elu, 1.0},
    {"HardSigmoid", ActivationKind::HardSigmoid, 0.2, 0.5},
    {"LeakyRelu", ActivationKind::LeakyRelu, 0.01},
    {"Relu", ActivationKind::Relu},
    {"ScaledTanh", ActivationKind::ScaledTanh, 1.0, 1.0},
    {"Sigmoid", ActivationKind::Sigmoid},
    {"Softplus", ActivationKind::Softplus},
    {"Softsign", ActivationKind::Softsign},
    {"Tanh", ActivationKind::Tanh},
    {"ThresholdedRelu", ActivationKind::ThresholdedRelu, 1.0},
};

}  // namespace

const ActivationName* find_activation(std::string_view name) {
  auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  auto row = std::ranges::find_if(kNames, [&](const ActivationName& known) {
    return std::ranges::equal(known.name, name, same);
  });
  return row == std::end(kNames) ? nullptr : &*row;
}

std::string all_activations() {
  std::string out;
  for (const ActivationName& row : kNames) {
    out += &row == kNames ? "" : &row + 1 == std::end(kNames) ? " or " : ", ";
    out += row.name;
  }
  return out;
}

}  // namespace relay::frontend::onnx
