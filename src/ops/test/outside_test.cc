// Operators that are registered from outside, with attributes that are data.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lower/interface/compute_rule.h"
#include "node/structural.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

OpInfo scale_row(std::string name) {
  AttrsInfo attrs = describe_attrs(
      "mylib.ScaleAttrs", {{"factor", "float", AttrValue(2.0), "What elements are multiplied by."},
                           {"times", "int", AttrValue(int64_t{1}), "How often."},
                           {"axes", "list of int", AttrValue(), "Not read; None: all."},
                           {"note", "string", AttrValue(std::string("plain")), "Not read."}});
  auto scale = [](const ComputeContext& ctx) {
    double factor = attr_as<double>(ctx.attrs_ref, "factor");
    auto times = attr_as<int64_t>(ctx.attrs_ref, "times");
    return tir::compute("T_scale", ctx.outputs[0].shape, [&](const std::vector<tir::PrimExpr>& i) {
      tir::PrimExpr x = ctx.inputs[0](i);
      for (int64_t k = 0; k < times; ++k) x = x * tir::imm_float(x->dtype, factor);
      return x;
    });
  };
  return {
      .name = std::move(name),
      .doc = "x multiplied by a factor.",
      .args = {{"x", "Any floats."}},
      .attrs = std::move(attrs),
      .fusion = FusionClass::ElemWise,
      .effect = Effect::Pure,
      .relation = [](RelationContext& ctx) -> Type { return ctx.arg(0); },
      .compute = compute_rule(scale),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = [](const CallNode&) { return 1.0; },
      .gradient = Absent::Pending,
      .examples = {{.args = {"Tensor[(2,), float32]"},
                    .attrs = "times=3",
                    .inputs = {{1, -0.5}},
                    .results = {{8, -4}}}},
      .expected = "2^3 and its half, by hand",
  };
}

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// An operator of mylib, for as long as it lives.
struct Registered {
  explicit Registered(std::string name) : name(std::move(name)) {
    register_ops();
    OpRegistry::global().add(scale_row(this->name));
  }
  ~Registered() { OpRegistry::global().remove(name); }
  std::string name;
};

TEST(Outside, attributes_print_parse_compare_and_hash) {
  Registered op("mylib.scale");
  auto parsed = [](const std::string& attrs) {
    return infer("mylib.scale", {"Tensor[(3,), float32]"}, attrs);
  };
  Module mod = parsed("factor=0.5f, axes=[0, -1], note=\"a\\\"b\"");
  std::string text = print_module(mod);
  expect_in(text, "factor=0.5f, axes=[0, -1], note=\"a\\\"b\"");
  Module again = infer_types(parse_module("b.relay", text));
  EXPECT_TRUE(structural_equal(mod, again));
  EXPECT_EQ(structural_hash(mod), structural_hash(again));
  EXPECT_FALSE(structural_equal(mod, parsed("factor=0.25f")));
  EXPECT_FALSE(structural_equal(parsed(""), parsed("axes=[]"))) << "None is no empty list";
  // A whole number is a float where a float is asked for.
  EXPECT_TRUE(structural_equal(parsed("factor=3"), parsed("factor=3f")));
}

TEST(Outside, attributes_are_checked) {
  Registered op("mylib.scale");
  auto error = [](const std::string& attrs) {
    return error_of("mylib.scale", {"Tensor[(3,), float32]"}, attrs);
  };
  expect_in(error("facto=1f"), "did you mean factor?");
  expect_in(error("factor=\"a\""), "E0106");
  expect_in(error("axes=3"), "list of int");
  expect_in(error("times=None"), "expected: int");
}

TEST(Outside, attribute_lists_are_checked) {
  auto error = [](std::vector<AttrSpec> fields) {
    return code_of([&] { describe_attrs("mylib.Attrs", std::move(fields)); });
  };
  std::string unknown = error({{"a", "number", AttrValue(1.0), "A."}});
  expect_in(unknown, "E0805");
  expect_in(unknown, "list of int");
  expect_in(error({{"a", "int", AttrValue(std::string("x")), "A."}}), "default of another type");
  expect_in(error({{"a", "int", AttrValue(), "A."}, {"a", "int", AttrValue(), "A."}}),
            "there twice");
  expect_in(error({{"a b", "int", AttrValue(), "A."}}), "bad name");
  EXPECT_EQ(error({}), "no error");
}

TEST(Outside, names_are_checked) {
  register_ops();
  auto error = [](const std::string& name) {
    return code_of([&] { OpRegistry::global().add(scale_row(name)); });
  };
  for (const char* bad : {"", "scale", "mylib.", ".scale", "my lib.scale", "mylib..scale",
                          "nn.scale", "mylib.1", "mylib.scale("})
    expect_in(error(bad), "E0802");
  Registered op("mylib.scale");
  expect_in(error("mylib.scale"), "E0803");
  expect_in(code_of([] { OpRegistry::global().remove("nn.relu"); }), "E0802");
  expect_in(code_of([] { OpRegistry::global().remove("mylib.scal"); }), "did you mean mylib.scale");
}

TEST(Outside, every_column_is_demanded) {
  auto missing = [](auto edit) {
    OpInfo row = scale_row("mylib.scale");
    edit(row);
    std::string error = code_of([&] { OpRegistry::global().add(std::move(row)); });
    expect_in(error, "E0804");
    return error;
  };
  expect_in(missing([](OpInfo& row) { row.doc.clear(); }), "nothing in doc");
  expect_in(missing([](OpInfo& row) { row.args[0].doc.clear(); }), "nothing in args");
  expect_in(missing([](OpInfo& row) { row.fusion = {}; }), "nothing in fusion");
  expect_in(missing([](OpInfo& row) { row.effect = {}; }), "nothing in effect");
  expect_in(missing([](OpInfo& row) { row.relation = {}; }), "nothing in relation");
  expect_in(missing([](OpInfo& row) { row.compute = {}; }), "nothing in compute");
  expect_in(missing([](OpInfo& row) { row.layout = {}; }), "nothing in layout");
  expect_in(missing([](OpInfo& row) { row.memory = {}; }), "nothing in memory");
  expect_in(missing([](OpInfo& row) { row.precision = {}; }), "nothing in precision");
  expect_in(missing([](OpInfo& row) { row.cost = {}; }), "nothing in cost");
  expect_in(missing([](OpInfo& row) { row.gradient = {}; }), "nothing in gradient");
  // An element-wise operator is batched by broadcasting; another says how.
  expect_in(missing([](OpInfo& row) { row.fusion = FusionClass::Opaque; }), "nothing in batching");
  expect_in(missing([](OpInfo& row) { row.batching = Absent::Pending; }), "nothing in batching");
  expect_in(missing([](OpInfo& row) { row.examples = {}; }), "nothing in examples");
  expect_in(missing([](OpInfo& row) { row.expected = {}; }), "nothing in expected");
  expect_in(missing([](OpInfo& row) { row.examples[0].results = {}; }), "results of an example");
  // An empty function is no rule, and an example is a whole call.
  expect_in(missing([](OpInfo& row) { row.relation = TypeRelation(); }), "nothing in relation");
  expect_in(missing([](OpInfo& row) { row.examples[0].args.clear(); }), "nothing in examples");
  // A reason that is none for this column.
  expect_in(missing([](OpInfo& row) { row.cost = Absent::AxesAsWritten; }), "nothing in cost");
}

TEST(Outside, an_expression_keeps_what_is_removed) {
  Module mod;
  Attrs attrs;
  {
    Registered op("mylib.scale");
    mod = infer("mylib.scale", {"Tensor[(2,), float32]"}, "factor=3f");
    attrs = make_attrs(*OpRegistry::global().get(op.name)->row->attrs, {}, op.name, {});
  }
  expect_in(error_of("mylib.scale", {"Tensor[(2,), float32]"}, ""), "E0105");
  // Text, types and values of the old program are as they were.
  expect_in(print_module(mod), "mylib.scale(%a0, factor=3f)");
  mod = infer_types(mod);
  EXPECT_EQ(attr_as<int64_t>(attrs, "times"), 1);
  // The name is free for another operator.
  Registered again("mylib.scale");
  EXPECT_EQ(error_of("mylib.scale", {"Tensor[(2,), float32]"}, ""), "no error");
}

TEST(Outside, threads_register_and_remove_at_once) {
  register_ops();
  size_t before = OpRegistry::global().all().size();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        // Half of the threads want the same name; one of them gets it.
        std::string name = "mylib.op" + std::to_string(t / 2);
        bool mine = code_of([&] { OpRegistry::global().add(scale_row(name)); }) == "no error";
        for (const Op& op : OpRegistry::global().all()) wrong += op->row->name != op->name;
        if (mine) OpRegistry::global().remove(name);
        Op op = OpRegistry::global().find(name);
        wrong += op && op->row->doc.empty();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(OpRegistry::global().all().size(), before);
}

}  // namespace
}  // namespace relay
