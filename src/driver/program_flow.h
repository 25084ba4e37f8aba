// The kernels that a compiled function calls, what they read of each other, and the memory of their results over the run.
//
//   ProgramFlow flow = program_flow(module.program(), 0, module.metadata());
//   flow.steps[3].name      // "conv1 (Conv) + relu1 (Relu)"
//   flow.values[7].first    // the step that writes the value; `last` is the last one that reads it
//   flow.alive[3]           // bytes of the arena that hold something while step 3 runs
//
// It is read from the bytecode, so artifacts have it as well. Steps are in the order of the code: of a branch both sides
// count, and a loop counts once, where a value that an iteration leaves to the next one lives as long as the loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vm/bytecode.h"

namespace relay {

struct FlowStep {
  std::string name;     // the model's own nodes where they are known, else the kernel's name
  int32_t kernel = -1;  // -1: a copy
  std::vector<size_t> reads, writes;  // values
  std::vector<size_t> constants;      // of the program
};

struct FlowValue {
  enum class Home : uint8_t { parameter, arena, open, output };
  Home home = Home::arena;
  // The parameter, or the node whose result it is; several, where they write parts of one tensor.
  std::string name;
  // In the arena of the host, followed by those of devices.
  int64_t offset = 0;
  int64_t bytes = 0;
  // Steps; a parameter is there from the first one on.
  int32_t first = 0;
  int32_t last = 0;
};

struct ProgramFlow {
  std::string function;
  std::vector<FlowStep> steps;
  std::vector<FlowValue> values;
  // Of the host and of devices.
  int64_t arena_bytes = 0;
  std::vector<int64_t> alive;

  // The step with the most bytes alive; 0 where there is none.
  size_t peak() const;
};

// `metadata`: the program's own (JSON), by which calls that share a kernel have names of their own; may be empty.
ProgramFlow program_flow(const runtime::Program& program, size_t function,
                         std::string_view metadata);

}  // namespace relay
