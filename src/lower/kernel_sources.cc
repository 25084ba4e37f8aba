#include "lower/kernel_sources.h"

#include <mutex>

#include "base/fork.h"
#include "lower/kernel_body.h"

namespace relay {
namespace {

struct Sources {
  ForkSafe<std::mutex> mutex;
  std::vector<std::shared_ptr<const KernelSource>> rows;
};

Sources& all() {
  static Sources sources;
  return sources;
}

}  // namespace

void register_kernel_source(std::shared_ptr<const KernelSource> source) {
  Sources& sources = all();
  std::lock_guard lock(sources.mutex);
  sources.rows.push_back(std::move(source));
}

std::vector<std::shared_ptr<const KernelSource>> kernel_sources() {
  Sources& sources = all();
  std::lock_guard lock(sources.mutex);
  return sources.rows;
}

}  // namespace relay
