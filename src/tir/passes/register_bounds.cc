#include "tir/passes/register_bounds.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "node/walk.h"

namespace relay::tir {
namespace {

// A register's bounds pass through at most so many others.
constexpr int kRounds = 4;

class RegisterBounds {
 public:
  explicit RegisterBounds(const PrimFunc& f) : f_(f) {
    post_order(
        f->body,
        [&](const Node& n) {
          if (auto* s = as<StoreNode>(&n)) add_store(*s);
          if (auto* l = as<LetStmtNode>(&n)) defined_more_often(l->var);
          if (auto* loop = as<ForNode>(&n)) defined_more_often(loop->var);
        },
        family::tir_stmt);
    std::erase_if(values_, [&](const auto& v) { return unknown_.contains(v.first.first); });
  }

  void bind(Analyzer& analyzer) {
    if (values_.empty()) return;
    for (int round = 0; round < kRounds && sharpened(); ++round) {
    }
    bind_registers_of(analyzer);
    for (const auto& [var, bounds] : lets_) analyzer.bind(var, bounds);
  }

 private:
  using Register = std::pair<const Node*, int64_t>;

  void add_store(const StoreNode& s) {
    if (s.buffer->scope != Scope::Register || !(s.buffer->dtype == kIndex)) return;
    buffers_.emplace(s.buffer.get(), s.buffer);
    auto at = s.indices.size() == 1 ? as_int(s.indices[0]) : std::nullopt;
    if (at) {
      values_[{s.buffer.get(), *at}].push_back(s.value);
    } else {
      unknown_.insert(s.buffer.get());
    }
  }

  void defined_more_often(const Var& v) {
    if (!seen_.insert(v.get()).second) several_.insert(v.get());
  }

  void bind_registers_of(Analyzer& analyzer) const {
    for (const auto& [r, bounds] : bounds_) analyzer.bind(buffers_.at(r.first), r.second, bounds);
  }

  // Whether the bounds of a register became sharper.
  bool sharpened() {
    Analyzer analyzer;
    analyzer.bind_function(f_);
    bind_registers_of(analyzer);
    lets_.clear();
    post_order_if(
        f_->body,
        [&](const Node& n) {
          define(analyzer, n);
          return true;
        },
        [](const Node&) {}, family::tir_stmt);
    bool changed = false;
    for (const auto& [r, values] : values_) {
      std::optional<Bounds> all;
      for (const PrimExpr& v : values) {
        const Bounds b = analyzer.bounds(v);
        all = all ? hull(*all, b) : b;
      }
      Bounds& known = bounds_[r];
      const Bounds now = intersect(known, *all);
      changed |= now.min != known.min || now.max != known.max;
      known = now;
    }
    return changed;
  }

  // Binds a definition, which is visited before the uses of its variable.
  void define(Analyzer& analyzer, const Node& s) {
    auto* l = as<LetStmtNode>(&s);
    auto* loop = as<ForNode>(&s);
    if (l != nullptr && l->var->dtype == kIndex && !several_.contains(l->var.get())) {
      const Bounds b = analyzer.bounds(l->value);
      lets_.emplace_back(l->var, b);
      analyzer.bind(l->var, b);
    }
    if (loop != nullptr && loop->var->dtype == kIndex && !several_.contains(loop->var.get())) {
      const Bounds last = analyzer.bounds(loop->min + loop->extent - 1);
      analyzer.bind(loop->var, Bounds{analyzer.bounds(loop->min).min, last.max});
    }
  }

  const PrimFunc& f_;
  std::map<Register, std::vector<PrimExpr>> values_;
  std::map<Register, Bounds> bounds_;
  std::unordered_map<const Node*, Buffer> buffers_;
  std::unordered_set<const Node*> unknown_, seen_, several_;
  std::vector<std::pair<Var, Bounds>> lets_;
};

}  // namespace

void bind_registers(Analyzer& analyzer, const PrimFunc& f) { RegisterBounds(f).bind(analyzer); }

}  // namespace relay::tir
