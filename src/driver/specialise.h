// Compiled programs for listed values of inputs that decide how many dimensions something has.
//
//   relay compile m.onnx -o m.so --specialise axes=[0],[0,1]
//
// The results of such programs have types of their own, so each is an entry function: main, or where there are several
// main.1, main.2, ... in the order of the values. The metadata of the artifact says which is for what; the run-time
// system needs to know nothing of it, callers in C name the function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "driver/model.h"
#include "runtime/module.h"

namespace relay {

// Entry functions of one artifact.
inline constexpr size_t kMaxEntries = 16;

// The model for every combination of the values, each list of them by the name of an input; without any as load_model
// reads it. `entries` gets what each entry function is for, where the model is specialised. Throws what load_model
// does, and UserError E0702 for more than kMaxEntries combinations and for inputs that decide nothing.
LoadedModel load_entries(const std::string& path, const ModelOptions& options,
                         const std::map<std::string, std::vector<Tensor>>& values,
                         std::vector<EntryFunction>& entries);

// The entry function for a call of `function` with these inputs by name: the function itself where the module has it.
// UserError E0707 when the module was compiled for other inputs.
std::string entry_for(const runtime::Module& module, const std::string& function,
                      const std::map<std::string, Tensor>& inputs);

}  // namespace relay
