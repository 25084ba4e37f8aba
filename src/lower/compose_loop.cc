#include "lower/compose_loop.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "node/structural.h"
#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/while.h"

namespace relay {
namespace {

using tir::Buffer;
using tir::DType;
using tir::PrimExpr;
using tir::Stmt;
using Indices = tir::Indices;

constexpr uint32_t kTir = family::tir_stmt | family::tir_expr | family::tir_other;
// A larger element is computed once, into memory.
constexpr size_t kMostNodesOfElement = 64;

size_t count_of_tensors(const Type& type) { return flatten_tensor_types(type)->size(); }

// ---- The program as blocks ---------------------------------------------------------------------

struct Block;

// What a Let of a block computes.
struct Item {
  Var var;
  Expr value;
  int position = 0;
  // Of an If; of the call that enters a loop: its function's body.
  std::unique_ptr<Block> then_block{}, else_block{}, body{};
  const FunctionNode* loop = nullptr;
  // Positions [first, second) of the else branch.
  std::pair<int, int> else_range{};
};

struct Block {
  std::vector<Item> items;
  Expr result;
  bool ends_in_tail() const { return !items.empty() && result == items.back().var; }
};

// Whether the rule is statements that begin with a copy of the first operand and then write over parts.
bool writes_over(const Expr& e) {
  return is_call_to(e, "update_slice") || is_call_to(e, "scatter_nd") ||
         is_call_to(e, "scatter_elements");
}

// Reads the program, puts writes behind what reads the tensor they write to, and numbers what is left.
class Reader {
 public:
  std::unique_ptr<Block> read(const Expr& body) {
    std::unique_ptr<Block> out = parse(body);
    number(*out, {});
    return out;
  }

  // A tensor that a value is, unless it is written to a place of its own: a variable and one of the
  // tensors of its type.
  using Root = std::pair<const Node*, size_t>;
  // Of each tensor of a variable.
  const std::vector<Root>& roots(const Node* v) {
    auto& out = roots_[v];
    if (out.empty()) {
      const size_t count = count_of_tensors(static_cast<const ExprNode*>(v)->type);
      for (size_t k = 0; k < count; ++k) out.emplace_back(v, k);
    }
    return out;
  }

  // Whether a variable is read behind a position, but for the ranges in which control is not.
  bool is_used_after(const Node* v, int position,
                     const std::vector<std::pair<int, int>>& excluded) const {
    auto it = uses_.find(v);
    if (it == uses_.end()) return false;
    auto at = std::ranges::upper_bound(it->second, position);
    return std::any_of(at, it->second.end(), [&](int use) {
      return std::ranges::none_of(
          excluded, [&](const auto& range) { return range.first <= use && use < range.second; });
    });
  }

 private:
  // A kernel is nested as deep as the pass that made it allows.
  std::unique_ptr<Block> parse(Expr e) {
    auto out = std::make_unique<Block>();
    for (; isa<LetNode>(e); e = as<LetNode>(e)->body) {
      auto& l = *as<LetNode>(e);
      if (auto* f = as<FunctionNode>(l.value)) {
        functions_.emplace(l.var.get(), f);
        continue;
      }
      Item item{.var = l.var, .value = l.value};
      if (auto* i = as<IfNode>(l.value)) {
        item.then_block = parse(i->true_branch);
        item.else_block = parse(i->false_branch);
      } else if (auto* c = as<CallNode>(l.value)) {
        auto f = functions_.find(c->op.get());
        // A function is entered once; the other calls of it go on with it.
        if (f != functions_.end() && open_.insert(c->op.get()).second) {
          item.loop = f->second;
          item.body = parse(f->second->body);
        }
      }
      out->items.push_back(std::move(item));
    }
    out->result = e;
    delay_writes(*out);
    return out;
  }

  // The variables that an item reads, those of the blocks inside included.
  static void variables_of(const Item& item, std::unordered_set<const Node*>& out) {
    post_order(
        item.value,
        [&](const Node& n) {
          if (isa<VarNode>(&n)) out.insert(&n);
        },
        family::expr | family::pattern);
    if (item.loop == nullptr) return;
    post_order(
        item.loop->body,
        [&](const Node& n) {
          if (isa<VarNode>(&n)) out.insert(&n);
        },
        family::expr | family::pattern);
  }

  static bool is_late(const Item& item) {
    auto tensors = flatten_tensor_types(item.value->type);
    const bool scalars =
        std::ranges::all_of(*tensors, [](const TensorType& t) { return t->shape.empty(); });
    return item.loop != nullptr || writes_over(item.value) || (item.then_block && !scalars);
  }

  // Whatever does not wait for a write comes before it. Writes keep their order.
  static void delay_writes(Block& block) {
    std::vector<Item>& items = block.items;
    const bool tail = block.ends_in_tail();
    const size_t count = items.size() - (tail ? 1 : 0);
    std::unordered_map<const Node*, size_t> made;
    for (size_t i = 0; i < count; ++i) made.emplace(items[i].var.get(), i);
    std::vector<std::vector<size_t>> users(count);
    std::vector<size_t> waits(count);
    for (size_t i = 0; i < count; ++i) {
      std::unordered_set<const Node*> read;
      variables_of(items[i], read);
      for (const Node* v : read) {
        auto it = made.find(v);
        if (it == made.end() || it->second == i) continue;
        users[it->second].push_back(i);
        ++waits[i];
      }
    }
    std::map<size_t, bool> early, late;  // what is ready, in the order of the program
    auto ready = [&](size_t i) { (is_late(items[i]) ? late : early).emplace(i, true); };
    for (size_t i = 0; i < count; ++i) {
      if (waits[i] == 0) ready(i);
    }
    std::vector<Item> out;
    while (!early.empty() || !late.empty()) {
      auto& from = early.empty() ? late : early;
      const size_t i = from.begin()->first;
      from.erase(from.begin());
      for (size_t user : users[i]) {
        if (--waits[user] == 0) ready(user);
      }
      out.push_back(std::move(items[i]));
    }
    if (tail) out.push_back(std::move(items.back()));
    RELAY_CHECK(out.size() == items.size(), "a block of a loop depends on itself");
    items = std::move(out);
  }

  // What the results of a loop are, where it ends in several places.
  struct Leaves {
    std::vector<Root> roots;
    bool any = false;
    void add(const std::vector<Root>& more) {
      if (!any) {
        roots = more;
      } else {
        for (size_t k = 0; k < roots.size(); ++k) {
          if (roots[k] != more[k]) roots[k] = {nullptr, 0};
        }
      }
      any = true;
    }
  };

  void use(const Expr& e) {
    if (isa<VarNode>(e)) uses_[e.get()].push_back(next_);
  }

  std::vector<Root> roots_of(const Expr& e) {
    if (isa<VarNode>(e)) return roots(e.get());
    return std::vector<Root>(count_of_tensors(e->type), Root{nullptr, 0});
  }

  // `leaves`: those of the loops in whose tail position the block is, innermost first.
  void number(Block& block, std::vector<Leaves*> leaves) {
    for (size_t i = 0; i < block.items.size(); ++i) {
      Item& item = block.items[i];
      const bool tail = i + 1 == block.items.size() && block.ends_in_tail() && !leaves.empty();
      item.position = ++next_;
      for_each_child(*item.value.get(), [&](const NodeRef& child) {
        if (auto* v = as<VarNode>(child)) use(ref(*v));
      });
      std::vector<Root>& mine = roots_[item.var.get()];
      if (item.then_block) {
        const std::vector<Leaves*> inside = tail ? leaves : std::vector<Leaves*>{};
        number(*item.then_block, inside);
        const int begin = next_ + 1;
        number(*item.else_block, inside);
        item.else_range = {begin, next_ + 1};
        if (tail) return;
        mine = roots_of(item.then_block->result);
        const std::vector<Root> other = roots_of(item.else_block->result);
        for (size_t k = 0; k < mine.size(); ++k) {
          if (mine[k] != other[k]) mine[k] = {item.var.get(), k};
        }
      } else if (item.loop != nullptr) {
        Leaves own;
        number(*item.body, {&own});
        mine = results_of(item, own);
        if (tail) leaves[0]->add(mine);
        if (tail) return;
      } else if (auto* c = as<CallNode>(item.value); c != nullptr && open_.contains(c->op.get())) {
        if (tail) return;
      } else if (writes_over(item.value)) {
        mine = roots_of(as<CallNode>(item.value)->args[0]);
      } else if (auto* t = as<TupleNode>(item.value)) {
        for (const Expr& f : t->fields) {
          const std::vector<Root> more = roots_of(f);
          mine.insert(mine.end(), more.begin(), more.end());
        }
      } else if (auto* g = as<TupleGetItemNode>(item.value)) {
        const std::vector<Root> all = roots_of(g->tuple);
        size_t first = 0;
        for (int64_t f = 0; f < g->index; ++f) {
          first +=
              count_of_tensors(as<TupleTypeNode>(g->tuple->type)->fields[static_cast<size_t>(f)]);
        }
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        mine.assign(begin, begin + static_cast<std::ptrdiff_t>(count_of_tensors(g->type)));
      }
      for (size_t k = 0; k < mine.size(); ++k) {
        if (mine[k].first == nullptr) mine[k] = {item.var.get(), k};
      }
      if (mine.empty()) roots(item.var.get());
    }
    ++next_;
    use(block.result);
    if (!leaves.empty()) leaves[0]->add(roots_of(block.result));
  }

  // What a loop gives is what it was given where each of its ends gives that part of its state.
  std::vector<Root> results_of(const Item& item, const Leaves& leaves) {
    std::vector<Root> out = leaves.roots;
    out.resize(count_of_tensors(item.value->type), Root{nullptr, 0});
    auto& args = as<CallNode>(item.value)->args;
    for (Root& r : out) {
      Root given{nullptr, 0};
      for (size_t k = 0; k < args.size(); ++k) {
        if (item.loop->params[k].get() == r.first) given = roots_of(args[k])[r.second];
      }
      r = given;
    }
    return out;
  }

  std::unordered_map<const Node*, const FunctionNode*> functions_;
  std::unordered_set<const Node*> open_;
  std::unordered_map<const Node*, std::vector<int>> uses_;
  std::unordered_map<const Node*, std::vector<Root>> roots_;
  int next_ = 0;
};

// ---- Values ------------------------------------------------------------------------------------

// What a variable stands for: a number, a tensor in memory, a tensor whose elements are computed
// where they are read, or a tuple of such.
struct Value {
  PrimExpr scalar{};
  Buffer buffer{};
  // The depth of the loop whose iterations may write to the memory; -1: none may.
  int owner = -1;
  std::vector<tir::Var> axes{};
  PrimExpr element{};
  std::vector<PrimExpr> shape{};
  DType dtype{};
  bool is_tuple = false;
  std::vector<Value> fields{};
};

class Composer {
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
      const bool own = v.buffer && std::ranges::find(locals_, v.buffer) != locals_.end() &&
                       !final.contains(v.buffer.get());
      if (own) {
        final.emplace(v.buffer.get(), out);
      } else {
        fill(out, v);
      }
    }
    for (auto& [dtype, file] : files_) {
      Buffer exact = tir::buffer(file.buffer->name, file.buffer->dtype, {tir::index(file.count)},
                                 file.buffer->scope);
      final.emplace(file.buffer.get(), exact);
      locals_.push_back(exact);
    }
    Stmt body = tir::replace(tir::seq(std::move(out_)), final);
    for (const Buffer& b : locals_) {
      if (!final.contains(b.get())) body = tir::allocate(b, body);
    }
    ComposedKernel out;
    std::vector<tir::Var> dims;
    for (const auto& [size, variable] : dims_.dims()) {
      out.dims.push_back(size);
      dims.push_back(variable);
    }
    out.func = make<tir::PrimFuncNode>([&](tir::PrimFuncNode& n) {
      n.name = name;
      n.params = params;
      n.num_inputs = static_cast<int64_t>(inputs);
      n.dims = dims;
      n.body = body;
    });
    return out;
  }

 private:
  using NodeMap = tir::NodeMap;

  // A loop that is being composed.
  struct Loop {
    const Node* var = nullptr;
    std::vector<Value> state;
    PrimExpr running;
    Value result;
    // The loop in whose tail position it is; -1: it returns to where it is called.
    int around = -1;
  };

  // ---- Registers and memory

  // The registers of a dtype: elements of one buffer, at constant indices.
  struct File {
    Buffer buffer;
    int64_t count = 0;
  };

  PrimExpr slot(DType dtype) {
    File& file = files_[dtype.to_string()];
    if (!file.buffer) {
      file.buffer = tir::buffer("r_" + dtype.to_string(), dtype, {tir::index(int64_t{1} << 30)},
                                tir::Scope::Register);
    }
    return tir::load(file.buffer, {tir::index(file.count++)});
  }
  void set(const PrimExpr& slot, const PrimExpr& value) {
    auto& l = *as<tir::LoadNode>(slot);
    emit(tir::store(l.buffer, l.indices, value));
  }
  // The number in a register of its own, unless it is a constant.
  PrimExpr keep(const PrimExpr& e) {
    if (isa<tir::IntImmNode>(e) || isa<tir::FloatImmNode>(e)) return e;
    PrimExpr out = slot(e->dtype);
    set(out, e);
    return out;
  }

  Buffer fresh(DType dtype, const std::vector<PrimExpr>& shape) {
    locals_.push_back(tir::buffer("t" + std::to_string(locals_.size()), dtype, shape));
    return locals_.back();
  }
  Value in_memory(const Buffer& b, int owner) {
    return {.buffer = b, .owner = owner, .shape = b->shape, .dtype = b->dtype};
  }

  void emit(Stmt s) { out_.push_back(std::move(s)); }
  template <class F>
  Stmt captured(F&& f) {
    std::vector<Stmt> outer = std::exchange(out_, {});
    const int around = std::exchange(region_, ++regions_made_);
    f();
    region_ = around;
    return tir::seq(std::exchange(out_, std::move(outer)));
  }

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
    if (!t.shape.empty()) return in_memory(b, -1);
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

  static void flatten(const Value& v, std::vector<Value>& out) {
    if (!v.is_tuple) return out.push_back(v);
    for (const Value& f : v.fields) flatten(f, out);
  }

  // The memory that a value reads.
  static void memory_of(const Value& v, const std::function<void(const Node*)>& visit) {
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
  static bool reads(const Value& v, const Node* buffer) {
    bool found = false;
    memory_of(v, [&](const Node* b) { found |= b == buffer; });
    return found;
  }

  void bind(const Node* var, Value v) {
    memory_of(v, [&](const Node* b) { readers_[b].push_back(var); });
    values_[var] = std::move(v);
    regions_.try_emplace(var, region_);
  }

  PrimExpr read(const Value& v, const Indices& at) const {
    if (v.scalar) return v.scalar;
    if (v.buffer) return tir::load(v.buffer, at);
    NodeMap map;
    for (size_t d = 0; d < v.axes.size(); ++d) map[v.axes[d].get()] = at[d];
    return tir::replace(v.element, map);
  }

  // buffer = v, element by element.
  void fill(const Buffer& buffer, const Value& v) {
    Indices at;
    for (size_t d = 0; d < buffer->shape.size(); ++d)
      at.push_back(tir::var("i" + std::to_string(d)));
    Stmt body = tir::store(buffer, at, read(v, at));
    for (size_t d = at.size(); d-- > 0;) {
      body = tir::for_(tir::Var::unchecked(at[d]), tir::index(0), buffer->shape[d], body);
    }
    emit(body);
  }

  Value materialised(const Value& v) {
    Buffer b = fresh(v.dtype, v.shape);
    fill(b, v);
    return in_memory(b, depth_);
  }

  // Loads of the tensors that rules are given become what they stand for.
  NodeRef resolved(const NodeRef& node) {
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

  // ---- Operators

  // A tensor for a rule to read.
  tir::Tensor handle(const Value& v) {
    tir::Tensor t = tir::placeholder("v" + std::to_string(handles_.size()), v.dtype, v.shape);
    handles_.emplace(t->buffer.get(), v);
    kept_.push_back(t);
    return t;
  }

  Value operator_call(const Item& item, const CallNode& c) {
    std::vector<Value> args;
    for (const Expr& a : c.args) flatten(value(a), args);
    if (writes_over(item.value)) return write(item, c, std::move(args));
    std::vector<tir::Tensor> inputs;
    for (const Value& v : args) inputs.push_back(handle(v));
    std::vector<Value> results;
    for (const tir::Tensor& t : compute_call(c, inputs, dims_)) results.push_back(defined(t));
    size_t next = 0;
    return unflatten(c.type, results, next);
  }

  static Value unflatten(const Type& type, const std::vector<Value>& parts, size_t& next) {
    auto* t = as<TupleTypeNode>(type);
    if (t == nullptr) return parts[next++];
    Value out{.is_tuple = true};
    for (const Type& f : t->fields) out.fields.push_back(unflatten(f, parts, next));
    return out;
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
    RELAY_CHECK(t->bodies.size() == 1 && !isa<tir::ReduceNode>(t->bodies[0]),
                "a loop's kernel takes no reduction: " + t->name);
    PrimExpr e = PrimExpr::unchecked(resolved(t->bodies[0]));
    if (t->rank() == 0) return {.scalar = keep(e), .dtype = t->dtype};
    Value out{.element = e, .shape = t->shape(), .dtype = t->dtype};
    for (const tir::IterVar& axis : t->axes) out.axes.push_back(axis->var);
    size_t nodes = 0;
    post_order(
        e, [&](const Node&) { ++nodes; }, family::tir_expr);
    return nodes > kMostNodesOfElement ? materialised(out) : out;
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
    // The function that names an index outside is called for one that is.
    PrimExpr index = keep(call->args[0]), size = keep(call->args[1]);
    PrimExpr zero = tir::index(0), place = slot(tir::kIndex);
    set(place, tir::select(tir::lt(index, zero), index + size, index));
    PrimExpr outside = tir::logical_or(tir::lt(place, zero), tir::ge(place, size));
    emit(tir::if_(outside, captured([&] {
                    set(place, tir::call("index_in", tir::kIndex, {index, size, call->args[2]}));
                  })));
    set(to, tir::cast(t->dtype, place));
    return out;
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
          if (auto* all = as<tir::SeqNode>(rebuilt)) {
            if (std::ranges::none_of(all->stmts, is_nothing)) return rebuilt;
            std::vector<Stmt> left;
            std::ranges::copy_if(all->stmts, std::back_inserter(left),
                                 [](const Stmt& inner) { return !is_nothing(inner); });
            return tir::seq(std::move(left));
          }
          if (auto* loop = as<tir::ForNode>(rebuilt))
            return is_nothing(loop->body) ? NodeRef(tir::seq({})) : rebuilt;
          return rebuilt;
        },
        family::tir_stmt));
  }

  static bool is_nothing(const Stmt& s) {
    auto* all = as<tir::SeqNode>(s);
    return all != nullptr && all->stmts.empty();
  }

  // A store of an element of itself is no statement: so the copy of a tensor that is written in place
  // is left out.
  static NodeRef stored(const tir::StoreNode& s, const Value& to) {
    if (to.scalar) {
      auto& l = *as<tir::LoadNode>(to.scalar);
      return tir::store(l.buffer, l.indices, s.value);
    }
    auto* from = as<tir::LoadNode>(s.value);
    if (from != nullptr && from->buffer == to.buffer &&
        std::ranges::equal(s.indices, from->indices, [](const PrimExpr& a, const PrimExpr& b) {
          return a == b || structural_equal(a, b);
        })) {
      return tir::seq({});
    }
    return tir::store(to.buffer, s.indices, s.value, s.predicate);
  }

  // ---- Writes

  // Whether memory may be written in place when control is at a position: nothing reads it later. What is
  // computed from it where it is read later, is computed now.
  bool may_take(const Value& v, int position) {
    if (!v.buffer || v.owner != depth_) return false;
    std::vector<const Node*> late;
    for (const Node* reader : readers_[v.buffer.get()]) {
      if (!reader_.is_used_after(reader, position, excluded_)) continue;
      const Value& other = values_.at(reader);
      if (!reads(other, v.buffer.get())) continue;
      // Behind a branch or a loop, memory that is filled inside it holds nothing.
      if (!other.element || regions_.at(reader) != region_) return false;
      late.push_back(reader);
    }
    for (const Node* reader : late) bind(reader, materialised(values_.at(reader)));
    return true;
  }

  Value write(const Item& item, const CallNode& c, std::vector<Value> args) {
    Value data = args[0];
    if (may_take(data, item.position)) {
      for (size_t i = 1; i < args.size(); ++i) {
        if (!args[i].scalar && reads(args[i], data.buffer.get())) args[i] = materialised(args[i]);
      }
    } else {
      data = materialised(data);
    }
    std::vector<tir::Tensor> inputs{handle(data)};
    for (size_t i = 1; i < args.size(); ++i) inputs.push_back(handle(args[i]));
    tir::Tensor t = compute_call(c, inputs, dims_)[0];
    RELAY_CHECK(t->imperative != nullptr, "a rule that writes over its operand is statements");
    kept_.push_back(t);
    emit(statements(t, data));
    return data;
  }

  // ---- Blocks

  // Composes a block. In the tail position of a loop (`loop` >= 0) its value goes to the loop.
  Value block(const Block& b, int loop) {
    for (size_t i = 0; i < b.items.size(); ++i) {
      const Item& item = b.items[i];
      const bool tail = loop >= 0 && i + 1 == b.items.size() && b.ends_in_tail();
      if (item.then_block) {
        if (choice(item, tail ? loop : -1)) return {};
      } else if (item.loop != nullptr) {
        if (entered(item, tail ? loop : -1)) return {};
      } else if (auto* c = as<CallNode>(item.value); c != nullptr && !isa<OpNode>(c->op)) {
        go_on(*c, loop);
        return {};
      } else if (c != nullptr) {
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
    if (loop < 0) return value(b.result);
    leave(value(b.result), loop);
    return {};
  }

  // A place for the value of an item that is computed in several places: a register, the memory of the
  // tensor that all of them give (`known`, each once), or memory of its own.
  Value place_for(const Item& item, const std::function<Buffer(const Reader::Root&)>& known) {
    std::vector<Value> parts;
    const auto tensors = flatten_tensor_types(item.value->type);
    const std::vector<Reader::Root>& roots = reader_.roots(item.var.get());
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
    return unflatten(item.value->type, parts, next);
  }

  // The memory of a variable's tensor, where it may be written to at a position.
  Buffer own_memory(const Reader::Root& root, int position) {
    auto it = values_.find(root.first);
    if (it == values_.end()) return nullptr;
    std::vector<Value> parts;
    flatten(it->second, parts);
    const Value v = parts[root.second];
    return may_take(v, position) ? v.buffer : nullptr;
  }

  // Whether it was in tail position.
  bool choice(const Item& item, int loop) {
    auto& i = *as<IfNode>(item.value);
    PrimExpr cond = value(i.cond).scalar;
    Value to;
    if (loop < 0) {
      // Behind both branches.
      to = place_for(
          item, [&](const Reader::Root& r) { return own_memory(r, item.else_range.second - 1); });
    }
    auto branch = [&](const Block& b) {
      return captured([&] {
        Value v = block(b, loop);
        if (loop < 0) assign({v}, {to});
      });
    };
    excluded_.push_back(item.else_range);
    Stmt then_body = branch(*item.then_block);
    excluded_.pop_back();
    Stmt else_body = branch(*item.else_block);
    emit(tir::if_(cond, then_body, is_nothing(else_body) ? nullptr : else_body));
    if (loop >= 0) return true;
    bind(item.var.get(), to);
    return false;
  }

  // ---- Loops

  // Enters a loop. Whether it was in tail position.
  bool entered(const Item& item, int around) {
    auto& c = *as<CallNode>(item.value);
    Loop loop;
    loop.var = c.op.get();
    loop.around = around;
    std::unordered_set<const Node*> taken;
    ++depth_;
    for (size_t k = 0; k < c.args.size(); ++k) {
      loop.state.push_back(initial(value(c.args[k]), item, taken));
      bind(item.loop->params[k].get(), loop.state.back());
    }
    loop.running = slot(tir::kIndex);
    set(loop.running, tir::index(1));
    if (around < 0) {
      // What each of its ends gives of its state is where the state is.
      loop.result = place_for(item, [&](const Reader::Root& r) -> Buffer {
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
      });
    }
    loops_.push_back(loop);
    const int index = static_cast<int>(loops_.size()) - 1;
    Stmt body = captured([&] { block(*item.body, index); });
    emit(tir::while_(tir::ne(loop.running, tir::index(0)), body));
    loops_.pop_back();
    --depth_;
    if (around >= 0) return true;
    bind(item.var.get(), owned_here(loop.result));
    return false;
  }

  Value owned_here(Value v) {
    if (v.buffer) v.owner = depth_;
    for (Value& f : v.fields) f = owned_here(f);
    return v;
  }

  // Where the state of a loop begins.
  Value initial(const Value& v, const Item& item, std::unordered_set<const Node*>& taken) {
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

  // The next iteration of a loop, which is this one or one around it.
  void go_on(const CallNode& c, int from) {
    int to = from;
    for (; loops_[static_cast<size_t>(to)].var != c.op.get();
         to = loops_[static_cast<size_t>(to)].around) {
      set(loops_[static_cast<size_t>(to)].running, tir::index(0));
    }
    std::vector<Value> next;
    for (const Expr& a : c.args) next.push_back(value(a));
    assign(next, loops_[static_cast<size_t>(to)].state);
  }

  // The end of a loop, and of those around it in whose tail position it is.
  void leave(const Value& v, int loop) {
    int to = loop;
    set(loops_[static_cast<size_t>(to)].running, tir::index(0));
    while (loops_[static_cast<size_t>(to)].around >= 0) {
      to = loops_[static_cast<size_t>(to)].around;
      set(loops_[static_cast<size_t>(to)].running, tir::index(0));
    }
    assign({v}, {loops_[static_cast<size_t>(to)].result});
  }

  // Gives places their values, all at once. Tensors first: their elements may read registers.
  void assign(const std::vector<Value>& values, const std::vector<Value>& places) {
    std::vector<Value> from, to;
    for (const Value& v : values) flatten(v, from);
    for (const Value& p : places) flatten(p, to);
    std::vector<std::pair<Buffer, Value>> fills;
    for (size_t k = 0; k < to.size(); ++k) {
      if (!to[k].scalar && from[k].buffer != to[k].buffer)
        fills.emplace_back(to[k].buffer, from[k]);
    }
    // What reads a place is put aside before any place is written.
    for (auto& [buffer, v] : fills) {
      if (std::ranges::any_of(fills, [&v = v](const auto& f) { return reads(v, f.first.get()); }))
        v = materialised(v);
    }
    for (const auto& [buffer, v] : fills) fill(buffer, v);
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
  Reader reader_;
  std::unique_ptr<Block> program_;
  DimScope dims_;
  std::unordered_map<const Node*, Value> values_;
  // The variables whose values read a buffer, now or before.
  std::unordered_map<const Node*, std::vector<const Node*>> readers_;
  // What the tensors that rules read stand for.
  std::unordered_map<const Node*, Value> handles_;
  std::vector<tir::Tensor> kept_;  // keys of handles_ must not be reused
  std::map<std::string, File> files_;
  std::vector<Buffer> locals_;
  std::vector<Loop> loops_;
  int depth_ = 0;
  // The branch or the body of a loop that is being composed, and those in which variables are bound.
  int region_ = 0, regions_made_ = 0;
  std::unordered_map<const Node*, int> regions_;
  // Positions that control does not reach from here.
  std::vector<std::pair<int, int>> excluded_;
  std::vector<Stmt> out_;
};

}  // namespace

bool is_loop_kernel(const FunctionNode& primitive) {
  auto* l = as<LetNode>(primitive.body);
  return l != nullptr && isa<FunctionNode>(l->value);
}

ComposedKernel compose_loop(const FunctionNode& primitive, const std::string& name, KernelOf what) {
  return Composer(primitive, what).run(name);
}

}  // namespace relay
