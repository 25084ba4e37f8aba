// The program relay-run, without its `main`.
#pragma once

#include <span>
#include <string>

namespace relay {

// What --report writes for the command that started the program, a line for each:
//
//   code E0603                  the run failed with that diagnostic
//   threads 4
//   version aarch64-linux+sve256     of the code that ran
//   seconds 0.00125             one for each timed run
//   output float32 logits.npy   one for each output: its dtype, and its file in the folder of --output
//
// Returns the exit code: 0; 1 after an error, which is on standard error; 2 for wrong arguments.
int run_program(std::span<const std::string> words);

}  // namespace relay
