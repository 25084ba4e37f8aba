#include "ops/register_ops.h"

#include <mutex>
#include <utility>

#include "ops/rows.h"

namespace relay {
namespace {

template <size_t... kFamilies>
void install(std::index_sequence<kFamilies...>) {
  (OpRegistry::global().install(ops::rows_of<static_cast<ops::Family>(kFamilies)>()), ...);
}

}  // namespace

void register_ops() {
  static std::once_flag once;
  std::call_once(
      once, [] { install(std::make_index_sequence<static_cast<size_t>(ops::Family::kCount)>()); });
}

}  // namespace relay
