#include "codegen/test/cpu_kind.h"

namespace relay {
namespace {

[[maybe_unused]] testing::Environment* const known =
    testing::AddGlobalTestEnvironment(new codegen_test::CpuKind);

}  // namespace
}  // namespace relay
