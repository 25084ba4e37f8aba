// Tensors that commands write for people: .npz archives, and folders that hold a program with its inputs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "runtime/core/tensor.h"

namespace relay::cli {

// Writes the archive whole or not at all. UserError E0703 where it exists and `force` is false.
void save_tensors(const std::string& path,
                  const std::vector<std::pair<std::string, runtime::Tensor>>& tensors, bool force);

// What reproduces a finding: FOLDER/program.relay, unless `program` is null, and FOLDER/inputs.npz.
struct Reproduction {
  std::string folder;
  Module program = nullptr;
  std::vector<std::pair<std::string, runtime::Tensor>> inputs;
};
// Makes the folder if there is none. Returns the files that were written.
std::vector<std::string> save_reproduction(const Reproduction& what, bool force);
// Throws what save_reproduction would throw about files that exist.
void refuse_existing_reproduction(const std::string& folder, bool force);

}  // namespace relay::cli
