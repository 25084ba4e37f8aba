#include "tir/passes/register_bounds.h"

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "node/walk.h"
#include "tir/arith/counting.h"

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
          if (auto* l = as<LetStmtNode>(&n)) {
            defined_more_often(l->var);
            definitions_[l->var.get()] = l->value;
          }
          if (auto* loop = as<ForNode>(&n)) defined_more_often(loop->var);
        },
        family::tir_stmt);
    std::erase_if(values_, [&](const auto& v) { return unknown_.contains(v.first.first); });
    for (const auto& [r, values] : values_) {
      for (const PrimExpr& v : values) add_sources(v, sources_[r]);
    }
  }

  void bind(Analyzer& analyzer) {
    if (values_.empty()) return;
    for (int round = 0; round < kRounds && sharpened(); ++round) {
    }
    bind_registers_of(analyzer);
    for (const auto& [var, bounds] : lets_) analyzer.bind(var, bounds);
  }

 private:
  using Register = Counting::Register;
  // What a register gets: what others hold, and values of which only the bounds are known.
  struct Sources {
    std::set<Register> registers;
    std::vector<PrimExpr> values;
  };

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

  void add_sources(const PrimExpr& value, Sources& out) const {
    std::vector<PrimExpr> work{value};
    std::unordered_set<const Node*> seen;
    while (!work.empty()) {
      const PrimExpr e = std::move(work.back());
      work.pop_back();
      const PrimExpr is = resolved(e);
      if (!seen.insert(is.get()).second) continue;
      auto* choice = as<SelectNode>(is);
      if (held_by(is)) {
        out.registers.insert(*held_by(is));
      } else if (choice != nullptr && (held_by(resolved(choice->true_value)) ||
                                       held_by(resolved(choice->false_value)))) {
        work.push_back(choice->true_value);
        work.push_back(choice->false_value);
      } else {
        out.values.push_back(e);
      }
    }
  }

  // What a variable is.
  PrimExpr resolved(PrimExpr e) const {
    while (!several_.contains(e.get())) {
      auto definition = definitions_.find(e.get());
      if (definition == definitions_.end()) break;
      e = definition->second;
    }
    return e;
  }

  std::optional<Register> held_by(const PrimExpr& e) const {
    const auto r = Counting::register_of(*e.get());
    return r && values_.contains(*r) ? r : std::nullopt;
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
    // From below, so that registers which hand their numbers round are bounded by what comes in.
    std::map<Register, Bounds> held;
    auto add = [&](const Register& r, const Bounds& b) {
      auto [it, first] = held.try_emplace(r, b);
      const Bounds all = hull(it->second, b);
      const bool more = first || all.min != it->second.min || all.max != it->second.max;
      it->second = all;
      return more;
    };
    for (const auto& [r, sources] : sources_) {
      for (const PrimExpr& v : sources.values) add(r, analyzer.bounds(v));
    }
    for (bool more = true; more;) {
      more = false;
      for (const auto& [r, sources] : sources_) {
        for (const Register& from : sources.registers) {
          if (auto b = held.find(from); b != held.end()) more |= add(r, b->second);
        }
      }
    }
    bool changed = false;
    for (const auto& [r, bounds] : held) {
      Bounds& known = bounds_[r];
      const Bounds now = intersect(known, bounds);
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
  std::map<Register, Sources> sources_;
  std::map<Register, Bounds> bounds_;
  std::unordered_map<const Node*, PrimExpr> definitions_;
  std::unordered_map<const Node*, Buffer> buffers_;
  std::unordered_set<const Node*> unknown_, seen_, several_;
  std::vector<std::pair<Var, Bounds>> lets_;
};

}  // namespace

void bind_registers(Analyzer& analyzer, const PrimFunc& f) { RegisterBounds(f).bind(analyzer); }

}  // namespace relay::tir
