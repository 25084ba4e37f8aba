#include "vm/emit.h"

#include <algorithm>
#include <unordered_map>

#include "vm/last_use.h"

namespace relay {
namespace {

using namespace plan;
using plan::DeviceArena;
using runtime::FunctionBuilder;
using runtime::Operand;

runtime::KernelInfo info_of(const ProgramKernel& k, size_t launch) {
  const KernelSignature& s = k.signature;
  const KernelLaunch& l = s.launches[launch];
  runtime::KernelInfo info;
  info.name = l.name;
  info.origin = k.sites.front().origin;
  info.device = s.device;
  std::vector<KernelOperand> buffers = s.inputs;
  buffers.insert(buffers.end(), s.results.begin(), s.results.end());
  for (const KernelWorkspace& w : s.workspace) {
    buffers.push_back({.dtype = w.type->dtype, .shape = {}, .bytes = w.bytes});
  }
  for (size_t i : l.reads) info.buffer_bytes.push_back(buffers[i].bytes);
  for (size_t i : l.writes) {
    info.buffer_bytes.push_back(buffers[i].bytes);
    info.has_gaps |= !buffers[i].within.empty();
  }
  info.num_outputs = static_cast<uint32_t>(l.writes.size());
  info.num_dims = static_cast<uint32_t>(s.sizes.size());
  // The work of all launches is counted once.
  if (launch == 0) {
    info.flops = static_cast<int64_t>(s.flops);
    info.bytes = static_cast<int64_t>(s.bytes);
  }
  switch (s.entry.kind) {
    case KernelEntry::Kind::generated:
      break;
    case KernelEntry::Kind::library:
      info.linkage = runtime::KernelLinkage::library;
      break;
    case KernelEntry::Kind::host:
      info.linkage = runtime::KernelLinkage::host;
      break;
  }
  info.library = s.entry.file;
  info.symbol = s.entry.symbol;
  return info;
}

class Emitter {
 public:
  // `entries`: of each kernel of the plan, the first of the program's for its launches.
  Emitter(const PlanProgram& program, const std::vector<int32_t>& entries, const PlanFunction& f)
      : program_(program), entries_(entries), f_(f), b_(f.name) {}

  runtime::Function run() {
    declare();
    for (const Step& s : f_.steps) emit(s);
    runtime::Function out = std::move(b_).finish();
    vm::mark_last_uses(out);
    return out;
  }

 private:
  // An if or a match.
  struct Open {
    FunctionBuilder::Label next{};  // the next part
    FunctionBuilder::Label end{};   // what is behind the last one
    bool has_next = false;          // whether `next` is still to be bound
    bool falls_through = false;     // whether some part goes on behind the last one
    const Step* match = nullptr;
  };

  void declare() {
    for (const PlanSlot& p : f_.params) {
      if (auto* t = as<TensorTypeNode>(p.type)) {
        b_.param(p.name, spec_of(*t, p.device));
      } else {
        b_.param(p.name, p.text, parts_of(p.type));
        b_.param_device(p.device);
      }
    }
    for (const PlanSlot& r : f_.results) {
      if (auto* t = as<TensorTypeNode>(r.type)) {
        b_.result(r.name, spec_of(*t, r.device));
      } else {
        b_.result(r.name, r.text);
        b_.result_device(r.device);
      }
    }
    if (f_.returns_tuple) b_.returns_tuple();
    if (f_.internal) b_.internal();
    for (const Donation& d : f_.donations) b_.donate(d.param, d.output, d.in_place);
    for (auto i = static_cast<int32_t>(f_.params.size()); i < f_.num_objects; ++i) b_.reg();
    for (int32_t i = 0; i < f_.num_scalars; ++i) b_.int_reg();
    b_.arena_size(f_.arena_bytes);
    for (const DeviceArena& a : f_.device_arenas) b_.device(a.device, a.bytes);
    b_.num_places(static_cast<int32_t>(f_.places.size()));
  }

  int32_t reg(ValueId id) const { return f_.value(id).index; }
  uint8_t device_of(ValueId id) { return b_.device(f_.value(id).device); }
  std::vector<int32_t> regs(const std::vector<ValueId>& ids, size_t from = 0) const {
    std::vector<int32_t> out;
    for (size_t i = from; i < ids.size(); ++i) out.push_back(reg(ids[i]));
    return out;
  }
  Operand operand(ValueId id) const {
    const PlanValue& v = f_.value(id);
    switch (v.place) {
      case Place::object:
        return Operand::reg(v.index);
      case Place::scalar:
        return Operand::scalar(v.index);
      case Place::constant:
        return Operand::constant(v.index);
      case Place::output:
        return Operand::output(v.index);
      case Place::open:
        return Operand::place(v.index);
      case Place::arena:
        break;
    }
    const PlanBuffer& b = f_.buffer(v.index);
    return Operand::arena(b.position, b.bytes);
  }

  void emit_kernel(const Step& s) {
    const auto kernel = static_cast<size_t>(s.number);
    const KernelSignature& k = program_.kernels[kernel].signature;
    const size_t inputs = k.inputs.size();
    std::vector<ValueId> buffers(s.operands.begin(),
                                 s.operands.begin() + static_cast<std::ptrdiff_t>(inputs));
    buffers.insert(buffers.end(), s.results.begin(), s.results.end());
    b_.device(k.device);
    for (size_t l = 0; l < k.launches.size(); ++l) {
      std::vector<Operand> operands;
      for (size_t i : k.launches[l].reads) operands.push_back(operand(buffers[i]));
      for (size_t i : k.launches[l].writes) operands.push_back(operand(buffers[i]));
      for (size_t i = inputs; i < s.operands.size(); ++i) {
        operands.push_back(Operand::dim(reg(s.operands[i])));
      }
      b_.invoke_kernel(entries_[kernel] + static_cast<int32_t>(l), operands);
    }
  }

  void emit_check(const Step& s) {
    FunctionBuilder::Label broken = b_.label(), end = b_.label();
    b_.if_zero(reg(s.operands[0]), broken);
    b_.jump(end);
    b_.bind(broken);
    b_.fatal(s.text, s.where, regs(s.operands, 1));
    b_.bind(end);
  }

  // Ends the part before the next one: unless it has left the function, it goes on behind the last.
  void end_part(Open& open) {
    if (reachable_) b_.jump(open.end);
    open.falls_through |= reachable_;
    b_.bind(open.next);
    open.has_next = false;
    reachable_ = true;
  }

  void emit_clause(Open& open) {
    if (open.has_next) end_part(open);
    open.next = b_.label();
    open.has_next = true;
  }

  void emit_end() {
    Open open = open_.back();
    open_.pop_back();
    if (open.match != nullptr) {
      if (open.has_next) end_part(open);
      b_.match_fail(open.match->where, open.match->text,
                    open.match->text < 0 ? -1 : reg(open.match->operands[0]));
      reachable_ = false;
    }
    b_.bind(open.end);
    reachable_ |= open.falls_through;
  }

  void emit(const Step& s) {
    // Operand and result by number, as registers.
    auto in = [&](size_t i) { return reg(s.operands[i]); };
    auto out = [&] { return reg(s.results[0]); };
    auto number = static_cast<int32_t>(s.number);
    switch (s.kind) {
      case StepKind::kernel:
        return emit_kernel(s);
      case StepKind::copy:
        return b_.copy(operand(s.results[0]), operand(s.operands[0]), device_of(s.results[0]));
      case StepKind::alloc: {
        const PlanValue& v = f_.value(s.results[0]);
        return b_.alloc_static(out(), spec_of(*as<TensorTypeNode>(v.type), v.device));
      }
      case StepKind::alloc_sized:
        return b_.alloc_tensor(out(), s.dtype, regs(s.operands), device_of(s.results[0]));
      case StepKind::alloc_from_shape:
        return b_.alloc_from_shape(out(), s.dtype, in(0));
      case StepKind::view:
        return b_.reshape(out(), in(0), regs(s.operands, 1));
      case StepKind::alias:
      case StepKind::join:
        return;
      case StepKind::update:
        return b_.write_lines(out(), in(0), in(1),
                              s.operands.size() > 2 ? operand(s.operands[2]) : Operand::arena(0, 0),
                              out() == in(0));
      case StepKind::size:
        return b_.shape_of(out(), in(0), number);
      case StepKind::number:
        return b_.load_int(out(), s.number);
      case StepKind::load:
        return b_.load_scalar(out(), s.dtype, operand(s.operands[0]));
      case StepKind::box:
        return b_.box(out(), in(0), s.dtype);
      case StepKind::constant:
        return b_.load_const(out(), in(0));
      case StepKind::set:
        return b_.move(out(), in(0));
      case StepKind::set_scalar:
        return b_.move_int(out(), in(0));
      case StepKind::swap:
        return b_.swap(in(0), in(1));
      case StepKind::int_op:
        return b_.int_op(static_cast<runtime::IntOp>(s.op), out(), in(0), in(1), number);
      case StepKind::float_op:
        return b_.float_op(static_cast<runtime::FloatOp>(s.op), out(), in(0), in(1), number);
      case StepKind::convert:
        return b_.convert(static_cast<runtime::ScalarConversion>(s.op), out(), in(0));
      case StepKind::index:
        return b_.index_in(out(), in(0), in(1), s.text);
      case StepKind::check:
        return emit_check(s);
      case StepKind::if_:
        open_.push_back({b_.label(), b_.label(), true});
        return b_.if_zero(in(0), open_.back().next);
      case StepKind::else_:
        return end_part(open_.back());
      case StepKind::match:
        return open_.push_back({.end = b_.label(), .match = &s});
      case StepKind::clause:
        return emit_clause(open_.back());
      case StepKind::tag:
        return b_.if_not_tag(in(0), number, open_.back().next);
      case StepKind::end:
        return emit_end();
      case StepKind::field:
        return b_.get_field(out(), in(0), number);
      case StepKind::call:
        return b_.call(out(), number, regs(s.operands), s.where);
      case StepKind::tail_call:
        reachable_ = false;
        return b_.tail_call(number, regs(s.operands));
      case StepKind::invoke:
        return b_.invoke_closure(out(), in(0), regs(s.operands, 1), s.where);
      case StepKind::tail_invoke:
        reachable_ = false;
        return b_.tail_invoke(in(0), regs(s.operands, 1));
      case StepKind::closure:
        return b_.alloc_closure(out(), number, regs(s.operands));
      case StepKind::data:
        return b_.alloc_adt(out(), number, regs(s.operands));
      case StepKind::tuple:
        return b_.alloc_tuple(out(), regs(s.operands));
      case StepKind::ref_new:
        return b_.ref_new(out(), in(0));
      case StepKind::ref_read:
        return b_.ref_read(out(), in(0));
      case StepKind::ref_write:
        return b_.ref_write(in(0), in(1));
      case StepKind::return_value:
        reachable_ = false;
        return b_.ret(in(0));
      case StepKind::return_scalar:
        reachable_ = false;
        return b_.ret_scalar(in(0), s.dtype);
      case StepKind::return_outputs:
        reachable_ = false;
        return b_.ret_outputs();
      case StepKind::place:
        return b_.alloc_place(out(), s.dtype, regs(s.operands), device_of(s.results[0]));
      case StepKind::transfer: {
        const bool to_host = f_.value(s.results[0]).device == Device::cpu();
        const uint8_t device = device_of(to_host ? s.operands[0] : s.results[0]);
        events_[s.results[1]] = device;
        return b_.transfer(reg(s.results[1]), operand(s.results[0]), operand(s.operands[0]), device,
                           to_host);
      }
      case StepKind::wait: {
        std::vector<Operand> on_host;
        for (size_t i = 1; i < s.operands.size(); ++i) on_host.push_back(operand(s.operands[i]));
        return b_.wait(in(0), on_host, events_.at(s.operands[0]));
      }
      case StepKind::loop:
        loop_ = b_.label();
        return b_.bind(loop_);
      case StepKind::next:
        reachable_ = false;
        return b_.jump(loop_);
    }
  }

  const PlanProgram& program_;
  const std::vector<int32_t>& entries_;
  const PlanFunction& f_;
  FunctionBuilder b_;
  std::vector<Open> open_;
  bool reachable_ = true;  // whether control gets to the next step
  FunctionBuilder::Label loop_{};
  std::unordered_map<ValueId, uint8_t> events_;  // the devices of transfers
};

}  // namespace

runtime::TensorSpec spec_of(const TensorTypeNode& t, runtime::Device device) {
  runtime::TensorSpec spec;
  spec.dtype = t.dtype;
  spec.device = device;
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

std::vector<runtime::TypePart> parts_of(const Type& type) {
  // Types are graphs; what is behind the last part counts as it is.
  constexpr size_t kMaxParts = 10000;
  using runtime::TypePart;
  std::vector<TypePart> out;
  if (!isa<TupleTypeNode>(type)) return out;
  std::vector<Type> open{type};
  while (!open.empty()) {
    Type t = std::move(open.back());
    open.pop_back();
    auto* tuple = as<TupleTypeNode>(t);
    if (auto* tensor = as<TensorTypeNode>(t)) {
      out.push_back({TypePart::tensor, 0, spec_of(*tensor)});
    } else if (tuple != nullptr && out.size() + open.size() < kMaxParts) {
      out.push_back({TypePart::tuple, static_cast<uint32_t>(tuple->fields.size()), {}});
      open.insert(open.end(), tuple->fields.rbegin(), tuple->fields.rend());
    } else {
      out.push_back({TypePart::other, 0, {}});
    }
  }
  return out;
}

runtime::Program emit(const PlanProgram& plan) {
  runtime::Program out;
  out.constants = plan.constants;
  out.constant_devices = plan.constant_devices;
  out.strings = plan.strings;
  std::vector<int32_t> entries;
  for (const ProgramKernel& k : plan.kernels) {
    entries.push_back(static_cast<int32_t>(out.kernels.size()));
    for (size_t l = 0; l < k.signature.launches.size(); ++l) out.kernels.push_back(info_of(k, l));
  }
  for (const PlanFunction& f : plan.functions) {
    out.functions.push_back(Emitter(plan, entries, f).run());
  }
  return out;
}

}  // namespace relay
