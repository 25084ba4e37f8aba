// FuseAttention: the two matrix products around a softmax become one operator.
//
// before
//   %0 = transpose(reshape(%q, newshape=[b, s, h, d]), axes=[0, 2, 1, 3]);
//   %1 = transpose(reshape(%k, newshape=[b, t, h, d]), axes=[0, 2, 3, 1]);
//   %2 = transpose(reshape(%v, newshape=[b, t, h, e]), axes=[0, 2, 1, 3]);
//   %3 = multiply(nn.batch_matmul(%0, %1), 0.125f);
//   %4 = nn.softmax(add(%3, %mask), axis=-1);
//   transpose(nn.batch_matmul(%4, %2), axes=[0, 2, 1, 3])
// after
//   %0 = reshape(%q, newshape=[b, s, h, d]);
//   %1 = reshape(%k, newshape=[b, t, h, d]);
//   %2 = reshape(%v, newshape=[b, t, h, e]);
//   nn.attention(%0, %1, %2, %mask, scale=0.125f, query_layout="BSHD", key_layout="BSHD",
//                value_layout="BSHD", out_layout="BSHD")
//
// (Reshapes that join batch and heads for the products are left out.) A mask with a value for each
// query is transposed, constants once and for all. The kernel then never stores
// all products of queries and keys, and reads and writes the heads where they are.
// Legal for float32 of a known depth, when the values between the products have no other use, and
// the softmax goes along the keys; batch, heads and lengths may be open. Scales are scalar constants on the products, the queries or the
// keys; the order of their multiplication changes, and with it the last bits. A mask is added, or
// chosen by a condition instead of the products as a constant of at most -1e30, to which no product
// adds anything.
// Weights behind where(isnan(%w), 0, %w), as for queries that may see no key, are plain ones, and the
// same choice is made of the result: so it supposes finite values.
// Keys and values whose heads are repeated for several heads of queries are read as they are.
// Values and results keep transposes that do not leave their depth last.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFuseAttention;

}  // namespace relay
