#include "codegen/test/cpu_kind.h"

#include "lower/rules/rules.h"

namespace relay {
namespace {

[[maybe_unused]] testing::Environment* const known =
    testing::AddGlobalTestEnvironment(new codegen_test::CpuKind(processor_rules));

}  // namespace
}  // namespace relay
