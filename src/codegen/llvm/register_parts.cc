#include "codegen/llvm/register_parts.h"

#include <llvm/ADT/SmallVector.h>

#include <algorithm>

namespace relay::codegen {

using llvm::Value;

Value* by_registers(llvm::IRBuilder<>& b, std::span<const unsigned> widths, Value* acc, Value* x,
                    Value* y, llvm::function_ref<Value*(unsigned, Value*, Value*, Value*)> each) {
  auto* type = llvm::cast<llvm::FixedVectorType>(acc->getType());
  const unsigned lanes = type->getNumElements(), widest = widths.back();
  Value* out = llvm::PoisonValue::get(type);
  for (unsigned begin = 0; begin < lanes; begin += widest) {
    const unsigned count = std::min(widest, lanes - begin);
    const unsigned width = *std::ranges::lower_bound(widths, count);
    if (width == lanes) return each(width, acc, x, y);
    llvm::SmallVector<int> there(width, -1), back(lanes, -1), blend(lanes);
    for (unsigned i = 0; i < lanes; ++i) blend[i] = static_cast<int>(i);
    for (unsigned i = 0; i < count; ++i) {
      there[i] = static_cast<int>(begin + i);
      back[begin + i] = static_cast<int>(i);
      blend[begin + i] = static_cast<int>(lanes + begin + i);
    }
    auto part = [&](Value* v) { return b.CreateShuffleVector(v, there); };
    Value* sums = each(width, part(acc), part(x), part(y));
    out = b.CreateShuffleVector(out, b.CreateShuffleVector(sums, back), blend);
  }
  return out;
}

}  // namespace relay::codegen
