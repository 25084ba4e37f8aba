#include "tir/blocks_of_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/codes/lowering.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay::tir {
namespace {

// A load or store of a buffer.
struct Access {
  std::vector<PrimExpr> indices;
  const StmtNode* at;
  bool is_store;
};

// Why a loop stays in its block.
struct Obstacle {
  const StmtNode* at;
  std::string reason;
  std::string help;
};

// What the iterations of a loop do to memory that they do not allocate.
struct Accesses {
  std::vector<Buffer> written;
  std::unordered_map<const Node*, std::vector<Access>> of;  // by buffer, stores first
  std::vector<const ForNode*> loops;                        // inside, outer ones first
  std::unordered_set<const Node*> named;                    // what lets bind

  explicit Accesses(const Stmt& body) {
    std::unordered_set<const Node*> own;
    post_order(
        body,
        [&](const Node& n) {
          auto& stmt = static_cast<const StmtNode&>(n);
          if (auto* a = as<AllocateNode>(&n)) own.insert(a->buffer.get());
          if (auto* f = as<ForNode>(&n)) loops.push_back(f);
          if (auto* l = as<LetStmtNode>(&n)) named.insert(l->var.get());
          if (auto* s = as<StoreNode>(&n)) {
            std::vector<Access>& all = of[s->buffer.get()];
            if (std::find(written.begin(), written.end(), s->buffer) == written.end())
              written.push_back(s->buffer);
            all.push_back({s->indices, s, true});
          }
          for_each_child(n, [&](const NodeRef& child) {
            if (child.get()->info().family != family::tir_expr) return;
            post_order(
                child,
                [&](const Node& e) {
                  if (auto* l = as<LetNode>(&e)) named.insert(l->var.get());
                  if (auto* l = as<LoadNode>(&e))
                    of[l->buffer.get()].push_back({l->indices, &stmt, false});
                },
                family::tir_expr);
          });
        },
        family::tir_stmt);
    std::erase_if(written, [&](const Buffer& b) { return own.contains(b.get()); });
    for (auto& [buffer, all] : of)
      std::stable_partition(all.begin(), all.end(), [](const Access& a) { return a.is_store; });
    std::reverse(loops.begin(), loops.end());
  }
};

class Opening {
 public:
  Opening(const PrimFunc& f, const PlaceOf& place_of) : f_(f), place_of_(place_of) {}

  // The block with loops of its body around it; null when it has no loops or iterations already.
  Stmt open(const BlockNode& b) const {
    bool has_loops = false;
    post_order(
        b.body, [&](const Node& n) { has_loops |= isa<ForNode>(&n); }, family::tir_stmt);
    if (!b.iters.empty() || !has_loops) return nullptr;
    auto* outermost = as<ForNode>(b.body);
    if (outermost == nullptr) fail(around_loops(b.body));
    std::vector<const ForNode*> out;
    for (const ForNode* f = outermost; f != nullptr; f = as<ForNode>(f->body)) {
      if (auto obstacle = obstacle_of(*f)) {
        if (out.empty()) fail(*obstacle);
        break;
      }
      out.push_back(f);
    }
    return around(b, out);
  }

 private:
  [[noreturn]] void fail(const Obstacle& o) const {
    Diagnostic d(codes::schedule_illegal, place_of_ ? place_of_(*o.at) : Span(),
                 "the loops of " + f_->name + " cannot be scheduled: " + o.reason);
    d.help(o.help);
    throw UserError(std::move(d));
  }

  // Of a body that is not a loop but has some.
  static Obstacle around_loops(const Stmt& body) {
    if (auto* a = as<AllocateNode>(body)) {
      const StmtNode* first = nullptr;
      post_order(
          body,
          [&](const Node& n) {
            auto* s = as<StoreNode>(&n);
            if (first == nullptr && s != nullptr && s->buffer == a->buffer) first = s;
          },
          family::tir_stmt);
      return {first == nullptr ? body.get() : first,
              "the iterations of the outermost loop share " + a->buffer->name,
              "begin it within the loop"};
    }
    if (auto* l = as<LetStmtNode>(body)) {
      return {l->body.get(),
              "a bound of the outermost loop is read from memory: " + to_string(l->value),
              "loop over a size, with an 'if' inside"};
    }
    const Stmt* other = &body;
    std::string where = "around";
    if (auto* s = as<SeqNode>(body)) {
      other = &s->stmts[isa<ForNode>(s->stmts[0]) ? 1 : 0];
      where = "beside";
    }
    std::string what = "another statement";
    if (auto* f = as<ForNode>(*other)) what = "another loop, " + f->var->name + ",";
    if (isa<IfNode>(*other)) what = "a condition";
    if (isa<CheckNode>(*other)) what = "a check";
    return {other->get(), what + " stands " + where + " the outermost loop",
            "write a function of one loop nest, with all statements inside"};
  }

  // What keeps the loop in its block.
  std::optional<Obstacle> obstacle_of(const ForNode& loop) const {
    for (const PrimExpr& e : {loop.min, loop.extent}) {
      bool of_sizes = true;
      post_order(
          e,
          [&](const Node& n) {
            if (isa<LoadNode>(&n)) of_sizes = false;
            if (isa<VarNode>(&n)) {
              of_sizes &= std::any_of(f_->dims.begin(), f_->dims.end(),
                                      [&](const Var& d) { return d.get() == &n; });
            }
          },
          family::tir_expr);
      if (!of_sizes)
        return Obstacle{&loop, "the bounds of loop " + loop.var->name + " are more than sizes", {}};
    }
    Accesses accesses(loop.body);
    for (const Buffer& b : accesses.written) {
      const std::vector<Access>& all = accesses.of[b.get()];
      size_t clear = 0;  // accesses that leave each iteration its own elements
      for (size_t d = 0; d < b->shape.size(); ++d)
        clear = std::max(clear, count_of_own(all, d, loop, accesses));
      if (clear == all.size()) continue;
      return in_the_way(b, all[clear], loop);
    }
    return std::nullopt;
  }

  static Obstacle in_the_way(const Buffer& b, const Access& a, const ForNode& loop) {
    std::string element = b->name + "[";
    for (size_t d = 0; d < a.indices.size(); ++d)
      element += (d ? ", " : "") + to_string(a.indices[d]);
    element += "]";
    const std::string& name = loop.var->name;
    if (a.is_store) {
      return {a.at, element + " is not an element of its own for each iteration of loop " + name,
              "an index of the written element is " + name + ", or a multiple of it"};
    }
    return {a.at,
            "an iteration of loop " + name + " reads " + element + ", which another one may write",
            "what an iteration reads of a result is what it writes"};
  }

  // How many of the accesses, from the first on, keep the iterations of the loop apart along a dimension.
  size_t count_of_own(const std::vector<Access>& all, size_t d, const ForNode& loop,
                      const Accesses& around) const {
    Analyzer analyzer;
    analyzer.bind_function(f_);
    VarMap at_zero;
    for (const ForNode* f : around.loops) {
      analyzer.bind(f->var, f->min, f->extent);
      at_zero[f->var.get()] = index(0);
    }
    std::optional<int64_t> step;
    PrimExpr base;
    Bounds rests;
    for (size_t k = 0; k < all.size(); ++k) {
      const PrimExpr& at = all[k].indices[d];
      if (at->dtype != kIndex || !is_plain(at, around)) return k;
      PrimExpr next = replace_vars(at, {{loop.var.get(), PrimExpr(loop.var) + 1}});
      std::optional<int64_t> grows = analyzer.constant_difference(next, at);
      if (!grows || *grows == 0 || *grows != step.value_or(*grows)) return k;
      step = grows;
      PrimExpr rest = replace_vars(at, {{loop.var.get(), index(0)}});
      if (!base) base = replace_vars(rest, at_zero);
      Bounds b = analyzer.bounds(analyzer.simplify(rest - base));
      rests = k == 0 ? b : hull(rests, b);
      if (!rests.has_min() || !rests.has_max()) return k;
      // As unsigned numbers, whose difference does not overflow.
      uint64_t width = static_cast<uint64_t>(rests.max) - static_cast<uint64_t>(rests.min);
      uint64_t stride = *step < 0 ? -static_cast<uint64_t>(*step) : static_cast<uint64_t>(*step);
      if (width >= stride) return k;
    }
    return all.size();
  }

  // Whether an index is made of loop variables and sizes: the same in an iteration whenever it is computed.
  static bool is_plain(const PrimExpr& e, const Accesses& around) {
    bool plain = true;
    post_order(
        e, [&](const Node& n) { plain &= !isa<LoadNode>(&n) && !around.named.contains(&n); },
        family::tir_expr);
    return plain;
  }

  Stmt around(const BlockNode& b, const std::vector<const ForNode*>& loops) const {
    Analyzer analyzer;
    analyzer.bind_function(f_);
    std::vector<Var> vars;
    std::vector<PrimExpr> extents;
    Block block = modified(b, [&](BlockNode& n) {
      for (const ForNode* f : loops) {
        // A loop whose end is before its start has no iterations; that of a fused loop is a product.
        bool counts = analyzer.can_prove(ge(f->extent, index(0)));
        extents.push_back(counts ? f->extent : analyzer.simplify(max(f->extent, index(0))));
        vars.push_back(var(f->var->name, f->var->dtype));
        n.iters.push_back(iter_var(f->var, extents.back(), IterKind::DataParallel, f->min));
        PrimExpr at = vars.back();
        n.bindings.push_back(as_int(f->min) == 0 ? at : at + f->min);
      }
      n.body = loops.back()->body;
    });
    Stmt out = with_regions_of_body(block);
    for (size_t i = loops.size(); i-- > 0;) {
      out = modified(*loops[i], [&](ForNode& n) {
        n.var = vars[i];
        n.min = index(0);
        n.extent = extents[i];
        n.body = out;
      });
    }
    return out;
  }

  const PrimFunc& f_;
  const PlaceOf& place_of_;
};

}  // namespace

PrimFunc blocks_of_loops(const PrimFunc& f, const PlaceOf& place_of) {
  Opening opening(f, place_of);
  std::unordered_map<const Node*, Stmt> edits;
  LoopTree tree(f->body);
  for (const BlockNode* b : tree.blocks()) {
    if (Stmt nest = opening.open(*b)) edits[b] = nest;
  }
  if (edits.empty()) return f;
  return modified(*f, [&](PrimFuncNode& n) { n.body = replace_stmts(f->body, edits); });
}

}  // namespace relay::tir
