#include "ir/test/test_ops.h"

#include "ir/op.h"

namespace relay::test {
namespace {

struct TestAttrs : AttrsOf<TestAttrs> {
  int64_t level = 1;
  std::string name;
  std::vector<int64_t> list;
  static AttrsList describe() {
    return {"relay.attrs.TestAttrs",
            {attribute("level", &Self::level), attribute("list", &Self::list),
             attribute("name", &Self::name)}};
  }
};

Type first(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  return t == nullptr ? nullptr : Type(t);
}

// A row with what the tests of `ir` read: they compute nothing.
OpInfo row_of(std::string name, std::vector<ArgInfo> args, AttrsInfo attrs = nullptr) {
  return {.name = std::move(name),
          .doc = "An operator of the tests.",
          .args = std::move(args),
          .attrs = std::move(attrs),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = first};
}

}  // namespace

void register_test_ops() {
  if (OpRegistry::global().find("test.id")) return;
  const std::vector<ArgInfo> x{{"x", "Any tensor."}},
      both{{"x", "Any tensor."}, {"y", "Any tensor."}};
  static const OpInfo rows[] = {
      row_of("test.id", x),      row_of("test.attrs", x, &TestAttrs::static_info()),
      row_of("test.pair", both), row_of("add", both),
      row_of("subtract", both),  row_of("multiply", both)};
  OpRegistry::global().install(rows);
}

}  // namespace relay::test
