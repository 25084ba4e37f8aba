// The kinds of targets that are Relay's own (target/target_kind.h).
#pragma once

#include <string_view>

#include "target/target_kind.h"

namespace relay {

// Their names, in the order of the rows. They are taken from the start: the order in which the driver and other code register
// their rows decides nothing.
inline constexpr std::string_view kOwnTargetKinds[] = {"cpu", "opencl", "cuda"};

// Enters the row of one of them, in front of those of other code: for the driver, once. Throws as register_target_kind does.
const TargetKind& register_own_target_kind(TargetKind row);

}  // namespace relay
