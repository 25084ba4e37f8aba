#include "codegen/targets.h"

#include "codegen/backend.h"
#include "runtime/cpu.h"
#include "target/target_text.h"

namespace relay {

Target parse_target(std::string_view text) {
  // One code generator knows the processors of all architectures.
  return read_target(text, backends().front()->processors());
}

Target native_target() { return parse_target("native"); }

Target least_target() { return parse_target(find_architecture(runtime::host_arch())->least_level); }

}  // namespace relay
