// What each family file offers to the list in register_ops.cc.
#pragma once

#include "ir/op.h"

namespace relay::ops {

void add_elementwise(OpRegistry& registry);
void add_binary(OpRegistry& registry);
void add_reduce(OpRegistry& registry);
void add_matmul(OpRegistry& registry);
void add_conv(OpRegistry& registry);
void add_winograd(OpRegistry& registry);
void add_pool(OpRegistry& registry);
void add_norm(OpRegistry& registry);
void add_attention(OpRegistry& registry);
void add_shape(OpRegistry& registry);
void add_join(OpRegistry& registry);
void add_slice(OpRegistry& registry);
void add_pad(OpRegistry& registry);
void add_create(OpRegistry& registry);
void add_index(OpRegistry& registry);
void add_layout(OpRegistry& registry);
void add_resize(OpRegistry& registry);
void add_sample(OpRegistry& registry);
void add_loss(OpRegistry& registry);
void add_region(OpRegistry& registry);
void add_sort(OpRegistry& registry);
void add_scan(OpRegistry& registry);
void add_scatter(OpRegistry& registry);
void add_generate(OpRegistry& registry);
void add_sequence(OpRegistry& registry);
void add_einsum(OpRegistry& registry);
void add_spatial(OpRegistry& registry);
void add_advanced_index(OpRegistry& registry);
void add_l2_normalize(OpRegistry& registry);
void add_random(OpRegistry& registry);
// After those whose rules it shares.
void add_dynamic(OpRegistry& registry);

}  // namespace relay::ops
