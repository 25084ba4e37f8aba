#include "cli/saved_tensors.h"

#include <filesystem>
#include <map>

#include "base/codes/runtime.h"
#include "cli/commands.h"
#include "frontend/arrays/npz.h"
#include "ir/text/text.h"

namespace relay::cli {
namespace {

const char* const kProgramFile = "/program.relay";
const char* const kInputs = "/inputs.npz";

}  // namespace

void save_tensors(const std::string& path,
                  const std::vector<std::pair<std::string, runtime::Tensor>>& tensors, bool force) {
  std::map<std::string, runtime::Tensor> arrays;
  for (const auto& [name, tensor] : tensors) {
    if (tensor) arrays.emplace(name, tensor);
  }
  refuse_existing(path, force);
  runtime::TemporaryFile file(path);
  write_npz(file, arrays);
  file.rename_to_target(force);
}

void refuse_existing_reproduction(const std::string& folder, bool force) {
  refuse_existing(folder + kProgramFile, force);
  refuse_existing(folder + kInputs, force);
}

std::vector<std::string> save_reproduction(const Reproduction& what, bool force) {
  std::error_code error;
  std::filesystem::create_directories(what.folder, error);
  if (error) {
    throw UserError(Diagnostic(codes::artifact_io, {},
                               "the folder '" + escape_for_terminal(what.folder, 300) +
                                   "' cannot be made: " + error.message()));
  }
  std::vector<std::string> out;
  if (what.program) {
    out.push_back(what.folder + kProgramFile);
    write_text(out.back(), print_module(what.program), force);
  }
  out.push_back(what.folder + kInputs);
  save_tensors(out.back(), what.inputs, force);
  return out;
}

}  // namespace relay::cli
