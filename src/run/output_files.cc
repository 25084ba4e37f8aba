#include "run/output_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/codes/driver.h"
#include "base/codes/runtime.h"
#include "run/npy.h"
#include "runtime/temporary_file.h"

namespace relay {
namespace {

// A name as a file name: characters other than letters, digits, dots and dashes become underscores.
std::string file_name(const std::string& name) {
  std::string out;
  for (char c : name.substr(0, 100)) {
    bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '-' || c == '_' || (c == '.' && !out.empty());
    out += safe ? c : '_';
  }
  return (out.empty() ? "output" : out) + ".npy";
}

}  // namespace

std::string result_name(const runtime::Function& function, size_t i) {
  const auto& results = function.results;
  return i < results.size() && !results[i].name.empty() ? results[i].name
                                                        : "output" + std::to_string(i);
}

std::vector<std::string> output_files(const runtime::Function& function, size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    std::string name = file_name(result_name(function, i));
    if (std::ranges::find(out, name) != out.end()) name = std::to_string(i) + "." + name;
    out.push_back(name);
  }
  return out;
}

void check_folder(const std::string& path) {
  std::error_code error;
  auto found = std::filesystem::status(path, error);
  if (!std::filesystem::exists(found) || std::filesystem::is_directory(found)) return;
  throw UserError(Diagnostic(codes::artifact_io, {},
                             "--output " + escape_for_terminal(path, 300) + " is not a folder")
                      .help("outputs are written as one .npy file each into a folder"));
}

void refuse_existing_file(const std::string& path, bool overwrite) {
  std::error_code ignored;
  if (!overwrite &&
      std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored))) {
    throw UserError(Diagnostic(codes::driver_output_exists, {},
                               "'" + escape_for_terminal(path, 300) + "' exists already")
                        .help("give another name, or --force to overwrite it"));
  }
  runtime::TemporaryFile::check_target(path, overwrite);
}

void write_outputs(const std::string& folder, const runtime::Function& function,
                   const std::vector<runtime::Tensor>& outputs, bool overwrite) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw UserError(Diagnostic(codes::artifact_io, {},
                               "the folder '" + escape_for_terminal(folder, 300) +
                                   "' cannot be made: " + error.message()));
  }
  std::vector<std::string> paths;
  for (const std::string& name : output_files(function, outputs.size())) {
    paths.push_back(folder + "/" + name);
    refuse_existing_file(paths.back(), overwrite);
  }
  std::vector<std::unique_ptr<runtime::TemporaryFile>> files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    files.push_back(std::make_unique<runtime::TemporaryFile>(paths[i]));
    write_npy(*files.back(), outputs[i]);
  }
  for (auto& file : files) file->rename_to_target(overwrite);
}

}  // namespace relay
