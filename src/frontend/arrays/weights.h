// Weights from the files that people keep them in: safetensors, NumPy archives, and state dictionaries that
// torch.save wrote.
#pragma once

#include <map>
#include <string>

#include "runtime/core/tensor.h"

namespace relay {

// The tensors of a file by their names; those of dictionaries in each other are called after both: "model.fc.weight". What
// is in a mapped file stays there, except in NumPy archives. Nothing of a file is executed. E0502 for damaged files, E0504
// for what is not read, E0508 for tensors that do not fit, E0506 beyond limits, E0701 for NumPy archives that cannot be
// read, E0514 for other files.
std::map<std::string, runtime::Tensor> read_weights(const std::string& path);

}  // namespace relay
