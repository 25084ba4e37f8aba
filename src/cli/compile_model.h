// A model of the command line, compiled.
#pragma once

#include <string>
#include <vector>

#include "analysis/size_hints.h"
#include "cli/commands.h"
#include "driver/compile.h"
#include "driver/model.h"

namespace relay::cli {

struct CompiledInput {
  LoadedModel model;
  CompiledModule compiled;
  double import_seconds = 0;
};

// Reads and compiles the model of a file; parameters as of `prepare` (cli/commands.h).
CompiledInput compile_input(const std::string& path, const CompileFlags& flags,
                            const std::string& function, const ModelOptions& shapes,
                            const std::vector<SizeHint>& sizes);

// UserError E0702 for ranges of dimensions, which are given to a compilation, of a file that is compiled already.
void refuse_ranges(const std::string& path, const std::vector<SizeHint>& sizes);

}  // namespace relay::cli
