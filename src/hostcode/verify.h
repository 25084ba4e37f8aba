// Proves what the printers of host code and the run time rely on:
//
//   - every block ends, only there, and jumps to blocks of the function;
//   - operands and results are scalars or words as the row of the operation and the signatures of callees say;
//   - a local is assigned on every path to its reads;
//   - each counted local holds one reference from where it is assigned until it is taken over or released, on every path;
//     none is taken over twice, read behind that, assigned over, or left at the end of the function;
//   - what fails releases exactly the references that the function still holds.
//
// Throws InternalError, which names the function and the instruction.
#pragma once

#include "hostcode/code.h"

namespace relay::hostcode {

void verify(const Program& program);
void verify(const Program& program, const Function& function);

}  // namespace relay::hostcode
