// Instructions that multiply several elements of a lane and add the products.
#pragma once

#include "target/target.h"

namespace relay {

// Whether one instruction adds the four products of bytes, the first ones unsigned and the second ones signed, to every
// lane of 32 bits in a vector.
bool has_byte_dot(const Target& target);

}  // namespace relay
