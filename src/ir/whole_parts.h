// Sizes that are rounded up to a whole number of parts.
#pragma once

#include <utility>

#include "ir/type.h"

namespace relay {

// Of a size ceildiv(n, part) * part, the number of parts and a part; null and 1 for others.
std::pair<Dim, int64_t> whole_parts(const Dim& d);

}  // namespace relay
