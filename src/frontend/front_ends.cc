#include "frontend/front_ends.h"

namespace relay {

std::vector<FrontEnd> built_in_front_ends() {
  return {
#define RELAY_FRONT_END(name) name##_front_end(),
#include "frontend/front_end_list.def"
#undef RELAY_FRONT_END
  };
}

}  // namespace relay
