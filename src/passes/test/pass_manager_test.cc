// Pass contexts, the choke point, instruments, and the lists of passes.
#include <algorithm>

#include "base/budget.h"
#include "node/walk.h"
#include "passes/pipelines.h"
#include "passes/simplify/fold_constant.h"
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

// Gives the function a body that uses an unbound variable.
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
  for (const Pass* p : optimize_pipeline().passes()) EXPECT_EQ(&find_pass(p->name), p) << p->name;
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

// ---- Forms

Module same(const Module& mod, PassContext&) { return mod; }

std::string error_of_pass(const Pass& pass, const std::string& text, PassContext ctx = {}) {
  return error_of([&] { run_pass(pass_test::parse(text), pass, ctx); });
}

TEST(Forms, each_is_told_apart) {
  auto defect = [](const std::string& text, Form form) {
    auto found = find_form_defect(pass_test::parse(text), form);
    return found ? found->detail : "none";
  };
  const char* nested = "def @main(%x: float32) { exp(exp(%x)) }";
  EXPECT_EQ(defect(nested, Form::any), "none");
  EXPECT_EQ(defect(nested, Form::anf), "an operand has no name");
  EXPECT_EQ(defect("def @main(%x: float32) { let %y = exp(%x); let %z = exp(%y); %z }", Form::anf),
            "none");
  EXPECT_EQ(defect(nested, Form::fused), "exp is called outside a primitive function");
  EXPECT_EQ(defect("def @main(%x: float32) {\n"
                   "  let %y = fn (%p: float32, Primitive=1) { exp(exp(%p)) }(%x); %y }",
                   Form::fused | Form::anf | Form::lifted),
            "none");
  EXPECT_EQ(
      defect("def @main(%x: float32) { let %f = fn (%y: float32) { %y }; %f(%x) }", Form::lifted),
      "a function stands inside another");
  const char* shared =
      "def @main(%x: float32, %c: bool) {\n  %0 = exp(%x);\n  if (%c) { add(%0, 1f) } else { "
      "sqrt(%0) } }";
  EXPECT_EQ(defect(shared, Form::basic_blocks),
            "an expression is used in another block than its own");
  EXPECT_EQ(defect("def @main(%x: float32, %c: bool) {\n"
                   "  let %y = if (%c) { exp(%x) } else { %x };\n  %y }",
                   Form::anf),
            "a result has no name");
  EXPECT_EQ(defect("def @main(%x: float32) { exp(%x) }", Form::anf), "a result has no name");
  const char* closure =
      "def @main(%x: float32, Closure=1) { let %f = fn (%y: float32) { %x }; %f }";
  EXPECT_EQ(defect(closure, Form::anf | Form::lifted), "none");
  const char* other =
      "def @main(%x: float32, Closure=1) { let %g = fn (%y: float32) { %x };\n"
      "  let %f = fn (%y: float32) { %x }; %f }";
  EXPECT_EQ(defect(other, Form::lifted), "a function stands inside another");
}

TEST(Forms, a_pass_gives_what_it_promises_on_every_sort_of_program) {
  for (const char* text :
       {"def @main(%x: float32, %c: bool) {\n  %0 = exp(%x);\n  if (%c) { add(%0, 1f) } else { "
        "sqrt(%0) } }",
        "def @main(%x: float32) { let %f = fn (%y: float32) { add(%y, %x) }; (%f(%x), %f(exp(%x))) "
        "}",
        "type Nat { Z, S(Nat), }\n"
        "def @main(%n: Nat) { match (%n) { S(S(_)) => { 2 }, S(_) => { 1 }, Z => { 0 }, } }"}) {
    for (const Pass* p : passes_that_keep_meaning()) {
      Module out = pass_test::apply(*p, pass_test::parse(text));
      auto defect = find_form_defect(out, p->out);
      EXPECT_FALSE(defect.has_value()) << p->name << ": " << defect->detail << "\n"
                                       << print_module(out);
    }
  }
}

TEST(Forms, a_pass_that_breaks_its_promise_is_named) {
  PassContext ctx;
  ctx.verify = true;
  const Pass liar{"Liar", 0, Form::any, Form::anf, "Promises names.", same};
  std::string e = error_of_pass(liar, "def @main(%x: float32) { exp(exp(%x)) }", ctx);
  EXPECT_NE(e.find("E0311"), std::string::npos) << e;
  EXPECT_NE(e.find("Liar"), std::string::npos) << e;
  EXPECT_NE(e.find("anf"), std::string::npos) << e;
  EXPECT_EQ(error_of_pass(liar, "def @main(%x: float32) { let %y = exp(%x); %y }", ctx),
            "no error");
  // A pass from outside is checked whether the context verifies or not.
  const Pass outside{"mylib.Liar", 0, Form::any, Form::anf, "Promises names.", same};
  EXPECT_NE(error_of_pass(outside, "def @main(%x: float32) { exp(exp(%x)) }").find("E0311"),
            std::string::npos);
}

TEST(Forms, a_program_that_a_pass_does_not_take_is_refused) {
  const Pass demanding{"Demanding", 0, Form::anf | Form::fused, Form::any, "Demands.", same};
  std::string e = error_of_pass(demanding, "def @main(%x: float32) { exp(exp(%x)) }");
  EXPECT_NE(e.find("E0311"), std::string::npos) << e;
  EXPECT_NE(e.find("pass Demanding does not take this program"), std::string::npos) << e;
  PassContext without;
  without.disabled_pass = {"ToANormalForm"};
  const Pass named{"Named", 0, Form::anf, Form::any, "Demands names.", same};
  e = error_of_pass(named, "def @main(%x: float32) { exp(exp(%x)) }", without);
  EXPECT_NE(e.find("E0306"), std::string::npos) << e;
  EXPECT_NE(e.find("pass ToANormalForm cannot be skipped"), std::string::npos) << e;
  PassContext ctx;
  Module ready =
      bring_into(demanding.in, pass_test::parse("def @main(%x: float32) { exp(exp(%x)) }"), ctx);
  EXPECT_TRUE(run_pass(ready, demanding, ctx) == ready);
}

// ---- Passes from outside

// Adds a pass for as long as it lives.
class Added {
 public:
  Added(Pass pass, const std::string& place) : name_(add_pass(std::move(pass), place).name) {}
  ~Added() { remove_pass(name_); }

 private:
  std::string name_;
};

std::vector<std::string> order() {
  std::vector<std::string> out;
  for (const Pass* p : optimize_pipeline().passes()) out.push_back(p->name);
  return out;
}

TEST(OutsidePasses, run_at_their_places) {
  size_t before = order().size();
  {
    Added first({"mylib.First", 0, Form::any, Form::any, "Runs first.", same}, "after:import");
    Added fused({"mylib.Fused", 0, Form::fused, Form::fused, "Sees kernels.", same},
                "after:FuseOps");
    Added again({"mylib.Again", 0, Form::fused, Form::fused, "Sees kernels.", same},
                "after:FuseOps");
    Added late({"mylib.Late", 0, Form::any, Form::any, "Runs before fusion.", same},
               "before:fusion");
    Added alone({"mylib.Alone", 0, Form::any, Form::any, "Runs where it is asked for.", same}, "");
    std::vector<std::string> names = order();
    ASSERT_EQ(names.size(), before + 4);
    EXPECT_EQ(names.front(), "mylib.First");
    auto at = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) - names.begin();
    };
    EXPECT_EQ(at("mylib.Fused"), at("FuseOps") + 1);
    EXPECT_EQ(at("mylib.Again"), at("FuseOps") + 2);
    EXPECT_EQ(at("mylib.Late"), at("PlaceExternalFunctions") - 1);
    EXPECT_EQ(find_pass("mylib.Alone").doc, "Runs where it is asked for.");
    PassContext ctx;
    ctx.verify = true;
    run_passes(pass_test::parse(kProgram), optimize_pipeline(), ctx);
  }
  EXPECT_EQ(order().size(), before);
  EXPECT_NE(error_of([] { find_pass("mylib.First"); }).find("E0301"), std::string::npos);
}

// The lines of docs/adding_a_pass.md.
TEST(OutsidePasses, are_added_and_removed) {
  int calls = 0;
  auto count_calls = [&](const Module& mod, PassContext&) {
    post_order(mod->find("main"), [&](const Node& n) { calls += isa<CallNode>(&n) ? 1 : 0; });
    return mod;
  };
  add_pass({"mylib.CountCalls", 0, Form::any, Form::any, "Counts calls.", count_calls},
           "after:import");
  PassContext ctx;
  run_passes(pass_test::parse(kProgram), optimize_pipeline(), ctx);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(remove_pass("mylib.CountCalls"));
  EXPECT_FALSE(remove_pass("mylib.CountCalls"));
  run_passes(pass_test::parse(kProgram), optimize_pipeline(), ctx);
  EXPECT_EQ(calls, 1);
}

TEST(OutsidePasses, what_holds_from_a_step_on_is_kept) {
  Added undo(
      {"mylib.Undo", 0, Form::any, Form::any, "Takes kernels apart.",
       [](const Module& mod, PassContext& ctx) { return find_pass("DefuseOps").run(mod, ctx); }},
      "after:fusion");
  PassContext ctx;
  std::string e =
      error_of([&] { run_passes(pass_test::parse(kProgram), optimize_pipeline(), ctx); });
  EXPECT_NE(e.find("E0311"), std::string::npos) << e;
  EXPECT_NE(e.find("after pass mylib.Undo"), std::string::npos) << e;
}

TEST(OutsidePasses, what_cannot_be_added_is_refused) {
  Added taken({"mylib.Taken", 0, Form::any, Form::any, "Is there.", same}, "");
  auto refused = [](Pass pass, const char* place, const char* why) {
    std::string e = error_of([&] { add_pass(std::move(pass), place); });
    EXPECT_NE(e.find("E0312"), std::string::npos) << e;
    EXPECT_NE(e.find(why), std::string::npos) << e;
  };
  refused({"mylib.Taken", 0, Form::any, Form::any, "Again.", same}, "", "taken");
  refused({"FuseOps", 0, Form::any, Form::any, "Ours.", same}, "", "namespace");
  refused({".x", 0, Form::any, Form::any, "Odd.", same}, "", "namespace");
  refused({"mylib.Silent", 0, Form::any, Form::any, "", same}, "", "what it does");
  refused({"mylib.Empty", 0, Form::any, Form::any, "Empty.", nullptr}, "", "nothing to run");
  refused({"mylib.Lost", 0, Form::any, Form::any, "Lost.", same}, "after:lunch",
          "import, structure");
  refused({"mylib.Lost", 0, Form::any, Form::any, "Lost.", same}, "FuseOps", "before: or after:");
}

// ---- Options

TEST(PassOptions, an_unknown_one_is_refused) {
  auto error = [](const char* key, AttrValue value) {
    PassContext ctx;
    ctx.config[key] = std::move(value);
    return error_of_pass(kCount, kProgram, ctx);
  };
  EXPECT_EQ(error("relay.FuseOps.max_depth", AttrValue(int64_t{4})), "no error");
  std::string e = error("relay.FuseOps.max_dept", AttrValue(int64_t{4}));
  EXPECT_NE(e.find("E0313"), std::string::npos) << e;
  EXPECT_NE(e.find("did you mean relay.FuseOps.max_depth"), std::string::npos) << e;
  EXPECT_NE(error("relay.InferType.x", AttrValue(true)).find("InferType has no options"),
            std::string::npos);
  EXPECT_NE(error("max_depth", AttrValue(int64_t{4})).find("E0313"), std::string::npos);
  e = error("relay.FuseOps.max_depth", AttrValue(std::string("deep")));
  EXPECT_NE(e.find("E0313"), std::string::npos) << e;
  EXPECT_NE(e.find("integer"), std::string::npos) << e;
  EXPECT_NE(error("relay.RemoveUnusedFunctions.entry_functions", AttrValue(std::string("main")))
                .find("list of names"),
            std::string::npos);
}

TEST(PassOptions, each_has_a_type_a_default_of_it_and_a_sentence) {
  for (const Pass* p : builtin_passes()) {
    for (const PassOption& o : p->options) {
      EXPECT_TRUE(o.doc.ends_with(".")) << p->name << "." << o.name;
      if (o.standard == AttrValue()) continue;
      Dict config{{"relay." + p->name + "." + o.name, o.standard}};
      EXPECT_EQ(error_of([&] { check_config(config); }), "no error");
    }
  }
}

}  // namespace
}  // namespace relay
