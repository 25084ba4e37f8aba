#include "tir/passes/pad_shared_rows.h"

#include <algorithm>

#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

// Eight rows of so many bytes and the padding begin 16 bytes apart in the banks.
constexpr int64_t kRowBytes = 32, kPadding = 16;

}  // namespace

int64_t padded_row_bytes(int64_t elements, int64_t element_bytes) {
  const int64_t bytes = elements * element_bytes;
  return bytes % kRowBytes == 0 ? bytes + kPadding : bytes;
}

PrimFunc pad_shared_rows(const PrimFunc& f) {
  NodeMap padded;
  post_order(
      f->body,
      [&](const Node& n) {
        auto* a = as<AllocateNode>(&n);
        if (a == nullptr || a->buffer->scope != Scope::Shared || a->buffer->shape.size() < 2)
          return;
        const auto row = as_int(a->buffer->shape.back());
        const auto bytes = static_cast<int64_t>(a->buffer->dtype.element().bytes());
        const auto& shape = a->buffer->shape;
        const bool single = std::ranges::all_of(shape.begin(), shape.end() - 1,
                                                [](const PrimExpr& e) { return as_int(e) == 1; });
        if (!row || *row == 0 || single) return;
        const int64_t longer = padded_row_bytes(*row, bytes) / bytes;
        if (longer == *row) return;
        padded[a->buffer.get()] =
            modified(*a->buffer, [&](BufferNode& b) { b.shape.back() = index(longer); });
      },
      family::tir_stmt);
  if (padded.empty()) return f;
  return with_body(f, Stmt::unchecked(substitute(f->body, padded)));
}

}  // namespace relay::tir
