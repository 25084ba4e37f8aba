#include "eval/eval_plan.h"

#include <optional>
#include <unordered_set>

#include "analysis/value_order.h"
#include "base/codes/lowering.h"
#include "base/codes/types.h"
#include "ir/attrs.h"
#include "ir/scope.h"
#include "node/walk.h"

namespace relay {
namespace {

runtime::Value closure_of(int32_t tag) {
  return runtime::Value::adopt(runtime::Cell::make(runtime::ObjectKind::closure, tag, 0));
}

[[noreturn]] void unbound(const Span& span, const std::string& what) {
  throw UserError(Diagnostic(codes::type_ill_formed, span, what + " is not bound"));
}

}  // namespace

// Makes the plans of one function and of the functions inside it.
class Planner {
 public:
  Planner(EvalPlanStore& store, int32_t tag)
      : store_(store),
        tree_(analyze_scopes(*store.plan(tag).function)),
        order_(order_values(tree_, /*flatten=*/true)) {
    open_scopes(tag);
  }

  void run() {
    find_names();
    for (size_t s = 0; s < block_of_.size(); ++s) {
      if (block_of_[s] != nullptr) fill_block(s);
    }
    for (auto& [plan, step] : closures_) {
      for (const auto& operand : builds_[static_cast<size_t>(plan)].captured) {
        step->operands.push_back({operand, false});
      }
    }
    for (Build& b : builds_) compile_patterns(b);
    for (Build& b : builds_) place_values(b);
    for (Build& b : builds_) find_last_uses(b);
    // A plan is prepared once its body is set, so nothing half-made is left by an error.
    for (Build& b : builds_) b.plan->body = b.body;
  }

 private:
  // A plan in the making.
  struct Build {
    int32_t tag;
    EvalPlan* plan;
    int parent;  // the build of the enclosing function, -1 for the outermost
    EvalBlock* body;
    std::unordered_map<const Node*, int32_t> slots;
    // For each captured value where the enclosing function has it.
    std::vector<int32_t> captured;
    std::vector<std::pair<EvalStep*, const MatchNode*>> matches;
  };

  void open_build(int32_t tag, int parent) {
    EvalPlan& plan = store_.plans_[static_cast<size_t>(tag)];
    Build b{tag, &plan, parent, nullptr, {}, {}, {}};
    plan.num_slots = 0;
    plan.capture_slots.clear();
    plan.self_slot = -1;
    for (const Var& p : plan.function->params) {
      b.slots[p.get()] = plan.num_slots++;
      owner_[p.get()] = static_cast<int>(builds_.size());
    }
    builds_.push_back(std::move(b));
  }

  // A scope of a function, a branch or a clause has a block of its own; a Let's body is part of the
  // block around it. Parents come before their scopes.
  void open_scopes(int32_t tag) {
    for (size_t s = 0; s < tree_.scopes.size(); ++s) {
      const ScopeTree::Scope& scope = tree_.scopes[s];
      bool is_let = isa<LetNode>(scope.opener);
      int parent_build = s == 0 ? -1 : build_of_[static_cast<size_t>(scope.parent)];
      if (s == 0) {
        open_build(tag, -1);
      } else if (auto* f = as<FunctionNode>(scope.opener)) {
        int32_t inner = store_.add_plan(f, "");
        build_of_function_[f] = static_cast<int>(builds_.size());
        open_build(inner, parent_build);
      }
      bool opens_function = s == 0 || isa<FunctionNode>(scope.opener);
      build_of_.push_back(opens_function ? static_cast<int>(builds_.size()) - 1 : parent_build);
      if (!is_let) store_.blocks_.emplace_back();
      block_of_.push_back(is_let ? nullptr : &store_.blocks_.back());
      if (opens_function) builds_.back().body = block_of_.back();
    }
  }

  // The values of variables, and the functions that bind those of patterns.
  void find_names() {
    for (const ExprNode* e : tree_.order) {
      const int* scope = tree_.scope_of.find(e);
      if (scope == nullptr || is_leaf(*e)) continue;
      if (auto* l = as<LetNode>(e)) {
        alias_[l->var.get()] = l->value.get();
        alias_[l] = l->body.get();
        auto f = build_of_function_.find(l->value.get());
        if (f != build_of_function_.end()) {
          builds_[static_cast<size_t>(f->second)].plan->name = l->var->name_hint;
        }
      }
      if (auto* m = as<MatchNode>(e)) {
        for (const Clause& c : m->clauses) {
          post_order(
              c->lhs,
              [&](const Node& n) {
                if (isa<VarNode>(&n)) owner_[&n] = build_of_[static_cast<size_t>(*scope)];
              },
              family::program);
        }
      }
    }
  }

  // The expression whose value a Let, or a Let's variable, has.
  const Node* origin(const Node* e) {
    const Node* root = e;
    for (auto it = alias_.find(root); it != alias_.end(); it = alias_.find(root)) root = it->second;
    for (auto it = alias_.find(e); it != alias_.end() && it->second != root;) {
      const Node* next = std::exchange(it->second, root);
      it = alias_.find(next);
    }
    return root;
  }

  // Where a function finds the value of an expression: in a slot of its own, or as a constant.
  int32_t resolve(const Node* e, int build) {
    auto* at = static_cast<const ExprNode*>(origin(e));
    if (is_leaf(*at) && !isa<VarNode>(at)) return ~store_.constant_index(*at);
    int owner = owner_of(*at);
    auto inner = build_of_function_.find(at);
    // Outwards to the first function that has it. A function's own value is available inside it.
    std::vector<int> path;
    int32_t slot = -1;
    for (int b = build; slot < 0; b = builds_[static_cast<size_t>(b)].parent) {
      if (b < 0) unbound(at->span, "a variable");
      Build& here = builds_[static_cast<size_t>(b)];
      auto known = here.slots.find(at);
      if (known != here.slots.end()) {
        slot = known->second;
      } else if (inner != build_of_function_.end() && inner->second == b) {
        slot = here.plan->self_slot = new_slot(here, at);
      } else if (b == owner) {
        slot = new_slot(here, at);
      } else {
        path.push_back(b);
      }
    }
    // And back inwards, captured at each step.
    for (auto b = path.rbegin(); b != path.rend(); ++b) {
      Build& here = builds_[static_cast<size_t>(*b)];
      here.captured.push_back(slot);
      slot = new_slot(here, at);
      here.plan->capture_slots.push_back(slot);
    }
    return slot;
  }

  int owner_of(const ExprNode& e) {
    if (isa<VarNode>(&e)) {
      auto it = owner_.find(&e);
      if (it == owner_.end()) {
        unbound(e.span, "the variable %" + static_cast<const VarNode&>(e).name_hint);
      }
      return it->second;
    }
    return build_of_[static_cast<size_t>(tree_.scope_of.at(&e))];
  }

  static int32_t new_slot(Build& b, const Node* e) {
    int32_t slot = b.plan->num_slots++;
    b.slots[e] = slot;
    return slot;
  }

  void fill_block(size_t scope) {
    EvalBlock& block = *block_of_[scope];
    int build = build_of_[scope];
    // Steps keep their address: closures and matches are completed later.
    block.steps.reserve(order_.of_scope[scope].size());
    for (const ExprNode* e : order_.of_scope[scope]) {
      if (isa<LetNode>(e) || is_leaf(*e)) continue;
      block.steps.emplace_back();
      fill_step(block.steps.back(), *e, build);
    }
    block.result.index = resolve(tree_.scopes[scope].root, build);
  }

  void fill_step(EvalStep& step, const ExprNode& e, int build) {
    step.expr = &e;
    auto operand = [&](const Expr& x) {
      step.operands.push_back({resolve(x.get(), build), false});
    };
    auto operands = [&](const std::vector<Expr>& list) {
      for (const Expr& x : list) operand(x);
    };
    auto block = [&](const Expr& root) {
      step.blocks.push_back(block_of_[static_cast<size_t>(tree_.opened(e, root.get()))]);
    };
    switch (e.kind()) {
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(e);
        step.kind = EvalStep::call;
        if (isa<OpNode>(c.op)) {
          step.kind = EvalStep::call_op;
          step.assumed = assumed_sizes(c);
        } else if (auto* constructor = as<ConstructorNode>(c.op)) {
          step.kind = EvalStep::construct;
          step.value = static_cast<int32_t>(constructor->tag);
        } else {
          operand(c.op);
        }
        operands(c.args);
        if (step.kind == EvalStep::call_op) find_sizes(step, c, build);
        return;
      }
      case ExprKind::Function: {
        int inner = build_of_function_.at(&e);
        step.kind = EvalStep::closure;
        step.value = builds_[static_cast<size_t>(inner)].tag;
        closures_.emplace_back(inner, &step);
        return;
      }
      case ExprKind::If: {
        auto& i = static_cast<const IfNode&>(e);
        step.kind = EvalStep::branch;
        operand(i.cond);
        block(i.true_branch);
        block(i.false_branch);
        return;
      }
      case ExprKind::Match: {
        auto& m = static_cast<const MatchNode&>(e);
        step.kind = EvalStep::match;
        operand(m.data);
        for (const Clause& c : m.clauses) block(c->rhs);
        builds_[static_cast<size_t>(build)].matches.emplace_back(&step, &m);
        return;
      }
      case ExprKind::Tuple:
        operands(static_cast<const TupleNode&>(e).fields);
        return;
      case ExprKind::TupleGetItem: {
        auto& g = static_cast<const TupleGetItemNode&>(e);
        step.kind = EvalStep::get_item;
        step.value = static_cast<int32_t>(g.index);
        operand(g.tuple);
        return;
      }
      case ExprKind::RefCreate:
        step.kind = EvalStep::ref_create;
        operand(static_cast<const RefCreateNode&>(e).value);
        return;
      case ExprKind::RefRead:
        step.kind = EvalStep::ref_read;
        operand(static_cast<const RefReadNode&>(e).ref);
        return;
      case ExprKind::RefWrite: {
        auto& w = static_cast<const RefWriteNode&>(e);
        step.kind = EvalStep::ref_write;
        operand(w.ref);
        operand(w.value);
        return;
      }
      default:
        RELAY_CHECK(false, "an expression of unknown kind");
    }
  }

  // Where the sizes are found that the attributes of an operator's call name: in the parameters of
  // the functions around it, from the inside out, else in its arguments.
  void find_sizes(EvalStep& step, const CallNode& c, int build) {
    if (!has_symbolic_sizes(c.attrs)) return;
    std::unordered_set<const Node*> names;
    post_order(c.attrs, [&](const Node& n) {
      if (isa<TypeVarNode>(&n)) names.insert(&n);
    });
    auto look_in = [&](const Type& type, const auto& operand) {
      struct Part {
        const TypeNode* type;
        std::vector<size_t> fields;
      };
      // Types are graphs; those that are larger have no more sizes to tell.
      constexpr size_t kMaxParts = 10000;
      std::vector<Part> parts{{type.get(), {}}};
      for (size_t i = 0; i < parts.size() && !names.empty(); ++i) {
        if (auto* t = as<TensorTypeNode>(parts[i].type)) {
          for (size_t axis = 0; axis < t->shape.size(); ++axis) {
            auto* d = as<DimVarNode>(t->shape[axis]);
            if (d == nullptr || names.erase(d->var.get()) == 0) continue;
            step.sizes.push_back({d->var.get(), operand(), parts[i].fields, axis});
          }
        }
        auto* tuple = as<TupleTypeNode>(parts[i].type);
        if (tuple == nullptr || parts.size() > kMaxParts) continue;
        for (size_t k = 0; k < tuple->fields.size(); ++k) {
          std::vector<size_t> fields = parts[i].fields;
          fields.push_back(k);
          parts.push_back({tuple->fields[k].get(), std::move(fields)});
        }
      }
    };
    for (int b = build; b >= 0 && !names.empty(); b = builds_[static_cast<size_t>(b)].parent) {
      for (const Var& p : builds_[static_cast<size_t>(b)].plan->function->params) {
        std::optional<size_t> place;
        look_in(p->type, [&] {
          if (!place) {
            place = step.operands.size();
            step.operands.push_back({resolve(p.get(), build), false});
          }
          return *place;
        });
      }
    }
    for (size_t i = 0; i < c.args.size(); ++i) {
      look_in(c.args[i]->type, [&] { return i; });
    }
    if (names.empty()) return;
    std::string name = static_cast<const TypeVarNode*>(*names.begin())->name_hint;
    throw UserError(Diagnostic(codes::lower_unsupported, c.span,
                               "the size " + name + " cannot be read off any value here")
                        .help("give the function a parameter, or a tuple among them, with a "
                              "tensor that has " +
                              name + " itself as a dimension: Tensor[(" + name + ",), float32]"));
  }

  // Once every use of a value has a slot; a pattern's variable that has none is not used.
  void compile_patterns(Build& b) {
    for (auto& [step, node] : b.matches) {
      for (const Clause& c : node->clauses) {
        std::vector<PatternStep>& out = step->patterns.emplace_back();
        std::vector<const PatternNode*> stack{c->lhs.get()};
        while (!stack.empty()) {
          const PatternNode* p = stack.back();
          stack.pop_back();
          const std::vector<Pattern>* parts = nullptr;
          PatternStep& made = out.emplace_back();
          if (auto* v = as<PatternVarNode>(p)) {
            auto slot = b.slots.find(v->var.get());
            if (slot != b.slots.end()) made = {PatternStep::bind, slot->second, 0};
          } else if (auto* k = as<PatternConstructorNode>(p)) {
            parts = &k->patterns;
            made = {PatternStep::constructor, static_cast<int32_t>(k->constructor->tag),
                    static_cast<uint32_t>(parts->size())};
          } else if (auto* t = as<PatternTupleNode>(p)) {
            parts = &t->patterns;
            made = {PatternStep::tuple, 0, static_cast<uint32_t>(parts->size())};
          }
          if (parts == nullptr) continue;
          for (auto part = parts->rbegin(); part != parts->rend(); ++part) {
            stack.push_back(part->get());
          }
        }
      }
    }
  }

  // Sets for each step the slot of its value, and whether the slot belongs to its block.
  void place_values(Build& b) {
    std::vector<EvalBlock*> blocks{b.body};
    while (!blocks.empty()) {
      EvalBlock* block = blocks.back();
      blocks.pop_back();
      bool is_tail = tail_.contains(block) || block == b.body;
      for (size_t i = 0; i < block->steps.size(); ++i) {
        EvalStep& step = block->steps[i];
        auto slot = b.slots.find(step.expr);
        if (slot != b.slots.end()) step.dest = slot->second;
        step.gives_result =
            i + 1 == block->steps.size() && step.dest >= 0 && step.dest == block->result.index;
        step.is_tail = step.gives_result && is_tail;
        for (EvalBlock* inner : step.blocks) {
          blocks.push_back(inner);
          if (step.is_tail) tail_.insert(inner);
        }
      }
    }
  }

  // Walks a function's blocks backwards. `live` are the slots that are wanted later on.
  void find_last_uses(Build& b) {
    struct Task {
      EvalBlock* block;
      size_t left;                  // steps that have not been visited
      size_t branch = 0;            // of the current step
      std::vector<int32_t> wanted;  // slots that became live in this block
      std::vector<std::vector<int32_t>> by_branch;
    };
    std::vector<bool> live(static_cast<size_t>(b.plan->num_slots));
    std::vector<size_t> stamp(live.size());
    size_t stamps = 0;
    auto use = [&](EvalOperand& operand, Task& task) {
      if (operand.index < 0 || live[static_cast<size_t>(operand.index)]) return;
      operand.last = true;
      live[static_cast<size_t>(operand.index)] = true;
      task.wanted.push_back(operand.index);
    };
    std::vector<Task> tasks;
    auto enter = [&](EvalBlock* block) {
      tasks.push_back({block, block->steps.size(), 0, {}, {}});
      use(block->result, tasks.back());
    };
    // Which of a finished block's slots come from outside it.
    auto leave = [&](const EvalStep* step, size_t branch) {
      std::vector<int32_t> wanted = std::move(tasks.back().wanted);
      tasks.pop_back();
      if (step != nullptr && !step->patterns.empty()) {
        for (const PatternStep& p : step->patterns[branch]) {
          if (p.kind == PatternStep::bind) live[static_cast<size_t>(p.value)] = false;
        }
      }
      std::erase_if(wanted, [&](int32_t slot) { return !live[static_cast<size_t>(slot)]; });
      return wanted;
    };
    enter(b.body);
    for (;;) {
      Task& task = tasks.back();
      if (task.left == 0) {
        if (tasks.size() == 1) break;
        Task& outer = tasks[tasks.size() - 2];
        const EvalStep& step = outer.block->steps[outer.left - 1];
        std::vector<int32_t> wanted = leave(&step, outer.branch);
        // The next branch starts from the values that are live after all of them.
        for (int32_t slot : wanted) live[static_cast<size_t>(slot)] = false;
        Task& at = tasks.back();
        at.by_branch.push_back(std::move(wanted));
        ++at.branch;
        continue;
      }
      EvalStep& step = task.block->steps[task.left - 1];
      if (task.branch == 0 && step.dest >= 0) live[static_cast<size_t>(step.dest)] = false;
      if (task.branch < step.blocks.size()) {
        enter(step.blocks[task.branch]);
        continue;
      }
      for (const auto& wanted : task.by_branch) {
        for (int32_t slot : wanted) {
          if (live[static_cast<size_t>(slot)]) continue;
          live[static_cast<size_t>(slot)] = true;
          task.wanted.push_back(slot);
        }
      }
      for (size_t i = 0; i < task.by_branch.size(); ++i) {
        ++stamps;
        for (int32_t slot : task.by_branch[i]) stamp[static_cast<size_t>(slot)] = stamps;
        for (const auto& wanted : task.by_branch) {
          for (int32_t slot : wanted) {
            size_t& mark = stamp[static_cast<size_t>(slot)];
            if (mark == stamps) continue;
            mark = stamps;
            step.blocks[i]->dead.push_back(slot);
          }
        }
      }
      task.by_branch.clear();
      task.branch = 0;
      for (auto o = step.operands.rbegin(); o != step.operands.rend(); ++o) use(*o, task);
      --task.left;
    }
    leave(nullptr, 0);
    for (size_t i = 0; i < b.plan->function->params.size(); ++i) {
      if (!live[i]) b.plan->dead.push_back(static_cast<int32_t>(i));
    }
  }

  EvalPlanStore& store_;
  ScopeTree tree_;
  ValueOrder order_;
  std::vector<int> build_of_;         // by scope
  std::vector<EvalBlock*> block_of_;  // by scope; null for a Let's body
  std::vector<Build> builds_;
  std::unordered_map<const Node*, int> build_of_function_;
  std::unordered_map<const Node*, int> owner_;  // of variables that are no Let's
  std::unordered_map<const Node*, const Node*> alias_;
  std::vector<std::pair<int, EvalStep*>> closures_;
  std::unordered_set<const EvalBlock*> tail_;
};

runtime::Value EvalPlanStore::global(const std::string& name) {
  auto it = global_.find(name);
  if (it == global_.end()) {
    Function f = mod_ ? mod_->find(name) : nullptr;
    if (f == nullptr) return {};
    it = global_.emplace(name, add_plan(f.get(), name)).first;
  }
  return closure_of(it->second);
}

runtime::Value EvalPlanStore::closed(const Function& f, const std::string& name) {
  keep_.push_back(f);
  return closure_of(add_plan(f.get(), name));
}

void EvalPlanStore::prepare(int32_t tag) {
  const EvalPlan& p = plan(tag);
  if (p.body == nullptr && p.function != nullptr) Planner(*this, tag).run();
}

int32_t EvalPlanStore::add_plan(const FunctionNode* f, std::string name) {
  plans_.emplace_back();
  plans_.back().function = f;
  plans_.back().unwritten = f != nullptr && f->has_attr(attr::kUnwritten);
  plans_.back().name = std::move(name);
  return static_cast<int32_t>(plans_.size()) - 1;
}

int32_t EvalPlanStore::constant_index(const ExprNode& leaf) {
  auto [it, fresh] = constant_of_.emplace(&leaf, static_cast<int32_t>(constants_.size()));
  if (!fresh) return it->second;
  runtime::Value value;
  if (auto* c = as<ConstantNode>(&leaf)) {
    value = runtime::Value(c->data);
  } else if (auto* g = as<GlobalVarNode>(&leaf)) {
    value = global(g->name_hint);
  } else {
    value = closure_of(add_plan(
        nullptr, isa<OpNode>(&leaf) ? static_cast<const OpNode&>(leaf).name
                                    : static_cast<const ConstructorNode&>(leaf).name_hint));
    plans_.back().builtin = &leaf;
  }
  if (!value) {
    constant_of_.erase(it);
    unbound(leaf.span, "the global @" + static_cast<const GlobalVarNode&>(leaf).name_hint);
  }
  keep_.push_back(NodeRef(&leaf));
  constants_.push_back(std::move(value));
  return it->second;
}

}  // namespace relay
