// Types are graphs: what is shared counts once, and no depth is too deep. Seen as trees, the types
// here have 2^60 parts; compared again at each use, they take minutes.
#include <gtest/gtest.h>

#include <functional>

#include "ir/text/text.h"
#include "node/structural.h"
#include "ops/register_ops.h"
#include "types/infer.h"
#include "types/verify.h"

namespace relay {
namespace {

constexpr int kDeep = 20000;

// def @name(<param>) { let %x1 = step(%x0); ... body }
std::string chain(const std::string& name, const std::string& param, int steps,
                  const std::function<std::string(const std::string&)>& step,
                  const std::string& body) {
  std::string text = "def @" + name + "(" + param + ") {\n";
  for (int i = 0; i < steps; ++i) {
    text += "let %x" + std::to_string(i + 1) + " = " + step("%x" + std::to_string(i)) + ";\n";
  }
  return text + body + "\n}\n";
}

std::string twice(const std::string& x) { return "(" + x + ", " + x + ")"; }
std::string nest(const std::string& x) { return "(" + x + ", 1f)"; }
std::string in_ref(const std::string& x) { return "ref(" + x + ")"; }

std::string error_of(const std::string& text) {
  register_ops();
  try {
    Module mod = infer_types(parse_module("large.relay", "#[version = \"0.0.5\"]\n" + text));
    auto problem = find_ill_formed(mod);
    return problem ? problem->render() : "";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(LargeTypes, shared_parts_count_once) {
  std::string body = "let %r = ref(%x60);\nlet %u = ref_write(%r, %x60);\n@id(ref_read(%r))";
  EXPECT_EQ(
      error_of("def @id[A](%a: A) -> A { %a }\n" + chain("f", "%x0: float32", 60, twice, body) +
               chain("g", "%x0: float32", 60, twice, "%x60") +
               "def @main(%c: bool, %x: float32) { if (%c) { @f(%x) } else { @g(%x) } }"),
      "");
}

TEST(LargeTypes, an_error_does_not_write_them_out) {
  std::string wrong = error_of(chain("main", "%x0: float32", 60, twice, "nn.relu(%x60)"));
  EXPECT_NE(wrong.find("E0201"), std::string::npos) << wrong.substr(0, 1000);
  EXPECT_LT(wrong.size(), 100000u);
  std::string open = error_of(chain("main", "%x0", 60, twice, "%x60"));
  EXPECT_NE(open.find("the type of %x0 cannot be inferred"), std::string::npos)
      << open.substr(0, 1000);
}

TEST(LargeTypes, nests_are_linear) {
  std::string last = "%x" + std::to_string(kDeep);
  for (const auto& step : {nest, in_ref}) {
    EXPECT_EQ(error_of(chain("main", "%x0: float32", kDeep, step, last)), "");
    EXPECT_NE(error_of(chain("main", "%x0", kDeep, step, last)).find("E0208"), std::string::npos);
    // What is open all the way is known at the end.
    EXPECT_EQ(error_of(chain("main", "%x0", kDeep, step,
                             "(" + last + ", if (True) { %x0 } else { 1f })")),
              "");
  }
}

}  // namespace
}  // namespace relay
