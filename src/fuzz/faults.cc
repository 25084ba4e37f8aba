#include "fuzz/faults.h"

#include <vector>

namespace relay::fuzz {

std::span<const Fault> faults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> out;
    for (std::span<const Fault> part : {module_faults(), operator_faults(), gradient_faults(),
                                        kernel_faults(), bytecode_faults(), hostcode_faults()}) {
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }();
  return all;
}

Module PlantedFault::replace(const Pass& pass, const Module& before, const Module& after) {
  if (fault_.module == nullptr || fault_.stage != pass.name) return after;
  Module spoiled = fault_.module(before, after);
  if (spoiled == before || spoiled == after) return after;
  fired_ = true;
  return spoiled;
}

void PlantedFault::bytecode(Bytecode& bytecode) {
  if (fault_.bytecode != nullptr && fault_.bytecode(bytecode)) fired_ = true;
}

tir::PrimFunc PlantedFault::kernel(std::string_view stage, tir::PrimFunc f) {
  if (fault_.kernel == nullptr || fault_.stage != stage) return f;
  tir::PrimFunc spoiled = fault_.kernel(f);
  if (!(spoiled == f)) fired_ = true;
  return spoiled;
}

}  // namespace relay::fuzz
