#include "runtime/core/object.h"

namespace relay::runtime {

void destroy_tensor(Object* object) noexcept;

void destroy_object(Object* object) noexcept { destroy_tensor(object); }

}  // namespace relay::runtime
