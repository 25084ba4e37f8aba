// The executor of compiled programs: the interpreter, and the native functions that it enters.
//
// An ExecutionContext owns everything that a run changes: registers, call frames, arena, scratch.
// It is kept from run to run, so that a run in steady state allocates only its results. One run at
// a time uses a context; several threads use a context each.
//
// Bytecode calls do not use the C stack: a program may recurse as deep as its memory limit allows.
// A run that fails leaves the context ready for the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/denormals.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/native_abi.h"
#include "runtime/core/string_functions.h"
#include "runtime/core/value.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"
#include "runtime/vm/bytecode.h"
#include "runtime/vm/device_state.h"
#include "runtime/vm/native_stack.h"
#include "runtime/vm/ref_list.h"

namespace relay::runtime {

class Interpreter;
class Profiler;

struct RunOptions {
  // Calls, and iterations of loops, that the run may make; -1: no limit. RuntimeError E0606.
  int64_t fuel = -1;
  // Bytes that the run may hold at once (values, frames, arena; and working memory of a kernel, for
  // itself); -1: no limit but that of the call stack, which is 512 MiB. RuntimeError E0604.
  int64_t memory_limit = -1;
  // Seconds that the run may take; 0: no limit. A kernel that may be long ends early, too.
  // RuntimeError E0615. The limits of the thread (base/budget.h) hold as well.
  double time_limit = 0;
  // Threads for kernels; 0: all of the pool. Results do not depend on it.
  int num_threads = 0;
  Profiler* profiler = nullptr;
  // Whether results that the function gives on devices stay there; else they are copied to the host.
  bool keeps_on_devices = false;
  // Whether functions that the artifact has as machine code run natively; else all are interpreted.
  bool native = true;
  // For tests: fills outputs and working memory with this byte before a kernel gets them.
  std::optional<uint8_t> poison;
};

class ExecutionContext {
 public:
  explicit ExecutionContext(std::shared_ptr<ThreadPool> pool);
  ~ExecutionContext();
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;

  // Runs a function of a verified program on arguments that fit its parameters' types, which the
  // caller has checked; their tensors may be on any device. `kernels` are the entry points in the order of program.kernels, `natives` those of the native
  // functions in the order of program.functions (null for the others), or none. `outputs`
  // are the buffers for a function that writes outputs: tensors of the results' types, or empty to
  // have them allocated. `constants` has the program's constants on devices. Parameters that are donated in place are written over, and are results. Errors: RuntimeError E0604 to E0607, UserError E0613.
  Value run(const Program& program, std::span<const relay_kernel> kernels,
            std::span<const relay_native_function> natives, DeviceConstants& constants,
            size_t function, std::span<const Value> args, std::span<const Tensor> outputs,
            const RunOptions& options = {}, Denormals denormals = Denormals::flush);

  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  void set_pool(std::shared_ptr<ThreadPool> pool) { pool_ = std::move(pool); }

 private:
  friend class Interpreter;

  // The stack is one row of slots: for each open call its frame, its object registers (and after
  // them the output buffers), its integer registers.
  union Slot {
    Object* object;
    int64_t integer;
  };
  struct alignas(Slot) Frame {
    const Function* function;
    size_t caller;            // slot of the caller's frame; for the outermost its own
    const Instruction* call;  // of the caller, null for the outermost
    char* arena;              // null without one
    ArenaStack::Mark mark;    // the arena before this frame, if it has one
  };

  // Asked by kernels, on any thread: 0 to go on, else the code to end with. On the run's own thread it looks at the
  // limits. `jumps`: iterations of loops since it was asked before, which count as the interpreter's do.
  int32_t may_go_on(int64_t jumps);

  std::shared_ptr<ThreadPool> pool_;
  Interpreter* interpreter_ = nullptr;  // of the run
  std::vector<Slot> slots_;
  size_t frame_ = 0;  // slot of the innermost frame
  size_t top_ = 0;    // slots in use
  size_t depth_ = 0;  // open frames
  ArenaStack arena_;
  std::vector<std::unique_ptr<DeviceState>> devices_;
  DeviceConstants* device_constants_ = nullptr;  // of the run
  std::unique_ptr<NativeStack> native_stack_;    // from the first call of a native function on
  Scratch scratch_;
  StringMemory strings_;  // that the run has made
  std::vector<void*> buffers_;
  std::vector<int64_t> dims_;
  std::vector<Object*> args_;
  RefList refs_;
  // Whether the last run had a parallel kernel: then the next one wakes the workers early.
  std::atomic<bool> parallel_{false};
  // What a kernel was ended for, which its caller throws; `ending_` tells the other threads.
  std::exception_ptr ended_for_;
  std::atomic<bool> ending_{false};
};

}  // namespace relay::runtime
