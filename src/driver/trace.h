// The values of a run, call by call, and where two runs of programs that should compute the same begin to differ.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/value_difference.h"
#include "driver/watched_run.h"

namespace relay {

struct TraceStep {
  std::string operation;
  std::string node;
  std::string origin;
  std::vector<Tensor> inputs;  // on the evaluator; none of kernels
  std::vector<Tensor> outputs;
  std::vector<size_t> producers;  // the steps that made the inputs, where that is known
};

struct Trace {
  std::vector<TraceStep> steps;
  std::vector<Tensor> arguments;
  std::vector<Tensor> results;
  std::vector<size_t> result_producers;
  // Whether `producers` are known.
  bool has_producers = false;
};

// Runs the function. UserError E0702 where its result is not made of tensors.
Trace trace(WatchedProgram& program, const std::string& function,
            const std::vector<runtime::Value>& args);

// The tensors of a trace, found by what they are close to.
class ValueIndex {
 public:
  ValueIndex(const Trace& trace, const Tolerances& tolerances);
  // Whether some value of the trace has the dtype, the shape and, within the tolerances, the elements.
  bool contains(const Tensor& value) const;

 private:
  void add(const Tensor& value);

  Tolerances tolerances_;
  std::unordered_map<std::string, std::vector<Tensor>> by_type_;
};

// Whether two places are one node: "conv1 (Conv)" and "conv1"; two empty ones are none.
bool same_node(const std::string& a, const std::string& b);

// The results that differ; those that one of them does not have, too.
std::vector<size_t> different_results(const std::vector<Tensor>& got,
                                      const std::vector<Tensor>& want,
                                      const Tolerances& tolerances);

// The first step of `want` that has a value which `got` does not have, though `got` has what it is computed from. Where
// producers are known, a step that a result in `wrong` depends on.
std::optional<size_t> first_missing(const Trace& want, const Trace& got,
                                    const std::vector<size_t>& wrong, const Tolerances& tolerances);

}  // namespace relay
