// The front ends that are built in.
#pragma once

#include <vector>

#include "frontend/common/front_end.h"

namespace relay {

// The row of each line of front_end_list.def: a function of its folder.
#define RELAY_FRONT_END(name) FrontEnd name##_front_end();
#include "frontend/front_end_list.def"
#undef RELAY_FRONT_END

std::vector<FrontEnd> built_in_front_ends();

}  // namespace relay
