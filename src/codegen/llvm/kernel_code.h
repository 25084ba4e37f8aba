// The class behind build_kernel, for the files that make it up, and for kernels of devices (codegen/cuda), which derive from
// it and have memory, loops and an entry of their own:
//   kernel_builder.cc      functions: the kernel, its entry, errors
//   kernel_values.cc       types in registers and in memory, loads and stores
//   kernel_statements.cc   control, loops, threads, memory of a kernel's own
//   kernel_expressions.cc  arithmetic, choices, casts
//   kernel_calls.cc        intrinsics
//   kernel_polls.cc        where a long kernel asks whether it is to go on
//   kernel_matrix.cc       nests of loops that a matrix unit does
//   kernel_transposed.cc   nests of loops that turn blocks of elements
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/kernel_builder.h"
#include "target/target.h"
#include "tir/arith/analyzer.h"
#include "tir/arith/counting.h"
#include "tir/matrix_nest.h"
#include "tir/stmt.h"
#include "tir/transposed_nest.h"

namespace relay::codegen {

using llvm::BasicBlock;
using llvm::Value;
using namespace tir;  // NOLINT: these files are about nothing else

// The kernel cannot be built.
[[noreturn]] void unsupported(const std::string& kernel, const std::string& what);

class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module, const PrimFuncNode& f, const Target& target)
      : module_(module),
        context_(module.getContext()),
        b_(context_),
        f_(f),
        target_(target),
        counting_(f.body) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    b_.setFastMathFlags(flags);
  }
  virtual ~KernelBuilder() = default;
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;
  // Adds the kernel to the module. Called once.
  void build();

 protected:
  // ---- Functions

  // The inputs that may be the output's memory, and that output.
  void find_shared();
  llvm::Function* make_function(const std::string& name, const std::vector<llvm::Type*>& types,
                                bool internal);
  void begin_function(llvm::Function* f);
  void finish_function();
  // Ends the function, whose code is `code_`, where the builder stands.
  virtual void return_code();
  // Leaves the function with a code; the current block ends.
  void fail_with(Value* code);
  // Goes on only when `ok`.
  void require(Value* ok, Value* code);
  void build_entry(llvm::Function* body);
  // A pointer of the kernel's context, by its offset in relay_kernel_context as this program has it.
  Value* context_pointer(llvm::IRBuilder<>& at, Value* context, size_t offset);

  // ---- Types

  static bool is_half(DType d) { return d.is_bfloat16() || d.is_float(16); }
  // 16-bit floats are computed in float32 and rounded after each operation.
  llvm::Type* value_type(DType d);
  llvm::Type* memory_type(DType d);
  llvm::Type* lanes_of(llvm::Type* element, llvm::Type* like);
  Value* constant_int(llvm::Type* type, int64_t v);
  Value* from_memory(DType d, Value* v);
  Value* to_memory(DType d, Value* v);
  // Without a product of two values in one multiply-add: what is computed in two places, as a row of products and its
  // greatest element, would differ from itself.
  Value* difference(const BinaryNode& n, Value* a, Value* b);
  // What the value is after it has been stored in its dtype.
  Value* rounded(DType d, Value* v) { return is_half(d) ? from_memory(d, to_memory(d, v)) : v; }
  Value* float_to_bfloat(Value* v);
  // Without hardware: the exponent is moved by a multiplication, which also takes care of
  // denormals.
  Value* half_to_float(Value* v);
  Value* float_to_half(Value* v);

  // ---- Memory

  Value* buffer(const Buffer& buf);
  llvm::Align align_of(const Buffer& buf) { return llvm::Align(alignment_.at(buf.get())); }
  Value* address(const Buffer& buf, Value* index);
  static const RampNode* unit_ramp(const PrimExpr& index);
  virtual const PrimExpr& flat_index(const std::vector<PrimExpr>& indices, const Buffer& buf);
  Value* lane_mask(const PrimExpr& predicate, int lanes);
  // The lanes in which a load reads: its predicate's, within those of the enclosing Select's side.
  // Null: all.
  Value* load_mask(const PrimExpr& predicate, int lanes);
  // As a number, or as the bits that lie there.
  Value* load(const LoadNode& l, bool as_bits = false);
  // What is stored for the value as an element of a buffer.
  Value* in_memory(DType element, const PrimExpr& value);
  // The index of each lane, as scalars.
  // The elements of a ramp of stride 2 to 4 from whole vectors; null for others.
  Value* load_with_stride(const LoadNode& l, const RampNode& at);
  std::vector<Value*> lane_indices(const PrimExpr& at, int lanes);
  virtual void store(const StoreNode& s);

  // ---- Values computed so far

  // A node that occurs several times in one statement is computed once, so that a chain of n
  // operators that use their operand twice costs n and not 2^n. What is computed in a conditional
  // part is forgotten at its end; all is forgotten between statements, because memory changes.
  void forget(size_t mark);

  // ---- Control

  template <class F>
  void when(Value* cond, F&& body) {
    auto* then_block = BasicBlock::Create(context_, "then", function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(cond, then_block, next);
    b_.SetInsertPoint(then_block);
    size_t mark = cached_.size();
    body();
    forget(mark);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }
  // The value when `cond`, else zero; the value is computed only then.
  template <class F>
  Value* guarded(Value* cond, llvm::Type* type, F&& body) {
    auto* from = b_.GetInsertBlock();
    auto* then_block = BasicBlock::Create(context_, "guarded", function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(cond, then_block, next);
    b_.SetInsertPoint(then_block);
    size_t mark = cached_.size();
    Value* v = body();
    forget(mark);
    auto* end = b_.GetInsertBlock();
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    auto* phi = b_.CreatePHI(type, 2);
    phi->addIncoming(v, end);
    phi->addIncoming(llvm::Constant::getNullValue(type), from);
    return phi;
  }
  // The other statements of a sequence come after one that nests, so sequences are loops.
  void statement(const StmtNode* s);
  virtual void loop(const ForNode& l);
  // A loop marked so goes from its end to its beginning.
  void counted_loop(const ForNode& l, Value* begin, Value* end);
  // The statements of a loop. Those of a parallel one divide its number by sizes once, at the beginning.
  void loop_body(const ForNode& l);
  // From its beginning to its end, or the other way.
  template <class F>
  void ordered_loop(const ForNode& l, Value* begin, Value* end, F&& body) {
    if (l.hints.order != tir::LoopOrder::Backward) {
      counted_loop(l.var, begin, end, body);
      return;
    }
    // The sum of both ends may need more bits than they do.
    auto wide = [&](Value* v) { return b_.CreateSExt(v, b_.getInt64Ty()); };
    Value* last = b_.CreateNSWSub(b_.CreateNSWAdd(wide(begin), wide(end)), b_.getInt64(1));
    Var count = tir::var(l.var->name + "_back", l.var->dtype);
    counted_loop(count, begin, end, [&] {
      vars_[l.var.get()] =
          b_.CreateTrunc(b_.CreateNSWSub(last, wide(vars_.at(count.get()))), begin->getType());
      body();
      vars_.erase(l.var.get());
    });
  }
  // In steps of `by`, or of 1 where it is null.
  template <class F>
  void counted_loop(const Var& var, Value* begin, Value* end, F&& body, Value* by = nullptr) {
    auto* before = b_.GetInsertBlock();
    auto* header = BasicBlock::Create(context_, var->name, function_);
    auto* next = BasicBlock::Create(context_, "next", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), header, next);
    b_.SetInsertPoint(header);
    auto* i = b_.CreatePHI(begin->getType(), 2, var->name);
    i->addIncoming(begin, before);
    vars_[var.get()] = i;
    body();
    vars_.erase(var.get());
    if (by == nullptr) by = llvm::ConstantInt::get(i->getType(), 1);
    Value* step = b_.CreateNSWAdd(i, by);
    i->addIncoming(step, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(step, end), header, next);
    b_.SetInsertPoint(next);
  }
  // The body becomes a function of its own: entry (void* env, begin, end) unpacks what it needs
  // from the environment and calls the inner one, whose pointers are known not to alias.
  void parallel_loop(const ForNode& l);
  // Buffers and variables that a loop uses and does not define, in order of first use.
  void free_values(const ForNode& l, std::vector<const Node*>& pointers,
                   std::vector<const Node*>& scalars);
  // Memory in the function's entry block, so that it exists once and can become registers.
  Value* stack_slot(llvm::Type* type, uint64_t align = 8);
  Value* scratch(llvm::IRBuilder<>& at, Value* bytes);
  virtual void allocate(const AllocateNode& a);
  // Whether every result has a dimension of 0 in this run; null where only compile time decides.
  Value* results_are_empty();
  // Whether the kernel's dimensions alone say its size.
  bool known_at_entry(const tir::BufferNode& b) const;

  // ---- Long kernels

  // What is known of a statement: its operations, whether a loop in it asks, and whether it has one.
  struct Survey {
    int64_t work = 0;
    bool asks = false;
    bool has_loop = false;
    // Iterations of loops of the program that do not ask and whose lengths are known.
    int64_t jumps = 0;
    // The operations between two jumps of a loop around this.
    int64_t jump() const { return std::max<int64_t>(work / (1 + jumps), 1); }
    Survey& operator+=(const Survey& next) {
      work += next.work;
      asks = asks || next.asks;
      has_loop = has_loop || next.has_loop;
      jumps += next.jumps;
      return *this;
    }
  };
  enum class Around { Nothing, Tile, MatrixRegisters };
  // A loop that asks: the operations of an iteration, whether it has no loop inside, and whether its iterations count as
  // jumps of the run.
  struct Poll {
    int64_t work;
    bool innermost;
    bool program;
    int64_t jump;  // the operations between two jumps, where the loop is one of the program
  };
  // Finds the loops that ask.
  void find_polls();
  Survey survey(const StmtNode* s, Around around);
  // What the extent of a loop is, or at most, as far as its definition shows that.
  struct Length {
    int64_t most;
    bool exact;
  };
  std::optional<Length> most_iterations(PrimExpr extent) const;
  // The operations of a statement for the sizes of this run. `inner`, of a statement that always runs: innermost loops of the
  // program whose lengths are known here count, for the loop around them instead of for themselves; it becomes the most
  // operations of an iteration of one.
  Value* work_now(const StmtNode* s, int64_t* inner = nullptr);
  // Leaves the function when the kernel is to end.
  void ask_to_go_on(int64_t jumps = 0);
  // The same, when the function has done enough since it asked last.
  void ask_after(Value* work, int64_t jumps);
  // How many iterations are about a millisecond; and, of loops of the program, how many jumps of the run these are.
  static int64_t iterations_between_polls(int64_t work);
  static int64_t jumps_between_polls(const Poll& poll);
  // A loop without loops inside, which asks; `loop` runs it from an iteration to another.
  void polled_loop(const ForNode& l, const Poll& poll, Value* begin, Value* end,
                   const std::function<void(Value*, Value*)>& loop);

  // ---- Expressions

  Value* expr(const PrimExpr& e) { return expr(*e.get()); }
  Value* expr(const PrimExprNode& e);
  Value* compute(const PrimExprNode& e);
  Value* binary(const BinaryNode& n);
  // NaN on either side wins, as in NumPy.
  Value* extreme(bool least, DType d, Value* a, Value* b);
  // Whether it is an index, which does not overflow.
  bool counts(const PrimExprNode& e) {
    return e.dtype.element() == tir::kIndex && counting_.counts(relay::ref(e));
  }
  enum class Division {
    Unsigned,  // the operands are, or the dividend is known not to be negative and the divisor is a positive constant
    Signed,
    ByNumber,  // signed, by a number of the program
  };
  Division division(const BinaryNode& quotient);
  // Integer division by zero gives the dividend and no remainder; the least signed number by -1 gives itself. The
  // processor traps on both, so 1 replaces such a divisor. Where it is a number of the program, 1 replaces -1 whatever the
  // dividend is, so that a loop computes the divisor once; for a counter of a loop, this would hide from LLVM that it does
  // not overflow.
  Value* tame_divisor(Value* a, Value* b, Division how);
  // With 1 for 0 alone.
  Value* tame_zero(Value* b);
  Value* quotient(Value* a, Value* b, Division how);
  Value* remainder(Value* a, Value* b, Division how);
  // Which lanes of neighbouring indices are below an end, where the indices fill several registers: how many are left
  // is one number, and the lanes are counted in bytes. Null for other comparisons.
  Value* lanes_below(const BinaryNode& n);
  // Truncation went the other way than floor.
  Value* rounds_down(Value* a, Value* b, Division how);
  // The exponent when the divisor is a positive power of two.
  static std::optional<int64_t> log2_of(const PrimExpr& divisor);
  // Shifting by the width or more gives what is left of the number: its sign, or zero.
  Value* shift(BinaryOp op, bool is_signed, Value* a, Value* b);
  Value* select(const SelectNode& n);
  // The expression with its loads limited to the lanes of `mask`.
  Value* masked(const PrimExpr& e, Value* mask);
  // Towards zero, to the nearest that the integer holds; NaN becomes zero.
  Value* to_integer(Value* v, DType to);
  // The same of round(v) + offset, for vectors and integers of at most 16 bits.
  Value* round_to_integer(Value* v, double offset, DType to);
  Value* cast_value(const CastNode& n);

  // ---- Calls

  Value* unary(llvm::Intrinsic::ID id, Value* v);
  Value* call(const tir::CallNode& n);
  Value* float_call(const std::string& name, DType d, const std::vector<Value*>& args);
  // y, but the library's value of the function in lanes where x is larger than the limit.
  Value* within(double limit, const std::string& name, Value* x, Value* y);
  // The remainder of a / b with the sign of a, exact.
  Value* remainder(Value* a, Value* b);
  // All lanes combined into one value, halves first.
  Value* reduce_lanes(const std::string& name, DType d, Value* v);
  // A call through the context for each lane (runtime/core/string_functions.h).
  virtual Value* string_call(const tir::CallNode& n);
  // Squares while any lane's exponent has bits left.
  Value* integer_power(DType d, Value* x, Value* n);
  // x to a small constant power.
  Value* simple_power(const tir::CallNode& n);
  // A call of a library's function for each lane.
  Value* per_lane(const std::string& name, const std::vector<Value*>& args);
  // The function of libm for these numbers.
  virtual llvm::FunctionCallee library_function(const std::string& name, llvm::Type* number,
                                                size_t count);
  virtual Value* prefetch(const tir::CallNode& n);
  Value* load_word(const tir::CallNode& n);
  // An expression that the kernel does not hold, alive as long as code is made.
  const PrimExpr& kept(PrimExpr e) { return kept_.emplace_back(std::move(e)); }
  // acc + n, where n is a product of int32 that were widened from 16 bits or fewer; null when n is anything else or the
  // target has no instruction for it.
  Value* add_short_product(const PrimExpr& acc, const PrimExpr& n);
  // acc + n, where n is a call of byte_dot or bfloat16_dot; null when n is none, or the target has no instruction for it.
  Value* add_word_dot(const PrimExpr& acc, const tir::CallNode& n);

  // ---- The matrix unit

  // What a nest does that a buffer of sums is for, and the shapes of the registers that it takes.
  struct MatrixUse {
    MatrixProduct product;
    size_t shapes = 0;
  };
  // Finds the uses of the unit in the kernel, and for every statement which shapes it needs.
  void find_matrix_uses();
  // Gives the registers the shapes that the statement needs, where it needs one set of them only.
  void shape_registers(const StmtNode* s);
  // The statement by the unit; false when it is none of its nests.
  bool matrix_statement(const StmtNode* s);
  void matrix_multiply(const MatrixProduct& p);
  // The nest by shuffles; false when it is none (tir/transposed_nest.h).
  bool transposed_statement(const StmtNode* s);
  // The nest whose few columns fill the rows of the result, all of which are written at once.
  void interleaved_columns(const TransposedNest& nest);
  // Indices at equal distances.
  struct Strided {
    Value *first, *step;
  };
  // The element `offset` behind the one after so many steps.
  Value* index_at(const Strided& s, int64_t steps, int64_t offset);
  // The first elements of a nest's columns.
  struct Columns {
    Strided strided{};
    std::vector<Value*> each{};  // where they are no step apart
  };
  Columns columns_of(const TransposedNest& nest);
  // The element in a row of a column.
  Value* index_at(const Columns& from, int64_t column, int64_t row);
  // The rows from `first_row` and columns from `first_column` of it; `to` and `from` are the elements that begin its rows and
  // its columns.
  void transposed_block(const TransposedNest& nest, const Strided& to, const Columns& from,
                        int64_t first_row, int64_t rows, int64_t first_column, int64_t columns);
  // What shapes the registers have is not known here.
  void forget_shapes() { shapes_ = kUnknownShapes; }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  const PrimFuncNode& f_;
  const Target& target_;
  tir::Counting counting_;
  // Of numbers that loops of the program keep; none without such loops.
  std::optional<tir::Analyzer> bounds_;
  llvm::Function* function_ = nullptr;
  BasicBlock* entry_ = nullptr;
  BasicBlock* start_ = nullptr;
  BasicBlock* exit_ = nullptr;
  llvm::PHINode* code_ = nullptr;
  Value* ctx_ = nullptr;
  bool in_parallel_ = false;
  int parallel_count_ = 0;
  int64_t stack_bytes_ = 0;
  Value* side_mask_ = nullptr;  // the lanes that the enclosing vector Select's side is for
  std::unordered_map<const Node*, Value*> cache_;
  std::vector<const Node*> cached_;  // the keys of cache_, in order
  std::deque<PrimExpr> kept_;        // expressions that were made here, as keys of cache_ must live
  std::unordered_map<const Node*, Value*> buffers_;
  std::unordered_map<const Node*, uint64_t> alignment_;
  std::unordered_set<const Node*> shared_;
  std::unordered_map<const Node*, Value*> vars_;
  // Quotients and remainders of loops' numbers that are known already.
  std::vector<std::pair<PrimExpr, Value*>> divided_;
  // By the buffer of sums; statements with the one set of shapes that they need, or kUnknownShapes for several.
  static constexpr size_t kUnknownShapes = static_cast<size_t>(-1);
  std::unordered_map<const Node*, MatrixUse> matrix_uses_;
  std::unordered_map<const Node*, size_t> needed_shapes_;
  std::vector<LlvmMatrixUnit::Shapes> register_shapes_;
  size_t shapes_ = kUnknownShapes;  // of the registers, where code is being made
  bool uses_matrix_unit_ = false;   // in this function
  std::unordered_map<const Node*, PrimExpr> definitions_;  // of variables, behind `survey`
  std::unordered_map<const Node*, Poll> polls_;
  std::unordered_set<const Node*>
      counted_around_;          // loops whose iterations count for the loop around them
  Value* work_left_ = nullptr;  // until this function asks; null where it never does
};

}  // namespace relay::codegen
