// Pass contexts, the choke point, instruments, and the lists of passes.
#include <algorithm>

#include "base/budget.h"
#include "passes/fold_constant.h"
#include "passes/pipelines.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

const char* const kProgram = "def @main(%x: Tensor[(2,), float32]) { nn.relu(%x) }";

int runs = 0;

Module count(const Module& mod, PassContext&) {
  ++runs;
  return mod;
}
const Pass kCount{"Count", 2, Form::any, Form::any, "Counts.", count};

// Gives the function a body that uses a variable of nobody.
Module break_it(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return function(f->params, var("stray", f->body->type), nullptr, {}, f->attrs, f->span);
  });
}
const Pass kBreak{"Break", 0, Form::any, Form::any, "Breaks.", break_it};

int runs_with(PassContext ctx) {
  const Pass* list[] = {&kCount};
  runs = 0;
  run_passes(pass_test::parse(kProgram), list, ctx);
  return runs;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(PassManager, a_pass_runs_from_its_level_on) {
  PassContext ctx;
  ctx.opt_level = 1;
  EXPECT_EQ(runs_with(ctx), 0);
  ctx.opt_level = 2;
  EXPECT_EQ(runs_with(ctx), 1);
}

TEST(PassManager, required_and_disabled) {
  PassContext ctx;
  ctx.opt_level = 0;
  ctx.required_pass = {"Count"};
  EXPECT_EQ(runs_with(ctx), 1);
  ctx.disabled_pass = {"Count"};
  EXPECT_EQ(runs_with(ctx), 0);
}

TEST(PassManager, cancellation_is_asked_before_each_pass) {
  PassContext ctx;
  int asked = 0;
  BudgetLimits limits;
  limits.cancelled = [&] { return ++asked == 2; };
  const Pass* list[] = {&kCount, &kCount, &kCount};
  runs = 0;
  Module mod = pass_test::parse(kProgram);
  std::string e = error_of([&] {
    BudgetScope scope(limits);
    run_passes(mod, list, ctx);
  });
  EXPECT_NE(e.find("E0303"), std::string::npos) << e;
  EXPECT_EQ(runs, 1);
}

TEST(PassManager, verification_names_the_pass_that_broke_the_program) {
  PassContext ctx;
  ctx.verify = true;
  std::string e = error_of([&] { run_pass(pass_test::parse(kProgram), kBreak, ctx); });
  EXPECT_NE(e.find("E0302"), std::string::npos) << e;
  EXPECT_NE(e.find("Break"), std::string::npos) << e;
  EXPECT_NE(e.find("%stray"), std::string::npos) << e;
  ctx.verify = false;
  run_pass(pass_test::parse(kProgram), kBreak, ctx);
}

TEST(PassManager, an_unknown_name_is_an_error_with_near_names) {
  std::string e = error_of([] { find_pass("FuseOp"); });
  EXPECT_NE(e.find("E0301"), std::string::npos) << e;
  EXPECT_NE(e.find("did you mean FuseOps"), std::string::npos) << e;
  EXPECT_EQ(find_pass("FoldConstant").name, "FoldConstant");
}

class Recorder : public PassInstrument {
 public:
  bool should_run(const Pass&, const Module&) override { return allow; }
  void before(const Pass& p, const Module&) override { log += "<" + std::string(p.name); }
  void after(const Pass&, const Module& before, const Module& after,
             std::chrono::nanoseconds time) override {
    EXPECT_GE(time.count(), 0);
    log += before == after ? "=>" : "!>";
  }
  bool allow = true;
  std::string log;
};

TEST(PassManager, instruments_see_each_pass_and_may_skip_it) {
  PassContext ctx;
  Recorder recorder;
  PassTiming timing;
  ctx.instruments = {&recorder, &timing};
  const Pass* list[] = {&kCount, &kBreak};
  Module mod = pass_test::parse(kProgram);
  run_passes(mod, list, ctx);
  EXPECT_EQ(recorder.log, "<Count=><Break!>");
  ASSERT_EQ(timing.rows().size(), 2u);
  EXPECT_EQ(timing.rows()[1].name, "Break");
  EXPECT_FALSE(timing.rows()[0].changed);
  EXPECT_TRUE(timing.rows()[1].changed);
  recorder.allow = false;
  EXPECT_TRUE(run_passes(mod, list, ctx) == mod);
  EXPECT_EQ(recorder.log, "<Count=><Break!>");
}

class Replacer : public PassInstrument {
 public:
  explicit Replacer(Module other) : other_(std::move(other)) {}
  Module replace(const Pass&, const Module&, const Module&) override { return other_; }

 private:
  Module other_;
};

TEST(PassManager, an_instrument_may_replace_a_result_which_is_verified) {
  PassContext ctx;
  ctx.verify = true;
  Module mod = pass_test::parse(kProgram), other = pass_test::parse("def @main() { 1 }");
  Replacer replacer(other);
  Recorder recorder;
  ctx.instruments = {&replacer, &recorder};
  EXPECT_TRUE(run_pass(mod, kCount, ctx) == other);
  EXPECT_EQ(recorder.log, "<Count!>");
  Replacer breaker(kBreak.run(mod, ctx));
  ctx.instruments = {&breaker};
  EXPECT_NE(error_of([&] { run_pass(mod, kCount, ctx); }).find("E0302"), std::string::npos);
}

TEST(PassManager, passes_are_listed_by_name_once) {
  std::vector<std::string_view> names;
  for (const Pass* p : all_passes()) {
    names.push_back(p->name);
    EXPECT_TRUE(p->doc.ends_with(".")) << p->name;
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_TRUE(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (const Pass* p : optimize_pipeline()) {
    EXPECT_NE(std::find(all_passes().begin(), all_passes().end(), p), all_passes().end())
        << p->name;
  }
}

TEST(PassManager, the_pipeline_leaves_kernels_in_a_normal_form) {
  PassContext ctx;
  ctx.verify = true;
  for (int level = 0; level <= 3; ++level) {
    ctx.opt_level = level;
    Module out = run_passes(pass_test::parse(kProgram), optimize_pipeline(), ctx);
    auto* l = as<LetNode>(out->find("main")->body);
    ASSERT_NE(l, nullptr) << level;
    auto* c = as<CallNode>(l->value);
    ASSERT_NE(c, nullptr) << level;
    EXPECT_TRUE(as<FunctionNode>(c->op)->is_primitive()) << level;
  }
}

}  // namespace
}  // namespace relay
