#include "target/target_kind.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "target/own_kinds.h"

namespace relay {
namespace {

// Only the columns that are data are looked at here.
const Backend& no_backend() { throw std::logic_error("no code is made here"); }

TargetKind row(const std::string& name) {
  TargetKind out;
  out.name = name;
  out.backend = no_backend;
  out.rules = [] { return std::span<const ScheduleRule* const>(); };
  out.lowering = [] { return std::span<const tir::LoweringPass>(); };
  return out;
}

void refuses(TargetKind kind, const std::string& part) {
  const size_t before = target_kinds().size();
  try {
    register_target_kind(std::move(kind));
    ADD_FAILURE() << "it is registered";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().front().code, "E0407");
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
  EXPECT_EQ(target_kinds().size(), before);
}

TEST(TargetKinds, rows_are_found_by_name_and_stay) {
  EXPECT_EQ(find_target_kind("dsp"), nullptr);
  const TargetKind& dsp = register_target_kind(row("dsp"));
  for (int i = 0; i < 100; ++i) register_target_kind(row("dsp_" + std::to_string(i)));
  EXPECT_EQ(find_target_kind("dsp"), &dsp);
  Target t;
  t.kind = "dsp";
  EXPECT_EQ(&kind_of(t), &dsp);
  EXPECT_EQ(std::ranges::count(target_kinds(), &dsp), 1);
}

TEST(TargetKinds, a_kind_registered_twice_E0407) {
  register_target_kind(row("twice"));
  refuses(row("twice"), "it is registered already");
}

TEST(TargetKinds, kinds_of_relay_are_first_and_keep_their_names_E0407) {
  register_target_kind(row("early"));
  refuses(row("cpu"), "it is one of Relay's own");
  EXPECT_EQ(find_target_kind("cpu"), nullptr);
  const TargetKind& cpu = register_own_target_kind(row("cpu"));
  refuses(row("cpu"), "it is one of Relay's own");
  EXPECT_EQ(target_kinds().front(), &cpu);
  EXPECT_EQ(find_target_kind("cpu"), &cpu);
}

TEST(TargetKinds, rows_with_defects_are_refused) {
  refuses(row(""), "it has no name");
  refuses(row("Dsp"), "lower-case letters");
  for (auto spoil :
       {+[](TargetKind& k) { k.backend = nullptr; }, +[](TargetKind& k) { k.rules = nullptr; },
        +[](TargetKind& k) { k.lowering = nullptr; }}) {
    TargetKind kind = row("spoilt");
    spoil(kind);
    refuses(kind, "a column is missing");
  }
  TargetKind narrow = row("narrow");
  narrow.index_bits = 16;
  refuses(narrow, "indices have 16 bits");
  narrow.index_bits = 64;
  narrow.pointer_bits = 32;
  refuses(narrow, "pointers at least as wide as indices");
}

TEST(TargetKinds, an_unknown_kind_is_refused_by_name) {
  register_target_kind(row("known"));
  Target t;
  t.kind = "unknown";
  try {
    kind_of(t);
    ADD_FAILURE() << "it is known";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().front().code, "E0403");
    EXPECT_NE(std::string(e.what()).find("known"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace relay
