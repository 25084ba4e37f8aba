// The index maps of operators that move elements: for the row's column `moves`. Each gives the map of one call, or null
// where sizes, indices or conditions are not known.
#pragma once

#include "ir/op_facts.h"

namespace relay::element_maps {

// The first operand in row-major order.
ElementMap same_order(const KnownCall& c);
ElementMap broadcast(const KnownCall& c);
ElementMap transpose(const KnownCall& c);
ElementMap take(const KnownCall& c);
ElementMap concatenate(const KnownCall& c);
ElementMap stack(const KnownCall& c);
// Of one part of the result.
ElementMap split(const KnownCall& c);
ElementMap strided_slice(const KnownCall& c);
ElementMap tile(const KnownCall& c);
ElementMap repeat(const KnownCall& c);
ElementMap reverse(const KnownCall& c);
// Elements that are equal on both sides are known without the condition.
ElementMap where(const KnownCall& c);

}  // namespace relay::element_maps
