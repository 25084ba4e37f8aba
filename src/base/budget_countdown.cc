#include "base/budget.h"

namespace relay::detail {

constinit thread_local int32_t budget_countdown = 0;

}  // namespace relay::detail
