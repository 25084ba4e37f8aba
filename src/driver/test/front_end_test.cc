// Models of a front end that the driver knows nothing of.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "driver/compile.h"
#include "driver/model.h"
#include "frontend/test/toy_front_end.h"

namespace relay {
namespace {

class ForeignFrontEnd : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_front_end(test::toy_front_end()); }

  static std::string file(const std::string& name, const std::string& text) {
    const std::string path =
        ::testing::TempDir() + "front_end_" + std::to_string(getpid()) + "_" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

TEST_F(ForeignFrontEnd, a_model_with_control_flow_is_recognised_compiled_and_run) {
  const std::string path = file("model.bin",
                                "toy 1\n"
                                "input x float32 n\n"
                                "input limit float32\n"
                                "const zero float32 = 0\n"
                                "const one float32 = 1\n"
                                "i y = while zero x\n"
                                "  do a b\n"
                                "  t = less a limit\n"
                                "  test t\n"
                                "  a2 = add a one\n"
                                "  small = less a one\n"
                                "  r = if small\n"
                                "    twice = add b b\n"
                                "    give twice\n"
                                "  else\n"
                                "    more = add b one\n"
                                "    give more\n"
                                "  end\n"
                                "  give a2 r\n"
                                "end\n"
                                "output y\n");
  ModelOptions options;
  options.dims["n"] = 2;
  LoadedModel model = load_model(path, options);
  EXPECT_EQ(model.format, "toy");
  EXPECT_EQ(model.input_names, (std::vector<std::string>{"x", "limit"}));
  Tensor x = Tensor::empty(DType::Float(32), {2}), limit = Tensor::scalar(3.0, DType::Float(32));
  x.set_from_double(0, 5);
  x.set_from_double(1, -1);
  const Tensor y = compile(model.module, {}).load({}).run("main", {x, limit}, {})[0];
  EXPECT_EQ(y.get_as_double(0), 12);
  EXPECT_EQ(y.get_as_double(1), 0);
  std::remove(path.c_str());
}

TEST_F(ForeignFrontEnd, relay_text_is_a_front_end_among_others) {
  const std::string path =
      file("program", "#[version = \"0.0.5\"]\ndef @main(%x: float32) -> float32 { %x }\n");
  EXPECT_EQ(front_end_of(path).name, "relay");
  EXPECT_EQ(load_model(path).format, "relay");
  EXPECT_NE(model_kinds("compiled .so").find("Relay text"), std::string::npos);
  std::remove(path.c_str());
}

TEST_F(ForeignFrontEnd, a_file_that_two_claim_E0512) {
  FrontEnd greedy = test::toy_front_end();
  greedy.name = "greedy";
  greedy.sniff = [](std::string_view head) { return head.starts_with("// also toy"); };
  register_front_end(greedy);
  const std::string path = file("both", "// also toy\n");
  try {
    load_model(path);
    ADD_FAILURE() << "the file was read";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics()[0].code, "E0512");
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace relay
