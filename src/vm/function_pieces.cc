#include <algorithm>
#include <functional>
#include <numeric>

#include "vm/function_compiler.h"

namespace relay::vm {
namespace {

int64_t bytes_of(const Type& type) { return spec_of(*as<TensorTypeNode>(type)).byte_size(); }

std::vector<int64_t> shape_of(const Type& type) { return *as<TensorTypeNode>(type)->const_shape(); }

// The axis along which parts make up the whole: the first in which one differs from it, or, for
// tensors of lower rank (stack), the one that they lack.
size_t axis_of(const std::vector<int64_t>& whole, const std::vector<std::vector<int64_t>>& parts) {
  for (const std::vector<int64_t>& part : parts) {
    for (size_t d = 0; d < whole.size(); ++d) {
      std::vector<int64_t> without = whole;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(d));
      if (part.size() == whole.size() ? part[d] != whole[d] : part == without) return d;
    }
  }
  return 0;
}

// Whether parts along that axis follow one another without gaps.
bool is_outermost(const std::vector<int64_t>& whole, size_t axis) {
  return std::all_of(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(axis),
                     [](int64_t d) { return d == 1; });
}

int64_t product(const std::vector<int64_t>& shape, size_t from) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(), int64_t{1},
                         std::multiplies<>());
}

int64_t bytes_within(const TensorTypeNode& t, const std::vector<int64_t>& within) {
  std::vector<int64_t> shape = *t.const_shape();
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last = last * within[d] + shape[d] - 1;
  }
  return (last + 1) * static_cast<int64_t>(t.dtype.bytes());
}

bool begins_with(const CallNode& longer, const CallNode& shorter) {
  return longer.args.size() > shorter.args.size() &&
         std::equal(shorter.args.begin(), shorter.args.end(), longer.args.begin());
}

}  // namespace

void FunctionCompiler::find_dense() {
  auto of_kernel = [](const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* f = c == nullptr ? nullptr : primitive_of(*c);
    return f != nullptr && !is_view(*f) && !is_update(*f) && !has_open_size(*f);
  };
  post_order_if(
      f_->body,
      [](const Node& n) {
        auto* f = as<FunctionNode>(&n);
        return f == nullptr || !f->is_primitive();
      },
      [&](const Node& n) {
        auto* g = as<TupleGetItemNode>(&n);
        auto* l = as<LetNode>(&n);
        if (l != nullptr) {
          if (auto* part = as<TupleGetItemNode>(l->value)) {
            projections_[part->tuple.get()].push_back(l->var.get());
          }
          // Not the variable that it binds.
          for (const Expr& e : {l->value, l->body}) {
            if (isa<VarNode>(e)) dense_.insert(e.get());
          }
          return;
        }
        if (g != nullptr || of_kernel(n)) return;
        for_each_child(n, [&](const NodeRef& child) {
          if (isa<VarNode>(child)) dense_.insert(child.get());
        });
      },
      family::expr | family::pattern);
}

bool FunctionCompiler::read_by_kernels(const Node* v) const {
  auto kernels_only = [&](const Node* n) { return !dense_.contains(n) && !escapes_.contains(n); };
  auto parts = projections_.find(v);
  return kernels_only(v) && (parts == projections_.end() ||
                             std::all_of(parts->second.begin(), parts->second.end(), kernels_only));
}

void FunctionCompiler::find_joins() {
  std::unordered_set<const Node*> kernels;  // static tensors that kernels make here
  std::unordered_map<const Node*, const LetNode*> last_join;  // by its first operand
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
    std::vector<int64_t> whole = shape_of(f->body->type);
    std::vector<std::vector<int64_t>> parts;
    for (const Expr& a : c->args) parts.push_back(shape_of(a->type));
    bool is_stack = parts[0].size() != whole.size();
    size_t axis = axis_of(whole, parts);
    bool gaps = !is_outermost(whole, axis);
    auto may_have_gaps = [&](const Expr& e) {
      auto joined = joined_.find(e.get());
      return joined == joined_.end() ? read_by_kernels(e.get()) : joined->second.may_have_gaps;
    };
    Joined join{!is_stack && read_by_kernels(l->var.get())};
    std::vector<std::pair<const Node*, Position>> inside;
    int64_t begin = 0, bytes = 0;
    auto add = [&](const Expr& e) {
      bool fits =
          kernels.contains(e.get()) && !homes_.contains(e.get()) && (!gaps || may_have_gaps(e));
      if (fits) {
        inside.emplace_back(e.get(), Position{axis, begin});
        bytes += bytes_of(e->type);
        join.may_have_gaps &= may_have_gaps(e);
      }
      return fits;
    };
    // A join that this one continues is its first operand, in place of those that it has.
    auto before = last_join.find(c->args[0].get());
    if (before != last_join.end() && !is_stack) {
      const Var& shorter = before->second->var;
      const CallNode& its = *as<CallNode>(before->second->value);
      if (begins_with(*c, its) && add(shorter)) {
        join.continued = its.args.size();
        begin = shape_of(shorter->type)[axis];
      }
    }
    for (size_t i = join.continued; i < c->args.size(); ++i) {
      add(c->args[i]);
      begin += is_stack ? 1 : parts[i][axis];
    }
    // Kernels copy the others into the gaps, which pays when most of the value is there already.
    if (inside.empty() || (gaps && 2 * bytes < bytes_of(f->body->type))) continue;
    for (const auto& [part, position] : inside) homes_.emplace(part, Home{l->var, position});
    joined_.emplace(l->var.get(), join);
    last_join[c->args[0].get()] = l;
  }
}

FunctionCompiler::Place FunctionCompiler::piece(int64_t whole, const std::vector<int64_t>& around,
                                                const Type& part, const Position& at) {
  auto outer = pieces_.find(whole);
  bool in_gaps = outer != pieces_.end() && !outer->second.within.empty();
  std::vector<int64_t> memory = in_gaps ? outer->second.within : around;
  auto& type = *as<TensorTypeNode>(part);
  int64_t offset =
      at.begin * product(memory, at.axis + 1) * static_cast<int64_t>(type.dtype.bytes());
  if (!in_gaps && is_outermost(around, at.axis)) memory.clear();
  int64_t index = static_cast<int64_t>(buffers_.size());
  buffers_.push_back({memory.empty() ? bytes_of(part) : bytes_within(type, memory), step_, step_});
  pieces_.emplace(index, Piece{whole, offset, std::move(memory)});
  return Place{Place::kBuffer, index, {}};
}

FunctionCompiler::Place FunctionCompiler::buffer_for(const Var& v) {
  // The values that it is part of, from the innermost.
  std::vector<Home> around;
  const Node* at = v.get();
  for (auto home = homes_.find(at); home != homes_.end(); home = homes_.find(at)) {
    at = home->second.whole.get();
    around.push_back(home->second);
    if (joined_.at(at).buffer >= 0) break;
  }
  auto piece_of = [&](const Home& home, const Type& part) {
    return piece(joined_.at(home.whole.get()).buffer, shape_of(home.whole->type), part, home.at)
        .index;
  };
  for (size_t i = around.size(); i-- > 0;) {
    const Type& type = around[i].whole->type;
    int64_t& buffer = joined_.at(around[i].whole.get()).buffer;
    if (buffer >= 0) continue;
    buffer = i + 1 < around.size() ? piece_of(around[i + 1], type) : fresh(type, false, {}).index;
  }
  return Place{Place::kBuffer, piece_of(around.front(), v->type), {}};
}

FunctionCompiler::Place FunctionCompiler::emit_join(const LetNode& l, const CallNode& c) {
  const Joined& join = joined_.at(l.var.get());
  Place result{Place::kBuffer, join.buffer, {}};
  use(result);
  std::vector<int64_t> whole = shape_of(l.var->type);
  std::vector<std::vector<int64_t>> parts;
  for (const Expr& a : c.args) parts.push_back(shape_of(a->type));
  Position to{axis_of(whole, parts)};
  for (size_t i = 0; i < c.args.size(); ++i) {
    auto home = homes_.find(c.args[i].get());
    bool there = i < join.continued ||
                 (home != homes_.end() && home->second.whole == l.var && home->second.at == to);
    if (!there) {
      const Type& type = c.args[i]->type;
      copy(piece(join.buffer, whole, type, to), place_of(c.args[i]), type);
    }
    to.begin += parts[i].size() == whole.size() ? parts[i][to.axis] : 1;
  }
  return result;
}

void FunctionCompiler::copy(const Place& to, const Place& from, const Type& type) {
  std::vector<Operand> operands{operand(from), operand(to)};
  std::vector<std::vector<int64_t>> around = within(operands);
  if (around.empty()) {
    b_.copy(operands[1], operands[0]);
  } else {
    int32_t kernel = program_.lowered().copy(type);
    invoke(program_.kernel(kernel, {Span().describe(), ""}, around), std::move(operands), {});
  }
}

std::vector<std::vector<int64_t>> FunctionCompiler::within(
    const std::vector<Operand>& operands) const {
  std::vector<std::vector<int64_t>> shapes;
  bool gaps = false;
  for (const Operand& o : operands) {
    auto piece = o.kind == Operand::kArena ? pieces_.find(o.index) : pieces_.end();
    shapes.push_back(piece == pieces_.end() ? std::vector<int64_t>{} : piece->second.within);
    gaps |= !shapes.back().empty();
  }
  if (!gaps) shapes.clear();
  return shapes;
}

std::optional<FunctionCompiler::Place> FunctionCompiler::emit_cut(const LetNode& l,
                                                                  const CallNode& c,
                                                                  const FunctionNode& f) {
  if (memory_of(f) != Memory::Cut || escapes_.contains(l.var.get())) return std::nullopt;
  Place source = place_of(c.args[0]);
  auto types = flatten_tensor_types(f.body->type);
  if (source.kind != Place::kBuffer || !types) return std::nullopt;
  const Expr& uncut = as<CallNode>(f.body)->args[0];
  std::vector<int64_t> whole = shape_of(uncut->type);
  std::vector<std::vector<int64_t>> parts;
  for (const TensorType& t : *types) parts.push_back(*t->const_shape());
  Position at{axis_of(whole, parts)};
  auto outer = pieces_.find(source.index);
  bool in_gaps = outer != pieces_.end() && !outer->second.within.empty();
  bool gaps = in_gaps || !is_outermost(whole, at.axis);
  // Behind a change of shape the gaps are elsewhere.
  if ((gaps && !read_by_kernels(l.var.get())) || (in_gaps && uncut != f.params[0])) {
    return std::nullopt;
  }
  Place out{Place::kTuple, 0, {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    out.fields.push_back(piece(source.index, whole, (*types)[i], at));
    at.begin += parts[i][at.axis];
  }
  return out;
}

void FunctionCompiler::reuse_operands() {
  for (const Reuse& r : reuses_) {
    // The memory of its own that the operand is in, by then perhaps another result's.
    int64_t at = r.operand, offset = 0;
    for (auto part = pieces_.find(at); part != pieces_.end(); part = pieces_.find(at)) {
      offset += part->second.offset;
      at = part->second.whole;
    }
    BufferLifetime& operand = buffers_[static_cast<size_t>(at)];
    const BufferLifetime& result = buffers_[static_cast<size_t>(r.result)];
    if (offset != 0 || operand.bytes != result.bytes || operand.last != r.step ||
        result.first != r.step || !pieces_.emplace(r.result, Piece{at, 0, {}}).second) {
      continue;
    }
    operand.last = result.last;
    ++report_.reused;
  }
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
  reuse_operands();
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
