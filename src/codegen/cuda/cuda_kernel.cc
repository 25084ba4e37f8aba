#include "codegen/cuda/cuda_kernel.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <utility>

#include "codegen/cuda/copies.h"
#include "codegen/cuda/device_math.h"
#include "codegen/cuda/warp_exchange.h"
#include "codegen/cuda/warp_matrix.h"
#include "codegen/device/group_writer.h"
#include "codegen/llvm/kernel_code.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/cuda/geometry.h"
#include "tir/arith/analyzer.h"
#include "tir/copied_value.h"
#include "tir/lane_reduction.h"
#include "tir/passes/statements.h"
#include "tir/warp_nest.h"

namespace relay::codegen {
namespace {

// PTX's state spaces, by LLVM's numbers.
constexpr unsigned kGlobal = 1, kShared = 3;

// PTX before version 8.1 has 4,352 bytes for the parameters of a launch.
constexpr size_t kMostParameters = 4352 / 8;

// Groups with products of warps that a multiprocessor has registers for.
constexpr int64_t kResidentGroups = 2;

// What an axis of a launch counts by.
struct AxisRegisters {
  llvm::Intrinsic::ID item, items, group, groups;
};
constexpr AxisRegisters kAxes[] = {
    {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x,
     llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y, llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_y,
     llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y},
    {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z, llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_z,
     llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z},
};

class CudaKernel : private KernelBuilder, private GroupWriter {
 public:
  CudaKernel(llvm::Module& module, const PrimFuncNode& f, const Target& target)
      : KernelBuilder(module, f, target), GroupWriter(device_), device_(f, "PTX") {}

  runtime::DeviceSource build() {
    find_shared();
    for (const LaunchPart& part : device_.parts()) launch(part);
    return device_.take("");
  }

 private:
  void launch(const LaunchPart& part) {
    device_.begin_launch(part);
    begin_group(part.group);
    function_ = declare(part);
    begin_function(function_);
    if (device_.ends_after_failure()) {
      Value* word = b_.CreateLoad(b_.getInt32Ty(), failed_, /*isVolatile=*/true);
      end_unless(b_.CreateIsNull(word));
    }
    for (const StmtNode* s : part.around) {
      forget(0);
      if (auto* l = as<LetStmtNode>(s)) {
        vars_[l->var.get()] = expr(l->value);
      } else {
        end_unless(expr(static_cast<const tir::IfNode*>(s)->cond));
      }
    }
    width_.fill(nullptr);
    if (part.has_groups()) {
      groups(part, part.axes.size());
    } else {
      items(part, part.axes.size());
    }
    finish_function();
  }

  llvm::Function* declare(const LaunchPart& part) {
    llvm::Type* global = b_.getPtrTy(kGlobal);
    std::vector<llvm::Type*> types(device_.launch_buffers().size(), global);
    types.insert(types.end(), f_.dims.size(), b_.getInt64Ty());
    types.push_back(global);
    types.push_back(b_.getInt32Ty());
    if (types.size() > kMostParameters) {
      device_.unsupported("a launch of " + std::to_string(types.size()) +
                          " parameters, more than " + std::to_string(kMostParameters));
    }
    llvm::Function* f = make_function(device_.launch().name, types, /*internal=*/false);
    f->setCallingConv(llvm::CallingConv::PTX_Kernel);
    if (!target_.keeps_denormals) {
      f->addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
    }
    if (part.has_groups()) {
      constexpr const char* kItems[] = {"reqntidx", "reqntidy", "reqntidz"};
      for (size_t i = 0; i < part.group.size(); ++i) annotate(f, kItems[i], part.group[i]);
    }
    buffers_.clear();
    vars_.clear();
    unsigned next = 0;
    for (const LaunchBuffer& b : device_.launch_buffers()) {
      llvm::Argument* a = f->getArg(next++);
      // LLVM moves accesses of memory that only the function knows across a barrier, behind which other items of a group
      // have changed it.
      const bool is_exchanged = part.has_groups() && b.is_stored;
      if (!shared_.contains(b.buffer) && !is_exchanged) a->addAttr(llvm::Attribute::NoAlias);
      if (!b.is_stored) a->addAttr(llvm::Attribute::ReadOnly);
      set_memory(*b.buffer, a);
    }
    for (const Var& d : f_.dims) vars_[d.get()] = f->getArg(next++);
    failed_ = f->getArg(next++);
    number_ = f->getArg(next);
    return f;
  }

  void annotate(llvm::Function* f, const char* name, int64_t value) {
    const std::array<llvm::Metadata*, 3> fact{
        llvm::ValueAsMetadata::get(f), llvm::MDString::get(context_, name),
        llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(value)))};
    module_.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(context_, fact));
  }

  void set_memory(const BufferNode& b, Value* memory) {
    buffers_[&b] = memory;
    alignment_[&b] = b.dtype.element().bytes();
  }

  Value* read(llvm::Intrinsic::ID id) { return b_.CreateIntrinsic(id, {}, {}); }
  Value* wide(Value* v) { return b_.CreateZExt(v, b_.getInt64Ty()); }
  Value* as_index(const ForNode& f, Value* v) {
    return b_.CreateSExtOrTrunc(v, value_type(f.var->dtype));
  }
  // Leaves the function where the condition does not hold.
  void end_unless(Value* condition) { require(condition, b_.getInt32(0)); }

  // The first `axes` axes: a group for each index. Along y and z, a grid may have fewer groups than that, which take every
  // index at a distance of their number.
  void groups(const LaunchPart& part, size_t axes) {
    if (axes == 0) {
      for (const Stmt& s : part.body) group_statement(s);
      return;
    }
    const size_t i = axes - 1;
    const ForNode* f = part.axes[i];
    if (f == nullptr) return groups(part, i);
    Value* min = expr(f->min);
    Value* first = b_.CreateAdd(min, b_.CreateZExtOrTrunc(read(kAxes[i].group), min->getType()));
    const auto extent = as_int(f->extent);
    if (i == 0 || (extent && *extent <= runtime::cuda::kMostBlocks[i])) {
      vars_[f->var.get()] = first;
      return groups(part, i);
    }
    counted_loop(
        f->var, first, b_.CreateNSWAdd(min, expr(f->extent)),
        [&] {
          forget(0);
          groups(part, i);
          // The next one writes memory that items still read.
          barrier();
          forget(0);
        },
        b_.CreateZExtOrTrunc(read(kAxes[i].groups), min->getType()));
  }

  // The first `axes` axes, whose items take every index at a distance of their number.
  void items(const LaunchPart& part, size_t axes) {
    forget(0);
    if (axes == 0) {
      for (const Stmt& s : part.body) statement(s.get());
      return;
    }
    const size_t i = axes - 1;
    const ForNode* f = part.axes[i];
    const AxisRegisters& axis = kAxes[i];
    Value* group_items = wide(read(axis.items));
    Value* item = b_.CreateNUWAdd(b_.CreateNUWMul(wide(read(axis.group)), group_items),
                                  wide(read(axis.item)));
    if (f == nullptr) {
      end_unless(b_.CreateIsNull(item));
      item_[i] = item;
      return items(part, i);
    }
    Value* count = b_.CreateNUWMul(wide(read(axis.groups)), group_items);
    Value* extent = b_.CreateSExt(expr(f->extent), b_.getInt64Ty());
    if (auto most = device_.most_items()) {
      // Each item has a slice of working memory.
      count = extreme(true, kIndex, count, b_.getInt64(static_cast<uint64_t>(*most)));
      count = extreme(true, kIndex, count, extent);
      end_unless(b_.CreateICmpSLT(item, count));
    }
    item_[i] = item;
    width_[i] = count;
    Value* min = b_.CreateSExt(expr(f->min), b_.getInt64Ty());
    const Var index = tir::var(f->var->name + "_item", kIndex);
    counted_loop(
        index, b_.CreateNSWAdd(min, item), b_.CreateNSWAdd(min, extent),
        [&] {
          vars_[f->var.get()] = as_index(*f, vars_.at(index.get()));
          items(part, i);
          vars_.erase(f->var.get());
        },
        count);
  }

  // ---- What differs from processors

  // The first item that fails says so.
  void return_code() override {
    if (device_.launch().may_fail) {
      auto* failed = BasicBlock::Create(context_, "failed", function_);
      auto* first = BasicBlock::Create(context_, "first", function_);
      auto* done = BasicBlock::Create(context_, "done", function_);
      b_.CreateCondBr(b_.CreateIsNull(code_), done, failed);
      b_.SetInsertPoint(failed);
      constexpr auto kOrder = llvm::AtomicOrdering::Monotonic;
      Value* swapped = b_.CreateAtomicCmpXchg(failed_, b_.getInt32(0), code_, llvm::MaybeAlign(4),
                                              kOrder, kOrder);
      b_.CreateCondBr(b_.CreateExtractValue(swapped, 1), first, done);
      b_.SetInsertPoint(first);
      b_.CreateStore(number_, b_.CreateConstGEP1_64(b_.getInt32Ty(), failed_, 1));
      b_.CreateBr(done);
      b_.SetInsertPoint(done);
    }
    b_.CreateRetVoid();
  }

  // Loops that are bound in other places are loops of one item.
  void loop(const ForNode& l) override {
    if (l.hints.nest == tir::LoopNest::Matrix) return matrix_nest(l);
    if (l.hints.nest != tir::LoopNest::None) device_.unsupported("a nest for a matrix unit");
    if (copies_ && copy_run(l)) return;
    Value* begin = expr(l.min);
    Value* end = b_.CreateNSWAdd(begin, expr(l.extent));
    ordered_loop(l, begin, end, [&] { statement(l.body.get()); });
  }

  void allocate(const AllocateNode& a) override {
    const BufferNode& b = *a.buffer.get();
    if (DeviceKernel::is_small(b)) {
      set_memory(b, own_memory(b, *DeviceKernel::constant_elements(b)));
      return statement(a.body.get());
    }
    // A part of working memory for each item.
    Value* number = b_.getInt64(0);
    for (size_t i = width_.size(); i-- > 0;) {
      if (width_[i] == nullptr) continue;
      number = b_.CreateAdd(b_.CreateMul(number, width_[i]), item_[i]);
    }
    for (const PrimExpr& d : b.shape) {
      number = b_.CreateMul(number, b_.CreateSExt(expr(d), b_.getInt64Ty()));
    }
    Value* all = buffers_.at(&b);
    buffers_[&b] = b_.CreateInBoundsGEP(memory_type(b.dtype.element()), all, number);
    statement(a.body.get());
    buffers_[&b] = all;
  }

  Value* own_memory(const BufferNode& b, int64_t elements) {
    constexpr uint64_t kAlignment = 16;
    return stack_slot(
        llvm::ArrayType::get(memory_type(b.dtype.element()), static_cast<uint64_t>(elements)),
        kAlignment);
  }

  const PrimExpr& flat_index(const std::vector<PrimExpr>& indices, const Buffer& buf) override {
    const auto own = own_index(*buf.get(), indices);
    if (!own) return KernelBuilder::flat_index(indices, buf);
    PrimExpr at = tir::index(0);
    for (size_t d = 0; d < own->size(); ++d) {
      const PrimExpr& i = (*own)[d];
      at = at * *as_int(buf->shape[buf->shape.size() - own->size() + d]);
      if (i->dtype.lanes == 1) {
        at = at + tir::cast(kIndex, i);
        continue;
      }
      auto* lanes = as<RampNode>(i);
      if (lanes == nullptr || d + 1 != own->size()) {
        device_.unsupported("a vector of registers that are not neighbours");
      }
      at = tir::ramp(at + tir::cast(kIndex, lanes->base), tir::cast(kIndex, lanes->stride),
                     i->dtype.lanes);
    }
    return kept(at);
  }

  Value* prefetch(const tir::CallNode& n) override {
    return llvm::Constant::getNullValue(value_type(n.dtype));
  }

  Value* string_call(const tir::CallNode& n) override {
    if (n.name != "index_in" || n.dtype.lanes != 1) device_.unsupported("the intrinsic " + n.name);
    Value *index = expr(n.args[0]), *size = expr(n.args[1]);
    Value* from_end = b_.CreateICmpSLT(index, b_.getInt64(0));
    Value* place = b_.CreateSelect(from_end, b_.CreateAdd(index, size), index);
    require(b_.CreateICmpULT(place, size), b_.getInt32(RELAY_KERNEL_INDEX_OUT_OF_BOUNDS));
    return place;
  }

  llvm::FunctionCallee library_function(const std::string& name, llvm::Type* number,
                                        size_t count) override {
    llvm::Function* f = device_function(module_, target_, name, number, count);
    if (f == nullptr) device_.unsupported("the function " + name);
    return f;
  }

  // ---- Products by a warp

  void matrix_nest(const ForNode& l) {
    const tir::ThreadNest phase{tir::ThreadLevel::Item, phase_axes(), {}};
    auto found = tir::warp_product(l, phase);
    if (auto* why = std::get_if<std::string>(&found)) {
      device_.unsupported("a matrix nest for a warp: " + *why);
    }
    const auto& p = std::get<tir::WarpProduct>(found);
    const std::array<int64_t, 3>& group = device_.launch().group;
    if (group[0] != tir::kWarpColumns || group[1] != tir::kWarpRows) {
      device_.unsupported("a matrix nest of a warp whose items are no neighbours");
    }
    const DType a = p.a->buffer->dtype.element(), b = p.b->buffer->dtype.element();
    const WarpInstruction* by = warp_instruction(a, b, 8 * p.item_rows(), p.terms());
    if (by == nullptr) {
      device_.unsupported("a matrix nest of " + a.to_string() + " and " + b.to_string());
    }
    // The assembler would rather spill than leave a multiprocessor two groups.
    if (std::exchange(with_products_, function_) != function_) {
      annotate(function_, "minctasm", kResidentGroups);
    }
    forget(0);
    const PrimExpr x = p.item_column->var, y = p.item_row->var;
    const int64_t rows = by->item_rows(), halves = by->halves(), part = 4 * by->elements();
    // Of the register (half, row), the element at a term from x * E on; and of the row of 8 elements to which the n-th
    // item of the warp points.
    const std::vector<Value*> of_a = fragment(
        *p.a, rows * halves,
        [&](int64_t n, const PrimExpr& k) {
          return p.a_at(index(n % rows), y, k + n / rows * part);
        },
        [&](const PrimExpr& n, const PrimExpr& row) {
          return p.a_at(floor_mod(n, index(rows)), row, floor_div(n, index(rows)) * part);
        });
    const std::vector<Value*> of_b = fragment(
        *p.b, halves, [&](int64_t n, const PrimExpr& k) { return p.b_at(k + n * part, y); },
        [&](const PrimExpr& n, const PrimExpr& column) { return p.b_at(n * part, column); });
    const llvm::Align align = align_of(p.store->buffer);
    llvm::Type* type = memory_type(p.store->buffer->dtype.element());
    std::vector<Value*> places, sums;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < tir::kItemColumns; ++j) {
        places.push_back(address(p.store->buffer, place(p.sum_at(i, j), p.store->buffer)));
        sums.push_back(b_.CreateAlignedLoad(type, places.back(), align));
      }
    }
    const std::vector<Value*> added = multiply_by_warp(b_, *by, of_a, of_b, sums);
    for (size_t i = 0; i < places.size(); ++i) b_.CreateAlignedStore(added[i], places[i], align);
    forget(0);
  }

  using At = std::vector<PrimExpr>;

  PrimExpr flat(At indices, const Buffer& buf) {
    tir::Analyzer analyzer;
    for (PrimExpr& e : indices) e = analyzer.simplify(e);
    return flat_index(indices, buf);
  }
  Value* place(const At& indices, const Buffer& buf) { return expr(kept(flat(indices, buf))); }

  // The registers of an operand: rows of 16 bytes are loaded by the whole warp, and others element by element.
  std::vector<Value*> fragment(const LoadNode& l, int64_t count,
                               const std::function<At(int64_t, const PrimExpr&)>& element,
                               const std::function<At(const PrimExpr&, const PrimExpr&)>& row) {
    const Buffer& buf = l.buffer;
    const auto bits = static_cast<int64_t>(buf->dtype.element().bits);
    const int64_t elements = 32 / bits;
    const PrimExpr x = phase_axes()[0]->var;
    const PrimExpr item = phase_axes()[1]->var * tir::kWarpColumns + x;
    const PrimExpr first = flat(
        row(floor_mod(floor_div(item, index(8)), index(count)), floor_mod(item, index(8))), buf);
    if (buf->scope == tir::Scope::Shared && lies_in_row(buf, 4 * elements, element, first)) {
      return load_by_warp(b_, static_cast<size_t>(count), address(buf, expr(kept(first))));
    }
    llvm::Type* type = b_.getIntNTy(static_cast<unsigned>(bits));
    std::vector<Value*> out;
    for (int64_t n = 0; n < count; ++n) {
      Value* word = b_.getInt32(0);
      for (int64_t e = 0; e < elements; ++e) {
        Value* p = address(buf, place(element(n, x * elements + e), buf));
        Value* v = b_.CreateZExt(b_.CreateAlignedLoad(type, p, align_of(buf)), b_.getInt32Ty());
        word = b_.CreateOr(word, b_.CreateShl(v, static_cast<uint64_t>(e * bits)));
      }
      out.push_back(word);
    }
    return out;
  }

  // Whether the terms lie side by side, and `first` is the index of 16 bytes that begin at a multiple of 16.
  bool lies_in_row(const Buffer& buf, int64_t length,
                   const std::function<At(int64_t, const PrimExpr&)>& element,
                   const PrimExpr& first) {
    tir::Analyzer analyzer;
    const Var k = tir::var("k", kIndex);
    const PrimExpr at = flat(element(0, k), buf), next = flat(element(0, k + 1), buf);
    return analyzer.constant_difference(next, at) == 1 &&
           as_int(analyzer.simplify(floor_mod(first, index(length)))) == 0;
  }

  // ---- Reductions across a warp

  // Neighbours combine what they have, then pairs of pairs, and the first item stores.
  void reduce_lanes(const tir::ThreadNest& phase) {
    const auto found = tir::lane_reduction(phase);
    if (auto* why = std::get_if<std::string>(&found)) {
      device_.unsupported("a reduction across a warp: " + *why);
    }
    const auto& r = std::get<tir::LaneReduction>(found);
    if (device_.launch().group[0] != tir::kWarpItems) {
      device_.unsupported("a reduction across a warp whose items are no neighbours");
    }
    const DType d = r.own->dtype;
    Value* mine = expr(r.own);
    auto combined = [&](const PrimExpr& a, const PrimExpr& b) { return tir::binary(r.op, a, b); };
    for (int64_t distance = tir::kWarpItems / 2; distance > 0; distance /= 2) {
      const Var here = tir::var("here", d), there = tir::var("there", d);
      vars_[here.get()] = mine;
      vars_[there.get()] = exchange_in_warp(b_, mine, distance);
      mine = expr(kept(combined(here, there)));
      vars_.erase(here.get());
      vars_.erase(there.get());
    }
    const Var total = tir::var("total", d);
    Value* is_first = b_.CreateIsNull(vars_.at(phase.axes[0]->var.get()));
    when(is_first, [&] {
      vars_[total.get()] = mine;
      const PrimExpr& old = as<tir::BinaryNode>(r.store->value)->a;
      const PrimExpr start = r.init != nullptr ? r.init->value : old;
      const Stmt last = tir::store(r.store->buffer, r.store->indices, combined(start, total));
      KernelBuilder::store(*as<tir::StoreNode>(last));
      vars_.erase(total.get());
    });
    forget(0);
  }

  // ---- Copies that arrive later

  // What a copy stores in shared memory, from global memory; nothing for another store.
  static std::optional<tir::CopiedValue> copied_by(const StoreNode& s) {
    if (s.buffer->scope != tir::Scope::Shared || s.predicate) return std::nullopt;
    tir::CopiedValue out = tir::copied_value(s.value);
    if (out.from == nullptr || out.from->buffer->scope != tir::Scope::Global) return std::nullopt;
    return out;
  }

  // So many elements from these indices on.
  void copy(const tir::CopiedValue& what, const PrimExpr& from, const Buffer& to,
            const PrimExpr& at, int64_t elements) {
    Value* source = address(what.from->buffer, expr(from));
    const auto bytes = static_cast<int64_t>(to->dtype.element().bytes()) * elements;
    Value* inside = nullptr;
    if (what.inside) {
      inside = expr(kept(what.inside));
      // Nothing is read where the condition does not hold: the place may lie outside of the buffer.
      source = b_.CreateSelect(inside, source, buffer(what.from->buffer));
    }
    copy_later(b_, address(to, expr(at)), source, bytes, inside);
  }

  void store(const StoreNode& s) override {
    const auto what = copies_ ? copied_by(s) : std::nullopt;
    if (!what || s.buffer->dtype.element().bytes() != kLeastCopy) return KernelBuilder::store(s);
    copy(*what, flat_index(what->from->indices, what->from->buffer), s.buffer,
         flat_index(s.indices, s.buffer), 1);
  }

  // Neighbouring elements at a time. Whether memory of the caller begins at a multiple of their bytes, only a run knows.
  bool copy_run(const ForNode& l) {
    auto* s = as<StoreNode>(l.body);
    const auto what = s == nullptr ? std::nullopt : copied_by(*s);
    const auto extent = as_int(l.extent);
    if (!what || !extent || as_int(l.min) != 0) return false;
    const int64_t bytes = *extent * static_cast<int64_t>(s->buffer->dtype.element().bytes());
    if (!is_copied_at_once(bytes) || (what->inside && tir::uses(what->inside, l.var.get()))) {
      return false;
    }
    tir::Analyzer analyzer;
    auto first_of_run = [&](const std::vector<PrimExpr>& indices, const Buffer& b) -> PrimExpr {
      const PrimExpr& at = flat_index(indices, b);
      const PrimExpr next = tir::replace(at, {{l.var.get(), l.var + 1}}),
                     first = analyzer.simplify(tir::replace(at, {{l.var.get(), index(0)}}));
      const bool is_run = analyzer.constant_difference(next, at) == 1 &&
                          analyzer.modular(first).modulus % *extent == 0 &&
                          analyzer.modular(first).remainder % *extent == 0;
      return is_run ? first : nullptr;
    };
    const PrimExpr from = first_of_run(what->from->indices, what->from->buffer),
                   to = first_of_run(s->indices, s->buffer);
    if (!from || !to) return false;
    auto at_once = [&] { copy(*what, kept(from), s->buffer, kept(to), *extent); };
    if (bytes == kLeastCopy && s->buffer->dtype.element().bytes() == kLeastCopy) {
      at_once();
      return true;
    }
    Value* address = b_.CreatePtrToInt(buffer(what->from->buffer), b_.getInt64Ty());
    Value* rest = b_.CreateAnd(address, b_.getInt64(static_cast<uint64_t>(bytes - 1)));
    auto* whole = BasicBlock::Create(context_, "aligned", function_);
    auto* single = BasicBlock::Create(context_, "unaligned", function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(b_.CreateIsNull(rest), whole, single);
    b_.SetInsertPoint(whole);
    forget(0);
    at_once();
    forget(0);
    b_.CreateBr(next);
    b_.SetInsertPoint(single);
    ordered_loop(l, expr(l.min), expr(l.extent), [&] { statement(l.body.get()); });
    forget(0);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    return true;
  }

  void end_copies() override { codegen::end_copies(b_); }
  void wait_copies(int64_t lots) override { codegen::wait_copies(b_, lots); }

  // ---- Groups

  void barrier() override { b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

  void phase(const std::array<const ForNode*, 3>& axes, const std::array<int64_t, 3>& items,
             const StmtNode& body) override {
    Value* only = nullptr;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == nullptr && items[i] == 0) continue;
      Value* item = read(kAxes[i].item);
      if (axes[i] != nullptr) {
        vars_[axes[i]->var.get()] = b_.CreateZExtOrTrunc(item, value_type(axes[i]->var->dtype));
      }
      if (items[i] == 0) continue;
      Value* below = b_.CreateICmpULT(item, b_.getInt32(static_cast<uint32_t>(items[i])));
      only = only == nullptr ? below : b_.CreateAnd(only, below);
    }
    copies_ = std::ranges::any_of(axes, [](const ForNode* axis) {
      return axis != nullptr && axis->hints.nest == tir::LoopNest::Copy;
    });
    if (copies_ && !can_copy_later(target_)) device_.unsupported("copies that arrive later");
    const tir::ThreadNest nest{tir::ThreadLevel::Item, axes, relay::ref(body)};
    auto all = [&] { tir::reduces_lanes(nest) ? reduce_lanes(nest) : statement(&body); };
    if (only == nullptr) {
      all();
    } else {
      when(only, all);
    }
    copies_ = false;
    forget(0);
    for (const ForNode* f : axes) {
      if (f != nullptr) vars_.erase(f->var.get());
    }
  }

  void shared_memory(const BufferNode& b, int64_t elements) override {
    constexpr uint64_t kAlignment = 16;
    auto* type =
        llvm::ArrayType::get(memory_type(b.dtype.element()), static_cast<uint64_t>(elements));
    auto* memory = new llvm::GlobalVariable(
        module_, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
        llvm::UndefValue::get(type), device_.launch().name + "_shared", nullptr,
        llvm::GlobalValue::NotThreadLocal, kShared);
    memory->setAlignment(llvm::Align(kAlignment));
    set_memory(b, memory);
  }

  void item_registers(const BufferNode& b, int64_t elements) override {
    set_memory(b, own_memory(b, elements));
  }

  void repeat(const ForNode& f, const std::function<void()>& body) override {
    forget(0);
    Value* begin = expr(f.min);
    Value* end = b_.CreateNSWAdd(begin, expr(f.extent));
    ordered_loop(f, begin, end, [&] {
      forget(0);
      body();
    });
    forget(0);
  }

  void bind_for(const LetStmtNode& l, const std::function<void()>& body) override {
    forget(0);
    vars_[l.var.get()] = expr(l.value);
    body();
    forget(0);
    vars_.erase(l.var.get());
  }

  void only_if(const PrimExpr& cond, const std::function<void()>& body) override {
    forget(0);
    when(expr(cond), body);
  }

  DeviceKernel device_;
  // Of the function that is built.
  Value *failed_ = nullptr, *number_ = nullptr;
  // The number of this item and of all items along each axis that has several.
  std::array<Value*, 3> item_{}, width_{};
  bool copies_ = false;  // whether what the phase stores in shared memory arrives later
  llvm::Function* with_products_ = nullptr;  // the last one that has products of warps
};

}  // namespace

runtime::DeviceSource build_cuda_kernel(llvm::Module& module, const PrimFunc& f,
                                        const Target& target) {
  return CudaKernel(module, *f.get(), target).build();
}

}  // namespace relay::codegen
