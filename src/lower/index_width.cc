#include "lower/index_width.h"

#include <limits>

#include "base/codes/lowering.h"
#include "tir/passes/narrow_indices.h"

namespace relay {
namespace {

std::string most(int bits) {
  return std::to_string(std::numeric_limits<int64_t>::max() >> (64 - bits));
}

}  // namespace

tir::PrimFunc with_index_width(const tir::PrimFunc& lowered, const Target& target,
                               const Span& span) {
  if (auto large = tir::buffer_beyond(lowered, target.index_bits, target.pointer_bits)) {
    throw UserError(Diagnostic(codes::index_width, span,
                               "kernel " + lowered->name + " has a tensor, " + large->buffer->name +
                                   ", that needs wider indices than those of " + target.name)
                        .expected("at most " + most(target.index_bits) + " elements in " +
                                  most(target.pointer_bits) + " bytes")
                        .found(std::to_string(large->elements) + " elements of " +
                               large->buffer->dtype.to_string())
                        .help("split the tensor, or compile for a target with 64-bit indices"));
  }
  return target.index_bits == 32 ? tir::narrow_indices(lowered) : lowered;
}

void check_pointer_width(const std::string& what, int64_t bytes, const Target& target) {
  if (bytes <= std::numeric_limits<int64_t>::max() >> (64 - target.pointer_bits)) return;
  throw UserError(
      Diagnostic(codes::index_width, {}, what + " do not fit into memory of " + target.name)
          .expected("at most " + most(target.pointer_bits) + " bytes")
          .found(std::to_string(bytes) + " bytes")
          .help("compile for a target with 64-bit addresses"));
}

}  // namespace relay
