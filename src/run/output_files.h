// The outputs of a run in a folder, one .npy file each.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/tensor.h"
#include "runtime/vm/bytecode.h"

namespace relay {

// The name of a function's result for people: its own, or "output0".
std::string result_name(const runtime::Function& function, size_t i);
// The file names of a function's first `count` results, which all differ: "logits.npy".
std::vector<std::string> output_files(const runtime::Function& function, size_t count);

// Throws UserError E0611 when something other than a folder exists at the path.
void check_folder(const std::string& path);
// Writes all outputs or none: no file has its name before all are written. Makes the folder. UserError E0703 when a file exists
// and `overwrite` is false, E0611 when one cannot be written.
void write_outputs(const std::string& folder, const runtime::Function& function,
                   const std::vector<runtime::Tensor>& outputs, bool overwrite);

// Throws UserError E0703 when a regular file is at the path and `overwrite` is false, and E0611 for what no file may
// replace.
void refuse_existing_file(const std::string& path, bool overwrite);

}  // namespace relay
