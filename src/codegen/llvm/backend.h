// LLVM as a backend: every architecture that has a file of its own here.
#pragma once

#include "codegen/backend.h"
#include "target/processor_text.h"

namespace relay::codegen {

const Backend& llvm_backend();

// What LLVM knows of processors.
const Processors& llvm_processors();

// The kind of processors with vectors, caches and threads that share memory, but for its schedule rules, which are of a room
// that this one does not include.
TargetKind cpu_kind();

}  // namespace relay::codegen
