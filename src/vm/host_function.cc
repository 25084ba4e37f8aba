#include "vm/host_function.h"

#include <cstring>

#include "runtime/core/scalar_ops.h"

namespace relay {
namespace {

using namespace plan;
namespace hc = hostcode;
using hc::BlockId;
using hc::Inst;
using hc::LocalId;
using hc::Op;
using runtime::DType;
using runtime::ObjectKind;

// The element of a constant, as an integer register has it.
int64_t element_of(const Tensor& constant, DType dtype) {
  if (dtype.is_bool()) return *constant.data<uint8_t>() != 0;
  if (dtype.bits == 64) {
    int64_t value;
    std::memcpy(&value, constant.data(), sizeof(value));
    return value;
  }
  int32_t value;
  std::memcpy(&value, constant.data(), sizeof(value));
  return value;
}

// Blocks, locals and instructions of a function.
class Writer {
 public:
  Writer(std::string name, hc::FunctionKind kind, int32_t index, hc::Signature signature) {
    f.name = std::move(name);
    f.kind = kind;
    f.index = index;
    f.signature = std::move(signature);
    for (const auto& p : f.signature.params) local(!p.has_value());
    begin(block());
  }

  LocalId local(bool is_word) {
    f.locals.push_back({.is_word = is_word});
    return static_cast<LocalId>(f.locals.size()) - 1;
  }
  BlockId block() {
    f.blocks.emplace_back();
    return static_cast<BlockId>(f.blocks.size()) - 1;
  }
  void begin(BlockId block) { at_ = block; }

  Inst& add(Op op, LocalId result = -1, std::vector<LocalId> operands = {}) {
    auto& insts = f.blocks[static_cast<size_t>(at_)].insts;
    insts.push_back({.op = op, .result = result, .operands = std::move(operands)});
    return insts.back();
  }
  void jump(BlockId to) { add(Op::jump).targets = {to}; }
  // Goes on in a new block for a scalar that is not 0.
  void branch(LocalId scalar, BlockId otherwise) {
    const BlockId next = block();
    add(Op::branch, -1, {scalar}).targets = {next, otherwise};
    begin(next);
  }
  LocalId number(int64_t value) {
    const LocalId out = local(false);
    add(Op::number, out).number = value;
    return out;
  }

  LocalId box(LocalId scalar, DType dtype) {
    const LocalId out = local(true);
    add(Op::box, out, {scalar}).dtype = dtype;
    return out;
  }
  LocalId unbox(LocalId word, DType dtype) {
    const LocalId out = local(false);
    add(Op::unbox, out, {word}).dtype = dtype;
    return out;
  }

  // Removes blocks that nothing reaches.
  hc::Function finish() {
    std::vector<BlockId> renamed(f.blocks.size(), -1), open{0};
    renamed[0] = 0;
    while (!open.empty()) {
      const auto b = static_cast<size_t>(open.back());
      open.pop_back();
      RELAY_CHECK(!f.blocks[b].insts.empty(), "a block of host code is empty");
      for (BlockId t : f.blocks[b].insts.back().targets) {
        if (renamed[static_cast<size_t>(t)] == 0 || t == 0) continue;
        renamed[static_cast<size_t>(t)] = 0;
        open.push_back(t);
      }
    }
    BlockId next = 0;
    std::vector<hc::Block> kept;
    for (size_t b = 0; b < f.blocks.size(); ++b) {
      if (renamed[b] < 0) continue;
      renamed[b] = next++;
      kept.push_back(std::move(f.blocks[b]));
    }
    for (hc::Block& b : kept) {
      for (BlockId& t : b.insts.back().targets) t = renamed[static_cast<size_t>(t)];
    }
    f.blocks = std::move(kept);
    return std::move(f);
  }

  hc::Function f;

 private:
  BlockId at_ = 0;
};

class Body {
 public:
  Body(const PlanProgram& plan, int32_t index, const std::vector<hc::Signature>& signatures)
      : plan_(plan),
        f_(plan.functions[static_cast<size_t>(index)]),
        signatures_(signatures),
        w_(f_.name, hc::FunctionKind::body, index, signatures[static_cast<size_t>(index)]),
        locals_(f_.values.size(), -1) {}

  hc::Function run() {
    for (size_t i = 0; i < f_.params.size(); ++i) locals_[i] = static_cast<LocalId>(i);
    w_.add(Op::enter);
    const BlockId start = w_.block();
    w_.jump(start);
    w_.begin(start);
    for (const Step& s : f_.steps) step(s);
    // Only a block that nothing reaches is behind the last step.
    if (!ended_) w_.add(Op::no_match);
    return w_.finish();
  }

 private:
  struct Open {
    BlockId end = 0;
    BlockId next = -1;  // the next part, while it is still to come
    const Step* match = nullptr;
  };

  std::optional<DType> dtype_of(ValueId id) const { return scalar_dtype(f_.value(id).type); }

  // The local of a value. Scalars of the plan have no type where they are sizes.
  LocalId local(ValueId id) {
    LocalId& known = locals_[static_cast<size_t>(id)];
    if (known < 0) {
      known = w_.local(f_.value(id).place != Place::scalar && !dtype_of(id).has_value());
    }
    return known;
  }
  bool is_word(LocalId id) const { return w_.f.local(id).is_word; }

  LocalId word(ValueId id) {
    const LocalId at = local(id);
    return is_word(at) ? at : w_.box(at, *dtype_of(id));
  }
  std::vector<LocalId> words(const std::vector<ValueId>& ids) {
    std::vector<LocalId> out;
    for (ValueId id : ids) out.push_back(word(id));
    return out;
  }
  LocalId scalar(ValueId id, DType dtype) {
    const LocalId at = local(id);
    return is_word(at) ? w_.unbox(at, dtype) : at;
  }
  // The value in the form that a signature asks for.
  LocalId in_form(ValueId id, const std::optional<DType>& dtype) {
    return dtype ? scalar(id, *dtype) : word(id);
  }

  // Adds an instruction that gives a word, which becomes the value.
  Inst& add_word(Op op, ValueId result, std::vector<LocalId> operands) {
    const LocalId to = local(result);
    if (is_word(to)) return w_.add(op, to, std::move(operands));
    const LocalId made = w_.local(true);
    pending_ = {made, to, *dtype_of(result)};
    return w_.add(op, made, std::move(operands));
  }
  // Takes the scalar out of the word that add_word has added an instruction for.
  void settle() {
    if (pending_.word < 0) return;
    w_.add(Op::unbox, pending_.scalar, {pending_.word}).dtype = pending_.dtype;
    pending_.word = -1;
  }

  void assign(ValueId result, ValueId from) {
    const LocalId to = local(result), at = local(from);
    if (is_word(to)) {
      const LocalId value = word(from);
      w_.add(Op::move, to, {value});
    } else if (is_word(at)) {
      w_.add(Op::unbox, to, {at}).dtype = *dtype_of(result);
    } else {
      w_.add(Op::copy, to, {at});
    }
  }

  // Steps that nothing reaches go into a block that `finish` removes.
  void reach() {
    if (!ended_) return;
    w_.begin(w_.block());
    ended_ = false;
  }

  void new_cell(ObjectKind kind, const Step& s) {
    const std::vector<LocalId> fields = words(s.operands);
    Inst& inst = add_word(Op::cell, s.results[0], fields);
    inst.kind = kind;
    inst.number = kind == ObjectKind::tuple ? 0 : s.number;
  }

  std::vector<LocalId> arguments(const Step& s) {
    const hc::Signature& callee = signatures_[static_cast<size_t>(s.number)];
    std::vector<LocalId> out;
    for (size_t i = 0; i < s.operands.size(); ++i) {
      out.push_back(in_form(s.operands[i], callee.params[i]));
    }
    return out;
  }

  void call(const Step& s) {
    const auto& result = signatures_[static_cast<size_t>(s.number)].result;
    const std::vector<LocalId> args = arguments(s);
    if (!result) {
      Inst& inst = add_word(Op::call, s.results[0], args);
      inst.number = s.number;
      inst.where = s.where;
      return;
    }
    const LocalId to = local(s.results[0]);
    const LocalId made = is_word(to) ? w_.local(false) : to;
    Inst& inst = w_.add(Op::call, made, args);
    inst.number = s.number;
    inst.where = s.where;
    if (made != to) w_.add(Op::box, to, {made}).dtype = *result;
  }

  void give_back(LocalId at) {
    w_.add(Op::ret, -1, {at});
    ended_ = true;
  }

  void load(const Step& s) {
    const PlanValue& from = f_.value(s.operands[0]);
    const LocalId to = local(s.results[0]);
    if (from.place == Place::constant) {
      w_.add(Op::number, to).number =
          element_of(plan_.constants[static_cast<size_t>(from.index)], s.dtype);
      return;
    }
    const LocalId at = local(s.operands[0]);
    if (is_word(at)) {
      w_.add(Op::unbox, to, {at}).dtype = s.dtype;
    } else {
      w_.add(Op::copy, to, {at});
    }
  }

  void constant(const Step& s) {
    const PlanValue& from = f_.value(s.operands[0]);
    const LocalId to = local(s.results[0]);
    if (is_word(to)) {
      w_.add(Op::constant, to).number = from.index;
    } else {
      w_.add(Op::number, to).number =
          element_of(plan_.constants[static_cast<size_t>(from.index)], *dtype_of(s.results[0]));
    }
  }

  void tag(const Step& s) {
    const LocalId found = w_.local(false), same = w_.local(false);
    w_.add(Op::tag, found, {local(s.operands[0])});
    const LocalId wanted = w_.number(s.number);
    Inst& equal = w_.add(Op::int_op, same, {found, wanted});
    equal.sub = static_cast<uint8_t>(runtime::IntOp::eq);
    equal.number = 64;
    w_.branch(same, open_.back().next);
  }

  // Ends the part before the next one.
  void end_part(Open& open) {
    if (!ended_) w_.jump(open.end);
    w_.begin(open.next);
    open.next = -1;
    ended_ = false;
  }

  void end_open() {
    Open open = open_.back();
    open_.pop_back();
    if (open.match != nullptr) {
      if (open.next >= 0) end_part(open);
      reach();
      std::vector<LocalId> value;
      if (open.match->text >= 0) value.push_back(local(open.match->operands[0]));
      Inst& inst = w_.add(Op::no_match, -1, std::move(value));
      inst.where = open.match->where;
      inst.text = open.match->text;
      ended_ = true;
    }
    if (!ended_) w_.jump(open.end);
    w_.begin(open.end);
    ended_ = false;
  }

  void arithmetic(Op op, const Step& s) {
    std::vector<LocalId> operands;
    for (ValueId id : s.operands) operands.push_back(local(id));
    // Sizes that a message shows are of tensors, which host code does not have.
    if (op == Op::check) operands.resize(1);
    Inst& inst = w_.add(op, s.results.empty() ? -1 : local(s.results[0]), std::move(operands));
    inst.sub = s.op;
    inst.number = s.number;
    inst.text = s.text;
    inst.where = s.where;
  }

  void step(const Step& s) {
    if (s.kind != StepKind::else_ && s.kind != StepKind::clause && s.kind != StepKind::end) reach();
    emit(s);
    settle();
  }

  void emit(const Step& s) {
    switch (s.kind) {
      case StepKind::number:
        w_.add(Op::number, local(s.results[0])).number = s.number;
        return;
      case StepKind::load:
        return load(s);
      case StepKind::box:
      case StepKind::set:
      case StepKind::set_scalar:
        return assign_scalar_or_word(s);
      case StepKind::constant:
        return constant(s);
      case StepKind::int_op:
        return arithmetic(Op::int_op, s);
      case StepKind::float_op:
        return arithmetic(Op::float_op, s);
      case StepKind::convert:
        return arithmetic(Op::convert, s);
      case StepKind::index:
        return arithmetic(Op::index, s);
      case StepKind::check:
        return arithmetic(Op::check, s);
      case StepKind::if_:
        open_.push_back({.end = w_.block(), .next = w_.block()});
        return w_.branch(local(s.operands[0]), open_.back().next);
      case StepKind::else_:
        return end_part(open_.back());
      case StepKind::match:
        return open_.push_back({.end = w_.block(), .match = &s});
      case StepKind::clause:
        if (open_.back().next >= 0) end_part(open_.back());
        reach();
        open_.back().next = w_.block();
        return;
      case StepKind::tag:
        return tag(s);
      case StepKind::end:
        return end_open();
      case StepKind::field:
        add_word(Op::field, s.results[0], {local(s.operands[0])}).number = s.number;
        return;
      case StepKind::call:
        return call(s);
      case StepKind::tail_call: {
        const std::vector<LocalId> args = arguments(s);
        w_.add(Op::tail_call, -1, args).number = s.number;
        ended_ = true;
        return;
      }
      case StepKind::invoke: {
        const std::vector<LocalId> args = words(s.operands);
        add_word(Op::invoke, s.results[0], args).where = s.where;
        return;
      }
      case StepKind::tail_invoke: {
        const std::vector<LocalId> args = words(s.operands);
        w_.add(Op::tail_invoke, -1, args);
        ended_ = true;
        return;
      }
      case StepKind::closure:
        return new_cell(ObjectKind::closure, s);
      case StepKind::data:
        return new_cell(ObjectKind::adt, s);
      case StepKind::tuple:
        return new_cell(ObjectKind::tuple, s);
      case StepKind::ref_new: {
        const LocalId content = word(s.operands[0]);
        w_.add(Op::ref_new, local(s.results[0]), {content});
        return;
      }
      case StepKind::ref_read:
        add_word(Op::ref_read, s.results[0], {local(s.operands[0])});
        return;
      case StepKind::ref_write: {
        const LocalId content = word(s.operands[1]);
        w_.add(Op::ref_write, -1, {local(s.operands[0]), content});
        return;
      }
      case StepKind::return_value:
        return give_back(in_form(s.operands[0], w_.f.signature.result));
      case StepKind::return_scalar: {
        LocalId at = local(s.operands[0]);
        if (!w_.f.signature.result) at = w_.box(at, s.dtype);
        return give_back(at);
      }
      case StepKind::loop:
        loop_ = w_.block();
        w_.jump(loop_);
        return w_.begin(loop_);
      case StepKind::next:
        w_.add(Op::poll);
        w_.jump(loop_);
        ended_ = true;
        return;
      default:
        throw InternalError("internal error: host code of a step that it does not hold");
    }
  }

  void assign_scalar_or_word(const Step& s) {
    if (s.kind == StepKind::box && is_word(local(s.results[0]))) {
      w_.add(Op::box, local(s.results[0]), {local(s.operands[0])}).dtype = s.dtype;
      return;
    }
    assign(s.results[0], s.operands[0]);
  }

  const PlanProgram& plan_;
  const PlanFunction& f_;
  const std::vector<hc::Signature>& signatures_;
  Writer w_;
  std::vector<LocalId> locals_;
  std::vector<Open> open_;
  bool ended_ = false;  // whether the last instruction ends its block
  BlockId loop_ = 0;
  struct {
    LocalId word = -1;
    LocalId scalar = -1;
    DType dtype{};
  } pending_;
};

// Words as a body takes them.
std::vector<LocalId> arguments_of(Writer& w, const hc::Signature& body,
                                  std::vector<LocalId> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (body.params[i]) words[i] = w.unbox(words[i], *body.params[i]);
  }
  return words;
}

}  // namespace

std::string why_not_host_code(const PlanFunction& f, const Step& s) {
  switch (s.kind) {
    case StepKind::kernel:
      return "it calls kernels";
    case StepKind::return_outputs:
      return "it writes its results into buffers of its caller";
    case StepKind::copy:
    case StepKind::alloc:
    case StepKind::alloc_sized:
    case StepKind::alloc_from_shape:
    case StepKind::view:
    case StepKind::alias:
    case StepKind::join:
    case StepKind::update:
    case StepKind::size:
    case StepKind::swap:
    case StepKind::place:
      return "it works on tensors";
    case StepKind::transfer:
    case StepKind::wait:
      return "it copies between devices";
    default:
      break;
  }
  auto in_registers = [&](ValueId id) {
    const Place place = f.value(id).place;
    const bool constant = s.kind == StepKind::load || s.kind == StepKind::constant;
    return place == Place::object || place == Place::scalar ||
           (place == Place::constant && constant);
  };
  for (ValueId id : s.operands) {
    if (!in_registers(id)) return "it works on tensors";
  }
  for (ValueId id : s.results) {
    if (!in_registers(id)) return "it works on tensors";
  }
  return "";
}

hc::Signature natural_signature(const PlanFunction& f) {
  hc::Signature out;
  // Parameter i is value i.
  for (size_t i = 0; i < f.params.size(); ++i) {
    out.params.push_back(scalar_dtype(f.values[i].type));
  }
  if (f.results.size() == 1 && !f.returns_tuple) out.result = scalar_dtype(f.results[0].type);
  return out;
}

hc::Function build_host_body(const PlanProgram& plan, int32_t index,
                             const std::vector<hc::Signature>& signatures) {
  return Body(plan, index, signatures).run();
}

hc::Function build_host_entry(const std::string& name, int32_t index, const hc::Signature& body) {
  hc::Signature words;
  words.params.resize(body.params.size());
  Writer w(name, hc::FunctionKind::entry, index, words);
  std::vector<LocalId> args;
  for (size_t i = 0; i < body.params.size(); ++i) args.push_back(static_cast<LocalId>(i));
  args = arguments_of(w, body, std::move(args));
  LocalId out = w.local(!body.result.has_value());
  w.add(hc::Op::call, out, args).number = index;
  if (body.result) out = w.box(out, *body.result);
  w.add(hc::Op::ret, -1, {out});
  return w.finish();
}

hc::Function build_host_closure(const std::string& name, int32_t index, const hc::Signature& body,
                                int32_t captured) {
  RELAY_CHECK(!body.result, "a body of closures gives a scalar");
  constexpr LocalId kCell = 0, kGivenUp = 1;
  const auto count = static_cast<size_t>(captured);
  hc::Signature words;
  words.params.resize(2 + body.params.size() - count);
  words.params[kGivenUp] = DType::Int(64);
  Writer w(name, hc::FunctionKind::closure, index, words);
  w.f.captured = captured;
  w.f.locals[kCell].borrowed = true;
  std::vector<LocalId> args;
  for (size_t i = 0; i < count; ++i) {
    args.push_back(w.local(true));
    w.add(hc::Op::capture, args.back(), {kCell, kGivenUp}).number = static_cast<int64_t>(i);
  }
  w.add(hc::Op::let_go, -1, {kCell, kGivenUp});
  for (size_t i = count; i < body.params.size(); ++i) {
    args.push_back(static_cast<LocalId>(2 + i - count));
  }
  args = arguments_of(w, body, std::move(args));
  w.add(hc::Op::tail_call, -1, args).number = index;
  return w.finish();
}

}  // namespace relay
