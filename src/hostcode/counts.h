// Inserts reference counts into host code that has none.
//
// Before: instructions take words over or read them, and nothing says how long a word is held.
// After: a counted local holds one reference exactly while it is live.
//
//   w2 = field w0.1          w2 = field w0.1 and give it up
//   call @3(w2, w2)          release w0
//   ret w2                   retain w2
//                            retain w2
//                            call @3(w2, w2)  // else release w2
//                            ret w2
//
// The last use of a word takes its reference, an earlier one takes another; a word that is read for the last time is
// released behind it, and a word that only one way needs is released at the start of the others. A field whose cell dies
// in the same block, behind reads of other fields only, is moved out when the cell has no other reference. So a value has
// no more owners than the interpreter gives it (vm/last_use.h), and lists are freed while they are folded.
#pragma once

#include "hostcode/code.h"

namespace relay::hostcode {

void insert_counts(Function& function);

}  // namespace relay::hostcode
