// Planted faults: mistakes of the kinds that compilers make, put into a compilation from outside.
//
//   fuzz::PlantedFault fault(fuzz::faults()[3]);
//   options.instruments = {&fault};
//   options.observers = {&fault};
//
// A fault is a row: the stage whose work it spoils, and a function that makes of the stage's result
// what the mistake would have made of it. The compiler knows nothing of them. They tell whether the
// random programs would find such a mistake: one that is not found is a hole in the generator or in
// the checks.
#pragma once

#include <atomic>
#include <span>
#include <string_view>

#include "driver/compile.h"

namespace relay::fuzz {

struct Fault {
  std::string_view name;  // "merges_calls_with_other_attributes"
  // A pass ("FoldConstant"), a mode of differentiation ("ReverseMode", "ForwardMode"), a stage of a kernel ("schedule", "VectorizeLoops"; see StageObserver),
  // "bytecode", or "hostcode".
  std::string_view stage;
  std::string_view mimics;  // the mistake, in a sentence

  // Exactly one is set. They return their argument, or false, where there is nothing to spoil. Host code is part of what
  // `bytecode` is given.
  Module (*module)(const Module& before, const Module& after) = nullptr;
  tir::PrimFunc (*kernel)(const tir::PrimFunc& f) = nullptr;
  bool (*bytecode)(Bytecode& bytecode) = nullptr;
};

// All of them: of passes, of derivatives, of kernels, of bytecode, of host code.
std::span<const Fault> faults();
// The parts of the list, one file each.
std::span<const Fault> module_faults();
std::span<const Fault> operator_faults();
std::span<const Fault> gradient_faults();
std::span<const Fault> kernel_faults();
std::span<const Fault> bytecode_faults();
std::span<const Fault> hostcode_faults();

// Commits a fault wherever its stage ends.
class PlantedFault : public PassInstrument, public StageObserver {
 public:
  explicit PlantedFault(const Fault& fault) : fault_(fault) {}

  Module replace(const Pass& pass, const Module& before, const Module& after) override;
  void bytecode(Bytecode& bytecode) override;
  tir::PrimFunc kernel(std::string_view stage, tir::PrimFunc f) override;

  // Whether it has changed anything since the last call.
  bool fired() { return fired_.exchange(false); }

 private:
  const Fault& fault_;
  std::atomic<bool> fired_ = false;
};

}  // namespace relay::fuzz
