#include <algorithm>

#include "vm/function_compiler.h"

namespace relay::vm {
namespace {

// What kernels may expect of the address of an operand.
constexpr int64_t kAlignment = 64;

int64_t bytes_of(const Type& type) { return spec_of(*as<TensorTypeNode>(type)).byte_size(); }

}  // namespace

void FunctionCompiler::find_joins() {
  std::unordered_set<const Node*> kernels;  // static tensors that kernels make here
  const Expr* at = &f_->body;
  for (auto* l = as<LetNode>(*at); l != nullptr; l = as<LetNode>(*at)) {
    at = &l->body;
    auto* c = as<CallNode>(l->value);
    auto* f = c == nullptr ? nullptr : primitive_of(*c);
    if (f == nullptr || escapes_.contains(l->var.get()) || !is_static_tensor(f->body->type) ||
        is_view(*f) || scalar_dtype(f->body->type)) {
      continue;
    }
    kernels.insert(l->var.get());
    if (memory_of(*f) != Memory::Joined) continue;
    bool aligned = std::all_of(c->args.begin(), c->args.end(),
                               [](const Expr& a) { return bytes_of(a->type) % kAlignment == 0; });
    if (!aligned) continue;
    int64_t offset = 0;
    for (const Expr& a : c->args) {
      // The others are copied.
      if (kernels.contains(a.get()) && homes_.emplace(a.get(), Home{l->var, offset}).second) {
        joined_.emplace(l->var.get(), -1);
      }
      offset += bytes_of(a->type);
    }
  }
}

FunctionCompiler::Place FunctionCompiler::piece(int64_t whole, int64_t offset, int64_t bytes) {
  int64_t index = static_cast<int64_t>(buffers_.size());
  buffers_.push_back({bytes, step_, step_});
  pieces_.emplace(index, Piece{whole, offset});
  return Place{Place::kBuffer, index, {}};
}

FunctionCompiler::Place FunctionCompiler::buffer_for(const Var& v) {
  // The values that it is part of, from the innermost; joins of joins are short chains.
  std::vector<Home> around;
  const Node* at = v.get();
  for (auto home = homes_.find(at); home != homes_.end(); home = homes_.find(at)) {
    at = home->second.whole.get();
    around.push_back(home->second);
    if (joined_.at(at) >= 0) break;
  }
  int64_t whole = -1;
  for (size_t i = around.size(); i-- > 0;) {
    int64_t& buffer = joined_.at(around[i].whole.get());
    if (buffer < 0) {
      int64_t bytes = bytes_of(around[i].whole->type);
      buffer = i + 1 < around.size() ? piece(whole, around[i + 1].offset, bytes).index
                                     : fresh(around[i].whole->type, false, {}).index;
    }
    whole = buffer;
  }
  return piece(whole, around.front().offset, bytes_of(v->type));
}

FunctionCompiler::Place FunctionCompiler::emit_join(const LetNode& l, const CallNode& c) {
  int64_t whole = joined_.at(l.var.get());
  Place result{Place::kBuffer, whole, {}};
  use(result);
  int64_t offset = 0;
  for (const Expr& a : c.args) {
    int64_t bytes = bytes_of(a->type);
    auto home = homes_.find(a.get());
    if (home == homes_.end() || home->second.whole != l.var || home->second.offset != offset) {
      b_.copy(operand(piece(whole, offset, bytes), a->type), operand(place_of(a), a->type));
    }
    offset += bytes;
  }
  return result;
}

std::optional<FunctionCompiler::Place> FunctionCompiler::emit_cut(const LetNode& l,
                                                                  const CallNode& c,
                                                                  const FunctionNode& f) {
  if (memory_of(f) != Memory::Cut || escapes_.contains(l.var.get())) return std::nullopt;
  Place source = place_of(c.args[0]);
  if (source.kind != Place::kBuffer) return std::nullopt;
  auto parts = flatten_tensor_types(f.body->type);
  if (!parts) return std::nullopt;
  Place out{Place::kTuple, 0, {}};
  int64_t offset = 0;
  for (const TensorType& t : *parts) {
    if (offset % kAlignment != 0) return std::nullopt;
    int64_t bytes = bytes_of(t);
    out.fields.push_back(piece(source.index, offset, bytes));
    offset += bytes;
  }
  return out;
}

MemoryPlan FunctionCompiler::plan_buffers() {
  // A whole lives as long as any of its parts; parts come after what they are part of.
  for (size_t i = buffers_.size(); i-- > 0;) {
    auto part = pieces_.find(static_cast<int64_t>(i));
    if (part == pieces_.end()) continue;
    BufferLifetime& whole = buffers_[static_cast<size_t>(part->second.whole)];
    whole.first = std::min(whole.first, buffers_[i].first);
    whole.last = std::max(whole.last, buffers_[i].last);
  }
  std::vector<BufferLifetime> wholes;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!pieces_.contains(static_cast<int64_t>(i))) wholes.push_back(buffers_[i]);
  }
  MemoryPlan planned = plan_memory(wholes), out;
  out.arena_bytes = planned.arena_bytes;
  out.lower_bound = planned.lower_bound;
  size_t next = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    auto part = pieces_.find(static_cast<int64_t>(i));
    out.offsets.push_back(part == pieces_.end()
                              ? planned.offsets[next++]
                              : out.offsets[static_cast<size_t>(part->second.whole)] +
                                    part->second.offset);
  }
  return out;
}

}  // namespace relay::vm
