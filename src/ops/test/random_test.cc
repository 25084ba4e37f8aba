// What the operators that draw random numbers refuse, and the words that the authors of their
// generator publish.
#include <gtest/gtest.h>

#include <array>

#include "eval/evaluator.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

const std::string kKey = "Tensor[(10,), uint64]";

const Refusal kRandomRefusals[] = {
    {"random.threefry_generate", {"Tensor[(9,), uint64]"}, "out_shape=[4]", "ten words"},
    {"random.threefry_generate", {"Tensor[(10,), int64]"}, "out_shape=[4]", "ten words"},
    {"random.threefry_generate", {kKey}, "out_shape=[-1]", "negative"},
    {"random.threefry_generate", {kKey}, "out_shape=[1000000000, 1000000000]", "large"},
    {"random.threefry_split", {"uint64"}, "", "ten words"},
    {"random.uniform", {kKey, "int32", "int32"}, "out_shape=[4]", "floating"},
    {"random.uniform", {kKey, "float16", "float16"}, "out_shape=[4]", "floating"},
    {"random.uniform", {kKey, "float32", "float64"}, "out_shape=[4]", "scalars"},
    {"random.uniform", {kKey, "Tensor[(4,), float32]", "float32"}, "out_shape=[4]", "scalars"},
    {"random.normal",
     {kKey, "float32", "float32"},
     "out_shape=[4], out_dtype=\"float64\"",
     "scalars"},
    {"random.multinomial", {kKey, "float32"}, "", "probabilities"},
    {"random.multinomial", {kKey, "Tensor[(3,), int32]"}, "", "probabilities"},
    {"random.multinomial", {kKey, "Tensor[(0,), float32]"}, "", "no class"},
    {"random.multinomial", {kKey, "Tensor[(3,), float32]"}, "num_samples=-1", "num_samples"},
};

TEST(Random, must_fail_with_the_reason) {
  for (const Refusal& c : kRandomRefusals) expect_refused(c);
}

TEST(Random, words_are_those_that_the_authors_publish) {
  constexpr uint64_t kAll = ~uint64_t{0};
  struct Row {
    std::array<uint64_t, 8> key_and_counter;
    std::array<uint64_t, 4> words;
  };
  const Row rows[] = {
      {{}, {0x09218ebde6c85537, 0x55941f5266d86105, 0x4bd25e16282434dc, 0xee29ec846bd2e40b}},
      {{kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll},
       {0x29c24097942bba1b, 0x0371bbfb0f6f4e11, 0x3c231ffa33f83a1c, 0xcd29113fde32d168}},
      {{0x452821e638d01377, 0xbe5466cf34e90c6c, 0xbe5466cf34e90c6c, 0xc0ac29b7c97c50dd,
        0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
       {0xa7e8fde591651bd9, 0xbaafd0c30138319b, 0x84a5c1a729e685b9, 0x901d406ccebc1ba4}},
  };
  Module mod = infer("random.threefry_generate", {kKey}, "out_shape=[4]");
  for (const Row& row : rows) {
    Tensor key = Tensor::empty(DType::UInt(64), {10});
    std::copy(row.key_and_counter.begin(), row.key_and_counter.end(), key.data<uint64_t>());
    key.data<uint64_t>()[8] = key.data<uint64_t>()[9] = 0;
    runtime::Value drawn = Evaluator(mod).call("main", {key});
    Tensor words = drawn.field(1).tensor();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(words.data<uint64_t>()[i], row.words[i]) << i;
  }
}

}  // namespace
}  // namespace relay
