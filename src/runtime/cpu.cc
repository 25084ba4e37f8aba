#include "runtime/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/codes/runtime.h"
#include "base/lines.h"
#include "runtime/machine/machine.h"

namespace relay::runtime {

MissingFeatures missing_features(std::span<const std::string> required) {
  MissingFeatures missing;
  for (const std::string& feature : required) {
    if (host_has_feature(feature)) continue;
    (machine::processor_has_feature(feature) ? missing.disabled : missing.absent)
        .push_back(feature);
  }
  return missing;
}

Diagnostic features_refused(const std::string& name, const MissingFeatures& missing) {
  std::string text = name + " uses instructions";
  auto add = [&](const char* why, const std::vector<std::string>& features) {
    const char* between = ": ";
    if (features.empty()) return;
    text += why;
    for (const std::string& f : features) text += std::exchange(between, ", ") + f;
  };
  add(" that this processor lacks", missing.absent);
  if (!missing.absent.empty() && !missing.disabled.empty()) text += "; and instructions";
  add(" that the operating system does not enable", missing.disabled);
  return Diagnostic(codes::artifact_cpu, {}, text)
      .help("compile the model on this machine, or with a --target that it supports");
}

std::optional<Diagnostic> machine_refuses(const std::string& name, std::string_view arch,
                                          std::span<const std::string> features) {
  if (arch != host_arch()) {
    return Diagnostic(codes::artifact_cpu, {}, name + " is compiled for another architecture")
        .expected(std::string(host_arch()))
        .found(std::string(arch))
        .help(
            "run it with `relay run --emulate`, or compile the model with a --target of this "
            "machine");
  }
  MissingFeatures missing = missing_features(features);
  if (missing.empty()) return std::nullopt;
  return features_refused(name, missing);
}

namespace {

// The quota in cores of one control group folder, 0 for none.
double quota_of(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::string v2 = first_line_of(folder + "/cpu.max");
  if (std::sscanf(v2.c_str(), "%lf %lf", &quota, &period) == 2 && period > 0) return quota / period;
  quota = std::atof(first_line_of(folder + "/cpu.cfs_quota_us").c_str());
  period = std::atof(first_line_of(folder + "/cpu.cfs_period_us").c_str());
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

double cgroup_cpu_quota(const std::string& root) {
  double quota = 0;
  auto apply = [&quota](double found) {
    if (found > 0 && (quota == 0 || found < quota)) quota = found;
  };
  // Lines "0::/path" (version 2) and "4:cpu,cpuacct:/path" (version 1). Inside a container the
  // path may not exist below the mount; the mount's root is then the container's own group.
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    std::string mount = root + "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
      bool joint = !lines_of(mount + "/" + controllers + "/cpu.cfs_quota_us").empty();
      mount += joint ? "/" + controllers : "/cpu";
    }
    // A parent's quota limits its children.
    for (; !path.empty() && path != "/"; path.erase(path.rfind('/'))) {
      if (path.front() != '/' || path.find("..") != std::string::npos) break;
      apply(quota_of(mount + path));
    }
    apply(quota_of(mount));
  }
  return quota;
}

int available_threads(const std::string& root) {
  int cores = 1;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    // Two hardware threads of one core share its arithmetic units: they count once.
    std::set<std::string> distinct;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      std::string siblings = first_line_of(root + "/sys/devices/system/cpu/cpu" +
                                           std::to_string(cpu) + "/topology/thread_siblings_list");
      distinct.insert(siblings.empty() ? "cpu" + std::to_string(cpu) : siblings);
    }
    cores = static_cast<int>(distinct.size());
  }
  double quota = cgroup_cpu_quota(root);
  if (quota > 0 && quota < cores) cores = static_cast<int>(std::floor(quota));
  return std::max(cores, 1);
}

}  // namespace relay::runtime
