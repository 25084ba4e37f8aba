// Where the accesses of a lowered function point, proved.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

enum class Accesses {
  Masked,  // only those under a mask
  All,
};

// Throws InternalError with the offending statement's text unless
// - every vector access under a mask points near its buffer (tir/access.h), or is done only when a
//   lane of its mask is on;
// - with Accesses::All, every other access whose place follows from loops and sizes that are
//   constants lies in its buffer, given the conditions around it.
// Places that are data are the operators' to keep inside. Takes what lower_loops returns.
void verify_accesses(const PrimFunc& f, Accesses which);

}  // namespace relay::tir
