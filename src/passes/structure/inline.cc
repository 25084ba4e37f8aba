#include "passes/structure/inline.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/components.h"
#include "analysis/purity.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"
#include "passes/structure/entry_functions.h"

namespace relay {
namespace {

// From this level on functions with at most so many expressions (leaves not counted) are put in
// place: about what passing their arguments and results would take.
constexpr int kSmallLevel = 3, kSmall = 8;

// A copy with variables of its own. What has effects is copied even where nothing in it changes:
// two places that share an effect would have it once.
class FreshCopy : public Rewriter {
 public:
  explicit FreshCopy(const Function& f) : Rewriter(family::program) {
    post_order(
        f,
        [&](const Node& n) {
          for (const Field& field : n.info().fields) {
            if (field.role != Role::binder) continue;
            const void* at = field.in(n);
            for (size_t i = 0; i < field.ops->count(at); ++i) {
              const NodeRef& v = field.ops->get_child(at, i);
              if (isa<VarNode>(v)) set(v, copy(*v.get()));
            }
          }
        },
        family::program);
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    return rebuilt == original && may_have_effects(*original.get()) ? copy(*original.get())
                                                                    : rebuilt;
  }

 private:
  static NodeRef copy(const Node& n) { return NodeRef(n.info().clone(n)); }

  static bool may_have_effects(const Node& n) {
    if (auto* c = as<CallNode>(&n)) return !is_pure_op_call(*c);
    return isa<RefCreateNode>(&n) || isa<RefReadNode>(&n) || isa<RefWriteNode>(&n);
  }
};

class Inliner {
 public:
  Inliner(const Module& mod, const PassContext& ctx)
      : mod_(mod), small_too_(ctx.opt_level >= kSmallLevel) {
    for (const Function& f : entry_functions(mod, ctx)) entries_.insert(f.get());
  }

  Module run() {
    const size_t n = mod_->functions.size();
    for (size_t i = 0; i < n; ++i) index_.emplace(mod_->global_vars[i]->name_hint, i);
    uses_.resize(n);
    calls_.resize(n);
    for (size_t i = 0; i < n; ++i) count_uses(i);
    done_ = mod_->functions;
    put_in_place_.assign(n, false);
    bool any = false;
    NumberLists groups = strong_components(edges_);
    for (size_t g = 0; g < groups.size(); ++g) {
      std::span<const size_t> group = groups[g];
      // Callees come first, so that what is put in place is finished.
      for (size_t i : group) {
        if (any) done_[i] = inline_into(mod_->functions[i]);
        put_in_place_[i] = group.size() == 1 && wanted(i);
        any |= put_in_place_[i];
      }
    }
    if (!any) return mod_;
    std::vector<GlobalVar> names;
    std::vector<Function> functions;
    for (size_t i = 0; i < n; ++i) {
      if (put_in_place_[i] && is_only_called(i)) continue;
      names.push_back(mod_->global_vars[i]);
      functions.push_back(done_[i]);
    }
    return make_module(std::move(names), std::move(functions), mod_->type_definitions, mod_->attrs);
  }

 private:
  size_t index_of(const Node* n) const {
    auto* g = as<GlobalVarNode>(n);
    auto it = g == nullptr ? index_.end() : index_.find(g->name_hint);
    return it == index_.end() ? ~size_t{0} : it->second;
  }

  void count_uses(size_t i) {
    post_order(
        mod_->functions[i],
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          for_each_child(n, [&](const NodeRef& child) {
            size_t to = index_of(child.get());
            if (to == ~size_t{0}) return;
            edges_.add(to);
            ++uses_[to];
            if (c != nullptr && child == c->op) ++calls_[to];
          });
        },
        family::program);
    edges_.close();
  }

  // Only its callers can name the function, in this module and outside.
  bool is_only_called(size_t i) const {
    return uses_[i] == calls_[i] && !entries_.contains(mod_->functions[i].get());
  }
  bool is_called_once(size_t i) const { return calls_[i] == 1 && is_only_called(i); }

  bool wanted(size_t i) const {
    const Function& f = mod_->functions[i];
    for (size_t to : edges_[i]) {
      if (to == i) return false;
    }
    for (const char* key : {attr::kPrimitive, attr::kCompiler, attr::kExtern, attr::kClosure}) {
      if (f->has_attr(key)) return false;
    }
    if (!f->type_params.empty() || calls_[i] == 0) return false;
    return f->has_attr(attr::kInline) || is_called_once(i) || (small_too_ && is_small(done_[i]));
  }

  static bool is_small(const Function& f) {
    int size = 0;
    post_order_if(
        f->body, [&](const Node&) { return size <= kSmall; },
        [&](const Node& n) {
          if (!is_leaf(n)) ++size;
        },
        family::program);
    return size <= kSmall;
  }

  Function inline_into(const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          size_t callee = c == nullptr ? ~size_t{0} : index_of(c->op.get());
          if (callee == ~size_t{0} || !put_in_place_[callee]) return rebuilt;
          Function body = is_called_once(callee) ? done_[callee]
                                                 : FreshCopy(done_[callee]).apply(done_[callee]);
          Expr result = body->body;
          for (size_t i = c->args.size(); i-- > 0;) {
            result = let(body->params[i], c->args[i], result, c->args[i]->span);
          }
          return result;
        },
        family::program));
  }

  const Module& mod_;
  bool small_too_;
  std::unordered_set<const Node*> entries_;
  std::unordered_map<std::string, size_t> index_;
  NumberLists edges_;
  std::vector<int> uses_;   // how often a function is named
  std::vector<int> calls_;  // ... as what is called
  std::vector<bool> put_in_place_;
  std::vector<Function> done_;
};

Module run_inline(const Module& mod, PassContext& ctx) { return Inliner(mod, ctx).run(); }

}  // namespace

const Pass kInline{
    "Inline",  1, Form::any, Form::any, "Puts the bodies of functions where they are called.",
    run_inline};

}  // namespace relay
