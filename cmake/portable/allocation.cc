// Allocation for a module that has libstdc++ inside and whose equal functions are one (--icf).
//
// The parts of libstdc++'s own that throw stand apart from their functions, and are the same instructions in several of
// them. Made one, they have the frame of one: bad_alloc finds no way out of the others, and the process ends. These are
// compiled in one piece (-fno-reorder-blocks-and-partition), so equal functions have equal frames.
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
