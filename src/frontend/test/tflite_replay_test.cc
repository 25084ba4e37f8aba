// TFLite models of every kind of operator, and mutations of them.
#include "base/test/replay.h"
#include "base/test/source_dir.h"

namespace relay {
namespace {

// The number as the file stores it.
std::string word(int32_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

TEST(TfliteReplay, mutated_models_are_refused_or_well_formed) {
  test::replay(
      test::read_corpus(test::source_dir() + std::string("/src/frontend/test/fuzz/tflite")),
      {.rounds = 20'000,
       .words = {word(0), word(-1), word(1), word(32), word(127), word(1 << 30), word(INT32_MAX),
                 word(INT32_MIN)},
       .max_bytes_each = int64_t{64} << 20});
}

}  // namespace
}  // namespace relay
