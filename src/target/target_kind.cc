#include "target/target_kind.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/codes/lowering.h"
#include "base/fork.h"

namespace relay {
namespace {

struct Kinds {
  ForkSafe<std::mutex> mutex;
  std::deque<TargetKind> rows;  // which do not move
};

Kinds& all() {
  static Kinds kinds;
  return kinds;
}

[[noreturn]] void refuse(const TargetKind& row, const std::string& what,
                         const std::string& expected) {
  throw UserError(Diagnostic(codes::target_kind_registration, {},
                             "the kind of target '" + escape_for_terminal(row.name, 200) +
                                 "' cannot be registered: " + what)
                      .expected(expected));
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_width(int bits) { return bits == 32 || bits == 64; }

}  // namespace

const TargetKind& register_target_kind(TargetKind row) {
  if (!is_name(row.name)) {
    refuse(row, "it has no name", "lower-case letters, digits and underscores");
  }
  if (row.backend == nullptr || row.rules == nullptr || row.lowering == nullptr) {
    refuse(row, "a column is missing", "a backend, a list of rules and a list of lowering passes");
  }
  if (!is_width(row.index_bits) || !is_width(row.pointer_bits) ||
      row.index_bits > row.pointer_bits) {
    refuse(row,
           "indices have " + std::to_string(row.index_bits) + " bits and pointers " +
               std::to_string(row.pointer_bits),
           "32 or 64 bits, and pointers at least as wide as indices");
  }
  Kinds& kinds = all();
  std::lock_guard lock(kinds.mutex);
  if (std::ranges::find(kinds.rows, row.name, &TargetKind::name) != kinds.rows.end()) {
    refuse(row, "it is registered already", "another name");
  }
  return kinds.rows.emplace_back(std::move(row));
}

std::vector<const TargetKind*> target_kinds() {
  Kinds& kinds = all();
  std::lock_guard lock(kinds.mutex);
  std::vector<const TargetKind*> out;
  for (const TargetKind& k : kinds.rows) out.push_back(&k);
  return out;
}

const TargetKind* find_target_kind(std::string_view name) {
  Kinds& kinds = all();
  std::lock_guard lock(kinds.mutex);
  auto it = std::ranges::find(kinds.rows, name, &TargetKind::name);
  return it == kinds.rows.end() ? nullptr : &*it;
}

const TargetKind& kind_of(const Target& target) {
  if (const TargetKind* kind = find_target_kind(target.kind)) return *kind;
  std::string known;
  for (const TargetKind* k : target_kinds()) known += (known.empty() ? "" : ", ") + k->name;
  throw UserError(
      Diagnostic(codes::codegen_target, {},
                 "there is no kind of target '" + escape_for_terminal(target.kind, 200) + "'")
          .expected(known));
}

}  // namespace relay
