// Kinds of targets: what runs kernels and how code for it is made, a row each in an open list.
//
//   register_target_kind({.name = "npu", .backend = npu_backend, .rules = npu_rules, .lowering = npu_lowering});
//   Target t = parse_target("npu -units=4");   // codegen/targets.h
//   kind_of(t).rules()                         // lower/rules/common.h
//
// The columns that are code belong to rooms that this one does not include; they are functions, so that a row can be
// written before those rooms are. The driver enters Relay's own kinds (`initialize`, driver/compile.h). Other code enters its
// kinds before it names them in a target string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace relay {

class Backend;        // codegen/backend.h
struct ScheduleRule;  // lower/rules/common.h
namespace tir {
struct LoweringPass;  // tir/lower_loops.h
}

struct TargetKind {
  std::string name;  // "cpu", as -keys says it
  // Makes code of lowered kernels, and reads the words of target strings.
  const Backend& (*backend)() = nullptr;
  // Schedule rules, the most special first.
  std::span<const ScheduleRule* const> (*rules)() = nullptr;
  // From a schedule's blocks to the loops that the backend takes, in order.
  std::span<const tir::LoweringPass> (*lowering)() = nullptr;
  // The memory that kernels read and write: a DLDeviceType (runtime/core/dlpack.h).
  uint16_t device = 1;
  TargetLimits limits;
  // Bits of an integer that counts elements, and of an address.
  int index_bits = 64;
  int pointer_bits = 64;
};

// Adds a kind for the rest of the process. Throws UserError E0407 when the name is one of Relay's own (target/own_kinds.h), is
// registered already or is not lower-case letters, digits and underscores, when a column is missing, and for other widths.
const TargetKind& register_target_kind(TargetKind row);

// Relay's own, then the others in the order of their registration; they stay where they are.
std::vector<const TargetKind*> target_kinds();

// Null when there is none of that name.
const TargetKind* find_target_kind(std::string_view name);

// The kind of the target. Throws UserError E0403, which lists the kinds, when it is not registered.
const TargetKind& kind_of(const Target& target);

}  // namespace relay
