// Programs of 100,000 nested expressions from text to bytecode. The tests of this room run on a
// 256 KB stack, so nothing on the way may descend by recursion or take quadratic time.
#include <gtest/gtest.h>

#include "driver/test/networks.h"
#include "node/structural.h"
#include "runtime/vm/verify.h"
#include "types/verify.h"

namespace relay {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int kDepth = 20000;  // enough to overrun the stack; the sanitizers are slow
#else
constexpr int kDepth = 100000;
#endif

// %0 = nn.relu(%x); %1 = minimum(%0, %x); ... which is one expression, nested.
std::string nested_calls() {
  std::string text = "def @main(%x: Tensor[(4), float32]) {\n  %0 = nn.relu(%x);\n";
  for (int i = 0; i < kDepth; ++i) {
    text += "  %" + std::to_string(i + 1) + " = minimum(%" + std::to_string(i) + ", %x);\n";
  }
  return text + "  %" + std::to_string(kDepth) + "\n}\n";
}

TEST(Deep, text_types_and_comparison) {
  Module mod = driver_test::parse(nested_calls());
  EXPECT_FALSE(find_ill_formed(mod).has_value());
  std::string text = print_module(mod);
  Module again = infer_types(parse_module("again.relay", text));
  EXPECT_TRUE(structural_equal(mod, again));
  EXPECT_EQ(structural_hash(mod), structural_hash(again));
  EXPECT_EQ(print_module(again), text);
}

TEST(Deep, passes_and_bytecode) {
  Module mod = driver_test::parse(nested_calls());
  Bytecode bytecode = compile_to_bytecode(optimize(mod, CompileOptions()));
  EXPECT_GE(bytecode.program.find_function("main"), 0);
  runtime::verify_program(bytecode.program);
}

}  // namespace
}  // namespace relay
