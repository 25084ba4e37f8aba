#include "lower/loop_operations.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "ir/op.h"
#include "ir/open_sizes.h"
#include "lower/compose_loop.h"
#include "lower/interface/compute_rule.h"
#include "lower/loop_writes.h"
#include "lower/written_over.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/passes/statements.h"
#include "tir/reduction_steps.h"

namespace relay {
namespace {

// A larger element is computed once, into memory.
constexpr size_t kMostNodesOfElement = 64;

}  // namespace

using tir::Buffer;
using tir::Indices;
using tir::NodeMap;
using tir::PrimExpr;
using tir::Stmt;
using Value = LoopValue;

Value LoopOperations::parameter(const Type& type, std::vector<Buffer>& params) {
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

Value LoopOperations::constant(const ConstantNode& c) {
  PrimExpr e = immediate(c);
  return {.scalar = e, .dtype = e->dtype};
}

const Value& LoopOperations::value(const Expr& e) {
  if (auto* c = as<ConstantNode>(e)) {
    auto [it, fresh] = values_.try_emplace(c);
    if (fresh) it->second = constant(*c);
    return it->second;
  }
  auto it = values_.find(e.get());
  RELAY_CHECK(it != values_.end(), "a loop reads what is not computed before");
  return it->second;
}

Call LoopOperations::with_named_operands(const CallNode& c) {
  std::vector<Type> types;
  for (const Expr& a : c.args) {
    types.push_back(a->type);
    if (!has_open_sizes(a->type)) continue;
    std::vector<Value> parts;
    flatten(value(a), parts);
    types.back() = with_sizes_named(a->type, [&](size_t k, size_t d) { return parts[k].sizes[d]; });
  }
  return sizes_.with_operands(c, types);
}

Value LoopOperations::operator_call(const LoopItem& item, const CallNode& given) {
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
  for (const tir::Tensor& t : compute_call(*c.get(), inputs, dims_)) results.push_back(defined(t));
  if (has_open_sizes(given.type)) {
    const auto tensors = flatten_tensor_types(c->type);
    for (size_t k = 0; k < results.size(); ++k) results[k].sizes = (*tensors)[k]->shape;
  }
  if (is_assertion(item.value))
    emit(tir::check(results[0].scalar, RELAY_KERNEL_CHECK_FAILED, "an assertion fails"));
  size_t next = 0;
  return unflatten(given.type, results, next);
}

Value LoopOperations::defined(const tir::Tensor& root) {
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

Value LoopOperations::computed(const tir::Tensor& t) {
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

Value LoopOperations::reduced(const tir::Tensor& t, const tir::ReduceNode& r) {
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

Value LoopOperations::written(const tir::Tensor& t) {
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

Stmt LoopOperations::statements(const tir::Tensor& t, const Value& to) {
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

NodeRef LoopOperations::stored(const tir::StoreNode& s, const Value& to) {
  if (to.scalar) {
    auto& l = *as<tir::LoadNode>(to.scalar);
    return tir::store(l.buffer, l.indices, s.value);
  }
  if (copies_element(s, to.buffer.get(), s.buffer.get())) return tir::seq({});
  return tir::store(to.buffer, s.indices, s.value, s.predicate);
}

bool LoopOperations::may_take(const Value& v, int position) {
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

Stmt LoopOperations::over(const CallNode& c, const Value& data, const std::vector<Value>& args) {
  std::vector<tir::Tensor> inputs{handle(data)};
  for (size_t i = 1; i < args.size(); ++i) inputs.push_back(handle(args[i]));
  tir::Tensor t = compute_call(c, inputs, dims_)[0];
  RELAY_CHECK(t->imperative != nullptr, "a rule that writes over its operand is statements");
  kept_.push_back(t);
  return statements(t, data);
}

Value LoopOperations::write(const LoopItem& item, const CallNode& c, std::vector<Value> args) {
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

Stmt LoopOperations::over_itself(const Stmt& write, const Buffer& buffer, DType dtype) {
  if (Stmt own = with_own_elements(write, buffer, analyzer_)) return own;
  return with_late_rows(write, buffer, analyzer_, [&](const std::vector<PrimExpr>& shape) {
    const auto room = sizes_.room(shape);
    return room ? fresh(dtype, *room) : nullptr;
  });
}

Value LoopOperations::with_lines_apart(const Buffer& buffer, Value v) {
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

}  // namespace relay
