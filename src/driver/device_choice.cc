#include "driver/device_choice.h"

#include "codegen/backend.h"
#include "lower/compose.h"
#include "node/walk.h"
#include "tir/while.h"

namespace relay {

DeviceChoice choice_of(runtime::Device device, const Target& target) {
  return {device, [target](const FunctionNode& primitive) {
            const Backend& backend = backend_of(target);
            tir::PrimFunc f;
            try {
              f = compose(primitive, "asked").func;
            } catch (const UserError&) {
              // It has no kernel at all, which the host's compiler reports.
              return false;
            }
            bool open = false;
            post_order(
                f->body, [&](const Node& n) { open |= isa<tir::WhileNode>(&n); }, family::tir_stmt);
            return !open && missing_intrinsic(backend, f) == nullptr;
          }};
}

}  // namespace relay
