// A plan to bytecode. Nothing is decided here: a step becomes the instructions that do it.
#pragma once

#include "plan/plan.h"
#include "runtime/vm/bytecode.h"

namespace relay {

runtime::Program emit(const plan::PlanProgram& plan);

// A tensor type as the run time knows it.
runtime::TensorSpec spec_of(const TensorTypeNode& t, runtime::Device device = {});
// The parts of a tuple's type; none for other types.
std::vector<runtime::TypePart> parts_of(const Type& type);

}  // namespace relay
