// Marks where the registers of a function are read for the last time.
//
// Before: every read of a register copies its handle, and values live until their frame ends.
// After: the last read moves the handle out where the instruction can say so (kLastA, kLastB, ~r in
// lists), and a `kill` follows where it cannot; a value that only one branch reads is killed at the
// start of the other. So a list is freed while it is folded, and a value that is passed on has no
// more owners than it needs.
//
// Nothing is killed on a way that leaves the function without another call or kernel: the end of
// the frame frees the rest. A register that lives across very many blocks may be kept until the end
// of the frame, so that the work is linear in the size of the code.
#pragma once

#include "runtime/vm/bytecode.h"

namespace relay::vm {

void mark_last_uses(runtime::Function& function);

}  // namespace relay::vm
