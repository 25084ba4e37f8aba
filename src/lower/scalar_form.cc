#include "lower/scalar_form.h"

#include <unordered_map>

#include "node/walk.h"

namespace relay {
namespace {

using runtime::DType;
using runtime::FloatOp;
using runtime::IntOp;
using runtime::ScalarConversion;
using tir::BinaryOp;

// More than this is quicker as a kernel.
constexpr size_t kMaxSteps = 24;

bool is_integral(DType t) { return t.is_bool() || t.is_int(); }

std::optional<IntOp> int_op_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return IntOp::add;
    case BinaryOp::Sub:
      return IntOp::sub;
    case BinaryOp::Mul:
      return IntOp::mul;
    case BinaryOp::Div:
      return IntOp::div;
    case BinaryOp::Mod:
      return IntOp::mod;
    case BinaryOp::FloorDiv:
      return IntOp::floor_div;
    case BinaryOp::FloorMod:
      return IntOp::floor_mod;
    case BinaryOp::Min:
      return IntOp::min;
    case BinaryOp::Max:
      return IntOp::max;
    case BinaryOp::Eq:
      return IntOp::eq;
    case BinaryOp::Ne:
      return IntOp::ne;
    case BinaryOp::Lt:
    case BinaryOp::Gt:
      return IntOp::lt;
    case BinaryOp::Le:
    case BinaryOp::Ge:
      return IntOp::le;
    case BinaryOp::And:
      return IntOp::both;
    case BinaryOp::Or:
      return IntOp::either;
    case BinaryOp::BitAnd:
      return IntOp::bit_and;
    case BinaryOp::BitOr:
      return IntOp::bit_or;
    case BinaryOp::BitXor:
      return IntOp::bit_xor;
    case BinaryOp::Shl:
      return IntOp::shift_left;
    case BinaryOp::Shr:
      return IntOp::shift_right;
    default:
      return std::nullopt;
  }
}

std::optional<FloatOp> float_op_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return FloatOp::add;
    case BinaryOp::Sub:
      return FloatOp::sub;
    case BinaryOp::Mul:
      return FloatOp::mul;
    case BinaryOp::Div:
      return FloatOp::div;
    case BinaryOp::Eq:
      return FloatOp::eq;
    case BinaryOp::Ne:
      return FloatOp::ne;
    case BinaryOp::Lt:
    case BinaryOp::Gt:
      return FloatOp::lt;
    case BinaryOp::Le:
    case BinaryOp::Ge:
      return FloatOp::le;
    default:
      return std::nullopt;
  }
}

// Whether it gives a bool for bools.
bool is_logical(BinaryOp op) {
  return tir::is_comparison(op) || op == BinaryOp::And || op == BinaryOp::Or ||
         op == BinaryOp::BitAnd || op == BinaryOp::BitOr || op == BinaryOp::BitXor;
}

bool divides(BinaryOp op) {
  return op == BinaryOp::Div || op == BinaryOp::Mod || op == BinaryOp::FloorDiv ||
         op == BinaryOp::FloorMod;
}

// Translates the stores of a kernel without loops, in order.
class ScalarTranslator {
 public:
  explicit ScalarTranslator(const tir::PrimFuncNode& f) : f_(f) {
    for (; next_ < f.num_inputs; ++next_) {
      buffers_[f.params[static_cast<size_t>(next_)].get()] = static_cast<int32_t>(next_);
    }
  }

  std::optional<ScalarForm> run() {
    std::vector<tir::Stmt> stack{f_.body};
    while (!stack.empty() && good_) {
      tir::Stmt s = stack.back();
      stack.pop_back();
      if (auto* seq = as<tir::SeqNode>(s)) {
        stack.insert(stack.end(), seq->stmts.rbegin(), seq->stmts.rend());
      } else if (auto* allocate = as<tir::AllocateNode>(s)) {
        stack.push_back(allocate->body);
      } else if (auto* block = as<tir::BlockNode>(s);
                 block != nullptr && block->iters.empty() && !block->init && !block->predicate) {
        stack.push_back(block->body);
      } else if (auto* store = as<tir::StoreNode>(s);
                 store != nullptr && store->indices.empty() && !store->predicate) {
        buffers_[store->buffer.get()] = value(store->value);
      } else {
        good_ = false;
      }
    }
    if (!good_ || form_.instructions.size() > kMaxSteps) return std::nullopt;
    auto result = buffers_.find(f_.params.back().get());
    if (result == buffers_.end()) return std::nullopt;
    form_.result = result->second;
    note_used();
    return std::move(form_);
  }

 private:
  using Instruction = ScalarForm::Instruction;

  int32_t add(Instruction step) {
    form_.instructions.push_back(step);
    return static_cast<int32_t>(next_++);
  }
  int32_t constant(int64_t bits) { return add({.kind = Instruction::kConstant, .constant = bits}); }
  int32_t int_op(IntOp op, int32_t a, int32_t b, int bits = 64) {
    return add({Instruction::kInt, static_cast<uint8_t>(op), bits, a, b});
  }
  int32_t float_op(FloatOp op, int32_t a, int32_t b, DType t) {
    return add({Instruction::kFloat, static_cast<uint8_t>(op), t.bits, a, b});
  }
  int32_t convert(ScalarConversion c, int32_t a) {
    return add({.kind = Instruction::kConvert, .op = static_cast<uint8_t>(c), .a = a});
  }
  // The letters of marks are constants that no step reads.
  void note_used() {
    auto use = [&](int32_t value) {
      if (value >= f_.num_inputs) {
        form_.instructions[static_cast<size_t>(value - f_.num_inputs)].used = true;
      }
    };
    use(form_.result);
    for (size_t i = form_.instructions.size(); i-- > 0;) {
      const Instruction& s = form_.instructions[i];
      if (!s.used || s.kind == Instruction::kConstant) continue;
      use(s.a);
      if (s.kind != Instruction::kConvert) use(s.b);
    }
  }
  int32_t none() {
    good_ = false;
    return 0;
  }

  int32_t value(const tir::PrimExpr& e) {
    std::unordered_map<const Node*, int32_t> done;
    post_order(
        e,
        [&](const Node& n) {
          if (!good_ || form_.instructions.size() > kMaxSteps) {
            good_ = false;
            return;
          }
          done[&n] = node(static_cast<const tir::PrimExprNode&>(n), done);
        },
        family::tir_expr);
    return good_ ? done.at(e.get()) : 0;
  }

  int32_t node(const tir::PrimExprNode& e, const std::unordered_map<const Node*, int32_t>& done) {
    if (!runtime::is_scalar_dtype(e.dtype)) return none();
    if (auto* i = as<tir::IntImmNode>(&e)) return constant(i->value);
    if (auto* x = as<tir::FloatImmNode>(&e)) return constant(float_bits(x->dtype, x->value));
    if (auto* load = as<tir::LoadNode>(&e)) {
      auto it = buffers_.find(load->buffer.get());
      bool known = it != buffers_.end() && load->indices.empty() && !load->predicate;
      return known ? it->second : none();
    }
    if (auto* c = as<tir::CallNode>(&e)) return index(*c, done);
    if (auto* n = as<tir::NotNode>(&e)) return int_op(IntOp::eq, done.at(n->a.get()), constant(0));
    if (auto* c = as<tir::CastNode>(&e)) return cast(*c, done.at(c->value.get()));
    if (auto* b = as<tir::BinaryNode>(&e)) {
      return binary(*b, done.at(b->a.get()), done.at(b->b.get()));
    }
    return none();
  }

  // An index that has to be one of an axis, and where it is in the source, which stands in marks.
  int32_t index(const tir::CallNode& e, const std::unordered_map<const Node*, int32_t>& done) {
    if (e.name == "print_mark" && tir::as_int(e.args[0])) return done.at(e.args[1].get());
    if (e.name != "index_in") return none();
    std::vector<int64_t> marks;
    tir::PrimExpr before = e.args[2];
    for (; auto* mark = as<tir::CallNode>(before); before = mark->args[1]) {
      if (mark->name != "print_mark") return none();
      marks.push_back(*tir::as_int(mark->args[0]));
    }
    std::string place;
    for (; !marks.empty(); marks.pop_back()) {
      for (auto letters = static_cast<uint64_t>(marks.back()); letters != 0; letters >>= 8) {
        place += static_cast<char>(letters & 0xFF);
      }
    }
    return add({.kind = Instruction::kIndex,
                .a = done.at(e.args[0].get()),
                .b = done.at(e.args[1].get()),
                .place = std::move(place)});
  }

  // A value that is a constant, also one that was stored before it is read.
  std::optional<int64_t> known(int32_t value) const {
    int64_t step = value - f_.num_inputs;
    if (step < 0) return std::nullopt;
    const Instruction& s = form_.instructions[static_cast<size_t>(step)];
    return s.kind == Instruction::kConstant ? std::optional(s.constant) : std::nullopt;
  }

  // Operations on registers fail for a zero divisor. 1 in its place gives what the language says: the dividend, and no
  // remainder.
  int32_t divisor(int32_t b) {
    if (auto number = known(b)) return *number == 0 ? constant(1) : b;
    return int_op(IntOp::add, b, int_op(IntOp::eq, b, constant(0)));
  }

  int32_t binary(const tir::BinaryNode& e, int32_t a, int32_t b) {
    DType t = e.a->dtype;
    if (e.op == BinaryOp::Gt || e.op == BinaryOp::Ge) std::swap(a, b);
    if (!is_integral(t)) {
      auto op = float_op_of(e.op);
      return op ? float_op(*op, a, b, t) : none();
    }
    auto op = int_op_of(e.op);
    if (!op || (t.is_bool() && !is_logical(e.op))) return none();
    if (divides(e.op)) b = divisor(b);
    if (e.op == BinaryOp::Shl || e.op == BinaryOp::Shr) {
      // What a shift by more than there is gives, the kernel knows.
      auto by = known(b);
      if (!by || *by < 0 || *by >= t.bits) return none();
    }
    return int_op(*op, a, b, e.dtype == DType::Int(32) ? 32 : 64);
  }

  int32_t cast(const tir::CastNode& e, int32_t value) {
    DType from = e.value->dtype, to = e.dtype;
    if (from == to) return value;
    if (is_integral(from)) {
      if (to.is_bool()) return int_op(IntOp::ne, value, constant(0));
      if (to == DType::Int(64) || from.is_bool()) {
        if (is_integral(to)) return value;
      }
      if (to == DType::Int(32)) return int_op(IntOp::add, value, constant(0), 32);
      return convert(
          to.bits == 32 ? ScalarConversion::int_to_float32 : ScalarConversion::int_to_float64,
          value);
    }
    if (to.is_bool()) return float_op(FloatOp::ne, value, constant(0), from);
    if (is_integral(to)) return none();
    return convert(
        to.bits == 32 ? ScalarConversion::float64_to_float32 : ScalarConversion::float32_to_float64,
        value);
  }

  const tir::PrimFuncNode& f_;
  ScalarForm form_;
  int64_t next_ = 0;  // the number of values
  std::unordered_map<const Node*, int32_t> buffers_;
  bool good_ = true;
};

}  // namespace

std::optional<runtime::DType> scalar_dtype(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  if (tensor == nullptr || tensor->rank() != 0 || !runtime::is_scalar_dtype(tensor->dtype)) {
    return std::nullopt;
  }
  return tensor->dtype;
}

std::optional<ScalarForm> scalar_form(const FunctionNode& primitive, const tir::PrimFunc& kernel) {
  if (!scalar_dtype(primitive.body->type)) return std::nullopt;
  for (const Var& p : primitive.params) {
    if (!scalar_dtype(p->type)) return std::nullopt;
  }
  return ScalarTranslator(*kernel.get()).run();
}

}  // namespace relay
