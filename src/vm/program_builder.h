// The program as its functions are compiled: kernels, constants, strings and functions, each once.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "vm/compile.h"

namespace relay::vm {

class ProgramBuilder {
 public:
  ProgramBuilder(const Module& mod, LoweredProgram& lowered) : mod_(mod), lowered_(lowered) {}
  Bytecode run();
  int32_t constant(const Tensor& t);
  int32_t string(const std::string& text);
  // The kernel of the program that `lowered` becomes where its buffers lie in larger tensors of
  // these shapes (empty: none does), called once more at the site.
  int32_t kernel(int32_t lowered, const KernelSite& site,
                 const std::vector<std::vector<int64_t>>& within = {});
  LoweredProgram& lowered() { return lowered_; }

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
  LoweredProgram& lowered_;
  std::unordered_map<const void*, int32_t> constants_;
  std::unordered_map<std::string, int32_t> strings_;
  std::map<std::pair<int32_t, std::vector<std::vector<int64_t>>>, int32_t> kernels_;
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_map<std::string, int32_t> globals_;
  std::unordered_map<const Node*, int32_t> constructor_functions_;
  int32_t next_function_ = 0;
  std::deque<Job> queue_;
};

}  // namespace relay::vm
