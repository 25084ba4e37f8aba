// The work of a program's kernels in its runs, for profiles.
#pragma once

#include "runtime/module.h"
#include "runtime/profiler.h"

namespace relay::cli {

// The work of calls of a program's kernels: of those whose sizes a run says by the formulas in the program's metadata
// (driver/kernel_work.h).
runtime::Profiler::WorkOf work_of(const runtime::Module& module);

}  // namespace relay::cli
