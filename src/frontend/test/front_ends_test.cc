// The list of front ends, and a front end that is built of frontend/common alone.
#include <gtest/gtest.h>

#include "eval/evaluator.h"
#include "frontend/frontend.h"
#include "frontend/onnx/onnx.h"
#include "frontend/test/model_builder.h"
#include "frontend/test/toy_front_end.h"
#include "ir/text/text.h"
#include "ops/register_ops.h"

namespace relay {
namespace {

// What the callable throws, as text; "" for nothing.
template <class Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const UserError& e) {
    std::string out;
    for (const Diagnostic& d : e.diagnostics()) out += d.render();
    return out;
  }
  return "";
}

bool says(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::all_of(
      parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

ImportedModel toy(const std::string& lines, const ImportOptions& options = {}) {
  const std::string text = "toy 1\n" + lines;
  return import_model(test::toy_front_end(), {"net.toy", text}, options);
}

Tensor floats(const std::vector<double>& values, const std::vector<int64_t>& shape) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  for (size_t i = 0; i < values.size(); ++i) t.set_from_double(static_cast<int64_t>(i), values[i]);
  return t;
}

Tensor number(int64_t value) { return Tensor::scalar(value, DType::Int(64)); }

std::vector<double> run(const ImportedModel& m, std::vector<Tensor> inputs) {
  std::vector<runtime::Value> args(inputs.begin(), inputs.end());
  const Tensor out = Evaluator(m.module).call("main", args).tensor();
  std::vector<double> values;
  for (int64_t i = 0; i < out.num_elements(); ++i) values.push_back(out.get_as_double(i));
  return values;
}

class ToyFrontEnd : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_ops(); }
};

TEST_F(ToyFrontEnd, operators_on_open_sizes) {
  ImportedModel m =
      toy("input x float32 n 2\n"
          "const w float32 2 2 = 1 2 3 4\n"
          "const axes int64 1 = 1\n"
          "y = matmul x w\n"
          "s = sizes x\n"
          "z = reshape y s\n"
          "r = sum z axes\n"
          "output r\n");
  EXPECT_EQ(to_string(m.module->find("main")->ret_type), "Tensor[(n,), float32]");
  EXPECT_EQ(m.input_names, std::vector<std::string>{"x"});
  EXPECT_EQ(m.output_names, std::vector<std::string>{"r"});
  EXPECT_EQ(run(m, {floats({1, 0, 0, 1, 1, 1}, {3, 2})}), (std::vector<double>{3, 7, 10}));
}

TEST_F(ToyFrontEnd, options_fix_sizes_and_freeze_inputs) {
  ImportOptions options;
  options.shapes["x"] = {3, 2};
  options.frozen["b"] = floats({5}, {1});
  ImportedModel m = toy("input x float32 n 2\ninput b float32 1\ny = add x b\noutput y\n", options);
  EXPECT_EQ(to_string(m.module->find("main")->ret_type), "Tensor[(3, 2), float32]");
  EXPECT_EQ(m.input_names, std::vector<std::string>{"x"});
  ImportOptions wrong;
  wrong.shapes["y"] = {1};
  EXPECT_TRUE(says(error_of([&] { toy("input x float32\noutput x\n", wrong); }), {"E0510", "'y'"}));
}

constexpr const char* kBranch =
    "input x float32 2\n"
    "input limit int64\n"
    "input at int64\n"
    "c = less at limit\n"
    "y = if c\n"
    "  two = add x x\n"
    "  give two\n"
    "else\n"
    "  pos = relu x\n"
    "  give pos\n"
    "end\n"
    "output y\n";

TEST_F(ToyFrontEnd, a_branch_runs_the_part_that_its_condition_chooses) {
  ImportedModel m = toy(kBranch);
  Tensor x = floats({-1, 3}, {2}), one = number(1), two = number(2);
  EXPECT_EQ(run(m, {x, two, one}), (std::vector<double>{-2, 6}));
  EXPECT_EQ(run(m, {x, one, two}), (std::vector<double>{0, 3}));
}

TEST_F(ToyFrontEnd, a_known_condition_leaves_one_part) {
  ImportOptions options;
  options.frozen["limit"] = number(2);
  options.frozen["at"] = number(1);
  ImportedModel m = toy(kBranch, options);
  EXPECT_EQ(print_module(m.module).find("if ("), std::string::npos);
  EXPECT_EQ(run(m, {floats({-1, 3}, {2})}), (std::vector<double>{-2, 6}));
}

TEST_F(ToyFrontEnd, operators_behind_two_ranks_are_read_for_each) {
  ImportedModel m =
      toy("input x float32 2 1\n"
          "input c bool\n"
          "const last int64 1 = 1\n"
          "const two int64 1 = 2\n"
          "y = if c\n"
          "  s = sum x last\n"
          "  t = add s s\n"
          "  give t\n"
          "else\n"
          "  give x\n"
          "end\n"
          "z = mul y y\n"
          "r = reshape z two\n"
          "output r\n");
  EXPECT_EQ(to_string(m.module->find("main")->ret_type), "Tensor[(2,), float32]");
  Tensor x = floats({1, 3}, {2, 1});
  Tensor yes = Tensor::scalar(1, DType::Bool()), no = Tensor::scalar(0, DType::Bool());
  EXPECT_EQ(run(m, {x, yes}), (std::vector<double>{4, 36}));
  EXPECT_EQ(run(m, {x, no}), (std::vector<double>{1, 9}));
}

TEST_F(ToyFrontEnd, ranks_that_a_run_chooses_E0505) {
  std::string why = error_of([] {
    toy("input x float32 2\ninput c bool\nconst all int64 1 = 0\n"
        "y = if c\n give x\nelse\n s = sum x all\n give s\nend\noutput y\n");
  });
  EXPECT_TRUE(says(why, {"E0505", "'c'"})) << why;
}

constexpr const char* kLoop =
    "input x float32 n\n"
    "input limit float32\n"
    "const zero float32 = 0\n"
    "const one float32 = 1\n"
    "i y = while zero x\n"
    "  do a b\n"
    "  t = less a limit\n"
    "  test t\n"
    "  a2 = add a one\n"
    "  twice = add b b\n"
    "  give a2 twice\n"
    "end\n"
    "output y\n";

TEST_F(ToyFrontEnd, a_loop_runs_while_its_test_holds) {
  ImportedModel m = toy(kLoop);
  EXPECT_EQ(to_string(m.module->find("main")->ret_type), "Tensor[(n,), float32]");
  Tensor x = floats({1, -2, 3}, {3});
  EXPECT_EQ(run(m, {x, floats({4}, {})}), (std::vector<double>{16, -32, 48}));
  EXPECT_EQ(run(m, {x, floats({0}, {})}), (std::vector<double>{1, -2, 3}));
}

TEST_F(ToyFrontEnd, a_branch_inside_of_a_loop) {
  ImportedModel m =
      toy("input x float32\n"
          "input limit float32\n"
          "const two float32 = 2\n"
          "const one float32 = 1\n"
          "y = while x\n"
          "  do a\n"
          "  t = less a limit\n"
          "  test t\n"
          "  small = less a two\n"
          "  r = if small\n"
          "    up = add a one\n"
          "    give up\n"
          "  else\n"
          "    square = mul a a\n"
          "    give square\n"
          "  end\n"
          "  give r\n"
          "end\n"
          "output y\n");
  // 0, 1, 2, 4, 16, 256
  EXPECT_EQ(run(m, {floats({0}, {}), floats({100}, {})}), std::vector<double>{256});
}

TEST_F(ToyFrontEnd, errors_have_places_and_codes) {
  auto why = [](const std::string& lines) { return error_of([&] { toy(lines); }); };
  EXPECT_TRUE(says(why("y = frob\noutput y\n"), {"E0501", "frob", "line 2"}));
  EXPECT_TRUE(says(why("y = add z z\noutput y\n"), {"E0502", "'z' has no value", "line 2"}));
  EXPECT_TRUE(says(why("end\n"), {"E0502", "line 2"}));
  EXPECT_TRUE(says(why("input x float32 2\ny = if x\n"), {"E0502", "line 3", "`end`"}));
  EXPECT_TRUE(says(why("const c float32 2 = 1\noutput c\n"), {"E0508", "line 2"}));
  EXPECT_TRUE(says(why("input x float32 2\n"), {"E0507", "no outputs"}));
  EXPECT_TRUE(says(why("input x float32 2\noutput q\n"), {"E0507", "'q'"}));
  EXPECT_TRUE(says(why("input x float32 2\nx = add x x\noutput x\n"), {"E0507", "twice"}));
}

TEST_F(ToyFrontEnd, budgets_E0506) {
  ImportOptions options;
  options.max_nodes = 3;
  std::string why = error_of([&] {
    toy("input x float32 2\ny = add x x\nz = add y y\nw = add z z\noutput w\n", options);
  });
  EXPECT_TRUE(says(why, {"E0506", "at most 3"})) << why;
}

// ---- The list

class FrontEnds : public ::testing::Test {
 protected:
  // A row that claims files that begin with the mark.
  static FrontEnd claims(const std::string& name, const std::string& mark,
                         const std::string& ending) {
    return {.name = name,
            .title = name + " model",
            .endings = {ending},
            .sniff = [mark](std::string_view head) { return head.starts_with(mark); },
            .import = [](const ModelSource&, const ImportOptions&) { return ImportedModel(); }};
  }
  static void SetUpTestSuite() {
    register_ops();
    register_front_end(claims("one", "mark", ".m"));
    register_front_end(claims("two", "mark 2", ".m"));
  }
};

TEST_F(FrontEnds, files_are_recognised_by_content) {
  test::ModelBuilder b;
  b.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(front_end_for("weights.bin", b.bytes()).name, "onnx");
  EXPECT_EQ(front_end_for("net.onnx", "mark 1").name, "one");
  // A model that is cut, and one that says its graph first.
  EXPECT_EQ(front_end_for("x", b.bytes().substr(0, 20)).name, "onnx");
  b.model().clear_ir_version();
  b.model().clear_producer_name();
  EXPECT_EQ(front_end_for("x", b.bytes()).name, "onnx");
}

TEST_F(FrontEnds, content_that_is_not_known_goes_by_the_ending) {
  EXPECT_EQ(front_end_for("damaged.onnx", "garbage").name, "onnx");
  EXPECT_EQ(front_end_for("empty.onnx", "").name, "onnx");
}

TEST_F(FrontEnds, text_and_other_formats_are_not_onnx_E0514) {
  for (const char* head :
       {"", "garbage", "(a list)", ": begins like a graph", "\"quoted\"", "PK\x03\x04zip",
        "{\"json\": 1}", "rows of text, more of them", "\x1c\0\0\0TFL3",
        "\x7f"
        "ELF"}) {
    std::string why = error_of([&] { front_end_for("file", head); });
    EXPECT_TRUE(says(why, {"E0514", "ONNX model", "file"})) << head << why;
  }
}

TEST_F(FrontEnds, two_that_claim_a_file_E0512) {
  std::string why = error_of([] { front_end_for("x", "mark 2\n"); });
  EXPECT_TRUE(says(why, {"E0512", "content", "one and two"})) << why;
  why = error_of([] { front_end_for("x.m", "other"); });
  EXPECT_TRUE(says(why, {"E0512", "ending", "one and two"})) << why;
}

TEST_F(FrontEnds, one_name_twice_E0513) {
  std::string why = error_of([] { register_front_end(claims("one", "another mark", ".other")); });
  EXPECT_TRUE(says(why, {"E0513", "'one'"})) << why;
  // The row that is there keeps its place.
  EXPECT_EQ(front_end_for("x", "mark 1").name, "one");
  EXPECT_FALSE(front_end_named("one").sniff("another mark"));
}

TEST_F(FrontEnds, rows_of_relay_are_first_and_keep_their_names_E0513) {
  std::vector<std::string> names;
  for (const FrontEnd* row : front_ends()) names.push_back(row->name);
  const std::vector<std::string> relays{"onnx", "tflite", "torch", "relay"};
  ASSERT_GT(names.size(), relays.size());
  EXPECT_EQ(std::vector(names.begin(), names.begin() + 4), relays);
  for (const std::string& own : relays) {
    std::string why = error_of([&] { register_front_end(claims(own, "mark 3", ".three")); });
    EXPECT_TRUE(says(why, {"E0513", own.c_str()})) << why;
    EXPECT_FALSE(front_end_named(own).sniff("mark 3"));
  }
}

TEST_F(FrontEnds, names_that_no_front_end_has_E0514) {
  std::string why = error_of([] { front_end_named("onxn"); });
  EXPECT_TRUE(says(why, {"E0514", "onxn", "onnx"})) << why;
}

TEST_F(FrontEnds, own_options_are_those_of_the_row_E0515) {
  test::ModelBuilder b(13);
  b.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  const std::string bytes = b.bytes();
  const ModelSource model{"m", bytes};
  ImportOptions options;
  options.own["opset"] = int64_t{17};
  EXPECT_EQ(import_model(front_end_named("onnx"), model, options).version, 17);
  EXPECT_EQ(import_model(front_end_named("onnx"), model, {}).version, 13);
  options.own["opset"] = std::string("new");
  std::string why = error_of([&] { import_model(front_end_named("onnx"), model, options); });
  EXPECT_TRUE(says(why, {"E0515", "opset", "an integer"})) << why;
  options.own = {{"opsets", int64_t{1}}};
  why = error_of([&] { import_model(front_end_named("onnx"), model, options); });
  EXPECT_TRUE(says(why, {"E0515", "opsets", "opset"})) << why;
}

TEST_F(FrontEnds, the_rows_say_what_they_read) {
  const FrontEnd& onnx = front_end_named("onnx");
  EXPECT_GT(onnx.operators().size(), 150u);
  EXPECT_TRUE(says(titles_of_front_ends("compiled .so"), {"ONNX model, ", " or compiled .so"}));
}

}  // namespace
}  // namespace relay
