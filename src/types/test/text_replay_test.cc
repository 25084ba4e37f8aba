// Texts that once broke the parser, and mutations of programs with every construct.
#include "base/test/replay.h"
#include "base/test/source_dir.h"

namespace relay {
namespace {

TEST(TextReplay, mutated_programs_are_refused_or_mean_something) {
  test::replay(test::read_corpus(test::source_dir() + std::string("/src/types/test/fuzz/text")),
               {.rounds = 10'000,
                .words = {"def @f",
                          "let %x = ",
                          "fn (",
                          "match (",
                          "match? (",
                          "if (",
                          "type T[A] {",
                          "Tensor[(",
                          "Tensor[(n, ?), float32]",
                          "ref(",
                          "ref_new(",
                          "meta[Constant][0]",
                          "#[version = \"0.0.5\"]\n",
                          "/* ",
                          " */",
                          "\"",
                          "free_var %y: ",
                          "%0",
                          "(",
                          ")",
                          "{",
                          "}",
                          "[",
                          "]",
                          "->",
                          "1e999f",
                          "-1i64",
                          "99999999999999999999",
                          "nn.dense(%x, %x)",
                          "axis=[1, 2]",
                          "\\u{",
                          "Dim",
                          "extern type "}});
}

}  // namespace
}  // namespace relay
