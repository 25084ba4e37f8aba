// Relay's own kinds of targets (target/target_kind.h).
#pragma once

namespace relay {

// Makes them known, once.
void register_kinds();

}  // namespace relay
