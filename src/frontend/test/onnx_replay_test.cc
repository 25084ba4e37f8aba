// Models that once broke the importer, and mutations of small models of many kinds.
#include "base/test/replay.h"
#include "base/test/source_dir.h"

namespace relay {
namespace {

TEST(OnnxReplay, mutated_models_are_refused_or_well_formed) {
  test::replay(
      test::read_corpus(test::source_dir() + std::string("/src/frontend/test/fuzz/onnx")),
      {.rounds = 10'000,
       .words = {"Reshape", "Loop", "If", "Scan", "Gather", "Conv", "then_branch", "body", "axis",
                 "axes", "ai.onnx.ml", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
       .max_bytes_each = int64_t{64} << 20});
}

}  // namespace
}  // namespace relay
