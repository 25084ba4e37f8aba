// LLVM's objects and exhausted memory.
//
// LLVM is compiled without exceptions: when an allocation fails inside a call, std::bad_alloc leaves its objects in the
// middle of a change (a hash table has its new size and its old buckets). Their destructors may then read freed
// memory. An object that an exception leaves is therefore leaked.
#pragma once

#include <exception>
#include <new>
#include <utility>

namespace relay::codegen {

// Holds a T, and destroys it unless an exception is being thrown. Destroy it in a catch block, where no exception is in
// flight, to free it after an exception that LLVM has not seen.
template <class T>
class LlvmObject {
 public:
  template <class... Args>
  explicit LlvmObject(Args&&... args) {
    ::new (static_cast<void*>(bytes_)) T(std::forward<Args>(args)...);
  }
  LlvmObject(const LlvmObject&) = delete;
  LlvmObject& operator=(const LlvmObject&) = delete;
  ~LlvmObject() {
    if (std::uncaught_exceptions() <= exceptions_) get().~T();
  }

  T& get() { return *std::launder(reinterpret_cast<T*>(bytes_)); }
  T& operator*() { return get(); }
  T* operator->() { return &get(); }

 private:
  alignas(T) unsigned char bytes_[sizeof(T)];
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace relay::codegen
