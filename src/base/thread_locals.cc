#include "base/thread_locals.h"

namespace relay::detail {

constinit thread_local int32_t fork_depth = 0;
constinit thread_local bool thread_is_ready = false;

}  // namespace relay::detail
