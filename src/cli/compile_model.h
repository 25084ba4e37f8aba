// A model of the command line, compiled.
#pragma once

#include <string>
#include <vector>

#include "analysis/size_hints.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "driver/compile.h"
#include "driver/model.h"

namespace relay::cli {

struct CompiledInput {
  LoadedModel model;
  std::vector<CompiledModule> versions;
  double import_seconds = 0;
};

// Reads and compiles the model of a file; parameters as of `prepare` (cli/commands.h).
CompiledInput compile_input(const std::string& path, const CompileFlags& flags,
                            const std::string& function, const ModelOptions& shapes,
                            const std::vector<SizeHint>& sizes, Versions versions);

// A model that is not compiled yet, and the arguments for a run of one of its functions.
struct ModelRun {
  LoadedModel model;
  runtime::Function signature;
  std::vector<SizeHint> ranges;  // of dimensions, for a compilation
  Arguments arguments;
};

// Reads both. UserError E0702 for an artifact, with what to give instead (`help`).
ModelRun read_model_run(const std::string& path, const std::string& function,
                        const CompileFlags& flags, const InputFlags& given, const char* help);

// UserError E0702 for ranges of dimensions, which are given to a compilation, of a file that is compiled already.
void refuse_ranges(const std::string& path, const std::vector<SizeHint>& sizes);

}  // namespace relay::cli
