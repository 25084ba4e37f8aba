// The first operator of a run that makes a NaN or an infinity which none of its inputs has.
//
//   NanReport report = find_nan(*watch_evaluator(mod, {}), "main", arguments);
//   report.events[0].call.node    // "ln (LayerNormalization)"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/value_difference.h"
#include "driver/watched_run.h"

namespace relay {

struct NanEvent {
  bool is_nan = false;    // else an infinity
  std::string operation;  // "log", or the kernel's name
  std::string node;
  std::string origin;
  int64_t index = 0;   // of the call
  std::string kernel;  // of compiled code: the kernel around the operator
  // Of compiled code: the kernel makes it, but none of its operators does on the evaluator.
  bool kernel_only = false;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  Module program =
      nullptr;  // the operator alone, with the inputs as parameters; null: it has no such form
};

struct NanReport {
  // The first NaN and the first infinity that are made, in the order of the run; at most one of each.
  std::vector<NanEvent> events;
  int64_t calls = 0;
  // Numbers of the arguments and results that are not finite.
  NotFinite arguments, results;
};

// `source_name`: as of the watched program.
NanReport find_nan(WatchedProgram& program, const std::string& function,
                   const std::vector<runtime::Value>& args, const std::string& source_name = {});

}  // namespace relay
