// Every pass, by name: ours, and those that were added from outside.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace relay {

// Ours.
#define RELAY_PASS(name) extern const Pass k##name;
#include "passes/pass_list.def"
#undef RELAY_PASS

std::span<const Pass* const> builtin_passes();

// With those from outside, by name.
std::vector<const Pass*> all_passes();

// Throws UserError E0301, with near names, for an unknown one.
const Pass& find_pass(std::string_view name);

// Those after which a program computes what it did before.
std::vector<const Pass*> passes_that_keep_meaning();

// Adds a pass from outside, for every thread. Its name has a namespace, "mylib.MyPass"; `place` is where it runs in the
// optimisation pipeline ("before:fusion", see Pipeline::insert), empty: only where it is asked for. Throws UserError
// E0312 for a name without a namespace, one that is taken, a place that does not exist, and a pass without a sentence
// about it or without something to run.
//
//   add_pass({"mylib.CountCalls", 0, Form::any, Form::any, "Counts calls.", count_calls}, "after:import");
const Pass& add_pass(Pass pass, std::string place = {});

// Takes it out again; false when there is none of that name. A pipeline that runs at the moment ends with it.
bool remove_pass(std::string_view name);

// A pass from outside with its place, in the order in which they were added.
struct PlacedPass {
  const Pass* pass;
  std::string place;
};
std::vector<PlacedPass> outside_passes();

}  // namespace relay
