// `relay diff` finds planted faults: the pass, the kernel or the plan that is wrong, and the node.
#include "driver/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "driver/bind_params.h"
#include "driver/test/networks.h"
#include "fuzz/faults.h"
#include "fuzz/module_edits.h"
#include "ir/op.h"

namespace relay::fuzz {
namespace {

using runtime::Value;

// A layer of BERT with a normalisation by root mean squares behind it. Weights begin with w.
constexpr const char* kBert = R"(def @main(
    %x: Tensor[(1, 8, 16), float32], %mask: Tensor[(1, 1, 1, 8), float32],
    %wq: Tensor[(16, 16), float32], %wk: Tensor[(16, 16), float32], %wv: Tensor[(16, 16), float32],
    %wo: Tensor[(16, 16), float32], %wbq: Tensor[(16,), float32], %wbo: Tensor[(16,), float32],
    %wg: Tensor[(16,), float32], %wb: Tensor[(16,), float32],
    %w1: Tensor[(32, 16), float32], %w2: Tensor[(16, 32), float32], %wb1: Tensor[(32,), float32]) {
  let %t = reshape(%x, newshape=[8, 16]);
  let %q = add(nn.dense(%t, %wq), %wbq);
  let %k = nn.dense(%t, %wk);
  let %v = nn.dense(%t, %wv);
  let %q4 = transpose(reshape(%q, newshape=[1, 8, 2, 8]), axes=[0, 2, 1, 3]);
  let %k4 = transpose(reshape(%k, newshape=[1, 8, 2, 8]), axes=[0, 2, 1, 3]);
  let %v4 = transpose(reshape(%v, newshape=[1, 8, 2, 8]), axes=[0, 2, 3, 1]);
  let %qs = reshape(%q4, newshape=[2, 8, 8]);
  let %ks = reshape(%k4, newshape=[2, 8, 8]);
  let %vs = reshape(%v4, newshape=[2, 8, 8]);
  let %raw = divide(reshape(nn.batch_matmul(%qs, %ks), newshape=[1, 2, 8, 8]), 2.8284271f);
  let %scores = add(%raw, %mask);
  let %p = nn.softmax(%scores, axis=-1);
  let %c = nn.batch_matmul(reshape(%p, newshape=[2, 8, 8]), %vs);
  let %c2 = transpose(reshape(%c, newshape=[1, 2, 8, 8]), axes=[0, 2, 1, 3]);
  let %o = add(nn.dense(reshape(%c2, newshape=[8, 16]), %wo), %wbo);
  let %r = add(%o, %t);
  let %n = nn.layer_norm(%r, %wg, %wb);
  let %h = add(nn.dense(%n, %w1), %wb1);
  let %e = multiply(multiply(%h, 0.5f), add(erf(multiply(%h, 0.70710677f)), 1f));
  let %f = nn.dense(%e, %w2);
  let %y = add(%f, %n);
  let %wide = multiply(%y, 400f);
  let %squares = multiply(%wide, %wide);
  let %root = sqrt(add(mean(%squares, axis=[-1], keepdims=True), 0.1f));
  let %z = subtract(divide(%wide, %root), mean(%y, axis=[-1], keepdims=True));
  tanh(%z)
}
)";

// Two residual blocks.
constexpr const char* kResNet = R"(def @main(
    %x: Tensor[(1, 3, 12, 12), float32], %mask: Tensor[(1, 1, 1, 10), float32],
    %w1: Tensor[(16, 3, 3, 3), float32], %wb1: Tensor[(16,), float32],
    %w2: Tensor[(16, 16, 3, 3), float32], %w3: Tensor[(16, 16, 1, 1), float32],
    %wg: Tensor[(16,), float32], %wb: Tensor[(16,), float32], %wm: Tensor[(16,), float32],
    %wv: Tensor[(16,), float32], %wf: Tensor[(10, 16), float32], %wbf: Tensor[(10,), float32]) {
  let %a = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]]);
  let %c1 = nn.bias_add(nn.conv2d(%a, %w1, padding=[0, 1, 1, 0], channels=16, kernel_size=[3, 3]), %wb1);
  let %n1 = nn.batch_norm(%c1, %wg, %wb, %wm, %wv).0;
  let %r1 = nn.relu(%n1);
  let %c2 = nn.conv2d(%r1, %w2, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  let %n2 = nn.batch_norm(%c2, %wg, %wb, %wm, %wv).0;
  let %s = nn.conv2d(%r1, %w3, channels=16, kernel_size=[1, 1]);
  let %r2 = nn.relu(add(%n2, %s));
  let %wide = multiply(%r2, 400f);
  let %squares = multiply(%wide, %wide);
  let %g = sqrt(nn.global_avg_pool2d(%squares));
  let %d = add(nn.dense(nn.batch_flatten(%g), %wf), %wbf);
  let %scores = add(divide(%d, 100f), reshape(%mask, newshape=[1, 10]));
  let %p = nn.softmax(%scores, axis=-1);
  subtract(%p, mean(%p, axis=[-1], keepdims=True))
}
)";

// @main with constants for its weights, and arguments for the rest.
struct Network {
  Module module;
  std::vector<Value> args;

  explicit Network(const std::string& text) {
    const Module parsed = driver_test::parse(text);
    std::map<std::string, Tensor> weights;
    uint64_t seed = 1;
    for (const Var& p : parsed->find("main")->params) {
      auto* type = as<TensorTypeNode>(p->type);
      Tensor t = Tensor::empty(type->dtype, *type->const_shape());
      const bool weight = p->name_hint[0] == 'w';
      // Variances are positive.
      driver_test::fill(t, p->name_hint == "wv" ? 0.5 : -0.6, 0.9, ++seed);
      if (p->name_hint == "mask") {
        for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_double(i, i % 3 == 2 ? -4 : 0);
      }
      if (weight) {
        weights.emplace(p->name_hint, t);
      } else {
        args.emplace_back(t);
      }
    }
    module = bind_params(parsed, weights);
  }
};

// The place of the line that has the words, without its column; driver_test::parse adds a line in front of the text.
std::string place_of(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << words;
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return "test.relay:" + std::to_string(line + 2) + ":";
}

// ---- Faults of these tests: calls of the source that a pass spoils

bool is_bound_sum(const CallNode& c) {
  // scores = raw + mask
  return is_call_to(ref(c), "add") && c.args[1]->type != nullptr &&
         (isa<VarNode>(c.args[1]) || is_call_to(c.args[1], "reshape"));
}

Module edit_calls(const Module& mod, const std::function<Expr(const CallNode&)>& edit) {
  return edited(mod, [&](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    return c != nullptr && isa<OpNode>(c->op) ? edit(*c) : nullptr;
  });
}

Module drops_masks(const Module& before, const Module&) {
  return edit_calls(before, [](const CallNode& c) -> Expr {
    const bool masks = is_bound_sum(c) && same_type(c.args[0], ref(c));
    auto* rank = masks ? as<TensorTypeNode>(c.type) : nullptr;
    return rank != nullptr && (isa<VarNode>(c.args[1]) || is_call_to(c.args[1], "reshape")) &&
                   !is_call_to(c.args[0], "nn.dense") && !is_call_to(c.args[0], "add")
               ? c.args[0]
               : nullptr;
  });
}

Module computes_squares_in_half(const Module& before, const Module&) {
  return edit_calls(before, [](const CallNode& c) -> Expr {
    if (!is_call_to(ref(c), "multiply") || !(c.args[0] == c.args[1])) return nullptr;
    const OpNode& cast_op = *OpRegistry::global().get("cast");
    auto to = [&](Expr e, const char* dtype) {
      return call(
          "cast", {std::move(e)},
          make_attrs(*cast_op.row->attrs, {{"dtype", AttrValue(std::string(dtype))}}, "cast", {}),
          c.span);
    };
    const Expr half = to(c.args[0], "float16");
    return to(call("multiply", {half, half}, nullptr, c.span), "float32");
  });
}

Module normalises_another_axis(const Module& before, const Module&) {
  return edit_calls(before, [](const CallNode& c) -> Expr {
    if (!is_call_to(ref(c), "nn.softmax")) return nullptr;
    const OpInfo& row = *as<OpNode>(c.op)->row;
    return call(c.op, c.args,
                make_attrs(*row.attrs, {{"axis", AttrValue(int64_t{0})}}, row.name, c.span),
                c.span);
  });
}

constexpr Fault kOwn[] = {
    {"drops_masks", "SimplifyExpr", "A mask is not added.", drops_masks},
    {"computes_squares_in_half", "SimplifyExpr", "Squares overflow in float16.",
     computes_squares_in_half},
    {"normalises_another_axis", "SimplifyExpr", "An axis is counted from the wrong end.",
     normalises_another_axis},
};

// A kind of fault, what is to blame, and the words of the line that is to be named, in either network.
struct Kind {
  std::string_view fault;
  DiffFault blamed;
  std::string bert = {}, resnet = {};
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"drops_masks", DiffFault::pass, "let %scores", "let %scores"},
      {"computes_squares_in_half", DiffFault::pass, "let %squares", "let %squares"},
      {"normalises_another_axis", DiffFault::pass, "let %p", "let %p"},
      {"folds_wrong_last_element", DiffFault::pass},
      {"folds_without_sign", DiffFault::pass},
      {"loses_the_end_of_groups", DiffFault::pass},
      {"swaps_inputs_of_groups", DiffFault::pass},
      {"starts_reductions_at_one", DiffFault::kernel},
      {"swaps_indices", DiffFault::kernel},
      {"loops_lose_the_last", DiffFault::kernel},
      {"takes_min_for_max", DiffFault::kernel},
      {"swaps_subtractions", DiffFault::kernel},
      {"forgets_a_stride", DiffFault::kernel},
      {"swaps_kernel_inputs", DiffFault::plan},
      {"reads_another_constant", DiffFault::plan},
  };
  return all;
}

const Fault& fault_named(std::string_view name) {
  for (const Fault& f : kOwn)
    if (f.name == name) return f;
  for (const Fault& f : faults())
    if (f.name == name) return f;
  ADD_FAILURE() << "there is no fault " << name;
  return kOwn[0];
}

DiffOptions one_thread() {
  DiffOptions out;
  out.compile.num_threads = 1;
  return out;
}

TEST(Diff, programs_without_faults_agree) {
  for (const char* text : {kBert, kResNet}) {
    const Network n(text);
    DiffOptions options = one_thread();
    for (bool level_0 : {false, true}) {
      options.against_level_0 = level_0;
      const DiffReport report = diff(n.module, n.args, options);
      EXPECT_EQ(report.fault, DiffFault::none) << report.node << " " << report.pass;
      EXPECT_FALSE(report.results.empty());
    }
  }
}

// RELAY_COUNT kinds, all without it, from the RELAY_SEEDth on.
TEST(Diff, planted_faults_are_found) {
  const Network networks[] = {Network(kBert), Network(kResNet)};
  const char* asked = std::getenv("RELAY_COUNT");
  const char* from = std::getenv("RELAY_SEED");
  const size_t first = from == nullptr ? 0 : std::strtoull(from, nullptr, 10);
  const size_t count = asked == nullptr ? kinds().size() : std::strtoull(asked, nullptr, 10);
  for (size_t k = 0; k < count; ++k) {
    const Kind& kind = kinds()[(first + k) % kinds().size()];
    const Fault& fault = fault_named(kind.fault);
    size_t found = 0;
    for (size_t which : {0, 1}) {
      PlantedFault planted(fault);
      DiffOptions options = one_thread();
      options.compile.instruments = {&planted};
      options.compile.observers = {&planted};
      const DiffReport report = diff(networks[which].module, networks[which].args, options);
      const bool fired = planted.fired();
      SCOPED_TRACE(std::string(kind.fault) + (which == 0 ? " in bert" : " in resnet") + ": " +
                   report.pass + " " + report.operation + " " + report.node);
      if (report.fault == DiffFault::none) continue;
      EXPECT_TRUE(fired);
      ++found;
      EXPECT_EQ(report.fault, kind.blamed);
      if (kind.blamed == DiffFault::pass) {
        EXPECT_EQ(report.pass, fault.stage);
      }
      EXPECT_NE(report.node, "");
      EXPECT_FALSE(report.inputs.empty());
      const std::string& words = which == 0 ? kind.bert : kind.resnet;
      if (!words.empty()) {
        const std::string place = place_of(which == 0 ? kBert : kResNet, words);
        EXPECT_TRUE(report.node.starts_with(place)) << "instead of " << place;
      }
    }
    // The compiled program at level 0 as the reference leads to the same pass.
    if (kind.blamed == DiffFault::pass && !kind.bert.empty()) {
      PlantedFault planted(fault);
      DiffOptions options = one_thread();
      options.against_level_0 = true;
      options.compile.instruments = {&planted};
      const DiffReport report = diff(networks[0].module, networks[0].args, options);
      EXPECT_EQ(report.pass, fault.stage) << kind.fault << " against level 0";
    }
    EXPECT_GT(found, 0u) << kind.fault << " is not found";
    std::cout << kind.fault << ": found in " << found << " of 2\n";
  }
}

}  // namespace
}  // namespace relay::fuzz
