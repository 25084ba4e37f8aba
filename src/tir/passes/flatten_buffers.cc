#include "tir/passes/flatten_buffers.h"

#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

constexpr uint32_t kAll = family::tir_expr | family::tir_stmt | family::tir_other;

class Flattening : public Rewriter {
 public:
  Flattening() : Rewriter(kAll) {}
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    if (auto* l = as<LoadNode>(rebuilt)) {
      if (l->indices.size() == 1 && l->buffer->shape.size() == 1) return rebuilt;
      return load(l->buffer, {flat(l->buffer, l->indices)}, l->predicate);
    }
    if (auto* s = as<StoreNode>(rebuilt)) {
      if (s->indices.size() == 1 && s->buffer->shape.size() == 1) return rebuilt;
      return store(s->buffer, {flat(s->buffer, s->indices)}, s->value, s->predicate);
    }
    return rebuilt;
  }

 private:
  static PrimExpr flat(const Buffer& b, const std::vector<PrimExpr>& indices) {
    RELAY_CHECK(indices.size() == b->shape.size(), b->name);
    PrimExpr at = index(0);
    for (size_t d = 0; d < indices.size(); ++d) at = at * b->shape[d] + indices[d];
    return at;
  }
};

}  // namespace

PrimFunc flatten_buffers(const PrimFunc& f) { return with_body(f, Flattening().apply(f->body)); }

}  // namespace relay::tir
