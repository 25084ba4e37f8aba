// The bytecode verifier.
#pragma once

#include "runtime/vm/bytecode.h"

namespace relay::runtime {

// Checks everything about a program that does not depend on values: opcodes, register, constant,
// kernel, function and string indices, jump targets, argument counts, kernel arities, that control
// never runs off the end of a function, and that arena ranges are inside the arena, and as
// large as the kernel's buffer. Raises UserError E0613 with the function and instruction. What
// has passed can be interpreted without a bad access to the interpreter's own state.
void verify_program(const Program& program);

}  // namespace relay::runtime
