// The versions of a program for several processors (target/target_versions.h), for reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "runtime/artifact.h"

namespace relay::cli {

struct VersionReport {
  std::string name;
  int64_t code_bytes = 0;
  int64_t constant_bytes = 0;
  std::string metadata;  // JSON text
};

// Of a compiled file. Errors as of runtime::Artifact.
std::vector<VersionReport> version_reports(const std::string& path);
// Whose constants are loaded.
std::vector<VersionReport> version_reports(std::span<const runtime::Artifact> versions);
std::vector<VersionReport> version_reports(std::span<const CompiledModule> versions);

// "x86-64-v2, x86-64-v3".
std::string version_names(const std::vector<VersionReport>& versions);

// A line for each version, and for the file of `file_bytes` beside the files that it stands for. Empty for one version.
std::string version_lines(const std::vector<VersionReport>& versions, int64_t file_bytes);
nlohmann::ordered_json version_json(const std::vector<VersionReport>& versions);

}  // namespace relay::cli
