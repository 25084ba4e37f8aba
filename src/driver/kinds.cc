#include "driver/kinds.h"

#include <mutex>

#include "codegen/llvm/backend.h"
#include "codegen/opencl/backend.h"
#include "lower/rules/rules.h"
#include "target/own_kinds.h"

namespace relay {

void register_kinds() {
  static std::once_flag once;
  std::call_once(once, [] {
    TargetKind cpu = codegen::cpu_kind();
    cpu.rules = processor_rules;
    register_own_target_kind(std::move(cpu));
    TargetKind opencl = codegen::opencl_kind();
    opencl.rules = work_item_rules;
    register_own_target_kind(std::move(opencl));
  });
}

}  // namespace relay
