// Allocation for a module that contains libstdc++ and whose equal functions are merged (--icf).
//
// The cold parts of libstdc++'s functions, which throw, are separate sections, and several have the same instructions.
// If the linker merges them, they have the frame of one function: the unwinder fails in the others, and bad_alloc ends
// the process. These functions are compiled without splitting (-fno-reorder-blocks-and-partition), so equal functions
// have equal frames.
#include <cstdlib>
#include <new>

namespace {

template <class Allocate>
void* until_it_is_there(const Allocate& allocate) {
  while (true) {
    if (void* memory = allocate()) return memory;
    std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  return until_it_is_there([=] { return std::malloc(bytes == 0 ? 1 : bytes); });
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  auto unit = static_cast<std::size_t>(alignment);
  std::size_t whole = (bytes + unit - 1) / unit * unit;
  return until_it_is_there([=]() -> void* {
    // The sum has overflown.
    if (whole < bytes) return nullptr;
    return std::aligned_alloc(unit, whole == 0 ? unit : whole);
  });
}
