#include "runtime/core/free_blocks.h"

namespace relay::runtime::detail {

constinit thread_local FreeBlocks pool{};

}  // namespace relay::runtime::detail
