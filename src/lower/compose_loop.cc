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
#include "lower/interface/compute_rule.h"
#include "lower/loop_count.h"
#include "lower/loop_exchanges.h"
#include "lower/loop_program.h"
#include "lower/loop_statements.h"
#include "lower/loop_writes.h"
#include "lower/written_over.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/passes/statements.h"
#include "tir/reduction_steps.h"
#include "tir/schedule_report.h"
#include "tir/while.h"

namespace relay {
namespace {

// A larger element is computed once, into memory.
constexpr size_t kMostNodesOfElement = 64;
// So many elements are copied as fast as a register says where others are.
constexpr int64_t kMostCopied = 64;
// What decides how often a loop runs is found through so many operators.
constexpr int kMostDepthOfBound = 8;

class Composer : private LoopStatements {
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

  // ---- Values

  Value parameter(const Type& type, std::vector<Buffer>& params) {
    if (auto* t = as<TupleTypeNode>(type)) {
      Value out{.is_tuple = true};
      for (const Type& f : t->fields) out.fields.push_back(parameter(f, params));
      return out;
    }
    auto& t = *as<TensorTypeNode>(type);
    Buffer b =
        tir::buffer("p" + std::to_string(params.size()), t.dtype.storage(), dims_.lower(t.shape));
    params.push_back(b);
    if (!t.shape.empty() || t.dtype.is_string()) return in_memory(b, -1);
    return {.scalar = keep(tir::load(b, {})), .dtype = b->dtype};
  }

  Value constant(const ConstantNode& c) {
    PrimExpr e = immediate(c);
    return {.scalar = e, .dtype = e->dtype};
  }

  const Value& value(const Expr& e) {
    if (auto* c = as<ConstantNode>(e)) {
      auto [it, fresh] = values_.try_emplace(c);
      if (fresh) it->second = constant(*c);
      return it->second;
    }
    auto it = values_.find(e.get());
    RELAY_CHECK(it != values_.end(), "a loop reads what is not computed before");
    return it->second;
  }

  // ---- Operators

  // The call with names for the sizes of its operands that an iteration computes.
  Call with_named_operands(const CallNode& c) {
    std::vector<Type> types;
    for (const Expr& a : c.args) {
      types.push_back(a->type);
      if (!has_open_sizes(a->type)) continue;
      std::vector<Value> parts;
      flatten(value(a), parts);
      types.back() =
          with_sizes_named(a->type, [&](size_t k, size_t d) { return parts[k].sizes[d]; });
    }
    return sizes_.with_operands(c, types);
  }

  Value operator_call(const LoopItem& item, const CallNode& given) {
    const bool open = has_open_sizes(given.type) ||
                      std::ranges::any_of(given.args, has_open_sizes, &ExprNode::type);
    Call c = open ? with_named_operands(given) : Call(&given);
    std::vector<Value> args;
    for (const Expr& a : given.args) flatten(value(a), args);
    if (writes_over(item.value)) return write(item, *c.get(), std::move(args));
    sizes_.check(*c.get());
    std::vector<tir::Tensor> inputs;
    for (const Value& v : args) inputs.push_back(handle(v));
    if (has_open_sizes(c->type)) c = sizes_.with_result_named(c, inputs);
    std::vector<Value> results;
    for (const tir::Tensor& t : compute_call(*c.get(), inputs, dims_))
      results.push_back(defined(t));
    if (has_open_sizes(given.type)) {
      const auto tensors = flatten_tensor_types(c->type);
      for (size_t k = 0; k < results.size(); ++k) results[k].sizes = (*tensors)[k]->shape;
    }
    if (is_assertion(item.value))
      emit(tir::check(results[0].scalar, RELAY_KERNEL_CHECK_FAILED, "an assertion fails"));
    size_t next = 0;
    return unflatten(given.type, results, next);
  }

  // The value of a tensor of a rule, those that it reads first.
  Value defined(const tir::Tensor& root) {
    std::vector<tir::Tensor> stack{root};
    while (!stack.empty()) {
      tir::Tensor t = stack.back();
      if (handles_.contains(t->buffer.get())) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      for (const tir::Tensor& i : t->inputs) {
        if (!handles_.contains(i->buffer.get())) stack.push_back(i);
      }
      if (stack.size() > before) continue;
      stack.pop_back();
      kept_.push_back(t);
      handles_.emplace(t->buffer.get(), t->imperative ? written(t) : computed(t));
    }
    return handles_.at(root->buffer.get());
  }

  Value computed(const tir::Tensor& t) {
    RELAY_CHECK(t->bodies.size() == 1);
    if (auto* r = as<tir::ReduceNode>(t->bodies[0])) return reduced(t, *r);
    PrimExpr e = analyzer_.simplify(PrimExpr::unchecked(resolved(t->bodies[0])));
    if (t->rank() == 0) return {.scalar = keep(e), .dtype = t->dtype};
    Value out{.element = e, .shape = t->shape(), .dtype = t->dtype};
    for (const tir::IterVar& axis : t->axes) out.axes.push_back(axis->var);
    size_t nodes = 0;
    bool calls = false;  // functions are not computed again for each reader
    post_order(
        e,
        [&](const Node& n) {
          ++nodes;
          calls |= isa<tir::CallNode>(&n);
        },
        family::tir_expr);
    return (calls || nodes > kMostNodesOfElement) && has_room(out) ? materialised(out) : out;
  }

  // A reduction, in registers.
  Value reduced(const tir::Tensor& t, const tir::ReduceNode& r) {
    PrimExpr to = slot(t->dtype), value;
    if (r.source.size() > 1) value = slot(r.source[1]->dtype);
    const tir::ReductionSteps steps = tir::reduction_steps(r, to, value);
    auto reduction = [&] {
      emit(steps.init);
      nest(r.axes, [&] { emit(Stmt::unchecked(resolved(steps.step))); });
    };
    if (t->rank() == 0) {
      reduction();
      return {.scalar = to, .dtype = t->dtype};
    }
    Buffer b = fresh(t->dtype, t->shape());
    nest(t->axes, [&] {
      reduction();
      Indices at;
      for (const tir::IterVar& axis : t->axes) at.push_back(axis->var);
      emit(tir::store(b, at, to));
    });
    return in_memory(b, depth_);
  }

  // The result of a rule that is statements.
  Value written(const tir::Tensor& t) {
    if (t->rank() > 0) {
      Buffer b = fresh(t->dtype, t->shape());
      emit(statements(t, in_memory(b, depth_)));
      return in_memory(b, depth_);
    }
    PrimExpr to = slot(t->dtype);
    Value out{.scalar = to, .dtype = t->dtype};
    Stmt body = statements(t, out);
    auto* only = as<tir::StoreNode>(body);
    auto* cast = only == nullptr ? nullptr : as<tir::CastNode>(only->value);
    auto* call =
        only == nullptr ? nullptr : as<tir::CallNode>(cast == nullptr ? only->value : cast->value);
    if (call == nullptr || call->name != "index_in") {
      emit(body);
      return out;
    }
    // The function that names an index outside is called for one that is, and the kernel ends.
    PrimExpr index = keep(call->args[0]), size = keep(call->args[1]);
    const PrimExpr zero = tir::index(0);
    const tir::Var place = named(tir::select(tir::lt(index, zero), index + size, index));
    // One condition for both: behind the call that names the index, the check is known to fail.
    const PrimExpr inside = tir::logical_and(tir::ge(place, zero), tir::lt(place, size));
    emit(tir::if_(tir::logical_not(inside),
                  tir::evaluate(tir::call("index_in", tir::kIndex, {index, size, call->args[2]}))));
    emit(tir::check(inside, RELAY_KERNEL_INDEX_OUT_OF_BOUNDS, "an index is out of bounds"));
    return {.scalar = tir::cast(t->dtype, place), .dtype = t->dtype};
  }

  // The statements of a rule, which write `to`.
  Stmt statements(const tir::Tensor& t, const Value& to) {
    std::vector<Buffer> inputs;
    for (const tir::Tensor& i : t->inputs) inputs.push_back(i->buffer);
    Stmt body = t->imperative(inputs, t->buffer);
    RELAY_CHECK(body != nullptr, "a loop's kernel takes no joint results: " + t->name);
    handles_[t->buffer.get()] = to;
    body = Stmt::unchecked(resolved(body));
    handles_.erase(t->buffer.get());
    return Stmt::unchecked(rewrite(
        body,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* s = as<tir::StoreNode>(rebuilt);
          if (s != nullptr && s->buffer == t->buffer) return stored(*s, to);
          return tir::without_empty(rebuilt);
        },
        family::tir_stmt));
  }

  // A store of an element to itself is left out, and with it the copy of a tensor that is written in place.
  static NodeRef stored(const tir::StoreNode& s, const Value& to) {
    if (to.scalar) {
      auto& l = *as<tir::LoadNode>(to.scalar);
      return tir::store(l.buffer, l.indices, s.value);
    }
    if (copies_element(s, to.buffer.get(), s.buffer.get())) return tir::seq({});
    return tir::store(to.buffer, s.indices, s.value, s.predicate);
  }

  // ---- Writes

  // Whether memory may be written in place when control is at a position: nothing reads it later. What is
  // computed from it where it is read later, is computed now.
  bool may_take(const Value& v, int position) {
    if (!v.buffer || v.owner < depth_) return false;
    std::vector<const Node*> late;
    for (const Node* reader : readers_[v.buffer.get()]) {
      const Value& other = values_.at(reader);
      auto reads_it = [&](int64_t field) {
        const bool whole = field == LoopProgram::kWhole;
        return reads(whole ? other : other.fields[static_cast<size_t>(field)], v.buffer.get());
      };
      if (!reader_.is_used_after(reader, position, excluded_, reads_it)) continue;
      // Behind a branch or a loop, memory that is filled inside it holds nothing.
      if (!other.element || regions_.at(reader) != region_ || !has_room(other)) return false;
      late.push_back(reader);
    }
    for (const Node* reader : late) bind(reader, materialised(values_.at(reader)));
    return true;
  }

  // What a rule does that writes over `data`.
  Stmt over(const CallNode& c, const Value& data, const std::vector<Value>& args) {
    std::vector<tir::Tensor> inputs{handle(data)};
    for (size_t i = 1; i < args.size(); ++i) inputs.push_back(handle(args[i]));
    tir::Tensor t = compute_call(c, inputs, dims_)[0];
    RELAY_CHECK(t->imperative != nullptr, "a rule that writes over its operand is statements");
    kept_.push_back(t);
    return statements(t, data);
  }

  Value write(const LoopItem& item, const CallNode& c, std::vector<Value> args) {
    sizes_.check(c);
    const Value data = args[0];
    std::vector<size_t> readers;
    for (size_t i = 1; data.buffer && i < args.size(); ++i) {
      if (!args[i].scalar && reads(args[i], data.buffer.get())) readers.push_back(i);
    }
    if (may_take(data, item.position)) {
      Stmt in_order = over(c, data, args);
      if (!readers.empty()) {
        in_order = with_own_elements(in_order, data.buffer, analyzer_);
        if (!in_order) {
          for (size_t i : readers) args[i] = with_lines_apart(data.buffer, args[i]);
          in_order = over_itself(over(c, data, args), data.buffer, data.dtype);
        }
      }
      const bool has_rooms =
          std::ranges::all_of(readers, [&](size_t i) { return has_room(args[i]); });
      if (in_order || has_rooms) {
        if (in_order) {
          emit(in_order);
        } else {
          for (size_t i : readers) args[i] = materialised(args[i]);
          emit(over(c, data, args));
        }
        return data;
      }
    }
    if (data.buffer && depth_ > 0) copies_.push_back(item.value->span.describe());
    const Value copy = materialised(data);
    emit(over(c, copy, args));
    return copy;
  }

  // The write of elements that are computed from the tensor itself, without memory for all of them; null: there is none.
  Stmt over_itself(const Stmt& write, const Buffer& buffer, DType dtype) {
    if (Stmt own = with_own_elements(write, buffer, analyzer_)) return own;
    return with_late_rows(write, buffer, analyzer_, [&](const std::vector<PrimExpr>& shape) {
      const auto room = sizes_.room(shape);
      return room ? fresh(dtype, *room) : nullptr;
    });
  }

  // The value with the lines that its elements read of a tensor in memory of their own:
  //
  //   v[i, j] - v[i, k] * v[m, j]   becomes   v[i, j] - t[i] * u[j]   for   t[i] = v[i, k], u[j] = v[m, j]
  Value with_lines_apart(const Buffer& buffer, Value v) {
    if (!v.element) return v;
    std::vector<const tir::LoadNode*> loads;
    bool plain = true;
    post_order(
        v.element,
        [&](const Node& n) {
          // What it chooses from may be no element.
          if (isa<tir::SelectNode>(&n)) plain = plain && !tir::uses(ref(n), buffer.get());
          auto* load = as<tir::LoadNode>(&n);
          if (load == nullptr || load->buffer != buffer) return;
          loads.push_back(load);
          plain = plain && !load->predicate &&
                  std::ranges::none_of(load->indices, [&](const PrimExpr& index) {
                    return tir::uses(index, buffer.get());
                  });
        },
        family::tir_expr);
    if (!plain) return v;
    NodeMap apart;
    for (const tir::LoadNode* load : loads) {
      Value line{.element = ref(*load), .dtype = buffer->dtype};
      PrimExpr is_read = tir::lt(tir::index(0), tir::index(1));
      Indices at;
      for (size_t d = 0; d < v.axes.size(); ++d) {
        if (tir::uses(ref(*load), v.axes[d].get())) {
          line.axes.push_back(v.axes[d]);
          line.shape.push_back(v.shape[d]);
          at.push_back(v.axes[d]);
        } else if (tir::as_int(v.shape[d]).value_or(0) <= 0) {
          is_read = tir::logical_and(is_read, tir::gt(v.shape[d], tir::index(0)));
        }
      }
      if (at.size() == v.axes.size() || !has_room(line)) continue;
      if (at.empty()) {
        line.axes.push_back(tir::var("one"));
        line.shape.push_back(tir::index(1));
        at.push_back(tir::index(0));
      }
      const Buffer memory = fresh(line.dtype, *sizes_.room(line.shape));
      emit(tir::if_(is_read, filling(memory, line)));
      apart.emplace(load, tir::load(memory, at));
    }
    if (!apart.empty()) v.element = tir::replace(v.element, apart);
    return v;
  }

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
    return around.back().first;
  }

  // How often a number of at least 0 can be reduced by another before it is 0 or less: always, by 0.
  static PrimExpr iterations(const PrimExpr& distance, const PrimExpr& by) {
    const PrimExpr zero = tir::index(0), one = tir::index(1);
    const PrimExpr some = tir::div(distance - 1, tir::max(by, one)) + 1;
    const PrimExpr all = tir::index(std::numeric_limits<int64_t>::max());
    return tir::select(tir::le(distance, zero), zero, tir::select(tir::le(by, zero), all, some));
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
    PrimExpr distance = c.step > 0 ? bound - begin : begin - bound;
    if (c.inclusive) distance = distance + 1;
    const int64_t step = std::abs(c.step);
    const PrimExpr by = c.by ? number(c.by) : nullptr;
    PrimExpr count = tir::max(distance, tir::index(0));
    if (step > 1) count = tir::div(count + (step - 1), tir::index(step));
    if (by) count = iterations(count, by);
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

  // ---- State that changes places

  bool is_local(const Buffer& b) const { return std::ranges::find(locals_, b) != locals_.end(); }

  // Whether copying so many elements takes longer than finding them through a register.
  static bool is_long(const std::vector<PrimExpr>& shape) {
    int64_t count = 1;
    for (const PrimExpr& d : shape) {
      auto size = tir::as_int(d);
      if (!size || (count *= std::max<int64_t>(*size, 1)) > kMostCopied) return true;
    }
    return false;
  }

  // Whether a state's memory may be exchanged for that of a value which nothing else is in the next iteration.
  bool may_exchange(const Buffer& place, const Value& v, const std::vector<Value>& all,
                    int depth) const {
    if (!v.buffer || v.owner < depth || !is_local(v.buffer) || !is_local(place)) return false;
    auto same = [](const PrimExpr& a, const PrimExpr& b) { return structural_equal(a, b); };
    return v.dtype == place->dtype && is_long(v.shape) &&
           std::ranges::equal(v.shape, place->shape, same) &&
           std::ranges::count(all, v.buffer, &Value::buffer) == 1;
  }

  // Gives the state of a loop its next values. Memory that holds one is exchanged for the memory of the state.
  void next_state(const std::vector<Value>& values, const std::vector<Value>& places, int depth) {
    std::vector<Value> from, to;
    for (const Value& v : values) flatten(v, from);
    for (const Value& p : places) flatten(p, to);
    struct Change {
      Buffer place;
      Value value;
      bool exchanged;
    };
    std::vector<Change> changes;
    for (size_t k = 0; k < to.size(); ++k) {
      if (!to[k].scalar && from[k].buffer != to[k].buffer)
        changes.push_back(
            {to[k].buffer, from[k], may_exchange(to[k].buffer, from[k], from, depth)});
    }
    if (std::ranges::none_of(changes, &Change::exchanged)) return assign(values, places);
    // What reads memory that changes places is computed before, into memory of its own.
    for (Change& c : changes) {
      const bool late = !c.exchanged && std::ranges::none_of(changes, [&](const Change& other) {
        return reads(c.value, other.place.get()) ||
               (other.exchanged && reads(c.value, other.value.buffer.get()));
      });
      if (c.exchanged || late) continue;
      c.value = materialised(c.value);
      c.exchanged = true;
    }
    // The buffer whose elements a buffer has, and the other way round.
    std::unordered_map<const Node*, Buffer> has, is_in;
    auto at = [](auto& map, const Buffer& b) -> Buffer& {
      return map.try_emplace(b.get(), b).first->second;
    };
    for (const Change& c : changes) {
      if (!c.exchanged) continue;
      const Buffer other = at(is_in, c.value.buffer);
      if (other == c.place) continue;
      const auto& [a, b] = exchanges_.join(c.place, other, [&] { return slot(tir::kIndex); });
      const tir::Var was = named(a);
      set(a, b);
      set(b, was);
      std::swap(at(has, c.place), at(has, other));
      at(is_in, at(has, c.place)) = c.place;
      at(is_in, at(has, other)) = other;
    }
    for (const Change& c : changes) {
      if (!c.exchanged) fill(c.place, c.value);
    }
    move(from, to);
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

  // Gives places their values, all at once. Tensors first: their elements may read registers.
  void assign(const std::vector<Value>& values, const std::vector<Value>& places) {
    std::vector<Value> from, to;
    for (const Value& v : values) flatten(v, from);
    for (const Value& p : places) flatten(p, to);
    struct Fill {
      Buffer place;
      Value value;
      Stmt over_itself = nullptr;
    };
    std::vector<Fill> fills;
    for (size_t k = 0; k < to.size(); ++k) {
      if (!to[k].scalar && from[k].buffer != to[k].buffer) fills.push_back({to[k].buffer, from[k]});
    }
    // What reads a place is put aside before any place is written, but for elements that are written one after the other.
    for (Fill& f : fills) {
      const bool reads_others = std::ranges::any_of(fills, [&](const Fill& other) {
        return other.place != f.place && reads(f.value, other.place.get());
      });
      if (!reads_others && !reads(f.value, f.place.get())) continue;
      if (!reads_others) f.over_itself = filling_itself(f.place, f.value);
      if (!f.over_itself) f.value = materialised(f.value);
    }
    for (const Fill& f : fills) {
      if (f.over_itself) {
        emit(f.over_itself);
      } else {
        fill(f.place, f.value);
      }
    }
    move(from, to);
  }

  // place = v, which reads it, without memory for all elements; null: there is no such way.
  Stmt filling_itself(const Buffer& place, const Value& v) {
    if (Stmt own = with_own_elements(filling(place, v), place, analyzer_)) return shared(own);
    const Stmt apart = filling(place, with_lines_apart(place, v));
    if (Stmt own = with_own_elements(apart, place, analyzer_)) return shared(own);
    return over_itself(apart, place, place->dtype);
  }

  // The numbers of an assignment.
  void move(const std::vector<Value>& from, const std::vector<Value>& to) {
    std::vector<std::pair<PrimExpr, PrimExpr>> moves;
    for (size_t k = 0; k < to.size(); ++k) {
      if (!to[k].scalar || from[k].scalar == to[k].scalar) continue;
      const bool is_state = std::ranges::any_of(
          to, [&](const Value& place) { return place.scalar && place.scalar == from[k].scalar; });
      moves.emplace_back(to[k].scalar, is_state ? keep(from[k].scalar) : from[k].scalar);
    }
    for (const auto& [place, v] : moves) set(place, v);
  }

  const FunctionNode& f_;

  LoopProgram reader_;

  std::unique_ptr<LoopBlock> program_;

  LoopExchanges exchanges_;

  std::vector<Loop> loops_;

  std::unordered_map<const Node*, Join> joins_;
  // Those of the blocks that are being composed whose bodies are composed later.
  std::vector<const LoopJoin*> opened_;

  // The places of stores in iterations that copy what they write to.
  std::vector<std::string> copies_;

  // Positions that control does not reach from here.
  std::vector<std::pair<int, int>> excluded_;
};

}  // namespace

ComposedKernel compose_loop(const FunctionNode& primitive, const std::string& name, KernelOf what) {
  return Composer(primitive, what).run(name);
}

}  // namespace relay
