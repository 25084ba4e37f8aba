#include "tir/passes/flatten_buffers.h"

#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

class Flattening : public Rewriter {
 public:
  Flattening() : Rewriter(family::tir) {}
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    if (auto* l = as<LoadNode>(rebuilt)) {
      if (l->indices.size() == 1 && l->buffer->shape.size() == 1) return rebuilt;
      return load(l->buffer, {element_offset(*l->buffer.get(), l->indices)}, l->predicate);
    }
    if (auto* s = as<StoreNode>(rebuilt)) {
      if (s->indices.size() == 1 && s->buffer->shape.size() == 1) return rebuilt;
      return store(s->buffer, {element_offset(*s->buffer.get(), s->indices)}, s->value,
                   s->predicate);
    }
    return rebuilt;
  }
};

}  // namespace

PrimFunc flatten_buffers(const PrimFunc& f) { return with_body(f, Flattening().apply(f->body)); }

}  // namespace relay::tir
