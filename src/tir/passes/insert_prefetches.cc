#include "tir/passes/insert_prefetches.h"

#include <algorithm>
#include <vector>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

constexpr int64_t kLineBytes = 64;

// One line that an iteration reads: the first element of a vector in it.
struct Line {
  Buffer buffer;
  PrimExpr first;
};

class Lines {
 public:
  explicit Lines(const ForNode& loop) : loop_(loop) { look(loop.body); }

  const std::vector<Line>& found() const { return found_; }

 private:
  void look(const Stmt& s) {
    for_each_inner(*s.get(), [&](const Stmt& inner) { look(inner); });
    auto* store = as<StoreNode>(s);
    if (store == nullptr) return;
    post_order(
        store->value,
        [&](const Node& n) {
          if (auto* l = as<LoadNode>(&n)) add(*l);
        },
        family::tir_expr);
  }

  void add(const LoadNode& l) {
    auto* lanes = l.indices.empty() ? nullptr : as<RampNode>(l.indices[0]);
    if (lanes == nullptr || as_int(lanes->stride) != 1 || l.buffer->scope != Scope::Global) return;
    const PrimExpr& first = lanes->base;
    PrimExpr next = replace(first, {{loop_.var.get(), loop_.var + 1}});
    int64_t bytes = l.buffer->dtype.element().bytes();
    auto step = analyzer_.constant_difference(next, first);
    if (!step || *step * bytes < kLineBytes) return;
    bool known = std::ranges::any_of(found_, [&](const Line& line) {
      if (!(line.buffer == l.buffer)) return false;
      auto apart = analyzer_.constant_difference(first, line.first);
      return apart && *apart * bytes<kLineBytes&& * apart * bytes> - kLineBytes;
    });
    if (!known) found_.push_back({l.buffer, first});
  }

  const ForNode& loop_;
  Analyzer analyzer_;
  std::vector<Line> found_;
};

Stmt with_prefetches(const Stmt& s) {
  Stmt rebuilt = map_inner(s, with_prefetches);
  auto* f = as<ForNode>(rebuilt);
  if (f == nullptr || f->hints.prefetch == 0) return rebuilt;
  const int64_t ahead = f->hints.prefetch;
  std::vector<Stmt> body;
  Lines lines(*f);
  if (lines.found().empty()) return rebuilt;
  for (const Line& line : lines.found()) {
    DType element = line.buffer->dtype.element();
    body.push_back(evaluate(
        call("prefetch", element, {load(line.buffer, {line.first + ahead / element.bytes()})})));
  }
  body.push_back(f->body);
  return with_body(*f, seq(std::move(body)));
}

}  // namespace

PrimFunc insert_prefetches(const PrimFunc& f) { return with_body(f, with_prefetches(f->body)); }

}  // namespace relay::tir
