#include "lower/written_over.h"

#include <algorithm>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/while.h"

namespace relay {

using namespace tir;  // NOLINT

namespace {

bool same(const PrimExpr& a, const PrimExpr& b) { return a == b || structural_equal(a, b); }

}  // namespace

bool copies_element(const StoreNode& s, const BufferNode* data, const BufferNode* out) {
  auto* from = as<LoadNode>(s.value);
  return from != nullptr && s.buffer.get() == out && from->buffer.get() == data &&
         std::ranges::equal(s.indices, from->indices, same);
}

namespace {

// Whether nothing is written to `out` before the last copy from `data`, so that what a copy writes is
// there already.
bool copies_come_first(const Stmt& body, const BufferNode* data, const BufferNode* out) {
  bool written = false, holds = true;
  auto visit = [&](const Node& n) {
    auto* s = as<StoreNode>(&n);
    if (s == nullptr || s->buffer.get() != out) return;
    bool copy = copies_element(*s, data, out);
    holds = holds && !(copy && written);
    written |= !copy;
  };
  post_order(body, visit, family::tir_stmt);
  // A loop around both goes back from the one to the other.
  post_order(
      body,
      [&](const Node& n) {
        auto* counted = as<ForNode>(&n);
        auto* open = as<WhileNode>(&n);
        if (counted == nullptr && open == nullptr) return;
        bool copies = false, writes = false;
        post_order(
            counted != nullptr ? counted->body : open->body,
            [&](const Node& inner) {
              auto* s = as<StoreNode>(&inner);
              if (s == nullptr || s->buffer.get() != out) return;
              (copies_element(*s, data, out) ? copies : writes) = true;
            },
            family::tir_stmt);
        holds = holds && !(copies && writes);
      },
      family::tir_stmt);
  return holds;
}

// The body without the copies from `data` to `out`, where `data` is read for these alone.
std::optional<Stmt> without_copies(const Stmt& from, const BufferNode* data,
                                   const BufferNode* out) {
  if (data->dtype != out->dtype || !data->within.empty() || !out->within.empty() ||
      !std::ranges::equal(data->shape, out->shape, same) || !copies_come_first(from, data, out)) {
    return std::nullopt;
  }
  bool found = false;
  Stmt body = Stmt::unchecked(rewrite(
      from,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        if (auto* s = as<StoreNode>(rebuilt)) {
          if (!copies_element(*s, data, out)) return rebuilt;
          found = true;
          return seq({});
        }
        return without_empty(rebuilt);
      },
      family::tir_stmt | family::tir_expr));
  bool read = false;
  post_order(
      body,
      [&](const Node& n) {
        auto* l = as<LoadNode>(&n);
        read |= l != nullptr && l->buffer.get() == data;
      },
      family::tir_stmt | family::tir_expr);
  if (!found || read || is_empty(body)) return std::nullopt;
  return body;
}

}  // namespace

std::optional<ComposedKernel> written_over(const ComposedKernel& kernel,
                                           std::span<const InPlace> pairs) {
  const PrimFuncNode& f = *kernel.func.get();
  auto inputs = static_cast<size_t>(f.num_inputs);
  std::optional<Stmt> body = f.body;
  for (size_t p = 0; p < pairs.size(); ++p) {
    const InPlace& pair = pairs[p];
    if (pair.input >= inputs || pair.result >= f.params.size() - inputs) return std::nullopt;
    for (const InPlace& other : pairs.first(p)) {
      if (pair.input == other.input || pair.result == other.result) return std::nullopt;
    }
    body = without_copies(*body, f.params[pair.input].get(), f.params[inputs + pair.result].get());
    if (!body) return std::nullopt;
  }
  ComposedKernel made = kernel;
  made.in_place.assign(pairs.begin(), pairs.end());
  made.func = tir::modified(f, [&](PrimFuncNode& n) {
    n.name = f.name + "_in_place";
    n.body = *body;
    // Nothing reads the inputs through their own buffers, so that no buffers overlap for the code.
    n.in_place = {};
  });
  return made;
}

}  // namespace relay
