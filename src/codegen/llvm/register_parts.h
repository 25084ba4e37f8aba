// Vectors of any number of lanes by instructions of a few widths.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include <span>

namespace relay::codegen {

// acc + x * y, or what else `each` computes of registers with `width` lanes. The widths ascend; of the last register a part may
// be used. An operand may have several elements in a lane, as one integer.
llvm::Value* by_registers(llvm::IRBuilder<>& b, std::span<const unsigned> widths, llvm::Value* acc,
                          llvm::Value* x, llvm::Value* y,
                          llvm::function_ref<llvm::Value*(unsigned width, llvm::Value* acc,
                                                          llvm::Value* x, llvm::Value* y)>
                              each);

}  // namespace relay::codegen
