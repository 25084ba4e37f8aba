// The program as its functions are compiled: kernels, constants, strings and functions, each once.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "vm/compile.h"

namespace relay::vm {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const Module& mod) : mod_(mod) {}
  Bytecode run();
  int32_t constant(const Tensor& t);
  int32_t string(const std::string& text);
  int32_t kernel(const Function& called, KernelOf what = KernelOf::result);
  // The n-th name for a size that only a run tells. Kernels share these names, so that equal
  // kernels are one; a name means something for one call of a kernel.
  TypeVar size_name(size_t n);

  // The index of a function of the module.
  int32_t global(const GlobalVarNode& g) const { return globals_.at(g.name_hint); }

  // Queues a local function for compilation; `captured` are the variables that come before its
  // parameters. `self` is the variable the function is bound to, if it calls itself.
  int32_t local(const Function& f, std::vector<Var> captured, Var self);

  // A function that makes a value with the constructor, for where the constructor is a value.
  int32_t constructor_function(const ConstructorNode& c);

  Bytecode out;

 private:
  void place(int32_t index, runtime::Function f);

  struct Job {
    Function f;
    std::string name;
    std::vector<Var> captured;
    Var self;
    int32_t index;
  };
  const Module& mod_;
  std::unordered_map<const void*, int32_t> constants_;
  std::unordered_map<std::string, int32_t> strings_;
  std::vector<TypeVar> size_names_;
  std::unordered_map<uint64_t, std::vector<int32_t>> kernels_by_hash_;
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_map<std::string, int32_t> globals_;
  std::unordered_map<const Node*, int32_t> constructor_functions_;
  int32_t next_function_ = 0;
  std::deque<Job> queue_;
};

}  // namespace relay::vm
