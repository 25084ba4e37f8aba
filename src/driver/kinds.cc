#include "driver/kinds.h"

#include <mutex>

#include "codegen/cuda/backend.h"
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
    for (TargetKind device : {codegen::opencl_kind(), codegen::cuda_kind()}) {
      device.rules = work_item_rules;
      register_own_target_kind(std::move(device));
    }
  });
}

}  // namespace relay
