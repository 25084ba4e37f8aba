// Runs a kernel by its text's meaning: the oracle for schedules, lowering and code generation, and
// how the evaluator computes an operator.
//
//   PrimFunc f = create_prim_func("matmul", {a, b}, {c});
//   int64_t error = interpret(f, {a_data, b_data, c_data}, {});
//
// Any stage will do: blocks as composed, blocks as scheduled, or lowered loops. Loops run one
// iteration after the other, whatever their kind. The function is translated once to a flat program
// of typed operations on 64-bit slots, so that an element of a buffer costs tens of nanoseconds and
// expressions may be of any depth.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/tensor.h"
#include "tir/stmt.h"

namespace relay::tir {

struct InterpretOptions {
  // float16, bfloat16 and float32 are computed in double, and buffers of them that are not a parameter
  // hold doubles; values are rounded when a parameter is written. Otherwise each operation rounds
  // to its dtype.
  bool wide_floats = false;
  // How many Stores may be executed, vectors counted once; 0: any number. Passing it raises
  // UserError E0606. The limits of the thread (base/budget.h) hold as well.
  int64_t max_steps = 0;
  // What memory of an Allocate is filled with. Without it, it starts out as NaN, or as 0xCB bytes
  // for integers, so that a read of undefined data shows.
  std::optional<uint8_t> poison = std::nullopt;
  // Keeps count of the elements that are written, for KernelInterpreter::undefined.
  bool find_undefined = false;
  // Keeps count of which work items access each element, for KernelInterpreter::race.
  bool find_races = false;
};

// `buffers`: a tensor for each parameter, in order, of its dtype and shape (of the array that it
// lies in, if there is one); those of outputs are written. `dims`: the values of f->dims, in order.
// Returns the error number of a Check that fails (nothing after it is run), 0 otherwise. Strings that
// are made live until the interpreter runs again or ends: whoever keeps them copies them.
//
// InternalError, with what was done and to which buffer, when an access is out of bounds, a tensor
// does not fit its parameter, or the function is no well-formed program (tir/verify.h).
int64_t interpret(const PrimFunc& f, const std::vector<runtime::Tensor>& buffers,
                  const std::vector<int64_t>& dims, const InterpretOptions& options = {});

// A kernel translated once and run many times, with the same values of its dims. One run at a time.
class KernelInterpreter {
 public:
  explicit KernelInterpreter(const PrimFunc& f, const std::vector<int64_t>& dims = {},
                             InterpretOptions options = {});
  ~KernelInterpreter();
  KernelInterpreter(KernelInterpreter&&) noexcept;
  KernelInterpreter& operator=(KernelInterpreter&&) noexcept;

  // As `interpret`. The tensors are let go at the end.
  int64_t run(const std::vector<runtime::Tensor>& buffers);
  // With `find_undefined`: the first element that the last run read before it was written, else one
  // of an output that a run without error left unwritten: "reads sum[3]", "leaves y[0, 1] unwritten".
  // Empty when there is none.
  const std::string& undefined() const;
  // With `find_races`: the first element that two work items of a launch (tir/thread_nests.h) accessed in the last run, one of
  // them to write it, without a barrier between: "tile[3] is written by item (0, 0, 0) and read by item (1, 0, 0) of group
  // (2, 0, 0)". Registers of a group are an item's own: no barrier lets another access them. Empty when there is none. Loops run in
  // order, so one run finds every race of these inputs.
  const std::string& race() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace relay::tir
