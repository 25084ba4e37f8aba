#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "codegen/kernel_cache.h"

namespace relay::cli {
namespace {

struct CacheArgs {
  std::string action = "info";
  bool json = false;
};

int run_cache(const CacheArgs& o) {
  std::shared_ptr<KernelCache> cache = KernelCache::of_user();
  int64_t removed = cache != nullptr && o.action == "clear" ? cache->clear() : 0;
  KernelCache::Usage usage = cache != nullptr ? cache->usage() : KernelCache::Usage{};
  std::string note =
      cache != nullptr ? cache->note() : "RELAY_CACHE_SIZE is 0, or there is no home";
  if (o.json) {
    nlohmann::ordered_json root;
    root["folder"] = cache != nullptr ? cache->folder() : "";
    root["kernels"] = usage.entries;
    root["bytes"] = usage.bytes;
    root["max_bytes"] = cache != nullptr ? cache->max_bytes() : 0;
    if (o.action == "clear") root["removed"] = removed;
    root["note"] = note;
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return 0;
  }
  if (cache == nullptr) {
    std::printf("no cache: %s\n", note.c_str());
    return 0;
  }
  std::printf("folder   %s\n", escape_for_terminal(cache->folder()).c_str());
  if (o.action == "clear") std::printf("removed  %lld kernels\n", static_cast<long long>(removed));
  std::printf("kernels  %lld, %s of %s\n", static_cast<long long>(usage.entries),
              format_bytes(static_cast<double>(usage.bytes)).c_str(),
              format_bytes(static_cast<double>(cache->max_bytes())).c_str());
  if (!note.empty()) std::printf("note     %s\n", note.c_str());
  return 0;
}

}  // namespace

Command cache_command() {
  auto o = std::make_shared<CacheArgs>();
  return {"cache",
          "Show or clear the compiled kernels that are kept: in RELAY_CACHE_DIR, "
          "XDG_CACHE_HOME/relay or "
          "~/.cache/relay, at most RELAY_CACHE_SIZE (512M)",
          {argument("ACTION", o->action, "info or clear").choices({"info", "clear"}),
           flag("--json", o->json, "Print the report as JSON")},
          [o](const Given&) { return run_cache(*o); }};
}

}  // namespace relay::cli
