#include "lower/loop_statements.h"

#include "base/codes/lowering.h"
#include "lower/loop_program.h"
#include "lower/loop_writes.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// Variables that are open at once; each is a statement around the ones behind it.
constexpr int kMostLets = 150;
constexpr int kMostNodesOfIndex = 9;
constexpr int kMostNodesOfNumber = 32;

}  // namespace

using tir::Buffer;
using tir::PrimExpr;
using tir::Stmt;
using Value = LoopValue;

PrimExpr LoopStatements::slot(DType dtype) {
  File& file = files_[dtype.to_string()];
  if (!file.buffer) {
    file.buffer = tir::buffer("r_" + dtype.to_string(), dtype, {tir::index(int64_t{1} << 30)},
                              tir::Scope::Register);
  }
  return tir::load(file.buffer, {tir::index(file.count++)});
}

void LoopStatements::set(const PrimExpr& slot, const PrimExpr& value) {
  auto& l = *as<tir::LoadNode>(slot);
  emit(tir::store(l.buffer, l.indices, value));
}

PrimExpr LoopStatements::keep(const PrimExpr& e) {
  if (isa<tir::IntImmNode>(e) || isa<tir::FloatImmNode>(e) || is_index(e)) return e;
  if (lets_open_ < kMostLets) return named(e);
  PrimExpr out = slot(e->dtype);
  set(out, e);
  return out;
}

tir::Var LoopStatements::named(const PrimExpr& e) {
  const bool has_one = is_of_variables(e);
  const uint64_t hash = has_one ? structural_hash(e) : 0;
  if (auto it = number_of_.find(hash); has_one && it != number_of_.end()) {
    if (structural_equal(it->second.value, e)) return it->second.var;
  }
  tir::Var v = tir::var("v" + std::to_string(lets_made_++), e->dtype);
  lets_.push_back({out_.size(), v, e});
  if (has_one && number_of_.try_emplace(hash, lets_.back()).second) numbers_.push_back(hash);
  analyzer_.define(v, e);
  ++lets_open_;
  return v;
}

void LoopStatements::forget_numbers(size_t from) {
  for (; numbers_.size() > from; numbers_.pop_back()) number_of_.erase(numbers_.back());
}

bool LoopStatements::is_of_variables(const PrimExpr& e) {
  int nodes = 0;
  bool only = e->dtype.is_int();
  post_order(
      e,
      [&](const Node& n) {
        only = only &&
               (isa<tir::VarNode>(&n) || isa<tir::IntImmNode>(&n) || isa<tir::BinaryNode>(&n) ||
                isa<tir::CastNode>(&n) || isa<tir::SelectNode>(&n));
        ++nodes;
      },
      family::tir_expr);
  return only && nodes <= kMostNodesOfNumber;
}

bool LoopStatements::is_index(const PrimExpr& e) {
  if (!e->dtype.is_int()) return false;
  int nodes = 0;
  bool plain = true;
  post_order(
      e,
      [&](const Node& n) {
        auto* b = as<tir::BinaryNode>(&n);
        const bool multiple = b != nullptr && b->op == tir::BinaryOp::Mul &&
                              (isa<tir::IntImmNode>(b->a) || isa<tir::IntImmNode>(b->b));
        plain = plain &&
                (isa<tir::VarNode>(&n) || isa<tir::IntImmNode>(&n) || isa<tir::CastNode>(&n) ||
                 multiple ||
                 (b != nullptr && (b->op == tir::BinaryOp::Add || b->op == tir::BinaryOp::Sub)));
        ++nodes;
      },
      family::tir_expr);
  return plain && nodes <= kMostNodesOfIndex;
}

Buffer LoopStatements::fresh(DType dtype, const std::vector<PrimExpr>& shape) {
  locals_.push_back(tir::buffer("t" + std::to_string(locals_.size()), dtype, shape));
  return locals_.back();
}

Value LoopStatements::in_memory(const Buffer& b, int owner) {
  return {.buffer = b, .owner = owner, .shape = b->shape, .dtype = b->dtype};
}

void LoopStatements::emit(Stmt s) { out_.push_back(std::move(s)); }

Stmt LoopStatements::joined(std::vector<Stmt> stmts, const std::vector<Named>& lets) {
  for (size_t k = lets.size(); k-- > 0;) {
    const auto from = stmts.begin() + static_cast<std::ptrdiff_t>(lets[k].at);
    if (from == stmts.end()) continue;
    Stmt inside = tir::let_stmt(lets[k].var, lets[k].value, tir::seq({from, stmts.end()}));
    stmts.erase(from, stmts.end());
    stmts.push_back(inside);
  }
  return tir::seq(std::move(stmts));
}

void LoopStatements::flatten(const Value& v, std::vector<Value>& out) {
  if (!v.is_tuple) return out.push_back(v);
  for (const Value& f : v.fields) flatten(f, out);
}

void LoopStatements::memory_of(const Value& v, const std::function<void(const Node*)>& visit) {
  std::vector<Value> parts;
  flatten(v, parts);
  for (const Value& p : parts) {
    if (p.buffer) visit(p.buffer.get());
    if (!p.element) continue;
    post_order(
        p.element,
        [&](const Node& n) {
          if (auto* l = as<tir::LoadNode>(&n)) visit(l->buffer.get());
        },
        family::tir_expr);
  }
}

bool LoopStatements::reads(const Value& v, const Node* buffer) {
  bool found = false;
  memory_of(v, [&](const Node* b) { found |= b == buffer; });
  return found;
}

void LoopStatements::bind(const Node* var, Value v) {
  memory_of(v, [&](const Node* b) { readers_[b].push_back(var); });
  values_[var] = std::move(v);
  regions_.try_emplace(var, region_);
}

PrimExpr LoopStatements::read(const Value& v, const Indices& at) const {
  if (v.scalar) return v.scalar;
  if (v.buffer) return tir::load(v.buffer, at);
  NodeMap map;
  for (size_t d = 0; d < v.axes.size(); ++d) map[v.axes[d].get()] = at[d];
  return tir::replace(v.element, map);
}

Stmt LoopStatements::filling(const Buffer& buffer, const Value& v) const {
  Indices at;
  const std::vector<PrimExpr>& shape = v.sizes.empty() ? buffer->shape : v.shape;
  for (size_t d = 0; d < shape.size(); ++d) at.push_back(tir::var("i" + std::to_string(d)));
  Stmt body = tir::store(buffer, at, read(v, at));
  for (size_t d = at.size(); d-- > 0;) {
    body = tir::for_(tir::Var::unchecked(at[d]), tir::index(0), shape[d], body);
  }
  return body;
}

void LoopStatements::fill(const Buffer& buffer, const Value& v) {
  emit(shared(filling(buffer, v)));
}

Stmt LoopStatements::shared(const Stmt& nest) const {
  return loops_around_ > 0 ? on_threads(nest) : nest;
}

bool LoopStatements::has_room(const Value& v) { return sizes_.room(v.shape).has_value(); }

Value LoopStatements::materialised(const Value& v) {
  const auto room = sizes_.room(v.shape);
  if (!room) {
    throw UserError(Diagnostic(codes::lower_unsupported, {},
                               "the kernel of a loop stores a row of which nothing bounds the size")
                        .help("take the row from an array: x[:n]"));
  }
  Buffer b = fresh(v.dtype, *room);
  fill(b, v);
  Value out = in_memory(b, depth_);
  out.shape = v.shape;
  out.sizes = v.sizes;
  return out;
}

NodeRef LoopStatements::resolved(const NodeRef& node) {
  return rewrite(
      node,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* l = as<tir::LoadNode>(rebuilt);
        if (l == nullptr) return rebuilt;
        auto it = handles_.find(l->buffer.get());
        return it == handles_.end() ? rebuilt : NodeRef(read(it->second, l->indices));
      },
      family::tir_expr | family::tir_stmt);
}

tir::Tensor LoopStatements::handle(const Value& v) {
  tir::Tensor t = tir::placeholder("v" + std::to_string(handles_.size()), v.dtype, v.shape);
  handles_.emplace(t->buffer.get(), v);
  kept_.push_back(t);
  return t;
}

Value LoopStatements::unflatten(const Type& type, const std::vector<Value>& parts, size_t& next) {
  auto* t = as<TupleTypeNode>(type);
  if (t == nullptr) return parts[next++];
  Value out{.is_tuple = true};
  for (const Type& f : t->fields) out.fields.push_back(unflatten(f, parts, next));
  return out;
}

}  // namespace relay
