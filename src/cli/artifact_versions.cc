#include "cli/artifact_versions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantities.h"
#include "runtime/core/print.h"
#include "runtime/file_descriptor.h"

namespace relay::cli {
namespace {

VersionReport report_of(const std::string& name, size_t code_bytes,
                        const std::vector<Tensor>& constants, const std::string& metadata) {
  VersionReport out{name, static_cast<int64_t>(code_bytes), 0, metadata};
  for (const Tensor& t : constants) out.constant_bytes += static_cast<int64_t>(t.byte_size());
  return out;
}

}  // namespace

std::vector<VersionReport> version_reports(const std::string& path) {
  runtime::FileDescriptor file(runtime::open_artifact_file(path));
  std::vector<runtime::Artifact> versions = runtime::Artifact::read_versions(file.get(), path);
  for (runtime::Artifact& v : versions) v.load_constants(/*verify=*/false);
  return version_reports(versions);
}

std::vector<VersionReport> version_reports(std::span<const runtime::Artifact> versions) {
  std::vector<VersionReport> out;
  for (const runtime::Artifact& v : versions) {
    out.push_back(report_of(v.info.version, v.elf.size(), v.program.constants, v.metadata));
  }
  return out;
}

std::vector<VersionReport> version_reports(std::span<const CompiledModule> versions) {
  std::vector<VersionReport> out;
  for (const CompiledModule& v : versions) {
    out.push_back(report_of(v.info.version, v.elf.size(), v.program.constants, v.metadata));
  }
  return out;
}

std::string version_names(const std::vector<VersionReport>& versions) {
  std::string out;
  for (const VersionReport& v : versions) {
    out += (out.empty() ? "" : ", ") + escape_for_terminal(v.name, 200);
  }
  return out;
}

std::string version_lines(const std::vector<VersionReport>& versions, int64_t file_bytes) {
  if (versions.size() < 2) return "";
  std::string out;
  int64_t separate = 0;
  for (const VersionReport& v : versions) {
    out += "version    " + escape_for_terminal(v.name, 200) + ": code " +
           format_bytes(static_cast<double>(v.code_bytes)) + ", constants " +
           format_bytes(static_cast<double>(v.constant_bytes)) + "\n";
    separate += v.code_bytes + v.constant_bytes;
  }
  return out + "size       " + format_bytes(static_cast<double>(file_bytes)) + "; separate files " +
         format_bytes(static_cast<double>(separate)) + "\n";
}

nlohmann::ordered_json version_json(const std::vector<VersionReport>& versions) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const VersionReport& v : versions) {
    out.push_back(
        {{"name", v.name}, {"code_bytes", v.code_bytes}, {"constant_bytes", v.constant_bytes}});
  }
  return out;
}

}  // namespace relay::cli
