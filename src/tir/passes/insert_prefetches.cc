#include "tir/passes/insert_prefetches.h"

#include <algorithm>
#include <optional>
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

Stmt prefetched(const Buffer& buffer, const PrimExpr& element) {
  return evaluate(call("prefetch", buffer->dtype.element(), {load(buffer, {element})}));
}

// The first access in a statement to memory that is not the kernel's own and that a loop around moves.
struct Access {
  Buffer buffer;
  PrimExpr first;  // its element where the loops inside begin
  PrimExpr next;   // the same at the next iteration of the loop around
};

std::optional<Access> moved_by(const ForNode& loop, const Stmt& inside) {
  Analyzer analyzer;
  std::optional<Access> found;
  std::vector<Var> own;  // variables of the statement that are no loops'
  // `starts`: where the loops inside begin.
  auto look = [&](auto&& self, const Stmt& s, const NodeMap& starts) -> void {
    if (found) return;
    if (auto* store = as<StoreNode>(s)) {
      post_order(
          store->value,
          [&](const Node& n) {
            auto* l = as<LoadNode>(&n);
            if (found || l == nullptr || l->indices.empty() || l->buffer->scope != Scope::Global ||
                !uses(l->indices[0], loop.var.get())) {
              return;
            }
            auto* lanes = as<RampNode>(l->indices[0]);
            const PrimExpr first = replace(lanes ? lanes->base : l->indices[0], starts);
            if (std::ranges::any_of(own, [&](const Var& v) { return uses(first, v.get()); }))
              return;
            found = Access{l->buffer, first,
                           analyzer.simplify(replace(first, {{loop.var.get(), loop.var + 1}}))};
          },
          family::tir_expr);
    }
    if (auto* f = as<ForNode>(s); f != nullptr && s.get() != &loop) {
      NodeMap more = starts;
      more[f->var.get()] = replace(f->min, starts);
      return self(self, f->body, more);
    }
    if (auto* let = as<LetStmtNode>(s)) own.push_back(let->var);
    for_each_inner(*s.get(), [&](const Stmt& inner) { self(self, inner, starts); });
  };
  look(look, inside, {});
  return found;
}

// The hint `next`, see the header.
class NextOperands {
 public:
  Stmt run(const Stmt& s) {
    auto* f = as<ForNode>(s);
    if (f == nullptr) return map_inner(s, [&](const Stmt& inner) { return run(inner); });
    std::vector<Stmt> body;
    if (f->hints.next == NextOperand::Copied) body = copied(*f);
    if (f->hints.next == NextOperand::Read) body = read(*f);
    around_.push_back(f);
    Stmt rebuilt = map_inner(s, [&](const Stmt& inner) { return run(inner); });
    around_.pop_back();
    if (body.empty()) return rebuilt;
    auto* out = as<ForNode>(rebuilt);
    body.push_back(out->body);
    return with_body(*out, seq(std::move(body)));
  }

 private:
  static int64_t elements_of_line(const Buffer& b) {
    return kLineBytes / static_cast<int64_t>(b->dtype.element().bytes());
  }

  // Some lines of all that the next iteration of the loop directly around copies, until there are none left.
  std::vector<Stmt> copied(const ForNode& f) {
    constexpr int64_t kLinesAtOnce = 128;
    if (around_.empty()) return {};
    const ForNode& around = *around_.back();
    auto access = moved_by(around, around.body);
    const auto count =
        access ? analyzer_.constant_difference(access->next, access->first) : std::nullopt;
    if (!count || *count <= 0) return {};
    const int64_t line = elements_of_line(access->buffer);
    const PrimExpr offset = (f.var - f.min) * (kLinesAtOnce * line);
    Var at = var(f.var->name + "_line");
    Stmt lines = make<ForNode>([&](ForNode& n) {
      n.var = at;
      n.min = index(0);
      n.extent = index(std::min(kLinesAtOnce, (*count + line - 1) / line));
      n.body = prefetched(access->buffer, access->next + offset + PrimExpr(at) * line);
    });
    return {if_(lt(offset, index(*count)), lines)};
  }

  // What the rows have at the next iteration of the loop around that moves them, as much at each iteration as is read: rows
  // that lie beside each other.
  std::vector<Stmt> read(const ForNode& f) {
    const Stmt body = f.body;
    for (size_t i = around_.size(); i-- > 0;) {
      auto access = moved_by(*around_[i], body);
      if (!access) continue;
      // The loops between begin where the access has read nothing.
      NodeMap starts{{f.var.get(), f.min}};
      for (size_t between = around_.size(); --between > i;) {
        starts[around_[between]->var.get()] = around_[between]->min;
      }
      const PrimExpr begin = replace(access->first, starts), next = replace(access->next, starts);
      const auto step = analyzer_.constant_difference(
          replace(access->first, {{f.var.get(), f.var + 1}}), access->first);
      if (!step || *step <= 0) return {};
      const PrimExpr here = analyzer_.simplify(next + (access->first - begin) * f.hints.next_rows);
      std::vector<Stmt> out;
      for (int64_t at = 0; at < *step * f.hints.next_rows; at += elements_of_line(access->buffer)) {
        out.push_back(prefetched(access->buffer, here + at));
      }
      return out;
    }
    return {};
  }

  Analyzer analyzer_;
  std::vector<const ForNode*> around_;
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
    const int64_t elements = ahead / line.buffer->dtype.element().bytes();
    body.push_back(prefetched(line.buffer, line.first + elements));
  }
  body.push_back(f->body);
  return with_body(*f, seq(std::move(body)));
}

}  // namespace

PrimFunc insert_prefetches(const PrimFunc& f) {
  return with_body(f, NextOperands().run(with_prefetches(f->body)));
}

}  // namespace relay::tir
