#include "node/walk.h"

#include "base/budget.h"
#include "node/node_map.h"

namespace relay {
namespace {

// The handles of a node's children and binders, one at a time, without building a list.
class ChildCursor {
 public:
  explicit ChildCursor(const Node& node) : node_(&node) {}

  // The next handle, or null at the end; null handles of the node are passed over.
  const NodeRef* next() {
    const std::vector<Field>& fields = node_->info().fields;
    while (field_ < fields.size()) {
      const Field& f = fields[field_];
      if (f.role == Role::child || f.role == Role::binder) {
        const void* at = f.in(*node_);
        size_t count = f.ops->count(at);
        while (index_ < count) {
          const NodeRef& child = f.ops->get_child(at, index_++);
          if (child) return &child;
        }
      }
      ++field_;
      index_ = 0;
    }
    return nullptr;
  }

 private:
  const Node* node_;
  size_t field_ = 0;
  size_t index_ = 0;
};

struct Frame {
  const NodeRef* node;  // in the parent, or the root
  ChildCursor cursor;
};

}  // namespace

void post_order_if(const NodeRef& root, const std::function<bool(const Node&)>& enter,
                   const std::function<void(const Node&)>& visit, uint32_t families) {
  if (!root || !(root.get()->info().family & families)) return;
  NodeSet seen;
  std::vector<std::pair<const Node*, ChildCursor>> stack;
  auto push = [&](const Node* node) {
    if (!(node->info().family & families)) return;
    if (!seen.insert(node)) return;
    if (enter && !enter(*node)) return;
    stack.emplace_back(node, ChildCursor(*node));
  };
  push(root.get());
  while (!stack.empty()) {
    check_budget();
    if (const NodeRef* child = stack.back().second.next()) {
      push(child->get());
    } else {
      visit(*stack.back().first);
      stack.pop_back();
    }
  }
}

void post_order(const NodeRef& root, const std::function<void(const Node&)>& visit,
                uint32_t families) {
  post_order_if(root, nullptr, visit, families);
}

void for_each_child(const Node& node, const std::function<void(const NodeRef&)>& visit) {
  ChildCursor cursor(node);
  while (const NodeRef* child = cursor.next()) visit(*child);
}

std::vector<NodeRef> children_of(const Node& node) {
  std::vector<NodeRef> out;
  for (const Field& f : node.info().fields) {
    if (f.role != Role::child && f.role != Role::binder) continue;
    const void* at = f.in(node);
    size_t count = f.ops->count(at);
    for (size_t i = 0; i < count; ++i) out.push_back(f.ops->get_child(at, i));
  }
  return out;
}

NodeRef with_children(const NodeRef& node, std::span<const NodeRef> children) {
  const NodeInfo& info = node.get()->info();
  Node* copy = nullptr;
  NodeRef result;
  size_t next = 0;
  for (const Field& f : info.fields) {
    if (f.role != Role::child && f.role != Role::binder) continue;
    const void* at = f.in(*node.get());
    size_t count = f.ops->count(at);
    for (size_t i = 0; i < count; ++i) {
      RELAY_CHECK(next < children.size());
      const NodeRef& child = children[next++];
      if (child == f.ops->get_child(at, i)) continue;
      if (copy == nullptr) {
        copy = info.clone(*node.get());
        result = NodeRef(copy);
      }
      f.ops->set_child(f.in(*copy), i, child);
    }
  }
  RELAY_CHECK(next == children.size());
  if (copy == nullptr) return node;
  if (info.rebuilt != nullptr) info.rebuilt(*copy, *node.get());
  return result;
}

NodeRef Rewriter::pre(const NodeRef&) { return nullptr; }
NodeRef Rewriter::post(const NodeRef&, NodeRef rebuilt) { return rebuilt; }

NodeRef Rewriter::lookup(const Node* node) const {
  auto it = memo_.find(node);
  return it == memo_.end() ? NodeRef() : it->second;
}

void Rewriter::set(const NodeRef& node, NodeRef replacement) {
  // A node that is its own replacement keeps itself alive.
  if (!(node == replacement)) keep_.push_back(node);
  memo_.insert_or_assign(node.get(), std::move(replacement));
}

NodeRef Rewriter::run(const NodeRef& given) {
  if (!given) return given;
  NodeRef root = given;  // keeps the walked nodes alive
  // Most nodes are unchanged; marking them costs much less than an entry.
  NodeSet unchanged;
  auto became = [&](const NodeRef& node, NodeRef result) {
    if (node == result) {
      unchanged.insert(node.get());
    } else {
      set(node, std::move(result));
    }
  };
  // The replacement of a child, or null if it is unchanged.
  auto replacement = [&](const NodeRef& child) -> const NodeRef* {
    if (memo_.empty()) return nullptr;
    auto it = memo_.find(child.get());
    return it == memo_.end() || it->second == child ? nullptr : &it->second;
  };
  std::vector<Frame> stack;
  auto push = [&](const NodeRef& node) {
    if (!(node.get()->info().family & families_)) return;
    if (unchanged.contains(node.get()) || (!memo_.empty() && memo_.contains(node.get()))) return;
    if (NodeRef instead = pre(node)) {
      became(node, std::move(instead));
    } else {
      stack.push_back(Frame{&node, ChildCursor(*node.get())});
    }
  };
  push(root);
  std::vector<NodeRef> children;
  while (!stack.empty()) {
    check_budget();
    if (const NodeRef* child = stack.back().cursor.next()) {
      push(*child);
      continue;
    }
    const NodeRef& node = *stack.back().node;
    stack.pop_back();
    bool changed = false;
    ChildCursor cursor(*node.get());
    for (const NodeRef* child = cursor.next(); child != nullptr && !changed;
         child = cursor.next()) {
      changed = replacement(*child) != nullptr;
    }
    NodeRef rebuilt = node;
    if (changed) {
      children = children_of(*node.get());
      for (NodeRef& child : children) {
        if (const NodeRef* now = replacement(child)) child = *now;
      }
      rebuilt = with_children(node, children);
    }
    became(node, post(node, std::move(rebuilt)));
  }
  NodeRef result = lookup(root.get());
  return result ? result : root;
}

namespace {

class FunctionRewriter : public Rewriter {
 public:
  FunctionRewriter(const std::function<NodeRef(const NodeRef&, NodeRef)>& post, uint32_t families)
      : Rewriter(families), post_(post) {}
  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    return post_(original, std::move(rebuilt));
  }

 private:
  const std::function<NodeRef(const NodeRef&, NodeRef)>& post_;
};

}  // namespace

NodeRef rewrite(const NodeRef& root, const std::function<NodeRef(const NodeRef&, NodeRef)>& post,
                uint32_t families) {
  return FunctionRewriter(post, families).run(root);
}

namespace {

// Looks replacements up as nodes are met: most substitutions walk less than their map holds.
class Substitution : public Rewriter {
 public:
  Substitution(const std::unordered_map<const Node*, NodeRef>& replacements, uint32_t families)
      : Rewriter(families), replacements_(replacements) {
    for (const auto& [node, replacement] : replacements) {
      if (!(node->info().family & families)) set(NodeRef(node), replacement);
    }
  }
  NodeRef pre(const NodeRef& node) override {
    auto it = replacements_.find(node.get());
    return it == replacements_.end() ? NodeRef() : it->second;
  }

 private:
  const std::unordered_map<const Node*, NodeRef>& replacements_;
};

}  // namespace

NodeRef substitute(const NodeRef& root,
                   const std::unordered_map<const Node*, NodeRef>& replacements,
                   uint32_t families) {
  if (!root || replacements.empty()) return root;
  if (ChildCursor(*root.get()).next() == nullptr) {
    auto it = replacements.find(root.get());
    return it == replacements.end() ? root : it->second;
  }
  return Substitution(replacements, families).run(root);
}

}  // namespace relay
