#include "vm/compile.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "lower/memory_plan.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {

runtime::TensorSpec spec_of(const TensorTypeNode& t) {
  runtime::TensorSpec spec;
  spec.dtype = t.dtype;
  bool named = false;
  for (const Dim& d : t.shape) {
    auto value = as_const(d);
    spec.shape.push_back(value.value_or(-1));
    spec.symbols.push_back(value || is_any(d) ? "" : to_string(d));
    named |= !spec.symbols.back().empty();
  }
  if (!named) spec.symbols.clear();
  return spec;
}

std::string result_name(const FunctionNode& f, size_t i) {
  auto it = f.attrs.find("output_names");
  if (it != f.attrs.end()) {
    auto* names = it->second.get_if<ValueList>();
    auto* name =
        names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
    if (name != nullptr) return *name;
  }
  return "output" + std::to_string(i);
}

namespace {

using runtime::FunctionBuilder;
using runtime::IntOp;
using runtime::Operand;
using runtime::TensorSpec;

[[noreturn]] void unsupported(const Span& span, std::string what, std::string help = {}) {
  throw UserError(
      Diagnostic(codes::lower_unsupported, span, std::move(what)).help(std::move(help)));
}

bool is_static_tensor(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && tensor->const_shape().has_value();
}

const FunctionNode* primitive_of(const CallNode& c) {
  auto* f = as<FunctionNode>(c.op);
  return f != nullptr && f->is_primitive() ? f : nullptr;
}

// A primitive function that only renames the shape of its first parameter.
bool is_view(const FunctionNode& f) {
  if (f.params.size() != 1) return false;
  const Node* at = f.body.get();
  while (auto* c = as<CallNode>(at)) {
    auto* op = as<OpNode>(c->op);
    if (op == nullptr || !op->row->reshape_only) return false;
    at = c->args[0].get();
  }
  return at == f.params[0].get();
}

// Where a value is while the function runs. A tuple's parts are in places of their own.
struct Place {
  enum Kind { kBuffer, kRegister, kConstant, kOutput, kTuple } kind = kRegister;
  int64_t index = 0;  // arena buffer, register, constant or output
  std::vector<Place> fields;
};

// Kernels, constants, strings and functions of the whole program.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const Module& mod) : mod_(mod) {}
  Bytecode run();

  int32_t constant(const Tensor& t) {
    auto [it, fresh] =
        constants_.emplace(t.data(), static_cast<int32_t>(out.program.constants.size()));
    if (!fresh) {
      const Tensor& known = out.program.constants[static_cast<size_t>(it->second)];
      bool same = known.dtype() == t.dtype() && std::ranges::equal(known.shape(), t.shape());
      if (same) return it->second;
      out.program.constants.push_back(t);
      return static_cast<int32_t>(out.program.constants.size()) - 1;
    }
    out.program.constants.push_back(t);
    return it->second;
  }

  int32_t string(const std::string& text) {
    auto [it, fresh] = strings_.emplace(text, static_cast<int32_t>(out.program.strings.size()));
    if (fresh) out.program.strings.push_back(text);
    return it->second;
  }

  int32_t kernel(const Function& primitive) {
    uint64_t hash = structural_hash(primitive);
    std::vector<int32_t>& same_hash = kernels_by_hash_[hash];
    for (int32_t k : same_hash) {
      if (structural_equal(out.kernels[static_cast<size_t>(k)].primitive, primitive)) return k;
    }
    int32_t index = static_cast<int32_t>(out.kernels.size());
    same_hash.push_back(index);
    std::string name = kernel_name(*primitive.get());
    int count = name_counts_[name]++;
    if (count > 0) name += "_" + std::to_string(count);
    ProgramKernel k{name, primitive, compose(*primitive.get(), name)};
    runtime::KernelInfo info;
    info.name = name;
    info.origin = primitive->span.describe();
    const tir::PrimFuncNode& f = *k.composed.func.get();
    for (const tir::Buffer& b : f.params) {
      int64_t bytes = static_cast<int64_t>(b->dtype.bytes());
      for (const tir::PrimExpr& d : b->shape) {
        auto size = tir::as_int(d);
        bytes = size && bytes >= 0 ? bytes * *size : -1;
      }
      info.buffer_bytes.push_back(bytes);
    }
    info.num_outputs = static_cast<uint32_t>(f.params.size() - static_cast<size_t>(f.num_inputs));
    info.num_dims = static_cast<uint32_t>(f.dims.size());
    info.flops = static_cast<int64_t>(k.composed.flops);
    info.bytes = static_cast<int64_t>(k.composed.bytes);
    out.program.kernels.push_back(std::move(info));
    out.kernels.push_back(std::move(k));
    return index;
  }

  // The index of a function of the module.
  int32_t global(const GlobalVarNode& g) const { return globals_.at(g.name_hint); }

  // Queues a local function for compilation; `captured` are the variables that come before its
  // parameters. `self` is the variable the function is bound to, if it calls itself.
  int32_t local(const Function& f, std::vector<Var> captured, Var self) {
    int32_t index = next_function_++;
    queue_.push_back(
        {f, "fn" + std::to_string(index), std::move(captured), std::move(self), index});
    return index;
  }

  // A function that makes a value with the constructor, for where the constructor is a value.
  int32_t constructor_function(const ConstructorNode& c) {
    auto [it, fresh] = constructor_functions_.emplace(&c, next_function_);
    if (!fresh) return it->second;
    runtime::FunctionBuilder b(c.name_hint);
    std::vector<int32_t> fields;
    for (const Type& t : c.inputs) {
      fields.push_back(b.param("p" + std::to_string(fields.size()), to_string(t)));
    }
    b.result(c.name_hint, c.name_hint);
    b.internal();
    int32_t r = b.reg();
    b.alloc_adt(r, static_cast<int32_t>(c.tag), fields);
    b.ret(r);
    place(next_function_, std::move(b).finish());
    return next_function_++;
  }

  Bytecode out;

 private:
  void place(int32_t index, runtime::Function f) {
    auto at = static_cast<size_t>(index);
    if (out.program.functions.size() <= at) out.program.functions.resize(at + 1);
    out.program.functions[at] = std::move(f);
  }

  struct Job {
    Function f;
    std::string name;
    std::vector<Var> captured;
    Var self;
    int32_t index;
  };
  const Module& mod_;
  std::unordered_map<const void*, int32_t> constants_;
  std::unordered_map<std::string, int32_t> strings_;
  std::unordered_map<uint64_t, std::vector<int32_t>> kernels_by_hash_;
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_map<std::string, int32_t> globals_;
  std::unordered_map<const Node*, int32_t> constructor_functions_;
  int32_t next_function_ = 0;
  std::deque<Job> queue_;
};

// Writes the code of one function.
class FunctionCompiler {
 public:
  FunctionCompiler(ProgramBuilder& program, const Function& f, std::string name,
                   std::vector<Var> captured, Var self, int32_t index, bool internal)
      : program_(program),
        f_(f),
        captured_(std::move(captured)),
        self_(std::move(self)),
        index_(index),
        b_(name) {
    report_.function = std::move(name);
    if (internal) b_.internal();
  }

  runtime::Function run() {
    choose_return();
    find_escapes();
    declare_params();
    claim_outputs();
    emit(f_->body, Target{Target::kReturn, 0});
    while (!tasks_.empty()) {
      std::function<void()> task = std::move(tasks_.back());
      tasks_.pop_back();
      task();
    }
    runtime::Function out = std::move(b_).finish();
    MemoryPlan plan = plan_memory(buffers_);
    for (Operand& o : out.operands) {
      if (o.kind == Operand::kArena) o.index = plan.offsets[static_cast<size_t>(o.index)];
    }
    out.arena_bytes = plan.arena_bytes;
    report_.arena_bytes = plan.arena_bytes;
    report_.lower_bound = plan.lower_bound;
    return out;
  }

  const ArenaReport& report() const { return report_; }

 private:
  // Where the value of a scope goes.
  struct Target {
    enum Kind { kReturn, kRegister } kind;
    int32_t reg;
  };

  // ---- Analysis
  // ----------------------------------------------------------------------------------

  // The last expression of a Let chain.
  static const Expr& result_of(const Expr& body) {
    const Expr* at = &body;
    while (auto* l = as<LetNode>(*at)) at = &l->body;
    return *at;
  }

  // Results are written in place when they are static tensors, or one tuple of such, made by this
  // function's own kernels. A function that ends in a call or a branch returns that value, and so
  // does one whose tuple has tuples inside: output buffers are a flat list.
  void choose_return() {
    auto* fields = as<TupleTypeNode>(f_->body->type);
    writes_outputs_ = fields != nullptr ? std::ranges::all_of(fields->fields, is_static_tensor)
                                        : is_static_tensor(f_->body->type);
    auto* result = as<VarNode>(result_of(f_->body));
    const Expr* at = &f_->body;
    while (auto* l = as<LetNode>(*at)) {
      if (l->var.get() == result) {
        bool call = isa<CallNode>(l->value) && primitive_of(*as<CallNode>(l->value)) == nullptr;
        if (call || isa<IfNode>(l->value) || isa<MatchNode>(l->value)) writes_outputs_ = false;
      }
      at = &l->body;
    }
  }

  void escape(const Expr& e) {
    if (isa<VarNode>(e)) escapes_.insert(e.get());
  }

  // Let nodes come in reverse order of execution, so what a value does is known before its operands
  // are asked about.
  void find_escapes() {
    if (!writes_outputs_) escape(result_of(f_->body));
    post_order_if(
        f_->body,
        [&](const Node& n) {
          // Before what is inside the branches is asked about.
          if (auto* i = as<IfNode>(&n)) {
            escape(result_of(i->true_branch));
            escape(result_of(i->false_branch));
          } else if (auto* c = as<ClauseNode>(&n)) {
            escape(result_of(c->rhs));
          }
          auto* inner = as<FunctionNode>(&n);
          if (inner == nullptr) return true;
          if (!inner->is_primitive()) {
            for (const Var& v : free_variables(*inner)) escapes_.insert(v.get());
          }
          return false;
        },
        [&](const Node& n) {
          auto* l = as<LetNode>(&n);
          if (l == nullptr) return;
          if (auto* inner = as<FunctionNode>(l->value)) {
            for (const Var& v : free_variables(*inner)) escapes_.insert(v.get());
          }
          escape_operands(*l);
        },
        family::expr | family::pattern);
  }

  void escape_operands(const LetNode& l) {
    bool mine = escapes_.contains(l.var.get());
    switch (l.value->kind()) {
      case ExprKind::Var:
        if (mine) escape(l.value);
        return;
      case ExprKind::Tuple:
        if (!mine) return;
        break;
      case ExprKind::TupleGetItem:
        if (!mine) return;
        break;
      case ExprKind::Call: {
        auto& c = *as<CallNode>(l.value);
        if (auto* f = primitive_of(c)) {
          if (is_view(*f) && mine) escape(c.args[0]);
          return;
        }
        escape(c.op);
        break;
      }
      case ExprKind::If:
        escape(as<IfNode>(l.value)->cond);
        return;
      case ExprKind::Match:
        escape(as<MatchNode>(l.value)->data);
        return;
      case ExprKind::Function:
        return;
      default:
        break;
    }
    for_each_child(*l.value, [&](const NodeRef& child) {
      if (isa<VarNode>(child)) escapes_.insert(child.get());
    });
  }

  // Variables used but not bound inside, in order of first use.
  static std::vector<Var> free_variables(const FunctionNode& f) {
    std::unordered_set<const Node*> bound, seen;
    std::vector<Var> used;
    post_order(
        ref(f),
        [&](const Node& n) {
          for (const Field& field : n.info().fields) {
            if (field.role != Role::binder) continue;
            const void* at = field.in(n);
            for (size_t i = 0; i < field.ops->count(at); ++i) {
              bound.insert(field.ops->get_child(at, i).get());
            }
          }
          if (isa<VarNode>(&n)) used.push_back(Var(static_cast<const VarNode*>(&n)));
        },
        family::expr | family::pattern);
    std::vector<Var> out;
    for (const Var& v : used) {
      if (!bound.contains(v.get())) out.push_back(v);
    }
    return out;
  }

  // ---- Parameters, results, dimensions
  // ------------------------------------------------------------

  void declare_params() {
    auto declare = [&](const Var& v, const std::string& name) {
      int32_t r = isa<TensorTypeNode>(v->type)
                      ? b_.param(name, spec_of(*as<TensorTypeNode>(v->type)))
                      : b_.param(name, to_string(v->type));
      places_[v.get()] = Place{Place::kRegister, r, {}};
      return r;
    };
    std::vector<int32_t> captured_regs;
    for (const Var& v : captured_) captured_regs.push_back(declare(v, v->name_hint));
    for (const Var& v : f_->params) declare(v, v->name_hint);
    declare_results();
    for (const Var& v : captured_) bind_dims(v);
    for (const Var& v : f_->params) bind_dims(v);
    if (self_) {
      int32_t r = b_.reg();
      b_.alloc_closure(r, index_, captured_regs);
      places_[self_.get()] = Place{Place::kRegister, r, {}};
    }
  }

  void declare_results() {
    auto name = [&](size_t i) { return result_name(*f_.get(), i); };
    auto leaves = flatten_tensor_types(f_->body->type);
    if (!leaves) {
      b_.result(name(0), to_string(f_->body->type));
      return;
    }
    for (size_t i = 0; i < leaves->size(); ++i) b_.result(name(i), spec_of(*(*leaves)[i].get()));
    if (isa<TupleTypeNode>(f_->body->type)) b_.returns_tuple();
  }

  // Named dimensions are read off the first parameter that has them.
  void bind_dims(const Var& v) {
    auto* t = as<TensorTypeNode>(v->type);
    if (t == nullptr) return;
    for (size_t axis = 0; axis < t->shape.size(); ++axis) {
      auto* d = as<DimVarNode>(t->shape[axis]);
      if (d == nullptr || dim_regs_.contains(d->var.get())) continue;
      int32_t r = b_.int_reg();
      b_.shape_of(r, static_cast<int32_t>(places_.at(v.get()).index), static_cast<int32_t>(axis));
      dim_regs_[d->var.get()] = r;
    }
  }

  int32_t dim_value(const Dim& d, const Span& span) {
    std::unordered_map<const Node*, int32_t> done;
    post_order(
        d,
        [&](const Node& n) {
          if (auto* c = as<DimConstNode>(&n)) {
            int32_t r = b_.int_reg();
            b_.load_int(r, c->value);
            done[&n] = r;
          } else if (auto* v = as<DimVarNode>(&n)) {
            done[&n] = dim_reg(v->var, span);
          } else if (auto* o = as<DimOpNode>(&n)) {
            done[&n] = dim_op(o->op, done.at(o->a.get()), done.at(o->b.get()));
          } else {
            unsupported(
                span, "the size of %" + now_->var->name_hint + " is known only when it is computed",
                "a size that only data decides is not compiled yet: give the shape of the "
                "inputs, or use the evaluator");
          }
        },
        family::dim);
    return done.at(d.get());
  }

  int32_t dim_reg(const TypeVar& v, const Span& span) {
    auto it = dim_regs_.find(v.get());
    if (it == dim_regs_.end()) {
      unsupported(span, "the dimension " + v->name_hint + " is not the size of any parameter",
                  "give a parameter a dimension that is just " + v->name_hint);
    }
    return it->second;
  }

  int32_t dim_op(DimOpKind op, int32_t a, int32_t b) {
    int32_t r = b_.int_reg();
    switch (op) {
      case DimOpKind::Add:
        b_.int_op(IntOp::add, r, a, b);
        break;
      case DimOpKind::Sub:
        b_.int_op(IntOp::sub, r, a, b);
        break;
      case DimOpKind::Mul:
        b_.int_op(IntOp::mul, r, a, b);
        break;
      case DimOpKind::FloorDiv:
        b_.int_op(IntOp::floor_div, r, a, b);
        break;
      case DimOpKind::Mod:
        b_.int_op(IntOp::floor_mod, r, a, b);
        break;
      case DimOpKind::Max:
        b_.int_op(IntOp::max, r, a, b);
        break;
      case DimOpKind::Min:
        b_.int_op(IntOp::min, r, a, b);
        break;
      case DimOpKind::CeilDiv: {
        // ceil(a / b) = -floor(-a / b)
        int32_t zero = b_.int_reg();
        b_.load_int(zero, 0);
        b_.int_op(IntOp::sub, r, zero, a);
        b_.int_op(IntOp::floor_div, r, r, b);
        b_.int_op(IntOp::sub, r, zero, r);
        break;
      }
    }
    return r;
  }

  // Kernel results that are the function's results are written straight into the output buffers.
  void claim_outputs() {
    if (!writes_outputs_) return;
    std::unordered_map<const Node*, const LetNode*> bound;
    const Expr* at = &f_->body;
    while (auto* l = as<LetNode>(*at)) {
      bound[l->var.get()] = l;
      at = &l->body;
    }
    int64_t next = 0;
    // The leaves of the result in order; projections of kernels with several results are copied.
    std::vector<Expr> stack{*at};
    while (!stack.empty()) {
      Expr e = stack.back();
      stack.pop_back();
      auto it = bound.find(e.get());
      if (auto* t = as<TupleNode>(it == bound.end() ? e : it->second->value)) {
        stack.insert(stack.end(), t->fields.rbegin(), t->fields.rend());
        continue;
      }
      if (it == bound.end() || !isa<TensorTypeNode>(e->type)) {
        next += static_cast<int64_t>(flatten_tensor_types(e->type)->size());
        continue;
      }
      const LetNode* l = it->second;
      // Through names and views to the kernel that makes the bytes.
      while (l != nullptr) {
        Expr from;
        if (isa<VarNode>(l->value)) {
          from = l->value;
        } else if (auto* c = as<CallNode>(l->value)) {
          auto* f = primitive_of(*c);
          if (f != nullptr && is_view(*f)) {
            from = c->args[0];
          } else if (f != nullptr && isa<TensorTypeNode>(l->var->type) &&
                     !escapes_.contains(l->var.get())) {
            claimed_.emplace(l->var.get(), next);
            break;
          }
        }
        auto source = from ? bound.find(from.get()) : bound.end();
        l = source == bound.end() ? nullptr : source->second;
      }
      ++next;
    }
  }

  // ---- Places
  // ------------------------------------------------------------------------------------

  Place place_of(const Expr& e) {
    if (isa<VarNode>(e)) {
      auto it = places_.find(e.get());
      RELAY_CHECK(it != places_.end(), "a variable without a place");
      use(it->second);
      return it->second;
    }
    if (auto* c = as<ConstantNode>(e))
      return Place{Place::kConstant, program_.constant(c->data), {}};
    if (isa<GlobalVarNode>(e) || isa<ConstructorNode>(e)) {
      return Place{Place::kRegister, object(e), {}};
    }
    if (auto* t = as<TupleNode>(e); t != nullptr && t->fields.empty()) {
      return Place{Place::kTuple, 0, {}};
    }
    if (isa<OpNode>(e))
      unsupported(e->span, "an operator is not a value", "wrap it: fn (%x) { op(%x) }");
    RELAY_CHECK(false, "an operand that is no leaf");
  }

  // Marks the arena buffers of a place as needed at this step.
  void use(const Place& p) {
    if (p.kind == Place::kBuffer) {
      buffers_[static_cast<size_t>(p.index)].last = step_;
    }
    for (const Place& f : p.fields) use(f);
  }

  // The value as an object in a register.
  int32_t object(const Expr& e) {
    if (auto* g = as<GlobalVarNode>(e)) {
      int32_t r = b_.reg();
      b_.alloc_closure(r, program_.global(*g), {});
      return r;
    }
    if (auto* c = as<ConstructorNode>(e)) {
      if (c->inputs.empty()) {
        int32_t r = b_.reg();
        b_.alloc_adt(r, static_cast<int32_t>(c->tag), {});
        return r;
      }
      int32_t r = b_.reg();
      b_.alloc_closure(r, program_.constructor_function(*c), {});
      return r;
    }
    return object(place_of(e), e->type, e->span);
  }

  int32_t object(const Place& p, const Type& type, const Span& span) {
    switch (p.kind) {
      case Place::kRegister:
        return static_cast<int32_t>(p.index);
      case Place::kConstant: {
        int32_t r = b_.reg();
        b_.load_const(r, static_cast<int32_t>(p.index));
        return r;
      }
      case Place::kTuple: {
        auto* t = as<TupleTypeNode>(type);
        std::vector<int32_t> fields;
        for (size_t i = 0; i < p.fields.size(); ++i) {
          fields.push_back(object(p.fields[i], t->fields[i], span));
        }
        int32_t r = b_.reg();
        b_.alloc_tuple(r, fields);
        return r;
      }
      case Place::kBuffer:
      case Place::kOutput: {
        // A buffer of the frame that turns out to be needed as a value: a copy of its own.
        int32_t r = b_.reg();
        b_.alloc_static(r, spec_of(*as<TensorTypeNode>(type)));
        b_.copy(Operand::reg(r), operand(p, type));
        return r;
      }
    }
    return 0;
  }

  Operand operand(const Place& p, const Type& type) {
    switch (p.kind) {
      case Place::kBuffer:
        return Operand::arena(p.index, spec_of(*as<TensorTypeNode>(type)).byte_size());
      case Place::kOutput:
        return Operand::output(p.index);
      case Place::kConstant:
        return Operand::constant(p.index);
      default:
        return Operand::reg(p.index);
    }
  }

  // Operands for all tensors of a value.
  void operands_of(const Place& p, const Type& type, std::vector<Operand>& out) {
    if (auto* t = as<TupleTypeNode>(type)) {
      for (size_t i = 0; i < t->fields.size(); ++i) {
        operands_of(field(p, static_cast<int64_t>(i)), t->fields[i], out);
      }
      return;
    }
    out.push_back(operand(p, type));
  }

  Place field(const Place& tuple, int64_t index) {
    if (tuple.kind == Place::kTuple) return tuple.fields[static_cast<size_t>(index)];
    int32_t r = b_.reg();
    b_.get_field(r, static_cast<int32_t>(tuple.index), static_cast<int32_t>(index));
    return Place{Place::kRegister, r, {}};
  }

  // A new place for a kernel's result of that type.
  Place fresh(const Type& type, bool as_object, const Span& span) {
    if (auto* t = as<TupleTypeNode>(type)) {
      Place p{Place::kTuple, 0, {}};
      for (const Type& f : t->fields) p.fields.push_back(fresh(f, as_object, span));
      return p;
    }
    auto* t = as<TensorTypeNode>(type);
    RELAY_CHECK(t != nullptr);
    if (!is_static_tensor(type)) {
      std::vector<int32_t> dims;
      for (const Dim& d : t->shape) dims.push_back(dim_value(d, span));
      int32_t r = b_.reg();
      b_.alloc_tensor(r, t->dtype, dims);
      return Place{Place::kRegister, r, {}};
    }
    if (as_object) {
      int32_t r = b_.reg();
      b_.alloc_static(r, spec_of(*t));
      return Place{Place::kRegister, r, {}};
    }
    buffers_.push_back({spec_of(*t).byte_size(), step_, step_});
    return Place{Place::kBuffer, static_cast<int64_t>(buffers_.size()) - 1, {}};
  }

  // ---- Code
  // ----------------------------------------------------------------------------------------

  void emit(const Expr& body, Target target) {
    Expr at = body;
    while (auto* l = as<LetNode>(at)) {
      ++step_;
      now_ = l;
      bool tail = target.kind == Target::kReturn && !writes_outputs_ && l->body == l->var;
      if (isa<IfNode>(l->value) || isa<MatchNode>(l->value)) {
        Target inner = target;
        if (!tail) {
          inner = Target{Target::kRegister, b_.reg()};
          places_[l->var.get()] = Place{Place::kRegister, inner.reg, {}};
          Expr rest = l->body;
          tasks_.push_back([this, rest, target] { emit(rest, target); });
        }
        if (auto* i = as<IfNode>(l->value)) {
          emit_if(*i, inner);
        } else {
          emit_match(*as<MatchNode>(l->value), inner);
        }
        return;
      }
      if (tail && emit_tail_call(*l)) return;
      places_[l->var.get()] = emit_value(*l);
      at = l->body;
    }
    ++step_;
    finish(at, target);
  }

  void finish(const Expr& result, Target target) {
    if (target.kind == Target::kRegister) {
      b_.move(target.reg, object(result));
      return;
    }
    if (!writes_outputs_) {
      b_.ret(object(result));
      return;
    }
    std::vector<Operand> sources;
    operands_of(place_of(result), result->type, sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      Operand target_operand = Operand::output(static_cast<int64_t>(i));
      if (!(sources[i] == target_operand)) b_.copy(target_operand, sources[i]);
    }
    b_.ret_outputs();
  }

  void emit_if(const IfNode& i, Target target) {
    auto else_label = b_.label();
    b_.if_false(object(i.cond), else_label);
    Expr true_branch = i.true_branch, false_branch = i.false_branch;
    if (target.kind == Target::kReturn) {
      tasks_.push_back([this, false_branch, target] { emit(false_branch, target); });
      tasks_.push_back([this, else_label] { b_.bind(else_label); });
    } else {
      auto end = b_.label();
      tasks_.push_back([this, end] { b_.bind(end); });
      tasks_.push_back([this, false_branch, target] { emit(false_branch, target); });
      tasks_.push_back([this, else_label, end] {
        b_.jump(end);
        b_.bind(else_label);
      });
    }
    emit(true_branch, target);
  }

  void emit_match(const MatchNode& m, Target target) {
    int32_t data = object(m.data);
    int32_t where = m.span ? program_.string(m.span.describe()) : -1;
    auto end = b_.label();
    tasks_.push_back([this, end, where] {
      b_.match_fail(where);
      b_.bind(end);
    });
    Match keep(&m);
    for (size_t c = m.clauses.size(); c-- > 0;) {
      tasks_.push_back([this, keep, c, data, target, end] {
        auto next = b_.label();
        // Dimensions that this clause's pattern names are known in this clause only.
        auto dims = dim_regs_;
        emit_pattern(keep->clauses[c]->lhs, data, next);
        // What follows the clause's body, which may queue tasks of its own.
        tasks_.push_back([this, next, end, target, dims = std::move(dims)] {
          dim_regs_ = dims;
          if (target.kind == Target::kRegister) b_.jump(end);
          b_.bind(next);
        });
        emit(keep->clauses[c]->rhs, target);
      });
    }
  }

  // Jumps to `fail` unless the object matches; binds the pattern's variables.
  void emit_pattern(const Pattern& pattern, int32_t object_reg, FunctionBuilder::Label fail) {
    std::vector<std::pair<Pattern, int32_t>> stack{{pattern, object_reg}};
    while (!stack.empty()) {
      auto [p, reg] = stack.back();
      stack.pop_back();
      const std::vector<Pattern>* parts = nullptr;
      if (auto* v = as<PatternVarNode>(p)) {
        places_[v->var.get()] = Place{Place::kRegister, reg, {}};
        bind_dims(v->var);
      } else if (auto* c = as<PatternConstructorNode>(p)) {
        int32_t tag = b_.int_reg(), want = b_.int_reg(), same = b_.int_reg();
        b_.get_tag(tag, reg);
        b_.load_int(want, c->constructor->tag);
        b_.int_op(IntOp::eq, same, tag, want);
        b_.if_zero(same, fail);
        parts = &c->patterns;
      } else if (auto* t = as<PatternTupleNode>(p)) {
        parts = &t->patterns;
      }
      if (parts == nullptr) continue;
      for (size_t i = parts->size(); i-- > 0;) {
        if (isa<PatternWildcardNode>((*parts)[i])) continue;
        int32_t r = b_.reg();
        b_.get_field(r, reg, static_cast<int32_t>(i));
        stack.emplace_back((*parts)[i], r);
      }
    }
  }

  bool emit_tail_call(const LetNode& l) {
    auto* c = as<CallNode>(l.value);
    if (c == nullptr || primitive_of(*c) || isa<ConstructorNode>(c->op)) return false;
    std::vector<int32_t> args;
    for (const Expr& a : c->args) args.push_back(object(a));
    if (auto* g = as<GlobalVarNode>(c->op)) {
      b_.tail_call(program_.global(*g), args);
    } else {
      b_.tail_invoke(object(c->op), args);
    }
    return true;
  }

  Place emit_value(const LetNode& l) {
    const Expr& e = l.value;
    switch (e->kind()) {
      case ExprKind::Call:
        return emit_call(l, *as<CallNode>(e));
      case ExprKind::Tuple: {
        Place p{Place::kTuple, 0, {}};
        auto& t = *as<TupleNode>(e);
        for (const Expr& f : t.fields) p.fields.push_back(place_of(f));
        if (!escapes_.contains(l.var.get())) return p;
        return Place{Place::kRegister, object(p, e->type, e->span), {}};
      }
      case ExprKind::TupleGetItem: {
        auto& g = *as<TupleGetItemNode>(e);
        return field(place_of(g.tuple), g.index);
      }
      case ExprKind::Function: {
        auto& f = *as<FunctionNode>(e);
        std::vector<Var> captured = free_variables(f);
        bool recursive = std::find(captured.begin(), captured.end(), l.var) != captured.end();
        std::erase(captured, l.var);
        std::vector<int32_t> regs;
        for (const Var& v : captured) regs.push_back(object(v));
        int32_t index = program_.local(Function(&f), captured, recursive ? l.var : nullptr);
        int32_t r = b_.reg();
        b_.alloc_closure(r, index, regs);
        return Place{Place::kRegister, r, {}};
      }
      case ExprKind::RefCreate: {
        int32_t r = b_.reg();
        b_.ref_new(r, object(as<RefCreateNode>(e)->value));
        return Place{Place::kRegister, r, {}};
      }
      case ExprKind::RefRead: {
        int32_t r = b_.reg();
        b_.ref_read(r, object(as<RefReadNode>(e)->ref));
        return Place{Place::kRegister, r, {}};
      }
      case ExprKind::RefWrite: {
        auto& w = *as<RefWriteNode>(e);
        int32_t value = object(w.value);
        b_.ref_write(object(w.ref), value);
        return Place{Place::kTuple, 0, {}};
      }
      default:
        return place_of(e);
    }
  }

  Place emit_call(const LetNode& l, const CallNode& c) {
    if (auto* f = primitive_of(c)) return emit_kernel(l, c, *f);
    RELAY_CHECK(!isa<OpNode>(c.op), "an operator call outside of a primitive function");
    std::vector<int32_t> args;
    for (const Expr& a : c.args) args.push_back(object(a));
    int32_t r = b_.reg();
    if (auto* g = as<GlobalVarNode>(c.op)) {
      b_.call(r, program_.global(*g), args);
    } else if (auto* constructor = as<ConstructorNode>(c.op)) {
      b_.alloc_adt(r, static_cast<int32_t>(constructor->tag), args);
    } else {
      b_.invoke_closure(r, object(c.op), args);
    }
    return Place{Place::kRegister, r, {}};
  }

  // What the kernel's operators assume about sizes is checked before it runs.
  void emit_assumptions(const FunctionNode& f) {
    post_order(
        f.body,
        [&](const Node& n) {
          auto* call = as<CallNode>(&n);
          if (call == nullptr || !isa<OpNode>(call->op)) return;
          for (const DimAssumption& s : assumptions_of(*call)) {
            bool equal = s.kind == DimAssumption::kEqual;
            int32_t a = dim_value(s.a, call->span), b = dim_value(s.b, call->span);
            int32_t holds = b_.int_reg();
            b_.int_op(equal ? IntOp::eq : IntOp::le, holds, equal ? a : b, equal ? b : a);
            FunctionBuilder::Label broken = b_.label(), end = b_.label();
            b_.if_zero(holds, broken);
            b_.jump(end);
            b_.bind(broken);
            b_.fatal(program_.string(
                         as<OpNode>(call->op)->name + ": the inputs do not fit: " + to_string(s.a) +
                         (equal ? " must equal " : " must be at least ") + to_string(s.b)),
                     call->span ? program_.string(call->span.describe()) : -1);
            b_.bind(end);
          }
        },
        family::expr);
  }

  Place emit_kernel(const LetNode& l, const CallNode& c, const FunctionNode& f) {
    emit_assumptions(f);
    bool as_object = escapes_.contains(l.var.get());
    if (is_view(f)) {
      Place source = place_of(c.args[0]);
      if (!as_object) return source;
      auto* t = as<TensorTypeNode>(c.type);
      std::vector<int32_t> dims;
      for (const Dim& d : t->shape) dims.push_back(dim_value(d, c.span));
      int32_t r = b_.reg();
      b_.reshape(r, object(source, c.args[0]->type, c.span), dims);
      return Place{Place::kRegister, r, {}};
    }
    std::vector<Operand> operands;
    for (const Expr& a : c.args) operands_of(place_of(a), a->type, operands);
    auto claimed = claimed_.find(l.var.get());
    Place result = claimed != claimed_.end() ? Place{Place::kOutput, claimed->second, {}}
                                             : fresh(c.type, as_object, c.span);
    operands_of(result, c.type, operands);
    int32_t kernel = program_.kernel(cast<FunctionNode>(c.op));
    for (const TypeVar& v : program_.out.kernels[static_cast<size_t>(kernel)].composed.dims) {
      operands.push_back(Operand::dim(dim_reg(v, c.span)));
    }
    b_.invoke_kernel(kernel, operands);
    if (as_object && isa<TupleTypeNode>(c.type)) {
      return Place{Place::kRegister, object(result, c.type, c.span), {}};
    }
    return result;
  }

  ProgramBuilder& program_;
  Function f_;
  std::vector<Var> captured_;
  Var self_;
  int32_t index_;
  FunctionBuilder b_;
  ArenaReport report_;
  bool writes_outputs_ = false;
  const LetNode* now_ = nullptr;  // what is being compiled
  int64_t step_ = 0;
  std::unordered_set<const Node*> escapes_;
  std::unordered_map<const Node*, Place> places_;
  std::unordered_map<const Node*, int64_t> claimed_;
  std::unordered_map<const Node*, int32_t> dim_regs_;
  std::vector<BufferLifetime> buffers_;
  // What is still to be written, last first; keeps nested branches off the C stack.
  std::vector<std::function<void()>> tasks_;
};

Bytecode ProgramBuilder::run() {
  for (size_t i = 0; i < mod_->functions.size(); ++i) {
    const std::string& name = mod_->global_vars[i]->name_hint;
    globals_[name] = next_function_;
    queue_.push_back({mod_->functions[i], name, {}, nullptr, next_function_++});
  }
  size_t globals = queue_.size();
  while (!queue_.empty()) {
    Job job = std::move(queue_.front());
    queue_.pop_front();
    size_t index = static_cast<size_t>(job.index);
    FunctionCompiler compiler(*this, job.f, job.name, std::move(job.captured), job.self, job.index,
                              index >= globals);
    place(job.index, compiler.run());
    if (compiler.report().arena_bytes > 0) out.arenas.push_back(compiler.report());
  }
  return std::move(out);
}

}  // namespace

Bytecode compile_to_bytecode(const Module& mod) { return ProgramBuilder(mod).run(); }

}  // namespace relay
