// Random programs: well-typed modules with a `@main`, the same for the same seed.
//
// The generator is directed by types: it draws an expression of a wanted type in a scope with a
// budget. Operators come from the registry: a call is tried with argument types and attributes made
// up from the row's examples and kept when the row's relation accepts it. Every program ends:
// recursion counts an int32 down or goes along a finite value of a data type. Indices and divisors
// are kept in the ranges that the row's examples name, so that few programs fail at run time.
#pragma once

#include <cstdint>

#include "ir/module.h"

namespace relay::fuzz {

struct GenerateOptions {
  // About how many expressions a function has.
  int budget = 24;
  // Functions besides @main, at most.
  int functions = 2;
  // Named dimensions in parameters' types.
  bool symbolic = true;
  // Also what invites mistakes: calls that are nearly the same, functions that count in a
  // reference, neighbours of one type. Planted faults are looked for among these programs.
  bool pitfalls = false;
  // The last parameter of @main is a tensor of floats, and so is some part of the result; tensors of
  // floats are made of it rather than constants.
  bool floats = false;
};

// A typed module whose entry is `@main`.
Module generate(uint64_t seed, const GenerateOptions& options = {});

}  // namespace relay::fuzz
