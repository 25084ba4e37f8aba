// Gives a thread's own buffers the place and the size of what one visit needs.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Register and local buffers are allocated in the innermost statement around all their uses, and
// each dimension keeps only the part that one visit there touches.
//
//   before:  allocate acc: float32[64, 32] in register
//            for i in range(8):
//              for j in range(8):
//                acc[i * 8 + j, 0] = 0f
//                out[i * 8 + j] = acc[i * 8 + j, 0]
//   after:   for i in range(8):
//              for j in range(8):
//                allocate acc: float32[1, 1] in register
//                acc[0, 0] = 0f
//                out[i * 8 + j] = acc[0, 0]
//
// Legal where an iteration of the loops that the allocation moves into reads only what it stored
// itself: schedules make such buffers only below the loop that completes them. A loop whose first
// iteration initialises the buffer keeps it outside, and so does one whose iterations begin with a
// load, such as those that look for the best so far. A dimension whose touched part is not
// known to be smaller stays whole.
PrimFunc compact_buffers(const PrimFunc& f);

}  // namespace relay::tir
