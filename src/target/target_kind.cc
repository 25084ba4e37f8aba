#include "target/target_kind.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/codes/lowering.h"
#include "base/fork.h"
#include "target/own_kinds.h"

namespace relay {
namespace {

struct Kinds {
  ForkSafe<std::mutex> mutex;
  // Which do not move.
  std::deque<TargetKind> own;
  std::deque<TargetKind> others;
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

void check(const TargetKind& row) {
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
}

const TargetKind& add(TargetKind row, std::deque<TargetKind>& rows) {
  if (std::ranges::find(rows, row.name, &TargetKind::name) != rows.end()) {
    refuse(row, "it is registered already", "another name");
  }
  return rows.emplace_back(std::move(row));
}

bool is_own(std::string_view name) {
  return std::ranges::find(kOwnTargetKinds, name) != std::end(kOwnTargetKinds);
}

}  // namespace

const TargetKind& register_target_kind(TargetKind row) {
  check(row);
  if (is_own(row.name)) refuse(row, "it is one of Relay's own", "another name");
  Kinds& kinds = all();
  std::lock_guard lock(kinds.mutex);
  return add(std::move(row), kinds.others);
}

const TargetKind& register_own_target_kind(TargetKind row) {
  check(row);
  RELAY_CHECK(is_own(row.name), "the name of the kind is not on the list of Relay's own");
  Kinds& kinds = all();
  std::lock_guard lock(kinds.mutex);
  return add(std::move(row), kinds.own);
}

std::vector<const TargetKind*> target_kinds() {
  Kinds& kinds = all();
  std::lock_guard lock(kinds.mutex);
  std::vector<const TargetKind*> out;
  for (std::string_view name : kOwnTargetKinds) {
    auto it = std::ranges::find(kinds.own, name, &TargetKind::name);
    if (it != kinds.own.end()) out.push_back(&*it);
  }
  for (const TargetKind& k : kinds.others) out.push_back(&k);
  return out;
}

const TargetKind* find_target_kind(std::string_view name) {
  for (const TargetKind* k : target_kinds()) {
    if (k->name == name) return k;
  }
  return nullptr;
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
