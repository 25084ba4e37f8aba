// Types are kept: what a pass makes is typed as inference would type it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/test/source_dir.h"
#include "node/walk.h"
#include "passes/pipelines.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

struct NamedProgram {
  std::string name;
  Module mod;
};

constexpr const char* kNamedSizes = R"(#[version = "0.0.5"]
def @twice[n: Dim](%x: Tensor[(n, 4), float32]) -> Tensor[(n + n, 4), float32] {
  concatenate((%x, %x), axis=0)
}
def @shape[S: Shape, D: BaseType](%f: fn (Tensor[S, D]) -> Tensor[S, D], %x: Tensor[S, D]) {
  %f(%f(%x))
}
def @pair[A, n: Dim](%a: A, %x: Tensor[(n, 4), float32]) { (%a, @twice(%x)) }
def @main[m: Dim](%x: Tensor[(m, 4), float32]) {
  let %y = @twice(@twice(%x));
  let %z = @shape(fn (%v: Tensor[(4, m, 4), float32]) { nn.relu(%v) },
                  reshape(%y, newshape=[4, -1, 4]));
  (@pair((1, %z), nn.relu(%y)), @twice(%x))
}
)";

std::vector<NamedProgram> programs() {
  register_ops();
  std::vector<NamedProgram> out{
      {"named sizes", infer_types(parse_module("named.relay", kNamedSizes))}};
  std::filesystem::path folder = std::filesystem::path(test::source_dir()) / "examples/language";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    std::string name = file.path().filename();
    out.push_back({name, infer_types(parse_module(name, text.str()))});
  }
  for (const char* name : {"prelude.rly", "nat.rly", "tensor_array.rly"}) {
    out.push_back({name, infer_types(import_prelude(make_module({}, {}), name))});
  }
  return out;
}

void expect_typed(const Module& mod, const std::string& how) {
  try {
    Module again = infer_types(mod);
    std::string difference = first_structural_mismatch(again, mod);
    EXPECT_TRUE(difference.empty()) << how << ": " << difference;
    for (size_t i = 0; i < mod->functions.size() && difference.empty(); ++i) {
      EXPECT_EQ(to_string(again->functions[i]->type), to_string(mod->functions[i]->type)) << how;
    }
  } catch (const UserError& e) {
    ADD_FAILURE() << how << ": " << e.what() << "\n" << print_module(mod);
  }
}

TEST(KeptTypes, what_is_rewritten_has_its_type_still_unless_its_operands_have_others) {
  const Function f =
      pass_test::parse("def @main(%x: Tensor[(4,), float32]) { (sin(%x), %x) }")->find("main");
  auto on = [&](int64_t size) {
    Var y = var("y", tensor_type(std::vector<int64_t>{size}, DType::Float(32)));
    std::unordered_map<const Node*, NodeRef> by{{f->params[0].get(), y}};
    return cast<ExprNode>(substitute(f->body, by, family::program));
  };
  const Expr same = on(4), other = on(8);
  EXPECT_FALSE(same == f->body);
  EXPECT_TRUE(same->type == f->body->type);
  EXPECT_EQ(to_string(other->type), "(Tensor[(8,), float32], Tensor[(8,), float32])");
}

TEST(KeptTypes, after_each_pass_alone) {
  for (const NamedProgram& p : programs()) {
    for (const Pass* pass : passes_that_keep_meaning()) {
      expect_typed(pass_test::apply(*pass, p.mod), p.name + " after " + std::string(pass->name));
    }
  }
}

TEST(KeptTypes, after_the_whole_pipeline) {
  for (const NamedProgram& p : programs()) {
    PassContext ctx;
    ctx.verify = true;
    ctx.opt_level = 3;
    expect_typed(run_passes(p.mod, optimize_pipeline(), ctx), p.name);
  }
}

}  // namespace
}  // namespace relay
