#include "tir/passes/flatten_buffers.h"

#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"

namespace relay::tir {
namespace {

class Flattening : public Rewriter {
 public:
  explicit Flattening(const Stmt& body)
      : Rewriter(family::tir), registers_(registers_of_groups(body)) {}
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    if (auto* l = as<LoadNode>(rebuilt)) {
      if (is_flat(l->buffer, l->indices)) return rebuilt;
      return load(l->buffer, {element_offset(*l->buffer.get(), l->indices)}, l->predicate);
    }
    if (auto* s = as<StoreNode>(rebuilt)) {
      if (is_flat(s->buffer, s->indices)) return rebuilt;
      return store(s->buffer, {element_offset(*s->buffer.get(), s->indices)}, s->value,
                   s->predicate);
    }
    return rebuilt;
  }

 private:
  bool is_flat(const Buffer& b, const std::vector<PrimExpr>& indices) const {
    return (indices.size() == 1 && b->shape.size() == 1) || registers_.contains(b.get());
  }

  std::unordered_set<const BufferNode*> registers_;
};

}  // namespace

PrimFunc flatten_buffers(const PrimFunc& f) {
  return with_body(f, Flattening(f->body).apply(f->body));
}

}  // namespace relay::tir
