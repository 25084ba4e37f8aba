#include "codegen/targets.h"

#include "codegen/backend.h"
#include "runtime/core/device.h"
#include "runtime/cpu.h"
#include "target/architectures.h"
#include "target/target_text.h"

namespace relay {

Target parse_target(std::string_view text) {
  std::vector<KindReader> kinds;
  for (const TargetKind* k : target_kinds()) kinds.push_back({k, &k->backend().reader()});
  RELAY_CHECK(!kinds.empty(), "no kind of target is registered");
  return read_target(text, kinds);
}

ProgramTarget parse_program_target(std::string_view text) {
  std::vector<Target> all;
  for (size_t end = text.find(';'); end != std::string_view::npos; end = text.find(';')) {
    all.push_back(parse_target(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  all.push_back(parse_target(text));
  // A device without a host has this machine.
  const runtime::Device memory{kind_of(all.front()).device};
  if (!memory.is_host()) all.insert(all.begin(), native_target());
  return {all.front(), {all.begin() + 1, all.end()}};
}

Target native_target() { return parse_target("native"); }

Target least_target() { return parse_target(find_architecture(runtime::host_arch())->least_level); }

}  // namespace relay
