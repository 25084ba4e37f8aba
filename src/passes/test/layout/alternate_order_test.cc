#include "passes/layout/alternate_order.h"

#include "node/walk.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

// A square matrix goes through products with constants, 'a' and 'b', in this order; one letter for
// each product afterwards, upper-case where the kernel goes backwards.
std::string directions(const std::string& weights, int64_t l2_bytes) {
  std::string text =
      "def @main(%x0: Tensor[(32, 32), float32], %a: Tensor[(32, 32), float32], "
      "%b: Tensor[(32, 32), float32]) {\n";
  for (size_t i = 0; i < weights.size(); ++i) {
    text += "let %x" + std::to_string(i + 1) +
            " = (fn (%p: Tensor[(32, 32), float32], %q: Tensor[(32, 32), float32], Primitive=1) { "
            "nn.dense(%p, %q) })(%x" +
            std::to_string(i) + ", %" + weights[i] + ");\n";
  }
  text += "%x" + std::to_string(weights.size()) + " }";
  Tensor a = Tensor::empty(DType::Float(32), {32, 32}), b = a.copy();
  Module mod = map_functions(parse(text), [&](const GlobalVar&, const Function& f) {
    NodeRef body =
        substitute(f->body, {{f->params[1].get(), constant(a)}, {f->params[2].get(), constant(b)}},
                   family::expr);
    return function({f->params[0]}, Expr::unchecked(body), f->ret_type);
  });
  PassContext ctx;
  ctx.target.l2_bytes = l2_bytes;
  Module after = apply(kAlternateOrder, mod, std::move(ctx));
  std::string out;
  for (auto* l = as<LetNode>(after->find("main")->body); l != nullptr; l = as<LetNode>(l->body)) {
    auto* c = as<CallNode>(l->value);
    bool first = as<ConstantNode>(c->args[1])->data.data() == a.data();
    bool backward = as<FunctionNode>(c->op)->attrs.contains(attr::kBackward);
    out += backward ? (first ? 'A' : 'B') : (first ? 'a' : 'b');
  }
  return out;
}

TEST(AlternateOrder, calls_that_read_one_weight_take_turns) {
  EXPECT_EQ(directions("aaaa", 4096), "aAaA");
  EXPECT_EQ(directions("abaabb", 4096), "abAaBb");
}

TEST(AlternateOrder, not_for_weights_that_stay_in_the_cache_or_are_far_too_large) {
  EXPECT_EQ(directions("aaaa", 4097), "aaaa");
  EXPECT_EQ(directions("aaaa", 64), "aaaa");
  EXPECT_EQ(directions("ab", 4096), "ab");
}

}  // namespace
}  // namespace relay::pass_test
