// Text in, text out: what the tests of this room share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "node/structural.h"
#include "ops/test/parse.h"
#include "passes/pass_list.h"
#include "types/verify.h"

namespace relay::pass_test {

using test::parse;

// Runs a pass whatever its level on the program in the form that it takes, and verifies the result.
inline Module apply(const Pass& pass, const Module& mod, PassContext ctx = {}) {
  ctx.verify = true;
  return run_pass(bring_into(pass.in, mod, ctx), pass, ctx);
}

// The pass turns `before` into `after` (up to names), and leaves its own result alone.
inline void expect_becomes(const Pass& pass, const std::string& before, const std::string& after,
                           const PassContext& ctx = {}) {
  Module out = apply(pass, parse(before), ctx);
  Module want = parse(after);
  std::string difference = first_structural_mismatch(out, want);
  EXPECT_TRUE(difference.empty()) << pass.name << ": " << difference << "\nbefore:\n"
                                  << before << "\nbecame:\n"
                                  << print_module(out);
  Module again = apply(pass, out, ctx);
  EXPECT_TRUE(again == out || structural_equal(again, out))
      << pass.name << " changes its own result:\n"
      << print_module(out) << "into:\n"
      << print_module(again);
}

// The pass returns the very same program.
inline void expect_unchanged(const Pass& pass, const std::string& text,
                             const PassContext& ctx = {}) {
  Module mod = parse(text);
  Module out = apply(pass, mod, ctx);
  EXPECT_TRUE(out == mod) << pass.name << " changed:\n"
                          << print_module(mod) << "into:\n"
                          << print_module(out);
}

}  // namespace relay::pass_test
