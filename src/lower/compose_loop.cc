#include "lower/compose_loop.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "ir/op.h"
#include "ir/open_sizes.h"
#include "lower/loop_count.h"
#include "lower/loop_program.h"
#include "lower/loop_state.h"
#include "lower/written_over.h"
#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/schedule_report.h"
#include "tir/while.h"

namespace relay {
namespace {

// What decides how often a loop runs is found through so many operators.
constexpr int kMostDepthOfBound = 8;

// Blocks, joins and loops.
class Composer : private LoopState {
 public:
  Composer(const FunctionNode& f, KernelOf what) : f_(f) {
    if (what != KernelOf::equal_sizes) return;
    for (const DimAssumption& a : broadcasts_of(f)) dims_.make_equal(a.a, a.b);
  }

  ComposedKernel run(const std::string& name) {
    std::vector<Buffer> params;
    for (const Var& p : f_.params) bind(p.get(), parameter(p->type, params));
    const size_t inputs = params.size();
    program_ = reader_.read(f_.body);
    std::vector<Value> results;
    flatten(block(*program_, -1), results);
    NodeMap final;
    for (const Value& v : results) {
      Buffer out = tir::buffer("out" + std::to_string(params.size() - inputs), v.dtype, v.shape);
      params.push_back(out);
      const bool own = v.buffer && is_local(v.buffer) && !final.contains(v.buffer.get()) &&
                       !exchanges_.contains(v.buffer.get());
      if (own) {
        final.emplace(v.buffer.get(), out);
      } else {
        fill(out, v);
      }
    }
    std::erase_if(locals_, [&](const Buffer& b) { return exchanges_.contains(b.get()); });
    const Stmt placed = exchanges_.placed(joined(std::move(out_), lets_), locals_);
    for (auto& [dtype, file] : files_) {
      Buffer exact = tir::buffer(file.buffer->name, file.buffer->dtype, {tir::index(file.count)},
                                 file.buffer->scope);
      final.emplace(file.buffer.get(), exact);
      locals_.push_back(exact);
    }
    // What sizes stand for may be in registers.
    Stmt body = tir::replace(tir::replace(placed, sizes_.values()), final);
    for (const Buffer& b : locals_) {
      if (!final.contains(b.get())) body = tir::allocate(b, body);
    }
    ComposedKernel out;
    std::vector<tir::Var> dims;
    for (const auto& [size, variable] : dims_.dims()) {
      if (sizes_.values().contains(variable.get())) continue;
      out.dims.push_back(size);
      dims.push_back(variable);
    }
    out.func = make<tir::PrimFuncNode>([&](tir::PrimFuncNode& n) {
      n.name = name;
      n.params = params;
      n.num_inputs = static_cast<int64_t>(inputs);
      n.dims = dims;
      n.body = body;
      if (!copies_.empty())
        n.report = tir::modified(tir::report_of(n), [&](auto& r) { r.copies = copies_; });
    });
    return out;
  }

 private:
  // A loop that is being composed.
  struct Loop {
    const Node* var = nullptr;
    std::vector<Value> state;
    PrimExpr running;  // null where the loop counts
    Value result;
    // The loop in whose tail position it is; -1: it returns to where it is called.
    int around = -1;
    // The state that follows from the number of the iteration.
    std::unordered_set<size_t> counted{};
    // The depth of its iterations, and of what is around it.
    int depth = 0, depth_around = 0;
  };
  // A join that the block being composed has.
  struct Join {
    // The loop in whose tail position it is, and the depth of the block.
    int loop, depth;
    // 1 where it is called, else 0.
    PrimExpr called;
    Value params;
  };

  // ---- Blocks

  // Computes what has no loop and no branch.
  void plain(const LoopItem& item) {
    if (auto* c = as<CallNode>(item.value)) {
      bind(item.var.get(), operator_call(item, *c));
    } else if (auto* t = as<TupleNode>(item.value)) {
      Value v{.is_tuple = true};
      for (const Expr& f : t->fields) v.fields.push_back(value(f));
      bind(item.var.get(), std::move(v));
    } else if (auto* g = as<TupleGetItemNode>(item.value)) {
      bind(item.var.get(), Value(value(g->tuple).fields[static_cast<size_t>(g->index)]));
    } else {
      bind(item.var.get(), Value(value(item.value)));
    }
  }

  // Composes an item, in the tail position of a loop if `loop` >= 0. Whether it ends the block.
  bool composed(const LoopItem& item, int loop) {
    if (item.then_block) return choice(item, loop);
    if (item.loop != nullptr) return entered(item, loop);
    if (auto* c = as<CallNode>(item.value); c != nullptr && !isa<OpNode>(c->op)) {
      go_on(*c, loop);
      return true;
    }
    plain(item);
    return false;
  }

  // Composes a block. In the tail position of a loop (`loop` >= 0) its value goes to the loop.
  Value block(const LoopBlock& b, int loop) {
    const bool tail = loop >= 0 && b.ends_in_tail();
    const size_t before = b.items.size() - (tail ? 1 : 0);
    for (size_t i = 0; i < before; ++i) composed(b.items[i], -1);
    if (tail) {
      // Behind what the bodies of joins may read.
      for (const LoopJoin& j : b.joins) open(j, loop);
      const bool ended = composed(b.items.back(), loop);
      for (size_t k = b.joins.size(); k-- > 0;) close(b.joins[k]);
      if (ended) return {};
    }
    if (loop < 0) return value(b.result);
    leave(value(b.result), loop);
    return {};
  }

  // Makes places for what the calls of a join give it.
  void open(const LoopJoin& j, int loop) {
    Join join{.loop = loop, .depth = depth_, .called = slot(tir::kIndex), .params = {}};
    set(join.called, tir::index(0));
    std::vector<Type> types;
    std::vector<LoopProgram::Root> roots;
    for (const Var& p : j.function->params) {
      types.push_back(p->type);
      std::ranges::copy(reader_.roots(p.get()), std::back_inserter(roots));
    }
    join.params = place_for(tuple_type(types), roots,
                            [&](const LoopProgram::Root& r) { return own_memory(r, j.position); });
    joins_.emplace(j.var.get(), std::move(join));
    opened_.push_back(&j);
  }

  void close(const LoopJoin& j) {
    const Join& join = joins_.at(j.var.get());
    opened_.pop_back();
    for (size_t k = 0; k < j.function->params.size(); ++k)
      bind(j.function->params[k].get(), join.params.fields[k]);
    const Stmt body = ending(j.function->body, join.loop, *j.body);
    emit(tir::if_(tir::ne(join.called, tir::index(0)), body));
  }

  // The depth of the innermost loop with which an expression in the tail position of one goes on. The loops inside of that
  // one have ended: what is computed may write to memory of iterations around them.
  int depth_behind(const Expr& e, int loop) const {
    int at = loop;
    while (loops_[static_cast<size_t>(at)].around >= 0) at = loops_[static_cast<size_t>(at)].around;
    int out = loops_[static_cast<size_t>(at)].depth_around;
    post_order(
        e,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c == nullptr || isa<OpNode>(c->op)) return;
          for (const Loop& l : loops_) {
            if (l.var == c->op.get()) out = std::max(out, l.depth);
          }
          if (auto join = joins_.find(c->op.get()); join != joins_.end())
            out = std::max(out, join->second.depth);
        },
        family::program);
    return out;
  }

  // The statements of a block in the tail position of a loop, which is an expression.
  Stmt ending(const Expr& e, int loop, const LoopBlock& b) {
    const int around = std::exchange(depth_, std::min(depth_, depth_behind(e, loop)));
    // Control does not reach the joins that none of its ends calls.
    const size_t before = excluded_.size();
    const std::unordered_set<const Node*> called = joins_called(e);
    for (const LoopJoin* j : opened_) {
      if (!called.contains(j->var.get())) excluded_.emplace_back(j->position, j->end + 1);
    }
    Stmt out = captured([&] { block(b, loop); });
    excluded_.resize(before);
    depth_ = around;
    return out;
  }

  // The joins that an expression calls, and those that their bodies call.
  std::unordered_set<const Node*> joins_called(const Expr& e) const {
    std::unordered_set<const Node*> out;
    auto add = [&](const Expr& from) {
      post_order(
          from,
          [&](const Node& n) {
            auto* c = as<CallNode>(&n);
            if (c != nullptr && joins_.contains(c->op.get())) out.insert(c->op.get());
          },
          family::program);
    };
    add(e);
    // The body of a join calls earlier ones only.
    for (size_t k = opened_.size(); k-- > 0;) {
      if (out.contains(opened_[k]->var.get())) add(opened_[k]->function->body);
    }
    return out;
  }

  // A place for a value that is computed in several places: a register, the memory of the tensor that all of
  // them give (`known`, each once), or memory of its own.
  Value place_for(const Type& type, const std::vector<LoopProgram::Root>& roots,
                  const std::function<Buffer(const LoopProgram::Root&)>& known) {
    std::vector<Value> parts;
    const auto tensors = flatten_tensor_types(type);
    std::unordered_set<const Node*> taken;
    for (size_t k = 0; k < tensors->size(); ++k) {
      const TensorTypeNode& t = *(*tensors)[k].get();
      const DType dtype = t.dtype.storage();
      if (t.shape.empty()) {
        parts.push_back({.scalar = slot(dtype), .dtype = dtype});
        continue;
      }
      Buffer b = known(roots[k]);
      if (b && !taken.insert(b.get()).second) b = nullptr;
      parts.push_back(in_memory(b ? b : fresh(dtype, dims_.lower(t.shape)), depth_));
    }
    size_t next = 0;
    return unflatten(type, parts, next);
  }

  // A place for the value of an item that something follows: it may be the memory of what nothing behind it reads.
  Value place_behind(const LoopItem& item) {
    return place_for(item.value->type, reader_.roots(item.var.get()),
                     [&](const LoopProgram::Root& r) { return own_memory(r, item.end); });
  }

  // The memory of a variable's tensor, where it may be written to at a position.
  Buffer own_memory(const LoopProgram::Root& root, int position) {
    auto it = values_.find(root.first);
    if (it == values_.end()) return nullptr;
    std::vector<Value> parts;
    flatten(it->second, parts);
    const Value v = parts[root.second];
    return may_take(v, position) ? v.buffer : nullptr;
  }

  // Whether it was in tail position.
  bool choice(const LoopItem& item, int loop) {
    auto& i = *as<IfNode>(item.value);
    PrimExpr cond = value(i.cond).scalar;
    Value to;
    if (loop < 0) to = place_behind(item);
    auto branch = [&](const Expr& e, const LoopBlock& b) {
      if (loop >= 0) return ending(e, loop, b);
      return captured([&] { assign({block(b, loop)}, {to}); });
    };
    excluded_.push_back(item.else_range);
    Stmt then_body = branch(i.true_branch, *item.then_block);
    excluded_.pop_back();
    Stmt else_body = branch(i.false_branch, *item.else_block);
    emit(tir::if_(cond, then_body, tir::is_empty(else_body) ? nullptr : else_body));
    if (loop >= 0) return true;
    bind(item.var.get(), to);
    return false;
  }

  // ---- Loops that count

  // Computes the operands of a loop's condition before the loop, which evaluates it at least once; false where they depend
  // on the loop.
  bool compute_before(const Expr& e, int depth = 0) {
    if (isa<ConstantNode>(e) || values_.contains(e.get())) return true;
    auto* c = as<CallNode>(reader_.definition(e));
    if (c == nullptr || !isa<OpNode>(c->op) || writes_over(ref(*c)) || depth == kMostDepthOfBound)
      return false;
    for (const Expr& a : c->args) {
      if (!compute_before(a, depth + 1)) return false;
    }
    LoopItem item{.var = Var::unchecked(e), .value = reader_.definition(e)};
    bind(e.get(), operator_call(item, *c));
    return true;
  }

  // A number as an expression that stays the same: a variable that `around` binds, where it is read from memory.
  PrimExpr fixed(const PrimExpr& e, std::vector<std::pair<tir::Var, PrimExpr>>& around) {
    bool reads = false;
    post_order(
        e, [&](const Node& n) { reads |= isa<tir::LoadNode>(&n); }, family::tir_expr);
    PrimExpr wide = tir::cast(tir::kIndex, e);
    if (!reads) return wide;
    around.emplace_back(tir::var("n" + std::to_string(around.size())), wide);
    analyzer_.define(around.back().first, wide);
    return around.back().first;
  }

  // How often a number of at least 0 can be reduced by another before it is 0 or less: always, by 0. One that is `large` is
  // taken without its sign.
  static PrimExpr iterations(const PrimExpr& distance, const PrimExpr& by, bool large) {
    const DType dtype = large ? DType::UInt(64) : tir::kIndex;
    auto number = [&](const PrimExpr& e) { return tir::cast(dtype, e); };
    PrimExpr quotient = tir::div(number(distance - 1), number(tir::max(by, tir::index(1))));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    const PrimExpr all = tir::index(kMost);
    if (large) quotient = tir::min(quotient, number(tir::index(kMost - 1)));
    return tir::select(tir::le(by, tir::index(0)), all, tir::cast(tir::kIndex, quotient) + 1);
  }

  // Whether `a - b` may be below all of int64, which is then far above 0.
  bool may_wrap(const PrimExpr& a, const PrimExpr& b) {
    return !analyzer_.can_prove(tir::le(b, tir::index(0))) &&
           !analyzer_.can_prove(tir::ge(a, tir::index(-1)));
  }

  // Whether `a - b` may be above all of int64.
  bool may_be_large(const PrimExpr& a, const PrimExpr& b) {
    return may_wrap(a, b) || !analyzer_.can_prove(tir::ge(b, tir::index(0)));
  }

  // Composes a loop that counts. What is behind its condition is computed behind it.
  void counted(const LoopItem& item, const LoopCount& c, int index) {
    const LoopBlock& b = *item.body;
    const LoopItem& last = b.items.back();
    auto prefix = [&] {
      for (size_t i = 0; i + 1 < b.items.size(); ++i) plain(b.items[i]);
    };
    std::vector<std::pair<tir::Var, PrimExpr>> around;
    const auto& args = as<CallNode>(item.value)->args;
    auto number = [&](const Expr& e) { return fixed(value(e).scalar, around); };
    const PrimExpr first = value(args[c.counter]).scalar;
    const PrimExpr begin = fixed(first, around), bound = number(c.bound);
    const PrimExpr high = c.step > 0 ? bound : begin, low = c.step > 0 ? begin : bound;
    const PrimExpr distance = c.inclusive ? high - low + 1 : high - low;
    const PrimExpr begins = c.inclusive ? tir::le(low, high) : tir::lt(low, high);
    const int64_t step = std::abs(c.step);
    const PrimExpr none = tir::index(0), by = c.by ? number(c.by) : nullptr;
    // Steps that are so large may take few of them over more than int64.
    constexpr int64_t kLargeStep = int64_t{1} << 15;
    PrimExpr count = tir::max(distance, none);
    if (by || step > kLargeStep) {
      count = iterations(distance, by ? by : tir::index(step), may_be_large(high, low));
      count = tir::select(begins, count, none);
    } else if (step > 1) {
      count = tir::div(count + (step - 1), tir::index(step));
    }
    const bool by_one = c.step == 1 && !by;
    tir::Var i = tir::var("i" + std::to_string(index));
    const DType dtype = first->dtype;
    auto after = [&](const PrimExpr& start, const PrimExpr& grows, bool down, const PrimExpr& n) {
      return down ? start - n * grows : start + n * grows;
    };
    std::vector<std::pair<PrimExpr, PrimExpr>> others;
    for (const LoopCount::Other& o : c.others)
      others.emplace_back(number(args[o.state]), number(o.by));
    // The state that counts, before iteration `n`.
    auto counter = [&](const PrimExpr& at, const PrimExpr& n) {
      auto& params = item.loop->params;
      bind(params[c.counter].get(), {.scalar = tir::cast(dtype, at), .dtype = dtype});
      for (size_t k = 0; k < others.size(); ++k) {
        const auto& [start, grows] = others[k];
        const PrimExpr now = after(start, grows, c.others[k].down, n);
        bind(params[c.others[k].state].get(), {.scalar = now, .dtype = tir::kIndex});
      }
    };
    auto place = [&](const PrimExpr& n) {
      return by ? after(begin, by, c.step < 0, n) : begin + n * c.step;
    };
    const PrimExpr min = by_one ? begin : tir::index(0);
    // One that is negative is none, and says more of what is inside than a maximum.
    const PrimExpr extent = step == 1 && !by ? distance : count;
    // A loop by 1 ends where its variable is not below the bound.
    const bool guarded = !by && !by_one && step <= kLargeStep && may_wrap(high, low);
    ++loops_around_;
    const Stmt body = captured([&] {
      const auto facts = analyzer_.inside(i, min, extent);
      counter(by_one ? PrimExpr(i) : place(i), by_one ? i - begin : PrimExpr(i));
      prefix();
      excluded_.push_back(last.else_range);
      block(*last.then_block, index);
      excluded_.pop_back();
    });
    --loops_around_;
    Stmt loop = make<tir::ForNode>([&](tir::ForNode& f) {
      f.var = i;
      f.min = min;
      f.extent = extent;
      f.body = body;
      f.hints.program = true;
    });
    if (guarded) {
      loop = tir::if_(begins, loop);
      count = tir::select(begins, count, none);
    }
    // The variables hold behind the loop as well.
    const Stmt rest = captured([&] {
      counter(place(count), count);
      prefix();
      emit(ending(as<IfNode>(last.value)->false_branch, index, *last.else_block));
    });
    Stmt all = tir::seq({loop, rest});
    for (size_t k = around.size(); k-- > 0;)
      all = tir::let_stmt(around[k].first, around[k].second, all);
    emit(all);
  }

  // ---- Loops

  // Enters a loop. Whether it was in tail position.
  bool entered(const LoopItem& item, int around) {
    auto& c = *as<CallNode>(item.value);
    Loop loop;
    loop.var = c.op.get();
    loop.around = around;
    loop.depth_around = depth_;
    std::optional<LoopCount> counts = count_of(reader_, item);
    auto is_known = [&](const Expr& e) {
      return isa<ConstantNode>(e) || values_.contains(e.get());
    };
    if (counts && (!compute_before(counts->bound) || (counts->by && !is_known(counts->by))))
      counts = std::nullopt;
    if (counts) {
      std::erase_if(counts->others, [&](const auto& o) { return !is_known(o.by); });
      loop.counted.insert(counts->counter);
      for (const LoopCount::Other& o : counts->others) loop.counted.insert(o.state);
    }
    if (!item.repeats) return once(item, loop);
    std::unordered_set<const Node*> taken;
    ++depth_;
    for (size_t k = 0; k < c.args.size(); ++k) {
      if (loop.counted.contains(k)) {
        loop.state.push_back(value(c.args[k]));
        continue;
      }
      loop.state.push_back(initial(value(c.args[k]), item, taken));
      bind(item.loop->params[k].get(), loop.state.back());
    }
    if (!counts) {
      loop.running = slot(tir::kIndex);
      set(loop.running, tir::index(1));
    }
    if (around < 0) {
      // What each of its ends gives of its state is where the state is.
      auto known = [&](const LoopProgram::Root& r) -> Buffer {
        for (size_t k = 0; k < c.args.size(); ++k) {
          if (!isa<VarNode>(c.args[k])) continue;
          const auto& given = reader_.roots(c.args[k].get());
          auto at = std::ranges::find(given, r);
          if (at == given.end()) continue;
          std::vector<Value> parts;
          flatten(loop.state[k], parts);
          return parts[static_cast<size_t>(at - given.begin())].buffer;
        }
        return nullptr;
      };
      loop.result = place_for(item.value->type, reader_.roots(item.var.get()), known);
    }
    loop.depth = depth_;
    loops_.push_back(loop);
    const int index = static_cast<int>(loops_.size()) - 1;
    if (counts) {
      counted(item, *counts, index);
    } else {
      ++loops_around_;
      Stmt body = captured([&] { block(*item.body, index); });
      --loops_around_;
      emit(tir::while_(tir::ne(loop.running, tir::index(0)), body));
    }
    loops_.pop_back();
    --depth_;
    if (around >= 0) return true;
    bind(item.var.get(), owned_here(loop.result));
    return false;
  }

  // The body of a function that does not call itself, which ends in several places. Whether it was in tail position.
  bool once(const LoopItem& item, Loop loop) {
    auto& args = as<CallNode>(item.value)->args;
    for (size_t k = 0; k < args.size(); ++k)
      bind(item.loop->params[k].get(), Value(value(args[k])));
    if (loop.around < 0) loop.result = place_behind(item);
    loop.depth = depth_;
    loops_.push_back(loop);
    block(*item.body, static_cast<int>(loops_.size()) - 1);
    loops_.pop_back();
    if (loop.around >= 0) return true;
    bind(item.var.get(), loop.result);
    return false;
  }

  Value owned_here(Value v) {
    if (v.buffer) v.owner = depth_;
    for (Value& f : v.fields) f = owned_here(f);
    return v;
  }

  // Where the state of a loop begins.
  Value initial(const Value& v, const LoopItem& item, std::unordered_set<const Node*>& taken) {
    if (v.is_tuple) {
      Value out{.is_tuple = true};
      for (const Value& f : v.fields) out.fields.push_back(initial(f, item, taken));
      return out;
    }
    if (v.scalar) {
      PrimExpr s = slot(v.dtype);
      set(s, v.scalar);
      return {.scalar = s, .dtype = v.dtype};
    }
    // The memory is that of the loop around.
    --depth_;
    const bool takes = may_take(v, item.position) && taken.insert(v.buffer.get()).second;
    ++depth_;
    return takes ? in_memory(v.buffer, depth_) : materialised(v);
  }

  // Ends a loop of which only the body knows the end.
  void stop(const Loop& loop) {
    if (loop.running) set(loop.running, tir::index(0));
  }

  // The next iteration of a loop, which is this one or one around it; or a join, behind the loops that end there.
  void go_on(const CallNode& c, int from) {
    int at = from;
    if (auto join = joins_.find(c.op.get()); join != joins_.end()) {
      for (; at != join->second.loop; at = loops_[static_cast<size_t>(at)].around)
        stop(loops_[static_cast<size_t>(at)]);
      std::vector<Value> given;
      for (const Expr& a : c.args) given.push_back(value(a));
      assign(given, join->second.params.fields);
      set(join->second.called, tir::index(1));
      return;
    }
    for (; loops_[static_cast<size_t>(at)].var != c.op.get();
         at = loops_[static_cast<size_t>(at)].around)
      stop(loops_[static_cast<size_t>(at)]);
    const Loop& to = loops_[static_cast<size_t>(at)];
    std::vector<Value> next, state;
    for (size_t k = 0; k < c.args.size(); ++k) {
      if (to.counted.contains(k)) continue;
      next.push_back(value(c.args[k]));
      state.push_back(to.state[k]);
    }
    next_state(next, state, to.depth);
  }

  // The end of a loop, and of those around it in whose tail position it is.
  void leave(const Value& v, int loop) {
    int to = loop;
    stop(loops_[static_cast<size_t>(to)]);
    while (loops_[static_cast<size_t>(to)].around >= 0) {
      to = loops_[static_cast<size_t>(to)].around;
      stop(loops_[static_cast<size_t>(to)]);
    }
    assign({v}, {loops_[static_cast<size_t>(to)].result});
  }

  const FunctionNode& f_;

  std::unique_ptr<LoopBlock> program_;

  std::vector<Loop> loops_;

  std::unordered_map<const Node*, Join> joins_;
  // Those of the blocks that are being composed whose bodies are composed later.
  std::vector<const LoopJoin*> opened_;
};

}  // namespace

ComposedKernel compose_loop(const FunctionNode& primitive, const std::string& name, KernelOf what) {
  return Composer(primitive, what).run(name);
}

}  // namespace relay
