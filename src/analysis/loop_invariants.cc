#include "analysis/loop_invariants.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "node/walk.h"

namespace relay {
namespace {

struct LocalLoop {
  const LetNode* definition = nullptr;
  std::vector<const CallNode*> again;  // the calls but the one that enters it
  bool only_called = true;
};

}  // namespace

LoopInvariants::LoopInvariants(const Function& f) {
  std::unordered_map<const Node*, LocalLoop> loops;
  std::vector<const Node*> order;
  post_order(
      f,
      [&](const Node& n) {
        auto* l = as<LetNode>(&n);
        auto* entry = l == nullptr ? nullptr : as<CallNode>(l->body);
        if (entry == nullptr || !isa<FunctionNode>(l->value) || !(entry->op == l->var)) return;
        loops[l->var.get()].definition = l;
        order.push_back(l->var.get());
      },
      family::program);
  if (loops.empty()) return;
  post_order(
      f,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto called = c == nullptr ? loops.end() : loops.find(c->op.get());
        if (called != loops.end() && c != called->second.definition->body.get())
          called->second.again.push_back(c);
        bool callee = c != nullptr;  // the first child of a call
        for_each_child(n, [&](const NodeRef& child) {
          auto used = loops.find(child.get());
          if (used != loops.end() && !callee && &n != used->second.definition)
            used->second.only_called = false;
          callee = false;
        });
      },
      family::program);
  for (const Node* v : order) {
    const LocalLoop& loop = loops.at(v);
    if (!loop.only_called || loop.again.empty()) continue;
    const auto& params = as<FunctionNode>(loop.definition->value)->params;
    for (size_t i = 0; i < params.size(); ++i) {
      const bool kept = std::ranges::all_of(loop.again, [&](const CallNode* c) {
        return i < c->args.size() && c->args[i] == params[i];
      });
      if (kept) loops_.emplace(params[i].get()).first = loop.definition;
    }
  }
}

}  // namespace relay
