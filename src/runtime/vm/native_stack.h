// The stack of native functions: memory of its own, so that the depth of a recursion is limited by memory and never by
// the C stack of the thread.
//
//   std::unique_ptr<NativeStack> stack = NativeStack::make();
//   relay_native_result r = call_on_stack(stack->top(), code, &context, args, &c_stack);
//
// Native functions call one another in the ordinary way, so a call costs what it costs in C. Only the two ends change the
// stack pointer: the interpreter enters a native function through call_on_stack, and helpers that may run foreign code,
// throw, or need much stack run on the C stack again, from the pointer that call_on_stack stored.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/core/native_abi.h"

namespace relay::runtime {

class NativeStack {
 public:
  // Bytes of address space, less where the process may not have that much; pages are taken when they are first used.
  static constexpr size_t kBytes = size_t{512} << 20;
  // Below the limit that functions compare with: for the frame of a function that is not below it, for helpers that run
  // here, and for signal handlers.
  static constexpr size_t kReserve = size_t{256} << 10;

  // Null when there is no address space.
  static std::unique_ptr<NativeStack> make();
  ~NativeStack();
  NativeStack(const NativeStack&) = delete;
  NativeStack& operator=(const NativeStack&) = delete;

  size_t bytes() const { return bytes_; }
  char* top() const { return memory_ + bytes_; }
  // The limit that leaves that many bytes for functions; at most what there is.
  char* limit(size_t bytes) const;
  // Gives memory back that only deep recursion needs.
  void trim();

 private:
  NativeStack(char* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}

  char* memory_;
  size_t bytes_;
};

using StackFunction = relay_native_result (*)(void* a, const void* b);

// Whether this machine's runtime can run native functions.
bool has_native_stack();

// Calls f(a, b) on the stack that ends at `top`. `old_stack` receives the stack pointer of the caller: while the call
// lasts, memory below it (beyond kRedZone) is free for calls back. `f` throws nothing.
relay_native_result call_on_stack(char* top, StackFunction f, void* a, const void* b,
                                  char** old_stack);

// What compilers may use below the stack pointer.
inline constexpr size_t kRedZone = 256;

}  // namespace relay::runtime
