// Targets of all kinds (target/target_kind.h), from a user's words.
//
//   parse_target("native")                       this machine
//   parse_target("x86-64-v3 -num-threads=1")     a level of the x86-64 psABI
//   parse_target("llvm -mcpu=znver4")            any processor that LLVM knows
//
// Only native, and llvm without a processor, depend on this machine.
//
// target/processor_text.h has the options of processors.
#pragma once

#include <string_view>
#include <vector>

#include "target/target.h"
#include "target/target_versions.h"

namespace relay {

// Throws UserError E0403, with what there is, for a target, processor, feature or option that is not there, and E0406 for
// words of two kinds.
Target parse_target(std::string_view text);

// Targets with semicolons in between: the host's, and those of devices; where the first is a device's, native is the host's.
// Throws like parse_target, which reads each. Of several versions (target/target_versions.h): the last that this machine runs,
// or the last where it runs none.
ProgramTarget parse_program_target(std::string_view text);

// The versions of a target, the least first, as targets that can be compiled for. Versions whose vectors differ pack
// weights in panels of one width, so that they share them. Throws like split_versions and parse_target, and UserError E1505
// where a version would never be loaded.
std::vector<TargetVersion> target_versions(std::string_view text);

// The machine this runs on: its features, caches, and the cores that the process may use.
Target native_target();

// The level that every machine of this architecture has that Relay runs on.
Target least_target();

}  // namespace relay
