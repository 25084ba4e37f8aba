// Where in a Python source the expressions that a thread builds come from.
#pragma once

#include "base/source.h"
#include "bind/convert.h"

namespace relay::bind {

// The place that `set_place` of Python set in this thread; empty otherwise. Constructors of nodes
// give it to what they make, so that a type error shows the Python line.
const Span& current_place();
// These bytes of a SourceFile of Python's; empty for None.
Span span_of(nb::handle source, int64_t begin, int64_t end);

}  // namespace relay::bind
