#include "passes/pass_list.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/codes/passes.h"
#include "base/fork.h"
#include "base/suggest.h"
#include "ir/op.h"
#include "passes/pipelines.h"

namespace relay {
namespace {

struct Outside {
  Pass pass;
  std::string place;
  bool removed = false;
};

// Entries stay where they are for good, since a pass that was removed may still run.
struct Registry {
  ForkSafeMutex mutex;
  std::deque<Outside> entries;

  Outside* find(std::string_view name) {
    for (Outside& e : entries) {
      if (!e.removed && e.pass.name == name) return &e;
    }
    return nullptr;
  }
};

Registry& registry() {
  static Registry r;
  return r;
}

[[noreturn]] void refuse(const std::string& name, const std::string& why,
                         const std::string& expected) {
  throw UserError(
      Diagnostic(codes::pass_registration, {}, "the pass '" + name + "' cannot be added: " + why)
          .expected(expected));
}

void check_row(const Pass& pass) {
  size_t dot = pass.name.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == pass.name.size()) {
    refuse(pass.name, "its name has no namespace", "a name such as mylib.MyPass");
  }
  if (pass.doc.empty()) refuse(pass.name, "nothing says what it does", "a sentence in `doc`");
  if (!pass.run) refuse(pass.name, "there is nothing to run", "a function in `run`");
}

}  // namespace

std::span<const Pass* const> builtin_passes() {
  static const Pass* const all[] = {
#define RELAY_PASS(name) &k##name,
#include "passes/pass_list.def"
#undef RELAY_PASS
  };
  return all;
}

std::vector<PlacedPass> outside_passes() {
  std::vector<PlacedPass> out;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const Outside& e : r.entries) {
    if (!e.removed) out.push_back({&e.pass, e.place});
  }
  return out;
}

std::vector<const Pass*> all_passes() {
  std::vector<const Pass*> out(builtin_passes().begin(), builtin_passes().end());
  for (const PlacedPass& p : outside_passes()) out.push_back(p.pass);
  std::sort(out.begin(), out.end(), [](const Pass* a, const Pass* b) { return a->name < b->name; });
  return out;
}

std::vector<const Pass*> passes_that_keep_meaning() {
  std::vector<const Pass*> out = all_passes();
  std::erase_if(out, [](const Pass* pass) { return !pass->keeps_meaning; });
  return out;
}

const Pass& find_pass(std::string_view name) {
  std::vector<const Pass*> passes = all_passes();
  std::vector<std::string_view> known;
  std::string list;
  for (const Pass* pass : passes) {
    if (pass->name == name) return *pass;
    known.push_back(pass->name);
    list += (list.empty() ? "" : ", ") + pass->name;
  }
  throw UserError(
      Diagnostic(codes::pass_unknown, {}, "there is no pass '" + std::string(name) + "'")
          .expected("one of " + list)
          .help(suggest(name, known)));
}

const Pass& add_pass(Pass pass, std::string place) {
  check_row(pass);
  if (!place.empty()) optimize_pipeline().insert(pass, place);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (r.find(pass.name) != nullptr) refuse(pass.name, "the name is taken", "another name");
  return r.entries.emplace_back(Outside{std::move(pass), std::move(place)}).pass;
}

bool remove_pass(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  Outside* found = r.find(name);
  if (found != nullptr) found->removed = true;
  return found != nullptr;
}

}  // namespace relay
