// The explicit list of operators.
#pragma once

namespace relay {

// Fills OpRegistry::global(). Idempotent, and safe from several threads.
void register_ops();

}  // namespace relay
