// What a loop's kernel computes: the values and the calls of operators that an iteration may hold (fusion/outline_loops.h).
#pragma once

#include <string>

#include "ir/expr.h"
#include "ir/op.h"

namespace relay::outline {

// Why a kernel of a loop has no value of a type; empty: it may. One that is `stored` has elements.
std::string defect_of(const Type& type, bool stored = true);

// Why a kernel of a loop does not compute the call of an operator; empty: it does. `of_rows`: it computes a number or a row
// from rows. `once`: it does so at an end, and not in each iteration.
std::string defect_of(const CallNode& c, bool of_rows, bool once);

// The elements of all tensors of a type; infinity where a size is open.
double elements_of(const Type& type);

bool is_of_scalars(const Type& type);
bool takes_scalars(const CallNode& c);
bool is_of_scalars(const CallNode& c);

// What an assertion says.
bool is_text(const Type& type);

// A number, or elements along one axis of any length: a row of a matrix, a part of a vector.
bool is_line(const Type& type);

// Whether a size of a tensor is a number of the call.
bool has_named_size(const Type& type);

// Whether nothing tells a size of a tensor before it is computed.
bool is_open(const Type& type);

// How the elements of a result depend on those of operands, of which an operator of open sizes takes the first from its
// static form.
FusionClass class_of(const OpInfo& row);

}  // namespace relay::outline
