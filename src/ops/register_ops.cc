#include "ops/register_ops.h"

#include <mutex>

#include "ops/families.h"

namespace relay {

void register_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    OpRegistry& registry = OpRegistry::global();
    ops::add_elementwise(registry);
    ops::add_binary(registry);
    ops::add_reduce(registry);
    ops::add_matmul(registry);
    ops::add_conv(registry);
    ops::add_winograd(registry);
    ops::add_pool(registry);
    ops::add_norm(registry);
    ops::add_attention(registry);
    ops::add_shape(registry);
    ops::add_join(registry);
    ops::add_slice(registry);
    ops::add_pad(registry);
    ops::add_create(registry);
    ops::add_index(registry);
    ops::add_layout(registry);
    ops::add_resize(registry);
    ops::add_sample(registry);
    ops::add_loss(registry);
    ops::add_region(registry);
    ops::add_sort(registry);
    ops::add_scan(registry);
    ops::add_scatter(registry);
    ops::add_generate(registry);
    ops::add_sequence(registry);
    ops::add_einsum(registry);
    ops::add_spatial(registry);
    ops::add_advanced_index(registry);
    ops::add_l2_normalize(registry);
    ops::add_random(registry);
    ops::add_dynamic(registry);
  });
}

}  // namespace relay
