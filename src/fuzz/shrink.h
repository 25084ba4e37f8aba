// Makes a failing program small.
#pragma once

#include <functional>

#include "ir/module.h"

namespace relay::fuzz {

// Whether a program still shows what is looked for.
using StillFails = std::function<bool(const Module& mod)>;

struct ShrinkOptions {
  // Programs that are tried at most.
  int max_tries = 400;
};

// A smaller program for which `still_fails` holds, as it does for `mod`. Steps keep the program
// well-typed: an expression is replaced by a part of itself of the same type, by a variable in
// scope or by a small constant; a binding, clause, parameter, type parameter or definition that is
// not needed goes away; sizes become smaller. Goes on until no step is left that keeps the failure.
Module shrink(const Module& mod, const StillFails& still_fails, const ShrinkOptions& options = {});

}  // namespace relay::fuzz
