#include "ir/test/test_ops.h"

#include "ir/op.h"

namespace relay::test {
namespace {

struct TestAttrs : AttrsNode {
  int64_t level = 1;
  std::string name;
  std::vector<int64_t> list;
  TestAttrs() : AttrsNode(static_info()) {}
  static const NodeInfo& static_info() {
    static const NodeInfo info =
        describe_attrs<TestAttrs>("relay.attrs.TestAttrs", {attribute("level", &TestAttrs::level),
                                                            attribute("list", &TestAttrs::list),
                                                            attribute("name", &TestAttrs::name)});
    return info;
  }
};

Type first(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  return t == nullptr ? nullptr : Type(t);
}

}  // namespace

void register_test_ops() {
  OpRegistry& ops = OpRegistry::global();
  if (ops.find("test.id")) return;
  OpInfo id;
  id.name = "test.id";
  id.args = {{"x", "Any tensor."}};
  id.relation = first;
  ops.add(id);
  id.name = "test.attrs";
  id.attrs = &TestAttrs::static_info();
  ops.add(id);
  OpInfo pair;
  pair.args = {{"x", "Any tensor."}, {"y", "Any tensor."}};
  pair.relation = first;
  for (const char* name : {"test.pair", "add", "subtract", "multiply"}) {
    pair.name = name;
    ops.add(pair);
  }
}

}  // namespace relay::test
