// Which native functions need tail calls that take no stack.
//
// Only a tail call that may be repeated without end does. A function is *plain* if no chain of tail calls from it is without
// end: it calls no closure in tail position, and no function that is not plain. A tail call of or by a plain function may take
// a frame, and plain functions have the ordinary calling convention, in which a call and its return cost less.
#pragma once

#include <vector>

#include "hostcode/code.h"

namespace relay::hostcode {

// Of each function of the program, whether it is plain. Functions of closures, and their bodies, are not: a closure that is
// called in tail position may be any of them.
std::vector<bool> plain_functions(const Program& program);

}  // namespace relay::hostcode
