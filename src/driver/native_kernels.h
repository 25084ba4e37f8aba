// Native code for the operators of the reference evaluator: full-size models in seconds.
//
//   NativeKernels native;
//   EvalOptions options;
//   options.compile_kernel = native.compiler();
//   Evaluator(mod, options).call("main", args);
//   Evaluator(other, options).call("main", args);   // what it shares with the first run is not computed again
//
// The loops are those of the compute rule, one operator at a time: there is no fusion, no schedule rule and no layout, so a
// fault in these does not show in the results. Iterations of the outermost data-parallel loop are shared among threads, and
// several sums are computed at once, each in its own order. Kernels of little work, kernels with strings and kernels that
// compute in wide floats are interpreted.
#pragma once

#include <memory>

#include "eval/eval_kernel.h"

namespace relay {

class NativeKernels {
 public:
  // `num_threads` 0: those of the machine.
  explicit NativeKernels(int num_threads = 0);

  // Keeps the code and the results while it lives. Not for several threads at once.
  EvalKernelCompiler compiler() const;

 private:
  class Store;
  std::shared_ptr<Store> store_;
};

}  // namespace relay
